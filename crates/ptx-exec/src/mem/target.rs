//! The cells of one access, after the bounds checks.
//!
//! Invariant: only `View::resolve` makes a [`Target`], after it has checked that each lane's bytes lie in an
//! allocation or window and are aligned. So [`Target::each`] visits the cells without further checks.

use super::local::{Local, Spot};
use super::{Cell, Place};
use crate::lanes::{FULL, LANES, Lane, LaneMask, lanes_of};

/// The addresses of a warp's access.
#[derive(Clone, Copy, Debug)]
pub enum Addresses<'a> {
    /// The same address in all lanes; in `.local`, the same offset in each lane's memory.
    Same(u64),
    /// An address per lane, plus a common offset.
    Lanes(&'a Lane<u64>, u64),
}

impl<'a> From<&'a Lane<u64>> for Addresses<'a> {
    fn from(lanes: &'a Lane<u64>) -> Self {
        Addresses::Lanes(lanes, 0)
    }
}

impl Addresses<'_> {
    /// The address of one lane.
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
    /// Whether only this warp's CTA can access the cells.
    pub(super) own: bool,
    /// Whether they are in local memory.
    pub(super) private: bool,
}

/// The addresses of the cells.
pub(super) enum Cells<'a> {
    /// Consecutive from this address on; all lanes.
    Run(u64),
    /// The same address in all lanes.
    Same(u64),
    /// An address per lane, plus this offset.
    Shifted(&'a Lane<u64>, u64),
    /// The same offset, which is checked, in each lane's local memory.
    SameLocal(Local, u64),
    /// An offset per lane in its local memory, plus this offset.
    Local(Local, &'a Lane<u64>, u64),
    /// A generic address per lane in its local memory, plus this offset.
    OwnLocal(Local, &'a Lane<u64>, u64),
    /// A list of addresses, and the lanes whose cells are in local memory.
    Each(Box<Lane<u64>>, Local, LaneMask),
}

impl Target<'_> {
    /// Calls `f` with the cell of each lane, in ascending order. `element` is the offset of the cell in the
    /// lane's access.
    #[inline(always)]
    pub(super) fn each<T: Cell>(&self, element: u64, mut f: impl FnMut(usize, Spot<T>)) {
        debug_assert!(element + T::BYTES <= self.bytes);
        // SAFETY: `resolve` checked that `bytes` bytes from each lane's address lie in an allocation or
        // window, which stays committed while the view holds the memory, and that the address is a multiple
        // of `bytes`. The element lies inside these bytes.
        let at = |address: u64| Spot::Whole(unsafe { Place::new(address.wrapping_add(element)) });
        // SAFETY: as above, for a lane's bytes in local memory.
        let in_local = |local: Local, first: u64| unsafe { local.spot(first, element) };
        // Plain loops, because `for_each` of iterators is not always inlined and this code is very hot.
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
            Cells::SameLocal(local, offset) => {
                for lane in lanes_of(self.mask) {
                    f(lane, in_local(*local, local.place(lane, *offset)));
                }
            }
            Cells::Local(local, lanes, delta) => {
                for lane in lanes_of(self.mask) {
                    f(lane, in_local(*local, local.place(lane, lanes.0[lane].wrapping_add(*delta))));
                }
            }
            Cells::OwnLocal(local, lanes, delta) => {
                for lane in lanes_of(self.mask) {
                    let address = lanes.0[lane].wrapping_add(*delta);
                    f(lane, in_local(*local, local.place(lane, local.offset(lane, address))));
                }
            }
            Cells::Each(list, local, locals) => {
                for lane in lanes_of(self.mask) {
                    let address = list.0[lane];
                    f(lane, if locals >> lane & 1 != 0 { in_local(*local, address) } else { at(address) });
                }
            }
        }
    }

    /// Calls `f` with the two words of each lane's 16 bytes, in ascending order of lanes.
    pub(super) fn pairs(&self, mut f: impl FnMut(usize, [Spot<u64>; 2])) {
        let mut lows = [None; LANES];
        self.each(0, |lane, low| lows[lane] = Some(low));
        self.each(8, |lane, high| f(lane, [lows[lane].expect("ptxvm bug: a lane without a word"), high]));
    }

    /// The cell that all lanes share, if they have the same address.
    #[inline(always)]
    pub(super) fn same<T: Cell>(&self, element: u64) -> Option<Place<T>> {
        debug_assert!(element + T::BYTES <= self.bytes);
        match self.cells {
            // SAFETY: as in `each`.
            Cells::Same(base) => Some(unsafe { Place::new(base + element) }),
            _ => None,
        }
    }

    /// The cells of all lanes as words of eight bytes, if they are consecutive and begin at a multiple of
    /// eight.
    #[inline(always)]
    pub(super) fn words(&self) -> Option<impl Fn(usize) -> Place<u64>> {
        match self.cells {
            Cells::Run(base) if base.is_multiple_of(8) => {
                let words = LANES * self.bytes as usize / 8;
                Some(move |word: usize| {
                    assert!(word < words);
                    // SAFETY: as in `each`; consecutive cells are LANES * bytes bytes from `base` on, and
                    // this word is one of them.
                    unsafe { Place::new(base + 8 * word as u64) }
                })
            }
            _ => None,
        }
    }
}

/// The allowed addresses: from `start` on, at most `limit` (below 2^63) further, and multiples of `bytes`.
/// `bytes` is a power of two and divides `start`.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) start: u64,
    pub(super) limit: u64,
    pub(super) bytes: u64,
}

/// The pattern of the addresses of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All in bounds and consecutive: each `bytes` after the one before, in all lanes.
    Run,
    /// All in bounds and equal.
    Same,
    /// All in bounds.
    Scattered,
    /// At least one is not allowed.
    Bad,
}

/// The pattern of the addresses of the lanes of `mask`, which is not empty, each plus `offset`.
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

/// [`shape_of_all`], compiled for 256-bit vectors.
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
    // Avoids comparisons of unsigned 64-bit numbers, which vector units lack: if a distance or the rest of
    // the limit is negative, its sign bit is set. Distance and address have the same low bits.
    let (mut distances, mut rests) = (0, 0);
    for address in &lanes.0 {
        let distance = address.wrapping_add(shift);
        distances |= distance;
        rests |= limit.wrapping_sub(distance);
    }
    if (distances | rests) >> 63 == 0 && distances & (bytes - 1) == 0 { Shape::Scattered } else { Shape::Bad }
}

/// Whether each lane of `mask` has an address, plus `offset`, that one of two ranges allows. Both allow
/// accesses of the same size.
pub(super) fn is_in_either(lanes: &Lane<u64>, mask: LaneMask, offset: u64, either: [Bounds; 2]) -> bool {
    let bytes = either[0].bytes;
    debug_assert!(either.iter().all(|range| range.bytes == bytes && range.start.is_multiple_of(bytes)));
    let mut strange = 0;
    for lane in lanes_of(mask) {
        let address = lanes.0[lane].wrapping_add(offset);
        // The sign bit is set outside of the range, as in `shape_of_all`.
        let [a, b] = either.map(|range| {
            let distance = address.wrapping_sub(range.start);
            distance | range.limit.wrapping_sub(distance)
        });
        strange |= (a & b) >> 63 | address & (bytes - 1);
    }
    strange == 0
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
