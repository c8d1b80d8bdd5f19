//! The forms in which registers are saved at barriers, entries and side exits, as the shapes of their values
//! say.
//!
//! Invariant: the form depends on the shape, the class of the register and the lanes of a warp alone.

use super::Shape;
use ptx::ir::{Reg, RegClass};
use ptx_exec::lanes::LANES;
use ptx_exec::native::{Held, SavedReg, bytes_of};
use std::collections::HashMap;
use std::sync::Arc;

/// Tables of constants of lanes, so that equal ones are created once.
#[derive(Debug, Default)]
pub(crate) struct Patterns(HashMap<Box<[i32]>, Arc<[i32]>>);

impl Patterns {
    fn once(&mut self, lanes: &[i32]) -> Arc<[i32]> {
        if let Some(known) = self.0.get(lanes) {
            return known.clone();
        }
        let new: Arc<[i32]> = lanes.into();
        self.0.insert(lanes.into(), new.clone());
        new
    }
}

/// The form in which a register with a value of this shape is saved by a warp or coarse warp of so many
/// lanes, in chunks of so many.
pub(crate) fn held(shape: &Shape, reg: Reg, (lanes, chunk): (u32, u32), patterns: &mut Patterns) -> Held {
    match shape {
        Shape::Bottom => Held::Constant(0),
        Shape::Uniform(Some(value)) => Held::Constant(*value),
        Shape::Uniform(None) => Held::Same,
        Shape::Affine(pattern) if pattern.rows.is_empty() => {
            let each = if pattern.by_chunk { chunk } else { lanes };
            Held::Pattern { each, lanes: patterns.once(&pattern.lanes) }
        }
        Shape::Affine(pattern) => {
            Held::Rows { lanes: patterns.once(&pattern.lanes), rows: patterns.once(&pattern.rows) }
        }
        Shape::Varying if reg.class == RegClass::Pred => Held::Mask,
        Shape::Varying => Held::Each,
    }
}

/// The number of words in a register's saved form for so many warps.
pub(crate) fn words(held: &Held, warps: u32) -> u32 {
    match held {
        Held::Constant(_) => 0,
        Held::Same => 1,
        Held::Rows { .. } => 2,
        Held::Mask => warps,
        Held::Pattern { each, .. } => LANES as u32 * warps / each,
        Held::Each => LANES as u32 * warps,
    }
}

/// The size of a register's saved form for so many warps.
pub(crate) fn bytes(kept: &SavedReg, warps: u32) -> u32 {
    bytes_of(kept.reg.class) * words(&kept.held, warps)
}
