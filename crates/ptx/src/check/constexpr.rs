//! Evaluates the expressions of the tree. PTX ISA §4.6.
//!
//! Invariant: the result is a constant, or a symbol plus a constant. `None` means that there is a diagnostic.
//! Names are not resolved here, because the caller knows which kinds are allowed.

use super::constant::{self, Const, Fault};
use super::report::Report;
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::syntax::tree::{BinaryOp, Expr, ExprKind, Reference, UnaryOp};

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A constant.
    Const(Const),
    /// An address plus a number of bytes.
    Symbol(SymbolSum),
}

/// A name plus a constant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SymbolSum {
    /// The name.
    pub(super) name: Reference,
    /// The added constant.
    pub(super) addend: i64,
    /// Place of `generic(...)` around the name.
    pub(super) generic: Option<Span>,
    /// `0xFF(name)`
    pub(super) mask: Option<u64>,
}

/// Evaluates an expression that must be constant.
pub(super) fn constant(expr: &Expr, text: &str, report: &mut Report) -> Option<Const> {
    match evaluate(expr, text, report)? {
        Value::Const(value) => Some(value),
        Value::Symbol(symbol) => {
            let name = symbol.name.span.text(text);
            report.push(
                Diagnostic::new(Code::BadConstant, symbol.name.span, format!("`{name}` is not a constant"))
                    .with_label("a constant expression cannot contain variables")
                    .with_section("4.6.3"),
            );
            None
        }
    }
}

/// Evaluates an expression that must be an integer constant.
pub(super) fn integer(expr: &Expr, what: &str, text: &str, report: &mut Report) -> Option<Const> {
    let value = constant(expr, text, report)?;
    as_integer(value, expr, what, report)
}

/// A constant that must be an integer.
pub(super) fn as_integer(value: Const, expr: &Expr, what: &str, report: &mut Report) -> Option<Const> {
    if value.is_integer() {
        return Some(value);
    }
    report.push(
        Diagnostic::new(Code::BadConstant, expr.span, format!("{what} must be an integer, not `{value}`"))
            .with_section("4.6.3"),
    );
    None
}

/// Reports a decimal literal that is not zero but rounds to zero, or that is finite but becomes infinity.
fn decimal_range(span: Span, value: f64, text: &str, report: &mut Report) {
    let written = span.text(text);
    let exact = written.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0d"));
    let mantissa = written.split(['e', 'E']).next().unwrap_or_default();
    let lost = if value.is_infinite() {
        "infinity"
    } else if value == 0.0 && mantissa.bytes().any(|digit| matches!(digit, b'1'..=b'9')) {
        "zero"
    } else {
        return;
    };
    if !exact {
        report.push(out_of_range(span, written, "f64", lost));
    }
}

/// The warning about a constant that its type cannot hold.
pub(super) fn out_of_range(span: Span, written: &str, ty: &str, becomes: &str) -> Diagnostic {
    let bits = match (ty, becomes) {
        ("f32", "infinity") => "; `0f7F800000` is infinity",
        (_, "infinity") => "; `0d7FF0000000000000` is infinity",
        _ => "",
    };
    let range = if ty == "f32" { "1.4e-45 to 3.4e38" } else { "4.9e-324 to 1.8e308" };
    Diagnostic::new(Code::FloatRange, span, format!("`{written}` is out of the range of `.{ty}`"))
        .with_label(format!("becomes {becomes}"))
        .with_help(format!("the magnitudes of `.{ty}` are about {range}{bits}"))
        .with_section("4.5.2")
}

/// Evaluates an expression.
pub(super) fn evaluate(expr: &Expr, text: &str, report: &mut Report) -> Option<Value> {
    match &expr.kind {
        ExprKind::Integer { value, unsigned } => {
            if expr.span.text(text).ends_with('u') {
                not_portable(
                    expr.span,
                    "the suffix `u` is legal, but ptxas accepts only `U`",
                    "4.5.1",
                    report,
                );
            }
            Some(Value::Const(literal(*value, *unsigned)))
        }
        ExprKind::Double(bits) => {
            let value = f64::from_bits(*bits);
            decimal_range(expr.span, value, text, report);
            Some(Value::Const(Const::Double(value)))
        }
        ExprKind::Single(bits) => Some(Value::Const(Const::Single(*bits))),
        ExprKind::WarpSz => Some(Value::Const(Const::Signed(32))),
        ExprKind::Name(name) => {
            Some(Value::Symbol(SymbolSum { name: name.clone(), addend: 0, generic: None, mask: None }))
        }
        ExprKind::Section(word) => {
            report.say(
                Code::BadConstant,
                word.span,
                format!("`{}` names a section, which is no constant", word.span.text(text)),
            );
            None
        }
        ExprKind::Generic(inner) => {
            wrap(expr, inner, text, report, |symbol| symbol.generic = Some(expr.span))
        }
        ExprKind::Mask { mask, address } => masked(expr, *mask, address, text, report),
        ExprKind::Paren(inner) => evaluate(inner, text, report),
        ExprKind::Unary { op, operand } => unary(expr, *op, operand, text, report),
        ExprKind::Binary { op, left, right } => binary(expr, *op, left, right, text, report),
        ExprKind::Ternary { condition, then, otherwise } => {
            let condition = constant(condition, text, report);
            let (yes, no) = (constant(then, text, report), constant(otherwise, text, report));
            let result = constant::ternary(condition?, yes?, no?);
            if matches!(result, Ok(Const::Double(_))) {
                let what = "a choice between floating-point constants is legal, but ptxas refuses it";
                not_portable(expr.span, what, "4.6.4", report);
            }
            finish(result, expr.span, report)
        }
        ExprKind::Error => None,
    }
}

/// Reports that ptxas accepts only a literal where the manual allows a constant expression, if this is no
/// literal.
pub(super) fn literal_for_ptxas(expr: &Expr, report: &mut Report) {
    if !matches!(expr.kind, ExprKind::Integer { .. } | ExprKind::WarpSz | ExprKind::Error) {
        let what = "a constant expression is legal here, but ptxas accepts only a number";
        not_portable(expr.span, what, "5.4.3", report);
    }
}

fn not_portable(span: Span, what: &str, section: &'static str, report: &mut Report) {
    report.push(Diagnostic::new(Code::NotPortable, span, what).with_section(section));
}

/// A literal with its type: signed unless marked or too large. PTX ISA §4.6.4.
fn literal(value: u64, unsigned: bool) -> Const {
    if unsigned || value > i64::MAX.cast_unsigned() {
        Const::Unsigned(value)
    } else {
        Const::Signed(value.cast_signed())
    }
}

fn wrap(
    whole: &Expr,
    inner: &Expr,
    text: &str,
    report: &mut Report,
    set: impl FnOnce(&mut SymbolSum),
) -> Option<Value> {
    match evaluate(inner, text, report)? {
        Value::Symbol(mut symbol) => {
            set(&mut symbol);
            Some(Value::Symbol(symbol))
        }
        Value::Const(_) => {
            report.push(
                Diagnostic::new(Code::BadConstant, inner.span, "expected the address of a variable")
                    .with_label(format!("not a name: `{}`", inner.span.text(text)))
                    .with_related(whole.span, "in this expression")
                    .with_section("5.4.4"),
            );
            None
        }
    }
}

/// `0xFF00(x)`: the bits of an address or constant that the mask selects, shifted down.
fn masked(whole: &Expr, mask: u64, inner: &Expr, text: &str, report: &mut Report) -> Option<Value> {
    match evaluate(inner, text, report)? {
        Value::Symbol(symbol) => Some(Value::Symbol(SymbolSum { mask: Some(mask), ..symbol })),
        Value::Const(value) => {
            let value = as_integer(value, inner, "the operand of a mask", report)?;
            let bits = (value.bits()? & mask).checked_shr(mask.trailing_zeros()).unwrap_or(0);
            if mask == 0 {
                report.say(Code::BadConstant, whole.span, "a mask takes at least one bit".to_owned());
                return None;
            }
            Some(Value::Const(literal(bits, false)))
        }
    }
}

fn unary(expr: &Expr, op: UnaryOp, operand: &Expr, text: &str, report: &mut Report) -> Option<Value> {
    let value = constant(operand, text, report)?;
    finish(constant::unary(op, value), expr.span, report)
}

fn binary(
    expr: &Expr,
    op: BinaryOp,
    left: &Expr,
    right: &Expr,
    text: &str,
    report: &mut Report,
) -> Option<Value> {
    let (a, b) = (evaluate(left, text, report), evaluate(right, text, report));
    match (a?, b?) {
        (Value::Const(a), Value::Const(b)) => {
            let least = matches!(op, BinaryOp::Div) && a == Const::Signed(i64::MIN) && b == Const::Signed(-1);
            if least {
                let what = "the least integer divided by -1 is legal and gives itself, but ptxas crashes";
                not_portable(expr.span, what, "4.6.4", report);
            }
            finish(constant::binary(op, a, b), expr.span, report)
        }
        (Value::Symbol(symbol), Value::Const(c)) if matches!(op, BinaryOp::Add | BinaryOp::Sub) => {
            offset(symbol, c, op == BinaryOp::Sub, right.span, report)
        }
        (Value::Const(c), Value::Symbol(symbol)) if op == BinaryOp::Add => {
            offset(symbol, c, false, left.span, report)
        }
        (Value::Symbol(symbol), _) | (_, Value::Symbol(symbol)) => {
            let name = symbol.name.span.text(text);
            report.push(
                Diagnostic::new(
                    Code::BadConstant,
                    symbol.name.span,
                    format!("`{name}` is not a constant, and `{}` needs constants", op.symbol()),
                )
                .with_help("a constant can be added to an address or subtracted from it; an expression cannot contain registers")
                .with_section("4.6.3"),
            );
            None
        }
    }
}

fn offset(mut symbol: SymbolSum, c: Const, negative: bool, span: Span, report: &mut Report) -> Option<Value> {
    let Some(bits) = c.bits() else {
        report.say(Code::BadConstant, span, format!("an offset must be an integer, not `{c}`"));
        return None;
    };
    let bytes = if negative { bits.cast_signed().wrapping_neg() } else { bits.cast_signed() };
    symbol.addend = symbol.addend.wrapping_add(bytes);
    Some(Value::Symbol(symbol))
}

fn finish(result: Result<Const, Fault>, span: Span, report: &mut Report) -> Option<Value> {
    match result {
        Ok(value) => Some(Value::Const(value)),
        Err(fault) => {
            report.push(Diagnostic::new(fault.code, span, fault.message).with_section("4.6.4"));
            None
        }
    }
}
