//! Devices, memory, modules and streams.
//!
//! Invariant: device memory exists as long as its [`Memory`]. Modules, kernels and memory keep the device
//! alive.

use crate::errors::{diagnostics, raise, usage};
use crate::launch::{Kernel, until};
use crate::texture;
use ptxvm::{
    AddressSize, Buffer, CheckOptions, CodeCache, Cpu, Finding, Options, Rejection, SanitizeOptions, Sm,
    Tool, Vm,
};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;

/// A device.
#[pyclass(frozen)]
pub(crate) struct Device {
    pub(crate) vm: Arc<Vm>,
}

/// The options of checking.
pub(crate) fn options(py: Python<'_>, gpu_name: Option<&str>, strict: bool) -> PyResult<CheckOptions> {
    let sm = gpu_name.map(|name| {
        Sm::from_name(name).ok_or_else(|| {
            usage(py, format!("`{name}` is not an architecture that ptxvm knows, such as sm_80"))
        })
    });
    Ok(CheckOptions { gpu_name: sm.transpose()?, strict })
}

#[pymethods]
impl Device {
    /// `cpu`: `avx512`, `avx2`, `baseline` or `None`; `cache`: a folder for native code, empty for the
    /// user's, `None` for none; `tools`: sanitizers that watch all launches, as `ptxvm sanitize --tool` lists
    /// them.
    #[new]
    #[pyo3(signature = (cpu, cache, address_bits, tools, max_findings))]
    fn new(
        py: Python<'_>,
        cpu: Option<&str>,
        cache: Option<&str>,
        address_bits: u32,
        tools: Option<&str>,
        max_findings: Option<usize>,
    ) -> PyResult<Self> {
        let cpu = match cpu {
            None => None,
            Some("avx512") => Some(Cpu::Avx512),
            Some("avx2") => Some(Cpu::Avx2),
            Some("baseline") => Some(Cpu::Baseline),
            Some(other) => {
                return Err(usage(
                    py,
                    format!("`cpu` is `avx512`, `avx2`, `baseline` or None, not `{other}`"),
                ));
            }
        };
        let addresses = match address_bits {
            64 => AddressSize::Bits64,
            32 => AddressSize::Bits32,
            other => return Err(usage(py, format!("`address_bits` is 32 or 64, not {other}"))),
        };
        let cache = match cache {
            None => CodeCache::Off,
            Some("") => CodeCache::from_environment(),
            Some(folder) => CodeCache::folder(folder),
        };
        let sanitize = match tools {
            None => None,
            Some(list) => {
                let tools = Tool::parse_list(list).map_err(|said| usage(py, said))?;
                let max_findings = max_findings.unwrap_or(SanitizeOptions::MAX_FINDINGS);
                Some(SanitizeOptions { max_findings, ..SanitizeOptions::new(tools) })
            }
        };
        let vm = Vm::with(Options { addresses, cpu, cache, sanitize, ..Options::default() });
        Ok(Self { vm: Arc::new(vm.map_err(|error| raise(py, error, None))?) })
    }

    /// Checks texts, each with its name, links them where there are several, and loads the result; gives the
    /// module, and the warnings.
    fn load<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<(String, String)>,
        gpu_name: Option<&str>,
        strict: bool,
    ) -> PyResult<(Module, Bound<'py, PyList>)> {
        let options = options(py, gpu_name, strict)?;
        let texts: Vec<(&str, &str)> =
            texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let checked = py.detach(|| match texts.as_slice() {
            [(name, text)] => ptxvm::check(name, text, &options),
            texts => ptxvm::link(texts, &options),
        });
        let found = checked.diagnostics;
        let Some(module) = checked.module else {
            let error = ptxvm::ErrorKind::Rejected(Rejection {
                diagnostics: found,
                source: Arc::clone(&checked.source),
            })
            .into();
            return Err(raise(py, error, Some(&checked.source)));
        };
        let loaded = py.detach(|| self.vm.load_module(module));
        let module = loaded.map_err(|error| raise(py, error, Some(&checked.source)))?;
        Ok((
            Module { module, _device: Arc::clone(&self.vm) },
            diagnostics(py, &found, Some(&checked.source))?,
        ))
    }

    /// What the sanitizers have found, each finding as a line of JSON and as people read it.
    fn findings(&self) -> Vec<(String, String)> {
        let found = self.vm.findings();
        let one = |finding: &Finding| {
            let (json, text) = (
                ptxvm::findings_json(std::slice::from_ref(finding)),
                ptxvm::findings_text(std::slice::from_ref(finding)),
            );
            // Behind the finding stands the summary.
            let json = json.lines().next().unwrap_or_default().to_owned();
            let text = text.split("\nERROR SUMMARY").next().unwrap_or_default().to_owned();
            (json, text)
        };
        found.iter().map(one).collect()
    }

    /// Ends the program for the sanitizers: memory of the device's heap that was not freed is a leak from now
    /// on.
    fn find_leaks(&self, py: Python<'_>) {
        py.detach(|| self.vm.find_leaks());
    }

    /// Whether the sanitizers record no more findings.
    fn findings_are_full(&self) -> bool {
        self.vm.findings_are_full()
    }

    /// Memory; `name` stands in reports. It is zero, and for initcheck it has values only if `written`.
    fn alloc(&self, py: Python<'_>, name: &str, bytes: u64, written: bool) -> PyResult<Memory> {
        let made = py.detach(|| match written {
            true => self.vm.named_zeros(name, bytes),
            false => self.vm.named_unwritten(name, bytes),
        });
        let buffer = made.map_err(|error| raise(py, error, None))?;
        Ok(Memory { address: buffer.address(), bytes, owner: Owner::Device(buffer) })
    }

    /// Lends memory of the host to kernels, which `owner` keeps.
    fn adopt(
        &self,
        py: Python<'_>,
        name: &str,
        address: u64,
        bytes: u64,
        owner: Py<PyAny>,
    ) -> PyResult<Memory> {
        self.lend(py, name, address, bytes, owner)
    }

    /// The allocation that holds an address: where it begins and ends.
    fn allocation_at(&self, address: u64) -> Option<(u64, u64)> {
        self.vm.allocation_at(address).map(|range| (range.start, range.end))
    }

    /// Bytes of memory in use, and how many there is room for.
    fn memory_usage(&self) -> (u64, u64) {
        self.vm.memory_usage()
    }

    /// A stream of its own.
    fn stream(&self) -> Stream {
        Stream { stream: self.vm.stream() }
    }

    /// Waits until everything is done that streams were given.
    fn synchronize(&self, py: Python<'_>) {
        py.detach(|| self.vm.synchronize());
    }

    /// Zeroed texels.
    fn texels(
        &self,
        py: Python<'_>,
        shape: texture::ShapeFields,
        data_type: &str,
        order: &str,
    ) -> PyResult<texture::Texels> {
        texture::texels(py, &self.vm, shape, data_type, order)
    }

    /// An object with a handle.
    fn object(
        &self,
        py: Python<'_>,
        name: &str,
        descriptor: &texture::Descriptor,
    ) -> PyResult<texture::Object> {
        texture::object(py, &self.vm, name, descriptor)
    }
}

/// Memory that kernels may access.
#[pyclass(frozen)]
pub(crate) struct Memory {
    /// Where it begins, for the device and for the host.
    #[pyo3(get)]
    pub(crate) address: u64,
    /// Its size.
    #[pyo3(get)]
    pub(crate) bytes: u64,
    pub(crate) owner: Owner,
}

#[pymethods]
impl Memory {
    /// Tells the sanitizers that the host writes to it by its address.
    fn mark_written(&self) {
        match &self.owner {
            Owner::Device(buffer) => buffer.report_write(),
            // Memory of the host has values already.
            Owner::Lent { .. } => {}
        }
    }
}

/// Who owns memory.
pub(crate) enum Owner {
    /// The device.
    Device(Buffer<u8>),
    /// An object of Python, which has lent it.
    Lent {
        /// To this device.
        vm: Arc<Vm>,
        /// It.
        _array: Py<PyAny>,
    },
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Owner::Lent { vm, .. } = &self.owner {
            let _was_lent = vm.disown(self.address);
        }
    }
}

/// A loaded module.
#[pyclass(frozen)]
pub(crate) struct Module {
    module: ptxvm::Module,
    _device: Arc<Vm>,
}

#[pymethods]
impl Module {
    /// The names of its kernels.
    fn kernels(&self) -> Vec<String> {
        self.module.kernels().map(str::to_owned).collect()
    }

    /// A kernel by its name.
    fn kernel(&self, py: Python<'_>, name: &str) -> PyResult<Kernel> {
        let kernel = py.detach(|| self.module.kernel(name)).map_err(|error| raise(py, error, None))?;
        Ok(Kernel { kernel })
    }

    /// Address and size of a `.global` or `.const` variable.
    fn variable(&self, name: &str) -> Option<(u64, u64)> {
        self.module.global(name)
    }

    /// Binds a texture, surface or sampler to a variable.
    fn bind(&self, py: Python<'_>, name: &str, descriptor: &texture::Descriptor) -> PyResult<()> {
        self.module.bind(name, &descriptor.descriptor).map_err(|error| raise(py, error, None))
    }
}

/// A queue of work.
#[pyclass(frozen)]
pub(crate) struct Stream {
    pub(crate) stream: ptxvm::Stream,
}

#[pymethods]
impl Stream {
    /// Waits until everything is done that was submitted.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        let mark = self.stream.record();
        until(py, || mark.is_done(), || {})
    }

    /// Whether everything is done that was submitted.
    fn is_idle(&self) -> bool {
        self.stream.is_idle()
    }

    /// The place after all that was submitted.
    fn record(&self) -> Mark {
        Mark { mark: self.stream.record() }
    }

    /// What is submitted from now on waits for a mark.
    fn wait(&self, mark: &Mark) {
        self.stream.wait(&mark.mark);
    }
}

/// A place in a stream.
#[pyclass(frozen)]
pub(crate) struct Mark {
    mark: ptxvm::Mark,
}

#[pymethods]
impl Mark {
    /// Whether everything before it is done.
    fn is_done(&self) -> bool {
        self.mark.is_done()
    }

    /// Waits for that.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        until(py, || self.mark.is_done(), || {})
    }

    /// Seconds from this mark to a later one; `None` where one is not reached.
    fn seconds_to(&self, later: &Mark) -> Option<f64> {
        let (from, to) = (self.mark.reached()?, later.mark.reached()?);
        Some(match to.checked_duration_since(from) {
            Some(time) => time.as_secs_f64(),
            None => -from.duration_since(to).as_secs_f64(),
        })
    }
}
