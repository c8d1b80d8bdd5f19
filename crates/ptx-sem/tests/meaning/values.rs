//! Operands: the edges of every type, and pseudo-random patterns from a fixed seed.

/// A xorshift generator: deterministic on every host.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(crate) fn u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    pub(crate) fn u16(&mut self) -> u16 {
        (self.u64() >> 48) as u16
    }
}

/// Patterns of 64 bits of which the low 8, 16, 32 or 64 hold the edges of the signed and the unsigned type of
/// that width.
pub(crate) fn edges(width: u32) -> Vec<u64> {
    let ones = u64::MAX >> (64 - width);
    let top = 1u64 << (width - 1);
    let mut list = vec![0, 1, 2, 3, 5, ones, ones - 1, ones - 2, top, top + 1, top - 1, top - 2];
    list.extend([0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa, 0x0123_4567_89ab_cdef].map(|x| x & ones));
    for bit in [4, 7, 8, 12, 15, 16, 23, 24, 31, 32, 47, 48, 62].into_iter().filter(|&bit| bit < width) {
        list.extend([1 << bit, (1 << bit) - 1]);
    }
    let mut random = Random::new(u64::from(width));
    list.extend((0..12).map(|_| random.u64() & ones));
    list.extend((0..12).map(|i| (random.u64() & ones) >> (i * width / 12)));
    list
}

/// `.f32` patterns: zeros, subnormals, normals around powers of two, the limits, infinities, NaNs, random
/// ones.
pub(crate) fn edges_f32() -> Vec<u32> {
    let mut list = vec![
        0,
        1,
        2,
        3,
        0x7f_fffe,
        0x7f_ffff,
        0x80_0000,
        0x80_0001,
        0xff_ffff,
        0x100_0000,
        0x3f7f_ffff,
        0x3f80_0000,
        0x3f80_0001,
        0x3f80_0003,
        0x3fc0_0000,
        0x4000_0000,
        0x4040_0000,
        0x3f00_0000,
        0x3f00_0001,
        0x3eff_ffff,
        0x3eaa_aaab,
        0x3dcc_cccd,
        0x4b00_0000,
        0x4b7f_ffff,
        0x4b80_0000,
        0x3380_0000,
        0x3400_0000,
        0x33ff_ffff,
        0x4f00_0000,
        0x4eff_ffff,
        0x5f00_0000,
        0x5f80_0000,
        0x1a00_0000,
        0x2000_0001,
        0x5f7f_ffff,
        0x7f00_0000,
        0x7e80_0000,
        0x7f7f_fffe,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7f80_0001,
        0x7fc0_0000,
        0x7fff_ffff,
        0x477f_e000,
        0x477f_f000,
        0x3880_0000,
        0x387f_ffff,
        0x3300_0000,
        0x3300_0001,
    ];
    let mut random = Random::new(32);
    list.extend((0..12).map(|_| random.u32() & 0x7fff_ffff));
    list.extend((0..12).map(|_| 0x3e00_0000 + (random.u32() & 0x1ff_ffff)));
    list.extend((0..6).map(|_| random.u32() & 0xff_ffff));
    with_signs(list, 1 << 31)
}

/// `.f64` patterns, chosen like those of `.f32`, including the limits of the narrower types.
pub(crate) fn edges_f64() -> Vec<u64> {
    let mut list = vec![
        0,
        1,
        2,
        3,
        0x000f_ffff_ffff_fffe,
        0x000f_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x0010_0000_0000_0001,
        0x001f_ffff_ffff_ffff,
        0x3fef_ffff_ffff_ffff,
        0x3ff0_0000_0000_0000,
        0x3ff0_0000_0000_0001,
        0x3ff0_0000_0000_0003,
        0x3ff8_0000_0000_0000,
        0x4000_0000_0000_0000,
        0x4008_0000_0000_0000,
        0x3fe0_0000_0000_0000,
        0x3fd5_5555_5555_5555,
        0x3fb9_9999_9999_999a,
        0x4330_0000_0000_0000,
        0x433f_ffff_ffff_ffff,
        0x4340_0000_0000_0000,
        0x3cb0_0000_0000_0000,
        0x3ca0_0000_0000_0000,
        0x41df_ffff_ffc0_0000,
        0x41e0_0000_0000_0000,
        0x43e0_0000_0000_0000,
        0x43f0_0000_0000_0000,
        0x2000_0000_0000_0001,
        0x5fef_ffff_ffff_ffff,
        0x7fd0_0000_0000_0000,
        0x7fe0_0000_0000_0000,
        0x7fef_ffff_ffff_fffe,
        0x7fef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0x7ff8_0000_0000_0000,
        0x7fff_ffff_ffff_ffff,
        0x47ef_ffff_e000_0000,
        0x47ef_ffff_f000_0000,
        0x47ef_ffff_efff_ffff,
        0x36a0_0000_0000_0000,
        0x3690_0000_0000_0000,
        0x3690_0000_0000_0001,
        0x380f_ffff_ffff_ffff,
        0x3e60_0000_0000_0000,
        0x3f0f_ffff_ffff_ffff,
        0x40ef_fc00_0000_0000,
        0x40ef_fe00_0000_0000,
    ];
    let mut random = Random::new(64);
    list.extend((0..12).map(|_| random.u64() >> 1));
    list.extend((0..12).map(|_| 0x3fc0_0000_0000_0000 + (random.u64() >> 10)));
    list.extend((0..6).map(|_| random.u64() >> 11));
    with_signs(list, 1 << 63)
}

/// `.f16` patterns, chosen like those of `.f32`.
pub(crate) fn edges_f16() -> Vec<u16> {
    let mut list = vec![
        0, 1, 2, 3, 0x3fe, 0x3ff, 0x400, 0x401, 0x7ff, 0x800, 0x3bff, 0x3c00, 0x3c01, 0x3c03, 0x3e00, 0x4000,
        0x4200, 0x3800, 0x3555, 0x2e66, 0x6400, 0x67ff, 0x6800, 0x1400, 0x1001, 0x0c00, 0x5bff, 0x7800,
        0x7bfe, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7fff,
    ];
    let mut random = Random::new(16);
    list.extend((0..12).map(|_| random.u16() & 0x7fff));
    with_signs(list, 1 << 15)
}

fn with_signs<T: Copy + core::ops::BitOr<Output = T>>(list: Vec<T>, sign: T) -> Vec<T> {
    list.iter().flat_map(|&x| [x, x | sign]).collect()
}
