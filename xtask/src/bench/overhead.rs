//! The costs of compiling and launching.
//!
//! Invariant: each compilation is cold: on a new device that has compiled no kernel.

use super::Options;
use super::case::Size;
use super::cases;
use super::clock::median;
use super::device::{Device, text};
use ptxvm::{Arg, Engine, Launch, Vm};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// A measurement with its limit.
pub(crate) struct Overhead {
    pub(crate) what: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) limit: f64,
}

/// All of them.
pub(crate) fn all(options: &Options) -> Result<Vec<Overhead>, ptxvm::Error> {
    let ms = |what, value: f64, limit| Overhead { what, value: value * 1e3, unit: "ms", limit };
    let mut all = vec![
        ms("compiling saxpy, cold", saxpy(options)?, 10.0),
        ms("compiling 2,000 instructions, cold", long(options)?, 100.0),
    ];
    for (what, threads, warps) in [
        ("launch of one CTA of one warp, one OS thread", 1, 1),
        ("launch of one CTA of one warp", options.threads, 1),
        ("launch of one CTA of eight warps", options.threads, 8),
    ] {
        let value = launch(options, threads, 1, warps)? * 1e6;
        all.push(Overhead { what, value, unit: "us", limit: 5.0 });
    }
    for (what, threads, warps) in [
        ("each further CTA of one warp, one OS thread", 1, 1),
        ("each further CTA of eight warps, one OS thread", 1, 8),
        ("each further CTA of eight warps", options.threads, 8),
    ] {
        let more = 20_000;
        let value = (launch(options, threads, 1 + more, warps)? - launch(options, threads, 1, warps)?)
            / f64::from(more);
        all.push(Overhead { what, value: value * 1e9, unit: "ns", limit: 200.0 });
    }
    Ok(all)
}

/// Compile time of saxpy.
fn saxpy(options: &Options) -> Result<f64, ptxvm::Error> {
    let Some((_, make)) = cases::ALL.iter().find(|(name, _)| *name == "saxpy") else { return Ok(f64::NAN) };
    let case = make(Size::Reduced);
    let mut times = Vec::new();
    for _ in 0..5 {
        let (_, seen) =
            Device::new(&case, (options.cpu, options.team), Engine::Jit, options.threads)?.run()?;
        times.push(seen.compiled.as_secs_f64());
    }
    Ok(median(times))
}

/// Compile time of 2,000 instructions on varying values.
fn long(options: &Options) -> Result<f64, ptxvm::Error> {
    let mut ptx = String::from(
        ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry long(.param .u64 out)\n{\n.reg .b32 %r<16>;\n.reg .f32 %f<16>;\n\
         .reg .b64 %d<4>;\nld.param.u64 %d0, [out];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %d1, %r0, 4;\nadd.s64 %d2, %d0, %d1;\n",
    );
    for i in 1..16 {
        let _never = writeln!(ptx, "add.s32 %r{i}, %r0, {i};\ncvt.rn.f32.s32 %f{i}, %r{i};");
    }
    let _never = writeln!(ptx, "cvt.rn.f32.s32 %f0, %r0;");
    for i in 0..1960 / 5 {
        let (d, a, b) = (i % 16, (i * 7 + 3) % 16, (i * 5 + 1) % 16);
        let _never = write!(
            ptx,
            "fma.rn.f32 %f{d}, %f{a}, %f{b}, %f{d};\nadd.s32 %r{d}, %r{a}, %r{b};\nxor.b32 %r{a}, %r{d}, %r{b};\n\
             mul.f32 %f{b}, %f{d}, %f{a};\nshl.b32 %r{b}, %r{a}, {};\n",
            i % 31
        );
    }
    for i in 1..16 {
        let _never = writeln!(ptx, "xor.b32 %r0, %r0, %r{i};\nadd.f32 %f0, %f0, %f{i};");
    }
    ptx += "mov.b32 %r1, %f0;\nxor.b32 %r0, %r0, %r1;\nst.global.u32 [%d2], %r0;\nret;\n}\n";
    let mut times = Vec::new();
    for _ in 0..3 {
        let vm = Vm::with(ptxvm::Options { target: options.cpu, ..ptxvm::Options::default() })?;
        let kernel = vm.load("long.ptx", &ptx)?.kernel("long")?;
        let out = vm.zeros::<u32>(256)?;
        let launch =
            Launch::new([1, 1, 1], [256, 1, 1]).engine(Engine::Jit).args(&kernel, &[Arg::buffer(&out)])?;
        times.push(vm.launch(&kernel, &launch)?.ran.compiled.as_secs_f64());
    }
    Ok(median(times))
}

/// Seconds that a launch of an empty kernel takes.
fn launch(options: &Options, threads: u32, ctas: u32, warps: u32) -> Result<f64, ptxvm::Error> {
    let vm = Vm::with(ptxvm::Options { target: options.cpu, ..ptxvm::Options::default() })?;
    let kernel =
        vm.load("empty.ptx", &text("kernels/empty").map_err(ptxvm::Error::caller)?)?.kernel("empty")?;
    let launch = Launch::new([ctas, 1, 1], [32 * warps, 1, 1]).threads(threads).engine(Engine::Jit);
    vm.launch(&kernel, &launch)?;
    let mut times = Vec::new();
    let began = Instant::now();
    while times.len() < 5 || (times.len() < 500 && began.elapsed() < Duration::from_millis(150)) {
        let start = Instant::now();
        vm.launch(&kernel, &launch)?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(median(times))
}
