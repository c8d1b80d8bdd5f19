//! Instructions that the manual forbids and ptxas accepts, if their meaning is clear: they are rewritten to
//! the manual's form, with a warning. Programs contain them because they were tested with ptxas.
//!
//! Invariant: the rewritten instruction is one of the manual's forms, so later stages need not handle others.
//! Under [`strict`](super::CheckOptions::strict) each warning is an error. An instruction without a clear
//! meaning stays an error.

use super::body::BodyChecker;
use super::inst::{Written, WrittenKind};
use super::module::{Inst, Operand, Register, RegisterId, Statement};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{self, Body, Level, Match, Op, OperandShape, Slot, Sm, Ty, TyKind, Unmet, Version, Word};
use crate::syntax::tree::{self, Reference};

impl BodyChecker<'_, '_> {
    /// Rewrites operand forms that only ptxas accepts.
    pub(super) fn lenient<'t>(&mut self, instruction: &'t tree::Instruction, written: &mut Vec<Written<'t>>) {
        let text = self.checker.text;
        match instruction.mnemonic.text(text) {
            "call" => self.missing_arguments(instruction, written),
            "selp" => self.negated_selector(written),
            "setp" => self.single_predicate(instruction, written),
            _ => {}
        }
    }

    /// Whether ptxas accepts the instruction in an earlier version than the manual: `nanosleep` one version
    /// earlier, and `fence.acquire` like the other fences.
    pub(super) fn earlier_than_manual(
        &mut self,
        instruction: &tree::Instruction,
        found: &Match,
        unmet: Unmet,
        level: Level,
    ) -> bool {
        let row = found.row.row();
        let is_fence_acquire = row.op == Op::Fence
            && found.mods.get(Slot::Sem) == Some(Word::Acquire)
            && matches!(found.mods.get(Slot::Scope), Some(Word::Cta | Word::Gpu | Word::Sys));
        let message = if row.op == Op::Nanosleep
            && unmet == Unmet::Ptx(Version::new(6, 3))
            && level.ptx == Version::new(6, 2)
        {
            "`nanosleep` is from PTX 6.3"
        } else if is_fence_acquire && level.ptx >= Version::new(6, 0) && level.sm >= Sm::new(70) {
            "`fence.acquire` is from PTX 8.6 and sm_90"
        } else {
            return false;
        };
        self.checker.report.push(
            Diagnostic::new(Code::NonStandard, instruction.opcode_span(), message).with_section(row.section),
        );
        true
    }

    /// The third or fourth element of a register with two, as a source: a new register with zero.
    pub(super) fn element_beyond(&mut self, id: RegisterId, reference: &Reference) -> Option<Operand> {
        let text = self.checker.text;
        let suffix = reference.suffix?;
        let register = self.register(id);
        if register.vector != 2 || !matches!(suffix.text(text), "z" | "b" | "w" | "a") {
            return None;
        }
        let ty = register.ty;
        let words: &[&str] = match ty.bits() {
            8 => &["u8", "u8"],
            16 => &["b16"],
            32 => &["b32"],
            64 => &["b64"],
            _ => return None,
        };
        let mnemonic = if ty.bits() == 8 { "cvt" } else { "mov" };
        let name = reference.name.text(text);
        self.checker.report.push(
            Diagnostic::new(
                Code::NonStandard,
                suffix.span,
                format!("`{name}` has 2 elements, and no `.{}`", suffix.text(text)),
            )
            .with_label("reads as 0")
            .with_section("6.4.3"),
        );
        let shapes = [Body::Name.into(), Body::Imm.into()];
        self.ahead(mnemonic, words, ty, &shapes, vec![Operand::Imm(0)], reference.span)
    }

    /// `call (r), f;` is `call (r), f, ();`.
    fn missing_arguments<'t>(&mut self, instruction: &'t tree::Instruction, written: &mut Vec<Written<'t>>) {
        let is_list = |w: &Written<'_>| matches!(w.kind, WrittenKind::List(_));
        let is_name = |w: &Written<'_>| matches!(w.kind, WrittenKind::Name(_));
        let [results, callee, rest @ ..] = written.as_slice() else { return };
        if !is_list(results) || !is_name(callee) || rest.len() > 1 || !rest.iter().all(is_name) {
            return;
        }
        let end = Span::new(callee.span.end, callee.span.end);
        self.checker.report.push(
            Diagnostic::new(
                Code::MissingArguments,
                instruction.opcode_span(),
                "a call with results has a list of arguments, which may be empty",
            )
            .with_help("`()` after the function")
            .with_section("9.7.11.5"),
        );
        written.insert(2, Written { span: end, kind: WrittenKind::List(Vec::new()) });
    }

    /// `selp.t d, a, b, !p;` is `selp.t d, b, a, p;`.
    fn negated_selector(&mut self, written: &mut [Written<'_>]) {
        let [_, a, b, selector] = written else { return };
        let WrittenKind::Not(predicate) = selector.kind else { return };
        self.checker.report.push(
            Diagnostic::new(
                Code::NegatedSelector,
                selector.span,
                "the predicate of `selp` cannot be negated",
            )
            .with_label("taken as the predicate, with the two values exchanged")
            .with_help("exchange the two values")
            .with_section("9.7.5.3"),
        );
        selector.kind = WrittenKind::Name(predicate);
        std::mem::swap(a, b);
    }

    /// `setp.lt.f16x2 p, a, b;` is `setp.lt.f16x2 p|_, a, b;`: the comparison of the low halves.
    fn single_predicate<'t>(&mut self, instruction: &'t tree::Instruction, written: &mut [Written<'t>]) {
        let text = self.checker.text;
        let packed = |word: &tree::Word| word.text(text) == "f16x2";
        let Some(first) = written.first_mut() else { return };
        if !instruction.modifiers.iter().any(packed) || !matches!(first.kind, WrittenKind::Name(_)) {
            return;
        }
        self.checker.report.push(
            Diagnostic::new(Code::NonStandard, first.span, "a comparison of pairs has two predicates, `p|q`")
                .with_label("gets the comparison of the low halves")
                .with_section("9.7.5.2"),
        );
        let span = first.span;
        let single = std::mem::replace(first, Written { span, kind: WrittenKind::Sink });
        let sink = Written { span, kind: WrittenKind::Sink };
        first.kind = WrittenKind::Pair(Box::new(single), Box::new(sink));
    }

    /// A register plus a constant as a source operand: an additional instruction computes the sum into a new
    /// register. Sums wrap.
    pub(super) fn register_sum(&mut self, register: Operand, addend: i64, span: Span) -> Option<Operand> {
        let (Operand::Register(id) | Operand::Element(id, _)) = register else { return None };
        let ty = self.register(id).ty;
        let sum = match (ty.kind(), ty.bits()) {
            (TyKind::Bits | TyKind::Unsigned | TyKind::Signed, 16) => Ty::U16,
            (TyKind::Bits | TyKind::Unsigned | TyKind::Signed, 32) => Ty::U32,
            (TyKind::Bits | TyKind::Unsigned | TyKind::Signed, 64) => Ty::U64,
            _ => {
                let name = ty.name();
                let message = format!("a constant cannot be added to a register of type `.{name}`");
                return self.wrong_kind(span, &message);
            }
        };
        self.checker.report.push(
            Diagnostic::new(
                Code::RegisterSum,
                span,
                "an operand is a register or a constant, not a sum of both",
            )
            .with_label("added before the instruction")
            .with_help(format!("`add.{}` in an instruction of its own", sum.name()))
            .with_section("6.3"),
        );
        let bits = addend.cast_unsigned() & (u64::MAX >> (64 - sum.bits()));
        let shapes = [Body::Name.into(), Body::Name.into(), Body::Imm.into()];
        self.ahead("add", &[sum.name()], ty, &shapes, vec![register, Operand::Imm(bits)], span)
    }

    /// A 16-bit register as an address: its zero extension.
    pub(super) fn narrow_address(&mut self, id: RegisterId, span: Span) -> Option<RegisterId> {
        self.checker.report.push(
            Diagnostic::new(Code::NonStandard, span, "an address register has 32 or 64 bits")
                .with_label("its 16 bits are extended by zeros")
                .with_section("6.4.1"),
        );
        let shapes = [Body::Name.into(), Body::Name.into()];
        let extended =
            self.ahead("cvt", &["u32", "u16"], Ty::U32, &shapes, vec![Operand::Register(id)], span)?;
        let Operand::Register(extended) = extended else { return None };
        Some(extended)
    }

    /// Inserts an instruction before the current one, which writes a new register of type `ty`.
    fn ahead(
        &mut self,
        mnemonic: &str,
        words: &[&str],
        ty: Ty,
        shapes: &[OperandShape],
        sources: Vec<Operand>,
        span: Span,
    ) -> Option<Operand> {
        let found = isa::select(mnemonic, words, shapes).ok()?;
        let id = RegisterId(self.body.registers.len() as u32);
        // `%` and `$` in one name: compilers do not use it, and printing renames duplicates.
        self.body.registers.push(Register { name: format!("%$sum{}", id.0), ty, vector: 1 });
        let mut operands = vec![Operand::Register(id)];
        operands.extend(sources);
        operands.resize(found.row.form().operands.len(), Operand::Absent);
        let inst = Inst { row: found.row, mods: found.mods, guard: None, operands, span };
        self.body.statements.push(Statement::Inst(inst));
        Some(Operand::Register(id))
    }
}
