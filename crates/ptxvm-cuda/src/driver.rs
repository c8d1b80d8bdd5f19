//! State that all threads of the process share: the devices, and the objects of handles.
//!
//! Invariant: the first `cuInit` creates it, and it lives as long as the process.

use crate::array::{CudaArray, Mipmap};
use crate::context::{Context, Primary};
use crate::environment::read;
use crate::event::Event;
use crate::function::Function;
use crate::handles::{Handle, Handles};
use crate::link::Link;
use crate::memory::{Blocks, Kind};
use crate::module::Module;
use crate::pool::Pool;
use crate::status::Status;
use crate::stream::Queue;
use crate::texref::Reference;
use crate::texture::Objects;
use crate::tools::{self, Tools};
use ptxvm::{DeviceId, Engine, Error, ErrorKind, HostMistake, Launch, Vm};
use std::collections::BTreeSet;
use std::ffi::c_int;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

/// The driver.
pub(crate) struct Driver {
    /// The virtual machine of the first device.
    pub(crate) vm: Vm,
    /// Its devices.
    pub(crate) devices: Vec<Device>,
    /// The settings from the environment.
    pub(crate) settings: Settings,
    /// `CUcontext`
    pub(crate) contexts: Handles<Context>,
    /// `CUmodule`
    pub(crate) modules: Handles<Module>,
    /// `CUfunction`, `CUkernel`
    pub(crate) functions: Handles<Function>,
    /// `CUarray`
    pub(crate) arrays: Handles<CudaArray>,
    /// `CUmipmappedArray`
    pub(crate) mipmaps: Handles<Mipmap>,
    /// `CUtexref`, `CUsurfref`
    pub(crate) references: Handles<Reference>,
    /// `CUtexObject`, `CUsurfObject`
    pub(crate) objects: Objects,
    /// `CUlinkState`
    pub(crate) links: Handles<Link>,
    /// `CUstream`
    pub(crate) streams: Handles<Queue>,
    /// `CUgraph`
    pub(crate) graphs: Handles<crate::graph::Graph>,
    /// `CUgraphNode`, with the graphs that own them
    pub(crate) graph_nodes: Handles<Weak<crate::graph::Graph>>,
    /// `CUgraphExec`
    pub(crate) executables: Handles<crate::graph::Executable>,
    /// Memory that graphs allocate.
    pub(crate) memories: crate::graph::Memories,
    /// `CUuserObject`
    pub(crate) user_objects: Handles<crate::user_object::UserObject>,
    /// `CUevent`
    pub(crate) events: Handles<Event>,
    /// Memory that other processes share with this one.
    pub(crate) imports: crate::ipc::Imports,
    /// `CUmemGenericAllocationHandle`
    pub(crate) allocations: Handles<crate::mapped::Allocation>,
    /// `CUmemoryPool`
    pub(crate) pools: Handles<Pool>,
    /// The program's allocations.
    pub(crate) blocks: Blocks,
    /// The memory of each device in bytes.
    pub(crate) memory_total: u64,
    /// The devices' range of addresses.
    pub(crate) range: Range<u64>,
    /// Sanitizers, if the program runs under some.
    pub(crate) tools: Option<Tools>,
}

/// What sanitizers are told of calls. Without sanitizers nothing happens.
impl Driver {
    /// Prints what a launch has found, which has ended.
    pub(crate) fn settle_findings(&self) {
        if let Some(tools) = &self.tools {
            tools.settle(&self.vm);
        }
    }

    /// A call frees an address at which no allocation begins.
    pub(crate) fn frees_wrongly(&self, address: u64) {
        if self.tools.is_some() {
            let (again, nearest) = (self.blocks.is_leaving(address), self.vm.nearest(address));
            let mistake = HostMistake::Free { call: tools::call(), address, again, nearest: &nearest };
            self.vm.report_mistake(&mistake);
        }
    }

    /// A call copies or sets bytes that are not all in one allocation.
    pub(crate) fn accesses_wrongly(&self, address: u64, bytes: usize) {
        if self.tools.is_some() {
            let (bytes, nearest) = (bytes as u64, self.vm.nearest(address));
            let mistake = HostMistake::Access { call: tools::call(), address, bytes, nearest: &nearest };
            self.vm.report_mistake(&mistake);
        }
    }

    /// An array was destroyed.
    pub(crate) fn destroys_array(&self, array: Handle) {
        if let Some(tools) = &self.tools {
            tools.destroyed(array);
        }
    }

    /// A call destroys an array that does not exist.
    pub(crate) fn destroys_wrongly(&self, array: Handle) {
        if let Some(tools) = &self.tools {
            let (address, again) = (array.0 as u64, tools.had(array));
            let mistake = HostMistake::Free { call: tools::call(), address, again, nearest: "" };
            self.vm.report_mistake(&mistake);
        }
    }

    /// Reports what a context still has of the memory that the program allocated.
    pub(crate) fn find_leaks(&self, context: &Arc<Context>) {
        if self.tools.is_none() {
            return;
        }
        for (address, block) in self.blocks.of(context) {
            let what = match block.kind {
                Kind::Device => "memory from `cuMemAlloc`",
                Kind::Pool(_) => "memory from `cuMemAllocAsync`",
                Kind::Graph if !self.memories.is_held(address) => continue,
                Kind::Graph => "memory that a graph allocated",
                Kind::Managed => "managed memory",
                Kind::Pinned(_) => "host memory from `cuMemHostAlloc`",
                // Memory that the program lends, or that others own, is not allocated here.
                Kind::Registered(_) | Kind::Imported | Kind::Received(_) => continue,
            };
            self.lost(what, address, block.bytes);
        }
        let of_context = |of: &Arc<Context>| Arc::ptr_eq(of, context);
        for (handle, array) in self.arrays.entries() {
            if of_context(&array.context) && !array.is_level {
                self.lost("an array", handle.0 as u64, array.bytes());
            }
        }
        for (handle, mipmap) in self.mipmaps.entries() {
            if of_context(&mipmap.context) {
                self.lost("a mipmapped array", handle.0 as u64, mipmap.bytes());
            }
        }
    }

    /// Reports what the program has allocated and not freed, at the end of the process.
    pub(crate) fn find_all_leaks(&self) {
        for context in self.contexts.all() {
            self.find_leaks(&context);
        }
        for (handle, made) in self.allocations.entries() {
            self.lost("memory from `cuMemCreate`", handle.0 as u64, made.bytes());
        }
    }

    fn lost(&self, what: &str, address: u64, bytes: u64) {
        self.vm.report_mistake(&HostMistake::Leak { what, address, bytes });
    }
}

/// Prints what a call has found, which ends.
pub(crate) fn settle_call() {
    if let Some(driver) = made()
        && let Some(tools) = &driver.tools
    {
        tools.settle_idle(&driver.vm);
    }
}

/// A device.
pub(crate) struct Device {
    /// Its memory and modules.
    pub(crate) vm: Vm,
    /// The primary context.
    pub(crate) primary: Mutex<Primary>,
    /// The default pool.
    pub(crate) default_pool: Handle,
    /// The current pool.
    pub(crate) current_pool: Mutex<Handle>,
}

impl Driver {
    /// The device with a number.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_DEVICE`.
    pub(crate) fn device(&self, number: c_int) -> Result<&Device, Status> {
        let index = usize::try_from(number).map_err(|_| Status::InvalidDevice)?;
        self.devices.get(index).ok_or(Status::InvalidDevice)
    }

    /// Memory and modules of a device.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_DEVICE`.
    pub(crate) fn vm_of(&self, device: DeviceId) -> Result<&Vm, Status> {
        self.devices.get(device.index()).map(|device| &device.vm).ok_or(Status::InvalidDevice)
    }

    /// Updates a device's access to another device's memory, by the peer access of its contexts.
    pub(crate) fn settle_peers(&self, viewer: c_int, owner: c_int) {
        let contexts = self.contexts.all();
        let is_of = |handle: &Handle| contexts.iter().any(|c| c.handle == *handle && c.device == owner);
        let asks = |context: &Arc<Context>| context.device == viewer && context.peers().iter().any(is_of);
        if let (Ok(viewer), Ok(owner)) = (self.device(viewer), self.device(owner)) {
            owner.vm.let_reach(viewer.vm.number(), contexts.iter().any(asks));
        }
    }

    /// Removes everything that belongs to a context that has ended.
    pub(crate) fn forget(&self, context: &Arc<Context>) {
        self.find_leaks(context);
        for module in self.modules.remove_if(|module| Arc::ptr_eq(&module.context, context)) {
            module.forget_references(self);
        }
        self.functions.remove_if(|function| Arc::ptr_eq(&function.context, context));
        for queue in self.streams.remove_if(|queue| Arc::ptr_eq(&queue.context, context)) {
            queue.leave_capture(self);
        }
        let own = std::mem::take(&mut *context.own_slots());
        own.iter().for_each(|slot| slot.leave(self));
        self.events.remove_if(|event| event.belongs_to(context));
        self.objects.forget(context);
        self.references.remove_if(|reference| reference.belongs_to(context));
        self.arrays.remove_if(|array| Arc::ptr_eq(&array.context, context));
        self.mipmaps.remove_if(|mipmap| Arc::ptr_eq(&mipmap.context, context));
        self.links.remove_if(|link| Arc::ptr_eq(&link.context, context));
        // Devices of contexts that this one could access, or that could access it: only their rights change.
        let mut changed = BTreeSet::new();
        for other in self.contexts.all() {
            let mut peers = other.peers();
            if peers.contains(&context.handle) {
                peers.retain(|peer| *peer != context.handle);
                changed.insert((other.device, context.device));
            }
            drop(peers);
            if context.peers().contains(&other.handle) {
                changed.insert((context.device, other.device));
            }
        }
        changed.into_iter().for_each(|(viewer, owner)| self.settle_peers(viewer, owner));
        self.imports.forget(context);
        for (address, kind) in self.blocks.take_all(context) {
            let _gone = match kind {
                Kind::Registered(_) => self.vm.disown(address),
                Kind::Imported | Kind::Received(_) => {
                    crate::ipc::unmap(self, address);
                    Ok(())
                }
                Kind::Device | Kind::Pool(_) | Kind::Graph | Kind::Managed | Kind::Pinned(_) => {
                    self.vm.free(address)
                }
            };
        }
    }
}

/// The most threads that the user may set, as on the command line.
const THREADS: u32 = 4096;

/// The settings of the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The driver version, in the encoding of `cuDriverGetVersion`: 12090 is 12.9. `PTXVM_DRIVER_VERSION`.
    pub(crate) version: i32,
    /// The number of devices. `PTXVM_DEVICES`.
    devices: usize,
    /// The compute capability, 80 is 8.0. `PTXVM_SM`.
    pub(crate) capability: i32,
    /// The engine that executes kernels. `PTXVM_ENGINE`.
    engine: Engine,
    /// The threads of a launch. `PTXVM_THREADS`.
    threads: Option<u32>,
    /// The time limit of a launch, in seconds. `PTXVM_TIMEOUT`.
    timeout: Option<Duration>,
    /// Whether each launch prints its statistics. `PTXVM_STATS`.
    pub(crate) stats: bool,
    /// Whether a context recovers from a trap once a call has returned its error. `PTXVM_RECOVER`.
    pub(crate) recover: bool,
    /// The schedule seed of launches. `PTXVM_SEED`.
    seed: u64,
}

impl Settings {
    /// Reads the environment. A value that cannot be parsed is reported and ignored.
    pub(crate) fn from_environment() -> Self {
        Self {
            version: read("PTXVM_DRIVER_VERSION", version).unwrap_or(12090),
            devices: read("PTXVM_DEVICES", devices).unwrap_or(1),
            capability: read("PTXVM_SM", capability).unwrap_or(80),
            engine: read("PTXVM_ENGINE", engine).unwrap_or_default(),
            threads: read("PTXVM_THREADS", |text| {
                text.parse().ok().filter(|threads| (1..=THREADS).contains(threads))
            }),
            timeout: read("PTXVM_TIMEOUT", |text| {
                Duration::try_from_secs_f64(text.parse().ok()?).ok().filter(|time| !time.is_zero())
            }),
            stats: read("PTXVM_STATS", |text| Some(text != "0")).unwrap_or(false),
            recover: read("PTXVM_RECOVER", switch).unwrap_or(false),
            seed: read("PTXVM_SEED", |text| text.parse().ok()).unwrap_or(0),
        }
    }

    /// Applies the settings to a launch.
    pub(crate) fn apply(&self, launch: &mut Launch) {
        launch.engine = self.engine;
        launch.threads = self.threads;
        launch.timeout = self.timeout;
        launch.seed = self.seed;
    }
}

/// `auto`, `interp` or `jit`.
fn engine(text: &str) -> Option<Engine> {
    match text {
        "auto" => Some(Engine::Auto),
        "interp" => Some(Engine::Interp),
        "jit" => Some(Engine::Jit),
        _ => None,
    }
}

/// A number of devices.
fn devices(text: &str) -> Option<usize> {
    text.parse().ok().filter(|count| (1..=ptxvm::DEVICES).contains(count))
}

/// `1` or `0`.
fn switch(text: &str) -> Option<bool> {
    match text {
        "1" | "on" | "yes" => Some(true),
        "0" | "off" | "no" => Some(false),
        _ => None,
    }
}

/// `12.9`, `12090` or `13`.
fn version(text: &str) -> Option<i32> {
    if let Some((major, minor)) = text.split_once('.') {
        let (major, minor): (i32, i32) = (major.parse().ok()?, minor.parse().ok()?);
        return ((2..100).contains(&major) && (0..100).contains(&minor)).then_some(major * 1000 + minor * 10);
    }
    match text.parse().ok()? {
        major @ 2..100 => Some(major * 1000),
        whole @ 2000..100_000 => Some(whole),
        _ => None,
    }
}

/// `80`, `8.0` or `sm_80`, with or without a letter at the end.
fn capability(text: &str) -> Option<i32> {
    let text = text.strip_prefix("sm_").unwrap_or(text).trim_end_matches(['a', 'f']).replace('.', "");
    text.parse().ok().filter(|number| (10..200).contains(number))
}

static DRIVER: OnceLock<Result<Driver, Status>> = OnceLock::new();

/// Creates the driver unless it exists.
///
/// # Errors
/// `CUDA_ERROR_OUT_OF_MEMORY` if the system reserves no range of addresses.
pub(crate) fn start() -> Result<&'static Driver, Status> {
    let make = || {
        let cache = ptxvm::CodeCache::from_environment();
        let mut options = ptxvm::Options { cache, ..ptxvm::Options::default() };
        tools::add_to(&mut options);
        let vm = Vm::with(options).map_err(|error| status_of(&error))?;
        let tools = Tools::of(&vm);
        if read("PTXVM_HOST_POINTERS", switch).unwrap_or(false) {
            crate::ffi::reach_host(&vm);
        }
        let pools = Handles::default();
        let settings = Settings::from_environment();
        let device = |number| {
            let default_pool = pools.insert(Pool::new(number, 0));
            let (vm, current_pool) = (vm.of_device(number), Mutex::new(default_pool));
            Device { vm, primary: Mutex::default(), default_pool, current_pool }
        };
        let devices: Vec<_> = (0..settings.devices).filter_map(DeviceId::new).map(device).collect();
        let memory_total = memory_total(vm.memory_usage().1, devices.len() as u64);
        let range = vm.device_range();
        Ok(Driver {
            vm,
            devices,
            settings,
            contexts: Handles::default(),
            modules: Handles::default(),
            functions: Handles::default(),
            arrays: Handles::default(),
            mipmaps: Handles::default(),
            references: Handles::default(),
            objects: Objects::default(),
            links: Handles::default(),
            streams: Handles::default(),
            events: Handles::default(),
            imports: crate::ipc::Imports::default(),
            allocations: Handles::default(),
            graphs: Handles::default(),
            graph_nodes: Handles::default(),
            executables: Handles::default(),
            memories: crate::graph::Memories::default(),
            user_objects: Handles::default(),
            pools,
            blocks: Blocks::default(),
            memory_total,
            range,
            tools,
        })
    };
    host_memory::watch();
    if host_memory::is_forked() {
        return Err(Status::NotInitialized);
    }
    DRIVER.get_or_init(make).as_ref().map_err(|status| *status)?;
    driver()
}

/// The memory of each device in bytes: an equal part of the machine's memory, as far as there are addresses
/// for it. `PTXVM_MEMORY` can lower it.
fn memory_total(room: u64, devices: u64) -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    let machine = machine.map_or(room, |kib| kib.saturating_mul(1024));
    let wanted = read("PTXVM_MEMORY", |text| text.parse().ok()).unwrap_or(u64::MAX);
    (room.min(machine) / devices.max(1)).min(wanted)
}

/// The driver.
///
/// # Errors
/// `CUDA_ERROR_NOT_INITIALIZED` before `cuInit`, and in a forked child of the process that called it, because
/// the driver's threads and locks are not usable there.
pub(crate) fn driver() -> Result<&'static Driver, Status> {
    if host_memory::is_forked() {
        return Err(Status::NotInitialized);
    }
    DRIVER.get().ok_or(Status::NotInitialized)?.as_ref().map_err(|status| *status)
}

/// The driver, if it was created, in the process that created it.
pub(crate) fn made() -> Option<&'static Driver> {
    DRIVER.get()?.as_ref().ok().filter(|_| !host_memory::is_forked())
}

/// Whether an address is in the devices' range, which holds no host code.
pub(crate) fn is_of_device(address: u64) -> bool {
    DRIVER.get().is_some_and(|driver| driver.as_ref().is_ok_and(|driver| driver.range.contains(&address)))
}

/// Whether some of these bytes are in the devices' range without all being in one allocation. Such bytes are
/// neither device memory nor host memory.
pub(crate) fn is_unallocated(address: u64, bytes: u64) -> bool {
    let Some(Ok(driver)) = DRIVER.get() else { return false };
    if host_memory::is_forked() {
        return false;
    }
    let end = address.saturating_add(bytes);
    if end <= driver.range.start || address >= driver.range.end {
        return false;
    }
    driver.vm.allocation_at(address).is_none_or(|range| bytes > range.end - address)
}

/// The status for an error of the virtual machine.
pub(crate) fn status_of(error: &Error) -> Status {
    match error.kind() {
        ErrorKind::Rejected(_) => Status::InvalidPtx,
        ErrorKind::Trap(trap, _) => crate::launch::status_of_trap(trap),
        ErrorKind::Caller(_) => Status::InvalidValue,
        ErrorKind::Machine(_) => Status::OutOfMemory,
    }
}

#[cfg(test)]
mod tests {
    use super::{capability, version};

    #[test]
    fn versions_are_read_as_people_write_them() {
        assert_eq!(version("12.9"), Some(12090));
        assert_eq!(version("13"), Some(13000));
        assert_eq!(version("12080"), Some(12080));
        assert_eq!(version("0"), None);
        assert_eq!(version("x"), None);
    }

    #[test]
    fn capabilities_are_read_as_people_write_them() {
        assert_eq!(capability("8.0"), Some(80));
        assert_eq!(capability("sm_90a"), Some(90));
        assert_eq!(capability("75"), Some(75));
        assert_eq!(capability("120"), Some(120));
        assert_eq!(capability("7"), None);
    }
}
