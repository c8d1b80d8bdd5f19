//! Prints a checked module as text.
//!
//! Invariant: the text checks without an error, and gives the same module except for places, for the names of
//! a body's declarations (blocks are flattened, so names that hide others get a number), and for the order of
//! label numbers. Variables, functions, registers and prototypes keep their numbers. Comments and pragmas are
//! not printed, because a [`Module`] does not keep them.
//!
//! Numbers are kept by printing definitions in the order of the module's text, each after declarations of
//! entities that have a lower number or that it uses. So it applies to modules that were checked, not to
//! linked ones.

mod body;
mod init;

use super::module::{
    AddressSize, Body, FuncId, Function, FunctionKind, Linkage, LocalVar, Module, Param, Performance,
    SectionLine, SectionValue, Signature, Statement, Symbol, VarId, Variable,
};
use super::names::Name;
use crate::isa::{Space, Ty, TyKind, Version};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// The module as text in canonical layout.
pub fn print(module: &Module) -> String {
    let mut owned: HashMap<FuncId, Vec<VarId>> = HashMap::new();
    let mut globals: HashSet<&str> = module.functions.iter().map(|f| f.name.as_str()).collect();
    for (index, variable) in module.variables.iter().enumerate() {
        match variable.owner {
            Some(function) => owned.entry(function).or_default().push(VarId(index as u32)),
            None => {
                globals.insert(&variable.name);
            }
        }
    }
    globals.extend(module.registers.iter().map(|register| register.name.as_str()));
    globals.extend(module.locals.iter().map(|local| local.name.as_str()));
    let mut printer = Printer { module, owned, globals, out: String::new(), vars: 0, funcs: 0, protos: 0 };
    printer.header();
    printer.definitions();
    printer.debugging();
    let text = printer.out;
    crate::syntax::format::format(&text).unwrap_or(text)
}

/// The output. Writing to a string cannot fail, so results of `write!` are ignored.
struct Printer<'m> {
    module: &'m Module,
    /// The variables that each body declares, in order.
    owned: HashMap<FuncId, Vec<VarId>>,
    /// The names of module scope.
    globals: HashSet<&'m str>,
    out: String,
    /// Variables below this number are declared.
    vars: u32,
    /// Functions below this number are declared.
    funcs: u32,
    /// Prototypes below this number are printed.
    protos: u32,
}

/// A definition, by its place in the text.
#[derive(Clone, Copy)]
enum Definition {
    Variable(VarId),
    Function(FuncId),
}

impl<'m> Printer<'m> {
    fn header(&mut self) {
        let Module { version, target, address_size, files, .. } = self.module;
        let _ = write!(self.out, ".version {version}\n.target {}", target.sm);
        let options = [
            (target.texmode_independent, "texmode_independent"),
            (target.debug, "debug"),
            (target.map_f64_to_f32, "map_f64_to_f32"),
        ];
        for (_, name) in options.iter().filter(|(given, _)| *given) {
            let _ = write!(self.out, ", {name}");
        }
        self.out.push('\n');
        // The directive is from PTX 2.3; before, addresses have 32 bits or the target's width.
        if *version >= Version::new(2, 3) {
            let bits = match address_size {
                AddressSize::Bits32 => 32,
                AddressSize::Bits64 => 64,
            };
            let _ = writeln!(self.out, ".address_size {bits}");
        }
        for (index, name) in files {
            let _ = writeln!(self.out, ".file {index} \"{name}\"");
        }
        for register in &self.module.registers {
            self.out.push_str(".reg");
            self.shape(register.ty, register.vector, 0);
            let _ = writeln!(self.out, " {};", register.name);
        }
        for local in &self.module.locals {
            self.local(local, &local.name);
        }
        self.out.push('\n');
    }

    /// Debugging data.
    fn debugging(&mut self) {
        for line in &self.module.dwarf {
            let _ = writeln!(self.out, "{line}");
        }
        for section in &self.module.sections {
            let _ = writeln!(self.out, ".section {} {{", section.name);
            for line in &section.lines {
                match line {
                    SectionLine::Label(name) => {
                        let _ = writeln!(self.out, "{name}:");
                    }
                    SectionLine::Data(ty, values) => self.section_data(*ty, values),
                }
            }
            self.out.push_str("}\n");
        }
    }

    fn section_data(&mut self, ty: Ty, values: &[SectionValue]) {
        const ON_A_LINE: usize = 16;
        for values in values.chunks(ON_A_LINE) {
            let _ = write!(self.out, ".{} ", ty.name());
            for (index, value) in values.iter().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                let _ = match value {
                    SectionValue::Number(bits) => write!(self.out, "{comma}{bits}"),
                    SectionValue::Address(text) => write!(self.out, "{comma}{text}"),
                };
            }
            self.out.push('\n');
        }
    }

    /// Everything, in the order of the text.
    fn definitions(&mut self) {
        let module = self.module;
        let variables = module.variables.iter().enumerate().filter(|(_, v)| v.owner.is_none());
        let variables = variables.map(|(i, v)| (v.span.start, Definition::Variable(VarId(i as u32))));
        let functions = module.functions.iter().enumerate().filter(|(_, f)| f.body.is_some());
        let functions = functions.map(|(i, f)| (f.span.start, Definition::Function(FuncId(i as u32))));
        let mut all: Vec<(u32, Definition)> = variables.chain(functions).collect();
        all.sort_by_key(|(start, _)| *start);
        let last = all.iter().rposition(|(_, d)| matches!(d, Definition::Function(_)));
        for (index, (_, definition)) in all.iter().enumerate() {
            match *definition {
                Definition::Variable(id) => self.define_variable(id),
                Definition::Function(id) => self.define_function(id, Some(index) == last),
            }
        }
        self.declare_functions(module.functions.len() as u32);
        for function in &module.functions {
            if let Some(target) = function.alias_of.and_then(|id| module.functions.get(id.0 as usize)) {
                let _ = writeln!(self.out, ".alias {}, {};", function.name, target.name);
            }
        }
    }

    /// Declares all variables of module scope below `end`.
    fn declare_variables(&mut self, end: u32) {
        while self.vars < end {
            let Some(variable) = self.module.variables.get(self.vars as usize) else { return };
            self.vars += 1;
            if variable.owner.is_none() {
                let declaration =
                    Variable { linkage: Linkage::Extern, init: None, fields: Vec::new(), ..variable.clone() };
                self.variable(&declaration, &variable.name);
            }
        }
    }

    /// Declares all functions below `end`.
    fn declare_functions(&mut self, end: u32) {
        while self.funcs < end {
            let Some(function) = self.module.functions.get(self.funcs as usize) else { return };
            self.funcs += 1;
            // The definition declares the parameter names, and renames those that hide others.
            let nameless = |params: &[Param]| vec!["_".to_owned(); params.len()];
            let Signature { returns, params, .. } = &function.signature;
            let names = function.body.is_some().then(|| (nameless(returns), nameless(params)));
            self.signature(function, params, names.as_ref().map(|(r, p)| (r.as_slice(), p.as_slice())));
            self.out.push_str(";\n");
        }
    }

    /// Declares a symbol that is used before its definition.
    fn declare(&mut self, symbol: Symbol) {
        match symbol {
            Symbol::Var(id) => self.declare_variables(id.0 + 1),
            Symbol::Func(id) => self.declare_functions(id.0 + 1),
        }
    }

    fn define_variable(&mut self, id: VarId) {
        let Some(variable) = self.module.variables.get(id.0 as usize) else { return };
        self.declare_variables(id.0);
        for reloc in variable.init.iter().flat_map(|init| &init.relocs) {
            self.declare(reloc.symbol);
        }
        self.vars = self.vars.max(id.0 + 1);
        self.variable(variable, &variable.name);
    }

    fn define_function(&mut self, id: FuncId, last: bool) {
        let Some(function) = self.module.functions.get(id.0 as usize) else { return };
        let Some(body) = &function.body else { return };
        if let Some(first) = self.owned.get(&id).and_then(|owned| owned.first()) {
            self.declare_variables(first.0);
        }
        self.declare_functions(id.0);
        let owned = |id: VarId| self.module.variables.get(id.0 as usize).is_some_and(|v| v.owner.is_some());
        let mut named = Vec::new();
        named_by(body, &mut named);
        named.retain(|symbol| match symbol {
            Symbol::Var(var) => !owned(*var),
            Symbol::Func(func) => *func != id,
        });
        for symbol in named {
            self.declare(symbol);
        }
        self.funcs = self.funcs.max(id.0 + 1);
        self.function(id, function, body, last);
    }

    /// A declaration of a variable, with its initial contents.
    fn variable(&mut self, variable: &Variable, name: &str) {
        self.out.push_str(linkage(variable.linkage));
        let _ = write!(self.out, ".{}", variable.space.name());
        if variable.bank > 0 {
            let _ = write!(self.out, "[{}]", variable.bank);
        }
        if variable.managed {
            self.out.push_str(" .attribute(.managed)");
        }
        // A `.tex` variable is a texture reference that is declared with an integer type.
        let (ty, align) =
            if variable.space == Space::Tex { (Ty::U64, 8) } else { (variable.ty, variable.align) };
        self.shape(ty, variable.vector, align);
        self.declarator(name, &variable.dims);
        self.initializer(variable);
        self.out.push_str(";\n");
    }

    /// A declaration of a `.local` or `.param` variable.
    fn local(&mut self, local: &LocalVar, name: &str) {
        let _ = write!(self.out, ".{}", local.space.name());
        self.shape(local.ty, local.vector, local.align);
        self.declarator(name, &local.dims);
        self.out.push_str(";\n");
    }

    /// Alignment, vector and type.
    fn shape(&mut self, ty: Ty, vector: u8, align: u32) {
        if align > ty.bytes().max(1) * u32::from(vector) {
            let _ = write!(self.out, " .align {align}");
        }
        if vector > 1 {
            let _ = write!(self.out, " .v{vector}");
        }
        let _ = write!(self.out, " .{}", ty.name());
    }

    fn declarator(&mut self, name: &str, dims: &[u64]) {
        let _ = write!(self.out, " {name}");
        for dimension in dims {
            match dimension {
                0 => self.out.push_str("[]"),
                n => {
                    let _ = write!(self.out, "[{n}]");
                }
            }
        }
    }

    /// The part before a body. `names` are those of the return parameters and parameters.
    fn signature(&mut self, function: &Function, params: &[Param], names: Option<(&[String], &[String])>) {
        self.out.push_str(linkage(function.linkage));
        self.out.push_str(match function.kind {
            FunctionKind::Entry => ".entry ",
            FunctionKind::Func => ".func ",
        });
        let (returned, given) = names.unwrap_or((&[], &[]));
        if !function.signature.returns.is_empty() {
            self.params(&function.signature.returns, returned);
        }
        let _ = write!(self.out, " {}", function.name);
        self.params(params, given);
        if function.signature.noreturn {
            self.out.push_str(" .noreturn");
        }
        self.performance(&function.performance);
    }

    fn performance(&mut self, performance: &Performance) {
        let Performance { maxnreg, maxntid, reqntid, minnctapersm } = performance;
        for (word, number) in [("maxnreg", maxnreg), ("minnctapersm", minnctapersm)] {
            if let Some(number) = number {
                let _ = write!(self.out, " .{word} {number}");
            }
        }
        for (word, extents) in [("maxntid", maxntid), ("reqntid", reqntid)] {
            if let Some([x, y, z]) = extents {
                let _ = write!(self.out, " .{word} {x}, {y}, {z}");
            }
        }
    }

    /// A list of parameters, with the given names or else their own.
    fn params(&mut self, params: &[Param], names: &[String]) {
        self.out.push('(');
        for (index, param) in params.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            let _ = write!(self.out, ".{}", param.space.name());
            match param.ptr {
                None => self.shape(param.ty, param.vector, param.align),
                Some((space, align)) => {
                    self.shape(param.ty, param.vector, param.align);
                    self.out.push_str(" .ptr");
                    if space != Space::Generic {
                        let _ = write!(self.out, " .{}", space.name());
                    }
                    let _ = write!(self.out, " .align {align}");
                }
            }
            let own = if param.name.is_empty() { "_" } else { param.name.as_str() };
            self.declarator(names.get(index).map_or(own, String::as_str), &param.dims);
        }
        self.out.push(')');
    }

    fn prototype(&mut self, name: &str, signature: &Signature) {
        let _ = write!(self.out, "{name}: .callprototype ");
        if !signature.returns.is_empty() {
            self.params(&signature.returns, &[]);
        }
        self.out.push_str(" _ ");
        self.params(&signature.params, &[]);
        self.out.push_str(if signature.noreturn { " .noreturn;\n" } else { ";\n" });
    }
}

/// The linking directive, and the blank after it.
fn linkage(linkage: Linkage) -> &'static str {
    match linkage {
        Linkage::Internal => "",
        Linkage::Extern => ".extern ",
        Linkage::Visible => ".visible ",
        Linkage::Weak => ".weak ",
        Linkage::Common => ".common ",
    }
}

/// A constant of that type, as a literal.
fn literal(ty: Ty, bits: u64) -> String {
    match ty.kind() {
        TyKind::Float if ty.bits() == 32 => format!("0f{bits:08X}"),
        TyKind::Float if ty.bits() == 64 => format!("0d{bits:016X}"),
        TyKind::Signed => {
            let unused = 64 - ty.bits().clamp(1, 64);
            format!("{}", (bits << unused).cast_signed() >> unused)
        }
        TyKind::Float | TyKind::Bits | TyKind::Unsigned | TyKind::Pred | TyKind::Opaque => bits.to_string(),
    }
}

/// Variables and functions that a body names.
fn named_by(body: &Body, found: &mut Vec<Symbol>) {
    found.extend(body.call_targets.iter().flatten().map(|id| Symbol::Func(*id)));
    for statement in &body.statements {
        if let Statement::Inst(inst) = statement {
            let mut see = |name| match name {
                Name::Var(id) => found.push(Symbol::Var(id)),
                Name::Func(id) => found.push(Symbol::Func(id)),
                Name::Register(_) => {}
            };
            inst.operands.iter().for_each(|operand| operand.for_each_name(&mut see));
        }
    }
}
