//! Operands of instructions. PTX ISA §4.3.2, §6.4, §9.2.

use super::super::number::{self, Number};
use super::super::tree::{Address, BinaryOp, Expr, ExprKind, Name, Operand, OperandKind, Reference, UnaryOp};
use super::{K, Parse, Parser, Reported};
use crate::Span;
use crate::diag::{Code, Diagnostic};

/// Whether a parenthesis begins a list of parameters or an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parens {
    /// In `call`.
    Parameters,
    /// Everywhere else.
    Expression,
}

impl Parser<'_> {
    /// The operands of one instruction, up to the semicolon or the token that shows that it is missing. An
    /// operand with a syntax error becomes an error operand.
    pub(super) fn operands(&mut self, parens: Parens) -> Vec<Operand> {
        if self.is(K::Semicolon) || self.starts_statement() {
            return Vec::new();
        }
        let mut operands = std::mem::take(&mut self.operands);
        loop {
            let mut operand = self.operand_or_error(parens, K::Semicolon);
            if self.tokens.get(self.at).is_some_and(|next| next.after_unknown) {
                // The lexer has reported the mistake in this operand.
                let before = self.at;
                self.skip_in_list(K::Semicolon);
                let skipped = self.at > before;
                let span = if skipped { operand.span.to(self.previous()) } else { operand.span };
                operand = Operand { span, kind: OperandKind::Error };
            }
            operands.push(operand);
            if self.eat(K::Comma).is_some() {
                continue;
            }
            if self.is(K::Semicolon) || self.starts_statement() || !self.starts_operand() {
                break;
            }
            self.missing_comma();
        }
        operands
    }

    /// One operand; after a syntax error, skips to the next `,` or `close`.
    fn operand_or_error(&mut self, parens: Parens, close: K) -> Operand {
        let before = self.at;
        let start = self.span();
        self.operand(parens).unwrap_or_else(|Reported| {
            self.skip_in_list(close);
            let span = if self.at == before { self.behind() } else { start.to(self.previous()) };
            Operand { span, kind: OperandKind::Error }
        })
    }

    fn missing_comma(&mut self) {
        let message = format!("missing `,` before {}", self.found());
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, self.behind(), message)
            .with_label("`,` or `;` expected here")
            .with_section("4.3.2");
        self.unexpected(diagnostic);
    }

    fn starts_operand(&self) -> bool {
        self.kind().is_some_and(|kind| {
            kind.is_number()
                || matches!(kind, K::Ident | K::Sink | K::LBrace | K::LBracket | K::LParen | K::Bang)
        })
    }

    /// One operand. Nested operands are parsed by this function, which bounds their depth.
    #[inline]
    fn operand(&mut self, parens: Parens) -> Parse<Operand> {
        self.enter("operands")?;
        let operand = self.operand_here(parens);
        self.leave();
        operand
    }

    #[inline]
    fn operand_here(&mut self, parens: Parens) -> Parse<Operand> {
        let start = self.span();
        let kind = match self.kind() {
            Some(K::Sink) => {
                self.bump();
                if self.is(K::Or) { self.pair(start, OperandKind::Sink)? } else { OperandKind::Sink }
            }
            Some(K::LBrace) => {
                let vector = OperandKind::Vector(self.operand_list(K::RBrace, "`}`")?);
                if self.is(K::Or) { self.pair(start.to(self.previous()), vector)? } else { vector }
            }
            Some(K::LBracket) => {
                let mut kind = self.brackets()?;
                if let OperandKind::Address(address) = &mut kind
                    && self.word() == "unified"
                    && self.touches()
                {
                    address.unified = Some(self.bump());
                }
                kind
            }
            Some(K::LParen) if parens == Parens::Parameters => {
                OperandKind::Parameters(self.operand_list(K::RParen, "`)`")?)
            }
            Some(K::Ident) if self.is_plain_name() => {
                let reference = self.reference()?;
                self.after_name(reference)?
            }
            Some(sign @ (K::Bang | K::Minus)) if self.is_signed_name() => self.signed_name(sign)?,
            Some(kind) if kind.is_number() || is_expression_start(kind) => {
                OperandKind::Expr(self.constant()?)
            }
            _ => return Err(self.expected("an operand")),
        };
        Ok(Operand { span: start.to(self.previous()), kind })
    }

    fn is_plain_name(&self) -> bool {
        self.text() != "WARP_SZ" && !(self.text() == "generic" && self.kind_ahead(1) == Some(K::LParen))
    }

    /// Whether `!` or `-` directly precedes a name that is a whole operand.
    fn is_signed_name(&self) -> bool {
        self.kind_ahead(1) == Some(K::Ident)
            && self.text_ahead(1) != "WARP_SZ"
            && self.text_ahead(1) != "generic"
    }

    fn signed_name(&mut self, sign: K) -> Parse<OperandKind> {
        let before = self.at;
        self.bump();
        let reference = self.reference()?;
        if self.is_operator() {
            self.at = before;
            return Ok(OperandKind::Expr(self.constant()?));
        }
        Ok(match sign {
            K::Bang => OperandKind::Not(reference),
            _ => OperandKind::Minus(reference),
        })
    }

    /// The part of an operand after a name: the second half of a pair, an index, an operator, or nothing.
    fn after_name(&mut self, reference: Reference) -> Parse<OperandKind> {
        match self.kind() {
            Some(K::Or) => {
                let span = reference.span;
                self.pair(span, OperandKind::Name(reference))
            }
            // A bracket that is not adjacent to the register before it begins another operand; the comma is
            // missing.
            Some(K::LBracket) if self.touches() || !reference.name.text(self.source).starts_with('%') => {
                self.index(reference.name)
            }
            _ if self.is_operator() => Ok(OperandKind::Expr(self.constant_after(reference)?)),
            _ => Ok(OperandKind::Name(reference)),
        }
    }

    fn pair(&mut self, span: Span, first: OperandKind) -> Parse<OperandKind> {
        self.expect(K::Or, "`|`")?;
        let second = match self.eat(K::Sink) {
            Some(span) => Operand { span, kind: OperandKind::Sink },
            None => {
                let reference = self.reference()?;
                Operand { span: reference.span, kind: OperandKind::Name(reference) }
            }
        };
        if self.is(K::Or) {
            let diagnostic = Diagnostic::new(
                Code::UnexpectedToken,
                self.span(),
                "a destination has one part or two, not more",
            )
            .with_help("`p|q`")
            .with_section("9.2");
            return Err(self.unexpected(diagnostic));
        }
        Ok(OperandKind::Pair(Box::new(Operand { span, kind: first }), Box::new(second)))
    }

    /// `{a, b}` or `(a, b)`: the elements after the opening bracket, and the closing bracket.
    fn operand_list(&mut self, close: K, close_text: &str) -> Parse<Vec<Operand>> {
        self.bump();
        if self.eat(close).is_some() {
            return Ok(Vec::new());
        }
        let first = self.operand_or_error(Parens::Expression, close);
        self.elements(first, close, close_text)
    }

    /// The elements after the first one, up to `close`.
    fn elements(&mut self, first: Operand, close: K, close_text: &str) -> Parse<Vec<Operand>> {
        let mut elements = vec![first];
        loop {
            if self.eat(close).is_some() {
                return Ok(elements);
            }
            if self.eat(K::Comma).is_none() {
                let start = self.span();
                let reported = self.expected(&format!("`,` or {close_text}"));
                self.skip_in_list(close);
                elements.push(Operand { span: start.to(self.previous()), kind: OperandKind::Error });
                if self.eat(K::Comma).is_none() {
                    return self.eat(close).map(|_| elements).ok_or(reported);
                }
            }
            elements.push(self.operand_or_error(Parens::Expression, close));
        }
    }

    /// `[base+offset]` or `[a, b, {c, d}]`.
    fn brackets(&mut self) -> Parse<OperandKind> {
        self.bump();
        if let Some(address) = self.plain_address() {
            return Ok(OperandKind::Address(address));
        }
        let first = self.operand_or_error(Parens::Expression, K::RBracket);
        if self.eat(K::RBracket).is_some() {
            return Ok(OperandKind::Address(self.address(first)?));
        }
        let mut elements = self.elements(first, K::RBracket, "`]`")?;
        match elements.pop() {
            Some(only) if elements.is_empty() => Ok(OperandKind::Address(self.address(only)?)),
            last => {
                elements.extend(last);
                Ok(OperandKind::AddressList(elements))
            }
        }
    }

    /// `base]` or `base+4]`, the form of nearly all addresses. Other forms are parsed as general operands,
    /// with the same result.
    fn plain_address(&mut self) -> Option<Address> {
        let tokens = self.tokens.get(self.at..)?;
        let (name, offset) = match tokens {
            [name, close, ..] if name.kind == K::Ident && close.kind == K::RBracket => (name, None),
            [name, plus, number, close, ..]
                if name.kind == K::Ident
                    && plus.kind == K::Plus
                    && number.kind == K::Integer
                    && close.kind == K::RBracket =>
            {
                (name, Some(number.span))
            }
            _ => return None,
        };
        let span = name.span;
        if tokens.iter().take(5).any(|token| token.after_unknown) || span.text(self.source) == "WARP_SZ" {
            return None;
        }
        let base = Some(Reference { span, name: Name { span }, suffix: None });
        let Some(place) = offset else {
            self.at += 2;
            return Some(Address { span, base, offset: None, unified: None });
        };
        let Ok(Number::Integer { value, unsigned }) = number::decode(place.text(self.source)) else {
            return None;
        };
        self.at += 4;
        let offset = Expr { span: place, kind: ExprKind::Integer { value, unsigned } };
        Some(Address { span: span.to(place), base, offset: Some(Box::new(offset)), unified: None })
    }

    fn index(&mut self, array: Name) -> Parse<OperandKind> {
        self.bump();
        let inner = self.operand_or_error(Parens::Expression, K::RBracket);
        self.expect(K::RBracket, "`]`")?;
        Ok(OperandKind::Indexed { array, index: Box::new(self.address(inner)?) })
    }

    /// Converts an operand to a sum of a name and a constant.
    fn address(&mut self, operand: Operand) -> Parse<Address> {
        let span = operand.span;
        match operand.kind {
            OperandKind::Name(base) => Ok(Address { span, base: Some(base), offset: None, unified: None }),
            OperandKind::Expr(expr) => {
                let (base, offset) = split_address(expr);
                Ok(Address { span, base, offset: offset.map(Box::new), unified: None })
            }
            OperandKind::Error => {
                let offset = Some(Box::new(Expr { span, kind: ExprKind::Error }));
                Ok(Address { span, base: None, offset, unified: None })
            }
            OperandKind::Sink
            | OperandKind::Not(_)
            | OperandKind::Minus(_)
            | OperandKind::Vector(_)
            | OperandKind::Address(_)
            | OperandKind::AddressList(_)
            | OperandKind::Indexed { .. }
            | OperandKind::Pair(..)
            | OperandKind::Parameters(_) => {
                let text = span.text(self.source);
                let diagnostic =
                    Diagnostic::new(Code::BadAddress, span, format!("`{text}` is not an address"))
                        .with_help("an address is `[name]`, `[name+constant]` or `[constant]`")
                        .with_section("6.4.1");
                Err(self.report(diagnostic))
            }
        }
    }
}

const fn is_expression_start(kind: K) -> bool {
    matches!(kind, K::LParen | K::Plus | K::Minus | K::Bang | K::Tilde | K::Ident)
}

/// Splits `a + x - y` into `a` and `x - y`. An expression that does not begin with a name is all offset.
fn split_address(expr: Expr) -> (Option<Reference>, Option<Expr>) {
    let Expr { span, kind } = expr;
    match kind {
        ExprKind::Name(base) => (Some(base), None),
        ExprKind::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), left, right } => {
            if !begins_with_name(&left) {
                return (None, Some(Expr { span, kind: ExprKind::Binary { op, left, right } }));
            }
            let (base, before) = split_address(*left);
            let offset = match (before, op) {
                (Some(before), op) => Expr {
                    span: before.span.to(right.span),
                    kind: ExprKind::Binary { op, left: Box::new(before), right },
                },
                (None, BinaryOp::Sub) => {
                    Expr { span: right.span, kind: ExprKind::Unary { op: UnaryOp::Minus, operand: right } }
                }
                (None, _) => *right,
            };
            (base, Some(offset))
        }
        kind => (None, Some(Expr { span, kind })),
    }
}

fn begins_with_name(mut expr: &Expr) -> bool {
    loop {
        match &expr.kind {
            ExprKind::Name(_) => return true,
            ExprKind::Binary { op: BinaryOp::Add | BinaryOp::Sub, left, .. } => expr = left,
            _ => return false,
        }
    }
}
