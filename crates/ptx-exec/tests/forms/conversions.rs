//! Conversions compared with the functions of `ptx-sem`, for every pair of types.

use super::values::one;
use ptx_sem::*;

/// A conversion: destination type, source type and function; the text is made from the types.
macro_rules! cvt {
    ($($prefix:literal $d:literal $a:literal $f:expr;)+) => {$(
        one(concat!("cvt", $prefix, ".", $d, ".", $a), $f);
    )+};
}

#[test]
fn conversions_of_integers() {
    cvt! {
        "" "u8" "u8" cvt_u8_u8;
        "" "u8" "u16" cvt_u8_u16;
        "" "u8" "u32" cvt_u8_u32;
        "" "u8" "u64" cvt_u8_u64;
        "" "u8" "s8" cvt_u8_s8;
        "" "u8" "s16" cvt_u8_s16;
        "" "u8" "s32" cvt_u8_s32;
        "" "u8" "s64" cvt_u8_s64;
        "" "u16" "u8" cvt_u16_u8;
        "" "u16" "u16" cvt_u16_u16;
        "" "u16" "u32" cvt_u16_u32;
        "" "u16" "u64" cvt_u16_u64;
        "" "u16" "s8" cvt_u16_s8;
        "" "u16" "s16" cvt_u16_s16;
        "" "u16" "s32" cvt_u16_s32;
        "" "u16" "s64" cvt_u16_s64;
        "" "u32" "u8" cvt_u32_u8;
        "" "u32" "u16" cvt_u32_u16;
        "" "u32" "u32" cvt_u32_u32;
        "" "u32" "u64" cvt_u32_u64;
        "" "u32" "s8" cvt_u32_s8;
        "" "u32" "s16" cvt_u32_s16;
        "" "u32" "s32" cvt_u32_s32;
        "" "u32" "s64" cvt_u32_s64;
        "" "u64" "u8" cvt_u64_u8;
        "" "u64" "u16" cvt_u64_u16;
        "" "u64" "u32" cvt_u64_u32;
        "" "u64" "u64" cvt_u64_u64;
        "" "u64" "s8" cvt_u64_s8;
        "" "u64" "s16" cvt_u64_s16;
        "" "u64" "s32" cvt_u64_s32;
        "" "u64" "s64" cvt_u64_s64;
        "" "s8" "u8" cvt_s8_u8;
        "" "s8" "u16" cvt_s8_u16;
        "" "s8" "u32" cvt_s8_u32;
        "" "s8" "u64" cvt_s8_u64;
        "" "s8" "s8" cvt_s8_s8;
        "" "s8" "s16" cvt_s8_s16;
        "" "s8" "s32" cvt_s8_s32;
        "" "s8" "s64" cvt_s8_s64;
        "" "s16" "u8" cvt_s16_u8;
        "" "s16" "u16" cvt_s16_u16;
        "" "s16" "u32" cvt_s16_u32;
        "" "s16" "u64" cvt_s16_u64;
        "" "s16" "s8" cvt_s16_s8;
        "" "s16" "s16" cvt_s16_s16;
        "" "s16" "s32" cvt_s16_s32;
        "" "s16" "s64" cvt_s16_s64;
        "" "s32" "u8" cvt_s32_u8;
        "" "s32" "u16" cvt_s32_u16;
        "" "s32" "u32" cvt_s32_u32;
        "" "s32" "u64" cvt_s32_u64;
        "" "s32" "s8" cvt_s32_s8;
        "" "s32" "s16" cvt_s32_s16;
        "" "s32" "s32" cvt_s32_s32;
        "" "s32" "s64" cvt_s32_s64;
        "" "s64" "u8" cvt_s64_u8;
        "" "s64" "u16" cvt_s64_u16;
        "" "s64" "u32" cvt_s64_u32;
        "" "s64" "u64" cvt_s64_u64;
        "" "s64" "s8" cvt_s64_s8;
        "" "s64" "s16" cvt_s64_s16;
        "" "s64" "s32" cvt_s64_s32;
        "" "s64" "s64" cvt_s64_s64;
        ".sat" "s16" "s32" cvt_sat_s16_s32;
        ".sat" "s16" "s64" cvt_sat_s16_s64;
        ".sat" "s16" "u16" cvt_sat_s16_u16;
        ".sat" "s16" "u32" cvt_sat_s16_u32;
        ".sat" "s16" "u64" cvt_sat_s16_u64;
        ".sat" "s32" "s64" cvt_sat_s32_s64;
        ".sat" "s32" "u32" cvt_sat_s32_u32;
        ".sat" "s32" "u64" cvt_sat_s32_u64;
        ".sat" "s64" "u64" cvt_sat_s64_u64;
        ".sat" "s8" "s16" cvt_sat_s8_s16;
        ".sat" "s8" "s32" cvt_sat_s8_s32;
        ".sat" "s8" "s64" cvt_sat_s8_s64;
        ".sat" "s8" "u16" cvt_sat_s8_u16;
        ".sat" "s8" "u32" cvt_sat_s8_u32;
        ".sat" "s8" "u64" cvt_sat_s8_u64;
        ".sat" "s8" "u8" cvt_sat_s8_u8;
        ".sat" "u16" "s16" cvt_sat_u16_s16;
        ".sat" "u16" "s32" cvt_sat_u16_s32;
        ".sat" "u16" "s64" cvt_sat_u16_s64;
        ".sat" "u16" "s8" cvt_sat_u16_s8;
        ".sat" "u16" "u32" cvt_sat_u16_u32;
        ".sat" "u16" "u64" cvt_sat_u16_u64;
        ".sat" "u32" "s16" cvt_sat_u32_s16;
        ".sat" "u32" "s32" cvt_sat_u32_s32;
        ".sat" "u32" "s64" cvt_sat_u32_s64;
        ".sat" "u32" "s8" cvt_sat_u32_s8;
        ".sat" "u32" "u64" cvt_sat_u32_u64;
        ".sat" "u64" "s16" cvt_sat_u64_s16;
        ".sat" "u64" "s32" cvt_sat_u64_s32;
        ".sat" "u64" "s64" cvt_sat_u64_s64;
        ".sat" "u64" "s8" cvt_sat_u64_s8;
        ".sat" "u8" "s16" cvt_sat_u8_s16;
        ".sat" "u8" "s32" cvt_sat_u8_s32;
        ".sat" "u8" "s64" cvt_sat_u8_s64;
        ".sat" "u8" "s8" cvt_sat_u8_s8;
        ".sat" "u8" "u16" cvt_sat_u8_u16;
        ".sat" "u8" "u32" cvt_sat_u8_u32;
        ".sat" "u8" "u64" cvt_sat_u8_u64;
    }
}

#[test]
fn conversions_to_and_from_floats() {
    for (word, rnd) in [("rn", Rnd::Rn), ("rz", Rnd::Rz), ("rm", Rnd::Rm), ("rp", Rnd::Rp)] {
        let text = |types: &str| format!("cvt.{word}.{types}");
        one(&text("f16.u8"), |a| cvt_f16_u8(a, rnd));
        one(&text("f32.u8"), |a| cvt_f32_u8(a, rnd));
        one(&text("f64.u8"), |a| cvt_f64_u8(a, rnd));
        one(&text("f16.u16"), |a| cvt_f16_u16(a, rnd));
        one(&text("f32.u16"), |a| cvt_f32_u16(a, rnd));
        one(&text("f64.u16"), |a| cvt_f64_u16(a, rnd));
        one(&text("f16.u32"), |a| cvt_f16_u32(a, rnd));
        one(&text("f32.u32"), |a| cvt_f32_u32(a, rnd));
        one(&text("f64.u32"), |a| cvt_f64_u32(a, rnd));
        one(&text("f16.u64"), |a| cvt_f16_u64(a, rnd));
        one(&text("f32.u64"), |a| cvt_f32_u64(a, rnd));
        one(&text("f64.u64"), |a| cvt_f64_u64(a, rnd));
        one(&text("f16.s8"), |a| cvt_f16_s8(a, rnd));
        one(&text("f32.s8"), |a| cvt_f32_s8(a, rnd));
        one(&text("f64.s8"), |a| cvt_f64_s8(a, rnd));
        one(&text("f16.s16"), |a| cvt_f16_s16(a, rnd));
        one(&text("f32.s16"), |a| cvt_f32_s16(a, rnd));
        one(&text("f64.s16"), |a| cvt_f64_s16(a, rnd));
        one(&text("f16.s32"), |a| cvt_f16_s32(a, rnd));
        one(&text("f32.s32"), |a| cvt_f32_s32(a, rnd));
        one(&text("f64.s32"), |a| cvt_f64_s32(a, rnd));
        one(&text("f16.s64"), |a| cvt_f16_s64(a, rnd));
        one(&text("f32.s64"), |a| cvt_f32_s64(a, rnd));
        one(&text("f64.s64"), |a| cvt_f64_s64(a, rnd));
        one(&text("f16.f32"), |a| cvt_f16_f32(a, rnd));
        one(&text("f16.f64"), |a| cvt_f16_f64(a, rnd));
        one(&text("f32.f64"), |a| cvt_f32_f64(a, rnd));
        // Devices do not flush an `.f32` that becomes an `.f16`.
        one(&text("ftz.f16.f32"), |a| cvt_f16_f32(a, rnd));
        one(&text("ftz.sat.f32.f64"), |a| sat_f32(cvt_ftz_f32_f64(a, rnd)));
        one(&text("sat.f32.s32"), |a| sat_f32(cvt_f32_s32(a, rnd)));
    }
    for (word, rnd) in
        [("rni", RndInt::Rni), ("rzi", RndInt::Rzi), ("rmi", RndInt::Rmi), ("rpi", RndInt::Rpi)]
    {
        let text = |types: &str| format!("cvt.{word}.{types}");
        one(&text("u8.f16"), |a| cvt_u8_f16(a, rnd));
        one(&text("u8.f32"), |a| cvt_u8_f32(a, rnd));
        one(&text("u8.f64"), |a| cvt_u8_f64(a, rnd));
        one(&text("u16.f16"), |a| cvt_u16_f16(a, rnd));
        one(&text("u16.f32"), |a| cvt_u16_f32(a, rnd));
        one(&text("u16.f64"), |a| cvt_u16_f64(a, rnd));
        one(&text("u32.f16"), |a| cvt_u32_f16(a, rnd));
        one(&text("u32.f32"), |a| cvt_u32_f32(a, rnd));
        one(&text("u32.f64"), |a| cvt_u32_f64(a, rnd));
        one(&text("u64.f16"), |a| cvt_u64_f16(a, rnd));
        one(&text("u64.f32"), |a| cvt_u64_f32(a, rnd));
        one(&text("u64.f64"), |a| cvt_u64_f64(a, rnd));
        one(&text("s8.f16"), |a| cvt_s8_f16(a, rnd));
        one(&text("s8.f32"), |a| cvt_s8_f32(a, rnd));
        one(&text("s8.f64"), |a| cvt_s8_f64(a, rnd));
        one(&text("s16.f16"), |a| cvt_s16_f16(a, rnd));
        one(&text("s16.f32"), |a| cvt_s16_f32(a, rnd));
        one(&text("s16.f64"), |a| cvt_s16_f64(a, rnd));
        one(&text("s32.f16"), |a| cvt_s32_f16(a, rnd));
        one(&text("s32.f32"), |a| cvt_s32_f32(a, rnd));
        one(&text("s32.f64"), |a| cvt_s32_f64(a, rnd));
        one(&text("s64.f16"), |a| cvt_s64_f16(a, rnd));
        one(&text("s64.f32"), |a| cvt_s64_f32(a, rnd));
        one(&text("s64.f64"), |a| cvt_s64_f64(a, rnd));
        one(&text("ftz.u32.f32"), |a| cvt_u32_f32(ftz_f32(a), rnd));
        one(&text("f16.f16"), |a| round_f16(a, rnd));
        one(&text("f32.f32"), |a| round_f32(a, rnd));
        one(&text("f64.f64"), |a| round_f64(a, rnd));
        one(&text("ftz.sat.f32.f32"), |a| sat_f32(ftz_f32(round_f32(ftz_f32(a), rnd))));
    }
    one("cvt.f32.f16", cvt_f32_f16);
    one("cvt.f64.f16", cvt_f64_f16);
    one("cvt.f64.f32", cvt_f64_f32);
    one("cvt.ftz.f64.f32", |a| cvt_f64_f32(ftz_f32(a)));
    one("cvt.sat.f32.f32", sat_f32);
    one("cvt.sat.f64.f64", sat_f64);
    one("cvt.ftz.f32.f32", ftz_f32);
}
