//! Loaded modules and their kernels.
//!
//! Invariant: a [`Module`] is fully implemented and its variables are placed, so binding a kernel of it
//! cannot fail because of the text.

use crate::engine::Natives;
use crate::vm::Device;
use crate::{Descriptor, Engine, Error, ErrorKind, Launch, Listing, Ran, Rejection, Report, Source};
use ptx::analysis::cfg;
use ptx::analysis::liveness::Liveness;
use ptx::check::Unresolved;
use ptx::check::module::{FuncId, Performance};
use ptx::diag::{Code, Diagnostic};
use ptx::ir::{ParamPlace, RegClass};
use ptx::isa::{Space, Ty};
use ptx_exec::bind;
use ptx_exec::launch::{LaunchConfig, LaunchError, LoadError, LoadedModule};
use std::sync::Arc;

/// A module in the memory of a [`crate::Vm`].
#[derive(Clone)]
pub struct Module {
    device: Arc<Device>,
    loaded: Arc<LoadedModule>,
    warnings: Arc<[Diagnostic]>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module").field("source", &self.loaded.program().source.name).finish()
    }
}

/// The place of a parameter in the parameter buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamLayout {
    /// Its name in the text.
    pub name: String,
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub bytes: usize,
    /// The type of its elements as in the text, without the dot: `u64`, `f32`, `b8`, `texref`.
    pub ty: &'static str,
    /// The number of its elements: 1, or the extent of an array such as `.param .b8 x[24]`.
    pub elements: usize,
}

impl ParamLayout {
    /// Its type without the dot, such as `f32`, if it is one value; `None` for arrays and vectors.
    #[must_use]
    pub fn scalar_type(&self) -> Option<&'static str> {
        (self.elements == 1).then_some(self.ty)
    }
}

/// The resources of a kernel, for occupancy and function attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// 32-bit registers of a thread. An estimate: the maximum of live registers at block boundaries, plus a
    /// few; at most what `.maxnreg` allows, and what CTAs of `.maxntid` threads can have, `.minnctapersm` of
    /// them.
    pub registers: u32,
    /// Bytes of static shared memory of a CTA.
    pub shared: u32,
    /// Bytes of local memory of a thread.
    pub local: u64,
    /// Bytes of the module's `.const` variables.
    pub constant: u64,
    /// `.maxntid`, as threads.
    pub max_threads: Option<u32>,
    /// `.reqntid`
    pub required_block: Option<[u32; 3]>,
    /// `.version` of the module, major and minor.
    pub ptx_version: (u8, u8),
    /// `.target` of the module: 70 for `sm_70`.
    pub target: u16,
}

impl Module {
    pub(crate) fn load(
        device: &Arc<Device>,
        module: ptx::check::module::Module,
        warnings: Vec<Diagnostic>,
    ) -> Result<Self, Error> {
        let source = Arc::clone(&module.source);
        let rejected = |diagnostics| ErrorKind::Rejected(Rejection { diagnostics, source });
        let undefined: Vec<Diagnostic> = undefined(&module).collect();
        if !undefined.is_empty() {
            return Err(rejected(undefined).into());
        }
        let mut program = ptx::ir::lower(module);
        // Sanitizers report calls, and accesses beyond the variables of each activation, or the parameter.
        if device.sanitizer.is_none() {
            ptx::ir::inline::inline(&mut program);
            ptx::parameters::name_parameters(&mut program);
        }
        let program = Arc::new(program);
        let missing = bind::check_supported(&program);
        if !missing.is_empty() {
            return Err(rejected(missing.iter().map(unimplemented).collect()).into());
        }
        let loaded = LoadedModule::load(&device.memory, program).map_err(load_error)?;
        Ok(Self { device: device.clone(), loaded, warnings: warnings.into() })
    }

    /// The checker's warnings; empty for a module that was checked before
    /// ([`Vm::load_module`](crate::Vm::load_module)).
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The text of the module, to which diagnostics refer.
    pub fn source(&self) -> &Arc<Source> {
        &self.loaded.program().source
    }

    /// The names of its kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.loaded.kernels().map(|(_, function)| function.name.as_str())
    }

    /// The kernel with this name, ready to be launched.
    ///
    /// # Errors
    /// Of the caller, if there is none.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let Some((id, _)) = self.loaded.kernels().find(|(_, function)| function.name == name) else {
            return Err(Error::caller(format!("there is no kernel `{name}`; {}", self.choices())));
        };
        self.bind_kernel(id)
    }

    /// The kernel with this name; without a name, the only kernel.
    ///
    /// # Errors
    /// Of the caller, if there is none, or without a name several.
    pub fn kernel_or_only(&self, name: Option<&str>) -> Result<Kernel, Error> {
        if let Some(name) = name {
            return self.kernel(name);
        }
        let mut kernels = self.loaded.kernels();
        match (kernels.next(), kernels.next()) {
            (Some((id, _)), None) => self.bind_kernel(id),
            (None, _) | (Some(_), Some(_)) => {
                Err(Error::caller(format!("name a kernel; {}", self.choices())))
            }
        }
    }

    /// The address and size of a `.global` or `.const` variable.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        self.loaded.variable_named(name)
    }

    /// Whether the texture or surface variable with this name is a surface; `None` if there is none, or it is
    /// a sampler.
    pub fn opaque_is_surface(&self, name: &str) -> Option<bool> {
        match self.loaded.opaque_named(name)? {
            Ty::Texref => Some(false),
            Ty::Surfref => Some(true),
            _ => None,
        }
    }

    /// Binds a texture, sampler or surface to a module-scope variable, for later launches. The previous
    /// binding is released.
    ///
    /// # Errors
    /// Of the caller, if the module has no such variable, or it has another type.
    pub fn bind(&self, name: &str, descriptor: &Descriptor) -> Result<(), Error> {
        self.loaded.bind(name, descriptor.exec()).map_err(Error::caller)
    }

    fn choices(&self) -> String {
        let names: Vec<_> = self.kernels().map(|name| format!("`{name}`")).collect();
        if names.is_empty() {
            "the module has none".to_owned()
        } else {
            format!("the module has {}", names.join(", "))
        }
    }

    fn bind_kernel(&self, id: FuncId) -> Result<Kernel, Error> {
        let code = bind::bind(self.loaded.program(), id, &self.loaded.layout(id));
        let code = code.map_err(|missing| {
            let (diagnostics, source) = (vec![unimplemented(&missing)], Arc::clone(self.source()));
            Error::from(ErrorKind::Rejected(Rejection { diagnostics, source }))
        })?;
        let bound = ptx_exec::launch::Kernel::new(&self.loaded, id, code);
        let params = layout(bound.function());
        let natives = Arc::default();
        Ok(Kernel { device: self.device.clone(), params, bound: Arc::new(bound), natives })
    }
}

/// The parameters of a kernel, in order.
fn layout(function: &ptx::ir::Function) -> Vec<ParamLayout> {
    let place = |(index, slot): (usize, &ptx::ir::ParamSlot)| match slot.place {
        ParamPlace::Kernel(offset) => {
            let (ty, elements) = *function.param_types.get(index)?;
            Some(ParamLayout {
                name: function.param_names.get(index).cloned().unwrap_or_default(),
                offset: offset as usize,
                bytes: slot.bytes as usize,
                ty: ty.name(),
                elements: usize::try_from(elements).unwrap_or(slot.bytes as usize),
            })
        }
        // Only device functions have such parameters.
        ParamPlace::Reg(_) | ParamPlace::Frame(_) => None,
    };
    function.params.iter().enumerate().filter_map(place).collect()
}

/// Undefined external variables. Functions are checked where they are called.
fn undefined(module: &ptx::check::module::Module) -> impl Iterator<Item = Diagnostic> {
    ptx::check::unresolved(module).into_iter().filter_map(|symbol| match symbol {
        Unresolved::Var(id) => {
            let variable = module.variables.get(id.0 as usize)?;
            let message = format!("external variable `{}` is not defined", variable.name);
            Some(Diagnostic::new(Code::UnresolvedExtern, variable.span, message))
        }
        Unresolved::Func(_) => None,
    })
}

fn unimplemented(missing: &bind::Unimplemented) -> Diagnostic {
    let message = format!("`{}` is not implemented by ptxvm", missing.name);
    Diagnostic::new(Code::NotImplemented, missing.span, message)
        .with_label(format!("in `{}`", missing.function))
        .with_help("the text is legal, but it cannot be executed; `ptxvm isa` lists what can")
}

fn load_error(error: LoadError) -> Error {
    match error {
        LoadError::Memory(error) => error.into(),
        LoadError::Variable { .. } => ErrorKind::Machine(error.to_string()).into(),
        LoadError::Undefined { .. } | LoadError::AddressSize { .. } | LoadError::Initialiser { .. } => {
            Error::caller(error.to_string())
        }
    }
}

/// A kernel, ready to be launched any number of times.
#[derive(Clone)]
pub struct Kernel {
    bound: Arc<ptx_exec::launch::Kernel>,
    params: Vec<ParamLayout>,
    natives: Arc<Natives>,
    device: Arc<Device>,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name()).finish()
    }
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.bound.function().name
    }

    /// Its parameters, in order.
    pub fn params(&self) -> &[ParamLayout] {
        &self.params
    }

    /// Size of its parameter buffer in bytes.
    pub fn param_bytes(&self) -> usize {
        self.bound.function().param_bytes as usize
    }

    /// Its resources.
    pub fn resources(&self) -> Resources {
        let program = self.bound.module().program();
        let function = self.bound.function();
        let constants = program.variables.iter().filter(|variable| variable.space == Space::Const);
        Resources {
            registers: registers(function),
            shared: self.bound.static_shared_bytes(),
            local: self.bound.local_bytes(),
            constant: constants.map(|variable| variable.bytes).sum(),
            max_threads: self.max_threads(),
            required_block: function.performance.reqntid,
            ptx_version: (program.version.major, program.version.minor),
            target: program.target.sm.number,
        }
    }

    /// The native code for launches with this CTA shape, as text.
    ///
    /// # Errors
    /// Of the caller, if the kernel cannot be compiled.
    pub fn listing(&self, block: [u32; 3], what: Listing) -> Result<String, Error> {
        self.device.jit.listing(&self.bound, block, what)
    }

    /// The most threads of a CTA, by the kernel's directives.
    pub fn max_threads(&self) -> Option<u32> {
        let performance = &self.bound.function().performance;
        let threads = |dims: [u32; 3]| dims.iter().fold(1u32, |product, n| product.saturating_mul(*n));
        performance.maxntid.or(performance.reqntid).map(threads)
    }

    /// Checks a launch against the limits of the kernel and the machine.
    ///
    /// # Errors
    /// Of the caller, as launching it would return.
    pub fn check(&self, launch: &Launch) -> Result<(), Error> {
        match self.bound.check(&config(launch)) {
            Ok(()) => Ok(()),
            Err(error) => Err(Error::caller(error.to_string())),
        }
    }

    pub(crate) fn launch(&self, launch: &Launch) -> Result<Report, Error> {
        let config = config(launch);
        // Before either engine allocates anything whose size depends on the launch.
        self.bound.check(&config).map_err(|error| Error::caller(error.to_string()))?;
        let mut ran = Ran::default();
        let interpreted;
        let launch = match (&launch.trace, launch.engine) {
            (None, _) | (Some(_), Engine::Interp) => launch,
            (Some(_), Engine::Jit) => {
                return Err(Error::caller("a thread can be followed only in the interpreter"));
            }
            (Some(_), Engine::Auto) => {
                interpreted = Launch { engine: Engine::Interp, ..launch.clone() };
                &interpreted
            }
        };
        match self.device.jit.launch(&self.bound, &self.natives, launch, &config, &mut ran)? {
            Ok(report) => Ok(Report::new(report, ran)),
            Err(LaunchError::Invalid(why)) => Err(Error::caller(why)),
            Err(LaunchError::Memory(error)) => Err(error.into()),
            Err(LaunchError::Trap(trap, report)) => {
                Err(ErrorKind::Trap(trap, Report::new(*report, ran)).into())
            }
        }
    }
}

fn config(launch: &Launch) -> LaunchConfig {
    LaunchConfig {
        grid: launch.grid,
        block: launch.block,
        dynamic_shared: launch.shared,
        cooperative: launch.cooperative,
        params: launch.params.clone(),
        threads: launch.threads,
        seed: launch.seed,
        max_steps: launch.max_steps,
        timeout: launch.timeout,
        cancel: launch.cancel.clone(),
        progress: launch.progress.clone(),
        trace: launch.trace.clone(),
        output_limit: launch.output_limit,
    }
}

/// Estimates the 32-bit registers of a thread: see [`Resources::registers`].
fn registers(function: &ptx::ir::Function) -> u32 {
    /// Registers for addresses and results inside of blocks. Chosen.
    const WORK: u32 = 8;
    let live = Liveness::new(function, &cfg::graph(function));
    let weight = |number| match live.registers.reg(number).class {
        RegClass::Pred => 0,
        RegClass::R16 | RegClass::R32 => 1,
        RegClass::R64 => 2,
    };
    let borders = live.live_in.iter().chain(&live.live_out);
    let most = borders.map(|set| set.iter().map(weight).sum::<u32>()).max().unwrap_or(0);
    let performance = &function.performance;
    let limit = performance.maxnreg.unwrap_or(255).min(registers_of_bounds(performance));
    (most + WORK).clamp(16, limit.clamp(16, 255))
}

/// Registers that leave room for the CTAs that a kernel's bounds name: an assembler keeps to them, so that
/// such a launch is never out of resources.
fn registers_of_bounds(performance: &Performance) -> u32 {
    /// Of a multiprocessor, on every device since compute capability 5.0; handed out to warps in units of 8
    /// for each lane.
    const REGISTERS: u64 = 65536;
    const UNIT: u64 = 8;
    let Some(threads) = performance.maxntid.or(performance.reqntid) else { return u32::MAX };
    let threads = threads.iter().fold(1, |product: u64, n| product.saturating_mul(u64::from(*n)));
    let lanes = threads.div_ceil(32).saturating_mul(32);
    let ctas = u64::from(performance.minnctapersm.unwrap_or(1));
    let registers = REGISTERS / lanes.saturating_mul(ctas).max(1) / UNIT * UNIT;
    u32::try_from(registers).unwrap_or(u32::MAX)
}
