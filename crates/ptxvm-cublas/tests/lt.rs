//! cuBLASLt: layouts, orders, epilogues and batches against exact sums. An algorithm is offered for each
//! supported product, and none for unsupported ones.

mod support;

use half::bf16;
use support::{C64, Dense, Device, Handle, INVALID_VALUE, NOT_SUPPORTED, Number, SUCCESS, close, values};

fn layout(ty: i32, rows: usize, columns: usize, ld: usize) -> usize {
    let mut layout = 0usize;
    assert_eq!(call!("cublasLtMatrixLayoutCreate", &mut layout, ty, rows, columns, ld), SUCCESS);
    layout
}

fn set<T>(which: &str, descriptor: usize, attribute: i32, value: T) {
    let name = format!("cublasLt{which}SetAttribute");
    assert_eq!(call!(name, descriptor, attribute, &value, size_of::<T>()), SUCCESS, "{attribute}");
}

fn operation(compute: i32, scale: i32) -> usize {
    let mut operation = 0usize;
    assert_eq!(call!("cublasLtMatmulDescCreate", &mut operation, compute, scale), SUCCESS);
    operation
}

/// The number of algorithms that are offered, or the error.
fn ways(handle: &Handle, operation: usize, [a, b, c, d]: [usize; 4]) -> (i32, i32) {
    let (mut preference, mut results, mut count) = (0usize, [0u8; 96 * 2], -1);
    assert_eq!(call!("cublasLtMatmulPreferenceCreate", &mut preference), SUCCESS);
    set("MatmulPreference", preference, 1, 1usize << 20);
    let name = "cublasLtMatmulAlgoGetHeuristic";
    let status = call!(name, handle.0, operation, a, b, c, d, preference, 2, &mut results, &mut count);
    assert_eq!(call!("cublasLtMatmulPreferenceDestroy", preference), SUCCESS);
    (status, count)
}

#[test]
fn orders_and_transposition() {
    let handle = Handle::new();
    let (m, n, k) = (5usize, 7usize, 4usize);
    let (alpha, beta) = (2f32, -1f32);
    for orders in 0..16u32 {
        for ops in 0..4 {
            let by_rows = |matrix: u32| orders >> matrix & 1 == 1;
            let op = [ops & 1, ops >> 1];
            let shape = |op: i32, shape: (usize, usize)| if op == 1 { (shape.1, shape.0) } else { shape };
            let shapes = [shape(op[0], (m, k)), shape(op[1], (k, n)), (m, n)];
            // C and D have the same order.
            let by_rows = [by_rows(0), by_rows(1), by_rows(2)];
            let ld = |i: usize| if by_rows[i] { shapes[i].1 + 1 } else { shapes[i].0 + 2 };
            let memory: Vec<Vec<f32>> = (0..3).map(|i| values::<f32>(i as u64 + 1, 100)).collect();
            let dense = |i: usize| {
                let (rows, columns) = shapes[i];
                let at = |r: usize, c: usize| if by_rows[i] { r * ld(i) + c } else { r + c * ld(i) };
                Dense::new(rows, columns, |r, c| memory[i][at(r, c)].to())
            };
            let layouts: Vec<usize> = (0..3)
                .map(|i| {
                    let layout = layout(0, shapes[i].0, shapes[i].1, ld(i));
                    set("MatrixLayout", layout, 1, i32::from(by_rows[i]));
                    layout
                })
                .collect();
            let operation = operation(68, 0);
            set("MatmulDesc", operation, 3, op[0]);
            set("MatmulDesc", operation, 4, op[1]);
            let all = [layouts[0], layouts[1], layouts[2], layouts[2]];
            assert_eq!(ways(&handle, operation, all), (SUCCESS, 1));
            let (a, b, c) = (Device::new(&memory[0]), Device::new(&memory[1]), Device::new(&memory[2]));
            let d = Device::new(&memory[2]);
            let status = call!(
                "cublasLtMatmul",
                handle.0,
                operation,
                &alpha,
                a.at,
                all[0],
                b.at,
                all[1],
                &beta,
                c.at,
                all[2],
                d.at,
                all[3],
                0usize,
                0usize,
                0usize,
                0usize
            );
            assert_eq!(status, SUCCESS);
            let product = dense(0).op(op[0]).times(&dense(1).op(op[1]));
            let sum = product.plus(C64::new(2.0, 0.0), &dense(2), C64::new(-1.0, 0.0));
            let mut expected = memory[2].clone();
            for j in 0..n {
                for i in 0..m {
                    expected[if by_rows[2] { i * ld(2) + j } else { i + j * ld(2) }] = f32::of(sum.at(i, j));
                }
            }
            assert_eq!(d.get(), expected, "{orders} {ops}");
            for layout in layouts {
                assert_eq!(call!("cublasLtMatrixLayoutDestroy", layout), SUCCESS);
            }
            assert_eq!(call!("cublasLtMatmulDescDestroy", operation), SUCCESS);
        }
    }
}

/// D, the auxiliary output, and the gradient of a bias, for an epilogue.
fn epilogue<T: Number>(ty: i32, code: i32, aux: &[T]) -> (Vec<T>, Vec<T>, Vec<T>, [Dense; 3]) {
    let handle = Handle::new();
    let (m, n, k) = (8usize, 6usize, 5usize);
    let (a, b, bias) = (values::<T>(1, m * k), values::<T>(2, k * n), values::<T>(3, 8));
    let (da, db, dbias) = (Device::new(&a), Device::new(&b), Device::new(&bias));
    let (d, daux) = (Device::new(&vec![T::default(); m * n]), Device::new(aux));
    let operation = operation(68, 0);
    set("MatmulDesc", operation, 7, code);
    set("MatmulDesc", operation, 8, dbias.at);
    set("MatmulDesc", operation, 11, daux.at);
    set("MatmulDesc", operation, 12, if code & 10 != 0 { 128i64 } else { 8 });
    let layouts = [layout(ty, m, k, m), layout(ty, k, n, k), layout(ty, m, n, m)];
    let all = [layouts[0], layouts[1], layouts[2], layouts[2]];
    assert_eq!(ways(&handle, operation, all), (SUCCESS, 1), "{code}");
    let (one, zero) = (1f32, 0f32);
    let status = call!(
        "cublasLtMatmul",
        handle.0,
        operation,
        &one,
        da.at,
        all[0],
        db.at,
        all[1],
        &zero,
        0usize,
        all[2],
        d.at,
        all[3],
        0usize,
        0usize,
        0usize,
        0usize
    );
    assert_eq!(status, SUCCESS, "{code}");
    let (a, b) = (Dense::stored(&a, m, k, m), Dense::stored(&b, k, n, k));
    let product = a.times(&b);
    let biased =
        Dense::new(m, n, |i, j| product.at(i, j) + if code & 4 != 0 { bias[i].to() } else { C64::default() });
    (d.get(), daux.get(), dbias.get(), [biased, a, b])
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x.powi(3))).tanh())
}

fn epilogues<T: Number>(ty: i32) {
    let blank = vec![T::default(); 128];
    let each = |dense: &Dense, with: fn(f64) -> f64| -> Vec<T> {
        dense.values.iter().map(|x| T::of(C64::new(with(x.re), 0.0))).collect()
    };
    for bias in [0, 4] {
        let (d, _, _, [sum, ..]) = epilogue::<T>(ty, if bias == 0 { 1 } else { 4 }, &blank);
        close(&d, &each(&sum, |x| x), "bias");
        let (d, _, _, [sum, ..]) = epilogue::<T>(ty, 2 | bias, &blank);
        close(&d, &each(&sum, |x| x.max(0.0)), "relu");
        let (d, _, _, [sum, ..]) = epilogue::<T>(ty, 32 | bias, &blank);
        close(&d, &each(&sum, gelu), "gelu");
        let (d, aux, _, [sum, ..]) = epilogue::<T>(ty, 32 | 128 | bias, &blank);
        close(&d, &each(&sum, gelu), "gelu");
        close(&aux[..48], &each(&sum, |x| x), "what gelu was applied to");
    }
    // The gradient of GELU at the auxiliary input, and its sum over columns.
    let inputs = values::<T>(9, 48);
    let (d, _, bias, [product, ..]) = epilogue::<T>(ty, 64 | 128 | 16, &inputs);
    let slope = |x: f64| (gelu(x + 1e-6) - gelu(x - 1e-6)) / 2e-6;
    let expected: Vec<T> = product
        .values
        .iter()
        .zip(&inputs)
        .map(|(x, input)| T::of(C64::new(x.re * slope(input.to().re), 0.0)))
        .collect();
    close(&d, &expected, "gradient of gelu");
    let sums: Vec<T> = (0..8).map(|i| T::of((0..6).map(|j| d[i + j * 8].to()).sum::<C64>())).collect();
    close(&bias, &sums, "gradient of the bias");
    let (_, _, bias, [_, a, b]) = epilogue::<T>(ty, 256, &blank);
    close(&bias, &(0..8).map(|i| T::of((0..5).map(|l| a.at(i, l)).sum())).collect::<Vec<T>>(), "of A");
    let (_, _, bias, _) = epilogue::<T>(ty, 512, &blank);
    close(&bias[..6], &(0..6).map(|j| T::of((0..5).map(|l| b.at(l, j)).sum())).collect::<Vec<T>>(), "of B");
}

#[test]
fn epilogues_change_what_is_stored() {
    epilogues::<f32>(0);
    epilogues::<bf16>(14);
}

#[test]
fn the_mask_of_relu_comes_back_as_its_gradient() {
    let blank = vec![0f32; 32];
    let (d, mask, _, [sum, ..]) = epilogue::<f32>(0, 2 | 128 | 4, &blank);
    close(&d, &sum.values.iter().map(|x| x.re.max(0.0) as f32).collect::<Vec<_>>(), "relu");
    let bytes: Vec<u8> = mask.iter().flat_map(|word| word.to_ne_bytes()).collect();
    for j in 0..6 {
        for i in 0..8 {
            assert_eq!(bytes[j * 16] >> i & 1 == 1, sum.at(i, j).re > 0.0, "{i} {j}");
        }
    }
    let (d, _, _, [product, ..]) = epilogue::<f32>(0, 8 | 128, &mask);
    let expected: Vec<f32> = product
        .values
        .iter()
        .zip(&sum.values)
        .map(|(x, y)| if y.re > 0.0 { x.re as f32 } else { 0.0 })
        .collect();
    close(&d, &expected, "gradient of relu");
}

#[test]
fn what_is_not_done_is_offered_by_nothing() {
    let handle = Handle::new();
    let square = layout(0, 4, 4, 4);
    let all = [square; 4];
    for (attribute, value, status) in [
        (2, 3i32, NOT_SUPPORTED),
        (5, 1, NOT_SUPPORTED),
        (6, 0, NOT_SUPPORTED),
        (7, 3, INVALID_VALUE),
        (3, 9, INVALID_VALUE),
    ] {
        let operation = operation(68, 0);
        set("MatmulDesc", operation, attribute, value);
        assert_eq!(ways(&handle, operation, all), (status, 0), "{attribute}");
    }
    let plain = operation(68, 0);
    assert_eq!(ways(&handle, plain, all), (SUCCESS, 1));
    let fp8 = layout(28, 4, 4, 4);
    assert_eq!(ways(&handle, plain, [fp8, fp8, square, square]), (NOT_SUPPORTED, 0));
    let other = layout(0, 3, 4, 4);
    assert_eq!(ways(&handle, plain, [other, square, square, square]), (INVALID_VALUE, 0));
    let narrow = layout(0, 4, 4, 3);
    assert_eq!(ways(&handle, plain, [narrow, square, square, square]), (INVALID_VALUE, 0));
    let tiled = layout(0, 4, 4, 4);
    set("MatrixLayout", tiled, 1, 2i32);
    assert_eq!(ways(&handle, plain, [tiled, square, square, square]), (NOT_SUPPORTED, 0));
    // Attributes have one size, and a destroyed descriptor is invalid.
    assert_eq!(call!("cublasLtMatrixLayoutSetAttribute", square, 1, &0i64, 8), INVALID_VALUE);
    assert_eq!(call!("cublasLtMatrixLayoutSetAttribute", square, 99, &0i64, 8), INVALID_VALUE);
    let (mut rows, mut written) = (0u64, 0usize);
    assert_eq!(call!("cublasLtMatrixLayoutGetAttribute", square, 2, &mut rows, 8, &mut written), SUCCESS);
    assert_eq!((rows, written), (4, 8));
    assert_eq!(call!("cublasLtMatrixLayoutDestroy", square), SUCCESS);
    assert_eq!(call!("cublasLtMatrixLayoutDestroy", square), INVALID_VALUE);
    let mut room = [0u64; 8];
    let name = "cublasLtMatrixLayoutInit_internal";
    assert_eq!(call!(name, &mut room, 32usize, 0, 4usize, 4usize, 4usize), INVALID_VALUE);
    assert_eq!(call!(name, &mut room, 64usize, 0, 4usize, 4usize, 4usize), SUCCESS);
    let here = room.as_ptr().addr();
    assert_eq!(ways(&handle, plain, [here; 4]), (SUCCESS, 1));
}

#[test]
fn batches_by_strides() {
    let handle = Handle::new();
    let (size, batch) = (3usize, 4usize);
    let square = layout(0, size, size, size);
    set("MatrixLayout", square, 5, batch as i32);
    set("MatrixLayout", square, 6, (size * size) as i64);
    let a = values::<f32>(1, size * size * batch);
    let (da, d) = (Device::new(&a), Device::new(&vec![0f32; a.len()]));
    let plain = operation(77, 0);
    let (one, zero) = (1f32, 0f32);
    let status = call!(
        "cublasLtMatmul",
        handle.0,
        plain,
        &one,
        da.at,
        square,
        da.at,
        square,
        &zero,
        d.at,
        square,
        d.at,
        square,
        0usize,
        0usize,
        0usize,
        0usize
    );
    assert_eq!(status, SUCCESS);
    let expected: Vec<f32> = a
        .chunks(size * size)
        .flat_map(|a| {
            let a = Dense::stored(a, size, size, size);
            a.times(&a).values.into_iter().map(|x| x.re as f32)
        })
        .collect();
    assert_eq!(d.get(), expected);
}
