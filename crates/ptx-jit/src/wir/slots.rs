//! Barrier slots: what a warp keeps where it waits for its CTA, or where a coarse warp stops between two
//! iterations of a loop.
//!
//! Each resume point ([`Resume`](super::Resume)) has a slot for each register that lives across it. A stop
//! stores the slots ([`Exit::resume`](super::Exit::resume)), and [`OpKind::Restore`](super::OpKind::Restore)
//! reads one. Where slots lie in memory, and which stores are left out, is not decided here.
//!
//! Invariant: a register has at most one slot for each resume point. A register without a slot is restored as
//! an unknown value.

use super::{Exit, Func, Op, OpKind, Term, Value};
use ptx::ir::Reg;

impl Func {
    /// The index of a register's slot at a resume point.
    pub fn slot(&self, resume: u32, reg: Reg) -> Option<usize> {
        let kept = &self.resumes.get(resume as usize)?.kept;
        kept.iter().position(|(have, _)| *have == reg)
    }

    /// The value that a register has where a resume point's stop stores it.
    pub fn kept(&self, resume: u32, reg: Reg) -> Option<Value> {
        let at = self.slot(resume, reg)?;
        Some(self.resumes[resume as usize].kept[at].1)
    }

    /// The stops that a warp resumes behind: for each, its resume point.
    pub fn stops(&self) -> impl Iterator<Item = (u32, &Exit)> {
        self.blocks.iter().filter_map(|block| match &block.term {
            Term::Exit(exit) => Some((exit.resume?, &**exit)),
            Term::Goto(_) | Term::If { .. } | Term::Switch { .. } => None,
        })
    }

    /// Writes down again what follows from the blocks: the values that entries load
    /// ([`Entry::relies`](super::Entry::relies)) and that stops store
    /// ([`Resume::kept`](super::Resume::kept)). Every pass that replaces or removes values ends with this.
    pub(crate) fn record_slots(&mut self) {
        for block in &self.blocks {
            let Term::Exit(exit) = &block.term else { continue };
            let Some(resume) = exit.resume else { continue };
            self.resumes[resume as usize].kept.retain_mut(|(reg, value)| {
                let found = exit.regs.iter().find(|(have, _)| have == reg);
                found.is_some_and(|(_, stored)| {
                    *value = *stored;
                    true
                })
            });
        }
        for entry in &mut self.entries {
            let load = |op: &Op| match op.kind {
                OpKind::Load(reg) => Some((reg, op.defs[0])),
                _ => None,
            };
            entry.relies = self.blocks[entry.node.0 as usize].ops.iter().filter_map(load).collect();
        }
    }
}
