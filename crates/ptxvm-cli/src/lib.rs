//! The readers of the program `ptxvm` besides PTX, for tests and fuzz targets: `.npy` files, launch files and
//! arguments.
//!
//! The program does not use this library: it contains the same files as modules.
#![forbid(unsafe_code)]
#![allow(dead_code, reason = "the program uses the rest")]

mod arg;
mod bind;
mod launch_file;
mod npy;
mod object;
mod output;
mod usage;

pub(crate) use usage::{UsageError, read_at_most};

/// Passes the bytes to every reader of user input; each accepts or refuses them.
///
/// # Panics
/// If a reader violates its invariants.
pub fn reads(bytes: &[u8]) {
    if let Ok(array) = npy::Array::read_from(&mut &bytes[..]) {
        assert_eq!(array.bytes.len() as u64, array.len(), "an array has the bytes that it says");
        assert!(array.bytes.len() < bytes.len(), "an array is smaller than its file");
    }
    let text = String::from_utf8_lossy(bytes);
    if let Ok(file) = launch_file::LaunchFile::parse(&text) {
        let extents = [file.grid, file.block].into_iter().flatten().flatten();
        assert!(extents.min() != Some(0), "an extent is at least 1");
    }
    let mut given = bind::Given::default();
    for line in text.lines() {
        if let Ok(arg::Arg::Scalar { bytes, .. }) = arg::Arg::parse(line) {
            assert!(matches!(bytes.len(), 1 | 2 | 4 | 8), "a scalar of {} bytes", bytes.len());
        }
        let (_bind, _texels) = (given.bind(line), given.texels(line));
    }
}
