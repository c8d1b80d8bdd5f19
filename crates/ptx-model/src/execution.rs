//! An execution as text for people: events by thread, relations between them, and the final state.

use crate::axioms::{Choice, Derived, Source};
use crate::event::{Barrier, Event, Kind};
use crate::graph::Graph;
use crate::relation::Relation;
use crate::search::{Final, atoms_of_element, link_of};
use crate::test::{BarrierKind, Link, ProxyFence, Test};
use std::fmt::Write as _;

/// An event of an execution.
#[derive(Clone, Debug)]
pub struct ShownEvent {
    /// `a`, `b`, ...
    pub name: String,
    /// The index of its thread.
    pub thread: usize,
    /// The place of its instruction in the thread's code.
    pub instruction: usize,
    /// What it does, with the value: `R x = 1`.
    pub text: String,
    /// The text of its instruction.
    pub source: String,
}

/// An execution that the model allows.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The names of the threads.
    pub threads: Vec<String>,
    /// The events, thread by thread in program order.
    pub events: Vec<ShownEvent>,
    /// Relations between events, by index. Transitive relations are reduced; causality is shown between
    /// accesses that overlap.
    pub links: Vec<(Link, usize, usize)>,
    /// Reads that return the initial value, at least in a part.
    pub initial_reads: Vec<usize>,
    /// Registers that the thread's code uses, and memory that the clause asks for: name and final value.
    pub state: Vec<(String, u64)>,
}

impl Execution {
    pub(crate) fn new(graph: &Graph<'_>, choice: &Choice, derived: &Derived, last: &Final) -> Self {
        let test = graph.test;
        let mut events = Vec::new();
        for (index, event) in graph.events.iter().enumerate() {
            let value = match event.kind {
                Kind::Read | Kind::Barrier(_) => last.reads[index],
                _ => graph.written(index).and_then(|expr| {
                    let base = graph.first[event.thread];
                    expr.value(&mut |local| last.reads[base + local])
                }),
            };
            events.push(ShownEvent {
                name: name_of(index),
                thread: event.thread,
                instruction: event.instruction,
                text: describe(graph, event, value),
                source: test.threads[event.thread].code[event.instruction].text.clone(),
            });
        }
        let mut links = Vec::new();
        for link in Link::ALL {
            let relation = link_of(link, choice, derived);
            let shown = match link {
                Link::Rf | Link::Sw => relation.clone(),
                Link::Co | Link::Sc => reduced(relation),
                Link::Fr => first_only(relation, &derived.co),
                Link::Cause => between_accesses(graph, relation),
            };
            links.extend(shown.pairs().map(|(a, b)| (link, a, b)));
        }
        let slots = graph.slots.iter().zip(&choice.sources);
        let mut initial_reads: Vec<usize> =
            slots.filter(|(_, source)| **source == Source::Initial).map(|(slot, _)| slot.read).collect();
        initial_reads.dedup();
        let mut state = Vec::new();
        for (thread, of) in test.threads.iter().enumerate() {
            for (reg, name) in of.registers.iter().enumerate() {
                let base = graph.first[thread];
                let expr = &graph.paths[thread].registers[reg];
                if let Some(value) = expr.value(&mut |local| last.reads[base + local]) {
                    state.push((format!("P{}:{name}", of.number), value));
                }
            }
        }
        for (location, of) in test.locations.iter().enumerate() {
            for element in 0..of.elements {
                let asked = |atom: &usize| last.memory.iter().any(|(a, _)| a == atom);
                let mut atoms = atoms_of_element(graph, location, element).filter(asked).peekable();
                let Some(first) = atoms.peek().copied() else { continue };
                let mut value = 0;
                for atom in atoms {
                    let Some((_, source)) = last.memory.iter().find(|(a, _)| *a == atom) else { continue };
                    let bytes = match source {
                        Source::Write(write) => written(graph, last, *write, atom),
                        Source::Open | Source::Initial => graph.initial(atom),
                    };
                    value |= bytes << (8 * (graph.atoms[atom].offset - graph.atoms[first].offset));
                }
                let index = if of.elements > 1 { format!("[{element}]") } else { String::new() };
                state.push((format!("{}{index}", of.name), value));
            }
        }
        let threads = test.threads.iter().map(|thread| format!("P{}", thread.number)).collect();
        Self { threads, events, links, initial_reads, state }
    }

    /// As text: a line for each event, then the relations and the final state.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (thread, name) in self.threads.iter().enumerate() {
            let _infallible = writeln!(text, "  {name}:");
            let own: Vec<&ShownEvent> = self.events.iter().filter(|e| e.thread == thread).collect();
            let width = own.iter().map(|e| e.text.chars().count()).max().unwrap_or(0);
            for event in own {
                let _infallible =
                    writeln!(text, "    {}: {:width$}   {}", event.name, event.text, event.source);
            }
        }
        let name = |event: &usize| self.events[*event].name.as_str();
        for link in Link::ALL {
            let pairs: Vec<String> = self
                .links
                .iter()
                .filter(|(of, _, _)| *of == link)
                .map(|(_, a, b)| format!("{}->{}", name(a), name(b)))
                .chain(
                    self.initial_reads
                        .iter()
                        .filter(|_| link == Link::Rf)
                        .map(|r| format!("initial->{}", name(r))),
                )
                .collect();
            if !pairs.is_empty() {
                let _infallible = writeln!(text, "  {}: {}", link.name(), pairs.join(" "));
            }
        }
        let state: Vec<String> =
            self.state.iter().map(|(name, value)| format!("{name}={}", value.cast_signed())).collect();
        let _infallible = writeln!(text, "  final: {}", state.join(" "));
        text
    }
}

/// The bytes of an atom that a write wrote, low byte first.
fn written(graph: &Graph<'_>, last: &Final, write: usize, atom: usize) -> u64 {
    let event = &graph.events[write];
    let base = graph.first[event.thread];
    let value = graph.written(write).and_then(|expr| expr.value(&mut |local| last.reads[base + local]));
    let from = event.access.map_or(0, |access| access.offset);
    let at = graph.atoms[atom];
    value.unwrap_or(0) >> (8 * (at.offset - from)) & crate::value::mask(at.size)
}

/// `a` to `z`, then `a1`, `b1`, ...
fn name_of(event: usize) -> String {
    let letter = char::from(b'a' + (event % 26) as u8);
    if event < 26 { letter.to_string() } else { format!("{letter}{}", event / 26) }
}

fn describe(graph: &Graph<'_>, event: &Event, value: Option<u64>) -> String {
    match event.kind {
        Kind::Read | Kind::Write => {
            let Some(access) = event.access else { return String::new() };
            let test: &Test = graph.test;
            let location = &test.locations[graph.memory.blocks[access.block].location];
            let mut place = location.name.clone();
            if access.view != graph.memory.blocks[access.block].location {
                place = test.locations[access.view].name.clone();
            }
            if access.size != location.element || access.offset != 0 {
                let _infallible = write!(place, "+{}.b{}", access.offset, 8 * access.size);
            }
            let word = if event.is_read() { "R" } else { "W" };
            let value = value.unwrap_or(0) & crate::value::mask(access.size);
            let signed = crate::test::Type { size: access.size, ..crate::test::Type::WORD };
            format!("{word} {place} = {}", crate::value::extend(signed, value).cast_signed())
        }
        Kind::Fence => {
            let scope = event.strong.map_or("", |scope| scope.name());
            format!("F {}.{scope}", if event.sc { "sc" } else { "acq_rel" })
        }
        Kind::ProxyFence(ProxyFence::Alias) => "F proxy.alias".to_owned(),
        Kind::ProxyFence(ProxyFence::Proxy(proxy)) => format!("F proxy.{}", proxy.name()),
        Kind::Barrier(kind) => {
            let word = if kind == BarrierKind::Sync { "sync" } else { "arrive" };
            let op = event.reduces().map(|(op, _)| op.name());
            match (event.barrier.as_ref().map(|of| of.barrier), op) {
                (Some(Barrier::Cta { id, .. }), Some(op)) => {
                    format!("B red.{op} {id} = {}", value.unwrap_or(0))
                }
                (Some(Barrier::Cta { id, .. }), None) => format!("B {word} {id}"),
                (Some(Barrier::Warp { mask, .. }), _) => format!("B warp.{word} {mask:#x}"),
                (None, _) => String::new(),
            }
        }
    }
}

/// Without the pairs that follow from two others.
fn reduced(relation: &Relation) -> Relation {
    let mut closed = relation.clone();
    closed.close();
    let longer = closed.then(&closed);
    let mut short = relation.clone();
    for event in 0..relation.len() {
        short.mask_row(event, !longer.row(event));
    }
    short
}

/// Of the writes that follow a read, those that follow no other of them.
fn first_only(fr: &Relation, co: &Relation) -> Relation {
    let mut short = fr.clone();
    for read in 0..fr.len() {
        let later = crate::relation::bits(fr.row(read)).fold(0, |all, write| all | co.row(write));
        short.mask_row(read, !later);
    }
    short
}

fn between_accesses(graph: &Graph<'_>, cause: &Relation) -> Relation {
    let mut shown = Relation::new(graph.events.len());
    for (a, b) in cause.pairs() {
        let other_thread = graph.events[a].thread != graph.events[b].thread;
        let writes = graph.events[a].is_write() || graph.events[b].is_write();
        if other_thread && writes && graph.overlap.has(a, b) {
            shown.set(a, b);
        }
    }
    shown
}
