//! Compares every lowering with the interpreter's step: all spellings of all rows that [`choose`] accepts,
//! with registers and immediates, on all levels of instructions that this machine has, for scalars and chunks
//! of 4, 8 and 16 lanes; with edge values and random values.
//!
//! Unless `PTXVM_TESTS` is `full`, all rows are tested on the best level of this machine, and every ninth row
//! on each other level; rows with few forms are tested with scalars and with the chunks of the level. LLVM
//! optimises one row in eight.
//!
//! The interpreter's steps are tested against independent oracles, so they are the expected values here.

use crate::target::{Level, Target};
use std::sync::Arc;

use ptx::ir::{Dst, Inst, Reg, RegClass, Src};
use ptx::isa::{Op, RowId};
use ptx_exec::bound::{Exec, StepFn};
use ptx_exec::lanes::{FULL, LANES, Registers};
use ptx_exec::mem::{Memory, View};
use ptx_exec::warp::{GridShape, WarpState};

use super::{Env, Known, Lower, Lowering, Operand, choose, class_bits, lower};
use crate::llvm::{Builder, Flush, Session};

/// Rounds of 32 lanes for each instruction.
const ROUNDS: usize = 6;
/// Bytes of a register in the buffer that compiled code works on.
const SLOT: usize = 256;
/// The slot of the carry flag; registers come after the first two.
const CARRY_IN: usize = 0;
const CARRY_OUT: usize = 1;

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

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Values at which a result may change its form, for a register of that class.
fn edges(class: RegClass) -> Vec<u64> {
    let small = [
        0u64, 1, 2, 3, 4, 7, 8, 15, 16, 17, 23, 24, 31, 32, 33, 47, 63, 64, 65, 127, 128, 255, 256, 257,
        0x7f_ffff,
    ];
    let mut all: Vec<u64> = small.iter().flat_map(|v| [*v, v.wrapping_neg()]).collect();
    let halves = [
        0x0001, 0x03ff, 0x0400, 0x3800, 0x3c00, 0x3c01, 0x3bff, 0x4000, 0x7bff, 0x7c00, 0x7c01, 0x7e00,
        0x7fff, 0x3555, 0x6400, 0x5bff,
    ];
    let singles = [
        0.5f32,
        1.0,
        1.5,
        2.5,
        3.0,
        0.1,
        1e-3,
        1e10,
        3.4e38,
        f32::MIN_POSITIVE,
        127.5,
        255.5,
        32767.5,
        65504.0,
        65520.0,
        65535.5,
        2147483520.0,
        2147483648.0,
        4294967040.0,
        4294967296.0,
        9.223372e18,
        1.8446744e19,
        8388607.5,
        8388608.0,
        16777216.0,
        0.99999994,
        f32::INFINITY,
    ];
    let odd_singles = [
        0x0000_0001u32,
        0x007f_ffff,
        0x0040_0000,
        0x7f80_0001,
        0x7fc0_0000,
        0x7fff_ffff,
        0x7fa1_2345,
        0x3effffff,
    ];
    let doubles = [
        0.5f64,
        1.0,
        1.5,
        2.5,
        0.1,
        1e-3,
        1e100,
        1e308,
        f64::MIN_POSITIVE,
        127.5,
        65535.5,
        2147483647.0,
        2147483647.5,
        2147483648.0,
        4294967295.5,
        4294967296.0,
        9.223372036854775e18,
        9223372036854775808.0,
        18446744073709551616.0,
        4503599627370495.5,
        1e-40,
        1e-46,
        3.4028235677973366e38,
        1.1754943508222874e-38,
        65519.99,
        f64::INFINITY,
    ];
    let odd_doubles = [
        1u64,
        0x000f_ffff_ffff_ffff,
        0x7ff0_0000_0000_0001,
        0x7ff8_0000_0000_0000,
        0x7fff_ffff_ffff_ffff,
        0x7ff4_5678_9abc_def0,
    ];
    match class {
        RegClass::Pred => all = vec![0, 1],
        RegClass::R16 => {
            all.extend(halves.iter().flat_map(|v| [*v, v | 0x8000]));
            all.extend([0x7fff, 0x8000, 0x8001, 0xffff, 0x7f, 0x80, 0xff]);
        }
        RegClass::R32 => {
            all.extend(singles.iter().map(|v| u64::from(v.to_bits())).flat_map(|v| [v, v | 0x8000_0000]));
            all.extend(odd_singles.iter().map(|v| u64::from(*v)).flat_map(|v| [v, v | 0x8000_0000]));
            all.extend(halves.iter().flat_map(|v| [v << 16 | 0x3c00, v | 0xbc00_0000]));
            all.extend([
                0x7fff_ffff,
                0x8000_0000,
                0x8000_0001,
                0x5555_5555,
                0xaaaa_aaaa,
                0x0123_4567,
                0x8080_8080,
                0x7f80_ff01,
            ]);
        }
        RegClass::R64 => {
            all.extend(doubles.iter().map(|v| v.to_bits()).flat_map(|v| [v, v | 1 << 63]));
            all.extend(odd_doubles.iter().flat_map(|v| [*v, v | 1 << 63]));
            all.extend([
                i64::MAX as u64,
                1 << 63,
                (1 << 63) + 1,
                1 << 32,
                (1 << 32) - 1,
                1 << 31,
                0x0123_4567_89ab_cdef,
            ]);
        }
    }
    let bits = class_bits(class);
    all.iter().map(|v| v & (u64::MAX >> (64 - bits))).collect()
}

/// A value of a class: an edge value, a neighbour of one, or a random value.
fn value(random: &mut Random, class: RegClass, edges: &[u64]) -> u64 {
    let bits = class_bits(class);
    let value = match random.below(8) {
        0..=3 => edges[random.below(edges.len())],
        4 => edges[random.below(edges.len())].wrapping_add(random.next() % 5).wrapping_sub(2),
        5 => random.next() >> random.below(64),
        6 if bits == 32 => {
            // A number of ordinary size.
            let exponent = 100 + random.next() % 56;
            (random.next() & 0x807f_ffff) | exponent << 23
        }
        6 if bits == 64 => (random.next() & 0x800f_ffff_ffff_ffff) | (960 + random.next() % 128) << 52,
        _ => random.next(),
    };
    value & (u64::MAX >> (64 - bits))
}

/// An instruction and its step.
struct Case {
    inst: Inst,
    step: StepFn,
    /// The sources that the lowering declares to read as numbers.
    number_srcs: u32,
    double_srcs: u32,
    /// A source that is the same scalar in all lanes.
    same: Option<Reg>,
}

/// The instruction itself, and variants of it with other operands that the spelling allows.
fn cases(sample: &Inst) -> Vec<Case> {
    let mut all = vec![sample.clone()];
    // Each value source as an immediate, one at a time.
    for (i, src) in sample.srcs.iter().enumerate() {
        if matches!(src, Src::Reg(reg) if reg.class != RegClass::Pred) {
            for imm in [0u64, 1, 5, 0x7521, u64::MAX, 0x3f80_0000, 0x80] {
                let mut inst = sample.clone();
                inst.srcs[i] = Src::Imm(imm);
                all.push(inst);
            }
        }
        if let Src::Reg(reg) = src
            && reg.class == RegClass::Pred
        {
            let mut inst = sample.clone();
            inst.srcs[i] = Src::Not(*reg);
            all.push(inst);
        }
        // Truth tables of `lop3`.
        if matches!(src, Src::Imm(_)) && sample.op == Op::Lop3 {
            for table in 0..256 {
                let mut inst = sample.clone();
                inst.srcs[i] = Src::Imm(table);
                all.push(inst);
            }
        }
    }
    // Registers that are wider than the type, which a conversion may have.
    if sample.op == Op::Cvt {
        for (wide_d, wide_a) in [(true, false), (false, true), (true, true)] {
            let mut inst = sample.clone();
            if wide_d && let Some(Dst::Reg(reg)) = inst.dsts.first_mut() {
                reg.class = RegClass::R64;
            }
            if wide_a && let Some(Src::Reg(reg)) = inst.srcs.first_mut() {
                reg.class = RegClass::R64;
                reg.index = 1;
            }
            all.push(inst);
        }
    }
    all.extend(with_selectors(sample));
    if sample.dsts.len() == 2 {
        let mut inst = sample.clone();
        inst.dsts[1] = Dst::Sink;
        all.push(inst);
    }
    let case = |inst, same| {
        ptx_exec::bind::lone_step(&inst).map(|step| Case { inst, step, number_srcs: 0, double_srcs: 0, same })
    };
    // Divisors that are the same in all lanes.
    let common = match (sample.op, sample.srcs.get(1).and_then(register)) {
        (Op::Div | Op::Rem, Some(divisor)) => case(sample.clone(), Some(divisor)),
        _ => None,
    };
    all.into_iter().filter_map(|inst| case(inst, None)).chain(common).collect()
}

/// A video instruction with other selectors, signs and written bytes.
fn with_selectors(sample: &Inst) -> Vec<Inst> {
    let mut all = Vec::new();
    let videos: Vec<usize> =
        (0..sample.srcs.len()).filter(|i| matches!(sample.srcs[*i], Src::Video(_))).collect();
    let mut random = Random(3);
    for _ in 0..if videos.is_empty() { 0 } else { 6 } {
        let mut inst = sample.clone();
        for i in &videos {
            let Src::Video(video) = &mut inst.srcs[*i] else { continue };
            let plain = random.below(3) == 0;
            if plain {
                video.elements.clear();
            }
            let bound = match video.elements.len() {
                1 => {
                    if video.bytes {
                        4
                    } else {
                        2
                    }
                }
                count => 2 * count,
            };
            for element in &mut video.elements {
                *element = random.below(bound.max(1)) as u8;
            }
            video.negated = sample.op == Op::Vmad && random.below(4) == 0;
        }
        if let Some(Dst::Video { bytes, .. }) = inst.dsts.first_mut() {
            *bytes = [0b0001, 0b0010, 0b1000, 0b0011, 0b1100, 0b1111][random.below(6)];
        }
        all.push(inst);
    }
    all
}

fn register(src: &Src) -> Option<Reg> {
    match src {
        Src::Reg(reg) | Src::Not(reg) => Some(*reg),
        Src::Video(video) => register(&video.value),
        Src::Absent | Src::Imm(_) | Src::Sreg(..) | Src::Addr(_) => None,
    }
}

/// The register of a destination.
fn written(dst: &Dst) -> Option<Reg> {
    match dst {
        Dst::Reg(reg) | Dst::Video { reg, .. } => Some(*reg),
        Dst::Sink => None,
    }
}

/// The slot of a register.
fn slot(reg: Reg) -> usize {
    2 + reg.class as usize * 8 + reg.index as usize
}

/// Bytes of an element in the buffer.
fn bytes(class: RegClass) -> usize {
    class_bits(class).div_ceil(8) as usize
}

/// Compiled code, which works on the lanes from the given one on.
type Native = extern "C" fn(*mut u8, u64);

/// Adds a function that executes the instruction on a chunk; `false` if there is no lowering.
fn add_function(b: &Builder<'_>, session: &Session, name: &str, case: &Case, lanes: u32, env: Env) -> bool {
    let inst = &case.inst;
    if choose(inst, &env).is_none() {
        return false;
    }
    let function = b.module().function(name, b.fn_type(None, &[b.ptr(), b.int(64)]), env.flush);
    assert_eq!(session.target(), env.target);
    b.position_at_end(b.append_block(function, "entry"));
    let place = |slot: usize, size: usize| {
        let base = b.offset(b.param(function, 0), (slot * SLOT) as u64);
        let offset = b.mul(b.param(function, 1), b.const_int(b.int(64), size as u64));
        b.gep(base, offset)
    };
    let flags = b.vec(b.int(1), lanes);
    let load = |slot: usize, class: RegClass| {
        let stored = if class == RegClass::Pred { 8 } else { class_bits(class) };
        let loaded = b.load(b.vec(b.int(stored), lanes), place(slot, bytes(class)), 1);
        if class == RegClass::Pred { b.trunc(loaded, flags) } else { loaded }
    };
    let mut cx = Lower {
        b,
        env,
        lanes,
        carry_in: Some(load(CARRY_IN, RegClass::Pred)),
        carry_out: None,
        any_nan: false,
    };
    let operands: Vec<Operand> = inst
        .srcs
        .iter()
        .map(|src| match (register(src), src) {
            (Some(reg), _) if case.same == Some(reg) => {
                let scalar = b.load(b.int(class_bits(reg.class)), place(slot(reg), bytes(reg.class)), 1);
                Operand::Value(b.splat(scalar, lanes), Known::Same(scalar))
            }
            (Some(reg), _) => Operand::Value(load(slot(reg), reg.class), Known::Nothing),
            (None, Src::Imm(imm)) => Operand::Imm(*imm),
            (None, Src::Video(video)) => match video.value {
                Src::Imm(imm) => Operand::Imm(imm),
                _ => Operand::Absent,
            },
            _ => Operand::Absent,
        })
        .collect();
    let values = lower(&mut cx, inst, lanes, &operands).unwrap_or_default();
    assert_eq!(values.len(), inst.dsts.len(), "one value for each destination of {inst:?}");
    let store = |value, slot: usize, size: usize, pred: bool| {
        let value = if pred { b.zext(value, b.vec(b.int(8), lanes)) } else { value };
        b.store(value, place(slot, size), 1);
    };
    for (value, dst) in values.iter().zip(&inst.dsts) {
        if let Dst::Reg(reg) | Dst::Video { reg, .. } = dst {
            assert_eq!(
                value.ty(),
                b.vec(b.int(class_bits(reg.class)), lanes),
                "the type of a result of {inst:?}"
            );
            store(*value, slot(*reg), bytes(reg.class), reg.class == RegClass::Pred);
        }
    }
    if let Some(carry) = cx.carry_out {
        store(carry, CARRY_OUT, 1, true);
    }
    b.ret(None);
    true
}

/// The interpreter that executes the steps.
struct Interpreter {
    regs: Registers,
    warp: WarpState,
    view: View,
}

impl Interpreter {
    fn new() -> Self {
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
        let memory = Memory::new(ptx::check::module::AddressSize::Bits64).unwrap();
        let mut regs = Registers::default();
        regs.reset(ptx::ir::RegCounts { pred: 8, r16: 8, r32: 8, r64: 8 });
        Interpreter { regs, warp: WarpState::new(Arc::new(grid), [0; 3], 0), view: View::new(&memory) }
    }

    fn get(&self, reg: Reg, lane: usize) -> u64 {
        let index = reg.index as usize;
        match reg.class {
            RegClass::Pred => u64::from(self.regs.pred[index] >> lane & 1),
            RegClass::R16 => u64::from(self.regs.r16[index].0[lane]),
            RegClass::R32 => u64::from(self.regs.r32[index].0[lane]),
            RegClass::R64 => self.regs.r64[index].0[lane],
        }
    }

    fn set(&mut self, reg: Reg, lane: usize, value: u64) {
        let index = reg.index as usize;
        match reg.class {
            RegClass::Pred => {
                let mask = &mut self.regs.pred[index];
                *mask = *mask & !(1 << lane) | (value as u32 & 1) << lane;
            }
            RegClass::R16 => self.regs.r16[index].0[lane] = value as u16,
            RegClass::R32 => self.regs.r32[index].0[lane] = value as u32,
            RegClass::R64 => self.regs.r64[index].0[lane] = value,
        }
    }

    fn run(&mut self, step: &StepFn) {
        let mut exec = Exec {
            mask: FULL,
            group: FULL,
            regs: &mut self.regs,
            warp: &mut self.warp,
            mem: &mut self.view,
            frame: 0,
        };
        assert!(step(&mut exec).is_ok(), "a step without memory traps");
    }
}

fn get(buffer: &[u8], slot: usize, class: RegClass, lane: usize) -> u64 {
    let size = bytes(class);
    let mut word = [0; 8];
    word[..size].copy_from_slice(&buffer[slot * SLOT + lane * size..][..size]);
    u64::from_le_bytes(word)
}

fn set(buffer: &mut [u8], slot: usize, class: RegClass, lane: usize, value: u64) {
    let size = bytes(class);
    buffer[slot * SLOT + lane * size..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
}

/// Executes one instruction on the same values natively and by the interpreter.
fn compare(
    interpreter: &mut Interpreter,
    case: &Case,
    native: Native,
    lanes: u32,
    random: &mut Random,
    what: &str,
) {
    let sources: Vec<Reg> = case.inst.srcs.iter().filter_map(register).collect();
    let edges: Vec<Vec<u64>> = sources.iter().map(|reg| edges(reg.class)).collect();
    let mut buffer = vec![0u8; 34 * SLOT];
    // A uniform divisor gives only one divisor for each round, so there are more rounds.
    let rounds = if case.same.is_some() { 20 * ROUNDS } else { ROUNDS };
    for _ in 0..rounds {
        let common = case.same.map(|reg| value(random, reg.class, &self::edges(reg.class)));
        for lane in 0..LANES {
            for (reg, edges) in sources.iter().zip(&edges) {
                let value = common.filter(|_| case.same == Some(*reg));
                let value = value.unwrap_or_else(|| self::value(random, reg.class, edges));
                interpreter.set(*reg, lane, value);
                set(&mut buffer, slot(*reg), reg.class, lane, value);
            }
        }
        interpreter.warp.carry = random.next() as u32;
        for lane in 0..LANES {
            let flag = u64::from(interpreter.warp.carry >> lane & 1);
            set(&mut buffer, CARRY_IN, RegClass::Pred, lane, flag);
            set(&mut buffer, CARRY_OUT, RegClass::Pred, lane, flag);
        }
        let inputs: Vec<Vec<u64>> =
            (0..LANES).map(|lane| sources.iter().map(|reg| interpreter.get(*reg, lane)).collect()).collect();
        interpreter.run(&case.step);
        for lane in (0..LANES).step_by(lanes as usize) {
            native(buffer.as_mut_ptr(), lane as u64);
        }
        for (lane, inputs) in inputs.iter().enumerate() {
            for dst in &case.inst.dsts {
                let (Dst::Reg(reg) | Dst::Video { reg, .. }) = dst else { continue };
                let (expected, found) =
                    (interpreter.get(*reg, lane), get(&buffer, slot(*reg), reg.class, lane));
                assert!(
                    expected == found,
                    "{what}: {:?} -> {reg:?}\n  of {inputs:x?}: interpreter {expected:x}, compiled {found:x}",
                    case.inst.srcs
                );
            }
            let expected = u64::from(interpreter.warp.carry >> lane & 1);
            let found = get(&buffer, CARRY_OUT, RegClass::Pred, lane);
            assert_eq!(expected, found, "{what}: the carry of {inputs:x?}");
        }
        nan_bits_do_not_matter(interpreter, case, &inputs, what);
    }
}

/// Checks the sources that a lowering declares to read as numbers: another NaN in them gives the same
/// results.
fn nan_bits_do_not_matter(interpreter: &mut Interpreter, case: &Case, inputs: &[Vec<u64>], what: &str) {
    if case.number_srcs | case.double_srcs == 0 {
        return;
    }
    let dsts: Vec<Reg> = case.inst.dsts.iter().filter_map(written).collect();
    let results = |interpreter: &Interpreter| -> Vec<Vec<u64>> {
        (0..LANES).map(|lane| dsts.iter().map(|reg| interpreter.get(*reg, lane)).collect()).collect()
    };
    let before = results(interpreter);
    for (lane, inputs) in inputs.iter().enumerate() {
        let sources = case.inst.srcs.iter().enumerate().filter_map(|(i, src)| Some((i, register(src)?)));
        for ((i, reg), value) in sources.zip(inputs) {
            let single = case.number_srcs >> i & 1 != 0 && f32::from_bits(*value as u32).is_nan();
            let double = case.double_srcs >> i & 1 != 0 && f64::from_bits(*value).is_nan();
            let value = match (single, double) {
                (true, _) => 0x7fff_ffff,
                (false, true) => 0x7fff_ffff_ffff_ffff,
                (false, false) => *value,
            };
            interpreter.set(reg, lane, value);
        }
    }
    interpreter.run(&case.step);
    assert!(results(interpreter) == before, "{what}: the bits of a NaN matter");
}

/// Compares all forms of the operations that `wanted` selects.
fn all_forms(wanted: fn(Op) -> bool) {
    let only = std::env::var("PTXVM_FORM").unwrap_or_default();
    let full = std::env::var("PTXVM_TESTS").as_deref() == Ok("full") || !only.is_empty();
    let mut interpreter = Interpreter::new();
    let mut random = Random(1);
    let mut compared = 0;
    for level in Level::ALL.into_iter().filter(|level| *level <= Target::host().level()) {
        let target = Target::host_at(level);
        let made = |target| (Session::new(target).unwrap(), Env { target, flush: Flush::Never, sm: 70 });
        let unoptimised = made(Target::parse(&format!("{target},opt=0")).expect("a target"));
        let optimised = made(target);
        for row in RowId::all().filter(|row| wanted(row.form().row.op)) {
            let turn = row.index() % (3 * Level::ALL.len());
            if !full && level != Target::host().level() && turn != level as usize {
                continue;
            }
            let (session, env) = if full || row.index() / 9 % 8 == 0 { &optimised } else { &unoptimised };
            let env = *env;
            let spellings = row.spellings();
            // Rows with very many spellings (comparisons, video) are tested with two other choices of
            // operands each.
            let others = if spellings.len() < 40 { usize::MAX } else { 2 };
            let mut all: Vec<Case> = Vec::new();
            for (turn, mods) in spellings.iter().enumerate() {
                // Of hundreds of spellings each is tested on one level, and a third of them on each level.
                if spellings.len() > 100 && turn % Level::ALL.len() != level as usize {
                    continue;
                }
                let Some(inst) = ptx_exec::bind::sample(row, mods) else { continue };
                if choose(&inst, &env).is_none() {
                    continue;
                }
                let mut made = cases(&inst);
                let rest = made.len().saturating_sub(1);
                let start = random.below(rest.max(1));
                if rest > others {
                    made[1..].rotate_left(start);
                    made.truncate(1 + others);
                }
                all.extend(made.into_iter().filter_map(|case| {
                    let Lowering { number_srcs, double_srcs, .. } = choose(&case.inst, &env)?;
                    Some(Case { number_srcs, double_srcs, ..case })
                }));
            }
            for (turn, batch) in all.chunks(64).enumerate() {
                // A few forms are tested with scalars and the chunks of this level (in full with all widths).
                // Many forms are mostly tested with the chunks of this level, with the other widths in turn.
                let widths = match (all.len() <= 128, turn % 3) {
                    (true, _) if full => vec![1, 4, 8, 16],
                    (true, _) => vec![1, level.lanes()],
                    (false, 2) => vec![[1, 4, 8, 16][turn / 3 % 4]],
                    (false, _) => vec![level.lanes()],
                };
                for lanes in widths {
                    compared += one_batch(&mut interpreter, &mut random, session, env, batch, lanes, &only);
                }
            }
        }
    }
    assert!(compared > 0 || !only.is_empty(), "nothing was compared");
    println!("{compared} comparisons");
}

fn one_batch(
    interpreter: &mut Interpreter,
    random: &mut Random,
    session: &Session,
    env: Env,
    batch: &[Case],
    lanes: u32,
    only: &str,
) -> usize {
    let module = session.module("forms");
    let b = Builder::new(&module);
    let name = |case: &Case| format!("{}{}", case.inst.row.form().mnemonic, case.inst.mods);
    let made: Vec<bool> = batch
        .iter()
        .enumerate()
        .map(|(i, case)| {
            name(case).contains(only) && add_function(&b, session, &format!("f{i}"), case, lanes, env)
        })
        .collect();
    if !only.is_empty() && made.contains(&true) {
        println!("{}", module.emit_ir());
        println!("{}", session.emit_asm(&module).unwrap());
    }
    if !made.contains(&true) {
        return 0;
    }
    let object = session.object(&module).unwrap_or_else(|e| panic!("{e}")).bytes;
    let code = crate::llvm::Code::place(&object, &[]).unwrap_or_else(|e| panic!("{e}"));
    let mut count = 0;
    for (i, case) in batch.iter().enumerate().filter(|(i, _)| made[*i]) {
        let address = code.lookup(&format!("f{i}")).unwrap_or_else(|e| panic!("{}: {e}", name(case)));
        // SAFETY: `add_function` made it with this signature; `code` outlives the calls, and the buffer has a
        // slot for every register.
        let native: Native = unsafe { std::mem::transmute(address) };
        let what = format!("{} on {} x{lanes}", name(case), env.target.level().name());
        compare(interpreter, case, native, lanes, random, &what);
        count += 1;
    }
    count
}

#[test]
fn integer_arithmetic() {
    all_forms(|op| {
        matches!(
            op,
            Op::Add
                | Op::Sub
                | Op::Mul
                | Op::Mad
                | Op::Mul24
                | Op::Mad24
                | Op::Sad
                | Op::Abs
                | Op::Neg
                | Op::Min
                | Op::Max
        )
    });
}

#[test]
fn division() {
    all_forms(|op| matches!(op, Op::Div | Op::Rem));
}

#[test]
fn dot_products_and_carries() {
    all_forms(|op| {
        matches!(op, Op::Dp4a | Op::Dp2a | Op::AddCc | Op::Addc | Op::SubCc | Op::Subc | Op::MadCc | Op::Madc)
    });
}

#[test]
fn bits() {
    all_forms(|op| matches!(op, Op::Popc | Op::Clz | Op::Bfind | Op::Brev | Op::Bfe | Op::Bfi));
}

#[test]
fn logic_and_shifts() {
    all_forms(|op| {
        matches!(
            op,
            Op::And
                | Op::Or
                | Op::Xor
                | Op::Not
                | Op::Cnot
                | Op::Lop3
                | Op::Shf
                | Op::Shl
                | Op::Shr
                | Op::Prmt
        )
    });
}

#[test]
fn comparisons() {
    all_forms(|op| matches!(op, Op::Setp | Op::Set | Op::Selp | Op::Slct));
}

#[test]
fn moves() {
    all_forms(|op| matches!(op, Op::Mov | Op::MovPack | Op::MovUnpack | Op::MovVec));
}

#[test]
fn conversions() {
    all_forms(|op| op == Op::Cvt);
}

#[test]
fn floating_point() {
    all_forms(|op| matches!(op, Op::Testp | Op::Copysign | Op::Fma | Op::Rcp | Op::Sqrt));
}

#[test]
fn video_scalar() {
    all_forms(|op| {
        matches!(
            op,
            Op::Vadd
                | Op::Vsub
                | Op::Vabsdiff
                | Op::Vmin
                | Op::Vmax
                | Op::Vshl
                | Op::Vshr
                | Op::Vset
                | Op::Vmad
        )
    });
}

#[test]
fn video_packed() {
    all_forms(|op| {
        matches!(
            op,
            Op::Vadd2
                | Op::Vsub2
                | Op::Vavrg2
                | Op::Vabsdiff2
                | Op::Vmin2
                | Op::Vmax2
                | Op::Vset2
                | Op::Vadd4
                | Op::Vsub4
                | Op::Vavrg4
                | Op::Vabsdiff4
                | Op::Vmin4
                | Op::Vmax4
                | Op::Vset4
        )
    });
}

#[test]
fn approximations() {
    all_forms(|op| matches!(op, Op::Rsqrt | Op::Sin | Op::Cos | Op::Lg2 | Op::Ex2));
}
