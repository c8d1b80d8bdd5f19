//! racecheck in native code: the findings are those of the interpreter, word for word.
//!
//! The programs are the planted races of `tests/sanitize/race`, with their mended twins, in several
//! schedules, and random ones. What the tool finds in the interpreter is tested in `ptx-sanitize`; here only
//! the engines are compared.
#![cfg(feature = "jit")]

use crate::levels;

use crate::relative::relative;
use ptxvm::{Arg, Engine, Launch, Options, Tool, Vm};
use std::path::Path;

/// Schedules that are tried.
const SEEDS: [u64; 3] = [0, 1, 2];

/// The texts of a file: with the error, and without.
fn texts(planted: &str) -> [String; 2] {
    let mended = |line: &str| match line.strip_prefix("//+") {
        Some(added) => added.to_owned(),
        None if line.ends_with("//-") => String::new(),
        None => line.to_owned(),
    };
    [planted.to_owned(), planted.lines().map(|line| mended(line) + "\n").collect()]
}

/// The findings of a launch, whether native code executed it, and what it left in memory.
fn run(
    text: &str,
    [grid, block]: [u32; 2],
    engine: Engine,
    seed: u64,
) -> Result<(String, bool, Vec<u32>), String> {
    let target = levels::of(text).into_iter().next();
    let options = Options { target, cache: levels::cache(), ..Options::tool(Tool::Racecheck) };
    let vm = Vm::with(options).map_err(|error| error.to_string())?;
    let module = vm.load("k.ptx", text).map_err(|error| error.to_string())?;
    let kernel = module.kernel("k").map_err(|error| error.to_string())?;
    let out = vm.zeros::<u32>(1024).map_err(|error| error.to_string())?;
    let launch = Launch::new([grid, 1, 1], [block, 1, 1]).engine(engine).seed(seed);
    let launch = launch.args(&kernel, &[Arg::buffer(&out)]).map_err(|error| error.to_string())?;
    let report = vm.launch(&kernel, &launch).map_err(|error| error.to_string())?;
    Ok((relative(&vm.findings()), report.ran.native, out.read().map_err(|error| error.to_string())?))
}

#[test]
fn planted_races_are_found_alike_in_both_engines() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sanitize/race");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder").filter_map(|e| Some(e.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "ptx"));
    files.sort();
    let (mut wrong, mut native, mut repeated, mut interpreted) = (Vec::new(), 0, 0, 0);
    for file in files {
        let planted = std::fs::read_to_string(&file).expect("a file");
        let launch = planted.lines().find_map(|line| line.strip_prefix("// launch:")).expect("a launch");
        let mut launch = launch.split_whitespace().map(|word| word.parse().expect("a number"));
        let shape = [launch.next().expect("CTAs"), launch.next().expect("threads")];
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        for (which, text) in ["planted", "mended"].into_iter().zip(texts(&planted)) {
            for seed in SEEDS {
                let (expected, _, _) = run(&text, shape, Engine::Interp, seed).expect("it runs");
                match run(&text, shape, Engine::Jit, seed) {
                    Ok((found, ran, _)) => {
                        *(if ran { &mut native } else { &mut repeated }) += 1;
                        if ran && !expected.contains(" 0 errors") || found != expected {
                            wrong.push(format!(
                                "{name} ({which}, {seed}): {ran} {found}\nexpected {expected}"
                            ));
                        }
                    }
                    Err(error) if error.contains("racecheck") => interpreted += 1,
                    Err(error) => wrong.push(format!("{name} ({which}, {seed}): {error}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        native >= 60 && repeated >= 120,
        "{native} native, {repeated} repeated, {interpreted} interpreted"
    );
}

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// An access of a random program, whose address is in 1024 bytes of shared memory or of the buffer.
fn access(random: &mut Random, atomics: bool, at: u64) -> String {
    let (ty, bytes) =
        random.of(&[("u32", 4), ("u32", 4), ("u32", 4), ("u8", 1), ("u16", 2), ("u64", 8), ("v4.u32", 16)]);
    let (ty, bytes) = if atomics { ("u32", 4) } else { (ty, bytes) };
    let slots = 1024 / bytes;
    let k = random.below(64);
    // The element that a thread accesses.
    let index = match random.below(7) {
        0 | 1 => format!("add.u32 %i, %t, {k};"),
        2 => format!("xor.b32 %i, %t, {k};"),
        3 => format!("and.b32 %i, %t, {k};"),
        4 => format!("mov.u32 %i, {k};"),
        5 => format!("mad.lo.u32 %i, %t, {}, {k};", 2 * k + 1),
        _ => format!("mad.lo.u32 %i, %t, %t, {k};"),
    };
    let mask = slots - 1;
    let mut text = format!("{index}\nand.b32 %i, %i, {mask};\nmul.lo.u32 %i, %i, {bytes};\n");
    let shared = random.below(2) == 0;
    if shared {
        text += "mov.u32 %a, tile;\nadd.u32 %a, %a, %i;\n";
    } else {
        // Mostly each CTA has a part of its own.
        let part = if random.below(4) == 0 { "0" } else { "1024" };
        text += &format!("mad.lo.u32 %i, %c, {part}, %i;\ncvt.u64.u32 %d2, %i;\nadd.u64 %d2, %d1, %d2;\n");
    }
    let (space, address) = if shared { ("shared", "[%a]") } else { ("global", "[%d2]") };
    let (class, value) = match ty {
        "u8" | "u16" => ("%h", "%h0".to_owned()),
        "u64" => ("%d", "%d3".to_owned()),
        "v4.u32" => ("", "{%r1, %r2, %r3, %r4}".to_owned()),
        _ => ("%r", "%r1".to_owned()),
    };
    let different = random.below(2) == 0 && class == "%r";
    text += if different { "mov.u32 %r1, %t;\n" } else { "mov.u32 %r1, 7;\n" };
    let guard = if random.below(4) == 0 { "@%q " } else { "" };
    text += &match random.below(5) {
        0 | 1 if atomics => format!("{guard}atom.{space}.add.u32 %r5, {address}, 1;\n"),
        0..=2 => format!("{guard}ld.{space}.{ty} {value}, {address};\n"),
        _ => format!("{guard}st.{space}.{ty} {address}, {value};\n"),
    };
    match random.below(4) {
        0 => {
            let test =
                random.of(&["setp.lt.u32 %p, %t, 20;", "setp.eq.u32 %p, %t, 3;", "setp.ge.u32 %p, %t, 32;"]);
            format!("{test}\n@!%p bra L{at};\n{text}L{at}:\n")
        }
        _ => text,
    }
}

/// A random program of accesses and barriers, and its launch.
fn program(number: u64) -> (String, [u32; 2]) {
    let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let atomics = random.below(3) == 0;
    let barriers = random.of(&[1, 2, 4]);
    let mut body = String::new();
    for at in 0..3 + random.below(8) {
        let inner = access(&mut random, atomics, at);
        let waits = random.below(4) < barriers;
        let wait = if waits { "bar.sync 0;\n" } else { "" };
        body += &match random.below(5) {
            0 => format!(
                "mov.u32 %n, 0;\nLOOP{at}:\n{inner}{wait}add.u32 %n, %n, 1;\nsetp.lt.u32 %p2, %n, 3;\n@%p2 bra LOOP{at};\n"
            ),
            _ => format!("{inner}{wait}"),
        };
    }
    let text = format!(
        ".version 7.1\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .shared .align 16 .b8 tile[1024];\n.reg .pred %p, %p2, %q;\n.reg .b16 %h<2>;\n.reg .b32 %t, %c, %i, %a, %n;\n\
         .reg .b32 %r<8>;\n.reg .b64 %d<8>;\nld.param.u64 %d1, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %c, %ctaid.x;\n\
         and.b32 %i, %t, 1;\nsetp.eq.u32 %q, %i, 0;\nmov.u16 %h0, 1;\nmov.u64 %d3, 9;\nmov.u32 %r2, 2;\nmov.u32 %r3, 3;\n\
         mov.u32 %r4, 4;\n{body}ret;\n}}\n"
    );
    let launch = [1 + random.below(3) as u32, random.of(&[32, 64, 64, 96, 128, 48])];
    (text, launch)
}

/// Programs whose accesses may race, or do not, and whose barriers may order them, or not.
#[test]
fn random_programs_have_the_same_findings_in_both_engines() {
    let count = std::env::var("RACES").map_or(40, |count| count.parse().expect("a number"));
    let (mut racing, mut native) = (0, 0);
    for number in 1..=count {
        let (text, launch) = program(number);
        let (expected, _, left) = run(&text, launch, Engine::Interp, 0).expect("it runs");
        let (found, ran, has) =
            run(&text, launch, Engine::Jit, 0).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(found, expected, "{number}: {launch:?}\n{text}");
        assert_eq!(has, left, "{number}: {launch:?}\n{text}");
        let clean = expected.contains(" 0 errors");
        assert!(clean || !ran, "{number}: native code has missed a race\n{text}");
        racing += u64::from(!clean);
        native += u64::from(ran);
    }
    assert!(racing >= count / 4 && native >= count / 8, "{racing} race, {native} in native code");
}

/// A kernel of whose CTAs the last one races, after all have changed global memory in place.
const IN_PLACE: &str = "\
.version 7.1
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .shared .align 4 .b8 tile[256];
    .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %d<8>;
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.u32 %r3, %r2, 64, %r1;
    mul.wide.u32 %d2, %r3, 4;
    add.u64 %d3, %d1, %d2;
    ld.global.u32 %r4, [%d3];
    add.u32 %r4, %r4, 1;
    st.global.u32 [%d3], %r4;
    shl.b32 %r5, %r1, 2;
    mov.u32 %r6, tile;
    add.u32 %r7, %r6, %r5;
    st.shared.u32 [%r7], %r4;
    xor.b32 %r8, %r5, 128;
    add.u32 %r8, %r6, %r8;
    setp.eq.u32 %p1, %r2, 15;
    @%p1 bra NEXT;
    bar.sync 0;
NEXT:
    ld.shared.u32 %r9, [%r8];
    add.u32 %r9, %r9, %r4;
    st.global.u32 [%d3], %r9;
    ret;
}
";

/// A launch that is repeated has the effect of one launch, and later launches of the kernel are not tried in
/// native code.
#[test]
fn a_repeated_launch_has_one_effect() {
    let run = |engine| {
        let vm = Vm::with(Options::tool(Tool::Racecheck)).expect("a device");
        let kernel = vm.load("k.ptx", IN_PLACE).expect("right").kernel("k").expect("there");
        let out = vm.zeros::<u32>(1024).expect("memory");
        let launch = |grid| {
            let launch = Launch::new([grid, 1, 1], [64, 1, 1]).engine(engine);
            let launch = launch.args(&kernel, &[Arg::buffer(&out)]).expect("they fit");
            vm.launch(&kernel, &launch).expect("it runs").ran.native
        };
        let ran = [launch(15), launch(16), launch(15)];
        (out.read().expect("readable"), relative(&vm.findings()), ran)
    };
    let (expected, findings, _) = run(Engine::Interp);
    assert!(findings.contains("missing:     barrier"), "{findings}");
    assert_eq!(run(Engine::Jit), (expected, findings, [true, false, false]));
}

/// Of a buffer of several parts that are kept on their own, all are restored.
#[test]
fn large_buffers_are_restored() {
    let run = |engine| {
        let vm = Vm::with(Options::tool(Tool::Racecheck)).expect("a device");
        let text = IN_PLACE.replace(", 15;", ", 1023;");
        let kernel = vm.load("k.ptx", &text).expect("right").kernel("k").expect("there");
        let words: Vec<u32> = (0..1 << 16).collect();
        let out = vm.buffer(&words).expect("memory");
        let launch = Launch::new([1024, 1, 1], [64, 1, 1]).engine(engine);
        let launch = launch.args(&kernel, &[Arg::buffer(&out)]).expect("they fit");
        let ran = vm.launch(&kernel, &launch).expect("it runs").ran.native;
        (out.read().expect("readable"), relative(&vm.findings()), ran)
    };
    let (expected, findings, _) = run(Engine::Interp);
    assert_eq!(run(Engine::Jit), (expected, findings, false));
}
