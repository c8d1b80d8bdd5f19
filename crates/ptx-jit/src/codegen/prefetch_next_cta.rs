//! Prefetches of memory that the next CTA accesses, or the next iteration of a loop around a barrier.
//!
//! CTAs that are neighbours in x execute one after another. Each accesses short parts of many rows, which
//! hardware prefetchers do not predict. They also do not predict accesses after a barrier, because the other
//! warps execute in between. The distance between the addresses of two CTAs often follows from the program
//! ([`scalar_evolution`](super::scalar_evolution)).
//!
//! Where the first-level cache has few ways, lines prefetched into it evict the data of this CTA. There,
//! prefetches go into the second-level cache, which holds the data of more than one CTA, so they look further
//! ahead.
//!
//! Invariant: a prefetch changes nothing but time. It reads no memory of the program except parameters, and
//! its address may be any number. If the distance is not known, nothing is prefetched.

use super::scalar_evolution::{Fact, Product};
use super::{Codegen, LANES};
use crate::frame::Frame;
use crate::llvm::{Block, IntPred, Value};
use crate::tuning::{
    CACHE_LINE_BYTES, NEXT_CTA_PREFETCH_CTAS, NEXT_CTA_PREFETCH_WARPS, PREFETCHER_REACH_BYTES,
};
use crate::wir;
use crate::wir::access::Access;
use crate::wir::{Op, OpKind};
use ptx::ir::{Addr, Base, Function, Inst, Src, Terminator};
use ptx::isa::{Op as O, Space};
use std::mem::offset_of;

/// LLVM's number of the first-level cache. The next tile of a coarse warp goes into the second-level cache
/// instead: rows whose distance is a power of two would evict each other from the first level before they are
/// used.
pub(super) const NEAREST: u32 = 3;

/// LLVM's number of the second-level cache.
pub(super) const SECOND: u32 = NEAREST - 1;

/// LLVM's number for data that is read once, which goes into the first-level cache only.
pub(super) const ONCE: u32 = 0;

/// A prefetch beside an access.
pub(super) struct Prefetch {
    /// The distance from the address of the access.
    far: Value,
    /// The cache that it goes into.
    level: u32,
    /// The cache that a section behind a barrier may prefetch it into instead.
    behind: Option<u32>,
}

/// An LLVM block, the growth of addresses with `%ctaid.x` and `%ctaid.y`, and the distance to the next CTA's
/// addresses, if it is known.
pub(super) type NextCtaDistance = ((Block, [Option<Product>; 2]), Option<Value>);

/// The kind of loop that a block belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoopKind {
    /// The block is in no loop.
    #[default]
    Nothing,
    /// The block is in a loop.
    Loop,
    /// The block is in a loop whose iterations meet at a barrier.
    Barrier,
}

/// For each PTX block, the kind of loop that it belongs to.
pub(super) fn loops(function: &Function) -> Vec<LoopKind> {
    let mut inside = vec![LoopKind::Nothing; function.blocks.len()];
    for one in wir::loops::loops(function) {
        let mut body = function.blocks[one.blocks()].iter();
        let meets = body.any(|block| matches!(block.term, Terminator::Barrier { .. }));
        let new = if meets { LoopKind::Barrier } else { LoopKind::Loop };
        inside[one.blocks()].iter_mut().for_each(|have| *have = new.max(*have));
    }
    inside
}

impl Codegen<'_> {
    /// The distance from an access to the memory that is worth a prefetch, if it is known.
    pub(super) fn stride(&mut self, inst: &Inst, op: &Op, access: Access) -> Option<Prefetch> {
        if !matches!(access.space, Space::Global | Space::Generic) {
            return None;
        }
        let offset = match inst.srcs.first()? {
            Src::Addr(Addr { base: Base::Reg(_), offset, .. }) => *offset,
            _ => return None,
        };
        let name = *op.uses.get(1)?;
        // A line is prefetched once in a block.
        let line = offset.checked_add(i64::from(CACHE_LINE_BYTES / 2))?.div_euclid(CACHE_LINE_BYTES.into());
        let fits = self.lanes == LANES && self.env.target.tuning().prefetches_next_cta_into_l1();
        let nearest = if fits { NEAREST } else { SECOND };
        let mut behind = None;
        self.remark_op(op);
        let (far, level) = match self.position.loop_kind {
            LoopKind::Nothing => (self.next_cta_or_remark(name)?, nearest),
            LoopKind::Loop if self.fills(op) || access.write && self.drains() => {
                (self.next_cta_or_remark(name)?, nearest)
            }
            LoopKind::Barrier if self.position.full && !access.write => {
                let Some(turn) = self.facts.scalar_evolution.turn[name.0 as usize] else {
                    self.missed("prefetch", "the step from one iteration to the next is not known");
                    return None;
                };
                let near = turn.is_constant() && turn.times.unsigned_abs() < PREFETCHER_REACH_BYTES;
                behind = self.may_defer_prefetches().then_some(if near { NEAREST } else { SECOND });
                (self.product(turn)?, SECOND)
            }
            LoopKind::Loop | LoopKind::Barrier => return None,
        };
        if !self.prefetches.issued.insert((name, line, access.write)) {
            return None;
        }
        let next = if behind.is_some() || self.position.loop_kind == LoopKind::Barrier {
            "iteration"
        } else {
            "CTA"
        };
        let cache = if level == NEAREST { "first" } else { "second" };
        let when = if behind.is_some() { ", behind the barrier while it has room" } else { "" };
        self.applied("prefetch", format!("for the next {next}, into the {cache}-level cache{when}"));
        let more = line.wrapping_mul(CACHE_LINE_BYTES.into()).wrapping_sub(offset);
        Some(Prefetch { far: self.b.add(far, self.c64(more as u64)), level, behind })
    }

    /// How many CTAs ahead a prefetch for the next CTA looks.
    fn ctas_ahead(&self) -> u32 {
        // A coarse warp executes several warps between barriers, which takes long enough for memory to
        // answer.
        if self.env.target.tuning().prefetches_next_cta_into_l1() || self.lanes > LANES {
            return 1;
        }
        NEXT_CTA_PREFETCH_WARPS.div_ceil(self.job.shape.threads().div_ceil(LANES)).max(NEXT_CTA_PREFETCH_CTAS)
    }

    /// The same as [`Codegen::next_cta`], with a remark where there is no prefetch.
    fn next_cta_or_remark(&mut self, name: wir::Value) -> Option<Value> {
        let far = self.next_cta(name);
        if far.is_none() {
            let known = self.facts.scalar_evolution.cta[0][name.0 as usize].is_some_and(|x| !x.is_zero());
            self.missed(
                "prefetch",
                match known {
                    true => "the next CTA's elements are near enough for the processor's prefetcher",
                    false => "the distance to the next CTA's elements is not known, or zero",
                },
            );
        }
        far
    }

    /// The distance from an address of this CTA to the address of the next one, or of a later one.
    pub(super) fn next_cta(&mut self, name: wir::Value) -> Option<Value> {
        let [x, y] = [0, 1].map(|axis: usize| self.facts.scalar_evolution.cta[axis][name.0 as usize]);
        // Many addresses of a block have the same distance.
        let here = (self.b.current_block(), [x, y]);
        if let Some((_, far)) = self.prefetches.next_cta_distance.as_ref().filter(|(known, _)| *known == here)
        {
            return *far;
        }
        let far = self.next_cta_by(x, y);
        self.prefetches.next_cta_distance = Some((here, far));
        far
    }

    /// The distance for addresses that grow by these products with `%ctaid.x` and `%ctaid.y`.
    fn next_cta_by(&self, x: Option<Product>, y: Option<Product>) -> Option<Value> {
        let x = x.filter(|x| !x.is_zero())?;
        let right = self.product(x)?;
        let ctas = self.ctas_ahead();
        let Some(below) = y.filter(|y| !y.is_zero()).and_then(|y| self.product(y)) else {
            let far = !x.is_constant() || x.times.unsigned_abs() >= PREFETCHER_REACH_BYTES;
            return far.then(|| self.b.mul(right, self.c64(ctas.into())));
        };
        // The last CTA of a row is followed by the first CTA of the next row.
        let (at, count) = (self.load32(offset_of!(Frame, ctaid)), self.load32(offset_of!(Frame, nctaid)));
        if ctas == 1 {
            let last = self.b.sub(count, self.c32(1));
            let row = self.b.mul(self.b.zext(last, self.int(64)), right);
            let more = self.b.icmp(IntPred::Ult, at, last);
            return Some(self.b.select(more, right, self.b.sub(below, row)));
        }
        // Of several CTAs ahead, some may lie after the ends of two rows, if rows are short.
        let row = self.b.sub(below, self.b.mul(self.b.zext(count, self.int(64)), right));
        let there = self.b.add(at, self.c32(ctas));
        let mut far = self.b.mul(right, self.c64(ctas.into()));
        for rows in 1..=2 {
            let within = self.b.icmp(IntPred::Ult, there, self.b.mul(count, self.c32(rows)));
            far = self.b.select(within, far, self.b.add(far, row));
        }
        Some(far)
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

    /// Whether the result of a load in a loop is stored to shared memory at once. Shared memory is small, so
    /// the loop ends soon.
    fn fills(&self, load: &Op) -> bool {
        let func = self.job.func;
        let Some(node) = self.position.node.map(|id| &func.blocks[id.0 as usize]) else { return false };
        node.ops.iter().any(|op| {
            let OpKind::Inst(site) = op.kind else { return false };
            let inst = site.inst(self.job.function);
            let store = inst.is_some_and(|inst| inst.op == O::St && inst.mods.space() == Space::Shared);
            store && op.uses.get(1..).is_some_and(|uses| uses.iter().any(|name| load.defs.contains(name)))
        })
    }

    /// Whether the block reads shared memory. Its other stores usually copy from there; shared memory is
    /// small, so the loop ends soon.
    fn drains(&self) -> bool {
        let Some(node) = self.position.node.map(|id| &self.job.func.blocks[id.0 as usize]) else {
            return false;
        };
        node.ops.iter().any(|op| {
            let OpKind::Inst(site) = op.kind else { return false };
            let inst = site.inst(self.job.function);
            inst.is_some_and(|inst| inst.op == O::Ld && inst.mods.space() == Space::Shared)
        })
    }

    /// Prefetches the memory at that distance from the access of a chunk whose lanes are consecutive.
    pub(super) fn fetch(&self, base: Value, c: u32, access: Access) {
        let Some(Prefetch { far, level, behind }) = &self.prefetches.beside_access else { return };
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
