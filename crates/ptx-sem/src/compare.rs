//! Comparison and selection: the relations of `set` and `setp`, their Boolean operator, and `slct` (PTX ISA
//! 6.4 §9.7.5, §9.7.6).
//!
//! `setp` computes t = [`cmp_u32`] (or the function for its type) of a and b, p = [`bool_op`] of t and c, and
//! q = [`bool_op`] of **not t** and c. q uses the complement of the comparison, so it is true for an ordered
//! comparison with a NaN. `set` converts p by [`set_u32`] and the like. `selp` needs no function. The caller
//! first applies `.ftz` to the operands (`ftz_f32`).
//!
//! **Invariant:** every relation is defined for every type. The manual allows fewer combinations, and the
//! checker rejects the others. Here the unsigned names mean the plain relation of the type, and for integers
//! the unordered relations equal the ordered ones.

use core::cmp::Ordering;

/// A relation of `set` and `setp` (`.CmpOp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cmp {
    /// Equal; false with a NaN.
    Eq,
    /// Not equal; false with a NaN.
    Ne,
    /// Less; false with a NaN.
    Lt,
    /// Less or equal; false with a NaN.
    Le,
    /// Greater; false with a NaN.
    Gt,
    /// Greater or equal; false with a NaN.
    Ge,
    /// Lower: `Lt` of unsigned integers.
    Lo,
    /// Lower or same: `Le` of unsigned integers.
    Ls,
    /// Higher: `Gt` of unsigned integers.
    Hi,
    /// Higher or same: `Ge` of unsigned integers.
    Hs,
    /// Equal, or an operand is a NaN.
    Equ,
    /// Not equal, or an operand is a NaN.
    Neu,
    /// Less, or an operand is a NaN.
    Ltu,
    /// Less or equal, or an operand is a NaN.
    Leu,
    /// Greater, or an operand is a NaN.
    Gtu,
    /// Greater or equal, or an operand is a NaN.
    Geu,
    /// Both operands are numbers.
    Num,
    /// An operand is a NaN.
    Nan,
}

/// The operator that combines a comparison with a predicate (`.BoolOp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoolOp {
    /// Both.
    And,
    /// Either or both.
    Or,
    /// Exactly one.
    Xor,
}

/// `t BoolOp c`. For the form `!c` the caller negates c first.
///
/// # Source
/// PTX ISA §9.7.5.1, §9.7.5.2.
#[inline]
#[must_use]
pub fn bool_op(op: BoolOp, t: bool, c: bool) -> bool {
    match op {
        BoolOp::And => t & c,
        BoolOp::Or => t | c,
        BoolOp::Xor => t ^ c,
    }
}

#[inline]
fn cmp<T: PartialOrd>(op: Cmp, a: T, b: T) -> bool {
    match op {
        Cmp::Eq => a == b,
        Cmp::Ne => matches!(a.partial_cmp(&b), Some(Ordering::Less | Ordering::Greater)),
        Cmp::Lt | Cmp::Lo => a < b,
        Cmp::Le | Cmp::Ls => a <= b,
        Cmp::Gt | Cmp::Hi => a > b,
        Cmp::Ge | Cmp::Hs => a >= b,
        Cmp::Equ => !matches!(a.partial_cmp(&b), Some(Ordering::Less | Ordering::Greater)),
        Cmp::Neu => a != b,
        Cmp::Ltu => !matches!(a.partial_cmp(&b), Some(Ordering::Equal | Ordering::Greater)),
        Cmp::Leu => a.partial_cmp(&b) != Some(Ordering::Greater),
        Cmp::Gtu => !matches!(a.partial_cmp(&b), Some(Ordering::Equal | Ordering::Less)),
        Cmp::Geu => a.partial_cmp(&b) != Some(Ordering::Less),
        Cmp::Num => a.partial_cmp(&b).is_some(),
        Cmp::Nan => a.partial_cmp(&b).is_none(),
    }
}

macro_rules! cmp_functions {
    ($($name:ident $ty:ty;)+) => {$(
        /// Whether `a CmpOp b` holds in this type; -0 equals +0.
        ///
        /// `.b16`, `.b32` and `.b64` compare as the unsigned type of their width.
        ///
        /// # Rounding and NaN
        /// With a NaN the ordered relations are false, the unordered ones (`equ` ...) true.
        ///
        /// # Source
        /// PTX ISA §9.7.5.1, §9.7.5.2.
        #[inline]
        #[must_use]
        pub fn $name(op: Cmp, a: $ty, b: $ty) -> bool {
            cmp(op, a, b)
        }
    )+};
}
cmp_functions! {
    cmp_u16 u16;
    cmp_s16 i16;
    cmp_u32 u32;
    cmp_s32 i32;
    cmp_u64 u64;
    cmp_s64 i64;
    cmp_f32 f32;
    cmp_f64 f64;
}

/// An integer that orders like the half; `None` for a NaN.
#[inline]
fn half_order(a: u16) -> Option<i32> {
    let magnitude = i32::from(a & 0x7fff);
    if magnitude > 0x7c00 {
        None
    } else if a & 0x8000 == 0 {
        Some(magnitude)
    } else {
        Some(-magnitude)
    }
}

/// A half as bits, ordered by its value.
#[derive(Clone, Copy)]
struct Half(u16);

impl PartialEq for Half {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Half {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(half_order(self.0)?.cmp(&half_order(other.0)?))
    }
}

/// Whether `a CmpOp b` holds for two halves, given as bits; -0 equals +0.
///
/// For `.f16x2` the caller compares the two halves separately.
///
/// # Rounding and NaN
/// With a NaN the ordered relations are false, the unordered ones (`equ` ...) true.
///
/// # Source
/// PTX ISA §9.7.6.1, §9.7.6.2.
#[inline]
#[must_use]
pub fn cmp_f16(op: Cmp, a: u16, b: u16) -> bool {
    cmp(op, Half(a), Half(b))
}

/// Whether `a CmpOp b` holds for two `.bf16` numbers, given as bits; -0 equals +0.
///
/// For `.bf16x2` the caller compares the two halves separately.
///
/// # Rounding and NaN
/// With a NaN the ordered relations are false, the unordered ones (`equ` ...) true.
///
/// # Source
/// PTX ISA 7.8, `set` and `setp` of half precision.
#[inline(always)]
#[must_use]
pub fn cmp_bf16(op: Cmp, a: u16, b: u16) -> bool {
    cmp(op, crate::bfloat::f32_of_bf16(a), crate::bfloat::f32_of_bf16(b))
}

/// The result of `set` with destination type `.u16` (and, as a pattern, `.s16`): all ones for true, 0 for
/// false.
///
/// # Source
/// PTX ISA 6.5, `set` of half precision.
#[inline]
#[must_use]
pub fn set_u16(t: bool) -> u16 {
    0u16.wrapping_sub(u16::from(t))
}

/// The result of `set` of a packed type with destination type `.u32` or `.s32`: all ones or 0 in each half.
///
/// # Source
/// PTX ISA 6.5, `set` of half precision.
#[inline]
#[must_use]
pub fn set_u16x2(low: bool, high: bool) -> u32 {
    u32::from(set_u16(high)) << 16 | u32::from(set_u16(low))
}

/// The result of `set` with destination type `.bf16`: the bits of 1.0 for true, of +0 for false.
///
/// # Source
/// PTX ISA 7.8, `set` of half precision.
#[inline]
#[must_use]
pub fn set_bf16(t: bool) -> u16 {
    if t { 0x3f80 } else { 0 }
}

/// The result of `set` with destination type `.bf16x2`: 1.0 or +0 in each half.
///
/// # Source
/// PTX ISA 7.8, `set` of half precision.
#[inline]
#[must_use]
pub fn set_bf16x2(low: bool, high: bool) -> u32 {
    u32::from(set_bf16(high)) << 16 | u32::from(set_bf16(low))
}

/// The result of `set` with destination type `.u32` (and, as a pattern, `.s32`): all ones for true, 0 for
/// false.
///
/// # Source
/// PTX ISA §9.7.5.1.
#[inline]
#[must_use]
pub fn set_u32(t: bool) -> u32 {
    0u32.wrapping_sub(u32::from(t))
}

/// The result of `set` with destination type `.s32`: -1 for true, 0 for false.
///
/// # Source
/// PTX ISA §9.7.5.1.
#[inline]
#[must_use]
pub fn set_s32(t: bool) -> i32 {
    -i32::from(t)
}

/// The result of `set` with destination type `.f32`: 1.0 for true, +0 for false.
///
/// # Source
/// PTX ISA §9.7.5.1.
#[inline]
#[must_use]
pub fn set_f32(t: bool) -> f32 {
    if t { 1.0 } else { 0.0 }
}

/// The result of `set` with destination type `.f16`: the bits of 1.0 for true, of +0 for false.
///
/// # Source
/// PTX ISA §9.7.6.1.
#[inline]
#[must_use]
pub fn set_f16(t: bool) -> u16 {
    if t { 0x3c00 } else { 0 }
}

/// The result of `set` with destination type `.f16x2`: 1.0 or +0 in each half.
///
/// # Source
/// PTX ISA §9.7.6.1.
#[inline]
#[must_use]
pub fn set_f16x2(low: bool, high: bool) -> u32 {
    u32::from(set_f16(high)) << 16 | u32::from(set_f16(low))
}

macro_rules! slct {
    ($($name:ident $ty:ty, $by:ty, $zero:literal;)+) => {$(
        /// `slct`: a if c >= 0, else b. The selected value is copied unchanged.
        ///
        /// -0 counts as zero, so it selects a (and so does a negative subnormal that `.ftz` flushed). NaN
        /// selects b.
        ///
        /// # Source
        /// PTX ISA §9.7.5.4.
        #[inline]
        #[must_use]
        pub fn $name(a: $ty, b: $ty, c: $by) -> $ty {
            if c >= $zero { a } else { b }
        }
    )+};
}
slct! {
    slct_b16_s32 u16, i32, 0;
    slct_b32_s32 u32, i32, 0;
    slct_b64_s32 u64, i32, 0;
    slct_b16_f32 u16, f32, 0.0;
    slct_b32_f32 u32, f32, 0.0;
    slct_b64_f32 u64, f32, 0.0;
}
