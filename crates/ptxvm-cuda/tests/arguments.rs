//! Every implemented function gets every wrong argument: null, implausible addresses, unmapped memory, device
//! memory that was freed or never allocated, unknown and destroyed handles and handles of other kinds, sizes
//! of zero and huge sizes; and no context, a destroyed one, and one with the error of a trap.
//!
//! No call crashes, hangs, takes memory or panics, and none succeeds with a wrong argument. `arguments.txt`
//! lists the parameters of each function; a function that is missing there fails the test. The calls are made
//! in child processes, which record each call, so that a call that ends the process is named.

mod support;
#[path = "support/table.rs"]
mod table;
#[path = "support/world.rs"]
mod world;

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::Api;
use table::{Parameter, implemented, table};
use world::{Given, Kind, World};

/// The file in which the child records its calls.
const NOTES: &str = "PTXVM_TEST_NOTES";
/// The number of the child: each calls every [`PARTS`]th function.
const PART: &str = "PTXVM_TEST_PART";
const PARTS: usize = 4;
/// A call that takes longer counts as one that hangs. Chosen: far above what a loaded machine needs for any
/// of them.
const LONGEST: Duration = Duration::from_secs(60);
/// Functions whose call fails even with valid arguments, because the environment of the test has no capture,
/// no peer, no parameter that was set, ...
const REFUSED: &[&str] = &[
    "cuCtxDisablePeerAccess",
    "cuCtxEnablePeerAccess",
    "cuDeviceGetLuid",
    "cuDeviceGetP2PAttribute",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxRelease_v2",
    "cuFuncSetAttribute",
    "cuGetExportTable",
    "cuGraphAddMemFreeNode",
    "cuGraphBatchMemOpNodeGetParams",
    "cuGraphBatchMemOpNodeSetParams",
    "cuGraphChildGraphNodeGetGraph",
    "cuGraphEventRecordNodeGetEvent",
    "cuGraphEventRecordNodeSetEvent",
    "cuGraphEventWaitNodeGetEvent",
    "cuGraphEventWaitNodeSetEvent",
    "cuGraphExecBatchMemOpNodeSetParams",
    "cuGraphExecChildGraphNodeSetParams",
    "cuGraphExecEventRecordNodeSetEvent",
    "cuGraphExecEventWaitNodeSetEvent",
    "cuGraphExecHostNodeSetParams",
    "cuGraphExecKernelNodeSetParams",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphExecMemcpyNodeSetParams",
    "cuGraphExecMemsetNodeSetParams",
    "cuGraphHostNodeGetParams",
    "cuGraphHostNodeSetParams",
    "cuGraphKernelNodeCopyAttributes",
    "cuGraphKernelNodeGetAttribute",
    "cuGraphKernelNodeGetParams",
    "cuGraphKernelNodeGetParams_v2",
    "cuGraphKernelNodeSetAttribute",
    "cuGraphKernelNodeSetParams",
    "cuGraphKernelNodeSetParams_v2",
    "cuGraphMemAllocNodeGetParams",
    "cuGraphMemFreeNodeGetParams",
    "cuGraphMemcpyNodeGetParams",
    "cuGraphMemcpyNodeSetParams",
    "cuGraphMemsetNodeGetParams",
    "cuGraphMemsetNodeSetParams",
    "cuGraphNodeFindInClone",
    "cuGraphNodeSetEnabled",
    "cuGraphReleaseUserObject",
    "cuIpcCloseMemHandle",
    "cuIpcGetEventHandle",
    "cuIpcOpenEventHandle",
    "cuIpcOpenMemHandle",
    "cuIpcOpenMemHandle_v2",
    "cuKernelSetAttribute",
    "cuLaunch",
    "cuLaunchGrid",
    "cuLaunchGridAsync",
    "cuLibraryGetUnifiedFunction",
    "cuLinkComplete",
    "cuMemAddressFree",
    "cuMemExportToShareableHandle",
    "cuMemGetAccess",
    "cuMemGetAllocationPropertiesFromHandle",
    "cuMemImportFromShareableHandle",
    "cuMemMap",
    "cuMemPoolExportPointer",
    "cuMemPoolExportToShareableHandle",
    "cuMemPoolImportFromShareableHandle",
    "cuMemPoolImportPointer",
    "cuMemRelease",
    "cuMemRetainAllocationHandle",
    "cuMemSetAccess",
    "cuMemUnmap",
    "cuProfilerInitialize",
    "cuStreamEndCapture",
    "cuStreamUpdateCaptureDependencies",
    "cuStreamUpdateCaptureDependencies_v2",
    "cuSurfRefGetArray",
    "cuTexObjectGetResourceViewDesc",
    "cuTexRefGetAddress_v2",
    "cuTexRefGetArray",
    "cuTexRefGetMipmappedArray",
];
/// Words in the names of functions that change the test's objects.
const CHANGES: &[&str] =
    &["Destroy", "Unload", "Free", "Reset", "Detach", "Release", "egister", "Capture", "Child"];

#[test]
fn the_table_has_every_function() {
    let table = table();
    let names = implemented();
    assert!(names.len() > 300, "{} functions", names.len());
    let missing: Vec<_> = names.iter().filter(|(_, row)| !table.contains_key(row)).collect();
    assert!(missing.is_empty(), "not in arguments.txt: {missing:?}");
    let unknown: Vec<_> = table.keys().filter(|row| !names.iter().any(|(_, known)| known == *row)).collect();
    assert!(unknown.is_empty(), "not implemented, but in arguments.txt: {unknown:?}");
}

#[test]
fn nothing_wrong_crashes_hangs_or_succeeds() {
    if std::env::var_os(NOTES).is_some() {
        return;
    }
    let program = std::env::current_exe().expect("a test has a path");
    let notes =
        |part: usize| std::env::temp_dir().join(format!("ptxvm-arguments-{}-{part}", std::process::id()));
    let start = |part: usize| {
        let mut child = Command::new(&program);
        child.args(["--exact", "calls", "--nocapture"]).env(NOTES, notes(part)).env(PART, part.to_string());
        child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the test starts")
    };
    let children: Vec<_> = (0..PARTS).map(start).collect();
    for (part, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().expect("it can be waited for");
        let last = std::fs::read(notes(part)).unwrap_or_default();
        let last = String::from_utf8_lossy(&last).trim_matches([' ', '\0']).to_owned();
        let _gone = std::fs::remove_file(notes(part));
        let said = String::from_utf8_lossy(&output.stderr);
        // Traps and rejected texts are reported before. The message of a panic comes last.
        let said = match said.find("panicked at") {
            Some(at) => said.get(at..at + 4000).unwrap_or(&said[at..]),
            None => &said[said.floor_char_boundary(said.len().saturating_sub(2000))..],
        };
        assert!(output.status.success(), "{}, in `{last}`\n{said}", output.status);
    }
}

/// The work of the child.
#[test]
fn calls() {
    let Some(notes) = std::env::var_os(NOTES) else { return };
    let notes = std::fs::File::create(notes).expect("the file can be made");
    let table = table();
    let api = Api::open();
    let mut test = Test { api, notes, wrong: Vec::new(), calls: 0, longest: Duration::ZERO };
    let mut failed = Vec::new();
    let part: usize = std::env::var(PART).map_or(0, |part| part.parse().expect("a number"));
    let mut functions = implemented();
    let rows: BTreeSet<_> = functions.iter().map(|(_, row)| *row).collect();
    let mine: BTreeSet<_> = rows.into_iter().skip(part).step_by(PARTS).collect();
    functions.retain(|(_, row)| mine.contains(row));
    for (name, row) in functions {
        let parameters = &table[row];
        if !test.with_one_wrong(name, parameters) {
            failed.push(row);
        }
        test.with_structures(name, parameters);
        test.without_a_context(name, parameters);
    }
    failed.sort_unstable();
    failed.dedup();
    println!("{} calls, the longest took {:?}", test.calls, test.longest);
    assert!(test.wrong.is_empty(), "{} wrong answers:\n{}", test.wrong.len(), test.wrong.join("\n"));
    let refused: Vec<_> = REFUSED.iter().copied().filter(|name| mine.contains(name)).collect();
    assert_eq!(failed, refused, "functions that fail with what they take");
    assert!(test.longest < LONGEST, "{:?}", test.longest);
    let most = peak_memory();
    assert!(most < 512 << 20, "{most} bytes resident");
}

/// The peak memory of the process in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0) * 1024
}

struct Test {
    api: Api,
    notes: std::fs::File,
    wrong: Vec<String>,
    calls: usize,
    longest: Duration,
}

impl Test {
    fn call(&mut self, name: &str, arguments: &[usize]) -> i32 {
        let mut note = format!("{name}({arguments:x?})");
        note.truncate(400);
        let _unwritten = self.notes.write_all_at(format!("{note:400}").as_bytes(), 0);
        let began = Instant::now();
        let status = self.api.call_words(name, arguments);
        self.longest = self.longest.max(began.elapsed());
        self.calls += 1;
        // A panic becomes `CUDA_ERROR_UNKNOWN`.
        if !(0..999).contains(&status) {
            self.wrong.push(format!("{note}: {status}"));
        }
        status
    }

    /// Calls a function with valid arguments, and then with one wrong argument at a time. Returns whether the
    /// first call succeeds.
    fn with_one_wrong(&mut self, name: &str, parameters: &[Parameter]) -> bool {
        let mut world = World::new(self.api);
        let changes = CHANGES.iter().any(|word| name.contains(word));
        let right = world.right(parameters.iter().map(|parameter| &parameter.kind));
        let succeeds = self.call(name, &right) == 0;
        for (index, parameter) in parameters.iter().enumerate() {
            for (turn, must_fail) in
                world.wrong(&parameter.kind).into_iter().map(|(_, fails)| fails).enumerate()
            {
                if changes {
                    world = World::new(self.api);
                }
                world.enter();
                let mut arguments = world.right(parameters.iter().map(|parameter| &parameter.kind));
                arguments[index] = world.wrong(&parameter.kind)[turn].0;
                let status = self.call(name, &arguments);
                if status == 0 && must_fail && !parameter.optional {
                    let value = arguments[index];
                    self.wrong
                        .push(format!("{name} succeeds with {value:#x} for its argument {}", index + 1));
                }
            }
        }
        succeeds
    }

    /// Calls a function with each word of a structure wrong, one at a time.
    fn with_structures(&mut self, name: &str, parameters: &[Parameter]) {
        for (index, parameter) in parameters.iter().enumerate() {
            if !matches!(parameter.kind, Kind::In(_)) {
                continue;
            }
            let world = World::new(self.api);
            for variation in world.structures(&parameter.kind) {
                world.enter();
                let mut arguments = world.right(parameters.iter().map(|parameter| &parameter.kind));
                let given = Given::new(variation);
                arguments[index] = given.address();
                self.call(name, &arguments);
            }
        }
    }

    /// Calls a function without a context, with a destroyed one, and with one that has the error of a trap.
    fn without_a_context(&mut self, name: &str, parameters: &[Parameter]) {
        let world = World::new(self.api);
        let arguments = world.right(parameters.iter().map(|parameter| &parameter.kind));
        self.api.ok("cuCtxSetCurrent", (0usize,));
        while self.api.call("cuCtxPopCurrent_v2", (0usize,)) == 0 {}
        self.call(name, &arguments);
        let world = World::new(self.api);
        let arguments = world.right(parameters.iter().map(|parameter| &parameter.kind));
        world.strike();
        self.call(name, &arguments);
        let world = World::new(self.api);
        let arguments = world.right(parameters.iter().map(|parameter| &parameter.kind));
        world.destroy_elsewhere();
        self.call(name, &arguments);
        self.call(name, &vec![0; parameters.len()]);
        self.call(name, &vec![usize::MAX; parameters.len()]);
    }
}
