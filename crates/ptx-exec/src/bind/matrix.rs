//! Matrix products of a warp: `wmma`, `mma` (PTX ISA §9.7.13). Double precision is in [`super::matrix_f64`],
//! loads and stores of 8x8 matrices are in [`super::ldmatrix`].
//!
//! Invariant: all 32 lanes act, or the warp traps. A warp with lanes that have exited or do not exist, or
//! whose lanes disagree about an address or stride, has no defined result. A load or store accesses memory in
//! one access: all lanes succeed, or none has an effect.
//!
//! The places of elements are in [`super::fragment`]; the arithmetic is in `ptx_sem`.

use super::access::space_of;
use super::fragment::{Fragment, MOST, Matrix, REGISTERS};
use super::matrix_operands::{layout, shape, uniform, whole_warp};
use super::operands::{Bound, Operands};
use super::product::{self, Product, Types, lines};
use super::sparse::{STORED, Sparse};
use super::{Missing, ldmatrix, matrix_f64};
use crate::bound::Exec;
use crate::lanes::{FULL, LANES, Lane, Registers};
use crate::lift::{Address, Inputs, Operand, Target};
use crate::trap::{Fault, FaultAccess, FaultKind};
use ptx::ir::Src;
use ptx::isa::{Layout, MatrixShape, Op, Sem, Slot, Space, Ty, Word};
use ptx_sem as sem;

/// Whether this module binds instructions with this operation.
pub(super) fn is_matrix(op: Op) -> bool {
    matches!(
        op,
        Op::WmmaLoad | Op::WmmaStore | Op::WmmaMma | Op::Mma | Op::Ldmatrix | Op::Stmatrix | Op::Movmatrix
    )
}

/// The step of a matrix instruction, for all lanes of a warp.
pub(super) fn matrix(o: &Operands<'_>) -> Bound {
    o.look(|_, word| matches!(word, Word::Sync | Word::Aligned));
    let op = o.inst.op;
    let double = [Slot::Type, Slot::Dtype].iter().any(|slot| o.mods().ty_in(*slot) == Some(Ty::F64));
    if double {
        return in_double(o);
    }
    if op == Op::WmmaLoad {
        wmma_load(o)
    } else if op == Op::WmmaStore {
        wmma_store(o)
    } else if matches!(op, Op::WmmaMma | Op::Mma) {
        o.look(|_, word| matches!(word, Word::Mma | Word::Xor | Word::And | Word::Popc));
        multiply(o)
    } else if op == Op::Ldmatrix {
        ldmatrix::load(o)
    } else if op == Op::Stmatrix {
        ldmatrix::store(o)
    } else if op == Op::Movmatrix {
        ldmatrix::transpose(o)
    } else {
        Err(Missing)
    }
}

/// The step of an instruction with `.f64`.
fn in_double(o: &Operands<'_>) -> Bound {
    o.look(|slot, word| {
        matches!(slot, Slot::Type | Slot::Dtype | Slot::Atype | Slot::Btype | Slot::Ctype)
            || word == Word::Mma
    });
    if o.inst.op == Op::WmmaLoad {
        matrix_f64::load(o)
    } else if o.inst.op == Op::WmmaStore {
        matrix_f64::store(o)
    } else {
        matrix_f64::multiply(o)
    }
}

/// The alignment of rows that CUDA's `load_matrix_sync` requires in bytes: 8 halves, or 4 floats.
const STRIDE_BYTES: u64 = 16;

/// The memory layout of a matrix, without its address.
struct Stored {
    space: Space,
    address: Address,
    /// Distance of rows, in elements of the type.
    stride: Operand<u32>,
    /// Bits of an element of the type.
    bits: u32,
    /// Bytes per lane: the matrix in memory order, divided into 32 chunks.
    chunk: u64,
    /// Chunks per row, or per column in column order.
    chunks: u64,
    /// The alignment of the addresses of rows.
    align: u64,
    /// The index of each element, in memory order.
    order: Vec<u16>,
    /// Bits of an element of the fragment.
    element_bits: u32,
}

impl Stored {
    /// The layout for a load or store; the stride is source `stride`, the address is source 0.
    fn new(
        o: &Operands<'_>,
        matrix: Matrix,
        shape: MatrixShape,
        ty: Ty,
        registers: usize,
        stride: usize,
    ) -> Result<Self, Missing> {
        let space = space_of(o, 0);
        if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
            return Err(Missing);
        }
        let (lines, length) = lines(matrix, shape, ty);
        let by_lines = (layout(o, Slot::Layout)? == Layout::Row) == (matrix != Matrix::B);
        let element_bits = product::element_bits(ty).ok_or(Missing)?;
        if !by_lines && ty.bits() < 8 {
            return Err(Missing);
        }
        let (rows, row) = if by_lines { (lines, length) } else { (length, lines) };
        let index = |i: usize| if by_lines { i } else { i % row * length + i / row };
        let bits = ty.bits();
        let row_bytes = row as u64 * u64::from(element_bits) / 8;
        let default = row as u32 * element_bits / bits;
        let stride = if o.given(stride) { o.src::<u32>(stride)? } else { Operand::splat(default) };
        let chunk = (rows as u64 * row_bytes) / LANES as u64;
        Ok(Self {
            space,
            address: o.address(0)?,
            stride,
            bits,
            chunk,
            chunks: row_bytes / chunk,
            // The size of the fragment, but no more than the 16 bytes that CUDA requires of the leading
            // dimension. If the manual's default stride violates its own rule (rows of eight `.f16`), the
            // size of a row.
            align: (registers as u64 * 4).min(row_bytes).min(STRIDE_BYTES),
            order: (0..rows * row).map(|i| index(i) as u16).collect(),
            element_bits,
        })
    }

    /// The address of each lane's chunk.
    fn addresses(&self, inputs: Inputs<'_>, registers: usize, write: bool) -> Result<Lane<u64>, Box<Fault>> {
        let (mut scratch, mut stride) = (None, None);
        let address = self.address.read(inputs, &mut scratch);
        let base = uniform(|lane| address.at(lane), "addresses")?;
        let stride = self.stride.read(inputs, &mut stride);
        let stride = uniform(|lane| stride.0[lane], "strides")?;
        let stride_bits = u64::from(stride) * u64::from(self.bits);
        let size = registers as u64 * 4;
        let misaligned = |address: u64| {
            let access = FaultAccess { address, bytes: size as u32, space: self.space, write };
            Box::new(Fault { kind: FaultKind::Misaligned, lane: 0, access: Some(access) })
        };
        if !base.is_multiple_of(size) {
            return Err(misaligned(base));
        }
        if !stride_bits.is_multiple_of(self.align * 8) {
            return Err(misaligned(base.wrapping_add(stride_bits / 8)));
        }
        Ok(Lane(std::array::from_fn(|lane| {
            let (row, at) = (lane as u64 / self.chunks, lane as u64 % self.chunks);
            base.wrapping_add(row * (stride_bits / 8)).wrapping_add(at * self.chunk)
        })))
    }

    /// Calls `f` with the index of each element, and with its lane, word and shift in the chunks.
    fn each(&self, mut f: impl FnMut(usize, usize, usize, u32)) {
        let per_chunk = self.chunk as usize * 8 / self.element_bits as usize;
        let per_word = 32 / self.element_bits as usize;
        for (lane, chunk) in self.order.chunks_exact(per_chunk).enumerate() {
            for (i, element) in chunk.iter().enumerate() {
                f(usize::from(*element), lane, i / per_word, (i % per_word) as u32 * self.element_bits);
            }
        }
    }
}

fn wmma_load(o: &Operands<'_>) -> Bound {
    o.ignore_word(Word::Load);
    o.ignore(Slot::Matrix);
    let name = o.mods().matrix().ok_or(Missing)?;
    let matrix = match name {
        'a' => Matrix::A,
        'b' => Matrix::B,
        'c' => Matrix::Accumulator,
        _ => return Err(Missing),
    };
    let (shape, ty) = (shape(o)?, o.ty()?);
    let fragment = product::tiled(o.mods(), name, matrix, shape, ty).ok_or(Missing)?;
    let stored = Stored::new(o, matrix, shape, ty, fragment.registers(), 1)?;
    match stored.chunk {
        4 => load::<1, 1>(o, fragment, stored),
        8 => load::<2, 1>(o, fragment, stored),
        16 => load::<4, 1>(o, fragment, stored),
        32 => load::<4, 2>(o, fragment, stored),
        _ => Err(Missing),
    }
}

/// Loads chunks by `PIECES` accesses of `N` words, each aligned to its size: at most [`STRIDE_BYTES`].
fn load<const N: usize, const PIECES: usize>(o: &Operands<'_>, fragment: Fragment, stored: Stored) -> Bound {
    let targets = targets(o, fragment.registers())?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        whole_warp(exec.mask)?;
        let addrs = stored.addresses(Inputs::of(exec), fragment.registers(), false)?;
        let mut words = [[Lane::splat(0_u32); N]; PIECES];
        for (piece, words) in words.iter_mut().enumerate() {
            exec.mem.load_vector(
                stored.space,
                &piece_of::<N>(&addrs, piece),
                FULL,
                Sem::Weak,
                words.each_mut(),
            )?;
        }
        let words = words.as_flattened();
        let mask = u32::MAX >> (32 - stored.element_bits);
        let mut elements = [0; MOST];
        stored.each(|index, lane, word, shift| elements[index] = words[word].0[lane] >> shift & mask);
        write(&targets, exec.regs, &fragment.scatter(&elements));
        Ok(())
    }))
}

fn wmma_store(o: &Operands<'_>) -> Bound {
    o.look(|_, word| matches!(word, Word::Store | Word::D));
    let (shape, ty) = (shape(o)?, o.ty()?);
    let fragment = product::tiled(o.mods(), 'd', Matrix::Accumulator, shape, ty).ok_or(Missing)?;
    let registers = fragment.registers();
    let stored = Stored::new(o, Matrix::Accumulator, shape, ty, registers, 1 + registers)?;
    match stored.chunk {
        8 => store::<2, 1>(o, fragment, stored),
        16 => store::<4, 1>(o, fragment, stored),
        32 => store::<4, 2>(o, fragment, stored),
        _ => Err(Missing),
    }
}

/// The addresses of a piece of each chunk.
fn piece_of<const N: usize>(chunks: &Lane<u64>, piece: usize) -> Lane<u64> {
    Lane(chunks.0.map(|chunk| chunk.wrapping_add((piece * N * size_of::<u32>()) as u64)))
}

/// As [`load`]. If a chunk has several pieces, all are checked before any is written.
fn store<const N: usize, const PIECES: usize>(o: &Operands<'_>, fragment: Fragment, stored: Stored) -> Bound {
    let sources = sources(o, 1, fragment.registers())?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        whole_warp(exec.mask)?;
        let inputs = Inputs::of(exec);
        let addrs = stored.addresses(inputs, fragment.registers(), true)?;
        let elements = fragment.gather(&read(&sources, inputs)[..sources.len()], |bits| bits);
        let mut words = [[Lane::splat(0_u32); N]; PIECES];
        stored.each(|index, lane, word, shift| words[word / N][word % N].0[lane] |= elements[index] << shift);
        for piece in 1..PIECES {
            let mut seen = [Lane::splat(0_u32); N];
            let addrs = piece_of::<N>(&addrs, piece);
            exec.mem.load_vector(stored.space, &addrs, FULL, Sem::Weak, seen.each_mut())?;
        }
        for (piece, words) in words.iter().enumerate() {
            let addrs = piece_of::<N>(&addrs, piece);
            exec.mem.store_vector(stored.space, &addrs, FULL, Sem::Weak, words.each_ref())?;
        }
        Ok(())
    }))
}

/// Consecutive sources that are registers of a fragment.
fn sources(o: &Operands<'_>, first: usize, count: usize) -> Result<Vec<Operand<u32>>, Missing> {
    (first..first + count).map(|i| o.src::<u32>(i)).collect()
}

/// The destinations that are registers of a fragment.
fn targets(o: &Operands<'_>, count: usize) -> Result<Vec<Target<u32>>, Missing> {
    (0..count).map(|i| o.dst::<u32>(i)).collect()
}

fn read(sources: &[Operand<u32>], inputs: Inputs<'_>) -> [Lane<u32>; REGISTERS] {
    let mut values = [Lane::splat(0); REGISTERS];
    for (value, source) in values.iter_mut().zip(sources) {
        *value = source.get(inputs);
    }
    values
}

fn write(targets: &[Target<u32>], regs: &mut Registers, values: &[Lane<u32>; REGISTERS]) {
    for (target, value) in targets.iter().zip(values) {
        target.write(regs, FULL, value);
    }
}

/// A product with the metadata of A, if A is sparse.
struct Whole {
    product: Product,
    sparse: Option<Sparse>,
}

/// `wmma.mma`, `mma`.
fn multiply(o: &Operands<'_>) -> Bound {
    o.look(|slot, _| {
        use Slot::{Alayout, Atype, Blayout, Btype, Ctype, Dtype, Mode, Shape};
        matches!(slot, Shape | Alayout | Blayout | Dtype | Atype | Btype | Ctype | Mode)
    });
    let product = Product::of(o.mods()).ok_or(Missing)?;
    let (types, b_type) = (product.types, product.types.b);
    let sparse = if product.sparse {
        let first = product.a.registers() + product.b.registers() + product.c.registers();
        let Src::Imm(selector) = o.src_at(first + 1)? else { return Err(Missing) };
        let words = o.src::<u32>(first)?;
        Some(Sparse { words, selector: *selector as usize, ty: types.a, k: product.length })
    } else {
        None
    };
    let product = Whole { product, sparse };
    let clamp = o.has(Word::Satfinite);
    if let (Some(a), Some(b)) = (integer(types.a), integer(b_type)) {
        return multiply_int(o, product, &types, a, b, clamp);
    }
    if let (Some(a), Some(b)) = (eight_bits(types.a), eight_bits(b_type)) {
        return multiply_eight(o, product, &types, a, b);
    }
    if b_type != types.a {
        return Err(Missing);
    }
    super::by_type! { types.a;
        F16 => multiply_f16(o, product, &types, clamp),
        // A `.bf16` is the upper half of an `.f32`; of a `.tf32` the low bits are ignored.
        Bf16 => multiply_f32(o, product, &types, |bits| f32::from_bits(bits << 16)),
        Tf32 => multiply_f32(o, product, &types, |bits| f32::from_bits(bits & 0xffff_e000)),
        B1 => multiply_b1(o, product, &types, clamp),
    }
}

/// The function that decodes an 8-bit float.
fn eight_bits(ty: Ty) -> Option<fn(u32) -> f32> {
    let made: Result<fn(u32) -> f32, Missing> = super::by_type! { ty;
        E4m3 => Ok((|bits| sem::f32_of_e4m3(bits as u8)) as fn(u32) -> f32),
        E5m2 => Ok((|bits| sem::f32_of_e5m2(bits as u8)) as fn(u32) -> f32),
    };
    made.ok()
}

fn multiply_eight(
    o: &Operands<'_>,
    product: Whole,
    types: &Types,
    a: fn(u32) -> f32,
    b: fn(u32) -> f32,
) -> Bound {
    match (types.d, types.c) {
        (Ty::F32, Ty::F32) => {
            step(o, product, (a, b), |c, a, b| sem::mma_f32(f32::from_bits(c), a, b).to_bits())
        }
        (Ty::F16, Ty::F16) => step(o, product, (a, b), |c, a, b| u32::from(sem::mma_f16(c as u16, a, b))),
        _ => Err(Missing),
    }
}

/// The function that decodes an integer element.
fn integer(ty: Ty) -> Option<fn(u32) -> i32> {
    let made: Result<fn(u32) -> i32, Missing> = super::by_type! { ty;
        S8 => Ok((|bits| i32::from(bits as u8 as i8)) as fn(u32) -> i32),
        U8 | U4 => Ok((|bits| bits as i32) as fn(u32) -> i32),
        S4 => Ok((|bits| (bits << 28) as i32 >> 28) as fn(u32) -> i32),
    };
    made.ok()
}

fn multiply_f32(o: &Operands<'_>, product: Whole, types: &Types, value: fn(u32) -> f32) -> Bound {
    match (types.d, types.c) {
        (Ty::F32, Ty::F32) => {
            step(o, product, (value, value), |c, a, b| sem::mma_f32(f32::from_bits(c), a, b).to_bits())
        }
        _ => Err(Missing),
    }
}

fn multiply_f16(o: &Operands<'_>, product: Whole, types: &Types, clamp: bool) -> Bound {
    let a = |bits: u32| bits as u16;
    let f32_of = move |d: f32| f32::to_bits(if clamp { sem::satfinite_f32(d) } else { d });
    let f16_of = move |d: u16| u32::from(if clamp { sem::satfinite_f16(d) } else { d });
    match (types.d, types.c) {
        (Ty::F32, Ty::F32) => {
            step(o, product, (a, a), move |c, a, b| f32_of(sem::mma_f32_f32(f32::from_bits(c), a, b)))
        }
        (Ty::F32, Ty::F16) => {
            step(o, product, (a, a), move |c, a, b| f32_of(sem::mma_f32_f16(c as u16, a, b)))
        }
        (Ty::F16, Ty::F32) => {
            step(o, product, (a, a), move |c, a, b| f16_of(sem::mma_f16_f32(f32::from_bits(c), a, b)))
        }
        (Ty::F16, Ty::F16) => {
            step(o, product, (a, a), move |c, a, b| f16_of(sem::mma_f16_f16(c as u16, a, b)))
        }
        _ => Err(Missing),
    }
}

fn multiply_int(
    o: &Operands<'_>,
    product: Whole,
    types: &Types,
    a: fn(u32) -> i32,
    b: fn(u32) -> i32,
    clamp: bool,
) -> Bound {
    match (types.d, types.c) {
        (Ty::S32, Ty::S32) if clamp => {
            step(o, product, (a, b), |c, a, b| sem::mma_satfinite_s32(c as i32, a, b) as u32)
        }
        (Ty::S32, Ty::S32) => step(o, product, (a, b), |c, a, b| sem::mma_s32(c as i32, a, b) as u32),
        _ => Err(Missing),
    }
}

fn multiply_b1(o: &Operands<'_>, product: Whole, types: &Types, clamp: bool) -> Bound {
    // `wmma.mma.xor.popc` has literal words, `mma` has a slot.
    o.look(|slot, _| slot == Slot::Op);
    let is = |word: Word| o.has(word) || o.mods().get(Slot::Op) == Some(word);
    let popc = o.has(Word::Popc) && !clamp && (types.d, types.c) == (Ty::S32, Ty::S32);
    let same = |bits: u32| bits;
    if popc && is(Word::Xor) {
        step(o, product, (same, same), |c, a, b| sem::mma_xor_popc_s32(c as i32, a, b) as u32)
    } else if popc && is(Word::And) {
        step(o, product, (same, same), |c, a, b| sem::mma_and_popc_s32(c as i32, a, b) as u32)
    } else {
        Err(Missing)
    }
}

/// The elements of a column at the columns of a sparse row.
fn picked<T: Copy + Default>(column: &[T], columns: &[u8; STORED]) -> [T; STORED] {
    std::array::from_fn(|at| column.get(usize::from(columns[at])).copied().unwrap_or_default())
}

/// The step that computes each element of D by `f(c, row of A, column of B)`; `values` decode the elements of
/// A and of B.
fn step<T: Copy + Default>(
    o: &Operands<'_>,
    Whole { product, sparse }: Whole,
    (value_a, value_b): (
        impl Fn(u32) -> T + Copy + Send + Sync + 'static,
        impl Fn(u32) -> T + Copy + Send + Sync + 'static,
    ),
    f: impl Fn(u32, &[T], &[T]) -> u32 + Send + Sync + 'static,
) -> Bound {
    let (first_b, first_c) = (product.a.registers(), product.a.registers() + product.b.registers());
    let a = sources(o, 0, product.a.registers())?;
    let b = sources(o, first_b, product.b.registers())?;
    let c = sources(o, first_c, product.c.registers())?;
    let targets = targets(o, product.d.registers())?;
    Ok(Box::new(move |exec: &mut Exec<'_>| {
        whole_warp(exec.mask)?;
        let inputs = Inputs::of(exec);
        let Product { count, m, n, k, length, .. } = product;
        let words = sparse.as_ref().map(|sparse| (sparse, sparse.words.get(inputs)));
        let left = product.a.gather(&read(&a, inputs)[..a.len()], value_a);
        let right = product.b.gather(&read(&b, inputs)[..b.len()], value_b);
        let sums = product.c.gather(&read(&c, inputs)[..c.len()], |bits| bits);
        let mut results = [0; MOST];
        for i in 0..count * m {
            let row = &left[i * k..(i + 1) * k];
            let columns = words.as_ref().map(|(sparse, words)| sparse.columns(words, i));
            for j in 0..n {
                let line = i / m * n + j;
                let column = &right[line * length..(line + 1) * length];
                let sum = sums[i * n + j];
                results[i * n + j] = match &columns {
                    None => f(sum, row, column),
                    Some(columns) => f(sum, row, &picked(column, columns)[..k]),
                };
            }
        }
        write(&targets, exec.regs, &product.d.scatter(&results));
        Ok(())
    }))
}
