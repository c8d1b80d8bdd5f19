//! Runs a program in the interpreter and in native code for several processors, and compares all memory that
//! it writes, or its trap.
//!
//! Invariant: every run begins with the same bytes; the interpreter's result is the reference. For a program
//! that traps no memory is compared, because the stores of other threads before the trap depend on the
//! schedule.

use super::program::Program;
use super::random::Random;
use ptxvm::{Arg, Cpu, Engine, ErrorKind, FaultKind, Launch, Options, Target, Trap, Vm};
use std::time::Duration;

/// Most threads of a grid.
pub(crate) const THREADS: u32 = 2048;
/// Bytes per thread in the output: old programs store their registers at its start; the thread's own memory
/// follows.
pub(crate) const SLOT: u32 = 384;
/// Offset of a thread's own memory.
pub(crate) const OWN: u32 = 192;
/// Bytes of the input.
pub(crate) const INPUT: usize = 1 << 16;
/// Bytes of the columns, in each of which a thread has 16 bytes adjacent to its neighbours'.
pub(crate) const COLUMNS: u32 = 8 * 16 * THREADS;
/// Bytes per thread in the rows after them, one row for each register at the end.
pub(crate) const ROWS: u32 = 160;
/// Bytes that all threads add to, before those of each warp.
pub(crate) const COMMON: u32 = 4096;
/// Bytes on which the lanes of one warp operate together.
pub(crate) const WARP: u32 = 128;
/// Bytes per CTA, after those of the warps.
pub(crate) const CELL: u32 = 128;
/// Placeholder for the value of a 64-bit register in a report.
const WIDE_VALUE: &str = "0x0123456789abcdef";
/// An address this close to the start of a buffer, or of the program's constants, is reported as a distance.
const NEAR: u64 = 1 << 31;
/// Number of lines from which on a program is large.
const LARGE: usize = 80;
/// Limit of warp instructions in the interpreter, for programs that the reducer made endless.
const MOST_STEPS: u64 = 1_000_000;
/// The same limit in native code, for every eighth program: with a limit each warp runs by itself, and no CTA
/// as a whole.
const MOST_NATIVE_STEPS: u64 = 1 << 28;
/// Time limit of a program in native code, also on a busy machine.
const MOST_TIME: Duration = Duration::from_secs(120);

/// A device that runs native code.
struct Jit {
    cpu: Cpu,
    /// Warps per coarse warp; `None`: the compiler's choice.
    team: Option<u32>,
    vm: Vm,
}

/// Devices for each processor, and one for the interpreter.
pub(crate) struct Machines {
    interp: Vm,
    jits: Vec<Jit>,
}

/// The result of a program.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All engines left the same bytes.
    Same,
    /// The module does not load, or the launch is refused: a bug of the generator.
    Refused(String),
    /// All engines report this trap.
    Trapped(String),
    /// The interpreter's limit ended it; nothing is compared.
    Endless,
    /// Native code for that processor gave another result, or did not run.
    Differs(Cpu, String),
}

/// Whether threads of a warp or a CTA read what others of them have written, without waiting for each other.
/// That the lanes of a warp execute each instruction together is true in the interpreter and of vectors only.
fn shares_in_warp(program: &Program) -> bool {
    let has =
        |texts: &[&str]| program.lines.iter().any(|line| texts.iter().all(|text| line.text.contains(text)));
    // A place is also chosen by an index, which is added to it.
    let by_index = has(&[", %wrp;"]) || has(&[", %cell;"]);
    has(&["[%wrp"]) || has(&["[%cell"]) || by_index && has(&["st.global", "[%da+"])
}

/// Whether the lanes of a warp are several rows of a CTA, which execute one after another where each row goes
/// on in the next CTAs.
fn rows_of_warps_part(program: &Program) -> bool {
    let [nx, ny, nz] = program.block;
    ny * nz > 1 && !nx.is_multiple_of(32)
}

impl Machines {
    /// Devices for each processor. If not `optimised`, LLVM optimises no code: compiling takes most of the
    /// time of a program.
    pub(crate) fn new(cpus: &[Cpu], optimised: bool) -> Result<Self, ptxvm::Error> {
        let target = |cpu: Cpu| match optimised {
            true => Ok(Target::from(cpu)),
            false => format!("{},opt=0", Target::from(cpu)).parse(),
        };
        let mut jits = Vec::new();
        for cpu in cpus {
            // Coarse warps if profitable, of four warps wherever possible, and one thread at a time wherever
            // possible.
            for team in [None, Some(4), Some(0)] {
                let target = Some(target(*cpu)?);
                let vm = Vm::with(Options { target, team, ..Options::default() })?;
                jits.push(Jit { cpu: *cpu, team, vm });
            }
        }
        Ok(Self { interp: Vm::new()?, jits })
    }

    /// Chooses a processor and a mode of running warps: code for the widest vectors compiles fastest, so it
    /// is chosen most often, and code without wide vectors seldom.
    pub(crate) fn turn(&self, program: &Program) -> usize {
        let large = program.lines.len() > LARGE;
        let weight = |cpu: Cpu| match cpu {
            Cpu::Avx512 => 80,
            Cpu::Avx2 if large => 4,
            Cpu::Avx2 => 12,
            Cpu::Baseline if large => 0,
            Cpu::Baseline => 1,
        };
        // Independent of the choices that generated the program.
        let mut left = Random::new(!program.data).below(self.jits.iter().map(|jit| weight(jit.cpu)).sum());
        self.jits
            .iter()
            .position(|jit| match left.checked_sub(weight(jit.cpu)) {
                Some(less) => {
                    left = less;
                    false
                }
                None => true,
            })
            .unwrap_or(0)
    }

    /// Runs it on every processor, or on the chosen one.
    pub(crate) fn run(&self, program: &Program, turn: Option<usize>) -> Outcome {
        let count = self.jits.len();
        self.run_where(program, |index, _, _| turn.is_none_or(|turn| turn % count == index))
    }

    /// Runs it on the devices that are wanted, by their number, processor, and warps per coarse warp.
    pub(crate) fn run_where(
        &self,
        program: &Program,
        wanted: impl Fn(usize, Cpu, Option<u32>) -> bool,
    ) -> Outcome {
        let given = Given::new(program);
        let expected = match end(&self.interp, program, &given, Engine::Interp, 0) {
            Ok(End::Trap(trap)) if trap.kind == FaultKind::StepLimit => return Outcome::Endless,
            Ok(expected) => expected,
            Err(error) => return Outcome::Refused(error.to_string()),
        };
        for (index, Jit { cpu, team, vm }) in self.jits.iter().enumerate() {
            let apart = *team == Some(0) || rows_of_warps_part(program);
            if !wanted(index, *cpu, *team) || apart && shares_in_warp(program) {
                continue;
            }
            let run = || end(vm, program, &given, Engine::Jit, 0);
            let got = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                Ok(Ok(got)) => got,
                Ok(Err(error)) => return Outcome::Differs(*cpu, error.to_string()),
                Err(_) => return Outcome::Differs(*cpu, "a panic".to_owned()),
            };
            // Of several threads that trap, scalar code finds another one first.
            if *team == Some(0) && matches!((&got, &expected), (End::Trap(_), End::Trap(_))) {
                continue;
            }
            if let Some(difference) = got.difference(&expected) {
                return Outcome::Differs(*cpu, difference);
            }
        }
        match expected {
            End::Memory(_) => Outcome::Same,
            End::Trap(trap) => Outcome::Trapped(trap.to_string()),
        }
    }

    /// Whether the interpreter gives the same bytes under several schedules.
    pub(crate) fn is_settled(&self, program: &Program) -> bool {
        let given = Given::new(program);
        let run = |seed| match end(&self.interp, program, &given, Engine::Interp, seed) {
            Ok(End::Memory(memory)) => Some(memory),
            Ok(End::Trap(_)) | Err(_) => None,
        };
        run(0).is_some_and(|first| (1..4).all(|seed| run(seed).as_ref() == Some(&first)))
    }

    /// Restricted to that processor.
    pub(crate) fn only(self, cpu: Cpu) -> Self {
        Self { interp: self.interp, jits: self.jits.into_iter().filter(|jit| jit.cpu == cpu).collect() }
    }
}

/// The initial state of all runs of a program.
pub(super) struct Given {
    text: String,
    /// Input, and shared buffers.
    buffers: [Vec<u64>; 2],
    args: (u32, f32, u64),
}

impl Given {
    pub(super) fn new(program: &Program) -> Self {
        let mut random = Random::new(program.data);
        let mut fill = |bytes: usize| -> Vec<u64> {
            let mut all: Vec<u64> = Vec::with_capacity(bytes / 8 + 8);
            while all.len() < bytes / 8 {
                // Values of each width alternate, so that every kind of load finds edges.
                let bits = [16, 32, 64][all.len() / 8 % 3];
                let mut word = || (0..64 / bits).fold(0, |word, at| word | random.value(bits) << (at * bits));
                all.extend([(); 8].map(|()| word()));
            }
            all.truncate(bytes / 8);
            all
        };
        let warps = program.threads().div_ceil(32) * program.ctas();
        let (input, mut common) = (fill(INPUT), fill((COMMON + WARP * warps) as usize));
        let args = (random.value(32) as u32, f32::from_bits(random.value(32) as u32), random.value(64));
        common.resize(common.len() + (CELL * program.ctas() / 8) as usize, 0);
        Self { text: program.text(), buffers: [input, common], args }
    }
}

/// The final state of a run.
pub(super) enum End {
    /// The contents of the buffers.
    Memory([Vec<u64>; 3]),
    /// The trap, without parts that differ between devices: an address in or near a buffer or the constants
    /// becomes its distance from their start; values of 64-bit registers, which may be addresses, and
    /// descriptions of allocations are removed.
    Trap(Box<Trap>),
}

impl End {
    /// The difference to the interpreter's result.
    pub(super) fn difference(&self, expected: &End) -> Option<String> {
        match (self, expected) {
            (End::Memory(got), End::Memory(expected)) => {
                let buffers = ["out", "columns", "common"].iter().zip(got.iter().zip(expected));
                buffers.into_iter().find_map(|(name, (got, expected))| {
                    let at = got.iter().zip(expected).position(|(got, expected)| got != expected)?;
                    let byte = at as u32 * 8;
                    let what = match *name {
                        "out" => format!("thread {}, byte {} of its slot", byte / SLOT, byte % SLOT),
                        _ => format!("`{name}`, byte {byte}"),
                    };
                    let (got, expected) = (got[at], expected[at]);
                    Some(format!("{what}: {got:016x} instead of {expected:016x}"))
                })
            }
            (End::Trap(got), End::Trap(expected)) if got == expected => None,
            (End::Trap(got), End::Trap(expected)) => Some(format!("{got}instead of\n{expected}")),
            (End::Trap(got), End::Memory(_)) => Some(format!("{got}instead of none")),
            (End::Memory(_), End::Trap(expected)) => Some(format!("no trap instead of\n{expected}")),
        }
    }
}

/// Runs a program, and returns its final state.
pub(super) fn end(
    vm: &Vm,
    program: &Program,
    given: &Given,
    engine: Engine,
    seed: u64,
) -> Result<End, ptxvm::Error> {
    let module = vm.load("agree.ptx", &given.text)?;
    let kernel = module.kernel("main")?;
    let threads = program.threads() * program.ctas();
    let bytes = if program.bytes == 0 { COLUMNS + ROWS * THREADS } else { program.bytes };
    let [input, common] = &given.buffers;
    let input = vm.buffer(input)?;
    let out = vm.zeros::<u64>((threads * SLOT / 8) as usize)?;
    let columns = vm.zeros::<u64>(bytes.div_ceil(8) as usize)?;
    let common = vm.buffer(common)?;
    let (a, b, c) = given.args;
    let args = [
        Arg::buffer(&out),
        Arg::buffer(&input),
        Arg::buffer(&columns),
        Arg::buffer(&common),
        Arg::from(a),
        Arg::from(b),
        Arg::from(c),
    ];
    let os_threads = if program.data.is_multiple_of(4) { 2 } else { 1 };
    let mut launch = Launch::new(program.grid, program.block)
        .threads(if engine == Engine::Interp { 1 } else { os_threads })
        .engine(engine)
        .seed(seed)
        .args(&kernel, &args)?;
    if engine == Engine::Interp {
        launch.max_steps = Some(MOST_STEPS);
    } else if program.data % 8 == 3 {
        launch.max_steps = Some(MOST_NATIVE_STEPS);
    } else {
        launch.timeout = Some(MOST_TIME);
    }
    let error = match vm.launch(&kernel, &launch) {
        Ok(_) => return Ok(End::Memory([out.read()?, columns.read()?, common.read()?])),
        Err(error) => error,
    };
    match error.into_kind() {
        ErrorKind::Trap(mut trap, _) => {
            let table = module.global("table").map_or(u64::MAX, |(address, _)| address);
            let starts = [out.address(), input.address(), columns.address(), common.address(), table];
            if let Some(access) = &mut trap.access {
                let near = |start: &&u64| access.address.abs_diff(**start) < NEAR;
                if let Some(start) =
                    starts.iter().filter(near).min_by_key(|start| access.address.abs_diff(**start))
                {
                    access.address = access.address.wrapping_sub(*start);
                }
            }
            trap.nearest = None;
            for (_, value) in &mut trap.registers {
                if value.len() == WIDE_VALUE.len() {
                    value.clear();
                }
            }
            Ok(End::Trap(trap))
        }
        other => Err(other.into()),
    }
}
