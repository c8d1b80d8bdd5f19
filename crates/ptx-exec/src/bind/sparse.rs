//! The columns of a sparse A in `mma.sp`: metadata selects half of every group of neighbouring columns (PTX
//! ISA 9.7.14.6 of the current manual).
//!
//! Invariant: a column is below K for all metadata, so it can be used as an index. Where the manual leaves
//! the result undefined (pairs that are equal or out of order), the result follows from the bits. Words of
//! lanes that the selector excludes are not read.
//!
//! # Shape
//! A row of A has K / W chunks of W neighbours, of which S are stored; a nibble of metadata per chunk selects
//! them. W and S are 4 and 2 for elements of 16 and 8 bits, 2 and 1 for `.tf32`, and 8 and 4 (in pairs) for
//! elements of 4 bits. The nibbles of a row are in words of the four lanes that hold the row; the selector
//! chooses the lanes if not all of them are needed.
//!
//! For 8-bit elements with k = 32 and 4-bit elements with k = 64, both with eight nibbles per row, the manual
//! does not say whether a lane holds one row or half of two rows. Chosen: one row per lane, as for twice that
//! k; not compared with a device.

use crate::lanes::Lane;
use crate::lift::Operand;
use ptx::isa::Ty;

/// The most stored elements of a row of A.
pub(super) const STORED: usize = 64;

/// The sparse A of a product.
pub(super) struct Sparse {
    /// The metadata.
    pub(super) words: Operand<u32>,
    /// The lanes that hold the metadata.
    pub(super) selector: usize,
    /// Type of the elements.
    pub(super) ty: Ty,
    /// Columns of the dense A.
    pub(super) k: usize,
}

impl Sparse {
    /// The column of each stored element of a row.
    pub(super) fn columns(&self, words: &Lane<u32>, row: usize) -> [u8; STORED] {
        let mut columns = [0; STORED];
        for (at, column) in columns.iter_mut().enumerate().take(self.k / 2) {
            *column = self.column(words, row, at) as u8;
        }
        columns
    }

    fn column(&self, words: &Lane<u32>, row: usize, at: usize) -> usize {
        let bits = self.ty.bits();
        if bits == 32 {
            return 2 * at + (self.nibble(words, row, at) >> 1 & 1);
        }
        if bits == 4 {
            let chunk = at / 4;
            let index = self.nibble(words, row, chunk) >> (at / 2 % 2 * 2) & 3;
            return 8 * chunk + 2 * index + at % 2;
        }
        let chunk = at / 2;
        4 * chunk + (self.nibble(words, row, chunk) >> (at % 2 * 2) & 3)
    }

    /// The nibble of a chunk of a row: in one of the four lanes, at a place of its word.
    fn nibble(&self, words: &Lane<u32>, row: usize, chunk: usize) -> usize {
        let bits = self.ty.bits();
        let (width, below, high) = (
            if bits == 32 {
                2
            } else if bits == 4 {
                8
            } else {
                4
            },
            row % 8,
            row / 8,
        );
        let selector = self.selector;
        let (lane, place) = match (self.k / width, bits) {
            (..=4, _) => (selector % 4, 4 * high + chunk),
            (..=8, 16 | 32) => (2 * (selector % 2) + chunk / 4, 4 * high + chunk % 4),
            (..=8, _) => (2 * (selector % 2) + high, chunk),
            _ => (high + 2 * (chunk / 8), chunk % 8),
        };
        (words.0[4 * below + lane] >> (4 * place) & 15) as usize
    }
}
