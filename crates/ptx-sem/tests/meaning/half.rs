//! §9.7.4: half precision against `rustc_apfloat`.

use crate::oracle::{bits, float};
use crate::values::{Random, edges_f16};
use ptx_sem::*;
use rustc_apfloat::ieee::Half;
use rustc_apfloat::{Float, Round};

const NEAREST: Round = Round::NearestTiesToEven;

fn expect(oracle: Half) -> u16 {
    bits(oracle).map_or(0x7fff, |b| b as u16)
}

fn check(x: u16, y: u16) {
    let (a, b): (Half, Half) = (float(x), float(y));
    assert_eq!(add_f16(x, y), expect(a.add_r(b, NEAREST).value), "add {x:#x} {y:#x}");
    assert_eq!(sub_f16(x, y), expect(a.sub_r(b, NEAREST).value), "sub {x:#x} {y:#x}");
    assert_eq!(mul_f16(x, y), expect(a.mul_r(b, NEAREST).value), "mul {x:#x} {y:#x}");
}

#[test]
fn arithmetic() {
    // Every half with some others, so every rounding of every significand occurs.
    for x in 0..=0xffff {
        for y in [0x3c00, 0x3c01, 0x3555, 0x0001, 0x8402, 0x7bff, 0xfc00, 0x7e01, x ^ 0x8001, x] {
            check(x, y);
        }
    }
    let mut random = Random::new(8);
    for _ in 0..200_000 {
        check(random.u16(), random.u16());
    }
}

#[test]
fn fused() {
    let check = |x: u16, y: u16, z: u16| {
        let (a, b, c): (Half, Half, Half) = (float(x), float(y), float(z));
        assert_eq!(fma_f16(x, y, z), expect(a.mul_add_r(b, c, NEAREST).value), "{x:#x} {y:#x} {z:#x}");
    };
    let list = edges_f16();
    for &x in &list {
        for &y in &list {
            for &z in &list {
                check(x, y, z);
            }
        }
    }
    let mut random = Random::new(9);
    for _ in 0..300_000 {
        check(random.u16(), random.u16(), random.u16());
    }
    // Products far below and far above c, for which the sum does not fit 53 bits.
    for _ in 0..100_000 {
        let (x, y, z) = (random.u16(), random.u16(), random.u16());
        check(x & 0x83ff, y & 0x83ff, z | 0x5000);
        check(x | 0x7000, y | 0x7000, z & 0x83ff);
    }
    // A large sum that differs from a tie by a tiny product: rounding twice would be wrong. 1 + 2^-11 is the
    // tie above 1.
    assert_eq!(fma_f16(0x1000, 0x3c00, 0x3c00), 0x3c00);
    assert_eq!(fma_f16(0x1001, 0x3c00, 0x3c00), 0x3c01);
}

#[test]
fn signs_flush_and_saturate() {
    for x in 0..=0xffff_u16 {
        let nan = x & 0x7fff > 0x7c00;
        assert_eq!(neg_f16(x), if nan { 0x7fff } else { x ^ 0x8000 });
        assert_eq!(abs_f16(x), if nan { 0x7fff } else { x & 0x7fff });
        assert_eq!(ftz_f16(x), if x & 0x7c00 == 0 { x & 0x8000 } else { x });
        let saturated = if x > 0x7c00 { 0 } else { x.min(0x3c00) };
        assert_eq!(sat_f16(x), saturated);
    }
}

#[test]
fn pairs_are_two_halves() {
    let mut random = Random::new(10);
    for _ in 0..20_000 {
        let (a, b, c) = (random.u32(), random.u32(), random.u32());
        let low = |x: u32| x as u16;
        let high = |x: u32| (x >> 16) as u16;
        let both = |l: u16, h: u16| u32::from(h) << 16 | u32::from(l);
        assert_eq!(add_f16x2(a, b), both(add_f16(low(a), low(b)), add_f16(high(a), high(b))));
        assert_eq!(sub_f16x2(a, b), both(sub_f16(low(a), low(b)), sub_f16(high(a), high(b))));
        assert_eq!(mul_f16x2(a, b), both(mul_f16(low(a), low(b)), mul_f16(high(a), high(b))));
        assert_eq!(
            fma_f16x2(a, b, c),
            both(fma_f16(low(a), low(b), low(c)), fma_f16(high(a), high(b), high(c)))
        );
        assert_eq!(neg_f16x2(a), both(neg_f16(low(a)), neg_f16(high(a))));
        assert_eq!(abs_f16x2(a), both(abs_f16(low(a)), abs_f16(high(a))));
        assert_eq!(ftz_f16x2(a), both(ftz_f16(low(a)), ftz_f16(high(a))));
        assert_eq!(sat_f16x2(a), both(sat_f16(low(a)), sat_f16(high(a))));
    }
}

/// What an H200 gives beside 2^-14.
#[test]
fn flushing_looks_at_11_bits() {
    assert_eq!((mul_ftz_f16(0xbbff, 0x8400), mul_f16(0xbbff, 0x8400)), (0, 0x0400));
    assert_eq!((fma_ftz_f16(0x3bff, 0x0400, 0), fma_f16(0x3bff, 0x0400, 0)), (0, 0x0400));
    assert_eq!(mul_ftz_f16x2(0xbbff_3c00, 0x8400_3c00), 0x0000_3c00);
    assert_eq!(fma_ftz_f16x2(0x3bff_3c00, 0x0400_3c00, 0), 0x0000_3c00);
}
