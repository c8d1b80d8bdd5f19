//! A bit for each lane: from an integer to a vector and back.
//!
//! With AVX-512 both are moves between registers, and LLVM's `bitcast` is one. On other processors a vector
//! of bits is a vector of comparison results, and LLVM's code for `bitcast` is good only where it finds the
//! comparison in the same block; elsewhere it moves bit by bit. So both directions are written out there.
//! For the same reason masks and predicates are integers where other LLVM blocks read them
//! ([`Codegen::holds_bits`]).
//!
//! Invariant: an integer and its vector have the same bits, lane 0 in the lowest.

use super::mask_tree::Made;
use super::{Codegen, LANES, Repr};
use crate::llvm::{IntPred, Value};
use crate::target::Level;
use crate::wir;
use crate::wir::{Kind, Op, Shape};
use ptx::ir::{Inst, RegClass};

/// Bits of the integers whose bits are tested, and the elements of the vectors whose signs are read.
const WORD: u32 = 32;

impl Codegen<'_> {
    /// The bits `first .. first + lanes` of an integer, as a vector.
    pub(super) fn bits_from(&self, word: Value, first: u32, lanes: u32) -> Value {
        let shifted = |by| if by == 0 { word } else { self.b.lshr(word, self.b.const_int(word.ty(), by)) };
        let bits = self.b.vec(self.int(1), lanes);
        if self.env.target.level() == Level::Avx512 || lanes == 1 || lanes > WORD {
            let part = self.b.trunc(shifted(first.into()), self.int(lanes));
            return self.b.bitcast(part, bits);
        }
        // A word that has all of the bits, and is the same for several vectors.
        let start = if first % WORD + lanes <= WORD { first - first % WORD } else { first };
        let part = shifted(start.into());
        let part = match part.ty().element_bits() < WORD {
            true => self.b.zext(part, self.int(WORD)),
            false => self.b.trunc(part, self.int(WORD)),
        };
        let each: Vec<u64> = (first - start..first - start + lanes).map(|bit| 1 << bit).collect();
        let each = self.b.const_ints(self.int(WORD), &each);
        self.b.icmp(IntPred::Eq, self.b.and(self.b.splat(part, lanes), each), each)
    }

    /// Whether vectors of bits are worth holding from one LLVM block to the next.
    pub(super) fn holds_bits(&self) -> bool {
        self.env.target.level() != Level::Avx2
    }

    /// Whether a predicate that differs between lanes is one number, as masks are, where other LLVM blocks
    /// read it. LLVM would hold eight bits as 16-bit integers of which one bit counts, and convert them on
    /// both sides.
    pub(super) fn is_one_number(&self, name: wir::Value) -> bool {
        !self.holds_bits()
            && self.lanes >= LANES
            && !self.in_section()
            && self.kind(name) == Kind::Reg(RegClass::Pred)
    }

    /// Emits an operation on predicates whose result is one number as an operation on numbers.
    pub(super) fn joined_numbers(&mut self, inst: &Inst, op: &Op) -> bool {
        let def = op.defs[0];
        if !self.is_one_number(def) || !matches!(self.shape(def), Shape::Varying) {
            return false;
        }
        let mask = match self.predicate_made(inst, op) {
            Some(Made::Is(a)) => self.truths(a.name, a.negated),
            Some(Made::Joined(how, terms)) => {
                let [a, b] = terms.map(|term| self.truths(term.name, term.negated));
                self.mask_joined(how, a, b)
            }
            Some(Made::Known(_) | Made::Compared(..) | Made::Other) | None => return false,
        };
        self.values.define(def, Repr::Number(mask));
        true
    }

    /// A vector of bits as an integer with as many bits.
    pub(super) fn bits_to_int(&self, bits: Value) -> Value {
        let lanes = bits.ty().lanes();
        let signs = match (self.env.target.level(), lanes) {
            _ if !cfg!(target_arch = "x86_64") => None,
            (Level::Avx2, 8) => Some("llvm.x86.avx.movmsk.ps.256"),
            (Level::Avx2 | Level::Baseline, 4) => Some("llvm.x86.sse.movmsk.ps"),
            (Level::Avx512 | Level::Avx2 | Level::Baseline, _) => None,
        };
        let Some(signs) = signs else { return self.b.bitcast(bits, self.int(lanes)) };
        let wide = self.b.sext(bits, self.b.vec(self.int(WORD), lanes));
        let wide = self.b.bitcast(wide, self.b.vec(self.b.f32(), lanes));
        self.b.trunc(self.b.intrinsic(signs, &[], &[wide]), self.int(lanes))
    }
}
