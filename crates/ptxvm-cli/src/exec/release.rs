//! The version of CUDA's tools that the stand-ins report.
//!
//! Invariant: it is the driver's, because clients compare the two.

use crate::{Exit, UsageError};

/// The CUDA version that the tools report: that of the driver. Clients choose the PTX version by it.
fn release() -> (u32, u32) {
    let text = std::env::var("PTXVM_DRIVER_VERSION").unwrap_or_default();
    let read = |text: &str| match text.split_once('.') {
        Some((major, minor)) => Some((major.parse().ok()?, minor.parse().ok()?)),
        None => {
            let whole: u32 = text.parse().ok()?;
            Some(if whole < 1000 { (whole, 0) } else { (whole / 1000, whole % 1000 / 10) })
        }
    };
    read(&text).unwrap_or((12, 9))
}

/// Prints the version in the format that clients expect.
pub(super) fn version(tool: &str) -> Result<Exit, UsageError> {
    let (major, minor) = release();
    crate::print_out(&format!(
        "{tool}: the stand-in of ptxvm\nCuda compilation tools, release {major}.{minor}, V{major}.{minor}.0\n"
    ))?;
    Ok(Exit::Done)
}
