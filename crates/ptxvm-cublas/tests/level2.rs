//! Level 2 against exact sums: full, banded and packed matrices, either triangle, transposed or not,
//! increments of either sign.

mod support;

use support::{C32, C64, Dense, Device, Handle, Number, SUCCESS, close, span, store_vector, values, vector};

const N: usize = 9;

fn factors<T: Number>() -> (C64, C64) {
    (C64::new(2.0, if T::COMPLEX { 1.0 } else { 0.0 }), C64::new(-1.0, 0.0))
}

const OPS: [i32; 3] = [0, 1, 2];

/// The matrix whose diagonals a banded matrix in memory holds.
fn banded<T: Number>(memory: &[T], (m, n): (usize, usize), (kl, ku): (usize, usize), ld: usize) -> Dense {
    Dense::new(m, n, |i, j| {
        let inside = i <= j + kl && j <= i + ku;
        if inside { memory[ku + i - j + j * ld].to() } else { C64::default() }
    })
}

/// The position of an element in a packed triangle.
fn packed_place(uplo: i32, i: usize, j: usize, n: usize) -> usize {
    if uplo == 0 { j * n + i - j * (j + 1) / 2 } else { j * (j + 1) / 2 + i }
}

fn is_stored(uplo: i32, i: usize, j: usize) -> bool {
    if uplo == 0 { i >= j } else { i <= j }
}

fn packed<T: Number>(memory: &[T], uplo: i32, n: usize) -> Dense {
    Dense::new(n, n, |i, j| {
        if is_stored(uplo, i, j) { memory[packed_place(uplo, i, j, n)].to() } else { C64::default() }
    })
}

fn general<T: Number>() {
    let handle = Handle::new();
    let (alpha, beta) = factors::<T>();
    let (ha, hb) = (T::of(alpha), T::of(beta));
    for (m, n) in [(1, 1), (7, N), (N, 4), (600, 3), (2, 1100)] {
        for op in OPS {
            let (to, from) = if op == 0 { (m, n) } else { (n, m) };
            for (incx, incy) in [(1, 1), (-2, 3), (3, -1)] {
                let (xs, ys) = (values::<T>(1, span(from, incx)), values::<T>(2, span(to, incy)));
                let (x, y) = (vector(&xs, from, incx), vector(&ys, to, incy));
                let (kl, ku, ld) = (2usize, 1usize, m + 5);
                let a = values::<T>(3, ld * n);
                let da = Device::new(&a);
                let dx = Device::new(&xs);
                for (name, dense) in
                    [("gemv", Dense::stored(&a, m, n, ld)), ("gbmv", banded(&a, (m, n), (kl, ku), ld))]
                {
                    for suffix in ["_v2", "_v2_64"] {
                        let dy = Device::new(&ys);
                        let full = format!("cublas{}{name}{suffix}", T::LETTER);
                        let status = if name == "gemv" {
                            call!(full, handle.0, op, m, n, &ha, da.at, ld, dx.at, incx, &hb, dy.at, incy)
                        } else {
                            call!(
                                full, handle.0, op, m, n, kl, ku, &ha, da.at, ld, dx.at, incx, &hb, dy.at,
                                incy
                            )
                        };
                        assert_eq!(status, SUCCESS, "{full}");
                        let expected = store_vector(&dense.op(op).times(&x).plus(alpha, &y, beta), &ys, incy);
                        assert_eq!(dy.get(), expected, "{full} {op} {m} {n} {incx} {incy}");
                    }
                }
            }
        }
    }
}

/// `full`, `band` and `pack` are names; `form` is that of the first name and of the others.
fn symmetric<T: Number>(names: &[(&str, char)]) {
    let handle = Handle::new();
    let (alpha, beta) = factors::<T>();
    let (ha, hb) = (T::of(alpha), T::of(beta));
    let (k, ld) = (3usize, N + 2);
    let a = values::<T>(4, ld * N);
    let da = Device::new(&a);
    for (name, form) in names {
        for uplo in [0, 1] {
            for (incx, incy) in [(1, 1), (-2, 3)] {
                let (xs, ys) = (values::<T>(5, span(N, incx)), values::<T>(6, span(N, incy)));
                let (dx, dy) = (Device::new(&xs), Device::new(&ys));
                let full = format!("cublas{}{name}_v2", T::LETTER);
                let (dense, status) = if name.ends_with("ymv") || name.ends_with("emv") {
                    let status =
                        call!(full, handle.0, uplo, N, &ha, da.at, ld, dx.at, incx, &hb, dy.at, incy);
                    (Dense::stored(&a, N, N, ld), status)
                } else if name.ends_with("bmv") {
                    let sides = if uplo == 0 { (k, 0) } else { (0, k) };
                    let status =
                        call!(full, handle.0, uplo, N, k, &ha, da.at, ld, dx.at, incx, &hb, dy.at, incy);
                    (banded(&a, (N, N), sides, ld), status)
                } else {
                    let status = call!(full, handle.0, uplo, N, &ha, da.at, dx.at, incx, &hb, dy.at, incy);
                    (packed(&a, uplo, N), status)
                };
                assert_eq!(status, SUCCESS, "{full}");
                let product = dense.by_triangle(uplo, *form).times(&vector(&xs, N, incx));
                let expected = product.plus(alpha, &vector(&ys, N, incy), beta);
                assert_eq!(dy.get(), store_vector(&expected, &ys, incy), "{full} {uplo} {incx} {incy}");
            }
        }
    }
}

fn triangular<T: Number>() {
    let handle = Handle::new();
    let (k, ld) = (3usize, N + 2);
    let mut a = values::<T>(7, ld * N);
    // Large diagonals in every layout keep solutions small.
    let mut diagonals: Vec<usize> = (0..N).map(|j| j + j * ld).collect();
    diagonals.extend((0..N).flat_map(|j| [j * ld, k + j * ld]));
    for uplo in [0, 1] {
        diagonals.extend((0..N).map(|j| packed_place(uplo, j, j, N)));
    }
    diagonals.iter().for_each(|place| a[*place] = T::of(C64::new(8.0, 0.0)));
    let da = Device::new(&a);
    for uplo in [0, 1] {
        for op in OPS {
            for unit in [0, 1] {
                for incx in [1, -2] {
                    let xs = values::<T>(8, span(N, incx));
                    let x = vector(&xs, N, incx);
                    let sides = if uplo == 0 { (k, 0) } else { (0, k) };
                    let form = if unit == 1 { 'u' } else { 't' };
                    for (layout, dense) in [
                        ("tr", Dense::stored(&a, N, N, ld)),
                        ("tb", banded(&a, (N, N), sides, ld)),
                        ("tp", packed(&a, uplo, N)),
                    ] {
                        let matrix = dense.by_triangle(uplo, form).op(op);
                        let go = |what: &str, x: usize| {
                            let name = format!("cublas{}{layout}{what}_v2", T::LETTER);
                            match layout {
                                "tr" => call!(name, handle.0, uplo, op, unit, N, da.at, ld, x, incx),
                                "tb" => call!(name, handle.0, uplo, op, unit, N, k, da.at, ld, x, incx),
                                _ => call!(name, handle.0, uplo, op, unit, N, da.at, x, incx),
                            }
                        };
                        let dx = Device::new(&xs);
                        assert_eq!(go("mv", dx.at), SUCCESS);
                        let product = store_vector(&matrix.times(&x), &xs, incx);
                        assert_eq!(dx.get(), product, "{layout}mv {uplo} {op} {unit} {incx}");
                        assert_eq!(go("sv", dx.at), SUCCESS);
                        // With a unit diagonal solutions grow, so the numbers are small; all are integers.
                        close(&dx.get(), &xs, &format!("{} {layout}sv {uplo} {op} {unit} {incx}", T::LETTER));
                    }
                }
            }
        }
    }
}

fn rank<T: Number>(names: &[(&str, char)]) {
    let handle = Handle::new();
    let ld = N + 1;
    let a = values::<T>(9, ld * N);
    for (name, form) in names {
        for uplo in [0, 1] {
            for (incx, incy) in [(1, -1), (-3, 2)] {
                let is_real = *form == 'h' && !name.contains('2');
                let alpha = if is_real { C64::new(3.0, 0.0) } else { factors::<T>().0 };
                // A real factor is the first part of a complex one.
                let ha = T::of(alpha);
                let (xs, ys) = (values::<T>(1, span(N, incx)), values::<T>(2, span(N, incy)));
                let (x, y) = (vector(&xs, N, incx), vector(&ys, N, incy));
                let (dx, dy, da) = (Device::new(&xs), Device::new(&ys), Device::new(&a));
                let full = format!("cublas{}{name}_v2", T::LETTER);
                let is_packed = name.contains('p');
                let two = name.ends_with('2');
                let status = match (name.starts_with("ge"), two, is_packed) {
                    (true, ..) => call!(full, handle.0, N, N, &ha, dx.at, incx, dy.at, incy, da.at, ld),
                    (_, true, false) => {
                        call!(full, handle.0, uplo, N, &ha, dx.at, incx, dy.at, incy, da.at, ld)
                    }
                    (_, true, true) => call!(full, handle.0, uplo, N, &ha, dx.at, incx, dy.at, incy, da.at),
                    (_, false, false) => call!(full, handle.0, uplo, N, &ha, dx.at, incx, da.at, ld),
                    (_, false, true) => call!(full, handle.0, uplo, N, &ha, dx.at, incx, da.at),
                };
                assert_eq!(status, SUCCESS, "{full}");
                let turned = |v: &Dense| v.op(if *form == 'h' { 2 } else { 1 });
                let one = C64::new(1.0, 0.0);
                let sum = match (name.starts_with("ge"), two) {
                    (true, _) => {
                        x.times(&turned(&y)).plus(alpha, &Dense::new(N, N, |_, _| one), C64::default())
                    }
                    (_, true) => {
                        let other = if *form == 'h' { alpha.conj() } else { alpha };
                        x.times(&turned(&y)).plus(alpha, &y.times(&turned(&x)), other)
                    }
                    _ => x.times(&turned(&x)).plus(alpha, &Dense::new(N, N, |_, _| one), C64::default()),
                };
                let old = if is_packed { packed(&a, uplo, N) } else { Dense::stored(&a, N, N, ld) };
                let mut new = sum.plus(one, &old, one);
                if *form == 'h' && !name.starts_with("ge") {
                    (0..N).for_each(|i| new.values[i + i * N].im = 0.0);
                }
                let expected = if is_packed {
                    let mut memory = a.clone();
                    for j in 0..N {
                        for i in (0..N).filter(|i| is_stored(uplo, *i, j)) {
                            memory[packed_place(uplo, i, j, N)] = T::of(new.at(i, j));
                        }
                    }
                    memory
                } else {
                    new.store(&a, ld, |i, j| name.starts_with("ge") || is_stored(uplo, i, j))
                };
                assert_eq!(da.get(), expected, "{full} {uplo} {incx} {incy}");
            }
        }
    }
}

#[test]
fn general_matrices() {
    general::<f32>();
    general::<f64>();
    general::<C32>();
    general::<C64>();
}

#[test]
fn symmetric_matrices() {
    symmetric::<f32>(&[("symv", 's'), ("sbmv", 's'), ("spmv", 's')]);
    symmetric::<f64>(&[("symv", 's'), ("sbmv", 's'), ("spmv", 's')]);
    symmetric::<C32>(&[("symv", 's'), ("hemv", 'h'), ("hbmv", 'h'), ("hpmv", 'h')]);
    symmetric::<C64>(&[("symv", 's'), ("hemv", 'h'), ("hbmv", 'h'), ("hpmv", 'h')]);
}

#[test]
fn triangular_matrices() {
    triangular::<f32>();
    triangular::<f64>();
    triangular::<C32>();
    triangular::<C64>();
}

#[test]
fn sums_with_products_of_vectors() {
    let real = [("ger", 's'), ("syr", 's'), ("spr", 's'), ("syr2", 's'), ("spr2", 's')];
    rank::<f32>(&real);
    rank::<f64>(&real);
    let complex = [
        ("geru", 's'),
        ("gerc", 'h'),
        ("syr", 's'),
        ("her", 'h'),
        ("hpr", 'h'),
        ("syr2", 's'),
        ("her2", 'h'),
        ("hpr2", 'h'),
    ];
    rank::<C32>(&complex);
    rank::<C64>(&complex);
}

#[test]
fn batches() {
    let handle = Handle::new();
    let (m, n, batch) = (5usize, 7usize, 3usize);
    let (a, x) = (values::<half::f16>(1, m * n * batch), values::<half::f16>(2, n * batch));
    let (da, dx, dy) = (Device::new(&a), Device::new(&x), Device::new(&vec![0f32; m * batch]));
    let (one, zero) = (1f32, 0f32);
    let status = call!(
        "cublasHSSgemvStridedBatched",
        handle.0,
        0,
        m,
        n,
        &one,
        da.at,
        m,
        m * n,
        dx.at,
        1,
        n,
        &zero,
        dy.at,
        1,
        m,
        batch
    );
    assert_eq!(status, SUCCESS);
    let expected: Vec<f32> = (0..batch)
        .flat_map(|i| {
            let a = Dense::stored(&a[i * m * n..], m, n, m);
            a.times(&vector(&x[i * n..], n, 1)).values.into_iter().map(|x| x.re as f32)
        })
        .collect();
    assert_eq!(dy.get(), expected);
    let list =
        |at: usize, step: usize| Device::new(&(0..batch).map(|i| at + i * step).collect::<Vec<usize>>());
    let (la, lx, ly) = (list(da.at, m * n * 2), list(dx.at, n * 2), list(dy.at, m * 4));
    let status =
        call!("cublasHSSgemvBatched", handle.0, 0, m, n, &one, la.at, m, lx.at, 1, &one, ly.at, 1, batch);
    assert_eq!(status, SUCCESS);
    assert_eq!(dy.get(), expected.iter().map(|x| x * 2.0).collect::<Vec<_>>());
}
