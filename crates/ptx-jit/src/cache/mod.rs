//! Compiled kernels, kept by what they depend on: in the process, and on disk for the next one.
//!
//! A [`Compiler`] belongs to a device. Code that was made once serves each kernel with the same text, CTA shape and processor,
//! in this process and in others; each gets it placed for the addresses of its own module.
//!
//! Invariants: a key decides the code ([`Key`]); code in memory lives as long as who runs it and goes with the last; what is kept
//! beside that, and what is on disk, is bounded. Nothing here fails because of the disk.

mod disk;
mod folder;
mod key;

use crate::coarsen::Teams;
use crate::engine::{self, Compiled};
use crate::llvm::{Error, Session, room};
use crate::object::Made;
use crate::target::Target;
use disk::Disk;
use key::Key;
use ptx_exec::launch::Kernel;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// What is kept in memory of kernels that are gone, in bytes of objects. Chosen: thousands of kernels.
const KEPT_BYTES: usize = 64 << 20;

/// The stack to compile on, in bytes: LLVM walks expressions recursively, and programs give their threads as little as they like. Chosen:
/// twice what systems give to a process.
const STACK: usize = 16 << 20;

/// Where code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// It was made.
    Compiled,
    /// It had been made in this process, for another kernel or before it was given up.
    Memory,
    /// Another process had made it, or this one before.
    Disk,
}

/// Code that was asked for.
#[derive(Clone, Debug)]
pub struct Found {
    /// The code.
    pub code: Arc<Compiled>,
    /// Where it came from.
    pub source: Source,
    /// How long it took to come.
    pub took: Duration,
}

/// A code generator that is started when it is first needed, and what it made.
pub struct Compiler {
    target: Target,
    teams: Teams,
    session: OnceLock<Result<Session, Error>>,
    kept: Mutex<Kept>,
    disk: Option<Disk>,
}

impl std::fmt::Debug for Compiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiler").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Code of kernels by key, the oldest use first in [`Kept::order`].
#[derive(Default)]
struct Kept {
    by_key: HashMap<Key, Item>,
    order: u64,
    bytes: usize,
}

struct Item {
    made: Arc<Made>,
    /// The last place that it has in memory, and the addresses that it was placed for.
    placed: Option<Place>,
    used: u64,
}

impl Compiler {
    /// Generates code for that processor. With a folder, code is kept there too, up to `bytes`.
    pub fn new(target: Target, teams: Teams, folder: Option<PathBuf>, bytes: u64) -> Self {
        let disk = folder.filter(|_| cfg!(target_arch = "x86_64")).map(|folder| Disk::new(folder, bytes));
        Self { target, teams, session: OnceLock::new(), kept: Mutex::default(), disk }
    }

    /// How many warps run as one.
    pub fn teams(&self) -> Teams {
        self.teams
    }

    /// Why the folder for code was not used, as a sentence with its path; none where it was, or was not needed.
    pub fn refused_folder(&self) -> Option<String> {
        self.disk.as_ref()?.refusal()
    }

    /// The code generator.
    ///
    /// # Errors
    /// Why there is none.
    pub fn session(&self) -> Result<&Session, Error> {
        self.session.get_or_init(|| Session::new(self.target)).as_ref().map_err(Clone::clone)
    }

    /// Code of a kernel for CTAs of that shape, if it had been made.
    pub fn find(&self, kernel: &Kernel, ntid: [u32; 3]) -> Option<Found> {
        let start = Instant::now();
        if !self.target.runs_here() || kernel.check_block(ntid).is_err() {
            return None;
        }
        let key = Key::new(kernel, ntid, self.target, self.teams);
        let kept = self.kept().take(key);
        let (made, placed, source) = match kept {
            Some((made, placed)) => (made, placed, Source::Memory),
            None => {
                let made = Arc::new(Made::decode(&self.disk.as_ref()?.read(key)?)?);
                (made, None, Source::Disk)
            }
        };
        // Code that cannot be placed here is made anew, and that says why.
        let code = self.place((key, ntid), made, placed, kernel).ok()?;
        Some(Found { code, source, took: start.elapsed() })
    }

    /// Makes code of a kernel for CTAs of that shape, on a thread as [`compiler_thread`] describes it.
    ///
    /// # Errors
    /// Says why it cannot be compiled; the interpreter can still run it.
    pub fn compile(&self, kernel: &Kernel, ntid: [u32; 3]) -> Result<Found, Error> {
        let start = Instant::now();
        if let Some(missing) = self.target.missing_here() {
            return Err(Error::new(format!("this machine has no {missing} instructions")));
        }
        kernel.check_block(ntid).map_err(|error| Error::new(error.to_string()))?;
        let made = Arc::new(self.make(kernel, ntid)?);
        let key = Key::new(kernel, ntid, self.target, self.teams);
        let code = self.place((key, ntid), Arc::clone(&made), None, kernel)?;
        let took = start.elapsed();
        if let Some(disk) = &self.disk {
            disk.write(key, &made.encode());
        }
        Ok(Found { code, source: Source::Compiled, took })
    }

    fn make(&self, kernel: &Kernel, ntid: [u32; 3]) -> Result<Made, Error> {
        if self.session.get().is_none() {
            room::to_load()?;
        }
        let session = self.session()?;
        room::to_compile(kernel.function().blocks.iter().map(|block| block.insts.len() + 1).sum())?;
        engine::make(session, kernel, ntid, self.teams)
    }

    /// Gives code a place in memory, unless it has one for the same addresses.
    fn place(
        &self,
        (key, ntid): (Key, [u32; 3]),
        made: Arc<Made>,
        placed: Option<Place>,
        kernel: &Kernel,
    ) -> Result<Arc<Compiled>, Error> {
        let symbols = engine::resolve(&made, kernel)?;
        if let Some((for_these, code)) = placed
            && for_these == symbols
            && let Some(code) = code.upgrade()
        {
            return Ok(code);
        }
        let code = engine::place(Arc::clone(&made), &symbols, kernel, ntid)?;
        self.kept().put(key, made, symbols, &code);
        Ok(code)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread to make code on, which has the stack that LLVM needs.
pub fn compiler_thread() -> std::thread::Builder {
    std::thread::Builder::new().name("ptxvm compiler".to_owned()).stack_size(STACK)
}

/// A place in memory, with the addresses that it was made for.
type Place = (Vec<(String, usize)>, Weak<Compiled>);

impl Kept {
    fn take(&mut self, key: Key) -> Option<(Arc<Made>, Option<Place>)> {
        self.order += 1;
        let item = self.by_key.get_mut(&key)?;
        item.used = self.order;
        Some((Arc::clone(&item.made), item.placed.clone()))
    }

    fn put(&mut self, key: Key, made: Arc<Made>, symbols: Vec<(String, usize)>, code: &Arc<Compiled>) {
        self.order += 1;
        let bytes = made.bytes();
        let item = Item { made, placed: Some((symbols, Arc::downgrade(code))), used: self.order };
        self.bytes += bytes;
        if let Some(old) = self.by_key.insert(key, item) {
            self.bytes -= old.made.bytes();
        }
        while self.bytes > KEPT_BYTES && self.by_key.len() > 1 {
            let oldest = self.by_key.iter().min_by_key(|(_, item)| item.used).map(|(key, _)| *key);
            let Some(old) = oldest.and_then(|key| self.by_key.remove(&key)) else { break };
            self.bytes -= old.made.bytes();
        }
    }
}
