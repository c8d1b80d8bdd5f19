//! Integer arithmetic: `add` to `max`, `dp4a` and `dp2a` (PTX ISA 6.4 §9.7.1), `szext` and `bmsk` (7.6),
//! `add`, `min` and `max` of pairs, and `.relu` (8.0).
//!
//! **Invariant:** all results are exact modulo 2^n, where n is the width of the result type. No host
//! arithmetic overflows. Shift counts of 32 and more are handled before the shift.
//!
//! The extended-precision forms with a carry are in `extended`, bit counts and bit fields in `bits`, shifts
//! and bitwise operations in `logic`.

/// A PTX integer type of 16, 32 or 64 bits: the operations that the generic functions below need.
pub(crate) trait Int: Copy + Ord {
    /// The value 0.
    const ZERO: Self;
    /// The value with every bit set: the greatest unsigned value, or -1.
    const ONES: Self;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn neg(self) -> Self;
    /// Low and high half of the exact product, each as n bits.
    fn product(self, b: Self) -> (Self, Self);
    /// Truncating quotient; MIN / -1 is MIN. `b` is not zero.
    fn quotient(self, b: Self) -> Self;
    /// Remainder of the truncating quotient; MIN rem -1 is 0. `b` is not zero.
    fn remainder(self, b: Self) -> Self;
    /// The sum as n bits, and the carry out of the unsigned addition of the two patterns.
    fn carrying_add(self, b: Self, carry: bool) -> (Self, bool);
    /// The bitwise complement.
    fn not(self) -> Self;
}

macro_rules! impl_int {
    ($($ty:ty, $wide:ty, $unsigned:ty);+ $(;)?) => {$(
        impl Int for $ty {
            const ZERO: Self = 0;
            const ONES: Self = !0;
            #[inline]
            fn add(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline]
            fn sub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline]
            fn product(self, b: Self) -> (Self, Self) {
                let t = <$wide>::from(self) * <$wide>::from(b);
                (t as Self, (t >> Self::BITS) as Self)
            }
            #[inline]
            fn quotient(self, b: Self) -> Self {
                self.wrapping_div(b)
            }
            #[inline]
            fn remainder(self, b: Self) -> Self {
                self.wrapping_rem(b)
            }
            #[inline]
            fn carrying_add(self, b: Self, carry: bool) -> (Self, bool) {
                let (s, c0) = (self as $unsigned).overflowing_add(b as $unsigned);
                let (s, c1) = s.overflowing_add(<$unsigned>::from(carry));
                (s as Self, c0 | c1)
            }
            #[inline]
            fn not(self) -> Self {
                !self
            }
        }
    )+};
}
impl_int! {
    u16, u32, u16;
    i16, i32, u16;
    u32, u64, u32;
    i32, i64, u32;
    u64, u128, u64;
    i64, i128, u64;
}

per_type! {
    [/// `add`: d = a + b, modulo 2^n.
     ///
     /// # Source
     /// PTX ISA §9.7.1.1.
    ]
    add(a, b): add_u16 u16, add_s16 i16, add_u32 u32, add_s32 i32, add_u64 u64, add_s64 i64
}
per_type! {
    [/// `sub`: d = a - b, modulo 2^n.
     ///
     /// # Source
     /// PTX ISA §9.7.1.2.
    ]
    sub(a, b): sub_u16 u16, sub_s16 i16, sub_u32 u32, sub_s32 i32, sub_u64 u64, sub_s64 i64
}
per_type! {
    [/// `mul.lo`: the low n bits of the product a * b.
     ///
     /// # Source
     /// PTX ISA §9.7.1.3.
    ]
    mul_lo(a, b):
    mul_lo_u16 u16, mul_lo_s16 i16, mul_lo_u32 u32, mul_lo_s32 i32, mul_lo_u64 u64, mul_lo_s64 i64
}
per_type! {
    [/// `mul.hi`: bits 2n-1..n of the exact 2n-bit product a * b, signed or unsigned as the type is.
     ///
     /// # Source
     /// PTX ISA §9.7.1.3.
    ]
    mul_hi(a, b):
    mul_hi_u16 u16, mul_hi_s16 i16, mul_hi_u32 u32, mul_hi_s32 i32, mul_hi_u64 u64, mul_hi_s64 i64
}
per_type! {
    [/// `mad.lo`: d = (low n bits of a * b) + c, modulo 2^n.
     ///
     /// # Source
     /// PTX ISA §9.7.1.4.
    ]
    mad_lo(a, b, c):
    mad_lo_u16 u16, mad_lo_s16 i16, mad_lo_u32 u32, mad_lo_s32 i32, mad_lo_u64 u64, mad_lo_s64 i64
}
per_type! {
    [/// `mad.hi`: d = (bits 2n-1..n of a * b) + c, modulo 2^n.
     ///
     /// # Source
     /// PTX ISA §9.7.1.4.
    ]
    mad_hi(a, b, c):
    mad_hi_u16 u16, mad_hi_s16 i16, mad_hi_u32 u32, mad_hi_s32 i32, mad_hi_u64 u64, mad_hi_s64 i64
}
per_type! {
    [/// `sad`: d = c + |a - b|, modulo 2^n: the larger operand minus the smaller, compared as the type is signed or not.
     ///
     /// The difference of two signed values may need n + 1 bits; it wraps to n bits like the sum.
     ///
     /// # Source
     /// PTX ISA §9.7.1.7.
    ]
    sad(a, b, c): sad_u16 u16, sad_s16 i16, sad_u32 u32, sad_s32 i32, sad_u64 u64, sad_s64 i64
}
per_type! {
    [/// `div`: the quotient a / b, truncated towards zero.
     ///
     /// MIN / -1 wraps to MIN. Division by zero gives all ones, for signed types too. The manual says
     /// "unspecified, machine-specific value", so it must not trap. The value was chosen, and programs must
     /// not depend on it.
     ///
     /// # Source
     /// PTX ISA §9.7.1.8.
    ]
    div(a, b): div_u16 u16, div_s16 i16, div_u32 u32, div_s32 i32, div_u64 u64, div_s64 i64
}
per_type! {
    [/// `rem`: a - b * (a / b) with the truncating quotient, so the result has the sign of a.
     ///
     /// MIN rem -1 is 0; a rem 0 is a. The manual calls negative operands machine-dependent. All CUDA devices
     /// truncate, and truncation makes `rem` agree with `div`.
     ///
     /// # Source
     /// PTX ISA §9.7.1.9.
    ]
    rem(a, b): rem_u16 u16, rem_s16 i16, rem_u32 u32, rem_s32 i32, rem_u64 u64, rem_s64 i64
}
per_type! {
    [/// `abs`: |a|; the most negative value, which has no positive counterpart, stays itself.
     ///
     /// # Source
     /// PTX ISA §9.7.1.10, which does not define the most negative value; wrapping was chosen.
    ]
    abs(a): abs_s16 i16, abs_s32 i32, abs_s64 i64
}
per_type! {
    [/// `neg`: -a modulo 2^n; the most negative value stays itself.
     ///
     /// # Source
     /// PTX ISA §9.7.1.11, which does not define the most negative value; wrapping was chosen.
    ]
    neg(a): neg_s16 i16, neg_s32 i32, neg_s64 i64
}
per_type! {
    [/// `min`: the smaller of a and b, compared signed or unsigned as the type is.
     ///
     /// # Source
     /// PTX ISA §9.7.1.12.
    ]
    min(a, b): min_u16 u16, min_s16 i16, min_u32 u32, min_s32 i32, min_u64 u64, min_s64 i64
}
per_type! {
    [/// `max`: the greater of a and b, compared signed or unsigned as the type is.
     ///
     /// # Source
     /// PTX ISA §9.7.1.13.
    ]
    max(a, b): max_u16 u16, max_s16 i16, max_u32 u32, max_s32 i32, max_u64 u64, max_s64 i64
}

#[inline]
fn add<T: Int>(a: T, b: T) -> T {
    a.add(b)
}

#[inline]
fn sub<T: Int>(a: T, b: T) -> T {
    a.sub(b)
}

#[inline]
fn mul_lo<T: Int>(a: T, b: T) -> T {
    a.product(b).0
}

#[inline]
fn mul_hi<T: Int>(a: T, b: T) -> T {
    a.product(b).1
}

#[inline]
fn mad_lo<T: Int>(a: T, b: T, c: T) -> T {
    mul_lo(a, b).add(c)
}

#[inline]
fn mad_hi<T: Int>(a: T, b: T, c: T) -> T {
    mul_hi(a, b).add(c)
}

#[inline]
fn sad<T: Int>(a: T, b: T, c: T) -> T {
    c.add(if a < b { b.sub(a) } else { a.sub(b) })
}

#[inline]
fn div<T: Int>(a: T, b: T) -> T {
    if b == T::ZERO { T::ONES } else { a.quotient(b) }
}

#[inline]
fn rem<T: Int>(a: T, b: T) -> T {
    if b == T::ZERO { a } else { a.remainder(b) }
}

#[inline]
fn abs<T: Int>(a: T) -> T {
    if a < T::ZERO { a.neg() } else { a }
}

#[inline]
fn neg<T: Int>(a: T) -> T {
    a.neg()
}

#[inline]
fn min<T: Int>(a: T, b: T) -> T {
    if a < b { a } else { b }
}

#[inline]
fn max<T: Int>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

/// `add.sat.s32`: d = a + b, clamped to -2^31..2^31-1.
///
/// # Source
/// PTX ISA §9.7.1.1.
#[inline]
#[must_use]
pub fn add_sat_s32(a: i32, b: i32) -> i32 {
    a.saturating_add(b)
}

/// `sub.sat.s32`: d = a - b, clamped to -2^31..2^31-1.
///
/// # Source
/// PTX ISA §9.7.1.2.
#[inline]
#[must_use]
pub fn sub_sat_s32(a: i32, b: i32) -> i32 {
    a.saturating_sub(b)
}

/// `mul.wide.u16`: the exact 32-bit product of two unsigned 16-bit values.
///
/// # Source
/// PTX ISA §9.7.1.3.
#[inline]
#[must_use]
pub fn mul_wide_u16(a: u16, b: u16) -> u32 {
    u32::from(a) * u32::from(b)
}

/// `mul.wide.s16`: the exact 32-bit product of two signed 16-bit values.
///
/// # Source
/// PTX ISA §9.7.1.3.
#[inline]
#[must_use]
pub fn mul_wide_s16(a: i16, b: i16) -> i32 {
    i32::from(a) * i32::from(b)
}

/// `mul.wide.u32`: the exact 64-bit product of two unsigned 32-bit values.
///
/// # Source
/// PTX ISA §9.7.1.3.
#[inline]
#[must_use]
pub fn mul_wide_u32(a: u32, b: u32) -> u64 {
    u64::from(a) * u64::from(b)
}

/// `mul.wide.s32`: the exact 64-bit product of two signed 32-bit values.
///
/// # Source
/// PTX ISA §9.7.1.3.
#[inline]
#[must_use]
pub fn mul_wide_s32(a: i32, b: i32) -> i64 {
    i64::from(a) * i64::from(b)
}

/// `mad.wide.u16`: d = (32-bit product of a and b) + c, modulo 2^32.
///
/// # Source
/// PTX ISA §9.7.1.4.
#[inline]
#[must_use]
pub fn mad_wide_u16(a: u16, b: u16, c: u32) -> u32 {
    mul_wide_u16(a, b).wrapping_add(c)
}

/// `mad.wide.s16`: d = (32-bit signed product of a and b) + c, modulo 2^32.
///
/// # Source
/// PTX ISA §9.7.1.4.
#[inline]
#[must_use]
pub fn mad_wide_s16(a: i16, b: i16, c: i32) -> i32 {
    mul_wide_s16(a, b).wrapping_add(c)
}

/// `mad.wide.u32`: d = (64-bit product of a and b) + c, modulo 2^64.
///
/// # Source
/// PTX ISA §9.7.1.4.
#[inline]
#[must_use]
pub fn mad_wide_u32(a: u32, b: u32, c: u64) -> u64 {
    mul_wide_u32(a, b).wrapping_add(c)
}

/// `mad.wide.s32`: d = (64-bit signed product of a and b) + c, modulo 2^64.
///
/// # Source
/// PTX ISA §9.7.1.4.
#[inline]
#[must_use]
pub fn mad_wide_s32(a: i32, b: i32, c: i64) -> i64 {
    mul_wide_s32(a, b).wrapping_add(c)
}

/// `mad.hi.sat.s32`: d = (bits 63..32 of a * b) + c, the sum clamped to -2^31..2^31-1.
///
/// # Source
/// PTX ISA §9.7.1.4.
#[inline]
#[must_use]
pub fn mad_hi_sat_s32(a: i32, b: i32, c: i32) -> i32 {
    mul_hi(a, b).saturating_add(c)
}

/// The exact product of the low 24 bits of a and b, unsigned: 48 bits.
#[inline]
fn product24_u32(a: u32, b: u32) -> u64 {
    u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)
}

/// The exact product of the low 24 bits of a and b, each sign-extended from bit 23: 47 bits and a sign.
#[inline]
fn product24_s32(a: i32, b: i32) -> i64 {
    i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)
}

/// `mul24.lo.u32`: bits 31..0 of the product of the low 24 bits of a and b.
///
/// Bits 31..24 of the operands are ignored. The manual only says that operands hold "24-bit integer values".
///
/// # Source
/// PTX ISA §9.7.1.5.
#[inline]
#[must_use]
pub fn mul24_lo_u32(a: u32, b: u32) -> u32 {
    product24_u32(a, b) as u32
}

/// `mul24.hi.u32`: bits 47..16 of the product of the low 24 bits of a and b. Bits 31..24 are ignored.
///
/// # Source
/// PTX ISA §9.7.1.5.
#[inline]
#[must_use]
pub fn mul24_hi_u32(a: u32, b: u32) -> u32 {
    (product24_u32(a, b) >> 16) as u32
}

/// `mul24.lo.s32`: bits 31..0 of the product of a and b, each sign-extended from bit 23 (bits 31..24 are
/// ignored).
///
/// # Source
/// PTX ISA §9.7.1.5.
#[inline]
#[must_use]
pub fn mul24_lo_s32(a: i32, b: i32) -> i32 {
    product24_s32(a, b) as i32
}

/// `mul24.hi.s32`: bits 47..16 of the product of a and b, each sign-extended from bit 23 (bits 31..24 are
/// ignored).
///
/// # Source
/// PTX ISA §9.7.1.5.
#[inline]
#[must_use]
pub fn mul24_hi_s32(a: i32, b: i32) -> i32 {
    (product24_s32(a, b) >> 16) as i32
}

/// `mad24.lo.u32`: d = `mul24.lo`(a, b) + c, modulo 2^32.
///
/// # Source
/// PTX ISA §9.7.1.6.
#[inline]
#[must_use]
pub fn mad24_lo_u32(a: u32, b: u32, c: u32) -> u32 {
    mul24_lo_u32(a, b).wrapping_add(c)
}

/// `mad24.hi.u32`: d = `mul24.hi`(a, b) + c, modulo 2^32.
///
/// # Source
/// PTX ISA §9.7.1.6.
#[inline]
#[must_use]
pub fn mad24_hi_u32(a: u32, b: u32, c: u32) -> u32 {
    mul24_hi_u32(a, b).wrapping_add(c)
}

/// `mad24.lo.s32`: d = `mul24.lo`(a, b) + c, modulo 2^32.
///
/// # Source
/// PTX ISA §9.7.1.6.
#[inline]
#[must_use]
pub fn mad24_lo_s32(a: i32, b: i32, c: i32) -> i32 {
    mul24_lo_s32(a, b).wrapping_add(c)
}

/// `mad24.hi.s32`: d = `mul24.hi`(a, b) + c, modulo 2^32.
///
/// # Source
/// PTX ISA §9.7.1.6.
#[inline]
#[must_use]
pub fn mad24_hi_s32(a: i32, b: i32, c: i32) -> i32 {
    mul24_hi_s32(a, b).wrapping_add(c)
}

/// `mad24.hi.sat.s32`: d = `mul24.hi`(a, b) + c, the 32-bit sum clamped to -2^31..2^31-1.
///
/// # Source
/// PTX ISA §9.7.1.6.
#[inline]
#[must_use]
pub fn mad24_hi_sat_s32(a: i32, b: i32, c: i32) -> i32 {
    mul24_hi_s32(a, b).saturating_add(c)
}

/// Byte i of the packed a, zero-extended.
#[inline]
fn byte_u32(a: u32, i: u32) -> u32 {
    (a >> (8 * i)) & 0xff
}

/// Byte i of the packed a, sign-extended, as a 32-bit pattern: sums modulo 2^32 need no more.
#[inline]
fn byte_s32(a: u32, i: u32) -> u32 {
    i32::from((a >> (8 * i)) as i8).cast_unsigned()
}

/// Half i of the packed a, zero-extended.
#[inline]
fn half_u32(a: u32, i: u32) -> u32 {
    (a >> (16 * i)) & 0xffff
}

/// Half i of the packed a, sign-extended, as a 32-bit pattern.
#[inline]
fn half_s32(a: u32, i: u32) -> u32 {
    i32::from((a >> (16 * i)) as i16).cast_unsigned()
}

/// c plus the four products of the bytes of a and b, modulo 2^32.
#[inline]
fn dp4a(a: u32, b: u32, c: u32, byte_a: fn(u32, u32) -> u32, byte_b: fn(u32, u32) -> u32) -> u32 {
    (0..4).fold(c, |d, i| d.wrapping_add(byte_a(a, i).wrapping_mul(byte_b(b, i))))
}

/// c plus the two products of the halves of a and the bytes `first` and `first + 1` of b, modulo 2^32.
#[inline]
fn dp2a(a: u32, b: u32, c: u32, first: u32, half_a: fn(u32, u32) -> u32, byte_b: fn(u32, u32) -> u32) -> u32 {
    (0..2).fold(c, |d, i| d.wrapping_add(half_a(a, i).wrapping_mul(byte_b(b, first + i))))
}

macro_rules! dot_products {
    ($($mode:literal $name:ident $generic:ident ($($first:literal)?) $elem_a:ident $elem_b:ident;)+) => {$(
        #[doc = concat!("`", $mode, "`: c plus the dot product of the packed elements of a and b, modulo 2^32.")]
        ///
        /// The elements of a and b are zero- or sign-extended by their own types (the first type is a's).
        /// Nothing saturates. The type of c only documents signedness, so all operands are patterns here.
        ///
        /// # Source
        /// PTX ISA §9.7.1.21 (`dp4a`: 4 bytes by 4 bytes) and §9.7.1.22 (`dp2a`: 2 halves of a by the low or
        /// high 2 bytes of b).
        #[inline]
        #[must_use]
        pub fn $name(a: u32, b: u32, c: u32) -> u32 {
            $generic(a, b, c, $($first,)? $elem_a, $elem_b)
        }
    )+};
}
dot_products! {
    "dp4a.u32.u32"    dp4a_u32_u32    dp4a()  byte_u32 byte_u32;
    "dp4a.u32.s32"    dp4a_u32_s32    dp4a()  byte_u32 byte_s32;
    "dp4a.s32.u32"    dp4a_s32_u32    dp4a()  byte_s32 byte_u32;
    "dp4a.s32.s32"    dp4a_s32_s32    dp4a()  byte_s32 byte_s32;
    "dp2a.lo.u32.u32" dp2a_lo_u32_u32 dp2a(0) half_u32 byte_u32;
    "dp2a.lo.u32.s32" dp2a_lo_u32_s32 dp2a(0) half_u32 byte_s32;
    "dp2a.lo.s32.u32" dp2a_lo_s32_u32 dp2a(0) half_s32 byte_u32;
    "dp2a.lo.s32.s32" dp2a_lo_s32_s32 dp2a(0) half_s32 byte_s32;
    "dp2a.hi.u32.u32" dp2a_hi_u32_u32 dp2a(2) half_u32 byte_u32;
    "dp2a.hi.u32.s32" dp2a_hi_u32_s32 dp2a(2) half_u32 byte_s32;
    "dp2a.hi.s32.u32" dp2a_hi_s32_u32 dp2a(2) half_s32 byte_u32;
    "dp2a.hi.s32.s32" dp2a_hi_s32_s32 dp2a(2) half_s32 byte_s32;
}

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
