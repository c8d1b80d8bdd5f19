//! Instructions on 8 and 16 bits, for every value of the first operand: arithmetic and logic of 16 bits (with
//! some second operands), conversions from 8 and 16 bit integers and from halves (PTX ISA §9.7.1, §9.7.5,
//! §9.7.7, §9.7.8.14). And reciprocal square roots, which native code may refine from an estimate (PTX ISA
//! §9.7.3.16): two whole binades, and operands of every exponent.
//!
//! Expected values are those of Rust's integers, of its conversions (`as` between integers and from integers
//! to floats rounds to nearest even), and of halves decoded here, rounded by the functions of `f64`, in which
//! every half is exact.

use ptxvm::{Arg, Engine, Launch, Vm};

const VALUES: usize = 1 << 16;

/// Runs `body` once for each value `%a` of 16 bits (`%w` is its zero-extension to 32 bits), with `%b`, and
/// gives what it leaves in `%d` of 64 bits; native code, where it is made, must agree with the interpreter.
fn run(vm: &Vm, body: &str, b: u16) -> Vec<u64> {
    let text = format!(
        ".version 6.4
.target sm_70
.address_size 64
.visible .entry run(.param .u64 out, .param .u16 second)
{{
    .reg .b64 %out, %at, %d;
    .reg .b32 %cta, %i, %w, %x;
    .reg .b16 %a, %b, %h;
    .reg .f32 %f;
    .reg .f64 %e;
    .reg .pred %p;
    ld.param.u64 %out, [out];
    ld.param.u16 %b, [second];
    mov.u32 %cta, %ctaid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %w, %cta, 256, %i;
    cvt.u16.u32 %a, %w;
    mul.wide.u32 %at, %w, 8;
    add.u64 %out, %out, %at;
    {body}
    st.global.u64 [%out], %d;
    ret;
}}"
    );
    let kernel = vm.load(body, &text).and_then(|m| m.kernel("run")).unwrap_or_else(|e| panic!("{body}: {e}"));
    let by = |engine| {
        let out = vm.zeros::<u64>(VALUES).expect("memory");
        let launch = Launch::new([256, 1, 1], [256, 1, 1])
            .engine(engine)
            .args(&kernel, &[Arg::buffer(&out), Arg::from(b)])
            .expect("the arguments fit");
        vm.launch(&kernel, &launch).unwrap_or_else(|e| panic!("{body}: {e}"));
        out.read().expect("the results")
    };
    let found = by(Engine::Interp);
    assert!(found == by(Engine::Auto), "{body} with {b:#x}: native code and the interpreter differ");
    found
}

fn check(vm: &Vm, body: &str, b: u16, expected: impl Fn(u16) -> u64) {
    for (a, found) in run(vm, body, b).into_iter().enumerate() {
        let expected = expected(a as u16);
        assert_eq!(found, expected, "{body}: {a:#x}, {b:#x} gives {found:#x}, not {expected:#x}");
    }
}

/// Second operands: edges and one in the middle.
const SECOND: [u16; 4] = [0, 3, 0x8000, 0xffff];

type Meaning = fn(u16, u16) -> u16;

// covers: ins.add.int ins.sub.int ins.mul.hi ins.mul.lo ins.div.int ins.rem.int ins.min.int ins.max.int ins.sad ins.mad.lo
// covers: ins.mad.hi opnd.16bit_semantics
#[test]
fn arithmetic_of_16_bits() {
    let forms: [(&str, Meaning); 20] = [
        ("add.s16 %h, %a, %b;", u16::wrapping_add),
        ("add.u16 %h, %a, %b;", u16::wrapping_add),
        ("sub.s16 %h, %a, %b;", u16::wrapping_sub),
        ("sub.u16 %h, %b, %a;", |a, b| b.wrapping_sub(a)),
        ("mul.lo.s16 %h, %a, %b;", u16::wrapping_mul),
        ("mul.hi.s16 %h, %a, %b;", |a, b| ((i32::from(a as i16) * i32::from(b as i16)) >> 16) as u16),
        ("mul.hi.u16 %h, %a, %b;", |a, b| ((u32::from(a) * u32::from(b)) >> 16) as u16),
        ("mad.lo.u16 %h, %a, %b, %b;", |a, b| a.wrapping_mul(b).wrapping_add(b)),
        ("mad.hi.s16 %h, %a, %b, %a;", |a, b| {
            (((i32::from(a as i16) * i32::from(b as i16)) >> 16) as u16).wrapping_add(a)
        }),
        ("min.s16 %h, %a, %b;", |a, b| (a as i16).min(b as i16) as u16),
        ("max.s16 %h, %a, %b;", |a, b| (a as i16).max(b as i16) as u16),
        ("min.u16 %h, %a, %b;", u16::min),
        ("max.u16 %h, %a, %b;", u16::max),
        ("sad.s16 %h, %a, %b, %a;", |a, b| (a as i16).abs_diff(b as i16).wrapping_add(a)),
        ("sad.u16 %h, %a, %b, %b;", |a, b| a.abs_diff(b).wrapping_add(b)),
        ("and.b16 %h, %a, %b;", |a, b| a & b),
        ("or.b16 %h, %a, %b;", |a, b| a | b),
        ("xor.b16 %h, %a, %b;", |a, b| a ^ b),
        ("div.s16 %h, %a, %b;", |a, b| (a as i16).wrapping_div(b as i16) as u16),
        ("rem.u16 %h, %a, %b;", |a, b| a % b),
    ];
    let vm = Vm::new().expect("a machine");
    for (form, meaning) in forms {
        // The manual says nothing of a division by zero.
        let divides = form.starts_with("div") || form.starts_with("rem");
        for b in SECOND.into_iter().filter(|b| !divides || *b != 0) {
            check(&vm, &format!("{form} cvt.u64.u16 %d, %h;"), b, |a| meaning(a, b).into());
        }
    }
}

// covers: ins.abs.int ins.neg.int ins.not ins.cnot ins.shl ins.shr ins.mul.wide
#[test]
fn one_operand_and_shifts_of_16_bits() {
    let vm = Vm::new().expect("a machine");
    type Unary = fn(u16) -> u16;
    let forms: [(&str, Unary); 4] = [
        ("abs.s16 %h, %a;", |a| (a as i16).wrapping_abs() as u16),
        ("neg.s16 %h, %a;", u16::wrapping_neg),
        ("not.b16 %h, %a;", |a| !a),
        ("cnot.b16 %h, %a;", |a| u16::from(a == 0)),
    ];
    for (form, meaning) in forms {
        check(&vm, &format!("{form} cvt.u64.u16 %d, %h;"), 0, |a| meaning(a).into());
    }
    for count in [0u32, 1, 15, 16, 31, 0xffff_ffff] {
        let shift = |form: &str| format!("{form} %h, %a, {count}; cvt.u64.u16 %d, %h;");
        check(&vm, &shift("shl.b16"), 0, |a| a.checked_shl(count).unwrap_or(0).into());
        check(&vm, &shift("shr.u16"), 0, |a| a.checked_shr(count).unwrap_or(0).into());
        check(&vm, &shift("shr.s16"), 0, |a| u64::from(((a as i16) >> count.min(15)) as u16));
    }
    for b in SECOND {
        let product = |a: u16| u64::from((i32::from(a as i16) * i32::from(b as i16)) as u32);
        check(&vm, "mul.wide.s16 %x, %a, %b; cvt.u64.u32 %d, %x;", b, product);
    }
}

/// A type of integers: name, bits, whether signed.
type Int = (&'static str, u32, bool);

const NARROW: [Int; 4] = [("s8", 8, true), ("u8", 8, false), ("s16", 16, true), ("u16", 16, false)];
const WIDE: [Int; 4] = [("s32", 32, true), ("u32", 32, false), ("s64", 64, true), ("u64", 64, false)];

fn integers() -> impl Iterator<Item = Int> {
    NARROW.into_iter().chain(WIDE)
}

/// The value of the low bits of a register.
fn value(a: u16, (_, bits, signed): Int) -> i128 {
    match (bits, signed) {
        (8, true) => i128::from(a as i8),
        (8, false) => i128::from(a as u8),
        (_, true) => i128::from(a as i16),
        _ => i128::from(a),
    }
}

fn range((_, bits, signed): Int) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// The register of 64 bits that a result of this type leaves.
fn kept(x: i128, (_, bits, signed): Int) -> u64 {
    let unused = 128 - bits;
    if signed { ((x << unused) >> unused) as u64 } else { ((x as u128) << unused >> unused) as u64 }
}

// covers: ins.cvt.int_int ins.cvt.int_int.sat
#[test]
fn conversions_from_narrow_integers_to_integers() {
    let vm = Vm::new().expect("a machine");
    for from in NARROW {
        for to in integers() {
            check(&vm, &format!("cvt.{}.{} %d, %a;", to.0, from.0), 0, |a| kept(value(a, from), to));
            let ((low, high), (least, most)) = (range(to), range(from));
            // Only where something can be clamped is `.sat` allowed.
            if least < low || most > high {
                let body = format!("cvt.sat.{}.{} %d, %a;", to.0, from.0);
                check(&vm, &body, 0, |a| kept(value(a, from).clamp(low, high), to));
            }
        }
    }
}

// covers: ins.cvt.int_fp
#[test]
fn conversions_from_narrow_integers_to_floats() {
    let vm = Vm::new().expect("a machine");
    for from in NARROW {
        // At most 16 bits: exact in both, whatever the rounding.
        for rounding in ["rn", "rz", "rm", "rp"] {
            let single = format!("cvt.{rounding}.f32.{} %f, %a; mov.b32 %x, %f; cvt.u64.u32 %d, %x;", from.0);
            check(&vm, &single, 0, |a| u64::from((value(a, from) as f32).to_bits()));
            let double = format!("cvt.{rounding}.f64.{} %e, %a; mov.b64 %d, %e;", from.0);
            check(&vm, &double, 0, |a| (value(a, from) as f64).to_bits());
        }
    }
}

/// The value of a half; `None` for a NaN.
fn of_half(bits: u16) -> Option<f64> {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => return None,
        _ => (1024.0 + mantissa) * 2f64.powi(exponent - 25),
    };
    Some(if bits >> 15 == 1 { -magnitude } else { magnitude })
}

type Rounding = fn(f64) -> f64;

const ROUNDINGS: [(&str, Rounding); 4] =
    [("rni", f64::round_ties_even), ("rzi", f64::trunc), ("rmi", f64::floor), ("rpi", f64::ceil)];

// covers: ins.cvt.fp_int opnd.round_int
#[test]
fn conversions_from_halves_to_integers() {
    let vm = Vm::new().expect("a machine");
    for (rounding, round) in ROUNDINGS {
        for to in integers() {
            let (low, high) = range(to);
            // `as` takes infinities to the ends; a NaN becomes 0, or 2^63 in 64 bits.
            let nan = if high > 1 << 32 { 1 << 63 } else { 0 };
            let whole = |a| of_half(a).map_or(nan, |x| (round(x) as i128).clamp(low, high));
            check(&vm, &format!("cvt.{rounding}.{}.f16 %d, %a;", to.0), 0, |a| kept(whole(a), to));
        }
    }
}

// covers: ins.cvt.fp_widen ins.cvt.fp_integral
#[test]
fn conversions_from_halves_to_floats() {
    let vm = Vm::new().expect("a machine");
    let bits = run(&vm, "cvt.f64.f16 %e, %a; mov.b64 %d, %e;", 0);
    let single = run(&vm, "cvt.f32.f16 %f, %a; mov.b32 %x, %f; cvt.u64.u32 %d, %x;", 0);
    for a in 0..=u16::MAX {
        let (double, single) =
            (f64::from_bits(bits[usize::from(a)]), f32::from_bits(single[usize::from(a)] as u32));
        match of_half(a) {
            Some(x) => {
                assert_eq!(double.to_bits(), x.to_bits(), "{a:#x} becomes {double}, not {x}");
                assert_eq!(single.to_bits(), (x as f32).to_bits(), "{a:#x} becomes {single}, not {x}");
            }
            None => assert!(double.is_nan() && single.is_nan(), "{a:#x} becomes {double} and {single}"),
        }
    }
    for (rounding, round) in ROUNDINGS {
        let found = run(&vm, &format!("cvt.{rounding}.f16.f16 %h, %a; cvt.u64.u16 %d, %h;"), 0);
        for a in 0..=u16::MAX {
            let (found, expected) = (of_half(found[usize::from(a)] as u16), of_half(a).map(round));
            assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits), "{rounding} of {a:#x}");
        }
    }
}

/// Runs `rsqrt.approx` on bits `first`, `first + step`... and compares it with two IEEE operations.
fn roots(vm: &Vm, ftz: bool, first: u32, step: u32, count: u32) {
    let form = if ftz { "rsqrt.approx.ftz.f32" } else { "rsqrt.approx.f32" };
    let text = format!(
        ".version 6.4
.target sm_70
.address_size 64
.visible .entry run(.param .u64 out, .param .u32 first, .param .u32 step)
{{
    .reg .b64 %out, %at;
    .reg .b32 %cta, %i, %a, %b;
    .reg .f32 %x, %y;
    ld.param.u64 %out, [out];
    ld.param.u32 %a, [first];
    ld.param.u32 %b, [step];
    mov.u32 %cta, %ctaid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %cta, 256, %i;
    mad.lo.u32 %a, %i, %b, %a;
    mov.b32 %x, %a;
    {form} %y, %x;
    mul.wide.u32 %at, %i, 4;
    add.u64 %out, %out, %at;
    st.global.f32 [%out], %y;
    ret;
}}"
    );
    let kernel = vm.load(form, &text).and_then(|m| m.kernel("run")).unwrap_or_else(|e| panic!("{form}: {e}"));
    let out = vm.zeros::<u32>(count as usize).expect("memory");
    let launch = Launch::new([count / 256, 1, 1], [256, 1, 1])
        .engine(Engine::Auto)
        .args(&kernel, &[Arg::buffer(&out), Arg::from(first), Arg::from(step)])
        .expect("the arguments fit");
    vm.launch(&kernel, &launch).unwrap_or_else(|e| panic!("{form}: {e}"));
    for (i, found) in out.read().expect("the results").into_iter().enumerate() {
        let a = f32::from_bits(first.wrapping_add(step.wrapping_mul(i as u32)));
        let a = if ftz && a.is_subnormal() { 0f32.copysign(a) } else { a };
        // The root of -0 is -0.
        let expected = 1.0 / a.sqrt();
        let expected = if expected.is_nan() { 0x7fff_ffff } else { expected.to_bits() };
        assert_eq!(found, expected, "{form} of {a:e} ({:#010x}) gives {found:#010x}", a.to_bits());
    }
}

// covers: ins.rsqrt.approx.f32
#[test]
fn reciprocal_square_roots_have_two_roundings() {
    let vm = Vm::new().expect("a machine");
    roots(&vm, false, 0x3f80_0000, 1, 1 << 24);
    for ftz in [false, true] {
        // The step is odd, so that significands vary with the exponents; and all numbers around the least
        // that is estimated.
        roots(&vm, ftz, 0, 4099, 1 << 20);
        roots(&vm, ftz, 0x1880_0000 - (1 << 15), 1, 1 << 16);
    }
}
