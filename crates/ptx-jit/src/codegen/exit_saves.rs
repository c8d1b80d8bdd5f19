//! Code that saves registers, shared by the side exits of a function.
//!
//! A function with hundreds of side exits and as many live registers would mostly consist of stores, since
//! each exit stores all registers that are live there, and neighbouring exits store nearly the same ones. In
//! such a function the stores are in blocks of their own. Each block continues with another one, which an
//! earlier exit needed, and the last of such a chain returns. An exit stores what no chain stores, and then
//! branches to a chain whose values are all available at the exit, although some may be dead.
//!
//! Invariant: each value that a chain stores is available at each exit that branches to it. So it is
//! available in the chain: its definition dominates the exits, and therefore their nearest common dominator.

use super::Codegen;
use super::emitted_values::ReprId;
use super::state_map::Room;
use crate::frame::Frame;
use crate::llvm::{Block, Value};
use crate::tuning::{EXIT_SAVES_PER_BLOCK, EXIT_SAVES_REMEMBERED, EXIT_SAVES_SHARED_MIN};
use crate::wir;
use crate::wir::{Exit, Func, OpKind, Term};
use ptx::ir::{Reg, RegClass};
use ptx_exec::native::{Held, SavedReg};
use std::collections::BTreeMap;
use std::mem::offset_of;

/// What is saved: a value, in the form of registers of a class.
type Key = (wir::Value, RegClass);

/// A block that saves some values and continues with an earlier block, or returns.
struct SaveBlock {
    block: Block,
    /// The phi of what native code returns.
    stop: Value,
    /// What the block saves, the representation that it stores, and where it is.
    saved: Vec<(Key, ReprId, SavedReg)>,
    /// The block that it continues with.
    next: Option<usize>,
    /// The part of the hand-over area that it and the blocks behind it use.
    room: Room,
}

/// The blocks that side exits share.
#[derive(Default)]
pub(super) struct ExitSaves {
    /// Whether the side exits of the function share blocks.
    shared: bool,
    blocks: Vec<SaveBlock>,
}

impl ExitSaves {
    /// Of a function.
    pub(super) fn of(func: &Func) -> Self {
        let count = |exit: &Exit| exit.regs.len() + exit.parked.iter().map(|p| p.regs.len()).sum::<usize>();
        let of_op = |op: &wir::Op| match &op.kind {
            OpKind::Spare(_, exit) | OpKind::Guard(_, _, exit) | OpKind::Ahead(exit) => count(exit),
            _ => 0,
        };
        let of_block = |block: &wir::Block| {
            let end = if let Term::Exit(exit) = &block.term { count(exit) } else { 0 };
            end + block.ops.iter().map(of_op).sum::<usize>()
        };
        let saves: usize = func.blocks.iter().map(of_block).sum();
        Self { shared: saves >= EXIT_SAVES_SHARED_MIN, blocks: Vec::new() }
    }
}

impl Codegen<'_> {
    /// Whether the side exit at this position shares blocks with others.
    pub(super) fn shares_saves(&self) -> bool {
        // In a full copy varying registers are stored in the frame. The versions of a block and the code of a
        // section hold values in forms that are not available elsewhere.
        let position = &self.position;
        let once =
            position.versioned_block.is_none() && position.version.is_none() && position.prefix.is_none();
        self.flow.exit_saves.shared && !position.full && once && !self.in_section()
    }

    /// Saves registers at a side exit, and returns where they are, and the block to branch to with what
    /// native code returns ([`Codegen::finish_exit`]). `None` if there is nothing to store.
    pub(super) fn save_shared(
        &mut self,
        regs: &[(Reg, wir::Value)],
        to: &mut Room,
    ) -> (Vec<SavedReg>, Option<(Block, Value)>) {
        let here = self.b.current_block();
        let mut needed: BTreeMap<Key, Reg> = BTreeMap::new();
        for (reg, name) in regs {
            if !matches!(self.held(*reg, *name), Held::Constant(_)) {
                needed.insert((*name, reg.class), *reg);
            }
        }
        let mut chain = self.best_chain(&needed);
        let mut places: BTreeMap<Key, SavedReg> = BTreeMap::new();
        let blocks = &self.flow.exit_saves.blocks;
        let mut at = chain;
        while let Some(block) = at.map(|at| &blocks[at]) {
            places.extend(block.saved.iter().map(|(key, _, saved)| (*key, saved.clone())));
            at = block.next;
        }
        // What was computed long ago is needed the longest, so it comes last, where most exits share it.
        let missing: Vec<(Key, Reg)> =
            needed.into_iter().filter(|(key, _)| !places.contains_key(key)).collect();
        for part in missing.chunks(EXIT_SAVES_PER_BLOCK) {
            let block = self.save_block(part, chain);
            places.extend(block.saved.iter().map(|(key, _, saved)| (*key, saved.clone())));
            let blocks = &mut self.flow.exit_saves.blocks;
            blocks.push(block);
            chain = Some(blocks.len() - 1);
        }
        self.b.position_at_end(here);
        let last = chain.map(|chain| &self.flow.exit_saves.blocks[chain]);
        let saves = last.map(|last| (last.block, last.stop));
        if let Some(last) = last {
            *to = last.room.clone();
        }
        let kept = regs.iter().map(|(reg, name)| match places.get(&(*name, reg.class)) {
            Some(saved) => SavedReg { reg: *reg, ..saved.clone() },
            None => to.keep(*reg, self.held(*reg, *name)),
        });
        (kept.collect(), saves)
    }

    /// The chain of blocks that saves the most of some values, begins with a recent block, and saves no more
    /// other values than these.
    fn best_chain(&self, needed: &BTreeMap<Key, Reg>) -> Option<usize> {
        let blocks = &self.flow.exit_saves.blocks;
        let first = blocks.len().saturating_sub(EXIT_SAVES_REMEMBERED);
        // For each chain whose values are available, how many of them are needed, and how many are not.
        let mut counts: Vec<Option<(usize, usize)>> = Vec::new();
        let count = |block: &SaveBlock, counts: &[Option<(usize, usize)>]| {
            let (mut used, mut unused) = match block.next {
                Some(next) => counts[next.checked_sub(first)?]?,
                None => (0, 0),
            };
            for ((name, class), id, _) in &block.saved {
                if self.values.id(*name) != Some(*id) {
                    return None;
                }
                if needed.contains_key(&(*name, *class)) {
                    used += 1;
                } else if self.is_available(*name) {
                    unused += 1;
                } else {
                    return None;
                }
            }
            Some((used, unused))
        };
        for block in &blocks[first..] {
            counts.push(count(block, &counts));
        }
        let usable = (first..).zip(&counts).filter_map(|(at, count)| Some((at, (*count)?)));
        let best = usable.filter(|(_, (used, unused))| unused <= used).max_by_key(|(_, (used, _))| *used);
        best.map(|(at, _)| at)
    }

    /// Whether a value that is emitted is available in the current block.
    fn is_available(&self, name: wir::Value) -> bool {
        let (def, here) = (self.facts.analyses.def_use.def(name), self.position.node);
        def.zip(here).is_some_and(|(def, here)| self.facts.analyses.dominators.dominates(def.block(), here))
    }

    /// A new block that saves some values and continues with a chain.
    fn save_block(&mut self, part: &[(Key, Reg)], next: Option<usize>) -> SaveBlock {
        let block = self.b.append_block(self.function, "save");
        self.b.position_at_end(block);
        let stop = self.b.phi(self.int(64));
        let area = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, room)), 8);
        let behind = next.map(|next| &self.flow.exit_saves.blocks[next]);
        let mut room = behind.map(|behind| behind.room.clone()).unwrap_or_default();
        let behind = behind.map(|behind| (behind.block, behind.stop));
        let mut saved = Vec::new();
        for ((name, class), reg) in part {
            let kept = self.state_map_of(*reg, *name, &mut room, area);
            let id = self.values.id(*name).expect("ptxvm bug: a value is saved before it is made");
            saved.push(((*name, *class), id, kept));
        }
        self.finish_exit(stop, behind);
        SaveBlock { block, stop, saved, next, room }
    }

    /// Returns from native code, through the blocks that save registers.
    pub(super) fn finish_exit(&self, stop: Value, saves: Option<(Block, Value)>) {
        match saves {
            Some((block, phi)) => {
                self.b.add_incoming(phi, stop, self.b.current_block());
                self.b.br(block);
            }
            None => self.b.ret(Some(stop)),
        }
    }
}
