//! Operands: their kind, type and width compared with the row. PTX ISA §6, §9.4.
//!
//! Invariant: later stages can use a checked operand without the text; constants are bits of the operand's
//! type. Each wrong operand gives one diagnostic, at its place.

use super::body::BodyChecker;
use super::constant::Const;
use super::immediate;
use super::inst::{Site, Written, WrittenKind};
use super::meant::Wanted;
use super::module::{AddressSize, Operand, RegisterId};
use super::scope::Entity;
use super::types::{Width, accepts};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::form::{Kind, TypeOf, Value};
use crate::isa::{Dir, Gate, Op, OperandForm, Slot, Sreg, Ty, TyKind};
use crate::syntax::tree::Reference;

impl BodyChecker<'_, '_> {
    /// Checks one operand; `None` after an error.
    pub(super) fn operand(
        &mut self,
        site: &Site<'_>,
        form: &OperandForm,
        written: &Written<'_>,
    ) -> Option<Operand> {
        if let (Some((second, _)), WrittenKind::Pair(d, p)) = (&form.second, &written.kind) {
            let (d, p) = (self.single(site, form, d), self.single(site, second, p));
            return Some(Operand::Pair(Box::new(d?), Box::new(p?)));
        }
        self.single(site, form, written)
    }

    /// An operand other than a pair.
    pub(super) fn single(
        &mut self,
        site: &Site<'_>,
        form: &OperandForm,
        written: &Written<'_>,
    ) -> Option<Operand> {
        match form.kind {
            Kind::Value(value) => self.value(site, form, value, written),
            Kind::Imm { min, max } => self.constant(site, form, (min, max), written),
            Kind::Address(space) => self.address(site, form, space, written),
            Kind::Label => self.branch_label(written),
            Kind::TargetList => self.target_list(written),
            Kind::Func => self.callee(written),
            Kind::FuncPtr => self.function_pointer(written),
            Kind::CallTargets => self.call_target_list(written),
            Kind::Args | Kind::Rets => self.call_operands(form, written),
            Kind::Opaque(ty) => self.opaque(site, ty, written),
            Kind::Coords => self.coordinates(site, written),
            Kind::Offset | Kind::Grad => self.companion(site, form, written),
            Kind::LevelOfDetail => {
                let ty = site.found.mods.ty_in(Slot::Ctype)?;
                self.source(written, ty, Width::Equal)
            }
            Kind::Fragment(matrix) => self.fragment(site, form, matrix, written),
            Kind::Elems => self.elements(site, form, written),
            Kind::MovSource => self.mov_source(site, written),
            Kind::Variable => self.cvta_source(site, written),
            Kind::Bracket => self.bracket(site, form, written),
        }
    }

    /// The type of a value operand.
    fn type_of(&self, site: &Site<'_>, ty: TypeOf) -> Option<Ty> {
        match ty {
            TypeOf::Pointer => Some(match self.checker.header.address_size() {
                AddressSize::Bits32 => Ty::U32,
                AddressSize::Bits64 => Ty::U64,
            }),
            TypeOf::Is(_) | TypeOf::Slot(_) | TypeOf::Wide(_) => ty.resolve(&site.found.mods),
        }
    }

    fn value(
        &mut self,
        site: &Site<'_>,
        form: &OperandForm,
        value: Value,
        written: &Written<'_>,
    ) -> Option<Operand> {
        let mut ty = self.type_of(site, value.ty)?;
        if value.ty == TypeOf::Pointer && self.holds_32_bits(written) {
            ty = Ty::U32;
        }
        let width = if value.wider { Width::OrWider } else { Width::Equal };
        let lanes = form.lanes(&site.found.mods);
        if lanes > 1 {
            if site.found.row.row().op == Op::MovVec
                && let WrittenKind::Name(reference) = &written.kind
                && let Some(sreg) = self.special(reference)
                && form.dir == Dir::In
            {
                return self.special_vector(reference, sreg, ty, lanes);
            }
            let wide = u32::from(lanes) * ty.bits() > 128;
            if wide && !self.holds_something(written) {
                return None;
            }
            if wide && site.found.row.row().op == Op::St {
                return self.sunk_vector(ty, width, lanes, written);
            }
            return self.vector(form.dir, ty, width, lanes, written);
        }
        if form.selector.is_some() || form.may_minus {
            return self.video(form, ty, written);
        }
        match form.dir {
            Dir::Out => self.destination(written, ty, width),
            Dir::In if form.may_not => self.predicate(written),
            Dir::In if value.wider && site.found.row.row().op == Op::Cvt => {
                self.cvt_source(written, ty, width)
            }
            Dir::In => self.source(written, ty, width),
        }
    }

    /// Whether this is a 32-bit address in a module that may have such addresses.
    fn holds_32_bits(&self, written: &Written<'_>) -> bool {
        let WrittenKind::Name(reference) = &written.kind else { return false };
        self.checker.header.address_size_is_open()
            && self.register_type(reference).is_some_and(|(ty, _)| ty.bits() == 32)
    }

    /// A register that is written.
    pub(super) fn destination(&mut self, written: &Written<'_>, ty: Ty, width: Width) -> Option<Operand> {
        match &written.kind {
            WrittenKind::Sink => Some(Operand::Sink),
            WrittenKind::Name(reference) => self.register_operand(reference, ty, width, Dir::Out),
            WrittenKind::Vector(list) if list.len() == 1 => self.destination(&list[0], ty, width),
            WrittenKind::Const(_) => self.wrong_kind(written.span, "a constant cannot be a destination"),
            WrittenKind::Not(_)
            | WrittenKind::Minus(_)
            | WrittenKind::Sum(_)
            | WrittenKind::Vector(_)
            | WrittenKind::Address(_)
            | WrittenKind::Brackets(_)
            | WrittenKind::Indexed(..)
            | WrittenKind::Pair(..)
            | WrittenKind::List(_) => self.wrong_kind(written.span, "expected a register"),
        }
    }

    /// A register or constant that is read.
    pub(super) fn source(&mut self, written: &Written<'_>, ty: Ty, width: Width) -> Option<Operand> {
        match &written.kind {
            WrittenKind::Name(reference) => self.register_operand(reference, ty, width, Dir::In),
            WrittenKind::Const(value) => self.immediate(ty, *value, written.span),
            WrittenKind::Vector(list) if list.len() == 1 => self.source(&list[0], ty, width),
            WrittenKind::Sum(sum) => {
                let name = sum.name.name;
                match self.resolve(name)? {
                    Entity::Register(_) if sum.generic.is_none() && sum.mask.is_none() => {
                        let register = self.register_operand(&sum.name, ty, width, Dir::In)?;
                        self.register_sum(register, sum.addend, written.span)
                    }
                    Entity::Register(_) => {
                        self.wrong_kind(written.span, "`generic()` and masks are for initialisers")
                    }
                    Entity::Local(_)
                    | Entity::Var(_)
                    | Entity::ModuleRegister(_)
                    | Entity::ModuleLocal(_)
                    | Entity::Func(_)
                    | Entity::Label(_)
                    | Entity::Prototype(_)
                    | Entity::CallTargets(_)
                    | Entity::BranchTargets(_)
                    | Entity::UnusableTargets(_)
                    | Entity::Broken => self.wrong_kind(
                        written.span,
                        "`mov` takes the address of a variable; expected a register or constant",
                    ),
                }
            }
            WrittenKind::Sink => self.wrong_kind(written.span, "`_` cannot be read"),
            WrittenKind::Not(_)
            | WrittenKind::Minus(_)
            | WrittenKind::Vector(_)
            | WrittenKind::Address(_)
            | WrittenKind::Brackets(_)
            | WrittenKind::Indexed(..)
            | WrittenKind::Pair(..)
            | WrittenKind::List(_) => self.wrong_kind(written.span, "expected a register or a constant"),
        }
    }

    /// `p` or `!p`.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    fn predicate(&mut self, written: &Written<'_>) -> Option<Operand> {
        let WrittenKind::Not(reference) = &written.kind else {
            return self.source(written, Ty::Pred, Width::Equal);
        };
        match self.register_operand(reference, Ty::Pred, Width::Equal, Dir::In)? {
            Operand::Register(id) => Some(Operand::Not(id)),
            _ => self.wrong_kind(written.span, "expected a predicate register after `!`"),
        }
    }

    /// The source of `cvt`, which can be a special register.
    fn cvt_source(&mut self, written: &Written<'_>, ty: Ty, width: Width) -> Option<Operand> {
        if let WrittenKind::Name(reference) = &written.kind
            && let Some(sreg) = self.special(reference)
        {
            return self.special_register(reference, sreg, ty, width);
        }
        self.source(written, ty, width)
    }

    /// The bits of a constant.
    pub(super) fn immediate(&mut self, ty: Ty, value: Const, span: Span) -> Option<Operand> {
        if ty == Ty::B128 {
            self.checker.report.push(
                Diagnostic::new(
                    Code::WrongOperandKind,
                    span,
                    "constants have at most 64 bits; expected a register of type `.b128`",
                )
                .with_help("`mov.b128 r, {low, high};` makes 128 bits of two registers")
                .with_section("4.5"),
            );
            return None;
        }
        immediate::convert(self.checker, ty, value, span).map(Operand::Imm)
    }

    /// The special register with that name, unless a declaration hides it.
    pub(super) fn special(&self, reference: &Reference) -> Option<Sreg> {
        let name = reference.name.text(self.checker.text);
        let sreg = Sreg::from_name(name)?;
        self.checker.scopes.find(name).is_none().then_some(sreg)
    }

    /// A register, or an element of a vector register, of a suitable type.
    pub(super) fn register_operand(
        &mut self,
        reference: &Reference,
        ty: Ty,
        width: Width,
        dir: Dir,
    ) -> Option<Operand> {
        let text = self.checker.text;
        let span = reference.span;
        if self.special(reference).is_some() {
            let name = span.text(text);
            let message = match dir {
                Dir::Out => format!("`{name}` is a special register, which cannot be written"),
                Dir::In => format!("`{name}` is a special register, which only `mov` and `cvt` read"),
            };
            self.checker
                .report
                .push(Diagnostic::new(Code::BadRegisterUse, span, message).with_section("5.1.2"));
            return None;
        }
        let name = reference.name.text(text);
        let id = match self.resolve_as(reference.name, Wanted::Register(ty, width))? {
            Entity::Register(id) => id,
            Entity::Var(_) | Entity::Local(_) => {
                let message = format!("`{name}` is a variable in memory; expected a register");
                self.checker.report.push(
                    Diagnostic::new(Code::WrongOperandKind, span, message)
                        .with_help(format!("`ld` reads it, `mov` takes its address: `mov.u64 r, {name};`"))
                        .with_section("6.4.1"),
                );
                return None;
            }
            other @ (Entity::Func(_)
            | Entity::Label(_)
            | Entity::Prototype(_)
            | Entity::CallTargets(_)
            | Entity::BranchTargets(_)
            | Entity::UnusableTargets(_)) => {
                let message = format!("`{name}` is {}; expected a register", other.noun());
                self.checker
                    .report
                    .push(Diagnostic::new(Code::WrongOperandKind, span, message).with_section("6.4"));
                return None;
            }
            Entity::ModuleRegister(_) | Entity::ModuleLocal(_) | Entity::Broken => return None,
        };
        let beyond = if dir == Dir::In { self.element_beyond(id, reference) } else { None };
        let element = if beyond.is_some() { None } else { self.element(id, reference)? };
        let register = self.register(id);
        if element.is_none() && beyond.is_none() && register.vector > 1 {
            let message =
                format!("`{name}` is a vector of {} elements; expected a single value", register.vector);
            self.checker.report.push(
                Diagnostic::new(Code::BadVector, span, message)
                    .with_help(format!("`{name}.x`"))
                    .with_section("6.4.3"),
            );
            return None;
        }
        let have = register.ty;
        if !accepts(ty, have, width) {
            self.wrong_type(span, ty, have);
            return None;
        }
        let operand = element.map_or(Operand::Register(id), |element| Operand::Element(id, element));
        Some(beyond.unwrap_or(operand))
    }

    /// The element of a vector register that a suffix selects; `Some(None)` without a suffix.
    pub(super) fn element(&mut self, id: RegisterId, reference: &Reference) -> Option<Option<u8>> {
        let Some(suffix) = reference.suffix else { return Some(None) };
        let text = self.checker.text;
        let vector = self.register(id).vector;
        let element = match suffix.text(text) {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            "w" | "a" => 3,
            _ => u8::MAX,
        };
        if element < vector && vector > 1 {
            return Some(Some(element));
        }
        let name = reference.name.text(text);
        let message = if vector > 1 {
            format!("`{name}` has {vector} elements, and no `.{}`", suffix.text(text))
        } else {
            format!("`{name}` is not a vector, and has no `.{}`", suffix.text(text))
        };
        self.checker
            .report
            .push(Diagnostic::new(Code::BadVector, suffix.span, message).with_section("6.4.3"));
        None
    }

    /// A special register in `mov` or `cvt`.
    pub(super) fn special_register(
        &mut self,
        reference: &Reference,
        sreg: Sreg,
        ty: Ty,
        width: Width,
    ) -> Option<Operand> {
        let text = self.checker.text;
        let facts = sreg.facts();
        let name = reference.span.text(text);
        let gate = Gate::parse(facts.since).unwrap_or(Gate::OPEN);
        if !self.checker.gate(&gate, reference.span, &format!("`{name}`"), facts.section) {
            return None;
        }
        let component = match reference.suffix.map(|suffix| suffix.text(text)) {
            None => None,
            Some("x") => Some(0),
            Some("y") => Some(1),
            Some("z") => Some(2),
            Some("w") => Some(3),
            Some(_) => Some(u8::MAX),
        };
        let error = match (facts.vector, component) {
            (true, Some(0..=3)) | (false, None) => None,
            (true, None) => Some(format!("`{name}` is a vector; expected one component, such as `{name}.x`")),
            (true, Some(_)) => Some(format!("`{}` has the components `.x`, `.y`, `.z` and `.w`", facts.name)),
            (false, Some(_)) => Some(format!("`{}` is not a vector", reference.name.text(text))),
        };
        if let Some(error) = error {
            self.checker
                .report
                .push(Diagnostic::new(Code::BadVector, reference.span, error).with_section(facts.section));
            return None;
        }
        // `%gridid` had 16 bits, then 32; the manual's examples read 64-bit counters by halves.
        let integer = matches!(ty.kind(), TyKind::Bits | TyKind::Unsigned | TyKind::Signed);
        let legacy = integer
            && (sreg == Sreg::Gridid && matches!(ty.bits(), 16 | 32)
                || matches!(sreg, Sreg::Pm64(_)) && ty.bits() == 32);
        // `%tid` and similar registers were vectors of 16-bit numbers before PTX 2.0.
        let short = integer && facts.vector && ty.bits() == 16;
        if legacy && sreg != Sreg::Gridid {
            self.checker.report.push(
                Diagnostic::new(
                    Code::NotPortable,
                    reference.span,
                    format!("`{name}` has 64 bits, and is cut to 32"),
                )
                .with_help("`mov.u64`")
                .with_section(facts.section),
            );
        }
        if !legacy && !short && !accepts(ty, facts.ty, width) {
            self.wrong_type(reference.span, ty, facts.ty);
            return None;
        }
        Some(Operand::Sreg(sreg, component.unwrap_or(0)))
    }

    /// `mov.v4` from a special register that is a vector (A36).
    fn special_vector(&mut self, reference: &Reference, sreg: Sreg, ty: Ty, lanes: u8) -> Option<Operand> {
        let facts = sreg.facts();
        if !facts.vector || lanes != 4 || reference.suffix.is_some() {
            return self.wrong_vector(reference.span, lanes);
        }
        if !accepts(ty, facts.ty, Width::Equal) {
            self.wrong_type(reference.span, ty, facts.ty);
            return None;
        }
        Some(Operand::Vector((0..4).map(|component| Operand::Sreg(sreg, component)).collect()))
    }

    /// A vector of registers: `{a, b}`, or a vector register.
    pub(super) fn vector(
        &mut self,
        dir: Dir,
        ty: Ty,
        width: Width,
        lanes: u8,
        written: &Written<'_>,
    ) -> Option<Operand> {
        match &written.kind {
            WrittenKind::Vector(list) => {
                if list.len() != usize::from(lanes) {
                    let message = format!("expected {lanes} elements, found {}", list.len());
                    self.checker
                        .report
                        .push(Diagnostic::new(Code::BadVector, written.span, message).with_section("6.4.3"));
                    return None;
                }
                let mut elements = Vec::with_capacity(list.len());
                for element in list {
                    elements.push(match dir {
                        Dir::Out => self.destination(element, ty, width),
                        Dir::In => self.source(element, ty, width),
                    });
                }
                elements.into_iter().collect::<Option<Vec<_>>>().map(Operand::Vector)
            }
            WrittenKind::Name(reference) => self.vector_register(reference, ty, width, lanes),
            WrittenKind::Sink
            | WrittenKind::Not(_)
            | WrittenKind::Minus(_)
            | WrittenKind::Const(_)
            | WrittenKind::Sum(_)
            | WrittenKind::Address(_)
            | WrittenKind::Brackets(_)
            | WrittenKind::Indexed(..)
            | WrittenKind::Pair(..)
            | WrittenKind::List(_) => self.wrong_vector(written.span, lanes),
        }
    }

    /// Checks that not every element of a vector is `_`.
    fn holds_something(&mut self, written: &Written<'_>) -> bool {
        let WrittenKind::Vector(list) = &written.kind else { return true };
        let empty = !list.is_empty() && list.iter().all(|e| matches!(e.kind, WrittenKind::Sink));
        if empty {
            self.checker.report.push(
                Diagnostic::new(Code::BadVector, written.span, "at least one element must be a register")
                    .with_section("9.7.9.8"),
            );
        }
        !empty
    }

    /// The source vector of a 256-bit store: an element `_` leaves memory unchanged.
    fn sunk_vector(&mut self, ty: Ty, width: Width, lanes: u8, written: &Written<'_>) -> Option<Operand> {
        let is_sink = |element: &Written<'_>| matches!(element.kind, WrittenKind::Sink);
        let WrittenKind::Vector(list) = &written.kind else {
            return self.vector(Dir::In, ty, width, lanes, written);
        };
        if list.len() != usize::from(lanes) {
            return self.vector(Dir::In, ty, width, lanes, written);
        }
        let mut elements = Vec::with_capacity(list.len());
        for element in list {
            elements.push(match is_sink(element) {
                true => Some(Operand::Sink),
                false => self.source(element, ty, width),
            });
        }
        elements.into_iter().collect::<Option<Vec<_>>>().map(Operand::Vector)
    }

    fn vector_register(&mut self, reference: &Reference, ty: Ty, width: Width, lanes: u8) -> Option<Operand> {
        let span = reference.span;
        if self.special(reference).is_some() {
            let name = span.text(self.checker.text);
            let message = format!("`{name}` is read one component at a time");
            self.checker.report.push(
                Diagnostic::new(Code::BadVector, span, message)
                    .with_help(format!("`mov.u32 r, {name}.x;`"))
                    .with_section("10"),
            );
            return None;
        }
        let Entity::Register(id) = self.resolve(reference.name)? else {
            return self.wrong_vector(span, lanes);
        };
        let register = self.register(id);
        let (have, vector) = (register.ty, register.vector);
        if vector != lanes || reference.suffix.is_some() {
            return self.wrong_vector(span, lanes);
        }
        if !accepts(ty, have, width) {
            self.wrong_type(span, ty, have);
            return None;
        }
        Some(Operand::Register(id))
    }

    /// Reports that a vector is required; once per instruction, because the cause is likely its `.v2` or
    /// `.v4`.
    fn wrong_vector(&mut self, span: Span, lanes: u8) -> Option<Operand> {
        if let Some(finding) = self.no_vector {
            self.checker.report.also(finding, span, "here as well");
            return None;
        }
        self.no_vector = Some(self.checker.report.len());
        let list =
            ["a", "b", "c", "d", "e", "f", "g", "h"].get(..usize::from(lanes)).unwrap_or(&[]).join(", ");
        self.checker.report.push(
            Diagnostic::new(Code::BadVector, span, format!("expected a vector of {lanes} elements"))
                .with_help(format!("`{{{list}}}`, or a `.v{lanes}` register"))
                .with_section("6.4.3"),
        );
        None
    }

    /// An operand of a video instruction, with minus sign and selector.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    fn video(&mut self, form: &OperandForm, ty: Ty, written: &Written<'_>) -> Option<Operand> {
        let (reference, negated) = match &written.kind {
            WrittenKind::Name(reference) => (*reference, false),
            WrittenKind::Minus(reference) => (*reference, true),
            WrittenKind::Const(_) => {
                let value = Box::new(self.source(written, ty, Width::Equal)?);
                return Some(Operand::Video { value, negated: false, selector: String::new() });
            }
            WrittenKind::Sink
            | WrittenKind::Not(_)
            | WrittenKind::Sum(_)
            | WrittenKind::Vector(_)
            | WrittenKind::Address(_)
            | WrittenKind::Brackets(_)
            | WrittenKind::Indexed(..)
            | WrittenKind::Pair(..)
            | WrittenKind::List(_) => {
                return self.wrong_kind(written.span, "expected a 32-bit register");
            }
        };
        let selector = match (reference.suffix, form.selector) {
            (Some(suffix), Some((kind, _))) => {
                let word = suffix.text(self.checker.text);
                if !kind.accepts(word) {
                    self.checker.report.push(
                        Diagnostic::new(
                            Code::BadModifierUse,
                            suffix.span,
                            format!("`.{word}` is not a selector of operand `{}`", form.name),
                        )
                        .with_help(kind.choices())
                        .with_section("9.7.15"),
                    );
                    return None;
                }
                word.to_owned()
            }
            (Some(suffix), None) => return self.wrong_kind(suffix.span, "this operand has no selector"),
            (None, _) => String::new(),
        };
        let id = match self.resolve(reference.name)? {
            Entity::Register(id) => id,
            other => {
                let message = format!("this is {}; expected a register", other.noun());
                return self.wrong_kind(reference.span, &message);
            }
        };
        let register = self.register(id);
        let (have, vector) = (register.ty, register.vector);
        if vector > 1 || !accepts(ty, have, Width::Equal) {
            self.wrong_type(reference.span, ty, have);
            return None;
        }
        Some(Operand::Video { value: Box::new(Operand::Register(id)), negated, selector })
    }

    /// An integer constant in a range.
    fn constant(
        &mut self,
        site: &Site<'_>,
        form: &OperandForm,
        (min, max): (i64, i64),
        written: &Written<'_>,
    ) -> Option<Operand> {
        let WrittenKind::Const(value) = &written.kind else {
            let message = format!("operand `{}` must be a constant", form.name);
            return self.wrong_kind(written.span, &message);
        };
        let Some(wide) = value.wide() else {
            let message = format!("operand `{}` must be an integer constant, not `{value}`", form.name);
            return self.wrong_kind(written.span, &message);
        };
        if !(i128::from(min)..=i128::from(max)).contains(&wide) {
            // ptxas truncates the table of `lop3` to eight bits.
            if site.found.row.row().op == Op::Lop3
                && let Some(bits) = value.bits()
            {
                let cut = bits & 0xFF;
                self.checker.report.push(
                    Diagnostic::new(
                        Code::ImmediateTruncated,
                        written.span,
                        format!("a table of `lop3` has eight bits, and `{value}` more"),
                    )
                    .with_label(format!("cut to {cut:#x}"))
                    .with_section("9.7.7.6"),
                );
                return Some(Operand::Imm(cut));
            }
            self.checker.report.push(
                Diagnostic::new(
                    Code::ImmediateOutOfRange,
                    written.span,
                    format!("operand `{}` cannot be {value}", form.name),
                )
                .with_help(format!("{min} to {max}")),
            );
            return None;
        }
        value.bits().map(Operand::Imm)
    }

    /// Reports a wrong type; once for all operands of an instruction with the same mismatch, because the
    /// cause is likely the instruction's type.
    pub(super) fn wrong_type(&mut self, span: Span, wanted: Ty, have: Ty) {
        if let Some((.., finding)) = self.mistyped.iter().find(|(w, h, _)| (*w, *h) == (wanted, have)) {
            let text = format!("`.{}` as well", have.name());
            self.checker.report.also(*finding, span, &text);
            return;
        }
        self.mistyped.push((wanted, have, self.checker.report.len()));
        let name = span.text(self.checker.text);
        let (wanted_name, have_name) = (wanted.name(), have.name());
        let counts = |ty: Ty| !matches!(ty.kind(), TyKind::Pred | TyKind::Opaque);
        let label = if wanted.bits() == have.bits() || !counts(wanted) || !counts(have) {
            format!("this is `.{have_name}`")
        } else {
            format!("this is `.{have_name}`, {} bits; expected {} bits", have.bits(), wanted.bits())
        };
        let mut diagnostic = Diagnostic::new(
            Code::WrongOperandType,
            span,
            format!("`{name}` has type `.{have_name}`, but the instruction needs `.{wanted_name}` here"),
        )
        .with_label(label)
        .with_section("9.4");
        if wanted.kind() == TyKind::Opaque {
            let name = wanted.name();
            diagnostic = diagnostic
                .with_help(format!("a `.{name}` variable, or a `.u64` register that points to one"));
        } else if wanted == Ty::Pred && counts(have) {
            let zero = if have.is_float() { "0.0" } else { "0" };
            let help = format!("`setp.ne.{have_name} p, {name}, {zero};` makes a predicate");
            diagnostic = diagnostic.with_help(help);
        } else if have == Ty::Pred && counts(wanted) {
            diagnostic =
                diagnostic.with_help(format!("`selp.{wanted_name} r, 1, 0, {name};` makes a number"));
        } else if counts(have) && counts(wanted) && wanted.bits() == have.bits() {
            let bits = wanted.bits();
            diagnostic =
                diagnostic.with_help(format!("`mov.b{bits}` copies the bits, `cvt` converts the value"));
        } else if counts(have) && counts(wanted) && (wanted == Ty::B128 || have == Ty::B128) {
            diagnostic = diagnostic
                .with_help("`mov.b128 r, {low, high};` packs two registers of 64 bits, `mov.b128 {low, high}, r;` unpacks them");
        } else if counts(have) && counts(wanted) {
            diagnostic = diagnostic.with_help("`cvt` changes the width");
        }
        self.checker.report.push(diagnostic);
    }

    /// Reports an operand of the wrong kind.
    pub(super) fn wrong_kind(&mut self, span: Span, message: &str) -> Option<Operand> {
        self.checker.report.push(Diagnostic::new(Code::WrongOperandKind, span, message).with_section("6.3"));
        None
    }
}
