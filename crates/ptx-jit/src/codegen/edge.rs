//! Terminators and edges: how a block ends, and which values its successors' phis get.
//!
//! Invariant: a phi has one value for each LLVM block that its WIR block is entered from, also where one WIR
//! block ends in several LLVM blocks.

use super::{Codegen, Repr};
use crate::llvm::{Block, Likely, Value};
use crate::wir;
use crate::wir::{BlockId, Cond, Kind, Phi, Shape, Term};

impl Codegen<'_> {
    pub(super) fn phi(&mut self, name: wir::Value) -> Repr {
        if let Some(place) = self.slots().offset_of(name) {
            return Repr::Kept(place);
        }
        let scalar = self.scalar_type(self.kind(name));
        if self.kind(name) == Kind::Mask {
            return Repr::Mask(self.new_mask(self.b.phi(scalar)));
        }
        match self.shape(name) {
            Shape::Uniform(_) | Shape::Bottom => Repr::Scalar(self.b.phi(scalar)),
            Shape::Affine(pattern) => {
                let count = pattern.scalars(self.chunks());
                Repr::Bases((0..count).map(|_| self.b.phi(scalar)).collect())
            }
            Shape::Varying if let Some(phis) = self.narrow_phi(name) => phis,
            Shape::Varying if self.is_one_number(name) => {
                Repr::Number(self.new_mask(self.b.phi(self.mask_type())))
            }
            Shape::Varying => {
                let ty = self.b.vec(scalar, self.width);
                Repr::Chunks((0..self.chunks()).map(|_| self.b.phi(ty)).collect())
            }
        }
    }

    /// Adds the operands of a block's phis for an edge from an LLVM block.
    pub(super) fn arrive(&mut self, node: BlockId, from: Block, values: &[Repr]) {
        for (index, value) in values.iter().enumerate() {
            let Some(phi) = self.flow.phis.get(&(node.0, index)) else { continue };
            let pairs: Vec<(Value, Value)> = match (phi, value) {
                (Repr::Chunks(phi), _) if phi.is_empty() => continue,
                (Repr::Scalar(phi), Repr::Scalar(value)) => vec![(*phi, *value)],
                (Repr::Mask(phi), Repr::Mask(value)) | (Repr::Number(phi), Repr::Number(value)) => {
                    vec![(self.word(*phi), self.word(*value))]
                }
                // The value is in its slot on every path.
                (Repr::Kept(_), _) => Vec::new(),
                (Repr::Bases(phi), Repr::Bases(value))
                | (Repr::Chunks(phi), Repr::Chunks(value))
                | (Repr::Narrow(phi), Repr::Narrow(value)) => {
                    phi.iter().copied().zip(value.iter().copied()).collect()
                }
                _ => unreachable!("ptxvm bug: a phi of two shapes"),
            };
            for (phi, value) in pairs {
                self.b.add_incoming(phi, value, from);
            }
        }
    }

    /// Adds the values that a successor's phis need, before the terminator is emitted.
    pub(super) fn store_state(&mut self, from: BlockId, to: BlockId) {
        let values = self.state_stored(from, to);
        self.state_values(to, values);
    }

    /// The values that the phis of a block need from one of its predecessors.
    pub(super) fn state_stored(&mut self, from: BlockId, to: BlockId) -> Vec<Repr> {
        let func = self.job.func;
        let target = &func.blocks[to.0 as usize];
        let Some(place) = target.pred_index(from) else { return Vec::new() };
        let value = |phi: &Phi| match self.slots().offset_of(phi.def) {
            Some(place) => Repr::Kept(place),
            None => self.coerce(phi.from[place], phi.def),
        };
        let mut values: Vec<Repr> = target.phis.iter().map(value).collect();
        values.extend(self.predicated_until(to, place).map(Repr::Scalar));
        values
    }

    /// Adds the operands of a block's phis for an edge from the current LLVM block.
    pub(super) fn state_values(&mut self, to: BlockId, values: Vec<Repr>) {
        if values.is_empty() {
            return;
        }
        let block = self.b.current_block();
        if self.flow.phis.contains_key(&(to.0, 0)) {
            self.arrive(to, block, &values);
        } else {
            self.flow.pending.entry(to.0).or_default().push((block, values));
        }
    }

    pub(super) fn end(&mut self, id: BlockId, term: &Term) {
        if self.position.versioned_block != Some(id)
            && let Some(to) = self.continues_in(id)
        {
            return self.fuse(id, to);
        }
        self.close_section();
        if let Term::Exit(exit) = term {
            self.exit_of_block(exit);
            return;
        }
        let condition = match term {
            Term::If { cond, .. } => Some(self.condition(cond)),
            _ => None,
        };
        // If both successors are the same block, its phis need two different predecessors.
        let mut detours: Vec<(BlockId, Block)> = Vec::new();
        for to in term.successors() {
            if self.slots().stores_on(id, to) {
                detours.push((to, self.b.append_block(self.function, "way")));
            } else {
                self.store_state(id, to);
            }
        }
        let at = |emit: &Self, to: BlockId| {
            let detour = detours.iter().find(|(node, _)| *node == to);
            detour.map_or_else(|| emit.at(to), |(_, block)| *block)
        };
        match term {
            Term::Goto(to) => self.b.br(at(self, *to)),
            Term::If { then, els, likely, .. } => {
                let likely = match likely {
                    Some(true) => Likely::Yes,
                    Some(false) => Likely::No,
                    None => Likely::Unknown,
                };
                let condition = condition.expect("an If has a condition");
                self.b.cond_br(condition, at(self, *then), at(self, *els), likely);
            }
            Term::Switch { value, targets, beyond } => {
                let value = self.scalar(*value);
                let cases: Vec<(u64, Block)> =
                    targets.iter().enumerate().map(|(i, to)| (i as u64, at(self, *to))).collect();
                self.b.switch(value, at(self, *beyond), &cases);
            }
            Term::Exit(_) => {}
        }
        for (to, block) in detours {
            self.b.position_at_end(block);
            // Values that are read from a slot are loaded before the slot is overwritten.
            let values = self.state_stored(id, to);
            self.enter_barrier_slots(id, to);
            self.state_values(to, values);
            self.b.br(self.at(to));
        }
    }

    pub(super) fn condition(&mut self, cond: &Cond) -> Value {
        use crate::llvm::IntPred;
        match cond {
            Cond::Pred { value, negated } => {
                let value = self.scalar(*value);
                if *negated { self.b.not(value) } else { value }
            }
            Cond::Empty(mask) if let Some(some) = self.passes.sunk_masks.some(*mask) => self.b.not(some),
            Cond::Empty(mask) => {
                let mask = self.scalar(*mask);
                self.b.icmp(IntPred::Eq, mask, self.b.zero(mask.ty()))
            }
            Cond::Equal(a, b) => {
                let (a, b) = (self.scalar(*a), self.scalar(*b));
                self.b.icmp(IntPred::Eq, a, b)
            }
            Cond::Full(mask) => {
                let mask = self.scalar(*mask);
                self.b.icmp(IntPred::Eq, mask, self.b.ones(mask.ty()))
            }
            Cond::Negative(number) => {
                let number = self.scalar(*number);
                self.b.icmp(IntPred::Slt, number, self.c64(0))
            }
            Cond::Together { site, members, mask, live } => self.together(*site, *members, *mask, *live),
        }
    }
}
