//! Traces one thread: each instruction that it executes, with the thread's registers, while the launch runs.
//!
//! Invariant: a trace changes only the time of a launch. Only instructions in the interpreter are recorded,
//! because native code has no single instructions. Records arrive in the order of execution, on the OS thread
//! that runs the CTA.

use crate::fault_context::{LaneRegisters, function_at};
use crate::lanes::Registers;
use crate::warp::WarpState;
use ptx::Span;
use ptx::ir::Program;
use std::sync::Arc;

/// Receives the records.
type Sink = dyn Fn(&Traced<'_>) + Send + Sync;

/// The thread to trace, and the receiver of the records.
#[derive(Clone)]
pub struct Trace {
    ctaid: [u32; 3],
    tid: [u32; 3],
    sink: Arc<Sink>,
}

/// An instruction that the thread has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced<'a> {
    /// Name of the PTX source.
    pub file: &'a str,
    /// Line in the PTX text, from 1.
    pub line: u32,
    /// The function that contains it.
    pub function: &'a str,
    /// The instruction's text.
    pub instruction: &'a str,
    /// Whether its guard was true.
    pub executed: bool,
    /// The registers that it names, with their values after it, in hexadecimal.
    pub registers: Vec<(String, String)>,
}

impl Trace {
    /// Traces the thread with this `%ctaid` and `%tid`.
    pub fn new(ctaid: [u32; 3], tid: [u32; 3], sink: impl Fn(&Traced<'_>) + Send + Sync + 'static) -> Self {
        Self { ctaid, tid, sink: Arc::new(sink) }
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("ctaid", &self.ctaid).field("tid", &self.tid).finish()
    }
}

/// The trace of a launch.
#[derive(Clone)]
pub(crate) struct Tracing {
    pub(crate) trace: Trace,
    pub(crate) program: Arc<Program>,
}

impl Tracing {
    /// The lane of the thread, if it belongs to this warp.
    pub(crate) fn lane_in(&self, warp: &WarpState) -> Option<usize> {
        if warp.ctaid != self.trace.ctaid {
            return None;
        }
        (0..crate::lanes::LANES)
            .find(|lane| warp.live >> lane & 1 != 0 && warp.tid_of(*lane) == self.trace.tid)
    }

    /// Records an instruction that the thread executed, or skipped because of its guard.
    #[cold]
    pub(crate) fn step(&self, function: u32, span: Span, registers: &Registers, lane: usize, executed: bool) {
        let source = &self.program.source;
        let Some((function, inlined)) = function_at(&self.program, function, span) else { return };
        if span.start >= span.end {
            return;
        }
        let instruction = span.text(&source.text);
        let values = LaneRegisters::of(registers, lane);
        let values = inlined.map_or(values.clone(), |inlined| values.of_inlined(inlined));
        (self.trace.sink)(&Traced {
            file: source.name_of(span),
            line: source.line(span),
            function: &function.name,
            instruction,
            executed,
            registers: values.named_in(function, instruction),
        });
    }
}
