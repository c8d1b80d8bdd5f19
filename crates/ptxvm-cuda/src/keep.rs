//! Saves the PTX that a program loads: `PTXVM_KEEP_PTX` names a folder, and each loaded text becomes a file
//! in it.
//!
//! Invariant: a file's name is derived from its content, so a folder has each text once even if several
//! processes write to it. An existing file or link is not changed. If the folder cannot be written, that is
//! printed once, and loading continues.

use std::fs::OpenOptions;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

/// Saves a text, if the user set a folder.
pub(crate) fn keep(text: &str) {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    static SAID: Once = Once::new();
    let folder = FOLDER.get_or_init(|| {
        std::env::var_os("PTXVM_KEEP_PTX").filter(|folder| !folder.is_empty()).map(PathBuf::from)
    });
    let Some(folder) = folder else { return };
    if let Err(error) = keep_in(folder, text) {
        let folder = folder.display();
        SAID.call_once(|| crate::log::say(&format!("ptxvm: cannot save PTX in `{folder}`: {error}")));
    }
}

fn keep_in(folder: &Path, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let file = folder.join(format!("{:016x}.ptx", hasher.finish()));
    match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(mut file) => file.write_all(text.as_bytes()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::keep_in;

    #[test]
    fn each_text_is_kept_once() {
        let folder = std::env::temp_dir().join(format!("ptxvm-keep-test-{}", std::process::id()));
        let _from_before = std::fs::remove_dir_all(&folder);
        for text in ["one", "two", "one"] {
            keep_in(&folder.join("deeper"), text).expect("the folder can be written");
        }
        let files = std::fs::read_dir(folder.join("deeper")).expect("the folder is there");
        let mut texts: Vec<String> = files
            .map(|file| std::fs::read_to_string(file.expect("an entry").path()).expect("a text"))
            .collect();
        texts.sort();
        assert_eq!(texts, ["one", "two"]);
        std::fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
