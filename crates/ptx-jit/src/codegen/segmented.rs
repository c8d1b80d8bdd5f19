//! Segmented accesses: chunks whose lanes are in several rows, in CTAs that are eight threads wide or use
//! tiles of eight columns.
//!
//! Each row is one access of a half or a quarter of a chunk; a gather or scatter would cost an access for
//! each lane.
//!
//! Invariant: as for all accesses, only active lanes have been checked. Rows are stored in the order of their
//! lanes.

use super::load_store::Access;
use super::{Codegen, Repr};
use crate::llvm::Value;
use crate::wir::{Affine, Op};

impl Codegen<'_> {
    /// Loads from lanes that are in several rows. Returns for each element its chunks.
    pub(super) fn load_segmented(
        &mut self,
        access: Access,
        rows: [Value; 2],
        pattern: &Affine,
        op: &Op,
    ) -> Vec<Repr> {
        let count = access.count as usize;
        let mut all: Vec<Vec<Value>> = vec![Vec::new(); count];
        for c in 0..self.chunks() {
            let loaded = if self.is_off(c, op) {
                vec![self.b.zero(self.b.vec(self.int(access.bits), self.width)); count]
            } else if let Some(step) = self.step_in_symbolic_rows(access, pattern, c, op) {
                self.applied("access", "a load for each row of a chunk");
                self.load_runs(access, &self.runs_of(rows, pattern, c), step, c, op)
            } else {
                self.missed("access", "a gather: lanes of a row are not consecutive, or may be inactive");
                self.gathered(self.split_pointers(rows, pattern, c), c, access, access.bytes(), op)
            };
            for ((list, value), def) in all.iter_mut().zip(loaded).zip(&op.defs) {
                list.push(self.extend(value, access, *def));
            }
        }
        all.into_iter().map(Repr::Chunks).collect()
    }

    /// Stores to lanes that are in several rows. The values are given by chunk and element.
    pub(super) fn store_segmented(
        &mut self,
        access: Access,
        rows: [Value; 2],
        pattern: &Affine,
        op: &Op,
        values: &[Vec<Value>],
    ) {
        for (c, own) in (0..).zip(values) {
            if self.is_off(c, op) {
                continue;
            }
            if self.step_in_symbolic_rows(access, pattern, c, op) == Some(access.bytes()) {
                self.applied("access", "a store for each row of a chunk");
                self.store_runs(access, &self.runs_of(rows, pattern, c), c, op, own);
            } else {
                self.missed("access", "a scatter: lanes of a row are not consecutive, or may be inactive");
                self.scattered(self.split_pointers(rows, pattern, c), c, access, op, own);
            }
        }
    }

    /// The distance between neighbouring lanes in the rows of a chunk: the bytes of a lane's access, or zero.
    /// `None`: any other distance; or lanes may be inactive and a row access would cover more than the active
    /// lanes' elements.
    fn step_in_symbolic_rows(&self, access: Access, pattern: &Affine, c: u32, op: &Op) -> Option<u32> {
        let (width, start) = (self.width as usize, (c * self.width) as usize);
        let lanes = &pattern.lanes[start..start + width];
        let has = |step: u32| {
            let next = |pair: &[i32]| pair[1] - pair[0] == step as i32;
            lanes.chunks(pattern.run(width)).all(|lanes| lanes.windows(2).all(next))
        };
        let (whole, bytes) = (self.is_on(c, op), access.bytes());
        match access.count {
            1 if has(bytes) => Some(bytes),
            _ if !whole => None,
            _ => [bytes, 0].into_iter().find(|step| has(*step)),
        }
    }

    /// The pointers of the lanes of a chunk.
    fn split_pointers(&self, rows: [Value; 2], pattern: &Affine, c: u32) -> Value {
        let rows = self.vector_of_rows(rows, pattern, c);
        self.b.int_to_ptr(self.add_lanes(rows, pattern, c))
    }

    /// The address of the first lane of each row of a chunk.
    fn runs_of(&self, rows: [Value; 2], pattern: &Affine, c: u32) -> Vec<Value> {
        let start = (c * self.width) as usize;
        let lanes = pattern.lanes[start..].iter().step_by(pattern.run(self.width as usize));
        let first = |(base, lane): (Value, &i32)| match lane {
            0 => base,
            lane => self.b.add(base, self.c64(i64::from(*lane) as u64)),
        };
        self.run_bases(rows, pattern, c).into_iter().zip(lanes).map(first).collect()
    }

    /// Loads the rows of a chunk, whose lanes are `step` bytes apart. Returns a vector for each element.
    fn load_runs(&mut self, access: Access, runs: &[Value], step: u32, c: u32, op: &Op) -> Vec<Value> {
        let run = self.width / runs.len() as u32;
        let element = self.int(access.bits);
        if step == 0 {
            let splat = |at: u32| {
                let more = self.c64((at * access.bits / 8).into());
                let load = |base: &Value| {
                    let from = self.b.int_to_ptr(if at == 0 { *base } else { self.b.add(*base, more) });
                    self.b.splat(self.b.load(element, from, access.bits / 8), run)
                };
                self.joined(runs.iter().map(load).collect())
            };
            return (0..access.count).map(splat).collect();
        }
        runs.iter().for_each(|base| self.fetch(*base, c, access));
        let load = |(at, base): (u32, &Value)| self.run_part(*base, (at * run, run), c, access, op);
        self.by_element(self.joined((0..).zip(runs).map(load).collect()), access)
    }

    /// Stores the rows of a chunk, whose lanes are consecutive.
    fn store_runs(&mut self, access: Access, runs: &[Value], c: u32, op: &Op, values: &[Value]) {
        let run = self.width / runs.len() as u32;
        runs.iter().for_each(|base| self.fetch(*base, c, access));
        let all = self.interleave(values);
        for (at, base) in (0..).zip(runs) {
            let pointer = self.b.int_to_ptr(*base);
            let own = self.b.slice(all, at * run * access.count, run * access.count);
            if self.is_on(c, op) {
                self.b.store(own, pointer, access.bytes());
            } else {
                let bits = self.mask_part((at * run, run), c, op);
                self.masked_store(own, pointer, access.bits / 8, bits);
            }
        }
    }
}
