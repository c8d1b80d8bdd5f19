//! The cache of native code on disk, across processes.
#![cfg(feature = "jit")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Reads a table of constants and a variable through their addresses, which differ from process to process,
/// stores the variable's own address in a register pair, and calls a function through a pointer.
const PTX: &str = "
.version 6.4
.target sm_70
.address_size 64
.const .align 4 .u32 table[4] = {10, 20, 30, 40};
.global .align 4 .u32 more[2] = {1000, 2000};
.func (.param .u32 r) twice(.param .u32 x)
{
    .reg .u32 %a;
    ld.param.u32 %a, [x];
    add.u32 %a, %a, %a;
    st.param.u32 [r], %a;
    ret;
}
.visible .entry main(.param .u64 out)
{
    .reg .u32 %r<9>;
    .reg .u64 %rd<9>;
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 3;
    mov.u64 %rd1, table;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.const.u32 %r3, [%rd3];
    ld.global.u32 %r4, [more+4];
    add.u32 %r5, %r3, %r4;
    add.u32 %r5, %r5, %r1;
    mov.u64 %rd4, twice;
    {
        .param .u32 arg;
        .param .u32 res;
        st.param.u32 [arg], %r5;
        proto: .callprototype (.param .u32 _) _ (.param .u32 _);
        call (res), %rd4, (arg), proto;
        ld.param.u32 %r6, [res];
    }
    ld.param.u64 %rd5, [out];
    mul.wide.u32 %rd6, %r1, 4;
    add.u64 %rd7, %rd5, %rd6;
    st.global.u32 [%rd7], %r6;
    ret;
}
";

/// A folder of its own for a test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        fs::write(path.join("kernel.ptx"), PTX).expect("written");
        Self(path)
    }

    fn code(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.join("code")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    fn start(&self, number: u32, cache: &Path, more: &[&str]) -> Child {
        let file = |name: &str| self.0.join(name).to_string_lossy().into_owned();
        let out = format!("out:u4[64]={}", file(&format!("{number}.npy")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
        command.args(["run", &file("kernel.ptx"), "--engine", "jit", "--block", "64", "--format", "json"]);
        command.args(["--arg", &out]).args(more).env("PTXVM_CACHE_DIR", cache);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    }

    /// Waits for the end, checks the result, and says where the code came from.
    fn end(&self, number: u32, child: Child) -> String {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes = fs::read(self.0.join(format!("{number}.npy"))).expect("an array");
        let data = &bytes[bytes.len() - 256..];
        for (tid, word) in data.chunks_exact(4).enumerate() {
            let tid = tid as u32;
            let expected = 2 * (10 * (tid % 4 + 1) + 2000 + tid);
            assert_eq!(u32::from_le_bytes([word[0], word[1], word[2], word[3]]), expected, "thread {tid}");
        }
        let json: Value = serde_json::from_slice(&output.stdout).expect("one object");
        assert_eq!(json["engine"], "jit");
        json["code"].as_str().expect("a word").to_owned()
    }

    fn run(&self, more: &[&str]) -> String {
        let child = self.start(0, &self.0.join("code"), more);
        self.end(0, child)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _leftovers_are_harmless = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_next_process_finds_the_code() {
    let scratch = Scratch::new("next");
    assert_eq!(scratch.run(&[]), "compiled");
    assert_eq!(scratch.code().len(), 1);
    assert_eq!(scratch.run(&[]), "disk");
    // Another shape, another processor, another text.
    assert_eq!(scratch.run(&["--cpu", "baseline"]), "compiled");
    assert_eq!(scratch.run(&["--cpu", "baseline"]), "disk");
    assert_eq!(scratch.code().len(), 2);
    fs::write(scratch.0.join("kernel.ptx"), PTX.replace("%r5, %r5, %r1;", "%r5, %r1, %r5;"))
        .expect("written");
    assert_eq!(scratch.run(&[]), "compiled");
    assert_eq!(scratch.code().len(), 3);
}

#[test]
fn damaged_code_is_made_anew() {
    let scratch = Scratch::new("damaged");
    assert_eq!(scratch.run(&[]), "compiled");
    let file = scratch.code().remove(0);
    let whole = fs::read(&file).expect("code");
    for len in [0, 10, 79, 80, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..len]).expect("written");
        assert_eq!(scratch.run(&[]), "compiled", "cut to {len} bytes");
        assert_eq!(scratch.run(&[]), "disk");
    }
    let mut wrong = whole.clone();
    let middle = wrong.len() / 2;
    wrong[middle] ^= 1;
    fs::write(&file, &wrong).expect("written");
    assert_eq!(scratch.run(&[]), "compiled");
    assert_eq!(fs::read(&file).expect("code"), whole, "the same code is made again");
}

#[test]
fn it_can_be_switched_off() {
    let scratch = Scratch::new("off");
    assert_eq!(scratch.run(&["--no-cache"]), "compiled");
    assert_eq!(scratch.code().len(), 0);
    let child = scratch.start(0, Path::new(""), &[]);
    assert_eq!(scratch.end(0, child), "compiled");
    // A place where no folder can be made.
    fs::write(scratch.0.join("code"), b"a file").expect("written");
    assert_eq!(scratch.run(&[]), "compiled");
    let child = scratch.start(0, Path::new("/proc/no/such/place"), &[]);
    assert_eq!(scratch.end(0, child), "compiled");
}

#[test]
fn several_processes_at_once() {
    let scratch = Scratch::new("several");
    let children: Vec<_> = (0..6).map(|n| (n, scratch.start(n, &scratch.0.join("code"), &[]))).collect();
    for (number, child) in children {
        scratch.end(number, child);
    }
    assert_eq!(scratch.code().len(), 1);
    assert_eq!(scratch.run(&[]), "disk");
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_written_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("read-only");
    assert_eq!(scratch.run(&[]), "compiled");
    let folder = scratch.0.join("code");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).expect("allowed");
    assert_eq!(scratch.run(&[]), "disk");
    // Not kept, unless this user may write everywhere; either way it runs.
    assert_eq!(scratch.run(&["--cpu", "baseline"]), "compiled");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("allowed");
}

/// What another program may leave in the folder: nothing hangs, nothing is followed.
#[cfg(unix)]
#[test]
fn what_is_planted_in_the_folder_does_no_harm() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let scratch = Scratch::new("planted");
    assert_eq!(scratch.run(&[]), "compiled");
    let file = scratch.code().remove(0);
    let precious = scratch.0.join("precious");
    fs::write(&precious, b"precious").expect("written");
    fs::remove_file(&file).expect("it is there");
    assert!(Command::new("mkfifo").arg("-m600").arg(&file).status().expect("it starts").success());
    assert_eq!(scratch.run(&[]), "compiled");
    fs::remove_file(&file).expect("it is there");
    symlink(&precious, &file).expect("made");
    assert_eq!(scratch.run(&[]), "compiled");
    assert_eq!(fs::read(&precious).expect("it is there"), b"precious");
    assert_eq!(scratch.run(&[]), "disk");
    // Others could write there.
    fs::set_permissions(scratch.0.join("code"), fs::Permissions::from_mode(0o770)).expect("allowed");
    assert_eq!(scratch.run(&[]), "compiled");
    fs::set_permissions(scratch.0.join("code"), fs::Permissions::from_mode(0o700)).expect("allowed");
    assert_eq!(scratch.run(&[]), "disk");
    // A FIFO, a file and a link in place of the folder.
    let fifo = scratch.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("it starts").success());
    for place in [&fifo, &precious] {
        let child = scratch.start(0, place, &[]);
        assert_eq!(scratch.end(0, child), "compiled");
    }
    symlink(scratch.0.join("code"), scratch.0.join("link")).expect("made");
    let child = scratch.start(0, &scratch.0.join("link"), &[]);
    assert_eq!(scratch.end(0, child), "disk");
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_not_used_is_named_with_the_reason() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("named");
    let cache = scratch.0.join("code");
    let stats = |place: &Path| {
        let output = scratch.start(0, place, &["--stats"]).wait_with_output().expect("it ends");
        let json: Value = serde_json::from_slice(&output.stdout).expect("one object");
        (String::from_utf8_lossy(&output.stderr).into_owned(), json["stats"]["cache_refused"].clone())
    };
    for _made_and_read in 0..2 {
        let (text, refused) = stats(&cache);
        assert!(!text.contains("not kept"), "{text}");
        assert_eq!(refused, Value::Null);
    }
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).expect("allowed");
    let file = scratch.0.join("kernel.ptx");
    for (place, why) in [(&cache, "other users can write to it (mode 777)"), (&file, "Not a directory")] {
        let expected = format!("{}: {why}", place.display());
        let (text, refused) = stats(place);
        assert!(text.contains(&format!("code is not kept on disk: {expected}")), "{text}");
        assert!(refused.as_str().is_some_and(|refused| refused.starts_with(&expected)), "{refused}");
    }
}

/// Processes are killed at any time while they make code, write it and read it; what they leave is right or
/// not used.
#[test]
fn killed_processes_leave_a_folder_that_can_be_read() {
    let scratch = Scratch::new("killed");
    let cache = scratch.0.join("code");
    // The times of a whole run, in steps that go through it.
    let start = std::time::Instant::now();
    assert_eq!(scratch.run(&[]), "compiled");
    let whole = start.elapsed();
    for turn in 0..24u32 {
        // Every other time the code is there already.
        if turn % 2 == 0 {
            for file in scratch.code() {
                let _ = fs::remove_file(file);
            }
        }
        let mut children: Vec<_> = (0..2).map(|n| scratch.start(n, &cache, &[])).collect();
        for child in &mut children {
            std::thread::sleep(whole * turn / 24);
            child.kill().expect("it is ours");
            child.wait().expect("it ends");
        }
        let source = scratch.run(&[]);
        assert!(source == "compiled" || source == "disk", "{source}");
        assert_eq!(scratch.run(&[]), "disk");
    }
}

/// The process ends while code is compiled in the background, or before, or after: it neither hangs nor
/// crashes.
#[test]
fn a_process_may_end_while_code_is_made() {
    let scratch = Scratch::new("end");
    let mut body = String::new();
    for n in 0..1200 {
        body +=
            &format!("    fma.rn.f32 %f{}, %f{}, %f{}, 0f3F80{n:04x};\n", n % 7, (n + 1) % 7, (n + 3) % 7);
    }
    let text = format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry main(.param .u64 out, .param .u32 n)\n{{
    .reg .pred %p;\n    .reg .u32 %r<3>;\n    .reg .f32 %f<7>;\n    .reg .u64 %rd<2>;
    ld.param.u64 %rd1, [out];\n    ld.param.u32 %r1, [n];\nagain:\n{body}
    sub.u32 %r1, %r1, 1;\n    setp.ne.u32 %p, %r1, 0;\n    @%p bra again;
    st.global.f32 [%rd1], %f1;\n    ret;\n}}\n"
    );
    let file = scratch.0.join("long.ptx");
    fs::write(&file, text).expect("written");
    for n in [5, 20, 40, 60, 80, 100, 150, 200] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
        command.arg("run").arg(&file).args(["--no-cache", "--threads", "2", "--block", "256"]);
        command.args(["--arg", "zeros:4", "--arg", &format!("u32:{n}")]);
        let output = command.output().expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{n}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
