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

/// How often a thread takes back an announcement in a launch. Chosen: code that steps through atomic
/// operations again and again should not wait for the lock each time.
const MAX_TAKEN_BACK: u32 = 64;

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
    let own = COUNTED.try_with(|counted| counted.now.get()).unwrap_or(false);
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

/// What a thread has announced.
struct Counted {
    /// Whether the thread is counted; it is not after it has ended.
    now: Cell<bool>,
    /// How often it took that back in this launch.
    taken_back: Cell<u32>,
}

impl Counted {
    /// Counts the thread no longer. Returns whether it was counted.
    fn withdraw(&self) -> bool {
        let was = self.now.take();
        if was {
            ANNOUNCED.fetch_sub(1, Ordering::Release);
        }
        was
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.withdraw();
    }
}

thread_local! {
    static COUNTED: Counted = const { Counted { now: Cell::new(false), taken_back: Cell::new(0) } };
}

/// Notes that this thread may update memory without the lock from now on, until its part of the launch ends.
#[inline]
pub fn announce() {
    let is_new = COUNTED.try_with(|counted| !counted.now.replace(true));
    if is_new.unwrap_or(false) {
        count();
    }
}

/// Calls a function, and takes back what this thread announces meanwhile, the first few times in a launch: to
/// announce takes the lock.
pub fn announced_within<T>(f: impl FnOnce() -> T) -> T {
    let before = COUNTED.try_with(|counted| counted.now.get()).unwrap_or(true);
    let result = f();
    if !before {
        let _ = COUNTED.try_with(|counted| {
            if counted.taken_back.get() < MAX_TAKEN_BACK && counted.withdraw() {
                counted.taken_back.set(counted.taken_back.get() + 1);
            }
        });
    }
    result
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
            counted.withdraw();
            counted.taken_back.set(0);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{
        COUNTED, MAX_TAKEN_BACK, Performer, Withdrawal, announce, announced_within, perform, perform_or_leave,
    };
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::sync::{Barrier, Mutex};

    /// Held by the tests that leave lists: a thread waits where too many were left, and one of the tests
    /// makes the thread that would perform them wait for it.
    static LEAVING: Mutex<()> = Mutex::new(());

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
        let _leaving = LEAVING.lock();
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
    fn what_was_left_to_another_thread_is_performed_at_last() {
        let _leaving = LEAVING.lock();
        static GATE: Barrier = Barrier::new(2);
        let number = AtomicU64::new(0);
        let mut list = vec![[number.as_ptr() as u64, 5], [0, 0]];
        std::thread::scope(|scope| {
            // A thread that holds the lock until the second meeting.
            let meet_twice: Performer = |_, _| {
                GATE.wait();
                GATE.wait();
            };
            let other = scope.spawn(move || perform(&[], meet_twice));
            GATE.wait();
            perform_or_leave(&mut list, 1, add);
            assert_eq!((number.load(Ordering::Relaxed), list.len()), (0, 2));
            GATE.wait();
            other.join().expect("no panic");
        });
        perform(&[], add);
        assert_eq!(number.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn updates_are_not_plain_where_another_thread_has_announced_its_own() {
        static PLAIN: AtomicBool = AtomicBool::new(true);
        std::thread::scope(|scope| {
            let _withdrawal = Withdrawal;
            announce();
            announce();
            // It stays announced behind an instruction that announces it once more.
            announced_within(announce);
            let run = || perform(&[], |_, plain| PLAIN.store(plain, Ordering::Relaxed));
            scope.spawn(run).join().expect("no panic");
        });
        assert!(!PLAIN.load(Ordering::Relaxed));
    }

    #[test]
    fn announcements_within_a_call_are_taken_back_a_few_times() {
        let counted = || COUNTED.with(|counted| counted.now.get());
        std::thread::spawn(move || {
            for _ in 0..MAX_TAKEN_BACK {
                announced_within(|| {
                    announce();
                    assert!(counted());
                });
                assert!(!counted());
            }
            announced_within(announce);
            assert!(counted());
            drop(Withdrawal);
            assert!(!counted());
            announced_within(announce);
            assert!(!counted());
        })
        .join()
        .expect("no panic");
    }
}
