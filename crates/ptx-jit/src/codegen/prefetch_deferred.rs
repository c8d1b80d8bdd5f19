//! Emits deferred prefetches: prefetches for the next iteration of a loop are issued behind the barrier,
//! between computations. Which blocks defer them, to which block, and how many lines at most, was decided by
//! [`opt::prefetch`](crate::opt::prefetch).
//!
//! The addresses of the lines are left beside the barrier slots of the coarse warp. The block behind the
//! barrier prefetches them one by one between its operations, or a few in each iteration of a chunk loop.
//!
//! Invariant: the addresses are used for prefetches alone, so they may be of an earlier iteration. They are
//! stored behind all barrier slots, in the coarse warp's own memory; exits may overwrite them. Where that
//! memory has no room, prefetches are issued beside their loads.

use super::prefetch_next_cta::{NEAREST, SECOND};
use super::{Codegen, Repr};
use crate::llvm::{IntPred, Value};
use crate::opt::prefetch::deferred;
use crate::tuning::{
    BARRIER_SLOTS_MAX_BYTES, DEFERRED_PREFETCH_MAX_LINES, DEFERRED_PREFETCH_MAX_OPS, LLVM_BLOCK_MAX_OPS,
};
use crate::wir;
use crate::wir::prefetch::{Deferral, Issue};
use crate::wir::{BlockId, Op};
use std::cell::Cell;
use std::collections::HashMap;

/// The caches that lines are prefetched into.
const LEVELS: [u32; 2] = [NEAREST, SECOND];

/// The lines that a block defers, and where their addresses are stored.
#[derive(Clone, Copy)]
struct Left {
    /// The offset in the slot memory.
    offset: u32,
    /// The number of lines, and the number of places for them, for each cache.
    counts: [u32; 2],
    most: [u32; 2],
    /// The number of places for lines of the first-level cache.
    first: u32,
    /// The block that issues the prefetches.
    by: BlockId,
}

impl Left {
    /// The offset in the slot memory of the lines for a cache.
    fn place(&self, cache: usize) -> u32 {
        self.offset + if cache == 0 { 0 } else { 8 * self.first }
    }
}

/// Deferred prefetches of a function.
#[derive(Default)]
pub(super) struct DeferredPrefetches {
    /// For each block, the lines that other blocks deferred for it.
    left: HashMap<BlockId, Left>,
    /// The lines that the block that is emitted defers.
    leaves: Cell<Option<Left>>,
    /// The lines that the block that is emitted has still to issue.
    asks: Option<Asks>,
}

/// The prefetches that a block issues.
#[derive(Clone, Copy)]
struct Asks {
    left: Left,
    /// The number of lines issued so far, for both caches.
    done: u32,
    /// The vectors that the long section computes, and how many of them are emitted so far, once the section
    /// has begun.
    vectors: Option<[u32; 2]>,
}

impl Codegen<'_> {
    /// Begins a block: finds room for the lines that it defers.
    pub(super) fn begin_deferred_prefetches(&mut self, id: BlockId) {
        let room = self.out.cta.bytes + 2 * 8 * DEFERRED_PREFETCH_MAX_LINES + 64 <= BARRIER_SLOTS_MAX_BYTES;
        let deferral = self.job.func.blocks[id.0 as usize].deferral.filter(|_| room);
        let leaves = deferral.map(|Deferral { to, lines }| {
            let offset = self.out.cta.bytes.next_multiple_of(8);
            let new = Left { offset, counts: [0; 2], most: [lines; 2], first: lines, by: to };
            self.prefetches.deferred.left.get(&to).map_or(new, |left| Left { counts: [0; 2], ..*left })
        });
        self.prefetches.deferred.leaves.set(leaves);
        self.prefetches.deferred.asks = None;
    }

    /// Begins the content of a block: it issues the lines that other blocks deferred.
    pub(super) fn begin_deferred_issue(&mut self, id: BlockId) {
        self.prefetches.deferred.asks =
            self.prefetches.deferred.left.get(&id).map(|left| Asks { left: *left, done: 0, vectors: None });
    }

    /// Ends a block.
    pub(super) fn end_deferred_prefetches(&mut self) {
        let Some(left) = self.prefetches.deferred.leaves.take().filter(|left| left.counts != [0; 2]) else {
            return;
        };
        let end = left.place(1) + 8 * left.most[1];
        self.out.cta.bytes = self.out.cta.bytes.max(end.next_multiple_of(64));
        // Another block that ends at the same barrier defers at most as many lines.
        self.prefetches.deferred.left.entry(left.by).or_insert(Left { most: left.counts, ..left });
    }

    /// Whether the block that is emitted defers lines.
    pub(super) fn defers_prefetches(&self) -> bool {
        self.prefetches.deferred.leaves.get().is_some()
    }

    /// Defers a line for a cache to the section behind the barrier, if that can issue more.
    pub(super) fn defer_line(&self, address: Value, level: u32) -> bool {
        let Some(mut left) = self.prefetches.deferred.leaves.get() else { return false };
        let cache = usize::from(level != NEAREST);
        let count = left.counts[cache];
        if count >= left.most[cache] {
            return false;
        }
        let place = self.b.offset(self.barrier_slot_memory(), u64::from(left.place(cache) + 8 * count));
        self.b.store(address, place, 8);
        left.counts[cache] += 1;
        self.prefetches.deferred.leaves.set(Some(left));
        true
    }

    /// Begins to issue the lines where the block does so: between operations from here on, or at once.
    pub(super) fn begin_issue_at(&mut self, node: &wir::Block, at: usize) {
        let begun = self.prefetches.deferred.asks.as_mut().filter(|asks| asks.vectors.is_none());
        match (begun, node.issue) {
            (Some(asks), Some(Issue::Between { start, vectors })) if start <= at => {
                asks.vectors = Some([vectors, 0]);
            }
            (Some(_), Some(Issue::AtOnce(start))) if start <= at => self.issue_remaining_prefetches(),
            (Some(_), Some(_)) | (Some(_), None) | (None, _) => {}
        }
    }

    /// Issues the lines that are due after an operation of the section.
    pub(super) fn issue_prefetch_between_ops(&mut self, op: &Op) {
        if self.prefetches.deferred.asks.is_none_or(|asks| asks.vectors.is_none()) || !self.computes(op) {
            return;
        }
        let name = op.defs[0];
        let Some(Repr::Chunks(chunks)) = self.values.get(name) else { return };
        let mut chunks = chunks.clone();
        for chunk in &mut chunks {
            let Some(Asks { left, done, vectors: Some([all, so_far]) }) = &mut self.prefetches.deferred.asks
            else {
                break;
            };
            *so_far += 1;
            let lines: u32 = left.counts.iter().sum();
            if *done < lines && *done * *all < *so_far * lines {
                let (left, line) = (*left, *done);
                *done += 1;
                let (cache, place) = self.line(left, line);
                *chunk = self.b.ask_beside(*chunk, self.b.load(self.int(64), place, 8), LEVELS[cache]);
            }
        }
        self.values.define(name, Repr::Chunks(chunks));
    }

    /// Whether an operation computes a vector of words for each chunk.
    fn computes(&self, op: &Op) -> bool {
        deferred::computes(self.job.func, self.job.function, op)
    }

    /// Issues the lines that are left.
    pub(super) fn issue_remaining_prefetches(&mut self) {
        let Some(Asks { left, done, .. }) = self.prefetches.deferred.asks.filter(|_| !self.in_section())
        else {
            return;
        };
        self.prefetches.deferred.asks = None;
        for line in done..left.counts.iter().sum() {
            let (cache, place) = self.line(left, line);
            self.prefetch_lines(self.b.load(self.int(64), place, 8), 1, false, LEVELS[cache]);
        }
    }

    /// The cache and the address of a deferred line, counted over both caches.
    fn line(&self, left: Left, line: u32) -> (usize, Value) {
        let first = left.counts[0];
        let (cache, line) = if line < first { (0, line) } else { (1, line - first) };
        (cache, self.b.offset(self.barrier_slot_memory(), u64::from(left.place(cache) + 8 * line)))
    }

    /// The number of vectors of a section after which an LLVM block ends.
    pub(super) fn block_end(&self) -> u32 {
        if self.prefetches.deferred.asks.is_some_and(|asks| asks.vectors.is_some()) {
            DEFERRED_PREFETCH_MAX_OPS
        } else {
            LLVM_BLOCK_MAX_OPS
        }
    }

    /// Issues the lines that are due in an iteration of a chunk loop, at its start.
    pub(super) fn prefetch_in_iteration(&mut self, turn: Value, turns: u32) {
        let Some(Asks { left, .. }) = self.prefetches.deferred.asks.take_if(|asks| asks.vectors.is_none())
        else {
            return;
        };
        for (cache, count) in left.counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let each = count.div_ceil(turns);
            let first = self.b.mul(turn, self.c64(each.into()));
            for line in 0..each {
                let line = self.b.add(first, self.c64(line.into()));
                // The last iterations may have fewer lines.
                let last = self.c64(u64::from(count - 1));
                let line = if each * turns == count {
                    line
                } else {
                    self.b.select(self.b.icmp(IntPred::Ult, line, last), line, last)
                };
                self.prefetch_line(left, cache, line);
            }
        }
    }

    fn prefetch_line(&self, left: Left, cache: usize, line: Value) {
        let first = self.b.offset(self.barrier_slot_memory(), left.place(cache).into());
        let place = self.b.gep(first, self.b.mul(line, self.c64(8)));
        self.prefetch_lines(self.b.load(self.int(64), place, 8), 1, false, LEVELS[cache]);
    }
}
