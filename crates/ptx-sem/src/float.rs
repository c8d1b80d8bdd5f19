//! Floating-point arithmetic of `.f32` and `.f64`: `testp` to `sqrt` with IEEE rounding (PTX ISA 6.4 §9.7.3),
//! `.ftz` and `.sat`.
//!
//! The functions neither flush nor saturate. The caller composes `sat(ftz(op(ftz(a), ftz(b))))` from
//! [`ftz_f32`] and [`sat_f32`]. `mad.rnd` is `fma`. The approximate instructions are in `approx`.
//!
//! **Invariant:** arithmetic is correctly rounded in all four modes. Each type has one rule for NaN results.
//! For `.f32` (the manual: "unspecified") it is always 0x7fffffff. For `.f64` ("payloads are supported") it
//! is the first operand that is a NaN, made quiet with its sign kept, and 0x7ff8000000000000 for an invalid
//! operation on numbers.

use crate::soft::{self, Format, Rnd};
use core::ops::{Add, Div, Mul, Sub};

/// `.f32` or `.f64`: the operations that the generic functions below need.
trait Float:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    const FORMAT: Format;
    const ZERO: Self;
    const ONE: Self;
    fn pattern(self) -> u64;
    fn of_pattern(bits: u64) -> Self;
    fn negated(self) -> Self;
    /// a * self + c, rounded once to nearest.
    fn fused(self, b: Self, c: Self) -> Self;
    fn root(self) -> Self;
    /// The NaN result of an operation on these operands.
    fn nan(operands: &[Self]) -> Self;
}

impl Float for f32 {
    const FORMAT: Format = soft::F32;
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    #[inline]
    fn pattern(self) -> u64 {
        u64::from(self.to_bits())
    }
    #[inline]
    fn of_pattern(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    #[inline]
    fn negated(self) -> Self {
        -self
    }
    #[inline]
    fn fused(self, b: Self, c: Self) -> Self {
        fused_f32(self, b, c)
    }
    #[inline]
    fn root(self) -> Self {
        self.sqrt()
    }
    #[inline]
    fn nan(_operands: &[Self]) -> Self {
        NAN_F32
    }
}

impl Float for f64 {
    const FORMAT: Format = soft::F64;
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    #[inline]
    fn pattern(self) -> u64 {
        self.to_bits()
    }
    #[inline]
    fn of_pattern(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    #[inline]
    fn negated(self) -> Self {
        -self
    }
    #[inline]
    fn fused(self, b: Self, c: Self) -> Self {
        self.mul_add(b, c)
    }
    #[inline]
    fn root(self) -> Self {
        self.sqrt()
    }
    #[inline]
    fn nan(operands: &[Self]) -> Self {
        // From the last operand to the first without an early exit, so that LLVM can vectorize loops over
        // instructions.
        let mut bits = 0x7ff8_0000_0000_0000;
        for x in operands.iter().rev() {
            bits = if x.is_nan() { x.to_bits() | QUIET_F64 } else { bits };
        }
        Self::from_bits(bits)
    }
}

/// a * b + c, rounded once to nearest. It has no branches and calls, so that LLVM can vectorize loops over it
/// on hosts without an FMA unit.
///
/// The product of two singles is exact in double precision. The sum with c is rounded there to odd, and then
/// to single precision. The result is that of one rounding of the exact value, because double precision has
/// more than two additional digits (Boldo and Melquiond, 2008). Rounding to odd: if the rounded sum is
/// inexact (its error is exact in two-sum) and its last digit is even, it moves by one unit in the last place
/// towards the exact sum.
#[inline]
fn fused_f32(a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let c = f64::from(c);
    let sum = product + c;
    let c_part = sum - product;
    let error = (product - (sum - c_part)) + (c - c_part);
    // No product of these underflows: both are multiples of 2^-298. The error of an infinite sum is a NaN,
    // which compares as false.
    let direction = error * sum;
    let inwards = i64::from(direction < 0.0);
    let inexact = inwards | i64::from(direction > 0.0);
    let odd = (sum.to_bits().cast_signed() - inwards) | inexact;
    f64::from_bits(odd.cast_unsigned()) as f32
}

/// The NaN of every `.f32` instruction.
pub(crate) const NAN_F32: f32 = f32::from_bits(0x7fff_ffff);

/// The bit that makes a `.f64` NaN quiet.
const QUIET_F64: u64 = 1 << 51;

/// The result, or the type's NaN for these operands if the result is a NaN.
#[inline]
fn number_or_nan<T: Float>(result: T, operands: &[T]) -> T {
    let nan = T::nan(operands);
    if is_nan(result) { nan } else { result }
}

#[inline]
fn is_nan<T: PartialOrd>(a: T) -> bool {
    a.partial_cmp(&a).is_none()
}

/// The result of a routine of `soft`, or the type's NaN.
#[inline]
fn soft_or_nan<T: Float>(result: Option<u64>, operands: &[T]) -> T {
    result.map_or_else(|| T::nan(operands), T::of_pattern)
}

#[inline]
fn add<T: Float>(a: T, b: T, rnd: Rnd) -> T {
    match rnd {
        Rnd::Rn => number_or_nan(a + b, &[a, b]),
        Rnd::Rz | Rnd::Rm | Rnd::Rp => {
            soft_or_nan(soft::add(T::FORMAT, T::FORMAT, a.pattern(), b.pattern(), rnd), &[a, b])
        }
    }
}

#[inline]
fn sub<T: Float>(a: T, b: T, rnd: Rnd) -> T {
    match rnd {
        Rnd::Rn => number_or_nan(a - b, &[a, b]),
        Rnd::Rz | Rnd::Rm | Rnd::Rp => {
            let difference = soft::add(T::FORMAT, T::FORMAT, a.pattern(), b.negated().pattern(), rnd);
            soft_or_nan(difference, &[a, b])
        }
    }
}

#[inline]
fn mul<T: Float>(a: T, b: T, rnd: Rnd) -> T {
    match rnd {
        Rnd::Rn => number_or_nan(a * b, &[a, b]),
        Rnd::Rz | Rnd::Rm | Rnd::Rp => {
            soft_or_nan(soft::mul(T::FORMAT, a.pattern(), b.pattern(), rnd), &[a, b])
        }
    }
}

#[inline]
fn fma<T: Float>(a: T, b: T, c: T, rnd: Rnd) -> T {
    match rnd {
        Rnd::Rn => number_or_nan(a.fused(b, c), &[a, b, c]),
        Rnd::Rz | Rnd::Rm | Rnd::Rp => {
            let sum = soft::fma(T::FORMAT, T::FORMAT, a.pattern(), b.pattern(), c.pattern(), rnd);
            soft_or_nan(sum, &[a, b, c])
        }
    }
}

#[inline]
fn div<T: Float>(a: T, b: T, rnd: Rnd) -> T {
    match rnd {
        Rnd::Rn => number_or_nan(a / b, &[a, b]),
        Rnd::Rz | Rnd::Rm | Rnd::Rp => {
            soft_or_nan(soft::div(T::FORMAT, a.pattern(), b.pattern(), rnd), &[a, b])
        }
    }
}

#[inline]
fn rcp<T: Float>(a: T, rnd: Rnd) -> T {
    div(T::ONE, a, rnd)
}

#[inline]
fn sqrt<T: Float>(a: T, rnd: Rnd) -> T {
    match rnd {
        // The operand is tested and the root taken of |a|, because LLVM 22 rewrites "the root, or our NaN if
        // it is a NaN" to the bare root, with the NaN of the host.
        Rnd::Rn if a > T::ZERO => magnitude(a).root(),
        Rnd::Rn if a == T::ZERO => a,
        Rnd::Rn => T::nan(&[a]),
        Rnd::Rz | Rnd::Rm | Rnd::Rp => soft_or_nan(soft::sqrt(T::FORMAT, a.pattern(), rnd), &[a]),
    }
}

#[inline]
fn min<T: Float>(a: T, b: T) -> T {
    match (is_nan(a), is_nan(b)) {
        (true, true) => T::nan(&[a, b]),
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

#[inline]
fn max<T: Float>(a: T, b: T) -> T {
    match (is_nan(a), is_nan(b)) {
        (true, true) => T::nan(&[a, b]),
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            if a > b {
                a
            } else {
                b
            }
        }
    }
}

/// Defines one public function per type from a generic one. The arguments in brackets are floats, those in
/// parentheses are rounding modes.
macro_rules! per_float {
    ($doc:tt $generic:ident $args:tt $rnd:tt: $($name:ident $ty:ty),+ $(,)?) => {
        $(per_float! { @one $doc $generic $args $rnd $name $ty })+
    };
    (@one [$(#[$doc:meta])*] $generic:ident [$($arg:ident),*] ($($rnd:ident)?) $name:ident $ty:ty) => {
        $(#[$doc])*
        #[inline]
        #[must_use]
        pub fn $name($($arg: $ty),* $(, $rnd: Rnd)?) -> $ty {
            $generic($($arg),* $(, $rnd)?)
        }
    };
}

per_float! {
    [/// `add`: d = a + b, rounded once.
     ///
     /// # Rounding and NaN
     /// By `rnd`; NaN by the rule of the type (see the module).
     ///
     /// # Source
     /// PTX ISA §9.7.3.3.
    ]
    add[a, b](rnd): add_f32 f32, add_f64 f64
}
per_float! {
    [/// `sub`: d = a - b, rounded once.
     ///
     /// # Rounding and NaN
     /// By `rnd`; NaN by the rule of the type (see the module).
     ///
     /// # Source
     /// PTX ISA §9.7.3.4.
    ]
    sub[a, b](rnd): sub_f32 f32, sub_f64 f64
}
per_float! {
    [/// `mul`: d = a * b, rounded once.
     ///
     /// # Rounding and NaN
     /// By `rnd`; NaN by the rule of the type (see the module); infinity times zero is invalid.
     ///
     /// # Source
     /// PTX ISA §9.7.3.5.
    ]
    mul[a, b](rnd): mul_f32 f32, mul_f64 f64
}
per_float! {
    [/// `fma`, and `mad` with a rounding modifier: d = a * b + c, the product exact, rounded once.
     ///
     /// # Rounding and NaN
     /// By `rnd`; NaN by the rule of the type, operands in the order a, b, c: infinity * zero + NaN gives c's
     /// NaN.
     ///
     /// # Source
     /// PTX ISA §9.7.3.6, §9.7.3.7.
    ]
    fma[a, b, c](rnd): fma_f32 f32, fma_f64 f64
}
/// [`fma_f32`] with rounding to nearest, at half its cost, and whether the result is certain. An uncertain
/// result may differ in the last place.
///
/// The sum in double precision is rounded a second time. This changes the result only if the first rounding
/// ended half-way between two singles, or if the result is subnormal. Such results are reported as uncertain,
/// even if they are correct.
///
/// # Source
/// PTX ISA §9.7.3.6.
#[inline]
#[must_use]
pub fn fma_quick_f32(a: f32, b: f32, c: f32) -> (f32, bool) {
    let sum = f64::from(a) * f64::from(b) + f64::from(c);
    let half_way = sum.to_bits() as u32 & 0x1fff_ffff == 0x1000_0000;
    let tiny = (sum.abs() <= f64::from(f32::MIN_POSITIVE)) & (sum != 0.0);
    let result = sum as f32;
    (if is_nan(result) { NAN_F32 } else { result }, !(half_way | tiny))
}

per_float! {
    [/// `div.rnd`: d = a / b, correctly rounded.
     ///
     /// # Rounding and NaN
     /// By `rnd`; a number divided by zero is infinity; 0 / 0 and infinity / infinity are invalid.
     ///
     /// # Source
     /// PTX ISA §9.7.3.8.
    ]
    div[a, b](rnd): div_f32 f32, div_f64 f64
}
/// [`fma_f32`] with rounding to nearest, by the host's fused multiply-add: the same result. It costs a small
/// part if the processor has the instruction, and several times as much if it has not.
///
/// # Source
/// PTX ISA §9.7.3.6.
#[inline]
#[must_use]
pub fn fma_host_f32(a: f32, b: f32, c: f32) -> f32 {
    let result = a.mul_add(b, c);
    if is_nan(result) { NAN_F32 } else { result }
}

macro_rules! quick_f64 {
    ($($name:ident $exact:ident $op:tt;)+) => {$(
        #[doc = concat!("[`", stringify!($exact), "`] with rounding to nearest, and whether it is certain: a NaN is not, because the caller must still choose its bits.")]
        ///
        /// # Source
        /// PTX ISA §9.7.3.
        #[inline]
        #[must_use]
        pub fn $name(a: f64, b: f64) -> (f64, bool) {
            let d = a $op b;
            (d, !is_nan(d))
        }
    )+};
}
quick_f64! {
    add_quick_f64 add_f64 +;
    sub_quick_f64 sub_f64 -;
    mul_quick_f64 mul_f64 *;
    div_quick_f64 div_f64 /;
}

per_float! {
    [/// `rcp.rnd`: d = 1 / a, correctly rounded.
     ///
     /// # Rounding and NaN
     /// By `rnd`; a zero gives infinity with its sign.
     ///
     /// # Source
     /// PTX ISA §9.7.3.13.
    ]
    rcp[a](rnd): rcp_f32 f32, rcp_f64 f64
}
per_float! {
    [/// `sqrt.rnd`: the square root of a, correctly rounded.
     ///
     /// # Rounding and NaN
     /// By `rnd`; -0 gives -0, a number below zero is invalid.
     ///
     /// # Source
     /// PTX ISA §9.7.3.15.
    ]
    sqrt[a](rnd): sqrt_f32 f32, sqrt_f64 f64
}
per_float! {
    [/// `min`: a if a < b, else b; a NaN loses against a number.
     ///
     /// # Rounding and NaN
     /// Two NaNs give the type's NaN. Zeros are equal, so for +0 and -0 the result is b.
     ///
     /// # Source
     /// PTX ISA §9.7.3.11, by its pseudocode (later manuals order -0 below +0).
    ]
    min[a, b](): min_f32 f32, min_f64 f64
}
per_float! {
    [/// `max`: a if a > b, else b; a NaN loses against a number.
     ///
     /// # Rounding and NaN
     /// Two NaNs give the type's NaN. Zeros are equal, so for +0 and -0 the result is b.
     ///
     /// # Source
     /// PTX ISA §9.7.3.12, by its pseudocode (later manuals order -0 below +0).
    ]
    max[a, b](): max_f32 f32, max_f64 f64
}
per_float! {
    [/// `abs`: a without its sign; of a NaN the type's NaN.
     ///
     /// # Source
     /// PTX ISA §9.7.3.9.
    ]
    abs[a](): abs_f32 f32, abs_f64 f64
}
per_float! {
    [/// `neg`: a with its sign turned; of a NaN the type's NaN.
     ///
     /// # Source
     /// PTX ISA §9.7.3.10.
    ]
    neg[a](): neg_f32 f32, neg_f64 f64
}

#[inline]
fn abs<T: Float>(a: T) -> T {
    if is_nan(a) { T::nan(&[a]) } else { magnitude(a) }
}

/// a with its sign bit cleared.
#[inline]
fn magnitude<T: Float>(a: T) -> T {
    T::of_pattern(a.pattern() & (T::FORMAT.sign_bit() - 1))
}

#[inline]
fn neg<T: Float>(a: T) -> T {
    if is_nan(a) { T::nan(&[a]) } else { a.negated() }
}

/// `copysign.f32`: the magnitude of **b** with the sign of **a** (the operands of C's `copysign` are
/// reversed).
///
/// # Rounding and NaN
/// Only the sign bit changes, also for a NaN.
///
/// # Source
/// PTX ISA §9.7.3.2.
#[inline]
#[must_use]
pub fn copysign_f32(a: f32, b: f32) -> f32 {
    f32::from_bits((a.to_bits() & 0x8000_0000) | (b.to_bits() & 0x7fff_ffff))
}

/// `copysign.f64`: the magnitude of **b** with the sign of **a** (the operands of C's `copysign` are
/// reversed).
///
/// # Rounding and NaN
/// Only the sign bit changes, also for a NaN.
///
/// # Source
/// PTX ISA §9.7.3.2.
#[inline]
#[must_use]
pub fn copysign_f64(a: f64, b: f64) -> f64 {
    let sign = 1 << 63;
    f64::from_bits((a.to_bits() & sign) | (b.to_bits() & !sign))
}

/// A property that `testp` tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TestpOp {
    /// Neither infinite nor a NaN.
    Finite,
    /// Positive or negative infinity.
    Infinite,
    /// Not a NaN.
    Number,
    /// A NaN.
    NotANumber,
    /// Neither NaN, infinite nor subnormal; both zeros count as normal.
    Normal,
    /// Subnormal; not zero.
    Subnormal,
}

/// `testp.f32`: whether a has the property.
///
/// # Source
/// PTX ISA §9.7.3.1.
#[inline]
#[must_use]
pub fn testp_f32(op: TestpOp, a: f32) -> bool {
    testp(op, a.classify())
}

/// `testp.f64`: whether a has the property.
///
/// # Source
/// PTX ISA §9.7.3.1.
#[inline]
#[must_use]
pub fn testp_f64(op: TestpOp, a: f64) -> bool {
    testp(op, a.classify())
}

#[inline]
fn testp(op: TestpOp, class: core::num::FpCategory) -> bool {
    use core::num::FpCategory::{Infinite, Nan, Normal, Subnormal, Zero};
    match op {
        TestpOp::Finite => matches!(class, Normal | Subnormal | Zero),
        TestpOp::Infinite => class == Infinite,
        TestpOp::Number => class != Nan,
        TestpOp::NotANumber => class == Nan,
        TestpOp::Normal => matches!(class, Normal | Zero),
        TestpOp::Subnormal => class == Subnormal,
    }
}

/// `.ftz` of an operand or a result: a subnormal becomes a zero with its sign; other values, including NaNs,
/// stay.
///
/// # Source
/// PTX ISA §9.7.3.
#[inline]
#[must_use]
pub fn ftz_f32(a: f32) -> f32 {
    let bits = a.to_bits();
    if bits & 0x7f80_0000 == 0 { f32::from_bits(bits & 0x8000_0000) } else { a }
}

/// 2^64. Numbers that are normal or zero are multiplied by it exactly, unless they overflow.
const SCALE: f32 = (1u128 << 64) as f32;

/// A result of `.ftz`, given the same result computed 2^64 times as large. A number that is subnormal when it
/// is rounded to 24 bits becomes a zero with its sign, even if it is rounded to the least normal number.
///
/// # Source
/// PTX ISA §9.7.3, which does not say whether a result is flushed before or after rounding. Devices flush
/// what is below 2^-126 when it is rounded to 24 bits (reading A178).
#[inline(always)]
pub(crate) fn flushed(result: f32, scaled: f32) -> f32 {
    if scaled.abs() < f32::MIN_POSITIVE * SCALE { 0.0_f32.copysign(result) } else { result }
}

/// `mul.ftz.f32` of flushed operands.
///
/// # Rounding and NaN
/// As [`mul_f32`]. A product that is subnormal when it is rounded to 24 bits becomes a zero with its sign.
///
/// # Source
/// PTX ISA §9.7.3.5.
#[inline]
#[must_use]
pub fn mul_ftz_f32(a: f32, b: f32, rnd: Rnd) -> f32 {
    flushed(mul_f32(a, b, rnd), mul_f32(a * SCALE, b, rnd))
}

/// `fma.ftz.f32` of flushed operands.
///
/// # Rounding and NaN
/// As [`fma_f32`]. A sum that is subnormal when it is rounded to 24 bits becomes a zero with its sign.
///
/// # Source
/// PTX ISA §9.7.3.6.
#[inline]
#[must_use]
pub fn fma_ftz_f32(a: f32, b: f32, c: f32, rnd: Rnd) -> f32 {
    flushed(fma_f32(a, b, c, rnd), fma_f32(a * SCALE, b, c * SCALE, rnd))
}

/// [`fma_ftz_f32`] with rounding to nearest, by the host's fused multiply-add, like [`fma_host_f32`].
///
/// # Source
/// PTX ISA §9.7.3.6.
#[inline]
#[must_use]
pub fn fma_ftz_host_f32(a: f32, b: f32, c: f32) -> f32 {
    flushed(fma_host_f32(a, b, c), (a * SCALE).mul_add(b, c * SCALE))
}

/// `div.ftz.f32` of flushed operands.
///
/// # Rounding and NaN
/// As [`div_f32`]. A quotient that is subnormal becomes a zero with its sign, even if it would be rounded up
/// to the least normal number. (No quotient lies so close to it that 24 bits would make a difference.)
///
/// # Source
/// PTX ISA §9.7.3.8.
#[inline]
#[must_use]
pub fn div_ftz_f32(a: f32, b: f32, rnd: Rnd) -> f32 {
    let quotient = ftz_f32(div_f32(a, b, rnd));
    let least = quotient.abs() == f32::MIN_POSITIVE;
    // The product with a power of two is exact in double precision.
    let below = f64::from(a.abs()) < f64::from(b.abs()) * f64::from(f32::MIN_POSITIVE);
    if least && below { 0.0_f32.copysign(quotient) } else { quotient }
}

/// `rcp.ftz.f32` of a flushed operand, like [`div_ftz_f32`].
///
/// # Source
/// PTX ISA §9.7.3.13.
#[inline]
#[must_use]
pub fn rcp_ftz_f32(a: f32, rnd: Rnd) -> f32 {
    div_ftz_f32(1.0, a, rnd)
}

/// The flush of `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: a subnormal becomes a zero with its sign;
/// other values stay.
///
/// # Source
/// PTX ISA §9.7.3.14, §9.7.3.17.
#[inline]
#[must_use]
pub fn ftz_f64(a: f64) -> f64 {
    let bits = a.to_bits();
    if bits & 0x7ff0_0000_0000_0000 == 0 { f64::from_bits(bits & (1 << 63)) } else { a }
}

/// `.sat`: a clamped to 0.0..1.0; NaN and -0 become +0.
///
/// # Source
/// PTX ISA §9.7.3. It does not mention -0, which a clamp to +0.0 treats as below.
#[inline]
#[must_use]
pub fn sat_f32(a: f32) -> f32 {
    if a > 0.0 { if a < 1.0 { a } else { 1.0 } } else { 0.0 }
}

/// `.sat` of `cvt` to `.f64`: a clamped to 0.0..1.0; NaN and -0 become +0.
///
/// # Source
/// PTX ISA §9.7.8.14.
#[inline]
#[must_use]
pub fn sat_f64(a: f64) -> f64 {
    if a > 0.0 { if a < 1.0 { a } else { 1.0 } } else { 0.0 }
}
