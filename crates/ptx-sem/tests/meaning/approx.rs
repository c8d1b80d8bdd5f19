//! §9.7.3: approximate instructions. The special rows of the manual's tables hold exactly. Other results are
//! within the manual's bounds of a reference that this file computes in fixed point, without floating-point
//! functions.

use crate::values::{Random, edges_f32, edges_f64};
use ptx_sem::*;

const INF: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fff_ffff;
const ONE: u32 = 0x3f80_0000;
const SIGN: u32 = 0x8000_0000;

/// The results in a table for -Inf, -subnormal, -0, +0, +subnormal, +Inf, NaN.
type Row = [u32; 7];
const OPERANDS: Row = [SIGN | INF, SIGN | 0x1234, SIGN, 0, 0x7f_ffff, INF, 0xffc0_0123];

fn check_table(name: &str, f: fn(f32) -> f32, row: Row) {
    for (operand, expected) in OPERANDS.into_iter().zip(row) {
        let result = ftz_f32(f(ftz_f32(f32::from_bits(operand))));
        assert_eq!(result.to_bits(), expected, "{name}({operand:#x})");
    }
}

#[test]
fn tables_of_special_operands() {
    let ninf = SIGN | INF;
    check_table("rcp", rcp_approx_f32, [SIGN, ninf, ninf, INF, INF, 0, NAN]);
    check_table("sqrt", sqrt_approx_f32, [NAN, SIGN, SIGN, 0, 0, INF, NAN]);
    check_table("rsqrt", rsqrt_approx_f32, [NAN, ninf, ninf, INF, INF, 0, NAN]);
    check_table("sin", sin_approx_f32, [NAN, SIGN, SIGN, 0, 0, NAN, NAN]);
    check_table("cos", cos_approx_f32, [NAN, ONE, ONE, ONE, ONE, NAN, NAN]);
    check_table("lg2", lg2_approx_f32, [NAN, ninf, ninf, ninf, ninf, INF, NAN]);
    check_table("ex2", ex2_approx_f32, [0, ONE, ONE, ONE, ONE, INF, NAN]);
    for f in [sqrt_approx_f32, rsqrt_approx_f32, lg2_approx_f32] {
        assert_eq!(f(-1.0).to_bits(), NAN);
    }
}

#[test]
fn subnormals_count_where_nothing_is_flushed() {
    let tiny = f32::from_bits(1);
    assert_eq!(lg2_approx_f32(tiny), -149.0);
    assert_eq!(ex2_approx_f32(-149.0), tiny);
    assert_eq!(sin_approx_f32(tiny), tiny);
    assert_eq!(rsqrt_approx_f32(f32::from_bits(2)), 2f32.powi(74));
    assert_eq!(rcp_approx_f32(f32::from_bits(0x40_0000)), 2f32.powi(127));
}

/// m * 2^e of a positive finite `.f32`.
fn parts(a: f32) -> (i128, i32) {
    let (biased, fraction) = ((a.to_bits() >> 23) as i32, i128::from(a.to_bits() & 0x7f_ffff));
    if biased == 0 { (fraction, -149) } else { (fraction | 1 << 23, biased - 150) }
}

/// A non-negative `.f32` in units of 2^-60, exact for multiples of them.
fn fixed(a: f32) -> i128 {
    let (m, e) = parts(a);
    if e >= -60 { m << (e + 60) } else { m >> (-60 - e).min(120) }
}

const UNIT: i128 = 1 << 60;

fn mul(a: i128, b: i128) -> i128 {
    (a * b) >> 60
}

/// x - x^3/3! + ... or 1 - x^2/2! + ... from a first term and the number of its factorial.
fn alternating(x: i128, first: i128, mut n: i128) -> i128 {
    let (mut sum, mut term) = (0, first);
    while term != 0 && term != -1 {
        sum += term;
        term = -mul(mul(term, x), x) / ((n + 1) * (n + 2));
        n += 2;
    }
    sum
}

/// The natural logarithm of 2 in units of 2^-60, from the series of 1 / (k 2^k).
fn ln2() -> i128 {
    (1..80).map(|k: i128| (UNIT << 20) / (k << k)).sum::<i128>() >> 20
}

/// e^x by its series, for x in 0..1.
fn exp(x: i128) -> i128 {
    let (mut sum, mut term) = (0, UNIT);
    for k in 1..40 {
        sum += term;
        term = mul(term, x) / k;
    }
    sum
}

/// The logarithm to base 2 of y in 1..2, bit by bit: squaring doubles it.
fn lg2(mut y: i128) -> i128 {
    let mut result = 0;
    for bit in (16..60).rev() {
        y = mul(y, y);
        if y >= 2 * UNIT {
            result |= 1 << bit;
            y >>= 1;
        }
    }
    result
}

/// Whether the difference, in units of 2^-60, is at most 2^-bits.
fn within(result: f32, reference: i128, bits: f64) -> bool {
    let value = if result < 0.0 { -fixed(-result) } else { fixed(result) };
    ((value - reference).abs() as f64) <= (60.0 - bits).exp2()
}

#[test]
fn sine_and_cosine_in_the_first_quadrant() {
    let mut random = Random::new(21);
    let quadrant = core::f32::consts::FRAC_PI_2;
    let operands = (0..20_000).map(|i| {
        if i % 4 == 0 {
            f32::from_bits(ONE - (random.u32() >> 4))
        } else {
            quadrant * (random.u32() as f32 / 4294967296.0)
        }
    });
    for a in operands.chain([quadrant, 1.0, 0.5]) {
        let x = fixed(a);
        assert!(within(sin_approx_f32(a), alternating(x, x, 1), 20.9), "sin {a:e}");
        assert!(within(cos_approx_f32(a), alternating(x, UNIT, 0), 20.9), "cos {a:e}");
        assert_eq!(sin_approx_f32(-a).to_bits(), sin_approx_f32(a).to_bits() ^ SIGN);
    }
}

#[test]
fn exponential_and_logarithm() {
    let mut random = Random::new(22);
    let ln2 = ln2();
    for _ in 0..20_000 {
        let fraction = random.u32() as f32 / 4294967296.0;
        if fraction < 1.0 {
            assert!(within(ex2_approx_f32(fraction), exp(mul(fixed(fraction), ln2)), 22.5), "ex2 {fraction}");
        }
        let mantissa = f32::from_bits(ONE | random.u32() >> 9);
        assert!(within(lg2_approx_f32(mantissa), lg2(fixed(mantissa)), 22.6), "lg2 {mantissa}");
    }
    for e in -149..=127 {
        let power =
            if e < -126 { f32::from_bits(1 << (e + 149)) } else { f32::from_bits(((e + 127) as u32) << 23) };
        assert_eq!(ex2_approx_f32(e as f32), power);
        assert_eq!(lg2_approx_f32(power), e as f32);
    }
    assert_eq!((ex2_approx_f32(128.0), ex2_approx_f32(-151.0)), (f32::INFINITY, 0.0));
}

#[test]
fn reciprocals_and_roots() {
    let mut random = Random::new(23);
    for _ in 0..20_000 {
        // |r - 1/a| <= 2^-23 over 1..2, multiplied by a: |r a - 1| <= 2^-23 a.
        let a = f32::from_bits(ONE | random.u32() >> 9);
        let error = (mul(fixed(rcp_approx_f32(a)), fixed(a)) - UNIT).abs();
        assert!(error <= (fixed(a) >> 23) + 1, "rcp {a}");
        // |r - 1/sqrt(a)| <= 2^-22.4 over 1..4: the squares of both ends of that range enclose 1/a.
        let a = f32::from_bits(ONE + (random.u32() >> 8));
        let r = fixed(rsqrt_approx_f32(a));
        let bound = (60.0f64 - 22.4).exp2() as i128;
        assert!(
            mul(mul(r - bound, r - bound), fixed(a)) <= UNIT
                && mul(mul(r + bound, r + bound), fixed(a)) >= UNIT,
            "rsqrt {a}"
        );
        // The manual gives no bound for the square root; here it is correctly rounded.
        assert_eq!(sqrt_approx_f32(a), sqrt_f32(a, Rnd::Rn));
    }
}

#[test]
fn divisions_within_two_ulp() {
    let mut random = Random::new(24);
    for _ in 0..50_000 {
        // b in 2^-126..2^126, the quotient normal.
        let b = f32::from_bits(((random.u32() % 252 + 1) << 23) | random.u32() >> 9);
        let a = f32::from_bits(b.to_bits() & 0x7f80_0000 | random.u32() >> 9);
        for q in [div_approx_f32(a, b), div_full_f32(a, b)] {
            // |q b - a| <= 2 ulp(q) b, with q = m 2^e and ulp(q) = 2^e.
            let ((qm, qe), (bm, be), (am, ae)) = (parts(q), parts(b), parts(a));
            assert!(((qm * bm) - (am << (ae - be - qe))).abs() <= 2 * bm, "{a:e} / {b:e}");
        }
    }
    // Division by zero gives infinity with the sign of a; 0 / 0 is a NaN.
    assert_eq!((div_approx_f32(2.0, 0.0), div_approx_f32(-2.0, 0.0)), (f32::INFINITY, f32::NEG_INFINITY));
    assert_eq!(div_approx_f32(0.0, 0.0).to_bits(), NAN);
    assert_eq!(div_full_f32(1.0, f32::INFINITY).to_bits(), 0);
}

#[test]
fn approximations_of_doubles_keep_the_upper_word() {
    let inf = f64::INFINITY.to_bits();
    let sign = 1u64 << 63;
    let nan = 0x7fff_ffff_0000_0000;
    // -Inf, -subnormal, -0, +0, +subnormal, +Inf, NaN.
    let operands = [sign | inf, sign | 0x1234, sign, 0, 0x000f_ffff_ffff_ffff, inf, 0xfff8_0000_0000_0001];
    let rcp = [sign, sign | inf, sign | inf, inf, inf, 0, nan];
    let rsqrt = [nan, sign | inf, sign | inf, inf, inf, 0, nan];
    for ((x, r), s) in operands.into_iter().zip(rcp).zip(rsqrt) {
        assert_eq!(rcp_approx_ftz_f64(f64::from_bits(x)).to_bits(), r, "{x:#x}");
        assert_eq!(rsqrt_approx_ftz_f64(f64::from_bits(x)).to_bits(), s, "{x:#x}");
    }
    assert_eq!(rsqrt_approx_ftz_f64(-4.0).to_bits(), nan);
    assert_eq!((rcp_approx_ftz_f64(4.0), rsqrt_approx_ftz_f64(16.0)), (0.25, 0.25));
    // A subnormal result is flushed.
    assert_eq!(rcp_approx_ftz_f64(-f64::MAX).to_bits(), sign);
    for &x in &edges_f64() {
        // The lower word of the operand does not affect the result, and that of the result is zero.
        for f in [rcp_approx_ftz_f64, rsqrt_approx_ftz_f64] {
            let result = f(f64::from_bits(x)).to_bits();
            assert_eq!(result, f(f64::from_bits(x ^ 0x1234_5678)).to_bits(), "{x:#x}");
            assert_eq!(result as u32, 0);
        }
    }
    assert_eq!(rsqrt_approx_f64(0.25), 2.0);
    assert_eq!(rsqrt_approx_f64(-0.0), f64::NEG_INFINITY);
    assert_eq!(rsqrt_approx_f64(f64::from_bits(4)).to_bits(), 2f64.powi(536).to_bits());
    assert_eq!(rsqrt_approx_f64(-1.0).to_bits(), 0x7ff8_0000_0000_0000);
    assert_eq!(rsqrt_approx_f64(f64::from_bits(0xfff0_0000_0000_0001)).to_bits(), 0xfff8_0000_0000_0001);
}

/// §9.7.3.7 for sm_1x by exact integers: the product truncated to 24 bits, the sum by `rustc_apfloat` in 113
/// bits, then rounded to 24 bits.
fn mad_trunc(x: u32, y: u32, z: u32) -> u32 {
    use rustc_apfloat::ieee::{Quad, Single};
    use rustc_apfloat::{Float, FloatConvert, Round};
    let (single, mut loses) = (|x: u32| Single::from_bits(x.into()), false);
    let product = single(x).convert(&mut loses).value
        * <Single as FloatConvert<Quad>>::convert(single(y), &mut loses).value;
    let exact: Quad = product.value;
    // 112 fraction bits, of which 23 are kept.
    let cut = Quad::from_bits(exact.to_bits() >> 89 << 89);
    let c: Quad = single(z).convert(&mut loses).value;
    let sum: Single =
        cut.add_r(c, Round::NearestTiesToEven).value.convert_r(Round::NearestTiesToEven, &mut loses).value;
    if sum.is_nan() { NAN } else { sum.to_bits() as u32 }
}

#[test]
fn multiply_add_of_the_oldest_targets() {
    let flush = |x: u32| if x & INF == 0 { x & SIGN } else { x };
    let mut random = Random::new(25);
    let list: Vec<u32> = edges_f32().into_iter().step_by(3).chain((0..20).map(|_| random.u32())).collect();
    for &x in &list {
        for &y in &list {
            for &z in &list {
                let (a, b, c) = (f32::from_bits(x), f32::from_bits(y), f32::from_bits(z));
                let result = mad_trunc_f32(a, b, c).to_bits();
                let expected = if flush(z) & !SIGN == 0 {
                    let product = ftz_f32(mul_f32(ftz_f32(a), ftz_f32(b), Rnd::Rn));
                    ftz_f32(add_f32(product, ftz_f32(c), Rnd::Rn)).to_bits()
                } else {
                    flush(mad_trunc(flush(x), flush(y), flush(z)))
                };
                assert_eq!(result, expected, "{x:#x} {y:#x} {z:#x}");
            }
        }
    }
    // (1 + 2^-23)^2 - 1 keeps 2^-22 of the product, not its 2^-46.
    let a = f32::from_bits(ONE + 1);
    assert_eq!(mad_trunc_f32(a, a, -1.0), 2f32.powi(-22));
}

/// The hyperbolic tangent of m / 256, by its series of exponentials in fixed point: (1 - e) / (1 + e) with e
/// = e^-2x.
fn tanh(m: i128) -> i128 {
    let e = (0..2 * m / 256).fold(exp_minus(2 * m % 256 * (UNIT >> 8)), |e, _| mul(e, exp_minus(UNIT)));
    ((UNIT - e) << 60) / (UNIT + e)
}

/// e^-x, for x in 0..=1.
fn exp_minus(x: i128) -> i128 {
    let (mut sum, mut term, mut k) = (0, UNIT, 1);
    while term != 0 {
        sum += term;
        term = -mul(term, x) / k;
        k += 1;
        if k > 60 {
            break;
        }
    }
    sum
}

#[test]
fn tanh_is_within_its_bounds() {
    for (operand, expected) in
        [(SIGN | INF, SIGN | ONE), (INF, ONE), (SIGN, SIGN), (0, 0), (1, 1), (SIGN | 0x1234, SIGN | 0x1234)]
    {
        assert_eq!(tanh_approx_f32(f32::from_bits(operand)).to_bits(), expected, "{operand:#x}");
    }
    assert_eq!(tanh_approx_f32(f32::from_bits(0xff80_0001)).to_bits(), NAN);
    for m in 1..2400 {
        let reference = tanh(m);
        let a = m as f32 / 256.0;
        // The bound is relative, so it needs one more bit for each halving of the result.
        let bits = 11.0 - (reference as f64 / UNIT as f64).log2();
        assert!(within(tanh_approx_f32(a), reference, bits.min(40.0)), "{a}");
        assert!(within(tanh_approx_f32(-a), -reference, bits.min(40.0)), "-{a}");
        let half = cvt_f32_f16(tanh_approx_f16(cvt_f16_f32(a, Rnd::Rz)));
        let truth = tanh((cvt_f32_f16(cvt_f16_f32(a, Rnd::Rz)) * 256.0) as i128);
        assert!(within(half, truth, 10.987), "{a}");
        let brain = cvt_bf16_f32(a, Rnd::Rz);
        let truth = tanh((cvt_f32_bf16(brain) * 256.0) as i128);
        assert!(within(cvt_f32_bf16(tanh_approx_bf16(brain)), truth, 8.0), "{a}");
    }
}

#[test]
fn powers_of_two_in_sixteen_bits() {
    for n in -14i16..=15 {
        let exact = cvt_f16_f32(2f32.powi(n.into()), Rnd::Rn);
        assert_eq!(ex2_approx_f16(cvt_f16_s16(n, Rnd::Rn)), exact, "{n}");
        assert_eq!(cvt_f32_bf16(ex2_approx_bf16(cvt_bf16_s16(n, Rnd::Rn))), 2f32.powi(n.into()), "{n}");
    }
    assert_eq!(
        [0x7c00, 0xfc00, 0x8000, 0x7c01, 0x4c00].map(ex2_approx_f16),
        [0x7c00, 0, 0x3c00, 0x7fff, 0x7c00]
    );
    assert_eq!(
        [0x7f80, 0xff80, 0x8000, 0x7f81, 0x4300].map(ex2_approx_bf16),
        [0x7f80, 0, 0x3f80, 0x7fff, 0x7f80]
    );
    // 2^0.5 = 1.41421...: 0x3da8 is 1.4140625, and 0x3fb5 is 1.4140625 too.
    assert_eq!((ex2_approx_f16(0x3800), ex2_approx_bf16(0x3f00)), (0x3da8, 0x3fb5));
}
