//! Slot memory as data of the IR: where the registers that live across barriers are saved, and which stores
//! are left out.
//!
//! The pass in [`opt::barrier_slots`](crate::opt::barrier_slots) assigns the slots, which
//! [`slots`](super::slots) describes. Code generation stores and loads them, and decides only which stores a
//! chunk loop makes instead of a barrier.
//!
//! # Shape
//! Comments: behind the resume points, the slots of each of them, and the values that are read from slots
//! alone; behind the operations of a block, the registers whose slots hold their values where the block
//! stops, and the values that are stored on an edge from the block.
//! ```text
//! ; slots of resume 0: r32.1 at 64, r64.0 at 192
//! ; read from slots alone: v12 at 64
//! ; in their slots: r32.1
//! ; on the edge to b5 stores v12 at 64
//! ```
//!
//! Invariant: registers that are saved at one barrier have slots that do not overlap.

use super::{Block, BlockId, Func, Term, Value, saved_form};
use ptx_exec::native::{Held, SavedReg};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

/// For each slot, the values that are in it.
pub(crate) type Contents = HashMap<usize, HashSet<Value>>;
/// For each edge between blocks, the slots that are stored on it, with the values.
pub(crate) type EdgeStores = BTreeMap<(BlockId, BlockId), Vec<(usize, Value)>>;

/// The slots of all barriers, and which stores and loads can be left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotMemory {
    pub(crate) places: Vec<SavedReg>,
    /// For each slot, the offset of its end.
    ends: Vec<u32>,
    /// For each barrier, the slot of each register.
    pub(crate) at: Vec<Vec<usize>>,
    /// For each WIR block, the contents of the slots at its end.
    pub(crate) contents: Vec<Option<Contents>>,
    pub(crate) stores: EdgeStores,
    /// Values that are never carried in registers: every reader loads them from this slot.
    pub(crate) in_slot: BTreeMap<Value, usize>,
}

impl Func {
    /// Whether values are stored in barrier slots on the edge between two blocks, as far as that has been
    /// decided.
    pub(crate) fn stores_on(&self, from: BlockId, to: BlockId) -> bool {
        self.slot_memory.as_ref().is_some_and(|slots| slots.stores_on(from, to))
    }
}

impl SlotMemory {
    /// The slots of the registers of a barrier.
    pub(crate) fn of(&self, resume: usize) -> Vec<SavedReg> {
        self.at[resume].iter().map(|place| self.places[*place].clone()).collect()
    }

    /// The size of all slots.
    pub(crate) fn bytes(&self) -> u32 {
        self.ends.iter().copied().max().unwrap_or(0)
    }

    /// Whether a slot holds a value at the end of a block.
    pub(crate) fn holds(&self, block: BlockId, place: usize, name: Value) -> bool {
        let contents = self.contents.get(block.0 as usize).and_then(Option::as_ref);
        contents.and_then(|contents| contents.get(&place)).is_some_and(|names| names.contains(&name))
    }

    /// Whether anything is stored on the edge between two blocks.
    pub(crate) fn stores_on(&self, from: BlockId, to: BlockId) -> bool {
        self.stores.contains_key(&(from, to))
    }

    /// The values that are stored on the edge between two blocks.
    pub(crate) fn stored_on(&self, from: BlockId, to: BlockId) -> Vec<(SavedReg, Value)> {
        let stored = self.stores.get(&(from, to)).into_iter().flatten();
        stored.map(|(place, name)| (self.places[*place].clone(), *name)).collect()
    }

    /// The size of the slots that values are read from only.
    pub(crate) fn room(&self) -> u32 {
        if self.in_slot.is_empty() { 0 } else { self.bytes() }
    }

    /// The offset of the slot of a value that is read from its slot only.
    pub(crate) fn offset_of(&self, name: Value) -> Option<u32> {
        self.in_slot.get(&name).map(|place| self.places[*place].offset)
    }

    /// The slot that a register has at a barrier, if the slot has room for one vector for each chunk.
    pub(crate) fn wanted(&self, resume: u32, at: usize) -> Option<usize> {
        let place = self.at[resume as usize][at];
        matches!(self.places[place].held, Held::Each).then_some(place)
    }

    /// The values that are read from this slot only, or from a slot that overlaps it.
    pub(crate) fn beside(&self, place: usize) -> impl Iterator<Item = Value> {
        let names = self.in_slot.iter().filter(move |(_, other)| self.overlap(place, **other));
        names.map(|(name, _)| *name)
    }

    pub(crate) fn overlap(&self, a: usize, b: usize) -> bool {
        self.places[a].offset < self.ends[b] && self.places[b].offset < self.ends[a]
    }

    /// Gives each register one slot for all barriers at which it is saved in one form.
    pub(crate) fn place_all(&mut self, start: u32, warps: u32) {
        let mut barriers = vec![Vec::new(); self.places.len()];
        for (resume, own) in self.at.iter().enumerate() {
            own.iter().for_each(|place| barriers[*place].push(resume));
        }
        self.ends = vec![0; self.places.len()];
        for (at, own) in barriers.iter().enumerate() {
            let bytes = saved_form::bytes(&self.places[at], warps);
            if bytes == 0 {
                continue;
            }
            let beside = own.iter().flat_map(|resume| &self.at[*resume]);
            let mut taken: Vec<(u32, u32)> =
                beside.map(|other| (self.places[*other].offset, self.ends[*other])).collect();
            taken.sort_unstable();
            let align = bytes.next_power_of_two().min(64);
            let mut offset = start.next_multiple_of(align);
            for (from, to) in taken {
                if from < offset + bytes && offset < to {
                    offset = to.next_multiple_of(align);
                }
            }
            self.places[at].offset = offset;
            self.ends[at] = offset + bytes;
        }
    }

    /// The lines of the text form behind the resume points.
    pub(crate) fn head(&self) -> Vec<String> {
        let list = |all: Vec<String>| all.join(", ");
        let slot = |place: &usize| format!("{} at {}", self.places[*place].reg, self.places[*place].offset);
        let resumes = self.at.iter().enumerate().filter(|(_, own)| !own.is_empty());
        let mut lines: Vec<String> = resumes
            .map(|(at, own)| format!("; slots of resume {at}: {}", list(own.iter().map(slot).collect())))
            .collect();
        if !self.in_slot.is_empty() {
            let value =
                |(name, place): (&Value, &usize)| format!("v{} at {}", name.0, self.places[*place].offset);
            lines
                .push(format!("; read from slots alone: {}", list(self.in_slot.iter().map(value).collect())));
        }
        lines
    }

    /// The lines of the text form behind the operations of a block.
    pub(crate) fn lines(&self, func: &Func, id: BlockId, block: &Block) -> Vec<String> {
        let mut lines = Vec::new();
        if let Term::Exit(exit) = &block.term
            && let Some(resume) = exit.resume
        {
            let mut line = String::new();
            for ((reg, name), place) in
                func.resumes[resume as usize].kept.iter().zip(&self.at[resume as usize])
            {
                if self.holds(id, *place, *name) {
                    _ = write!(line, " {reg}");
                }
            }
            if !line.is_empty() {
                lines.push(format!("; in their slots:{line}"));
            }
        }
        for ((_, to), stored) in self.stores.range((id, BlockId(0))..=(id, BlockId(u32::MAX))) {
            let value =
                |(place, name): &(usize, Value)| format!("v{} at {}", name.0, self.places[*place].offset);
            let stored: Vec<String> = stored.iter().map(value).collect();
            lines.push(format!("; on the edge to b{} stores {}", to.0, stored.join(", ")));
        }
        lines
    }
}
