//! Whether all threads of a test end under a fair scheduler.
//!
//! The manual of PTX ISA 6.4 promises no progress. The assumptions here: every thread that has not ended and
//! does not wait at a barrier executes infinitely often, and a strong read that is repeated forever
//! eventually returns each write that is morally strong to it. Other reads may never return a write of
//! another thread.
//!
//! A test hangs in one of two ways:
//! 1. The sequentially consistent interleavings have a fair cycle, or a state in which all threads that have
//!    not ended wait at barriers. This also finds loops that write.
//! 2. Some execution that the axioms allow has a thread that repeats a loop of reads forever, each of which
//!    returns a write that no morally strong write follows, while the other threads have ended or do the
//!    same. This finds hangs in executions that are not sequentially consistent.
//!
//! Not found: a loop that writes, and hangs only in executions that are not sequentially consistent.

use crate::Error;
use crate::axioms::{Choice, Derived};
use crate::decide::{Candidates, Ends, Options, unknown_assignments};
use crate::execution::Execution;
use crate::graph::Graph;
use crate::machine::{Machine, State};
use crate::path::Spin;
use crate::search::{Budget, Final, Search};
use crate::test::{Clause, Test};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Most states of the interleavings. Chosen: a few hundred megabytes at most.
const MOST_STATES: usize = 300_000;

/// What liveness has been found to be.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// Whether every fair execution ends.
    pub ends: bool,
    /// One that does not, as text.
    pub hang: Option<String>,
}

/// Decides whether all threads end.
///
/// # Errors
/// As for [`crate::decide()`].
pub fn liveness(test: &Test, options: &Options) -> Result<Liveness, Error> {
    let budget = options.budget();
    for unknown in unknown_assignments(test) {
        let candidates = Candidates::new(test, options, &unknown, Ends::Some)?;
        if let Some(hang) = interleavings(&candidates, &budget)? {
            return Ok(Liveness { ends: false, hang: Some(hang) });
        }
        if let Some(hang) = spins(&candidates, &budget)? {
            return Ok(Liveness { ends: false, hang: Some(hang) });
        }
    }
    Ok(Liveness { ends: true, hang: None })
}

/// The reachable states and their steps.
struct Interleavings {
    states: Vec<State>,
    /// For each state, the next ones by each thread that can step.
    steps: Vec<Vec<(usize, usize)>>,
}

fn interleavings(candidates: &Candidates<'_>, budget: &Budget) -> Result<Option<String>, Error> {
    let machine = Machine { test: candidates.test, memory: &candidates.memory };
    let all = reach(&machine, budget)?;
    let threads = candidates.test.threads.len();
    let ended = |state: usize, thread: usize| machine.has_ended(&all.states[state], thread);
    for state in 0..all.states.len() {
        let unfinished = (0..threads).any(|thread| !ended(state, thread));
        if all.steps[state].is_empty() && unfinished {
            return Ok(Some(describe(candidates.test, &all.states[state], "waits at a barrier for ever")));
        }
    }
    for component in components(&all.steps) {
        let inside = |state: usize| component.binary_search(&state).is_ok();
        let steps_inside = |thread: usize| {
            component.iter().any(|state| all.steps[*state].iter().any(|(t, to)| *t == thread && inside(*to)))
        };
        let some_step = (0..threads).any(steps_inside);
        let fair = |thread: usize| {
            let first = component[0];
            ended(first, thread)
                || all.states[first].threads[thread].waits && !steps_inside(thread)
                || steps_inside(thread)
        };
        if some_step && (0..threads).all(fair) {
            let why = "executes again and again, in a fair schedule that comes back to its state";
            return Ok(Some(describe(candidates.test, &all.states[component[0]], why)));
        }
    }
    Ok(None)
}

fn describe(test: &Test, state: &State, why: &str) -> String {
    let mut text = String::new();
    for (thread, of) in test.threads.iter().enumerate() {
        if let Some(instruction) = of.code.get(state.threads[thread].at) {
            let _infallible =
                writeln!(text, "  P{} {why}: line {} `{}`", of.number, instruction.line, instruction.text);
        }
    }
    text
}

fn reach(machine: &Machine<'_>, budget: &Budget) -> Result<Interleavings, Error> {
    let start = machine.start();
    let mut numbers = BTreeMap::from([(start.clone(), 0)]);
    let mut all = Interleavings { states: vec![start], steps: Vec::new() };
    while all.steps.len() < all.states.len() {
        budget.spend()?;
        let state = all.states[all.steps.len()].clone();
        let mut steps = Vec::new();
        for thread in 0..state.threads.len() {
            for next in machine.step(&state, thread)? {
                let number = match numbers.get(&next) {
                    Some(number) => *number,
                    None => {
                        if all.states.len() >= MOST_STATES {
                            return Err(Error::limit(0, format!("there are more than {MOST_STATES} states")));
                        }
                        let number = all.states.len();
                        numbers.insert(next.clone(), number);
                        all.states.push(next);
                        number
                    }
                };
                steps.push((thread, number));
            }
        }
        all.steps.push(steps);
    }
    Ok(all)
}

/// The strongly connected components, each sorted (Tarjan's algorithm, without recursion).
fn components(steps: &[Vec<(usize, usize)>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut index = vec![NEW; steps.len()];
    let mut low = vec![0; steps.len()];
    let mut on_stack = vec![false; steps.len()];
    let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..steps.len() {
        if index[root] != NEW {
            continue;
        }
        let mut calls = vec![(root, 0)];
        while let Some((state, at)) = calls.pop() {
            if at == 0 {
                index[state] = next;
                low[state] = next;
                next += 1;
                stack.push(state);
                on_stack[state] = true;
            }
            if let Some((_, to)) = steps[state].get(at).copied() {
                calls.push((state, at + 1));
                if index[to] == NEW {
                    calls.push((to, 0));
                } else if on_stack[to] {
                    low[state] = low[state].min(index[to]);
                }
                continue;
            }
            if low[state] == index[state] {
                let from = stack.iter().rposition(|s| *s == state).unwrap_or(0);
                let mut component = stack.split_off(from);
                component.iter().for_each(|s| on_stack[*s] = false);
                component.sort_unstable();
                found.push(component);
            }
            if let Some((caller, _)) = calls.last() {
                low[*caller] = low[*caller].min(low[state]);
            }
        }
    }
    found
}

/// An execution in which a thread repeats a loop of reads forever.
fn spins(candidates: &Candidates<'_>, budget: &Budget) -> Result<Option<String>, Error> {
    let machine = Machine { test: candidates.test, memory: &candidates.memory };
    let mut hang = None;
    candidates.each(candidates.rules, &[], &mut false, &mut |graph, _| {
        if graph.paths.iter().all(|path| path.spin.is_none()) {
            return Ok(false);
        }
        let mut report = |graph: &Graph<'_>, choice: &Choice, derived: &Derived, last: &Final| {
            let stuck = graph.paths.iter().enumerate().all(|(thread, path)| {
                path.spin.is_none_or(|spin| is_stuck(&machine, graph, last, thread, spin))
            });
            if stuck {
                let mut text = String::new();
                for (thread, path) in graph.paths.iter().enumerate() {
                    if let Some(spin) = path.spin {
                        let of = &graph.test.threads[thread];
                        let line = of.code.get(spin.head).map_or(0, |instruction| instruction.line);
                        let _infallible =
                            writeln!(text, "  P{} goes round the loop at line {line} for ever", of.number);
                    }
                }
                text.push_str(&Execution::new(graph, choice, derived, last).text());
                hang = Some(text);
            }
            stuck
        };
        let mut search = Search::new(graph, &Clause::True, budget, &mut report);
        for (thread, path) in graph.paths.iter().enumerate() {
            if let Some(spin) = path.spin {
                let base = graph.first[thread];
                let turn = base + spin.first..base + path.events.len();
                search.last.extend(turn.flat_map(|event| graph.slots_of[event].clone()));
            }
        }
        search.run(&[])
    })?;
    Ok(hang)
}

/// Whether the last iteration of a path can be repeated forever.
fn is_stuck(machine: &Machine<'_>, graph: &Graph<'_>, last: &Final, thread: usize, spin: Spin) -> bool {
    let base = graph.first[thread];
    let path = graph.paths[thread];
    let turn = base + spin.first..base + path.events.len();
    let mut registers = Vec::new();
    for expr in &path.registers {
        match expr.value(&mut |local| last.reads[base + local]) {
            Some(value) => registers.push(value),
            None => return false,
        }
    }
    // The values of the iteration again: one for each register that a load or a failed compare-and-swap sets.
    let mut reads = turn.filter(|event| graph.events[*event].is_read());
    let mut next = || {
        let event = reads.next()?;
        Some((last.reads[event]?, graph.events[event].access?.size))
    };
    machine.one_turn(thread, spin.head, &registers, &mut next).is_some_and(|after| after == registers)
}
