//! The reference pages of the documentation, generated from the program: the command line with its exit
//! statuses, the diagnostics, and the instruction table. `PTXVM_BLESS=1` writes the pages; otherwise they
//! must be up to date.
//!
//! Invariant: only the first lines of these pages are written by hand.

use std::fmt::Write as _;
use std::process::Command;

const HOW: &str = "Written by a test (`PTXVM_BLESS=1 cargo test -p ptxvm-cli --test reference`).";

/// What the program prints for these arguments.
fn said(arguments: &[&str]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_ptxvm"));
    // Help shows the values of variables.
    program.env_remove("PTXVM_LIBRARY_PATH").env("NO_COLOR", "1").env_remove("COLUMNS");
    let output = program.args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the program prints UTF-8")
}

/// Compares a page, or writes it.
fn page_is(name: &str, page: &str) {
    let path = format!("{}/../../docs/reference/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("PTXVM_BLESS").is_some() {
        std::fs::write(&path, page).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(page.lines()).position(|(found, wanted)| found != wanted);
    assert!(
        found == page,
        "docs/reference/{name} is stale (line {differs:?}, counted from 0): run with PTXVM_BLESS=1"
    );
}

#[test]
fn the_command_line() {
    let help = said(&["--help"]);
    let mut page =
        format!("# Command line\n\n{HOW}\n\n## Exit statuses\n\n| status | meaning |\n| --- | --- |\n");
    for (status, meaning) in statuses() {
        let _infallible = writeln!(page, "| {status} | {meaning} |");
    }
    page += "| 101 | A bug of ptxvm: please report it. |\n\n";
    page += "`ptxvm exec` ends with the status of the program that it runs. Statuses from 128 on are 128 and the number of a signal.\n\n";
    let _infallible = write!(page, "## ptxvm\n\n```text\n{}\n```\n", help.trim_end());
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.contains(&"check") && commands.contains(&"run"), "{commands:?}");
    for name in commands {
        let help = said(&[name, "--help"]);
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        let _infallible =
            write!(page, "\n## ptxvm {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
    }
    page_is("command-line.md", &page);
}

/// Exit statuses and their meanings, from the type that the program ends with.
fn statuses() -> Vec<(i32, String)> {
    let source = include_str!("../src/main.rs");
    let body = source
        .split("enum Exit {")
        .nth(1)
        .and_then(|rest| rest.split('}').next())
        .expect("main.rs has `Exit`");
    let (mut statuses, mut meaning) = (Vec::new(), String::new());
    for line in body.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("/// ") {
            meaning = doc.to_owned();
        } else if let Some((_, value)) = line.split_once(" = ") {
            let value = value.trim_end_matches(',').split('+').map(|part| part.trim().parse::<i32>());
            statuses
                .push((value.map(|part| part.expect("a status is a sum of numbers")).sum(), meaning.clone()));
        }
    }
    assert!(statuses.len() >= 4, "{statuses:?}");
    statuses
}

#[test]
fn the_diagnostics() {
    let mut page = format!(
        "# Diagnostics\n\n{HOW} `ptxvm explain CODE` prints the same pages. Codes never change their meaning. Codes that begin with \
         `P09` are warnings.\n\n| code | meaning |\n| --- | --- |\n"
    );
    let codes = said(&["explain"]);
    let codes: Vec<(&str, &str)> = codes.lines().filter_map(|line| line.split_once("  ")).collect();
    for (code, title) in &codes {
        let _infallible = writeln!(page, "| [{code}](#{}) | {title} |", code.to_lowercase());
    }
    for (code, title) in &codes {
        let explained = said(&["explain", code]);
        let (_, body) = explained.split_once('\n').expect("a page has a heading");
        // Headings of a page are below that of its code, and the same on all pages: they get no anchors of
        // their own.
        let body: Vec<String> = body.trim().lines().map(below).collect();
        let _infallible = write!(page, "\n## {code}\n\n*{title}*\n\n{}\n", body.join("\n"));
    }
    page_is("diagnostics.md", &page);
}

/// A line of a page, with a heading as bold text.
fn below(line: &str) -> String {
    line.strip_prefix("## ").map_or_else(|| line.to_owned(), |title| format!("**{title}**"))
}

#[test]
fn the_instruction_table() {
    let mut page = format!(
        "# Instructions\n\n{HOW} `ptxvm isa NAME` also prints the types and the meaning of each form.\n\n\
         * **PTX**, **target**: what the form needs.\n\
         * **interpreted**: whether the interpreter executes it. What is checked only is refused when a module is loaded.\n\
         * **native**: whether native code has it. Native code calls the interpreter for the others.\n\n\
         Forms of the last table exist and are not implemented: they are refused when a module is loaded, with their name and line.\n"
    );
    let table: serde_json::Value =
        serde_json::from_str(&said(&["isa", "--format", "json"])).expect("it is JSON");
    let text = |form: &serde_json::Value, key: &str| form[key].as_str().expect("a text").to_owned();
    let (mut forms, later): (Vec<_>, Vec<_>) =
        table.as_array().expect("it is an array").iter().partition(|form| form["checked"] == true);
    // The order of a mnemonic's forms is that of the table.
    forms.sort_by_key(|form| text(form, "mnemonic"));
    let mut letter = None;
    for form in forms {
        let own = text(form, "mnemonic").chars().next();
        if letter != own {
            letter = own;
            let _infallible = write!(
                page,
                "\n## {}\n\n| form | PTX | target | section | interpreted | native |\n| --- | --- | --- | --- | --- | --- |\n",
                own.unwrap_or_default().to_uppercase()
            );
        }
        let syntax = text(form, "form").replace('|', "\\|");
        let [ptx, target, section, interpreted, native] =
            ["ptx", "target", "section", "interpreted", "native"].map(|key| text(form, key));
        let _infallible =
            writeln!(page, "| `{syntax}` | {ptx} | {target} | {section} | {interpreted} | {native} |");
    }
    page += "\n## Not implemented\n\n| form | PTX | target | what it does |\n| --- | --- | --- | --- |\n";
    for form in later {
        let [syntax, ptx, target, brief] =
            ["form", "ptx", "target", "brief"].map(|key| text(form, key).replace('|', "\\|"));
        let _infallible = writeln!(page, "| `{syntax}` | {ptx} | {target} | {brief} |");
    }
    page_is("instructions.md", &page);
}
