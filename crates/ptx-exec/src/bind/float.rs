//! Single and double precision (PTX ISA §9.7.3).
//!
//! Invariant: `.ftz` flushes operands and result, `.sat` clamps the result last:
//! `sat(ftz(f(ftz(a), ftz(b))))`, where f knows of `.ftz` if it can round a subnormal number to a normal one.
//! Rounding to nearest has a separate step for each combination of `.ftz` and `.sat`, so that it vectorises.
//! Directed roundings are computed in integers, and read the modifiers at run time.

use super::operands::{Bound, Operands};
use super::rounding::rnd;
use super::{Missing, by_type};
use crate::lift;
use crate::wide::Wide;
use ptx::isa::{Slot, Ty, Word};
use ptx_sem::{self as sem, Rnd};

#[inline(always)]
fn ftz_if(flush: bool, a: f32) -> f32 {
    if flush { sem::ftz_f32(a) } else { a }
}

#[inline(always)]
fn sat_if(clamp: bool, a: f32) -> f32 {
    if clamp { sem::sat_f32(a) } else { a }
}

/// A one-operand `.f32` instruction with optional `.ftz`.
pub(super) fn flushed1_f32(o: &Operands<'_>, f: impl Fn(f32) -> f32 + Copy + Send + Sync + 'static) -> Bound {
    if o.has(Word::Ftz) { o.lift1(move |a| sem::ftz_f32(f(sem::ftz_f32(a)))) } else { o.lift1(f) }
}

/// A two-operand `.f32` instruction with optional `.ftz`.
pub(super) fn flushed2_f32(
    o: &Operands<'_>,
    f: impl Fn(f32, f32) -> f32 + Copy + Send + Sync + 'static,
) -> Bound {
    if o.has(Word::Ftz) {
        o.lift2(move |a, b| sem::ftz_f32(f(sem::ftz_f32(a), sem::ftz_f32(b))))
    } else {
        o.lift2(f)
    }
}

/// `.f32` with one operand, `.rnd` and `.ftz`.
fn rounded1_f32(o: &Operands<'_>, f: impl Fn(f32, Rnd) -> f32 + Copy + Send + Sync + 'static) -> Bound {
    let rnd = rnd(o)?;
    if rnd == Rnd::Rn {
        return flushed1_f32(o, move |a| f(a, Rnd::Rn));
    }
    let ftz = o.has(Word::Ftz);
    o.active1(move |a| ftz_if(ftz, f(ftz_if(ftz, a), rnd)))
}

/// `.f32` with two operands, `.rnd`, `.ftz` and `.sat`.
pub(super) fn rounded2_f32(
    o: &Operands<'_>,
    f: impl Fn(f32, f32, Rnd) -> f32 + Copy + Send + Sync + 'static,
) -> Bound {
    let rnd = rnd(o)?;
    let (ftz, sat) = (o.has(Word::Ftz), o.has(Word::Sat));
    if rnd != Rnd::Rn {
        return o.active2(move |a, b| sat_if(sat, ftz_if(ftz, f(ftz_if(ftz, a), ftz_if(ftz, b), rnd))));
    }
    let rn = move |a, b| f(a, b, Rnd::Rn);
    let flushed = move |a, b| sem::ftz_f32(rn(sem::ftz_f32(a), sem::ftz_f32(b)));
    match (ftz, sat) {
        (false, false) => o.lift2(rn),
        (false, true) => o.lift2(move |a, b| sem::sat_f32(rn(a, b))),
        (true, false) => o.lift2(flushed),
        (true, true) => o.lift2(move |a, b| sem::sat_f32(flushed(a, b))),
    }
}

/// `fma.rnd.f32` with or without `.ftz`.
#[inline(always)]
fn fused(ftz: bool, a: f32, b: f32, c: f32, rnd: Rnd) -> f32 {
    if ftz {
        sem::fma_ftz_f32(sem::ftz_f32(a), sem::ftz_f32(b), sem::ftz_f32(c), rnd)
    } else {
        sem::fma_f32(a, b, c, rnd)
    }
}

/// `fma.f32`: `.rnd`, `.ftz` and `.sat`.
fn fma_f32(o: &Operands<'_>) -> Bound {
    let rnd = rnd(o)?;
    let (ftz, sat) = (o.has(Word::Ftz), o.has(Word::Sat));
    if rnd != Rnd::Rn {
        return o.active3(move |a, b, c| sat_if(sat, fused(ftz, a, b, c, rnd)));
    }
    match (ftz, sat) {
        (false, false) => fma_rn_f32::<false, false>(o),
        (false, true) => fma_rn_f32::<false, true>(o),
        (true, false) => fma_rn_f32::<true, false>(o),
        (true, true) => fma_rn_f32::<true, true>(o),
    }
}

fn fma_rn_f32<const FTZ: bool, const SAT: bool>(o: &Operands<'_>) -> Bound {
    let before = |x| ftz_if(FTZ, x);
    let after = |x| sat_if(SAT, ftz_if(FTZ, x));
    let quick = move |a, b, c| {
        let (value, certain) = sem::fma_quick_f32(before(a), before(b), before(c));
        (after(value), certain)
    };
    let exact = move |a, b, c| sat_if(SAT, fused(FTZ, a, b, c, Rnd::Rn));
    let host = move |a, b, c| {
        let (a, b, c) = (before(a), before(b), before(c));
        sat_if(SAT, if FTZ { sem::fma_ftz_host_f32(a, b, c) } else { sem::fma_host_f32(a, b, c) })
    };
    let operands = o.three::<f32, f32, f32, f32>()?;
    Ok(match Wide::of_host() {
        Some(wide) => wide.lift3(operands, host),
        None => lift::lift3_quick(operands, quick, exact),
    })
}

/// The halves of a pair, the low one first.
#[inline(always)]
fn halves(pair: u64) -> [f32; 2] {
    [f32::from_bits(pair as u32), f32::from_bits((pair >> 32) as u32)]
}

#[inline(always)]
fn pair([low, high]: [f32; 2]) -> u64 {
    u64::from(high.to_bits()) << 32 | u64::from(low.to_bits())
}

/// `.f32x2` with two operands, `.rnd` and `.ftz`: as `.f32` in each half.
pub(super) fn two_x2(
    o: &Operands<'_>,
    f: impl Fn(f32, f32, Rnd) -> f32 + Copy + Send + Sync + 'static,
) -> Bound {
    let (rnd, ftz) = (rnd(o)?, o.has(Word::Ftz));
    let one = move |a: f32, b: f32| ftz_if(ftz, f(ftz_if(ftz, a), ftz_if(ftz, b), rnd));
    o.active2(move |a: u64, b: u64| {
        let (a, b) = (halves(a), halves(b));
        pair([one(a[0], b[0]), one(a[1], b[1])])
    })
}

/// `fma.f32x2`
fn fma_x2(o: &Operands<'_>) -> Bound {
    let (rnd, ftz) = (rnd(o)?, o.has(Word::Ftz));
    let one = move |a: f32, b: f32, c: f32| fused(ftz, a, b, c, rnd);
    o.active3(move |a: u64, b: u64, c: u64| {
        let (a, b, c) = (halves(a), halves(b), halves(c));
        pair([one(a[0], b[0], c[0]), one(a[1], b[1], c[1])])
    })
}

/// `.f64` with one operand and `.rnd`.
fn rounded1_f64(o: &Operands<'_>, f: impl Fn(f64, Rnd) -> f64 + Copy + Send + Sync + 'static) -> Bound {
    match rnd(o)? {
        Rnd::Rn => o.lift1(move |a| f(a, Rnd::Rn)),
        rnd @ (Rnd::Rz | Rnd::Rm | Rnd::Rp) => o.active1(move |a| f(a, rnd)),
    }
}

/// `.f64` with two operands and `.rnd`; rounding to nearest first tries `quick`.
pub(super) fn rounded2_f64(
    o: &Operands<'_>,
    quick: impl Fn(f64, f64) -> (f64, bool) + Copy + Send + Sync + 'static,
    f: impl Fn(f64, f64, Rnd) -> f64 + Copy + Send + Sync + 'static,
) -> Bound {
    match rnd(o)? {
        Rnd::Rn => Ok(lift::lift2_quick(o.two::<f64, f64, f64>()?, quick, move |a, b| f(a, b, Rnd::Rn))),
        rnd @ (Rnd::Rz | Rnd::Rm | Rnd::Rp) => o.active2(move |a, b| f(a, b, rnd)),
    }
}

/// `.f64` with three operands and `.rnd`.
pub(super) fn rounded3_f64(
    o: &Operands<'_>,
    f: impl Fn(f64, f64, f64, Rnd) -> f64 + Copy + Send + Sync + 'static,
) -> Bound {
    match rnd(o)? {
        Rnd::Rn => {
            let (operands, rn) = (o.three::<f64, f64, f64, f64>()?, move |a, b, c| f(a, b, c, Rnd::Rn));
            Ok(match Wide::of_host() {
                Some(wide) => wide.lift3(operands, rn),
                None => lift::active3(operands, rn),
            })
        }
        rnd @ (Rnd::Rz | Rnd::Rm | Rnd::Rp) => o.active3(move |a, b, c| f(a, b, c, rnd)),
    }
}

/// `mad.f32`: as `fma`, except on `sm_1x`, where it has no rounding modifier and truncates the product.
/// §9.7.3.6.
pub(super) fn mad_f32(o: &Operands<'_>) -> Bound {
    if o.binding.program.target.sm.number >= 20 || o.rnd().is_some() {
        return fma_f32(o);
    }
    // `mad_trunc_f32` always flushes, as these targets do.
    o.ignore_word(Word::Ftz);
    let sat = o.has(Word::Sat);
    o.active3(move |a, b, c| sat_if(sat, sem::mad_trunc_f32(a, b, c)))
}

pub(super) fn fma(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        F32 => fma_f32(o),
        F64 => rounded3_f64(o, sem::fma_f64),
        F16 | F16x2 => super::half::fma(o),
        Bf16 | Bf16x2 => super::half::fma_bf16(o),
        F32x2 => fma_x2(o),
    }
}

pub(super) fn div_f32(o: &Operands<'_>) -> Bound {
    if o.has(Word::Approx) {
        flushed2_f32(o, sem::div_approx_f32)
    } else if o.has(Word::Full) {
        flushed2_f32(o, sem::div_full_f32)
    } else if o.has(Word::Ftz) {
        // The division flushes before it rounds.
        rounded2_f32(o, sem::div_ftz_f32)
    } else {
        rounded2_f32(o, sem::div_f32)
    }
}

pub(super) fn testp(o: &Operands<'_>) -> Bound {
    let asked = |w| {
        let words =
            [Word::Finite, Word::Infinite, Word::Number, Word::Notanumber, Word::Normal, Word::Subnormal];
        words.contains(&w)
    };
    let op = match o.ask(Slot::Op, asked, |mods| mods.testp_op())? {
        ptx::isa::TestpOp::Finite => sem::TestpOp::Finite,
        ptx::isa::TestpOp::Infinite => sem::TestpOp::Infinite,
        ptx::isa::TestpOp::Number => sem::TestpOp::Number,
        ptx::isa::TestpOp::Notanumber => sem::TestpOp::NotANumber,
        ptx::isa::TestpOp::Normal => sem::TestpOp::Normal,
        ptx::isa::TestpOp::Subnormal => sem::TestpOp::Subnormal,
    };
    by_type! { o.ty()?;
        F32 => Ok(lift::test(o.pred_dst(0)?, o.src::<f32>(0)?, move |a| sem::testp_f32(op, a))),
        F64 => Ok(lift::test(o.pred_dst(0)?, o.src::<f64>(0)?, move |a| sem::testp_f64(op, a))),
    }
}

pub(super) fn copysign(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?; F32 => o.lift2(sem::copysign_f32), F64 => o.lift2(sem::copysign_f64) }
}

pub(super) fn rcp(o: &Operands<'_>) -> Bound {
    let (ty, approx) = (o.ty()?, o.has(Word::Approx));
    by_type! { ty;
        F32 => if approx {
            flushed1_f32(o, sem::rcp_approx_f32)
        } else if o.has(Word::Ftz) {
            rounded1_f32(o, sem::rcp_ftz_f32)
        } else {
            rounded1_f32(o, sem::rcp_f32)
        },
        F64 => if approx { gross_f64(o, sem::rcp_approx_ftz_f64) } else { rounded1_f64(o, sem::rcp_f64) },
    }
}

/// `.approx.ftz.f64`: the function of `ptx-sem` flushes.
fn gross_f64(o: &Operands<'_>, f: impl Fn(f64) -> f64 + Copy + Send + Sync + 'static) -> Bound {
    if o.has(Word::Ftz) { o.active1(f) } else { Err(Missing) }
}

pub(super) fn sqrt(o: &Operands<'_>) -> Bound {
    let (ty, approx) = (o.ty()?, o.has(Word::Approx));
    by_type! { ty;
        F32 => if approx { flushed1_f32(o, sem::sqrt_approx_f32) } else { rounded1_f32(o, sem::sqrt_f32) },
        F64 => if approx { Err(Missing) } else { rounded1_f64(o, sem::sqrt_f64) },
    }
}

pub(super) fn rsqrt(o: &Operands<'_>) -> Bound {
    if !o.has(Word::Approx) {
        return Err(Missing);
    }
    by_type! { o.ty()?;
        F32 => transcendental(o, |a| (sem::rsqrt_approx_f32(a), true), sem::rsqrt_approx_f32),
        F64 => if o.has(Word::Ftz) {
            o.active1(sem::rsqrt_approx_ftz_f64)
        } else {
            o.active1(sem::rsqrt_approx_f64)
        },
    }
}

/// `sin`, `cos`, `lg2`, `ex2`, `rsqrt`: `.approx.f32`; `quick` computes all lanes unless it is uncertain.
fn transcendental(
    o: &Operands<'_>,
    quick: impl Fn(f32) -> (f32, bool) + Copy + Send + Sync + 'static,
    f: impl Fn(f32) -> f32 + Copy + Send + Sync + 'static,
) -> Bound {
    if !o.has(Word::Approx) {
        return Err(Missing);
    }
    let flushed = move |a| sem::ftz_f32(f(sem::ftz_f32(a)));
    let flushed_quick = move |a| {
        let (result, certain) = quick(sem::ftz_f32(a));
        (sem::ftz_f32(result), certain)
    };
    let operands = o.one::<f32, f32>()?;
    Ok(match (Wide::of_host(), o.has(Word::Ftz)) {
        (Some(wide), false) => wide.lift1_quick(operands, quick, f),
        (Some(wide), true) => wide.lift1_quick(operands, flushed_quick, flushed),
        (None, false) => lift::active1(operands, f),
        (None, true) => lift::active1(operands, flushed),
    })
}

/// Checks that the type is one that [`transcendental`] supports.
fn single(o: &Operands<'_>) -> Result<(), Missing> {
    by_type! { o.ty()?; F32 => Ok(()) }
}

pub(super) fn sin(o: &Operands<'_>) -> Bound {
    single(o)?;
    transcendental(o, sem::sin_quick_f32, sem::sin_approx_f32)
}

pub(super) fn cos(o: &Operands<'_>) -> Bound {
    single(o)?;
    transcendental(o, sem::cos_quick_f32, sem::cos_approx_f32)
}

pub(super) fn lg2(o: &Operands<'_>) -> Bound {
    single(o)?;
    transcendental(o, |a| (sem::lg2_approx_f32(a), true), sem::lg2_approx_f32)
}

pub(super) fn ex2(o: &Operands<'_>) -> Bound {
    if o.ty()? != Ty::F32 {
        return super::cvt16::ex2(o);
    }
    single(o)?;
    transcendental(o, |a| (sem::ex2_approx_f32(a), true), sem::ex2_approx_f32)
}
