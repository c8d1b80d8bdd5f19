//! Whether a blank separates two tokens of a line, where the tree does not determine it.
//!
//! Invariant: two tokens that would read as other tokens without a blank get one.

use super::super::token::{Token, TokenKind as K};

/// Whether a blank separates `a` and `b`. `touches`: they are adjacent in the source; `ternary`: a `?` of the
/// statement has no `:` yet.
pub(super) fn blank(source: &str, a: Token, b: Token, touches: bool, ternary: bool) -> bool {
    match (a.kind, b.kind) {
        _ if closes(b) => false,
        // `%r<4>` and `a<b`, `c ? a : b`, `x = 1`, and `1 % 2`, which differs from `1 %2`.
        (K::Comma | K::Eq | K::Question | K::Percent, _) | (_, K::Eq | K::Question | K::Percent) => true,
        (_, K::Colon) => ternary,
        (K::Colon, _) => true,
        // `.attribute(…)`, but `.func (…)` and `.b8 (1)`.
        (K::DotWord, K::LParen) => !matches!(a.span.text(source), ".attribute" | ".unified"),
        (K::DotWord, K::Plus | K::Minus | K::Tilde | K::Bang) => true,
        (K::DotWord, K::LBracket) => false,
        // A component or selector is adjacent to its name.
        (K::Ident, K::DotWord) => !touches,
        // No blank after a cast; a function's name has a mark of its own.
        (K::RParen, K::Ident) => false,
        (K::RParen, kind) if kind.is_number() => false,
        (K::RParen, K::LParen) => a.span.end != b.span.start,
        (K::RParen, K::Sink | K::DotWord) | (K::Sink, K::LParen) => true,
        (K::RBracket | K::RBrace, kind) => word(kind),
        (a, b) => word(a) && word(b),
    }
}

/// Whether a blank never precedes it.
pub(super) fn closes(token: Token) -> bool {
    matches!(token.kind, K::Comma | K::Semicolon | K::RBracket | K::RParen | K::RBrace)
}

/// Whether adjacent tokens of this kind would read as one word.
fn word(kind: K) -> bool {
    matches!(kind, K::Ident | K::DotWord | K::Str | K::Sink) || kind.is_number()
}
