//! y = alpha op(A) x + beta y for batches by lists of pointers or by strides. Half precision is summed in
//! single precision.
//!
//! Invariant: the same as of batches of `gemm`; each product has the result of one `gemv`.

use crate::columns::{Columns, Layout};
use crate::entry::{Call, Scalar, blas, own};
use crate::ffi::Pointer;
use crate::gemm::{Base, Place, count, leading};
use crate::number::{C32, C64, Codec, DataType, Work};
use crate::operand::Op;
use crate::product::{share, threads};
use crate::status::{Answer, Status, buffer, valid};
use crate::storage::Vector;

/// A batch.
#[derive(Clone, Copy)]
struct Batch<W> {
    op: Op,
    m: usize,
    n: usize,
    alpha: Scalar<W>,
    a: Place<W>,
    /// For vectors, the leading dimension is the increment.
    x: Place<W>,
    beta: Scalar<W>,
    y: Place<W>,
}

impl<W: Work> Batch<W> {
    fn one(&self, call: &Call, index: usize) -> Answer {
        let (to, from) = self.op.turn((self.m, self.n));
        let vector = |named, place: &Place<W>, size| {
            let at = place.base.at(index, place.codec.ty);
            Vector::new(named, at, size, place.ld, place.codec)
        };
        let (alpha, beta) = (self.alpha.get(), self.beta.get());
        let y = vector(call.written("y"), &self.y, to)?;
        let mut out = buffer(W::default(), to)?;
        if alpha != W::default() {
            let stored = self.a.matrix(call.named("A"), index, (self.m, self.n))?;
            let a = Columns { stored, rows: self.m, layout: Layout::Full, only: None, unit: false };
            out = a.multiply(self.op, &vector(call.named("x"), &self.x, from)?.all()?)?;
            out.iter_mut().for_each(|value| *value = alpha * *value);
        }
        if beta != W::default() {
            out.iter_mut().zip(y.all()?).for_each(|(value, old)| *value += beta * old);
        }
        y.store(0, &out);
        Ok(())
    }
}

/// The arguments that both forms have.
struct Arguments {
    trans: i64,
    m: i64,
    n: i64,
    batch: i64,
    alpha: Pointer,
    beta: Pointer,
    /// Pointer, leading dimension or increment, and stride, which is `None` if the pointer is to a list.
    a: (Pointer, i64, Option<i64>),
    x: (Pointer, i64, Option<i64>),
    y: (Pointer, i64, Option<i64>),
}

fn start<W: Work>(call: &Call, at: &Arguments, [inputs, output]: [Codec<W>; 2]) -> Answer {
    let (op, m, n, batch) = (Op::of(at.trans)?, count(at.m)?, count(at.n)?, count(at.batch)?);
    leading(at.a.1, m)?;
    valid(at.x.1 != 0 && at.y.1 != 0)?;
    let (alpha, beta) = (call.own("alpha", at.alpha)?, call.own("beta", at.beta)?);
    if m == 0 || n == 0 || batch == 0 {
        return Ok(());
    }
    let place = |name, (pointer, ld, stride): (Pointer, i64, Option<i64>), codec| -> Answer<Place<W>> {
        let base = match stride {
            Some(stride) => Base::Strided(pointer, stride),
            None => Base::list(call.named(name), pointer, batch)?,
        };
        Ok(Place { base, ld, codec })
    };
    let (a, x, y) = (place("A", at.a, inputs)?, place("x", at.x, inputs)?, place("y", at.y, output)?);
    let all = Batch { op, m, n, alpha, a, x, beta, y };
    let call = *call;
    call.submit(move || {
        let cost = m.saturating_mul(n).saturating_mul(batch);
        let threads = if cost < 1 << 21 { 1 } else { threads() };
        share(threads, batch, || (), |(), index| all.one(&call, index))
    })
}

/// The codecs of A and x, and of y, by the letters of the function's name.
fn halves(call: &Call) -> Answer<[Codec<f32>; 2]> {
    let codec = |ty| f32::codec(ty).ok_or(Status::INTERNAL_ERROR);
    let input = if call.name.starts_with("cublasH") { DataType::F16 } else { DataType::Bf16 };
    let is_single = call.name.contains("SSgemv");
    Ok([codec(input)?, codec(if is_single { DataType::F32 } else { input })?])
}

blas! {
    fn gemv_list[W](
        call, trans: word, m: int, n: int, alpha: ptr, a: ptr, lda: int, x: ptr, incx: int, beta: ptr,
        y: ptr, incy: int, batch: int,
    ) {
        let (a, x, y) = ((a, lda, None), (x, incx, None), (y, incy, None));
        start::<W>(call, &Arguments { trans, m, n, batch, alpha, beta, a, x, y }, [own()?, own()?])
    } => {
        cublasSgemvBatched cublasSgemvBatched_64 <f32>,
        cublasDgemvBatched cublasDgemvBatched_64 <f64>,
        cublasCgemvBatched cublasCgemvBatched_64 <C32>,
        cublasZgemvBatched cublasZgemvBatched_64 <C64>,
    }

    fn gemv_list_half[](
        call, trans: word, m: int, n: int, alpha: ptr, a: ptr, lda: int, x: ptr, incx: int, beta: ptr,
        y: ptr, incy: int, batch: int,
    ) {
        let (a, x, y) = ((a, lda, None), (x, incx, None), (y, incy, None));
        start(call, &Arguments { trans, m, n, batch, alpha, beta, a, x, y }, halves(call)?)
    } => {
        cublasHSHgemvBatched cublasHSHgemvBatched_64,
        cublasHSSgemvBatched cublasHSSgemvBatched_64,
        cublasTSTgemvBatched cublasTSTgemvBatched_64,
        cublasTSSgemvBatched cublasTSSgemvBatched_64,
    }

    fn gemv_strided[W](
        call, trans: word, m: int, n: int, alpha: ptr, a: ptr, lda: int, sa: long, x: ptr, incx: int,
        sx: long, beta: ptr, y: ptr, incy: int, sy: long, batch: int,
    ) {
        let (a, x, y) = ((a, lda, Some(sa)), (x, incx, Some(sx)), (y, incy, Some(sy)));
        start::<W>(call, &Arguments { trans, m, n, batch, alpha, beta, a, x, y }, [own()?, own()?])
    } => {
        cublasSgemvStridedBatched cublasSgemvStridedBatched_64 <f32>,
        cublasDgemvStridedBatched cublasDgemvStridedBatched_64 <f64>,
        cublasCgemvStridedBatched cublasCgemvStridedBatched_64 <C32>,
        cublasZgemvStridedBatched cublasZgemvStridedBatched_64 <C64>,
    }

    fn gemv_strided_half[](
        call, trans: word, m: int, n: int, alpha: ptr, a: ptr, lda: int, sa: long, x: ptr, incx: int,
        sx: long, beta: ptr, y: ptr, incy: int, sy: long, batch: int,
    ) {
        let (a, x, y) = ((a, lda, Some(sa)), (x, incx, Some(sx)), (y, incy, Some(sy)));
        start(call, &Arguments { trans, m, n, batch, alpha, beta, a, x, y }, halves(call)?)
    } => {
        cublasHSHgemvStridedBatched cublasHSHgemvStridedBatched_64,
        cublasHSSgemvStridedBatched cublasHSSgemvStridedBatched_64,
        cublasTSTgemvStridedBatched cublasTSTgemvStridedBatched_64,
        cublasTSSgemvStridedBatched cublasTSSgemvStridedBatched_64,
    }
}
