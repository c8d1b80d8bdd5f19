//! What the library says on standard error, by the same setting as the driver: `PTXVM_LOG=refused`, `errors`
//! or `calls`.
//!
//! Invariant: nothing here fails; a closed standard error is no error. Without the setting, only a compiler
//! that is missing is reported.

use crate::status::Status;
use std::io::Write as _;
use std::sync::OnceLock;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Quiet,
    Refused,
    Errors,
    Calls,
}

fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| match std::env::var("PTXVM_LOG").as_deref() {
        Err(_) | Ok("" | "0" | "off") => Level::Quiet,
        Ok("errors") => Level::Errors,
        Ok("calls") => Level::Calls,
        Ok(_) => Level::Refused,
    })
}

/// Says a line.
pub(crate) fn say(text: &str) {
    let mut err = std::io::stderr().lock();
    let _closed = err.write_all(text.as_bytes()).and_then(|()| err.write_all(b"\n"));
}

/// Notes what a call answered.
pub(crate) fn call(name: &str, status: Status) {
    if level() >= if status == Status::SUCCESS { Level::Calls } else { Level::Errors } {
        say(&format!("ptxvm: {name}: {}", status.name().to_string_lossy()));
    }
}

/// Names what is not supported.
pub(crate) fn refused(what: &str) {
    if level() >= Level::Refused {
        say(&format!("ptxvm: {what}"));
    }
}
