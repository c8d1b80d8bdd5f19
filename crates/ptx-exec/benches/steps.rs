//! Nanoseconds per step of 32 lanes, with all lanes active and with 20 active: `cargo bench -p ptx-exec
//! --bench steps`.
//!
//! A step is bound from a kernel of one instruction, and executed in a loop on the same registers. The time
//! includes the indirect call, but not the interpreter's loop.

use ptx::check::module::{AddressSize, FuncId};
use ptx::check::{CheckOptions, check};
use ptx::ir::{Function, Program, RegClass};
use ptx_exec::bound::{Code, Exec};
use ptx_exec::lanes::{FULL, Lane, Registers};
use ptx_exec::layout::Layout;
use ptx_exec::mem::{Class, Memory, View};
use ptx_exec::warp::{GridShape, WarpState};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Executions of a step per batch. The fastest batch counts, so that load on the machine has little effect.
const BATCH: u32 = 1000;
/// Batches per step.
const BATCHES: u32 = 500;
/// A partial lane mask.
const PARTIAL: u32 = 0x0fff_1234;

/// `%d4` holds contiguous addresses of words, `%d5` scattered ones, `%d6` one address, `%d7` contiguous ones
/// of 64-bit words.
const CASES: &[&str] = &[
    "mov.b32 %r0, %r1",
    "mov.u32 %r0, %tid.x",
    "add.s32 %r0, %r1, %r2",
    "add.s32 %r0, %r1, 4",
    "add.s64 %d0, %d1, %d2",
    "mul.lo.s32 %r0, %r1, %r2",
    "mad.lo.s32 %r0, %r1, %r2, %r3",
    "mul.wide.u32 %d0, %r1, %r2",
    "mul.wide.s32 %d0, %r1, %r2",
    "shl.b32 %r0, %r1, 2",
    "shl.b32 %r0, %r1, %r2",
    "shl.b64 %d0, %d1, 2",
    "shf.l.wrap.b32 %r0, %r1, %r2, 7",
    "lop3.b32 %r0, %r1, %r2, %r3, 0x96",
    "setp.lt.s32 %p0, %r1, %r2",
    "setp.ltu.f32 %p0, %r1, %r2",
    "selp.b32 %r0, %r1, %r2, %p1",
    "cvt.s64.s32 %d0, %r1",
    "cvt.u32.u64 %r0, %d1",
    "cvt.rn.f32.s32 %r0, %r1",
    "cvt.rzi.s32.f32 %r0, %r1",
    "add.f32 %r0, %r1, %r2",
    "mul.ftz.f32 %r0, %r1, %r2",
    "fma.rn.f32 %r0, %r1, %r2, %r3",
    "add.f64 %d0, %d1, %d2",
    "fma.rn.f64 %d0, %d1, %d2, %d3",
    "div.rn.f32 %r0, %r1, %r2",
    "sqrt.rn.f32 %r0, %r1",
    "sin.approx.f32 %r0, %r1",
    "ex2.approx.f32 %r0, %r1",
    "div.s32 %r0, %r1, %r2",
    "fma.rn.f16x2 %r0, %r1, %r2, %r3",
    "vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3",
    "ld.global.u32 %r0, [%d4]",
    "ld.global.u32 %r0, [%d4+128]",
    "ld.global.u32 %r0, [%d5]",
    "ld.global.u32 %r0, [%d6]",
    "ld.global.f64 %d0, [%d7]",
    "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%d6]",
    "st.global.u32 [%d4], %r1",
    "atom.global.add.u32 %r0, [%d4], %r1",
    "atom.global.add.u32 %r0, [%d6], %r1",
];

fn main() {
    let memory = Memory::new(AddressSize::Bits64).expect("the system reserves addresses");
    let buffer = memory.alloc(Class::Global, 1 << 16, 256, "buffer").expect("room for 64 KiB");
    println!("{:<48}{:>10}{:>10}", "ns per step", "32 lanes", "20 lanes");
    for text in CASES {
        let program = program(text);
        let layout = Layout { variables: Vec::new(), functions: vec![0], shared_bytes: 0, reserved_bytes: 0 };
        let code =
            ptx_exec::bind::bind(&program, FuncId(0), &layout).unwrap_or_else(|missing| panic!("{missing}"));
        let function = &program.functions[0];
        let full = measure(&code, function, &memory, buffer, FULL);
        let partial = measure(&code, function, &memory, buffer, PARTIAL);
        println!("{text:<48}{full:>10.1}{partial:>10.1}");
    }
}

/// A kernel of which the instruction is the first one.
fn program(text: &str) -> Program {
    let text = format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k()\n{{\n\
         .reg .pred %p<8>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n{text};\nret;\n}}\n"
    );
    let checked = check("bench", &text, &CheckOptions::default());
    ptx::ir::lower(checked.module.unwrap_or_else(|| panic!("{:?}", checked.diagnostics)))
}

fn measure(code: &Code, function: &Function, memory: &Arc<Memory>, buffer: u64, mask: u32) -> f64 {
    let mut regs = Registers::default();
    regs.reset(function.regs);
    for (number, register) in regs.r32.iter_mut().enumerate() {
        *register = Lane(std::array::from_fn(|lane| (1.25 + lane as f32 * 0.5 + number as f32).to_bits()));
    }
    for (register, name) in regs.r64.iter_mut().zip(&function.reg_names[RegClass::R64 as usize]) {
        *register = Lane(std::array::from_fn(|lane| {
            let lane = lane as u64;
            match name.as_str() {
                "%d4" => buffer + 4 * lane,
                "%d5" => buffer + (lane * 7919) % 4096 * 4,
                "%d6" => buffer + 64,
                "%d7" => buffer + 8 * lane,
                _ => (1.25 + lane as f64 * 0.5).to_bits(),
            }
        }));
    }
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
