//! Which functions a kernel may come to.
//!
//! Invariant: a function that a launch of the kernel can execute is among [`reachable`].

use crate::check::module::FuncId;
use crate::ir::{Callee, Program, Terminator};

/// Functions with a body that the kernel can reach: itself, what it calls, and what an indirect call may reach.
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
