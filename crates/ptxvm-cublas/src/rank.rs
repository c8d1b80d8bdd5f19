//! Level 2: rank-1 and rank-2 updates of a matrix (`ger`, `syr`, `syr2`, `her`, `spr`, ...).
//!
//! Invariant: only the named triangle is read and written. The diagonal of a hermitian result is real.

use crate::columns::{Columns, Layout};
use crate::entry::{Call, Scalar, blas, own};
use crate::ffi::Pointer;
use crate::gemm::{count, leading};
use crate::number::{C32, C64, Work};
use crate::operand::Fill;
use crate::status::{Answer, buffer, valid};
use crate::storage::{Matrix, Vector};

/// The term that is added to A.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// alpha x y^T
    General,
    /// alpha x y^H
    Conjugate,
    /// alpha x x^T, or alpha x y^T + alpha y x^T
    Symmetric,
    /// alpha x x^H, or alpha x y^H + conj(alpha) y x^H
    Hermitian,
}

struct Update<W> {
    alpha: Scalar<W>,
    x: Vector<W>,
    /// `None` if y is x.
    y: Option<Vector<W>>,
    a: Columns<W>,
    kind: Kind,
}

impl<W: Work> Update<W> {
    fn start(self, call: &Call) -> Answer {
        call.submit(move || self.run())
    }

    fn run(&self) -> Answer {
        let alpha = self.alpha.get();
        if alpha == W::default() {
            return Ok(());
        }
        let x = self.x.all()?;
        let y = self.y.map(|y| y.all()).transpose()?;
        let conjugates = matches!(self.kind, Kind::Conjugate | Kind::Hermitian);
        let turned = |value: W| if conjugates { value.conj() } else { value };
        let both = matches!(self.kind, Kind::Symmetric | Kind::Hermitian);
        let mut piece = buffer(W::default(), self.a.rows)?;
        for column in 0..self.a.stored.columns {
            let range = self.a.range(column);
            let piece = &mut piece[..range.len()];
            self.a.load(range.clone(), column, piece);
            match &y {
                None => {
                    let factor = alpha * turned(x[column]);
                    add(piece, &x[range.clone()], factor);
                }
                Some(y) => {
                    add(piece, &x[range.clone()], alpha * turned(y[column]));
                    if both {
                        add(piece, &y[range.clone()], turned(alpha) * turned(x[column]));
                    }
                }
            }
            if self.kind == Kind::Hermitian && range.contains(&column) {
                let diagonal = &mut piece[column - range.start];
                *diagonal = diagonal.real();
            }
            self.a.store(range, column, piece);
        }
        Ok(())
    }
}

/// sums += values factor
fn add<W: Work>(sums: &mut [W], values: &[W], factor: W) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += *value * factor;
    }
}

/// The storage of a triangle: full or packed.
#[derive(Clone, Copy)]
enum Place {
    Full(Pointer, i64),
    Packed(Pointer),
}

impl Place {
    fn columns<W: Work>(self, call: &Call, fill: Fill, n: usize) -> Answer<Columns<W>> {
        let (stored, layout) = match self {
            Place::Full(at, ld) => {
                leading(ld, n)?;
                (Matrix::new(call.written("A"), at, (n, n), ld, own()?)?, Layout::Full)
            }
            Place::Packed(at) => (Matrix::packed(call.written("AP"), at, n, own()?)?, Layout::Packed(fill)),
        };
        Ok(Columns { stored, rows: n, layout, only: Some(fill), unit: false })
    }
}

fn general<W: Work>(
    call: &Call,
    (m, n): (i64, i64),
    alpha: Pointer,
    (x, incx): (Pointer, i64),
    (y, incy): (Pointer, i64),
    (a, lda): (Pointer, i64),
    kind: Kind,
) -> Answer {
    let (m, n) = (count(m)?, count(n)?);
    valid(incx != 0 && incy != 0)?;
    leading(lda, m)?;
    let alpha = call.own("alpha", alpha)?;
    let x = Vector::new(call.named("x"), x, m, incx, own()?)?;
    let y = Some(Vector::new(call.named("y"), y, n, incy, own()?)?);
    let stored = Matrix::<W>::new(call.written("A"), a, (m, n), lda, own()?)?;
    let a = Columns { stored, rows: m, layout: Layout::Full, only: None, unit: false };
    Update { alpha, x, y, a, kind }.start(call)
}

/// A += alpha x x^T, or alpha x x^H with a real alpha.
fn one<W: Work>(
    call: &Call,
    (uplo, n): (i64, i64),
    alpha: Pointer,
    (x, incx): (Pointer, i64),
    a: Place,
    kind: Kind,
) -> Answer {
    let (fill, n) = (Fill::of(uplo)?, count(n)?);
    valid(incx != 0)?;
    let codec = if kind == Kind::Hermitian { W::real_codec() } else { own()? };
    let alpha = call.scalar("alpha", alpha, codec)?;
    let a = a.columns::<W>(call, fill, n)?;
    let x = Vector::new(call.named("x"), x, n, incx, own()?)?;
    Update { alpha, x, y: None, a, kind }.start(call)
}

/// A += alpha x y^T + alpha y x^T, or with conjugates.
fn two<W: Work>(
    call: &Call,
    (uplo, n): (i64, i64),
    alpha: Pointer,
    (x, incx): (Pointer, i64),
    (y, incy): (Pointer, i64),
    a: Place,
    kind: Kind,
) -> Answer {
    let (fill, n) = (Fill::of(uplo)?, count(n)?);
    valid(incx != 0 && incy != 0)?;
    let alpha = call.own("alpha", alpha)?;
    let a = a.columns::<W>(call, fill, n)?;
    let x = Vector::new(call.named("x"), x, n, incx, own()?)?;
    let y = Some(Vector::new(call.named("y"), y, n, incy, own()?)?);
    Update { alpha, x, y, a, kind }.start(call)
}

blas! {
    fn geru[W](call, m: int, n: int, alpha: ptr, x: ptr, incx: int, y: ptr, incy: int, a: ptr, lda: int) {
        general::<W>(call, (m, n), alpha, (x, incx), (y, incy), (a, lda), Kind::General)
    } => {
        cublasSger_v2 cublasSger_v2_64 <f32>,
        cublasDger_v2 cublasDger_v2_64 <f64>,
        cublasCgeru_v2 cublasCgeru_v2_64 <C32>,
        cublasZgeru_v2 cublasZgeru_v2_64 <C64>,
    }

    fn gerc[W](call, m: int, n: int, alpha: ptr, x: ptr, incx: int, y: ptr, incy: int, a: ptr, lda: int) {
        general::<W>(call, (m, n), alpha, (x, incx), (y, incy), (a, lda), Kind::Conjugate)
    } => {
        cublasCgerc_v2 cublasCgerc_v2_64 <C32>,
        cublasZgerc_v2 cublasZgerc_v2_64 <C64>,
    }

    fn syr[W](call, uplo: word, n: int, alpha: ptr, x: ptr, incx: int, a: ptr, lda: int) {
        one::<W>(call, (uplo, n), alpha, (x, incx), Place::Full(a, lda), Kind::Symmetric)
    } => {
        cublasSsyr_v2 cublasSsyr_v2_64 <f32>,
        cublasDsyr_v2 cublasDsyr_v2_64 <f64>,
        cublasCsyr_v2 cublasCsyr_v2_64 <C32>,
        cublasZsyr_v2 cublasZsyr_v2_64 <C64>,
    }

    fn her[W](call, uplo: word, n: int, alpha: ptr, x: ptr, incx: int, a: ptr, lda: int) {
        one::<W>(call, (uplo, n), alpha, (x, incx), Place::Full(a, lda), Kind::Hermitian)
    } => {
        cublasCher_v2 cublasCher_v2_64 <C32>,
        cublasZher_v2 cublasZher_v2_64 <C64>,
    }

    /// Symmetric for real numbers and hermitian for complex ones: BLAS has no other packed updates.
    fn spr[W](call, uplo: word, n: int, alpha: ptr, x: ptr, incx: int, a: ptr) {
        one::<W>(call, (uplo, n), alpha, (x, incx), Place::Packed(a), Kind::Hermitian)
    } => {
        cublasSspr_v2 cublasSspr_v2_64 <f32>,
        cublasDspr_v2 cublasDspr_v2_64 <f64>,
        cublasChpr_v2 cublasChpr_v2_64 <C32>,
        cublasZhpr_v2 cublasZhpr_v2_64 <C64>,
    }

    fn syr2[W](call, uplo: word, n: int, alpha: ptr, x: ptr, incx: int, y: ptr, incy: int, a: ptr, lda: int) {
        two::<W>(call, (uplo, n), alpha, (x, incx), (y, incy), Place::Full(a, lda), Kind::Symmetric)
    } => {
        cublasSsyr2_v2 cublasSsyr2_v2_64 <f32>,
        cublasDsyr2_v2 cublasDsyr2_v2_64 <f64>,
        cublasCsyr2_v2 cublasCsyr2_v2_64 <C32>,
        cublasZsyr2_v2 cublasZsyr2_v2_64 <C64>,
    }

    fn her2[W](call, uplo: word, n: int, alpha: ptr, x: ptr, incx: int, y: ptr, incy: int, a: ptr, lda: int) {
        two::<W>(call, (uplo, n), alpha, (x, incx), (y, incy), Place::Full(a, lda), Kind::Hermitian)
    } => {
        cublasCher2_v2 cublasCher2_v2_64 <C32>,
        cublasZher2_v2 cublasZher2_v2_64 <C64>,
    }

    fn spr2[W](call, uplo: word, n: int, alpha: ptr, x: ptr, incx: int, y: ptr, incy: int, a: ptr) {
        two::<W>(call, (uplo, n), alpha, (x, incx), (y, incy), Place::Packed(a), Kind::Hermitian)
    } => {
        cublasSspr2_v2 cublasSspr2_v2_64 <f32>,
        cublasDspr2_v2 cublasDspr2_v2_64 <f64>,
        cublasChpr2_v2 cublasChpr2_v2_64 <C32>,
        cublasZhpr2_v2 cublasZhpr2_v2_64 <C64>,
    }
}
