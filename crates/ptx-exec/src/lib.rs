//! The machine: warp frames, interpreter, scheduler, barriers, memory and traps.
//!
//! [`bind`] turns a [`ptx::ir::Program`] into bound code ([`bound`]): steps that apply functions of `ptx-sem`
//! to 32 lanes. [`warp`] holds all state of a warp. `interp` runs a warp until it must stop, and returns the
//! reason. `sched` runs the warps of a CTA on one OS thread, and the CTAs of a grid on several. [`mem`] is
//! the guest's memory.
//!
//! Invariants: a guest address never reaches memory outside the guest's. Racy guest accesses are atomics on
//! bytes that [`mem`] owns. No guest program makes this crate panic: the program traps ([`trap`]) or
//! finishes.

mod barrier;
pub mod bind;
pub mod bound;
mod call;
mod class;
mod context;
mod fault_context;
mod frame;
mod interp;
pub mod lanes;
pub mod launch;
pub mod layout;
pub mod lift;
pub mod mem;
pub mod native;
mod pool;
mod printf;
mod sched;
pub mod shadow;
pub mod stamps;
#[cfg(test)]
mod testkit;
pub mod texture;
pub mod trace;
pub mod trap;
pub mod warp;
pub mod watch;
mod watched_cta;
pub mod wide;
