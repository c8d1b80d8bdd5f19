//! Random programs under all sanitizers: every finding must be real, and uninitialised values that initcheck
//! does not report must not affect results.
//!
//! The programs are valid and do not depend on the schedule, but some read shared or local memory that
//! nothing has written, and some let lanes of one warp store different values to one address by one
//! instruction, or threads exit before aligned barriers and warp-synchronous instructions of the others. So
//! the tools may report uninitialised reads, races inside of one warp, and threads that have exited; any
//! other finding is a false alarm. For uninitialised reads there is an independent judge: memory that begins
//! with other bytes ([`ptxvm::Fill`]). A program without a finding must leave the same results whatever
//! memory begins with.
//!
//! What it cannot judge: a finding of a program whose results happen not to change. Such programs are
//! counted.

use super::program::Program;
use super::run::{End, Given, end};
use ptxvm::{Engine, Fill, Finding, FindingKind, Options, Tool, Vm};

/// What memory begins with besides zeros.
const PATTERNS: [&[u8]; 3] = [&[0x5a], &[0xff], &[0xa5, 0xc3, 0x1e]];

/// What the tools say of a program, if it is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// They find no uninitialised read, and no pattern changes the results.
    Clean,
    /// They find one, and a pattern changes the results.
    Confirmed,
    /// They find one, and no pattern that was tried changes the results.
    Unconfirmed,
}

/// Runs a program under all tools.
///
/// # Errors
/// Says what is wrong with the findings, or that the program does not run.
pub(super) fn judge(program: &Program) -> Result<Judged, String> {
    let given = Given::new(program);
    let run = |vm: &Vm| end(vm, program, &given, Engine::Interp, 0).map_err(|error| error.to_string());
    let vm = Vm::with(Options::tools(Tool::ALL)).map_err(|error| error.to_string())?;
    if let End::Trap(trap) = run(&vm)? {
        return Err(format!("traps under tools: {trap}"));
    }
    vm.find_leaks();
    let findings = vm.findings();
    let wrong: Vec<Finding> = findings.iter().filter(|finding| !may_be(program, finding)).cloned().collect();
    if !wrong.is_empty() {
        return Err(format!("false alarms:\n{}", ptxvm::findings_text(&wrong)));
    }
    let found = findings.iter().any(|finding| finding.kind == FindingKind::UninitializedRead);
    let results = |fill: Option<Fill>| {
        let vm = Vm::with(Options { fill, ..Options::default() }).map_err(|error| error.to_string())?;
        run(&vm)
    };
    let zeros = results(None)?;
    let mut changed = None;
    for pattern in PATTERNS {
        changed = changed.or(results(Fill::new(pattern))?.difference(&zeros));
    }
    match (found, changed) {
        (false, None) => Ok(Judged::Clean),
        (true, Some(_)) => Ok(Judged::Confirmed),
        (true, None) => Ok(Judged::Unconfirmed),
        (false, Some(difference)) => {
            Err(format!("initcheck finds nothing, but memory matters: {difference}"))
        }
    }
}

/// Runs a program under racecheck: engines can only be compared where the order of warps and CTAs does not
/// matter.
///
/// # Errors
/// Says which races there are, or that the program does not run.
#[cfg(test)]
pub(super) fn races(program: &Program) -> Result<(), String> {
    let vm = Vm::with(Options::tool(Tool::Racecheck)).map_err(|error| error.to_string())?;
    end(&vm, program, &Given::new(program), Engine::Interp, 0).map_err(|error| error.to_string())?;
    let wrong: Vec<Finding> = vm.findings().into_iter().filter(|found| !may_be(program, found)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(ptxvm::findings_text(&wrong)) }
}

/// Whether a finding may be real.
fn may_be(program: &Program, finding: &Finding) -> bool {
    let [x, y, _] = program.block;
    let warp = |thread: [u32; 3]| (thread[0] + x * (thread[1] + y * thread[2])) / 32;
    match (finding.kind, &finding.other) {
        (FindingKind::UninitializedRead | FindingKind::BarrierExited, _) => true,
        // Where they had more to do, exited threads went past the barrier.
        (FindingKind::MemberMask, _) => finding.message.contains("have exited"),
        (FindingKind::DivergentBarrier, _) => finding.message.contains("went past"),
        (FindingKind::Race, Some(other)) => {
            (finding.cta, warp(finding.thread)) == (other.cta, warp(other.thread))
        }
        _ => false,
    }
}
