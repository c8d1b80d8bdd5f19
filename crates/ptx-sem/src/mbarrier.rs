//! Barriers in memory, `mbarrier`: the effect of each operation on the 64-bit object (PTX ISA 7.0).
//!
//! The manual leaves the object opaque. Here bits 0 to 19 are the pending arrivals of the phase, bits 20 to
//! 39 the arrivals that each phase expects, and the higher bits the number of the phase. A state is the
//! object before an arrival.
//!
//! **Invariant:** a phase without pending arrivals is complete, and the next one begins in the same step. If
//! the manual leaves the result undefined (more arrivals than pending, an object that was not initialized),
//! the result is some object.

/// The width of a count: a barrier expects at most 2^20 - 1 arrivals.
const BITS: u32 = 20;
const COUNT: u64 = (1 << BITS) - 1;

/// The object, from its parts.
#[inline]
fn object(phase: u64, expected: u64, lacking: u64) -> u64 {
    phase << (2 * BITS) | (expected & COUNT) << BITS | lacking & COUNT
}

/// The phase, the expected and the pending arrivals.
#[inline]
fn parts(object: u64) -> (u64, u64, u64) {
    (object >> (2 * BITS), object >> BITS & COUNT, object & COUNT)
}

/// `mbarrier.init`: a barrier in phase 0 whose phases need `count` arrivals.
///
/// # Source
/// PTX ISA 7.0, `mbarrier.init`.
#[inline]
#[must_use]
pub fn mbarrier_init(count: u32) -> u64 {
    object(0, count.into(), count.into())
}

/// `mbarrier.arrive`: the object after `count` arrivals.
///
/// # Source
/// PTX ISA 7.0, `mbarrier.arrive`.
#[inline]
#[must_use]
pub fn mbarrier_arrive(barrier: u64, count: u32) -> u64 {
    let (phase, expected, lacking) = parts(barrier);
    match lacking.saturating_sub(count.into()) {
        0 => object(phase.wrapping_add(1), expected, expected),
        lacking => object(phase, expected, lacking),
    }
}

/// `mbarrier.arrive_drop`: the object after `count` arrivals, which later phases do not expect.
///
/// # Source
/// PTX ISA 7.0, `mbarrier.arrive_drop`.
#[inline]
#[must_use]
pub fn mbarrier_arrive_drop(barrier: u64, count: u32) -> u64 {
    let (phase, expected, lacking) = parts(barrier);
    mbarrier_arrive(object(phase, expected.saturating_sub(count.into()), lacking), count)
}

/// `mbarrier.test_wait`: whether the phase of a state is complete.
///
/// # Source
/// PTX ISA 7.0, `mbarrier.test_wait`.
#[inline]
#[must_use]
pub fn mbarrier_test_wait(barrier: u64, state: u64) -> bool {
    parts(barrier).0 != parts(state).0
}

/// `mbarrier.test_wait.parity`: whether the phase with this parity, which is the current or the previous one,
/// is complete.
///
/// # Source
/// PTX ISA 7.1, `mbarrier.test_wait`.
#[inline]
#[must_use]
pub fn mbarrier_test_wait_parity(barrier: u64, parity: u32) -> bool {
    parts(barrier).0 & 1 != u64::from(parity & 1)
}

/// `mbarrier.pending_count`: the number of pending arrivals in a state.
///
/// # Source
/// PTX ISA 7.0, `mbarrier.pending_count`.
#[inline]
#[must_use]
pub fn mbarrier_pending_count(state: u64) -> u32 {
    parts(state).2 as u32
}
