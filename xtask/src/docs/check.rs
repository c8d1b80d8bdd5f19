//! The checks of the documentation that need no other program.
//!
//! * Every page below `docs/` is in `docs/SUMMARY.md`, and every page there exists.
//! * Every link of a page to a file or heading of the repository has a target.
//! * Every reading that a comment cites (`A98`, `V13`) has a heading below `docs/readings/`, and no number
//!   has two.
//! * Every variable `PTXVM_...` in a source is on `docs/reference/environment.md`, and every one on that page
//!   is in a source. Variables between a test and its child process (`PTXVM_TEST_...`) are excluded.
//! * The page of the runtime API is equal to the output of [`super::runtime`].
//! * Shell commands are in `console` blocks, which `cargo xtask docs --run` executes, and every program below
//!   `examples/` is used by one.
//!
//! Links to other sites are not checked.

use super::markdown::Page;
use super::{files_below, name_of, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Folders outside of `docs/` whose pages are checked too.
const OTHERS: &[&str] = &["examples", "tests", "xtask", "crates", "fuzz"];
/// Info strings of shell commands that the runner would not execute.
const SHELLS: &[&str] = &["sh", "bash", "shell", "zsh", "terminal"];
/// GPUs whose names look like readings.
const GPUS: &[&str] = &["V100"];

/// The violations, one line each.
pub(crate) fn offences(root: &Path) -> Result<Vec<String>, String> {
    let mut offences = Vec::new();
    let pages = pages(root)?;
    check_summary(&pages, &mut offences);
    for (name, page) in &pages {
        check_links(root, name, page, &pages, &mut offences);
        for block in &page.blocks {
            // A script that commands of the page use is a file.
            if block.words.len() == 1 && SHELLS.contains(&block.words[0].as_str()) {
                offences.push(format!("{name}:{}: commands belong in a `console` block", block.line));
            }
            if let Err(message) = super::run::Marks::read(block) {
                offences.push(format!("{name}:{}: {message}", block.line));
            }
        }
    }
    let mut sources = files_below(&root.join("crates"), &["rs"])?;
    sources.extend(files_below(&root.join("xtask"), &["rs"])?);
    check_readings(root, &sources, &pages, &mut offences)?;
    check_variables(root, &sources, &mut offences)?;
    check_examples(root, &pages, &mut offences)?;
    offences.extend(super::runtime::offence(root)?);
    Ok(offences)
}

/// Every page of the repository by its name.
fn pages(root: &Path) -> Result<BTreeMap<String, Page>, String> {
    let mut files = files_below(&root.join("docs"), &["md"])?;
    for folder in OTHERS.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir()) {
        files.extend(files_below(&folder, &["md"])?);
    }
    for entry in std::fs::read_dir(root).map_err(|error| error.to_string())?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "md") {
            files.push(entry.path());
        }
    }
    files.iter().map(|file| Ok((name_of(root, file), Page::read(&read(file)?)))).collect()
}

fn check_summary(pages: &BTreeMap<String, Page>, offences: &mut Vec<String>) {
    const SUMMARY: &str = "docs/SUMMARY.md";
    let Some(summary) = pages.get(SUMMARY) else {
        offences.push(format!("{SUMMARY} does not exist"));
        return;
    };
    let mut listed = BTreeSet::new();
    for link in &summary.links {
        if !listed.insert(format!("docs/{}", link.target)) {
            offences.push(format!("{SUMMARY}:{}: `{}` is listed twice", link.line, link.target));
        }
    }
    for name in pages.keys().filter(|name| name.starts_with("docs/") && *name != SUMMARY) {
        if !listed.contains(name) {
            offences.push(format!("{name}: not in {SUMMARY}"));
        }
    }
}

fn check_links(
    root: &Path,
    name: &str,
    page: &Page,
    pages: &BTreeMap<String, Page>,
    offences: &mut Vec<String>,
) {
    for link in &page.links {
        let target = link.target.as_str();
        if target.starts_with("https://") || target.starts_with("http://") || target.starts_with("mailto:") {
            continue;
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let whole = if path.is_empty() { Some(PathBuf::from(name)) } else { joined(folder, path) };
        let exists =
            |path: &PathBuf| pages.contains_key(&*path.to_string_lossy()) || root.join(path).exists();
        let Some(whole) = whole.filter(exists) else {
            offences.push(format!("{name}:{}: `{target}` does not exist", link.line));
            continue;
        };
        if anchor.is_empty() {
            continue;
        }
        let page = pages.get(&*whole.to_string_lossy());
        if page.is_none_or(|page| !page.anchors.iter().any(|found| found == anchor)) {
            offences.push(format!("{name}:{}: `{target}` names no heading", link.line));
        }
    }
}

/// A path below the root; `None` if it leaves the root.
fn joined(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut whole = folder.to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => whole.push(part),
            Component::CurDir => {}
            Component::ParentDir => {
                if !whole.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(whole)
}

fn check_readings(
    root: &Path,
    sources: &[PathBuf],
    pages: &BTreeMap<String, Page>,
    offences: &mut Vec<String>,
) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for (name, page) in pages.iter().filter(|(name, _)| name.starts_with("docs/readings/")) {
        for anchor in page.anchors.iter().filter(|anchor| is_reading(&anchor.to_uppercase())) {
            if !known.insert(anchor.to_uppercase()) {
                offences.push(format!("{name}: `{anchor}` is on another page, too"));
            }
        }
    }
    for file in sources {
        for (index, line) in read(file)?.lines().enumerate() {
            let Some((_, comment)) = line.split_once("//") else { continue };
            for word in cited(comment).filter(|word| !known.contains(*word)) {
                offences.push(format!("{}:{}: there is no reading {word}", name_of(root, file), index + 1));
            }
        }
    }
    Ok(())
}

/// The readings that a comment cites. Code in it, such as `a.v4`, is not a citation.
fn cited(comment: &str) -> impl Iterator<Item = &str> {
    comment
        .split('`')
        .step_by(2)
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '[' && c != '"'))
        .filter(|word| is_reading(word) && !GPUS.contains(word))
}

/// `A` or `V`, a number without a leading zero, and an optional small letter.
fn is_reading(word: &str) -> bool {
    let Some(rest) = word.strip_prefix(['A', 'V']) else { return false };
    let digits = rest.trim_end_matches(['A', 'B', 'C', 'a', 'b', 'c']);
    rest.len() - digits.len() <= 1
        && (1..=3).contains(&digits.len())
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn check_variables(root: &Path, sources: &[PathBuf], offences: &mut Vec<String>) -> Result<(), String> {
    const PAGE: &str = "docs/reference/environment.md";
    let mut used: BTreeMap<String, String> = BTreeMap::new();
    for file in sources {
        for name in variables(&read(file)?) {
            used.entry(name).or_insert_with(|| name_of(root, file));
        }
    }
    let documented: BTreeSet<String> = variables(&read(&root.join(PAGE))?).collect();
    for (name, file) in used.iter().filter(|(name, _)| !documented.contains(*name)) {
        offences.push(format!("{PAGE}: lacks `{name}`, which {file} names"));
    }
    for name in documented.iter().filter(|name| !used.contains_key(*name)) {
        offences.push(format!("{PAGE}: `{name}` is in no source"));
    }
    Ok(())
}

/// The names `PTXVM_...` in a text that are alone in quotes or backticks.
fn variables(text: &str) -> impl Iterator<Item = String> {
    text.split(['"', '`'])
        .filter(|word| {
            word.strip_prefix("PTXVM_").is_some_and(|rest| {
                !rest.is_empty()
                    && !rest.starts_with("TEST_")
                    && rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
            })
        })
        .map(str::to_owned)
}

fn check_examples(
    root: &Path,
    pages: &BTreeMap<String, Page>,
    offences: &mut Vec<String>,
) -> Result<(), String> {
    let folder = root.join("examples");
    if !folder.is_dir() {
        return Ok(());
    }
    let mut commands = String::new();
    for block in pages.values().flat_map(|page| &page.blocks).filter(|block| super::run::is_console(block)) {
        commands.push_str(&block.text);
    }
    for file in files_below(&folder, &["rs", "py", "cu", "ptx"])? {
        let name = name_of(&folder, &file);
        // Rust programs are named as examples of a crate.
        let called = match file.extension().and_then(|e| e.to_str()) {
            Some("rs") => format!("--example {}", file.file_stem().unwrap_or_default().to_string_lossy()),
            _ => format!("examples/{name}"),
        };
        if !commands.contains(&called) {
            offences.push(format!("examples/{name}: no `console` block of a page runs it"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages_of(texts: &[(&str, &str)]) -> BTreeMap<String, Page> {
        texts.iter().map(|(name, text)| ((*name).to_owned(), Page::read(text))).collect()
    }

    #[test]
    fn pages_that_the_summary_lacks_or_repeats() {
        let pages =
            pages_of(&[("docs/SUMMARY.md", "[a](a.md)\n[a](a.md)"), ("docs/a.md", ""), ("docs/b/c.md", "")]);
        let mut offences = Vec::new();
        check_summary(&pages, &mut offences);
        assert_eq!(offences.len(), 2, "{offences:?}");
    }

    #[test]
    fn links_that_lead_nowhere() {
        let text = "# One\n[1](#one) [2](#two) [3](../README.md) [4](nothing.md) [5](../../etc/passwd) [6](https://x)";
        let pages = pages_of(&[("docs/a.md", text)]);
        let mut offences = Vec::new();
        check_links(&crate::root(), "docs/a.md", &pages["docs/a.md"], &pages, &mut offences);
        let lines = offences.join("\n");
        assert!(
            offences.len() == 3
                && lines.contains("#two")
                && lines.contains("nothing")
                && lines.contains("etc"),
            "{lines}"
        );
    }

    #[test]
    fn citations() {
        let all = |text| cited(text).collect::<Vec<_>>();
        assert_eq!(
            all("§9.7, A98; (V13) and V5a, `A12`, A0, A1000, V100, xA7, [A8, A_9"),
            ["A98", "V13", "V5a"]
        );
    }

    #[test]
    fn names_of_variables() {
        let text = "read(\"PTXVM_SM\"), `PTXVM_LOG`, \"PTXVM_\", \"PTXVM_SM=80\", PTXVM_NAKED";
        assert_eq!(variables(text).collect::<Vec<_>>(), ["PTXVM_SM", "PTXVM_LOG"]);
    }
}
