//! Which engine executes a launch.
//!
//! Invariant: results do not depend on the engine. What cannot be compiled runs in the interpreter, and the report says so.

use crate::{Error, Launch};
use ptx_exec::launch::Kernel;
use std::time::Duration;

/// An engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The interpreter for short launches, native code for others, if it can be made.
    #[default]
    Auto,
    /// The interpreter.
    Interp,
    /// Native code; an error where none can be made.
    Jit,
}

/// The instructions that native code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cpu {
    /// 16 lanes at a time.
    Avx512,
    /// 8 lanes at a time.
    Avx2,
    /// 4 lanes at a time: any processor.
    Baseline,
}

/// What executed a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Whether native code took part.
    pub native: bool,
    /// Time that compiling took, if this launch had to.
    pub compiled: Duration,
    /// Why the kernel was not compiled, where it was asked for or would have paid.
    pub why_not: Option<String>,
    /// Warp instructions in native code.
    pub native_instructions: u64,
    /// How many of these the interpreter's functions executed.
    pub fallback_instructions: u64,
    /// Instructions of the kernel that have no native code, and how often they stand in it.
    pub fallbacks: Vec<(String, u32)>,
}

#[cfg(feature = "jit")]
mod jit {
    use super::{Cpu, Engine, Error, Kernel, Launch, Ran};
    use ptx_exec::native::Native;
    use ptx_jit::{Compiled, Session};
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex, OnceLock, PoisonError};

    /// Threads of a launch from which on it is worth compiling for. Chosen: what the interpreter does in about the time of compiling.
    const WORTH: u64 = 8192;

    /// The compiler of a device.
    #[derive(Default)]
    pub(crate) struct Jit {
        cpu: Option<Cpu>,
        session: OnceLock<Result<Session, String>>,
    }

    /// Native code, or why there is none.
    type Made = Result<Arc<Compiled>, String>;

    /// The native code of a kernel, by the shape of its CTAs.
    #[derive(Default)]
    pub(crate) struct Natives {
        by_shape: Mutex<HashMap<[u32; 3], Made>>,
    }

    fn target(cpu: Option<Cpu>) -> ptx_jit::Cpu {
        match cpu {
            None => ptx_jit::Cpu::detect(),
            Some(Cpu::Avx512) => ptx_jit::Cpu::Avx512,
            Some(Cpu::Avx2) => ptx_jit::Cpu::Avx2,
            Some(Cpu::Baseline) => ptx_jit::Cpu::Baseline,
        }
    }

    impl Jit {
        pub(crate) fn for_cpu(cpu: Option<Cpu>) -> Self {
            Self { cpu, session: OnceLock::new() }
        }

        fn session(&self) -> Result<&Session, String> {
            let start = || {
                let cpu = target(self.cpu);
                if !cpu.is_available() {
                    return Err(format!("this machine has no {}", cpu.name()));
                }
                Session::new(cpu).map_err(|error| error.to_string())
            };
            self.session.get_or_init(start).as_ref().map_err(Clone::clone)
        }

        /// Native code for a launch, if it is to be used.
        pub(crate) fn choose(
            &self,
            kernel: &Kernel,
            natives: &Natives,
            launch: &Launch,
            ran: &mut Ran,
        ) -> Result<Option<Arc<dyn Native>>, Error> {
            if launch.engine == Engine::Interp {
                return Ok(None);
            }
            let all = launch.grid.iter().chain(&launch.block).map(|n| u64::from(*n));
            let threads = all.fold(1, u64::saturating_mul);
            let mut made = natives.by_shape.lock().unwrap_or_else(PoisonError::into_inner);
            let found = match made.get(&launch.block) {
                Some(found) => found.clone(),
                None if launch.engine == Engine::Auto && threads < WORTH => return Ok(None),
                None => {
                    let compile = |session| {
                        ptx_jit::compile(session, kernel, launch.block).map_err(|error| error.to_string())
                    };
                    let compiled = self.session().and_then(compile);
                    if let Ok(compiled) = &compiled {
                        ran.compiled = compiled.took();
                    }
                    made.insert(launch.block, compiled.clone());
                    compiled
                }
            };
            match found {
                Ok(compiled) => {
                    ran.native = true;
                    ran.fallbacks = compiled.fallbacks().iter().map(|(n, c)| (n.clone(), *c)).collect();
                    Ok(Some(compiled))
                }
                Err(why) if launch.engine == Engine::Jit => {
                    Err(Error::caller(format!("no native code for `{}`: {why}", kernel.function().name)))
                }
                Err(why) => {
                    ran.why_not = Some(why);
                    Ok(None)
                }
            }
        }

        /// The code of a kernel as text.
        pub(crate) fn listing(
            &self,
            kernel: &Kernel,
            block: [u32; 3],
            what: super::Listing,
        ) -> Result<String, Error> {
            let what = match what {
                super::Listing::Llvm => ptx_jit::Listing::Llvm,
                super::Listing::Asm => ptx_jit::Listing::Asm,
            };
            let text = self.session().and_then(|session| {
                ptx_jit::listing(session, kernel, block, what).map_err(|error| error.to_string())
            });
            text.map_err(Error::caller)
        }
    }
}

#[cfg(not(feature = "jit"))]
mod jit {
    use super::{Cpu, Engine, Error, Kernel, Launch, Ran};
    use ptx_exec::native::Native;
    use std::sync::Arc;

    /// Said where native code is asked for.
    const ABSENT: &str = "this build has no JIT (cargo feature `jit`)";

    /// In place of the compiler of a device.
    #[derive(Default)]
    pub(crate) struct Jit;

    /// In place of the native code of a kernel.
    #[derive(Default)]
    pub(crate) struct Natives;

    impl Jit {
        pub(crate) fn for_cpu(_cpu: Option<Cpu>) -> Self {
            Self
        }

        pub(crate) fn choose(
            &self,
            _kernel: &Kernel,
            _natives: &Natives,
            launch: &Launch,
            ran: &mut Ran,
        ) -> Result<Option<Arc<dyn Native>>, Error> {
            match launch.engine {
                Engine::Jit => Err(Error::caller(ABSENT)),
                Engine::Auto => {
                    ran.why_not = Some(ABSENT.to_owned());
                    Ok(None)
                }
                Engine::Interp => Ok(None),
            }
        }

        pub(crate) fn listing(
            &self,
            _kernel: &Kernel,
            _block: [u32; 3],
            _what: super::Listing,
        ) -> Result<String, Error> {
            Err(Error::caller(ABSENT))
        }
    }
}

pub(crate) use jit::{Jit, Natives};

/// What of a kernel's native code is to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// LLVM's intermediate language.
    Llvm,
    /// Assembly of the machine.
    Asm,
}

impl std::fmt::Debug for Jit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Jit")
    }
}
