//! Mathematical functions of programs, compared with the C library's. The limits are the errors that CUDA
//! documents, plus one ulp for the C library's own error.
#![cfg(target_os = "linux")]

mod support;

use support::{Module, Program, has_clang};

// SAFETY: the C library of every system has these functions, with these C types.
unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    safe fn tgamma(x: f64) -> f64;
    safe fn lgamma(x: f64) -> f64;
    safe fn remainder(x: f64, y: f64) -> f64;
}

/// A function of one argument, its reference, the largest error in ulps, the bounds of arguments, and whether
/// the arguments are spaced geometrically.
type Case = (&'static str, fn(f64) -> f64, f64, f64, f64, bool);

const CASES: &[Case] = &[
    ("exp", f64::exp, 2.0, -745.0, 709.7, false),
    ("exp2", f64::exp2, 2.0, -1074.0, 1023.9, false),
    ("exp10", |x| 10f64.powf(x), 3.0, -307.0, 308.0, false),
    ("expm1", f64::exp_m1, 2.0, -20.0, 300.0, false),
    ("log", f64::ln, 2.0, 1e-320, 1e308, true),
    ("log1p", f64::ln_1p, 2.0, 1e-20, 1e20, true),
    ("log2", f64::log2, 2.0, 1e-320, 1e308, true),
    ("log10", f64::log10, 3.0, 1e-320, 1e308, true),
    ("sin", f64::sin, 2.0, 1e-10, 1e300, true),
    ("cos", f64::cos, 2.0, 1e-10, 1e300, true),
    ("tan", f64::tan, 3.0, 1e-10, 1e300, true),
    ("asin", f64::asin, 3.0, -1.0, 1.0, false),
    ("acos", f64::acos, 3.0, -1.0, 1.0, false),
    ("atan", f64::atan, 3.0, -30.0, 30.0, false),
    ("sinh", f64::sinh, 3.0, -710.0, 710.0, false),
    ("cosh", f64::cosh, 3.0, -710.0, 710.0, false),
    ("tanh", f64::tanh, 3.0, -20.0, 20.0, false),
    ("asinh", f64::asinh, 5.0, -50.0, 50.0, false),
    ("acosh", f64::acosh, 5.0, 1.0, 100.0, false),
    ("cbrt", f64::cbrt, 2.0, 1e-320, 1e308, true),
    ("erf", |x| erf(x), 3.0, -6.0, 6.0, false),
    ("erfc", |x| erfc(x), 6.0, -6.0, 26.0, false),
    ("tgamma", |x| tgamma(x), 15.0, -30.0, 171.0, false),
    ("lgamma", |x| lgamma(x), 6.0, 0.01, 100.0, false),
];

const COUNT: usize = 512;

/// Arguments from one bound to the other, spaced evenly in magnitude or in value.
fn arguments(low: f64, high: f64, by_size: bool) -> Vec<f64> {
    let part = |index: usize| (index as f64 + 0.37) / COUNT as f64;
    let of = |index| {
        if by_size {
            (low.log2() + part(index) * (high.log2() - low.log2())).exp2()
        } else {
            low + part(index) * (high - low)
        }
    };
    (0..COUNT).map(of).collect()
}

/// The distance of a number from another, in units of the other's last place.
fn ulps(found: f64, expected: f64) -> f64 {
    if found == expected || found.is_nan() && expected.is_nan() {
        return 0.0;
    }
    let ulp = (expected.abs().next_up() - expected.abs()).max(f64::from_bits(1));
    let off = (found - expected).abs() / ulp;
    if off.is_nan() { f64::INFINITY } else { off }
}

fn kernels() -> Module {
    let mut text = String::new();
    for (name, ..) in CASES {
        text += &format!(
            "extern \"C\" __global__ void d_{name}(double *x) {{ x[threadIdx.x] = {name}(x[threadIdx.x]); }}\n\
             extern \"C\" __global__ void s_{name}(float *x) {{ x[threadIdx.x] = {name}(x[threadIdx.x]); }}\n"
        );
    }
    for name in ["pow", "atan2", "hypot", "fmod", "remainder"] {
        text += &format!(
            "extern \"C\" __global__ void d_{name}(double2 *x) {{ x[threadIdx.x].x = {name}(x[threadIdx.x].x, x[threadIdx.x].y); }}\n"
        );
    }
    let program = Program::new(&text).compiled(&["-arch=sm_80"]);
    Module::load(&program.bytes("nvrtcGetCUBINSize", "nvrtcGetCUBIN").expect("there is code"))
}

#[test]
fn functions_are_as_exact_as_cudas() {
    if !has_clang() {
        return;
    }
    let module = kernels();
    for (name, reference, most, low, high, by_size) in CASES {
        let mut given = arguments(*low, *high, *by_size);
        given[..5].copy_from_slice(&[0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        let found = module.run(&format!("d_{name}"), COUNT, &given);
        for (x, y) in given.iter().zip(&found) {
            let expected = reference(*x);
            assert!(ulps(*y, expected) <= *most, "{name}({x:e}) is {expected:e}, not {y:e}");
        }
        let given: Vec<f32> = given.iter().map(|x| *x as f32).collect();
        let found = module.run(&format!("s_{name}"), COUNT, &given);
        for (x, y) in given.iter().zip(&found) {
            let expected = reference(f64::from(*x)) as f32;
            let off = (i64::from(y.to_bits()) - i64::from(expected.to_bits())).abs();
            let agree = y == &expected || y.is_nan() && expected.is_nan() || off <= 1;
            assert!(agree, "{name}f({x:e}) is {expected:e}, not {y:e}");
        }
    }
}

#[test]
fn functions_of_two_arguments_are_as_exact_as_cudas() {
    if !has_clang() {
        return;
    }
    let module = kernels();
    let special =
        [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e308, -1e-310, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let mut given: Vec<[f64; 2]> = special.iter().flat_map(|x| special.map(|y| [*x, y])).collect();
    let (wide, narrow) = (arguments(1e-30, 1e30, true), arguments(-9.0, 9.0, false));
    given.extend((0..COUNT - given.len()).map(|i| [wide[(i * 37) % COUNT], narrow[i]]));
    type Case = (&'static str, fn(f64, f64) -> f64, f64);
    let cases: [Case; 5] = [
        ("pow", f64::powf, 3.0),
        ("atan2", f64::atan2, 3.0),
        ("hypot", f64::hypot, 3.0),
        ("fmod", |x, y| x % y, 0.0),
        ("remainder", |x, y| remainder(x, y), 0.0),
    ];
    for (name, reference, most) in cases {
        let found = module.run(&format!("d_{name}"), COUNT, &given);
        for ([x, y], [result, _]) in given.iter().zip(&found) {
            let expected = reference(*x, *y);
            let sign = expected != 0.0 || result.is_sign_negative() == expected.is_sign_negative();
            assert!(
                sign && ulps(*result, expected) <= most,
                "{name}({x:e}, {y:e}) is {expected:e}, not {result:e}"
            );
        }
    }
}
