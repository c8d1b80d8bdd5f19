//! Prefetches beside accesses: of what the next CTA accesses, or the next iteration of a loop around a
//! barrier.
//!
//! Invariant: a prefetch changes nothing but time. It reads no memory of the program except parameters, and
//! its address may be any number. Which accesses have one, and how far it looks ahead, was decided by
//! [`opt::prefetch`](crate::opt::prefetch).

use super::Codegen;
use crate::analysis::loop_kind::LoopKind;
use crate::frame::Frame;
use crate::llvm::{Block, IntPred, Value};
use crate::tuning::CACHE_LINE_BYTES;
use crate::wir::Op;
use crate::wir::access::Access;
use crate::wir::decision::Decision;
use crate::wir::prefetch::{Ahead, Cache, Fact, Prefetch, Product};
use std::mem::offset_of;

/// LLVM's number of the first-level cache.
pub(super) const NEAREST: u32 = 3;

/// LLVM's number of the second-level cache.
pub(super) const SECOND: u32 = NEAREST - 1;

/// LLVM's number for data that are read once, which go into the first-level cache only.
const ONCE: u32 = 0;

/// The prefetch beside the access that is emitted.
pub(super) struct BesideAccess {
    /// The distance from the address of the access.
    far: Value,
    /// The cache that it goes into.
    level: u32,
    /// The cache that a block behind a barrier prefetches it into, if it is deferred.
    behind: Option<u32>,
}

/// An LLVM block, and the distance to what is prefetched there.
pub(super) type NextCtaDistance = ((Block, Ahead), Value);

/// LLVM's number of a cache.
pub(super) fn number_of(cache: Cache) -> u32 {
    match cache {
        Cache::First => NEAREST,
        Cache::FirstAlone => ONCE,
        Cache::Second => SECOND,
    }
}

impl Codegen<'_> {
    /// Begins the prefetch beside an access, if one was decided.
    pub(super) fn begin_prefetch(&mut self, op: &Op) -> Option<BesideAccess> {
        let decision = op.prefetches().next?;
        self.remark_op(op);
        // In such a loop it is for the next iteration, so for code of all lanes alone.
        if self.position.loop_kind == LoopKind::Barrier && !self.position.full {
            return None;
        }
        let behind = match decision {
            Decision::Applied(Prefetch { ahead: Ahead::Iteration { behind, .. }, .. }) => {
                self.defers_prefetches().then_some(number_of(behind))
            }
            Decision::Applied(_) | Decision::Missed(_) => None,
        };
        let Decision::Applied(Prefetch { ahead, more, cache }) = decision else {
            self.remark("prefetch", decision.remark(false));
            return None;
        };
        let far = self.distance(ahead)?;
        self.remark("prefetch", decision.remark(behind.is_some()));
        let far = self.b.add(far, self.c64(more as u64));
        Some(BesideAccess { far, level: number_of(cache), behind })
    }

    /// The distance to what is prefetched.
    pub(super) fn distance(&mut self, ahead: Ahead) -> Option<Value> {
        let (right, below, ctas) = match ahead {
            Ahead::Iteration { step, .. } => return self.product(step),
            Ahead::Cta { right, below, ctas } => (right, below, ctas),
        };
        // Many addresses of a block have the same distance.
        let here = (self.b.current_block(), ahead);
        if let Some((_, far)) = self.prefetches.next_cta_distance.filter(|(known, _)| *known == here) {
            return Some(far);
        }
        let right = self.product(right)?;
        let below = below.and_then(|below| self.product(below));
        let far = self.next_cta(right, below, ctas);
        self.prefetches.next_cta_distance = Some((here, far));
        Some(far)
    }

    /// The distance for addresses that grow by these numbers with `%ctaid.x` and `%ctaid.y`.
    fn next_cta(&self, right: Value, below: Option<Value>, ctas: u32) -> Value {
        let Some(below) = below else {
            return self.b.mul(right, self.c64(ctas.into()));
        };
        // The last CTA of a row is followed by the first CTA of the next row.
        let (at, count) = (self.load32(offset_of!(Frame, ctaid)), self.load32(offset_of!(Frame, nctaid)));
        if ctas == 1 {
            let last = self.b.sub(count, self.c32(1));
            let row = self.b.mul(self.b.zext(last, self.int(64)), right);
            let more = self.b.icmp(IntPred::Ult, at, last);
            return self.b.select(more, right, self.b.sub(below, row));
        }
        // Of several CTAs ahead, some may lie after the ends of two rows, if rows are short.
        let row = self.b.sub(below, self.b.mul(self.b.zext(count, self.int(64)), right));
        let there = self.b.add(at, self.c32(ctas));
        let mut far = self.b.mul(right, self.c64(ctas.into()));
        for rows in 1..=2 {
            let within = self.b.icmp(IntPred::Ult, there, self.b.mul(count, self.c32(rows)));
            far = self.b.select(within, far, self.b.add(far, row));
        }
        far
    }

    /// The value of a product in this launch.
    pub(super) fn product(&self, product: Product) -> Option<Value> {
        let mut value = self.c64(product.times as u64);
        for fact in product.facts.into_iter().flatten() {
            let known = match fact {
                Fact::Param { offset, bits } => {
                    let place = self.b.int_to_ptr(self.b.add(self.entry.params, self.c64(offset.into())));
                    self.b.load(self.int(bits), place, 1)
                }
                Fact::Ctas(axis) => self.load32(offset_of!(Frame, nctaid) + 4 * usize::from(axis)),
            };
            let known = if known.ty().element_bits() < 64 { self.b.sext(known, self.int(64)) } else { known };
            value = self.b.mul(value, known);
        }
        (!product.is_zero()).then_some(value)
    }

    /// Prefetches the memory at that distance from the access of a chunk whose lanes are consecutive.
    pub(super) fn fetch(&self, base: Value, c: u32, access: Access) {
        let Some(BesideAccess { far, level, behind }) = &self.prefetches.beside_access else { return };
        let bytes = self.width * access.bytes();
        if !(c * bytes).is_multiple_of(CACHE_LINE_BYTES) {
            return;
        }
        let start = self.b.add(base, *far);
        let lines = (0..bytes).step_by(CACHE_LINE_BYTES as usize);
        let mut left = lines.filter(|line| {
            let line = self.b.add(start, self.c64((*line).into()));
            !behind.is_some_and(|level| self.defer_line(line, level))
        });
        let Some(first) = left.next() else { return };
        // A prefetch for a write goes into the first-level cache in any case.
        let start = self.b.add(start, self.c64(first.into()));
        self.prefetch_lines(start, bytes - first, access.write && *level == NEAREST, *level);
    }

    /// Prefetches the lines of so many bytes from an address, to read or to write, into a cache.
    pub(super) fn prefetch_lines(&self, start: Value, bytes: u32, write: bool, level: u32) {
        for line in (0..bytes).step_by(CACHE_LINE_BYTES as usize) {
            let pointer = self.b.int_to_ptr(self.b.add(start, self.c64(line.into())));
            // A prefetch of data, not of instructions.
            let how = [self.c32(write.into()), self.c32(level), self.c32(1)];
            self.b.intrinsic("llvm.prefetch", &[self.b.ptr()], &[pointer, how[0], how[1], how[2]]);
        }
    }
}
