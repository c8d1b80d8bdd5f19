//! racecheck: conflicting accesses that are not ordered, by the memory consistency model of PTX ISA chapter
//! 8.
//!
//! [`Racecheck`] translates the machine's events to calls of a [`Detector`], one for each launch, and its
//! races to findings. Global and shared memory are checked, also through generic addresses; local, parameter
//! and constant memory, textures and surfaces are not (§8.1). All that comes before a launch, including
//! accesses of the host, happens before it, and the launch happens before all that follows.
//!
//! Readings where the manual leaves a choice:
//! * `shfl`, `vote`, `match`, `redux`, `elect`, `activemask`, `mma` and `wmma.mma` do not order memory
//!   accesses; `bar.warp.sync` does (§9.7.12.2).
//! * Lanes that store the same value to the same address by one instruction perform one write. Different
//!   values are a race.
//! * A failed `cas` is a read. `atom` and `red` without `.sem` are `.relaxed`, without a scope `.gpu`. `red`
//!   continues a release sequence.
//! * `.volatile` is `.relaxed.sys`. `ld.global.nc` and `ldu` are weak reads.
//! * `wmma.load`, `wmma.store`, `ldmatrix` and `stmatrix` access elements on behalf of the warp: two of them
//!   in one warp do not race.
//! * `cp.async` is a weak read and a weak write by a separate thread, which begins with the instruction. The
//!   issuing thread is ordered after it by `cp.async.wait_group` or `cp.async.wait_all`, and other threads by
//!   an `mbarrier` at which the copies arrive.
//! * A thread that has exited does not take part in barriers.
//!
//! What can be missed: accesses that are ordered in this run only (another seed may have another order);
//! races between launches that overlap in time; accesses that bounded tables have discarded (more than eight
//! relevant ones of a granule); of several lanes of an event that race, all but one.
//!
//! Invariant: both accesses of a finding took place, and no chain of synchronisation orders them.

#[cfg(test)]
mod agreement;
mod cta;
mod detect;
mod facts;
mod known;
mod native;
mod order;
mod shadow;
#[cfg(test)]
mod tests;

use crate::finding::{Described, Finding, Kind as FindingKind, OtherAccess};
use crate::recorder::Recorder;
use detect::Detector;
use facts::{At, Party, Race, Where};
use native::Filter;
use order::{Kind, Missing, Op};
use ptx::ir::{Dst, Function, Inst, Reg, RegClass, Src};
use ptx::isa::{AtomOp, Op as Mnemonic, Scope, Sem, Space, Ty, Word};
use ptx_exec::lanes::{Lane, LaneMask, Registers, lanes_of};
use ptx_exec::stamps::Stamps;
use ptx_exec::watch::{
    Access, AccessKind, BarrierEvent, CtaFacts, HostAccess, HostAccessKind, Interest, KernelFacts,
    LaunchFacts, NativeChecks, Observer, Place, Site, WarpSyncEvent,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The observer.
pub(crate) struct Racecheck {
    recorder: Recorder,
    launches: Vec<Running>,
    /// The stamps of the memory, if the system has room for them.
    stamps: Option<Arc<Stamps>>,
}

/// A launch that runs.
struct Running {
    launch: Arc<LaunchFacts>,
    detector: Detector,
    /// Decides whether the detector is needed, while native code executes the launch.
    filter: Option<Filter>,
    /// Indices of the detector's table, by instruction, what it does, and the size of an element.
    sites: HashMap<(Place, Kind, u32), u32>,
    /// What those indices mean.
    places: Vec<(Place, Op)>,
    /// How many of the detector's races have become findings.
    told: usize,
    /// The access of the instruction that is being executed, which is judged when its registers are known.
    pending: Option<Pending>,
    /// The value that a `cas` compares with, by lane.
    compare: Lane<u64>,
}

/// An access that waits for its instruction to end.
struct Pending {
    site: u32,
    lanes: LaneMask,
    addresses: Lane<u64>,
    chosen: u8,
    element: u32,
    why: Why,
}

enum Why {
    /// Lanes store to one address: their values decide.
    Values,
    /// A `cas`: its old value decides. The other site is that of a failed one.
    Cas { failed: u32 },
    /// An operation of `mbarrier`: judged already, and its operands count.
    Mbarrier,
}

impl Racecheck {
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self { recorder, launches: Vec::new(), stamps: None }
    }

    fn running(&mut self, launch: &Arc<LaunchFacts>) -> Option<&mut Running> {
        self.launches.iter_mut().find(|running| Arc::ptr_eq(&running.launch, launch))
    }

    fn at(&mut self, site: &Site) -> Option<(&mut Running, At)> {
        let at = At { slot: site.warp.cta_slot, warp: site.warp.warp as u8, live: site.live };
        Some((self.running(&site.launch).filter(|running| running.filter.is_none())?, at))
    }

    /// Makes findings of the races that were found since.
    fn tell(&mut self, site: &Site) {
        let Some(running) = self.launches.iter_mut().find(|r| Arc::ptr_eq(&r.launch, &site.launch)) else {
            return;
        };
        while let Some(race) = running.detector.races().get(running.told) {
            let address =
                if race.shared { race.address.wrapping_sub(site.warp.shared.0) } else { race.address };
            let finding = running.finding(race, address);
            running.told += 1;
            self.recorder.record(finding);
        }
        for index in running.detector.take_replaced() {
            let race = &running.detector.races()[index];
            let address =
                if race.shared { race.address.wrapping_sub(site.warp.shared.0) } else { race.address };
            // Its count is recorded when the launch ends.
            self.recorder.record(running.finding(race, address).times(0));
        }
    }
}

impl Observer for Racecheck {
    fn native_checks(&mut self, kernel: &KernelFacts<'_>) -> Result<NativeChecks, String> {
        native::checks(kernel)
    }

    fn wants_stamps(&self) -> bool {
        true
    }

    fn stamped(&mut self, stamps: &Arc<Stamps>) {
        self.stamps = Some(Arc::clone(stamps));
    }

    fn compares_stamps(&mut self, launch: &Arc<LaunchFacts>) {
        let filter = self.stamps.as_ref().map(Filter::new);
        if let Some(running) = self.running(launch) {
            running.filter = filter;
        }
    }

    fn repeats(&mut self, launch: &Arc<LaunchFacts>) {
        if let Some(running) = self.running(launch) {
            running.filter = None;
        }
    }

    fn launch_begins(&mut self, launch: &Arc<LaunchFacts>) {
        let ctas = launch.shape.nctaid.iter().map(|n| u64::from(*n)).product();
        self.launches.push(Running {
            launch: Arc::clone(launch),
            detector: Detector::new(ctas),
            filter: None,
            sites: HashMap::new(),
            places: Vec::new(),
            told: 0,
            pending: None,
            compare: Lane([0; 32]),
        });
    }

    fn launch_ends(&mut self, launch: &Arc<LaunchFacts>, _trapped: bool) {
        let Some(at) = self.launches.iter().position(|running| Arc::ptr_eq(&running.launch, launch)) else {
            return;
        };
        let running = self.launches.swap_remove(at);
        for race in running.detector.races().iter().filter(|race| race.count > 1) {
            // The first one is recorded; the key of the rest is the same.
            self.recorder.record(running.finding(race, race.address).times(race.count - 1));
        }
    }

    fn cta_begins(&mut self, launch: &Arc<LaunchFacts>, cta: &CtaFacts) {
        let Some(running) = self.running(launch) else { return };
        if let Some(filter) = &mut running.filter {
            return filter.cta_begins(cta);
        }
        let threads = launch.shape.threads();
        let warps: Vec<LaneMask> = (0..cta.warps.len() as u32)
            .map(|warp| {
                let left = threads.saturating_sub(32 * warp);
                if left >= 32 { LaneMask::MAX } else { (1 << left) - 1 }
            })
            .collect();
        running.detector.cta_begins(cta.slot, cta.cta, &warps, cta.shared);
    }

    fn cta_ends(&mut self, launch: &Arc<LaunchFacts>, cta: &CtaFacts) {
        if let Some(running) = self.running(launch) {
            running.detector.cta_ends(cta.slot);
        }
    }

    fn interests(&self, function: &Function) -> Vec<Vec<Interest>> {
        Interest::of_function(function, wanted)
    }

    fn step(&mut self, site: &Site, lanes: LaneMask, _group: LaneMask, regs: &Registers) {
        let Some(inst) = site.inst() else { return };
        let wide = || inst.mods.scope().is_none_or(|scope| scope != Scope::Cta);
        match inst.op {
            Mnemonic::Fence | Mnemonic::Membar if lanes != 0 => {
                if inst.mods.has(Word::Proxy) || inst.mods.has(Word::MbarrierInit) {
                    return;
                }
                let sc = inst.op == Mnemonic::Membar || inst.mods.sem() == Sem::Sc;
                let wide = wide();
                if let Some((running, at)) = self.at(site) {
                    running.detector.fence(at, lanes, sc, wide);
                }
            }
            Mnemonic::CpAsyncCommitGroup if lanes != 0 => {
                if let Some((running, at)) = self.at(site) {
                    running.detector.copies_commit(at, lanes);
                }
            }
            Mnemonic::CpAsyncWaitGroup | Mnemonic::CpAsyncWaitAll if lanes != 0 => {
                let n = match inst.srcs.first() {
                    Some(Src::Imm(n)) => Some(*n),
                    _ => None,
                };
                if let Some((running, at)) = self.at(site) {
                    running.detector.copies_wait(at, lanes, n);
                }
            }
            Mnemonic::Atom if inst.mods.atom_op() == Some(AtomOp::Cas) => {
                if let (Some((running, _)), Some(compare)) = (self.at(site), inst.srcs.get(1)) {
                    running.compare = value(compare, regs);
                }
            }
            _ => {}
        }
    }

    fn access(&mut self, site: &Site, access: &Access<'_>) -> LaneMask {
        if let Some(Running { filter: Some(filter), .. }) = self.running(&site.launch) {
            return filter.access(site, access);
        }
        self.judge(site, access);
        self.tell(site);
        0
    }

    fn stepped(&mut self, site: &Site, _lanes: LaneMask, regs: &Registers) {
        let Some((running, at)) = self.at(site) else { return };
        let Some(pending) = running.pending.take() else { return };
        if let Some(inst) = site.inst() {
            running.finish(at, inst, pending, regs);
            self.tell(site);
        }
    }

    fn barrier(&mut self, site: &Site, event: &BarrierEvent<'_>) {
        if let Some(Running { filter: Some(filter), .. }) = self.running(&site.launch) {
            return filter.barrier(site, event);
        }
        let Some((running, at)) = self.at(site) else { return };
        match event {
            BarrierEvent::Reached { .. } | BarrierEvent::Parted { .. } => {}
            BarrierEvent::Arrived { id, lanes, waiting, .. } => {
                running.detector.barrier_arrives(at, *id, *lanes, *waiting);
            }
            BarrierEvent::Completed { id, .. } => running.detector.barrier_completes(at, *id),
            BarrierEvent::Released { id, lanes } => running.detector.barrier_releases(at, *id, *lanes),
        }
    }

    fn warp_sync(&mut self, site: &Site, event: &WarpSyncEvent<'_>) {
        let WarpSyncEvent::Completes { lanes, .. } = event else { return };
        if site.inst().is_some_and(|inst| inst.op == Mnemonic::BarWarpSync)
            && let Some((running, at)) = self.at(site)
        {
            running.detector.warp_syncs(at, *lanes);
        }
    }

    fn malloc(&mut self, site: &Site, _lane: usize, bytes: u64, address: u64) {
        if address != 0
            && let Some((running, _)) = self.at(site)
        {
            running.detector.forget(address, bytes);
        }
    }

    fn freed(&mut self, address: u64, bytes: u64) {
        for running in &mut self.launches {
            running.detector.forget(address, bytes);
        }
        self.release(address, bytes);
    }

    fn host(&mut self, access: &HostAccess<'_>) {
        match access.kind {
            HostAccessKind::Read => {}
            HostAccessKind::Write => self.release(access.address, access.bytes),
            HostAccessKind::Copy { to } => self.release(to, access.bytes),
        }
    }
}

/// What [`Racecheck`] wants to be told of an instruction.
fn wanted(inst: &Inst) -> Interest {
    let before = matches!(
        inst.op,
        Mnemonic::Fence
            | Mnemonic::Membar
            | Mnemonic::CpAsyncCommitGroup
            | Mnemonic::CpAsyncWaitGroup
            | Mnemonic::CpAsyncWaitAll
            | Mnemonic::Atom
    );
    let after = matches!(
        inst.op,
        Mnemonic::St
            | Mnemonic::Atom
            | Mnemonic::MbarrierInit
            | Mnemonic::MbarrierArrive
            | Mnemonic::MbarrierArriveDrop
            | Mnemonic::MbarrierTestWait
            | Mnemonic::CpAsyncMbarrierArrive
    );
    Interest { before, after }
}

impl Racecheck {
    /// If the launch is repeated, bytes stay as the host leaves them.
    fn release(&self, address: u64, bytes: u64) {
        if let Some(stamps) = &self.stamps
            && stamps.is_active()
        {
            stamps.release(address..address.saturating_add(bytes));
        }
    }

    fn judge(&mut self, site: &Site, access: &Access<'_>) {
        let space = access.space;
        if matches!(space, Space::Const | Space::Local | Space::Param | Space::Tex) {
            return;
        }
        let Some(inst) = site.inst() else { return };
        let memory = Arc::clone(&site.launch.memory);
        let Some((running, at)) = self.at(site) else { return };
        let refused = access.refused.iter().fold(0, |lanes, refused| lanes | 1 << refused.lane);
        let mut lanes = access.lanes & !refused;
        if space == Space::Generic {
            let counts = |lane: &usize| {
                matches!(memory.space_of(access.generic.0[*lane]), Space::Global | Space::Shared)
            };
            lanes = lanes_of(lanes).filter(counts).fold(0, |mask, lane| mask | 1 << lane);
        }
        if lanes == 0 {
            return;
        }
        let kind = access.kind;
        let number = running.site(site.place, inst, access, kind);
        let why = match inst.op {
            Mnemonic::St if kind == AccessKind::Store && is_shared_address(lanes, access.generic) => {
                Some(Why::Values)
            }
            Mnemonic::Atom if inst.mods.atom_op() == Some(AtomOp::Cas) && access.element <= 8 => {
                matches!(inst.dsts.first(), Some(Dst::Reg(_)))
                    .then(|| Why::Cas { failed: running.site(site.place, inst, access, AccessKind::Load) })
            }
            Mnemonic::MbarrierInit
            | Mnemonic::MbarrierArrive
            | Mnemonic::MbarrierArriveDrop
            | Mnemonic::MbarrierTestWait
            | Mnemonic::CpAsyncMbarrierArrive => Some(Why::Mbarrier),
            _ => None,
        };
        let chosen = access.chosen;
        if !matches!(why, Some(Why::Values | Why::Cas { .. })) {
            let place = Where { lanes, addresses: &access.generic.0, chosen, agree: true };
            running.detector.access(at, number, &place);
        }
        if let Some(why) = why {
            let (addresses, element) = (*access.generic, access.element);
            running.pending = Some(Pending { site: number, lanes, addresses, chosen, element, why });
        }
    }
}

/// Whether two lanes have one address.
fn is_shared_address(lanes: LaneMask, addresses: &Lane<u64>) -> bool {
    let mut list: Vec<u64> = lanes_of(lanes).map(|lane| addresses.0[lane]).collect();
    list.sort_unstable();
    list.windows(2).any(|pair| pair[0] == pair[1])
}

/// A source in every lane, zero-extended.
fn value(src: &Src, regs: &Registers) -> Lane<u64> {
    match src {
        Src::Reg(reg) => register(*reg, regs),
        Src::Imm(bits) => Lane([*bits; 32]),
        Src::Absent | Src::Not(_) | Src::Sreg(..) | Src::Addr(_) | Src::Video(_) => Lane([0; 32]),
    }
}

fn register(Reg { class, index }: Reg, regs: &Registers) -> Lane<u64> {
    let at = index as usize;
    let found = match class {
        RegClass::Pred => {
            regs.pred.get(at).map(|mask| Lane(std::array::from_fn(|lane| u64::from(mask >> lane & 1))))
        }
        RegClass::R16 => regs.r16.get(at).map(|lanes| Lane(lanes.0.map(u64::from))),
        RegClass::R32 => regs.r32.get(at).map(|lanes| Lane(lanes.0.map(u64::from))),
        RegClass::R64 => regs.r64.get(at).copied(),
    };
    found.unwrap_or(Lane([0; 32]))
}

impl Running {
    /// The detector's index of an access of an instruction.
    fn site(&mut self, place: Place, inst: &Inst, access: &Access<'_>, kind: AccessKind) -> u32 {
        let op = op(inst, access, kind);
        let key = (place, op.kind, access.element);
        if let Some(site) = self.sites.get(&key) {
            return *site;
        }
        let site = self.detector.site(op);
        self.places.push((place, op));
        self.sites.insert(key, site);
        site
    }

    /// Judges an access whose instruction has ended.
    fn finish(&mut self, at: At, inst: &Inst, pending: Pending, regs: &Registers) {
        let Pending { site, lanes, addresses, chosen, element, why } = pending;
        let mut access = |site: u32, lanes: LaneMask, agree: bool| {
            if lanes != 0 {
                self.detector.access(at, site, &Where { lanes, addresses: &addresses.0, chosen, agree });
            }
        };
        match why {
            Why::Values => {
                let values: Vec<Lane<u64>> = inst.srcs.iter().skip(1).map(|src| value(src, regs)).collect();
                let bits = u64::MAX >> (64 - 8 * u64::from(element.clamp(1, 8)));
                let agree = lanes_of(lanes).all(|a| {
                    lanes_of(lanes)
                        .filter(|b| *b > a && addresses.0[*b] == addresses.0[a])
                        .all(|b| values.iter().all(|value| value.0[a] & bits == value.0[b] & bits))
                });
                access(site, lanes, agree);
            }
            Why::Cas { failed } => {
                let Some(Dst::Reg(old)) = inst.dsts.first() else { return };
                let old = register(*old, regs);
                let bits = u64::MAX >> (64 - 8 * u64::from(element.clamp(1, 8)));
                let swapped = |lane: &usize| old.0[*lane] & bits == self.compare.0[*lane] & bits;
                let swapped = lanes_of(lanes).filter(swapped).fold(0, |mask, lane| mask | 1 << lane);
                // Lanes act in ascending order, and what one has changed another may find.
                let mut rest = lanes;
                while rest != 0 {
                    let lane = rest & rest.wrapping_neg();
                    rest &= !lane;
                    access(if swapped & lane != 0 { site } else { failed }, lane, true);
                }
            }
            Why::Mbarrier => self.mbarrier(at, inst, lanes, &addresses, regs),
        }
    }

    fn mbarrier(&mut self, at: At, inst: &Inst, lanes: LaneMask, addresses: &Lane<u64>, regs: &Registers) {
        let operand = |default: u64| match inst.srcs.get(1) {
            Some(Src::Absent) | None => Lane([default; 32]),
            Some(src) => value(src, regs),
        };
        for lane in lanes_of(lanes) {
            let address = addresses.0[lane];
            match inst.op {
                Mnemonic::MbarrierInit => {
                    self.detector.mbarrier_init(at, address, operand(0).0[lane] as u32);
                }
                Mnemonic::MbarrierArrive | Mnemonic::MbarrierArriveDrop => {
                    let drops = inst.op == Mnemonic::MbarrierArriveDrop;
                    self.detector.mbarrier_arrives(at, lane, address, operand(1).0[lane] as u32, drops);
                }
                Mnemonic::CpAsyncMbarrierArrive => {
                    let counts = inst.mods.has(Word::Noinc);
                    self.detector.copies_arrive(at, lane, address, counts);
                }
                Mnemonic::MbarrierTestWait => {
                    let over = match inst.dsts.first() {
                        Some(Dst::Reg(reg)) => register(*reg, regs).0[lane] != 0,
                        Some(_) | None => false,
                    };
                    if over {
                        self.detector.mbarrier_passed(at, lane, address);
                    }
                }
                _ => {}
            }
        }
    }

    fn finding(&self, race: &Race, address: u64) -> Finding {
        let (first, second) = (self.side(race.first), self.side(race.second));
        let hazard = if first.op.writes() && second.op.writes() { "write-write" } else { "read-write" };
        let message = format!("{} and {} are ordered by nothing", first.access, second.access);
        let mut finding = Finding::new(FindingKind::Race, message);
        finding.kernel = self.launch.kernel_name().to_owned();
        (finding.function, finding.file, finding.line) =
            (first.place.function, first.place.file, first.place.line);
        (finding.instruction, finding.source) = (first.place.instruction, first.place.source);
        (finding.cta, finding.thread, finding.seed) = (first.cta, first.thread, self.launch.seed);
        finding.space = Some(if race.shared { "shared" } else { "global" });
        (finding.address, finding.bytes) = (Some(address), Some(second.op.bytes.into()));
        finding.other = Some(OtherAccess {
            line: second.place.line,
            instruction: second.place.instruction,
            source: second.place.source,
            cta: second.cta,
            thread: second.thread,
            access: second.access,
        });
        (finding.hazard, finding.missing) = (Some(hazard), Some(race.missing.name()));
        let copies = first.op.copy || second.op.copy;
        finding.note("access", first.access).note("would order", remedy(race.missing, copies))
    }

    /// One side of a race in words.
    fn side(&self, party: Party) -> Side {
        let (place, op) = self.places[party.site as usize];
        let [nx, ny, _] = self.launch.shape.nctaid;
        let [tx, ty, _] = self.launch.shape.ntid;
        let thread = u32::from(party.warp) * 32 + u32::from(party.lane);
        Side {
            place: Described::of(&self.launch, place),
            op,
            cta: [party.cta % nx, party.cta / nx % ny, party.cta / nx / ny],
            thread: [thread % tx, thread / tx % ty, thread / tx / ty],
            access: words(&op, self.inst(place)),
        }
    }

    fn inst(&self, place: Place) -> Option<&Inst> {
        let function = self.launch.program.functions.get(place.function as usize)?;
        let block = function.blocks.get(place.block as usize)?;
        block.insts.get(place.index as usize).or_else(|| block.term.inst())
    }
}

/// One side of a race.
struct Side {
    place: Described,
    op: Op,
    cta: [u32; 3],
    thread: [u32; 3],
    access: String,
}

/// What an access is to the model.
fn op(inst: &Inst, access: &Access<'_>, kind: AccessKind) -> Op {
    let mbarrier = matches!(
        inst.op,
        Mnemonic::MbarrierArrive
            | Mnemonic::MbarrierArriveDrop
            | Mnemonic::CpAsyncMbarrierArrive
            | Mnemonic::MbarrierTestWait
    );
    let atomic = access.kind == AccessKind::Atomic;
    let strong = atomic || access.sem != Sem::Weak;
    let volatile = access.sem == Sem::Volatile;
    // Barriers in memory synchronise by themselves.
    let orders = strong && !mbarrier;
    let collective =
        matches!(inst.op, Mnemonic::WmmaLoad | Mnemonic::WmmaStore | Mnemonic::Ldmatrix | Mnemonic::Stmatrix);
    Op {
        kind: match kind {
            AccessKind::Load => Kind::Load,
            AccessKind::Store => Kind::Store,
            AccessKind::Atomic => Kind::Rmw,
        },
        strong,
        wide: volatile || !mbarrier && inst.mods.scope().is_none_or(|scope| scope != Scope::Cta),
        acquire: orders
            && kind != AccessKind::Store
            && matches!(access.sem, Sem::Acquire | Sem::AcqRel | Sem::Sc),
        release: orders
            && kind != AccessKind::Load
            && matches!(access.sem, Sem::Release | Sem::AcqRel | Sem::Sc),
        bytes: access.element.clamp(1, 16) as u8,
        copy: inst.op == Mnemonic::CpAsync,
        collective,
        packed: atomic && matches!(inst.mods.ty(), Ty::F16x2 | Ty::Bf16x2),
    }
}

/// An access in words: `relaxed.gpu read of 4 bytes`.
fn words(op: &Op, inst: Option<&Inst>) -> String {
    let what = match op.kind {
        Kind::Load => "read",
        Kind::Store => "write",
        Kind::Rmw => "atomic update",
    };
    let strength = match inst.map(|inst| (inst.mods.sem(), inst.mods.scope())) {
        _ if op.copy => "asynchronous".to_owned(),
        _ if !op.strong => "weak".to_owned(),
        Some((Sem::Volatile, _)) => "volatile".to_owned(),
        Some((sem, scope)) => {
            let sem = match sem {
                Sem::Acquire => "acquire",
                Sem::Release => "release",
                Sem::AcqRel | Sem::Sc => "acq_rel",
                Sem::Relaxed | Sem::Weak | Sem::Volatile => "relaxed",
            };
            let scope = match scope {
                Some(Scope::Cta) => "cta",
                Some(Scope::Cluster) => "cluster",
                Some(Scope::Gpu) | None => "gpu",
                Some(Scope::Sys) => "sys",
            };
            format!("{sem}.{scope}")
        }
        None => "strong".to_owned(),
    };
    format!("{strength} {what} of {} bytes", op.bytes)
}

/// What would order two accesses.
fn remedy(missing: Missing, copies: bool) -> &'static str {
    match missing {
        _ if copies => "`cp.async.wait_group` or `cp.async.wait_all`, and a barrier for other threads",
        Missing::Barrier => "a barrier (`bar.sync`) that both threads execute between the two accesses",
        Missing::Syncwarp => "`bar.warp.sync` with both lanes in its mask between the two accesses",
        Missing::Scope => "a scope that includes both threads (`.gpu` between CTAs) on both sides",
        Missing::Strong => {
            "strong operations of one size on both sides (`.relaxed`, `.volatile`, `atom`) with a wide enough scope"
        }
        Missing::ReleaseAcquire => {
            "a release pattern behind the first access, observed by an acquire pattern before the second one: \
             `fence` and a strong write of a flag; a strong read of the flag and `fence`"
        }
    }
}
