//! `ptxvm check`: prints all diagnostics of all files on standard error; with `--link` also conflicts between
//! the files.

use crate::options::{CheckOptions, Format, gpu_name};
use crate::{Exit, UsageError};
use std::collections::HashMap;

/// Checks the files. The status is the worst: an unreadable file is worse than a rejected one.
pub(crate) fn check(options: &CheckOptions) -> Result<Exit, UsageError> {
    let check_options =
        ptxvm::CheckOptions { gpu_name: gpu_name(options.gpu_name.as_deref())?, strict: options.strict };
    let mut exit = Exit::Done;
    let mut sources = Vec::new();
    for file in &crate::files::expand(&options.files)? {
        let (name, text) = match crate::read_source(file) {
            Ok(source) => source,
            Err(UsageError(message)) => {
                crate::print_err(&format!("ptxvm: {message}\n"));
                exit = Exit::Usage;
                continue;
            }
        };
        if options.link {
            sources.push((name, text));
        } else {
            report(&ptxvm::check(&name, &text, &check_options), options, &mut exit);
        }
    }
    // Without one of the files, its definitions would be reported as missing.
    if options.link && exit == Exit::Done {
        let texts: Vec<(&str, &str)> =
            sources.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        report(&ptxvm::link(&texts, &check_options), options, &mut exit);
    }
    Ok(exit)
}

fn report(checked: &ptxvm::Checked, options: &CheckOptions, exit: &mut Exit) {
    print_diagnostics(checked, options.format, options.max_errors);
    if checked.module.is_none() && *exit == Exit::Done {
        *exit = Exit::Rejected;
    }
}

/// Prints the diagnostics of a check on standard error: as text, or one JSON object per line. After `most`
/// errors (0: no limit) only their number is printed. As text, a warning that differs from an earlier one in
/// its place only is a line number behind that one.
pub(crate) fn print_diagnostics(checked: &ptxvm::Checked, format: Format, most: usize) {
    let mut printed = 0;
    let mut groups = warnings(checked);
    for diagnostic in &checked.diagnostics {
        if most > 0 && printed == most {
            break;
        }
        printed += usize::from(diagnostic.severity == ptxvm::Severity::Error);
        if format == Format::Json {
            crate::print_err(&format!("{}\n", ptxvm::render_json(diagnostic, &checked.source)));
            continue;
        }
        let group = groups.remove(&Alike::of(diagnostic, checked));
        if group.is_none() && is_grouped(diagnostic) {
            continue;
        }
        crate::print_err(&ptxvm::render(diagnostic, &checked.source, crate::colors()));
        if let Some([_, further @ ..]) = group.as_deref() {
            crate::print_err(&also_on(further));
        }
    }
    if format == Format::Human && checked.module.is_none() {
        let errors = checked.diagnostics.iter().filter(|d| d.severity == ptxvm::Severity::Error).count();
        let plural = if errors == 1 { "" } else { "s" };
        let shown =
            if printed < errors { format!(", {printed} shown (--max-errors)") } else { String::new() };
        crate::print_err(&format!("{}: rejected, {errors} error{plural}{shown}\n", checked.source.name));
    }
}

/// What warnings that differ in their places only have in common.
#[derive(PartialEq, Eq, Hash)]
struct Alike<'c> {
    file: &'c str,
    code: ptxvm::Code,
    texts: [&'c str; 3],
}

impl<'c> Alike<'c> {
    fn of(diagnostic: &'c ptxvm::Diagnostic, checked: &'c ptxvm::Checked) -> Self {
        let help = diagnostic.help.as_deref().unwrap_or_default();
        Self {
            file: checked.source.name_of(diagnostic.span),
            code: diagnostic.code,
            texts: [&diagnostic.message, &diagnostic.label, help],
        }
    }
}

/// Whether a diagnostic is shown once for all places where it is the same.
fn is_grouped(diagnostic: &ptxvm::Diagnostic) -> bool {
    diagnostic.severity == ptxvm::Severity::Warning && diagnostic.related.is_empty()
}

/// The lines of the warnings, for all that are alike.
fn warnings(checked: &ptxvm::Checked) -> HashMap<Alike<'_>, Vec<u32>> {
    let mut groups: HashMap<Alike<'_>, Vec<u32>> = HashMap::new();
    for warning in checked.diagnostics.iter().filter(|diagnostic| is_grouped(diagnostic)) {
        groups.entry(Alike::of(warning, checked)).or_default().push(checked.source.line(warning.span));
    }
    groups
}

/// The note behind a warning that is given for further lines; nothing if there are none.
fn also_on(lines: &[u32]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = lines.iter().map(u32::to_string).collect();
    let plural = if lines.len() == 1 { "" } else { "s" };
    format!("note: the same on line{plural} {}\n", shown.join(", "))
}
