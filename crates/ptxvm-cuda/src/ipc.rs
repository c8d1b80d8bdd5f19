//! Memory and events that other processes of the user open: `cuIpc*`.
//!
//! A handle identifies an open file of the process that created it, by its path under `/proc`. The handle's
//! contents are compared with the file: it must be ptxvm's, sealed against shrinking, and large enough.
//!
//! Invariant: no number in a handle is trusted without a check. An event of a process that has ended counts
//! as complete.

use crate::context::{Context, current};
use crate::driver::Driver;
use crate::entry::entries;
use crate::event::Event;
use crate::ffi::Out;
use crate::handles::Handle;
use crate::memory::Kind;
use crate::status::{Answer, Status};
use ptxvm::{Access, DeviceId, Error, Pages};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// `CUipcMemHandle`, `CUipcEventHandle`
pub(crate) type Bytes = [u8; 64];

/// A handle as an argument.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Given(Bytes);

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`
pub(crate) const DESCRIPTOR: c_int = 1;
/// The first words of handles of memory, of memory of pools, and of events.
const MEMORY: u64 = u64::from_le_bytes(*b"ptxvmem1");
pub(crate) const POOL_MEMORY: u64 = u64::from_le_bytes(*b"ptxvmpm1");
const EVENT: u64 = u64::from_le_bytes(*b"ptxvmev1");
/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, the only flag, which is required.
const LAZY: c_uint = 1;
/// Mappings are multiples of this size.
pub(crate) const PAGE: u64 = 64 << 10;
/// The interval at which a stream polls an event of another process, and the number of polls between checks
/// that the process lives.
const LOOK: Duration = Duration::from_micros(50);
const LOOKS: u32 = 200;

/// The contents of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    kind: u64,
    pub(crate) process: u64,
    /// The start time of that process in the system's units. It is compared because process numbers are
    /// reused.
    pub(crate) began: u64,
    file: u64,
    inode: u64,
    offset: u64,
    pub(crate) bytes: u64,
    /// The pool of memory of pools, otherwise 0.
    pub(crate) pool: u64,
}

impl Name {
    pub(crate) fn pack(self) -> Bytes {
        let Name { kind, process, began, file, inode, offset, bytes, pool } = self;
        let words = [kind, process, began, file, inode, offset, bytes, pool];
        let mut packed = [0; 64];
        for (place, word) in packed.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        packed
    }

    pub(crate) fn unpack(packed: Bytes, wanted: u64) -> Result<Self, Status> {
        let word = |index: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&packed[8 * index..8 * index + 8]);
            u64::from_le_bytes(word)
        };
        let name = Self {
            kind: word(0),
            process: word(1),
            began: word(2),
            file: word(3),
            inode: word(4),
            offset: word(5),
            bytes: word(6),
            pool: word(7),
        };
        if name.kind == wanted { Ok(name) } else { Err(Status::InvalidHandle) }
    }

    /// The same memory, of a pool.
    pub(crate) fn of_pool(self, pool: Handle) -> Self {
        Self { pool: pool.0 as u64, ..self }
    }

    /// Whether this process created it.
    fn is_own(self) -> bool {
        self.process == u64::from(std::process::id()) && Some(self.began) == began(self.process)
    }

    /// The pages that it identifies, of another process.
    ///
    /// # Errors
    /// `CUDA_ERROR_MAP_FAILED` if the process has ended, has closed the file, or belongs to another user;
    /// `CUDA_ERROR_INVALID_HANDLE` for other files.
    fn open(self) -> Result<Arc<Pages>, Status> {
        if Some(self.began) != began(self.process) {
            return Err(Status::MapFailed);
        }
        let path = format!("/proc/{}/fd/{}", self.process, self.file);
        // Only ptxvm's files are opened, because opening other files may have side effects.
        let is_ours = |target: std::path::PathBuf| target.to_string_lossy().starts_with("/memfd:ptxvm ");
        if !std::fs::read_link(&path).is_ok_and(is_ours) {
            return Err(Status::MapFailed);
        }
        let opened = File::options().read(true).write(true).open(&path).map_err(|_| Status::MapFailed)?;
        let inode = opened.metadata().map_err(|_| Status::MapFailed)?.ino();
        let pages = Pages::import(opened.as_fd()).map_err(|_| Status::InvalidHandle)?;
        let inside = self.offset.checked_add(self.bytes).is_some_and(|end| end <= pages.bytes());
        if inode == self.inode && inside && self.bytes > 0 { Ok(pages) } else { Err(Status::InvalidHandle) }
    }
}

/// The pool of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) process: u64,
    pub(crate) began: u64,
    pub(crate) pool: u64,
}

impl Identity {
    /// A pool of this process.
    ///
    /// # Errors
    /// `CUDA_ERROR_OPERATING_SYSTEM`.
    pub(crate) fn of_own(pool: Handle) -> Result<Self, Status> {
        let process = u64::from(std::process::id());
        Ok(Self { process, began: began(process).ok_or(Status::OperatingSystem)?, pool: pool.0 as u64 })
    }

    /// The pool of memory of a pool.
    pub(crate) fn of_name(name: &Name) -> Self {
        Self { process: name.process, began: name.began, pool: name.pool }
    }
}

/// The start time of a process in the system's units; `None` if there is no such process.
pub(crate) fn began(process: u64) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name in parentheses may contain anything. The start time is field 22, and field 3 is the
    // first after the name.
    line.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// A file that other processes open by its number in this process.
pub(crate) struct Open {
    file: OwnedFd,
    inode: u64,
}

impl Open {
    fn of(pages: &Pages) -> Result<Self, Status> {
        let file = File::from(pages.descriptor().map_err(|_| Status::OperatingSystem)?);
        let inode = file.metadata().map_err(|_| Status::OperatingSystem)?.ino();
        Ok(Self { file: file.into(), inode })
    }

    pub(crate) fn name(&self, kind: u64, offset: u64, bytes: u64) -> Result<Name, Status> {
        let process = u64::from(std::process::id());
        let began = began(process).ok_or(Status::OperatingSystem)?;
        let file = self.file.as_raw_fd() as u64;
        Ok(Name { kind, process, began, file, inode: self.inode, offset, bytes, pool: 0 })
    }
}

/// Memory of other processes that is open here, and the exported file of this process's memory.
#[derive(Default)]
pub(crate) struct Imports {
    exported: OnceLock<Open>,
    opened: Mutex<BTreeMap<(Name, Handle), (u64, u32)>>,
}

impl Imports {
    fn opened(&self) -> MutexGuard<'_, BTreeMap<(Name, Handle), (u64, u32)>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open file of this process's memory.
    ///
    /// # Errors
    /// `CUDA_ERROR_OPERATING_SYSTEM`.
    pub(crate) fn exported(&self, pages: &Pages) -> Result<&Open, Status> {
        if let Some(open) = self.exported.get() {
            return Ok(open);
        }
        let open = Open::of(pages)?;
        Ok(self.exported.get_or_init(|| open))
    }

    /// Closes the memory that a context had opened when it ended.
    pub(crate) fn forget(&self, context: &Context) {
        self.opened().retain(|(_, handle), _| *handle != context.handle);
    }
}

/// Unmaps memory of another process.
pub(crate) fn unmap(driver: &Driver, address: u64) {
    if let Some((range, _)) = driver.vm.pages_at(address) {
        let bytes = range.end - range.start;
        // If the system does not unmap a range, it stays reserved.
        let _gone =
            driver.vm.unmap(range.start, bytes).and_then(|()| driver.vm.unreserve(range.start, bytes));
    }
}

/// Maps a part of pages without access for any device. Returns the address of the part, and the whole range.
fn map(
    driver: &Driver,
    pages: &Arc<Pages>,
    (offset, bytes): (u64, u64),
    name: &str,
) -> Result<(u64, u64, u64), Error> {
    let (first, skip) = (offset / PAGE * PAGE, offset % PAGE);
    let length = (skip + bytes).next_multiple_of(PAGE);
    let start = driver.vm.reserve(length, PAGE, 0)?;
    let mapped = driver.vm.map((start, length), (pages, first), skip..skip + bytes, name);
    if let Err(error) = mapped {
        let _unused = driver.vm.unreserve(start, length);
        return Err(error);
    }
    Ok((start + skip, start, length))
}

/// A shared page of numbers, mapped as long as this value lives.
pub(crate) struct PageOfWords {
    driver: &'static Driver,
    address: u64,
}

impl PageOfWords {
    /// The page of a file.
    ///
    /// # Errors
    /// `CUDA_ERROR_OPERATING_SYSTEM` if it cannot be mapped.
    pub(crate) fn of(driver: &'static Driver, pages: &Arc<Pages>) -> Result<Self, Status> {
        let mapped = map(driver, pages, (0, PAGE), "a shared page");
        let (address, _, _) = mapped.map_err(|_| Status::OperatingSystem)?;
        Ok(Self { driver, address })
    }

    fn update(&self, byte: u64, f: impl Fn(u64) -> u64) -> u64 {
        // The page stays mapped as long as this value lives.
        self.driver.vm.update(self.address + byte, f).unwrap_or(0)
    }

    /// The first numbers.
    pub(crate) fn get<const N: usize>(&self) -> [u64; N] {
        std::array::from_fn(|index| self.update(8 * index as u64, |value| value))
    }

    /// Sets the first numbers.
    pub(crate) fn set(&self, words: &[u64]) {
        for (index, word) in (0..).zip(words) {
            self.update(8 * index, |_| *word);
        }
    }
}

impl Drop for PageOfWords {
    fn drop(&mut self) {
        unmap(self.driver, self.address);
    }
}

/// An event that several processes share: numbers in a shared page.
pub(crate) struct SharedEvent {
    /// The count of records, the number of the last completed record, and the number and start time of the
    /// process that recorded last.
    page: PageOfWords,
    open: Open,
}

/// The offsets of those numbers.
const RECORDED: u64 = 0;
const REACHED: u64 = 8;
const PROCESS: u64 = 16;
const BEGAN: u64 = 24;

impl SharedEvent {
    /// A new event, or that in pages of another process.
    ///
    /// # Errors
    /// `CUDA_ERROR_OPERATING_SYSTEM` if the system cannot share memory.
    fn new(driver: &'static Driver, pages: &Arc<Pages>) -> Result<Self, Status> {
        Ok(Self { page: PageOfWords::of(driver, pages)?, open: Open::of(pages)? })
    }

    /// An event without records.
    ///
    /// # Errors
    /// As [`SharedEvent::new`].
    pub(crate) fn made(driver: &'static Driver) -> Result<Self, Status> {
        Self::new(driver, &driver.vm.pages(PAGE).map_err(|_| Status::OperatingSystem)?)
    }

    fn update(&self, word: u64, f: impl Fn(u64) -> u64) -> u64 {
        self.page.update(word, f)
    }

    fn get(&self, word: u64) -> u64 {
        self.update(word, |value| value)
    }

    /// Counts a record, and returns its number.
    pub(crate) fn record(&self) -> u64 {
        let process = u64::from(std::process::id());
        self.update(BEGAN, |_| began(process).unwrap_or(0));
        self.update(PROCESS, |_| process);
        self.update(RECORDED, |count| count + 1) + 1
    }

    /// Notes that a record is complete.
    pub(crate) fn reach(&self, number: u64) {
        self.update(REACHED, |reached| reached.max(number));
    }

    /// The number of the last record.
    pub(crate) fn recorded(&self) -> u64 {
        self.get(RECORDED)
    }

    /// Whether a record is complete.
    pub(crate) fn is_reached(&self, number: u64) -> bool {
        self.get(REACHED) >= number
    }

    /// Whether the process that recorded last has ended.
    fn is_orphaned(&self) -> bool {
        began(self.get(PROCESS)) != Some(self.get(BEGAN))
    }

    /// Waits until a record is complete, its process has ended, or `go_on` returns false.
    pub(crate) fn wait(&self, number: u64, mut go_on: impl FnMut() -> bool) {
        let mut looks = 0u32;
        while !self.is_reached(number) && go_on() {
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS) && self.is_orphaned() {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Maps the memory that a name identifies, for these devices and the device that owns the memory. Returns its
/// address.
///
/// # Errors
/// The errors of [`Name::open`], and `CUDA_ERROR_MAP_FAILED`.
pub(crate) fn open_name(driver: &Driver, name: &Name, devices: &[(DeviceId, Access)]) -> Result<u64, Status> {
    let pages = name.open()?;
    let failed = |_: Error| Status::MapFailed;
    let part = (name.offset, name.bytes);
    let (address, start, length) = map(driver, &pages, part, "memory of another process").map_err(failed)?;
    for (device, access) in devices.iter().chain(&[(pages.device(), Access::ReadWrite)]) {
        driver.vm.set_access(start, length, *device, *access).map_err(failed)?;
    }
    Ok(address)
}

fn open_memory(out: Out<u64>, given: Given, flags: c_uint) -> Answer {
    let (driver, context) = current()?;
    out.check()?;
    if flags != LAZY {
        return Err(Status::InvalidValue);
    }
    let name = Name::unpack(given.0, MEMORY)?;
    if name.is_own() {
        return Err(Status::InvalidContext);
    }
    let mut opened = driver.imports.opened();
    if let Some((address, count)) = opened.get_mut(&(name, context.handle)) {
        *count = count.checked_add(1).ok_or(Status::InvalidValue)?;
        return out.set(*address);
    }
    let address = open_name(driver, &name, &[(context.vm(driver).number(), Access::ReadWrite)])?;
    if let Err(status) = out.set(address) {
        unmap(driver, address);
        return Err(status);
    }
    driver.blocks.add(address, name.bytes, Kind::Imported, &context);
    opened.insert((name, context.handle), (address, 1));
    Ok(())
}

entries! { ENTRIES;
    /// Creates a handle by which another process opens an allocation.
    fn cuIpcGetMemHandle(handle: Out<Bytes>, address: u64) {
        let (driver, _) = current()?;
        handle.check()?;
        let (start, block) = driver.blocks.at(address).ok_or(Status::InvalidValue)?;
        if block.kind != Kind::Device {
            return Err(Status::InvalidValue);
        }
        let exported = driver.vm.export(start).map_err(|_| Status::OperatingSystem)?;
        let open = driver.imports.exported(&exported.pages)?;
        handle.set(open.name(MEMORY, exported.offset, exported.bytes)?.pack())
    }

    /// Opens memory of another process.
    fn cuIpcOpenMemHandle(address: Out<u64>, handle: Given, flags: c_uint) {
        open_memory(address, handle, flags)
    }

    /// Opens memory of another process.
    fn cuIpcOpenMemHandle_v2(address: Out<u64>, handle: Given, flags: c_uint) {
        open_memory(address, handle, flags)
    }

    /// Closes memory of another process, after all work that may use it.
    fn cuIpcCloseMemHandle(address: u64) {
        let (driver, context) = current()?;
        let (start, block) = driver.blocks.at(address).ok_or(Status::InvalidValue)?;
        if start != address || block.kind != Kind::Imported {
            return Err(Status::InvalidValue);
        }
        {
            let mut opened = driver.imports.opened();
            let found = opened.iter_mut().find(|(_, (at, _))| *at == address).map(|(key, value)| (*key, value));
            let (key, (_, count)) = found.ok_or(Status::InvalidValue)?;
            *count = count.saturating_sub(1);
            if *count > 0 {
                return context.check();
            }
            opened.remove(&key);
        }
        driver.blocks.take(address, |kind| kind == Kind::Imported)?;
        driver.vm.synchronize();
        unmap(driver, address);
        context.check()
    }

    /// Creates a handle by which another process opens an event.
    fn cuIpcGetEventHandle(handle: Out<Bytes>, event: Handle) {
        let (driver, _) = current()?;
        handle.check()?;
        let event = driver.events.get(event)?;
        let shared = event.shared().ok_or(Status::InvalidHandle)?;
        handle.set(shared.open.name(EVENT, 0, PAGE)?.pack())
    }

    /// Opens an event of another process.
    fn cuIpcOpenEventHandle(event: Out<Handle>, handle: Given) {
        let (driver, context) = current()?;
        event.check()?;
        let name = Name::unpack(handle.0, EVENT)?;
        if name.is_own() {
            return Err(Status::InvalidContext);
        }
        let pages = name.open()?;
        if pages.bytes() != PAGE {
            return Err(Status::InvalidHandle);
        }
        let shared = SharedEvent::new(driver, &pages)?;
        event.set(driver.events.insert(Event::shared_with(context, shared)))
    }
}

#[cfg(test)]
mod tests {
    use super::{MEMORY, Name, began};

    #[test]
    fn names_are_what_was_packed() {
        let name =
            Name { kind: MEMORY, process: 1, began: 2, file: 3, inode: 4, offset: 5, bytes: 6, pool: 7 };
        assert_eq!(Name::unpack(name.pack(), MEMORY), Ok(name));
        assert!(Name::unpack([0; 64], MEMORY).is_err());
        let own = u64::from(std::process::id());
        assert!(began(own).is_some() && began(own) == began(own) && began(u64::MAX).is_none());
    }
}
