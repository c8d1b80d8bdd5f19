//! Logic, shift and byte permutation: `and` to `shr` (PTX ISA 6.4 §9.7.7) and `prmt` (§9.7.8.6).
//!
//! **Invariant:** a shift count greater than the width acts like the width; every count is defined.
//!
//! Operands are bit patterns; signedness matters only for `shr`.

per_type! {
    [/// `and`: d = a & b, bit by bit.
     ///
     /// # Source
     /// PTX ISA §9.7.7.1.
    ]
    and(a, b): and_b16 u16, and_b32 u32, and_b64 u64, and_pred bool
}
per_type! {
    [/// `or`: d = a | b, bit by bit.
     ///
     /// # Source
     /// PTX ISA §9.7.7.2.
    ]
    or(a, b): or_b16 u16, or_b32 u32, or_b64 u64, or_pred bool
}
per_type! {
    [/// `xor`: d = a ^ b, bit by bit.
     ///
     /// # Source
     /// PTX ISA §9.7.7.3.
    ]
    xor(a, b): xor_b16 u16, xor_b32 u32, xor_b64 u64, xor_pred bool
}
per_type! {
    [/// `not`: d = ~a, bit by bit.
     ///
     /// # Source
     /// PTX ISA §9.7.7.4.
    ]
    not(a): not_b16 u16, not_b32 u32, not_b64 u64, not_pred bool
}
per_type! {
    [/// `cnot`: d = 1 if a is 0, else 0.
     ///
     /// # Source
     /// PTX ISA §9.7.7.5.
    ]
    cnot(a): cnot_b16 u16, cnot_b32 u32, cnot_b64 u64
}

#[inline]
fn and<T: core::ops::BitAnd<Output = T>>(a: T, b: T) -> T {
    a & b
}

#[inline]
fn or<T: core::ops::BitOr<Output = T>>(a: T, b: T) -> T {
    a | b
}

#[inline]
fn xor<T: core::ops::BitXor<Output = T>>(a: T, b: T) -> T {
    a ^ b
}

#[inline]
fn not<T: core::ops::Not<Output = T>>(a: T) -> T {
    !a
}

#[inline]
fn cnot<T: Default + PartialEq + From<bool>>(a: T) -> T {
    T::from(a == T::default())
}

/// `lop3.b32`: each result bit is bit (a << 2 | b << 1 | c) of `lut`, where a, b and c are the operands' bits
/// at its position.
///
/// The table of a function F is therefore F(0xf0, 0xcc, 0xaa).
///
/// # Source
/// PTX ISA §9.7.7.6. The table 0xab that it prints for (a & b | c) ^ a is a misprint for 0x1a.
#[inline]
#[must_use]
pub fn lop3_b32(a: u32, b: u32, c: u32, lut: u8) -> u32 {
    // Shannon expansion: pick the table bit by c, then by b, then by a, for all 32 positions at once.
    let row = |i: u32| 0u32.wrapping_sub(u32::from(lut >> i & 1));
    let by_c = |i: u32| (c & row(i + 1)) | (!c & row(i));
    let by_b = |i: u32| (b & by_c(i + 2)) | (!b & by_c(i));
    (a & by_b(4)) | (!a & by_b(0))
}

/// The upper 32 bits of {b, a} << n, for n up to 32.
#[inline]
fn shf_l(a: u32, b: u32, n: u32) -> u32 {
    (((u64::from(b) << 32 | u64::from(a)) << n) >> 32) as u32
}

/// The lower 32 bits of {b, a} >> n, for n up to 32.
#[inline]
fn shf_r(a: u32, b: u32, n: u32) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) >> n) as u32
}

/// `shf.l.clamp.b32`: the upper word of the 64-bit {b, a} shifted left by min(c, 32); a count of 32 or more
/// gives a.
///
/// # Source
/// PTX ISA §9.7.7.7. For the counts 0 and 32 its C code shifts a word by 32; this is read as the shift of the
/// 64-bit value.
#[inline]
#[must_use]
pub fn shf_l_clamp_b32(a: u32, b: u32, c: u32) -> u32 {
    shf_l(a, b, c.min(32))
}

/// `shf.l.wrap.b32`: the upper word of the 64-bit {b, a} shifted left by c modulo 32; 0 gives b.
///
/// # Source
/// PTX ISA §9.7.7.7.
#[inline]
#[must_use]
pub fn shf_l_wrap_b32(a: u32, b: u32, c: u32) -> u32 {
    shf_l(a, b, c & 0x1f)
}

/// `shf.r.clamp.b32`: the lower word of the 64-bit {b, a} shifted right by min(c, 32); a count of 32 or more
/// gives b.
///
/// # Source
/// PTX ISA §9.7.7.7. For the counts 0 and 32 its C code shifts a word by 32; this is read as the shift of the
/// 64-bit value.
#[inline]
#[must_use]
pub fn shf_r_clamp_b32(a: u32, b: u32, c: u32) -> u32 {
    shf_r(a, b, c.min(32))
}

/// `shf.r.wrap.b32`: the lower word of the 64-bit {b, a} shifted right by c modulo 32; 0 gives a.
///
/// # Source
/// PTX ISA §9.7.7.7.
#[inline]
#[must_use]
pub fn shf_r_wrap_b32(a: u32, b: u32, c: u32) -> u32 {
    shf_r(a, b, c & 0x1f)
}

macro_rules! shl {
    ($($name:ident $ty:ty;)+) => {$(
        /// `shl`: d = a << n with zeros shifted in; a count of the width or more gives 0.
        ///
        /// # Source
        /// PTX ISA §9.7.7.8.
        #[inline]
        #[must_use]
        pub fn $name(a: $ty, n: u32) -> $ty {
            a.checked_shl(n).unwrap_or(0)
        }
    )+};
}
shl! {
    shl_b16 u16;
    shl_b32 u32;
    shl_b64 u64;
}

macro_rules! shr_unsigned {
    ($($name:ident $ty:ty;)+) => {$(
        /// `shr` of an unsigned or untyped value: d = a >> n with zeros shifted in; a count of the width or
        /// more gives 0.
        ///
        /// # Source
        /// PTX ISA §9.7.7.9.
        #[inline]
        #[must_use]
        pub fn $name(a: $ty, n: u32) -> $ty {
            a.checked_shr(n).unwrap_or(0)
        }
    )+};
}
shr_unsigned! {
    shr_b16 u16;
    shr_b32 u32;
    shr_b64 u64;
    shr_u16 u16;
    shr_u32 u32;
    shr_u64 u64;
}

macro_rules! shr_signed {
    ($($name:ident $ty:ty;)+) => {$(
        /// `shr` of a signed value: d = a >> n with copies of the sign bit shifted in; a count of the width
        /// or more gives only copies of the sign bit.
        ///
        /// # Source
        /// PTX ISA §9.7.7.9.
        #[inline]
        #[must_use]
        pub fn $name(a: $ty, n: u32) -> $ty {
            a >> n.min(<$ty>::BITS - 1)
        }
    )+};
}
shr_signed! {
    shr_s16 i16;
    shr_s32 i32;
    shr_s64 i64;
}

/// Byte i (0 to 7) of the eight bytes {b, a}.
#[inline]
fn pair_byte(a: u32, b: u32, i: u32) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) >> (8 * i)) as u32 & 0xff
}

/// The word whose byte i is the source byte `pick[i]` of {b, a}.
#[inline]
fn gather(a: u32, b: u32, pick: [u32; 4]) -> u32 {
    pick.iter().rev().fold(0, |d, &i| d << 8 | pair_byte(a, b, i))
}

/// `prmt.b32`: byte i of the result is the byte of {b, a} selected by nibble i of c.
///
/// Bits 2..0 of a nibble are the byte's number (0 to 3 in a, 4 to 7 in b). With bit 3 set, all 8 bits become
/// that byte's sign bit. Bits 31..16 of c are ignored.
///
/// # Source
/// PTX ISA §9.7.8.6.
#[inline]
#[must_use]
pub fn prmt_b32(a: u32, b: u32, c: u32) -> u32 {
    (0..4).rev().fold(0, |d, i| {
        let select = c >> (4 * i);
        let byte = pair_byte(a, b, select & 7);
        d << 8 | if select & 8 == 0 { byte } else { 0xff * (byte >> 7) }
    })
}

/// `prmt.b32.f4e` (forward 4 extract): the four bytes of {b, a} from byte c mod 4 upwards.
///
/// # Source
/// PTX ISA §9.7.8.6.
#[inline]
#[must_use]
pub fn prmt_f4e_b32(a: u32, b: u32, c: u32) -> u32 {
    let s = c & 3;
    gather(a, b, [s, s + 1, s + 2, s + 3])
}

/// `prmt.b32.b4e` (backward 4 extract): the four bytes of {b, a} from byte c mod 4 downwards, with byte 7
/// after byte 0.
///
/// # Source
/// PTX ISA §9.7.8.6.
#[inline]
#[must_use]
pub fn prmt_b4e_b32(a: u32, b: u32, c: u32) -> u32 {
    let s = c & 3;
    gather(a, b, [s, (s + 7) & 7, (s + 6) & 7, (s + 5) & 7])
}

/// `prmt.b32.rc8` (replicate 8): byte c mod 4 of a in all four places.
///
/// # Source
/// PTX ISA §9.7.8.6.
#[inline]
#[must_use]
pub fn prmt_rc8_b32(a: u32, b: u32, c: u32) -> u32 {
    gather(a, b, [c & 3; 4])
}

/// `prmt.b32.ecl` (edge clamp left): byte i of the result is byte max(i, c mod 4) of a.
///
/// # Source
/// PTX ISA §9.7.8.6.
#[inline]
#[must_use]
pub fn prmt_ecl_b32(a: u32, b: u32, c: u32) -> u32 {
    let s = c & 3;
    gather(a, b, [s, s.max(1), s.max(2), 3])
}

/// `prmt.b32.ecr` (edge clamp right): byte i of the result is byte min(i, c mod 4) of a.
///
/// # Source
/// PTX ISA §9.7.8.6.
#[inline]
#[must_use]
pub fn prmt_ecr_b32(a: u32, b: u32, c: u32) -> u32 {
    let s = c & 3;
    gather(a, b, [0, s.min(1), s.min(2), s])
}

/// `prmt.b32.rc16` (replicate 16): half c mod 2 of a in both places.
///
/// # Source
/// PTX ISA §9.7.8.6.
#[inline]
#[must_use]
pub fn prmt_rc16_b32(a: u32, b: u32, c: u32) -> u32 {
    let s = 2 * (c & 1);
    gather(a, b, [s, s + 1, s, s + 1])
}
