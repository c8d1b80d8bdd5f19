//! §9.7.12.4 and §9.7.8.5: atomic updates and shuffle lanes against the manual's formulas.

use crate::values::{edges, edges_f32, edges_f64};
use ptx_sem::*;

#[test]
fn updates_of_integers() {
    macro_rules! types {
        ($($atom:ident $ty:ty;)+) => {$(
            for x in edges(<$ty>::BITS) {
                for y in edges(<$ty>::BITS) {
                    let (r, s) = (x as $ty, y as $ty);
                    let (old, b) = (i128::from(r), i128::from(s));
                    let check = |op, expected: i128| assert_eq!($atom(op, r, s, 77), expected as $ty, "{op:?} {r} {s}");
                    check(AtomOp::Add, old + b);
                    check(AtomOp::Min, if old < b { old } else { b });
                    check(AtomOp::Max, if old > b { old } else { b });
                    check(AtomOp::Exch, b);
                    check(AtomOp::Cas, if old == b { 77 } else { old });
                    check(AtomOp::Inc, if old >= b { 0 } else { old + 1 });
                    check(AtomOp::Dec, if old == 0 || old > b { b } else { old - 1 });
                    check(AtomOp::And, (x & y).into());
                    check(AtomOp::Or, (x | y).into());
                    check(AtomOp::Xor, (x ^ y).into());
                }
            }
        )+};
    }
    types! {
        atom_u16 u16;
        atom_u32 u32;
        atom_s32 i32;
        atom_u64 u64;
        atom_s64 i64;
    }
}

#[test]
fn named_updates() {
    let (r, s) = (0xf000_0001_u32, 0x0fff_fff3_u32);
    assert_eq!(
        (atom_and_b32(r, s), atom_or_b32(r, s), atom_xor_b32(r, s), atom_exch_b32(r, s)),
        (1, 0xffff_fff3, 0xffff_fff2, s)
    );
    assert_eq!((atom_add_u32(r, s), atom_min_u32(r, s), atom_max_u32(r, s)), (0xffff_fff4, s, r));
    assert_eq!((atom_min_s32(-5, 3), atom_max_s32(-5, 3), atom_add_s32(i32::MAX, 1)), (-5, 3, i32::MIN));
    assert_eq!((atom_inc_u32(4, 5), atom_inc_u32(5, 5), atom_inc_u32(6, 5)), (5, 0, 0));
    assert_eq!((atom_dec_u32(0, 5), atom_dec_u32(5, 5), atom_dec_u32(6, 5)), (5, 4, 5));
    let (x, y) = (u64::from(r) << 32, u64::from(s) << 8);
    assert_eq!(
        (atom_and_b64(x, y), atom_or_b64(x, y), atom_xor_b64(x, y), atom_exch_b64(x, y)),
        (x & y, x | y, x ^ y, y)
    );
    assert_eq!((atom_add_u64(u64::MAX, 2), atom_min_u64(x, y), atom_max_u64(x, y)), (1, y, x));
    assert_eq!((atom_min_s64(-1, 1), atom_max_s64(-1, 1)), (-1, 1));
    assert_eq!((atom_cas_b16(3, 3, 9), atom_cas_b16(3, 4, 9)), (9, 3));
    assert_eq!((atom_cas_b32(3, 3, 9), atom_cas_b32(3, 4, 9)), (9, 3));
    assert_eq!((atom_cas_b64(3, 3, 9), atom_cas_b64(3, 4, 9)), (9, 3));
}

#[test]
fn updates_of_floats_are_sums() {
    for &x in &edges_f32() {
        for &y in edges_f32().iter().step_by(5) {
            let (a, b) = (f32::from_bits(x), f32::from_bits(y));
            assert_eq!(atom_add_f32(a, b).to_bits(), add_f32(a, b, Rnd::Rn).to_bits());
        }
    }
    for &x in &edges_f64() {
        assert_eq!(
            atom_add_f64(f64::from_bits(x), 1.5).to_bits(),
            add_f64(f64::from_bits(x), 1.5, Rnd::Rn).to_bits()
        );
    }
    // Global memory flushes operands and result, shared memory does not.
    let tiny = f32::from_bits(0x0040_0000);
    assert_eq!((atom_add_f32(tiny, tiny), atom_add_ftz_f32(tiny, tiny)), (f32::MIN_POSITIVE, 0.0));
    let least = f32::MIN_POSITIVE;
    assert_eq!(atom_add_ftz_f32(-1.5 * least, least).to_bits(), 0x8000_0000);
    assert_eq!(atom_add_f16(0x3c00, 0x3c00), 0x4000);
    assert_eq!(atom_add_f16x2(0x3c00_0001, 0xbc00_0001), 0x0000_0002);
}

/// The pseudocode of §9.7.8.5 in signed arithmetic.
fn shfl(mode: ShflMode, lane: i32, b: u32, c: u32) -> (i32, bool) {
    let (bval, cval, segmask) = ((b & 31) as i32, (c & 31) as i32, (c >> 8 & 31) as i32);
    let not_segmask = 31 - segmask;
    let max_lane = (lane & segmask) | (cval & not_segmask);
    let min_lane = lane & segmask;
    let (j, pval) = match mode {
        ShflMode::Up => (lane - bval, lane - bval >= max_lane),
        ShflMode::Down => (lane + bval, lane + bval <= max_lane),
        ShflMode::Bfly => (lane ^ bval, lane ^ bval <= max_lane),
        ShflMode::Idx => (min_lane | (bval & not_segmask), min_lane | (bval & not_segmask) <= max_lane),
    };
    (if pval { j } else { lane }, pval)
}

#[test]
fn shuffle_lanes() {
    for mode in [ShflMode::Up, ShflMode::Down, ShflMode::Bfly, ShflMode::Idx] {
        for c in (0..0x2000).step_by(3).chain([0x1f, 0x1c1f, 0x181f, 0x1800, 0xffff_ffff]) {
            for b in (0..34).chain([0xffff_ffff, 0x1_0005]) {
                for lane in 0..32 {
                    let expected = shfl(mode, lane, b, c);
                    assert_eq!(
                        shfl_source(mode, lane as u32, b, c),
                        (expected.0 as u32, expected.1),
                        "{mode:?} {lane} {b} {c:#x}"
                    );
                }
            }
        }
    }
}

#[test]
fn shuffles_of_the_whole_warp_and_of_segments() {
    // shfl.up by 1 with clamp 0: lane 0 keeps its own value.
    assert_eq!(
        (shfl_source(ShflMode::Up, 0, 1, 0), shfl_source(ShflMode::Up, 7, 1, 0)),
        ((0, false), (6, true))
    );
    // shfl.down by 1 with clamp 31.
    assert_eq!(
        (shfl_source(ShflMode::Down, 31, 1, 31), shfl_source(ShflMode::Down, 30, 1, 31)),
        ((31, false), (31, true))
    );
    // Segments of 8: the mask is 0x18. The last lane of a segment has no lane above it; an index counts
    // within the segment.
    let c = 0x181f;
    assert_eq!(
        (shfl_source(ShflMode::Down, 15, 1, c), shfl_source(ShflMode::Down, 14, 1, c)),
        ((15, false), (15, true))
    );
    assert_eq!(
        (shfl_source(ShflMode::Idx, 13, 2, c), shfl_source(ShflMode::Idx, 13, 9, c)),
        ((10, true), (9, true))
    );
    assert_eq!(shfl_source(ShflMode::Bfly, 5, 16, 0x1f), (21, true));
}
