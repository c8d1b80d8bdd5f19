//! The extension module `ptxvm._native` of the Python package: the Rust API of `ptxvm` as Python objects.
//!
//! It passes bytes, addresses and numbers; the modules in `python/ptxvm` convert them to numpy arrays, types
//! and messages. Nothing here depends on numpy.
//!
//! Invariant: Python's global interpreter lock is not held while a kernel runs, and a signal such as Ctrl-C
//! stops the launch for which the main thread waits. Python objects that lend memory to kernels exist at
//! least as long as the memory is lent.

mod device;
mod errors;
mod launch;
mod lend;
mod texture;
mod tools;

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<device::Device>()?;
    module.add_class::<device::Memory>()?;
    module.add_class::<device::Module>()?;
    module.add_class::<device::Stream>()?;
    module.add_class::<device::Mark>()?;
    module.add_class::<launch::Kernel>()?;
    module.add_class::<launch::Pending>()?;
    module.add_class::<texture::Texels>()?;
    module.add_class::<texture::Descriptor>()?;
    module.add_class::<texture::Object>()?;
    module.add_function(wrap_pyfunction!(tools::check, module)?)?;
    module.add_function(wrap_pyfunction!(tools::format, module)?)?;
    module.add_function(wrap_pyfunction!(tools::explain, module)?)?;
    module.add_function(wrap_pyfunction!(tools::codes, module)?)?;
    module.add_function(wrap_pyfunction!(tools::isa, module)?)?;
    Ok(())
}
