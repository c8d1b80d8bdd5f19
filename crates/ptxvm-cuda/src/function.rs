//! Functions: the kernels of modules, and their attributes.
//!
//! A `CUkernel` of a library and a `CUfunction` are the same here: both identify a kernel.
//!
//! Invariant: register counts, shared memory and local memory are those of the kernel itself, not of another
//! kernel with its name.

use crate::attributes::{Limits, SHARED};
use crate::context::{Context, current};
use crate::driver::{Driver, driver};
use crate::entry::entries;
use crate::ffi::{Out, Pointer, Text};
use crate::handles::Handle;
use crate::status::{Answer, Status};
use ptxvm::{Kernel, Resources};
use std::ffi::{CString, c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

const MAX_THREADS: c_int = 0;
const SHARED_BYTES: c_int = 1;
const CONST_BYTES: c_int = 2;
const LOCAL_BYTES: c_int = 3;
const REGISTERS: c_int = 4;
const PTX_VERSION: c_int = 5;
const BINARY_VERSION: c_int = 6;
const CACHE_CA: c_int = 7;
const MAX_DYNAMIC: c_int = 8;
const CARVEOUT: c_int = 9;
const CLUSTER_POLICY: c_int = 15;

/// A kernel of a module.
pub(crate) struct Function {
    pub(crate) context: Arc<Context>,
    pub(crate) kernel: Kernel,
    /// The module or library that contains it.
    module: Handle,
    name: CString,
    capability: i32,
    resources: OnceLock<Resources>,
    settings: Mutex<Settings>,
}

/// Settings that a program changes.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The most dynamic shared memory of a launch.
    max_dynamic: Option<c_int>,
    carveout: c_int,
    cluster_policy: c_int,
    /// The settings of `cuFuncSetBlockShape`, `cuFuncSetSharedSize` and `cuParamSet...`, for `cuLaunch`.
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) params: Vec<u8>,
}

/// The kernel with a name.
pub(crate) fn find_kernel(module: &ptxvm::Module, name: &str) -> Option<Kernel> {
    module.kernel(name).ok()
}

impl Function {
    /// A function.
    pub(crate) fn new(context: Arc<Context>, module: Handle, kernel: Kernel, capability: i32) -> Self {
        // Names of PTX contain no zero.
        let name = CString::new(kernel.name()).unwrap_or_default();
        let settings = Settings {
            max_dynamic: None,
            carveout: -1,
            cluster_policy: 0,
            block: [1; 3],
            shared: 0,
            params: Vec::new(),
        };
        Self {
            context,
            kernel,
            module,
            name,
            capability,
            resources: OnceLock::new(),
            settings: Mutex::new(settings),
        }
    }

    /// The resources that it needs.
    pub(crate) fn resources(&self) -> &Resources {
        self.resources.get_or_init(|| self.kernel.resources())
    }

    /// The module or library that contains it.
    pub(crate) fn module(&self) -> Handle {
        self.module
    }

    /// Limits of its device.
    pub(crate) fn limits(&self) -> Limits {
        Limits::of(self.capability)
    }

    /// The program's settings.
    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Most threads of a CTA, by directives and registers.
    pub(crate) fn max_threads(&self) -> u32 {
        let resources = self.resources();
        let by_registers = 65536 / resources.registers.next_multiple_of(8).max(16) / 32 * 32;
        resources.max_threads.unwrap_or(1024).min(1024).min(by_registers.max(32))
    }

    /// Most dynamic shared memory of a launch.
    pub(crate) fn max_dynamic(&self) -> u32 {
        let fixed = self.resources().shared;
        match self.settings().max_dynamic {
            Some(bytes) => bytes as u32,
            None => (SHARED as u32).saturating_sub(fixed),
        }
    }

    fn attribute(&self, number: c_int) -> Result<c_int, Status> {
        let resources = self.resources();
        let number_of = |bytes: u64| c_int::try_from(bytes).unwrap_or(c_int::MAX);
        Ok(match number {
            MAX_THREADS => self.max_threads() as c_int,
            SHARED_BYTES => resources.shared as c_int,
            CONST_BYTES => number_of(resources.constant),
            LOCAL_BYTES => number_of(resources.local),
            REGISTERS => resources.registers as c_int,
            // Drivers report the architecture that the text was compiled for, not its `.version`. CUB
            // compares it with the architectures that it was compiled for.
            PTX_VERSION => c_int::from(resources.target),
            BINARY_VERSION => self.capability,
            CACHE_CA => 0,
            MAX_DYNAMIC => self.max_dynamic() as c_int,
            CARVEOUT => self.settings().carveout,
            CLUSTER_POLICY => self.settings().cluster_policy,
            // Cluster attributes: no cluster size is required.
            10..=14 | 16 | 17 => 0,
            _ => return Err(Status::InvalidValue),
        })
    }

    fn set(&self, number: c_int, value: c_int) -> Answer {
        let limits = Limits::of(self.capability);
        let fixed = self.resources().shared as c_int;
        let mut settings = self.settings();
        match number {
            MAX_DYNAMIC if value < 0 || value > limits.shared_optin.saturating_sub(fixed) => {
                return Err(Status::InvalidValue);
            }
            MAX_DYNAMIC => settings.max_dynamic = Some(value),
            CARVEOUT if !(-1..=100).contains(&value) => return Err(Status::InvalidValue),
            CARVEOUT => settings.carveout = value,
            CLUSTER_POLICY if !(0..=2).contains(&value) => return Err(Status::InvalidValue),
            CLUSTER_POLICY => settings.cluster_policy = value,
            // Cluster attributes can only keep their value, 0.
            10..=14 if value == 0 => {}
            _ => return Err(Status::InvalidValue),
        }
        Ok(())
    }
}

fn function(handle: Handle) -> Result<(&'static Driver, Arc<Function>), Status> {
    let driver = driver()?;
    Ok((driver, driver.functions.get(handle)?))
}

fn parameter(handle: Handle, index: usize, offset: Out<usize>, bytes: Out<usize>) -> Answer {
    let (_, function) = function(handle)?;
    offset.check()?;
    let slot = function.kernel.params().get(index).ok_or(Status::InvalidValue)?;
    offset.set(slot.offset)?;
    bytes.set_optional(slot.bytes)
}

fn set_params(handle: Handle, offset: c_int, bytes: &[u8]) -> Answer {
    let (_, function) = function(handle)?;
    let start = usize::try_from(offset).map_err(|_| Status::InvalidValue)?;
    let end = start.checked_add(bytes.len()).filter(|end| *end <= 1 << 16).ok_or(Status::InvalidValue)?;
    let mut settings = function.settings();
    if settings.params.len() < end {
        settings.params.resize(end, 0);
    }
    settings.params[start..end].copy_from_slice(bytes);
    Ok(())
}

/// Checks a preference for L1 and shared memory.
fn check_cache(config: c_uint) -> Answer {
    if config <= 3 { Ok(()) } else { Err(Status::InvalidValue) }
}

entries! { ENTRIES;
    /// An attribute of a function.
    fn cuFuncGetAttribute(value: Out<c_int>, attribute: c_int, handle: Handle) {
        current()?;
        value.check()?;
        value.set(function(handle)?.1.attribute(attribute)?)
    }

    /// Sets an attribute of a function.
    fn cuFuncSetAttribute(handle: Handle, attribute: c_int, value: c_int) {
        current()?;
        function(handle)?.1.set(attribute, value)
    }

    /// Sets the preferred split of L1 and shared memory, which has no effect.
    fn cuFuncSetCacheConfig(handle: Handle, config: c_uint) {
        function(handle)?;
        check_cache(config)
    }

    /// Sets the width of banks of shared memory, which has no effect.
    fn cuFuncSetSharedMemConfig(handle: Handle, config: c_uint) {
        function(handle)?;
        if config <= 2 { Ok(()) } else { Err(Status::InvalidValue) }
    }

    /// The module of a function.
    fn cuFuncGetModule(module: Out<Handle>, handle: Handle) {
        module.check()?;
        module.set(function(handle)?.1.module)
    }

    /// The name of a function.
    fn cuFuncGetName(name: Out<Pointer>, handle: Handle) {
        name.check()?;
        let (_, function) = function(handle)?;
        name.set(Pointer::of_bytes(function.name.as_bytes_with_nul()))
    }

    /// Offset and size of a parameter.
    fn cuFuncGetParamInfo(handle: Handle, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        parameter(handle, index, offset, bytes)
    }

    /// The number of parameters.
    fn cuFuncGetParamCount(handle: Handle, count: Out<usize>) {
        count.check()?;
        count.set(function(handle)?.1.kernel.params().len())
    }

    /// Whether a function's code is loaded. It always is.
    fn cuFuncIsLoaded(state: Out<c_int>, handle: Handle) {
        function(handle)?;
        state.set(1)
    }

    /// Loads a function's code. It always is loaded.
    fn cuFuncLoad(handle: Handle) {
        function(handle).map(|_| ())
    }

    /// The function of a kernel in the current context.
    fn cuKernelGetFunction(out: Out<Handle>, kernel: Handle) {
        out.check()?;
        function(kernel)?;
        out.set(kernel)
    }

    /// The library of a kernel.
    fn cuKernelGetLibrary(library: Out<Handle>, kernel: Handle) {
        library.check()?;
        library.set(function(kernel)?.1.module)
    }

    /// The name of a kernel.
    fn cuKernelGetName(name: Out<Pointer>, kernel: Handle) {
        name.check()?;
        let (_, function) = function(kernel)?;
        name.set(Pointer::of_bytes(function.name.as_bytes_with_nul()))
    }

    /// An attribute of a kernel.
    fn cuKernelGetAttribute(value: Out<c_int>, attribute: c_int, kernel: Handle, device: c_int) {
        value.check()?;
        crate::init::check_device(device)?;
        value.set(function(kernel)?.1.attribute(attribute)?)
    }

    /// Sets an attribute of a kernel.
    fn cuKernelSetAttribute(attribute: c_int, value: c_int, kernel: Handle, device: c_int) {
        crate::init::check_device(device)?;
        function(kernel)?.1.set(attribute, value)
    }

    /// Sets the preferred split of L1 and shared memory, which has no effect.
    fn cuKernelSetCacheConfig(kernel: Handle, config: c_uint, device: c_int) {
        crate::init::check_device(device)?;
        function(kernel)?;
        check_cache(config)
    }

    /// Offset and size of a parameter.
    fn cuKernelGetParamInfo(kernel: Handle, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        parameter(kernel, index, offset, bytes)
    }

    /// The number of parameters.
    fn cuKernelGetParamCount(kernel: Handle, count: Out<usize>) {
        count.check()?;
        count.set(function(kernel)?.1.kernel.params().len())
    }

    /// Sets the CTA shape of `cuLaunch`.
    fn cuFuncSetBlockShape(handle: Handle, x: c_int, y: c_int, z: c_int) {
        let (_, function) = function(handle)?;
        let shape = [x, y, z].map(|n| u32::try_from(n).unwrap_or(0));
        if shape.contains(&0) || shape.iter().map(|n| u64::from(*n)).product::<u64>() > 1024 {
            return Err(Status::InvalidValue);
        }
        function.settings().block = shape;
        Ok(())
    }

    /// Sets the dynamic shared memory of `cuLaunch`.
    fn cuFuncSetSharedSize(handle: Handle, bytes: c_uint) {
        let (_, function) = function(handle)?;
        function.settings().shared = bytes;
        Ok(())
    }

    /// Sets the size of the parameters of `cuLaunch`.
    fn cuParamSetSize(handle: Handle, bytes: c_uint) {
        let (_, function) = function(handle)?;
        if bytes > 1 << 16 {
            return Err(Status::InvalidValue);
        }
        function.settings().params.resize(bytes as usize, 0);
        Ok(())
    }

    /// Sets a parameter of `cuLaunch`.
    fn cuParamSeti(handle: Handle, offset: c_int, value: c_uint) {
        set_params(handle, offset, &value.to_le_bytes())
    }

    /// Sets a parameter of `cuLaunch`.
    fn cuParamSetf(handle: Handle, offset: c_int, value: f32) {
        set_params(handle, offset, &value.to_le_bytes())
    }

    /// Sets a parameter of `cuLaunch`.
    fn cuParamSetv(handle: Handle, offset: c_int, value: Pointer, bytes: c_uint) {
        if bytes > 1 << 16 {
            return Err(Status::InvalidValue);
        }
        let bytes = value.values::<u8>().all(bytes as usize)?;
        set_params(handle, offset, &bytes)
    }

    /// A function that host and device share. There are none.
    fn cuLibraryGetUnifiedFunction(_function: Out<Pointer>, _library: Handle, _name: Text) {
        Err(Status::NotFound)
    }
}
