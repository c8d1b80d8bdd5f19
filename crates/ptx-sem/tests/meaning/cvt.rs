//! §9.7.8.14: conversions against exact integers and `rustc_apfloat`.

use crate::oracle::{MODES, bits, float};
use crate::values::{Random, edges, edges_f16, edges_f32, edges_f64};
use ptx_sem::*;
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

const INT_MODES: [(RndInt, Round); 4] = [
    (RndInt::Rni, Round::NearestTiesToEven),
    (RndInt::Rzi, Round::TowardZero),
    (RndInt::Rmi, Round::TowardNegative),
    (RndInt::Rpi, Round::TowardPositive),
];

#[test]
fn integers_extend_by_source_and_wrap() {
    macro_rules! pairs {
        ($($name:ident, $from:ty, $to:ty;)+) => {$(
            for x in edges(<$from>::BITS) {
                let a = x as $from;
                // The value modulo 2^n, where n is the destination's width, in the destination's range.
                let modulus = 1i128 << <$to>::BITS;
                let wrapped = i128::from(a).rem_euclid(modulus);
                let expected = if wrapped > i128::from(<$to>::MAX) { wrapped - modulus } else { wrapped };
                assert_eq!(i128::from($name(a)), expected, "{}({a})", stringify!($name));
            }
        )+};
    }
    pairs! {
        cvt_u8_u8, u8, u8; cvt_u8_u16, u16, u8; cvt_u8_u32, u32, u8; cvt_u8_u64, u64, u8; cvt_u8_s8, i8, u8; cvt_u8_s16, i16, u8; cvt_u8_s32, i32, u8; cvt_u8_s64, i64, u8;
        cvt_u16_u8, u8, u16; cvt_u16_u16, u16, u16; cvt_u16_u32, u32, u16; cvt_u16_u64, u64, u16; cvt_u16_s8, i8, u16; cvt_u16_s16, i16, u16; cvt_u16_s32, i32, u16; cvt_u16_s64, i64, u16;
        cvt_u32_u8, u8, u32; cvt_u32_u16, u16, u32; cvt_u32_u32, u32, u32; cvt_u32_u64, u64, u32; cvt_u32_s8, i8, u32; cvt_u32_s16, i16, u32; cvt_u32_s32, i32, u32; cvt_u32_s64, i64, u32;
        cvt_u64_u8, u8, u64; cvt_u64_u16, u16, u64; cvt_u64_u32, u32, u64; cvt_u64_u64, u64, u64; cvt_u64_s8, i8, u64; cvt_u64_s16, i16, u64; cvt_u64_s32, i32, u64; cvt_u64_s64, i64, u64;
        cvt_s8_u8, u8, i8; cvt_s8_u16, u16, i8; cvt_s8_u32, u32, i8; cvt_s8_u64, u64, i8; cvt_s8_s8, i8, i8; cvt_s8_s16, i16, i8; cvt_s8_s32, i32, i8; cvt_s8_s64, i64, i8;
        cvt_s16_u8, u8, i16; cvt_s16_u16, u16, i16; cvt_s16_u32, u32, i16; cvt_s16_u64, u64, i16; cvt_s16_s8, i8, i16; cvt_s16_s16, i16, i16; cvt_s16_s32, i32, i16; cvt_s16_s64, i64, i16;
        cvt_s32_u8, u8, i32; cvt_s32_u16, u16, i32; cvt_s32_u32, u32, i32; cvt_s32_u64, u64, i32; cvt_s32_s8, i8, i32; cvt_s32_s16, i16, i32; cvt_s32_s32, i32, i32; cvt_s32_s64, i64, i32;
        cvt_s64_u8, u8, i64; cvt_s64_u16, u16, i64; cvt_s64_u32, u32, i64; cvt_s64_u64, u64, i64; cvt_s64_s8, i8, i64; cvt_s64_s16, i16, i64; cvt_s64_s32, i32, i64; cvt_s64_s64, i64, i64;
    }
    assert_eq!(cvt_u16_s8(-128), 0xff80);
    assert_eq!(cvt_s32_u16(0xffff), 0xffff);
}

#[test]
fn saturation_clamps_integers() {
    macro_rules! pairs {
        ($($name:ident, $from:ty, $to:ty;)+) => {$(
            for x in edges(<$from>::BITS) {
                let a = x as $from;
                let expected = i128::from(a).clamp(<$to>::MIN.into(), <$to>::MAX.into());
                assert_eq!(i128::from($name(a)), expected, "{}({a})", stringify!($name));
            }
        )+};
    }
    pairs! {
        cvt_sat_u8_u16, u16, u8; cvt_sat_u8_u32, u32, u8; cvt_sat_u8_u64, u64, u8; cvt_sat_u8_s8, i8, u8; cvt_sat_u8_s16, i16, u8; cvt_sat_u8_s32, i32, u8; cvt_sat_u8_s64, i64, u8;
        cvt_sat_u16_u32, u32, u16; cvt_sat_u16_u64, u64, u16; cvt_sat_u16_s8, i8, u16; cvt_sat_u16_s16, i16, u16; cvt_sat_u16_s32, i32, u16; cvt_sat_u16_s64, i64, u16;
        cvt_sat_u32_u64, u64, u32; cvt_sat_u32_s8, i8, u32; cvt_sat_u32_s16, i16, u32; cvt_sat_u32_s32, i32, u32; cvt_sat_u32_s64, i64, u32;
        cvt_sat_u64_s8, i8, u64; cvt_sat_u64_s16, i16, u64; cvt_sat_u64_s32, i32, u64; cvt_sat_u64_s64, i64, u64;
        cvt_sat_s8_u8, u8, i8; cvt_sat_s8_u16, u16, i8; cvt_sat_s8_u32, u32, i8; cvt_sat_s8_u64, u64, i8; cvt_sat_s8_s16, i16, i8; cvt_sat_s8_s32, i32, i8; cvt_sat_s8_s64, i64, i8;
        cvt_sat_s16_u16, u16, i16; cvt_sat_s16_u32, u32, i16; cvt_sat_s16_u64, u64, i16; cvt_sat_s16_s32, i32, i16; cvt_sat_s16_s64, i64, i16;
        cvt_sat_s32_u32, u32, i32; cvt_sat_s32_u64, u64, i32; cvt_sat_s32_s64, i64, i32;
        cvt_sat_s64_u64, u64, i64;
    }
    assert_eq!((cvt_sat_u8_s32(-1), cvt_sat_s8_u64(200), cvt_sat_u64_s64(i64::MIN)), (0, 127, 0));
}

#[test]
fn integers_to_floats() {
    let mut random = Random::new(11);
    macro_rules! types {
        ($($f16:ident $f32:ident $f64:ident $ty:ty;)+) => {$(
            let list = edges(<$ty>::BITS);
            let near_halves = [2047, 2048, 2049, 2050, 4099, 65503, 65504, 65505, 65519, 65520, 65521, 65535, 131_000, 0xff_ffff, 0x100_0001, 0x100_0003];
            for x in list.into_iter().chain(near_halves).chain((0..2000).map(|_| random.u64() >> (random.u32() % 64))) {
                let a = x as $ty;
                for (rnd, round) in MODES {
                    let value = i128::from(a);
                    let half = bits(Half::from_i128_r(value, round).value);
                    assert_eq!(Some($f16(a, rnd).into()), half, "{rnd:?} {a}");
                    let single = bits(Single::from_i128_r(value, round).value);
                    assert_eq!(Some($f32(a, rnd).to_bits().into()), single, "{rnd:?} {a}");
                    let double = bits(Double::from_i128_r(value, round).value);
                    assert_eq!(Some($f64(a, rnd).to_bits()), double, "{rnd:?} {a}");
                }
            }
        )+};
    }
    types! {
        cvt_f16_u8 cvt_f32_u8 cvt_f64_u8 u8;
        cvt_f16_u16 cvt_f32_u16 cvt_f64_u16 u16;
        cvt_f16_u32 cvt_f32_u32 cvt_f64_u32 u32;
        cvt_f16_u64 cvt_f32_u64 cvt_f64_u64 u64;
        cvt_f16_s8 cvt_f32_s8 cvt_f64_s8 i8;
        cvt_f16_s16 cvt_f32_s16 cvt_f64_s16 i16;
        cvt_f16_s32 cvt_f32_s32 cvt_f64_s32 i32;
        cvt_f16_s64 cvt_f32_s64 cvt_f64_s64 i64;
    }
    assert_eq!(cvt_f16_u32(65520, Rnd::Rn), 0x7c00);
    assert_eq!(cvt_f16_u32(70000, Rnd::Rz), 0x7bff);
}

/// The exact value of a float pattern, a sign and m * 2^e, rounded to an integer by the mode. Huge values
/// become 2^100.
fn to_integer(negative: bool, magnitude: u64, exponent: i32, rnd: RndInt) -> i128 {
    let m = i128::from(magnitude);
    let rounded = if exponent >= 0 {
        if exponent > 40 && m != 0 { 1 << 100 } else { m << exponent }
    } else {
        let down = (-exponent).min(100);
        let (floor, rest, half) = (m >> down, m & ((1 << down) - 1), 1i128 << (down - 1));
        let up = match rnd {
            RndInt::Rni => rest > half || (rest == half && floor % 2 == 1),
            RndInt::Rzi => false,
            RndInt::Rmi => negative && rest != 0,
            RndInt::Rpi => !negative && rest != 0,
        };
        floor + i128::from(up)
    };
    if negative { -rounded } else { rounded }
}

/// The parts of a pattern of a format with this many fraction bits and the sign bit `sign`; `None` for a NaN.
fn parts(pattern: u64, sign: u64, fraction_bits: u32, bias: i32) -> Option<(bool, u64, i32)> {
    let magnitude = pattern & (sign - 1);
    let biased = (magnitude >> fraction_bits) as i32;
    let fraction = magnitude & ((1 << fraction_bits) - 1);
    let shift = bias + fraction_bits as i32;
    let negative = pattern & sign != 0;
    if biased == 2 * bias + 1 {
        // Infinity, as large as any number can be.
        (fraction == 0).then_some((negative, 1, 1000))
    } else if biased == 0 {
        Some((negative, fraction, 1 - shift))
    } else {
        Some((negative, fraction | 1 << fraction_bits, biased - shift))
    }
}

#[test]
fn floats_to_integers() {
    let mut random = Random::new(12);
    let mut singles = edges_f32();
    let mut doubles = edges_f64();
    // Quarters around small integers and around every limit.
    for limit in [
        0.0,
        1.0,
        2.0,
        3.0,
        127.0,
        128.0,
        255.0,
        256.0,
        32767.0,
        32768.0,
        65535.0,
        65536.0,
        2147483647.0,
        2147483648.0,
        4294967295.0,
    ] {
        for quarter in -6..=6 {
            let x = limit + f64::from(quarter) / 4.0;
            doubles.extend([x.to_bits(), (-x).to_bits()]);
            singles.extend([(x as f32).to_bits(), (-x as f32).to_bits()]);
        }
    }
    for limit in [2f64.powi(63), 2f64.powi(64), 2f64.powi(53), 2f64.powi(52)] {
        doubles.extend(
            [limit, limit.next_down(), limit.next_up(), -limit, (-limit).next_down(), (-limit).next_up()]
                .map(f64::to_bits),
        );
        let limit = limit as f32;
        singles.extend(
            [limit, limit.next_down(), limit.next_up(), -limit, (-limit).next_down(), (-limit).next_up()]
                .map(f32::to_bits),
        );
    }
    doubles.extend((0..3000).map(|_| 0x3fe0_0000_0000_0000 + (random.u64() >> 2) % (70 << 52)));
    singles.extend((0..3000).map(|_| 0x3f00_0000 + random.u32() % (70 << 23)));
    let halves: Vec<u16> = (0..=0xffff).step_by(3).chain(edges_f16()).collect();
    macro_rules! types {
        ($($f16:ident $f32:ident $f64:ident $ty:ty;)+) => {$(
            for (rnd, _) in INT_MODES {
                // NaN: reading A97.
                let highest = 1 << (<$ty>::BITS - 1);
                let nan = if <$ty>::BITS == 64 { highest } else { 0 };
                let expect = |parts: Option<(bool, u64, i32)>, nan: $ty| {
                    let Some((negative, m, e)) = parts else { return nan };
                    to_integer(negative, m, e, rnd).clamp(<$ty>::MIN.into(), <$ty>::MAX.into()) as $ty
                };
                for &x in &halves {
                    assert_eq!($f16(x, rnd), expect(parts(x.into(), 1 << 15, 10, 15), nan), "{rnd:?} {x:#x}");
                }
                for &x in &singles {
                    assert_eq!($f32(f32::from_bits(x), rnd), expect(parts(x.into(), 1 << 31, 23, 127), nan), "{rnd:?} {x:#x}");
                }
                for &x in &doubles {
                    assert_eq!($f64(f64::from_bits(x), rnd), expect(parts(x, 1 << 63, 52, 1023), highest), "{rnd:?} {x:#x}");
                }
            }
        )+};
    }
    types! {
        cvt_u8_f16 cvt_u8_f32 cvt_u8_f64 u8;
        cvt_u16_f16 cvt_u16_f32 cvt_u16_f64 u16;
        cvt_u32_f16 cvt_u32_f32 cvt_u32_f64 u32;
        cvt_u64_f16 cvt_u64_f32 cvt_u64_f64 u64;
        cvt_s8_f16 cvt_s8_f32 cvt_s8_f64 i8;
        cvt_s16_f16 cvt_s16_f32 cvt_s16_f64 i16;
        cvt_s32_f16 cvt_s32_f32 cvt_s32_f64 i32;
        cvt_s64_f16 cvt_s64_f32 cvt_s64_f64 i64;
    }
    assert_eq!(
        (cvt_s32_f32(2.5, RndInt::Rni), cvt_s32_f32(-2.5, RndInt::Rmi), cvt_u8_f64(-0.5, RndInt::Rmi)),
        (2, -3, 0)
    );
    assert_eq!(
        (cvt_u64_f32(f32::INFINITY, RndInt::Rzi), cvt_s64_f64(f64::NAN, RndInt::Rpi)),
        (u64::MAX, i64::MIN)
    );
}

#[test]
fn floats_round_to_integral_floats() {
    let mut random = Random::new(13);
    for (rnd, round) in INT_MODES {
        for x in edges_f32().into_iter().chain((0..20_000).map(|_| 0x3e00_0000 + random.u32() % (30 << 23))) {
            let expected = bits(float::<Single>(x).round_to_integral(round).value).unwrap_or(0x7fff_ffff);
            assert_eq!(u64::from(round_f32(f32::from_bits(x), rnd).to_bits()), expected, "{rnd:?} {x:#x}");
        }
        for x in edges_f64()
            .into_iter()
            .chain((0..20_000).map(|_| 0x3fc0_0000_0000_0000 + random.u64() % (58 << 52)))
        {
            let expected = bits(float::<Double>(x).round_to_integral(round).value).unwrap_or(x | 1 << 51);
            assert_eq!(round_f64(f64::from_bits(x), rnd).to_bits(), expected, "{rnd:?} {x:#x}");
        }
        for x in 0..=0xffff_u16 {
            let expected = bits(float::<Half>(x).round_to_integral(round).value).unwrap_or(0x7fff);
            assert_eq!(u64::from(round_f16(x, rnd)), expected, "{rnd:?} {x:#x}");
        }
    }
    assert_eq!(round_f32(-0.3, RndInt::Rni).to_bits(), 0x8000_0000);
}

fn convert<S: FloatConvert<D>, D: Float>(pattern: impl Into<u128>, round: Round) -> Option<u64> {
    let mut loses = false;
    bits(float::<S>(pattern).convert_r(round, &mut loses).value)
}

/// What an H200 gives beside 2^-126.
#[test]
fn flushing_looks_at_24_bits() {
    let cases = [
        (0x380f_ffff_e000_0000, Rnd::Rn, 0),
        (0x380f_ffff_ffff_ffff, Rnd::Rn, 0x0080_0000),
        (0xb80f_ffff_e000_0000, Rnd::Rm, 0x8000_0000),
        (0xb80f_ffff_ffff_ffff, Rnd::Rm, 0x8080_0000),
        (0x380f_ffff_ffff_ffff, Rnd::Rz, 0),
        (0x7fef_ffff_ffff_ffff, Rnd::Rn, 0x7f80_0000),
        (0x7ff8_0000_0000_0001, Rnd::Rn, 0x7fff_ffff),
    ];
    for (double, rnd, single) in cases {
        assert_eq!(cvt_ftz_f32_f64(f64::from_bits(double), rnd).to_bits(), single, "{rnd:?} {double:#x}");
    }
}

#[test]
fn floats_narrow() {
    let mut random = Random::new(14);
    for (rnd, round) in MODES {
        let in_range = |bias: u64, r: u64| {
            (r & 1 << 63) | ((1023 - bias) << 52).wrapping_add((r >> 2) % ((2 * bias + 2) << 52))
        };
        let randoms: Vec<u64> =
            (0..20_000).map(|i| in_range(if i % 2 == 0 { 27 } else { 151 }, random.u64())).collect();
        for x in edges_f64().into_iter().chain(randoms) {
            let a = f64::from_bits(x);
            let expected = convert::<Double, Single>(x, round).unwrap_or(0x7fff_ffff);
            assert_eq!(u64::from(cvt_f32_f64(a, rnd).to_bits()), expected, "f32 {rnd:?} {x:#x}");
            let expected = convert::<Double, Half>(x, round).unwrap_or(0x7fff);
            assert_eq!(u64::from(cvt_f16_f64(a, rnd)), expected, "f16 {rnd:?} {x:#x}");
        }
        for x in
            edges_f32().into_iter().chain((0..20_000).map(|_| ((127 - 27) << 23) + random.u32() % (44 << 23)))
        {
            let expected = convert::<Single, Half>(x, round).unwrap_or(0x7fff);
            assert_eq!(u64::from(cvt_f16_f32(f32::from_bits(x), rnd)), expected, "{rnd:?} {x:#x}");
        }
    }
    assert_eq!(
        (cvt_f16_f32(65519.0, Rnd::Rn), cvt_f16_f32(65520.0, Rnd::Rn), cvt_f16_f32(1e9, Rnd::Rm)),
        (0x7bff, 0x7c00, 0x7bff)
    );
}

#[test]
fn floats_widen() {
    for x in 0..=0xffff_u16 {
        let nan = u64::from(x & 0x8000) << 48 | 0x7ff8_0000_0000_0000 | u64::from(x & 0x3ff) << 42;
        let round = Round::NearestTiesToEven;
        assert_eq!(
            u64::from(cvt_f32_f16(x).to_bits()),
            convert::<Half, Single>(x, round).unwrap_or(0x7fff_ffff),
            "{x:#x}"
        );
        assert_eq!(cvt_f64_f16(x).to_bits(), convert::<Half, Double>(x, round).unwrap_or(nan), "{x:#x}");
    }
    let mut random = Random::new(15);
    for x in edges_f32().into_iter().chain((0..20_000).map(|_| random.u32())) {
        let nan = u64::from(x & 0x8000_0000) << 32 | 0x7ff8_0000_0000_0000 | u64::from(x & 0x7f_ffff) << 29;
        let expected = convert::<Single, Double>(x, Round::NearestTiesToEven).unwrap_or(nan);
        assert_eq!(cvt_f64_f32(f32::from_bits(x)).to_bits(), expected, "{x:#x}");
    }
}
