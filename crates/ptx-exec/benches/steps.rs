//! Nanoseconds for one step of 32 lanes, with all lanes on and with 20 of them: `cargo bench -p ptx-exec --bench steps`.
//!
//! A step is bound from an instruction made by hand and run in a loop on the same registers; figures include the call through the
//! box, not the interpreter's loop around it.

use ptx::Span;
use ptx::check::module::{AddressSize, FuncId, FunctionKind, Performance, Source, Target};
use ptx::ir::{Addr, Base, Block, Dst, Function, Inst, Program, Reg, RegClass, RegCounts, Src, Terminator};
use ptx::isa::{Sm, Version, match_mods};
use ptx_exec::bound::{Code, Exec};
use ptx_exec::lanes::{FULL, Lane, Registers};
use ptx_exec::layout::Layout;
use ptx_exec::mem::{Class, Memory, View};
use ptx_exec::warp::{GridShape, WarpState};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// How often a step runs in a batch; the fastest of the batches counts, so that a busy machine does not.
const BATCH: u32 = 1000;
/// Batches of each step.
const BATCHES: u32 = 500;
/// Some lanes.
const PARTIAL: u32 = 0x0fff_1234;

fn main() {
    let regs = RegCounts { pred: 8, r16: 8, r32: 8, r64: 8 };
    let memory = Memory::new(AddressSize::Bits64).expect("the system reserves addresses");
    let buffer = memory.alloc(Class::Global, 1 << 16, 256, "buffer").expect("room for 64 KiB");
    println!("{:<28}{:>10}{:>10}", "ns per step", "32 lanes", "20 lanes");
    for (text, dsts, srcs) in cases() {
        let code = bind_one(text, dsts, srcs, regs);
        let full = measure(&code, regs, &memory, buffer, FULL);
        let partial = measure(&code, regs, &memory, buffer, PARTIAL);
        println!("{text:<28}{full:>10.1}{partial:>10.1}");
    }
}

fn cases() -> Vec<(&'static str, Vec<Dst>, Vec<Src>)> {
    let reg = |class, index| Reg { class, index };
    let r32 = |index| Src::Reg(reg(RegClass::R32, index));
    let r64 = |index| Src::Reg(reg(RegClass::R64, index));
    let d32 = || vec![Dst::Reg(reg(RegClass::R32, 0))];
    let d64 = || vec![Dst::Reg(reg(RegClass::R64, 0))];
    let p = || vec![Dst::Reg(reg(RegClass::Pred, 0)), Dst::Sink];
    let at = |index, offset| Src::Addr(Addr { base: Base::Reg(reg(RegClass::R64, index)), offset });
    vec![
        ("mov.b32", d32(), vec![r32(1)]),
        ("add.s32", d32(), vec![r32(1), r32(2)]),
        ("add.s32 (immediate)", d32(), vec![r32(1), Src::Imm(4)]),
        ("add.s64", d64(), vec![r64(1), r64(2)]),
        ("mul.lo.s32", d32(), vec![r32(1), r32(2)]),
        ("mad.lo.s32", d32(), vec![r32(1), r32(2), r32(3)]),
        ("mul.wide.u32", d64(), vec![r32(1), r32(2)]),
        ("mul.wide.s32", d64(), vec![r32(1), r32(2)]),
        ("shl.b32 (immediate)", d32(), vec![r32(1), Src::Imm(2)]),
        ("shl.b32", d32(), vec![r32(1), r32(2)]),
        ("shl.b64 (immediate)", d64(), vec![r64(1), Src::Imm(2)]),
        ("setp.lt.s32", p(), vec![r32(1), r32(2)]),
        ("setp.ltu.f32", p(), vec![r32(1), r32(2)]),
        ("selp.b32", d32(), vec![r32(1), r32(2), Src::Reg(reg(RegClass::Pred, 1))]),
        ("cvt.s64.s32", d64(), vec![r32(1)]),
        ("cvt.u32.u64", d32(), vec![r64(1)]),
        ("cvt.rn.f32.s32", d32(), vec![r32(1)]),
        ("cvt.rzi.s32.f32", d32(), vec![r32(1)]),
        ("add.f32", d32(), vec![r32(1), r32(2)]),
        ("mul.ftz.f32", d32(), vec![r32(1), r32(2)]),
        ("fma.rn.f32", d32(), vec![r32(1), r32(2), r32(3)]),
        ("add.f64", d64(), vec![r64(1), r64(2)]),
        ("fma.rn.f64", d64(), vec![r64(1), r64(2), r64(3)]),
        ("div.rn.f32", d32(), vec![r32(1), r32(2)]),
        ("sqrt.rn.f32", d32(), vec![r32(1)]),
        ("sin.approx.f32", d32(), vec![r32(1)]),
        ("div.s32", d32(), vec![r32(1), r32(2)]),
        ("ld.global.u32", d32(), vec![at(4, 0)]),
        ("ld.global.u32 (offset)", d32(), vec![at(4, 128)]),
        ("ld.global.u32 (scattered)", d32(), vec![at(5, 0)]),
        ("ld.global.u32 (uniform)", d32(), vec![at(6, 0)]),
        ("ld.global.f64", d64(), vec![at(7, 0)]),
        ("st.global.u32", Vec::new(), vec![at(4, 0), r32(1)]),
        ("atom.global.add.u32", d32(), vec![at(4, 0), r32(1)]),
        ("atom.global.add.u32 (same)", d32(), vec![at(6, 0), r32(1)]),
    ]
}

fn bind_one(text: &str, dsts: Vec<Dst>, srcs: Vec<Src>, regs: RegCounts) -> Code {
    let written = text.split(' ').next().expect("a case has a text");
    let mut words = written.split('.');
    let mnemonic = words.next().expect("a text has a mnemonic");
    let words: Vec<&str> = words.collect();
    let (row, mods) = *match_mods(mnemonic, &words).first().unwrap_or_else(|| panic!("no form `{text}`"));
    let op = row.row().op;
    let inst = Inst { op, row, mods, guard: None, dsts, srcs, span: Span::default(), loc: None };
    let function = Function {
        name: "bench".to_owned(),
        kind: FunctionKind::Entry,
        regs,
        reg_names: Default::default(),
        params: Vec::new(),
        returns: Vec::new(),
        param_bytes: 0,
        frame_bytes: 0,
        frame_align: 1,
        performance: Performance::default(),
        blocks: vec![Block { label: None, insts: vec![inst], term: Terminator::Ret(None) }],
        builtin: None,
        span: Span::default(),
    };
    let program = Program {
        source: Arc::new(Source::new("bench", "")),
        version: Version::new(6, 4),
        target: Target {
            sm: Sm::from_name("sm_70").expect("a known target"),
            texmode_independent: false,
            map_f64_to_f32: false,
            debug: false,
        },
        address_size: AddressSize::Bits64,
        files: Vec::new(),
        variables: Vec::new(),
        functions: vec![function],
    };
    let layout = Layout { variables: Vec::new(), functions: vec![0], shared_bytes: 0 };
    ptx_exec::bind::bind(&program, FuncId(0), &layout).unwrap_or_else(|missing| panic!("{missing}"))
}

fn measure(code: &Code, counts: RegCounts, memory: &Arc<Memory>, buffer: u64, mask: u32) -> f64 {
    let mut regs = Registers::default();
    regs.reset(counts);
    for (number, register) in regs.r32.iter_mut().enumerate() {
        *register = Lane(std::array::from_fn(|lane| (1.25 + lane as f32 * 0.5 + number as f32).to_bits()));
    }
    for (number, register) in regs.r64.iter_mut().enumerate() {
        *register = Lane(std::array::from_fn(|lane| (1.25 + lane as f64 * 0.5 + number as f64).to_bits()));
    }
    regs.r64[4] = Lane(std::array::from_fn(|lane| buffer + 4 * lane as u64));
    regs.r64[5] = Lane(std::array::from_fn(|lane| buffer + (lane as u64 * 7919) % 4096 * 4));
    regs.r64[6] = Lane::splat(buffer + 64);
    regs.r64[7] = Lane(std::array::from_fn(|lane| buffer + 8 * lane as u64));
    let grid = GridShape {
        ntid: [32, 1, 1],
        nctaid: [1, 1, 1],
        gridid: 1,
        nsmid: 1,
        dynamic_shared: 0,
        total_shared: 0,
        envreg: [0; 32],
    };
    let mut warp = WarpState::new(Arc::new(grid), [0; 3], 0);
    let mut view = View::new(memory);
    let step = &code.functions[0].as_ref().expect("the function was bound").blocks[0].steps[0].run;
    let mut exec = Exec { mask, group: mask, regs: &mut regs, warp: &mut warp, mem: &mut view, frame: 0 };
    let mut best = f64::INFINITY;
    for _ in 0..BATCHES {
        let start = Instant::now();
        for _ in 0..BATCH {
            black_box(step)(black_box(&mut exec)).expect("no step of the bench traps");
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(BATCH));
    }
    best
}
