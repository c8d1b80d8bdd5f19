//! Plans every access of a function before code is generated: classifies it, finds which lanes make it, and
//! selects its strategy.
//!
//! Invariant: a plan is a function of the WIR, the launch and the target. In a version of a block, which has
//! other masks, accesses have plans of their own.

use super::Vectors;
use super::classify::{Classes, ordered_access};
use crate::analysis::Analyses;
use crate::analysis::address::AddressFacts;
use crate::analysis::constant::Constants;
use crate::target::{Level, Target};
use crate::wir::access::{Access, Active, ActiveLanes, Atomic, Form, Plan, Strategy, StripPlace};
use crate::wir::{Block, BlockId, Func, LaunchShape, Op, OpKind, Site};
use ptx::ir::{Addr, Base, Function, Inst, Program, Src};
use ptx::isa::{AtomOp, Op as O, Sem, Space, Ty};
use ptx_exec::layout::Layout;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// What accesses are planned by.
#[derive(Clone, Copy)]
pub(crate) struct Planner<'a> {
    pub(crate) func: &'a Func,
    pub(crate) function: &'a Function,
    pub(crate) program: &'a Program,
    pub(crate) layout: &'a Layout,
    pub(crate) launch: LaunchShape,
    pub(crate) target: Target,
}

impl Planner<'_> {
    pub(crate) fn vectors(self) -> Vectors {
        Vectors { level: self.target.level(), width: self.launch.chunk, lanes: self.launch.lanes() }
    }

    /// The plans of the accesses of each block, by index.
    pub(crate) fn blocks(self, analyses: &Analyses) -> Vec<BTreeMap<usize, Plan>> {
        let of = |(id, block): (u32, &Block)| {
            self.block(BlockId(id), &analyses.addresses, &analyses.constants, block.full)
        };
        (0..).zip(&self.func.blocks).map(of).collect()
    }

    /// The plans of the accesses of a block, by index. `full`: as in a full copy.
    pub(crate) fn block(
        self,
        id: BlockId,
        addresses: &AddressFacts,
        constants: &Constants,
        full: bool,
    ) -> BTreeMap<usize, Plan> {
        let block = &self.func.blocks[id.0 as usize];
        let classes = Classes { func: self.func, program: self.program, addresses, width: self.launch.chunk };
        let plan = |(at, op): (usize, &Op)| {
            let OpKind::Inst(site) = op.kind else { return None };
            let inst = site.inst(self.function)?;
            let write = writes(inst)?;
            if !matches!(inst.op, O::Atom | O::Red) {
                ordered_access(self.program, inst, write)?;
            }
            let (access, guest) = classes.classify(inst, op, write, full)?;
            if access.space == Space::Param {
                return None;
            }
            let active = active(op, full, constants, self.vectors());
            let mut plan = self.plan_of((inst, op), access, guest, classes, active);
            plan.strip = self.strip((inst, op), &plan, constants);
            plan.inside = self.is_inside((inst, op), access, &plan.guest, (addresses, constants));
            Some((at, plan))
        };
        block.ops.iter().enumerate().filter_map(plan).collect()
    }

    /// The plans of a version of a block in which all lanes are active, by instruction.
    pub(crate) fn for_all_lanes(self, id: BlockId, analyses: &Analyses) -> HashMap<Site, Rc<Plan>> {
        let mut plans = self.block(id, &analyses.addresses, &analyses.constants, true);
        for plan in plans.values_mut() {
            let chunks = vec![Active::All; self.vectors().chunks() as usize];
            plan.active = ActiveLanes { whole: true, chunks };
            plan.strategy = self.vectors().select(plan.access, &plan.form, &plan.active);
        }
        self.by_site(id, plans)
    }

    /// Plans of a block by instruction.
    pub(crate) fn by_site(self, id: BlockId, plans: BTreeMap<usize, Plan>) -> HashMap<Site, Rc<Plan>> {
        let ops = &self.func.blocks[id.0 as usize].ops;
        let site = |(at, plan): (usize, Plan)| match ops[at].kind {
            OpKind::Inst(site) => Some((site, Rc::new(plan))),
            _ => None,
        };
        plans.into_iter().filter_map(site).collect()
    }

    fn plan_of(
        self,
        (inst, op): (&Inst, &Op),
        access: Access,
        guest: Form,
        classes: Classes<'_>,
        active: ActiveLanes,
    ) -> Plan {
        let form = classes.placed(access.space, guest.clone());
        let strategy = match inst.op {
            O::Atom | O::Red => {
                let wanted = op.defs.iter().any(|def| self.func.needed[def.0 as usize]);
                let kind = inst.mods.atom_op();
                let combines = !wanted && kind.is_some_and(|kind| combines(kind, inst.mods.ty()));
                Strategy::Atomic(atomic(&form, combines))
            }
            _ => self.vectors().select(access, &form, &active),
        };
        Plan { access, guest, form, active, strategy, inside: false, strip: None }
    }

    /// The places of a word access's elements in a warp strip, if a coarse warp is the whole CTA.
    fn strip(
        self,
        (inst, op): (&Inst, &Op),
        plan: &Plan,
        constants: &Constants,
    ) -> Option<Vec<Vec<StripPlace>>> {
        let Access { space, bits, count, write, .. } = plan.access;
        let word = space == Space::Shared && bits == 32 && count == 1 && inst.mods.sem() == Sem::Weak;
        let offset = match inst.srcs.first()? {
            Src::Addr(Addr { base: Base::Reg(_), index: None, offset }) => *offset,
            Src::Reg(_) => 0,
            _ => return None,
        };
        if !self.launch.is_alone() || !word || matches!(plan.form, Form::Same) {
            return None;
        }
        let vectors = self.vectors();
        let chunk = |(c, active): (u32, &Active)| {
            if *active == Active::None {
                return Some(Vec::new());
            }
            let lane = |lane: &u64| i64::try_from(*lane).ok()?.checked_add(offset);
            let lanes = constants.chunk(op.uses[1], c)?.iter().map(lane).collect::<Option<Vec<i64>>>()?;
            vectors.places_in_rows(&lanes, *active, write, self.layout.shared_bytes)
        };
        (0..).zip(&plan.active.chunks).map(chunk).collect()
    }
}

/// Whether an instruction is an access that may write; `None` if it is no access.
fn writes(inst: &Inst) -> Option<bool> {
    match inst.op {
        O::Ld | O::LdNc | O::Ldu => Some(false),
        O::St | O::Atom | O::Red => Some(true),
        _ => None,
    }
}

/// The lanes that execute an operation. `full`: in a full copy of its block.
fn active(op: &Op, full: bool, constants: &Constants, vectors: Vectors) -> ActiveLanes {
    let chunk = |c: u32| match constants.bits(op.uses[0], c) {
        Some(bits) => Active::of_bits(bits, vectors.width),
        None => Active::Computed,
    };
    let chunks: Vec<Active> = (0..vectors.chunks()).map(chunk).collect();
    ActiveLanes { whole: full && chunks.iter().all(|chunk| *chunk == Active::All), chunks }
}

/// The strategy of an atomic operation. `combines`: whether the operands of several lanes can be combined.
fn atomic(form: &Form, combines: bool) -> Atomic {
    match form {
        Form::Same if combines => Atomic::Combined,
        Form::ScaledIndex(_) | Form::Each if combines => Atomic::SameAddressTest,
        Form::Same | Form::Affine(_) | Form::Rows(_) | Form::ScaledIndex(_) | Form::Each => Atomic::EachLane,
    }
}

/// Whether updates one after another have the same effect as one update with their combined operands.
fn combines(op: AtomOp, ty: Ty) -> bool {
    match op {
        AtomOp::Add | AtomOp::And | AtomOp::Or | AtomOp::Min | AtomOp::Max => {
            !matches!(ty, Ty::F32 | Ty::F64)
        }
        AtomOp::Xor | AtomOp::Exch | AtomOp::Cas | AtomOp::Inc | AtomOp::Dec => false,
    }
}

/// The plan of an access in a chunk loop, for one chunk: all lanes make it, and the chunks are alike.
pub(crate) fn in_chunk_loop(plan: &Plan, level: Level, width: u32) -> Plan {
    let vectors = Vectors { level, width, lanes: width };
    let form = match &plan.form {
        Form::Affine(pattern) => {
            let lanes: Box<[i32]> = vectors.relative(pattern, 0).into();
            match lanes.iter().all(|lane| *lane == 0) {
                true => Form::Same,
                false => Form::Affine(crate::wir::Affine {
                    by_chunk: false,
                    align: pattern.align,
                    lanes,
                    rows: Box::default(),
                }),
            }
        }
        other => other.clone(),
    };
    let active = ActiveLanes { whole: true, chunks: vec![Active::All] };
    let strategy = vectors.select(plan.access, &form, &active);
    let (access, guest, inside) = (plan.access, form.clone(), plan.inside);
    Plan { access, guest, form, active, strategy, inside, strip: None }
}
