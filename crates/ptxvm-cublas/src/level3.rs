//! Level 3 with symmetric and hermitian matrices (`symm`, `hemm`, `syrk`, `herk`, `syr2k`, `her2k`, `syrkx`,
//! `herkx`), and sums and scalings of matrices (`geam`, `dgmm`).
//!
//! Invariant: arguments are checked in the order of the reference BLAS. Of a symmetric result only the named
//! triangle is read and written.

use crate::entry::{Call, Scalar, blas, own};
use crate::ffi::Pointer;
use crate::gemm::{count, leading};
use crate::log;
use crate::number::{C32, C64, Codec, DataType, Work};
use crate::operand::{Fill, Form, Op, Operand, Side};
use crate::product::{self, Product, Term};
use crate::status::{Answer, Status, buffer};
use crate::storage::{Matrix, Vector};
use std::slice::from_ref;

/// Starts a product. Its terms are created only if alpha is not 0.
fn start<W: Work>(
    call: &Call,
    alpha: Scalar<W>,
    product: Product<W>,
    terms: impl Fn(&Call, Scalar<W>) -> Answer<Vec<Term<W>>> + Send + Sync + 'static,
) -> Answer {
    if product.d.rows == 0 || product.d.columns == 0 {
        return Ok(());
    }
    let is_zero = |alpha: W| alpha == W::default() || product.k == 0;
    if let Scalar::Known(value) = alpha
        && !is_zero(value)
    {
        terms(call, alpha)?;
    }
    let inner = product.k;
    let call = *call;
    call.submit(move || {
        let mut product = product.clone();
        let value = alpha.get();
        if value != W::default() && inner > 0 {
            product.terms = terms(&call, Scalar::Known(value))?;
        }
        product::run(from_ref(&product))
    })
}

fn symmetric<W: Work>(
    call: &Call,
    (side, uplo): (i64, i64),
    (m, n): (i64, i64),
    (alpha, beta): (Pointer, Pointer),
    (a, lda): (Pointer, i64),
    (b, ldb): (Pointer, i64),
    (c, ldc): (Pointer, i64),
    form: fn(Fill) -> Form,
) -> Answer {
    let (side, fill, m, n) = (Side::of(side)?, Fill::of(uplo)?, count(m)?, count(n)?);
    let inner = if side == Side::Left { m } else { n };
    leading(lda, inner)?;
    leading(ldb, m)?;
    leading(ldc, m)?;
    let (alpha, beta) = (call.own::<W>("alpha", alpha)?, call.own("beta", beta)?);
    let c = Matrix::new(call.written("C"), c, (m, n), ldc, own()?)?;
    let mut product = Product::scaled(beta, c);
    product.k = inner;
    start(call, alpha, product, move |call, alpha| {
        let matrix = Matrix::new(call.named("A"), a, (inner, inner), lda, own()?)?;
        let symmetric = Operand { matrix, form: form(fill), op: Op::Plain };
        let other = Operand::general(Matrix::new(call.named("B"), b, (m, n), ldb, own()?)?, Op::Plain);
        let (a, b) = if side == Side::Left { (symmetric, other) } else { (other, symmetric) };
        Ok(vec![Term { alpha, conjugate: false, a, b }])
    })
}

/// The variants of a result that is a triangle.
#[derive(Clone, Copy)]
struct Rank {
    /// Conjugates, and a real diagonal.
    hermitian: bool,
    /// Whether B A^T is added to A B^T.
    both: bool,
    /// Whether alpha is real.
    real_alpha: bool,
}

/// The arguments of a result that is a triangle.
struct Triangle<W> {
    uplo: i64,
    trans: i64,
    n: i64,
    k: i64,
    alpha: Pointer,
    a: (Pointer, i64),
    /// The same as A for a function without B.
    b: (Pointer, i64),
    beta: Pointer,
    c: (Pointer, i64),
    codec: Codec<W>,
}

fn rank<W: Work>(call: &Call, rank: Rank, at: Triangle<W>) -> Answer {
    let (fill, op, n, k) = (Fill::of(at.uplo)?, Op::of(at.trans)?, count(at.n)?, count(at.k)?);
    let is_complex = matches!(W::TYPE, DataType::C32 | DataType::C64);
    let wrong = if rank.hermitian { Op::Transposed } else { Op::Adjoint };
    Status::INVALID_VALUE.unless(op != wrong || !is_complex)?;
    let shape = op.turn((n, k));
    leading(at.a.1, shape.0)?;
    leading(at.b.1, shape.0)?;
    leading(at.c.1, n)?;
    let real = |is_real: bool| if is_real { Ok(W::real_codec()) } else { own() };
    let alpha = call.scalar("alpha", at.alpha, real(rank.real_alpha)?)?;
    let beta = call.scalar("beta", at.beta, real(rank.hermitian)?)?;
    let c = Matrix::new(call.written("C"), at.c.0, (n, n), at.c.1, at.codec)?;
    let mut product = Product::scaled(beta, c);
    (product.k, product.only, product.hermitian) = (k, Some(fill), rank.hermitian);
    let turned = if rank.hermitian { Op::Adjoint } else { Op::Transposed };
    // The left factor is A as stored, or its transpose; the right factor is the opposite.
    let ops = if op.transposes() { (turned, Op::Plain) } else { (Op::Plain, turned) };
    let (a, b, codec) = (at.a, at.b, at.codec);
    start(call, alpha, product, move |call, alpha| {
        let a = Matrix::new(call.named("A"), a.0, shape, a.1, codec)?;
        let b = Matrix::new(call.named("B"), b.0, shape, b.1, codec)?;
        let term = |left, right, conjugate| Term {
            alpha,
            conjugate,
            a: Operand::general(left, ops.0),
            b: Operand::general(right, ops.1),
        };
        let mut terms = vec![term(a, b, false)];
        if rank.both {
            terms.push(term(b, a, rank.hermitian));
        }
        Ok(terms)
    })
}

/// Rejects types other than complex numbers of single precision.
fn complex_only(call: &Call, types: [i64; 2]) -> Answer {
    if types == [4, 4] {
        return Ok(());
    }
    log::refused(&format!("{} with cudaDataType {} and {}", call.name, types[0], types[1]))
}

/// Rows and columns of a tile of a sum.
const TILE: usize = 128;

blas! {
    fn symm[W](
        call, side: word, uplo: word, m: int, n: int, alpha: ptr, a: ptr, lda: int, b: ptr, ldb: int,
        beta: ptr, c: ptr, ldc: int,
    ) {
        let (a, b, c) = ((a, lda), (b, ldb), (c, ldc));
        symmetric::<W>(call, (side, uplo), (m, n), (alpha, beta), a, b, c, Form::Symmetric)
    } => {
        cublasSsymm_v2 cublasSsymm_v2_64 <f32>,
        cublasDsymm_v2 cublasDsymm_v2_64 <f64>,
        cublasCsymm_v2 cublasCsymm_v2_64 <C32>,
        cublasZsymm_v2 cublasZsymm_v2_64 <C64>,
    }

    fn hemm[W](
        call, side: word, uplo: word, m: int, n: int, alpha: ptr, a: ptr, lda: int, b: ptr, ldb: int,
        beta: ptr, c: ptr, ldc: int,
    ) {
        let (a, b, c) = ((a, lda), (b, ldb), (c, ldc));
        symmetric::<W>(call, (side, uplo), (m, n), (alpha, beta), a, b, c, Form::Hermitian)
    } => {
        cublasChemm_v2 cublasChemm_v2_64 <C32>,
        cublasZhemm_v2 cublasZhemm_v2_64 <C64>,
    }

    fn syrk[W](
        call, uplo: word, trans: word, n: int, k: int, alpha: ptr, a: ptr, lda: int, beta: ptr, c: ptr,
        ldc: int,
    ) {
        let kind = Rank { hermitian: false, both: false, real_alpha: false };
        let (a, c) = ((a, lda), (c, ldc));
        rank::<W>(call, kind, Triangle { uplo, trans, n, k, alpha, a, b: a, beta, c, codec: own()? })
    } => {
        cublasSsyrk_v2 cublasSsyrk_v2_64 <f32>,
        cublasDsyrk_v2 cublasDsyrk_v2_64 <f64>,
        cublasCsyrk_v2 cublasCsyrk_v2_64 <C32>,
        cublasZsyrk_v2 cublasZsyrk_v2_64 <C64>,
    }

    fn herk[W](
        call, uplo: word, trans: word, n: int, k: int, alpha: ptr, a: ptr, lda: int, beta: ptr, c: ptr,
        ldc: int,
    ) {
        let kind = Rank { hermitian: true, both: false, real_alpha: true };
        let (a, c) = ((a, lda), (c, ldc));
        rank::<W>(call, kind, Triangle { uplo, trans, n, k, alpha, a, b: a, beta, c, codec: own()? })
    } => {
        cublasCherk_v2 cublasCherk_v2_64 <C32>,
        cublasZherk_v2 cublasZherk_v2_64 <C64>,
    }

    fn syr2k[W](
        call, uplo: word, trans: word, n: int, k: int, alpha: ptr, a: ptr, lda: int, b: ptr, ldb: int,
        beta: ptr, c: ptr, ldc: int,
    ) {
        let kind = Rank { hermitian: false, both: true, real_alpha: false };
        let (a, b, c) = ((a, lda), (b, ldb), (c, ldc));
        rank::<W>(call, kind, Triangle { uplo, trans, n, k, alpha, a, b, beta, c, codec: own()? })
    } => {
        cublasSsyr2k_v2 cublasSsyr2k_v2_64 <f32>,
        cublasDsyr2k_v2 cublasDsyr2k_v2_64 <f64>,
        cublasCsyr2k_v2 cublasCsyr2k_v2_64 <C32>,
        cublasZsyr2k_v2 cublasZsyr2k_v2_64 <C64>,
    }

    fn her2k[W](
        call, uplo: word, trans: word, n: int, k: int, alpha: ptr, a: ptr, lda: int, b: ptr, ldb: int,
        beta: ptr, c: ptr, ldc: int,
    ) {
        let kind = Rank { hermitian: true, both: true, real_alpha: false };
        let (a, b, c) = ((a, lda), (b, ldb), (c, ldc));
        rank::<W>(call, kind, Triangle { uplo, trans, n, k, alpha, a, b, beta, c, codec: own()? })
    } => {
        cublasCher2k_v2 cublasCher2k_v2_64 <C32>,
        cublasZher2k_v2 cublasZher2k_v2_64 <C64>,
    }

    fn syrkx[W](
        call, uplo: word, trans: word, n: int, k: int, alpha: ptr, a: ptr, lda: int, b: ptr, ldb: int,
        beta: ptr, c: ptr, ldc: int,
    ) {
        let kind = Rank { hermitian: false, both: false, real_alpha: false };
        let (a, b, c) = ((a, lda), (b, ldb), (c, ldc));
        rank::<W>(call, kind, Triangle { uplo, trans, n, k, alpha, a, b, beta, c, codec: own()? })
    } => {
        cublasSsyrkx cublasSsyrkx_64 <f32>,
        cublasDsyrkx cublasDsyrkx_64 <f64>,
        cublasCsyrkx cublasCsyrkx_64 <C32>,
        cublasZsyrkx cublasZsyrkx_64 <C64>,
    }

    fn herkx[W](
        call, uplo: word, trans: word, n: int, k: int, alpha: ptr, a: ptr, lda: int, b: ptr, ldb: int,
        beta: ptr, c: ptr, ldc: int,
    ) {
        let kind = Rank { hermitian: true, both: false, real_alpha: false };
        let (a, b, c) = ((a, lda), (b, ldb), (c, ldc));
        rank::<W>(call, kind, Triangle { uplo, trans, n, k, alpha, a, b, beta, c, codec: own()? })
    } => {
        cublasCherkx cublasCherkx_64 <C32>,
        cublasZherkx cublasZherkx_64 <C64>,
    }

    fn syrk_ex[](
        call, uplo: word, trans: word, n: int, k: int, alpha: ptr, a: ptr, a_type: word, lda: int, beta: ptr,
        c: ptr, c_type: word, ldc: int,
    ) {
        complex_only(call, [a_type, c_type])?;
        syrk::<C32>(call, uplo, trans, n, k, alpha, a, lda, beta, c, ldc)
    } => {
        cublasCsyrkEx cublasCsyrkEx_64,
        cublasCsyrk3mEx cublasCsyrk3mEx_64,
    }

    fn herk_ex[](
        call, uplo: word, trans: word, n: int, k: int, alpha: ptr, a: ptr, a_type: word, lda: int, beta: ptr,
        c: ptr, c_type: word, ldc: int,
    ) {
        complex_only(call, [a_type, c_type])?;
        herk::<C32>(call, uplo, trans, n, k, alpha, a, lda, beta, c, ldc)
    } => {
        cublasCherkEx cublasCherkEx_64,
        cublasCherk3mEx cublasCherk3mEx_64,
    }

    /// C = alpha op(A) + beta op(B), where C may be A or B in place.
    fn geam[W](
        call, opa: word, opb: word, m: int, n: int, alpha: ptr, a: ptr, lda: int, beta: ptr, b: ptr,
        ldb: int, c: ptr, ldc: int,
    ) {
        let (opa, opb, m, n) = (Op::of(opa)?, Op::of(opb)?, count(m)?, count(n)?);
        leading(lda, opa.turn((m, n)).0)?;
        leading(ldb, opb.turn((m, n)).0)?;
        leading(ldc, m)?;
        // If C is A or B, its rows and columns must have the same positions.
        let in_place = |at: Pointer, ld: i64, op: Op| at != c || ld == ldc && !op.transposes();
        Status::INVALID_VALUE.unless(in_place(a, lda, opa) && in_place(b, ldb, opb))?;
        let (alpha, beta) = (call.own::<W>("alpha", alpha)?, call.own::<W>("beta", beta)?);
        let out = Matrix::<W>::new(call.written("C"), c, (m, n), ldc, own()?)?;
        let call = *call;
        let part = move |name, factor: W, at, ld, op: Op| -> Answer<Option<(W, Operand<W>)>> {
            if factor == W::default() {
                return Ok(None);
            }
            let matrix = Matrix::new(call.named(name), at, op.turn((m, n)), ld, own()?)?;
            Ok(Some((factor, Operand::general(matrix, op))))
        };
        let known = |factor: Scalar<W>| match factor {
            Scalar::Known(factor) => factor,
            Scalar::At(..) => W::default(),
        };
        part("A", known(alpha), a, lda, opa)?;
        part("B", known(beta), b, ldb, opb)?;
        call.submit(move || {
            let parts = [part("A", alpha.get(), a, lda, opa)?, part("B", beta.get(), b, ldb, opb)?];
            let (mut tile, mut sums) = (buffer(W::default(), TILE * TILE)?, buffer(W::default(), TILE * TILE)?);
            for column in (0..n).step_by(TILE) {
                let columns = column..(column + TILE).min(n);
                for row in (0..m).step_by(TILE) {
                    let rows = row..(row + TILE).min(m);
                    let sums = &mut sums[..rows.len() * columns.len()];
                    sums.fill(W::default());
                    for (factor, operand) in parts.iter().flatten() {
                        let tile = &mut tile[..sums.len()];
                        let [down, right] = operand.tile(rows.clone(), columns.clone(), tile);
                        for (j, sums) in sums.chunks_exact_mut(rows.len()).enumerate() {
                            for (i, sum) in sums.iter_mut().enumerate() {
                                *sum += *factor * tile[i * down + j * right];
                            }
                        }
                    }
                    for (column, sums) in columns.clone().zip(sums.chunks_exact(rows.len())) {
                        out.store(rows.start, column, sums);
                    }
                }
            }
            Ok(())
        })
    } => {
        cublasSgeam cublasSgeam_64 <f32>,
        cublasDgeam cublasDgeam_64 <f64>,
        cublasCgeam cublasCgeam_64 <C32>,
        cublasZgeam cublasZgeam_64 <C64>,
    }

    /// C = A diag(x), or diag(x) A.
    fn dgmm[W](call, side: word, m: int, n: int, a: ptr, lda: int, x: ptr, incx: int, c: ptr, ldc: int) {
        let (side, m, n) = (Side::of(side)?, count(m)?, count(n)?);
        leading(lda, m)?;
        leading(ldc, m)?;
        let a = Matrix::<W>::new(call.named("A"), a, (m, n), lda, own()?)?;
        let c = Matrix::<W>::new(call.written("C"), c, (m, n), ldc, own()?)?;
        let size = if side == Side::Left { m } else { n };
        let x = Vector::<W>::new(call.named("x"), x, size, incx, own()?)?;
        call.submit(move || {
            let factors = x.all()?;
            let mut column = buffer(W::default(), m)?;
            for j in 0..n {
                a.load(0, j, &mut column);
                match side {
                    Side::Left => column.iter_mut().zip(&factors).for_each(|(value, factor)| *value *= *factor),
                    Side::Right => column.iter_mut().for_each(|value| *value *= factors[j]),
                }
                c.store(0, j, &column);
            }
            Ok(())
        })
    } => {
        cublasSdgmm cublasSdgmm_64 <f32>,
        cublasDdgmm cublasDdgmm_64 <f64>,
        cublasCdgmm cublasCdgmm_64 <C32>,
        cublasZdgmm cublasZdgmm_64 <C64>,
    }
}
