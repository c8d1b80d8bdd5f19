//! §9.7.3: IEEE arithmetic in all modes against `rustc_apfloat`, square roots against exact squares, the rest
//! against pseudocode.

use crate::oracle::{MODES, bits, float};
use crate::values::{Random, edges_f32, edges_f64};
use ptx_sem::*;
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Double, Single};

/// The bits of a result: the oracle's, or the NaN by §9.7.3 and the project's rule for these operands.
fn expect_f32(oracle: Single) -> u32 {
    bits(oracle).map_or(0x7fff_ffff, |b| b as u32)
}

fn expect_f64(oracle: Double, operands: &[u64]) -> u64 {
    let is_nan = |x: u64| x << 1 > 0xffe0_0000_0000_0000;
    bits(oracle).unwrap_or_else(|| {
        operands
            .iter()
            .copied()
            .find(|&x| is_nan(x))
            .map_or(0x7ff8_0000_0000_0000, |x| x | 0x0008_0000_0000_0000)
    })
}

fn check_f32(x: u32, y: u32) {
    let (a, b) = (f32::from_bits(x), f32::from_bits(y));
    let (oa, ob): (Single, Single) = (float(x), float(y));
    for (rnd, round) in MODES {
        assert_eq!(
            add_f32(a, b, rnd).to_bits(),
            expect_f32(oa.add_r(ob, round).value),
            "add {rnd:?} {x:#x} {y:#x}"
        );
        assert_eq!(
            sub_f32(a, b, rnd).to_bits(),
            expect_f32(oa.sub_r(ob, round).value),
            "sub {rnd:?} {x:#x} {y:#x}"
        );
        assert_eq!(
            mul_f32(a, b, rnd).to_bits(),
            expect_f32(oa.mul_r(ob, round).value),
            "mul {rnd:?} {x:#x} {y:#x}"
        );
        assert_eq!(
            div_f32(a, b, rnd).to_bits(),
            expect_f32(oa.div_r(ob, round).value),
            "div {rnd:?} {x:#x} {y:#x}"
        );
    }
}

fn check_f64(x: u64, y: u64) {
    let (a, b) = (f64::from_bits(x), f64::from_bits(y));
    let (oa, ob): (Double, Double) = (float(x), float(y));
    for (rnd, round) in MODES {
        let expect = |oracle| expect_f64(oracle, &[x, y]);
        assert_eq!(
            add_f64(a, b, rnd).to_bits(),
            expect(oa.add_r(ob, round).value),
            "add {rnd:?} {x:#x} {y:#x}"
        );
        assert_eq!(
            sub_f64(a, b, rnd).to_bits(),
            expect(oa.sub_r(ob, round).value),
            "sub {rnd:?} {x:#x} {y:#x}"
        );
        assert_eq!(
            mul_f64(a, b, rnd).to_bits(),
            expect(oa.mul_r(ob, round).value),
            "mul {rnd:?} {x:#x} {y:#x}"
        );
        assert_eq!(
            div_f64(a, b, rnd).to_bits(),
            expect(oa.div_r(ob, round).value),
            "div {rnd:?} {x:#x} {y:#x}"
        );
    }
}

#[test]
fn arithmetic_f32() {
    let list = edges_f32();
    for &x in &list {
        for &y in &list {
            check_f32(x, y);
        }
    }
    let mut random = Random::new(1);
    for _ in 0..100_000 {
        let (x, y) = (random.u32(), random.u32());
        check_f32(x, y);
        // Nearby exponents, at which sums cancel and round.
        check_f32(x, (x & 0x7f80_0000).wrapping_add(y & 0x83ff_ffff));
    }
}

#[test]
fn arithmetic_f64() {
    let list = edges_f64();
    for &x in &list {
        for &y in &list {
            check_f64(x, y);
        }
    }
    let mut random = Random::new(2);
    for _ in 0..50_000 {
        let (x, y) = (random.u64(), random.u64());
        check_f64(x, y);
        check_f64(x, (x & 0x7ff0_0000_0000_0000).wrapping_add(y & 0x807f_ffff_ffff_ffff));
    }
}

/// The quick function equals the exact one whenever it reports certainty.
fn check_quick(x: u32, y: u32, z: u32) {
    let (a, b, c) = (f32::from_bits(x), f32::from_bits(y), f32::from_bits(z));
    let (quick, certain) = fma_quick_f32(a, b, c);
    let exact = fma_f32(a, b, c, Rnd::Rn);
    assert!(!certain || quick.to_bits() == exact.to_bits(), "{x:#x} {y:#x} {z:#x}: {quick:e}, not {exact:e}");
}

fn check_fma_f32(x: u32, y: u32, z: u32) {
    check_quick(x, y, z);
    let (oa, ob, oc): (Single, Single, Single) = (float(x), float(y), float(z));
    for (rnd, round) in MODES {
        let result = fma_f32(f32::from_bits(x), f32::from_bits(y), f32::from_bits(z), rnd);
        assert_eq!(
            result.to_bits(),
            expect_f32(oa.mul_add_r(ob, oc, round).value),
            "{rnd:?} {x:#x} {y:#x} {z:#x}"
        );
    }
}

fn check_fma_f64(x: u64, y: u64, z: u64) {
    let (oa, ob, oc): (Double, Double, Double) = (float(x), float(y), float(z));
    for (rnd, round) in MODES {
        let result = fma_f64(f64::from_bits(x), f64::from_bits(y), f64::from_bits(z), rnd);
        let expected = expect_f64(oa.mul_add_r(ob, oc, round).value, &[x, y, z]);
        assert_eq!(result.to_bits(), expected, "{rnd:?} {x:#x} {y:#x} {z:#x}");
    }
}

#[test]
fn fused_f32() {
    let list = edges_f32();
    for &x in list.iter().step_by(2) {
        for &y in list.iter().step_by(3) {
            for &z in &list {
                check_fma_f32(x, y, z);
            }
        }
    }
    let mut random = Random::new(3);
    for _ in 0..50_000 {
        let (x, y) = (random.u32(), random.u32());
        check_fma_f32(x, y, random.u32());
        // c close to minus the product: all but the low bits cancel.
        let near = -(f64::from(f32::from_bits(x)) * f64::from(f32::from_bits(y))) as f32;
        check_fma_f32(x, y, near.to_bits().wrapping_add(random.u32() & 7));
    }
}

#[test]
fn fused_f64() {
    let list = edges_f64();
    for &x in list.iter().step_by(2) {
        for &y in list.iter().step_by(3) {
            for &z in &list {
                check_fma_f64(x, y, z);
            }
        }
    }
    let mut random = Random::new(4);
    for _ in 0..30_000 {
        let (x, y) = (random.u64(), random.u64());
        check_fma_f64(x, y, random.u64());
        let near = -(f64::from_bits(x) * f64::from_bits(y));
        check_fma_f64(x, y, near.to_bits().wrapping_add(random.u64() & 7));
    }
}

#[test]
fn reciprocals() {
    let mut random = Random::new(5);
    for x in edges_f32().into_iter().chain((0..20_000).map(|_| random.u32())) {
        for (rnd, round) in MODES {
            let expected = expect_f32(float::<Single>(0x3f80_0000_u32).div_r(float(x), round).value);
            assert_eq!(rcp_f32(f32::from_bits(x), rnd).to_bits(), expected, "{rnd:?} {x:#x}");
        }
    }
    for x in edges_f64().into_iter().chain((0..20_000).map(|_| random.u64())) {
        for (rnd, round) in MODES {
            let expected = expect_f64(float::<Double>(1.0f64.to_bits()).div_r(float(x), round).value, &[x]);
            assert_eq!(rcp_f64(f64::from_bits(x), rnd).to_bits(), expected, "{rnd:?} {x:#x}");
        }
    }
}

/// m * 2^e of a positive finite `.f64`.
fn parts(a: f64) -> (u128, i32) {
    let bits = a.to_bits();
    let (biased, fraction) = ((bits >> 52) as i32, u128::from(bits & 0xf_ffff_ffff_ffff));
    if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) }
}

/// The exact order of x^2 and a, both positive. x has at most 54 significant bits.
fn compare_square((xm, xe): (u128, i32), a: f64) -> core::cmp::Ordering {
    let (am, ae) = parts(a);
    let (square, se) = (xm * xm, 2 * xe);
    // Both get the smaller exponent; they fit easily because the exponents are close.
    if ae >= se { square.cmp(&(am << (ae - se))) } else { (square << (se - ae)).cmp(&am) }
}

/// Checks that r, whose neighbours are `below` and `above`, is the square root of a, rounded by the mode.
fn check_root(a: f64, below: f64, r: f64, above: f64, rnd: Rnd) {
    use core::cmp::Ordering::{Greater, Less};
    let order = compare_square(parts(r), a);
    match rnd {
        Rnd::Rz | Rnd::Rm => {
            assert!(order != Greater && compare_square(parts(above), a) == Greater, "{rnd:?} {a:e}")
        }
        Rnd::Rp => assert!(order != Less && compare_square(parts(below), a) == Less, "{rnd:?} {a:e}"),
        Rnd::Rn => {
            // The midpoints have one more bit. A root is never exactly between two floats.
            let middle = |x: f64, y: f64| {
                let ((m, e), (n, f)) = (parts(x), parts(y));
                let least = e.min(f);
                ((m << (e - least)) + (n << (f - least)), least - 1)
            };
            assert_eq!(compare_square(middle(below, r), a), Less, "{a:e}");
            assert_eq!(compare_square(middle(r, above), a), Greater, "{a:e}");
        }
    }
}

#[test]
fn square_roots() {
    let mut random = Random::new(6);
    for (rnd, _) in MODES {
        for x in edges_f64().into_iter().chain((0..20_000).map(|_| random.u64())) {
            let a = f64::from_bits(x);
            let r = sqrt_f64(a, rnd);
            if a > 0.0 && a < f64::INFINITY {
                check_root(a, r.next_down(), r, r.next_up(), rnd);
            } else if a == 0.0 || a == f64::INFINITY {
                assert_eq!(r.to_bits(), x);
            } else {
                let expected = if a.is_nan() { x | 1 << 51 } else { 0x7ff8_0000_0000_0000 };
                assert_eq!(r.to_bits(), expected, "{x:#x}");
            }
        }
        for x in edges_f32().into_iter().chain((0..20_000).map(|_| random.u32())) {
            let a = f32::from_bits(x);
            let r = sqrt_f32(a, rnd);
            if a > 0.0 && a < f32::INFINITY {
                check_root(a.into(), r.next_down().into(), r.into(), r.next_up().into(), rnd);
            } else if a == 0.0 || a == f32::INFINITY {
                assert_eq!(r.to_bits(), x);
            } else {
                assert_eq!(r.to_bits(), 0x7fff_ffff, "{x:#x}");
            }
        }
        assert_eq!(sqrt_f32(2.25, rnd), 1.5);
        assert_eq!(sqrt_f64(f64::from_bits(1), rnd), (2.0f64).powi(-537));
    }
}

#[test]
fn min_max_f32() {
    for &x in &edges_f32() {
        for &y in &edges_f32() {
            let (a, b) = (f32::from_bits(x), f32::from_bits(y));
            // The pseudocode of §9.7.3.11 and §9.7.3.12.
            let pick = |first: bool| match (a.is_nan(), b.is_nan()) {
                (true, true) => 0x7fff_ffff,
                (true, false) => y,
                (false, true) => x,
                (false, false) => {
                    if first {
                        x
                    } else {
                        y
                    }
                }
            };
            assert_eq!(min_f32(a, b).to_bits(), pick(a < b));
            assert_eq!(max_f32(a, b).to_bits(), pick(a > b));
        }
    }
    assert_eq!(min_f32(0.0, -0.0).to_bits(), 0x8000_0000);
    assert_eq!(min_f32(-0.0, 0.0).to_bits(), 0);
}

#[test]
fn min_max_f64() {
    for &x in &edges_f64() {
        for &y in &edges_f64() {
            let (a, b) = (f64::from_bits(x), f64::from_bits(y));
            let pick = |first: bool| match (a.is_nan(), b.is_nan()) {
                (true, true) => x | 1 << 51,
                (true, false) => y,
                (false, true) => x,
                (false, false) => {
                    if first {
                        x
                    } else {
                        y
                    }
                }
            };
            assert_eq!(min_f64(a, b).to_bits(), pick(a < b));
            assert_eq!(max_f64(a, b).to_bits(), pick(a > b));
        }
    }
}

#[test]
fn signs() {
    for &x in &edges_f32() {
        let a = f32::from_bits(x);
        let nan = x & 0x7fff_ffff > 0x7f80_0000;
        assert_eq!(abs_f32(a).to_bits(), if nan { 0x7fff_ffff } else { x & 0x7fff_ffff });
        assert_eq!(neg_f32(a).to_bits(), if nan { 0x7fff_ffff } else { x ^ 0x8000_0000 });
        for y in [0u32, 0x8000_0000, 0x3f80_0000, 0xbf80_0000, 0xffc0_0000] {
            // The sign of the first, the magnitude of the second operand.
            assert_eq!(copysign_f32(f32::from_bits(y), a).to_bits(), x & 0x7fff_ffff | y & 0x8000_0000);
        }
    }
    for &x in &edges_f64() {
        let a = f64::from_bits(x);
        let nan = x << 1 > 0xffe0_0000_0000_0000;
        assert_eq!(abs_f64(a).to_bits(), if nan { x | 1 << 51 } else { x & !(1 << 63) });
        assert_eq!(neg_f64(a).to_bits(), if nan { x | 1 << 51 } else { x ^ 1 << 63 });
        for y in [0, 1 << 63, 1.0f64.to_bits(), (-1.0f64).to_bits()] {
            assert_eq!(copysign_f64(f64::from_bits(y), a).to_bits(), x & !(1 << 63) | y & 1 << 63);
        }
    }
    assert_eq!(copysign_f32(-2.0, 3.0), -3.0);
}

#[test]
fn testp_classes() {
    use TestpOp::{Finite, Infinite, Normal, NotANumber, Number, Subnormal};
    let all = [Finite, Infinite, Number, NotANumber, Normal, Subnormal];
    // §9.7.3.1: zeros count as normal.
    let rows: [(f32, f64, [bool; 6]); 6] = [
        (0.0, 0.0, [true, false, true, false, true, false]),
        (1.5, 1.5, [true, false, true, false, true, false]),
        (f32::MIN_POSITIVE, f64::MIN_POSITIVE, [true, false, true, false, true, false]),
        (f32::from_bits(0x7f_ffff), f64::from_bits(1), [true, false, true, false, false, true]),
        (f32::INFINITY, f64::INFINITY, [false, true, true, false, false, false]),
        (f32::NAN, f64::NAN, [false, false, false, true, false, false]),
    ];
    for (a, b, row) in rows {
        for (op, expected) in all.into_iter().zip(row) {
            assert_eq!([testp_f32(op, a), testp_f32(op, -a)], [expected; 2], "{op:?} {a}");
            assert_eq!([testp_f64(op, b), testp_f64(op, -b)], [expected; 2], "{op:?} {b}");
        }
    }
}

#[test]
fn flush_and_saturate() {
    for &x in &edges_f32() {
        let flushed = if x & 0x7f80_0000 == 0 { x & 0x8000_0000 } else { x };
        assert_eq!(ftz_f32(f32::from_bits(x)).to_bits(), flushed);
        let positive = x <= 0x7f80_0000;
        let saturated = if !positive { 0 } else { x.min(0x3f80_0000) };
        assert_eq!(sat_f32(f32::from_bits(x)).to_bits(), saturated, "{x:#x}");
    }
    for &x in &edges_f64() {
        let flushed = if x & 0x7ff0_0000_0000_0000 == 0 { x & 1 << 63 } else { x };
        assert_eq!(ftz_f64(f64::from_bits(x)).to_bits(), flushed);
        let positive = x <= 0x7ff0_0000_0000_0000;
        let saturated = if !positive { 0 } else { x.min(0x3ff0_0000_0000_0000) };
        assert_eq!(sat_f64(f64::from_bits(x)).to_bits(), saturated, "{x:#x}");
    }
}

/// Products and sums near half-way between two singles, and near the subnormals.
#[test]
fn fma_at_the_edges_of_double_rounding() {
    let mut random = Random::new(31);
    let mut uncertain = 0u32;
    for _ in 0..200_000 {
        // With few significant bits exact half-way sums are frequent, and the addend's lowest bit decides.
        let bits = random.u64();
        let few =
            |bits: u64, exponent: u64| f32::from_bits((bits as u32 & 0x8078_0003) | (exponent as u32) << 23);
        let (a, b) = (few(bits, 64 + (bits >> 32) % 127), few(bits >> 7, 64 + (bits >> 40) % 127));
        let product = f64::from(a) * f64::from(b);
        let c = (product * 2f64.powi(((bits >> 48) % 64) as i32 - 32)) as f32;
        for c in [c, -c, f32::from_bits(c.to_bits() ^ 1)] {
            let (oa, ob, oc): (Single, Single, Single) =
                (float(a.to_bits()), float(b.to_bits()), float(c.to_bits()));
            let oracle = oa.mul_add_r(ob, oc, rustc_apfloat::Round::NearestTiesToEven).value;
            assert_eq!(fma_f32(a, b, c, Rnd::Rn).to_bits(), expect_f32(oracle), "{a:e} {b:e} {c:e}");
            check_quick(a.to_bits(), b.to_bits(), c.to_bits());
            uncertain += u32::from(!fma_quick_f32(a, b, c).1);
        }
    }
    assert!(uncertain > 1000, "the cases do not come near: {uncertain}");
}

/// The quick functions equal the exact ones whenever they report certainty, and always do so for numbers.
#[test]
fn quick_doubles() {
    let mut random = Random::new(32);
    let edges = edges_f64();
    type Quick = fn(f64, f64) -> (f64, bool);
    let quick: [Quick; 4] = [add_quick_f64, sub_quick_f64, mul_quick_f64, div_quick_f64];
    let exact: [fn(f64, f64, Rnd) -> f64; 4] = [add_f64, sub_f64, mul_f64, div_f64];
    let check = |x: u64, y: u64| {
        let (a, b) = (f64::from_bits(x), f64::from_bits(y));
        for (quick, exact) in quick.iter().zip(exact) {
            let ((found, certain), expected) = (quick(a, b), exact(a, b, Rnd::Rn));
            assert_eq!(certain, !expected.is_nan(), "{x:#x} {y:#x}");
            assert!(!certain || found.to_bits() == expected.to_bits(), "{x:#x} {y:#x}");
        }
    };
    for x in &edges {
        for y in &edges {
            check(*x, *y);
        }
    }
    for _ in 0..20_000 {
        check(random.u64(), random.u64());
    }
}

/// Products and sums beside 2^-126, and what an H200 gives for them.
#[test]
fn flushing_looks_at_24_bits() {
    let products = [
        (0x2baf_96ec, 0x943a_9df6, [0x8080_0000, 0x8000_0000, 0x8080_0000, 0x8000_0000]),
        (0x1b01_adb9, 0x24fc_afad, [0, 0, 0, 0]),
    ];
    for (a, b, expected) in products {
        let [a, b] = [a, b].map(f32::from_bits);
        let found = [Rnd::Rn, Rnd::Rz, Rnd::Rm, Rnd::Rp].map(|rnd| mul_ftz_f32(a, b, rnd).to_bits());
        assert_eq!(found, expected, "{a:e} * {b:e}");
    }
    let sums = [
        (0x234f_dd5b, 0x9d5d_2496, 0x0173_8fcc, Rnd::Rn, 0),
        (0x2532_1a90, 0x9b2e_822f, 0x0139_68a0, Rnd::Rn, 0x0080_0000),
        (0x234f_dd5b, 0x9d5d_2496, 0x0173_8fcc, Rnd::Rp, 0),
        (0x18fd_dc89, 0xa6e5_2213, 0x00f1_9c08, Rnd::Rp, 0x0080_0000),
    ];
    for (a, b, c, rnd, expected) in sums {
        let [a, b, c] = [a, b, c].map(f32::from_bits);
        assert_eq!(fma_ftz_f32(a, b, c, rnd).to_bits(), expected, "{a:e} * {b:e} + {c:e} {rnd:?}");
        if rnd == Rnd::Rn {
            assert_eq!(fma_ftz_host_f32(a, b, c).to_bits(), expected, "{a:e} * {b:e} + {c:e}");
        }
    }
    // The numbers that overflow when they are scaled.
    assert_eq!(mul_ftz_f32(1e30, 0.0, Rnd::Rn).to_bits(), 0);
    assert_eq!(mul_ftz_f32(1e30, 2.0, Rnd::Rn), 2e30);
    assert_eq!(fma_ftz_f32(1e30, 1.0, -1e30, Rnd::Rn).to_bits(), 0);
    assert_eq!(mul_ftz_f32(f32::NAN, 0.0, Rnd::Rn).to_bits(), 0x7fff_ffff);
}
