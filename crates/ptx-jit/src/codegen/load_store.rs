//! Loads and stores: addresses and their bounds checks.
//!
//! Invariant: an address is dereferenced only after a comparison with bounds that the host gave: of the CTA's
//! shared memory, of the warp's local memory, of the parameters, or the cached bounds of the site, which hold
//! one live allocation. An access that fails the comparison goes to the interpreter's step, which finds
//! another allocation or reports the fault.

use super::inst::Lanes;
use super::scaled_index::ScaledIndex;
use super::{Codegen, Origin, Repr};
use crate::frame::{Frame, Window};
use crate::isel::Operand;
use crate::llvm::{Block, IntPred, Likely, Ordering, Value};
use crate::wir;
use crate::wir::{Affine, Kind, Op, Shape, Site};
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Sem, Space, Ty, TyKind};
use std::mem::{offset_of, size_of};

/// What a load or store does, beside its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) space: Space,
    /// Bits of an element.
    pub(super) bits: u32,
    /// Elements of a lane.
    pub(super) count: u32,
    /// Whether elements are extended with their sign.
    pub(super) signed: bool,
    pub(super) write: bool,
    /// Whether it adds what is kept back.
    pub(super) sum: bool,
}

impl Access {
    /// Bytes of a lane.
    pub(super) fn bytes(self) -> u32 {
        self.bits / 8 * self.count
    }
}

/// What is compared with the bounds of a site at once, from the addresses on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub(super) site: Site,
    pub(super) space: Space,
    pub(super) write: bool,
    /// Whether it is of sums that are kept back, which have windows of their own.
    pub(super) sum: bool,
    /// The first byte, relative to the address.
    pub(super) lo: i64,
    /// DeferredPrefetches the last byte.
    pub(super) hi: i64,
    /// What the address must be a multiple of.
    pub(super) align: u32,
}

/// The addresses of an access, in its space.
pub(super) enum Addresses {
    /// The same in all lanes.
    Same(Value),
    /// Bases and what the lanes add.
    Affine(Vec<Value>, Affine),
    /// A base and a stride, and what the lanes add.
    Rows([Value; 2], Affine),
    /// A scalar plus scaled numbers of 32 bits.
    ScaledIndex(ScaledIndex),
    /// Anything.
    Each(Vec<Value>),
}

impl Codegen<'_> {
    pub(super) fn access(&self, inst: &Inst, write: bool) -> Option<Access> {
        match (inst.mods.sem(), write) {
            (Sem::Weak | Sem::Volatile | Sem::Relaxed, _) | (Sem::Acquire, false) | (Sem::Release, true) => {}
            (Sem::Acquire | Sem::Release | Sem::AcqRel | Sem::Sc, _) => return None,
        }
        self.access_of(inst, write)
    }

    /// What an instruction reads or writes, however it is ordered.
    pub(super) fn access_of(&self, inst: &Inst, write: bool) -> Option<Access> {
        let ty = inst.mods.ty();
        // Weak accesses of 128 bits are those of two words; the others are seen whole.
        let (bits, count) = match ty {
            Ty::B128 if inst.mods.sem() == Sem::Weak => (64, 2),
            _ => (ty.bits(), u32::from(inst.mods.vec())),
        };
        if ty.kind() == TyKind::Opaque || !(8..=64).contains(&bits) {
            return None;
        }
        let said = inst.mods.space();
        let space = match inst.srcs.first()? {
            Src::Addr(Addr { base: Base::Frame, .. }) => Space::Local,
            Src::Addr(Addr { base: Base::KernelParam, .. }) => Space::Param,
            Src::Addr(Addr { base: Base::Var(var), .. }) if said == Space::Generic => {
                self.job.program.variables.get(var.0 as usize)?.space
            }
            _ => said,
        };
        Some(Access { space, bits, count, signed: ty.is_signed(), write, sum: false })
    }

    /// The addresses of the first source; `next` counts registers. A generic access becomes one of the space that its address was made
    /// in.
    pub(super) fn addresses(
        &mut self,
        inst: &Inst,
        op: &Op,
        next: &mut usize,
        access: &mut Access,
    ) -> Option<Addresses> {
        if self.job.program.address_size != ptx::check::module::AddressSize::Bits64 {
            return None;
        }
        let offset = match inst.srcs.first()? {
            Src::Addr(Addr { base: Base::Reg(_), index: None, offset }) => *offset,
            Src::Reg(_) => 0,
            Src::Addr(addr @ Addr { index: None, .. }) => {
                return Some(Addresses::Same(self.symbol(addr)?));
            }
            _ => return None,
        };
        let name = op.uses[*next];
        *next += 1;
        self.addresses_from(name, offset, access)
    }

    /// The addresses so far behind those of a name.
    pub(super) fn addresses_from(
        &mut self,
        name: wir::Value,
        offset: i64,
        access: &mut Access,
    ) -> Option<Addresses> {
        let Kind::Reg(class @ (RegClass::R64 | RegClass::R32)) = self.kind(name) else { return None };
        let narrow = class == RegClass::R32;
        let origin = self.origins.get(&name).copied().filter(|_| access.space == Space::Generic);
        if let Some(Origin::Local(base, added)) = origin {
            access.space = Space::Local;
            let base = self.scalar(base);
            return Some(Addresses::Same(self.b.add(base, self.c64(added.wrapping_add(offset) as u64))));
        }
        let shared = matches!(origin, Some(Origin::Shared));
        if shared {
            access.space = Space::Shared;
        }
        let shift = |emit: &Self, value: Value| {
            let added = emit.b.const_int(value.ty(), offset as u64);
            let value = if offset == 0 { value } else { emit.b.add(value, added) };
            let value = if shared {
                emit.b.sub(value, emit.b.splat(emit.shared[0], value.ty().lanes()))
            } else {
                value
            };
            if narrow { emit.b.zext(value, emit.b.like(value.ty(), emit.int(64))) } else { value }
        };
        Some(match self.shape(name).clone() {
            Shape::Uniform(_) | Shape::Bottom => {
                let value = self.scalar(name);
                Addresses::Same(shift(self, value))
            }
            Shape::Affine(pattern) if !narrow && !pattern.rows.is_empty() => {
                let base = self.base(name, 0)?;
                let rows = [shift(self, base), self.stride_of(name)?];
                if self.full { Addresses::Rows(rows, *pattern) } else { self.by_chunk(rows, &pattern) }
            }
            // A narrow pattern could wrap around.
            Shape::Affine(pattern) if !narrow => {
                let count = if pattern.by_chunk { self.chunks() } else { 1 };
                let mut bases = Vec::new();
                for c in 0..count {
                    let base = self.base(name, c)?;
                    bases.push(shift(self, base));
                }
                Addresses::Affine(bases, *pattern)
            }
            Shape::Varying if !narrow && self.scaled_indices.contains_key(&name) => {
                let spread = self.scaled_indices[&name].clone();
                let base = shift(self, spread.base);
                Addresses::ScaledIndex(ScaledIndex { base, ..spread })
            }
            Shape::Affine(_) | Shape::Varying => {
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

    pub(super) fn ld(&mut self, site: Site, inst: &Inst, op: &Op) -> bool {
        let done = match self.access(inst, false) {
            Some(access) => self.take_or(access, op, |emit| emit.loaded(site, inst, op, access)),
            None => false,
        };
        // What comes after in the program must not be read before. The machine keeps the order of loads.
        if done && inst.mods.sem() == Sem::Acquire {
            self.b.fence(Ordering::Acquire);
        }
        done
    }

    fn loaded(&mut self, site: Site, inst: &Inst, op: &Op, mut access: Access) -> bool {
        self.prefetch = self.stride(inst, op, access);
        if op.defs.len() != access.count as usize {
            return false;
        }
        let guarded = self.is_guarded(inst);
        // Parameters: nothing is to be checked.
        if access.space == Space::Param {
            return !guarded && self.param(inst, op, access);
        }
        let mut next = 1;
        let Some(addresses) = self.addresses(inst, op, &mut next, &mut access) else { return false };
        if self.load_from_strips(&addresses, op) {
            return true;
        }
        let uniform = self.shape(op.defs[0]).is_uniform();
        if uniform && !matches!(addresses, Addresses::Same(_)) {
            return false;
        }
        if self.access_checked || self.is_within(inst, op, access) {
            let Some(places) = self.placed(access, &addresses) else { return false };
            let loaded = self.load_places(access, &places, op, uniform);
            for (def, rep) in op.defs.iter().zip(loaded) {
                self.reps[def.0 as usize] = Some(rep);
            }
            return true;
        }
        let Some((fits, places)) = self.places(site, access, &addresses, op) else { return false };
        if self.is_unmasked() || self.job.shape.team > 1 {
            if self.is_unmasked() {
                self.or_masked(fits);
            } else {
                let Some(()) = self.or_side_exit(fits, site, access, &addresses, op) else { return false };
            }
            let loaded = self.load_places(access, &places, op, uniform);
            for (def, rep) in op.defs.iter().zip(loaded) {
                self.reps[def.0 as usize] = Some(rep);
            }
            return true;
        }
        let (fast, slow) = self.fork(fits);
        self.b.position_at_end(fast);
        let loaded = self.load_places(access, &places, op, uniform);
        let fast_end = self.b.current_block();
        let done = self.b.append_block(self.function, "loaded");
        self.b.br(done);
        self.b.position_at_end(slow);
        let stepped = self.slow(site, inst, op, access, &addresses);
        let slow_end = self.b.current_block();
        self.b.br(done);
        self.b.position_at_end(done);
        for ((def, fast), slow) in op.defs.iter().zip(loaded).zip(stepped) {
            let merge = |a: &Value, b: &Value| {
                let phi = self.b.phi(a.ty());
                self.b.add_incoming(phi, *a, fast_end);
                self.b.add_incoming(phi, *b, slow_end);
                phi
            };
            let rep = match (fast, slow) {
                (Repr::Scalar(a), Repr::Scalar(b)) => Repr::Scalar(merge(&a, &b)),
                (Repr::Chunks(a), Repr::Chunks(b)) => {
                    Repr::Chunks(a.iter().zip(&b).map(|(a, b)| merge(a, b)).collect())
                }
                _ => unreachable!("ptxvm bug: a load of two shapes"),
            };
            self.reps[def.0 as usize] = Some(rep);
        }
        true
    }

    pub(super) fn is_guarded(&self, inst: &Inst) -> bool {
        inst.guard.is_some()
    }

    /// `ld.param` of the kernel.
    fn param(&mut self, inst: &Inst, op: &Op, access: Access) -> bool {
        let Some(Src::Addr(Addr { base: Base::KernelParam, index: None, offset })) = inst.srcs.first() else {
            return false;
        };
        let (Ok(offset), bytes) = (u64::try_from(*offset), u64::from(access.bytes())) else { return false };
        if offset + bytes > u64::from(self.job.function.param_bytes) || !offset.is_multiple_of(bytes) {
            return false;
        }
        let address = self.b.add(self.params, self.c64(offset));
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
        let Some(mut access) = self.access(inst, true) else { return false };
        if access.space == Space::Param || access.space == Space::Const {
            return false;
        }
        self.prefetch = self.stride(inst, op, access);
        let mut next = 1;
        let Some(addresses) = self.addresses(inst, op, &mut next, &mut access) else { return false };
        if self.is_guarded(inst) && matches!(addresses, Addresses::Same(_)) && access.space != Space::Local {
            return false;
        }
        if self.store_to_strips(inst, &addresses, op, next) {
            return true;
        }
        // The values, in chunks.
        let mut values: Vec<Vec<Value>> = Vec::new();
        for c in 0..self.chunks() {
            let Some(operands) = self.values(inst, op, c, next) else { return false };
            values.push(operands.into_iter().map(|value| self.narrow(value, access)).collect());
        }
        if inst.mods.sem() == Sem::Release {
            self.b.fence(Ordering::Release);
        }
        if self.access_checked || self.is_within(inst, op, access) {
            let Some(places) = self.placed(access, &addresses) else { return false };
            self.store_places(access, &places, op, &values);
            return true;
        }
        let Some((fits, places)) = self.places(site, access, &addresses, op) else { return false };
        if self.job.shape.team > 1 {
            let Some(()) = self.or_side_exit(fits, site, access, &addresses, op) else { return false };
            self.store_places(access, &places, op, &values);
            return true;
        }
        let (fast, slow) = self.fork(fits);
        self.b.position_at_end(fast);
        self.store_places(access, &places, op, &values);
        let done = self.b.append_block(self.function, "stored");
        self.b.br(done);
        self.b.position_at_end(slow);
        self.slow(site, inst, op, access, &addresses);
        self.b.br(done);
        self.b.position_at_end(done);
        true
    }

    /// The values behind the address, of a chunk; not the cache policy that may follow them.
    pub(super) fn values(&mut self, inst: &Inst, op: &Op, chunk: u32, mut next: usize) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        let pairs = if inst.mods.ty() == Ty::B128 { 2 } else { 1 };
        for src in inst.srcs.get(1..=pairs * usize::from(inst.mods.vec()))? {
            let ty = self.b.vec(self.int(64), self.width);
            values.push(match self.operand(src, op, &mut next, Lanes::Chunk(chunk), inst)? {
                Operand::Value(value) => value,
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

    /// Renews the window of the site, and leaves the access to the interpreter.
    pub(super) fn slow(
        &mut self,
        site: Site,
        inst: &Inst,
        op: &Op,
        access: Access,
        addresses: &Addresses,
    ) -> Vec<Repr> {
        let mask = self.scalar(op.uses[0]);
        let reach = Reach {
            site,
            space: access.space,
            write: access.write,
            sum: access.sum,
            lo: 0,
            hi: access.bytes().into(),
            align: 1,
        };
        self.renew_cached_bounds(reach, addresses, mask, self.whole(op));
        self.stepped(site, inst, op, false)
    }

    /// Renews the window of a site from the allocation around the access of a lane that runs.
    pub(super) fn renew_cached_bounds(
        &mut self,
        reach: Reach,
        addresses: &Addresses,
        mask: Value,
        whole: bool,
    ) {
        if matches!(reach.space, Space::Shared | Space::Local) {
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
                let (low, _) = self.row_ends(*rows, pattern);
                self.b.add(low, self.c64(reach.lo as u64))
            }
            Addresses::Affine(bases, pattern) if self.step_of(pattern).is_some() && !pattern.by_chunk => {
                let step = self.step_of(pattern).unwrap_or(0);
                let lane = self.b.zext(self.lowest(mask), self.int(64));
                let more = self.b.mul(lane, self.c64(step as u64));
                let address = self.b.add(bases[0], more);
                self.b.add(address, self.c64(reach.lo as u64))
            }
            Addresses::Affine(..) | Addresses::Rows(..) | Addresses::ScaledIndex(_) | Addresses::Each(_) => {
                let chunks = self.each(addresses);
                let lane = self.lowest(mask);
                let place = self.scratch.expect("made at the start");
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
        let how = space_number(reach.space) | u32::from(reach.write) << 8 | u32::from(reach.sum) << 9;
        let args = [user, self.c32(window), self.c32(how), address, self.c32(span)];
        self.b.call_host(void, "reach", &args);
    }

    /// Addresses of any shape as vectors.
    pub(super) fn each(&mut self, addresses: &Addresses) -> Vec<Value> {
        match addresses {
            Addresses::Each(chunks) => chunks.clone(),
            Addresses::ScaledIndex(spread) => self.widened(spread),
            Addresses::Affine(bases, pattern) => {
                (0..self.chunks()).map(|c| self.expand(bases, pattern, c)).collect()
            }
            Addresses::Rows(rows, pattern) => {
                let unrolled = self.unrolled(*rows, pattern);
                self.each(&unrolled)
            }
            Addresses::Same(address) => vec![self.b.splat(*address, self.width); self.chunks() as usize],
        }
    }

    /// The number of a site's window for such accesses that span so many bytes.
    pub(super) fn window(&mut self, reach: Reach, span: u32) -> u32 {
        let count = self.job.windows + self.windows.len() as u32;
        let number = *self.windows.entry((reach.site, span, reach.write, reach.sum)).or_insert(count);
        self.out.windows = self.job.windows + self.windows.len() as u32;
        number
    }

    /// Whether a pattern's accesses are checked together: they lie in one memory, and all are aligned if one is. Where lanes may be off,
    /// they must be evenly spaced too, so that the lowest and the highest of those that run can be told.
    pub(super) fn is_regular(&self, space: Space, align: u32, pattern: &Affine, whole: bool) -> bool {
        self.is_together(space, align, pattern) && (whole || self.step_of(pattern).is_some())
    }

    /// Whether a pattern's accesses lie in one memory, and all are aligned if one is.
    pub(super) fn is_together(&self, space: Space, align: u32, pattern: &Affine) -> bool {
        space != Space::Local && pattern.lanes.iter().all(|lane| i64::from(*lane) % i64::from(align) == 0)
    }

    /// By how much a lane is behind the one before, if that is the same everywhere (in a chunk, if each has a base).
    fn step_of(&self, pattern: &Affine) -> Option<i64> {
        let group = if pattern.by_chunk { self.width as usize } else { self.lanes as usize };
        let step = pattern.lanes[1] - pattern.lanes[0];
        let even = |lanes: &[i32]| lanes.windows(2).all(|pair| pair[1] - pair[0] == step);
        pattern.lanes.chunks(group).all(even).then_some(i64::from(step))
    }

    /// For how many bytes from its first address a window is kept: all that are compared at once; where the ends are compared apart, one.
    pub(super) fn window_span(&self, reach: Reach, addresses: &Addresses, whole: bool) -> u32 {
        let own = (reach.hi - reach.lo) as u32;
        match addresses {
            Addresses::Affine(_, pattern) if self.is_regular(reach.space, reach.align, pattern, whole) => {
                if !whole {
                    return 1;
                }
                let lanes = &pattern.lanes;
                let (low, high) =
                    (lanes.iter().min().copied().unwrap_or(0), lanes.iter().max().copied().unwrap_or(0));
                (high - low) as u32 + own
            }
            Addresses::Rows(_, pattern) if self.is_regular(reach.space, reach.align, pattern, whole) => {
                let lanes = &pattern.lanes;
                let (low, high) =
                    (lanes.iter().min().copied().unwrap_or(0), lanes.iter().max().copied().unwrap_or(0));
                (high - low) as u32 + own
            }
            Addresses::Rows(..)
            | Addresses::Same(_)
            | Addresses::Affine(..)
            | Addresses::ScaledIndex(_)
            | Addresses::Each(_) => own,
        }
    }

    /// Whether all that lanes of the mask reach from the addresses on fits its bounds.
    pub(super) fn fits(
        &mut self,
        reach: Reach,
        addresses: &Addresses,
        mask: Value,
        whole: bool,
    ) -> Option<Value> {
        let (inside, odd) = self.is_inside_and_odd(reach, addresses, mask, whole)?;
        Some(self.both(Some(inside), self.is_even(odd)))
    }

    /// The same, but for whether the addresses are multiples of what they must be; and a number that is zero if they are, or `None` if it is
    /// known, or part of the first answer.
    pub(super) fn is_inside_and_odd(
        &mut self,
        reach: Reach,
        addresses: &Addresses,
        mask: Value,
        whole: bool,
    ) -> Option<(Value, Option<Value>)> {
        if self.is_inside(reach, addresses) {
            return Some((self.b.const_int(self.int(1), 1), None));
        }
        if let Some(fits) = self.first_fit(reach, addresses) {
            return Some((fits, None));
        }
        let regular = |pattern: &Affine| whole && self.is_together(reach.space, reach.align, pattern);
        if let Addresses::Rows(rows, pattern) = addresses
            && !regular(pattern)
        {
            let unrolled = self.unrolled(*rows, pattern);
            return self.is_inside_and_odd(reach, &unrolled, mask, whole);
        }
        // Windows are those of the copy under the mask, which renews them.
        let apart = whole && self.is_unmasked();
        let span = self.window_span(reach, addresses, whole && !apart);
        let (bias, limit) = self.bounds(reach, span)?;
        let align = u64::from(reach.align);
        let odd = |emit: &Self, address: Value| (align > 1).then(|| emit.b.and(address, emit.c64(align - 1)));
        let inside = |emit: &Self, address: Value, more: i64| {
            let first = emit.b.add(address, emit.c64(more as u64));
            let from = emit.b.add(first, bias);
            emit.b.icmp(IntPred::Ult, from, limit)
        };
        match addresses {
            Addresses::Same(address) => Some((inside(self, *address, reach.lo), odd(self, *address))),
            Addresses::Rows([base, stride], pattern) => {
                let near = self.is_near(*stride);
                let (low, high) = self.row_ends([*base, *stride], pattern);
                let (low, high) = (inside(self, low, reach.lo), inside(self, high, reach.lo));
                let fits = self.both(Some(self.b.and(low, high)), near);
                Some((fits, odd(self, self.b.or(*base, *stride))))
            }
            Addresses::Affine(bases, pattern)
                if self.is_regular(reach.space, reach.align, pattern, whole) =>
            {
                let (mut all, mut any) = (None, None);
                for (c, base) in bases.iter().enumerate() {
                    let fits = if apart {
                        let (low, high) = (pattern.lanes.iter().min()?, pattern.lanes.iter().max()?);
                        let low = inside(self, *base, i64::from(*low) + reach.lo);
                        let high = inside(self, *base, i64::from(*high) + reach.hi - 1);
                        self.b.and(low, high)
                    } else if whole {
                        let low = pattern.lanes.iter().min().copied().unwrap_or(0);
                        inside(self, *base, i64::from(low) + reach.lo)
                    } else {
                        let step = self.step_of(pattern)?;
                        let (lanes, low, high) = self.running(mask, pattern.by_chunk.then_some(c as u32));
                        let (low, high) = if step < 0 { (high, low) } else { (low, high) };
                        let at = |emit: &Self, lane: Value| {
                            let lane = emit.b.zext(lane, emit.int(64));
                            let more = emit.b.mul(lane, emit.c64(step as u64));
                            emit.b.add(*base, more)
                        };
                        let (low, high) = (at(self, low), at(self, high));
                        let (low, high) = (inside(self, low, reach.lo), inside(self, high, reach.hi - 1));
                        let fits = self.b.and(low, high);
                        let none = self.b.icmp(IntPred::Eq, lanes, self.b.zero(lanes.ty()));
                        self.b.or(fits, none)
                    };
                    all = Some(self.both(all, Some(fits)));
                    any = self.either(any, odd(self, *base));
                }
                Some((all?, any))
            }
            Addresses::ScaledIndex(spread) if spread.scale.is_multiple_of(align) => {
                Some((self.scaled_index_fits(reach, spread, (bias, limit), (!whole).then_some(mask)), None))
            }
            // Mostly all lanes would fit, whether they run or not.
            Addresses::Affine(bases, pattern) if self.is_together(reach.space, reach.align, pattern) => {
                let (low, high) = (pattern.lanes.iter().min()?, pattern.lanes.iter().max()?);
                let mut all = None;
                for base in bases {
                    let low = inside(self, *base, i64::from(*low) + reach.lo);
                    let high = inside(self, *base, i64::from(*high) + reach.lo);
                    let fits = self.both(Some(self.b.and(low, high)), self.is_even(odd(self, *base)));
                    all = Some(self.both(all, Some(fits)));
                }
                let here = self.b.current_block();
                let each = self.b.append_block(self.function, "each");
                let known = self.b.append_block(self.function, "known");
                self.b.cond_br(all?, known, each, Likely::Yes);
                self.b.position_at_end(each);
                let chunks = self.each(addresses);
                let fits = self.each_fits(reach, &chunks, (bias, limit), Some(mask))?;
                let there = self.b.current_block();
                self.b.br(known);
                self.b.position_at_end(known);
                let phi = self.b.phi(self.int(1));
                self.b.add_incoming(phi, self.b.const_int(self.int(1), 1), here);
                self.b.add_incoming(phi, fits, there);
                Some((phi, None))
            }
            Addresses::Affine(..) | Addresses::ScaledIndex(_) | Addresses::Each(_) => {
                let chunks = self.each(addresses);
                let fits = self.each_fits(reach, &chunks, (bias, limit), (!whole).then_some(mask))?;
                Some((fits, None))
            }
        }
    }

    /// Whether what each lane of the mask reaches from its address on lies between bounds, of which there are `limit` from where `bias` makes zero on.
    fn each_fits(
        &self,
        reach: Reach,
        addresses: &[Value],
        (bias, limit): (Value, Value),
        mask: Option<Value>,
    ) -> Option<Value> {
        let align = u64::from(reach.align);
        let splat = |value| self.b.splat(value, self.width);
        let mut bad = None;
        for (c, chunk) in addresses.iter().copied().enumerate() {
            let first =
                if reach.lo == 0 { chunk } else { self.b.add(chunk, splat(self.c64(reach.lo as u64))) };
            let from = if matches!(reach.space, Space::Shared | Space::Local) {
                first
            } else {
                self.b.add(first, splat(bias))
            };
            let mut wrong = self.b.icmp(IntPred::Uge, from, splat(limit));
            if align > 1 {
                let odd = self.b.and(chunk, splat(self.c64(align - 1)));
                let odd = self.b.icmp(IntPred::Ne, odd, splat(self.c64(0)));
                wrong = self.b.or(wrong, odd);
            }
            if let Some(mask) = mask {
                let lanes = self.mask_chunk(mask, c as u32);
                wrong = self.b.and(wrong, lanes);
            }
            bad = Some(match bad {
                None => wrong,
                Some(others) => self.b.or(others, wrong),
            });
        }
        let bad = self.any(bad?);
        Some(self.b.not(bad))
    }

    /// The lanes of a mask (or of its chunk, from bit 0 on), the lowest and the highest of them, which is a lane too if there are none.
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

    /// Whether all accesses fit their bounds, and the addresses of the process.
    pub(super) fn places(
        &mut self,
        site: Site,
        access: Access,
        addresses: &Addresses,
        op: &Op,
    ) -> Option<(Value, Addresses)> {
        let bytes = access.bytes();
        let Access { space, write, sum, .. } = access;
        let reach = Reach { site, space, write, sum, lo: 0, hi: bytes.into(), align: bytes };
        let (mask, whole) = (self.scalar(op.uses[0]), self.whole(op));
        let fits = self.fits(reach, addresses, mask, whole)?;
        Some((fits, self.placed(access, addresses)?))
    }

    /// Addresses as those of the process.
    pub(super) fn placed(&mut self, access: Access, addresses: &Addresses) -> Option<Addresses> {
        if access.space == Space::Local {
            let (origin, stride) =
                (self.load64(offset_of!(Frame, local)), self.load64(offset_of!(Frame, local) + 8));
            if let Addresses::Same(address) = addresses {
                let base = self.b.add(origin, *address);
                let step = self.b.trunc(stride, self.int(32));
                let index = |c: u32| {
                    let lanes: Vec<u64> = (0..self.width).map(|l| u64::from(c * self.width + l)).collect();
                    self.b.mul(self.b.const_ints(self.int(32), &lanes), self.b.splat(step, self.width))
                };
                // A warp's local memory is less than 2 GiB.
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
        let origin = match access.space {
            Space::Shared => self.shared[0],
            _ => self.c64(0),
        };
        let scalar = |place: &Value| self.b.add(*place, origin);
        Some(match addresses {
            Addresses::Same(address) => Addresses::Same(scalar(address)),
            Addresses::Affine(bases, pattern) => {
                Addresses::Affine(bases.iter().map(scalar).collect(), pattern.clone())
            }
            Addresses::Rows([base, stride], pattern) => self.by_chunk([scalar(base), *stride], pattern),
            Addresses::ScaledIndex(spread) => {
                Addresses::ScaledIndex(ScaledIndex { base: scalar(&spread.base), ..spread.clone() })
            }
            Addresses::Each(chunks) => {
                let origin = self.b.splat(origin, self.width);
                Addresses::Each(chunks.iter().map(|chunk| self.b.add(*chunk, origin)).collect())
            }
        })
    }

    /// Whether the operation runs in all 32 lanes.
    pub(super) fn whole(&self, op: &Op) -> bool {
        self.full && self.scalar(op.uses[0]) == self.all_lanes()
    }

    /// Where an access of that many bytes may begin: what makes the first address zero, and how many there are.
    pub(super) fn bounds(&mut self, reach: Reach, span: u32) -> Option<(Value, Value)> {
        let room = |emit: &Self, bytes: Value, least: u64| {
            // What is there in any case needs no saturation.
            if u64::from(span) <= least {
                return emit.b.sub(bytes, emit.c64(u64::from(span) - 1));
            }
            let more = emit.b.add(bytes, emit.c64(1));
            emit.b.intrinsic("llvm.usub.sat", &[emit.int(64)], &[more, emit.c64(u64::from(span))])
        };
        let zero = self.c64(0);
        Some(match reach.space {
            Space::Shared => (zero, room(self, self.shared[1], self.job.layout.shared_bytes.into())),
            Space::Local => {
                // Lanes' own memories that are further apart than an index reaches are the interpreter's.
                let (stride, top) =
                    (self.load64(offset_of!(Frame, local) + 8), self.load64(offset_of!(Frame, local) + 16));
                let near = self.b.icmp(IntPred::Ult, stride, self.c64(1 << 26));
                let top = self.b.select(near, top, zero);
                (zero, room(self, top, 0))
            }
            Space::Global | Space::Const | Space::Generic => {
                let number = u64::from(self.window(reach, span));
                let windows = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, windows)), 8);
                let window = self.b.offset(windows, number * size_of::<Window>() as u64);
                let field =
                    |offset: usize| self.b.load(self.int(64), self.b.offset(window, offset as u64), 8);
                (field(offset_of!(Window, bias)), field(offset_of!(Window, limit)))
            }
            Space::Param | Space::Reg | Space::Sreg | Space::Tex => return None,
        })
    }
}

/// The number of a space, as the host's function wants it.
pub(crate) fn space_number(space: Space) -> u32 {
    match space {
        Space::Global => 0,
        Space::Const => 1,
        _ => 2,
    }
}

/// The space of a number.
pub(crate) fn space_of(number: u32) -> Space {
    match number {
        0 => Space::Global,
        1 => Space::Const,
        _ => Space::Generic,
    }
}
