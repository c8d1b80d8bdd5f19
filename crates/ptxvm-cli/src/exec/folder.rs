//! The folder of one run: our libraries under the names that programs ask for, stand-ins for tools, and empty caches.
//!
//! Invariant: it is removed when its value is dropped.

use crate::UsageError;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

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
/// The runtime's libraries: the file that cargo builds, and its names.
const RUNTIMES: &[(&str, &[&str])] =
    &[("libptxvm_cudart.so", &["libcudart.so.12", "libcudart.so.13", "libcudart.so"])];
/// Programs that libraries of clients call.
const TOOLS: &[&str] = &["ptxas", "ptxas-blackwell", "fatbinary"];

/// The folder.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes it. `chosen` is where our libraries are; without it they are looked for beside the program.
    pub(crate) fn make(chosen: Option<&Path>) -> Result<Self, UsageError> {
        let libraries = libraries(chosen)?;
        let program = std::env::current_exe()?;
        let folder = Self(fresh()?);
        for part in [folder.lib(), folder.bin(), folder.cache("")] {
            std::fs::create_dir(&part)
                .map_err(|error| format!("cannot make `{}`: {error}", part.display()))?;
        }
        for name in DRIVER_NAMES {
            symlink(libraries.join(DRIVER), folder.lib().join(name))?;
        }
        for (file, names) in RUNTIMES {
            let file = libraries.join(file);
            for name in names.iter().filter(|_| file.exists()) {
                symlink(&file, folder.lib().join(name))?;
            }
        }
        for tool in TOOLS {
            symlink(&program, folder.bin().join(tool))?;
        }
        Ok(folder)
    }

    /// Where the libraries are.
    pub(crate) fn lib(&self) -> PathBuf {
        self.0.join("lib")
    }

    /// Where the tools are.
    pub(crate) fn bin(&self) -> PathBuf {
        self.0.join("bin")
    }

    /// An empty folder for what a client keeps.
    pub(crate) fn cache(&self, client: &str) -> PathBuf {
        self.0.join("cache").join(client)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_dir_all(&self.0);
    }
}

/// What cargo calls our driver.
const DRIVER: &str = "libptxvm_cuda.so";

/// The folder with our libraries: the chosen one, that of the program (as cargo builds them), or `lib/ptxvm` or `lib` beside its folder (as they are
/// installed).
fn libraries(chosen: Option<&Path>) -> Result<PathBuf, UsageError> {
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

/// A new folder for temporary files that only this user can read.
fn fresh() -> Result<PathBuf, UsageError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let base = std::env::temp_dir();
    for attempt in 0..1000 {
        let path = base.join(format!("ptxvm-exec-{}-{attempt}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("cannot make `{}`: {error}", path.display()).into()),
        }
    }
    Err(format!("`{}` is full of folders of earlier runs", base.display()).into())
}
