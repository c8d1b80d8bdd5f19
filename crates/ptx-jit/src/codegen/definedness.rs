//! Definedness checks: loads of undefined bytes leave native code, and stores mark bytes as defined.
//!
//! An observer that follows undefined values permits native code if it loads only defined bytes
//! ([`NativeChecks::defined`](ptx_exec::watch::NativeChecks)). The undefined bits of a byte are in shadow
//! memory, at a fixed distance from it. So a check is the same load once more, by the strategy of the load
//! and at a distance: its results are the undefined bits of the loaded registers.
//!
//! Invariant: addresses are checked against their bounds before their shadow is accessed, and the side exit
//! is taken before the instruction has an effect.
//!
//! What it does not do: it follows no bits through registers. The interpreter does, for as long as a register
//! that is still read has undefined bits.

use super::load_store::Addresses;
use super::mask::{LaneBits, Mask};
use super::scaled_index::ScaledIndex;
use super::{Codegen, Repr};
use crate::effects::loads_bytes;
use crate::llvm::{IntPred, Likely, Value};
use crate::wir::access::{Access, Plan};
use crate::wir::checks::Reach;
use crate::wir::{Exit, Kind, Op, Site};
use ptx::ir::Inst;
use ptx_exec::native::ExitCause;

impl Codegen<'_> {
    /// The side exit before the instruction.
    pub(super) fn exit_before(&self, site: Site) -> Option<Exit> {
        self.position.pending_exit.as_ref().filter(|(at, _)| *at == site).map(|(_, exit)| exit.clone())
    }

    /// The places of the shadow of places.
    pub(super) fn shadow(&self, places: &Addresses) -> Addresses {
        let added = |place: &Value| self.b.add(*place, self.b.splat(self.entry.shadow, place.ty().lanes()));
        match places {
            Addresses::Same(place) => Addresses::Same(self.b.add(*place, self.entry.shadow)),
            Addresses::Affine(bases, pattern) => {
                let bases = bases.iter().map(|base| self.b.add(*base, self.entry.shadow));
                Addresses::Affine(bases.collect(), pattern.clone())
            }
            Addresses::Rows(rows, pattern) => {
                let base = self.b.add(rows.scalars[0], self.entry.shadow);
                Addresses::Rows(rows.with_base(base), pattern.clone())
            }
            Addresses::ScaledIndex(spread) => {
                let base = self.b.add(spread.base, self.entry.shadow);
                Addresses::ScaledIndex(ScaledIndex { base, ..spread.clone() })
            }
            Addresses::Each(chunks) => Addresses::Each(chunks.iter().map(added).collect()),
        }
    }

    /// Takes the side exit before a load if it would load undefined bits into a register that is read.
    /// `None`: there is no exit.
    pub(super) fn or_undefined(
        &mut self,
        site: Site,
        plan: &Plan,
        places: &Addresses,
        op: &Op,
        uniform: bool,
    ) -> Option<()> {
        if !self.job.defined {
            return Some(());
        }
        let shadow = self.shadow(places);
        let loaded = self.load_places(plan, &shadow, op, uniform);
        let mask = self.mask(op.uses[0]);
        let word = self.word(mask);
        let some = self.b.icmp(IntPred::Ne, word, self.b.zero(word.ty()));
        let mut undefined = Vec::new();
        for (def, rep) in op.defs.iter().zip(loaded) {
            if !self.job.func.needed[def.0 as usize] {
                continue;
            }
            match rep {
                Repr::Scalar(bits) => {
                    let any = self.b.icmp(IntPred::Ne, bits, self.b.zero(bits.ty()));
                    undefined.push(if plan.active.whole { any } else { self.b.and(any, some) });
                }
                Repr::Bases(chunks) | Repr::Chunks(chunks) => {
                    let of_lanes = |(c, bits): (u32, &Value)| match self.lanes(plan, mask, c) {
                        None => *bits,
                        Some(lanes) => self.b.select(lanes, *bits, self.b.zero(bits.ty())),
                    };
                    let parts: Vec<Value> = (0..).zip(&chunks).map(of_lanes).collect();
                    undefined.push(self.any_bit(&parts));
                }
                Repr::Mask(_) | Repr::Number(_) | Repr::Narrow(_) | Repr::Kept(_) => {
                    unreachable!("ptxvm bug: a load of no register")
                }
            }
        }
        self.leave_if_any(site, &undefined, ExitCause::Undefined)
    }

    /// As [`Codegen::or_undefined`], for an atomic operation.
    pub(super) fn or_undefined_atomic(
        &mut self,
        site: Site,
        plan: &Plan,
        places: &Addresses,
        op: &Op,
    ) -> Option<()> {
        if !self.job.defined {
            return Some(());
        }
        let Access { bits, .. } = plan.access;
        let (ty, bytes) = (self.b.vec(self.int(bits), self.width), bits / 8);
        let mask = self.mask(op.uses[0]);
        let shadow = self.shadow(places);
        let undefined = match &shadow {
            Addresses::Same(place) => {
                // Without active lanes the address was not checked.
                let word = self.word(mask);
                let some = self.b.icmp(IntPred::Ne, word, self.b.zero(word.ty()));
                let scratch = self.entry.scratch.expect("made at the start");
                let place = self.b.select(some, self.b.int_to_ptr(*place), scratch);
                let bits = self.b.load(self.int(bits), place, bytes);
                let any = self.b.icmp(IntPred::Ne, bits, self.b.zero(bits.ty()));
                self.b.and(any, some)
            }
            Addresses::Affine(..) | Addresses::Rows(..) | Addresses::ScaledIndex(_) | Addresses::Each(_) => {
                let chunks = self.each(&shadow);
                let load = |(c, chunk): (u32, &Value)| {
                    let lanes = match self.cached_bits(mask, c) {
                        LaneBits::Known(bits) if bits == self.all_bits() => None,
                        bits => Some(self.vector_of(bits)),
                    };
                    self.masked_gather(self.b.int_to_ptr(*chunk), bytes, lanes, self.b.zero(ty))
                };
                let parts: Vec<Value> = (0..).zip(&chunks).map(load).collect();
                self.any_bit(&parts)
            }
        };
        self.leave_if_any(site, &[undefined], ExitCause::Undefined)
    }

    /// Marks what a store writes as defined.
    pub(super) fn mark_defined(&mut self, plan: &Plan, places: &Addresses, op: &Op, values: &[Vec<Value>]) {
        if !self.job.defined {
            return;
        }
        let shadow = self.shadow(places);
        let zero = |value: &Value| self.b.zero(value.ty());
        let zeros: Vec<Vec<Value>> = values.iter().map(|chunk| chunk.iter().map(zero).collect()).collect();
        self.store_places(plan, &shadow, op, &zeros);
    }

    /// Whether a bit of some vectors of one type is set.
    pub(super) fn any_bit(&self, vectors: &[Value]) -> Value {
        let mut all = vectors[0];
        for vector in &vectors[1..] {
            all = self.b.or(all, *vector);
        }
        self.any(self.b.icmp(IntPred::Ne, all, self.b.zero(all.ty())))
    }

    /// Takes the side exit before the instruction if one of these conditions holds.
    pub(super) fn leave_if_any(&mut self, site: Site, conditions: &[Value], cause: ExitCause) -> Option<()> {
        let Some((first, rest)) = conditions.split_first() else { return Some(()) };
        let exit = self.exit_before(site)?;
        let leaves = rest.iter().fold(*first, |any, condition| self.b.or(any, *condition));
        let leave = self.b.append_block(self.function, "undefined");
        let stay = self.b.append_block(self.function, "defined");
        self.b.cond_br(leaves, leave, stay, Likely::No);
        self.b.position_at_end(leave);
        self.exit(&exit, cause, &[site]);
        self.b.position_at_end(stay);
        Some(())
    }

    /// Continues if an access without a plan is in bounds. Otherwise renews its cached bounds and takes the
    /// side exit before it.
    pub(super) fn leave_out_of_bounds(
        &mut self,
        fits: Value,
        reach: Reach,
        addresses: &Addresses,
        lanes: Mask,
    ) -> Option<()> {
        let exit = self.exit_before(reach.site)?;
        let leave = self.b.append_block(self.function, "leave");
        let stay = self.b.append_block(self.function, "inside");
        self.b.cond_br(fits, stay, leave, Likely::Yes);
        self.b.position_at_end(leave);
        self.renew_cached_bounds(reach, addresses, lanes, false);
        self.exit(&exit, ExitCause::Bounds, &[reach.site]);
        self.b.position_at_end(stay);
        Some(())
    }

    /// Takes the side exit before a load that has no native code, because the interpreter's step does not say
    /// whether its results are defined. Returns whether this is such a load.
    pub(super) fn leave_before_load(&mut self, site: Site, inst: &Inst, op: &Op) -> bool {
        if !self.job.defined || !loads_bytes(inst) {
            return false;
        }
        let Some(exit) = self.exit_before(site) else { return false };
        self.exit(&exit, ExitCause::Undefined, &[site]);
        // The code behind it is unreachable.
        let behind = self.b.append_block(self.function, "unreachable");
        self.b.position_at_end(behind);
        for def in &op.defs {
            let zero = self.b.zero(self.scalar_type(self.kind(*def)));
            match self.kind(*def) {
                Kind::Mask => self.values.define(*def, Repr::Mask(self.new_mask(zero))),
                Kind::Reg(_) | Kind::Count => self.define(*def, zero),
            }
        }
        true
    }
}
