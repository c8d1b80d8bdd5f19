//! Integer arithmetic, and the dispatch of the mnemonics that integers and floats share (PTX ISA §9.7.1,
//! §9.7.2).

use crate::target::Feature;
use ptx::isa::{Half, Slot, Ty, Word};

use super::query::Query;
use super::{Lower, Lowering, float, is_signed};
use crate::llvm::{IntPred, Value};

/// The type of twice the width.
fn wide(ty: Ty) -> Option<Ty> {
    Some(match ty {
        Ty::U16 => Ty::U32,
        Ty::S16 => Ty::S32,
        Ty::U32 => Ty::U64,
        Ty::S32 => Ty::S64,
        _ => return None,
    })
}

fn is_integer(ty: Ty) -> bool {
    matches!(ty, Ty::U16 | Ty::S16 | Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64)
}

/// `.sat` of `.s32` sums and differences.
fn saturating(q: &Query<'_>, ty: Ty) -> Option<bool> {
    let sat = q.has(Word::Sat);
    (!sat || ty == Ty::S32).then_some(sat)
}

pub(super) fn add(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty()?;
    if !is_integer(ty) {
        return float::add(q, ty);
    }
    let sat = saturating(q, ty)?;
    q.map(&[ty, ty], ty, move |l, v| if sat { l.add_sat(v[0], v[1]) } else { l.b.add(v[0], v[1]) })
}

pub(super) fn sub(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty()?;
    if !is_integer(ty) {
        return float::sub(q, ty);
    }
    let sat = saturating(q, ty)?;
    q.map(&[ty, ty], ty, move |l, v| {
        if sat { l.b.intrinsic("llvm.ssub.sat", &[v[0].ty()], v) } else { l.b.sub(v[0], v[1]) }
    })
}

pub(super) fn mul(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty()?;
    if !is_integer(ty) {
        return float::mul(q, ty);
    }
    match q.half()? {
        Half::Lo => q.map(&[ty, ty], ty, |l, v| l.b.mul(v[0], v[1])),
        Half::Hi => q.map(&[ty, ty], ty, move |l, v| l.mul_hi(v[0], v[1], is_signed(ty))),
        Half::Wide => q.map(&[ty, ty], wide(ty)?, move |l, v| l.mul_wide(v[0], v[1], is_signed(ty))),
    }
}

pub(super) fn mad(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty()?;
    if !is_integer(ty) {
        return float::mad(q, ty);
    }
    let half = q.half()?;
    let sat = half == Half::Hi && saturating(q, ty)?;
    match half {
        Half::Lo => q.map(&[ty, ty, ty], ty, |l, v| l.b.add(l.b.mul(v[0], v[1]), v[2])),
        Half::Hi => q.map(&[ty, ty, ty], ty, move |l, v| {
            let high = l.mul_hi(v[0], v[1], is_signed(ty));
            if sat { l.add_sat(high, v[2]) } else { l.b.add(high, v[2]) }
        }),
        Half::Wide => {
            let wide = wide(ty)?;
            q.map(&[ty, ty, wide], wide, move |l, v| l.b.add(l.mul_wide(v[0], v[1], is_signed(ty)), v[2]))
        }
    }
}

pub(super) fn mul24(q: &Query<'_>) -> Option<Lowering> {
    let (ty, half) = (q.ty()?, q.half()?);
    if !matches!(ty, Ty::U32 | Ty::S32) || half == Half::Wide {
        return None;
    }
    q.map(&[ty, ty], ty, move |l, v| l.mul24(v[0], v[1], is_signed(ty), half))
}

pub(super) fn mad24(q: &Query<'_>) -> Option<Lowering> {
    let (ty, half) = (q.ty()?, q.half()?);
    if !matches!(ty, Ty::U32 | Ty::S32) || half == Half::Wide {
        return None;
    }
    let sat = half == Half::Hi && saturating(q, ty)?;
    q.map(&[ty, ty, ty], ty, move |l, v| {
        let product = l.mul24(v[0], v[1], is_signed(ty), half);
        if sat { l.add_sat(product, v[2]) } else { l.b.add(product, v[2]) }
    })
}

pub(super) fn sad(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_integer(*ty))?;
    q.map(&[ty, ty, ty], ty, move |l, v| {
        let distance = l.distance(v[0], v[1], is_signed(ty));
        l.b.add(v[2], distance)
    })
}

pub(super) fn div(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty()?;
    if !is_integer(ty) {
        return float::div(q, ty);
    }
    q.map_operands(&[ty, ty], ty, move |l, v, srcs| {
        l.quotient_remainder(v[0], (v[1], srcs[1].known(ty.bits())), is_signed(ty)).0
    })
}

pub(super) fn rem(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty().filter(|ty| is_integer(*ty))?;
    q.map_operands(&[ty, ty], ty, move |l, v, srcs| {
        l.quotient_remainder(v[0], (v[1], srcs[1].known(ty.bits())), is_signed(ty)).1
    })
}

pub(super) fn abs(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty()?;
    if !is_integer(ty) {
        return float::abs(q, ty);
    }
    q.map(&[ty], ty, |l, v| {
        let wraps = l.b.const_int(l.b.int(1), 0);
        l.b.intrinsic("llvm.abs", &[v[0].ty()], &[v[0], wraps])
    })
}

pub(super) fn neg(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty()?;
    if !is_integer(ty) {
        return float::neg(q, ty);
    }
    q.map(&[ty], ty, |l, v| l.b.neg(v[0]))
}

pub(super) fn min(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty()?;
    if !is_integer(ty) {
        return float::min_max(q, ty, true);
    }
    let name = if is_signed(ty) { "llvm.smin" } else { "llvm.umin" };
    q.map(&[ty, ty], ty, move |l, v| l.b.intrinsic(name, &[v[0].ty()], v))
}

pub(super) fn max(q: &Query<'_>) -> Option<Lowering> {
    let ty = q.ty()?;
    if !is_integer(ty) {
        return float::min_max(q, ty, false);
    }
    let name = if is_signed(ty) { "llvm.smax" } else { "llvm.umax" };
    q.map(&[ty, ty], ty, move |l, v| l.b.intrinsic(name, &[v[0].ty()], v))
}

/// Whether each packed operand of a dot product is signed.
fn dot_types(q: &Query<'_>) -> Option<(bool, bool)> {
    let signed = |slot| match q.ty_in(slot)? {
        Ty::U32 => Some(false),
        Ty::S32 => Some(true),
        _ => None,
    };
    Some((signed(Slot::Atype)?, signed(Slot::Btype)?))
}

pub(super) fn dp4a(q: &Query<'_>) -> Option<Lowering> {
    let (a_signed, b_signed) = dot_types(q)?;
    q.map(&[Ty::B32; 3], Ty::B32, move |l, v| l.dot4(v[0], v[1], v[2], a_signed, b_signed))
}

pub(super) fn dp2a(q: &Query<'_>) -> Option<Lowering> {
    let (a_signed, b_signed) = dot_types(q)?;
    let first = match q.half()? {
        Half::Lo => 0,
        Half::Hi => 2,
        Half::Wide => return None,
    };
    q.map(&[Ty::B32; 3], Ty::B32, move |l, v| {
        (0..2).fold(v[2], |sum, i| {
            let a = l.element(v[0], i, 16, a_signed);
            let b = l.element(v[1], first + i, 8, b_signed);
            l.b.add(sum, l.b.mul(a, b))
        })
    })
}

/// What an extended-precision instruction does with the flag.
fn carry(q: &Query<'_>, reads: bool) -> bool {
    if reads {
        q.has(Word::Cc)
    } else {
        q.look(|_, word| word == Word::Cc);
        true
    }
}

fn is_carry_type(ty: Ty) -> bool {
    matches!(ty, Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64)
}

pub(super) fn add_carry(q: &Query<'_>) -> Option<Lowering> {
    let reads = q.inst.op == ptx::isa::Op::Addc;
    let writes = carry(q, reads);
    let ty = q.ty().filter(|ty| is_carry_type(*ty))?;
    let lowering = q.map(&[ty, ty], ty, move |l, v| l.carrying_add(v[0], v[1], reads, writes))?;
    Some(Lowering { reads_carry: reads, ..lowering })
}

pub(super) fn sub_carry(q: &Query<'_>) -> Option<Lowering> {
    let reads = q.inst.op == ptx::isa::Op::Subc;
    let writes = carry(q, reads);
    let ty = q.ty().filter(|ty| is_carry_type(*ty))?;
    let lowering = q.map(&[ty, ty], ty, move |l, v| l.borrowing_sub(v[0], v[1], reads, writes))?;
    Some(Lowering { reads_carry: reads, ..lowering })
}

pub(super) fn mad_carry(q: &Query<'_>) -> Option<Lowering> {
    let reads = q.inst.op == ptx::isa::Op::Madc;
    let writes = carry(q, reads);
    let ty = q.ty().filter(|ty| is_carry_type(*ty))?;
    let high = match q.half()? {
        Half::Lo => false,
        Half::Hi => true,
        Half::Wide => return None,
    };
    let lowering = q.map(&[ty, ty, ty], ty, move |l, v| {
        let product = if high { l.mul_hi(v[0], v[1], is_signed(ty)) } else { l.b.mul(v[0], v[1]) };
        l.carrying_add(product, v[2], reads, writes)
    })?;
    Some(Lowering { reads_carry: reads, ..lowering })
}

impl Lower<'_, '_> {
    /// Element `index`, of `bits` bits, of words, extended to 32 bits.
    pub(super) fn element(&self, word: Value, index: u32, bits: u32, signed: bool) -> Value {
        let b = self.b;
        let top = 32 - bits;
        let up = self.constant(word, u64::from(top - index * bits));
        let down = self.constant(word, u64::from(top));
        let high = b.shl(word, up);
        if signed { b.ashr(high, down) } else { b.lshr(high, down) }
    }

    fn add_sat(&self, a: Value, b: Value) -> Value {
        self.b.intrinsic("llvm.sadd.sat", &[a.ty()], &[a, b])
    }

    /// Both factors extended to twice their width.
    fn mul_wide(&self, a: Value, b: Value, signed: bool) -> Value {
        let wide = self.int(2 * a.ty().element_bits());
        let extend = |v| if signed { self.b.sext(v, wide) } else { self.b.zext(v, wide) };
        self.b.mul(extend(a), extend(b))
    }

    /// The high half of the product.
    pub(super) fn mul_hi(&self, a: Value, b: Value, signed: bool) -> Value {
        let bits = a.ty().element_bits();
        if bits == 64 && self.lanes > 1 {
            return self.mul_hi_64(a, b, signed);
        }
        let wide = self.mul_wide(a, b, signed);
        let high = self.b.lshr(wide, self.constant(wide, u64::from(bits)));
        self.b.trunc(high, a.ty())
    }

    /// The high half of 64-bit products in vectors, computed from four products of 32-bit halves.
    fn mul_hi_64(&self, x: Value, y: Value, signed: bool) -> Value {
        let b = self.b;
        let (mask, shift) = (self.constant(x, 0xffff_ffff), self.constant(x, 32));
        let low = |v| b.and(v, mask);
        let high = |v| b.lshr(v, shift);
        let (xl, xh, yl, yh) = (low(x), high(x), low(y), high(y));
        let (ll, lh, hl, hh) = (b.mul(xl, yl), b.mul(xl, yh), b.mul(xh, yl), b.mul(xh, yh));
        let middle = b.add(b.add(high(ll), low(lh)), low(hl));
        let sum = b.add(b.add(hh, high(lh)), b.add(high(hl), high(middle)));
        if !signed {
            return sum;
        }
        let sign = self.constant(x, 63);
        let correct_x = b.and(b.ashr(x, sign), y);
        let correct_y = b.and(b.ashr(y, sign), x);
        b.sub(b.sub(sum, correct_x), correct_y)
    }

    /// The low 32 bits, or those from bit 16 on, of the product of the low 24 bits.
    fn mul24(&self, x: Value, y: Value, signed: bool, half: Half) -> Value {
        let b = self.b;
        let cut = |v| {
            if signed {
                let eight = self.constant(v, 8);
                b.ashr(b.shl(v, eight), eight)
            } else {
                b.and(v, self.constant(v, 0xff_ffff))
            }
        };
        let (x, y) = (cut(x), cut(y));
        if half == Half::Lo {
            return b.mul(x, y);
        }
        let wide = self.mul_wide(x, y, signed);
        b.trunc(b.lshr(wide, self.constant(wide, 16)), x.ty())
    }

    /// The greater minus the lesser.
    pub(super) fn distance(&self, x: Value, y: Value, signed: bool) -> Value {
        let b = self.b;
        // LLVM 22 recognises the difference of maximum and minimum. For 64 unsigned bits with AVX2, it
        // subtracts in the wrong order if it knows that one operand is below 2^63 and the other is not.
        if !signed && x.ty().element_bits() == 64 {
            let excess = |a: Value, c: Value| b.intrinsic("llvm.usub.sat", &[a.ty()], &[a, c]);
            return b.or(excess(x, y), excess(y, x));
        }
        let (min, max) = if signed { ("llvm.smin", "llvm.smax") } else { ("llvm.umin", "llvm.umax") };
        let most = b.intrinsic(max, &[x.ty()], &[x, y]);
        let least = b.intrinsic(min, &[x.ty()], &[x, y]);
        b.sub(most, least)
    }

    /// The sum of `c` and the products of four bytes.
    pub(super) fn dot4(&self, x: Value, y: Value, c: Value, x_signed: bool, y_signed: bool) -> Value {
        let name = match self.lanes {
            16 if self.env.target.has(Feature::Avx512Vnni) => "llvm.x86.avx512.vpdpbusd.512",
            8 if self.env.target.has(Feature::Avx512Vnni) => "llvm.x86.avx512.vpdpbusd.256",
            4 if self.env.target.has(Feature::Avx512Vnni) => "llvm.x86.avx512.vpdpbusd.128",
            _ => {
                return (0..4).fold(c, |sum, i| {
                    let p = self.element(x, i, 8, x_signed);
                    let q = self.element(y, i, 8, y_signed);
                    self.b.add(sum, self.b.mul(p, q))
                });
            }
        };
        let b = self.b;
        // The instruction multiplies unsigned with signed bytes. A byte of the other kind is off by 128,
        // which a second dot product corrects.
        let bytes = b.vec(b.int(8), 4 * self.lanes);
        let dot = |sum: Value, unsigned: Value, signed: Value| {
            b.dot(name, sum, b.bitcast(unsigned, bytes), b.bitcast(signed, bytes))
        };
        let offset = self.constant(x, 0x8080_8080);
        match (x_signed, y_signed) {
            (false, true) => dot(c, x, y),
            (true, false) => dot(c, y, x),
            // y = (y ^ 128) + 128, and 128 as a signed byte is -128.
            (false, false) => {
                let near = dot(c, x, b.xor(y, offset));
                b.sub(near, dot(b.zero(c.ty()), x, offset))
            }
            // x = (x ^ 128) - 128.
            (true, true) => {
                let near = dot(c, b.xor(x, offset), y);
                b.sub(near, dot(b.zero(c.ty()), offset, y))
            }
        }
    }

    fn carrying_add(&mut self, x: Value, y: Value, reads: bool, writes: bool) -> Value {
        let b = self.b;
        let sum = b.add(x, y);
        let mut carry = b.icmp(IntPred::Ult, sum, x);
        let mut result = sum;
        if reads {
            let flag = b.zext(self.flag(), x.ty());
            result = b.add(sum, flag);
            carry = b.or(carry, b.icmp(IntPred::Ult, result, sum));
        }
        if writes {
            self.carry_out = Some(carry);
        }
        result
    }

    /// The flag is the carry of a + ~b + 1: clear if there is a borrow.
    fn borrowing_sub(&mut self, x: Value, y: Value, reads: bool, writes: bool) -> Value {
        let b = self.b;
        let difference = b.sub(x, y);
        let mut borrow = b.icmp(IntPred::Ult, x, y);
        let mut result = difference;
        if reads {
            let owed = b.zext(b.not(self.flag()), x.ty());
            result = b.sub(difference, owed);
            borrow = b.or(borrow, b.icmp(IntPred::Ult, difference, owed));
        }
        if writes {
            self.carry_out = Some(b.not(borrow));
        }
        result
    }

    /// The incoming carry flag; clear if there is none.
    fn flag(&self) -> Value {
        self.carry_in.unwrap_or_else(|| self.b.zero(self.int(1)))
    }
}
