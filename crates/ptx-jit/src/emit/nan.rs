//! Which values may hold any NaN of single precision where 0x7fffffff is meant.
//!
//! Arithmetic does not look at the bits of a NaN, so its results stay as the machine has them ([`Lowering::loose_nan`]) until something
//! sees their bits: a store, an integer instruction, the warp frame, another lane.
//!
//! Invariant: [`Emit::scalar`], [`Emit::base`] and [`Emit::chunk`] give exact bits; who takes the loose ones asks for them by name.

use super::Emit;
use crate::llvm::Value;
use crate::lower::{self, Lower, Lowering};
use crate::plan::{Name, OpKind, Site};
use ptx::ir::Inst;
use std::rc::Rc;

impl Emit<'_> {
    /// How an instruction is lowered, if it is.
    pub(super) fn lowering(&mut self, site: Site, inst: &Inst) -> Option<Rc<Lowering>> {
        let env = self.env;
        let known = self.lowerings.entry(site);
        known.or_insert_with(|| lower::choose(inst, &env).map(Rc::new)).clone()
    }

    /// Finds the values that may be loose.
    pub(super) fn find_loose(&mut self) {
        let plan = self.job.plan;
        let mut loose = vec![false; plan.kinds.len()];
        loop {
            let mut changed = false;
            let mut set = |loose: &mut Vec<bool>, def: Name, value: bool| {
                let old = &mut loose[def.0 as usize];
                changed |= value && !*old;
                *old |= value;
            };
            for node in &plan.nodes {
                for phi in &node.phis {
                    let any = phi.from.iter().any(|name| loose[name.0 as usize]);
                    set(&mut loose, phi.def, any);
                }
                for op in &node.ops {
                    match &op.kind {
                        OpKind::SelectMask | OpKind::SelectPred { .. } => {
                            let any = op.uses[1..].iter().any(|name| loose[name.0 as usize]);
                            set(&mut loose, op.defs[0], any);
                        }
                        OpKind::Inst(site) => {
                            let Some(inst) = site.inst(self.job.function) else { continue };
                            let Some(lowering) = self.lowering(*site, inst) else { continue };
                            let names = op.uses[1..].iter();
                            let mut copied =
                                registers(inst).zip(names).filter(|(src, _)| bit(lowering.copied_srcs, *src));
                            let any = lowering.loose_nan || copied.any(|(_, name)| loose[name.0 as usize]);
                            // Where an instruction has several results, each may be the copy.
                            for def in &op.defs {
                                set(&mut loose, *def, any);
                            }
                        }
                        _ => {}
                    }
                }
            }
            if !changed {
                break;
            }
        }
        self.loose = loose;
    }

    /// Whether a value may hold any NaN.
    pub(super) fn is_loose(&self, name: Name) -> bool {
        self.loose.get(name.0 as usize).copied().unwrap_or(false)
    }

    /// The exact bits of a loose value.
    pub(super) fn exact(&self, value: Value) -> Value {
        let lanes = value.ty().lanes();
        let cx = Lower { b: &self.b, env: self.env, lanes, carry_in: None, carry_out: None };
        cx.canonical_f32(value)
    }
}

/// By register that the instruction reads: which source it stands in.
fn registers(inst: &Inst) -> impl Iterator<Item = u32> {
    let mut sources = Vec::new();
    for (at, src) in inst.srcs.iter().enumerate() {
        src.for_each_reg(&mut |_| sources.push(at as u32));
    }
    sources.into_iter()
}

/// Whether a set of sources holds that one.
pub(super) fn bit(set: u32, source: u32) -> bool {
    source < 32 && set >> source & 1 != 0
}
