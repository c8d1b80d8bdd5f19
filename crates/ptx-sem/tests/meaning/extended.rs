//! §9.7.2: sums with carry against exact 128-bit sums, and the manual's multi-word sequences against wide
//! arithmetic.

use crate::values::{Random, edges};
use ptx_sem::*;

/// All functions of one type against exact values of the unsigned patterns. The product is signed if the type
/// is.
macro_rules! carries {
    ($test:ident $ty:ty, $unsigned:ty: $add_cc:ident $addc_cc:ident $addc:ident $sub_cc:ident $subc_cc:ident $subc:ident
     $mad_lo_cc:ident $mad_hi_cc:ident $madc_lo_cc:ident $madc_hi_cc:ident $madc_lo:ident $madc_hi:ident) => {
        #[test]
        fn $test() {
            const N: u32 = <$ty>::BITS;
            let list = edges(N);
            let split = |exact: i128| (exact as $ty, exact >> N != 0);
            for &x in &list {
                for &y in &list {
                    let (a, b) = (x as $ty, y as $ty);
                    let (ua, ub) = (i128::from(a as $unsigned), i128::from(b as $unsigned));
                    assert_eq!($add_cc(a, b), split(ua + ub));
                    assert_eq!($sub_cc(a, b), ((ua - ub) as $ty, ua >= ub));
                    let product = i128::from(a).wrapping_mul(i128::from(b));
                    let halves = [product as $unsigned, (product >> N) as $unsigned].map(i128::from);
                    for (carry, cf) in [(0, false), (1, true)] {
                        assert_eq!($addc_cc(a, b, cf), split(ua + ub + carry));
                        assert_eq!($addc(a, b, cf), split(ua + ub + carry).0);
                        assert_eq!(
                            $subc_cc(a, b, cf),
                            ((ua - (ub + 1 - carry)) as $ty, ua >= ub + 1 - carry)
                        );
                        assert_eq!($subc(a, b, cf), (ua - (ub + 1 - carry)) as $ty);
                    }
                    for &z in list.iter().step_by(4) {
                        let c = z as $ty;
                        let uc = i128::from(c as $unsigned);
                        assert_eq!($mad_lo_cc(a, b, c), split(halves[0] + uc));
                        assert_eq!($mad_hi_cc(a, b, c), split(halves[1] + uc));
                        for (carry, cf) in [(0, false), (1, true)] {
                            assert_eq!($madc_lo_cc(a, b, c, cf), split(halves[0] + uc + carry));
                            assert_eq!($madc_hi_cc(a, b, c, cf), split(halves[1] + uc + carry));
                            assert_eq!($madc_lo(a, b, c, cf), split(halves[0] + uc + carry).0);
                            assert_eq!($madc_hi(a, b, c, cf), split(halves[1] + uc + carry).0);
                        }
                    }
                }
            }
        }
    };
}
carries!(carries_u32 u32, u32: add_cc_u32 addc_cc_u32 addc_u32 sub_cc_u32 subc_cc_u32 subc_u32
    mad_lo_cc_u32 mad_hi_cc_u32 madc_lo_cc_u32 madc_hi_cc_u32 madc_lo_u32 madc_hi_u32);
carries!(carries_s32 i32, u32: add_cc_s32 addc_cc_s32 addc_s32 sub_cc_s32 subc_cc_s32 subc_s32
    mad_lo_cc_s32 mad_hi_cc_s32 madc_lo_cc_s32 madc_hi_cc_s32 madc_lo_s32 madc_hi_s32);
carries!(carries_u64 u64, u64: add_cc_u64 addc_cc_u64 addc_u64 sub_cc_u64 subc_cc_u64 subc_u64
    mad_lo_cc_u64 mad_hi_cc_u64 madc_lo_cc_u64 madc_hi_cc_u64 madc_lo_u64 madc_hi_u64);
carries!(carries_s64 i64, u64: add_cc_s64 addc_cc_s64 addc_s64 sub_cc_s64 subc_cc_s64 subc_s64
    mad_lo_cc_s64 mad_hi_cc_s64 madc_lo_cc_s64 madc_hi_cc_s64 madc_lo_s64 madc_hi_s64);

#[test]
fn the_manuals_64_by_64_bit_product() {
    let mut random = Random::new(7);
    let operands = edges(64).into_iter().zip((0..).map(|_| random.u64()));
    for (x, y) in operands.chain([(u64::MAX, u64::MAX), (u64::MAX, 1), (1 << 63, 1 << 63)]) {
        let (r4, r5, r6, r7) = (x as u32, (x >> 32) as u32, y as u32, (y >> 32) as u32);
        // The example of §9.7.2.6, line by line.
        let r0 = mul_lo_u32(r4, r6);
        let r1 = mul_hi_u32(r4, r6);
        let (r1, cf) = mad_lo_cc_u32(r5, r6, r1);
        let r2 = madc_hi_u32(r5, r6, 0, cf);
        let (r1, cf) = mad_lo_cc_u32(r4, r7, r1);
        let (r2, cf) = madc_hi_cc_u32(r4, r7, r2, cf);
        let r3 = addc_u32(0, 0, cf);
        let (r2, cf) = mad_lo_cc_u32(r5, r7, r2);
        let r3 = madc_hi_u32(r5, r7, r3, cf);
        let product = [r3, r2, r1, r0].iter().fold(0u128, |p, &r| p << 32 | u128::from(r));
        assert_eq!(product, u128::from(x) * u128::from(y));
    }
}
