//! Instructions: the row of the table, its availability, and the operands. PTX ISA §4.3.2, §9.
//!
//! Invariant: an instruction whose words are wrong, or whose operands are wrong in number or kind, gives one
//! diagnostic; otherwise each wrong operand gives one.

use super::body::BodyChecker;
use super::constant::Const;
use super::constexpr::{self, SymbolSum, Value};
use super::meant::Wanted;
use super::module::{Guard, Inst, Operand, Statement};
use super::recursion::CallEdge;
use super::rule;
use super::scope::{Entity, Found};
use super::types::Width;
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{self, Body, Match, OperandShape, Ty, Unmet};
use crate::syntax::tree::{self, OperandKind, Reference};

/// An operand of the text, with its expressions evaluated.
#[derive(Clone, Debug)]
pub(super) struct Written<'t> {
    /// Its place.
    pub(super) span: Span,
    /// Its kind.
    pub(super) kind: WrittenKind<'t>,
}

/// The kind of a written operand.
#[derive(Clone, Debug)]
pub(super) enum WrittenKind<'t> {
    /// `_`
    Sink,
    /// A name.
    Name(&'t Reference),
    /// `!p`
    Not(&'t Reference),
    /// `-a`
    Minus(&'t Reference),
    /// A constant.
    Const(Const),
    /// A name plus a constant.
    Sum(SymbolSum),
    /// `{a, b}`
    Vector(Vec<Written<'t>>),
    /// `[a+4]`
    Address(&'t tree::Address),
    /// `[a, b]`
    Brackets(Vec<Written<'t>>),
    /// `a[4]`
    Indexed(&'t tree::Name, &'t tree::Address),
    /// `d|p`
    Pair(Box<Written<'t>>, Box<Written<'t>>),
    /// `(a, b)`
    List(Vec<Written<'t>>),
}

impl Written<'_> {
    /// The shape of the operand, which helps to select a row.
    fn shape(&self, text: &str) -> OperandShape {
        let count = |list: &[Written<'_>]| u8::try_from(list.len()).unwrap_or(u8::MAX);
        let selected = |r: &Reference| r.suffix.is_some_and(|word| word.text(text).len() > 1);
        let name = |r: &Reference| OperandShape { selector: selected(r), ..OperandShape::from(Body::Name) };
        match &self.kind {
            WrittenKind::Sink => Body::Sink.into(),
            WrittenKind::Name(r) => name(r),
            WrittenKind::Not(r) => OperandShape { not: true, ..name(r) },
            WrittenKind::Minus(r) => OperandShape { minus: true, ..name(r) },
            WrittenKind::Const(_) => Body::Imm.into(),
            WrittenKind::Sum(_) => Body::Name.into(),
            WrittenKind::Vector(list) => Body::Vector(count(list)).into(),
            WrittenKind::Address(_) => Body::Address.into(),
            WrittenKind::Brackets(list) => Body::Brackets(count(list)).into(),
            WrittenKind::Indexed(..) => Body::Indexed.into(),
            WrittenKind::Pair(d, _) => match &d.kind {
                WrittenKind::Name(r) => {
                    OperandShape { selector: selected(r), ..OperandShape::from(Body::Pair) }
                }
                WrittenKind::Sink
                | WrittenKind::Not(_)
                | WrittenKind::Minus(_)
                | WrittenKind::Const(_)
                | WrittenKind::Sum(_)
                | WrittenKind::Vector(_)
                | WrittenKind::Address(_)
                | WrittenKind::Brackets(_)
                | WrittenKind::Indexed(..)
                | WrittenKind::Pair(..)
                | WrittenKind::List(_) => Body::Pair.into(),
            },
            WrittenKind::List(list) => Body::List(count(list)).into(),
        }
    }
}

/// The context of an operand.
#[derive(Clone, Copy)]
pub(super) struct Site<'m> {
    /// Row and modifiers.
    pub(super) found: &'m Match,
    /// Mnemonic and modifiers, as written.
    pub(super) opcode: Span,
    /// Whether the instruction has a guard.
    pub(super) guarded: bool,
}

impl<'a> BodyChecker<'_, 'a> {
    /// Checks an instruction. Reuses the memory of the previous instruction's operand lists.
    pub(super) fn instruction(&mut self, instruction: &tree::Instruction) {
        let (mut written, mut shapes) = std::mem::take(&mut self.lists);
        self.instruction_with(instruction, &mut written, &mut shapes);
        written.clear();
        shapes.clear();
        // Collecting an empty iterator keeps the allocation, and drops the lifetime of the old elements.
        let written = written.into_iter().map_while(|_| None).collect();
        self.lists = (written, shapes);
    }

    fn instruction_with<'t>(
        &mut self,
        instruction: &'t tree::Instruction,
        written: &mut Vec<Written<'t>>,
        shapes: &mut Vec<OperandShape>,
    ) {
        let text = self.checker.text;
        self.mistyped.clear();
        self.no_vector = None;
        let guard = instruction.guard.as_ref().map(|guard| self.guard(guard));
        let mut broken = false;
        for operand in &instruction.operands {
            match self.written(operand) {
                Some(operand) => written.push(operand),
                None => broken = true,
            }
        }
        if broken {
            self.words_alone(instruction);
            return;
        }
        self.lenient(instruction, written);
        shapes.extend(written.iter().map(|w| w.shape(text)));
        self.vector_registers(instruction, written, shapes);
        let Some(found) = self.find(instruction, written, shapes) else { return };
        let site = Site { found: &found, opcode: instruction.opcode_span(), guarded: guard.is_some() };
        let form = found.row.form();
        let mut operands = Vec::with_capacity(form.operands.len());
        let mut complete = true;
        for (index, operand_form) in form.operands.iter().enumerate() {
            let operand = match found.binding.written(index).and_then(|i| written.get(i)) {
                None => Some(Operand::Absent),
                Some(written) => self.operand(&site, operand_form, written),
            };
            match operand {
                Some(operand) => operands.push(operand),
                None => complete = false,
            }
        }
        if !complete || matches!(guard, Some(None)) {
            return;
        }
        let span = Span::new(instruction.mnemonic.span.start, instruction.span.end);
        let mut inst = Inst { row: found.row, mods: found.mods, guard: guard.flatten(), operands, span };
        if rule::operands(self, &site, &mut inst, written) {
            self.watch(&inst, site.opcode);
            super::suspicion::instruction(self, &site, &inst);
            self.body.statements.push(Statement::Inst(inst));
        }
    }

    /// Treats the name of a vector register as a vector where vectors and single values select different
    /// rows: packing and unpacking `mov` (§9.7.8.3), and texel offsets next to a depth reference (§9.7.9.3).
    fn vector_registers(
        &self,
        instruction: &tree::Instruction,
        written: &[Written<'_>],
        shapes: &mut [OperandShape],
    ) {
        let text = self.checker.text;
        let first = match (instruction.mnemonic.text(text), &*instruction.modifiers) {
            ("mov", [ty]) if matches!(ty.text(text), "b16" | "b32" | "b64") => 0,
            ("tex" | "tld4", _) => 2,
            ("cp", _) => return self.predicates(written, shapes),
            _ => return,
        };
        for (operand, shape) in written.iter().zip(shapes).skip(first) {
            let WrittenKind::Name(reference) = &operand.kind else { continue };
            if reference.suffix.is_none()
                && let Some(n @ 2..) = self.vector_register_lanes(reference.name)
            {
                shape.body = Body::Vector(n);
            }
        }
    }

    /// Treats the names of predicates as predicates where this selects a row.
    fn predicates(&self, written: &[Written<'_>], shapes: &mut [OperandShape]) {
        for (operand, shape) in written.iter().zip(shapes) {
            let (WrittenKind::Name(reference) | WrittenKind::Not(reference)) = &operand.kind else {
                continue;
            };
            let ty = match self.checker.scopes.find(reference.name.text(self.checker.text)) {
                Some(Found::Entity(Entity::Register(id), _)) => Some(self.register(id).ty),
                Some(Found::Member(family, _)) => Some(family.ty),
                Some(Found::Entity(..)) | None => None,
            };
            if ty == Some(Ty::Pred) {
                *shape = Body::Predicate.into();
            }
        }
    }

    /// The number of elements of the register with that name, if it exists.
    fn vector_register_lanes(&self, name: tree::Name) -> Option<u8> {
        match self.checker.scopes.find(name.text(self.checker.text))? {
            Found::Entity(Entity::Register(id), _) => Some(self.register(id).vector),
            Found::Member(family, _) => Some(family.vector),
            Found::Entity(..) => None,
        }
    }

    /// The modifiers, with a bank included in its word: `const[2]`.
    fn words(&mut self, instruction: &tree::Instruction) -> Option<Vec<std::borrow::Cow<'a, str>>> {
        let text = self.checker.text;
        let mut words: Vec<std::borrow::Cow<'a, str>> =
            instruction.modifiers.iter().map(|word| word.text(text).into()).collect();
        if let Some(bank) = &instruction.bank {
            let value = constexpr::integer(bank, "the bank", text, &mut self.checker.report)?;
            let number = value.wide()?;
            if !(0..=10).contains(&number) {
                self.checker.report.push(
                    Diagnostic::new(
                        Code::ImmediateOutOfRange,
                        bank.span,
                        format!("there is no constant bank {number}"),
                    )
                    .with_help("banks are 0 to 10")
                    .with_section("5.1.3.1"),
                );
                return None;
            }
            if let Some(word) = words.iter_mut().find(|word| word.as_ref() == "const") {
                *word = format!("const[{number}]").into();
            }
        }
        Some(words)
    }

    /// Finds the row, and checks its version, target and modifiers. The result is cached by opcode text and
    /// operand shapes.
    fn find(
        &mut self,
        instruction: &tree::Instruction,
        written: &[Written<'_>],
        shapes: &[OperandShape],
    ) -> Option<Match> {
        let text = self.checker.text;
        let key = shape_key(shapes).filter(|_| instruction.bank.is_none());
        let opcode = instruction.opcode_span().text(text);
        if let Some(key) = key
            && let Some(found) = self.checker.selected.get(&(opcode, key))
        {
            return Some(*found);
        }
        if self.checker.report.is_full() {
            return None;
        }
        let words = self.words(instruction)?;
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        let reported = self.checker.report.len();
        match isa::select(instruction.mnemonic.text(text), &words, shapes) {
            Err(mismatch) => {
                self.mismatch(instruction, written, &mismatch);
                None
            }
            Ok(found) => {
                if !self.requirements(instruction, &found, shapes) {
                    return None;
                }
                if let Some(order) = found.reordered(&words) {
                    self.order(instruction, &found, &order);
                }
                // Each instruction with a warning is reported.
                if let Some(key) = key
                    && self.checker.report.len() == reported
                {
                    self.checker.selected.insert((opcode, key), found);
                }
                Some(found)
            }
        }
    }

    /// ptxas accepts modifiers in any order; the manual's forms have a fixed order.
    fn order(&mut self, instruction: &tree::Instruction, found: &Match, order: &str) {
        let mnemonic = instruction.mnemonic.text(self.checker.text);
        let name = instruction.opcode_span().text(self.checker.text);
        self.checker.report.push(
            Diagnostic::new(
                Code::NonStandard,
                instruction.opcode_span(),
                format!("the modifiers of `{name}` are in another order than in the manual"),
            )
            .with_help(format!("`{mnemonic}{order}`"))
            .with_section(found.row.row().section),
        );
    }

    /// For an instruction with wrong operands: reports at least an unknown opcode.
    fn words_alone(&mut self, instruction: &tree::Instruction) {
        if self.checker.report.is_full() {
            return;
        }
        let Some(words) = self.words(instruction) else { return };
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        let mnemonic = instruction.mnemonic.text(self.checker.text);
        let candidates = isa::match_mods(mnemonic, &words);
        if !candidates.is_empty() || !isa::match_any_order(mnemonic, &words).is_empty() {
            return;
        }
        if let Err(mismatch) = isa::select(mnemonic, &words, &[]) {
            self.mismatch(instruction, &[], &mismatch);
        }
    }

    /// Checks versions, targets, and rules about the modifiers.
    fn requirements(
        &mut self,
        instruction: &tree::Instruction,
        found: &Match,
        shapes: &[OperandShape],
    ) -> bool {
        let section = Some(found.row.row().section);
        if let Some(((requirement, unmet), level)) = self.checker.unmet(|level| found.unmet(shapes, level)) {
            if self.earlier_than_manual(instruction, found, unmet, level) {
                return true;
            }
            let span = self.requirement_span(instruction, found, &requirement.what);
            let what = match unmet {
                Unmet::Ptx(_) | Unmet::Sm(_) | Unmet::PtxAndSm(..) | Unmet::Below(_) | Unmet::Removed(..) => {
                    if requirement.what.contains('`') {
                        requirement.what
                    } else {
                        format!("`{}`", requirement.what)
                    }
                }
            };
            let help = matches!(unmet, Unmet::Removed(..)).then(|| self.instead(found));
            self.checker.unmet_diagnostic(&what, unmet, level, span, section, help);
            return false;
        }
        let opcode = instruction.opcode_span();
        // Modifiers that a row excludes may form a later instruction.
        if found.mods_error().is_some()
            && let Some(later) = self.later_form(instruction, shapes)
            && self.later(instruction, later)
        {
            return false;
        }
        let error = match (found.mods_error(), found.operands_error(shapes)) {
            (Some(error), _) => {
                let name = opcode.text(self.checker.text);
                Diagnostic::new(Code::BadModifierUse, opcode, format!("`{name}` does not exist: {error}"))
            }
            (None, Some(error)) => Diagnostic::new(Code::WrongOperandKind, opcode, error),
            (None, None) => return true,
        };
        let mut error = error;
        error.section = section;
        self.checker.report.push(error);
        false
    }

    /// The replacement of a removed form.
    fn instead(&self, found: &Match) -> String {
        if let Some(old) = found.deprecation() {
            return format!("{} replaces it", old.instead);
        }
        let level = self.checker.header.level();
        let open = |row: &&isa::RowId| {
            let same = row.row().section == found.row.row().section;
            same && level.is_none_or(|level| row.form().gate.unmet(level).is_none())
        };
        let rows = isa::rows_of(found.row.form().mnemonic).iter();
        isa::forms(&rows.filter(open).copied().collect::<Vec<_>>())
    }

    /// The place of a requirement: its word, or the opcode.
    fn requirement_span(&self, instruction: &tree::Instruction, found: &Match, what: &str) -> Span {
        if let Some(word) = what.strip_prefix('.') {
            let place = instruction.modifiers.iter().find(|m| m.text(self.checker.text) == word);
            if let Some(place) = place {
                return place.span;
            }
        }
        for (index, operand) in found.row.form().operands.iter().enumerate() {
            if what.ends_with(&format!("operand `{}`", operand.name))
                && let Some(place) = found.binding.written(index).and_then(|i| instruction.operands.get(i))
            {
                return place.span;
            }
        }
        instruction.opcode_span()
    }

    /// `@p`: `None` after an error.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    fn guard(&mut self, guard: &tree::Guard) -> Option<Guard> {
        let text = self.checker.text;
        let name = guard.name.span.text(text);
        let special = self.special(&guard.name).is_some();
        let error = match if special {
            None
        } else {
            Some(self.resolve_as(guard.name.name, Wanted::Register(Ty::Pred, Width::Equal))?)
        } {
            None => format!("`{name}` is a special register; a guard is a `.pred` register"),
            Some(Entity::Register(id)) => {
                let register = self.register(id);
                match (register.ty, guard.name.suffix) {
                    (Ty::Pred, None) => return Some(Guard { register: id, negated: guard.negated }),
                    (Ty::Pred, Some(_)) => format!("`{name}`: a predicate has no elements"),
                    (ty, _) => format!("`{name}` has type `.{}`; a guard is a `.pred` register", ty.name()),
                }
            }
            Some(other) => format!("`{name}` is {}; a guard is a `.pred` register", other.noun()),
        };
        self.checker.report.push(
            Diagnostic::new(Code::BadGuard, guard.name.span, error)
                .with_help("`setp.ne.b32 p, r, 0;` makes a predicate of a value")
                .with_section("9.3"),
        );
        None
    }

    /// Evaluates the expressions of an operand; `None` after an error.
    fn written<'t>(&mut self, operand: &'t tree::Operand) -> Option<Written<'t>> {
        let kind = match &operand.kind {
            OperandKind::Sink => WrittenKind::Sink,
            OperandKind::Name(reference) => WrittenKind::Name(reference),
            OperandKind::Not(reference) => WrittenKind::Not(reference),
            OperandKind::Minus(reference) => WrittenKind::Minus(reference),
            OperandKind::Expr(expr) => {
                match constexpr::evaluate(expr, self.checker.text, &mut self.checker.report)? {
                    Value::Const(value) => WrittenKind::Const(value),
                    Value::Symbol(sum) => WrittenKind::Sum(sum),
                }
            }
            OperandKind::Vector(list) => WrittenKind::Vector(self.written_list(list)?),
            OperandKind::Address(address) => WrittenKind::Address(address),
            OperandKind::AddressList(list) => WrittenKind::Brackets(self.written_list(list)?),
            OperandKind::Indexed { array, index } => WrittenKind::Indexed(array, index),
            OperandKind::Pair(d, p) => {
                let (d, p) = (self.written(d), self.written(p));
                WrittenKind::Pair(Box::new(d?), Box::new(p?))
            }
            OperandKind::Parameters(list) => WrittenKind::List(self.written_list(list)?),
            OperandKind::Error => return None,
        };
        Some(Written { span: operand.span, kind })
    }

    fn written_list<'t>(&mut self, list: &'t [tree::Operand]) -> Option<Vec<Written<'t>>> {
        let all: Vec<Option<Written<'t>>> = list.iter().map(|operand| self.written(operand)).collect();
        all.into_iter().collect()
    }

    /// Passes the instruction to the check of call sequences.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    fn watch(&mut self, inst: &Inst, span: Span) {
        use super::module::{AddressBase, LocalRole};
        let call_param = |operand: &Operand, body: &super::module::Body| match operand {
            Operand::Address(address) => match address.base {
                AddressBase::Local(id) if body.locals[id.0 as usize].role == LocalRole::CallParam => Some(id),
                AddressBase::Local(_)
                | AddressBase::Absolute
                | AddressBase::Register(_)
                | AddressBase::Var(_)
                | AddressBase::Func(_) => None,
            },
            _ => None,
        };
        #[allow(clippy::wildcard_enum_match_arm, reason = "all other instructions go straight on")]
        match inst.row.row().op {
            isa::Op::Bra | isa::Op::BrxIdx | isa::Op::Ret | isa::Op::Exit => self.sequence.branch(),
            isa::Op::Ld => {
                let local = inst.operands.get(1).and_then(|o| call_param(o, &self.body));
                if let Some(local) = local {
                    self.sequence.load(local, span);
                }
            }
            isa::Op::St => {
                let local = inst.operands.first().and_then(|o| call_param(o, &self.body));
                if let Some(local) = local {
                    self.sequence.store(local, span);
                }
            }
            isa::Op::Call | isa::Op::CallIndirect => {
                for operand in &inst.operands {
                    if let Operand::Function(callee) = operand {
                        let caller = self.function;
                        self.checker.calls.push(CallEdge { caller, callee: *callee, span });
                    }
                }
                let (results, arguments) = rule::call_locals(inst);
                self.sequence.call(&arguments, &results, span);
            }
            _ => {}
        }
    }
}

/// The shapes of up to eight operands in one number; `None` for more.
fn shape_key(shapes: &[OperandShape]) -> Option<u128> {
    if shapes.len() > 8 {
        return None;
    }
    let mut key = 0u128;
    for shape in shapes {
        let (tag, n) = match shape.body {
            Body::Name => (1u128, 0),
            Body::Imm => (2, 0),
            Body::Vector(n) => (3, n),
            Body::Address => (4, 0),
            Body::Indexed => (5, 0),
            Body::Brackets(n) => (6, n),
            Body::Pair => (7, 0),
            Body::List(n) => (8, n),
            Body::Sink => (9, 0),
            Body::Predicate => (10, 0),
        };
        let flags = u128::from(shape.not) | u128::from(shape.minus) << 1 | u128::from(shape.selector) << 2;
        key = key << 16 | tag << 11 | u128::from(n) << 3 | flags;
    }
    Some(key)
}
