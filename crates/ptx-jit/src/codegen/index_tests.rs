//! The tests of versions for indices ([`version_indices`](crate::opt::version_indices)), on the first and the
//! last lane of an affine value.
//!
//! Invariant: where a test holds, it holds in every lane. The numbers are computed with 64 bits, where no
//! lane wraps around.

use super::endpoint_test::{Condition, Side};
use super::{Codegen, Repr};
use crate::analysis::expr::{Operand, operands};
use crate::llvm::{IntPred, Value};
use crate::wir::{Op, Site};
use ptx::isa::{Cmp, Op as O, Ty};

impl Codegen<'_> {
    /// Whether a minimum, maximum or absolute value is that operand in every lane, or a comparison is
    /// true, or false ([`OpKind::Picks`](crate::wir::OpKind)).
    pub(super) fn picks(&mut self, site: Site, second: bool, op: &Op) -> Value {
        let inst = site.inst(self.job.function).expect("ptxvm bug: a test of no instruction");
        self.remarks.site.set(Some(site));
        self.remark_index_test("a version of the block for warps whose lanes it leaves as they are");
        let signed = inst.mods.ty() == Ty::S32;
        let sources = operands(inst, op);
        let holds = match inst.op {
            O::Setp => self.passes(inst, &op.uses[1..], second),
            O::Abs => match [sources[0], Operand::Imm(0)].map(|source| self.side(source)) {
                [Some(side), Some(zero)] => self.compare(Cmp::Ge, signed, [side, zero]),
                _ => None,
            },
            _ => {
                let cmp = if inst.op == O::Min { Cmp::Le } else { Cmp::Ge };
                let mut sides = [sources[0], sources[1]].map(|source| self.side(source));
                if second {
                    sides.reverse();
                }
                match sides {
                    [Some(a), Some(b)] => self.compare(cmp, signed, [a, b]),
                    _ => None,
                }
            }
        };
        match holds {
            Some(Condition::Computed(holds)) => holds,
            Some(Condition::Known(holds)) => self.b.const_int(self.int(1), u64::from(holds)),
            None => self.b.const_int(self.int(1), 0),
        }
    }

    /// `version`: what the test is for where there is another version of the block.
    fn remark_index_test(&mut self, version: &'static str) {
        self.applied(
            "version-indices",
            match self.job.shape.leaves_at_edges() {
                false => version,
                true => "assumed to leave the index of all lanes as it is: else the coarse warp leaves",
            },
        );
    }

    /// Whether all lanes have the same quotient, and the result of the first
    /// ([`OpKind::SameQuotient`](crate::wir::OpKind)).
    pub(super) fn same_quotient(&mut self, site: Site, op: &Op) {
        let inst = site.inst(self.job.function).expect("ptxvm bug: a test of no instruction");
        self.remarks.site.set(Some(site));
        self.remark_index_test("a version of the block for warps whose lanes have the same quotient");
        let sources = operands(inst, op);
        let sides = [sources[0], sources[1]].map(|source| self.side(source));
        let (holds, first) = match sides {
            [Some(Side::Lanes(first, span)), Some(Side::Same(divisor))] => {
                let signed = inst.mods.ty() == Ty::S32;
                self.divide_first((first.value, span), divisor.value, signed, inst.op == O::Rem)
            }
            _ => (self.b.const_int(self.int(1), 0), self.c32(0)),
        };
        self.values.define(op.defs[0], Repr::Scalar(holds));
        self.values.define(op.defs[1], Repr::Scalar(first));
    }

    /// Divides the first lane's number, which all others exceed by at most `span`: whether all have the same
    /// quotient, and the remainder or the quotient. The result is any number if the divisor is not positive
    /// or the number is negative, where the test fails.
    fn divide_first(
        &mut self,
        (first, span): (Value, u64),
        divisor: Value,
        signed: bool,
        remainder: bool,
    ) -> (Value, Value) {
        let zero = self.c32(0);
        let is_zero = self.b.icmp(IntPred::Eq, divisor, zero);
        let by = self.b.select(is_zero, self.c32(1), divisor);
        // Both are positive where the test holds, so the division need not be signed.
        let quotient = self.b.udiv(first, by);
        let rest = self.b.sub(first, self.b.mul(quotient, by));
        let long = self.int(64);
        let last_rest = self.b.add(self.b.zext(rest, long), self.c64(span));
        let mut holds = self.b.icmp(IntPred::Ult, last_rest, self.b.zext(divisor, long));
        let most = if signed { i32::MAX as u64 } else { u64::from(u32::MAX) };
        // A negative number is above the greatest positive one.
        let last = self.b.add(self.b.zext(first, long), self.c64(span));
        holds = self.b.and(holds, self.b.icmp(IntPred::Ule, last, self.c64(most)));
        if signed {
            holds = self.b.and(holds, self.b.icmp(IntPred::Sgt, divisor, zero));
        }
        (holds, if remainder { rest } else { quotient })
    }

    /// Moves all lanes of an affine value ([`OpKind::Rebase`](crate::wir::OpKind)).
    pub(super) fn rebase(&mut self, op: &Op) {
        let first = self.scalar(op.uses[1]);
        let rep =
            if self.shape(op.defs[0]).is_uniform() { Repr::Scalar(first) } else { Repr::Bases(vec![first]) };
        self.values.define(op.defs[0], rep);
    }
}
