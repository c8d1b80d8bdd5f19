//! The read-only state of a launch that all its warps share.
//!
//! Invariant: it does not change while a warp runs. Native code that becomes available meanwhile is used from
//! the warp's next slice on.

use crate::bound::{Block, Code, Function};
use crate::native::{Native, Supply};
use crate::trace::Tracing;
use crate::trap::FaultKind;
use crate::watch::{Interests, Watch};
use ptx::ir::Program;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{MutexGuard, OnceLock};
use std::time::Instant;

/// The read-only state of a launch.
#[derive(Clone, Copy)]
pub(crate) struct LaunchContext<'a> {
    /// Bound code.
    pub(crate) code: &'a Code,
    /// Address of the module's first function.
    pub(crate) functions: u64,
    /// Width of addresses.
    pub(crate) address_size: ptx::check::module::AddressSize,
    /// The PTX text.
    pub(crate) source: &'a ptx::check::module::Source,
    /// Native code of the kernel, if it is used.
    pub(crate) native: Option<&'a dyn Native>,
    /// Bytes of stack that the thread has for native code ([`Native::stack`]).
    pub(crate) stack: usize,
    /// Source of native code that becomes available during the launch.
    pub(crate) supply: Option<&'a dyn Supply>,
    /// The traced thread, if any.
    pub(crate) trace: Option<&'a Tracing>,
    /// The conditions that stop the launch.
    pub(crate) end: End<'a>,
    /// Whether observers are attached; then every warp has a site.
    pub(crate) watched: bool,
    /// The observers, and the program as they know it.
    pub(crate) watch: Option<(&'a Watch, &'a Program)>,
    /// By function, the instructions that observers ask for.
    pub(crate) interests: &'a [OnceLock<Interests>],
    /// Where observers are told that lanes exited in native code: block and instruction.
    pub(crate) exit: Option<(u32, u32)>,
    /// Whether to continue after misused barriers and warp-synchronous instructions, because an observer
    /// reports them.
    pub(crate) mends: bool,
}

/// The conditions that stop a launch, regardless of its progress.
#[derive(Clone, Copy, Default)]
pub(crate) struct End<'a> {
    /// The time limit.
    pub(crate) deadline: Option<Instant>,
    /// Set by the host.
    pub(crate) cancel: Option<&'a AtomicBool>,
    /// Set by observers.
    pub(crate) enough: Option<&'a AtomicBool>,
    /// Set where the launch must be repeated.
    pub(crate) conflict: Option<&'a AtomicBool>,
}

impl End<'_> {
    /// The condition that holds now, if any.
    pub(crate) fn come(self) -> Option<FaultKind> {
        if [self.cancel, self.enough, self.conflict]
            .into_iter()
            .flatten()
            .any(|flag| flag.load(Ordering::Relaxed))
        {
            return Some(FaultKind::Cancelled);
        }
        self.deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| FaultKind::TimeLimit)
    }
}

impl<'a> LaunchContext<'a> {
    /// The turn to execute in the interpreter, if observers are attached.
    pub(crate) fn turn(&self) -> Option<MutexGuard<'a, ()>> {
        self.watch.map(|(watch, _)| watch.turn())
    }

    /// The instructions of a function that observers ask for.
    pub(crate) fn interests(&self, function: u32) -> Option<&'a Interests> {
        let (watch, program) = self.watch?;
        let known = self.interests.get(function as usize)?;
        let text = program.functions.get(function as usize)?;
        Some(known.get_or_init(|| watch.interests(text)))
    }
}

impl LaunchContext<'_> {
    /// With native code, if the supply has code for which the thread has the stack.
    pub(crate) fn supplied(&self) -> Self {
        match (self.native, self.supply) {
            (None, Some(supply)) => {
                Self { native: supply.native().filter(|native| native.stack() <= self.stack), ..*self }
            }
            (Some(_), _) | (None, None) => *self,
        }
    }

    /// With native code for single warps, if the code is supplied and there is some.
    pub(crate) fn for_single_warps(&self) -> Self {
        let supplied = self.supply.and_then(|supply| supply.for_single_warps());
        Self { native: supplied.filter(|native| native.stack() <= self.stack).or(self.native), ..*self }
    }

    pub(crate) fn function(&self, index: u32) -> Option<&Function> {
        self.code.functions.get(index as usize)?.as_ref()
    }

    pub(crate) fn block(&self, function: u32, block: u32) -> Option<&Block> {
        self.function(function)?.blocks.get(block as usize)
    }

    /// An instruction and its line, as text for reports.
    pub(crate) fn place(&self, span: ptx::Span) -> String {
        format!("`{}` (line {})", span.text(&self.source.text), self.source.line(span))
    }
}
