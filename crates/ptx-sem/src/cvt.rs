//! Conversion: `cvt` between all integer and float types (PTX ISA 6.4 §9.7.8.14, §6.5), and `cvt.pack` (6.5).
//!
//! `cvt_D_S` is `cvt.D.S`. A rounding mode of the instruction is an argument ([`Rnd`] to a float, [`RndInt`]
//! to an integral value). `cvt_sat_D_S` is the integer conversion with `.sat`. The caller composes `.sat` to
//! a float type and `.ftz` (`sat_f32`, `ftz_f32`). `cvt` between equal float types is a copy without a
//! rounding mode, and [`round_f32`] and the like with one.
//!
//! **Invariant:** arguments and results have exactly their types. The caller truncates a source in a wider
//! register to its type, and extends the result to a wider register by the sign of the **destination** type,
//! so `cvt.u16.s8` of -128 in a 32-bit register is 0x0000ff80.

use crate::float::{NAN_F32, flushed};
use crate::half::{NAN_F16, f16_of_f64, f64_of_f16};
use crate::soft::{self, Rnd};

/// The 64-bit integer of which only the highest bit is 1.
const HIGHEST_BIT: u64 = 1 << 63;

/// The rounding of a float to an integral value (`.irnd`).
///
/// # Source
/// PTX ISA §6.5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RndInt {
    /// `.rni`: to the nearest integer, ties to the even one.
    Rni,
    /// `.rzi`: towards zero.
    Rzi,
    /// `.rmi`: towards negative infinity.
    Rmi,
    /// `.rpi`: towards positive infinity.
    Rpi,
}

macro_rules! int_to_int {
    ($($name:ident $from:ty => $to:ty;)+) => {$(
        /// `cvt` between integers: a extended by the sign of **its own** type, then truncated to the
        /// destination's width.
        ///
        /// # Source
        /// PTX ISA §9.7.8.14, table 13.
        #[inline]
        #[must_use]
        pub fn $name(a: $from) -> $to {
            a as $to
        }
    )+};
}
int_to_int! {
    cvt_u8_u8 u8 => u8; cvt_u8_u16 u16 => u8; cvt_u8_u32 u32 => u8; cvt_u8_u64 u64 => u8; cvt_u8_s8 i8 => u8; cvt_u8_s16 i16 => u8; cvt_u8_s32 i32 => u8; cvt_u8_s64 i64 => u8;
    cvt_u16_u8 u8 => u16; cvt_u16_u16 u16 => u16; cvt_u16_u32 u32 => u16; cvt_u16_u64 u64 => u16; cvt_u16_s8 i8 => u16; cvt_u16_s16 i16 => u16; cvt_u16_s32 i32 => u16; cvt_u16_s64 i64 => u16;
    cvt_u32_u8 u8 => u32; cvt_u32_u16 u16 => u32; cvt_u32_u32 u32 => u32; cvt_u32_u64 u64 => u32; cvt_u32_s8 i8 => u32; cvt_u32_s16 i16 => u32; cvt_u32_s32 i32 => u32; cvt_u32_s64 i64 => u32;
    cvt_u64_u8 u8 => u64; cvt_u64_u16 u16 => u64; cvt_u64_u32 u32 => u64; cvt_u64_u64 u64 => u64; cvt_u64_s8 i8 => u64; cvt_u64_s16 i16 => u64; cvt_u64_s32 i32 => u64; cvt_u64_s64 i64 => u64;
    cvt_s8_u8 u8 => i8; cvt_s8_u16 u16 => i8; cvt_s8_u32 u32 => i8; cvt_s8_u64 u64 => i8; cvt_s8_s8 i8 => i8; cvt_s8_s16 i16 => i8; cvt_s8_s32 i32 => i8; cvt_s8_s64 i64 => i8;
    cvt_s16_u8 u8 => i16; cvt_s16_u16 u16 => i16; cvt_s16_u32 u32 => i16; cvt_s16_u64 u64 => i16; cvt_s16_s8 i8 => i16; cvt_s16_s16 i16 => i16; cvt_s16_s32 i32 => i16; cvt_s16_s64 i64 => i16;
    cvt_s32_u8 u8 => i32; cvt_s32_u16 u16 => i32; cvt_s32_u32 u32 => i32; cvt_s32_u64 u64 => i32; cvt_s32_s8 i8 => i32; cvt_s32_s16 i16 => i32; cvt_s32_s32 i32 => i32; cvt_s32_s64 i64 => i32;
    cvt_s64_u8 u8 => i64; cvt_s64_u16 u16 => i64; cvt_s64_u32 u32 => i64; cvt_s64_u64 u64 => i64; cvt_s64_s8 i8 => i64; cvt_s64_s16 i16 => i64; cvt_s64_s32 i32 => i64; cvt_s64_s64 i64 => i64;
}

/// The nearest value of the destination type.
#[inline]
fn saturate<S: TryInto<D> + PartialOrd + Default + Copy, D>(a: S, least: D, greatest: D) -> D {
    a.try_into().unwrap_or(if a < S::default() { least } else { greatest })
}

macro_rules! int_to_int_sat {
    ($($name:ident $from:ty => $to:ty;)+) => {$(
        /// `cvt.sat` between integers: a clamped to the range of the destination type.
        ///
        /// Functions exist for the pairs whose destination cannot hold every source value; for the others
        /// `.sat` is illegal.
        ///
        /// # Source
        /// PTX ISA §9.7.8.14.
        #[inline]
        #[must_use]
        pub fn $name(a: $from) -> $to {
            saturate(a, <$to>::MIN, <$to>::MAX)
        }
    )+};
}
int_to_int_sat! {
    cvt_sat_u8_u16 u16 => u8; cvt_sat_u8_u32 u32 => u8; cvt_sat_u8_u64 u64 => u8; cvt_sat_u8_s8 i8 => u8; cvt_sat_u8_s16 i16 => u8; cvt_sat_u8_s32 i32 => u8; cvt_sat_u8_s64 i64 => u8;
    cvt_sat_u16_u32 u32 => u16; cvt_sat_u16_u64 u64 => u16; cvt_sat_u16_s8 i8 => u16; cvt_sat_u16_s16 i16 => u16; cvt_sat_u16_s32 i32 => u16; cvt_sat_u16_s64 i64 => u16;
    cvt_sat_u32_u64 u64 => u32; cvt_sat_u32_s8 i8 => u32; cvt_sat_u32_s16 i16 => u32; cvt_sat_u32_s32 i32 => u32; cvt_sat_u32_s64 i64 => u32;
    cvt_sat_u64_s8 i8 => u64; cvt_sat_u64_s16 i16 => u64; cvt_sat_u64_s32 i32 => u64; cvt_sat_u64_s64 i64 => u64;
    cvt_sat_s8_u8 u8 => i8; cvt_sat_s8_u16 u16 => i8; cvt_sat_s8_u32 u32 => i8; cvt_sat_s8_u64 u64 => i8; cvt_sat_s8_s16 i16 => i8; cvt_sat_s8_s32 i32 => i8; cvt_sat_s8_s64 i64 => i8;
    cvt_sat_s16_u16 u16 => i16; cvt_sat_s16_u32 u32 => i16; cvt_sat_s16_u64 u64 => i16; cvt_sat_s16_s32 i32 => i16; cvt_sat_s16_s64 i64 => i16;
    cvt_sat_s32_u32 u32 => i32; cvt_sat_s32_u64 u64 => i32; cvt_sat_s32_s64 i64 => i32;
    cvt_sat_s64_u64 u64 => i64;
}

/// The sign and magnitude of an integer.
trait Signed {
    fn sign_magnitude(self) -> (bool, u64);
}

macro_rules! impl_signed {
    ($($unsigned:ty, $signed:ty;)+) => {$(
        impl Signed for $unsigned {
            #[inline]
            fn sign_magnitude(self) -> (bool, u64) {
                (false, u64::from(self))
            }
        }
        impl Signed for $signed {
            #[inline]
            fn sign_magnitude(self) -> (bool, u64) {
                (self < 0, u64::from(self.unsigned_abs()))
            }
        }
    )+};
}
impl_signed! {
    u8, i8;
    u16, i16;
    u32, i32;
    u64, i64;
}

/// An integer rounded to a format in any mode, in integer arithmetic.
#[inline]
fn round_int(to: soft::Format, a: impl Signed, rnd: Rnd) -> u64 {
    let (sign, magnitude) = a.sign_magnitude();
    soft::from_int(to, sign, magnitude, rnd)
}

macro_rules! int_to_float {
    ($($f32:ident $from:ty, $f64:ident, $f16:ident;)+) => {$(
        /// `cvt.rnd` of an integer to `.f32`: the value, correctly rounded; 0 gives +0.
        ///
        /// # Source
        /// PTX ISA §9.7.8.14.
        #[inline]
        #[must_use]
        pub fn $f32(a: $from, rnd: Rnd) -> f32 {
            match rnd {
                Rnd::Rn => a as f32,
                Rnd::Rz | Rnd::Rm | Rnd::Rp => f32::from_bits(round_int(soft::F32, a, rnd) as u32),
            }
        }

        /// `cvt.rnd` of an integer to `.f64`: the value, correctly rounded; 0 gives +0.
        ///
        /// # Source
        /// PTX ISA §9.7.8.14.
        #[inline]
        #[must_use]
        pub fn $f64(a: $from, rnd: Rnd) -> f64 {
            match rnd {
                Rnd::Rn => a as f64,
                Rnd::Rz | Rnd::Rm | Rnd::Rp => f64::from_bits(round_int(soft::F64, a, rnd)),
            }
        }

        /// `cvt.rnd` of an integer to `.f16` (bits): the value, correctly rounded; 0 gives +0.
        ///
        /// Beyond the range of halves the result is infinity or 65504, by the mode. The "~131,000" of PTX ISA
        /// §6.5.1 belongs to an older half format without infinities.
        ///
        /// # Source
        /// PTX ISA §9.7.8.14.
        #[inline]
        #[must_use]
        pub fn $f16(a: $from, rnd: Rnd) -> u16 {
            round_int(soft::F16, a, rnd) as u16
        }
    )+};
}
int_to_float! {
    cvt_f32_u8 u8, cvt_f64_u8, cvt_f16_u8;
    cvt_f32_u16 u16, cvt_f64_u16, cvt_f16_u16;
    cvt_f32_u32 u32, cvt_f64_u32, cvt_f16_u32;
    cvt_f32_u64 u64, cvt_f64_u64, cvt_f16_u64;
    cvt_f32_s8 i8, cvt_f64_s8, cvt_f16_s8;
    cvt_f32_s16 i16, cvt_f64_s16, cvt_f16_s16;
    cvt_f32_s32 i32, cvt_f64_s32, cvt_f16_s32;
    cvt_f32_s64 i64, cvt_f64_s64, cvt_f16_s64;
}

/// `cvt.irnd.f32.f32`: a rounded to an integral value of the same type; its sign is kept (-0.3 rounds to -0).
///
/// # Rounding and NaN
/// By `rnd`; infinities stay; a NaN gives 0x7fffffff.
///
/// # Source
/// PTX ISA §9.7.8.14.
#[inline]
#[must_use]
pub fn round_f32(a: f32, rnd: RndInt) -> f32 {
    if a.is_nan() {
        return NAN_F32;
    }
    match rnd {
        RndInt::Rni => a.round_ties_even(),
        RndInt::Rzi => a.trunc(),
        RndInt::Rmi => a.floor(),
        RndInt::Rpi => a.ceil(),
    }
}

/// `cvt.irnd.f64.f64`: a rounded to an integral value of the same type; its sign is kept (-0.3 rounds to -0).
///
/// # Rounding and NaN
/// By `rnd`; infinities stay; a NaN is made quiet.
///
/// # Source
/// PTX ISA §9.7.8.14.
#[inline]
#[must_use]
pub fn round_f64(a: f64, rnd: RndInt) -> f64 {
    if a.is_nan() {
        return quiet_f64(a.to_bits());
    }
    match rnd {
        RndInt::Rni => a.round_ties_even(),
        RndInt::Rzi => a.trunc(),
        RndInt::Rmi => a.floor(),
        RndInt::Rpi => a.ceil(),
    }
}

/// `cvt.irnd.f16.f16` (bits): a rounded to an integral value of the same type; its sign is kept.
///
/// # Rounding and NaN
/// By `rnd`; infinities stay; a NaN gives 0x7fff.
///
/// # Source
/// PTX ISA §9.7.8.14.
#[inline]
#[must_use]
pub fn round_f16(a: u16, rnd: RndInt) -> u16 {
    f16_of_f64(round_f64(f64_of_f16(a), rnd))
}

macro_rules! float_to_int {
    ($($f32:ident, $f64:ident, $f16:ident $to:ty;)+) => {$(
        /// `cvt.irnd` of `.f32` to an integer: a rounded to an integral value, clamped to the destination's
        /// range.
        ///
        /// # Rounding and NaN
        /// By `rnd`. NaN gives 0, or 2^63 (the least integer, if signed) as an integer of 64 bits, as
        /// hardware does (reading A97).
        ///
        /// # Source
        /// PTX ISA §9.7.8.14.
        #[inline]
        #[must_use]
        pub fn $f32(a: f32, rnd: RndInt) -> $to {
            match rnd {
                _ if <$to>::BITS == 64 && a.is_nan() => HIGHEST_BIT as $to,
                RndInt::Rzi => a as $to,
                RndInt::Rni | RndInt::Rmi | RndInt::Rpi => round_f32(a, rnd) as $to,
            }
        }

        /// `cvt.irnd` of `.f64` to an integer: a rounded to an integral value, clamped to the destination's
        /// range.
        ///
        /// # Rounding and NaN
        /// By `rnd`. NaN gives an integer of which only the highest bit is 1, as hardware does (reading A97).
        ///
        /// # Source
        /// PTX ISA §9.7.8.14.
        #[inline]
        #[must_use]
        pub fn $f64(a: f64, rnd: RndInt) -> $to {
            match rnd {
                _ if a.is_nan() => (HIGHEST_BIT >> (64 - <$to>::BITS)) as $to,
                RndInt::Rzi => a as $to,
                RndInt::Rni | RndInt::Rmi | RndInt::Rpi => round_f64(a, rnd) as $to,
            }
        }

        /// `cvt.irnd` of `.f16` (bits) to an integer: a rounded to an integral value, clamped to the
        /// destination's range.
        ///
        /// # Rounding and NaN
        /// As for `.f32`.
        ///
        /// # Source
        /// PTX ISA §9.7.8.14.
        #[inline]
        #[must_use]
        pub fn $f16(a: u16, rnd: RndInt) -> $to {
            $f32(f64_of_f16(a) as f32, rnd)
        }
    )+};
}
float_to_int! {
    cvt_u8_f32, cvt_u8_f64, cvt_u8_f16 u8;
    cvt_u16_f32, cvt_u16_f64, cvt_u16_f16 u16;
    cvt_u32_f32, cvt_u32_f64, cvt_u32_f16 u32;
    cvt_u64_f32, cvt_u64_f64, cvt_u64_f16 u64;
    cvt_s8_f32, cvt_s8_f64, cvt_s8_f16 i8;
    cvt_s16_f32, cvt_s16_f64, cvt_s16_f16 i16;
    cvt_s32_f32, cvt_s32_f64, cvt_s32_f16 i32;
    cvt_s64_f32, cvt_s64_f64, cvt_s64_f16 i64;
}

/// `cvt.rnd.f32.f64`: a, correctly rounded.
///
/// # Rounding and NaN
/// By `rnd`; a NaN gives 0x7fffffff.
///
/// # Source
/// PTX ISA §9.7.8.14.
#[inline]
#[must_use]
pub fn cvt_f32_f64(a: f64, rnd: Rnd) -> f32 {
    match rnd {
        _ if a.is_nan() => NAN_F32,
        Rnd::Rn => a as f32,
        Rnd::Rz | Rnd::Rm | Rnd::Rp => soft::convert(soft::F64, soft::F32, a.to_bits(), rnd)
            .map_or(NAN_F32, |bits| f32::from_bits(bits as u32)),
    }
}

/// `cvt.rnd.ftz.f32.f64`: like [`cvt_f32_f64`], but a number that is below 2^-126 when it is rounded to 24
/// bits gives a zero of its sign, as hardware does (reading A178).
///
/// # Rounding and NaN
/// As [`cvt_f32_f64`].
///
/// # Source
/// PTX ISA §9.7.8.14.
#[inline]
#[must_use]
pub fn cvt_ftz_f32_f64(a: f64, rnd: Rnd) -> f32 {
    // Scaling is exact: the scaled number is normal as `.f32`, so it is rounded to 24 bits.
    flushed(cvt_f32_f64(a, rnd), cvt_f32_f64(a * (1u128 << 64) as f64, rnd))
}

/// `cvt.rnd.f16.f64` (result bits): a, correctly rounded.
///
/// # Rounding and NaN
/// By `rnd`. Overflow gives infinity or 65504, by the mode (not the "~131,000" of PTX ISA §6.5.1, which
/// belongs to an older half format). A NaN gives 0x7fff.
///
/// # Source
/// PTX ISA §9.7.8.14.
#[inline]
#[must_use]
pub fn cvt_f16_f64(a: f64, rnd: Rnd) -> u16 {
    match rnd {
        Rnd::Rn => f16_of_f64(a),
        Rnd::Rz | Rnd::Rm | Rnd::Rp => {
            soft::convert(soft::F64, soft::F16, a.to_bits(), rnd).map_or(NAN_F16, |bits| bits as u16)
        }
    }
}

/// `cvt.rnd.f16.f32` (result bits): a, correctly rounded.
///
/// # Rounding and NaN
/// Like [`cvt_f16_f64`].
///
/// # Source
/// PTX ISA §9.7.8.14.
#[inline]
#[must_use]
pub fn cvt_f16_f32(a: f32, rnd: Rnd) -> u16 {
    cvt_f16_f64(f64::from(a), rnd)
}

/// `cvt.f32.f16` (operand bits): the exact value; a NaN gives 0x7fffffff.
///
/// # Source
/// PTX ISA §9.7.8.14.
#[inline]
#[must_use]
pub fn cvt_f32_f16(a: u16) -> f32 {
    let value = f64_of_f16(a);
    if value.is_nan() { NAN_F32 } else { value as f32 }
}

/// `cvt.f64.f16` (operand bits): the exact value.
///
/// # Rounding and NaN
/// A NaN keeps its sign and its payload, as the upper bits, and is made quiet.
///
/// # Source
/// PTX ISA §9.7.8.14.
#[inline]
#[must_use]
pub fn cvt_f64_f16(a: u16) -> f64 {
    let value = f64_of_f16(a);
    if value.is_nan() { quiet_f64(u64::from(a & 0x8000) << 48 | u64::from(a & 0x3ff) << 42) } else { value }
}

/// `cvt.f64.f32`: the exact value.
///
/// # Rounding and NaN
/// A NaN keeps its sign and its payload, as the upper bits, and is made quiet.
///
/// # Source
/// PTX ISA §9.7.8.14.
#[inline]
#[must_use]
pub fn cvt_f64_f32(a: f32) -> f64 {
    let bits = u64::from(a.to_bits());
    if a.is_nan() { quiet_f64((bits & 0x8000_0000) << 32 | (bits & 0x7f_ffff) << 29) } else { f64::from(a) }
}

/// The quiet NaN with this sign and payload.
#[inline]
fn quiet_f64(bits: u64) -> f64 {
    f64::from_bits(bits | 0x7ff8_0000_0000_0000)
}

/// `cvt.pack.sat.u16.s32`: both clamped to 16 bits, a in the high half.
///
/// # Source
/// PTX ISA 6.5, `cvt.pack`.
#[inline]
#[must_use]
pub fn cvt_pack_sat_u16_s32(a: i32, b: i32) -> u32 {
    let clamped = |x: i32| x.clamp(0, 0xffff).cast_unsigned();
    clamped(a) << 16 | clamped(b)
}

/// `cvt.pack.sat.s16.s32`: both clamped to 16 bits, a in the high half.
///
/// # Source
/// PTX ISA 6.5, `cvt.pack`.
#[inline]
#[must_use]
pub fn cvt_pack_sat_s16_s32(a: i32, b: i32) -> u32 {
    let clamped = |x: i32| x.clamp(-0x8000, 0x7fff).cast_unsigned() & 0xffff;
    clamped(a) << 16 | clamped(b)
}

/// `cvt.pack.sat.u8.s32.b32`: both clamped to 8 bits, below the low half of c.
///
/// # Source
/// PTX ISA 6.5, `cvt.pack`.
#[inline]
#[must_use]
pub fn cvt_pack_sat_u8_s32(a: i32, b: i32, c: u32) -> u32 {
    let clamped = |x: i32| x.clamp(0, 0xff).cast_unsigned();
    c << 16 | clamped(a) << 8 | clamped(b)
}

/// `cvt.pack.sat.s8.s32.b32`: both clamped to 8 bits, below the low half of c.
///
/// # Source
/// PTX ISA 6.5, `cvt.pack`.
#[inline]
#[must_use]
pub fn cvt_pack_sat_s8_s32(a: i32, b: i32, c: u32) -> u32 {
    let clamped = |x: i32| x.clamp(-0x80, 0x7f).cast_unsigned() & 0xff;
    c << 16 | clamped(a) << 8 | clamped(b)
}

/// `cvt.pack.sat.u4.s32.b32`: both clamped to 4 bits, below the low bits of c.
///
/// # Source
/// PTX ISA 6.5, `cvt.pack`.
#[inline]
#[must_use]
pub fn cvt_pack_sat_u4_s32(a: i32, b: i32, c: u32) -> u32 {
    let clamped = |x: i32| x.clamp(0, 0xf).cast_unsigned();
    c << 8 | clamped(a) << 4 | clamped(b)
}

/// `cvt.pack.sat.s4.s32.b32`: both clamped to 4 bits, below the low bits of c.
///
/// # Source
/// PTX ISA 6.5, `cvt.pack`.
#[inline]
#[must_use]
pub fn cvt_pack_sat_s4_s32(a: i32, b: i32, c: u32) -> u32 {
    let clamped = |x: i32| x.clamp(-8, 7).cast_unsigned() & 0xf;
    c << 8 | clamped(a) << 4 | clamped(b)
}

/// `cvt.pack.sat.u2.s32.b32`: both clamped to 2 bits, below the low bits of c.
///
/// # Source
/// PTX ISA 6.5, `cvt.pack`.
#[inline]
#[must_use]
pub fn cvt_pack_sat_u2_s32(a: i32, b: i32, c: u32) -> u32 {
    let clamped = |x: i32| x.clamp(0, 3).cast_unsigned();
    c << 4 | clamped(a) << 2 | clamped(b)
}

/// `cvt.pack.sat.s2.s32.b32`: both clamped to 2 bits, below the low bits of c.
///
/// # Source
/// PTX ISA 6.5, `cvt.pack`.
#[inline]
#[must_use]
pub fn cvt_pack_sat_s2_s32(a: i32, b: i32, c: u32) -> u32 {
    let clamped = |x: i32| x.clamp(-2, 1).cast_unsigned() & 0x3;
    c << 4 | clamped(a) << 2 | clamped(b)
}
