//! Level 1: vectors.
//!
//! The sums of `dot`, `nrm2` and `asum` are formed in double precision from the first element to the last,
//! and rounded once. If the squares of double-precision numbers would overflow or underflow, `nrm2` scales
//! the numbers first. For `n` less than 1 nothing is done. For that, and for increments less than 1, `nrm2`,
//! `asum`, `amax` and `amin` return 0 and `scal` does nothing.
//!
//! Invariant: elements are read and written in the order of indices, as by the loops of the reference BLAS;
//! this matters for overlapping vectors.

use crate::entry::{Call, blas, own};
use crate::ffi::{Named, Pointer, Region};
use crate::handle::PointerMode;
use crate::number::{C32, C64, Codec, DataType, Work};
use crate::status::{Answer, valid};
use crate::storage::Vector;

/// Elements that are processed at a time.
const PART: usize = 256;

/// A vector argument: pointer, increment, codec.
type Place<W> = (Pointer, i64, Codec<W>);

impl Call {
    fn vector<W: Work>(&self, named: Named, n: i64, (at, increment, codec): Place<W>) -> Answer<Vector<W>> {
        // With increment 0 the vector is one element, so `n` is not limited by memory; a large `n` would only
        // cost time.
        valid(increment != 0 || n <= i64::from(i32::MAX))?;
        Vector::new(named, at, usize::try_from(n).unwrap_or(0), increment, codec)
    }
}

/// Changes x and y, part by part.
fn change_both<W: Work>(x: &Vector<W>, y: &Vector<W>, change: impl Fn(&mut [W], &mut [W])) {
    let (mut a, mut b) = ([W::default(); PART], [W::default(); PART]);
    // Overlapping elements need one element at a time.
    let part = if x.is_one_place() || y.is_one_place() { 1 } else { PART };
    for from in (0..x.n).step_by(part) {
        let count = part.min(x.n - from);
        let (a, b) = (&mut a[..count], &mut b[..count]);
        x.load(from, a);
        y.load(from, b);
        change(a, b);
        x.store(from, a);
        y.store(from, b);
    }
}

/// Changes y by x, part by part.
fn change_one<W: Work>(x: &Vector<W>, y: &Vector<W>, change: impl Fn(&[W], &mut [W])) {
    let (mut a, mut b) = ([W::default(); PART], [W::default(); PART]);
    let part = if y.is_one_place() { 1 } else { PART };
    for from in (0..x.n).step_by(part) {
        let count = part.min(x.n - from);
        let (a, b) = (&mut a[..count], &mut b[..count]);
        x.load(from, a);
        y.load(from, b);
        change(a, b);
        y.store(from, b);
    }
}

/// Passes x to a function, part by part, with the index of each part's first element.
fn each<W: Work>(x: &Vector<W>, mut with: impl FnMut(usize, &[W])) {
    let mut a = [W::default(); PART];
    for from in (0..x.n).step_by(PART) {
        let a = &mut a[..PART.min(x.n - from)];
        x.load(from, a);
        with(from, a);
    }
}

/// y = alpha x + y
pub(crate) fn axpy_of<W: Work>(
    call: &Call,
    n: i64,
    (alpha, alpha_codec): (Pointer, Codec<W>),
    x: Place<W>,
    y: Place<W>,
) -> Answer {
    let alpha = call.scalar("alpha", alpha, alpha_codec)?;
    let (x, y) = (call.vector(call.named("x"), n, x)?, call.vector(call.written("y"), n, y)?);
    call.submit(move || {
        let alpha = alpha.get();
        change_one(&x, &y, |x, y| {
            for (y, x) in y.iter_mut().zip(x) {
                *y += alpha * *x;
            }
        });
        Ok(())
    })
}

/// x = alpha x
pub(crate) fn scal_of<W: Work>(
    call: &Call,
    n: i64,
    (alpha, alpha_codec): (Pointer, Codec<W>),
    x: Place<W>,
) -> Answer {
    let alpha = call.scalar("alpha", alpha, alpha_codec)?;
    let n = if x.1 > 0 { n } else { 0 };
    let x = call.vector(call.written("x"), n, x)?;
    call.submit(move || {
        let alpha = alpha.get();
        change_one(&x, &x, |_, x| x.iter_mut().for_each(|x| *x = alpha * *x));
        Ok(())
    })
}

/// y = x
pub(crate) fn copy_of<W: Work>(call: &Call, n: i64, x: Place<W>, y: Place<W>) -> Answer {
    let (x, y) = (call.vector(call.named("x"), n, x)?, call.vector(call.written("y"), n, y)?);
    call.submit(move || {
        change_one(&x, &y, |x, y| y.copy_from_slice(x));
        Ok(())
    })
}

/// x, y = y, x
pub(crate) fn swap_of<W: Work>(call: &Call, n: i64, x: Place<W>, y: Place<W>) -> Answer {
    let (x, y) = (call.vector(call.written("x"), n, x)?, call.vector(call.written("y"), n, y)?);
    call.submit(move || {
        change_both(&x, &y, |x, y| x.swap_with_slice(y));
        Ok(())
    })
}

/// The sum of x y, optionally with the conjugate of x.
pub(crate) fn dot_of<W: Work>(
    call: &Call,
    n: i64,
    x: Place<W>,
    y: Place<W>,
    conjugate: bool,
    (result, codec): (Pointer, Codec<W>),
) -> Answer {
    let (x, y) = (call.vector(call.named("x"), n, x)?, call.vector(call.named("y"), n, y)?);
    call.give_number(result, codec, move || {
        let (mut a, mut b) = ([W::default(); PART], [W::default(); PART]);
        let mut sum = [0.0; 2];
        for from in (0..x.n).step_by(PART) {
            let count = PART.min(x.n - from);
            x.load(from, &mut a[..count]);
            y.load(from, &mut b[..count]);
            for (x, y) in a.iter().zip(&b).take(count) {
                let ([xr, xi], [yr, yi]) = (if conjugate { x.conj() } else { *x }.parts(), y.parts());
                sum = [sum[0] + (xr * yr - xi * yi), sum[1] + (xr * yi + xi * yr)];
            }
        }
        Ok(W::of_parts(sum))
    })
}

/// The square root of the sum of squares.
pub(crate) fn nrm2_of<W: Work>(
    call: &Call,
    n: i64,
    x: Place<W>,
    (result, codec): (Pointer, Codec<W>),
) -> Answer {
    let n = if x.1 > 0 { n } else { 0 };
    let x = call.vector(call.named("x"), n, x)?;
    call.give_number(result, codec, move || {
        let squares = |scale: f64| {
            let mut sum = 0.0;
            each(&x, |_, x| {
                for x in x {
                    let [re, im] = x.parts();
                    sum += (re * scale) * (re * scale) + (im * scale) * (im * scale);
                }
            });
            sum
        };
        let sum: f64 = squares(1.0);
        // From 2^-700 to 2^1000 no square overflowed, and no square that underflowed matters.
        if (1e-210..1e300).contains(&sum) || sum.is_nan() {
            return Ok(W::of_real(sum.sqrt()));
        }
        let mut largest = 0.0f64;
        each(&x, |_, x| {
            for part in x.iter().flat_map(|x| x.parts()) {
                largest = largest.max(part.abs());
            }
        });
        if largest == 0.0 || largest.is_infinite() {
            return Ok(W::of_real(largest));
        }
        // Scaling by a power of two is exact.
        let scale = if largest > 1.0 { 2f64.powi(-600) } else { 2f64.powi(600) };
        Ok(W::of_real(squares(scale).sqrt() / scale))
    })
}

/// The sum of |re| + |im|.
pub(crate) fn asum_of<W: Work>(
    call: &Call,
    n: i64,
    x: Place<W>,
    (result, codec): (Pointer, Codec<W>),
) -> Answer {
    let n = if x.1 > 0 { n } else { 0 };
    let x = call.vector(call.named("x"), n, x)?;
    call.give_number(result, codec, move || {
        let mut sum = 0.0;
        each(&x, |_, x| x.iter().for_each(|x| sum += x.size()));
        Ok(W::of_real(sum))
    })
}

/// The first index, counted from 1, of the element with the largest or smallest |re| + |im|.
pub(crate) fn extreme_of<W: Work>(
    call: &Call,
    n: i64,
    x: Place<W>,
    result: Pointer,
    is_better: fn(f64, f64) -> bool,
) -> Answer {
    let n = if x.1 > 0 { n } else { 0 };
    let x = call.vector(call.named("x"), n, x)?;
    let wide = call.wide;
    call.give(result, if wide { 8 } else { 4 }, move || {
        let mut best: Option<(i64, f64)> = None;
        each(&x, |from, x| {
            for (index, x) in x.iter().enumerate() {
                if best.is_none_or(|(_, size)| is_better(x.size(), size)) {
                    best = Some(((from + index) as i64 + 1, x.size()));
                }
            }
        });
        let index = best.map_or(0, |(index, _)| index);
        Ok(if wide { index.to_ne_bytes().to_vec() } else { (index as i32).to_ne_bytes().to_vec() })
    })
}

/// x, y = c x + s y, c y - conj(s) x
pub(crate) fn rot_of<W: Work>(
    call: &Call,
    n: i64,
    x: Place<W>,
    y: Place<W>,
    (c, c_codec): (Pointer, Codec<W>),
    (s, s_codec): (Pointer, Codec<W>),
) -> Answer {
    let (c, s) = (call.scalar("c", c, c_codec)?, call.scalar("s", s, s_codec)?);
    let (x, y) = (call.vector(call.written("x"), n, x)?, call.vector(call.written("y"), n, y)?);
    call.submit(move || {
        let (c, s) = (c.get(), s.get());
        change_both(&x, &y, |x, y| {
            for (x, y) in x.iter_mut().zip(y) {
                (*x, *y) = (c * *x + s * *y, c * *y - s.conj() * *x);
            }
        });
        Ok(())
    })
}

/// x, y = H (x, y). The first of the five parameters tells which elements of H the others give.
pub(crate) fn rotm_of<W: Work>(
    call: &Call,
    n: i64,
    x: Place<W>,
    y: Place<W>,
    (param, codec): (Pointer, Codec<W>),
) -> Answer {
    let size = codec.ty.bytes() as usize;
    let mut given = Vec::with_capacity(5);
    for index in 0..5 {
        let at = if param.is_null() { param } else { param.offset(index * size) };
        given.push(call.scalar("param", at, codec)?);
    }
    let (x, y) = (call.vector(call.written("x"), n, x)?, call.vector(call.written("y"), n, y)?);
    call.submit(move || {
        let given: Vec<W> = given.iter().map(|value| value.get()).collect();
        let one = W::ONE;
        let [h11, h21, h12, h22] = match given[0].parts()[0] {
            -1.0 => [given[1], given[2], given[3], given[4]],
            0.0 => [one, given[2], given[3], one],
            1.0 => [given[1], -one, one, given[4]],
            // -2 means the identity; other numbers have no meaning.
            _ => return Ok(()),
        };
        change_both(&x, &y, |x, y| {
            for (x, y) in x.iter_mut().zip(y) {
                (*x, *y) = (h11 * *x + h12 * *y, h21 * *x + h22 * *y);
            }
        });
        Ok(())
    })
}

/// Changes single numbers, at once for host pointers and in the stream for device pointers.
pub(crate) fn change_numbers<W: Work>(
    call: &Call,
    places: Vec<(&'static str, Pointer, Codec<W>)>,
    change: fn(&mut [W]),
) -> Answer {
    valid(places.iter().all(|(_, at, _)| !at.is_null()))?;
    let encode = |codec: &Codec<W>, value: W| {
        let mut bytes = vec![0; codec.ty.bytes() as usize];
        (codec.encode)(&[value], &mut bytes);
        bytes
    };
    let decode = |codec: &Codec<W>, bytes: &[u8]| {
        let mut value = [W::default()];
        (codec.decode)(bytes, &mut value);
        value[0]
    };
    match call.settings.pointer_mode {
        PointerMode::Host => {
            let mut values = Vec::new();
            for (_, at, codec) in &places {
                let mut bytes = vec![0; codec.ty.bytes() as usize];
                at.read(&mut bytes)?;
                values.push(decode(codec, &bytes));
            }
            change(&mut values);
            places
                .iter()
                .zip(&values)
                .try_for_each(|((_, at, codec), value)| at.write(&encode(codec, *value)))
        }
        PointerMode::Device => {
            let mut regions = Vec::new();
            for (name, at, codec) in places {
                let (size, aligned) = (codec.ty.bytes().into(), codec.ty.alignment());
                regions.push((Region::new(call.written(name), at.address(), size, aligned)?, codec));
            }
            call.submit(move || {
                let load = |(region, codec): &(Region, Codec<W>)| {
                    let mut bytes = vec![0; codec.ty.bytes() as usize];
                    region.read(0, &mut bytes);
                    decode(codec, &bytes)
                };
                let mut values: Vec<W> = regions.iter().map(load).collect();
                change(&mut values);
                regions
                    .iter()
                    .zip(&values)
                    .for_each(|((at, codec), value)| at.write(0, &encode(codec, *value)));
                Ok(())
            })
        }
    }
}

blas! {
    fn axpy[W](call, n: int, alpha: ptr, x: ptr, incx: int, y: ptr, incy: int) {
        axpy_of(call, n, (alpha, own::<W>()?), (x, incx, own()?), (y, incy, own()?))
    } => {
        cublasSaxpy_v2 cublasSaxpy_v2_64 <f32>,
        cublasDaxpy_v2 cublasDaxpy_v2_64 <f64>,
        cublasCaxpy_v2 cublasCaxpy_v2_64 <C32>,
        cublasZaxpy_v2 cublasZaxpy_v2_64 <C64>,
    }

    fn scal[W](call, n: int, alpha: ptr, x: ptr, incx: int) {
        scal_of(call, n, (alpha, own::<W>()?), (x, incx, own()?))
    } => {
        cublasSscal_v2 cublasSscal_v2_64 <f32>,
        cublasDscal_v2 cublasDscal_v2_64 <f64>,
        cublasCscal_v2 cublasCscal_v2_64 <C32>,
        cublasZscal_v2 cublasZscal_v2_64 <C64>,
    }

    fn scal_real[W](call, n: int, alpha: ptr, x: ptr, incx: int) {
        scal_of(call, n, (alpha, W::real_codec()), (x, incx, own()?))
    } => {
        cublasCsscal_v2 cublasCsscal_v2_64 <C32>,
        cublasZdscal_v2 cublasZdscal_v2_64 <C64>,
    }

    fn copy[W](call, n: int, x: ptr, incx: int, y: ptr, incy: int) {
        copy_of::<W>(call, n, (x, incx, own()?), (y, incy, own()?))
    } => {
        cublasScopy_v2 cublasScopy_v2_64 <f32>,
        cublasDcopy_v2 cublasDcopy_v2_64 <f64>,
        cublasCcopy_v2 cublasCcopy_v2_64 <C32>,
        cublasZcopy_v2 cublasZcopy_v2_64 <C64>,
    }

    fn swap[W](call, n: int, x: ptr, incx: int, y: ptr, incy: int) {
        swap_of::<W>(call, n, (x, incx, own()?), (y, incy, own()?))
    } => {
        cublasSswap_v2 cublasSswap_v2_64 <f32>,
        cublasDswap_v2 cublasDswap_v2_64 <f64>,
        cublasCswap_v2 cublasCswap_v2_64 <C32>,
        cublasZswap_v2 cublasZswap_v2_64 <C64>,
    }

    fn dotu[W](call, n: int, x: ptr, incx: int, y: ptr, incy: int, result: ptr) {
        dot_of::<W>(call, n, (x, incx, own()?), (y, incy, own()?), false, (result, own()?))
    } => {
        cublasSdot_v2 cublasSdot_v2_64 <f32>,
        cublasDdot_v2 cublasDdot_v2_64 <f64>,
        cublasCdotu_v2 cublasCdotu_v2_64 <C32>,
        cublasZdotu_v2 cublasZdotu_v2_64 <C64>,
    }

    fn dotc[W](call, n: int, x: ptr, incx: int, y: ptr, incy: int, result: ptr) {
        dot_of::<W>(call, n, (x, incx, own()?), (y, incy, own()?), true, (result, own()?))
    } => {
        cublasCdotc_v2 cublasCdotc_v2_64 <C32>,
        cublasZdotc_v2 cublasZdotc_v2_64 <C64>,
    }

    fn nrm2[W](call, n: int, x: ptr, incx: int, result: ptr) {
        nrm2_of::<W>(call, n, (x, incx, own()?), (result, W::real_codec()))
    } => {
        cublasSnrm2_v2 cublasSnrm2_v2_64 <f32>,
        cublasDnrm2_v2 cublasDnrm2_v2_64 <f64>,
        cublasScnrm2_v2 cublasScnrm2_v2_64 <C32>,
        cublasDznrm2_v2 cublasDznrm2_v2_64 <C64>,
    }

    fn asum[W](call, n: int, x: ptr, incx: int, result: ptr) {
        asum_of::<W>(call, n, (x, incx, own()?), (result, W::real_codec()))
    } => {
        cublasSasum_v2 cublasSasum_v2_64 <f32>,
        cublasDasum_v2 cublasDasum_v2_64 <f64>,
        cublasScasum_v2 cublasScasum_v2_64 <C32>,
        cublasDzasum_v2 cublasDzasum_v2_64 <C64>,
    }

    fn amax[W](call, n: int, x: ptr, incx: int, result: ptr) {
        extreme_of::<W>(call, n, (x, incx, own()?), result, |a, b| a > b)
    } => {
        cublasIsamax_v2 cublasIsamax_v2_64 <f32>,
        cublasIdamax_v2 cublasIdamax_v2_64 <f64>,
        cublasIcamax_v2 cublasIcamax_v2_64 <C32>,
        cublasIzamax_v2 cublasIzamax_v2_64 <C64>,
    }

    fn amin[W](call, n: int, x: ptr, incx: int, result: ptr) {
        extreme_of::<W>(call, n, (x, incx, own()?), result, |a, b| a < b)
    } => {
        cublasIsamin_v2 cublasIsamin_v2_64 <f32>,
        cublasIdamin_v2 cublasIdamin_v2_64 <f64>,
        cublasIcamin_v2 cublasIcamin_v2_64 <C32>,
        cublasIzamin_v2 cublasIzamin_v2_64 <C64>,
    }

    fn rot[W](call, n: int, x: ptr, incx: int, y: ptr, incy: int, c: ptr, s: ptr) {
        rot_of::<W>(call, n, (x, incx, own()?), (y, incy, own()?), (c, W::real_codec()), (s, own()?))
    } => {
        cublasSrot_v2 cublasSrot_v2_64 <f32>,
        cublasDrot_v2 cublasDrot_v2_64 <f64>,
        cublasCrot_v2 cublasCrot_v2_64 <C32>,
        cublasZrot_v2 cublasZrot_v2_64 <C64>,
    }

    fn rot_real[W](call, n: int, x: ptr, incx: int, y: ptr, incy: int, c: ptr, s: ptr) {
        let real = W::real_codec();
        rot_of::<W>(call, n, (x, incx, own()?), (y, incy, own()?), (c, real), (s, real))
    } => {
        cublasCsrot_v2 cublasCsrot_v2_64 <C32>,
        cublasZdrot_v2 cublasZdrot_v2_64 <C64>,
    }

    fn rotm[W](call, n: int, x: ptr, incx: int, y: ptr, incy: int, param: ptr) {
        rotm_of::<W>(call, n, (x, incx, own()?), (y, incy, own()?), (param, own()?))
    } => {
        cublasSrotm_v2 cublasSrotm_v2_64 <f32>,
        cublasDrotm_v2 cublasDrotm_v2_64 <f64>,
    }

    fn rotg[W](call, a: ptr, b: ptr, c: ptr, s: ptr) {
        let places = vec![("a", a, own()?), ("b", b, own()?), ("c", c, W::real_codec()), ("s", s, own()?)];
        let is_real = matches!(W::TYPE, DataType::F32 | DataType::F64);
        change_numbers::<W>(call, places, if is_real { crate::rotation::real } else { crate::rotation::complex })
    } => {
        cublasSrotg_v2 - <f32>,
        cublasDrotg_v2 - <f64>,
        cublasCrotg_v2 - <C32>,
        cublasZrotg_v2 - <C64>,
    }

    fn rotmg[W](call, d1: ptr, d2: ptr, x1: ptr, y1: ptr, param: ptr) {
        valid(!param.is_null())?;
        let codec = own::<W>()?;
        let mut places = vec![("d1", d1, codec), ("d2", d2, codec), ("x1", x1, codec), ("y1", y1, codec)];
        let size = codec.ty.bytes() as usize;
        places.extend((0..5).map(|index| ("param", param.offset(index * size), codec)));
        change_numbers::<W>(call, places, crate::rotation::modified)
    } => {
        cublasSrotmg_v2 - <f32>,
        cublasDrotmg_v2 - <f64>,
    }
}
