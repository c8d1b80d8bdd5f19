//! `ptxvm check`: every diagnostic of every file, on standard error.

use crate::options::{CheckOptions, Format, gpu_name};
use crate::{Exit, UsageError};

/// Checks the files. The status is that of the worst: a file that cannot be read over a rejected one.
pub(crate) fn check(options: &CheckOptions) -> Result<Exit, UsageError> {
    let check_options =
        ptxvm::CheckOptions { gpu_name: gpu_name(options.gpu_name.as_deref())?, strict: options.strict };
    let mut exit = Exit::Done;
    for file in &options.files {
        let (name, text) = match crate::read_source(file) {
            Ok(source) => source,
            Err(UsageError(message)) => {
                eprintln!("ptxvm: {message}");
                exit = Exit::Usage;
                continue;
            }
        };
        let checked = ptxvm::check(&name, &text, &check_options);
        print_diagnostics(&checked, options.format);
        if checked.module.is_none() && exit == Exit::Done {
            exit = Exit::Rejected;
        }
    }
    Ok(exit)
}

/// Prints what checking found, on standard error: for people, or one JSON object a line.
pub(crate) fn print_diagnostics(checked: &ptxvm::Checked, format: Format) {
    for diagnostic in &checked.diagnostics {
        match format {
            Format::Human => eprint!("{}", ptxvm::render(diagnostic, &checked.source, crate::colors())),
            Format::Json => eprintln!("{}", ptxvm::render_json(diagnostic, &checked.source)),
        }
    }
    if format == Format::Human && checked.module.is_none() {
        let errors = checked.diagnostics.iter().filter(|d| d.severity == ptxvm::Severity::Error).count();
        let plural = if errors == 1 { "" } else { "s" };
        eprintln!("{}: rejected, {errors} error{plural}", checked.source.name);
    }
}
