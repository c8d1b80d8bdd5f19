//! `cargo xtask agree`: random programs, in the interpreter and in native code, compared bit for bit.
//!
//! Programs come from seeds ([`generate`]). They contain instructions from every row of the table that acts
//! on registers, with all types and modifiers; chains of integers of few bits ([`narrow`]); loads, stores and
//! atomics of all widths in all state spaces; branches, loops, switches, irreducible graphs, calls, barriers
//! and warp operations; odd CTA shapes, several CTAs; and edge values. Besides general programs there are
//! four special kinds. One kind can run as coarse warps, with shared tiles, stores to one address and many
//! barriers ([`tiles`]), some in loops of so many iterations that native code yields. In another kind, groups
//! of one warp wait for each other at different places, with calls and interpreter steps in between
//! ([`apart`]). In the third, threads are alone in CTAs of several rows, so that neighbouring CTAs can
//! execute as one; in the fourth, these threads are points of a picture ([`pictures`]). Native code runs
//! whole CTAs, with or without coarse warps, or, for every eighth program, warp by warp. Some programs read
//! clocks, which count executed instructions; `%globaltimer` is excluded, because it depends on earlier
//! launches. A program whose results differ is reduced ([`reduce`]) and written to `target/agree`. Programs
//! that were found in this way are kept in `tests/agree`, and every test run compares them again.
//!
//! With `--traps` each program contains statements that trap ([`misdeed`]), and the engines' reports are
//! compared: kind, line, function, CTA, thread, and access.
//!
//! With `--tools` each program runs under all sanitizers instead, and their findings are judged ([`tools`]).
//!
//! Not generated: loops and functions that read values which others write (ordered loads, atomics other than
//! sums of integers, sums with zero), because each engine decides when their lanes yield; textures and
//! surfaces, asynchronous copies, clusters, matrices beyond one form.
//!
//! Invariant: a program does not depend on the schedule, so any difference is a bug of an engine or of the
//! generator.

mod apart;
mod ends;
mod forms;
mod generate;
mod memory;
mod misdeed;
mod narrow;
mod pictures;
mod program;
mod random;
mod reduce;
mod run;
mod taste;
mod tiles;
mod tools;
mod warp;

use program::Program;
use ptxvm::Cpu;
use run::{Machines, Outcome};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: cargo xtask agree [--seed N] [--count N] [--seconds N] [--threads N] [--cpu avx512|avx2|baseline]... [--unoptimised] [--every] [--schedules] [--traps] [--tools] [--print] [--keep-going] [FILE...]\n\
                     \n\
                     Without FILEs: programs of the seeds from N on; the processors that this machine can be take turns,\n\
                     the widest most often, or run --every program. --schedules: other schedules in the interpreter too.\n\
                     --traps: programs that do something illegal; the traps are compared. --print shows programs only.\n\
                     --tools: under all sanitizers, in the interpreter; findings that are not real are named.\n\
                     --unoptimised: LLVM optimises no code, so that more programs run in a time, and its level 0 is tested.\n\
                     --threads: as many programs at a time (all cores, if not said); no result depends on it.";
/// How many programs share devices before new devices are made.
const SHARED: u64 = 500;
/// Interval of progress messages.
const PROGRESS: Duration = Duration::from_secs(60);

struct Options {
    seed: u64,
    count: u64,
    time: Option<Duration>,
    cpus: Vec<Cpu>,
    /// LLVM optimises the code of programs.
    optimised: bool,
    /// Run each program for every processor, instead of one processor per program.
    every: bool,
    /// Run each program in the interpreter with several schedules.
    schedules: bool,
    /// Generate programs that trap.
    traps: bool,
    /// Programs under the sanitizers.
    tools: bool,
    print: bool,
    keep_going: bool,
    threads: usize,
    files: Vec<String>,
}

fn read(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        seed: 1,
        count: 1000,
        time: None,
        cpus: Vec::new(),
        optimised: true,
        every: false,
        schedules: false,
        traps: false,
        tools: false,
        print: false,
        keep_going: false,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        files: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse::<u64>().ok()).ok_or(USAGE);
        match arg.as_str() {
            "--seed" => options.seed = number()?,
            "--count" => options.count = number()?,
            "--seconds" => options.time = Some(Duration::from_secs(number()?)),
            "--threads" => options.threads = (number()? as usize).max(1),
            "--unoptimised" => options.optimised = false,
            "--every" => options.every = true,
            "--schedules" => options.schedules = true,
            "--traps" => options.traps = true,
            "--tools" => options.tools = true,
            "--print" => options.print = true,
            "--keep-going" => options.keep_going = true,
            "--cpu" => options.cpus.push(match args.next().map(String::as_str) {
                Some("avx512") => Cpu::Avx512,
                Some("avx2") => Cpu::Avx2,
                Some("baseline") => Cpu::Baseline,
                _ => return Err(USAGE.to_owned()),
            }),
            file if !file.starts_with('-') => options.files.push(file.to_owned()),
            _ => return Err(USAGE.to_owned()),
        }
    }
    if options.cpus.is_empty() {
        options.cpus = available();
    }
    Ok(options)
}

/// The processors whose native code this machine can run.
fn available() -> Vec<Cpu> {
    let probe = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry main() { ret; }";
    let runs = |cpu: &Cpu| {
        let vm = ptxvm::Vm::with_cpu(ptxvm::AddressSize::Bits64, Some(*cpu))?;
        let kernel = vm.load("probe.ptx", probe)?.kernel("main")?;
        vm.launch(&kernel, &ptxvm::Launch::new([1, 1, 1], [1, 1, 1]).engine(ptxvm::Engine::Jit))
    };
    [Cpu::Avx512, Cpu::Avx2, Cpu::Baseline].into_iter().filter(|cpu| runs(cpu).is_ok()).collect()
}

/// Counts of results.
#[derive(Default)]
struct Counts {
    same: u64,
    /// Both engines report the same trap.
    trapped: u64,
    /// Seed and description of each difference.
    bad: Vec<(u64, String)>,
}

impl Counts {
    fn all(&self) -> u64 {
        self.same + self.trapped + self.bad.len() as u64
    }
}

/// Runs programs of many seeds on several threads.
struct Run<'a> {
    options: &'a Options,
    levels: &'a [forms::Forms],
    began: Instant,
    /// The next seed, counted from the first.
    next: AtomicU64,
    stop: AtomicBool,
    counts: Mutex<(Counts, Instant)>,
}

impl Run<'_> {
    /// Processes one seed after another.
    fn work(&self) -> Result<(), String> {
        let options = self.options;
        let fresh = || Machines::new(&options.cpus, options.optimised).map_err(|e| e.to_string());
        let mut machines = fresh()?;
        let mut done = 0;
        loop {
            let late = options.time.is_some_and(|time| self.began.elapsed() > time);
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if late || index >= options.count || self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            done += 1;
            if done % SHARED == 0 {
                machines = fresh()?;
            }
            self.one(options.seed + index, &machines)?;
        }
    }

    fn one(&self, seed: u64, machines: &Machines) -> Result<(), String> {
        let program = generate::program(self.levels, seed, self.options.traps);
        let turn = if self.options.every { None } else { Some(machines.turn(&program)) };
        let outcome = machines.run(&program, turn);
        let bad = match outcome {
            Outcome::Same if self.options.schedules && !machines.is_settled(&program) => {
                Some("depends on the schedule".to_owned())
            }
            Outcome::Trapped(ref why) if !self.options.traps => Some(format!("traps: {why}")),
            Outcome::Endless => Some("does not end".to_owned()),
            Outcome::Same | Outcome::Trapped(_) => None,
            Outcome::Refused(ref why) => Some(why.clone()),
            Outcome::Differs(cpu, ref why) => Some(smaller(self.options, seed, cpu, why, program)?),
        };
        let mut guard = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let (counts, shown) = &mut *guard;
        match (outcome, bad) {
            (_, Some(bad)) => {
                counts.bad.push((seed, bad));
                self.stop.fetch_or(!self.options.keep_going, Ordering::Relaxed);
            }
            (Outcome::Trapped(_), _) => counts.trapped += 1,
            _ => counts.same += 1,
        }
        if shown.elapsed() > PROGRESS {
            *shown = Instant::now();
            let (all, time) = (counts.all(), self.began.elapsed().as_secs_f64());
            let (rate, bad) = (all as f64 / time, counts.bad.len());
            eprintln!(
                "{all} of {} programs in {time:.0} s, {rate:.1} a second; {bad} differ; at seed {seed}",
                self.options.count
            );
        }
        Ok(())
    }
}

/// Reduces a program whose results differ, and writes it.
fn smaller(options: &Options, seed: u64, cpu: Cpu, why: &str, program: Program) -> Result<String, String> {
    let name = format!("{cpu:?}").to_lowercase();
    eprintln!("seed {seed}: {name}: {why}");
    let machines = Machines::new(&[cpu], options.optimised).map_err(|e| e.to_string())?;
    let small = reduce::reduce(&machines, program);
    let path = crate::root().join("target/agree").join(format!("seed-{seed}-{name}.ptx"));
    let write = || {
        std::fs::create_dir_all(crate::root().join("target/agree"))?;
        std::fs::write(&path, small.text())
    };
    write().map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(format!("{name}: {why}; smaller: {}", path.display()))
}

/// The subcommand.
pub(crate) fn agree(args: &[String]) -> Result<(), String> {
    let options = read(args)?;
    if !options.files.is_empty() {
        return files(&options);
    }
    let levels = generate::levels();
    if options.tools {
        return under_tools(&options, levels);
    }
    if options.print {
        for seed in options.seed..options.seed + options.count {
            print!("{}", generate::program(levels, seed, options.traps).text());
        }
        return Ok(());
    }
    // A panic is a finding; only its message is printed.
    std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
    let run = Run {
        options: &options,
        levels,
        began: Instant::now(),
        next: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        counts: Mutex::new((Counts::default(), Instant::now())),
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads).map(|_| scope.spawn(|| run.work())).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())))
    })?;
    let Run { counts, began, .. } = run;
    let mut counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner).0;
    counts.bad.sort();
    let (all, time) = (counts.all(), began.elapsed().as_secs_f64());
    println!(
        "{all} programs from seed {} in {time:.0} s ({:.1} a second): {} agree on {:?}, {} of them on a trap, {} differ or were refused",
        options.seed,
        all as f64 / time,
        counts.same + counts.trapped,
        options.cpus,
        counts.trapped,
        counts.bad.len()
    );
    let lines: Vec<String> = counts.bad.iter().map(|(seed, why)| format!("seed {seed}: {why}")).collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}

/// Runs programs under the sanitizers.
fn under_tools(options: &Options, levels: &[forms::Forms]) -> Result<(), String> {
    let (mut counts, mut bad) = ([0; 3], Vec::new());
    let began = Instant::now();
    for seed in options.seed..options.seed + options.count {
        if options.time.is_some_and(|time| began.elapsed() > time) || !bad.is_empty() && !options.keep_going {
            break;
        }
        match tools::judge(&generate::program(levels, seed, false)) {
            Ok(judged) => counts[judged as usize] += 1,
            Err(why) => bad.push(format!("seed {seed}: {why}")),
        }
    }
    let [clean, confirmed, unconfirmed] = counts;
    println!(
        "{} programs from seed {} under all tools in {:.0} s: {clean} are clean and do not depend on memory that nothing wrote, {confirmed} are found to and do, \
         {unconfirmed} are found to without a change of results, {} have wrong findings",
        counts.iter().sum::<usize>() + bad.len(),
        options.seed,
        began.elapsed().as_secs_f64(),
        bad.len()
    );
    if bad.is_empty() { Ok(()) } else { Err(bad.join("\n")) }
}

/// The texts of the random programs of the first seeds, without traps.
pub(crate) fn random_texts(count: u64) -> Vec<String> {
    let levels = generate::levels();
    (0..count).map(|seed| generate::program(levels, seed, false).text()).collect()
}

/// The CTA shape for a text of [`random_texts`] or of `tests/agree`.
pub(crate) fn block_of(text: &str) -> Option<[u32; 3]> {
    Program::read(text).map(|program| program.block)
}

/// Compares programs from files.
fn files(options: &Options) -> Result<(), String> {
    let mut bad = Vec::new();
    for file in &options.files {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
        let program = Program::read(&text).ok_or_else(|| format!("{file}: no line `// agree: ...`"))?;
        if options.tools {
            match tools::judge(&program) {
                Ok(judged) => println!("{file}: {judged:?}"),
                Err(why) => bad.push(format!("{file}: {why}")),
            }
            continue;
        }
        let machines = Machines::new(&options.cpus, options.optimised).map_err(|e| e.to_string())?;
        let outcome = machines.run(&program, None);
        println!("{file}: {outcome:?}");
        if let Outcome::Differs(cpu, _) = outcome
            && options.keep_going
        {
            print!("{}", reduce::reduce(&machines.only(cpu), program).text());
        }
        if !matches!(outcome, Outcome::Same | Outcome::Trapped(_)) {
            bad.push(file.clone());
        }
    }
    if bad.is_empty() { Ok(()) } else { Err(bad.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Whether all combinations are tested.
    fn is_full() -> bool {
        std::env::var("PTXVM_TESTS").as_deref() == Ok("full")
    }

    /// LLVM optimises their code only where all is tested.
    fn machines(cpus: &[Cpu]) -> Machines {
        Machines::new(cpus, is_full()).expect("devices can be made")
    }

    #[test]
    fn random_programs_agree() {
        let (levels, cpus) = (generate::levels(), available());
        assert!(!cpus.is_empty(), "native code can be made for this machine");
        let machines = machines(&cpus);
        for seed in 0..60 {
            let program = generate::program(levels, seed, false);
            let outcome = machines.run(&program, Some(machines.turn(&program)));
            assert!(matches!(outcome, Outcome::Same), "seed {seed}: {outcome:?}\n{}", program.text());
        }
    }

    #[test]
    fn findings_in_random_programs_are_real() {
        let levels = generate::levels();
        let mut confirmed = 0;
        for seed in 1..40 {
            match tools::judge(&generate::program(levels, seed, false)) {
                Ok(judged) => confirmed += u32::from(judged == tools::Judged::Confirmed),
                Err(why) => panic!("seed {seed}: {why}"),
            }
        }
        assert!(confirmed > 4, "some programs read what nothing wrote, not only {confirmed}");
    }

    #[test]
    fn traps_of_random_programs_agree() {
        let (levels, cpus) = (generate::levels(), available());
        let machines = machines(&cpus);
        let mut trapped = 0;
        for seed in 0..40 {
            let program = generate::program(levels, seed, true);
            match machines.run(&program, Some(machines.turn(&program))) {
                Outcome::Same => {}
                Outcome::Trapped(_) => trapped += 1,
                outcome => panic!("seed {seed}: {outcome:?}\n{}", program.text()),
            }
        }
        assert!(trapped >= 20, "most programs trap, not only {trapped} of 40");
    }

    /// The programs of `tests/agree`, and whether each traps, as a line of its text says.
    fn kept() -> Vec<(PathBuf, Program, bool)> {
        let folder = crate::root().join("tests/agree");
        let entries = std::fs::read_dir(&folder).expect("the folder is part of the project");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("its entries can be read").path()).collect();
        paths.sort();
        let programs =
            paths.into_iter().filter(|path| path.extension().is_some_and(|e| e == "ptx")).map(|path| {
                let text = std::fs::read_to_string(&path).expect("a text");
                let traps = text.lines().any(|line| line.starts_with("// Traps:"));
                (path, Program::read(&text).expect("its launch stands in it"), traps)
            });
        let programs: Vec<_> = programs.collect();
        assert!(!programs.is_empty());
        programs
    }

    /// On the best processor that this machine can be, with each choice of coarse warps; every ninth program
    /// also on one of the others in turn, with the compiler's choice. On all of them if `PTXVM_TESTS` is
    /// `full`: compilation for narrow vectors takes most of the time of a run on all.
    #[test]
    fn what_differed_once_agrees_and_has_no_race() {
        let programs = kept();
        let cpus = available();
        let full = is_full();
        let next = AtomicUsize::new(0);
        let work = || {
            let machines = machines(&cpus);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some((path, program, traps)) = programs.get(number) else { break };
                tools::races(program).unwrap_or_else(|races| panic!("{}: {races}", path.display()));
                let (best, others) = cpus.split_first().expect("one processor at least");
                let turn = number.is_multiple_of(9).then_some(number / 9 % others.len().max(1));
                let other = turn.and_then(|turn| others.get(turn));
                let outcome = machines.run_where(program, |_, cpu, team| {
                    full || cpu == *best || Some(&cpu) == other && team.is_none()
                });
                let as_said = if *traps {
                    matches!(outcome, Outcome::Trapped(_))
                } else {
                    matches!(outcome, Outcome::Same)
                };
                assert!(as_said, "{}: {outcome:?}", path.display());
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    }

    #[test]
    fn a_program_is_read_as_it_was_written() {
        let program = generate::program(generate::levels(), 3, false);
        let read = Program::read(&program.text()).expect("its launch stands in it");
        assert_eq!(read.text(), program.text());
        assert_eq!((read.grid, read.block, read.data), (program.grid, program.block, program.data));
    }
}
