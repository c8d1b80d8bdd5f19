//! Code of segmented accesses: each row of a chunk is one access of a half or a quarter of the chunk.
//!
//! Invariant: as for all accesses, only active lanes have been checked. Rows are stored in the order of their
//! lanes.

use super::Codegen;
use super::mask::Mask;
use crate::llvm::Value;
use crate::wir::Affine;
use crate::wir::access::{Chunk, Plan};

impl Codegen<'_> {
    /// Loads a chunk whose lanes are in several rows. Returns a vector for each element.
    pub(super) fn load_segmented(
        &self,
        plan: &Plan,
        chunk: &Chunk,
        (rows, pattern): ([Value; 2], &Affine),
        c: u32,
        mask: Mask,
    ) -> Vec<Value> {
        match chunk {
            Chunk::Segments(step) => self.load_runs(plan, &self.runs_of(rows, pattern, c), *step, c, mask),
            Chunk::PerLane(how) => {
                let pointers = self.split_pointers(rows, pattern, c);
                self.gathered(how, pointers, self.lanes(plan, mask, c), plan.access, plan.access.bytes())
            }
            _ => unreachable!("ptxvm bug: no strategy of a load from several rows"),
        }
    }

    /// Stores a chunk whose lanes are in several rows.
    pub(super) fn store_segmented(
        &self,
        plan: &Plan,
        chunk: &Chunk,
        (rows, pattern): ([Value; 2], &Affine),
        c: u32,
        mask: Mask,
        values: &[Value],
    ) {
        match chunk {
            Chunk::Segments(_) => self.store_runs(plan, &self.runs_of(rows, pattern, c), c, mask, values),
            Chunk::PerLane(how) => {
                let pointers = self.split_pointers(rows, pattern, c);
                self.scattered(how, pointers, self.lanes(plan, mask, c), plan.access, values);
            }
            _ => unreachable!("ptxvm bug: no strategy of a store to several rows"),
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
    fn load_runs(&self, plan: &Plan, runs: &[Value], step: u32, c: u32, mask: Mask) -> Vec<Value> {
        let access = plan.access;
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
        let load = |(at, base): (u32, &Value)| self.run_part(*base, (at * run, run), c, plan, mask);
        self.by_element(self.joined((0..).zip(runs).map(load).collect()), access)
    }

    /// Stores the rows of a chunk, whose lanes are consecutive.
    fn store_runs(&self, plan: &Plan, runs: &[Value], c: u32, mask: Mask, values: &[Value]) {
        let access = plan.access;
        let run = self.width / runs.len() as u32;
        runs.iter().for_each(|base| self.fetch(*base, c, access));
        let all = self.interleave(values);
        for (at, base) in (0..).zip(runs) {
            let pointer = self.b.int_to_ptr(*base);
            let own = self.b.slice(all, at * run * access.count, run * access.count);
            match self.lanes(plan, mask, c) {
                None => self.b.store(own, pointer, access.bytes()),
                Some(lanes) => {
                    let bits = self.part_of(lanes, (at * run, run));
                    self.masked_store(access.space, own, pointer, access.bits / 8, bits);
                }
            }
        }
    }
}
