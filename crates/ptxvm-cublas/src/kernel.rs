//! Products of small matrices in host memory, by the crate `matrixmultiply`, which selects its kernels by the
//! processor.
//!
//! Invariant: every element that a product accesses lies in the slices; this is checked first. What it does
//! not do: device memory, conversions of element types, threads.

use crate::number::{C32, C64, Whole};
use matrixmultiply::CGemmOption::Standard;

/// C += A B for a C of `m` rows and `n` columns, with `k` columns of A. The strides of A and B are the
/// distances between rows and between columns, in elements. Columns of C are `c` elements apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: [usize; 2],
    pub(crate) b: [usize; 2],
    pub(crate) c: usize,
}

impl Shape {
    /// Whether there is work to do. Panics if a slice is too short, which never happens.
    fn check(&self, a: usize, b: usize, c: usize) -> bool {
        if self.m == 0 || self.n == 0 || self.k == 0 {
            return false;
        }
        let last = |rows: usize, columns: usize, [row, column]: [usize; 2]| {
            (rows - 1) * row + (columns - 1) * column
        };
        assert!(
            last(self.m, self.k, self.a) < a
                && last(self.k, self.n, self.b) < b
                && last(self.m, self.n, [1, self.c]) < c
                && self.c >= self.m,
            "ptxvm bug: a product accesses elements outside its matrices"
        );
        true
    }
}

macro_rules! product {
    ($name:ident, $work:ty, $part:ty, $gemm:ident [$($option:ident)*], $one:expr) => {
        /// C += A B.
        pub(crate) fn $name(shape: Shape, a: &[$work], b: &[$work], c: &mut [$work]) {
            if !shape.check(a.len(), b.len(), c.len()) {
                return;
            }
            let Shape { m, n, k, a: [rsa, csa], b: [rsb, csb], c: csc } = shape;
            // SAFETY: `check` found all elements inside the slices, C is borrowed exclusively, and complex
            // numbers have the layout of arrays of two parts.
            unsafe {
                matrixmultiply::$gemm(
                    $($option,)*
                    m, k, n, $one,
                    a.as_ptr().cast::<$part>(), rsa as isize, csa as isize,
                    b.as_ptr().cast::<$part>(), rsb as isize, csb as isize,
                    $one, c.as_mut_ptr().cast::<$part>(), 1, csc as isize,
                );
            }
        }
    };
}

product!(product_f32, f32, f32, sgemm [], 1.0);
product!(product_f64, f64, f64, dgemm [], 1.0);
product!(product_c32, C32, [f32; 2], cgemm [Standard Standard], [1.0, 0.0]);
product!(product_c64, C64, [f64; 2], zgemm [Standard Standard], [1.0, 0.0]);

/// C += A B.
pub(crate) fn product_whole(shape: Shape, a: &[Whole], b: &[Whole], c: &mut [Whole]) {
    if !shape.check(a.len(), b.len(), c.len()) {
        return;
    }
    for (j, column) in c.chunks_mut(shape.c).take(shape.n).enumerate() {
        let column = &mut column[..shape.m];
        for l in 0..shape.k {
            let factor = b[l * shape.b[0] + j * shape.b[1]];
            let from = a[l * shape.a[1]..].iter().step_by(shape.a[0].max(1));
            for (sum, value) in column.iter_mut().zip(from) {
                *sum += *value * factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::Wrapping;

    /// Small integers, whose sums are exact in every order of additions.
    fn numbers<T>(count: usize, of: impl Fn(i32) -> T) -> Vec<T> {
        (0..count).map(|i| of((i * 7919 % 13) as i32 - 6)).collect()
    }

    macro_rules! agrees {
        ($product:ident, $of:expr) => {
            for (m, n, k) in [(1, 1, 1), (3, 5, 7), (17, 1, 9), (1, 33, 64), (40, 40, 0)] {
                for (a, b) in [([1, m], [1, k.max(1)]), ([k.max(1), 1], [n, 1])] {
                    let of = $of;
                    let (left, right) = (numbers(m * k, of), numbers(k * n, of));
                    let mut sums = numbers(m * n, of);
                    let mut expected = sums.clone();
                    for i in 0..m {
                        for j in 0..n {
                            for l in 0..k {
                                expected[i + j * m] += left[i * a[0] + l * a[1]] * right[l * b[0] + j * b[1]];
                            }
                        }
                    }
                    $product(Shape { m, n, k, a, b, c: m }, &left, &right, &mut sums);
                    assert_eq!(sums, expected);
                }
            }
        };
    }

    #[test]
    fn products_of_every_type_agree_with_sums() {
        agrees!(product_f32, |x: i32| x as f32);
        agrees!(product_f64, f64::from);
        agrees!(product_c32, |x: i32| C32::new(x as f32, 1.0 - x as f32));
        agrees!(product_c64, |x: i32| C64::new(x.into(), 2.0 - f64::from(x)));
        agrees!(product_whole, Wrapping::<i32>);
    }
}
