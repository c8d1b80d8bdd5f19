//! Matrices of double precision: `mma` and `wmma` of `.f64` (PTX ISA 9.7.14 of the current manual).
//!
//! Invariant: as in [`super::matrix`]. An element of D is a sequence of fused multiply-adds in the order of
//! k, each rounded.
//!
//! # Shape
//! With g = lane / 4 and t = lane mod 4, register i of a lane holds: of A row g + 8 (i mod 2), column t + 4
//! (i / 2); of B row t + 4 i, column g; of C and D row g + 8 (i / 2), column 2 t + i mod 2. With eight rows,
//! A has one register, C and D have two. The fragments of `wmma`, which the manual leaves open, are the same.

use super::Missing;
use super::access::space_of;
use super::matrix_operands::{layout, shape, uniform, whole_warp};
use super::operands::{Bound, Operands};
use super::rounding::rnd;
use crate::bound::Exec;
use crate::lanes::{FULL, LANES, Lane};
use crate::lift::{Inputs, Operand, Target};
use ptx::isa::{Layout, MatrixShape, Sem, Slot, Space, Word};
use ptx_sem::{self as sem, Rnd};

/// The most rows of A, its columns, and the columns of B.
const M: usize = 16;
const K: usize = 16;
const N: usize = 8;

/// Row and column of an element of a lane of matrix `a`, `b`, `c` or `d`.
fn place(matrix: char, rows: usize, lane: usize, i: usize) -> (usize, usize) {
    let (g, t) = (lane / 4, lane % 4);
    match matrix {
        'a' if rows == 8 => (g, t + 4 * i),
        'a' => (g + 8 * (i % 2), t + 4 * (i / 2)),
        'b' => (t + 4 * i, g),
        _ => (g + 8 * (i / 2), 2 * t + i % 2),
    }
}

/// Registers of each lane.
fn count(matrix: char, shape: MatrixShape) -> usize {
    let (m, n, k) = (usize::from(shape.m), usize::from(shape.n), usize::from(shape.k));
    let elements = match matrix {
        'a' => m * k,
        'b' => k * n,
        _ => m * n,
    };
    elements / LANES
}

fn known(shape: MatrixShape) -> Result<MatrixShape, Missing> {
    let fits = usize::from(shape.m) <= M && usize::from(shape.n) == N && usize::from(shape.k) <= K;
    if fits { Ok(shape) } else { Err(Missing) }
}

/// `mma`, `wmma.mma`.
pub(super) fn multiply(o: &Operands<'_>) -> Bound {
    let shape = known(shape(o)?)?;
    o.look(|slot, _| matches!(slot, Slot::Alayout | Slot::Blayout));
    let rnd = if o.mods().rnd().is_some() { rnd(o)? } else { Rnd::Rn };
    let sources = |first: usize, matrix: char| -> Result<Vec<Operand<u64>>, Missing> {
        (first..first + count(matrix, shape)).map(|i| o.src::<u64>(i)).collect()
    };
    let a = sources(0, 'a')?;
    let b = sources(a.len(), 'b')?;
    let c = sources(a.len() + b.len(), 'c')?;
    let targets: Vec<Target<u64>> = (0..c.len()).map(|i| o.dst::<u64>(i)).collect::<Result<_, _>>()?;
    let (rows, length) = (usize::from(shape.m), usize::from(shape.k));
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        whole_warp(exec.mask)?;
        let inputs = Inputs::of(exec);
        let (mut left, mut right, mut sums) = ([[0.0; K]; M], [[0.0; K]; N], [[0.0; N]; M]);
        each(&a, inputs, |lane, i, value| {
            let (row, column) = place('a', rows, lane, i);
            left[row][column] = value;
        });
        each(&b, inputs, |lane, i, value| {
            let (row, column) = place('b', rows, lane, i);
            right[column][row] = value;
        });
        each(&c, inputs, |lane, i, value| {
            let (row, column) = place('c', rows, lane, i);
            sums[row][column] = value;
        });
        for (i, target) in targets.iter().enumerate() {
            let value = Lane(std::array::from_fn(|lane| {
                let (row, column) = place('d', rows, lane, i);
                sem::mma_f64(sums[row][column], &left[row][..length], &right[column][..length], rnd).to_bits()
            }));
            target.write(exec.regs, FULL, &value);
        }
        Ok(())
    }))
}

fn each(sources: &[Operand<u64>], inputs: Inputs<'_>, mut f: impl FnMut(usize, usize, f64)) {
    for (i, source) in sources.iter().enumerate() {
        let values = source.get(inputs);
        for (lane, value) in values.0.iter().enumerate() {
            f(lane, i, f64::from_bits(*value));
        }
    }
}

/// The memory layout of a matrix: the address of each element of a lane.
struct Stored {
    space: Space,
    address: crate::lift::Address,
    stride: Operand<u32>,
    matrix: char,
    by_rows: bool,
}

impl Stored {
    fn new(o: &Operands<'_>, matrix: char, shape: MatrixShape, stride: usize) -> Result<Self, Missing> {
        let space = space_of(o, 0);
        if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
            return Err(Missing);
        }
        let by_rows = layout(o, Slot::Layout)? == Layout::Row;
        let (rows, columns) = match matrix {
            'a' => (shape.m, shape.k),
            'b' => (shape.k, shape.n),
            _ => (shape.m, shape.n),
        };
        let default = u32::from(if by_rows { columns } else { rows });
        let stride = if o.given(stride) { o.src::<u32>(stride)? } else { Operand::splat(default) };
        Ok(Self { space, address: o.address(0)?, stride, matrix, by_rows })
    }

    fn addresses(&self, inputs: Inputs<'_>, i: usize) -> Result<Lane<u64>, Box<crate::trap::Fault>> {
        let mut scratch = None;
        let address = self.address.read(inputs, &mut scratch);
        let base = uniform(|lane| address.at(lane), "addresses")?;
        let stride = self.stride.get(inputs);
        let stride = u64::from(uniform(|lane| stride.0[lane], "strides")?);
        Ok(Lane(std::array::from_fn(|lane| {
            let (row, column) = place(self.matrix, 8, lane, i);
            let (line, at) = if self.by_rows { (row, column) } else { (column, row) };
            base.wrapping_add(8 * (line as u64 * stride + at as u64))
        })))
    }
}

/// `wmma.load`
pub(super) fn load(o: &Operands<'_>) -> Bound {
    o.ignore_word(Word::Load);
    o.ignore(Slot::Matrix);
    let shape = known(shape(o)?)?;
    let matrix = o.mods().matrix().ok_or(Missing)?;
    let stored = Stored::new(o, matrix, shape, 1)?;
    let targets: Vec<Target<u64>> =
        (0..count(matrix, shape)).map(|i| o.dst::<u64>(i)).collect::<Result<_, _>>()?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        whole_warp(exec.mask)?;
        let mut values = [Lane::splat(0_u64); 2];
        for (i, value) in values.iter_mut().enumerate().take(targets.len()) {
            let addrs = stored.addresses(Inputs::of(exec), i)?;
            exec.mem.load(stored.space, &addrs, FULL, Sem::Weak, value)?;
        }
        for (target, value) in targets.iter().zip(&values) {
            target.write(exec.regs, FULL, value);
        }
        Ok(())
    }))
}

/// `wmma.store`
pub(super) fn store(o: &Operands<'_>) -> Bound {
    o.look(|_, word| matches!(word, Word::Store | Word::D));
    let shape = known(shape(o)?)?;
    let sources: Vec<Operand<u64>> =
        (1..=count('d', shape)).map(|i| o.src::<u64>(i)).collect::<Result<_, _>>()?;
    let stored = Stored::new(o, 'd', shape, 1 + sources.len())?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        whole_warp(exec.mask)?;
        // All addresses are checked before any element is written.
        for i in 0..sources.len() {
            let addrs = stored.addresses(Inputs::of(exec), i)?;
            exec.mem.load(stored.space, &addrs, FULL, Sem::Weak, &mut Lane::splat(0_u64))?;
        }
        for (i, source) in sources.iter().enumerate() {
            let inputs = Inputs::of(exec);
            let (addrs, values) = (stored.addresses(inputs, i)?, source.get(inputs));
            exec.mem.store(stored.space, &addrs, FULL, Sem::Weak, &values)?;
        }
        Ok(())
    }))
}
