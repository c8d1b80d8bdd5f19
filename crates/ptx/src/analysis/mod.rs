//! Facts about a program: pure functions of [`ir::Program`](crate::ir::Program).
//!
//! Invariant: nothing here changes a program. A fact depends only on the program and on the assumptions that
//! are passed in. Nodes of graphs are block numbers.
//!
//! * [`mod@cfg`]: the control-flow graph
//! * [`dominators`]: dominators of the nodes of a graph
//! * [`def_use`]: a numbering of registers
//! * [`liveness`]: registers that may still be read
//! * [`calls`]: functions that a kernel can reach
//! * [`mod@written_once`]: registers whose value is the same wherever it is read

pub mod bits;
pub mod calls;
pub mod cfg;
pub mod def_use;
pub mod dominators;
pub mod liveness;
pub mod written_once;
