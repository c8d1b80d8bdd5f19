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
use ptx::ir::{Inst, Src};
use std::rc::Rc;

impl Emit<'_> {
    /// How an instruction is lowered, if it is.
    pub(super) fn lowering(&mut self, site: Site, inst: &Inst) -> Option<Rc<Lowering>> {
        let env = self.env;
        let known = self.lowerings.entry(site);
        known.or_insert_with(|| lower::choose(inst, &env).map(Rc::new)).clone()
    }

    /// Finds the values that may be loose: results of arithmetic, and copies of such. Where a copy may also be of bits that nobody computed
    /// as a number (an integer, what memory held), it must keep these, so none of it is loose.
    pub(super) fn find_loose(&mut self) {
        let plan = self.job.plan;
        let count = plan.kinds.len();
        // What a value is made of: itself, by arithmetic or as a constant number, or copies.
        let mut loose = vec![false; count];
        let mut pure = vec![false; count];
        let mut copies: Vec<(Name, Vec<Name>)> = Vec::new();
        for zero in &plan.zeros {
            pure[zero.0 as usize] = true;
        }
        for node in &plan.nodes {
            copies.extend(node.phis.iter().map(|phi| (phi.def, phi.from.clone())));
            for op in &node.ops {
                match &op.kind {
                    OpKind::SelectMask | OpKind::SelectPred { .. } => {
                        copies.push((op.defs[0], op.uses[1..].to_vec()));
                    }
                    OpKind::Inst(site) => {
                        let Some(inst) = site.inst(self.job.function) else { continue };
                        let Some(lowering) = self.lowering(*site, inst) else { continue };
                        let constants = inst.srcs.iter().enumerate().all(|(at, src)| match src {
                            Src::Imm(bits) => (*bits as u32) & 0x7fff_ffff <= 0x7f80_0000,
                            Src::Reg(_) => true,
                            _ => !bit(lowering.copied_srcs, at as u32),
                        });
                        let names = registers(inst).zip(&op.uses[1..]);
                        let copied = names.filter(|(src, _)| bit(lowering.copied_srcs, *src));
                        let copied: Vec<Name> = copied.map(|(_, name)| *name).collect();
                        for def in &op.defs {
                            if lowering.loose_nan {
                                loose[def.0 as usize] = true;
                                pure[def.0 as usize] = true;
                            } else if lowering.copied_srcs != 0 && constants {
                                // Where an instruction has several results, each may be the copy.
                                copies.push((*def, copied.clone()));
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        copies.iter().for_each(|(def, _)| pure[def.0 as usize] = true);
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (def, from) in &copies {
                if pure[def.0 as usize] && !from.iter().all(|name| pure[name.0 as usize]) {
                    pure[def.0 as usize] = false;
                    changed = true;
                }
            }
        }
        changed = true;
        while std::mem::take(&mut changed) {
            for (def, from) in &copies {
                let def = def.0 as usize;
                if pure[def] && !loose[def] && from.iter().any(|name| loose[name.0 as usize]) {
                    loose[def] = true;
                    changed = true;
                }
            }
        }
        self.loose = loose;
    }

    /// A chunk of a value that `def` copies: as loose as that may be.
    pub(super) fn chunk_for(&mut self, def: Name, name: Name, chunk: u32) -> Value {
        if self.is_loose(def) { self.loose_chunk(name, chunk) } else { self.chunk(name, chunk) }
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
