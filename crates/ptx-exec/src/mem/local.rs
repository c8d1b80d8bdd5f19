//! Local memory of a warp's lanes: how it lies in the warp's window.
//!
//! As on GPUs, the words of all lanes at one offset are neighbours ([`LocalLayout::ByWord`]), so that an
//! access of all lanes at one offset is an access to consecutive memory. Observers that follow addresses need
//! bytes at the addresses that kernels see; for them, each lane's memory is contiguous
//! ([`LocalLayout::Apart`]).
//!
//! Invariant: kernels do not see the layout. A `.local` address is an offset in the lane's memory, and its
//! generic address is the window's start plus the lane's number times the size of a lane's memory, plus the
//! offset.

use super::cell::Cell;
use super::{Place, Window};
use crate::lanes::LANES;
use crate::watch::NativeNeeds;

/// Bytes of a word.
pub const LOCAL_WORD: u64 = 4;
/// The distance between words of one lane, where words of all lanes are neighbours.
pub const LOCAL_ROW: u64 = LOCAL_WORD * LANES as u64;

/// The layout of the local memories of a warp's lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LocalLayout {
    /// The memory of each lane is contiguous.
    #[default]
    Apart,
    /// The words of all lanes at one offset are neighbours, and rows of words follow one another.
    ByWord,
}

impl LocalLayout {
    /// The layout for launches of a kernel whose native code must do this.
    pub fn of(needs: &NativeNeeds) -> Self {
        match needs {
            NativeNeeds::Nothing => LocalLayout::ByWord,
            NativeNeeds::Checks(_) | NativeNeeds::Events(_) => LocalLayout::Apart,
        }
    }
}

/// Local memory of a warp's lanes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Local {
    /// Address of the window.
    pub(super) start: u64,
    /// Bytes of each lane's memory: a multiple of 16.
    pub(super) stride: u64,
    /// Bytes in use per lane: up to the end of the running activation's frame.
    pub(super) top: u64,
    pub(super) layout: LocalLayout,
}

impl Local {
    /// The address in the process of a byte of a lane's memory.
    #[inline(always)]
    pub(super) fn place(&self, lane: usize, offset: u64) -> u64 {
        match self.layout {
            LocalLayout::Apart => self.origin(lane).wrapping_add(offset),
            LocalLayout::ByWord => {
                let row = offset / LOCAL_WORD * LOCAL_ROW;
                self.start + row + lane as u64 * LOCAL_WORD + offset % LOCAL_WORD
            }
        }
    }

    /// The generic address of a lane's memory.
    #[inline(always)]
    pub(super) fn origin(&self, lane: usize) -> u64 {
        self.start + lane as u64 * self.stride
    }

    /// The offset in a lane's memory of a generic address.
    #[inline(always)]
    pub(super) fn offset(&self, lane: usize, address: u64) -> u64 {
        address.wrapping_sub(self.origin(lane))
    }

    /// A cell of an access of a lane: `first` is the address of the access's first byte, and `element` the
    /// offset of the cell in the access.
    ///
    /// # Safety
    /// The bytes of the access must lie in this local memory, whose window outlives every use of the cell.
    /// The access is aligned to its size, and the element to its own.
    #[inline(always)]
    pub(super) unsafe fn spot<T: Cell>(&self, first: u64, element: u64) -> Spot<T> {
        let at = match self.layout {
            LocalLayout::Apart => first + element,
            // An access that has several words begins with a word.
            LocalLayout::ByWord => first + element / LOCAL_WORD * LOCAL_ROW + element % LOCAL_WORD,
        };
        match self.has_halves::<T>() {
            // SAFETY: the caller guarantees that the bytes are there and aligned: two words in neighbouring
            // rows.
            true => Spot::Halves([at, at + LOCAL_ROW].map(|word| unsafe { Place::new(word) })),
            // SAFETY: the caller guarantees that the bytes are there and aligned.
            false => Spot::Whole(unsafe { Place::new(at) }),
        }
    }

    /// Whether a cell is two words in neighbouring rows.
    #[inline(always)]
    pub(super) fn has_halves<T: Cell>(&self) -> bool {
        self.layout == LocalLayout::ByWord && T::BYTES > LOCAL_WORD
    }

    /// Makes the first bytes of each lane's memory new.
    pub(super) fn clear(self, window: &mut Window, bytes: u64) {
        match self.layout {
            LocalLayout::Apart => {
                for lane in 0..LANES as u64 {
                    window.clear(lane * self.stride..lane * self.stride + bytes);
                }
            }
            LocalLayout::ByWord => window.clear_rows(bytes.div_ceil(LOCAL_WORD)),
        }
    }
}

/// The cell of a lane.
#[derive(Clone, Copy)]
pub(super) enum Spot<T> {
    Whole(Place<T>),
    /// Two words of local memory, the lower one first.
    Halves([Place<u32>; 2]),
}

impl<T: Cell> Spot<T> {
    /// Relaxed load.
    #[inline(always)]
    pub(super) fn load(self) -> T {
        match self {
            Spot::Whole(place) => place.load(),
            Spot::Halves([low, high]) => T::narrow(u64::from(low.load()) | u64::from(high.load()) << 32),
        }
    }

    /// Relaxed store.
    #[inline(always)]
    pub(super) fn store(self, value: T) {
        match self {
            Spot::Whole(place) => place.store(value),
            Spot::Halves([low, high]) => {
                low.store(value.widen() as u32);
                high.store((value.widen() >> 32) as u32);
            }
        }
    }

    /// Replaces the value by `f(old)`, unless that is `None`. Returns the old and the new value. No other
    /// thread accesses local memory.
    #[inline(always)]
    pub(super) fn update(self, f: impl Fn(T) -> Option<T>) -> (T, Option<T>) {
        match self {
            Spot::Whole(place) => place.update(f),
            Spot::Halves(_) => {
                let old = self.load();
                let new = f(old);
                if let Some(new) = new {
                    self.store(new);
                }
                (old, new)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{FULL, Lane};
    use crate::mem::{Addresses, Class, Fill, Memory, View};
    use ptx::check::module::AddressSize;
    use ptx::isa::{Sem, Space};
    use std::sync::Arc;

    const BYTES: u64 = 64;

    /// A view with this many bytes of local memory for each lane, and its window.
    fn view(memory: &Arc<Memory>, layout: LocalLayout) -> (View, Window) {
        let window = memory.local_window(BYTES * LANES as u64).expect("memory");
        let mut view = View::new(memory);
        view.set_local(window.start(), BYTES, layout);
        view.set_local_top(BYTES);
        (view, window)
    }

    fn memory() -> Arc<Memory> {
        Memory::new(AddressSize::Bits64).expect("addresses")
    }

    fn lanes<T>(f: impl Fn(u64) -> T) -> Lane<T> {
        Lane(std::array::from_fn(|lane| f(lane as u64)))
    }

    /// The bytes of a lane, one by one, by its own addresses and by generic ones.
    fn bytes(view: &mut View, lane: usize) -> Vec<u8> {
        let own = view.read_bytes(Space::Local, lane, 0, BYTES).expect("inside");
        let start = view.origin(Space::Local, lane);
        assert_eq!(view.read_bytes(Space::Generic, lane, start, BYTES).expect("inside"), own);
        own
    }

    #[test]
    fn each_lane_reads_what_it_wrote_whatever_the_size() {
        for layout in [LocalLayout::Apart, LocalLayout::ByWord] {
            let memory = memory();
            let (mut view, _window) = view(&memory, layout);
            let weak = Sem::Weak;
            // Eight bytes at one offset, four at offsets of the lanes, vectors, and single bytes.
            let long = lanes(|l| 0x1122_3344_5566_7788 ^ l << 56 ^ l);
            view.store_at(Space::Local, 8, FULL, weak, &long).expect("inside");
            let word = lanes(|l| 0xa0b0_c0d0 ^ l as u32);
            let at = lanes(|l| 16 + 4 * (l % 4));
            view.store(Space::Local, &at, FULL, weak, &word).expect("inside");
            let pair = [lanes(|l| l ^ 7 << 40), lanes(|l| !l)];
            view.store_vector(Space::Local, Addresses::Same(32), FULL, weak, [&pair[0], &pair[1]])
                .expect("inside");
            view.store(Space::Local, &lanes(|l| 48 + l % 16), 0x00ff_ff00, weak, &lanes(|l| l as u8))
                .expect("inside");
            for lane in 0..LANES {
                let mut want = vec![0; BYTES as usize];
                want[8..16].copy_from_slice(&long.0[lane].to_le_bytes());
                let at = at.0[lane] as usize;
                want[at..at + 4].copy_from_slice(&word.0[lane].to_le_bytes());
                for (k, pair) in pair.iter().enumerate() {
                    want[32 + 8 * k..40 + 8 * k].copy_from_slice(&pair.0[lane].to_le_bytes());
                }
                if (8..24).contains(&lane) {
                    want[48 + lane % 16] = lane as u8;
                }
                assert_eq!(bytes(&mut view, lane), want, "lane {lane}, {layout:?}");
            }
            let mut read = Lane::<u64>::splat(0);
            view.load(Space::Local, &lanes(|_| 8), FULL, weak, &mut read).expect("inside");
            assert_eq!(read.0, long.0);
            assert_eq!(view.load_one::<u64>(Space::Local, 5, 8).expect("inside"), long.0[5]);
            view.store_one(Space::Local, 5, 56, 99_u64).expect("inside");
            assert_eq!(view.load_one::<u64>(Space::Local, 5, 56).expect("inside"), 99);
        }
    }

    #[test]
    fn some_lanes_may_access_local_and_others_global_memory() {
        for layout in [LocalLayout::Apart, LocalLayout::ByWord] {
            let memory = memory();
            let (mut view, _window) = view(&memory, layout);
            let global = memory.alloc(Class::Global, 8 * LANES as u64, 256, "buffer").expect("room");
            let own: Vec<u64> = (0..LANES).map(|lane| view.origin(Space::Local, lane)).collect();
            let at = lanes(|l| if l % 2 == 0 { own[l as usize] + 24 } else { global + 8 * l });
            let value = lanes(|l| l << 32 | 5);
            view.store(Space::Generic, &at, FULL, Sem::Weak, &value).expect("inside");
            let old =
                view.atomic(Space::Generic, &at, FULL, Sem::Relaxed, |_, old: u64| Some(old + (1 << 33)));
            assert_eq!(old.expect("inside").0, value.0);
            let mut read = Lane::<u64>::splat(0);
            view.load(Space::Generic, &at, FULL, Sem::Weak, &mut read).expect("inside");
            assert_eq!(read.0, lanes(|l| value.0[l as usize] + (1 << 33)).0, "{layout:?}");
            // Another lane's local memory is out of bounds.
            let other = lanes(|l| own[l as usize ^ 1]);
            assert!(view.store(Space::Generic, &other, FULL, Sem::Weak, &value).is_err());
        }
    }

    #[test]
    fn memory_that_is_made_new_begins_with_zeros_or_the_pattern() {
        for (layout, pattern) in
            [(LocalLayout::ByWord, false), (LocalLayout::ByWord, true), (LocalLayout::Apart, true)]
        {
            let memory = memory();
            if pattern {
                assert!(memory.set_fill(Fill::new(&[1, 2, 3]).expect("a pattern")));
            }
            let (mut view, mut window) = view(&memory, layout);
            view.store_at(Space::Local, 0, FULL, Sem::Weak, &Lane::splat(0x5555_5555_u32)).expect("inside");
            view.clear_local(&mut window, 20);
            let want: Vec<u8> = (0..20).map(|at| if pattern { at % 3 + 1 } else { 0 }).collect();
            for lane in [0, 1, 31] {
                assert_eq!(bytes(&mut view, lane)[..20], want, "{layout:?}");
            }
        }
    }
}
