//! Funnel shifts: a 64-bit value made of two words and shifted, `(high << 32 | low) >> by` cut to 32 bits, as
//! programs read unaligned words.
//!
//! The two words are shifted as 32-bit lanes, with one instruction where the processor has it, instead of
//! twice as many 64-bit lanes that would have to be made and cut again.
//!
//! Invariant: the recorded words are the bits of the value in every lane. The value itself is emitted too,
//! for other readers; LLVM removes it where there are none.

use super::inst::Lanes;
use super::{Codegen, Repr};
use crate::analysis::expr::{Arith, Expr};
use crate::isel::Operand;
use crate::llvm::{IntPred, Value};
use crate::target::Level;
use crate::wir;
use crate::wir::{Kind, Op, Shape};
use ptx::ir::{Inst, RegClass, Src};
use ptx::isa::{Op as O, Ty};

/// One 32-bit word of each lane, by chunk; `None`: zero.
type Half = Option<Vec<Value>>;

/// How a 64-bit value is made of 32-bit words.
#[derive(Clone, Debug)]
pub(super) enum WordPair {
    /// The low word and the high word.
    Both([Half; 2]),
    /// Two words shifted to the right; the shift amounts by chunk, and whether all are known to be less than
    /// 32.
    Shifted([Half; 2], Vec<Value>, bool),
}

impl Codegen<'_> {
    /// Records the words of an instruction's result.
    pub(super) fn note_word_pair(&mut self, inst: &Inst, op: &Op) {
        let ([def], true) = (op.defs.as_slice(), self.env.target.level() != Level::Baseline) else { return };
        if inst.guard.is_some() {
            return;
        }
        self.note_bound(inst, op, *def);
        if self.kind(*def) != Kind::Reg(RegClass::R64) || *self.shape(*def) != Shape::Varying {
            return;
        }
        if let Some(halves) = self.word_pair_of(inst, op, *def) {
            self.values.word_pairs.insert(*def, halves);
        }
    }

    /// Records whether a value is a shift amount that is less than the width of a word.
    fn note_bound(&mut self, inst: &Inst, op: &Op, def: wir::Value) {
        let is_small = match Expr::of(inst).map(|expr| expr.arith) {
            Some(Arith::And) => matches!(inst.srcs.get(1), Some(Src::Imm(bits)) if *bits < 32),
            Some(Arith::Copy | Arith::Convert(_)) => {
                op.uses.get(1).is_some_and(|from| self.values.small.contains(from))
            }
            _ => false,
        };
        if is_small {
            self.values.small.insert(def);
        }
    }

    fn word_pair_of(&mut self, inst: &Inst, op: &Op, def: wir::Value) -> Option<WordPair> {
        match inst.op {
            O::Ld | O::LdNc | O::Ldu => {
                let ty = inst.mods.ty();
                let word = inst.mods.vec() == 1 && ty.bits() <= 32 && !ty.is_signed();
                return word.then(|| Some(WordPair::Both([Some(self.low_words(def)?), None])))?;
            }
            O::MovPack => {
                let ([Src::Reg(_), Src::Reg(_)], [_, low, high]) = (inst.srcs.as_slice(), op.uses.as_slice())
                else {
                    return None;
                };
                let low: Vec<Value> = (0..self.chunks()).map(|c| self.chunk(*low, c)).collect();
                let high: Vec<Value> = (0..self.chunks()).map(|c| self.chunk(*high, c)).collect();
                let fits = low[0].ty().element_bits() == 32 && high[0].ty().element_bits() == 32;
                return fits.then_some(WordPair::Both([Some(low), Some(high)]));
            }
            _ => {}
        }
        let Expr { arith, ty } = Expr::of(inst)?;
        match arith {
            Arith::Convert(Ty::U64 | Ty::S64) if ty == Ty::U32 => {
                Some(WordPair::Both([Some(self.low_words(def)?), None]))
            }
            Arith::Shl => match (inst.srcs.as_slice(), op.uses.as_slice()) {
                ([Src::Reg(_), Src::Imm(32)], [_, from]) => {
                    let low = match self.values.word_pairs.get(from) {
                        Some(WordPair::Both([low, _])) => low.clone(),
                        _ => Some(self.low_words(*from)?),
                    };
                    Some(WordPair::Both([None, low]))
                }
                _ => None,
            },
            Arith::Or => {
                let [_, a, b] = op.uses.as_slice() else { return None };
                let (WordPair::Both(a), WordPair::Both(b)) =
                    (self.values.word_pairs.get(a)?, self.values.word_pairs.get(b)?)
                else {
                    return None;
                };
                let either = |a: &Half, b: &Half| match (a, b) {
                    (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| self.b.or(*a, *b)).collect()),
                    (one, None) | (None, one) => one.clone(),
                };
                Some(WordPair::Both([either(&a[0], &b[0]), either(&a[1], &b[1])]))
            }
            Arith::Shr if matches!(ty, Ty::U64 | Ty::B64) => {
                let Some(WordPair::Both(halves)) =
                    op.uses.get(1).and_then(|name| self.values.word_pairs.get(name))
                else {
                    return None;
                };
                let halves = halves.clone();
                let small = match inst.srcs.get(1)? {
                    Src::Imm(bits) => *bits < 32,
                    _ => op.uses.get(2).is_some_and(|name| self.values.small.contains(name)),
                };
                let word = self.b.vec(self.int(32), self.width);
                let mut amounts = Vec::new();
                for c in 0..self.chunks() {
                    let mut next = 2;
                    amounts.push(
                        match self.operand(&inst.srcs[1], op, &mut next, Lanes::Chunk(c), inst)? {
                            Operand::Value(value, _) if value.ty() == word => value,
                            Operand::Imm(bits) => self.b.const_int(word, bits),
                            _ => return None,
                        },
                    );
                }
                Some(WordPair::Shifted(halves, amounts, small))
            }
            _ => None,
        }
    }

    fn low_words(&self, name: wir::Value) -> Option<Vec<Value>> {
        let Some(Repr::Chunks(chunks)) = self.values.get(name) else { return None };
        let ty = self.b.vec(self.int(32), self.width);
        Some(chunks.iter().map(|chunk| self.b.trunc(*chunk, ty)).collect())
    }

    /// Emits a conversion to 32 bits of two shifted words as a funnel shift.
    pub(super) fn funnel_shift_of(&mut self, inst: &Inst, op: &Op) -> bool {
        let word = |ty: Ty| matches!(ty, Ty::U32 | Ty::S32);
        let long = |ty: Ty| matches!(ty, Ty::U64 | Ty::S64);
        let Some(Expr { arith: Arith::Convert(to), ty }) = Expr::of(inst) else { return false };
        if inst.guard.is_some() || !word(to) || !long(ty) {
            return false;
        }
        let ([def], [_, from], [Src::Reg(_)]) =
            (op.defs.as_slice(), op.uses.as_slice(), inst.srcs.as_slice())
        else {
            return false;
        };
        if self.kind(*def) != Kind::Reg(RegClass::R32) || *self.shape(*def) != Shape::Varying {
            return false;
        }
        let Some(WordPair::Shifted([low, high], amounts, small)) = self.values.word_pairs.get(from) else {
            return false;
        };
        let ty = self.b.vec(self.int(32), self.width);
        let (word, zero) = (self.b.const_int(ty, 32), self.b.zero(ty));
        let of = |half: &Half, c: usize| half.as_ref().map_or(zero, |all| all[c]);
        let chunk = |(c, by): (usize, &Value)| {
            let (low, high) = (of(low, c), of(high, c));
            let both = self.b.intrinsic("llvm.fshr", &[ty], &[high, low, *by]);
            if *small {
                return both;
            }
            // From a shift of 32 on the result is part of the high word; from 64 on it is zero.
            let more = self.b.sub(*by, word);
            let some = self.b.icmp(IntPred::Ult, more, word);
            let more = self.b.select(some, more, zero);
            let down = self.b.select(some, self.b.lshr(high, more), zero);
            self.b.select(self.b.icmp(IntPred::Ult, *by, word), both, down)
        };
        let chunks = amounts.iter().enumerate().map(chunk).collect();
        self.applied("funnel-shift", "two words are shifted as one of 64 bits");
        self.values.define(*def, Repr::Chunks(chunks));
        true
    }
}
