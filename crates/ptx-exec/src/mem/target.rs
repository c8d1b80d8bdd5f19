//! The cells of one access, after they were checked.
//!
//! Invariant: a [`Target`] is made by `View::resolve` alone, which checked each lane's bytes to lie in an allocation or window, and
//! aligned. So [`Target::each`] may visit them without looking again.

use super::{Cell, Place};
use crate::lanes::{FULL, LANES, Lane, LaneMask, lanes_of};

/// The addresses of a warp's access.
#[derive(Clone, Copy, Debug)]
pub enum Addresses<'a> {
    /// The same in all lanes (in `.local`, the same offset in each lane's memory).
    Same(u64),
    /// Each lane's, and an offset added to all.
    Lanes(&'a Lane<u64>, u64),
}

impl<'a> From<&'a Lane<u64>> for Addresses<'a> {
    fn from(lanes: &'a Lane<u64>) -> Self {
        Addresses::Lanes(lanes, 0)
    }
}

impl Addresses<'_> {
    /// One lane's address.
    #[inline(always)]
    pub fn at(&self, lane: usize) -> u64 {
        match self {
            Addresses::Same(address) => *address,
            Addresses::Lanes(lanes, offset) => lanes.0[lane].wrapping_add(*offset),
        }
    }

    /// Every lane's address.
    pub(super) fn all(&self) -> Lane<u64> {
        match self {
            Addresses::Same(address) => Lane::splat(*address),
            Addresses::Lanes(lanes, offset) => Lane(lanes.0.map(|address| address.wrapping_add(*offset))),
        }
    }
}

/// The checked cells of an access.
pub(super) struct Target<'a> {
    pub(super) cells: Cells<'a>,
    pub(super) mask: LaneMask,
    /// Size of one lane's access.
    pub(super) bytes: u64,
    /// Whether the cells belong to this warp's CTA alone.
    pub(super) own: bool,
    /// Whether they lie in local memory.
    pub(super) private: bool,
}

/// Where the cells are.
pub(super) enum Cells<'a> {
    /// One after another from there; all lanes.
    Run(u64),
    /// All at one address.
    Same(u64),
    /// Each lane's address and that.
    Shifted(&'a Lane<u64>, u64),
    /// From the first, so far from lane to lane.
    Spread(u64, u64),
    /// Each lane's address, added to what `Spread` is.
    Strided(&'a Lane<u64>, u64, u64),
    /// Listed.
    Each(Box<Lane<u64>>),
}

impl Target<'_> {
    /// Calls `f` with the cell of each lane, lowest lane first. `element` is the offset of the cell in the lane's access.
    #[inline(always)]
    pub(super) fn each<T: Cell>(&self, element: u64, mut f: impl FnMut(usize, Place<T>)) {
        debug_assert!(element + T::BYTES <= self.bytes);
        // SAFETY: `resolve` checked `bytes` bytes from each lane's address to lie in an allocation or window, which are
        // committed while the view keeps the memory alive, and to be a multiple of `bytes`; the element lies inside them.
        let at = |address: u64| unsafe { Place::new(address.wrapping_add(element)) };
        // Plain loops: iterators' `for_each` is not always inlined, and this is the hottest code there is.
        match &self.cells {
            Cells::Run(base) => {
                for lane in 0..LANES {
                    f(lane, at(base + lane as u64 * self.bytes));
                }
            }
            Cells::Same(base) => {
                for lane in lanes_of(self.mask) {
                    f(lane, at(*base));
                }
            }
            Cells::Shifted(lanes, delta) if self.mask == FULL => {
                for lane in 0..LANES {
                    f(lane, at(lanes.0[lane].wrapping_add(*delta)));
                }
            }
            Cells::Shifted(lanes, delta) => {
                for lane in lanes_of(self.mask) {
                    f(lane, at(lanes.0[lane].wrapping_add(*delta)));
                }
            }
            Cells::Spread(base, stride) => {
                for lane in lanes_of(self.mask) {
                    f(lane, at(base + lane as u64 * stride));
                }
            }
            Cells::Strided(lanes, base, stride) => {
                for lane in lanes_of(self.mask) {
                    f(lane, at(lanes.0[lane].wrapping_add(base.wrapping_add(lane as u64 * stride))));
                }
            }
            Cells::Each(list) => {
                for lane in lanes_of(self.mask) {
                    f(lane, at(list.0[lane]));
                }
            }
        }
    }

    /// Calls `f` with the two words of each lane's 16 bytes, lowest lane first.
    pub(super) fn pairs(&self, mut f: impl FnMut(usize, [Place<u64>; 2])) {
        self.each(0, |lane, low: Place<u64>| {
            assert!(self.bytes == 16);
            // SAFETY: `resolve` checked 16 bytes from a multiple of 16 on, of which `each` gives the first eight.
            let high = unsafe { Place::new(low.number() + 8) };
            f(lane, [low, high]);
        });
    }

    /// The one cell, if all lanes have the same.
    #[inline(always)]
    pub(super) fn same<T: Cell>(&self, element: u64) -> Option<Place<T>> {
        debug_assert!(element + T::BYTES <= self.bytes);
        match self.cells {
            // SAFETY: as in `each`.
            Cells::Same(base) => Some(unsafe { Place::new(base + element) }),
            _ => None,
        }
    }

    /// The cells of all lanes as words of eight bytes, if they follow each other and begin at a multiple of eight.
    #[inline(always)]
    pub(super) fn words(&self) -> Option<impl Fn(usize) -> Place<u64>> {
        match self.cells {
            Cells::Run(base) if base.is_multiple_of(8) => {
                let words = LANES * self.bytes as usize / 8;
                Some(move |word: usize| {
                    assert!(word < words);
                    // SAFETY: as in `each`; a run is LANES * bytes bytes from `base`, of which this word is a part.
                    unsafe { Place::new(base + 8 * word as u64) }
                })
            }
            _ => None,
        }
    }
}

/// Which addresses are allowed: at most `limit` (below 2^63) from `start`, and multiples of `bytes`, a power of two that `start` is
/// a multiple of.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) start: u64,
    pub(super) limit: u64,
    pub(super) bytes: u64,
}

/// What the addresses of a warp look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All inside, each `bytes` after the one before, in all lanes.
    Run,
    /// All inside and the same.
    Same,
    /// All inside.
    Scattered,
    /// At least one is not allowed.
    Bad,
}

/// The shape of the addresses of the lanes of `mask` (not empty), each plus `offset`.
#[inline]
pub(super) fn shape(lanes: &Lane<u64>, mask: LaneMask, offset: u64, bounds: Bounds) -> Shape {
    debug_assert!(bounds.start.is_multiple_of(bounds.bytes) && bounds.limit >> 63 == 0);
    if mask != FULL {
        return shape_of_some(lanes, mask, offset, bounds);
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { shape_avx2(lanes, offset, bounds) };
    }
    shape_of_all(lanes, offset, bounds)
}

/// [`shape_of_all`], compiled for twice as wide vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn shape_avx2(lanes: &Lane<u64>, offset: u64, bounds: Bounds) -> Shape {
    shape_of_all(lanes, offset, bounds)
}

#[inline(always)]
fn shape_of_all(lanes: &Lane<u64>, offset: u64, Bounds { start, limit, bytes }: Bounds) -> Shape {
    let first = lanes.0[0];
    let step = lanes.0[1].wrapping_sub(first);
    let shift = offset.wrapping_sub(start);
    if step == bytes || step == 0 {
        let mut strange = 0;
        for lane in 2..LANES {
            strange |= lanes.0[lane].wrapping_sub(lanes.0[lane - 1]) ^ step;
        }
        if strange == 0 {
            let (from, length) = (first.wrapping_add(shift), (LANES as u64 - 1) * step);
            let inside = from <= limit && length <= limit - from && from & (bytes - 1) == 0;
            return match (inside, step) {
                (false, _) => Shape::Bad,
                (true, 0) => Shape::Same,
                (true, _) => Shape::Run,
            };
        }
    }
    // Without comparisons, which vectors of unsigned 64-bit numbers are bad at: a distance over the limit, or the rest
    // of the limit, has its highest bit set. Distance and address have the same low bits.
    let (mut distances, mut rests) = (0, 0);
    for address in &lanes.0 {
        let distance = address.wrapping_add(shift);
        distances |= distance;
        rests |= limit.wrapping_sub(distance);
    }
    if (distances | rests) >> 63 == 0 && distances & (bytes - 1) == 0 { Shape::Scattered } else { Shape::Bad }
}

fn shape_of_some(
    lanes: &Lane<u64>,
    mask: LaneMask,
    offset: u64,
    Bounds { start, limit, bytes }: Bounds,
) -> Shape {
    let first = lanes.0[mask.trailing_zeros() as usize % LANES];
    let shift = offset.wrapping_sub(start);
    let (mut distances, mut rests, mut differ) = (0, 0, 0);
    for lane in lanes_of(mask) {
        let distance = lanes.0[lane].wrapping_add(shift);
        distances |= distance;
        rests |= limit.wrapping_sub(distance);
        differ |= lanes.0[lane] ^ first;
    }
    match ((distances | rests) >> 63 == 0 && distances & (bytes - 1) == 0, differ) {
        (false, _) => Shape::Bad,
        (true, 0) => Shape::Same,
        (true, _) => Shape::Scattered,
    }
}
