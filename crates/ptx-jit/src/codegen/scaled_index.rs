//! Base plus scaled index: 64-bit values that are a scalar plus scaled 32-bit values of the lanes, as most
//! computed addresses are.
//!
//! Bounds are then compared 16 lanes at a time, and gathers take 32-bit indices. The 64-bit vectors are
//! computed only for other readers.
//!
//! Invariant: `base + extended(index) * scale` is the value's bits in every lane, modulo 2^64.

use super::inst::Lanes;
use super::load_store::Reach;
use super::{Codegen, Repr};
use crate::analysis::expr::{Arith, Expr};
use crate::isel::Operand;
use crate::llvm::{IntPred, Value};
use crate::wir;
use crate::wir::{Kind, Op, Shape};
use ptx::ir::{Inst, RegClass, Src};
use ptx::isa::{Op as O, Space, Ty};

/// The largest scale that is recorded: sums of bounds then stay far below 2^63.
const SCALES: u64 = 1 << 20;

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
    /// Records the base and the scaled index of an instruction's result.
    pub(super) fn note_scaled_index(&mut self, inst: &Inst, op: &Op) {
        let [def] = op.defs.as_slice() else { return };
        if inst.guard.is_some()
            || self.kind(*def) != Kind::Reg(RegClass::R64)
            || *self.shape(*def) != Shape::Varying
        {
            return;
        }
        let Some(spread) = self.scaled_index_of(inst, op, *def) else { return };
        if spread.scale == 0 || spread.scale > SCALES {
            return;
        }
        self.scaled_indices.insert(*def, spread);
    }

    fn scaled_index_of(&mut self, inst: &Inst, op: &Op, def: wir::Value) -> Option<ScaledIndex> {
        let zero = self.c64(0);
        let known = |emit: &Self, at: usize| {
            let name = op.uses.get(at)?;
            emit.scaled_indices.get(name).cloned()
        };
        let constant = |at: usize| match inst.srcs.get(at) {
            Some(Src::Imm(bits)) => Some(*bits),
            _ => None,
        };
        if matches!(inst.op, O::Ld | O::LdNc | O::Ldu) {
            let ty = inst.mods.ty();
            if inst.mods.vec() != 1 || ty.bits() > 32 {
                return None;
            }
            let (index, bytes) = (self.cut(def)?, self.is_byte(def));
            return Some(ScaledIndex { base: zero, index, signed: ty.is_signed(), bytes, scale: 1 });
        }
        let Expr { arith, ty } = Expr::of(inst)?;
        match arith {
            Arith::Convert(Ty::U64 | Ty::S64) if is_word(ty) => {
                let (index, bytes) = self.words(inst, op, 0)?;
                Some(ScaledIndex { base: zero, index, signed: ty.is_signed(), bytes, scale: 1 })
            }
            Arith::Mul { wide: true } | Arith::Mad { wide: true } if is_word(ty) => {
                let scale = constant(1)? & 0xffff_ffff;
                // A negative scale would need bounds in the opposite order.
                if ty.is_signed() && scale >> 31 != 0 {
                    return None;
                }
                let (index, bytes) = self.words(inst, op, 0)?;
                let base = match arith {
                    Arith::Mad { .. } => self.uniform_source(inst, op, 2)?,
                    _ => zero,
                };
                Some(ScaledIndex { base, index, signed: ty.is_signed(), bytes, scale })
            }
            Arith::And if constant(1).is_some_and(|bits| bits < 1 << 31) => {
                let index = self.cut(def)?;
                Some(ScaledIndex { base: zero, index, signed: false, bytes: self.is_byte(def), scale: 1 })
            }
            Arith::Shl => {
                let (spread, by) = (known(self, 1)?, constant(1)?);
                (by < 20).then(|| {
                    let base = self.b.shl(spread.base, self.c64(by));
                    ScaledIndex { base, scale: spread.scale << by, ..spread }
                })
            }
            Arith::Mul { wide: false } if ty.bits() == 64 => {
                let (spread, by) = (known(self, 1)?, constant(1)?);
                (by < SCALES).then(|| {
                    let base = self.b.mul(spread.base, self.c64(by));
                    ScaledIndex { base, scale: spread.scale * by, ..spread }
                })
            }
            Arith::Add | Arith::Sub if ty.bits() == 64 => {
                let first = matches!(inst.srcs.first(), Some(Src::Reg(_)));
                if let Some(spread) = known(self, 1).filter(|_| first) {
                    let more = self.uniform_source(inst, op, 1)?;
                    let base = match arith {
                        Arith::Add => self.b.add(spread.base, more),
                        _ => self.b.sub(spread.base, more),
                    };
                    return Some(ScaledIndex { base, ..spread });
                }
                let spread = known(self, if first { 2 } else { 1 })?;
                if arith != Arith::Add {
                    return None;
                }
                let more = self.uniform_source(inst, op, 0)?;
                let base = self.b.add(spread.base, more);
                Some(ScaledIndex { base, ..spread })
            }
            Arith::Copy
            | Arith::ToGeneric(Space::Global | Space::Const)
            | Arith::FromGeneric(Space::Global | Space::Const) => known(self, 1),
            Arith::ToGeneric(Space::Shared) => {
                let spread = known(self, 1)?;
                Some(ScaledIndex { base: self.b.add(spread.base, self.shared[0]), ..spread })
            }
            Arith::FromGeneric(Space::Shared) => {
                let spread = known(self, 1)?;
                Some(ScaledIndex { base: self.b.sub(spread.base, self.shared[0]), ..spread })
            }
            _ => None,
        }
    }

    /// The chunks of a varying 32-bit source, and whether it is below 256 in every lane.
    fn words(&mut self, inst: &Inst, op: &Op, at: usize) -> Option<(Vec<Value>, bool)> {
        let (Some(Src::Reg(reg)), Some(name)) = (inst.srcs.get(at), op.uses.get(1 + at)) else { return None };
        let chunks = (reg.class == RegClass::R32).then(|| (0..self.chunks()).map(|c| self.chunk(*name, c)));
        Some((chunks?.collect(), self.is_byte(*name)))
    }

    /// The low words of a 64-bit value.
    fn cut(&self, name: wir::Value) -> Option<Vec<Value>> {
        let Some(Repr::Chunks(chunks)) = &self.reps[name.0 as usize] else { return None };
        let ty = self.b.vec(self.int(32), self.width);
        Some(chunks.iter().map(|chunk| self.b.trunc(*chunk, ty)).collect())
    }

    /// A uniform 64-bit source.
    fn uniform_source(&mut self, inst: &Inst, op: &Op, at: usize) -> Option<Value> {
        let before = inst.srcs[..at].iter().filter(|src| matches!(src, Src::Reg(_))).count();
        let mut next = 1 + before;
        match inst.srcs.get(at)? {
            Src::Reg(_) if !self.is_scalar(*op.uses.get(next)?) => return None,
            Src::Reg(_) | Src::Imm(_) => {}
            _ => return None,
        }
        match self.operand(&inst.srcs[at], op, &mut next, Lanes::First(0), inst)? {
            Operand::Value(value) if value.ty() == self.int(64) => Some(value),
            Operand::Imm(bits) => Some(self.c64(bits)),
            _ => None,
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
        mask: Option<Value>,
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

/// Whether a type is an integer of 32 bits.
fn is_word(ty: Ty) -> bool {
    matches!(ty, Ty::U32 | Ty::S32)
}
