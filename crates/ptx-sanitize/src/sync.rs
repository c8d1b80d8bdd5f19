//! synccheck: barriers and warp-synchronous instructions that have undefined behaviour or never end (PTX ISA
//! §9.7.12.1, §9.7.12.2, §9.7.8.5, §9.7.12.7, §9.7.12.8).
//!
//! After a report the machine continues ([`Observer::mends`]): a barrier that cannot complete releases the
//! threads that wait there, invalid counts are ignored, and a warp-synchronous instruction is executed for
//! the lanes that have reached it.
//!
//! Readings where the manual leaves a choice:
//! * `.aligned` (all of `bar`): all lanes of a warp execute the same instruction together, and without a
//!   count so do all threads of the CTA. Threads that have exited are exempt; `barrier` without `.aligned`
//!   does not wait for them (§9.7.12.1), so their absence is not a mistake there.
//! * Threads that exit without the barrier: the finding is `barrier-exited` if they only exit, and
//!   `divergent-barrier` if they have other work after the barrier, or reached it with a false guard.
//! * Different warps may execute different barrier instructions with the same number.
//! * A member mask may contain lanes that never existed (the last warp of a CTA), but no lane that has exited
//!   or never reaches the instruction.
//!
//! What can be missed: mistakes that do not appear in this schedule, such as a count that happens to be
//! complete.
//!
//! Invariant: for each kind and launch a place is reported once, with a count.

use crate::finding::{Finding, Kind};
use crate::recorder::Recorder;
use ptx::ir::{Function, Inst, Src, Terminator};
use ptx::isa::{Op, ShflMode};
use ptx_exec::bind::shfl_semantics;
use ptx_exec::bound::BarrierKind;
use ptx_exec::lanes::{Lane, LaneMask, Registers, lanes_of};
use ptx_exec::watch::{
    BarrierEvent, CtaFacts, Interest, KernelFacts, LaunchFacts, NativeChecks, Observer, Place, Site,
    WarpSyncEvent,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The observer.
pub(crate) struct Synccheck {
    recorder: Recorder,
    /// Resident CTAs, by launch and slot.
    ctas: BTreeMap<(u64, u32), Cta>,
}

/// A resident CTA.
#[derive(Default)]
struct Cta {
    warps: Vec<Warp>,
    bars: [Bar; 16],
}

#[derive(Default)]
struct Warp {
    /// Lanes that have exited, and those of them that had more to do than leave, or had come to a barrier
    /// whose guard did not hold.
    exited: LaneMask,
    busy: LaneMask,
    /// Lanes that have come to a barrier's instruction and did not execute it.
    passed: LaneMask,
    /// Barriers that lanes have reached, until their warp arrives.
    reached: Vec<Reached>,
    /// Warp-synchronous instructions that lanes wait at, with member masks and without: the latter are for
    /// all lanes.
    waits: Vec<(Place, LaneMask)>,
    whole: Vec<(Place, LaneMask)>,
    /// By lane: the member mask, and the operands b and c of `shfl`.
    members: Lanes,
    b: Lanes,
    c: Lanes,
}

#[derive(Clone, Copy, Default)]
struct Lanes([u32; 32]);

impl Lanes {
    fn set(&mut self, lanes: LaneMask, values: &Lane<u32>) {
        lanes_of(lanes).for_each(|lane| self.0[lane] = values.0[lane]);
    }
}

#[derive(Clone, Copy)]
struct Reached {
    place: Place,
    lanes: LaneMask,
    aligned: bool,
}

/// A barrier of a CTA.
#[derive(Default)]
struct Bar {
    /// Warps that have arrived since it completed last, and where the first of them did.
    arrived: Vec<u32>,
    place: Option<(Place, bool)>,
    count: Option<u32>,
    all: bool,
    kind: Option<BarrierKind>,
    /// How often each warp has arrived.
    turns: BTreeMap<u32, u64>,
    /// Whether it was used wrongly: what follows from that is no mistake of its own.
    misused: bool,
}

fn is_barrier(op: Op) -> bool {
    matches!(op, Op::BarSync | Op::BarArrive | Op::BarRed)
}

fn is_reduction(kind: BarrierKind) -> bool {
    matches!(kind, BarrierKind::Popc | BarrierKind::And | BarrierKind::Or)
}

/// What native code must check of a kernel: that whole warps execute barriers and warp-synchronous
/// instructions while no thread has exited. Then none of them is misused.
///
/// # Errors
/// What of the kernel needs its events.
fn native_checks(kernel: &KernelFacts<'_>) -> Result<NativeChecks, String> {
    let Some(function) = kernel.program.functions.get(kernel.kernel.0 as usize) else {
        return Err("synccheck does not know the kernel".to_owned());
    };
    let line = |inst: &Inst| kernel.program.source.line(inst.span);
    let (mut syncs, mut exit) = (false, None);
    for (at, block) in (0..).zip(&function.blocks) {
        if let Some(inst) = block.insts.iter().find(|inst| inst.op == Op::Shfl) {
            return Err(format!("synccheck follows the `shfl` without `.sync` in line {}", line(inst)));
        }
        match &block.term {
            Terminator::Call(_) => return Err("synccheck follows its calls".to_owned()),
            Terminator::Branch { inst, .. } if is_barrier(inst.op) => {
                return Err(format!("synccheck follows the guard of the barrier in line {}", line(inst)));
            }
            Terminator::Barrier { inst, .. }
                if !matches!(inst.srcs.get(1), None | Some(Src::Absent)) || inst.op == Op::BarArrive =>
            {
                return Err(format!("synccheck counts the threads at the barrier in line {}", line(inst)));
            }
            Terminator::Barrier { .. } | Terminator::WarpSync { .. } => syncs = true,
            Terminator::Ret(_) | Terminator::Exit(_) => {
                let place = (at, block.insts.len() as u32);
                match exit {
                    // Whether lanes had more to do than exit decides what kind of mistake a barrier is.
                    Some((_, index)) if (index == 0) != (place.1 == 0) => {
                        return Err("synccheck distinguishes its exits".to_owned());
                    }
                    _ => exit = exit.or(Some(place)),
                }
            }
            Terminator::Goto(..) | Terminator::Branch { .. } | Terminator::Switch { .. } => {}
        }
    }
    Ok(NativeChecks { whole: syncs, exit, ..NativeChecks::default() })
}

/// A mask in words.
fn mask(lanes: LaneMask) -> String {
    format!("{lanes:#010x}")
}

impl Synccheck {
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self { recorder, ctas: BTreeMap::new() }
    }

    fn cta<'a>(&'a mut self, site: &'a Site) -> Option<(&'a mut Cta, usize, Teller<'a>)> {
        let key = (site.launch.shape.gridid, site.warp.cta_slot);
        let cta = self.ctas.get_mut(&key)?;
        let warp = site.warp.warp as usize;
        (warp < cta.warps.len()).then_some((cta, warp, Teller { recorder: &self.recorder, site }))
    }
}

/// Records findings of a warp.
struct Teller<'a> {
    recorder: &'a Recorder,
    site: &'a Site,
}

impl Teller<'_> {
    /// A finding of lanes at the site.
    fn tell(&self, kind: Kind, lanes: LaneMask, message: String) {
        self.tell_at(kind, self.site.place, lanes, message);
    }

    /// A finding of lanes at another place.
    fn tell_at(&self, kind: Kind, place: Place, lanes: LaneMask, message: String) {
        let lane = if lanes == 0 { 0 } else { lanes.trailing_zeros() as usize };
        let mut finding = Finding::at(kind, self.site, lane, message);
        let described = crate::finding::Described::of(&self.site.launch, place);
        (finding.function, finding.file, finding.line) = (described.function, described.file, described.line);
        (finding.instruction, finding.source) = (described.instruction, described.source);
        self.recorder.record(finding.times(u64::from(lanes.count_ones().max(1))).note("lanes", mask(lanes)));
    }
}

impl Observer for Synccheck {
    fn native_checks(&mut self, kernel: &KernelFacts<'_>) -> Result<NativeChecks, String> {
        native_checks(kernel)
    }

    fn mends(&self) -> bool {
        true
    }

    fn sees_accesses(&self) -> bool {
        false
    }

    fn interests(&self, function: &Function) -> Vec<Vec<Interest>> {
        let before = |inst: &Inst| matches!(inst.op, Op::ShflSync | Op::Shfl) || is_barrier(inst.op);
        Interest::of_function(function, |inst| Interest { before: before(inst), after: false })
    }

    fn cta_begins(&mut self, launch: &Arc<LaunchFacts>, cta: &CtaFacts) {
        let warps = cta.warps.iter().map(|_| Warp::default()).collect();
        self.ctas.insert((launch.shape.gridid, cta.slot), Cta { warps, ..Cta::default() });
    }

    fn cta_ends(&mut self, launch: &Arc<LaunchFacts>, cta: &CtaFacts) {
        self.ctas.remove(&(launch.shape.gridid, cta.slot));
    }

    fn step(&mut self, site: &Site, lanes: LaneMask, _group: LaneMask, regs: &Registers) {
        let Some(inst) = site.inst() else { return };
        if is_barrier(inst.op) {
            // Also where its guard decides whether they execute it.
            if let Some((cta, warp, _)) = self.cta(site) {
                cta.warps[warp].passed |= lanes;
            }
            return;
        }
        if !matches!(inst.op, Op::ShflSync | Op::Shfl) {
            return;
        }
        let value = |at: usize| match inst.srcs.get(at) {
            Some(Src::Reg(reg)) => regs.r32.get(reg.index as usize).copied().unwrap_or(Lane([0; 32])),
            Some(Src::Imm(bits)) => Lane([*bits as u32; 32]),
            _ => Lane([0; 32]),
        };
        let Some((cta, warp, teller)) = self.cta(site) else { return };
        let state = &mut cta.warps[warp];
        state.b.set(lanes, &value(1));
        state.c.set(lanes, &value(2));
        // Without `.sync` the lanes that execute it together are those that take part.
        if inst.op == Op::Shfl {
            sources(state, inst.mods.shfl_mode(), lanes, &teller);
        }
    }

    fn barrier(&mut self, site: &Site, event: &BarrierEvent<'_>) {
        let threads = site.launch.shape.threads();
        let existing = site.warp.lanes;
        let Some((cta, warp, teller)) = self.cta(site) else { return };
        match *event {
            BarrierEvent::Reached { lanes, id, count, kind: _, aligned } => {
                cta.warps[warp].passed &= !lanes;
                cta.bars[id as usize % 16].misused |= reaches(&teller, lanes, (id, count), threads);
                cta.warps[warp].reached.push(Reached { place: site.place, lanes, aligned });
            }
            BarrierEvent::Parted { lanes } => parts(&mut cta.warps[warp], &teller, lanes),
            BarrierEvent::Arrived { id, count, kind, lanes, .. } => {
                let state = &mut cta.warps[warp];
                let reached = std::mem::take(&mut state.reached);
                let aligned = reached.iter().any(|reached| reached.aligned);
                let gone = existing & state.exited;
                if aligned && gone != 0 {
                    left_out(&teller, site.place, lanes, gone & state.busy != 0, &mask(gone));
                }
                let aligned = aligned && gone == 0;
                arrives(&mut cta.bars[id as usize % 16], &teller, (count, kind, aligned), lanes);
            }
            BarrierEvent::Completed { id, .. } => {
                let bar = std::mem::take(&mut cta.bars[id as usize % 16]);
                if let (true, false, Some((place, true))) = (bar.all, bar.misused, bar.place) {
                    let gone: u32 = cta.warps.iter().map(|warp| warp.exited.count_ones()).sum();
                    let busy = cta.warps.iter().any(|warp| warp.busy != 0);
                    if gone != 0 {
                        let who = format!("{gone} threads of the CTA");
                        left_out(&teller, place, 1, busy, &who);
                    }
                }
                let Bar { turns, misused, .. } = bar;
                cta.bars[id as usize % 16] = Bar { turns, misused, ..Bar::default() };
            }
            BarrierEvent::Released { .. } => {}
        }
    }

    fn warp_sync(&mut self, site: &Site, event: &WarpSyncEvent<'_>) {
        let Some(op) = site.inst().map(|inst| inst.op) else { return };
        let mode = site.inst().map(|inst| inst.mods.shfl_mode());
        let masked = matches!(
            op,
            Op::ShflSync
                | Op::VoteSync
                | Op::MatchAny
                | Op::MatchAll
                | Op::BarWarpSync
                | Op::ReduxSync
                | Op::ElectSync
        );
        let existing = site.warp.lanes;
        let Some((cta, warp, teller)) = self.cta(site) else { return };
        let state = &mut cta.warps[warp];
        if !masked {
            return whole(state, existing, event, &teller);
        }
        match *event {
            WarpSyncEvent::Reached { lanes, members } => {
                state.members.set(lanes, members);
                state.waits.push((site.place, lanes));
                let outside = |lane: &usize| members.0[*lane] >> lane & 1 == 0;
                let outside: LaneMask = lanes_of(lanes).filter(outside).fold(0, |m, lane| m | 1 << lane);
                if outside != 0 {
                    let given = mask(members.0[outside.trailing_zeros() as usize % 32]);
                    let text = format!("the member mask {given} leaves out the executing lane");
                    teller.tell(Kind::MemberMask, outside, text);
                }
            }
            WarpSyncEvent::Completes { lanes, .. } => {
                for wait in &mut state.waits {
                    wait.1 &= !lanes;
                }
                state.waits.retain(|wait| wait.1 != 0);
                let members = state.members.0[lanes.trailing_zeros() as usize % 32];
                let exited = members & existing & state.exited & !lanes;
                if exited != 0 {
                    let (all, gone) = (mask(members), mask(exited));
                    let text = format!("the member mask {all} names lanes that have exited: {gone}");
                    teller.tell(Kind::MemberMask, lanes, text);
                }
                if let (Op::ShflSync, Some(mode)) = (op, mode) {
                    sources(state, mode, lanes, &teller);
                }
            }
        }
    }

    fn exits(&mut self, site: &Site, lanes: LaneMask) {
        let Some((cta, warp, _)) = self.cta(site) else { return };
        let state = &mut cta.warps[warp];
        state.exited |= lanes;
        state.busy |= if site.place.index != 0 { lanes } else { lanes & state.passed };
    }

    fn deadlock(&mut self, site: &Site) {
        let threads = site.launch.shape.threads();
        let Some((cta, _, teller)) = self.cta(site) else { return };
        let mut waits = false;
        for state in &mut cta.warps {
            for (place, lanes) in std::mem::take(&mut state.whole) {
                let text = format!(
                    "lanes {} of a warp reach an instruction that all its lanes execute together; the others never come",
                    mask(lanes)
                );
                teller.tell_at(Kind::DivergentBarrier, place, lanes, text);
                waits = true;
            }
        }
        for (warp, state) in cta.warps.iter().enumerate() {
            for (place, lanes) in &state.waits {
                let members = state.members.0[lanes.trailing_zeros() as usize % 32];
                let text = format!(
                    "the member mask {} names lanes that never come: {} of warp {warp} wait",
                    mask(members),
                    mask(*lanes)
                );
                teller.tell_at(Kind::MemberMask, *place, *lanes, text);
                waits = true;
            }
        }
        // What waits for a warp that is stuck by itself is no mistake of its own.
        if waits {
            return;
        }
        for state in &mut cta.warps {
            let reached = std::mem::take(&mut state.reached);
            if let Some(first) = reached.first() {
                let text = "lanes of one warp wait at different barriers".to_owned();
                teller.tell_at(Kind::DivergentBarrier, first.place, first.lanes, text);
            }
        }
        let exited = cta.warps.iter().any(|warp| warp.exited != 0);
        for (id, bar) in cta.bars.iter_mut().enumerate() {
            let Some((place, _)) = bar.place else { continue };
            if !bar.misused {
                never_completes(&teller, (id, bar), place, exited, threads);
            }
            let turns = std::mem::take(&mut bar.turns);
            *bar = Bar { turns, misused: bar.misused, ..Bar::default() };
        }
    }
}

/// An instruction without a member mask (`mma`, `wmma`, `ldmatrix`, ...), which all lanes of a warp execute
/// together.
fn whole(state: &mut Warp, existing: LaneMask, event: &WarpSyncEvent<'_>, teller: &Teller<'_>) {
    match *event {
        WarpSyncEvent::Reached { lanes, .. } => state.whole.push((teller.site.place, lanes)),
        WarpSyncEvent::Completes { lanes, .. } => {
            state.whole.clear();
            let gone = existing & !lanes;
            if gone != 0 {
                left_out(teller, teller.site.place, lanes, gone & state.busy != 0, &mask(gone));
            } else if lanes != LaneMask::MAX {
                let text =
                    format!("only lanes {} of the warp exist, and all 32 must execute this", mask(lanes));
                teller.tell(Kind::DivergentBarrier, lanes, text);
            }
        }
    }
}

/// Lanes reach a barrier: whether its number or count can't be right.
fn reaches(teller: &Teller<'_>, lanes: LaneMask, (id, count): (u32, Option<u32>), threads: u32) -> bool {
    if id > 15 {
        teller.tell(Kind::BarrierCount, lanes, format!("barrier {id} does not exist (0 to 15)"));
        return true;
    }
    let Some(count) = count else { return false };
    if count == 0 || count % 32 != 0 {
        let text = format!("a thread count of {count} is not a positive multiple of the warp size, 32");
        teller.tell(Kind::BarrierCount, lanes, text);
    } else if count > threads.next_multiple_of(32) {
        let text = format!("a thread count of {count} is more than the {threads} threads of the CTA");
        teller.tell(Kind::BarrierCount, lanes, text);
    } else {
        return false;
    }
    true
}

/// Lanes of a warp go on from a barrier alone, because others of the warp are at another instruction.
fn parts(state: &mut Warp, teller: &Teller<'_>, lanes: LaneMask) {
    let others: LaneMask = state.reached.iter().fold(0, |all, reached| all | reached.lanes) & !lanes;
    state.reached.retain(|reached| reached.lanes & !lanes != 0);
    let text = format!(
        "lanes {} of a warp reach an aligned barrier while lanes {} are at another instruction",
        mask(lanes),
        mask(others)
    );
    teller.tell(Kind::DivergentBarrier, lanes, text);
}

/// Threads have exited that an aligned barrier is for.
fn left_out(teller: &Teller<'_>, place: Place, lanes: LaneMask, busy: bool, who: &str) {
    let (kind, text) = match busy {
        true => {
            (Kind::DivergentBarrier, format!("{who} went past this aligned barrier without executing it"))
        }
        false => (Kind::BarrierExited, format!("{who} have exited without executing this aligned barrier")),
    };
    teller.tell_at(kind, place, lanes, text);
}

/// A warp arrives at a barrier.
fn arrives(
    bar: &mut Bar,
    teller: &Teller<'_>,
    (count, kind, aligned): (Option<u32>, BarrierKind, bool),
    lanes: LaneMask,
) {
    let warp = teller.site.warp.warp;
    let warps = teller.site.launch.shape.warps();
    let mut misused = bar.misused;
    let mut wrong = |text: String| {
        misused = true;
        teller.tell(Kind::BarrierCount, lanes, text);
    };
    if bar.arrived.contains(&warp) {
        let text = "the warp has arrived at this barrier already, and it has not completed since".to_owned();
        wrong(text);
    }
    if let Some(first) = bar.kind
        && (is_reduction(first) != is_reduction(kind) || is_reduction(kind) && first != kind)
    {
        let text = "reductions are mixed with other forms in one use of a barrier".to_owned();
        wrong(text);
    }
    let (all, counted) = (bar.all || count.is_none(), bar.count.or(count));
    match (bar.count, count) {
        (Some(before), Some(count)) if before != count => {
            let text = format!("a thread count of {count} where another warp gave {before} for this barrier");
            wrong(text);
        }
        _ => {
            if let (true, Some(counted)) = (all && !bar.arrived.is_empty(), counted)
                && counted != warps * 32
            {
                let text = format!("a thread count of {counted} and none (all threads) for one barrier");
                wrong(text);
            }
        }
    }
    bar.misused = misused;
    bar.arrived.push(warp);
    bar.place = bar.place.or(Some((teller.site.place, aligned)));
    bar.kind = bar.kind.or(Some(kind));
    (bar.all, bar.count) = (all, counted);
    *bar.turns.entry(warp).or_default() += 1;
}

/// A barrier at which some wait, and which no one will complete.
fn never_completes(teller: &Teller<'_>, (id, bar): (usize, &Bar), place: Place, exited: bool, threads: u32) {
    let there = bar.arrived.len() as u32 * 32;
    let Some(count) = bar.count else {
        let text = format!("warps wait at barrier {id} for warps that wait elsewhere");
        teller.tell_at(Kind::DivergentBarrier, place, 1, text);
        return;
    };
    // A count beyond the CTA has been reported when it was given.
    if count > threads.next_multiple_of(32) {
        return;
    }
    let mut turns = bar.turns.values();
    let first = turns.next();
    let even = turns.all(|turn| Some(turn) == first);
    let all = bar.turns.len() as u32 * 32;
    if even && first.is_some_and(|first| *first > 0) && all > count {
        let text = format!("{all} threads arrive at barrier {id}, of which the count is {count}");
        teller.tell_at(Kind::BarrierCount, place, 1, text);
    } else if exited {
        let text =
            format!("{there} of {count} threads have arrived at barrier {id}, and the others have exited");
        teller.tell_at(Kind::BarrierExited, place, 1, text);
    } else {
        let text =
            format!("{there} of {count} threads have arrived at barrier {id}, and the others wait elsewhere");
        teller.tell_at(Kind::DivergentBarrier, place, 1, text);
    }
}

/// Whether lanes of a `shfl` read from lanes that do not take part.
fn sources(state: &Warp, mode: Option<ShflMode>, lanes: LaneMask, teller: &Teller<'_>) {
    let Some(mode) = mode.map(shfl_semantics) else { return };
    let mut wrong = 0;
    let mut from = 0;
    for lane in lanes_of(lanes) {
        let (source, valid) = ptx_sem::shfl_source(mode, lane as u32, state.b.0[lane], state.c.0[lane]);
        if valid && lanes >> source & 1 == 0 {
            wrong |= 1 << lane;
            from |= 1 << source;
        }
    }
    if wrong != 0 {
        let text = format!("lanes read from lanes that do not take part: {}", mask(from));
        teller.tell(Kind::InactiveSource, wrong, text);
    }
}
