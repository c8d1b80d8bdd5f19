//! Versioning on the leading active lanes: code for the first lanes alone, where a condition such as `t <
//! half` leaves a number of them that only the launch or the iteration knows.
//!
//! In the steps of a reduction tree fewer and fewer lanes are active, counted from the first. Under masks
//! each step would cost as much as the first. So such a block has several versions: for exactly one, two,
//! four and more chunks of lanes, with constant masks; for less than a chunk; and a general one. Scalar
//! comparisons select the version.
//!
//! Invariant: each version executes exactly the lanes of the mask. A version that cannot execute the block
//! passes control to the general version before anything has an effect.

use super::load_store::Addresses;
use super::mask::LaneBits;
use super::{Codegen, Input};
use crate::analysis::constant::Facts;
use crate::analysis::expr::{Arith, Expr, Operand, operands};
use crate::llvm::{Block, IntPred, Likely, Value};
use crate::tuning::PREFIX_VERSIONS_MAX;
use crate::wir;
use crate::wir::access::Plan;
use crate::wir::checks::Reach;
use crate::wir::version::Version;
use crate::wir::{BlockId, Op, OpKind, Shape, Site, Term};
use ptx::isa::{Cmp, Space, Ty};
use std::collections::HashMap;
use std::rc::Rc;

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

/// A mask whose active lanes are those from the first one up to a limit.
#[derive(Clone)]
pub(super) struct Run {
    /// A constant for each lane, in ascending order.
    pub(super) lanes: Vec<u64>,
    /// The limit that the constants are compared with.
    pub(super) end: Value,
    /// Whether a lane whose constant equals the limit is active.
    pub(super) closed: bool,
    pub(super) signed: bool,
}

impl Run {
    /// The comparison of a lane's constant with the limit that holds if the lane is active.
    pub(super) fn runs(&self) -> IntPred {
        match (self.closed, self.signed) {
            (false, true) => IntPred::Slt,
            (false, false) => IntPred::Ult,
            (true, true) => IntPred::Sle,
            (true, false) => IntPred::Ule,
        }
    }

    /// The comparison of the limit with a lane's constant that holds if the lane is inactive.
    fn ends(&self) -> IntPred {
        match (self.closed, self.signed) {
            (false, true) => IntPred::Sle,
            (false, false) => IntPred::Ule,
            (true, true) => IntPred::Slt,
            (true, false) => IntPred::Ult,
        }
    }
}

impl Codegen<'_> {
    /// Emits versions of a block for its leading lanes, if the block executes under such a mask. The code
    /// that follows is for all other cases.
    pub(super) fn prefixes(&mut self, id: BlockId) {
        let func = self.job.func;
        let node = &func.blocks[id.0 as usize];
        let Term::Goto(next) = node.term else { return };
        // The results of the block must reach other blocks through phis only.
        let several = func.blocks[next.0 as usize].preds.iter().any(|from| *from != id);
        let free = !node.full && self.job.shape.team > 1 && several && !self.slots().stores_on(id, next);
        if !free || self.in_section() {
            return;
        }
        self.remark_block(id, false);
        if self.position.versions == PREFIX_VERSIONS_MAX {
            return self.missed("version-prefix", "the function has the most versions that it may have");
        }
        let mask = node.ops.iter().find_map(|op| match op.kind {
            OpKind::AddLanes(_) => Some(op.uses[1]),
            _ => None,
        });
        let elsewhere = |mask: &wir::Value| self.facts.def_use.op(*mask).is_some_and(|(at, _)| at != id);
        let Some(mask) = mask.filter(elsewhere) else { return };
        let late = self.passes.sunk_masks.of(id).filter(|late| late.mask == mask);
        let (run, rest) = match late.map(|late| (late.run.clone(), late.rest)) {
            Some((run, rest)) => (run, rest),
            None => {
                if self.values.get(mask).is_none() || self.facts.analyses.constants.is_known(mask) {
                    return;
                }
                let Some(run) = self.run_of(mask) else {
                    return self
                        .missed("version-prefix", "the active lanes are not the first ones up to a scalar");
                };
                (run, None)
            }
        };
        self.position.versions += 1;
        self.position.versioned_block = Some(id);
        // The version for less than one chunk keeps the mask as it was computed.
        let mut copies: Vec<(u32, bool)> = vec![(1, false)];
        let mut chunks = 1;
        while chunks < self.chunks() {
            copies.push((chunks, true));
            chunks *= 2;
        }
        self.applied("version-prefix", format!("{} versions for the first lanes alone", copies.len()));
        for (chunks, exact) in copies {
            let (last, first) = ((chunks * self.width) as usize - 1, (chunks * self.width) as usize);
            let end = |at: usize| self.b.const_int(run.end.ty(), run.lanes[at]);
            // The lane after the last chunk is inactive; in an exact version the last lane of the last chunk
            // is active.
            let ends = self.b.icmp(run.ends(), run.end, end(first));
            let fits = match exact {
                true => self.b.and(ends, self.b.icmp(run.runs(), end(last), run.end)),
                false => ends,
            };
            let (here, other) =
                (self.b.append_block(self.function, "first"), self.b.append_block(self.function, "more"));
            self.b.cond_br(fits, here, other, Likely::Unknown);
            self.b.position_at_end(here);
            let part = |emit: &Self, c: u32| {
                let lanes = &run.lanes[(c * emit.width) as usize..][..emit.width as usize];
                let lanes = emit.b.const_ints(run.end.ty(), lanes);
                emit.computed_bits(emit.b.icmp(run.runs(), lanes, emit.b.splat(run.end, emit.width)))
            };
            let own: Vec<LaneBits> = (0..self.chunks())
                .map(|c| match (c < chunks, exact) {
                    (true, true) => LaneBits::Known(self.all_bits()),
                    (true, false) => part(self, c),
                    (false, _) => LaneBits::Known(0),
                })
                .collect();
            let own = self.mask_of(&own);
            let accesses = self.plans_of_version(id, (mask, rest), chunks, exact);
            self.position.version = Some(Rc::new(Version { accesses, checks: None }));
            let before = self.stand_in(mask, rest, own);
            self.position.prefix = Some(Prefix { chunks, other, unmasked: None });
            self.content(id);
            (self.position.prefix, self.position.version) = (None, None);
            for (name, rep) in before {
                self.values.restore(name, rep);
            }
            self.b.position_at_end(other);
        }
    }

    /// The plans of the accesses in a version whose mask has lanes of the first chunks only: all of their
    /// lanes, if it is exact. `rest`: the mask of the other lanes.
    fn plans_of_version(
        &mut self,
        id: BlockId,
        (mask, rest): (wir::Value, Option<wir::Value>),
        chunks: u32,
        exact: bool,
    ) -> HashMap<Site, Rc<Plan>> {
        let all = u64::MAX >> (64 - self.width);
        let bits = |within: u64| -> Vec<Option<u64>> {
            let chunk = |c: u32| match (c < chunks, exact) {
                (true, true) => Some(within),
                (true, false) => None,
                (false, _) => Some(within ^ all),
            };
            (0..self.chunks()).map(chunk).collect()
        };
        let mut masks = vec![(mask, bits(all))];
        masks.extend(rest.filter(|rest| !self.facts.rare[rest.0 as usize]).map(|rest| (rest, bits(0))));
        let planner = self.planner();
        let Input { func, function, program, layout, shape, .. } = self.job;
        let mut constants = std::mem::take(&mut self.facts.analyses.constants);
        let facts =
            Facts { func, function, program, layout, launch: shape, bounds: &self.facts.analyses.bounds };
        let plans = constants.in_version(facts, id, &masks, |constants| {
            let full = func.blocks[id.0 as usize].full;
            planner.by_site(id, planner.block(id, &self.facts.analyses.addresses, constants, full))
        });
        self.facts.analyses.constants = constants;
        plans
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

    /// The limit of a mask, if its active lanes are those up to a limit.
    pub(super) fn run_of(&mut self, mask: wir::Value) -> Option<Run> {
        let func = self.job.func;
        let op = |emit: &Self, name: wir::Value| -> Option<&Op> { emit.facts.def_use.op_of(func, name) };
        let is_all = |emit: &Self, name: wir::Value| {
            op(emit, name).is_some_and(|op| matches!(op.kind, OpKind::Mask(u32::MAX)))
        };
        let mut made = op(self, mask)?;
        let mut turned = false;
        if let OpKind::AndNot = made.kind {
            if !is_all(self, made.uses[0]) {
                return None;
            }
            (turned, made) = (true, op(self, made.uses[1])?);
        }
        let OpKind::And = made.kind else { return None };
        if !is_all(self, made.uses[0]) {
            return None;
        }
        let truths = op(self, made.uses[1])?;
        let OpKind::Truths { negated } = truths.kind else { return None };
        let compare = op(self, truths.uses[0])?;
        let OpKind::Inst(site) = compare.kind else { return None };
        let inst = site.inst(self.job.function)?;
        let Expr { arith: Arith::Compare(cmp), ty: ty @ (Ty::S32 | Ty::U32) } = Expr::of(inst)? else {
            return None;
        };
        if compare.defs.len() != 1 {
            return None;
        }
        let signed = ty == Ty::S32;
        let sources = operands(inst, compare);
        let sides = [self.scalars(*sources.first()?)?, self.scalars(*sources.get(1)?)?];
        let (lanes, end, swapped) = match sides {
            [(Some(lanes), _), (None, Some(end))] => (lanes, end, false),
            [(None, Some(end)), (Some(lanes), _)] => (lanes, end, true),
            _ => return None,
        };
        // Whether lanes below the limit are active, and whether a lane that equals it is.
        let (less, equal) = match cmp {
            Cmp::Lt | Cmp::Lo => (true, false),
            Cmp::Le | Cmp::Ls => (true, true),
            Cmp::Gt | Cmp::Hi => (false, false),
            Cmp::Ge | Cmp::Hs => (false, true),
            _ => return None,
        };
        let other_way = negated != turned;
        let ascending = lanes.windows(2).all(|pair| pair[0] < pair[1]);
        let near = lanes.last().is_some_and(|last| *last < 1 << 31);
        (ascending && near && (less != swapped) != other_way).then_some(Run {
            lanes,
            end,
            closed: equal != other_way,
            signed,
        })
    }

    /// One side of a comparison: its constants by lane, or its scalar.
    fn scalars(&mut self, source: Operand<'_>) -> Option<(Option<Vec<u64>>, Option<Value>)> {
        let name = match source {
            Operand::Imm(bits) => return Some((None, Some(self.c32(bits as u32)))),
            source => source.value()?,
        };
        match self.shape(name).clone() {
            Shape::Uniform(_) => Some((None, Some(self.scalar(name)))),
            Shape::Affine(pattern) if pattern.rows.is_empty() && !pattern.by_chunk => {
                let lanes = self.facts.analyses.constants.lanes(name)?;
                Some((Some(lanes.map(|lane| lane & u64::from(u32::MAX)).collect()), None))
            }
            Shape::Affine(_) | Shape::Varying | Shape::Bottom => None,
        }
    }
}
