//! The LLVM blocks of a function and the edges between them, while they are emitted.

use super::Repr;
use super::exit_saves::ExitSaves;
use super::state_map::Known;
use crate::llvm::Block;
use crate::wir::{BlockId, Func};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// The LLVM blocks, and the edges between them.
pub(super) struct ControlFlow {
    /// The block that the function begins with.
    pub(super) head: Block,
    /// For each WIR block, the LLVM block that it begins with.
    pub(super) starts: Vec<Option<Block>>,
    /// LLVM phis that still need operands, by WIR block and index of the phi.
    pub(super) phis: HashMap<(u32, usize), Repr>,
    /// Operands for phis of WIR blocks that are not emitted yet, with the LLVM block that they come from.
    pub(super) pending: HashMap<u32, Vec<(Block, Vec<Repr>)>>,
    /// WIR blocks that an emitted branch leads to.
    pub(super) reached: RefCell<HashSet<BlockId>>,
    /// The LLVM block of an entry that does not exist.
    pub(super) unreachable_block: Option<Block>,
    /// The forms in which side exits save registers.
    pub(super) saved_forms: Known,
    /// The blocks that side exits share.
    pub(super) exit_saves: ExitSaves,
}

impl ControlFlow {
    /// Of a function that begins with this LLVM block.
    pub(super) fn new(head: Block, func: &Func) -> Self {
        Self {
            head,
            starts: vec![None; func.blocks.len()],
            phis: HashMap::new(),
            pending: HashMap::new(),
            reached: RefCell::default(),
            unreachable_block: None,
            saved_forms: Known::default(),
            exit_saves: ExitSaves::of(func),
        }
    }
}
