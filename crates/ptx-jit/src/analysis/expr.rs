//! Integer arithmetic of PTX, decoded: which sum, product, shift or comparison of its sources an instruction
//! computes.
//!
//! This is the only place that decodes how PTX writes integer arithmetic (`mad.lo` and `mad.wide`, `.sat`,
//! the width of a shift amount, `cvta`). Every analysis of values (shapes, ranges, scalar evolution, strides,
//! loop predication, endpoint tests, ...) matches [`Arith`], and derives from each form the facts that it
//! needs.
//!
//! Invariant: an [`Expr`] is exact. A form is decoded only if its result is the named function of the
//! operands modulo the width of the result, whatever the operands are. So saturating forms, `mul.hi` and
//! floating point are not decoded.
//!
//! Guards are not part of the expression: an analysis that depends on the guard reads it from the
//! instruction.

use crate::wir::{Func, Op, Shape, Value};
use ptx::ir::{Addr, Base, Inst, Src};
use ptx::isa::{Cmp, Half, Op as O, Space, Sreg, Ty, Word};

/// The function of its sources `a`, `b`, `c` that an instruction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arith {
    /// `a`, bit by bit, of any type.
    Copy,
    /// `a` as an integer of another type: sign-extended if it is signed, or truncated.
    Convert(Ty),
    /// `a`, an address of the space, as a generic address.
    ToGeneric(Space),
    /// `a`, a generic address, as an address of the space.
    FromGeneric(Space),
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `-a`
    Neg,
    /// `a * b`, of the width of the sources or of twice that width.
    Mul {
        /// Whether the result is twice as wide as the sources.
        wide: bool,
    },
    /// `a * b + c`, where `c` is as wide as the result.
    Mad {
        /// Whether the result is twice as wide as `a` and `b`.
        wide: bool,
    },
    /// `a << b`; zero if `b` is not less than the width.
    Shl,
    /// `a >> b`, with copies of the sign bit if `a` is signed.
    Shr,
    /// `a & b`
    And,
    /// `a | b`
    Or,
    /// `a ^ b`
    Xor,
    /// The lesser of `a` and `b`.
    Min,
    /// The greater of `a` and `b`.
    Max,
    /// The quotient of `a / b`, rounded towards zero.
    Div,
    /// The remainder of `a / b`.
    Rem,
    /// `a` where the predicate `c` is true, else `b`.
    Select,
    /// Whether the relation holds between `a` and `b`.
    Compare(Cmp),
}

/// Integer arithmetic on a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expr {
    /// The function.
    pub(crate) arith: Arith,
    /// The type of the first source. An integer, except that [`Arith::Copy`] and [`Arith::Select`] have any,
    /// and bitwise forms predicates too.
    pub(crate) ty: Ty,
}

/// A source of an instruction, with the value that it reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operand<'a> {
    /// The source is absent.
    Absent,
    /// A register.
    Value(Value),
    /// The complement of a predicate.
    Not(Value),
    /// A constant: the bits of the operand's type.
    Imm(u64),
    /// A component of a special register.
    Sreg(Sreg, u8),
    /// An address: a register plus a number of bytes.
    Based(Value, i64),
    /// An address that contains no register.
    Symbol(&'a Addr),
    /// An address that is a symbol plus a register.
    Indexed(Value),
    /// A source of a video instruction: a register with a selector, or a constant.
    Video(Option<Value>),
}

impl Operand<'_> {
    /// The register's value, if the source is a register.
    pub(crate) fn value(self) -> Option<Value> {
        match self {
            Operand::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The value of the source if it is constant: an immediate, or a register whose shape is a constant.
    pub(crate) fn constant(self, func: &Func) -> Option<u64> {
        match self {
            Operand::Imm(bits) => Some(bits),
            Operand::Value(value) => match func.shapes[value.0 as usize] {
                Shape::Uniform(value) => value,
                Shape::Bottom | Shape::Affine(_) | Shape::Varying => None,
            },
            _ => None,
        }
    }
}

/// The sources of an instruction in their order. `op`: the operation of the instruction; its first use is the
/// mask of its lanes.
pub(crate) fn operands<'a>(inst: &'a Inst, op: &Op) -> Vec<Operand<'a>> {
    operands_of(inst, op.uses.get(1..).unwrap_or_default())
}

/// As [`operands`], from the values of the registers that the instruction reads.
pub(crate) fn operands_of<'a>(inst: &'a Inst, values: &[Value]) -> Vec<Operand<'a>> {
    let mut values = values.iter().copied();
    let one = |src: &'a Src| {
        // A source reads at most one register.
        let mut reads = false;
        src.for_each_reg(&mut |_| reads = true);
        let value = if reads { values.next() } else { None };
        match (src, value) {
            (Src::Imm(bits), _) => Operand::Imm(*bits),
            (Src::Sreg(sreg, axis), _) => Operand::Sreg(*sreg, *axis),
            (Src::Reg(_), Some(value)) => Operand::Value(value),
            (Src::Not(_), Some(value)) => Operand::Not(value),
            (Src::Addr(Addr { base: Base::Reg(_), offset, .. }), Some(value)) => {
                Operand::Based(value, *offset)
            }
            (Src::Addr(_), Some(index)) => Operand::Indexed(index),
            (Src::Addr(addr), None) => Operand::Symbol(addr),
            (Src::Video(_), value) => Operand::Video(value),
            // Every register that is read has a value.
            (Src::Absent, _) | (Src::Reg(_) | Src::Not(_), None) => Operand::Absent,
        }
    };
    inst.srcs.iter().map(one).collect()
}

impl Expr {
    /// The arithmetic of an instruction; `None` if it computes something else, or if the arithmetic is exact
    /// for some operands only.
    pub(crate) fn of(inst: &Inst) -> Option<Self> {
        let ty = match inst.op {
            O::Cvt => {
                let (to, from) = (inst.mods.dtype(), inst.mods.atype());
                let exact = is_int(to) && is_int(from) && !inst.mods.has(Word::Sat);
                return exact.then_some(Self { arith: Arith::Convert(to), ty: from });
            }
            O::Mov
            | O::Cvta
            | O::CvtaTo
            | O::Add
            | O::Sub
            | O::Neg
            | O::Mul
            | O::Mad
            | O::Shl
            | O::Shr
            | O::And
            | O::Or
            | O::Xor
            | O::Min
            | O::Max
            | O::Div
            | O::Rem
            | O::Selp
            | O::Setp => inst.mods.ty(),
            _ => return None,
        };
        let whole = is_int(ty) && !inst.mods.has(Word::Sat);
        let wide = || match inst.mods.half() {
            Some(Half::Lo) => Some(false),
            Some(Half::Wide) => Some(true),
            _ => None,
        };
        let arith = match inst.op {
            O::Mov if inst.srcs.len() == 1 && inst.dsts.len() == 1 => Arith::Copy,
            O::Cvta => Arith::ToGeneric(inst.mods.space()),
            O::CvtaTo => Arith::FromGeneric(inst.mods.space()),
            O::Add if whole => Arith::Add,
            O::Sub if whole => Arith::Sub,
            O::Neg if whole => Arith::Neg,
            O::Mul if whole => Arith::Mul { wide: wide()? },
            O::Mad if whole => Arith::Mad { wide: wide()? },
            O::Shl => Arith::Shl,
            O::Shr => Arith::Shr,
            O::And => Arith::And,
            O::Or => Arith::Or,
            O::Xor => Arith::Xor,
            O::Min if whole => Arith::Min,
            O::Max if whole => Arith::Max,
            O::Div if whole => Arith::Div,
            O::Rem if whole => Arith::Rem,
            O::Selp => Arith::Select,
            O::Setp if whole && inst.srcs.len() == 2 => Arith::Compare(inst.mods.cmp()?),
            _ => return None,
        };
        Some(Self { arith, ty })
    }

    /// The number of bits of a source that are read.
    pub(crate) fn source_bits(self, source: usize) -> u32 {
        match (self.arith, source) {
            (Arith::Mad { .. }, 2) => self.result_bits(),
            (Arith::Shl | Arith::Shr, 1) => 32,
            (Arith::Select, 2) => 1,
            _ => self.ty.bits(),
        }
    }

    /// The number of bits of the result.
    pub(crate) fn result_bits(self) -> u32 {
        match self.arith {
            Arith::Convert(to) => to.bits(),
            Arith::Mul { wide: true } | Arith::Mad { wide: true } => 2 * self.ty.bits(),
            Arith::Compare(_) => 1,
            _ => self.ty.bits(),
        }
    }

    /// The type that the first two sources are widened from, and the number of bits that they are widened to;
    /// `None` if they are not widened.
    pub(crate) fn widens(self) -> Option<(Ty, u32)> {
        (self.reads_modulo() && self.result_bits() > self.ty.bits()).then(|| (self.ty, self.result_bits()))
    }

    /// Whether the result depends on its sources as integers.
    fn reads_modulo(self) -> bool {
        !matches!(self.arith, Arith::Compare(_) | Arith::Select)
    }

    /// Whether the arithmetic is that of whole registers: modulo 2^32 or 2^64.
    pub(crate) fn is_of_words(self) -> bool {
        matches!(self.ty, Ty::S32 | Ty::U32 | Ty::B32 | Ty::S64 | Ty::U64 | Ty::B64)
    }

    /// The numerical value of a constant source: `bits` sign-extended to 64 bits. In a product of twice the
    /// width they are extended according to the type.
    pub(crate) fn number(self, bits: u64) -> i64 {
        let wide = matches!(self.arith, Arith::Mul { wide: true } | Arith::Mad { wide: true });
        let shift = 64 - self.ty.bits().min(64);
        if wide && !self.ty.is_signed() {
            (bits << shift >> shift) as i64
        } else {
            (bits << shift) as i64 >> shift
        }
    }
}

/// Whether the instruction is one that clamps, mirrors, selects, divides or wraps around an index of 32 bits:
/// its result is affine where it changes none, though it need not be in all warps.
pub(crate) fn may_change_index(inst: &Inst) -> bool {
    let changes = matches!(inst.op, O::Min | O::Max | O::Abs | O::Div | O::Rem | O::Selp);
    changes && matches!(inst.mods.ty(), Ty::S32 | Ty::U32 | Ty::B32)
}

/// Whether a type is an integer, or untyped bits.
pub(crate) fn is_int(ty: Ty) -> bool {
    use Ty::{B8, B16, B32, B64, S8, S16, S32, S64, U8, U16, U32, U64};
    [B8, B16, B32, B64, S8, S16, S32, S64, U8, U16, U32, U64].contains(&ty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx::ir::Program;

    fn program(body: &str) -> Program {
        let text = format!(
            ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{\n.reg .pred %p<4>; .reg .b16 %h<4>; \
             .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>;\n{body}\nret; }}\n"
        );
        let checked = ptx::check::check("test.ptx", &text, &ptx::check::CheckOptions::default());
        let Some(module) = checked.module else { panic!("{:?}", checked.diagnostics) };
        ptx::ir::lower(module)
    }

    fn expr(text: &str) -> Option<Expr> {
        Expr::of(&program(text).functions[0].blocks[0].insts[0])
    }

    #[test]
    fn each_form_of_the_manual_is_its_arithmetic() {
        let is = |text: &str, arith, ty| assert_eq!(expr(text), Some(Expr { arith, ty }), "{text}");
        is("mov.u32 %r1, %r2;", Arith::Copy, Ty::U32);
        is("mov.f32 %f1, %f2;", Arith::Copy, Ty::F32);
        is("cvt.u64.u32 %rd1, %r1;", Arith::Convert(Ty::U64), Ty::U32);
        is("cvt.s16.s32 %h1, %r1;", Arith::Convert(Ty::S16), Ty::S32);
        is("cvta.shared.u64 %rd1, %rd2;", Arith::ToGeneric(Space::Shared), Ty::U64);
        is("cvta.to.global.u64 %rd1, %rd2;", Arith::FromGeneric(Space::Global), Ty::U64);
        is("add.s32 %r1, %r2, %r3;", Arith::Add, Ty::S32);
        is("sub.u64 %rd1, %rd2, 8;", Arith::Sub, Ty::U64);
        is("neg.s32 %r1, %r2;", Arith::Neg, Ty::S32);
        is("mul.lo.u32 %r1, %r2, %r3;", Arith::Mul { wide: false }, Ty::U32);
        is("mul.wide.s32 %rd1, %r2, 4;", Arith::Mul { wide: true }, Ty::S32);
        is("mad.lo.s32 %r1, %r2, %r3, %r4;", Arith::Mad { wide: false }, Ty::S32);
        is("mad.wide.u16 %r1, %h1, %h2, %r3;", Arith::Mad { wide: true }, Ty::U16);
        is("shl.b64 %rd1, %rd2, 3;", Arith::Shl, Ty::B64);
        is("shr.s32 %r1, %r2, 3;", Arith::Shr, Ty::S32);
        is("and.b32 %r1, %r2, 31;", Arith::And, Ty::B32);
        is("or.pred %p1, %p2, %p3;", Arith::Or, Ty::Pred);
        is("xor.b32 %r1, %r2, 31;", Arith::Xor, Ty::B32);
        is("min.s32 %r1, %r2, %r3;", Arith::Min, Ty::S32);
        is("max.u32 %r1, %r2, %r3;", Arith::Max, Ty::U32);
        is("rem.u32 %r1, %r2, 7;", Arith::Rem, Ty::U32);
        is("div.s32 %r1, %r2, 7;", Arith::Div, Ty::S32);
        is("selp.b32 %r1, %r2, %r3, %p1;", Arith::Select, Ty::B32);
        is("setp.lt.s32 %p1, %r2, %r3;", Arith::Compare(Cmp::Lt), Ty::S32);
    }

    #[test]
    fn what_is_exact_for_some_operands_only_is_not_decoded() {
        for text in [
            "add.sat.s32 %r1, %r2, %r3;",
            "mad.hi.sat.s32 %r1, %r2, %r3, %r4;",
            "mul.hi.u32 %r1, %r2, %r3;",
            "cvt.sat.u8.s32 %r1, %r2;",
            "cvt.rni.s32.f32 %r1, %f1;",
            "add.f32 %f1, %f2, %f3;",
            "neg.f32 %f1, %f2;",
            "fma.rn.f32 %f1, %f2, %f3, %f1;",
            "setp.lt.f32 %p1, %f1, %f2;",
            "setp.lt.and.s32 %p1, %r2, %r3, %p2;",
            "popc.b32 %r1, %r2;",
        ] {
            assert_eq!(expr(text), None, "{text}");
        }
    }

    #[test]
    fn widths_are_those_of_the_manual() {
        let widths = |text: &str| {
            let expr = expr(text).expect(text);
            let bits = (expr.source_bits(0), expr.source_bits(1), expr.source_bits(2), expr.result_bits());
            (bits, expr.widens())
        };
        assert_eq!(widths("mad.wide.s32 %rd1, %r1, %r2, %rd3;"), ((32, 32, 64, 64), Some((Ty::S32, 64))));
        assert_eq!(widths("mad.lo.u64 %rd1, %rd1, %rd2, %rd3;"), ((64, 64, 64, 64), None));
        assert_eq!(widths("shl.b64 %rd1, %rd2, %r1;").0.1, 32);
        assert_eq!(widths("cvt.s64.s32 %rd1, %r1;").1, Some((Ty::S32, 64)));
        assert_eq!(widths("cvt.u16.u32 %h1, %r1;").1, None);
        assert_eq!(widths("setp.eq.u32 %p1, %r1, %r2;").1, None);
    }

    #[test]
    fn constants_count_by_the_type_of_their_operand() {
        let number = |text: &str, bits| expr(text).expect(text).number(bits);
        assert_eq!(number("add.s32 %r1, %r2, %r3;", 0xffff_ffff), -1);
        assert_eq!(number("mul.wide.s32 %rd1, %r2, 4;", 0xffff_fffc), -4);
        assert_eq!(number("mul.wide.u32 %rd1, %r2, 4;", 0xffff_fffc), 0xffff_fffc);
        assert_eq!(number("mul.lo.u32 %r1, %r2, 4;", 0xffff_fffc), -4);
        assert_eq!(number("add.u64 %rd1, %rd2, 4;", u64::MAX), -1);
    }

    #[test]
    fn each_source_has_the_value_that_it_reads() {
        let program = program(
            "ld.global.v2.u32 {%r1, %r2}, [%rd1+8]; mad.wide.u32 %rd2, %r1, 4, %rd1; \
                               vadd.u32.u32.u32 %r4, %r1.b0, %r2; mov.u32 %r3, %tid.y;",
        );
        let insts = &program.functions[0].blocks[0].insts;
        let op = |values: &[u32]| Op {
            kind: crate::wir::OpKind::Mask(0),
            uses: values.iter().copied().map(Value).collect(),
            defs: Vec::new(),
            access: None,
            prefetch: None,
        };
        assert_eq!(operands(&insts[0], &op(&[0, 7]))[0], Operand::Based(Value(7), 8));
        let all = operands(&insts[1], &op(&[0, 8, 9]));
        assert_eq!(all, [Operand::Value(Value(8)), Operand::Imm(4), Operand::Value(Value(9))]);
        let video = operands(&insts[2], &op(&[0, 1, 2]));
        assert_eq!(video[..2], [Operand::Video(Some(Value(1))), Operand::Video(Some(Value(2)))]);
        assert_eq!(operands(&insts[3], &op(&[0])), [Operand::Sreg(Sreg::Tid, 1)]);
    }
}
