//! The folders around this program and this library in which packages put LLVM.
//!
//! Invariant: a folder is found from the file that contains this code (a program, `libcuda.so.1`, a Python
//! extension), with links followed, so a package works wherever it is unpacked. The environment is not read.

use std::path::{Path, PathBuf};

/// The folders for LLVM, relative to the folder of a program or library: the same one, one below it as in a
/// Python wheel, or one next to `bin`.
const PARTS: [&str; 4] = ["", "lib/ptxvm", "../lib/ptxvm", "../lib"];

/// The paths at which `file` may exist, best first: those around the file that contains this code before
/// those around the program.
pub(super) fn places(file: &str) -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let mut places = Vec::new();
    for holder in [this_object(), program].into_iter().flatten() {
        let Some(folder) = holder.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned))
        else {
            continue;
        };
        places.extend(PARTS.iter().map(|part| folder.join(part).join(file)));
    }
    places
}

/// The file that contains this function; `None` if the loader knows no full path. For a program, the loader's
/// name is the one that its parent gave.
#[cfg(target_os = "linux")]
fn this_object() -> Option<PathBuf> {
    use std::ffi::{CStr, OsStr};
    use std::mem::MaybeUninit;
    use std::os::unix::ffi::OsStrExt as _;
    let mut about = MaybeUninit::<libc::Dl_info>::zeroed();
    let here = this_object as fn() -> Option<PathBuf> as *const libc::c_void;
    // SAFETY: `dladdr` takes any address and writes to memory for one `Dl_info`.
    let found = unsafe { libc::dladdr(here, about.as_mut_ptr()) };
    // SAFETY: null pointers are values of all its fields, and `dladdr` writes valid ones.
    let about = unsafe { about.assume_init() };
    if found == 0 || about.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of an object that stays loaded while code of it runs.
    let name = unsafe { CStr::from_ptr(about.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes()))).filter(|path| path.is_absolute())
}

/// Not implemented; the program's folder is searched.
#[cfg(not(target_os = "linux"))]
fn this_object() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn places_are_around_the_test_program() {
        let program = std::env::current_exe().unwrap().canonicalize().unwrap();
        let folder = program.parent().unwrap();
        let places = super::places("x");
        assert!(places.contains(&folder.join("x")), "{places:?}");
        assert!(places.contains(&folder.join("../lib/ptxvm/x")), "{places:?}");
        assert!(places.iter().all(|place| place.ends_with("x")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_object_is_the_test_program_or_unknown() {
        let program = std::env::current_exe().unwrap().canonicalize().unwrap();
        let found = super::this_object().map(|path| path.canonicalize().unwrap());
        assert!(found.is_none() || found == Some(program), "{found:?}");
    }
}
