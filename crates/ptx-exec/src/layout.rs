//! Where the variables and functions of a program are, for one kernel.
//!
//! Invariant: addresses are in the variable's own space: real addresses for `.global` and `.const`, offsets in the CTA's
//! window for `.shared`.

use ptx::check::module::{FuncId, VarId};

/// Addresses of a program's variables and functions, for one kernel.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// By [`VarId`]; 0 for a variable that the kernel cannot reach.
    pub variables: Vec<u64>,
    /// By [`FuncId`].
    pub functions: Vec<u64>,
    /// Bytes of the kernel's static `.shared` variables; dynamic shared memory starts there, rounded up to 16.
    pub shared_bytes: u32,
}

impl Layout {
    /// The address of a variable in its own space.
    pub fn variable(&self, var: VarId) -> u64 {
        self.variables[var.0 as usize]
    }

    /// The address of a function: the value of `mov d, f`, which an indirect call takes.
    pub fn function(&self, func: FuncId) -> u64 {
        self.functions[func.0 as usize]
    }
}
