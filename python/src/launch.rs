//! Kernels, and launches, synchronous or in a stream.
//!
//! Invariant: while this thread waits, Python's signal handlers run. If a handler raises, the launch is
//! stopped before the exception propagates.

use crate::device::Stream;
use crate::errors::{raise, report_fields, usage};
use ptxvm::{Engine, Launch, Listing};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting thread looks for signals.
const TURN: Duration = Duration::from_millis(50);
/// How often progress is told.
const TOLD: Duration = Duration::from_millis(200);

/// Waits until `done`. Where a signal handler raises, `stop` is called and the exception is returned.
pub(crate) fn until(py: Python<'_>, done: impl Fn() -> bool + Sync, stop: impl Fn()) -> PyResult<()> {
    let mut pause = Duration::from_micros(20);
    while !done() {
        py.detach(|| std::thread::sleep(pause));
        pause = (pause * 2).min(TURN / 10);
        if let Err(raised) = py.check_signals() {
            stop();
            return Err(raised);
        }
    }
    Ok(())
}

/// A kernel.
#[pyclass(frozen)]
pub(crate) struct Kernel {
    pub(crate) kernel: ptxvm::Kernel,
}

/// What a launch is asked for, as `ptxvm/kernels.py` hands it over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Settings {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    cooperative: bool,
    params: Vec<u8>,
    threads: Option<u32>,
    seed: u64,
    max_steps: Option<u64>,
    timeout: Option<f64>,
    output_limit: Option<u64>,
    engine: String,
}

impl Settings {
    fn launch(self, py: Python<'_>) -> PyResult<Launch> {
        let mut launch = Launch::new(self.grid, self.block).shared(self.shared).seed(self.seed);
        launch.cooperative = self.cooperative;
        launch.params = self.params;
        launch.threads = self.threads;
        launch.max_steps = self.max_steps;
        launch.output_limit = self.output_limit.unwrap_or(Launch::OUTPUT_LIMIT);
        launch.timeout = match self.timeout.map(Duration::try_from_secs_f64) {
            None => None,
            Some(Ok(time)) if !time.is_zero() => Some(time),
            Some(_) => return Err(usage(py, "`timeout` is a positive number of seconds")),
        };
        launch.engine = match self.engine.as_str() {
            "auto" => Engine::Auto,
            "interp" => Engine::Interp,
            "jit" => Engine::Jit,
            other => return Err(usage(py, format!("`engine` is `auto`, `interp` or `jit`, not `{other}`"))),
        };
        Ok(launch)
    }
}

#[pymethods]
impl Kernel {
    /// Its parameters: name, offset, bytes, type, elements.
    fn params(&self) -> Vec<(String, usize, usize, &'static str, usize)> {
        let params = self.kernel.params().iter();
        params
            .map(|param| (param.name.clone(), param.offset, param.bytes, param.ty, param.elements))
            .collect()
    }

    /// Size of its parameter buffer.
    fn param_bytes(&self) -> usize {
        self.kernel.param_bytes()
    }

    /// What it needs of a device.
    fn resources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let resources = self.kernel.resources();
        let fields = PyDict::new(py);
        fields.set_item("registers", resources.registers)?;
        fields.set_item("shared", resources.shared)?;
        fields.set_item("local", resources.local)?;
        fields.set_item("constant", resources.constant)?;
        fields.set_item("max_threads", resources.max_threads)?;
        fields.set_item("required_block", resources.required_block.map(|[x, y, z]| (x, y, z)))?;
        fields.set_item("ptx_version", resources.ptx_version)?;
        fields.set_item("target", format!("sm_{}", resources.target))?;
        Ok(fields)
    }

    /// Its native code for CTAs of that shape: `llvm` or `asm`.
    fn listing(&self, py: Python<'_>, block: [u32; 3], what: &str) -> PyResult<String> {
        let what = match what {
            "llvm" => Listing::Llvm,
            "asm" => Listing::Asm,
            other => return Err(usage(py, format!("a listing is `llvm` or `asm`, not `{other}`"))),
        };
        py.detach(|| self.kernel.listing(block, what)).map_err(|error| raise(py, error, None))
    }

    /// Launches it and waits; gives the fields of a report. `progress` is called with the CTAs that have
    /// finished and their number, after the first second and then several times a second.
    fn launch<'py>(
        &self,
        py: Python<'py>,
        vm: &crate::device::Device,
        settings: Settings,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut launch = settings.launch(py)?;
        let cancel = Arc::new(AtomicBool::new(false));
        let finished = Arc::new(AtomicU64::new(0));
        (launch.cancel, launch.progress) = (Some(Arc::clone(&cancel)), Some(Arc::clone(&finished)));
        let ctas = launch.ctas();
        let (send, receive) = channel();
        // `mpsc::Receiver` is used by one thread at a time; detaching wants to know.
        let receive = Mutex::new(receive);
        let outcome = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("ptxvm launch".to_owned());
            let spawned = thread.spawn_scoped(scope, move || {
                let _the_caller_waits = send.send(vm.vm.launch(&self.kernel, &launch));
            });
            if let Err(error) = spawned {
                return Err(usage(py, format!("no thread for the launch: {error}")));
            }
            let (start, mut told) = (Instant::now(), Instant::now());
            let mut raised = None;
            loop {
                let next =
                    py.detach(|| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(TURN));
                match next {
                    Ok(result) => {
                        if let Some(raised) = raised {
                            return Err(raised);
                        }
                        return Ok(result);
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(usage(py, "the launch ended without a result (a bug of ptxvm)"));
                    }
                    Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
                    Err(RecvTimeoutError::Timeout) => {
                        let mut checked = py.check_signals();
                        if let (Ok(()), Some(progress)) = (&checked, &progress)
                            && start.elapsed() >= Duration::from_secs(1)
                            && told.elapsed() >= TOLD
                        {
                            told = Instant::now();
                            checked = progress.call1((finished.load(Ordering::Relaxed), ctas)).map(drop);
                        }
                        if let Err(error) = checked {
                            cancel.store(true, Ordering::Relaxed);
                            raised = Some(error);
                        }
                    }
                }
            }
        })?;
        let report = outcome.map_err(|error| raise(py, error, None))?;
        report_fields(py, &report)
    }

    /// Launches it in a stream. `keep` lives until the launch has ended: memory that it accesses.
    fn submit(
        &self,
        py: Python<'_>,
        stream: &Stream,
        settings: Settings,
        keep: Vec<Py<PyAny>>,
    ) -> PyResult<Pending> {
        let launch = settings.launch(py)?;
        self.kernel.check(&launch).map_err(|error| raise(py, error, None))?;
        let pending = stream.stream.launch(&self.kernel, launch);
        let _after_the_launch = stream.stream.submit(move || {
            // Without an interpreter the process is ending, and nothing is released any more.
            let kept = std::mem::ManuallyDrop::new(keep);
            let _ended = Python::try_attach(|_| drop(std::mem::ManuallyDrop::into_inner(kept)));
        });
        Ok(Pending { mark: pending.mark().clone(), pending: Mutex::new(Some(pending)) })
    }
}

/// A launch in a stream.
#[pyclass(frozen)]
pub(crate) struct Pending {
    mark: ptxvm::Mark,
    pending: Mutex<Option<ptxvm::Pending>>,
}

impl Pending {
    fn with<R>(&self, f: impl FnOnce(&ptxvm::Pending) -> R) -> Option<R> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(f)
    }
}

#[pymethods]
impl Pending {
    /// Whether it has ended.
    fn is_done(&self) -> bool {
        self.mark.is_done()
    }

    /// CTAs that have finished, and all; `None` after [`Pending::wait`].
    fn progress(&self) -> Option<(u64, u64)> {
        self.with(ptxvm::Pending::progress)
    }

    /// Stops it soon.
    fn cancel(&self) {
        let _gone = self.with(ptxvm::Pending::cancel);
    }

    /// Waits for its end; gives the fields of a report. The caller keeps them: a second call is an error.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        until(py, || self.mark.is_done(), || {})?;
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(pending) = pending else { return Err(usage(py, "the launch was waited for already")) };
        let report = py.detach(|| pending.wait()).map_err(|error| raise(py, error, None))?;
        report_fields(py, &report)
    }
}
