//! Matrix instructions: products, loads, stores and transpositions of fragments.
//!
//! Invariants: native code is for the whole warp, so it is in the full copy of a block only; in other copies
//! the block ends before the instruction, and the interpreter executes it or reports the fault. An access is
//! made after the comparison with bounds that other accesses make ([`super::load_store`]).

mod memory;
mod permute;
mod product;
#[cfg(test)]
mod tests;

use super::{Codegen, LANES, Repr};
use crate::isel::matrix::{Plan, Side};
use crate::llvm::{Type, Value};
use crate::wir::{self, BlockId, Op, Shape};
use product::Emitter;
use ptx::ir::{Dst, Inst, RegClass, Src};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// How many unpacked matrices of one size are kept at a time. Chosen: a warp that computes 64 by 64 elements
/// reads four fragments of A and eight of B in a step.
const KEPT: usize = 8;

/// The most registers of a fragment.
const REGISTERS: u32 = 8;

/// Stack memory and unpacked matrices of a function.
#[derive(Default)]
pub(super) struct Matrices {
    /// Memory for the registers of a fragment: sources and results.
    rooms: Option<[Value; 2]>,
    /// For each size in bytes, memory for unpacked matrices.
    unpacked: BTreeMap<usize, Kept>,
    /// The block that the unpacked matrices belong to.
    block: Option<BlockId>,
    /// How products are computed, by name.
    plans: HashMap<String, Option<Rc<Plan>>>,
}

/// Unpacked matrices of one size, the least recently used first.
#[derive(Default)]
struct Kept {
    matrices: Vec<(Matrix, Value)>,
    free: Vec<Value>,
}

/// An unpacked matrix: the name of its product, its side, and the registers of its fragment.
type Matrix = (String, Side, Vec<wir::Value>);

impl Codegen<'_> {
    /// Whether all 32 lanes of the one warp execute the operation, and its results are vectors.
    fn is_whole_warp(&self, op: &Op) -> bool {
        let plain = |def: &wir::Value| matches!(self.shape(*def), Shape::Varying);
        self.job.shape.team == 1 && self.whole(op) && op.defs.iter().all(plain)
    }

    /// `mma` and `wmma.mma`.
    pub(super) fn matrix_product(&mut self, inst: &Inst, op: &Op) -> bool {
        let name = format!("{}{}", inst.row.form().mnemonic, inst.mods);
        let env = self.env;
        let plan = self.passes.matrices.plans.entry(name.clone());
        let Some(plan) = plan.or_insert_with(|| Plan::of(&inst.mods, &env).map(Rc::new)).clone() else {
            return false;
        };
        let product = &plan.product;
        let counts = [&product.a, &product.b, &product.c].map(|fragment| fragment.registers());
        let registers: usize = counts.iter().sum();
        let words = |reg: &ptx::ir::Reg| reg.class == RegClass::R32;
        let plain = inst.srcs.len() == registers
            && inst.srcs.iter().all(|src| matches!(src, Src::Reg(reg) if words(reg)))
            && inst.dsts.len() == product.d.registers()
            && inst.dsts.iter().all(|dst| matches!(dst, Dst::Reg(reg) if words(reg)))
            && (op.uses.len(), op.defs.len()) == (1 + registers, product.d.registers());
        if !plain {
            return false;
        }
        if !self.is_whole_warp(op) {
            return false;
        }
        self.applied("matrix", "a product of vectors");
        let (a, rest) = op.uses[1..].split_at(counts[0]);
        let (b, c) = rest.split_at(counts[1]);
        let a = self.unpacked(&plan, &name, Side::A, a);
        let b = self.unpacked(&plan, &name, Side::B, b);
        let [from, to] = self.rooms();
        self.store_fragment(c, from);
        let multiply = self.emitter().multiply(&plan, &name);
        self.b.call_function(multiply, &[a, b, from, to]);
        self.load_fragment(&op.defs, to);
        true
    }

    fn emitter(&self) -> Emitter<'_, '_> {
        Emitter { b: &self.b, env: self.env }
    }

    /// Memory for the registers of two fragments.
    fn rooms(&mut self) -> [Value; 2] {
        if let Some(rooms) = self.passes.matrices.rooms {
            return rooms;
        }
        let bytes = REGISTERS * LANES * 4;
        let rooms = [(); 2].map(|()| self.stack(bytes));
        self.passes.matrices.rooms = Some(rooms);
        rooms
    }

    /// Stack memory of the function.
    fn stack(&self, bytes: u32) -> Value {
        let here = self.b.current_block();
        self.b.position_at_end(self.passes.chunk_loops.rooms);
        let place = self.b.alloca(self.b.vec(self.int(8), bytes), 64);
        self.b.position_at_end(here);
        place
    }

    fn word_vector(&self) -> Type {
        self.b.vec(self.int(32), self.width)
    }

    /// Stores registers one after the other.
    fn store_fragment(&mut self, registers: &[wir::Value], to: Value) {
        for (at, register) in registers.iter().enumerate() {
            for c in 0..self.chunks() {
                let chunk = self.chunk(*register, c);
                let offset = (at as u32 * LANES + c * self.width) * 4;
                self.b.store(chunk, self.b.offset(to, offset.into()), self.width * 4);
            }
        }
    }

    /// Defines registers that lie one after the other.
    fn load_fragment(&mut self, registers: &[wir::Value], from: Value) {
        let ty = self.word_vector();
        for (at, register) in registers.iter().enumerate() {
            let load = |c: u32| {
                let offset = (at as u32 * LANES + c * self.width) * 4;
                self.b.load(ty, self.b.offset(from, offset.into()), self.width * 4)
            };
            let chunks = (0..self.chunks()).map(load).collect();
            self.values.define(*register, Repr::Chunks(chunks));
        }
    }

    /// The unpacked matrix of a fragment.
    fn unpacked(&mut self, plan: &Plan, name: &str, side: Side, registers: &[wir::Value]) -> Value {
        if !self.is_dominated_by(self.passes.matrices.block) {
            // Code of another block need not have been executed before this one.
            for kept in self.passes.matrices.unpacked.values_mut() {
                kept.free.extend(kept.matrices.drain(..).map(|(_, place)| place));
            }
        }
        self.passes.matrices.block = self.position.node;
        let unpack = self.emitter().unpack(plan, name, side);
        let matrix = (name.to_owned(), side, registers.to_vec());
        let bytes = plan.unpacked_bytes(side);
        let kept = self.passes.matrices.unpacked.entry(bytes).or_default();
        if let Some(at) = kept.matrices.iter().position(|(known, _)| *known == matrix) {
            let found = kept.matrices.remove(at);
            let place = found.1;
            kept.matrices.push(found);
            return place;
        }
        let place = match kept.free.pop() {
            Some(place) => place,
            None if kept.matrices.len() < KEPT => self.stack(bytes as u32),
            None => kept.matrices.remove(0).1,
        };
        let [from, _] = self.rooms();
        self.store_fragment(registers, from);
        self.b.call_function(unpack, &[from, place]);
        self.passes.matrices.unpacked.entry(bytes).or_default().matrices.push((matrix, place));
        place
    }

    /// Whether every path to the block that is emitted leads through that block.
    fn is_dominated_by(&self, block: Option<BlockId>) -> bool {
        let mut at = self.position.node;
        while at != block {
            let Some(BlockId(here)) = at else { return false };
            let [from] = self.job.func.blocks[here as usize].preds[..] else { return false };
            at = Some(from);
        }
        at.is_some()
    }
}
