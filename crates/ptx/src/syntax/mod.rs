//! Text to tokens to tree, and back.
//!
//! Invariants: every byte of the text belongs to exactly one token, and joined they give the text; parsing never fails,
//! always ends, and makes a tree of bounded depth beside its diagnostics; independent mistakes each give one diagnostic.
//! Nothing here knows the instruction table, resolves a name or computes a constant: that is [`check`](crate::check).
//!
//! PTX ISA §4.

mod characters;
pub(crate) mod foreign;
pub mod format;
pub mod lexer;
pub mod number;
mod parser;
pub(crate) mod preprocess;
pub mod token;
pub mod tree;

pub(crate) use parser::{Parser, Piece};
pub use token::{Token, TokenKind};
pub use tree::Tree;

use crate::diag::Diagnostic;

/// How deep blocks, initialiser lists and the operators of one expression may nest.
pub const MAX_NESTING: usize = 128;

/// How many mistakes the lexer and the parser each report at most, and the checker of errors and of warnings each; a text that is no
/// PTX at all has one everywhere.
pub const MAX_DIAGNOSTICS: usize = 10_000;

/// What parsing a text gives: a tree, always, and what was wrong with the text.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The tree; it holds an `Error` node wherever there is an error among the diagnostics.
    pub tree: Tree,
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a text. Never fails: what cannot be read becomes an error node and a diagnostic.
pub fn parse(source: &str) -> Parsed {
    let mut lexed = lexer::lex(source);
    let all = std::mem::take(&mut lexed.tokens);
    lexed.tokens = all.iter().filter(|token| lexer::is_seen(token.kind)).copied().collect();
    let mut parser = Parser::new(source, &lexed);
    let items = parser.items(usize::MAX);
    let more = parser.take_diagnostics();
    let mut diagnostics = lexed.diagnostics;
    diagnostics.extend(more);
    diagnostics.sort_by_key(|d| d.span);
    Parsed { tree: Tree { tokens: all, items }, diagnostics }
}

/// Keeps a diagnostic, unless there are too many.
fn keep(diagnostics: &mut Vec<Diagnostic>, diagnostic: Diagnostic) {
    if diagnostics.len() < MAX_DIAGNOSTICS {
        diagnostics.push(shortened(diagnostic));
    }
}

/// A message that quotes the text at length is cut.
fn shortened(mut diagnostic: Diagnostic) -> Diagnostic {
    const LONGEST_MESSAGE: usize = 400;
    if let Some((cut, _)) = diagnostic.message.char_indices().nth(LONGEST_MESSAGE) {
        diagnostic.message.truncate(cut);
        diagnostic.message.push('…');
    }
    diagnostic
}
