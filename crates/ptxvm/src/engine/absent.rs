//! A build without native code: every launch runs in the interpreter, and reports this if native code was
//! requested.

use super::{Cpu, Engine, Listing, Ran};
use crate::{CodeCache, Error, Launch};
use ptx_exec::launch::{Kernel, LaunchConfig, LaunchError, LaunchReport};

/// Said where native code is asked for.
const ABSENT: &str = "this build has no JIT (cargo feature `jit`)";

/// With native code: to be called by the first thread of a program whose other threads launch kernels. Here
/// nothing is to be done.
pub fn guard_this_thread() {}

/// There is no compiler.
pub(super) fn compiler() -> Result<super::Compiler, String> {
    Err(ABSENT.to_owned())
}

/// In place of a processor that native code is generated for: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(());

impl From<Cpu> for Target {
    fn from(_cpu: Cpu) -> Self {
        Self(())
    }
}

impl std::str::FromStr for Target {
    type Err = Error;

    fn from_str(_text: &str) -> Result<Self, Error> {
        Err(Error::caller(ABSENT))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("none")
    }
}

impl Target {
    /// The instructions that this machine lacks to execute code for the target; without native code there is
    /// nothing to lack.
    pub fn missing_here(self) -> Option<&'static str> {
        None
    }
}

/// In place of the compiler of a device.
#[derive(Default)]
pub(crate) struct Jit;

/// In place of the native code of a kernel.
#[derive(Default)]
pub(crate) struct Natives;

impl Jit {
    pub(crate) fn new(_target: Option<Target>, _team: Option<u32>, _cache: CodeCache) -> Self {
        Self
    }

    /// Launches a kernel in the interpreter.
    pub(crate) fn launch(
        &self,
        kernel: &Kernel,
        _natives: &Natives,
        launch: &Launch,
        config: &LaunchConfig,
        ran: &mut Ran,
    ) -> Result<Result<LaunchReport, LaunchError>, Error> {
        match launch.engine {
            Engine::Jit => return Err(Error::caller(ABSENT)),
            Engine::Auto => ran.why_not = Some(ABSENT.to_owned()),
            Engine::Interp => {}
        }
        Ok(kernel.launch(config))
    }

    pub(crate) fn listing(
        &self,
        _kernel: &Kernel,
        _block: [u32; 3],
        _what: Listing,
    ) -> Result<String, Error> {
        Err(Error::caller(ABSENT))
    }
}
