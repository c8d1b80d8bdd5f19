//! What is known of a function before code is generated, and look-ups of it.
//!
//! Invariant: nothing here depends on emitted code.

use super::symbolic_stride::SymbolicStrides;
use super::{Input, endpoint_test};
use crate::analysis::loop_kind::{LoopKind, loop_kinds};
use crate::analysis::{Analyses, is_large};
use crate::isel::Lowering;
use crate::wir::dom::Dominators;
use crate::wir::uses::{DefUse, Readers};
use crate::wir::{Func, Op, OpKind, Site};
use ptx::ir::Reg;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Facts about a function.
pub(super) struct Facts {
    /// What is known of values.
    pub(super) analyses: Analyses,
    /// Where each value is defined, and how often it is read.
    pub(super) def_use: DefUse,
    /// The blocks that read each value; not listed for functions of many blocks.
    pub(super) readers: Readers,
    /// Which blocks are on every path to a block.
    pub(super) dominators: Dominators,
    pub(super) symbolic_strides: SymbolicStrides,
    /// For each PTX block, the kind of loop that it belongs to.
    pub(super) loops: Vec<LoopKind>,
    /// For each PTX block, whether it belongs to a loop that may only be waiting.
    pub(super) waits: Vec<bool>,
    /// Whether it has atomic operations.
    pub(super) updates: bool,
    /// For each value, whether it may hold a NaN that is not canonical.
    pub(super) loose: Vec<bool>,
    /// For each value, whether it is a mask that at most side exits read.
    pub(super) rare: Vec<bool>,
    /// Whether it has so many instructions that it has masked copies alone.
    pub(super) large: bool,
    /// The registers that are in the warp frame.
    pub(super) spilled: HashSet<Reg>,
    /// How instructions are lowered, as far as that was asked.
    pub(super) lowerings: HashMap<Site, Option<Rc<Lowering>>>,
}

impl Facts {
    /// Without the facts that [`find_noncanonical_nans`](super::Codegen::find_noncanonical_nans),
    /// [`find_symbolic_strides`](super::Codegen::find_symbolic_strides) and
    /// [`find_rarely_read_masks`](super::Codegen::find_rarely_read_masks) find.
    pub(super) fn new(job: Input<'_>, analyses: Analyses) -> Self {
        Self {
            analyses,
            def_use: DefUse::new(job.func),
            readers: endpoint_test::readers(job.func),
            dominators: Dominators::new(job.func),
            symbolic_strides: SymbolicStrides::default(),
            loops: loop_kinds(job.function),
            waits: crate::effects::waiting_blocks(job.function),
            updates: crate::effects::has_atomics(job.function),
            loose: Vec::new(),
            rare: Vec::new(),
            large: is_large(job.func),
            spilled: spilled(job.func),
            lowerings: HashMap::new(),
        }
    }
}

fn spilled(func: &Func) -> HashSet<Reg> {
    let spilled = |op: &Op| match op.kind {
        OpKind::Reload(reg) | OpKind::Spill(reg) => Some(reg),
        _ => None,
    };
    func.blocks.iter().flat_map(|block| &block.ops).filter_map(spilled).collect()
}
