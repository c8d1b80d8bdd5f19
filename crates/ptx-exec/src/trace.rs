//! Following one thread: each instruction that it executes, with the registers of it, as the launch runs.
//!
//! Invariant: a trace changes nothing of what a launch does, save its time. Only the interpreter is traced: native code has no
//! instructions of the text left. Calls come in the order in which the thread executes; they come from the OS thread that runs it.

use crate::lanes::Registers;
use crate::warp::WarpState;
use crate::whereabouts::LaneRegisters;
use ptx::Span;
use ptx::ir::Program;
use std::sync::Arc;

/// Who gets the instructions.
type Sink = dyn Fn(&Traced<'_>) + Send + Sync;

/// The thread that is followed, and who gets its instructions.
#[derive(Clone)]
pub struct Trace {
    ctaid: [u32; 3],
    tid: [u32; 3],
    sink: Arc<Sink>,
}

/// An instruction that the thread has executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced<'a> {
    /// Name of the PTX source.
    pub file: &'a str,
    /// Line in the PTX text, from 1.
    pub line: u32,
    /// The function that runs.
    pub function: &'a str,
    /// The instruction as written.
    pub instruction: &'a str,
    /// Whether its guard let it execute.
    pub executed: bool,
    /// The registers that it names, with their values after it, as hexadecimal bits.
    pub registers: Vec<(String, String)>,
}

impl Trace {
    /// Follows the thread with these `%ctaid` and `%tid`.
    pub fn new(ctaid: [u32; 3], tid: [u32; 3], sink: impl Fn(&Traced<'_>) + Send + Sync + 'static) -> Self {
        Self { ctaid, tid, sink: Arc::new(sink) }
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("ctaid", &self.ctaid).field("tid", &self.tid).finish()
    }
}

/// A trace of a launch of a program.
pub(crate) struct Tracing {
    pub(crate) trace: Trace,
    pub(crate) program: Arc<Program>,
}

impl Tracing {
    /// The lane of the thread in a warp, if it is there.
    pub(crate) fn lane_in(&self, warp: &WarpState) -> Option<usize> {
        if warp.ctaid != self.trace.ctaid {
            return None;
        }
        (0..crate::lanes::LANES)
            .find(|lane| warp.live >> lane & 1 != 0 && warp.tid_of(*lane) == self.trace.tid)
    }

    /// Says that the thread has executed an instruction, or that its guard did not let it.
    #[cold]
    pub(crate) fn step(&self, function: u32, span: Span, registers: &Registers, lane: usize, executed: bool) {
        let source = &self.program.source;
        let Some(function) = self.program.functions.get(function as usize) else { return };
        if span.start >= span.end {
            return;
        }
        let instruction = span.text(&source.text);
        let values = LaneRegisters::of(registers, lane);
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
