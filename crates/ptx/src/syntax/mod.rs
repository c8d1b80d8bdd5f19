//! Text to tokens to tree, and back.
//!
//! Invariants: every byte of the text belongs to exactly one token, and joined they give the text; parsing never fails,
//! always ends, and makes a tree of bounded depth beside its diagnostics; independent mistakes each give one diagnostic.
//! Nothing here knows the instruction table, resolves a name or computes a constant: that is [`check`](crate::check).
//!
//! PTX ISA §4.

pub mod format;
pub mod lexer;
pub mod number;
mod parser;
pub(crate) mod preprocess;
pub mod token;
pub mod tree;

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
    parsed(source, lexed, all)
}

/// As [`parse`], but the tree holds no tokens: for who does not print the text again.
pub(crate) fn parse_items(source: &str) -> Parsed {
    parsed(source, lexer::lex_seen(source), Vec::new())
}

/// Parses the tokens that the grammar sees; the tree gets `tokens`.
fn parsed(source: &str, seen: lexer::Lexed, tokens: Vec<Token>) -> Parsed {
    let (items, more) = parser::Parser::new(source, &seen.tokens, seen.cut_short).module();
    let mut diagnostics = seen.diagnostics;
    diagnostics.extend(more);
    diagnostics.sort_by_key(|d| d.span);
    Parsed { tree: Tree { tokens, items }, diagnostics }
}

/// Keeps a diagnostic, unless there are too many. A message that quotes the text at length is cut.
fn keep(diagnostics: &mut Vec<Diagnostic>, mut diagnostic: Diagnostic) {
    const LONGEST_MESSAGE: usize = 400;
    if diagnostics.len() >= MAX_DIAGNOSTICS {
        return;
    }
    if let Some((cut, _)) = diagnostic.message.char_indices().nth(LONGEST_MESSAGE) {
        diagnostic.message.truncate(cut);
        diagnostic.message.push('…');
    }
    diagnostics.push(diagnostic);
}
