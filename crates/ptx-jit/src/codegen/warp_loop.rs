//! Warp loops: a coarse warp that is a whole CTA computes its vectors warp by warp, by one copy of the code.
//!
//! In a kernel without barriers and loops, the work of a warp is often a few vectors, and most of its time is
//! for scalars: bounds checks, addresses, tests for the ends of an array, the change to the next warp. A
//! coarse warp does that once for its CTA. What is left is a loop over the warps. It is as long as the code
//! of one warp, and has no branch but its own.
//!
//! The code is for CTAs of which all threads do the same, with all accesses in bounds. It **declines** any
//! other CTA, whose warps then execute one after another.
//!
//! Invariants: a CTA is declined before it has had an effect. Each warp's accesses are in the order of the
//! program, and those of a warp precede those of the next one, as where warps execute alone. A value that a
//! warp loop defines is read in the same iteration only.

use super::check_coalesce::CoalescedChecks;
use super::{Codegen, LANES, Repr};
use crate::effects;
use crate::llvm::{IntPred, Likely, Value};
use crate::mem::plan::warp_part;
use crate::wir;
use crate::wir::decision::Decision;
use crate::wir::endpoint_test::EndpointTest;
use crate::wir::prefetch::Prefetch;
use crate::wir::{Affine, BlockId, Cond, ExitReason, Kind, Op, OpKind, Shape, Term};
use ptx::ir::{Inst, Src};
use ptx::isa::{Op as O, Sem, Space};
use std::collections::{HashMap, HashSet};

/// The operations of a block, by index.
#[derive(Default)]
struct Parts {
    /// Executed once for the CTA.
    shared: Vec<usize>,
    /// Executed in each iteration of the warp loop.
    own: Vec<usize>,
}

impl Codegen<'_> {
    /// Emits the operations of a block and its terminator. Notes that the function is unfit if the block
    /// cannot be executed in this way.
    pub(super) fn warp_by_warp(&mut self, id: BlockId, node: &wir::Block) {
        if self.out.unfit || !node.full || self.emit_parts(id, node).is_none() {
            self.out.unfit = true;
            self.declined();
        }
    }

    /// `None`: the block cannot be executed warp by warp.
    fn emit_parts(&mut self, id: BlockId, node: &wir::Block) -> Option<()> {
        let mut checks = self.ahead(node);
        let divergent = matches!(node.term, Term::If { cond: Cond::Equal(..), .. });
        let test = if divergent { Some(self.test_of(id)?) } else { None };
        let parts = self.parts_of_block(node, &checks, test.as_deref())?;
        for at in &parts.shared {
            self.position.access_checked = checks.fits(*at);
            self.op(node, *at);
        }
        self.position.access_checked = false;
        if !parts.own.is_empty() {
            self.emit_warp_loop(node, &parts.own, &mut checks)?;
        }
        match (&node.term, test) {
            (Term::If { then, .. }, Some(test)) => {
                self.remark_endpoint_test(id, true);
                self.test_or_decline(id, *then, &test)
            }
            (Term::Exit(exit), _) if exit.why != ExitReason::Finished => None,
            (Term::If { cond, .. }, _) if !matches!(cond, Cond::Pred { .. }) => None,
            (term, _) => {
                let full = |to: &BlockId| self.job.func.blocks[to.0 as usize].full;
                term.successors().iter().all(full).then(|| self.end(id, term))
            }
        }
    }

    /// Which operations of a block are executed once, and which in each iteration.
    fn parts_of_block(
        &mut self,
        node: &wir::Block,
        checks: &CoalescedChecks,
        test: Option<&EndpointTest>,
    ) -> Option<Parts> {
        let mut parts = Parts::default();
        let mut defs: HashSet<wir::Value> = HashSet::new();
        let mut stores = false;
        for (at, op) in node.ops.iter().enumerate() {
            if checks.is_done(at) || test.is_some_and(|test| test.has(at)) {
                continue;
            }
            let late = op.uses.iter().any(|name| defs.contains(name));
            let own = match &op.kind {
                OpKind::Ahead(_) | OpKind::Spare(..) => continue,
                OpKind::Inst(site) => {
                    let inst = site.inst(self.job.function)?;
                    let own = self.is_own_of_warp(inst, op, checks.fits(at))?;
                    stores |= inst.op == O::St;
                    // What earlier warps store must not be seen by some warps only.
                    let loads = matches!(inst.op, O::Ld | O::LdNc | O::Ldu);
                    if !own && loads && stores {
                        return None;
                    }
                    if own && !loads && inst.op != O::St && self.lowering(*site, inst).is_none() {
                        return None;
                    }
                    own
                }
                OpKind::SelectPred { .. } => self.is_varying(op.defs[0]),
                OpKind::Chain(_) => true,
                OpKind::Guard(..) | OpKind::SelectMask => return None,
                OpKind::Truths { .. } | OpKind::InRange { .. } if self.is_varying(op.uses[0]) => return None,
                _ => false,
            };
            if own {
                defs.extend(&op.defs);
                parts.own.push(at);
            } else if late {
                return None;
            } else {
                parts.shared.push(at);
            }
        }
        self.stay_inside(node, &parts.own).then_some(parts)
    }

    fn is_varying(&self, name: wir::Value) -> bool {
        *self.shape(name) == Shape::Varying
    }

    /// Whether each warp executes an instruction on its own; `None`: it has no place in a warp loop, nor
    /// before one.
    fn is_own_of_warp(&self, inst: &Inst, op: &Op, fits: bool) -> Option<bool> {
        if inst.guard.is_some() || op.defs.iter().any(|def| self.kind(*def) == Kind::Mask) {
            return None;
        }
        let vectors = op.defs.iter().all(|def| self.is_varying(*def));
        let scalars = op.defs.iter().all(|def| !self.is_varying(*def));
        match inst.op {
            O::Ld | O::LdNc | O::Ldu => {
                let access = self.access(inst, false)?;
                let known = fits && inst.mods.sem() == Sem::Weak || effects::reads_parameter(inst) && scalars;
                (known && self.is_outside(access.space) && (vectors || scalars)).then_some(vectors)
            }
            O::St => {
                let access = self.access(inst, true)?;
                (fits && inst.mods.sem() == Sem::Weak && self.is_outside(access.space)).then_some(true)
            }
            _ if !crate::effects::is_pure(inst) => None,
            _ if scalars => Some(false),
            _ => {
                let plain = |src: &Src| matches!(src, Src::Reg(_) | Src::Not(_) | Src::Imm(_) | Src::Absent);
                (vectors && inst.srcs.iter().all(plain)).then_some(true)
            }
        }
    }

    /// Whether memory of a state space is that of all CTAs.
    fn is_outside(&self, space: Space) -> bool {
        matches!(space, Space::Global | Space::Const | Space::Generic | Space::Param)
    }

    /// Whether what operations of a block define is read by the same operations only.
    fn stay_inside(&self, node: &wir::Block, own: &[usize]) -> bool {
        let mut reads: HashMap<wir::Value, u32> = HashMap::new();
        let mut count = |name: wir::Value| *reads.entry(name).or_insert(0) += 1;
        own.iter().for_each(|at| node.ops[*at].uses.iter().copied().for_each(&mut count));
        // Side exits are not taken.
        for op in &node.ops {
            if let OpKind::Ahead(exit) | OpKind::Spare(_, exit) | OpKind::Guard(_, _, exit) = &op.kind {
                exit.for_each_use(&mut count);
            }
        }
        let mut defs = own.iter().flat_map(|at| &node.ops[*at].defs);
        defs.all(|def| self.facts.analyses.def_use.reads(*def) <= reads.get(def).copied().unwrap_or(0))
    }

    fn emit_warp_loop(
        &mut self,
        node: &wir::Block,
        own: &[usize],
        checks: &mut CoalescedChecks,
    ) -> Option<()> {
        let made: HashSet<wir::Value> = own.iter().flat_map(|at| &node.ops[*at].defs).copied().collect();
        let mut ins: Vec<wir::Value> = Vec::new();
        for at in own {
            let op = &node.ops[*at];
            if op.insts().next().is_some() && !self.whole(op) {
                return None;
            }
            for name in &op.uses {
                if !made.contains(name) && !ins.contains(name) {
                    ins.push(*name);
                }
            }
        }
        self.find_prefetch_distance(node, own);
        let mut stored = Vec::new();
        for name in ins {
            stored.push((name, self.stored_bases(name)));
        }
        let before = self.b.current_block();
        let (turn, done) =
            (self.b.append_block(self.function, "one"), self.b.append_block(self.function, "every"));
        self.b.br(turn);
        self.b.position_at_end(turn);
        let index = self.b.phi(self.int(64));
        self.b.add_incoming(index, self.c64(0), before);
        self.reuse_scalars(before);
        let mut inside = Vec::new();
        for (name, place) in stored {
            let (rep, shape) = self.in_warp(name, place, index)?;
            inside.push((name, rep, shape));
        }
        let lanes = std::mem::replace(&mut self.lanes, LANES);
        let known =
            (std::mem::take(&mut self.values.scaled_indices), std::mem::take(&mut self.values.word_pairs));
        let mut outside = Vec::new();
        for (name, rep, shape) in inside {
            outside.push((name, self.values.replace(name, rep)));
            if let Some(shape) = shape {
                self.passes.chunk_loops.shapes.insert(name, shape);
            }
        }
        let mut groups = self.begin_groups(node, checks);
        for at in own {
            self.interleaved_groups_at(node, &mut groups, *at);
            if !checks.is_done(*at) {
                self.position.access_checked = true;
                self.op(node, *at);
            }
        }
        self.position.access_checked = false;
        let next = self.b.add(index, self.c64(1));
        self.b.add_incoming(index, next, self.b.current_block());
        let more = self.b.icmp(IntPred::Ne, next, self.c64(self.job.shape.team.into()));
        self.b.cond_br(more, turn, done, Likely::Yes);
        self.b.position_at_end(done);
        self.lanes = lanes;
        (self.values.scaled_indices, self.values.word_pairs) = known;
        self.passes.chunk_loops.shapes.clear();
        for (name, rep) in outside {
            self.values.restore(name, rep);
        }
        self.prefetches.next_cta_distance = None;
        Some(())
    }

    /// Computes the distance to the next CTA's elements before the loop, where all accesses have the same.
    fn find_prefetch_distance(&mut self, node: &wir::Block, own: &[usize]) {
        let first = own.iter().find_map(|at| match node.ops[*at].prefetches().next {
            Some(Decision::Applied(Prefetch { ahead, .. })) => Some(ahead),
            Some(Decision::Missed(_)) | None => None,
        });
        if let Some(ahead) = first {
            self.distance(ahead);
        }
    }

    /// Lets the current LLVM block use scalars that were computed at the end of the block that dominates it.
    fn reuse_scalars(&mut self, before: crate::llvm::Block) {
        let here = self.b.current_block();
        if let Some(((block, _), _)) = &mut self.prefetches.next_cta_distance
            && *block == before
        {
            *block = here;
        }
    }

    /// Stores the bases of a value that has one for each chunk.
    fn stored_bases(&mut self, name: wir::Value) -> Option<Value> {
        let Some(Affine { by_chunk: true, .. }) = self.pattern(name) else { return None };
        let mut place = None;
        for c in 0..self.chunks() {
            let base = self.noncanonical_base(name, c)?;
            let here = self.b.current_block();
            let place = *place.get_or_insert_with(|| {
                self.b.position_at_end(self.passes.chunk_loops.rooms);
                let place = self.b.alloca(self.b.vec(base.ty(), self.chunks()), 64);
                self.b.position_at_end(here);
                place
            });
            let bytes = base.ty().element_bits() / 8;
            self.b.store(base, self.b.offset(place, u64::from(c * bytes)), bytes);
        }
        place
    }

    /// The representation of a value within the iteration of a warp, and its shape there if it is another.
    fn in_warp(
        &mut self,
        name: wir::Value,
        place: Option<Value>,
        index: Value,
    ) -> Option<(Repr, Option<Shape>)> {
        if self.kind(name) == Kind::Mask {
            let chunks = vec![self.all_bits(); (LANES / self.width) as usize];
            return Some((Repr::Mask(self.known_mask(&chunks)), None));
        }
        let pattern = match self.shape(name) {
            Shape::Bottom | Shape::Uniform(_) => {
                return Some((self.values.get(name).cloned()?, None));
            }
            Shape::Varying => return None,
            Shape::Affine(pattern) => (**pattern).clone(),
        };
        let part = warp_part(&pattern, self.width)?;
        if let Some(place) = place {
            let each = LANES / self.width;
            let ty = self.scalar_type(self.kind(name));
            let bytes = ty.element_bits() / 8;
            let base = |c: u32| {
                let at = self.b.add(self.b.mul(index, self.c64(each.into())), self.c64(c.into()));
                self.b.load(ty, self.b.gep(place, self.b.mul(at, self.c64(bytes.into()))), bytes)
            };
            let bases = (0..each).map(base).collect();
            return Some((Repr::Bases(bases), Some(Shape::Affine(Box::new(part.pattern)))));
        }
        let mut base = self.noncanonical_base(name, 0)?;
        let stride = self.stride_of(name);
        if part.lanes.by != 0 {
            base = self.b.add(base, self.count(part.lanes, index, base));
        }
        if let Some(stride) = stride
            && part.rows.by != 0
        {
            base = self.b.add(base, self.b.mul(self.count(part.rows, index, base), stride));
        }
        let rep = match stride {
            _ if part.pattern.is_plain() => Repr::Scalar(base),
            Some(stride) if !part.pattern.rows.is_empty() => Repr::Bases(vec![base, stride]),
            _ => Repr::Bases(vec![base]),
        };
        Some((rep, Some(part.pattern.class())))
    }

    /// The constant of a warp, as a number of the type of `like`.
    fn count(&self, steps: crate::mem::plan::Steps, index: Value, like: Value) -> Value {
        let shifted = match steps.shift {
            0 => index,
            shift => self.b.lshr(index, self.c64(shift.into())),
        };
        let turns = match steps.mask {
            u64::MAX => shifted,
            mask => self.b.and(shifted, self.c64(mask)),
        };
        let bits = like.ty().element_bits();
        let turns = if bits < 64 { self.b.trunc(turns, like.ty()) } else { turns };
        self.b.mul(turns, self.b.const_int(like.ty(), steps.by as u64))
    }
}
