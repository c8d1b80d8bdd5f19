//! Stand-ins for tools that libraries of clients call: this program under another name.
//!
//! `ptxas` checks PTX and writes it unchanged: the client treats the text as machine code, and our driver
//! accepts it. `fatbinary` packs PTX into a container.
//!
//! Invariant: known options are handled, and options about machine code are ignored. No tool writes machine
//! code.

use crate::{Exit, UsageError};
use std::ffi::OsString;

/// A tool, called with its arguments.
type Tool = fn(&[String]) -> Result<Exit, UsageError>;

/// The tool under whose name this program was started, if any.
pub(crate) fn called_as(program: Option<&OsString>) -> Option<Tool> {
    let name = std::path::Path::new(program?).file_name()?.to_str()?;
    match name {
        "ptxas" | "ptxas-blackwell" => Some(ptxas),
        "fatbinary" => Some(fatbinary),
        _ => None,
    }
}

/// The CUDA version that the tools report: that of the driver. Clients choose the PTX version by it.
fn release() -> (u32, u32) {
    let text = std::env::var("PTXVM_DRIVER_VERSION").unwrap_or_default();
    let read = |text: &str| match text.split_once('.') {
        Some((major, minor)) => Some((major.parse().ok()?, minor.parse().ok()?)),
        None => {
            let whole: u32 = text.parse().ok()?;
            Some(if whole < 1000 { (whole, 0) } else { (whole / 1000, whole % 1000 / 10) })
        }
    };
    read(&text).unwrap_or((12, 9))
}

/// Prints the version in the format that clients expect.
fn version(tool: &str) -> Result<Exit, UsageError> {
    let (major, minor) = release();
    crate::print_out(&format!(
        "{tool}: the stand-in of ptxvm\nCuda compilation tools, release {major}.{minor}, V{major}.{minor}.0\n"
    ))?;
    Ok(Exit::Done)
}

/// The value of an option: `-o x`, `--output-file x` or `--output-file=x`.
fn option<'a>(arguments: &'a [String], names: &[&str]) -> Option<&'a str> {
    for (index, argument) in arguments.iter().enumerate() {
        for name in names {
            if argument == name {
                return arguments.get(index + 1).map(String::as_str);
            }
            if let Some(value) = argument.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
                return Some(value);
            }
        }
    }
    None
}

/// The assembler: one input, one output.
fn ptxas(arguments: &[String]) -> Result<Exit, UsageError> {
    if arguments.iter().any(|argument| argument == "--version" || argument == "-V") {
        return version("ptxas");
    }
    let output = option(arguments, &["-o", "--output-file"]).unwrap_or("elf.o");
    let with_value = [
        "-o",
        "--output-file",
        "-arch",
        "--gpu-name",
        "-O",
        "--opt-level",
        "-maxrregcount",
        "--maxrregcount",
    ];
    let mut input = None;
    let mut skip = false;
    for argument in arguments {
        if std::mem::take(&mut skip) {
            continue;
        }
        skip = with_value.contains(&argument.as_str());
        if !skip && !argument.starts_with('-') {
            input = Some(argument);
        }
    }
    let input = input.ok_or("ptxas: no input file")?;
    let (name, text) = crate::read_source(input)?;
    let checked = ptxvm::check(&name, &text, &ptxvm::CheckOptions::default());
    for diagnostic in
        checked.diagnostics.iter().filter(|diagnostic| diagnostic.severity == ptxvm::Severity::Error)
    {
        crate::print_err(&ptxvm::render(diagnostic, &checked.source, false));
    }
    if checked.module.is_none() {
        return Ok(Exit::Rejected);
    }
    write(output, text.as_bytes())?;
    Ok(Exit::Done)
}

/// The packer: `--create=FILE`, and `--image=profile=sm_XX,file=FILE` or `--image3=kind=K,sm=XX,file=FILE` for each input.
fn fatbinary(arguments: &[String]) -> Result<Exit, UsageError> {
    if arguments.iter().any(|argument| argument == "--version" || argument == "-V") {
        return version("fatbinary");
    }
    let output = option(arguments, &["--create", "-create"]).ok_or("fatbinary: --create names the output")?;
    let mut container = Vec::new();
    let mut specs = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        if ["--image", "--image3", "-image", "-image3"].contains(&name) {
            specs.extend(if value.is_empty() { rest.next().cloned() } else { Some(value.to_owned()) });
        }
    }
    for spec in &specs {
        let field = |name: &str| spec.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        let file = field("file").ok_or("fatbinary: an image has no file")?;
        let sm = field("sm").or(field("profile")).unwrap_or("");
        let sm = sm.trim_start_matches("sm_").trim_start_matches("compute_").trim_end_matches(['a', 'f']);
        let sm = sm.parse().map_err(|_| format!("fatbinary: `{spec}` names no architecture"))?;
        let (_, text) = crate::read_source(file)?;
        container.extend(ptxvm::container::write(file, sm, &text));
    }
    write(output, &container)?;
    Ok(Exit::Done)
}

fn write(path: &str, bytes: &[u8]) -> Result<(), UsageError> {
    std::fs::write(path, bytes).map_err(|error| format!("cannot write `{path}`: {error}").into())
}
