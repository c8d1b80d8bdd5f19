//! `cargo xtask remarks`: the remarks of the compiler on the kernels of the benchmark, of the fixtures and of
//! `tests/agree`, compared with the files under `tests/remarks`. A lost optimisation is a difference;
//! `--bless` writes the current remarks.
//!
//! Invariant: the targets are named, so the remarks are those of every machine. Each kernel is compiled for
//! one shape of CTA.
//!
//! It does not run anything: `agree` and the tests say whether code is right.

use super::inputs::{self, Entry};
use super::{Loaded, SHARED, text_of, write};
use ptxvm::Listing;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The files, the target of each, and whether it has the kernels of the benchmark or the others.
const FILES: [(&str, &str, bool); 3] = [
    ("bench-avx512.txt", "avx512,tuning=zen4", true),
    ("bench-avx2.txt", "avx2,tuning=zen4", true),
    ("others-avx512.txt", "avx512,tuning=zen4", false),
];

/// The subcommand.
pub(crate) fn remarks(args: &[String]) -> Result<(), String> {
    let bless = match args {
        [] => false,
        [bless] if bless == "--bless" => true,
        _ => return Err("usage: cargo xtask remarks [--bless]".to_owned()),
    };
    let folder = crate::root().join("tests/remarks");
    let mut differences = Vec::new();
    for (name, target, bench) in FILES {
        let path = folder.join(name);
        let found = text(target, bench)?;
        if bless {
            write(&path, &found)?;
        } else {
            differences.extend(difference(&path, &found)?);
        }
    }
    match differences.as_slice() {
        [] => Ok(()),
        all => {
            Err(format!("{}\nreview the differences, and run `cargo xtask remarks --bless`", all.join("\n")))
        }
    }
}

/// The remarks of all kernels for a target.
fn text(target: &str, bench: bool) -> Result<String, String> {
    let root = crate::root();
    let entries = inputs::all(&root.join("target/codegen/none"), (&[target], &[None]), 0, false)?;
    let of_bench = |entry: &Entry| entry.file.starts_with(root.join("xtask/bench"));
    let entries: Vec<Entry> = entries.into_iter().filter(|entry| of_bench(entry) == bench).collect();
    let texts = texts(&entries);
    let mut all = format!("Remarks for `--cpu {target}`, written by `cargo xtask remarks --bless`.\n");
    for (Entry { file, kernel, block: [x, y, z], .. }, text) in entries.iter().zip(texts) {
        let file = file.strip_prefix(&root).unwrap_or(file);
        // Writing to a string does not fail.
        let _ = write!(all, "\n== {} {kernel} {x}x{y}x{z}\n{}", file.display(), by_remark(&text));
    }
    Ok(all)
}

/// The lines of `--emit remarks`, those that read alike as one with the numbers of their PTX lines: `23-25
/// 40x2` are 23, 24, 25, and 40 twice. What is no remark stays as it is.
fn by_remark(text: &str) -> String {
    let mut all: Vec<(&str, Vec<(u32, &str)>)> = Vec::new();
    for line in text.lines() {
        let place = line.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
        let placed = place.and_then(|(number, remark)| Some((number.parse().ok()?, remark)));
        let Some((number, remark)) = placed else {
            all.push((line, Vec::new()));
            continue;
        };
        let (remark, times) = match remark.strip_suffix(" times)").and_then(|rest| rest.rsplit_once(" (")) {
            Some((remark, times)) => (remark, times),
            None => (remark, "1"),
        };
        match all.iter_mut().find(|(other, _)| *other == remark) {
            Some((_, places)) => places.push((number, times)),
            None => all.push((remark, vec![(number, times)])),
        }
    }
    let mut text = String::new();
    for (remark, places) in all {
        text += remark;
        let mut rest = places.as_slice();
        while let [(first, times), ..] = rest {
            let follows =
                |(at, (number, other)): (usize, &(u32, &str))| *number == first + at as u32 && other == times;
            let count = rest.iter().enumerate().take_while(|pair| follows(*pair)).count();
            let start = if rest.len() == places.len() { ": " } else { " " };
            text += &format!("{start}{first}");
            if count > 1 {
                text += &format!("-{}", first + count as u32 - 1);
            }
            if *times != "1" {
                text += &format!("x{times}");
            }
            rest = &rest[count..];
        }
        text.push('\n');
    }
    text
}

/// The remarks of each entry, or why there is no code.
fn texts(entries: &[Entry]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(vec![String::new(); entries.len()]);
    let work = || {
        let mut done = Vec::new();
        loop {
            let first = next.fetch_add(SHARED / 4, Ordering::Relaxed);
            let Some(rest) = entries.get(first..).filter(|rest| !rest.is_empty()) else { break };
            let mut device = Loaded::default();
            for (at, entry) in (first..).zip(rest.iter().take(SHARED / 4)) {
                let text = device.text(entry, Listing::Remarks);
                done.push((at, text.unwrap_or_else(str::to_owned)));
            }
        }
        let mut all = all.lock().expect("the other threads do not panic while they hold it");
        done.into_iter().for_each(|(at, text)| all[at] = text);
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    all.into_inner().expect("no thread panicked while it held it")
}

/// The first lines of each kernel that differ.
fn difference(path: &Path, found: &str) -> Result<Vec<String>, String> {
    let expected = text_of(path)?;
    if expected == found {
        return Ok(Vec::new());
    }
    let kernels = |text: &str| -> Vec<String> { text.split("\n== ").map(str::to_owned).collect() };
    let (expected, found) = (kernels(&expected), kernels(found));
    let name = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let mut all = vec![format!("{}:", PathBuf::from(path).display())];
    for kernel in &found {
        let old = expected.iter().find(|other| name(other) == name(kernel));
        if old != Some(kernel) {
            let first = super::first_difference(old.map_or("", String::as_str), kernel);
            all.push(format!("{}\n{first}", name(kernel)));
        }
    }
    for kernel in expected.iter().filter(|kernel| !found.iter().any(|other| name(other) == name(kernel))) {
        all.push(format!("{}: is gone", name(kernel)));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #[test]
    fn remarks_that_read_alike_are_one_line_with_their_places() {
        let text = "kernel: coarsen: missed: no barrier\nline 9: a: applied: b\nline 10: a: applied: b\n\
                    line 11: c: missed: d (3 times)\nline 12: a: applied: b\n";
        let expected = "kernel: coarsen: missed: no barrier\na: applied: b: 9-10 12\nc: missed: d: 11x3\n";
        assert_eq!(super::by_remark(text), expected);
        assert_eq!(super::by_remark("the kernel is too large"), "the kernel is too large\n");
    }

    /// An optimisation that no longer applies to a kernel, or a new one that does.
    #[test]
    fn remarks_of_all_kernels_are_those_in_the_repository() {
        if let Err(message) = super::remarks(&[]) {
            panic!("{message}");
        }
    }
}
