//! Matrices as operands: transposition, and the elements that are implied by symmetry.
//!
//! Invariant: of symmetric, hermitian and triangular matrices only the named triangle is read. The imaginary
//! part of a hermitian diagonal and the elements of a unit diagonal are not used.

use crate::log;
use crate::number::Work;
use crate::status::{Answer, Status};
use crate::storage::Matrix;
use std::ops::Range;

/// `cublasFillMode_t`: which triangle is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Lower,
    Upper,
}

impl Fill {
    /// The fill mode with a number of the public header.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE`.
    pub(crate) fn of(code: i64) -> Answer<Self> {
        match code {
            0 => Ok(Self::Lower),
            1 => Ok(Self::Upper),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// The rows of a column that lie in the triangle of a matrix with `rows` rows.
    pub(crate) fn rows(self, column: usize, rows: usize) -> Range<usize> {
        match self {
            Self::Lower => column.min(rows)..rows,
            Self::Upper => 0..(column + 1).min(rows),
        }
    }
}

/// `cublasOperation_t`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Plain,
    Transposed,
    Adjoint,
}

impl Op {
    /// The operation with a number of the public header.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE`; `CUBLAS_STATUS_NOT_SUPPORTED` for `CUBLAS_OP_CONJG`, which the
    /// documentation calls a placeholder.
    pub(crate) fn of(code: i64) -> Answer<Self> {
        match code {
            0 => Ok(Self::Plain),
            1 => Ok(Self::Transposed),
            2 => Ok(Self::Adjoint),
            3 => log::refused("CUBLAS_OP_CONJG"),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Whether rows and columns are exchanged.
    pub(crate) fn transposes(self) -> bool {
        self != Self::Plain
    }

    /// Exchanges rows and columns if the operation transposes: from op(A) to A, or back.
    pub(crate) fn turn<T>(self, (rows, columns): (T, T)) -> (T, T) {
        if self.transposes() { (columns, rows) } else { (rows, columns) }
    }
}

/// `cublasDiagType_t`: whether the diagonal is taken to be 1, regardless of stored values.
pub(crate) fn is_unit(code: i64) -> Answer<bool> {
    match code {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// `cublasSideMode_t`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

impl Side {
    /// The side with a number of the public header.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE`.
    pub(crate) fn of(code: i64) -> Answer<Self> {
        match code {
            0 => Ok(Self::Left),
            1 => Ok(Self::Right),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}

/// The meaning of the stored elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    General,
    Symmetric(Fill),
    Hermitian(Fill),
    Triangular { fill: Fill, unit: bool },
}

/// op(A)
#[derive(Clone, Copy)]
pub(crate) struct Operand<W> {
    pub(crate) matrix: Matrix<W>,
    pub(crate) form: Form,
    pub(crate) op: Op,
}

impl<W: Work> Operand<W> {
    /// A matrix all of whose elements are stored.
    pub(crate) fn general(matrix: Matrix<W>, op: Op) -> Self {
        Self { matrix, form: Form::General, op }
    }

    /// Loads a tile of op(A). Returns the distances between rows and between columns, in elements.
    pub(crate) fn tile(&self, rows: Range<usize>, columns: Range<usize>, into: &mut [W]) -> [usize; 2] {
        let (rows, columns) = self.op.turn((rows, columns));
        let height = rows.len();
        self.stored(rows, columns, into);
        if self.op == Op::Adjoint {
            into.iter_mut().for_each(|value| *value = value.conj());
        }
        if self.op.transposes() { [height, 1] } else { [1, height] }
    }

    /// Loads a tile of A in column order.
    fn stored(&self, rows: Range<usize>, columns: Range<usize>, into: &mut [W]) {
        let height = rows.len();
        if height == 0 {
            return;
        }
        match self.form {
            Form::General => self.matrix.tile(rows, columns, into),
            Form::Symmetric(fill) | Form::Hermitian(fill) => {
                for (column, into) in columns.zip(into.chunks_exact_mut(height)) {
                    self.mirrored(fill, rows.clone(), column, into);
                }
            }
            Form::Triangular { fill, unit } => {
                for (column, into) in columns.zip(into.chunks_exact_mut(height)) {
                    let stored = clip(fill.rows(column, self.matrix.rows), &rows);
                    into.fill(W::default());
                    let at = stored.start - rows.start;
                    self.matrix.load(stored.start, column, &mut into[at..at + stored.len()]);
                    if unit && rows.contains(&column) {
                        into[column - rows.start] = W::ONE;
                    }
                }
            }
        }
    }

    /// Loads a part of a column of a symmetric or hermitian matrix.
    fn mirrored(&self, fill: Fill, rows: Range<usize>, column: usize, into: &mut [W]) {
        let is_hermitian = matches!(self.form, Form::Hermitian(_));
        let stored = clip(fill.rows(column, self.matrix.rows), &rows);
        let at = stored.start - rows.start;
        self.matrix.load(stored.start, column, &mut into[at..at + stored.len()]);
        let others = match fill {
            Fill::Lower => rows.start..stored.start,
            Fill::Upper => stored.end..rows.end,
        };
        let at = others.start - rows.start;
        let others_into = &mut into[at..at + others.len()];
        self.matrix.load_row(column, others.start, others_into);
        if is_hermitian {
            others_into.iter_mut().for_each(|value| *value = value.conj());
            if rows.contains(&column) {
                let diagonal = &mut into[column - rows.start];
                *diagonal = diagonal.real();
            }
        }
    }
}

/// The intersection of two ranges; if it is empty, an empty range inside the second.
fn clip(range: Range<usize>, within: &Range<usize>) -> Range<usize> {
    let start = range.start.clamp(within.start, within.end);
    start..range.end.clamp(start, within.end)
}
