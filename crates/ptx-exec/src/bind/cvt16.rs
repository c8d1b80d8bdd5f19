//! Conversions from and to bfloat16, `.tf32` and 8-bit floats, into pairs, and with `.relu` and `.satfinite`
//! (PTX ISA 7.0, 7.1, 7.8, 8.1); and `tanh` and `ex2` of the 16-bit formats.
//!
//! Invariant: a result is rounded, then kept finite by `.satfinite`, then limited by `.relu` or `.sat`.
//! Conversions from bfloat16 go through `.f32`, which represents all its values exactly.

use super::operands::{Bound, Operands};
use super::rounding::{from_any, rnd, rnd_int};
use super::{Missing, by_type};
use crate::lift::Value;
use ptx::isa::{Ty, Word};
use ptx_sem::{self as sem, Rnd};

/// The modifiers that apply after an `.f32` is rounded.
#[derive(Clone, Copy)]
struct Finish {
    finite: bool,
    relu: bool,
}

impl Finish {
    fn of(o: &Operands<'_>) -> Self {
        Self { finite: o.has(Word::Satfinite), relu: o.has(Word::Relu) }
    }

    fn f16(self, a: u16) -> u16 {
        let a = if self.finite { sem::cvt_satfinite_f16(a) } else { a };
        if self.relu { sem::relu_f16(a) } else { a }
    }

    fn bf16(self, a: u16) -> u16 {
        let a = if self.finite { sem::cvt_satfinite_bf16(a) } else { a };
        if self.relu { sem::relu_bf16(a) } else { a }
    }

    fn tf32(self, a: u32) -> u32 {
        let a = if self.finite { sem::cvt_satfinite_tf32(a) } else { a };
        if self.relu { sem::relu_tf32(a) } else { a }
    }
}

/// Whether this module binds a conversion.
pub(super) fn converts(o: &Operands<'_>, d: Ty, a: Ty) -> bool {
    let new = [Ty::Bf16, Ty::Tf32, Ty::F16x2, Ty::Bf16x2, Ty::E4m3x2, Ty::E5m2x2];
    let kept = o.mods().has(Word::Relu) || o.mods().has(Word::Satfinite);
    new.contains(&d) || new.contains(&a) || kept
}

/// A conversion for which [`converts`] is true.
pub(super) fn cvt(o: &Operands<'_>, d: Ty, a: Ty) -> Bound {
    if a == Ty::Bf16 {
        return from_bf16(o, d);
    }
    if let Some(widen) = widened(a) {
        return from_fp8(o, d, widen);
    }
    if let Some(narrow) = narrowed(d) {
        return to_fp8(o, a, narrow);
    }
    by_type! { d;
        Bf16 => to_bf16(o, a),
        F16 => {
            let (rnd, finish) = (rnd(o)?, Finish::of(o));
            o.active1(move |a| finish.f16(sem::cvt_f16_f32(a, rnd)))
        },
        F16x2 => {
            let (rnd, finish) = (rnd(o)?, Finish::of(o));
            o.active2(move |a, b| {
                pair(finish.f16(sem::cvt_f16_f32(a, rnd)), finish.f16(sem::cvt_f16_f32(b, rnd)))
            })
        },
        Bf16x2 => {
            let (rnd, finish) = (rnd(o)?, Finish::of(o));
            if rnd == Rnd::Rn {
                return o.wide2(move |a, b| {
                    pair(finish.bf16(sem::cvt_bf16_f32(a, Rnd::Rn)), finish.bf16(sem::cvt_bf16_f32(b, Rnd::Rn)))
                });
            }
            o.active2(move |a, b| {
                pair(finish.bf16(sem::cvt_bf16_f32(a, rnd)), finish.bf16(sem::cvt_bf16_f32(b, rnd)))
            })
        },
        Tf32 => {
            let finish = Finish::of(o);
            if o.has(Word::Rna) {
                return o.lift1(move |a| finish.tf32(sem::cvt_rna_tf32_f32(a)));
            }
            let rnd = rnd(o)?;
            o.lift1(move |a| finish.tf32(sem::cvt_tf32_f32(a, rnd)))
        },
    }
}

/// The function from an 8-bit float to `.f16`.
fn widened(ty: Ty) -> Option<fn(u8) -> u16> {
    let made: Result<fn(u8) -> u16, Missing> = by_type! { ty;
        E4m3x2 => Ok(sem::cvt_f16_e4m3 as fn(u8) -> u16),
        E5m2x2 => Ok(sem::cvt_f16_e5m2 as fn(u8) -> u16),
    };
    made.ok()
}

/// The function from `.f32` to an 8-bit float.
fn narrowed(ty: Ty) -> Option<fn(f32) -> u8> {
    let made: Result<fn(f32) -> u8, Missing> = by_type! { ty;
        E4m3x2 => Ok(sem::cvt_satfinite_e4m3_f32 as fn(f32) -> u8),
        E5m2x2 => Ok(sem::cvt_satfinite_e5m2_f32 as fn(f32) -> u8),
    };
    made.ok()
}

/// From two 8-bit floats to two `.f16`.
fn from_fp8(o: &Operands<'_>, d: Ty, widen: fn(u8) -> u16) -> Bound {
    o.ignore_word(Word::Rn);
    let relu = o.has(Word::Relu);
    let half = move |a: u8| if relu { sem::relu_f16(widen(a)) } else { widen(a) };
    by_type! { d;
        F16x2 => o.active1(move |a: u16| pair(half((a >> 8) as u8), half(a as u8))),
    }
}

/// To two 8-bit floats: the first source, or the high half, becomes the high byte.
fn to_fp8(o: &Operands<'_>, a: Ty, narrow: fn(f32) -> u8) -> Bound {
    o.ignore_word(Word::Rn);
    o.ignore_word(Word::Satfinite);
    let relu = o.has(Word::Relu);
    let byte = move |a: f32| {
        let byte = narrow(a);
        u16::from(if relu { sem::relu_tiny(byte) } else { byte })
    };
    by_type! { a;
        F32 => o.active2(move |a: f32, b: f32| byte(a) << 8 | byte(b)),
        F16x2 => o.active1(move |a: u32| {
            byte(sem::cvt_f32_f16((a >> 16) as u16)) << 8 | byte(sem::cvt_f32_f16(a as u16))
        }),
    }
}

/// A pair with the first value in the high half.
#[inline(always)]
fn pair(high: u16, low: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

/// To bfloat16, from any other type.
fn to_bf16(o: &Operands<'_>, a: Ty) -> Bound {
    by_type! { a;
        F32 => {
            let (rnd, finish, sat) = (rnd(o)?, Finish::of(o), o.has(Word::Sat));
            if rnd == Rnd::Rn && !sat {
                return o.wide1(move |a| finish.bf16(sem::cvt_bf16_f32(a, Rnd::Rn)));
            }
            rounded(o, move |a| finish.bf16(sem::cvt_bf16_f32(a, rnd)))
        },
        F16 => {
            let rnd = rnd(o)?;
            rounded(o, move |a| sem::cvt_bf16_f32(sem::cvt_f32_f16(a), rnd))
        },
        F64 => { let rnd = rnd(o)?; rounded(o, move |a| sem::cvt_bf16_f64(a, rnd)) },
        U8 => { let rnd = rnd(o)?; rounded(o, move |a| sem::cvt_bf16_u8(a, rnd)) },
        U16 => { let rnd = rnd(o)?; rounded(o, move |a| sem::cvt_bf16_u16(a, rnd)) },
        U32 => { let rnd = rnd(o)?; rounded(o, move |a| sem::cvt_bf16_u32(a, rnd)) },
        U64 => { let rnd = rnd(o)?; rounded(o, move |a| sem::cvt_bf16_u64(a, rnd)) },
        S8 => { let rnd = rnd(o)?; rounded(o, move |a| sem::cvt_bf16_s8(a, rnd)) },
        S16 => { let rnd = rnd(o)?; rounded(o, move |a| sem::cvt_bf16_s16(a, rnd)) },
        S32 => { let rnd = rnd(o)?; rounded(o, move |a| sem::cvt_bf16_s32(a, rnd)) },
        S64 => { let rnd = rnd(o)?; rounded(o, move |a| sem::cvt_bf16_s64(a, rnd)) },
    }
}

/// To bfloat16, with rounding, limited by `.sat`.
fn rounded<A: Value>(o: &Operands<'_>, f: impl Fn(A) -> u16 + Copy + Send + Sync + 'static) -> Bound {
    let sat = o.has(Word::Sat);
    o.active1(move |a| if sat { sem::sat_bf16(f(a)) } else { f(a) })
}

/// From bfloat16.
fn from_bf16(o: &Operands<'_>, d: Ty) -> Bound {
    let single = sem::cvt_f32_bf16;
    let sat = o.has(Word::Sat);
    // Integers are clamped to their range in any case.
    by_type! { d;
        F32 => match (o.has(Word::Ftz), sat) {
            (false, false) => o.wide1(single),
            (true, false) => o.wide1(move |a| sem::ftz_f32(single(a))),
            (false, true) => o.wide1(move |a| sem::sat_f32(single(a))),
            (true, true) => o.wide1(move |a| sem::sat_f32(sem::ftz_f32(single(a)))),
        },
        F64 => o.active1(move |a| if sat { sem::sat_f64(sem::cvt_f64_bf16(a)) } else { sem::cvt_f64_bf16(a) }),
        F16 => {
            let rnd = rnd(o)?;
            o.active1(move |a| {
                let half = sem::cvt_f16_f32(single(a), rnd);
                if sat { sem::sat_f16(half) } else { half }
            })
        },
        Bf16 => {
            let rnd = rnd_int(o)?;
            o.active1(move |a| {
                let a = rnd.map_or(a, |rnd| sem::round_bf16(a, rnd));
                if sat { sem::sat_bf16(a) } else { a }
            })
        },
        U8 => from_any(o, move |a, rnd| sem::cvt_u8_f32(single(a), rnd)),
        U16 => from_any(o, move |a, rnd| sem::cvt_u16_f32(single(a), rnd)),
        U32 => from_any(o, move |a, rnd| sem::cvt_u32_f32(single(a), rnd)),
        U64 => from_any(o, move |a, rnd| sem::cvt_u64_f32(single(a), rnd)),
        S8 => from_any(o, move |a, rnd| sem::cvt_s8_f32(single(a), rnd)),
        S16 => from_any(o, move |a, rnd| sem::cvt_s16_f32(single(a), rnd)),
        S32 => from_any(o, move |a, rnd| sem::cvt_s32_f32(single(a), rnd)),
        S64 => from_any(o, move |a, rnd| sem::cvt_s64_f32(single(a), rnd)),
    }
}

/// `tanh.approx`.
pub(super) fn tanh(o: &Operands<'_>) -> Bound {
    o.ignore_word(Word::Approx);
    by_type! { o.ty()?;
        F32 => wide_or_active(o, sem::tanh_approx_f32),
        F16 => wide_or_active(o, sem::tanh_approx_f16),
        F16x2 => wide_or_active(o, sem::tanh_approx_f16x2),
        Bf16 => wide_or_active(o, sem::tanh_approx_bf16),
        Bf16x2 => wide_or_active(o, sem::tanh_approx_bf16x2),
    }
}

/// `ex2.approx` of the 16-bit formats; for bfloat16 it always flushes.
pub(super) fn ex2(o: &Operands<'_>) -> Bound {
    o.ignore_word(Word::Approx);
    let flushed = |a| sem::ftz_bf16(sem::ex2_approx_bf16(sem::ftz_bf16(a)));
    let ftz = o.has(Word::Ftz);
    by_type! { o.ty()?;
        F16 => wide_or_active(o, sem::ex2_approx_f16),
        F16x2 => wide_or_active(o, sem::ex2_approx_f16x2),
        Bf16 => if ftz { wide_or_active(o, flushed) } else { Err(Missing) },
        Bf16x2 => if ftz {
            wide_or_active(o, move |a: u32| pair(flushed((a >> 16) as u16), flushed(a as u16)))
        } else {
            Err(Missing)
        },
    }
}

/// Computes all lanes if the host has fused multiply-add, else the active ones.
fn wide_or_active<T: Value>(o: &Operands<'_>, f: impl Fn(T) -> T + Copy + Send + Sync + 'static) -> Bound {
    if crate::wide::Wide::of_host().is_some() { o.wide1(f) } else { o.active1(f) }
}
