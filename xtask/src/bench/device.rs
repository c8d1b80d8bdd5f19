//! A case in ptxvm.
//!
//! Invariant: before the first run, arrays have the contents of the case; `restore`d arrays before each run.

use super::case::{Array, Case, Value};
use super::clock::{self, Took};
use ptxvm::{Arg, Buffer, Engine, Launch, Ran, Target, Vm};
use std::time::Duration;

/// After this time without a launch, all helper threads sleep. The system reports their CPU time only then.
const SETTLED: Duration = Duration::from_micros(300);

/// A case, loaded.
pub(crate) struct Device<'a> {
    vm: Vm,
    case: &'a Case,
    buffers: Vec<Buffer<u8>>,
    launches: Vec<(ptxvm::Kernel, Launch)>,
}

/// Measurements of runs besides their times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Compile time of all kernels, if a run compiled.
    pub(crate) compiled: Duration,
    /// Instructions that threads executed.
    pub(crate) thread_instructions: u64,
    /// Warp instructions that the interpreter executed, by itself or for native code.
    pub(crate) interpreted: u64,
    /// Warp instructions.
    pub(crate) warp_instructions: u64,
    /// Instructions without native code.
    pub(crate) fallbacks: Vec<(String, u32)>,
}

impl<'a> Device<'a> {
    /// Loads the kernels and the arrays.
    pub(crate) fn new(
        case: &'a Case,
        (target, team): (Option<Target>, Option<u32>),
        engine: Engine,
        threads: u32,
    ) -> Result<Self, ptxvm::Error> {
        Self::with(case, ptxvm::Options { target, team, ..ptxvm::Options::default() }, engine, threads)
    }

    /// The same, on a virtual machine with these options.
    pub(crate) fn with(
        case: &'a Case,
        options: ptxvm::Options,
        engine: Engine,
        threads: u32,
    ) -> Result<Self, ptxvm::Error> {
        let vm = Vm::with(options)?;
        let text = text(case.ptx).map_err(ptxvm::Error::caller)?;
        let module = vm.load(&format!("{}.ptx", case.file()), &text)?;
        let buffers: Vec<Buffer<u8>> =
            case.arrays.iter().map(|array| vm.buffer(&array.bytes)).collect::<Result<_, _>>()?;
        let mut launches = Vec::new();
        for step in &case.steps {
            let kernel = module.kernel(step.kernel)?;
            let args: Vec<Arg<'_>> = step
                .args
                .iter()
                .map(|value| match value {
                    Value::Array(index) => Arg::buffer(&buffers[*index]),
                    Value::S32(value) => Arg::from(*value),
                    Value::F32(value) => Arg::from(*value),
                })
                .collect();
            let launch =
                Launch::new(step.grid, step.block).threads(threads).engine(engine).args(&kernel, &args)?;
            launches.push((kernel, launch));
        }
        Ok(Self { vm, case, buffers, launches })
    }

    /// One run: all launches of the case.
    pub(crate) fn run(&self) -> Result<(Took, Seen), ptxvm::Error> {
        let (mut took, seen) = self.round(1)?;
        Ok((took.pop().unwrap_or_default(), seen))
    }

    /// Runs the case several times in sequence. Each run is assigned an equal share of their CPU time,
    /// including that of threads that spun for work after the last run.
    pub(crate) fn round(&self, times: usize) -> Result<(Vec<Took>, Seen), ptxvm::Error> {
        let mut all = Vec::new();
        let mut seen = Seen::default();
        let (before, mut restoring) = (clock::cpu(), Duration::ZERO);
        for _ in 0..times {
            let restored = clock::cpu_of_this_thread();
            self.restore()?;
            restoring += clock::cpu_of_this_thread().saturating_sub(restored);
            let (wall, this) = clock::wall(|| self.launch());
            all.push(wall);
            seen = this?;
        }
        std::thread::sleep(SETTLED);
        let cpu = clock::cpu().saturating_sub(before).saturating_sub(restoring) / times.max(1) as u32;
        Ok((all.into_iter().map(|wall| Took { wall, cpu }).collect(), seen))
    }

    /// Restores the arrays that each run must begin with.
    fn restore(&self) -> Result<(), ptxvm::Error> {
        for (array, buffer) in self.case.arrays.iter().zip(&self.buffers) {
            if array.restore {
                buffer.write(&array.bytes)?;
            }
        }
        Ok(())
    }

    fn launch(&self) -> Result<Seen, ptxvm::Error> {
        let mut seen = Seen::default();
        for (kernel, launch) in &self.launches {
            let report = self.vm.launch(kernel, launch)?;
            let Ran { compiled, native_instructions, fallback_instructions, fallbacks, .. } = *report.ran;
            seen.compiled += compiled;
            seen.thread_instructions += report.thread_instructions;
            seen.warp_instructions += report.warp_instructions;
            seen.interpreted += report.warp_instructions - native_instructions + fallback_instructions;
            seen.fallbacks.extend(fallbacks);
        }
        Ok(seen)
    }

    /// The findings of its sanitizers.
    pub(crate) fn findings(&self) -> usize {
        self.vm.findings().len()
    }

    /// The content of an array.
    pub(crate) fn array(&self, index: usize) -> Result<Vec<u8>, ptxvm::Error> {
        self.buffers[index].read()
    }

    /// The arrays of the case.
    pub(crate) fn arrays(&self) -> &[Array] {
        &self.case.arrays
    }
}

/// The PTX of a benchmark, by its path in `xtask/bench`.
pub(crate) fn text(path: &str) -> Result<String, String> {
    let path = crate::root().join("xtask/bench").join(format!("{path}.ptx"));
    std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
}
