//! What the library says on standard error.
//!
//! `PTXVM_LOG=refused` names each function that is not supported, once for each call; `PTXVM_LOG=errors` also
//! each call that fails; `PTXVM_LOG=calls` each call. Without it, only traps and rejected modules are
//! reported.
//!
//! Invariant: nothing here fails; a closed standard error is no error.

use crate::status::Status;
use std::io::Write as _;
use std::sync::OnceLock;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// Says a line, or several.
pub(crate) fn say(text: &str) {
    let mut err = std::io::stderr().lock();
    let _closed = err.write_all(text.trim_end().as_bytes()).and_then(|()| err.write_all(b"\n"));
}

/// Says, once in the process, that kernels run in the interpreter alone.
pub(crate) fn no_compiler(why: &str) {
    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| {
        say(&format!(
            "ptxvm: note: kernels run in the interpreter, many times slower than native code: {why}; `ptxvm doctor` says more"
        ));
    });
}

/// Notes what a call answered.
pub(crate) fn call(name: &'static str, status: Status) {
    let wanted = match status {
        Status::Success | Status::NotReady => Level::Calls,
        _ => Level::Errors,
    };
    if level() >= wanted {
        say(&format!("ptxvm: {name}: {}", status.name().to_string_lossy()));
    }
}

/// Says why a call fails, to who asks for errors.
pub(crate) fn note(why: &str) {
    if level() >= Level::Errors {
        say(&format!("ptxvm: {why}"));
    }
}

/// Notes a call of a function that is not supported, or a use that is not.
pub(crate) fn refused(what: &str) {
    if level() >= Level::Refused {
        say(&format!("ptxvm: {what} is not supported"));
    }
}

/// Says what would help, once.
pub(crate) fn hint(text: &str) {
    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| say(&format!("ptxvm: {text}")));
}
