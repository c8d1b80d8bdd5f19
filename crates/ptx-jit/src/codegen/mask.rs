//! What code generation knows of masks: for each chunk, its bits, or a vector that is computed.
//!
//! Invariant: what is known is found before the LLVM instruction is emitted that computes the mask, from the
//! constants of WIR values and from what is known of the operands. Nothing here reads it from an LLVM value.
//! The instructions themselves are emitted by [`value`](super::value).

use super::{Codegen, LANES, Repr};
use crate::llvm::Value;
use crate::wir;
use crate::wir::Kind;
use ptx::isa::BoolOp;

/// The bits of a chunk of lanes, of a mask or of a predicate.
#[derive(Clone, Copy, Debug)]
pub(super) enum LaneBits {
    /// A constant.
    Known(u64),
    /// A vector, and the lanes in which it may be one.
    Computed(Value, u64),
}

impl LaneBits {
    /// The lanes in which a bit may be one.
    fn may_be_one(self) -> u64 {
        match self {
            LaneBits::Known(bits) | LaneBits::Computed(_, bits) => bits,
        }
    }
}

impl Codegen<'_> {
    /// All lanes of a chunk.
    pub(super) fn all_bits(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// A vector of which nothing is known.
    pub(super) fn computed_bits(&self, bits: Value) -> LaneBits {
        LaneBits::Computed(bits, self.all_bits())
    }

    /// The bits as a vector.
    pub(super) fn vector_of(&self, bits: LaneBits) -> Value {
        match bits {
            LaneBits::Known(bits) => {
                let bits: Vec<u64> = (0..self.width).map(|lane| bits >> lane & 1).collect();
                self.b.const_ints(self.int(1), &bits)
            }
            LaneBits::Computed(bits, _) => bits,
        }
    }

    /// The bits of a chunk of a predicate.
    pub(super) fn predicate_bits(&mut self, pred: wir::Value, chunk: u32) -> LaneBits {
        // The version that is emitted has no active lane there, and only it reads what it defines.
        let at = self.facts.def_use.op(pred).map(|(at, _)| at);
        if self.is_beyond(chunk) && at.is_some() && at == self.position.versioned_block {
            return LaneBits::Known(0);
        }
        match self.is_constant_chunk(pred, chunk).then(|| self.facts.analyses.constants.bits(pred, chunk)) {
            Some(Some(bits)) => LaneBits::Known(bits),
            Some(None) | None => {
                let bits = self.chunk(pred, chunk);
                self.computed_bits(bits)
            }
        }
    }

    /// The lanes that are in both.
    pub(super) fn bits_and(&self, a: LaneBits, b: LaneBits) -> LaneBits {
        use LaneBits::{Computed, Known};
        let every = self.all_bits();
        match (a, b) {
            (Known(a), Known(b)) => Known(a & b),
            (Known(0), _) | (_, Known(0)) => Known(0),
            (Known(known), other) | (other, Known(known)) if known == every => other,
            (Known(_) | Computed(..), Known(_) | Computed(..)) => match a.may_be_one() & b.may_be_one() {
                0 => Known(0),
                within => Computed(self.b.and(self.vector_of(a), self.vector_of(b)), within),
            },
        }
    }

    /// The lanes that are in either.
    pub(super) fn bits_or(&self, a: LaneBits, b: LaneBits) -> LaneBits {
        use LaneBits::{Computed, Known};
        let every = self.all_bits();
        match (a, b) {
            (Known(a), Known(b)) => Known(a | b),
            (Known(known), _) | (_, Known(known)) if known == every => Known(every),
            (Known(0), other) | (other, Known(0)) => other,
            (Known(_) | Computed(..), Known(_) | Computed(..)) => {
                let within = a.may_be_one() | b.may_be_one();
                Computed(self.b.or(self.vector_of(a), self.vector_of(b)), within)
            }
        }
    }

    /// The other lanes.
    pub(super) fn bits_not(&self, a: LaneBits) -> LaneBits {
        match a {
            LaneBits::Known(bits) => LaneBits::Known(!bits & self.all_bits()),
            LaneBits::Computed(bits, _) => self.computed_bits(self.b.not(bits)),
        }
    }

    /// The mask with these chunks, all of which are known.
    pub(super) fn known_mask(&self, chunks: &[u64]) -> Value {
        let each = (64 / self.width) as usize;
        let word =
            |chunks: &[u64]| chunks.iter().rev().fold(0, |word, bits| word << (self.width % 64) | bits);
        let words: Vec<u64> = chunks.chunks(each).map(word).collect();
        let mask = self.b.const_words(self.int(chunks.len() as u32 * self.width), &words);
        self.note_parts(mask, chunks.iter().map(|bits| LaneBits::Known(*bits)).collect());
        mask
    }

    /// The mask of all lanes.
    pub(super) fn all_lanes(&self) -> Value {
        self.known_mask(&vec![self.all_bits(); self.chunks() as usize])
    }

    /// The mask of no lane.
    pub(super) fn no_lane(&self) -> Value {
        self.known_mask(&vec![0; self.chunks() as usize])
    }

    /// The mask of all lanes, or of none.
    pub(super) fn all_or_none(&self, all: bool) -> Value {
        if all { self.all_lanes() } else { self.no_lane() }
    }

    /// Notes the chunks of a mask. LLVM may have folded several masks into one constant: what is known of any
    /// of them is known of all, and stays.
    pub(super) fn note_parts(&self, mask: Value, chunks: Vec<LaneBits>) {
        let mut parts = self.values.parts.borrow_mut();
        let is_known = |chunk: &LaneBits| matches!(chunk, LaneBits::Known(_));
        if !parts.get(&mask).is_some_and(|have| have.iter().all(is_known)) {
            parts.insert(mask, chunks);
        }
    }

    /// The chunks of a mask that was joined from chunks or is known.
    pub(super) fn parts_of(&self, mask: Value) -> Option<Vec<LaneBits>> {
        self.values.parts.borrow().get(&mask).cloned()
    }

    /// The bits of each chunk of a mask, if all are known.
    fn known_chunks(&self, mask: Value) -> Option<Vec<u64>> {
        let parts = self.values.parts.borrow();
        let known = parts.get(&mask)?.iter().map(|chunk| match chunk {
            LaneBits::Known(bits) => Some(*bits),
            LaneBits::Computed(..) => None,
        });
        known.collect()
    }

    /// Whether a mask is known to have all lanes (`true`) or none.
    pub(super) fn is_all_or_none(&self, mask: Value) -> Option<bool> {
        let chunks = self.known_chunks(mask)?;
        let are = |bits: u64| chunks.iter().all(|chunk| *chunk == bits);
        if are(self.all_bits()) { Some(true) } else { are(0).then_some(false) }
    }

    /// The 32-bit words of a known mask, one for each warp.
    pub(super) fn mask_words(&self, mask: Value) -> Option<Vec<u64>> {
        let chunks = self.known_chunks(mask)?;
        let word = |chunks: &[u64]| chunks.iter().rev().fold(0, |word, bits| word << self.width | bits);
        Some(chunks.chunks((LANES / self.width) as usize).map(word).collect())
    }

    /// A chunk of a mask that has been emitted, if that is known without emitting code.
    pub(super) fn emitted_part(&self, name: wir::Value, chunk: u32) -> Option<LaneBits> {
        let Some(Repr::Scalar(mask)) = &self.values.reps[name.0 as usize] else { return None };
        let parts = self.values.parts.borrow();
        parts.get(mask).filter(|_| self.kind(name) == Kind::Mask)?.get(chunk as usize).copied()
    }

    /// A mask of which only chunks are read.
    pub(super) fn mask_handle(&self, name: wir::Value) -> Value {
        match (self.values.later.get(&name), &self.values.reps[name.0 as usize]) {
            (None, Some(Repr::Scalar(mask))) => *mask,
            _ => self.scalar(name),
        }
    }

    /// The lanes that are in either of two joined sets, or in both, or in one.
    pub(super) fn bits_joined(&self, how: BoolOp, a: LaneBits, b: LaneBits) -> LaneBits {
        match how {
            BoolOp::And => self.bits_and(a, b),
            BoolOp::Or => self.bits_or(a, b),
            BoolOp::Xor => self.bits_xor(a, b),
        }
    }

    /// The lanes that are in exactly one.
    fn bits_xor(&self, a: LaneBits, b: LaneBits) -> LaneBits {
        use LaneBits::{Computed, Known};
        match (a, b) {
            (Known(a), Known(b)) => Known(a ^ b),
            (Known(0), other) | (other, Known(0)) => other,
            (Known(_) | Computed(..), Known(_) | Computed(..)) => {
                let within = a.may_be_one() | b.may_be_one();
                Computed(self.b.xor(self.vector_of(a), self.vector_of(b)), within)
            }
        }
    }

    /// The lanes that are in both of two masks, as one word, which is noted if both are known.
    pub(super) fn word_and(&self, a: Value, b: Value) -> Value {
        let word = self.b.and(a, b);
        if let (Some(a), Some(b)) = (self.known_chunks(a), self.known_chunks(b)) {
            let both = a.iter().zip(&b).map(|(a, b)| LaneBits::Known(a & b));
            self.note_parts(word, both.collect());
        }
        word
    }
}
