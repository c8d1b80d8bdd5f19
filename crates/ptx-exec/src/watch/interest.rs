//! The instructions, including terminators of blocks, that observers request events of.
//!
//! Most tools need few of them: racecheck needs no arithmetic, and memcheck only computations of addresses.
//! An instruction that no observer requests costs one test of a byte.
//!
//! Invariant: an observer gets every event that it requests. It may also get events that it has not
//! requested.

use ptx::ir::{Function, Inst};

/// What an observer wants of an instruction. Accesses to memory, barriers and calls have events of their own,
/// which are always told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// [`Observer::step`](super::Observer::step)
    pub before: bool,
    /// [`Observer::stepped`](super::Observer::stepped)
    pub after: bool,
}

impl Interest {
    /// Nothing.
    pub const NONE: Self = Self { before: false, after: false };
    /// Both events.
    pub const ALL: Self = Self { before: true, after: true };

    /// By block and instruction of a function, the terminator last, what `wanted` says.
    pub fn of_function(function: &Function, wanted: impl Fn(&Inst) -> Self) -> Vec<Vec<Self>> {
        let blocks = function.blocks.iter();
        blocks
            .map(|block| {
                let last = block.term.inst().map_or(Self::NONE, &wanted);
                block.insts.iter().map(&wanted).chain([last]).collect()
            })
            .collect()
    }
}

/// What all observers want of a function, by block and instruction; behind the instructions stands the
/// terminator.
#[derive(Clone, Debug, Default)]
pub struct Interests {
    /// In the low four bits the observers that want the event before, in the high four those that want the
    /// one after.
    blocks: Vec<Box<[u8]>>,
}

/// Observers that are told apart; more of them are told everything.
const APART: usize = 4;

impl Interests {
    pub(super) fn none(function: &Function) -> Self {
        Self { blocks: function.blocks.iter().map(|block| vec![0; block.insts.len() + 1].into()).collect() }
    }

    /// Adds what one observer wants.
    pub(super) fn add(&mut self, observer: usize, wanted: &[Vec<Interest>]) {
        for (block, wanted) in self.blocks.iter_mut().zip(wanted) {
            for (all, one) in block.iter_mut().zip(wanted) {
                let bit = if observer < APART { 1 << observer } else { 0 };
                *all |= if one.before { bit } else { 0 } | if one.after { bit << APART } else { 0 };
            }
        }
    }

    /// Observers that want the events before and after an instruction.
    #[inline(always)]
    pub(crate) fn of(block: &[u8], index: usize) -> (u8, u8) {
        block.get(index).map_or((u8::MAX, u8::MAX), |wanted| (wanted & 0xf, wanted >> APART))
    }

    /// Those of a block's instructions, for [`Interests::of`].
    #[inline(always)]
    pub(crate) fn block(&self, block: u32) -> &[u8] {
        self.blocks.get(block as usize).map_or(&[], |block| block)
    }
}
