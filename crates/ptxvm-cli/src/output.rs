//! Output of the program: standard output, standard error, and files of the command line.
//!
//! A file is written under a temporary name in the same folder and then renamed, so a full disk or a kill
//! leaves the old file unchanged; `inout:` and `fmt` overwrite their input. A link is followed only if this
//! user or root owns it, because another user may have planted it in a folder with public write permission. A
//! file that is not regular (`/dev/stdout`, a FIFO) is written directly.
//!
//! Invariant: nothing here panics, whatever the descriptors are. The owners of the folders in a path are not
//! checked.

use crate::UsageError;
use rustix::process::geteuid;
use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{BufWriter, ErrorKind, Result, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Prints to standard output. A closed reader (`ptxvm isa | head`) is no error.
///
/// # Errors
/// It cannot be written, for example on a full disk.
pub(crate) fn print_out(text: &str) -> std::result::Result<(), UsageError> {
    let mut out = std::io::stdout().lock();
    ended(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Converts the result of other prints to standard output in the same way.
pub(crate) fn ended(printed: Result<()>) -> std::result::Result<(), UsageError> {
    match printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write standard output: {error}").into())
        }
        _ => Ok(()),
    }
}

/// Prints to standard error. A failure is ignored; the exit status remains.
pub(crate) fn print_err(text: &str) {
    let _no_place_to_say_so = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Writes a file with the output of `content`.
///
/// # Errors
/// The reason why it cannot be written; an old file is then unchanged.
pub(crate) fn write_file(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> std::result::Result<(), UsageError> {
    replace(path, content).map_err(|error| format!("cannot write `{}`: {error}", path.display()).into())
}

fn replace(path: &Path, content: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    if is_descriptor(path) {
        return fill(OpenOptions::new().write(true).truncate(true).open(path)?, content);
    }
    let path = target(path)?;
    let old = match std::fs::metadata(&path) {
        Ok(about) if about.is_file() => Some(about),
        Ok(_) => return fill(OpenOptions::new().write(true).open(&path)?, content),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if old.as_ref().is_some_and(|old| old.permissions().readonly()) {
        return Err(std::io::Error::new(ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let (part, file) = beside(&path)?;
    let done = keep_mode(&file, old).and_then(|()| fill(file, content));
    let done = done.and_then(|()| std::fs::rename(&part, &path));
    if done.is_err() {
        let _the_first_error_counts = std::fs::remove_file(&part);
    }
    done
}

fn fill(file: File, content: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    out.flush()
}

/// Whether a path names an open file of this process, such as `/dev/stdout`.
fn is_descriptor(path: &Path) -> bool {
    let names = |path: &Path| path.starts_with("/proc") || path.starts_with("/dev/fd");
    names(path) || std::fs::read_link(path).is_ok_and(|target| names(&target))
}

/// The target of a path that is a link.
fn target(path: &Path) -> Result<PathBuf> {
    let Ok(about) = std::fs::symlink_metadata(path) else { return Ok(path.to_owned()) };
    if !about.is_symlink() {
        return Ok(path.to_owned());
    }
    if about.uid() != 0 && about.uid() != geteuid().as_raw() {
        return Err(std::io::Error::new(
            ErrorKind::PermissionDenied,
            "it is a symbolic link of another user",
        ));
    }
    match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(std::io::Error::new(ErrorKind::NotFound, "it is a dangling symbolic link"))
        }
        found => found,
    }
}

/// A new file in the folder of a path, with an unpredictable name.
fn beside(path: &Path) -> Result<(PathBuf, File)> {
    let number = RandomState::new().build_hasher().finish();
    let name = path.file_name().ok_or_else(|| std::io::Error::from(ErrorKind::IsADirectory))?;
    let mut part = std::ffi::OsString::from(".");
    // Names have at most 255 bytes.
    part.push(name.to_string_lossy().chars().take(40).collect::<String>());
    part.push(format!(".{number:016x}.part"));
    let part = path.with_file_name(part);
    // Fails if the name exists, even as a link.
    Ok((part.clone(), OpenOptions::new().write(true).create_new(true).open(&part)?))
}

/// Gives a new file the mode of the file that it replaces. If modes cannot be changed, it must not allow
/// more.
fn keep_mode(file: &File, old: Option<Metadata>) -> Result<()> {
    let Some(old) = old else { return Ok(()) };
    let more = file.metadata()?.mode() & !old.mode() & 0o777;
    match file.set_permissions(old.permissions()) {
        Err(error) if more != 0 => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ptxvm-output-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn write(path: &Path, text: &str) -> std::result::Result<(), String> {
        write_file(path, |out| out.write_all(text.as_bytes())).map_err(|error| error.0)
    }

    #[test]
    fn a_failure_leaves_the_old_file() {
        let scratch = Scratch::new("old");
        let file = scratch.0.join("file");
        write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let full = |out: &mut dyn Write| {
            out.write_all(&[0; 100_000])?;
            Err(std::io::Error::from(ErrorKind::StorageFull))
        };
        let error = write_file(&file, full).unwrap_err().0;
        assert!(error.starts_with("cannot write `") && error.ends_with("no storage space"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1, "nothing unfinished is left");
        write(&file, "new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(write(&file, "more").unwrap_err().ends_with("the file is read-only"));
        let long = scratch.0.join("n".repeat(255));
        write(&long, "long").unwrap();
        assert!(write(&scratch.0.join("no/folder"), "").is_err());
        assert!(write(&scratch.0, "").is_err());
        write(Path::new("/dev/null"), "nothing").unwrap();
        assert!(write(Path::new("/dev/full"), "something").is_err());
    }

    #[test]
    fn links_of_this_user_are_followed_and_stay() {
        let scratch = Scratch::new("links");
        let (file, link, wild) = (scratch.0.join("file"), scratch.0.join("link"), scratch.0.join("wild"));
        write(&file, "old").unwrap();
        symlink("file", &link).unwrap();
        symlink("nothing", &wild).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(link.is_symlink());
        assert!(write(&wild, "").unwrap_err().ends_with("a dangling symbolic link"));
        // Only root can change the owner of a link.
        if lchown(&link, Some(geteuid().as_raw() + 1), None).is_ok() {
            assert!(write(&link, "more").unwrap_err().ends_with("a symbolic link of another user"));
            assert_eq!(fs::read(&file).unwrap(), b"new");
        }
    }
}
