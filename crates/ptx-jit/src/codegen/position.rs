//! The place that code is generated for now: the WIR block, the version of it, and the access.

use super::version_prefix::Prefix;
use crate::analysis::loop_kind::LoopKind;
use crate::llvm::{Block, Value};
use crate::wir::checks::BlockChecks;
use crate::wir::version::Version;
use crate::wir::{BlockId, Exit, Site};
use std::cell::Cell;
use std::rc::Rc;

/// What is emitted now.
#[derive(Default)]
pub(super) struct Position {
    /// The WIR block.
    pub(super) node: Option<BlockId>,
    /// Whether that block executes all lanes.
    pub(super) full: bool,
    /// The kind of loop that it belongs to.
    pub(super) loop_kind: LoopKind,
    /// The lanes that a version of it is emitted for.
    pub(super) prefix: Option<Prefix>,
    /// The plans of the version of it.
    pub(super) version: Option<Rc<Version>>,
    /// The WIR block that is emitted in several versions.
    pub(super) versioned_block: Option<BlockId>,
    /// The checks that are made where the block begins, if it has any.
    pub(super) checks: Option<Rc<BlockChecks>>,
    /// Whether the access was checked where its block began.
    pub(super) access_checked: bool,
    /// For a load, the result of a coalesced gather: whether it was done, and a vector for each chunk.
    pub(super) gathered: Option<(Value, Vec<Value>)>,
    /// The side exit of the access that follows, if it has one.
    pub(super) pending_exit: Option<(Site, Exit)>,
    /// The cost of accesses that are done lane by lane in the current LLVM block.
    pub(super) scalarized_cost: Cell<u32>,
    /// The slot memory of the running warp, and the LLVM block in which its address was loaded.
    pub(super) slot_memory: Cell<Option<(Block, Value)>>,
}
