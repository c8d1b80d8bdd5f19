//! §9.7.1: integer arithmetic against the manual's formulas in 128-bit integers.

use crate::values::edges;
use ptx_sem::*;

/// Checks a function of two or three operands of one type, for all edge values, against an exact formula
/// truncated to the type.
macro_rules! exact {
    ($($name:ident $ty:ty),+ => |$a:ident, $b:ident| $formula:expr) => {$({
        let list = edges(<$ty>::BITS);
        for &x in &list {
            for &y in &list {
                let (x, y) = (x as $ty, y as $ty);
                #[allow(unused_variables, reason = "one formula need not use the width")]
                let n = <$ty>::BITS;
                let ($a, $b) = (i128::from(x), i128::from(y));
                assert_eq!($name(x, y), $formula(n) as $ty, "{}({x}, {y})", stringify!($name));
            }
        }
    })+};
    ($($name:ident $ty:ty),+ => |$a:ident, $b:ident, $c:ident| $formula:expr) => {$({
        let list = edges(<$ty>::BITS);
        for &x in &list {
            for &y in &list {
                for &z in list.iter().step_by(3) {
                    let (x, y, z) = (x as $ty, y as $ty, z as $ty);
                    let n = <$ty>::BITS;
                    let ($a, $b, $c) = (i128::from(x), i128::from(y), i128::from(z));
                    assert_eq!($name(x, y, z), $formula(n) as $ty, "{}({x}, {y}, {z})", stringify!($name));
                }
            }
        }
    })+};
}

#[test]
fn add_sub_wrap() {
    exact!(add_u16 u16, add_s16 i16, add_u32 u32, add_s32 i32, add_u64 u64, add_s64 i64 => |a, b| |_| a + b);
    exact!(sub_u16 u16, sub_s16 i16, sub_u32 u32, sub_s32 i32, sub_u64 u64, sub_s64 i64 => |a, b| |_| a - b);
}

#[test]
fn sat_clamps() {
    let clamp = |x: i128| x.clamp(-(1 << 31), (1 << 31) - 1);
    exact!(add_sat_s32 i32 => |a, b| |_| clamp(a + b));
    exact!(sub_sat_s32 i32 => |a, b| |_| clamp(a - b));
    exact!(mad_hi_sat_s32 i32 => |a, b, c| |_| clamp(((a * b) >> 32) + c));
    assert_eq!(add_sat_s32(i32::MAX, 1), i32::MAX);
    assert_eq!(sub_sat_s32(i32::MIN, 1), i32::MIN);
}

#[test]
fn products() {
    // For 64-bit types the product modulo 2^128 contains both halves, for both signs.
    exact!(mul_lo_u16 u16, mul_lo_s16 i16, mul_lo_u32 u32, mul_lo_s32 i32, mul_lo_u64 u64, mul_lo_s64 i64
        => |a, b| |_| a.wrapping_mul(b));
    exact!(mul_hi_u16 u16, mul_hi_s16 i16, mul_hi_u32 u32, mul_hi_s32 i32, mul_hi_u64 u64, mul_hi_s64 i64
        => |a, b| |n| a.wrapping_mul(b) >> n);
    exact!(mad_lo_u16 u16, mad_lo_s16 i16, mad_lo_u32 u32, mad_lo_s32 i32, mad_lo_u64 u64, mad_lo_s64 i64
        => |a, b, c| |_| a.wrapping_mul(b).wrapping_add(c));
    exact!(mad_hi_u16 u16, mad_hi_s16 i16, mad_hi_u32 u32, mad_hi_s32 i32, mad_hi_u64 u64, mad_hi_s64 i64
        => |a, b, c| |n| (a.wrapping_mul(b) >> n) + c);
    assert_eq!(mul_hi_u64(u64::MAX, u64::MAX), u64::MAX - 1);
    assert_eq!(mul_hi_s64(i64::MIN, i64::MIN), 1 << 62);
    assert_eq!(mul_hi_s32(-1, 1), -1);
}

#[test]
fn wide_products() {
    macro_rules! wide {
        ($($mul:ident $mad:ident $ty:ty, $to:ty;)+) => {$({
            let list = edges(<$ty>::BITS);
            for &x in &list {
                for &y in &list {
                    let (x, y) = (x as $ty, y as $ty);
                    let product = i128::from(x) * i128::from(y);
                    assert_eq!(i128::from($mul(x, y)), product);
                    for &z in edges(<$to>::BITS).iter().step_by(3) {
                        assert_eq!($mad(x, y, z as $to), (product + i128::from(z as $to)) as $to);
                    }
                }
            }
        })+};
    }
    wide! {
        mul_wide_u16 mad_wide_u16 u16, u32;
        mul_wide_s16 mad_wide_s16 i16, i32;
        mul_wide_u32 mad_wide_u32 u32, u64;
        mul_wide_s32 mad_wide_s32 i32, i64;
    }
}

#[test]
fn products_of_24_bits() {
    let unsigned = |x: i128| x & 0xff_ffff;
    let signed = |x: i128| if x & 0x80_0000 != 0 { (x & 0xff_ffff) - 0x100_0000 } else { x & 0xff_ffff };
    exact!(mul24_lo_u32 u32 => |a, b| |_| unsigned(a) * unsigned(b));
    exact!(mul24_hi_u32 u32 => |a, b| |_| (unsigned(a) * unsigned(b)) >> 16);
    exact!(mul24_lo_s32 i32 => |a, b| |_| signed(a) * signed(b));
    exact!(mul24_hi_s32 i32 => |a, b| |_| (signed(a) * signed(b)) >> 16);
    exact!(mad24_lo_u32 u32 => |a, b, c| |_| unsigned(a) * unsigned(b) + c);
    exact!(mad24_hi_u32 u32 => |a, b, c| |_| ((unsigned(a) * unsigned(b)) >> 16) + c);
    exact!(mad24_lo_s32 i32 => |a, b, c| |_| signed(a) * signed(b) + c);
    exact!(mad24_hi_s32 i32 => |a, b, c| |_| ((signed(a) * signed(b)) >> 16) + c);
    exact!(mad24_hi_sat_s32 i32 => |a, b, c| |_| {
        (i128::from(((signed(a) * signed(b)) >> 16) as i32) + c).clamp(-(1 << 31), (1 << 31) - 1)
    });
    // The high form of a product that ends in 16 zero bits.
    assert_eq!(mul24_hi_u32(0xff00_0100, 0x100), 1);
    assert_eq!(mul24_hi_s32(0x0080_0000, 1), -128);
}

#[test]
fn sad_min_max() {
    exact!(sad_u16 u16, sad_s16 i16, sad_u32 u32, sad_s32 i32, sad_u64 u64, sad_s64 i64 => |a, b, c| |_| c + (a - b).abs());
    exact!(min_u16 u16, min_s16 i16, min_u32 u32, min_s32 i32, min_u64 u64, min_s64 i64 => |a, b| |_| if a < b { a } else { b });
    exact!(max_u16 u16, max_s16 i16, max_u32 u32, max_s32 i32, max_u64 u64, max_s64 i64 => |a, b| |_| if a > b { a } else { b });
}

#[test]
fn div_rem() {
    let div = |a: i128, b: i128| if b == 0 { -1 } else { a / b };
    let rem = |a: i128, b: i128| if b == 0 { a } else { a - b * (a / b) };
    exact!(div_u16 u16, div_s16 i16, div_u32 u32, div_s32 i32, div_u64 u64, div_s64 i64 => |a, b| |_| div(a, b));
    exact!(rem_u16 u16, rem_s16 i16, rem_u32 u32, rem_s32 i32, rem_u64 u64, rem_s64 i64 => |a, b| |_| rem(a, b));
    assert_eq!((div_s32(i32::MIN, -1), rem_s32(i32::MIN, -1)), (i32::MIN, 0));
    assert_eq!((div_s32(-7, 2), rem_s32(-7, 2)), (-3, -1));
    assert_eq!((div_u16(7, 0), rem_u16(7, 0)), (0xffff, 7));
}

#[test]
fn abs_neg() {
    macro_rules! unary {
        ($($abs:ident $neg:ident $ty:ty;)+) => {$(
            for x in edges(<$ty>::BITS) {
                let x = x as $ty;
                assert_eq!($abs(x), i128::from(x).abs() as $ty);
                assert_eq!($neg(x), (-i128::from(x)) as $ty);
            }
        )+};
    }
    unary! {
        abs_s16 neg_s16 i16;
        abs_s32 neg_s32 i32;
        abs_s64 neg_s64 i64;
    }
    assert_eq!((abs_s32(i32::MIN), neg_s64(i64::MIN)), (i32::MIN, i64::MIN));
}

fn bit(a: u64, i: u32) -> bool {
    a >> i & 1 == 1
}

/// The pseudocode of §9.7.1.16, with 64-bit shifts.
fn bfind(mut a: u64, msb: u32, signed: bool, shiftamt: bool) -> u32 {
    if signed && bit(a, msb) {
        a = !a;
    }
    match (0..=msb).rev().find(|&i| bit(a, i)) {
        None => 0xffff_ffff,
        Some(i) if shiftamt => msb - i,
        Some(i) => i,
    }
}

#[test]
fn bit_counts() {
    for a in edges(64) {
        let w = a as u32;
        let ones = |width| (0..width).filter(|&i| bit(a, i)).count() as u32;
        assert_eq!((popc_b32(w), popc_b64(a)), (ones(32), ones(64)));
        let zeros = |width: u32| (0..width).rev().take_while(|&i| !bit(a, i)).count() as u32;
        assert_eq!((clz_b32(w), clz_b64(a)), (zeros(32), zeros(64)));
        let reversed = |msb: u32| (0..=msb).filter(|&i| bit(a, msb - i)).map(|i| 1u64 << i).sum::<u64>();
        assert_eq!((u64::from(brev_b32(w)), brev_b64(a)), (reversed(31), reversed(63)));
        let w64 = u64::from(w);
        assert_eq!(
            (bfind_u32(w), bfind_shiftamt_u32(w)),
            (bfind(w64, 31, false, false), bfind(w64, 31, false, true))
        );
        assert_eq!(
            (bfind_u64(a), bfind_shiftamt_u64(a)),
            (bfind(a, 63, false, false), bfind(a, 63, false, true))
        );
        let s = w as i32;
        let masked = |a: u64, signed, shiftamt| {
            bfind(if bit(a, 31) { !a & 0xffff_ffff } else { a }, 31, signed, shiftamt)
        };
        assert_eq!(
            (bfind_s32(s), bfind_shiftamt_s32(s)),
            (masked(w64, false, false), masked(w64, false, true))
        );
        let l = a as i64;
        assert_eq!(
            (bfind_s64(l), bfind_shiftamt_s64(l)),
            (bfind(a, 63, true, false), bfind(a, 63, true, true))
        );
    }
    assert_eq!((bfind_s32(-1), bfind_s32(0), bfind_shiftamt_s64(-1)), (u32::MAX, u32::MAX, u32::MAX));
    assert_eq!((clz_b32(0), clz_b64(0), bfind_s32(i32::MIN)), (32, 64, 30));
}

/// The pseudocode of §9.7.1.17.
fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    if offset == 0 {
        return if base < 32 && bit(mask.into(), base) { base } else { u32::MAX };
    }
    let mut pos = i64::from(base);
    let mut count = i64::from(offset).abs() - 1;
    while (0..32).contains(&pos) {
        if bit(mask.into(), pos as u32) {
            if count == 0 {
                return pos as u32;
            }
            count -= 1;
        }
        pos += if offset > 0 { 1 } else { -1 };
    }
    u32::MAX
}

#[test]
fn fns_follows_its_pseudocode() {
    // The manual's examples.
    assert_eq!(
        [(3, 1), (3, -1), (2, 1), (2, -1)].map(|(base, offset)| fns_b32(0xaaaa_aaaa, base, offset)),
        [3, 3, 3, 1]
    );
    for mask in edges(32) {
        for base in (0..32).chain([32, 33, u32::MAX]) {
            for offset in (-34..=34).chain([i32::MIN, i32::MAX]) {
                let mask = mask as u32;
                assert_eq!(fns_b32(mask, base, offset), fns(mask, base, offset), "{mask:#x} {base} {offset}");
            }
        }
    }
}

/// 32-bit forms use the low byte of a position, 64-bit forms all of it (reading A176).
fn place(b: u32, msb: u32) -> u32 {
    if msb == 31 { b & 0xff } else { b }
}

/// The pseudocode of §9.7.1.19.
fn bfe(a: u64, b: u32, c: u32, msb: u32, signed: bool) -> u64 {
    let (pos, len) = (place(b, msb), place(c, msb));
    let sbit = if !signed || len == 0 { false } else { bit(a, pos.saturating_add(len - 1).min(msb)) };
    (0..=msb)
        .filter(|&i| if i < len && pos.saturating_add(i) <= msb { bit(a, pos + i) } else { sbit })
        .map(|i| 1 << i)
        .sum()
}

/// The pseudocode of §9.7.1.20.
fn bfi(a: u64, b: u64, c: u32, d: u32, msb: u32) -> u64 {
    let (pos, len) = (place(c, msb), place(d, msb));
    let mut f = b;
    for i in (0..len).take_while(|i| pos.saturating_add(*i) <= msb) {
        f = (f & !(1 << (pos + i))) | u64::from(bit(a, i)) << (pos + i);
    }
    f
}

#[test]
fn bit_fields() {
    let places = [0, 1, 7, 15, 16, 30, 31, 32, 33, 62, 63, 64, 65, 127, 128, 254, 255, 256, 257, 0xffff_ff04];
    for a in edges(64).into_iter().step_by(2) {
        let w = a as u32;
        for pos in places {
            for len in places {
                assert_eq!(
                    u64::from(bfe_u32(w, pos, len)),
                    bfe(w.into(), pos, len, 31, false),
                    "{w:#x} {pos} {len}"
                );
                assert_eq!(bfe_u64(a, pos, len), bfe(a, pos, len, 63, false));
                assert_eq!(bfe_s32(w as i32, pos, len) as u32, bfe(w.into(), pos, len, 31, true) as u32);
                assert_eq!(bfe_s64(a as i64, pos, len) as u64, bfe(a, pos, len, 63, true));
                for b in [0, u64::MAX, 0x1234_5678_9abc_def0] {
                    assert_eq!(
                        u64::from(bfi_b32(w, b as u32, pos, len)),
                        bfi(w.into(), b & 0xffff_ffff, pos, len, 31)
                    );
                    assert_eq!(bfi_b64(a, b, pos, len), bfi(a, b, pos, len, 63));
                }
            }
        }
    }
}

/// Element i of n equal parts of a packed value.
fn part(a: u32, i: usize, n: usize, signed: bool) -> i64 {
    let width = 32 / n;
    let x = i64::from(a) >> (width * i) & ((1 << width) - 1);
    if signed && x >> (width - 1) == 1 { x - (1 << width) } else { x }
}

type Dot = fn(u32, u32, u32) -> u32;

#[test]
fn dot_products() {
    let dp4a: [(Dot, bool, bool); 4] = [
        (dp4a_u32_u32, false, false),
        (dp4a_u32_s32, false, true),
        (dp4a_s32_u32, true, false),
        (dp4a_s32_s32, true, true),
    ];
    let dp2a: [(Dot, usize, bool, bool); 8] = [
        (dp2a_lo_u32_u32, 0, false, false),
        (dp2a_lo_u32_s32, 0, false, true),
        (dp2a_lo_s32_u32, 0, true, false),
        (dp2a_lo_s32_s32, 0, true, true),
        (dp2a_hi_u32_u32, 2, false, false),
        (dp2a_hi_u32_s32, 2, false, true),
        (dp2a_hi_s32_u32, 2, true, false),
        (dp2a_hi_s32_s32, 2, true, true),
    ];
    let list: Vec<u32> =
        edges(32).into_iter().map(|x| x as u32).chain([0x8080_8080, 0x7f80_ff01, 0x8000_7fff]).collect();
    for &a in &list {
        for &b in &list {
            for c in [0, 1, u32::MAX, 0x7fff_ffff, 0x8000_0000] {
                for (f, sa, sb) in dp4a {
                    let sum: i64 = (0..4).map(|i| part(a, i, 4, sa) * part(b, i, 4, sb)).sum();
                    assert_eq!(f(a, b, c), (sum + i64::from(c)) as u32);
                }
                for (f, first, sa, sb) in dp2a {
                    let sum: i64 = (0..2).map(|i| part(a, i, 2, sa) * part(b, first + i, 4, sb)).sum();
                    assert_eq!(f(a, b, c), (sum + i64::from(c)) as u32);
                }
            }
        }
    }
}
