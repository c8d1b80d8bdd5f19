//! Prefetches of what the next CTA accesses, and of what the next iteration accesses where iterations meet at
//! a barrier.
//!
//! CTAs that are neighbours in x execute one after another. Each accesses short parts of many rows, which no
//! hardware prefetcher foresees; nor does one see across a barrier, behind which the other warps execute. The
//! distance between the addresses of two CTAs often follows from the program
//! ([`scalar_evolution`](super::scalar_evolution)).
//!
//! Where the first-level cache has few ways, lines prefetched into it evict what this CTA reads. There
//! prefetches go into the second-level cache, which holds the data of more than one CTA, so they look further
//! ahead.
//!
//! Invariant: a prefetch has no other effect than time. It reads no memory of the program but parameters, no
//! address is wrong for it, and where the distance is not known there is none.

use super::load_store::Access;
use super::scalar_evolution::{Fact, Product};
use super::{Codegen, LANES};
use crate::frame::Frame;
use crate::llvm::{Block, IntPred, Value};
use crate::tuning::{
    CACHE_LINE_BYTES, NEXT_CTA_PREFETCH_CTAS, NEXT_CTA_PREFETCH_WARPS, PREFETCHER_REACH_BYTES,
};
use crate::wir;
use crate::wir::{Op, OpKind};
use ptx::ir::{Addr, Base, Function, Inst, Src, Terminator};
use ptx::isa::{Op as O, Space};
use std::mem::offset_of;

/// LLVM's number of the nearest cache. What a team's next tile is in goes to the one behind: rows a power of two apart would put each other
/// out of the nearest before they are read or written.
pub(super) const NEAREST: u32 = 3;

/// LLVM's number of the cache behind the nearest.
pub(super) const SECOND: u32 = NEAREST - 1;

/// LLVM's number of what is read once: it goes into the nearest cache alone.
pub(super) const ONCE: u32 = 0;

/// What is to be fetched.
pub(super) struct Prefetch {
    /// How far from the access.
    far: Value,
    /// Into which cache.
    level: u32,
    /// Into which a piece behind a barrier may fetch it.
    behind: Option<u32>,
}

/// A block, how addresses grow with `%ctaid.x` and `%ctaid.y`, and how far from them those of the next CTA are, as far as that is known.
pub(super) type NextCtaDistance = ((Block, [Option<Product>; 2]), Option<Value>);

/// What loops a block belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoopKind {
    /// None.
    Nothing,
    /// Some.
    Loop,
    /// One whose turns meet at a barrier.
    Barrier,
}

/// By block: what loops it belongs to.
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
    /// How far from an access lies what is worth a hint, if that is known.
    pub(super) fn stride(&mut self, inst: &Inst, op: &Op, access: Access) -> Option<Prefetch> {
        if !matches!(access.space, Space::Global | Space::Generic) {
            return None;
        }
        let offset = match inst.srcs.first()? {
            Src::Addr(Addr { base: Base::Reg(_), offset, .. }) => *offset,
            _ => return None,
        };
        let name = *op.uses.get(1)?;
        // A line that was asked for once in a node need not be asked for again.
        let line = offset.checked_add(i64::from(CACHE_LINE_BYTES / 2))?.div_euclid(CACHE_LINE_BYTES.into());
        let fits = self.lanes == LANES && self.env.target.tuning().prefetches_next_cta_into_l1();
        let nearest = if fits { NEAREST } else { SECOND };
        let mut behind = None;
        self.remark_op(op);
        let (far, level) = match self.loop_kind {
            LoopKind::Nothing => (self.next_cta_or_remark(name)?, nearest),
            LoopKind::Loop if self.fills(op) || access.write && self.drains() => {
                (self.next_cta_or_remark(name)?, nearest)
            }
            LoopKind::Barrier if self.full && !access.write => {
                let Some(turn) = self.scalar_evolution.turn[name.0 as usize] else {
                    self.missed("prefetch", "the step from one iteration to the next is not known");
                    return None;
                };
                let near = turn.is_constant() && turn.times.unsigned_abs() < PREFETCHER_REACH_BYTES;
                behind = self.may_defer_prefetches().then_some(if near { NEAREST } else { SECOND });
                (self.product(turn)?, SECOND)
            }
            LoopKind::Loop | LoopKind::Barrier => return None,
        };
        if !self.prefetched.insert((name, line, access.write)) {
            return None;
        }
        let next = if behind.is_some() || self.loop_kind == LoopKind::Barrier { "iteration" } else { "CTA" };
        let cache = if level == NEAREST { "first" } else { "second" };
        let when = if behind.is_some() { ", behind the barrier while it has room" } else { "" };
        self.applied("prefetch", format!("for the next {next}, into the {cache}-level cache{when}"));
        let more = line.wrapping_mul(CACHE_LINE_BYTES.into()).wrapping_sub(offset);
        Some(Prefetch { far: self.b.add(far, self.c64(more as u64)), level, behind })
    }

    /// How many CTAs ahead a hint for the next one looks.
    fn ctas_ahead(&self) -> u32 {
        // A team's turn is that of several warps: long enough for memory to answer.
        if self.env.target.tuning().prefetches_next_cta_into_l1() || self.lanes > LANES {
            return 1;
        }
        NEXT_CTA_PREFETCH_WARPS.div_ceil(self.job.shape.threads().div_ceil(LANES)).max(NEXT_CTA_PREFETCH_CTAS)
    }

    /// The same as [`Codegen::next_cta`], with a remark where there is no prefetch.
    fn next_cta_or_remark(&mut self, name: wir::Value) -> Option<Value> {
        let far = self.next_cta(name);
        if far.is_none() {
            let known = self.scalar_evolution.cta[0][name.0 as usize].is_some_and(|x| !x.is_zero());
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

    /// From an address of this CTA to that of the next one, or of one a few behind it.
    fn next_cta(&mut self, name: wir::Value) -> Option<Value> {
        let [x, y] = [0, 1].map(|axis: usize| self.scalar_evolution.cta[axis][name.0 as usize]);
        // Many addresses of a block are as far from those of the next CTA.
        let here = (self.b.current_block(), [x, y]);
        if let Some((_, far)) = self.next_cta_distance.as_ref().filter(|(known, _)| *known == here) {
            return *far;
        }
        let far = self.next_cta_by(x, y);
        self.next_cta_distance = Some((here, far));
        far
    }

    /// The same, where that grows so with `%ctaid.x` and with `%ctaid.y`.
    fn next_cta_by(&self, x: Option<Product>, y: Option<Product>) -> Option<Value> {
        let x = x.filter(|x| !x.is_zero())?;
        let right = self.product(x)?;
        let ctas = self.ctas_ahead();
        let Some(below) = y.filter(|y| !y.is_zero()).and_then(|y| self.product(y)) else {
            let far = !x.is_constant() || x.times.unsigned_abs() >= PREFETCHER_REACH_BYTES;
            return far.then(|| self.b.mul(right, self.c64(ctas.into())));
        };
        // DeferredPrefetches the last one of a row comes the first one of the next.
        let (at, count) = (self.load32(offset_of!(Frame, ctaid)), self.load32(offset_of!(Frame, nctaid)));
        if ctas == 1 {
            let last = self.b.sub(count, self.c32(1));
            let row = self.b.mul(self.b.zext(last, self.int(64)), right);
            let more = self.b.icmp(IntPred::Ult, at, last);
            return Some(self.b.select(more, right, self.b.sub(below, row)));
        }
        // Of several ahead, some lie behind two ends: rows may be as short.
        let row = self.b.sub(below, self.b.mul(self.b.zext(count, self.int(64)), right));
        let there = self.b.add(at, self.c32(ctas));
        let mut far = self.b.mul(right, self.c64(ctas.into()));
        for rows in 1..=2 {
            let within = self.b.icmp(IntPred::Ult, there, self.b.mul(count, self.c32(rows)));
            far = self.b.select(within, far, self.b.add(far, row));
        }
        Some(far)
    }

    /// The number that it is in this launch.
    pub(super) fn product(&self, product: Product) -> Option<Value> {
        let mut value = self.c64(product.times as u64);
        for fact in product.facts.into_iter().flatten() {
            let known = match fact {
                Fact::Param { offset, bits } => {
                    let place = self.b.int_to_ptr(self.b.add(self.params, self.c64(offset.into())));
                    self.b.load(self.int(bits), place, 1)
                }
                Fact::Ctas(axis) => self.load32(offset_of!(Frame, nctaid) + 4 * usize::from(axis)),
            };
            let known = if known.ty().element_bits() < 64 { self.b.sext(known, self.int(64)) } else { known };
            value = self.b.mul(value, known);
        }
        (!product.is_zero()).then_some(value)
    }

    /// Whether what a load in a loop gives goes into shared memory at once. That is small, so the loop ends soon.
    fn fills(&self, load: &Op) -> bool {
        let func = self.job.func;
        let Some(node) = self.node.map(|id| &func.nodes[id.0 as usize]) else { return false };
        node.ops.iter().any(|op| {
            let OpKind::Inst(site) = op.kind else { return false };
            let inst = site.inst(self.job.function);
            let store = inst.is_some_and(|inst| inst.op == O::St && inst.mods.space() == Space::Shared);
            store && op.uses.get(1..).is_some_and(|uses| uses.iter().any(|name| load.defs.contains(name)))
        })
    }

    /// Whether the node reads shared memory. What it stores elsewhere comes mostly from there, and that is small, so the loop ends soon.
    fn drains(&self) -> bool {
        let Some(node) = self.node.map(|id| &self.job.func.nodes[id.0 as usize]) else { return false };
        node.ops.iter().any(|op| {
            let OpKind::Inst(site) = op.kind else { return false };
            let inst = site.inst(self.job.function);
            inst.is_some_and(|inst| inst.op == O::Ld && inst.mods.space() == Space::Shared)
        })
    }

    /// Fetches what lies that far from what lanes of a chunk that lie one after another access.
    pub(super) fn fetch(&self, base: Value, c: u32, access: Access) {
        let Some(Prefetch { far, level, behind }) = &self.prefetch else { return };
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
        // What is fetched to be written goes into the nearest cache in any case.
        let start = self.b.add(start, self.c64(first.into()));
        self.prefetch_lines(start, bytes - first, access.write && *level == NEAREST, *level);
    }

    /// Fetches the lines of so many bytes from there on, to read or to write, into a cache.
    pub(super) fn prefetch_lines(&self, start: Value, bytes: u32, write: bool, level: u32) {
        for line in (0..bytes).step_by(CACHE_LINE_BYTES as usize) {
            let pointer = self.b.int_to_ptr(self.b.add(start, self.c64(line.into())));
            // Of data, not of instructions.
            let how = [self.c32(write.into()), self.c32(level), self.c32(1)];
            self.b.intrinsic("llvm.prefetch", &[self.b.ptr()], &[pointer, how[0], how[1], how[2]]);
        }
    }
}
