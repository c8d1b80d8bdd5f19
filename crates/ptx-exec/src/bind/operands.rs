//! One instruction as its binding function sees it: operands by position, modifiers by query.
//!
//! Invariant: no part of the instruction is dropped silently. Every modifier word and every operand that a
//! binding function reads is marked, and [`Operands::finish`] refuses an instruction with an unmarked part.
//! Words without an effect on results (cache operators, `.uni`) are marked by an explicit call of
//! [`Operands::ignore`].

use super::{Binding, Missing};
use crate::bound::StepFn;
use crate::lanes::{LANES, Lane, LaneMask, Registers};
use crate::lift::{
    self, Address, One, Operand, PredOperand, PredTarget, Slot as RegSlot, Target, Three, Two, Value,
};
use crate::wide::Wide;
use ptx::check::module::AddressSize;
use ptx::ir::{Addr, Base, Dst, Inst, Reg, RegClass, Src};
use ptx::isa::{Mods, Rnd, Slot, Ty, Word};
use std::cell::Cell;

/// A bound step, or the error that the form is not bound.
pub(super) type Bound = Result<StepFn, Missing>;

/// The operands of two-operand instructions on values of these types.
type TwoOf<A, B, D> = Two<<A as Value>::Slot, <B as Value>::Slot, <D as Value>::Slot>;

/// The operands of three-operand instructions on values of these types.
type ThreeOf<A, B, C, D> =
    Three<<A as Value>::Slot, <B as Value>::Slot, <C as Value>::Slot, <D as Value>::Slot>;

/// The operands and modifiers of one instruction.
pub(super) struct Operands<'a> {
    /// The context of the binding.
    pub(super) binding: &'a Binding<'a>,
    /// The instruction.
    pub(super) inst: &'a Inst,
    /// The number of instructions after it in its block, including the terminator.
    pub(super) behind: u64,
    words: Cell<u32>,
    srcs: Cell<u32>,
    dsts: Cell<u32>,
}

fn mark(set: &Cell<u32>, index: usize) {
    set.set(set.get() | 1u32.checked_shl(index as u32).unwrap_or(0));
}

fn all_marked(set: &Cell<u32>, len: usize, optional: impl Fn(usize) -> bool) -> bool {
    (0..len).all(|i| optional(i) || i < 32 && set.get() >> i & 1 != 0)
}

impl<'a> Operands<'a> {
    /// The operands of an instruction, with nothing marked.
    pub(super) fn new(binding: &'a Binding<'a>, inst: &'a Inst) -> Self {
        Self::at(binding, inst, 0)
    }

    /// As [`Operands::new`], for an instruction with `behind` instructions after it in its block.
    pub(super) fn at(binding: &'a Binding<'a>, inst: &'a Inst, behind: u64) -> Self {
        Self { binding, inst, behind, words: Cell::new(0), srcs: Cell::new(0), dsts: Cell::new(0) }
    }

    /// Refuses an instruction with an unmarked word or operand.
    pub(super) fn finish(&self) -> Result<(), Missing> {
        let words = all_marked(&self.words, self.inst.mods.all().len(), |_| false);
        let srcs = all_marked(&self.srcs, self.inst.srcs.len(), |i| self.inst.srcs[i] == Src::Absent);
        let dsts = all_marked(&self.dsts, self.inst.dsts.len(), |i| self.inst.dsts[i] == Dst::Sink);
        if words && srcs && dsts { Ok(()) } else { Err(Missing) }
    }

    // Modifiers.

    /// The modifiers, for a query whose words [`Operands::look`] marks.
    pub(super) fn mods(&self) -> &'a Mods {
        &self.inst.mods
    }

    /// Marks the words for which `which` is true.
    pub(super) fn look(&self, which: impl Fn(Slot, Word) -> bool) {
        for (i, (slot, word)) in self.inst.mods.all().iter().enumerate() {
            if which(*slot, *word) {
                mark(&self.words, i);
            }
        }
    }

    /// Marks a slot whose words do not change results.
    pub(super) fn ignore(&self, ignored: Slot) {
        self.look(|slot, _| slot == ignored);
    }

    /// Marks a literal word that does not change results, or that the operation implies.
    pub(super) fn ignore_word(&self, ignored: Word) {
        self.look(|_, word| word == ignored);
    }

    /// Whether the instruction has the literal word; marks it.
    pub(super) fn has(&self, word: Word) -> bool {
        self.look(|slot, w| slot == Slot::Flag && w == word);
        self.mods().has(word)
    }

    /// The type in a slot.
    pub(super) fn ty_in(&self, slot: Slot) -> Option<Ty> {
        self.look(|s, word| s == slot && word.ty().is_some());
        self.mods().ty_in(slot)
    }

    /// The type of the instruction.
    pub(super) fn ty(&self) -> Result<Ty, Missing> {
        self.ty_in(Slot::Type).ok_or(Missing)
    }

    /// The rounding.
    pub(super) fn rnd(&self) -> Option<Rnd> {
        self.look(|slot, word| matches!(slot, Slot::Rnd | Slot::Flag) && Rnd::from_word(word).is_some());
        self.mods().rnd()
    }

    /// Runs a typed query about the words of `slot`, or literal words; marks the words for which `is` is
    /// true.
    pub(super) fn ask<T>(
        &self,
        slot: Slot,
        is: impl Fn(Word) -> bool,
        answer: impl Fn(&Mods) -> Option<T>,
    ) -> Result<T, Missing> {
        self.look(|s, word| (s == slot || s == Slot::Flag) && is(word));
        answer(self.mods()).ok_or(Missing)
    }

    // Operands.

    /// A source operand.
    pub(super) fn src_at(&self, index: usize) -> Result<&'a Src, Missing> {
        mark(&self.srcs, index);
        self.inst.srcs.get(index).ok_or(Missing)
    }

    /// Whether the optional source exists.
    pub(super) fn given(&self, index: usize) -> bool {
        self.inst.srcs.get(index).is_some_and(|src| *src != Src::Absent)
    }

    /// A destination operand; `Sink` if the text omits it.
    pub(super) fn dst_at(&self, index: usize) -> Dst {
        mark(&self.dsts, index);
        self.inst.dsts.get(index).copied().unwrap_or(Dst::Sink)
    }

    /// A source of type `V`.
    pub(super) fn src<V: Value>(&self, index: usize) -> Result<Operand<V::Slot>, Missing> {
        self.value::<V>(self.src_at(index)?)
    }

    /// A value of type `V` from any source operand.
    pub(super) fn value<V: Value>(&self, src: &Src) -> Result<Operand<V::Slot>, Missing> {
        match src {
            Src::Reg(reg) => read_reg(*reg),
            Src::Imm(bits) => Ok(Operand::splat(V::Slot::from_bits(*bits))),
            Src::Sreg(sreg, component) => super::sreg::read(*sreg, *component),
            Src::Addr(addr) => self.address_value(addr).map(narrow),
            Src::Absent | Src::Not(_) | Src::Video(_) => Err(Missing),
        }
    }

    /// A destination of type `V`; a register wider than the type is extended as in §9.4.1.
    pub(super) fn dst<V: Value>(&self, index: usize) -> Result<Target<V::Slot>, Missing> {
        match self.dst_at(index) {
            Dst::Reg(reg) => write_reg::<V>(reg),
            Dst::Sink => Ok(Target::Sink),
            Dst::Video { .. } => Err(Missing),
        }
    }

    /// A predicate source.
    pub(super) fn pred(&self, index: usize) -> Result<PredOperand, Missing> {
        match self.src_at(index)? {
            Src::Reg(reg) => pred_index(*reg).map(PredOperand::Reg),
            Src::Not(reg) => pred_index(*reg).map(PredOperand::Not),
            Src::Imm(bits) => Ok(PredOperand::Const(if *bits & 1 != 0 { LaneMask::MAX } else { 0 })),
            Src::Absent | Src::Sreg(..) | Src::Addr(_) | Src::Video(_) => Err(Missing),
        }
    }

    /// A predicate destination.
    pub(super) fn pred_dst(&self, index: usize) -> Result<PredTarget, Missing> {
        match self.dst_at(index) {
            Dst::Reg(reg) => pred_index(reg).map(|index| PredTarget(Some(index))),
            Dst::Sink => Ok(PredTarget(None)),
            Dst::Video { .. } => Err(Missing),
        }
    }

    /// The value of an address as a source: in the state space of its base.
    fn address_value(&self, addr: &Addr) -> Result<Operand<u64>, Missing> {
        if let Some(index) = addr.index {
            let base = self.address_value(&Addr { index: None, ..*addr })?;
            let index: Operand<u64> = read_reg(index)?;
            let wrap = if self.narrow_addresses() { u64::from(u32::MAX) } else { u64::MAX };
            return Ok(Operand::Other(Box::new(move |inputs, lanes| {
                let (base, index) = (base.get(inputs), index.get(inputs));
                for lane in 0..LANES {
                    lanes.0[lane] = base.0[lane].wrapping_add(index.0[lane]) & wrap;
                }
            })));
        }
        let offset = addr.offset as u64;
        let constant = |base: u64| Ok(Operand::splat(base.wrapping_add(offset)));
        match addr.base {
            Base::Absolute | Base::KernelParam => constant(0),
            Base::Var(var) => constant(self.binding.layout.variable(var)),
            Base::Func(func) => constant(self.binding.layout.function(func)),
            Base::Frame => Ok(Operand::Other(Box::new(move |inputs, lanes| {
                *lanes = Lane::splat(u64::from(inputs.frame).wrapping_add(offset));
            }))),
            Base::Reg(reg) => {
                let base: Operand<u64> = read_reg(reg)?;
                // Addresses wrap at the width of the register; a register wider than an address is truncated
                // (§6.4.1).
                let wide = reg.class == RegClass::R64 && !self.narrow_addresses();
                let wrap = if wide { u64::MAX } else { u64::from(u32::MAX) };
                Ok(Operand::Other(Box::new(move |inputs, lanes| {
                    let mut scratch = None;
                    let base = base.read(inputs, &mut scratch);
                    for lane in 0..LANES {
                        lanes.0[lane] = base.0[lane].wrapping_add(offset) & wrap;
                    }
                })))
            }
        }
    }

    /// Whether the module has 32-bit addresses.
    fn narrow_addresses(&self) -> bool {
        self.binding.program.address_size == AddressSize::Bits32
    }

    /// The address of a memory operand, in the instruction's space.
    pub(super) fn address(&self, index: usize) -> Result<Address, Missing> {
        match self.src_at(index)? {
            Src::Addr(addr @ Addr { base: Base::Reg(reg), .. })
                if reg.class == RegClass::R64 && self.narrow_addresses() =>
            {
                self.address_value(addr).map(Address::Value)
            }
            Src::Addr(Addr { base: Base::Reg(reg), offset: 0, .. }) | Src::Reg(reg) => {
                read_reg(*reg).map(Address::Value)
            }
            Src::Addr(Addr { base: Base::Reg(reg), offset, .. }) if reg.class == RegClass::R64 => {
                Ok(Address::Plus(reg.index as usize, *offset as u64))
            }
            Src::Addr(Addr { base: Base::Frame, index: None, offset }) => Ok(Address::Frame(*offset as u64)),
            Src::Addr(addr) => self.address_value(addr).map(Address::Value),
            Src::Absent | Src::Not(_) | Src::Imm(_) | Src::Sreg(..) | Src::Video(_) => Err(Missing),
        }
    }

    // Steps of common shapes: `d` is destination 0, the sources follow in order. Operands are resolved
    // outside of the generic steps, once for each choice of types.

    pub(super) fn one<A: Value, D: Value>(&self) -> Result<One<A::Slot, D::Slot>, Missing> {
        Ok(One { d: self.dst::<D>(0)?, a: self.src::<A>(0)? })
    }

    /// Two sources and a destination.
    pub(super) fn two<A: Value, B: Value, D: Value>(&self) -> Result<TwoOf<A, B, D>, Missing> {
        Ok(Two { d: self.dst::<D>(0)?, a: self.src::<A>(0)?, b: self.src::<B>(1)? })
    }

    /// Three sources and a destination.
    pub(super) fn three<A: Value, B: Value, C: Value, D: Value>(
        &self,
    ) -> Result<ThreeOf<A, B, C, D>, Missing> {
        Ok(Three { d: self.dst::<D>(0)?, a: self.src::<A>(0)?, b: self.src::<B>(1)?, c: self.src::<C>(2)? })
    }

    /// `d = f(a)`, all lanes.
    pub(super) fn lift1<A: Value, D: Value>(
        &self,
        f: impl Fn(A) -> D + Copy + Send + Sync + 'static,
    ) -> Bound {
        self.one::<A, D>().map(|operands| lift::lift1(operands, f))
    }

    /// `d = f(a, b)`, all lanes.
    pub(super) fn lift2<A: Value, B: Value, D: Value>(
        &self,
        f: impl Fn(A, B) -> D + Copy + Send + Sync + 'static,
    ) -> Bound {
        self.two::<A, B, D>().map(|operands| lift::lift2(operands, f))
    }

    /// `d = f(a, b, c)`, all lanes.
    pub(super) fn lift3<A: Value, B: Value, C: Value, D: Value>(
        &self,
        f: impl Fn(A, B, C) -> D + Copy + Send + Sync + 'static,
    ) -> Bound {
        self.three::<A, B, C, D>().map(|operands| lift::lift3(operands, f))
    }

    /// `d = f(a, b, c, e)`, all lanes.
    pub(super) fn lift4<A: Value, B: Value, C: Value, E: Value, D: Value>(
        &self,
        f: impl Fn(A, B, C, E) -> D + Copy + Send + Sync + 'static,
    ) -> Bound {
        let e = self.src::<E>(3)?;
        self.three::<A, B, C, D>().map(|operands| lift::lift4(operands, e, f))
    }

    /// `d = f(a)`, all lanes in the widest vectors of the host.
    pub(super) fn wide1<A: Value, D: Value>(
        &self,
        f: impl Fn(A) -> D + Copy + Send + Sync + 'static,
    ) -> Bound {
        let operands = self.one::<A, D>()?;
        Ok(match Wide::of_host() {
            Some(wide) => wide.lift1(operands, f),
            None => lift::lift1(operands, f),
        })
    }

    /// `d = f(a, b)`, all lanes in the widest vectors of the host.
    pub(super) fn wide2<A: Value, B: Value, D: Value>(
        &self,
        f: impl Fn(A, B) -> D + Copy + Send + Sync + 'static,
    ) -> Bound {
        let operands = self.two::<A, B, D>()?;
        Ok(match Wide::of_host() {
            Some(wide) => wide.lift2(operands, f),
            None => lift::lift2(operands, f),
        })
    }

    /// `d = f(a, b, c)`, all lanes in the widest vectors of the host.
    pub(super) fn wide3<A: Value, B: Value, C: Value, D: Value>(
        &self,
        f: impl Fn(A, B, C) -> D + Copy + Send + Sync + 'static,
    ) -> Bound {
        let operands = self.three::<A, B, C, D>()?;
        Ok(match Wide::of_host() {
            Some(wide) => wide.lift3(operands, f),
            None => lift::lift3(operands, f),
        })
    }

    /// `d = f(a)`, active lanes.
    pub(super) fn active1<A: Value, D: Value>(
        &self,
        f: impl Fn(A) -> D + Copy + Send + Sync + 'static,
    ) -> Bound {
        self.one::<A, D>().map(|operands| lift::active1(operands, f))
    }

    /// `d = f(a, b)`, active lanes.
    pub(super) fn active2<A: Value, B: Value, D: Value>(
        &self,
        f: impl Fn(A, B) -> D + Copy + Send + Sync + 'static,
    ) -> Bound {
        self.two::<A, B, D>().map(|operands| lift::active2(operands, f))
    }

    /// `d = f(a, b, c)`, active lanes.
    pub(super) fn active3<A: Value, B: Value, C: Value, D: Value>(
        &self,
        f: impl Fn(A, B, C) -> D + Copy + Send + Sync + 'static,
    ) -> Bound {
        self.three::<A, B, C, D>().map(|operands| lift::active3(operands, f))
    }
}

/// The index of a predicate register.
pub(super) fn pred_index(reg: Reg) -> Result<usize, Missing> {
    if reg.class == RegClass::Pred { Ok(reg.index as usize) } else { Err(Missing) }
}

/// A register read as a slot: truncated if it is wider, zero-extended if it is narrower (addresses).
pub(super) fn read_reg<S: RegSlot>(reg: Reg) -> Result<Operand<S>, Missing> {
    let index = reg.index as usize;
    match reg.class {
        RegClass::Pred => Err(Missing),
        class if class == S::CLASS => Ok(Operand::Reg(index)),
        RegClass::R16 => Ok(convert::<u16, S>(Operand::Reg(index))),
        RegClass::R32 => Ok(convert::<u32, S>(Operand::Reg(index))),
        RegClass::R64 => Ok(convert::<u64, S>(Operand::Reg(index))),
    }
}

fn convert<F: RegSlot, S: RegSlot>(from: Operand<F>) -> Operand<S> {
    Operand::Other(Box::new(move |inputs, lanes| {
        let mut scratch = None;
        let from = from.read(inputs, &mut scratch);
        for lane in 0..LANES {
            lanes.0[lane] = S::from_bits(from.0[lane].bits());
        }
    }))
}

/// The low bits of a 64-bit source.
pub(super) fn narrow<S: RegSlot>(from: Operand<u64>) -> Operand<S> {
    match from {
        Operand::Const(lanes) => Operand::Const(Box::new(Lane(lanes.0.map(S::from_bits)))),
        from @ (Operand::Reg(_) | Operand::Other(_)) => convert(from),
    }
}

/// A register written with a value of type `V`, which is extended if the register is wider.
pub(super) fn write_reg<V: Value>(reg: Reg) -> Result<Target<V::Slot>, Missing> {
    let index = reg.index as usize;
    match reg.class {
        RegClass::Pred => Err(Missing),
        class if class == V::Slot::CLASS => Ok(Target::Reg(index)),
        class if class < V::Slot::CLASS => Err(Missing),
        RegClass::R16 => Err(Missing),
        RegClass::R32 => Ok(extend::<V, u32>(index)),
        RegClass::R64 => Ok(extend::<V, u64>(index)),
    }
}

fn extend<V: Value, S: RegSlot>(index: usize) -> Target<V::Slot> {
    Target::Other(Box::new(move |regs: &mut Registers, mask: LaneMask, new: &Lane<V::Slot>| {
        let new = Lane(new.0.map(|slot| S::from_bits(V::of(slot).extended())));
        S::file_mut(regs)[index].blend(mask, &new);
    }))
}

/// A register of any width that takes the low bits of a 64-bit value.
pub(super) fn write_low(reg: Reg) -> Result<Target<u64>, Missing> {
    let index = reg.index as usize;
    match reg.class {
        RegClass::Pred => Err(Missing),
        RegClass::R16 => Ok(cut::<u16>(index)),
        RegClass::R32 => Ok(cut::<u32>(index)),
        RegClass::R64 => Ok(Target::Reg(index)),
    }
}

fn cut<S: RegSlot>(index: usize) -> Target<u64> {
    Target::Other(Box::new(move |regs: &mut Registers, mask: LaneMask, new: &Lane<u64>| {
        S::file_mut(regs)[index].blend(mask, &Lane(new.0.map(S::from_bits)));
    }))
}
