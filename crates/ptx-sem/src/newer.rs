//! Integer instructions after PTX 6.4: `szext`, `bmsk` (7.6), `add`, `min` and `max` of pairs, `.relu` (8.0),
//! and `cvt.pack` (6.5).
//!
//! **Invariant:** shift counts of 32 and more are handled before the shift.

/// All ones from bit `count` upwards; zero for a count of 32 or more.
#[inline]
fn ones_from(count: u32) -> u32 {
    u32::MAX.checked_shl(count).unwrap_or(0)
}

macro_rules! szext {
    ($($name:ident $ty:ident $too_wide:expr, $what:literal;)+) => {$(
        #[doc = $what]
        ///
        /// The result for zero bits is 0.
        ///
        /// # Source
        /// PTX ISA 7.6, `szext`.
        #[inline]
        #[must_use]
        pub fn $name(a: $ty, b: u32) -> $ty {
            let (width, too_wide): (u32, fn(u32) -> bool) = (b & 31, $too_wide);
            if too_wide(b) {
                a
            } else if width == 0 {
                0
            } else {
                a << (32 - width) >> (32 - width)
            }
        }
    )+};
}
szext! {
    szext_clamp_u32 u32 |b| b >= 32, "`szext.clamp.u32`: the low b bits of a, zero-extended; a itself from 32 on.";
    szext_clamp_s32 i32 |b| b >= 32, "`szext.clamp.s32`: the low b bits of a, sign-extended; a itself from 32 on.";
    szext_wrap_u32 u32 |_| false, "`szext.wrap.u32`: the low b mod 32 bits of a, zero-extended.";
    szext_wrap_s32 i32 |_| false, "`szext.wrap.s32`: the low b mod 32 bits of a, sign-extended.";
}

/// `bmsk.clamp.b32`: b ones from bit a upwards, as many as fit; none if a is 32 or more.
///
/// # Source
/// PTX ISA 7.6, `bmsk`.
#[inline]
#[must_use]
pub fn bmsk_clamp_b32(a: u32, b: u32) -> u32 {
    ones_from(a) & !ones_from(a.saturating_add(b))
}

/// `bmsk.wrap.b32`: b mod 32 ones from bit a mod 32 upwards, as many as fit.
///
/// # Source
/// PTX ISA 7.6, `bmsk`.
#[inline]
#[must_use]
pub fn bmsk_wrap_b32(a: u32, b: u32) -> u32 {
    bmsk_clamp_b32(a & 31, b & 31)
}

/// Applies a function to the lower and to the upper halves.
#[inline]
fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16 | u32::from(f(a as u16, b as u16))
}

#[inline]
fn signed(f: impl Fn(i16, i16) -> i16) -> impl Fn(u16, u16) -> u16 {
    move |a, b| f(a.cast_signed(), b.cast_signed()).cast_unsigned()
}

macro_rules! pairs {
    ($($name:ident $f:expr, $what:literal;)+) => {$(
        #[doc = $what]
        ///
        /// # Source
        /// PTX ISA 8.0, `add`, `min` and `max`.
        #[inline]
        #[must_use]
        pub fn $name(a: u32, b: u32) -> u32 {
            halves(a, b, $f)
        }
    )+};
}
pairs! {
    add_u16x2 u16::wrapping_add, "`add.u16x2`, `add.s16x2`: the sums of the halves, modulo 2^16.";
    min_u16x2 Ord::min, "`min.u16x2`: the smaller in each half.";
    max_u16x2 Ord::max, "`max.u16x2`: the larger in each half.";
    min_s16x2 signed(Ord::min), "`min.s16x2`: the smaller in each half.";
    max_s16x2 signed(Ord::max), "`max.s16x2`: the larger in each half.";
    min_relu_s16x2 signed(|a, b| a.min(b).max(0)), "`min.relu.s16x2`: the smaller in each half, 0 where it is negative.";
    max_relu_s16x2 signed(|a, b| a.max(b).max(0)), "`max.relu.s16x2`: the larger in each half, 0 where it is negative.";
}

/// `min.relu.s32`: the smaller, or 0 if it is negative.
///
/// # Source
/// PTX ISA 8.0, `min`.
#[inline]
#[must_use]
pub fn min_relu_s32(a: i32, b: i32) -> i32 {
    a.min(b).max(0)
}

/// `max.relu.s32`: the larger, or 0 if it is negative.
///
/// # Source
/// PTX ISA 8.0, `max`.
#[inline]
#[must_use]
pub fn max_relu_s32(a: i32, b: i32) -> i32 {
    a.max(b).max(0)
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
