//! A schedule as a number: the choices that vary from seed to seed.
//!
//! Invariant: the same seed gives the same choices in the same order.

use crate::interp::{GROUP_QUANTUM, WARP_SLICE};

/// CTAs are permuted within windows of this size, so that resident CTAs have close numbers.
const WINDOW: u64 = 64;

/// The choices of one CTA.
#[derive(Clone, Debug)]
pub(super) struct Seed {
    /// The seed; 0 is the natural order.
    seed: u64,
    state: u64,
}

/// One step of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Seed {
    /// The choices of CTA `cta`.
    pub(super) fn new(seed: u64, cta: u64) -> Self {
        let mut state = seed;
        let state = mix(&mut state) ^ cta.wrapping_mul(0x2545_f491_4f6c_dd1d);
        Self { seed, state }
    }

    /// Whether the schedule is the natural one.
    pub(super) fn is_natural(&self) -> bool {
        self.seed == 0
    }

    /// Chooses the order of `n` warps in the next round.
    pub(super) fn order(&mut self, order: &mut Vec<u32>, n: u32) {
        order.clear();
        order.extend(0..n);
        if self.seed != 0 {
            shuffle(order, &mut self.state);
        }
    }

    /// Chooses the slice of a warp and the quantum of a group.
    pub(super) fn budget(&mut self) -> (i64, i64) {
        if self.seed == 0 {
            return (WARP_SLICE, GROUP_QUANTUM);
        }
        let bits = mix(&mut self.state);
        (1 << (bits % 14), 1 << (bits >> 8 & 15))
    }
}

fn shuffle<T>(list: &mut [T], state: &mut u64) {
    for i in (1..list.len()).rev() {
        let j = (mix(state) % (i as u64 + 1)) as usize;
        list.swap(i, j);
    }
}

/// The CTA that starts at position `index` of `count`.
pub(super) fn permute(seed: u64, index: u64, count: u64) -> u64 {
    if seed == 0 {
        return index;
    }
    let first = index / WINDOW * WINDOW;
    let mut window: Vec<u64> = (first..(first + WINDOW).min(count)).collect();
    let mut state = seed ^ first.wrapping_mul(0x9e37_79b9);
    shuffle(&mut window, &mut state);
    window[(index - first) as usize]
}
