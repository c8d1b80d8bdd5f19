//! Checks every statement of `tests/later/samples.tsv` in a module of its version and target. A statement
//! that ptxas accepts must be accepted, or refused as not implemented by a diagnostic that gives the version
//! and target that introduced it. A statement that ptxas rejects must be an error. Each statement is one
//! trial. The file is described in `tests/later/README.md`.

use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use ptx::check::{CheckOptions, check};
use ptx::diag::{Code, Diagnostic, Severity};

/// A line of the file.
#[derive(Clone)]
struct Sample {
    id: String,
    accepted: bool,
    version: String,
    target: String,
    introduced: String,
    on: String,
    statement: String,
    kernel: String,
    scope: String,
}

fn main() {
    let args = Arguments::from_args();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/later/samples.tsv");
    let text = std::fs::read_to_string(path).expect("tests/later/samples.tsv");
    let samples: Vec<Sample> = text.lines().skip(1).map(sample).collect();
    assert!(samples.len() > 690, "{} samples", samples.len());
    let trials = samples.into_iter().map(|s| {
        let name = format!("{} {}", s.id, if s.accepted { "accepted" } else { "rejected" });
        Trial::test(name, move || judge(&s).map_err(Failed::from))
    });
    libtest_mimic::run(&args, trials.collect()).exit();
}

fn sample(line: &str) -> Sample {
    let columns: Vec<&str> = line.split('\t').collect();
    let [id, ptxas, version, target, introduced, on, statement, kernel, scope] = columns[..] else {
        panic!("{line}")
    };
    let own = str::to_owned;
    let lines = |s: &str| s.replace("\\n", "\n");
    Sample {
        id: own(id),
        accepted: ptxas == "accept",
        version: own(version),
        target: own(target),
        introduced: own(introduced),
        on: own(on),
        statement: lines(statement),
        kernel: lines(kernel),
        scope: lines(scope),
    }
}

/// The module around a statement.
fn module(s: &Sample) -> String {
    let header = format!(".version {}\n.target {}\n.address_size 64\n", s.version, s.target);
    let Sample { scope, kernel, statement, .. } = s;
    if statement == "-" {
        return format!("{header}{scope}\n");
    }
    let wide = statement.split(|c: char| !c.is_alphanumeric()).any(|w| w.starts_with('q') && w.len() == 2);
    let wide = if wide { ".reg .b128 q<8>;" } else { "" };
    format!(
        "{header}{scope}\n.shared .align 128 .b8 sbuf[4096];\n.shared .align 8 .b64 mbar;\n\
         .visible .entry k(.param .u64 P0, .param .align 64 .b8 TM[128]) {kernel}\n{{\n\
         .reg .b8 b<8>; .reg .b16 h<64>; .reg .b32 r<400>; .reg .b64 d<64>; .reg .pred p<8>; {wide}\n\
         {statement}\nret;\n}}\n"
    )
}

fn judge(s: &Sample) -> Result<(), String> {
    let text = module(s);
    let checked = check(&s.id, &text, &CheckOptions::default());
    let errors: Vec<&Diagnostic> =
        checked.diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
    let shown = || {
        let each = errors.iter().map(|d| format!("{}: {} ({})", d.code.name(), d.message, d.label));
        format!("{}\n{}", s.statement, each.collect::<Vec<_>>().join("\n"))
    };
    if !s.accepted {
        let wrong = !errors.is_empty() && checked.module.is_none();
        return if wrong { Ok(()) } else { Err(format!("accepted: {}", s.statement)) };
    }
    match errors.iter().find(|d| d.code != Code::NotImplemented) {
        Some(_) => Err(format!("called wrong: {}", shown())),
        None if errors.is_empty() => Ok(()),
        None if errors.iter().any(|d| named(s, d)) => Ok(()),
        None => Err(format!("introduced by {} on {}, but: {}", s.introduced, s.on, shown())),
    }
}

/// Whether a diagnostic names the version and the target that introduced the form.
fn named(s: &Sample, diagnostic: &Diagnostic) -> bool {
    let words = || diagnostic.label.split(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_'));
    let version = words().any(|w| w.contains('.') && s.introduced.contains(w));
    let mut targets = words().filter(|w| w.starts_with("sm_"));
    let first = targets.next().map(|w| w.trim_end_matches('.'));
    let anywhere = s.on.contains("all") || !s.on.contains("sm_");
    version && first.map_or(anywhere, |sm| s.on.contains(sm) || s.on.contains(&sm.replace("sm_", "")))
}
