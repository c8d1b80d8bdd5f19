//! The text form of WIR: printed, read and printed again for every kernel of the fixtures and of the
//! benchmark, and read from texts that were damaged. Unless `PTXVM_TESTS` is `full`, this is done after two
//! of the stages for each kernel, in turn.

use ptx::check::{CheckOptions, check};
use ptx::ir::{Function, Program};
use ptx_jit::wir::LaunchShape;
use ptx_jit::wir::parse::parse;
use ptx_jit::wir::print::print;
use ptx_jit::{Pass, stages};
use std::path::{Path, PathBuf};

fn programs() -> Vec<(PathBuf, Program)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["tests/fixtures/kernels", "tests/fixtures/ptx", "tests/agree", "xtask/bench/kernels"] {
        let folder = root.join(folder);
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    files.retain(|path| path.extension().is_some_and(|e| e == "ptx"));
    files.sort();
    let load = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a file of the checkout");
        let module = check(&path.to_string_lossy(), &text, &CheckOptions::default()).module;
        module.map(|module| (path, ptx::ir::lower(module)))
    };
    files.into_iter().filter_map(load).collect()
}

const ONE: LaunchShape = LaunchShape { ntid: [64, 1, 1], chunk: 16, team: 1, ctas: 1, rows: false };
const PARTIAL: LaunchShape = LaunchShape { ntid: [20, 3, 1], chunk: 8, team: 1, ctas: 1, rows: false };
const COARSE: LaunchShape = LaunchShape { ntid: [16, 8, 1], chunk: 16, team: 4, ctas: 1, rows: false };
/// Two of the warps of a CTA, which wait for the others at barriers.
const PART: LaunchShape = LaunchShape { ntid: [16, 8, 1], chunk: 16, team: 2, ctas: 1, rows: false };

/// Whether native code may run several warps of the function as one.
fn may_be_coarse(function: &Function) -> bool {
    let calls = |block: &ptx::ir::Block| matches!(block.term, ptx::ir::Terminator::Call(_));
    function.kind == ptx::check::module::FunctionKind::Entry && !function.blocks.iter().any(calls)
}

/// A text without comments, which are not read.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split(" ;").next().unwrap_or_default().to_owned() + "\n").collect()
}

#[test]
fn printing_reading_and_printing_gives_the_same_text() {
    let (mut count, mut groups, mut deferrals) = (0, 0, 0);
    let stages = [
        (ONE, Pass::Shapes),
        (COARSE, Pass::Shapes),
        (PARTIAL, Pass::Build),
        (ONE, Pass::Groups),
        (COARSE, Pass::Groups),
        (PART, Pass::Prefetches),
    ];
    let full = std::env::var("PTXVM_TESTS").as_deref() == Ok("full");
    let mut functions = 0;
    for (path, program) in programs() {
        for function in program.functions.iter().filter(|function| !function.blocks.is_empty()) {
            functions += 1;
            // The first stages are other ones for each function.
            let turn = stages.iter().cycle().skip(2 * functions);
            for &(launch, last) in turn.take(if full { stages.len() } else { 2 }) {
                if launch.team > 1 && !may_be_coarse(function) {
                    continue;
                }
                let shape = (launch, stages::generic_target(launch));
                let Some(text) = stages::after((&program, function), shape, last, None) else { continue };
                let read =
                    parse(&text).unwrap_or_else(|e| panic!("{}: {}: {e}", path.display(), function.name));
                let again = print(&read, Some((&program, function)));
                // Plans are comments.
                let both = match last {
                    Pass::Groups | Pass::Prefetches => [code(&again), code(&text)],
                    _ => [again, text],
                };
                assert_eq!(both[0], both[1], "{}: {}", path.display(), function.name);
                let lines = |start: &str| both[0].lines().filter(|line| line.starts_with(start)).count();
                groups += lines("  group ");
                deferrals += lines("  defer-prefetches ");
                count += 1;
            }
        }
    }
    assert!(count > 200, "{count} functions");
    assert!(groups > 20, "{groups} groups");
    assert!(deferrals > 0, "no block defers its prefetches");
}

/// xorshift64*
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }
}

/// The text with a few words, lines or bytes that are others.
fn damaged(text: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<Vec<String>> =
        text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    for _ in 0..1 + rng.below(3) {
        let at = rng.below(lines.len());
        let other = rng.below(lines.len());
        match rng.below(6) {
            0 => drop(lines.remove(at)),
            1 => lines.swap(at, other),
            2 => {
                let line = lines[other].clone();
                lines.insert(at, line);
            }
            3 => {
                // A word of another place.
                let word = lines[other][rng.below(lines[other].len())].clone();
                let place = rng.below(lines[at].len());
                lines[at][place] = word;
            }
            4 => {
                // Another number.
                let place = rng.below(lines[at].len());
                let number =
                    ["0", "1", "7", "99999", "4294967295", "18446744073709551616", "-1"][rng.below(7)];
                let word: String = lines[at][place].chars().filter(|c| !c.is_ascii_digit()).collect();
                lines[at][place] = word + number;
            }
            _ => {
                let place = rng.below(lines[at].len());
                let word = &mut lines[at][place];
                let cut = (0..word.len())
                    .filter(|at| word.is_char_boundary(*at))
                    .nth(rng.below(word.len()))
                    .unwrap_or(0);
                word.truncate(cut);
                word.push_str(["", "é", "[", ":", "x", "=", ")", "\u{0}"][rng.below(8)]);
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.iter().map(|words| words.join(" ") + "\n").collect()
}

/// Reading, verifying and running a pass on a damaged text never panics; what passes the verifier passes it
/// after each pass.
#[test]
fn damaged_texts_are_refused_or_are_functions() {
    let mut rng = Rng(4711);
    let one = (ONE, stages::generic_target(ONE));
    let (mut refused, mut accepted) = (0, 0);
    for (path, program) in programs() {
        for function in program.functions.iter().filter(|function| !function.blocks.is_empty()) {
            let last = [Pass::Shapes, Pass::Groups][rng.below(2)];
            let Some(text) = stages::after((&program, function), one, last, None) else { continue };
            if text.len() > 60_000 {
                continue;
            }
            // Behind groups no operation may move.
            let passes: &[Pass] = match last {
                Pass::Groups => &[Pass::Ranges, Pass::Shapes],
                _ => &[Pass::PhiElim, Pass::Gvn, Pass::Dce, Pass::Ranges, Pass::Shapes],
            };
            for _ in 0..8 {
                let text = damaged(&text, &mut rng);
                let pass = passes[rng.below(passes.len())];
                match stages::on_text(&text, (&program, function), one, pass, false) {
                    Ok(_) => accepted += 1,
                    Err(message) => {
                        assert!(
                            !message.starts_with("after the pass"),
                            "{}: {message}\n{text}",
                            path.display()
                        );
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 500 && accepted > 100, "{refused} refused, {accepted} accepted");
}

#[test]
fn refused_texts_name_the_line_and_what_is_wrong() {
    let refused = |text: &str| parse(text).expect_err(text).to_string();
    let rest = "b0 ptx 0 full:\n  goto b0\n";
    assert_eq!(refused(&format!("start b0\n{rest}goto b1\n")), "line 4: an operation outside of a block");
    assert_eq!(refused(rest), "line 2: there is no start");
    assert_eq!(refused("start b0\nb1 ptx 0 full:\n"), "line 2: expected b0");
    assert_eq!(
        refused("start b0\nb0 ptx 0 full:\n  v1:r33 = load r32.0\n"),
        "line 3: `r33` is not a kind of value"
    );
    assert_eq!(
        refused("start b0\nb0 ptx 0 full:\n  v99999999:r32 = load r32.0\n"),
        "line 3: `v99999999` is not a value such as v1, of at most v1048576"
    );
    let group = |line: &str| format!("start b0\nb0 ptx 0 full:\n  inst 0.1 v1 v2\n  {line}\n  goto b0\n");
    assert_eq!(
        refused(&group("group pair ld.global.u32 v2 [0.1+0]")),
        "line 4: `pair` is not a kind of group"
    );
    assert_eq!(
        refused(&group("group window ld.local.u32 v2 [0.1+0]")),
        "line 4: `ld.local.u32` is not an access such as ld.global.u32"
    );
    assert_eq!(
        refused(&group("group window ld.global.u32 v2 [0.2+0]")),
        "line 4: the block has no instruction 0.2"
    );
    assert_eq!(
        refused("start b0\nzero v1:r32(affine align 0 lanes [0+1x2000])\n"),
        "line 2: more than 1024 lanes"
    );
    let behind = |line: &str| format!("start b0\nb0 ptx 0 full:\n  defer-prefetches b1 {line}\n  goto b0\n");
    assert_eq!(refused(&behind("16")), "line 3: expected `lines`, found `16`");
    assert_eq!(refused(&behind("lines many")), "line 3: `many` is not a number, or too large");
    assert_eq!(
        refused(&behind("lines 16\n  inst 0.1 v1 v2")),
        "line 4: an operation behind deferred prefetches"
    );
}

/// Prefetches are deferred to the block behind the barrier that their block ends at, and to no other one.
#[test]
fn prefetches_are_deferred_to_the_block_behind_the_barrier() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/prefetches/deferred_behind_the_barrier.ptx");
    let text = std::fs::read_to_string(&file).expect("a file of the checkout");
    let module = check(&file.to_string_lossy(), &text, &CheckOptions::default()).module;
    let program = ptx::ir::lower(module.expect("a correct text"));
    let function = &program.functions[0];
    let launch = LaunchShape { ntid: [128, 1, 1], chunk: 16, team: 2, ctas: 1, rows: false };
    let shape = (launch, stages::generic_target(launch));
    let text = stages::after((&program, function), shape, Pass::Prefetches, None).expect("a small function");
    let line = text.lines().find(|line| line.starts_with("  defer-prefetches")).expect("a block defers");
    let verified = |text: &str| stages::on_text(text, (&program, function), shape, Pass::Ranges, false);
    assert_eq!(verified(&text).err(), None);
    for other in ["  defer-prefetches b0 lines 9", "  defer-prefetches b999 lines 9"] {
        let message = verified(&text.replace(line, other)).expect_err(other);
        assert!(message.contains("no prefetches can be deferred"), "{message}");
    }
}
