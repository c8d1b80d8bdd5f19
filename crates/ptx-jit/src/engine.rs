//! Compiled kernels, and how the machine runs them.
//!
//! Invariants: compiled code runs only for the kernel, the memory and the CTA shape that it was made for, and
//! the kernel can be launched with that shape ([`Kernel::check_block`]). The pointers in its [`Frame`] are
//! made from one exclusive borrow of the warp and do not outlive the call.

use crate::codegen::load_store::space_of;
use crate::effects;
use crate::frame::{Entry, Frame, Reason, Window};
use crate::llvm::{Code, Error};
use crate::object::Made;
use crate::reduction_buffer;
use crate::tuning::{
    COARSE_WARP_MAX_DECLINED_CTAS, COARSE_WARP_TRIAL_CTAS, GROUPS_MIN_CTAS_PER_EXIT, MOST_GROUPS,
    OPS_PER_FUEL, SCALAR_FUEL,
};
use crate::wir::LaunchShape;
use ptx::analysis::calls::reads_clocks;
use ptx_exec::lanes::{LANES, Lane, LaneMask, Registers};
use ptx_exec::launch::Kernel;
use ptx_exec::mem::{View, announce, announced_within};
use ptx_exec::native::{
    BarrierState, CoarseCode, CtaCall, CtaCode, CtaStop, ExitPoint, Line, Native, NativeCache, NativeCall,
    NativeStop, Reach, TidTable, Windows,
};
use ptx_exec::stamps::{Clock, StampKind};
use ptx_exec::warp::GridShape;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

mod compile;
mod flush_reductions;

pub use compile::{Listing, listing};
pub(crate) use compile::{Part, make};
use flush_reductions::{settle, settle_or_leave};

/// A kernel compiled for one shape of CTA.
pub struct Compiled {
    /// Whether a CTA may wait for other CTAs.
    may_wait: bool,
    /// The code that was made first, if this is the rest of it: it executes coarse warps. Beside scalar code,
    /// all other code.
    first: Option<Arc<Compiled>>,
    /// The entry for single warps, if there is one.
    entry: Option<Entry>,
    /// The entry for coarse warps, if there is one.
    team: Option<Entry>,
    /// Thread indices of each coarse warp: x of all lanes, then y, then z.
    team_tids: Vec<u32>,
    /// The number of CTAs that ran in coarse warps, and of those that left them by a side exit.
    parts: [AtomicU32; 2],
    /// How many CTAs coarse warps have declined since they executed one.
    declined: AtomicU32,
    function: u32,
    /// Whether the code updates the clocks of warps itself, because a launch may read them.
    clocks: bool,
    /// For each PTX block, the number of its entry.
    entries: Vec<Option<u32>>,
    /// For each PTX block, whether a loop with that header only waits.
    waits: Vec<bool>,
    /// For each PTX block, whether a loop with that header reads what other threads write.
    watches: Vec<bool>,
    /// The number of instructions on the longest path through the function, with each loop counted once.
    longest: u64,
    /// The cost of a CTA without loops, in units of fuel.
    price: u32,
    made: Arc<Made>,
    /// The side exits of single warps: those of the first code, if this is scalar code, then its own.
    exits: Vec<ExitPoint>,
    /// Thread indices of each warp.
    tids: Vec<TidTable>,
    /// Keeps the code in memory.
    _code: Code,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiled").field("function", &self.function).finish_non_exhaustive()
    }
}

/// The context that native code passes back to the host when it calls.
enum User<'a, 'b> {
    /// Of a single warp.
    Warp(&'a mut NativeCall<'b>, *mut Frame),
    /// Of a CTA.
    Cta(&'a mut CtaCall<'b>, *mut Frame),
}

impl User<'_, '_> {
    fn frame(&self) -> *mut Frame {
        match self {
            User::Warp(_, frame) | User::Cta(_, frame) => *frame,
        }
    }
}

/// The addresses of the symbols that the code refers to.
pub(crate) fn resolve(made: &Made, kernel: &Kernel) -> Result<Vec<(String, usize)>, Error> {
    let layout = kernel.module().layout(kernel.id());
    let number = |name: &str| name[1..].parse::<usize>().ok();
    let find = |name: &str| match name {
        "step" => Some(step as *const () as usize),
        "reach" => Some(reach as *const () as usize),
        "follow" => Some(follow as *const () as usize),
        "perform" => Some(perform as *const () as usize),
        _ if name.starts_with('v') => layout.variables.get(number(name)?).map(|address| *address as usize),
        _ if name.starts_with('f') => layout.functions.get(number(name)?).map(|address| *address as usize),
        _ => None,
    };
    let resolved = made.externals.iter().map(|name| {
        let address = find(name).ok_or_else(|| Error::new(format!("code names `{name}`, which is nothing")));
        Ok((name.clone(), address?))
    });
    resolved.collect()
}

/// Places code that was compiled for this kernel in memory. `first`: if it is the rest of the code, the code
/// that was made first.
///
/// # Errors
/// The host has no memory for it.
pub(crate) fn place(
    made: Arc<Made>,
    symbols: &[(String, usize)],
    kernel: &Kernel,
    ntid: [u32; 3],
    first: Option<Arc<Compiled>>,
) -> Result<Arc<Compiled>, Error> {
    let code = Code::place(&made.object, symbols)?;
    let alone = !made.handed.entries.is_empty() || made.scalar;
    let address = if alone { Some(code.lookup("kernel")?) } else { None };
    // SAFETY: the address is that of the function `kernel`, emitted by `codegen::emit` with this signature;
    // `code` keeps it in memory.
    let entry = address.map(|address| unsafe { std::mem::transmute::<usize, Entry>(address) });
    let team = match (made.team.warps, made.team.ctas) {
        (0 | 1, _) | (_, 0) => None,
        _ => {
            let address = code.lookup("team")?;
            // SAFETY: as above, of the function `team`.
            Some(unsafe { std::mem::transmute::<usize, Entry>(address) })
        }
    };
    let function = kernel.function();
    let mut entries = vec![None; function.blocks.len()];
    for (at, entry) in (0..).zip(&made.handed.entries) {
        if let Some(place) = entries.get_mut(entry.block as usize) {
            *place = Some(at);
        }
    }
    let watches = effects::watching(function);
    // A called function may do anything.
    let calls = function.blocks.iter().any(|block| matches!(block.term, ptx::ir::Terminator::Call(_)));
    let before = first.iter().filter(|_| made.scalar).flat_map(|first| &first.exits);
    let exits = before.chain(&made.exits).cloned().collect();
    let longest = function.blocks.iter().map(|block| block.insts.len() as u64 + 1).sum();
    Ok(Arc::new(Compiled {
        may_wait: watches.contains(&true) || calls,
        first,
        entry,
        team,
        team_tids: team_tids(ntid, &made.team),
        parts: Default::default(),
        declined: AtomicU32::new(0),
        function: kernel.id().0,
        clocks: reads_clocks(kernel.module().program(), kernel.id()),
        entries,
        waits: effects::waits(function),
        watches,
        longest,
        price: (longest / OPS_PER_FUEL + 1)
            .saturating_mul(u64::from(ntid.iter().product::<u32>().div_ceil(LANES as u32)))
            .min(1 << 16) as u32,
        exits,
        made,
        tids: tids(ntid),
        _code: code,
    }))
}

/// Thread indices of each coarse warp of the CTAs that execute as one: x of all lanes, then y, then z.
fn team_tids(ntid: [u32; 3], &CoarseCode { warps, ctas, .. }: &CoarseCode) -> Vec<u32> {
    if warps < 2 {
        return Vec::new();
    }
    let shape = LaunchShape { ntid, chunk: 0, team: warps, ctas, rows: false };
    let lanes = shape.lanes();
    let team =
        |first: u32| (0..3).flat_map(move |axis| (first..first + lanes).map(move |t| shape.tid(t)[axis]));
    (0..shape.threads()).step_by(lanes as usize).flat_map(team).collect()
}

/// Thread indices of each warp of a CTA. The indices of lanes behind the last thread continue to grow.
fn tids([nx, ny, nz]: [u32; 3]) -> Vec<TidTable> {
    let tid = |thread: u32| [thread % nx, thread / nx % ny, thread / nx / ny];
    let warp = |warp: u32| {
        [0, 1, 2].map(|axis| Lane(std::array::from_fn(|lane| tid(warp * LANES as u32 + lane as u32)[axis])))
    };
    (0..(nx * ny * nz).div_ceil(LANES as u32)).map(warp).collect()
}

impl Compiled {
    /// Instructions without native code, by name, with the number of places in the code.
    pub fn fallbacks(&self) -> &BTreeMap<String, u32> {
        &self.made.fallbacks
    }

    /// Whether it has no code of single warps yet, which [`Compiler::compile_rest`](crate::Compiler) makes.
    pub fn is_partial(&self) -> bool {
        self.made.partial
    }

    /// Whether it is scalar code, which executes one thread at a time.
    pub fn is_scalar(&self) -> bool {
        self.made.scalar
    }

    /// The number of LLVM instructions that were compiled without optimisation, because there are many;
    /// [`Compiler::compile_again`](crate::Compiler) makes faster code of them.
    pub fn unoptimised(&self) -> u32 {
        self.made.unoptimised
    }

    /// The number of cached bounds that it uses.
    pub(crate) fn windows(&self) -> u32 {
        self.made.windows
    }

    /// The code that was made first, if this is the rest of it.
    pub(crate) fn first(&self) -> Option<&Arc<Compiled>> {
        self.first.as_ref()
    }

    /// Whether it is the rest of that code.
    pub(crate) fn is_rest_of(&self, first: &Arc<Compiled>) -> bool {
        self.first.as_ref().is_some_and(|of| Arc::ptr_eq(of, first))
    }
}

impl Native for Compiled {
    fn stack(&self) -> usize {
        (self.made.stack as usize).max(self.first.as_ref().map_or(0, |first| first.stack()))
    }

    fn may_wait(&self) -> bool {
        self.may_wait
    }

    fn function(&self) -> u32 {
        self.function
    }

    fn enters(&self, block: u32) -> bool {
        if let Some(warps) = self.warps() {
            return warps.enters(block);
        }
        self.entries.get(block as usize).is_some_and(Option::is_some)
    }

    fn most_steps(&self, turns: i64) -> u64 {
        (turns.max(0) as u64 + 2).saturating_mul(self.longest)
    }

    fn watches(&self, header: u32) -> bool {
        self.watches.get(header as usize).copied().unwrap_or(false)
    }

    fn waits(&self, header: u32) -> bool {
        self.waits.get(header as usize).copied().unwrap_or(false)
    }

    fn reads_clocks(&self) -> bool {
        self.clocks
    }

    fn run(&self, call: &mut NativeCall<'_>) -> NativeStop {
        if let Some(warps) = self.warps() {
            return warps.run(call);
        }
        self.ready(call.cache, call.mem.memory().frees());
        if !self.take(call.block, call.regs, (call.mask, call.trusted), call.cache) {
            call.cache.exits.refused(call.block);
            return NativeStop::Declined;
        }
        let Some(entry) = self.entry else { return NativeStop::Declined };
        let (windows, beside) = (call.mem.windows(), beside(call.mem));
        let grid = &call.warp.grid;
        let slots = (self.made.cta.bytes as usize).div_ceil(size_of::<Line>());
        if call.cache.slots.len() < slots {
            call.cache.slots.resize(slots, Line::default());
        }
        let kept = call.cache.slots.as_mut_ptr().cast();
        let mut frame = Frame {
            carry: &mut call.warp.carry,
            clock: &mut call.warp.clock,
            tid: call.warp.tid.as_ptr().cast(),
            offset: u64::from(call.frame),
            turns: call.fuel,
            mask: call.mask,
            live: call.warp.live,
            block: call.block,
            kept,
            ..frame(grid, (windows, beside), call.regs, call.cache)
        };
        frame.warp[0] = call.warp.warpid;
        frame.warp[2] = call.warp.smid;
        frame.ctaid = call.warp.ctaid;
        let mut user = User::Warp(call, &raw mut frame);
        frame.user = (&raw mut user).cast::<c_void>();
        // SAFETY: `entry` is code that was made for this kernel. Every pointer in the frame is valid for the
        // call, and the memory behind it is as large as the code expects: the registers of the function,
        // cached bounds for each site, and the hand-over area.
        let code = unsafe { entry(&raw mut frame) };
        settle(&mut frame);
        let User::Warp(call, _) = user else { return NativeStop::Declined };
        (call.mask, call.warp.live, call.fuel) = (frame.mask, frame.live, frame.turns);
        (call.steps, call.lane_steps) = counted(&frame);
        if !self.clocks {
            call.warp.clock += call.steps;
        }
        self.leave(frame.left, call.regs, frame.mask, call.cache);
        self.stop(code, call.cache)
    }

    fn cta(&self) -> &CtaCode {
        &self.made.cta
    }

    fn coarse(&self) -> Option<&CoarseCode> {
        if self.made.scalar {
            return None;
        }
        if let Some(first) = &self.first {
            return first.coarse();
        }
        self.team?;
        if self.declined.load(Ordering::Relaxed) >= COARSE_WARP_MAX_DECLINED_CTAS {
            // Single warps execute the CTAs that the thread has taken; then coarse warps are tried again.
            self.declined.store(COARSE_WARP_MAX_DECLINED_CTAS - COARSE_WARP_TRIAL_CTAS, Ordering::Relaxed);
            return None;
        }
        let [ran, left] = self.parts.each_ref().map(|count| count.load(Ordering::Relaxed));
        (left < COARSE_WARP_TRIAL_CTAS || left < ran / 4).then_some(&self.made.team)
    }

    fn run_coarse(&self, call: &mut CtaCall<'_>) -> CtaStop {
        if let Some(first) = &self.first {
            return first.run_coarse(call);
        }
        let Some(entry) = self.team else { return CtaStop::BarrierMismatch };
        let frees = call.view().memory().frees();
        self.ready(call.cache, frees);
        let (windows, beside) = (call.view().windows(), beside(call.view()));
        let coarse = &self.made.team;
        let CoarseCode { warps, ctas, cta, .. } = coarse;
        let (of_group, groups) = (self.tids.len() * *ctas as usize / *warps as usize, call.groups());
        let teams = of_group * groups as usize;
        let areas = if coarse.shares_save_area() { 1 } else { teams };
        if call.slots.len() < teams || call.kept.len() * 64 < areas * cta.bytes as usize {
            return CtaStop::BarrierMismatch;
        }
        let mut frame = Frame {
            slots: call.slots.as_mut_ptr(),
            tids: self.team_tids.as_ptr().cast(),
            keeps: call.kept.as_mut_ptr().cast(),
            keep_bytes: if coarse.shares_save_area() { 0 } else { cta.bytes.into() },
            price: self.price.saturating_mul(call.together()),
            warps: teams as u32,
            row: call.warp / groups,
            group: call.warp % groups,
            groups,
            round: call.round,
            turns: call.fuel,
            ..frame(call.grid, (windows, beside), call.regs, call.cache)
        };
        frame.warp[0] = call.warp;
        frame.warp[2] = call.smid;
        frame.ctaid = call.ctaid;
        frame.ctaid[0] += frame.group * *ctas;
        let mut user = User::Cta(call, &raw mut frame);
        frame.user = (&raw mut user).cast::<c_void>();
        // SAFETY: as in `run`; there are a slot, thread indices and barrier slots for each coarse warp that
        // the code counts: the host passes on at most as many groups as there are slots for.
        let code = unsafe { entry(&raw mut frame) };
        settle(&mut frame);
        let User::Cta(call, _) = user else { return CtaStop::BarrierMismatch };
        call.fuel = frame.turns;
        let (steps, lane_steps) = counted(&frame);
        (call.steps, call.lane_steps) = (call.steps + steps, call.lane_steps + lane_steps);
        (call.warp, call.round) = (frame.warp[0], frame.round);
        let [ran, left] = &self.parts;
        match code as u8 {
            c if c == Reason::Finished as u8 => {
                // If no CTA has left its coarse warp, the number of CTAs that ran is not read.
                if left.load(Ordering::Relaxed) > 0 {
                    ran.fetch_add(call.together() + call.batched() as u32, Ordering::Relaxed);
                }
                if self.declined.load(Ordering::Relaxed) > 0 {
                    self.declined.store(0, Ordering::Relaxed);
                }
                CtaStop::Finished
            }
            c if c == Reason::Declined as u8 => {
                if call.batched() > 0 {
                    self.declined.store(0, Ordering::Relaxed);
                }
                self.declined.fetch_add(1, Ordering::Relaxed);
                CtaStop::Declined
            }
            c if c == Reason::Turn as u8 => CtaStop::OutOfFuel,
            c if c == Reason::Left as u8 => {
                left.fetch_add(call.groups(), Ordering::Relaxed);
                call.cache.exits.coarse((code >> 32) as u32);
                CtaStop::SideExit((code >> 32) as u32)
            }
            _ => {
                call.cache.exits.mismatch();
                CtaStop::BarrierMismatch
            }
        }
    }

    fn exits(&self) -> &[ExitPoint] {
        &self.exits
    }

    fn most_groups(&self) -> u32 {
        if let Some(first) = &self.first {
            return first.most_groups();
        }
        if !self.made.team.shares_save_area() {
            return 1;
        }
        let [ran, left] = self.parts.each_ref().map(|count| count.load(Ordering::Relaxed));
        if left <= ran / GROUPS_MIN_CTAS_PER_EXIT { MOST_GROUPS } else { 1 }
    }

    fn coarse_code(&self) -> Option<&CoarseCode> {
        match &self.first {
            Some(first) => first.coarse_code(),
            None => self.team.is_some().then_some(&self.made.team),
        }
    }

    fn lacks(&self, instruction: &str) -> bool {
        self.made.fallbacks.contains_key(instruction)
    }

    fn is_checked(&self) -> bool {
        self.made.is_checked
    }

    fn can_batch_ctas(&self) -> bool {
        self.made.fallbacks.is_empty()
    }

    fn run_cta(&self, call: &mut CtaCall<'_>) -> CtaStop {
        // A warp whose last thread was stopped is in the middle of the function.
        let started = call.slots.get(call.warp as usize).is_some_and(|slot| self.is_amid(slot.state));
        if let Some(warps) = self.warps().filter(|_| started) {
            return warps.run_cta(call);
        }
        let given = call.fuel;
        if self.made.scalar {
            call.fuel = SCALAR_FUEL;
        }
        let Some(entry) = self.entry else { return CtaStop::Warp(NativeStop::Declined) };
        let frees = call.view().memory().frees();
        self.ready(call.cache, frees);
        let (windows, beside) = (call.view().windows(), beside(call.view()));
        let warps = self.tids.len();
        if call.slots.len() != warps || call.kept.len() * 64 < warps * self.made.cta.bytes as usize {
            return CtaStop::Warp(NativeStop::Declined);
        }
        if let Some(slot) = call.slots.get(call.warp as usize)
            && !self.take(slot.state, call.regs, (slot.live, true), call.cache)
        {
            return CtaStop::Warp(NativeStop::Declined);
        }
        let mut frame = Frame {
            slots: call.slots.as_mut_ptr(),
            tids: self.tids.as_ptr(),
            keeps: call.kept.as_mut_ptr().cast(),
            price: self.price,
            warps: warps as u32,
            round: call.round,
            turns: call.fuel,
            ..frame(call.grid, (windows, beside), call.regs, call.cache)
        };
        frame.warp[0] = call.warp;
        frame.warp[2] = call.smid;
        frame.ctaid = call.ctaid;
        let mut user = User::Cta(call, &raw mut frame);
        frame.user = (&raw mut user).cast::<c_void>();
        // SAFETY: as in `run`; there are a slot, thread indices and barrier slots for each warp that the code
        // counts.
        let code = unsafe { entry(&raw mut frame) };
        settle(&mut frame);
        let User::Cta(call, _) = user else { return CtaStop::BarrierMismatch };
        (call.mask, call.live, call.fuel) = (frame.mask, frame.live, frame.turns);
        if self.made.scalar {
            call.fuel = if frame.turns > 0 { given } else { 0 };
        }
        let (steps, lane_steps) = counted(&frame);
        (call.steps, call.lane_steps) = (call.steps + steps, call.lane_steps + lane_steps);
        self.leave(frame.left, call.regs, frame.mask, call.cache);
        (call.warp, call.round) = (frame.warp[0], frame.round);
        match code as u8 {
            c if c == Reason::Finished as u8 => CtaStop::Finished,
            c if c == Reason::Apart as u8 => {
                call.cache.exits.mismatch();
                CtaStop::BarrierMismatch
            }
            _ => CtaStop::Warp(self.stop(code, call.cache)),
        }
    }
}

impl Compiled {
    /// The code of warps, if this is scalar code.
    fn warps(&self) -> Option<&Arc<Compiled>> {
        self.first.as_ref().filter(|_| self.made.scalar)
    }

    /// Whether a slot in this state is that of a warp which has started and not ended.
    fn is_amid(&self, state: u32) -> bool {
        (state as usize) < self.entries.len()
    }

    /// Resizes the cache for this code, and discards cached bounds that are out of date.
    fn ready(&self, cache: &mut NativeCache, frees: u64) {
        let sites = self.made.windows as usize;
        if cache.frees != frees || cache.bounds.len() < sites {
            cache.bounds.clear();
            cache.bounds.resize(sites, [0, 0]);
            cache.frees = frees;
            cache.spans.clear();
            cache.mixed = false;
        }
        if self.made.postpones && cache.reductions.is_empty() {
            cache.reductions.resize(reduction_buffer::ENTRIES as usize, [0, 0]);
        }
        if self.made.updates {
            announce();
        }
        cache.pending.clear();
        let lines = self.made.handed.lines as usize;
        if cache.room.len() < lines {
            cache.room.resize(lines, Line::default());
        }
    }

    /// Writes the registers that an entry expects into the hand-over area. Returns whether the code can be
    /// entered there: the registers of these lanes must have the forms that the entry expects. A number
    /// beyond the PTX blocks is an entry that expects nothing.
    fn take(
        &self,
        block: u32,
        regs: &Registers,
        (mask, trusted): (LaneMask, bool),
        cache: &mut NativeCache,
    ) -> bool {
        let Some(entry) = self.entries.get(block as usize) else { return true };
        let entry = entry.and_then(|at| self.made.handed.entries.get(at as usize));
        entry.is_some_and(|entry| entry.take(regs, mask, trusted, &mut cache.room))
    }

    /// The stop of a warp that native code's return value stands for. Counts it if it is a side exit.
    fn stop(&self, code: u64, cache: &mut NativeCache) -> NativeStop {
        let (block, number) = ((code >> 8 & 0xff_ffff) as u32, (code >> 32) as u32);
        let stop = match code as u8 {
            c if c == Reason::Finished as u8 => NativeStop::Finished,
            c if c == Reason::Declined as u8 => NativeStop::Declined,
            c if c == Reason::Exit as u8 => match self.made.exits.get(number as usize) {
                Some(exit) => exit.place.stop(),
                None => NativeStop::Declined,
            },
            _ => NativeStop::Fault { block, index: number },
        };
        let before = self.exits.len() - self.made.exits.len();
        cache.exits.warp(before as u32 + number, &stop, !cache.pending.is_empty());
        stop
    }

    /// Completes the registers of the running warp from the hand-over area.
    fn leave(&self, left: u32, regs: &mut Registers, mask: LaneMask, cache: &mut NativeCache) {
        let left = left.checked_sub(1).and_then(|at| self.made.handed.exits.get(at as usize));
        if let Some(left) = left {
            left.leave(&cache.room, regs, mask, &mut cache.pending);
        }
    }
}

/// Where the shadow and the stamps of guest memory are.
struct Beside {
    /// The distance to the shadow; 0 if there is none.
    shadow: u64,
    /// The clock of the stamps; null if there are none.
    clock: *const Clock,
    /// The distances to them.
    stamps: [u64; 3],
}

fn beside(view: &View) -> Beside {
    let stamps = view.memory().stamps();
    let kinds = [StampKind::Write, StampKind::Read, StampKind::Update];
    Beside {
        shadow: view.memory().shadow().map_or(0, |shadow| shadow.distance()),
        clock: stamps.map_or(std::ptr::null(), |stamps| std::ptr::from_ref(stamps.clock())),
        stamps: stamps.map_or([0; 3], |stamps| kinds.map(|kind| stamps.distance(kind))),
    }
}

/// A frame without the fields of the warp.
fn frame(
    grid: &GridShape,
    (windows, beside): (Windows, Beside),
    regs: &mut Registers,
    cache: &mut NativeCache,
) -> Frame {
    use std::ptr::{null, null_mut};
    Frame {
        r16: regs.r16.as_mut_ptr().cast(),
        r32: regs.r32.as_mut_ptr().cast(),
        r64: regs.r64.as_mut_ptr().cast(),
        pred: regs.pred.as_mut_ptr(),
        tid: null(),
        carry: null_mut(),
        clock: null_mut(),
        windows: cache.bounds.as_mut_ptr().cast::<Window>(),
        room: cache.room.as_mut_ptr().cast(),
        user: null_mut(),
        shared: [windows.shared.0, windows.shared.1],
        shadow: beside.shadow,
        interval: beside.clock,
        stamps: beside.stamps,
        params: windows.params.0,
        local: [windows.local.0, windows.local.1, windows.local.2],
        offset: 0,
        gridid: grid.gridid,
        began: grid.began,
        buffer: match cache.reductions.as_mut_slice() {
            [] => null_mut(),
            entries => entries.as_mut_ptr(),
        },
        held: 0,
        left_behind: 0,
        full: if cache.mixed { 0 } else { reduction_buffer::FULL },
        turns: 0,
        slots: null_mut(),
        slot: null_mut(),
        tids: null(),
        keeps: null_mut(),
        keep_bytes: 0,
        kept: null_mut(),
        price: 0,
        warps: 0,
        row: 0,
        group: 0,
        groups: 1,
        round: BarrierState::default(),
        full_steps: 0,
        masked_steps: 0,
        lane_steps: 0,
        mask: 0,
        live: 0,
        block: 0,
        left: 0,
        warp: [0, grid.warps(), 0, grid.nsmid],
        ctaid: [0; 3],
        nctaid: grid.nctaid,
        smem: [grid.total_shared, grid.dynamic_shared],
    }
}

/// The instructions that native code counted: executed by warps, and by lanes.
fn counted(frame: &Frame) -> (u64, u64) {
    (frame.full_steps + frame.masked_steps, frame.full_steps * LANES as u64 + frame.lane_steps)
}

/// Executes an instruction for native code by the interpreter's step.
extern "C" fn step(user: *mut c_void, block: u32, index: u32, mask: u32) -> u32 {
    // SAFETY: `user` is the `User` in the frame of the running call; nothing else uses it meanwhile.
    let user = unsafe { &mut *user.cast::<User<'_, '_>>() };
    // SAFETY: it is the frame of the running call, which native code does not use while it calls the host.
    let frame = unsafe { &mut *user.frame() };
    settle(frame);
    // It may be an atomic operation.
    u32::from(announced_within(|| match user {
        User::Warp(call, _) => call.step(block, index, mask),
        User::Cta(call, _) => call.step(frame.warp[0], block, index, mask),
    }))
}

/// Performs the postponed reductions, or leaves them to another thread.
extern "C" fn perform(user: *mut c_void) {
    // SAFETY: as in `step`.
    let user = unsafe { &mut *user.cast::<User<'_, '_>>() };
    // SAFETY: as in `step`.
    let frame = unsafe { &mut *user.frame() };
    let cache = match user {
        User::Warp(call, _) => &mut *call.cache,
        User::Cta(call, _) => call.memory().1,
    };
    settle_or_leave(frame, &mut cache.reductions);
}

/// Starts the next CTA of the batch, if there is one and enough fuel is left.
extern "C" fn follow(user: *mut c_void) -> u32 {
    // SAFETY: as in `step`.
    let user = unsafe { &mut *user.cast::<User<'_, '_>>() };
    let User::Cta(call, frame) = user else { return 0 };
    // SAFETY: as in `step`; nothing else in the host refers to it while native code runs.
    let frame = unsafe { &mut **frame };
    // The next CTA must be able to finish with the fuel that the last one used: if fuel ran out within a CTA,
    // divergent lanes would need warp frames.
    let used = call.fuel - frame.turns;
    frame.turns -= i64::from(frame.price);
    if frame.turns <= used.saturating_mul(2) || !call.next_cta() {
        return 0;
    }
    call.fuel = frame.turns;
    frame.ctaid = call.ctaid;
    (frame.warp[0], frame.round) = (0, BarrierState::default());
    let groups = call.groups();
    if groups != frame.groups {
        (frame.warps, frame.price) =
            (frame.warps / frame.groups * groups, frame.price / frame.groups * groups);
        frame.groups = groups;
    }
    (frame.row, frame.group) = (0, 0);
    1
}

/// Renews the cached bounds of a site from the allocation around an address. `how`: the state space; whether
/// the access writes; whether it is a postponed reduction; the allocation that it must stay in, from 1 on.
extern "C" fn reach(user: *mut c_void, window: u32, how: u32, address: u64, span: u32) {
    // SAFETY: as in `step`.
    let user = unsafe { &mut *user.cast::<User<'_, '_>>() };
    // SAFETY: as in `step`.
    let frame = unsafe { &mut *user.frame() };
    settle(frame);
    let (view, cache) = match user {
        User::Warp(call, _) => (&mut *call.mem, &mut *call.cache),
        User::Cta(call, _) => call.memory(),
    };
    let mut found = view.reach(space_of(how & 0xff), address, how >> 8 & 1 != 0);
    if let Some(number) = (how >> 16).checked_sub(1) {
        // An allocation that the launch does not know of allows nothing.
        let object = cache.allocations.get(number as usize).copied().unwrap_or(Some((0, 0)));
        found = found.and_then(|found| object.map_or(Some(found), |object| common(found, object, address)));
    }
    let Some(slot) = cache.bounds.get_mut(window as usize) else { return };
    if let Some((start, bytes)) = found
        && bytes >= u64::from(span)
    {
        *slot = [start.wrapping_neg(), bytes - u64::from(span) + 1];
        let all = view.aliases((start, bytes));
        if !cache.reductions.is_empty() && cache.note(window, all, how >> 9 & 1 != 0) {
            frame.full = 0;
        }
    }
}

/// The bytes that two ranges share around an address.
fn common(a: Reach, b: Reach, address: u64) -> Option<Reach> {
    let start = a.0.max(b.0);
    let end = a.0.saturating_add(a.1).min(b.0.saturating_add(b.1));
    (start..end).contains(&address).then(|| (start, end - start))
}

const _: () = assert!(size_of::<Window>() == size_of::<[u64; 2]>());
