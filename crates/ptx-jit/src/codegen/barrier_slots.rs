//! Emits barrier slots: stores and loads of the memory in which barriers save registers. Where the slots lie,
//! and which stores are left out, was decided by [`opt::barrier_slots`](crate::opt::barrier_slots).
//!
//! Invariant: a store is left out only where the slot holds that very value, or where a chunk loop of the
//! block has stored it.

use super::{Codegen, Repr};
use crate::llvm::Value;
use crate::wir;
use crate::wir::BlockId;
use crate::wir::slot_memory::SlotMemory;
use std::collections::HashMap;

/// Slots that already hold, within the block that is emitted, the value that has to be in them at its end.
#[derive(Default)]
pub(super) struct WrittenSlots(HashMap<usize, wir::Value>);

impl WrittenSlots {
    /// Forgets the slots that the previous block wrote.
    pub(super) fn begin(&mut self) {
        self.0.clear();
    }

    /// Notes that a slot holds the value now.
    pub(super) fn write(&mut self, place: usize, name: wir::Value) {
        self.0.insert(place, name);
    }
}

impl<'a> Codegen<'a> {
    /// The slots of all barriers.
    pub(super) fn slots(&self) -> &'a SlotMemory {
        self.job.func.slot_memory.as_deref().expect("the pass of barrier slots has run")
    }

    /// Whether the store of a barrier's register can be left out at the end of the block that is emitted,
    /// because the slot holds the value.
    pub(super) fn is_in_slot(&self, resume: u32, at: usize, name: wir::Value) -> bool {
        let place = self.slots().at[resume as usize][at];
        match self.passes.written_slots.0.get(&place) {
            Some(written) => *written == name,
            None => self.position.node.is_some_and(|node| self.slots().holds(node, place, name)),
        }
    }

    /// A vector of a value that is read from its slot.
    pub(super) fn load_from_slot(&self, name: wir::Value, offset: u32, chunk: Value) -> Value {
        let ty = self.b.vec(self.scalar_type(self.kind(name)), self.width);
        let bytes = self.width * ty.element_bits() / 8;
        let place = self.b.offset(self.barrier_slot_memory(), offset.into());
        self.b.load(ty, self.b.gep(place, self.b.mul(chunk, self.c64(bytes.into()))), bytes.min(64))
    }

    /// Loads values that are read from their slots, before the slots are overwritten.
    pub(super) fn read_slot(&mut self, names: impl Iterator<Item = wir::Value>) {
        for name in names {
            if matches!(self.values.get(name), Some(Repr::Kept(_))) {
                (0..self.chunks()).for_each(|c| {
                    self.chunk(name, c);
                });
            }
        }
    }

    /// On the edge into a loop, stores the values that have a slot in the loop.
    pub(super) fn enter_barrier_slots(&mut self, from: BlockId, to: BlockId) {
        let stored = self.slots().stored_on(from, to);
        // A warp that runs without its CTA does not wait in native code, but reads values from slots alone.
        let on = if self.slots().room() == 0 {
            let Some(on) = self.if_whole() else { return };
            Some(on)
        } else {
            None
        };
        self.read_slot(stored.iter().map(|(_, name)| *name));
        let place = self.barrier_slot_memory();
        for (kept, name) in stored {
            self.pack(&kept, name, self.b.offset(place, u64::from(kept.offset)));
        }
        if let Some(on) = on {
            self.b.br(on);
            self.b.position_at_end(on);
        }
    }
}
