//! Phases of barriers: the barrier operations of a candidate that synchronize.
//!
//! Uses of a barrier without a count belong to all threads of the CTA that execute it: the first uses form a
//! phase, then the second uses. With a count of n, each phase is a choice of n threads, because any of them
//! may arrive first. For uses beyond the last complete phase see the crate's documentation. The uses of
//! `bar.warp.sync` with one mask in one warp form phases in the same way, and a phase is complete when each
//! thread that the mask names has arrived or ended.
//!
//! Invariant: [`phases`] returns only phases in which every waiting thread ends, and depends on no value but
//! the numbers, counts and masks that the paths fix; the results of reductions are computed from the phases.

use crate::event::{Barrier, Event, Kind};
use crate::test::{ReduceOp, Test};
use std::collections::BTreeMap;

/// Most ways to choose phases. Chosen: two phases of 4 among 8 threads and one more.
const MOST_CHOICES: usize = 4_096;

/// The barrier operations that meet, phase by phase.
pub(crate) type Phases = Vec<Vec<usize>>;

/// The operations of complete phases, and the waiting ones on the same barrier that are in no phase: they
/// pass after these phases.
pub(crate) fn later(events: &[Event], phases: &Phases) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (late, event) in events.iter().enumerate() {
        if event.waits() && !phases.iter().any(|phase| phase.contains(&late)) {
            let members = phases.iter().flatten().filter(|member| same_barrier(events, **member, late));
            pairs.extend(members.map(|member| (*member, late)));
        }
    }
    pairs
}

/// Whether two events are uses of one barrier.
fn same_barrier(events: &[Event], a: usize, b: usize) -> bool {
    let of = |event: usize| events[event].barrier.as_ref().map(|of| of.barrier);
    of(a).is_some() && of(a) == of(b)
}

/// The mask of a `bar.warp.sync` of a thread, which is in it.
///
/// # Errors
/// The thread is not in it: the behaviour is undefined (9.7.12.2).
pub(crate) fn mask_of(test: &Test, thread: usize, value: u64) -> Result<u32, String> {
    let mask = (value & u64::from(u32::MAX)) as u32;
    let lane = test.lane_of(thread);
    if mask >> lane & 1 != 0 {
        return Ok(mask);
    }
    let number = test.threads[thread].number;
    Err(format!(
        "the mask {mask:#x} does not name lane {lane}, which P{number} is: the behaviour is undefined"
    ))
}

/// The reductions of a phase whose result is unpredictable, as other uses of the barrier are mixed with them
/// (9.7.12.1): the event, and the greatest result.
pub(crate) fn unpredictable(events: &[Event], phases: &Phases) -> Vec<(usize, u64)> {
    let mut open = Vec::new();
    for phase in phases {
        let ops: Vec<Option<ReduceOp>> =
            phase.iter().map(|event| events[*event].reduces().map(|(op, _)| *op)).collect();
        if ops.iter().any(|op| *op != ops[0]) {
            let most = |op: ReduceOp| op.most(phase.len() as u64);
            open.extend(phase.iter().zip(&ops).filter_map(|(event, op)| Some((*event, most((*op)?)))));
        }
    }
    open
}

/// Every combination of results from 0 to these, each of its event; `None` if there are too many.
pub(crate) fn results(open: &[(usize, u64)]) -> Option<Vec<Vec<(usize, u64)>>> {
    let mut all = vec![Vec::new()];
    for (event, most) in open {
        let longer = |start: &Vec<(usize, u64)>| {
            let with = |result| start.iter().copied().chain([(*event, result)]).collect();
            (0..=*most).map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
        if all.len() > MOST_CHOICES {
            return None;
        }
    }
    Some(all)
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
    // Uses of each thread in program order.
    let mut barriers: BTreeMap<Barrier, Vec<Vec<usize>>> = BTreeMap::new();
    let mut counts: BTreeMap<Barrier, u64> = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        let Some(of) = &event.barrier else { continue };
        let uses = barriers.entry(of.barrier).or_insert_with(|| vec![Vec::new(); test.threads.len()]);
        uses[event.thread].push(index);
        if let Some(count) = of.count {
            let most = counts.entry(of.barrier).or_insert(0);
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
    let before = all.complete.len();
    all.complete.retain(|phases| all_end(test, events, phases));
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

/// Whether every thread comes to its end: it waits at a use until all of its phase have arrived. Outside of
/// all phases, a reduction waits for ever, and another counted use waits for ever if its barrier has no phase
/// and not at all if it has.
fn all_end(test: &Test, events: &[Event], phases: &Phases) -> bool {
    let phase_of = |event: usize| phases.iter().position(|phase| phase.contains(&event));
    let counted = |event: usize| events[event].barrier.as_ref().is_some_and(|of| of.count.is_some());
    let has_phase = |event: usize| phases.iter().flatten().any(|other| same_barrier(events, *other, event));
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
                let ended = |other: usize| at[other] == uses[other].len();
                let missing = |phase: usize| match events[use_].barrier.as_ref().map(|of| of.barrier) {
                    // A thread that is in no use of this phase must end.
                    Some(Barrier::Warp { warp, mask }) => test.named_by(warp, mask).any(|other| {
                        !ended(other) && !phases[phase].iter().any(|member| events[*member].thread == other)
                    }),
                    Some(Barrier::Cta { .. }) | None => false,
                };
                let waits = events[use_].waits()
                    && match phase {
                        Some(phase) => arrived[phase] < phases[phase].len() || missing(phase),
                        None => events[use_].reduces().is_some() || (counted(use_) && !has_phase(use_)),
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
