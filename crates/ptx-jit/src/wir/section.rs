//! Sections as data of the IR: straight-line code of a block, and whether it is emitted chunk by chunk.
//!
//! The pass in [`opt::chunk_loops`](crate::opt::chunk_loops) finds them. Code generation emits a chunk loop
//! where its section begins, and decides nothing.
//!
//! # Shape
//! One line behind the operations of a block, as a comment, for each chunk loop: the first and the last
//! instruction, the number of instructions in the section, of those that are executed for all chunks at once,
//! the operations on scalars that are executed before the loop, and what another order saves.
//! ```text
//! ; chunk loop 1.3 to 1.90: 80 instructions, once 1.4 1.7
//! ; chunk loop 1.3 to 1.90: 80 instructions, 8 for all chunks, result by result: 64 moves, not 200
//! ```
//!
//! Invariant: sections of a block are disjoint and in order. Nothing here depends on a value of LLVM.

use super::{Block, Op, OpKind, Value};
use std::borrow::Cow;

/// Consecutive operations of a block.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// The index of the first operation.
    pub(crate) start: usize,
    /// The index of the operation behind the last.
    pub(crate) end: usize,
    /// Operations that are uniform across chunks, which are executed before a chunk loop.
    pub(crate) shared: Vec<usize>,
    /// Operations on vectors that are the same for each chunk, which are executed once, before a chunk loop.
    pub(crate) same: Vec<usize>,
    /// Operations that each chunk executes, in the order in which it does.
    pub(crate) own: Vec<usize>,
    /// The values that the operations of chunks read from outside.
    pub(crate) ins: Vec<Value>,
    /// The values that they define for readers outside.
    pub(crate) outs: Vec<Value>,
    /// The number of instructions on vectors.
    pub(crate) count: usize,
    pub(crate) form: SectionForm,
    /// The vectors that an iteration would move between registers and memory in program order, and those that
    /// it moves, if its operations are in another order
    /// ([`opt::order_sections`](crate::opt::order_sections)).
    pub(crate) ordered: Option<[usize; 2]>,
}

/// How a section is emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionForm {
    /// As a chunk loop.
    ChunkLoop,
    /// For all chunks at once: so many values would go through memory.
    ThroughMemory(usize),
    /// For all chunks at once, since that takes no more registers than there are, or one chunk has too little
    /// to do at once.
    InRegisters,
    /// For all chunks at once, since it is short.
    Short,
}

impl Section {
    /// Whether it is emitted as a chunk loop.
    pub(crate) fn is_chunk_loop(&self) -> bool {
        self.form == SectionForm::ChunkLoop
    }

    /// The remark about the section, if a chunk loop was considered.
    pub(crate) fn remark(&self) -> Option<(bool, Cow<'static, str>)> {
        let count = self.count;
        let same = match self.same.len() {
            0 => String::new(),
            same => format!("; {same} do the same for each chunk, and are executed once"),
        };
        match self.form {
            SectionForm::ChunkLoop => {
                Some((true, format!("{count} operations, chunk by chunk{same}").into()))
            }
            SectionForm::ThroughMemory(values) => {
                Some((false, format!("{values} values of {count} operations would go through memory").into()))
            }
            SectionForm::InRegisters => {
                Some((false, "all chunks fit into registers, or one has too little to do at once".into()))
            }
            SectionForm::Short => None,
        }
    }

    /// The line of the text form, if it is a chunk loop.
    pub(crate) fn text(&self, block: &Block) -> Option<String> {
        let (first, last) = (self.own.iter().min()?, self.own.iter().max()?);
        let is_inst = |at: &&usize| matches!(block.ops[**at].kind, OpKind::Inst(_));
        let shared: Vec<String> = self.shared.iter().filter(is_inst).map(|at| block.place(*at)).collect();
        let once = if shared.is_empty() { String::new() } else { format!(", once {}", shared.join(" ")) };
        let count = self.count;
        let same = match self.same.len() {
            0 => String::new(),
            same => format!(", {same} for all chunks"),
        };
        let ordered = match self.ordered {
            Some([now, then]) => format!(", result by result: {then} moves, not {now}"),
            None => String::new(),
        };
        let line = format!(
            "; chunk loop {} to {}: {count} instructions{same}{once}{ordered}",
            block.place(*first),
            block.place(*last)
        );
        self.is_chunk_loop().then_some(line)
    }
}

impl Op {
    /// The instructions of a chain, or the operation itself.
    pub(crate) fn single_ops(&self) -> &[Op] {
        match &self.kind {
            OpKind::Chain(chain) => &chain.ops,
            _ => std::slice::from_ref(self),
        }
    }
}
