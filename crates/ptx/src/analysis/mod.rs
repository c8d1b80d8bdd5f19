//! Facts about a program: pure functions of [`ir::Program`](crate::ir::Program).
//!
//! Invariant: nothing here changes a program. A fact depends only on the program and on the assumptions that
//! are passed in. Nodes of graphs are block numbers.
//!
//! * [`mod@cfg`]: the control-flow graph and its loops
//! * [`dominators`]: dominators, post-dominators, frontiers
//! * [`def_use`]: definitions and uses of registers
//! * [`liveness`]: registers that may still be read
//! * [`calls`]: functions that a kernel can reach
//! * [`uniformity`]: values and branches that are uniform over the lanes of a warp, or affine in the lane

pub mod bits;
pub mod calls;
pub mod cfg;
pub mod def_use;
pub mod dominators;
pub mod liveness;
pub mod uniformity;
