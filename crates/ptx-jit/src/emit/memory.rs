//! Loads and stores.
//!
//! Invariant: an address is dereferenced only after it was compared with bounds that the host gave: of the CTA's shared memory, of the
//! warp's local memory, of the parameters, or the window of the site, which holds one live allocation. What fails the comparison goes to the
//! interpreter's step, which finds another allocation or the fault.

use super::inst::Lanes;
use super::{Emit, LANES, Origin, Rep};
use crate::frame::{Frame, Window};
use crate::llvm::{Block, IntPred, Likely, Value};
use crate::lower::Operand;
use crate::plan::{Class, Kind, Name, Op, Pattern, Site};
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Sem, Space, TyKind};
use std::mem::{offset_of, size_of};

/// What a load or store does, beside its address.
#[derive(Clone, Copy, Debug)]
struct Access {
    space: Space,
    /// Bits of an element.
    bits: u32,
    /// Elements of a lane.
    count: u32,
    /// Whether elements are extended with their sign.
    signed: bool,
    write: bool,
}

impl Access {
    /// Bytes of a lane.
    fn bytes(self) -> u32 {
        self.bits / 8 * self.count
    }
}

/// The addresses of an access, in its space.
enum Addresses {
    /// The same in all lanes.
    Same(Value),
    /// Bases and what the lanes add.
    Pattern(Vec<Value>, Pattern),
    /// Anything.
    Each(Vec<Value>),
}

impl Emit<'_> {
    fn access(&self, inst: &Inst, write: bool) -> Option<Access> {
        if inst.mods.sem() != Sem::Weak {
            return None;
        }
        let ty = inst.mods.ty();
        if ty.kind() == TyKind::Opaque || ty.bits() < 8 || ty.bits() > 64 {
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
        let count = u32::from(inst.mods.vec());
        let signed = ty.is_signed();
        Some(Access { space, bits: ty.bits(), count, signed, write })
    }

    /// The addresses of the first source; `next` counts registers. A generic access becomes one of the space that its address was made
    /// in.
    fn addresses(
        &mut self,
        inst: &Inst,
        op: &Op,
        next: &mut usize,
        access: &mut Access,
    ) -> Option<Addresses> {
        if self.job.program.address_size != ptx::check::module::AddressSize::Bits64 {
            return None;
        }
        let (reg, offset) = match inst.srcs.first()? {
            Src::Addr(Addr { base: Base::Reg(_), index: None, offset }) => (true, *offset),
            Src::Reg(_) => (true, 0),
            Src::Addr(addr @ Addr { index: None, .. }) => {
                return Some(Addresses::Same(self.symbol(addr)?));
            }
            _ => return None,
        };
        debug_assert!(reg);
        let name = op.uses[*next];
        *next += 1;
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
        Some(match self.class(name).clone() {
            Class::Uniform(_) | Class::Bottom => {
                let value = self.scalar(name);
                Addresses::Same(shift(self, value))
            }
            // A narrow pattern could wrap around.
            Class::Pattern(pattern) if !narrow => {
                let count = if pattern.by_chunk { self.chunks() } else { 1 };
                let mut bases = Vec::new();
                for c in 0..count {
                    let base = self.base(name, c)?;
                    bases.push(shift(self, base));
                }
                Addresses::Pattern(bases, *pattern)
            }
            Class::Pattern(_) | Class::Varying => {
                let mut chunks = Vec::new();
                for c in 0..self.chunks() {
                    let chunk = self.chunk(name, c);
                    chunks.push(shift(self, chunk));
                }
                Addresses::Each(chunks)
            }
        })
    }

    pub(super) fn ld(&mut self, site: Site, inst: &Inst, op: &Op) -> bool {
        let Some(mut access) = self.access(inst, false) else { return false };
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
        let uniform = self.class(op.defs[0]).is_uniform();
        if uniform && !matches!(addresses, Addresses::Same(_)) {
            return false;
        }
        let Some((fits, places)) = self.places(site, access, &addresses, op) else { return false };
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
                (Rep::Scalar(a), Rep::Scalar(b)) => Rep::Scalar(merge(&a, &b)),
                (Rep::Chunks(a), Rep::Chunks(b)) => {
                    Rep::Chunks(a.iter().zip(&b).map(|(a, b)| merge(a, b)).collect())
                }
                _ => unreachable!("ptxvm bug: a load of two shapes"),
            };
            self.reps[def.0 as usize] = Some(rep);
        }
        true
    }

    fn is_guarded(&self, inst: &Inst) -> bool {
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
        let mut next = 1;
        let Some(addresses) = self.addresses(inst, op, &mut next, &mut access) else { return false };
        if let Addresses::Same(_) = addresses
            && access.space != Space::Local
            && !self.full
        {
            return false;
        }
        if self.is_guarded(inst) && matches!(addresses, Addresses::Same(_)) && access.space != Space::Local {
            return false;
        }
        // The values, in chunks.
        let mut values: Vec<Vec<Value>> = Vec::new();
        for c in 0..self.chunks() {
            let Some(operands) = self.values(inst, op, c, next) else { return false };
            values.push(operands.into_iter().map(|value| self.narrow(value, access)).collect());
        }
        let Some((fits, places)) = self.places(site, access, &addresses, op) else { return false };
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

    /// The sources behind the address, of a chunk.
    fn values(&mut self, inst: &Inst, op: &Op, chunk: u32, mut next: usize) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        for src in inst.srcs.get(1..)? {
            let ty = self.b.vec(self.int(64), self.width);
            values.push(match self.operand(src, op, &mut next, Lanes::Chunk(chunk), inst)? {
                Operand::Value(value) => value,
                Operand::Imm(bits) => self.b.const_splat(ty, bits),
                Operand::Absent => return None,
            });
        }
        Some(values)
    }

    /// A register's value as an element of memory.
    fn narrow(&self, value: Value, access: Access) -> Value {
        let ty = self.b.like(value.ty(), self.int(access.bits));
        let have = value.ty().element_bits();
        if have > access.bits {
            self.b.trunc(value, ty)
        } else if have < access.bits {
            self.b.zext(value, ty)
        } else {
            value
        }
    }

    /// An element of memory as a register's value.
    fn extend(&self, value: Value, access: Access, def: Name) -> Value {
        let want = self.scalar_type(self.kind(def)).element_bits();
        let ty = self.b.like(value.ty(), self.int(want));
        if want <= access.bits {
            if want == access.bits { value } else { self.b.trunc(value, ty) }
        } else if access.signed {
            self.b.sext(value, ty)
        } else {
            self.b.zext(value, ty)
        }
    }

    fn fork(&mut self, fits: Value) -> (Block, Block) {
        let fast = self.b.append_block(self.function, "fast");
        let slow = self.b.append_block(self.function, "slow");
        self.b.cond_br(fits, fast, slow, Likely::Yes);
        (fast, slow)
    }

    /// Renews the window of the site, and leaves the access to the interpreter.
    fn slow(&mut self, site: Site, inst: &Inst, op: &Op, access: Access, addresses: &Addresses) -> Vec<Rep> {
        if !matches!(access.space, Space::Shared | Space::Local) {
            let (low, span) = self.reach_of(access, addresses);
            let first = match addresses {
                Addresses::Same(address) => *address,
                Addresses::Pattern(bases, _) => bases[0],
                Addresses::Each(chunks) => {
                    // The address of a lane that runs.
                    let mask = self.scalar(op.uses[0]);
                    let lane = self.lowest(mask);
                    let place = self.scratch.expect("made at the start");
                    for (c, chunk) in chunks.iter().enumerate() {
                        let at = c as u64 * u64::from(self.width) * 8;
                        self.b.store(*chunk, self.b.offset(place, at), 8);
                    }
                    let offset = self.b.mul(lane, self.c32(8));
                    let offset = self.b.zext(offset, self.int(64));
                    self.b.load(self.int(64), self.b.gep(place, offset), 8)
                }
            };
            let address = self.b.add(first, self.c64(i64::from(low) as u64));
            let window = self.window(site, span);
            let user = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, user)), 8);
            let (word, long) = (self.int(32), self.int(64));
            let void = self.b.fn_type(None, &[self.b.ptr(), word, word, long, word]);
            let how = space_number(access.space) | u32::from(access.write) << 8;
            let args = [user, self.c32(window), self.c32(how), address, self.c32(span)];
            self.b.call_address(void, self.job.callbacks.reach, &args);
        }
        self.stepped(site, inst, op, false)
    }

    /// The number of a site's window for accesses that span so many bytes.
    fn window(&mut self, site: Site, span: u32) -> u32 {
        let count = self.windows.len() as u32;
        let number = *self.windows.entry((site, span)).or_insert(count);
        self.out.windows = self.windows.len() as u32;
        number
    }

    /// The lowest lane constant of a pattern, and the bytes from there to the end of the highest lane's access: of all lanes, or of the
    /// largest chunk where each has its own base.
    fn span(&self, pattern: &Pattern, access: Access) -> (i32, u32) {
        let lanes = &pattern.lanes;
        let (low, high) =
            (lanes.iter().min().copied().unwrap_or(0), lanes.iter().max().copied().unwrap_or(0));
        (low, (high - low) as u32 + access.bytes())
    }

    /// Whether a pattern's accesses are checked together: they lie in one memory, and all are aligned if one is.
    fn is_regular(&self, access: Access, pattern: &Pattern) -> bool {
        let bytes = i64::from(access.bytes());
        access.space != Space::Local && pattern.lanes.iter().all(|lane| i64::from(*lane) % bytes == 0)
    }

    /// What is compared with the bounds at once: how far from the base it begins, and its bytes. A window holds for this size only.
    fn reach_of(&self, access: Access, addresses: &Addresses) -> (i32, u32) {
        match addresses {
            Addresses::Pattern(_, pattern) if self.is_regular(access, pattern) => self.span(pattern, access),
            Addresses::Same(_) | Addresses::Pattern(..) | Addresses::Each(_) => (0, access.bytes()),
        }
    }

    /// Whether all accesses fit their bounds, and the addresses of the process.
    fn places(
        &mut self,
        site: Site,
        access: Access,
        addresses: &Addresses,
        op: &Op,
    ) -> Option<(Value, Addresses)> {
        let (start, delta, limit) = self.bounds(site, access, addresses)?;
        let bytes = u64::from(access.bytes());
        let check = |emit: &Self, address: Value, low: i32| {
            let lowest =
                if low == 0 { address } else { emit.b.add(address, emit.c64(i64::from(low) as u64)) };
            let from = emit.b.sub(lowest, start);
            let inside = emit.b.icmp(IntPred::Ult, from, limit);
            if bytes == 1 {
                return inside;
            }
            let odd = emit.b.and(address, emit.c64(bytes - 1));
            let aligned = emit.b.icmp(IntPred::Eq, odd, emit.c64(0));
            emit.b.and(inside, aligned)
        };
        match addresses {
            Addresses::Same(address) if access.space == Space::Local => {
                let fits = check(self, *address, 0);
                let (origin, stride) =
                    (self.load64(offset_of!(Frame, local)), self.load64(offset_of!(Frame, local) + 8));
                let base = self.b.add(origin, *address);
                let chunks = (0..self.chunks()).map(|c| self.strided(base, stride, c)).collect();
                Some((fits, Addresses::Each(chunks)))
            }
            Addresses::Same(address) => {
                let fits = check(self, *address, 0);
                Some((fits, Addresses::Same(self.b.add(*address, delta))))
            }
            Addresses::Pattern(bases, pattern) if self.is_regular(access, pattern) => {
                let (low, _) = self.span(pattern, access);
                let mut fits = None;
                let mut places = Vec::new();
                for base in bases {
                    let one = check(self, *base, low);
                    fits = Some(match fits {
                        None => one,
                        Some(others) => self.b.and(others, one),
                    });
                    places.push(self.b.add(*base, delta));
                }
                Some((fits?, Addresses::Pattern(places, pattern.clone())))
            }
            Addresses::Pattern(..) | Addresses::Each(_) => {
                let chunks: Vec<Value> = match addresses {
                    Addresses::Each(chunks) => chunks.clone(),
                    Addresses::Pattern(bases, pattern) => {
                        (0..self.chunks()).map(|c| self.expand(bases, pattern, c)).collect()
                    }
                    Addresses::Same(_) => return None,
                };
                let mask = self.scalar(op.uses[0]);
                let mut bad = None;
                let mut places = Vec::new();
                for (c, chunk) in chunks.iter().enumerate() {
                    let c = c as u32;
                    let splat = |value| self.b.splat(value, self.width);
                    let from = self.b.sub(*chunk, splat(start));
                    let outside = self.b.icmp(IntPred::Uge, from, splat(limit));
                    let wrong = if bytes == 1 {
                        outside
                    } else {
                        let odd = self.b.and(*chunk, splat(self.c64(bytes - 1)));
                        let odd = self.b.icmp(IntPred::Ne, odd, splat(self.c64(0)));
                        self.b.or(outside, odd)
                    };
                    let wrong = if self.whole(op) {
                        wrong
                    } else {
                        let lanes = self.mask_chunk(mask, c);
                        self.b.and(wrong, lanes)
                    };
                    bad = Some(match bad {
                        None => wrong,
                        Some(others) => self.b.or(others, wrong),
                    });
                    places.push(if access.space == Space::Local {
                        let (origin, stride) = (
                            self.load64(offset_of!(Frame, local)),
                            self.load64(offset_of!(Frame, local) + 8),
                        );
                        let own = self.strided(origin, stride, c);
                        self.b.add(own, *chunk)
                    } else {
                        self.b.add(*chunk, splat(delta))
                    });
                }
                let bad = self.any(bad?);
                Some((self.b.not(bad), Addresses::Each(places)))
            }
        }
    }

    /// Whether the operation runs in all 32 lanes.
    fn whole(&self, op: &Op) -> bool {
        self.full && self.scalar(op.uses[0]).is_constant()
    }

    /// `base + lane * stride` in a chunk.
    pub(super) fn strided(&self, base: Value, stride: Value, chunk: u32) -> Value {
        let lanes: Vec<u64> = (0..self.width).map(|l| u64::from(chunk * self.width + l)).collect();
        let lanes = self.b.const_ints(self.int(64), &lanes);
        let steps = self.b.mul(lanes, self.b.splat(stride, self.width));
        self.b.add(steps, self.b.splat(base, self.width))
    }

    /// A pattern of addresses as a vector.
    fn expand(&self, bases: &[Value], pattern: &Pattern, chunk: u32) -> Value {
        let base = if pattern.by_chunk { bases[chunk as usize] } else { bases[0] };
        let start = (chunk * self.width) as usize;
        let lanes: Vec<u64> =
            pattern.lanes[start..start + self.width as usize].iter().map(|l| i64::from(*l) as u64).collect();
        let lanes = self.b.const_ints(self.int(64), &lanes);
        self.b.add(self.b.splat(base, self.width), lanes)
    }

    /// Where the access may begin: the first address, what makes it one of the process, and how many addresses there are.
    fn bounds(&mut self, site: Site, access: Access, addresses: &Addresses) -> Option<(Value, Value, Value)> {
        let (_, span) = self.reach_of(access, addresses);
        let room = |emit: &Self, bytes: Value| {
            let more = emit.b.add(bytes, emit.c64(1));
            emit.b.intrinsic("llvm.usub.sat", &[emit.int(64)], &[more, emit.c64(u64::from(span))])
        };
        let zero = self.c64(0);
        Some(match access.space {
            Space::Shared => (zero, self.shared[0], room(self, self.shared[1])),
            Space::Local => {
                let top = self.load64(offset_of!(Frame, local) + 16);
                (zero, zero, room(self, top))
            }
            Space::Global | Space::Const | Space::Generic => {
                let number = u64::from(self.window(site, span));
                let windows = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, windows)), 8);
                let window = self.b.offset(windows, number * size_of::<Window>() as u64);
                let field =
                    |offset: usize| self.b.load(self.int(64), self.b.offset(window, offset as u64), 8);
                (field(offset_of!(Window, start)), zero, field(offset_of!(Window, limit)))
            }
            Space::Param | Space::Reg | Space::Sreg | Space::Tex => return None,
        })
    }

    /// Loads; a vector of elements for each destination.
    fn load_places(&mut self, access: Access, places: &Addresses, op: &Op, uniform: bool) -> Vec<Rep> {
        let (count, element) = (access.count as usize, self.int(access.bits));
        let bytes = access.bits / 8;
        match places {
            Addresses::Same(place) => {
                let pointer = self.b.int_to_ptr(*place);
                let mut reps = Vec::new();
                for at in 0..count {
                    let from = self.b.offset(pointer, at as u64 * u64::from(bytes));
                    let value = self.b.load(element, from, bytes);
                    let value = self.extend(value, access, op.defs[at]);
                    reps.push(if uniform {
                        Rep::Scalar(value)
                    } else {
                        let vector = self.b.splat(value, self.width);
                        Rep::Chunks(vec![vector; self.chunks() as usize])
                    });
                }
                reps
            }
            Addresses::Pattern(bases, pattern) => {
                let mut all: Vec<Vec<Value>> = vec![Vec::new(); count];
                for c in 0..self.chunks() {
                    let lanes = self.relative(pattern, c);
                    let first = pattern.lanes[(c * self.width) as usize];
                    let base = if pattern.by_chunk { bases[c as usize] } else { bases[0] };
                    let base = self.b.add(base, self.c64(i64::from(first) as u64));
                    let step = access.bytes() as i32;
                    let loaded = if lanes.iter().all(|l| *l == 0) {
                        let pointer = self.b.int_to_ptr(base);
                        let value = |at: usize| {
                            let from = self.b.offset(pointer, at as u64 * u64::from(bytes));
                            let value = self.b.load(element, from, bytes);
                            self.b.splat(value, self.width)
                        };
                        (0..count).map(value).collect()
                    } else if lanes.iter().enumerate().all(|(i, l)| *l == i as i32 * step) {
                        self.run(base, access)
                    } else {
                        let added: Vec<u64> = lanes.iter().map(|l| i64::from(*l) as u64).collect();
                        let added = self.b.const_ints(self.int(64), &added);
                        let chunk = self.b.add(self.b.splat(base, self.width), added);
                        self.gathered(chunk, c, access, op)
                    };
                    for ((list, value), def) in all.iter_mut().zip(loaded).zip(&op.defs) {
                        list.push(self.extend(value, access, *def));
                    }
                }
                all.into_iter().map(Rep::Chunks).collect()
            }
            Addresses::Each(chunks) => {
                let mut all: Vec<Vec<Value>> = vec![Vec::new(); count];
                for (c, chunk) in chunks.iter().enumerate() {
                    let loaded = self.gathered(*chunk, c as u32, access, op);
                    for ((list, value), def) in all.iter_mut().zip(loaded).zip(&op.defs) {
                        list.push(self.extend(value, access, *def));
                    }
                }
                all.into_iter().map(Rep::Chunks).collect()
            }
        }
    }

    /// Elements one after another, lane by lane.
    fn run(&self, base: Value, access: Access) -> Vec<Value> {
        let pointer = self.b.int_to_ptr(base);
        let ty = self.b.vec(self.int(access.bits), self.width * access.count);
        let all = self.b.load(ty, pointer, access.bytes());
        if access.count == 1 {
            return vec![all];
        }
        let pick = |at: u32| {
            let indices: Vec<i32> = (0..self.width).map(|lane| (lane * access.count + at) as i32).collect();
            self.b.permute(all, &indices)
        };
        (0..access.count).map(pick).collect()
    }

    fn gathered(&self, chunk: Value, c: u32, access: Access, op: &Op) -> Vec<Value> {
        let ty = self.b.vec(self.int(access.bits), self.width);
        let lanes = if self.whole(op) {
            self.b.ones(self.bits_type())
        } else {
            self.mask_chunk(self.scalar(op.uses[0]), c)
        };
        let pointers = self.b.int_to_ptr(chunk);
        let load = |at: u32| {
            let offset = self.c64(u64::from(at * access.bits / 8));
            let pointers = if at == 0 { pointers } else { self.b.gep(pointers, offset) };
            self.b.gather(pointers, access.bits / 8, lanes, self.b.zero(ty))
        };
        (0..access.count).map(load).collect()
    }

    /// Stores values given by chunk and element.
    fn store_places(&mut self, access: Access, places: &Addresses, op: &Op, values: &[Vec<Value>]) {
        let bytes = access.bits / 8;
        let mask = self.scalar(op.uses[0]);
        let whole = self.whole(op);
        match places {
            Addresses::Same(place) => {
                // All lanes run: the last one's value stays.
                let pointer = self.b.int_to_ptr(*place);
                let last = values.last().expect("there are chunks");
                for (at, value) in last.iter().enumerate() {
                    let value = self.b.extract(*value, self.width - 1);
                    self.b.store(value, self.b.offset(pointer, at as u64 * u64::from(bytes)), bytes);
                }
            }
            Addresses::Pattern(bases, pattern) => {
                for c in 0..self.chunks() {
                    let lanes = self.relative(pattern, c);
                    let first = pattern.lanes[(c * self.width) as usize];
                    let base = if pattern.by_chunk { bases[c as usize] } else { bases[0] };
                    let base = self.b.add(base, self.c64(i64::from(first) as u64));
                    let step = access.bytes() as i32;
                    if lanes.iter().enumerate().all(|(i, l)| *l == i as i32 * step) {
                        let pointer = self.b.int_to_ptr(base);
                        let all = self.interleave(&values[c as usize]);
                        if whole {
                            self.b.store(all, pointer, access.bytes());
                        } else {
                            let bits = self.mask_chunk(mask, c);
                            let bits = self.interleave(&vec![bits; access.count as usize]);
                            self.b.masked_store(all, pointer, bytes, bits);
                        }
                    } else {
                        let added: Vec<u64> = lanes.iter().map(|l| i64::from(*l) as u64).collect();
                        let added = self.b.const_ints(self.int(64), &added);
                        let chunk = self.b.add(self.b.splat(base, self.width), added);
                        self.scattered(chunk, c, access, op, &values[c as usize]);
                    }
                }
            }
            Addresses::Each(chunks) => {
                for (c, chunk) in chunks.iter().enumerate() {
                    self.scattered(*chunk, c as u32, access, op, &values[c]);
                }
            }
        }
    }

    /// Elements of several vectors in turn.
    fn interleave(&self, vectors: &[Value]) -> Value {
        let width = self.width as i32;
        match vectors {
            [one] => *one,
            [a, b] => {
                let indices: Vec<i32> = (0..2 * width).map(|i| i / 2 + i % 2 * width).collect();
                self.b.shuffle(*a, *b, &indices)
            }
            many => {
                let mut level: Vec<Value> = many.to_vec();
                let count = level.len() as i32;
                while level.len() > 1 {
                    level = level.chunks(2).map(|pair| self.b.concat(pair[0], pair[1])).collect();
                }
                let indices: Vec<i32> = (0..count * width).map(|i| i / count + i % count * width).collect();
                self.b.permute(level[0], &indices)
            }
        }
    }

    fn scattered(&self, chunk: Value, c: u32, access: Access, op: &Op, values: &[Value]) {
        let lanes = if self.whole(op) {
            self.b.ones(self.bits_type())
        } else {
            self.mask_chunk(self.scalar(op.uses[0]), c)
        };
        let pointers = self.b.int_to_ptr(chunk);
        for (at, value) in values.iter().enumerate() {
            let offset = self.c64(at as u64 * u64::from(access.bits / 8));
            let pointers = if at == 0 { pointers } else { self.b.gep(pointers, offset) };
            self.b.scatter(*value, pointers, access.bits / 8, lanes);
        }
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

const _: () = assert!(LANES == 32);
