//! Which operations of a block are executed warp by warp, as data of the block.
//!
//! The pass in [`opt::warp_strips`](crate::opt::warp_strips) decides it. Code generation opens a section of
//! strips where a block begins one. The section continues in later blocks until an operation ends it.
//!
//! The line of the text form names the first access whose memory strips keep in registers:
//!
//! ```text
//! ; warp by warp, with shared memory in registers: 0.5
//! ```

use super::Block;
use super::decision::Decision;

/// What warp strips do with a block.
#[derive(Clone, Debug)]
pub(crate) struct Strips {
    /// The index of the first access of shared memory that strips can keep in registers, and whether the
    /// block begins a section for it. `None`: it has no such access.
    pub(crate) begin: Option<(usize, Decision<()>)>,
    /// The indices of the operations before which a section ends, because they are not done warp by warp, in
    /// ascending order.
    pub(crate) ends: Vec<usize>,
}

impl Strips {
    /// Whether a section ends before the operation with that index.
    pub(crate) fn ends_before(&self, at: usize) -> bool {
        self.ends.binary_search(&at).is_ok()
    }

    /// The line of the text form, if the block begins a section.
    pub(crate) fn text(&self, block: &Block) -> Option<String> {
        match self.begin {
            Some((at, Decision::Applied(()))) => {
                Some(format!("; warp by warp, with shared memory in registers: {}", block.place(at)))
            }
            Some((_, Decision::Missed(_))) | None => None,
        }
    }
}
