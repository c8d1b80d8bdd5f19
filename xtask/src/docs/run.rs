//! `cargo xtask docs --run`: executes the command blocks of the pages, and compares the output with the page.
//!
//! A command block is fenced with the word `console`. A line that begins with `$ ` is a command (`\` at its
//! end continues it); the following lines are its output, on both streams. In these lines `...` alone matches
//! any lines, and `[..]` any part of a line. Durations and memory addresses differ from run to run and are
//! not compared. Each command must end with status 0.
//!
//! Words after `console` change this:
//!
//! | word | meaning |
//! | --- | --- |
//! | `exit=N` | the last command ends with this status |
//! | `clients` | installs packages or needs a compiler: runs with `--clients` only |
//! | `needs=PROGRAM` | runs only if this program is installed |
//! | `later=REASON` | does not run: its contents are not available yet |
//!
//! A block of any language with the word `file=NAME` is first written to that file. The blocks of a page run
//! in order, in one folder per page, in which `examples` is that of the repository.
//!
//! Invariant: a block either runs and is compared, or is counted as skipped with its reason.

use super::markdown::{Block, Page};
use super::read;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Time limit of a block in seconds, without and with clients. Chosen: installing packages takes minutes.
const SECONDS: [u32; 2] = [120, 1800];
/// Separates the outputs of commands: a character that no command prints.
const MARK: char = '\u{1e}';

/// Whether a block contains commands.
pub(super) fn is_console(block: &Block) -> bool {
    block.words.first().is_some_and(|word| word == "console")
}

/// The words of a block.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    exit: i32,
    clients: bool,
    needs: Option<String>,
    later: Option<String>,
    file: Option<String>,
}

impl Marks {
    /// Parses the words of a block; the first is its language.
    pub(super) fn read(block: &Block) -> Result<Marks, String> {
        let mut marks = Marks::default();
        for word in block.words.iter().skip(1) {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match (is_console(block), key, value) {
                (true, "exit", value) => {
                    marks.exit = value.parse().map_err(|_| format!("`{word}` has no number"))?;
                }
                (true, "clients", "") => marks.clients = true,
                (true, "needs", program) if !program.is_empty() => marks.needs = Some(program.to_owned()),
                (true, "later", reason) if !reason.is_empty() => marks.later = Some(reason.to_owned()),
                (false, "file", name) if !name.is_empty() && !name.contains(['/', '\\']) => {
                    marks.file = Some(name.to_owned());
                }
                // Blocks of other languages may have words for other tools.
                (false, key, _) if key != "file" => {}
                _ => return Err(format!("a block has no word `{word}`")),
            }
        }
        Ok(marks)
    }

    /// Why a block does not run.
    fn skipped(&self, clients: bool) -> Option<String> {
        if let Some(reason) = &self.later {
            return Some(format!("not yet: {}", reason.replace('-', " ")));
        }
        if self.clients && !clients {
            return Some("runs with --clients".to_owned());
        }
        let needs = self.needs.as_deref().filter(|program| !is_installed(program))?;
        Some(format!("`{needs}` is not installed"))
    }
}

fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// A command and the expected lines.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    command: String,
    expected: Vec<String>,
}

/// The commands of a block.
fn steps(block: &Block) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut continues = false;
    for line in block.text.lines() {
        match (steps.last_mut(), line.strip_prefix("$ ")) {
            (Some(step), _) if continues => {
                step.command.push('\n');
                step.command.push_str(line);
            }
            (_, Some(command)) => steps.push(Step { command: command.to_owned(), expected: Vec::new() }),
            (Some(step), None) => step.expected.push(line.to_owned()),
            (None, None) => return Err("a `console` block begins with `$ ` and a command".to_owned()),
        }
        continues = steps.last().is_some_and(|step| step.expected.is_empty() && step.command.ends_with('\\'));
    }
    Ok(steps)
}

/// Runs the blocks of the named pages, or of all.
pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    let root = crate::root();
    let (mut clients, mut programs, mut names) = (false, None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--clients" => clients = true,
            "--libraries" => programs = Some(PathBuf::from(rest.next().ok_or("--libraries FOLDER")?)),
            option if option.starts_with('-') => {
                return Err(format!(
                    "`{option}` is unknown; docs --run [--clients] [--libraries FOLDER] [PAGE...]"
                ));
            }
            page => names.push(page.to_owned()),
        }
    }
    if names.is_empty() {
        names.push("README.md".to_owned());
        let summary = Page::read(&read(&root.join("docs/SUMMARY.md"))?);
        names.extend(summary.links.into_iter().map(|link| format!("docs/{}", link.target)));
    }
    let programs = match programs {
        Some(folder) => std::fs::canonicalize(&folder).map_err(|e| format!("{}: {e}", folder.display()))?,
        None => build(&root)?,
    };
    let mut runner = Runner::new(&root, &programs, clients)?;
    for name in &names {
        runner.page(name)?;
    }
    for (reason, count) in &runner.skipped {
        println!("skipped {count}: {reason}");
    }
    println!("{} blocks ran, {} failed", runner.ran, runner.failures.len());
    if runner.failures.is_empty() { Ok(()) } else { Err(format!("\n{}", runner.failures.join("\n\n"))) }
}

fn build(root: &Path) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env!("CARGO"));
    // The same packages as `cargo test --workspace`, so that nothing is built twice.
    cargo.args(["build", "--quiet", "--workspace"]);
    match cargo.current_dir(root).status() {
        Ok(status) if status.success() => Ok(target_of(root).join("debug")),
        Ok(status) => Err(format!("cargo build failed ({status})")),
        Err(error) => Err(format!("cargo build cannot be started: {error}")),
    }
}

fn target_of(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}

struct Runner {
    root: PathBuf,
    /// The location of the pages' folders. Below the root, so that cargo finds the workspace.
    work: PathBuf,
    path: std::ffi::OsString,
    clients: bool,
    ran: usize,
    skipped: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Runner {
    fn new(root: &Path, programs: &Path, clients: bool) -> Result<Runner, String> {
        let work = root.join("target/docs-run");
        let bin = work.join("bin");
        let failed = |error: std::io::Error| format!("{}: {error}", bin.display());
        let _first_time = std::fs::remove_dir_all(&bin);
        std::fs::create_dir_all(&bin).map_err(failed)?;
        std::os::unix::fs::symlink(programs.join("ptxvm"), bin.join("ptxvm")).map_err(failed)?;
        let mut folders = vec![bin.clone()];
        folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let path = std::env::join_paths(folders).map_err(|error| error.to_string())?;
        let (skipped, failures) = (BTreeMap::new(), Vec::new());
        Ok(Runner { root: root.to_owned(), work, path, clients, ran: 0, skipped, failures })
    }

    fn page(&mut self, name: &str) -> Result<(), String> {
        let page = Page::read(&read(&self.root.join(name))?);
        let folder = self.work.join("pages").join(name.replace(['/', '.'], "-"));
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let _first_time = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        std::os::unix::fs::symlink(self.root.join("examples"), folder.join("examples")).map_err(failed)?;
        for block in &page.blocks {
            let marks = Marks::read(block).map_err(|error| format!("{name}:{}: {error}", block.line))?;
            if let Some(file) = &marks.file {
                std::fs::write(folder.join(file), &block.text).map_err(failed)?;
            }
            if !is_console(block) {
                continue;
            }
            if let Some(reason) = marks.skipped(self.clients) {
                *self.skipped.entry(reason).or_default() += 1;
                continue;
            }
            self.ran += 1;
            if let Err(why) = self.block(block, &marks, &folder) {
                eprintln!("{name}:{}: failed", block.line);
                self.failures.push(format!("{name}:{}: {why}", block.line));
            }
        }
        Ok(())
    }

    /// Runs a block in a shell, and compares.
    fn block(&self, block: &Block, marks: &Marks, folder: &Path) -> Result<(), String> {
        let steps = steps(block)?;
        let mut script = "exec 2>&1\n".to_owned();
        for step in &steps {
            // The status is preserved for the next command.
            let _infallible = writeln!(
                script,
                "{}\ndocs_status=$?; printf '\\036%d\\036' $docs_status; (exit $docs_status)",
                step.command
            );
        }
        let mut shell = Command::new("timeout");
        shell.args([
            "--kill-after=5",
            &SECONDS[usize::from(marks.clients)].to_string(),
            "bash",
            "-c",
            &script,
        ]);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PTXVM_"))
        {
            shell.env_remove(name);
        }
        shell.env("PATH", &self.path).env("PTXVM_CACHE_DIR", self.work.join("cache")).env("NO_COLOR", "1");
        shell.env("CARGO_TARGET_DIR", target_of(&self.root)).env("PYTHONDONTWRITEBYTECODE", "1");
        let output = shell.current_dir(folder).stdin(std::process::Stdio::null()).output();
        let output = output.map_err(|error| format!("`timeout` cannot be started: {error}"))?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut parts = printed.split(MARK);
        for (index, step) in steps.iter().enumerate() {
            let got = parts.next().unwrap_or_default();
            let status: Option<i32> = parts.next().and_then(|status| status.parse().ok());
            let wanted = if index + 1 == steps.len() { marks.exit } else { 0 };
            let command = &step.command;
            match status {
                None => return Err(format!("`{command}` did not end; it printed\n{got}")),
                Some(status) if status != wanted => {
                    return Err(format!("`{command}` ended with {status}, not {wanted}; it printed\n{got}"));
                }
                Some(_) => {}
            }
            let lines: Vec<&str> = got.lines().collect();
            if !matches(&step.expected, &lines) {
                let expected = step.expected.join("\n");
                return Err(format!("`{command}` should print\n{expected}\nand printed\n{got}"));
            }
        }
        Ok(())
    }
}

/// Whether lines match those of a page.
fn matches(expected: &[String], got: &[&str]) -> bool {
    match expected.split_first() {
        None => got.is_empty(),
        Some((any, rest)) if any.trim() == "..." => (0..=got.len()).any(|skip| matches(rest, &got[skip..])),
        Some((line, rest)) => got.split_first().is_some_and(|(first, others)| {
            line_matches(&plain(line), &plain(first)) && matches(rest, others)
        }),
    }
}

/// Whether a line matches that of a page, with `[..]` as any text.
fn line_matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split("[..]");
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A line without parts that differ from run to run: durations become `#ms`, long hexadecimal numbers `0x#`.
/// In such a line, consecutive blanks count as one.
fn plain(line: &str) -> String {
    let mut words = Vec::new();
    let mut changed = false;
    let mut split = line.split(' ').peekable();
    while let Some(word) = split.next() {
        let unit = split.peek().copied().filter(|next| is_unit(next));
        if let Some(unit) = unit.filter(|_| is_number(word)) {
            words.push(format!("#{}", unit.trim_end_matches([',', ';', ')', '.'])));
            split.next();
            changed = true;
        } else if let Some(start) = word.find("0x").filter(|at| hex_digits(&word[at + 2..]) >= 8) {
            let end = start + 2 + hex_digits(&word[start + 2..]);
            words.push(format!("{}0x#{}", &word[..start], &word[end..]));
            changed = true;
        } else {
            words.push(word.to_owned());
        }
    }
    if changed {
        words.retain(|word| !word.is_empty())
    }
    words.join(" ").trim_end().to_owned()
}

fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches('(');
    digits.starts_with(|c: char| c.is_ascii_digit()) && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_unit(word: &str) -> bool {
    matches!(word.trim_end_matches([',', ';', ')', '.']), "ns" | "us" | "µs" | "ms" | "s")
}

fn hex_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_hexdigit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> Block {
        Page::read(text).blocks.remove(0)
    }

    #[test]
    fn commands_and_what_they_print() {
        let steps = steps(&block("```console\n$ a \\\n  b\none\ntwo\n$ c\n```")).expect("it is well formed");
        assert_eq!(steps[0].command, "a \\\n  b");
        assert_eq!(steps[0].expected, ["one", "two"]);
        assert!(steps[1].expected.is_empty() && steps.len() == 2);
        assert!(super::steps(&block("```console\nno command\n```")).is_err());
    }

    #[test]
    fn words_of_blocks() {
        let marks = |text: &str| Marks::read(&block(text));
        let read = marks("```console exit=3 clients needs=gcc\n```").expect("they exist");
        assert!(read.exit == 3 && read.clients && read.needs.as_deref() == Some("gcc"));
        assert_eq!(marks("```ptx file=a.ptx\n```").expect("it exists").file.as_deref(), Some("a.ptx"));
        for wrong in ["console exit", "console file=a", "ptx file=../a", "console slow", "console later="] {
            assert!(marks(&format!("```{wrong}\n```")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines_are_compared() {
        let holds = |expected: &str, got: &str| {
            let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
            matches(&expected, &got.lines().collect::<Vec<_>>())
        };
        assert!(holds("a\n...\nd", "a\nb\nc\nd") && holds("...", "") && !holds("a\n...\nd", "a\nb"));
        assert!(
            holds("x [..] z", "x y z") && !holds("x [..] z", "x y") && !holds("a", "a\nb") && !holds("", "a")
        );
        assert!(
            holds("took  1.5 ms, at 0x2508100014", "took 23 ms at 0x7f0000000000")
                && !holds("took 1 ms", "took 1 s")
        );
        assert!(!holds("5 warps", "6 warps") && !holds("0x10", "0x11"));
    }
}
