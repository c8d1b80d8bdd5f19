//! Matrices of level 2 as columns: full, banded or packed, and their products with a vector.
//!
//! Invariant: each column has one contiguous stored range of rows. No other element is read or written.

use crate::number::Work;
use crate::operand::{Fill, Op};
use crate::product::{dot, share, threads};
use crate::status::{Answer, buffer};
use crate::storage::Matrix;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The storage of columns.
#[derive(Clone, Copy)]
pub(crate) enum Layout {
    /// Columns are one leading dimension apart.
    Full,
    /// Rows of memory hold the diagonals, from `below` under the main one to `above` over it.
    Band { below: usize, above: usize },
    /// A triangle whose columns are stored one after another.
    Packed(Fill),
}

/// A matrix as columns.
#[derive(Clone, Copy)]
pub(crate) struct Columns<W> {
    pub(crate) stored: Matrix<W>,
    pub(crate) rows: usize,
    pub(crate) layout: Layout,
    /// The triangle that is used; `None` for the whole matrix.
    pub(crate) only: Option<Fill>,
    /// Whether the diagonal is taken to be 1.
    pub(crate) unit: bool,
}

/// Elements of a column that are processed at a time, and the rows or columns of a thread's share.
const PART: usize = 512;
/// Least number of elements of a matrix that several threads share.
const SHARED: usize = 1 << 21;

impl<W: Work> Columns<W> {
    /// The rows of a column that are stored and used.
    pub(crate) fn range(&self, column: usize) -> Range<usize> {
        let stored = match self.layout {
            Layout::Full => 0..self.rows,
            Layout::Band { below, above } => {
                column.saturating_sub(above)..(column + below).saturating_add(1).min(self.rows)
            }
            Layout::Packed(fill) => fill.rows(column, self.rows),
        };
        let within = self.only.map_or(0..self.rows, |fill| fill.rows(column, self.rows));
        let start = stored.start.max(within.start);
        start..stored.end.min(within.end).max(start)
    }

    /// The position of an element in memory, in elements.
    fn position(&self, row: usize, column: usize) -> u64 {
        let (i, j, n) = (row as u64, column as u64, self.rows as u64);
        match self.layout {
            Layout::Full => j * self.stored.stride + i,
            Layout::Band { above, .. } => j * self.stored.stride + (above as u64 + i - j),
            Layout::Packed(Fill::Upper) => j * (j + 1) / 2 + i,
            Layout::Packed(Fill::Lower) => j * (2 * n - j + 1) / 2 + (i - j),
        }
    }

    /// Loads a part of a column.
    pub(crate) fn load(&self, rows: Range<usize>, column: usize, into: &mut [W]) {
        if rows.is_empty() {
            return;
        }
        self.stored.load_run(self.position(rows.start, column), &mut into[..rows.len()]);
        if self.unit && rows.contains(&column) {
            into[column - rows.start] = W::ONE;
        }
    }

    /// Stores a part of a column.
    pub(crate) fn store(&self, rows: Range<usize>, column: usize, from: &[W]) {
        if !rows.is_empty() {
            self.stored.store_run(self.position(rows.start, column), &from[..rows.len()]);
        }
    }

    /// op(A) x
    ///
    /// # Errors
    /// `CUBLAS_STATUS_ALLOC_FAILED`.
    pub(crate) fn multiply(&self, op: Op, x: &[W]) -> Answer<Vec<W>> {
        let columns = self.stored.columns;
        let size = if op.transposes() { columns } else { self.rows };
        let mut out = buffer(W::default(), size)?;
        let threads = if self.rows.saturating_mul(columns) < SHARED { 1 } else { threads() };
        let parts: Vec<_> = out.chunks_mut(PART).map(Mutex::new).collect();
        share(
            threads,
            parts.len(),
            || [W::default(); PART],
            |piece, index| {
                let mut out = parts[index].lock().unwrap_or_else(PoisonError::into_inner);
                let within = index * PART..index * PART + out.len();
                if op.transposes() {
                    for (out, column) in out.iter_mut().zip(within) {
                        *out = self.column_dot(op, column, x, piece);
                    }
                } else {
                    for (column, factor) in x.iter().enumerate() {
                        let range = self.range(column);
                        let start = range.start.max(within.start);
                        let range = start..range.end.min(within.end).max(start);
                        self.load(range.clone(), column, piece);
                        if !range.is_empty() {
                            let sums = &mut out[range.start - within.start..range.end - within.start];
                            for (sum, value) in sums.iter_mut().zip(piece.iter()) {
                                *sum += *value * *factor;
                            }
                        }
                    }
                }
                Ok(())
            },
        )?;
        drop(parts);
        Ok(out)
    }

    /// The dot product of a column, or of its conjugate, with x.
    fn column_dot(&self, op: Op, column: usize, x: &[W], piece: &mut [W; PART]) -> W {
        let range = self.range(column);
        let mut sum = W::default();
        for from in range.clone().step_by(PART) {
            let rows = from..(from + PART).min(range.end);
            let values = &mut piece[..rows.len()];
            self.load(rows.clone(), column, values);
            if op == Op::Adjoint {
                values.iter_mut().for_each(|value| *value = value.conj());
            }
            sum += dot(values, &x[rows]);
        }
        sum
    }

    /// A x, for a symmetric or hermitian A with one stored triangle.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_ALLOC_FAILED`.
    pub(crate) fn multiply_symmetric(&self, hermitian: bool, x: &[W]) -> Answer<Vec<W>> {
        let mut out = buffer(W::default(), self.rows)?;
        let mut piece = buffer(W::default(), self.rows)?;
        for column in 0..self.rows {
            let range = self.range(column);
            self.load(range.clone(), column, &mut piece);
            let factor = x[column];
            let mut sum = W::default();
            for (row, value) in range.zip(&piece) {
                if row == column {
                    sum += if hermitian { value.real() } else { *value } * factor;
                } else {
                    out[row] += *value * factor;
                    sum += if hermitian { value.conj() } else { *value } * x[row];
                }
            }
            out[column] += sum;
        }
        Ok(out)
    }

    /// Solves op(A) x = b for a triangular A. On entry `x` holds b.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_ALLOC_FAILED`.
    pub(crate) fn solve(&self, fill: Fill, op: Op, x: &mut [W]) -> Answer {
        let mut piece = buffer(W::default(), self.rows)?;
        // A transposed triangle is the other triangle. A lower triangle is solved forwards.
        let forwards = (fill == Fill::Lower) != op.transposes();
        for step in 0..self.rows {
            let column = if forwards { step } else { self.rows - 1 - step };
            let range = self.range(column);
            let piece = &mut piece[..range.len()];
            self.load(range.clone(), column, piece);
            if op == Op::Adjoint {
                piece.iter_mut().for_each(|value| *value = value.conj());
            }
            let (diagonal, others, rows) = match fill {
                Fill::Lower => (piece[0], &piece[1..], range.start + 1..range.end),
                Fill::Upper => {
                    let last = piece.len() - 1;
                    (piece[last], &piece[..last], range.start..range.end - 1)
                }
            };
            if op.transposes() {
                let known = dot(others, &x[rows]);
                let rest = x[column] - known;
                x[column] = if self.unit { rest } else { rest / diagonal };
            } else {
                if !self.unit {
                    x[column] = x[column] / diagonal;
                }
                let found = x[column];
                for (rest, value) in x[rows].iter_mut().zip(others) {
                    *rest -= found * *value;
                }
            }
        }
        Ok(())
    }
}
