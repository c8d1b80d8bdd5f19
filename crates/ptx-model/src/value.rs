//! Values of registers as expressions over the results of a thread's reads, and their arithmetic.
//!
//! Registers have 64 bits. Arithmetic uses the type of the instruction, and results are extended to 64 bits:
//! signed types by sign, others by zeros. Invariant: every function is total; a shift by the width or more
//! has the machine's result.

use crate::test::{AluOp, AtomOp, Comparison, Type};
use std::rc::Rc;

/// A value of a thread. `Read(n)` is the result of event `n` of its path: a read, or a barrier reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Const(u64),
    Read(usize),
    /// Truncated to a size and extended.
    Extend(Type, Rc<Expr>),
    Alu(AluOp, Type, Rc<Expr>, Rc<Expr>),
    /// What an atomic operation writes: old value, operands.
    Atom(AtomOp, Type, Rc<Expr>, Vec<Rc<Expr>>),
    Select(Rc<Expr>, Rc<Expr>, Rc<Expr>),
}

impl Expr {
    /// Whether it is a constant.
    pub(crate) fn constant(&self) -> Option<u64> {
        self.value(&mut |_| None)
    }

    /// Its value, where the reads that decide it have one.
    pub(crate) fn value(&self, read: &mut impl FnMut(usize) -> Option<u64>) -> Option<u64> {
        Some(match self {
            Self::Const(value) => *value,
            Self::Read(event) => read(*event)?,
            Self::Extend(ty, inner) => extend(*ty, inner.value(read)?),
            Self::Alu(op, ty, a, b) => alu(*op, *ty, a.value(read)?, b.value(read)?),
            Self::Atom(op, ty, old, args) => {
                let old = match op {
                    // The old value does not matter.
                    AtomOp::Exch => 0,
                    _ => old.value(read)?,
                };
                let mut values = [0; 2];
                for (value, arg) in values.iter_mut().zip(args) {
                    *value = arg.value(read)?;
                }
                atom(*op, *ty, old, values)
            }
            Self::Select(p, a, b) => {
                if p.value(read)? != 0 {
                    a.value(read)?
                } else {
                    b.value(read)?
                }
            }
        })
    }

    /// The events whose results it depends on, as bits.
    pub(crate) fn reads(&self) -> u128 {
        match self {
            Self::Const(_) => 0,
            Self::Read(event) => 1 << event,
            Self::Extend(_, inner) => inner.reads(),
            Self::Alu(_, _, a, b) => a.reads() | b.reads(),
            Self::Atom(op, _, old, args) => {
                let args = args.iter().fold(0, |all, arg| all | arg.reads());
                if *op == AtomOp::Exch { args } else { args | old.reads() }
            }
            Self::Select(p, a, b) => p.reads() | a.reads() | b.reads(),
        }
    }

    /// How many nodes it has, counting no further than `most`.
    pub(crate) fn nodes(&self, most: usize) -> usize {
        let of = |parts: &[&Rc<Self>]| {
            parts.iter().fold(
                1,
                |sum: usize, part| {
                    if sum > most { sum } else { sum + part.nodes(most - sum.min(most)) }
                },
            )
        };
        match self {
            Self::Const(_) | Self::Read(_) => 1,
            Self::Extend(_, inner) => of(&[inner]),
            Self::Alu(_, _, a, b) => of(&[a, b]),
            Self::Atom(_, _, old, args) => of(&std::iter::once(old).chain(args).collect::<Vec<_>>()),
            Self::Select(p, a, b) => of(&[p, a, b]),
        }
    }
}

/// All ones in so many bytes.
pub(crate) fn mask(bytes: u32) -> u64 {
    if bytes >= 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 }
}

/// The low bytes of a value, extended to 64 bits.
pub(crate) fn extend(ty: Type, value: u64) -> u64 {
    let low = value & mask(ty.size);
    let sign = 1_u64 << (8 * ty.size.clamp(1, 8) - 1);
    if ty.signed && low & sign != 0 { low | !mask(ty.size) } else { low }
}

/// A comparison in a type.
pub(crate) fn compare(comparison: Comparison, ty: Type, a: u64, b: u64) -> bool {
    let (a, b) = (extend(ty, a), extend(ty, b));
    // Flipped signs put the negative numbers first.
    let flip = if ty.signed { 1 << 63 } else { 0 };
    let order = (a ^ flip).cmp(&(b ^ flip));
    match comparison {
        Comparison::Eq => order.is_eq(),
        Comparison::Ne => order.is_ne(),
        Comparison::Lt => order.is_lt(),
        Comparison::Le => order.is_le(),
        Comparison::Gt => order.is_gt(),
        Comparison::Ge => order.is_ge(),
    }
}

/// Arithmetic in a type.
pub(crate) fn alu(op: AluOp, ty: Type, a: u64, b: u64) -> u64 {
    let (a, b) = (extend(ty, a), extend(ty, b));
    let bits = u64::from(8 * ty.size);
    #[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "the same bits, read as signed")]
    let value = match op {
        AluOp::Add => a.wrapping_add(b),
        AluOp::Sub => a.wrapping_sub(b),
        AluOp::Mul => a.wrapping_mul(b),
        AluOp::Div if b == 0 => u64::MAX,
        AluOp::Div if ty.signed => (a as i64).wrapping_div(b as i64) as u64,
        AluOp::Div => a / b,
        AluOp::Rem if b == 0 => a,
        AluOp::Rem if ty.signed => (a as i64).wrapping_rem(b as i64) as u64,
        AluOp::Rem => a % b,
        AluOp::And => a & b,
        AluOp::Or => a | b,
        AluOp::Xor => a ^ b,
        AluOp::Shl if b >= bits => 0,
        AluOp::Shl => a << b,
        AluOp::Shr if ty.signed => ((a as i64) >> b.min(63)) as u64,
        AluOp::Shr if b >= bits => 0,
        AluOp::Shr => a >> b,
        AluOp::Min => {
            if compare(Comparison::Lt, ty, a, b) {
                a
            } else {
                b
            }
        }
        AluOp::Max => {
            if compare(Comparison::Lt, ty, a, b) {
                b
            } else {
                a
            }
        }
        AluOp::Compare(comparison) => u64::from(compare(comparison, ty, a, b)),
    };
    extend(ty, value)
}

/// What an atomic operation writes.
pub(crate) fn atom(op: AtomOp, ty: Type, old: u64, args: [u64; 2]) -> u64 {
    let [arg, second] = args;
    let unsigned = Type { signed: false, ..ty };
    let (o, a) = (extend(unsigned, old), extend(unsigned, arg));
    match op {
        AtomOp::Alu(op) => alu(op, ty, old, arg),
        AtomOp::Exch => arg,
        AtomOp::Cas => {
            if o == a {
                second
            } else {
                old
            }
        }
        AtomOp::Inc => {
            if o >= a {
                0
            } else {
                o + 1
            }
        }
        AtomOp::Dec => {
            if o == 0 || o > a {
                a
            } else {
                o - 1
            }
        }
        AtomOp::AddHalf => u64::from(add_half(low_half(old), low_half(arg))),
    }
}

fn low_half(value: u64) -> u16 {
    (value & 0xffff) as u16
}

/// The sum of two halves, rounded to nearest even; every NaN is 0x7fff. A sum of two halves is exact in
/// 64-bit floats.
fn add_half(a: u16, b: u16) -> u16 {
    let sum = half_value(a) + half_value(b);
    if sum.is_nan() {
        return 0x7fff;
    }
    let sign = if sum.is_sign_negative() { 0x8000 } else { 0 };
    let size = sum.abs();
    // The least unit of halves is 2^-24; a number of at least 2^-14 has 11 significant bits.
    let exponent = if size < 2.0_f64.powi(-14) { -24 } else { exponent_of(size) - 10 };
    let units = (size / 2.0_f64.powi(exponent)).round_ties_even();
    let value = units * 2.0_f64.powi(exponent);
    if value >= 65536.0 {
        return sign | 0x7c00;
    }
    if value < 2.0_f64.powi(-14) {
        return sign | (value * 2.0_f64.powi(24)) as u16;
    }
    let exponent = exponent_of(value);
    let fraction = (value / 2.0_f64.powi(exponent - 10)) as u16 & 0x3ff;
    sign | ((exponent + 15) as u16) << 10 | fraction
}

/// The exponent of a normal positive number.
fn exponent_of(value: f64) -> i32 {
    (value.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

fn half_value(half: u16) -> f64 {
    let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(half >> 10 & 31), f64::from(half & 0x3ff));
    sign * match exponent {
        0 => fraction * 2.0_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2.0_f64.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const U32: Type = Type { size: 4, signed: false, packed: false };
    const S8: Type = Type { size: 1, signed: true, packed: false };

    #[test]
    fn arithmetic_wraps_in_its_type() {
        assert_eq!(alu(AluOp::Add, U32, 0xffff_ffff, 1), 0);
        assert_eq!(alu(AluOp::Sub, Type::WORD, 0, 1), u64::MAX);
        assert_eq!(alu(AluOp::Add, S8, 127, 1), (-128_i64).cast_unsigned());
        assert_eq!(alu(AluOp::Div, Type::WORD, 1 << 63, u64::MAX), 1 << 63);
        assert_eq!(alu(AluOp::Div, U32, 7, 0), 0xffff_ffff);
        assert_eq!(alu(AluOp::Rem, U32, 7, 0), 7);
        assert_eq!(alu(AluOp::Shl, U32, 1, 32), 0);
        assert_eq!(alu(AluOp::Shr, S8, 0x80, 200), u64::MAX);
        assert_eq!(alu(AluOp::Min, S8, 0xff, 1), u64::MAX);
        assert_eq!(alu(AluOp::Max, U32, 0xffff_ffff, 1), 0xffff_ffff);
        assert!(compare(Comparison::Lt, Type::WORD, u64::MAX, 0));
        assert!(compare(Comparison::Gt, U32, u64::MAX, 0));
    }

    #[test]
    fn atomic_operations() {
        assert_eq!(atom(AtomOp::Inc, U32, 3, [3, 0]), 0);
        assert_eq!(atom(AtomOp::Inc, U32, 2, [3, 0]), 3);
        assert_eq!(atom(AtomOp::Dec, U32, 0, [3, 0]), 3);
        assert_eq!(atom(AtomOp::Dec, U32, 9, [3, 0]), 3);
        assert_eq!(atom(AtomOp::Dec, U32, 2, [3, 0]), 1);
        assert_eq!(atom(AtomOp::Cas, U32, 5, [5, 7]), 7);
        assert_eq!(atom(AtomOp::Exch, U32, 5, [7, 0]), 7);
        assert_eq!(atom(AtomOp::AddHalf, U32, 0x3c00, [0x3c00, 0]), 0x4000);
    }

    #[test]
    fn sums_of_halves_round_to_nearest_even() {
        assert_eq!(add_half(0x3c00, 0x0001), 0x3c00, "1 + 2^-24");
        assert_eq!(add_half(0x7bff, 0x4c00), 0x7c00, "65504 + 16 rounds to infinity");
        assert_eq!(add_half(0x7bff, 0x4bff), 0x7bff, "65504 + 15.992");
        assert_eq!(add_half(0x0001, 0x0001), 0x0002, "subnormals");
        assert_eq!(add_half(0x03ff, 0x0001), 0x0400, "the least normal number");
        assert_eq!(add_half(0xbc00, 0x3c00), 0, "-1 + 1");
        assert_eq!(add_half(0x8000, 0x8000), 0x8000, "-0 - 0");
        assert_eq!(add_half(0x7c00, 0xfc00), 0x7fff, "infinity - infinity");
        assert_eq!(add_half(0x6800, 0x3c00), 0x6800, "2048 + 1 ties to even");
        assert_eq!(add_half(0x6801, 0x3c00), 0x6802, "2050 + 1 ties to even");
    }
}
