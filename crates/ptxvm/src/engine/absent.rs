//! A build without native code: every launch runs in the interpreter, and says why if it was asked for more.

use super::{Cpu, Engine, Listing, Ran};
use crate::{CodeCache, Error, Launch};
use ptx_exec::launch::{Kernel, LaunchConfig, LaunchError, LaunchReport};

/// Said where native code is asked for.
const ABSENT: &str = "this build has no JIT (cargo feature `jit`)";

/// With native code: to be called by the first thread of a program whose other threads launch kernels. Here nothing is to be done.
pub fn guard_this_thread() {}

/// There is no compiler.
pub(super) fn compiler() -> Result<super::Compiler, String> {
    Err(ABSENT.to_owned())
}

/// In place of the compiler of a device.
#[derive(Default)]
pub(crate) struct Jit;

/// In place of the native code of a kernel.
#[derive(Default)]
pub(crate) struct Natives;

impl Jit {
    pub(crate) fn new(_cpu: Option<Cpu>, _team: Option<u32>, _cache: CodeCache) -> Self {
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
