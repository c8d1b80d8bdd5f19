//! Compiles with NVIDIA's library, if the user asks for it, or if there is no clang.
//!
//! The library is always asked for PTX, even if the program asks for machine code, which could not run here.
//!
//! Invariant: only the library's public interface is called, with texts that live as long as the call.

use crate::options::Architecture;
use crate::program::{Compiled, Source};
use crate::settings;
use crate::status::Status;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

mod library;

use library::{Library, Texts};

/// File names of the library, newest first.
const NAMES: &[&str] = &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];

/// The library that the user named.
pub(crate) fn wanted() -> Option<&'static Path> {
    static WANTED: OnceLock<Option<PathBuf>> = OnceLock::new();
    WANTED.get_or_init(settings::theirs).as_deref()
}

/// NVIDIA's library if it is installed: on the library path, after ours, or in a toolkit that environment
/// variables name.
pub(crate) fn installed() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let paths = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let roots = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
        let toolkits = roots.chain([PathBuf::from("/usr/local/cuda")]);
        let folders = toolkits.flat_map(|root| [root.join("lib64"), root.join("lib")]);
        let places = std::env::split_paths(&paths).chain(folders).collect::<Vec<_>>();
        let files = places.iter().flat_map(|folder| NAMES.iter().map(|name| folder.join(name)));
        let mut files = files.filter(|path| path.is_absolute() && path.exists());
        files.find(|path| Library::open(path).is_ok())
    };
    FOUND.get_or_init(find).as_deref()
}

/// Compiles a program.
pub(crate) fn compile(
    path: &Path,
    source: &Source,
    options: &[Vec<u8>],
    architecture: Architecture,
) -> Compiled {
    let fail = |why: String| {
        Compiled::failed(
            Status::BUILTIN_OPERATION_FAILURE,
            format!("cannot compile with `{}`: {why}", path.display()),
        )
    };
    let library = match Library::open(path) {
        Ok(library) => library,
        Err(error) => return fail(error),
    };
    match with(&library, source, &virtual_only(options, architecture)) {
        Ok(compiled) => compiled,
        Err(status) => fail(status.name().to_string_lossy().into_owned()),
    }
}

/// The options with a virtual architecture, so that the library makes PTX.
fn virtual_only(options: &[Vec<u8>], architecture: Architecture) -> Vec<Vec<u8>> {
    let is_of_architecture = |option: &[u8]| {
        let name = option.trim_ascii();
        let name = name.strip_prefix(b"--").or_else(|| name.strip_prefix(b"-")).unwrap_or(name);
        let end = name.iter().position(|byte| *byte == b'=').unwrap_or(name.len());
        [&b"arch"[..], b"gpu-architecture"].contains(&&name[..end]).then_some(end < name.len())
    };
    let mut list = vec![format!("--gpu-architecture={}", architecture.name("compute")).into_bytes()];
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match is_of_architecture(option) {
            Some(true) => {}
            Some(false) => {
                let _its_value = options.next();
            }
            None => list.push(option.clone()),
        }
    }
    list
}

fn with(library: &Library, source: &Source, options: &[Vec<u8>]) -> Result<Compiled, Status> {
    let text = CString::new(source.text.as_slice()).map_err(|_| Status::INVALID_INPUT)?;
    let name = CString::new(source.name.as_slice()).map_err(|_| Status::INVALID_INPUT)?;
    let headers = Texts::new(source.headers.iter().map(|(_, text)| text.as_slice()))?;
    let names = Texts::new(source.headers.iter().map(|(name, _)| name.as_slice()))?;
    let program = library.create(&text, &name, &headers, &names)?;
    let expressions = Texts::new(source.expressions.iter().map(|text| text.as_bytes()))?;
    for expression in expressions.texts() {
        program.add(expression)?;
    }
    let status = program.compile(&Texts::new(options.iter().map(Vec::as_slice))?);
    let log = program.log()?;
    if status != Status::SUCCESS {
        return Ok(Compiled::failed(status, log));
    }
    let lowered = expressions.texts().iter().map(|expression| program.lowered(expression)).collect();
    Ok(Compiled { status, log, ptx: program.ptx()?, lowered })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_of_machine_code_becomes_a_virtual_one() {
        let architecture = Architecture { number: 90, suffix: Some('a'), is_real: true };
        let given = ["-DX", "-arch", "sm_90a", "--gpu-architecture=sm_80", "-I/a"]
            .map(|text| text.as_bytes().to_vec());
        let list = virtual_only(&given, architecture);
        let list: Vec<_> = list.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        assert_eq!(list, ["--gpu-architecture=compute_90a", "-DX", "-I/a"]);
    }
}
