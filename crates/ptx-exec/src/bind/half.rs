//! Half precision, single and packed (PTX ISA §9.7.4).
//!
//! Invariant: as for single precision, `sat(ftz(f(ftz(a), ftz(b))))`; the only rounding is to nearest.

use super::Missing;
use super::operands::{Bound, Operands};
use ptx::isa::Word;
use ptx_sem::{self as sem, Rnd};

/// Whether there is `.ftz`, and `.sat`.
fn words(o: &Operands<'_>) -> Result<(bool, bool), Missing> {
    if super::float::rnd(o)? != Rnd::Rn {
        return Err(Missing);
    }
    Ok((o.has(Word::Ftz), o.has(Word::Sat)))
}

/// Binds a composition, a step of its own per combination of `.ftz` and `.sat`, so that it vectorises.
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
