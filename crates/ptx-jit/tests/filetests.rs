//! File tests of passes: `filetests/PASS/NAME.ptx` and `NAME.wir`, each a small input with the text that the
//! pass makes of it.
//!
//! A `.ptx` file is compiled up to the pass. A `.wir` file is WIR that the pass alone runs on; `; ptx:` has
//! the PTX that its instructions name. Directives are comments, so each file is of its language:
//!
//! ```text
//! // test: gvn
//! // launch: ntid=64x1x1 chunk=16 warps=1
//! // target: avx512,tuning=zen4
//! ...
//! // expect:
//! //   start b1
//! ```
//!
//! Without a target, it is any processor whose chunks are as wide as those of the launch.
//!
//! Each file is two tests: the text is the expected one, and it is another one where the pass is switched
//! off. `PTXVM_BLESS=1 cargo test -p ptx-jit --test filetests` writes what the passes make; the difference is
//! then to be reviewed.

use libtest_mimic::{Arguments, Failed, Trial};
use ptx::ir::Program;
use ptx_jit::wir::LaunchShape;
use ptx_jit::{Pass, Target, stages};
use std::path::{Path, PathBuf};

fn main() {
    let mut args = Arguments::from_args();
    // Files are small, and one thread for each is not worth it.
    args.test_threads.get_or_insert(2);
    let files = files();
    let mut trials = vec![{
        let files = files.clone();
        Trial::test("every_pass_has_a_file", move || every_pass_has_a_file(&files))
    }];
    for file in files {
        let name = format!("{}/{}", folder_of(&file), file.file_name().unwrap_or_default().to_string_lossy());
        let other = file.clone();
        trials.push(Trial::test(name.clone(), move || compare(&file)));
        trials.push(Trial::test(name + " [pass off]", move || fails_without(&other)));
    }
    libtest_mimic::run(&args, trials).exit();
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests")
}

fn files() -> Vec<PathBuf> {
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let mut files: Vec<PathBuf> = list(&root()).iter().flat_map(|folder| list(folder)).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "ptx" || e == "wir"));
    files.sort();
    files
}

fn folder_of(file: &Path) -> String {
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
    folder.to_string_lossy().into_owned()
}

fn every_pass_has_a_file(files: &[PathBuf]) -> Result<(), Failed> {
    for pass in Pass::ALL {
        if !files.iter().any(|file| folder_of(file) == pass.name()) {
            return Err(format!("no file test of `{}`", pass.name()).into());
        }
    }
    Ok(())
}

/// A file, read.
struct Case {
    pass: Pass,
    launch: LaunchShape,
    target: Target,
    /// The file without what is expected.
    input: String,
    program: Program,
    expected: String,
    /// What begins a comment: `//` or `;`.
    comment: &'static str,
    is_wir: bool,
}

fn read(file: &Path) -> Result<Case, String> {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let is_wir = file.extension().is_some_and(|e| e == "wir");
    let comment = if is_wir { ";" } else { "//" };
    let directive = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(comment)?.trim().strip_prefix(name));
        found.map(str::trim).ok_or_else(|| format!("no `{comment} {name}`"))
    };
    let name = directive("test:")?;
    let pass = Pass::of_name(name).ok_or_else(|| format!("`{name}` is not a pass"))?;
    if folder_of(file) != name {
        return Err(format!("a test of `{name}` in another folder"));
    }
    let launch = launch(directive("launch:")?)?;
    let target = match directive("target:") {
        Ok(text) => Target::parse(text)?,
        Err(_) => stages::generic_target(launch),
    };
    if target.level().lanes() != launch.chunk {
        return Err(format!("`{target}` has other chunks than the launch"));
    }
    let section = |name: &str| -> String {
        let lines = text.lines().skip_while(|line| line.trim() != format!("{comment} {name}")).skip(1);
        let lines = lines.map_while(|line| {
            line.strip_prefix(comment).filter(|rest| rest.is_empty() || rest.starts_with("   "))
        });
        lines.map(|line| format!("{}\n", line.get(3..).unwrap_or_default())).collect()
    };
    let marker = format!("{comment} expect:\n");
    let (input, expected) = match text.split_once(&marker) {
        Some((input, _)) => (input.to_owned(), section("expect:")),
        None => (text.clone(), String::new()),
    };
    let ptx = if is_wir { section("ptx:") } else { input.clone() };
    let checked = ptx::check::check(&file.to_string_lossy(), &ptx, &ptx::check::CheckOptions::default());
    let module = checked.module.ok_or_else(|| format!("{:#?}", checked.diagnostics))?;
    let program = ptx::ir::lower(module);
    if program.functions.len() != 1 {
        return Err("a test has one kernel".to_owned());
    }
    Ok(Case { pass, launch, target, input, program, expected, comment, is_wir })
}

/// `ntid=64x1x1 chunk=16 warps=1`
fn launch(text: &str) -> Result<LaunchShape, String> {
    let mut launch = LaunchShape { ntid: [0; 3], chunk: 0, team: 0, ctas: 1, rows: false };
    for word in text.split_whitespace() {
        let (key, value) = word.split_once('=').ok_or("a launch is of KEY=VALUE")?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is not a number"));
        match key {
            "ntid" => {
                let extents: Vec<u32> = value.split('x').map(number).collect::<Result<_, _>>()?;
                launch.ntid = extents.try_into().map_err(|_| "ntid is XxYxZ")?;
            }
            "chunk" => launch.chunk = number(value)?,
            "warps" => launch.team = number(value)?,
            "ctas" => launch.ctas = number(value)?,
            "rows" => launch.rows = number(value)? != 0,
            _ => return Err(format!("`{key}` is not of a launch")),
        }
    }
    let sizes = [4, 8, 16].contains(&launch.chunk) && launch.team > 0 && launch.threads() > 0;
    if sizes { Ok(launch) } else { Err("a launch has ntid, chunk (4, 8 or 16) and warps".to_owned()) }
}

/// The text that the passes make; `off`: the pass that is left out.
fn found(case: &Case, off: Option<Pass>) -> Result<String, String> {
    let ptx = (&case.program, &case.program.functions[0]);
    let shape = (case.launch, case.target);
    if case.is_wir {
        return stages::on_text(&case.input, ptx, shape, case.pass, off == Some(case.pass));
    }
    stages::after(ptx, shape, case.pass, off).ok_or_else(|| "too large".to_owned())
}

fn compare(file: &Path) -> Result<(), Failed> {
    let case = read(file)?;
    let found = found(&case, None)?;
    if found == case.expected {
        return Ok(());
    }
    if std::env::var_os("PTXVM_BLESS").is_some() {
        let lines: String = found
            .lines()
            .map(|line| format!("{}   {line}", case.comment).trim_end().to_owned() + "\n")
            .collect();
        let text = format!("{}{} expect:\n{lines}", case.input, case.comment);
        std::fs::write(file, text).map_err(|e| e.to_string())?;
        return Ok(());
    }
    let differs = |(a, b): (&str, &str)| a != b;
    let line = found.lines().zip(case.expected.lines()).position(differs);
    let line = line.unwrap_or_else(|| found.lines().count().min(case.expected.lines().count()));
    let at = |text: &str| text.lines().nth(line).unwrap_or("the end").to_owned();
    Err(format!(
        "line {}:\n  expected {}\n  found    {}\n\n{found}",
        line + 1,
        at(&case.expected),
        at(&found)
    )
    .into())
}

/// The file says something of its pass: without the pass, the text is another one.
fn fails_without(file: &Path) -> Result<(), Failed> {
    let case = read(file)?;
    match found(&case, Some(case.pass)) {
        Ok(text) if text == case.expected => Err("the text is the same without the pass".into()),
        Ok(_) | Err(_) => Ok(()),
    }
}
