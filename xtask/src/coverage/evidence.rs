//! Collects the inventory rows that tests cover, from claims in the tests, and validates each claim.
//!
//! Invariant: a row counts only if the test exists, contains a statement of the row, and, for
//! `tests/language`, passes when it is run here. A claim that cannot be validated is an error.

use super::inventory::{Inventory, Row};
use super::language::{self, Finding};
use super::statement::{Statement, expand, matches, statements};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The rows that each kind of test covers, and false claims.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) accepted: BTreeSet<String>,
    pub(super) refused: BTreeSet<String>,
    pub(super) executed: BTreeSet<String>,
    pub(super) faults: Vec<String>,
}

/// Reads all tests below `root`.
///
/// # Errors
/// A folder or file that cannot be read.
pub(super) fn collect(root: &Path, inventory: &Inventory) -> Result<Evidence, String> {
    let mut evidence = Evidence::default();
    for file in files(&root.join("tests/language"), "ptx")? {
        evidence.language(&name(root, &file), &read(&file)?, inventory);
    }
    for (folder, extension) in [("textures", "case"), ("fixtures/cases", "json")] {
        for file in files(&root.join("tests").join(folder), extension)? {
            evidence.data(root, &file, inventory)?;
        }
    }
    for file in files(&root.join("tests/litmus"), "litmus")? {
        evidence.litmus(&name(root, &file), &read(&file)?, inventory);
    }
    evidence.table(root, &read(&root.join("tests/coverage/executed.tsv"))?, inventory)?;
    for krate in files(&root.join("crates"), "")? {
        for file in sources(&krate)? {
            evidence.rust(&name(root, &file), &read(&file)?, inventory);
        }
    }
    Ok(evidence)
}

impl Evidence {
    /// The row of a claim, which must exist.
    fn row<'a>(&mut self, place: &str, id: &str, inventory: &'a Inventory) -> Option<&'a Row> {
        let row = inventory.row(id);
        if row.is_none() {
            self.faults.push(format!("{place}: `{id}` is no row of the inventory"));
        }
        row
    }

    /// A file of `tests/language`: the rows of its lines, if checking the module gives the announced
    /// diagnostics.
    fn language(&mut self, place: &str, text: &str, inventory: &Inventory) {
        let cases = match language::parse(place, text) {
            Ok(cases) => cases,
            Err(why) => return self.faults.push(format!("{place}: {why}")),
        };
        for case in &cases {
            let faults = language::judge(case);
            if !faults.is_empty() {
                self.faults.push(format!("{place}: `{}` does not hold: {}", case.title, faults.join("\n")));
                continue;
            }
            for note in &case.notes {
                let line = case.text.lines().nth(note.line - 1).unwrap_or_default();
                for id in &note.ids {
                    let place = format!("{place}:{}", note.line);
                    let Some(row) = self.row(&place, id, inventory) else { continue };
                    let fits = |s: Statement<'_>| match note.finding {
                        Finding::Valid => row.fits(&s),
                        Finding::Error(_) | Finding::Warning(_) => row.resembles(&s),
                    };
                    if row.names_an_instruction() && !statements(line).any(fits) {
                        self.faults.push(format!(
                            "{place}: `{id}` is about `{}`, which is not on the line",
                            row.wanted()
                        ));
                        continue;
                    }
                    let rows = match note.finding {
                        Finding::Valid => &mut self.accepted,
                        Finding::Error(_) | Finding::Warning(_) => &mut self.refused,
                    };
                    rows.insert(id.clone());
                }
            }
        }
    }

    /// `executed.tsv`: row, test, and a pattern that must match a statement that the test executes.
    fn table(&mut self, root: &Path, table: &str, inventory: &Inventory) -> Result<(), String> {
        let mut tests: BTreeMap<&str, Executed> = BTreeMap::new();
        for (index, line) in table.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = format!("tests/coverage/executed.tsv:{}", index + 1);
            let columns: Vec<&str> = line.split('\t').collect();
            let [id, test, pattern] = columns[..] else {
                self.faults.push(format!("{place}: row, test and pattern are wanted"));
                continue;
            };
            let Some(row) = self.row(&place, id, inventory) else { continue };
            let executed = match tests.entry(test) {
                Entry::Occupied(read) => read.into_mut(),
                Entry::Vacant(unread) => match Executed::read(root, test) {
                    Ok(executed) => unread.insert(executed),
                    Err(why) => {
                        self.faults.push(format!("{place}: {why}"));
                        continue;
                    }
                },
            };
            match executed.find(row, pattern) {
                Ok(()) => drop(self.executed.insert(id.to_owned())),
                Err(why) => self.faults.push(format!("{place}: {test}: {why}")),
            }
        }
        Ok(())
    }

    /// `# covers: ID...` in a file of `tests/textures`, `"covers": [...]` in a case of `tests/fixtures`: an
    /// executed statement must belong to the row.
    fn data(&mut self, root: &Path, file: &Path, inventory: &Inventory) -> Result<(), String> {
        let (place, text) = (name(root, file), read(file)?);
        let case = file.extension().is_some_and(|e| e == "case");
        let ids: BTreeSet<&str> = if case {
            let lines = text.lines().filter_map(|line| line.strip_prefix("# covers: "));
            lines.flat_map(str::split_whitespace).collect()
        } else {
            list_of(&text, "covers").collect()
        };
        if ids.is_empty() {
            return Ok(());
        }
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let executed =
            Executed::read(root, &format!("{}/{stem}", if case { "textures" } else { "fixtures" }))?;
        for id in ids {
            let Some(row) = self.row(&place, id, inventory) else { continue };
            match executed.find(row, "*") {
                Ok(()) => drop(self.executed.insert(id.to_owned())),
                Err(why) => self.faults.push(format!("{place}: `{id}`: {why}")),
            }
        }
        Ok(())
    }

    /// `// covers: ID...` in the header of a litmus test: axioms and definitions, one of which must determine
    /// its verdict, as in a line `// without RULE: VERDICT`. The tests of `ptx-model` check the verdicts.
    fn litmus(&mut self, place: &str, text: &str, inventory: &Inventory) {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let Some(ids) = value("// covers: ") else { return };
        let expected = value("// expect: ");
        let without = text.lines().filter_map(|line| line.strip_prefix("// without "));
        let mut others = without.filter_map(|line| line.rsplit_once(": ")).map(|(_, verdict)| verdict);
        if expected.is_none() || !others.any(|verdict| Some(verdict) != expected) {
            self.faults.push(format!("{place}: no rule decides its verdict"));
            return;
        }
        for id in ids.split_whitespace() {
            match self.row(place, id, inventory) {
                Some(row) if row.family == "F10" => drop(self.executed.insert(id.to_owned())),
                Some(_) => self.faults.push(format!("{place}: `{id}` is not of the memory model")),
                None => {}
            }
        }
    }

    /// `// covers: ID...` above a `#[test]` of a Rust file, which must contain the mnemonic.
    fn rust(&mut self, place: &str, text: &str, inventory: &Inventory) {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(ids) = line.strip_prefix("// covers: ") else { continue };
            let place = format!("{place}:{}", index + 1);
            // Above the attribute, or between it and the function.
            let beside = |line: &&&str| !line.starts_with("// covers: ");
            let test = Some(&"#[test]");
            if lines[index + 1..].iter().find(beside) != test
                && lines[..index].iter().rev().find(beside) != test
            {
                self.faults.push(format!("{place}: no `#[test]` beside it"));
                continue;
            }
            for id in ids.split_whitespace() {
                let Some(row) = self.row(&place, id, inventory) else { continue };
                let mut mnemonics = row.mnemonics().peekable();
                if mnemonics.peek().is_some() && !mnemonics.any(|m| has_word(text, m)) {
                    self.faults.push(format!(
                        "{place}: `{id}` is about `{}`, which is not in the file",
                        row.wanted()
                    ));
                    continue;
                }
                self.executed.insert(id.to_owned());
            }
        }
    }
}

/// Whether `word` occurs in the text as an opcode or a part of one.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

/// The lines that a data-driven test executes, in groups such as the heading and body of a form. Each group
/// is there once.
struct Executed {
    groups: Vec<Group>,
}

/// Lines, and the opcode and the whole of each of their statements.
struct Group {
    lines: Vec<String>,
    statements: Vec<[String; 2]>,
}

impl Group {
    fn new(lines: Vec<String>) -> Self {
        let owned = |s: Statement<'_>| [s.opcode, s.whole].map(str::to_owned);
        let statements = lines.iter().flat_map(|line| statements(line)).map(owned).collect();
        Self { lines, statements }
    }

    fn statements(&self) -> impl Iterator<Item = Statement<'_>> {
        self.statements.iter().map(|[opcode, whole]| Statement { opcode, whole })
    }
}

impl Executed {
    /// `vectors/NAME`, `textures/NAME` or `fixtures/NAME`.
    fn read(root: &Path, test: &str) -> Result<Self, String> {
        let tests = root.join("tests");
        let (kind, name) = test.split_once('/').unwrap_or((test, ""));
        let text = match kind {
            "vectors" => read(&tests.join("vectors").join(name).with_extension("vec"))?,
            "textures" => read(&tests.join("textures").join(name).with_extension("case"))?,
            "fixtures" => {
                let case = read(&tests.join("fixtures/cases").join(format!("{name}.json")))?;
                let ptx = string_of(&case, "ptx").ok_or_else(|| format!("{test}: a case without PTX"))?;
                let ptx = read(&tests.join("fixtures").join(ptx))?;
                return Ok(Self::of(ptx.lines().map(|line| vec![line.to_owned()])));
            }
            _ => return Err(format!("`{test}`: vectors/, textures/ or fixtures/ is wanted")),
        };
        Ok(Self::of(text.lines().map(described)))
    }

    fn of(groups: impl Iterator<Item = Vec<String>>) -> Self {
        let mut seen = BTreeSet::new();
        let groups = groups.filter(|lines| !lines.is_empty() && seen.insert(lines.clone()));
        Self { groups: groups.map(Group::new).collect() }
    }

    /// Every alternative of the pattern must match, and a matching statement, or a statement of the group of
    /// a matching line, must belong to the row.
    fn find(&self, row: &Row, pattern: &str) -> Result<(), String> {
        let mut fits = false;
        for one in expand(pattern)? {
            let mut found = false;
            for group in &self.groups {
                let mut all = group.statements();
                if group.lines.iter().any(|line| matches(&one, line)) {
                    found = true;
                    fits |= all.any(|s| row.fits(&s));
                    continue;
                }
                for statement in all.filter(|s| self.matches(&one, s)) {
                    found = true;
                    fits |= row.fits(&statement);
                }
            }
            if !found {
                return Err(format!("nothing matches `{one}`"));
            }
        }
        if fits { Ok(()) } else { Err(format!("`{pattern}` finds nothing of `{}`", row.wanted())) }
    }

    /// A pattern with a space is for a whole statement, one without for the opcode.
    fn matches(&self, pattern: &str, statement: &Statement<'_>) -> bool {
        matches(pattern, if pattern.contains(' ') { statement.whole } else { statement.opcode })
    }
}

/// The executed lines of a file of forms: headings, and the body of each form. A form without a body is the
/// instruction of its name. Vectors are skipped.
fn described(line: &str) -> Vec<String> {
    let Some(head) = line.strip_prefix("form ").or_else(|| line.strip_prefix("then ")) else {
        let vector = line.contains(" = ") || line.ends_with(" =");
        return if vector || line.starts_with('#') { Vec::new() } else { vec![line.to_owned()] };
    };
    let mut fields = head.split(" | ");
    let title = fields.next().unwrap_or_default();
    let name = title.split(" @").next().unwrap_or_default();
    let registers: Vec<String> = fields
        .by_ref()
        .take(2)
        .flat_map(str::split_whitespace)
        .map(|operand| format!("%{}", operand.split(':').next().unwrap_or_default()))
        .collect();
    let body = fields.next().map_or_else(|| format!("{name} {};", registers.join(", ")), str::to_owned);
    let module = fields.next().unwrap_or_default().to_owned();
    vec![format!("form {title}"), body, module]
}

/// The value of the first member of this name in a JSON object.
fn string_of<'a>(json: &'a str, member: &str) -> Option<&'a str> {
    let after = json.split_once(&format!("\"{member}\":"))?.1.trim_start().strip_prefix('"')?;
    after.split_once('"').map(|(value, _)| value)
}

/// The texts in the first list of this name in a JSON object.
fn list_of<'a>(json: &'a str, member: &str) -> impl Iterator<Item = &'a str> {
    let list = json.split_once(&format!("\"{member}\":")).and_then(|(_, after)| after.split_once(']'));
    list.into_iter().flat_map(|(list, _)| list.split('"').skip(1).step_by(2))
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))
}

/// The entries of a folder with this extension, sorted.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> =
        entries.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    files.retain(|f| f.extension().unwrap_or_default() == extension);
    files.sort();
    Ok(files)
}

/// The Rust files of a folder and the folders in it.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = files(folder, "rs")?;
    for inner in files(folder, "")?.iter().filter(|f| f.is_dir() && !f.ends_with("target")) {
        found.extend(sources(inner)?);
    }
    Ok(found)
}

fn name(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/")
}
