//! WIR of small functions.

use super::{ExitReason, Func, LaunchShape, Op, OpKind, Shape, Term};
use crate::effects::NativeEffects;
use ptx::ir::Program;

fn func(body: &str, ntid: [u32; 3]) -> Func {
    team_plan(body, ntid, 1)
}

fn program(body: &str) -> Program {
    let text = format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{{\n\
         .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;\n{body}\n}}\n"
    );
    let checked = ptx::check::check("test.ptx", &text, &ptx::check::CheckOptions::default());
    let Some(module) = checked.module else { panic!("{:?}", checked.diagnostics) };
    ptx::ir::lower(module)
}

fn team_plan(body: &str, ntid: [u32; 3], team: u32) -> Func {
    crate::pipeline::wir(
        &program(body).functions[0],
        LaunchShape { ntid, chunk: 16, team, ctas: 1, rows: false },
        &NativeEffects::default(),
    )
    .expect("small")
}

fn exits(func: &Func) -> Vec<ExitReason> {
    let exit = |term: &Term| match term {
        Term::Exit(exit) => Some(exit.why),
        _ => None,
    };
    func.blocks.iter().filter_map(|node| exit(&node.term)).collect()
}

#[test]
fn straight_code_of_whole_warps_has_no_masked_copy() {
    let func = func("mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; st.global.u32 [%rd1], %r2; ret;", [64, 1, 1]);
    assert!(func.blocks.iter().all(|node| node.full));
}

#[test]
fn a_branch_on_the_thread_number_parts_the_lanes_and_one_on_a_parameter_does_not() {
    let parted =
        "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; @%p1 bra L; st.global.u32 [%rd1], %r1; L: ret;";
    let whole =
        "ld.param.u32 %r1, [n]; setp.lt.u32 %p1, %r1, 5; @%p1 bra L; st.global.u32 [%rd1], %r1; L: ret;";
    assert!(func(parted, [64, 1, 1]).blocks.iter().any(|node| !node.full));
    assert!(func(whole, [64, 1, 1]).blocks.iter().all(|node| node.full));
}

#[test]
fn a_large_function_has_one_masked_copy_of_each_block() {
    // Conditions of one lane each, behind which more lanes follow than a short region has.
    let conditions = |count: usize| -> String {
        let one = |at: usize| {
            let work = format!("mul.lo.u32 %r1, %r1, %r2; add.u32 %r1, %r1, {at}; ").repeat(10);
            format!("setp.lt.u32 %p1, %r1, {at}; @%p1 bra L{at}; {work} L{at}: xor.b32 %r1, %r1, {at}; ")
        };
        let all: String = (0..count).map(one).collect();
        format!("mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; {all} st.global.u32 [%rd1], %r1; ret;")
    };
    let copies = |func: &Func| {
        let mut copies: Vec<u32> = func
            .blocks
            .iter()
            .filter(|node| node.ops.iter().any(|op| matches!(op.kind, OpKind::Inst(_))))
            .map(|node| node.block)
            .collect();
        copies.sort_unstable();
        let all = copies.len();
        copies.dedup();
        (all, copies.len())
    };
    let (small, large) = (func(&conditions(9), [50, 1, 1]), func(&conditions(300), [50, 1, 1]));
    let (all, distinct) = copies(&small);
    assert!(all > distinct + distinct / 2, "{all} copies of {distinct} blocks");
    let (all, distinct) = copies(&large);
    assert_eq!(all, distinct);
    assert!(large.instructions().count() > crate::tuning::LARGE_FUNCTION_MIN_INSTRUCTIONS);
}

#[test]
fn behind_a_short_condition_all_lanes_run_again() {
    let nested = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; @%p1 bra L; \
                  ld.shared.u32 %r2, [%rd1]; setp.lt.u32 %p2, %r2, %r1; @%p2 bra L; st.shared.u32 [%rd1], %r1; \
                  L: bar.sync 0; add.u32 %r3, %r1, 1; st.global.u32 [%rd2], %r3; ret;";
    let behind = |func: &Func| func.blocks.iter().filter(|node| node.block > 2 && !node.full).count();
    assert_eq!(behind(&func(nested, [64, 1, 1])), 0);
    assert_eq!(behind(&team_plan(nested, [128, 1, 1], 4)), 0);
}

#[test]
fn numbers_without_common_bits_are_a_sum() {
    let body = "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r2, 10; or.b32 %r4, %r3, %r1; \
                st.global.u32 [%rd1], %r4; ret;";
    let func = func(body, [1024, 1, 1]);
    let defs = func.blocks.iter().flat_map(|node| &node.ops).flat_map(|op| &op.defs);
    let classes: Vec<&Shape> = defs.map(|name| &func.shapes[name.0 as usize]).collect();
    assert!(classes.iter().all(|class| **class != Shape::Varying));
    assert!(classes.iter().any(|class| matches!(class, Shape::Affine(pattern) if pattern.lanes[31] == 31)));
}

#[test]
fn thread_numbers_are_patterns_where_the_shape_allows() {
    let body = "mov.u64 %rd1, 64; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; add.u32 %r3, %r1, %r2; \
                st.global.u32 [%rd1], %r3; ret;";
    let classes = |ntid| -> Vec<Shape> {
        let func = func(body, ntid);
        // Names that nothing defines any more have a class too.
        let defined = func.blocks.iter().flat_map(|node| &node.ops).flat_map(|op| &op.defs);
        defined
            .map(|name| func.shapes[name.0 as usize].clone())
            .filter(|class| matches!(class, Shape::Affine(_) | Shape::Varying))
            .collect()
    };
    // Rows of 32: x is the lane, y is the same in a warp.
    let Some(Shape::Affine(x)) = classes([32, 4, 1]).into_iter().next() else { panic!("no pattern") };
    assert_eq!((x.by_chunk, x.lanes[31]), (false, 31));
    // Rows of 16: each chunk of 16 lanes has its own y, which in a warp is a step of one.
    let found = classes([16, 4, 1]);
    assert!(found.iter().all(|class| matches!(class, Shape::Affine(_))), "{found:?}");
    // Rows of 24 do not line up with warps or chunks.
    assert!(classes([24, 4, 1]).contains(&Shape::Varying));
}

#[test]
fn barriers_and_calls_leave_and_can_be_entered_behind() {
    let func = func("mov.u32 %r1, %tid.x; bar.sync 0; st.global.u32 [%rd1], %r1; ret;", [64, 1, 1]);
    assert!(exits(&func).contains(&ExitReason::Terminator { block: 0 }));
    assert!(func.entries.iter().any(|entry| entry.block == 1));
}

#[test]
fn loops_can_be_left_when_their_turns_are_over() {
    let body = "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra L; ret;";
    assert!(exits(&func(body, [64, 1, 1])).iter().any(|why| matches!(why, ExitReason::Yield { .. })));
}

/// Branches that part lanes and meet again, one after another, in a loop.
fn joins_in_a_loop(count: u32) -> Func {
    let mut body = "mov.u32 %r1, %tid.x; mov.u32 %r2, 0; LOOP: ".to_owned();
    for at in 0..count {
        body += &format!(
            "mad.lo.u32 %r1, %r1, 5, {at}; setp.lt.u32 %p1, %r1, 9; @%p1 bra E{at}; xor.b32 %r3, %r3, %r1; \
             bra J{at}; E{at}: add.u32 %r3, %r3, 1; J{at}: "
        );
    }
    body += "add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 100; @%p2 bra LOOP; st.global.u32 [%rd1], %r3; ret;";
    func(&body, [64, 1, 1])
}

#[test]
fn a_plan_grows_with_the_number_of_joins_and_not_with_its_square() {
    // Phis with each of their operands, operations with each of theirs: what code is made of.
    let size = |func: &Func| -> usize {
        let phis = func.blocks.iter().flat_map(|node| &node.phis).map(|phi| 1 + phi.from.len());
        let ops = func.blocks.iter().flat_map(|node| &node.ops).map(|op| 1 + op.uses.len());
        phis.chain(ops).sum()
    };
    let (few, many) = (size(&joins_in_a_loop(10)), size(&joins_in_a_loop(80)));
    assert!(many <= 9 * few, "10 joins: {few}, 80 joins: {many}");
}

#[test]
fn a_team_that_is_the_whole_cta_does_not_stop_at_barriers() {
    let body = "mov.u32 %r1, %tid.x; bar.sync 0; st.global.u32 [%rd1], %r1; ret;";
    let stops = |ntid, team| {
        let why = exits(&team_plan(body, ntid, team));
        why.iter().filter(|why| matches!(why, ExitReason::Terminator { .. })).count()
    };
    assert_eq!((stops([64, 1, 1], 1), stops([64, 1, 1], 2), stops([128, 1, 1], 2)), (1, 0, 1));
}

#[test]
fn rows_of_a_team_are_a_base_and_a_stride() {
    let body = "mov.u64 %rd1, 64; ld.param.u32 %r3, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;
                mad.lo.u32 %r4, %r2, %r3, %r1; st.global.u32 [%rd1], %r4; ret;";
    let func = team_plan(body, [16, 16, 1], 8);
    let rows = func.shapes.iter().filter_map(|class| match class {
        Shape::Affine(pattern) if !pattern.rows.is_empty() => Some(pattern),
        _ => None,
    });
    let found: Vec<_> = rows.map(|p| (p.rows[0], p.rows[16], p.rows[255], p.lanes[255])).collect();
    assert_eq!(found, [(0, 1, 15, 15)]);
}

#[test]
fn lanes_of_a_vector_are_in_rows_of_at_least_four() {
    let rows = |body: &str, ntid| {
        let func = func(
            &format!("mov.u64 %rd1, 64; ld.param.u32 %r3, [n]; {body} st.global.u32 [%rd1], %r4; ret;"),
            ntid,
        );
        let found = func.shapes.iter().find_map(|class| match class {
            Shape::Affine(pattern) if !pattern.rows.is_empty() => Some(pattern.clone()),
            _ => None,
        });
        found.map(|p| (p.run(16), p.rows[31], p.lanes[31]))
    };
    let by_two = "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mad.lo.u32 %r4, %r2, %r3, %r1;";
    assert_eq!(rows(by_two, [8, 8, 1]), Some((8, 3, 7)));
    assert_eq!(rows(by_two, [4, 8, 1]), Some((4, 7, 3)));
    assert_eq!(rows(by_two, [2, 16, 1]), None);
    // A scalar for each vector says the same.
    assert_eq!(rows(by_two, [16, 8, 1]), None);
    let by_one =
        "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 3; and.b32 %r5, %r1, 7; mad.lo.u32 %r4, %r2, %r3, %r5;";
    assert_eq!(rows(by_one, [64, 1, 1]), Some((8, 3, 7)));
}

#[test]
fn numbers_of_16_bits_are_patterns_where_no_lane_wraps_around() {
    let widened = |made: &str| {
        let body = format!(
            ".reg .b16 %h<3>; mov.u32 %r1, %tid.x; cvt.u16.u32 %h0, %r1; {made} cvt.u32.u16 %r4, %h1; st.global.u32 [%rd1], %r4; ret;"
        );
        let func = func(&body, [64, 1, 1]);
        let made = |op: &&Op| matches!(op.kind, OpKind::Inst(_)) && !op.defs.is_empty();
        let last = func.blocks.iter().flat_map(|node| &node.ops).rfind(made);
        matches!(&func.shapes[last.expect("there is one").defs[0].0 as usize], Shape::Affine(_))
    };
    assert!(widened("shl.b16 %h1, %h0, 4;"));
    assert!(widened("mul.lo.u16 %h1, %h0, 500;"));
    assert!(!widened("mul.lo.u16 %h1, %h0, 600;"), "63 times 600 is more than 15 bits");
    assert!(!widened("sub.s16 %h1, %h0, 1;"));
}

#[test]
fn what_each_way_computes_alike_is_no_choice_behind_them() {
    let body = "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; setp.lt.u32 %p1, %r2, %r1; mov.u32 %r3, %r1; @%p1 bra L; \
                cvt.u64.u32 %rd1, %r1; bra E; L: cvt.u64.u32 %rd1, %r1; T: add.u32 %r3, %r3, 128; \
                setp.lt.u32 %p2, %r3, 144; @%p2 bra T; E: bar.sync 0; shl.b64 %rd2, %rd1, 2; \
                st.shared.u32 [%rd2], %r3; ret;";
    let func = team_plan(body, [128, 1, 1], 4);
    let kept = func.resumes.iter().flat_map(|resume| &resume.kept);
    let long = kept.filter(|(reg, _)| reg.class == ptx::ir::RegClass::R64);
    let mut all =
        func.blocks.iter().flat_map(|node| &node.ops).filter(|op| op.defs.is_empty() && op.uses.len() == 3);
    let address = |op: &Op| func.shapes[op.uses[1].0 as usize].clone();
    let kept: Vec<_> = long.map(|(_, name)| func.shapes[name.0 as usize].clone()).collect();
    assert!(kept.iter().all(|class| matches!(class, Shape::Affine(_))), "{kept:?}");
    assert!(all.all(|op| matches!(address(op), Shape::Affine(_))));
}

#[test]
fn lanes_that_parted_in_a_short_condition_and_met_again_are_those_from_before() {
    let body = "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; add.u32 %r2, %r2, %r1; setp.eq.u32 %p3, %r1, 15; @%p3 bra R; \
                setp.ne.u32 %p1, %r1, 0; @%p1 bra E; setp.lt.u32 %p2, %r2, 5; @%p2 bra S; mov.u32 %r2, 7; \
                S: st.shared.u32 [%rd1], %r2; bra E; R: st.shared.u32 [%rd1+4], %r1; E: bar.sync 0; ret;";
    let func = team_plan(body, [128, 1, 1], 4);
    let ops = || func.blocks.iter().filter(|node| !node.full).flat_map(|node| &node.ops);
    let stores = ops().filter(|op| op.defs.is_empty() && op.uses.len() == 3);
    let stores: Vec<_> = stores.map(|op| op.uses[0]).collect();
    // In the lanes that compared before they parted.
    let predicate = super::Kind::Reg(ptx::ir::RegClass::Pred);
    let compares = ops()
        .filter(|op| op.uses.len() == 2 && op.defs.iter().any(|def| func.kinds[def.0 as usize] == predicate));
    let compared: Vec<_> = compares.map(|op| op.uses[0]).collect();
    assert_eq!((stores.len(), compared.len()), (2, 2));
    assert_eq!(stores.iter().filter(|mask| compared.contains(mask)).count(), 1);
}

#[test]
fn rows_of_several_ctas_leave_where_lanes_diverge_by_place() {
    let launch = LaunchShape { ntid: [32, 2, 1], chunk: 16, team: 4, ctas: 4, rows: false };
    let without_masks = |body: &str| {
        let program = program(body);
        crate::pipeline::wir_without_masks(&program.functions[0], launch, &NativeEffects::default())
    };
    let guarded = |compared: &str| {
        format!(
            "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; ld.param.u64 %rd1, [p]; mul.wide.u32 %rd2, %r1, 4; \
             add.s64 %rd2, %rd2, %rd1; ld.global.u32 %r3, [%rd2]; setp.ge.u32 %p1, {compared}, %r2; @%p1 bra L; \
             st.global.u32 [%rd2], %r1; L: ret;"
        )
    };
    let by_place = without_masks(&guarded("%r1")).expect("lanes diverge by their place only");
    assert!(by_place.blocks.iter().all(|node| node.full));
    assert!(exits(&by_place).contains(&ExitReason::Terminator { block: 0 }));
    assert!(without_masks(&guarded("%r3")).is_none(), "lanes diverge by their data");
}
