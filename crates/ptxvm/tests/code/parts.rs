//! Kernels whose code is made in two parts: code for whole CTAs, with which launches begin, and code of
//! single warps for the CTAs that the first declines.
#![cfg(feature = "jit")]

use ptxvm::{Arg, CodeCache, CodeSource, Engine, Launch, Options, Report, Trap, Vm};
use std::path::Path;

/// `y[i] = 2 * x[i] + y[i]` for i < n, if i is at least `from`. Code for whole CTAs declines those whose
/// threads do not all do the same.
const PTX: &str = "
.version 6.4
.target sm_70
.address_size 64
.visible .entry axpy(.param .u64 x, .param .u64 y, .param .u32 n, .param .u32 from)
{
    .reg .pred %p, %q;
    .reg .b32 %r<9>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<9>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r5, [n];
    ld.param.u32 %r6, [from];
    setp.ge.u32 %p, %r4, %r5;
    @%p bra done;
    setp.lt.u32 %q, %r4, %r6;
    @%q bra done;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mul.wide.u32 %rd3, %r4, 4;
    add.u64 %rd4, %rd1, %rd3;
    add.u64 %rd5, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    ld.global.f32 %f2, [%rd5];
    fma.rn.f32 %f3, %f1, 0f40000000, %f2;
    st.global.f32 [%rd5], %f3;
done:
    ret;
}
";
const BLOCK: u32 = 256;

/// A device without a code cache on disk, or with one.
fn device(folder: Option<&Path>) -> Vm {
    let cache = match folder {
        None => CodeCache::Off,
        Some(path) => CodeCache::Folder { path: path.to_owned(), bytes: 1 << 24 },
    };
    Vm::with(Options { cache, ..Options::default() }).expect("a device")
}

/// Launches the kernel for elements `from..n` of as many as `ctas` CTAs have, and checks the results.
fn launch(vm: &Vm, (engine, threads): (Engine, u32), ctas: u32, from: u32, n: u32) -> Report {
    let kernel = vm.load("axpy.ptx", PTX).expect("accepted").kernel("axpy").expect("there");
    let count = ctas * BLOCK;
    let values: Vec<f32> = (0..count).map(|i| i as f32).collect();
    let (x, y) = (vm.buffer(&values).expect("memory"), vm.buffer(&values).expect("memory"));
    let launch = Launch::new([ctas, 1, 1], [BLOCK, 1, 1]).threads(threads).engine(engine);
    let args = [Arg::buffer(&x), Arg::buffer(&y), n.into(), from.into()];
    let report = vm.launch(&kernel, &launch.args(&kernel, &args).expect("arguments")).expect("no trap");
    for (i, have) in (0..).zip(y.read().expect("data")) {
        let want = if (from..n).contains(&i) { 3 * i } else { i };
        assert_eq!(have, want as f32, "{engine:?}, {threads} threads, {from}..{n}: element {i}");
    }
    report
}

/// The engine `jit` executes all CTAs in native code, those too that need the second part.
#[test]
fn no_cta_is_interpreted_with_the_engine_jit() {
    for threads in [1, 2, 8] {
        for (from, n) in [(0, 40 * BLOCK), (0, 40 * BLOCK - 7), (3, 40 * BLOCK), (5000, 5001)] {
            let report = launch(&device(None), (Engine::Jit, threads), 40, from, n);
            assert_eq!(report.ran.native_instructions, report.warp_instructions, "{threads}: {from}..{n}");
        }
    }
}

/// Launches that begin with the first part give the same results, whichever CTAs it declines.
#[test]
fn results_are_the_same_while_the_second_part_is_compiled() {
    for round in 0..6 {
        let vm = device(None);
        for (from, n) in [(0, 2000 * BLOCK - 1), (100, 1999 * BLOCK), (17, 18), (0, 2000 * BLOCK)] {
            launch(&vm, (Engine::Auto, 2), 2000, from + round, n);
        }
    }
}

/// The parts are cached apart, and what is missing of them is compiled again.
#[test]
fn each_part_is_found_on_disk() {
    let folder = std::env::temp_dir().join(format!("ptxvm-parts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let files = || {
        let list = std::fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path());
        let mut files: Vec<_> = list.filter(|path| path.is_file()).collect();
        files.sort();
        files
    };
    let run = || launch(&device(Some(&folder)), (Engine::Jit, 2), 40, 1, 40 * BLOCK).ran;
    assert_eq!(run().source, Some(CodeSource::Compiled));
    let all = files();
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(run().source, Some(CodeSource::Disk));
    let mut sources = Vec::new();
    for path in &all {
        std::fs::remove_file(path).expect("a file");
        let ran = run();
        sources.push(ran.source);
        assert_eq!(files(), all);
    }
    // Without the first part there is no code; without the second there is.
    sources.sort_by_key(|source| format!("{source:?}"));
    assert_eq!(sources, [Some(CodeSource::Compiled), Some(CodeSource::Disk)]);
    std::fs::remove_dir_all(&folder).expect("a folder");
}

/// A trap of a CTA that needs the second part is the interpreter's.
#[test]
fn traps_are_the_same() {
    let trap = |engine, threads| {
        let vm = device(None);
        let kernel = vm.load("axpy.ptx", PTX).expect("accepted").kernel("axpy").expect("there");
        let (x, y) = (vm.zeros::<f32>(1000).expect("memory"), vm.zeros::<f32>(1100).expect("memory"));
        let launch = Launch::new([5, 1, 1], [BLOCK, 1, 1]).threads(threads).engine(engine);
        let args = [Arg::buffer(&x), Arg::buffer(&y), 1080.into(), 3.into()];
        let launch = launch.args(&kernel, &args).expect("arguments");
        let error = vm.launch(&kernel, &launch).expect_err("x is too short");
        let trap: &Trap = error.trap().expect("a trap");
        (format!("{:?}", trap.kind), trap.line, trap.ctaid, trap.tid)
    };
    let want = trap(Engine::Interp, 1);
    for (engine, threads) in [(Engine::Jit, 1), (Engine::Jit, 2), (Engine::Auto, 2)] {
        assert_eq!(trap(engine, threads), want, "{engine:?}, {threads} threads");
    }
}
