//! Barrier slots: where the registers that live across barriers are saved, and which stores and loads are
//! left out because the slot holds the value already.
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
//!
//! Not handled: functions with more facts than [`BARRIER_SLOT_MAX_FACTS`], where every barrier stores all.

use crate::target::Target;
use crate::tuning::{BARRIER_SLOT_HOIST_ROUNDS, BARRIER_SLOT_MAX_FACTS};
use crate::wir::saved_form::{Patterns, held};
use crate::wir::slot_memory::{Contents, EdgeStores, SlotMemory};
use crate::wir::uses::{Def, DefUse};
use crate::wir::{BlockId, Func, LaunchShape, OpKind, Shape, Term, Value};
use ptx::ir::{Reg, RegClass};
use ptx_exec::native::{Held, SavedReg};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The slots of all saved registers of a function.
pub(crate) fn assign(func: &Func, def_use: &DefUse, launch: LaunchShape, target: Target) -> SlotMemory {
    let mut homes = SlotMemory::default();
    let mut known: HashMap<(Reg, Held), usize> = HashMap::new();
    let mut patterns = Patterns::default();
    for resume in &func.resumes {
        let mut own = Vec::new();
        for (reg, name) in &resume.kept {
            let held =
                held(&func.shapes[name.0 as usize], *reg, (launch.lanes(), launch.chunk), &mut patterns);
            let places = &mut homes.places;
            own.push(*known.entry((*reg, held)).or_insert_with_key(|(reg, held)| {
                places.push(SavedReg { reg: *reg, offset: 0, held: held.clone() });
                places.len() - 1
            }));
        }
        homes.at.push(own);
    }
    // A coarse warp also saves which of its lanes are live and, at a side exit, which of them were active.
    let start = if launch.team > 1 { 8 * launch.team } else { 0 };
    homes.place_all(start, launch.team);
    if homes.places.is_empty() || homes.places.len() * func.blocks.len() > BARRIER_SLOT_MAX_FACTS {
        return homes;
    }
    let crowded = !launch.is_scalar() && is_crowded(&homes, launch.lanes() / launch.chunk, target);
    let flow = Flow::new(func, def_use, &homes);
    let mut stores = EdgeStores::new();
    let mut ends = flow.contents(&homes, &stores);
    for _ in 0..BARRIER_SLOT_HOIST_ROUNDS {
        let fits = |place: usize, name: Value| fits(&func.shapes[name.0 as usize], &homes.places[place].held);
        if !flow.enter(&ends, &homes, &mut stores, fits, crowded) {
            break;
        }
        ends = flow.contents(&homes, &stores);
    }
    homes.contents = ends;
    homes.stores = stores;
    if crowded {
        homes.in_slot = flow.in_slots(&homes);
    }
    homes
}

/// Whether every value of this shape can be stored in that form.
fn fits(shape: &Shape, held: &Held) -> bool {
    match held {
        Held::Each | Held::Mask => true,
        Held::Same => matches!(shape, Shape::Uniform(_) | Shape::Bottom),
        Held::Constant(_) | Held::Pattern { .. } | Held::Rows { .. } => false,
    }
}

/// Whether a coarse warp saves more vectors than there are registers.
fn is_crowded(homes: &SlotMemory, chunks: u32, target: Target) -> bool {
    let size = |place: &usize| match (&homes.places[*place].held, homes.places[*place].reg.class) {
        (Held::Each, RegClass::R64) => 2,
        (Held::Each, _) => 1,
        _ => 0,
    };
    let most = homes.at.iter().map(|own| own.iter().map(size).sum::<u32>()).max().unwrap_or(0);
    most * chunks > target.level().vector_registers()
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
    restored: HashMap<BlockId, Vec<(usize, Value)>>,
    /// For each value, the slots that it may be stored in, directly or through phis.
    wanted: HashMap<Value, Vec<usize>>,
}

impl<'a> Flow<'a> {
    fn new(func: &'a Func, def_use: &'a DefUse, homes: &SlotMemory) -> Self {
        let order = func.reverse_postorder();
        let mut restored: HashMap<BlockId, Vec<(usize, Value)>> = HashMap::new();
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
        let mut wanted: HashMap<Value, Vec<usize>> = HashMap::new();
        let kept = func.resumes.iter().zip(&homes.at);
        let mut left: Vec<(Value, usize)> = kept
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
    fn contents(&self, homes: &SlotMemory, stores: &EdgeStores) -> Vec<Option<Contents>> {
        let mut ends: Vec<Option<Contents>> = vec![None; self.func.blocks.len()];
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for id in &self.order {
                let node = &self.func.blocks[id.0 as usize];
                let mut here = self.roots.contains(id).then(Contents::new);
                for (at, from) in node.preds.iter().enumerate() {
                    let Some(before) = &ends[from.0 as usize] else { continue };
                    let edge = self.edge(before, (*from, *id), at, homes, stores);
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
        homes: &SlotMemory,
        stores: &EdgeStores,
    ) -> Contents {
        let phis = &self.func.blocks[to.0 as usize].phis;
        // A value that the block defines is another value in each iteration.
        let behind = |names: &HashSet<Value>| -> HashSet<Value> {
            let old = names.iter().filter(|name| self.def_use.def(**name).map(Def::block) != Some(to));
            let new = phis.iter().filter(|phi| names.contains(&phi.from[at])).map(|phi| &phi.def);
            old.chain(new).copied().collect()
        };
        let mut edge: Contents = before.iter().map(|(place, names)| (*place, behind(names))).collect();
        for (place, name) in stores.get(&(from, to)).into_iter().flatten() {
            edge.retain(|other, _| !homes.overlap(*place, *other));
            edge.insert(*place, behind(&HashSet::from([*name])));
        }
        edge.retain(|_, names| !names.is_empty());
        edge
    }

    /// Values whose slot holds them wherever they are read, with that slot.
    fn in_slots(&self, homes: &SlotMemory) -> BTreeMap<Value, usize> {
        let mut in_slot: BTreeMap<Value, usize> = BTreeMap::new();
        let each = |place: &usize| {
            let kept = &homes.places[*place];
            matches!(kept.held, Held::Each) && matches!(kept.reg.class, RegClass::R32 | RegClass::R64)
        };
        for (id, contents) in
            self.order.iter().filter_map(|id| Some((id, homes.contents[id.0 as usize].as_ref()?)))
        {
            let node = &self.func.blocks[id.0 as usize];
            let restored = self.restored.get(id).into_iter().flatten().filter(|(place, _)| each(place));
            in_slot.extend(restored.map(|(place, name)| (*name, *place)));
            for phi in &node.phis {
                let mut places: Vec<&usize> = contents
                    .iter()
                    .filter(|(_, names)| names.contains(&phi.def))
                    .map(|(place, _)| place)
                    .collect();
                places.sort_unstable();
                in_slot.extend(places.into_iter().find(|place| each(place)).map(|place| (phi.def, *place)));
            }
        }
        let mut odd = HashSet::new();
        let mut read = |id: BlockId, name: Value| {
            let Some(place) = in_slot.get(&name) else { return };
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
        let is_vector = |name: &Value| self.func.shapes[name.0 as usize] == Shape::Varying;
        in_slot.retain(|name, _| is_vector(name) && !odd.contains(name));
        in_slot
    }

    /// Finds loops that are entered without a value that later iterations have in its slot, and adds a store
    /// on the entry edges. Where values are read from slots, that applies to each block that is entered both
    /// from behind a barrier and from the interpreter.
    fn enter(
        &self,
        ends: &[Option<Contents>],
        homes: &SlotMemory,
        stores: &mut EdgeStores,
        fits: impl Fn(usize, Value) -> bool,
        crowded: bool,
    ) -> bool {
        let mut more = Vec::new();
        for id in &self.order {
            let node = &self.func.blocks[id.0 as usize];
            let wanted = node.phis.iter().any(|phi| self.wanted.contains_key(&phi.def));
            if node.preds.len() < 2 || !wanted && !crowded {
                continue;
            }
            let known = node.preds.iter().enumerate().map(|(at, from)| {
                let before = ends[from.0 as usize].as_ref()?;
                Some(self.edge(before, (*from, *id), at, homes, stores))
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
                let wanted = self.wanted.get(&phi.def).into_iter().flatten();
                let in_slots = known.iter().flatten().flatten().filter(|_| crowded);
                let in_slots = in_slots.filter(|(_, names)| names.contains(&phi.def)).map(|(place, _)| place);
                let places: BTreeSet<&usize> = wanted.chain(in_slots).collect();
                for place in places {
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
            let stored = stores.entry(way).or_default();
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
