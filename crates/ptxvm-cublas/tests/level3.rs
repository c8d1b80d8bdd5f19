//! Level 3 against exact sums: symmetric, hermitian and triangular matrices on either side, either triangle,
//! transposed or not; and batches of equations.

mod support;

use support::{C32, C64, Dense, Device, Handle, Number, SUCCESS, close, values};

const SHAPES: [(usize, usize); 3] = [(4, 6), (70, 9), (9, 135)];

fn factors<T: Number>() -> (C64, C64) {
    (C64::new(2.0, if T::COMPLEX { 1.0 } else { 0.0 }), C64::new(-1.0, 0.0))
}

fn is_stored(uplo: i32, i: usize, j: usize) -> bool {
    if uplo == 0 { i >= j } else { i <= j }
}

fn sided<T: Number>(names: &[(&str, char)]) {
    let handle = Handle::new();
    let (alpha, beta) = factors::<T>();
    let (ha, hb) = (T::of(alpha), T::of(beta));
    for (m, n) in SHAPES {
        for (name, form) in names {
            for (side, size) in [(0, m), (1, n)] {
                for uplo in [0, 1] {
                    let (lda, ldb, ldc) = (size + 1, m + 2, m + 1);
                    let (a, b, c) =
                        (values::<T>(1, lda * size), values::<T>(2, ldb * n), values::<T>(3, ldc * n));
                    let (da, db, dc) = (Device::new(&a), Device::new(&b), Device::new(&c));
                    let full = format!("cublas{}{name}_v2", T::LETTER);
                    let status =
                        call!(full, handle.0, side, uplo, m, n, &ha, da.at, lda, db.at, ldb, &hb, dc.at, ldc);
                    assert_eq!(status, SUCCESS, "{full}");
                    let left = Dense::stored(&a, size, size, lda).by_triangle(uplo, *form);
                    let right = Dense::stored(&b, m, n, ldb);
                    let product = if side == 0 { left.times(&right) } else { right.times(&left) };
                    let sum = product.plus(alpha, &Dense::stored(&c, m, n, ldc), beta);
                    assert_eq!(dc.get(), sum.store(&c, ldc, |_, _| true), "{full} {side} {uplo} {m} {n}");
                }
            }
        }
    }
}

fn ranks<T: Number>(names: &[(&str, char)]) {
    let handle = Handle::new();
    for (n, k) in [(5, 3), (140, 7), (6, 300)] {
        for (name, form) in names {
            for uplo in [0, 1] {
                for op in [0, if *form == 'h' { 2 } else { 1 }] {
                    let two = name.contains('2') || name.ends_with('x');
                    let is_real = *form == 'h' && !two;
                    let alpha = if is_real { C64::new(3.0, 0.0) } else { factors::<T>().0 };
                    let beta = C64::new(2.0, 0.0);
                    let (ha, hb) = (T::of(alpha), T::of(beta));
                    let (rows, columns) = if op == 0 { (n, k) } else { (k, n) };
                    let (ld, ldc) = (rows + 1, n + 2);
                    let (a, b, c) =
                        (values::<T>(1, ld * columns), values::<T>(2, ld * columns), values::<T>(3, ldc * n));
                    let (da, db, dc) = (Device::new(&a), Device::new(&b), Device::new(&c));
                    let suffix = if name.ends_with('x') { "" } else { "_v2" };
                    let full = format!("cublas{}{name}{suffix}", T::LETTER);
                    let status = if two {
                        call!(full, handle.0, uplo, op, n, k, &ha, da.at, ld, db.at, ld, &hb, dc.at, ldc)
                    } else {
                        call!(full, handle.0, uplo, op, n, k, &ha, da.at, ld, &hb, dc.at, ldc)
                    };
                    assert_eq!(status, SUCCESS, "{full}");
                    let turned = |x: &Dense| x.op(if *form == 'h' { 2 } else { 1 });
                    let a = Dense::stored(&a, rows, columns, ld).op(op);
                    let b = Dense::stored(&b, rows, columns, ld).op(op);
                    let zero = C64::default();
                    let sum = if name.contains("2k") {
                        let other = if *form == 'h' { alpha.conj() } else { alpha };
                        a.times(&turned(&b)).plus(alpha, &b.times(&turned(&a)), other)
                    } else {
                        let product = a.times(&turned(if two { &b } else { &a }));
                        product.plus(alpha, &product, zero)
                    };
                    let mut sum = sum.plus(C64::new(1.0, 0.0), &Dense::stored(&c, n, n, ldc), beta);
                    if *form == 'h' {
                        (0..n).for_each(|i| sum.values[i + i * n].im = 0.0);
                    }
                    let expected = sum.store(&c, ldc, |i, j| is_stored(uplo, i, j));
                    assert_eq!(dc.get(), expected, "{full} {uplo} {op} {n} {k}");
                }
            }
        }
    }
}

fn triangular<T: Number>() {
    let handle = Handle::new();
    let alpha = C64::new(2.0, 0.0);
    let ha = T::of(alpha);
    for (m, n) in SHAPES {
        for (side, size) in [(0, m), (1, n)] {
            let (lda, ldb, ldc) = (size + 1, m + 2, m + 1);
            // A diagonal of 4 and some ones beside it: products are integers, and solutions stay small.
            let mut a = vec![T::of(C64::new(0.0, 0.0)); lda * size];
            for j in 0..size {
                for i in 0..size {
                    let beside = (i * 7 + j * 3) % 31 == 0;
                    a[i + j * lda] = T::of(C64::new(if i == j { 4.0 } else { f64::from(beside) }, 0.0));
                    if T::COMPLEX && beside && i != j {
                        a[i + j * lda] = T::of(C64::new(0.0, 1.0));
                    }
                }
            }
            let (b, c) = (values::<T>(2, ldb * n), values::<T>(3, ldc * n));
            let da = Device::new(&a);
            for uplo in [0, 1] {
                for op in [0, 1, 2] {
                    for unit in [0, 1] {
                        let what = format!("{} {side} {uplo} {op} {unit} {m} {n}", T::LETTER);
                        let triangle = Dense::stored(&a, size, size, lda)
                            .by_triangle(uplo, if unit == 1 { 'u' } else { 't' })
                            .op(op);
                        let dense = Dense::stored(&b, m, n, ldb);
                        let product = if side == 0 { triangle.times(&dense) } else { dense.times(&triangle) };
                        let product = product.plus(alpha, &product, C64::default());
                        let (db, dc) = (Device::new(&b), Device::new(&c));
                        let name = format!("cublas{}trmm_v2", T::LETTER);
                        let status = call!(
                            name, handle.0, side, uplo, op, unit, m, n, &ha, da.at, lda, db.at, ldb, dc.at,
                            ldc
                        );
                        assert_eq!(status, SUCCESS);
                        assert_eq!(dc.get(), product.store(&c, ldc, |_, _| true), "trmm {what}");
                        // In place, and back again.
                        let status = call!(
                            name, handle.0, side, uplo, op, unit, m, n, &ha, da.at, lda, db.at, ldb, db.at,
                            ldb
                        );
                        assert_eq!(status, SUCCESS);
                        assert_eq!(db.get(), product.store(&b, ldb, |_, _| true), "trmm in place {what}");
                        let half = T::of(C64::new(0.5, 0.0));
                        let name = format!("cublas{}trsm_v2", T::LETTER);
                        let status =
                            call!(name, handle.0, side, uplo, op, unit, m, n, &half, da.at, lda, db.at, ldb);
                        assert_eq!(status, SUCCESS);
                        close(&db.get(), &b, &format!("trsm {what}"));
                        let lists = Device::new(&[da.at, db.at]);
                        let name = format!("cublas{}trsmBatched", T::LETTER);
                        assert_eq!(
                            call!(
                                format!("cublas{}trmm_v2", T::LETTER),
                                handle.0,
                                side,
                                uplo,
                                op,
                                unit,
                                m,
                                n,
                                &ha,
                                da.at,
                                lda,
                                db.at,
                                ldb,
                                db.at,
                                ldb
                            ),
                            SUCCESS
                        );
                        let status = call!(
                            name,
                            handle.0,
                            side,
                            uplo,
                            op,
                            unit,
                            m,
                            n,
                            &half,
                            lists.at,
                            lda,
                            lists.at + 8,
                            ldb,
                            1
                        );
                        assert_eq!(status, SUCCESS);
                        close(&db.get(), &b, &format!("trsmBatched {what}"));
                    }
                }
            }
        }
    }
}

fn sums<T: Number>() {
    let handle = Handle::new();
    let (alpha, beta) = factors::<T>();
    let (ha, hb) = (T::of(alpha), T::of(beta));
    let letter = T::LETTER;
    for (m, n) in SHAPES {
        for opa in [0, 1, 2] {
            for opb in [0, 1, 2] {
                let shape = |op: i32| if op == 0 { (m, n) } else { (n, m) };
                let ((ra, ca), (rb, cb), ldc) = (shape(opa), shape(opb), m + 1);
                let (a, b, c) =
                    (values::<T>(1, ra * ca), values::<T>(2, (rb + 1) * cb), values::<T>(3, ldc * n));
                let (da, db, dc) = (Device::new(&a), Device::new(&b), Device::new(&c));
                let name = format!("cublas{letter}geam");
                let status =
                    call!(name, handle.0, opa, opb, m, n, &ha, da.at, ra, &hb, db.at, rb + 1, dc.at, ldc);
                assert_eq!(status, SUCCESS);
                let sum = Dense::stored(&a, ra, ca, ra).op(opa).plus(
                    alpha,
                    &Dense::stored(&b, rb, cb, rb + 1).op(opb),
                    beta,
                );
                assert_eq!(dc.get(), sum.store(&c, ldc, |_, _| true), "{name} {opa} {opb}");
            }
        }
        for (side, size) in [(0, m), (1, n)] {
            let (a, x, c) = (values::<T>(1, m * n), values::<T>(2, size * 2), values::<T>(3, m * n));
            let (da, dx, dc) = (Device::new(&a), Device::new(&x), Device::new(&c));
            let name = format!("cublas{letter}dgmm");
            assert_eq!(call!(name, handle.0, side, m, n, da.at, m, dx.at, 2, dc.at, m), SUCCESS);
            let scaled =
                Dense::new(m, n, |i, j| a[i + j * m].to() * x[2 * if side == 0 { i } else { j }].to());
            assert_eq!(dc.get(), scaled.store(&c, m, |_, _| true), "{name} {side}");
        }
    }
}

#[test]
fn symmetric_and_hermitian_matrices() {
    sided::<f32>(&[("symm", 's')]);
    sided::<f64>(&[("symm", 's')]);
    sided::<C32>(&[("symm", 's'), ("hemm", 'h')]);
    sided::<C64>(&[("symm", 's'), ("hemm", 'h')]);
}

#[test]
fn triangles_of_products() {
    ranks::<f32>(&[("syrk", 's'), ("syr2k", 's'), ("syrkx", 's')]);
    ranks::<f64>(&[("syrk", 's'), ("syr2k", 's'), ("syrkx", 's')]);
    let complex =
        [("syrk", 's'), ("syr2k", 's'), ("syrkx", 's'), ("herk", 'h'), ("her2k", 'h'), ("herkx", 'h')];
    ranks::<C32>(&complex);
    ranks::<C64>(&complex);
}

#[test]
fn triangular_matrices() {
    triangular::<f32>();
    triangular::<f64>();
    triangular::<C32>();
    triangular::<C64>();
}

#[test]
fn sums_and_scalings() {
    sums::<f32>();
    sums::<f64>();
    sums::<C32>();
    sums::<C64>();
}

fn factored<T: Number>() {
    let handle = Handle::new();
    let (letter, n, batch, ld) = (T::LETTER, 12usize, 3usize, 13usize);
    let mut a = values::<T>(1, ld * n * batch);
    for i in 0..batch {
        // Large elements beside the diagonal cause row exchanges.
        (0..n).for_each(|j| a[i * ld * n + (j + 5) % n + j * ld] = T::of(C64::new(9.0, 1.0)));
    }
    let list = |at: usize| {
        Device::new(&(0..batch).map(|i| at + i * ld * n * size_of::<T>()).collect::<Vec<usize>>())
    };
    let (da, dc) = (Device::new(&a), Device::new(&vec![T::default(); ld * n * batch]));
    let (la, lc) = (list(da.at), list(dc.at));
    let (pivots, info) = (Device::new(&vec![0i32; n * batch]), Device::new(&vec![-1i32; batch]));
    let name = format!("cublas{letter}getrfBatched");
    assert_eq!(call!(name, handle.0, n, la.at, ld, pivots.at, info.at, batch), SUCCESS);
    assert_eq!(info.get(), vec![0; batch]);
    assert!(pivots.get().iter().enumerate().any(|(i, p)| *p != (i % n) as i32 + 1));
    for op in [0, 1, 2] {
        // The solution for A x is x.
        let x = values::<T>(2, ld * 2 * batch);
        let b: Vec<T> = (0..batch)
            .flat_map(|i| {
                let a = Dense::stored(&a[i * ld * n..], n, n, ld).op(op);
                a.times(&Dense::stored(&x[i * ld * 2..], n, 2, ld)).store(
                    &x[i * ld * 2..(i + 1) * ld * 2],
                    ld,
                    |_, _| true,
                )
            })
            .collect();
        let db = Device::new(&b);
        let lb =
            Device::new(&(0..batch).map(|i| db.at + i * ld * 2 * size_of::<T>()).collect::<Vec<usize>>());
        let mut wrong = -1;
        let name = format!("cublas{letter}getrsBatched");
        let status = call!(name, handle.0, op, n, 2, la.at, ld, pivots.at, lb.at, ld, &mut wrong, batch);
        assert_eq!((status, wrong), (SUCCESS, 0));
        close(&db.get(), &x, &format!("{name} {op}"));
    }
    let identity = |found: Vec<T>, what: &str| {
        for i in 0..batch {
            let inverse = Dense::stored(&found[i * ld * n..], n, n, ld);
            let product = Dense::stored(&a[i * ld * n..], n, n, ld).times(&inverse);
            let product: Vec<T> = product.values.iter().map(|x| T::of(*x)).collect();
            let one = Dense::new(n, n, |i, j| C64::new(f64::from(i == j), 0.0));
            close(&product, &one.values.iter().map(|x| T::of(*x)).collect::<Vec<_>>(), what);
        }
    };
    let name = format!("cublas{letter}getriBatched");
    assert_eq!(call!(name, handle.0, n, la.at, ld, pivots.at, lc.at, ld, info.at, batch), SUCCESS);
    identity(dc.get(), &name);
    let (fresh, name) = (Device::new(&a), format!("cublas{letter}matinvBatched"));
    let lf = list(fresh.at);
    assert_eq!(call!(name, handle.0, n, lf.at, ld, lc.at, ld, info.at, batch), SUCCESS);
    identity(dc.get(), &name);
    assert_eq!(fresh.get(), a);
    // A matrix of zeros has no pivot.
    let zeros = Device::new(&vec![T::default(); ld * n * batch]);
    let lz = list(zeros.at);
    let name = format!("cublas{letter}getrfBatched");
    assert_eq!(call!(name, handle.0, n, lz.at, ld, 0usize, info.at, batch), SUCCESS);
    assert_eq!(info.get(), vec![1; batch]);
}

#[test]
fn batches_of_equations() {
    factored::<f32>();
    factored::<f64>();
    factored::<C32>();
    factored::<C64>();
}

#[test]
fn triangles_are_packed_and_unpacked() {
    let handle = Handle::new();
    for uplo in [0, 1] {
        let a = values::<f32>(1, 30);
        let (full, packed) = (Device::new(&a), Device::new(&[9f32; 15]));
        assert_eq!(call!("cublasStrttp", handle.0, uplo, 5, full.at, 6, packed.at), SUCCESS);
        let expected: Vec<f32> = (0..5)
            .flat_map(|j| (0..5).map(move |i| (i, j)))
            .filter(|(i, j)| is_stored(uplo, *i, *j))
            .map(|(i, j)| a[i + j * 6])
            .collect();
        assert_eq!(packed.get(), expected);
        let back = Device::new(&[0f32; 30]);
        assert_eq!(call!("cublasStpttr", handle.0, uplo, 5, packed.at, back.at, 6), SUCCESS);
        let triangle = Dense::stored(&a, 5, 5, 6).store(&[0f32; 30], 6, |i, j| is_stored(uplo, i, j));
        assert_eq!(back.get(), triangle);
    }
}
