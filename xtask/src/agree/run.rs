//! Runs a program in the interpreter and in native code for several processors, and compares all memory that it writes.
//!
//! Invariant: every run begins with the same bytes; the interpreter's result is what the others are compared with.

use super::program::Program;
use super::random::Random;
use ptxvm::{Arg, Cpu, Engine, ErrorKind, Launch, Options, Vm};

/// Most threads of a grid.
pub(crate) const THREADS: u32 = 2048;
/// Bytes of each thread in the output: programs of old stored their registers at its start; then memory of its own.
pub(crate) const SLOT: u32 = 384;
/// Where a thread's own memory begins in its slot.
pub(crate) const OWN: u32 = 192;
/// Bytes of the input.
pub(crate) const INPUT: usize = 1 << 16;
/// Bytes of the columns, in each of which a thread has 16 bytes beside its neighbours'.
pub(crate) const COLUMNS: u32 = 8 * 16 * THREADS;
/// Bytes of each thread in the rows behind them, one for each register at the end.
pub(crate) const ROWS: u32 = 160;
/// Bytes that all threads add to, before those of each warp.
pub(crate) const COMMON: u32 = 4096;
/// Bytes that the lanes of one warp work on together.
pub(crate) const WARP: u32 = 128;
/// Instructions that a warp may execute, for programs that the reducer made endless.
const MOST_STEPS: u64 = 400_000;

/// One device for each kind of processor, and one for the interpreter.
pub(crate) struct Machines {
    interp: Vm,
    jits: Vec<(Cpu, Vm)>,
}

/// What came of a program.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All engines left the same bytes.
    Same,
    /// The module does not load, or the launch is refused: a mistake of the generator.
    Refused(String),
    /// The interpreter trapped; nothing is compared.
    Trapped(String),
    /// Native code for that processor left something else, or did not run.
    Differs(Cpu, String),
}

impl Machines {
    pub(crate) fn new(cpus: &[Cpu]) -> Result<Self, ptxvm::Error> {
        let mut jits = Vec::new();
        for cpu in cpus {
            // Warps as it pays, and as one wherever that is possible.
            for team in [None, Some(4)] {
                jits.push((*cpu, Vm::with(Options { cpu: Some(*cpu), team, ..Options::default() })?));
            }
        }
        Ok(Self { interp: Vm::new()?, jits })
    }

    /// Runs it on every processor, or on the one whose turn it is.
    pub(crate) fn run(&self, program: &Program, turn: Option<usize>) -> Outcome {
        let text = program.text();
        let expected = match memory(&self.interp, program, &text, Engine::Interp) {
            Ok(expected) => expected,
            Err(error) if matches!(error.kind(), ErrorKind::Trap(..)) => {
                return Outcome::Trapped(error.to_string());
            }
            Err(error) => return Outcome::Refused(error.to_string()),
        };
        let count = self.jits.len();
        for (_, (cpu, vm)) in
            self.jits.iter().enumerate().filter(|(i, _)| turn.is_none_or(|turn| turn % count == *i))
        {
            let run = || memory(vm, program, &text, Engine::Jit);
            let got = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                Ok(Ok(got)) => got,
                Ok(Err(error)) => return Outcome::Differs(*cpu, error.to_string()),
                Err(_) => return Outcome::Differs(*cpu, "a panic".to_owned()),
            };
            for (name, (got, expected)) in ["out", "columns", "common"].iter().zip(got.iter().zip(&expected))
            {
                if let Some(at) = got.iter().zip(expected).position(|(got, expected)| got != expected) {
                    let word = |bytes: &[u8]| {
                        let from = at / 8 * 8;
                        bytes[from..from + 8]
                            .iter()
                            .rev()
                            .map(|byte| format!("{byte:02x}"))
                            .collect::<String>()
                    };
                    let what = match (*name, at as u32 / SLOT, at as u32 % SLOT) {
                        ("out", thread, byte) => format!("thread {thread}, byte {byte} of its slot"),
                        _ => format!("`{name}`, byte {at}"),
                    };
                    let (got, expected) = (word(got), word(expected));
                    return Outcome::Differs(*cpu, format!("{what}: {got} instead of {expected}"));
                }
            }
        }
        Outcome::Same
    }

    /// The same, on that processor alone.
    pub(crate) fn only(self, cpu: Cpu) -> Self {
        Self { interp: self.interp, jits: self.jits.into_iter().filter(|(c, _)| *c == cpu).collect() }
    }
}

/// What a run leaves in memory.
fn memory(vm: &Vm, program: &Program, text: &str, engine: Engine) -> Result<[Vec<u8>; 3], ptxvm::Error> {
    let kernel = vm.load("agree.ptx", text)?.kernel("main")?;
    let mut random = Random::new(program.data);
    let mut fill = |bytes: usize| -> Vec<u8> {
        let mut all = Vec::with_capacity(bytes);
        while all.len() < bytes {
            // Values of each width by turns, so that every kind of load finds edges.
            match all.len() / 64 % 3 {
                0 => (0..32).for_each(|_| all.extend((random.value(16) as u16).to_le_bytes())),
                1 => (0..16).for_each(|_| all.extend((random.value(32) as u32).to_le_bytes())),
                _ => (0..8).for_each(|_| all.extend(random.value(64).to_le_bytes())),
            }
        }
        all.truncate(bytes);
        all
    };
    let threads = program.threads() * program.ctas();
    let warps = program.threads().div_ceil(32) * program.ctas();
    let input = vm.buffer(&fill(INPUT))?;
    let out = vm.zeros::<u8>((threads * SLOT) as usize)?;
    let columns = vm.zeros::<u8>((COLUMNS + ROWS * THREADS) as usize)?;
    let common = vm.buffer(&fill((COMMON + WARP * warps) as usize))?;
    let args = [
        Arg::buffer(&out),
        Arg::buffer(&input),
        Arg::buffer(&columns),
        Arg::buffer(&common),
        Arg::from(random.value(32) as u32),
        Arg::from(f32::from_bits(random.value(32) as u32)),
        Arg::from(random.value(64)),
    ];
    let os_threads = if program.data.is_multiple_of(4) { 2 } else { 1 };
    let mut launch = Launch::new(program.grid, program.block)
        .threads(if engine == Engine::Interp { 1 } else { os_threads })
        .engine(engine)
        .args(&kernel, &args)?;
    launch.max_steps = Some(MOST_STEPS);
    vm.launch(&kernel, &launch)?;
    Ok([out.read()?, columns.read()?, common.read()?])
}
