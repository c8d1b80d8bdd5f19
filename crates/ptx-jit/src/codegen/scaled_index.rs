//! Base plus scaled index: 64-bit values that are a scalar plus scaled 32-bit values of the lanes, as most
//! computed addresses are.
//!
//! Bounds are then compared 16 lanes at a time, and gathers take 32-bit indices. The 64-bit vectors are
//! computed only for other readers.
//!
//! Invariant: `base + extended(index) * scale` is the value's bits in every lane, modulo 2^64.

use super::mask::Mask;
use super::{Codegen, Repr};
use crate::analysis::address::{Made, Other, ScaledForm};
use crate::analysis::expr::{Operand, operands};
use crate::llvm::{IntPred, Value};
use crate::wir;
use crate::wir::Op;
use crate::wir::checks::Reach;
use ptx::ir::Inst;

/// A scalar plus scaled 32-bit indices of the lanes.
#[derive(Clone, Debug)]
pub(super) struct ScaledIndex {
    pub(super) base: Value,
    /// The 32-bit indices, by chunk.
    pub(super) index: Vec<Value>,
    /// Whether the indices are sign-extended.
    pub(super) signed: bool,
    /// Whether the indices are below 256 in every lane.
    pub(super) bytes: bool,
    pub(super) scale: u64,
}

impl Codegen<'_> {
    /// Computes the base and the scaled index of an instruction's result, where it has them.
    pub(super) fn note_scaled_index(&mut self, inst: &Inst, op: &Op) {
        let [def] = op.defs.as_slice() else { return };
        let Some(form) = self.facts.analyses.addresses.scaled(*def) else { return };
        let zero = self.c64(0);
        let (base, index) = match form.made {
            Made::LowWords => (zero, self.index_words(*def)),
            Made::FirstSource { plus } => {
                let index = (0..self.chunks()).map(|c| self.chunk(op.uses[1], c)).collect();
                (if plus { self.uniform_source(inst, op, 2) } else { zero }, index)
            }
            Made::Shifted(name, by) => {
                let spread = self.scaled_index(name);
                (self.b.shl(spread.base, self.c64(by)), spread.index)
            }
            Made::Multiplied(name, by) => {
                let spread = self.scaled_index(name);
                (self.b.mul(spread.base, self.c64(by)), spread.index)
            }
            Made::Moved(name, Other { source, subtracted }) => {
                let spread = self.scaled_index(name);
                let more = self.uniform_source(inst, op, source);
                let base = match subtracted {
                    true => self.b.sub(spread.base, more),
                    false => self.b.add(spread.base, more),
                };
                (base, spread.index)
            }
            Made::Copied(name) => {
                let spread = self.scaled_index(name);
                (spread.base, spread.index)
            }
            Made::ToShared(name) => {
                let spread = self.scaled_index(name);
                (self.b.add(spread.base, self.entry.shared[0]), spread.index)
            }
            Made::FromShared(name) => {
                let spread = self.scaled_index(name);
                (self.b.sub(spread.base, self.entry.shared[0]), spread.index)
            }
        };
        let ScaledForm { scale, signed, bytes, .. } = form;
        self.values.scaled_indices.insert(*def, ScaledIndex { base, index, signed, bytes, scale });
    }

    /// The base and the scaled index of a value that has them.
    pub(super) fn scaled_index(&self, name: wir::Value) -> ScaledIndex {
        if let Some(known) = self.values.scaled_indices.get(&name) {
            return known.clone();
        }
        // A chunk loop computed the value, and keeps no base.
        let form = self.facts.analyses.addresses.scaled(name).expect("ptxvm bug: an address without indices");
        let ScaledForm { scale, signed, bytes, .. } = form;
        debug_assert_eq!(scale, 1, "a chunk loop computes no scaled addresses");
        ScaledIndex { base: self.c64(0), index: self.index_words(name), signed, bytes, scale }
    }

    /// The low words of a 64-bit value.
    fn index_words(&self, name: wir::Value) -> Vec<Value> {
        let Some(Repr::Chunks(chunks)) = self.values.get(name) else {
            unreachable!("ptxvm bug: a varying value without vectors")
        };
        let ty = self.b.vec(self.int(32), self.width);
        chunks.iter().map(|chunk| self.b.trunc(*chunk, ty)).collect()
    }

    /// A uniform 64-bit source.
    fn uniform_source(&self, inst: &Inst, op: &Op, at: usize) -> Value {
        match operands(inst, op).get(at) {
            Some(Operand::Value(name)) => self.scalar(*name),
            Some(Operand::Imm(bits)) => self.c64(*bits),
            _ => unreachable!("ptxvm bug: a source that is not uniform"),
        }
    }

    /// The value as 64-bit vectors.
    pub(super) fn widened(&self, spread: &ScaledIndex) -> Vec<Value> {
        let ty = self.b.vec(self.int(64), self.width);
        let one = |index: &Value| {
            let wide = if spread.signed { self.b.sext(*index, ty) } else { self.b.zext(*index, ty) };
            let steps =
                if spread.scale == 1 { wide } else { self.b.mul(wide, self.b.const_int(ty, spread.scale)) };
            self.b.add(steps, self.b.splat(spread.base, self.width))
        };
        spread.index.iter().map(one).collect()
    }

    /// The condition that the accesses of the active lanes begin at one of `limit` addresses, of which `bias`
    /// maps the first to zero.
    pub(super) fn scaled_index_fits(
        &self,
        reach: Reach,
        spread: &ScaledIndex,
        (bias, limit): (Value, Value),
        mask: Option<Mask>,
    ) -> Value {
        let long = self.int(64);
        let scale = spread.scale as i64;
        let pick = |name: &str, a: Value, b: Value| self.b.intrinsic(name, &[long], &[a, b]);
        let divided = |value: Value| {
            if spread.scale.is_power_of_two() {
                self.b.ashr(value, self.c64(spread.scale.trailing_zeros().into()))
            } else {
                self.b.sdiv(value, self.c64(spread.scale))
            }
        };
        // The least and the greatest index in bounds. The offset in bytes of a narrow access must also fit
        // into 32 bits.
        let widest = if reach.align < 4 { scale } else { scale / 8 };
        let most = (1i64 << 31) / widest.max(1) - 4;
        let least = if spread.signed { -most } else { 0 };
        let from = self.b.add(spread.base, self.c64(reach.lo as u64));
        let from = self.b.add(from, bias);
        let end = self.b.sub(limit, self.c64(1));
        let last = divided(self.b.sub(end, from));
        let last = pick("llvm.smin", last, self.c64(most as u64));
        let first = divided(self.b.sub(self.c64((scale - 1) as u64), from));
        let first = pick("llvm.smax", first, self.c64(least as u64));
        let some = self.b.icmp(IntPred::Sle, first, last);
        let width = self.b.trunc(self.b.sub(last, first), self.int(32));
        let first = self.b.trunc(first, self.int(32));
        let mut bad = None;
        for (c, index) in spread.index.iter().enumerate() {
            let from = self.b.sub(*index, self.b.splat(first, self.width));
            let mut wrong = self.b.icmp(IntPred::Ugt, from, self.b.splat(width, self.width));
            if let Some(mask) = mask {
                let lanes = self.mask_chunk(mask, c as u32);
                wrong = self.b.and(wrong, lanes);
            }
            bad = Some(match bad {
                None => wrong,
                Some(others) => self.b.or(others, wrong),
            });
        }
        let good = bad.map(|bad| self.b.not(self.any(bad)));
        let fits = self.both(Some(some), good);
        if reach.align <= 1 {
            return fits;
        }
        let odd = self.b.and(spread.base, self.c64(u64::from(reach.align) - 1));
        let aligned = self.b.icmp(IntPred::Eq, odd, self.c64(0));
        self.b.and(fits, aligned)
    }

    /// The pointers of a chunk, for an access that is in bounds.
    pub(super) fn scaled_index_pointers(&self, spread: &ScaledIndex, c: u32) -> Value {
        let base = self.b.int_to_ptr(spread.base);
        let index = spread.index[c as usize];
        let (unit, times) = match spread.scale {
            scale @ (1 | 2 | 4 | 8) => (scale, 1),
            scale if scale % 8 == 0 => (8, scale / 8),
            scale => {
                let ty = self.b.vec(self.int(64), self.width);
                let bytes = self.b.mul(self.b.sext(index, ty), self.b.const_int(ty, scale));
                return self.b.gep(base, bytes);
            }
        };
        let index = if times == 1 { index } else { self.b.mul(index, self.b.const_int(index.ty(), times)) };
        self.b.gep_of(self.int(8 * unit as u32), base, index)
    }
}
