//! Roundings that instructions give, for the modules of arithmetic and of conversions.

use super::Missing;
use super::operands::{Bound, Operands};
use crate::lift::Value;
use ptx_sem::{Rnd, RndInt};

/// The rounding of an arithmetic instruction; to nearest by default.
pub(super) fn rnd(o: &Operands<'_>) -> Result<Rnd, Missing> {
    match o.rnd() {
        None | Some(ptx::isa::Rnd::Rn) => Ok(Rnd::Rn),
        Some(ptx::isa::Rnd::Rz) => Ok(Rnd::Rz),
        Some(ptx::isa::Rnd::Rm) => Ok(Rnd::Rm),
        Some(ptx::isa::Rnd::Rp) => Ok(Rnd::Rp),
        Some(
            ptx::isa::Rnd::Rni
            | ptx::isa::Rnd::Rzi
            | ptx::isa::Rnd::Rmi
            | ptx::isa::Rnd::Rpi
            | ptx::isa::Rnd::Rna
            | ptx::isa::Rnd::Rs,
        ) => Err(Missing),
    }
}

/// The rounding to an integer, if the instruction has one.
pub(super) fn rnd_int(o: &Operands<'_>) -> Result<Option<RndInt>, Missing> {
    match o.rnd() {
        None => Ok(None),
        Some(ptx::isa::Rnd::Rni) => Ok(Some(RndInt::Rni)),
        Some(ptx::isa::Rnd::Rzi) => Ok(Some(RndInt::Rzi)),
        Some(ptx::isa::Rnd::Rmi) => Ok(Some(RndInt::Rmi)),
        Some(ptx::isa::Rnd::Rpi) => Ok(Some(RndInt::Rpi)),
        Some(
            ptx::isa::Rnd::Rn
            | ptx::isa::Rnd::Rz
            | ptx::isa::Rnd::Rm
            | ptx::isa::Rnd::Rp
            | ptx::isa::Rnd::Rna
            | ptx::isa::Rnd::Rs,
        ) => Err(Missing),
    }
}

/// From a float to an integer.
pub(super) fn from_any<A: Value, D: Value>(
    o: &Operands<'_>,
    f: impl Fn(A, RndInt) -> D + Copy + Send + Sync + 'static,
) -> Bound {
    let rnd = rnd_int(o)?.ok_or(Missing)?;
    if rnd == RndInt::Rzi {
        return o.lift1(move |a| f(a, RndInt::Rzi));
    }
    o.active1(move |a| f(a, rnd))
}
