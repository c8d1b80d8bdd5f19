//! The fuzz targets as functions of an input, and the mutator that they share.
//!
//! The properties are those that `crates/ptx/tests/findings.rs` holds every past finding against. An input is read as UTF-8,
//! with a replacement character for what is none: the library takes text.

#[path = "../../crates/ptx/tests/support/facts.rs"]
mod facts;
#[path = "../../crates/ptx/tests/support/forms.rs"]
mod forms;
mod mutator;
#[path = "../../crates/ptx/tests/support/properties.rs"]
mod properties;
#[path = "../../crates/ptxvm/tests/support/run_all.rs"]
mod run_all;

pub use mutator::{mutate, vocabulary};

/// Cuts into tokens.
pub fn lexer(data: &[u8]) {
    properties::lexes(&String::from_utf8_lossy(data));
}

/// Parses.
pub fn parser(data: &[u8]) {
    properties::parses(&String::from_utf8_lossy(data));
}

/// Checks.
pub fn checker(data: &[u8]) {
    properties::checks(&String::from_utf8_lossy(data));
}

/// Formats; prints and checks again.
pub fn printer(data: &[u8]) {
    properties::prints(&String::from_utf8_lossy(data));
}

/// Lowers, verifies and runs every kernel.
pub fn execute(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    properties::lowers(&text);
    run_all::runs(&text);
}

/// Modules with a few instructions of random rows each, at every level: seeds that go deep.
pub fn generated(seed: u64) -> Vec<String> {
    let mut rng = forms::Rng(seed.max(1));
    forms::LEVELS.iter().map(|level| forms::text(&mutator::instructions(&mut rng, 6), *level)).collect()
}
