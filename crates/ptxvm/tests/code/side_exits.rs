//! What reports say about side exits: the lines, the cause, and how often native code was left.
#![cfg(feature = "jit")]

use ptxvm::{
    Arg, CodeCache, CodeSource, Engine, ErrorKind, ExitCause, ExitScope, Launch, Options, Report, SideExits,
    Vm,
};

/// A kernel `k(.u64 a, .u64 b)`. Its body begins in line 10, with the thread in `%r1`, the CTA in `%r2`, and
/// the buffers in `%rd1` and `%rd2`.
fn text(body: &str) -> String {
    format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 a, .param .u64 b)\n{{\n\
         .reg .pred %p<10>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .shared .align 16 .b8 s[4096];\n\
         ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n\
         mov.u32 %r1, %tid.x;\n\
         mov.u32 %r2, %ctaid.x;\n\
         {body}\nret;\n}}\n"
    )
}

const CTAS: u32 = 3;

struct Run<'a> {
    body: &'a str,
    threads: u32,
    team: Option<u32>,
    cache: CodeCache,
}

impl Run<'_> {
    fn report(&self) -> Report {
        let Run { body, threads, team, ref cache } = *self;
        let options = Options { team, cache: cache.clone(), ..Options::default() };
        let vm = Vm::with(options).expect("a device");
        let module = vm.load("exits.ptx", &text(body)).unwrap_or_else(|error| panic!("{error}"));
        let kernel = module.kernel("k").expect("the kernel");
        let buffers = [1, 2].map(|n| vm.buffer(&vec![n; 1024]).expect("memory"));
        let launch = Launch::new([CTAS, 1, 1], [threads, 1, 1]).threads(1).engine(Engine::Jit);
        let launch = launch.args(&kernel, &buffers.each_ref().map(Arg::buffer)).expect("arguments that fit");
        match vm.launch(&kernel, &launch) {
            Ok(report) => report,
            Err(error) => match error.kind() {
                ErrorKind::Trap(_, report) => report.clone(),
                ErrorKind::Rejected(_) | ErrorKind::Caller(_) | ErrorKind::Machine(_) => panic!("{error}"),
            },
        }
    }

    /// Lines, cause, scope, and count of the side exits.
    fn exits(&self) -> Vec<(Vec<u32>, ExitCause, ExitScope, u64)> {
        let exits = self.report().ran.side_exits;
        exits.into_iter().map(|exits| (exits.lines, exits.cause, exits.scope, exits.count)).collect()
    }
}

fn exits(body: &str, threads: u32) -> Vec<(Vec<u32>, ExitCause, ExitScope, u64)> {
    Run { body, threads, team: Some(1), cache: CodeCache::Off }.exits()
}

/// Lanes with odd numbers read another buffer than the others: their addresses are not in one allocation.
const TWO_BUFFERS: &str = "and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; selp.b64 %rd3, %rd1, %rd2, %p1;\n\
     mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd3, %rd4;\n\
     ld.global.u32 %r4, [%rd3];\n\
     add.u64 %rd5, %rd2, %rd4; st.global.u32 [%rd5], %r4;";

#[test]
fn a_launch_without_side_exits_reports_none() {
    let body = "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd1, %rd4; ld.global.u32 %r4, [%rd3];\n\
         bar.sync 0; add.u64 %rd5, %rd2, %rd4; st.global.u32 [%rd5], %r4;";
    assert_eq!(exits(body, 64), []);
}

#[test]
fn lanes_in_two_allocations_fail_a_bounds_check_in_every_warp() {
    assert_eq!(
        exits(TWO_BUFFERS, 64),
        [(vec![12], ExitCause::Bounds, ExitScope::Instruction, u64::from(2 * CTAS))]
    );
    let report = Run { body: TWO_BUFFERS, threads: 64, team: Some(1), cache: CodeCache::Off }.report();
    let [exits] = &report.ran.side_exits[..] else { panic!("{report:?}") };
    assert_eq!(
        exits.to_string(),
        "line 12: `ld.global.u32`: a bounds check failed: 6 times for this instruction alone"
    );
}

#[test]
fn a_coarse_warp_counts_once() {
    let run = Run { body: TWO_BUFFERS, threads: 64, team: Some(2), cache: CodeCache::Off };
    let exits = run.exits();
    assert_eq!(
        exits.first(),
        Some(&(vec![12], ExitCause::Bounds, ExitScope::CoarseWarp, u64::from(CTAS))),
        "{exits:?}"
    );
}

#[test]
fn an_index_that_wraps_around_in_a_lane_is_a_cause_of_its_own() {
    // Each lane but the first of a CTA has a predecessor. The load is only in lanes that have one.
    let body = "sub.u32 %r3, %r1, 1;\n\
         mul.wide.u32 %rd4, %r3, 4;\n\
         shr.u64 %rd5, %rd4, 32; cvt.u32.u64 %r5, %rd5; mul.wide.u32 %rd6, %r1, 4; add.u64 %rd6, %rd2, %rd6;\n\
         st.global.u32 [%rd6], %r5;";
    // Only the first warp of each CTA has the lane.
    let found = exits(body, 64);
    let of_wraps: u64 =
        found.iter().filter(|exits| exits.1 != ExitCause::Bounds).map(|(.., count)| count).sum();
    assert_eq!(of_wraps, u64::from(CTAS), "{found:?}");
}

#[test]
fn a_call_and_a_missing_target_are_causes() {
    let body = "mov.u32 %r3, 7; T: .branchtargets A, B;\n\
         brx.idx %r3, T;\n\
         A: add.u32 %r1, %r1, 1;\n\
         B: st.global.u32 [%rd1], %r1;";
    assert_eq!(exits(body, 32), [(vec![11], ExitCause::BeyondTargets, ExitScope::Warp, 1)]);
}

#[test]
fn an_instruction_without_native_code_is_named() {
    let body = "cvta.to.global.u64 %rd3, %rd1;\n\
         isspacep.global %p1, %rd1;\n\
         selp.u32 %r3, 1, 2, %p1; fns.b32 %r4, %r1, 0, 1; add.u32 %r3, %r3, %r4;\n\
         st.global.u32 [%rd3], %r3;";
    let report = Run { body, threads: 32, team: Some(1), cache: CodeCache::Off }.report();
    let lacking = |exits: &&SideExits| exits.cause == ExitCause::NoNativeCode;
    let found: Vec<_> = report.ran.side_exits.iter().filter(lacking).collect();
    let mut names: Vec<_> = found.iter().filter_map(|exits| exits.instruction.clone()).collect();
    names.sort_unstable();
    assert_eq!(names, report.ran.fallbacks.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    let sum: u64 = found.iter().map(|exits| exits.count).sum();
    assert_eq!(sum, report.ran.fallback_instructions, "{report:?}");
    assert!(sum > 0, "{report:?}");
}

#[test]
fn code_from_disk_reports_the_same() {
    let folder = std::env::temp_dir().join(format!("ptxvm-side-exits-{}", std::process::id()));
    let _absent = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    for team in [1, 2] {
        let run = Run {
            body: TWO_BUFFERS,
            threads: 64,
            team: Some(team),
            cache: CodeCache::Folder { path: folder.clone(), bytes: 1 << 24 },
        };
        let [first, again] = [run.report(), run.report()].map(|report| report.ran);
        assert_eq!([first.source, again.source], [Some(CodeSource::Compiled), Some(CodeSource::Disk)]);
        assert!(!first.side_exits.is_empty());
        assert_eq!(first.side_exits, again.side_exits);
    }
    std::fs::remove_dir_all(&folder).expect("the folder");
}
