//! The parts that all matrix instructions share: the check that the whole warp executes them, shapes,
//! layouts, and operands that must be the same in all lanes.

use super::Missing;
use super::operands::Operands;
use crate::bound::Stepped;
use crate::lanes::{FULL, LANES, LaneMask};
use crate::trap::{Fault, FaultKind};
use ptx::isa::{Layout, MatrixShape, Slot};

/// Traps unless all 32 lanes are active.
pub(super) fn whole_warp(mask: LaneMask) -> Stepped {
    if mask == FULL {
        return Ok(());
    }
    let why = format!("all 32 lanes must execute it, but lanes {:#010x} have exited or do not exist", !mask);
    Err(Fault::new(FaultKind::BadAligned(why), mask.trailing_zeros() as usize))
}

/// The value of all lanes; traps if they differ.
pub(super) fn uniform<T: PartialEq>(value: impl Fn(usize) -> T, what: &str) -> Result<T, Box<Fault>> {
    let first = value(0);
    match (1..LANES).find(|lane| value(*lane) != first) {
        None => Ok(first),
        Some(lane) => {
            let why = format!("lanes 0 and {lane} give different {what}");
            Err(Fault::new(FaultKind::BadAligned(why), lane))
        }
    }
}

pub(super) fn shape(o: &Operands<'_>) -> Result<MatrixShape, Missing> {
    o.ask(Slot::Shape, |word| MatrixShape::from_word(word).is_some(), |mods| mods.shape())
}

pub(super) fn layout(o: &Operands<'_>, slot: Slot) -> Result<Layout, Missing> {
    o.look(|s, _| s == slot);
    o.mods().layout(slot).ok_or(Missing)
}
