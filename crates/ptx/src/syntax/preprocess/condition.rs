//! Conditions of `#if`: integers and operators of C, on 64 bits.
//!
//! Invariant: the recursion is bounded. An undefined name is 0.

use super::super::MAX_NESTING;
use super::super::number::{self, Number};
use super::super::token::TokenKind as K;
use super::super::tree::BinaryOp;

/// The value of a condition; `None` if it is invalid or divides by zero.
pub(super) fn evaluate<'t>(tokens: impl Iterator<Item = (K, &'t str)>) -> Option<i64> {
    let tokens: Vec<(K, &str)> = tokens.collect();
    let mut parser = Condition { tokens: &tokens, at: 0, depth: 0 };
    let value = parser.ternary()?;
    (parser.at == tokens.len()).then_some(value)
}

struct Condition<'t> {
    tokens: &'t [(K, &'t str)],
    at: usize,
    depth: usize,
}

impl Condition<'_> {
    fn kind(&self) -> Option<K> {
        self.tokens.get(self.at).map(|(kind, _)| *kind)
    }

    fn eat(&mut self, kind: K) -> Option<()> {
        (self.kind() == Some(kind)).then(|| self.at += 1)
    }

    fn ternary(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return None;
        }
        let mut value = self.binary(1)?;
        if self.eat(K::Question).is_some() {
            let then = self.ternary()?;
            self.eat(K::Colon)?;
            let otherwise = self.ternary()?;
            value = if value != 0 { then } else { otherwise };
        }
        self.depth -= 1;
        Some(value)
    }

    fn binary(&mut self, level: u8) -> Option<i64> {
        let mut left = self.unary()?;
        while let Some(op) = self.kind().and_then(K::binary_operator).filter(|op| op.precedence() >= level) {
            self.at += 1;
            let right = self.binary(op.precedence() + 1)?;
            left = apply(op, left, right)?;
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return None;
        }
        let (kind, text) = *self.tokens.get(self.at)?;
        self.at += 1;
        let value = match kind {
            K::Plus => self.unary()?,
            K::Minus => self.unary()?.wrapping_neg(),
            K::Bang => i64::from(self.unary()? == 0),
            K::Tilde => !self.unary()?,
            K::LParen => {
                let value = self.ternary()?;
                self.eat(K::RParen)?;
                value
            }
            K::Ident => 0,
            K::Integer => match number::decode(text) {
                Ok(Number::Integer { value, .. }) => value.cast_signed(),
                Ok(Number::Double(_) | Number::Single(_)) | Err(_) => return None,
            },
            _ => return None,
        };
        self.depth -= 1;
        Some(value)
    }
}

fn apply(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    let shift = u32::try_from(b).ok().filter(|n| *n < 64);
    Some(match op {
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => (b != 0).then(|| a.wrapping_div(b))?,
        BinaryOp::Rem => (b != 0).then(|| a.wrapping_rem(b))?,
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Shl => shift.map_or(0, |n| a << n),
        BinaryOp::Shr => a >> shift.unwrap_or(63),
        BinaryOp::Lt => i64::from(a < b),
        BinaryOp::Le => i64::from(a <= b),
        BinaryOp::Gt => i64::from(a > b),
        BinaryOp::Ge => i64::from(a >= b),
        BinaryOp::Eq => i64::from(a == b),
        BinaryOp::Ne => i64::from(a != b),
        BinaryOp::And => a & b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Or => a | b,
        BinaryOp::LogicalAnd => i64::from(a != 0 && b != 0),
        BinaryOp::LogicalOr => i64::from(a != 0 || b != 0),
    })
}
