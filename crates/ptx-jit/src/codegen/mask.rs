//! What code generation knows of masks: for each chunk, its bits, or a vector that is computed.
//!
//! Invariant: what is known is found before the LLVM instruction is emitted that computes the mask, from the
//! constants of WIR values and from what is known of the operands. Nothing here reads it from an LLVM value.
//! The instructions themselves are emitted by [`value`](super::value).

use super::{Codegen, LANES, Repr};
use crate::llvm::{Block, Value};
use crate::wir;
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

/// A mask that has been emitted, by its number among the masks of the function.
///
/// What is recorded of a mask belongs to this number and not to the LLVM value: LLVM may fold two masks into
/// one value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Mask(u32);

/// What is recorded of a mask.
struct EmittedMask {
    /// The mask as one number.
    word: Value,
    /// Its chunks, as far as it was joined from chunks or is known, and the LLVM block where they were noted.
    /// They dominate every use of the mask.
    chunks: Option<(Vec<Option<LaneBits>>, Block)>,
    /// Its number among those that warp strips join in memory.
    joined: Option<usize>,
    /// For each chunk that was taken from the number, the vector, and the LLVM block in which it was made.
    cuts: Vec<Option<(Block, Value)>>,
}

/// The masks that have been emitted.
#[derive(Default)]
pub(super) struct EmittedMasks {
    all: Vec<EmittedMask>,
}

impl EmittedMasks {
    /// Adds a mask. `joined`: its number among those that warp strips join in memory.
    pub(super) fn add(&mut self, word: Value, joined: Option<usize>) -> Mask {
        self.all.push(EmittedMask { word, chunks: None, joined, cuts: Vec::new() });
        Mask(self.all.len() as u32 - 1)
    }

    /// A chunk of a mask, if it was joined from chunks or is known, and the LLVM block where it was noted.
    fn chunk(&self, mask: Mask, chunk: u32) -> Option<(LaneBits, Block)> {
        let (chunks, block) = self.all[mask.0 as usize].chunks.as_ref()?;
        chunks[chunk as usize].map(|bits| (bits, *block))
    }

    /// A chunk that was taken from a mask in an LLVM block.
    pub(super) fn cut(&self, mask: Mask, chunk: u32, block: Block) -> Option<Value> {
        let (at, bits) = (*self.all[mask.0 as usize].cuts.get(chunk as usize)?)?;
        (at == block).then_some(bits)
    }

    /// Notes a chunk that was taken from a mask.
    pub(super) fn note_cut(&mut self, mask: Mask, chunk: u32, cut: (Block, Value)) {
        let (cuts, chunk) = (&mut self.all[mask.0 as usize].cuts, chunk as usize);
        if cuts.len() <= chunk {
            cuts.resize(chunk + 1, None);
        }
        cuts[chunk] = Some(cut);
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
        let at = self.facts.analyses.def_use.op(pred).map(|(at, _)| at);
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
    pub(super) fn known_mask(&self, chunks: &[u64]) -> Mask {
        let each = (64 / self.width) as usize;
        let word =
            |chunks: &[u64]| chunks.iter().rev().fold(0, |word, bits| word << (self.width % 64) | bits);
        let words: Vec<u64> = chunks.chunks(each).map(word).collect();
        let mask = self.new_mask(self.b.const_words(self.int(chunks.len() as u32 * self.width), &words));
        self.note_chunks(mask, chunks.iter().map(|bits| LaneBits::Known(*bits)).collect());
        mask
    }

    /// The mask of all lanes.
    pub(super) fn all_lanes(&self) -> Mask {
        self.known_mask(&vec![self.all_bits(); self.chunks() as usize])
    }

    /// The mask of no lane.
    pub(super) fn no_lane(&self) -> Mask {
        self.known_mask(&vec![0; self.chunks() as usize])
    }

    /// The mask of all lanes, or of none.
    pub(super) fn all_or_none(&self, all: bool) -> Mask {
        if all { self.all_lanes() } else { self.no_lane() }
    }

    /// A mask that has been emitted as one number.
    pub(super) fn new_mask(&self, word: Value) -> Mask {
        self.values.masks.borrow_mut().add(word, None)
    }

    /// The lanes that this call owns.
    pub(super) fn own_mask(&self) -> Mask {
        *self.entry.own_mask.get_or_init(|| self.new_mask(self.entry.own))
    }

    /// Notes the chunks of a mask.
    pub(super) fn note_chunks(&self, mask: Mask, chunks: Vec<LaneBits>) {
        self.note_some_chunks(mask, chunks.into_iter().map(Some).collect());
    }

    /// Notes some chunks of a mask.
    pub(super) fn note_some_chunks(&self, mask: Mask, chunks: Vec<Option<LaneBits>>) {
        let noted = Some((chunks, self.b.current_block()));
        self.values.masks.borrow_mut().all[mask.0 as usize].chunks = noted;
    }

    /// A chunk of a mask that was joined from chunks or is known. Where vectors of bits are not held from one
    /// LLVM block to the next, only what was computed in this one.
    pub(super) fn noted_chunk(&self, mask: Mask, chunk: u32) -> Option<LaneBits> {
        let (bits, block) = self.values.masks.borrow().chunk(mask, chunk)?;
        // The number of a mask that warp strips join is not there before the end of the section.
        let held = self.holds_bits() || self.join_of(mask).is_some() || block == self.b.current_block();
        match bits {
            LaneBits::Computed(..) if !held => None,
            LaneBits::Known(_) | LaneBits::Computed(..) => Some(bits),
        }
    }

    /// A mask as one number.
    pub(super) fn word(&self, mask: Mask) -> Value {
        let masks = self.values.masks.borrow();
        let EmittedMask { word, joined, .. } = &masks.all[mask.0 as usize];
        if let Some(joined) = joined {
            self.note_read(*joined);
        }
        *word
    }

    /// The number of a mask among those that warp strips join in memory.
    pub(super) fn join_of(&self, mask: Mask) -> Option<usize> {
        self.values.masks.borrow().all[mask.0 as usize].joined
    }

    /// The mask that a value is.
    pub(super) fn mask(&self, name: wir::Value) -> Mask {
        match (self.values.later.get(&name), self.values.get(name)) {
            (Some(op), _) => self.mask_op(op),
            (None, Some(Repr::Mask(mask))) => *mask,
            (None, _) => unreachable!("ptxvm bug: a value is used as a mask"),
        }
    }

    /// The bits of each chunk of a mask, if all are known.
    fn known_chunks(&self, mask: Mask) -> Option<Vec<u64>> {
        let masks = self.values.masks.borrow();
        let (chunks, _) = masks.all[mask.0 as usize].chunks.as_ref()?;
        let known = chunks.iter().map(|chunk| match chunk {
            Some(LaneBits::Known(bits)) => Some(*bits),
            Some(LaneBits::Computed(..)) | None => None,
        });
        known.collect()
    }

    /// Whether a mask is known to have all lanes (`true`) or none.
    pub(super) fn is_all_or_none(&self, mask: Mask) -> Option<bool> {
        let chunks = self.known_chunks(mask)?;
        let are = |bits: u64| chunks.iter().all(|chunk| *chunk == bits);
        if are(self.all_bits()) { Some(true) } else { are(0).then_some(false) }
    }

    /// The 32-bit words of a known mask, one for each warp.
    pub(super) fn mask_words(&self, mask: Mask) -> Option<Vec<u64>> {
        let chunks = self.known_chunks(mask)?;
        let word = |chunks: &[u64]| chunks.iter().rev().fold(0, |word, bits| word << self.width | bits);
        Some(chunks.chunks((LANES / self.width) as usize).map(word).collect())
    }

    /// A chunk of a mask that has been emitted, if that is known without emitting code.
    pub(super) fn emitted_part(&self, name: wir::Value, chunk: u32) -> Option<LaneBits> {
        let Some(Repr::Mask(mask)) = self.values.get(name) else { return None };
        self.values.masks.borrow().chunk(*mask, chunk).map(|(bits, _)| bits)
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

    /// The lanes that are in both of two masks, as one word; the chunks are noted if all are known.
    pub(super) fn word_and(&self, a: Mask, b: Mask) -> Mask {
        let both = self.new_mask(self.b.and(self.word(a), self.word(b)));
        if let (Some(a), Some(b)) = (self.known_chunks(a), self.known_chunks(b)) {
            self.note_chunks(both, a.iter().zip(&b).map(|(a, b)| LaneBits::Known(a & b)).collect());
        }
        both
    }
}
