//! The WIR values that are emitted: how each is held, and what emission has learned of it.
//!
//! Invariant: LLVM values that were made in one LLVM block are used only where that block dominates.

use super::Repr;
use super::funnel_shift::WordPair;
use super::mask::EmittedMasks;
use super::scaled_index::ScaledIndex;
use crate::llvm::{Block, Value};
use crate::wir;
use crate::wir::Op;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// A representation that a value was given, by its number among those of the function.
///
/// What refers to the LLVM values of a representation compares this number and not these values: LLVM may
/// fold two into one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ReprId(u32);

/// How a value is held.
#[derive(Clone)]
pub(super) struct NumberedRepr {
    id: ReprId,
    repr: Repr,
}

/// The WIR values that are emitted.
pub(super) struct EmittedValues {
    /// For each value, how it is held; `None`: it is not emitted yet.
    held: Vec<Option<NumberedRepr>>,
    /// How many representations have been numbered.
    numbered: u32,
    /// Vectors made of scalars in the current LLVM block, by value and chunk.
    pub(super) vectors: HashMap<(wir::Value, u32), Value>,
    /// Of the vectors in `vectors` that have one scalar in all lanes, the scalar.
    pub(super) splats: HashMap<(wir::Value, u32), Value>,
    /// Canonical bits of values with other NaNs in the current LLVM block, by value and chunk.
    pub(super) exacts: HashMap<(wir::Value, u32), Value>,
    /// The LLVM block that `vectors`, `splats` and `exacts` belong to.
    pub(super) vectors_of: Option<Block>,
    /// What is recorded of masks.
    pub(super) masks: RefCell<EmittedMasks>,
    /// Operations of masks that at most side exits read: they are emitted at the side exits.
    pub(super) later: HashMap<wir::Value, Op>,
    /// Counts that are emitted as constants.
    pub(super) counts: HashMap<wir::Value, u64>,
    /// 64-bit values that are a base plus a scaled index.
    pub(super) scaled_indices: HashMap<wir::Value, ScaledIndex>,
    /// 64-bit values whose words are known.
    pub(super) word_pairs: HashMap<wir::Value, WordPair>,
    /// Values below 32.
    pub(super) small: HashSet<wir::Value>,
}

impl EmittedValues {
    /// None of so many values is emitted.
    pub(super) fn new(count: usize) -> Self {
        Self {
            held: vec![None; count],
            numbered: 0,
            vectors: HashMap::new(),
            splats: HashMap::new(),
            exacts: HashMap::new(),
            vectors_of: None,
            masks: RefCell::default(),
            later: HashMap::new(),
            counts: HashMap::new(),
            scaled_indices: HashMap::new(),
            word_pairs: HashMap::new(),
            small: HashSet::new(),
        }
    }

    /// How a value is held; `None`: it is not emitted yet.
    pub(super) fn get(&self, name: wir::Value) -> Option<&Repr> {
        self.held[name.0 as usize].as_ref().map(|held| &held.repr)
    }

    /// The number of a value's representation.
    pub(super) fn id(&self, name: wir::Value) -> Option<ReprId> {
        self.held[name.0 as usize].as_ref().map(|held| held.id)
    }

    /// Notes how a value is held from here on.
    pub(super) fn define(&mut self, name: wir::Value, repr: Repr) {
        self.replace(name, repr);
    }

    /// As [`EmittedValues::define`]; returns how the value was held before.
    pub(super) fn replace(&mut self, name: wir::Value, repr: Repr) -> Option<NumberedRepr> {
        let id = ReprId(self.numbered);
        self.numbered += 1;
        self.held[name.0 as usize].replace(NumberedRepr { id, repr })
    }

    /// How a value is held, to be changed: it counts as another representation from here on.
    pub(super) fn change(&mut self, name: wir::Value) -> Option<&mut Repr> {
        let held = self.held[name.0 as usize].as_mut()?;
        held.id = ReprId(self.numbered);
        self.numbered += 1;
        Some(&mut held.repr)
    }

    /// Notes that a value is held again as it was before it was replaced.
    pub(super) fn restore(&mut self, name: wir::Value, before: Option<NumberedRepr>) {
        self.held[name.0 as usize] = before;
    }

    /// Notes that a value can no longer be read.
    pub(super) fn forget(&mut self, name: wir::Value) {
        self.held[name.0 as usize] = None;
    }
}
