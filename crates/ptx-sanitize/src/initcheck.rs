//! initcheck: uses of uninitialised values.
//!
//! Each bit of registers and memory is defined or undefined. These are undefined at first: registers, shared
//! memory of a CTA, local memory of a function, blocks of `malloc`, and buffers that the host neither wrote
//! nor set. These are defined at first: `.global` and `.const` variables, parameters, and memory that host
//! and device share. Moves, loads, stores and arithmetic propagate undefined bits without a report
//! (`undefined.rs`). A report is made where an undefined bit can affect control flow, addresses or the host:
//! the predicate of a branch or of a guarded access, an address, an operand of a barrier or of a
//! warp-synchronous instruction, an indirect call, a copy to the host, an argument of `vprintf`.
//!
//! **Why no false alarms.** Copies of partly undefined values (padding, vectors that are used in part) are
//! not reported. Bitwise operations, shifts, and selections of fields and bytes are tracked bit by bit. In a
//! copy to the host, short undefined ranges that recur often are regarded as padding, unless a value was
//! stored there of which nothing was defined. A part of a partly undefined value is no such value: compilers
//! copy structures in pieces of other sizes than those in which they read them.
//!
//! **What can be missed.** The result of `wmma` and `mma` is undefined only if an operand is entirely
//! undefined. The contents of textures and surfaces are regarded as defined. The same holds for memory that
//! can be written without a kernel or a call: managed and pinned host memory, memory that is mapped page by
//! page or shared with other processes. A reported value counts as defined afterwards, so that one mistake is
//! not reported at every later use.
//!
//! Invariant: the tool changes nothing; registers and memory have the same values as in a plain launch.

mod clean;
mod memory;
mod native;
mod results;

use crate::registers::{Frame, Frames};
use crate::shadow::{Shadow, width};
use crate::undefined::{Value, result};
use crate::{Described, Finding, Kind, OtherAccess, Recorder};
use clean::Dirty;
use native::LiveRegisters;
use ptx::ir::{Addr, Base, Builtin, Callee, Dst, Function, Inst, Reg, RegClass, Src, Terminator};
use ptx::isa::{AtomOp, Class as RowClass, Op, Slot, Space, Ty, Word};
use ptx_exec::lanes::{Lane, LaneMask, Registers, lanes_of};
use ptx_exec::mem::Class;
use ptx_exec::shadow::ShadowMemory;
use ptx_exec::watch::{
    Access, AccessKind, Allocated, ArgumentMove, BarrierEvent, CtaFacts, HostAccess, HostAccessKind,
    Interest, KernelFacts, LaunchFacts, MovePlace, NativeChecks, Observer, Site, WarpSyncEvent,
};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// What is undefined in a register.
#[derive(Clone, Debug)]
struct Undefined {
    /// Lanes with undefined bits.
    lanes: LaneMask,
    /// Those bits; all of them where there is no list.
    bits: Option<Box<Lane<u64>>>,
    /// Where they came from: an index of [`Initcheck::origins`]; 0 for a register that was never written.
    origin: u32,
}

const FRESH: Undefined = Undefined { lanes: LaneMask::MAX, bits: None, origin: 0 };

impl Undefined {
    fn of(&self, lane: usize) -> u64 {
        match &self.bits {
            _ if self.lanes >> lane & 1 == 0 => 0,
            Some(bits) => bits.0[lane],
            None => u64::MAX,
        }
    }

    /// Gives lanes new bits.
    fn set(&mut self, lanes: LaneMask, new: impl Fn(usize) -> u64, all: u64, origin: u32) {
        let mut bits = self.bits.take().unwrap_or_else(|| Box::new(Lane::splat(u64::MAX)));
        let (mut some, mut whole) = (self.lanes & !lanes, self.bits.is_none());
        for lane in lanes_of(lanes) {
            bits.0[lane] = new(lane) & all;
            some |= LaneMask::from(bits.0[lane] != 0) << lane;
        }
        for lane in lanes_of(some) {
            whole &= bits.0[lane] & all == all;
        }
        if some & lanes != 0 {
            self.origin = origin;
        }
        self.lanes = some;
        self.bits = (!whole && some != 0).then_some(bits);
    }
}

/// A place where something undefined was read or stored first.
#[derive(Clone, Debug)]
struct Origin {
    kernel: String,
    place: Described,
    cta: [u32; 3],
    thread: [u32; 3],
    what: String,
    seed: u64,
    /// Whether each undefined value that was read there had defined bits, too, as a structure with padding
    /// has that is read as one word.
    parts: bool,
}

/// A store of undefined bytes.
#[derive(Clone, Copy, Debug)]
struct Stored {
    /// The store, in `origins`.
    store: u32,
    /// Where the value came from.
    value: u32,
    /// Whether nothing was defined of the stored value, and of the value in memory that it is a part of.
    whole: bool,
}

/// What the running instruction has loaded: by lane, the undefined bits of each of at most four words of
/// eight bytes, and the address.
#[derive(Clone, Debug)]
struct Loaded {
    lanes: LaneMask,
    words: Box<[Lane<u64>; 4]>,
    base: Lane<u64>,
    origin: u32,
}

/// The tool.
pub(crate) struct Initcheck {
    recorder: Recorder,
    frames: Frames<Undefined>,
    shadow: Shadow,
    origins: Vec<Origin>,
    /// By place, whether it is a store, and CTA: the index in [`Initcheck::origins`].
    known: HashMap<(ptx_exec::watch::Place, bool, Option<u64>), u32>,
    /// By a fourth of the generic address: what stored undefined bytes there last.
    stored: HashMap<u64, Stored>,
    /// Start and end of allocations in which everything counts as defined, because the host can write there
    /// without a call.
    untracked: BTreeMap<u64, u64>,
    /// What the instruction gives its destinations, decided before it is executed.
    pending: Vec<(Reg, Lane<u64>, u32)>,
    loaded: Option<Loaded>,
    carry: HashMap<u32, LaneMask>,
    live: LiveRegisters,
}

impl Initcheck {
    pub(crate) fn new(recorder: Recorder) -> Self {
        let nowhere = Origin {
            kernel: String::new(),
            place: Described::default(),
            cta: [0; 3],
            thread: [0; 3],
            what: "a register that was never written".to_owned(),
            seed: 0,
            parts: false,
        };
        Self {
            recorder,
            frames: Frames::beginning(FRESH, |function, frame| {
                Dirty::of(function).clear(frame, |register| register.lanes = 0);
            }),
            shadow: Shadow::default(),
            origins: vec![nowhere],
            known: HashMap::new(),
            stored: HashMap::new(),
            untracked: BTreeMap::new(),
            pending: Vec::new(),
            loaded: None,
            carry: HashMap::new(),
            live: LiveRegisters::default(),
        }
    }

    /// Whether an allocation lies there in which everything counts as defined.
    fn is_untracked(&self, address: u64) -> bool {
        self.untracked.range(..=address).next_back().is_some_and(|(_, end)| address < *end)
    }

    /// Whether undefined bytes that are stored at an address stay undefined.
    fn keeps(&self, site: &Site, address: u64) -> bool {
        site.launch.memory.is_exclusive(address) && !self.is_untracked(address)
    }

    /// The origin that the site's instruction is, for a lane. Each CTA has its own, so that a finding does
    /// not depend on the order of CTAs, unless there are very many.
    fn origin(&mut self, site: &Site, lane: usize, store: bool, what: impl Fn() -> String) -> u32 {
        /// Chosen: they take a few megabytes.
        const MOST: usize = 10_000;
        let cta = (self.origins.len() < MOST).then_some(site.warp.cta);
        let key = (site.place, store, cta);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let origin = Origin {
            kernel: site.launch.kernel_name().to_owned(),
            place: Described::of(&site.launch, site.place),
            cta: site.warp.ctaid,
            thread: site.warp.tid_of(lane),
            what: what(),
            seed: site.launch.seed,
            parts: !store,
        };
        self.origins.push(origin);
        let index = self.origins.len() as u32 - 1;
        self.known.insert(key, index);
        index
    }

    /// With the place that an undefined value came from.
    fn with_origin(&self, mut finding: Finding, origin: u32) -> Finding {
        let Some(from) = self.origins.get(origin as usize) else { return finding };
        if origin == 0 {
            return finding.note("origin", from.what.clone());
        }
        finding.other = Some(OtherAccess {
            line: from.place.line,
            instruction: from.place.instruction.clone(),
            source: from.place.source.clone(),
            cta: from.cta,
            thread: from.thread,
            access: from.what.clone(),
        });
        finding
    }

    /// Reports lanes in which an undefined value decides something.
    fn report(&mut self, site: &Site, lanes: LaneMask, what: &str, origin: u32) {
        let lane = lanes.trailing_zeros() as usize % 32;
        let finding = Finding::at(
            Kind::UninitializedRead,
            site,
            lane,
            format!("an uninitialised value decides {what}"),
        );
        let finding = finding.times(u64::from(lanes.count_ones()));
        self.recorder.record(self.with_origin(finding, origin));
    }

    /// Lanes of a register with undefined bits among `used`, and their origin. They count as defined
    /// afterwards.
    fn take(&mut self, site: &Site, reg: Reg, lanes: LaneMask, used: u64) -> Option<(LaneMask, u32)> {
        let undefined = self.frames.at(site).get_mut(reg)?;
        let some = lanes_of(lanes & undefined.lanes).filter(|lane| undefined.of(*lane) & used != 0);
        let some: LaneMask = some.fold(0, |m, lane| m | 1 << lane);
        if some == 0 {
            return None;
        }
        let origin = undefined.origin;
        undefined.set(some, |_| 0, u64::MAX, 0);
        Some((some, origin))
    }

    /// Reports undefined bits of a source that decides something.
    fn decides(&mut self, site: &Site, src: &Src, lanes: LaneMask, what: &str) {
        let frame = self.frames.at(site);
        let mut regs = Vec::new();
        src.for_each_reg(&mut |reg| {
            if frame.get(reg).is_some_and(|known| known.lanes & lanes != 0) {
                regs.push(reg);
            }
        });
        for reg in regs {
            if let Some((some, origin)) = self.take(site, reg, lanes, all_of(reg)) {
                self.report(site, some, what, origin);
            }
        }
    }

    /// An instruction on an `mbarrier` object decides by what the object holds.
    fn uses_barrier(&mut self, site: &Site, access: &Access<'_>) {
        self.loads(site, access);
        if let Some(loaded) = self.loaded.take() {
            self.report(site, loaded.lanes, "when threads go on, in an `mbarrier` object", loaded.origin);
            for lane in lanes_of(loaded.lanes) {
                let start = access.generic.0[lane];
                self.shadow.define(start..start + u64::from(access.bytes));
            }
        }
    }

    /// The function of the machine's own that a call is of.
    fn builtin(site: &Site) -> Option<Builtin> {
        let Some(Terminator::Call(call)) = site.terminator() else { return None };
        let Callee::Direct(callee) = &call.callee else { return None };
        site.launch.program.functions.get(callee.0 as usize)?.builtin
    }

    /// Operands of a terminator that decide something.
    fn terminator(&mut self, site: &Site, terminator: &Terminator, lanes: LaneMask) {
        match terminator {
            Terminator::Branch { cond, inst, .. } => {
                if let Some((some, origin)) = self.take(site, cond.pred, lanes, 1) {
                    let what = if inst.op == Op::Bra {
                        "a branch".to_owned()
                    } else {
                        format!("whether `{}` is executed", inst.op.name())
                    };
                    self.report(site, some, &what, origin);
                }
            }
            Terminator::Switch { inst, .. } => {
                for src in &inst.srcs {
                    self.decides(site, src, lanes, "a branch");
                }
            }
            Terminator::Call(call) => {
                if let Callee::Indirect { address, .. } = &call.callee {
                    self.decides(site, &Src::Reg(*address), lanes, "which function is called");
                }
            }
            Terminator::Barrier { inst, .. } => {
                for src in inst.srcs.iter().take(2) {
                    self.decides(site, src, lanes, "which barrier is used");
                }
            }
            Terminator::WarpSync { .. } | Terminator::Goto(..) | Terminator::Ret(_) | Terminator::Exit(_) => {
            }
        }
    }

    /// A warp-synchronous instruction is about to be carried out.
    fn synchronises(&mut self, site: &Site, lanes: LaneMask, inst: &Inst, regs: Option<&Registers>) {
        let members = match inst.op {
            Op::ShflSync => inst.srcs.get(3),
            Op::VoteSync | Op::MatchAny | Op::MatchAll | Op::ReduxSync => inst.srcs.get(1),
            Op::BarWarpSync | Op::ElectSync => inst.srcs.first(),
            _ => None,
        };
        if let Some(members) = members {
            self.decides(site, members, lanes, "which lanes take part");
        }
        let _values = regs;
    }

    /// The first store of undefined bytes in a range.
    fn stored_in(&self, range: &Range<u64>) -> Option<Stored> {
        let mut cells = range.start / 4..range.end.div_ceil(4);
        if cells.end - cells.start <= self.stored.len() as u64 {
            return cells.find_map(|cell| self.stored.get(&cell)).copied();
        }
        let inside = self.stored.iter().filter(|(cell, _)| cells.contains(cell));
        inside.min_by_key(|(cell, _)| **cell).map(|(_, stored)| *stored)
    }

    /// Undefined bytes leave for the host.
    fn leaves(&mut self, access: &HostAccess<'_>) {
        const MOST: usize = 4096;
        let end = access.address + access.bytes;
        let runs = self.shadow.runs(access.address..end, MOST);
        if runs.is_empty() {
            return;
        }
        let total: u64 = runs.iter().map(|run| run.end - run.start).sum();
        // Short holes that recur: padding of structures.
        let short = runs.iter().all(|run| run.end - run.start < 8);
        let padding = short && 2 * total <= access.bytes && runs.len() as u64 * 64 >= access.bytes;
        let mut reported = false;
        for run in &runs {
            let stored = self.stored_in(run);
            if stored.is_none_or(|stored| !stored.whole) && padding || stored.is_none() && reported {
                continue;
            }
            reported = true;
            let name = access.name.unwrap_or("device memory");
            let bytes = if stored.is_some() { run.end - run.start } else { total };
            let message = format!("{bytes} uninitialised bytes of {name} are copied to the host");
            let mut finding = Finding::new(Kind::UninitializedRead, message);
            (finding.address, finding.bytes) = (Some(run.start), Some(bytes));
            finding.space = Some(Space::Global.name());
            if let Some(stored) = stored
                && let Some(store) = self.origins.get(stored.store as usize)
            {
                finding.message = "an uninitialised value is stored, and copied to the host".to_owned();
                finding.kernel = store.kernel.clone();
                finding.function = store.place.function.clone();
                finding.file = store.place.file.clone();
                finding.line = store.place.line;
                finding.instruction = store.place.instruction.clone();
                finding.source = store.place.source.clone();
                (finding.cta, finding.thread, finding.seed) = (store.cta, store.thread, store.seed);
                finding = finding.note("buffer", name);
                finding = self.with_origin(finding, stored.value);
            }
            self.recorder.record(finding);
        }
        self.shadow.define(access.address..end);
    }
}

/// All bits of a register.
fn all_of(reg: Reg) -> u64 {
    width(reg.class.bits())
}

fn smeared(bits: u64) -> u64 {
    bits | bits.wrapping_neg()
}

fn space_name(site: &Site, access: &Access<'_>, lane: usize) -> &'static str {
    match access.space {
        Space::Generic => site.launch.memory.space_of(access.generic.0[lane]).name(),
        space => space.name(),
    }
}

/// A source in one lane.
fn source(frame: &Frame<Undefined>, regs: &Registers, src: &Src, lane: usize) -> Value {
    match src {
        Src::Reg(reg) => Value {
            bits: bits_of(regs, *reg, lane),
            undefined: frame.get(*reg).map_or(0, |k| k.of(lane)) & all_of(*reg),
        },
        Src::Not(reg) => {
            let value = source(frame, regs, &Src::Reg(*reg), lane);
            Value { bits: value.bits ^ 1, undefined: value.undefined }
        }
        Src::Imm(bits) => Value { bits: *bits, undefined: 0 },
        Src::Video(video) => source(frame, regs, &video.value, lane),
        Src::Addr(Addr { base: Base::Reg(reg), .. }) => source(frame, regs, &Src::Reg(*reg), lane),
        Src::Absent | Src::Sreg(..) | Src::Addr(_) => Value::default(),
    }
}

fn bits_of(regs: &Registers, reg: Reg, lane: usize) -> u64 {
    let index = reg.index as usize;
    match reg.class {
        RegClass::Pred => regs.pred.get(index).map_or(0, |mask| u64::from(mask >> lane & 1)),
        RegClass::R16 => regs.r16.get(index).map_or(0, |r| u64::from(r.0[lane])),
        RegClass::R32 => regs.r32.get(index).map_or(0, |r| u64::from(r.0[lane])),
        RegClass::R64 => regs.r64.get(index).map_or(0, |r| r.0[lane]),
    }
}

impl Observer for Initcheck {
    fn native_checks(&mut self, kernel: &KernelFacts<'_>) -> Result<NativeChecks, String> {
        native::checks(kernel)
    }

    fn resumes(&mut self, site: &Site, lanes: LaneMask) {
        self.leave_native(site, lanes);
    }

    fn permits_native(&mut self, site: &Site, lanes: LaneMask) -> bool {
        self.is_defined(site, lanes)
    }

    fn wants_shadow(&self) -> bool {
        true
    }

    fn shadowed(&mut self, shadow: &Arc<ShadowMemory>) {
        self.shadow.share(shadow);
    }

    fn interests(&self, function: &Function) -> Vec<Vec<Interest>> {
        Dirty::of(function).interests(function)
    }

    fn launch_begins(&mut self, _launch: &Arc<LaunchFacts>) {
        self.known.clear();
    }

    fn cta_begins(&mut self, _launch: &Arc<LaunchFacts>, cta: &CtaFacts) {
        self.frames.begin(cta);
        if self.shadow.is_shared() {
            return;
        }
        self.shadow.undefine(cta.shared.0..cta.shared.0 + cta.shared.1);
        for (start, bytes) in &cta.locals {
            self.shadow.undefine(*start..start + 32 * bytes);
        }
    }

    fn step(&mut self, site: &Site, lanes: LaneMask, group: LaneMask, regs: &Registers) {
        self.loaded = None;
        if let Some(terminator) = site.terminator() {
            return self.terminator(site, terminator, group);
        }
        let Some(inst) = site.inst() else { return };
        let class = inst.row.row().class;
        if let Some(guard) = inst.guard {
            let undefined = self.frames.at(site).get(guard.pred).map_or(0, |known| known.lanes) & group;
            if undefined != 0 {
                let acts = inst.dsts.is_empty() || !matches!(class, RowClass::Lane);
                if acts && let Some((some, origin)) = self.take(site, guard.pred, group, 1) {
                    let what = format!("whether `{}` is executed", inst.op.name());
                    self.report(site, some, &what, origin);
                } else {
                    // As a choice between the old and the new value.
                    let frame = self.frames.at(site);
                    let origin = frame.get(guard.pred).map_or(0, |known| known.origin);
                    for reg in inst.dsts.iter().filter_map(Dst::reg) {
                        if let Some(old) = frame.get_mut(reg) {
                            old.set(undefined, |_| u64::MAX, all_of(reg), origin);
                        }
                    }
                }
            }
        }
        if matches!(inst.op, Op::Suld | Op::Sust | Op::Sured)
            && lanes != 0
            && let Some(geom) = inst.mods.geom()
        {
            let count = usize::from(ptx::isa::form::coords(geom, Ty::S32).used);
            for src in inst.srcs.iter().skip(1).take(count) {
                self.decides(site, src, lanes, "where a surface is accessed");
            }
        }
        let accesses =
            matches!(inst.op, Op::Ld | Op::LdNc | Op::Ldu | Op::St | Op::Atom | Op::Red | Op::CpAsync);
        if lanes != 0 && !accesses && !inst.dsts.is_empty() && !matches!(inst.op, Op::Shfl | Op::Vote) {
            self.compute(site, inst, lanes, regs);
            self.settle(site, lanes);
        }
    }

    fn stepped(&mut self, site: &Site, lanes: LaneMask, regs: &Registers) {
        let Some(inst) = site.inst() else { return };
        match inst.op {
            Op::Ld | Op::LdNc | Op::Ldu | Op::Atom => self.give_loaded(site, inst, lanes),
            Op::ShflSync
            | Op::VoteSync
            | Op::MatchAny
            | Op::MatchAll
            | Op::ReduxSync
            | Op::Shfl
            | Op::Vote => {
                self.exchanged(site, inst, lanes, regs);
            }
            Op::BarWarpSync | Op::ElectSync => self.define(site, inst, lanes),
            Op::Ldmatrix | Op::Movmatrix => self.rows(site, inst, lanes),
            Op::WmmaLoad | Op::WmmaStore | Op::WmmaMma | Op::Mma | Op::Stmatrix => {
                self.matrix(site, inst, lanes);
            }
            _ => {}
        }
    }

    fn access(&mut self, site: &Site, access: &Access<'_>) -> LaneMask {
        let Some(inst) = site.inst() else { return 0 };
        if site.terminator().is_some_and(|term| matches!(term, Terminator::Call(_) | Terminator::Ret(_))) {
            // Values that a call passes are copied; values that the machine's own functions read are used.
            if let (Some(builtin), AccessKind::Load) = (Self::builtin(site), access.kind) {
                self.loads(site, access);
                if let Some(loaded) = self.loaded.take() {
                    let what = match builtin {
                        Builtin::Vprintf => "what `vprintf` prints",
                        Builtin::Malloc => "the size for `malloc`",
                        Builtin::Free => "what `free` frees",
                        Builtin::AssertFail => "the message of an assertion",
                    };
                    self.report(site, loaded.lanes, what, loaded.origin);
                    for lane in lanes_of(loaded.lanes) {
                        let start = access.generic.0[lane];
                        self.shadow.define(start..start + u64::from(access.bytes));
                    }
                }
            }
            return 0;
        }
        let operand = usize::from(inst.op == Op::CpAsync && access.space == Space::Global);
        if let Some(src @ (Src::Reg(_) | Src::Addr(_))) = inst.srcs.get(operand)
            && !matches!(inst.op, Op::Tex | Op::Tld4 | Op::Suld | Op::Sust | Op::Sured)
        {
            self.decides(site, &src.clone(), access.lanes, "an address");
        }
        if access.space == Space::Tex {
            return 0;
        }
        let of_barrier = matches!(
            inst.op,
            Op::MbarrierArrive
                | Op::MbarrierArriveDrop
                | Op::MbarrierTestWait
                | Op::MbarrierInval
                | Op::CpAsyncMbarrierArrive
        );
        match access.kind {
            _ if of_barrier => self.uses_barrier(site, access),
            AccessKind::Load => self.loads(site, access),
            AccessKind::Store => self.stores(site, access, inst),
            AccessKind::Atomic => self.atomic(site, access, inst),
        }
        0
    }

    fn barrier(&mut self, site: &Site, event: &BarrierEvent<'_>) {
        if let (BarrierEvent::Released { lanes, .. }, Some(inst)) = (event, site.inst()) {
            self.define(site, inst, *lanes);
        }
    }

    fn warp_sync(&mut self, site: &Site, event: &WarpSyncEvent<'_>) {
        self.loaded = None;
        if let (WarpSyncEvent::Reached { lanes, .. }, Some(inst)) = (event, site.inst()) {
            self.synchronises(site, *lanes, inst, None);
        }
    }

    fn enters(&mut self, site: &Site, act: u32, function: u32, lanes: LaneMask, fresh: bool) {
        if fresh {
            self.frames.renew(site, act, function);
        }
        // Local variables of a function are new at each call.
        let program = &site.launch.program;
        let (Some(caller), Some(callee)) = (site.function(), program.functions.get(function as usize)) else {
            return;
        };
        let top = site.frame + u64::from(caller.frame_bytes);
        let frame = top.next_multiple_of(u64::from(callee.frame_align.max(1)));
        for lane in lanes_of(lanes) {
            let start = site.warp.generic(Space::Local, lane, frame);
            self.shadow.undefine(start..start + u64::from(callee.frame_bytes));
        }
    }

    fn moves(&mut self, site: &Site, lanes: LaneMask, moved: &ArgumentMove) {
        let generic = |offset: u64, lane: usize| site.warp.generic(Space::Local, lane, offset);
        let function = site.place.function;
        let from: Option<Undefined> = match moved.from {
            MovePlace::Reg { act, reg } => self.frames.of(site, act, function).get(reg).cloned(),
            MovePlace::Local(_) | MovePlace::Param(_) | MovePlace::Immediate => None,
        };
        for lane in lanes_of(lanes) {
            match (moved.from, moved.to) {
                (MovePlace::Local(from), MovePlace::Local(to)) => {
                    self.shadow.copy(generic(from, lane), generic(to, lane), moved.bytes);
                }
                (_, MovePlace::Local(to)) => {
                    let bytes = moved.bytes.min(8) as u32;
                    let bits = from.as_ref().map_or(0, |known| known.of(lane)) & width(8 * bytes);
                    self.shadow.set(generic(to, lane), bytes, bits);
                    if moved.bytes > 8 {
                        self.shadow.define(generic(to + 8, lane)..generic(to + moved.bytes, lane));
                    }
                }
                (_, MovePlace::Reg { .. } | MovePlace::Param(_) | MovePlace::Immediate) => {}
            }
        }
        if let MovePlace::Reg { act, reg } = moved.to {
            let bits = Lane(std::array::from_fn(|lane| match (moved.from, &from) {
                (MovePlace::Local(at), _) if lanes >> lane & 1 != 0 => {
                    self.shadow.bits(generic(at, lane), moved.bytes.min(8) as u32)
                }
                (_, Some(known)) => known.of(lane),
                (_, None) => 0,
            }));
            let origin = from.map_or(0, |known| known.origin);
            if let Some(old) = self.frames.of(site, act, function).get_mut(reg) {
                old.set(lanes, |lane| bits.0[lane], all_of(reg), origin);
            }
        }
    }

    fn allocated(&mut self, what: &Allocated<'_>) {
        let range = what.address..what.address.saturating_add(what.bytes);
        match what.class {
            Class::Global | Class::Malloc if !what.common => self.shadow.undefine(range),
            Class::Const | Class::Param => self.shadow.define(range),
            Class::Global | Class::Malloc | Class::Texture => {
                self.untracked.insert(range.start, range.end);
                self.shadow.define(range);
            }
        }
    }

    fn freed(&mut self, address: u64, bytes: u64) {
        self.untracked.remove(&address);
        self.shadow.define(address..address.saturating_add(bytes));
    }

    fn host(&mut self, access: &HostAccess<'_>) {
        match access.kind {
            HostAccessKind::Write => {
                let end = access.address + access.bytes;
                self.shadow.define(access.address..end);
                if !self.stored.is_empty() {
                    let cells = access.address / 4..end.div_ceil(4);
                    self.stored.retain(|cell, _| !cells.contains(cell));
                }
            }
            HostAccessKind::Read => self.leaves(access),
            HostAccessKind::Copy { to } if access.exclusive && !self.is_untracked(to) => {
                self.shadow.copy(access.address, to, access.bytes);
            }
            HostAccessKind::Copy { to } => self.shadow.define(to..to.saturating_add(access.bytes)),
        }
    }
}
