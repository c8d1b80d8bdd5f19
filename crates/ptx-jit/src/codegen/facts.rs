//! What is known of a function before code is generated, and look-ups of it.
//!
//! Invariant: nothing here depends on emitted code.

use super::{Input, endpoint_test};
use crate::analysis::any_nan::Lowerings;
use crate::analysis::loop_kind::{LoopKind, loop_kinds};
use crate::analysis::symbolic_stride::Stride;
use crate::analysis::{Analyses, any_nan, is_large, rare_mask, symbolic_stride};
use crate::isel::Env;
use crate::wir;
use crate::wir::dom::Dominators;
use crate::wir::uses::{DefUse, Readers};
use crate::wir::{Func, Op, OpKind};
use ptx::ir::Reg;
use std::collections::{HashMap, HashSet};

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
    /// The symbolic strides that are a kernel parameter times a constant.
    pub(super) strides: HashMap<wir::Value, Stride>,
    /// For each PTX block, the kind of loop that it belongs to.
    pub(super) loops: Vec<LoopKind>,
    /// For each PTX block, whether it belongs to a loop that may only be waiting.
    pub(super) waits: Vec<bool>,
    /// Whether it has atomic operations.
    pub(super) updates: bool,
    /// For each value, whether it may hold a NaN that is not canonical.
    pub(super) any_nan: Vec<bool>,
    /// For each value, whether it is a mask that at most side exits read.
    pub(super) rare: Vec<bool>,
    /// Whether it has so many instructions that it has masked copies alone.
    pub(super) large: bool,
    /// The registers that are in the warp frame.
    pub(super) spilled: HashSet<Reg>,
    /// How instructions are lowered, as far as that was asked.
    pub(super) lowerings: Lowerings,
}

impl Facts {
    pub(super) fn new(job: Input<'_>, analyses: Analyses, env: &Env) -> Self {
        let Input { func, function, .. } = job;
        let def_use = DefUse::new(func);
        let mut lowerings = Lowerings::default();
        Self {
            readers: endpoint_test::readers(func),
            dominators: Dominators::new(func),
            strides: symbolic_stride::find(func, function, analyses.constants.roots(), &def_use),
            loops: loop_kinds(function),
            waits: crate::effects::waiting_blocks(function),
            updates: crate::effects::has_atomics(function),
            any_nan: any_nan::find(func, function, env, &mut lowerings),
            rare: rare_mask::find(func, &def_use),
            large: is_large(func),
            spilled: spilled(func),
            lowerings,
            def_use,
            analyses,
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
