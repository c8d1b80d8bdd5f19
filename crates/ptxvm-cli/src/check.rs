//! `ptxvm check`: prints all diagnostics of all files on standard error; with `--link` also conflicts between
//! the files.

use crate::options::{CheckOptions, Format, gpu_name};
use crate::{Exit, UsageError};

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
/// errors (0: no limit) only their number is printed.
pub(crate) fn print_diagnostics(checked: &ptxvm::Checked, format: Format, most: usize) {
    let mut printed = 0;
    for diagnostic in &checked.diagnostics {
        if most > 0 && printed == most {
            break;
        }
        printed += usize::from(diagnostic.severity == ptxvm::Severity::Error);
        crate::print_err(&match format {
            Format::Human => ptxvm::render(diagnostic, &checked.source, crate::colors()),
            Format::Json => format!("{}\n", ptxvm::render_json(diagnostic, &checked.source)),
        });
    }
    if format == Format::Human && checked.module.is_none() {
        let errors = checked.diagnostics.iter().filter(|d| d.severity == ptxvm::Severity::Error).count();
        let plural = if errors == 1 { "" } else { "s" };
        let shown =
            if printed < errors { format!(", {printed} shown (--max-errors)") } else { String::new() };
        crate::print_err(&format!("{}: rejected, {errors} error{plural}{shown}\n", checked.source.name));
    }
}
