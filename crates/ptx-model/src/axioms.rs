//! The relations that follow from the choices of an execution (sections 8.8.2 to 8.8.7), and the axioms
//! (section 8.9).
//!
//! Everything here is defined for partial choices too. Derived relations only grow with more choices, and
//! each axiom forbids a pattern of related pairs, so every completion of a violating partial choice violates
//! the axiom too. The search relies on this.

use crate::event::Kind;
use crate::graph::Graph;
use crate::relation::{Relation, bits};
use crate::rules::{Model, Rule};
use crate::test::{Proxy, ProxyFence, Space};

/// The source of an atom that a read returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Not chosen yet.
    Open,
    /// The initial value.
    Initial,
    /// A write.
    Write(usize),
}

/// What is chosen.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// For each slot of the graph.
    pub(crate) sources: Vec<Source>,
    /// Directions of pairs of `fence.sc`.
    pub(crate) sc: Relation,
    /// Directions of pairs of writes.
    pub(crate) co: Relation,
    /// Atoms and the sources of their final values.
    pub(crate) last: Vec<(usize, Source)>,
}

/// What the choices imply.
#[derive(Clone, Debug)]
pub(crate) struct Derived {
    pub(crate) rf: Relation,
    pub(crate) sync: Relation,
    pub(crate) cause: Relation,
    /// Coherence order, transitive.
    pub(crate) co: Relation,
    /// For each atom: reads and the writes that follow what they read.
    pub(crate) fr: Relation,
}

impl Choice {
    /// Nothing chosen.
    pub(crate) fn new(graph: &Graph<'_>) -> Self {
        Self {
            sources: vec![Source::Open; graph.slots.len()],
            sc: graph.sc_fixed.clone(),
            co: Relation::new(graph.events.len()),
            last: Vec::new(),
        }
    }

    /// What follows from the choices.
    ///
    /// # Errors
    /// The axiom that they violate.
    pub(crate) fn derive(&self, graph: &Graph<'_>) -> Result<Derived, Rule> {
        let len = graph.events.len();
        let mut rf = Relation::new(len);
        for (slot, source) in graph.slots.iter().zip(&self.sources) {
            if let Source::Write(write) = source {
                rf.set(*write, slot.read);
            }
        }
        if graph.rules.has(Rule::NoThinAir) {
            let mut flow = rf.clone();
            for (index, event) in graph.events.iter().enumerate() {
                for read in bits(event.depends) {
                    flow.set(read, index);
                }
            }
            for (index, depends) in &graph.flow {
                for read in bits(*depends) {
                    flow.set(read, *index);
                }
            }
            if flow.is_cyclic() {
                return Err(Rule::NoThinAir);
            }
        }
        let observed = observation(graph, &rf);
        let (sync, by_shared) = self.synchronizes(graph, &observed);
        let base = base_causality(graph, &sync, &by_shared);
        let cause = causality(graph, &observed, &base);
        let co = self.coherence(graph, &cause)?;
        let fr = self.reads_then_writes(graph, &co);
        let derived = Derived { rf, sync, cause, co, fr };
        self.check(graph, &derived)?;
        Ok(derived)
    }

    /// Section 8.8.4. The second relation has the pairs that patterns on shared memory make.
    fn synchronizes(&self, graph: &Graph<'_>, observed: &Relation) -> (Relation, Relation) {
        let mut sync = graph.barriers.clone();
        let mut by_shared = Relation::new(graph.events.len());
        let other = |a: usize, b: usize| graph.events[a].thread != graph.events[b].thread;
        for (a, b) in self.sc.pairs().filter(|(a, b)| other(*a, *b)) {
            sync.set(a, b);
        }
        if !graph.rules.has(Rule::Synchronizes) {
            return (sync, by_shared);
        }
        for (first, write) in &graph.releases {
            let row = observed.row(*write);
            if row == 0 {
                continue;
            }
            for (read, last) in &graph.acquires {
                if row >> read & 1 != 0 && other(*first, *last) && graph.morally_strong.has(*first, *last) {
                    let shared = graph.events[*write].access.is_some_and(|a| a.space == Space::Shared);
                    if shared { by_shared.set(*first, *last) } else { sync.set(*first, *last) }
                }
            }
        }
        if graph.rules.has(Rule::Spaces) {
            sync.union(&by_shared);
        }
        (sync, by_shared)
    }

    /// Section 8.8.6: the least relation that contains the choices and, by the axiom, causality between
    /// writes.
    fn coherence(&self, graph: &Graph<'_>, cause: &Relation) -> Result<Relation, Rule> {
        let mut co = self.co.clone();
        let axiom = graph.rules.has(Rule::Coherence);
        if axiom {
            for (write, event) in graph.events.iter().enumerate() {
                if event.is_write() {
                    let later = cause.row(write) & graph.overlap.row(write);
                    co.add_row(
                        write,
                        bits(later).filter(|e| graph.events[*e].is_write()).fold(0, |s, e| s | 1 << e),
                    );
                }
            }
        }
        for (atom, source) in &self.last {
            if let Source::Write(last) = source {
                for write in bits(graph.writers[*atom] & graph.co_related.row(*last)) {
                    co.set(write, *last);
                }
            }
        }
        if graph.rules.has(Rule::ScPerLocation) {
            self.order_by_program(graph, &mut co);
        }
        co.close();
        if graph.rules.has(Rule::RmwAtomicity) && !co.has_same() {
            self.order_by_atomicity(graph, &mut co);
        }
        let overtaken = |(atom, source): &(usize, Source)| match source {
            Source::Write(last) => co.row(*last) & graph.writers[*atom] != 0,
            Source::Open | Source::Initial => false,
        };
        if co.has_same() || self.last.iter().any(overtaken) { Err(Rule::Coherence) } else { Ok(co) }
    }

    /// The source of an atom of a read.
    fn source(&self, graph: &Graph<'_>, read: usize, atom: usize) -> Option<Source> {
        let slots = graph.slots_of[read].clone();
        let slot = slots.into_iter().find(|slot| graph.slots[*slot].atom == atom)?;
        Some(self.sources[slot]).filter(|source| *source != Source::Open)
    }

    /// Adds directions of related writes of which the opposite would contradict SC-per-Location: the search
    /// need not try that.
    fn order_by_program(&self, graph: &Graph<'_>, co: &mut Relation) {
        let strong = &graph.morally_strong;
        let related = |a: usize, b: usize| graph.co_related.has(a, b);
        for (slot, source) in graph.slots.iter().zip(&self.sources) {
            let (read, atom) = (slot.read, slot.atom);
            let Source::Write(from) = *source else { continue };
            let writers = graph.writers[atom];
            // The write of the own thread that comes first is not later than what the read returns.
            for write in bits(writers).filter(|w| *w != from && graph.po_overlap.has(*w, read)) {
                if related(write, from) {
                    co.set(write, from);
                }
            }
            if !strong.has(from, read) {
                continue;
            }
            for write in bits(writers & graph.po_overlap.row(read)).filter(|w| *w != from) {
                if related(from, write) {
                    co.set(from, write);
                }
            }
            for later in bits(graph.po_overlap.row(read)).filter(|e| graph.events[*e].is_read()) {
                if let Some(Source::Write(other)) = self.source(graph, later, atom)
                    && other != from
                    && related(from, other)
                    && strong.has(later, from)
                {
                    co.set(from, other);
                }
            }
        }
    }

    /// The same for directions that would put a write between the read and the write of an atomic operation.
    /// `co` is closed, before and after.
    fn order_by_atomicity(&self, graph: &Graph<'_>, co: &mut Relation) {
        loop {
            let before = co.clone();
            for (slot, source) in graph.slots.iter().zip(&self.sources) {
                let Some(own) = graph.events[slot.read].other_half else { continue };
                let strong =
                    graph.writers[slot.atom] & graph.co_related.row(own) & graph.morally_strong.row(own);
                match *source {
                    Source::Open => {}
                    // Nothing is before it but the initial value.
                    Source::Initial => co.add_row(own, strong),
                    Source::Write(from) => {
                        co.add_row(own, co.row(from) & strong);
                        let earlier =
                            |w: &usize| *w != from && co.has(*w, own) && graph.co_related.has(*w, from);
                        for write in bits(strong).filter(earlier).collect::<Vec<_>>() {
                            co.set(write, from);
                        }
                    }
                }
            }
            co.close();
            if *co == before || co.has_same() {
                return;
            }
        }
    }

    /// Section 8.8.7, third item.
    fn reads_then_writes(&self, graph: &Graph<'_>, co: &Relation) -> Relation {
        let mut fr = Relation::new(graph.events.len());
        if !graph.rules.has(Rule::CommunicationOrder) {
            return fr;
        }
        for (slot, source) in graph.slots.iter().zip(&self.sources) {
            let writers = graph.writers[slot.atom];
            let later = match source {
                Source::Open => continue,
                Source::Initial => writers,
                Source::Write(write) => writers & co.row(*write),
            };
            // An atomic operation reads before it writes, which its own program order says.
            let own = graph.events[slot.read].other_half.map_or(0, |half| 1 << half);
            fr.add_row(slot.read, later & graph.overlap.row(slot.read) & !own);
        }
        fr
    }

    /// The axioms besides those that are checked on the way.
    fn check(&self, graph: &Graph<'_>, derived: &Derived) -> Result<(), Rule> {
        let rules = graph.rules;
        if rules.has(Rule::FenceSc) {
            // Program order is not causality by itself, so the pairs of one thread are not asked.
            let against = |(a, b): (usize, usize)| derived.cause.has(b, a);
            if self.sc.pairs().any(against) {
                return Err(Rule::FenceSc);
            }
        }
        if self.sc.is_cyclic() {
            return Err(Rule::FenceScOrder);
        }
        if rules.has(Rule::ScPerLocation) {
            let mut order = graph.po_overlap.clone();
            for link in [&derived.rf, &derived.co, &derived.fr] {
                for event in 0..graph.events.len() {
                    order.add_row(event, link.row(event) & graph.morally_strong.row(event));
                }
            }
            // A cycle of communication alone does not contradict program order: single-copy atomicity is
            // about these.
            order.close();
            if graph.po_overlap.pairs().any(|(a, b)| order.has(b, a)) {
                return Err(Rule::ScPerLocation);
            }
        }
        if rules.has(Rule::Causality) {
            let outside = graph.outside;
            for link in [&derived.rf, &derived.fr] {
                let against = |(a, b): (usize, usize)| {
                    (outside >> a | outside >> b) & 1 == 0 && derived.cause.has(b, a)
                };
                if link.pairs().any(against) {
                    return Err(Rule::Causality);
                }
            }
        }
        self.check_single_copy(graph, derived)?;
        self.check_rmw(graph, derived)
    }

    /// Whether a read takes some atom of the set of its slots from before a write: from the initial value or
    /// an earlier write.
    fn reads_before(&self, graph: &Graph<'_>, co: &Relation, read: usize, write: usize) -> bool {
        graph.slots_of[read].clone().any(|slot| {
            let covered = graph.writers[graph.slots[slot].atom] >> write & 1 != 0;
            covered
                && match self.sources[slot] {
                    Source::Open => false,
                    Source::Initial => true,
                    Source::Write(source) => co.has(source, write),
                }
        })
    }

    /// Section 8.9.3, single-copy atomicity.
    fn check_single_copy(&self, graph: &Graph<'_>, derived: &Derived) -> Result<(), Rule> {
        if !graph.rules.has(Rule::SingleCopyAtomicity) {
            return Ok(());
        }
        for (write, read) in derived.rf.pairs() {
            if graph.slots_of[read].len() > 1
                && graph.morally_strong.has(write, read)
                && !graph.may_be_two(read)
                && !graph.may_be_two(write)
                && self.reads_before(graph, &derived.co, read, write)
            {
                return Err(Rule::SingleCopyAtomicity);
            }
        }
        Ok(())
    }

    /// Section 8.9.3, atomicity of atomic operations, and 8.6.2 for those of different sizes.
    fn check_rmw(&self, graph: &Graph<'_>, derived: &Derived) -> Result<(), Rule> {
        let co = &derived.co;
        if graph.rules.has(Rule::RmwAtomicity) {
            for (read, event) in graph.events.iter().enumerate().filter(|(_, e)| e.is_read()) {
                let Some(own) = event.other_half else { continue };
                let between = bits(graph.overlap.row(own) & graph.morally_strong.row(own))
                    .filter(|w| *w != read && graph.events[*w].is_write() && co.has(*w, own));
                for write in between {
                    if self.reads_before(graph, co, read, write) {
                        return Err(Rule::RmwAtomicity);
                    }
                }
            }
        }
        for (a, b) in &graph.exclusive {
            let complete = match (&graph.events[*a].access, &graph.events[*b].access) {
                (Some(x), Some(y)) => graph.complete(x, y),
                _ => false,
            };
            let rule = if complete && !graph.void { Rule::RmwAtomicity } else { Rule::MixedSizeRmw };
            if !graph.rules.has(rule) {
                continue;
            }
            let halves = (graph.events[*a].other_half, graph.events[*b].other_half);
            for (read, own, other) in [(*a, halves.0, halves.1), (*b, halves.1, halves.0)] {
                let Some(other) = other else { continue };
                // The other comes first, or is observed, and still the read has something from before it.
                let first = own.is_some_and(|own| co.has(other, own)) || derived.rf.has(other, read);
                if first && self.reads_before(graph, co, read, other) {
                    return Err(rule);
                }
                // The other comes later, and the read has something of it.
                if own.is_some_and(|own| co.has(own, other)) && derived.rf.has(other, read) {
                    return Err(rule);
                }
            }
        }
        Ok(())
    }
}

/// Section 8.8.2.
fn observation(graph: &Graph<'_>, rf: &Relation) -> Relation {
    let len = graph.events.len();
    let mut observed = Relation::new(len);
    for write in 0..len {
        observed.add_row(write, rf.row(write) & graph.morally_strong.row(write));
    }
    if !graph.rules.has(Rule::ObservationOrder) {
        return observed;
    }
    loop {
        let mut changed = false;
        for write in 0..len {
            let row = observed.row(write);
            let through = bits(row).filter_map(|read| graph.events[read].other_half);
            let more = through.fold(0, |all, half| all | observed.row(half));
            changed |= more & !row != 0;
            observed.add_row(write, more);
        }
        if !changed {
            return observed;
        }
    }
}

/// Section 8.8.5, base causality order. PTX ISA 7.5 makes program order a part of it.
fn base_causality(graph: &Graph<'_>, sync: &Relation, by_shared: &Relation) -> Relation {
    let extend = graph.rules.has(Rule::ProgramOrder);
    let around = if extend { graph.po.or_same() } else { Relation::new(graph.events.len()).or_same() };
    let mut base = around.then(sync).then(&around);
    if !graph.rules.has(Rule::Spaces) {
        // Patterns on shared memory order accesses to shared memory alone.
        let mut shared = around.then(by_shared).then(&around);
        let is = |e: &crate::event::Event| e.access.is_none_or(|a| a.space == Space::Shared);
        let inside = bits_of(graph, is);
        for event in 0..graph.events.len() {
            shared.mask_row(event, if inside >> event & 1 == 0 { 0 } else { inside });
        }
        base.union(&shared);
    }
    if graph.rules.has(Rule::BaseCausality) {
        base.close();
    }
    if graph.model == Model::Ptx75 && extend {
        base.union(&graph.po);
    }
    base
}

/// The events of a kind, as bits.
fn bits_of(graph: &Graph<'_>, is: impl Fn(&crate::event::Event) -> bool) -> u128 {
    graph.events.iter().enumerate().filter(|(_, e)| is(e)).fold(0, |set, (index, _)| set | 1 << index)
}

/// Section 8.8.5, causality order.
fn causality(graph: &Graph<'_>, observed: &Relation, base: &Relation) -> Relation {
    let mut kept = base.clone();
    let inside = !graph.outside;
    for event in 0..graph.events.len() {
        let row = if inside >> event & 1 == 0 { 0 } else { inside };
        kept.mask_row(event, row);
    }
    if graph.model == Model::Ptx75 {
        kept = preserved_by_proxies(graph, base, kept);
    }
    let mut cause = kept.clone();
    if graph.rules.has(Rule::ObservedCausality) {
        kept.union(&graph.po_overlap);
        cause.union(&observed.then(&kept));
    }
    cause
}

/// The base causality order that the proxies of both accesses preserve (PTX ISA 7.5).
///
/// Two accesses to overlapping bytes stay ordered if a path of base causality between them passes, in this
/// order, a fence of the first access's proxy in its CTA unless that is the generic proxy, a fence of virtual
/// aliases if their virtual addresses differ, and a fence of the second access's proxy in its CTA unless that
/// is the generic proxy. Accesses by one virtual address and one proxy in one CTA need no fence. Pairs that
/// are not both accesses stay ordered, and so do accesses that do not overlap, as nothing asks for these.
fn preserved_by_proxies(graph: &Graph<'_>, base: &Relation, mut kept: Relation) -> Relation {
    let proxies = graph.rules.has(Rule::Proxies);
    let aliases = graph.rules.has(Rule::AliasFence);
    let fences = |wanted: ProxyFence| {
        let is = move |(_, e): &(usize, &crate::event::Event)| e.kind == Kind::ProxyFence(wanted);
        graph.events.iter().enumerate().filter(is).fold(0_u128, |set, (index, _)| set | 1 << index)
    };
    let alias_fences = fences(ProxyFence::Alias);
    let own_fences = |event: usize, proxy: Proxy| {
        let cta = graph.placement(event);
        bits(fences(ProxyFence::Proxy(proxy)))
            .filter(|f| graph.placement(*f).same_cta(cta))
            .fold(0_u128, |set, f| set | 1 << f)
    };
    for (a, b) in base.pairs() {
        let (Some(x), Some(y)) = (graph.events[a].access, graph.events[b].access) else { continue };
        if !x.overlaps(&y) {
            continue;
        }
        let same_view = x.view == y.view || !aliases;
        let same_proxy = x.proxy == y.proxy || !proxies;
        let one_cta = graph.placement(a).same_cta(graph.placement(b));
        if same_view && same_proxy && (one_cta || x.proxy == Proxy::Generic || !proxies) {
            continue;
        }
        // The events that the path has reached, with the fences passed so far.
        let mut at = base.row(a);
        let follow = |from: u128| bits(from).fold(0, |all, e| all | base.row(e));
        if proxies && x.proxy != Proxy::Generic {
            at = follow(at & own_fences(a, x.proxy));
        }
        if !same_view {
            at = follow(at & alias_fences);
        }
        if proxies && y.proxy != Proxy::Generic {
            at = follow(at & own_fences(b, y.proxy));
        }
        if at >> b & 1 == 0 {
            kept.mask_row(a, !(1 << b));
        }
    }
    kept
}
