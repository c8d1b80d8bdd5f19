//! Matrix products of a warp as data: the places of the elements of all four matrices, and their types.
//!
//! Invariant: a product is described by the modifiers of its instruction alone. The interpreter's step
//! ([`super::matrix`]) and native code read the same description. Products in double precision have
//! registers of 64 bits and are not described here ([`super::matrix_f64`]).

use super::fragment::{Fragment, MOST, Matrix, REGISTERS};
use ptx::isa::{Layout, MatrixShape, Mods, Slot, Ty, form};

/// The types of a product's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    /// Of D.
    pub d: Ty,
    /// Of A.
    pub a: Ty,
    /// Of B.
    pub b: Ty,
    /// Of C.
    pub c: Ty,
}

/// The four matrices of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// How many products the warp computes at once. The lines of one follow those of the one before.
    pub count: usize,
    /// Lines of A.
    pub m: usize,
    /// Lines of B.
    pub n: usize,
    /// The length of A's lines, in elements; an element of `.b1` is a word.
    pub k: usize,
    /// The length of B's lines. If A is sparse, this is longer than `k`.
    pub length: usize,
    /// Whether A is sparse.
    pub sparse: bool,
    /// The types of the elements.
    pub types: Types,
    /// The places of A's elements.
    pub a: Fragment,
    /// The places of B's elements.
    pub b: Fragment,
    /// The places of C's elements.
    pub c: Fragment,
    /// The places of D's elements.
    pub d: Fragment,
}

impl Product {
    /// The product that an instruction `mma` or `wmma.mma` with these modifiers computes.
    pub fn of(mods: &Mods) -> Option<Product> {
        let ty = |slot| mods.ty_in(slot);
        let types =
            Types { d: ty(Slot::Dtype)?, a: ty(Slot::Atype)?, b: ty(Slot::Btype)?, c: ty(Slot::Ctype)? };
        let shape = mods.shape()?;
        // The fragments of `wmma` do not depend on layouts; those of `mma` with 16 rows have a single layout.
        let (alayout, blayout) = (mods.layout(Slot::Alayout)?, mods.layout(Slot::Blayout)?);
        let quads = shape == MatrixShape { m: 8, n: 8, k: 4 };
        let sparse = mods.get(Slot::Mode).is_some();
        let left = if sparse { MatrixShape { k: shape.k / 2, ..shape } } else { shape };
        let accumulator = |name, ty: Ty| {
            if quads {
                Some(Fragment::quads(Matrix::Accumulator, element_bits(ty)?, Layout::Row))
            } else {
                tiled(mods, name, Matrix::Accumulator, shape, ty)
            }
        };
        let (a, b) = if quads {
            (Fragment::quads(Matrix::A, 16, alayout), Fragment::quads(Matrix::B, 16, blayout))
        } else {
            (tiled(mods, 'a', Matrix::A, left, types.a)?, tiled(mods, 'b', Matrix::B, shape, types.b)?)
        };
        Some(Product {
            count: if quads { 4 } else { 1 },
            m: usize::from(shape.m),
            n: usize::from(shape.n),
            k: lines(Matrix::A, left, types.a).1,
            length: if sparse { usize::from(shape.k) } else { lines(Matrix::B, shape, types.b).1 },
            sparse,
            types,
            c: accumulator('c', types.c)?,
            d: accumulator('d', types.d)?,
            a,
            b,
        })
    }
}

/// Bits of an element of fragments and products; for `.b1` this is a word of 32.
pub(super) fn element_bits(ty: Ty) -> Option<u32> {
    let bits: Result<u32, super::Missing> = super::by_type! { ty;
        B1 | F32 | S32 | Tf32 => Ok(32),
        S4 | U4 => Ok(4),
        S8 | U8 | E4m3 | E5m2 => Ok(8),
        F16 | Bf16 => Ok(16),
    };
    bits.ok()
}

/// Number and length of a matrix's lines, in such elements.
pub(super) fn lines(matrix: Matrix, shape: MatrixShape, ty: Ty) -> (usize, usize) {
    let (lines, length) = matrix.lines(shape);
    (lines, if ty == Ty::B1 { length / 32 } else { length })
}

/// The fragment of a matrix in tiles; its register count must be that of the table.
pub(super) fn tiled(mods: &Mods, name: char, matrix: Matrix, shape: MatrixShape, ty: Ty) -> Option<Fragment> {
    let registers = usize::from(form::fragment(name, mods)?.registers);
    let bits = element_bits(ty)?;
    let (lines, length) = lines(matrix, shape, ty);
    let fits = (1..=REGISTERS).contains(&registers)
        && lines * length <= MOST
        && (registers * 1024).is_multiple_of(lines * length * bits as usize);
    fits.then(|| Fragment::tiled(matrix, (lines, length), bits, registers))
}
