//! Where native code leaves something to the interpreter, why, and how often.
//!
//! Code is compiled with a table of its side exits. An exit returns its number in the table, so counting
//! costs nothing while native code runs. The host adds one to the exit's count, and resolves the counts to
//! lines of the text when the launch ends. Calls of the interpreter's step for one instruction are counted by
//! its place.
//!
//! Invariant: a count belongs to one entry of the table of one code. A launch whose code is replaced while it
//! runs gets code that executes coarse warps in the same way, so their numbers stay valid, too
//! ([`Supply`](super::Supply)).
//!
//! It does not count where native code stops and is entered again at once: loops that yield with all lanes,
//! and barriers at which warps wait without frames.

use super::{ExitPlace, Native, NativeStop, SideExit};
use ptx::ir::{Function, Inst, Program};
use std::collections::BTreeMap;
use std::fmt;

/// Why native code is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum ExitCause {
    /// An access is out of bounds, misaligned, or not in the memory that the code was made for.
    Bounds,
    /// Where a number is widened, it has wrapped around in some lane.
    Wraps,
    /// One of both, in a check that tests both.
    BoundsOrWraps,
    /// A load reads undefined bytes, which a tool follows.
    Undefined,
    /// An access may race with another one, which a tool follows.
    Unordered,
    /// A barrier that native code does not pass.
    Barrier,
    /// A call of a device function.
    Call,
    /// The index of `brx.idx` is beyond the list.
    BeyondTargets,
    /// Lanes of the member mask have not arrived.
    MissingLanes,
    /// A coarse warp of several CTAs is at an edge: an index is changed there, or its lanes diverge.
    Edge,
    /// The loop has run for long, and diverged lanes wait for their turn.
    Fuel,
    /// The code was not entered: the registers do not have the form that it expects.
    EntryForm,
    /// The warps of a CTA wait at different barriers.
    BarrierMismatch,
    /// The instruction has no native code.
    NoNativeCode,
}

impl ExitCause {
    /// All causes, by their numbers.
    pub const ALL: [Self; 14] = [
        Self::Bounds,
        Self::Wraps,
        Self::BoundsOrWraps,
        Self::Undefined,
        Self::Unordered,
        Self::Barrier,
        Self::Call,
        Self::BeyondTargets,
        Self::MissingLanes,
        Self::Edge,
        Self::Fuel,
        Self::EntryForm,
        Self::BarrierMismatch,
        Self::NoNativeCode,
    ];

    /// The cause as text.
    pub fn text(self) -> &'static str {
        match self {
            Self::Bounds => "a bounds check failed",
            Self::Wraps => "a lane wraps around where a number is widened",
            Self::BoundsOrWraps => "a bounds check failed, or a lane wraps around where a number is widened",
            Self::Undefined => "a load reads undefined bytes",
            Self::Unordered => "accesses may race",
            Self::Barrier => "the warp waits at a barrier",
            Self::Call => "a device function is called",
            Self::BeyondTargets => "the index is beyond the list of targets",
            Self::MissingLanes => "lanes of the member mask have not arrived",
            Self::Edge => "rows of several CTAs are at an edge",
            Self::Fuel => "a loop runs for long while diverged lanes wait",
            Self::EntryForm => "registers do not have the form that native code expects",
            Self::BarrierMismatch => "warps of a CTA wait at different barriers",
            Self::NoNativeCode => "the instruction has no native code",
        }
    }

    /// The cause as a word, for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bounds => "bounds",
            Self::Wraps => "wraps",
            Self::BoundsOrWraps => "bounds-or-wraps",
            Self::Undefined => "undefined",
            Self::Unordered => "unordered",
            Self::Barrier => "barrier",
            Self::Call => "call",
            Self::BeyondTargets => "beyond-targets",
            Self::MissingLanes => "missing-lanes",
            Self::Edge => "edge",
            Self::Fuel => "fuel",
            Self::EntryForm => "entry-form",
            Self::BarrierMismatch => "barrier-mismatch",
            Self::NoNativeCode => "no-native-code",
        }
    }
}

/// What the interpreter executes where native code does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExitScope {
    /// The instruction alone.
    Instruction,
    /// The warp, until it enters native code again.
    Warp,
    /// All warps of a coarse warp, until they enter native code again, each on its own.
    CoarseWarp,
}

impl ExitScope {
    /// The scope as a word, for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Instruction => "instruction",
            Self::Warp => "warp",
            Self::CoarseWarp => "coarse-warp",
        }
    }
}

/// A place where native code is left, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExitPoint {
    /// The place of the running lanes.
    pub place: ExitPlace,
    /// Why.
    pub cause: ExitCause,
    /// The instructions that the cause is about: block and instruction. A check of many accesses does not
    /// tell which of them failed.
    pub sites: Vec<[u32; 2]>,
}

/// How often native code was left, by the number of the exit, and called the interpreter's step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitCounts {
    warps: Vec<u64>,
    coarse: Vec<u64>,
    refused: BTreeMap<u32, u64>,
    mismatches: u64,
    steps: BTreeMap<[u32; 2], u64>,
}

impl ExitCounts {
    /// Counts a stop of a single warp, if it is a side exit. `pending`: whether diverged lanes wait.
    pub fn warp(&mut self, exit: u32, stop: &NativeStop, pending: bool) {
        match stop {
            NativeStop::Yield { .. } if !pending => {}
            NativeStop::Yield { .. } | NativeStop::Terminator { .. } | NativeStop::Before { .. } => {
                add(&mut self.warps, exit as usize, 1);
            }
            NativeStop::Finished | NativeStop::Declined | NativeStop::Fault { .. } => {}
        }
    }

    /// Counts a side exit of a coarse warp.
    pub fn coarse(&mut self, exit: u32) {
        add(&mut self.coarse, exit as usize, 1);
    }

    /// Counts an entry at a block that native code refused.
    pub fn refused(&mut self, block: u32) {
        *self.refused.entry(block).or_default() += 1;
    }

    /// Counts a CTA whose warps wait at different barriers.
    pub fn mismatch(&mut self) {
        self.mismatches += 1;
    }

    /// Counts a call of the interpreter's step for one instruction: block and instruction.
    pub(crate) fn step(&mut self, site: [u32; 2]) {
        *self.steps.entry(site).or_default() += 1;
    }

    /// Adds other counts, and sets those to zero.
    pub(crate) fn take(&mut self, other: &mut Self) {
        let Self { warps, coarse, refused, mismatches, steps } = std::mem::take(other);
        (0..).zip(warps).for_each(|(at, count)| add(&mut self.warps, at, count));
        (0..).zip(coarse).for_each(|(at, count)| add(&mut self.coarse, at, count));
        refused.into_iter().for_each(|(block, count)| *self.refused.entry(block).or_default() += count);
        self.mismatches += mismatches;
        steps.into_iter().for_each(|(site, count)| *self.steps.entry(site).or_default() += count);
    }

    /// Whether nothing was counted.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The counts by line and cause, most frequent first, of launches with this code.
    pub(crate) fn resolve(
        &self,
        (program, function): (&Program, &Function),
        native: &dyn Native,
    ) -> Vec<SideExits> {
        let mut all: BTreeMap<(Vec<u32>, Option<String>, ExitCause, ExitScope), u64> = BTreeMap::new();
        let mut note = |sites: &[[u32; 2]], cause: Option<ExitCause>, scope, count| {
            if count > 0 {
                let (lines, instruction) = lines_of((program, function), sites);
                // Else the step was called because a check failed.
                let lacks = || instruction.as_ref().is_some_and(|name| native.lacks(name));
                let of_step = || if lacks() { ExitCause::NoNativeCode } else { ExitCause::Bounds };
                let cause = cause.unwrap_or_else(of_step);
                *all.entry((lines, instruction, cause, scope)).or_default() += count;
            }
        };
        for (exit, count) in native.exits().iter().zip(&self.warps) {
            note(&exit.sites, Some(exit.cause), ExitScope::Warp, *count);
        }
        let leaves = native.coarse_code().map_or(&[][..], |code| &code.leaves);
        for (SideExit { point, .. }, count) in leaves.iter().zip(&self.coarse) {
            note(&point.sites, Some(point.cause), ExitScope::CoarseWarp, *count);
        }
        for (block, count) in &self.refused {
            note(&[[*block, 0]], Some(ExitCause::EntryForm), ExitScope::Warp, *count);
        }
        note(&[], Some(ExitCause::BarrierMismatch), ExitScope::Warp, self.mismatches);
        for (site, count) in &self.steps {
            note(&[*site], None, ExitScope::Instruction, *count);
        }
        let flat = |((lines, instruction, cause, scope), count)| SideExits {
            lines,
            instruction,
            cause,
            scope,
            count,
        };
        let mut exits: Vec<_> = all.into_iter().map(flat).collect();
        // Equal counts remain in the order of lines.
        exits.sort_by_key(|exits| std::cmp::Reverse(exits.count));
        exits
    }
}

fn add(counts: &mut Vec<u64>, at: usize, count: u64) {
    if counts.len() <= at {
        counts.resize(at + 1, 0);
    }
    counts[at] += count;
}

/// The lines of instructions, and their name if they all have one.
fn lines_of((program, function): (&Program, &Function), sites: &[[u32; 2]]) -> (Vec<u32>, Option<String>) {
    let find = |[block, index]: &[u32; 2]| -> Option<&Inst> {
        let block = function.blocks.get(*block as usize)?;
        block.insts.get(*index as usize).or_else(|| block.term.inst())
    };
    let found: Vec<&Inst> = sites.iter().filter_map(find).collect();
    let mut lines: Vec<u32> = found.iter().map(|inst| program.source.line(inst.span)).collect();
    lines.sort_unstable();
    lines.dedup();
    let mut names = found.iter().map(|inst| format!("{}{}", inst.row.form().mnemonic, inst.mods));
    let name = names.next().filter(|first| names.all(|name| name == *first));
    (lines, name)
}

/// The side exits of a launch at the same lines for the same cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideExits {
    /// The lines of the PTX text that the cause is about. None if it is about no instruction.
    pub lines: Vec<u32>,
    /// The instruction, if all have the same name.
    pub instruction: Option<String>,
    /// Why native code was left.
    pub cause: ExitCause,
    /// What the interpreter executed.
    pub scope: ExitScope,
    /// How often.
    pub count: u64,
}

impl fmt::Display for SideExits {
    /// Such as ``line 23: `ld.global.u32`: a bounds check failed: 12 times in a warp``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.lines {
            [] => {}
            [line] => write!(f, "line {line}: ")?,
            [first, .., last] => write!(f, "{} lines from {first} to {last}: ", self.lines.len())?,
        }
        if let Some(instruction) = &self.instruction {
            write!(f, "`{instruction}`: ")?;
        }
        let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
        let scope = match self.scope {
            ExitScope::Instruction => "for this instruction alone",
            ExitScope::Warp => "in a warp",
            ExitScope::CoarseWarp => "in a coarse warp",
        };
        write!(f, "{}: {times} {scope}", self.cause.text())
    }
}
