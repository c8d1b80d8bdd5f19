//! Generation of rotations that turn one of two numbers into zero: `rotg` and `rotmg`.
//!
//! Invariant: the formulas are those of the reference BLAS, computed in double precision. Every loop ends for
//! every input.

use crate::number::{C64, Work};

/// Generates a rotation of real numbers a, b, c, s. a becomes r = c a + s b, and b becomes the number that
/// encodes c and s.
pub(crate) fn real<W: Work>(values: &mut [W]) {
    let [a, b, c, s] = values else { return };
    let [x, y] = [a.parts()[0], b.parts()[0]];
    let larger = if x.abs() > y.abs() { x } else { y };
    let scale = x.abs() + y.abs();
    if scale == 0.0 {
        (*a, *b, *c, *s) = (W::default(), W::default(), W::ONE, W::default());
        return;
    }
    let r = scale * (x / scale).hypot(y / scale) * 1f64.copysign(larger);
    let (cosine, sine) = (x / r, y / r);
    let z = match () {
        () if x.abs() > y.abs() => sine,
        () if cosine != 0.0 => 1.0 / cosine,
        () => 1.0,
    };
    (*a, *b, *c, *s) = (W::of_real(r), W::of_real(z), W::of_real(cosine), W::of_real(sine));
}

/// Generates a rotation of complex numbers a, b, c, s; b stays unchanged.
pub(crate) fn complex<W: Work>(values: &mut [W]) {
    let [a, b, c, s] = values else { return };
    let of = |parts: [f64; 2]| C64::new(parts[0], parts[1]);
    let (x, y) = (of(a.parts()), of(b.parts()));
    let size = x.re.hypot(x.im);
    if size == 0.0 {
        (*a, *c, *s) = (*b, W::default(), W::ONE);
        return;
    }
    let norm = size.hypot(y.re.hypot(y.im));
    let direction = x / size;
    let sine = direction * y.conj() / norm;
    let turned = direction * norm;
    (*a, *c) = (W::of_parts([turned.re, turned.im]), W::of_real(size / norm));
    *s = W::of_parts([sine.re, sine.im]);
}

/// The factor that brings numbers back into range.
const GAMMA: f64 = 4096.0;

/// Generates a modified rotation, without square roots, from d1, d2, x1, y1 and the five parameters of
/// `rotm`.
pub(crate) fn modified<W: Work>(values: &mut [W]) {
    let numbers: Vec<f64> = values.iter().map(|value| value.parts()[0]).collect();
    let [d1, d2, x1, y1, ..] = numbers[..] else { return };
    let found = Modified::find(d1, d2, x1, y1);
    let param = match found.flag {
        -1.0 => [Some(found.h11), Some(found.h21), Some(found.h12), Some(found.h22)],
        0.0 => [None, Some(found.h21), Some(found.h12), None],
        1.0 => [Some(found.h11), None, None, Some(found.h22)],
        _ => [None; 4],
    };
    let first = [Some(found.d1), Some(found.d2), Some(found.x1), None, Some(found.flag)];
    for (value, new) in values.iter_mut().zip(first.into_iter().chain(param)) {
        if let Some(new) = new {
            *value = W::of_real(new);
        }
    }
}

#[derive(Default)]
struct Modified {
    flag: f64,
    d1: f64,
    d2: f64,
    x1: f64,
    h11: f64,
    h12: f64,
    h21: f64,
    h22: f64,
}

impl Modified {
    fn zero() -> Self {
        Self { flag: -1.0, ..Self::default() }
    }

    fn find(d1: f64, d2: f64, x1: f64, y1: f64) -> Self {
        if d1 < 0.0 {
            return Self::zero();
        }
        let p2 = d2 * y1;
        if p2 == 0.0 {
            return Self { flag: -2.0, d1, d2, x1, ..Self::default() };
        }
        let p1 = d1 * x1;
        let (q1, q2) = (p1 * x1, p2 * y1);
        let mut found = if q1.abs() > q2.abs() {
            let (h21, h12) = (-y1 / x1, p2 / p1);
            let u = 1.0 - h12 * h21;
            if u <= 0.0 {
                return Self::zero();
            }
            Self { flag: 0.0, d1: d1 / u, d2: d2 / u, x1: x1 * u, h21, h12, h11: 1.0, h22: 1.0 }
        } else {
            if q2 < 0.0 {
                return Self::zero();
            }
            let (h11, h22) = (p1 / p2, x1 / y1);
            let u = 1.0 + h11 * h22;
            Self { flag: 1.0, d1: d2 / u, d2: d1 / u, x1: y1 * u, h11, h22, h12: 1.0, h21: -1.0 }
        };
        found.rescale();
        found
    }

    /// Brings both factors into the range from 1 / GAMMA^2 to GAMMA^2.
    fn rescale(&mut self) {
        let is_off =
            |d: f64| d != 0.0 && d.is_finite() && !(GAMMA.powi(-2)..GAMMA.powi(2)).contains(&d.abs());
        while is_off(self.d1) {
            self.flag = -1.0;
            let by = if self.d1.abs() < 1.0 { GAMMA } else { 1.0 / GAMMA };
            self.d1 *= by * by;
            self.x1 /= by;
            self.h11 /= by;
            self.h12 /= by;
        }
        while is_off(self.d2) {
            self.flag = -1.0;
            let by = if self.d2.abs() < 1.0 { GAMMA } else { 1.0 / GAMMA };
            self.d2 *= by * by;
            self.h21 /= by;
            self.h22 /= by;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_turn_the_second_number_into_zero() {
        for (x, y) in [(3.0, 4.0), (-3.0, 4.0), (4.0, -3.0), (0.0, 2.0), (2.0, 0.0), (0.0, 0.0)] {
            let mut values = [x, y, 9.0, 9.0];
            real(&mut values);
            let [r, _, c, s]: [f64; 4] = values;
            assert!((c * x + s * y - r).abs() < 1e-12 && (c * y - s * x).abs() < 1e-12, "{x} {y}");
            assert!((c * c + s * s - 1.0).abs() < 1e-12);
        }
        let (x, y) = (C64::new(1.0, 2.0), C64::new(-3.0, 0.5));
        let mut values = [x, y, C64::default(), C64::default()];
        complex(&mut values);
        let [r, _, c, s] = values;
        assert!((c * x + s * y - r).norm() < 1e-12 && (c * y - s.conj() * x).norm() < 1e-12);
    }

    #[test]
    fn modified_rotations_turn_the_second_number_into_zero() {
        for (d1, d2, x1, y1) in [
            (1.0, 2.0, 3.0, 4.0),
            (2.0, 1.0, 4.0, 3.0),
            (1e10, 1e-10, 1.0, 2.0),
            (1e-20, 1e20, 2.0, 1.0),
            (f64::INFINITY, 1.0, 1.0, 1.0),
            (1.0, f64::NAN, 1.0, 1.0),
        ] {
            let found = Modified::find(d1, d2, x1, y1);
            if (d1 + d2).is_finite() {
                let zero = found.h21 * x1 + found.h22 * y1;
                let first = found.h11 * x1 + found.h12 * y1;
                assert!(zero.abs() < 1e-9 * y1.abs().max(first.abs()), "{d1} {d2} {x1} {y1}: {zero}");
                assert!((first - found.x1).abs() < 1e-9 * first.abs());
                let before = d1 * x1 * x1 + d2 * y1 * y1;
                assert!((found.d1 * first * first - before).abs() < 1e-9 * before);
            }
        }
    }
}
