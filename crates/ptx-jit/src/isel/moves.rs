//! Moves of values, and packing and unpacking of vectors (PTX ISA §9.7.8.2, §9.7.8.3).

use ptx::ir::{Dst, Src};
use ptx::isa::{Ty, Word};

use super::compare::untyped;
use super::query::Query;
use super::{Lower, Lowering, Operand};

pub(super) fn mov(q: &Query<'_>) -> Option<Lowering> {
    if q.ty()? == Ty::B128 {
        return copies(q, 2, Ty::B64);
    }
    let ty = untyped(q.ty()?)?;
    if let Src::Sreg(register, _) = q.src(0)?
        && register.is_clock()
    {
        // Reading a clock is emitted where the warp's counts are known.
        return None;
    }
    let lowering = q.map(&[ty], ty, |_, v| v[0])?;
    Some(Lowering { copied_srcs: 1, ..lowering })
}

/// The width of an element of a packed or unpacked word, if it has that many elements.
fn element(ty: Ty, count: usize) -> Option<u32> {
    let bits = ty.bits().checked_div(u32::try_from(count).ok()?)?;
    (matches!(bits, 8 | 16 | 32) && matches!(ty.bits(), 16 | 32 | 64)).then_some(bits)
}

pub(super) fn pack(q: &Query<'_>) -> Option<Lowering> {
    if q.ty()? == Ty::B128 {
        return copies(q, 2, Ty::B64);
    }
    let ty = untyped(q.ty()?)?;
    let count = q.inst.srcs.len();
    let bits = element(ty, count)?;
    for i in 0..count {
        q.readable(i, ty)?;
    }
    let dst = any_register(q, 0, ty)?;
    let emit = move |l: &mut Lower<'_, '_>, srcs: &[Operand]| {
        let b = l.b;
        let (whole, part) = (l.int(ty.bits()), l.int(bits));
        let mut packed = b.zero(whole);
        for (i, operand) in srcs.iter().enumerate().take(count) {
            let element = match operand {
                Operand::Value(value, _) => l.resized(*value, part),
                Operand::Imm(imm) => b.const_int(part, *imm),
                Operand::Absent => b.zero(part),
            };
            let element = b.zext(element, whole);
            let at = b.shl(element, b.const_int(whole, u64::from(bits) * i as u64));
            packed = if i == 0 { at } else { b.or(packed, at) };
        }
        vec![l.write_low(packed, dst)]
    };
    Some(Lowering::new(Box::new(emit)))
}

pub(super) fn unpack(q: &Query<'_>) -> Option<Lowering> {
    if q.ty()? == Ty::B128 {
        return copies(q, 2, Ty::B64);
    }
    let ty = untyped(q.ty()?)?;
    let count = q.inst.dsts.len();
    let bits = element(ty, count)?;
    q.readable(0, ty)?;
    let dsts = (0..count).map(|i| any_register(q, i, ty)).collect::<Option<Vec<_>>>()?;
    let emit = move |l: &mut Lower<'_, '_>, srcs: &[Operand]| {
        let b = l.b;
        let whole = l.read(srcs[0], ty);
        let element = |(i, dst): (usize, &Dst)| {
            let shifted = b.lshr(whole, l.constant(whole, u64::from(bits) * i as u64));
            l.write_low(l.resized(shifted, l.int(bits)), *dst)
        };
        dsts.iter().enumerate().map(element).collect()
    };
    Some(Lowering::new(Box::new(emit)))
}

pub(super) fn vector(q: &Query<'_>) -> Option<Lowering> {
    let ty = untyped(q.ty()?).filter(|ty| *ty != Ty::Pred)?;
    q.look(|_, word| matches!(word, Word::V2 | Word::V4));
    copies(q, usize::from(q.inst.mods.vec()), ty)
}

/// Copies `count` registers.
fn copies(q: &Query<'_>, count: usize, ty: Ty) -> Option<Lowering> {
    if q.inst.dsts.len() != count || q.inst.srcs.len() != count {
        return None;
    }
    for i in 0..count {
        q.readable(i, ty)?;
    }
    let dsts = (0..count).map(|i| any_register(q, i, ty)).collect::<Option<Vec<_>>>()?;
    let emit = move |l: &mut Lower<'_, '_>, srcs: &[Operand]| {
        let wide = |operand: &Operand| match operand {
            Operand::Value(value, _) => *value,
            Operand::Imm(imm) => l.b.const_int(l.int(64), *imm),
            Operand::Absent => l.b.zero(l.int(64)),
        };
        dsts.iter().zip(srcs).map(|(dst, src)| l.write_low(wide(src), *dst)).collect()
    };
    Some(Lowering { copied_srcs: (1 << count) - 1, ..Lowering::new(Box::new(emit)) })
}

/// A destination of any width: it takes the low bits.
fn any_register(q: &Query<'_>, index: usize, ty: Ty) -> Option<Dst> {
    let dst = q.inst.dsts.get(index).copied()?;
    match dst {
        Dst::Reg(reg) => (reg.class != ptx::ir::RegClass::Pred).then_some(dst),
        // A discarded result may have any width; it gets that of the instruction.
        Dst::Sink => Some(match ty {
            Ty::B16 => Dst::Reg(ptx::ir::Reg { class: ptx::ir::RegClass::R16, index: 0 }),
            Ty::B64 => Dst::Reg(ptx::ir::Reg { class: ptx::ir::RegClass::R64, index: 0 }),
            _ => Dst::Reg(ptx::ir::Reg { class: ptx::ir::RegClass::R32, index: 0 }),
        }),
        Dst::Video { .. } => None,
    }
}

impl Lower<'_, '_> {
    /// A value for a register of any width: its low bits, or zero-extended.
    fn write_low(&self, value: crate::llvm::Value, dst: Dst) -> crate::llvm::Value {
        let bits = match dst {
            Dst::Reg(reg) | Dst::Video { reg, .. } => super::class_bits(reg.class),
            Dst::Sink => return value,
        };
        self.resized(value, self.int(bits))
    }
}
