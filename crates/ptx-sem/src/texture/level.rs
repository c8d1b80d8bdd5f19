//! Mipmaps: sizes of levels, the level of detail of gradients, and the levels that a level of detail selects
//! (PTX ISA §9.7.9.2).

use super::{FilterMode, ONE};

/// The size of a level in one dimension: max(1, floor(base / 2^level)).
///
/// # Source
/// PTX ISA §9.7.9.2.
#[must_use]
pub fn level_size(base: u32, level: u32) -> u32 {
    base.checked_shr(level).unwrap_or(0).max(1)
}

/// The number of levels of a complete pyramid: 1 + floor(log2(max(w, h, d))).
///
/// # Source
/// PTX ISA §9.7.9.2. The example there, 256x256 with "eight images", omits the base level (reading A136).
#[must_use]
pub fn complete_levels([width, height, depth]: [u32; 3]) -> u32 {
    width.max(height).max(depth).max(1).ilog2() + 1
}

/// The level of detail of two gradients, in texels: log2 of the longer one's length, with 16 fractional bits,
/// rounded down.
///
/// # Source
/// PTX ISA §9.7.9.3 gives no formula (reading A135); OpenGL 4.6 §8.14, equations 8.8 and 8.9.
#[must_use]
pub fn lod_of_gradients(dpdx: [f64; 3], dpdy: [f64; 3]) -> f64 {
    let square = |[x, y, z]: [f64; 3]| x * x + y * y + z * z;
    let (a, b) = (square(dpdx), square(dpdy));
    // If one length is a NaN, `max` returns the other.
    log2(a.max(b)) / 2.0
}

/// log2 with 17 fractional bits, rounded down. Its steps are exact, so every host gives the same result.
fn log2(value: f64) -> f64 {
    if value.is_nan() || value <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if value == f64::INFINITY {
        return f64::INFINITY;
    }
    let scaled = if value < f64::MIN_POSITIVE { value * 18_446_744_073_709_551_616.0 } else { value };
    let shift = if value < f64::MIN_POSITIVE { 64.0 } else { 0.0 };
    let exponent = (scaled.to_bits() >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits(scaled.to_bits() & ((1 << 52) - 1) | 1023 << 52);
    let (mut fraction, mut bit) = (0.0, 0.5);
    for _ in 0..17 {
        mantissa *= mantissa;
        if mantissa >= 2.0 {
            mantissa /= 2.0;
            fraction += bit;
        }
        bit /= 2.0;
    }
    f64::from(exponent) + fraction - shift
}

/// The levels that a level of detail selects, and the weight of the second, 0 to [`ONE`].
///
/// The level of detail is clamped to the existing levels; NaN counts as 0. Nearest: the nearest level, with
/// one half rounded down. Linear: the two nearest levels, weighted with the fraction in 8 bits, rounded to
/// nearest.
///
/// # Source
/// PTX ISA §9.7.9.2 defines no filter between levels (reading A134: nearest); the rounding is OpenGL's (4.6
/// §8.14.3, §8.15).
#[must_use]
pub fn level_of(filter: FilterMode, lod: f64, levels: u32) -> ([u32; 2], u32) {
    let last = levels.max(1) - 1;
    let lod = if lod.is_nan() { 0.0 } else { lod.clamp(0.0, f64::from(last)) };
    match filter {
        FilterMode::Nearest => {
            let level = ((lod + 0.5).ceil() as u32).saturating_sub(1).min(last);
            ([level, level], 0)
        }
        FilterMode::Linear => {
            let first = (lod.floor() as u32).min(last);
            let weight = ((lod - lod.floor()) * f64::from(ONE) + 0.5).floor() as u32;
            ([first, (first + 1).min(last)], weight)
        }
    }
}
