//! Code on disk: a folder with a file for each key.
//!
//! A file is written under another name and then renamed, so readers see all of it or nothing, also with several processes at once. It holds
//! a mark, its key and a checksum of the rest; a file that does not fit them, or that another user could have written, is not
//! used. The folder's size is bounded: the files that were used longest ago go first.
//!
//! Invariant: nothing here fails or panics. Where the folder cannot be read or written there is no code on disk, and that is all.

use super::key::Key;
use sha2::{Digest, Sha256};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// What a file begins with.
const MARK: &[u8; 16] = b"ptxvm code\0\0\0\0\0\x01";
/// Mark, key, checksum.
const HEAD: usize = MARK.len() + 32 + 32;
/// How a file's name ends.
const SUFFIX: &str = ".code";
/// How the name of a file ends that is being written.
const UNFINISHED: &str = ".part";
/// The largest file that is read.
const LARGEST: u64 = 64 << 20;
/// A file that was used is noted as such after this time, not each time.
const FRESH: Duration = Duration::from_secs(600);
/// A file that was begun and not finished in this time never will be.
const STALE: Duration = Duration::from_secs(3600);
/// Files written between two looks at the folder's size, which other processes change as well.
const LOOK: u64 = 64;

/// The folder.
#[derive(Debug)]
pub(super) struct Disk {
    folder: PathBuf,
    /// The most bytes that it may hold.
    limit: u64,
    /// What it holds, as far as is known.
    bytes: AtomicU64,
    written: AtomicU64,
}

impl Disk {
    /// A folder that holds at most so many bytes; it is made when something is written.
    pub(super) fn new(folder: PathBuf, limit: u64) -> Disk {
        Disk { folder, limit, bytes: AtomicU64::new(0), written: AtomicU64::new(0) }
    }

    fn path(&self, key: Key) -> PathBuf {
        self.folder.join(format!("{key}{SUFFIX}"))
    }

    /// What was written for a key.
    pub(super) fn read(&self, key: Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        let mut file = File::open(&path).ok()?;
        let about = file.metadata().ok()?;
        if !about.is_file() || about.len() > LARGEST || !is_ours(&about) {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(about.len()).ok()?);
        Read::by_ref(&mut file).take(LARGEST).read_to_end(&mut bytes).ok()?;
        let Some(content) = open(key, &bytes) else {
            // Whoever finds it gone makes it anew.
            let _ = fs::remove_file(&path);
            return None;
        };
        let now = SystemTime::now();
        if about.modified().is_ok_and(|time| now.duration_since(time).is_ok_and(|age| age > FRESH)) {
            // Where its time cannot be set it goes sooner.
            let _ = file.set_modified(now);
        }
        Some(content.to_vec())
    }

    /// Keeps something for a key, if it can.
    pub(super) fn write(&self, key: Key, content: &[u8]) {
        let len = (HEAD + content.len()) as u64;
        if len > LARGEST.min(self.limit) || make_folder(&self.folder).is_err() {
            return;
        }
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let known = self.bytes.fetch_add(len, Ordering::Relaxed) + len;
        if number.is_multiple_of(LOOK) || known > self.limit {
            self.shrink(len);
        }
        // Unique among threads and processes; what a dead process of that number left is written over.
        let name = format!("{key}.{}.{number}{UNFINISHED}", std::process::id());
        let part = self.folder.join(name);
        let done = write_file(&part, &[MARK, &key.0, &checksum(content), content]);
        if done.and_then(|()| fs::rename(&part, self.path(key))).is_err() {
            let _ = fs::remove_file(&part);
        }
    }

    /// Makes room for so many bytes: the files that were used longest ago go, and what was never finished.
    fn shrink(&self, room: u64) {
        let now = SystemTime::now();
        let mut files = Vec::new();
        let mut bytes = 0;
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let (name, Ok(about)) = (entry.file_name(), entry.metadata()) else { continue };
            let Ok(time) = about.modified() else { continue };
            let name = name.to_string_lossy();
            if name.ends_with(UNFINISHED) && now.duration_since(time).is_ok_and(|age| age > STALE) {
                let _ = fs::remove_file(entry.path());
            } else if name.ends_with(SUFFIX) && about.is_file() {
                bytes += about.len();
                files.push((time, entry.path(), about.len()));
            }
        }
        if bytes + room > self.limit {
            // A quarter more than needed, so that the next files need no look.
            let goal = (self.limit - self.limit / 4).saturating_sub(room);
            files.sort();
            for (_, path, len) in files {
                if bytes <= goal {
                    break;
                }
                // Gone already, if another process had the same idea.
                let _ = fs::remove_file(path);
                bytes -= len;
            }
        }
        self.bytes.store(bytes + room, Ordering::Relaxed);
    }
}

/// The content of a file that was written for that key, if it is whole.
fn open(key: Key, bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(MARK)?.strip_prefix(&key.0)?;
    let (sum, content) = rest.split_first_chunk::<32>()?;
    (checksum(content) == *sum).then_some(content)
}

fn checksum(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

fn write_file(path: &Path, parts: &[&[u8]]) -> std::io::Result<()> {
    let mut file = options().open(path)?;
    parts.iter().try_for_each(|part| file.write_all(part))
}

#[cfg(unix)]
fn options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options
}

#[cfg(not(unix))]
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options
}

#[cfg(unix)]
fn make_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_folder(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)
}

/// Whether nobody else can have written a file: code in it will run with this user's rights.
#[cfg(unix)]
fn is_ours(about: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let owner = about.uid();
    (owner == rustix::process::geteuid().as_raw() || owner == 0) && about.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_ours(_about: &Metadata) -> bool {
    true
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
