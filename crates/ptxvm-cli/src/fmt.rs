//! `ptxvm fmt`: the canonical layout of PTX texts.
//!
//! Invariant: a file is written only if its text parses and is not yet in canonical layout; only white space
//! changes. A failure leaves the file unchanged.

use crate::options::FmtOptions;
use crate::output::write_file;
use crate::{Exit, UsageError};
use std::path::Path;

/// Formats the files. The status is the worst.
pub(crate) fn fmt(options: &FmtOptions) -> Result<Exit, UsageError> {
    let mut exit = Exit::Done;
    for file in &crate::files::expand(&options.files)? {
        let ended = fmt_file(file, options).unwrap_or_else(|UsageError(message)| {
            crate::print_err(&format!("ptxvm: {message}\n"));
            Exit::Usage
        });
        if ended as u8 > exit as u8 {
            exit = ended;
        }
    }
    Ok(exit)
}

fn fmt_file(file: &str, options: &FmtOptions) -> Result<Exit, UsageError> {
    let (name, text) = read_exactly(file)?;
    let formatted = match ptxvm::format(&text) {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            let source = ptxvm::Source::new(name, text);
            for diagnostic in &diagnostics {
                crate::print_err(&ptxvm::render(diagnostic, &source, crate::colors()));
            }
            crate::print_err(&format!("{}: not formatted, it does not parse\n", source.name));
            return Ok(Exit::Rejected);
        }
    };
    if options.check {
        if formatted == text {
            return Ok(Exit::Done);
        }
        crate::print_err(&format!("{name}: not in canonical layout\n"));
        return Ok(Exit::Rejected);
    }
    if options.stdout || file == "-" {
        crate::print_out(&formatted)?;
    } else if formatted != text {
        write_file(Path::new(file), |out| out.write_all(formatted.as_bytes()))?;
    }
    Ok(Exit::Done)
}

/// Reads a text that will be written back: bytes that are not UTF-8 are refused instead of replaced.
fn read_exactly(file: &str) -> Result<(String, String), UsageError> {
    let (name, bytes) = if file == "-" {
        ("<stdin>", crate::read_at_most(&mut std::io::stdin(), crate::LONGEST_TEXT))
    } else {
        let open = std::fs::File::open(file);
        (file, open.and_then(|mut file| crate::read_at_most(&mut file, crate::LONGEST_TEXT)))
    };
    let bytes = bytes.map_err(|e| format!("cannot read `{name}`: {e}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("`{name}` is not UTF-8"))?;
    Ok((name.to_owned(), text))
}
