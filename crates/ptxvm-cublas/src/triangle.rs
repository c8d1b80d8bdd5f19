//! Level 3 with triangular matrices: products (`trmm`) and solutions of equations (`trsm`, also in batches).
//!
//! B is processed in panels: columns if A is the left factor, else rows. Each panel is loaded completely, so
//! results may replace it, and threads share the panels. Equations are solved in blocks: a block by
//! substitution, the rest by products.
//!
//! Invariant: the result of a panel depends only on the panel and A, and its operations have a fixed order,
//! so results do not depend on the number of threads.

use crate::entry::{Scalar, blas, own};
use crate::gemm::{Base, Place, count, leading};
use crate::kernel::Shape;
use crate::number::{C32, C64, Work};
use crate::operand::{Fill, Form, Op, Operand, Side, is_unit};
use crate::product::{room, share, threads};
use crate::status::{Answer, Status, buffer};
use crate::storage::Matrix;
use std::ops::Range;

/// Columns or rows of a panel.
const PANEL: usize = 128;
/// Unknowns of a block.
const BLOCK: usize = 64;
/// Least number of multiplications for which several threads share the panels.
const SHARED: usize = 4_000_000;

/// A triangular matrix and its side.
#[derive(Clone, Copy)]
pub(crate) struct Triangle<W> {
    pub(crate) a: Operand<W>,
    pub(crate) side: Side,
    /// Rows and columns of A.
    pub(crate) size: usize,
    /// Whether op(A) is a lower triangle.
    pub(crate) lower: bool,
}

impl<W: Work> Triangle<W> {
    /// op(A), for a matrix on that side.
    pub(crate) fn new(matrix: Matrix<W>, side: Side, fill: Fill, op: Op, unit: bool) -> Self {
        let a = Operand { matrix, form: Form::Triangular { fill, unit }, op };
        Self { a, side, size: matrix.rows, lower: (fill == Fill::Lower) != op.transposes() }
    }

    /// C = alpha op(A) B, or alpha B op(A); C may be B.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_ALLOC_FAILED`.
    fn multiply(&self, alpha: W, b: &Matrix<W>, c: &Matrix<W>) -> Answer {
        self.panels(alpha, b, c, |scratch, panel, width| {
            let mut out = buffer(W::default(), panel.len())?;
            for from in (0..self.size).step_by(BLOCK) {
                let inner = from..(from + BLOCK).min(self.size);
                let tile = room(scratch, self.size * inner.len())?;
                let (all, k) = (0..self.size, inner.len());
                match self.side {
                    Side::Left => {
                        let a = self.a.tile(all, inner.clone(), tile);
                        let shape = Shape { m: self.size, n: width, k, a, b: [1, self.size], c: self.size };
                        W::accumulate(shape, tile, &panel[from..], &mut out);
                    }
                    Side::Right => {
                        let b = self.a.tile(inner.clone(), all, tile);
                        let shape = Shape { m: width, n: self.size, k, a: [1, width], b, c: width };
                        W::accumulate(shape, &panel[from * width..], tile, &mut out);
                    }
                }
            }
            panel.copy_from_slice(&out);
            Ok(())
        })
    }

    /// Replaces B by the solution X of op(A) X = alpha B, or of X op(A) = alpha B.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_ALLOC_FAILED`.
    pub(crate) fn solve(&self, alpha: W, b: &Matrix<W>) -> Answer {
        self.panels(alpha, b, b, |scratch, panel, width| self.solve_panel(scratch, panel, width))
    }

    /// Loads panels of alpha B, changes and stores them.
    fn panels(
        &self,
        alpha: W,
        b: &Matrix<W>,
        c: &Matrix<W>,
        change: impl Fn(&mut Vec<W>, &mut [W], usize) -> Answer + Sync,
    ) -> Answer {
        let across = if self.side == Side::Left { b.columns } else { b.rows };
        if alpha == W::default() {
            let zeros = buffer(W::default(), c.rows)?;
            (0..c.columns).for_each(|column| c.store(0, column, &zeros));
            return Ok(());
        }
        let cost = self.size.saturating_mul(self.size).saturating_mul(across);
        let threads = if cost < SHARED { 1 } else { threads() };
        share(
            threads,
            across.div_ceil(PANEL),
            || (Vec::new(), Vec::new()),
            |(panel, scratch), index| {
                let part = index * PANEL..((index + 1) * PANEL).min(across);
                let width = part.len();
                let panel = room(panel, self.size.checked_mul(width).ok_or(Status::ALLOC_FAILED)?)?;
                let (rows, columns) = self.turn(part);
                b.tile(rows.clone(), columns.clone(), panel);
                panel.iter_mut().for_each(|value| *value = alpha * *value);
                change(scratch, panel, width)?;
                for (column, values) in columns.zip(panel.chunks_exact(rows.len())) {
                    c.store(rows.start, column, values);
                }
                Ok(())
            },
        )
    }

    /// Rows and columns of a panel.
    fn turn(&self, part: Range<usize>) -> (Range<usize>, Range<usize>) {
        match self.side {
            Side::Left => (0..self.size, part),
            Side::Right => (part, 0..self.size),
        }
    }

    fn solve_panel(&self, scratch: &mut Vec<W>, panel: &mut [W], width: usize) -> Answer {
        let blocks = self.size.div_ceil(BLOCK);
        // On the left a lower triangle is solved forwards; on the right an upper one is.
        let forwards = self.lower == (self.side == Side::Left);
        for step in 0..blocks {
            let index = if forwards { step } else { blocks - 1 - step };
            let block = index * BLOCK..((index + 1) * BLOCK).min(self.size);
            let k = block.len();
            let tile = room(scratch, k * k)?;
            let strides = self.a.tile(block.clone(), block.clone(), tile);
            self.substitute(tile, strides, panel, width, &block, forwards);
            let rest = if forwards { block.end..self.size } else { 0..block.start };
            if rest.is_empty() {
                continue;
            }
            match self.side {
                Side::Left => {
                    let mut found = buffer(W::default(), k * width)?;
                    let columns = panel.chunks_exact(self.size).zip(found.chunks_exact_mut(k));
                    for (from, to) in columns {
                        to.iter_mut().zip(&from[block.clone()]).for_each(|(to, from)| *to = -*from);
                    }
                    let tile = room(scratch, rest.len() * k)?;
                    let a = self.a.tile(rest.clone(), block, tile);
                    let shape = Shape { m: rest.len(), n: width, k, a, b: [1, k], c: self.size };
                    W::accumulate(shape, tile, &found, &mut panel[rest.start..]);
                }
                Side::Right => {
                    let found: Vec<W> =
                        panel[block.start * width..block.end * width].iter().map(|x| -*x).collect();
                    let tile = room(scratch, rest.len() * k)?;
                    let b = self.a.tile(block, rest.clone(), tile);
                    let shape = Shape { m: width, n: rest.len(), k, a: [1, width], b, c: width };
                    W::accumulate(shape, &found, tile, &mut panel[rest.start * width..]);
                }
            }
        }
        Ok(())
    }

    /// Solves the equations of a block, one unknown after another.
    fn substitute(
        &self,
        tile: &[W],
        [down, right]: [usize; 2],
        panel: &mut [W],
        width: usize,
        block: &Range<usize>,
        forwards: bool,
    ) {
        let k = block.len();
        let order = |step: usize| if forwards { step } else { k - 1 - step };
        let later = |at: usize| if forwards { at + 1..k } else { 0..at };
        match self.side {
            Side::Left => {
                for column in panel.chunks_exact_mut(self.size).take(width) {
                    let x = &mut column[block.clone()];
                    for at in (0..k).map(order) {
                        x[at] = x[at] / tile[at * (down + right)];
                        let found = x[at];
                        for other in later(at) {
                            x[other] -= tile[other * down + at * right] * found;
                        }
                    }
                }
            }
            Side::Right => {
                let x = &mut panel[block.start * width..block.end * width];
                for at in (0..k).map(order) {
                    let diagonal = tile[at * (down + right)];
                    x[at * width..(at + 1) * width].iter_mut().for_each(|value| *value = *value / diagonal);
                    for other in later(at) {
                        let factor = tile[at * down + other * right];
                        for row in 0..width {
                            let found = x[at * width + row];
                            x[other * width + row] -= found * factor;
                        }
                    }
                }
            }
        }
    }
}

/// The arguments that describe A.
struct Arguments {
    side: Side,
    fill: Fill,
    op: Op,
    unit: bool,
    m: usize,
    n: usize,
}

impl Arguments {
    fn of(side: i64, uplo: i64, trans: i64, diag: i64, m: i64, n: i64) -> Answer<Self> {
        let (side, fill, op, unit) = (Side::of(side)?, Fill::of(uplo)?, Op::of(trans)?, is_unit(diag)?);
        Ok(Self { side, fill, op, unit, m: count(m)?, n: count(n)? })
    }

    fn size(&self) -> usize {
        if self.side == Side::Left { self.m } else { self.n }
    }

    fn triangle<W: Work>(&self, matrix: Matrix<W>) -> Triangle<W> {
        Triangle::new(matrix, self.side, self.fill, self.op, self.unit)
    }
}

blas! {
    fn trmm[W](
        call, side: word, uplo: word, trans: word, diag: word, m: int, n: int, alpha: ptr, a: ptr, lda: int,
        b: ptr, ldb: int, c: ptr, ldc: int,
    ) {
        let what = Arguments::of(side, uplo, trans, diag, m, n)?;
        let (size, shape) = (what.size(), (what.m, what.n));
        leading(lda, size)?;
        leading(ldb, what.m)?;
        leading(ldc, what.m)?;
        let alpha = call.own::<W>("alpha", alpha)?;
        if what.m == 0 || what.n == 0 {
            return Ok(());
        }
        let c = Matrix::new(call.written("C"), c, shape, ldc, own()?)?;
        let b = Matrix::new(call.named("B"), b, shape, ldb, own()?)?;
        let a = Matrix::new(call.named("A"), a, (size, size), lda, own()?)?;
        call.submit(move || what.triangle(a).multiply(alpha.get(), &b, &c))
    } => {
        cublasStrmm_v2 cublasStrmm_v2_64 <f32>,
        cublasDtrmm_v2 cublasDtrmm_v2_64 <f64>,
        cublasCtrmm_v2 cublasCtrmm_v2_64 <C32>,
        cublasZtrmm_v2 cublasZtrmm_v2_64 <C64>,
    }

    fn trsm[W](
        call, side: word, uplo: word, trans: word, diag: word, m: int, n: int, alpha: ptr, a: ptr, lda: int,
        b: ptr, ldb: int,
    ) {
        let what = Arguments::of(side, uplo, trans, diag, m, n)?;
        let (size, shape) = (what.size(), (what.m, what.n));
        leading(lda, size)?;
        leading(ldb, what.m)?;
        let alpha = call.own::<W>("alpha", alpha)?;
        if what.m == 0 || what.n == 0 {
            return Ok(());
        }
        let b = Matrix::new(call.written("B"), b, shape, ldb, own()?)?;
        let a = Matrix::new(call.named("A"), a, (size, size), lda, own()?)?;
        call.submit(move || what.triangle(a).solve(alpha.get(), &b))
    } => {
        cublasStrsm_v2 cublasStrsm_v2_64 <f32>,
        cublasDtrsm_v2 cublasDtrsm_v2_64 <f64>,
        cublasCtrsm_v2 cublasCtrsm_v2_64 <C32>,
        cublasZtrsm_v2 cublasZtrsm_v2_64 <C64>,
    }

    fn trsm_batched[W](
        call, side: word, uplo: word, trans: word, diag: word, m: int, n: int, alpha: ptr, a: ptr, lda: int,
        b: ptr, ldb: int, batch: int,
    ) {
        let what = Arguments::of(side, uplo, trans, diag, m, n)?;
        let (size, shape, batch) = (what.size(), (what.m, what.n), count(batch)?);
        leading(lda, size)?;
        leading(ldb, what.m)?;
        let alpha: Scalar<W> = call.own("alpha", alpha)?;
        if what.m == 0 || what.n == 0 || batch == 0 {
            return Ok(());
        }
        let place = |name, at, ld| -> Answer<Place<W>> {
            Ok(Place { base: Base::list(call.named(name), at, batch)?, ld, codec: own()? })
        };
        let (a, b) = (place("A", a, lda)?, place("B", b, ldb)?);
        let call = *call;
        call.submit(move || {
            for index in 0..batch {
                let a = a.matrix(call.named("A"), index, (size, size))?;
                let b = b.matrix(call.written("B"), index, shape)?;
                what.triangle(a).solve(alpha.get(), &b)?;
            }
            Ok(())
        })
    } => {
        cublasStrsmBatched cublasStrsmBatched_64 <f32>,
        cublasDtrsmBatched cublasDtrsmBatched_64 <f64>,
        cublasCtrsmBatched cublasCtrsmBatched_64 <C32>,
        cublasZtrsmBatched cublasZtrsmBatched_64 <C64>,
    }
}
