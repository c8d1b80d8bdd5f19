//! CTAs that begin as one and go on alone: native code that executes nothing leaves them in each way.

use crate::bound::Term;
use crate::native::{CoarseCode, CtaCall, CtaCode, CtaStop, ExitPoint, Native, NativeCall, NativeStop};
use crate::testkit::*;
use ptx::isa::{Sem, Space};
use std::sync::Arc;
use std::time::Duration;

/// CTAs of the grid, in x and in y: two times four execute as one, and two are left in each row.
const GRID: [u32; 3] = [10, 3, 1];
const BLOCK: [u32; 3] = [8, 4, 1];
/// So many calls use up the time that a coarse warp may run while other CTAs wait.
const SLICE: Duration = Duration::from_millis(110);

/// How the native code leaves every coarse warp.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    Declined,
    Mismatch,
    OutOfFuel,
}

/// Native code for four CTAs of one warp each as one.
struct Four {
    leaves: Leaves,
    coarse: CoarseCode,
    single: CtaCode,
    most_groups: u32,
}

impl Native for Four {
    fn stack(&self) -> usize {
        0
    }

    fn may_wait(&self) -> bool {
        false
    }

    fn function(&self) -> u32 {
        0
    }

    fn enters(&self, _block: u32) -> bool {
        false
    }

    fn most_steps(&self, _fuel: i64) -> u64 {
        0
    }

    fn waits(&self, _header: u32) -> bool {
        false
    }

    fn watches(&self, _header: u32) -> bool {
        false
    }

    fn reads_clocks(&self) -> bool {
        false
    }

    fn run(&self, _call: &mut NativeCall<'_>) -> NativeStop {
        NativeStop::Declined
    }

    fn cta(&self) -> &CtaCode {
        &self.single
    }

    fn run_cta(&self, _call: &mut CtaCall<'_>) -> CtaStop {
        CtaStop::Warp(NativeStop::Declined)
    }

    fn coarse(&self) -> Option<&CoarseCode> {
        Some(&self.coarse)
    }

    fn coarse_code(&self) -> Option<&CoarseCode> {
        Some(&self.coarse)
    }

    fn exits(&self) -> &[ExitPoint] {
        &[]
    }

    fn lacks(&self, _instruction: &str) -> bool {
        false
    }

    fn most_groups(&self) -> u32 {
        self.most_groups
    }

    fn run_coarse(&self, call: &mut CtaCall<'_>) -> CtaStop {
        let edge = u32::from(self.coarse.edges_alone[0]);
        assert!(call.together() <= self.coarse.ctas * self.most_groups);
        assert!(call.ctaid[0] + call.together() + edge <= GRID[0], "the CTAs are in one row");
        assert!(call.ctaid[0] >= edge, "the first CTA of a row executes alone");
        let in_edge_row = call.ctaid[1] == 0 || call.ctaid[1] + 1 == GRID[1];
        assert!(
            !self.coarse.edges_alone[1] || !in_edge_row,
            "CTAs of the first and the last row execute alone"
        );
        match self.leaves {
            Leaves::Declined => CtaStop::Declined,
            Leaves::Mismatch => CtaStop::BarrierMismatch,
            Leaves::OutOfFuel => {
                std::thread::sleep(SLICE);
                CtaStop::OutOfFuel
            }
        }
    }

    fn is_checked(&self) -> bool {
        false
    }

    fn can_batch_ctas(&self) -> bool {
        true
    }
}

/// Runs a kernel whose threads each add 1 to a word of their own.
fn each_once(leaves: Leaves, threads: u32, edges_alone: [bool; 2], most_groups: u32) {
    let mut machine = Machine::new();
    // With a limit of steps, CTAs do not begin in native code.
    (machine.threads, machine.max_steps) = (threads, None);
    let cta = CtaCode { bytes: 64, barriers: Vec::new() };
    let coarse = CoarseCode { warps: 4, ctas: 4, least_row: [4, 4], edges_alone, cta, leaves: Vec::new() };
    machine.native = Some(Arc::new(Four { leaves, coarse, single: CtaCode::default(), most_groups }));
    let count = GRID.iter().chain(&BLOCK).product();
    let out = machine.array(count);
    let index = |e: &crate::bound::Exec<'_>, l: usize| gtid(e, l) + 320 * e.warp.ctaid[1];
    let kernel = function(
        "k",
        vec![block(
            vec![
                load(Space::Global, Sem::Weak, out, 0, index),
                set(0, |e, l| r(e, 0, l) + 1),
                store(Space::Global, Sem::Weak, out, 0, index),
            ],
            Term::Exit,
        )],
    );
    let outcome = machine.run_shape(&code(vec![kernel]), GRID, BLOCK, None);
    assert!(outcome.trap.is_none() && outcome.error.is_none(), "{leaves:?}");
    assert_eq!(outcome.finished, u64::from(GRID[0] * GRID[1]), "{leaves:?}");
    assert_eq!(machine.read(out, count), vec![1; count as usize], "{leaves:?}, {threads} threads");
}

#[test]
fn ctas_that_began_as_one_run_once_each() {
    for threads in [1, 2] {
        for edges_alone in [[false; 2], [true, false], [true; 2]] {
            for most_groups in [1, 3] {
                each_once(Leaves::Declined, threads, edges_alone, most_groups);
                each_once(Leaves::Mismatch, threads, edges_alone, most_groups);
            }
        }
    }
}

/// The thread starts other CTAs before those that began as one are finished.
#[test]
fn ctas_that_began_as_one_and_take_long_run_once_each() {
    each_once(Leaves::OutOfFuel, 1, [false; 2], 1);
    each_once(Leaves::OutOfFuel, 1, [false; 2], 2);
    each_once(Leaves::OutOfFuel, 1, [true, false], 2);
}
