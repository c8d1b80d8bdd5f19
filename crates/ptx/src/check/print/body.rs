//! Bodies as text: declarations first, then the statements.
//!
//! Invariant: every name in a body is declared once, and hides no other name.

use super::{Printer, literal};
use crate::check::module::{
    Address, AddressBase, Body, FuncId, Function, FunctionKind, Guard, Inst, LabelId, LocalId, LocalRole,
    LocalVar, Operand, Param, RegisterId, Signature, Statement, Storage, VarId,
};
use crate::isa::form::{self, Kind, OperandForm, TypeOf};
use crate::isa::{Op, Slot, Sreg, Ty, Version};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

/// The names of a body's declarations.
struct Names {
    registers: Vec<String>,
    locals: Vec<String>,
    labels: Vec<String>,
    /// Variables that the body declares for the module.
    owned: BTreeMap<VarId, String>,
    prototypes: Vec<String>,
    call_targets: Vec<String>,
    branch_targets: Vec<String>,
}

/// Generates unused names.
struct Namer<'p, 'm> {
    /// The names of the module.
    globals: &'p HashSet<&'m str>,
    taken: HashSet<String>,
    /// The next number to append to a name.
    numbers: HashMap<&'m str, u32>,
}

impl<'m> Namer<'_, 'm> {
    /// `name`, with a number appended if it is used.
    fn name(&mut self, name: &'m str) -> String {
        if name == "_" {
            return name.to_owned();
        }
        let free = !self.globals.contains(name) && Sreg::from_name(name).is_none();
        if free && self.taken.insert(name.to_owned()) {
            return name.to_owned();
        }
        let number = self.numbers.entry(name).or_insert(0);
        loop {
            *number += 1;
            let candidate = format!("{name}_{number}");
            if !self.globals.contains(candidate.as_str()) && self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}

impl<'m> Printer<'m> {
    fn names(&self, id: FuncId, body: &'m Body, prototypes: usize) -> Names {
        let mut namer = Namer { globals: &self.globals, taken: HashSet::new(), numbers: HashMap::new() };
        let owned = self.owned.get(&id).map_or(&[][..], Vec::as_slice);
        let owned = owned.iter().filter_map(|id| Some((*id, self.module.variables.get(id.0 as usize)?)));
        // Entities of module scope keep their names.
        let own = body.registers.len() - body.shared.len();
        let registers = body.registers.iter().enumerate();
        let local = |namer: &mut Namer<'_, 'm>, local: &'m LocalVar| match local.role {
            LocalRole::Shared(_) => local.name.clone(),
            LocalRole::Local
            | LocalRole::KernelParam(_)
            | LocalRole::Input(_)
            | LocalRole::Return(_)
            | LocalRole::CallParam => namer.name(&local.name),
        };
        Names {
            registers: registers
                .map(|(id, r)| if id < own { namer.name(&r.name) } else { r.name.clone() })
                .collect(),
            locals: body.locals.iter().map(|l| local(&mut namer, l)).collect(),
            labels: body.labels.iter().map(|(name, _)| namer.name(name)).collect(),
            owned: owned.map(|(id, v)| (id, namer.name(&v.name))).collect(),
            prototypes: (0..prototypes).map(|_| namer.name("prototype")).collect(),
            call_targets: body.call_targets.iter().map(|_| namer.name("call_targets")).collect(),
            branch_targets: body.branch_targets.iter().map(|_| namer.name("branch_targets")).collect(),
        }
    }

    /// A function with its body. The last function also prints the remaining prototypes.
    pub(super) fn function(&mut self, id: FuncId, function: &'m Function, body: &'m Body, last: bool) {
        let first = self.protos;
        let used = body.statements.iter().filter_map(|statement| match statement {
            Statement::Inst(inst) => inst.operands.iter().filter_map(prototype).max(),
            Statement::Label(_) | Statement::Loc(_) => None,
        });
        let end = if last { Some(self.module.prototypes.len() as u32) } else { used.max().map(|p| p + 1) };
        self.protos = end.unwrap_or(first).max(first);
        let names = self.names(id, body, (self.protos - first) as usize);
        let module = self.module;

        // Before PTX 1.4, kernels declare their parameters in their bodies.
        let inside = function.kind == FunctionKind::Entry && module.version < Version::new(1, 4);
        let params: &[Param] = if inside { &[] } else { &function.signature.params };
        let given = |params: &[Param]| -> Vec<String> {
            params.iter().map(|param| names.storage(param.storage).to_owned()).collect()
        };
        let (returned, given) = (given(&function.signature.returns), given(params));
        self.signature(function, params, Some((&returned, &given)));
        self.out.push_str("\n{\n");
        self.declarations(function, body, &names, inside);
        for (name, signature) in names.prototypes.iter().zip(&module.prototypes[first as usize..]) {
            self.prototype(name, signature);
        }
        for (name, list) in names.call_targets.iter().zip(&body.call_targets) {
            let list: Vec<&str> = list.iter().map(|id| self.function_name(*id)).collect();
            let _ = writeln!(self.out, "{name}: .calltargets {};", list.join(", "));
        }
        for (name, list) in names.branch_targets.iter().zip(&body.branch_targets) {
            let list: Vec<&str> = list.iter().map(|id| names.label(*id)).collect();
            let _ = writeln!(self.out, "{name}: .branchtargets {};", list.join(", "));
        }
        for statement in &body.statements {
            match statement {
                Statement::Label(id) => {
                    let _ = writeln!(self.out, "{}:", names.label(*id));
                }
                Statement::Loc(loc) => {
                    let _ = writeln!(self.out, ".loc {} {} {}", loc.file, loc.line, loc.column);
                }
                Statement::Inst(inst) => {
                    Instructions { printer: self, names: &names, body, first }.print(inst)
                }
            }
        }
        self.out.push_str("}\n\n");
    }

    fn function_name(&self, id: FuncId) -> &'m str {
        self.module.functions.get(id.0 as usize).map_or("_", |f| f.name.as_str())
    }

    /// Registers, local variables and variables of the module that the body declares, each kind in order.
    fn declarations(&mut self, function: &Function, body: &Body, names: &Names, inside: bool) {
        let formals = function.signature.returns.iter().chain(&function.signature.params);
        let formal_registers =
            formals.filter(|param| matches!(param.storage, Some(Storage::Register(_)))).count();
        let own = body.registers.len() - body.shared.len();
        let own = body.registers.iter().zip(&names.registers).take(own).skip(formal_registers);
        let mut before = None;
        for (register, name) in own {
            let kind = Some((register.ty, register.vector));
            if before == kind {
                let _ = write!(self.out, ", {name}");
                continue;
            }
            self.out.push_str(if before.is_some() { ";\n.reg" } else { ".reg" });
            self.shape(register.ty, register.vector, 0);
            let _ = write!(self.out, " {name}");
            before = kind;
        }
        self.out.push_str(if before.is_some() { ";\n" } else { "" });
        for (local, name) in body.locals.iter().zip(&names.locals) {
            let elsewhere = match local.role {
                LocalRole::KernelParam(_) => !inside,
                LocalRole::Input(_) | LocalRole::Return(_) | LocalRole::Shared(_) => true,
                LocalRole::Local | LocalRole::CallParam => false,
            };
            if !elsewhere {
                self.local(local, name);
            }
        }
        for (id, name) in &names.owned {
            let Some(variable) = self.module.variables.get(id.0 as usize) else { continue };
            self.vars = self.vars.max(id.0 + 1);
            self.variable(variable, name);
        }
    }
}

/// The prototype that an operand names.
fn prototype(operand: &Operand) -> Option<u32> {
    if let Operand::Prototype(id) = operand { Some(id.0) } else { None }
}

impl Names {
    fn register(&self, id: RegisterId) -> &str {
        self.registers.get(id.0 as usize).map_or("_", String::as_str)
    }

    fn local(&self, id: LocalId) -> &str {
        self.locals.get(id.0 as usize).map_or("_", String::as_str)
    }

    fn label(&self, id: LabelId) -> &str {
        self.labels.get(id.0 as usize).map_or("_", String::as_str)
    }

    fn storage(&self, storage: Option<Storage>) -> &str {
        match storage {
            Some(Storage::Register(id)) => self.register(id),
            Some(Storage::Local(id)) => self.local(id),
            None => "_",
        }
    }
}

/// Prints the instructions of one body.
struct Instructions<'p, 'm> {
    printer: &'p mut Printer<'m>,
    names: &'p Names,
    body: &'p Body,
    /// The number of the body's first prototype.
    first: u32,
}

impl Instructions<'_, '_> {
    #[allow(clippy::wildcard_enum_match_arm, reason = "all other operands are printed alike")]
    fn print(mut self, inst: &Inst) {
        if let Some(Guard { register, negated }) = inst.guard {
            let not = if negated { "!" } else { "" };
            let name = self.names.register(register);
            let _ = write!(self.printer.out, "@{not}{name} ");
        }
        let form = inst.row.form();
        self.printer.out.push_str(form.mnemonic);
        for (_, word) in inst.mods.given() {
            let _ = write!(self.printer.out, ".{}", word.text());
        }
        let given = form.operands.iter().zip(&inst.operands).filter(|(_, o)| **o != Operand::Absent);
        for (index, (operand_form, operand)) in given.enumerate() {
            self.printer.out.push_str(if index == 0 { " " } else { ", " });
            match operand {
                Operand::Args(list) => self.args(inst, operand_form, list),
                Operand::AddressList(list) => self.bracket(inst, operand_form, list),
                Operand::Absent
                | Operand::Sink
                | Operand::Register(_)
                | Operand::Element(..)
                | Operand::Not(_)
                | Operand::Sreg(..)
                | Operand::Imm(_)
                | Operand::Vector(_)
                | Operand::Pair(..)
                | Operand::Address(_)
                | Operand::SymbolAddress(..)
                | Operand::Opaque(_)
                | Operand::Label(_)
                | Operand::BranchTargets(_)
                | Operand::Function(_)
                | Operand::CallTargets(_)
                | Operand::Prototype(_)
                | Operand::ParamVar(_)
                | Operand::Video { .. } => {
                    let types = self.types(inst, operand_form, operand);
                    // Without braces, the offset of a one-dimensional texture would be parsed as a depth
                    // reference.
                    let braces = operand_form.kind == Kind::Offset && self.is_scalar(operand);
                    self.printer.out.push_str(if braces { "{" } else { "" });
                    self.operand(operand, &types);
                    self.printer.out.push_str(if braces { "}" } else { "" });
                }
            }
        }
        self.printer.out.push_str(";\n");
    }

    /// Whether an operand is a single value.
    #[allow(clippy::wildcard_enum_match_arm, reason = "all other operands are one value")]
    fn is_scalar(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Vector(_) => false,
            Operand::Register(id) => {
                self.body.registers.get(id.0 as usize).is_none_or(|register| register.vector == 1)
            }
            _ => true,
        }
    }

    /// The type of an operand, or of each of its elements; the last one applies to all further elements.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "kinds that are not listed have their type in the table"
    )]
    fn types(&self, inst: &Inst, form: &OperandForm, operand: &Operand) -> Vec<Option<Ty>> {
        let mods = &inst.mods;
        let pointer = if self.printer.module.address_size.bytes() == 4 { Ty::U32 } else { Ty::U64 };
        match form.kind {
            Kind::Value(value) if value.ty == TypeOf::Pointer => vec![Some(pointer)],
            // A 64-bit integer, for any range.
            Kind::Imm { .. } => vec![Some(Ty::S64)],
            Kind::Coords => {
                let surface = matches!(inst.row.row().op, Op::Suld | Op::Sust | Op::Sured);
                let ctype = if surface { Ty::S32 } else { mods.ty_in(Slot::Ctype).unwrap_or(Ty::S32) };
                let Some(geom) = mods.geom() else { return vec![Some(ctype)] };
                let shape = form::coords(geom, ctype);
                let used = shape.types.iter().take(usize::from(shape.used)).map(|ty| Some(*ty));
                used.chain([Some(Ty::B32)]).collect()
            }
            Kind::Elems => {
                let parts = if let Operand::Vector(list) = operand { list.len() as u32 } else { 1 };
                let bits = mods.ty_in(Slot::Type).map_or(0, Ty::bits);
                let part = match bits.checked_div(parts) {
                    Some(8) => Some(Ty::B8),
                    Some(16) => Some(Ty::B16),
                    Some(32) => Some(Ty::B32),
                    Some(_) | None => Some(Ty::B64),
                };
                vec![part]
            }
            Kind::Variable => vec![mods.ty_in(Slot::Type)],
            _ => vec![form.ty(mods)],
        }
    }

    /// `[a, b]`; optional members may be omitted.
    fn bracket(&mut self, inst: &Inst, form: &OperandForm, list: &[Operand]) {
        let mut missing = form.members.len().saturating_sub(list.len());
        let members = form.members.iter().filter(|member| {
            let left_out = member.optional && missing > 0;
            missing -= usize::from(left_out);
            !left_out
        });
        self.printer.out.push('[');
        for (index, (member, operand)) in members.zip(list).enumerate() {
            if index > 0 {
                self.printer.out.push_str(", ");
            }
            let types = self.types(inst, member, operand);
            self.operand(operand, &types);
        }
        self.printer.out.push(']');
    }

    /// Arguments or results of a call.
    fn args(&mut self, inst: &Inst, form: &OperandForm, list: &[Operand]) {
        let types: Vec<Option<Ty>> = match self.callee(inst) {
            Some(signature) => {
                let params = if form.kind == Kind::Rets { &signature.returns } else { &signature.params };
                params.iter().map(|param| Some(param.ty)).collect()
            }
            None => Vec::new(),
        };
        self.printer.out.push('(');
        for (index, operand) in list.iter().enumerate() {
            if index > 0 {
                self.printer.out.push_str(", ");
            }
            let ty = types.get(index).copied().flatten();
            self.operand(operand, &[ty]);
        }
        self.printer.out.push(')');
    }

    /// The signature that the arguments of a call match.
    #[allow(clippy::wildcard_enum_match_arm, reason = "other operands name no signature")]
    fn callee(&self, inst: &Inst) -> Option<&Signature> {
        let module = self.printer.module;
        let function = |id: FuncId| module.functions.get(id.0 as usize).map(|f| &f.signature);
        let mut indirect = None;
        for operand in &inst.operands {
            match operand {
                Operand::Function(id) => return function(*id),
                Operand::Prototype(id) => indirect = module.prototypes.get(id.0 as usize),
                Operand::CallTargets(index) => {
                    let list = self.body.call_targets.get(*index as usize);
                    indirect = list.and_then(|list| function(*list.first()?));
                }
                _ => {}
            }
        }
        indirect
    }

    #[allow(clippy::too_many_lines, reason = "one arm for each kind of operand")]
    fn operand(&mut self, operand: &Operand, types: &[Option<Ty>]) {
        let ty = types.first().copied().flatten().unwrap_or(Ty::B64);
        let names = self.names;
        match operand {
            Operand::Absent => {}
            Operand::Sink => self.printer.out.push('_'),
            Operand::Register(id) => self.printer.out.push_str(names.register(*id)),
            Operand::Element(id, element) => {
                let element = ["x", "y", "z", "w"][usize::from(*element % 4)];
                let _ = write!(self.printer.out, "{}.{element}", names.register(*id));
            }
            Operand::Not(id) => {
                let _ = write!(self.printer.out, "!{}", names.register(*id));
            }
            Operand::Sreg(sreg, component) => self.special(*sreg, *component),
            Operand::Imm(bits) => self.printer.out.push_str(&literal(ty, *bits)),
            // A special register as a whole.
            Operand::Vector(list) if let Some(sreg) = whole_special(list) => {
                self.printer.out.push_str(sreg.facts().name);
            }
            Operand::Vector(list) => {
                self.printer.out.push('{');
                for (index, element) in list.iter().enumerate() {
                    if index > 0 {
                        self.printer.out.push_str(", ");
                    }
                    let ty = types.get(index).or(types.last()).copied().flatten();
                    self.operand(element, &[ty]);
                }
                self.printer.out.push('}');
            }
            Operand::Pair(a, b) => {
                self.operand(a, types);
                if **b != Operand::Absent {
                    self.printer.out.push('|');
                    self.operand(b, types);
                }
            }
            Operand::Address(Address { base, index, offset }) => {
                if index.is_some() {
                    self.sum(*base, 0);
                }
                self.printer.out.push('[');
                // Beside a register that indexes an array, a constant counts elements.
                let unit = if index.is_some() { self.element_bytes(*base) } else { 1 };
                self.sum(index.map_or(*base, AddressBase::Register), *offset / unit);
                self.printer.out.push(']');
            }
            Operand::SymbolAddress(base, offset) => self.sum(*base, *offset),
            Operand::Opaque(base) => self.sum(*base, 0),
            Operand::AddressList(list) => {
                self.printer.out.push('[');
                self.list(list, types);
                self.printer.out.push(']');
            }
            Operand::Label(id) => self.printer.out.push_str(names.label(*id)),
            Operand::BranchTargets(index) => self.named(&names.branch_targets, *index),
            Operand::Function(id) => {
                let name = self.printer.function_name(*id);
                self.printer.out.push_str(name);
            }
            Operand::CallTargets(index) => self.named(&names.call_targets, *index),
            Operand::Prototype(id) => self.named(&names.prototypes, id.0.wrapping_sub(self.first)),
            Operand::Args(list) => {
                self.printer.out.push('(');
                self.list(list, types);
                self.printer.out.push(')');
            }
            Operand::ParamVar(id) => self.printer.out.push_str(names.local(*id)),
            Operand::Video { value, negated, selector } => {
                self.printer.out.push_str(if *negated { "-" } else { "" });
                self.operand(value, types);
                if !selector.is_empty() {
                    let _ = write!(self.printer.out, ".{selector}");
                }
            }
        }
    }

    fn list(&mut self, list: &[Operand], types: &[Option<Ty>]) {
        for (index, operand) in list.iter().enumerate() {
            if index > 0 {
                self.printer.out.push_str(", ");
            }
            self.operand(operand, types);
        }
    }

    fn named(&mut self, names: &[String], index: u32) {
        self.printer.out.push_str(names.get(index as usize).map_or("_", String::as_str));
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "operands that are not listed have no number")]
    fn special(&mut self, sreg: Sreg, component: u8) {
        let facts = sreg.facts();
        let _ = match sreg {
            Sreg::Pm64(n) => write!(self.printer.out, "%pm{n}_64"),
            Sreg::Pm(n) | Sreg::Envreg(n) => write!(self.printer.out, "{}{n}", facts.name),
            _ => write!(self.printer.out, "{}", facts.name),
        };
        if facts.vector {
            let _ = write!(self.printer.out, ".{}", ["x", "y", "z", "w"][usize::from(component % 4)]);
        }
    }

    /// The bytes of an element of a variable.
    fn element_bytes(&self, base: AddressBase) -> i64 {
        let (ty, vector) = match base {
            AddressBase::Var(id) => match self.printer.module.variables.get(id.0 as usize) {
                Some(variable) => (variable.ty, variable.vector),
                None => return 1,
            },
            AddressBase::Local(id) => match self.body.locals.get(id.0 as usize) {
                Some(local) => (local.ty, local.vector),
                None => return 1,
            },
            AddressBase::Absolute | AddressBase::Register(_) | AddressBase::Func(_) => return 1,
        };
        (i64::from(ty.bytes()) * i64::from(vector)).max(1)
    }

    /// A base plus an offset; a negative offset is printed as `+-4`, which ptxas accepts.
    fn sum(&mut self, base: AddressBase, offset: i64) {
        let module = self.printer.module;
        let name = match base {
            AddressBase::Absolute => {
                let _ = write!(self.printer.out, "{offset}");
                return;
            }
            AddressBase::Register(id) => self.names.register(id),
            AddressBase::Local(id) => self.names.local(id),
            AddressBase::Func(id) => self.printer.function_name(id),
            AddressBase::Var(id) => match self.names.owned.get(&id) {
                Some(name) => name,
                None => module.variables.get(id.0 as usize).map_or("_", |v| v.name.as_str()),
            },
        };
        self.printer.out.push_str(name);
        if offset != 0 {
            let _ = write!(self.printer.out, "+{offset}");
        }
    }
}

/// The special register of which a vector lists all components in order.
fn whole_special(list: &[Operand]) -> Option<Sreg> {
    let Some(Operand::Sreg(first, 0)) = list.first() else { return None };
    let next = |(at, operand): (usize, &Operand)| *operand == Operand::Sreg(*first, at as u8);
    (list.len() == 4 && list.iter().enumerate().all(next)).then_some(*first)
}
