//! `cargo xtask bench`: compares the JIT with native code, which is C++ with OpenMP as one would write it for
//! a CPU.
//!
//! Both sides get the same arrays, and results are compared before anything is timed. Then the sides
//! alternate: in each round each side runs several times, and the ratio of the two medians is taken. The
//! median of these ratios over all rounds is printed. Load on the machine affects both sides, so ratios are
//! more reliable than times. `--clock cpu` compares CPU time of all threads instead of wall-clock time.
//!
//! Invariant: nothing here affects compilation; kernels are `bench/kernels/*.cu` through clang, by
//! `bench/kernels/build.sh`.

mod case;
mod cases;
mod clock;
mod device;
mod native;
mod overhead;
mod peers;
mod table;
mod tools;
mod zoo;

use case::{Case, Check, Size};
use clock::{Clock, Took, median};
use device::{Device, Seen};
use native::Native;
use peers::{Beside, Peers};
use ptxvm::{Cpu, Engine, Target};
use std::time::Duration;

const USAGE: &str = "usage: cargo xtask bench [--only NAME[,NAME...]] [--threads N] [--rounds N] [--cpu TARGET] [--team N] \
                     [--engine interp] [--peers] [--clock wall|cpu] [--zoo [--kept-apart] [--check]] [--tools] [--json]\n\
                     \n\
                     --team N         native code runs N warps of a CTA as one, where it can\n\
                     --engine interp  also how many times faster native code is than the interpreter, on smaller sizes\n\
                     --peers          also how many times faster native code is than OpenCL on the CPU and than `ptx_run` of another \
                     library, where they are installed\n\
                     --only overheads only what compiling and launching cost\n\
                     --zoo            kernels of many kinds that nothing was tuned for, instead of the benchmark's\n\
                     --kept-apart     with --zoo: also the quarter that is measured only at the end\n\
                     --check          with --zoo: only compares results, of both engines, on smaller sizes\n\
                     --tools          how many times slower each sanitizer makes the kernels, on smaller sizes and one OS thread; with --engine interp both sides are interpreted";

/// The least time of one side in a round.
const ROUND: Duration = Duration::from_millis(12);

/// The options.
pub(crate) struct Options {
    only: Vec<String>,
    threads: u32,
    rounds: usize,
    cpu: Option<Target>,
    team: Option<u32>,
    interp: bool,
    peers: bool,
    clock: Clock,
    json: bool,
    zoo: bool,
    kept_apart: bool,
    check: bool,
    tools: bool,
}

impl Options {
    fn read(args: &[String]) -> Result<Self, String> {
        let mut options = Self {
            only: Vec::new(),
            threads: 2,
            rounds: 7,
            cpu: None,
            team: None,
            interp: false,
            peers: false,
            clock: Clock::Wall,
            json: false,
            zoo: false,
            kept_apart: false,
            check: false,
            tools: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or(format!("`{arg}` needs a value\n{USAGE}"));
            match arg.as_str() {
                "--only" => options.only.extend(value()?.split(',').map(str::to_owned)),
                "--threads" => options.threads = number(value()?)?,
                "--rounds" => options.rounds = number(value()?)?.max(1) as usize,
                "--team" => options.team = Some(number(value()?)?),
                "--json" => options.json = true,
                "--peers" => options.peers = true,
                "--zoo" => options.zoo = true,
                "--kept-apart" => options.kept_apart = true,
                "--check" => options.check = true,
                "--tools" => options.tools = true,
                "--engine" if value()? == "interp" => options.interp = true,
                "--clock" => match value()?.as_str() {
                    "wall" => options.clock = Clock::Wall,
                    "cpu" => options.clock = Clock::Cpu,
                    _ => return Err(USAGE.to_owned()),
                },
                "--cpu" => {
                    options.cpu = Some(match value()?.as_str() {
                        "avx512" => Cpu::Avx512.into(),
                        "avx2" => Cpu::Avx2.into(),
                        "baseline" => Cpu::Baseline.into(),
                        target => target.parse().map_err(|error: ptxvm::Error| error.to_string())?,
                    });
                }
                _ => return Err(USAGE.to_owned()),
            }
        }
        if !options.zoo && (options.kept_apart || options.check) {
            return Err(format!("`--kept-apart` and `--check` need `--zoo`\n{USAGE}"));
        }
        if options.zoo && (options.peers || options.interp) {
            return Err(format!("`--zoo` has no `--peers` and no `--engine`\n{USAGE}"));
        }
        let names: Vec<&str> = match options.zoo {
            true => zoo::rows().map(|(_, row)| row.name).collect(),
            false => cases::ALL.iter().map(|(name, _)| *name).chain(["overheads"]).collect(),
        };
        if let Some(unknown) = options.only.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(format!("no benchmark `{unknown}`; there are {}", names.join(", ")));
        }
        Ok(options)
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|n| n == name)
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

/// The measurements of a case.
pub(crate) struct Row {
    name: &'static str,
    what: String,
    target: Option<f64>,
    /// Seconds of the fastest native version.
    native: f64,
    /// Seconds of native code from PTX.
    jit: f64,
    ratio: f64,
    /// The ratio by the other clock.
    other_ratio: f64,
    seen: Seen,
    compiled: Duration,
    /// The ratio of the interpreter's time to that of native code.
    over_interp: Option<f64>,
    beside: Vec<Beside>,
}

/// The kernels that the cases launch: file, name, and CTA shape.
pub(crate) fn launched_kernels() -> Vec<(&'static str, &'static str, [u32; 3])> {
    let kernels = |make: &dyn Fn(Size) -> Case| {
        let Case { ptx, steps, .. } = make(Size::Reduced);
        steps.into_iter().map(move |step| (ptx, step.kernel, step.block)).collect::<Vec<_>>()
    };
    cases::ALL.iter().flat_map(|(_, make)| kernels(make)).collect()
}

/// Runs the cases that `args` selects, and prints the results.
pub(crate) fn bench(args: &[String]) -> Result<(), String> {
    let options = Options::read(args)?;
    if cfg!(debug_assertions) {
        eprintln!(
            "note: ptxvm was built without full optimisation; use `cargo run --release -p xtask -- bench`"
        );
    }
    if options.tools {
        return tools::run(&options);
    }
    let program = native::build()?;
    let mut native = Native::start(&program, options.threads)?;
    if options.zoo {
        return zoo::run(&options, &mut native);
    }
    let mut peers = if options.peers { Peers::start(options.threads) } else { Peers::none() };
    let mut rows = Vec::new();
    table::head(&options);
    for (name, make) in cases::ALL.iter().filter(|(name, _)| options.wants(name)) {
        let case = make(Size::Full);
        let mut row = row(&options, &case, &mut native, &mut peers).map_err(|e| format!("{name}: {e}"))?;
        if options.interp {
            let reduced = make(Size::Reduced);
            row.over_interp = Some(over_interp(&options, &reduced).map_err(|e| format!("{name}: {e}"))?);
        }
        table::row(&options, &row);
        rows.push(row);
    }
    let overheads = if options.wants("overheads") {
        overhead::all(&options).map_err(|e| e.to_string())?
    } else {
        Vec::new()
    };
    table::end(&options, &rows, &overheads);
    Ok(())
}

fn row(options: &Options, case: &Case, native: &mut Native, peers: &mut Peers) -> Result<Row, String> {
    native.open(case)?;
    let device = Device::new(case, (options.cpu, options.team), Engine::Jit, options.threads)
        .map_err(|e| e.to_string())?;
    let (_, first) = device.run().map_err(|e| e.to_string())?;
    let way = agree(case, &device, native)?;
    let opened = peers.open(case, &device);
    let mut seen = Seen::default();
    let mut jit = |times: usize| -> Result<Vec<Took>, String> {
        let (all, last) = device.round(times).map_err(|e| e.to_string())?;
        seen = last;
        Ok(all)
    };
    let times =
        |took: Took| (ROUND.as_secs_f64() / took.wall.as_secs_f64().max(1e-6)).ceil().min(500.0) as usize;
    let once = jit(1)?[0];
    let (jit_times, native_times) = (times(once), times(native.run(way, 2)?[1]));
    // Long runs are measured well enough with fewer rounds.
    let rounds = if once.wall.as_secs_f64() > 0.3 { options.rounds.min(3) } else { options.rounds };
    let mut rounds_native = Vec::new();
    let mut rounds_jit = Vec::new();
    for _ in 0..rounds {
        rounds_native.push(native.run(way, native_times)?);
        rounds_jit.push(jit(jit_times)?);
    }
    let beside = peers.run(opened, rounds, options.clock);
    let medians = |rounds: &[Vec<Took>], clock: Clock| -> Vec<f64> {
        rounds.iter().map(|round| median(round.iter().map(|took| took.by(clock)).collect())).collect()
    };
    let ratio = |clock: Clock| {
        let (jit, native) = (medians(&rounds_jit, clock), medians(&rounds_native, clock));
        median(jit.iter().zip(&native).map(|(jit, native)| jit / native).collect())
    };
    let other = if options.clock == Clock::Wall { Clock::Cpu } else { Clock::Wall };
    Ok(Row {
        name: case.name,
        what: case.what.clone(),
        target: case.target,
        native: median(medians(&rounds_native, options.clock)),
        jit: median(medians(&rounds_jit, options.clock)),
        ratio: ratio(options.clock),
        other_ratio: ratio(other),
        seen,
        compiled: first.compiled,
        over_interp: None,
        beside,
    })
}

/// Runs every native version, compares its results with those of the first run on the device, and returns the
/// fastest version.
fn agree(case: &Case, device: &Device<'_>, native: &mut Native) -> Result<usize, String> {
    let mut fastest = (f64::INFINITY, 0);
    compare(case, device, native, |native, way| {
        let times = native.run(way, 5)?;
        let time = median(times.iter().map(|took| took.by(Clock::Wall)).collect());
        if time < fastest.0 {
            fastest = (time, way);
        }
        Ok(())
    })?;
    Ok(fastest.1)
}

/// Compares the results of every native version with those of the first run on the device. Each version is
/// passed on while it is open.
fn compare(
    case: &Case,
    device: &Device<'_>,
    native: &mut Native,
    mut then: impl FnMut(&mut Native, usize) -> Result<(), String>,
) -> Result<(), String> {
    let compared: Vec<usize> = (0..device.arrays().len())
        .filter(|index| !matches!(device.arrays()[*index].check, Check::No))
        .collect();
    if compared.is_empty() {
        return Err("no array is compared".to_owned());
    }
    let got: Vec<Vec<u8>> = compared
        .iter()
        .map(|index| device.array(*index))
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    native.open(case)?;
    for way in 0..native.ways() {
        native.open(case)?;
        native.run(way, 1)?;
        for (index, got) in compared.iter().zip(&got) {
            case.compare(*index, got, &native.array(*index, got.len())?)?;
        }
        then(native, way)?;
    }
    Ok(())
}

/// The ratio of the interpreter's time to that of native code.
fn over_interp(options: &Options, case: &Case) -> Result<f64, ptxvm::Error> {
    let time = |engine| -> Result<f64, ptxvm::Error> {
        let device = Device::new(case, (options.cpu, options.team), engine, options.threads)?;
        device.run()?;
        let mut times = Vec::new();
        for _ in 0..3 {
            times.push(device.run()?.0.by(options.clock));
        }
        Ok(median(times))
    };
    Ok(time(Engine::Interp)? / time(Engine::Jit)?)
}
