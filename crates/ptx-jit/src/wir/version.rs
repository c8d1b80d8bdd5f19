//! Versions of blocks as data of the IR: how a copy of a block accesses memory in which other lanes are
//! active than the block's own masks say.
//!
//! The pass in [`opt::version_unmasked`](crate::opt::version_unmasked) fills in the versions for all lanes.
//! Code generation emits such a version before the block itself, and decides nothing about its accesses.
//!
//! # Shape
//! One line behind the operations of a block, as a comment, for a version for all lanes: the mask that has
//! all lanes there, the accesses with their plans, and the bounds checks of the version.
//! ```text
//! ; version for all lanes of v12: 1.0 as affine: vector x4; read affine v10 0 to 4 align 4 of 1.0
//! ```
//!
//! Invariant: nothing here depends on a value of LLVM.

use super::access::Plan;
use super::checks::BlockChecks;
use super::{Block, OpKind, Site, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// How a version of a block accesses memory.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// The plans of its accesses.
    pub(crate) accesses: HashMap<Site, Rc<Plan>>,
    /// Its bounds checks, if they differ from those of the block.
    pub(crate) checks: Option<Rc<BlockChecks>>,
}

/// A version of a masked block in which all lanes are active until the end of its loads. It is executed where
/// the loads of all lanes are in bounds.
#[derive(Clone, Debug)]
pub(crate) struct Unmasked {
    /// The mask of the block, which has all lanes in the version.
    pub(crate) mask: Value,
    /// Its accesses.
    pub(crate) version: Rc<Version>,
}

impl Unmasked {
    /// The line of the text form.
    pub(crate) fn text(&self, block: &Block) -> String {
        let Self { mask, version } = self;
        let plan = |op: &super::Op| {
            let OpKind::Inst(site) = op.kind else { return None };
            let plan = version.accesses.get(&site)?;
            Some(format!("{}.{} as {plan}", site.block, site.index))
        };
        let plans: Vec<String> = block.ops.iter().filter_map(plan).collect();
        let checks = version.checks.as_ref().map_or_else(String::new, |checks| checks.text(block));
        let behind = if checks.is_empty() { "" } else { "; " };
        format!("; version for all lanes of v{}: {}{behind}{checks}", mask.0, plans.join(", "))
    }
}
