//! Warp strips: which blocks of a coarse warp that is the whole CTA are executed warp by warp, so that shared
//! memory stays in registers.
//!
//! A coarse warp of many warps has more lanes than fit into registers, so instruction by instruction every
//! value goes through memory. Between two barriers no warp waits for another, so each may execute a whole
//! section before the next starts. That pays for sections that access words of shared memory at addresses
//! which are constants of the code: each warp then loads and stores a vector of that memory at most once.
//!
//! A section begins with a block all of whose operations are done warp by warp: arithmetic on vectors of at
//! most 32 bits, masks, and such accesses. Later blocks continue it up to an operation that is not.
//!
//! Invariant: within a warp, operations keep their order. An operation that needs all warps at once, or that
//! may leave native code, ends a section.
//!
//! What it does not do: code generation decides which later blocks a section includes, because that depends
//! on the order of blocks.

use crate::analysis::thread_constant;
use crate::isel::{self, Env};
use crate::wir::decision::Decision;
use crate::wir::warp_strips::Strips;
use crate::wir::{Block, Func, Kind, LaunchShape, Op, OpKind, Shape, Value};
use ptx::ir::{Function, RegClass, Src};
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
pub(crate) fn decide(func: &Func, function: &Function, launch: LaunchShape, env: Env) -> Vec<Strips> {
    if !launch.is_alone() || !func.entries.is_empty() {
        return Vec::new();
    }
    let constant = thread_constant::constants(func, function);
    let rules = Rules { func, function, env, constant };
    func.blocks.iter().map(|block| rules.strips(block)).collect()
}

impl Rules<'_> {
    fn strips(&self, block: &Block) -> Strips {
        let ops = || block.ops.iter().enumerate();
        let ends: Vec<usize> = ops().filter(|(_, op)| !self.is_by_warp(op)).map(|(at, _)| at).collect();
        let decision = match ends.is_empty() {
            true => Decision::Applied(()),
            false => Decision::Missed(NOT_BY_WARP),
        };
        let first = ops().find(|(_, op)| self.is_kept(op));
        Strips { begin: first.map(|(at, _)| (at, decision)), ends }
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
