//! Lets one thread at a time make atomic updates of memory by plain loads and stores.
//!
//! A locked operation of the processor takes ten times as long as a load and a store. Those are an atomic
//! update if no other thread updates the memory meanwhile. So a thread keeps many updates in a list, and
//! performs them while it holds a lock of the process, by plain loads and stores if no other thread may
//! update memory without the lock. A thread that may do so is counted from its first such update
//! ([`announce`]) to the end of its part of the launch ([`Withdrawal`]), and other processes that share
//! memory from then on.
//!
//! If another thread holds the lock, a list is left to that thread (flat combining). So the updated memory
//! stays in the caches of one processor, and threads rarely wait.
//!
//! Updates are atomic operations and ordered stores. Weak stores are not: to store at a place that another
//! thread updates is a data race of the PTX program.
//!
//! Invariants: lists are performed with the lock, those of one thread in their order, and all of a thread's
//! when its call of [`perform`] returns. An announcement takes the lock, so no plain update is under way when
//! the thread's own begin.

use std::cell::Cell;
use std::collections::VecDeque;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};

/// How often a thread tries to take the lock before it sleeps: to wake takes longer than to perform a list.
/// Chosen: some 10 to 50 microseconds.
const TRIES: u32 = 1000;

/// The most lists that wait for the thread that holds the lock. Chosen: it is to end some time.
const MAX_WAITING: usize = 16;

static LOCK: Mutex<()> = Mutex::new(());

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { lists: VecDeque::new(), spare: Vec::new() });

/// Threads that may update memory without the lock, and other processes, as one.
static ANNOUNCED: AtomicUsize = AtomicUsize::new(0);

/// Performs updates, in a form of its own, in their order; by plain loads and stores if the argument says so.
pub type Performer = fn(&[[u64; 2]], bool);

/// Lists that are left to the thread that holds the lock.
struct Waiting {
    /// The room of each, how many updates it has, and what performs them.
    lists: VecDeque<(Vec<[u64; 2]>, usize, Performer)>,
    /// Room of lists that have been performed.
    spare: Vec<Vec<[u64; 2]>>,
}

fn waiting() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock() -> Option<MutexGuard<'static, ()>> {
    match LOCK.try_lock() {
        Ok(lock) => Some(lock),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn lock() -> MutexGuard<'static, ()> {
    for _ in 0..TRIES {
        if let Some(lock) = try_lock() {
            return lock;
        }
        spin_loop();
    }
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Performs updates, for a thread that holds the lock.
fn run(_lock: &MutexGuard<'_, ()>, updates: &[[u64; 2]], by: Performer) {
    let own = COUNTED.try_with(|counted| counted.0.get()).unwrap_or(false);
    by(updates, ANNOUNCED.load(Ordering::Acquire) == usize::from(own));
}

/// Performs the lists that wait, for a thread that holds the lock.
fn run_waiting(lock: &MutexGuard<'_, ()>) {
    let mut all = waiting();
    while let Some((list, count, by)) = all.lists.pop_front() {
        drop(all);
        run(lock, &list[..count], by);
        all = waiting();
        if all.spare.len() < MAX_WAITING {
            all.spare.push(list);
        }
    }
}

/// Performs all lists that wait, and then the updates of another one.
pub fn perform(updates: &[[u64; 2]], by: Performer) {
    let lock = lock();
    run_waiting(&lock);
    run(&lock, updates, by);
}

/// Performs the first updates of a list now, or leaves them to the thread that holds the lock; then the list
/// is replaced with another one as long. The caller must call [`perform`] before its thread accesses the
/// updated places in any other way, and before they cease to exist.
pub fn perform_or_leave(list: &mut Vec<[u64; 2]>, count: usize, by: Performer) {
    if let Some(lock) = try_lock() {
        run_waiting(&lock);
        run(&lock, &list[..count], by);
        // Those that came meanwhile.
        return run_waiting(&lock);
    }
    let mut all = waiting();
    if all.lists.len() >= MAX_WAITING {
        drop(all);
        return perform(&list[..count], by);
    }
    let mut other = all.spare.pop().unwrap_or_default();
    other.resize(list.len(), [0, 0]);
    all.lists.push_back((std::mem::replace(list, other), count, by));
}

/// Whether a thread is counted; it is not after it has ended.
struct Counted(Cell<bool>);

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0.take() {
            ANNOUNCED.fetch_sub(1, Ordering::Release);
        }
    }
}

thread_local! {
    static COUNTED: Counted = const { Counted(Cell::new(false)) };
}

/// Notes that this thread may update memory without the lock from now on, until its part of the launch ends.
#[inline]
pub fn announce() {
    let is_new = COUNTED.try_with(|counted| !counted.0.replace(true));
    if is_new.unwrap_or(false) {
        count();
    }
}

/// Notes that other processes may update memory of this one without the lock.
pub(super) fn share() {
    static SHARED: Once = Once::new();
    SHARED.call_once(count);
}

#[cold]
fn count() {
    let _lock = lock();
    ANNOUNCED.fetch_add(1, Ordering::AcqRel);
}

/// When it is dropped, its thread no longer updates memory without the lock.
pub(crate) struct Withdrawal;

impl Drop for Withdrawal {
    fn drop(&mut self) {
        // In a thread that is ending, `Counted` has done it.
        let _ = COUNTED.try_with(|counted| {
            if counted.0.take() {
                ANNOUNCED.fetch_sub(1, Ordering::Release);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Withdrawal, announce, perform, perform_or_leave};
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    /// Adds to numbers, whose addresses are the first words.
    fn add(entries: &[[u64; 2]], plain: bool) {
        for [address, more] in entries {
            // SAFETY: the tests below pass addresses of numbers that live as long as their threads.
            let number = unsafe { AtomicU64::from_ptr(*address as *mut u64) };
            if plain {
                number.store(number.load(Ordering::Relaxed) + more, Ordering::Relaxed);
            } else {
                number.fetch_add(*more, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn nothing_is_lost_when_threads_leave_lists_to_each_other() {
        let numbers: [AtomicU64; 8] = Default::default();
        let places: Vec<u64> = numbers.iter().map(|number| number.as_ptr() as u64).collect();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let places = &places;
                scope.spawn(move || {
                    let mut list = vec![[0, 0]; 100];
                    for turn in 0..2000_u64 {
                        for at in 0..100 {
                            list[at] = [places[(at + thread as usize) % 8], turn];
                        }
                        perform_or_leave(&mut list, 100, add);
                        assert_eq!(list.len(), 100);
                    }
                    perform(&[], add);
                });
            }
            scope.spawn(|| {
                // A thread that updates the same numbers without the lock, from some time on.
                let _withdrawal = Withdrawal;
                announce();
                for _ in 0..100_000 {
                    numbers[3].fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        let total: u64 = numbers.iter().map(|number| number.load(Ordering::Relaxed)).sum();
        assert_eq!(total, 4 * 100 * (0..2000).sum::<u64>() + 100_000);
    }

    #[test]
    fn updates_are_not_plain_where_another_thread_has_announced_its_own() {
        static PLAIN: AtomicBool = AtomicBool::new(true);
        std::thread::scope(|scope| {
            let _withdrawal = Withdrawal;
            announce();
            announce();
            let run = || perform(&[], |_, plain| PLAIN.store(plain, Ordering::Relaxed));
            scope.spawn(run).join().expect("no panic");
        });
        assert!(!PLAIN.load(Ordering::Relaxed));
    }
}
