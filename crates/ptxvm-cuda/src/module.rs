//! Modules and functions.

use crate::context::{Context, current};
use crate::driver::status_of;
use crate::entry::entries;
use crate::ffi::{Out, Pointer, Text};
use crate::handles::Handle;
use crate::image;
use crate::status::Status;
use ptxvm::Kernel;
use std::sync::Arc;

/// A loaded module.
pub(crate) struct Module {
    pub(crate) context: Arc<Context>,
    pub(crate) loaded: ptxvm::Module,
}

/// A kernel of a module.
pub(crate) struct Function {
    pub(crate) context: Arc<Context>,
    pub(crate) kernel: Kernel,
}

entries! { ENTRIES;
    /// Loads a module from memory.
    fn cuModuleLoadData(module: Out<Handle>, image: Pointer) {
        let (driver, context) = current()?;
        module.check()?;
        let texts = image::texts(image)?;
        let texts: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let loaded = driver.vm.link(&texts).map_err(|error| status_of(&error))?;
        module.set(driver.modules.insert(Module { context, loaded }))
    }

    /// A kernel of a module, by name.
    fn cuModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) {
        let (driver, _) = current()?;
        function.check()?;
        let module = driver.modules.get(module)?;
        let name = name.get()?;
        let kernel = module.loaded.kernel(&name).map_err(|_| Status::NotFound)?;
        function.set(driver.functions.insert(Function { context: Arc::clone(&module.context), kernel }))
    }
}
