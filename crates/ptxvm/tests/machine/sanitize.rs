//! Planted errors and their corrected twins under the sanitizers: `tests/sanitize/*.case`.
//!
//! Invariant: an erroneous text gives exactly the findings that it announces, a corrected one gives none.

use crate::relative::relative;
use ptxvm::{Arg, Engine, ErrorKind, Finding, Launch, Options, Tool, Vm};
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
    let (findings, _) = findings(case, text, Engine::Auto)?;
    let mut list: Vec<_> = findings.iter().map(|f| (f.line.unwrap_or(0), f.kind.name().to_owned())).collect();
    list.sort();
    Ok(list)
}

/// The findings, and whether native code has executed instructions.
fn findings(case: &Case, text: &str, engine: Engine) -> Result<(Vec<Finding>, bool), String> {
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
    let mut launch = Launch::new([case.grid, 1, 1], [case.block, 1, 1]).shared(case.shared).engine(engine);
    launch.params = vec![0; kernel.param_bytes()];
    launch.params[..8].copy_from_slice(&out.address().to_le_bytes());
    let report = vm.launch(&kernel, &launch).map_err(|error| error.to_string())?;
    out.read().map_err(|error| error.to_string())?;
    vm.find_leaks();
    Ok((vm.findings(), report.ran.native))
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

/// Compares the findings of a tool in native code with those in the interpreter, with all that they say, for
/// the cases of some files. Kernels whose events it needs have no native code, and name the tool. Returns how
/// many kernels native code has executed, and how many it has not.
fn in_both_engines(tool: Tool, files: &[&str]) -> (usize, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sanitize");
    let mut wrong = Vec::new();
    let (mut native, mut interpreted) = (0, 0);
    for file in files {
        let text = std::fs::read_to_string(folder.join(file)).expect("a file");
        for case in cases(&text).into_iter().filter(|case| case.tool == tool) {
            for text in [&case.wrong, &case.mended] {
                let (expected, _) = findings(&case, text, Engine::Interp).expect("it runs");
                match findings(&case, text, Engine::Jit) {
                    Ok((found, ran)) => {
                        native += usize::from(ran);
                        let (found, expected) = (relative(&found), relative(&expected));
                        if found != expected {
                            wrong.push(format!("{}: found {found}\nexpected {expected}", case.name));
                        }
                    }
                    Err(error) if error.contains(tool.name()) => interpreted += 1,
                    Err(error) => wrong.push(format!("{}: {error}", case.name)),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    (native, interpreted)
}

#[test]
fn memcheck_finds_the_same_in_native_code() {
    let (native, interpreted) =
        in_both_engines(Tool::Memcheck, &["memcheck.case", "spaces.case", "native.case"]);
    assert!(native >= 60 && interpreted >= 1, "{native} in native code, {interpreted} not");
}

#[test]
fn initcheck_finds_the_same_in_native_code() {
    let (native, interpreted) =
        in_both_engines(Tool::Initcheck, &["initcheck.case", "values.case", "native.case"]);
    assert!(native >= 80 && interpreted >= 1, "{native} in native code, {interpreted} not");
}

#[test]
fn a_misaligned_access_is_left_out_in_both_engines() {
    let text = format!("{HEADER}{OPEN}st.global.u32 [%d1+2], %r1;\nret;\n}}\n");
    let vm = Vm::with(Options::tool(Tool::Memcheck)).expect("a device");
    let kernel = vm.load("k.ptx", &text).expect("right").kernel("k").expect("there");
    let out = vm.zeros::<u32>(4).expect("memory");
    let launch = Launch::new([1; 3], [2, 1, 1]).args(&kernel, &[Arg::buffer(&out)]).expect("they fit");
    for engine in [Engine::Interp, Engine::Jit] {
        vm.launch(&kernel, &launch.clone().engine(engine)).expect("goes on behind the finding");
    }
    let [finding] = &vm.findings()[..] else { panic!("one finding: {:?}", vm.findings()) };
    assert_eq!((finding.kind.name(), finding.count, finding.bytes), ("misaligned", 4, Some(4)));
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

/// A launch of the kernel `k` under memcheck in native code, with these parameters of 64 bits.
fn native(vm: &Vm, text: &str, params: &[u64]) -> Result<bool, String> {
    let kernel = vm.load("k.ptx", text).expect("right").kernel("k").expect("there");
    let mut launch = Launch::new([2, 1, 1], [64, 1, 1]).engine(Engine::Jit);
    launch.params = params.iter().flat_map(|value| value.to_le_bytes()).collect();
    let report = vm.launch(&kernel, &launch).map_err(|error| error.to_string())?;
    Ok(report.ran.native)
}

/// Kernels in which memcheck follows addresses as they run say so, and run in the interpreter.
#[test]
fn kernels_whose_addresses_memcheck_follows_are_interpreted() {
    let cases = [
        ("st.global.u64 [%d1], %d1;", "the address stored in line 9"),
        (
            ".shared .b32 a[8];\n.shared .b32 b[8];\nmov.u32 %r2, a;\nmov.u32 %r3, b;\nsetp.eq.u32 %p1, %r1, 0;\n\
             selp.u32 %r2, %r2, %r3, %p1;\nst.shared.u32 [%r2], %r1;",
            "the address in line 15, which varies",
        ),
        ("{\n.param .b32 x;\nst.param.b32 [x], %r1;\ncall f, (x);\n}", "its calls"),
    ];
    for (body, why) in cases {
        let callee = ".func f(.param .b32 x) { ret; }\n";
        let open = OPEN.replacen(
            ".visible",
            &format!("{}.visible", if body.contains("call") { callee } else { "" }),
            1,
        );
        let text = format!("{HEADER}{open}{body}\nret;\n}}\n");
        let vm = Vm::with(Options::tool(Tool::Memcheck)).expect("a device");
        let out = vm.zeros::<u32>(64).expect("memory");
        let error = native(&vm, &text, &[out.address()]).expect_err("has no native code");
        assert!(error.contains(why), "{error}, expected {why}");
        let kernel = vm.load("k.ptx", &text).expect("right").kernel("k").expect("there");
        let launch = Launch::new([1; 3], [64, 1, 1]).args(&kernel, &[Arg::buffer(&out)]).expect("they fit");
        let report = vm.launch(&kernel, &launch).expect("it runs");
        assert!(!report.ran.native && report.ran.why_not.is_some_and(|said| said.contains(why)));
    }
}

/// A parameter of 64 bits that the kernel multiplies is taken for a number. A launch in which it is an
/// address runs in the interpreter, which knows what it is.
#[test]
fn parameters_are_numbers_or_addresses() {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 out, .param .u64 n)\n{{\n.reg .b32 %r<4>; .reg .b64 %d<8>;\n\
         ld.param.u64 %d1, [out];\nld.param.u64 %d2, [n];\nmov.u32 %r1, %tid.x;\ncvt.u64.u32 %d3, %r1;\n\
         mul.lo.u64 %d3, %d3, %d2;\nadd.u64 %d4, %d1, %d3;\nst.global.u32 [%d4], %r1;\nret;\n}}\n"
    );
    let vm = Vm::with(Options::tool(Tool::Memcheck)).expect("a device");
    let out = vm.zeros::<u32>(64).expect("memory");
    assert_eq!(native(&vm, &text, &[out.address(), 4]), Ok(true));
    assert!(vm.findings().is_empty(), "{:?}", vm.findings());
    assert_eq!(native(&vm, &text, &[out.address(), out.address()]), Ok(false));
    let [finding] = &vm.findings()[..] else { panic!("one finding: {:?}", vm.findings()) };
    assert_eq!(finding.kind.name(), "out-of-bounds");
}

/// An address in another buffer than the one that its parameter points to is found in native code.
#[test]
fn a_neighbouring_buffer_is_out_of_bounds_in_native_code() {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 a, .param .u64 b)\n{{\n.reg .b32 %r<4>; .reg .b64 %d<8>;\n\
         ld.param.u64 %d1, [a];\nld.param.u64 %d2, [b];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d3, %r1, 4;\n\
         add.u64 %d4, %d1, %d3;\nadd.u64 %d5, %d2, %d3;\nst.global.u32 [%d5], %r1;\nld.global.u32 %r2, [%d4+DISTANCE];\n\
         st.global.u32 [%d5], %r2;\nret;\n}}\n"
    );
    let mut found = Vec::new();
    for engine in [Engine::Interp, Engine::Jit] {
        let vm = Vm::with(Options::tool(Tool::Memcheck)).expect("a device");
        let [a, b] = [0; 2].map(|_| vm.zeros::<u32>(1024).expect("memory"));
        let text = text.replace("DISTANCE", &(b.address() as i64 - a.address() as i64).to_string());
        let kernel = vm.load("k.ptx", &text).expect("right").kernel("k").expect("there");
        let args = [Arg::buffer(&a), Arg::buffer(&b)];
        let launch =
            Launch::new([3, 1, 1], [128, 1, 1]).engine(engine).args(&kernel, &args).expect("they fit");
        let report = vm.launch(&kernel, &launch).expect("goes on behind the finding");
        assert_eq!(report.ran.native, engine == Engine::Jit);
        assert_eq!(b.read().expect("readable")[..128], [0; 128], "the loads give zeros");
        found.push(relative(&vm.findings()));
    }
    assert_eq!(found[0], found[1]);
    assert!(
        found[0].contains("out-of-bounds: read of 4 bytes outside") && found[0].contains("count:       384")
    );
}

/// The findings of a kernel under tools, with a parameter that is the address of 4096 zero bytes; and whether
/// native code has executed instructions.
fn under(
    tools: &[Tool],
    (name, text): (&str, &str),
    (grid, block): (u32, u32),
    (engine, seed): (Engine, u64),
) -> Result<(String, bool), String> {
    let vm = Vm::with(Options::tools(tools.iter().copied())).map_err(|error| error.to_string())?;
    let module = vm.load(name, text).map_err(|error| error.to_string())?;
    let kernel = module.kernel("k").map_err(|error| error.to_string())?;
    let out = vm.zeros::<u8>(4096).map_err(|error| error.to_string())?;
    let launch = Launch::new([grid, 1, 1], [block, 1, 1]).engine(engine).seed(seed);
    let launch = launch.args(&kernel, &[Arg::buffer(&out)]).map_err(|error| error.to_string())?;
    let report = vm.launch(&kernel, &launch).map_err(|error| error.to_string())?;
    Ok((relative(&vm.findings()), report.ran.native))
}

/// The planted errors of synccheck and their twins have the same findings in native code.
#[test]
fn synccheck_finds_the_same_in_native_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sanitize/sync");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "ptx"))
        .collect();
    files.sort();
    let (mut wrong, mut native, mut interpreted) = (Vec::new(), 0, 0);
    for file in files {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let planted = std::fs::read_to_string(&file).expect("a file");
        let launch = planted.lines().find_map(|line| line.strip_prefix("// launch: ")).expect("a launch");
        let (grid, block) = launch.split_once(' ').expect("CTAs and threads");
        let shape = (number(grid), number(block));
        let mended = |line: &str| match line.strip_prefix("//+") {
            Some(added) => added.to_owned(),
            None if line.ends_with("//-") => String::new(),
            None => line.to_owned(),
        };
        let twin: String = planted.lines().map(|line| mended(line) + "\n").collect();
        // In another order than the natural one, native code runs warps one by one.
        for (text, seeds) in [(&planted, 0..2), (&twin, 0..1)] {
            for seed in seeds {
                let run = |engine| under(&[Tool::Synccheck], (&name, text), shape, (engine, seed));
                let (expected, _) = run(Engine::Interp).expect("it runs");
                match run(Engine::Jit) {
                    Ok((found, ran)) => {
                        native += usize::from(ran);
                        if found != expected {
                            wrong.push(format!("{name}, seed {seed}: found {found}\nexpected {expected}"));
                        }
                    }
                    Err(error) if error.contains("synccheck") => interpreted += 1,
                    Err(error) => wrong.push(format!("{name}: {error}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(native >= 45 && interpreted >= 1, "{native} in native code, {interpreted} not");
}

/// A CTA without mistakes stays in native code under both tools: barriers, shuffles, a divergent branch.
#[test]
fn clean_barriers_stay_in_native_code() {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<4>;\n\
         .shared .b32 s[256];\nld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, s;\n\
         add.u32 %r3, %r3, %r2;\nst.shared.u32 [%r3], %r1;\nbar.sync 0;\nxor.b32 %r4, %r2, 128;\nmov.u32 %r5, s;\n\
         add.u32 %r5, %r5, %r4;\nld.shared.u32 %r6, [%r5];\nsetp.lt.u32 %p1, %r1, 77;\n@%p1 bra over;\n\
         mul.lo.u32 %r6, %r6, 3;\nover:\nshfl.sync.bfly.b32 %r7, %r6, 16, 31, -1;\nbar.sync 0;\n\
         mul.wide.u32 %d2, %r1, 4;\nadd.u64 %d2, %d1, %d2;\nst.global.u32 [%d2], %r7;\nret;\n}}\n"
    );
    let vm = Vm::with(Options::tools([Tool::Memcheck, Tool::Synccheck])).expect("a device");
    let kernel = vm.load("k.ptx", &text).expect("right").kernel("k").expect("there");
    let out = vm.zeros::<u32>(256).expect("memory");
    let launch = Launch::new([40, 1, 1], [256, 1, 1]).engine(Engine::Jit);
    let launch = launch.args(&kernel, &[Arg::buffer(&out)]).expect("they fit");
    let report = vm.launch(&kernel, &launch).expect("it runs");
    assert!(vm.findings().is_empty(), "{:?}", vm.findings());
    assert_eq!(report.ran.native_instructions, report.warp_instructions);
    assert_eq!(report.ran.fallback_instructions, 0);
    let plain = Vm::new().expect("a device");
    let kernel = plain.load("k.ptx", &text).expect("right").kernel("k").expect("there");
    let expected = plain.zeros::<u32>(256).expect("memory");
    let launch = Launch::new([40, 1, 1], [256, 1, 1]).engine(Engine::Interp);
    let launch = launch.args(&kernel, &[Arg::buffer(&expected)]).expect("they fit");
    plain.launch(&kernel, &launch).expect("it runs");
    assert_eq!(out.read().expect("readable"), expected.read().expect("readable"));
}

/// Findings of a launch on several OS threads are those of one thread: each describes the first CTA that it
/// happened in.
#[test]
fn findings_of_several_threads_are_in_the_order_of_ctas() {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;\n\
         .shared .b32 a[64];\n.shared .b32 b[64];\nld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n\
         shl.b32 %r3, %r1, 2;\nmov.u32 %r4, a;\nadd.u32 %r4, %r4, %r3;\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d2, %d1, %d2;\n\
         and.b32 %r5, %r2, 7;\nsetp.ne.u32 %p1, %r5, 5;\n@%p1 bra next;\nst.shared.u32 [%r4+256], %r1;\n\
         next:\nand.b32 %r5, %r2, 15;\nsetp.ne.u32 %p1, %r5, 3;\n@%p1 bra last;\nst.global.u32 [%d2+3900], %r1;\n\
         last:\nst.shared.u32 [%r4], %r1;\nret;\n}}\n"
    );
    let found = |engine, threads| {
        let vm = Vm::with(Options::tool(Tool::Memcheck)).expect("a device");
        let kernel = vm.load("k.ptx", &text).expect("right").kernel("k").expect("there");
        let out = vm.zeros::<u8>(4096).expect("memory");
        let launch = Launch::new([1000, 1, 1], [64, 1, 1]).engine(engine).threads(threads);
        let launch = launch.args(&kernel, &[Arg::buffer(&out)]).expect("they fit");
        let report = vm.launch(&kernel, &launch).expect("goes on behind the findings");
        (relative(&vm.findings()), report.threads)
    };
    let (expected, one) = found(Engine::Interp, 4);
    assert_eq!(one, 1);
    for _ in 0..5 {
        assert_eq!(found(Engine::Jit, 4), (expected.clone(), 4));
    }
    assert_eq!(found(Engine::Jit, 1), (expected, 1));
}

/// A launch in native code under initcheck, which must be native alone if `native` is set. Returns the
/// findings as text.
fn defined(
    text: &str,
    shape: [u32; 2],
    buffers: impl Fn(&Vm) -> Vec<ptxvm::Buffer<u8>>,
    native: bool,
) -> String {
    let vm = Vm::with(Options::tool(Tool::Initcheck)).expect("a device");
    let kernel = vm.load("k.ptx", text).expect("right").kernel("k").expect("there");
    let buffers = buffers(&vm);
    let args: Vec<Arg<'_>> = buffers.iter().map(Arg::buffer).collect();
    let launch = Launch::new([shape[0], 1, 1], [shape[1], 1, 1]).engine(Engine::Jit);
    let report = vm.launch(&kernel, &launch.args(&kernel, &args).expect("they fit")).expect("it runs");
    assert!(report.ran.native);
    if native {
        assert_eq!(report.ran.native_instructions, report.warp_instructions);
        assert_eq!(report.ran.fallback_instructions, 0);
    }
    buffers.iter().for_each(|buffer| _ = buffer.read().expect("readable"));
    relative(&vm.findings())
}

/// Copies `n` words from the first buffer to the second.
const COPY: &str = ".visible .entry k(.param .u64 from, .param .u64 to)\n{\n.reg .b32 %r<8>; .reg .b64 %d<8>;\n\
    ld.param.u64 %d1, [from];\nld.param.u64 %d2, [to];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n\
    mad.lo.u32 %r4, %r2, %r3, %r1;\nmul.wide.u32 %d3, %r4, 4;\nadd.u64 %d4, %d1, %d3;\nadd.u64 %d5, %d2, %d3;\n\
    ld.global.u32 %r5, [%d4];\nst.global.u32 [%d5], %r5;\nret;\n}\n";

/// Buffers of 8 MB, of which most of the undefined bits are those of mapped pages.
#[test]
fn initcheck_marks_what_native_code_stores() {
    const BYTES: u64 = 8 << 20;
    let text = format!("{HEADER}{COPY}");
    let unwritten = |vm: &Vm, bytes| vm.named_unwritten("buffer", bytes).expect("memory");
    let all = [BYTES as u32 / 4 / 256, 256];
    // Everything is copied: the second buffer is defined.
    let found =
        defined(&text, all, |vm| vec![vm.zeros(BYTES as usize).expect("memory"), unwritten(vm, BYTES)], true);
    assert!(found.contains("0 errors"), "{found}");
    // One CTA is missing: its part of the second buffer is undefined when the host reads it.
    let most = [all[0] - 1, all[1]];
    let found = defined(
        &text,
        most,
        |vm| vec![vm.zeros(BYTES as usize).expect("memory"), unwritten(vm, BYTES)],
        true,
    );
    assert!(found.contains("1024 uninitialised bytes of") && found.contains("1 errors"), "{found}");
    // Copies of undefined bytes are no mistake, but the host must not read them.
    let found = defined(&text, [2, 64], |vm| vec![unwritten(vm, 512), unwritten(vm, 512)], false);
    assert!(found.contains("an uninitialised value is stored, and copied to the host"), "{found}");
}

/// A launch on several OS threads finds the same as on one.
#[test]
fn initcheck_on_several_threads_finds_the_same() {
    let text = format!(
        "{HEADER}.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;\n\
         .shared .b32 s[64];\nld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n\
         shl.b32 %r3, %r1, 2;\nmov.u32 %r4, s;\nadd.u32 %r4, %r4, %r3;\nand.b32 %r5, %r2, 7;\nsetp.eq.u32 %p1, %r5, 5;\n\
         @%p1 bra next;\nst.shared.u32 [%r4], %r1;\nnext:\nld.shared.u32 %r6, [%r4];\nsetp.gt.u32 %p2, %r6, 900;\n\
         @%p2 bra done;\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d2, %d1, %d2;\nst.global.u32 [%d2], %r6;\ndone:\nret;\n}}\n"
    );
    let found = |engine, threads| {
        let vm = Vm::with(Options::tool(Tool::Initcheck)).expect("a device");
        let kernel = vm.load("k.ptx", &text).expect("right").kernel("k").expect("there");
        let out = vm.zeros::<u8>(4096).expect("memory");
        let launch = Launch::new([1000, 1, 1], [64, 1, 1]).engine(engine).threads(threads);
        let launch = launch.args(&kernel, &[Arg::buffer(&out)]).expect("they fit");
        let report = vm.launch(&kernel, &launch).expect("goes on behind the findings");
        (relative(&vm.findings()), report.threads)
    };
    let (expected, one) = found(Engine::Interp, 4);
    assert_eq!(one, 1);
    assert!(expected.contains("count:       8000"), "{expected}");
    for _ in 0..5 {
        assert_eq!(found(Engine::Jit, 4), (expected.clone(), 4));
    }
    assert_eq!(found(Engine::Jit, 1), (expected, 1));
}
