//! Planted errors and their corrected twins under the sanitizers: `tests/sanitize/*.case`.
//!
//! Invariant: an erroneous text gives exactly the findings that it announces, a corrected one gives none.

use ptxvm::{Arg, ErrorKind, Launch, Options, Tool, Vm};
use std::path::Path;

/// A case with its two texts.
struct Case {
    name: String,
    tool: Tool,
    block: u32,
    grid: u32,
    shared: u32,
    wrong: String,
    mended: String,
}

const HEADER: &str = ".version 7.0\n.target sm_80\n.address_size 64\n";
const OPEN: &str = "\
.visible .entry k(.param .u64 out)
{
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .f32 %f<8>;
ld.param.u64 %d1, [out];
mov.u32 %r1, %tid.x;
";

fn tool(word: &str) -> Tool {
    Tool::parse_list(word).expect("a tool")[0]
}

fn number(word: &str) -> u32 {
    word.trim().parse().expect("a number")
}

/// The cases of a file.
fn cases(text: &str) -> Vec<Case> {
    let (head, rest) = text.split_once("\n=== ").expect("a case");
    let common = head.lines().find_map(|line| line.strip_prefix("tool ")).map_or("memcheck", str::trim);
    rest.split("\n=== ").map(|part| case(part, common)).collect()
}

fn case(part: &str, common: &str) -> Case {
    let (name, body) = part.split_once('\n').expect("a body");
    let mut case = Case {
        name: name.trim().to_owned(),
        tool: tool(common),
        block: 1,
        grid: 1,
        shared: 0,
        wrong: String::new(),
        mended: String::new(),
    };
    let (mut outside, mut lines) = ([const { Vec::new() }; 2], [const { Vec::new() }; 2]);
    for line in body.lines() {
        match line.split_once(' ') {
            Some(("tool", word)) => case.tool = tool(word),
            Some(("block", n)) => case.block = number(n),
            Some(("grid", n)) => case.grid = number(n),
            Some(("shared", n)) => case.shared = number(n),
            Some(("|", line)) if body.contains(".entry") => {
                lines.iter_mut().for_each(|lines| lines.push(line));
            }
            Some(("|", line)) => outside.iter_mut().for_each(|lines| lines.push(line)),
            Some(("-", line)) => lines[0].push(line),
            Some(("+", line)) => lines[1].push(line),
            Some(_) | None => lines.iter_mut().for_each(|lines| lines.push(line)),
        }
    }
    let whole = |outside: &[&str], lines: &[&str]| match body.contains(".entry") {
        true => format!("{HEADER}{}\n", lines.join("\n")),
        false => format!("{HEADER}{}\n{OPEN}{}\nret;\n}}\n", outside.join("\n"), lines.join("\n")),
    };
    case.wrong = whole(&outside[0], &lines[0]);
    case.mended = whole(&outside[1], &lines[1]);
    case
}

/// What the text says is found: line and kind.
fn expected(text: &str) -> Vec<(u32, String)> {
    let lines = text.lines().zip(1..);
    lines
        .filter_map(|(line, at)| line.split_once("// !").map(|(_, kind)| (at, kind.trim().to_owned())))
        .collect()
}

/// What is found.
fn found(case: &Case, text: &str) -> Result<Vec<(u32, String)>, String> {
    let vm = Vm::with(Options::tool(case.tool)).map_err(|error| error.to_string())?;
    let module = match vm.load(&case.name, text) {
        Ok(module) => module,
        Err(error) => {
            let ErrorKind::Rejected(list) = error.kind() else { return Err(error.to_string()) };
            return Err(list.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("; "));
        }
    };
    let kernel = module.kernel("k").map_err(|error| error.to_string())?;
    let out = vm.zeros::<u8>(1024).map_err(|error| error.to_string())?;
    let mut launch = Launch::new([case.grid, 1, 1], [case.block, 1, 1]).shared(case.shared);
    launch.params = vec![0; kernel.param_bytes()];
    launch.params[..8].copy_from_slice(&out.address().to_le_bytes());
    vm.launch(&kernel, &launch).map_err(|error| error.to_string())?;
    out.read().map_err(|error| error.to_string())?;
    vm.find_leaks();
    let mut list: Vec<_> =
        vm.findings().iter().map(|f| (f.line.unwrap_or(0), f.kind.name().to_owned())).collect();
    list.sort();
    Ok(list)
}

#[test]
fn planted_errors_are_found_and_mended_ones_are_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sanitize");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder").filter_map(|e| Some(e.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "case"));
    files.sort();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file");
        for case in cases(&text) {
            count += 1;
            for (which, text) in [("wrong", &case.wrong), ("mended", &case.mended)] {
                let expected = expected(text);
                if which == "wrong" && expected.is_empty() {
                    wrong.push(format!("{}: nothing is expected of the wrong text", case.name));
                }
                match found(&case, text) {
                    Ok(list) if list == expected => {}
                    Ok(list) => {
                        wrong.push(format!("{} ({which}): found {list:?}, expected {expected:?}", case.name))
                    }
                    Err(error) => wrong.push(format!("{} ({which}): {error}", case.name)),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "of {count} cases:\n{}", wrong.join("\n"));
    assert!(count >= 130, "only {count} cases");
}

#[test]
fn a_vm_without_tools_finds_nothing_and_a_tool_refuses_native_code() {
    let text = format!("{HEADER}{OPEN}st.global.u32 [%d1+2], %r1;\nret;\n}}\n");
    let vm = Vm::with(Options::tool(Tool::Memcheck)).expect("a device");
    let kernel = vm.load("k.ptx", &text).expect("right").kernel("k").expect("there");
    let out = vm.zeros::<u32>(4).expect("memory");
    let launch = Launch::new([1; 3], [2, 1, 1]).args(&kernel, &[Arg::buffer(&out)]).expect("they fit");
    let refused = vm.launch(&kernel, &launch.clone().engine(ptxvm::Engine::Jit)).expect_err("is refused");
    assert!(refused.to_string().contains("sanitizers"), "{refused}");
    vm.launch(&kernel, &launch).expect("goes on behind the finding");
    let [finding] = &vm.findings()[..] else { panic!("one finding: {:?}", vm.findings()) };
    assert_eq!((finding.kind.name(), finding.count, finding.bytes), ("misaligned", 2, Some(4)));
    assert_eq!(out.read().expect("readable"), [0; 4], "the accesses are left out");
    let text = ptxvm::findings_text(&vm.findings());
    assert!(
        text.starts_with("memcheck: misaligned: ") && text.ends_with("ERROR SUMMARY: 1 errors\n"),
        "{text}"
    );
}

#[test]
fn memory_that_was_not_written_is_found_until_the_host_says_otherwise() {
    let text = format!(
        "{HEADER}{OPEN}ld.global.u32 %r2, [%d1];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra done;\nst.global.u32 [%d1+4], %r2;\n\
         done:\nret;\n}}\n"
    );
    let vm = Vm::with(Options::tool(Tool::Initcheck)).expect("a device");
    let kernel = vm.load("k.ptx", &text).expect("right").kernel("k").expect("there");
    for (written, findings) in [(true, 0), (false, 1)] {
        let out = vm.named_unwritten("out", 8).expect("memory");
        if written {
            out.report_write();
        }
        let launch = Launch::new([1; 3], [1; 3]).args(&kernel, &[Arg::buffer(&out)]).expect("they fit");
        vm.launch(&kernel, &launch).expect("goes on behind the finding");
        assert_eq!(vm.findings().len(), findings, "{:?}", vm.findings());
        assert_eq!(out.read().expect("readable"), [0; 8]);
    }
}
