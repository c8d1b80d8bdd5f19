//! The functions that a kernel can reach.
//!
//! Invariant: every function that a launch of the kernel can execute is in [`reachable`].

use crate::check::module::FuncId;
use crate::ir::{Callee, Program, Src, Terminator};

/// Functions with a body that the kernel can reach: itself, its callees, and the possible targets of indirect
/// calls.
pub fn reachable(program: &Program, kernel: FuncId) -> Vec<FuncId> {
    let mut seen = vec![false; program.functions.len()];
    let mut found = Vec::new();
    let mut queue = vec![kernel];
    while let Some(id) = queue.pop() {
        let Some(function) = program.functions.get(id.0 as usize) else { continue };
        if function.blocks.is_empty() || std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        found.push(id);
        for block in &function.blocks {
            if let Terminator::Call(call) = &block.term {
                match &call.callee {
                    Callee::Direct(callee) => queue.push(*callee),
                    Callee::Indirect { allowed: Some(allowed), .. } => queue.extend(allowed),
                    Callee::Indirect { allowed: None, .. } => {
                        queue.extend((0..program.functions.len() as u32).map(FuncId));
                    }
                }
            }
        }
    }
    found
}

/// Whether a launch of the kernel may read a clock, in the kernel or in a function that it can reach. PTX ISA
/// §10.16 ff.
pub fn reads_clocks(program: &Program, kernel: FuncId) -> bool {
    let functions = reachable(program, kernel);
    let functions = functions.iter().filter_map(|id| program.functions.get(id.0 as usize));
    let mut insts = functions.flat_map(|function| &function.blocks).flat_map(|block| &block.insts);
    insts.any(|inst| inst.srcs.iter().any(|src| matches!(src, Src::Sreg(sreg, _) if sreg.is_clock())))
}
