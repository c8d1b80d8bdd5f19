//! Constants at their use: conversion to the bits of a type. PTX ISA §4.5, §6.3; A8, A10, A94 of the
//! project's readings.
//!
//! Invariant: the result has the type's width; a loss in the conversion is a warning or an error.

use super::checker::Checker;
use super::constant::Const;
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Ty, TyKind};

/// The bits of a constant in an initialiser.
pub(super) fn initial(checker: &mut Checker<'_>, ty: Ty, value: Const, span: Span) -> Option<u64> {
    if let (Ty::B16, Const::Double(double)) = (ty, value)
        && let Some(bits) = half(double)
    {
        // Compilers write initial values of half precision in this form.
        checker.report.push(
            Diagnostic::new(Code::NonStandard, span, "a floating-point value in a variable of type `.b16`")
                .with_label(format!("taken as half precision: {bits:#06x}"))
                .with_section("4.5.2"),
        );
        return Some(u64::from(bits));
    }
    if ty.kind() == TyKind::Bits && !value.is_integer() {
        let exact = matches!((value, ty.bits()), (Const::Single(_), 32) | (Const::Double(_), 64));
        if !exact {
            return mismatch(checker, ty, value, span, "5.4.4");
        }
        checker.report.push(
            Diagnostic::new(
                Code::NonStandard,
                span,
                format!("a floating-point value in a variable of type `.{}`", ty.name()),
            )
            .with_help("its bits as an integer, or a floating-point type")
            .with_section("4.5.2"),
        );
    }
    convert(checker, ty, value, span)
}

/// The bits of a constant as an operand.
pub(super) fn convert(checker: &mut Checker<'_>, ty: Ty, value: Const, span: Span) -> Option<u64> {
    match (ty.kind(), value) {
        (TyKind::Bits | TyKind::Unsigned | TyKind::Signed, Const::Signed(_) | Const::Unsigned(_)) => {
            Some(integer(checker, ty, value, span))
        }
        // Compilers write `mov.b32 %r1, 0f3F800000`.
        (TyKind::Bits, Const::Single(bits)) if ty.bits() == 32 => Some(u64::from(bits)),
        (TyKind::Bits, Const::Double(v)) if ty.bits() == 64 => Some(v.to_bits()),
        (TyKind::Float, _) if matches!(ty, Ty::F32 | Ty::F64) => float(checker, ty, value, span),
        (TyKind::Float, _) => {
            checker.report.push(
                Diagnostic::new(
                    Code::WrongOperandKind,
                    span,
                    format!("there are no constants of type `.{}`", ty.name()),
                )
                .with_help(format!(
                    "move the bits into a register first: `mov.b{} r, 0x...`",
                    ty.bits().max(16)
                ))
                .with_section("4.5.2"),
            );
            None
        }
        (TyKind::Pred, Const::Signed(_) | Const::Unsigned(_)) => Some(u64::from(value.bits() != Some(0))),
        (TyKind::Bits | TyKind::Unsigned | TyKind::Signed | TyKind::Pred | TyKind::Opaque, _) => {
            mismatch(checker, ty, value, span, "4.5")
        }
    }
}

fn mismatch(
    checker: &mut Checker<'_>,
    ty: Ty,
    value: Const,
    span: Span,
    section: &'static str,
) -> Option<u64> {
    checker.report.push(
        Diagnostic::new(
            Code::WrongOperandType,
            span,
            format!("`{}` is not a constant of type `.{}`", span.text(checker.text), ty.name()),
        )
        .with_label(format!("this is a constant of type `{}`", value.type_name()))
        .with_help("nothing converts between integer and floating-point constants")
        .with_section(section),
    );
    None
}

fn integer(checker: &mut Checker<'_>, ty: Ty, value: Const, span: Span) -> u64 {
    let bits = value.bits().unwrap_or(0);
    let width = ty.bits().min(64);
    let cut = if width == 64 { bits } else { bits & ((1 << width) - 1) };
    if !value.fits(width) {
        checker.report.push(
            Diagnostic::new(
                Code::ImmediateTruncated,
                span,
                format!("`{}` does not fit `.{}`", span.text(checker.text), ty.name()),
            )
            .with_label(format!("cut to {cut:#x}"))
            .with_section("4.5"),
        );
    }
    cut
}

fn float(checker: &mut Checker<'_>, ty: Ty, value: Const, span: Span) -> Option<u64> {
    let double = match value {
        Const::Double(v) => v,
        Const::Single(bits) if ty == Ty::F32 => return Some(u64::from(bits)),
        Const::Single(bits) => f64::from(f32::from_bits(bits)),
        Const::Signed(_) | Const::Unsigned(_) => {
            checker.report.push(
                Diagnostic::new(
                    Code::NotPortable,
                    span,
                    format!("expected a constant of type `.{}`, found the integer `{value}`", ty.name()),
                )
                .with_help(format!("`{value}.0`"))
                .with_section("4.5.2"),
            );
            integer_as_double(value)
        }
    };
    #[allow(
        clippy::cast_possible_truncation,
        reason = "rounding to single precision, to nearest even, is meant"
    )]
    let single = double as f32;
    if ty == Ty::F32 && double.is_finite() && (single.is_infinite() || (single == 0.0 && double != 0.0)) {
        let becomes = if single.is_infinite() { "infinity" } else { "zero" };
        let written = span.text(checker.text);
        checker.report.push(super::constexpr::out_of_range(span, written, "f32", becomes));
    }
    Some(if ty == Ty::F32 { u64::from(single.to_bits()) } else { double.to_bits() })
}

#[allow(clippy::cast_precision_loss, reason = "rounding to nearest even is meant")]
fn integer_as_double(value: Const) -> f64 {
    match value {
        Const::Signed(v) => v as f64,
        Const::Unsigned(v) => v as f64,
        Const::Double(v) => v,
        Const::Single(bits) => f64::from(f32::from_bits(bits)),
    }
}

/// The bits of a number in half precision, if it is representable.
fn half(value: f64) -> Option<u16> {
    let bits = value.to_bits();
    let sign = u16::from(value.is_sign_negative()) << 15;
    let exponent = i32::try_from((bits >> 52) & 0x7FF).ok()? - 1023;
    let fraction = bits & ((1 << 52) - 1);
    if value == 0.0 {
        return Some(sign);
    }
    if exponent == 1024 {
        // Infinities, and NaNs whose payload fits.
        let payload = u16::try_from(fraction >> 42).ok()?;
        return (fraction & ((1 << 42) - 1) == 0).then_some(sign | 0x7C00 | payload);
    }
    let (shift, biased) = match exponent {
        -14..=15 => (42, u16::try_from(exponent + 15).ok()?),
        -24..=-15 => (u32::try_from(28 - exponent).ok()?, 0),
        _ => return None,
    };
    let significand = if biased == 0 { fraction | 1 << 52 } else { fraction };
    let exact = significand & ((1 << shift) - 1) == 0;
    let magnitude = u16::try_from(significand >> shift).ok()?;
    exact.then_some(sign | biased << 10 | magnitude)
}

#[cfg(test)]
mod tests {
    use super::half;

    /// Values of IEEE 754 binary16, from its definition.
    #[test]
    fn numbers_that_half_precision_has() {
        let cases = [
            (1.5, 0x3E00),
            (-2.0, 0xC000),
            (65504.0, 0x7BFF),
            (2f64.powi(-14), 0x0400),
            (2f64.powi(-24), 0x0001),
            (3.0 * 2f64.powi(-24), 0x0003),
            (1023.0 * 2f64.powi(-24), 0x03FF),
            (-0.0, 0x8000),
            (f64::INFINITY, 0x7C00),
        ];
        for (value, bits) in cases {
            assert_eq!(half(value), Some(bits), "{value}");
        }
        for value in [0.1, 65536.0, 2f64.powi(-25), 65505.0] {
            assert_eq!(half(value), None, "{value}");
        }
    }
}
