//! Constant expressions. PTX ISA §4.6.3, Table 4; casts have the precedence of unary operators.
//!
//! Invariant: an expression has at most [`MAX_NESTING`] operators and parentheses, which bounds its depth.

use super::super::number::{self, Number};
use super::super::tree::{BinaryOp, Expr, ExprKind, Name, Reference, UnaryOp, Word};
use super::{K, MAX_NESTING, Parse, Parser};
use crate::Span;
use crate::diag::{Code, Diagnostic};

/// The lowest precedence: any expression, including `?:`.
const ANY: u8 = 0;
/// The precedence of `+`: the lowest that is allowed between `<` and `>`.
const SUM: u8 = BinaryOp::Add.precedence();

impl Parser<'_> {
    /// A whole constant expression.
    pub(super) fn constant(&mut self) -> Parse<Expr> {
        self.operators = 0;
        let left = self.unary()?;
        self.expression_after(left, ANY)
    }

    /// A constant expression between `<` and `>`, in which these are not operators.
    pub(super) fn constant_in_angles(&mut self) -> Parse<Expr> {
        self.operators = 0;
        let left = self.unary()?;
        self.expression_after(left, SUM)
    }

    /// The rest of an expression whose first operand is `name`.
    pub(super) fn constant_after(&mut self, name: Reference) -> Parse<Expr> {
        self.operators = 0;
        self.expression_after(Expr { span: name.span, kind: ExprKind::Name(name) }, ANY)
    }

    /// Whether the current token continues an expression.
    pub(super) fn is_operator(&self) -> bool {
        self.is(K::Question) || self.binary_operator().is_some()
    }

    fn count_operator(&mut self) -> Parse<()> {
        self.operators += 1;
        if self.operators <= MAX_NESTING {
            return Ok(());
        }
        let message = format!("an expression with more than {MAX_NESTING} operators");
        Err(self.report(Diagnostic::new(Code::TooLarge, self.span(), message)))
    }

    fn expression(&mut self) -> Parse<Expr> {
        let left = self.unary()?;
        self.expression_after(left, ANY)
    }

    /// Parses binary operators of at least `level` after `left`; at the lowest level also `?:`.
    fn expression_after(&mut self, mut left: Expr, level: u8) -> Parse<Expr> {
        while let Some(op) = self.binary_operator().filter(|op| op.precedence() >= level.max(1)) {
            self.count_operator()?;
            self.bump();
            let first = self.unary()?;
            let right = self.expression_after(first, op.precedence() + 1)?;
            left = Expr {
                span: left.span.to(right.span),
                kind: ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) },
            };
        }
        if level == ANY && self.is(K::Question) {
            self.count_operator()?;
            self.bump();
            let then = self.expression()?;
            self.expect(K::Colon, "`:` of a conditional expression")?;
            let otherwise = self.expression()?;
            left = Expr {
                span: left.span.to(otherwise.span),
                kind: ExprKind::Ternary {
                    condition: Box::new(left),
                    then: Box::new(then),
                    otherwise: Box::new(otherwise),
                },
            };
        }
        Ok(left)
    }

    fn binary_operator(&self) -> Option<BinaryOp> {
        self.kind().and_then(K::binary_operator)
    }

    fn unary(&mut self) -> Parse<Expr> {
        let op = match self.kind() {
            Some(K::Plus) => UnaryOp::Plus,
            Some(K::Minus) => UnaryOp::Minus,
            Some(K::Bang) => UnaryOp::Not,
            Some(K::Tilde) => UnaryOp::Complement,
            Some(K::LParen) if self.kind_ahead(1) == Some(K::DotWord) => return self.cast(),
            _ => return self.primary(),
        };
        self.count_operator()?;
        let start = self.bump();
        self.unary_node(start, op)
    }

    fn unary_node(&mut self, start: Span, op: UnaryOp) -> Parse<Expr> {
        let operand = Box::new(self.unary()?);
        Ok(Expr { span: start.to(operand.span), kind: ExprKind::Unary { op, operand } })
    }

    /// `(.s64)` or `(.u64)`.
    fn cast(&mut self) -> Parse<Expr> {
        self.count_operator()?;
        let start = self.bump();
        let op = match self.word() {
            "s64" => UnaryOp::CastS64,
            "u64" => UnaryOp::CastU64,
            other => {
                let message = format!("a constant expression has no cast to `.{other}`");
                let diagnostic = Diagnostic::new(Code::UnexpectedToken, self.span(), message)
                    .with_label("`.s64` or `.u64` expected")
                    .with_section("4.6.4");
                return Err(self.unexpected(diagnostic));
            }
        };
        self.bump();
        self.expect(K::RParen, "`)` after the type of a cast")?;
        self.unary_node(start, op)
    }

    fn primary(&mut self) -> Parse<Expr> {
        match self.kind() {
            Some(kind) if kind.is_number() => self.literal(),
            Some(K::Ident) => self.named(),
            Some(K::LParen) => {
                self.count_operator()?;
                let start = self.bump();
                let inner = self.expression()?;
                let end = self.expect(K::RParen, "`)`")?;
                Ok(Expr { span: start.to(end), kind: ExprKind::Paren(Box::new(inner)) })
            }
            Some(K::DotWord) if self.in_section => {
                let span = self.bump();
                Ok(Expr { span, kind: ExprKind::Section(Word { span }) })
            }
            _ => Err(self.expected("a constant or a name")),
        }
    }

    fn named(&mut self) -> Parse<Expr> {
        let text = self.text();
        if text == "generic" && self.kind_ahead(1) == Some(K::LParen) {
            let start = self.bump();
            let (address, end) = self.parenthesized()?;
            return Ok(Expr { span: start.to(end), kind: ExprKind::Generic(address) });
        }
        if text == "WARP_SZ" {
            return Ok(Expr { span: self.bump(), kind: ExprKind::WarpSz });
        }
        let reference = self.reference()?;
        Ok(Expr { span: reference.span, kind: ExprKind::Name(reference) })
    }

    fn literal(&mut self) -> Parse<Expr> {
        let text = self.text();
        let span = self.bump();
        let kind = match number::decode(text) {
            Ok(Number::Integer { value, .. }) if self.is(K::LParen) => {
                let (address, end) = self.parenthesized()?;
                return Ok(Expr { span: span.to(end), kind: ExprKind::Mask { mask: value, address } });
            }
            Ok(Number::Integer { value, unsigned }) => ExprKind::Integer { value, unsigned },
            Ok(Number::Double(bits)) => ExprKind::Double(bits),
            Ok(Number::Single(bits)) => ExprKind::Single(bits),
            Err(error) => {
                self.bad_number(span, error);
                ExprKind::Error
            }
        };
        Ok(Expr { span, kind })
    }

    fn parenthesized(&mut self) -> Parse<(Box<Expr>, Span)> {
        self.count_operator()?;
        self.expect(K::LParen, "`(`")?;
        let inner = self.expression()?;
        let end = self.expect(K::RParen, "`)`")?;
        Ok((Box::new(inner), end))
    }

    /// A name, with an adjacent component or selector if there is one.
    pub(super) fn reference(&mut self) -> Parse<Reference> {
        let name: Name = self.name("a name")?;
        let suffix = if self.touches() { self.eat_word() } else { None };
        let span = suffix.map_or(name.span, |word| name.span.to(word.span));
        Ok(Reference { span, name, suffix })
    }
}
