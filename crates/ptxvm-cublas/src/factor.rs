//! Batches of small systems: `getrf`, `getrs`, `getri`, `matinv`; and conversions of triangles to and from
//! packed storage.
//!
//! Factors are found by Gaussian elimination with partial pivoting, in the type of the matrix. The pivot is
//! the element of the column with the largest |re| + |im|.
//!
//! Invariant: a matrix is loaded completely, and stored when its result is complete. A zero pivot is recorded
//! and the elimination continues, as in LAPACK.

use crate::columns::{Columns, Layout};
use crate::entry::{Call, blas, own};
use crate::ffi::{Named, Pointer, Region};
use crate::gemm::{Base, Place, count, leading};
use crate::number::{C32, C64, Work};
use crate::operand::{Fill, Op};
use crate::product::{share, threads};
use crate::status::{Answer, Status, buffer, valid};
use crate::storage::Matrix;

/// L and U of a matrix in column order, with the row exchanges.
struct Factors<W> {
    n: usize,
    values: Vec<W>,
    /// For each row the index of the row that it was exchanged with.
    pivots: Vec<usize>,
    /// The first column with a zero pivot, counted from 1; 0 for none.
    singular: i32,
}

impl<W: Work> Factors<W> {
    fn of(mut values: Vec<W>, n: usize, exchanges: bool) -> Answer<Self> {
        let mut pivots = buffer(0, n)?;
        let mut singular = 0;
        for j in 0..n {
            let column = &values[j * n..(j + 1) * n];
            let mut pivot = j;
            if exchanges {
                for row in j + 1..n {
                    if column[row].size() > column[pivot].size() {
                        pivot = row;
                    }
                }
            }
            pivots[j] = pivot;
            if column[pivot] == W::default() {
                singular = if singular == 0 { j as i32 + 1 } else { singular };
                continue;
            }
            if pivot != j {
                values.chunks_exact_mut(n).for_each(|column| column.swap(j, pivot));
            }
            let (done, rest) = values.split_at_mut((j + 1) * n);
            let column = &mut done[j * n..];
            let diagonal = column[j];
            column[j + 1..].iter_mut().for_each(|value| *value = *value / diagonal);
            for other in rest.chunks_exact_mut(n) {
                let factor = other[j];
                for (value, below) in other[j + 1..].iter_mut().zip(&column[j + 1..]) {
                    *value -= factor * *below;
                }
            }
        }
        Ok(Self { n, values, pivots, singular })
    }

    fn at(&self, row: usize, column: usize) -> W {
        self.values[row + column * self.n]
    }

    /// Solves op(A) x = b. On entry `x` holds b.
    fn solve(&self, op: Op, x: &mut [W]) {
        let n = self.n;
        let turned = |value: W| if op == Op::Adjoint { value.conj() } else { value };
        if op == Op::Plain {
            self.pivots.iter().enumerate().for_each(|(row, pivot)| x.swap(row, *pivot));
            for j in 0..n {
                let found = x[j];
                for (i, value) in x.iter_mut().enumerate().skip(j + 1) {
                    *value -= found * self.at(i, j);
                }
            }
            for j in (0..n).rev() {
                x[j] = x[j] / self.at(j, j);
                let found = x[j];
                for (i, value) in x[..j].iter_mut().enumerate() {
                    *value -= found * self.at(i, j);
                }
            }
        } else {
            for j in 0..n {
                let known = (0..j).fold(W::default(), |sum, i| sum + turned(self.at(i, j)) * x[i]);
                x[j] = (x[j] - known) / turned(self.at(j, j));
            }
            for j in (0..n).rev() {
                let known = (j + 1..n).fold(W::default(), |sum, i| sum + turned(self.at(i, j)) * x[i]);
                x[j] -= known;
            }
            self.pivots.iter().enumerate().rev().for_each(|(row, pivot)| x.swap(row, *pivot));
        }
    }

    /// The inverse, in column order.
    fn inverse(&self) -> Answer<Vec<W>> {
        let mut inverse = buffer(W::default(), self.values.len())?;
        for (index, column) in inverse.chunks_exact_mut(self.n.max(1)).enumerate() {
            column[index] = W::ONE;
            self.solve(Op::Plain, column);
        }
        Ok(inverse)
    }

    /// The first zero on the diagonal of U, counted from 1; 0 for none.
    fn zero_on_diagonal(&self) -> i32 {
        (0..self.n).find(|j| self.at(*j, *j) == W::default()).map_or(0, |j| j as i32 + 1)
    }
}

/// Integers of a batch in device memory: pivots, or one for each matrix.
#[derive(Clone, Copy)]
struct Integers(Region);

impl Integers {
    fn new(named: Named, at: Pointer, count: usize) -> Answer<Self> {
        Ok(Self(Region::new(named, at.address(), count as u128 * 4, 4)?))
    }

    /// `None` for a null pointer.
    fn optional(named: Named, at: Pointer, count: usize) -> Answer<Option<Self>> {
        if at.is_null() { Ok(None) } else { Self::new(named, at, count).map(Some) }
    }

    fn set(&self, index: usize, value: i32) {
        self.0.write_element(index as u64 * 4, &value.to_ne_bytes());
    }

    /// Stored pivots, which count from 1, as indices. A pivot that is no row of the matrix exchanges nothing.
    fn pivots(&self, first: usize, n: usize) -> Vec<usize> {
        let pivot = |row: usize| {
            let mut bytes = [0; 4];
            self.0.read_element((first + row) as u64 * 4, &mut bytes);
            let pivot = i64::from(i32::from_ne_bytes(bytes)) - 1;
            usize::try_from(pivot).ok().filter(|pivot| *pivot < n).unwrap_or(row)
        };
        (0..n).map(pivot).collect()
    }
}

/// The matrices of a batch, given by a list of pointers.
fn list<W: Work>(call: &Call, name: &'static str, at: Pointer, ld: i64, batch: usize) -> Answer<Place<W>> {
    Ok(Place { base: Base::list(call.named(name), at, batch)?, ld, codec: own()? })
}

/// Calls `work` for each matrix of a batch, on several threads if the batch is large.
fn each(batch: usize, n: usize, work: impl Fn(usize) -> Answer + Sync) -> Answer {
    let cost = n.saturating_pow(3).saturating_mul(batch);
    share(if cost < 1 << 22 { 1 } else { threads() }, batch, || (), |(), index| work(index))
}

/// The factors that `getrf` stored in memory.
fn found<W: Work>(
    call: &Call,
    a: &Place<W>,
    pivots: Option<Integers>,
    index: usize,
    n: usize,
) -> Answer<Factors<W>> {
    let values = a.matrix(call.named("A"), index, (n, n))?.all()?;
    let pivots = pivots.map_or_else(|| (0..n).collect(), |pivots| pivots.pivots(index * n, n));
    Ok(Factors { n, values, pivots, singular: 0 })
}

/// The largest matrix that `matinv` accepts, by its documentation.
const MATINV_MAX: usize = 32;

/// The arguments of a conversion between a triangle of a full matrix and packed storage.
fn packing<W: Work>(
    call: &Call,
    uplo: i64,
    n: i64,
    full: (Pointer, i64),
    packed: Pointer,
    packs: bool,
) -> Answer {
    let (fill, n) = (Fill::of(uplo)?, count(n)?);
    leading(full.1, n)?;
    let named = |name, written: bool| if written { call.written(name) } else { call.named(name) };
    let full = Matrix::<W>::new(named("A", !packs), full.0, (n, n), full.1, own()?)?;
    let packed = Matrix::<W>::packed(named("AP", packs), packed, n, own()?)?;
    let of = |stored, layout| Columns { stored, rows: n, layout, only: Some(fill), unit: false };
    let (full, packed) = (of(full, Layout::Full), of(packed, Layout::Packed(fill)));
    let (from, to) = if packs { (full, packed) } else { (packed, full) };
    call.submit(move || {
        let mut piece = buffer(W::default(), n)?;
        for column in 0..n {
            let range = from.range(column);
            from.load(range.clone(), column, &mut piece);
            to.store(range, column, &piece);
        }
        Ok(())
    })
}

blas! {
    fn getrf[W](call, n: int, a: ptr, lda: int, pivots: ptr, info: ptr, batch: int) {
        let (n, batch) = (count(n)?, count(batch)?);
        leading(lda, n)?;
        if batch == 0 {
            return Ok(());
        }
        let a = list::<W>(call, "A", a, lda, batch)?;
        let pivots = Integers::optional(call.written("P"), pivots, n.saturating_mul(batch))?;
        let info = Integers::new(call.written("info"), info, batch)?;
        let call = *call;
        call.submit(move || {
            each(batch, n, |index| {
                let a = a.matrix(call.written("A"), index, (n, n))?;
                let factors = Factors::of(a.all()?, n, pivots.is_some())?;
                a.store_all(&factors.values);
                for (row, pivot) in factors.pivots.iter().enumerate() {
                    pivots.iter().for_each(|pivots| pivots.set(index * n + row, *pivot as i32 + 1));
                }
                info.set(index, factors.singular);
                Ok(())
            })
        })
    } => {
        cublasSgetrfBatched - <f32>,
        cublasDgetrfBatched - <f64>,
        cublasCgetrfBatched - <C32>,
        cublasZgetrfBatched - <C64>,
    }

    fn getri[W](call, n: int, a: ptr, lda: int, pivots: ptr, c: ptr, ldc: int, info: ptr, batch: int) {
        let (n, batch) = (count(n)?, count(batch)?);
        leading(lda, n)?;
        leading(ldc, n)?;
        if batch == 0 {
            return Ok(());
        }
        let (a, c) = (list::<W>(call, "A", a, lda, batch)?, list::<W>(call, "C", c, ldc, batch)?);
        let pivots = Integers::optional(call.named("P"), pivots, n.saturating_mul(batch))?;
        let info = Integers::new(call.written("info"), info, batch)?;
        let call = *call;
        call.submit(move || {
            each(batch, n, |index| {
                let factors = found(&call, &a, pivots, index, n)?;
                let zero = factors.zero_on_diagonal();
                info.set(index, zero);
                let c = c.matrix(call.written("C"), index, (n, n))?;
                if zero == 0 {
                    c.store_all(&factors.inverse()?);
                }
                Ok(())
            })
        })
    } => {
        cublasSgetriBatched - <f32>,
        cublasDgetriBatched - <f64>,
        cublasCgetriBatched - <C32>,
        cublasZgetriBatched - <C64>,
    }

    fn matinv[W](call, n: int, a: ptr, lda: int, inverse: ptr, ld_inverse: int, info: ptr, batch: int) {
        let (n, batch) = (count(n)?, count(batch)?);
        valid(n <= MATINV_MAX)?;
        leading(lda, n)?;
        leading(ld_inverse, n)?;
        if batch == 0 {
            return Ok(());
        }
        let a = list::<W>(call, "A", a, lda, batch)?;
        let inverse = list::<W>(call, "Ainv", inverse, ld_inverse, batch)?;
        let info = Integers::new(call.written("info"), info, batch)?;
        let call = *call;
        call.submit(move || {
            each(batch, n, |index| {
                let a = a.matrix(call.named("A"), index, (n, n))?;
                let factors = Factors::of(a.all()?, n, true)?;
                info.set(index, factors.singular);
                if factors.singular == 0 {
                    inverse.matrix(call.written("Ainv"), index, (n, n))?.store_all(&factors.inverse()?);
                }
                Ok(())
            })
        })
    } => {
        cublasSmatinvBatched - <f32>,
        cublasDmatinvBatched - <f64>,
        cublasCmatinvBatched - <C32>,
        cublasZmatinvBatched - <C64>,
    }

    fn getrs[W](
        call, trans: word, n: int, nrhs: int, a: ptr, lda: int, pivots: ptr, b: ptr, ldb: int, info: ptr,
        batch: int,
    ) {
        // `info`, in host memory, receives the negated position of the wrong argument, counted after the
        // handle.
        let wrong = |holds: bool, place: i32| {
            if holds {
                return Ok(());
            }
            info.write(&(-place).to_ne_bytes())?;
            Err(Status::INVALID_VALUE)
        };
        valid(!info.is_null())?;
        wrong((0..3).contains(&trans), 1)?;
        wrong(n >= 0, 2)?;
        wrong(nrhs >= 0, 3)?;
        wrong(lda >= n.max(1), 5)?;
        wrong(ldb >= n.max(1), 8)?;
        wrong(batch >= 0, 10)?;
        info.write(&0i32.to_ne_bytes())?;
        let (op, n, nrhs, batch) = (Op::of(trans)?, count(n)?, count(nrhs)?, count(batch)?);
        if batch == 0 || n == 0 || nrhs == 0 {
            return Ok(());
        }
        let (a, b) = (list::<W>(call, "A", a, lda, batch)?, list::<W>(call, "B", b, ldb, batch)?);
        let pivots = Integers::optional(call.named("P"), pivots, n.saturating_mul(batch))?;
        let call = *call;
        call.submit(move || {
            each(batch, n, |index| {
                let factors = found(&call, &a, pivots, index, n)?;
                let b = b.matrix(call.written("B"), index, (n, nrhs))?;
                let mut x = b.all()?;
                x.chunks_exact_mut(n).for_each(|x| factors.solve(op, x));
                b.store_all(&x);
                Ok(())
            })
        })
    } => {
        cublasSgetrsBatched - <f32>,
        cublasDgetrsBatched - <f64>,
        cublasCgetrsBatched - <C32>,
        cublasZgetrsBatched - <C64>,
    }

    fn tpttr[W](call, uplo: word, n: int, packed: ptr, full: ptr, ld: int) {
        packing::<W>(call, uplo, n, (full, ld), packed, false)
    } => {
        cublasStpttr - <f32>,
        cublasDtpttr - <f64>,
        cublasCtpttr - <C32>,
        cublasZtpttr - <C64>,
    }

    fn trttp[W](call, uplo: word, n: int, full: ptr, ld: int, packed: ptr) {
        packing::<W>(call, uplo, n, (full, ld), packed, true)
    } => {
        cublasStrttp - <f32>,
        cublasDtrttp - <f64>,
        cublasCtrttp - <C32>,
        cublasZtrttp - <C64>,
    }
}
