//! Level 1 against exact sums, for each type, increments of either sign, both pointer modes and both widths
//! of integers.

mod support;

use support::{C32, C64, Dense, Device, Handle, Number, SUCCESS, place, span, store_vector, values, vector};

const SIZES: [usize; 4] = [0, 1, 7, 600];
const INCREMENTS: [i32; 4] = [1, 3, -1, -2];

/// Calls `with` for each width of integers, size, and pair of increments.
fn each(mut with: impl FnMut(&str, usize, i32, i32)) {
    for suffix in ["_v2", "_v2_64"] {
        for n in SIZES {
            for incx in INCREMENTS {
                for incy in [1, -2] {
                    with(suffix, n, incx, incy);
                }
            }
        }
    }
}

fn combine<T: Number>(x: &Dense, a: C64, y: &Dense, b: C64, memory: &[T], increment: i32) -> Vec<T> {
    store_vector(&x.plus(a, y, b), memory, increment)
}

fn updates<T: Number>() {
    let handle = Handle::new();
    let letter = T::LETTER;
    let alpha = C64::new(2.0, if T::COMPLEX { -1.0 } else { 0.0 });
    let (one, zero) = (C64::new(1.0, 0.0), C64::default());
    each(|suffix, n, incx, incy| {
        let (xs, ys) = (values::<T>(1, span(n, incx)), values::<T>(2, span(n, incy)));
        let (x, y) = (vector(&xs, n, incx), vector(&ys, n, incy));
        let fresh = || (Device::new(&xs), Device::new(&ys));
        for device in [false, true] {
            let factor = Device::new(&[T::of(alpha)]);
            let host = T::of(alpha);
            handle.device_mode(device);
            let factor = if device { factor.at } else { (&raw const host).expose_provenance() };
            let (dx, dy) = fresh();
            let name = format!("cublas{letter}axpy{suffix}");
            assert_eq!(call!(name, handle.0, n, factor, dx.at, incx, dy.at, incy), SUCCESS);
            assert_eq!(dy.get(), combine(&x, alpha, &y, one, &ys, incy), "{name} {n} {incx} {incy}");
            let (dx, _) = fresh();
            let name = format!("cublas{letter}scal{suffix}");
            assert_eq!(call!(name, handle.0, n, factor, dx.at, incx), SUCCESS);
            let expected = if incx > 0 { combine(&x, alpha, &x, zero, &xs, incx) } else { xs.clone() };
            assert_eq!(dx.get(), expected, "{name} {n} {incx}");
        }
        handle.device_mode(false);
        let (dx, dy) = fresh();
        let name = format!("cublas{letter}copy{suffix}");
        assert_eq!(call!(name, handle.0, n, dx.at, incx, dy.at, incy), SUCCESS);
        assert_eq!(dy.get(), store_vector(&x, &ys, incy), "{name} {n} {incx} {incy}");
        let (dx, dy) = fresh();
        let name = format!("cublas{letter}swap{suffix}");
        assert_eq!(call!(name, handle.0, n, dx.at, incx, dy.at, incy), SUCCESS);
        assert_eq!(dx.get(), store_vector(&y, &xs, incx), "{name} {n} {incx} {incy}");
        assert_eq!(dy.get(), store_vector(&x, &ys, incy), "{name} {n} {incx} {incy}");
    });
}

/// Calls with a result, in either pointer mode.
fn result<T: Number>(handle: &Handle, name: &str, device: bool, arguments: &[usize]) -> T {
    let mut host = [T::of(C64::new(-99.0, 0.0))];
    let memory = Device::new(&host);
    handle.device_mode(device);
    let place = if device { memory.at } else { host.as_mut_ptr().expose_provenance() };
    let all: Vec<usize> = [&[handle.0], arguments, &[place]].concat();
    assert_eq!(support::raw(name, &all), SUCCESS, "{name}");
    handle.device_mode(false);
    if device { memory.get()[0] } else { host[0] }
}

/// `R` is the type of the real results. Its letter precedes the type's in names.
fn sums<T: Number, R: Number>(real: &str, index: &str, dots: &[(&str, bool)]) {
    let handle = Handle::new();
    let letter = T::LETTER;
    let size = |x: C64| x.re.abs() + x.im.abs();
    each(|suffix, n, incx, incy| {
        let (xs, ys) = (values::<T>(3, span(n, incx)), values::<T>(4, span(n, incy)));
        let (x, y) = (vector(&xs, n, incx), vector(&ys, n, incy));
        let (dx, dy) = (Device::new(&xs), Device::new(&ys));
        let increment = i64::from(incx) as usize;
        for device in [false, true] {
            for (dot, conjugate) in dots {
                let terms = x.values.iter().zip(&y.values);
                let expected: C64 = terms.map(|(x, y)| if *conjugate { x.conj() * y } else { x * y }).sum();
                let name = format!("cublas{letter}{dot}{suffix}");
                let arguments = [n, dx.at, increment, dy.at, i64::from(incy) as usize];
                assert_eq!(
                    result::<T>(&handle, &name, device, &arguments),
                    T::of(expected),
                    "{name} {n} {incx}"
                );
            }
            let counted: &[C64] = if incx > 0 { &x.values } else { &[] };
            let one = [n, dx.at, increment];
            let expected = counted.iter().map(C64::norm_sqr).sum::<f64>().sqrt();
            let name = format!("cublas{real}nrm2{suffix}");
            assert_eq!(
                result::<R>(&handle, &name, device, &one),
                R::of(expected.into()),
                "{name} {n} {incx}"
            );
            let expected: f64 = counted.iter().map(|x| size(*x)).sum();
            let name = format!("cublas{real}asum{suffix}");
            assert_eq!(
                result::<R>(&handle, &name, device, &one),
                R::of(expected.into()),
                "{name} {n} {incx}"
            );
            let sizes = || counted.iter().map(|x| size(*x)).enumerate();
            let largest = sizes().fold((0, -1.0), |best, (i, x)| if x > best.1 { (i + 1, x) } else { best });
            let smallest = sizes().fold((0, 1e9), |best, (i, x)| if x < best.1 { (i + 1, x) } else { best });
            for (which, expected) in [("max", largest.0), ("min", smallest.0)] {
                let name = format!("cublasI{index}a{which}{suffix}");
                let found = if suffix.ends_with("_64") {
                    // As two integers, because the test's numbers have no 64-bit type.
                    let mut host = [-1i64];
                    let arguments =
                        [&[handle.0], &one[..], &[host.as_mut_ptr().expose_provenance()]].concat();
                    assert_eq!(support::raw(&name, &arguments), SUCCESS);
                    host[0]
                } else {
                    i64::from(result::<i32>(&handle, &name, device, &one))
                };
                assert_eq!(found, expected as i64, "{name} {n} {incx}");
            }
        }
    });
}

fn rotations<T: Number, R: Number>(forms: &[(&str, bool)]) {
    let handle = Handle::new();
    let c = C64::new(2.0, 0.0);
    for (name, complex) in forms {
        let s = C64::new(3.0, if *complex { -1.0 } else { 0.0 });
        each(|suffix, n, incx, incy| {
            let (xs, ys) = (values::<T>(5, span(n, incx)), values::<T>(6, span(n, incy)));
            let (x, y) = (vector(&xs, n, incx), vector(&ys, n, incy));
            let (dx, dy) = (Device::new(&xs), Device::new(&ys));
            let (cosine, sine, real_sine) = (R::of(c), T::of(s), R::of(s));
            let sine = if *complex { (&raw const sine).addr() } else { (&raw const real_sine).addr() };
            let name = format!("cublas{name}{suffix}");
            assert_eq!(call!(name, handle.0, n, dx.at, incx, dy.at, incy, &cosine, sine), SUCCESS);
            assert_eq!(dx.get(), combine(&x, c, &y, s, &xs, incx), "{name} {n} {incx} {incy}");
            assert_eq!(dy.get(), combine(&y, c, &x, -s.conj(), &ys, incy), "{name} {n} {incx} {incy}");
        });
    }
}

#[test]
fn vectors_are_changed() {
    updates::<f32>();
    updates::<f64>();
    updates::<C32>();
    updates::<C64>();
}

#[test]
fn vectors_are_summed_up() {
    sums::<f32, f32>("S", "s", &[("dot", false)]);
    sums::<f64, f64>("D", "d", &[("dot", false)]);
    sums::<C32, f32>("Sc", "c", &[("dotu", false), ("dotc", true)]);
    sums::<C64, f64>("Dz", "z", &[("dotu", false), ("dotc", true)]);
}

#[test]
fn vectors_are_rotated() {
    rotations::<f32, f32>(&[("Srot", true)].map(|(name, _)| (name, false)));
    rotations::<f64, f64>(&[("Drot", false)]);
    rotations::<C32, f32>(&[("Crot", true), ("Csrot", false)]);
    rotations::<C64, f64>(&[("Zrot", true), ("Zdrot", false)]);
}

#[test]
fn scaled_by_real_numbers() {
    let handle = Handle::new();
    let xs = values::<C32>(7, 5);
    let x = Device::new(&xs);
    assert_eq!(call!("cublasCsscal_v2", handle.0, 5, &3f32, x.at, 1), SUCCESS);
    assert_eq!(x.get(), xs.iter().map(|x| x * 3.0).collect::<Vec<_>>());
}

#[test]
fn modified_rotations_have_five_parameters() {
    let handle = Handle::new();
    let (xs, ys) = (values::<f64>(8, 9), values::<f64>(9, 9));
    for (param, h) in [
        ([-1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 3.0, 4.0, 5.0]),
        ([0.0, 9.0, 3.0, 4.0, 9.0], [1.0, 3.0, 4.0, 1.0]),
        ([1.0, 2.0, 9.0, 9.0, 5.0], [2.0, -1.0, 1.0, 5.0]),
        ([-2.0, 9.0, 9.0, 9.0, 9.0], [1.0, 0.0, 0.0, 1.0]),
    ] {
        let (x, y) = (Device::new(&xs), Device::new(&ys));
        assert_eq!(call!("cublasDrotm_v2", handle.0, 9, x.at, 1, y.at, -1, &param), SUCCESS);
        let [h11, h21, h12, h22] = h;
        let partner = |i: usize| place(i, 9, -1);
        for i in 0..9 {
            assert_eq!(x.get()[i], h11 * xs[i] + h12 * ys[partner(i)]);
            assert_eq!(y.get()[partner(i)], h21 * xs[i] + h22 * ys[partner(i)]);
        }
    }
    let mut numbers = [3f64, 4.0, 0.0, 0.0];
    let [a, b, c, s] = numbers.each_mut();
    assert_eq!(call!("cublasDrotg_v2", handle.0, a, b, c, s), SUCCESS);
    assert!((numbers[0] - 5.0).abs() < 1e-12 && (numbers[2] - 0.6).abs() < 1e-12, "{numbers:?}");
}

#[test]
fn norms_neither_overflow_nor_vanish() {
    let handle = Handle::new();
    for scale in [1e-300, 1e-200, 1.0, 1e200, 1e300] {
        let x = Device::new(&[3.0 * scale, 4.0 * scale]);
        let mut norm = 0.0f64;
        assert_eq!(call!("cublasDnrm2_v2", handle.0, 2, x.at, 1, &mut norm), SUCCESS);
        assert!((norm / scale - 5.0).abs() < 1e-14, "{norm} for {scale}");
    }
    let x = Device::new(&[3e30f32, 4e30]);
    let mut norm = 0.0f32;
    assert_eq!(call!("cublasSnrm2_v2", handle.0, 2, x.at, 1, &mut norm), SUCCESS);
    assert_eq!(norm, 5e30);
    let x = Device::new(&[f32::NAN, f32::INFINITY]);
    assert_eq!(call!("cublasSnrm2_v2", handle.0, 2, x.at, 1, &mut norm), SUCCESS);
    assert!(norm.is_nan());
}

#[test]
fn halves_are_summed_up_in_single_precision() {
    let handle = Handle::new();
    let xs = vec![half::f16::from_f32(1.0); 5000];
    let x = Device::new(&xs);
    let mut sum = half::f16::ZERO;
    // Types: half precision for x, y and the result, computed in single precision.
    assert_eq!(call!("cublasDotEx", handle.0, 5000, x.at, 2, 1, x.at, 2, 1, &mut sum, 2, 0), SUCCESS);
    assert_eq!(sum.to_f32(), 5000.0);
    assert_eq!(call!("cublasScalEx", handle.0, 5000, &0.5f32, 0, x.at, 2, 1, 0), SUCCESS);
    assert_eq!(call!("cublasAxpyEx", handle.0, 5000, &2f32, 0, x.at, 2, 1, x.at, 2, 1, 0), SUCCESS);
    assert!(x.get().iter().all(|x| x.to_f32() == 1.5));
    let mut index = 0;
    assert_eq!(call!("cublasIamaxEx", handle.0, 5000, x.at, 2, 1, &mut index), SUCCESS);
    assert_eq!(index, 1);
    assert_eq!(call!("cublasNrm2Ex", handle.0, 4, x.at, 2, 1, &mut sum, 2, 0), SUCCESS);
    assert_eq!(sum.to_f32(), 3.0);
    assert_eq!(call!("cublasScalEx", handle.0, 1, &1f32, 0, x.at, 28, 1, 0), support::NOT_SUPPORTED);
}
