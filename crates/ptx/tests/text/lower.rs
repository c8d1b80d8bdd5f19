//! Lowering: small texts with the expected programs (`lower/NAME.ptx`, `lower/NAME.ir`, reviewed line by
//! line), the rules of the IR on all fixtures, and random control flow, executed as text and as blocks.

use ptx::check::module::{Function, Operand, Statement};
use ptx::check::{CheckOptions, Module, check};
use ptx::ir::verify::verify;
use ptx::ir::{Block, Program, Terminator, lower};
use ptx::isa::Op;
use std::path::{Path, PathBuf};

fn module(name: &str, text: &str) -> Module {
    let checked = check(name, text, &CheckOptions::default());
    match checked.module {
        Some(module) => module,
        None => panic!("{name}: {:#?}", checked.diagnostics),
    }
}

/// The program of a text that has no mistake; it keeps all rules.
fn verified(name: &str, text: &str) -> Program {
    let program = lower(module(name, text));
    let violations: Vec<String> = verify(&program).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{name}:\n{}\n{program}", violations.join("\n"));
    program
}

fn texts(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "ptx"));
    files.sort();
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn texts_become_the_programs_beside_them() {
    let files = texts("tests/lower");
    assert!(files.len() >= 6);
    for file in files {
        let name = file.display().to_string();
        let program = verified(&name, &read(&file)).to_string();
        let expected = read(&file.with_extension("ir"));
        for (i, (found, expected)) in program.lines().zip(expected.lines()).enumerate() {
            assert_eq!(found, expected, "{name}: line {} of the program\n{program}", i + 1);
        }
        assert_eq!(program, expected, "{name}");
    }
}

#[test]
fn fixtures_keep_the_rules() {
    let mut files = texts("../../tests/fixtures/kernels");
    assert!(files.len() > 50);
    files.extend(texts("../../tests/fixtures/ptx"));
    files.extend(texts("tests/check/ok"));
    for file in files {
        verified(&file.display().to_string(), &read(&file));
    }
}

/// xorshift64*
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

/// A body of random jumps over marked instructions.
fn random_text(rng: &mut Rng) -> String {
    let labels = 1 + rng.below(7);
    let mut lines = Vec::new();
    for _ in 0..4 + rng.below(25) {
        let guard = ["", "", "@p ", "@!p "][rng.below(4)];
        let label = rng.below(labels);
        lines.push(match rng.below(12) {
            0..=4 => format!("{guard}add.u32 r, r, 1;"),
            5 | 6 => format!("{guard}bra L{label};"),
            7 => format!("{guard}bra.uni L{label};"),
            8 => format!("{guard}brx.idx r, list;"),
            9 => format!("{guard}{}", ["ret;", "exit;", "bar.sync 0;", "bar.warp.sync -1;"][rng.below(4)]),
            10 => format!("{guard}call helper, (r);"),
            _ => format!("{guard}shfl.sync.idx.b32 r, r, 0, 31, -1;"),
        });
    }
    for label in 0..labels {
        lines.insert(rng.below(lines.len() + 1), format!("L{label}:"));
    }
    let list: Vec<String> = (0..1 + rng.below(4)).map(|_| format!("L{}", rng.below(labels))).collect();
    format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n.func helper(.reg .b32 x) {{ ret; }}\n\
         .entry random()\n{{\n.reg .pred p;\n.reg .b32 r;\nlist: .branchtargets {};\n{}\n}}\n",
        list.join(", "),
        lines.join("\n")
    )
}

/// The outcome of the n-th decision of a run: a guard (two ways) or an index.
fn decision(seed: u64, n: usize, ways: usize) -> usize {
    Rng((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95))
        .below(ways * 64)
        % ways
}

const STEPS: usize = 200;

/// Places of the instructions that a run of the text executes or skips, statement by statement.
fn run_text(function: &Function, seed: u64) -> Vec<(u32, bool)> {
    let body = function.body.as_ref().expect("a body");
    let place = |label| body.statements.iter().position(|s| matches!(s, Statement::Label(l) if *l == label));
    let (mut trace, mut at, mut decisions) = (Vec::new(), 0, 0);
    let mut decide = |ways| {
        decisions += 1;
        decision(seed, decisions, ways)
    };
    while trace.len() < STEPS {
        let Some(statement) = body.statements.get(at) else { break };
        at += 1;
        let Statement::Inst(inst) = statement else { continue };
        let acts = match inst.guard {
            Some(guard) => (decide(2) == 1) != guard.negated,
            None => true,
        };
        trace.push((inst.span.start, acts));
        if !acts {
            continue;
        }
        match inst.row.row().op {
            Op::Bra => match inst.operands[0] {
                Operand::Label(label) => at = place(label).expect("defined"),
                ref other => panic!("{other:?}"),
            },
            Op::BrxIdx => {
                let list = &body.branch_targets[0];
                at = place(list[decide(list.len())]).expect("defined");
            }
            Op::Ret | Op::Exit => break,
            _ => {}
        }
    }
    trace
}

/// The same for the blocks.
fn run_blocks(blocks: &[Block], seed: u64) -> Vec<(u32, bool)> {
    let (mut trace, mut at, mut decisions) = (Vec::new(), 0, 0);
    let mut decide = |ways| {
        decisions += 1;
        decision(seed, decisions, ways)
    };
    // The outcome of a guard is recorded once, at the branch around its instruction.
    let mut recorded = None;
    while trace.len() < STEPS {
        let block = &blocks[at];
        for inst in &block.insts {
            let acts = match inst.guard {
                Some(guard) => (decide(2) == 1) != guard.negated,
                None => true,
            };
            trace.push((inst.span.start, acts));
        }
        if let Some(inst) = block.term.inst()
            && !matches!(block.term, Terminator::Branch { .. })
            && recorded.take() != Some(inst.span.start)
        {
            trace.push((inst.span.start, true));
        }
        match &block.term {
            Terminator::Goto(next, _)
            | Terminator::WarpSync { next, .. }
            | Terminator::Barrier { next, .. } => at = next.0 as usize,
            Terminator::Branch { cond, then, els, inst } => {
                let holds = (decide(2) == 1) != cond.negated;
                trace.push((inst.span.start, holds));
                recorded = (holds && inst.op != Op::Bra).then_some(inst.span.start);
                at = if holds { then } else { els }.0 as usize;
            }
            Terminator::Switch { targets, .. } => at = targets[decide(targets.len())].0 as usize,
            Terminator::Call(call) => at = call.next.0 as usize,
            Terminator::Ret(_) | Terminator::Exit(_) => break,
        }
    }
    trace
}

#[test]
fn blocks_run_as_the_text_does() {
    let mut instructions = 0;
    for seed in 0..2000 {
        let text = random_text(&mut Rng(seed * 2 + 1));
        let module = module("random", &text);
        let program = verified("random", &text);
        for run in 0..4 {
            let mut expected = run_text(&module.functions[1], seed * 4 + run);
            let mut found = run_blocks(&program.functions[1].blocks, seed * 4 + run);
            expected.truncate(STEPS - 50);
            found.truncate(STEPS - 50);
            assert_eq!(found, expected, "seed {seed} run {run}:\n{text}\n{program}");
            instructions += expected.len();
        }
    }
    assert!(instructions > 50_000);
}

/// A text that passes the checker never fails later, however it came about.
#[test]
fn mutated_fixtures_never_fail_later() {
    let mut rng = Rng(77);
    let (mut tried, mut accepted) = (0, 0);
    for file in texts("../../tests/fixtures/kernels") {
        let text = read(&file);
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > 600 {
            continue;
        }
        for _ in 0..6 {
            let mut mutated: Vec<&str> = lines.clone();
            for _ in 0..1 + rng.below(3) {
                let (a, b) = (rng.below(mutated.len()), rng.below(mutated.len()));
                match rng.below(3) {
                    0 => drop(mutated.remove(a)),
                    1 => mutated.swap(a, b),
                    _ => mutated.insert(a, mutated[b]),
                }
            }
            tried += 1;
            let text = mutated.join("\n");
            if let Some(module) = check("mutated", &text, &CheckOptions::default()).module {
                accepted += 1;
                let program = lower(module);
                let violations: Vec<String> = verify(&program).iter().map(ToString::to_string).collect();
                assert!(violations.is_empty(), "{text}\n{}\n{program}", violations.join("\n"));
            }
        }
    }
    assert!(tried > 300 && accepted > 50, "{accepted} of {tried}");
}

/// Long and deeply nested functions lower in time that grows with their length.
#[test]
fn long_functions_are_lowered_quickly() {
    let n = 20_000;
    let mut body = String::new();
    for i in 0..n {
        body.push_str(&format!("H{i}: @p bra T{i};\n"));
    }
    for i in (0..n).rev() {
        body.push_str(&format!("T{i}: add.u32 r, r, 1; @q bra H{i};\n"));
    }
    let text = format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n.entry deep() {{\n.reg .pred p, q;\n.reg .b32 r;\n{body}}}\n"
    );
    let module = module("deep", &text);
    let start = std::time::Instant::now();
    let program = lower(module);
    assert!(program.functions[0].blocks.len() >= 2 * n);
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}
