//! Compiled kernels, and how the machine runs them.
//!
//! Invariants: compiled code runs only for the kernel, the memory and the CTA shape that it was made for, which is one that the kernel can
//! be launched with ([`Kernel::check_block`]); the pointers in its [`Frame`] are made from one exclusive borrow of the warp and do not outlive
//! the call.

use crate::cache::Made;
use crate::coarsen::{self, Teams};
use crate::codegen::load_store::space_of;
use crate::codegen::{self, Emitted, Input};
use crate::effects;
use crate::frame::{Entry, Frame, Reason, Window};
use crate::llvm::{Code, Error, Object, Session, Working, is_ending};
use crate::pipeline;
use crate::reduction_buffer;
use crate::tuning::{COARSE_WARP_TRIAL_CTAS, MAX_STACK_BYTES, OPS_PER_FUEL};
use crate::wir::LaunchShape;
use ptx::analysis::calls::reads_clocks;
use ptx_exec::lanes::{LANES, Lane, LaneMask, Registers};
use ptx_exec::launch::Kernel;
use ptx_exec::native::{
    CoarseCode, CtaCall, CtaCode, CtaStop, Line, Native, NativeCache, NativeCall, NativeStop, TidTable,
    Windows,
};
use ptx_exec::warp::GridShape;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

mod flush_reductions;

use flush_reductions::settle;

/// A kernel compiled for one shape of CTA.
pub struct Compiled {
    /// Whether a CTA may wait for others.
    may_wait: bool,
    /// How warps by themselves are entered, if they are.
    entry: Option<Entry>,
    /// How teams are entered, if there are any.
    team: Option<Entry>,
    /// Thread numbers by team: lanes of x, of y, of z.
    team_tids: Vec<u32>,
    /// CTAs that ran in teams, and those that fell apart.
    parts: [AtomicU32; 2],
    function: u32,
    /// Whether the code moves clocks of warps itself: a launch may read them.
    clocks: bool,
    /// By block: how it can be entered there.
    entries: Vec<Option<u32>>,
    /// By block: whether a loop with that header only waits.
    waits: Vec<bool>,
    /// By block: whether a loop with that header looks at what others write.
    watches: Vec<bool>,
    /// Instructions on the longest way through the function, loops once.
    longest: u64,
    /// What a CTA without loops costs, in turns of loops.
    price: u32,
    made: Arc<Made>,
    /// Thread numbers by warp.
    tids: Vec<TidTable>,
    /// Keeps the code in memory.
    _code: Code,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiled").field("function", &self.function).finish_non_exhaustive()
    }
}

/// What of a compilation a user may want to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// LLVM's intermediate language.
    Llvm,
    /// Assembly of the machine.
    Asm,
}

/// The caller as native code hands it back.
enum User<'a, 'b> {
    /// Of a warp.
    Warp(&'a mut NativeCall<'b>, *mut Frame),
    /// Of a CTA, and what native code says of it.
    Cta(&'a mut CtaCall<'b>, *mut Frame),
}

impl User<'_, '_> {
    fn frame(&self) -> *mut Frame {
        match self {
            User::Warp(_, frame) | User::Cta(_, frame) => *frame,
        }
    }
}

/// Makes code of a kernel for CTAs of that shape.
///
/// # Errors
/// Says why it cannot be compiled; the interpreter can still run it.
pub(crate) fn make(session: &Session, kernel: &Kernel, ntid: [u32; 3], teams: Teams) -> Result<Made, Error> {
    let _working = Working::begin()?;
    let Translated { module, emitted, team } = translate(session, kernel, ntid, teams)?;
    let Emitted { windows, fallbacks, externals, cta, handed, postpones, .. } = emitted;
    let Object { bytes: object, stack } = session.object(&module)?;
    if stack > MAX_STACK_BYTES {
        let name = &kernel.function().name;
        return Err(Error::new(format!("the code of `{name}` takes {} MiB of stack", stack >> 20)));
    }
    Ok(Made { object, stack, externals, windows, fallbacks, cta, handed, team, postpones })
}

/// The addresses of what code names.
pub(crate) fn resolve(made: &Made, kernel: &Kernel) -> Result<Vec<(String, usize)>, Error> {
    let layout = kernel.module().layout(kernel.id());
    let number = |name: &str| name[1..].parse::<usize>().ok();
    let find = |name: &str| match name {
        "step" => Some(step as *const () as usize),
        "reach" => Some(reach as *const () as usize),
        "follow" => Some(follow as *const () as usize),
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

/// Places code that was made for this kernel.
///
/// # Errors
/// The machine has no place for it.
pub(crate) fn place(
    made: Arc<Made>,
    symbols: &[(String, usize)],
    kernel: &Kernel,
    ntid: [u32; 3],
) -> Result<Arc<Compiled>, Error> {
    let code = Code::place(&made.object, symbols)?;
    let alone = !made.handed.entries.is_empty();
    let address = if alone { Some(code.lookup("kernel")?) } else { None };
    // SAFETY: the address is that of the function `kernel`, emitted by `codegen::emit` with this signature; `code` keeps it in memory.
    let entry = address.map(|address| unsafe { std::mem::transmute::<usize, Entry>(address) });
    let team = match made.team.warps {
        0 | 1 => None,
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
    // What is called may do anything.
    let calls = function.blocks.iter().any(|block| matches!(block.term, ptx::ir::Terminator::Call(_)));
    let longest = function.blocks.iter().map(|block| block.insts.len() as u64 + 1).sum();
    Ok(Arc::new(Compiled {
        may_wait: watches.contains(&true) || calls,
        entry,
        team,
        team_tids: team_tids(ntid, made.team.warps),
        parts: Default::default(),
        function: kernel.id().0,
        clocks: reads_clocks(kernel.module().program(), kernel.id()),
        entries,
        waits: effects::waits(function),
        watches,
        longest,
        price: (longest / OPS_PER_FUEL + 1)
            .saturating_mul(u64::from(ntid.iter().product::<u32>().div_ceil(LANES as u32)))
            .min(1 << 16) as u32,
        made,
        tids: tids(ntid),
        _code: code,
    }))
}

/// The code that a kernel is compiled to, as text.
///
/// # Errors
/// Says why it cannot be compiled.
pub fn listing(
    session: &Session,
    kernel: &Kernel,
    ntid: [u32; 3],
    teams: Teams,
    what: Listing,
) -> Result<String, Error> {
    kernel.check_block(ntid).map_err(|error| Error::new(error.to_string()))?;
    let Translated { module, .. } = translate(session, kernel, ntid, teams)?;
    match what {
        Listing::Llvm => {
            module.verify().map_err(|error| Error::new(format!("ptxvm bug: {error}")))?;
            Ok(module.emit_ir())
        }
        Listing::Asm => session.emit_asm(&module),
    }
}

/// What a kernel becomes before there is an object.
struct Translated {
    module: crate::llvm::Module,
    emitted: Emitted,
    team: CoarseCode,
}

fn translate(session: &Session, kernel: &Kernel, ntid: [u32; 3], teams: Teams) -> Result<Translated, Error> {
    let function = kernel.function();
    let shape = LaunchShape { ntid, chunk: session.target().level().lanes(), team: 1 };
    let Some(func) = pipeline::wir(function, shape, &effects::NativeEffects) else {
        return Err(Error::new(format!("`{}` is too large to be compiled", function.name)));
    };
    let layout = kernel.module().layout(kernel.id());
    let program = kernel.module().program();
    // Native code of a team counts instructions for all of its warps together, not for each.
    let clocks = reads_clocks(program, kernel.id());
    let teams = if clocks { Teams::Never } else { teams };
    let job = Input {
        function,
        layout: &layout,
        program,
        func: &func,
        shape,
        flush: false,
        target: session.target(),
        windows: 0,
        clocks,
    };
    let mut module = session.module(&function.name);
    let sizes = coarsen::sizes(teams, function, program, &func, shape, session.target().level());
    let (mut size, mut together, mut stays) = (sizes.first, None, false);
    while size > 1 && together.is_none() {
        let shape = LaunchShape { team: size, ..shape };
        let func = pipeline::wir(function, shape, &effects::NativeEffects);
        let Some(func) = func.filter(|func| coarsen::meets(func, function)) else { break };
        if !coarsen::is_small(teams, &func, function, shape) {
            size = sizes.smaller(size);
            continue;
        }
        let emitted = codegen::emit(&module, "team", Input { func: &func, shape, ..job });
        if emitted.unfit {
            module = session.module(&function.name);
            if size == sizes.within {
                break;
            }
            size = sizes.smaller(size);
            continue;
        }
        if sizes.apart && size <= sizes.within && emitted.runs == 0 {
            module = session.module(&function.name);
            break;
        }
        stays = coarsen::stays(&func, function);
        together = Some(emitted);
    }
    let windows = together.as_ref().map_or(0, |team| team.windows);
    let mut emitted = match &together {
        // Warps by themselves are there for what hardly ever happens, and would take long.
        Some(team) if stays && teams == Teams::Auto && !coarsen::is_quick(&func, function, shape) => {
            Emitted { windows, externals: team.externals.clone(), ..Emitted::default() }
        }
        _ => codegen::emit(&module, "kernel", Input { windows, ..job }),
    };
    let mut team = CoarseCode::default();
    if let Some(Emitted { windows, cta, leaves, postpones, .. }) = together {
        team = CoarseCode { warps: size, cta, leaves };
        // What the host is named for stands with the module.
        emitted.windows = emitted.windows.max(windows);
        emitted.postpones |= postpones;
    }
    if is_ending() {
        return Err(Error::new("the process is ending"));
    }
    Ok(Translated { module, emitted, team })
}

/// Thread numbers of each team of a CTA: of all lanes x, y, z.
fn team_tids([nx, ny, nz]: [u32; 3], warps: u32) -> Vec<u32> {
    if warps < 2 {
        return Vec::new();
    }
    let lanes = warps * LANES as u32;
    let tid = |thread: u32| [thread % nx, thread / nx % ny, thread / nx / ny];
    let team = |first: u32| (0..3).flat_map(move |axis| (first..first + lanes).map(move |t| tid(t)[axis]));
    (0..nx * ny * nz).step_by(lanes as usize).flat_map(team).collect()
}

/// Thread numbers of each warp of a CTA. Lanes beyond the last thread count on.
fn tids([nx, ny, nz]: [u32; 3]) -> Vec<TidTable> {
    let tid = |thread: u32| [thread % nx, thread / nx % ny, thread / nx / ny];
    let warp = |warp: u32| {
        [0, 1, 2].map(|axis| Lane(std::array::from_fn(|lane| tid(warp * LANES as u32 + lane as u32)[axis])))
    };
    (0..(nx * ny * nz).div_ceil(LANES as u32)).map(warp).collect()
}

impl Compiled {
    /// Instructions that have no native code, by name, and how often they stand in the code.
    pub fn fallbacks(&self) -> &BTreeMap<String, u32> {
        &self.made.fallbacks
    }
}

impl Native for Compiled {
    fn stack(&self) -> usize {
        self.made.stack as usize
    }

    fn may_wait(&self) -> bool {
        self.may_wait
    }

    fn function(&self) -> u32 {
        self.function
    }

    fn enters(&self, block: u32) -> bool {
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
        self.ready(call.cache, call.mem.memory().frees());
        if !self.take(call.block, call.regs, (call.mask, call.trusted), call.cache) {
            return NativeStop::Declined;
        }
        let Some(entry) = self.entry else { return NativeStop::Declined };
        let windows = call.mem.windows();
        let grid = &call.warp.grid;
        let mut frame = Frame {
            carry: &mut call.warp.carry,
            clock: &mut call.warp.clock,
            tid: call.warp.tid.as_ptr().cast(),
            offset: u64::from(call.frame),
            turns: call.fuel,
            mask: call.mask,
            live: call.warp.live,
            block: call.block,
            ..frame(grid, windows, call.regs, call.cache)
        };
        frame.warp[0] = call.warp.warpid;
        frame.warp[2] = call.warp.smid;
        frame.ctaid = call.warp.ctaid;
        let mut user = User::Warp(call, &raw mut frame);
        frame.user = (&raw mut user).cast::<c_void>();
        // SAFETY: `entry` is code made for this kernel; every pointer in the frame is valid for the call and as large as the code was told:
        // registers as the function counts them, a window for each site, room for all that is handed over.
        let code = unsafe { entry(&raw mut frame) };
        settle(&mut frame);
        let User::Warp(call, _) = user else { return NativeStop::Declined };
        (call.mask, call.warp.live, call.fuel) = (frame.mask, frame.live, frame.turns);
        (call.steps, call.lane_steps) = counted(&frame);
        if !self.clocks {
            call.warp.clock += call.steps;
        }
        self.leave(frame.left, call.regs, frame.mask, call.cache);
        stop(code)
    }

    fn cta(&self) -> &CtaCode {
        &self.made.cta
    }

    fn coarse(&self) -> Option<&CoarseCode> {
        self.team?;
        let [ran, left] = self.parts.each_ref().map(|count| count.load(Ordering::Relaxed));
        (left < COARSE_WARP_TRIAL_CTAS || left < ran / 4).then_some(&self.made.team)
    }

    fn run_coarse(&self, call: &mut CtaCall<'_>) -> CtaStop {
        let Some(entry) = self.team else { return CtaStop::BarrierMismatch };
        let frees = call.view().memory().frees();
        self.ready(call.cache, frees);
        let windows = call.view().windows();
        let CoarseCode { warps, cta, .. } = &self.made.team;
        let teams = self.tids.len() / *warps as usize;
        if call.slots.len() != teams || call.kept.len() * 64 < teams * cta.bytes as usize {
            return CtaStop::BarrierMismatch;
        }
        let mut frame = Frame {
            slots: call.slots.as_mut_ptr(),
            tids: self.team_tids.as_ptr().cast(),
            keeps: call.kept.as_mut_ptr().cast(),
            keep_bytes: cta.bytes.into(),
            price: self.price,
            warps: teams as u32,
            exited: call.round[0],
            waiting: call.round[1],
            turns: call.fuel,
            ..frame(call.grid, windows, call.regs, call.cache)
        };
        frame.warp[0] = call.warp;
        frame.warp[2] = call.smid;
        frame.ctaid = call.ctaid;
        let mut user = User::Cta(call, &raw mut frame);
        frame.user = (&raw mut user).cast::<c_void>();
        // SAFETY: as in `run`; there are a slot, thread numbers and room for what is kept for each of the teams that the code counts.
        let code = unsafe { entry(&raw mut frame) };
        settle(&mut frame);
        let User::Cta(call, _) = user else { return CtaStop::BarrierMismatch };
        call.fuel = frame.turns;
        let (steps, lane_steps) = counted(&frame);
        (call.steps, call.lane_steps) = (call.steps + steps, call.lane_steps + lane_steps);
        (call.warp, call.round) = (frame.warp[0], [frame.exited, frame.waiting]);
        let [ran, left] = &self.parts;
        match code as u8 {
            c if c == Reason::Finished as u8 => {
                // Where none has fallen apart, nobody asks.
                if left.load(Ordering::Relaxed) > 0 {
                    ran.fetch_add(1 + call.batched() as u32, Ordering::Relaxed);
                }
                CtaStop::Finished
            }
            c if c == Reason::Turn as u8 => CtaStop::OutOfFuel,
            c if c == Reason::Left as u8 => {
                left.fetch_add(1, Ordering::Relaxed);
                CtaStop::SideExit((code >> 32) as u32)
            }
            _ => CtaStop::BarrierMismatch,
        }
    }

    fn can_batch_ctas(&self) -> bool {
        self.made.fallbacks.is_empty()
    }

    fn run_cta(&self, call: &mut CtaCall<'_>) -> CtaStop {
        let Some(entry) = self.entry else { return CtaStop::Warp(NativeStop::Declined) };
        let frees = call.view().memory().frees();
        self.ready(call.cache, frees);
        let windows = call.view().windows();
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
            exited: call.round[0],
            waiting: call.round[1],
            turns: call.fuel,
            ..frame(call.grid, windows, call.regs, call.cache)
        };
        frame.warp[0] = call.warp;
        frame.warp[2] = call.smid;
        frame.ctaid = call.ctaid;
        let mut user = User::Cta(call, &raw mut frame);
        frame.user = (&raw mut user).cast::<c_void>();
        // SAFETY: as in `run`; there are a slot, thread numbers and room for what is kept for each of the warps that the code counts.
        let code = unsafe { entry(&raw mut frame) };
        settle(&mut frame);
        let User::Cta(call, _) = user else { return CtaStop::BarrierMismatch };
        (call.mask, call.live, call.fuel) = (frame.mask, frame.live, frame.turns);
        let (steps, lane_steps) = counted(&frame);
        (call.steps, call.lane_steps) = (call.steps + steps, call.lane_steps + lane_steps);
        self.leave(frame.left, call.regs, frame.mask, call.cache);
        (call.warp, call.round) = (frame.warp[0], [frame.exited, frame.waiting]);
        match code as u8 {
            c if c == Reason::Finished as u8 => CtaStop::Finished,
            c if c == Reason::Apart as u8 => CtaStop::BarrierMismatch,
            _ => CtaStop::Warp(stop(code)),
        }
    }
}

impl Compiled {
    /// Makes room for what native code notes, and forgets what no longer holds.
    fn ready(&self, cache: &mut NativeCache, frees: u64) {
        let sites = self.made.windows as usize;
        if cache.frees != frees || cache.bounds.len() < sites {
            cache.bounds.clear();
            cache.bounds.resize(sites, [0, 0]);
            cache.frees = frees;
            cache.spans.clear();
            cache.mixed = false;
        }
        if self.made.postpones && cache.table.is_empty() {
            cache.table.resize(reduction_buffer::ENTRIES as usize, [0, 0]);
        }
        cache.pending.clear();
        let lines = self.made.handed.lines as usize;
        if cache.room.len() < lines {
            cache.room.resize(lines, Line::default());
        }
    }

    /// Puts what native code takes where it is entered into the room. Whether it can be entered there with these registers of these lanes:
    /// that holds if they are as native code left them. A number beyond the blocks is no place where it takes anything.
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

    /// Completes the registers of the running warp from what native code left in the room.
    fn leave(&self, left: u32, regs: &mut Registers, mask: LaneMask, cache: &mut NativeCache) {
        let left = left.checked_sub(1).and_then(|at| self.made.handed.exits.get(at as usize));
        if let Some(left) = left {
            left.leave(&cache.room, regs, mask, &mut cache.pending);
        }
    }
}

/// A frame of which the warp is still to be filled in.
fn frame(grid: &GridShape, windows: Windows, regs: &mut Registers, cache: &mut NativeCache) -> Frame {
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
        params: windows.params.0,
        local: [windows.local.0, windows.local.1, windows.local.2],
        offset: 0,
        gridid: grid.gridid,
        began: grid.began,
        table: match cache.table.as_mut_slice() {
            [] => null_mut(),
            _ if cache.mixed => null_mut(),
            table => table.as_mut_ptr(),
        },
        credit: reduction_buffer::CREDIT,
        held: 0,
        turns: 0,
        slots: null_mut(),
        slot: null_mut(),
        tids: null(),
        keeps: null_mut(),
        keep_bytes: 0,
        kept: null_mut(),
        price: 0,
        warps: 0,
        waiting: 0,
        exited: 0,
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

/// What native code counted: instructions of warps and of lanes.
fn counted(frame: &Frame) -> (u64, u64) {
    (frame.full_steps + frame.masked_steps, frame.full_steps * LANES as u64 + frame.lane_steps)
}

/// What the code that native code returns says of a warp.
fn stop(code: u64) -> NativeStop {
    let (block, index) = ((code >> 8 & 0xff_ffff) as u32, (code >> 32) as u32);
    match code as u8 {
        c if c == Reason::Finished as u8 => NativeStop::Finished,
        c if c == Reason::Yield as u8 => NativeStop::Yield { block },
        c if c == Reason::Terminator as u8 => NativeStop::Terminator { block },
        c if c == Reason::Before as u8 => NativeStop::Before { block, index },
        c if c == Reason::Declined as u8 => NativeStop::Declined,
        _ => NativeStop::Fault { block, index },
    }
}

/// Executes an instruction for native code.
extern "C" fn step(user: *mut c_void, block: u32, index: u32, mask: u32) -> u32 {
    // SAFETY: `user` is the `User` that was put into the frame of the call that is running; nothing else uses it meanwhile.
    let user = unsafe { &mut *user.cast::<User<'_, '_>>() };
    // SAFETY: it is the frame of the call that is running, which native code does not use while it calls.
    let frame = unsafe { &mut *user.frame() };
    settle(frame);
    u32::from(match user {
        User::Warp(call, _) => call.step(block, index, mask),
        User::Cta(call, _) => call.step(frame.warp[0], block, index, mask),
    })
}

/// Begins with the next CTA of those that were handed over, if there is one and enough turns are left.
extern "C" fn follow(user: *mut c_void) -> u32 {
    // SAFETY: as in `step`.
    let user = unsafe { &mut *user.cast::<User<'_, '_>>() };
    let User::Cta(call, frame) = user else { return 0 };
    // SAFETY: as in `step`; nothing else of the host refers to it while native code runs.
    let frame = unsafe { &mut **frame };
    // One that took as long as the last has to come to its end: where turns are used up in the middle, lanes that have parted need frames.
    let used = call.fuel - frame.turns;
    frame.turns -= i64::from(frame.price);
    if frame.turns <= used.saturating_mul(2) || !call.next_cta() {
        return 0;
    }
    call.fuel = frame.turns;
    frame.ctaid = call.ctaid;
    (frame.warp[0], frame.exited, frame.waiting) = (0, 0, 0);
    1
}

/// Renews the window of a site from the allocation around an address. `how`: the space; whether to write; whether what is kept back is added
/// there.
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
    let found = view.reach(space_of(how & 0xff), address, how >> 8 & 1 != 0);
    let Some(slot) = cache.bounds.get_mut(window as usize) else { return };
    if let Some((start, bytes)) = found
        && bytes >= u64::from(span)
    {
        *slot = [start.wrapping_neg(), bytes - u64::from(span) + 1];
        let all = view.aliases((start, bytes));
        if !cache.table.is_empty() && cache.note(window, all, how >> 9 & 1 != 0) {
            frame.table = std::ptr::null_mut();
        }
    }
}

const _: () = assert!(size_of::<Window>() == size_of::<[u64; 2]>());
