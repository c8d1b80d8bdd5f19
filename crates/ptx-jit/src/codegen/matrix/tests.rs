//! Compares native products with the interpreter's step: every [`Plan`] that a spelling of a row has, on all
//! levels that this machine has, with subnormals kept and flushed by the processor.
//!
//! The interpreter's steps are tested against independent results, so they are the expected values here.

use super::product::Emitter;
use crate::isel::Env;
use crate::isel::matrix::{Plan, Side};
use crate::llvm::{Builder, Code, Flush, Session};
use crate::target::{Level, Target};
use ptx::ir::{Dst, Inst, Reg, RegClass, RegCounts, Src};
use ptx::isa::{Op, RowId, Ty};
use ptx_exec::bound::{Exec, StepFn};
use ptx_exec::lanes::{FULL, LANES, Registers};
use ptx_exec::mem::{Memory, View};
use ptx_exec::warp::{GridShape, WarpState};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Places in the buffer that compiled code works on, in bytes: the registers of A, B, C and D, and unpacked A
/// and B.
const PLACES: [u64; 6] = [0, 1024, 2048, 3072, 4096, 36864];
const BYTES: usize = 69632;

/// MXCSR with all exceptions masked; and with subnormals flushed too.
const KEEPS: u64 = 0x1f80;
const FLUSHES: u64 = 0x9fc0;

/// A generator of random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// What the numbers of one round are like.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Ordinary,
    /// Subnormal, and so small that products are subnormal singles.
    Small,
    /// So large that sums overflow.
    Large,
    /// Any bits: many NaNs and infinities.
    Any,
    /// Ordinary with few infinities and NaNs.
    Special,
}

const KINDS: [Kind; 5] = [Kind::Ordinary, Kind::Small, Kind::Large, Kind::Any, Kind::Special];

/// The bits of a number with `digits` bits of fraction and `exponents` bits of exponent.
fn number(random: &mut Random, kind: Kind, digits: u32, exponents: u32) -> u64 {
    let bias = (1 << (exponents - 1)) - 1;
    let most = (1 << exponents) - 1;
    let sign = random.below(2) << (digits + exponents);
    let fraction = random.next() & ((1 << digits) - 1);
    let wide = exponents == 8;
    let exponent = match kind {
        Kind::Any => return random.next() & (u64::MAX >> (63 - digits - exponents)),
        Kind::Special if random.below(40) == 0 => most,
        Kind::Ordinary | Kind::Special => bias - 5 + random.below(10),
        Kind::Small if random.below(3) == 0 => return sign,
        Kind::Small if wide && random.below(2) == 0 => 48 + random.below(20),
        Kind::Small => random.below(3),
        Kind::Large if wide => bias + 58 + random.below(10),
        Kind::Large => most - 1 - random.below(4),
    };
    // An infinity is as likely as a NaN.
    let fraction = if exponent == most && random.below(2) == 0 { 0 } else { fraction };
    sign | exponent << digits | fraction
}

/// A register that holds elements of that type.
fn word(random: &mut Random, kind: Kind, ty: Ty) -> u32 {
    let pair = |low: u64, high: u64| (low | high << 16) as u32;
    match ty {
        Ty::F16 => pair(number(random, kind, 10, 5), number(random, kind, 10, 5)),
        Ty::Bf16 => pair(number(random, kind, 7, 8), number(random, kind, 7, 8)),
        Ty::F32 | Ty::Tf32 => number(random, kind, 23, 8) as u32,
        // Sums of these overflow only if c is large.
        Ty::S32 if matches!(kind, Kind::Large) => {
            i32::MAX.cast_unsigned() ^ (random.next() as u32 & 0x8000_0fff)
        }
        _ => random.next() as u32,
    }
}

/// A product with registers of its own for each operand.
struct Case {
    inst: Inst,
    step: StepFn,
    plan: Plan,
    /// The types of the sources.
    types: Vec<Ty>,
}

fn case(row: RowId, mods: &ptx::isa::Mods, env: &Env) -> Option<Case> {
    let plan = Plan::of(mods, env)?;
    let mut inst = ptx_exec::bind::sample(row, mods)?;
    let register = |index: usize| Reg { class: RegClass::R32, index: index as u32 };
    inst.dsts = (0..inst.dsts.len()).map(|at| Dst::Reg(register(at))).collect();
    let first = inst.dsts.len();
    inst.srcs = (0..inst.srcs.len()).map(|at| Src::Reg(register(first + at))).collect();
    let product = &plan.product;
    let fragments =
        [(&product.a, product.types.a), (&product.b, product.types.b), (&product.c, product.types.c)];
    let types = fragments.iter().flat_map(|(fragment, ty)| vec![*ty; fragment.registers()]).collect();
    Some(Case { step: ptx_exec::bind::lone_step(&inst)?, inst, plan, types })
}

/// Adds a function that computes the product of what is in a buffer.
fn add_function(b: &Builder<'_>, name: &str, case: &Case, env: Env) {
    let flush = env.flush;
    let function = b.module().function(name, b.fn_type(None, &[b.ptr()]), flush);
    b.position_at_end(b.append_block(function, ""));
    let state = b.alloca(b.int(32), 4);
    let set = |bits: u64| {
        b.store_volatile(b.const_int(b.int(32), bits), state, 4);
        b.intrinsic("llvm.x86.sse.ldmxcsr", &[], &[state]);
    };
    let [a, right, c, d, unpacked_a, unpacked_b] = PLACES.map(|at| b.offset(b.param(function, 0), at));
    let emitter = Emitter { b, env };
    let full = format!("{}{}", case.inst.row.form().mnemonic, case.inst.mods);
    if flush == Flush::Always {
        set(FLUSHES);
    }
    b.call_function(emitter.unpack(&case.plan, &full, Side::A), &[a, unpacked_a]);
    b.call_function(emitter.unpack(&case.plan, &full, Side::B), &[right, unpacked_b]);
    b.call_function(emitter.multiply(&case.plan, &full), &[unpacked_a, unpacked_b, c, d]);
    if flush == Flush::Always {
        set(KEEPS);
    }
    b.ret(None);
}

#[repr(C, align(64))]
struct Buffer([u8; BYTES]);

/// Compares some rounds of one product.
fn compare(case: &Case, native: extern "C" fn(*mut u8), random: &mut Random, what: &str) {
    let grid = GridShape {
        ntid: [32, 1, 1],
        nctaid: [1, 1, 1],
        gridid: 1,
        began: 0,
        nsmid: 1,
        dynamic_shared: 0,
        total_shared: 0,
        envreg: [0; 32],
    };
    let memory = Memory::new(ptx::check::module::AddressSize::Bits64).expect("memory");
    let mut view = View::new(&memory);
    let mut warp = WarpState::new(Arc::new(grid), [0; 3], 0);
    let mut regs = Registers::default();
    regs.reset(RegCounts { pred: 0, r16: 0, r32: 64, r64: 0 });
    let product = &case.plan.product;
    let counts = [&product.a, &product.b, &product.c].map(|fragment| fragment.registers());
    for kind in KINDS.into_iter().chain(KINDS) {
        let mut buffer = Buffer([0xa5; BYTES]);
        let (mut matrix, mut within) = (0, 0);
        for (at, ty) in case.types.iter().enumerate() {
            if within == counts[matrix] {
                (matrix, within) = (matrix + 1, 0);
            }
            for lane in 0..LANES {
                let value = word(random, kind, *ty);
                regs.r32[case.inst.dsts.len() + at].0[lane] = value;
                let place = PLACES[matrix] as usize + (within * LANES + lane) * 4;
                buffer.0[place..place + 4].copy_from_slice(&value.to_le_bytes());
            }
            within += 1;
        }
        let mut exec =
            Exec { mask: FULL, group: FULL, regs: &mut regs, warp: &mut warp, mem: &mut view, frame: 0 };
        assert!((case.step)(&mut exec).is_ok(), "a product of a whole warp does not trap");
        native(buffer.0.as_mut_ptr());
        for register in 0..case.inst.dsts.len() {
            for lane in 0..LANES {
                let place = PLACES[3] as usize + (register * LANES + lane) * 4;
                let found = u32::from_le_bytes(buffer.0[place..place + 4].try_into().expect("four bytes"));
                let expected = regs.r32[register].0[lane];
                assert!(
                    found == expected,
                    "{what} of {kind:?} numbers: register {register} of lane {lane}: interpreter {expected:#x}, compiled {found:#x}"
                );
            }
        }
    }
}

/// One in so many products is compared where not all are.
const SAMPLE: usize = 6;

/// Unless `PTXVM_TESTS` is `full`, all products are compared on the best level with the features of this
/// machine, and a sixth of them on each other target and with subnormals flushed, all in code that LLVM does
/// not optimise.
#[test]
fn products_have_the_bits_of_the_interpreter() {
    let full = std::env::var("PTXVM_TESTS").as_deref() == Ok("full");
    let host = Target::host().level();
    // With the features of this machine, and without any.
    let both = |level| [Target::host_at(level), Target::generic(level)];
    let mut targets: Vec<Target> =
        Level::ALL.into_iter().filter(|level| *level <= host).flat_map(both).collect();
    targets.dedup();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            for flush in [Flush::Never, Flush::Always] {
                let all = full || *target == Target::host_at(host) && flush == Flush::Never;
                let unoptimised = || Target::parse(&format!("{target},opt=0")).expect("a target");
                let sample = if all { 1 } else { SAMPLE };
                let target = if full { *target } else { unoptimised() };
                let compared = compare_all(target, flush, sample);
                println!("{compared} products on {target}, {flush:?}");
                assert!(compared > if all { 25 } else { 4 }, "{compared} products on {target}");
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(work);
        }
    });
}

/// Compares one in `sample` products, and returns their number.
fn compare_all(target: Target, flush: Flush, sample: usize) -> usize {
    let mut random = Random(24);
    let session = Session::new(target).expect("LLVM");
    let env = Env { target, flush, sm: 80 };
    let rows = RowId::all().filter(|row| matches!(row.row().op, Op::Mma | Op::WmmaMma));
    let all = rows.flat_map(|row| row.spellings().into_iter().map(move |mods| (row, mods)));
    // Spellings that differ in layouts only have one plan: the fragments of `wmma` do not depend on them.
    let mut seen = HashSet::new();
    let cases: Vec<Case> = all
        .filter_map(|(row, mods)| case(row, &mods, &env))
        .filter(|case| seen.insert(format!("{:?}", case.plan)))
        .collect();
    // Each target has a sample of its own.
    let first = target.level() as usize * 2 + usize::from(flush == Flush::Always);
    let cases: Vec<&Case> = cases.iter().skip(first % sample).step_by(sample).collect();
    for batch in cases.chunks(16) {
        let module = session.module("products");
        let b = Builder::new(&module);
        for (i, case) in batch.iter().enumerate() {
            add_function(&b, &format!("f{i}"), case, env);
        }
        let object = session.object(&module).expect("code").bytes;
        let code = Code::place(&object, &[]).expect("memory for code");
        for (i, case) in batch.iter().enumerate() {
            let address = code.lookup(&format!("f{i}")).expect("the function");
            // SAFETY: `add_function` made it with this signature; `code` outlives the calls, and the buffer
            // has all places that it accesses.
            let native: extern "C" fn(*mut u8) = unsafe { std::mem::transmute(address) };
            let what = format!("{}{} on {target}, {flush:?}", case.inst.row.form().mnemonic, case.inst.mods);
            compare(case, native, &mut random, &what);
        }
    }
    cases.len()
}
