//! The progress line of long launches, and the signals that stop a launch.
//!
//! Invariant: nothing is printed unless standard error is a terminal and the launch takes long. The first
//! SIGINT or SIGTERM stops the launch, so that its report is printed. The second ends the program at once, as
//! does the first before and after the launch.

use crate::{Exit, UsageError};
use ptxvm::{Error, Kernel, Launch, Report, Vm};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Time before the first progress line.
const SILENT: Duration = Duration::from_secs(1);
/// Interval between progress lines.
const EACH: Duration = Duration::from_millis(500);

/// Signals that stop a launch.
pub(crate) struct Interrupt {
    flag: Arc<AtomicBool>,
    /// The received signal.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Installs the handlers.
    pub(crate) fn new() -> Result<Self, UsageError> {
        let own = Self { flag: Arc::default(), signal: Arc::default() };
        for signal in [SIGINT, SIGTERM] {
            // In this order: the handler of the second signal must be installed before the flag is set.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&own.flag))?;
            signal_hook::flag::register_usize(signal, Arc::clone(&own.signal), signal as usize)?;
            signal_hook::flag::register(signal, Arc::clone(&own.flag))?;
        }
        Ok(own)
    }

    /// A flag that a signal sets.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Removes the handlers. Returns how the program must end because of an earlier signal.
    pub(crate) fn end(&self) -> Option<Exit> {
        let came = self.flag.swap(true, Ordering::Relaxed);
        let term = self.signal.load(Ordering::Relaxed) == SIGTERM as usize;
        came.then_some(if term { Exit::Terminated } else { Exit::Interrupted })
    }
}

/// Runs a kernel, and prints its progress on a terminal.
pub(crate) fn watched(vm: &Vm, kernel: &Kernel, launch: &mut Launch) -> Result<Report, Error> {
    let done = Arc::new(AtomicU64::new(0));
    launch.progress = Some(Arc::clone(&done));
    if !std::io::stderr().is_terminal() {
        return vm.launch(kernel, launch);
    }
    let (end, ended) = mpsc::channel::<()>();
    let all = launch.ctas();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut said = false;
            while ended.recv_timeout(if said { EACH } else { SILENT }) == Err(RecvTimeoutError::Timeout) {
                let done = done.load(Ordering::Relaxed);
                let percent = done as f64 / all as f64 * 100.0;
                let _gone = write!(std::io::stderr(), "\r{done} of {all} CTAs ({percent:.1} %) ");
                said = true;
            }
            if said {
                let _gone = write!(std::io::stderr(), "\r\x1b[K");
            }
        });
        let result = vm.launch(kernel, launch);
        drop(end);
        result
    })
}
