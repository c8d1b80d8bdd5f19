//! When the engine `auto` compiles, and which code is kept.
#![cfg(feature = "jit")]

use ptxvm::{Arg, CodeSource, Engine, Kernel, Launch, Report, Vm};
use std::time::{Duration, Instant};

/// `out[i] = f(f(...f(i)))`, n times, plus the contents of a table of the module.
const PTX: &str = "
.version 6.4
.target sm_70
.address_size 64
.global .align 4 .u32 table[4] = {5, 6, 7, 8};
.visible .entry turns(.param .u64 out, .param .u32 n)
{
    .reg .pred %p;
    .reg .u32 %r<9>;
    .reg .u64 %rd<9>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    mov.u32 %r5, %r4;
    ld.param.u32 %r6, [n];
again:
    mad.lo.u32 %r5, %r5, 1664525, 1013904223;
    sub.u32 %r6, %r6, 1;
    setp.ne.u32 %p, %r6, 0;
    @%p bra again;
    and.b32 %r7, %r4, 3;
    mov.u64 %rd1, table;
    mul.wide.u32 %rd2, %r7, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r8, [%rd3];
    add.u32 %r5, %r5, %r8;
    ld.param.u64 %rd4, [out];
    mul.wide.u32 %rd5, %r4, 4;
    add.u64 %rd6, %rd4, %rd5;
    st.global.u32 [%rd6], %r5;
    ret;
}
";

fn load(vm: &Vm) -> Kernel {
    vm.load("turns.ptx", PTX).expect("accepted").kernel("turns").expect("there")
}

fn launch(
    vm: &Vm,
    kernel: &Kernel,
    (grid, block): (u32, u32),
    n: u32,
    as_wanted: impl Fn(Launch) -> Launch,
) -> Report {
    let count = (grid * block) as usize;
    let out = vm.zeros::<u32>(count).expect("memory");
    let launch = Launch::new([grid, 1, 1], [block, 1, 1]).threads(2);
    let launch = launch.args(kernel, &[Arg::buffer(&out), n.into()]).expect("arguments");
    let mut launch = as_wanted(launch);
    launch.timeout = Some(Duration::from_secs(120));
    let report = vm.launch(kernel, &launch).expect("no trap");
    for (i, have) in out.read().expect("data").into_iter().enumerate() {
        let mut want = i as u32;
        for _ in 0..n {
            want = want.wrapping_mul(1664525).wrapping_add(1013904223);
        }
        assert_eq!(have, want.wrapping_add(i as u32 % 4 + 5), "thread {i}");
    }
    report
}

#[test]
fn a_short_launch_stays_in_the_interpreter() {
    let vm = Vm::new().expect("a device");
    let report = launch(&vm, &load(&vm), (1, 32), 1, |launch| launch);
    assert!(!report.ran.native);
    assert_eq!((report.ran.source, report.ran.compiled), (None, Duration::ZERO));
}

#[test]
fn many_short_launches_come_to_native_code() {
    let vm = Vm::new().expect("a device");
    let kernel = load(&vm);
    let start = Instant::now();
    let first = loop {
        let report = launch(&vm, &kernel, (2, 64), 50, |launch| launch);
        if report.ran.native {
            break report;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "never compiled");
    };
    assert_eq!(first.ran.source, Some(CodeSource::Background));
    assert!(first.ran.compiled > Duration::ZERO);
    let next = launch(&vm, &kernel, (2, 64), 50, |launch| launch);
    assert_eq!((next.ran.source, next.ran.compiled), (Some(CodeSource::Kernel), Duration::ZERO));
    assert_eq!(next.ran.native_instructions, next.warp_instructions);
    assert_eq!(next.warp_instructions, first.warp_instructions);
}

#[test]
fn a_long_launch_changes_over_while_it_runs() {
    for (grid, block, turns) in [(1, 32, 3_000_000), (3000, 32, 2000)] {
        let vm = Vm::new().expect("a device");
        let kernel = load(&vm);
        let report = launch(&vm, &kernel, (grid, block), turns, |launch| launch);
        assert!(report.ran.native, "{grid} CTAs");
        let (native, all) = (report.ran.native_instructions, report.warp_instructions);
        assert!(native > 0 && native < all, "{grid} CTAs: {native} of {all}");
        let warps = u64::from(grid) * u64::from(block) / 32;
        // Falling into the loop counts as a step too.
        assert_eq!(all, warps * (6 + 1 + 4 * u64::from(turns) + 11), "{grid} CTAs");
    }
}

/// With one OS thread the result does not depend on time.
#[test]
fn one_thread_changes_over_at_the_same_place_every_time() {
    let run = || {
        let vm = Vm::new().expect("a device");
        let kernel = load(&vm);
        let report = launch(&vm, &kernel, (40, 32), 20_000, |launch| launch.threads(1).seed(7));
        (report.warp_instructions, report.ran.native_instructions)
    };
    let (all, native) = run();
    assert!(native > 0 && native < all, "{native} of {all}");
    assert_eq!(run(), (all, native));
}

#[test]
fn a_module_that_is_loaded_again_finds_its_code() {
    let vm = Vm::new().expect("a device");
    let jit = |launch: Launch| launch.engine(Engine::Jit);
    let first = load(&vm);
    let report = launch(&vm, &first, (2, 64), 3, jit);
    assert_eq!(report.ran.source, Some(CodeSource::Compiled));
    // While the first module exists, and after it is dropped; the table has another address each time.
    let second = load(&vm);
    assert_eq!(launch(&vm, &second, (2, 64), 3, jit).ran.source, Some(CodeSource::Memory));
    drop((first, second));
    let third = load(&vm);
    assert_eq!(launch(&vm, &third, (2, 64), 3, jit).ran.source, Some(CodeSource::Memory));
    assert_eq!(launch(&vm, &third, (2, 96), 3, jit).ran.source, Some(CodeSource::Compiled));
}

#[test]
fn a_kernel_keeps_code_for_some_shapes() {
    let vm = Vm::new().expect("a device");
    let kernel = load(&vm);
    let jit = |launch: Launch| launch.engine(Engine::Jit);
    for block in 1..=24 {
        assert_eq!(launch(&vm, &kernel, (1, block), 2, jit).ran.source, Some(CodeSource::Compiled));
    }
    // The kernel keeps the latest shapes; the first was dropped from the kernel but is still in memory.
    assert_eq!(launch(&vm, &kernel, (1, 24), 2, jit).ran.source, Some(CodeSource::Kernel));
    assert_eq!(launch(&vm, &kernel, (1, 1), 2, jit).ran.source, Some(CodeSource::Memory));
}
