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
use crate::effects;
use crate::reduction_buffer;
use crate::target::{Level, Target};
use crate::wir::access::{Access, Active, ActiveLanes, Atomic, Form, Plan, Strategy, StripPlace};
use crate::wir::{Affine, Block, BlockId, Func, LaunchShape, Op, OpKind, Site};
use ptx::ir::{Addr, Base, Function, Inst, Program, Src};
use ptx::isa::{AtomOp, Op as O, Sem, Space, Ty};
use ptx_exec::layout::Layout;
use ptx_exec::mem::LocalLayout;
use ptx_exec::watch::AccessObjects;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// What accesses are planned by.
#[derive(Clone, Copy)]
pub(crate) struct Planner<'a> {
    pub(crate) func: &'a Func,
    pub(crate) function: &'a Function,
    pub(crate) program: &'a Program,
    pub(crate) layout: &'a Layout,
    /// The objects that accesses must stay in, if observers need that.
    pub(crate) objects: Option<&'a AccessObjects>,
    pub(crate) launch: LaunchShape,
    pub(crate) target: Target,
}

impl Planner<'_> {
    pub(crate) fn vectors(self) -> Vectors {
        Vectors { level: self.target.level(), width: self.launch.chunk, lanes: self.launch.lanes() }
    }

    /// How local memory lies in memory. Observers that restrict accesses follow the addresses of bytes.
    pub(crate) fn local_layout(self) -> LocalLayout {
        if self.objects.is_some() { LocalLayout::Apart } else { LocalLayout::ByWord }
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
            let (mut access, guest) = classes.classify(inst, op, write, full)?;
            // A load that names the parameters has no address to be planned.
            if access.space == Space::Param && (write || effects::reads_parameter(inst)) {
                return None;
            }
            // The interpreter executes atomic operations on local memory.
            if matches!(inst.op, O::Atom | O::Red) && access.space == Space::Local {
                return None;
            }
            access.postponed = self.postpones((inst, op), access);
            let active = active(op, full, constants, self.vectors());
            let mut plan = self.plan_of((inst, op), access, guest, classes, active);
            plan.strip = self.strip((site, inst, op), &plan, constants);
            plan.inside = self.is_inside((site, inst, op), access, &plan.guest, (addresses, constants));
            Some((at, plan))
        };
        block.ops.iter().enumerate().filter_map(plan).collect()
    }

    /// Whether an access is a reduction that is postponed.
    pub(crate) fn postpones(self, (inst, op): (&Inst, &Op), access: Access) -> bool {
        !self.is_wanted(op) && reduction_buffer::postponed(self.function, inst, access.space).is_some()
    }

    /// Whether a result of an operation is read.
    fn is_wanted(self, op: &Op) -> bool {
        op.defs.iter().any(|def| self.func.needed[def.0 as usize])
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
        let form = classes.placed(access.space, guest.clone(), self.local_layout());
        let strategy = match inst.op {
            O::Atom | O::Red => {
                let kind = inst.mods.atom_op();
                let combines = !self.is_wanted(op) && kind.is_some_and(|kind| combines(kind, inst.mods.ty()));
                Strategy::Atomic(atomic(&form, combines, access.space == Space::Shared))
            }
            _ => self.vectors().select(access, &form, &active),
        };
        Plan { access, guest, form, active, strategy, inside: false, strip: None }
    }

    /// The places of a word access's elements in a warp strip, if a coarse warp is the whole CTA.
    fn strip(
        self,
        (site, inst, op): (Site, &Inst, &Op),
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
        let (vectors, own) = (self.vectors(), self.own(site, Space::Shared));
        let chunk = |(c, active): (u32, &Active)| {
            if *active == Active::None {
                return Some(Vec::new());
            }
            let lane = |lane: &u64| i64::try_from(*lane).ok()?.checked_add(offset);
            let lanes = constants.chunk(op.uses[1], c)?.iter().map(lane).collect::<Option<Vec<i64>>>()?;
            vectors.places_in_rows(&lanes, *active, write, self.layout.shared_bytes, &own)
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
/// `own`: whether only the lanes' CTA accesses the memory.
fn atomic(form: &Form, combines: bool, own: bool) -> Atomic {
    match form {
        Form::Same if combines => Atomic::Combined,
        Form::Same if own => Atomic::InRegister,
        Form::ScaledIndex(_) | Form::Each if combines => Atomic::SameAddressTest,
        Form::Same
        | Form::Affine(_)
        | Form::Rows(_)
        | Form::ScaledIndex(_)
        | Form::Each
        | Form::Local
        | Form::EachLocal => Atomic::EachLane,
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

/// Constants of the warps of a coarse warp: `by` times the number of the warp, shifted right and masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) by: i64,
    pub(crate) shift: u32,
    pub(crate) mask: u64,
}

impl Steps {
    /// `None`: the numbers are not of this form.
    fn of(numbers: &[i32]) -> Option<Self> {
        if numbers.iter().all(|number| *number == 0) {
            return Some(Self { by: 0, shift: 0, mask: u64::MAX });
        }
        let shift = numbers.iter().position(|number| *number != 0)?;
        let by = i64::from(numbers[shift]);
        let shift = shift.is_power_of_two().then(|| shift.ilog2())?;
        let masks = (1..6).map(|bits| (1u64 << bits) - 1).chain([u64::MAX]);
        let steps = masks.map(|mask| Self { by, shift, mask });
        let fits = |steps: &Self| {
            (0u64..).zip(numbers).all(|(warp, number)| {
                ((warp >> steps.shift & steps.mask) as i64).checked_mul(by) == Some(i64::from(*number))
            })
        };
        // With a mask that keeps all numbers there is no mask.
        let all = Self { by, shift, mask: u64::MAX };
        std::iter::once(all).chain(steps).find(fits)
    }
}

/// An affine value within a warp of a coarse warp: its constants there, the same for each warp, and what each
/// warp adds to the scalar, itself and as multiples of the stride.
#[derive(Clone, Debug)]
pub(crate) struct WarpPart {
    pub(crate) pattern: Affine,
    pub(crate) lanes: Steps,
    pub(crate) rows: Steps,
}

/// The part of a warp in an affine value of a coarse warp; `None`: the warps are not alike.
pub(crate) fn warp_part(pattern: &Affine, width: u32) -> Option<WarpPart> {
    const LANES: usize = 32;
    let firsts = |numbers: &[i32]| numbers.iter().step_by(LANES).copied().collect::<Vec<i32>>();
    let own = |numbers: &[i32], relative: bool| {
        let of = |warp: &[i32]| -> Vec<i32> {
            warp.iter().map(|lane| lane - if relative { warp[0] } else { 0 }).collect()
        };
        let mut warps = numbers.chunks(LANES).map(of);
        let first = warps.next().unwrap_or_default();
        warps.all(|warp| warp == first).then_some(first)
    };
    let none = Steps { by: 0, shift: 0, mask: u64::MAX };
    if pattern.by_chunk {
        let lanes = own(&pattern.lanes, false)?;
        let part = Affine { lanes: lanes.into(), ..pattern.clone() };
        return Some(WarpPart { pattern: part, lanes: none, rows: none });
    }
    debug_assert!(LANES.is_multiple_of(width as usize));
    let (lanes, rows) = (own(&pattern.lanes, true)?, own(&pattern.rows, true)?);
    let (starts, turns) = (Steps::of(&firsts(&pattern.lanes))?, Steps::of(&firsts(&pattern.rows))?);
    let aligned = firsts(&pattern.lanes).into_iter().filter(|first| *first != 0);
    let align = aligned.fold(pattern.align, |align, first| align.min(first.trailing_zeros() as u8));
    let rows = if rows.iter().all(|row| *row == 0) { Vec::new() } else { rows };
    let part = Affine {
        by_chunk: false,
        align: if turns.by == 0 { align } else { 0 },
        lanes: lanes.into(),
        rows: rows.into(),
    };
    Some(WarpPart { pattern: part, lanes: starts, rows: turns })
}

/// The plan of an access in a warp loop, for one warp: all of its lanes make it.
pub(crate) fn in_warp_loop(plan: &Plan, classes: Classes<'_>, level: Level) -> Option<Plan> {
    let vectors = Vectors { level, width: classes.width, lanes: 32 };
    let guest = match &plan.guest {
        Form::Affine(pattern) | Form::Rows(pattern) => {
            let WarpPart { pattern, .. } = warp_part(pattern, classes.width)?;
            match (pattern.is_plain() && !pattern.by_chunk, pattern.rows.is_empty()) {
                (true, _) => Form::Same,
                (false, true) => Form::Affine(pattern),
                (false, false) => Form::Rows(pattern),
            }
        }
        other => other.clone(),
    };
    let form = match plan.form {
        Form::Local | Form::EachLocal => return None,
        _ => classes.placed(plan.access.space, guest.clone(), LocalLayout::Apart),
    };
    let active = ActiveLanes { whole: true, chunks: vec![Active::All; vectors.chunks() as usize] };
    let strategy = vectors.select(plan.access, &form, &active);
    Some(Plan { access: plan.access, guest, form, active, strategy, inside: plan.inside, strip: None })
}

/// The plan of an access in a chunk loop, for one chunk: all lanes make it, and the chunks are alike.
pub(crate) fn in_chunk_loop(plan: &Plan, level: Level, width: u32) -> Plan {
    let vectors = Vectors { level, width, lanes: width };
    let form = match &plan.form {
        Form::Affine(pattern) => {
            let lanes: Box<[i32]> = vectors.relative(pattern, 0).into();
            match lanes.iter().all(|lane| *lane == 0) {
                true => Form::Same,
                false => Form::Affine(Affine {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn affine(lanes: impl Fn(i32) -> i32, rows: impl Fn(i32) -> i32, warps: i32) -> Affine {
        let rows: Box<[i32]> = (0..32 * warps).map(rows).collect();
        let rows = if rows.iter().all(|row| *row == 0) { Box::default() } else { rows };
        Affine { by_chunk: false, align: 4, lanes: (0..32 * warps).map(lanes).collect(), rows }
    }

    /// An element in a row of a CTA of 64 x 4 threads: two warps for each row.
    #[test]
    fn warps_of_a_rectangle_are_alike() {
        let part = warp_part(&affine(|t| t % 64 * 4, |t| t / 64, 8), 16).expect("warps are alike");
        assert_eq!(part.pattern.lanes.to_vec(), (0..32).map(|lane| 4 * lane).collect::<Vec<i32>>());
        assert!(part.pattern.rows.is_empty());
        assert_eq!(part.lanes, Steps { by: 128, shift: 0, mask: 1 });
        assert_eq!(part.rows, Steps { by: 1, shift: 1, mask: u64::MAX });
    }

    /// A CTA of 16 x 16 threads: two rows for each warp.
    #[test]
    fn rows_within_a_warp_stay() {
        let part = warp_part(&affine(|t| t % 16 * 4, |t| t / 16, 8), 16).expect("warps are alike");
        assert_eq!(part.pattern.rows.to_vec(), (0..32).map(|lane| lane / 16).collect::<Vec<i32>>());
        assert_eq!((part.lanes.by, part.rows), (0, Steps { by: 2, shift: 0, mask: u64::MAX }));
    }

    /// A CTA of 48 x 4 threads: rows end within warps.
    #[test]
    fn warps_that_differ_have_no_part() {
        assert!(warp_part(&affine(|t| t % 48 * 4, |t| t / 48, 6), 16).is_none());
    }
}
