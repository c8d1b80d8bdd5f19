//! A device may be dropped while a thread compiles code for it; the compilation then ends by itself. A
//! process may end, with the device alive, at any moment of a compilation, without a crash in LLVM. Programs
//! that end before their kernels are compiled get compiled code when they are started often enough, and
//! optimised code.
//!
//! The latter need separate processes whose first thread is the test's. So there is no harness, and with
//! `--leave`, `--early` and `--optimised` this program is such a process.

#[cfg(not(all(feature = "jit", target_os = "linux")))]
fn main() {}

#[cfg(all(feature = "jit", target_os = "linux"))]
fn main() -> std::process::ExitCode {
    use libtest_mimic::{Arguments, Trial};
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(process::LEAVE) {
        process::leave(words.next().and_then(|n| n.parse().ok()).expect("a number"));
        return std::process::ExitCode::SUCCESS;
    }
    match std::env::args().nth(1).as_deref() {
        Some(process::EARLY) => return process::leave_early(words.next().expect("a folder").into()),
        Some(process::OPTIMISED) => {
            return process::leave_unoptimised(words.next().expect("a folder").into());
        }
        Some(_) | None => {}
    }
    let trials = vec![
        Trial::test("a_device_may_go_while_code_is_made", || {
            device::goes();
            Ok(())
        }),
        Trial::test("a_process_may_end_while_code_is_made", process::ends),
        Trial::test("programs_shorter_than_their_compilation_get_code", || {
            process::gets_code(process::EARLY)
        }),
        Trial::test("programs_shorter_than_their_optimisation_get_optimised_code", || {
            process::gets_code(process::OPTIMISED)
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

#[cfg(all(feature = "jit", target_os = "linux"))]
#[path = "support/levels.rs"]
mod levels;

#[cfg(all(feature = "jit", target_os = "linux"))]
mod process {
    use super::device::text;
    use super::levels;
    use libtest_mimic::Failed;
    use ptxvm::{Arg, CodeCache, CodeSource, Cpu, Launch, Options, Ran, Vm};
    use std::fmt::Write as _;
    use std::path::PathBuf;
    use std::process::{Command, ExitCode, ExitStatus};
    use std::time::Duration;

    /// Makes this program a process that leaves its device behind; a number follows.
    pub(super) const LEAVE: &str = "--leave";

    /// Launches until code is being made in the background, and ends `delay` tenths of a millisecond later,
    /// with the device in place.
    pub(super) fn leave(delay: u32) {
        let vm = Vm::with(Options { cache: CodeCache::Off, ..Options::default() }).expect("a device");
        // Long enough to be compiled for some ten milliseconds.
        let mut middle = String::new();
        for i in 0..400 {
            writeln!(middle, "mad.lo.u32 %r2, %r2, %r1, {i};\nxor.b32 %r2, %r2, %r3;").expect("to memory");
        }
        launch_until(vm, &text(&middle), |_| super::device::compiling());
        std::thread::sleep(Duration::from_micros(100) * delay);
    }

    /// Launches a kernel until `ends` holds for a launch, and leaves the device in place. Returns the report
    /// of the last launch.
    fn launch_until(vm: Vm, text: &str, ends: impl Fn(&Ran) -> bool) -> Option<Box<Ran>> {
        let kernel = vm.load("turns.ptx", text).expect("accepted").kernel("turns").expect("there");
        let out = vm.zeros::<u32>(64).expect("memory");
        let mut ran = None;
        for _ in 0..20_000 {
            let launch = Launch::new([1, 1, 1], [64, 1, 1]).threads(2);
            let launch = launch.args(&kernel, &[Arg::buffer(&out), 10.into()]).expect("arguments");
            let ended = ends(ran.insert(vm.launch(&kernel, &launch).expect("no trap").ran));
            if ended {
                break;
            }
        }
        std::mem::forget((vm, kernel, out));
        ran
    }

    /// Makes this program a process that ends long before its kernel is compiled; a folder for code follows.
    pub(super) const EARLY: &str = "--early";
    /// The status with which such a process ends if it found code of an earlier process.
    const FOUND: u8 = 17;

    /// Launches until the launch waits for code, or the code is being made in the background, and ends.
    pub(super) fn leave_early(folder: PathBuf) -> ExitCode {
        let cache = CodeCache::Folder { path: folder, bytes: 1 << 26 };
        let vm = Vm::with(Options { cache, ..Options::default() }).expect("a device");
        // Long enough to be compiled for longer than the end of a process waits.
        let mut middle = String::new();
        for i in 0..400 {
            writeln!(middle, "mad.lo.u32 %r2, %r2, %r1, {i};\nsetp.ne.u32 %p, %r2, {i};\n@%p bra l{i};")
                .expect("to memory");
            writeln!(middle, "xor.b32 %r2, %r2, %r3;\nl{i}:").expect("to memory");
        }
        let last = launch_until(vm, &text(&middle), |ran| ran.native || super::device::compiling());
        let found = last.is_some_and(|ran| ran.source == Some(CodeSource::Disk));
        ExitCode::from(if found { FOUND } else { 0 })
    }

    /// Makes this program a process that ends long before its kernel is optimised; a folder for code follows.
    pub(super) const OPTIMISED: &str = "--optimised";

    /// Launches until code that is not optimised is compiled again in the background, and ends.
    pub(super) fn leave_unoptimised(folder: PathBuf) -> ExitCode {
        let cache = CodeCache::Folder { path: folder, bytes: 1 << 26 };
        // Vectors of 512 bits need fewer instructions, and code is optimised at once if it has few.
        let cpu = Some(Cpu::Avx2).filter(|cpu| levels::is_available(*cpu));
        let vm = Vm::with(Options { cache, cpu, ..Options::default() }).expect("a device");
        let mut middle = String::new();
        for i in 0..200 {
            writeln!(
                middle,
                "and.b32 %r3, %r2, {}; setp.ne.u32 %p, %r3, 0; @%p bra l{i};\n\
                 mad.lo.u32 %r2, %r2, %r1, {i}; rem.u32 %r3, %r2, {}; add.u32 %r2, %r2, %r3;\n\
                 mov.u32 %r3, %tid.x; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd2, %rd2, %rd1;\n\
                 ld.global.u32 %r3, [%rd2]; add.u32 %r2, %r2, %r3;\n\
                 l{i}: xor.b32 %r2, %r2, {};",
                1 << (i % 13),
                i + 3,
                i * 7919
            )
            .expect("to memory");
        }
        let done = |ran: &Ran| ran.native && !ran.unoptimised;
        let last =
            launch_until(vm, &text(&middle), |ran| done(ran) || ran.native && super::device::compiling());
        ExitCode::from(if last.is_some_and(|ran| done(&ran)) { FOUND } else { 0 })
    }

    /// Starts processes of a kind until one finds code.
    pub(super) fn gets_code(kind: &str) -> Result<(), Failed> {
        let folder = std::env::temp_dir().join(format!("ptxvm-leaving{kind}-{}", std::process::id()));
        let program = std::env::current_exe()?;
        // Each process waits three times as long as all before, so the last of them would wait for minutes.
        let start = || Command::new(&program).arg(kind).arg(&folder).status();
        let first = start()?;
        if !first.success() {
            return Err(format!("the first process ended with {first}").into());
        }
        let statuses = (0..8).map(|_| start());
        let last = statuses.into_iter().find(|status| !status.as_ref().is_ok_and(ExitStatus::success));
        std::fs::remove_dir_all(&folder)?;
        match last.transpose()?.map(|status| status.code()) {
            Some(Some(code)) if code == FOUND.into() => Ok(()),
            Some(code) => Err(format!("a process ended with {code:?}").into()),
            None => Err("no process found code".into()),
        }
    }

    pub(super) fn ends() -> Result<(), Failed> {
        let program = std::env::current_exe()?;
        for round in 0..40 {
            let status = Command::new(&program).args([LEAVE, &(round * 10).to_string()]).status()?;
            if !status.success() {
                return Err(format!("round {round}: {status}").into());
            }
        }
        Ok(())
    }
}

#[cfg(all(feature = "jit", target_os = "linux"))]
mod device {
    use ptxvm::{Arg, CodeCache, Launch, Options, Vm};
    use std::time::Duration;

    /// A loop of a kernel.
    pub(super) fn text(middle: &str) -> String {
        format!(
            ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry turns(.param .u64 out, .param .u32 n)\n{{\n\
         .reg .pred %p;\n.reg .u32 %r<4>;\n.reg .u64 %rd<4>;\n\
         ld.param.u64 %rd1, [out];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, 77;\n\
         again:\nmad.lo.u32 %r2, %r2, 1664525, 1;\n{middle}sub.u32 %r1, %r1, 1;\nsetp.ne.u32 %p, %r1, 0;\n@%p bra again;\n\
         mov.u32 %r3, %tid.x;\nmul.wide.u32 %rd2, %r3, 4;\nadd.u64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r2;\nret;\n}}\n"
        )
    }

    /// Whether a thread of this process makes code.
    pub(super) fn compiling() -> bool {
        let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.into_iter().any(|name| name.trim() == "ptxvm compiler")
    }

    pub(super) fn goes() {
        let mut seen = 0;
        for attempt in 1..=20 {
            let vm = Vm::with(Options { cache: CodeCache::Off, ..Options::default() }).expect("a device");
            // So that its code cannot have been made before.
            let different = format!("add.u32 %r2, %r2, {attempt};\n");
            let kernel =
                vm.load("turns.ptx", &text(&different)).expect("accepted").kernel("turns").expect("there");
            let out = vm.zeros::<u32>(64).expect("memory");
            for _ in 0..2000 {
                let launch = Launch::new([1, 1, 1], [64, 1, 1]).threads(2);
                let launch = launch.args(&kernel, &[Arg::buffer(&out), 300.into()]).expect("arguments");
                let native = vm.launch(&kernel, &launch).expect("no trap").ran.native;
                if compiling() {
                    seen += 1;
                    break;
                }
                if native {
                    break;
                }
            }
            drop((kernel, out, vm));
            // Making this code takes milliseconds; the thread has nothing else to do.
            let gone = (0..10_000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                !compiling()
            });
            assert!(gone, "attempt {attempt}");
            if seen == 3 {
                return;
            }
        }
        assert!(seen > 0, "code was never made in the background");
    }
}
