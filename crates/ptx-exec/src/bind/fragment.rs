//! The place of each element of a matrix in the registers of a warp (PTX ISA §9.7.13.3, §9.7.13.5).
//!
//! Matrices are stored by *lines*: rows of A, columns of B, rows of C and D. So the element of C or D at (m,
//! n) needs line m of A and line n of B, and the elements of a line are consecutive.
//!
//! Invariant: every element of a matrix has at least one place in the warp, and every place holds an element,
//! so scattered elements can be gathered.
//!
//! The manual leaves the fragments of `wmma` open. Ours consist of the tiles that `mma` has for shapes with
//! 16 rows, in all types and shapes, independent of the layout in memory; so they can be used as fragments of
//! those shapes too. Elements of less than 32 bits fill a register from its low bits up.

use crate::lanes::{LANES, Lane};
use ptx::isa::{Layout, MatrixShape};

/// The most elements of a matrix (16×64).
pub(super) const MOST: usize = 1024;

/// The most registers of a fragment.
pub(super) const REGISTERS: usize = 8;

/// One of the three kinds of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// M×K, by rows.
    A,
    /// K×N, by columns.
    B,
    /// C or D: M×N, by rows.
    Accumulator,
}

impl Matrix {
    /// Number and length of its lines, in elements.
    pub(super) fn lines(self, shape: MatrixShape) -> (usize, usize) {
        let (m, n, k) = (usize::from(shape.m), usize::from(shape.n), usize::from(shape.k));
        match self {
            Matrix::A => (m, k),
            Matrix::B => (n, k),
            Matrix::Accumulator => (m, n),
        }
    }
}

/// The places of the elements of one matrix, or of several matrices of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Registers of each lane.
    registers: usize,
    /// Bits of an element.
    bits: u32,
    /// The element at each place, ordered by register, then lane, then place in the register.
    elements: Vec<u16>,
}

impl Fragment {
    /// Fills the places by `element(lane, e)`, for the e-th element of each lane.
    fn new(registers: usize, bits: u32, element: impl Fn(usize, usize) -> usize) -> Self {
        let each = (32 / bits) as usize;
        let mut elements = Vec::with_capacity(registers * LANES * each);
        for register in 0..registers {
            for lane in 0..LANES {
                elements.extend((0..each).map(|i| element(lane, register * each + i) as u16));
            }
        }
        Self { registers, bits, elements }
    }

    /// A matrix of `lines` lines of `length` elements in tiles.
    ///
    /// # Shape
    /// A tile has 8 lines. Lane l holds consecutive elements of line l / 4, beginning at (l mod 4) times
    /// their number: as many as fill a register; two for accumulators. The tiles are in successive registers:
    /// for A and accumulators in the order of lines first, for B along the lines first. If registers remain
    /// (`.f16` multiplicands of `wmma` always have eight), the tiles are repeated.
    pub(super) fn tiled(
        matrix: Matrix,
        (lines, length): (usize, usize),
        bits: u32,
        registers: usize,
    ) -> Self {
        let run = if matrix == Matrix::Accumulator { 2 } else { (32 / bits) as usize };
        let (down, along) = (lines / 8, length / (4 * run));
        Self::new(registers, bits, |lane, e| {
            let tile = e / run % (down * along);
            let (block, step) = match matrix {
                Matrix::A | Matrix::Accumulator => (tile % down, tile / down),
                Matrix::B => (tile / along, tile % along),
            };
            (block * 8 + lane / 4) * length + (step * 4 + lane % 4) * run + e % run
        })
    }

    /// The four matrices of `mma.m8n8k4`; accumulators have elements of 16 or 32 bits. `layout` is that of A
    /// or B.
    ///
    /// # Shape
    /// Matrix q belongs to lanes 4q..4q+3 (low group) and 16+4q..16+4q+3 (high group).
    ///
    /// # Source
    /// PTX ISA §9.7.13.5. For A by columns the text for lane 16 contradicts the table and the shape; we
    /// follow the table.
    pub(super) fn quads(matrix: Matrix, bits: u32, layout: Layout) -> Self {
        let high = |lane: usize| 4 * (lane / 16);
        let place = |lane: usize, (lines, length): (usize, usize), line: usize, at: usize| {
            (lane % 16 / 4 * lines + line) * length + at
        };
        match matrix {
            Matrix::A | Matrix::B => {
                // If memory has line i whole, lane i has all of it; otherwise it has element i of four lines.
                let whole = (matrix == Matrix::A) == (layout == Layout::Row);
                Self::new(2, bits, |lane, e| {
                    let i = lane % 4;
                    let (line, at) = if whole { (i, e) } else { (e, i) };
                    place(lane, (8, 4), line + high(lane), at)
                })
            }
            Matrix::Accumulator if bits == 16 => {
                Self::new(4, bits, |lane, e| place(lane, (8, 8), lane % 4 + high(lane), e))
            }
            Matrix::Accumulator => Self::new(8, bits, |lane, e| {
                let i = lane % 4;
                place(lane, (8, 8), (i & 1) + (e & 2) + high(lane), (i & 2) + (e & 5))
            }),
        }
    }

    /// Registers of each lane.
    pub fn registers(&self) -> usize {
        self.registers
    }

    /// Bits of an element.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The element at each place, ordered by register, then lane, then place in the register from the low
    /// bits up: its line times the length of lines, plus its place in the line.
    pub fn elements(&self) -> &[u16] {
        &self.elements
    }

    /// Gathers the elements from the registers of the warp; `value` decodes their bits.
    pub(super) fn gather<T: Copy + Default>(
        &self,
        registers: &[Lane<u32>],
        value: impl Fn(u32) -> T,
    ) -> [T; MOST] {
        let mut all = [T::default(); MOST];
        let each = (32 / self.bits) as usize;
        let mask = u32::MAX >> (32 - self.bits);
        let words = registers.iter().flat_map(|register| register.0);
        for (word, elements) in words.zip(self.elements.chunks_exact(each)) {
            for (i, element) in elements.iter().enumerate() {
                all[usize::from(*element)] = value(word >> (i as u32 * self.bits) & mask);
            }
        }
        all
    }

    /// Scatters the bits of the elements to the registers of the warp.
    pub(super) fn scatter(&self, all: &[u32; MOST]) -> [Lane<u32>; REGISTERS] {
        let mut registers = [Lane::splat(0); REGISTERS];
        let each = (32 / self.bits) as usize;
        let words = registers.iter_mut().flat_map(|register| &mut register.0);
        for (word, elements) in words.zip(self.elements.chunks_exact(each)) {
            for (i, element) in elements.iter().enumerate() {
                *word |= all[usize::from(*element)] << (i as u32 * self.bits);
            }
        }
        registers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Element e of a lane, as (line, place in the line) of a matrix with lines of `length`.
    fn of(fragment: &Fragment, length: usize, lane: usize, e: usize) -> (usize, usize) {
        let each = (32 / fragment.bits) as usize;
        let element = fragment.elements[(e / each * LANES + lane) * each + e % each];
        (usize::from(element) / length, usize::from(element) % length)
    }

    #[test]
    fn every_element_has_as_many_places_as_any_other() {
        let shapes = [(16, 16, 16), (8, 32, 16), (32, 8, 16), (8, 8, 32), (16, 8, 8), (16, 8, 16)];
        for (m, n, k) in shapes {
            let shape = MatrixShape { m, n, k };
            for matrix in [Matrix::A, Matrix::B, Matrix::Accumulator] {
                let lines = matrix.lines(shape);
                let count = lines.0 * lines.1;
                let widths = if k == 32 { [4, 32] } else { [16, if m == 16 && n == 8 { 16 } else { 8 }] };
                for bits in widths.into_iter().chain([32]) {
                    let multiplicand = matrix != Matrix::Accumulator;
                    if multiplicand == (bits == 32) || !multiplicand && bits < 16 {
                        continue;
                    }
                    let registers = (count * bits as usize / 1024).max(1);
                    for registers in [registers, if bits == 16 { 8 } else { registers }] {
                        let fragment = Fragment::tiled(matrix, lines, bits, registers);
                        let mut times = vec![0; count];
                        fragment.elements.iter().for_each(|e| times[usize::from(*e)] += 1);
                        let expected = fragment.elements.len() / count;
                        assert!(times.iter().all(|t| *t == expected), "{matrix:?} of {shape:?}, {bits} bits");
                    }
                }
            }
        }
    }

    #[test]
    fn quads_are_the_tables_of_the_manual() {
        let (row, col) = (Layout::Row, Layout::Col);
        let a_row = Fragment::quads(Matrix::A, 16, row);
        let a_col = Fragment::quads(Matrix::A, 16, col);
        let b_row = Fragment::quads(Matrix::B, 16, row);
        let b_col = Fragment::quads(Matrix::B, 16, col);
        // (line, place): rows of A, columns of B; lines 8 to 15 belong to the second matrix.
        assert_eq!([0, 1, 2, 3].map(|e| of(&a_row, 4, 18, e)), [(6, 0), (6, 1), (6, 2), (6, 3)]);
        assert_eq!([0, 1, 2, 3].map(|e| of(&a_col, 4, 18, e)), [(4, 2), (5, 2), (6, 2), (7, 2)]);
        assert_eq!([0, 1, 2, 3].map(|e| of(&b_row, 4, 18, e)), [(4, 2), (5, 2), (6, 2), (7, 2)]);
        assert_eq!([0, 1, 2, 3].map(|e| of(&b_col, 4, 21, e)), [(13, 0), (13, 1), (13, 2), (13, 3)]);
        let c = Fragment::quads(Matrix::Accumulator, 32, row);
        let lane_19 = [(5, 2), (5, 3), (7, 2), (7, 3), (5, 6), (5, 7), (7, 6), (7, 7)];
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|e| of(&c, 8, 19, e)), lane_19);
        let c = Fragment::quads(Matrix::Accumulator, 16, row);
        assert_eq!([0, 7].map(|e| of(&c, 8, 17, e)), [(5, 0), (5, 7)]);
    }
}
