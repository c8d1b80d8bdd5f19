//! `ptxvm demo`: built-in kernels on built-in data, each checked against the host, and a picture.
//!
//! The PTX is clang's output for natural CUDA source: `demo/` contains links to files of `tests/fixtures`,
//! which a package of the crate includes. Every expected value is computed here by plain Rust that shares
//! only the data with the virtual machine; results are compared bit for bit.

use crate::options::DemoOptions;
use crate::{Exit, UsageError};
use ptxvm::{Arg, Launch, Report, Vm};
use std::path::Path;

macro_rules! fixture {
    ($name:literal) => {
        ($name, include_str!(concat!("demo/", $name, ".ptx")))
    };
}

/// The result of one kernel of the demo.
struct Row {
    what: String,
    kernel: &'static str,
    report: Report,
    right: bool,
}

/// Runs all kernels, prints the table, and fails if a result is wrong.
pub(crate) fn demo(options: &DemoOptions) -> Result<Exit, UsageError> {
    let vm = Vm::new()?;
    let demos = [mandelbrot, matrix_product, reduction, histogram, sad];
    let mut rows = Vec::new();
    for run in demos {
        rows.push(run(&vm, options)?);
    }
    crate::print_out(&table(&rows))?;
    let all = rows.iter().all(|row| row.right);
    crate::print_out(&format!("\npicture: {}\n", options.picture.display()))?;
    if all { Ok(Exit::Done) } else { Err("a result differs from the host's".into()) }
}

fn table(rows: &[Row]) -> String {
    use std::fmt::Write as _;
    let mut text = format!("{:<44} {:<18} {:>10} {:>14}  check\n", "what", "kernel", "time", "thread instr.");
    for row in rows {
        let ms = row.report.elapsed.as_secs_f64() * 1e3;
        let check = if row.right { "passed" } else { "WRONG" };
        let count = row.report.thread_instructions;
        let _infallible =
            writeln!(text, "{:<44} {:<18} {:>7.1} ms {:>14}  {check}", row.what, row.kernel, ms, count);
    }
    text
}

/// Loads a fixture's kernel and launches it.
fn launch(
    vm: &Vm,
    (name, text): (&str, &str),
    kernel: &str,
    launch: Launch,
    args: &[Arg<'_>],
    options: &DemoOptions,
) -> Result<Report, UsageError> {
    let module = vm.load(name, text)?;
    let kernel = module.kernel(kernel)?;
    let mut launch = launch.args(&kernel, args)?;
    launch.threads = options.threads;
    Ok(vm.launch(&kernel, &launch)?)
}

/// Pseudo-random numbers that are equal on every machine (xorshift).
fn noise(seed: u32) -> impl FnMut() -> u32 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    }
}

fn mandelbrot(vm: &Vm, options: &DemoOptions) -> Result<Row, UsageError> {
    const W: usize = 960;
    const H: usize = 640;
    const LIMIT: i32 = 200;
    let (x0, y0, step) = (-2.25f32, -1.0f32, 3.0f32 / W as f32);
    let image = vm.zeros::<u8>(W * H)?;
    let grid = Launch::new([W.div_ceil(32) as u32, H.div_ceil(8) as u32, 1], [32, 8, 1]);
    let args = [
        Arg::buffer(&image),
        Arg::from(W as i32),
        Arg::from(H as i32),
        Arg::from(x0),
        Arg::from(y0),
        Arg::from(step),
        Arg::from(LIMIT),
    ];
    let report = launch(vm, fixture!("mandelbrot"), "mandelbrot", grid, &args, options)?;
    let image = image.read()?;
    let right = (0..W * H).all(|i| {
        i32::from(image[i]) == escape_time(x0 + (i % W) as f32 * step, y0 + (i / W) as f32 * step, LIMIT)
    });
    write_picture(&options.picture, W, H, &image, LIMIT)?;
    Ok(Row {
        what: format!("Mandelbrot set, {W}x{H}, {LIMIT} iterations"),
        kernel: "mandelbrot",
        report,
        right,
    })
}

fn escape_time(cx: f32, cy: f32, limit: i32) -> i32 {
    let (mut x, mut y, mut i) = (0.0f32, 0.0f32, 0);
    while i < limit && x * x + y * y <= 4.0 {
        (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
        i += 1;
    }
    i
}

fn write_picture(
    path: &Path,
    width: usize,
    height: usize,
    times: &[u8],
    limit: i32,
) -> Result<(), UsageError> {
    let pixels: Vec<u8> = times.iter().flat_map(|time| colour(*time, limit)).collect();
    crate::output::write_file(path, |out| {
        let mut encoder = png::Encoder::new(out, width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&pixels)?;
        Ok(writer.finish()?)
    })
}

/// The colour of an escape time: black inside; outside from deep blue over white to amber.
fn colour(time: u8, limit: i32) -> [u8; 3] {
    if i32::from(time) >= limit {
        return [0, 0, 0];
    }
    let t = (f32::from(time) / 40.0).sqrt().min(1.6);
    let ramp =
        |centre: f32, width: f32| (255.0 * (1.0 - ((t - centre) / width).powi(2)).clamp(0.0, 1.0)) as u8;
    [ramp(1.1, 0.8), ramp(0.9, 0.7), ramp(0.6, 0.8)]
}

fn matrix_product(vm: &Vm, options: &DemoOptions) -> Result<Row, UsageError> {
    const N: usize = 160;
    let mut next = noise(1);
    let mut random = |n: usize| -> Vec<f32> { (0..n).map(|_| next() as i32 as f32 / 2e9).collect() };
    let (a, b) = (random(N * N), random(N * N));
    let (da, db, dc) = (vm.buffer(&a)?, vm.buffer(&b)?, vm.zeros::<f32>(N * N)?);
    let side = N.div_ceil(16) as u32;
    let n = N as i32;
    let args =
        [Arg::buffer(&da), Arg::buffer(&db), Arg::buffer(&dc), Arg::from(n), Arg::from(n), Arg::from(n)];
    let grid = Launch::new([side, side, 1], [16, 16, 1]);
    let report = launch(vm, fixture!("matmul_tiled"), "matmul_tiled", grid, &args, options)?;
    let c = dc.read()?;
    // The kernel adds with one fused multiply-add for each k in order, and so does this code.
    let right = (0..N * N).all(|i| {
        let sum = (0..N).fold(0.0f32, |sum, k| a[i / N * N + k].mul_add(b[k * N + i % N], sum));
        sum.to_bits() == c[i].to_bits()
    });
    Ok(Row { what: format!("matrix product, {N}x{N}, 16x16 tiles"), kernel: "matmul_tiled", report, right })
}

fn reduction(vm: &Vm, options: &DemoOptions) -> Result<Row, UsageError> {
    const N: usize = 1 << 20;
    const CTAS: usize = 32;
    let mut next = noise(2);
    let data: Vec<i32> = (0..N).map(|_| next() as i32 >> 12).collect();
    let (input, sums, maxima) = (vm.buffer(&data)?, vm.zeros::<i64>(CTAS)?, vm.zeros::<i32>(CTAS)?);
    let args = [Arg::buffer(&input), Arg::buffer(&sums), Arg::buffer(&maxima), Arg::from(N as i32)];
    let grid = Launch::new([CTAS as u32, 1, 1], [256, 1, 1]);
    let report = launch(vm, fixture!("block_reduce"), "block_reduce", grid, &args, options)?;
    let sum: i64 = sums.read()?.iter().sum();
    let right = sum == data.iter().map(|v| i64::from(*v)).sum::<i64>()
        && maxima.read()?.iter().max() == data.iter().max();
    Ok(Row { what: format!("sum and maximum of {N} integers"), kernel: "block_reduce", report, right })
}

fn histogram(vm: &Vm, options: &DemoOptions) -> Result<Row, UsageError> {
    const N: usize = 1 << 20;
    let mut next = noise(3);
    let data: Vec<u8> = (0..N).map(|_| (next() >> 24) as u8 & (next() >> 16) as u8).collect();
    let (input, bins) = (vm.buffer(&data)?, vm.zeros::<u32>(256)?);
    let args = [Arg::buffer(&input), Arg::buffer(&bins), Arg::from(N as i32)];
    let grid = Launch::new([32, 1, 1], [256, 1, 1]);
    let report = launch(vm, fixture!("histogram"), "histogram_shared", grid, &args, options)?;
    let mut expected = vec![0u32; 256];
    for byte in data {
        expected[usize::from(byte)] += 1;
    }
    let right = bins.read()? == expected;
    Ok(Row {
        what: format!("histogram of {N} bytes, shared atomics"),
        kernel: "histogram_shared",
        report,
        right,
    })
}

fn sad(vm: &Vm, options: &DemoOptions) -> Result<Row, UsageError> {
    const W: usize = 128;
    const H: usize = 96;
    let mut next = noise(4);
    let reference: Vec<u8> = (0..W * H).map(|_| (next() >> 24) as u8).collect();
    // The frame is the reference, moved by (3, -2) and slightly darker.
    let frame: Vec<u8> =
        (0..W * H).map(|i| reference[(i / W + H - 2) % H * W + (i % W + 3) % W].saturating_sub(2)).collect();
    let (df, dr, best) = (vm.buffer(&frame)?, vm.buffer(&reference)?, vm.zeros::<u32>(W / 8 * H / 8)?);
    let args =
        [Arg::buffer(&df), Arg::buffer(&dr), Arg::buffer(&best), Arg::from(W as i32), Arg::from(H as i32)];
    let grid = Launch::new([W as u32 / 8, H as u32 / 8, 1], [16, 16, 1]);
    let report = launch(vm, fixture!("sad"), "block_match", grid, &args, options)?;
    let difference = |bx: usize, by: usize, sx: i64, sy: i64| -> u32 {
        let pixel = |x: usize, y: usize| {
            let other = reference[(sy as usize + y) * W + sx as usize + x];
            u32::from(frame[(by + y) * W + bx + x].abs_diff(other))
        };
        (0..64).map(|i| pixel(i % 8, i / 8)).sum()
    };
    let found = best.read()?;
    let right = (0..found.len()).all(|i| {
        let (bx, by) = (i % (W / 8) * 8, i / (W / 8) * 8);
        let inside = |at: i64, limit: usize| at >= 0 && at + 8 <= limit as i64;
        let candidates = (0..256u32).filter_map(|t| {
            let (sx, sy) = (bx as i64 + i64::from(t % 16) - 8, by as i64 + i64::from(t / 16) - 8);
            (inside(sx, W) && inside(sy, H)).then(|| difference(bx, by, sx, sy) << 8 | t)
        });
        candidates.min() == Some(found[i])
    });
    Ok(Row { what: format!("block matching {W}x{H}, vabsdiff4.add"), kernel: "block_match", report, right })
}
