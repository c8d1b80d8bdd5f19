//! Half precision, single and packed (PTX ISA §9.7.4).
//!
//! Invariant: as for single precision, `sat(ftz(f(ftz(a), ftz(b))))`; the only rounding is to nearest.

use super::Missing;
use super::operands::{Bound, Operands};
use crate::lift::Value;
use ptx::isa::Word;
use ptx_sem::{self as sem, Rnd};

/// The flushing and clamping of a type.
#[derive(Clone, Copy)]
struct Adjust<T> {
    ftz: Option<fn(T) -> T>,
    sat: Option<fn(T) -> T>,
}

impl<T: Value> Adjust<T> {
    fn of(o: &Operands<'_>, ftz: fn(T) -> T, sat: fn(T) -> T) -> Result<Self, Missing> {
        if super::float::rnd(o)? != Rnd::Rn {
            return Err(Missing);
        }
        Ok(Self { ftz: o.has(Word::Ftz).then_some(ftz), sat: o.has(Word::Sat).then_some(sat) })
    }

    fn operand(self, a: T) -> T {
        self.ftz.map_or(a, |ftz| ftz(a))
    }

    fn result(self, d: T) -> T {
        let d = self.operand(d);
        self.sat.map_or(d, |sat| sat(d))
    }
}

macro_rules! shapes {
    ($($one:ident $two:ident $three:ident $ty:ty, $ftz:path, $sat:path;)+) => {$(
        /// An instruction with one operand.
        pub(super) fn $one(o: &Operands<'_>, f: impl Fn($ty) -> $ty + Copy + Send + Sync + 'static) -> Bound {
            let adjust = Adjust::of(o, $ftz, $sat)?;
            o.active1(move |a| adjust.result(f(adjust.operand(a))))
        }

        /// An instruction with two operands.
        pub(super) fn $two(o: &Operands<'_>, f: impl Fn($ty, $ty) -> $ty + Copy + Send + Sync + 'static) -> Bound {
            let adjust = Adjust::of(o, $ftz, $sat)?;
            o.active2(move |a, b| adjust.result(f(adjust.operand(a), adjust.operand(b))))
        }

        /// An instruction with three operands.
        pub(super) fn $three(
            o: &Operands<'_>,
            f: impl Fn($ty, $ty, $ty) -> $ty + Copy + Send + Sync + 'static,
        ) -> Bound {
            let adjust = Adjust::of(o, $ftz, $sat)?;
            o.active3(move |a, b, c| adjust.result(f(adjust.operand(a), adjust.operand(b), adjust.operand(c))))
        }
    )+};
}
shapes! {
    one two three u16, sem::ftz_f16, sem::sat_f16;
    one_x2 two_x2 three_x2 u32, sem::ftz_f16x2, sem::sat_f16x2;
}
