//! Choices between values that were computed on several ways and are equal all the same.
//!
//! Compilers make a value anew on each way to where ways meet: the thread number as 64 bits in front of a loop that copies a tile, and again
//! for who does not enter it. Where lanes part in between, what comes out is a choice, lane by lane, of which nobody knows that it chooses
//! nothing, and addresses made of it would be gathers. So values are numbered: what is made by the same instruction of the same values has
//! the same number, and a select between two of one number is either of them.
//!
//! Invariant: names of one number have one value in every lane that somebody may see, whenever they are read. That holds of what is made
//! outside all loops, of special registers that never change, and of what follows from these alone; nothing else is numbered. What a
//! barrier keeps it gives back. A captured register where nobody waits is anything, so it goes with every value, and never stands for another.

use super::{Machine, Name, Op, OpKind, Plan, Term};
use crate::tuning::GVN_MAX_ROUNDS;
use ptx::ir::{Addr, Base, Function, Inst, Reg, Src};
use ptx::isa::Sreg;
use std::collections::HashMap;

/// What is known of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Known {
    /// The first name with its number; `None`: nobody knows what it is, or it changes.
    number: Option<Name>,
    /// Whether it may be a captured register where nobody waits.
    loose: bool,
}

/// By instruction and numbers of operands: those with such, and their names.
type Table<'a> = HashMap<Vec<Name>, Vec<(&'a Inst, Name)>>;

struct Numbers<'a, M> {
    plan: &'a Plan,
    function: &'a Function,
    machine: &'a M,
    /// By block: whether it lies in a loop.
    looped: Vec<bool>,
    /// By barrier and register: what its stops keep.
    kept: HashMap<(u32, Reg), Vec<Name>>,
    /// By name; `None`: not known yet.
    known: Vec<Option<Known>>,
    changed: bool,
}

/// Replaces selects between equal values; whether there were any.
pub(super) fn unite(plan: &mut Plan, function: &Function, machine: &impl Machine) -> bool {
    let selects = |op: &Op| matches!(op.kind, OpKind::SelectMask | OpKind::SelectPred { .. });
    if !plan.nodes.iter().any(|node| node.ops.iter().any(selects)) {
        return false;
    }
    let mut numbers = Numbers {
        plan,
        function,
        machine,
        looped: looped(function),
        kept: kept(plan),
        known: vec![None; plan.kinds.len()],
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
    let mut stands: HashMap<Name, Name> = HashMap::new();
    for op in plan.nodes.iter().flat_map(|node| &node.ops).filter(|op| selects(op)) {
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
    let rename = |name: &mut Name| {
        while let Some(other) = stands.get(name) {
            *name = *other;
        }
    };
    for node in &mut plan.nodes {
        node.phis.iter_mut().for_each(|phi| phi.from.iter_mut().for_each(rename));
        node.ops.retain(|op| !(selects(op) && stands.contains_key(&op.defs[0])));
        node.ops.iter_mut().for_each(|op| op.for_each_use(&mut |name| rename(name)));
        node.term.for_each_use(&mut |name| rename(name));
    }
    !stands.is_empty()
}

impl<'a, M: Machine> Numbers<'a, M> {
    /// Looks at everything once.
    fn round(&mut self) {
        let plan = self.plan;
        for zero in &plan.zeros {
            let loose = plan.unset.contains(zero);
            self.set(*zero, Some(Known { number: Some(*zero), loose }));
        }
        let mut table = Table::new();
        for node in &plan.nodes {
            let looped = self.looped[node.block as usize];
            let own = |name: Name| Known { number: (!looped).then_some(name), loose: false };
            for phi in &node.phis {
                let known = self.chosen(&phi.from, own(phi.def));
                self.set(phi.def, known);
            }
            for op in &node.ops {
                for def in &op.defs {
                    let known = self.given(&mut table, op, own(*def), *def);
                    self.set(*def, known);
                }
            }
        }
    }

    /// What is known of what an operation gives; `own`: what if it is like nothing else.
    fn given(&self, table: &mut Table<'a>, op: &Op, own: Known, def: Name) -> Option<Known> {
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

    fn set(&mut self, name: Name, known: Option<Known>) {
        let old = &mut self.known[name.0 as usize];
        self.changed |= *old != known;
        *old = known;
    }

    /// What is known of a choice between these; `own`: what if they are several.
    fn chosen(&self, from: &[Name], own: Known) -> Option<Known> {
        let mut number: Option<Option<Name>> = None;
        let (mut several, mut loose) = (false, false);
        for name in from {
            if self.plan.unset.contains(name) {
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

    /// What is known of an instruction's result.
    fn made(
        &self,
        table: &mut Table<'a>,
        inst: &'a Inst,
        uses: &[Name],
        own: Known,
        def: Name,
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

    /// Whether an instruction gives the same whenever its registers hold the same.
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

/// By barrier and register: what its stops keep.
fn kept(plan: &Plan) -> HashMap<(u32, Reg), Vec<Name>> {
    let mut kept: HashMap<(u32, Reg), Vec<Name>> = HashMap::new();
    for node in &plan.nodes {
        if let Term::Exit(exit) = &node.term
            && let Some(resume) = exit.resume
        {
            for (reg, name) in &exit.regs {
                kept.entry((resume, *reg)).or_default().push(*name);
            }
        }
    }
    kept
}

/// By block: whether it lies in a loop. Blocks of a loop are contiguous.
fn looped(function: &Function) -> Vec<bool> {
    let mut looped = vec![false; function.blocks.len()];
    for (at, block) in function.blocks.iter().enumerate() {
        for to in block.term.successors() {
            if let Some(range) = looped.get_mut(to.0 as usize..=at) {
                range.fill(true);
            }
        }
    }
    looped
}
