//! Files on the command line: files, folders, and patterns that the shell did not expand.
//!
//! Invariant: the result has a fixed order, and contains a file once per mention. Links to folders are not
//! followed, so the search ends.

use crate::UsageError;
use std::path::{Path, PathBuf};

/// How deep folders are searched.
const DEEPEST: usize = 64;

/// The files of the arguments: `-` and existing files unchanged; for a folder all `.ptx` files below it; for
/// a pattern with `*`, `?` or `[...]` that is no file itself, its matches.
pub(crate) fn expand(arguments: &[String]) -> Result<Vec<String>, UsageError> {
    let mut files = Vec::new();
    for argument in arguments {
        let path = Path::new(argument);
        if argument == "-" || path.is_file() {
            files.push(argument.clone());
        } else if path.is_dir() {
            let mut found = Vec::new();
            search(path, DEEPEST, &mut found).map_err(|e| format!("cannot read `{argument}`: {e}"))?;
            found.sort_unstable();
            if found.is_empty() {
                return Err(format!("there is no `.ptx` file in `{argument}`").into());
            }
            files.extend(found.iter().map(|path| path.to_string_lossy().into_owned()));
        } else if argument.contains(['*', '?', '[']) && !path.exists() {
            let paths = glob::glob(argument).map_err(|e| format!("`{argument}` is not a pattern: {e}"))?;
            let found: Vec<PathBuf> = paths.filter_map(Result::ok).filter(|path| path.is_file()).collect();
            if found.is_empty() {
                return Err(format!("no file matches `{argument}`").into());
            }
            files.extend(found.iter().map(|path| path.to_string_lossy().into_owned()));
        } else {
            // Reading it will report the error.
            files.push(argument.clone());
        }
    }
    Ok(files)
}

fn search(folder: &Path, deeper: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && deeper > 0 {
            search(&path, deeper - 1, found)?;
        } else if !kind.is_dir() && path.extension().is_some_and(|ending| ending == "ptx") && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}
