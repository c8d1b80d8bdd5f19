//! Floats as `rustc_apfloat` computes them: the oracle for every rounding.

use ptx_sem::Rnd;
use rustc_apfloat::{Float, Round};

/// The four modes, as [`Rnd`] and as `rustc_apfloat` names them.
pub(crate) const MODES: [(Rnd, Round); 4] = [
    (Rnd::Rn, Round::NearestTiesToEven),
    (Rnd::Rz, Round::TowardZero),
    (Rnd::Rm, Round::TowardNegative),
    (Rnd::Rp, Round::TowardPositive),
];

/// The bits of a value, `None` for a NaN.
pub(crate) fn bits<T: Float>(value: T) -> Option<u64> {
    (!value.is_nan()).then(|| value.to_bits() as u64)
}

/// The value of these bits.
pub(crate) fn float<T: Float>(bits: impl Into<u128>) -> T {
    T::from_bits(bits.into())
}
