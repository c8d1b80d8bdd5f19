//! The allocator of programs that end with one clear line where the host's memory runs out.
//!
//! Whatever a user's sizes ask for is allocated so that having none is an error with a name. This is for the rest: a list that grows by one
//! more diagnostic has nobody to report to. Rust's own answer is an abort, which looks like a bug of ours.
//!
//! Invariant: within [`attempt`], having no memory is the caller's to handle; elsewhere the process ends, and nothing of it runs any more.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The exit status where memory runs out: the environment is at fault.
const STATUS: i32 = 2;

thread_local! {
    static ATTEMPTS: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: the C library's, with the signatures of POSIX.
unsafe extern "C" {
    fn write(file: i32, bytes: *const u8, count: usize) -> isize;
    fn _exit(status: i32) -> !;
}

/// Does something that allocates and can go on where there is no memory: `Vec::try_reserve` and the like.
pub fn attempt<R>(allocate: impl FnOnce() -> R) -> R {
    let before = ATTEMPTS.replace(true);
    let result = allocate();
    ATTEMPTS.set(before);
    result
}

/// The system's allocator, save that the process ends with status 2 and a line on standard error where it has no memory.
#[derive(Clone, Copy, Debug)]
pub struct EndingAllocator;

impl EndingAllocator {
    fn checked(place: *mut u8, bytes: usize) -> *mut u8 {
        // A thread that ends has no such value any more; then nobody handles it.
        if place.is_null() && !ATTEMPTS.try_with(Cell::get).unwrap_or(false) {
            end(bytes);
        }
        place
    }
}

// SAFETY: every call is the system allocator's with the same arguments; what is added allocates nothing and does not unwind.
unsafe impl GlobalAlloc for EndingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller of this promises.
        Self::checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller of this promises.
        Self::checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller of this promises.
        Self::checked(unsafe { System.realloc(place, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as the caller of this promises.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Says what could not be had, without allocating, and ends the process. Destructors do not run: they might allocate, or wait for this thread.
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
    // SAFETY: the bytes are there; a line that cannot be written is lost.
    let _ = unsafe { write(2, line.as_ptr(), length) };
    // SAFETY: it takes a number and does not come back.
    unsafe { _exit(STATUS) }
}
