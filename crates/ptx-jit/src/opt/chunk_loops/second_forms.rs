//! Values that code generation holds in another form beside their vectors: as a base plus a scaled index, or
//! as two words.
//!
//! Code that reads such a value usually needs the other form alone, and LLVM removes the vectors. Code of a
//! chunk loop has the vectors only.
//!
//! Invariant: operations are noted in the order in which they are emitted. What is wrong here costs time and
//! nothing else, since the vectors exist in any case.

use crate::analysis::Analyses;
use crate::analysis::expr::{Arith, Expr};
use crate::mem::plan::Planner;
use crate::target::Level;
use crate::wir::{Kind, Op, OpKind, Shape, Value};
use ptx::ir::{Inst, RegClass, Src};
use ptx::isa::{Op as O, Ty};
use std::collections::{HashMap, HashSet};

/// How the words of a 64-bit value are known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    /// Both are.
    Both,
    /// It is a value with known words, shifted to the right.
    Shifted,
}

/// The values with a second form.
#[derive(Default)]
pub(super) struct SecondForms {
    scaled: HashSet<Value>,
    words: HashMap<Value, Words>,
}

impl SecondForms {
    /// Whether a value has a second form.
    pub(super) fn has(&self, name: Value) -> bool {
        self.scaled.contains(&name) || self.words.contains_key(&name)
    }

    /// Notes the results of an operation.
    pub(super) fn note(&mut self, planner: Planner<'_>, analyses: &Analyses, op: &Op) {
        let (OpKind::Inst(site), [def]) = (&op.kind, op.defs.as_slice()) else { return };
        let Some(inst) = site.inst(planner.function) else { return };
        if analyses.addresses.scaled(*def).is_some() {
            self.scaled.insert(*def);
        }
        let func = planner.func;
        let wide = func.kinds[def.0 as usize] == Kind::Reg(RegClass::R64);
        let varying = |name: Value| func.shapes[name.0 as usize] == Shape::Varying;
        let words = planner.target.level() != Level::Baseline && inst.guard.is_none();
        if words
            && wide
            && varying(*def)
            && let Some(words) = self.words_of(inst, op, varying)
        {
            self.words.insert(*def, words);
        }
    }

    /// How the words of an instruction's 64-bit result are known, if they are.
    fn words_of(&self, inst: &Inst, op: &Op, varying: impl Fn(Value) -> bool) -> Option<Words> {
        let both = |name: &Value| self.words.get(name) == Some(&Words::Both);
        let known = |is: bool, words: Words| is.then_some(words);
        match inst.op {
            O::Ld | O::LdNc | O::Ldu => {
                let ty = inst.mods.ty();
                return known(inst.mods.vec() == 1 && ty.bits() <= 32 && !ty.is_signed(), Words::Both);
            }
            O::MovPack => {
                let two = matches!(inst.srcs.as_slice(), [Src::Reg(low), Src::Reg(high)]
                    if [low.class, high.class] == [RegClass::R32; 2]);
                return known(two && op.uses.len() == 3, Words::Both);
            }
            _ => {}
        }
        let Expr { arith, ty } = Expr::of(inst)?;
        match (arith, inst.srcs.as_slice(), op.uses.as_slice()) {
            (Arith::Convert(Ty::U64 | Ty::S64), ..) => known(ty == Ty::U32, Words::Both),
            (Arith::Shl, [Src::Reg(_), Src::Imm(32)], [_, from]) => {
                known(both(from) || varying(*from), Words::Both)
            }
            (Arith::Or, _, [_, a, b]) => known(both(a) && both(b), Words::Both),
            (Arith::Shr, _, [_, from, ..]) => {
                known(matches!(ty, Ty::U64 | Ty::B64) && both(from), Words::Shifted)
            }
            _ => None,
        }
    }
}
