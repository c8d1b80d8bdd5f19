//! Launches, attributes of kernels, occupancy.
//!
//! Invariant: if the driver rejects a launch because of its sizes, the error is
//! `cudaErrorInvalidConfiguration`.

use crate::device::{check, context};
use crate::entry::{DefaultStream, runtime};
use crate::error::{Answer, Status, of_driver};
use crate::ffi::{Dim3, Handle, In, Out, Text};
use crate::registry::{self, function};
use crate::structures::DriverConfig;
use crate::version::is_11;
use std::cell::Cell;
use std::ffi::{c_int, c_uint};

/// The configuration of the thread's next launch: `kernel<<<grid, block, shared, stream>>>`.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Handle,
}

/// Most configurations that a thread has pushed and not popped: one for a launch, and one for each launch in
/// its arguments. With more, the oldest are dropped.
const PUSHED_MAX: usize = 8;

thread_local! {
    /// A ring of the last configurations, and the number pushed. It has no destructor, so launches work while
    /// the thread ends.
    static PUSHED: Cell<([Option<Configuration>; PUSHED_MAX], usize)> = const { Cell::new(([None; PUSHED_MAX], 0)) };
}

fn push(configuration: Configuration) {
    let (mut list, count) = PUSHED.get();
    list[count % PUSHED_MAX] = Some(configuration);
    PUSHED.set((list, count.wrapping_add(1)));
}

fn pop() -> Option<Configuration> {
    let (mut list, count) = PUSHED.get();
    let last = count.wrapping_sub(1);
    let popped = list[last % PUSHED_MAX].take()?;
    PUSHED.set((list, last));
    Some(popped)
}

/// `cudaLaunchConfig_t`
#[derive(Clone, Copy)]
#[repr(C)]
struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Handle,
    attributes: usize,
    count: c_uint,
}

impl LaunchConfig {
    fn to_driver(self, default: DefaultStream) -> Result<DriverConfig, Status> {
        let LaunchConfig { grid, block, shared, stream, attributes, count } = self;
        let shared = c_uint::try_from(shared).map_err(|_| Status::INVALID_VALUE)?;
        Ok(DriverConfig { grid, block, shared, stream: default.or(stream), attributes, count })
    }
}

fn launch(kernel: Handle, with: Configuration, args: Handle, cooperative: bool) -> Answer {
    let driver = context()?;
    let function = function(kernel)?;
    let Configuration { grid: g, block: b, shared, stream } = with;
    let shared = c_uint::try_from(shared).map_err(|_| Status::INVALID_VALUE)?;
    let status = if cooperative {
        (driver.cuLaunchCooperativeKernel)(function, g.x, g.y, g.z, b.x, b.y, b.z, shared, stream, args)
    } else {
        (driver.cuLaunchKernel)(function, g.x, g.y, g.z, b.x, b.y, b.z, shared, stream, args, Handle(0))
    };
    of_launch(status, g, b)
}

/// The answer for the driver's status of a launch. The runtime has an error of its own for wrong sizes.
fn of_launch(status: c_int, g: Dim3, b: Dim3) -> Answer {
    let empty = [g.x, g.y, g.z, b.x, b.y, b.z].contains(&0);
    let threads = u64::from(b.x).saturating_mul(b.y.into()).saturating_mul(b.z.into());
    if status == Status::INVALID_VALUE.0 && (empty || threads > 1024) {
        return Err(Status::INVALID_CONFIGURATION);
    }
    of_driver(status)
}

fn launch_ex(default: DefaultStream, config: In<LaunchConfig>, kernel: Handle, args: Handle) -> Answer {
    let driver = context()?;
    let config = config.get()?.to_driver(default)?;
    let status = (driver.cuLaunchKernelEx)(&config, function(kernel)?, args, Handle(0));
    of_launch(status, config.grid, config.block)
}

/// Pushes the configuration of the next launch.
#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: Handle) -> c_uint {
    push(Configuration { grid, block, shared, stream });
    0
}

/// The driver's numbers of the attributes in `cudaFuncAttributes`: of its sizes of shared, constant and local
/// memory, and of its integers up to what is reserved. These are threads, registers, PTX version, binary
/// version, cache mode, dynamic shared memory, carveout, and six attributes of clusters.
const SIZES: [c_int; 3] = [1, 2, 3];
const NUMBERS: [c_int; 13] = [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 14];
/// The number of integers in CUDA 11: those without clusters.
const NUMBERS_11: usize = 7;

runtime! {
    /// Pops the configuration that was pushed last.
    fn __cudaPopCallConfiguration(grid: Out<Dim3>, block: Out<Dim3>, shared: Out<usize>, stream: Out<Handle>) {
        let popped = pop().ok_or(Status::MISSING_CONFIGURATION)?;
        grid.set(popped.grid)?;
        block.set(popped.block)?;
        shared.set(popped.shared)?;
        stream.set(popped.stream)
    }

    /// Launches a kernel.
    fn cudaLaunchKernel | cudaLaunchKernel_ptsz as default (
        kernel: Handle, grid: Dim3, block: Dim3, args: Handle, shared: usize, stream: Handle,
    ) {
        launch(kernel, Configuration { grid, block, shared, stream: default.or(stream) }, args, false)
    }

    /// Launches a kernel.
    fn __cudaLaunchKernel | __cudaLaunchKernel_ptsz as default (
        kernel: Handle, grid: Dim3, block: Dim3, args: Handle, shared: usize, stream: Handle,
    ) {
        launch(kernel, Configuration { grid, block, shared, stream: default.or(stream) }, args, false)
    }

    /// Launches a kernel whose CTAs are all resident at once.
    fn cudaLaunchCooperativeKernel | cudaLaunchCooperativeKernel_ptsz as default (
        kernel: Handle, grid: Dim3, block: Dim3, args: Handle, shared: usize, stream: Handle,
    ) {
        launch(kernel, Configuration { grid, block, shared, stream: default.or(stream) }, args, true)
    }

    /// Launches a kernel, with attributes.
    fn cudaLaunchKernelExC | cudaLaunchKernelExC_ptsz as default (config: In<LaunchConfig>, kernel: Handle, args: Handle) {
        launch_ex(default, config, kernel, args)
    }

    /// Calls a host function in a stream.
    fn cudaLaunchHostFunc | cudaLaunchHostFunc_ptsz as default (stream: Handle, function: Handle, data: Handle) {
        let driver = context()?;
        of_driver((driver.cuLaunchHostFunc)(default.or(stream), function, data))
    }

    /// Calls a host function in a stream. The mode of synchronization has no effect.
    fn cudaLaunchHostFunc_v2 | cudaLaunchHostFunc_v2_ptsz as default (
        stream: Handle, function: Handle, data: Handle, mode: c_uint,
    ) {
        let driver = context()?;
        of_driver((driver.cuLaunchHostFunc_v2)(default.or(stream), function, data, mode))
    }

    /// The handle of a kernel.
    fn cudaGetKernel(kernel: Out<Handle>, stub: Handle) {
        kernel.set(function(stub)?)
    }

    /// The handle of a kernel.
    fn __cudaGetKernel(kernel: Out<Handle>, stub: Handle) {
        kernel.set(function(stub)?)
    }

    /// The handle of a kernel.
    fn cudaGetFuncBySymbol(kernel: Out<Handle>, stub: Handle) {
        kernel.set(function(stub)?)
    }

    /// The name of a kernel. The text lives as long as the process.
    fn cudaFuncGetName(name: Out<usize>, stub: Handle) {
        name.set(registry::name(stub).ok_or(Status::INVALID_DEVICE_FUNCTION)?)
    }

    /// The resources that a kernel needs.
    fn cudaFuncGetAttributes(attributes: Out<u8>, stub: Handle) {
        let driver = context()?;
        let function = function(stub)?;
        let get = |attribute: c_int| {
            let mut value = 0;
            of_driver((driver.cuFuncGetAttribute)(&mut value, attribute, function)).map(|()| value)
        };
        let mut found = Vec::new();
        for attribute in SIZES {
            found.extend((get(attribute)? as usize).to_ne_bytes());
        }
        let numbers = if is_11() { &NUMBERS[..NUMBERS_11] } else { &NUMBERS[..] };
        for attribute in numbers {
            // Older drivers do not know the attributes of clusters.
            let value = if *attribute <= 9 { get(*attribute)? } else { get(*attribute).unwrap_or(0) };
            found.extend(value.to_ne_bytes());
        }
        attributes.set_all(&found)
    }

    /// Sets an attribute of a kernel. The numbers are the driver's.
    fn cudaFuncSetAttribute(stub: Handle, attribute: c_int, value: c_int) {
        let driver = context()?;
        of_driver((driver.cuFuncSetAttribute)(function(stub)?, attribute, value))
    }

    /// The preferred cache of a kernel.
    fn cudaFuncSetCacheConfig(stub: Handle, config: c_int) {
        let driver = context()?;
        of_driver((driver.cuFuncSetCacheConfig)(function(stub)?, config))
    }

    /// Accepts the width of banks of shared memory. It has no effect.
    fn cudaFuncSetSharedMemConfig(stub: Handle, _config: c_int) {
        function(stub).map(|_| ())
    }

    /// The number of a kernel's CTAs that are resident on a multiprocessor.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks: Handle, stub: Handle, threads: c_int, shared: usize) {
        let driver = context()?;
        let function = function(stub)?;
        of_driver((driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(blocks, function, threads, shared, 0))
    }

    /// The number of a kernel's CTAs that are resident on a multiprocessor.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Handle, stub: Handle, threads: c_int, shared: usize, flags: c_uint,
    ) {
        let driver = context()?;
        let function = function(stub)?;
        of_driver((driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(blocks, function, threads, shared, flags))
    }

    /// The number of a kernel's clusters that are resident on the device.
    fn cudaOccupancyMaxActiveClusters(count: Handle, stub: Handle, config: In<LaunchConfig>) {
        let driver = context()?;
        let config = config.get()?.to_driver(DefaultStream::Legacy)?;
        of_driver((driver.cuOccupancyMaxActiveClusters)(count, function(stub)?, &config))
    }

    /// The most CTAs of a kernel's clusters.
    fn cudaOccupancyMaxPotentialClusterSize(size: Handle, stub: Handle, config: In<LaunchConfig>) {
        let driver = context()?;
        let config = config.get()?.to_driver(DefaultStream::Legacy)?;
        of_driver((driver.cuOccupancyMaxPotentialClusterSize)(size, function(stub)?, &config))
    }

    /// The most dynamic shared memory with which `blocks` CTAs fit on a multiprocessor.
    fn cudaOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, stub: Handle, blocks: c_int, threads: c_int) {
        let driver = context()?;
        let function = function(stub)?;
        let most = |shared: usize| {
            let mut found: c_int = 0;
            let place = Handle(Out::to(&mut found).address());
            let with = driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags;
            of_driver(with(place, function, threads, shared, 0)).map(|()| found)
        };
        if blocks <= 0 || most(0)? < blocks {
            return Err(Status::INVALID_VALUE);
        }
        // More shared memory never allows more CTAs.
        let (mut fits, mut beyond) = (0, 256 << 10);
        while beyond - fits > 1 {
            let middle = (fits + beyond) / 2;
            if most(middle).is_ok_and(|found| found >= blocks) { fits = middle } else { beyond = middle }
        }
        bytes.set(fits)
    }

    /// Sets an attribute of a kernel in the current context, after a check of the device's number.
    fn cudaKernelSetAttributeForDevice(kernel: Handle, attribute: c_int, value: c_int, device: c_int) {
        let driver = context()?;
        check(driver, device)?;
        of_driver((driver.cuFuncSetAttribute)(function(kernel)?, attribute, value))
    }

    /// A function of the runtime by name: not supported. Programs find them with the loader.
    fn __cudaGetProcAddress(_name: Text, place: Out<usize>) {
        place.set_optional(0)?;
        Err(Status::NOT_SUPPORTED)
    }
}
