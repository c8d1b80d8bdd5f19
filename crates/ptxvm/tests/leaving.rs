//! A device that goes leaves no thread behind that still makes code: a process that ends takes down what such a thread reads.
#![cfg(all(feature = "jit", target_os = "linux"))]

use ptxvm::{Arg, CodeCache, Launch, Options, Vm};
use std::time::Duration;

/// A loop, different in each attempt, so that its code cannot have been made before.
fn text(attempt: u32) -> String {
    format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry turns(.param .u64 out, .param .u32 n)\n{{\n\
         .reg .pred %p;\n.reg .u32 %r<4>;\n.reg .u64 %rd<4>;\n\
         ld.param.u64 %rd1, [out];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\n\
         again:\nmad.lo.u32 %r2, %r2, 1664525, {attempt};\nsub.u32 %r1, %r1, 1;\nsetp.ne.u32 %p, %r1, 0;\n@%p bra again;\n\
         mov.u32 %r3, %tid.x;\nmul.wide.u32 %rd2, %r3, 4;\nadd.u64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r2;\nret;\n}}\n"
    )
}

/// Whether a thread of this process makes code.
fn compiling() -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads");
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.into_iter().any(|name| name.trim() == "ptxvm compiler")
}

#[test]
fn a_device_that_goes_waits_for_its_compiler() {
    let mut seen = 0;
    for attempt in 1..=20 {
        let vm = Vm::with(Options { cache: CodeCache::Off, ..Options::default() }).expect("a device");
        let kernel = vm.load("turns.ptx", &text(attempt)).expect("accepted").kernel("turns").expect("there");
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
        // The system may list a thread that has ended for a moment; making code takes far longer.
        let gone = (0..20).any(|_| {
            std::thread::sleep(Duration::from_micros(100));
            !compiling()
        });
        assert!(gone, "attempt {attempt}");
        if seen == 3 {
            return;
        }
    }
    assert!(seen > 0, "code was never made in the background");
}
