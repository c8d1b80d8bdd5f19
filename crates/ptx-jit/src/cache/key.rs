//! What code depends on, as a number.
//!
//! Invariant: kernels, shapes or machines for which different code would be made have different keys. The number is cryptographic, so
//! that no text can pass for another one.

use crate::llvm::{Cpu, library, nearest_ways};
use crate::team::Teams;
use ptx_exec::launch::Kernel;
use sha2::{Digest, Sha256};
use std::fmt;

/// A hash of the program of ptxvm that makes code; see the build script.
const BUILD: &str = env!("PTXVM_BUILD_HASH");

/// What code is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(pub(crate) [u8; 32]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Key {
    /// The key of a kernel for CTAs of that shape, on a processor of that level on this machine.
    pub(crate) fn new(kernel: &Kernel, ntid: [u32; 3], cpu: Cpu, teams: Teams) -> Key {
        let program = kernel.module().program();
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(BUILD.as_bytes());
        part(library().as_bytes());
        part(cpu.name().as_bytes());
        part(&machine());
        // The text decides the program; where its parts begin says how it was linked.
        part(program.source.text.as_bytes());
        for start in program.source.parts.iter().map(|part| part.start) {
            part(&start.to_le_bytes());
        }
        // A target other than the text's may have been asked for.
        part(&u32::from(program.target.sm.number).to_le_bytes());
        part(&kernel.id().0.to_le_bytes());
        for n in ntid {
            part(&n.to_le_bytes());
        }
        let teams: u32 = match teams {
            Teams::Auto => 0,
            Teams::Never => 1,
            Teams::Of(size) => size.saturating_add(2),
        };
        part(&teams.to_le_bytes());
        Key(hash.finalize().into())
    }
}

/// What the processor says it is and has.
#[cfg(target_arch = "x86_64")]
fn machine() -> Vec<u8> {
    use std::arch::x86_64::{__cpuid, __cpuid_count, __get_cpuid_max};
    let mut words = Vec::new();
    // Not the second word of leaf 1: it names the core that asks.
    let one = __cpuid(1);
    words.extend([one.eax, one.ecx, one.edx]);
    if __get_cpuid_max(0).0 >= 7 {
        let seven = __cpuid(7);
        words.extend([seven.ebx, seven.ecx, seven.edx]);
        if seven.eax >= 1 {
            let more = __cpuid_count(7, 1);
            words.extend([more.eax, more.ebx, more.ecx, more.edx]);
        }
    }
    if __get_cpuid_max(0x8000_0000).0 >= 0x8000_0001 {
        let extended = __cpuid(0x8000_0001);
        words.extend([extended.ecx, extended.edx]);
    }
    words.push(nearest_ways().unwrap_or_default());
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Elsewhere code is made for the architecture; which processor of it is not known without LLVM, so code stays in the process.
#[cfg(not(target_arch = "x86_64"))]
fn machine() -> Vec<u8> {
    Vec::new()
}
