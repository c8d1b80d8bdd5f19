//! Data races (section 8.6.1).
//!
//! Two accesses of different threads race if they overlap, one of them writes, they are not morally strong,
//! and some allowed execution does not order them by causality. Accesses of one thread are ordered by program
//! order and do not race: see the crate's documentation.

use crate::Error;
use crate::decide::{Candidates, Ends, Options, unknown_assignments};
use crate::graph::Graph;
use crate::rules::Rule;
use crate::search::{Budget, Search};
use crate::test::{Clause, Test};

/// Two instructions that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Race {
    /// The index of a thread in the test, and of an instruction in its code.
    pub first: (usize, usize),
    /// The other, of a thread behind.
    pub second: (usize, usize),
    /// Whether they overlap completely; a mixed-size race otherwise.
    pub uniform: bool,
}

impl Race {
    pub(crate) fn new(graph: &Graph<'_>, a: usize, b: usize) -> Self {
        let of = |event: usize| (graph.events[event].thread, graph.events[event].instruction);
        let (first, second) = (of(a).min(of(b)), of(a).max(of(b)));
        Self { first, second, uniform: uniform(graph, a, b) }
    }

    /// Both instructions as text, with thread and line.
    pub fn describe(&self, test: &Test) -> String {
        let of = |(thread, instruction): (usize, usize)| {
            let (thread, at) = (&test.threads[thread], &test.threads[thread].code[instruction]);
            format!("P{} line {} `{}`", thread.number, at.line, at.text)
        };
        let size = if self.uniform { "" } else { "mixed-size " };
        format!("{size}data race: {} and {}", of(self.first), of(self.second))
    }
}

/// Every data race of a test.
///
/// # Errors
/// As for [`crate::decide()`].
pub fn races(test: &Test, options: &Options) -> Result<Vec<Race>, Error> {
    let budget = options.budget();
    let mut found = Vec::new();
    if !options.rules.has(Rule::DataRace) {
        return Ok(found);
    }
    for unknown in unknown_assignments(test) {
        let candidates = Candidates::new(test, options, &unknown, Ends::All)?;
        candidates.each(options.rules, &[], &mut false, &mut |graph, _| {
            for (a, b) in conflicts(graph) {
                let race = Race::new(graph, a, b);
                if !found.contains(&race) && can_race(graph, (a, b), &budget)? {
                    found.push(race);
                }
            }
            Ok(false)
        })?;
    }
    found.sort_unstable();
    Ok(found)
}

/// Pairs of conflicting accesses of different threads that are not morally strong.
pub(crate) fn conflicts(graph: &Graph<'_>) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (a, b) in graph.overlap.pairs().filter(|(a, b)| a < b) {
        let (of_a, of_b) = (&graph.events[a], &graph.events[b]);
        let writes = of_a.is_write() || of_b.is_write();
        if of_a.thread != of_b.thread && writes && !graph.morally_strong.has(a, b) {
            pairs.push((a, b));
        }
    }
    pairs
}

pub(crate) fn uniform(graph: &Graph<'_>, a: usize, b: usize) -> bool {
    match (&graph.events[a].access, &graph.events[b].access) {
        (Some(x), Some(y)) => x.block == y.block && graph.footprint(x) == graph.footprint(y),
        _ => true,
    }
}

/// Whether some allowed execution of the graph leaves two events unordered.
pub(crate) fn can_race(graph: &Graph<'_>, pair: (usize, usize), budget: &Budget) -> Result<bool, Error> {
    let mut stop = |_: &Graph<'_>, _: &_, _: &_, _: &_| true;
    let mut search = Search::new(graph, &Clause::True, budget, &mut stop);
    search.unordered = Some(pair);
    search.run(&[])
}
