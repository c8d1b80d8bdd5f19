//! bfloat16 and `.tf32` (PTX ISA 7.0, 7.8) against `rustc_apfloat`.

use crate::oracle::{MODES, bits, float};
use crate::values::{Random, edges_f32, edges_f64};
use ptx_sem::*;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

const NEAREST: Round = Round::NearestTiesToEven;

fn expect(oracle: BFloat) -> u16 {
    bits(oracle).map_or(0x7fff, |b| b as u16)
}

fn check(x: u16, y: u16) {
    let (a, b): (BFloat, BFloat) = (float(x), float(y));
    assert_eq!(add_bf16(x, y), expect(a.add_r(b, NEAREST).value), "add {x:#x} {y:#x}");
    assert_eq!(sub_bf16(x, y), expect(a.sub_r(b, NEAREST).value), "sub {x:#x} {y:#x}");
    assert_eq!(mul_bf16(x, y), expect(a.mul_r(b, NEAREST).value), "mul {x:#x} {y:#x}");
}

/// Zeros, subnormals, the least and greatest numbers, numbers near 1, infinities and NaNs, with both signs.
fn edges() -> Vec<u16> {
    let list = [
        0, 1, 2, 3, 0x40, 0x7e, 0x7f, 0x80, 0x81, 0xff, 0x100, 0x1fc0, 0x1f80, 0x2000, 0x3f7f, 0x3f80,
        0x3f81, 0x3fc0, 0x4000, 0x4049, 0x4b00, 0x7eff, 0x7f00, 0x7f7e, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0,
        0x7fff,
    ];
    list.into_iter().flat_map(|x| [x, x | 0x8000]).collect()
}

#[test]
fn arithmetic() {
    for x in 0..=0xffff {
        for y in [0x3f80, 0x3f81, 0x3eab, 0x0001, 0x8042, 0x7f7f, 0xff80, 0x7f81, x ^ 0x8001, x] {
            check(x, y);
        }
    }
    let mut random = Random::new(21);
    for _ in 0..200_000 {
        let (x, y) = (random.u16(), random.u16());
        check(x, y);
        // Numbers of similar magnitude, and products near the least numbers.
        check(x, x ^ (y & 0x81ff));
        let exponents = 0x3f80u16.wrapping_sub(x & 0x7f80).wrapping_add((y & 7) << 7);
        check(x, y & 0x807f | exponents & 0x7f80);
    }
}

#[test]
fn products_about_half_of_the_least_number() {
    // Every pair of significands, at the exponents whose product is near 2^-134.
    for x in 0..0x80u16 {
        for y in 0..0x80u16 {
            for exponent in 0..14u16 {
                check(0x1f80 + x, ((exponent + 51) << 7) + y);
            }
        }
    }
}

#[test]
fn fused() {
    let check = |x: u16, y: u16, z: u16| {
        let (a, b, c): (BFloat, BFloat, BFloat) = (float(x), float(y), float(z));
        assert_eq!(fma_bf16(x, y, z), expect(a.mul_add_r(b, c, NEAREST).value), "{x:#x} {y:#x} {z:#x}");
    };
    let list = edges();
    for &x in &list {
        for &y in &list {
            for &z in &list {
                check(x, y, z);
            }
        }
    }
    let mut random = Random::new(22);
    for _ in 0..300_000 {
        let (x, y, z) = (random.u16(), random.u16(), random.u16());
        check(x, y, z);
        // A product of similar magnitude as c, or its tie.
        let product =
            (i32::from(x >> 7 & 0xff) + i32::from(y >> 7 & 0xff) - 127 + i32::from(z & 15) - 8).clamp(0, 254);
        check(x, y, z & 0x807f | (product as u16) << 7);
        // One factor is near 1, so that all exponents of c occur.
        check(x, 0x3f80 | y & 0x80ff, z);
    }
    // 1 + 2^-8 is the tie above 1; a product of 2^-200 decides. `f64` loses it except for the odd digit.
    assert_eq!(fma_bf16(0x3b80, 0x3f80, 0x3f80), 0x3f80);
    assert_eq!(fma_bf16(0x3b81, 0x3f80, 0x3f80), 0x3f81);
    assert_eq!(fma_bf16(0x0040, 0x0040, 0x0001), 0x0001);
}

#[test]
fn signs_and_limits() {
    for x in 0..=0xffff_u16 {
        let nan = x & 0x7fff > 0x7f80;
        assert_eq!(neg_bf16(x), if nan { 0x7fff } else { x ^ 0x8000 });
        assert_eq!(abs_bf16(x), if nan { 0x7fff } else { x & 0x7fff });
        assert_eq!(ftz_bf16(x), if x & 0x7f80 == 0 { x & 0x8000 } else { x });
        let positive = if x >> 15 == 0 { x } else { 0 };
        assert_eq!(relu_bf16(x), if nan { 0x7fff } else { positive });
        assert_eq!(sat_bf16(x), if x > 0x7f80 { 0 } else { x.min(0x3f80) });
        let finite = if x & 0x7fff == 0x7f80 { x - 1 } else { x };
        assert_eq!(cvt_satfinite_bf16(x), finite);
        let half_nan = x & 0x7fff > 0x7c00;
        assert_eq!(relu_f16(x), if half_nan { 0x7fff } else { positive });
        assert_eq!(cvt_satfinite_f16(x), if x & 0x7fff == 0x7c00 { x - 1 } else { x });
    }
}

fn converted<S: FloatConvert<D>, D: Float>(from: S, round: Round) -> Option<u64> {
    bits(from.convert_r(round, &mut false).value)
}

#[test]
fn conversions() {
    let mut random = Random::new(23);
    let mut singles = edges_f32();
    for x in edges() {
        let bits = u32::from(x) << 16;
        singles.extend([bits, bits | 1, bits | 0x7fff, bits | 0x8000, bits | 0x8001, bits | 0xffff]);
    }
    singles.extend((0..100_000).map(|_| random.u32()));
    let mut doubles = edges_f64();
    doubles.extend(singles.iter().map(|x| f64::from(f32::from_bits(*x)).to_bits()));
    doubles.extend(singles.iter().map(|x| f64::from(f32::from_bits(*x)).to_bits().wrapping_add(1)));
    doubles.extend((0..100_000).map(|_| random.u64()));
    for (rnd, round) in MODES {
        for &x in &singles {
            let expected = converted::<Single, BFloat>(float(x), round).map_or(0x7fff, |b| b as u16);
            assert_eq!(cvt_bf16_f32(f32::from_bits(x), rnd), expected, "{rnd:?} {x:#x}");
        }
        for &x in &doubles {
            let expected = converted::<Double, BFloat>(float(x), round).map_or(0x7fff, |b| b as u16);
            assert_eq!(cvt_bf16_f64(f64::from_bits(x), rnd), expected, "{rnd:?} {x:#x}");
        }
        for i in 0..200_000 {
            let x = random.u64() >> (i % 64);
            let unsigned = expect(BFloat::from_u128_r(x.into(), round).value);
            assert_eq!(cvt_bf16_u64(x, rnd), unsigned, "{rnd:?} {x:#x}");
            let signed = expect(BFloat::from_i128_r(x.cast_signed().into(), round).value);
            assert_eq!(cvt_bf16_s64(x.cast_signed(), rnd), signed, "{rnd:?} {x:#x}");
            let word = x as u32;
            assert_eq!(cvt_bf16_u32(word, rnd), cvt_bf16_u64(word.into(), rnd));
            assert_eq!(cvt_bf16_s32(word.cast_signed(), rnd), cvt_bf16_s64(word.cast_signed().into(), rnd));
            assert_eq!(cvt_bf16_u16(x as u16, rnd), cvt_bf16_u64((x as u16).into(), rnd));
            assert_eq!(cvt_bf16_s16(x as i16, rnd), cvt_bf16_s64((x as i16).into(), rnd));
            assert_eq!(cvt_bf16_u8(x as u8, rnd), cvt_bf16_u64((x as u8).into(), rnd));
            assert_eq!(cvt_bf16_s8(x as i8, rnd), cvt_bf16_s64((x as i8).into(), rnd));
        }
    }
    for x in 0..=0xffff_u16 {
        let single = converted::<BFloat, Single>(float(x), NEAREST).map_or(0x7fff_ffff, |b| b as u32);
        assert_eq!(cvt_f32_bf16(x).to_bits(), single, "{x:#x}");
        match converted::<BFloat, Double>(float(x), NEAREST) {
            Some(double) => assert_eq!(cvt_f64_bf16(x).to_bits(), double, "{x:#x}"),
            None => assert!(cvt_f64_bf16(x).is_nan(), "{x:#x}"),
        }
        let integral = [
            (RndInt::Rni, NEAREST),
            (RndInt::Rzi, Round::TowardZero),
            (RndInt::Rmi, Round::TowardNegative),
            (RndInt::Rpi, Round::TowardPositive),
        ];
        for (rnd, round) in integral {
            let value: BFloat = float(x);
            assert_eq!(round_bf16(x, rnd), expect(value.round_to_integral(round).value), "{rnd:?} {x:#x}");
        }
        let half: Half = float(x);
        let expected = converted::<Half, BFloat>(half, NEAREST).map_or(0x7fff, |b| b as u16);
        assert_eq!(cvt_bf16_f32(cvt_f32_f16(x), Rnd::Rn), expected, "{x:#x}");
    }
}

/// A `.tf32` has as many digits as a half, so numbers near 1 round alike.
#[test]
fn tf32() {
    let mut random = Random::new(24);
    for _ in 0..200_000 {
        let x = random.u32();
        let about_one = x & 0x807f_ffff | 0x3f80_0000;
        for (round, have) in [
            (Round::NearestTiesToAway, cvt_rna_tf32_f32(f32::from_bits(about_one))),
            (NEAREST, cvt_tf32_f32(f32::from_bits(about_one), Rnd::Rn)),
            (Round::TowardZero, cvt_tf32_f32(f32::from_bits(about_one), Rnd::Rz)),
        ] {
            let half: Half = float::<Single>(about_one).convert_r(round, &mut false).value;
            let expected = converted::<Half, Single>(half, NEAREST).unwrap() as u32;
            assert_eq!(have, expected, "{about_one:#x} {round:?}");
        }
    }
    for (x, nearest_away, nearest, zero) in [
        (0u32, 0u32, 0u32, 0u32),
        (0x8000_0000, 0x8000_0000, 0x8000_0000, 0x8000_0000),
        (0x0000_1000, 0x0000_2000, 0, 0),
        (0x0000_3000, 0x0000_4000, 0x0000_4000, 0x0000_2000),
        (0x7f7f_ffff, 0x7f80_0000, 0x7f80_0000, 0x7f7f_e000),
        (0xff80_0000, 0xff80_0000, 0xff80_0000, 0xff80_0000),
        (0xff80_0001, 0x7fff_ffff, 0x7fff_ffff, 0x7fff_ffff),
    ] {
        let a = f32::from_bits(x);
        assert_eq!(cvt_rna_tf32_f32(a), nearest_away, "{x:#x}");
        assert_eq!(cvt_tf32_f32(a, Rnd::Rn), nearest, "{x:#x}");
        assert_eq!(cvt_tf32_f32(a, Rnd::Rz), zero, "{x:#x}");
    }
    assert_eq!(cvt_satfinite_tf32(0xff80_0000), 0xff7f_e000);
    assert_eq!(cvt_satfinite_tf32(0x7fff_ffff), 0x7fff_ffff);
    assert_eq!(
        [0xbf80_0000, 0x8000_0000, 0x3f80_0000, 0x7fff_ffff].map(relu_tf32),
        [0, 0, 0x3f80_0000, 0x7fff_ffff]
    );
}

#[test]
fn pairs_are_two_numbers() {
    let mut random = Random::new(25);
    for _ in 0..20_000 {
        let (a, b, c) = (random.u32(), random.u32(), random.u32());
        let low = |x: u32| x as u16;
        let high = |x: u32| (x >> 16) as u16;
        let both = |l: u16, h: u16| u32::from(h) << 16 | u32::from(l);
        assert_eq!(add_bf16x2(a, b), both(add_bf16(low(a), low(b)), add_bf16(high(a), high(b))));
        assert_eq!(sub_bf16x2(a, b), both(sub_bf16(low(a), low(b)), sub_bf16(high(a), high(b))));
        assert_eq!(mul_bf16x2(a, b), both(mul_bf16(low(a), low(b)), mul_bf16(high(a), high(b))));
        let fused = both(fma_bf16(low(a), low(b), low(c)), fma_bf16(high(a), high(b), high(c)));
        assert_eq!(fma_bf16x2(a, b, c), fused);
        assert_eq!(neg_bf16x2(a), both(neg_bf16(low(a)), neg_bf16(high(a))));
        assert_eq!(abs_bf16x2(a), both(abs_bf16(low(a)), abs_bf16(high(a))));
        assert_eq!(relu_bf16x2(a), both(relu_bf16(low(a)), relu_bf16(high(a))));
        assert_eq!(relu_f16x2(a), both(relu_f16(low(a)), relu_f16(high(a))));
    }
}
