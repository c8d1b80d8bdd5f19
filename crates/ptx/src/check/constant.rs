//! Values of constant expressions and their arithmetic. PTX ISA §4.5, §4.6.
//!
//! Invariant: integers have 64 bits and are signed or unsigned. Floating-point values are binary64, except
//! `0f` literals, which stay bits and cannot be operands. Every operation has a value or a [`Fault`]; none
//! panics.
//!
//! Choices where the manual is silent: a shift by 64 or more gives 0 or the sign; `INT64_MIN / -1` wraps;
//! integer division by zero is an error.

use crate::diag::Code;
use crate::syntax::tree::{BinaryOp as Binary, UnaryOp as Unary};

/// The value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Const {
    /// `.s64`
    Signed(i64),
    /// `.u64`
    Unsigned(u64),
    /// `.f64`
    Double(f64),
    /// Bits of a `0f` literal; no operator applies to it.
    Single(u32),
}

/// Why an operation on constants has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Code of the diagnostic.
    pub code: Code,
    /// Message of the diagnostic.
    pub message: String,
}

impl Fault {
    fn bad(message: impl Into<String>) -> Self {
        Self { code: Code::BadConstant, message: message.into() }
    }
}

impl Const {
    /// The 64 bits of an integer; `None` for a floating-point value.
    pub const fn bits(self) -> Option<u64> {
        match self {
            Const::Signed(v) => Some(v.cast_unsigned()),
            Const::Unsigned(v) => Some(v),
            Const::Double(_) | Const::Single(_) => None,
        }
    }

    /// Whether it is an integer.
    pub const fn is_integer(self) -> bool {
        matches!(self, Const::Signed(_) | Const::Unsigned(_))
    }

    /// The mathematical value of an integer.
    pub const fn wide(self) -> Option<i128> {
        match self {
            Const::Signed(v) => Some(v as i128),
            Const::Unsigned(v) => Some(v as i128),
            Const::Double(_) | Const::Single(_) => None,
        }
    }

    /// The name of its type, for messages.
    pub const fn type_name(self) -> &'static str {
        match self {
            Const::Signed(_) => ".s64",
            Const::Unsigned(_) => ".u64",
            Const::Double(_) => ".f64",
            Const::Single(_) => ".f32",
        }
    }

    /// Whether an integer fits in `width` bits, signed or unsigned. The bits of `~0` are those of -1, and
    /// fit.
    pub fn fits(self, width: u32) -> bool {
        let width = width.min(64);
        let fits = |v: i128| v >= -(1i128 << (width - 1)) && v < (1i128 << width);
        match self {
            Const::Signed(v) => fits(i128::from(v)),
            Const::Unsigned(v) => fits(i128::from(v)) || fits(i128::from(v.cast_signed())),
            Const::Double(_) | Const::Single(_) => false,
        }
    }
}

impl std::fmt::Display for Const {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Const::Signed(v) => write!(f, "{v}"),
            Const::Unsigned(v) => write!(f, "{v}"),
            Const::Double(v) => write!(f, "{v:?}"),
            Const::Single(bits) => write!(f, "0f{bits:08X}"),
        }
    }
}

/// `op a`.
///
/// # Errors
/// [`Code::BadConstant`] if the operator is not defined for the type.
pub fn unary(op: Unary, a: Const) -> Result<Const, Fault> {
    match (op, a) {
        (_, Const::Single(_)) => {
            Err(Fault::bad(format!("`0f` constants cannot be operands of `{}`", op.symbol())))
        }
        (Unary::Plus, _) => Ok(a),
        (Unary::Minus, Const::Signed(v)) => Ok(Const::Signed(v.wrapping_neg())),
        (Unary::Minus, Const::Unsigned(v)) => Ok(Const::Unsigned(v.wrapping_neg())),
        (Unary::Minus, Const::Double(v)) => Ok(Const::Double(-v)),
        (Unary::Not | Unary::Complement | Unary::CastS64 | Unary::CastU64, Const::Double(_)) => {
            Err(Fault::bad(format!("`{}` needs an integer, not a floating-point value", op.symbol())))
        }
        (Unary::Not, Const::Signed(_) | Const::Unsigned(_)) => Ok(truth(a.bits() == Some(0))),
        (Unary::Complement, Const::Signed(v)) => Ok(Const::Unsigned(!v.cast_unsigned())),
        (Unary::Complement, Const::Unsigned(v)) => Ok(Const::Unsigned(!v)),
        (Unary::CastS64, Const::Unsigned(v)) => Ok(Const::Signed(v.cast_signed())),
        (Unary::CastS64, Const::Signed(_)) | (Unary::CastU64, Const::Unsigned(_)) => Ok(a),
        (Unary::CastU64, Const::Signed(v)) => Ok(Const::Unsigned(v.cast_unsigned())),
    }
}

/// `a op b`.
///
/// # Errors
/// [`Code::BadConstant`] if the operator is not defined for the types; [`Code::DivisionByZero`].
pub fn binary(op: Binary, a: Const, b: Const) -> Result<Const, Fault> {
    match (a, b) {
        (Const::Single(_), _) | (_, Const::Single(_)) => {
            Err(Fault::bad(format!("`0f` constants cannot be operands of `{}`", op.symbol())))
        }
        (Const::Double(x), Const::Double(y)) => binary_double(op, x, y),
        (Const::Double(_), _) | (_, Const::Double(_)) => Err(Fault::bad(format!(
            "`{}` mixes an integer and a floating-point value, and there is no conversion between them",
            op.symbol()
        ))),
        (Const::Signed(x), Const::Signed(y)) => binary_signed(op, x, y),
        (Const::Signed(x), Const::Unsigned(y)) if keeps_left_type(op) => {
            binary_signed(op, x, y.cast_signed())
        }
        (Const::Signed(x), Const::Unsigned(y)) => binary_unsigned(op, x.cast_unsigned(), y),
        (Const::Unsigned(x), Const::Signed(y)) => binary_unsigned(op, x, y.cast_unsigned()),
        (Const::Unsigned(x), Const::Unsigned(y)) => binary_unsigned(op, x, y),
    }
}

/// `condition ? yes : no`.
///
/// # Errors
/// [`Code::BadConstant`] if the condition is no integer, or only one arm is an integer.
pub fn ternary(condition: Const, yes: Const, no: Const) -> Result<Const, Fault> {
    let Some(bits) = condition.bits() else {
        return Err(Fault::bad("the condition of `?:` must be an integer"));
    };
    let chosen = if bits != 0 { yes } else { no };
    match (yes, no) {
        (Const::Single(_), _) | (_, Const::Single(_)) => {
            Err(Fault::bad("`0f` constants cannot be operands of `?:`"))
        }
        (Const::Double(_), Const::Double(_))
        | (Const::Signed(_), Const::Signed(_))
        | (Const::Unsigned(_), Const::Unsigned(_)) => Ok(chosen),
        (Const::Signed(_), Const::Unsigned(_)) | (Const::Unsigned(_), Const::Signed(_)) => {
            Ok(Const::Unsigned(chosen.bits().unwrap_or(0)))
        }
        (Const::Double(_), _) | (_, Const::Double(_)) => {
            Err(Fault::bad("the arms of `?:` must both be integers or both be floating-point values"))
        }
    }
}

/// Whether the result has the type of the first operand, as for shifts.
const fn keeps_left_type(op: Binary) -> bool {
    matches!(op, Binary::Shl | Binary::Shr)
}

const fn truth(value: bool) -> Const {
    Const::Signed(if value { 1 } else { 0 })
}

fn binary_double(op: Binary, x: f64, y: f64) -> Result<Const, Fault> {
    Ok(match op {
        Binary::Add => Const::Double(x + y),
        Binary::Sub => Const::Double(x - y),
        Binary::Mul => Const::Double(x * y),
        Binary::Div => Const::Double(x / y),
        Binary::Lt => truth(x < y),
        Binary::Gt => truth(x > y),
        Binary::Le => truth(x <= y),
        Binary::Ge => truth(x >= y),
        Binary::Eq => truth(x == y),
        Binary::Ne => truth(x != y),
        Binary::Rem
        | Binary::Shl
        | Binary::Shr
        | Binary::And
        | Binary::Xor
        | Binary::Or
        | Binary::LogicalAnd
        | Binary::LogicalOr => {
            return Err(Fault::bad(format!("`{}` needs integers, not floating-point values", op.symbol())));
        }
    })
}

fn binary_signed(op: Binary, x: i64, y: i64) -> Result<Const, Fault> {
    let (ux, uy) = (x.cast_unsigned(), y.cast_unsigned());
    Ok(match op {
        Binary::Add => Const::Signed(x.wrapping_add(y)),
        Binary::Sub => Const::Signed(x.wrapping_sub(y)),
        Binary::Mul => Const::Signed(x.wrapping_mul(y)),
        Binary::Div if y == 0 => return Err(division_by_zero(op)),
        Binary::Div => Const::Signed(x.wrapping_div(y)),
        // The remainder reads both operands as unsigned and is signed (Table 5).
        Binary::Rem => Const::Signed(ux.checked_rem(uy).ok_or_else(|| division_by_zero(op))?.cast_signed()),
        Binary::Shl => Const::Signed(shift_left(ux, uy).cast_signed()),
        Binary::Shr => Const::Signed(x >> uy.min(63)),
        Binary::Lt => truth(x < y),
        Binary::Gt => truth(x > y),
        Binary::Le => truth(x <= y),
        Binary::Ge => truth(x >= y),
        Binary::Eq => truth(x == y),
        Binary::Ne => truth(x != y),
        Binary::And => Const::Signed(x & y),
        Binary::Xor => Const::Signed(x ^ y),
        Binary::Or => Const::Signed(x | y),
        Binary::LogicalAnd => truth(x != 0 && y != 0),
        Binary::LogicalOr => truth(x != 0 || y != 0),
    })
}

fn binary_unsigned(op: Binary, x: u64, y: u64) -> Result<Const, Fault> {
    Ok(match op {
        Binary::Add => Const::Unsigned(x.wrapping_add(y)),
        Binary::Sub => Const::Unsigned(x.wrapping_sub(y)),
        Binary::Mul => Const::Unsigned(x.wrapping_mul(y)),
        Binary::Div => Const::Unsigned(x.checked_div(y).ok_or_else(|| division_by_zero(op))?),
        Binary::Rem => Const::Signed(x.checked_rem(y).ok_or_else(|| division_by_zero(op))?.cast_signed()),
        Binary::Shl => Const::Unsigned(shift_left(x, y)),
        Binary::Shr => Const::Unsigned(if y >= 64 { 0 } else { x >> y }),
        Binary::Lt => truth(x < y),
        Binary::Gt => truth(x > y),
        Binary::Le => truth(x <= y),
        Binary::Ge => truth(x >= y),
        Binary::Eq => truth(x == y),
        Binary::Ne => truth(x != y),
        Binary::And => Const::Unsigned(x & y),
        Binary::Xor => Const::Unsigned(x ^ y),
        Binary::Or => Const::Unsigned(x | y),
        Binary::LogicalAnd => truth(x != 0 && y != 0),
        Binary::LogicalOr => truth(x != 0 || y != 0),
    })
}

const fn shift_left(x: u64, by: u64) -> u64 {
    if by >= 64 { 0 } else { x << by }
}

fn division_by_zero(op: Binary) -> Fault {
    let what = if op == Binary::Rem { "remainder" } else { "division" };
    Fault { code: Code::DivisionByZero, message: format!("{what} by zero in a constant expression") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(v: i64) -> Const {
        Const::Signed(v)
    }
    fn u(v: u64) -> Const {
        Const::Unsigned(v)
    }

    #[test]
    fn mixed_operands_become_unsigned() {
        assert_eq!(binary(Binary::Lt, s(-1), u(1)), Ok(s(0)));
        assert_eq!(binary(Binary::Div, s(-8), u(2)), Ok(u(0x7fff_ffff_ffff_fffc)));
        assert_eq!(binary(Binary::Add, s(-1), u(1)), Ok(u(0)));
    }

    #[test]
    fn a_shift_has_the_type_of_its_left_operand() {
        assert_eq!(binary(Binary::Shr, s(-16), u(2)), Ok(s(-4)));
        assert_eq!(binary(Binary::Shr, s(-16), s(200)), Ok(s(-1)));
        assert_eq!(binary(Binary::Shr, u(1 << 63), s(63)), Ok(u(1)));
        assert_eq!(binary(Binary::Shl, s(1), s(64)), Ok(s(0)));
        assert_eq!(binary(Binary::Shl, s(1), s(-1)), Ok(s(0)));
    }

    #[test]
    fn remainder_is_unsigned_with_a_signed_result() {
        // 2^64 - 7 = 5 mod 6
        assert_eq!(binary(Binary::Rem, s(-7), s(6)), Ok(s(3)));
        assert_eq!(binary(Binary::Rem, s(7), s(0)).unwrap_err().code, Code::DivisionByZero);
    }

    #[test]
    fn complement_is_unsigned_and_not_is_signed() {
        assert_eq!(unary(Unary::Complement, s(0)), Ok(u(u64::MAX)));
        assert_eq!(unary(Unary::Not, u(7)), Ok(s(0)));
        assert_eq!(unary(Unary::Minus, u(1)), Ok(u(u64::MAX)));
    }

    #[test]
    fn the_least_integer_divided_by_minus_one_wraps() {
        assert_eq!(binary(Binary::Div, s(i64::MIN), s(-1)), Ok(s(i64::MIN)));
    }

    #[test]
    fn integers_and_floats_do_not_mix() {
        assert!(binary(Binary::Add, s(1), Const::Double(1.0)).is_err());
        assert!(unary(Unary::Minus, Const::Single(0)).is_err());
        assert!(ternary(Const::Double(1.0), s(1), s(2)).is_err());
        assert!(ternary(s(1), s(1), Const::Double(2.0)).is_err());
        assert_eq!(ternary(s(0), s(-1), u(5)), Ok(u(5)));
        assert_eq!(ternary(s(1), s(-1), u(5)), Ok(u(u64::MAX)));
    }
}
