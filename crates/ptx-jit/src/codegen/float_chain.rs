//! Chains of double precision arithmetic: all instructions for a few chunks, then one test for NaNs.
//!
//! Invariants: [`opt::float_chains`](crate::opt::float_chains) has decided what a chain is and which of its
//! results are tested. A result whose bits are read has the bits that the PTX semantics defines; the others
//! may be any NaN where they are a NaN.

use super::inst::Lanes;
use super::{Codegen, Repr};
use crate::isel::{Known, Lower, Lowering, Operand};
use crate::llvm::Value;
use crate::wir;
use crate::wir::{Chain, Op};
use ptx::ir::{Inst, Src};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// An instruction of a chain, with its lowering.
struct Member<'a> {
    op: &'a Op,
    inst: &'a Inst,
    lowering: Rc<Lowering>,
}

impl Codegen<'_> {
    /// Emits a chain. The few chunks that one branch tests are computed before the next ones, so that few
    /// values live.
    pub(super) fn float_chain(&mut self, chain: &Chain, op: &Op) {
        self.remark_op(op);
        let function = self.job.function;
        let mut members = Vec::new();
        for (site, op) in chain.ops.iter().flat_map(Op::insts) {
            let Some(inst) = site.inst(function) else { continue };
            let lowering = self.lowering(site, inst).expect("ptxvm bug: a chain has native code");
            self.values.define(op.defs[0], Repr::Chunks(Vec::new()));
            members.push(Member { op, inst, lowering });
        }
        let exact: Vec<wir::Value> =
            op.defs.iter().copied().filter(|def| !chain.any_nan.contains(def)).collect();
        let mask = self.partial_mask(op);
        let chunks: Vec<u32> = (0..self.chunks()).collect();
        for some in chunks.chunks(self.nan_test_chunks()) {
            let operands: Vec<(u32, Vec<Vec<Operand>>)> =
                some.iter().filter_map(|chunk| Some((*chunk, self.chain_chunk(&members, *chunk)?))).collect();
            let numbers = |value: &wir::Value| -> Vec<(u32, Value)> {
                operands.iter().map(|(chunk, _)| (*chunk, self.made_chunk(*value, *chunk))).collect()
            };
            let tested: Vec<(u32, Value)> = chain.tested.iter().flat_map(numbers).collect();
            let Some(branch) = self.if_nan(&tested, mask) else { continue };
            let (mut before, mut after, mut places) = (Vec::new(), Vec::new(), Vec::new());
            for (chunk, operands) in &operands {
                let values = self.exact_chain(&members, &exact, operands);
                for def in &exact {
                    before.push(self.made_chunk(*def, *chunk));
                    after.push(values[def]);
                    places.push((*def, *chunk));
                }
            }
            let values = self.end_if_nan(branch, &before, &after);
            for ((def, chunk), value) in places.into_iter().zip(values) {
                self.made_chunks(def)[chunk as usize] = value;
            }
        }
    }

    /// Emits all instructions for one chunk, whose NaNs may have any bits. Returns the operands of each;
    /// `None`: no lane is active.
    fn chain_chunk(&mut self, members: &[Member<'_>], chunk: u32) -> Option<Vec<Vec<Operand>>> {
        self.at_chunk(chunk);
        if self.is_beyond(chunk) {
            let zero = self.b.zero(self.b.vec(self.int(64), self.width));
            members.iter().for_each(|member| self.made_chunks(member.op.defs[0]).push(zero));
            return None;
        }
        let mut all = Vec::new();
        for Member { op, inst, lowering } in members {
            let operands = self.operands(inst, op, Lanes::Chunk(chunk));
            let operands = operands.expect("ptxvm bug: a chain reads registers and numbers");
            let mut cx = Lower { any_nan: true, ..self.lower_chunk() };
            let value = lowering.emit(&mut cx, &operands)[0];
            self.made_chunks(op.defs[0]).push(value);
            all.push(operands);
        }
        Some(all)
    }

    /// Computes some results of a chunk again, with the bits that the PTX semantics defines.
    fn exact_chain(
        &self,
        members: &[Member<'_>],
        results: &[wir::Value],
        operands: &[Vec<Operand>],
    ) -> HashMap<wir::Value, Value> {
        let mut needed: HashSet<wir::Value> = results.iter().copied().collect();
        for member in members.iter().rev() {
            if needed.contains(&member.op.defs[0]) {
                needed.extend(&member.op.uses);
            }
        }
        let mut values: HashMap<wir::Value, Value> = HashMap::new();
        for (member, operands) in members.iter().zip(operands) {
            let Member { op, inst, lowering } = member;
            if !needed.contains(&op.defs[0]) {
                continue;
            }
            let mut uses = op.uses.iter().skip(1);
            let exact = |(src, operand): (&Src, &Operand)| match src {
                Src::Reg(_) => match uses.next().and_then(|name| values.get(name)) {
                    Some(value) => Operand::Value(*value, Known::Nothing),
                    None => *operand,
                },
                _ => *operand,
            };
            let operands: Vec<Operand> = inst.srcs.iter().zip(operands).map(exact).collect();
            let value = self.exact_chunk(lowering, inst, &operands);
            values.insert(op.defs[0], value);
        }
        values
    }

    /// The chunks of a result that have been emitted.
    fn made_chunks(&mut self, name: wir::Value) -> &mut Vec<Value> {
        match self.values.change(name) {
            Some(Repr::Chunks(chunks)) => chunks,
            _ => unreachable!("ptxvm bug: a result of a chain is a vector for each chunk"),
        }
    }

    fn made_chunk(&self, name: wir::Value, chunk: u32) -> Value {
        match self.rep(name) {
            Repr::Chunks(chunks) => chunks[chunk as usize],
            _ => unreachable!("ptxvm bug: a result of a chain is a vector for each chunk"),
        }
    }
}
