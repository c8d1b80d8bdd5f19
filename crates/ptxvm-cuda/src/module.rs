//! Modules and libraries: loading of PTX.
//!
//! Invariant: the diagnostics of a rejected module are in the caller's log, or on standard error.

use crate::context::{Context, current};
use crate::driver::{Driver, driver, status_of};
use crate::entry::entries;
use crate::ffi::{In, Out, Pointer, Text};
use crate::function::{Function, find_kernel};
use crate::handles::Handle;
use crate::image;
use crate::jit_options::JitOptions;
use crate::log;
use crate::status::{Answer, Status};
use ptxvm::{CheckOptions, Severity, Vm};
use std::collections::HashMap;
use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Functions of CUDA's device library that programs call, in ptxvm's own PTX.
const DEVICE_LIBRARY: &str = include_str!("device_library.ptx");
/// Their names. A text that contains one of them needs the library.
const DEVICE_FUNCTIONS: [&str; 3] =
    ["cudaCGSynchronize", "cudaCGGetIntrinsicHandle", "cudaGraphSetConditional"];

/// A loaded module, or a library of one.
pub(crate) struct Module {
    pub(crate) context: Arc<Context>,
    pub(crate) loaded: ptxvm::Module,
    handle: Handle,
    /// Handles of kernels that were looked up, so that a name has one handle.
    functions: Mutex<HashMap<String, Handle>>,
    /// Handles of texture and surface references that were looked up.
    pub(crate) references: Mutex<HashMap<String, Handle>>,
}

impl Module {
    fn functions(&self) -> MutexGuard<'_, HashMap<String, Handle>> {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the handles of its texture and surface references, because it is unloaded.
    pub(crate) fn forget_references(&self, driver: &Driver) {
        let references = std::mem::take(&mut *self.references.lock().unwrap_or_else(PoisonError::into_inner));
        // The order does not matter, because each handle is only removed.
        #[allow(clippy::iter_over_hash_type, reason = "each reference is treated alike")]
        for handle in references.into_values() {
            let _destroyed_by_the_program = driver.references.remove(handle);
        }
    }

    /// The handle of a kernel.
    ///
    /// # Errors
    /// `CUDA_ERROR_NOT_FOUND`.
    pub(crate) fn function(self: &Arc<Self>, driver: &Driver, name: &str) -> Result<Handle, Status> {
        let mut functions = self.functions();
        if let Some(handle) = functions.get(name) {
            return Ok(*handle);
        }
        let kernel = find_kernel(&self.loaded, name).ok_or(Status::NotFound)?;
        let function =
            Function::new(Arc::clone(&self.context), self.handle, kernel, driver.settings.capability);
        let handle = driver.functions.insert(function);
        functions.insert(name.to_owned(), handle);
        Ok(handle)
    }
}

/// Adds CUDA's device library if a text needs it.
pub(crate) fn with_device_library(texts: &mut Vec<(&str, &str)>) {
    if texts.iter().any(|(_, text)| DEVICE_FUNCTIONS.iter().any(|name| text.contains(name))) {
        texts.push(("<device library>", DEVICE_LIBRARY));
    }
}

/// Checks, links and loads PTX texts. Diagnostics go to the log of `options`, or to standard error.
///
/// # Errors
/// `CUDA_ERROR_INVALID_PTX`, `CUDA_ERROR_INVALID_IMAGE` for texts that are not PTX, and the errors of
/// loading.
pub(crate) fn load_texts(
    vm: &Vm,
    texts: &[(String, String)],
    options: &mut JitOptions,
) -> Result<ptxvm::Module, Status> {
    let began = Instant::now();
    texts.iter().for_each(|(_, text)| crate::keep::keep(text));
    let mut texts: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    with_device_library(&mut texts);
    let checked = ptxvm::link(&texts, &CheckOptions::default());
    let most = options.max_registers;
    let mut report = |diagnostics: &[ptxvm::Diagnostic]| {
        for diagnostic in diagnostics {
            let text = ptxvm::render(diagnostic, &checked.source, false) + "\n";
            match diagnostic.severity {
                Severity::Error if options.has_error_log() => options.error(&text),
                Severity::Error => log::say(&text),
                _ => options.info(&text),
            }
        }
    };
    report(&checked.diagnostics);
    let loaded = match checked.module {
        None if texts.iter().all(|(_, text)| !text.contains(".version")) => Err(Status::InvalidImage),
        None => Err(Status::InvalidPtx),
        Some(mut module) => {
            // The limit does not apply to a kernel that sets its registers itself.
            for function in &mut module.functions {
                function.performance.maxnreg = function.performance.maxnreg.or(most);
            }
            vm.load_module(module).map_err(|error| {
                match error.kind() {
                    ptxvm::ErrorKind::Rejected(rejection) => report(&rejection.diagnostics),
                    _ => log::say(&format!("ptxvm: cannot load the module: {error}")),
                }
                status_of(&error)
            })
        }
    };
    options.took(began.elapsed());
    loaded
}

/// Loads a module for a context.
fn load(image: Pointer, options: &mut JitOptions) -> Result<Handle, Status> {
    let (driver, context) = current()?;
    options.begin();
    let texts = match crate::link::linked(image) {
        Some(linked) => {
            options.limit_registers(linked.registers);
            linked.texts
        }
        None => image::texts(image)?,
    };
    let loaded = load_texts(context.vm(driver), &texts, options)?;
    Ok(add(driver, context, loaded))
}

/// Loads a module from a file for a context.
fn load_file(name: Text, options: &mut JitOptions) -> Result<Handle, Status> {
    let (driver, context) = current()?;
    let bytes = image::file(&name.get()?)?;
    options.begin();
    let texts = match crate::link::linked_bytes(&bytes) {
        Some(linked) => {
            options.limit_registers(linked.registers);
            linked.texts
        }
        None => image::texts_of_bytes(&bytes, driver.settings.capability as u32)?,
    };
    let loaded = load_texts(context.vm(driver), &texts, options)?;
    Ok(add(driver, context, loaded))
}

fn add(driver: &Driver, context: Arc<Context>, loaded: ptxvm::Module) -> Handle {
    let make = |handle| Module {
        context,
        loaded,
        handle,
        functions: Mutex::default(),
        references: Mutex::default(),
    };
    driver.modules.insert_with(make).0
}

/// Removes a module and its functions. The memory of its variables is freed after its launches.
fn unload(driver: &Driver, handle: Handle) -> Answer {
    let module = driver.modules.remove(handle)?;
    driver.functions.remove_if(|function| function.module() == handle);
    module.forget_references(driver);
    Ok(())
}

fn global(driver: &Driver, (address, bytes): (Out<u64>, Out<usize>), module: Handle, name: Text) -> Answer {
    let module = driver.modules.get(module)?;
    let (at, size) = module.loaded.global(&name.get()?).ok_or(Status::NotFound)?;
    address.set_optional(at)?;
    bytes.set_optional(size as usize)
}

entries! { ENTRIES;
    /// Loads a module from a file.
    fn cuModuleLoad(module: Out<Handle>, name: Text) {
        module.check()?;
        module.set(load_file(name, &mut JitOptions::default())?)
    }

    /// Loads a module from memory.
    fn cuModuleLoadData(module: Out<Handle>, image: Pointer) {
        module.check()?;
        module.set(load(image, &mut JitOptions::default())?)
    }

    /// Loads a module from memory, with options.
    fn cuModuleLoadDataEx(module: Out<Handle>, image: Pointer, count: c_uint, options: In<c_int>, values: Pointer) {
        module.check()?;
        module.set(load(image, &mut JitOptions::read(count, options, values)?)?)
    }

    /// Loads a module from a fat binary.
    fn cuModuleLoadFatBinary(module: Out<Handle>, image: Pointer) {
        module.check()?;
        module.set(load(image, &mut JitOptions::default())?)
    }

    /// Unloads a module.
    fn cuModuleUnload(module: Handle) {
        let (driver, _) = current()?;
        unload(driver, module)
    }

    /// The loading mode: code is always loaded at once.
    fn cuModuleGetLoadingMode(mode: Out<c_int>) {
        driver()?;
        mode.set(1)
    }

    /// A kernel of a module, by name.
    fn cuModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) {
        let (driver, _) = current()?;
        function.check()?;
        function.set(driver.modules.get(module)?.function(driver, &name.get()?)?)
    }

    /// The number of a module's kernels.
    fn cuModuleGetFunctionCount(count: Out<c_uint>, module: Handle) {
        let (driver, _) = current()?;
        count.check()?;
        count.set(driver.modules.get(module)?.loaded.kernels().count() as c_uint)
    }

    /// The kernels of a module.
    fn cuModuleEnumerateFunctions(functions: Out<Handle>, count: c_uint, module: Handle) {
        let (driver, _) = current()?;
        enumerate(driver, functions, count, module)
    }

    /// A variable of a module, by name.
    fn cuModuleGetGlobal_v2(address: Out<u64>, bytes: Out<usize>, module: Handle, name: Text) {
        let (driver, _) = current()?;
        global(driver, (address, bytes), module, name)
    }

    /// Loads a library from memory.
    fn cuLibraryLoadData(
        library: Out<Handle>, image: Pointer,
        options: In<c_int>, values: Pointer, count: c_uint,
        _library_options: In<c_int>, _library_values: Pointer, _library_count: c_uint,
    ) {
        library.check()?;
        library.set(load_library(image, &mut JitOptions::read(count, options, values)?)?)
    }

    /// Loads a library from a file.
    fn cuLibraryLoadFromFile(
        library: Out<Handle>, name: Text,
        options: In<c_int>, values: Pointer, count: c_uint,
        _library_options: In<c_int>, _library_values: Pointer, _library_count: c_uint,
    ) {
        library.check()?;
        library.set(load_file(name, &mut JitOptions::read(count, options, values)?)?)
    }

    /// Unloads a library.
    fn cuLibraryUnload(library: Handle) {
        unload(driver()?, library)
    }

    /// The module of a library in the current context.
    fn cuLibraryGetModule(module: Out<Handle>, library: Handle) {
        let driver = driver()?;
        module.check()?;
        driver.modules.get(library)?;
        module.set(library)
    }

    /// A kernel of a library, by name.
    fn cuLibraryGetKernel(kernel: Out<Handle>, library: Handle, name: Text) {
        let driver = driver()?;
        kernel.check()?;
        kernel.set(driver.modules.get(library)?.function(driver, &name.get()?)?)
    }

    /// The number of a library's kernels.
    fn cuLibraryGetKernelCount(count: Out<c_uint>, library: Handle) {
        count.check()?;
        count.set(driver()?.modules.get(library)?.loaded.kernels().count() as c_uint)
    }

    /// The kernels of a library.
    fn cuLibraryEnumerateKernels(kernels: Out<Handle>, count: c_uint, library: Handle) {
        enumerate(driver()?, kernels, count, library)
    }

    /// A variable of a library, by name.
    fn cuLibraryGetGlobal(address: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) {
        global(driver()?, (address, bytes), library, name)
    }

    /// A managed variable of a library, by name. Kernels and host can access all variables.
    fn cuLibraryGetManaged(address: Out<u64>, bytes: Out<usize>, library: Handle, name: Text) {
        global(driver()?, (address, bytes), library, name)
    }
}

fn load_library(image: Pointer, options: &mut JitOptions) -> Result<Handle, Status> {
    // A library belongs to no context. It is loaded into the current context's device, whose memory all
    // contexts can use.
    load(image, options)
}

fn enumerate(driver: &Driver, out: Out<Handle>, count: c_uint, module: Handle) -> Answer {
    let module = driver.modules.get(module)?;
    let names: Vec<String> = module.loaded.kernels().map(str::to_owned).collect();
    let handles: Result<Vec<Handle>, Status> =
        names.iter().take(count as usize).map(|name| module.function(driver, name)).collect();
    out.set_all(&handles?)
}

#[cfg(test)]
mod tests {
    use super::DEVICE_LIBRARY;
    use ptxvm::{Arg, Launch, Vm};

    /// CTAs that read each other's results of the last round, with a grid barrier before and after each
    /// write.
    const ROUNDS: &str = r"
.version 6.4
.target sm_70
.address_size 64
.extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 status) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry rounds(.param .u64 data)
{
    .reg .b32 %r<9>; .reg .b64 %rd<5>; .reg .pred %p;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, 0;
again:
    // data[cta] = data[the next cta] of the last round + 1
    add.u32 %r4, %r1, 1; rem.u32 %r4, %r4, %r2; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd2, %rd1, %rd2;
    ld.volatile.global.u32 %r5, [%rd2];
    { .param .b64 h; .param .b32 f; .param .b32 s; mov.u64 %rd4, 1; st.param.b64 [h], %rd4; mov.u32 %r8, 0; st.param.b32 [f], %r8; call.uni (s), cudaCGSynchronize, (h, f); ld.param.b32 %r6, [s]; }
    mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd1, %rd3;
    add.u32 %r5, %r5, 1; st.volatile.global.u32 [%rd3], %r5;
    { .param .b64 h; .param .b32 f; .param .b32 s; st.param.b64 [h], %rd4; st.param.b32 [f], %r8; call.uni (s), cudaCGSynchronize, (h, f); ld.param.b32 %r6, [s]; }
    add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 20; @%p bra again;
    ret;
}
";

    #[test]
    fn all_ctas_of_a_grid_wait_for_each_other() {
        let vm = Vm::new().expect("a device");
        let texts = [("rounds", ROUNDS), ("<device library>", DEVICE_LIBRARY)];
        let kernel = vm.link(&texts).and_then(|module| module.kernel("rounds")).expect("it links");
        for (ctas, threads) in [(16, 64), (5, 33), (1, 1), (3, 32), (2, 64)] {
            let data = vm.zeros::<u32>(ctas as usize).expect("memory");
            let launch = Launch::new([ctas, 1, 1], [threads, 1, 1]).cooperative();
            let launch = launch.args(&kernel, &[Arg::buffer(&data)]).expect("it fits");
            vm.launch(&kernel, &launch).expect("no trap");
            assert!(data.read().expect("memory").iter().all(|rounds| *rounds == 20));
        }
    }
}
