//! What is known of a function before code is generated, and look-ups of it.
//!
//! Invariant: nothing here depends on emitted code.

use super::Input;
use crate::analysis::any_nan::Lowerings;
use crate::analysis::loop_kind::{LoopKind, loop_kinds};
use crate::analysis::symbolic_stride::Stride;
use crate::analysis::{Analyses, any_nan, is_large, symbolic_stride};
use crate::isel::Env;
use crate::wir;
use crate::wir::{Func, Op, OpKind};
use ptx::ir::Reg;
use std::collections::{HashMap, HashSet};

/// Facts about a function.
pub(super) struct Facts {
    /// What is known of values.
    pub(super) analyses: Analyses,
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
        let mut lowerings = Lowerings::default();
        Self {
            strides: symbolic_stride::find(func, function, analyses.constants.roots(), &analyses.def_use),
            loops: loop_kinds(function),
            waits: crate::effects::waiting_blocks(function),
            updates: crate::effects::has_atomics(function),
            any_nan: any_nan::find(func, function, env, &mut lowerings),
            large: is_large(func),
            spilled: spilled(func),
            lowerings,
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
