//! Loaded modules and their kernels.
//!
//! Invariant: a [`Module`] is fully implemented and its variables are placed; binding a kernel of it cannot fail for what the text
//! says.

use crate::engine::Natives;
use crate::vm::Device;
use crate::{Descriptor, Error, ErrorKind, Launch, Listing, Ran, Report};
use ptx::check::Unresolved;
use ptx::check::module::FuncId;
use ptx::diag::{Code, Diagnostic};
use ptx::ir::ParamPlace;
use ptx_exec::bind;
use ptx_exec::launch::{LaunchConfig, LaunchError, LoadError, LoadedModule};
use std::sync::Arc;

/// A module in the memory of a [`crate::Vm`].
#[derive(Clone)]
pub struct Module {
    device: Arc<Device>,
    loaded: Arc<LoadedModule>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module").field("source", &self.loaded.program().source.name).finish()
    }
}

/// Where one parameter lies in the parameter buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamLayout {
    /// Its name in the text.
    pub name: String,
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub bytes: usize,
}

impl Module {
    pub(crate) fn load(device: &Arc<Device>, module: ptx::check::module::Module) -> Result<Self, Error> {
        let undefined: Vec<Diagnostic> = undefined(&module).collect();
        if !undefined.is_empty() {
            return Err(ErrorKind::Rejected(undefined).into());
        }
        let program = Arc::new(ptx::ir::lower(module));
        let missing = bind::check_supported(&program);
        if !missing.is_empty() {
            return Err(ErrorKind::Rejected(missing.iter().map(unimplemented).collect()).into());
        }
        let loaded = LoadedModule::load(&device.memory, program).map_err(load_error)?;
        Ok(Self { device: device.clone(), loaded })
    }

    /// The names of its kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.loaded.kernels().map(|(_, function)| function.name.as_str())
    }

    /// The kernel of that name, ready to be launched.
    ///
    /// # Errors
    /// Of the caller, where there is none.
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        let Some((id, _)) = self.loaded.kernels().find(|(_, function)| function.name == name) else {
            return Err(Error::caller(format!("there is no kernel `{name}`; {}", self.choices())));
        };
        self.bind_kernel(id)
    }

    /// The kernel of that name, or without a name the only one.
    ///
    /// # Errors
    /// Of the caller, where there is none, or several and no name.
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

    /// Binds a texture, sampler or surface to the module-scope variable of that name, for the launches that follow. What was bound before is
    /// released.
    ///
    /// # Errors
    /// Of the caller, where the module has no such variable or it is of another type.
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
        let code = code.map_err(|missing| Error::from(ErrorKind::Rejected(vec![unimplemented(&missing)])))?;
        let bound = ptx_exec::launch::Kernel::new(&self.loaded, id, code);
        let params = layout(bound.function());
        let natives = Arc::new(Natives::default());
        Ok(Kernel { device: self.device.clone(), params, bound: Arc::new(bound), natives })
    }
}

/// The parameters of a kernel, in order.
fn layout(function: &ptx::ir::Function) -> Vec<ParamLayout> {
    let place = |(index, slot): (usize, &ptx::ir::ParamSlot)| match slot.place {
        ParamPlace::Kernel(offset) => Some(ParamLayout {
            name: function.param_names.get(index).cloned().unwrap_or_default(),
            offset: offset as usize,
            bytes: slot.bytes as usize,
        }),
        // Only device functions have these.
        ParamPlace::Reg(_) | ParamPlace::Frame(_) => None,
    };
    function.params.iter().enumerate().filter_map(place).collect()
}

/// External variables that nothing defines. Functions are looked at where they are called.
fn undefined(module: &ptx::check::module::Module) -> impl Iterator<Item = Diagnostic> {
    ptx::check::unresolved(module).into_iter().filter_map(|symbol| match symbol {
        Unresolved::Var(id) => {
            let variable = module.variables.get(id.0 as usize)?;
            let message = format!("external variable `{}` is defined nowhere", variable.name);
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

    /// The native code that launches with CTAs of that shape run, as text.
    ///
    /// # Errors
    /// Of the caller, where none can be made.
    pub fn listing(&self, block: [u32; 3], what: Listing) -> Result<String, Error> {
        self.device.jit.listing(&self.bound, block, what)
    }

    pub(crate) fn launch(&self, launch: &Launch) -> Result<Report, Error> {
        let config = LaunchConfig {
            grid: launch.grid,
            block: launch.block,
            dynamic_shared: launch.shared,
            params: launch.params.clone(),
            threads: launch.threads,
            seed: launch.seed,
            max_steps: launch.max_steps,
            timeout: launch.timeout,
            cancel: launch.cancel.clone(),
        };
        let mut ran = Ran::default();
        let native = self.device.jit.choose(&self.bound, &self.natives, launch, &mut ran)?;
        match self.bound.launch_with(&config, native.as_deref()) {
            Ok(report) => Ok(Report::new(report, ran)),
            Err(LaunchError::Invalid(why)) => Err(Error::caller(why)),
            Err(LaunchError::Memory(error)) => Err(error.into()),
            Err(LaunchError::Trap(trap, report)) => {
                Err(ErrorKind::Trap(trap, Report::new(*report, ran)).into())
            }
        }
    }
}
