//! Coarse warps in kernels with loops and without barriers.
//!
//! The iterations of a loop often depend on each other: a sum waits for the previous sum. A single warp has
//! one or two such chains, and the processor waits for each addition. The warps of a coarse warp have
//! independent chains, and share the counter of the loop, its branch, its addresses and its bounds checks.
//!
//! Warps whose loops end at different iterations lose by it, since each executes as long as the longest. So
//! warps stay single if data of each lane, or the number of the thread, decides how long a loop takes, or if
//! some lanes only execute a loop. A loop whose counter begins at the number of the thread, and ends for all
//! lanes but a few at the same iteration, is as good as one that ends for all.
//!
//! Loops whose iterations are independent, as those of a copy, already execute several iterations at once.
//! They gain little, and their code would be several times as long.
//!
//! Invariant: an estimate changes nothing.

use super::{AS_LONG, cost};
use crate::analysis::branches::Branches;
use crate::build::region::between;
use crate::tuning::COARSE_WARP_MIN_GAIN;
use crate::wir::loops::{Loop, loops};
use crate::wir::{Func, LaunchShape, Shape};
use ptx::ir::Function;

/// Whether the warps of a function may gain if several execute in lockstep. `func`: its WIR, of a single warp
/// or of a coarse warp. What is uniform in a warp may differ between the warps of a coarse warp.
///
/// # Errors
/// The reason why single warps are expected to be as fast.
pub(super) fn may_pay(func: &Func, function: &Function) -> Result<(), &'static str> {
    let (branches, loops) = (Branches::new(func, function), loops(function));
    let carries = |one: &Loop| {
        let headers = func.blocks.iter().filter(|block| block.full && block.block as usize == one.header);
        let mut values = headers.flat_map(|block| &block.phis).map(|phi| phi.def);
        values
            .any(|value| func.shapes[value.0 as usize] == Shape::Varying && branches.is_made_in(*one, value))
    };
    if !loops.iter().any(carries) {
        return Err("no iteration needs a vector of the previous one");
    }
    ends_together(func, function, &branches)
}

/// Whether no loop takes longer for some lanes than for others. `func`: of a single warp or of a coarse warp.
///
/// # Errors
/// What decides how long a loop takes.
pub(super) fn ends_together(
    func: &Func,
    function: &Function,
    branches: &Branches<'_>,
) -> Result<(), &'static str> {
    let loops = loops(function);
    for block in &func.blocks {
        let Some(lower) = Branches::divergent(block) else { continue };
        // A branch whose sides meet again before an iteration ends costs at most both sides.
        if between(function, block.block, usize::MAX).is_some() {
            continue;
        }
        let Ok(compared) = branches.compared(lower) else {
            return Err("data of each lane decides how long a loop takes");
        };
        let inside = loops.iter().filter(|one| one.blocks().contains(&(block.block as usize)));
        let Some(innermost) = inside.min_by_key(|one| one.latch - one.header) else { continue };
        if !compared.numbers.iter().all(|number| branches.is_made_in(*innermost, *number)) {
            return Err("the number of the thread decides how long a loop takes");
        }
    }
    Ok(())
}

/// Whether the coarse warp is expected to be faster than its warps one after another. What is uniform in a
/// warp and differs between warps costs it an instruction for each chunk.
///
/// # Errors
/// The reason why not.
pub(super) fn pays(
    (single, alone): (&Func, LaunchShape),
    (coarse, together): (&Func, LaunchShape),
    function: &Function,
) -> Result<(), &'static str> {
    may_pay(coarse, function)?;
    let separate = cost::loops(single, function, alone) * u64::from(together.team);
    match separate - separate / COARSE_WARP_MIN_GAIN >= cost::loops(coarse, function, together) {
        true => Ok(()),
        false => Err(AS_LONG),
    }
}

#[cfg(test)]
mod tests {
    use super::may_pay;
    use crate::effects::NativeEffects;
    use crate::wir::LaunchShape;

    /// The answer for a single warp, and for a coarse warp of four. The loop goes to L while `%p1`; `%r1` is
    /// the thread index, `%r2` a counter.
    fn answers(before: &str, end: &str) -> [Result<(), &'static str>; 2] {
        let text = format!(
            ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{{\n\
             .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>;\n\
             mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; ld.param.u32 %r3, [n]; mov.u32 %r2, 0;\n\
             mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; {before}\n\
             L: ld.global.u32 %r6, [%rd1]; add.s64 %rd1, %rd1, 512; add.u32 %r7, %r7, %r6;\n\
             add.u32 %r2, %r2, 1; {end} @%p1 bra L;\n\
             st.global.u32 [%rd1], %r7; ret;\n}}\n"
        );
        let checked = ptx::check::check("test.ptx", &text, &ptx::check::CheckOptions::default());
        let Some(module) = checked.module else { panic!("{:?}", checked.diagnostics) };
        let program = ptx::ir::lower(module);
        [1, 4].map(|team| {
            let launch = LaunchShape { ntid: [128, 1, 1], chunk: 16, team, ctas: 1, rows: false };
            let func = crate::pipeline::wir(&program.functions[0], launch, &NativeEffects::default());
            may_pay(&func.expect("it is small"), &program.functions[0])
        })
    }

    #[test]
    fn loops_that_end_for_all_lanes_are_executed_in_lockstep() {
        assert_eq!(answers("", "setp.lt.u32 %p1, %r2, %r3;"), [Ok(()), Ok(())]);
        // A few lanes leave an iteration earlier.
        let stride = answers("", "add.u32 %r1, %r1, 128; setp.lt.u32 %p1, %r1, %r3;");
        assert_eq!(stride, [Ok(()), Ok(())]);
        // A part of an iteration is for the lanes that have found something.
        let work = "mul.lo.u32 %r6, %r6, 5; xor.b32 %r7, %r7, %r6; ".repeat(20);
        let part = format!(
            "and.b32 %r5, %r6, 3; setp.eq.u32 %p2, %r5, 0; @%p2 bra N; {work} N: setp.lt.u32 %p1, %r2, %r3;"
        );
        assert_eq!(answers("", &part), [Ok(()), Ok(())]);
    }

    #[test]
    fn loops_with_independent_iterations_keep_warps_single() {
        let none = Err("no iteration needs a vector of the previous one");
        assert_eq!(answers("", "mov.u32 %r7, 0; setp.lt.u32 %p1, %r2, %r3;"), [none, none]);
    }

    #[test]
    fn loops_whose_end_depends_on_the_lane_keep_warps_single() {
        let data = Err("data of each lane decides how long a loop takes");
        assert_eq!(answers("", "setp.ne.u32 %p1, %r6, 0;"), [data, data]);
        let thread = Err("the number of the thread decides how long a loop takes");
        assert_eq!(answers("", "setp.lt.u32 %p1, %r2, %r1;"), [thread, thread]);
        // The number of the warp, and what is read by it, is uniform in a single warp.
        let warp = "shr.u32 %r4, %r1, 5;";
        assert_eq!(answers(warp, "setp.lt.u32 %p1, %r2, %r4;"), [Ok(()), thread]);
        let read = "shr.u32 %r4, %r1, 5; mul.wide.u32 %rd3, %r4, 4; ld.param.u64 %rd2, [p]; \
                    add.s64 %rd3, %rd3, %rd2; ld.global.u32 %r4, [%rd3];";
        assert_eq!(answers(read, "setp.lt.u32 %p1, %r2, %r4;"), [Ok(()), data]);
    }
}
