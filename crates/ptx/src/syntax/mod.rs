//! Text to tokens to tree, and back.
//!
//! Invariants: every byte of the text belongs to exactly one token, and joined they give the text; parsing never fails,
//! always ends, and makes a tree of bounded depth beside its diagnostics; independent mistakes each give one diagnostic.
//! Nothing here knows the instruction table, resolves a name or computes a constant: that is [`check`](crate::check).
//!
//! The entry is `parse(source: &str) -> Parsed`. PTX ISA §4.

pub mod token;
pub mod tree;

pub use token::{Token, TokenKind};
pub use tree::Tree;

use crate::diag::Diagnostic;

/// How deep blocks, initialiser lists and the operators of one expression may nest.
pub const MAX_NESTING: usize = 128;

/// What parsing a text gives: a tree, always, and what was wrong with the text.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The tree; it holds an `Error` node wherever there is an error among the diagnostics.
    pub tree: Tree,
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}
