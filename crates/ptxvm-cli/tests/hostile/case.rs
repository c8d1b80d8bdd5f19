//! Reads `tests/hostile/*.case`: templates, and the cases that fill them. The format is described in `tests/hostile/README.md`.
//!
//! Invariant: unknown syntax is an error with its line; nothing in a case file is ignored.

use crate::expect::Expect;
use std::collections::BTreeMap;

/// A hostile program or input, with what must come of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    /// File and line, for reports.
    pub(crate) place: String,
    /// Unique in its file.
    pub(crate) name: String,
    /// The PTX text, where there is one.
    pub(crate) text: Option<String>,
    /// Line of the instruction that traps, from 1; 0 where the case marks none.
    pub(crate) line: usize,
    /// Other input files: name and expression.
    pub(crate) files: Vec<(String, String)>,
    /// Arguments of the program.
    pub(crate) command: String,
    /// What must come of it.
    pub(crate) expect: Expect,
    /// Processors that native code is made for as well.
    pub(crate) cpus: Vec<String>,
    /// Address space of the process in mebibytes.
    pub(crate) memory: Option<u64>,
    /// Why the case fails today.
    pub(crate) open: Option<String>,
}

/// What a case file defines so far.
#[derive(Default)]
struct Reader<'t> {
    file: &'t str,
    templates: BTreeMap<&'t str, String>,
    template: Option<&'t str>,
    cpus: Vec<String>,
    cases: Vec<Case>,
}

/// A line with its number, from 1.
type Line<'t> = (usize, &'t str);

/// The cases of a file.
pub(crate) fn read(file: &str, text: &str) -> Result<Vec<Case>, String> {
    let mut reader = Reader { file, ..Reader::default() };
    let lines: Vec<Line<'_>> = text.lines().enumerate().map(|(i, line)| (i + 1, line)).collect();
    let mut at = 0;
    while let Some(&(number, line)) = lines.get(at) {
        at += 1;
        let indented = lines[at..].iter().take_while(|(_, l)| l.is_empty() || l.starts_with(' ')).count();
        let block = &lines[at..at + indented];
        at += indented;
        reader.entry(number, line, block).map_err(|why| format!("{file}:{number}: {why}"))?;
    }
    Ok(reader.cases)
}

impl<'t> Reader<'t> {
    fn entry(&mut self, number: usize, line: &'t str, block: &[Line<'t>]) -> Result<(), String> {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with("# ") {
            return blank(block);
        }
        if let Some(name) = line.strip_prefix("template ") {
            self.templates.insert(name, unindented(block));
            return Ok(());
        }
        if let Some(name) = line.strip_prefix("use ") {
            let known = self.templates.keys().find(|known| **known == name);
            self.template = Some(known.ok_or("no such template")?);
            return blank(block);
        }
        if let Some(cpus) = line.strip_prefix("cpus ") {
            self.cpus = cpus.split_whitespace().filter(|c| *c != "none").map(str::to_owned).collect();
            return blank(block);
        }
        let place = format!("{}:{number}", self.file);
        let mut case = Case { place, cpus: self.cpus.clone(), ..Case::default() };
        if let Some(name) = line.strip_prefix("case ") {
            case.name = name.to_owned();
            self.long(&mut case, block)?;
        } else {
            self.row(&mut case, line)?;
            attributes(&mut case, block)?;
        }
        if self.cases.iter().any(|other| other.name == case.name) {
            return Err(format!("two cases are called `{}`", case.name));
        }
        self.cases.push(case);
        Ok(())
    }

    /// `name | body | command | expectation`
    fn row(&self, case: &mut Case, line: &str) -> Result<(), String> {
        let columns: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [name, body, command, expect] = columns[..] else {
            return Err(format!(
                "{} columns instead of four: name | body | command | expectation",
                columns.len()
            ));
        };
        case.name = name.to_owned();
        case.expect = Expect::parse(expect)?;
        self.fill(case, body, "")?;
        case.command = format!("run {{ptx}} {command}");
        Ok(())
    }

    /// Puts a body and what else the module needs into the template.
    fn fill(&self, case: &mut Case, body: &str, module: &str) -> Result<(), String> {
        let template =
            self.template.and_then(|name| self.templates.get(name)).ok_or("no template is in use")?;
        let text = template.replace("$module", module).replace("$body", body);
        // A body of one line needs no mark: the line is the first that holds its last instruction.
        let last = body.trim().lines().last().unwrap_or_default();
        case.line = marked(&text)?
            .or_else(|| text.lines().position(|l| l.contains(last)).map(|i| i + 1))
            .unwrap_or(0);
        case.text = Some(text);
        Ok(())
    }

    fn long(&self, case: &mut Case, block: &[Line<'_>]) -> Result<(), String> {
        let (mut body, mut module) = (None, String::new());
        let mut rest = block;
        let mut attributes_of = Vec::new();
        while let Some((&(number, line), after)) = rest.split_first() {
            let deeper = after.iter().take_while(|(_, l)| l.is_empty() || l.starts_with("        ")).count();
            let (inner, next) = after.split_at(deeper);
            rest = next;
            match line.trim() {
                "text:" => {
                    let text = unindented(inner);
                    case.line = marked(&text)?.unwrap_or(0);
                    case.text = Some(text);
                }
                "body:" => body = Some(unindented(inner)),
                "module:" => module = unindented(inner),
                _ => {
                    blank(inner)?;
                    attributes_of.push((number, line));
                }
            }
        }
        attributes(case, &attributes_of)?;
        if let Some(body) = body {
            self.fill(case, &body, &module)?;
        }
        if case.command.is_empty() {
            Err("the case has no `run:` and no `command:`".to_owned())
        } else {
            Ok(())
        }
    }
}

/// The `key: value` lines of a case.
fn attributes(case: &mut Case, block: &[Line<'_>]) -> Result<(), String> {
    for (number, line) in block.iter().filter(|(_, line)| !line.trim().is_empty()) {
        let (key, value) =
            line.split_once(':').ok_or_else(|| format!("line {number}: expected `key: value`"))?;
        let value = value.trim();
        match key.trim() {
            "run" => case.command = format!("run {{ptx}} {value}"),
            "command" => case.command = value.to_owned(),
            "expect" => case.expect = Expect::parse(value)?,
            "cpus" => case.cpus = value.split_whitespace().map(str::to_owned).collect(),
            "memory" => case.memory = Some(value.parse().map_err(|_| "`memory` is a number of mebibytes")?),
            "open" => case.open = Some(value.to_owned()),
            key => match key.strip_prefix("file ") {
                Some(name) => case.files.push((name.trim().to_owned(), value.to_owned())),
                None => return Err(format!("line {number}: unknown key `{key}`")),
            },
        }
    }
    Ok(())
}

/// The line with the mark `// <--`, from 1.
fn marked(text: &str) -> Result<Option<usize>, String> {
    let mut marked = text.lines().enumerate().filter(|(_, line)| line.contains("// <--"));
    let first = marked.next().map(|(index, _)| index + 1);
    if marked.next().is_some() { Err("two lines are marked".to_owned()) } else { Ok(first) }
}

fn blank(block: &[Line<'_>]) -> Result<(), String> {
    match block.iter().find(|(_, line)| !line.trim().is_empty()) {
        Some((number, _)) => Err(format!("line {number} belongs to nothing")),
        None => Ok(()),
    }
}

/// The lines without the indentation of the first, and without blank lines at the end.
fn unindented(block: &[Line<'_>]) -> String {
    let first = block.first().map_or("", |(_, line)| line);
    let indentation = first.len() - first.trim_start().len();
    let lines: Vec<&str> = block.iter().map(|(_, line)| line.get(indentation..).unwrap_or("")).collect();
    format!("{}\n", lines.join("\n").trim_end())
}
