//! The user's settings: the version that the library reports, the compiler, and its time limit.
//!
//! Invariant: a value that cannot be parsed counts as unset.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The time limit of a compilation unless `PTXVM_NVRTC_TIMEOUT` sets another. Chosen: far more than the
/// largest programs take.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The version of CUDA. It is the driver's (`PTXVM_DRIVER_VERSION`: `12.9`, `13`, `12090`), because clients
/// compare the two.
pub(crate) fn version() -> (i32, i32) {
    let text = std::env::var("PTXVM_DRIVER_VERSION").unwrap_or_default();
    read_version(&text).unwrap_or((12, 9))
}

fn read_version(text: &str) -> Option<(i32, i32)> {
    let whole = |text: &str| text.parse::<u16>().ok().map(i32::from);
    match text.split_once('.') {
        Some((major, minor)) => Some((whole(major)?, whole(minor)?)),
        None => {
            let whole = whole(text)?;
            Some(if whole < 1000 { (whole, 0) } else { (whole / 1000, whole % 1000 / 10) })
        }
    }
}

/// The time limit of a compilation.
pub(crate) fn timeout() -> Duration {
    let set = std::env::var("PTXVM_NVRTC_TIMEOUT").ok().and_then(|text| text.parse::<f64>().ok());
    set.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(TIMEOUT)
}

/// The path of NVIDIA's library, if the user set one.
pub(crate) fn theirs() -> Option<PathBuf> {
    std::env::var_os("PTXVM_NVRTC").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The compiler that the user names.
pub(crate) fn clang() -> Option<OsString> {
    std::env::var_os("PTXVM_CLANG").filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::read_version;

    #[test]
    fn versions_are_read_in_each_spelling() {
        assert_eq!(read_version("12.4"), Some((12, 4)));
        assert_eq!(read_version("13"), Some((13, 0)));
        assert_eq!(read_version("12090"), Some((12, 9)));
        assert_eq!((read_version(""), read_version("new"), read_version("-3.1")), (None, None, None));
    }
}
