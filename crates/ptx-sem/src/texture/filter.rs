//! Weighting of texels, comparison of depths, and the types of results (PTX ISA §9.7.9.3).

use super::{ONE, Taps};
use crate::half::f16_of_f64;

/// The comparison of a depth texture's texel with the reference. The manual has no field for it (reading
/// A132).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// Never true.
    Never,
    /// reference < texel
    Less,
    /// reference = texel
    Equal,
    /// reference <= texel: the default.
    Lequal,
    /// reference > texel
    Greater,
    /// reference != texel
    Notequal,
    /// reference >= texel
    Gequal,
    /// Always true.
    Always,
}

/// 1.0 if the comparison holds, else 0.0. With a NaN only [`Compare::Notequal`] and [`Compare::Always`] hold.
///
/// # Source
/// PTX ISA §9.7.9.3 (results), A132 (function).
#[must_use]
pub fn depth_compare(compare: Compare, reference: f32, texel: f32) -> f32 {
    let holds = match compare {
        Compare::Never => false,
        Compare::Less => reference < texel,
        Compare::Equal => reference == texel,
        Compare::Lequal => reference <= texel,
        Compare::Greater => reference > texel,
        Compare::Notequal => reference != texel,
        Compare::Gequal => reference >= texel,
        Compare::Always => true,
    };
    if holds { 1.0 } else { 0.0 }
}

/// The product of the weights of texel `which` (0 or 1) in each dimension. It has 8 fractional bits for each
/// dimension and is exact.
#[must_use]
pub fn weight(taps: &[Taps], which: impl Fn(usize) -> usize) -> f64 {
    let of = |(dimension, taps): (usize, &Taps)| {
        let second = f64::from(taps.weight) / f64::from(ONE);
        if which(dimension) == 0 { 1.0 - second } else { second }
    };
    taps.iter().enumerate().map(of).product()
}

/// The sum of the texels' components times their weights, in double precision, rounded to single. A texel
/// with weight 0 is ignored.
///
/// # Rounding and NaN
/// Products are exact, because a component has 24 significant bits and a weight few. Sums are rounded to 53
/// bits in the order of the texels. A sum that overflows is infinite.
#[must_use]
pub fn blend(texels: &[([f32; 4], f64)]) -> [f32; 4] {
    let mut sums = [0.0f64; 4];
    for (components, weight) in texels.iter().filter(|(_, weight)| *weight != 0.0) {
        for (sum, component) in sums.iter_mut().zip(components) {
            *sum += f64::from(*component) * weight;
        }
    }
    sums.map(|sum| sum as f32)
}

/// A float component as the bits of an `.f16` result, rounded to nearest even.
#[must_use]
pub fn tex_f16(component: f32) -> u16 {
    f16_of_f64(f64::from(component))
}
