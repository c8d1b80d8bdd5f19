//! Vectors and matrices in device memory, loaded and stored in parts.
//!
//! Invariant: all elements lie in a checked [`Region`]. Memory between the elements of a vector, and below
//! the last row of a column, is neither read nor written.

use crate::ffi::{Named, Pointer, Region};
use crate::number::{Codec, DataType, Work};
use crate::status::Answer;
use std::ops::Range;

/// Bytes that are converted at a time.
const PART: usize = 4096;

/// Elements of a region, some of which form a vector or matrix.
#[derive(Clone, Copy)]
struct Elements<W> {
    region: Region,
    codec: Codec<W>,
}

impl<W: Work> Elements<W> {
    fn new(named: Named, at: Pointer, count: u128, codec: Codec<W>) -> Answer<Self> {
        let ty: DataType = codec.ty;
        let bytes = count.saturating_mul(ty.bytes().into());
        Ok(Self { region: Region::new(named, at.address(), bytes, ty.alignment())?, codec })
    }

    /// Loads elements that lie `step` apart.
    fn load(&self, first: u64, step: i64, into: &mut [W]) {
        let size = self.codec.ty.bytes();
        let mut bytes = [0; PART];
        let count = PART / size as usize;
        let mut at = first;
        for numbers in into.chunks_mut(count) {
            let bytes = &mut bytes[..numbers.len() * size as usize];
            if step == 1 {
                self.region.read(at * size, bytes);
                at += numbers.len() as u64;
            } else {
                for element in bytes.chunks_exact_mut(size as usize) {
                    self.region.read_element(at.wrapping_mul(size), element);
                    at = at.wrapping_add_signed(step);
                }
            }
            (self.codec.decode)(bytes, numbers);
        }
    }

    /// Stores elements that lie `step` apart.
    fn store(&self, first: u64, step: i64, from: &[W]) {
        let size = self.codec.ty.bytes();
        let mut bytes = [0; PART];
        let count = PART / size as usize;
        let mut at = first;
        for numbers in from.chunks(count) {
            let bytes = &mut bytes[..numbers.len() * size as usize];
            (self.codec.encode)(numbers, bytes);
            if step == 1 {
                self.region.write(at * size, bytes);
                at += numbers.len() as u64;
            } else {
                for element in bytes.chunks_exact(size as usize) {
                    self.region.write_element(at.wrapping_mul(size), element);
                    at = at.wrapping_add_signed(step);
                }
            }
        }
    }
}

/// A vector of BLAS: with a negative increment its first element is the last in memory.
#[derive(Clone, Copy)]
pub(crate) struct Vector<W> {
    elements: Elements<W>,
    /// The number of elements.
    pub(crate) n: usize,
    increment: i64,
}

impl<W: Work> Vector<W> {
    /// `n` elements, `increment` apart, from the lowest address.
    ///
    /// # Errors
    /// As [`Region::new`].
    pub(crate) fn new(named: Named, at: Pointer, n: usize, increment: i64, codec: Codec<W>) -> Answer<Self> {
        let span = match n {
            0 => 0,
            _ => (n as u128 - 1) * u128::from(increment.unsigned_abs()) + 1,
        };
        Ok(Self { elements: Elements::new(named, at, span, codec)?, n, increment })
    }

    /// Whether all elements have the same address.
    pub(crate) fn is_one_place(&self) -> bool {
        self.increment == 0
    }

    fn position(&self, index: usize) -> u64 {
        let step = self.increment.unsigned_abs();
        if self.increment < 0 { (self.n - 1 - index) as u64 * step } else { index as u64 * step }
    }

    /// Loads elements from an index.
    pub(crate) fn load(&self, from: usize, into: &mut [W]) {
        if !into.is_empty() {
            self.elements.load(self.position(from), self.increment, into);
        }
    }

    /// Loads all of it.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_ALLOC_FAILED`.
    pub(crate) fn all(&self) -> Answer<Vec<W>> {
        let mut values = crate::status::buffer(W::default(), self.n)?;
        self.load(0, &mut values);
        Ok(values)
    }

    /// Stores elements from an index.
    pub(crate) fn store(&self, from: usize, values: &[W]) {
        if !values.is_empty() {
            self.elements.store(self.position(from), self.increment, values);
        }
    }
}

/// A matrix whose columns are `stride` apart, or a packed or banded matrix, for which the caller computes
/// positions.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<W> {
    elements: Elements<W>,
    /// How many rows.
    pub(crate) rows: usize,
    /// How many columns.
    pub(crate) columns: usize,
    /// Elements from column to column.
    pub(crate) stride: u64,
}

impl<W: Work> Matrix<W> {
    /// `rows` by `columns` elements, `stride` from column to column.
    ///
    /// # Errors
    /// As [`Region::new`].
    pub(crate) fn new(
        named: Named,
        at: Pointer,
        (rows, columns): (usize, usize),
        stride: i64,
        codec: Codec<W>,
    ) -> Answer<Self> {
        let stride = stride.unsigned_abs();
        let span = match (rows, columns) {
            (0, _) | (_, 0) => 0,
            _ => (columns as u128 - 1) * u128::from(stride) + rows as u128,
        };
        Ok(Self { elements: Elements::new(named, at, span, codec)?, rows, columns, stride })
    }

    /// A packed triangle of `n` columns.
    ///
    /// # Errors
    /// As [`Region::new`].
    pub(crate) fn packed(named: Named, at: Pointer, n: usize, codec: Codec<W>) -> Answer<Self> {
        let count = (n as u128) * (n as u128 + 1) / 2;
        Ok(Self { elements: Elements::new(named, at, count, codec)?, rows: n, columns: n, stride: 0 })
    }

    /// Loads contiguous elements from a position.
    pub(crate) fn load_run(&self, position: u64, into: &mut [W]) {
        if !into.is_empty() {
            self.elements.load(position, 1, into);
        }
    }

    /// Stores contiguous elements from a position.
    pub(crate) fn store_run(&self, position: u64, from: &[W]) {
        if !from.is_empty() {
            self.elements.store(position, 1, from);
        }
    }

    /// Loads a part of a column.
    pub(crate) fn load(&self, row: usize, column: usize, into: &mut [W]) {
        self.load_run(column as u64 * self.stride + row as u64, into);
    }

    /// Stores a part of a column.
    pub(crate) fn store(&self, row: usize, column: usize, from: &[W]) {
        self.store_run(column as u64 * self.stride + row as u64, from);
    }

    /// Loads a part of a row.
    pub(crate) fn load_row(&self, row: usize, column: usize, into: &mut [W]) {
        if !into.is_empty() {
            let first = column as u64 * self.stride + row as u64;
            self.elements.load(first, self.stride as i64, into);
        }
    }

    /// Loads a tile in column order.
    pub(crate) fn tile(&self, rows: Range<usize>, columns: Range<usize>, into: &mut [W]) {
        let height = rows.len();
        if height == 0 {
            return;
        }
        for (column, into) in columns.zip(into.chunks_exact_mut(height)) {
            self.load(rows.start, column, into);
        }
    }

    /// Loads the matrix in column order.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_ALLOC_FAILED`.
    pub(crate) fn all(&self) -> Answer<Vec<W>> {
        let count = self.rows.checked_mul(self.columns).ok_or(crate::status::Status::ALLOC_FAILED)?;
        let mut values = crate::status::buffer(W::default(), count)?;
        self.tile(0..self.rows, 0..self.columns, &mut values);
        Ok(values)
    }

    /// Stores the matrix.
    pub(crate) fn store_all(&self, from: &[W]) {
        if self.rows > 0 {
            for (column, from) in from.chunks_exact(self.rows).enumerate() {
                self.store(0, column, from);
            }
        }
    }
}
