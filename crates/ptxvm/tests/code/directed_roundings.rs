//! Sums, products, fused multiply-adds and conversions of single precision with a directed rounding: native
//! code on every level, with the bits of the interpreter, which is tested against independent results.
#![cfg(feature = "jit")]

use crate::levels;

use ptxvm::{Arg, Cpu, Engine, Launch, Options, Ran, Target, Vm};

/// Numbers next to which results round in another way: zeros, the least and the greatest subnormal and normal
/// numbers, numbers with few and with all digits, of similar and of very different sizes, infinity and NaN.
const EDGES: [u32; 20] = [
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0001,
    0x00ff_ffff,
    0x1f80_0001,
    0x2000_0000,
    0x3380_0001,
    0xb3ff_ffff,
    0x3f80_0000,
    0xbf80_0001,
    0x3fff_ffff,
    0xbeaa_aaab,
    0x4b80_0001,
    0x5f7f_ffff,
    0x7f7f_ffff,
    0xff80_0000,
    0x7fc0_0000,
];

/// The operations, on the singles `%f1` to `%f3` and the word `%r1`; the results are in `%f4`.
fn operations(rounding: &str) -> Vec<String> {
    let mut all = Vec::new();
    for more in ["", ".ftz", ".sat", ".ftz.sat"] {
        for op in ["add", "sub", "mul"] {
            all.push(format!("{op}.{rounding}{more}.f32 %f4, %f1, %f2;"));
        }
        all.push(format!("fma.{rounding}{more}.f32 %f4, %f1, %f2, %f3;"));
    }
    for more in ["", ".ftz", ".sat"] {
        // A double with more digits than a single. There is arithmetic on doubles in no other kernel, so that
        // the processor flushes subnormal numbers in those where every operation does.
        all.push(format!(
            "cvt.f64.f32 %fd1, %f1; cvt.f64.f32 %fd2, %f2; mul.rn.f64 %fd2, %fd2, 0d3e50000000000000;\n\
             add.rn.f64 %fd1, %fd1, %fd2; cvt.{rounding}{more}.f32.f64 %f4, %fd1;"
        ));
    }
    for ty in ["s32", "u32"] {
        all.push(format!("cvt.{rounding}.f32.{ty} %f4, %r1;"));
    }
    all
}

fn text(rounding: &str, operation: &str) -> String {
    format!(
        "// {rounding}\n.version 7.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{{\n\
         .reg .b32 %r<9>; .reg .b64 %rd<20>; .reg .f32 %f<9>; .reg .f64 %fd<9>;\n\
         ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u64 %rd4, [d];\n\
         mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.u32 %r2, %r3, %r4, %r2;\n\
         mul.wide.u32 %rd5, %r2, 4;\n\
         add.u64 %rd1, %rd1, %rd5; add.u64 %rd2, %rd2, %rd5; add.u64 %rd3, %rd3, %rd5; add.u64 %rd4, %rd4, %rd5;\n\
         ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2]; ld.global.f32 %f3, [%rd3];\n\
         ld.global.u32 %r1, [%rd2];\n\
         {operation}\n\
         st.global.f32 [%rd4], %f4; ret;\n}}\n"
    )
}

fn run(text: &str, data: &[Vec<u32>; 3], engine: Engine, target: Option<Target>) -> (Vec<u32>, Ran) {
    let vm = Vm::with(Options { target, ..Options::default() }).expect("a device");
    let module = vm.load("rounds.ptx", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let kernel = module.kernel("k").expect("the kernel");
    let [a, b, c] = data.each_ref().map(|data| vm.buffer(data).expect("memory"));
    let d = vm.zeros::<u32>(data[0].len()).expect("memory");
    let args = [Arg::buffer(&a), Arg::buffer(&b), Arg::buffer(&c), Arg::buffer(&d)];
    let grid = (data[0].len() / 64) as u32;
    let launch = Launch::new([grid, 1, 1], [64, 1, 1]).threads(1).engine(engine);
    let report = vm.launch(&kernel, &launch.args(&kernel, &args).expect("arguments that fit"));
    (d.read().expect("the results"), *report.expect("no trap").ran)
}

#[test]
fn directed_roundings_have_native_code_on_every_level() {
    let count = EDGES.len().pow(3).next_multiple_of(64);
    let edge = |i: usize| EDGES[i % EDGES.len()];
    let data = [1, EDGES.len(), EDGES.len().pow(2)].map(|step| (0..count).map(|i| edge(i / step)).collect());
    let levels = [Cpu::Avx512, Cpu::Avx2, Cpu::Baseline].into_iter().filter(|cpu| levels::is_available(*cpu));
    for target in levels.map(|cpu| levels::unoptimised(cpu.into())) {
        for rounding in ["rm", "rp", "rz"] {
            for operation in operations(rounding) {
                let text = text(rounding, &operation);
                let (expected, _) = run(&text, &data, Engine::Interp, None);
                let (found, ran) = run(&text, &data, Engine::Jit, Some(target));
                assert!(ran.fallbacks.is_empty(), "{target} {operation}: {:?}", ran.fallbacks);
                let wrong = (0..count).find(|i| found[*i] != expected[*i]);
                if let Some(i) = wrong {
                    let [a, b, c] = data.each_ref().map(|data: &Vec<u32>| data[i]);
                    panic!(
                        "{target} {operation} {a:#x} {b:#x} {c:#x}: {:#x}, not {:#x}",
                        found[i], expected[i]
                    );
                }
            }
        }
    }
}
