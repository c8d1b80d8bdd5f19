//! Bodies: scopes, labels, declarations and statements. PTX ISA §4.3, §4.4, §5.1, §11.3.
//!
//! Invariant: every statement of the text is in the [`Body`] in order, with blocks flattened. Labels are
//! known before the statements of their block are checked, other names from their declaration on.

use super::checker::Checker;
use super::constexpr;
use super::declare::{MOST_EXPANDED, Place, new_local, new_register};
use super::inst::Written;
use super::meant::Wanted;
use super::module::{
    AddressBase, Body, FuncId, FunctionKind, LabelId, LocalId, LocalRole, LocalVar, Param, ProtoId, Register,
    RegisterId, Signature, Statement, Storage, VarId,
};
use super::names::NameMut;
use super::parameter::{Names, difference};
use super::scope::{Entity, Found};
use super::sequence::Sequence;
use super::shape::Shape;
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{OperandShape, Space, Ty, Version};
use crate::syntax::tree::{self, Name, Reference};
use crate::syntax::{Parser, Piece};
use std::collections::{HashMap, HashSet};

/// The state of checking one body.
pub(super) struct BodyChecker<'c, 'a> {
    pub(super) checker: &'c mut Checker<'a>,
    pub(super) function: FuncId,
    pub(super) kind: FunctionKind,
    pub(super) body: Body,
    pub(super) signature: Signature,
    pub(super) sequence: Sequence,
    /// Textures and samplers that the body uses.
    pub(super) opaque: Vec<(Ty, AddressBase)>,
    /// Arrays of functions used in calls, with their lists of targets.
    pub(super) tables: HashMap<VarId, u32>,
    /// For the current instruction: expected type, found type, and the diagnostic that reports the mismatch.
    pub(super) mistyped: Vec<(Ty, Ty, usize)>,
    /// The diagnostic which reports that the current instruction needs a vector.
    pub(super) no_vector: Option<usize>,
    /// Reusable lists for the operands of an instruction and their shapes.
    pub(super) lists: (Vec<Written<'static>>, Vec<OperandShape>),
    /// Registers and variables of module scope that this body uses.
    module_registers: HashMap<u32, RegisterId>,
    module_locals: HashMap<u32, LocalId>,
    /// For each list of branch targets with labels that do not exist, these labels; empty once reported.
    missing_labels: Vec<Vec<(String, Span)>>,
}

impl<'c, 'a> BodyChecker<'c, 'a> {
    /// Starts with the formal parameters.
    pub(super) fn new(
        checker: &'c mut Checker<'a>,
        function: FuncId,
        kind: FunctionKind,
        body: Body,
        signature: Signature,
    ) -> Self {
        Self {
            checker,
            function,
            kind,
            body,
            signature,
            sequence: Sequence::default(),
            opaque: Vec::new(),
            tables: HashMap::new(),
            mistyped: Vec::new(),
            no_vector: None,
            lists: (Vec::new(), Vec::new()),
            module_registers: HashMap::new(),
            module_locals: HashMap::new(),
            missing_labels: Vec::new(),
        }
    }

    fn finish(mut self, end: Span) -> (Signature, Body) {
        self.body.end = end;
        self.unused_lists();
        let sequence = std::mem::take(&mut self.sequence);
        sequence.report(&self.body, &mut self.checker.report);
        // After an error, an instruction that reads a register may be missing.
        if self.checker.report.errors() == 0 {
            super::suspicion::unused_results(&self.body, &mut self.checker.report);
        }
        self.order_shared();
        (self.signature, self.body)
    }

    /// Parses and checks the next body in the current scope. Returns the signature (with the parameters that
    /// old kernels declare in their bodies) and the body. Each statement is checked as soon as it is parsed,
    /// so that no tree of the whole body is needed.
    pub(super) fn check(mut self, parser: &mut Parser<'_>) -> (Signature, Body) {
        let labels = parser.labels_ahead();
        let outermost = self.checker.scopes.depth();
        self.labels_of(&labels, parser.span().start);
        parser.begin_body();
        while let Some(piece) = parser.piece() {
            self.checker.report.parsed(parser);
            match piece {
                Piece::Open(brace) => {
                    self.checker.scopes.open();
                    self.labels_of(&labels, brace.start);
                }
                Piece::Close if self.checker.scopes.depth() > outermost => self.checker.scopes.close(),
                Piece::Close => {}
                Piece::Statement(tree::Statement::Instruction(instruction)) => {
                    self.instruction(&instruction);
                    parser.reuse(instruction);
                }
                Piece::Statement(statement) => self.statement(&statement),
            }
        }
        let last = parser.previous();
        self.finish(Span::new(last.end.saturating_sub(1).max(last.start), last.end))
    }

    fn statement(&mut self, statement: &tree::Statement) {
        match statement {
            // The parser returns a block in parts, and instructions are handled above.
            tree::Statement::Block(_) | tree::Statement::Instruction(_) => {}
            tree::Statement::Label(name) => self.label(*name),
            tree::Statement::Variable(variable) => self.variable(variable),
            tree::Statement::Loc(loc) => {
                if let Some(loc) = self.checker.loc(loc) {
                    self.body.statements.push(Statement::Loc(loc));
                }
            }
            tree::Statement::Pragma(pragma) => self.checker.pragma(&pragma.strings),
            tree::Statement::Target(target) => self.checker.target_in_body(target),
            tree::Statement::CallPrototype(prototype) => self.call_prototype(prototype),
            tree::Statement::CallTargets(targets) => self.call_targets(targets),
            tree::Statement::BranchTargets(targets) => self.branch_targets(targets),
            tree::Statement::Error(span) => self.checker.broken_names_of(*span),
        }
    }

    /// Declares the labels of the block whose `{` is at `brace`, so that branches can go forward.
    fn labels_of(&mut self, labels: &[(u32, Name)], brace: u32) {
        let first = labels.partition_point(|(block, _)| *block < brace);
        for (_, name) in labels[first..].iter().take_while(|(block, _)| *block == brace) {
            let text = name.text(self.checker.text);
            let id = LabelId(self.body.labels.len() as u32);
            match self.checker.scopes.declare(text, Entity::Label(id), name.span) {
                Ok(()) => {
                    self.checker.reserved(*name);
                    self.body.labels.push((text.to_owned(), name.span));
                }
                Err(earlier) => self.checker.report.push(
                    Diagnostic::new(
                        Code::DuplicateLabel,
                        name.span,
                        format!("the label `{text}` is defined twice"),
                    )
                    .with_related(earlier, "first defined here")
                    .with_section("4.3"),
                ),
            }
        }
    }

    fn label(&mut self, name: Name) {
        let text = name.text(self.checker.text);
        if let Some(Found::Entity(Entity::Label(id), span)) = self.checker.scopes.find(text)
            && span == name.span
        {
            self.sequence.label(id);
            self.body.statements.push(Statement::Label(id));
        }
    }

    fn variable(&mut self, variable: &tree::Variable) {
        let space = variable.specifiers.space;
        match space.value {
            Space::Reg => {
                let registers = &mut self.body.registers;
                self.checker.registers(variable, |name, shape| new_register(registers, name, shape));
            }
            Space::Local => {
                let locals = &mut self.body.locals;
                let new = |name: &str, shape: &Shape| {
                    new_local(locals, name, shape, Space::Local, LocalRole::Local)
                };
                self.checker.locals(variable, self.function, new);
            }
            Space::Param => self.param_variable(variable),
            Space::Global | Space::Const | Space::Shared => {
                self.checker.static_variable(variable, Place::Body(self.function));
            }
            Space::Tex | Space::Sreg | Space::Generic => {
                self.checker.report.push(
                    Diagnostic::new(
                        Code::BadDeclaration,
                        space.span,
                        format!("a `.{}` variable cannot be declared in a function", space.value.name()),
                    )
                    .with_section("5.1"),
                );
                self.checker.declare_broken(variable);
            }
        }
    }

    /// A `.param` in a body: a byte array for a call, or (before PTX 1.4) a parameter of the kernel.
    fn param_variable(&mut self, variable: &tree::Variable) {
        let formal = self.kind == FunctionKind::Entry && !self.checker.at_least(Version::new(1, 4));
        if !formal {
            let span = variable.specifiers.space.span;
            self.checker.needs(span, "a `.param` variable in a body", Version::new(2, 0), 20, "5.1.6");
        }
        let (locals, params) = (&mut self.body.locals, &mut self.signature.params);
        let span = variable.span;
        let new = |name: &str, shape: &Shape| {
            let role =
                if formal { LocalRole::KernelParam(params.len() as u32) } else { LocalRole::CallParam };
            let id = new_local(locals, name, shape, Space::Param, role);
            if formal {
                params.push(Param {
                    name: name.to_owned(),
                    space: Space::Param,
                    ty: shape.ty,
                    vector: shape.vector,
                    dims: shape.dims.clone(),
                    bytes: shape.bytes,
                    align: shape.align,
                    ptr: None,
                    storage: Some(Storage::Local(id)),
                    span,
                });
            }
            id
        };
        self.checker.locals(variable, self.function, new);
    }

    /// The meaning of a name; `None` after a diagnostic.
    pub(super) fn resolve(&mut self, name: Name) -> Option<Entity> {
        self.resolve_as(name, Wanted::Value)
    }

    /// As [`Self::resolve`], where only some kinds of names are allowed: suggestions for an undeclared name
    /// are of these kinds.
    pub(super) fn resolve_as(&mut self, name: Name, wanted: Wanted) -> Option<Entity> {
        let text = name.text(self.checker.text);
        match self.checker.scopes.find(text) {
            Some(Found::Entity(Entity::Broken, _)) => None,
            Some(Found::Entity(Entity::ModuleRegister(index), _)) => self.module_register(index),
            Some(Found::Entity(Entity::ModuleLocal(index), _)) => self.module_local(index),
            Some(Found::Entity(entity, _)) => Some(entity),
            Some(Found::Member(family, depth)) => {
                let id = RegisterId(self.body.registers.len() as u32);
                self.body.registers.push(Register {
                    name: text.to_owned(),
                    ty: family.ty,
                    vector: family.vector,
                });
                self.checker.scopes.add_member(text, id, depth, family.span);
                Some(Entity::Register(id))
            }
            None => {
                self.checker.undeclared(name, wanted, &self.body.registers);
                None
            }
        }
    }

    /// Type and vector size of the register of this body with that name, without diagnostics.
    #[allow(clippy::wildcard_enum_match_arm, reason = "nothing else is a register of the body")]
    pub(super) fn register_type(&self, reference: &Reference) -> Option<(Ty, u8)> {
        match self.checker.scopes.find(reference.name.text(self.checker.text))? {
            Found::Entity(Entity::Register(id), _) => {
                let register = self.register(id);
                Some((register.ty, register.vector))
            }
            Found::Member(family, _) => Some((family.ty, family.vector)),
            Found::Entity(..) => None,
        }
    }

    /// Adds a register of module scope to the registers of the body.
    fn module_register(&mut self, index: u32) -> Option<Entity> {
        if let Some(id) = self.module_registers.get(&index) {
            return Some(Entity::Register(*id));
        }
        let register = self.checker.registers.get(index as usize)?.clone();
        let id = RegisterId(self.body.registers.len() as u32);
        self.body.registers.push(register);
        self.body.shared.push((id, index));
        self.module_registers.insert(index, id);
        Some(Entity::Register(id))
    }

    fn module_local(&mut self, index: u32) -> Option<Entity> {
        if let Some(id) = self.module_locals.get(&index) {
            return Some(Entity::Local(*id));
        }
        let local = self.checker.locals.get(index as usize)?.clone();
        let id = LocalId(self.body.locals.len() as u32);
        self.body.locals.push(local);
        self.module_locals.insert(index, id);
        Some(Entity::Local(id))
    }

    /// Moves entities of module scope to the end of their lists.
    fn order_shared(&mut self) {
        if self.module_registers.is_empty() && self.module_locals.is_empty() {
            return;
        }
        let shared: HashSet<RegisterId> = self.body.shared.iter().map(|(id, _)| *id).collect();
        let last = |id: u32| shared.contains(&RegisterId(id));
        let registers = moved(&mut self.body.registers, last);
        let roles: Vec<LocalRole> = self.body.locals.iter().map(|local| local.role).collect();
        let last = |id: u32| matches!(roles.get(id as usize), Some(LocalRole::Shared(_)));
        let locals = moved(&mut self.body.locals, last);
        let register = |id: RegisterId| RegisterId(registers.get(id.0 as usize).copied().unwrap_or(id.0));
        let local = |id: LocalId| LocalId(locals.get(id.0 as usize).copied().unwrap_or(id.0));
        self.body.shared.iter_mut().for_each(|(id, _)| *id = register(*id));
        for statement in &mut self.body.statements {
            let Statement::Inst(inst) = statement else { continue };
            for operand in &mut inst.operands {
                operand.for_each_name_mut(&mut |name| match name {
                    NameMut::Register(id) => *id = register(*id),
                    NameMut::Local(id) => *id = local(*id),
                    NameMut::Var(_) | NameMut::Func(_) | NameMut::Prototype(_) => {}
                });
            }
            if let Some(guard) = &mut inst.guard {
                guard.register = register(guard.register);
            }
        }
        for param in self.signature.params.iter_mut().chain(&mut self.signature.returns) {
            match &mut param.storage {
                Some(Storage::Register(id)) => *id = register(*id),
                Some(Storage::Local(id)) => *id = local(*id),
                None => {}
            }
        }
    }

    /// A register of the body.
    pub(super) fn register(&self, id: RegisterId) -> &Register {
        &self.body.registers[id.0 as usize]
    }

    /// A `.local` or `.param` variable.
    pub(super) fn local(&self, id: LocalId) -> &LocalVar {
        &self.body.locals[id.0 as usize]
    }

    /// `name: .callprototype ...`. PTX ISA §11.3.3.
    fn call_prototype(&mut self, prototype: &tree::CallPrototype) {
        let checker = &mut *self.checker;
        checker.needs(prototype.span, "`.callprototype`", Version::new(2, 1), 20, "11.3.3");
        let mut noreturn = false;
        for directive in &prototype.directives {
            if matches!(directive.kind, tree::FunctionDirectiveKind::NoReturn) {
                noreturn = true;
                checker.needs(directive.span, "`.noreturn`", Version::new(6, 4), 30, "11.3.3");
                if !prototype.returns.is_empty() {
                    checker.report.push(
                        Diagnostic::new(
                            Code::ConflictingDirectives,
                            directive.span,
                            "a prototype with a return parameter cannot be `.noreturn`",
                        )
                        .with_section("11.3.3"),
                    );
                }
            }
        }
        let returns = checker.returned(&prototype.returns);
        let params = checker.params(&prototype.parameters, FunctionKind::Func, Names::Ignored);
        let entity = match (returns, params) {
            (Some(returns), Some(params)) => {
                let id = ProtoId(checker.prototypes.len() as u32);
                checker.prototypes.push(Signature { returns, params, noreturn });
                Entity::Prototype(id)
            }
            (None, _) | (_, None) => Entity::Broken,
        };
        checker.declare(prototype.label, entity);
    }

    /// `name: .calltargets f, g;`. PTX ISA §11.3.2.
    fn call_targets(&mut self, targets: &tree::CallTargets) {
        self.checker.needs(targets.span, "`.calltargets`", Version::new(2, 1), 20, "11.3.2");
        let mut list: Vec<FuncId> = Vec::new();
        let mut seen: HashSet<FuncId> = HashSet::new();
        let mut broken = false;
        for name in &targets.targets {
            let Some(id) = self.call_target(*name) else {
                broken = true;
                continue;
            };
            if let Some(first) = list.first().filter(|_| seen.insert(id)) {
                let functions = &self.checker.functions;
                let (a, b) = (&functions[first.0 as usize], &functions[id.0 as usize]);
                if let Some(difference) = difference(&a.signature, &b.signature) {
                    broken = true;
                    let message = format!(
                        "`{}` and `{}` differ, and cannot be in one list: {difference}",
                        a.name, b.name
                    );
                    let place = a.span;
                    self.checker.report.push(
                        Diagnostic::new(Code::SignatureMismatch, name.span, message)
                            .with_related(place, "the first of the list")
                            .with_section("11.3.2"),
                    );
                    continue;
                }
            }
            list.push(id);
        }
        let entity = if broken {
            Entity::Broken
        } else {
            self.body.call_targets.push(list);
            Entity::CallTargets(self.body.call_targets.len() as u32 - 1)
        };
        self.checker.declare(targets.label, entity);
    }

    fn call_target(&mut self, name: Name) -> Option<FuncId> {
        let text = name.text(self.checker.text);
        let entity = match self.checker.scopes.find(text) {
            None => {
                self.checker.undeclared_function(name);
                return None;
            }
            Some(Found::Entity(Entity::Broken, _)) => return None,
            Some(Found::Entity(Entity::Func(id), _)) => {
                if self.checker.functions[id.0 as usize].kind == FunctionKind::Func {
                    return Some(id);
                }
                "a kernel"
            }
            Some(Found::Entity(entity, _)) => entity.noun(),
            Some(Found::Member(..)) => "a register",
        };
        self.checker.report.push(
            Diagnostic::new(
                Code::BadCallTarget,
                name.span,
                format!("`{text}` is {entity}, which cannot be called"),
            )
            .with_section("11.3.2"),
        );
        None
    }

    /// `name: .branchtargets L1, L<4>;`. PTX ISA §11.3.1. ptxas accepts a list without a name, and labels
    /// that do not exist as long as nothing branches through the list.
    fn branch_targets(&mut self, targets: &tree::BranchTargets) {
        let checker = &mut *self.checker;
        checker.needs(targets.span, "`.branchtargets`", Version::new(2, 1), 20, "11.3.1");
        if !checker.at_least(Version::new(6, 0)) {
            checker.report.push(
                Diagnostic::new(
                    Code::NotPortable,
                    targets.label.map_or(targets.span, |label| label.span),
                    "`.branchtargets` is legal, but ptxas accepts it from PTX 6.0 on",
                )
                .with_section("11.3.1"),
            );
        }
        let errors = checker.report.errors();
        let mut list: Vec<LabelId> = Vec::new();
        let mut missing: Vec<(String, Span)> = Vec::new();
        for target in &targets.targets {
            let text = target.name.text(checker.text);
            let Some(count) = &target.count else {
                match find_label(checker, text, target.name.span) {
                    Label::Found(id) => list.push(id),
                    Label::Missing => missing.push((text.to_owned(), target.name.span)),
                    Label::Reported => {}
                }
                continue;
            };
            let number = constexpr::integer(count, "the number of labels", checker.text, &mut checker.report);
            let Some(number) = number.and_then(|v| v.wide()) else { continue };
            let Some(number) = u64::try_from(number).ok().filter(|n| (1..=MOST_EXPANDED).contains(n)) else {
                checker.report.push(
                    Diagnostic::new(
                        Code::BadBranchTargets,
                        count.span,
                        format!("a list cannot hold {number} labels"),
                    )
                    .with_section("11.3.1"),
                );
                continue;
            };
            checker.expanded = checker.expanded.saturating_add(number);
            if checker.expanded > MOST_EXPANDED {
                checker.too_many_names(target.span);
                continue;
            }
            for index in 0..number {
                // The first missing label ends the list.
                let text = format!("{text}{index}");
                match find_label(checker, &text, target.span) {
                    Label::Found(id) => list.push(id),
                    Label::Missing => {
                        missing.push((text, target.span));
                        break;
                    }
                    Label::Reported => break,
                }
            }
        }
        let entity = if checker.report.errors() > errors {
            missing.iter().for_each(|(name, span)| checker.undefined_label(name, *span));
            Entity::Broken
        } else if missing.is_empty() {
            self.body.branch_targets.push(list);
            Entity::BranchTargets(self.body.branch_targets.len() as u32 - 1)
        } else {
            self.missing_labels.push(missing);
            Entity::UnusableTargets(self.missing_labels.len() as u32 - 1)
        };
        if let Some(label) = targets.label {
            checker.declare(label, entity);
        }
    }

    /// Reports the missing labels of the list that an instruction branches through.
    pub(super) fn require_labels(&mut self, list: u32) {
        let missing = self.missing_labels.get_mut(list as usize).map(std::mem::take);
        for (name, span) in missing.unwrap_or_default() {
            self.checker.undefined_label(&name, span);
        }
    }

    /// Warns of missing labels in lists that no instruction branches through.
    fn unused_lists(&mut self) {
        for (name, span) in std::mem::take(&mut self.missing_labels).into_iter().flatten() {
            self.checker.report.push(
                Diagnostic::new(Code::NonStandard, span, format!("`{name}` is not a label in scope"))
                    .with_label("has no effect, because no `brx.idx` uses the list")
                    .with_section("11.3.1"),
            );
        }
    }
}

/// The result of looking up a label.
enum Label {
    Found(LabelId),
    Missing,
    /// The name is no label, which was reported.
    Reported,
}

/// The label with that name.
fn find_label(checker: &mut Checker<'_>, text: &str, span: Span) -> Label {
    match checker.scopes.find(text) {
        Some(Found::Entity(Entity::Label(id), _)) => return Label::Found(id),
        Some(Found::Entity(Entity::Broken, _)) => {}
        Some(Found::Entity(entity, place)) => checker.report.push(
            Diagnostic::new(
                Code::BadBranchTargets,
                span,
                format!("`{text}` is {}, not a label", entity.noun()),
            )
            .with_related(place, "declared here")
            .with_section("11.3.1"),
        ),
        Some(Found::Member(..)) => checker.report.push(
            Diagnostic::new(Code::BadBranchTargets, span, format!("`{text}` is a register, not a label"))
                .with_section("11.3.1"),
        ),
        None => return Label::Missing,
    }
    Label::Reported
}

/// Moves some elements to the end of a list, and returns the new index of each element.
fn moved<T>(list: &mut Vec<T>, last: impl Fn(u32) -> bool) -> Vec<u32> {
    let first = (0..list.len() as u32).filter(|id| !last(*id)).count() as u32;
    let (mut front, mut back) = (0, first);
    let number = |id: u32| {
        let next = if last(id) { &mut back } else { &mut front };
        *next += 1;
        *next - 1
    };
    let numbers: Vec<u32> = (0..list.len() as u32).map(number).collect();
    let mut numbered: Vec<(u32, T)> = numbers.iter().copied().zip(list.drain(..)).collect();
    numbered.sort_by_key(|(number, _)| *number);
    list.extend(numbered.into_iter().map(|(_, item)| item));
    numbers
}
