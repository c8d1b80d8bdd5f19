//! A device: its memory, and methods to load modules and allocate arrays.

use crate::engine::Jit;
use crate::stream::Executor;
use crate::{
    Array, Buffer, CodeCache, Cpu, Descriptor, Element, Error, ErrorKind, Format, Kernel, Launch, Module,
    Object, Report, Shape, Target,
};
use ptx::check::CheckOptions;
use ptx::check::module::AddressSize;
use ptx_exec::mem::{Class, Fill, Memory, MemoryError};
use ptx_sanitize::{Finding, Sanitizer, Suppressions, Tool};
use std::sync::Arc;

/// Alignment of a buffer in bytes, as CUDA guarantees.
const BUFFER_ALIGN: u64 = 256;

fn rejected(diagnostics: Vec<ptx::diag::Diagnostic>, source: Arc<crate::Source>) -> Error {
    ErrorKind::Rejected(crate::Rejection { diagnostics, source }).into()
}

/// The state that buffers and modules share and keep alive.
pub(crate) struct Device {
    pub(crate) memory: Arc<Memory>,
    pub(crate) jit: Arc<Jit>,
    pub(crate) executor: Arc<Executor>,
    /// The observers of its launches.
    pub(crate) sanitizer: Option<Arc<Sanitizer>>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("address_size", &self.memory.address_size()).finish()
    }
}

impl Device {
    pub(crate) fn alloc(&self, label: &str, bytes: u64) -> Result<u64, Error> {
        Ok(self.memory.alloc(Class::Global, bytes, BUFFER_ALIGN, label)?)
    }

    pub(crate) fn alloc_common(&self, label: &str, bytes: u64) -> Result<u64, Error> {
        Ok(self.memory.alloc_common(bytes, BUFFER_ALIGN, label)?)
    }

    pub(crate) fn free(&self, address: u64) {
        // The kernel may have freed it with `free`.
        let _already_freed = self.memory.free(address);
    }

    pub(crate) fn copy_in(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.memory.write(address, bytes)?)
    }

    pub(crate) fn copy_out(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        Ok(self.memory.read(address, bytes)?)
    }
}

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Reserve
            | MemoryError::OutOfMemory { .. }
            | MemoryError::Host { .. }
            | MemoryError::Share => ErrorKind::Machine(error.to_string()).into(),
            MemoryError::NotAllocated { .. }
            | MemoryError::OutOfBounds { .. }
            | MemoryError::Mapping { .. } => Error::caller(error.to_string()),
        }
    }
}

/// The options of a device.
#[derive(Clone, Debug)]
pub struct Options {
    /// Width of its addresses.
    pub addresses: AddressSize,
    /// The level of this machine's vector instructions for native code; `None`: the highest.
    pub cpu: Option<Cpu>,
    /// The processor for which native code is generated, instead of this machine's; overrides `cpu`.
    pub target: Option<Target>,
    /// How many warps of a CTA native code executes as one coarse warp, where possible; 0: one thread at a
    /// time, where possible; `None`: chosen by cost.
    pub team: Option<u32>,
    /// The cache of native code for later processes.
    pub cache: CodeCache,
    /// Sanitizers for all launches, which then run one at a time. With racecheck they run on one OS thread,
    /// and with racecheck and other tools in the interpreter.
    pub sanitize: Option<ptx_sanitize::Options>,
    /// What memory begins with that the manual leaves undefined: buffers, shared and local memory, the device
    /// heap. `None`: zeros.
    pub fill: Option<Fill>,
}

impl Options {
    /// [`Options::default`] with this sanitizer. [`Vm::findings`] returns its findings, so a test can assert
    /// that there are none:
    ///
    /// ```
    /// use ptxvm::{Arg, Launch, Options, Tool, Vm};
    ///
    /// // Each thread stores behind the element that it owns.
    /// let wrong = "
    /// .version 6.4
    /// .target sm_70
    /// .address_size 64
    /// .visible .entry fill(.param .u64 data)
    /// {
    ///     .reg .b32 %r<2>;
    ///     .reg .b64 %rd<4>;
    ///     ld.param.u64 %rd1, [data];
    ///     mov.u32 %r1, %tid.x;
    ///     mul.wide.u32 %rd2, %r1, 4;
    ///     add.s64 %rd3, %rd1, %rd2;
    ///     st.global.u32 [%rd3+4], %r1;
    ///     ret;
    /// }";
    /// let findings = |ptx: &str| {
    ///     let vm = Vm::with(Options::tools(Tool::ALL))?;
    ///     let kernel = vm.load("fill.ptx", ptx)?.kernel("fill")?;
    ///     let data = vm.zeros::<u32>(32)?;
    ///     let launch = Launch::new([1, 1, 1], [32, 1, 1]).args(&kernel, &[Arg::buffer(&data)])?;
    ///     vm.launch(&kernel, &launch)?;
    ///     vm.find_leaks();
    ///     Ok::<_, ptxvm::Error>(vm.findings())
    /// };
    /// let found = findings(wrong)?;
    /// assert_eq!((found.len(), found[0].kind.name(), found[0].line), (1, "out-of-bounds", Some(13)));
    ///
    /// let found = findings(&wrong.replace("[%rd3+4]", "[%rd3]"))?;
    /// assert!(found.is_empty(), "{}", ptxvm::findings_text(&found));
    /// # Ok::<(), ptxvm::Error>(())
    /// ```
    pub fn tool(tool: Tool) -> Self {
        Self::default().and_tool(tool)
    }

    /// As [`Options::tool`], with several sanitizers. Without any, launches are not watched.
    pub fn tools(tools: impl IntoIterator<Item = Tool>) -> Self {
        tools.into_iter().fold(Self::default(), Self::and_tool)
    }

    /// Adds another sanitizer.
    pub fn and_tool(mut self, tool: Tool) -> Self {
        self.sanitize.get_or_insert_with(|| ptx_sanitize::Options::new([])).tools.push(tool);
        self
    }

    /// The same without the findings that these rules cover. They change nothing where no tool watches.
    pub fn suppress(mut self, rules: Suppressions) -> Self {
        if let Some(sanitize) = &mut self.sanitize {
            sanitize.suppressions = rules;
        }
        self
    }
}

impl Default for Options {
    /// 64-bit addresses, this machine's processor, no cache on disk.
    fn default() -> Self {
        Self {
            addresses: AddressSize::Bits64,
            cpu: None,
            target: None,
            team: None,
            cache: CodeCache::Off,
            sanitize: None,
            fill: None,
        }
    }
}

/// A virtual device.
///
/// It is cheap to create: memory is reserved as addresses and committed on first use. Modules, kernels and
/// buffers keep the parts alive that they need.
#[derive(Debug)]
pub struct Vm {
    pub(crate) device: Arc<Device>,
}

impl Vm {
    /// A device with 64-bit addresses.
    ///
    /// # Errors
    /// Of the machine, if the system grants no range of addresses.
    pub fn new() -> Result<Self, Error> {
        Self::for_addresses(AddressSize::Bits64)
    }

    /// A device for modules with that `.address_size`. A device with 32-bit addresses lies below 4 GiB.
    ///
    /// # Errors
    /// Of the machine, if the system grants no such range of addresses.
    pub fn for_addresses(size: AddressSize) -> Result<Self, Error> {
        Self::with(Options { addresses: size, ..Options::default() })
    }

    /// As [`Vm::for_addresses`], with native code for that level of processor; `None`: the highest level of
    /// this machine.
    ///
    /// # Errors
    /// As [`Vm::for_addresses`].
    pub fn with_cpu(size: AddressSize, cpu: Option<Cpu>) -> Result<Self, Error> {
        Self::with(Options { addresses: size, cpu, ..Options::default() })
    }

    /// A device with these options.
    ///
    /// # Errors
    /// As [`Vm::for_addresses`].
    pub fn with(options: Options) -> Result<Self, Error> {
        let Options { addresses, cpu, target, team, cache, sanitize, fill } = options;
        let memory = Memory::new(addresses)?;
        if let Some(fill) = fill {
            // The memory is new, so it has no pattern yet.
            let _first = memory.set_fill(fill);
        }
        let sanitizer = sanitize.map(Sanitizer::new);
        if let Some(sanitizer) = &sanitizer {
            // The memory is new, so no observers are attached.
            let _first = memory.watch(sanitizer.watch());
        }
        let jit = Arc::new(Jit::new(target.or(cpu.map(Into::into)), team, cache));
        Ok(Self { device: Arc::new(Device { memory, jit, executor: Arc::default(), sanitizer }) })
    }

    /// The findings of the sanitizers so far, in order of their first occurrence. Empty without sanitizers.
    pub fn findings(&self) -> Vec<Finding> {
        self.device.sanitizer.as_ref().map_or_else(Vec::new, |sanitizer| sanitizer.findings())
    }

    /// The number of different findings that suppressions cover.
    pub fn suppressed_findings(&self) -> usize {
        self.device.sanitizer.as_ref().map_or(0, |sanitizer| sanitizer.suppressed())
    }

    /// Reports the end of the program to the sanitizers: memory from `malloc` of kernels that is not freed
    /// becomes a leak, which [`Vm::findings`] lists.
    pub fn find_leaks(&self) {
        if let Some(sanitizer) = &self.device.sanitizer {
            sanitizer.end();
        }
    }

    /// Whether the sanitizers have reached their limit of findings; launches are then cancelled, unless the
    /// options say otherwise.
    pub fn findings_are_full(&self) -> bool {
        self.device.sanitizer.as_ref().is_some_and(|sanitizer| sanitizer.is_full())
    }

    /// What watches the launches of this device, if anything does.
    pub fn sanitizer(&self) -> Option<&Arc<Sanitizer>> {
        self.device.sanitizer.as_ref()
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.device.memory
    }

    /// Checks a PTX text and loads it. `name` is for diagnostics and traps.
    ///
    /// # Errors
    /// [`ErrorKind::Rejected`] with all diagnostics and the text, and the errors of [`Vm::load_module`].
    /// Warnings about an accepted text are in [`Module::warnings`].
    pub fn load(&self, name: &str, text: &str) -> Result<Module, Error> {
        self.load_with(name, text, &CheckOptions::default())
    }

    /// As [`Vm::load`], with options.
    ///
    /// # Errors
    /// As [`Vm::load`].
    pub fn load_with(&self, name: &str, text: &str, options: &CheckOptions) -> Result<Module, Error> {
        let checked = ptx::check::check(name, text, options);
        match checked.module {
            Some(module) => Module::load(&self.device, module, checked.diagnostics),
            None => Err(rejected(checked.diagnostics, checked.source)),
        }
    }

    /// Checks PTX texts, each with its name, links them, and loads the result as one module.
    ///
    /// # Errors
    /// As [`Vm::load`], and [`ErrorKind::Rejected`] if the modules are incompatible. Places of these
    /// diagnostics refer to the source of [`link`](crate::link), which renders them.
    pub fn link(&self, texts: &[(&str, &str)]) -> Result<Module, Error> {
        let checked = ptx::check::link(texts, &CheckOptions::default());
        match checked.module {
            Some(module) => Module::load(&self.device, module, checked.diagnostics),
            None => Err(rejected(checked.diagnostics, checked.source)),
        }
    }

    /// Loads a checked module: places its variables, and checks that everything in it is implemented.
    ///
    /// # Errors
    /// [`ErrorKind::Rejected`] if it uses a feature that is not implemented, or an undefined external symbol;
    /// of the caller, if its address size differs from the device's; of the machine, if memory is exhausted.
    pub fn load_module(&self, module: ptx::check::module::Module) -> Result<Module, Error> {
        Module::load(&self.device, module, Vec::new())
    }

    /// A copy of `data` in device memory.
    ///
    /// # Errors
    /// Of the machine, if memory is exhausted.
    pub fn buffer<T: Element>(&self, data: &[T]) -> Result<Buffer<T>, Error> {
        self.named_buffer("buffer", data)
    }

    /// As [`Vm::buffer`], with a name for traps.
    ///
    /// # Errors
    /// As [`Vm::buffer`].
    pub fn named_buffer<T: Element>(&self, name: &str, data: &[T]) -> Result<Buffer<T>, Error> {
        let buffer = Buffer::new(&self.device, name, size_of_val(data) as u64, data.len())?;
        buffer.write(data)?;
        Ok(buffer)
    }

    /// `len` zeros in device memory.
    ///
    /// # Errors
    /// As [`Vm::buffer`].
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>, Error> {
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64);
        let bytes = bytes.ok_or_else(|| Error::caller("a buffer larger than the address space"))?;
        self.zeroed(Buffer::new(&self.device, "buffer", bytes, len)?, bytes)
    }

    /// `bytes` zero bytes in device memory, with a name for traps.
    ///
    /// # Errors
    /// As [`Vm::buffer`].
    pub fn named_zeros(&self, name: &str, bytes: u64) -> Result<Buffer<u8>, Error> {
        let len =
            usize::try_from(bytes).map_err(|_| Error::caller("a buffer larger than the address space"))?;
        self.zeroed(Buffer::new(&self.device, name, bytes, len)?, bytes)
    }

    /// `bytes` uninitialised bytes in device memory, with a name for reports. They read as zero, and
    /// initcheck reports a kernel that reads them before they are written.
    ///
    /// # Errors
    /// As [`Vm::buffer`].
    pub fn named_unwritten(&self, name: &str, bytes: u64) -> Result<Buffer<u8>, Error> {
        let len =
            usize::try_from(bytes).map_err(|_| Error::caller("a buffer larger than the address space"))?;
        Buffer::new(&self.device, name, bytes, len)
    }

    /// Reports the zeros of a new buffer to observers, as a write of the host.
    fn zeroed<T: Element>(&self, buffer: Buffer<T>, bytes: u64) -> Result<Buffer<T>, Error> {
        if self.device.sanitizer.is_some() || self.memory().has_fill() {
            self.memory().fill(buffer.address(), 0, bytes)?;
        }
        Ok(buffer)
    }

    /// Allocates zeroed texels of this shape and format, for textures and surfaces.
    ///
    /// # Errors
    /// Of the caller, if the shape is invalid; of the machine, if memory is exhausted.
    pub fn array(&self, shape: Shape, format: Format) -> Result<Array, Error> {
        Array::new(&self.device, shape, format)
    }

    /// A buffer as texels: rows of a 1d or 2d image, `pitch` bytes apart. The buffer keeps the memory:
    /// accesses after it is dropped trap.
    ///
    /// # Errors
    /// Of the caller, if the image does not fit in the buffer, or rows or pitch are not aligned for the
    /// format.
    pub fn linear_array<T: Element>(
        &self,
        buffer: &Buffer<T>,
        shape: Shape,
        format: Format,
        pitch: u64,
    ) -> Result<Array, Error> {
        Array::linear(&self.device, buffer, shape, format, pitch)
    }

    /// Device memory by address as texels: rows of a 1d or 2d image, `pitch` bytes apart. Accesses after it
    /// is freed trap.
    ///
    /// # Errors
    /// Of the caller, if rows or pitch are not aligned for the format.
    pub fn array_at(&self, address: u64, shape: Shape, format: Format, pitch: u64) -> Result<Array, Error> {
        Array::at(&self.device, address, shape, format, pitch)
    }

    /// A texture, sampler or surface with its own handle, for [`Arg::object`](crate::Arg::object); `name` is
    /// for traps.
    ///
    /// # Errors
    /// Of the machine, if memory is exhausted.
    pub fn object(&self, name: &str, descriptor: Descriptor) -> Result<Object, Error> {
        Object::new(&self.device, name, descriptor)
    }

    /// Runs a kernel, and waits for its end.
    ///
    /// # Errors
    /// [`ErrorKind::Trap`] if the program is at fault; of the caller, if the launch exceeds the limits of the
    /// kernel or of the machine (CTAs of at most 1024 threads, ...).
    pub fn launch(&self, kernel: &Kernel, launch: &Launch) -> Result<Report, Error> {
        kernel.launch(launch)
    }
}
