//! Versions of blocks as data of the IR: how a copy of a block accesses memory in which other lanes are
//! active than the block's own masks say.
//!
//! The pass in [`opt::version_unmasked`](crate::opt::version_unmasked) fills in the versions for all lanes,
//! and [`opt::version_prefix`](crate::opt::version_prefix) those for the leading lanes. Code generation emits
//! such versions before the block itself, and decides nothing about their accesses.
//!
//! # Shape
//! Lines behind the operations of a block, as comments. For a version for all lanes: the mask that has all
//! lanes there, the accesses with their plans, and the bounds checks of the version. For versions for the
//! leading lanes: the mask, the comparison that makes it, and for each version its lanes and the accesses
//! with their plans.
//! ```text
//! ; version for all lanes of v12: 1.0 as affine: vector x4; read affine v10 0 to 4 align 4 of 1.0
//! ; versions for the leading lanes of v12, unsigned v9 < v2
//! ;   part of 1 chunk: 1.0 as affine: masked x1
//! ;   2 chunks: 1.0 as affine: vector x2
//! ```
//!
//! Invariant: nothing here depends on a value of LLVM.

use super::access::Plan;
use super::checks::BlockChecks;
use super::leading_lanes::LeadingLanes;
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

/// The versions of a masked block for its leading lanes.
#[derive(Clone, Debug)]
pub(crate) struct LeadingVersions {
    /// The mask of the block.
    pub(crate) mask: Value,
    /// The mask of all other lanes, if one is computed.
    pub(crate) rest: Option<Value>,
    /// Which lanes the mask has.
    pub(crate) lanes: Rc<LeadingLanes>,
    /// The versions, in the order in which they are tested for.
    pub(crate) versions: Vec<LeadingVersion>,
}

/// A version of a block for its leading lanes.
#[derive(Clone, Debug)]
pub(crate) struct LeadingVersion {
    /// The number of leading chunks that have active lanes.
    pub(crate) chunks: u32,
    /// Whether all lanes of these chunks are active.
    pub(crate) exact: bool,
    /// Its accesses.
    pub(crate) version: Rc<Version>,
}

impl Version {
    /// The accesses of the text form.
    fn accesses(&self, block: &Block) -> String {
        let plan = |op: &super::Op| {
            let OpKind::Inst(site) = op.kind else { return None };
            let plan = self.accesses.get(&site)?;
            Some(format!("{}.{} as {plan}", site.block, site.index))
        };
        block.ops.iter().filter_map(plan).collect::<Vec<_>>().join(", ")
    }
}

impl LeadingVersions {
    /// The lines of the text form.
    pub(crate) fn lines(&self, block: &Block) -> Vec<String> {
        let head = format!("; versions for the leading lanes of v{}, {}", self.mask.0, self.lanes);
        let line = |LeadingVersion { chunks, exact, version }: &LeadingVersion| {
            let part = if *exact { "" } else { "part of " };
            let plural = if *chunks == 1 { "" } else { "s" };
            format!(";   {part}{chunks} chunk{plural}: {}", version.accesses(block)).trim_end().to_owned()
        };
        std::iter::once(head).chain(self.versions.iter().map(line)).collect()
    }
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
        let checks = version.checks.as_ref().map_or_else(String::new, |checks| checks.text(block));
        let behind = if checks.is_empty() { "" } else { "; " };
        format!("; version for all lanes of v{}: {}{behind}{checks}", mask.0, version.accesses(block))
    }
}
