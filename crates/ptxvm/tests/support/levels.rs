//! Targets for which the tests of native code compile their cases, and a cache for what they compile again.
#![allow(dead_code, reason = "each test uses a part of it")]

use ptxvm::{CodeCache, Cpu, Target};
use std::path::Path;
use std::sync::OnceLock;

/// Whether all combinations are tested.
pub(crate) fn is_full() -> bool {
    std::env::var("PTXVM_TESTS").as_deref() == Ok("full")
}

/// A cache of native code for the devices of this process: the launches of a kernel that differ only in their
/// memory, order or threads compile it once. It is empty when the process starts.
pub(crate) fn cache() -> CodeCache {
    static CACHE: OnceLock<CodeCache> = OnceLock::new();
    let make = || {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(concat!("code-", env!("CARGO_CRATE_NAME")));
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                panic!("{}: {error}", path.display())
            }
            _ => CodeCache::folder(path),
        }
    };
    CACHE.get_or_init(make).clone()
}

/// The targets for the case of this text: those that this machine can be, or, unless `PTXVM_TESTS` is `full`,
/// the best of them and, for every 16th text, one that the text selects.
pub(crate) fn of(text: &str) -> Vec<Target> {
    let mut all: Vec<Cpu> =
        [Cpu::Avx512, Cpu::Avx2, Cpu::Baseline].into_iter().filter(|cpu| is_available(*cpu)).collect();
    if !is_full() && all.len() > 1 {
        let number = hash(text) as usize;
        let other = number.is_multiple_of(16).then(|| all[1 + number / 16 % (all.len() - 1)]);
        all.truncate(1);
        all.extend(other);
    }
    all.into_iter().map(|cpu| target(cpu, text)).collect()
}

/// The target for the case of this text on a processor. Unless `PTXVM_TESTS` is `full`, LLVM optimises only
/// the code of every 64th text: that takes most of the time of a test, and what LLVM's optimisations do is
/// tested by LLVM.
pub(crate) fn target(cpu: Cpu, text: &str) -> Target {
    match is_full() || (hash(text) / 64).is_multiple_of(64) {
        true => cpu.into(),
        false => unoptimised(cpu.into()),
    }
}

/// The same target, for which LLVM does not optimise.
pub(crate) fn unoptimised(target: Target) -> Target {
    format!("{target},opt=0").parse().expect("a target")
}

/// Whether this machine can execute code for the processor.
pub(crate) fn is_available(cpu: Cpu) -> bool {
    match cpu {
        Cpu::Baseline => true,
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx512 => is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl"),
        #[cfg(not(target_arch = "x86_64"))]
        Cpu::Avx2 | Cpu::Avx512 => false,
    }
}

/// A number that spreads texts (FNV-1a).
pub(crate) fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
