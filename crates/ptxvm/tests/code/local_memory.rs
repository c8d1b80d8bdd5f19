//! Local memory of all sizes of elements, at offsets that lanes share and at offsets of their own, against
//! bytes that are kept here for each thread.
#![cfg(feature = "jit")]

use crate::levels;
use ptxvm::{Arg, Cpu, Engine, Fill, Launch, Options, Vm};
use std::fmt::Write as _;

/// Bytes of a thread's local memory.
const BYTES: u32 = 128;
const THREADS: u32 = 96;
/// What the hash is multiplied by before a loaded element is added.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where an access is.
#[derive(Clone, Copy)]
enum Offset {
    /// At this offset.
    Constant(u32),
    /// At the offset that the launch gives, which is a multiple of 16, and this.
    Given(u32),
    /// At an offset for each thread: (thread * factor + summand) % places, times the size of the access.
    Own { factor: u32, summand: u32 },
}

/// An access.
#[derive(Clone, Copy)]
struct Step {
    /// Bytes of an element.
    element: u32,
    count: u32,
    offset: Offset,
    write: bool,
    /// Whether only odd threads make it.
    guarded: bool,
}

impl Step {
    fn bytes(self) -> u32 {
        self.element * self.count
    }

    fn offset_of(self, thread: u32, given: u32) -> u32 {
        match self.offset {
            Offset::Constant(at) => at,
            Offset::Given(more) => given + more,
            Offset::Own { factor, summand } => {
                (thread * factor + summand) % (BYTES / self.bytes()) * self.bytes()
            }
        }
    }
}

/// What a step stores: element `k` of thread `thread`.
fn stored(step: usize, k: u32, thread: u32) -> u64 {
    u64::from(thread).wrapping_mul(FACTOR).wrapping_add(step as u64 * 77 + u64::from(k) + 1)
}

/// Accesses of all kinds, in an order without pattern.
fn steps() -> Vec<Step> {
    let mut state = 12345_u32;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let mut steps = Vec::new();
    for element in [1, 2, 4, 8] {
        for count in [1, 2, 4] {
            let bytes = element * count;
            if bytes > 16 {
                continue;
            }
            for kind in 0..3 {
                for (write, guarded) in [(true, false), (false, false), (true, true), (false, true)] {
                    let offset = match kind {
                        0 => Offset::Constant(next(BYTES / bytes) * bytes),
                        1 => Offset::Given(next(BYTES / 2 / bytes) * bytes),
                        _ => Offset::Own { factor: next(7), summand: next(50) },
                    };
                    steps.push(Step { element, count, offset, write, guarded });
                }
            }
        }
    }
    for at in (1..steps.len()).rev() {
        steps.swap(at, next(at as u32 + 1) as usize);
    }
    steps
}

/// How a kernel names its local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// By addresses in the state space.
    Local,
    /// By generic addresses.
    Generic,
    /// By generic addresses that are loaded from memory before each access.
    Stored,
}

/// A kernel `k(.u64 out, .u32 given)` that makes the accesses and stores a hash of what it has loaded.
fn text(steps: &[Step], named: Named) -> String {
    let space = if named == Named::Local { ".local" } else { "" };
    let mut text = format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 given)\n{{\n\
         .reg .pred %p; .reg .b32 %r<8>, %w<4>; .reg .b64 %d<8>, %l<4>; .local .align 16 .b8 own[{BYTES}];\n\
         mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.ne.u32 %p, %r2, 0;\n\
         ld.param.u32 %r3, [given]; cvt.u64.u32 %d1, %r3; mov.u64 %d2, own; mov.u64 %d7, 1;\n"
    );
    if named != Named::Local {
        text += "cvta.local.u64 %d2, %d2;\n";
    }
    if named == Named::Stored {
        text += ".local .align 8 .b8 place[8];\nst.local.u64 [place], %d2;\n";
    }
    let mut line = |args: std::fmt::Arguments<'_>| text.write_fmt(args).expect("to memory");
    for (number, step) in steps.iter().enumerate() {
        let (bytes, count) = (step.bytes(), step.count as usize);
        if named == Named::Stored {
            line(format_args!("ld.local.u64 %d2, [place];\n"));
        }
        let (address, more) = match step.offset {
            Offset::Constant(at) => ("%d2", at),
            Offset::Given(more) => {
                line(format_args!("add.u64 %d3, %d2, %d1;\n"));
                ("%d3", more)
            }
            Offset::Own { factor, summand } => {
                line(format_args!(
                    "mad.lo.u32 %r4, %r1, {factor}, {summand}; rem.u32 %r4, %r4, {};\n",
                    BYTES / bytes
                ));
                line(format_args!("mul.wide.u32 %d3, %r4, {bytes}; add.u64 %d3, %d2, %d3;\n"));
                ("%d3", 0)
            }
        };
        let register = |k: usize| if step.element == 8 { format!("%l{k}") } else { format!("%w{k}") };
        let list = match count {
            1 => register(0),
            _ => format!("{{{}}}", (0..count).map(register).collect::<Vec<_>>().join(", ")),
        };
        let vector = if count == 1 { String::new() } else { format!(".v{count}") };
        let (ty, guard) = (format!("u{}", 8 * step.element), if step.guarded { "@%p " } else { "" });
        if step.write {
            for k in 0..count {
                line(format_args!(
                    "cvt.u64.u32 %d4, %r1; mul.lo.u64 %d4, %d4, {}; add.u64 %d4, %d4, {};\n",
                    FACTOR as i64,
                    stored(number, k as u32, 0)
                ));
                match step.element {
                    8 => line(format_args!("mov.u64 %l{k}, %d4;\n")),
                    _ => line(format_args!("cvt.u32.u64 %w{k}, %d4;\n")),
                }
            }
            line(format_args!("{guard}st{space}{vector}.{ty} [{address}+{more}], {list};\n"));
        } else {
            for k in 0..count {
                line(format_args!("mov.b{} {}, 0;\n", if step.element == 8 { 64 } else { 32 }, register(k)));
            }
            line(format_args!("{guard}ld{space}{vector}.{ty} {list}, [{address}+{more}];\n"));
            for k in 0..count {
                match step.element {
                    8 => line(format_args!("mov.u64 %d4, %l{k};\n")),
                    _ => line(format_args!("cvt.u64.u32 %d4, %w{k};\n")),
                }
                line(format_args!("mad.lo.u64 %d7, %d7, {}, %d4;\n", FACTOR as i64));
            }
        }
    }
    text + "ld.param.u64 %d5, [out]; mul.wide.u32 %d6, %r1, 8; add.u64 %d5, %d5, %d6;\nst.global.u64 [%d5], %d7; ret;\n}\n"
}

/// The hash of a thread. `first`: what its local memory holds at first.
fn expected(steps: &[Step], thread: u32, given: u32, first: impl Fn(usize) -> u8) -> u64 {
    let mut own: Vec<u8> = (0..BYTES as usize).map(first).collect();
    let mut hash = 1_u64;
    for (number, step) in steps.iter().enumerate() {
        let active = !step.guarded || thread & 1 != 0;
        for k in 0..step.count {
            let at = (step.offset_of(thread, given) + k * step.element) as usize;
            let bytes = &mut own[at..at + step.element as usize];
            let mut value = [0; 8];
            match (step.write, active) {
                (true, true) => {
                    bytes.copy_from_slice(&stored(number, k, thread).to_le_bytes()[..bytes.len()])
                }
                (false, true) => value[..bytes.len()].copy_from_slice(bytes),
                (_, false) => {}
            }
            if !step.write {
                hash = hash.wrapping_mul(FACTOR).wrapping_add(u64::from_le_bytes(value));
            }
        }
    }
    hash
}

#[test]
fn elements_of_all_sizes_are_where_their_thread_left_them() {
    const PATTERN: [u8; 5] = [0xa1, 0xb2, 0xc3, 0xd4, 0xe5];
    let steps = steps();
    let cpus = [Cpu::Avx512, Cpu::Avx2, Cpu::Baseline].into_iter().filter(|cpu| levels::is_available(*cpu));
    let engines = [(Engine::Jit, None), (Engine::Jit, Some(0)), (Engine::Interp, None)];
    for (cpu, named) in cpus.flat_map(|cpu| [Named::Local, Named::Generic, Named::Stored].map(|n| (cpu, n))) {
        let text = text(&steps, named);
        for ((engine, team), is_filled) in engines.iter().flat_map(|engine| [(engine, false), (engine, true)])
        {
            let options = Options {
                target: Some(levels::target(cpu, &text)),
                team: *team,
                fill: Fill::new(&PATTERN).filter(|_| is_filled),
                cache: levels::cache(),
                ..Options::default()
            };
            let vm = Vm::with(options).expect("a device");
            let module = vm.load("local.ptx", &text).unwrap_or_else(|error| panic!("{error}"));
            let kernel = module.kernel("k").expect("the kernel");
            let out = vm.zeros::<u64>(THREADS as usize).expect("memory");
            // The second launch uses memory that the first one has left.
            for given in [16, 64] {
                let launch = Launch::new([1, 1, 1], [THREADS, 1, 1]).threads(1).engine(*engine);
                let launch = launch.args(&kernel, &[Arg::buffer(&out), given.into()]).expect("arguments");
                vm.launch(&kernel, &launch).unwrap_or_else(|error| panic!("{error}"));
                let first = |at: usize| if is_filled { PATTERN[at % PATTERN.len()] } else { 0 };
                for (thread, hash) in (0..).zip(out.read().expect("data")) {
                    let want = expected(&steps, thread, given, first);
                    assert_eq!(hash, want, "thread {thread}, {cpu:?}, {engine:?}, {team:?}, {named:?}");
                }
            }
        }
    }
}
