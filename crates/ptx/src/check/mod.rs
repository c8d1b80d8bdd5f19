//! Checking: from a tree to a [`Module`], or to diagnostics.
//!
//! Invariant: a [`Module`] exists only if no error was found; then no later stage can fail because of the
//! text. Independent mistakes each give one diagnostic; consequences of a mistake are not reported.
//!
//! The tree of a statement or declaration is dropped after its check, so there is never a tree of the whole
//! module.
//!
//! Data flow: the header (`header`) determines version and target. Declarations (`declare`, `shape`, `init`,
//! `function`) fill the module's scope (`scope`) in the order of the text. Bodies (`body`) are checked in
//! between: for each instruction (`inst`) its row in the table, its operands (`operand`, `mov`, `address`,
//! `texture`, `call`) and the row's rules (`rule`). Constants are evaluated in `constexpr` and `constant`;
//! versions and targets are compared in `gate`.
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

/// Options of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// The architecture on which the module is loaded; by default the module's own `.target`.
    pub gpu_name: Option<Sm>,
    /// Refuse programs that only the manual or only ptxas accepts.
    pub strict: bool,
}

/// The result of a check.
#[derive(Debug)]
pub struct Checked {
    /// The module, if no error was found.
    pub module: Option<Module>,
    /// The text, for rendering diagnostics.
    pub source: Arc<Source>,
    /// Errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// The longest text that spans can point into.
const LONGEST: usize = u32::MAX as usize;

/// Checks a text. `name` is its name in diagnostics. Never fails: mistakes are reported as diagnostics.
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
    let line = preprocessed.first.filter(|_| found.is_empty());
    found.extend(line.map(|line| {
        Diagnostic::new(Code::NotPortable, line, "preprocessor lines are legal, but ptxas refuses them")
            .with_help("run `cpp -P` over the text first")
            .with_section("4.1")
    }));
    found.append(&mut lexed.diagnostics);
    let mut checker = Checker::new(text, *options, found);
    // The items before the last directive of the header are parsed twice, because everything depends on the
    // header, wherever it is.
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
