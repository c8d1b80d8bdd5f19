//! The on-disk cache of compiled code.

use std::ffi::OsString;
use std::path::PathBuf;

/// The default limit of the cache on disk, in bytes. Chosen: thousands of kernels.
const BYTES: u64 = 256 << 20;

/// The cache of compiled code for later processes. Code on disk is used only by the build of ptxvm that made
/// it, on the same kind of processor, and only if no other user can have written it: the folder and its files
/// must belong to this user or to root, without write permission for group and others. A folder that cannot
/// be used is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CodeCache {
    /// No cache.
    #[default]
    Off,
    /// A folder.
    Folder {
        /// Its path; it is created on first use.
        path: PathBuf,
        /// Its limit in bytes.
        bytes: u64,
    },
}

impl CodeCache {
    /// The cache that the environment selects: `PTXVM_CACHE_DIR` (empty for none), or else `ptxvm` in
    /// `XDG_CACHE_HOME` or in `.cache` of the home directory.
    pub fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(get: impl Fn(&str) -> Option<OsString>) -> Self {
        let absolute = |name| get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let path = match get("PTXVM_CACHE_DIR") {
            Some(path) if path.is_empty() => None,
            Some(path) => Some(PathBuf::from(path)),
            None => absolute("XDG_CACHE_HOME")
                .or_else(|| Some(absolute("HOME")?.join(".cache")))
                .map(|folder| folder.join("ptxvm")),
        };
        path.map_or(CodeCache::Off, Self::folder)
    }

    /// A cache in this folder, with the default limit.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        CodeCache::Folder { path: path.into(), bytes: BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> CodeCache {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into());
        CodeCache::from_variables(find)
    }

    #[test]
    fn the_environment_chooses_the_folder() {
        let home = ("HOME", "/home/me");
        assert_eq!(chosen(&[home]), CodeCache::folder("/home/me/.cache/ptxvm"));
        assert_eq!(chosen(&[home, ("XDG_CACHE_HOME", "/var/c")]), CodeCache::folder("/var/c/ptxvm"));
        // As the XDG specification requires, relative paths are ignored.
        assert_eq!(chosen(&[home, ("XDG_CACHE_HOME", "c")]), CodeCache::folder("/home/me/.cache/ptxvm"));
        assert_eq!(chosen(&[home, ("PTXVM_CACHE_DIR", "here")]), CodeCache::folder("here"));
        assert_eq!(chosen(&[home, ("PTXVM_CACHE_DIR", "")]), CodeCache::Off);
        assert_eq!(chosen(&[]), CodeCache::Off);
    }
}
