//! The folder of one run: our libraries under the names that programs use, stand-ins for tools, and empty
//! caches.
//!
//! Invariants: the folder is removed when its value is dropped, unless it is kept ([`Folder::keep`]). Only
//! this user can access it. A killed run leaves its folder behind, and a later run removes it: the folder is
//! locked while its run lives.

use super::shim;
use crate::UsageError;
use crate::options::ExecOptions;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The names under which programs load the driver, and the other interfaces in the same file: `ptx_run`, and
/// a linker with nvJitLink's interface. A program that has loaded the driver and asks the loader whether
/// nvJitLink is loaded gets a positive answer, because it is the same file.
const DRIVER_NAMES: &[&str] = &[
    "libcuda.so.1",
    "libcuda.so",
    "libgpuocelot.so",
    "libnvJitLink.so.12",
    "libnvJitLink.so.13",
    "libnvJitLink.so",
];
/// Libraries over the driver: cargo's file, and its names.
const LIBRARIES: &[(&str, &[&str])] = &[(
    "libptxvm_cublas.so",
    &[
        "libcublas.so.12",
        "libcublas.so.13",
        "libcublas.so",
        "libcublasLt.so.12",
        "libcublasLt.so.13",
        "libcublasLt.so",
    ],
)];
/// Libraries whose users require versioned symbols: cargo's file, the name with which programs are linked,
/// and the names under which they load it.
const VERSIONED: &[(&str, &str, &[&str])] = &[
    ("libptxvm_cudart.so", "libcudart.so", &["libcudart.so.12", "libcudart.so.13"]),
    ("libptxvm_nvrtc.so", "libnvrtc.so", &["libnvrtc.so.12", "libnvrtc.so.13"]),
];
/// The library that redirects a runtime inside of a program to ours, which it finds in its own folder.
const PRELOAD: &str = "libptxvm_preload.so";
/// Programs that libraries of clients call.
const TOOLS: &[&str] = &["ptxas", "ptxas-blackwell", "fatbinary", "nvlink"];

/// The prefix of the folder's name.
const PREFIX: &str = "ptxvm-exec-";
/// Folders of killed runs are removed only when they are older than this, because programs of such runs may
/// still use them.
const OLD: Duration = Duration::from_secs(24 * 3600);
/// The most entries that are searched for such folders.
const NAMES: usize = 4096;

/// The folder.
pub(crate) struct Folder {
    path: PathBuf,
    /// The location of our libraries.
    libraries: PathBuf,
    /// Whether it is kept.
    stays: bool,
    /// Held while the run lives.
    _lock: File,
}

impl Folder {
    /// Creates it. `chosen` is the location of our libraries; by default they are next to the program.
    pub(crate) fn make(chosen: Option<&Path>) -> Result<Self, UsageError> {
        let libraries = libraries(chosen)?;
        let program = std::env::current_exe()?;
        let base = std::env::temp_dir();
        let mut folder = Self::fresh(&base)?;
        remove_old(&base);
        for part in [folder.lib(), folder.bin(), folder.cache("")] {
            std::fs::create_dir(&part)
                .map_err(|error| format!("cannot make `{}`: {error}", part.display()))?;
        }
        for name in DRIVER_NAMES {
            symlink(libraries.join(DRIVER), folder.lib().join(name))?;
        }
        for (file, names) in LIBRARIES {
            let file = libraries.join(file);
            for name in names.iter().filter(|_| file.exists()) {
                symlink(&file, folder.lib().join(name))?;
            }
        }
        for (file, linked, names) in VERSIONED {
            let file = libraries.join(file);
            if file.exists() {
                symlink(&file, folder.lib().join(linked))?;
                for name in *names {
                    folder.versioned(name, &file)?;
                }
            }
        }
        for tool in TOOLS {
            symlink(&program, folder.bin().join(tool))?;
        }
        if libraries.join(PRELOAD).exists() {
            symlink(libraries.join(PRELOAD), folder.lib().join(PRELOAD))?;
        }
        folder.libraries = libraries;
        Ok(folder)
    }

    /// A new temporary folder that only this user can read, with an unpredictable name.
    fn fresh(base: &Path) -> Result<Self, UsageError> {
        let path = base.join(format!("{PREFIX}{:016x}", RandomState::new().build_hasher().finish()));
        let fail = |error: std::io::Error| {
            format!("cannot make `{}`: {error}; TMPDIR names another place", path.display())
        };
        // Fails if the name exists, even as a link.
        DirBuilder::new().mode(0o700).create(&path).map_err(fail)?;
        let lock = File::open(&path).map_err(fail)?;
        // On a file system without locks no process can lock the folder.
        let _cannot_be_taken = lock.try_lock();
        Ok(Self { path, libraries: PathBuf::new(), stays: false, _lock: lock })
    }

    /// A library under a name for which users require versioned symbols.
    fn versioned(&self, name: &str, library: &Path) -> std::io::Result<()> {
        let place = self.lib().join(name);
        match shim::library(name, library.as_os_str().as_encoded_bytes()) {
            Some(bytes) => std::fs::write(place, bytes),
            // It works, but the loader prints that it finds no versions.
            None => symlink(library, place),
        }
    }

    /// Adds the tools that options ask for.
    pub(crate) fn add_tools(&self, options: &ExecOptions) -> Result<(), UsageError> {
        if options.nvcc {
            symlink(std::env::current_exe()?, self.bin().join("nvcc"))?;
        }
        Ok(())
    }

    /// Keeps the folder after the program has ended.
    pub(crate) fn keep(mut self) {
        self.stays = true;
    }

    /// Where the libraries are.
    pub(crate) fn lib(&self) -> PathBuf {
        self.path.join("lib")
    }

    /// The value for `LD_PRELOAD`, if we have the library: its path, because it must outlive the run like
    /// programs that the run has started. If the path contains a separator of that list, its name, which the
    /// loader finds in our folder.
    pub(crate) fn preload(&self) -> Option<OsString> {
        let library = self.libraries.join(PRELOAD);
        let is_one_name = !library.as_os_str().as_encoded_bytes().iter().any(|byte| b" :\t\n".contains(byte));
        library.exists().then(|| if is_one_name { library.into() } else { PRELOAD.into() })
    }

    /// The file in which processes write what tools find.
    pub(crate) fn findings(&self) -> PathBuf {
        self.path.join("findings")
    }

    /// Where the tools are.
    pub(crate) fn bin(&self) -> PathBuf {
        self.path.join("bin")
    }

    /// An empty folder for a client's cache.
    pub(crate) fn cache(&self, client: &str) -> PathBuf {
        self.path.join("cache").join(client)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.stays {
            let _leftovers_are_harmless = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Cargo's name of our driver.
const DRIVER: &str = "libptxvm_cuda.so";

/// The folder with our libraries: the chosen one, that of the program (for cargo's builds), or `lib/ptxvm` or
/// `lib` next to its folder (for installations).
pub(crate) fn libraries(chosen: Option<&Path>) -> Result<PathBuf, UsageError> {
    let program = std::env::current_exe()?.canonicalize()?;
    let beside = program.parent().unwrap_or(Path::new("/"));
    let places = match chosen {
        Some(chosen) => vec![chosen.to_owned()],
        None => vec![beside.to_owned(), beside.join("../lib/ptxvm"), beside.join("../lib")],
    };
    match places.iter().find(|place| place.join(DRIVER).exists()) {
        Some(place) => Ok(place.canonicalize()?),
        None => {
            let looked: Vec<_> = places.iter().map(|place| format!("`{}`", place.display())).collect();
            Err(format!(
                "`{DRIVER}` is not in {}; `cargo build --release` builds it, `--library-path` or PTXVM_LIBRARY_PATH says where it is",
                looked.join(" nor ")
            )
            .into())
        }
    }
}

/// The files of our libraries, with cargo's names.
pub(crate) fn library_files() -> Vec<&'static str> {
    let plain = LIBRARIES.iter().map(|(file, _)| *file);
    let versioned = VERSIONED.iter().map(|(file, ..)| *file);
    [DRIVER, PRELOAD].into_iter().chain(plain).chain(versioned).collect()
}

/// Removes this user's folders of killed runs.
fn remove_old(base: &Path) {
    for entry in std::fs::read_dir(base).into_iter().flatten().take(NAMES).flatten() {
        if is_ours(&entry.file_name()) && is_abandoned(&entry.path()) {
            let _leftovers_are_harmless = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_ours(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(PREFIX))
}

fn is_abandoned(path: &Path) -> bool {
    let Ok(about) = path.symlink_metadata() else { return false };
    let is_old = about.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age > OLD));
    let is_this_users = about.is_dir() && about.uid() == rustix::process::geteuid().as_raw();
    is_old && is_this_users && File::open(path).is_ok_and(|folder| folder.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn folders_of_killed_runs_go_later() {
        let base = Folder::fresh(&std::env::temp_dir()).unwrap();
        let make = |age: u64| {
            let folder = Folder::fresh(&base.path).unwrap();
            std::fs::create_dir(folder.lib()).unwrap();
            folder._lock.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
            folder
        };
        let (running, killed, fresh) = (make(1 << 20), make(1 << 20), make(60));
        let [killed, fresh] = [killed, fresh].map(|folder| {
            let path = folder.path.clone();
            // As at the end of a process.
            folder._lock.unlock().unwrap();
            std::mem::forget(folder);
            path
        });
        let other = base.path.join("ptxvm-exec.txt");
        std::fs::write(&other, b"of another program").unwrap();
        remove_old(&base.path);
        assert!(running.path.exists() && fresh.exists() && other.exists());
        assert!(!killed.exists());
        assert_eq!(base.path.metadata().unwrap().mode() & 0o777, 0o700);
    }
}
