//! Where a function with spilled registers loads and stores them, and which registers its entries, exits and
//! pending lanes have nevertheless.
//!
//! What it does not do: [`spill`] chooses the registers, from the function without spilled registers.

use super::{Builder, Var};
use crate::build::spill;
use crate::wir::{Effects, Value};
use ptx::analysis::bits::BitSet;

impl<M: Effects> Builder<'_, M> {
    /// Inserts the loads and stores of spilled registers.
    pub(super) fn insert_spills(&mut self) {
        if self.spilled.count() == 0 {
            return;
        }
        let (registers, mask) = (self.live.registers, self.var(Var::Mask));
        let spilled = &self.spilled;
        let reg_of = |name: Value| {
            let number = name.0 as usize;
            (number < registers.len() && spilled.contains(number)).then(|| registers.reg(number))
        };
        self.blocks.iter_mut().for_each(|block| spill::insert(block, reg_of, mask));
    }

    /// The registers of a set that are not in the warp frame.
    pub(super) fn not_spilled(&self, registers: &BitSet) -> Vec<usize> {
        registers.iter().filter(|number| !self.spilled.contains(*number)).collect()
    }
}
