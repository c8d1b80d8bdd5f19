//! The scheduler: warps of a CTA on one OS thread, CTAs of a grid on several.
//!
//! A CTA's warps run in turn, each until it stops at a barrier, exits or has spent its slice ([`crate::interp`]). A CTA whose
//! warps only look at memory is set aside with its whole state, and its thread starts or resumes others, in turn; so CTAs may
//! wait for each other, also for one with a higher number, and with a single thread. What can never go on (all warps of a CTA
//! wait for each other) is reported as a deadlock; what spins forever runs until a limit.
//!
//! **Deviations from hardware**: CTAs that wait for others which cannot become resident (see [`grid`]'s memory budget) never
//! finish, as on a GPU, where far fewer are resident.
//!
//! **Schedules are values**: with one thread, the same launch with the same seed runs the same way. Seed 0 is the natural order;
//! any other permutes the order of warps and CTAs and the lengths of turns.

mod barrier;
mod cta;
mod grid;
mod patience;
mod pool;
mod seed;
mod team;
#[cfg(test)]
mod tests;
mod whole;

pub(crate) use grid::{GridRun, GridTrap, Outcome, RESIDENT_BYTES, Rooms, run_grid};
pub(crate) use pool::Pool;
