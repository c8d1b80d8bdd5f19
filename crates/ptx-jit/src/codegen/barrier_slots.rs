//! Barrier slots: removes stores and loads of values that are already in the memory where a barrier saves
//! them.
//!
//! If a register has the same slot at all barriers, a value that is restored behind one barrier and not
//! changed is still in its slot at the next: it is neither stored again nor, unless it is read, loaded.
//!
//! A loop around a barrier is entered with values that are in no slot yet. Those are stored in front of the
//! loop, so that within the loop they are in their slots on every path.
//!
//! A coarse warp that keeps more values than there are registers does not carry them in registers either:
//! each reader loads the value from its slot, where the slot holds it on every path. So a coarse warp can be
//! as large as the CTA, however much its threads keep.
//!
//! Invariant: a store is left out only where the slot holds that very value: the same SSA value, or one that
//! equals it on every path. A slot changes only where an iteration ends or a loop is entered; other values
//! that share the slot are then overwritten.

use super::state_map::Room;
use super::{Codegen, Repr};
use crate::llvm::Value;
use crate::tuning::{BARRIER_SLOT_HOIST_ROUNDS, BARRIER_SLOT_MAX_FACTS};
use crate::wir;
use crate::wir::uses::{Def, DefUse};
use crate::wir::{BlockId, Func, OpKind, Shape, Term};
use ptx::ir::{Reg, RegClass};
use ptx_exec::native::{Held, SavedReg};
use std::collections::{HashMap, HashSet};

/// For each slot, the values that are in it.
type Contents = HashMap<usize, HashSet<wir::Value>>;
/// For each edge between blocks, the slots that are stored on it, with the values.
type Entered = HashMap<(BlockId, BlockId), Vec<(usize, wir::Value)>>;

/// The slots of all barriers, and which stores and loads can be left out.
#[derive(Default)]
pub(super) struct BarrierSlots {
    places: Vec<SavedReg>,
    /// For each slot, the offset of its end.
    ends: Vec<u32>,
    /// For each barrier, the slot of each register.
    at: Vec<Vec<usize>>,
    /// For each WIR block, the contents of the slots at its end.
    contents: Vec<Option<Contents>>,
    entered: Entered,
    /// Values that are never carried in registers: every reader loads them from this slot.
    lying: HashMap<wir::Value, usize>,
    /// Slots that already hold, within the block that is emitted, the value that has to be in them at its
    /// end.
    written: HashMap<usize, wir::Value>,
}

impl BarrierSlots {
    /// The slots of the registers of a barrier.
    pub(super) fn of(&self, resume: usize) -> Vec<SavedReg> {
        self.at[resume].iter().map(|place| self.places[*place].clone()).collect()
    }

    /// The size of all slots.
    pub(super) fn bytes(&self) -> u32 {
        self.ends.iter().copied().max().unwrap_or(0)
    }

    /// Whether the store of a barrier's register can be left out at the end of a block, because the slot
    /// holds the value.
    pub(super) fn is_there(&self, node: Option<BlockId>, resume: u32, at: usize, name: wir::Value) -> bool {
        let contents = node.and_then(|node| self.contents.get(node.0 as usize)?.as_ref());
        let place = self.at[resume as usize][at];
        if let Some(written) = self.written.get(&place) {
            return *written == name;
        }
        contents.and_then(|contents| contents.get(&place)).is_some_and(|names| names.contains(&name))
    }

    /// Whether anything is stored on the edge between two blocks.
    pub(super) fn is_entered(&self, from: BlockId, to: BlockId) -> bool {
        self.entered.contains_key(&(from, to))
    }

    /// The values that are stored on the edge between two blocks.
    pub(super) fn entered(&self, from: BlockId, to: BlockId) -> Vec<(SavedReg, wir::Value)> {
        let stored = self.entered.get(&(from, to)).into_iter().flatten();
        stored.map(|(place, name)| (self.places[*place].clone(), *name)).collect()
    }

    /// The size of the slots that values are read from only.
    pub(super) fn room(&self) -> u32 {
        if self.lying.is_empty() { 0 } else { self.bytes() }
    }

    /// The offset of the slot of a value that is read from its slot only.
    pub(super) fn lies(&self, name: wir::Value) -> Option<u32> {
        self.lying.get(&name).map(|place| self.places[*place].offset)
    }

    /// Forgets the slots that the previous block wrote.
    pub(super) fn begin(&mut self) {
        self.written.clear();
    }

    /// The slot that a register has at a barrier, if the slot has room for one vector for each chunk.
    pub(super) fn wanted(&self, resume: u32, at: usize) -> Option<usize> {
        let place = self.at[resume as usize][at];
        matches!(self.places[place].held, Held::Each).then_some(place)
    }

    /// The values that are read from this slot only, or from a slot that overlaps it.
    pub(super) fn beside(&self, place: usize) -> impl Iterator<Item = wir::Value> {
        let names = self.lying.iter().filter(move |(_, other)| self.overlap(place, **other));
        names.map(|(name, _)| *name)
    }

    /// Notes that the slot holds the value now. Returns the offset of the slot.
    pub(super) fn write(&mut self, place: usize, name: wir::Value) -> u32 {
        self.written.insert(place, name);
        self.places[place].offset
    }

    fn overlap(&self, a: usize, b: usize) -> bool {
        self.places[a].offset < self.ends[b] && self.places[b].offset < self.ends[a]
    }

    /// Gives each register one slot for all barriers at which it is saved in one form.
    fn place_all(&mut self, start: u32, warps: u32) {
        let mut barriers = vec![Vec::new(); self.places.len()];
        for (resume, own) in self.at.iter().enumerate() {
            own.iter().for_each(|place| barriers[*place].push(resume));
        }
        self.ends = vec![0; self.places.len()];
        for (at, own) in barriers.iter().enumerate() {
            let bytes = Room::bytes_of(&self.places[at], warps);
            if bytes == 0 {
                continue;
            }
            let beside = own.iter().flat_map(|resume| &self.at[*resume]);
            let mut taken: Vec<(u32, u32)> =
                beside.map(|other| (self.places[*other].offset, self.ends[*other])).collect();
            taken.sort_unstable();
            let align = bytes.next_power_of_two().min(64);
            let mut offset = start.next_multiple_of(align);
            for (from, to) in taken {
                if from < offset + bytes && offset < to {
                    offset = to.next_multiple_of(align);
                }
            }
            self.places[at].offset = offset;
            self.ends[at] = offset + bytes;
        }
    }
}

/// The data-flow problem: what the function requires of the slots.
struct Flow<'a> {
    func: &'a Func,
    /// The reachable blocks in reverse postorder.
    order: Vec<BlockId>,
    /// Blocks in which an iteration begins.
    roots: HashSet<BlockId>,
    def_use: &'a DefUse,
    /// For each block, the slots of the registers that it restores.
    restored: HashMap<BlockId, Vec<(usize, wir::Value)>>,
    /// For each value, the slots that it may be stored in, directly or through phis.
    wanted: HashMap<wir::Value, Vec<usize>>,
}

impl<'a> Flow<'a> {
    fn new(func: &'a Func, def_use: &'a DefUse, homes: &BarrierSlots) -> Self {
        let order = func.reverse_postorder();
        let mut restored: HashMap<BlockId, Vec<(usize, wir::Value)>> = HashMap::new();
        for id in &order {
            let node = &func.blocks[id.0 as usize];
            for op in &node.ops {
                if let OpKind::Restore(resume, reg) = op.kind
                    && let Some(at) = func.slot(resume, reg)
                {
                    let place = homes.at[resume as usize][at];
                    restored.entry(*id).or_default().push((place, op.defs[0]));
                }
            }
        }
        let mut wanted: HashMap<wir::Value, Vec<usize>> = HashMap::new();
        let kept = func.resumes.iter().zip(&homes.at);
        let mut left: Vec<(wir::Value, usize)> = kept
            .flat_map(|(resume, own)| resume.kept.iter().map(|(_, name)| *name).zip(own.iter().copied()))
            .collect();
        while let Some((name, place)) = left.pop() {
            let have = wanted.entry(name).or_default();
            if !have.contains(&place) {
                have.push(place);
                if let Some(Def::Phi(block, index)) = def_use.def(name) {
                    let phi = &func.blocks[block.0 as usize].phis[index];
                    left.extend(phi.from.iter().map(|from| (*from, place)));
                }
            }
        }
        Self { func, order, roots: func.roots().collect(), def_use, restored, wanted }
    }

    /// The contents of the slots at the end of each block.
    fn contents(&self, homes: &BarrierSlots, entered: &Entered) -> Vec<Option<Contents>> {
        let mut ends: Vec<Option<Contents>> = vec![None; self.func.blocks.len()];
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for id in &self.order {
                let node = &self.func.blocks[id.0 as usize];
                let mut here = self.roots.contains(id).then(Contents::new);
                for (at, from) in node.preds.iter().enumerate() {
                    let Some(before) = &ends[from.0 as usize] else { continue };
                    let edge = self.edge(before, (*from, *id), at, homes, entered);
                    here = Some(match here {
                        None => edge,
                        Some(have) => common(have, &edge),
                    });
                }
                let Some(mut here) = here else { continue };
                for (place, name) in self.restored.get(id).into_iter().flatten() {
                    here.entry(*place).or_default().insert(*name);
                }
                let end = &mut ends[id.0 as usize];
                if end.as_ref() != Some(&here) {
                    *end = Some(here);
                    changed = true;
                }
            }
        }
        ends
    }

    /// The contents of the slots where a block is entered from its predecessor with this index.
    fn edge(
        &self,
        before: &Contents,
        (from, to): (BlockId, BlockId),
        at: usize,
        homes: &BarrierSlots,
        entered: &Entered,
    ) -> Contents {
        let phis = &self.func.blocks[to.0 as usize].phis;
        // A value that the block defines is another value in each iteration.
        let behind = |names: &HashSet<wir::Value>| -> HashSet<wir::Value> {
            let old = names.iter().filter(|name| self.def_use.def(**name).map(Def::block) != Some(to));
            let new = phis.iter().filter(|phi| names.contains(&phi.from[at])).map(|phi| &phi.def);
            old.chain(new).copied().collect()
        };
        let mut edge: Contents = before.iter().map(|(place, names)| (*place, behind(names))).collect();
        for (place, name) in entered.get(&(from, to)).into_iter().flatten() {
            edge.retain(|other, _| !homes.overlap(*place, *other));
            edge.insert(*place, behind(&HashSet::from([*name])));
        }
        edge.retain(|_, names| !names.is_empty());
        edge
    }

    /// Values whose slot holds them wherever they are read, with that slot.
    fn lying(&self, homes: &BarrierSlots) -> HashMap<wir::Value, usize> {
        let mut lying: HashMap<wir::Value, usize> = HashMap::new();
        let each = |place: &usize| {
            let kept = &homes.places[*place];
            matches!(kept.held, Held::Each) && matches!(kept.reg.class, RegClass::R32 | RegClass::R64)
        };
        for (id, contents) in
            self.order.iter().filter_map(|id| Some((id, homes.contents[id.0 as usize].as_ref()?)))
        {
            let node = &self.func.blocks[id.0 as usize];
            let restored = self.restored.get(id).into_iter().flatten().filter(|(place, _)| each(place));
            lying.extend(restored.map(|(place, name)| (*name, *place)));
            for phi in &node.phis {
                let mut places: Vec<&usize> = contents
                    .iter()
                    .filter(|(_, names)| names.contains(&phi.def))
                    .map(|(place, _)| place)
                    .collect();
                places.sort_unstable();
                lying.extend(places.into_iter().find(|place| each(place)).map(|place| (phi.def, *place)));
            }
        }
        let mut odd = HashSet::new();
        let mut read = |id: BlockId, name: wir::Value| {
            let Some(place) = lying.get(&name) else { return };
            let contents = homes.contents[id.0 as usize].as_ref();
            if !contents.and_then(|contents| contents.get(place)).is_some_and(|names| names.contains(&name)) {
                odd.insert(name);
            }
        };
        for id in &self.order {
            let node = &self.func.blocks[id.0 as usize];
            for (at, from) in node.preds.iter().enumerate() {
                node.phis.iter().for_each(|phi| read(*from, phi.from[at]));
            }
            node.ops.iter().for_each(|op| op.for_each_use(&mut |name| read(*id, name)));
            node.term.for_each_use(&mut |name| read(*id, name));
            let Term::Exit(exit) = &node.term else { continue };
            let kept = exit.resume.map(|resume| &self.func.resumes[resume as usize].kept);
            kept.into_iter().flatten().for_each(|(_, name)| read(*id, *name));
        }
        lying.retain(|name, _| !odd.contains(name));
        lying
    }

    /// Finds loops that are entered without a value that later iterations have in its slot, and adds a store
    /// on the entry edges.
    fn enter(
        &self,
        ends: &[Option<Contents>],
        homes: &BarrierSlots,
        entered: &mut Entered,
        fits: impl Fn(usize, wir::Value) -> bool,
    ) -> bool {
        let mut more = Vec::new();
        for id in &self.order {
            let node = &self.func.blocks[id.0 as usize];
            if node.preds.len() < 2 || node.phis.iter().all(|phi| !self.wanted.contains_key(&phi.def)) {
                continue;
            }
            let known = node.preds.iter().enumerate().map(|(at, from)| {
                let before = ends[from.0 as usize].as_ref()?;
                Some(self.edge(before, (*from, *id), at, homes, entered))
            });
            let known: Vec<Option<Contents>> = known.collect();
            // Blocks from which the loop is entered.
            let outside: Vec<bool> = node
                .preds
                .iter()
                .map(|from| {
                    let all = self.func.blocks[from.0 as usize].term.successors();
                    let once = all.iter().filter(|to| *to == id).count() == 1;
                    once && !self.func.reaches(*id, *from)
                })
                .collect();
            for phi in &node.phis {
                for place in self.wanted.get(&phi.def).into_iter().flatten() {
                    let has = |edge: &Contents| edge.get(place).is_some_and(|names| names.contains(&phi.def));
                    let lacking: Vec<usize> = (0..known.len())
                        .filter(|at| known[*at].as_ref().is_some_and(|edge| !has(edge)))
                        .collect();
                    let some = known.iter().flatten().any(has);
                    if some && lacking.iter().all(|at| outside[*at] && fits(*place, phi.from[*at])) {
                        more.extend(
                            lacking.iter().map(|at| ((node.preds[*at], *id), (*place, phi.from[*at]))),
                        );
                    }
                }
            }
        }
        let mut any = false;
        for (way, (place, name)) in more {
            let stored = entered.entry(way).or_default();
            if !stored.iter().any(|(have, _)| homes.overlap(*have, place)) {
                stored.push((place, name));
                any = true;
            }
        }
        any
    }
}

/// The contents that both paths agree on.
fn common(mut have: Contents, other: &Contents) -> Contents {
    have.retain(|place, names| {
        let Some(others) = other.get(place) else { return false };
        names.retain(|name| others.contains(name));
        !names.is_empty()
    });
    have
}

impl Codegen<'_> {
    /// Finds slots for all saved registers. The first `start` bytes are reserved.
    pub(super) fn find_barrier_slots(&mut self, start: u32) -> BarrierSlots {
        let func = self.job.func;
        let mut homes = BarrierSlots::default();
        let mut known: HashMap<(Reg, Held), usize> = HashMap::new();
        for resume in &func.resumes {
            let mut own = Vec::new();
            for (reg, name) in &resume.kept {
                let held = self.held(*reg, *name);
                let places = &mut homes.places;
                own.push(*known.entry((*reg, held)).or_insert_with_key(|(reg, held)| {
                    places.push(SavedReg { reg: *reg, offset: 0, held: held.clone() });
                    places.len() - 1
                }));
            }
            homes.at.push(own);
        }
        homes.place_all(start, self.job.shape.team);
        if homes.places.is_empty() || homes.places.len() * func.blocks.len() > BARRIER_SLOT_MAX_FACTS {
            return homes;
        }
        let flow = Flow::new(func, &self.facts.def_use, &homes);
        let mut entered = Entered::new();
        let mut ends = flow.contents(&homes, &entered);
        for _ in 0..BARRIER_SLOT_HOIST_ROUNDS {
            let fits = |place: usize, name: wir::Value| self.packs(&homes.places[place].held, name);
            if !flow.enter(&ends, &homes, &mut entered, fits) {
                break;
            }
            ends = flow.contents(&homes, &entered);
        }
        homes.contents = ends;
        homes.entered = entered;
        if self.job.shape.team > 1 && self.is_crowded(&homes) {
            homes.lying = flow.lying(&homes);
        }
        homes
    }

    /// Whether a coarse warp saves more vectors than there are registers.
    fn is_crowded(&self, homes: &BarrierSlots) -> bool {
        let size = |place: &usize| match (&homes.places[*place].held, homes.places[*place].reg.class) {
            (Held::Each, RegClass::R64) => 2,
            (Held::Each, _) => 1,
            _ => 0,
        };
        let most = homes.at.iter().map(|own| own.iter().map(size).sum::<u32>()).max().unwrap_or(0);
        most * self.chunks() > self.env.target.level().vector_registers()
    }

    /// A vector of a value that is read from its slot.
    pub(super) fn load_from_slot(&self, name: wir::Value, offset: u32, chunk: Value) -> Value {
        let ty = self.b.vec(self.scalar_type(self.kind(name)), self.width);
        let bytes = self.width * ty.element_bits() / 8;
        let place = self.b.offset(self.barrier_slot_memory(), offset.into());
        self.b.load(ty, self.b.gep(place, self.b.mul(chunk, self.c64(bytes.into()))), bytes.min(64))
    }

    /// Loads values that are read from their slots, before the slots are overwritten.
    pub(super) fn read_slot(&mut self, names: impl Iterator<Item = wir::Value>) {
        for name in names {
            if matches!(self.values.get(name), Some(Repr::Kept(_))) {
                (0..self.chunks()).for_each(|c| {
                    self.chunk(name, c);
                });
            }
        }
    }

    /// Whether every value of this register can be stored in that form.
    fn packs(&self, held: &Held, name: wir::Value) -> bool {
        match held {
            Held::Each | Held::Mask => true,
            Held::Same => matches!(self.shape(name), Shape::Uniform(_) | Shape::Bottom),
            Held::Constant(_) | Held::Pattern { .. } | Held::Rows { .. } => false,
        }
    }

    /// On the edge into a loop, stores the values that have a slot in the loop.
    pub(super) fn enter_barrier_slots(&mut self, from: BlockId, to: BlockId) {
        let stored = self.passes.barrier_slots.entered(from, to);
        let Some(on) = self.if_whole() else { return };
        self.read_slot(stored.iter().map(|(_, name)| *name));
        let place = self.barrier_slot_memory();
        for (kept, name) in stored {
            self.pack(&kept, name, self.b.offset(place, u64::from(kept.offset)));
        }
        self.b.br(on);
        self.b.position_at_end(on);
    }
}
