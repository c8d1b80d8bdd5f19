//! Value numbering: finds equal values on different paths, so that selects between them go away.
//!
//! Compilers compute a value again on each path to a join: for example, the 64-bit thread index before a loop
//! that copies a tile, and again on the path around the loop. After a divergent branch the join is a select,
//! lane by lane, and the analysis of shapes would not recognise that both operands are equal; accesses at
//! addresses computed from the result would become gathers. Value numbering gives the same number to results
//! of the same instruction on the same operands, and replaces a select between two values of one number with
//! either of them.
//!
//! Invariant: values of one number are equal in every lane whose value can be observed, whenever they are
//! read. Only these get a number: values computed outside of all loops, special registers that never change,
//! and values computed from these alone. A barrier returns the values that it saved. A register that was
//! saved for pending lanes, where there are none, is undefined: it matches any value, and never replaces
//! another. So does a conversion that is exact in active lanes only.

use crate::tuning::GVN_MAX_ROUNDS;
use crate::wir::loops::loops;
use crate::wir::{Effects, Func, GuardKind, Op, OpKind, Value};
use ptx::ir::{Addr, Base, Function, Inst, Reg, Src};
use ptx::isa::Sreg;
use std::collections::{HashMap, HashSet};

/// The facts about a value.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Known {
    /// The first value with the same number; `None` if it has no number, or may change.
    number: Option<Value>,
    /// Whether it may be a register saved for pending lanes where there are none, which is undefined.
    loose: bool,
}

/// For each list of operand numbers, the instructions on these operands, with their results.
type Table<'a> = HashMap<Vec<Value>, Vec<(&'a Inst, Value)>>;

struct Numbers<'a, M> {
    func: &'a Func,
    function: &'a Function,
    machine: &'a M,
    /// For each block, whether it is in a loop.
    looped: Vec<bool>,
    /// Results of conversions that are exact in active lanes only.
    in_active: HashSet<Value>,
    /// For each barrier and register, the values that exits save.
    kept: HashMap<(u32, Reg), Vec<Value>>,
    /// For each value; `None`: not visited yet.
    known: Vec<Option<Known>>,
    changed: bool,
}

/// Replaces selects between equal values; returns whether there were any.
pub(crate) fn unite(func: &mut Func, function: &Function, machine: &impl Effects) -> bool {
    let selects = |op: &Op| matches!(op.kind, OpKind::SelectMask | OpKind::SelectPred { .. });
    if !func.blocks.iter().any(|node| node.ops.iter().any(selects)) {
        return false;
    }
    let mut numbers = Numbers {
        func,
        function,
        machine,
        looped: looped(function),
        in_active: func.guarded(GuardKind::ExactInActive),
        kept: kept(func),
        known: vec![None; func.kinds.len()],
        changed: true,
    };
    let mut rounds = 0;
    while std::mem::take(&mut numbers.changed) {
        rounds += 1;
        if rounds > GVN_MAX_ROUNDS {
            return false;
        }
        numbers.round();
    }
    let known = numbers.known;
    let mut stands: HashMap<Value, Value> = HashMap::new();
    for op in func.blocks.iter().flat_map(|node| &node.ops).filter(|op| selects(op)) {
        let [a, b] = [op.uses[1], op.uses[2]];
        let (Some(first), Some(second)) = (known[a.0 as usize], known[b.0 as usize]) else { continue };
        if first.number.is_none() || first.number != second.number {
            continue;
        }
        match (first.loose, second.loose) {
            (false, _) => stands.insert(op.defs[0], a),
            (true, false) => stands.insert(op.defs[0], b),
            (true, true) => None,
        };
    }
    let rename = |name: &mut Value| {
        while let Some(other) = stands.get(name) {
            *name = *other;
        }
    };
    for node in &mut func.blocks {
        node.phis.iter_mut().for_each(|phi| phi.from.iter_mut().for_each(rename));
        node.ops.retain(|op| !(selects(op) && stands.contains_key(&op.defs[0])));
        node.ops.iter_mut().for_each(|op| op.for_each_use_mut(&mut |name| rename(name)));
        node.term.for_each_use_mut(&mut |name| rename(name));
    }
    func.record_slots();
    !stands.is_empty()
}

impl<'a, M: Effects> Numbers<'a, M> {
    /// One pass over all operations.
    fn round(&mut self) {
        let func = self.func;
        for zero in &func.zeros {
            let loose = func.undef.contains(zero);
            self.set(*zero, Some(Known { number: Some(*zero), loose }));
        }
        let mut table = Table::new();
        for node in &func.blocks {
            let looped = self.looped[node.block as usize];
            let own = |name: Value| Known { number: (!looped).then_some(name), loose: false };
            for phi in &node.phis {
                let known = self.chosen(&phi.from, own(phi.def));
                self.set(phi.def, known);
            }
            for op in &node.ops {
                for def in &op.defs {
                    let known = self.given(&mut table, op, own(*def), *def);
                    // Exact in the active lanes only, so it must not replace the same conversion elsewhere.
                    let in_active = self.in_active.contains(def);
                    let known = known.map(|known| Known { loose: known.loose || in_active, ..known });
                    self.set(*def, known);
                }
            }
        }
    }

    /// The facts about an operation's result; `own`: the answer if it equals no other value.
    fn given(&self, table: &mut Table<'a>, op: &Op, own: Known, def: Value) -> Option<Known> {
        match &op.kind {
            OpKind::SelectMask | OpKind::SelectPred { .. } => self.chosen(&op.uses[1..], own),
            OpKind::Restore(resume, reg) => {
                let kept = self.kept.get(&(*resume, *reg)).map_or(&[][..], Vec::as_slice);
                self.chosen(kept, own)
            }
            OpKind::Inst(site) if op.defs.len() == 1 => {
                match site.inst(self.function).filter(|inst| self.is_constant(inst)) {
                    Some(inst) => self.made(table, inst, &op.uses[1..], own, def),
                    None => Some(own),
                }
            }
            _ => Some(own),
        }
    }

    fn set(&mut self, name: Value, known: Option<Known>) {
        let old = &mut self.known[name.0 as usize];
        self.changed |= *old != known;
        *old = known;
    }

    /// The facts about a select or phi of these values; `own`: the answer if they differ.
    fn chosen(&self, from: &[Value], own: Known) -> Option<Known> {
        let mut number: Option<Option<Value>> = None;
        let (mut several, mut loose) = (false, false);
        for name in from {
            if self.func.undef.contains(name) {
                loose = true;
                continue;
            }
            let Some(known) = self.known[name.0 as usize] else { continue };
            loose |= known.loose;
            several |= known.number.is_none() || number.is_some_and(|other| other != known.number);
            number = Some(known.number);
        }
        match number {
            None => loose.then_some(Known { loose, ..own }),
            Some(_) if several => Some(Known { loose, ..own }),
            Some(number) => Some(Known { number, loose }),
        }
    }

    /// The facts about an instruction's result.
    fn made(
        &self,
        table: &mut Table<'a>,
        inst: &'a Inst,
        uses: &[Value],
        own: Known,
        def: Value,
    ) -> Option<Known> {
        let (mut numbers, mut loose) = (Vec::new(), false);
        for name in uses {
            let known = self.known[name.0 as usize]?;
            loose |= known.loose;
            match known.number {
                Some(number) => numbers.push(number),
                None => return Some(Known { loose, ..own }),
            }
        }
        let alike = table.entry(numbers).or_default();
        let same = |other: &Inst| {
            (other.op, other.row, other.mods) == (inst.op, inst.row, inst.mods) && other.srcs == inst.srcs
        };
        let number = match alike.iter().find(|(other, _)| same(other)) {
            Some((_, name)) => *name,
            None => {
                alike.push((inst, def));
                def
            }
        };
        Some(Known { number: Some(number), loose })
    }

    /// Whether an instruction gives equal results for equal registers, at any time.
    fn is_constant(&self, inst: &Inst) -> bool {
        let source = |src: &Src| match src {
            Src::Absent | Src::Reg(_) | Src::Not(_) | Src::Imm(_) | Src::Video(_) => true,
            Src::Sreg(sreg, _) => {
                matches!(sreg, Sreg::Tid | Sreg::Ntid | Sreg::Ctaid | Sreg::Nctaid | Sreg::Laneid)
            }
            Src::Addr(addr) => matches!(addr, Addr { base: Base::Var(_), index: None, .. }),
        };
        inst.guard.is_none() && self.machine.is_pure(inst) && inst.srcs.iter().all(source)
    }
}

/// For each barrier and register, the values that exits save.
fn kept(func: &Func) -> HashMap<(u32, Reg), Vec<Value>> {
    let mut kept: HashMap<(u32, Reg), Vec<Value>> = HashMap::new();
    for (resume, exit) in func.stops() {
        for (reg, name) in &exit.regs {
            kept.entry((resume, *reg)).or_default().push(*name);
        }
    }
    kept
}

/// For each block, whether it is in a loop.
fn looped(function: &Function) -> Vec<bool> {
    let mut looped = vec![false; function.blocks.len()];
    for all in loops(function) {
        looped[all.blocks()].fill(true);
    }
    looped
}
