//! Code on disk: a folder with a file for each key.
//!
//! A file is written under another name and then renamed, so readers see all of it or nothing, also with several processes at once and
//! where a process is killed. It holds a mark, its key and a checksum of the rest; a file that does not fit them, or that another user
//! could have written ([`super::folder`]), is not used. The folder's size is bounded: the files that were used longest ago go first.
//!
//! Invariants: nothing here fails, waits or panics; no more is read than [`LARGEST`] bytes of a file and [`NAMES`] names. Where the
//! folder cannot be read or written there is no code on disk, and that is all.

use super::folder::{About, Folder, Refusal, UNFINISHED};
use super::key::Key;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// What a file begins with.
const MARK: &[u8; 16] = b"ptxvm code\0\0\0\0\0\x01";
/// Mark, key, checksum.
const HEAD: usize = MARK.len() + 32 + 32;
/// How a file's name ends.
const SUFFIX: &str = ".code";
/// The largest file that is read.
const LARGEST: u64 = 64 << 20;
/// A file that was used is noted as such after this time, not each time.
const FRESH: Duration = Duration::from_secs(600);
/// A file that was begun and not finished in this time never will be. Times further ahead than this come from a clock that was wrong.
const STALE: Duration = Duration::from_secs(600);
/// Files written between two looks at the folder's size, which other processes change as well.
const LOOK: u64 = 64;
/// The most names that a look at the folder reads. Chosen: several times what fits the usual bound, read in a fraction of a second.
const NAMES: usize = 1 << 16;

/// The folder.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    /// The most bytes that it may hold.
    limit: u64,
    /// The most names that are read of it.
    names: usize,
    /// What it holds, as far as is known.
    bytes: AtomicU64,
    written: AtomicU64,
    /// It holds more names than are read, so nobody knows how much it holds, and this process writes no more.
    crowded: AtomicBool,
    /// Why it was not used when that was tried, the first time.
    refusal: OnceLock<String>,
}

impl Disk {
    /// A folder that holds at most so many bytes; it is made when something is written.
    pub(super) fn new(path: PathBuf, limit: u64) -> Disk {
        let (bytes, written) = (AtomicU64::new(0), AtomicU64::new(0));
        let (crowded, refusal) = (AtomicBool::new(false), OnceLock::new());
        Disk { path, limit, names: NAMES, bytes, written, crowded, refusal }
    }

    /// Why the folder was not used, as a sentence with its path; none where it was, or was not needed.
    pub(super) fn refusal(&self) -> Option<String> {
        let why = self.refusal.get()?;
        Some(format!("{}: {why}", self.path.display()))
    }

    /// The folder, or a note of why it is not used.
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

    /// What was written for a key.
    pub(super) fn read(&self, key: Key) -> Option<Vec<u8>> {
        let folder = self.usable(Folder::open(&self.path))?;
        let name = name(key);
        let (mut file, about) = folder.file(&name)?;
        if about.bytes > LARGEST {
            return None;
        }
        let Some(content) = content(key, &mut file, about.bytes) else {
            // Whoever finds it gone makes it anew.
            folder.remove(&name);
            return None;
        };
        let now = SystemTime::now();
        if age(&about, now) > FRESH {
            // Where its time cannot be set it goes sooner.
            let _ = file.set_modified(now);
        }
        Some(content)
    }

    /// Keeps something for a key, if it can.
    pub(super) fn write(&self, key: Key, content: &[u8]) {
        let len = (HEAD + content.len()) as u64;
        if len > LARGEST.min(self.limit) || self.crowded.load(Ordering::Relaxed) {
            return;
        }
        let Some(folder) = self.usable(Folder::make(&self.path)) else { return };
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let known = self.bytes.fetch_add(len, Ordering::Relaxed).saturating_add(len);
        if number.is_multiple_of(LOOK) || known > self.limit {
            self.shrink(&folder, len);
        }
        if !self.crowded.load(Ordering::Relaxed) {
            // The next process makes the code anew.
            if !folder.put(&name(key), &[MARK, &key.0, &checksum(content), content]) {
                let _ = self.refusal.set("it cannot be written to".to_owned());
            }
        }
    }

    /// Makes room for so many bytes: what was never finished goes, and the files that were used longest ago.
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
        // Files of holes may claim to be larger than all that numbers of 64 bits can say.
        let mut bytes = files.iter().fold(0u64, |bytes, file| bytes.saturating_add(file.bytes));
        let mut surplus = 0;
        if !all {
            // As many again may follow, so half of these go: the next processes come to an end of the names.
            self.crowded.store(true, Ordering::Relaxed);
            surplus = files.len().div_ceil(2);
        }
        // A quarter more than needed, so that the next files need no look.
        let is_full = bytes.saturating_add(room) > self.limit;
        let goal = if is_full { (self.limit - self.limit / 4).saturating_sub(room) } else { bytes };
        files.sort_by_cached_key(|file| (std::cmp::Reverse(age(file, now)), file.name.clone()));
        for (number, file) in files.iter().filter(|file| file.name.ends_with(SUFFIX)).enumerate() {
            if bytes <= goal && number >= surplus {
                break;
            }
            // Gone already, if another process had the same idea.
            folder.remove(&file.name);
            bytes = bytes.saturating_sub(file.bytes);
        }
        self.bytes.store(bytes.saturating_add(room), Ordering::Relaxed);
    }
}

fn name(key: Key) -> String {
    format!("{key}{SUFFIX}")
}

/// How long ago a file was used. A time that is still to come tells nothing, and must not keep a file for ever.
fn age(file: &About, now: SystemTime) -> Duration {
    match file.time.map(|time| now.duration_since(time)) {
        Some(Ok(age)) => age,
        Some(Err(ahead)) if ahead.duration() <= STALE => Duration::ZERO,
        Some(Err(_)) | None => Duration::MAX,
    }
}

/// The content of a file of that size that was written for that key, if it is whole.
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
