//! Tokens: what the lexer cuts a text into.
//!
//! Invariant: a token is a kind and a place; its text is the source under its span. PTX ISA §4.

use super::tree::BinaryOp;
use crate::Span;

/// What a token is.
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
    /// A number that does not fall under the other kinds, well-formed or not: `12`, `0x1F`, `077`, `0b11U`.
    Integer,
    /// A decimal number with a point or an exponent.
    Decimal,
    /// `0f…`: the bits of a single.
    SingleBits,
    /// `0d…`: the bits of a double.
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
    /// Whether the grammar never sees it: blanks, comments, and lines for the preprocessor.
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

    /// The operator of two operands that it is, if it is one.
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

/// One piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Whether only trivia stand before it on its line.
    pub(crate) first_on_line: bool,
    /// Whether characters that PTX does not use stand between it and the last token that is no trivia.
    pub(super) after_unknown: bool,
    /// Where it stands.
    pub span: Span,
}
