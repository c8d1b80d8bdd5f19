//! Loads and stores: addresses and their bounds checks.
//!
//! Invariant: an address is dereferenced only after a comparison with bounds that the host gave: of the CTA's
//! shared memory, of the warp's local memory, of the parameters, or the cached bounds of the site, which hold
//! one live allocation. An access that fails the comparison goes to the interpreter's step, which finds
//! another allocation or reports the fault.

use super::inst::Lanes;
use super::mask::Mask;
use super::scaled_index::ScaledIndex;
use super::{Codegen, Input, Repr, Touch};
use crate::analysis::address::{LocalBase, Provenance};
use crate::effects;
use crate::frame::{Frame, Window};
use crate::isel::Operand;
use crate::llvm::{Block, IntPred, Likely, Ordering, Value};
use crate::mem::classify::{self, Classes};
use crate::mem::plan::{Planner, in_chunk_loop, in_warp_loop};
use crate::wir;
use crate::wir::access::{Access, Form, Plan};
use crate::wir::checks::Reach;
use crate::wir::{Affine, Kind, Op, Shape, Site};
use ptx::check::module::AddressSize;
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Sem, Space, Ty};
use ptx_exec::mem::LocalLayout;
use ptx_exec::watch::Object;
use std::mem::{offset_of, size_of};
use std::rc::Rc;

/// The addresses of an access, in its state space.
pub(super) enum Addresses {
    /// One address for all lanes.
    Same(Value),
    /// One base, or one for each chunk, plus a constant for each lane.
    Affine(Vec<Value>, Affine),
    /// A base and a stride, plus a constant for each lane.
    Rows(Rows, Affine),
    /// A scalar plus scaled 32-bit indices.
    ScaledIndex(ScaledIndex),
    /// One address for each lane.
    Each(Vec<Value>),
}

/// The scalars of symbolic-stride addresses.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// The base and the stride.
    pub(super) scalars: [Value; 2],
    /// Whether the stride is known to be so small that all rows lie between the first and the last.
    pub(super) near: bool,
}

impl Rows {
    /// The same rows relative to another base.
    pub(super) fn with_base(self, base: Value) -> Self {
        Self { scalars: [base, self.scalars[1]], ..self }
    }
}

/// The origin of the addresses of an operand.
enum AddressBase {
    /// The address of a variable.
    Symbol(Value),
    /// A register, and bytes that are added to it.
    Register(wir::Value, i64),
}

impl<'a> Codegen<'a> {
    /// How accesses are planned.
    pub(super) fn planner(&self) -> Planner<'a> {
        let Input { func, function, program, layout, objects, shape, target, .. } = self.job;
        Planner { func, function, program, layout, objects, launch: shape, target }
    }
}

impl Codegen<'_> {
    /// How accesses are classified.
    pub(super) fn classes(&self) -> Classes<'_> {
        let Input { func, program, .. } = self.job;
        Classes { func, program, addresses: &self.facts.analyses.addresses, width: self.width }
    }

    /// The plan of an access, in the version of its block that is emitted; `None`: it has no native code.
    pub(super) fn plan_of(&self, site: Site, op: &Op) -> Option<Rc<Plan>> {
        let plan = match &self.position.version {
            Some(version) => version.accesses.get(&site),
            None => op.access.as_ref(),
        }?;
        Some(match self.lanes == self.job.shape.lanes() {
            true => plan.clone(),
            false if self.job.by_warp => {
                Rc::new(in_warp_loop(plan, self.classes(), self.env.target.level())?)
            }
            false => Rc::new(in_chunk_loop(plan, self.env.target.level(), self.width)),
        })
    }

    pub(super) fn access(&self, inst: &Inst, write: bool) -> Option<Access> {
        classify::ordered_access(self.job.program, inst, write)
    }

    /// The access that an instruction makes, of any memory order.
    pub(super) fn access_of(&self, inst: &Inst, write: bool) -> Option<Access> {
        classify::access_of(self.job.program, inst, write)
    }

    /// The addresses of the first source; `next` is the index of the next register. A generic address is
    /// treated as one of the space that it was made in, if that is known.
    pub(super) fn addresses(
        &mut self,
        inst: &Inst,
        op: &Op,
        next: &mut usize,
        plan: &Plan,
    ) -> Option<Addresses> {
        match self.first_address(inst, op, next)? {
            AddressBase::Symbol(address) => Some(Addresses::Same(address)),
            AddressBase::Register(name, offset) => {
                let (name, offset) = self.anchored(name, offset);
                self.addresses_in(name, offset, inst.mods.space(), &plan.guest)
            }
        }
    }

    /// A checked address relative to the one that it was checked with.
    fn anchored(&self, name: wir::Value, offset: i64) -> (wir::Value, i64) {
        let checks = self.position.checks.as_ref().filter(|_| self.position.access_checked);
        let (first, by) = checks.and_then(|checks| checks.distances.get(&name)).copied().unwrap_or((name, 0));
        (first, offset + by)
    }

    /// The addresses of the first source of an operation without a plan, such as a load of a matrix. The
    /// access is changed to the space that a generic address was made in.
    pub(super) fn addresses_without_plan(
        &mut self,
        inst: &Inst,
        op: &Op,
        next: &mut usize,
        access: &mut Access,
    ) -> Option<Addresses> {
        if self.job.program.address_size != AddressSize::Bits64 {
            return None;
        }
        match self.first_address(inst, op, next)? {
            AddressBase::Symbol(address) => Some(Addresses::Same(address)),
            AddressBase::Register(name, offset) => self.addresses_from(name, offset, access),
        }
    }

    fn first_address(&mut self, inst: &Inst, op: &Op, next: &mut usize) -> Option<AddressBase> {
        let offset = match inst.srcs.first()? {
            Src::Addr(Addr { base: Base::Reg(_), index: None, offset }) => *offset,
            Src::Reg(_) => 0,
            Src::Addr(addr @ Addr { index: None, .. }) => {
                return Some(AddressBase::Symbol(self.symbol(addr)?));
            }
            _ => return None,
        };
        let name = op.uses[*next];
        *next += 1;
        Some(AddressBase::Register(name, offset))
    }

    /// The addresses at an offset from a register.
    pub(super) fn addresses_from(
        &mut self,
        name: wir::Value,
        offset: i64,
        access: &mut Access,
    ) -> Option<Addresses> {
        let said = access.space;
        let (own, form) = self.form_of(name, *access)?;
        *access = own;
        self.addresses_in(name, offset, said, &form)
    }

    /// The addresses at an offset from a register, of this form. `said`: the space that the instruction
    /// names.
    pub(super) fn addresses_in(
        &mut self,
        name: wir::Value,
        offset: i64,
        said: Space,
        form: &Form,
    ) -> Option<Addresses> {
        let provenance = self.facts.analyses.addresses.provenance(name).filter(|_| said == Space::Generic);
        if let Some(Provenance::Local(base, added)) = provenance {
            let base = match base {
                LocalBase::Value(base) => self.scalar(base),
                LocalBase::Frame => self.load64(offset_of!(Frame, offset)),
            };
            return Some(Addresses::Same(self.b.add(base, self.c64(added.wrapping_add(offset) as u64))));
        }
        let window = match provenance {
            Some(Provenance::Window(space)) => Some(self.window_start(space)),
            Some(Provenance::Local(..)) | None => None,
        };
        let narrow = self.kind(name) == Kind::Reg(RegClass::R32);
        let shift = |emit: &Self, value: Value| {
            let added = emit.b.const_int(value.ty(), offset as u64);
            let value = if offset == 0 { value } else { emit.b.add(value, added) };
            let value = match window {
                Some(start) => emit.b.sub(value, emit.b.splat(start, value.ty().lanes())),
                None => value,
            };
            if narrow { emit.b.zext(value, emit.b.like(value.ty(), emit.int(64))) } else { value }
        };
        Some(match form {
            Form::Same => {
                let value = self.scalar(name);
                Addresses::Same(shift(self, value))
            }
            Form::Rows(pattern) => Addresses::Rows(self.rows_of(name, shift)?, pattern.clone()),
            Form::Affine(_) if self.pattern(name).is_some_and(|pattern| !pattern.rows.is_empty()) => {
                let (rows, pattern) = (self.rows_of(name, shift)?, self.pattern(name)?);
                self.unrolled(rows.scalars, &pattern)
            }
            Form::Affine(pattern) => {
                let count = if pattern.by_chunk { self.chunks() } else { 1 };
                let mut bases = Vec::new();
                for c in 0..count {
                    let base = self.base(name, c)?;
                    bases.push(shift(self, base));
                }
                Addresses::Affine(bases, pattern.clone())
            }
            Form::ScaledIndex(_) => {
                let spread = self.scaled_index(name);
                let base = shift(self, spread.base);
                Addresses::ScaledIndex(ScaledIndex { base, ..spread })
            }
            Form::Local | Form::EachLocal => unreachable!("ptxvm bug: a form of addresses of the process"),
            Form::Each => {
                let mut chunks = Vec::new();
                for c in 0..self.chunks() {
                    self.at_chunk(c);
                    let chunk = self.chunk(name, c);
                    chunks.push(shift(self, chunk));
                }
                self.at_first();
                Addresses::Each(chunks)
            }
        })
    }

    /// An access relative to a register, with the form of its addresses. In a chunk loop, that of one chunk.
    pub(super) fn form_of(&self, name: wir::Value, access: Access) -> Option<(Access, Form)> {
        let (access, form) = self.classes().form(name, access, self.position.full)?;
        Some((
            access,
            match self.passes.chunk_loops.shapes.get(&name) {
                Some(Shape::Affine(pattern)) if !pattern.rows.is_empty() => Form::Rows((**pattern).clone()),
                Some(Shape::Affine(pattern)) => Form::Affine((**pattern).clone()),
                Some(Shape::Uniform(_)) => Form::Same,
                Some(Shape::Bottom | Shape::Varying) | None => form,
            },
        ))
    }

    pub(super) fn ld(&mut self, site: Site, inst: &Inst, op: &Op) -> bool {
        let done = match self.access(inst, false) {
            Some(access) => self.take_or(access, op, |emit| emit.loaded(site, inst, op, access)),
            None => false,
        };
        // Later accesses must not be executed before an acquire load. The fence orders the compiler; the
        // processor keeps loads in order.
        if done && inst.mods.sem() == Sem::Acquire {
            self.b.fence(Ordering::Acquire);
        }
        done
    }

    fn loaded(&mut self, site: Site, inst: &Inst, op: &Op, access: Access) -> bool {
        self.prefetches.beside_access = self.begin_prefetch(op);
        if op.defs.len() != access.count as usize {
            return false;
        }
        let guarded = self.is_guarded(inst);
        // A load that names the parameters needs no check.
        if effects::reads_parameter(inst) {
            return !guarded && self.param(inst, op, access);
        }
        let mut next = 1;
        let Some(plan) = self.plan_of(site, op) else { return false };
        let access = plan.access;
        let Some(addresses) = self.addresses(inst, op, &mut next, &plan) else { return false };
        if self.load_from_strips(&plan, op) {
            self.applied("access", "shared memory in registers of a warp strip");
            return true;
        }
        let uniform = self.shape(op.defs[0]).is_uniform();
        if uniform && !matches!(addresses, Addresses::Same(_)) {
            return false;
        }
        if self.planner().reads_constant(inst) {
            self.applied("check-elim", "within a variable of constant memory");
        }
        if self.position.access_checked || self.is_within((site, inst, op), access) {
            let Some(places) = self.placed(access, &addresses) else { return false };
            let Some(()) = self.or_undefined(site, &plan, &places, op, uniform) else { return false };
            let Some(()) = self.or_unordered(site, &plan, &places, op, Touch::Read) else { return false };
            let loaded = self.load_places(&plan, &places, op, uniform);
            for (def, rep) in op.defs.iter().zip(loaded) {
                self.values.define(*def, rep);
            }
            return true;
        }
        let Some((fits, places)) = self.places(site, access, &addresses, op) else { return false };
        if self.is_unmasked() || self.job.shape.only_starts() || self.job.exits_at_accesses() {
            if self.is_unmasked() {
                self.or_masked(fits);
            } else {
                let Some(()) = self.or_side_exit(fits, site, access, &addresses, op) else { return false };
            }
            let Some(()) = self.or_undefined(site, &plan, &places, op, uniform) else { return false };
            let Some(()) = self.or_unordered(site, &plan, &places, op, Touch::Read) else { return false };
            let loaded = self.load_places(&plan, &places, op, uniform);
            for (def, rep) in op.defs.iter().zip(loaded) {
                self.values.define(*def, rep);
            }
            return true;
        }
        let (fast, slow) = self.fork(fits);
        self.b.position_at_end(fast);
        let loaded = self.load_places(&plan, &places, op, uniform);
        let fast_end = self.b.current_block();
        let done = self.b.append_block(self.function, "loaded");
        self.b.br(done);
        self.b.position_at_end(slow);
        let mut ways = vec![(loaded, fast_end)];
        if let Some(offset) = self.own_offset(&plan, &addresses, op) {
            let loaded = self.load_local(&plan.in_local(), &Addresses::Same(offset.offset), op);
            ways.push((loaded, self.b.current_block()));
            self.b.br(done);
            self.b.position_at_end(offset.elsewhere);
        }
        let stepped = self.slow(site, inst, op, access, &addresses);
        ways.push((stepped, self.b.current_block()));
        self.b.br(done);
        self.b.position_at_end(done);
        for (at, def) in op.defs.iter().enumerate() {
            let values = |chunk: Option<usize>| {
                let value = |(reps, _): &(Vec<Repr>, Block)| match (&reps[at], chunk) {
                    (Repr::Scalar(value), None) => *value,
                    (Repr::Chunks(chunks), Some(chunk)) => chunks[chunk],
                    _ => unreachable!("ptxvm bug: a load of two shapes"),
                };
                let phi = self.b.phi(value(&ways[0]).ty());
                ways.iter().for_each(|way| self.b.add_incoming(phi, value(way), way.1));
                phi
            };
            let rep = match &ways[0].0[at] {
                Repr::Chunks(chunks) => Repr::Chunks((0..chunks.len()).map(|c| values(Some(c))).collect()),
                _ => Repr::Scalar(values(None)),
            };
            self.values.define(*def, rep);
        }
        true
    }

    pub(super) fn is_guarded(&self, inst: &Inst) -> bool {
        inst.guard.is_some() && self.entry.thread.is_none()
    }

    /// `ld.param` of a kernel parameter.
    fn param(&mut self, inst: &Inst, op: &Op, access: Access) -> bool {
        let Some(Src::Addr(Addr { base: Base::KernelParam, index: None, offset })) = inst.srcs.first() else {
            return false;
        };
        let (Ok(offset), bytes) = (u64::try_from(*offset), u64::from(access.bytes())) else { return false };
        if offset + bytes > u64::from(self.job.function.param_bytes) || !offset.is_multiple_of(bytes) {
            return false;
        }
        let address = self.b.add(self.entry.params, self.c64(offset));
        let pointer = self.b.int_to_ptr(address);
        for (at, def) in op.defs.iter().enumerate() {
            let place = self.b.offset(pointer, at as u64 * u64::from(access.bits / 8));
            let value = self.b.load(self.int(access.bits), place, access.bits / 8);
            let value = self.extend(value, access, *def);
            self.define(*def, value);
        }
        true
    }

    pub(super) fn st(&mut self, site: Site, inst: &Inst, op: &Op) -> bool {
        let Some(access) = self.access(inst, true) else { return false };
        if access.space == Space::Param || access.space == Space::Const {
            return false;
        }
        self.prefetches.beside_access = self.begin_prefetch(op);
        let mut next = 1;
        let Some(plan) = self.plan_of(site, op) else { return false };
        let access = plan.access;
        let Some(addresses) = self.addresses(inst, op, &mut next, &plan) else { return false };
        if self.is_guarded(inst) && matches!(addresses, Addresses::Same(_)) && access.space != Space::Local {
            return false;
        }
        if self.store_to_strips(inst, &plan, op, next) {
            self.applied("access", "shared memory in registers of a warp strip");
            return true;
        }
        // The values, by element and chunk.
        let mut values: Vec<Vec<Value>> = Vec::new();
        for c in 0..self.chunks() {
            let Some(operands) = self.values(inst, op, c, next) else { return false };
            values.push(operands.into_iter().map(|value| self.narrow(value, access)).collect());
        }
        self.out.updates |= inst.mods.sem() != Sem::Weak && access.space != Space::Shared;
        if inst.mods.sem() == Sem::Release {
            self.b.fence(Ordering::Release);
        }
        if self.position.access_checked || self.is_within((site, inst, op), access) {
            let Some(places) = self.placed(access, &addresses) else { return false };
            let Some(()) = self.or_unordered(site, &plan, &places, op, Touch::Write) else { return false };
            self.mark_defined(&plan, &places, op, &values);
            self.store_places(&plan, &places, op, &values);
            return true;
        }
        let Some((fits, places)) = self.places(site, access, &addresses, op) else { return false };
        if self.job.shape.only_starts() || self.job.ordered {
            let Some(()) = self.or_side_exit(fits, site, access, &addresses, op) else { return false };
            let Some(()) = self.or_unordered(site, &plan, &places, op, Touch::Write) else { return false };
            self.mark_defined(&plan, &places, op, &values);
            self.store_places(&plan, &places, op, &values);
            return true;
        }
        let (fast, slow) = self.fork(fits);
        self.b.position_at_end(fast);
        self.mark_defined(&plan, &places, op, &values);
        self.store_places(&plan, &places, op, &values);
        let done = self.b.append_block(self.function, "stored");
        self.b.br(done);
        self.b.position_at_end(slow);
        if let Some(offset) = self.own_offset(&plan, &addresses, op) {
            self.store_local(&plan.in_local(), &Addresses::Same(offset.offset), op, &values);
            self.b.br(done);
            self.b.position_at_end(offset.elsewhere);
        }
        self.slow(site, inst, op, access, &addresses);
        self.b.br(done);
        self.b.position_at_end(done);
        true
    }

    /// The values of a chunk that follow the address, without a cache policy after them.
    pub(super) fn values(&mut self, inst: &Inst, op: &Op, chunk: u32, mut next: usize) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        let pairs = if inst.mods.ty() == Ty::B128 { 2 } else { 1 };
        for src in inst.srcs.get(1..=pairs * usize::from(inst.mods.vec()))? {
            let ty = self.b.vec(self.int(64), self.width);
            values.push(match self.operand(src, op, &mut next, Lanes::Chunk(chunk), inst)? {
                Operand::Value(value, _) => value,
                Operand::Imm(bits) => self.b.const_splat(ty, bits),
                Operand::Absent => return None,
            });
        }
        Some(values)
    }

    pub(super) fn fork(&mut self, fits: Value) -> (Block, Block) {
        let fast = self.b.append_block(self.function, "fast");
        let slow = self.b.append_block(self.function, "slow");
        self.b.cond_br(fits, fast, slow, Likely::Yes);
        (fast, slow)
    }

    /// The slow path: renews the cached bounds of the site, and lets the interpreter execute the access.
    pub(super) fn slow(
        &mut self,
        site: Site,
        inst: &Inst,
        op: &Op,
        access: Access,
        addresses: &Addresses,
    ) -> Vec<Repr> {
        let mask = self.mask(op.uses[0]);
        let reach = Reach {
            site,
            space: access.space,
            write: access.write,
            postponed: access.postponed,
            lo: 0,
            hi: access.bytes().into(),
            align: 1,
        };
        self.renew_cached_bounds(reach, addresses, mask, self.whole(op));
        self.stepped(site, inst, op, false)
    }

    /// Renews the cached bounds of a site from the allocation that an active lane accesses.
    pub(super) fn renew_cached_bounds(
        &mut self,
        reach: Reach,
        addresses: &Addresses,
        mask: Mask,
        whole: bool,
    ) {
        if matches!(reach.space, Space::Shared | Space::Local | Space::Param) {
            return;
        }
        let span = self.window_span(reach, addresses, whole);
        let address = match addresses {
            Addresses::Same(address) => self.b.add(*address, self.c64(reach.lo as u64)),
            Addresses::Affine(bases, pattern) if whole => {
                let low = i64::from(pattern.lanes.iter().min().copied().unwrap_or(0));
                self.b.add(bases[0], self.c64((low + reach.lo) as u64))
            }
            Addresses::Rows(rows, pattern) if whole => {
                let (low, _) = self.row_ends(rows.scalars, pattern);
                self.b.add(low, self.c64(reach.lo as u64))
            }
            Addresses::Affine(bases, pattern)
                if self.vectors().step_of(pattern).is_some() && !pattern.by_chunk =>
            {
                let step = self.vectors().step_of(pattern).unwrap_or(0);
                let lane = self.b.zext(self.lowest(self.word(mask)), self.int(64));
                let more = self.b.mul(lane, self.c64(step as u64));
                let address = self.b.add(bases[0], more);
                self.b.add(address, self.c64(reach.lo as u64))
            }
            Addresses::Affine(..) | Addresses::Rows(..) | Addresses::ScaledIndex(_) | Addresses::Each(_) => {
                let chunks = self.each(addresses);
                let lane = self.lowest(self.word(mask));
                let place = self.entry.scratch.expect("made at the start");
                for (c, chunk) in chunks.iter().enumerate() {
                    let at = c as u64 * u64::from(self.width) * 8;
                    self.b.store(*chunk, self.b.offset(place, at), 8);
                }
                let offset = self.b.mul(lane, self.c32(8));
                let offset = self.b.zext(offset, self.int(64));
                let address = self.b.load(self.int(64), self.b.gep(place, offset), 8);
                self.b.add(address, self.c64(reach.lo as u64))
            }
        };
        let window = self.window(reach, span);
        let user = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, user)), 8);
        let (word, long) = (self.int(32), self.int(64));
        let void = self.b.fn_type(None, &[self.b.ptr(), word, word, long, word]);
        let how = space_number(reach.space) | u32::from(reach.write) << 8 | u32::from(reach.postponed) << 9;
        let how = how | self.allocation_number(reach) << 16;
        let args = [user, self.c32(window), self.c32(how), address, self.c32(span)];
        self.b.call_host(void, "reach", &args);
    }

    /// Addresses of any form as vectors.
    pub(super) fn each(&mut self, addresses: &Addresses) -> Vec<Value> {
        match addresses {
            Addresses::Each(chunks) => chunks.clone(),
            Addresses::ScaledIndex(spread) => self.widened(spread),
            Addresses::Affine(bases, pattern) => {
                (0..self.chunks()).map(|c| self.expand(bases, pattern, c)).collect()
            }
            Addresses::Rows(rows, pattern) => {
                let unrolled = self.unrolled(rows.scalars, pattern);
                self.each(&unrolled)
            }
            Addresses::Same(address) => vec![self.b.splat(*address, self.width); self.chunks() as usize],
        }
    }

    /// The active lanes of a mask (or of a chunk of it, shifted to bit 0), with the lowest and the highest of
    /// them. If there are none, these are the numbers of some lanes.
    pub(super) fn running(&self, mask: Value, chunk: Option<u32>) -> (Value, Value, Value) {
        let lanes = match chunk {
            None => mask,
            Some(c) => {
                let shifted = self.b.lshr(mask, self.b.const_int(mask.ty(), u64::from(c * self.width)));
                let word = if self.lanes > 32 { self.b.trunc(shifted, self.int(32)) } else { shifted };
                self.b.and(word, self.c32((1 << self.width) - 1))
            }
        };
        let zero = self.b.const_int(self.int(1), 0);
        let ty = lanes.ty();
        let zeros = self.b.intrinsic("llvm.ctlz", &[ty], &[lanes, zero]);
        let high = self.b.sub(self.b.const_int(ty, u64::from(ty.element_bits()) - 1), zeros);
        (lanes, self.lowest(lanes), self.lane_number(high))
    }

    /// The condition that all accesses are in bounds, and the host addresses.
    pub(super) fn places(
        &mut self,
        site: Site,
        access: Access,
        addresses: &Addresses,
        op: &Op,
    ) -> Option<(Value, Addresses)> {
        let bytes = access.bytes();
        let Access { space, write, postponed, .. } = access;
        let reach = Reach { site, space, write, postponed, lo: 0, hi: bytes.into(), align: bytes };
        let (mask, whole) = (self.mask(op.uses[0]), self.whole(op));
        let fits = match self.is_inside(site, op) {
            true => self.b.const_int(self.int(1), 1),
            false => self.fits(reach, addresses, mask, whole)?,
        };
        Some((fits, self.placed(access, addresses)?))
    }

    /// Guest addresses as host addresses. Those of local memory remain offsets where its words are
    /// interleaved ([`local_words`](super::local_words)).
    pub(super) fn placed(&mut self, access: Access, addresses: &Addresses) -> Option<Addresses> {
        if access.space == Space::Local && self.planner().local_layout() == LocalLayout::ByWord {
            return Some(match addresses {
                Addresses::Same(offset) => Addresses::Same(*offset),
                _ => Addresses::Each(self.each(addresses)),
            });
        }
        if access.space == Space::Local {
            let (origin, stride) =
                (self.load64(offset_of!(Frame, local)), self.load64(offset_of!(Frame, local) + 8));
            if let (Addresses::Same(address), Some(thread)) = (addresses, self.entry.thread) {
                return Some(Addresses::Same(self.b.add(thread.local[0], *address)));
            }
            if let Addresses::Same(address) = addresses {
                let base = self.b.add(origin, *address);
                let step = self.b.trunc(stride, self.int(32));
                let index = |c: u32| {
                    let lanes: Vec<u64> = (0..self.width).map(|l| u64::from(c * self.width + l)).collect();
                    self.b.mul(self.b.const_ints(self.int(32), &lanes), self.b.splat(step, self.width))
                };
                // The local memory of a warp is less than 2 GiB.
                let index = (0..self.chunks()).map(index).collect();
                return Some(Addresses::ScaledIndex(ScaledIndex {
                    base,
                    index,
                    signed: true,
                    bytes: false,
                    scale: 1,
                }));
            }
            let mut places = Vec::new();
            for (c, chunk) in self.each(addresses).into_iter().enumerate() {
                let own = self.strided(origin, stride, c as u32);
                places.push(self.b.add(own, chunk));
            }
            return Some(Addresses::Each(places));
        }
        let origin = self.window_start(access.space);
        let scalar = |place: &Value| self.b.add(*place, origin);
        Some(match addresses {
            Addresses::Same(address) if access.space == Space::Generic => {
                Addresses::Same(self.own_or_other(access, *address))
            }
            Addresses::Same(address) => Addresses::Same(scalar(address)),
            Addresses::Affine(bases, pattern) => {
                Addresses::Affine(bases.iter().map(scalar).collect(), pattern.clone())
            }
            Addresses::Rows(rows, pattern) => {
                self.by_chunk(rows.with_base(scalar(&rows.scalars[0])), pattern)
            }
            Addresses::ScaledIndex(spread) => {
                Addresses::ScaledIndex(ScaledIndex { base: scalar(&spread.base), ..spread.clone() })
            }
            // Shared memory has less than 2 GiB, so 32 bits of an address that is in bounds are enough.
            Addresses::Each(chunks) if access.space == Space::Shared => {
                let ty = self.b.vec(self.int(32), self.width);
                let index = chunks.iter().map(|chunk| self.b.trunc(*chunk, ty)).collect();
                let (signed, bytes, scale) = (true, false, 1);
                Addresses::ScaledIndex(ScaledIndex { base: origin, index, signed, bytes, scale })
            }
            Addresses::Each(chunks) => {
                let origin = self.b.splat(origin, self.width);
                Addresses::Each(chunks.iter().map(|chunk| self.b.add(*chunk, origin)).collect())
            }
        })
    }

    /// The generic address of address 0 of a state space other than local memory.
    pub(super) fn window_start(&self, space: Space) -> Value {
        match space {
            Space::Shared => self.entry.shared[0],
            Space::Param => self.entry.params,
            _ => self.c64(0),
        }
    }

    /// Whether all 32 lanes execute the operation.
    pub(super) fn whole(&self, op: &Op) -> bool {
        let unmasked = self.position.prefix.and_then(|prefix| prefix.unmasked);
        let runs =
            |c| self.facts.analyses.constants.bits(op.uses[0], c) == Some(u64::MAX >> (64 - self.width));
        self.position.full
            && (unmasked == Some(op.uses[0]) || (0..self.job.shape.lanes() / self.width).all(runs))
    }

    /// The number of the allocation that an access must stay in, from 1 on; 0 if it may access any.
    fn allocation_number(&self, reach: Reach) -> u32 {
        match self.planner().object(reach.site, reach.space) {
            None => 0,
            Some(Object::Allocation(number)) => number.saturating_add(1).min(NO_ALLOCATION),
            // Addresses of windows are left to the interpreter.
            Some(Object::Shared { .. } | Object::Local { .. }) => NO_ALLOCATION,
        }
    }

    /// The addresses at which an access of `span` bytes may begin: the bias that maps the first to zero, and
    /// their number.
    pub(super) fn bounds(&mut self, reach: Reach, span: u32) -> Option<(Value, Value)> {
        let room = |emit: &Self, bytes: Value, least: u64| {
            // If at least `span` bytes always exist, the subtraction needs no saturation.
            if u64::from(span) <= least {
                return emit.b.sub(bytes, emit.c64(u64::from(span) - 1));
            }
            let more = emit.b.add(bytes, emit.c64(1));
            emit.b.intrinsic("llvm.usub.sat", &[emit.int(64)], &[more, emit.c64(u64::from(span))])
        };
        let zero = self.c64(0);
        let object = self.planner().object(reach.site, reach.space);
        let part = |bytes: u64| (bytes + 1).saturating_sub(span.into());
        Some(match reach.space {
            Space::Shared => match object {
                None => (zero, room(self, self.entry.shared[1], self.job.layout.shared_bytes.into())),
                Some(Object::Shared { start, bytes: Some(bytes) }) => {
                    (self.c64(start.wrapping_neg()), self.c64(part(bytes)))
                }
                Some(Object::Shared { start, bytes: None }) => {
                    let (all, start) = (self.entry.shared[1], self.c64(start));
                    let bytes = self.b.intrinsic("llvm.usub.sat", &[self.int(64)], &[all, start]);
                    (self.b.sub(zero, start), room(self, bytes, 0))
                }
                Some(Object::Local { .. } | Object::Allocation(_)) => (zero, zero),
            },
            Space::Local if let Some(thread) = self.entry.thread => match object {
                None => (zero, room(self, thread.local[1], 0)),
                Some(Object::Local { .. } | Object::Shared { .. } | Object::Allocation(_)) => (zero, zero),
            },
            Space::Local => {
                // If the lanes' local memories are further apart than an index reaches, the interpreter
                // executes the access.
                let (stride, top) =
                    (self.load64(offset_of!(Frame, local) + 8), self.load64(offset_of!(Frame, local) + 16));
                let near = self.b.icmp(IntPred::Ult, stride, self.c64(1 << 26));
                match object {
                    None => {
                        let top = self.b.select(near, top, zero);
                        (zero, room(self, top, 0))
                    }
                    Some(Object::Local { start, bytes }) => {
                        let limit = self.b.select(near, self.c64(part(bytes)), zero);
                        (self.c64(start.wrapping_neg()), limit)
                    }
                    Some(Object::Shared { .. } | Object::Allocation(_)) => (zero, zero),
                }
            }
            Space::Global | Space::Const | Space::Generic => {
                let number = u64::from(self.window(reach, span));
                let windows = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, windows)), 8);
                let window = self.b.offset(windows, number * size_of::<Window>() as u64);
                let field =
                    |offset: usize| self.b.load(self.int(64), self.b.offset(window, offset as u64), 8);
                (field(offset_of!(Window, bias)), field(offset_of!(Window, limit)))
            }
            Space::Param => (zero, self.c64(part(self.job.function.param_bytes.into()))),
            Space::Reg | Space::Sreg | Space::Tex => return None,
        })
    }
}

/// The number of an allocation that no launch has.
const NO_ALLOCATION: u32 = 0xffff;

/// The number of a state space in calls of the host.
pub(crate) fn space_number(space: Space) -> u32 {
    match space {
        Space::Global => 0,
        Space::Const => 1,
        _ => 2,
    }
}

/// The state space with that number.
pub(crate) fn space_of(number: u32) -> Space {
    match number {
        0 => Space::Global,
        1 => Space::Const,
        _ => Space::Generic,
    }
}
