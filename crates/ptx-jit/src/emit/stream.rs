//! What the next CTA will access is fetched while this one runs.
//!
//! CTAs that are neighbours in x run one after another. Each touches a few short pieces of many rows, which no processor foresees; but
//! by how much an address moves from one CTA to the next can often be told from the program: it is the factor of `%ctaid.x` in it.
//!
//! Invariant: a mere hint. Nothing is read or written, no address can be wrong, and where the factor is not known there is no hint.

use super::Emit;
use super::memory::Access;
use crate::llvm::Value;
use crate::plan::{Class, Op, OpKind, Plan};
use ptx::ir::{Addr, Base, Function, Inst, Src};
use ptx::isa::{Half, Op as O, Space, Sreg, Ty};

/// Bytes that are fetched together.
const LINE: u32 = 64;
/// Further away nothing is foreseen.
const FAR: i64 = 1 << 26;

/// By name: by how much the value grows from one CTA to the next one in x, if that is known.
pub(super) fn strides(plan: &Plan, function: &Function) -> Vec<Option<i64>> {
    let mut all: Vec<Option<i64>> = vec![None; plan.kinds.len()];
    for zero in &plan.zeros {
        all[zero.0 as usize] = Some(0);
    }
    // The second round knows what lives across barriers.
    for _ in 0..2 {
        for node in &plan.nodes {
            for phi in &node.phis {
                all[phi.def.0 as usize] = agreed(phi.from.iter().map(|name| all[name.0 as usize]));
            }
            for op in &node.ops {
                let stride = match &op.kind {
                    OpKind::Inst(site) => site.inst(function).and_then(|inst| of_inst(inst, op, plan, &all)),
                    OpKind::Restore(resume, reg) => {
                        let kept = &plan.resumes[*resume as usize].kept;
                        kept.iter().find(|(have, _)| have == reg).and_then(|(_, name)| all[name.0 as usize])
                    }
                    OpKind::SelectMask | OpKind::SelectPred { .. } => {
                        agreed(op.uses[1..].iter().map(|name| all[name.0 as usize]))
                    }
                    _ => None,
                };
                for def in &op.defs {
                    all[def.0 as usize] = stride;
                }
            }
        }
    }
    all
}

/// What all that are known have in common.
fn agreed(strides: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    let mut known = strides.flatten();
    let first = known.next()?;
    known.all(|other| other == first).then_some(first)
}

fn of_inst(inst: &Inst, op: &Op, plan: &Plan, all: &[Option<i64>]) -> Option<i64> {
    let mut next = op.uses[1..].iter();
    let mut strides = Vec::new();
    let mut constants = Vec::new();
    for src in &inst.srcs {
        let (stride, constant) = match src {
            Src::Reg(_) | Src::Not(_) | Src::Addr(Addr { base: Base::Reg(_), index: None, .. }) => {
                let name = next.next()?;
                let constant = match &plan.classes[name.0 as usize] {
                    Class::Uniform(value) => *value,
                    Class::Bottom | Class::Pattern(_) | Class::Varying => None,
                };
                (all[name.0 as usize], constant)
            }
            Src::Imm(bits) => (Some(0), Some(*bits)),
            Src::Sreg(Sreg::Ctaid, 0) => (Some(1), None),
            Src::Absent | Src::Sreg(..) => (Some(0), None),
            Src::Addr(Addr { index: None, .. }) => (Some(0), None),
            Src::Addr(_) | Src::Video(_) => (None, None),
        };
        strides.push(stride);
        constants.push(constant);
    }
    if strides.iter().all(|stride| *stride == Some(0)) {
        return Some(0);
    }
    let of = |at: usize| strides.get(at).copied().flatten();
    let product = |ty: Ty| {
        let factor = |at: usize| {
            let shift = 64u32.saturating_sub(ty.bits());
            constants[at].map(|bits| ((bits << shift) as i64) >> shift)
        };
        match (factor(0), factor(1)) {
            (_, Some(k)) => of(0)?.checked_mul(k),
            (Some(k), _) => of(1)?.checked_mul(k),
            (None, None) => (of(0)? == 0 && of(1)? == 0).then_some(0),
        }
    };
    let found = match inst.op {
        O::Mov | O::Cvt | O::Cvta | O::CvtaTo => of(0),
        O::Add | O::Or => of(0)?.checked_add(of(1)?),
        O::Sub => of(0)?.checked_sub(of(1)?),
        O::Mul if matches!(inst.mods.half(), Some(Half::Lo | Half::Wide)) => product(inst.mods.ty()),
        O::Mad if matches!(inst.mods.half(), Some(Half::Lo | Half::Wide)) => {
            product(inst.mods.ty())?.checked_add(of(2)?)
        }
        O::Shl => constants[1].filter(|k| *k < 32).and_then(|k| of(0)?.checked_mul(1 << k)),
        _ => None,
    };
    found.filter(|stride| stride.abs() < FAR)
}

/// By block: whether it belongs to a loop.
pub(super) fn loops(function: &Function) -> Vec<bool> {
    let mut inside = vec![false; function.blocks.len()];
    for (at, block) in function.blocks.iter().enumerate() {
        for to in block.term.successors() {
            if let Some(body) = inside.get_mut(to.0 as usize..=at) {
                body.fill(true);
            }
        }
    }
    inside
}

impl Emit<'_> {
    /// By how much the addresses of an access move from one CTA to the next, if it is worth a hint.
    pub(super) fn stride(&self, inst: &Inst, op: &Op, access: Access) -> Option<i64> {
        if self.in_loop || !matches!(access.space, Space::Global | Space::Generic) {
            return None;
        }
        let Some(Src::Addr(Addr { base: Base::Reg(_), .. })) = inst.srcs.first() else { return None };
        self.strides[op.uses.get(1)?.0 as usize].filter(|stride| *stride != 0)
    }

    /// Fetches what lanes of a chunk that lie one after another will access in the next CTA.
    pub(super) fn fetch(&self, base: Value, c: u32, access: Access) {
        let Some(stride) = self.fetches else { return };
        let bytes = self.width * access.bytes();
        if !(c * bytes).is_multiple_of(LINE) {
            return;
        }
        for line in (0..bytes).step_by(LINE as usize) {
            let there = self.b.add(base, self.c64(stride.wrapping_add(i64::from(line)) as u64));
            let pointer = self.b.int_to_ptr(there);
            let kept = [self.c32(access.write.into()), self.c32(3), self.c32(1)];
            self.b.intrinsic("llvm.prefetch", &[self.b.ptr()], &[pointer, kept[0], kept[1], kept[2]]);
        }
    }
}
