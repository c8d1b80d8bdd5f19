//! Processors for which the tests of native code compile their cases.
#![allow(dead_code, reason = "each test uses a part of it")]

use ptxvm::Cpu;

/// The processors for the case of this text: those that this machine can be, or, unless `PTXVM_TESTS` is
/// `full`, the best of them and, for every other text, one that the text selects.
pub(crate) fn of(text: &str) -> Vec<Cpu> {
    let mut all: Vec<Cpu> =
        [Cpu::Avx512, Cpu::Avx2, Cpu::Baseline].into_iter().filter(|cpu| is_available(*cpu)).collect();
    if std::env::var("PTXVM_TESTS").as_deref() != Ok("full") && all.len() > 1 {
        let number = hash(text) as usize;
        let other = number.is_multiple_of(2).then(|| all[1 + number / 2 % (all.len() - 1)]);
        all.truncate(1);
        all.extend(other);
    }
    all
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
