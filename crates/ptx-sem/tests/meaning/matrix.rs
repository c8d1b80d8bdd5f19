//! §9.7.13: elements of matrix products, for data whose sums are exact in any order.

use crate::values::Random;
use ptx_sem::*;

/// The bits of a small integer as a half: up to 2048 they are exact.
fn half(x: i32) -> u16 {
    cvt_f16_s32(x, Rnd::Rn)
}

#[test]
fn float_products_of_exact_data() {
    let mut random = Random::new(41);
    for _ in 0..2000 {
        let vector =
            |random: &mut Random| -> Vec<i32> { (0..16).map(|_| (random.u32() % 33) as i32 - 16).collect() };
        let (a, b) = (vector(&mut random), vector(&mut random));
        let c = (random.u32() % 200) as i32 - 100;
        let sum = c + a.iter().zip(&b).map(|(x, y)| x * y).sum::<i32>();
        let halves = |v: &[i32]| v.iter().map(|&x| half(x)).collect::<Vec<u16>>();
        let (ha, hb) = (halves(&a), halves(&b));
        assert_eq!(mma_f32_f32(c as f32, &ha, &hb), sum as f32);
        assert_eq!(mma_f32_f16(half(c), &ha, &hb), sum as f32);
        assert_eq!(mma_f16_f32(c as f32, &ha, &hb), half(sum));
        assert_eq!(mma_f16_f16(half(c), &ha, &hb), half(sum));
    }
    // Infinity minus infinity, and `.satfinite` of the results.
    let (inf, minus_inf) = (0x7c00, 0xfc00);
    let nan = mma_f32_f32(0.0, &[inf, minus_inf], &[half(1), half(1)]);
    assert_eq!((nan.to_bits(), satfinite_f32(nan).to_bits()), (0x7fff_ffff, 0));
    assert_eq!(mma_f16_f16(0, &[0x7bff], &[0x7bff]), inf);
    assert_eq!([inf, minus_inf, 0x7fff, 0xfe00, 0x8001].map(satfinite_f16), [0x7bff, 0xfbff, 0, 0, 0x8001]);
    assert_eq!([f32::INFINITY, f32::NEG_INFINITY, 1.5].map(satfinite_f32), [f32::MAX, f32::MIN, 1.5]);
}

#[test]
fn integer_products_wrap_or_clamp_once() {
    let (a, b) = ([-128; 16], [-128; 16]);
    assert_eq!(mma_s32(i32::MAX, &a, &b), i32::MAX.wrapping_add(16 * 16384));
    assert_eq!(mma_satfinite_s32(i32::MAX, &a, &b), i32::MAX);
    assert_eq!(mma_satfinite_s32(i32::MIN, &[255; 16], &[-1; 16]), i32::MIN);
    // The clamp is of the exact sum: exceeding the limit temporarily has no effect.
    assert_eq!(mma_satfinite_s32(i32::MAX, &[1, -1], &[1, 1]), i32::MAX);
    assert_eq!(mma_s32(5, &[1, 2, 3], &[4, -5, 6]), 5 + 4 - 10 + 18);
    assert_eq!(mma_xor_popc_s32(-1, &[0xff, 0, 0, 1], &[0x0f, 0, u32::MAX, 1]), -1 + 4 + 32);
}

#[test]
fn products_of_singles() {
    assert_eq!(mma_f32(0.5, &[1.0, 2.0, -3.0], &[4.0, 0.25, 0.5]), 3.5);
    // Exact products are added in more than single precision: 2^30 + 1 - 2^30.
    assert_eq!(mma_f32(1.0, &[32768.0, 32768.0], &[32768.0, -32768.0]), 1.0);
    assert_eq!(mma_f32(0.0, &[f32::INFINITY], &[0.0]).to_bits(), 0x7fff_ffff);
}
