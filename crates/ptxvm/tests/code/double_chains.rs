//! Chains of double precision arithmetic on NaNs, infinities and zeros in each operand's place: native code
//! on every level has the bits that follow from the rule of each operation. A NaN is the first operand that
//! is one, made quiet; an invalid operation on numbers gives 0x7ff8000000000000.
#![cfg(feature = "jit")]

use crate::levels;
use ptxvm::{Arg, Cpu, Engine, Launch, Options, Target, Vm};
use std::fmt::Write;

/// Numbers, infinities, zeros, and NaNs that differ in their bits, quiet or signalling, of both signs.
const VALUES: [u64; 12] = [
    0x3ff8_0000_0000_0000,
    0xc002_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x0000_0000_0000_0001,
    0x0000_0000_0000_0000,
    0x8000_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0a11,
    0xfff8_0000_0000_0b22,
    0x7ff0_0000_0000_0c33,
    0xfff4_0000_0000_0d44,
];
const INPUTS: usize = 3;
const THREADS: usize = VALUES.len().pow(INPUTS as u32).next_multiple_of(64);

/// An operation, as PTX spells it.
const OPERATIONS: [(&str, usize); 9] = [
    ("fma.rn.f64", 3),
    ("add.f64", 2),
    ("sub.rn.f64", 2),
    ("mul.f64", 2),
    ("neg.f64", 1),
    ("div.rn.f64", 2),
    ("abs.f64", 1),
    ("sqrt.rn.f64", 1),
    ("rcp.rn.f64", 1),
];

/// The meaning of an operation: only what it computes from numbers differs.
fn meaning(operation: &str, of: &[u64]) -> u64 {
    let is_nan = |bits: u64| bits & !(1 << 63) > 0x7ff0_0000_0000_0000;
    if let Some(nan) = of.iter().find(|bits| is_nan(**bits)) {
        return nan | 1 << 51;
    }
    let n = |at: usize| f64::from_bits(of[at]);
    let result = match operation.split('.').next() {
        Some("fma") => n(0).mul_add(n(1), n(2)),
        Some("add") => n(0) + n(1),
        Some("sub") => n(0) - n(1),
        Some("mul") => n(0) * n(1),
        Some("div") => n(0) / n(1),
        Some("sqrt") => n(0).sqrt(),
        Some("rcp") => 1.0 / n(0),
        Some("neg") => return of[0] ^ 1 << 63,
        _ => return of[0] & !(1 << 63),
    };
    if result.is_nan() { 0x7ff8_0000_0000_0000 } else { result.to_bits() }
}

/// One step of a chain: an operation on the inputs and on results of earlier steps, by number.
struct Step {
    operation: &'static str,
    operands: Vec<usize>,
}

/// Where results of a chain are read outside of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outside {
    /// The last one is stored.
    Last,
    /// All are stored behind the chain.
    All,
    /// Each third is stored where it is computed.
    Between,
    /// The last one is stored, the others are compared with a number.
    Compared,
    /// All are stored, in three quarters of the lanes; the others have left.
    Partial,
    /// The last one is the first input of the next iteration of a loop, behind which all are stored.
    Loop,
}

const OUTSIDE: [Outside; 6] =
    [Outside::Last, Outside::All, Outside::Between, Outside::Compared, Outside::Partial, Outside::Loop];

/// A chain of so many steps, most of which read the result of the one before them: so it has several ends, in
/// which different NaNs show. `seed` selects the rest.
fn chain(length: usize, seed: usize) -> Vec<Step> {
    let mut state = (1 + seed) as u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % below
    };
    let step = |at: usize| {
        // Sums and products are the most frequent.
        let (operation, count) = OPERATIONS[[next(4), next(4), next(OPERATIONS.len())][next(3)]];
        let mut operands: Vec<usize> = (0..count).map(|_| next(INPUTS + at)).collect();
        if at > 0 && next(3) > 0 {
            operands[next(count)] = INPUTS + at - 1;
        }
        Step { operation, operands }
    };
    (0..length).map(step).collect()
}

fn text(steps: &[Step], outside: Outside) -> String {
    let length = steps.len();
    let mut text = format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out)\n{{\n\
         .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f64 %d<{}>; .reg .pred %p<3>;\n\
         mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;\n\
         mul.wide.u32 %rd1, %r1, 8; mul.wide.u32 %rd2, %r1, {};\n\
         ld.param.u64 %rd4, [out]; add.u64 %rd4, %rd4, %rd2;\n",
        INPUTS + length,
        8 * length
    );
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "ld.param.u64 %rd3, [{name}]; add.u64 %rd3, %rd3, %rd1; ld.global.f64 %d{at}, [%rd3];"
        );
    }
    match outside {
        Outside::Partial => text += "and.b32 %r4, %r1, 3; setp.eq.u32 %p1, %r4, 1; @%p1 bra END;\n",
        Outside::Loop => text += "mov.u32 %r5, 0;\nTOP:\n",
        _ => {}
    }
    for (at, step) in steps.iter().enumerate() {
        let operands: Vec<String> = step.operands.iter().map(|from| format!("%d{from}")).collect();
        let _ = writeln!(text, "{} %d{}, {};", step.operation, INPUTS + at, operands.join(", "));
        if outside == Outside::Between && at % 3 == 0 {
            let _ = writeln!(text, "st.global.f64 [%rd4+{}], %d{};", 8 * at, INPUTS + at);
        }
    }
    if outside == Outside::Loop {
        let _ = writeln!(text, "mov.f64 %d0, %d{};", INPUTS + length - 1);
        text += "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3; @%p1 bra TOP;\n";
    }
    for at in 0..length {
        let name = INPUTS + at;
        let last = at + 1 == length;
        match outside {
            Outside::All | Outside::Partial | Outside::Loop => {}
            Outside::Last | Outside::Between | Outside::Compared if last => {}
            Outside::Last | Outside::Between => continue,
            Outside::Compared => {
                let _ = writeln!(
                    text,
                    "setp.gtu.f64 %p2, %d{name}, 0d0000000000000000; selp.b64 %rd5, 7, 9, %p2; st.global.b64 [%rd4+{}], %rd5;",
                    8 * at
                );
                continue;
            }
        }
        let _ = writeln!(text, "st.global.f64 [%rd4+{}], %d{name};", 8 * at);
    }
    text + "END: ret;\n}\n"
}

/// What a thread stores.
fn expected(steps: &[Step], outside: Outside, thread: usize, inputs: [u64; INPUTS]) -> Vec<u64> {
    let length = steps.len();
    if outside == Outside::Partial && thread % 4 == 1 {
        return vec![0; length];
    }
    let mut values = inputs.to_vec();
    for turn in 0..if outside == Outside::Loop { 3 } else { 1 } {
        if turn > 0 {
            values[0] = values[INPUTS + length - 1];
            values.truncate(INPUTS);
        }
        for step in steps {
            let operands: Vec<u64> = step.operands.iter().map(|from| values[*from]).collect();
            values.push(meaning(step.operation, &operands));
        }
    }
    let stored = |(at, value): (usize, &u64)| match outside {
        _ if at + 1 == length => *value,
        Outside::All | Outside::Partial | Outside::Loop => *value,
        Outside::Between if at % 3 == 0 => *value,
        Outside::Last | Outside::Between => 0,
        // Greater than zero, or a NaN.
        Outside::Compared => match f64::from_bits(*value) {
            number if number <= 0.0 => 9,
            _ => 7,
        },
    };
    values[INPUTS..].iter().enumerate().map(stored).collect()
}

fn run(text: &str, length: usize, data: &[Vec<u64>; INPUTS], engine: Engine, target: Target) -> Vec<u64> {
    let vm = Vm::with(Options { target: Some(target), ..Options::default() }).expect("a device");
    let module = vm.load("chain.ptx", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let kernel = module.kernel("k").expect("the kernel");
    let [a, b, c] = data.each_ref().map(|data| vm.buffer(data).expect("memory"));
    let out = vm.zeros::<u64>(THREADS * length).expect("memory");
    let args = [Arg::buffer(&a), Arg::buffer(&b), Arg::buffer(&c), Arg::buffer(&out)];
    let launch = Launch::new([(THREADS / 64) as u32, 1, 1], [64, 1, 1]).threads(1).engine(engine);
    vm.launch(&kernel, &launch.args(&kernel, &args).expect("arguments that fit")).expect("no trap");
    out.read().expect("the results")
}

#[test]
fn nans_of_chains_have_the_bits_of_each_operation() {
    let value = |thread: usize, at: usize| VALUES[thread / VALUES.len().pow(at as u32) % VALUES.len()];
    let data: [Vec<u64>; INPUTS] = std::array::from_fn(|at| (0..THREADS).map(|i| value(i, at)).collect());
    let levels = [Cpu::Avx512, Cpu::Avx2, Cpu::Baseline].into_iter().filter(|cpu| levels::is_available(*cpu));
    let levels: Vec<Target> = levels.map(Target::from).collect();
    for (number, length) in [1, 2, 3, 4, 6, 9, 14, 20].into_iter().enumerate() {
        for (turn, outside) in OUTSIDE.into_iter().enumerate() {
            let steps = chain(length, 10 * number + turn);
            let text = text(&steps, outside);
            let mut all = Vec::new();
            for thread in 0..THREADS {
                let inputs = std::array::from_fn(|at| value(thread, at));
                all.extend(expected(&steps, outside, thread, inputs));
            }
            let mut runs = vec![(Engine::Interp, levels[0])];
            for (level, target) in levels.iter().enumerate() {
                runs.push((Engine::Jit, levels::unoptimised(*target)));
                // Each length and each way of reading meets every level.
                if levels::is_full() || level == (number + turn) % levels.len() {
                    runs.push((Engine::Jit, *target));
                }
            }
            for (engine, target) in runs {
                let found = run(&text, length, &data, engine, target);
                if let Some(at) = (0..all.len()).find(|at| found[*at] != all[*at]) {
                    let inputs: [u64; INPUTS] = std::array::from_fn(|of| value(at / length, of));
                    panic!(
                        "{engine:?} {target} {outside:?}, step {} of {inputs:x?}: {:#x}, not {:#x}\n{text}",
                        at % length,
                        found[at],
                        all[at]
                    );
                }
            }
        }
    }
}
