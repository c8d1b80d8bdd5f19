//! Code on disk: a folder with a file for each key.
//!
//! A file is written under another name and then renamed, so readers see all of it or nothing, also if
//! several processes write or a process is killed. It holds a magic number, its key and a checksum of the
//! content. A file that does not match these, or that another user could have written ([`super::folder`]), is
//! not used. The folder's size is bounded: the least recently used files are removed first.
//!
//! Invariants: no function here fails, waits or panics; at most [`LARGEST`] bytes of a file and [`NAMES`]
//! names are read. If the folder cannot be read or written, no code is cached on disk, which has no other
//! effect.

use super::folder::{About, Folder, Refusal, UNFINISHED};
use super::key::Key;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// The magic number at the start of a file.
const MARK: &[u8; 16] = b"ptxvm code\0\0\0\0\0\x01";
/// The size of magic number, key and checksum.
const HEAD: usize = MARK.len() + 32 + 32;
/// The suffix of a file's name.
const SUFFIX: &str = ".code";
/// The largest file that is read.
const LARGEST: u64 = 64 << 20;
/// The time of a file's last use is updated at most once in this period.
const FRESH: Duration = Duration::from_secs(600);
/// An unfinished file that is older than this is removed. A time further in the future than this comes from a
/// wrong clock.
const STALE: Duration = Duration::from_secs(600);
/// The number of files written between two scans of the folder's size, which other processes change too.
const LOOK: u64 = 64;
/// The most names that a scan reads. Chosen: several times what fits the usual bound, read in a fraction of a
/// second.
const NAMES: usize = 1 << 16;

/// The folder with cached code.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    /// The most bytes that it may hold.
    limit: u64,
    /// The most names that a scan reads.
    names: usize,
    size: Arc<Size>,
    /// The first reason why the folder was not used.
    refusal: OnceLock<String>,
}

/// What this process knows of the size of a folder. It is one for each path, because a process may make many
/// compilers, and each would scan the folder at its first write.
#[derive(Debug, Default)]
struct Size {
    /// The size of the files, as of the last scan.
    bytes: AtomicU64,
    /// The number of files that were written.
    written: AtomicU64,
    /// Whether the folder has more names than a scan reads. Then its size is unknown, and this process writes
    /// no more files.
    crowded: AtomicBool,
}

impl Size {
    /// That of the folder of a path.
    fn of(path: &Path) -> Arc<Size> {
        static SIZES: Mutex<BTreeMap<PathBuf, Arc<Size>>> = Mutex::new(BTreeMap::new());
        let mut sizes = SIZES.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(sizes.entry(path.to_owned()).or_default())
    }
}

impl Disk {
    /// A folder that holds at most `limit` bytes. It is created by the first write.
    pub(super) fn new(path: PathBuf, limit: u64) -> Disk {
        let size = Size::of(&path);
        Disk { path, limit, names: NAMES, size, refusal: OnceLock::new() }
    }

    /// Why the folder was not used, as a sentence with its path; `None` if it was used or not needed.
    pub(super) fn refusal(&self) -> Option<String> {
        let why = self.refusal.get()?;
        Some(format!("{}: {why}", self.path.display()))
    }

    /// The folder if it can be used; otherwise the reason is recorded.
    fn usable(&self, folder: Result<Folder, Refusal>) -> Option<Folder> {
        match folder {
            Ok(folder) => Some(folder),
            Err(Refusal::Absent) => None,
            Err(Refusal::Refused(why)) => {
                let _ = self.refusal.set(why);
                None
            }
        }
    }

    /// The content that was written for a key.
    pub(super) fn read(&self, key: Key) -> Option<Vec<u8>> {
        let folder = self.usable(Folder::open(&self.path))?;
        let name = name(key);
        let (mut file, about) = folder.file(&name)?;
        if about.bytes > LARGEST {
            return None;
        }
        let Some(content) = content(key, &mut file, about.bytes) else {
            // The next process that compiles this kernel writes the file again.
            folder.remove(&name);
            return None;
        };
        let now = SystemTime::now();
        if age(&about, now) > FRESH {
            // If the time cannot be set, the file is only removed earlier.
            let _ = file.set_modified(now);
        }
        Some(content)
    }

    /// Writes the content for a key, if possible.
    pub(super) fn write(&self, key: Key, content: &[u8]) {
        let len = (HEAD + content.len()) as u64;
        if len > LARGEST.min(self.limit) || self.size.crowded.load(Ordering::Relaxed) {
            return;
        }
        let Some(folder) = self.usable(Folder::make(&self.path)) else { return };
        let number = self.size.written.fetch_add(1, Ordering::Relaxed);
        let known = self.size.bytes.fetch_add(len, Ordering::Relaxed).saturating_add(len);
        if number.is_multiple_of(LOOK) || known > self.limit {
            self.shrink(&folder, len);
        }
        if !self.size.crowded.load(Ordering::Relaxed) {
            // If the write fails, the next process compiles the kernel again.
            if !folder.put(&name(key), &[MARK, &key.0, &checksum(content), content]) {
                let _ = self.refusal.set("it cannot be written to".to_owned());
            }
        }
    }

    /// Makes room for so many bytes: removes unfinished files, and the least recently used ones.
    fn shrink(&self, folder: &Folder, room: u64) {
        let now = SystemTime::now();
        let ours = |name: &str| name.ends_with(SUFFIX) || name.ends_with(UNFINISHED);
        let (mut files, all) = folder.list(self.names, ours);
        files.retain(|file| {
            let stale = file.name.ends_with(UNFINISHED) && age(file, now) > STALE;
            if stale {
                folder.remove(&file.name);
            }
            !stale
        });
        // Sparse files may claim sizes whose sum exceeds 64 bits.
        let mut bytes = files.iter().fold(0u64, |bytes, file| bytes.saturating_add(file.bytes));
        let mut surplus = 0;
        if !all {
            // As many names again may follow, so half of these files are removed: later scans then reach the
            // end of the names.
            self.size.crowded.store(true, Ordering::Relaxed);
            surplus = files.len().div_ceil(2);
        }
        // Removes a quarter more than needed, so that the next writes need no scan.
        let is_full = bytes.saturating_add(room) > self.limit;
        let goal = if is_full { (self.limit - self.limit / 4).saturating_sub(room) } else { bytes };
        files.sort_by_cached_key(|file| (std::cmp::Reverse(age(file, now)), file.name.clone()));
        for (number, file) in files.iter().filter(|file| file.name.ends_with(SUFFIX)).enumerate() {
            if bytes <= goal && number >= surplus {
                break;
            }
            // The file may have been removed by another process already.
            folder.remove(&file.name);
            bytes = bytes.saturating_sub(file.bytes);
        }
        self.size.bytes.store(bytes.saturating_add(room), Ordering::Relaxed);
    }
}

fn name(key: Key) -> String {
    format!("{key}{SUFFIX}")
}

/// The time since a file was used. A time in the future has no meaning, and must not keep a file for ever.
fn age(file: &About, now: SystemTime) -> Duration {
    match file.time.map(|time| now.duration_since(time)) {
        Some(Ok(age)) => age,
        Some(Err(ahead)) if ahead.duration() <= STALE => Duration::ZERO,
        Some(Err(_)) | None => Duration::MAX,
    }
}

/// The content of a file of that size that was written for that key, if it is complete.
fn content(key: Key, file: &mut File, bytes: u64) -> Option<Vec<u8>> {
    let len = usize::try_from(bytes).ok()?.checked_sub(HEAD)?;
    let mut head = [0; HEAD];
    file.read_exact(&mut head).ok()?;
    let sum = head.strip_prefix(MARK)?.strip_prefix(&key.0)?;
    let mut content = Vec::new();
    content.try_reserve_exact(len).ok()?;
    file.take(len as u64).read_to_end(&mut content).ok()?;
    (content.len() == len && checksum(&content) == *sum).then_some(content)
}

fn checksum(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
