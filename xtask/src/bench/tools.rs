//! The cost of sanitizers: the time of each kernel under each tool, beside the time without tools.
//!
//! Both sides run on one OS thread, in turns, in native code where the tool permits it; those are marked.
//! With `--engine interp` the interpreter runs both.
//!
//! Invariant: no kernel of the benchmark has a finding.

use super::case::{Case, Size};
use super::cases;
use super::clock::median;
use super::device::Device;
use super::{Options, ROUND};
use ptxvm::{Engine, Tool};

/// The limits of the geometric means.
const LIMITS: [(Tool, f64); 4] =
    [(Tool::Memcheck, 2.0), (Tool::Initcheck, 5.0), (Tool::Synccheck, 1.5), (Tool::Racecheck, 20.0)];

/// Measures the selected kernels, and prints a table.
pub(super) fn run(options: &Options) -> Result<(), String> {
    let names = LIMITS.map(|(tool, _)| format!("{:>12}", tool.name())).join("");
    let plain = if options.interp { "interpreter" } else { "native" };
    println!("{:<16} {plain:>10} {names}   (* in native code)", "kernel");
    let mut logs = [0.0; LIMITS.len()];
    let mut count = 0;
    for (name, make) in cases::ALL.iter().filter(|(name, _)| options.wants(name)) {
        let case = make(Size::Reduced);
        let plain = device(options, &case, None)?;
        let mut line = String::new();
        let mut base = 0.0;
        for ((tool, _), log) in LIMITS.iter().zip(&mut logs) {
            let watched = device(options, &case, Some(*tool))?;
            let (mut ratios, mut native) = (Vec::new(), false);
            let rounds = options.rounds.min(5);
            for _ in 0..rounds {
                base = time(options, &plain)?.0;
                let (tooled, interpreted) = time(options, &watched)?;
                native = !interpreted;
                ratios.push(tooled / base);
                // One round of a kernel that takes long is enough.
                if tooled > 1.0 {
                    break;
                }
            }
            if watched.findings() > 0 {
                return Err(format!("{name}: {} has findings", tool.name()));
            }
            let ratio = median(ratios);
            *log += ratio.ln();
            line += &format!("{:>11.2}{}", ratio, if native { '*' } else { ' ' });
        }
        count += 1;
        println!("{name:<16} {:>7.3} ms {line}", base * 1e3);
    }
    let means = logs.map(|log| (log / f64::from(count)).exp());
    let columns = means.map(|mean| format!("{mean:>11.2} ")).concat();
    println!("{:<16} {:>10} {columns}", "geometric mean", "");
    println!("{:<16} {:>10} {}", "limit", "", LIMITS.map(|(_, limit)| format!("{limit:>11.2} ")).concat());
    Ok(())
}

fn device<'a>(options: &Options, case: &'a Case, tool: Option<Tool>) -> Result<Device<'a>, String> {
    let mut with = ptxvm::Options { target: options.cpu, team: options.team, ..ptxvm::Options::default() };
    with = tool.into_iter().fold(with, ptxvm::Options::and_tool);
    let with_engine = |engine| {
        let device = Device::with(case, with.clone(), engine, 1)?;
        // Compiles.
        device.run()?;
        Ok(device)
    };
    let device: Result<Device<'a>, ptxvm::Error> = match options.interp {
        true => with_engine(Engine::Interp),
        // A tool that needs all events refuses native code.
        false => with_engine(Engine::Jit).or_else(|_| with_engine(Engine::Interp)),
    };
    device.map_err(|error| error.to_string())
}

/// Seconds of a run, and whether most of it was interpreted.
fn time(options: &Options, device: &Device<'_>) -> Result<(f64, bool), String> {
    let once = device.run().map_err(|error| error.to_string())?.0.by(options.clock);
    let times = (ROUND.as_secs_f64() / once.max(1e-6)).ceil().clamp(1.0, 100.0) as usize;
    let (all, seen) = device.round(times).map_err(|error| error.to_string())?;
    let interpreted = seen.interpreted * 2 > seen.warp_instructions;
    Ok((median(all.iter().map(|took| took.by(options.clock)).collect()), interpreted))
}
