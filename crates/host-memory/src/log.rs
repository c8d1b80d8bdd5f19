//! The lines that the libraries write to standard error, and the setting that selects them.
//!
//! `PTXVM_LOG=refused` names each unsupported function or use when a program calls it. `PTXVM_LOG=errors`
//! also names each call that fails, and `PTXVM_LOG=calls` each call. Without the variable, only texts that a
//! library passes to [`say`] are written, such as reports of traps.
//!
//! Invariant: nothing here fails; a closed standard error is not an error. The setting is read once.

use std::ffi::CStr;
use std::io::Write as _;
use std::sync::{Once, OnceLock};

/// The values of `PTXVM_LOG`. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Quiet,
    Refused,
    Errors,
    Calls,
}

impl Level {
    fn of(setting: Option<&str>) -> Self {
        match setting {
            None | Some("" | "0" | "off") => Self::Quiet,
            Some("errors") => Self::Errors,
            Some("calls") => Self::Calls,
            Some(_) => Self::Refused,
        }
    }
}

fn is_on(level: Level) -> bool {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let setting = std::env::var_os("PTXVM_LOG");
        Level::of(setting.as_ref().map(|text| text.to_str().unwrap_or("?")))
    }) >= level
}

/// Writes one or more lines.
pub fn say(text: &str) {
    let mut err = std::io::stderr().lock();
    let _closed = err.write_all(text.trim_end().as_bytes()).and_then(|()| err.write_all(b"\n"));
}

/// Writes the result of a call: its status by name, if the user asks for calls like it.
pub fn call(name: &str, status: &CStr, is_failure: bool) {
    if is_on(if is_failure { Level::Errors } else { Level::Calls }) {
        say(&format!("ptxvm: {name}: {}", status.to_string_lossy()));
    }
}

/// Writes the reason of a failure, if the user asks for errors.
pub fn note(why: &str) {
    if is_on(Level::Errors) {
        say(&format!("ptxvm: {why}"));
    }
}

/// Names an unsupported function or use, if the user asks for these.
pub fn refused(what: &str) {
    rejected(&format!("{what} is not supported"));
}

/// Writes the reason why something unsupported is rejected, if the user asks for these.
pub fn rejected(why: &str) {
    if is_on(Level::Refused) {
        say(&format!("ptxvm: {why}"));
    }
}

/// Writes advice at the first call, regardless of the setting.
pub fn hint(text: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| say(&format!("ptxvm: {text}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_unknown_settings_name_refusals() {
        for off in [None, Some(""), Some("0"), Some("off")] {
            assert_eq!(Level::of(off), Level::Quiet);
        }
        assert_eq!(Level::of(Some("1")), Level::Refused);
        assert_eq!(Level::of(Some("refused")), Level::Refused);
        assert!(Level::of(Some("refused")) < Level::of(Some("errors")));
        assert!(Level::of(Some("errors")) < Level::of(Some("calls")));
    }
}
