//! Which engine executes a launch.
//!
//! Invariant: results do not depend on the engine. What cannot be compiled runs in the interpreter, and the report says so.

use std::time::Duration;

/// An engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Native code where it pays, if it can be made: a long launch waits for it, others begin in the interpreter and change over.
    #[default]
    Auto,
    /// The interpreter.
    Interp,
    /// Native code; an error where none can be made.
    Jit,
}

/// A level of vector instructions of this machine. [`Target`] names other machines, and more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cpu {
    /// 16 lanes at a time.
    Avx512,
    /// 8 lanes at a time.
    Avx2,
    /// 4 lanes at a time: any processor.
    Baseline,
}

/// Where the native code of a launch came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// It was made before this launch began.
    Compiled,
    /// It was made in the background, while this launch or earlier ones ran in the interpreter.
    Background,
    /// An earlier launch of the kernel used it.
    Kernel,
    /// It had been made in this process for another kernel with the same content.
    Memory,
    /// It was on disk.
    Disk,
}

/// What executed a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Whether native code took part.
    pub native: bool,
    /// Where its native code came from.
    pub source: Option<Source>,
    /// Time that making or finding the code took, in the first launch that uses it.
    pub compiled: Duration,
    /// Why the kernel was not compiled, where it was asked for or would have paid.
    pub why_not: Option<String>,
    /// Why this process can make no native code at all, where it tried: LLVM is missing, for instance.
    pub no_compiler: Option<String>,
    /// Warp instructions in native code.
    pub native_instructions: u64,
    /// How many of these the interpreter's functions executed.
    pub fallback_instructions: u64,
    /// Instructions of the kernel that have no native code, and how often they stand in it.
    pub fallbacks: Vec<(String, u32)>,
    /// The folder that code is kept in on disk, and why it is not used, where that is so.
    pub refused_folder: Option<String>,
}

#[cfg(not(feature = "jit"))]
#[path = "engine/absent.rs"]
mod jit;
#[cfg(feature = "jit")]
#[path = "engine/native.rs"]
mod jit;

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
