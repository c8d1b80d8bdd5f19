//! Registrations that compiled programs make before `main`: containers of device code, kernels by the
//! addresses of their host stubs, variables by the addresses of their host shadows.
//!
//! Invariant: a container is loaded at the first use of a member on a device, once per device. A reset of a
//! device forgets modules, not registrations.

use crate::device::{context, current};
use crate::driver::Driver;
use crate::error::{Status, of_driver};
use crate::ffi::{Handle, Out, Text};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_char, c_int, c_uint};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A registered container.
struct Container {
    /// The pointer that the compiler registered.
    image: Handle,
    /// The driver's modules by device, once loaded.
    modules: BTreeMap<c_int, Handle>,
}

/// A kernel or variable of a container.
#[derive(Clone)]
struct Member {
    container: usize,
    name: CString,
}

/// What a texture of integers reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Integers.
    Elements,
    /// Floating-point numbers up to 1.
    Fractions,
}

/// All registrations.
#[derive(Default)]
struct Registry {
    containers: HashMap<usize, Container>,
    next: usize,
    kernels: HashMap<usize, Member>,
    variables: HashMap<usize, Member>,
    /// Texture references, with what a texture reads.
    textures: HashMap<usize, (Member, Reads)>,
    surfaces: HashMap<usize, Member>,
    /// Managed variables, with the host pointers that receive their addresses.
    managed: Vec<(Pointer, Member)>,
    /// By host stub and device.
    functions: HashMap<(usize, c_int), Handle>,
    /// Names that were returned to programs. They are never freed.
    names: HashMap<CString, usize>,
}

/// The address of a host pointer.
#[derive(Clone, Copy)]
struct Pointer(usize);

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn with<R>(use_it: impl FnOnce(&mut Registry) -> R) -> R {
    let mut guard: MutexGuard<'_, Option<Registry>> = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    use_it(guard.get_or_insert_default())
}

impl Registry {
    /// The module of a container on a device, which is the current context's. Loads it at the first use.
    fn module(&mut self, driver: &Driver, container: usize, device: c_int) -> Result<Handle, Status> {
        let found = self.containers.get_mut(&container).ok_or(Status::INVALID_VALUE)?;
        if let Some(module) = found.modules.get(&device) {
            return Ok(*module);
        }
        let mut module = 0;
        of_driver((driver.cuModuleLoadData)(&mut module, found.image))?;
        found.modules.insert(device, Handle(module));
        Ok(Handle(module))
    }

    fn address(
        &mut self,
        driver: &Driver,
        member: &Member,
        missing: Status,
    ) -> Result<(usize, usize), Status> {
        let module = self.module(driver, member.container, current(driver)?)?;
        let (mut address, mut bytes) = (0, 0);
        match (driver.cuModuleGetGlobal_v2)(&mut address, &mut bytes, module, member.name.as_ptr()) {
            0 => Ok((address, bytes)),
            status if status == Status::NOT_FOUND.0 => Err(missing),
            status => Err(Status(status)),
        }
    }
}

/// The driver's function of a kernel, which is given by a registered host stub or by a handle of the driver.
pub(crate) fn function(stub: Handle) -> Result<Handle, Status> {
    if stub.is_null() {
        return Err(Status::INVALID_DEVICE_FUNCTION);
    }
    let driver = context()?;
    let device = current(driver)?;
    with(|registry| {
        if let Some(function) = registry.functions.get(&(stub.0, device)) {
            return Ok(*function);
        }
        let Some(member) = registry.kernels.get(&stub.0).cloned() else {
            // A `cudaKernel_t` or `cudaFunction_t`, or a host stub that no module registered.
            const PTX_VERSION: c_int = 5;
            let mut version = 0;
            let status = (driver.cuFuncGetAttribute)(&mut version, PTX_VERSION, stub);
            let known = status != Status::INVALID_RESOURCE_HANDLE.0;
            return if known { Ok(stub) } else { Err(Status::INVALID_DEVICE_FUNCTION) };
        };
        let module = registry.module(driver, member.container, device)?;
        let mut function = 0;
        match (driver.cuModuleGetFunction)(&mut function, module, member.name.as_ptr()) {
            0 => {}
            status if status == Status::NOT_FOUND.0 => return Err(Status::INVALID_DEVICE_FUNCTION),
            status => return Err(Status(status)),
        }
        registry.functions.insert((stub.0, device), Handle(function));
        Ok(Handle(function))
    })
}

/// The host stub of a driver's function, or the function itself if it has no stub.
pub(crate) fn stub(function: Handle) -> Handle {
    with(|registry| {
        // A kernel has one stub, so the order does not matter.
        let found = registry.functions.iter().find(|(_, known)| **known == function);
        found.map_or(function, |((stub, _), _)| Handle(*stub))
    })
}

/// The address of a registered kernel's name, a text that lives as long as the process.
pub(crate) fn name(stub: Handle) -> Option<usize> {
    with(|registry| {
        let name = &registry.kernels.get(&stub.0)?.name;
        let give = |name: &CString| name.clone().into_raw().expose_provenance();
        if !registry.names.contains_key(name) {
            registry.names.insert(name.clone(), give(name));
        }
        registry.names.get(name).copied()
    })
}

/// Address and size of the variable of a host shadow.
pub(crate) fn variable(shadow: Handle) -> Result<(usize, usize), Status> {
    let driver = context()?;
    with(|registry| {
        let member = registry.variables.get(&shadow.0).cloned().ok_or(Status::INVALID_SYMBOL)?;
        registry.address(driver, &member, Status::INVALID_SYMBOL)
    })
}

/// The driver's reference for a member, which `get` searches in its module.
fn reference(
    get: impl FnOnce(&Driver) -> extern "C" fn(*mut usize, Handle, *const c_char) -> c_int,
    member: &Member,
    missing: Status,
) -> Result<Handle, Status> {
    let driver = context()?;
    let device = current(driver)?;
    with(|registry| {
        let module = registry.module(driver, member.container, device)?;
        let mut found = 0;
        match get(driver)(&mut found, module, member.name.as_ptr()) {
            0 => Ok(Handle(found)),
            status if status == Status::NOT_FOUND.0 => Err(missing),
            status => Err(Status(status)),
        }
    })
}

/// The driver's texture reference for a reference of the program, and what the texture reads.
pub(crate) fn texture(of: Handle) -> Result<(Handle, Reads), Status> {
    let found = with(|registry| registry.textures.get(&of.0).cloned());
    let (member, reads) = found.ok_or(Status::INVALID_TEXTURE)?;
    Ok((reference(|driver| driver.cuModuleGetTexRef, &member, Status::INVALID_TEXTURE)?, reads))
}

/// The driver's surface reference for a reference of the program.
pub(crate) fn surface(of: Handle) -> Result<Handle, Status> {
    let found = with(|registry| registry.surfaces.get(&of.0).cloned());
    let member = found.ok_or(Status::INVALID_SURFACE)?;
    reference(|driver| driver.cuModuleGetSurfRef, &member, Status::INVALID_SURFACE)
}

/// Forgets the modules on a device whose context was destroyed.
pub(crate) fn unload(device: c_int) {
    with(|registry| {
        registry.functions.retain(|(_, of), _| *of != device);
        // The order does not matter, because each entry is only removed.
        #[allow(clippy::iter_over_hash_type, reason = "each entry is treated alike")]
        for container in registry.containers.values_mut() {
            container.modules.remove(&device);
        }
    });
}

/// Registers a container. The result identifies it in the other registrations.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinary(image: Handle) -> Handle {
    with(|registry| {
        // Numbers that are no valid pointers, 16 apart, because programs may expect alignment.
        registry.next += 16;
        registry.containers.insert(registry.next, Container { image, modules: BTreeMap::new() });
        Handle(registry.next)
    })
}

/// Ends the registrations of a container. Managed variables get their addresses.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_container: Handle) {
    let _later = place_managed();
}

/// Gives managed variables their addresses. Returns whether there were any.
#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(_container: Handle) -> c_char {
    c_char::from(place_managed().is_ok())
}

/// Stores the addresses of managed variables in the host pointers that lack them.
fn place_managed() -> Result<(), Status> {
    let waiting = with(|registry| std::mem::take(&mut registry.managed));
    if waiting.is_empty() {
        return Ok(());
    }
    let driver = context()?;
    for (pointer, member) in waiting {
        let (address, _) = with(|registry| registry.address(driver, &member, Status::INVALID_SYMBOL))?;
        Out::<usize>::at(pointer.0).set(address)?;
    }
    Ok(())
}

/// Removes a container and its registrations.
#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(container: Handle) {
    if host_memory::is_forked() {
        // A thread that does not exist in the child may hold the registry's lock.
        return;
    }
    // At the end of the process the driver may have ended already. The module ends with it.
    with(|registry| {
        registry.containers.remove(&container.0);
        let gone: Vec<usize> =
            registry.kernels.iter().filter(|(_, m)| m.container == container.0).map(|(k, _)| *k).collect();
        for kernel in gone {
            registry.kernels.remove(&kernel);
            registry.functions.retain(|(stub, _), _| *stub != kernel);
        }
        registry.variables.retain(|_, member| member.container != container.0);
        registry.textures.retain(|_, (member, _)| member.container != container.0);
        registry.surfaces.retain(|_, member| member.container != container.0);
    });
}

/// Registers a kernel under the address of its host stub.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFunction(
    container: Handle,
    stub: Handle,
    _stub_name: Handle,
    name: Text,
    _thread_limit: c_int,
    _thread: Handle,
    _block: Handle,
    _block_size: Handle,
    _grid_size: Handle,
    _warp_size: Handle,
) {
    if let Ok(name) = name.get() {
        with(|registry| registry.kernels.insert(stub.0, Member { container: container.0, name }));
    }
}

/// Registers a variable under the address of its host shadow.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterVar(
    container: Handle,
    shadow: Handle,
    _address: Handle,
    name: Text,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    if let Ok(name) = name.get() {
        with(|registry| registry.variables.insert(shadow.0, Member { container: container.0, name }));
    }
}

/// Registers a managed variable. Its address is stored at `pointer`.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterManagedVar(
    container: Handle,
    pointer: Handle,
    _address: Handle,
    name: Text,
    _external: c_int,
    _bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    if let Ok(name) = name.get() {
        let member = Member { container: container.0, name };
        with(|registry| {
            registry.variables.insert(pointer.0, member.clone());
            registry.managed.push((Pointer(pointer.0), member));
        });
    }
}

/// Registers a texture reference. `fractions` is not 0 if the texture reads integers as fractions.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterTexture(
    container: Handle,
    reference: Handle,
    _address: Handle,
    name: Text,
    _dimensions: c_int,
    fractions: c_int,
    _external: c_int,
) {
    if let Ok(name) = name.get() {
        let reads = if fractions != 0 { Reads::Fractions } else { Reads::Elements };
        let member = Member { container: container.0, name };
        with(|registry| registry.textures.insert(reference.0, (member, reads)));
    }
}

/// Registers a surface reference.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterSurface(
    container: Handle,
    reference: Handle,
    _address: Handle,
    name: Text,
    _dimensions: c_int,
    _external: c_int,
) {
    if let Ok(name) = name.get() {
        with(|registry| registry.surfaces.insert(reference.0, Member { container: container.0, name }));
    }
}

/// Registers a host variable for use in kernels, which is not supported.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterHostVar(_container: Handle, _name: Handle, _shadow: Handle, _bytes: usize) {}

/// Registers the table of a unified binary, which is not read.
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterUnifiedTable(_container: Handle, _table: Handle) -> c_uint {
    0
}
