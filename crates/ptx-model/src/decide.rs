//! Verdicts: candidates of a test, and the search through each.

use crate::Error;
use crate::axioms::{Choice, Derived};
use crate::barrier;
use crate::event::{Access, Element, Event};
use crate::execution::Execution;
use crate::graph::Graph;
use crate::memory::{Memory, has_one_size, unknown_values};
use crate::path::{Path, Paths, Walker};
use crate::race::Race;
use crate::registers::read_later;
use crate::relation::MOST_EVENTS;
use crate::rules::{Model, Rule, Rules};
use crate::search::{Budget, Final, Search};
use crate::symmetry;
use crate::test::{Clause, Operand, Placement, Quantifier, Term, Test, Thread};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How a test is decided.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The model.
    pub model: Model,
    /// The rules of it that hold.
    pub rules: Rules,
    /// How often each branch of a thread may go backwards. Executions that go on are left out.
    pub bound: u32,
    /// The most choices that the search makes.
    pub max_choices: u64,
    /// The longest time that it takes.
    pub timeout: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            model: Model::default(),
            rules: Rules::default(),
            bound: 2,
            max_choices: 100_000_000,
            timeout: Some(Duration::from_secs(15)),
        }
    }
}

/// What a test has been found to be.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Whether the clause holds.
    pub holds: bool,
    /// The execution that shows it (`exists`) or breaks it (`~exists`, `forall`).
    pub witness: Option<Execution>,
    /// Whether executions were left out, as loops went beyond the bound. Iterations that only read and leave
    /// nothing behind change no final state, and are not counted.
    pub bounded: bool,
    /// The mixed-size data race because of which the axioms do not apply.
    pub mixed_size_race: Option<Race>,
    /// Whether threads can wait for ever at a barrier; these executions have no final state.
    pub may_hang: bool,
}

/// Decides whether the clause of a test holds.
///
/// # Errors
/// A thread has an access that no location holds, or a limit is reached.
pub fn decide(test: &Test, options: &Options) -> Result<Verdict, Error> {
    let budget = options.budget();
    let mut verdict = Verdict {
        holds: test.quantifier != Quantifier::Exists,
        witness: None,
        bounded: false,
        mixed_size_race: None,
        may_hang: false,
    };
    let clause = match test.quantifier {
        Quantifier::Forall => Clause::Not(Box::new(test.clause.clone())),
        Quantifier::Exists | Quantifier::NotExists => test.clause.clone(),
    };
    let goal = Clause::And(vec![test.filter.clone(), clause]);
    let classes = symmetry::classes(test, &goal);
    for unknown in unknown_assignments(test) {
        let candidates = Candidates::new(test, options, &unknown, Ends::Needed(&goal))?;
        verdict.bounded |= candidates.bounded();
        let mut rules = options.rules;
        if let Some(race) = candidates.mixed_size_race(&budget)? {
            rules = rules.of_a_program_with_a_mixed_size_race();
            verdict.mixed_size_race = Some(race);
        }
        let mut witness = None;
        let mut hangs = false;
        let found = candidates.each(rules, &classes, &mut hangs, &mut |graph, ordered| {
            let mut keep = |graph: &Graph<'_>, choice: &Choice, derived: &Derived, last: &Final| {
                witness = Some(Execution::new(graph, choice, derived, last));
                true
            };
            Search::new(graph, &goal, &budget, &mut keep).run(ordered)
        })?;
        verdict.may_hang |= hangs;
        if found {
            verdict.holds = test.quantifier == Quantifier::Exists;
            verdict.witness = witness;
            break;
        }
    }
    Ok(verdict)
}

impl Options {
    pub(crate) fn budget(&self) -> Budget {
        Budget {
            nodes: Cell::new(0),
            most: self.max_choices,
            deadline: self.timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
        }
    }
}

/// Assignments of the first values that the test leaves unknown: each constant of the test, and a value that
/// is none of them.
pub(crate) fn unknown_assignments(test: &Test) -> Vec<Vec<u64>> {
    const MOST: usize = 4_096;
    let mut values = vec![0];
    let mut term = |term: &Term| {
        if let Term::Const(value) = term {
            values.push(*value);
        }
    };
    test.clause.terms(&mut term);
    test.filter.terms(&mut term);
    for location in &test.locations {
        for init in location.init.iter().flatten() {
            if let Operand::Const(value) = init {
                values.push(*value);
            }
        }
    }
    values.sort_unstable();
    values.dedup();
    // 165 is 0xa5; the first number from there that no constant is.
    let fresh = (165..).find(|value| !values.contains(value)).unwrap_or(165);
    values.push(fresh);
    let mut all = vec![Vec::new()];
    for _ in 0..unknown_values(test) {
        if all.len() * values.len() > MOST {
            values = vec![0, fresh];
        }
        if all.len() * values.len() > MOST {
            values = vec![fresh];
        }
        let longer = |start: &Vec<u64>| {
            let start = start.clone();
            values
                .iter()
                .map(move |value| start.iter().copied().chain([*value]).collect())
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The candidates of a test: a path for each thread, and phases of the barriers.
pub(crate) struct Candidates<'t> {
    pub(crate) test: &'t Test,
    pub(crate) model: Model,
    pub(crate) rules: Rules,
    pub(crate) memory: Memory,
    pub(crate) paths: Vec<Paths>,
}

/// What is done with a candidate and the coherence order that symmetry gives; whether to stop.
type TryOne<'c> = dyn FnMut(&Graph<'_>, &[(usize, usize)]) -> Result<bool, Error> + 'c;

/// Which paths there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends<'c> {
    /// Those that end.
    All,
    /// Those that end, as far as a clause needs them; see [`Walker::read_later`].
    Needed(&'c Clause),
    /// As far as they are needed, and those that go round a loop for ever.
    Some,
}

impl<'t> Candidates<'t> {
    pub(crate) fn new(
        test: &'t Test,
        options: &Options,
        unknown: &[u64],
        ends: Ends<'_>,
    ) -> Result<Self, Error> {
        let memory = Memory::new(test, unknown);
        let mut paths = Vec::new();
        // A read fewer can make other accesses whole that were two, if sizes differ or the host takes part.
        let on_host = |thread: &Thread| thread.placement == Placement::Host;
        let may_leave_out = has_one_size(test) && !test.threads.iter().any(on_host);
        let goal = match ends {
            Ends::Needed(goal) if may_leave_out && !goal.has_relations() => Some(goal),
            Ends::Some if may_leave_out => Some(&Clause::True),
            Ends::All | Ends::Needed(_) | Ends::Some => None,
        };
        for thread in 0..test.threads.len() {
            let (rules, bound) = (options.rules, options.bound);
            let spins = ends == Ends::Some;
            let read_later = goal.map(|goal| read_later(test, thread, goal));
            paths.push(Walker { test, memory: &memory, rules, thread, bound, spins, read_later }.paths()?);
        }
        Ok(Self { test, model: options.model, rules: options.rules, memory, paths })
    }

    pub(crate) fn bounded(&self) -> bool {
        self.paths.iter().any(|paths| paths.bounded)
    }

    /// Calls `try_one` with each candidate and the coherence order that symmetry gives, until it answers
    /// `true`; whether it did.
    ///
    /// # Errors
    /// What `try_one` says, or a candidate has too many events.
    pub(crate) fn each(
        &self,
        rules: Rules,
        classes: &[Vec<usize>],
        may_hang: &mut bool,
        try_one: &mut TryOne<'_>,
    ) -> Result<bool, Error> {
        if self.paths.iter().any(|paths| paths.paths.is_empty()) {
            return Ok(false);
        }
        let mut at = vec![0; self.paths.len()];
        loop {
            if is_sorted(&at, classes) && self.candidate(rules, &at, classes, may_hang, try_one)? {
                return Ok(true);
            }
            // The next combination.
            let Some(thread) = (0..at.len()).rev().find(|t| at[*t] + 1 < self.paths[*t].paths.len()) else {
                return Ok(false);
            };
            at[thread] += 1;
            at[thread + 1..].fill(0);
        }
    }

    fn candidate(
        &self,
        rules: Rules,
        at: &[usize],
        classes: &[Vec<usize>],
        may_hang: &mut bool,
        try_one: &mut TryOne<'_>,
    ) -> Result<bool, Error> {
        let paths: Vec<&Path> = at.iter().zip(&self.paths).map(|(at, paths)| &paths.paths[*at]).collect();
        let events: usize = paths.iter().map(|path| path.events.len()).sum();
        if events > MOST_EVENTS {
            return Err(Error::limit(
                0,
                format!("an execution has {events} events, more than {MOST_EVENTS}"),
            ));
        }
        let mut graph = Graph::new(self.test, &self.memory, self.model, rules, paths);
        let choices = barrier::phases(self.test, &graph.events);
        let limit = || Error::limit(0, "barriers can be used in more than 4096 ways".to_owned());
        if choices.cut {
            return Err(limit());
        }
        *may_hang |= choices.may_hang;
        let ordered = by_symmetry(&graph, at, classes);
        for phases in &choices.complete {
            let open = barrier::unpredictable(&graph.events, phases);
            for chosen in barrier::results(&open).ok_or_else(limit)? {
                graph.set_barriers(phases, &chosen);
                if try_one(&graph, &ordered)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether some accesses overlap and are not of the same bytes, or are elements of one access.
    fn has_mixed_sizes(&self) -> bool {
        let events = self.paths.iter().flat_map(|paths| &paths.paths).flat_map(|path| &path.events);
        let mut seen: Vec<Access> = Vec::new();
        for access in events.filter_map(|event| event.access) {
            if access.element != Element::Whole
                || seen.iter().any(|other| other.overlaps(&access) && !other.same_bytes(&access))
            {
                return true;
            }
            if !seen.iter().any(|other| other.same_bytes(&access)) {
                seen.push(access);
            }
        }
        false
    }

    /// A mixed-size data race in an execution that the axioms allow.
    fn mixed_size_race(&self, budget: &Budget) -> Result<Option<Race>, Error> {
        let asked = self.rules.has(Rule::MixedSizeRace) && self.rules.has(Rule::DataRace);
        if !asked || !self.has_mixed_sizes() {
            return Ok(None);
        }
        let mut found = None;
        self.each(self.rules, &[], &mut false, &mut |graph, _| {
            for (a, b) in crate::race::conflicts(graph)
                .into_iter()
                .filter(|(a, b)| !crate::race::uniform(graph, *a, *b))
            {
                if crate::race::can_race(graph, (a, b), budget)? {
                    found = Some(Race::new(graph, a, b));
                    return Ok(true);
                }
            }
            Ok(false)
        })?;
        Ok(found)
    }
}

/// Whether the members of each class have their paths in order.
fn is_sorted(at: &[usize], classes: &[Vec<usize>]) -> bool {
    classes.iter().all(|class| class.is_sorted_by_key(|thread| at[*thread]))
}

/// Coherence order between the first morally strong writes of symmetric threads that go the same path.
fn by_symmetry(graph: &Graph<'_>, at: &[usize], classes: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let mut ordered = Vec::new();
    for class in classes {
        for pair in class.windows(2) {
            let [first, second] = [pair[0], pair[1]];
            if at[first] != at[second] {
                continue;
            }
            let (base, other) = (graph.first[first], graph.first[second]);
            let events = 0..graph.paths[first].events.len();
            // The barriers must be symmetric too, and their phases are not looked at.
            let counted = |event: &Event| event.barrier.as_ref().is_some_and(|of| of.count.is_some());
            if graph.events.iter().any(counted) {
                continue;
            }
            let writes = events.map(|local| (base + local, other + local));
            let mut both = writes.filter(|pair| graph.co_pairs.contains(pair));
            ordered.extend(both.next());
        }
    }
    ordered
}
