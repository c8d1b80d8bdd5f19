//! Barriers in memory, `mbarrier`: what each operation makes of the 64 bits of the object (PTX ISA 7.0).
//!
//! The manual leaves the object opaque. Here the arrivals that the phase lacks are in bits 0 to 19, those that each phase expects in
//! bits 20 to 39, and the number of the phase above. A state is the object as it was before an arrival.
//!
//! **Invariant:** a phase that lacks nothing is over: the next one begins in the same step. What the manual leaves undefined (more
//! arrivals than are lacking, an object that was not initialised) gives some object.

/// Bits of a count; a barrier expects at most 2^20 - 1 arrivals.
const BITS: u32 = 20;
const COUNT: u64 = (1 << BITS) - 1;

/// The object, from its parts.
#[inline]
fn object(phase: u64, expected: u64, lacking: u64) -> u64 {
    phase << (2 * BITS) | (expected & COUNT) << BITS | lacking & COUNT
}

/// Phase, expected and lacking arrivals.
#[inline]
fn parts(object: u64) -> (u64, u64, u64) {
    (object >> (2 * BITS), object >> BITS & COUNT, object & COUNT)
}

/// `mbarrier.init`: a barrier whose phases need that many arrivals, in phase 0.
///
/// # Source
/// PTX ISA 7.0, `mbarrier.init`.
#[inline]
#[must_use]
pub fn mbarrier_init(count: u32) -> u64 {
    object(0, count.into(), count.into())
}

/// `mbarrier.arrive`: the object after so many arrivals.
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

/// `mbarrier.arrive_drop`: the object after so many arrivals that are not expected from the next phase on.
///
/// # Source
/// PTX ISA 7.0, `mbarrier.arrive_drop`.
#[inline]
#[must_use]
pub fn mbarrier_arrive_drop(barrier: u64, count: u32) -> u64 {
    let (phase, expected, lacking) = parts(barrier);
    mbarrier_arrive(object(phase, expected.saturating_sub(count.into()), lacking), count)
}

/// `mbarrier.test_wait`: whether the phase of a state is over.
///
/// # Source
/// PTX ISA 7.0, `mbarrier.test_wait`.
#[inline]
#[must_use]
pub fn mbarrier_test_wait(barrier: u64, state: u64) -> bool {
    parts(barrier).0 != parts(state).0
}

/// `mbarrier.test_wait.parity`: whether the phase of that parity, which is the current one or the one before, is over.
///
/// # Source
/// PTX ISA 7.1, `mbarrier.test_wait`.
#[inline]
#[must_use]
pub fn mbarrier_test_wait_parity(barrier: u64, parity: u32) -> bool {
    parts(barrier).0 & 1 != u64::from(parity & 1)
}

/// `mbarrier.pending_count`: how many arrivals the phase lacked at a state.
///
/// # Source
/// PTX ISA 7.0, `mbarrier.pending_count`.
#[inline]
#[must_use]
pub fn mbarrier_pending_count(state: u64) -> u32 {
    parts(state).2 as u32
}
