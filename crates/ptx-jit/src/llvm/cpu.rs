//! Which vector instructions the code may use, and so how many lanes a chunk has; and what else of the processor decides the code.

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// A level of vector instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cpu {
    /// 128-bit vectors that every machine of the architecture has: 4 lanes per chunk.
    Baseline,
    /// AVX2 with FMA, BMI and F16C (`x86-64-v3`): 8 lanes per chunk.
    Avx2,
    /// AVX-512 F, BW, CD, DQ and VL, and what else this machine has: 16 lanes per chunk.
    Avx512,
}

impl Cpu {
    /// All levels, the narrowest first.
    pub const ALL: [Cpu; 3] = [Cpu::Baseline, Cpu::Avx2, Cpu::Avx512];

    /// The widest level that this machine has.
    pub fn detect() -> Cpu {
        *Cpu::ALL.iter().rev().find(|cpu| cpu.is_available()).unwrap_or(&Cpu::Baseline)
    }

    /// Whether this machine can run code of this level.
    pub fn is_available(self) -> bool {
        match self {
            Cpu::Baseline => true,
            Cpu::Avx2 => has_avx2(),
            Cpu::Avx512 => has_avx2() && has_avx512(),
        }
    }

    /// Lanes of 32 bits in one chunk.
    pub fn lanes(self) -> u32 {
        match self {
            Cpu::Baseline => 4,
            Cpu::Avx2 => 8,
            Cpu::Avx512 => 16,
        }
    }

    /// Bits of its widest vector.
    pub fn vector_bits(self) -> u32 {
        self.lanes() * 32
    }

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Cpu::Baseline => "baseline",
            Cpu::Avx2 => "avx2",
            Cpu::Avx512 => "avx512",
        }
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Cpu> {
        Cpu::ALL.into_iter().find(|cpu| cpu.name() == name)
    }
}

/// Extensions over a level that some lowerings use where they are there, and what is best for this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Extensions {
    /// Fused multiply-add as one instruction, scalar and vector.
    pub(crate) fma: bool,
    /// Dot products of bytes (AVX512-VNNI).
    pub(crate) vnni: bool,
    /// Population counts of vector elements (AVX512-VPOPCNTDQ and BITALG).
    pub(crate) popcnt: bool,
    /// Permutations of bytes across a vector (AVX512-VBMI).
    pub(crate) vbmi: bool,
    /// Conversions between half and single precision.
    pub(crate) f16c: bool,
    /// That many more lines can be on their way into the second cache than into the first.
    pub(crate) wide_second: bool,
    /// That vectors of 512 bits pass in two halves: of two, one shuffle takes as long as a load that needs two lines of the cache.
    pub(crate) halves: bool,
    /// Whether the nearest cache has room for more than eight lines a page apart, or nobody knows.
    pub(crate) deep: bool,
}

/// The most ways of a cache that is not deep. Measured: a Zen 4 has eight, and its stencils take half as long again where hints for the next CTA
/// go into it; a Zen 5 has twelve, and they take a third longer where these do not.
const SHALLOW: u32 = 8;

impl Extensions {
    /// What code of that level may use on this machine.
    pub(crate) fn of(cpu: Cpu) -> Extensions {
        let own = match cpu {
            Cpu::Baseline => Extensions { fma: cfg!(target_arch = "aarch64"), ..Extensions::default() },
            Cpu::Avx2 => Extensions { fma: true, f16c: true, ..Extensions::default() },
            Cpu::Avx512 => avx512_extensions(),
        };
        Extensions { deep: nearest_ways().is_none_or(|ways| ways > SHALLOW), ..own }
    }
}

/// How many lines that are a page apart, or a multiple of that, the nearest data cache has room for, where the processor says so.
#[cfg(target_arch = "x86_64")]
pub(crate) fn nearest_ways() -> Option<u32> {
    use std::arch::x86_64::{__cpuid, __cpuid_count, __get_cpuid_max};
    // Virtual machines take as long to answer as a short launch.
    static WAYS: OnceLock<Option<u32>> = OnceLock::new();
    *WAYS.get_or_init(|| {
        let has = |leaf: u32| __get_cpuid_max(leaf & 0x8000_0000).0 >= leaf;
        // AMD's leaf has the form of Intel's, and is there where that is empty.
        let amd = has(0x8000_001d) && __cpuid(0x8000_0001).ecx >> 22 & 1 != 0;
        let leaf = if amd { 0x8000_001d } else { 4 };
        let mut caches = (0..4).filter(|_| has(leaf)).map(|cache| __cpuid_count(leaf, cache));
        // Of data, of the first level.
        caches.find(|cache| cache.eax & 0xff == 0x21).map(|cache| (cache.ebx >> 22) + 1)
    })
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn nearest_ways() -> Option<u32> {
    None
}

#[cfg(target_arch = "x86_64")]
fn avx512_extensions() -> Extensions {
    Extensions {
        fma: true,
        f16c: true,
        vnni: is_x86_feature_detected!("avx512vnni"),
        popcnt: is_x86_feature_detected!("avx512vpopcntdq") && is_x86_feature_detected!("avx512bitalg"),
        vbmi: is_x86_feature_detected!("avx512vbmi"),
        wide_second: is_zen4(),
        halves: is_zen4(),
        ..Extensions::default()
    }
}

/// Whether this is a Zen 4, among processors with AVX-512: those of AMD's family 0x19 without it are older.
#[cfg(target_arch = "x86_64")]
fn is_zen4() -> bool {
    let version = std::arch::x86_64::__cpuid(1).eax;
    // A family above 15 is 15 and what the extended family adds; nobody else's has this number.
    let [family, extended] = [version >> 8 & 0xf, version >> 20 & 0xff];
    family == 0xf && family + extended == 0x19
}

#[cfg(not(target_arch = "x86_64"))]
fn avx512_extensions() -> Extensions {
    Extensions::default()
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("movbe")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}
