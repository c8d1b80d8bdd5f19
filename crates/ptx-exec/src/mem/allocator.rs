//! A global allocator that ends the process with one line of text when the host's memory is exhausted.
//!
//! Allocations whose size comes from a user report a failure as an error. This allocator is for all others,
//! such as the growth of a list of diagnostics, which have no way to report a failure. Rust's default is an
//! abort, which looks like a bug.
//!
//! Invariant: within [`attempt`], a failed allocation is left to the caller. Elsewhere the process ends.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The exit status when memory is exhausted: an error of the environment.
const STATUS: i32 = 2;

thread_local! {
    static ATTEMPTS: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: functions of the C library, with the signatures of POSIX.
unsafe extern "C" {
    fn write(file: i32, bytes: *const u8, count: usize) -> isize;
    fn _exit(status: i32) -> !;
}

/// Runs code that handles failed allocations, with `Vec::try_reserve` and the like.
pub fn attempt<R>(allocate: impl FnOnce() -> R) -> R {
    let before = ATTEMPTS.replace(true);
    let result = allocate();
    ATTEMPTS.set(before);
    result
}

/// The system's allocator, which on failure ends the process with status 2 and a line on standard error.
#[derive(Clone, Copy, Debug)]
pub struct EndingAllocator;

impl EndingAllocator {
    fn checked(place: *mut u8, bytes: usize) -> *mut u8 {
        // A thread that is ending has lost its thread-local values; then no caller handles the failure.
        if place.is_null() && !ATTEMPTS.try_with(Cell::get).unwrap_or(false) {
            end(bytes);
        }
        place
    }
}

// SAFETY: every call forwards to the system allocator with the same arguments; the added code neither
// allocates nor unwinds.
unsafe impl GlobalAlloc for EndingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are those of the system allocator.
        Self::checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are those of the system allocator.
        Self::checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's obligations are those of the system allocator.
        Self::checked(unsafe { System.realloc(place, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are those of the system allocator.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Prints the failed size without allocating, and ends the process. Destructors do not run: they could
/// allocate, or wait for this thread.
#[cold]
fn end(bytes: usize) -> ! {
    let mut line = [0; 96];
    let mut length = 0;
    let mut put = |text: &[u8]| {
        let end = (length + text.len()).min(line.len());
        line[length..end].copy_from_slice(&text[..end - length]);
        length = end;
    };
    put(b"ptxvm: out of memory: ");
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = bytes;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    put(&digits[first..]);
    put(b" bytes more cannot be had\n");
    // SAFETY: the pointer and the length are those of one buffer; an error is ignored.
    let _ = unsafe { write(2, line.as_ptr(), length) };
    // SAFETY: `_exit` takes a number and does not return.
    unsafe { _exit(STATUS) }
}
