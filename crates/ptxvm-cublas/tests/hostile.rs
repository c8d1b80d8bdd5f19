//! Wrong arguments for every implemented function: none crashes, hangs or panics.
//!
//! The functions' names come from the sources, so none is omitted.

mod support;

use support::{Device, EXECUTION_FAILED, Handle, INVALID_VALUE, NOT_SUPPORTED, SUCCESS, raw};

/// An argument: a small number, or a pointer that is valid, freed, of the host, or unmapped.
fn word(state: &mut u64, right: &[usize]) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let odd = [
        0,
        1,
        2,
        3,
        5,
        16,
        255,
        usize::MAX,
        usize::MAX - 7,
        0x10,
        0xfff8,
        1 << 33,
        1 << 47,
        1 << 60,
        0x0ff0_0000_0000,
    ];
    let choice = (*state >> 20) as usize % (odd.len() + 2 * right.len());
    odd.get(choice).copied().unwrap_or_else(|| right[choice % right.len()])
}

/// The functions that the sources define.
fn names() -> Vec<String> {
    fn collect(folder: &std::path::Path, names: &mut Vec<String>) {
        for file in std::fs::read_dir(folder).expect("the sources are there") {
            let path = file.expect("a file").path();
            if path.is_dir() {
                collect(&path, names);
            } else if !path.ends_with("refused.rs") {
                let text = std::fs::read_to_string(&path).expect("a text");
                let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
                let words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
                names.extend(
                    words.filter(|word| word.starts_with("cublas") && word.len() > 8).map(str::to_owned),
                );
            }
        }
    }
    let mut names = Vec::new();
    collect(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
    // Parts of messages, and functions that return no status.
    names.retain(|name| {
        !["cublasComputeType", "cublasLtEpilogue", "cublasLtOrder", "cublasLtPointerMode", "cublasStatus_t"]
            .contains(&name.as_str())
            && !name.contains("GetStatus")
            && !name.ends_with("GetVersion")
            && !name.contains("GetCudartVersion")
            && !name.contains("InstructionsSetMask")
            && !name.contains("Callback")
    });
    names.sort_unstable();
    names.dedup();
    names
}

/// Runs in a process of its own. Each function prints its result, and contexts are reset.
#[test]
fn nothing_wrong_crashes_or_hangs() {
    const CHILD: &str = "PTXVM_HOSTILE_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return hostile();
    }
    let mut child = std::process::Command::new(std::env::current_exe().expect("a test has a path"));
    child.args(["--exact", "nothing_wrong_crashes_or_hangs", "--nocapture"]).env(CHILD, "1");
    let output = child.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<_> = said.lines().rev().take(5).collect();
    assert!(output.status.success() && !said.contains("ptxvm bug"), "{} after {last:#?}", output.status);
}

fn hostile() {
    let names = names();
    assert!(names.len() > 400, "{} functions", names.len());
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut room = [0usize; 64];
    for name in &names {
        let handle = Handle::new();
        let freed = Device::new(&[0u8; 4096]).at;
        let memory = Device::new(&[1f32; 4096]);
        let pointers = Device::new(&vec![memory.at; 64]);
        let place = room.as_mut_ptr().expose_provenance();
        let right = [memory.at, memory.at + 4096, pointers.at, place, freed, memory.at + 2, handle.0, 4, 2];
        for turn in 0..40 {
            let mut arguments = [0; 20];
            arguments.iter_mut().for_each(|argument| *argument = word(&mut state, &right));
            // In every second turn most arguments are valid.
            if turn % 2 == 0 {
                arguments[0] = handle.0;
            }
            if turn % 4 == 0 {
                for argument in &mut arguments[1..] {
                    if !word(&mut state, &right).is_multiple_of(4) {
                        *argument = [memory.at, 1, 2, place][word(&mut state, &right) % 4];
                    }
                }
            }
            let begun = std::time::Instant::now();
            let status = raw(name, &arguments);
            assert!(
                [0, 1, 3, INVALID_VALUE, EXECUTION_FAILED, NOT_SUPPORTED].contains(&status),
                "{name} gave {status}"
            );
            assert!(begun.elapsed().as_secs() < 20, "{name} took too long");
        }
        // Work that failed in the stream made the context fail.
        raw("cuCtxSynchronize", &[]);
        raw("cublasDestroy_v2", &[handle.0]);
        std::mem::forget((handle, memory, pointers));
        assert_eq!(raw("cuDevicePrimaryCtxReset_v2", &[0]), SUCCESS);
        assert_eq!(raw("cuCtxSetCurrent", &[0]), SUCCESS);
    }
}
