//! The enumeration of executions of one candidate.
//!
//! Choices are made one at a time: first the final write of each location in the clause, then the sources of
//! the reads on which the clause and the conditions of the paths depend, then the directions of Fence-SC and
//! coherence order, then the other reads. After each choice, known values are compared with the conditions of
//! the paths and the clause, and the axioms are checked; a partial choice that cannot become a solution is
//! abandoned. Among the reads that are needed, atomic operations come first and reads with few sources next,
//! because they contradict the axioms after fewer choices.
//!
//! Coherence order is the least order that the axioms require: writes in a data race stay unrelated. A larger
//! order would only forbid more executions.

use crate::Error;
use crate::axioms::{Choice, Derived, Source};
use crate::graph::{Combined, Graph};
use crate::relation::bits;
use crate::rules::Rule;
use crate::test::{Clause, Comparison, Link, Term, Type};
use crate::value::{compare, mask};
use std::cell::Cell;
use std::time::Instant;

/// How much work is allowed.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) nodes: Cell<u64>,
    pub(crate) most: u64,
    pub(crate) deadline: Option<Instant>,
}

impl Budget {
    /// Counts a choice.
    ///
    /// # Errors
    /// The limit is reached.
    pub(crate) fn spend(&self) -> Result<(), Error> {
        let nodes = self.nodes.get() + 1;
        self.nodes.set(nodes);
        let late = || self.deadline.is_some_and(|deadline| Instant::now() > deadline);
        if nodes > self.most {
            let most = self.most;
            return Err(Error::limit(0, format!("undecided after {most} choices (`--max-choices`)")));
        }
        if nodes.is_multiple_of(64) && late() {
            return Err(Error::limit(0, "undecided within the time limit (`--timeout`)".to_owned()));
        }
        Ok(())
    }
}

/// What is known of the result of a read or barrier reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memo {
    Unset,
    /// Being computed: a query now is part of a cycle.
    Busy,
    Set(Option<u64>),
}

/// The results of reads and barrier reductions under a choice.
pub(crate) struct Values<'g, 'a> {
    graph: &'g Graph<'a>,
    choice: &'g Choice,
    memo: Vec<Memo>,
}

impl<'g, 'a> Values<'g, 'a> {
    pub(crate) fn new(graph: &'g Graph<'a>, choice: &'g Choice) -> Self {
        Self { graph, choice, memo: vec![Memo::Unset; graph.events.len()] }
    }

    /// What a read or a barrier reduction returns, where it is known.
    pub(crate) fn read(&mut self, read: usize) -> Option<u64> {
        match self.memo[read] {
            Memo::Set(value) => return value,
            Memo::Busy => return None,
            Memo::Unset => {}
        }
        self.memo[read] = Memo::Busy;
        let value = match self.graph.combined.get(&read) {
            Some(combined) => self.reduced(combined),
            None => self.by_sources(read),
        };
        self.memo[read] = Memo::Set(value);
        value
    }

    fn reduced(&mut self, combined: &Combined) -> Option<u64> {
        match combined {
            Combined::Chosen(result) => Some(*result),
            Combined::Of(op, parts) => {
                let mut holding = 0;
                for (thread, predicate) in parts {
                    holding += self.of_thread(*thread, predicate)?;
                }
                Some(op.result(holding, parts.len() as u64))
            }
        }
    }

    fn by_sources(&mut self, read: usize) -> Option<u64> {
        let graph = self.graph;
        let access = graph.events[read].access?;
        let mut value = 0;
        for slot in graph.slots_of[read].clone() {
            let atom = graph.slots[slot].atom;
            let bytes = self.atom(atom, self.choice.sources[slot])?;
            value |= bytes << (8 * (graph.atoms[atom].offset - access.offset));
        }
        Some(value)
    }

    /// The bytes of an atom that a source has.
    fn atom(&mut self, atom: usize, source: Source) -> Option<u64> {
        match source {
            Source::Open => None,
            Source::Initial => Some(self.graph.initial(atom)),
            Source::Write(write) => {
                let value = self.written(write)?;
                let (at, from) = (self.graph.atoms[atom], self.graph.events[write].access?);
                Some(value >> (8 * (at.offset - from.offset)) & mask(at.size))
            }
        }
    }

    /// What an event of the same thread, or its registers, make of the reads.
    pub(crate) fn of_thread(&mut self, thread: usize, expr: &crate::value::Expr) -> Option<u64> {
        let base = self.graph.first[thread];
        expr.value(&mut |local| self.read(base + local))
    }

    /// What a write writes, to the bytes of its access.
    pub(crate) fn written(&mut self, write: usize) -> Option<u64> {
        let graph = self.graph;
        let value = self.of_thread(graph.events[write].thread, graph.written(write)?)?;
        Some(value & mask(graph.events[write].access?.size))
    }

    fn assume(&mut self, read: usize, value: u64) {
        self.memo[read] = Memo::Set(Some(value));
    }
}

/// The final source of each atom that a clause asks for, and values.
pub(crate) struct Final {
    /// Atom and source.
    pub(crate) memory: Vec<(usize, Source)>,
    /// The result of each read and barrier reduction.
    pub(crate) reads: Vec<Option<u64>>,
}

/// Receives the solutions of a search: the graph, the choices, the derived relations, and a final state.
/// Returns whether to stop.
pub(crate) type Report<'r> = dyn FnMut(&Graph<'_>, &Choice, &Derived, &Final) -> bool + 'r;

/// A search through the executions of a graph.
pub(crate) struct Search<'s, 'g, 'a> {
    pub(crate) graph: &'g Graph<'a>,
    /// Only executions that satisfy it are reported.
    pub(crate) goal: &'s Clause,
    pub(crate) budget: &'s Budget,
    pub(crate) report: &'s mut Report<'s>,
    /// Only executions in which these two events are not ordered by causality are reported.
    pub(crate) unordered: Option<(usize, usize)>,
    /// Report only executions in which no morally strong write follows the writes that these slots return.
    pub(crate) last: Vec<usize>,
    /// The atoms whose final values the goal asks for.
    asked: Vec<usize>,
}

impl<'s, 'g, 'a> Search<'s, 'g, 'a> {
    pub(crate) fn new(
        graph: &'g Graph<'a>,
        goal: &'s Clause,
        budget: &'s Budget,
        report: &'s mut Report<'s>,
    ) -> Self {
        let mut asked = Vec::new();
        goal.terms(&mut |term| {
            if let Term::Memory(location, element) = term {
                asked.extend(atoms_of_element(graph, *location, *element));
            }
        });
        asked.sort_unstable();
        asked.dedup();
        Self { graph, goal, budget, report, unordered: None, last: Vec::new(), asked }
    }

    /// Reports every execution that satisfies the goal, with these directions of coherence; whether a report
    /// stopped it.
    ///
    /// # Errors
    /// The budget is spent.
    pub(crate) fn run(&mut self, ordered: &[(usize, usize)]) -> Result<bool, Error> {
        let mut choice = Choice::new(self.graph);
        for (a, b) in ordered {
            choice.co.set(*a, *b);
        }
        self.choose(&mut choice)
    }

    /// Makes the next choice.
    fn choose(&mut self, choice: &mut Choice) -> Result<bool, Error> {
        self.budget.spend()?;
        let graph = self.graph;
        // Known values cost less than derived relations.
        if !self.may_succeed(choice) {
            return Ok(false);
        }
        let Ok(derived) = choice.derive(graph) else { return Ok(false) };
        if self.unordered.is_some_and(|(a, b)| derived.cause.has(a, b) || derived.cause.has(b, a)) {
            return Ok(false);
        }
        if self.last.iter().any(|slot| !is_last(graph, choice, &derived, *slot)) {
            return Ok(false);
        }
        if let Some(atom) = self.asked.get(choice.last.len()).copied() {
            return self.choose_last(choice, atom);
        }
        if let Some(slot) = self.needed(choice) {
            return self.choose_source(choice, slot);
        }
        let open = graph.sc_pairs.iter().find(|(a, b)| !choice.sc.has(*a, *b) && !choice.sc.has(*b, *a));
        if let Some((a, b)) = open.copied() {
            for (first, second) in [(a, b), (b, a)] {
                let mut more = choice.clone();
                more.sc.set(first, second);
                if self.choose(&mut more)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let open = graph.co_pairs.iter().find(|(a, b)| !derived.co.has(*a, *b) && !derived.co.has(*b, *a));
        if let Some((a, b)) = open.copied() {
            for (first, second) in [(a, b), (b, a)] {
                let mut more = choice.clone();
                more.co.set(first, second);
                if self.choose(&mut more)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if let Some(slot) = choice.sources.iter().position(|source| *source == Source::Open) {
            return self.choose_source(choice, slot);
        }
        self.resolve(choice, &derived, &mut Vec::new())
    }

    /// Chooses the final write of an atom: one that no other follows in coherence order.
    fn choose_last(&mut self, choice: &mut Choice, atom: usize) -> Result<bool, Error> {
        let mut sources: Vec<Source> = bits(self.graph.writers[atom]).map(Source::Write).collect();
        if sources.is_empty() {
            sources.push(Source::Initial);
        }
        for source in sources {
            choice.last.push((atom, source));
            let stop = self.choose(choice)?;
            choice.last.pop();
            if stop {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A slot without source on which a condition of a path or the goal depends. Slots of atomic operations
    /// that write come first, since their order decides most others; of the others, the one with the fewest
    /// sources that its conditions allow.
    fn needed(&self, choice: &Choice) -> Option<usize> {
        let open = self.all_needed(choice);
        let writes = |slot: &&usize| self.graph.events[self.graph.slots[**slot].read].other_half.is_some();
        if let Some(slot) = open.iter().find(writes) {
            return Some(*slot);
        }
        if open.len() < 2 {
            return open.first().copied();
        }
        let mut values = Values::new(self.graph, choice);
        open.into_iter().min_by_key(|slot| self.options(&mut values, *slot))
    }

    /// How many sources a slot can have as far as the conditions of its path tell.
    fn options(&self, values: &mut Values<'_, '_>, slot: usize) -> usize {
        let graph = self.graph;
        let (read, atom) = (graph.slots[slot].read, graph.slots[slot].atom);
        let writers = bits(graph.writers[atom]).map(Source::Write).chain([Source::Initial]);
        if graph.slots_of[read].len() > 1 {
            return writers.count();
        }
        let thread = graph.events[read].thread;
        let own = read - graph.first[thread];
        let conditions = &graph.paths[thread].conditions;
        let about: Vec<_> = conditions.iter().filter(|c| c.expr.reads() >> own & 1 != 0).collect();
        let fits = |source: &Source| {
            let Some(value) = values.atom(atom, *source) else { return true };
            about.iter().all(|condition| {
                let found = condition.expr.value(&mut |local| {
                    if local == own { Some(value) } else { values.read(graph.first[thread] + local) }
                });
                found.is_none_or(|found| (found != 0) == condition.holds)
            })
        };
        writers.filter(fits).count()
    }

    /// The slots without source on which the goal or a condition of a path depends, those of the goal first.
    fn all_needed(&self, choice: &Choice) -> Vec<usize> {
        let graph = self.graph;
        let mut wanted: Vec<u128> = Vec::new();
        self.goal.terms(&mut |term| {
            if let Term::Reg(thread, reg) = term {
                wanted.push(graph.paths[*thread].registers[reg.0].reads() << graph.first[*thread]);
            }
        });
        for (_, source) in &choice.last {
            if let Source::Write(write) = source {
                wanted.push(value_reads(graph, *write));
            }
        }
        for (thread, path) in graph.paths.iter().enumerate() {
            wanted.extend(path.conditions.iter().map(|c| c.expr.reads() << graph.first[thread]));
        }
        let (mut seen, mut open) = (0_u128, Vec::new());
        let mut reads: Vec<usize> = wanted.into_iter().rev().flat_map(bits).collect();
        while let Some(read) = reads.pop() {
            if seen >> read & 1 != 0 {
                continue;
            }
            seen |= 1 << read;
            reads.extend(bits(graph.parts_of(read)));
            for slot in graph.slots_of[read].clone() {
                match choice.sources[slot] {
                    Source::Open => open.push(slot),
                    Source::Initial => {}
                    Source::Write(write) => reads.extend(bits(value_reads(graph, write))),
                }
            }
        }
        open
    }

    fn choose_source(&mut self, choice: &mut Choice, slot: usize) -> Result<bool, Error> {
        let graph = self.graph;
        let read = graph.slots[slot].read;
        let own = graph.events[read].other_half;
        let mut sources: Vec<Source> = bits(graph.writers[graph.slots[slot].atom])
            .filter(|write| Some(*write) != own)
            .filter(|write| graph.rules.has(Rule::ByteOverlap) || graph.overlap.has(*write, read))
            .map(Source::Write)
            .collect();
        if graph.rules.has(Rule::Initialization) {
            sources.push(Source::Initial);
        }
        for source in sources {
            choice.sources[slot] = source;
            if self.choose(choice)? {
                return Ok(true);
            }
        }
        choice.sources[slot] = Source::Open;
        Ok(false)
    }

    /// Whether the known values contradict neither the paths nor the goal.
    fn may_succeed(&self, choice: &Choice) -> bool {
        let mut values = Values::new(self.graph, choice);
        self.conditions_hold(&mut values) != Some(false)
            && (self.goal.has_relations() || self.evaluate(&mut values, choice, None) != Some(false))
    }

    /// Whether the conditions of the paths hold; `None` where some value is unknown.
    fn conditions_hold(&self, values: &mut Values<'_, '_>) -> Option<bool> {
        let mut known = true;
        for (thread, path) in self.graph.paths.iter().enumerate() {
            for condition in &path.conditions {
                match values.of_thread(thread, &condition.expr) {
                    None => known = false,
                    Some(value) if (value != 0) != condition.holds => return Some(false),
                    Some(_) => {}
                }
            }
        }
        known.then_some(true)
    }

    /// All is chosen: reports the execution if it satisfies the goal. Values that depend on themselves, which
    /// the axiom No-Thin-Air forbids, are any constant of the test.
    fn resolve(
        &mut self,
        choice: &Choice,
        derived: &Derived,
        assumed: &mut Vec<(usize, u64)>,
    ) -> Result<bool, Error> {
        let graph = self.graph;
        let mut values = Values::new(graph, choice);
        for (read, value) in &*assumed {
            values.assume(*read, *value);
        }
        let reads = || (0..graph.events.len()).filter(|e| graph.events[*e].is_read());
        if let Some(open) = reads().find(|read| values.read(*read).is_none()) {
            for value in constants(graph) {
                self.budget.spend()?;
                assumed.push((open, value));
                let stop = self.resolve(choice, derived, assumed)?;
                assumed.pop();
                if stop {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if assumed.iter().any(|(read, value)| values.by_sources(*read) != Some(*value)) {
            return Ok(false);
        }
        if self.conditions_hold(&mut values) != Some(true) {
            return Ok(false);
        }
        let reads = (0..graph.events.len()).map(|event| values.read(event)).collect();
        if self.evaluate(&mut values, choice, Some(derived)) != Some(true) {
            return Ok(false);
        }
        let last = Final { memory: choice.last.clone(), reads };
        Ok((self.report)(graph, choice, derived, &last))
    }

    /// The value of the goal, if it is known.
    fn evaluate(
        &self,
        values: &mut Values<'_, '_>,
        choice: &Choice,
        derived: Option<&Derived>,
    ) -> Option<bool> {
        evaluate(self.goal, &mut |atom| match atom {
            Clause::Compare(comparison, a, b) => {
                let a_value = self.term(values, choice, a)?;
                let b_value = self.term(values, choice, b)?;
                Some(compare_terms(self.graph, *comparison, (a, a_value), (b, b_value)))
            }
            Clause::Related(link, a, b) => {
                let derived = derived?;
                let is = |e: usize, of: &(usize, usize)| {
                    (self.graph.events[e].thread, self.graph.events[e].instruction) == *of
                };
                let mut pairs = link_of(*link, choice, derived).pairs();
                Some(pairs.any(|(from, to)| is(from, a) && is(to, b)))
            }
            Clause::True | Clause::Not(_) | Clause::And(_) | Clause::Or(_) => None,
        })
    }

    fn term(&self, values: &mut Values<'_, '_>, choice: &Choice, term: &Term) -> Option<u64> {
        match term {
            Term::Const(value) => Some(*value),
            Term::Address(location) => Some(crate::memory::address_of(*location)),
            Term::Reg(thread, reg) => {
                let expr = &self.graph.paths[*thread].registers[reg.0];
                values.of_thread(*thread, expr)
            }
            Term::Memory(location, element) => {
                let mut value = 0;
                for (place, atom) in atoms_of_element(self.graph, *location, *element).enumerate() {
                    let (_, source) = choice.last.iter().find(|(of, _)| *of == atom)?;
                    let start = self.graph.atoms[atom - place].offset;
                    let bytes = values.atom(atom, *source)?;
                    value |= bytes << (8 * (self.graph.atoms[atom].offset - start));
                }
                Some(value)
            }
        }
    }
}

/// Whether it is known that no morally strong write follows the write that a slot returns.
fn is_last(graph: &Graph<'_>, choice: &Choice, derived: &Derived, slot: usize) -> bool {
    let (read, writers) = (graph.slots[slot].read, graph.writers[graph.slots[slot].atom]);
    let later = match choice.sources[slot] {
        Source::Open => 0,
        Source::Initial => writers,
        Source::Write(write) => writers & derived.co.row(write),
    };
    bits(later).all(|write| !graph.morally_strong.has(write, read))
}

/// A relation by its name.
pub(crate) fn link_of<'d>(link: Link, choice: &'d Choice, derived: &'d Derived) -> &'d crate::Relation {
    match link {
        Link::Rf => &derived.rf,
        Link::Co => &derived.co,
        Link::Fr => &derived.fr,
        Link::Sc => &choice.sc,
        Link::Sw => &derived.sync,
        Link::Cause => &derived.cause,
    }
}

/// A clause in three-valued logic: comparisons and relations are asked for.
pub(crate) fn evaluate(clause: &Clause, ask: &mut impl FnMut(&Clause) -> Option<bool>) -> Option<bool> {
    match clause {
        Clause::True => Some(true),
        Clause::Compare(..) | Clause::Related(..) => ask(clause),
        Clause::Not(inner) => evaluate(inner, ask).map(|value| !value),
        Clause::And(all) | Clause::Or(all) => {
            let decides = matches!(clause, Clause::Or(_));
            let mut known = true;
            for one in all {
                match evaluate(one, ask) {
                    Some(value) if value == decides => return Some(decides),
                    Some(_) => {}
                    None => known = false,
                }
            }
            known.then_some(!decides)
        }
    }
}

/// Compares signed, in the size of what is compared: an element of memory has its own, and a register of
/// which only the low 32 bits are set is equal to a negative constant of 32 bits.
fn compare_terms(graph: &Graph<'_>, comparison: Comparison, a: (&Term, u64), b: (&Term, u64)) -> bool {
    let size = |(term, value): (&Term, u64), other: (&Term, u64)| match (term, other.0) {
        (Term::Memory(location, _), _) => graph.test.locations[*location].element.min(8),
        (Term::Reg(..), Term::Const(constant)) if *constant >> 63 != 0 && value >> 32 == 0 => 4,
        _ => 8,
    };
    let size = size(a, b).min(size(b, a));
    compare(comparison, Type { size, ..Type::WORD }, a.1, b.1)
}

/// The atoms of an element of a location; of a shared one, in the CTA of the first thread.
pub(crate) fn atoms_of_element<'g>(
    graph: &'g Graph<'_>,
    location: usize,
    element: u32,
) -> impl Iterator<Item = usize> + 'g {
    let size = graph.test.locations[location].element;
    let physical = graph.test.physical(location);
    let block = graph.test.threads.first().map_or(0, |t| graph.memory.block(physical, t.placement));
    let range = element * size..(element + 1) * size;
    let of = move |atom: &crate::graph::Atom| atom.block == block && range.contains(&atom.offset);
    graph.atoms.iter().enumerate().filter(move |(_, atom)| of(atom)).map(|(index, _)| index)
}

/// The reads that decide what a write writes, as bits.
fn value_reads(graph: &Graph<'_>, write: usize) -> u128 {
    let base = graph.first[graph.events[write].thread];
    graph.written(write).map_or(0, |expr| expr.reads() << base)
}

/// The constants of a test, which are the candidates for values out of thin air.
fn constants(graph: &Graph<'_>) -> Vec<u64> {
    let mut all = vec![0, 1];
    graph.test.clause.terms(&mut |term| {
        if let Term::Const(value) = term {
            all.push(*value);
        }
    });
    all.sort_unstable();
    all.dedup();
    all
}
