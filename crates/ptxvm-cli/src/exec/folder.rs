//! The folder of one run: our libraries under the names that programs ask for, stand-ins for tools, and empty caches.
//!
//! Invariants: it is removed when its value is dropped, unless it is to stay ([`Folder::keep`]); it is this user's alone. A run that is killed leaves its folder behind, and a later
//! run removes it: the folder is locked as long as its run lives.

use super::shim;
use crate::UsageError;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The names under which programs look for the driver, and for what else stands in the same file: `ptx_run`, and a linker with nvJitLink's interface.
/// Who has loaded the driver and asks the loader whether it has nvJitLink already is told yes, as it is the same file.
const DRIVER_NAMES: &[&str] = &[
    "libcuda.so.1",
    "libcuda.so",
    "libgpuocelot.so",
    "libnvJitLink.so.12",
    "libnvJitLink.so.13",
    "libnvJitLink.so",
];
/// Libraries over the driver: the file that cargo builds, and its names.
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
/// Libraries whose users want symbols in the version of the library's name: the file that cargo builds, the name under which programs are linked
/// with it, and those under which they look for it.
const VERSIONED: &[(&str, &str, &[&str])] = &[
    ("libptxvm_cudart.so", "libcudart.so", &["libcudart.so.12", "libcudart.so.13"]),
    ("libptxvm_nvrtc.so", "libnvrtc.so", &["libnvrtc.so.12", "libnvrtc.so.13"]),
];
/// The library that redirects a runtime inside a program to ours, which it finds beside itself.
const PRELOAD: &str = "libptxvm_preload.so";
/// Programs that libraries of clients call.
const TOOLS: &[&str] = &["ptxas", "ptxas-blackwell", "fatbinary"];

/// What its name begins with.
const PREFIX: &str = "ptxvm-exec-";
/// Folders of runs that were killed are removed when they are older than this: programs that such runs started may still use them.
const OLD: Duration = Duration::from_secs(24 * 3600);
/// The most names among which such folders are looked for.
const NAMES: usize = 4096;

/// The folder.
pub(crate) struct Folder {
    path: PathBuf,
    /// Where our libraries are.
    libraries: PathBuf,
    /// Whether it is left behind.
    stays: bool,
    /// Held as long as the run lives.
    _lock: File,
}

impl Folder {
    /// Makes it. `chosen` is where our libraries are; without it they are looked for beside the program.
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

    /// A new folder for temporary files that only this user can read, under a name that others cannot tell before.
    fn fresh(base: &Path) -> Result<Self, UsageError> {
        let path = base.join(format!("{PREFIX}{:016x}", RandomState::new().build_hasher().finish()));
        let fail = |error: std::io::Error| {
            format!("cannot make `{}`: {error}; TMPDIR names another place", path.display())
        };
        // Fails where the name exists, as a link too.
        DirBuilder::new().mode(0o700).create(&path).map_err(fail)?;
        let lock = File::open(&path).map_err(fail)?;
        // A file system without locks lets nobody else have it either.
        let _cannot_be_taken = lock.try_lock();
        Ok(Self { path, libraries: PathBuf::new(), stays: false, _lock: lock })
    }

    /// A library under a name whose users want symbols of the version of that name.
    fn versioned(&self, name: &str, library: &Path) -> std::io::Result<()> {
        let place = self.lib().join(name);
        match shim::library(name, library.as_os_str().as_encoded_bytes()) {
            Some(bytes) => std::fs::write(place, bytes),
            // It works as well, and the loader says that it finds no versions.
            None => symlink(library, place),
        }
    }

    /// Leaves the folder behind when the program ends.
    pub(crate) fn keep(mut self) {
        self.stays = true;
    }

    /// Where the libraries are.
    pub(crate) fn lib(&self) -> PathBuf {
        self.path.join("lib")
    }

    /// What `LD_PRELOAD` is to name, if we have it: the library itself, which outlives the run as programs may that it has started. Where
    /// its path holds what separates the names there, its name, which the loader finds in our folder.
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

    /// An empty folder for what a client keeps.
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

/// What cargo calls our driver.
const DRIVER: &str = "libptxvm_cuda.so";

/// The folder with our libraries: the chosen one, that of the program (as cargo builds them), or `lib/ptxvm` or `lib` beside its folder (as they are
/// installed).
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

/// The files of our libraries, as cargo builds them.
pub(crate) fn library_files() -> Vec<&'static str> {
    let plain = LIBRARIES.iter().map(|(file, _)| *file);
    let versioned = VERSIONED.iter().map(|(file, ..)| *file);
    [DRIVER, PRELOAD].into_iter().chain(plain).chain(versioned).collect()
}

/// Removes this user's folders of runs that ended long ago without doing so.
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
            // What the end of a process does.
            folder._lock.unlock().unwrap();
            std::mem::forget(folder);
            path
        });
        let other = base.path.join("ptxvm-exec.txt");
        std::fs::write(&other, b"of somebody else").unwrap();
        remove_old(&base.path);
        assert!(running.path.exists() && fresh.exists() && other.exists());
        assert!(!killed.exists());
        assert_eq!(base.path.metadata().unwrap().mode() & 0o777, 0o700);
    }
}
