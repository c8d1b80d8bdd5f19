//! Launches, and the errors for traps.
//!
//! Invariant: the call itself returns errors that are known at the call. A trap sets the context's error when
//! it happens, with its full report on standard error.

use crate::context::Context;
use crate::driver::{Driver, status_of};
use crate::entry::{DefaultStream, entries};
use crate::ffi::{HostBytes, In, Pointer};
use crate::function::Function;
use crate::graph::{KernelNode, Work};
use crate::handles::Handle;
use crate::health::Epoch;
use crate::log;
use crate::occupancy;
use crate::status::{Answer, Status};
use crate::stream::{When, queue};
use host_memory::Access;
use ptxvm::{Engine, ErrorKind, FaultKind, Launch, Trap};
use std::ffi::{c_int, c_uint};
use std::io::Write as _;
use std::sync::Arc;

/// `CU_LAUNCH_PARAM_END`, `..._BUFFER_POINTER`, `..._BUFFER_SIZE`
const EXTRA: [u64; 3] = [0, 1, 2];
/// Most entries of a list of `CU_LAUNCH_PARAM_*`, with their values. Chosen: each is used once.
const EXTRA_MAX: usize = 16;
/// Most attributes of a launch. Chosen: more than the public header has.
const ATTRIBUTES_MAX: c_uint = 64;
/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`, `..._CLUSTER_DIMENSION`
const COOPERATIVE: c_int = 2;
const CLUSTER: c_int = 4;

/// The status for a trap.
pub(crate) fn status_of_trap(trap: &Trap) -> Status {
    match &trap.kind {
        FaultKind::IllegalAddress | FaultKind::ReadOnly => Status::IllegalAddress,
        FaultKind::Misaligned => Status::MisalignedAddress,
        FaultKind::Assert(_) => Status::Assert,
        FaultKind::BadCall | FaultKind::BadBranchIndex => Status::InvalidPc,
        FaultKind::StackOverflow => Status::HardwareStackError,
        FaultKind::BadBarrier(_) | FaultKind::BadMemberMask | FaultKind::BadAligned(_) => {
            Status::IllegalInstruction
        }
        FaultKind::Deadlock(_) | FaultKind::StepLimit | FaultKind::TimeLimit | FaultKind::Cancelled => {
            Status::LaunchTimeout
        }
        FaultKind::Trap
        | FaultKind::BadTexture(_)
        | FaultKind::SurfaceBounds(_)
        | FaultKind::Unsupported(_) => Status::LaunchFailed,
    }
}

/// The size of a launch: grid, CTA, dynamic shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
}

/// The parameter buffer, from either form of arguments.
pub(crate) fn parameters(
    function: &Function,
    params: In<Pointer>,
    extra: In<Pointer>,
) -> Result<Vec<u8>, Status> {
    let slots = function.kernel.params();
    let mut buffer = vec![0; function.kernel.param_bytes()];
    if !params.is_null() {
        if !extra.is_null() {
            return Err(Status::InvalidValue);
        }
        for (index, slot) in slots.iter().enumerate() {
            let value = params.at(index)?;
            if value.is_null() {
                return Err(Status::InvalidValue);
            }
            value.values::<u8>().read_into(&mut buffer[slot.offset..slot.offset + slot.bytes])?;
        }
        return Ok(buffer);
    }
    if extra.is_null() {
        return if slots.is_empty() { Ok(buffer) } else { Err(Status::InvalidValue) };
    }
    let (mut start, mut bytes) = (None, None);
    let mut list = (0..EXTRA_MAX).step_by(2);
    loop {
        let at = list.next().ok_or(Status::InvalidValue)?;
        match extra.offset(at).get()?.address() {
            kind if kind == EXTRA[0] => break,
            kind if kind == EXTRA[1] => start = Some(extra.offset(at + 1).get()?),
            kind if kind == EXTRA[2] => {
                bytes = Some(extra.offset(at + 1).get()?.values::<usize>().get()?);
            }
            _ => return Err(Status::InvalidValue),
        }
    }
    match (start, bytes) {
        (Some(start), Some(bytes)) if bytes >= used_bytes(slots) => {
            let take = bytes.min(buffer.len());
            HostBytes::new(start, take)?.check(Access::Read)?;
            start.values::<u8>().read_into(&mut buffer[..take])?;
            Ok(buffer)
        }
        (None, None) if slots.is_empty() => Ok(buffer),
        _ => Err(Status::InvalidValue),
    }
}

/// Like [`parameters`], but asks the system whether pointers are valid first: for calls that are less
/// frequent than launches.
pub(crate) fn checked_parameters(
    function: &Function,
    params: In<Pointer>,
    extra: In<Pointer>,
) -> Result<Vec<u8>, Status> {
    let slots = function.kernel.params();
    if !params.is_null() {
        for (value, slot) in params.all(slots.len())?.into_iter().zip(slots) {
            HostBytes::new(value, slot.bytes)?.check(Access::Read)?;
        }
    }
    parameters(function, params, extra)
}

/// The number of bytes up to the end of the last parameter.
fn used_bytes(slots: &[ptxvm::ParamLayout]) -> usize {
    slots.iter().map(|slot| slot.offset + slot.bytes).max().unwrap_or(0)
}

/// The product of three sizes, saturating.
fn product(sizes: [u32; 3]) -> u64 {
    sizes.iter().fold(1, |all: u64, size| all.saturating_mul(u64::from(*size)))
}

/// Prepares a launch, and submits it to a stream.
pub(crate) fn launch(
    function: Handle,
    size: Size,
    (stream, default): (Handle, DefaultStream),
    params: impl FnOnce(&Function) -> Result<Vec<u8>, Status>,
) -> Answer {
    let (driver, queue) = queue(stream, default)?;
    let handle = function;
    let function = driver.functions.get(function)?;
    if function.context.device != queue.context.device {
        return Err(Status::InvalidHandle);
    }
    let params = params(&function)?;
    if queue.is_captured() {
        prepare(driver, &queue.context, &function, size, params.clone())?;
        let node =
            || Ok(Work::Kernel(Arc::new(KernelNode::new(handle, Arc::clone(&function), size, params))));
        return queue.captured(node).unwrap_or(Ok(()));
    }
    let launch = prepare(driver, &queue.context, &function, size, params)?;
    let (context, epoch) = (Arc::clone(&queue.context), queue.context.health.epoch());
    // Programs that pass host memory to kernels read it without waiting.
    let when = if driver.vm.reaches_host() { When::Now } else { When::InTurn };
    let era = driver.objects.era();
    queue.perform(when, move || {
        let _until_here = &era;
        run(driver, (&context, &epoch), &function, &launch)
    })
}

/// Checks a launch of a function.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE`.
pub(crate) fn prepare(
    driver: &Driver,
    context: &Context,
    function: &Function,
    size: Size,
    params: Vec<u8>,
) -> Result<Launch, Status> {
    let threads = product(size.block);
    if size.grid.contains(&0) || threads == 0 {
        return Err(Status::InvalidValue);
    }
    if threads > u64::from(function.kernel.max_threads().unwrap_or(1024))
        || size.shared > function.max_dynamic()
    {
        return Err(Status::InvalidValue);
    }
    let mut launch = Launch::new(size.grid, size.block).shared(size.shared);
    launch.params = params;
    launch.cooperative = size.cooperative;
    launch.cancel = Some(context.health.epoch().stops());
    launch.output_limit = launch.output_limit.max(context.printf_bytes());
    driver.settings.apply(&mut launch);
    function.kernel.check(&launch).map_err(|error| {
        log::note(&format!("cannot launch `{}`: {error}", function.kernel.name()));
        Status::InvalidValue
    })?;
    if size.cooperative {
        let blocks = u64::from(occupancy::blocks(function, threads as u32, size.shared.into()));
        let room = blocks * driver.limits().multiprocessors as u64;
        if product(size.grid) > room {
            return Err(Status::CooperativeLaunchTooLarge);
        }
    }
    Ok(launch)
}

/// Runs a kernel at its turn. A trap sets the context's error.
///
/// # Errors
/// The status for a trap.
pub(crate) fn run(
    driver: &Driver,
    (context, epoch): (&Context, &Epoch),
    function: &Function,
    launch: &Launch,
) -> Answer {
    let result = driver.vm.launch(&function.kernel, launch);
    driver.settle_findings();
    let report = match &result {
        Ok(report) => Some(report),
        Err(error) => match error.kind() {
            ErrorKind::Trap(_, report) => Some(report),
            ErrorKind::Rejected(_) | ErrorKind::Caller(_) | ErrorKind::Machine(_) => None,
        },
    };
    if let Some(report) = report {
        if let Some(why) = &report.ran.no_compiler {
            log::no_compiler(why);
        }
        if !report.output.is_empty() {
            let mut out = std::io::stdout().lock();
            let _closed = out.write_all(&report.output).and_then(|()| out.flush());
        }
        if report.dropped > 0 {
            log::say(&format!(
                "ptxvm: `{}` printed more than {} bytes in a launch, or more than 4 MiB in one call; {} bytes are lost (`cudaLimitPrintfFifoSize` raises the limit)",
                function.kernel.name(),
                launch.output_limit,
                report.dropped
            ));
        }
        if driver.settings.stats {
            log::say(&format!(
                "ptxvm: `{}`: {:?}, {} thread instructions, {} warp instructions, {} of them in native code{}{}{}{}{}",
                function.kernel.name(),
                report.elapsed,
                report.thread_instructions,
                report.warp_instructions,
                report.ran.native_instructions,
                not_native(report),
                left_native(report),
                interpreted(report),
                not_compiled(report, launch.engine),
                report
                    .ran
                    .refused_folder
                    .as_ref()
                    .map_or(String::new(), |why| format!("; code is not cached on disk: {why}"))
            ));
        }
    }
    result.map(|_| ()).map_err(|error| {
        // A kernel that was stopped by another kernel's trap or by its context's end prints no report.
        let stopped = matches!(error.kind(), ErrorKind::Trap(trap, _) if trap.kind == FaultKind::Cancelled);
        if !stopped && !context.is_gone() {
            log::say(&error.to_string());
        }
        let status = match error.kind() {
            ErrorKind::Machine(_) => Status::LaunchOutOfResources,
            ErrorKind::Caller(_) => Status::LaunchFailed,
            ErrorKind::Trap(..) | ErrorKind::Rejected(_) => status_of(&error),
        };
        context.health.strike(epoch, status);
        status
    })
}

/// Why there is no native code, for the statistics.
fn not_compiled(report: &ptxvm::Report, engine: Engine) -> String {
    report.ran.not_native(engine).map_or(String::new(), |why| format!("; not compiled: {why}"))
}

/// The instructions without native code of a kernel that has some, for the statistics.
fn not_native(report: &ptxvm::Report) -> String {
    let ran = &report.ran;
    if ran.fallbacks.is_empty() {
        return String::new();
    }
    let each = ran.fallbacks.iter().map(|(name, count)| format!("`{name}` {count} times"));
    let all = each.collect::<Vec<_>>().join(", ");
    format!(" ({} of these by the interpreter's functions; no native code: {all})", ran.fallback_instructions)
}

/// The most frequent reasons why the interpreter executed something for native code, for the statistics.
fn left_native(report: &ptxvm::Report) -> String {
    /// How many kinds of side exits are named.
    const NAMED: usize = 3;
    let exits = &report.ran.side_exits;
    let (named, others) = exits.split_at(exits.len().min(NAMED));
    let mut parts: Vec<String> = named.iter().map(|exits| format!("; interpreter: {exits}")).collect();
    if !others.is_empty() {
        let sum: u64 = others.iter().map(|exits| exits.count).sum();
        parts.push(format!("; interpreter: at {} more places: {sum} times", others.len()));
    }
    parts.concat()
}

/// The device functions that ran in the interpreter, for the statistics.
fn interpreted(report: &ptxvm::Report) -> String {
    let names: Vec<_> = report.ran.interpreted_functions.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("; device functions without native code: {}", names.join(", "))
}

/// A launch for programs of CUDA 1: the function holds the other settings.
fn launch_set(function: Handle, (width, height): (c_int, c_int), stream: (Handle, DefaultStream)) -> Answer {
    let set = crate::driver::driver()?.functions.get(function)?.settings().clone();
    let (x, y) = (u32::try_from(width).unwrap_or(0), u32::try_from(height).unwrap_or(0));
    let size = Size { grid: [x, y, 1], block: set.block, shared: set.shared, cooperative: false };
    launch(function, size, stream, |function| {
        let mut params = set.params;
        if params.len() < used_bytes(function.kernel.params()) {
            return Err(Status::InvalidValue);
        }
        params.resize(function.kernel.param_bytes(), 0);
        Ok(params)
    })
}

/// `CUlaunchConfig`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Config {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Handle,
    attributes: In<Attribute>,
    count: c_uint,
}

/// `CUlaunchAttribute`
#[derive(Clone, Copy)]
#[repr(C)]
struct Attribute {
    id: c_int,
    pad: [u8; 4],
    value: [u64; 8],
}

impl Config {
    /// The CTA's shape and the dynamic shared memory.
    pub(crate) fn block_and_shared(&self) -> (u32, u32) {
        (u32::try_from(product(self.block)).unwrap_or(u32::MAX), self.shared)
    }

    /// Reads the attributes. Returns whether the launch is cooperative.
    fn attributes(&self) -> Result<bool, Status> {
        let mut cooperative = false;
        if self.count > ATTRIBUTES_MAX {
            return Err(Status::InvalidValue);
        }
        for attribute in self.attributes.all(self.count as usize)? {
            check_attribute(attribute.id, &attribute.value)?;
            if attribute.id == COOPERATIVE {
                cooperative = attribute.value[0] as u32 != 0;
            }
        }
        Ok(cooperative)
    }
}

/// Fails for an attribute that changes a launch in a way that is not supported.
///
/// # Errors
/// `CUDA_ERROR_NOT_SUPPORTED`.
pub(crate) fn check_attribute(id: c_int, value: &[u64; 8]) -> Answer {
    match id {
        COOPERATIVE => Ok(()),
        // A cluster of one CTA is an ordinary CTA.
        CLUSTER => {
            let [x, y, z] = [value[0] as u32, (value[0] >> 32) as u32, value[1] as u32];
            if x <= 1 && y <= 1 && z <= 1 {
                return Ok(());
            }
            log::refused("a launch in clusters");
            Err(Status::NotSupported)
        }
        // Attributes without effect: ignored, access policy, synchronization, priority, overlap, domains,
        // carveout, ...
        0 | 1 | 3 | 5 | 6 | 8 | 9 | 10 | 11 | 14 | 16 | 17 | 18 => Ok(()),
        other => {
            log::refused(&format!("launch attribute {other}"));
            Err(Status::NotSupported)
        }
    }
}

entries! { ENTRIES;
    /// Launches a kernel.
    fn cuLaunchKernel | cuLaunchKernel_ptsz as default (
        function: Handle,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: Handle, params: In<Pointer>, extra: In<Pointer>,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let size = Size { grid, block, shared, cooperative: false };
        launch(function, size, (stream, default), |function| parameters(function, params, extra))
    }

    /// Launches a kernel, with attributes.
    fn cuLaunchKernelEx | cuLaunchKernelEx_ptsz as default (
        config: In<Config>, function: Handle, params: In<Pointer>, extra: In<Pointer>,
    ) {
        let config = config.get()?;
        let cooperative = config.attributes()?;
        let size = Size { grid: config.grid, block: config.block, shared: config.shared, cooperative };
        launch(function, size, (config.stream, default), |function| parameters(function, params, extra))
    }

    /// Launches a kernel whose CTAs are all resident, so that they can wait for each other.
    fn cuLaunchCooperativeKernel | cuLaunchCooperativeKernel_ptsz as default (
        function: Handle,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: Handle, params: In<Pointer>,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let size = Size { grid, block, shared, cooperative: true };
        launch(function, size, (stream, default), |function| parameters(function, params, In::NULL))
    }

    /// Launches a kernel with one CTA and the function's settings.
    fn cuLaunch(function: Handle) {
        launch_set(function, (1, 1), (Handle::NULL, DefaultStream::Legacy))
    }

    /// Launches a kernel with the function's settings.
    fn cuLaunchGrid(function: Handle, width: c_int, height: c_int) {
        launch_set(function, (width, height), (Handle::NULL, DefaultStream::Legacy))
    }

    /// Launches a kernel with the function's settings.
    fn cuLaunchGridAsync(function: Handle, width: c_int, height: c_int, stream: Handle) {
        launch_set(function, (width, height), (stream, DefaultStream::Legacy))
    }
}
