//! Rows whose distance is a parameter of the kernel, or depends on one: the same bytes and traps in the
//! interpreter and in native code of every level, for all sizes of the parameter.
#![cfg(feature = "jit")]

use crate::levels;

use ptxvm::{Arg, Engine, ErrorKind, Launch, Options, Target, Vm};

/// What the kernel left, or where and why it stopped.
fn run(
    text: &str,
    block: [u32; 3],
    pitch: u32,
    team: Option<u32>,
    native: Option<Target>,
) -> Result<Vec<u32>, String> {
    let vm = Vm::with(Options { target: native, team, cache: levels::cache(), ..Options::default() })
        .expect("this is given");
    let module = vm.load("pitches.ptx", text).expect("this is given");
    let kernel = module.kernel("k").expect("this is given");
    let data: Vec<u32> = (0..1800).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
    let (from, to) =
        (vm.buffer(&data).expect("this is given"), vm.buffer(&[0_u32; 256]).expect("this is given"));
    let args = [Arg::buffer(&from), Arg::buffer(&to), Arg::from(pitch)];
    let engine = if native.is_some() { Engine::Jit } else { Engine::Interp };
    let launch =
        Launch::new([1, 1, 1], block).threads(1).engine(engine).args(&kernel, &args).expect("this is given");
    match vm.launch(&kernel, &launch) {
        Ok(_) => Ok(to.read().expect("this is given")),
        Err(error) => match error.kind() {
            ErrorKind::Trap(trap, _) => {
                Err(format!("{} line {} at {:?}", trap.kind.word(), trap.line, trap.tid))
            }
            _ => panic!("{error}"),
        },
    }
}

#[test]
fn rows_lie_as_far_apart_as_a_parameter_says() {
    // `%r9`: the first element of thread (x, y) = (`%r2`, `%r6`), which moves on from barrier to barrier.
    let indices = [
        "mad.lo.s32 %r9, %r6, %r1, %r2;",
        "mul.lo.s32 %r9, %r6, %r1; shl.b32 %r9, %r9, 1; add.s32 %r9, %r9, %r2;",
        "mul.lo.s32 %r9, %r6, %r1; sub.s32 %r9, %r2, %r9;",
        "mad.lo.s32 %r9, %r6, %r1, %r2; mul.lo.s32 %r9, %r9, 3;",
        // By another number than the parameter, on one way or on both.
        "mul.lo.s32 %r9, %r6, %r1; setp.gt.s32 %p2, %r1, 20; @%p2 mul.lo.s32 %r9, %r6, 24; add.s32 %r9, %r9, %r2;",
        "mov.u32 %r12, %r1; setp.gt.s32 %p2, %r1, 20; @%p2 bra X; add.s32 %r12, %r12, 8; X: mad.lo.s32 %r9, %r6, %r12, %r2;",
        // Two that change places.
        "mul.lo.s32 %r9, %r6, %r1; shl.b32 %r13, %r9, 1; add.s32 %r9, %r9, %r2; add.s32 %r13, %r13, %r2;",
    ];
    let wides = [
        "mul.wide.s32 %rd11, %r10, 4;",
        "mul.wide.u32 %rd11, %r10, 4;",
        "cvt.s64.s32 %rd11, %r10; shl.b64 %rd11, %rd11, 2;",
    ];
    let blocks = [[16, 16, 1], [32, 8, 1], [16, 8, 1]];
    for (at, index) in indices.into_iter().enumerate() {
        let (wide, block) = (wides[at % wides.len()], blocks[at % blocks.len()]);
        let turn = match index.contains("%r13") {
            true => "mov.u32 %r14, %r9; mov.u32 %r9, %r13; mov.u32 %r13, %r14;",
            false => "",
        };
        let text = format!(
            ".version 7.0\n.target sm_80\n.address_size 64\n\
             .visible .entry k(.param .u64 from, .param .u64 to, .param .u32 pitch)\n{{\n\
             .reg .pred %p<4>; .reg .b32 %r<30>; .reg .b64 %rd<14>;\n\
             ld.param.u64 %rd1, [from]; ld.param.u64 %rd3, [to]; ld.param.u32 %r1, [pitch];\n\
             mov.u32 %r2, %tid.x; mov.u32 %r4, %ntid.x; mov.u32 %r6, %tid.y;\n\
             mad.lo.u32 %r7, %r6, %r4, %r2; mul.wide.u32 %rd8, %r7, 4; add.u64 %rd10, %rd3, %rd8;\n{index}\n\
             mov.u32 %r20, 400; mov.u32 %r21, 0;\nL: add.s32 %r10, %r9, %r20;\n{wide}\nadd.u64 %rd11, %rd1, %rd11;\n\
             ld.global.u32 %r11, [%rd11]; add.u32 %r21, %r21, %r11;\n{turn}\nbar.sync 0; add.s32 %r20, %r20, 4;\n\
             setp.lt.s32 %p1, %r20, 416; @%p1 bra L;\nst.global.u32 [%rd10], %r21; ret;\n}}\n"
        );
        // Rows that lie on each other, apart, the other way round; and numbers that wrap around, or are out
        // of bounds.
        for pitch in [0, 5, 24, 16_u32.wrapping_neg(), 1 << 30, 1 << 31, 0x0a00_0000] {
            for team in [None, Some(2)] {
                let expected = run(&text, block, pitch, team, None);
                assert!(expected.is_ok() || pitch > 5, "{expected:?}");
                for target in levels::of(&format!("{text}{pitch}{team:?}")) {
                    let found = run(&text, block, pitch, team, Some(target));
                    assert_eq!(found, expected, "{target}, {pitch}\n{text}");
                }
            }
        }
    }
}
