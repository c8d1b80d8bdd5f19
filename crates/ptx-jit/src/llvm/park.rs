//! Parks threads that are inside LLVM when the process ends.
//!
//! A compilation cannot be cancelled from outside, and takes up to a minute. When the process ends, a signal
//! interrupts the compiling thread, and the handler never returns: the thread is suspended until `exit` has
//! finished.
//!
//! Invariant: a thread is parked only if it was interrupted in the code of LLVM's library itself. It then
//! holds no lock of the C library (of `malloc`, of the loader, of a file), since the C library calls no code
//! of LLVM; so destructors and exit handlers that run later cannot wait for it. A thread that is interrupted
//! elsewhere continues and is interrupted again later.
//!
//! It does not wait for threads, and does not know their work: [`exit`](super::exit) does.
//!
//! The signal is `SIGURG`: its default action is to ignore it, so a thread that takes it by mistake is not
//! disturbed. The handler is installed only while the process ends, and the previous one is put back.

use std::ops::Range;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// The system's numbers of the parked threads; 0 for an unused element.
static PARKED: [AtomicI32; 256] = [const { AtomicI32::new(0) }; 256];
/// The first address of LLVM's code, and the end of the code.
static CODE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Whether a thread is parked.
pub(super) fn is_parked(thread: i32) -> bool {
    thread != 0 && PARKED.iter().any(|parked| parked.load(Ordering::SeqCst) == thread)
}

/// The address range of the code of the library that contains this address.
fn code_around(address: usize) -> Option<Range<usize>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    // `START-END r-xp OFFSET DEVICE INODE PATH`
    let code: Vec<(Range<usize>, &str)> = maps
        .lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
            let path = words.nth(4)?;
            line.contains(" r-x").then_some((range, path))
        })
        .collect();
    let library = code.iter().find(|(range, _)| range.contains(&address))?.1;
    let parts = code.iter().filter(|(_, path)| *path == library).map(|(range, _)| range);
    Some(parts.clone().map(|range| range.start).min()?..parts.map(|range| range.end).max()?)
}

/// Lets the signal interrupt this thread until the guard is dropped: programs may have blocked all signals in
/// the threads that they start.
#[derive(Debug)]
pub(super) struct Interruptible {
    blocked: bool,
}

impl Interruptible {
    /// Unblocks the signal in this thread.
    pub(super) fn begin() -> Self {
        Self { blocked: imp::unblock() }
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        if self.blocked {
            imp::block();
        }
    }
}

/// Interrupts threads of this process that are inside LLVM.
pub(super) struct Parking {
    previous: imp::Action,
}

impl Parking {
    /// Installs the handler; `within` is an address in LLVM's code. `None` if the machine or the system does
    /// not support it.
    pub(super) fn begin(within: usize) -> Option<Self> {
        let code = code_around(within)?;
        CODE[0].store(code.start, Ordering::SeqCst);
        CODE[1].store(code.end, Ordering::SeqCst);
        Some(Self { previous: imp::install()? })
    }

    /// Interrupts a thread; it is parked soon if it is inside LLVM's code.
    pub(super) fn interrupt(&self, thread: i32) {
        imp::interrupt(thread);
    }
}

impl Drop for Parking {
    fn drop(&mut self) {
        imp::restore(&self.previous);
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod imp {
    use super::{CODE, PARKED};
    use libc::{SIGURG, c_int, c_void, sigaction, siginfo_t, sigset_t, ucontext_t};
    use std::mem::MaybeUninit;
    use std::sync::atomic::Ordering;

    pub(super) type Action = sigaction;

    /// The address at which the thread was interrupted.
    ///
    /// # Safety
    /// `context` is the argument that the system passed to a handler with `SA_SIGINFO`.
    unsafe fn instruction(context: *const c_void) -> usize {
        let context: *const ucontext_t = context.cast();
        // SAFETY: as the caller says, it points to a context that lives as long as the handler runs.
        let machine = unsafe { &(*context).uc_mcontext };
        #[cfg(target_arch = "x86_64")]
        return machine.gregs[libc::REG_RIP as usize] as usize;
        #[cfg(target_arch = "aarch64")]
        return machine.pc as usize;
    }

    /// The handler. It uses atomics, `gettid` and `pause`, which are safe in handlers.
    extern "C" fn park(_signal: c_int, _info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the handler is installed with `SA_SIGINFO`, so this is what the system gives.
        let at = unsafe { instruction(context) };
        if !(CODE[0].load(Ordering::SeqCst)..CODE[1].load(Ordering::SeqCst)).contains(&at) {
            return;
        }
        // SAFETY: it takes nothing and always succeeds.
        let thread = unsafe { libc::gettid() };
        let free = |place: &&std::sync::atomic::AtomicI32| {
            place.compare_exchange(0, thread, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        if PARKED.iter().find(free).is_some() {
            loop {
                // SAFETY: it takes nothing; it returns after other signals.
                unsafe { libc::pause() };
            }
        }
    }

    pub(super) fn install() -> Option<Action> {
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = park;
        // SAFETY: all bits zero are an action: the default one, with no flags and an empty mask.
        let mut action: sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: as above.
        let mut previous: sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: both are actions of this function's, and the handler lives as long as this library.
        let failed = unsafe { sigaction(SIGURG, &action, &mut previous) } != 0;
        (!failed).then_some(previous)
    }

    pub(super) fn restore(previous: &Action) {
        // SAFETY: the action is one that the system gave.
        let _same_as_before = unsafe { sigaction(SIGURG, previous, std::ptr::null_mut()) };
    }

    pub(super) fn interrupt(thread: i32) {
        let process = libc::pid_t::from_ne_bytes(std::process::id().to_ne_bytes());
        // SAFETY: any numbers may be given; where there is no such thread in this process, nothing happens.
        let _gone = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, SIGURG) };
    }

    /// The set that contains only that signal.
    fn signal() -> sigset_t {
        let mut set = MaybeUninit::zeroed();
        // SAFETY: the place is one for a set, and the function makes it an empty one.
        let _always = unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: it is a set by now, and there is such a signal.
        let _always = unsafe { libc::sigaddset(set.as_mut_ptr(), SIGURG) };
        // SAFETY: it was made one, above.
        unsafe { set.assume_init() }
    }

    pub(super) fn unblock() -> bool {
        let mut before = MaybeUninit::zeroed();
        // SAFETY: both are places for sets of this function's.
        let failed = unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &signal(), before.as_mut_ptr()) } != 0;
        if failed {
            return false;
        }
        // SAFETY: the call has succeeded, so there is a set.
        unsafe { libc::sigismember(before.as_ptr(), SIGURG) == 1 }
    }

    pub(super) fn block() {
        // SAFETY: the set is one of this function's; the set before is not asked for.
        let _always = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &signal(), std::ptr::null_mut()) };
    }
}

/// On other systems no thread is parked, and the end of the process waits.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod imp {
    pub(super) struct Action;

    pub(super) fn install() -> Option<Action> {
        None
    }

    pub(super) fn restore(_previous: &Action) {}

    pub(super) fn interrupt(_thread: i32) {}

    pub(super) fn unblock() -> bool {
        false
    }

    pub(super) fn block() {}
}
