//! Facts about a program: pure functions of [`ir::Program`](crate::ir::Program).
//!
//! Invariant: nothing here changes a program, and no fact depends on anything but the program and the assumptions that are
//! passed in. Nodes of graphs are block numbers.
//!
//! * [`mod@cfg`]: the control-flow graph and its loops
//! * [`dominators`]: dominators, post-dominators, frontiers
//! * [`def_use`]: where registers are written and read
//! * [`liveness`]: which registers a block's successors may still read
//! * [`calls`]: which functions a kernel may come to
//! * [`uniformity`]: which values and branches are the same in all lanes of a warp, or affine in the lane

pub mod bits;
pub mod calls;
pub mod cfg;
pub mod def_use;
pub mod dominators;
pub mod liveness;
pub mod uniformity;
