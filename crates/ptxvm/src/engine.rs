//! The engines, and their reports.
//!
//! Invariant: results do not depend on the engine. A kernel that cannot be compiled runs in the interpreter,
//! and the report says so.

pub use ptx_exec::native::{ExitCause, ExitScope, SideExits};
use std::time::Duration;

/// An engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Native code if it is profitable and possible: a long launch waits for compilation, others begin in the
    /// interpreter and switch when the code is ready.
    #[default]
    Auto,
    /// The interpreter.
    Interp,
    /// Native code; an error if the kernel cannot be compiled.
    Jit,
}

/// A level of vector instructions of this machine. [`Target`] describes other processors, and more details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cpu {
    /// 16 lanes at a time.
    Avx512,
    /// 8 lanes at a time.
    Avx2,
    /// 4 lanes at a time: any processor.
    Baseline,
}

/// The origin of a launch's native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// It was compiled before this launch began.
    Compiled,
    /// It was compiled in the background, during this launch or earlier ones.
    Background,
    /// An earlier launch of the kernel used it.
    Kernel,
    /// It was compiled in this process for another kernel with the same content.
    Memory,
    /// It was on disk.
    Disk,
}

/// The execution of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Whether native code was used.
    pub native: bool,
    /// The origin of its native code.
    pub source: Option<Source>,
    /// Time to compile or find the code, in the first launch that uses it.
    pub compiled: Duration,
    /// Whether the code is so large that it was compiled without optimisation. If its launches take long, it
    /// is compiled again in the background, and later launches use the optimised code.
    pub unoptimised: bool,
    /// Whether scalar code was used, which executes one thread at a time: because lanes of warps hardly ever
    /// did the same, or because it was asked for. A launch may have begun with code of warps.
    pub scalar: bool,
    /// Why the kernel was not compiled, if it was requested or would have been profitable.
    pub why_not: Option<String>,
    /// Why this process cannot compile at all, if it tried: for example, LLVM is missing.
    pub no_compiler: Option<String>,
    /// Warp instructions in native code.
    pub native_instructions: u64,
    /// The part of these that the interpreter executed.
    pub fallback_instructions: u64,
    /// Instructions of the kernel without native code, with their number of occurrences.
    pub fallbacks: Vec<(String, u32)>,
    /// What native code left to the interpreter, why and how often: most frequent first.
    pub side_exits: Vec<SideExits>,
    /// Device functions that the kernel may call, directly or through others. The interpreter runs them, also
    /// where the kernel is native code.
    pub interpreted_functions: Vec<String>,
    /// The folder that code is kept in on disk, and why it is not used, where that is so.
    pub refused_folder: Option<String>,
}

impl Ran {
    /// Why a launch with an engine had no native code; `None` if it had, and if the interpreter was
    /// requested.
    pub fn not_native(&self, engine: Engine) -> Option<&str> {
        match (&self.why_not, engine) {
            (Some(why), _) => Some(why),
            (None, Engine::Auto) if !self.native => Some("compiling takes longer than its launches so far"),
            (None, Engine::Auto | Engine::Interp | Engine::Jit) => None,
        }
    }
}

#[cfg(not(feature = "jit"))]
#[path = "engine/absent.rs"]
mod jit;
#[cfg(feature = "jit")]
#[path = "engine/native.rs"]
mod jit;
#[cfg(feature = "jit")]
mod until;

/// What makes native code in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// The version of LLVM, such as `22.1.2`.
    pub version: String,
    /// The library that was loaded.
    pub library: String,
    /// The instructions that code is made for: `avx512`, `avx2` or `baseline`.
    pub cpu: &'static str,
}

/// The compiler of this machine; loads LLVM.
///
/// # Errors
/// Why there is none: LLVM is missing, or this build has no native code.
pub fn compiler() -> Result<Compiler, String> {
    jit::compiler()
}

pub(crate) use jit::{Jit, Natives};
pub use jit::{Target, guard_this_thread};

/// What of a kernel's native code is to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The compiler's own language, in which a register of all lanes is one value.
    Wir,
    /// Which optimisations were applied or missed, and why, by PTX line.
    Remarks,
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
