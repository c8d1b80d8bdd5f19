//! Which `.f32` values may hold any NaN where the canonical 0x7fffffff is meant.
//!
//! Arithmetic does not depend on the bits of a NaN. So its results keep the NaN of the processor
//! ([`Lowering::loose_nan`]) until something observes the bits: a store, an integer instruction, the warp
//! frame, another lane.
//!
//! Invariant: a value that may also be bits which were not computed as a number is none of them.

use crate::isel::{self, Env, Lowering};
use crate::wir::{Func, Kind, OpKind, Site, Value};
use ptx::analysis::bits::BitSet;
use ptx::analysis::def_use::Registers;
use ptx::ir::{Function, Inst, Reg, RegClass, Src};
use ptx::isa::Op;
use std::collections::HashMap;
use std::rc::Rc;

/// How instructions are lowered, as far as that was asked.
#[derive(Default)]
pub(crate) struct Lowerings(HashMap<Site, Option<Rc<Lowering>>>);

impl Lowerings {
    /// The lowering of an instruction, if it has one.
    pub(crate) fn of(&mut self, site: Site, inst: &Inst, env: &Env) -> Option<Rc<Lowering>> {
        self.0.entry(site).or_insert_with(|| isel::choose(inst, env).map(Rc::new)).clone()
    }
}

/// For each value, whether it may be a non-canonical NaN.
pub(crate) fn find(func: &Func, function: &Function, env: &Env, lowerings: &mut Lowerings) -> Vec<bool> {
    Search { function, env, lowerings }.find(func)
}

/// What the values are found by.
struct Search<'a> {
    function: &'a Function,
    env: &'a Env,
    lowerings: &'a mut Lowerings,
}

impl Search<'_> {
    /// Finds the values that may be non-canonical NaNs: results of arithmetic, and copies of these. A value
    /// that may also be a copy of bits that were not computed as a number (an integer, or bits from memory)
    /// must keep these bits, so it is never non-canonical.
    fn find(&mut self, func: &Func) -> Vec<bool> {
        let count = func.kinds.len();
        let raw = self.raw_registers();
        let registers = Registers::new(self.function);
        let word = |name: &Value| func.kinds[name.0 as usize] == Kind::Reg(RegClass::R32);
        // The sources of a value: its own arithmetic or constant, or the values it copies.
        let mut loose = vec![false; count];
        let mut pure = vec![false; count];
        let mut copies: Vec<(Value, Vec<Value>)> = Vec::new();
        // Values that were saved in memory, in canonical form.
        let mut kept: Vec<(Value, Value)> = Vec::new();
        for zero in &func.zeros {
            pure[zero.0 as usize] = true;
        }
        for node in &func.blocks {
            copies.extend(node.phis.iter().map(|phi| (phi.def, phi.from.clone())));
            for op in &node.ops {
                match &op.kind {
                    OpKind::SelectMask | OpKind::SelectPred { .. } => {
                        copies.push((op.defs[0], op.uses[1..].to_vec()));
                    }
                    OpKind::Load(reg) => {
                        let bits = &raw[node.block as usize];
                        pure[op.defs[0].0 as usize] = !bits.contains(registers.number(*reg));
                    }
                    OpKind::Restore(resume, reg) => {
                        kept.extend(func.kept(*resume, *reg).map(|name| (op.defs[0], name)));
                    }
                    OpKind::Inst(site) => {
                        let Some(inst) = site.inst(self.function) else { continue };
                        match self.made(*site, inst) {
                            Made::Number => {
                                for def in op.defs.iter().filter(|def| word(def)) {
                                    loose[def.0 as usize] = true;
                                    pure[def.0 as usize] = true;
                                }
                            }
                            Made::Copy(sources) => {
                                let names = source_registers(inst).zip(&op.uses[1..]);
                                let copied = names.filter(|((src, _), _)| bit(sources, *src));
                                let copied: Vec<Value> = copied.map(|(_, name)| *name).collect();
                                // If an instruction has several results, each may be the copy.
                                let defs = op.defs.iter().filter(|def| word(def));
                                copies.extend(defs.map(|def| (*def, copied.clone())));
                            }
                            Made::Bits => {}
                        }
                    }
                    _ => {}
                }
            }
        }
        copies.iter().for_each(|(def, _)| pure[def.0 as usize] = true);
        kept.iter().for_each(|(def, _)| pure[def.0 as usize] = true);
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (def, from) in &copies {
                if pure[def.0 as usize] && !from.iter().all(|name| pure[name.0 as usize]) {
                    pure[def.0 as usize] = false;
                    changed = true;
                }
            }
            for (def, from) in &kept {
                if pure[def.0 as usize] && !pure[from.0 as usize] {
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
        loose
    }

    /// For each block, the registers that may hold bits that were not computed as a number. This follows from
    /// the program on every path, so it also holds for warp frames that the interpreter wrote.
    fn raw_registers(&mut self) -> Vec<BitSet> {
        match self.raw_if(false) {
            (raw, false) => raw,
            // Divergent lanes may exchange values through different shuffles: a number in one of them is bits
            // in the other.
            (_, true) => self.raw_if(true).0,
        }
    }

    /// As [`Search::raw_registers`], under the assumption that the results of shuffles are bits
    /// (`shuffled`), or that their sources decide; and whether a shuffle takes bits.
    fn raw_if(&mut self, shuffled: bool) -> (Vec<BitSet>, bool) {
        let function = self.function;
        let mut bits = false;
        let registers = Registers::new(function);
        let mut raw = vec![BitSet::new(registers.len()); function.blocks.len()];
        // The parameters of a function, and registers that the host wrote.
        (0..registers.len()).for_each(|number| {
            raw[0].insert(number);
        });
        let mut work: Vec<usize> = (0..function.blocks.len()).rev().collect();
        while let Some(block) = work.pop() {
            let content = &function.blocks[block];
            let mut here = raw[block].clone();
            for index in 0..=content.insts.len() {
                let site = Site { block: block as u32, index: index as u32 };
                let Some(inst) = content.insts.get(index) else {
                    let made = match content.term.inst() {
                        Some(inst) => self.made(site, inst),
                        None => Made::Bits,
                    };
                    let number = match (made, content.term.inst()) {
                        (Made::Copy(sources), Some(inst)) => are_numbers(inst, sources, registers, &here),
                        (Made::Number | Made::Copy(_) | Made::Bits, _) => false,
                    };
                    let shuffles = content.term.inst().is_some_and(|inst| inst.op == Op::ShflSync);
                    bits |= shuffles && !number;
                    let number = number && !(shuffles && shuffled);
                    content.term.for_each_def(&mut |reg| set(&mut here, registers.number(reg), !number));
                    continue;
                };
                let number = match self.made(site, inst) {
                    Made::Number => true,
                    Made::Copy(sources) => are_numbers(inst, sources, registers, &here),
                    Made::Bits => false,
                };
                let guarded = inst.guard.is_some();
                inst.for_each_def(&mut |reg| {
                    let reg = registers.number(reg);
                    let was = guarded && here.contains(reg);
                    set(&mut here, reg, !number || was);
                });
            }
            for next in content.term.successors() {
                let next = next.0 as usize;
                if raw[next].union(&here) && !work.contains(&next) {
                    work.push(next);
                }
            }
        }
        (raw, bits)
    }

    /// How the results of an instruction arise.
    fn made(&mut self, site: Site, inst: &Inst) -> Made {
        // Values of other lanes are copies too.
        let copied = if inst.op == Op::ShflSync {
            1
        } else {
            match self.lowerings.of(site, inst, self.env) {
                None => return Made::Bits,
                Some(lowering) if lowering.loose_nan => return Made::Number,
                Some(lowering) => lowering.copied_srcs,
            }
        };
        let constants = inst.srcs.iter().enumerate().all(|(at, src)| match src {
            Src::Imm(bits) => !bit(copied, at as u32) || (*bits as u32) & 0x7fff_ffff <= 0x7f80_0000,
            Src::Reg(_) => true,
            _ => !bit(copied, at as u32),
        });
        if copied != 0 && constants { Made::Copy(copied) } else { Made::Bits }
    }
}

/// How the results of an instruction arise.
#[derive(Clone, Copy)]
enum Made {
    /// As a computed number; the lowering leaves a NaN as the processor computed it.
    Number,
    /// As a copy of one of the sources in the set.
    Copy(u32),
    /// As any bits.
    Bits,
}

/// Whether the sources in the set are computed numbers, given the registers that may hold other bits.
fn are_numbers(inst: &Inst, sources: u32, registers: Registers, raw: &BitSet) -> bool {
    source_registers(inst).all(|(src, reg)| !bit(sources, src) || !raw.contains(registers.number(reg)))
}

fn set(bits: &mut BitSet, number: usize, value: bool) {
    if value {
        bits.insert(number);
    } else {
        bits.remove(number);
    }
}

/// The registers that the instruction reads, each with the index of its source.
fn source_registers(inst: &Inst) -> impl Iterator<Item = (u32, Reg)> {
    let mut sources = Vec::new();
    for (at, src) in inst.srcs.iter().enumerate() {
        src.for_each_reg(&mut |reg| sources.push((at as u32, reg)));
    }
    sources.into_iter()
}

/// Whether a set of sources contains a source.
pub(crate) fn bit(set: u32, source: u32) -> bool {
    source < 32 && set >> source & 1 != 0
}
