//! Half precision and bfloat16, single and packed (PTX ISA §9.7.4).
//!
//! Invariant: as for single precision, `sat(ftz(f(ftz(a), ftz(b))))`, and `relu(ftz(...))`, where f knows of
//! `.ftz` if it can round a subnormal number to a normal one; the only rounding is to nearest. bfloat16 has
//! neither `.ftz` nor `.sat`.

use super::operands::{Bound, Operands};
use super::{Missing, by_type};
use ptx::isa::Word;
use ptx_sem::{self as sem, Rnd};

/// Whether the instruction has `.ftz`, and `.sat`.
fn words(o: &Operands<'_>) -> Result<(bool, bool), Missing> {
    if super::rounding::rnd(o)? != Rnd::Rn {
        return Err(Missing);
    }
    Ok((o.has(Word::Ftz), o.has(Word::Sat)))
}

/// Binds a composition, with a separate step for each combination of `.ftz` and `.sat`, so that it
/// vectorises.
macro_rules! adjusted {
    ($o:ident.$lift:ident $f:ident($($a:ident),+) $ftz:path, $sat:path) => {
        match words($o)? {
            (false, false) => $o.$lift($f),
            (false, true) => $o.$lift(move |$($a),+| $sat($f($($a),+))),
            (true, false) => $o.$lift(move |$($a),+| $ftz($f($($ftz($a)),+))),
            (true, true) => $o.$lift(move |$($a),+| $sat($ftz($f($($ftz($a)),+)))),
        }
    };
}

macro_rules! shapes {
    ($($one:ident $two:ident $three:ident $ty:ty, $ftz:path, $sat:path;)+) => {$(
        /// An instruction with one operand.
        pub(super) fn $one(o: &Operands<'_>, f: impl Fn($ty) -> $ty + Copy + Send + Sync + 'static) -> Bound {
            adjusted!(o.wide1 f(a) $ftz, $sat)
        }

        /// An instruction with two operands.
        pub(super) fn $two(o: &Operands<'_>, f: impl Fn($ty, $ty) -> $ty + Copy + Send + Sync + 'static) -> Bound {
            adjusted!(o.wide2 f(a, b) $ftz, $sat)
        }

        /// An instruction with three operands.
        pub(super) fn $three(
            o: &Operands<'_>,
            f: impl Fn($ty, $ty, $ty) -> $ty + Copy + Send + Sync + 'static,
        ) -> Bound {
            adjusted!(o.wide3 f(a, b, c) $ftz, $sat)
        }
    )+};
}
shapes! {
    one two three u16, sem::ftz_f16, sem::sat_f16;
    one_x2 two_x2 three_x2 u32, sem::ftz_f16x2, sem::sat_f16x2;
}

/// `fma` of half precision, with `.relu` or `.sat` or neither.
pub(super) fn fma(o: &Operands<'_>) -> Bound {
    let (relu, ty) = (o.has(Word::Relu), o.ty()?);
    let (ftz, _) = words(o)?;
    if !relu {
        return match ftz {
            false => by_type! { ty; F16 => three(o, sem::fma_f16), F16x2 => three_x2(o, sem::fma_f16x2) },
            true => {
                by_type! { ty; F16 => three(o, sem::fma_ftz_f16), F16x2 => three_x2(o, sem::fma_ftz_f16x2) }
            }
        };
    }
    if ftz {
        return by_type! { ty;
            F16 => o.wide3(|a, b, c| {
                sem::relu_f16(sem::fma_ftz_f16(sem::ftz_f16(a), sem::ftz_f16(b), sem::ftz_f16(c)))
            }),
            F16x2 => o.wide3(|a, b, c| {
                let [a, b, c] = [a, b, c].map(sem::ftz_f16x2);
                sem::relu_f16x2(sem::fma_ftz_f16x2(a, b, c))
            }),
        };
    }
    by_type! { ty;
        F16 => o.wide3(|a, b, c| sem::relu_f16(sem::fma_f16(a, b, c))),
        F16x2 => o.wide3(|a, b, c| sem::relu_f16x2(sem::fma_f16x2(a, b, c))),
    }
}

/// `fma` of bfloat16.
pub(super) fn fma_bf16(o: &Operands<'_>) -> Bound {
    let (relu, ty) = (o.has(Word::Relu), o.ty()?);
    nearest(o)?;
    match relu {
        false => by_type! { ty; Bf16 => o.wide3(sem::fma_bf16), Bf16x2 => o.wide3(sem::fma_bf16x2) },
        true => by_type! { ty;
            Bf16 => o.wide3(|a, b, c| sem::relu_bf16(sem::fma_bf16(a, b, c))),
            Bf16x2 => o.wide3(|a, b, c| sem::relu_bf16x2(sem::fma_bf16x2(a, b, c))),
        },
    }
}

/// Checks that the rounding is to nearest.
fn nearest(o: &Operands<'_>) -> Result<(), Missing> {
    if super::rounding::rnd(o)? == Rnd::Rn { Ok(()) } else { Err(Missing) }
}

/// An instruction of bfloat16 with two operands.
pub(super) fn bf16_two<T: crate::lift::Value>(
    o: &Operands<'_>,
    f: impl Fn(T, T) -> T + Copy + Send + Sync + 'static,
) -> Bound {
    nearest(o)?;
    o.wide2(f)
}

/// Binds `min` or `max`, from the functions without modifiers, with `.NaN`, with `.xorsign.abs` and with
/// both; then applies `.ftz` if the format has it. Each combination is a separate step, so that it
/// vectorises.
macro_rules! extremum {
    ($o:expr; $plain:path, $nan:path, $signed:path, $signed_nan:path $(; $ftz:path)?) => {{
        let o: &Operands<'_> = $o;
        o.ignore_word(Word::Abs);
        match (o.has(Word::XorsignAbs), o.has(Word::NaN)) {
            $((false, false) if o.has(Word::Ftz) => o.wide2(|a, b| $ftz($plain($ftz(a), $ftz(b)))),
            (false, true) if o.has(Word::Ftz) => o.wide2(|a, b| $ftz($nan($ftz(a), $ftz(b)))),
            (true, false) if o.has(Word::Ftz) => o.wide2(|a, b| $ftz($signed($ftz(a), $ftz(b)))),
            (true, true) if o.has(Word::Ftz) => o.wide2(|a, b| $ftz($signed_nan($ftz(a), $ftz(b)))),)?
            (false, false) => o.wide2($plain),
            (false, true) => o.wide2($nan),
            (true, false) => o.wide2($signed),
            (true, true) => o.wide2($signed_nan),
        }
    }};
}
pub(super) use extremum;
