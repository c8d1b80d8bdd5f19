//! Our driver library, opened at run time: streams, contexts, and which memory may be reached.
//!
//! Invariant: the library stays open as long as the process. Work that was handed over is owned by the driver until it releases it. With another
//! driver than ours, nothing works: it has no entry points for our libraries.

use crate::log;
use crate::status::{Answer, Status};
use std::ffi::{c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Work in a stream; it may run several times where the stream was captured into a graph.
type Work = Box<dyn Fn() -> Answer + Send + Sync>;
type Run = unsafe extern "C" fn(*mut c_void) -> c_int;
type Release = unsafe extern "C" fn(*mut c_void);

/// The functions of the driver that are used.
pub(crate) struct Driver {
    init: extern "C" fn(c_uint) -> c_int,
    get_current: extern "C" fn(*mut usize) -> c_int,
    set_current: extern "C" fn(usize) -> c_int,
    retain: extern "C" fn(*mut usize, c_int) -> c_int,
    get_flags: extern "C" fn(usize, *mut c_uint) -> c_int,
    submit: extern "C" fn(usize, c_uint, Run, Release, *mut c_void) -> c_int,
    reach: extern "C" fn(u64, u64, *mut [u64; 2]) -> c_int,
    _library: libloading::Library,
}

impl Driver {
    fn open() -> Option<Self> {
        // SAFETY: the driver's constructors are those of a library that may be loaded at any time.
        let open = |name: &str| unsafe { libloading::Library::new(name) }.ok();
        let library = open("libcuda.so.1").or_else(|| open("libptxvm_cuda.so"))?;
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the symbol is a function of the field's type: as the public header of the driver API declares it, or as our driver does.
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

/// The driver, started.
///
/// # Errors
/// `CUBLAS_STATUS_NOT_INITIALIZED` without our driver, and in a child of the process that opened it.
fn driver() -> Answer<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    host_memory::watch();
    if host_memory::is_forked() {
        return Err(Status::NOT_INITIALIZED);
    }
    let open = || Driver::open().filter(|driver| (driver.init)(0) == 0);
    DRIVER.get_or_init(open).as_ref().ok_or(Status::NOT_INITIALIZED)
}

/// Starts the driver, and makes its primary context current where the thread has none, as the runtime API does.
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

/// Does something in a stream's order when its turn comes, or makes it a node of a graph.
///
/// # Errors
/// `CUBLAS_STATUS_EXECUTION_FAILED` where the driver does not take it, for one after a trap.
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

/// Does something in a stream's order before this returns; what it gives.
///
/// # Errors
/// What the work says; `CUBLAS_STATUS_EXECUTION_FAILED` in a captured stream, and where the driver does not take it.
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

/// Runs the work when its turn in the stream has come. Returns 0, or the driver API's number of the error.
///
/// # Safety
/// `work` is what `hand_over` gave to the driver, and has not been released.
unsafe extern "C" fn run(work: *mut c_void) -> c_int {
    // SAFETY: the driver calls with what `hand_over` gave it, before it releases that.
    let work = unsafe { &*work.cast::<Work>() };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(Status::ALLOC_FAILED)) => 2,
        Ok(Err(_)) => 700,
        Err(_) => {
            log::say(
                "ptxvm bug: a product of matrices failed in itself; please report it with the program and this text",
            );
            999
        }
    }
}

/// Frees the work.
///
/// # Safety
/// `work` is what `hand_over` gave to the driver; nothing uses it afterwards.
unsafe extern "C" fn release(work: *mut c_void) {
    // SAFETY: the driver releases once what `hand_over` gave it.
    drop(unsafe { Box::from_raw(work.cast::<Work>()) });
}

/// Whether kernels could access these bytes; else the allocation that holds the first of them, as its address and size.
///
/// # Errors
/// `CUBLAS_STATUS_NOT_INITIALIZED`.
pub(crate) fn reach(address: u64, bytes: u64) -> Answer<Result<(), [u64; 2]>> {
    let mut allocation = [0; 2];
    let code = (driver()?.reach)(address, bytes, &mut allocation);
    Ok(if code == 0 { Ok(()) } else { Err(allocation) })
}
