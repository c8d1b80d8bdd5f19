//! Bounds-check elimination: accesses of shared memory that cannot be out of bounds.
//!
//! Where the range of an address lies within the kernel's own variables, the access has neither a check nor a
//! side exit.
//!
//! Invariant: ranges are used only in code that is entered without a warp frame, so that no value comes from
//! elsewhere.

use crate::analysis::Analyses;
use crate::wir::access::Access;
use crate::wir::{Func, Kind, Op};
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use std::ops::Range;

/// Whether an access lies within a range of its state space in every lane, and is aligned. `own`: the
/// addresses that need no check.
pub(crate) fn is_within(
    func: &Func,
    analyses: &Analyses,
    own: &Range<i64>,
    (inst, op): (&Inst, &Op),
    access: Access,
) -> bool {
    let (name, offset) = match inst.srcs.first() {
        Some(Src::Addr(Addr { base: Base::Reg(_), index: None, offset })) => (op.uses.get(1), *offset),
        Some(Src::Reg(_)) => (op.uses.get(1), 0),
        _ => return false,
    };
    let bound = name.and_then(|name| analyses.bounds[name.0 as usize].map(|bound| (*name, bound)));
    let Some((name, bound)) = bound else { return false };
    let bytes = access.bytes();
    let end = i128::from(bound.high) + i128::from(offset) + i128::from(bytes);
    own.start < own.end
        && func.kinds[name.0 as usize] == Kind::Reg(RegClass::R64)
        && analyses.addresses.provenance(name).is_none()
        && bytes.is_power_of_two()
        && 1 << bound.zeros.min(30) >= bytes
        && offset % i64::from(bytes) == 0
        && i128::from(bound.low) + i128::from(offset) >= i128::from(own.start)
        && end <= i128::from(own.end)
}
