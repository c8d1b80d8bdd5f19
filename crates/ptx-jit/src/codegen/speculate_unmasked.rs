//! Emits speculative unmasked versions: a masked block that loads for all lanes, where the inactive lanes'
//! addresses are in bounds too. Which blocks have such a version, and how it accesses memory, was decided by
//! [`opt::version_unmasked`](crate::opt::version_unmasked).
//!
//! The version has no masks up to its selects. A comparison of all lanes' addresses with the bounds selects
//! it.
//!
//! Invariant: the version has no effect before all of its loads are known to be in bounds; until then control
//! goes to the masked version.

use super::version_prefix::Prefix;
use super::{Codegen, Repr};
use crate::llvm::{Likely, Value};
use crate::wir::BlockId;
use crate::wir::decision::Decision;
use crate::wir::version::Unmasked;

impl Codegen<'_> {
    /// Emits the unmasked version of a block, if it has one. The code that follows is for the case that a
    /// load is out of bounds. A block that continues a warp strip has no version.
    pub(super) fn unmasked(&mut self, id: BlockId) {
        let func = self.job.func;
        let node = &func.blocks[id.0 as usize];
        let Some(decision) = node.unmasked.as_ref().filter(|_| !self.in_section()) else { return };
        self.remark_block(id, false);
        self.remark("version-unmasked", decision.remark());
        let Decision::Applied(Unmasked { mask, version }) = decision else { return };
        self.position.versioned_block = Some(id);
        let other = self.b.append_block(self.function, "masked");
        self.position.prefix = Some(Prefix { chunks: self.chunks(), other, unmasked: Some(*mask) });
        self.position.version = Some(version.clone());
        self.content(id);
        (self.position.prefix, self.position.version) = (None, None);
        self.b.position_at_end(other);
    }

    /// Whether the version that is emitted loads for all lanes.
    pub(super) fn is_unmasked(&self) -> bool {
        self.position.prefix.is_some_and(|prefix| prefix.unmasked.is_some())
    }

    /// Emits part of the unmasked version as if all lanes were active.
    pub(super) fn as_all<R>(&mut self, what: impl FnOnce(&mut Self) -> R) -> R {
        let Some(mask) = self.position.prefix.and_then(|prefix| prefix.unmasked) else { return what(self) };
        let all = Repr::Mask(self.all_lanes());
        let before = self.values.replace(mask, all);
        let full = std::mem::replace(&mut self.position.full, true);
        let done = what(self);
        self.position.full = full;
        self.values.restore(mask, before);
        done
    }

    /// Continues in the version that is emitted if a load is in bounds, and in the masked version otherwise.
    pub(super) fn or_masked(&mut self, fits: Value) {
        let Some(prefix) = self.position.prefix else { return };
        let on = self.b.append_block(self.function, "fits");
        self.b.cond_br(fits, on, prefix.other, Likely::Yes);
        self.b.position_at_end(on);
    }
}
