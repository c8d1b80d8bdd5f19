//! What all warps of a launch look at.
//!
//! Invariant: nothing in it changes while a warp runs; native code that comes meanwhile is seen from the warp's next turn on.

use crate::bound::{Block, Code, Function};
use crate::native::{Native, Supply};
use crate::trace::Tracing;
use crate::trap::FaultKind;
use crate::watch::{Interests, Watch};
use ptx::ir::Program;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Everything of a launch that a running warp looks at.
#[derive(Clone, Copy)]
pub(crate) struct World<'a> {
    /// Bound code.
    pub(crate) code: &'a Code,
    /// Address of the module's first function.
    pub(crate) functions: u64,
    /// Width of addresses.
    pub(crate) address_size: ptx::check::module::AddressSize,
    /// The PTX text.
    pub(crate) source: &'a ptx::check::module::Source,
    /// Native code of the kernel, if it is to be used.
    pub(crate) native: Option<&'a dyn Native>,
    /// Where native code may come from while the launch runs.
    pub(crate) supply: Option<&'a dyn Supply>,
    /// The thread that is followed.
    pub(crate) trace: Option<&'a Tracing>,
    /// When the launch is to stop.
    pub(crate) end: End<'a>,
    /// Whether observers see it: then every warp has a site.
    pub(crate) watched: bool,
    /// The observers, and the program as they know it.
    pub(crate) watch: Option<(&'a Watch, &'a Program)>,
    /// By function, which instructions observers want to be told of.
    pub(crate) interests: &'a [OnceLock<Interests>],
    /// Whether it goes on behind mistakes at barriers and warp-synchronous instructions, because an observer reports them.
    pub(crate) mends: bool,
}

/// When a launch is to stop, whatever it has done by then.
#[derive(Clone, Copy, Default)]
pub(crate) struct End<'a> {
    /// At that time.
    pub(crate) deadline: Option<Instant>,
    /// When the host sets this.
    pub(crate) cancel: Option<&'a AtomicBool>,
    /// When observers set this.
    pub(crate) enough: Option<&'a AtomicBool>,
}

impl End<'_> {
    /// Why it is to stop now.
    pub(crate) fn come(self) -> Option<FaultKind> {
        if [self.cancel, self.enough].into_iter().flatten().any(|flag| flag.load(Ordering::Relaxed)) {
            return Some(FaultKind::Cancelled);
        }
        self.deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| FaultKind::TimeLimit)
    }
}

impl<'a> World<'a> {
    /// Which instructions of a function observers want to be told of.
    pub(crate) fn interests(&self, function: u32) -> Option<&'a Interests> {
        let (watch, program) = self.watch?;
        let known = self.interests.get(function as usize)?;
        let text = program.functions.get(function as usize)?;
        Some(known.get_or_init(|| watch.interests(text)))
    }
}

impl World<'_> {
    /// With native code, if some has come that can run on any thread.
    pub(crate) fn supplied(&self) -> Self {
        match (self.native, self.supply) {
            (None, Some(supply)) => {
                Self { native: supply.native().filter(|native| native.stack() == 0), ..*self }
            }
            (Some(_), _) | (None, None) => *self,
        }
    }

    pub(crate) fn function(&self, index: u32) -> Option<&Function> {
        self.code.functions.get(index as usize)?.as_ref()
    }

    pub(crate) fn block(&self, function: u32, block: u32) -> Option<&Block> {
        self.function(function)?.blocks.get(block as usize)
    }

    /// An instruction and its line, for reports.
    pub(crate) fn place(&self, span: ptx::Span) -> String {
        format!("`{}` (line {})", span.text(&self.source.text), self.source.line(span))
    }
}
