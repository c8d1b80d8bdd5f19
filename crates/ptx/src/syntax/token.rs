//! Tokens, the output of the lexer.
//!
//! Invariant: a token is a kind and a place; its text is the source at its span. PTX ISA §4.

use super::tree::BinaryOp;
use crate::Span;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// Blanks, tabs, line ends, form feeds; a byte order mark at the start; NULs at the end.
    Whitespace,
    /// `// …` without its line end.
    LineComment,
    /// `/* … */`
    BlockComment,
    /// `/* …` to the end of the text.
    UnterminatedComment,
    /// A line that begins with `#`, without its line end.
    HashLine,
    /// `@@DWARF …` to the end of the line.
    DwarfLine,
    /// An identifier or an unmarked word: `add`, `%r1`, `$L__BB0_1`, `WARP_SZ`.
    Ident,
    /// A word with its dot: `.reg`, `.u32`, `.2dms`, `.L2::128B`.
    DotWord,
    /// A number of no other kind, well-formed or not: `12`, `0x1F`, `077`, `0b11U`.
    Integer,
    /// A decimal number with a point or an exponent.
    Decimal,
    /// `0f…`: the bits of an `.f32`.
    SingleBits,
    /// `0d…`: the bits of an `.f64`.
    DoubleBits,
    /// `"…"`
    Str,
    /// `"…` to the end of the line.
    UnterminatedStr,
    /// `_`
    Sink,
    /// `{`
    LBrace,
    /// `}`
    RBrace,
    /// `[`
    LBracket,
    /// `]`
    RBracket,
    /// `(`
    LParen,
    /// `)`
    RParen,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `:`
    Colon,
    /// `?`
    Question,
    /// `@`
    At,
    /// `!`
    Bang,
    /// `~`
    Tilde,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%` as an operator
    Percent,
    /// `&`
    And,
    /// `&&`
    AndAnd,
    /// `|`
    Or,
    /// `||`
    OrOr,
    /// `^`
    Xor,
    /// `<`
    Lt,
    /// `>`
    Gt,
    /// `<=`
    Le,
    /// `>=`
    Ge,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `=`
    Eq,
    /// `==`
    EqEq,
    /// `!=`
    Ne,
    /// Characters that PTX does not use.
    Unknown,
}

impl TokenKind {
    /// Whether it is not part of the grammar: blanks, comments, and preprocessor lines.
    pub const fn is_trivia(self) -> bool {
        matches!(
            self,
            TokenKind::Whitespace
                | TokenKind::LineComment
                | TokenKind::BlockComment
                | TokenKind::UnterminatedComment
                | TokenKind::HashLine
        )
    }

    /// The binary operator, if it is one.
    pub(super) const fn binary_operator(self) -> Option<BinaryOp> {
        use TokenKind as K;
        Some(match self {
            K::Star => BinaryOp::Mul,
            K::Slash => BinaryOp::Div,
            K::Percent => BinaryOp::Rem,
            K::Plus => BinaryOp::Add,
            K::Minus => BinaryOp::Sub,
            K::Shl => BinaryOp::Shl,
            K::Shr => BinaryOp::Shr,
            K::Lt => BinaryOp::Lt,
            K::Le => BinaryOp::Le,
            K::Gt => BinaryOp::Gt,
            K::Ge => BinaryOp::Ge,
            K::EqEq => BinaryOp::Eq,
            K::Ne => BinaryOp::Ne,
            K::And => BinaryOp::And,
            K::Xor => BinaryOp::Xor,
            K::Or => BinaryOp::Or,
            K::AndAnd => BinaryOp::LogicalAnd,
            K::OrOr => BinaryOp::LogicalOr,
            _ => return None,
        })
    }

    /// Whether it is a number, well-formed or not.
    pub const fn is_number(self) -> bool {
        matches!(
            self,
            TokenKind::Integer | TokenKind::Decimal | TokenKind::SingleBits | TokenKind::DoubleBits
        )
    }
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Whether only trivia precede it on its line.
    pub(crate) first_on_line: bool,
    /// Whether characters that PTX does not use lie between it and the previous token of the grammar.
    pub(super) after_unknown: bool,
    /// Its place.
    pub span: Span,
}
