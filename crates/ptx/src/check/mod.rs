//! Checking: from a tree to a [`Module`], or to what is wrong with the text.
//!
//! Invariant: a [`Module`] exists only where no error was found; then nothing later can fail because of the text. Several
//! mistakes give several diagnostics, one mistake gives one: what rests on something broken says nothing more.
//!
//! The tree of a statement or declaration is dropped once it has been checked; there is never one of a whole module.
//!
//! Data flow: the header (`header`) fixes version and target; declarations (`declare`, `shape`, `init`, `function`) fill the
//! module's scope (`scope`) in the order of the text; bodies (`body`) are checked as they are met: each instruction
//! (`inst`) finds its row in the table, then its operands (`operand`, `mov`, `address`, `texture`, `call`) and the row's rules (`rule`)
//! are checked. Constants are `constexpr` and `constant`; versions and targets are compared in `gate`.
//!
//! PTX ISA §4 to §7, §9.4, §11.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod module;

mod address;
mod body;
mod call;
mod cascade;
mod checker;
pub mod constant;
mod constexpr;
mod debug;
mod declare;
mod function;
mod gate;
mod header;
mod immediate;
mod init;
mod inst;
mod lenient;
mod link;
mod meant;
mod mismatch;
mod mov;
mod names;
mod operand;
mod parameter;
mod print;
mod recursion;
mod report;
mod rule;
mod scope;
mod sequence;
mod shape;
mod suspicion;
mod texture;
mod types;
mod unresolved;

pub use link::link;
pub use module::Module;
pub use print::print;
pub use unresolved::{Unresolved, unresolved};

use crate::diag::{Code, Diagnostic};
use crate::isa::Sm;
use crate::syntax::{self, Parser};
use checker::Checker;
use module::Source;
use std::sync::Arc;

/// How to check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// The architecture to load on; without it, the module's own `.target`.
    pub gpu_name: Option<Sm>,
    /// Refuse what the manual and ptxas do not both accept.
    pub strict: bool,
}

/// What checking a text gives.
#[derive(Debug)]
pub struct Checked {
    /// The module, where no error was found.
    pub module: Option<Module>,
    /// The text, for rendering diagnostics.
    pub source: Arc<Source>,
    /// Errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// The longest text that spans can point into.
const LONGEST: usize = u32::MAX as usize;

/// Checks a text. `name` is what diagnostics call it. Never fails: what is wrong is in the diagnostics.
pub fn check(name: &str, text: &str, options: &CheckOptions) -> Checked {
    if text.len() > LONGEST {
        return too_long(name);
    }
    if let Some(foreign) = syntax::foreign::recognise(text) {
        return Checked {
            module: None,
            source: Arc::new(Source::new(name, text)),
            diagnostics: vec![foreign],
        };
    }
    let preprocessed = syntax::preprocess::preprocess(text);
    let text: &str = &preprocessed.text;
    if text.len() > LONGEST {
        return too_long(name);
    }
    let source = Arc::new(Source::new(name, text));
    if preprocessed.unfinished {
        return Checked { module: None, source, diagnostics: preprocessed.diagnostics };
    }
    let mut lexed = syntax::lexer::lex_seen(text);
    let mut found = preprocessed.diagnostics;
    found.append(&mut lexed.diagnostics);
    let mut checker = Checker::new(text, *options, found);
    // What stands before the last directive of the header is read twice, as everything depends on it, wherever it stands.
    let header = Parser::new(text, &lexed).items(lexed.header_end);
    checker.header_of(&header);
    checker.module(&mut Parser::new(text, &lexed));
    drop(lexed);
    let (module, diagnostics) = checker.finish(Arc::clone(&source));
    Checked { module, source, diagnostics }
}

fn too_long(name: &str) -> Checked {
    let source = Arc::new(Source::new(name, ""));
    let diagnostic = Diagnostic::new(Code::TooLarge, crate::Span::default(), "a text has at most 4 GiB");
    Checked { module: None, source, diagnostics: vec![diagnostic] }
}
