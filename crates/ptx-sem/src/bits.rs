//! Bit counts, searches and fields: `popc`, `clz`, `bfind`, `fns`, `brev`, `bfe`, `bfi` (PTX ISA 6.4
//! §9.7.1.14 to §9.7.1.20).
//!
//! **Invariant:** every position and length is defined, including those beyond the width: bits outside a
//! value read as its extension and are not written.
//!
//! Counts and positions are `.u32`, for 64-bit operands too.

/// `popc.b32`: the number of one bits in a, 0 to 32.
///
/// # Source
/// PTX ISA §9.7.1.14.
#[inline]
#[must_use]
pub fn popc_b32(a: u32) -> u32 {
    a.count_ones()
}

/// `popc.b64`: the number of one bits in a, 0 to 64; the result is `.u32`.
///
/// # Source
/// PTX ISA §9.7.1.14.
#[inline]
#[must_use]
pub fn popc_b64(a: u64) -> u32 {
    a.count_ones()
}

/// `clz.b32`: the number of zero bits above the highest one bit of a; 32 for 0.
///
/// # Source
/// PTX ISA §9.7.1.15.
#[inline]
#[must_use]
pub fn clz_b32(a: u32) -> u32 {
    a.leading_zeros()
}

/// `clz.b64`: the number of zero bits above the highest one bit of a; 64 for 0; the result is `.u32`.
///
/// # Source
/// PTX ISA §9.7.1.15.
#[inline]
#[must_use]
pub fn clz_b64(a: u64) -> u32 {
    a.leading_zeros()
}

/// The result of `bfind` if there is no non-sign bit, with `.shiftamt` too.
const NOT_FOUND: u32 = 0xffff_ffff;

/// `bfind.u32`: the position of the highest one bit of a; 0xffffffff for 0.
///
/// # Source
/// PTX ISA §9.7.1.16.
#[inline]
#[must_use]
pub fn bfind_u32(a: u32) -> u32 {
    a.checked_ilog2().unwrap_or(NOT_FOUND)
}

/// `bfind.u64`: the position of the highest one bit of a; 0xffffffff for 0.
///
/// # Source
/// PTX ISA §9.7.1.16; its pseudocode writes `1<<i` for both widths, read here as a 64-bit shift.
#[inline]
#[must_use]
pub fn bfind_u64(a: u64) -> u32 {
    a.checked_ilog2().unwrap_or(NOT_FOUND)
}

/// `bfind.s32`: the position of the highest bit of a that differs from its sign bit; 0xffffffff for 0 and -1.
///
/// # Source
/// PTX ISA §9.7.1.16.
#[inline]
#[must_use]
pub fn bfind_s32(a: i32) -> u32 {
    bfind_u32((a ^ (a >> 31)).cast_unsigned())
}

/// `bfind.s64`: the position of the highest bit of a that differs from its sign bit; 0xffffffff for 0 and -1.
///
/// # Source
/// PTX ISA §9.7.1.16.
#[inline]
#[must_use]
pub fn bfind_s64(a: i64) -> u32 {
    bfind_u64((a ^ (a >> 63)).cast_unsigned())
}

/// Turns a position found by `bfind` into the left shift that moves it to bit `msb`; "not found" stays.
#[inline]
fn shiftamt(position: u32, msb: u32) -> u32 {
    if position == NOT_FOUND { NOT_FOUND } else { msb - position }
}

/// `bfind.shiftamt.u32`: the left shift that brings the highest one bit of a to bit 31; 0xffffffff for 0.
///
/// # Source
/// PTX ISA §9.7.1.16.
#[inline]
#[must_use]
pub fn bfind_shiftamt_u32(a: u32) -> u32 {
    shiftamt(bfind_u32(a), 31)
}

/// `bfind.shiftamt.u64`: the left shift that brings the highest one bit of a to bit 63; 0xffffffff for 0.
///
/// # Source
/// PTX ISA §9.7.1.16.
#[inline]
#[must_use]
pub fn bfind_shiftamt_u64(a: u64) -> u32 {
    shiftamt(bfind_u64(a), 63)
}

/// `bfind.shiftamt.s32`: the left shift that brings the highest non-sign bit of a to bit 31; 0xffffffff for 0
/// and -1.
///
/// # Source
/// PTX ISA §9.7.1.16.
#[inline]
#[must_use]
pub fn bfind_shiftamt_s32(a: i32) -> u32 {
    shiftamt(bfind_s32(a), 31)
}

/// `bfind.shiftamt.s64`: the left shift that brings the highest non-sign bit of a to bit 63; 0xffffffff for 0
/// and -1.
///
/// # Source
/// PTX ISA §9.7.1.16.
#[inline]
#[must_use]
pub fn bfind_shiftamt_s64(a: i64) -> u32 {
    shiftamt(bfind_s64(a), 63)
}

/// `fns.b32`: the position of the n-th set bit of `mask`, counted from bit `base` inclusive.
///
/// n = |offset|; upwards for a positive, downwards for a negative offset. Offset 0 gives `base` if that bit
/// is set. 0xffffffff if there is no such bit. A `base` over 31 (undefined in the manual; a negative `.s32`
/// arrives here as a large value) finds nothing.
///
/// # Source
/// PTX ISA §9.7.1.17.
#[inline]
#[must_use]
pub fn fns_b32(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return NOT_FOUND;
    }
    // The n-th set bit from `base` is found by clearing the n - 1 set bits before it.
    let skip = offset.unsigned_abs().saturating_sub(1).min(32);
    let mut rest = match offset {
        0 => mask & (1 << base),
        1.. => mask & (u32::MAX << base),
        ..0 => mask & (u32::MAX >> (31 - base)),
    };
    if offset < 0 {
        for _ in 0..skip {
            rest &= (u32::MAX >> 1).checked_shr(rest.leading_zeros()).unwrap_or(0);
        }
        bfind_u32(rest)
    } else {
        for _ in 0..skip {
            rest &= rest.wrapping_sub(1);
        }
        if rest == 0 { NOT_FOUND } else { rest.trailing_zeros() }
    }
}

/// `brev.b32`: bit i of the result is bit 31 - i of a.
///
/// # Source
/// PTX ISA §9.7.1.18.
#[inline]
#[must_use]
pub fn brev_b32(a: u32) -> u32 {
    a.reverse_bits()
}

/// `brev.b64`: bit i of the result is bit 63 - i of a.
///
/// # Source
/// PTX ISA §9.7.1.18.
#[inline]
#[must_use]
pub fn brev_b64(a: u64) -> u64 {
    a.reverse_bits()
}

/// `bfe.u32`: the field of a that starts at bit b and is c bits long, zero-extended.
///
/// Only bits 7..0 of b and c count. Bits of the field above bit 31 read as zero; an empty field is 0.
///
/// # Source
/// PTX ISA §9.7.1.19.
#[inline]
#[must_use]
pub fn bfe_u32(a: u32, b: u32, c: u32) -> u32 {
    bfe_u64(u64::from(a), b & 0xff, c & 0xff) as u32
}

/// `bfe.u64`: the field of a that starts at bit b and is c bits long, zero-extended.
///
/// All bits of b and c count, as on devices (the pseudocode uses bits 7..0). Bits of the field above bit 63
/// read as zero; an empty field is 0.
///
/// # Source
/// PTX ISA §9.7.1.19.
#[inline]
#[must_use]
pub fn bfe_u64(a: u64, b: u32, c: u32) -> u64 {
    let (pos, len) = (b, c);
    let field = a.checked_shr(pos).unwrap_or(0);
    if len < 64 { field & ((1 << len) - 1) } else { field }
}

/// `bfe.s32`: the field of a that starts at bit b and is c bits long, sign-extended.
///
/// Only bits 7..0 of b and c count. The sign is the field's highest bit, or bit 31 of a if the field ends or
/// starts beyond it; an empty field is 0.
///
/// # Source
/// PTX ISA §9.7.1.19, by its pseudocode (the sentence that names the sign bit is incomplete).
#[inline]
#[must_use]
pub fn bfe_s32(a: i32, b: u32, c: u32) -> i32 {
    bfe_s64(i64::from(a), b & 0xff, c & 0xff) as i32
}

/// `bfe.s64`: the field of a that starts at bit b and is c bits long, sign-extended.
///
/// All bits of b and c count, as on devices (the pseudocode uses bits 7..0). The sign is the field's highest
/// bit, or bit 63 of a if the field ends or starts beyond it; an empty field is 0.
///
/// # Source
/// PTX ISA §9.7.1.19, by its pseudocode (the sentence that names the sign bit is incomplete).
#[inline]
#[must_use]
pub fn bfe_s64(a: i64, b: u32, c: u32) -> i64 {
    let (pos, len) = (b, c);
    let field = a >> pos.min(63);
    match len {
        0 => 0,
        1..64 => field << (64 - len) >> (64 - len),
        _ => field,
    }
}

/// `bfi.b32`: b with the low d bits of a inserted at bit c.
///
/// Only bits 7..0 of c and d count. Bits of the field above bit 31 are dropped; an empty field, or one that
/// starts above bit 31, gives b.
///
/// # Source
/// PTX ISA §9.7.1.20.
#[inline]
#[must_use]
pub fn bfi_b32(a: u32, b: u32, c: u32, d: u32) -> u32 {
    bfi_b64(u64::from(a), u64::from(b), c & 0xff, d & 0xff) as u32
}

/// `bfi.b64`: b with the low d bits of a inserted at bit c.
///
/// All bits of c and d count, as on devices (the pseudocode uses bits 7..0). Bits of the field above bit 63
/// are dropped; an empty field, or one that starts above bit 63, gives b.
///
/// # Source
/// PTX ISA §9.7.1.20.
#[inline]
#[must_use]
pub fn bfi_b64(a: u64, b: u64, c: u32, d: u32) -> u64 {
    let (pos, len) = (c, d);
    let ones = if len < 64 { (1 << len) - 1 } else { u64::MAX };
    let mask = ones.checked_shl(pos).unwrap_or(0);
    (b & !mask) | (a.checked_shl(pos).unwrap_or(0) & mask)
}
