//! Binary floating point in integer arithmetic: unpack, compute exactly, round once.
//!
//! The same routines serve `.f16`, `.bf16`, `.f32` and `.f64` in all four rounding modes; the format is a
//! parameter. A finite value is a sign, a `u128` significand and an exponent. Bits that do not fit the
//! significand are kept as a sticky low bit, so that the single rounding in [`round_pack`] sees the side of
//! every boundary on which the exact value lies.
//!
//! **Invariant:** results are correctly rounded in every mode. Underflow is gradual, overflow gives infinity
//! or the largest finite value by the mode, and an exact zero sum is +0 (-0 under `.rm`).
//!
//! NaN bits are not decided here: an operation with a NaN result returns `None`, and the caller applies the
//! rule of its type.

/// The rounding mode of a float instruction (`.rnd`, `.frnd`).
///
/// # Source
/// PTX ISA §6.5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rnd {
    /// `.rn`: to the nearest value, ties to the even one.
    Rn,
    /// `.rz`: towards zero.
    Rz,
    /// `.rm`: towards negative infinity.
    Rm,
    /// `.rp`: towards positive infinity.
    Rp,
}

/// A binary interchange format: the widths of its exponent and of its stored fraction.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
}

pub(crate) const F16: Format = Format { exponent_bits: 5, fraction_bits: 10 };
pub(crate) const BF16: Format = Format { exponent_bits: 8, fraction_bits: 7 };
pub(crate) const F32: Format = Format { exponent_bits: 8, fraction_bits: 23 };
pub(crate) const F64: Format = Format { exponent_bits: 11, fraction_bits: 52 };

impl Format {
    const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    pub(crate) const fn sign_bit(self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    /// The bits of +infinity, one above those of the largest finite value.
    const fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    const fn signed(self, sign: bool, magnitude: u64) -> u64 {
        if sign { self.sign_bit() | magnitude } else { magnitude }
    }
}

/// A nonzero finite number: (-1)^sign * significand * 2^exponent.
#[derive(Clone, Copy)]
struct Number {
    sign: bool,
    exponent: i32,
    significand: u128,
}

/// An unpacked float.
#[derive(Clone, Copy)]
enum Unpacked {
    Nan,
    Infinity { sign: bool },
    Zero { sign: bool },
    Finite(Number),
}

fn unpack(format: Format, bits: u64) -> Unpacked {
    let sign = bits & format.sign_bit() != 0;
    let magnitude = bits & (format.sign_bit() - 1);
    if magnitude > format.infinity() {
        return Unpacked::Nan;
    }
    if magnitude == format.infinity() {
        return Unpacked::Infinity { sign };
    }
    if magnitude == 0 {
        return Unpacked::Zero { sign };
    }
    let fraction = magnitude & ((1 << format.fraction_bits) - 1);
    let biased = (magnitude >> format.fraction_bits) as i32;
    let implicit = if biased == 0 { 0 } else { 1 << format.fraction_bits };
    let exponent = biased.max(1) - format.bias() - format.fraction_bits as i32;
    Unpacked::Finite(Number { sign, exponent, significand: u128::from(fraction | implicit) })
}

/// Rounds (-1)^sign * significand * 2^exponent, not zero, to the format and packs it.
///
/// A significand whose lowest bit is sticky (set for any nonzero bit below it) must be wider than the format
/// by 2 bits or more.
fn round_pack(format: Format, number: Number, rnd: Rnd) -> u64 {
    let Number { sign, exponent, significand } = number;
    let zeros = significand.leading_zeros();
    let significand = significand << zeros;
    let top = exponent - zeros as i32 + 127;
    let overflow = match rnd {
        Rnd::Rn => true,
        Rnd::Rz => false,
        Rnd::Rm => sign,
        Rnd::Rp => !sign,
    };
    let overflowed = format.infinity() - u64::from(!overflow);
    if top > format.bias() {
        return format.signed(sign, overflowed);
    }
    let least = 1 - format.bias();
    let below = (least - top).clamp(0, 64) as u32;
    let drop = 127 - format.fraction_bits + below;
    // `drop` is at least 75 and at most 181. Beyond 128 the whole value is below half of the lowest place.
    let kept = significand.checked_shr(drop).unwrap_or(0) as u64;
    let rest = match drop {
        ..128 => significand << (128 - drop),
        128 => significand,
        129.. => 1,
    };
    let half = 1u128 << 127;
    let up = match rnd {
        Rnd::Rn => rest > half || (rest == half && kept & 1 == 1),
        Rnd::Rz => false,
        Rnd::Rm => sign && rest != 0,
        Rnd::Rp => !sign && rest != 0,
    };
    // The implicit bit, if there is one, adds 1 to the exponent field; so does a carry out of the fraction.
    let field = if top < least { 0 } else { ((top - least) as u64) << format.fraction_bits };
    let magnitude = field + kept + u64::from(up);
    format.signed(sign, if magnitude >= format.infinity() { overflowed } else { magnitude })
}

/// Shifts right by any amount; the lowest bit collects the bits shifted out.
fn shift_right_sticky(significand: u128, by: u32) -> u128 {
    if by == 0 {
        significand
    } else if by < 128 {
        significand >> by | u128::from(significand << (128 - by) != 0)
    } else {
        u128::from(significand != 0)
    }
}

/// The number with its highest bit at bit 125, which leaves room for a sum.
fn normalized(number: Number) -> Number {
    let up = number.significand.leading_zeros() - 2;
    Number { significand: number.significand << up, exponent: number.exponent - up as i32, ..number }
}

/// The exact sum of two numbers of at most 106 significant bits, except for a sticky low bit; `None` for
/// zero.
fn sum(a: Number, b: Number) -> Option<Number> {
    let (a, b) = (normalized(a), normalized(b));
    let (big, small) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    // Bits are shifted out only if the exponents differ by more than 19, and then the sum keeps over 120
    // bits.
    let shifted = shift_right_sticky(small.significand, big.exponent.abs_diff(small.exponent));
    if big.sign == small.sign {
        return Some(Number { significand: big.significand + shifted, ..big });
    }
    let difference = big.significand.abs_diff(shifted);
    let sign = if big.significand >= shifted { big.sign } else { small.sign };
    (difference != 0).then_some(Number { sign, significand: difference, ..big })
}

/// a * b + c in `format`, rounded once into `result`; `None` for NaN.
pub(crate) fn fma(format: Format, result: Format, a: u64, b: u64, c: u64, rnd: Rnd) -> Option<u64> {
    let product = match (unpack(format, a), unpack(format, b)) {
        (Unpacked::Nan, _) | (_, Unpacked::Nan) => return None,
        (Unpacked::Infinity { .. }, Unpacked::Zero { .. })
        | (Unpacked::Zero { .. }, Unpacked::Infinity { .. }) => {
            return None;
        }
        (Unpacked::Infinity { .. }, _) | (_, Unpacked::Infinity { .. }) => {
            Unpacked::Infinity { sign: signs_differ(format, a, b) }
        }
        (Unpacked::Zero { .. }, _) | (_, Unpacked::Zero { .. }) => {
            Unpacked::Zero { sign: signs_differ(format, a, b) }
        }
        (Unpacked::Finite(x), Unpacked::Finite(y)) => Unpacked::Finite(Number {
            sign: x.sign != y.sign,
            exponent: x.exponent + y.exponent,
            significand: x.significand * y.significand,
        }),
    };
    add_unpacked(result, product, unpack(format, c), rnd)
}

/// a + b in `format`, rounded once into `result`; `None` for NaN.
pub(crate) fn add(format: Format, result: Format, a: u64, b: u64, rnd: Rnd) -> Option<u64> {
    add_unpacked(result, unpack(format, a), unpack(format, b), rnd)
}

fn add_unpacked(result: Format, a: Unpacked, b: Unpacked, rnd: Rnd) -> Option<u64> {
    let zero = result.signed(rnd == Rnd::Rm, 0);
    Some(match (a, b) {
        (Unpacked::Nan, _) | (_, Unpacked::Nan) => return None,
        (Unpacked::Infinity { sign: x }, Unpacked::Infinity { sign: y }) if x != y => return None,
        (Unpacked::Infinity { sign }, _) | (_, Unpacked::Infinity { sign }) => {
            result.signed(sign, result.infinity())
        }
        (Unpacked::Zero { sign: x }, Unpacked::Zero { sign: y }) => {
            if x == y {
                result.signed(x, 0)
            } else {
                zero
            }
        }
        (Unpacked::Zero { .. }, Unpacked::Finite(x)) | (Unpacked::Finite(x), Unpacked::Zero { .. }) => {
            round_pack(result, x, rnd)
        }
        (Unpacked::Finite(x), Unpacked::Finite(y)) => sum(x, y).map_or(zero, |s| round_pack(result, s, rnd)),
    })
}

/// Whether the signs of two floats of one format differ.
fn signs_differ(format: Format, a: u64, b: u64) -> bool {
    (a ^ b) & format.sign_bit() != 0
}

/// a * b; `None` for NaN.
pub(crate) fn mul(format: Format, a: u64, b: u64, rnd: Rnd) -> Option<u64> {
    let sign = signs_differ(format, a, b);
    Some(match (unpack(format, a), unpack(format, b)) {
        (Unpacked::Nan, _) | (_, Unpacked::Nan) => return None,
        (Unpacked::Infinity { .. }, Unpacked::Zero { .. })
        | (Unpacked::Zero { .. }, Unpacked::Infinity { .. }) => {
            return None;
        }
        (Unpacked::Infinity { .. }, _) | (_, Unpacked::Infinity { .. }) => {
            format.signed(sign, format.infinity())
        }
        (Unpacked::Zero { .. }, _) | (_, Unpacked::Zero { .. }) => format.signed(sign, 0),
        (Unpacked::Finite(x), Unpacked::Finite(y)) => {
            let significand = x.significand * y.significand;
            round_pack(format, Number { sign, exponent: x.exponent + y.exponent, significand }, rnd)
        }
    })
}

/// a / b; `None` for NaN.
pub(crate) fn div(format: Format, a: u64, b: u64, rnd: Rnd) -> Option<u64> {
    let sign = signs_differ(format, a, b);
    Some(match (unpack(format, a), unpack(format, b)) {
        (Unpacked::Nan, _) | (_, Unpacked::Nan) => return None,
        (Unpacked::Infinity { .. }, Unpacked::Infinity { .. })
        | (Unpacked::Zero { .. }, Unpacked::Zero { .. }) => {
            return None;
        }
        (Unpacked::Infinity { .. }, _) | (_, Unpacked::Zero { .. }) => format.signed(sign, format.infinity()),
        (Unpacked::Zero { .. }, _) | (_, Unpacked::Infinity { .. }) => format.signed(sign, 0),
        (Unpacked::Finite(x), Unpacked::Finite(y)) => {
            // A dividend of 127 bits gives a quotient of 74 to 127 bits, and room for the sticky bit below
            // it.
            let up = x.significand.leading_zeros() - 1;
            let dividend = x.significand << up;
            let quotient = dividend / y.significand;
            let inexact = quotient * y.significand != dividend;
            let significand = quotient << 1 | u128::from(inexact);
            round_pack(
                format,
                Number { sign, exponent: x.exponent - y.exponent - up as i32 - 1, significand },
                rnd,
            )
        }
    })
}

/// The square root of a; `None` for NaN.
pub(crate) fn sqrt(format: Format, a: u64, rnd: Rnd) -> Option<u64> {
    Some(match unpack(format, a) {
        Unpacked::Nan => return None,
        Unpacked::Zero { sign } => format.signed(sign, 0),
        Unpacked::Infinity { sign } | Unpacked::Finite(Number { sign, .. }) if sign => return None,
        Unpacked::Infinity { .. } => format.infinity(),
        Unpacked::Finite(x) => {
            // Widened to 126 or 127 bits with an even exponent: a root of 63 or 64 bits, then the sticky bit.
            let up = x.significand.leading_zeros() - 1;
            let up = up - u32::from((x.exponent - up as i32) % 2 != 0);
            let square = x.significand << up;
            let root = square.isqrt();
            let significand = root << 1 | u128::from(root * root != square);
            round_pack(
                format,
                Number { sign: false, exponent: (x.exponent - up as i32) / 2 - 1, significand },
                rnd,
            )
        }
    })
}

/// The value a of one format, rounded into another; `None` for NaN.
pub(crate) fn convert(from: Format, to: Format, a: u64, rnd: Rnd) -> Option<u64> {
    Some(match unpack(from, a) {
        Unpacked::Nan => return None,
        Unpacked::Infinity { sign } => to.signed(sign, to.infinity()),
        Unpacked::Zero { sign } => to.signed(sign, 0),
        Unpacked::Finite(x) => round_pack(to, x, rnd),
    })
}

/// The integer (-1)^sign * magnitude, rounded into a format; zero is +0.
pub(crate) fn from_int(to: Format, sign: bool, magnitude: u64, rnd: Rnd) -> u64 {
    if magnitude == 0 {
        0
    } else {
        round_pack(to, Number { sign, exponent: 0, significand: u128::from(magnitude) }, rnd)
    }
}
