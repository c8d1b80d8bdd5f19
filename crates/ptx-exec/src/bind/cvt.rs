//! Conversion (PTX ISA §9.7.8.14).
//!
//! Invariant: a source narrower than its register is its low bits; a destination narrower than its register
//! is extended by the **destination's** type (§9.4.1). Both are handled where operands are read and written,
//! not here.

use super::operands::{Bound, Operands};
use super::rounding::{from_any, rnd, rnd_int};
use super::{Missing, by_type, cvt16};
use crate::lift::Value;
use ptx::isa::{Slot, Ty, Word};
use ptx_sem::{self as sem, Rnd, RndInt};

pub(super) fn cvt(o: &Operands<'_>) -> Bound {
    let d = o.ty_in(Slot::Dtype).ok_or(Missing)?;
    let a = o.ty_in(Slot::Atype).ok_or(Missing)?;
    if cvt16::converts(o, d, a) {
        return cvt16::cvt(o, d, a);
    }
    match (d.is_integer(), a.is_integer()) {
        (true, true) => int_to_int(o, d, a),
        (false, true) => int_to_float(o, d, a),
        (true, false) => float_to_int(o, d, a),
        (false, false) => float_to_float(o, d, a),
    }
}

fn int_to_int(o: &Operands<'_>, d: Ty, a: Ty) -> Bound {
    if o.has(Word::Sat) {
        return saturated(o, d, a);
    }
    by_type! { a;
        U8 => by_type! { d;
            U8 => o.lift1(sem::cvt_u8_u8),
            U16 => o.lift1(sem::cvt_u16_u8),
            U32 => o.lift1(sem::cvt_u32_u8),
            U64 => o.lift1(sem::cvt_u64_u8),
            S8 => o.lift1(sem::cvt_s8_u8),
            S16 => o.lift1(sem::cvt_s16_u8),
            S32 => o.lift1(sem::cvt_s32_u8),
            S64 => o.lift1(sem::cvt_s64_u8),
        },
        U16 => by_type! { d;
            U8 => o.lift1(sem::cvt_u8_u16),
            U16 => o.lift1(sem::cvt_u16_u16),
            U32 => o.lift1(sem::cvt_u32_u16),
            U64 => o.lift1(sem::cvt_u64_u16),
            S8 => o.lift1(sem::cvt_s8_u16),
            S16 => o.lift1(sem::cvt_s16_u16),
            S32 => o.lift1(sem::cvt_s32_u16),
            S64 => o.lift1(sem::cvt_s64_u16),
        },
        U32 => by_type! { d;
            U8 => o.lift1(sem::cvt_u8_u32),
            U16 => o.lift1(sem::cvt_u16_u32),
            U32 => o.lift1(sem::cvt_u32_u32),
            U64 => o.lift1(sem::cvt_u64_u32),
            S8 => o.lift1(sem::cvt_s8_u32),
            S16 => o.lift1(sem::cvt_s16_u32),
            S32 => o.lift1(sem::cvt_s32_u32),
            S64 => o.lift1(sem::cvt_s64_u32),
        },
        U64 => by_type! { d;
            U8 => o.lift1(sem::cvt_u8_u64),
            U16 => o.lift1(sem::cvt_u16_u64),
            U32 => o.lift1(sem::cvt_u32_u64),
            U64 => o.lift1(sem::cvt_u64_u64),
            S8 => o.lift1(sem::cvt_s8_u64),
            S16 => o.lift1(sem::cvt_s16_u64),
            S32 => o.lift1(sem::cvt_s32_u64),
            S64 => o.lift1(sem::cvt_s64_u64),
        },
        S8 => by_type! { d;
            U8 => o.lift1(sem::cvt_u8_s8),
            U16 => o.lift1(sem::cvt_u16_s8),
            U32 => o.lift1(sem::cvt_u32_s8),
            U64 => o.lift1(sem::cvt_u64_s8),
            S8 => o.lift1(sem::cvt_s8_s8),
            S16 => o.lift1(sem::cvt_s16_s8),
            S32 => o.lift1(sem::cvt_s32_s8),
            S64 => o.lift1(sem::cvt_s64_s8),
        },
        S16 => by_type! { d;
            U8 => o.lift1(sem::cvt_u8_s16),
            U16 => o.lift1(sem::cvt_u16_s16),
            U32 => o.lift1(sem::cvt_u32_s16),
            U64 => o.lift1(sem::cvt_u64_s16),
            S8 => o.lift1(sem::cvt_s8_s16),
            S16 => o.lift1(sem::cvt_s16_s16),
            S32 => o.lift1(sem::cvt_s32_s16),
            S64 => o.lift1(sem::cvt_s64_s16),
        },
        S32 => by_type! { d;
            U8 => o.lift1(sem::cvt_u8_s32),
            U16 => o.lift1(sem::cvt_u16_s32),
            U32 => o.lift1(sem::cvt_u32_s32),
            U64 => o.lift1(sem::cvt_u64_s32),
            S8 => o.lift1(sem::cvt_s8_s32),
            S16 => o.lift1(sem::cvt_s16_s32),
            S32 => o.lift1(sem::cvt_s32_s32),
            S64 => o.lift1(sem::cvt_s64_s32),
        },
        S64 => by_type! { d;
            U8 => o.lift1(sem::cvt_u8_s64),
            U16 => o.lift1(sem::cvt_u16_s64),
            U32 => o.lift1(sem::cvt_u32_s64),
            U64 => o.lift1(sem::cvt_u64_s64),
            S8 => o.lift1(sem::cvt_s8_s64),
            S16 => o.lift1(sem::cvt_s16_s64),
            S32 => o.lift1(sem::cvt_s32_s64),
            S64 => o.lift1(sem::cvt_s64_s64),
        },
    }
}

fn saturated(o: &Operands<'_>, d: Ty, a: Ty) -> Bound {
    by_type! { a;
        U8 => by_type! { d;
            S8 => o.lift1(sem::cvt_sat_s8_u8),
        },
        U16 => by_type! { d;
            U8 => o.lift1(sem::cvt_sat_u8_u16),
            S8 => o.lift1(sem::cvt_sat_s8_u16),
            S16 => o.lift1(sem::cvt_sat_s16_u16),
        },
        U32 => by_type! { d;
            U8 => o.lift1(sem::cvt_sat_u8_u32),
            U16 => o.lift1(sem::cvt_sat_u16_u32),
            S8 => o.lift1(sem::cvt_sat_s8_u32),
            S16 => o.lift1(sem::cvt_sat_s16_u32),
            S32 => o.lift1(sem::cvt_sat_s32_u32),
        },
        U64 => by_type! { d;
            U8 => o.lift1(sem::cvt_sat_u8_u64),
            U16 => o.lift1(sem::cvt_sat_u16_u64),
            U32 => o.lift1(sem::cvt_sat_u32_u64),
            S8 => o.lift1(sem::cvt_sat_s8_u64),
            S16 => o.lift1(sem::cvt_sat_s16_u64),
            S32 => o.lift1(sem::cvt_sat_s32_u64),
            S64 => o.lift1(sem::cvt_sat_s64_u64),
        },
        S8 => by_type! { d;
            U8 => o.lift1(sem::cvt_sat_u8_s8),
            U16 => o.lift1(sem::cvt_sat_u16_s8),
            U32 => o.lift1(sem::cvt_sat_u32_s8),
            U64 => o.lift1(sem::cvt_sat_u64_s8),
        },
        S16 => by_type! { d;
            U8 => o.lift1(sem::cvt_sat_u8_s16),
            U16 => o.lift1(sem::cvt_sat_u16_s16),
            U32 => o.lift1(sem::cvt_sat_u32_s16),
            U64 => o.lift1(sem::cvt_sat_u64_s16),
            S8 => o.lift1(sem::cvt_sat_s8_s16),
        },
        S32 => by_type! { d;
            U8 => o.lift1(sem::cvt_sat_u8_s32),
            U16 => o.lift1(sem::cvt_sat_u16_s32),
            U32 => o.lift1(sem::cvt_sat_u32_s32),
            U64 => o.lift1(sem::cvt_sat_u64_s32),
            S8 => o.lift1(sem::cvt_sat_s8_s32),
            S16 => o.lift1(sem::cvt_sat_s16_s32),
        },
        S64 => by_type! { d;
            U8 => o.lift1(sem::cvt_sat_u8_s64),
            U16 => o.lift1(sem::cvt_sat_u16_s64),
            U32 => o.lift1(sem::cvt_sat_u32_s64),
            U64 => o.lift1(sem::cvt_sat_u64_s64),
            S8 => o.lift1(sem::cvt_sat_s8_s64),
            S16 => o.lift1(sem::cvt_sat_s16_s64),
            S32 => o.lift1(sem::cvt_sat_s32_s64),
        },
    }
}

fn int_to_float(o: &Operands<'_>, d: Ty, a: Ty) -> Bound {
    // No integer is subnormal in single precision, so `.ftz` has no effect.
    o.ignore_word(Word::Ftz);
    by_type! { a;
        U8 => by_type! { d;
            F32 => to_f32(o, sem::cvt_f32_u8),
            F64 => to_f64(o, sem::cvt_f64_u8),
            F16 => to_f16(o, sem::cvt_f16_u8),
        },
        U16 => by_type! { d;
            F32 => to_f32(o, sem::cvt_f32_u16),
            F64 => to_f64(o, sem::cvt_f64_u16),
            F16 => to_f16(o, sem::cvt_f16_u16),
        },
        U32 => by_type! { d;
            F32 => to_f32(o, sem::cvt_f32_u32),
            F64 => to_f64(o, sem::cvt_f64_u32),
            F16 => to_f16(o, sem::cvt_f16_u32),
        },
        U64 => by_type! { d;
            F32 => to_f32(o, sem::cvt_f32_u64),
            F64 => to_f64(o, sem::cvt_f64_u64),
            F16 => to_f16(o, sem::cvt_f16_u64),
        },
        S8 => by_type! { d;
            F32 => to_f32(o, sem::cvt_f32_s8),
            F64 => to_f64(o, sem::cvt_f64_s8),
            F16 => to_f16(o, sem::cvt_f16_s8),
        },
        S16 => by_type! { d;
            F32 => to_f32(o, sem::cvt_f32_s16),
            F64 => to_f64(o, sem::cvt_f64_s16),
            F16 => to_f16(o, sem::cvt_f16_s16),
        },
        S32 => by_type! { d;
            F32 => to_f32(o, sem::cvt_f32_s32),
            F64 => to_f64(o, sem::cvt_f64_s32),
            F16 => to_f16(o, sem::cvt_f16_s32),
        },
        S64 => by_type! { d;
            F32 => to_f32(o, sem::cvt_f32_s64),
            F64 => to_f64(o, sem::cvt_f64_s64),
            F16 => to_f16(o, sem::cvt_f16_s64),
        },
    }
}

/// To `.f32` with a rounding.
fn to_f32<A: Value>(o: &Operands<'_>, f: impl Fn(A, Rnd) -> f32 + Copy + Send + Sync + 'static) -> Bound {
    let (rnd, sat) = (rnd(o)?, o.has(Word::Sat));
    if rnd == Rnd::Rn && !sat {
        return o.lift1(move |a| f(a, Rnd::Rn));
    }
    o.active1(move |a| if sat { sem::sat_f32(f(a, rnd)) } else { f(a, rnd) })
}

/// To `.f64` with a rounding.
fn to_f64<A: Value>(o: &Operands<'_>, f: impl Fn(A, Rnd) -> f64 + Copy + Send + Sync + 'static) -> Bound {
    let (rnd, sat) = (rnd(o)?, o.has(Word::Sat));
    if rnd == Rnd::Rn && !sat {
        return o.lift1(move |a| f(a, Rnd::Rn));
    }
    o.active1(move |a| if sat { sem::sat_f64(f(a, rnd)) } else { f(a, rnd) })
}

/// To `.f16` with a rounding.
fn to_f16<A: Value>(o: &Operands<'_>, f: impl Fn(A, Rnd) -> u16 + Copy + Send + Sync + 'static) -> Bound {
    let (rnd, sat) = (rnd(o)?, o.has(Word::Sat));
    o.active1(move |a| if sat { sem::sat_f16(f(a, rnd)) } else { f(a, rnd) })
}

fn float_to_int(o: &Operands<'_>, d: Ty, a: Ty) -> Bound {
    // Conversions to integers are clamped to their range in any case.
    o.ignore_word(Word::Sat);
    let ftz = o.has(Word::Ftz);
    by_type! { a;
        F32 => by_type! { d;
            U8 => from_f32(o, ftz, sem::cvt_u8_f32),
            U16 => from_f32(o, ftz, sem::cvt_u16_f32),
            U32 => from_f32(o, ftz, sem::cvt_u32_f32),
            U64 => from_f32(o, ftz, sem::cvt_u64_f32),
            S8 => from_f32(o, ftz, sem::cvt_s8_f32),
            S16 => from_f32(o, ftz, sem::cvt_s16_f32),
            S32 => from_f32(o, ftz, sem::cvt_s32_f32),
            S64 => from_f32(o, ftz, sem::cvt_s64_f32),
        },
        F64 => by_type! { d;
            U8 => from_any(o, sem::cvt_u8_f64),
            U16 => from_any(o, sem::cvt_u16_f64),
            U32 => from_any(o, sem::cvt_u32_f64),
            U64 => from_any(o, sem::cvt_u64_f64),
            S8 => from_any(o, sem::cvt_s8_f64),
            S16 => from_any(o, sem::cvt_s16_f64),
            S32 => from_any(o, sem::cvt_s32_f64),
            S64 => from_any(o, sem::cvt_s64_f64),
        },
        F16 => by_type! { d;
            U8 => from_any(o, sem::cvt_u8_f16),
            U16 => from_any(o, sem::cvt_u16_f16),
            U32 => from_any(o, sem::cvt_u32_f16),
            U64 => from_any(o, sem::cvt_u64_f16),
            S8 => from_any(o, sem::cvt_s8_f16),
            S16 => from_any(o, sem::cvt_s16_f16),
            S32 => from_any(o, sem::cvt_s32_f16),
            S64 => from_any(o, sem::cvt_s64_f16),
        },
    }
}

/// From `.f32` to an integer.
fn from_f32<D: Value>(
    o: &Operands<'_>,
    ftz: bool,
    f: impl Fn(f32, RndInt) -> D + Copy + Send + Sync + 'static,
) -> Bound {
    if ftz { from_any(o, move |a, rnd| f(sem::ftz_f32(a), rnd)) } else { from_any(o, f) }
}

fn float_to_float(o: &Operands<'_>, d: Ty, a: Ty) -> Bound {
    let (ftz, sat) = (o.has(Word::Ftz), o.has(Word::Sat));
    let flush = move |x: f32| if ftz { sem::ftz_f32(x) } else { x };
    let sat_f16 = move |x| if sat { sem::sat_f16(x) } else { x };
    let sat_f32 = move |x| if sat { sem::sat_f32(x) } else { x };
    let sat_f64 = move |x| if sat { sem::sat_f64(x) } else { x };
    by_type! { a;
        F16 => by_type! { d;
            F16 => same(o, sem::round_f16, sat_f16),
            F32 => o.active1(move |a| sat_f32(flush(sem::cvt_f32_f16(a)))),
            F64 => o.active1(move |a| sat_f64(sem::cvt_f64_f16(a))),
        },
        F32 => by_type! { d;
            F16 => {
                // Devices do not flush the `.f32` here, which is visible only with directed rounding.
                let rnd = rnd(o)?;
                o.active1(move |a| sat_f16(sem::cvt_f16_f32(a, rnd)))
            },
            F32 => same(o, move |a, rnd| flush(sem::round_f32(flush(a), rnd)), move |a| sat_f32(flush(a))),
            F64 => o.lift1(move |a| sat_f64(sem::cvt_f64_f32(flush(a)))),
        },
        F64 => by_type! { d;
            F16 => {
                let rnd = rnd(o)?;
                o.active1(move |a| sat_f16(sem::cvt_f16_f64(a, rnd)))
            },
            F32 => {
                let rnd = rnd(o)?;
                if ftz {
                    o.active1(move |a| sat_f32(sem::cvt_ftz_f32_f64(a, rnd)))
                } else if rnd == Rnd::Rn {
                    o.lift1(move |a| sat_f32(sem::cvt_f32_f64(a, Rnd::Rn)))
                } else {
                    o.active1(move |a| sat_f32(sem::cvt_f32_f64(a, rnd)))
                }
            },
            F64 => same(o, sem::round_f64, sat_f64),
        },
    }
}

/// From a float type to itself: rounds to an integral value if a rounding is given, then applies `finish`.
fn same<T: Value>(
    o: &Operands<'_>,
    round: impl Fn(T, RndInt) -> T + Copy + Send + Sync + 'static,
    finish: impl Fn(T) -> T + Copy + Send + Sync + 'static,
) -> Bound {
    match rnd_int(o)? {
        Some(rnd) => o.active1(move |a| finish(round(a, rnd))),
        None => o.lift1(finish),
    }
}
