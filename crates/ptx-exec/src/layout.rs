//! Addresses of the variables and functions of a program, for one kernel.
//!
//! Invariant: an address is in the variable's own state space: a memory address for `.global` and `.const`,
//! an offset in the CTA's window for `.shared`.

use ptx::check::module::{FuncId, VarId};
use ptx::ir::{Addr, Base, Callee, Program, Src, Terminator};
use ptx::isa::{Space, Sreg};
use std::collections::BTreeSet;

/// Addresses of a program's variables and functions, for one kernel.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// By [`VarId`]; 0 for a variable that the kernel does not use.
    pub variables: Vec<u64>,
    /// By [`FuncId`].
    pub functions: Vec<u64>,
    /// Bytes of the kernel's static `.shared` variables, rounded up to where dynamic shared memory starts.
    pub shared_bytes: u32,
    /// The part of these bytes, at the start, that is reserved for the system
    /// (`%reserved_smem_offset_begin`); 0 if the kernel does not read it.
    pub reserved_bytes: u32,
}

impl Layout {
    /// The address of a variable in its own state space.
    pub fn variable(&self, var: VarId) -> u64 {
        self.variables[var.0 as usize]
    }

    /// The address of a function: the value of `mov d, f`, for indirect calls.
    pub fn function(&self, func: FuncId) -> u64 {
        self.functions[func.0 as usize]
    }
}

impl Layout {
    /// Places the `.shared` variables that `kernel` can reach, in the order of the text. `variables` holds
    /// the addresses of all other variables, `functions` those of functions. All unsized (dynamic) variables
    /// start at the end of the sized ones, rounded up to their alignment and at least to 16.
    pub fn for_kernel(
        program: &Program,
        kernel: FuncId,
        mut variables: Vec<u64>,
        functions: Vec<u64>,
    ) -> Self {
        let used = used_variables(program, kernel);
        let reserved_bytes = if reads_reserved(program, kernel) { Sreg::RESERVED_SMEM } else { 0 };
        let shared = || {
            program
                .variables
                .iter()
                .enumerate()
                .filter(|(id, v)| v.space == Space::Shared && used.contains(&(*id as u32)))
        };
        let mut end = u64::from(reserved_bytes);
        for (id, variable) in shared().filter(|(_, v)| v.bytes != 0) {
            let start = end.next_multiple_of(u64::from(variable.align.max(1)));
            variables[id] = start;
            end = start + variable.bytes;
        }
        let align = shared().map(|(_, v)| u64::from(v.align)).max().unwrap_or(1).max(16);
        let end = end.next_multiple_of(align);
        for (id, _) in shared().filter(|(_, v)| v.bytes == 0) {
            variables[id] = end;
        }
        // A size beyond the window is refused at launch; here it only has to remain large.
        Self { variables, functions, shared_bytes: u32::try_from(end).unwrap_or(u32::MAX), reserved_bytes }
    }
}

/// The variables that functions reachable from `kernel` name.
pub(crate) fn used_variables(program: &Program, kernel: FuncId) -> BTreeSet<u32> {
    let mut used = BTreeSet::new();
    each_source(program, kernel, |src| {
        if let Src::Addr(Addr { base: Base::Var(var), .. }) = src {
            used.insert(var.0);
        }
    });
    used
}

/// Whether functions reachable from `kernel` read the offset of reserved shared memory.
fn reads_reserved(program: &Program, kernel: FuncId) -> bool {
    let mut reads = false;
    each_source(program, kernel, |src| {
        reads |= matches!(src, Src::Sreg(sreg, _) if sreg.reserved_smem().is_some());
    });
    reads
}

/// Calls `see` with the sources of all instructions of functions reachable from `kernel`.
fn each_source(program: &Program, kernel: FuncId, mut see: impl FnMut(&Src)) {
    let mut seen = BTreeSet::new();
    let mut queue = vec![kernel];
    while let Some(id) = queue.pop() {
        let Some(function) = program.functions.get(id.0 as usize) else { continue };
        if !seen.insert(id) {
            continue;
        }
        for block in &function.blocks {
            for inst in block.insts.iter().chain(block.term.inst()) {
                inst.srcs.iter().for_each(&mut see);
            }
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
}
