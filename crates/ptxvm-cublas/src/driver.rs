//! ptxvm's driver library, opened at run time: streams, contexts, and checks of device memory.
//!
//! Invariant: the library stays open as long as the process lives. The driver owns submitted work until it
//! releases it. With another driver every call fails, because only ptxvm's driver has the entry points used
//! here.

use crate::log;
use crate::status::{Answer, Status};
use host_memory::Access;
use std::ffi::{c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Work in a stream. It may run several times if the stream was captured into a graph.
type Work = Box<dyn Fn() -> Answer + Send + Sync>;
type Run = unsafe extern "C" fn(*mut c_void) -> c_int;
type Release = unsafe extern "C" fn(*mut c_void);

/// The functions of the driver that this crate calls.
pub(crate) struct Driver {
    init: extern "C" fn(c_uint) -> c_int,
    get_current: extern "C" fn(*mut usize) -> c_int,
    set_current: extern "C" fn(usize) -> c_int,
    retain: extern "C" fn(*mut usize, c_int) -> c_int,
    get_flags: extern "C" fn(usize, *mut c_uint) -> c_int,
    submit: extern "C" fn(usize, c_uint, Run, Release, *mut c_void) -> c_int,
    reach: extern "C" fn(u64, u64, c_uint, *mut [u64; 2]) -> c_int,
    _library: libloading::Library,
}

impl Driver {
    fn open() -> Option<Self> {
        // SAFETY: the driver's constructors may run at any time.
        let open = |name: &str| unsafe { libloading::Library::new(name) }.ok();
        let library = open("libcuda.so.1").or_else(|| open("libptxvm_cuda.so"))?;
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the symbol has the field's type, as the public header of the driver API or ptxvm's
                // driver declares it.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }.ok()?
            };
        }
        Some(Self {
            init: symbol!("cuInit"),
            get_current: symbol!("cuCtxGetCurrent"),
            set_current: symbol!("cuCtxSetCurrent"),
            retain: symbol!("cuDevicePrimaryCtxRetain"),
            get_flags: symbol!("cuStreamGetFlags"),
            submit: symbol!("ptxvmSubmit"),
            reach: symbol!("ptxvmReach"),
            _library: library,
        })
    }
}

/// The initialized driver.
///
/// # Errors
/// `CUBLAS_STATUS_NOT_INITIALIZED` without ptxvm's driver, and in a forked child of the process that opened
/// it.
fn driver() -> Answer<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    host_memory::watch();
    if host_memory::is_forked() {
        return Err(Status::NOT_INITIALIZED);
    }
    let open = || Driver::open().filter(|driver| (driver.init)(0) == 0);
    DRIVER.get_or_init(open).as_ref().ok_or(Status::NOT_INITIALIZED)
}

/// Initializes the driver, and makes its primary context current if the thread has no context, as the runtime
/// API does.
///
/// # Errors
/// `CUBLAS_STATUS_NOT_INITIALIZED`.
pub(crate) fn enter() -> Answer<&'static Driver> {
    let driver = driver()?;
    let mut current = 0;
    let fail = |code: c_int| Status::NOT_INITIALIZED.unless(code == 0);
    fail((driver.get_current)(&mut current))?;
    if current == 0 {
        fail((driver.retain)(&mut current, 0))?;
        fail((driver.set_current)(current))?;
    }
    Ok(driver)
}

/// Whether a handle names a stream.
pub(crate) fn is_stream(stream: usize) -> Answer<bool> {
    let mut flags = 0;
    Ok((enter()?.get_flags)(stream, &mut flags) == 0)
}

/// Submits work to a stream, or makes it a node of the graph that the stream is captured into.
///
/// # Errors
/// `CUBLAS_STATUS_EXECUTION_FAILED` if the driver rejects the work, for example after a trap.
pub(crate) fn submit(
    name: &'static str,
    stream: usize,
    work: impl Fn() -> Answer + Send + Sync + 'static,
) -> Answer {
    let work: Work = Box::new(move || {
        work().inspect_err(|status| {
            log::say(&format!("ptxvm: {name} failed in its stream: {}", status.name().to_string_lossy()));
        })
    });
    hand_over(stream, false, work)
}

/// Runs work in a stream's order, waits for it, and returns its result.
///
/// # Errors
/// The work's own error; `CUBLAS_STATUS_EXECUTION_FAILED` in a captured stream, and if the driver rejects the
/// work.
pub(crate) fn perform<T: Send + 'static>(
    stream: usize,
    work: impl Fn() -> Answer<T> + Send + Sync + 'static,
) -> Answer<T> {
    let given = std::sync::Arc::new(Mutex::new(None));
    let place = std::sync::Arc::clone(&given);
    let lock = |place: &Mutex<Option<Answer<T>>>, value| {
        std::mem::replace(&mut *place.lock().unwrap_or_else(PoisonError::into_inner), value)
    };
    let handed = hand_over(
        stream,
        true,
        Box::new(move || {
            let answer = work();
            let outcome = answer.as_ref().map(|_| ()).map_err(|status| *status);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            outcome
        }),
    );
    match lock(&given, None) {
        Some(answer) => answer,
        None => Err(handed.err().unwrap_or(Status::EXECUTION_FAILED)),
    }
}

fn hand_over(stream: usize, now: bool, work: Work) -> Answer {
    let driver = enter()?;
    let work = Box::into_raw(Box::new(work));
    let code = (driver.submit)(stream, now.into(), run, release, work.cast());
    Status::EXECUTION_FAILED.unless(code == 0)
}

/// Runs work at its turn in the stream. Returns 0, or the error's number in the driver API.
///
/// # Safety
/// `work` is the pointer that `hand_over` gave to the driver, and was not released.
unsafe extern "C" fn run(work: *mut c_void) -> c_int {
    // SAFETY: the driver passes the pointer that `hand_over` gave it, before it releases it.
    let work = unsafe { &*work.cast::<Work>() };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(Status::ALLOC_FAILED)) => 2,
        Ok(Err(_)) => 700,
        Err(_) => {
            log::say(
                "ptxvm bug: a product of matrices panicked; please report it with the program and this text",
            );
            999
        }
    }
}

/// Frees the work.
///
/// # Safety
/// `work` is the pointer that `hand_over` gave to the driver. It is not used afterwards.
unsafe extern "C" fn release(work: *mut c_void) {
    // SAFETY: the driver releases the pointer that `hand_over` gave it once.
    drop(unsafe { Box::from_raw(work.cast::<Work>()) });
}

/// Whether kernels could access some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Access them as wanted.
    Permitted,
    /// Nothing: the bytes are no device memory, nor host memory that kernels can access.
    Unknown,
    /// Not access all of them as wanted. With the address and size of the allocation that contains the first
    /// byte, or zeros.
    Refused([u64; 2]),
}

/// Whether kernels could access these bytes, which the call accesses next.
///
/// # Errors
/// `CUBLAS_STATUS_NOT_INITIALIZED`.
pub(crate) fn reach(address: u64, bytes: u64, access: Access) -> Answer<Reach> {
    ask(address, bytes, c_uint::from(access == Access::Write))
}

/// Whether the driver knows memory: it is of a device, or host memory that kernels can access.
///
/// # Errors
/// `CUBLAS_STATUS_NOT_INITIALIZED`.
pub(crate) fn knows(address: u64, bytes: u64) -> Answer<bool> {
    Ok(ask(address, bytes, 2)? != Reach::Unknown)
}

fn ask(address: u64, bytes: u64, how: c_uint) -> Answer<Reach> {
    let mut allocation = [0; 2];
    Ok(match (driver()?.reach)(address, bytes, how, &mut allocation) {
        0 => Reach::Permitted,
        // `CUDA_ERROR_INVALID_VALUE`
        1 => Reach::Unknown,
        _ => Reach::Refused(allocation),
    })
}
