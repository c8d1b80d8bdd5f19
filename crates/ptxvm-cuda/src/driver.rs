//! What all threads of the process share: the device, and what handles name.
//!
//! Invariant: it is made by the first `cuInit` and lives as long as the process.

use crate::context::Context;
use crate::handles::Handles;
use crate::module::{Function, Module};
use crate::status::Status;
use ptxvm::{Error, ErrorKind, Vm};
use std::sync::OnceLock;

/// The driver.
pub(crate) struct Driver {
    /// The one device.
    pub(crate) vm: Vm,
    /// How it presents itself.
    pub(crate) settings: Settings,
    /// `CUcontext`
    pub(crate) contexts: Handles<Context>,
    /// `CUmodule`
    pub(crate) modules: Handles<Module>,
    /// `CUfunction`
    pub(crate) functions: Handles<Function>,
}

/// How the device presents itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Driver version, as `cuDriverGetVersion` counts: 12090 is 12.9. `PTXVM_DRIVER_VERSION`.
    pub(crate) version: i32,
    /// Compute capability, 80 is 8.0. `PTXVM_SM`.
    pub(crate) capability: i32,
}

impl Settings {
    /// From the environment; what cannot be read there is reported and ignored.
    pub(crate) fn from_environment() -> Self {
        let version = std::env::var("PTXVM_DRIVER_VERSION")
            .ok()
            .and_then(|text| read("PTXVM_DRIVER_VERSION", &text, version));
        let capability = std::env::var("PTXVM_SM").ok().and_then(|text| read("PTXVM_SM", &text, capability));
        Self { version: version.unwrap_or(12090), capability: capability.unwrap_or(80) }
    }
}

fn read(name: &str, text: &str, parse: impl Fn(&str) -> Option<i32>) -> Option<i32> {
    let value = parse(text);
    if value.is_none() && !text.is_empty() {
        crate::log::say(&format!("ptxvm: `{name}={text}` is not understood, and ignored"));
    }
    value
}

/// `12.9`, `12090` or `13`.
fn version(text: &str) -> Option<i32> {
    if let Some((major, minor)) = text.split_once('.') {
        let (major, minor): (i32, i32) = (major.parse().ok()?, minor.parse().ok()?);
        return ((2..100).contains(&major) && (0..100).contains(&minor)).then_some(major * 1000 + minor * 10);
    }
    match text.parse().ok()? {
        major @ 2..100 => Some(major * 1000),
        whole @ 2000..100_000 => Some(whole),
        _ => None,
    }
}

/// `80`, `8.0` or `sm_80`, with or without a letter behind.
fn capability(text: &str) -> Option<i32> {
    let text = text.strip_prefix("sm_").unwrap_or(text).trim_end_matches(['a', 'f']).replace('.', "");
    text.parse().ok().filter(|number| (10..200).contains(number))
}

static DRIVER: OnceLock<Result<Driver, Status>> = OnceLock::new();

/// Makes the driver unless it exists.
///
/// # Errors
/// `CUDA_ERROR_OUT_OF_MEMORY` where the system gives no range of addresses.
pub(crate) fn start() -> Result<&'static Driver, Status> {
    let make = || {
        Ok(Driver {
            vm: Vm::with(ptxvm::Options {
                cache: ptxvm::CodeCache::from_environment(),
                ..ptxvm::Options::default()
            })
            .map_err(|error| status_of(&error))?,
            settings: Settings::from_environment(),
            contexts: Handles::default(),
            modules: Handles::default(),
            functions: Handles::default(),
        })
    };
    DRIVER.get_or_init(make).as_ref().map_err(|status| *status)
}

/// The driver.
///
/// # Errors
/// `CUDA_ERROR_NOT_INITIALIZED` before `cuInit`.
pub(crate) fn driver() -> Result<&'static Driver, Status> {
    DRIVER.get().ok_or(Status::NotInitialized)?.as_ref().map_err(|status| *status)
}

/// What an error of the machine below is called in this API.
pub(crate) fn status_of(error: &Error) -> Status {
    match error.kind() {
        ErrorKind::Rejected(_) => Status::InvalidPtx,
        ErrorKind::Trap(trap, _) => crate::launch::status_of_trap(trap),
        ErrorKind::Caller(_) => Status::InvalidValue,
        ErrorKind::Machine(_) => Status::OutOfMemory,
    }
}

#[cfg(test)]
mod tests {
    use super::{capability, version};

    #[test]
    fn versions_are_read_as_people_write_them() {
        assert_eq!(version("12.9"), Some(12090));
        assert_eq!(version("13"), Some(13000));
        assert_eq!(version("12080"), Some(12080));
        assert_eq!(version("0"), None);
        assert_eq!(version("x"), None);
    }

    #[test]
    fn capabilities_are_read_as_people_write_them() {
        assert_eq!(capability("8.0"), Some(80));
        assert_eq!(capability("sm_90a"), Some(90));
        assert_eq!(capability("75"), Some(75));
        assert_eq!(capability("120"), Some(120));
        assert_eq!(capability("7"), None);
    }
}
