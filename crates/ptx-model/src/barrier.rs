//! Phases of barriers: the barrier operations of a candidate that synchronize.
//!
//! Uses of a barrier without a count belong to all threads of the CTA that execute it: the first uses form a
//! phase, then the second uses. With a count of n, each phase is a choice of n threads, because any of them
//! may arrive first. For uses beyond the last complete phase see the crate's documentation.
//!
//! Invariant: [`phases`] returns only phases in which every waiting thread ends.

use crate::event::{BarrierUse, Event, Kind};
use crate::test::{BarrierKind, Test};
use std::collections::BTreeMap;

/// Most ways to choose phases. Chosen: two phases of 4 among 8 threads and one more.
const MOST_CHOICES: usize = 4_096;

/// The barrier operations that meet, phase by phase.
pub(crate) type Phases = Vec<Vec<usize>>;

/// The operations of complete phases, and the waiting ones on the same barrier that are in no phase: they
/// pass after these phases.
pub(crate) fn later(test: &Test, events: &[Event], phases: &Phases) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (late, event) in events.iter().enumerate() {
        let waits = event.kind == Kind::Barrier(BarrierKind::Sync);
        if waits && !phases.iter().any(|phase| phase.contains(&late)) {
            let members = phases.iter().flatten().filter(|member| same_barrier(test, events, **member, late));
            pairs.extend(members.map(|member| (*member, late)));
        }
    }
    pairs
}

/// Whether two events are uses of one barrier of one CTA.
fn same_barrier(test: &Test, events: &[Event], a: usize, b: usize) -> bool {
    let (of_a, of_b) = (&events[a], &events[b]);
    let (Some(x), Some(y)) = (of_a.barrier, of_b.barrier) else { return false };
    let place = |event: &Event| test.threads[event.thread].placement;
    (x.instance, x.id) == (y.instance, y.id) && place(of_a).same_cta(place(of_b))
}

/// What the barriers of a candidate can do.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    /// All phases in which every thread ends.
    pub(crate) complete: Vec<Phases>,
    /// Whether the threads may also wait for ever.
    pub(crate) may_hang: bool,
    /// Whether there were more ways than are tried.
    pub(crate) cut: bool,
}

/// All choices of phases.
pub(crate) fn phases(test: &Test, events: &[Event]) -> Choices {
    // The barrier of a CTA, by its first thread: uses of each thread in program order.
    let mut barriers: BTreeMap<(usize, u64, u64), Vec<Vec<usize>>> = BTreeMap::new();
    let mut counts: BTreeMap<(usize, u64, u64), u64> = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        let Some(BarrierUse { instance, id, count }) = event.barrier else { continue };
        let placement = test.threads[event.thread].placement;
        let cta = test.threads.iter().position(|other| other.placement.same_cta(placement)).unwrap_or(0);
        let key = (cta, instance, id);
        let uses = barriers.entry(key).or_insert_with(|| vec![Vec::new(); test.threads.len()]);
        uses[event.thread].push(index);
        if let Some(count) = count {
            let most = counts.entry(key).or_insert(0);
            *most = count.max(*most);
        }
    }
    let mut all = Choices { complete: vec![Vec::new()], ..Choices::default() };
    for (key, uses) in &barriers {
        let own = match counts.get(key) {
            None => vec![by_turn(uses)],
            Some(count) => {
                let mut found = Vec::new();
                choose(uses.clone(), *count as usize, &mut Vec::new(), &mut found, &mut all.cut);
                found
            }
        };
        let mut next = Vec::new();
        for phases in &all.complete {
            for more in &own {
                if next.len() >= MOST_CHOICES {
                    all.cut = true;
                    break;
                }
                next.push(phases.iter().chain(more).cloned().collect());
            }
        }
        all.complete = next;
    }
    let counted = |event: usize| events[event].barrier.is_some_and(|u| u.count.is_some());
    let before = all.complete.len();
    all.complete.retain(|phases| all_end(test, events, phases, &counted));
    all.may_hang = all.complete.len() < before;
    all
}

/// The first uses of all threads, then the second ones.
fn by_turn(uses: &[Vec<usize>]) -> Phases {
    let turns = uses.iter().map(Vec::len).max().unwrap_or(0);
    (0..turns).map(|turn| uses.iter().filter_map(|own| own.get(turn).copied()).collect()).collect()
}

/// Every way to form phases of `count` threads, as long as so many have uses left.
fn choose(
    mut left: Vec<Vec<usize>>,
    count: usize,
    so_far: &mut Phases,
    found: &mut Vec<Phases>,
    cut: &mut bool,
) {
    if found.len() >= MOST_CHOICES {
        *cut = true;
        return;
    }
    let ready: Vec<usize> = (0..left.len()).filter(|thread| !left[*thread].is_empty()).collect();
    if count == 0 || ready.len() < count || ready.len() > 16 {
        found.push(so_far.clone());
        return;
    }
    for set in 0_u32..1 << ready.len() {
        if set.count_ones() as usize != count {
            continue;
        }
        let members = ready.iter().enumerate().filter(|(bit, _)| set >> bit & 1 != 0);
        let members: Vec<usize> = members.map(|(_, thread)| *thread).collect();
        let phase = members.iter().map(|thread| left[*thread].remove(0)).collect::<Vec<_>>();
        so_far.push(phase.clone());
        choose(left.clone(), count, so_far, found, cut);
        so_far.pop();
        for (thread, event) in members.iter().zip(phase) {
            left[*thread].insert(0, event);
        }
    }
}

/// Whether every thread comes to its end: it waits at a use until all of its phase have arrived. A counted
/// use outside of all phases waits for ever if its barrier has no phase, and not at all if it has.
fn all_end(test: &Test, events: &[Event], phases: &Phases, counted: &impl Fn(usize) -> bool) -> bool {
    let phase_of = |event: usize| phases.iter().position(|phase| phase.contains(&event));
    let has_phase =
        |event: usize| phases.iter().flatten().any(|other| same_barrier(test, events, *other, event));
    let mut uses: Vec<Vec<usize>> = vec![Vec::new(); test.threads.len()];
    for (index, event) in events.iter().enumerate() {
        if matches!(event.kind, Kind::Barrier(_)) {
            uses[event.thread].push(index);
        }
    }
    let mut at = vec![0; uses.len()];
    let mut arrived = vec![0; phases.len()];
    let mut is_counted = vec![false; events.len()];
    loop {
        let mut moved = false;
        for thread in 0..uses.len() {
            while let Some(use_) = uses[thread].get(at[thread]).copied() {
                let phase = phase_of(use_);
                if let Some(phase) = phase
                    && !std::mem::replace(&mut is_counted[use_], true)
                {
                    arrived[phase] += 1;
                    moved = true;
                }
                let waits = events[use_].kind == Kind::Barrier(BarrierKind::Sync)
                    && match phase {
                        Some(phase) => arrived[phase] < phases[phase].len(),
                        None => counted(use_) && !has_phase(use_),
                    };
                if waits {
                    break;
                }
                at[thread] += 1;
                moved = true;
            }
        }
        if !moved {
            return at.iter().zip(&uses).all(|(at, uses)| *at == uses.len());
        }
    }
}
