//! Warp strips: which blocks of a coarse warp that is the whole CTA are executed warp by warp, so that shared
//! memory stays in registers.
//!
//! A coarse warp of many warps has more lanes than fit into registers, so instruction by instruction every
//! value goes through memory. Between two barriers no warp waits for another, so each may execute a whole
//! section before the next starts. That pays for sections that access words of shared memory at addresses
//! which are constants of the code: each warp then loads and stores a vector of that memory at most once.
//!
//! A section begins with a block all of whose operations are done warp by warp: arithmetic on vectors of at
//! most 32 bits, masks, and such accesses. It continues in the next block that code is generated for if that
//! block is entered from this one alone, up to an operation that is not done warp by warp. A few operations
//! under a mask that have no effect where no lane is active are executed instead of skipped.
//!
//! Invariant: within a warp, operations keep their order. An operation that needs all warps at once, or that
//! may leave native code, ends a section.
//!
//! What it does not do: code generation also ends a section where a block compares addresses with bounds, and
//! at an access that has no places in rows.

use crate::analysis::{Analyses, thread_constant};
use crate::isel::{self, Env};
use crate::mem::plan::Planner;
use crate::opt::version_prefix;
use crate::tuning::WARP_STRIP_MAX_SPECULATED_OPS;
use crate::wir::decision::Decision;
use crate::wir::warp_strips::Strips;
use crate::wir::{Block, BlockId, Cond, Func, Kind, Op, OpKind, Shape, Term, Value};
use ptx::ir::{Function, RegClass, Src, Terminator};
use ptx::isa::{Op as O, Sem, Space};

/// Why a block with such accesses begins no section.
const NOT_BY_WARP: &str = "the block has operations that are not done warp by warp";

/// What operations are judged by.
struct Rules<'a> {
    func: &'a Func,
    function: &'a Function,
    env: Env,
    /// For each value, whether it depends only on which thread of its CTA the lane is.
    constant: Vec<bool>,
}

/// What warp strips do with each block; nothing if a coarse warp is not the whole CTA.
pub(crate) fn decide(planner: Planner<'_>, analyses: &Analyses, env: Env) -> Vec<Strips> {
    let Planner { func, function, launch, .. } = planner;
    if !launch.is_alone() || !func.entries.is_empty() {
        return Vec::new();
    }
    let constant = thread_constant::constants(func, function);
    let rules = Rules { func, function, env, constant };
    let mut strips: Vec<Strips> = func.blocks.iter().map(|block| rules.strips(block)).collect();
    for (id, own) in (0..).map(BlockId).zip(&mut strips) {
        if own.begins() && version_prefix::has_versions(planner, analyses, id) {
            own.begin = None;
        }
    }
    rules.join(&mut strips);
    strips
}

impl Rules<'_> {
    /// Decides in which blocks sections continue, in the order in which code is generated.
    fn join(&self, strips: &mut [Strips]) {
        let func = self.func;
        let order = func.reverse_postorder();
        // Whether a block was visited, and the number of edges to it from visited blocks.
        let (mut visited, mut edges) = (vec![false; func.blocks.len()], vec![0; func.blocks.len()]);
        func.roots().for_each(|root| edges[root.0 as usize] += 1);
        for (at, id) in order.iter().enumerate() {
            visited[id.0 as usize] = true;
            if edges[id.0 as usize] == 0 {
                continue;
            }
            let own = &strips[id.0 as usize];
            let open = (own.begins() || own.continued) && own.ends.is_empty();
            let to = if open { self.successor(*id, strips) } else { None };
            let to = to.filter(|to| {
                let preds = &func.blocks[to.0 as usize].preds;
                let alone = edges[to.0 as usize] == 0 && preds.iter().all(|pred| visited[pred.0 as usize]);
                let mut behind = order[at + 1..].iter();
                let next = behind.find(|id| *id == to || edges[id.0 as usize] > 0);
                alone && next == Some(to) && !func.stores_on(*id, *to)
            });
            if let Some(to) = to {
                // No branch is emitted, so the block has no other successor.
                strips[id.0 as usize].continues = Some(to);
                strips[to.0 as usize].continued = true;
                edges[to.0 as usize] += 1;
                continue;
            }
            let test = func.blocks[id.0 as usize].endpoint_test.as_ref();
            let tested = test.and_then(|test| test.none).map(|(_, to)| to);
            let successors = func.blocks[id.0 as usize].term.successors().into_iter().chain(tested);
            successors.for_each(|to| edges[to.0 as usize] += 1);
        }
    }

    /// The successor in which a section may continue.
    fn successor(&self, id: BlockId, strips: &[Strips]) -> Option<BlockId> {
        let block = &self.func.blocks[id.0 as usize];
        let terminator = &self.function.blocks[block.block as usize].term;
        if !matches!(terminator, Terminator::Goto(..) | Terminator::Branch { .. }) {
            return None;
        }
        match &block.term {
            Term::Goto(to) => Some(*to),
            Term::If { cond: Cond::Empty(_), then, els, .. } => {
                self.is_nothing(strips, id, *els, *then).then_some(*els)
            }
            Term::If { .. } | Term::Switch { .. } | Term::Exit(_) => None,
        }
    }

    /// Whether a few operations under a mask have no effect if no lane is active, so that they can be
    /// executed instead of skipped.
    fn is_nothing(&self, strips: &[Strips], from: BlockId, body: BlockId, over: BlockId) -> bool {
        let func = self.func;
        let (content, behind) = (&func.blocks[body.0 as usize], &func.blocks[over.0 as usize]);
        let short = matches!(content.term, Term::Goto(to) if to == over)
            && content.preds == [from]
            && content.ops.len() <= WARP_STRIP_MAX_SPECULATED_OPS
            && strips[body.0 as usize].ends.is_empty()
            && !content.ops.iter().any(|op| matches!(op.kind, OpKind::Add(_)));
        let way = |pred: BlockId| behind.pred_index(pred);
        let (true, Some(around), Some(through)) = (short, way(from), way(body)) else { return false };
        behind.phis.iter().all(|phi| {
            let (old, new) = (phi.from[around], phi.from[through]);
            let keeps = |op: &Op| match op.kind {
                OpKind::Or => op.uses.contains(&old),
                OpKind::SelectMask => op.uses[2] == old,
                // A counter is increased by the number of active lanes, which is zero.
                _ => self.kind(new) == Kind::Count,
            };
            old == new
                || !func.needed[phi.def.0 as usize]
                || content.op_of(new).is_some_and(|at| keeps(&content.ops[at]))
        })
    }

    fn strips(&self, block: &Block) -> Strips {
        let ops = || block.ops.iter().enumerate();
        let ends: Vec<usize> = ops().filter(|(_, op)| !self.is_by_warp(op)).map(|(at, _)| at).collect();
        let decision = match ends.is_empty() {
            true => Decision::Applied(()),
            false => Decision::Missed(NOT_BY_WARP),
        };
        let first = ops().find(|(_, op)| self.is_kept(op));
        Strips { begin: first.map(|(at, _)| (at, decision)), ends, continued: false, continues: None }
    }

    fn shape(&self, name: Value) -> &Shape {
        &self.func.shapes[name.0 as usize]
    }

    fn kind(&self, name: Value) -> Kind {
        self.func.kinds[name.0 as usize]
    }

    /// Whether an operation can be executed warp by warp.
    fn is_by_warp(&self, op: &Op) -> bool {
        let narrow = |name: &Value| {
            *self.shape(*name) != Shape::Varying || self.kind(*name) != Kind::Reg(RegClass::R64)
        };
        match &op.kind {
            OpKind::Spare(..)
            | OpKind::Ahead(_)
            | OpKind::Mask(_)
            | OpKind::Count(_)
            | OpKind::And
            | OpKind::AndNot
            | OpKind::Or
            | OpKind::Add(_)
            | OpKind::AddLanes(_)
            | OpKind::AddWarps(_)
            | OpKind::Truths { .. }
            | OpKind::InRange { .. } => true,
            OpKind::SelectMask | OpKind::SelectPred { .. } => {
                *self.shape(op.defs[0]) == Shape::Varying && self.kind(op.defs[0]) != Kind::Mask
            }
            OpKind::Inst(site) => {
                let Some(inst) = site.inst(self.function) else { return false };
                let plain = |src: &Src| matches!(src, Src::Absent | Src::Imm(_) | Src::Reg(_) | Src::Not(_));
                if self.is_kept(op) {
                    return true;
                }
                let moved = matches!(inst.op, O::Cvt | O::Cvta | O::CvtaTo)
                    && op.defs.iter().any(|def| *self.shape(*def) == Shape::Varying);
                crate::effects::is_pure(inst)
                    && crate::effects::carry(inst) == (false, false)
                    && !moved
                    && op.defs.iter().all(narrow)
                    && inst.srcs.iter().all(plain)
                    && isel::choose(inst, &self.env).is_some_and(|lowering| !lowering.branches)
            }
            OpKind::Chain(_)
            | OpKind::Load(_)
            | OpKind::Reload(_)
            | OpKind::Spill(_)
            | OpKind::Restore(..)
            | OpKind::Reduced(..)
            | OpKind::EntryMask
            | OpKind::EntryLive
            | OpKind::EntryCarry
            | OpKind::EntryTurns
            | OpKind::Picks { .. }
            | OpKind::SameQuotient(_)
            | OpKind::Rebase
            | OpKind::Guard(..) => false,
        }
    }

    /// Whether an operation is an access of words of shared memory at addresses that are constants of the
    /// code, which strips keep in registers.
    fn is_kept(&self, op: &Op) -> bool {
        let OpKind::Inst(site) = op.kind else { return false };
        let (Some(inst), Some(plan)) = (site.inst(self.function), &op.access) else { return false };
        let Some(address) = op.uses.get(1) else { return false };
        let word = plan.access.bits == 32 && plan.access.count == 1 && plan.access.space == Space::Shared;
        let uniform = matches!(self.shape(*address), Shape::Uniform(_) | Shape::Bottom);
        let register =
            |def: &Value| *self.shape(*def) == Shape::Varying && self.kind(*def) == Kind::Reg(RegClass::R32);
        matches!(inst.op, O::Ld | O::St)
            && word
            && self.constant[address.0 as usize]
            && !uniform
            && inst.mods.sem() == Sem::Weak
            && inst.guard.is_none()
            && op.defs.iter().all(register)
    }
}
