//! Compilations that the end of the process stops, and how long they had taken.
//!
//! A process that runs for less time than its kernels take to compile would never get compiled code, however
//! often it is started: nothing remains of a compilation that is stopped. So the time that was lost is stored
//! on disk under a key of its own, and added to what earlier processes lost for the same code. Later
//! processes read it ([`lost`]) and decide whether to wait.
//!
//! Invariants: a compilation that returns, with or without code, leaves nothing here, unless the process is
//! ending. A child of `fork` stores nothing ([`before_exit`] is not called there). Nothing here fails.
//!
//! A process that a signal ends stores nothing.

use super::disk::Disk;
use super::key::Key;
use crate::llvm::{before_exit, is_ending};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The compilations of this process.
static RUNNING: Mutex<Vec<Compilation>> = Mutex::new(Vec::new());

struct Compilation {
    key: Key,
    begin: Instant,
    disk: Arc<Disk>,
}

/// A compilation; dropped when it returns.
#[derive(Debug)]
pub(super) struct Running {
    key: Key,
    begin: Instant,
}

impl Running {
    /// Begins a compilation whose lost time has that key ([`Key::of_lost_time`]).
    pub(super) fn begin(key: Key, disk: &Arc<Disk>) -> Running {
        before_exit(store);
        let begin = Instant::now();
        running().push(Compilation { key, begin, disk: Arc::clone(disk) });
        Running { key, begin }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The end of the process may be why it returns.
        if !is_ending() {
            running().retain(|one| (one.key, one.begin) != (self.key, self.begin));
        }
    }
}

/// The time that processes spent on a compilation, and that was lost when they ended. `key`: as for
/// [`Running::begin`].
pub(super) fn lost(key: Key, disk: &Disk) -> Duration {
    let nanos = disk.read(key).and_then(|content| content.try_into().ok());
    nanos.map_or(Duration::ZERO, |nanos| Duration::from_nanos(u64::from_le_bytes(nanos)))
}

/// Stores what is lost of the running compilations. The threads that compile are stopped.
fn store() {
    for Compilation { key, begin, disk } in std::mem::take(&mut *running()) {
        let lost = lost(key, &disk).saturating_add(begin.elapsed());
        let nanos = u64::try_from(lost.as_nanos()).unwrap_or(u64::MAX);
        disk.write(key, &nanos.to_le_bytes());
    }
}

fn running() -> MutexGuard<'static, Vec<Compilation>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
