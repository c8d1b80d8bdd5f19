//! Products of matrices against exact sums: shapes, transposition, leading dimensions, types, batches.

mod support;

use half::{bf16, f16};
use support::{C32, C64, Dense, Device, Handle, NOT_SUPPORTED, Number, SUCCESS, values};

const SHAPES: [(usize, usize, usize); 10] = [
    (1, 1, 1),
    (3, 5, 7),
    (16, 1, 20),
    (1, 17, 20),
    (64, 33, 1),
    (5, 4, 0),
    (130, 40, 300),
    (530, 30, 260),
    (20, 530, 30),
    (1, 70, 513),
];

fn ops<T: Number>() -> &'static [i32] {
    if T::COMPLEX { &[0, 1, 2] } else { &[0, 1] }
}

/// Rows and columns of the stored matrix.
fn turned(op: i32, shape: (usize, usize)) -> (usize, usize) {
    if op == 0 { shape } else { (shape.1, shape.0) }
}

struct Case<I, O> {
    a: (Vec<I>, usize),
    b: (Vec<I>, usize),
    c: (Vec<O>, usize),
    alpha: C64,
    beta: C64,
    expected: Vec<O>,
}

impl<I: Number, O: Number> Case<I, O> {
    fn new(op: [i32; 2], (m, n, k): (usize, usize, usize), beta: C64) -> Self {
        let (ra, ca) = turned(op[0], (m, k));
        let (rb, cb) = turned(op[1], (k, n));
        let (lda, ldb, ldc) = (ra.max(1) + 2, rb.max(1) + 1, m + 3);
        let (a, b) = (values::<I>(1, lda * ca.max(1)), values::<I>(2, ldb * cb.max(1)));
        let mut c = values::<O>(3, ldc * n);
        if beta == C64::default() {
            // Elements that must not be read are NaN.
            c.iter_mut().for_each(|c| *c = O::of(C64::new(f64::NAN, f64::NAN)));
        }
        let alpha = C64::new(2.0, if I::COMPLEX { 1.0 } else { 0.0 });
        let product =
            Dense::stored(&a, ra, ca, lda).op(op[0]).times(&Dense::stored(&b, rb, cb, ldb).op(op[1]));
        let old = Dense::new(m, n, |i, j| if beta == C64::default() { beta } else { c[i + j * ldc].to() });
        let expected = product.plus(alpha, &old, beta).store(&c, ldc, |_, _| true);
        Self { a: (a, lda), b: (b, ldb), c: (c, ldc), alpha, beta, expected }
    }

    /// Compares the first columns of C, without the memory below them.
    fn same(&self, found: &[O], m: usize, what: &str) {
        for (column, (found, expected)) in
            found.chunks(self.c.1).zip(self.expected.chunks(self.c.1)).enumerate()
        {
            assert_eq!(found[..m], expected[..m], "{what}, column {column}");
            let bytes = |of: &[O]| of.iter().map(|x| format!("{x:?}")).collect::<String>();
            assert_eq!(bytes(&found[m..]), bytes(&self.c.0[column * self.c.1 + m..(column + 1) * self.c.1]));
        }
    }
}

fn gemm<T: Number>() {
    let handle = Handle::new();
    for (m, n, k) in SHAPES {
        for &opa in ops::<T>() {
            for &opb in ops::<T>() {
                let betas = [C64::default(), C64::new(-1.0, 0.0)];
                // Large products take most of the time: one factor each, in turn.
                let turn = (opa + opb) as usize % 2;
                for &beta in if m * n * k < 1 << 20 { &betas[..] } else { &betas[turn..=turn] } {
                    let case = Case::<T, T>::new([opa, opb], (m, n, k), beta);
                    let (a, b, c) = (Device::new(&case.a.0), Device::new(&case.b.0), Device::new(&case.c.0));
                    let (alpha, beta) = (T::of(case.alpha), T::of(case.beta));
                    let suffix = if T::LETTER == "H" { "" } else { "_v2" };
                    let wide = if opa == opb { "" } else { "_64" };
                    let name = format!("cublas{}gemm{suffix}{wide}", T::LETTER);
                    let status = call!(
                        name, handle.0, opa, opb, m, n, k, &alpha, a.at, case.a.1, b.at, case.b.1, &beta,
                        c.at, case.c.1
                    );
                    assert_eq!(status, SUCCESS);
                    case.same(&c.get(), m, &format!("{name} {opa}{opb} {m} {n} {k}"));
                }
            }
        }
    }
}

#[test]
fn products_in_single_precision() {
    gemm::<f32>();
}

#[test]
fn products_in_double_precision() {
    gemm::<f64>();
}

#[test]
fn products_of_complex_numbers_in_single_precision() {
    gemm::<C32>();
}

#[test]
fn products_of_complex_numbers_in_double_precision() {
    gemm::<C64>();
}

/// A product with types as arguments: of A and B, of C, of the computation, of the factors.
fn gemm_ex<I: Number, O: Number, S: Number>(input: i32, output: i32, compute: i32) {
    let handle = Handle::new();
    for (m, n, k) in [(3, 5, 7), (40, 33, 60), (1, 9, 40), (9, 1, 40)] {
        for &opa in ops::<I>() {
            for &opb in ops::<I>() {
                let case = Case::<I, O>::new([opa, opb], (m, n, k), C64::new(-1.0, 0.0));
                let (a, b, c) = (Device::new(&case.a.0), Device::new(&case.b.0), Device::new(&case.c.0));
                let (alpha, beta) = (S::of(case.alpha), S::of(case.beta));
                let status = call!(
                    "cublasGemmEx",
                    handle.0,
                    opa,
                    opb,
                    m,
                    n,
                    k,
                    &alpha,
                    a.at,
                    input,
                    case.a.1,
                    b.at,
                    input,
                    case.b.1,
                    &beta,
                    c.at,
                    output,
                    case.c.1,
                    compute,
                    -1
                );
                assert_eq!(status, SUCCESS, "{input} {output} {compute}");
                case.same(&c.get(), m, &format!("{input} {output} {compute} {opa}{opb} {m} {n} {k}"));
            }
        }
    }
}

#[test]
fn products_with_types_as_arguments() {
    gemm_ex::<f16, f16, f16>(2, 2, 64);
    gemm_ex::<f16, f16, f32>(2, 2, 68);
    gemm_ex::<f16, f32, f32>(2, 0, 68);
    gemm_ex::<bf16, bf16, f32>(14, 14, 68);
    gemm_ex::<bf16, f32, f32>(14, 0, 68);
    gemm_ex::<f32, f32, f32>(0, 0, 77);
    gemm_ex::<f64, f64, f64>(1, 1, 70);
    gemm_ex::<i8, i32, i32>(3, 10, 72);
    gemm_ex::<i8, f32, f32>(3, 0, 68);
    gemm_ex::<C32, C32, C32>(4, 4, 68);
    gemm_ex::<C64, C64, C64>(5, 5, 70);
    let handle = Handle::new();
    let x = Device::new(&[0f32; 4]);
    // 8-bit types, and types that do not match, are not supported.
    for (a, b, c, compute) in [(28, 28, 2, 68), (2, 14, 0, 68), (0, 0, 2, 68), (0, 0, 0, 64), (1, 1, 1, 68)] {
        let status = call!(
            "cublasGemmEx",
            handle.0,
            0,
            0,
            1,
            1,
            1,
            &1f32,
            x.at,
            a,
            1,
            x.at,
            b,
            1,
            &0f32,
            x.at,
            c,
            1,
            compute,
            -1
        );
        assert_eq!(status, NOT_SUPPORTED, "{a} {b} {c} {compute}");
    }
}

#[test]
fn halves_are_rounded_once() {
    let handle = Handle::new();
    // 2049 is not a half. 2048 ones and one more round to 2048; two more give 2050.
    let ones = Device::new(&vec![f16::ONE; 3000]);
    for (k, expected) in [(2048usize, 2048.0), (2050, 2050.0), (2500, 2500.0)] {
        let c = Device::new(&[f16::ZERO]);
        let (one, zero) = (f16::ONE, f16::ZERO);
        let status =
            call!("cublasHgemm", handle.0, 0, 0, 1, 1, k, &one, ones.at, 1, ones.at, k, &zero, c.at, 1);
        assert_eq!(status, SUCCESS);
        assert_eq!(c.get()[0].to_f32(), expected);
    }
}

fn batched<T: Number>() {
    let handle = Handle::new();
    let letter = T::LETTER;
    let (m, n, k, batch) = (4usize, 3usize, 6usize, 5usize);
    let (a, b, c) =
        (values::<T>(1, m * k * batch), values::<T>(2, k * n * batch), values::<T>(3, m * n * batch));
    let (alpha, beta) = (T::of(C64::new(2.0, 0.0)), T::of(C64::new(1.0, 0.0)));
    let expected: Vec<T> = (0..batch)
        .flat_map(|i| {
            let a = Dense::stored(&a[i * m * k..], m, k, m);
            let b = Dense::stored(&b[i * k * n..], n, k, n).op(1);
            let c = &c[i * m * n..(i + 1) * m * n];
            a.times(&b).plus(alpha.to(), &Dense::stored(c, m, n, m), beta.to()).store(c, m, |_, _| true)
        })
        .collect();
    let (da, db) = (Device::new(&a), Device::new(&b));
    let size = size_of::<T>();
    for wide in ["", "_64"] {
        let dc = Device::new(&c);
        let name = format!("cublas{letter}gemmStridedBatched{wide}");
        let status = call!(
            name,
            handle.0,
            0,
            1,
            m,
            n,
            k,
            &alpha,
            da.at,
            m,
            m * k,
            db.at,
            n,
            k * n,
            &beta,
            dc.at,
            m,
            m * n,
            batch
        );
        assert_eq!(status, SUCCESS);
        assert_eq!(dc.get(), expected, "{name}");
        let dc = Device::new(&c);
        let list = |at: usize, step: usize| {
            Device::new(&(0..batch).map(|i| at + i * step * size).collect::<Vec<usize>>())
        };
        let (la, lb, lc) = (list(da.at, m * k), list(db.at, k * n), list(dc.at, m * n));
        let name = format!("cublas{letter}gemmBatched{wide}");
        let status = call!(name, handle.0, 0, 1, m, n, k, &alpha, la.at, m, lb.at, n, &beta, lc.at, m, batch);
        assert_eq!(status, SUCCESS);
        assert_eq!(dc.get(), expected, "{name}");
    }
}

#[test]
fn products_in_batches() {
    batched::<f16>();
    batched::<f32>();
    batched::<f64>();
    batched::<C32>();
    batched::<C64>();
}

#[test]
fn batches_with_types_as_arguments() {
    let handle = Handle::new();
    let a = Device::new(&values::<f16>(1, 24));
    let (c, d) = (Device::new(&[0f32; 8]), Device::new(&[0f32; 8]));
    // Three products of 2 by 2 with inner dimension 4. C has a stride of 2 columns, and the last one is left
    // out.
    let status = call!(
        "cublasGemmStridedBatchedEx",
        handle.0,
        0,
        0,
        2,
        2,
        4,
        &1f32,
        a.at,
        2,
        2,
        8usize,
        a.at,
        2,
        4,
        8usize,
        &0f32,
        c.at,
        0,
        2,
        4usize,
        2,
        68,
        -1
    );
    assert_eq!(status, SUCCESS);
    let lists: Vec<usize> = vec![a.at, a.at + 16, d.at, d.at + 16];
    let lists = Device::new(&lists);
    let status = call!(
        "cublasGemmBatchedEx",
        handle.0,
        0,
        0,
        2,
        2,
        4,
        &1f32,
        lists.at,
        2,
        2,
        lists.at,
        2,
        4,
        &0f32,
        lists.at + 16,
        0,
        2,
        2,
        68,
        -1
    );
    assert_eq!(status, SUCCESS);
    let host = a.get();
    for i in 0..2 {
        let (left, right) = (Dense::stored(&host[i * 8..], 2, 4, 2), Dense::stored(&host[i * 8..], 4, 2, 4));
        let expected: Vec<f32> = left.times(&right).values.iter().map(|x| x.re as f32).collect();
        assert_eq!(c.get()[i * 4..(i + 1) * 4], expected);
        assert_eq!(d.get()[i * 4..(i + 1) * 4], expected);
    }
}

#[test]
fn factors_of_zero_read_nothing() {
    let handle = Handle::new();
    let c = Device::new(&[3f32; 4]);
    let nowhere = 0x10usize;
    for device in [false, true] {
        let (zero, two) = (Device::new(&[0f32]), Device::new(&[2f32]));
        let (host_zero, host_two) = (0f32, 2f32);
        handle.device_mode(device);
        let (alpha, beta) = match device {
            true => (zero.at, two.at),
            false => ((&raw const host_zero).addr(), (&raw const host_two).addr()),
        };
        let status =
            call!("cublasSgemm_v2", handle.0, 0, 0, 2, 2, 2, alpha, nowhere, 2, nowhere, 2, beta, c.at, 2);
        assert_eq!(status, SUCCESS);
    }
    assert_eq!(c.get(), [12.0; 4]);
}
