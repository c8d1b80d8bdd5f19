//! Loads, stores and transpositions of 8x8 matrices, and asynchronous copies.
//!
//! A row of such a matrix is 16 bytes in memory, and four lanes of a register: a register is eight rows one
//! after the other. So a load assembles registers from whole rows, and `.trans` is a constant permutation of
//! halves.
//!
//! Invariants: all rows are in bounds before one is accessed. An asynchronous copy is complete when its
//! instruction has been executed, as in the interpreter; so waiting for copies takes no code.

use super::super::load_store::Addresses;
use super::super::{Codegen, LANES, Repr};
use super::permute::permute;
use crate::isel::matrix::has_rows_of_halves;
use crate::llvm::{IntPred, Value};
use crate::wir::access::Access;
use crate::wir::checks::Reach;
use crate::wir::{self, Op, Site};
use ptx::ir::{Addr, Base, Dst, Inst, RegClass, Src};
use ptx::isa::{Space, Word};
use ptx_exec::native::ExitCause;

/// Lanes that hold one row, of four words.
const ROW: u32 = 4;
/// Rows of a matrix.
const ROWS: u32 = 8;

/// For each half of a register that holds the transposed matrix, its place in the register that holds the
/// matrix.
fn transposed() -> Vec<usize> {
    let side = ROWS as usize;
    (0..side * side).map(|at| at % side * side + at / side).collect()
}

impl Codegen<'_> {
    /// `movmatrix`.
    pub(in super::super) fn move_matrix(&mut self, inst: &Inst, op: &Op) -> bool {
        let ([Src::Reg(_)], [Dst::Reg(_)]) = (inst.srcs.as_slice(), inst.dsts.as_slice()) else {
            return false;
        };
        if !has_rows_of_halves(&inst.mods) {
            return false;
        }
        if !self.is_whole_warp(op) {
            return false;
        }
        self.applied("matrix", "a constant permutation");
        let chunks: Vec<Value> = (0..self.chunks()).map(|c| self.chunk(op.uses[1], c)).collect();
        let chunks = self.transposed_matrix(&chunks);
        self.values.define(op.defs[0], Repr::Chunks(chunks));
        true
    }

    /// The transposed matrix of one register.
    fn transposed_matrix(&self, chunks: &[Value]) -> Vec<Value> {
        let halves = self.b.vec(self.int(16), 2 * self.width);
        let chunks: Vec<Value> = chunks.iter().map(|chunk| self.b.bitcast(*chunk, halves)).collect();
        let words = self.word_vector();
        permute(&self.b, &chunks, &transposed()).into_iter().map(|v| self.b.bitcast(v, words)).collect()
    }

    /// The access of `ldmatrix` and `stmatrix`: a row for each lane that gives an address.
    fn matrix_access(&self, inst: &Inst, write: bool) -> Option<Access> {
        let access = Access { bits: 32, count: ROW, signed: false, ..self.access_of(inst, write)? };
        matches!(access.space, Space::Shared | Space::Generic).then_some(access)
    }

    /// The condition that the rows of `count` matrices are in bounds, and their host addresses.
    fn rows_in_bounds(
        &mut self,
        (site, inst, op): (Site, &Inst, &Op),
        access: Access,
        addresses: &Addresses,
        count: u32,
    ) -> Option<(Value, Addresses)> {
        if access.space == Space::Local {
            return None;
        }
        let bytes = access.bytes();
        let reach = Reach {
            site,
            space: access.space,
            write: access.write,
            postponed: false,
            lo: 0,
            hi: bytes.into(),
            align: bytes,
        };
        // Other lanes give addresses that are not used.
        let lanes = self.new_mask(self.c32(u32::MAX >> (LANES - ROWS * count)));
        let fits = match self.is_inside_without_plan((site, inst, op), access) {
            true => self.b.const_int(self.int(1), 1),
            false => self.fits(reach, addresses, lanes, ROWS * count == LANES)?,
        };
        Some((fits, self.placed(access, addresses)?))
    }

    /// The pointers of some lanes.
    fn lane_pointers(&mut self, places: &Addresses, lanes: std::ops::Range<u32>) -> Vec<Value> {
        if let Addresses::Same(place) = places {
            return lanes.map(|_| self.b.int_to_ptr(*place)).collect();
        }
        let chunks = self.each(places);
        let lane = |lane: u32| self.b.extract(chunks[(lane / self.width) as usize], lane % self.width);
        lanes.map(|at| self.b.int_to_ptr(lane(at))).collect()
    }

    /// `ldmatrix`.
    pub(in super::super) fn load_matrix(&mut self, site: Site, inst: &Inst, op: &Op) -> bool {
        let count = op.defs.len() as u32;
        let registers =
            inst.dsts.iter().all(|dst| matches!(dst, Dst::Reg(reg) if reg.class == RegClass::R32));
        if !registers || inst.dsts.len() != op.defs.len() || !has_rows_of_halves(&inst.mods) {
            return false;
        }
        let Some(mut access) = self.matrix_access(inst, false) else { return false };
        if !self.is_whole_warp(op) {
            return false;
        }
        let mut next = 1;
        let Some(addresses) = self.addresses_without_plan(inst, op, &mut next, &mut access) else {
            return false;
        };
        let Some((fits, places)) = self.rows_in_bounds((site, inst, op), access, &addresses, count) else {
            return false;
        };
        self.applied("matrix", "one vector load for a row");
        if self.job.defined {
            return self.load_defined_matrix((site, inst, op), access, (fits, &places), &addresses);
        }
        let (fast, slow) = self.fork(fits);
        self.b.position_at_end(fast);
        let loaded: Vec<Vec<Value>> = (0..count)
            .map(|matrix| {
                let pointers = self.lane_pointers(&places, matrix * ROWS..(matrix + 1) * ROWS);
                let chunks = self.rows(&pointers);
                if inst.mods.has(Word::Trans) { self.transposed_matrix(&chunks) } else { chunks }
            })
            .collect();
        let fast_end = self.b.current_block();
        let done = self.b.append_block(self.function, "loaded");
        self.b.br(done);
        self.b.position_at_end(slow);
        let stepped = self.slow(site, inst, op, access, &addresses);
        let slow_end = self.b.current_block();
        self.b.br(done);
        self.b.position_at_end(done);
        for ((def, fast), slow) in op.defs.iter().zip(loaded).zip(stepped) {
            let Repr::Chunks(slow) = slow else { unreachable!("ptxvm bug: a load of two shapes") };
            let merge = |(a, b): (&Value, &Value)| {
                let phi = self.b.phi(a.ty());
                self.b.add_incoming(phi, *a, fast_end);
                self.b.add_incoming(phi, *b, slow_end);
                phi
            };
            let chunks = fast.iter().zip(&slow).map(merge).collect();
            self.values.define(*def, Repr::Chunks(chunks));
        }
        true
    }

    /// `ldmatrix`, which leaves native code if a row is out of bounds or has undefined bits.
    fn load_defined_matrix(
        &mut self,
        (site, inst, op): (Site, &Inst, &Op),
        access: Access,
        (fits, places): (Value, &Addresses),
        addresses: &Addresses,
    ) -> bool {
        let count = op.defs.len() as u32;
        let Access { space, write, .. } = access;
        let reach =
            Reach { site, space, write, postponed: false, lo: 0, hi: access.bytes().into(), align: 1 };
        let lanes = self.new_mask(self.c32(u32::MAX >> (LANES - ROWS * count)));
        let Some(()) = self.leave_out_of_bounds(fits, reach, addresses, lanes) else { return false };
        let shadow = self.shadow(places);
        let pointers = self.lane_pointers(&shadow, 0..ROWS * count);
        let ty = self.b.vec(self.int(32), ROW);
        let rows: Vec<Value> = pointers.iter().map(|at| self.b.load(ty, *at, 4 * ROW)).collect();
        let undefined = self.any_bit(&rows);
        let Some(()) = self.leave_if_any(site, &[undefined], ExitCause::Undefined) else { return false };
        for (matrix, def) in (0..).zip(&op.defs) {
            let pointers = self.lane_pointers(places, matrix * ROWS..(matrix + 1) * ROWS);
            let chunks = self.rows(&pointers);
            let chunks = if inst.mods.has(Word::Trans) { self.transposed_matrix(&chunks) } else { chunks };
            self.values.define(*def, Repr::Chunks(chunks));
        }
        true
    }

    /// A register of the eight rows at these pointers.
    fn rows(&self, pointers: &[Value]) -> Vec<Value> {
        let ty = self.b.vec(self.int(32), ROW);
        let mut rows: Vec<Value> = pointers.iter().map(|at| self.b.load(ty, *at, 4 * ROW)).collect();
        while rows[0].ty().lanes() < self.width {
            rows = rows.chunks(2).map(|pair| self.b.concat(pair[0], pair[1])).collect();
        }
        rows
    }

    /// `stmatrix`.
    pub(in super::super) fn store_matrix(&mut self, site: Site, inst: &Inst, op: &Op) -> bool {
        let Some(mut access) = self.matrix_access(inst, true) else { return false };
        let registers = inst.srcs.iter().skip(1).all(|src| matches!(src, Src::Reg(_)));
        if !registers || !has_rows_of_halves(&inst.mods) {
            return false;
        }
        if !self.is_whole_warp(op) {
            return false;
        }
        let mut next = 1;
        let Some(addresses) = self.addresses_without_plan(inst, op, &mut next, &mut access) else {
            return false;
        };
        let sources: Vec<wir::Value> = op.uses[next..].to_vec();
        let count = sources.len() as u32;
        if count + 1 != inst.srcs.len() as u32 {
            return false;
        }
        let mut matrices: Vec<Vec<Value>> = Vec::new();
        for source in sources {
            let chunks: Vec<Value> = (0..self.chunks()).map(|c| self.chunk(source, c)).collect();
            matrices.push(if inst.mods.has(Word::Trans) { self.transposed_matrix(&chunks) } else { chunks });
        }
        let Some((fits, places)) = self.rows_in_bounds((site, inst, op), access, &addresses, count) else {
            return false;
        };
        self.applied("matrix", "one vector store for a row");
        let (fast, slow) = self.fork(fits);
        self.b.position_at_end(fast);
        if self.job.defined {
            let shadow = self.shadow(&places);
            let zero = self.b.zero(self.b.vec(self.int(32), ROW));
            for pointer in self.lane_pointers(&shadow, 0..ROWS * count) {
                self.b.store(zero, pointer, 4 * ROW);
            }
        }
        for (matrix, chunks) in (0..).zip(matrices) {
            let pointers = self.lane_pointers(&places, matrix * ROWS..(matrix + 1) * ROWS);
            for (row, pointer) in (0..).zip(pointers) {
                let chunk = chunks[(row * ROW / self.width) as usize];
                let value =
                    if self.width == ROW { chunk } else { self.b.slice(chunk, row * ROW % self.width, ROW) };
                self.b.store(value, pointer, 4 * ROW);
            }
        }
        let done = self.b.append_block(self.function, "stored");
        self.b.br(done);
        self.b.position_at_end(slow);
        self.slow(site, inst, op, access, &addresses);
        self.b.br(done);
        self.b.position_at_end(done);
        true
    }

    /// `cp.async`. The fast path is for all lanes, which copy all of their bytes.
    pub(in super::super) fn copy_async(&mut self, site: Site, inst: &Inst, op: &Op) -> bool {
        let Some(Src::Imm(size)) = inst.srcs.get(2) else { return false };
        let size = *size as u32;
        if self.job.shape.team > 1 || !matches!(size, 4 | 8 | 16) || !self.is_one_address(inst, 1) {
            return false;
        }
        let access = |space, write| Access {
            space,
            bits: 32,
            count: size / 4,
            signed: false,
            write,
            postponed: false,
        };
        let (mut to_access, mut from_access) = (access(Space::Shared, true), access(Space::Global, false));
        let mut next = 1;
        let Some(to) = self.addresses_without_plan(inst, op, &mut next, &mut to_access) else { return false };
        let Some(Src::Addr(Addr { offset, .. })) = inst.srcs.get(1) else { return false };
        let name = op.uses[next];
        next += 1;
        let Some(from) = self.addresses_from(name, *offset, &mut from_access) else { return false };
        // Lanes that copy less are rare.
        let whole_size = match inst.srcs.get(3) {
            None | Some(Src::Absent) => None,
            Some(Src::Imm(bytes)) if *bytes >= u64::from(size) => None,
            Some(Src::Reg(reg)) if reg.class == RegClass::R32 => Some(self.all_at_least(op.uses[next], size)),
            Some(Src::Reg(reg)) if reg.class == RegClass::Pred => {
                let ignored = self.truths(op.uses[next], false);
                let ignored = self.word(ignored);
                Some(self.b.icmp(IntPred::Eq, ignored, self.b.zero(ignored.ty())))
            }
            Some(_) => return false,
        };
        let mask = self.scalar(op.uses[0]);
        let Some((fits_to, to_places)) = self.places(site, to_access, &to, op) else { return false };
        let Some((fits_from, from_places)) = self.places(site, from_access, &from, op) else { return false };
        let fits = self.b.and(fits_to, fits_from);
        let fits = self.both(Some(fits), whole_size);
        let fits = if self.whole(op) {
            fits
        } else {
            let all = self.b.icmp(IntPred::Eq, mask, self.b.ones(mask.ty()));
            self.b.and(fits, all)
        };
        self.applied("matrix", "one vector copy for a lane");
        let (fast, slow) = self.fork(fits);
        self.b.position_at_end(fast);
        self.copy_lanes(&to_places, &from_places, size);
        if self.job.defined {
            // Copies of undefined bytes are no mistake.
            self.copy_lanes(&self.shadow(&to_places), &self.shadow(&from_places), size);
        }
        let done = self.b.append_block(self.function, "copied");
        self.b.br(done);
        self.b.position_at_end(slow);
        self.slow(site, inst, op, from_access, &from);
        self.b.br(done);
        self.b.position_at_end(done);
        true
    }

    /// Copies the bytes of each lane.
    fn copy_lanes(&mut self, to: &Addresses, from: &Addresses, size: u32) {
        let ty = self.b.vec(self.int(32), size / 4);
        let [to, from] = [to, from].map(|places| self.lane_pointers(places, 0..LANES));
        let values: Vec<Value> = from.iter().map(|at| self.b.load(ty, *at, size)).collect();
        for (value, at) in values.iter().zip(&to) {
            self.b.store(*value, *at, size);
        }
    }

    /// Whether a source is an address in one register, with an offset.
    fn is_one_address(&self, inst: &Inst, at: usize) -> bool {
        matches!(inst.srcs.get(at), Some(Src::Addr(Addr { base: Base::Reg(_), index: None, .. })))
    }

    /// Whether a number is at least `least` in all lanes.
    fn all_at_least(&mut self, name: wir::Value, least: u32) -> Value {
        if self.is_scalar(name) {
            let value = self.scalar(name);
            return self.b.icmp(IntPred::Uge, value, self.c32(least));
        }
        let mut less: Option<Value> = None;
        for c in 0..self.chunks() {
            let chunk = self.chunk(name, c);
            let some = self.b.icmp(IntPred::Ult, chunk, self.b.const_splat(chunk.ty(), least.into()));
            less = Some(less.map_or(some, |others| self.b.or(others, some)));
        }
        let some = less.map_or(self.b.const_int(self.int(1), 0), |less| self.any(less));
        self.b.not(some)
    }
}
