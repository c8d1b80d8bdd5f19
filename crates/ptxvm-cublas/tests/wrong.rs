//! Wrong arguments: each is found in the order of the reference BLAS, and memory that is not the device's is
//! never accessed.

mod support;

use support::{Device, EXECUTION_FAILED, Handle, INVALID_VALUE, NOT_SUPPORTED, SUCCESS, raw};

const WRONG: usize = usize::MAX;

/// A valid call, and the wrong values of single arguments.
fn check(name: &str, right: &[usize], wrong: &[(usize, usize)]) {
    assert_eq!(raw(name, right), SUCCESS, "{name}");
    for (index, value) in wrong {
        let mut arguments = right.to_vec();
        arguments[*index] = *value;
        assert_eq!(raw(name, &arguments), INVALID_VALUE, "{name} with {value:#x} as argument {index}");
    }
    let mut arguments = right.to_vec();
    arguments[0] = 0x1234;
    assert_eq!(raw(name, &arguments), 1, "{name} with a wrong handle");
}

#[test]
fn each_wrong_argument_is_found() {
    let handle = Handle::new();
    let (h, memory) = (handle.0, Device::new(&[1f32; 4096]));
    let (d, one) = (memory.at, 1f32);
    let s = (&raw const one).expose_provenance();
    let w = WRONG;
    // Handle, operations, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc.
    let gemm = [h, 0, 1, 4, 5, 3, s, d, 4, d, 5, s, d + 4096, 4];
    let bad = [(1, 7), (2, w), (3, w), (4, w), (5, w), (6, 0), (8, 3), (10, 4), (11, 0), (13, 3)];
    check("cublasSgemm_v2", &gemm, &bad);
    check("cublasSgemm_v2_64", &gemm, &bad);
    let gemv = [h, 0, 4, 5, s, d, 4, d, 1, s, d + 4096, 1];
    check("cublasSgemv_v2", &gemv, &[(1, 9), (2, w), (3, w), (4, 0), (6, 3), (8, 0), (9, 0), (11, 0)]);
    let gbmv = [h, 0, 4, 5, 1, 2, s, d, 4, d, 1, s, d + 4096, 1];
    let bad = [(1, 9), (2, w), (3, w), (4, w), (5, w), (6, 0), (8, 3), (10, 0), (11, 0), (13, 0)];
    check("cublasSgbmv_v2", &gbmv, &bad);
    let symv = [h, 0, 4, s, d, 4, d, 1, s, d + 4096, 1];
    check("cublasSsymv_v2", &symv, &[(1, 2), (2, w), (3, 0), (5, 3), (7, 0), (8, 0), (10, 0)]);
    let trsv = [h, 1, 0, 0, 4, d, 4, d + 4096, 1];
    check("cublasStrsv_v2", &trsv, &[(1, 2), (2, 4), (3, 2), (4, w), (6, 3), (8, 0)]);
    check(
        "cublasStbmv_v2",
        &[h, 1, 0, 0, 4, 2, d, 3, d + 4096, 1],
        &[(1, 2), (2, 4), (3, 2), (5, w), (7, 2), (9, 0)],
    );
    check(
        "cublasSger_v2",
        &[h, 4, 5, s, d, 1, d, 1, d + 4096, 4],
        &[(1, w), (2, w), (3, 0), (5, 0), (7, 0), (9, 3)],
    );
    check("cublasSsyr_v2", &[h, 0, 4, s, d, 1, d + 4096, 4], &[(1, 5), (2, w), (3, 0), (5, 0), (7, 3)]);
    let symm = [h, 0, 1, 4, 5, s, d, 4, d, 4, s, d + 4096, 4];
    check(
        "cublasSsymm_v2",
        &symm,
        &[(1, 2), (2, 2), (3, w), (4, w), (5, 0), (7, 3), (9, 3), (10, 0), (12, 3)],
    );
    let syrk = [h, 0, 0, 4, 5, s, d, 4, s, d + 4096, 4];
    check("cublasSsyrk_v2", &syrk, &[(1, 2), (2, 5), (3, w), (4, w), (5, 0), (7, 3), (8, 0), (10, 3)]);
    let trsm = [h, 0, 1, 0, 0, 4, 5, s, d, 4, d + 4096, 4];
    check(
        "cublasStrsm_v2",
        &trsm,
        &[(1, 2), (2, 2), (3, 5), (4, 2), (5, w), (6, w), (7, 0), (9, 3), (11, 3)],
    );
    let geam = [h, 0, 0, 4, 5, s, d, 4, s, d, 4, d + 4096, 4];
    check("cublasSgeam", &geam, &[(1, 5), (2, 5), (3, w), (4, w), (5, 0), (7, 3), (8, 0), (10, 3), (12, 3)]);
    check("cublasSdgmm", &[h, 0, 4, 5, d, 4, d, 1, d + 4096, 4], &[(1, 2), (2, w), (3, w), (5, 3), (9, 3)]);
    check("cublasSaxpy_v2", &[h, 4, s, d, 1, d + 4096, 1], &[(2, 0)]);
    let mut sum = 0f32;
    let place = (&raw mut sum).expose_provenance();
    check("cublasSdot_v2", &[h, 4, d, 1, d, 1, place], &[(6, 0)]);
    check("cublasSetPointerMode_v2", &[h, 0], &[(1, 2)]);
    check("cublasSetMathMode", &[h, 0], &[(1, 9)]);
    check("cublasSetStream_v2", &[h, 0], &[(1, 0x7777)]);
    assert_eq!(raw("cublasSetVector", &[4, 0, place, 1, d, 1]), INVALID_VALUE);
    assert_eq!(raw("cublasSetVector", &[4, 4, place, 0, d, 1]), INVALID_VALUE);
    assert_eq!(raw("cublasSetMatrix", &[4, 4, 4, place, 3, d, 4]), INVALID_VALUE);
    // Hermitian products do not allow plain transposition, and complex symmetric products do not allow
    // conjugation.
    assert_eq!(raw("cublasCherk_v2", &[h, 0, 1, 1, 1, s, d, 1, s, d, 1]), INVALID_VALUE);
    assert_eq!(raw("cublasCsyrk_v2", &[h, 0, 2, 1, 1, d, d, 1, d, d, 1]), INVALID_VALUE);
    assert_eq!(raw("cublasSgemm_v2", &[h, 3, 0, 1, 1, 1, s, d, 1, d, 1, s, d, 1]), NOT_SUPPORTED);
}

#[test]
fn memory_that_is_not_the_devices_is_never_touched() {
    let handle = Handle::new();
    let (h, one) = (handle.0, 1f32);
    let s = (&raw const one).expose_provenance();
    let memory = Device::new(&[1f32; 64]);
    let d = memory.at;
    let mut mine = [7f32; 64];
    let host = mine.as_mut_ptr().expose_provenance();
    let right = [h, 0, 0, 8, 8, 8, s, d, 8, d, 8, s, d, 8];
    assert_eq!(raw("cublasSgemm_v2", &right), SUCCESS);
    // Host memory, one element too far, unmapped addresses, a misaligned address.
    for wrong in [host, d + 4, d + 2, 0, 16, 1 << 46, usize::MAX - 3] {
        for index in [7, 9, 12] {
            let mut arguments = right;
            arguments[index] = wrong;
            assert_eq!(raw("cublasSgemm_v2", &arguments), EXECUTION_FAILED, "{wrong:#x}");
        }
        assert_eq!(raw("cublasSscal_v2", &[h, 64, s, wrong, 1]), EXECUTION_FAILED, "{wrong:#x}");
        assert_eq!(raw("cublasSgemv_v2", &[h, 0, 8, 8, s, wrong, 8, d, 1, s, d, 1]), EXECUTION_FAILED);
    }
    for (n, increment) in [(65, 1), (33, 2), (i32::MAX as usize, i32::MAX as usize)] {
        assert_eq!(raw("cublasSscal_v2", &[h, n, s, d, increment]), EXECUTION_FAILED);
        assert_eq!(raw("cublasSscal_v2_64", &[h, n << 31, s, d, increment << 31]), EXECUTION_FAILED);
    }
    assert_eq!(mine, [7.0; 64]);
    // The context is unchanged, because the errors were found before the work began.
    assert_eq!(raw("cublasSgemm_v2", &right), SUCCESS);
}
