//! Levels of vector instructions, and features beyond them.
//!
//! Invariant: nothing here depends on the processor at hand, nor on what code costs on it. A
//! [`Target`](crate::target::Target) is a level with features and a [`Tuning`](crate::tuning::Tuning).

/// A level of vector instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// 128-bit vectors that every machine of the architecture has: 4 lanes per chunk.
    Baseline,
    /// AVX2 with FMA, BMI and F16C (`x86-64-v3`): 8 lanes per chunk.
    Avx2,
    /// AVX-512 F, BW, CD, DQ and VL (`x86-64-v4`): 16 lanes per chunk.
    Avx512,
}

impl Level {
    /// All levels, the narrowest first.
    pub const ALL: [Level; 3] = [Level::Baseline, Level::Avx2, Level::Avx512];

    /// Lanes of 32 bits in one chunk.
    pub fn lanes(self) -> u32 {
        match self {
            Level::Baseline => 4,
            Level::Avx2 => 8,
            Level::Avx512 => 16,
        }
    }

    /// Bits of its widest vector.
    pub fn vector_bits(self) -> u32 {
        self.lanes() * 32
    }

    /// How many vector registers there are.
    pub(crate) fn vector_registers(self) -> u32 {
        match self {
            Level::Avx512 => 32,
            Level::Avx2 | Level::Baseline => 16,
        }
    }

    /// The name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Baseline => "baseline",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// Features that processors with AVX-512 may have beyond the level and that LLVM's code generator, or a
/// lowering of ours, may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Feature {
    /// Dot products of bytes; used by `dp4a` and `vabsdiff4`.
    Avx512Vnni,
    Avx512Vpopcntdq,
    Avx512Bitalg,
    Avx512Vbmi,
    Avx512Vbmi2,
    Avx512Ifma,
    Avx512Bf16,
    Avx512Fp16,
    Avx512Vp2intersect,
    AvxVnni,
    Gfni,
    Vaes,
    Vpclmulqdq,
    Sse4a,
    Prfchw,
}

impl Feature {
    /// All features, in the order of their numbers.
    pub(crate) const ALL: [Feature; 15] = [
        Feature::Avx512Vnni,
        Feature::Avx512Vpopcntdq,
        Feature::Avx512Bitalg,
        Feature::Avx512Vbmi,
        Feature::Avx512Vbmi2,
        Feature::Avx512Ifma,
        Feature::Avx512Bf16,
        Feature::Avx512Fp16,
        Feature::Avx512Vp2intersect,
        Feature::AvxVnni,
        Feature::Gfni,
        Feature::Vaes,
        Feature::Vpclmulqdq,
        Feature::Sse4a,
        Feature::Prfchw,
    ];

    /// LLVM's name, which is the one on a command line too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Feature::Avx512Vnni => "avx512vnni",
            Feature::Avx512Vpopcntdq => "avx512vpopcntdq",
            Feature::Avx512Bitalg => "avx512bitalg",
            Feature::Avx512Vbmi => "avx512vbmi",
            Feature::Avx512Vbmi2 => "avx512vbmi2",
            Feature::Avx512Ifma => "avx512ifma",
            Feature::Avx512Bf16 => "avx512bf16",
            Feature::Avx512Fp16 => "avx512fp16",
            Feature::Avx512Vp2intersect => "avx512vp2intersect",
            Feature::AvxVnni => "avxvnni",
            Feature::Gfni => "gfni",
            Feature::Vaes => "vaes",
            Feature::Vpclmulqdq => "vpclmulqdq",
            Feature::Sse4a => "sse4a",
            Feature::Prfchw => "prfchw",
        }
    }
}

/// A set of features.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Features(u16);

impl Features {
    /// These features.
    pub(crate) const fn of(features: &[Feature]) -> Features {
        let (mut set, mut at) = (0, 0);
        while at < features.len() {
            set |= 1 << features[at] as u8;
            at += 1;
        }
        Features(set)
    }

    /// These and more.
    pub(crate) const fn and(self, features: &[Feature]) -> Features {
        Features(self.0 | Features::of(features).0)
    }

    pub(crate) fn has(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u8 != 0
    }

    pub(crate) fn set(&mut self, feature: Feature, on: bool) {
        let bit = 1 << feature as u8;
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }
}
