//! The undefined bits of a result, given the undefined bits of the sources.
//!
//! A bit of a bitwise operation is defined if the defined source bits determine it; a sum is undefined from
//! its lowest undefined bit on; a comparison, conversion or table look-up is entirely undefined if any source
//! bit is. PTX ISA §9.7.1 (integers), §9.7.7 (logic), §9.7.8 (moves).
//!
//! Invariant: defined sources have defined results; if an undefined bit may change bits of the result, those
//! bits are undefined, unless the head of `initcheck` says otherwise.

use crate::shadow::width;
use ptx::ir::{Inst, Src};
use ptx::isa::{BoolOp, Cmp, Op, PrmtMode, Slot, Ty, Word};

/// A source in one lane: its value, and its undefined bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Value {
    pub(crate) bits: u64,
    pub(crate) undefined: u64,
}

impl Value {
    fn known(self, ty: u32) -> Self {
        Self { bits: self.bits & width(ty), undefined: self.undefined & width(ty) }
    }
}

/// Undefined bits of the first destination, of `bits` bits, in one lane.
pub(crate) fn result(inst: &Inst, bits: u32, sources: &[Value]) -> u64 {
    let all = width(bits);
    let [a, b, c] = [0, 1, 2].map(|i| sources.get(i).copied().unwrap_or_default());
    let any = sources.iter().any(|source| source.undefined != 0);
    if !any {
        return 0;
    }
    let ty = inst.mods.ty_in(Slot::Type).unwrap_or(Ty::B32);
    let equal = matches!(&inst.srcs[..], [Src::Reg(a), Src::Reg(b)] if a == b);
    match inst.op {
        // Of any value, the same is left.
        Op::Xor => (if equal { 0 } else { a.undefined | b.undefined }) & all,
        Op::Sub if equal && !ty.is_float() => 0,
        Op::Setp | Op::Set if equal && !inst.mods.ty_in(Slot::Stype).unwrap_or(ty).is_float() => 0,
        Op::Mov => a.undefined & all,
        Op::And => a.undefined & b.undefined | a.undefined & b.bits | b.undefined & a.bits,
        Op::Or => a.undefined & b.undefined | a.undefined & !b.bits & all | b.undefined & !a.bits & all,
        Op::Not => a.undefined & all,
        Op::Lop3 => lop3(a, b, c, sources.get(3).map_or(0, |table| table.bits as u8)) & all,
        Op::Add | Op::Sub | Op::AddCc | Op::SubCc if !ty.is_float() && !packed(ty) => {
            smear(a.undefined | b.undefined) & all
        }
        Op::Mul | Op::Mad | Op::Mul24 | Op::Mad24 if !ty.is_float() => {
            let product = smear(a.undefined | b.undefined);
            let high = inst.mods.has(Word::Hi) && (a.undefined | b.undefined) != 0;
            let zero = |x: Value, y: Value| x.undefined == 0 && x.bits == 0 && y.undefined != 0;
            let product = if zero(a, b) || zero(b, a) { 0 } else { product };
            (if high { all } else { smear(product | c.undefined) }) & all
        }
        Op::Shl | Op::Shr if b.undefined & width(32) != 0 => all,
        Op::Shl => {
            if b.bits & width(32) >= 64 {
                0
            } else {
                (a.undefined << (b.bits & 63)) & all
            }
        }
        Op::Shr => {
            let by = (b.bits & width(32)).min(u64::from(bits) - 1) as u32;
            let sign = matches!(ty, Ty::S16 | Ty::S32 | Ty::S64) && a.undefined >> (bits - 1) & 1 != 0;
            if b.bits & width(32) >= u64::from(bits) && !sign {
                return 0;
            }
            a.undefined >> by | if sign { all & !(all >> by) } else { 0 }
        }
        Op::Shf if c.undefined == 0 => {
            let joined = u128::from(b.undefined & width(32)) << 32 | u128::from(a.undefined & width(32));
            let by = (c.bits & 0xffff_ffff) as u32;
            let by = if inst.mods.has(Word::Wrap) { by & 31 } else { by.min(32) };
            let left = inst.mods.has(Word::L);
            ((if left { joined << by >> 32 } else { joined >> by }) as u64) & width(32)
        }
        Op::Bfe if b.undefined == 0 && c.undefined == 0 => {
            let (at, length) = ((b.bits & 0xff) as u32, (c.bits & 0xff) as u32);
            let field = if at >= bits { 0 } else { a.undefined >> at & width(length.min(bits - at)) };
            let signed = matches!(ty, Ty::S32 | Ty::S64);
            let top = (at + length).saturating_sub(1).min(bits - 1);
            let sign = signed && length > 0 && a.undefined >> top & 1 != 0;
            field | if sign { all & !width(length) } else { 0 }
        }
        Op::Bfi if c.undefined == 0 && sources.get(3).is_some_and(|length| length.undefined == 0) => {
            let (at, length) = ((c.bits & 0xff) as u32, sources.get(3).map_or(0, |l| l.bits & 0xff) as u32);
            let mask = if at >= bits { 0 } else { width(length) << at & all };
            b.undefined & !mask | if at >= bits { 0 } else { a.undefined << at & mask }
        }
        // Bytes move as they are, and a byte of signs is undefined where its sign is.
        Op::Prmt if c.undefined == 0 => {
            let [a, b, c] = [a.undefined as u32, b.undefined as u32, c.bits as u32];
            u64::from(match inst.mods.prmt_mode() {
                PrmtMode::Index => ptx_sem::prmt_b32(a, b, c),
                PrmtMode::F4e => ptx_sem::prmt_f4e_b32(a, b, c),
                PrmtMode::B4e => ptx_sem::prmt_b4e_b32(a, b, c),
                PrmtMode::Rc8 => ptx_sem::prmt_rc8_b32(a, b, c),
                PrmtMode::Ecl => ptx_sem::prmt_ecl_b32(a, b, c),
                PrmtMode::Ecr => ptx_sem::prmt_ecr_b32(a, b, c),
                PrmtMode::Rc16 => ptx_sem::prmt_rc16_b32(a, b, c),
            })
        }
        Op::Slct if c.undefined & width(32) == 0 => {
            // The type of c is a literal word of the syntax.
            let integer = inst.mods.has(Word::Ty(Ty::S32)) || inst.mods.ty_in(Slot::Type) == Some(Ty::S32);
            let first = if !integer { f32::from_bits(c.bits as u32) >= 0.0 } else { c.bits as i32 >= 0 };
            (if first { a.undefined } else { b.undefined }) & all
        }
        Op::Cvt if packed(inst.mods.ty_in(Slot::Dtype).unwrap_or(ty)) && inst.srcs.len() == 2 => {
            let half = |value: Value| if value.undefined & width(32) != 0 { 0xffff } else { 0 };
            half(a) << 16 | half(b)
        }
        Op::Brev => (a.undefined & all).reverse_bits() >> (64 - bits),
        Op::Selp if c.undefined & 1 != 0 => (a.undefined | b.undefined | (a.bits ^ b.bits)) & all,
        Op::Selp => (if c.bits & 1 != 0 { a.undefined } else { b.undefined }) & all,
        Op::Cvt => convert(inst, a, bits),
        Op::Cvta | Op::CvtaTo => a.undefined & all,
        Op::Setp | Op::Set if sources.len() >= 2 => {
            // With a third source, a predicate, that decides alone.
            let decides = sources.len() == 3
                && c.undefined & 1 == 0
                && match c.bits & 1 {
                    0 => inst.mods.bool_op() == Some(BoolOp::And),
                    _ => inst.mods.bool_op() == Some(BoolOp::Or),
                };
            if decides {
                return 0;
            }
            let third = sources.len() == 3 && c.undefined & 1 != 0;
            let (a, b) = (a.known(ty.bits().max(1)), b.known(ty.bits().max(1)));
            let differ = (a.bits ^ b.bits) & !a.undefined & !b.undefined != 0;
            let equality = matches!(inst.mods.cmp(), Some(Cmp::Eq | Cmp::Ne)) && !ty.is_float();
            if !third && (a.undefined | b.undefined == 0 || equality && differ) { 0 } else { all }
        }
        // The halves do not touch each other.
        Op::Add | Op::Sub | Op::Mul | Op::Fma | Op::Min | Op::Max | Op::Neg | Op::Abs if packed(ty) => {
            let any = sources.iter().fold(0, |any, source| any | source.undefined);
            (if any & 0xffff != 0 { 0xffff } else { 0 })
                | if any >> 16 & 0xffff != 0 { 0xffff_0000 } else { 0 }
        }
        _ => all,
    }
}

fn packed(ty: Ty) -> bool {
    matches!(ty, Ty::F16x2 | Ty::Bf16x2 | Ty::U16x2 | Ty::S16x2)
}

/// All bits from the lowest one on.
fn smear(undefined: u64) -> u64 {
    undefined | undefined.wrapping_neg()
}

/// A bit of the result is undefined where the truth table has different values for what the undefined source
/// bits may be.
fn lop3(a: Value, b: Value, c: Value, table: u8) -> u64 {
    let term = |i: u8, flip: u8| {
        let pick = |value: Value, bit: u8| {
            let flipped = value.bits ^ if flip & bit != 0 { value.undefined } else { 0 };
            if i & bit != 0 { flipped } else { !flipped }
        };
        pick(a, 4) & pick(b, 2) & pick(c, 1)
    };
    let value = |flip: u8| (0..8).filter(|i| table >> i & 1 != 0).fold(0, |out, i| out | term(i, flip));
    let plain = value(0);
    (1..8).fold(0, |different, flip| different | plain ^ value(flip))
}

/// `cvt` between integers keeps bits apart; every other conversion needs them all.
fn convert(inst: &Inst, a: Value, bits: u32) -> u64 {
    let ty = |slots: [Slot; 2]| slots.into_iter().find_map(|slot| inst.mods.ty_in(slot));
    let plain = inst.mods.ty_in(Slot::Type).unwrap_or(Ty::B32);
    let to = inst.mods.ty_in(Slot::Dtype).unwrap_or(plain);
    let from = ty([Slot::Atype, Slot::Stype]).unwrap_or(plain);
    let a = a.known(from.bits().max(1));
    if a.undefined == 0 {
        return 0;
    }
    let sat = inst.mods.has(Word::Sat);
    if to.is_float() || from.is_float() || sat {
        return width(bits);
    }
    let top = from.bits().max(1) - 1;
    let signed = matches!(from, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64);
    let extended =
        if signed && a.undefined >> top & 1 != 0 { a.undefined | !width(top + 1) } else { a.undefined };
    let kept = extended & width(to.bits().max(1));
    // A narrower type in a wider register is extended by its own sign.
    let own = to.bits().max(1) - 1;
    let signed_to = matches!(to, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64);
    let out = if signed_to && kept >> own & 1 != 0 { kept | !width(own + 1) } else { kept };
    out & width(bits)
}
