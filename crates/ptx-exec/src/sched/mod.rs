//! The scheduler: warps of a CTA on one OS thread, CTAs of a grid on several.
//!
//! The warps of a CTA run round-robin. Each runs until it stops at a barrier, exits, or has used up its slice
//! ([`crate::interp`]). A CTA whose warps only poll memory is suspended with all its state, and its thread
//! starts or resumes other CTAs. So CTAs may wait for each other, even for CTAs with higher numbers and with
//! a single thread. If all warps of a CTA wait for each other, this is reported as a deadlock. A CTA that
//! polls memory forever runs until a limit.
//!
//! **Deviations from hardware**: a CTA that waits for another CTA which cannot become resident (see
//! [`grid`]'s memory budget) never finishes. GPUs behave alike, but far fewer CTAs are resident there.
//!
//! **Schedules are values**: with one thread, the same launch with the same seed has the same schedule. Seed
//! 0 is the natural order. Other seeds permute the order of warps and CTAs, and vary the lengths of slices.

mod barrier;
mod coarse;
#[cfg(test)]
mod coarse_tests;
mod cta;
mod grace;
mod grid;
mod launching;
mod native_cta;
mod native_frames;
mod portion;
mod seed;
#[cfg(test)]
mod tests;
mod worker;

pub(crate) use grid::{Outcome, RESIDENT_BYTES, run_grid};
pub(crate) use launching::{CtaCache, GridRun, GridTrap};
