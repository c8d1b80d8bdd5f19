//! Every operand of the 8- and 16-bit rows, through the whole path.
//!
//! A case is one instruction. One operand takes all 65536 patterns of 16 bits; two operands take all pairs of
//! 8 bits, extended as the type says, and repeated in both halves of 16 bits; a third takes a few values. The
//! reference is exact arithmetic on integers: a value of any type is an integer times a power of two, rounded
//! once.
//!
//! Invariant: nothing here uses `ptx-sem`.

use super::{Counts, add, rows};
use ptxvm::{Arg, Launch, Vm};
use std::fmt::Write as _;

/// The number of executed cases, and the failures.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) counts: Counts,
    pub(super) failures: Vec<String>,
}

/// An exact value: (-1)^negative * magnitude * 2^exponent, or a special value.
#[derive(Clone, Copy, Debug)]
enum Exact {
    Number { negative: bool, magnitude: u128, exponent: i32 },
    Infinity { negative: bool },
    Nan,
}

impl Exact {
    fn integer(value: i128) -> Self {
        Self::Number { negative: value < 0, magnitude: value.unsigned_abs(), exponent: 0 }
    }
}

/// The direction of a rounding between two neighbours.
#[derive(Clone, Copy, PartialEq)]
enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
}

const ROUNDINGS: [(char, Rounding); 4] =
    [('n', Rounding::Nearest), ('z', Rounding::Zero), ('m', Rounding::Down), ('p', Rounding::Up)];

/// magnitude / 2^drop, to an integer.
fn shifted(magnitude: u128, drop: i32, negative: bool, rounding: Rounding) -> u128 {
    if drop <= 0 {
        return magnitude << -drop;
    }
    if drop > 120 {
        let away = rounding == if negative { Rounding::Down } else { Rounding::Up };
        return u128::from(away && magnitude != 0);
    }
    let (floor, rest, half) = (magnitude >> drop, magnitude & ((1 << drop) - 1), 1u128 << (drop - 1));
    let up = match rounding {
        Rounding::Nearest => rest > half || rest == half && floor & 1 == 1,
        Rounding::Zero => false,
        Rounding::Down => negative && rest != 0,
        Rounding::Up => !negative && rest != 0,
    };
    floor + u128::from(up)
}

/// A type of the instruction set.
#[derive(Clone, Copy, PartialEq)]
enum Type {
    Unsigned(u32),
    Signed(u32),
    /// Width, digits after the leading one, and the exponent of the last place of the smallest numbers.
    Float(u32, u32, i32),
}

const INTEGERS: [Type; 8] = [
    Type::Unsigned(8),
    Type::Unsigned(16),
    Type::Unsigned(32),
    Type::Unsigned(64),
    Type::Signed(8),
    Type::Signed(16),
    Type::Signed(32),
    Type::Signed(64),
];
const F16: Type = Type::Float(16, 10, -24);
const FLOATS: [Type; 3] = [F16, Type::Float(32, 23, -149), Type::Float(64, 52, -1074)];

impl Type {
    fn name(self) -> String {
        match self {
            Type::Unsigned(bits) => format!("u{bits}"),
            Type::Signed(bits) => format!("s{bits}"),
            Type::Float(bits, ..) => format!("f{bits}"),
        }
    }

    fn width(self) -> u32 {
        match self {
            Type::Unsigned(bits) | Type::Signed(bits) | Type::Float(bits, ..) => bits,
        }
    }

    /// The register that holds it; 8-bit values live in 16 bits.
    fn register(self) -> String {
        match self {
            Type::Unsigned(_) | Type::Signed(_) => format!("b{}", self.width().max(16)),
            Type::Float(..) => self.name(),
        }
    }

    fn range(self) -> (i128, i128) {
        match self {
            Type::Unsigned(bits) | Type::Float(bits, ..) => (0, (1 << bits) - 1),
            Type::Signed(bits) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        }
    }

    /// The integer value of the low bits.
    fn read(self, bits: u64) -> i128 {
        let width = self.width();
        let low = i128::from(bits) & ((1 << width) - 1);
        match self {
            Type::Signed(_) if low >> (width - 1) == 1 => low - (1 << width),
            Type::Signed(_) | Type::Unsigned(_) | Type::Float(..) => low,
        }
    }

    /// The register bits of an integer: extended to 16 bits as the type says.
    fn write(self, value: i128) -> u64 {
        (value & ((1 << self.width().max(16)) - 1)) as u64
    }

    fn value(self, bits: u64) -> Exact {
        let Type::Float(width, digits, least) = self else { return Exact::integer(self.read(bits)) };
        let negative = bits >> (width - 1) & 1 == 1;
        let fraction = u128::from(bits) & ((1 << digits) - 1);
        let biased = (bits >> digits) as i32 & ((1 << (width - 1 - digits)) - 1);
        if biased == (1 << (width - 1 - digits)) - 1 {
            return if fraction == 0 { Exact::Infinity { negative } } else { Exact::Nan };
        }
        let magnitude = if biased == 0 { fraction } else { fraction | 1 << digits };
        Exact::Number { negative, magnitude, exponent: least + (biased - 1).max(0) }
    }

    /// The bits of a float near an exact value, which is not NaN.
    fn round(self, value: Exact, rounding: Rounding) -> u64 {
        let Type::Float(width, digits, least) = self else { return 0 };
        let sign = |negative: bool| u64::from(negative) << (width - 1);
        let infinity = ((1u64 << (width - 1 - digits)) - 1) << digits;
        match value {
            Exact::Nan => infinity | 1,
            Exact::Infinity { negative } => sign(negative) | infinity,
            Exact::Number { negative, magnitude: 0, .. } => sign(negative),
            Exact::Number { negative, magnitude, exponent } => {
                let top = exponent + 127 - magnitude.leading_zeros() as i32;
                let place = (top - digits as i32).max(least);
                let rounded = shifted(magnitude, place - exponent, negative, rounding) as u64;
                // The leading one adds one to the exponent; so does a carry to the next power of two.
                let bits = (((place - least) as u64) << digits) + rounded;
                let to_infinity = match rounding {
                    Rounding::Nearest => true,
                    Rounding::Zero => false,
                    Rounding::Down => negative,
                    Rounding::Up => !negative,
                };
                sign(negative) | if bits < infinity { bits } else { infinity - u64::from(!to_infinity) }
            }
        }
    }

    /// The integer of this type near an exact value, clamped; 0 for NaN.
    fn clamp(self, value: Exact, rounding: Rounding) -> i128 {
        let (low, high) = self.range();
        match value {
            Exact::Nan => 0,
            Exact::Infinity { negative } => {
                if negative {
                    low
                } else {
                    high
                }
            }
            Exact::Number { negative, magnitude, exponent } => {
                let whole = shifted(magnitude, -exponent, negative, rounding) as i128;
                (if negative { -whole } else { whole }).clamp(low, high)
            }
        }
    }
}

/// The register bits of a result, from those of the operands.
type Oracle = Box<dyn Fn(&[u64]) -> Option<u64> + Sync>;

/// One instruction.
struct Case {
    /// With its type words, without operands.
    name: String,
    result: Type,
    /// One, two or three.
    operands: Vec<Type>,
    /// The register bits of the result; `None` if any NaN of the type is correct.
    oracle: Oracle,
}

/// Runs every `every`-th case.
pub(super) fn run(every: usize) -> Result<Outcome, String> {
    let vm = Vm::new().map_err(|e| e.to_string())?;
    let mut outcome = Outcome::default();
    for case in cases().iter().step_by(every) {
        match run_case(&vm, case) {
            Ok(counts) => add(&mut outcome.counts, &counts),
            Err(why) => outcome.failures.push(format!("{}: {why}", case.name)),
        }
    }
    Ok(outcome)
}

/// Values of a third operand.
const THIRD: [u64; 6] = [0, 1, 0x7f, 0x8000, 0xfffe, 0x1234];

/// The extension of two 8-bit operands: as their types say, or repeated in both halves of 16 bits.
const REPEATED: [bool; 2] = [false, true];

/// The operands of a thread: register bits.
fn operands(case: &Case, number: u64, third: u64, repeated: bool) -> Vec<u64> {
    let byte = |ty: Type, bits: u64| match ty {
        _ if repeated => (bits & 0xff) * 0x101,
        Type::Signed(_) => u64::from(bits as u8 as i8 as u16),
        Type::Unsigned(_) | Type::Float(..) => bits & 0xff,
    };
    match case.operands[..] {
        [_] => vec![number],
        [a, b] => vec![byte(a, number), byte(b, number >> 8)],
        [a, b, ..] => vec![byte(a, number), byte(b, number >> 8), third],
        [] => Vec::new(),
    }
}

fn kernel(case: &Case) -> String {
    let mut text = String::from(
        ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry run(.param .u64 source, .param .u64 result)\n{\n\
         .reg .b64 %in, %out, %step;\n.reg .b32 %t, %c, %n;\n\
         ld.param.u64 %in, [source];\nld.param.u64 %out, [result];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmad.lo.u32 %t, %c, %n, %t;\n",
    );
    let count = case.operands.len();
    let _ = writeln!(text, "mul.wide.u32 %step, %t, {};\nadd.u64 %in, %in, %step;", 8 * count);
    text += "mul.wide.u32 %step, %t, 8;\nadd.u64 %out, %out, %step;\n";
    let load = |ty: Type| format!("b{}", ty.width().max(16));
    for (index, ty) in case.operands.iter().enumerate() {
        let _ = writeln!(
            text,
            ".reg .{} %a{index};\nld.global.{} %a{index}, [%in+{}];",
            ty.register(),
            load(*ty),
            8 * index
        );
    }
    let sources: Vec<String> = (0..count).map(|i| format!("%a{i}")).collect();
    let _ = writeln!(text, ".reg .{} %d;\n{} %d, {};", case.result.register(), case.name, sources.join(", "));
    let _ = writeln!(text, "st.global.{} [%out], %d;\nret;\n}}", load(case.result));
    text
}

fn run_case(vm: &Vm, case: &Case) -> Result<Counts, String> {
    const THREADS: u32 = 256;
    let thirds: &[u64] = if case.operands.len() > 2 { &THIRD } else { &[0] };
    let repeated: &[bool] = if case.operands.len() > 1 { &REPEATED } else { &[false] };
    let ways = thirds.iter().flat_map(|third| repeated.iter().map(move |repeated| (*third, *repeated)));
    let all: Vec<Vec<u64>> = ways
        .flat_map(|(third, twice)| (0..1 << 16).map(move |number| operands(case, number, third, twice)))
        .collect();
    let text = kernel(case);
    let module = vm.load(&case.name, &text).map_err(|e| e.to_string())?;
    let entry = module.kernel("run").map_err(|e| e.to_string())?;
    let source = vm.buffer(&all.concat()).map_err(|e| e.to_string())?;
    let result = vm.zeros::<u64>(all.len()).map_err(|e| e.to_string())?;
    let grid = u32::try_from(all.len()).map_err(|e| e.to_string())? / THREADS;
    let launch = Launch::new([grid, 1, 1], [THREADS, 1, 1])
        .args(&entry, &[Arg::buffer(&source), Arg::buffer(&result)])
        .map_err(|e| e.to_string())?;
    vm.launch(&entry, &launch).map_err(|e| e.to_string())?;
    let found = result.read().map_err(|e| e.to_string())?;
    let mut wrong = Vec::new();
    for (operands, have) in all.iter().zip(&found) {
        let expected = (case.oracle)(operands);
        let right = match expected {
            Some(bits) => *have == bits,
            None => matches!(case.result.value(*have), Exact::Nan),
        };
        if !right {
            wrong.push(format!("{operands:x?}: {have:x}, expected {expected:x?}"));
        }
    }
    if !wrong.is_empty() {
        let count = wrong.len();
        wrong.truncate(4);
        return Err(format!("{count} of {} wrong: {}", all.len(), wrong.join("; ")));
    }
    // The instruction precedes the store and the return: its row occurs once more than in a kernel without
    // it.
    let with = rows(&case.name, &text)?;
    let without = rows("frame", &text.replace(&format!("{} %d", case.name), "// %d"))?;
    let counted = |row: &usize, n: &u64| *n > without.get(row).copied().unwrap_or(0);
    Ok(with.iter().filter(|(row, n)| counted(row, n)).map(|(row, _)| (*row, all.len() as u64)).collect())
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    conversions(&mut cases);
    integers(&mut cases);
    halves(&mut cases);
    cases
}

/// `cvt` from every type of 8 and 16 bits.
fn conversions(cases: &mut Vec<Case>) {
    let narrow = [Type::Unsigned(8), Type::Signed(8), Type::Unsigned(16), Type::Signed(16)];
    for from in narrow {
        for to in INTEGERS {
            for sat in [false, true] {
                let ((low, high), (least, greatest)) = (to.range(), from.range());
                if sat && low <= least && greatest <= high {
                    continue;
                }
                let name = format!("cvt{}.{}.{}", if sat { ".sat" } else { "" }, to.name(), from.name());
                let oracle = move |a: &[u64]| {
                    let value = from.read(a[0]);
                    let value = if sat { value.clamp(low, high) } else { to.read(value as u64) };
                    Some(to.write(value))
                };
                cases.push(Case { name, result: to, operands: vec![from], oracle: Box::new(oracle) });
            }
        }
        for to in FLOATS {
            for (letter, rounding) in ROUNDINGS {
                for sat in ["", ".sat"] {
                    let name = format!("cvt.r{letter}{sat}.{}.{}", to.name(), from.name());
                    let sat = !sat.is_empty();
                    let oracle = move |a: &[u64]| {
                        let value = from.read(a[0]);
                        let value = if sat { value.clamp(0, 1) } else { value };
                        Some(to.round(Exact::integer(value), rounding))
                    };
                    cases.push(Case { name, result: to, operands: vec![from], oracle: Box::new(oracle) });
                }
            }
        }
    }
    for to in INTEGERS {
        for (letter, rounding) in ROUNDINGS {
            for sat in ["", ".sat"] {
                let name = format!("cvt.r{letter}i{sat}.{}.f16", to.name());
                let oracle = move |a: &[u64]| Some(to.write(to.clamp(F16.value(a[0]), rounding)));
                cases.push(Case { name, result: to, operands: vec![F16], oracle: Box::new(oracle) });
            }
        }
    }
    for to in FLOATS {
        for sat in ["", ".sat"] {
            let roundings: Vec<(String, Option<Rounding>)> = std::iter::once((String::new(), None))
                .chain(ROUNDINGS.iter().filter(|_| to == F16).map(|(l, r)| (format!(".r{l}i"), Some(*r))))
                .collect();
            for (word, whole) in roundings {
                let name = format!("cvt{word}{sat}.{}.f16", to.name());
                let sat = !sat.is_empty();
                let oracle = move |a: &[u64]| float_of_half(to, a[0], whole, sat);
                cases.push(Case { name, result: to, operands: vec![F16], oracle: Box::new(oracle) });
            }
        }
    }
}

/// A half in another format, made integral and clamped to 0..1 if asked.
fn float_of_half(to: Type, bits: u64, whole: Option<Rounding>, sat: bool) -> Option<u64> {
    let mut value = F16.value(bits);
    if let (Some(rounding), Exact::Number { negative, magnitude, exponent }) = (whole, value) {
        value = Exact::Number {
            negative,
            magnitude: shifted(magnitude, -exponent, negative, rounding),
            exponent: 0,
        };
    }
    let one = to.round(Exact::integer(1), Rounding::Nearest);
    match value {
        Exact::Nan => {
            if sat {
                Some(0)
            } else {
                None
            }
        }
        Exact::Infinity { negative } if sat => Some(if negative { 0 } else { one }),
        Exact::Number { negative: true, .. } if sat => Some(0),
        Exact::Infinity { .. } | Exact::Number { .. } => {
            let bits = to.round(value, Rounding::Nearest);
            Some(if sat { bits.min(one) } else { bits })
        }
    }
}

/// The 16-bit integer instructions.
fn integers(cases: &mut Vec<Case>) {
    let (u, s, b) = (Type::Unsigned(16), Type::Signed(16), Type::Unsigned(16));
    for ty in [u, s] {
        let read = move |a: &[u64]| -> Vec<i128> { a.iter().map(|bits| ty.read(*bits)).collect() };
        let mut push = |name: &str, count: usize, result: Type, f: fn(&[i128]) -> i128| {
            let oracle = move |a: &[u64]| Some(result.write(f(&read(a))));
            let (name, operands) = (format!("{name}.{}", ty.name()), vec![ty; count]);
            cases.push(Case { name, result, operands, oracle: Box::new(oracle) });
        };
        push("add", 2, ty, |x| x[0] + x[1]);
        push("sub", 2, ty, |x| x[0] - x[1]);
        push("mul.lo", 2, ty, |x| x[0] * x[1]);
        push("mul.hi", 2, ty, |x| (x[0] * x[1]) >> 16);
        push("mul.wide", 2, if ty == u { Type::Unsigned(32) } else { Type::Signed(32) }, |x| x[0] * x[1]);
        push("mad.lo", 3, ty, |x| x[0] * x[1] + x[2]);
        push("mad.hi", 3, ty, |x| ((x[0] * x[1]) >> 16) + x[2]);
        push("sad", 3, ty, |x| (x[0] - x[1]).abs() + x[2]);
        // Division by zero has no defined result; ours is all ones.
        push("div", 2, ty, |x| x[0].checked_div(x[1]).unwrap_or(-1));
        push("min", 2, ty, |x| x[0].min(x[1]));
        push("max", 2, ty, |x| x[0].max(x[1]));
        push("rem", 2, ty, |x| x[0].checked_rem(x[1]).unwrap_or(x[0]));
    }
    let mut signed = |name: &str, f: fn(i128) -> i128| {
        let oracle = move |a: &[u64]| Some(s.write(f(s.read(a[0]))));
        cases.push(Case { name: name.to_owned(), result: s, operands: vec![s], oracle: Box::new(oracle) });
    };
    signed("abs.s16", i128::abs);
    signed("neg.s16", |x| -x);
    let mut bits = |name: &str, count: usize, f: fn(&[u64]) -> u64| {
        let oracle = move |a: &[u64]| Some(f(a) & 0xffff);
        cases.push(Case {
            name: name.to_owned(),
            result: b,
            operands: vec![b; count],
            oracle: Box::new(oracle),
        });
    };
    bits("and.b16", 2, |x| x[0] & x[1]);
    bits("or.b16", 2, |x| x[0] | x[1]);
    bits("xor.b16", 2, |x| x[0] ^ x[1]);
    bits("not.b16", 1, |x| !x[0]);
    bits("cnot.b16", 1, |x| u64::from(x[0] == 0));
    // The amount of a shift has 32 bits and is clamped at the width.
    let mut shift = |name: &str, ty: Type, f: fn(i128, u32) -> i128| {
        let oracle = move |a: &[u64]| Some(ty.write(f(ty.read(a[0]), (a[1] as u32).min(100))));
        let operands = vec![ty, Type::Unsigned(32)];
        cases.push(Case { name: name.to_owned(), result: ty, operands, oracle: Box::new(oracle) });
    };
    shift("shl.b16", u, |x, n| if n > 15 { 0 } else { x << n });
    shift("shr.b16", u, |x, n| x >> n);
    shift("shr.u16", u, |x, n| x >> n);
    shift("shr.s16", s, |x, n| x >> n);
}

/// The half-precision instructions with one operand.
fn halves(cases: &mut Vec<Case>) {
    let mut unary = |name: &str, flush: bool, f: fn(u64) -> u64| {
        let oracle = move |a: &[u64]| {
            let bits = if flush && a[0] & 0x7c00 == 0 { a[0] & 0x8000 } else { a[0] };
            (!matches!(F16.value(bits), Exact::Nan)).then(|| f(bits))
        };
        cases.push(Case {
            name: name.to_owned(),
            result: F16,
            operands: vec![F16],
            oracle: Box::new(oracle),
        });
    };
    unary("neg.f16", false, |x| x ^ 0x8000);
    unary("neg.ftz.f16", true, |x| x ^ 0x8000);
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_sample_of_the_cases_holds() {
        let outcome = super::run(23).unwrap();
        assert!(outcome.failures.is_empty(), "{}", outcome.failures.join("\n"));
        assert!(outcome.counts.values().sum::<u64>() > 500_000);
    }
}
