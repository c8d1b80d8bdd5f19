//! The kernels and targets that `codegen` compiles: the list that both revisions read.
//!
//! Invariant: the list is a text with names of files, so that builds of two revisions compile the same
//! kernels. Its order and contents depend only on the checkout and the options.

use crate::agree::random_texts;
use crate::bench::launched_kernels;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One compilation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// The target, as for `ptxvm run --cpu`.
    pub(super) target: String,
    /// Warps per coarse warp; `None`: the compiler's choice.
    pub(super) team: Option<u32>,
    /// The PTX file.
    pub(super) file: PathBuf,
    /// The kernel.
    pub(super) kernel: String,
    /// Threads of a CTA.
    pub(super) block: [u32; 3],
}

impl Entry {
    /// One line, with tabs between the fields.
    fn line(&self) -> String {
        let Entry { target, team, file, kernel, block: [x, y, z] } = self;
        let team = team.map_or("auto".to_owned(), |team| team.to_string());
        format!("{target}\t{team}\t{}\t{kernel}\t{x}\t{y}\t{z}", file.display())
    }

    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let mut next = || fields.next();
        let target = next()?.to_owned();
        let team = match next()? {
            "auto" => None,
            team => Some(team.parse().ok()?),
        };
        let (file, kernel) = (PathBuf::from(next()?), next()?.to_owned());
        let mut number = || next()?.parse().ok();
        Some(Self { target, team, file, kernel, block: [number()?, number()?, number()?] })
    }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.line().replace('\t', " "))
    }
}

/// The text of a list.
pub(super) fn write(entries: &[Entry]) -> String {
    entries.iter().map(|entry| entry.line() + "\n").collect()
}

/// Parses the output of [`fn@write`].
///
/// # Errors
/// The first malformed line.
pub(super) fn read(text: &str) -> Result<Vec<Entry>, String> {
    let one = |line| Entry::read(line).ok_or_else(|| format!("not a line of a list: {line}"));
    text.lines().map(one).collect()
}

/// A kernel of a file with its CTA shape.
type Launch = (PathBuf, String, [u32; 3]);

/// Every kernel of the benchmark, of the fixtures, of `tests/agree`, and of `random` random programs, which
/// are written to `folder`; for each target and number of warps per coarse warp. With `quick`, kernels
/// outside of the benchmark are compiled for one combination each, in rotation.
///
/// # Errors
/// A file cannot be read or written.
pub(super) fn all(
    folder: &Path,
    (targets, teams): (&[&str], &[Option<u32>]),
    random: u64,
    quick: bool,
) -> Result<Vec<Entry>, String> {
    let root = crate::root();
    let bench: BTreeSet<Launch> = launched_kernels()
        .into_iter()
        .map(|(ptx, kernel, block)| (root.join(format!("xtask/bench/{ptx}.ptx")), kernel.to_owned(), block))
        .collect();
    let mut others = BTreeSet::new();
    fixtures(&root.join("tests/fixtures"), &mut others)?;
    for path in sorted(&root.join("tests/agree"), "ptx")? {
        let text = text_of(&path)?;
        let block = crate::agree::block_of(&text).ok_or_else(|| format!("{}: no launch", path.display()))?;
        others.insert((path, "main".to_owned(), block));
    }
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for (seed, text) in random_texts(random).into_iter().enumerate() {
        let path = folder.join(format!("seed-{seed}.ptx"));
        let block = crate::agree::block_of(&text).ok_or("a random program without a launch")?;
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        others.insert((path, "main".to_owned(), block));
    }
    let combinations: Vec<_> =
        targets.iter().flat_map(|target| teams.iter().map(move |team| (*target, *team))).collect();
    let mut entries = Vec::new();
    let mut add = |(file, kernel, block): &Launch, (target, team): (&str, Option<u32>)| {
        let (file, kernel) = (file.clone(), kernel.clone());
        entries.push(Entry { target: target.to_owned(), team, file, kernel, block: *block });
    };
    for launch in &bench {
        combinations.iter().for_each(|one| add(launch, *one));
    }
    for (at, launch) in others.iter().enumerate() {
        match quick {
            true => add(launch, combinations[at % combinations.len()]),
            false => combinations.iter().for_each(|one| add(launch, *one)),
        }
    }
    entries.sort();
    Ok(entries)
}

/// Kernels of the fixtures' cases, including their other compilations.
fn fixtures(folder: &Path, launches: &mut BTreeSet<Launch>) -> Result<(), String> {
    for path in sorted(&folder.join("cases"), "json")? {
        let text = text_of(&path)?;
        let missing = |what: &str| format!("{}: no {what}", path.display());
        let kernel = after(&text, "\"kernel\":").and_then(quoted).ok_or_else(|| missing("kernel"))?;
        let block = after(&text, "\"block\":").and_then(three).ok_or_else(|| missing("block"))?;
        let ptx = after(&text, "\"ptx\":").and_then(quoted).ok_or_else(|| missing("ptx"))?;
        let variants = after(&text, "\"variants\":").and_then(|rest| rest.split(']').next()).unwrap_or("");
        let variants = variants.split('"').filter(|name| name.ends_with(".ptx"));
        for file in variants.chain([ptx]) {
            let file = [folder.join("ptx").join(file), folder.join(file)].into_iter().find(|f| f.is_file());
            launches.insert((file.ok_or_else(|| missing("file of that name"))?, kernel.to_owned(), block));
        }
    }
    Ok(())
}

fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_once(key).map(|(_, rest)| rest.trim_start())
}

fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.split('"').next()
}

fn three(text: &str) -> Option<[u32; 3]> {
    let list = text.strip_prefix('[')?.split(']').next()?;
    let mut numbers = list.split(',').filter_map(|number| number.trim().parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

fn sorted(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    paths.sort();
    Ok(paths)
}

fn text_of(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let entry = |team| Entry {
            target: "avx512,tuning=zen4".to_owned(),
            team,
            file: PathBuf::from("/a folder/k.ptx"),
            kernel: "k".to_owned(),
            block: [32, 2, 1],
        };
        let entries = vec![entry(None), entry(Some(4))];
        assert_eq!(read(&write(&entries)), Ok(entries));
        assert!(read("avx2\tauto\tk.ptx\tk\t1\t1").is_err(), "a number is missing");
    }

    #[test]
    fn the_quick_list_compiles_every_kernel_for_something() {
        let folder = crate::root().join("target/tmp/codegen-inputs");
        let kernels = |quick| {
            let combinations: (&[&str], &[_]) = (&["avx512", "baseline"], &[None, Some(4)]);
            let entries = all(&folder, combinations, 3, quick).expect("the checkout is whole");
            let count = entries.len();
            let kernels: BTreeSet<_> =
                entries.into_iter().map(|entry| (entry.file, entry.kernel, entry.block)).collect();
            (kernels, count)
        };
        let ((quick, few), (whole, many)) = (kernels(true), kernels(false));
        assert_eq!(quick, whole);
        assert!(few < many && many == 4 * whole.len(), "{few} and {many} of {}", whole.len());
    }
}
