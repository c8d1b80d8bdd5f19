//! Compiled kernels by their keys: in memory, and on disk for other processes.
//!
//! A [`Compiler`] belongs to a device. Code that was compiled once serves each kernel with the same text, CTA
//! shape and processor, in this process and in others; it is placed separately for the addresses of each
//! module.
//!
//! The code of some kernels consists of two objects: the first is for coarse warps, and executes nearly all
//! CTAs; the rest is for single warps. A launch needs only the first to begin, so each is compiled and cached
//! separately.
//!
//! Invariants: a key determines the code ([`Key`]), up to the effort that LLVM spends on it. Placed code
//! lives as long as a kernel that uses it. The objects that are kept beyond that, and the files on disk, are
//! bounded. A failure of the disk never makes a call fail.

mod disk;
mod folder;
mod key;
mod unfinished;

use crate::coarsen::Teams;
use crate::engine::{self, Compiled, Part};
use crate::llvm::{Effort, Error, Session, room};
use crate::object::Made;
use crate::target::Target;
use disk::Disk;
use key::Key;
use ptx_exec::launch::Kernel;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use unfinished::Running;

/// The most bytes of objects that are kept in memory for kernels that no longer exist. Chosen: thousands of
/// kernels.
const KEPT_BYTES: usize = 64 << 20;

/// The stack size of a compiling thread, in bytes: LLVM walks expressions recursively, and programs may give
/// their threads small stacks. Chosen: twice what systems give to a process.
const STACK: usize = 16 << 20;

/// Where code was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// It was compiled.
    Compiled,
    /// It had been compiled in this process, for another kernel or before it was dropped.
    Memory,
    /// A process had written it to disk.
    Disk,
}

/// The code that a lookup returned.
#[derive(Clone, Debug)]
pub struct Found {
    /// The code.
    pub code: Arc<Compiled>,
    /// Where it was found.
    pub source: Source,
    /// How long the lookup took.
    pub took: Duration,
}

/// A code generator that is started when it is first needed, and the code that it compiled.
pub struct Compiler {
    target: Target,
    teams: Teams,
    session: OnceLock<Result<Session, Error>>,
    kept: Mutex<Kept>,
    disk: Option<Arc<Disk>>,
}

impl std::fmt::Debug for Compiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiler").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Compiled kernels by key. [`Kept::order`] lists the least recently used first.
#[derive(Default)]
struct Kept {
    by_key: HashMap<Key, Item>,
    order: u64,
    bytes: usize,
}

struct Item {
    made: Arc<Made>,
    /// The latest placement in memory, with the addresses that it was placed for.
    placed: Option<Place>,
    used: u64,
}

impl Compiler {
    /// A compiler for that processor. With a folder, code is also stored there, up to `bytes`.
    pub fn new(target: Target, teams: Teams, folder: Option<PathBuf>, bytes: u64) -> Self {
        let disk =
            folder.filter(|_| cfg!(target_arch = "x86_64")).map(|folder| Arc::new(Disk::new(folder, bytes)));
        Self { target, teams, session: OnceLock::new(), kept: Mutex::default(), disk }
    }

    /// How many warps execute as one coarse warp.
    pub fn teams(&self) -> Teams {
        self.teams
    }

    /// Why the cache folder was not used, as a sentence with its path; `None` if it was used or not needed.
    pub fn refused_folder(&self) -> Option<String> {
        self.disk.as_ref()?.refusal()
    }

    /// The code generator.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn session(&self) -> Result<&Session, Error> {
        self.session.get_or_init(|| Session::new(self.target)).as_ref().map_err(Clone::clone)
    }

    /// The code of a kernel for one CTA shape, if it has been compiled; all of it, if the rest has been, too.
    pub fn find(&self, kernel: &Kernel, ntid: [u32; 3]) -> Option<Found> {
        let start = Instant::now();
        if !self.target.runs_here() || kernel.check_block(ntid).is_err() {
            return None;
        }
        let (mut code, source) = self.find_object(kernel, ntid, (Part::First, None))?;
        if code.is_partial()
            && let Some((rest, _)) = self.find_object(kernel, ntid, rest_of(&code))
        {
            code = rest;
        }
        Some(Found { code, source, took: start.elapsed() })
    }

    /// An object of the code that has been compiled: a part, with the code that it continues.
    fn find_object(
        &self,
        kernel: &Kernel,
        ntid: [u32; 3],
        (part, first): (Part, Option<&Arc<Compiled>>),
    ) -> Option<(Arc<Compiled>, Source)> {
        let key = self.key(kernel, ntid, part);
        let kept = self.kept().take(key);
        let (made, placed, source) = match kept {
            Some((made, placed)) => (made, placed, Source::Memory),
            None => {
                let made = Arc::new(Made::decode(&self.disk.as_ref()?.read(key)?)?);
                (made, None, Source::Disk)
            }
        };
        // Code that cannot be placed here is compiled again, which reports the reason.
        let code = self.place((key, ntid), made, placed, kernel, first).ok()?;
        Some((code, source))
    }

    /// How long earlier processes compiled the code of a kernel in vain, because they ended before it was
    /// done: code that [`Compiler::find`] did not find, or `found` code once more, with optimisation.
    pub fn lost_time(&self, kernel: &Kernel, ntid: [u32; 3], found: Option<&Compiled>) -> Duration {
        let (part, _) = found.map_or((Part::First, None), part_again);
        match &self.disk {
            Some(disk) if kernel.check_block(ntid).is_ok() => {
                unfinished::lost(self.key(kernel, ntid, part).of_lost_time(found.is_some()), disk)
            }
            Some(_) | None => Duration::ZERO,
        }
    }

    fn key(&self, kernel: &Kernel, ntid: [u32; 3], part: Part) -> Key {
        Key::new(kernel, ntid, self.target, self.teams, part)
    }

    /// Compiles a kernel for one CTA shape, on a thread that [`compiler_thread`] describes. The code may be
    /// [partial](Compiled::is_partial).
    ///
    /// # Errors
    /// The reason why it cannot be compiled; the interpreter can still run it.
    pub fn compile(&self, kernel: &Kernel, ntid: [u32; 3]) -> Result<Found, Error> {
        self.compile_object(kernel, ntid, (Part::First, None), None)
    }

    /// Compiles the rest of a kernel whose code is partial, unless it has been compiled. The result is all of
    /// the code.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn compile_rest(
        &self,
        kernel: &Kernel,
        ntid: [u32; 3],
        first: &Arc<Compiled>,
    ) -> Result<Arc<Compiled>, Error> {
        if let Some((code, _)) = self.find_object(kernel, ntid, rest_of(first)) {
            return Ok(code);
        }
        Ok(self.compile_object(kernel, ntid, rest_of(first), None)?.code)
    }

    /// Compiles scalar code of a kernel, unless it has been compiled. It executes one thread at a time;
    /// `warps`, all other code of the kernel, continues where a thread leaves it.
    ///
    /// # Errors
    /// As [`Compiler::compile`], or a reason why threads cannot be executed one after another.
    pub fn compile_scalar(
        &self,
        kernel: &Kernel,
        ntid: [u32; 3],
        warps: &Arc<Compiled>,
    ) -> Result<Arc<Compiled>, Error> {
        let scalar = (Part::Scalar { windows: warps.windows() }, Some(warps));
        if let Some((code, _)) = self.find_object(kernel, ntid, scalar) {
            return Ok(code);
        }
        Ok(self.compile_object(kernel, ntid, scalar, None)?.code)
    }

    /// Compiles code again that is [not optimised](Compiled::unoptimised), with optimisation. It replaces the
    /// other code in the caches. It takes many times as long.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn compile_again(
        &self,
        kernel: &Kernel,
        ntid: [u32; 3],
        code: &Compiled,
    ) -> Result<Arc<Compiled>, Error> {
        Ok(self.compile_object(kernel, ntid, part_again(code), Some(Effort::Usual))?.code)
    }

    fn compile_object(
        &self,
        kernel: &Kernel,
        ntid: [u32; 3],
        (part, first): (Part, Option<&Arc<Compiled>>),
        effort: Option<Effort>,
    ) -> Result<Found, Error> {
        let start = Instant::now();
        if let Some(missing) = self.target.missing_here() {
            return Err(Error::new(format!("this machine has no {missing} instructions")));
        }
        kernel.check_block(ntid).map_err(|error| Error::new(error.to_string()))?;
        let key = self.key(kernel, ntid, part);
        // Launches of later processes wait for the code that they begin with, and for optimised code, but not
        // for what is compiled beside launches once more code exists.
        let is_awaited = first.is_none() || effort.is_some();
        let running = self.disk.as_ref().filter(|_| is_awaited);
        let running = running.map(|disk| Running::begin(key.of_lost_time(effort.is_some()), disk));
        let made = Arc::new(self.make(kernel, ntid, part, effort)?);
        let code = self.place((key, ntid), Arc::clone(&made), None, kernel, first)?;
        let took = start.elapsed();
        if let Some(disk) = &self.disk {
            disk.write(key, &made.encode());
        }
        drop(running);
        Ok(Found { code, source: Source::Compiled, took })
    }

    fn make(
        &self,
        kernel: &Kernel,
        ntid: [u32; 3],
        part: Part,
        effort: Option<Effort>,
    ) -> Result<Made, Error> {
        if self.session.get().is_none() {
            room::to_load()?;
        }
        let session = self.session()?;
        room::to_compile(kernel.function().blocks.iter().map(|block| block.insts.len() + 1).sum())?;
        engine::make(session, kernel, ntid, self.teams, part, effort)
    }

    /// Places code in memory, unless it is placed for the same addresses already.
    fn place(
        &self,
        (key, ntid): (Key, [u32; 3]),
        made: Arc<Made>,
        placed: Option<Place>,
        kernel: &Kernel,
        first: Option<&Arc<Compiled>>,
    ) -> Result<Arc<Compiled>, Error> {
        let symbols = engine::resolve(&made, kernel)?;
        if let Some((for_these, code)) = placed
            && for_these == symbols
            && let Some(code) = code.upgrade()
            && first.is_none_or(|first| code.is_rest_of(first))
        {
            return Ok(code);
        }
        let code = engine::place(Arc::clone(&made), &symbols, kernel, ntid, first.map(Arc::clone))?;
        self.kept().put(key, made, symbols, &code);
        Ok(code)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The object that code once more with optimisation is.
fn part_again(code: &Compiled) -> (Part, Option<&Arc<Compiled>>) {
    code.first().map_or((Part::First, None), rest_of)
}

/// The rest of the code, with the code that was made first.
fn rest_of(first: &Arc<Compiled>) -> (Part, Option<&Arc<Compiled>>) {
    (Part::Rest { windows: first.windows() }, Some(first))
}

/// A thread for compiling, with the stack that LLVM needs.
pub fn compiler_thread() -> std::thread::Builder {
    std::thread::Builder::new().name("ptxvm compiler".to_owned()).stack_size(STACK)
}

/// A placement in memory, with the addresses that it was made for.
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
