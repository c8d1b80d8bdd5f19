//! Integer instructions after PTX 6.4, and `mbarrier`: the manual's pseudocode in 64-bit integers, and phases
//! counted by hand.

use crate::values::{Random, edges};
use ptx_sem::*;

/// The pseudocode of `szext`.
fn szext(a: u32, b: u32, clamp: bool, signed: bool) -> u32 {
    let width = b & 31;
    let too_large = b >= 32 && clamp;
    let mask = if too_large { 0 } else { (u64::from(u32::MAX) << width) as u32 };
    let sign = signed && width != 0 && !too_large && a >> (width - 1) & 1 == 1;
    a & !mask | if sign { mask } else { 0 }
}

/// The pseudocode of `bmsk`.
fn bmsk(a: u32, b: u32, clamp: bool) -> u32 {
    let (start, width) = (a & 31, b & 31);
    let outside = clamp && a >= 32;
    let first = if outside { 0 } else { u64::from(u32::MAX) << start };
    let over = start + width >= 32 || outside || clamp && b >= 32;
    let second = if over { 0 } else { u64::from(u32::MAX) << (start + width) };
    (first & !second) as u32
}

#[test]
fn bit_fields() {
    let mut list: Vec<u32> = edges(32).into_iter().map(|x| x as u32).collect();
    list.extend(0..70);
    for &a in &list {
        for &b in &list {
            assert_eq!(szext_clamp_u32(a, b), szext(a, b, true, false), "{a:#x} {b}");
            assert_eq!(szext_clamp_s32(a as i32, b) as u32, szext(a, b, true, true), "{a:#x} {b}");
            assert_eq!(szext_wrap_u32(a, b), szext(a, b, false, false), "{a:#x} {b}");
            assert_eq!(szext_wrap_s32(a as i32, b) as u32, szext(a, b, false, true), "{a:#x} {b}");
            assert_eq!(bmsk_clamp_b32(a, b), bmsk(a, b, true), "{a} {b}");
            assert_eq!(bmsk_wrap_b32(a, b), bmsk(a, b, false), "{a} {b}");
        }
    }
}

#[test]
fn pairs_and_packs() {
    let mut random = Random::new(41);
    for _ in 0..20_000 {
        let (a, b, c) = (random.u32(), random.u32(), random.u32());
        let each = |f: fn(i64, i64) -> i64, signed: bool| {
            let read = |x: u32| if signed { i64::from(x as i16) } else { i64::from(x & 0xffff) };
            let half = |shift: u32| (f(read(a >> shift), read(b >> shift)) & 0xffff) as u32;
            half(16) << 16 | half(0)
        };
        assert_eq!(add_u16x2(a, b), each(|x, y| x + y, false));
        assert_eq!(min_u16x2(a, b), each(i64::min, false));
        assert_eq!(max_u16x2(a, b), each(i64::max, false));
        assert_eq!(min_s16x2(a, b), each(i64::min, true));
        assert_eq!(max_s16x2(a, b), each(i64::max, true));
        assert_eq!(min_relu_s16x2(a, b), each(|x, y| x.min(y).max(0), true));
        assert_eq!(max_relu_s16x2(a, b), each(|x, y| x.max(y).max(0), true));
        let (x, y) = (a as i32 >> (c & 31), b as i32 >> (c >> 5 & 31));
        assert_eq!(
            min_relu_s32(x, y),
            if x < 0 || y < 0 {
                0
            } else if x < y {
                x
            } else {
                y
            }
        );
        assert_eq!(
            max_relu_s32(x, y),
            if x < 0 && y < 0 {
                0
            } else if x > y {
                x
            } else {
                y
            }
        );
        let clamp = |x: i32, low: i64, high: i64| i64::from(x).max(low).min(high);
        let two = |low, high, bits: u32| {
            let mask = (1i64 << bits) - 1;
            ((clamp(x, low, high) & mask) << bits | clamp(y, low, high) & mask) as u32
        };
        assert_eq!(cvt_pack_sat_u16_s32(x, y), two(0, 0xffff, 16));
        assert_eq!(cvt_pack_sat_s16_s32(x, y), two(-0x8000, 0x7fff, 16));
        assert_eq!(cvt_pack_sat_u8_s32(x, y, c), (c & 0xffff) << 16 | two(0, 0xff, 8));
        assert_eq!(cvt_pack_sat_s8_s32(x, y, c), (c & 0xffff) << 16 | two(-0x80, 0x7f, 8));
    }
}

#[test]
fn phases_of_a_barrier() {
    let start = mbarrier_init(3);
    let one = mbarrier_arrive(start, 1);
    let two = mbarrier_arrive(one, 1);
    assert_eq!([start, one, two].map(mbarrier_pending_count), [3, 2, 1]);
    assert!(!mbarrier_test_wait(two, start) && !mbarrier_test_wait_parity(two, 0));
    assert!(mbarrier_test_wait_parity(two, 1), "the phase before the first counts as over");
    let next = mbarrier_arrive(two, 1);
    assert!(
        mbarrier_test_wait(next, start) && mbarrier_test_wait(next, two) && !mbarrier_test_wait(next, next)
    );
    assert!(mbarrier_test_wait_parity(next, 0) && !mbarrier_test_wait_parity(next, 1));
    assert_eq!(mbarrier_pending_count(next), 3);
    // Two drop out: this phase still counts them, and later phases expect one arrival.
    let fewer = mbarrier_arrive_drop(next, 2);
    assert_eq!(mbarrier_pending_count(fewer), 1);
    let third = mbarrier_arrive(fewer, 1);
    assert!(mbarrier_test_wait(third, fewer));
    assert_eq!(mbarrier_pending_count(third), 1);
    assert!(mbarrier_test_wait(mbarrier_arrive(third, 1), third));
    assert_eq!(mbarrier_pending_count(mbarrier_init((1 << 20) - 1)), (1 << 20) - 1);
}
