//! The overhead of a launch in native code: per launch, per CTA and per barrier.
//!
//! `cargo bench -p ptxvm --bench launch`. Each figure is the minimum of several rounds, which is least
//! affected by other load. The kernels do almost nothing, so the time is that of the machine; results are not
//! checked here.

use ptxvm::{Arg, Engine, Kernel, Launch, Vm};
use std::time::{Duration, Instant};

const TEXT: &str = "
.version 6.4
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry barriers(.param .u32 n) {
    .reg .pred %p; .reg .b32 %r<4>;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
L:  bar.sync 0;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, %r1;
    @%p bra L;
    ret;
}
.visible .entry through_shared(.param .u32 n) {
    .reg .pred %p; .reg .b32 %r<9>;
    .shared .align 4 .b8 box[8192];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, 0;
    mov.u32 %r3, %tid.x;
    shl.b32 %r4, %r3, 2;
    mov.u32 %r5, box;
    add.u32 %r5, %r5, %r4;
L:  st.shared.u32 [%r5], %r3;
    bar.sync 0;
    ld.shared.u32 %r6, [%r5];
    add.u32 %r3, %r3, %r6;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, %r1;
    @%p bra L;
    ret;
}
";

fn main() -> Result<(), ptxvm::Error> {
    let vm = Vm::new()?;
    let module = vm.load("launch.ptx", TEXT)?;
    let nothing = module.kernel("nothing")?;
    for block in [32, 256, 1024] {
        let launch = |grid: u32| Launch::new([grid, 1, 1], [block, 1, 1]).engine(Engine::Jit);
        let one = best(2000, || run(&vm, &nothing, &launch(1)));
        let few = best(200, || run(&vm, &nothing, &launch(1000).threads(1)));
        let many = best(20, || run(&vm, &nothing, &launch(100_000)));
        println!(
            "{block:>5} threads: a launch {:>8.2} us, a CTA more {:>7.1} ns on one thread, {:>7.1} ns on all",
            nanoseconds(one) / 1e3,
            (nanoseconds(few) - nanoseconds(one)) / 999.0,
            nanoseconds(many) / 1e5
        );
    }
    for name in ["barriers", "through_shared"] {
        let kernel = module.kernel(name)?;
        for block in [32u32, 256, 1024] {
            let time = |turns: u32| -> Result<f64, ptxvm::Error> {
                let launch = Launch::new([1, 1, 1], [block, 1, 1]).engine(Engine::Jit);
                let launch = launch.args(&kernel, &[Arg::from(turns)])?;
                Ok(nanoseconds(best(20, || run(&vm, &kernel, &launch))))
            };
            let each = (time(2000)? - time(1000)?) / 1000.0 / f64::from(block.div_ceil(32));
            println!("{block:>5} threads: {name}: {each:>6.1} ns for each warp and barrier");
        }
    }
    Ok(())
}

fn run(vm: &Vm, kernel: &Kernel, launch: &Launch) {
    if let Err(error) = vm.launch(kernel, launch) {
        eprintln!("{error}");
    }
}

fn best(rounds: u32, mut f: impl FnMut()) -> Duration {
    f();
    let time = |()| {
        let start = Instant::now();
        f();
        start.elapsed()
    };
    (0..rounds).map(|_| ()).map(time).min().unwrap_or_default()
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}
