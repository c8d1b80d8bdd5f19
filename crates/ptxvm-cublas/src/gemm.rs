//! C = alpha op(A) op(B) + beta C: single products, products with types as arguments, and batches by lists of
//! pointers or by strides.
//!
//! Half precision (`float16`, `bfloat16`) is multiplied and summed in single precision and rounded once, when
//! C is stored. This holds for `CUBLAS_COMPUTE_16F` too, where a device may round each partial sum. Single
//! precision is computed in single precision in every math mode, because a mode only allows less precision.
//! 8-bit integers are summed in 32 bits that wrap around.
//!
//! Invariant: arguments are checked in the order of the reference BLAS, before anything is read. Lists of
//! pointers are read when the work runs.

use crate::entry::{Call, Scalar, blas, own};
use crate::ffi::{Named, Pointer, Region};
use crate::log;
use crate::number::{C32, C64, Codec, DataType, Whole, Work};
use crate::operand::{Op, Operand};
use crate::product::{self, Product, Term};
use crate::status::{Answer, valid};
use crate::storage::Matrix;

/// Products that are prepared at a time.
const PART: usize = 1024;

/// The addresses of a batch's matrices.
#[derive(Clone, Copy)]
pub(crate) enum Base {
    /// At a constant distance in elements.
    Strided(Pointer, i64),
    /// In a list of pointers in device memory.
    List(Region),
}

impl Base {
    /// A list of pointers.
    ///
    /// # Errors
    /// Creates a base from a list of pointers.
    pub(crate) fn list(named: Named, at: Pointer, batch: usize) -> Answer<Self> {
        Ok(Self::List(Region::new(named, at.address(), batch as u128 * 8, 8)?))
    }

    /// The address of a matrix.
    pub(crate) fn at(&self, index: usize, ty: DataType) -> Pointer {
        match self {
            Self::Strided(at, stride) => {
                let bytes = (index as u64).wrapping_mul(*stride as u64).wrapping_mul(ty.bytes());
                Pointer(at.0.wrapping_add(bytes as usize))
            }
            Self::List(region) => {
                let mut bytes = [0; 8];
                region.read(index as u64 * 8, &mut bytes);
                Pointer(usize::from_ne_bytes(bytes))
            }
        }
    }
}

/// The matrices of a batch for one operand.
#[derive(Clone, Copy)]
pub(crate) struct Place<W> {
    pub(crate) base: Base,
    pub(crate) ld: i64,
    pub(crate) codec: Codec<W>,
}

impl<W: Work> Place<W> {
    /// One matrix of the batch.
    ///
    /// # Errors
    /// As [`Region::new`].
    pub(crate) fn matrix(&self, named: Named, index: usize, shape: (usize, usize)) -> Answer<Matrix<W>> {
        Matrix::new(named, self.base.at(index, self.codec.ty), shape, self.ld, self.codec)
    }
}

/// A product, or a batch of them.
#[derive(Clone, Copy)]
pub(crate) struct Gemm<W> {
    pub(crate) ops: [Op; 2],
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) alpha: Scalar<W>,
    pub(crate) a: Place<W>,
    pub(crate) b: Place<W>,
    pub(crate) beta: Scalar<W>,
    pub(crate) c: Place<W>,
    pub(crate) batch: usize,
}

/// Converts a number of rows, columns or matrices.
///
/// # Errors
/// `CUBLAS_STATUS_INVALID_VALUE` for a negative number.
pub(crate) fn count(number: i64) -> Answer<usize> {
    usize::try_from(number).map_err(|_| crate::status::Status::INVALID_VALUE)
}

/// Fails unless the leading dimension is at least `rows`, and at least 1.
pub(crate) fn leading(ld: i64, rows: usize) -> Answer {
    valid(ld >= 1 && ld.unsigned_abs() >= rows as u64)
}

impl<W: Work> Gemm<W> {
    fn check(&self) -> Answer {
        let (rows, _) = self.ops[0].turn((self.m, self.k));
        leading(self.a.ld, rows)?;
        let (rows, _) = self.ops[1].turn((self.k, self.n));
        leading(self.b.ld, rows)?;
        leading(self.c.ld, self.m)
    }

    /// One of the products. Without `alpha`, only C is used.
    fn product(&self, call: &Call, index: usize, alpha: Option<Scalar<W>>) -> Answer<Product<W>> {
        let c = self.c.matrix(call.written("C"), index, (self.m, self.n))?;
        let mut terms = Vec::new();
        if let Some(alpha) = alpha.filter(|_| self.k > 0) {
            let shape = self.ops[0].turn((self.m, self.k));
            let a = Operand::general(self.a.matrix(call.named("A"), index, shape)?, self.ops[0]);
            let shape = self.ops[1].turn((self.k, self.n));
            let b = Operand::general(self.b.matrix(call.named("B"), index, shape)?, self.ops[1]);
            terms.push(Term { alpha, conjugate: false, a, b });
        }
        let mut product = Product::scaled(self.beta, c);
        (product.terms, product.k) = (terms, self.k);
        Ok(product)
    }

    fn run(&self, call: &Call) -> Answer {
        let alpha = Some(self.alpha.get()).filter(|alpha| *alpha != W::default()).map(Scalar::Known);
        let mut products = Vec::new();
        for from in (0..self.batch).step_by(PART) {
            products.clear();
            for index in from..(from + PART).min(self.batch) {
                products.push(self.product(call, index, alpha)?);
            }
            product::run(&products)?;
        }
        Ok(())
    }

    /// Checks everything that is known at the call, and submits the work.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE`; the errors of [`Region::new`].
    pub(crate) fn start(self, call: &Call) -> Answer {
        self.check()?;
        if self.m == 0 || self.n == 0 || self.batch == 0 {
            return Ok(());
        }
        let alpha = match self.alpha {
            Scalar::Known(value) if value != W::default() => Some(self.alpha),
            Scalar::Known(_) | Scalar::At(..) => None,
        };
        if matches!(self.c.base, Base::Strided(..)) {
            self.product(call, 0, alpha)?;
            self.product(call, self.batch - 1, alpha)?;
        }
        let call = *call;
        call.submit(move || self.run(&call))
    }
}

/// The codecs of A, B, C and of the factors.
struct Codecs<W> {
    a: Codec<W>,
    b: Codec<W>,
    c: Codec<W>,
    scale: Codec<W>,
}

/// The arguments that all forms have.
struct Dimensions {
    ops: [i64; 2],
    m: i64,
    n: i64,
    k: i64,
    batch: i64,
}

/// The factors, and pointer, leading dimension and stride of A, B and C. The stride is `None` if the pointer
/// is to a list.
struct Matrices {
    alpha: Pointer,
    beta: Pointer,
    a: (Pointer, i64, Option<i64>),
    b: (Pointer, i64, Option<i64>),
    c: (Pointer, i64, Option<i64>),
}

fn start<W: Work>(call: &Call, dimensions: &Dimensions, codecs: Codecs<W>, at: &Matrices) -> Answer {
    let ops = [Op::of(dimensions.ops[0])?, Op::of(dimensions.ops[1])?];
    let [m, n, k] = [count(dimensions.m)?, count(dimensions.n)?, count(dimensions.k)?];
    let batch = count(dimensions.batch)?;
    let (alpha, beta) =
        (call.scalar("alpha", at.alpha, codecs.scale)?, call.scalar("beta", at.beta, codecs.scale)?);
    let empty = m == 0 || n == 0 || batch == 0;
    let place = |name, (pointer, ld, stride): (Pointer, i64, Option<i64>), codec| {
        let base = match stride {
            Some(stride) => Base::Strided(pointer, stride),
            None if empty => Base::Strided(pointer, 0),
            None => Base::list(call.named(name), pointer, batch)?,
        };
        Ok(Place { base, ld, codec })
    };
    let [a, b, c] = [place("A", at.a, codecs.a)?, place("B", at.b, codecs.b)?, place("C", at.c, codecs.c)?];
    Gemm { ops, m, n, k, alpha, a, b, beta, c, batch }.start(call)
}

impl<W: Work> Codecs<W> {
    fn own() -> Answer<Self> {
        let own = own()?;
        Ok(Self { a: own, b: own, c: own, scale: own })
    }
}

/// Half precision for the matrices and the factors.
fn halves() -> Answer<Codecs<f32>> {
    let half = f32::codec(DataType::F16).ok_or(crate::status::Status::INTERNAL_ERROR)?;
    Ok(Codecs { a: half, b: half, c: half, scale: half })
}

/// The documented combinations of the types of A and B, of C, and of the computation.
pub(crate) enum Kind {
    /// Half precision with factors in half precision.
    Half,
    /// Computed in single precision.
    Single,
    /// Computed in double precision.
    Double,
    /// Complex numbers of single precision.
    ComplexSingle,
    /// Complex numbers of double precision.
    ComplexDouble,
    /// Integers.
    Whole,
}

/// The combination, if it is documented.
pub(crate) fn kind(inputs: DataType, output: DataType, compute: i64) -> Option<Kind> {
    use DataType::{Bf16, C32, C64, F16, F32, F64, I8, I32};
    Some(match (compute, inputs, output) {
        (64 | 65, F16, F16) => Kind::Half,
        (68 | 69 | 74 | 75 | 77 | 78, F16, F16 | F32)
        | (68 | 69 | 74 | 75 | 77 | 78, Bf16, Bf16 | F32)
        | (68 | 69 | 74 | 75 | 77 | 78, F32 | I8, F32) => Kind::Single,
        (70 | 71, F64, F64) => Kind::Double,
        (68 | 69 | 74 | 75 | 77 | 78, C32, C32) => Kind::ComplexSingle,
        (70 | 71, C64, C64) => Kind::ComplexDouble,
        (72 | 73, I8, I32) => Kind::Whole,
        _ => return None,
    })
}

/// A product with types as arguments: `types` are those of A, B and C, and the compute type.
fn start_ex(call: &Call, dimensions: &Dimensions, types: [i64; 4], at: &Matrices) -> Answer {
    fn go<W: Work>(
        call: &Call,
        dimensions: &Dimensions,
        [inputs, output]: [DataType; 2],
        at: &Matrices,
    ) -> Answer {
        let codec = |ty| W::codec(ty).ok_or(crate::status::Status::INTERNAL_ERROR);
        let (a, c) = (codec(inputs)?, codec(output)?);
        start(call, dimensions, Codecs { a, b: a, c, scale: own()? }, at)
    }
    let [a, b, c, compute] = types;
    let combination = match (DataType::of(a), DataType::of(c)) {
        (Some(inputs), Some(output)) if a == b => {
            kind(inputs, output, compute).map(|kind| (kind, [inputs, output]))
        }
        _ => None,
    };
    match combination {
        Some((Kind::Half, _)) => start(call, dimensions, halves()?, at),
        Some((Kind::Single, types)) => go::<f32>(call, dimensions, types, at),
        Some((Kind::Double, types)) => go::<f64>(call, dimensions, types, at),
        Some((Kind::ComplexSingle, types)) => go::<C32>(call, dimensions, types, at),
        Some((Kind::ComplexDouble, types)) => go::<C64>(call, dimensions, types, at),
        Some((Kind::Whole, types)) => go::<Whole>(call, dimensions, types, at),
        None => log::refused(&format!(
            "{} with cudaDataType {a} for A, {b} for B, {c} for C and cublasComputeType {compute}",
            call.name
        )),
    }
}

blas! {
    fn gemm[W](
        call, opa: word, opb: word, m: int, n: int, k: int, alpha: ptr, a: ptr, lda: int, b: ptr, ldb: int,
        beta: ptr, c: ptr, ldc: int,
    ) {
        let at = Matrices { alpha, beta, a: (a, lda, Some(0)), b: (b, ldb, Some(0)), c: (c, ldc, Some(0)) };
        start::<W>(call, &Dimensions { ops: [opa, opb], m, n, k, batch: 1 }, Codecs::own()?, &at)
    } => {
        cublasSgemm_v2 cublasSgemm_v2_64 <f32>,
        cublasDgemm_v2 cublasDgemm_v2_64 <f64>,
        cublasCgemm_v2 cublasCgemm_v2_64 <C32>,
        cublasZgemm_v2 cublasZgemm_v2_64 <C64>,
        cublasCgemm3m cublasCgemm3m_64 <C32>,
        cublasZgemm3m cublasZgemm3m_64 <C64>,
    }

    fn gemm_half[](
        call, opa: word, opb: word, m: int, n: int, k: int, alpha: ptr, a: ptr, lda: int, b: ptr, ldb: int,
        beta: ptr, c: ptr, ldc: int,
    ) {
        let at = Matrices { alpha, beta, a: (a, lda, Some(0)), b: (b, ldb, Some(0)), c: (c, ldc, Some(0)) };
        start(call, &Dimensions { ops: [opa, opb], m, n, k, batch: 1 }, halves()?, &at)
    } => { cublasHgemm cublasHgemm_64 }

    fn gemm_batched[W](
        call, opa: word, opb: word, m: int, n: int, k: int, alpha: ptr, a: ptr, lda: int, b: ptr, ldb: int,
        beta: ptr, c: ptr, ldc: int, batch: int,
    ) {
        let at = Matrices { alpha, beta, a: (a, lda, None), b: (b, ldb, None), c: (c, ldc, None) };
        start::<W>(call, &Dimensions { ops: [opa, opb], m, n, k, batch }, Codecs::own()?, &at)
    } => {
        cublasSgemmBatched cublasSgemmBatched_64 <f32>,
        cublasDgemmBatched cublasDgemmBatched_64 <f64>,
        cublasCgemmBatched cublasCgemmBatched_64 <C32>,
        cublasZgemmBatched cublasZgemmBatched_64 <C64>,
        cublasCgemm3mBatched cublasCgemm3mBatched_64 <C32>,
    }

    fn gemm_batched_half[](
        call, opa: word, opb: word, m: int, n: int, k: int, alpha: ptr, a: ptr, lda: int, b: ptr, ldb: int,
        beta: ptr, c: ptr, ldc: int, batch: int,
    ) {
        let at = Matrices { alpha, beta, a: (a, lda, None), b: (b, ldb, None), c: (c, ldc, None) };
        start(call, &Dimensions { ops: [opa, opb], m, n, k, batch }, halves()?, &at)
    } => { cublasHgemmBatched cublasHgemmBatched_64 }

    fn gemm_strided[W](
        call, opa: word, opb: word, m: int, n: int, k: int, alpha: ptr, a: ptr, lda: int, stride_a: long,
        b: ptr, ldb: int, stride_b: long, beta: ptr, c: ptr, ldc: int, stride_c: long, batch: int,
    ) {
        let (a, b, c) = ((a, lda, Some(stride_a)), (b, ldb, Some(stride_b)), (c, ldc, Some(stride_c)));
        let at = Matrices { alpha, beta, a, b, c };
        start::<W>(call, &Dimensions { ops: [opa, opb], m, n, k, batch }, Codecs::own()?, &at)
    } => {
        cublasSgemmStridedBatched cublasSgemmStridedBatched_64 <f32>,
        cublasDgemmStridedBatched cublasDgemmStridedBatched_64 <f64>,
        cublasCgemmStridedBatched cublasCgemmStridedBatched_64 <C32>,
        cublasZgemmStridedBatched cublasZgemmStridedBatched_64 <C64>,
        cublasCgemm3mStridedBatched cublasCgemm3mStridedBatched_64 <C32>,
    }

    fn gemm_strided_half[](
        call, opa: word, opb: word, m: int, n: int, k: int, alpha: ptr, a: ptr, lda: int, stride_a: long,
        b: ptr, ldb: int, stride_b: long, beta: ptr, c: ptr, ldc: int, stride_c: long, batch: int,
    ) {
        let (a, b, c) = ((a, lda, Some(stride_a)), (b, ldb, Some(stride_b)), (c, ldc, Some(stride_c)));
        let at = Matrices { alpha, beta, a, b, c };
        start(call, &Dimensions { ops: [opa, opb], m, n, k, batch }, halves()?, &at)
    } => { cublasHgemmStridedBatched cublasHgemmStridedBatched_64 }
}

blas! {
    fn gemm_ex[](
        call, opa: word, opb: word, m: int, n: int, k: int, alpha: ptr, a: ptr, a_type: word, lda: int,
        b: ptr, b_type: word, ldb: int, beta: ptr, c: ptr, c_type: word, ldc: int, compute: word,
        _algorithm: word,
    ) {
        let at = Matrices { alpha, beta, a: (a, lda, Some(0)), b: (b, ldb, Some(0)), c: (c, ldc, Some(0)) };
        let dimensions = Dimensions { ops: [opa, opb], m, n, k, batch: 1 };
        start_ex(call, &dimensions, [a_type, b_type, c_type, compute], &at)
    } => { cublasGemmEx cublasGemmEx_64 }

    /// A product of real or complex numbers that is computed in single precision.
    fn gemm_ex_single[](
        call, opa: word, opb: word, m: int, n: int, k: int, alpha: ptr, a: ptr, a_type: word, lda: int,
        b: ptr, b_type: word, ldb: int, beta: ptr, c: ptr, c_type: word, ldc: int,
    ) {
        if (c_type == 4) != call.name.starts_with("cublasC") {
            return log::refused(&format!("{} with cudaDataType {c_type}", call.name));
        }
        gemm_ex(call, opa, opb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, 68, -1)
    } => {
        cublasSgemmEx cublasSgemmEx_64,
        cublasCgemmEx cublasCgemmEx_64,
        cublasCgemm3mEx cublasCgemm3mEx_64,
    }

    fn gemm_batched_ex[](
        call, opa: word, opb: word, m: int, n: int, k: int, alpha: ptr, a: ptr, a_type: word, lda: int,
        b: ptr, b_type: word, ldb: int, beta: ptr, c: ptr, c_type: word, ldc: int, batch: int, compute: word,
        _algorithm: word,
    ) {
        let at = Matrices { alpha, beta, a: (a, lda, None), b: (b, ldb, None), c: (c, ldc, None) };
        let dimensions = Dimensions { ops: [opa, opb], m, n, k, batch };
        start_ex(call, &dimensions, [a_type, b_type, c_type, compute], &at)
    } => { cublasGemmBatchedEx cublasGemmBatchedEx_64 }

    fn gemm_strided_ex[](
        call, opa: word, opb: word, m: int, n: int, k: int, alpha: ptr, a: ptr, a_type: word, lda: int,
        stride_a: long, b: ptr, b_type: word, ldb: int, stride_b: long, beta: ptr, c: ptr, c_type: word,
        ldc: int, stride_c: long, batch: int, compute: word, _algorithm: word,
    ) {
        let (a, b, c) = ((a, lda, Some(stride_a)), (b, ldb, Some(stride_b)), (c, ldc, Some(stride_c)));
        let dimensions = Dimensions { ops: [opa, opb], m, n, k, batch };
        start_ex(call, &dimensions, [a_type, b_type, c_type, compute], &Matrices { alpha, beta, a, b, c })
    } => { cublasGemmStridedBatchedEx cublasGemmStridedBatchedEx_64 }
}
