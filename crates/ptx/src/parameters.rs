//! Loads of kernel parameters through registers become loads that name the parameter buffer.
//!
//! Compilers take the address of a parameter that is a structure, and load its members through a register:
//! `mov.b64 %rd1, p; ld.param.u32 %r1, [%rd1+4];`. As `ld.param.u32 %r1, [p+4]` the load is known to be of a
//! constant, and needs neither the register nor a check.
//!
//! Invariant: the program keeps the rules of [`crate::ir`], and every load has the result that it had. An
//! address is followed through registers that are written once, before they are read. Loads beyond the
//! buffer, misaligned ones, and those with a memory order stay as they are, and so do the instructions that
//! made the address.
//!
//! Callers that check accesses against single parameters do not call this: it keeps no trace of the parameter
//! that an address was made from.

use crate::analysis::written_once::written_once;
use crate::check::module::FunctionKind;
use crate::ir::{Addr, Base, Block, Dst, Function, Inst, Program, Reg, Src};
use crate::isa::{Op, Sem, Slot, Space, Word};
use std::collections::BTreeMap;

/// The most instructions that an address is followed through.
const STEPS: usize = 32;

/// Names the parameter buffer in the loads of all kernels.
pub fn name_parameters(program: &mut Program) {
    for function in &mut program.functions {
        if function.kind != FunctionKind::Entry || !function.blocks.iter().any(takes_address) {
            continue;
        }
        for (block, index, offset) in loads(function) {
            let inst = &mut function.blocks[block].insts[index];
            inst.mods = inst.mods.with(Slot::Ss, Word::Param);
            inst.srcs[0] = Src::Addr(Addr { base: Base::KernelParam, index: None, offset });
        }
    }
}

/// Whether a block takes the address of a parameter.
fn takes_address(block: &Block) -> bool {
    let parameter = |src: &Src| matches!(src, Src::Addr(Addr { base: Base::KernelParam, .. }));
    block.insts.iter().any(|inst| matches!(inst.op, Op::Mov | Op::Cvta) && inst.srcs.iter().any(parameter))
}

/// The loads of parameters through registers: block, index, and offset in the buffer.
fn loads(function: &Function) -> Vec<(usize, usize, i64)> {
    let search = Search { function, written: written_once(function) };
    let mut found = Vec::new();
    for (at, block) in function.blocks.iter().enumerate() {
        for (index, inst) in block.insts.iter().enumerate() {
            found.extend(search.offset(inst).map(|offset| (at, index, offset)));
        }
    }
    found
}

struct Search<'a> {
    function: &'a Function,
    /// Registers that are written once, before they are read.
    written: BTreeMap<Reg, (usize, usize)>,
}

impl Search<'_> {
    /// The offset in the parameter buffer that an instruction loads from, if it is a load to be rewritten.
    fn offset(&self, inst: &Inst) -> Option<i64> {
        let space = inst.mods.space();
        if inst.op != Op::Ld
            || inst.mods.sem() != Sem::Weak
            || !matches!(space, Space::Param | Space::Generic)
        {
            return None;
        }
        let (reg, more) = match inst.srcs.as_slice() {
            [Src::Reg(reg)] => (*reg, 0),
            [Src::Addr(Addr { base: Base::Reg(reg), index: None, offset })] => (*reg, *offset),
            _ => return None,
        };
        let (of, offset) = self.address(reg)?;
        let offset = offset.checked_add(more)?;
        let bytes = i64::from(inst.mods.ty().bits() / 8) * i64::from(inst.mods.vec());
        let fits = bytes > 0
            && offset >= 0
            && offset % bytes == 0
            && offset.checked_add(bytes)? <= i64::from(self.function.param_bytes);
        (of == space && fits).then_some(offset)
    }

    /// The offset in the parameter buffer that a register is the address of, and the state space of that
    /// address: parameter space, or generic.
    fn address(&self, mut reg: Reg) -> Option<(Space, i64)> {
        let (mut space, mut offset) = (Space::Param, 0_i64);
        for _ in 0..STEPS {
            let (block, index) = *self.written.get(&reg)?;
            let inst = &self.function.blocks[block].insts[index];
            let source = match (inst.op, inst.srcs.as_slice()) {
                (Op::Mov, [source]) if matches!(inst.dsts.as_slice(), [Dst::Reg(_)]) => source,
                (Op::Cvta, [source]) if inst.mods.space() == Space::Param && space == Space::Param => {
                    space = Space::Generic;
                    source
                }
                (Op::Add, [source, Src::Imm(bits)] | [Src::Imm(bits), source])
                    if inst.mods.ty().bits() == 64 =>
                {
                    offset = offset.checked_add(*bits as i64)?;
                    source
                }
                _ => return None,
            };
            match source {
                Src::Reg(next) => reg = *next,
                Src::Addr(Addr { base: Base::KernelParam, index: None, offset: more }) => {
                    return Some((space, offset.checked_add(*more)?));
                }
                _ => return None,
            }
        }
        None
    }
}
