//! Native code for launches: which of them get it, and what of it is kept for the next.
//!
//! Invariant: results do not depend on what is chosen here.

use super::{Cpu, Engine, Listing, Ran, Source};
use crate::{CodeCache, Error, Launch};
use ptx_exec::launch::Kernel;
use ptx_exec::native::Native;
use ptx_jit::{Compiled, Compiler, Found};
use std::sync::{Arc, Mutex, PoisonError};

/// Threads of a launch from which on it is worth compiling for. Chosen: what the interpreter does in about the time of compiling.
const WORTH: u64 = 8192;
/// Shapes of CTA that a kernel keeps code for. Chosen: programs use a few.
const SHAPES: usize = 16;

/// The compiler of a device.
pub(crate) struct Jit {
    compiler: Compiler,
}

/// Native code, or why there is none.
type Made = Result<Arc<Compiled>, String>;

/// The native code of a kernel, by the shape of its CTAs; what was used last stands last.
#[derive(Default)]
pub(crate) struct Natives {
    by_shape: Mutex<Vec<([u32; 3], Made)>>,
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
    pub(crate) fn new(cpu: Option<Cpu>, cache: CodeCache) -> Self {
        let (folder, bytes) = match cache {
            CodeCache::Off => (None, 0),
            CodeCache::Folder { path, bytes } => (Some(path), bytes),
        };
        Self { compiler: Compiler::new(target(cpu), folder, bytes) }
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
        let mut kept = natives.by_shape.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match kept.iter().position(|(shape, _)| *shape == launch.block) {
            Some(at) => {
                let (shape, made) = kept.remove(at);
                kept.push((shape, made.clone()));
                ran.source = Some(Source::Kernel);
                made
            }
            None if launch.engine == Engine::Auto && threads < WORTH => return Ok(None),
            None => {
                let found = match self.compiler.find(kernel, launch.block) {
                    Some(found) => Ok(found),
                    None => self.compiler.compile(kernel, launch.block).map_err(|error| error.to_string()),
                };
                let made = found.map(|Found { code, source, took }| {
                    ran.compiled = took;
                    ran.source = Some(match source {
                        ptx_jit::Source::Compiled => Source::Compiled,
                        ptx_jit::Source::Memory => Source::Memory,
                        ptx_jit::Source::Disk => Source::Disk,
                    });
                    code
                });
                if kept.len() >= SHAPES {
                    drop(kept.remove(0));
                }
                kept.push((launch.block, made.clone()));
                made
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
                ran.source = None;
                ran.why_not = Some(why);
                Ok(None)
            }
        }
    }

    /// The code of a kernel as text.
    pub(crate) fn listing(&self, kernel: &Kernel, block: [u32; 3], what: Listing) -> Result<String, Error> {
        let what = match what {
            Listing::Llvm => ptx_jit::Listing::Llvm,
            Listing::Asm => ptx_jit::Listing::Asm,
        };
        let text = self.compiler.session().and_then(|session| ptx_jit::listing(session, kernel, block, what));
        text.map_err(|error| Error::caller(error.to_string()))
    }
}
