//! A folder of files that will be executed with this user's rights, as an open descriptor.
//!
//! Another user who could put a file into the folder, or change one, could run code as this user. So the
//! folder and each file must belong to this user or to root, and no group and no other user may have write
//! permission. Both checks are made on descriptors, not on paths, and every name is looked up from the
//! folder's descriptor: replacing the folder, or planting a link, between check and use has no effect. The
//! mode of a file with an access control list includes the permissions of the list, so the check of the mode
//! covers lists too. Further hard links of a file are harmless, since the file cannot be written to through
//! them.
//!
//! Invariants: a name that is read, created or removed is an entry of the folder itself, never the target of
//! a link; only regular files are opened, and opening never waits (a FIFO would make it wait).
//!
//! It does not protect against this user's own other programs, which could replace ptxvm itself, nor against
//! root.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The suffix of the name of an unfinished file.
pub(super) const UNFINISHED: &str = ".part";
/// Linux reports this number for owners that have no number in the user namespace, so it does not identify
/// the owner.
const UNKNOWN_OWNER: u32 = 65534;

/// The open folder.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

/// Why a folder is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It does not exist.
    Absent,
    /// It exists, but is rejected for this reason.
    Refused(String),
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Refusal {
        match error {
            Errno::NOENT => Refusal::Absent,
            error => Refusal::Refused(std::io::Error::from(error).to_string()),
        }
    }
}

/// A regular file of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct About {
    /// The time of the last write or use; `None` if the clock cannot represent it.
    pub(super) time: Option<SystemTime>,
    /// Its name.
    pub(super) name: String,
    /// Its size.
    pub(super) bytes: u64,
}

impl Folder {
    /// Opens the folder of that path, if only this user and root can write to it.
    ///
    /// # Errors
    /// The reason why it is not used.
    pub(super) fn open(path: &Path) -> Result<Folder, Refusal> {
        // Without a trailing slash, which would follow a link.
        let path: PathBuf = path.components().collect();
        let link = rustix::fs::lstat(&path)?;
        let refused = |why: &str| Err(Refusal::Refused(why.to_owned()));
        let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if is_of(&link, FileType::Symlink) {
            if !is_trusted(link.st_uid) {
                return refused("it is a link that belongs to another user");
            }
        } else {
            flags |= OFlags::NOFOLLOW;
        }
        let folder = rustix::fs::open(&path, flags, Mode::empty())?;
        let about = rustix::fs::fstat(&folder)?;
        if !is_of(&about, FileType::Directory) {
            return refused("it is not a folder");
        }
        if !is_trusted(about.st_uid) {
            return refused("it belongs to another user");
        }
        match is_private(&about) {
            true => Ok(Folder(folder)),
            false => Err(Refusal::Refused(format!(
                "other users can write to it (mode {:o})",
                about.st_mode & 0o7777
            ))),
        }
    }

    /// As [`Folder::open`]; creates the folder if it does not exist.
    ///
    /// # Errors
    /// The reason why it is not used, or could not be created.
    pub(super) fn make(path: &Path) -> Result<Folder, Refusal> {
        match (DirBuilder::new().recursive(true).mode(0o700).create(path), Folder::open(path)) {
            (Err(error), Err(Refusal::Absent)) => {
                Err(Refusal::Refused(format!("it cannot be made: {error}")))
            }
            (_, folder) => folder,
        }
    }

    /// Opens a regular file that only this user and root can write to, with its metadata.
    pub(super) fn file(&self, name: &str) -> Option<(File, About)> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, name, flags, Mode::empty()).ok()?;
        let about = rustix::fs::fstat(&file).ok()?;
        is_private(&about).then_some((File::from(file), About::new(name, &about)?))
    }

    /// Writes a file under that name, completely or not at all. Returns whether it was written.
    pub(super) fn put(&self, name: &str, parts: &[&[u8]]) -> bool {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        // Beyond that limit the system would end the process by a signal.
        if getrlimit(Resource::Fsize).current.is_some_and(|most| bytes > most) {
            return false;
        }
        let part = format!("{:016x}{:016x}{UNFINISHED}", unpredictable(), unpredictable());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(&self.0, &part, flags, Mode::RUSR | Mode::WUSR) else {
            return false;
        };
        let mut file = File::from(file);
        let written = parts.iter().try_for_each(|part| file.write_all(part));
        let done = written.is_ok() && rustix::fs::renameat(&self.0, &part, &self.0, name).is_ok();
        if !done {
            self.remove(&part);
        }
        done
    }

    /// Removes a file, if it exists and can be removed.
    pub(super) fn remove(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.0, name, AtFlags::empty());
    }

    /// The regular files whose names `wanted` accepts, among the first `most` names, and whether these were
    /// all names.
    pub(super) fn list(&self, most: usize, wanted: impl Fn(&str) -> bool) -> (Vec<About>, bool) {
        let mut files = Vec::new();
        let Ok(names) = Dir::read_from(&self.0) else { return (files, false) };
        for (count, entry) in names.enumerate() {
            if count >= most {
                return (files, false);
            }
            let Ok(entry) = entry else { return (files, false) };
            let Some(name) = entry.file_name().to_str().ok().filter(|name| wanted(name)) else { continue };
            let about = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW);
            // The file may have been removed by another process already.
            files.extend(about.ok().and_then(|about| About::new(name, &about)));
        }
        (files, true)
    }
}

impl About {
    fn new(name: &str, about: &Stat) -> Option<About> {
        let time = u64::try_from(about.st_mtime).ok();
        let time = time.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        let bytes = u64::try_from(about.st_size).ok()?;
        is_of(about, FileType::RegularFile).then_some(About { time, name: name.to_owned(), bytes })
    }
}

fn is_of(about: &Stat, kind: FileType) -> bool {
    FileType::from_raw_mode(about.st_mode) == kind
}

/// Whether only this user and root can write to a file, and only they could change its owner.
fn is_private(about: &Stat) -> bool {
    is_trusted(about.st_uid) && !Mode::from_raw_mode(about.st_mode).intersects(Mode::WGRP | Mode::WOTH)
}

fn is_trusted(owner: u32) -> bool {
    (owner == geteuid().as_raw() || owner == 0) && owner != UNKNOWN_OWNER
}

/// A number that other users cannot predict: the standard library draws the keys of its hasher from the
/// system.
fn unpredictable() -> u64 {
    RandomState::new().build_hasher().finish()
}
