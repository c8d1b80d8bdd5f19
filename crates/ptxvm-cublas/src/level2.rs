//! Level 2: matrices and vectors.
//!
//! Sums are formed in the type of the numbers. A vector operand is copied before anything is written.
//!
//! Invariant: arguments are checked in the order of the reference BLAS. If alpha is 0, the matrix and x are
//! not read; if beta is 0, y is not read.

use crate::columns::{Columns, Layout};
use crate::entry::{Call, Scalar, blas, own};
use crate::ffi::{Named, Pointer};
use crate::gemm::{count, leading};
use crate::number::{C32, C64, Codec, Work};
use crate::operand::{Fill, Op, is_unit};
use crate::status::{Answer, valid};
use crate::storage::{Matrix, Vector};

/// A full matrix of `rows` by `columns`.
fn full<W: Work>(
    named: Named,
    at: Pointer,
    ld: i64,
    (rows, columns): (usize, usize),
    codec: Codec<W>,
) -> Answer<Columns<W>> {
    let stored = Matrix::new(named, at, (rows, columns), ld, codec)?;
    Ok(Columns { stored, rows, layout: Layout::Full, only: None, unit: false })
}

/// A matrix with `below` and `above` diagonals beside the main one.
fn band<W: Work>(
    named: Named,
    at: Pointer,
    ld: i64,
    (rows, columns): (usize, usize),
    (below, above): (usize, usize),
) -> Answer<Columns<W>> {
    let stored = Matrix::new(named, at, (below + above + 1, columns), ld, own()?)?;
    Ok(Columns { stored, rows, layout: Layout::Band { below, above }, only: None, unit: false })
}

/// A triangle of a banded matrix.
fn band_triangle<W: Work>(
    named: Named,
    at: Pointer,
    ld: i64,
    (n, k): (usize, usize),
    fill: Fill,
) -> Answer<Columns<W>> {
    let sides = if fill == Fill::Lower { (k, 0) } else { (0, k) };
    band(named, at, ld, (n, n), sides)
}

/// A packed triangle.
fn packed<W: Work>(named: Named, at: Pointer, n: usize, fill: Fill) -> Answer<Columns<W>> {
    let stored = Matrix::packed(named, at, n, own()?)?;
    Ok(Columns { stored, rows: n, layout: Layout::Packed(fill), only: None, unit: false })
}

impl<W: Work> Columns<W> {
    fn triangle(self, fill: Fill, unit: bool) -> Self {
        Self { only: Some(fill), unit, ..self }
    }
}

/// The bandwidth, limited so that sums of it do not overflow. There is nothing outside the matrix.
fn bandwidth(number: i64) -> Answer<usize> {
    count(number).map(|number| number.min(usize::MAX / 4))
}

/// y = alpha f(x) + beta y. `matrix` is called only if alpha is not 0.
struct Combine<W> {
    alpha: Scalar<W>,
    x: (Pointer, i64, usize, Codec<W>),
    beta: Scalar<W>,
    y: Vector<W>,
}

impl<W: Work> Combine<W> {
    fn new(
        call: &Call,
        (alpha, beta): (Pointer, Pointer),
        x: (Pointer, i64, usize),
        y: (Pointer, i64, usize),
    ) -> Answer<Self> {
        Self::of(call, (alpha, beta), (x.0, x.1, x.2, own()?), (y.0, y.1, y.2, own()?))
    }

    fn of(
        call: &Call,
        (alpha, beta): (Pointer, Pointer),
        x: (Pointer, i64, usize, Codec<W>),
        y: (Pointer, i64, usize, Codec<W>),
    ) -> Answer<Self> {
        let (alpha, beta) = (call.own("alpha", alpha)?, call.own("beta", beta)?);
        let y = Vector::new(call.written("y"), y.0, y.2, y.1, y.3)?;
        Ok(Self { alpha, x, beta, y })
    }

    fn run(&self, call: &Call, product: impl FnOnce(&[W]) -> Answer<Vec<W>>) -> Answer {
        let (alpha, beta) = (self.alpha.get(), self.beta.get());
        let mut out = if alpha == W::default() {
            crate::status::buffer(W::default(), self.y.n)?
        } else {
            let (at, increment, n, codec) = self.x;
            let x = Vector::new(call.named("x"), at, n, increment, codec)?.all()?;
            let mut out = product(&x)?;
            out.iter_mut().for_each(|value| *value = alpha * *value);
            out
        };
        if beta != W::default() {
            let old = self.y.all()?;
            out.iter_mut().zip(old).for_each(|(value, old)| *value += beta * old);
        }
        self.y.store(0, &out);
        Ok(())
    }

    /// Checks the arguments that are known at the call, and submits the work. If alpha may be 0, the matrix
    /// is not checked.
    fn start(
        self,
        call: &Call,
        matrix: impl Fn(&Call) -> Answer<Columns<W>> + Send + Sync + 'static,
        product: impl Fn(&Columns<W>, &[W]) -> Answer<Vec<W>> + Send + Sync + 'static,
    ) -> Answer {
        if let Scalar::Known(alpha) = self.alpha
            && alpha != W::default()
        {
            matrix(call)?;
            let (at, increment, n, codec) = self.x;
            Vector::new(call.named("x"), at, n, increment, codec)?;
        }
        let call = *call;
        call.submit(move || self.run(&call, |x| product(&matrix(&call)?, x)))
    }
}

fn symmetric<W: Work>(
    call: &Call,
    n: i64,
    (alpha, beta): (Pointer, Pointer),
    (x, incx): (Pointer, i64),
    (y, incy): (Pointer, i64),
    hermitian: bool,
    matrix: impl Fn(&Call) -> Answer<Columns<W>> + Send + Sync + 'static,
) -> Answer {
    let n = count(n)?;
    valid(incx != 0 && incy != 0)?;
    let combine = Combine::<W>::new(call, (alpha, beta), (x, incx, n), (y, incy, n))?;
    if n == 0 {
        return Ok(());
    }
    combine.start(call, matrix, move |a, x| a.multiply_symmetric(hermitian, x))
}

fn symv_of<W: Work>(
    call: &Call,
    (uplo, n): (i64, i64),
    factors: (Pointer, Pointer),
    (a, lda): (Pointer, i64),
    x: (Pointer, i64),
    y: (Pointer, i64),
    hermitian: bool,
) -> Answer {
    let (fill, size) = (Fill::of(uplo)?, count(n)?);
    leading(lda, size)?;
    symmetric::<W>(call, n, factors, x, y, hermitian, move |call| {
        Ok(full(call.named("A"), a, lda, (size, size), own()?)?.triangle(fill, false))
    })
}

/// Checks the arguments that all triangular functions begin with.
fn triangular(uplo: i64, trans: i64, diag: i64, n: i64, incx: i64) -> Answer<(Fill, Op, bool, usize)> {
    let (fill, op, unit, n) = (Fill::of(uplo)?, Op::of(trans)?, is_unit(diag)?, count(n)?);
    valid(incx != 0)?;
    Ok((fill, op, unit, n))
}

/// x = op(A) x, or the solution of op(A) x = b.
fn triangular_start<W: Work>(
    call: &Call,
    (op, solves): (Op, bool),
    fill: Fill,
    a: Columns<W>,
    (x, incx): (Pointer, i64),
) -> Answer {
    let x = Vector::new(call.written("x"), x, a.rows, incx, own()?)?;
    call.submit(move || {
        let mut values = x.all()?;
        if solves {
            a.solve(fill, op, &mut values)?;
        } else {
            values = a.multiply(op, &values)?;
        }
        x.store(0, &values);
        Ok(())
    })
}

fn trmv_of<W: Work>(
    call: &Call,
    (uplo, trans, diag, n): (i64, i64, i64, i64),
    (a, lda): (Pointer, i64),
    x: (Pointer, i64),
    solves: bool,
) -> Answer {
    let (fill, op, unit, n) = triangular(uplo, trans, diag, n, x.1)?;
    leading(lda, n)?;
    let a = full::<W>(call.named("A"), a, lda, (n, n), own()?)?.triangle(fill, unit);
    triangular_start(call, (op, solves), fill, a, x)
}

fn tbmv_of<W: Work>(
    call: &Call,
    (uplo, trans, diag, n, k): (i64, i64, i64, i64, i64),
    (a, lda): (Pointer, i64),
    x: (Pointer, i64),
    solves: bool,
) -> Answer {
    let (fill, op, unit, n) = triangular(uplo, trans, diag, n, x.1)?;
    let k = bandwidth(k)?;
    leading(lda, k + 1)?;
    let a = band_triangle::<W>(call.named("A"), a, lda, (n, k), fill)?.triangle(fill, unit);
    triangular_start(call, (op, solves), fill, a, x)
}

fn tpmv_of<W: Work>(
    call: &Call,
    (uplo, trans, diag, n): (i64, i64, i64, i64),
    a: Pointer,
    x: (Pointer, i64),
    solves: bool,
) -> Answer {
    let (fill, op, unit, n) = triangular(uplo, trans, diag, n, x.1)?;
    let a = packed::<W>(call.named("AP"), a, n, fill)?.triangle(fill, unit);
    triangular_start(call, (op, solves), fill, a, x)
}

blas! {
    fn gemv[W](
        call, trans: word, m: int, n: int, alpha: ptr, a: ptr, lda: int, x: ptr, incx: int, beta: ptr,
        y: ptr, incy: int,
    ) {
        let (op, m, n) = (Op::of(trans)?, count(m)?, count(n)?);
        leading(lda, m)?;
        valid(incx != 0 && incy != 0)?;
        let (to, from) = op.turn((m, n));
        let combine = Combine::<W>::new(call, (alpha, beta), (x, incx, from), (y, incy, to))?;
        if m == 0 || n == 0 {
            return Ok(());
        }
        combine.start(
            call,
            move |call| full(call.named("A"), a, lda, (m, n), own()?),
            move |a, x| a.multiply(op, x),
        )
    } => {
        cublasSgemv_v2 cublasSgemv_v2_64 <f32>,
        cublasDgemv_v2 cublasDgemv_v2_64 <f64>,
        cublasCgemv_v2 cublasCgemv_v2_64 <C32>,
        cublasZgemv_v2 cublasZgemv_v2_64 <C64>,
    }

    fn gbmv[W](
        call, trans: word, m: int, n: int, kl: int, ku: int, alpha: ptr, a: ptr, lda: int, x: ptr, incx: int,
        beta: ptr, y: ptr, incy: int,
    ) {
        let (op, m, n, kl, ku) = (Op::of(trans)?, count(m)?, count(n)?, bandwidth(kl)?, bandwidth(ku)?);
        leading(lda, kl + ku + 1)?;
        valid(incx != 0 && incy != 0)?;
        let (to, from) = op.turn((m, n));
        let combine = Combine::<W>::new(call, (alpha, beta), (x, incx, from), (y, incy, to))?;
        if m == 0 || n == 0 {
            return Ok(());
        }
        combine.start(
            call,
            move |call| band(call.named("A"), a, lda, (m, n), (kl, ku)),
            move |a, x| a.multiply(op, x),
        )
    } => {
        cublasSgbmv_v2 cublasSgbmv_v2_64 <f32>,
        cublasDgbmv_v2 cublasDgbmv_v2_64 <f64>,
        cublasCgbmv_v2 cublasCgbmv_v2_64 <C32>,
        cublasZgbmv_v2 cublasZgbmv_v2_64 <C64>,
    }

    fn symv[W](
        call, uplo: word, n: int, alpha: ptr, a: ptr, lda: int, x: ptr, incx: int, beta: ptr, y: ptr,
        incy: int,
    ) {
        symv_of::<W>(call, (uplo, n), (alpha, beta), (a, lda), (x, incx), (y, incy), false)
    } => {
        cublasSsymv_v2 cublasSsymv_v2_64 <f32>,
        cublasDsymv_v2 cublasDsymv_v2_64 <f64>,
        cublasCsymv_v2 cublasCsymv_v2_64 <C32>,
        cublasZsymv_v2 cublasZsymv_v2_64 <C64>,
    }

    fn hemv[W](
        call, uplo: word, n: int, alpha: ptr, a: ptr, lda: int, x: ptr, incx: int, beta: ptr, y: ptr,
        incy: int,
    ) {
        symv_of::<W>(call, (uplo, n), (alpha, beta), (a, lda), (x, incx), (y, incy), true)
    } => {
        cublasChemv_v2 cublasChemv_v2_64 <C32>,
        cublasZhemv_v2 cublasZhemv_v2_64 <C64>,
    }

    /// Symmetric for real numbers and hermitian for complex ones: BLAS has no other banded and packed
    /// products.
    fn sbmv[W](
        call, uplo: word, n: int, k: int, alpha: ptr, a: ptr, lda: int, x: ptr, incx: int, beta: ptr, y: ptr,
        incy: int,
    ) {
        let (fill, size, k) = (Fill::of(uplo)?, count(n)?, bandwidth(k)?);
        leading(lda, k + 1)?;
        symmetric::<W>(call, n, (alpha, beta), (x, incx), (y, incy), true, move |call| {
            band_triangle(call.named("A"), a, lda, (size, k), fill)
        })
    } => {
        cublasSsbmv_v2 cublasSsbmv_v2_64 <f32>,
        cublasDsbmv_v2 cublasDsbmv_v2_64 <f64>,
        cublasChbmv_v2 cublasChbmv_v2_64 <C32>,
        cublasZhbmv_v2 cublasZhbmv_v2_64 <C64>,
    }

    fn spmv[W](
        call, uplo: word, n: int, alpha: ptr, a: ptr, x: ptr, incx: int, beta: ptr, y: ptr, incy: int,
    ) {
        let (fill, size) = (Fill::of(uplo)?, count(n)?);
        symmetric::<W>(call, n, (alpha, beta), (x, incx), (y, incy), true, move |call| {
            packed(call.named("AP"), a, size, fill)
        })
    } => {
        cublasSspmv_v2 cublasSspmv_v2_64 <f32>,
        cublasDspmv_v2 cublasDspmv_v2_64 <f64>,
        cublasChpmv_v2 cublasChpmv_v2_64 <C32>,
        cublasZhpmv_v2 cublasZhpmv_v2_64 <C64>,
    }

    fn trmv[W](call, uplo: word, trans: word, diag: word, n: int, a: ptr, lda: int, x: ptr, incx: int) {
        trmv_of::<W>(call, (uplo, trans, diag, n), (a, lda), (x, incx), false)
    } => {
        cublasStrmv_v2 cublasStrmv_v2_64 <f32>,
        cublasDtrmv_v2 cublasDtrmv_v2_64 <f64>,
        cublasCtrmv_v2 cublasCtrmv_v2_64 <C32>,
        cublasZtrmv_v2 cublasZtrmv_v2_64 <C64>,
    }

    fn trsv[W](call, uplo: word, trans: word, diag: word, n: int, a: ptr, lda: int, x: ptr, incx: int) {
        trmv_of::<W>(call, (uplo, trans, diag, n), (a, lda), (x, incx), true)
    } => {
        cublasStrsv_v2 cublasStrsv_v2_64 <f32>,
        cublasDtrsv_v2 cublasDtrsv_v2_64 <f64>,
        cublasCtrsv_v2 cublasCtrsv_v2_64 <C32>,
        cublasZtrsv_v2 cublasZtrsv_v2_64 <C64>,
    }

    fn tbmv[W](
        call, uplo: word, trans: word, diag: word, n: int, k: int, a: ptr, lda: int, x: ptr, incx: int,
    ) {
        tbmv_of::<W>(call, (uplo, trans, diag, n, k), (a, lda), (x, incx), false)
    } => {
        cublasStbmv_v2 cublasStbmv_v2_64 <f32>,
        cublasDtbmv_v2 cublasDtbmv_v2_64 <f64>,
        cublasCtbmv_v2 cublasCtbmv_v2_64 <C32>,
        cublasZtbmv_v2 cublasZtbmv_v2_64 <C64>,
    }

    fn tbsv[W](
        call, uplo: word, trans: word, diag: word, n: int, k: int, a: ptr, lda: int, x: ptr, incx: int,
    ) {
        tbmv_of::<W>(call, (uplo, trans, diag, n, k), (a, lda), (x, incx), true)
    } => {
        cublasStbsv_v2 cublasStbsv_v2_64 <f32>,
        cublasDtbsv_v2 cublasDtbsv_v2_64 <f64>,
        cublasCtbsv_v2 cublasCtbsv_v2_64 <C32>,
        cublasZtbsv_v2 cublasZtbsv_v2_64 <C64>,
    }

    fn tpmv[W](call, uplo: word, trans: word, diag: word, n: int, a: ptr, x: ptr, incx: int) {
        tpmv_of::<W>(call, (uplo, trans, diag, n), a, (x, incx), false)
    } => {
        cublasStpmv_v2 cublasStpmv_v2_64 <f32>,
        cublasDtpmv_v2 cublasDtpmv_v2_64 <f64>,
        cublasCtpmv_v2 cublasCtpmv_v2_64 <C32>,
        cublasZtpmv_v2 cublasZtpmv_v2_64 <C64>,
    }

    fn tpsv[W](call, uplo: word, trans: word, diag: word, n: int, a: ptr, x: ptr, incx: int) {
        tpmv_of::<W>(call, (uplo, trans, diag, n), a, (x, incx), true)
    } => {
        cublasStpsv_v2 cublasStpsv_v2_64 <f32>,
        cublasDtpsv_v2 cublasDtpsv_v2_64 <f64>,
        cublasCtpsv_v2 cublasCtpsv_v2_64 <C32>,
        cublasZtpsv_v2 cublasZtpsv_v2_64 <C64>,
    }
}
