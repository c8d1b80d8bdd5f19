//! Compiled kernels, and how the machine runs them.
//!
//! Invariants: compiled code runs only for the kernel, the memory and the CTA shape that it was made for; the pointers in its
//! [`Frame`] are made from one exclusive borrow of the warp and do not outlive the call.

use crate::cache::Made;
use crate::emit::memory::space_of;
use crate::emit::{self, Emitted, Job};
use crate::frame::{Entry, Frame, Reason, Window};
use crate::llvm::{Code, Error, Session};
use crate::machine;
use crate::plan::{Plan, Shape};
use ptx_exec::launch::Kernel;
use ptx_exec::native::{Native, NativeCall, NativeStop};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

/// A kernel compiled for one shape of CTA.
pub struct Compiled {
    entry: Entry,
    function: u32,
    /// By block: whether it can be entered there.
    entries: Vec<bool>,
    /// By block: whether a loop with that header only waits.
    waits: Vec<bool>,
    /// Instructions on the longest way through the function, loops once.
    longest: u64,
    blocks: usize,
    made: Arc<Made>,
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
struct User<'a, 'b> {
    call: &'a mut NativeCall<'b>,
}

/// Makes code of a kernel for CTAs of that shape.
///
/// # Errors
/// Says why it cannot be compiled; the interpreter can still run it.
pub(crate) fn make(session: &Session, kernel: &Kernel, ntid: [u32; 3]) -> Result<Made, Error> {
    let (module, plan, emitted) = translate(session, kernel, ntid)?;
    let Emitted { windows, fallbacks, externals } = emitted;
    let object = session.object(&module)?;
    let entries = plan.entries.iter().map(|entry| entry.block).collect();
    Ok(Made { object, externals, entries, windows, fallbacks })
}

/// The addresses of what code names.
pub(crate) fn resolve(made: &Made, kernel: &Kernel) -> Result<Vec<(String, usize)>, Error> {
    let layout = kernel.module().layout(kernel.id());
    let number = |name: &str| name[1..].parse::<usize>().ok();
    let find = |name: &str| match name {
        "step" => Some(step as *const () as usize),
        "reach" => Some(reach as *const () as usize),
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
) -> Result<Arc<Compiled>, Error> {
    let code = Code::place(&made.object, symbols)?;
    let address = code.lookup("kernel")?;
    // SAFETY: the address is that of the function `kernel`, emitted by `emit::emit` with this signature; `code` keeps it in memory.
    let entry = unsafe { std::mem::transmute::<usize, Entry>(address) };
    let function = kernel.function();
    let mut entries = vec![false; function.blocks.len()];
    for block in &made.entries {
        if let Some(entry) = entries.get_mut(*block as usize) {
            *entry = true;
        }
    }
    let longest = function.blocks.iter().map(|block| block.insts.len() as u64 + 1).sum();
    Ok(Arc::new(Compiled {
        entry,
        function: kernel.id().0,
        entries,
        waits: machine::waits(function),
        longest,
        blocks: function.blocks.len(),
        made,
        _code: code,
    }))
}

/// The code that a kernel is compiled to, as text.
///
/// # Errors
/// As [`compile`].
pub fn listing(session: &Session, kernel: &Kernel, ntid: [u32; 3], what: Listing) -> Result<String, Error> {
    let (module, ..) = translate(session, kernel, ntid)?;
    match what {
        Listing::Llvm => Ok(module.emit_ir()),
        Listing::Asm => session.emit_asm(&module),
    }
}

fn translate(
    session: &Session,
    kernel: &Kernel,
    ntid: [u32; 3],
) -> Result<(crate::llvm::Module, Plan, Emitted), Error> {
    let function = kernel.function();
    let shape = Shape { ntid, chunk: session.cpu().lanes() };
    let Some(plan) = Plan::new(function, shape, &machine::Native) else {
        return Err(Error::new(format!("`{}` is too large to be compiled", function.name)));
    };
    let module = session.module(&function.name);
    let layout = kernel.module().layout(kernel.id());
    let program = kernel.module().program();
    let job = Job {
        function,
        layout: &layout,
        program,
        plan: &plan,
        shape,
        flush: false,
        extensions: session.extensions(),
    };
    let emitted = emit::emit(&module, "kernel", job);
    if cfg!(debug_assertions) {
        module.verify().map_err(Error::new)?;
    }
    Ok((module, plan, emitted))
}

impl Compiled {
    /// Instructions that have no native code, by name, and how often they stand in the code.
    pub fn fallbacks(&self) -> &BTreeMap<String, u32> {
        &self.made.fallbacks
    }
}

impl Native for Compiled {
    fn function(&self) -> u32 {
        self.function
    }

    fn enters(&self, block: u32) -> bool {
        self.entries.get(block as usize).copied().unwrap_or(false)
    }

    fn most_steps(&self, turns: i64) -> u64 {
        (turns.max(0) as u64 + 2).saturating_mul(self.longest)
    }

    fn waits(&self, header: u32) -> bool {
        self.waits.get(header as usize).copied().unwrap_or(false)
    }

    fn run(&self, call: &mut NativeCall<'_>) -> NativeStop {
        let frees = call.mem.memory().frees();
        let reached = &mut *call.reached;
        let sites = self.made.windows as usize;
        if reached.frees != frees || reached.windows.len() < sites {
            reached.windows.clear();
            reached.windows.resize(sites, [0, 0]);
            reached.frees = frees;
        }
        if reached.parked.len() < self.blocks {
            reached.parked.resize(self.blocks, [0, 0]);
        }
        let windows = call.mem.windows();
        let grid = Arc::clone(&call.warp.grid);
        let mut frame = Frame {
            r16: call.regs.r16.as_mut_ptr().cast(),
            r32: call.regs.r32.as_mut_ptr().cast(),
            r64: call.regs.r64.as_mut_ptr().cast(),
            pred: call.regs.pred.as_mut_ptr(),
            tid: call.warp.tid.as_ptr().cast(),
            carry: &mut call.warp.carry,
            windows: reached.windows.as_mut_ptr().cast::<Window>(),
            parked: reached.parked.as_mut_ptr(),
            user: std::ptr::null_mut(),
            shared: [windows.shared.0, windows.shared.1],
            params: windows.params.0,
            local: [windows.local.0, windows.local.1, windows.local.2],
            offset: u64::from(call.frame),
            gridid: grid.gridid,
            turns: call.turns,
            full_steps: 0,
            masked_steps: 0,
            lane_steps: 0,
            mask: call.mask,
            live: call.warp.live,
            block: call.block,
            trusted: u32::from(call.trusted),
            parked_count: 0,
            warp: [call.warp.warpid, grid.warps(), call.warp.smid, grid.nsmid],
            ctaid: call.warp.ctaid,
            nctaid: grid.nctaid,
            smem: [grid.total_shared, grid.dynamic_shared],
        };
        let mut user = User { call };
        frame.user = (&raw mut user).cast::<c_void>();
        // SAFETY: `entry` is code made for this kernel; every pointer in the frame is valid for the call and as large as the code was told:
        // registers as the function counts them, a window for each site, an entry of `parked` for each block.
        let code = unsafe { (self.entry)(&raw mut frame) };
        let call = user.call;
        (call.mask, call.warp.live, call.turns) = (frame.mask, frame.live, frame.turns);
        call.steps = frame.full_steps + frame.masked_steps;
        call.lane_steps = frame.full_steps * 32 + frame.lane_steps;
        call.parked = frame.parked_count as usize;
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
}

/// Executes an instruction for native code.
extern "C" fn step(user: *mut c_void, block: u32, index: u32, mask: u32) -> u32 {
    // SAFETY: `user` is the `User` that `Compiled::run` put into the frame of the call that is running; nothing else uses it meanwhile.
    let user = unsafe { &mut *user.cast::<User<'_, '_>>() };
    u32::from(user.call.step(block, index, mask))
}

/// Renews the window of a site from the allocation around an address.
extern "C" fn reach(user: *mut c_void, window: u32, how: u32, address: u64, span: u32) {
    // SAFETY: as in `step`.
    let user = unsafe { &mut *user.cast::<User<'_, '_>>() };
    let found = user.call.mem.reach(space_of(how & 0xff), address, how >> 8 != 0);
    let Some(slot) = user.call.reached.windows.get_mut(window as usize) else { return };
    if let Some((start, bytes)) = found
        && bytes >= u64::from(span)
    {
        *slot = [start, bytes - u64::from(span) + 1];
    }
}

const _: () = assert!(size_of::<Window>() == size_of::<[u64; 2]>());
