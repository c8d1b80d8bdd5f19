//! Launches end by their limits, whatever they do: time, steps, cancellation; and their output is bounded.

use ptxvm::{Arg, CodeCache, Engine, Error, FaultKind, Kernel, Launch, Options, Pending, Vm};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// How long a launch may take to stop. The promise is a second; the machine that tests may have other things
/// to do.
const SOON: Duration = Duration::from_millis(2500);

const ENGINES: &[Engine] = if cfg!(feature = "jit") {
    &[Engine::Interp, Engine::Jit, Engine::Auto]
} else {
    &[Engine::Interp, Engine::Auto]
};

fn device() -> Vm {
    Vm::with(Options { cache: CodeCache::Off, ..Options::default() }).expect("a device")
}

fn kernel(vm: &Vm, before: &str, body: &str) -> Kernel {
    let text = format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n{before}\n\
         .visible .entry k(.param .u64 data)\n{{\n\
         .reg .pred %p<10>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<10>; .shared .align 16 .b8 shared[1024];\n\
         ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;\n\
         {body}\nret;\n}}\n"
    );
    vm.load("limits.ptx", &text)
        .and_then(|module| module.kernel("k"))
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Kernels that do not end, or not soon.
fn endless() -> Vec<(&'static str, String, [u32; 3])> {
    let mut long = String::new();
    for i in 0..5000 {
        writeln!(long, "mad.lo.u32 %r3, %r3, %r1, {i}; xor.b32 %r3, %r3, %r2;").expect("to memory");
    }
    let all = [2_147_483_647, 1, 1];
    vec![
        ("nothing", "L: bra L;".to_owned(), [1; 3]),
        ("a loop", "L: add.u32 %r3, %r3, 1; setp.ne.u32 %p1, %r3, %r2; st.global.u32 [%rd3], %r3; bra L;".to_owned(), [64, 1, 1]),
        ("lanes part", "L: add.u32 %r3, %r3, %r1; and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra L; add.u32 %r3, %r3, 2; bra L;".to_owned(), [64, 1, 1]),
        ("barriers", "L: st.shared.u32 [shared], %r1; bar.sync 0; ld.shared.u32 %r3, [shared]; bar.sync 0; bra L;".to_owned(), [64, 1, 1]),
        ("spinning", "L: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p1, %r3, 0; @%p1 bra L;".to_owned(), [64, 1, 1]),
        ("sums", "L: red.global.add.f32 [%rd3], 0f3f800000; bra L;".to_owned(), [64, 1, 1]),
        ("long turns", format!("L: {long} st.global.u32 [%rd3], %r3; bra L;"), [64, 1, 1]),
        ("short CTAs", "st.global.u32 [%rd3], %r2;".to_owned(), all),
        ("CTAs with barriers", "st.shared.u32 [shared], %r1; bar.sync 0; ld.shared.u32 %r3, [shared]; st.global.u32 [%rd3], %r3;".to_owned(), all),
        ("CTAs that add", "red.global.add.u32 [%rd3], 1;".to_owned(), [2_147_483_647, 65535, 65535]),
        ("CTAs that loop", "mov.u32 %r3, 0; L: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 1000; st.global.u32 [%rd3], %r3; @%p1 bra L;".to_owned(), all),
    ]
}

fn kind(error: &Error) -> Option<&FaultKind> {
    error.trap().map(|trap| &trap.kind)
}

#[test]
fn every_launch_stops_soon_when_cancelled_or_late() {
    for (name, body, grid) in endless() {
        for engine in ENGINES {
            for threads in [1, 2] {
                let vm = device();
                let (kernel, data) = (kernel(&vm, "", &body), vm.zeros::<u32>(1024).expect("memory"));
                let launch = Launch::new(grid, [96, 1, 1]).engine(*engine).threads(threads);
                let launch = launch.args(&kernel, &[Arg::buffer(&data)]).expect("arguments");
                let pending = vm.stream().launch(&kernel, launch.clone());
                std::thread::sleep(Duration::from_millis(40));
                let start = Instant::now();
                let begins = |pending: &Pending| pending.progress().0 > 0 || start.elapsed() > SOON;
                while grid[0] > 64 && !begins(&pending) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let (done, all) = pending.progress();
                assert_eq!((all, done > 0), (launch.ctas(), grid[0] > 64), "{name} {engine:?}");
                let start = Instant::now();
                pending.cancel();
                let error = pending.wait().expect_err("it was stopped");
                assert_eq!(kind(&error), Some(&FaultKind::Cancelled), "{name} {engine:?}");
                assert!(start.elapsed() < SOON, "{name} {engine:?}: {:?} to stop", start.elapsed());
                let start = Instant::now();
                let late = launch.timeout(Duration::from_millis(50));
                let error = vm.launch(&kernel, &late).expect_err("it was stopped");
                assert_eq!(kind(&error), Some(&FaultKind::TimeLimit), "{name} {engine:?}");
                assert!(start.elapsed() < SOON, "{name} {engine:?}: {:?} to end", start.elapsed());
            }
        }
    }
}

#[test]
fn a_report_says_how_many_ctas_finished() {
    for engine in ENGINES {
        let vm = device();
        let (kernel, data) =
            (kernel(&vm, "", "st.global.u32 [%rd3], %r2;"), vm.zeros::<u32>(64).expect("memory"));
        for grid in [[1, 1, 1], [7, 5, 3], [1000, 1, 1]] {
            let launch = Launch::new(grid, [32, 1, 1]).engine(*engine);
            let launch = launch.args(&kernel, &[Arg::buffer(&data)]).expect("arguments");
            assert_eq!(vm.launch(&kernel, &launch).expect("no trap").ctas, launch.ctas(), "{engine:?}");
        }
    }
}

const VPRINTF: &str = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n\
    .global .align 1 .b8 line[9] = {37, 52, 48, 48, 48, 100, 33, 10, 0};\n.global .align 1 .b8 word[4] = {120, 121, 10, 0};";

/// Prints the number of the CTA, padded to 4000 (or nothing but `xy`), for ever or once.
fn prints(format: &str, for_ever: bool) -> String {
    let again = if for_ever { "bra L;" } else { "" };
    format!(
        ".local .align 8 .b8 args[8]; st.local.u32 [args], %r2; mov.u64 %rd4, args; cvta.local.u64 %rd4, %rd4; mov.u64 %rd5, {format}; cvta.global.u64 %rd5, %rd5;\n\
         L: {{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd5; st.param.b64 [a], %rd4; call.uni (r), vprintf, (f, a); }} {again}"
    )
}

#[test]
fn printing_for_ever_ends_by_every_limit_and_is_bounded() {
    for engine in ENGINES {
        for format in ["line", "word"] {
            let vm = device();
            let kernel = kernel(&vm, VPRINTF, &prints(format, true));
            let launch = Launch::new([2, 1, 1], [64, 1, 1]).engine(*engine);
            let mut launch = launch.args(&kernel, &[Arg::address(0)]).expect("arguments");
            launch.output_limit = 100_000;
            let ends = |launch: &Launch, wants: &FaultKind| {
                let start = Instant::now();
                let error = vm.launch(&kernel, launch).expect_err("it was stopped");
                assert!(start.elapsed() < SOON, "{format} {engine:?}: {:?}", start.elapsed());
                assert_eq!(kind(&error), Some(wants), "{format} {engine:?}");
                match error.into_kind() {
                    ptxvm::ErrorKind::Trap(_, report) => report,
                    _ => panic!("no trap"),
                }
            };
            // This makes the code, where there is some.
            ends(&launch.clone().max_steps(500), &FaultKind::StepLimit);
            let report = ends(&launch.clone().timeout(Duration::from_millis(400)), &FaultKind::TimeLimit);
            assert!(report.output.len() <= 100_000, "{}", report.output.len());
            assert!(
                report.output.len() > 90_000 && report.dropped > 0,
                "{} {}",
                report.output.len(),
                report.dropped
            );
            let pending = vm.stream().launch(&kernel, launch);
            std::thread::sleep(Duration::from_millis(50));
            let start = Instant::now();
            pending.cancel();
            assert_eq!(kind(&pending.wait().expect_err("it was stopped")), Some(&FaultKind::Cancelled));
            assert!(start.elapsed() < SOON, "{format} {engine:?}: {:?}", start.elapsed());
        }
    }
}

#[test]
fn what_is_printed_within_the_limit_is_all_there() {
    for engine in ENGINES {
        let vm = device();
        let kernel = kernel(&vm, VPRINTF, &prints("word", false));
        let launch = Launch::new([100, 1, 1], [32, 1, 1]).engine(*engine);
        let mut launch = launch.args(&kernel, &[Arg::address(0)]).expect("arguments");
        let text = "xy\n".repeat(3200).into_bytes();
        let report = vm.launch(&kernel, &launch).expect("no trap");
        assert_eq!((report.output == text, report.dropped), (true, 0));
        launch.output_limit = 9600 + 3200;
        let report = vm.launch(&kernel, &launch).expect("no trap");
        assert_eq!((report.output == text, report.dropped), (true, 0));
        launch.output_limit -= 1;
        let report = vm.launch(&kernel, &launch).expect("no trap");
        assert_eq!((report.output.len() as u64 + report.dropped, report.dropped > 0), (9600, true));
    }
}

/// A kernel that takes LLVM seconds.
#[cfg(feature = "jit")]
fn slow_to_compile(vm: &Vm) -> Kernel {
    let mut body = String::from("mov.u32 %r3, %r1; mov.u32 %r4, 0;\n");
    for i in 0..40_000 {
        writeln!(
            body,
            "mad.lo.u32 %r{}, %r{}, %r{}, {i}; xor.b32 %r5, %r3, %r4; shf.l.wrap.b32 %r4, %r5, %r3, %r4;",
            3 + i % 3,
            3 + i % 2,
            4 + i % 2
        )
        .expect("to memory");
    }
    kernel(vm, "", &format!("{body} st.global.u32 [%rd3], %r3;"))
}

#[cfg(feature = "jit")]
#[test]
fn making_code_counts_as_time_and_nobody_waits_for_what_was_given_up() {
    for engine in [Engine::Jit, Engine::Auto] {
        for threads in [1, 2] {
            let vm = device();
            let (kernel, data) = (slow_to_compile(&vm), vm.zeros::<u32>(64).expect("memory"));
            // Large enough that `auto` makes code first.
            let launch = Launch::new([2_000_000, 1, 1], [32, 1, 1]).engine(engine).threads(threads);
            let launch = launch.args(&kernel, &[Arg::buffer(&data)]).expect("arguments");
            let start = Instant::now();
            let error =
                vm.launch(&kernel, &launch.clone().timeout(Duration::from_millis(100))).expect_err("late");
            assert_eq!(kind(&error), Some(&FaultKind::TimeLimit));
            let pending = vm.stream().launch(&kernel, launch);
            std::thread::sleep(Duration::from_millis(50));
            pending.cancel();
            assert_eq!(kind(&pending.wait().expect_err("cancelled")), Some(&FaultKind::Cancelled));
            drop((kernel, data, vm));
            assert!(start.elapsed() < 2 * SOON, "{engine:?} {threads}: {:?}", start.elapsed());
        }
    }
}
