//! `ptxvm sanitize --suppressions` and `--fill`, as a user calls them.

use std::path::PathBuf;
use std::process::{Command, Output};

/// A folder that is removed.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptxvm-tools-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), text).expect("written");
    }

    fn ptxvm(&self, arguments: &str) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
        program.current_dir(&self.0).args(arguments.split_whitespace()).output().expect("it starts")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _leftovers_are_harmless = std::fs::remove_dir_all(&self.0);
    }
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Two mistakes: line 11 stores out of bounds, line 12 reads shared memory that nothing wrote, which line 13
/// stores.
const WRONG: &str = "\
.version 6.4
.target sm_70
.address_size 64
.visible .entry wrong(.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    .shared .align 4 .b32 s[2];
    mov.u32 %r1, 7;
    ld.param.u64 %d1, [out];
    st.global.u32 [%d1+16], %r1;
    ld.shared.v2.b32 {%r2, %r3}, [s];
    st.global.v2.b32 [%d1], {%r2, %r3};
    ret;
}
";

#[test]
fn suppressions_cover_findings() {
    let folder = Folder::new("suppressions");
    folder.write("wrong.ptx", WRONG);
    let sanitize = |rules: &str, format: &str| {
        folder.write("rules", rules);
        let tail = "wrong.ptx --arg out:u4[4]=o.npy";
        folder.ptxvm(&format!("sanitize --tool all --suppressions rules --format {format} {tail}"))
    };
    let summary = |rules: &str| {
        let output = sanitize(rules, "human");
        let text = err(&output);
        let lines: Vec<&str> = text.lines().rev().take(2).collect();
        (output.status.code(), lines.into_iter().rev().collect::<Vec<_>>().join("|"))
    };
    let some = |text: &str| text.to_owned();
    assert_eq!(summary("# nothing\n"), (Some(4), some("|ERROR SUMMARY: 2 errors")));
    assert_eq!(summary("kind=race\n"), (Some(4), some("|ERROR SUMMARY: 2 errors")));
    let one = (Some(4), some("suppressed: 1|ERROR SUMMARY: 1 errors"));
    assert_eq!(summary("kernel=wrong line=11\n"), one);
    assert_eq!(summary("tool=initcheck\n"), one);
    assert_eq!(summary("kernel=w* file=*.ptx\n"), (Some(0), some("suppressed: 2|ERROR SUMMARY: 0 errors")));
    let json = sanitize("kernel=wrong", "json");
    let out = String::from_utf8(json.stdout).expect("UTF-8");
    assert_eq!(out, "{\"summary\":{\"errors\":0,\"suppressed\":2}}\n");
}

#[test]
fn a_wrong_file_of_suppressions_is_status_2_with_the_place() {
    let folder = Folder::new("wrong-suppressions");
    folder.write("wrong.ptx", WRONG);
    let refused = |rules: &[u8], place: &str| {
        folder.write("rules", rules);
        let output = folder.ptxvm("sanitize --tool all --suppressions rules wrong.ptx --arg zeros:16");
        assert_eq!(output.status.code(), Some(2), "{place}");
        assert!(err(&output).contains(place), "{place}: {}", err(&output));
    };
    refused(b"kind=race\nkind=rase\n", "rules:2:1: `rase` is no kind");
    refused(b"kind=race line=4\n  kernel=\"k\n", "rules:2:3: the quote is not closed");
    refused(b"race\n", "rules:1:1: `race` is no condition");
    refused(b"kind=race\nkernel=\xff\n", "rules:2: the text is not UTF-8");
    let missing = folder.ptxvm("sanitize --tool all --suppressions none wrong.ptx --arg zeros:16");
    assert_eq!(missing.status.code(), Some(2));
    assert!(err(&missing).contains("cannot read `none`"), "{}", err(&missing));
}

#[test]
fn undefined_memory_begins_with_the_pattern() {
    let folder = Folder::new("fill");
    let text = "\
.version 6.4
.target sm_70
.address_size 64
.global .b32 g;
.extern .func (.param .b64 r) malloc (.param .b64 n);
.visible .entry reads(.param .u64 out, .param .u64 zeros)
{
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    .shared .align 4 .b32 s[2];
    .local .align 4 .b32 l[2];
    ld.param.u64 %d1, [out];
    ld.param.u64 %d2, [zeros];
    ld.shared.b32 %r1, [s];
    ld.local.b32 %r2, [l+4];
    ld.global.b32 %r3, [g];
    ld.global.b32 %r4, [%d2];
    st.global.v4.b32 [%d1], {%r1, %r2, %r3, %r4};
    { .param .b64 n; .param .b64 r; mov.u64 %d3, 8; st.param.b64 [n], %d3; call.uni (r), malloc, (n); ld.param.b64 %d4, [r]; }
    ld.b32 %r5, [%d4];
    st.global.b32 [%d1+16], %r5;
    ret;
}
";
    folder.write("reads.ptx", text);
    let reads = |fill: &str| {
        let tail = "reads.ptx --arg out:u4[6]=o.npy --arg zeros:16";
        let output = folder.ptxvm(&format!("run --engine interp {fill} {tail}"));
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let bytes = std::fs::read(folder.0.join("o.npy")).expect("written");
        let words = bytes[bytes.len() - 24..].chunks(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
        words.collect::<Vec<_>>()
    };
    assert_eq!(reads(""), [0; 6]);
    // Variables without an initialiser, and what the command line fills, are zero.
    assert_eq!(reads("--fill deadbeef"), [0xdead_beef, 0xdead_beef, 0, 0, 0xdead_beef, 0]);
    // The pattern repeats from the start of each; where in local memory the variable lies is not said.
    let three = reads("--fill 0x010203");
    assert!([0x0102_0301, 0x0203_0102, 0x0301_0203].contains(&three[1]), "{three:x?}");
    assert_eq!((three[0], three[4]), (0x0102_0301, 0x0102_0301), "{three:x?}");
    for wrong in ["abc", "0x", "5g"] {
        let output = folder.ptxvm(&format!("run --fill {wrong} reads.ptx --arg zeros:16 --arg zeros:16"));
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(err(&output).contains("--fill"), "{wrong}: {}", err(&output));
    }
}
