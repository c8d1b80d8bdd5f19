//! Level 1 with the types of vectors, of scalars and of the computation as arguments.
//!
//! Invariant: the compute type can hold every element exactly. Undocumented combinations work if this holds,
//! and are not supported otherwise.

use crate::entry::{Call, blas};
use crate::ffi::Pointer;
use crate::level1::{
    asum_of, axpy_of, change_numbers, copy_of, dot_of, extreme_of, nrm2_of, rot_of, rotm_of, scal_of, swap_of,
};
use crate::log;
use crate::number::{C32, C64, Codec, DataType, Work};
use crate::rotation;
use crate::status::{Answer, valid};

/// Calls a body for the compute type that `executionType` names.
macro_rules! executed {
    ($call:expr, $code:expr, $work:ident, $body:expr) => {
        match DataType::of($code) {
            Some(DataType::F32) => {
                type $work = f32;
                $body
            }
            Some(DataType::F64) => {
                type $work = f64;
                $body
            }
            Some(DataType::C32) => {
                type $work = C32;
                $body
            }
            Some(DataType::C64) => {
                type $work = C64;
                $body
            }
            _ => log::refused(&format!("{} computing in cudaDataType {}", $call.name, $code)),
        }
    };
}

/// The codec between an element type and the compute type.
fn codec<W: Work>(call: &Call, code: i64) -> Answer<Codec<W>> {
    match DataType::of(code).and_then(W::codec) {
        Some(codec) => Ok(codec),
        None => log::refused(&format!("{} with cudaDataType {code} in this combination", call.name)),
    }
}

/// The compute type that moves elements of a type without changing them.
fn moved(code: i64) -> i64 {
    match code {
        2 | 14 => 0,
        other => other,
    }
}

fn dot_ex_of(
    call: &Call,
    n: i64,
    (x, x_type, incx): (Pointer, i64, i64),
    (y, y_type, incy): (Pointer, i64, i64),
    (result, result_type): (Pointer, i64),
    execution: i64,
    conjugate: bool,
) -> Answer {
    executed!(call, execution, W, {
        let (x, y) = ((x, incx, codec::<W>(call, x_type)?), (y, incy, codec(call, y_type)?));
        dot_of(call, n, x, y, conjugate, (result, codec(call, result_type)?))
    })
}

/// The compute type for a vector whose result is real.
fn of_vector(x_type: i64, execution: i64) -> i64 {
    match x_type {
        4 | 5 => x_type,
        _ => execution,
    }
}

/// The codec of a real result.
fn result_codec<W: Work>(call: &Call, code: i64) -> Answer<Codec<W>> {
    let real = W::real_codec();
    if DataType::of(code) == Some(real.ty) { Ok(real) } else { codec(call, code) }
}

blas! {
    fn rotg_ex[](call, a: ptr, b: ptr, ab_type: word, c: ptr, s: ptr, cs_type: word, execution: word) {
        executed!(call, execution, W, {
            let (ab, s_codec) = (codec::<W>(call, ab_type)?, codec(call, cs_type)?);
            let c_codec = if s_codec.ty == W::TYPE { W::real_codec() } else { s_codec };
            let places = vec![("a", a, ab), ("b", b, ab), ("c", c, c_codec), ("s", s, s_codec)];
            let is_real = matches!(W::TYPE, DataType::F32 | DataType::F64);
            change_numbers(call, places, if is_real { rotation::real } else { rotation::complex })
        })
    } => { cublasRotgEx - }

    fn axpy_ex[](
        call, n: int, alpha: ptr, alpha_type: word, x: ptr, x_type: word, incx: int, y: ptr, y_type: word,
        incy: int, execution: word,
    ) {
        executed!(call, execution, W, {
            let [alpha_codec, cx, cy] =
                [codec::<W>(call, alpha_type)?, codec(call, x_type)?, codec(call, y_type)?];
            axpy_of(call, n, (alpha, alpha_codec), (x, incx, cx), (y, incy, cy))
        })
    } => { cublasAxpyEx cublasAxpyEx_64 }

    fn scal_ex[](call, n: int, alpha: ptr, alpha_type: word, x: ptr, x_type: word, incx: int, execution: word) {
        executed!(call, execution, W, {
            scal_of(call, n, (alpha, codec::<W>(call, alpha_type)?), (x, incx, codec(call, x_type)?))
        })
    } => { cublasScalEx cublasScalEx_64 }

    fn copy_ex[](call, n: int, x: ptr, x_type: word, incx: int, y: ptr, y_type: word, incy: int) {
        valid(x_type == y_type)?;
        executed!(call, moved(x_type), W, {
            copy_of::<W>(call, n, (x, incx, codec(call, x_type)?), (y, incy, codec(call, y_type)?))
        })
    } => { cublasCopyEx cublasCopyEx_64 }

    fn swap_ex[](call, n: int, x: ptr, x_type: word, incx: int, y: ptr, y_type: word, incy: int) {
        valid(x_type == y_type)?;
        executed!(call, moved(x_type), W, {
            swap_of::<W>(call, n, (x, incx, codec(call, x_type)?), (y, incy, codec(call, y_type)?))
        })
    } => { cublasSwapEx cublasSwapEx_64 }

    fn dot_ex[](
        call, n: int, x: ptr, x_type: word, incx: int, y: ptr, y_type: word, incy: int, result: ptr,
        result_type: word, execution: word,
    ) {
        dot_ex_of(call, n, (x, x_type, incx), (y, y_type, incy), (result, result_type), execution, false)
    } => { cublasDotEx cublasDotEx_64 }

    fn dotc_ex[](
        call, n: int, x: ptr, x_type: word, incx: int, y: ptr, y_type: word, incy: int, result: ptr,
        result_type: word, execution: word,
    ) {
        dot_ex_of(call, n, (x, x_type, incx), (y, y_type, incy), (result, result_type), execution, true)
    } => { cublasDotcEx cublasDotcEx_64 }

    fn nrm2_ex[](
        call, n: int, x: ptr, x_type: word, incx: int, result: ptr, result_type: word, execution: word,
    ) {
        executed!(call, of_vector(x_type, execution), W, {
            let result = (result, result_codec::<W>(call, result_type)?);
            nrm2_of(call, n, (x, incx, codec(call, x_type)?), result)
        })
    } => { cublasNrm2Ex cublasNrm2Ex_64 }

    fn asum_ex[](
        call, n: int, x: ptr, x_type: word, incx: int, result: ptr, result_type: word, execution: word,
    ) {
        executed!(call, of_vector(x_type, execution), W, {
            let result = (result, result_codec::<W>(call, result_type)?);
            asum_of(call, n, (x, incx, codec(call, x_type)?), result)
        })
    } => { cublasAsumEx cublasAsumEx_64 }

    fn amax_ex[](call, n: int, x: ptr, x_type: word, incx: int, result: ptr) {
        executed!(call, moved(x_type), W, {
            extreme_of::<W>(call, n, (x, incx, codec(call, x_type)?), result, |a, b| a > b)
        })
    } => { cublasIamaxEx cublasIamaxEx_64 }

    fn amin_ex[](call, n: int, x: ptr, x_type: word, incx: int, result: ptr) {
        executed!(call, moved(x_type), W, {
            extreme_of::<W>(call, n, (x, incx, codec(call, x_type)?), result, |a, b| a < b)
        })
    } => { cublasIaminEx cublasIaminEx_64 }

    fn rot_ex[](
        call, n: int, x: ptr, x_type: word, incx: int, y: ptr, y_type: word, incy: int, c: ptr, s: ptr,
        cs_type: word, execution: word,
    ) {
        executed!(call, execution, W, {
            let (x, y) = ((x, incx, codec::<W>(call, x_type)?), (y, incy, codec(call, y_type)?));
            let cs = result_codec(call, cs_type)?;
            // The cosine is always real.
            let real = if cs.ty == W::TYPE { W::real_codec() } else { cs };
            rot_of(call, n, x, y, (c, real), (s, cs))
        })
    } => { cublasRotEx cublasRotEx_64 }

    fn rotm_ex[](
        call, n: int, x: ptr, x_type: word, incx: int, y: ptr, y_type: word, incy: int, param: ptr,
        param_type: word, execution: word,
    ) {
        executed!(call, execution, W, {
            let (x, y) = ((x, incx, codec::<W>(call, x_type)?), (y, incy, codec(call, y_type)?));
            rotm_of(call, n, x, y, (param, codec(call, param_type)?))
        })
    } => { cublasRotmEx cublasRotmEx_64 }
}
