//! The machine: warp frames, interpreter, scheduler, barriers, memory and traps.
//!
//! [`bind`] turns a [`ptx::ir::Program`] into bound code ([`bound`]): steps that call lifted `ptx-sem` functions over 32
//! lanes. [`warp`] holds all state of a warp; `interp` runs a warp until it must stop and says why; `sched` runs the
//! warps of a CTA on one OS thread and the CTAs of a grid on several; [`mem`] is the guest's memory.
//!
//! Invariants: a guest address never reaches memory outside the guest's; racy guest accesses are atomics on bytes that
//! [`mem`] owns; nothing that a program does makes this crate panic: it traps ([`trap`]) or finishes.

pub mod bind;
pub mod bound;
mod call;
mod frame;
mod interp;
pub mod lanes;
pub mod launch;
pub mod layout;
pub mod lift;
pub mod mem;
pub mod native;
mod printf;
mod sched;
#[cfg(test)]
mod testkit;
pub mod texture;
pub mod trace;
pub mod trap;
pub mod warp;
pub mod watch;
mod whereabouts;
pub mod wide;
