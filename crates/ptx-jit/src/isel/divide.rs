//! Quotients and remainders of integers in vectors, for which processors have no instruction (PTX ISA
//! §9.7.1.7, §9.7.1.8).
//!
//! The divisor is often the same for all lanes (a width, a trip count): then one reciprocal is computed once
//! for all lanes. Otherwise the division uses floating point. A 64-bit quotient does not fit into a
//! floating-point number, so the dividend is divided twice: the remainder of the first division is so small
//! that the second quotient is wrong by one at most.
//!
//! Invariant: the bits are those of the interpreter's step for every dividend and divisor, and no conversion
//! is out of range, also for the arbitrary values of inactive lanes.

use super::{Known, Lower};
use crate::llvm::{IntPred, Value};
use crate::target::Level;

impl Lower<'_, '_> {
    /// Quotient and remainder as PTX defines them here: division by zero gives all ones and the dividend; the
    /// least number divided by -1 wraps. The divisor comes with what is known of its lanes.
    pub(super) fn quotient_remainder(
        &self,
        x: Value,
        (y, known): (Value, Known),
        signed: bool,
    ) -> (Value, Value) {
        let bits = x.ty().element_bits();
        match known {
            Known::Constant => self.divide_apart(x, (y, known), signed),
            _ if self.lanes == 1 => self.divide_apart(x, (y, known), signed),
            Known::Same(same) if bits <= 32 => self.divide_by_same(x, y, same, signed),
            // Other levels have no vector conversions to 64 bits.
            Known::Nothing | Known::Same(_) if bits == 64 && self.env.target.level() == Level::Avx512 => {
                self.divide_twice(x, (y, known), signed)
            }
            Known::Nothing | Known::Same(_) => self.divide_apart(x, (y, known), signed),
        }
    }

    /// The division with separate results for the divisors zero and, if signed, -1.
    fn divide_apart(&self, x: Value, (y, known): (Value, Known), signed: bool) -> (Value, Value) {
        let b = self.b;
        let (zero, one) = (b.zero(y.ty()), self.constant(y, 1));
        let by_zero = b.icmp(IntPred::Eq, y, zero);
        let by_minus_one = b.icmp(IntPred::Eq, y, b.ones(y.ty()));
        let special = if signed { b.or(by_zero, by_minus_one) } else { by_zero };
        let divisor = b.select(special, one, y);
        let (quotient, remainder) = self.divide(x, (divisor, known), signed);
        let quotient = if signed { b.select(by_minus_one, b.neg(x), quotient) } else { quotient };
        let quotient = b.select(by_zero, b.ones(x.ty()), quotient);
        // The remainder of a division by -1 is that of a division by 1: zero.
        (quotient, b.select(by_zero, x, remainder))
    }

    /// Division by a number that is neither zero nor, if signed, -1.
    fn divide(&self, x: Value, (y, known): (Value, Known), signed: bool) -> (Value, Value) {
        let b = self.b;
        let bits = x.ty().element_bits();
        let constant = matches!(known, Known::Constant);
        let by_float =
            self.lanes > 1 && bits <= 32 && self.env.target.level() != Level::Baseline && !constant;
        if !by_float {
            return if signed { (b.sdiv(x, y), b.srem(x, y)) } else { (b.udiv(x, y), b.urem(x, y)) };
        }
        // If the exact quotient is not an integer, it is at least 1/y below the next integer, which is more
        // than the rounding error of double (for 16 bits, single) precision. So truncating the rounded
        // quotient is exact.
        let float = b.like(x.ty(), if bits == 16 { b.f32() } else { b.f64() });
        let word = self.int(32);
        let number = |v| if signed { b.sitofp(v, float) } else { b.uitofp(v, float) };
        let ratio = b.fdiv(number(x), number(y));
        let quotient = if signed || bits == 16 { b.fptosi(ratio, word) } else { b.fptoui(ratio, word) };
        let quotient = self.resized(quotient, x.ty());
        let remainder = b.sub(x, b.mul(quotient, y));
        (quotient, remainder)
    }

    /// Division of at most 32 bits by the number `same` in all lanes, whose vector is `y`: multiplies with
    /// its reciprocal, rounded up to one bit more than a lane has; the first of these bits is always set
    /// (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", figure 4.1).
    fn divide_by_same(&self, x: Value, y: Value, same: Value, signed: bool) -> (Value, Value) {
        let b = self.b;
        let (ty, bits) = (same.ty(), x.ty().element_bits());
        let number = |n: u32| b.const_int(ty, n.into());
        let by_zero = b.icmp(IntPred::Eq, same, b.zero(ty));
        let divisor = b.select(by_zero, number(1), self.without_sign(same, signed));
        // The exponent of the next power of two.
        let none = b.const_int(b.int(1), 0);
        let zeros = b.intrinsic("llvm.ctlz", &[ty], &[b.sub(divisor, number(1)), none]);
        let exponent = b.sub(number(bits), zeros);
        let wide = b.int(2 * bits);
        let extended = |v: Value| b.zext(v, wide);
        let power = b.shl(b.const_int(wide, 1), extended(exponent));
        let above = b.shl(b.sub(power, extended(divisor)), b.const_int(wide, bits.into()));
        let below = b.trunc(b.udiv(above, extended(divisor)), ty);
        // For a power of two it is 1, and the high half of the product is 0, as it is with 0. LLVM 22 turns a
        // high half of a product with 1 into a shift by the width, which has no result, if it finds late that
        // the number is 1.
        let rounds = b.icmp(IntPred::Ne, below, b.zero(ty));
        let reciprocal = b.add(below, b.zext(rounds, ty));
        // The sum of the product's high half and the dividend may have one bit too many, so one of the shifts
        // precedes the addition.
        let first = b.intrinsic("llvm.umin", &[ty], &[exponent, number(1)]);
        let second = b.sub(exponent, first);
        let everywhere = |v: Value| b.splat(v, self.lanes);
        let dividend = self.without_sign(x, signed);
        let high = self.mul_hi(dividend, everywhere(reciprocal), false);
        let half = b.lshr(b.sub(dividend, high), everywhere(first));
        let quotient = b.lshr(b.add(high, half), everywhere(second));
        let quotient = if signed { self.negated(quotient, b.xor(x, y)) } else { quotient };
        let quotient = b.or(quotient, everywhere(b.sext(by_zero, ty)));
        // After a multiplication with zero the whole dividend remains.
        (quotient, b.sub(x, b.mul(quotient, y)))
    }

    /// Division of 64 bits.
    fn divide_twice(&self, x: Value, (y, known): (Value, Known), signed: bool) -> (Value, Value) {
        let b = self.b;
        let y_same = match known {
            Known::Same(same) => Some(same),
            Known::Nothing | Known::Constant => None,
        };
        let dividend = self.without_sign(x, signed);
        let divisor = self.without_sign(y_same.unwrap_or(y), signed);
        let by_zero = b.icmp(IntPred::Eq, divisor, b.zero(divisor.ty()));
        let divisor = b.select(by_zero, self.constant(divisor, 1), divisor);
        // Smaller by eight units in the last place, so that rounding makes no quotient too large or out of
        // range.
        let float = b.like(divisor.ty(), b.f64());
        let unit = b.const_splat(float, 1f64.to_bits());
        let lessened = b.const_splat(float, (1.0 - 2f64.powi(-50)).to_bits());
        let reciprocal = b.fmul(b.fdiv(unit, b.uitofp(divisor, float)), lessened);
        let everywhere = |v: Value| if y_same.is_some() { b.splat(v, self.lanes) } else { v };
        let (divisor, reciprocal) = (everywhere(divisor), everywhere(reciprocal));
        let part = |v: Value| b.fptoui(b.fmul(b.uitofp(v, self.f64()), reciprocal), x.ty());
        // The first quotient is too small by less than 2^16, so the second has at most 17 bits and is too
        // small by at most one.
        let first = part(dividend);
        let left = b.sub(dividend, b.mul(first, divisor));
        let second = part(left);
        let left = b.sub(left, b.mul(second, divisor));
        let fits = b.icmp(IntPred::Uge, left, divisor);
        let quotient = b.sub(b.add(first, second), b.sext(fits, x.ty()));
        let remainder = b.select(fits, b.sub(left, divisor), left);
        let (quotient, remainder) = if signed {
            (self.negated(quotient, b.xor(x, y)), self.negated(remainder, x))
        } else {
            (quotient, remainder)
        };
        let by_zero = everywhere(by_zero);
        (b.select(by_zero, b.ones(x.ty()), quotient), b.select(by_zero, x, remainder))
    }

    /// The absolute values, as unsigned numbers, which include that of the least number.
    fn without_sign(&self, v: Value, signed: bool) -> Value {
        let wraps = self.b.const_int(self.b.int(1), 0);
        if signed { self.b.intrinsic("llvm.abs", &[v.ty()], &[v, wraps]) } else { v }
    }

    /// Numbers, negated in the lanes where `by` is negative.
    fn negated(&self, v: Value, by: Value) -> Value {
        let b = self.b;
        let sign = b.ashr(by, self.constant(by, u64::from(by.ty().element_bits() - 1)));
        b.sub(b.xor(v, sign), sign)
    }
}
