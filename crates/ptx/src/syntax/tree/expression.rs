//! Constant expressions, as written. PTX ISA §4.6.
//!
//! Invariant: the tree reflects the operators and parentheses of the text; nothing is evaluated.

use super::{Reference, Word};
use crate::Span;

/// A constant expression. PTX ISA §4.6.3; names are allowed where addresses are.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its place.
    pub span: Span,
    /// Its kind.
    pub kind: ExprKind,
}

/// The kind of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// An integer literal; unsigned by its suffix, or because it does not fit in 63 bits.
    Integer {
        /// The value.
        value: u64,
        /// Whether its type is `.u64`.
        unsigned: bool,
    },
    /// A decimal or `0d` literal, as the bits of a double.
    Double(u64),
    /// A `0f` literal, as the bits of a single.
    Single(u32),
    /// `WARP_SZ`
    WarpSz,
    /// A variable, function or register.
    Name(Reference),
    /// The name of a section, in a section: `.debug_info`.
    Section(Word),
    /// `generic(x)`. PTX ISA §5.4.4.
    Generic(Box<Expr>),
    /// `0xFF00(x)`: some bytes of an address, in an initialiser of bytes (PTX 7.1).
    Mask {
        /// The mask.
        mask: u64,
        /// The address.
        address: Box<Expr>,
    },
    /// `(e)`
    Paren(Box<Expr>),
    /// `-e`
    Unary {
        /// The operator.
        op: UnaryOp,
        /// Its operand.
        operand: Box<Expr>,
    },
    /// `a + b`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `c ? a : b`
    Ternary {
        /// The condition.
        condition: Box<Expr>,
        /// The value if the condition is not zero.
        then: Box<Expr>,
        /// The value if the condition is zero.
        otherwise: Box<Expr>,
    },
    /// A syntax error; it has a diagnostic.
    Error,
}

/// A unary operator or a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `!`
    Not,
    /// `~`
    Complement,
    /// `(.s64)`
    CastS64,
    /// `(.u64)`
    CastU64,
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `&`
    And,
    /// `^`
    Xor,
    /// `|`
    Or,
    /// `&&`
    LogicalAnd,
    /// `||`
    LogicalOr,
}

impl UnaryOp {
    /// The operator's text.
    pub const fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Plus => "+",
            UnaryOp::Minus => "-",
            UnaryOp::Not => "!",
            UnaryOp::Complement => "~",
            UnaryOp::CastS64 => "(.s64)",
            UnaryOp::CastU64 => "(.u64)",
        }
    }
}

impl BinaryOp {
    /// The operator's text.
    pub const fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::And => "&",
            BinaryOp::Xor => "^",
            BinaryOp::Or => "|",
            BinaryOp::LogicalAnd => "&&",
            BinaryOp::LogicalOr => "||",
        }
    }

    /// The precedence, from 1 (`||`) to 10 (`*`); all operators associate to the left. PTX ISA §4.6.3, Table
    /// 4.
    pub const fn precedence(self) -> u8 {
        match self {
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => 10,
            BinaryOp::Add | BinaryOp::Sub => 9,
            BinaryOp::Shl | BinaryOp::Shr => 8,
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => 7,
            BinaryOp::Eq | BinaryOp::Ne => 6,
            BinaryOp::And => 5,
            BinaryOp::Xor => 4,
            BinaryOp::Or => 3,
            BinaryOp::LogicalAnd => 2,
            BinaryOp::LogicalOr => 1,
        }
    }
}
