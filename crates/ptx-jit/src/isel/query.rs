//! The interface through which a lowering reads an instruction: modifiers by question, operands by position.
//!
//! Invariant: as in the interpreter's binding, if a lowering leaves a modifier word or an operand unread, it
//! does not understand the instruction, and the instruction is not lowered.

use std::cell::Cell;

use ptx::ir::{Dst, Inst, RegClass, Src};
use ptx::isa::{Cmp, Half, Rnd, Slot, Ty, Word};

use super::{Env, Lower, Lowering, Operand, class_bits};
use crate::llvm::{Flush, Value};

/// The instruction that a lowering is chosen for, and the parts of it that have been read.
pub(super) struct Query<'a> {
    /// The instruction.
    pub(super) inst: &'a Inst,
    /// The environment that code is generated for.
    pub(super) env: &'a Env,
    words: Cell<u32>,
    srcs: Cell<u32>,
}

impl<'a> Query<'a> {
    pub(super) fn new(inst: &'a Inst, env: &'a Env) -> Self {
        Query { inst, env, words: Cell::new(0), srcs: Cell::new(0) }
    }

    /// Whether every modifier word and operand has been read.
    pub(super) fn finish(&self) -> bool {
        let words = self.inst.mods.all().len();
        let all_words = (0..words).all(|i| self.words.get() >> i & 1 != 0);
        let all_srcs = self
            .inst
            .srcs
            .iter()
            .enumerate()
            .all(|(i, src)| *src == Src::Absent || self.srcs.get() >> i & 1 != 0);
        all_words && all_srcs && self.inst.srcs.len() <= 32
    }

    /// Marks the words that `which` selects as read.
    pub(super) fn look(&self, which: impl Fn(Slot, Word) -> bool) {
        for (i, (slot, word)) in self.inst.mods.all().iter().enumerate() {
            if which(*slot, *word) {
                self.words.set(self.words.get() | 1 << i);
            }
        }
    }

    /// Whether the instruction has a literal word.
    pub(super) fn has(&self, word: Word) -> bool {
        self.look(|slot, w| slot == Slot::Flag && w == word);
        self.inst.mods.has(word)
    }

    /// The type in a slot.
    pub(super) fn ty_in(&self, slot: Slot) -> Option<Ty> {
        self.look(|s, word| s == slot && word.ty().is_some());
        self.inst.mods.ty_in(slot)
    }

    /// The type of the instruction.
    pub(super) fn ty(&self) -> Option<Ty> {
        self.ty_in(Slot::Type)
    }

    /// The rounding, if one is given.
    pub(super) fn rnd(&self) -> Option<Rnd> {
        self.look(|slot, word| matches!(slot, Slot::Rnd | Slot::Flag) && Rnd::from_word(word).is_some());
        self.inst.mods.rnd()
    }

    /// `.hi`, `.lo` or `.wide`.
    pub(super) fn half(&self) -> Option<Half> {
        self.look(|slot, w| {
            matches!(slot, Slot::Mode | Slot::Flag) && matches!(w, Word::Hi | Word::Lo | Word::Wide)
        });
        self.inst.mods.half()
    }

    /// The relation of a comparison.
    pub(super) fn cmp(&self) -> Option<Cmp> {
        self.look(|slot, w| slot == Slot::CmpOp && Cmp::from_word(w).is_some());
        self.inst.mods.cmp()
    }

    /// How `.ftz` of an instruction that computes in `.f32` is implemented; `None`: there is no lowering.
    pub(super) fn ftz(&self) -> Option<Ftz> {
        match (self.has(Word::Ftz), self.env.flush) {
            (true, Flush::Always) => Some(Ftz::ByMachine),
            (true, Flush::Never) => Some(Ftz::Explicit),
            (false, Flush::Never) => Some(Ftz::None),
            (false, Flush::Always) => None,
        }
    }

    /// Whether `.f64` arithmetic has a lowering: not while the processor flushes subnormals.
    pub(super) fn keeps_subnormals(&self) -> Option<()> {
        (self.env.flush == Flush::Never).then_some(())
    }

    /// Whether an optional source is present.
    pub(super) fn given(&self, index: usize) -> bool {
        self.inst.srcs.get(index).is_some_and(|src| *src != Src::Absent)
    }

    /// A source operand.
    pub(super) fn src(&self, index: usize) -> Option<&'a Src> {
        if index < 32 {
            self.srcs.set(self.srcs.get() | 1 << index);
        }
        self.inst.srcs.get(index)
    }

    /// Checks that a source can be read as a value of a type.
    pub(super) fn readable(&self, index: usize, ty: Ty) -> Option<()> {
        let pred = ty == Ty::Pred;
        match self.src(index)? {
            Src::Reg(reg) => (pred == (reg.class == RegClass::Pred)).then_some(()),
            Src::Not(_) => pred.then_some(()),
            Src::Imm(_) => Some(()),
            Src::Sreg(..) | Src::Addr(_) => (!pred).then_some(()),
            Src::Absent | Src::Video(_) => None,
        }
    }

    /// The destination, if it can take a value of that type.
    pub(super) fn dst(&self, index: usize, ty: Ty) -> Option<Dst> {
        let dst = self.inst.dsts.get(index).copied().unwrap_or(Dst::Sink);
        let fits = match dst {
            Dst::Reg(reg) => {
                (ty == Ty::Pred) == (reg.class == RegClass::Pred) && class_bits(reg.class) >= ty.bits()
            }
            Dst::Sink => true,
            Dst::Video { .. } => false,
        };
        fits.then_some(dst)
    }

    /// The lowering `d = f(sources)`: source `i` is read as `types[i]`, and the result has the type `ty`.
    pub(super) fn map(
        &self,
        types: &[Ty],
        ty: Ty,
        f: impl Fn(&mut Lower<'_, '_>, &[Value]) -> Value + Send + Sync + 'static,
    ) -> Option<Lowering> {
        self.map_operands(types, ty, move |l, v, _| f(l, v))
    }

    /// As [`Query::map`]; `f` also gets the operands as they were passed.
    pub(super) fn map_operands(
        &self,
        types: &[Ty],
        ty: Ty,
        f: impl Fn(&mut Lower<'_, '_>, &[Value], &[Operand]) -> Value + Send + Sync + 'static,
    ) -> Option<Lowering> {
        for (i, ty) in types.iter().enumerate() {
            self.readable(i, *ty)?;
        }
        let dst = self.dst(0, ty)?;
        if self.inst.dsts.len() > 1 {
            return None;
        }
        let types = types.to_vec();
        let not: Vec<bool> = self.inst.srcs.iter().map(|src| matches!(src, Src::Not(_))).collect();
        let emit = move |l: &mut Lower<'_, '_>, srcs: &[Operand]| {
            let mut values = Vec::with_capacity(types.len());
            for (i, ty) in types.iter().enumerate() {
                let value = l.read(srcs.get(i).copied().unwrap_or(Operand::Absent), *ty);
                values.push(if not[i] { l.b.not(value) } else { value });
            }
            let result = f(l, &values, srcs);
            vec![l.write(result, ty, dst)]
        };
        Some(Lowering::new(Box::new(emit)))
    }
}

/// How `.ftz` is implemented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ftz {
    /// Nothing is flushed.
    None,
    /// The processor flushes by itself.
    ByMachine,
    /// Instructions flush operands and results.
    Explicit,
}

impl Ftz {
    /// Flushes an operand or a result, if instructions must.
    pub(super) fn apply(self, l: &Lower<'_, '_>, number: Value) -> Value {
        if self == Ftz::Explicit { l.flushed(number) } else { number }
    }
}
