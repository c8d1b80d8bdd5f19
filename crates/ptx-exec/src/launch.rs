//! Loading a program and launching its kernels: the public interface of the machine.
//!
//! [`LoadedModule::load`] places the variables of a program in a [`Memory`]; [`Kernel::bind`] binds a kernel.
//! A [`Kernel`] can be launched any number of times, from any thread.
//!
//! Invariant: when a launch returns, no thread runs guest code of it. Variables keep their contents from
//! launch to launch and are freed with the module.

use crate::bind::Unimplemented;
use crate::bound::Code;
use crate::fault_context::lines_around;
use crate::layout::{Layout, used_variables};
use crate::mem::{Class, LocalLayout, Memory, MemoryError};
use crate::native::{Native, SideExits, Supply};
use crate::sched::{CtaCache, GridRun, GridTrap, Outcome, run_grid};
use crate::texture::{Descriptor, Opaques};
use crate::trace::{Trace, Tracing};
use crate::trap::Trap;
use crate::warp::{EventCounts, GridShape};
use crate::watch::{Interests, NativeNeeds};
use params::Params;
use ptx::check::module::{AddressSize, FuncId, FunctionKind, Linkage, Loc, Reloc, Symbol, VarId, Variable};
use ptx::ir::Program;
use ptx::isa::{Space, TyKind};
use stack::stack_bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use workspace::Workspace;

mod limits;
mod params;
mod stack;
mod watched;
mod workspace;

/// The default limit of output in bytes. Chosen: more than people read, and less than any machine has.
pub const OUTPUT_BYTES: u64 = 64 << 20;

/// The most OS threads of a launch. Chosen: more than machines have cores.
const THREAD_LIMIT: u32 = 1024;

/// Why a program could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// No linked program defines this external variable.
    Undefined {
        /// Its name.
        name: String,
        /// Its line.
        line: u32,
    },
    /// The program and the memory have different address sizes.
    AddressSize {
        /// The program's.
        program: AddressSize,
        /// The memory's.
        memory: AddressSize,
    },
    /// The initializer of a variable needs an address that exists only during a launch, such as one in shared
    /// memory.
    Initialiser {
        /// The variable.
        name: String,
        /// Its line.
        line: u32,
    },
    /// No memory for this variable.
    Variable {
        /// The variable and its space, as text.
        name: String,
        /// The error.
        error: MemoryError,
    },
    /// No memory for the parts of the module that are not variables.
    Memory(MemoryError),
}

impl From<MemoryError> for LoadError {
    fn from(error: MemoryError) -> Self {
        LoadError::Memory(error)
    }
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoadError::Undefined { name, line } => {
                write!(f, "external variable `{name}` (line {line}) is not defined")
            }
            LoadError::AddressSize { program, memory } => {
                let bits = |size: &AddressSize| size.bytes() * 8;
                write!(
                    f,
                    "the module has {}-bit addresses, the device {}-bit ones",
                    bits(program),
                    bits(memory)
                )
            }
            LoadError::Initialiser { name, line } => {
                write!(f, "the initialiser of `{name}` (line {line}) needs the address of a shared variable")
            }
            LoadError::Variable { name, error } => write!(f, "{name}: {error}"),
            LoadError::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

/// A program whose variables are in memory.
pub struct LoadedModule {
    program: Arc<Program>,
    memory: Arc<Memory>,
    /// By `VarId`: the address of each variable that has one address per module.
    variables: Vec<Option<u64>>,
    /// Textures, samplers and surfaces by name.
    opaque: BTreeMap<String, usize>,
    functions: u64,
    /// By function, what observers want to be told of.
    interests: Arc<[OnceLock<Interests>]>,
}

impl LoadedModule {
    /// Places and initialises the `.global` and `.const` variables of a program.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn load(memory: &Arc<Memory>, program: Arc<Program>) -> Result<Arc<Self>, LoadError> {
        if program.address_size != memory.address_size() {
            return Err(LoadError::AddressSize {
                program: program.address_size,
                memory: memory.address_size(),
            });
        }
        let functions = memory.reserve_functions(program.functions.len() as u32)?;
        let variables = vec![None; program.variables.len()];
        let named = program.variables.iter().enumerate().filter(|(_, v)| v.ty.kind() == TyKind::Opaque);
        // If linked texts define the same name, the first definition is used.
        let opaque = named.rev().map(|(id, variable)| (variable.name.clone(), id)).collect();
        let interests = program.functions.iter().map(|_| OnceLock::new()).collect();
        let memory = Arc::clone(memory);
        let mut module = Self { program, memory, variables, opaque, functions, interests };
        module.place()?;
        module.initialise()?;
        Ok(Arc::new(module))
    }

    fn place(&mut self) -> Result<(), LoadError> {
        for (id, variable) in self.program.variables.iter().enumerate() {
            let (class, space) = match variable.space {
                _ if variable.ty.kind() == TyKind::Opaque => (Class::Texture, "opaque"),
                Space::Global | Space::Tex => (Class::Global, "global"),
                Space::Const => (Class::Const, "constant"),
                Space::Generic | Space::Reg | Space::Sreg | Space::Local | Space::Param | Space::Shared => {
                    continue;
                }
            };
            if variable.linkage == Linkage::Extern {
                return Err(LoadError::Undefined { name: variable.name.clone(), line: self.line(variable) });
            }
            let name = format!("{space} variable `{}`", variable.name);
            let align = u64::from(variable.align);
            let address = match class {
                // All devices and the host share managed variables.
                Class::Global if variable.managed => self.memory.alloc_common(variable.bytes, align, &name),
                _ => self.memory.alloc(class, variable.bytes, align, &name),
            };
            let address = address.map_err(|error| LoadError::Variable { name, error })?;
            self.variables[id] = Some(address);
            let known_zero = self.memory.watched().is_none() && !self.memory.has_fill();
            if !known_zero && class != Class::Texture {
                // A variable without an initializer is zero, which observers must be told. PTX ISA §5.4.4.
                self.memory.fill(address, 0, variable.bytes)?;
            }
            if class == Class::Texture {
                let fields = &variable.fields;
                Opaques(&self.memory).declare(address, &variable.name, variable.ty, fields);
            }
        }
        Ok(())
    }

    /// Binds a texture, sampler or surface to the opaque variable `name`, in place of the previous binding.
    ///
    /// # Errors
    /// A message: the variable does not exist or has another type, or the descriptor's data are in another
    /// memory.
    pub fn bind(&self, name: &str, descriptor: &Descriptor) -> Result<(), String> {
        let found = self.opaque.get(name).and_then(|id| {
            let address = self.variables.get(*id).copied().flatten()?;
            Some((self.program.variables.get(*id)?, address))
        });
        let Some((variable, address)) = found else {
            let names: Vec<_> = self.opaque.keys().map(|name| format!("`{name}`")).collect();
            let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!("no texture, sampler or surface variable `{name}`; the module has {has}"));
        };
        if descriptor.image().is_some_and(|image| !image.memory().is_shared_with(&self.memory)) {
            return Err(format!("the object to bind to `{name}` belongs to another device"));
        }
        if Opaques(&self.memory).bind(address, descriptor.clone()) {
            return Ok(());
        }
        let (has, wants) = (descriptor.ty().name(), variable.ty.name());
        Err(format!("a `.{has}` does not fit `{name}`, which is a `.{wants}`"))
    }

    fn initialise(&self) -> Result<(), LoadError> {
        for (variable, address) in self.program.variables.iter().zip(&self.variables) {
            let (Some(init), Some(address)) = (&variable.init, address) else { continue };
            let bytes =
                &init.bytes[..init.bytes.len().min(usize::try_from(variable.bytes).unwrap_or(usize::MAX))];
            self.memory.write(*address, bytes)?;
            for reloc in &init.relocs {
                let Some(value) = self.symbol_address(reloc) else {
                    return Err(LoadError::Initialiser {
                        name: variable.name.clone(),
                        line: self.line(variable),
                    });
                };
                let value = &value.to_le_bytes()[..usize::from(reloc.bytes).min(8)];
                self.memory.write(*address + reloc.offset, value)?;
            }
        }
        Ok(())
    }

    /// The address of a symbol. A variable with one address per module has the same generic address.
    fn symbol_address(&self, reloc: &Reloc) -> Option<u64> {
        let base = match reloc.symbol {
            Symbol::Var(VarId(id)) => self.variables.get(id as usize).copied().flatten()?,
            Symbol::Func(FuncId(id)) => Memory::function_address(self.functions, id),
        };
        Some(base.wrapping_add_signed(reloc.addend))
    }

    fn line(&self, variable: &Variable) -> u32 {
        self.program.source.line(variable.span)
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The memory that its variables are in.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The address of a `.global` or `.const` variable; `None` for variables of other spaces.
    pub fn variable(&self, var: VarId) -> Option<u64> {
        self.variables.get(var.0 as usize).copied().flatten()
    }

    /// The type of the texture, sampler or surface variable of that name.
    pub fn opaque_named(&self, name: &str) -> Option<ptx::isa::Ty> {
        self.opaque.get(name).and_then(|id| self.program.variables.get(*id)).map(|variable| variable.ty)
    }

    /// The address and size of the `.global` or `.const` variable of that name.
    pub fn variable_named(&self, name: &str) -> Option<(u64, u64)> {
        let mut all = self.program.variables.iter().zip(&self.variables);
        all.find_map(|(variable, address)| {
            let address =
                address.filter(|_| variable.name == name && variable.ty.kind() != TyKind::Opaque)?;
            Some((address, variable.bytes))
        })
    }

    /// The kernels that have a body.
    pub fn kernels(&self) -> impl Iterator<Item = (FuncId, &ptx::ir::Function)> {
        let all = self.program.functions.iter().enumerate();
        all.filter(|(_, f)| f.kind == FunctionKind::Entry && !f.blocks.is_empty())
            .map(|(id, f)| (FuncId(id as u32), f))
    }

    /// The addresses that binding a kernel needs.
    pub fn layout(&self, kernel: FuncId) -> Layout {
        let variables = self.variables.iter().map(|address| address.unwrap_or(0)).collect();
        let functions = 0..self.program.functions.len() as u32;
        let functions = functions.map(|id| Memory::function_address(self.functions, id)).collect();
        Layout::for_kernel(&self.program, kernel, variables, functions)
    }
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        for (variable, address) in self.program.variables.iter().zip(&self.variables) {
            let Some(address) = address else { continue };
            if variable.ty.kind() == TyKind::Opaque {
                Opaques(&self.memory).remove(*address);
            }
            // The program may have freed the variable's address with `free`.
            let _already_gone = self.memory.free(*address);
        }
        self.memory.release_functions(self.functions, self.program.functions.len() as u32);
    }
}

/// A bound kernel, ready to be launched.
pub struct Kernel {
    module: Arc<LoadedModule>,
    kernel: FuncId,
    code: Arc<Code>,
    stack_bytes: u64,
    /// Parameter buffers for later launches.
    buffers: Mutex<Vec<u64>>,
    /// CTAs of earlier launches.
    cta_cache: Arc<CtaCache>,
    /// Offset, size and name of the `.shared` variables, for reports; a dynamic variable has size 0.
    shared: Vec<(u64, u64, String)>,
    /// Bytes of shared memory before the variables, which are reserved for the system.
    reserved: u32,
    native_needs: OnceLock<NativeNeeds>,
    /// Whether stamps have found a conflict in a launch, and later launches do not try.
    conflicts: AtomicBool,
}

/// The configuration of a launch.
#[derive(Clone, Debug)]
pub struct LaunchConfig {
    /// CTAs in each dimension.
    pub grid: [u32; 3],
    /// Threads of a CTA in each dimension.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Whether the CTAs may wait for each other: then `%envreg1` and `%envreg2` hold the address of a
    /// workspace for a grid barrier.
    pub cooperative: bool,
    /// The parameter buffer.
    pub params: Vec<u8>,
    /// OS threads; `None`: one per core.
    pub threads: Option<u32>,
    /// Schedule seed; 0 is the natural order.
    pub seed: u64,
    /// Limit of steps, summed over all warps; the launch traps after them.
    pub max_steps: Option<u64>,
    /// Time limit; the launch traps after it.
    pub timeout: Option<Duration>,
    /// The launch traps soon after this is set to true.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Counts finished CTAs from 0, while the launch runs.
    pub progress: Option<Arc<AtomicU64>>,
    /// A thread to trace. Only instructions in the interpreter are recorded, so pass no native code.
    pub trace: Option<Trace>,
    /// Limit of output in bytes, with 32 bytes more for each CTA that prints. Later output is dropped and
    /// counted.
    pub output_limit: u64,
}

impl LaunchConfig {
    /// A launch without parameters, limits or dynamic shared memory.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            dynamic_shared: 0,
            cooperative: false,
            params: Vec::new(),
            threads: None,
            seed: 0,
            max_steps: None,
            timeout: None,
            cancel: None,
            progress: None,
            trace: None,
            output_limit: OUTPUT_BYTES,
        }
    }
}

/// The result of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchReport {
    /// Instructions that warps executed.
    pub steps: u64,
    /// Executed instructions, counted per active lane.
    pub thread_instructions: u64,
    /// Whether native code could be used: a tool may need the events of a launch.
    pub native: bool,
    /// The part of `steps` that ran in native code.
    pub native_steps: u64,
    /// The part of `native_steps` that the interpreter executed.
    pub fallback_steps: u64,
    /// Where native code left something to the interpreter, why, and how often: most frequent first.
    pub side_exits: Vec<SideExits>,
    /// What the kernel printed, in order of CTA numbers.
    pub output: Vec<u8>,
    /// Bytes of output beyond the limit.
    pub dropped: u64,
    /// CTAs that have finished.
    pub finished: u64,
    /// How often warps triggered each event with `pmevent`.
    pub events: EventCounts,
    /// Time from the start of the first CTA to the end of the last one.
    pub elapsed: Duration,
    /// OS threads.
    pub threads: u32,
}

/// Why a launch failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchError {
    /// The launch does not fit the kernel or the machine, with the reason.
    Invalid(String),
    /// No memory for the launch.
    Memory(MemoryError),
    /// The program is at fault, with its results up to the trap.
    Trap(Box<Trap>, Box<LaunchReport>),
}

impl From<MemoryError> for LaunchError {
    fn from(error: MemoryError) -> Self {
        LaunchError::Memory(error)
    }
}

impl std::fmt::Display for LaunchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LaunchError::Invalid(why) => f.write_str(why),
            LaunchError::Memory(error) => error.fmt(f),
            LaunchError::Trap(trap, _) => trap.fmt(f),
        }
    }
}

impl std::error::Error for LaunchError {}

impl Kernel {
    /// Binds a kernel.
    ///
    /// # Errors
    /// The first instruction that it can reach and that is not implemented.
    pub fn bind(module: &Arc<LoadedModule>, kernel: FuncId) -> Result<Self, Unimplemented> {
        let code = crate::bind::bind(&module.program, kernel, &module.layout(kernel))?;
        Ok(Self::new(module, kernel, code))
    }

    /// A kernel from code that was bound for it with [`LoadedModule::layout`].
    pub fn new(module: &Arc<LoadedModule>, kernel: FuncId, code: Code) -> Self {
        let stack_bytes = stack_bytes(&code, kernel);
        let layout = module.layout(kernel);
        let used = used_variables(&module.program, kernel);
        let shared = used.into_iter().map(|id| (id as usize, &module.program.variables[id as usize]));
        let shared = shared.filter(|(_, variable)| variable.space == Space::Shared);
        let shared = shared.map(|(id, v)| (layout.variables[id], v.bytes, v.name.clone())).collect();
        let (buffers, cta_cache) = (Mutex::default(), Arc::default());
        let (module, code, reserved) = (Arc::clone(module), Arc::new(code), layout.reserved_bytes);
        let native_needs = OnceLock::new();
        let conflicts = AtomicBool::new(false);
        Self {
            module,
            kernel,
            code,
            stack_bytes,
            buffers,
            cta_cache,
            shared,
            reserved,
            native_needs,
            conflicts,
        }
    }

    /// The bound code.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// The end of the last static `.shared` variable in bytes. Dynamic shared memory starts at the next
    /// aligned offset.
    pub fn static_shared_bytes(&self) -> u32 {
        let end = self
            .shared
            .iter()
            .filter(|(_, bytes, _)| *bytes > 0)
            .map(|(start, bytes, _)| start + bytes)
            .max();
        let end = end.map_or(0, |end| end - u64::from(self.reserved));
        u32::try_from(end).unwrap_or(u32::MAX)
    }

    /// Local memory of a thread in bytes.
    pub fn local_bytes(&self) -> u64 {
        self.stack_bytes
    }

    /// The kernel's number in the program.
    pub fn id(&self) -> FuncId {
        self.kernel
    }

    /// The module.
    pub fn module(&self) -> &Arc<LoadedModule> {
        &self.module
    }

    /// The kernel's function in the program.
    pub fn function(&self) -> &ptx::ir::Function {
        &self.module.program.functions[self.kernel.0 as usize]
    }

    /// Runs the kernel in the interpreter and waits for its end.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub fn launch(&self, config: &LaunchConfig) -> Result<LaunchReport, LaunchError> {
        self.launch_with(config, None)
    }

    /// As [`Kernel::launch`], with native code that was compiled for this kernel and this CTA shape.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub fn launch_with(
        &self,
        config: &LaunchConfig,
        native: Option<&Arc<dyn Native>>,
    ) -> Result<LaunchReport, LaunchError> {
        self.run(config, native, None)
    }

    /// As [`Kernel::launch`]. Warps switch to native code when `supply` has it; it must be compiled for this
    /// kernel and this CTA shape.
    ///
    /// # Errors
    /// [`LaunchError`].
    pub fn launch_supplied(
        &self,
        config: &LaunchConfig,
        supply: &Arc<dyn Supply>,
    ) -> Result<LaunchReport, LaunchError> {
        self.run(config, None, Some(supply))
    }

    fn run(
        &self,
        config: &LaunchConfig,
        native: Option<&Arc<dyn Native>>,
        supply: Option<&Arc<dyn Supply>>,
    ) -> Result<LaunchReport, LaunchError> {
        let start = Instant::now();
        self.check(config)?;
        let memory = &self.module.memory;
        let watch = memory.watched();
        // A seed fixes the order of CTAs, and observers see one warp at a time, except if native code runs
        // most of them. Stamps belong to one CTA at a time.
        let interpreted = native.is_none_or(|native| !native.is_checked()) || self.is_ordered();
        let threads = match config.seed != 0 || watch.is_some() && interpreted {
            true => 1,
            false => config.threads.unwrap_or_else(|| memory.pool().cores()).clamp(1, THREAD_LIMIT),
        };
        let shared_bytes = self.shared_bytes(config);
        let params = Params::new(self, &config.params)?;
        let workspace = config.cooperative.then(|| Workspace::new(memory)).transpose()?;
        let shape = Arc::new(GridShape {
            ntid: config.block,
            nctaid: config.grid,
            gridid: memory.next_launch(),
            began: memory.now(),
            nsmid: threads,
            dynamic_shared: config.dynamic_shared,
            total_shared: (shared_bytes as u32).next_multiple_of(shared_unit(self.module.program())),
            envreg: workspace.as_ref().map_or([0; 32], Workspace::registers),
        });
        // Observers see one launch at a time.
        let _alone = watch.map(|watch| watch.alone());
        let watch = watch.map(|watch| (Arc::clone(watch), Arc::new(self.facts(config, &shape))));
        let told = watch.clone();
        let (mut native, mut supply, mut allocations, mut exit) = (native, supply, Vec::new(), None);
        if let Some((watch, facts)) = &told {
            watch.each(|observer| observer.launch_begins(facts));
            native = native.filter(|native| native.is_checked());
            supply = supply.filter(|supply| supply.is_checked());
            if native.is_some() || supply.is_some() {
                match (watch.allocations(facts), self.native_needs()) {
                    (Some(list), NativeNeeds::Checks(checks)) if self.may_check(checks) => {
                        (allocations, exit) = (list, checks.exit);
                    }
                    _ => (native, supply) = (None, None),
                }
            }
        }
        let replaced = told.as_ref().and_then(|(watch, facts)| watch.replaced(facts)).map(Arc::new);
        let mut may_be_native = native.is_some() || supply.is_some();
        let stamps = memory.stamps().filter(|_| may_be_native && self.is_ordered());
        if let (Some(stamps), Some((watch, facts))) = (stamps, &told) {
            stamps.begin(shape.threads());
            watch.each(|observer| observer.compares_stamps(facts));
        }
        let run = GridRun {
            watch,
            code: Arc::clone(&self.code),
            source: Arc::clone(&self.module.program.source),
            address_size: self.module.program.address_size,
            functions: self.module.functions,
            native: native.map(Arc::clone),
            supply: supply.map(Arc::clone),
            memory: Arc::clone(memory),
            shape,
            kernel: self.kernel.0,
            shared_bytes,
            params: (params.address, config.params.len() as u64),
            stack_bytes: self.stack_bytes,
            local_layout: LocalLayout::of(self.native_needs()),
            threads,
            seed: config.seed,
            max_steps: config.max_steps,
            deadline: config.timeout.and_then(|timeout| start.checked_add(timeout)),
            cancel: config.cancel.clone(),
            progress: config.progress.clone(),
            trace: config
                .trace
                .clone()
                .map(|trace| Tracing { trace, program: Arc::clone(&self.module.program) }),
            output_limit: config.output_limit,
            cta_cache: Arc::clone(&self.cta_cache),
            replaced,
            interests: Arc::clone(&self.module.interests),
            allocations,
            exit,
            stamps: stamps.map(Arc::clone),
        };
        let began = Instant::now();
        let repeated = stamps.is_some().then(|| run.interpreted());
        let mut done: Outcome = run_grid(run);
        if let (Some(stamps), Some((watch, facts)), Some(repeated)) = (stamps, &told, repeated)
            && self.ends_in_conflict(stamps, &done)
        {
            watch.each(|observer| observer.repeats(facts));
            may_be_native = false;
            done = run_grid(repeated);
        }
        if let Some((watch, facts)) = &told {
            let trapped = done.trap.is_some();
            watch.each(|observer| observer.launch_ends(facts, trapped));
        }
        memory.pass(done.steps);
        let code = native.map(|native| &**native).or_else(|| supply?.native());
        let side_exits = match code.filter(|_| !done.exits.is_empty()) {
            Some(code) => done.exits.resolve((&self.module.program, self.function()), code),
            None => Vec::new(),
        };
        let report = LaunchReport {
            steps: done.steps,
            thread_instructions: done.lane_steps,
            native: may_be_native,
            native_steps: done.native_steps,
            fallback_steps: done.fallback_steps,
            side_exits,
            output: done.output,
            dropped: done.dropped,
            finished: done.finished,
            events: done.events,
            elapsed: began.elapsed(),
            threads,
        };
        match (done.trap, done.error) {
            (Some(trap), _) => {
                let trap = Box::new(self.trap(trap, config));
                Err(LaunchError::Trap(trap, Box::new(report)))
            }
            (None, Some(error)) => Err(error.into()),
            (None, None) => Ok(report),
        }
    }

    fn shared_bytes(&self, config: &LaunchConfig) -> u64 {
        u64::from(self.code.shared_bytes) + u64::from(config.dynamic_shared)
    }

    /// Formats a trap.
    fn trap(&self, trap: GridTrap, config: &LaunchConfig) -> Trap {
        let program = &self.module.program;
        let source = &program.source;
        let stopped = trap.stopped;
        let somewhere = stopped.span.start < stopped.span.end;
        let loc = stopped.loc.and_then(|Loc { file, line, column: _ }| {
            let (_, name) = program.files.iter().find(|(index, _)| *index == file)?;
            Some((name.clone(), line))
        });
        let place = crate::fault_context::function_at(program, stopped.function, stopped.span);
        let function = place.map_or("?", |(function, _)| function.name.as_str());
        let nearest = match &stopped.fault.access {
            Some(access) if access.space == Space::Shared => self.nearest_shared(access.address, config),
            _ => None,
        };
        let instruction = stopped.span.text(&source.text);
        let registers = match (trap.registers, place) {
            (Some(registers), Some((function, inlined))) if somewhere => inlined
                .map_or(registers.clone(), |inlined| registers.of_inlined(inlined))
                .read_by(function, instruction),
            _ => Vec::new(),
        };
        let ptx = if somewhere { lines_around(source, stopped.span) } else { Vec::new() };
        Trap {
            kind: stopped.fault.kind,
            access: stopped.fault.access,
            kernel: self.function().name.clone(),
            function: function.to_owned(),
            file: source.name_of(stopped.span).to_owned(),
            line: if somewhere { source.line(stopped.span) } else { 0 },
            instruction: instruction.to_owned(),
            source: loc,
            ctaid: trap.ctaid,
            tid: trap.tid,
            warp: trap.warp,
            lane: stopped.fault.lane,
            nearest: nearest.or(trap.nearest),
            registers,
            ptx,
            lanes: trap.lanes,
        }
    }

    /// The `.shared` variable at or before an offset in the CTA's window, as text.
    fn nearest_shared(&self, address: u64, config: &LaunchConfig) -> Option<String> {
        let behind =
            self.shared.iter().filter(|(start, ..)| *start <= address).max_by_key(|(start, ..)| *start);
        let (start, bytes, name) = behind?;
        let (kind, bytes) = match bytes {
            0 => ("dynamic shared", u64::from(config.dynamic_shared)),
            bytes => ("shared", *bytes),
        };
        let what = format!("{kind} variable `{name}`, {bytes} bytes at {start:#x}");
        Some(match (address - start).checked_sub(bytes) {
            Some(past) => format!("{what}; the address is {past} bytes past its end"),
            None => format!("{what}; the address is {} bytes into it", address - start),
        })
    }
}

/// The allocation unit of shared memory in bytes. PTX ISA §10.22.
fn shared_unit(program: &Program) -> u32 {
    if program.target.sm.number < 30 { 128 } else { 256 }
}
