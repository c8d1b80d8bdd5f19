//! Random choices from a seed, and edge values.
//!
//! Invariant: the same seed gives the same choices on every machine.

/// splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// True with a probability of `percent` / 100.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.next() % 100 < u64::from(percent)
    }

    /// One of the elements.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A value of `bits` bits: an edge of integers or of floating-point formats, a value near an edge, a
    /// small value, or any value.
    pub(crate) fn value(&mut self, bits: u32) -> u64 {
        let value = match self.below(8) {
            0 => self.pick(INTEGERS),
            1 => self.pick(INTEGERS).wrapping_neg(),
            2 => match bits {
                16 => self.pick(HALVES) | (self.next() & 1) << 15,
                32 => self.pick(SINGLES) | (self.next() & 1) << 31,
                _ => self.pick(DOUBLES) | self.next() << 63,
            },
            3 => match bits {
                // Numbers of ordinary magnitude.
                16 => 0x3000 + (self.next() & 0x8fff) % 0x2000,
                32 => self.next() & 0x807f_ffff | (115 + self.next() % 26) << 23,
                _ => self.next() & 0x800f_ffff_ffff_ffff | (1010 + self.next() % 26) << 52,
            },
            4 => self.pick(INTEGERS).wrapping_add(self.next() % 5).wrapping_sub(2),
            5 => self.next() % 16,
            6 => self.next() >> self.below(64),
            _ => self.next(),
        };
        value & u64::MAX >> (64 - bits)
    }
}

const INTEGERS: &[u64] = &[
    0,
    1,
    2,
    7,
    8,
    15,
    16,
    23,
    24,
    31,
    32,
    33,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0x5555_5555_5555_5555,
    0x8080_8080_8080_8080,
    0x0123_4567_89ab_cdef,
];
const HALVES: &[u64] =
    &[0, 1, 0x3ff, 0x400, 0x3800, 0x3c00, 0x3c01, 0x4000, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7fff, 0x3555];
const SINGLES: &[u64] = &[
    0,
    1,
    0x007f_ffff,
    0x0080_0000,
    0x0040_0000,
    0x3f00_0000,
    0x3f80_0000,
    0x3f80_0001,
    0x4000_0000,
    0x3eff_ffff,
    0x42fe_0000,
    0x477f_e000,
    0x4b00_0000,
    0x4f00_0000,
    0x4f80_0000,
    0x5f00_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7f80_0001,
    0x7fc0_0000,
    0x7fff_ffff,
    0x7fa1_2345,
];
const DOUBLES: &[u64] = &[
    0,
    1,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x3fe0_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0x4000_0000_0000_0000,
    0x41df_ffff_ffc0_0000,
    0x41e0_0000_0000_0000,
    0x43e0_0000_0000_0000,
    0x36a0_0000_0000_0000,
    0x3810_0000_0000_0000,
    0x47ef_ffff_f000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x7ff8_0000_0000_0000,
    0x7ff4_5678_9abc_def0,
];
