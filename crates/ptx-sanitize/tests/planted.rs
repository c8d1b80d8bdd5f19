//! Planted errors and their corrected twins: `tests/sanitize/race` and `tests/sanitize/sync` (`README.md`
//! there describes the format).
//!
//! Each planted error must be found with its kind at its lines, and nothing else; each twin must have no
//! finding by either tool, in several schedules.

use ptx::check::module::AddressSize;
use ptx::check::{CheckOptions, check};
use ptx_exec::launch::{Kernel, LaunchConfig, LoadedModule};
use ptx_exec::mem::{Class, Memory};
use ptx_sanitize::{Finding, Options, Sanitizer, Tool};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Schedules that are tried.
const SEEDS: [u64; 4] = [0, 1, 2, 3];

/// A file.
struct Pair {
    name: String,
    planted: String,
    twin: String,
    grid: u32,
    block: u32,
    /// Kind, and for races what is missing where the file says so.
    kind: String,
    missing: Option<String>,
    /// Whether one of the marked lines is enough.
    any: bool,
    /// Lines of the error.
    lines: BTreeSet<u32>,
}

fn pairs(folder: &str) -> Vec<Pair> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sanitize")).join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    paths.sort();
    paths.iter().map(|path| pair(path)).collect()
}

fn pair(path: &std::path::Path) -> Pair {
    let planted = std::fs::read_to_string(path).expect("a readable file");
    let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
    let header = |key: &str| -> Vec<String> {
        let line = planted.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_else(|| panic!("{name}: no `{key}`")).split_whitespace().map(str::to_owned).collect()
    };
    let (launch, expect) = (header("// launch:"), header("// expect:"));
    let mended = |line: &str| match line.strip_prefix("//+") {
        Some(added) => added.to_owned(),
        None if line.ends_with("//-") => String::new(),
        None => line.to_owned(),
    };
    let twin = planted.lines().map(|line| mended(line) + "\n").collect();
    let marked = planted.lines().enumerate().filter(|(_, line)| line.contains("//!"));
    let lines = marked.map(|(at, _)| at as u32 + 1).collect();
    Pair {
        twin,
        grid: launch[0].parse().expect("a number of CTAs"),
        block: launch[1].parse().expect("a number of threads"),
        kind: expect[0].clone(),
        missing: expect.get(1).filter(|word| *word != "any").cloned(),
        any: expect.iter().any(|word| word == "any"),
        lines,
        name,
        planted,
    }
}

/// What tools find in a text with one kernel, whose parameter is the address of 4096 zero bytes.
fn run(name: &str, text: &str, (grid, block): (u32, u32), tools: &[Tool], seed: u64) -> Vec<Finding> {
    let checked = check(name, text, &CheckOptions::default());
    let Some(module) = checked.module else { panic!("{name}: {:#?}\n{text}", checked.diagnostics) };
    let memory = Memory::new(AddressSize::Bits64).expect("the system reserves addresses");
    let sanitizer = Sanitizer::new(Options::new(tools));
    memory.watch(sanitizer.watch());
    let module = LoadedModule::load(&memory, Arc::new(ptx::ir::lower(module))).expect("it loads");
    let (id, _) = module.kernels().next().expect("there is one kernel");
    let kernel = Kernel::bind(&module, id).unwrap_or_else(|missing| panic!("{name}: {missing}"));
    let out = memory.alloc(Class::Global, 4096, 256, "out").expect("room for a small buffer");
    memory.write(out, &[0; 4096]).expect("inside the buffer");
    let config = LaunchConfig {
        params: out.to_le_bytes().to_vec(),
        seed,
        timeout: Some(Duration::from_secs(20)),
        ..LaunchConfig::new([grid, 1, 1], [block, 1, 1])
    };
    if let Err(error) = kernel.launch(&config) {
        panic!("{name}, seed {seed}: {error}\n{text}");
    }
    sanitizer.findings()
}

fn lines_of(finding: &Finding) -> BTreeSet<u32> {
    let other = finding.other.as_ref().and_then(|other| other.line);
    finding.line.into_iter().chain(other).collect()
}

/// The difference between the findings and the expected ones, if there is one.
fn judge(pair: &Pair, tool: Tool) -> Result<(), String> {
    let mut named = BTreeSet::new();
    for seed in SEEDS {
        for finding in run(&pair.name, &pair.planted, (pair.grid, pair.block), &[tool], seed) {
            let lines = lines_of(&finding);
            let fits = finding.kind.name() == pair.kind
                && pair.missing.as_deref().is_none_or(|missing| finding.missing == Some(missing))
                && lines.is_subset(&pair.lines);
            if !fits {
                return Err(format!("seed {seed}: found {finding:#?}"));
            }
            named.extend(lines);
        }
    }
    let enough = if pair.any { !named.is_empty() } else { named == pair.lines };
    if !enough {
        return Err(format!("lines {named:?} were found, not {:?}", pair.lines));
    }
    for seed in SEEDS {
        let tools = [Tool::Racecheck, Tool::Synccheck];
        let found = run(&pair.name, &pair.twin, (pair.grid, pair.block), &tools, seed);
        if !found.is_empty() {
            return Err(format!("the twin, seed {seed}: found {found:#?}"));
        }
    }
    Ok(())
}

fn all(folder: &str, tool: Tool, least: usize) {
    let pairs = pairs(folder);
    let only = std::env::var("PLANTED").ok();
    let chosen = |pair: &&Pair| only.as_ref().is_none_or(|name| *name == pair.name);
    let wrong: Vec<String> = pairs
        .iter()
        .filter(chosen)
        .filter_map(|pair| judge(pair, tool).err().map(|why| format!("{}: {why}", pair.name)))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), pairs.len(), wrong.join("\n"));
    assert!(pairs.len() >= least, "only {} files", pairs.len());
}

#[test]
fn planted_races_are_found_and_their_twins_are_clean() {
    all("race", Tool::Racecheck, 55);
}

#[test]
fn planted_misuses_of_barriers_are_found_and_their_twins_are_clean() {
    all("sync", Tool::Synccheck, 27);
}
