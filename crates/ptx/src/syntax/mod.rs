//! Text to tokens to tree, and back.
//!
//! Invariants: every byte of the text belongs to exactly one token, and the tokens concatenated give the
//! text. Parsing always succeeds and ends: it returns a tree of bounded depth, and diagnostics. Independent
//! mistakes each give one diagnostic. Nothing here uses the instruction table, resolves names or evaluates
//! constants; that is [`check`](crate::check).
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

/// The deepest nesting of blocks, of initialiser lists, and of the operators of one expression.
pub const MAX_NESTING: usize = 128;

/// The most mistakes that the lexer and the parser each report, and the most errors and warnings that the
/// checker reports. A binary file has a mistake in every token.
pub const MAX_DIAGNOSTICS: usize = 10_000;

/// The result of parsing: always a tree, and the mistakes of the text.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The tree; it has an `Error` node for each syntax error.
    pub tree: Tree,
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a text. A part with a syntax error becomes an error node and a diagnostic.
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

/// Records a diagnostic, up to the limit.
fn keep(diagnostics: &mut Vec<Diagnostic>, diagnostic: Diagnostic) {
    if diagnostics.len() < MAX_DIAGNOSTICS {
        diagnostics.push(shortened(diagnostic));
    }
}

/// Truncates a message that quotes much text.
fn shortened(mut diagnostic: Diagnostic) -> Diagnostic {
    const LONGEST_MESSAGE: usize = 400;
    if let Some((cut, _)) = diagnostic.message.char_indices().nth(LONGEST_MESSAGE) {
        diagnostic.message.truncate(cut);
        diagnostic.message.push('…');
    }
    diagnostic
}
