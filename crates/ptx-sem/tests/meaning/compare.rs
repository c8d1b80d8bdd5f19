//! §9.7.5, §9.7.6: relations against tables 19 to 22, selection and the results of `set`.

use crate::values::{edges, edges_f16, edges_f32, edges_f64};
use core::cmp::Ordering;
use ptx_sem::*;

const ALL: [Cmp; 18] = [
    Cmp::Eq,
    Cmp::Ne,
    Cmp::Lt,
    Cmp::Le,
    Cmp::Gt,
    Cmp::Ge,
    Cmp::Lo,
    Cmp::Ls,
    Cmp::Hi,
    Cmp::Hs,
    Cmp::Equ,
    Cmp::Neu,
    Cmp::Ltu,
    Cmp::Leu,
    Cmp::Gtu,
    Cmp::Geu,
    Cmp::Num,
    Cmp::Nan,
];

/// Whether a relation holds for less, equal, greater and unordered operands, in that order, by the tables.
fn expected(op: Cmp, order: Option<Ordering>) -> bool {
    let row = match op {
        Cmp::Eq => [0, 1, 0, 0],
        Cmp::Ne => [1, 0, 1, 0],
        Cmp::Lt | Cmp::Lo => [1, 0, 0, 0],
        Cmp::Le | Cmp::Ls => [1, 1, 0, 0],
        Cmp::Gt | Cmp::Hi => [0, 0, 1, 0],
        Cmp::Ge | Cmp::Hs => [0, 1, 1, 0],
        Cmp::Equ => [0, 1, 0, 1],
        Cmp::Neu => [1, 0, 1, 1],
        Cmp::Ltu => [1, 0, 0, 1],
        Cmp::Leu => [1, 1, 0, 1],
        Cmp::Gtu => [0, 0, 1, 1],
        Cmp::Geu => [0, 1, 1, 1],
        Cmp::Num => [1, 1, 1, 0],
        Cmp::Nan => [0, 0, 0, 1],
    };
    let column = match order {
        Some(Ordering::Less) => 0,
        Some(Ordering::Equal) => 1,
        Some(Ordering::Greater) => 2,
        None => 3,
    };
    row[column] == 1
}

#[test]
fn integers_compare_by_value() {
    macro_rules! integers {
        ($($name:ident $ty:ty;)+) => {$(
            let list = edges(<$ty>::BITS);
            for &x in &list {
                for &y in &list {
                    let (x, y) = (x as $ty, y as $ty);
                    for op in ALL {
                        assert_eq!($name(op, x, y), expected(op, Some(i128::from(x).cmp(&i128::from(y)))), "{op:?} {x} {y}");
                    }
                }
            }
        )+};
    }
    integers! {
        cmp_u16 u16;
        cmp_s16 i16;
        cmp_u32 u32;
        cmp_s32 i32;
        cmp_u64 u64;
        cmp_s64 i64;
    }
}

/// The order of two floats by their patterns: sign and magnitude, zeros equal, NaN unordered.
fn order(a: u64, b: u64, sign: u64, infinity: u64) -> Option<Ordering> {
    let key = |x: u64| {
        let magnitude = i128::from(x & (sign - 1));
        (magnitude <= i128::from(infinity)).then_some(if x & sign == 0 { magnitude } else { -magnitude })
    };
    Some(key(a)?.cmp(&key(b)?))
}

#[test]
fn floats_compare_by_value_and_nan_is_unordered() {
    for op in ALL {
        for &x in &edges_f32() {
            for &y in &edges_f32() {
                let expected = expected(op, order(x.into(), y.into(), 1 << 31, 0x7f80_0000));
                assert_eq!(
                    cmp_f32(op, f32::from_bits(x), f32::from_bits(y)),
                    expected,
                    "{op:?} {x:#x} {y:#x}"
                );
            }
        }
        for &x in &edges_f64() {
            for &y in &edges_f64() {
                let expected = expected(op, order(x, y, 1 << 63, 0x7ff0_0000_0000_0000));
                assert_eq!(
                    cmp_f64(op, f64::from_bits(x), f64::from_bits(y)),
                    expected,
                    "{op:?} {x:#x} {y:#x}"
                );
            }
        }
        for &x in &edges_f16() {
            for &y in &edges_f16() {
                let expected = expected(op, order(x.into(), y.into(), 1 << 15, 0x7c00));
                assert_eq!(cmp_f16(op, x, y), expected, "{op:?} {x:#x} {y:#x}");
            }
        }
    }
}

#[test]
fn bool_ops() {
    for (t, c) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(bool_op(BoolOp::And, t, c), t && c);
        assert_eq!(bool_op(BoolOp::Or, t, c), t || c);
        assert_eq!(bool_op(BoolOp::Xor, t, c), t != c);
    }
}

#[test]
fn set_results() {
    assert_eq!((set_u32(true), set_u32(false), set_s32(true), set_s32(false)), (0xffff_ffff, 0, -1, 0));
    assert_eq!((set_f32(true).to_bits(), set_f32(false).to_bits()), (0x3f80_0000, 0));
    assert_eq!((set_f16(true), set_f16(false)), (0x3c00, 0));
    assert_eq!((set_f16x2(true, false), set_f16x2(false, true)), (0x3c00, 0x3c00_0000));
}

#[test]
fn slct_selects_by_sign() {
    for (c, first) in [(0, true), (1, true), (-1, false), (i32::MIN, false), (i32::MAX, true)] {
        assert_eq!(slct_b32_s32(1, 2, c), if first { 1 } else { 2 });
        assert_eq!((slct_b16_s32(1, 2, c), slct_b64_s32(1, 2, c)), if first { (1, 1) } else { (2, 2) });
    }
    let tiny = f32::from_bits(0x8000_0001);
    for (c, first) in [
        (0.0, true),
        (-0.0, true),
        (1.0, true),
        (-1.0, false),
        (f32::NAN, false),
        (f32::INFINITY, true),
        (f32::NEG_INFINITY, false),
        (tiny, false),
        (ftz_f32(tiny), true),
    ] {
        assert_eq!(slct_b32_f32(1, 2, c), if first { 1 } else { 2 });
        assert_eq!((slct_b16_f32(1, 2, c), slct_b64_f32(1, 2, c)), if first { (1, 1) } else { (2, 2) });
    }
}
