//! Emits the versions of a block for its leading lanes. Which blocks have such versions, and how they access
//! memory, was decided by [`opt::version_prefix`](crate::opt::version_prefix).
//!
//! Scalar comparisons of the limit with the constants of lanes select the version.
//!
//! Invariant: each version executes exactly the lanes of the mask. A version that cannot execute the block
//! passes control to the general version before anything has an effect.

use super::Codegen;
use super::load_store::Addresses;
use super::mask::LaneBits;
use crate::llvm::{Block, IntPred, Likely, Value};
use crate::wir;
use crate::wir::BlockId;
use crate::wir::checks::Reach;
use crate::wir::decision::Decision;
use crate::wir::leading_lanes::{LeadingLanes, Limit};
use crate::wir::version::{LeadingVersion, LeadingVersions};
use ptx::isa::Space;

/// The lanes that a version is for.
#[derive(Clone, Copy)]
pub(super) struct Prefix {
    /// The number of leading chunks that have active lanes.
    pub(super) chunks: u32,
    /// The LLVM block to continue at if the version does not apply.
    pub(super) other: Block,
    /// The mask of an unmasked version ([`speculate_unmasked`](super::speculate_unmasked)).
    pub(super) unmasked: Option<wir::Value>,
}

/// The comparison of a lane's constant with the limit that holds if the lane is active.
pub(super) fn is_below(lanes: &LeadingLanes) -> IntPred {
    match (lanes.closed, lanes.signed) {
        (false, true) => IntPred::Slt,
        (false, false) => IntPred::Ult,
        (true, true) => IntPred::Sle,
        (true, false) => IntPred::Ule,
    }
}

/// The comparison of the limit with a lane's constant that holds if the lane is inactive.
fn is_behind(lanes: &LeadingLanes) -> IntPred {
    match (lanes.closed, lanes.signed) {
        (false, true) => IntPred::Sle,
        (false, false) => IntPred::Ule,
        (true, true) => IntPred::Slt,
        (true, false) => IntPred::Ult,
    }
}

impl Codegen<'_> {
    /// Emits versions of a block for its leading lanes, if it has any. The code that follows is for all other
    /// cases.
    pub(super) fn prefixes(&mut self, id: BlockId) {
        let func = self.job.func;
        let node = &func.blocks[id.0 as usize];
        let Some(decision) = node.leading.as_ref() else { return };
        self.remark_block(id, false);
        self.remark("version-prefix", decision.remark());
        let Decision::Applied(LeadingVersions { mask, rest, lanes, versions }) = decision else { return };
        self.position.versioned_block = Some(id);
        let limit = self.limit(lanes);
        for LeadingVersion { chunks, exact, version } in versions {
            let (chunks, exact) = (*chunks, *exact);
            let (last, first) = ((chunks * self.width) as usize - 1, (chunks * self.width) as usize);
            let lane = |at: usize| self.b.const_int(limit.ty(), lanes.constants[at]);
            // The lane after the last chunk is inactive; in an exact version the last lane of the last chunk
            // is active.
            let ends = self.b.icmp(is_behind(lanes), limit, lane(first));
            let fits = match exact {
                true => self.b.and(ends, self.b.icmp(is_below(lanes), lane(last), limit)),
                false => ends,
            };
            let (here, other) =
                (self.b.append_block(self.function, "first"), self.b.append_block(self.function, "more"));
            self.b.cond_br(fits, here, other, Likely::Unknown);
            self.b.position_at_end(here);
            let part = |emit: &Self, c: u32| {
                let constants = &lanes.constants[(c * emit.width) as usize..][..emit.width as usize];
                let constants = emit.b.const_ints(limit.ty(), constants);
                let limit = emit.b.splat(limit, emit.width);
                emit.computed_bits(emit.b.icmp(is_below(lanes), constants, limit))
            };
            let own: Vec<LaneBits> = (0..self.chunks())
                .map(|c| match (c < chunks, exact) {
                    (true, true) => LaneBits::Known(self.all_bits()),
                    (true, false) => part(self, c),
                    (false, _) => LaneBits::Known(0),
                })
                .collect();
            let own = self.mask_of(&own);
            self.position.version = Some(version.clone());
            let before = self.stand_in(*mask, *rest, own);
            self.position.prefix = Some(Prefix { chunks, other, unmasked: None });
            self.content(id);
            (self.position.prefix, self.position.version) = (None, None);
            for (name, rep) in before {
                self.values.restore(name, rep);
            }
            self.b.position_at_end(other);
        }
    }

    /// The limit of leading lanes.
    pub(super) fn limit(&mut self, lanes: &LeadingLanes) -> Value {
        match lanes.limit {
            Limit::Value(name) => self.scalar(name),
            Limit::Constant(bits) => self.c32(bits),
        }
    }

    /// Whether the version that is emitted leaves a chunk out.
    pub(super) fn is_beyond(&self, chunk: u32) -> bool {
        self.position.prefix.is_some_and(|prefix| chunk >= prefix.chunks)
    }

    /// The condition that the shared-memory accesses of all lanes of a version are in bounds, active or not;
    /// `None`: each access must be tested.
    pub(super) fn first_fit(&mut self, reach: Reach, addresses: &Addresses) -> Option<Value> {
        let (prefix, Addresses::Affine(bases, pattern)) = (self.position.prefix?, addresses) else {
            return None;
        };
        if reach.space != Space::Shared
            || pattern.by_chunk
            || !self.vectors().is_together(reach.space, reach.align, pattern)
        {
            return None;
        }
        let lanes = &pattern.lanes[..(prefix.chunks * self.width) as usize];
        let (low, high) = (i64::from(*lanes.iter().min()?), i64::from(*lanes.iter().max()?));
        let (bias, limit) = self.bounds(reach, (high - low + reach.hi - reach.lo) as u32)?;
        let first = self.b.add(self.b.add(bases[0], self.c64((low + reach.lo) as u64)), bias);
        let fits = self.b.icmp(IntPred::Ult, first, limit);
        let odd = self.b.and(bases[0], self.c64(u64::from(reach.align) - 1));
        let even = self.b.icmp(IntPred::Eq, odd, self.c64(0));
        Some(self.b.and(fits, even))
    }
}
