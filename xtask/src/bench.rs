//! `cargo xtask bench`: how many thread-instructions a second one core executes, in the interpreter and in native code made from the
//! PTX, beside the same work as plain Rust.
//!
//! Each round runs the kernel on one OS thread and then the same work as plain Rust on one thread; the medians over the
//! rounds and their ratio are printed. The machine's other load moves both, so the ratio is the figure to compare. Results
//! are checked against the native ones: a benchmark of a wrong answer is worth nothing.

use ptxvm::{Arg, Engine, Launch, Vm};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;

/// Runs all benchmarks and prints the table.
pub(crate) fn bench() -> Result<(), String> {
    if cfg!(debug_assertions) {
        eprintln!(
            "note: this is a build without full optimisation; use `cargo run --release -p xtask -- bench`"
        );
    }
    println!(
        "{:<24} {:>12} {:>16} {:>14} {:>10} {:>8}",
        "kernel", "time", "thread instr.", "million/s/core", "native", "ratio"
    );
    for run in [saxpy, sgemm, tiled, mandelbrot] {
        for engine in [Engine::Interp, Engine::Jit] {
            println!("{}", run(engine).map_err(|e| e.to_string())?);
        }
    }
    Ok(())
}

type Result2 = Result<String, ptxvm::Error>;

fn fixture(name: &str) -> Result<String, String> {
    let path = crate::root().join("tests/fixtures/kernels").join(name);
    std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Times both, alternating, and makes the line of the table.
fn measure(
    (what, engine): (&str, Engine),
    mut guest: impl FnMut() -> Result<ptxvm::Report, ptxvm::Error>,
    mut native: impl FnMut(),
) -> Result2 {
    let (mut guest_times, mut native_times, mut instructions) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let report = guest()?;
        instructions = report.thread_instructions;
        guest_times.push(report.elapsed);
        let start = Instant::now();
        native();
        native_times.push(start.elapsed());
    }
    let (guest, native) = (median(&mut guest_times), median(&mut native_times));
    let rate = instructions as f64 / guest.as_secs_f64() / 1e6;
    let ratio = guest.as_secs_f64() / native.as_secs_f64();
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let what = format!("{what} {engine:?}").to_lowercase();
    Ok(format!(
        "{what:<24} {:>9.3} ms {instructions:>16} {rate:>14.0} {:>7.3} ms {ratio:>8.2}",
        ms(guest),
        ms(native)
    ))
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn noise(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0 - 0.5
    };
    (0..n).map(|_| next()).collect()
}

fn agree(what: &str, same: bool) -> Result<(), ptxvm::Error> {
    if same {
        Ok(())
    } else {
        Err(ptxvm::Error::caller(format!("{what}: the result differs from the native one")))
    }
}

fn saxpy(engine: Engine) -> Result2 {
    const N: usize = 1 << 20;
    let vm = Vm::new()?;
    let text = fixture("saxpy.ptx").map_err(ptxvm::Error::caller)?;
    let kernel = vm.load("saxpy.ptx", &text)?.kernel("saxpy")?;
    let (x, y) = (noise(N, 1), noise(N, 2));
    let (dx, dy) = (vm.buffer(&x)?, vm.buffer(&y)?);
    let args = [Arg::from(N as i32), Arg::from(2.5f32), Arg::buffer(&dx), Arg::buffer(&dy)];
    let launch =
        Launch::new([(N / 256) as u32, 1, 1], [256, 1, 1]).threads(1).engine(engine).args(&kernel, &args)?;
    vm.launch(&kernel, &launch)?;
    let mut once = y.clone();
    let native = |y: &mut [f32]| y.iter_mut().zip(&x).for_each(|(y, x)| *y = 2.5f32.mul_add(*x, *y));
    native(&mut once);
    agree("saxpy", dy.read()? == once)?;
    let mut y = y;
    measure(("saxpy 1M", engine), || vm.launch(&kernel, &launch), || native(black_box(&mut y)))
}

fn sgemm(engine: Engine) -> Result2 {
    product("sgemm plain 192^3", "matmul_plain", engine)
}

fn tiled(engine: Engine) -> Result2 {
    product("sgemm tiled 192^3", "matmul_tiled", engine)
}

fn product(title: &str, name: &str, engine: Engine) -> Result2 {
    const N: usize = 192;
    let vm = Vm::new()?;
    let text = fixture(&format!("{name}.ptx")).map_err(ptxvm::Error::caller)?;
    let kernel = vm.load(name, &text)?.kernel(name)?;
    let (a, b) = (noise(N * N, 3), noise(N * N, 4));
    let (da, db, dc) = (vm.buffer(&a)?, vm.buffer(&b)?, vm.zeros::<f32>(N * N)?);
    let n = N as i32;
    let args =
        [Arg::buffer(&da), Arg::buffer(&db), Arg::buffer(&dc), Arg::from(n), Arg::from(n), Arg::from(n)];
    let side = (N / 16) as u32;
    let launch = Launch::new([side, side, 1], [16, 16, 1]).threads(1).engine(engine).args(&kernel, &args)?;
    let native = |c: &mut [f32]| {
        for row in 0..N {
            for col in 0..N {
                c[row * N + col] = (0..N).fold(0.0f32, |sum, k| a[row * N + k].mul_add(b[k * N + col], sum));
            }
        }
    };
    let mut c = vec![0.0; N * N];
    native(&mut c);
    vm.launch(&kernel, &launch)?;
    agree(title, dc.read()? == c)?;
    measure((title, engine), || vm.launch(&kernel, &launch), || native(black_box(&mut c)))
}

fn mandelbrot(engine: Engine) -> Result2 {
    const W: usize = 512;
    const H: usize = 384;
    const LIMIT: i32 = 255;
    let vm = Vm::new()?;
    let text = fixture("mandelbrot.ptx").map_err(ptxvm::Error::caller)?;
    let kernel = vm.load("mandelbrot.ptx", &text)?.kernel("mandelbrot")?;
    let (x0, y0, step) = (-2.0f32, -1.125f32, 3.0f32 / W as f32);
    let image = vm.zeros::<u8>(W * H)?;
    let args = [
        Arg::buffer(&image),
        Arg::from(W as i32),
        Arg::from(H as i32),
        Arg::from(x0),
        Arg::from(y0),
        Arg::from(step),
        Arg::from(LIMIT),
    ];
    let launch = Launch::new([(W / 32) as u32, (H / 8) as u32, 1], [32, 8, 1])
        .threads(1)
        .engine(engine)
        .args(&kernel, &args)?;
    let native = |image: &mut [u8]| {
        for (i, pixel) in image.iter_mut().enumerate() {
            let (cx, cy) = (x0 + (i % W) as f32 * step, y0 + (i / W) as f32 * step);
            let (mut x, mut y, mut n) = (0.0f32, 0.0f32, 0);
            while n < LIMIT && x * x + y * y <= 4.0 {
                (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
                n += 1;
            }
            *pixel = n as u8;
        }
    };
    let mut pixels = vec![0; W * H];
    native(&mut pixels);
    vm.launch(&kernel, &launch)?;
    agree("Mandelbrot", image.read()? == pixels)?;
    measure(("Mandelbrot 512x384", engine), || vm.launch(&kernel, &launch), || native(black_box(&mut pixels)))
}
