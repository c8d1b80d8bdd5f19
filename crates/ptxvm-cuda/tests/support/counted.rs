//! An allocator that counts what a thread has taken.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with counters.
pub(crate) struct Counted;

fn add(bytes: isize) {
    // A thread that ends has no such values any more.
    let _ended = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        MOST.try_with(|most| most.set(most.get().max(now.get())))
    });
}

// SAFETY: every call is the system allocator's with the same arguments; what is added allocates nothing and does not unwind.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: as the caller of this promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: as the caller of this promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        add(bytes as isize - layout.size() as isize);
        // SAFETY: as the caller of this promises.
        unsafe { System.realloc(place, layout, bytes) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: as the caller of this promises.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// What a function gives, and the most bytes that this thread had more than before.
pub(crate) fn peak<T>(function: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    MOST.set(before);
    let result = function();
    (result, usize::try_from(MOST.get() - before).unwrap_or(0))
}
