//! `min` and `max` of the 16-bit formats, and the `.NaN` and `.xorsign.abs` of `min` and `max` (PTX ISA 7.0,
//! 7.2).
//!
//! In each format the bits of a number without its sign grow with the number. `.f16` and `.bf16` therefore
//! share their code, with the first NaN pattern as a parameter. For `.f32`, `min_f32` and `max_f32` choose
//! the number.
//!
//! **Invariant:** a result is one of the operands (except for its sign with `.xorsign.abs`), or the NaN
//! 0x7fff (0x7fffffff). In the 16-bit formats -0 is less than +0, as the manual says. For `.f32` the manual
//! does not say so, and the second of two equal operands is the result. The caller applies `.ftz`.

use crate::float::{NAN_F32, max_f32, min_f32};

/// The NaN of both 16-bit formats.
const NAN: u16 = 0x7fff;

/// A 16-bit format: the bits of infinity.
#[derive(Clone, Copy)]
struct Format(u16);

const F16: Format = Format(0x7c00);
const BF16: Format = Format(0x7f80);

impl Format {
    #[inline(always)]
    fn is_nan(self, a: u16) -> bool {
        a & 0x7fff > self.0
    }

    /// The operand that `first` selects, or the only number; NaN if both are NaN.
    #[inline(always)]
    fn choose(self, a: u16, b: u16, first: bool) -> u16 {
        let chosen = if first { a } else { b };
        let number = if self.is_nan(a) { b } else { chosen };
        let number = if self.is_nan(b) { a } else { number };
        if self.is_nan(a) & self.is_nan(b) { NAN } else { number }
    }

    /// Like [`Format::choose`], but NaN if either operand is NaN.
    #[inline(always)]
    fn choose_or_nan(self, a: u16, b: u16, first: bool) -> u16 {
        if self.is_nan(a) | self.is_nan(b) { NAN } else { self.choose(a, b, first) }
    }

    /// A number with the exclusive or of two signs; a NaN stays.
    #[inline(always)]
    fn signed(self, number: u16, a: u16, b: u16) -> u16 {
        if self.is_nan(number) { number } else { number | (a ^ b) & 0x8000 }
    }
}

/// Bits that order as signed integers like the numbers, with -0 just below +0.
#[inline(always)]
fn key(a: u16) -> i16 {
    let bits = a.cast_signed();
    bits ^ ((bits >> 15) & 0x7fff)
}

#[inline(always)]
fn less(a: u16, b: u16) -> bool {
    key(a) < key(b)
}

#[inline(always)]
fn greater(a: u16, b: u16) -> bool {
    key(a) > key(b)
}

macro_rules! sixteen_bits {
    ($($format:ident $order:ident $what:literal $plain:ident $nan:ident $signed:ident $signed_nan:ident;)+) => {$(
        #[doc = concat!($what, ". If one operand is a NaN, the other is the result.")]
        ///
        /// # Rounding and NaN
        /// Two NaNs give 0x7fff. -0 is less than +0.
        ///
        /// # Source
        /// PTX ISA 7.0, `min` and `max` of half precision.
        #[inline(always)]
        #[must_use]
        pub fn $plain(a: u16, b: u16) -> u16 {
            $format.choose(a, b, $order(a, b))
        }

        #[doc = concat!($what, ", `.NaN`: 0x7fff if either operand is a NaN.")]
        ///
        /// # Source
        /// PTX ISA 7.0, `min` and `max` of half precision.
        #[inline(always)]
        #[must_use]
        pub fn $nan(a: u16, b: u16) -> u16 {
            $format.choose_or_nan(a, b, $order(a, b))
        }

        #[doc = concat!($what, " of the magnitudes, `.xorsign.abs`, with the exclusive or of the signs.")]
        ///
        /// # Rounding and NaN
        /// If one operand is a NaN, the other is the result, with the exclusive or of both signs. Two NaNs
        /// give 0x7fff.
        ///
        /// # Source
        /// PTX ISA 7.2, `min` and `max` of half precision.
        #[inline(always)]
        #[must_use]
        pub fn $signed(a: u16, b: u16) -> u16 {
            $format.signed($plain(a & 0x7fff, b & 0x7fff), a, b)
        }

        #[doc = concat!($what, " of the magnitudes, `.NaN.xorsign.abs`.")]
        ///
        /// # Source
        /// PTX ISA 7.2, `min` and `max` of half precision.
        #[inline(always)]
        #[must_use]
        pub fn $signed_nan(a: u16, b: u16) -> u16 {
            $format.signed($nan(a & 0x7fff, b & 0x7fff), a, b)
        }
    )+};
}
sixteen_bits! {
    F16 less "`min.f16`: the smaller" min_f16 min_nan_f16 min_xorsign_abs_f16 min_nan_xorsign_abs_f16;
    F16 greater "`max.f16`: the larger" max_f16 max_nan_f16 max_xorsign_abs_f16 max_nan_xorsign_abs_f16;
    BF16 less "`min.bf16`: the smaller" min_bf16 min_nan_bf16 min_xorsign_abs_bf16 min_nan_xorsign_abs_bf16;
    BF16 greater "`max.bf16`: the larger" max_bf16 max_nan_bf16 max_xorsign_abs_bf16 max_nan_xorsign_abs_bf16;
}

per_half! {
    "`min.f16x2`: each half as [`min_f16`]." min_f16x2 min_f16(a, b);
    "`min.NaN.f16x2`: each half as [`min_nan_f16`]." min_nan_f16x2 min_nan_f16(a, b);
    "`min.xorsign.abs.f16x2`: each half as [`min_xorsign_abs_f16`]." min_xorsign_abs_f16x2 min_xorsign_abs_f16(a, b);
    "`min.NaN.xorsign.abs.f16x2`: each half as [`min_nan_xorsign_abs_f16`]." min_nan_xorsign_abs_f16x2 min_nan_xorsign_abs_f16(a, b);
    "`max.f16x2`: each half as [`max_f16`]." max_f16x2 max_f16(a, b);
    "`max.NaN.f16x2`: each half as [`max_nan_f16`]." max_nan_f16x2 max_nan_f16(a, b);
    "`max.xorsign.abs.f16x2`: each half as [`max_xorsign_abs_f16`]." max_xorsign_abs_f16x2 max_xorsign_abs_f16(a, b);
    "`max.NaN.xorsign.abs.f16x2`: each half as [`max_nan_xorsign_abs_f16`]." max_nan_xorsign_abs_f16x2 max_nan_xorsign_abs_f16(a, b);
    "`min.bf16x2`: each half as [`min_bf16`]." min_bf16x2 min_bf16(a, b);
    "`min.NaN.bf16x2`: each half as [`min_nan_bf16`]." min_nan_bf16x2 min_nan_bf16(a, b);
    "`min.xorsign.abs.bf16x2`: each half as [`min_xorsign_abs_bf16`]." min_xorsign_abs_bf16x2 min_xorsign_abs_bf16(a, b);
    "`min.NaN.xorsign.abs.bf16x2`: each half as [`min_nan_xorsign_abs_bf16`]." min_nan_xorsign_abs_bf16x2 min_nan_xorsign_abs_bf16(a, b);
    "`max.bf16x2`: each half as [`max_bf16`]." max_bf16x2 max_bf16(a, b);
    "`max.NaN.bf16x2`: each half as [`max_nan_bf16`]." max_nan_bf16x2 max_nan_bf16(a, b);
    "`max.xorsign.abs.bf16x2`: each half as [`max_xorsign_abs_bf16`]." max_xorsign_abs_bf16x2 max_xorsign_abs_bf16(a, b);
    "`max.NaN.xorsign.abs.bf16x2`: each half as [`max_nan_xorsign_abs_bf16`]." max_nan_xorsign_abs_bf16x2 max_nan_xorsign_abs_bf16(a, b);
}

macro_rules! single {
    ($($what:literal $plain:ident $nan:ident $signed:ident $signed_nan:ident;)+) => {$(
        #[doc = concat!("`", $what, ".NaN.f32`: the same as without `.NaN`, but 0x7fffffff if either operand is a NaN.")]
        ///
        /// # Source
        /// PTX ISA 7.0, `min` and `max`.
        #[inline]
        #[must_use]
        pub fn $nan(a: f32, b: f32) -> f32 {
            if a.is_nan() | b.is_nan() { NAN_F32 } else { $plain(a, b) }
        }

        #[doc = concat!("`", $what, ".xorsign.abs.f32`: of the magnitudes, with the exclusive or of the signs.")]
        ///
        /// # Rounding and NaN
        /// If one operand is a NaN, the other is the result, with the exclusive or of both signs. Two NaNs
        /// give 0x7fffffff.
        ///
        /// # Source
        /// PTX ISA 7.2, `min` and `max`.
        #[inline]
        #[must_use]
        pub fn $signed(a: f32, b: f32) -> f32 {
            with_signs($plain(a.abs(), b.abs()), a, b)
        }

        #[doc = concat!("`", $what, ".NaN.xorsign.abs.f32`.")]
        ///
        /// # Source
        /// PTX ISA 7.2, `min` and `max`.
        #[inline]
        #[must_use]
        pub fn $signed_nan(a: f32, b: f32) -> f32 {
            with_signs($nan(a.abs(), b.abs()), a, b)
        }
    )+};
}
single! {
    "min" min_f32 min_nan_f32 min_xorsign_abs_f32 min_nan_xorsign_abs_f32;
    "max" max_f32 max_nan_f32 max_xorsign_abs_f32 max_nan_xorsign_abs_f32;
}

/// A number with the exclusive or of two signs; a NaN stays.
#[inline]
fn with_signs(number: f32, a: f32, b: f32) -> f32 {
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    if number.is_nan() { number } else { f32::from_bits(number.to_bits() | sign) }
}
