//! Which operations of a block are executed warp by warp, as data of the block.
//!
//! The pass in [`opt::warp_strips`](crate::opt::warp_strips) decides it. Code generation opens a section of
//! strips where a block begins one. The section continues in later blocks until an operation ends it.
//!
//! The lines of the text form name the first access whose memory strips keep in registers, and the block in
//! which the section continues:
//!
//! ```text
//! ; warp by warp, with shared memory in registers: 0.5
//! ; warp by warp in b4, too
//! ```

use super::decision::Decision;
use super::{Block, BlockId};

/// What warp strips do with a block.
#[derive(Clone, Debug)]
pub(crate) struct Strips {
    /// The index of the first access of shared memory that strips can keep in registers, and whether the
    /// block begins a section for it. `None`: it has no such access.
    pub(crate) begin: Option<(usize, Decision<()>)>,
    /// The indices of the operations before which a section ends, because they are not done warp by warp, in
    /// ascending order.
    pub(crate) ends: Vec<usize>,
    /// Whether the section of its predecessor continues in it.
    pub(crate) continued: bool,
    /// The successor in which its section continues, without a branch between the two.
    pub(crate) continues: Option<BlockId>,
}

impl Strips {
    /// Whether a section ends before the operation with that index.
    pub(crate) fn ends_before(&self, at: usize) -> bool {
        self.ends.binary_search(&at).is_ok()
    }

    /// Whether the block begins a section.
    pub(crate) fn begins(&self) -> bool {
        matches!(self.begin, Some((_, Decision::Applied(()))))
    }

    /// Whether a section is open where an operation stands.
    pub(crate) fn is_open_at(&self, at: usize) -> bool {
        (self.begins() || self.continued) && self.ends.first().is_none_or(|end| *end > at)
    }

    /// The lines of the text form.
    pub(crate) fn lines(&self, block: &Block) -> Vec<String> {
        let begin = self.begin.filter(|_| self.begins());
        let begin = begin
            .map(|(at, _)| format!("; warp by warp, with shared memory in registers: {}", block.place(at)));
        let continues = self.continues.map(|to| format!("; warp by warp in b{}, too", to.0));
        begin.into_iter().chain(continues).collect()
    }
}
