//! Speed of each stage of the front end in megabytes per second, and its memory in bytes per byte of text,
//! for modules of 10 MB: `cargo bench -p ptx --bench front` (a number after `--` sets the megabytes;
//! `--large` shows that the time stays linear).
//!
//! The modules are made of the kernels of `tests/fixtures/kernels`: many kernels under other names, and one
//! huge kernel with their bodies as blocks. Each stage is timed separately, on the output of the previous
//! one. The result is the shortest processor time of several rounds, which other programs of the machine
//! affect least. Memory is the maximum that a separate process used for checking, and for lowering after it.

use ptx::check::{CheckOptions, check, print};
use ptx::diag::render::{Color, Source};
use ptx::syntax::tree::{Item, Tree};
use ptx::syntax::{TokenKind, format, lexer, parse};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

/// Rounds of each stage.
const ROUNDS: usize = 5;
/// Kernels that stand for what compilers emit: plain ones, unoptimised ones, and ones with debugging
/// directives.
const KERNELS: &[&str] = &[
    "sha256.ptx",
    "local_array.ptx",
    "spin_lookback.ptx",
    "struct_call.ptx",
    "convolution_2d.ptx",
    "function_pointers.ptx",
    "sad.ptx",
    "long_division.ptx",
    "saxpy.ptx",
    "bit_tricks.ptx",
    "saturating.ptx",
    "nbody.O0.ptx",
    "black_scholes.O0.ptx",
    "atomic_ops.O0.ptx",
    "matmul_tiled.l.ptx",
    "warp_reduce.O0.ptx",
];
const HEADER: &str = ".version 6.4\n.target sm_70\n.address_size 64\n\n";

fn main() {
    let mut args = std::env::args().skip(1);
    let mut megabytes = 10;
    while let Some(arg) = args.next() {
        if arg == "--memory" {
            return memory_of(&args.next().expect("a stage"), &args.next().expect("a path"));
        }
        if arg == "--large" {
            return large(&args.next().unwrap_or_default());
        }
        if arg == "--profile" {
            return profile(&many(megabytes << 20), &args.next().expect("a stage"));
        }
        megabytes = arg.parse().unwrap_or(megabytes);
    }
    println!(
        "{:<14}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "MB/s", "lex", "parse", "check", "both", "lower", "print", "format", "memory", "lowered"
    );
    measure("many kernels", &many(megabytes << 20));
    measure("one kernel", &one(megabytes << 20));
}

fn measure(what: &str, text: &str) {
    let options = CheckOptions::default();
    let checked = check(what, text, &options);
    assert!(checked.module.is_some(), "{:?}", checked.diagnostics.iter().find(|d| d.code.number() < 900));
    drop(checked);
    let lex = best(|| (), |()| lexer::lex(text));
    let whole = best(|| (), |()| check(what, text, &options));
    let parsing = best(|| (), |()| parse(text));
    let module = || check(what, text, &options).module.expect("checked above");
    let lowering = best(module, ptx::ir::lower);
    let printing = best(module, |module| print(&module));
    let formatting = best(|| (), |()| format::format(text));
    let rate = |seconds: f64| text.len() as f64 / 1e6 / seconds;
    println!(
        "{what:<14}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{:>8.1}x{:>8.1}x",
        rate(lex),
        rate(parsing),
        rate(whole - parsing),
        rate(whole),
        rate(lowering),
        rate(printing),
        rate(formatting),
        memory("check", text),
        memory("lower", text),
    );
}

/// What might take more than linear time: each text in two sizes, the second four times the first. Checking
/// and rendering every diagnostic must take about four times as long.
fn large(only: &str) {
    println!("{:<34}{:>8}{:>10}{:>10}{:>14}", "text", "MB", "check", "render", "diagnostics");
    let line = |bytes: usize| {
        let text = many(bytes)
            .lines()
            .map(|line| line.split("//").next().unwrap_or(""))
            .collect::<Vec<_>>()
            .join(" ");
        // Directives that end with their line need it.
        text.replacen(".target", "\n.target", 1).replacen(".address", "\n.address", 1)
    };
    let repeated = |what: &str, bytes: usize| HEADER.to_owned() + &what.repeat(bytes / what.len());
    let in_kernel = |what: &str, bytes: usize| {
        HEADER.to_owned()
            + ".visible .entry k()\n{\n.reg .b32 %r<9>;\n"
            + &what.repeat(bytes / what.len())
            + "\n}\n"
    };
    let texts: &[(&str, &dyn Fn(usize) -> String)] = &[
        ("kernels", &|bytes| many(bytes)),
        ("one kernel", &|bytes| one(bytes)),
        ("kernels on one line", &line),
        ("garbage of one character", &|bytes| repeated("\u{1}", bytes)),
        ("garbage of words", &|bytes| repeated("x .y é 1 ", bytes)),
        ("quotes", &|bytes| repeated("\"", bytes)),
        ("braces", &|bytes| repeated("{", bytes)),
        ("parentheses in an operand", &|bytes| in_kernel("(", bytes)),
        ("undeclared names on one line", &|bytes| in_kernel("add.s32 %q1, %q2, z; ", bytes)),
        ("newer instructions", &|bytes| in_kernel("add.f16x2 %r1, %r2, %r3, 4;\nbogus %r1;\n", bytes)),
        ("newer forms on one line", &|bytes| in_kernel("add.rn.bf16x2 %r1, %r2, %r3; ", bytes)),
        ("labels defined twice", &|bytes| in_kernel("L:\n", bytes)),
        ("nested blocks", &|bytes| {
            in_kernel(&("{".repeat(100) + ".reg .b32 x;" + &"}".repeat(100) + "\n"), bytes)
        }),
        ("an initialiser", &|bytes| {
            HEADER.to_owned() + ".global .b8 x[] = {" + &"1, ".repeat(bytes / 3) + "1};\n"
        }),
    ];
    for (name, make) in texts.iter().filter(|(name, _)| name.contains(only)) {
        for bytes in [5 << 20, 20 << 20] {
            let text = make(bytes);
            let start = seconds();
            let checked = check("large", &text, &CheckOptions::default());
            let checking = seconds() - start;
            let source = Source::new("large", &text);
            let start = seconds();
            for diagnostic in &checked.diagnostics {
                black_box((source.human(diagnostic, Color::Never), source.json(diagnostic)));
            }
            let rendering = seconds() - start;
            let megabytes = text.len() as f64 / 1e6;
            println!(
                "{name:<34}{megabytes:>8.1}{checking:>8.2} s{rendering:>8.2} s{:>14}",
                checked.diagnostics.len()
            );
        }
    }
}

/// One stage again and again, for a profiler.
fn profile(text: &str, stage: &str) {
    for _ in 0..20 {
        match stage {
            "lex" => drop(lexer::lex(text)),
            "parse" => drop(parse(text)),
            "check" => drop(check("many", text, &CheckOptions::default())),
            "lower" => drop(check("many", text, &CheckOptions::default()).module.map(ptx::ir::lower)),
            "print" => {
                drop(check("many", text, &CheckOptions::default()).module.map(|module| print(&module)))
            }
            _ => drop(format::format(text)),
        }
    }
}

/// The seconds of the fastest round.
fn best<I, O>(mut input: impl FnMut() -> I, mut run: impl FnMut(I) -> O) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let input = input();
        let start = seconds();
        let output = black_box(run(input));
        best = best.min(seconds() - start);
        drop(output);
    }
    best
}

/// The time that this thread has run so far, which other programs cannot take from it; where the system does
/// not say, the time of day.
fn seconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = schedule.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.get_or_init(Instant::now).elapsed().as_secs_f64(), |n| n / 1e9)
}

/// The most bytes that a process of its own had at once while it checked the text (and lowered it), as a
/// multiple of the text; the text itself, which it read before, not included. 0 where the system does not
/// say.
fn memory(stage: &str, text: &str) -> f64 {
    let path = std::env::temp_dir().join(format!("ptx-bench-{}.ptx", std::process::id()));
    std::fs::write(&path, text).expect("room for the text");
    let program = std::env::current_exe().expect("this program");
    let output =
        Command::new(program).args(["--memory", stage]).arg(&path).output().expect("this program again");
    std::fs::remove_file(&path).expect("written above");
    let bytes = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().unwrap_or(0.0);
    bytes / text.len() as f64
}

fn memory_of(stage: &str, path: &str) {
    let text = std::fs::read_to_string(path).expect("a text");
    let before = status("VmRSS:");
    let checked = check(path, &text, &CheckOptions::default());
    if stage == "lower" {
        black_box(checked.module.map(ptx::ir::lower));
    }
    println!("{}", status("VmHWM:").saturating_sub(before));
}

/// A line of what Linux says of this process, in bytes.
fn status(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = status.lines().find_map(|l| l.strip_prefix(line)).unwrap_or("0 kB");
    value.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
}

/// A text with its tree and the names that its items declare.
struct Kernels {
    text: String,
    tree: Tree,
    names: HashSet<String>,
}

fn kernels() -> Vec<Kernels> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/kernels");
    let read = |name: &&str| {
        let text = std::fs::read_to_string(folder.join(name)).expect("a fixture");
        let tree = parse(&text).tree;
        let mut names = HashSet::new();
        for item in &tree.items {
            match item {
                Item::Function(f) => names.extend(f.name.map(|name| name.text(&text).to_owned())),
                Item::Variable(v) => names.extend(v.names.iter().map(|n| n.name.text(&text).to_owned())),
                _ => {}
            }
        }
        Kernels { text, tree, names }
    };
    KERNELS.iter().map(read).collect()
}

impl Kernels {
    /// Adds a range of the text, with other names.
    fn copy(&self, range: ptx::Span, suffix: &str, to: &mut String) {
        let first = self.tree.tokens.partition_point(|t| t.span.start < range.start);
        for token in self.tree.tokens[first..].iter().take_while(|t| t.span.end <= range.end) {
            let text = token.span.text(&self.text);
            to.push_str(text);
            if token.kind == TokenKind::Ident && self.names.contains(text) {
                to.push_str(suffix);
            }
        }
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        let header = |item: &&Item| {
            !matches!(item, Item::Version(_) | Item::Target(_) | Item::AddressSize(_) | Item::File(_))
        };
        self.tree.items.iter().filter(header)
    }
}

/// Copies of all kernels under other names, with the blanks and comments between them.
fn many(bytes: usize) -> String {
    let kernels = kernels();
    let mut text = HEADER.to_owned();
    for round in 0.. {
        for (index, kernel) in kernels.iter().enumerate() {
            let suffix = format!("_{index}_{round}");
            let first = kernel.items().next().map_or(0, |item| item.span().start);
            let end = kernel.text.len() as u32;
            kernel.copy(ptx::Span::new(first, end), &suffix, &mut text);
            if text.len() >= bytes {
                return text;
            }
        }
    }
    text
}

/// One kernel whose blocks are the bodies of all kernels. Parameters become variables of the blocks, and
/// device functions and variables of module scope stand before it, once.
fn one(bytes: usize) -> String {
    let kernels = kernels();
    let mut text = HEADER.to_owned() + ".file 1 \"kernels.cu\"\n.file 2 \"header.h\"\n";
    let mut blocks = Vec::new();
    for (index, kernel) in kernels.iter().enumerate() {
        let suffix = format!("_{index}");
        for item in kernel.items() {
            match item {
                Item::Function(f) if f.kind.value == ptx::syntax::tree::FunctionKind::Entry => {
                    let Some(body) = &f.body else { continue };
                    let mut block = String::from("{\n");
                    for parameter in &f.parameters {
                        let ty = parameter.specifiers.ty.expect("a type").span;
                        write!(block, "\t.local .align 16 ").expect("a string");
                        kernel.copy(ty, &suffix, &mut block);
                        block.push(' ');
                        kernel.copy(parameter.declarator.span, &suffix, &mut block);
                        block.push_str(";\n");
                    }
                    let inner = ptx::Span::new(body.span.start + 1, body.span.end);
                    kernel.copy(inner, &suffix, &mut block);
                    blocks.push(block.split_inclusive('\n').map(in_block).collect::<String>());
                }
                _ => {
                    kernel.copy(item.span(), &suffix, &mut text);
                    text.push('\n');
                }
            }
        }
    }
    text.push_str(".visible .entry huge()\n{\n");
    for block in blocks.iter().cycle() {
        text.push_str(block);
        text.push('\n');
        if text.len() >= bytes {
            break;
        }
    }
    text.push_str("}\n");
    text
}

/// A line of a kernel as one of a block: what it reads from its parameters it reads from variables.
fn in_block(line: &str) -> String {
    if line.contains("_param_") {
        line.replace("ld.param", "ld.local")
    } else {
        line.replace("\tret;", "\texit;")
    }
}
