//! Every implemented function of the runtime gets wrong arguments: none crashes, hangs or panics.
//!
//! The functions' names come from the sources, so none is omitted. The program that calls them is C
//! (`wrong.c`). Without a C compiler the test prints that and passes.

mod support;

use std::io::Write as _;
use std::process::Stdio;

/// The functions that the sources define.
fn names() -> Vec<String> {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut names = Vec::new();
    for file in std::fs::read_dir(sources).expect("the sources are there") {
        let path = file.expect("a file").path();
        // Unsupported functions read no arguments.
        if path.ends_with("refused.rs") {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a text");
        let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let is_name = |word: &str| word.trim_start_matches('_').starts_with("cuda") && word.len() > 6;
        let defined = words.windows(2).filter(|pair| pair[0] == "fn" && is_name(pair[1]));
        names.extend(defined.map(|pair| pair[1].to_owned()));
        let twins = words.iter().filter(|word| word.ends_with("_ptsz") || word.ends_with("_ptds"));
        names.extend(twins.filter(|word| is_name(word)).map(|word| (*word).to_owned()));
    }
    // It returns a structure, which needs a caller that knows its type.
    names.retain(|name| name != "cudaCreateChannelDesc");
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn nothing_wrong_crashes_or_hangs() {
    let names = names();
    assert!(names.len() > 130, "{} functions", names.len());
    let Some(folder) = support::program("wrong") else { return };
    let mut child = folder.command();
    let mut child =
        child.arg("300").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.as_mut().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all((names.join("\n") + "\n").as_bytes()).expect("it reads");
    drop(input);
    let mut out = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().expect("a pipe"), &mut out).expect("text");
    let status = child.wait().expect("it ends");
    let last = out.lines().last().unwrap_or_default();
    assert!(status.success(), "{status} in `{last}`");
    let wrong: Vec<_> =
        out.lines().filter(|line| line.starts_with("! ") && !line.starts_with("! calls")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    println!("{last} of {} functions", names.len());
}
