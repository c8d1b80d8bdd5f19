//! Sanitizers of a program's kernels and calls (`PTXVM_TOOL`): what is found, and that it is not lost however
//! the process ends.
//!
//! The library reads the variables when it starts, so each program is a process of its own: this test with a
//! mode.

mod support;

use std::path::PathBuf;
use std::process::{Command, Output};
use support::Api;

const NULL: usize = 0;
/// Set in the process that is the program.
const CHILD: &str = "PTXVM_TEST_TOOLS";

const PTX: &str = "\
.version 6.4
.target sm_70
.address_size 64
.visible .entry put(.param .u64 p, .param .u64 q)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [p];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r1;
    ret;
}
.visible .entry copy(.param .u64 p, .param .u64 q)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [p];
    ld.param.u64 %d4, [q];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d1, %d2;
    add.u64 %d5, %d4, %d2;
    ld.global.u32 %r2, [%d5];
    st.global.u32 [%d3], %r2;
    ret;
}
";
/// Lines of its stores.
const PUT: u32 = 12;
const COPY: u32 = 26;

/// A context with the module.
struct Program {
    api: Api,
    context: usize,
    module: usize,
}

impl Program {
    fn new() -> Self {
        let (api, context) = Api::with_context();
        let text = std::ffi::CString::new(PTX).expect("no zeros");
        let module = api.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()));
        Self { api, context, module }
    }

    fn launch(&self, kernel: &str, threads: u32, stream: usize, (p, q): (u64, u64)) {
        let function = self.api.function(self.module, kernel);
        let params = [&raw const p, &raw const q];
        let shape = (function, 1u32, 1u32, 1u32, threads, 1u32, 1u32, 0u32, stream, params.as_ptr(), NULL);
        self.api.ok("cuLaunchKernel", shape);
    }

    fn copy_out(&self, from: u64, words: usize) {
        let mut words = vec![0u32; words];
        self.api.ok("cuMemcpyDtoH_v2", (words.as_mut_ptr(), from, 4 * words.len()));
    }

    fn free(&self, address: u64) {
        self.api.ok("cuMemFree_v2", (address,));
    }

    fn stream(&self) -> usize {
        self.api.make("cuStreamCreate", |out: *mut usize| (out, 1u32))
    }
}

/// The program of a mode.
fn run(mode: &str) {
    let program = Program::new();
    let api = &program.api;
    let p = api.alloc(128);
    match mode {
        "clean" => {
            let q = api.alloc(128);
            api.ok("cuMemsetD8_v2", (q, 7u8, 128usize));
            program.launch("copy", 32, NULL, (p, q));
            api.ok("cuMemcpyDtoD_v2", (q, p, 64usize));
            program.copy_out(p, 32);
            program.copy_out(q, 32);
            program.free(q);
            program.free(p);
        }
        "two_warps" => {
            let (to, from) = (api.alloc(256), api.alloc(256));
            api.ok("cuMemsetD8_v2", (from, 7u8, 256usize));
            program.launch("copy", 64, NULL, (to, from));
            program.copy_out(to, 64);
            [to, from, p].into_iter().for_each(|memory| program.free(memory));
        }
        "outside" | "aborts" | "replaced" => {
            program.launch("put", 40, NULL, (p, 0));
            api.ok("cuCtxSynchronize", ());
            match mode {
                "aborts" => std::process::abort(),
                "replaced" => {
                    use std::os::unix::process::CommandExt as _;
                    panic!("{}", Command::new("true").exec());
                }
                _ => program.free(p),
            }
        }
        // The program does not wait for the launch.
        "unwaited" => program.launch("put", 40, NULL, (p, 0)),
        "freed_twice" => {
            program.free(p);
            assert_eq!(api.call("cuMemFree_v2", (p,)), 1);
        }
        "freed_twice_in_a_stream" => {
            let stream = program.stream();
            api.ok("cuMemFreeAsync", (p, stream));
            assert_eq!(api.call("cuMemFreeAsync", (p, stream)), 1);
        }
        "freed_inside" => {
            assert_eq!(api.call("cuMemFree_v2", (p + 16,)), 1);
            program.free(p);
        }
        "used_after_free" => {
            program.free(p);
            program.launch("put", 1, NULL, (p, 0));
            api.ok("cuCtxSynchronize", ());
            assert_eq!(api.call("cuMemsetD8_v2", (p, 0u8, 4usize)), 1);
        }
        "copied_too_much" => {
            let words = [0u32; 33];
            assert_eq!(api.call("cuMemcpyHtoD_v2", (p, words.as_ptr(), 132usize)), 1);
            program.free(p);
        }
        "leaks" => {
            api.make("cuMemAllocManaged", |out: *mut u64| (out, 200usize, 1u32));
            api.make("cuMemAllocAsync", |out: *mut u64| (out, 300usize, NULL));
            api.make("cuArrayCreate_v2", |out: *mut usize| (out, [16usize, 4, 1 << 32 | 32].as_ptr()));
        }
        "leaks_with_its_context" => api.ok("cuCtxDestroy_v2", (program.context,)),
        "copied_uninitialised" => {
            program.copy_out(p, 32);
            program.free(p);
        }
        "stored_uninitialised" => {
            let q = api.alloc(128);
            program.launch("put", 16, NULL, (q, 0));
            program.launch("copy", 32, NULL, (p, q));
            program.copy_out(p, 16);
            program.copy_out(p, 32);
            program.free(q);
            program.free(p);
        }
        "copies_what_it_never_reads" => {
            let (q, r) = (api.alloc(128), api.alloc(128));
            program.launch("put", 16, NULL, (q, 0));
            api.ok("cuMemcpyDtoD_v2", (r, q, 128usize));
            program.launch("copy", 32, NULL, (p, r));
            program.copy_out(p, 16);
            [p, q, r].iter().for_each(|at| program.free(*at));
        }
        "shares_with_the_host" => {
            let managed = api.make("cuMemAllocManaged", |out: *mut u64| (out, 128usize, 1u32));
            let pinned = api.make("cuMemHostAlloc", |out: *mut u64| (out, 128usize, 0u32));
            let mut own = [1u32; 32];
            let registered = own.as_mut_ptr() as u64;
            api.ok("cuMemHostRegister_v2", (registered, 128usize, 0u32));
            for shared in [managed, pinned, registered] {
                // Undefined bytes of the device go there, and the host may write others without a call.
                let undefined = api.alloc(128);
                program.launch("copy", 32, NULL, (shared, undefined));
                program.launch("copy", 32, NULL, (p, shared));
                program.copy_out(p, 32);
                program.free(undefined);
            }
            api.ok("cuMemHostUnregister", (registered,));
            api.ok("cuMemFreeHost", (pinned,));
            program.free(managed);
            program.free(p);
        }
        "ordered_streams" => {
            let (one, two) = (program.stream(), program.stream());
            let event = api.make("cuEventCreate", |out: *mut usize| (out, 0u32));
            let q = api.alloc(128);
            for _ in 0..10 {
                program.launch("put", 32, one, (p, 0));
                api.ok("cuEventRecord", (event, one));
                api.ok("cuStreamWaitEvent", (two, event, 0u32));
                program.launch("copy", 32, two, (q, p));
                api.ok("cuEventRecord", (event, two));
                api.ok("cuStreamWaitEvent", (one, event, 0u32));
            }
            api.ok("cuCtxSynchronize", ());
            program.free(q);
            program.free(p);
        }
        other => panic!("there is no mode `{other}`"),
    }
}

#[test]
fn program() {
    if let Ok(mode) = std::env::var(CHILD) {
        run(&mode);
    }
}

/// A file that is removed.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-tools-test-{}-{name}", std::process::id()));
        let _not_there = std::fs::remove_file(&path);
        Self(path)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap_or_default()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _not_there = std::fs::remove_file(&self.0);
    }
}

fn start(mode: &str, variables: &[(&str, &std::ffi::OsStr)]) -> Output {
    let mut program = Command::new(std::env::current_exe().expect("this program"));
    program.args(["--exact", "program", "--nocapture"]).env(CHILD, mode);
    program.env_remove("PTXVM_REPORT").env_remove("PTXVM_FINDINGS");
    program.envs(variables.iter().copied()).output().expect("it starts")
}

/// Tools and engines that find the same mistakes. Racecheck together with other tools watches the
/// interpreter.
const WATCHED: [(&str, &str); 2] = [("all", "auto"), ("memcheck,initcheck,synccheck", "jit")];

/// What the report of a program says that ends by itself: kind and line of each finding.
fn found(mode: &str, (tools, engine): (&str, &str)) -> Vec<(String, Option<u32>)> {
    let report = File::new(mode);
    let variables = [
        ("PTXVM_TOOL", tools.as_ref()),
        ("PTXVM_ENGINE", engine.as_ref()),
        ("PTXVM_REPORT", report.0.as_os_str()),
    ];
    let output = start(mode, &variables);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{mode}: {err}");
    let text = report.text();
    let (lines, summary) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(summary, format!("{{\"summary\":{{\"errors\":{}}}}}", lines.len()), "{mode}: {text}");
    assert!(err.ends_with(&format!("ERROR SUMMARY: {} errors\n", lines.len())), "{mode}: {err}");
    let value = |line: &str, key: &str| {
        let (_, rest) = line.split_once(&format!("\"{key}\":")).unwrap_or_else(|| panic!("{line}"));
        rest.split([',', '}']).next().unwrap_or_default().trim_matches('"').to_owned()
    };
    lines.iter().map(|line| (value(line, "kind"), value(line, "line").parse().ok())).collect()
}

#[test]
fn mistakes_of_kernels_and_calls_are_found() {
    type Found = [(&'static str, Option<u32>)];
    let cases: [(&str, &Found); 11] = [
        ("outside", &[("out-of-bounds", Some(PUT))]),
        ("unwaited", &[("out-of-bounds", Some(PUT)), ("leak", None)]),
        ("freed_twice", &[("double-free", None)]),
        ("freed_twice_in_a_stream", &[("double-free", None)]),
        ("freed_inside", &[("invalid-free", None)]),
        ("used_after_free", &[("use-after-free", Some(PUT)), ("use-after-free", None)]),
        ("copied_too_much", &[("out-of-bounds", None)]),
        ("leaks", &[("leak", None); 4]),
        ("leaks_with_its_context", &[("leak", None)]),
        ("copied_uninitialised", &[("uninitialized-read", None)]),
        ("stored_uninitialised", &[("uninitialized-read", Some(COPY))]),
    ];
    for (mode, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|(kind, line)| ((*kind).to_owned(), *line)).collect();
        for watched in WATCHED {
            assert_eq!(found(mode, watched), expected, "{mode} {watched:?}");
        }
    }
}

#[test]
fn programs_without_mistakes_are_clean() {
    for mode in
        ["clean", "two_warps", "copies_what_it_never_reads", "shares_with_the_host", "ordered_streams"]
    {
        for watched in WATCHED.into_iter().chain([("racecheck", "jit")]) {
            assert_eq!(found(mode, watched), [], "{mode} {watched:?}");
        }
    }
}

#[test]
fn tools_watch_kernels_in_native_code() {
    for tools in ["memcheck", "initcheck", "synccheck", "racecheck", "memcheck,initcheck,synccheck"] {
        let variables = [("PTXVM_TOOL", tools), ("PTXVM_ENGINE", "jit"), ("PTXVM_STATS", "1")];
        let output = start("two_warps", &variables.map(|(name, value)| (name, value.as_ref())));
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| line.starts_with("ptxvm: `copy`: ")).unwrap_or_default();
        // Under racecheck the interpreter executes the first store, before which it copies the memory.
        let before = line.split(" of them in native code").next().unwrap_or_default();
        let native = before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0_u32);
        assert!(native > 0, "{tools}: {said}");
    }
}

#[test]
fn what_was_found_is_in_the_journal_however_the_process_ends() {
    for mode in ["aborts", "replaced"] {
        let journal = File::new(mode);
        let variables = [("PTXVM_TOOL", "memcheck".as_ref()), ("PTXVM_FINDINGS", journal.0.as_os_str())];
        start(mode, &variables);
        let text = journal.text();
        let last = text.lines().last().unwrap_or_default();
        // Told, eight lanes outside, and the place.
        assert!(last.starts_with("[\"finding\","), "{mode}: {text}");
        assert!(
            last.contains(",0,1,8,") && last.contains("\\\"kind\\\":\\\"out-of-bounds\\\""),
            "{mode}: {text}"
        );
    }
}

#[test]
fn suppressions_and_wrong_values_of_variables() {
    let (rules, report) = (File::new("rules"), File::new("suppressed"));
    std::fs::write(&rules.0, format!("kernel=put line={PUT}\n")).expect("written");
    let variables = [
        ("PTXVM_TOOL", "memcheck".as_ref()),
        ("PTXVM_REPORT", report.0.as_os_str()),
        ("PTXVM_SUPPRESSIONS", rules.0.as_os_str()),
    ];
    assert!(start("outside", &variables).status.success());
    assert_eq!(report.text(), "{\"summary\":{\"errors\":0,\"suppressed\":1}}\n");
    let said = |variables: &[(&str, &str)]| {
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_ref())).collect();
        String::from_utf8_lossy(&start("clean", &variables).stderr).into_owned()
    };
    for (name, value) in [("PTXVM_TOOL", "memchecks"), ("PTXVM_FILL", "xyz"), ("PTXVM_SEED", "-1")] {
        assert!(said(&[(name, value)]).contains(&format!("ignored `{name}={value}`")), "{name}");
    }
    let missing = said(&[("PTXVM_TOOL", "memcheck"), ("PTXVM_SUPPRESSIONS", "/no/such/file")]);
    assert!(missing.contains("ignored suppressions: /no/such/file"), "{missing}");
}
