//! The unit of one access: 1, 2, 4 or 8 bytes.
//!
//! Invariant: a [`Place`] names bytes that are mapped, and aligned for its cell. All plain guest accesses are
//! relaxed atomics of the access's size, so that a racy guest is not undefined behaviour in the host. Races
//! of different sizes on the same bytes are outside of Rust's memory model; on the supported hardware they
//! are ordinary accesses of both sizes.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// A value that one access transfers: `u8`, `u16`, `u32` or `u64`.
pub trait Cell: sealed::Raw + crate::lanes::Bits {}

mod sealed {
    /// Raw accesses of one width.
    pub trait Raw: Copy + Default + PartialEq + Send + Sync + 'static {
        /// Width in bytes.
        const BYTES: u64;
        /// The atomic of that width.
        type Atomic;
        /// Relaxed load.
        fn load(cell: &Self::Atomic) -> Self;
        /// Relaxed store.
        fn store(cell: &Self::Atomic, value: Self);
        /// Relaxed compare and exchange; the error is the current value.
        fn replace(cell: &Self::Atomic, old: Self, new: Self) -> Result<Self, Self>;
        /// Zero-extended.
        fn widen(self) -> u64;
        /// The low bits.
        fn narrow(bits: u64) -> Self;
    }
}
pub(super) use sealed::Raw;

macro_rules! cells {
    ($($int:ty, $atomic:ty;)*) => {$(
        impl Cell for $int {}
        impl Raw for $int {
            const BYTES: u64 = size_of::<$int>() as u64;
            type Atomic = $atomic;
            #[inline(always)]
            fn load(cell: &$atomic) -> Self { cell.load(Relaxed) }
            #[inline(always)]
            fn store(cell: &$atomic, value: Self) { cell.store(value, Relaxed) }
            #[inline(always)]
            fn replace(cell: &$atomic, old: Self, new: Self) -> Result<Self, Self> {
                cell.compare_exchange_weak(old, new, Relaxed, Relaxed)
            }
            #[inline(always)]
            fn widen(self) -> u64 { u64::from(self) }
            #[inline(always)]
            fn narrow(bits: u64) -> Self { bits as $int }
        }
    )*};
}
cells! {
    u8, AtomicU8;
    u16, AtomicU16;
    u32, AtomicU32;
    u64, AtomicU64;
}

/// A mapped, aligned cell of guest memory.
#[derive(Clone, Copy)]
pub(super) struct Place<T> {
    address: usize,
    cell: PhantomData<T>,
}

impl<T: Cell> Place<T> {
    /// Names the cell at `address`.
    ///
    /// # Safety
    /// `address` must be a multiple of the cell's size. Its bytes must be committed in an arena that outlives
    /// every use of the place, or be guaranteed by the host (`Memory::adopt`, `Memory::reach_host`).
    #[inline(always)]
    pub(super) unsafe fn new(address: u64) -> Self {
        debug_assert!(address.is_multiple_of(T::BYTES));
        Self { address: address as usize, cell: PhantomData }
    }

    /// This cell and those behind it, as many as `count`.
    ///
    /// # Safety
    /// As for [`Place::new`], for each of them; the caller chooses a lifetime within which that holds.
    #[inline(always)]
    pub(super) unsafe fn following<'a>(self, count: usize) -> &'a [T::Atomic] {
        let first: *const T::Atomic = std::ptr::with_exposed_provenance(self.address);
        // SAFETY: by the caller's promise, as in `atomic`.
        unsafe { std::slice::from_raw_parts(first, count) }
    }

    #[inline(always)]
    fn atomic<'a>(self) -> &'a T::Atomic {
        let at: *const T::Atomic = std::ptr::with_exposed_provenance(self.address);
        // SAFETY: the caller of `new` guaranteed that it is mapped, aligned and outlives the use, which ends
        // in the calling function; the arena or the registering host exposed its provenance. All shared
        // accesses are atomic.
        unsafe { &*at }
    }

    /// Its address in the process.
    #[inline(always)]
    pub(super) fn number(self) -> u64 {
        self.address as u64
    }

    /// Relaxed load.
    #[inline(always)]
    pub(super) fn load(self) -> T {
        T::load(self.atomic())
    }

    /// Relaxed store.
    #[inline(always)]
    pub(super) fn store(self, value: T) {
        T::store(self.atomic(), value);
    }

    /// Atomic update by relaxed compare and exchange. `f` may be called more than once; `None` leaves the
    /// cell unchanged. Returns the old value and the stored value.
    #[inline(always)]
    pub(super) fn update(self, f: impl Fn(T) -> Option<T>) -> (T, Option<T>) {
        let mut old = self.load();
        loop {
            let Some(new) = f(old) else { return (old, None) };
            match T::replace(self.atomic(), old, new) {
                Ok(_) => return (old, Some(new)),
                Err(found) => old = found,
            }
        }
    }
}
