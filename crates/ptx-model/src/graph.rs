//! A candidate: one path of each thread, and the static facts about its events, before any read or order is
//! chosen.
//!
//! The static definitions of chapter 8 are here: program order, overlap, morally strong, release and acquire
//! patterns, and synchronizing barrier operations. [`crate::axioms`] has those that depend on the results of
//! reads.
//!
//! The initial write of section 8.2.4 is no event: a byte read without a source write has the initial value,
//! and that source precedes every write in coherence order.
//!
//! Memory is divided into atoms, the longest ranges of bytes that no access splits. A read chooses its source
//! for each atom. If all accesses to a location have one size, the location is one atom, so an access to it
//! is never torn; see the crate's documentation.

use crate::barrier::{self, Phases};
use crate::event::{Access, Barrier, Element, Event, Kind};
use crate::memory::Memory;
use crate::path::Path;
use crate::relation::{Relation, bits};
use crate::rules::{Model, Rule, Rules};
use crate::test::{Placement, Proxy, ReduceOp, Scope, Test};
use crate::value::Expr;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// A range of bytes that no access splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Atom {
    pub(crate) block: usize,
    pub(crate) offset: u32,
    pub(crate) size: u32,
}

/// What a read must choose: the source of one of its atoms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) read: usize,
    pub(crate) atom: usize,
}

/// How the result of a barrier reduction is found.
#[derive(Clone, Debug)]
pub(crate) enum Combined {
    /// From the predicates of these threads.
    Of(ReduceOp, Vec<(usize, Rc<Expr>)>),
    /// It is unpredictable, and chosen to be this.
    Chosen(u64),
}

/// A candidate execution without its choices.
pub(crate) struct Graph<'a> {
    pub(crate) test: &'a Test,
    pub(crate) memory: &'a Memory,
    pub(crate) model: Model,
    pub(crate) rules: Rules,
    pub(crate) paths: Vec<&'a Path>,
    /// The number of the first event of each thread.
    pub(crate) first: Vec<usize>,
    pub(crate) events: Vec<Event>,
    pub(crate) atoms: Vec<Atom>,
    /// The atoms of each event.
    pub(crate) atoms_of: Vec<Range<usize>>,
    /// The writes that cover each atom, as bits.
    pub(crate) writers: Vec<u128>,
    pub(crate) slots: Vec<Slot>,
    /// The slots of each event: one for each of its atoms if it is a read.
    pub(crate) slots_of: Vec<Range<usize>>,
    pub(crate) po: Relation,
    /// Program order between overlapping accesses.
    pub(crate) po_overlap: Relation,
    /// Overlapping accesses, both ways.
    pub(crate) overlap: Relation,
    pub(crate) morally_strong: Relation,
    /// Release patterns: first operation and write.
    pub(crate) releases: Vec<(usize, usize)>,
    /// Acquire patterns: read and last operation.
    pub(crate) acquires: Vec<(usize, usize)>,
    /// Synchronization by barriers.
    pub(crate) barriers: Relation,
    /// The results of the barrier reductions, by event.
    pub(crate) combined: BTreeMap<usize, Combined>,
    /// For each barrier reduction: what its result depends on, in all threads of its phase.
    pub(crate) flow: Vec<(usize, u128)>,
    /// Pairs of morally strong `fence.sc` of different threads.
    pub(crate) sc_pairs: Vec<(usize, usize)>,
    /// `fence.sc` in program order.
    pub(crate) sc_fixed: Relation,
    /// Pairs of overlapping writes that are morally strong.
    pub(crate) co_pairs: Vec<(usize, usize)>,
    /// The same pairs, both ways.
    pub(crate) co_related: Relation,
    /// Pairs of overlapping atomic operations whose scopes include each other, as their reads.
    pub(crate) exclusive: Vec<(usize, usize)>,
    /// The accesses that [`Rule::Applicability`] leaves outside of the model, as bits.
    pub(crate) outside: u128,
    /// Whether the axioms do not apply (section 8.6.2).
    pub(crate) void: bool,
}

impl<'a> Graph<'a> {
    /// The graph of these paths, one for each thread. There are at most [`crate::relation::MOST_EVENTS`]
    /// events.
    pub(crate) fn new(
        test: &'a Test,
        memory: &'a Memory,
        model: Model,
        rules: Rules,
        paths: Vec<&'a Path>,
    ) -> Self {
        let mut first = Vec::new();
        let mut events: Vec<Event> = Vec::new();
        for path in &paths {
            let base = events.len();
            first.push(base);
            events.extend(path.events.iter().cloned().map(|mut event| {
                event.other_half = event.other_half.map(|half| half + base);
                event.depends <<= base;
                event.done_at = event.done_at.map(|at| at.saturating_add(base));
                event
            }));
        }
        let len = events.len();
        let mut graph = Self {
            test,
            memory,
            model,
            rules,
            paths,
            first,
            events,
            atoms: Vec::new(),
            atoms_of: Vec::new(),
            writers: Vec::new(),
            slots: Vec::new(),
            slots_of: Vec::new(),
            po: Relation::new(len),
            po_overlap: Relation::new(len),
            overlap: Relation::new(len),
            morally_strong: Relation::new(len),
            releases: Vec::new(),
            acquires: Vec::new(),
            barriers: Relation::new(len),
            combined: BTreeMap::new(),
            flow: Vec::new(),
            sc_pairs: Vec::new(),
            sc_fixed: Relation::new(len),
            co_pairs: Vec::new(),
            co_related: Relation::new(len),
            exclusive: Vec::new(),
            outside: 0,
            void: rules == rules.of_a_program_with_a_mixed_size_race(),
        };
        graph.cut();
        graph.relate();
        for (a, b) in graph.co_pairs.clone() {
            graph.co_related.set(a, b);
            graph.co_related.set(b, a);
        }
        graph.patterns();
        graph
    }

    /// The placement of the thread of an event.
    pub(crate) fn placement(&self, event: usize) -> Placement {
        self.test.threads[self.events[event].thread].placement
    }

    /// Cuts memory into atoms and makes the slots of the reads.
    fn cut(&mut self) {
        let blocks = self.memory.blocks.len();
        let mut cuts: Vec<Vec<u32>> = vec![Vec::new(); blocks];
        for (block, of) in self.memory.blocks.iter().enumerate() {
            cuts[block].push(0);
            cuts[block].push(of.init.len() as u32);
            let location = &self.test.locations[of.location];
            if location.elements > 1 {
                cuts[block].extend((1..location.elements).map(|n| n * location.element));
            }
        }
        for event in 0..self.events.len() {
            let Some(access) = self.events[event].access else { continue };
            cuts[access.block].extend([access.offset, access.offset + access.size]);
            if self.may_be_two(event) {
                cuts[access.block].push(access.offset + access.size / 2);
            }
        }
        let mut starts = vec![0; blocks];
        for (block, cuts) in cuts.iter_mut().enumerate() {
            cuts.sort_unstable();
            cuts.dedup();
            starts[block] = self.atoms.len();
            for pair in cuts.windows(2) {
                self.atoms.push(Atom { block, offset: pair[0], size: pair[1] - pair[0] });
            }
        }
        self.writers = vec![0; self.atoms.len()];
        for (index, event) in self.events.iter().enumerate() {
            let start = self.slots.len();
            let range = match event.access {
                None => 0..0,
                Some(access) => {
                    let place = |offset: u32| cuts[access.block].partition_point(|cut| *cut < offset);
                    let base = starts[access.block];
                    base + place(access.offset)..base + place(access.offset + access.size)
                }
            };
            for atom in range.clone() {
                match event.kind {
                    Kind::Read => self.slots.push(Slot { read: index, atom }),
                    Kind::Write => self.writers[atom] |= 1 << index,
                    Kind::Fence | Kind::ProxyFence(_) | Kind::Barrier(_) => {}
                }
            }
            self.atoms_of.push(range);
            self.slots_of.push(start..self.slots.len());
        }
    }

    /// Whether an access is one that [`Rule::HostWidth`] allows to be two.
    pub(crate) fn may_be_two(&self, event: usize) -> bool {
        let of = &self.events[event];
        let Some(access) = of.access else { return false };
        self.rules.has(Rule::HostWidth)
            && of.strong == Some(Scope::Sys)
            && access.size == 8
            && self.events.iter().enumerate().any(|(other, it)| {
                it.access.is_some_and(|a| a.overlaps(&access)) && self.placement(other) == Placement::Host
            })
            && self.events.iter().enumerate().any(|(other, it)| {
                it.access.is_some_and(|a| a.overlaps(&access)) && self.placement(other) != Placement::Host
            })
    }

    /// The bytes of an access as far as complete overlap goes: of the whole instruction where the rule that
    /// splits it is out.
    pub(crate) fn footprint(&self, access: &Access) -> (u32, u32) {
        let whole = match access.element {
            Element::Whole => false,
            Element::Vector => !self.rules.has(Rule::Vectors),
            Element::Packed => !self.rules.has(Rule::Packed),
        };
        if whole { access.whole } else { (access.offset, access.size) }
    }

    /// Whether two accesses overlap completely, by the same virtual address and proxy where the model has
    /// these.
    pub(crate) fn complete(&self, a: &Access, b: &Access) -> bool {
        a.block == b.block && self.footprint(a) == self.footprint(b) && self.same_way(a, b)
    }

    /// Whether two accesses use the same virtual address and proxy, or the model does not tell them apart.
    pub(crate) fn same_way(&self, a: &Access, b: &Access) -> bool {
        self.model == Model::Ptx60
            || ((a.proxy == b.proxy || !self.rules.has(Rule::Proxies))
                && (a.view == b.view || !self.rules.has(Rule::AliasFence)))
    }

    /// Whether two operations are strong, with scopes that include the thread of the other.
    fn strong_to_each_other(&self, a: usize, b: usize) -> bool {
        if !self.rules.has(Rule::MorallyStrong) {
            return true;
        }
        let (Some(mut scope_a), Some(mut scope_b)) = (self.events[a].strong, self.events[b].strong) else {
            return false;
        };
        if !self.rules.has(Rule::Scopes) {
            (scope_a, scope_b) = (Scope::Sys, Scope::Sys);
        }
        let (at_a, at_b) = (self.placement(a), self.placement(b));
        at_a.reaches(scope_a, at_b) && at_b.reaches(scope_b, at_a)
    }

    fn relate(&mut self) {
        let len = self.events.len();
        if self.model == Model::Ptx60 && self.rules.has(Rule::Applicability) {
            let special =
                |e: &Event| e.access.is_some_and(|a| matches!(a.proxy, Proxy::Texture | Proxy::Surface));
            self.outside = (0..len).filter(|e| special(&self.events[*e])).fold(0, |set, e| set | 1 << e);
        }
        for a in 0..len {
            for b in 0..len {
                if a != b {
                    self.relate_pair(a, b);
                }
            }
        }
    }

    fn relate_pair(&mut self, a: usize, b: usize) {
        let (of_a, of_b) = (&self.events[a], &self.events[b]);
        let same_thread = of_a.thread == of_b.thread;
        // Elements of one vector access are in no order; the halves of an atomic operation are.
        let one_instruction = same_thread && of_a.instruction == of_b.instruction;
        let unordered = one_instruction
            && of_a.kind == of_b.kind
            && of_a.access.is_some_and(|x| x.element != Element::Whole)
            && of_a.access.map(|x| x.whole) == of_b.access.map(|x| x.whole)
            && of_a.access != of_b.access;
        let ordered = same_thread && a < b && !unordered && of_a.done_at.is_none_or(|done| done <= b);
        let (mut overlap, mut complete) = (false, false);
        let (mut same_way, mut both_memory) = (false, false);
        let mut conflict = false;
        if let (Some(x), Some(y)) = (&of_a.access, &of_b.access) {
            both_memory = true;
            complete = self.complete(x, y);
            overlap = x.overlaps(y) && (self.rules.has(Rule::ByteOverlap) || x.same_bytes(y));
            same_way = self.same_way(x, y);
            conflict = of_a.is_write() && of_b.is_write();
        }
        if ordered {
            self.po.set(a, b);
        }
        if (self.outside >> a | self.outside >> b) & 1 != 0 {
            return;
        }
        let in_order = ordered || (same_thread && self.events[b].done_at.is_none_or(|d| d <= a) && b < a);
        // The accesses of one thread that share some bytes count as overlapping completely: see the crate's
        // documentation.
        let strong = if in_order {
            !both_memory || (overlap && same_way)
        } else {
            self.strong_to_each_other(a, b) && (!both_memory || complete)
        };
        if overlap {
            self.overlap.set(a, b);
            if ordered && same_way {
                self.po_overlap.set(a, b);
            }
        }
        if strong {
            self.morally_strong.set(a, b);
            if a < b && overlap && conflict && self.rules.has(Rule::CoherenceOrder) {
                self.co_pairs.push((a, b));
            }
        }
        if a < b && strong && self.events[a].sc && self.events[b].sc && self.rules.has(Rule::FenceScOrder) {
            if same_thread {
                self.sc_fixed.set(a, b);
            } else {
                self.sc_pairs.push((a, b));
            }
        }
        let (of_a, of_b) = (&self.events[a], &self.events[b]);
        if a < b && !same_thread && overlap && of_a.atomic && of_b.atomic && of_a.is_read() && of_b.is_read()
        {
            let whole = complete || self.rules.has(Rule::MixedSizeRmw);
            if whole && self.strong_to_each_other(a, b) {
                self.exclusive.push((a, b));
                if let (Some(x), Some(y)) = (of_a.other_half, of_b.other_half)
                    && !complete
                {
                    self.co_pairs.push((x.min(y), x.max(y)));
                }
            }
        }
    }

    /// Release and acquire patterns (section 8.7).
    fn patterns(&mut self) {
        let same_place = |graph: &Self, a: usize, b: usize| {
            let (x, y) = (&graph.events[a].access, &graph.events[b].access);
            matches!((x, y), (Some(x), Some(y)) if graph.complete(x, y))
        };
        let len = self.events.len();
        let inside = |graph: &Self, e: usize| graph.outside >> e & 1 == 0;
        for a in (0..len).filter(|e| inside(self, *e)).collect::<Vec<_>>() {
            let of = &self.events[a];
            let is_fence = of.kind == Kind::Fence;
            if self.rules.has(Rule::ReleasePattern) {
                let release = of.is_write() && of.release;
                if release {
                    self.releases.push((a, a));
                }
                for b in bits(self.po.row(a)) {
                    let strong_write = self.events[b].is_write() && self.events[b].strong.is_some();
                    if strong_write && inside(self, b) && (is_fence || (release && same_place(self, a, b))) {
                        self.releases.push((a, b));
                    }
                }
            }
            if self.rules.has(Rule::AcquirePattern) {
                // A read of `red` is no read operation, so nothing synchronizes with it.
                let strong_read = of.is_read() && of.strong.is_some() && !of.reduction;
                if !strong_read {
                    continue;
                }
                if of.acquire {
                    self.acquires.push((a, a));
                }
                for b in bits(self.po.row(a)) {
                    let other = &self.events[b];
                    let acquire = other.is_read() && other.acquire && !other.reduction;
                    let fence = other.kind == Kind::Fence;
                    if inside(self, b) && (fence || (acquire && same_place(self, a, b))) {
                        self.acquires.push((a, b));
                    }
                }
            }
        }
    }

    /// Lets the operations of each phase synchronize, with the operations of other threads that wait, and
    /// combines their predicates. `chosen`: the results that are unpredictable.
    pub(crate) fn set_barriers(&mut self, phases: &Phases, chosen: &[(usize, u64)]) {
        self.barriers = Relation::new(self.events.len());
        self.combined.clear();
        self.flow.clear();
        for phase in phases {
            self.synchronize(phase);
            self.combine(phase);
        }
        self.combined.extend(chosen.iter().map(|(event, result)| (*event, Combined::Chosen(*result))));
        if self.rules.has(Rule::BarrierSync) {
            for (a, b) in barrier::later(&self.events, phases) {
                if self.events[a].thread != self.events[b].thread {
                    self.barriers.set(a, b);
                }
            }
        }
    }

    fn synchronize(&mut self, phase: &[usize]) {
        for a in phase {
            for b in phase {
                let Some(of_b) = &self.events[*b].barrier else { continue };
                let rule = match of_b.barrier {
                    Barrier::Cta { .. } => Rule::BarrierSync,
                    Barrier::Warp { .. } => Rule::WarpSync,
                };
                let other = self.events[*a].thread != self.events[*b].thread;
                if other && self.events[*b].waits() && self.rules.has(rule) {
                    self.barriers.set(*a, *b);
                }
            }
        }
    }

    /// The results of the reductions of a phase.
    fn combine(&mut self, phase: &[usize]) {
        let alone = !self.rules.has(Rule::Reductions);
        for event in phase {
            let Some((op, _)) = self.events[*event].reduces() else { continue };
            let members = phase.iter().filter(|member| !alone || *member == event);
            let (mut parts, mut depends) = (Vec::new(), 0);
            for member in members {
                let of = &self.events[*member];
                depends |= of.depends;
                parts.extend(of.reduces().map(|(_, predicate)| (of.thread, predicate.clone())));
            }
            self.combined.insert(*event, Combined::Of(*op, parts));
            self.flow.push((*event, depends));
        }
    }

    /// The events whose results decide the result of an event, as bits: none for a read.
    pub(crate) fn parts_of(&self, event: usize) -> u128 {
        match self.combined.get(&event) {
            Some(Combined::Of(_, parts)) => {
                parts.iter().fold(0, |all, (thread, expr)| all | expr.reads() << self.first[*thread])
            }
            Some(Combined::Chosen(_)) | None => 0,
        }
    }

    /// The initial bytes of an atom.
    pub(crate) fn initial(&self, atom: usize) -> u64 {
        let Atom { block, offset, size } = self.atoms[atom];
        let bytes = &self.memory.blocks[block].init[offset as usize..(offset + size) as usize];
        bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    /// The expression that a write writes.
    pub(crate) fn written(&self, write: usize) -> Option<&Rc<Expr>> {
        self.events[write].value.as_ref()
    }
}
