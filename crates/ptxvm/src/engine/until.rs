//! When a launch that waits for native code must stop.
//!
//! It does not wait by itself: [`Until::wait`] says for how long a launch may sleep before it asks again.

use ptx_exec::launch::LaunchConfig;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which a waiting launch checks whether it must stop, or whether abandoned code is ready.
const LOOKS: Duration = Duration::from_millis(5);

/// The stop conditions of a launch.
#[derive(Clone)]
pub(super) struct Until {
    deadline: Option<Instant>,
    cancel: Option<Arc<AtomicBool>>,
}

impl Until {
    pub(super) fn of(config: &LaunchConfig) -> Self {
        let deadline = config.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self { deadline, cancel: config.cancel.clone() }
    }

    /// How long the launch may wait; `None`: it must stop now.
    pub(super) fn wait(&self) -> Option<Duration> {
        if ptx_jit::is_ending() || self.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return None;
        }
        let left = self.deadline.map_or(LOOKS, |deadline| deadline.saturating_duration_since(Instant::now()));
        (!left.is_zero()).then_some(left.min(LOOKS))
    }

    /// The launch with its remaining time.
    pub(super) fn rest<'a>(&self, config: &'a LaunchConfig) -> Cow<'a, LaunchConfig> {
        let Some(deadline) = self.deadline else { return Cow::Borrowed(config) };
        let left = deadline.saturating_duration_since(Instant::now());
        Cow::Owned(LaunchConfig { timeout: Some(left), ..config.clone() })
    }
}
