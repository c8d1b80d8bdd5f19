//! Stand-ins for tools that libraries of clients call: this program under another name.
//!
//! `ptxas` checks PTX and writes it unchanged: the client treats the text as machine code, and our driver
//! accepts it. For a relocatable object (`-c`) it writes an ELF file with the text. `nvlink` checks that
//! objects link and writes their texts as one image, which our driver links. `fatbinary` packs PTX into a
//! container.
//!
//! Invariant: known options are handled, and options about machine code are ignored. No tool writes machine
//! code.

use super::release::version;
use super::relocatable;
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
        "nvlink" => Some(nvlink),
        "nvcc" => Some(super::nvcc::nvcc),
        _ => None,
    }
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
    let input = *inputs(arguments, &with_value).last().ok_or("ptxas: no input file")?;
    let (name, text) = crate::read_source(input)?;
    let checked = ptxvm::check(&name, &text, &ptxvm::CheckOptions::default());
    if !accepts(&checked) {
        return Ok(Exit::Rejected);
    }
    let is_relocatable =
        ["-c", "--compile-only"].iter().any(|name| arguments.iter().any(|given| given == name));
    let object = is_relocatable.then(|| relocatable::write(&checked, &text));
    write(output, object.as_deref().unwrap_or(text.as_bytes()))?;
    Ok(Exit::Done)
}

/// The arguments that are neither options nor values of these options.
fn inputs<'a>(arguments: &'a [String], with_value: &[&str]) -> Vec<&'a String> {
    let mut found = Vec::new();
    let mut skip = false;
    for argument in arguments {
        if std::mem::take(&mut skip) {
            continue;
        }
        skip = with_value.contains(&argument.as_str());
        if !skip && !argument.starts_with('-') {
            found.push(argument);
        }
    }
    found
}

/// Prints the errors, and returns whether there are none.
fn accepts(checked: &ptxvm::Checked) -> bool {
    for diagnostic in
        checked.diagnostics.iter().filter(|diagnostic| diagnostic.severity == ptxvm::Severity::Error)
    {
        crate::print_err(&ptxvm::render(diagnostic, &checked.source, false));
    }
    checked.module.is_some()
}

/// The PTX of a file: a text, or an object of [`ptxas`].
fn read_ptx(path: &str) -> Result<(String, String), UsageError> {
    let object = std::fs::read(path).ok().and_then(|bytes| relocatable::text(&bytes));
    match object {
        Some(text) => Ok((path.to_owned(), text)),
        None => crate::read_source(path),
    }
}

/// The device linker: objects, one output. Symbols that no object defines are left to the driver, which has
/// the device library.
fn nvlink(arguments: &[String]) -> Result<Exit, UsageError> {
    if arguments.iter().any(|argument| argument == "--version" || argument == "-V") {
        return version("nvlink");
    }
    let output = option(arguments, &["-o", "--output-file"]).unwrap_or("a.out");
    let with_value =
        ["-o", "--output-file", "-arch", "--arch", "-maxrregcount", "--maxrregcount", "-L", "-l"];
    let texts = inputs(arguments, &with_value).into_iter().map(|path| read_ptx(path));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    if texts.is_empty() {
        return Err("nvlink: no input file".into());
    }
    let given: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    if !accepts(&ptxvm::link(&given, &ptxvm::CheckOptions::default())) {
        return Ok(Exit::Rejected);
    }
    let image = match &texts[..] {
        [(_, text)] => text.clone(),
        texts => ptxvm::container::Bundle::write(texts, None),
    };
    write(output, image.as_bytes())?;
    Ok(Exit::Done)
}

/// The packer: `--create=FILE`, and `--image=profile=sm_XX,file=FILE` or `--image3=kind=K,sm=XX,file=FILE`
/// for each input.
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
        let (_, text) = read_ptx(file)?;
        container.extend(ptxvm::container::write(file, sm, &text));
    }
    write(output, &container)?;
    Ok(Exit::Done)
}

fn write(path: &str, bytes: &[u8]) -> Result<(), UsageError> {
    std::fs::write(path, bytes).map_err(|error| format!("cannot write `{path}`: {error}").into())
}
