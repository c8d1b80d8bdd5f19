//! Runs every case of `tests/fixtures/cases`: a launch as data, with results computed by numpy or an expected
//! trap.
//!
//! Each case runs on its main PTX and on its variants (-O0, -g, ...), with several numbers of OS threads and
//! schedule seeds, in the interpreter and in native code for each kind of processor. Results must not depend
//! on these. Unless `PTXVM_TESTS` is `full`, some combinations are omitted; every case still runs in both
//! engines, every variant in the interpreter, and one variant of every fourth text in native code.

#[path = "support/levels.rs"]
mod levels;

use libtest_mimic::{Arguments, Failed, Trial};
use ptxvm::{Buffer, Cpu, Engine, ErrorKind, Launch, Options, Target, Tool, Vm};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How a case is launched: OS threads, schedule seed, engine.
type Schedule = (u32, u64, On);

/// What executes it.
#[derive(Clone, Copy, Debug)]
enum On {
    Interp,
    /// The interpreter, under racecheck and synccheck, which must find nothing.
    Watched,
    /// Native code for the best processor that this machine is.
    #[cfg(feature = "jit")]
    Jit,
    /// Native code for a lesser one, or the same.
    #[cfg(feature = "jit")]
    JitFor(Cpu),
    /// Native code with several warps as one, wherever that is possible.
    #[cfg(feature = "jit")]
    JitTeam(u32),
    /// Native code under memcheck and synccheck, which must find nothing. The interpreter where they need all
    /// events of the kernel.
    #[cfg(feature = "jit")]
    JitWatched,
    /// The same under initcheck.
    #[cfg(feature = "jit")]
    JitDefined,
    /// The same under racecheck, unless an access may race: then the launch is repeated in the interpreter.
    #[cfg(feature = "jit")]
    JitOrdered,
}

impl On {
    fn engine(self) -> Engine {
        match self {
            On::Interp | On::Watched => Engine::Interp,
            #[cfg(feature = "jit")]
            On::Jit | On::JitFor(_) | On::JitTeam(_) | On::JitWatched | On::JitDefined | On::JitOrdered => {
                Engine::Jit
            }
        }
    }

    fn cpu(self) -> Option<Cpu> {
        match self {
            On::Interp | On::Watched => None,
            #[cfg(feature = "jit")]
            On::Jit | On::JitTeam(_) | On::JitWatched | On::JitDefined | On::JitOrdered => None,
            #[cfg(feature = "jit")]
            On::JitFor(cpu) => Some(cpu),
        }
    }

    /// The target of its code. Unless all is tested, LLVM optimises only code for the best processor, and
    /// only for some cases: that takes most of the time of a test, and what LLVM's optimisations do is tested
    /// by LLVM.
    fn target(self, optimised: bool) -> Option<Target> {
        let target = self.cpu().map(Target::from);
        match self {
            On::Interp | On::Watched => None,
            #[cfg(feature = "jit")]
            On::Jit if optimised => None,
            #[cfg(feature = "jit")]
            _ if !levels::is_full() => {
                Some(levels::unoptimised(target.unwrap_or_else(|| "native".parse().expect("a target"))))
            }
            #[cfg(feature = "jit")]
            _ => target,
        }
    }

    fn team(self) -> Option<u32> {
        match self {
            On::Interp | On::Watched => None,
            #[cfg(feature = "jit")]
            On::Jit | On::JitFor(_) | On::JitWatched | On::JitDefined | On::JitOrdered => None,
            #[cfg(feature = "jit")]
            On::JitTeam(warps) => Some(warps),
        }
    }

    fn tools(self) -> &'static [Tool] {
        match self {
            On::Interp => &[],
            On::Watched => &[Tool::Racecheck, Tool::Synccheck],
            #[cfg(feature = "jit")]
            On::Jit | On::JitFor(_) | On::JitTeam(_) => &[],
            #[cfg(feature = "jit")]
            On::JitWatched => &[Tool::Memcheck, Tool::Synccheck],
            #[cfg(feature = "jit")]
            On::JitDefined => &[Tool::Initcheck],
            #[cfg(feature = "jit")]
            On::JitOrdered => &[Tool::Racecheck],
        }
    }

    /// Whether this machine can execute it.
    fn is_available(self) -> bool {
        self.cpu().is_none_or(levels::is_available)
    }
}

/// What every change is tested with.
const QUICK_SCHEDULES: &[Schedule] = &[
    (2, 1, On::Interp),
    (1, 0, On::Watched),
    #[cfg(feature = "jit")]
    (2, 0, On::Jit),
    #[cfg(feature = "jit")]
    (2, 0, On::JitFor(Cpu::Baseline)),
    #[cfg(feature = "jit")]
    (2, 0, On::JitWatched),
    #[cfg(feature = "jit")]
    (2, 0, On::JitDefined),
    #[cfg(feature = "jit")]
    (2, 0, On::JitOrdered),
];
const QUICK_VARIANT_SCHEDULES: &[Schedule] = &[
    (2, 3, On::Interp),
    #[cfg(feature = "jit")]
    (1, 0, On::Jit),
];
const MAIN_SCHEDULES: &[Schedule] = &[
    (1, 0, On::Interp),
    (2, 1, On::Interp),
    (4, 2, On::Interp),
    (1, 12345, On::Interp),
    (1, 0, On::Watched),
    (1, 7, On::Watched),
    #[cfg(feature = "jit")]
    (2, 4, On::Jit),
    // In the natural order native code runs CTAs as a whole.
    #[cfg(feature = "jit")]
    (2, 0, On::Jit),
    #[cfg(feature = "jit")]
    (2, 0, On::JitFor(Cpu::Avx2)),
    #[cfg(feature = "jit")]
    (2, 0, On::JitFor(Cpu::Baseline)),
    #[cfg(feature = "jit")]
    (2, 0, On::JitTeam(4)),
    #[cfg(feature = "jit")]
    (2, 0, On::JitWatched),
    #[cfg(feature = "jit")]
    (2, 0, On::JitDefined),
    #[cfg(feature = "jit")]
    (2, 0, On::JitOrdered),
];
const VARIANT_SCHEDULES: &[Schedule] = &[
    (2, 3, On::Interp),
    #[cfg(feature = "jit")]
    (2, 5, On::Jit),
    #[cfg(feature = "jit")]
    (1, 0, On::Jit),
    #[cfg(feature = "jit")]
    (2, 0, On::JitWatched),
    #[cfg(feature = "jit")]
    (2, 0, On::JitDefined),
    #[cfg(feature = "jit")]
    (2, 0, On::JitOrdered),
];

/// Known findings of cases: prefix of their names, kind of finding, and explanation. They are accepted
/// because the compared results do not depend on them.
const KNOWN: &[(&str, &str, &str)] = &[
    ("atomic_u32", "race", "the compiler reads by a weak load what a loop of `cas` then starts from"),
    ("atomic_u64", "race", "as above"),
    ("heap_list", "race", "as above"),
    ("early_exit", "barrier-exited", "threads exit before an aligned barrier, which the case is about"),
    ("events", "race", "all CTAs store equal values to one array"),
    ("intrinsic_triggers", "race", "as above"),
    ("spin_token", "race", "as above"),
];

/// Whether a case runs on this without `PTXVM_TESTS`: every case in the interpreter and, with its main text,
/// for the best processor, half of the cases in the watched interpreter, an eighth for a lesser processor
/// (whose code takes the longest to compile), and an eighth under each selection of tools in native code. Of
/// the variants, which take LLVM the longest, one of every fourth text runs in native code, with one case of
/// each kernel.
fn is_chosen(on: On, name: &str, is_compiled: bool) -> bool {
    let hash = levels::hash(name);
    match on {
        On::Interp => true,
        On::Watched => (hash / 8).is_multiple_of(2),
        #[cfg(feature = "jit")]
        On::Jit => is_compiled,
        #[cfg(feature = "jit")]
        On::JitTeam(_) => true,
        #[cfg(feature = "jit")]
        On::JitFor(_) => hash.is_multiple_of(8),
        #[cfg(feature = "jit")]
        On::JitWatched => hash % 8 == 1,
        #[cfg(feature = "jit")]
        On::JitDefined => hash % 8 == 5,
        #[cfg(feature = "jit")]
        On::JitOrdered => hash % 8 == 3,
    }
}

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let full = levels::is_full();
    let (main_schedules, variant_schedules) = match full {
        true => (MAIN_SCHEDULES, VARIANT_SCHEDULES),
        false => (QUICK_SCHEDULES, QUICK_VARIANT_SCHEDULES),
    };
    let mut trials = Vec::new();
    let mut compiled = HashSet::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(root.join("cases"))
        .expect("tests/fixtures/cases")
        .map(|e| e.expect("entry").path())
        .collect();
    files.sort();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "json")) {
        let text = std::fs::read_to_string(file).expect("case");
        let case: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let name = file.file_stem().expect("stem").to_string_lossy().into_owned();
        let mut sources = vec![(string(&case["ptx"]), main_schedules)];
        for variant in case["variants"].as_array().into_iter().flatten() {
            sources.push((string(variant), variant_schedules));
        }
        // One of the variants, the same for all cases of a text.
        let hash = levels::hash(&sources[0].0) as usize;
        let native_variant = hash.is_multiple_of(4).then(|| 1 + hash / 4 % (sources.len() - 1).max(1));
        for (number, (ptx, schedules)) in sources.into_iter().enumerate() {
            // A launch that traps does not reach its end.
            let fits = |on: On| on.is_available() && (on.tools().is_empty() || case["trap"].is_null());
            let is_main = string(&case["ptx"]) == ptx;
            let is_first = compiled.insert((ptx.clone(), string(&case["kernel"])));
            let is_compiled = is_main || is_first && native_variant == Some(number);
            let chosen = |on: On| fits(on) && (full || is_chosen(on, &name, is_compiled));
            for schedule in schedules.iter().filter(|(_, _, on)| chosen(*on)) {
                let (case, root, ptx, schedule) = (case.clone(), root.clone(), ptx.clone(), *schedule);
                let target = schedule.2.target(is_main && levels::hash(&name).is_multiple_of(16));
                let title = format!(
                    "{name} {} threads={} seed={} {:?}",
                    ptx.trim_start_matches("kernels/"),
                    schedule.0,
                    schedule.1,
                    schedule.2
                );
                trials.push(Trial::test(title, move || {
                    run(&root, &case, &ptx, schedule, target).map_err(Failed::from)
                }));
            }
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

struct Array {
    dtype: String,
    bytes: Vec<u8>,
}

/// An array as numpy writes it, in version 1 of the format: a mark, two bytes of length, a dictionary, the
/// data.
fn npy(path: &Path) -> Result<Array, String> {
    let wrong = |why: &str| format!("{}: {why}", path.display());
    let file = std::fs::read(path).map_err(|e| wrong(&e.to_string()))?;
    let rest = file.strip_prefix(b"\x93NUMPY\x01\x00").ok_or_else(|| wrong("not version 1 of the format"))?;
    let (length, rest) = rest.split_first_chunk().ok_or_else(|| wrong("no length"))?;
    let (head, bytes) =
        rest.split_at_checked(u16::from_le_bytes(*length).into()).ok_or_else(|| wrong("no header"))?;
    let head = std::str::from_utf8(head).map_err(|e| wrong(&e.to_string()))?;
    let quoted = head.split_once("'descr': '").and_then(|(_, rest)| rest.split_once('\''));
    let (dtype, _) = quoted.ok_or_else(|| wrong("no plain element type"))?;
    Ok(Array { dtype: dtype.to_owned(), bytes: bytes.to_vec() })
}

fn extent(value: &Value) -> [u32; 3] {
    [0, 1, 2].map(|i| value[i].as_u64().unwrap_or(1) as u32)
}

fn run(
    root: &Path,
    case: &Value,
    ptx: &str,
    (threads, seed, on): Schedule,
    target: Option<Target>,
) -> Result<(), String> {
    let text = std::fs::read_to_string(root.join(ptx)).map_err(|e| format!("{ptx}: {e}"))?;
    let checked = ptxvm::check(ptx, &text, &ptxvm::CheckOptions::default());
    let report = |d: &ptxvm::Diagnostic| ptxvm::render(d, &checked.source, false);
    let Some(module) = checked.module else {
        return Err(checked.diagnostics.iter().map(report).collect::<Vec<_>>().join("\n"));
    };
    let mut options = Options {
        addresses: module.address_size,
        target,
        team: on.team(),
        cache: levels::cache(),
        ..Options::default()
    };
    options = on.tools().iter().fold(options, |options, tool| options.and_tool(*tool));
    let vm = Vm::with(options).map_err(|e| e.to_string())?;
    let module = vm.load_module(module).map_err(|e| e.to_string())?;
    let kernel = module.kernel(&string(&case["kernel"])).map_err(|e| e.to_string())?;

    let mut params = vec![0; kernel.param_bytes()];
    let mut outputs: Vec<(usize, Buffer<u8>, Array, &Value)> = Vec::new();
    let mut inputs = Vec::new();
    let args = case["args"].as_array().cloned().unwrap_or_default();
    if args.len() != kernel.params().len() {
        return Err(format!("{} arguments for {} parameters", args.len(), kernel.params().len()));
    }
    for (index, (arg, slot)) in args.iter().zip(kernel.params()).enumerate() {
        let label = format!("argument {}", index + 1);
        let buffer = |bytes: &[u8]| vm.named_buffer(&label, bytes).map_err(|e| e.to_string());
        let bytes = if let Some(file) = arg["in"].as_str() {
            let input = buffer(&npy(&root.join(file))?.bytes)?;
            let address = input.address();
            inputs.push(input);
            address.to_le_bytes().to_vec()
        } else if let Some(file) = arg["inout"].as_str().or(arg["out"].as_str()) {
            let (initial, expected) = if arg["inout"].is_string() {
                let initial = npy(&root.join(file))?;
                let expected = arg["expect"].as_str().map(|f| npy(&root.join(f))).transpose()?;
                (initial.bytes, expected)
            } else {
                let expected = arg["expect"].as_str().map(|f| npy(&root.join(f))).transpose()?;
                let size: u64 =
                    arg["shape"].as_array().into_iter().flatten().filter_map(Value::as_u64).product();
                let width: u64 = file
                    .trim_start_matches(['<', '|', '>'])
                    .get(1..)
                    .and_then(|w| w.parse().ok())
                    .ok_or("dtype")?;
                (vec![0; (size * width) as usize], expected)
            };
            let output = buffer(&initial)?;
            let address = output.address();
            match expected {
                Some(expected) => outputs.push((index, output, expected, &case["args"][index]["tolerance"])),
                None => inputs.push(output),
            }
            address.to_le_bytes().to_vec()
        } else if let Some(bytes) = arg["zeros"].as_u64() {
            let scratch = vm.named_zeros(&label, bytes).map_err(|e| e.to_string())?;
            let address = scratch.address();
            inputs.push(scratch);
            address.to_le_bytes().to_vec()
        } else if arg["scalar"].is_string() {
            scalar(&string(&arg["scalar"]), &string(&arg["value"]))?
        } else if let Some(hex) = arg["bytes"].as_str() {
            let digit = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).map_err(|e| e.to_string());
            (0..hex.len() / 2).map(digit).collect::<Result<_, _>>()?
        } else {
            return Err(format!("argument {index} is not understood: {arg}"));
        };
        let bytes = bytes.get(..slot.bytes).ok_or("an argument narrower than its parameter")?;
        params[slot.offset..slot.offset + slot.bytes].copy_from_slice(bytes);
    }

    let mut launch =
        Launch::new(extent(&case["grid"]), extent(&case["block"])).seed(seed).engine(on.engine());
    launch.shared = case["shared"].as_u64().unwrap_or(0) as u32;
    launch.threads = Some(threads);
    launch.max_steps = case["max_steps"].as_u64();
    launch.timeout = Some(std::time::Duration::from_secs(case["timeout"].as_u64().unwrap_or(300)));
    launch.params = params;
    let trap = &case["trap"];
    let mut launched = vm.launch(&kernel, &launch);
    if !on.tools().is_empty()
        && let Err(error) = &launched
        && error.to_string().contains("no native code")
    {
        launched = vm.launch(&kernel, &launch.engine(Engine::Interp));
    }
    let done = match launched {
        Ok(report) => report,
        Err(error) => match error.kind() {
            ErrorKind::Trap(found, _) if trap.is_object() => return check_trap(found, trap),
            ErrorKind::Trap(..) | ErrorKind::Rejected(_) | ErrorKind::Caller(_) | ErrorKind::Machine(_) => {
                return Err(error.to_string());
            }
        },
    };
    let name = string(&case["name"]);
    let known = |finding: &ptxvm::Finding| {
        KNOWN.iter().any(|(start, kind, _)| name.starts_with(start) && *kind == finding.kind.name())
    };
    let found: Vec<ptxvm::Finding> = vm.findings().into_iter().filter(|finding| !known(finding)).collect();
    if !found.is_empty() {
        return Err(ptxvm::findings_text(&found));
    }
    if trap.is_object() {
        return Err(format!("no trap, but {trap} was expected"));
    }
    for (index, buffer, expected, tolerance) in outputs {
        let bytes = buffer.read().map_err(|e| e.to_string())?;
        compare(&expected, &bytes, tolerance).map_err(|e| format!("argument {}: {e}", index + 1))?;
    }
    if let Some(expected) = case["events"].as_array() {
        let expected: Vec<u64> = expected.iter().filter_map(Value::as_u64).collect();
        if done.events[..] != expected {
            return Err(format!("events {:?}, expected {expected:?}", done.events));
        }
    }
    if let Some(expected) = case["output"].as_str() {
        let found = String::from_utf8_lossy(&done.output);
        let same = if case["output_order"] == "any order of lines" {
            let sorted = |text: &str| {
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            sorted(expected) == sorted(&found)
        } else {
            expected == found
        };
        if !same {
            return Err(format!("printed:\n{found}\nexpected:\n{expected}"));
        }
    }
    Ok(())
}

fn check_trap(found: &ptxvm::Trap, expected: &Value) -> Result<(), String> {
    if Some(found.kind.word()) != expected["kind"].as_str() {
        return Err(format!("expected {expected}, found {found}"));
    }
    if let Some(line) = expected["line"].as_u64()
        && u64::from(found.line) != line
    {
        return Err(format!("expected {expected}, found {found}"));
    }
    if let Some(text) = expected["says"].as_str()
        && !found.to_string().contains(text)
    {
        return Err(format!("expected {expected}, found {found}"));
    }
    for (key, place) in [("cta", found.ctaid), ("thread", found.tid)] {
        if expected[key].is_array() && extent(&expected[key]) != place {
            return Err(format!("expected {expected}, found {found}"));
        }
    }
    Ok(())
}

fn scalar(ty: &str, value: &str) -> Result<Vec<u8>, String> {
    let bad = || format!("{ty}:{value}");
    Ok(match ty {
        "f32" => value.parse::<f32>().map_err(|_| bad())?.to_le_bytes().to_vec(),
        "f64" => value.parse::<f64>().map_err(|_| bad())?.to_le_bytes().to_vec(),
        _ => {
            let number: i128 = match value.strip_prefix("0x") {
                Some(hex) => i128::from_str_radix(hex, 16).map_err(|_| bad())?,
                None => value.parse().map_err(|_| bad())?,
            };
            let bits: usize = ty[1..].parse().map_err(|_| bad())?;
            number.to_le_bytes()[..bits / 8].to_vec()
        }
    })
}

/// Compares bit for bit, or within `{"ulp": n}` or `{"abs": x, "rel": y}`.
fn compare(expected: &Array, found: &[u8], tolerance: &Value) -> Result<(), String> {
    if expected.bytes == found {
        return Ok(());
    }
    if expected.bytes.len() != found.len() {
        return Err(format!("{} bytes, expected {}", found.len(), expected.bytes.len()));
    }
    let width = expected.dtype[2..].parse::<usize>().map_err(|e| e.to_string())?;
    for (index, (want, have)) in expected.bytes.chunks(width).zip(found.chunks(width)).enumerate() {
        if want == have {
            continue;
        }
        let (want_text, have_text) = (number(&expected.dtype, want), number(&expected.dtype, have));
        let close = match (want_text, have_text) {
            (Some(want), Some(have)) if tolerance.is_object() => {
                let spacing = match width {
                    4 => f64::from((want as f32).abs().next_up() - (want as f32).abs()),
                    _ => want.abs().next_up() - want.abs(),
                };
                let allowed = tolerance["ulp"].as_f64().unwrap_or(0.0) * spacing
                    + tolerance["abs"].as_f64().unwrap_or(0.0)
                    + tolerance["rel"].as_f64().unwrap_or(0.0) * want.abs();
                (want.is_nan() && have.is_nan()) || want == have || (want - have).abs() <= allowed
            }
            (Some(want), Some(have)) => want.is_nan() && have.is_nan(),
            _ => false,
        };
        if !close {
            return Err(format!(
                "element {index}: found {have_text:?} {have:02x?}, expected {want_text:?} {want:02x?}"
            ));
        }
    }
    Ok(())
}

/// The value of a float element.
fn number(dtype: &str, bytes: &[u8]) -> Option<f64> {
    match &dtype[1..] {
        "f4" => Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
        "f8" => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}
