//! Small kernels for the fast paths of native code and their edge cases, in the interpreter and in native
//! code of every level: the same bytes, and the same traps.
//!
//! The interpreter is tested against independent results elsewhere; here it is the reference.
#![cfg(feature = "jit")]

use crate::levels;

use ptxvm::{Arg, Engine, ErrorKind, Launch, Options, Target, Vm};

/// The outcome of a launch: the buffers, or the text of its trap without addresses.
type Outcome = Result<Vec<Vec<u32>>, String>;

/// A kernel `k(.u64 a, .u64 b, .u64 c, .u32 n)`, and what it is launched with.
struct Case<'a> {
    /// Its body behind the registers.
    body: &'a str,
    grid: u32,
    block: [u32; 3],
    buffers: [Vec<u32>; 3],
    n: u32,
    /// Warps of a coarse warp, as [`Options::team`].
    team: Option<u32>,
}

impl Case<'_> {
    fn text(&self) -> String {
        format!(
            ".version 7.0\n.target sm_80\n.address_size 64\n.const .align 4 .b32 table[4] = {{1, 2, 3, 4}};\n\
             .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{{\n\
             .reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<20>; .reg .f64 %fd<10>;\n\
             .shared .align 16 .b8 shared[4096];\n\
             ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];\n\
             mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r3, %r4, %r2;\n\
             mul.wide.u32 %rd4, %r5, 4; add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd2, %rd4; add.u64 %rd7, %rd3, %rd4;\n\
             {}\n}}\n",
            self.body
        )
    }

    fn run(&self, engine: Engine, target: Option<Target>) -> Outcome {
        let vm =
            match Vm::with(Options { target, team: self.team, cache: levels::cache(), ..Options::default() })
            {
                Ok(vm) => vm,
                Err(error) => panic!("{error}"),
            };
        let module = vm.load("test.ptx", &self.text()).unwrap_or_else(|error| panic!("{error}"));
        let kernel = module.kernel("k").expect("the kernel");
        let buffers: Vec<_> = self.buffers.iter().map(|data| vm.buffer(data).expect("memory")).collect();
        let [a, b, c] = &buffers[..] else { unreachable!() };
        let args = [Arg::buffer(a), Arg::buffer(b), Arg::buffer(c), Arg::from(self.n)];
        let launch = Launch::new([self.grid, 1, 1], self.block).threads(1).engine(engine);
        let launch = launch.args(&kernel, &args).expect("arguments that fit");
        match vm.launch(&kernel, &launch) {
            Ok(_) => Ok(buffers.iter().map(|buffer| buffer.read().expect("the results")).collect()),
            Err(error) => match error.kind() {
                ErrorKind::Trap(trap, _) => {
                    Err(format!("{} line {} at {:?} {:?}", trap.kind.word(), trap.line, trap.ctaid, trap.tid))
                }
                _ => panic!("{error}"),
            },
        }
    }

    /// Runs it everywhere; gives what the interpreter found.
    fn agree(&self) -> Outcome {
        let expected = self.run(Engine::Interp, None);
        for target in levels::of(self.body) {
            let found = self.run(Engine::Jit, Some(target));
            assert_eq!(found, expected, "{target}\n{}", self.body);
        }
        expected
    }
}

fn case(body: &str) -> Case<'_> {
    let buffer = |seed: u32| (0..256).map(|i: u32| (i ^ seed).wrapping_mul(0x9e37_79b9)).collect();
    Case { body, grid: 2, block: [64, 1, 1], buffers: [buffer(1), buffer(2), buffer(3)], n: 100, team: None }
}

/// Numbers with NaN of many payloads, infinities and zeros among them.
fn odd_floats() -> Vec<u32> {
    let odd =
        [0x7fa1_2345, 0xffc0_0001, 0x7fff_ffff, 0x7f80_0000, 0xff80_0000, 0, 0x8000_0000, 0x3f80_0000, 1];
    (0..256)
        .map(
            |i: usize| if i.is_multiple_of(3) { odd[i / 3 % odd.len()] } else { (i as f32 - 99.5).to_bits() },
        )
        .collect()
}

#[test]
fn the_bits_of_a_nan_are_the_same_wherever_they_are_seen() {
    let bodies = [
        // A store, an integer instruction, another lane, half of a pair, a wider register.
        "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f1, %f2; st.global.f32 [%rd7], %f3; ret;",
        "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; mul.f32 %f3, %f1, %f2; mov.b32 %r9, %f3; \
         add.u32 %r9, %r9, 1; st.global.u32 [%rd7], %r9; ret;",
        "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; fma.rn.f32 %f3, %f1, %f2, %f1; mov.b32 %r9, %f3; \
         shfl.sync.bfly.b32 %r10, %r9, 5, 31, -1; st.global.u32 [%rd7], %r10; ret;",
        "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; sub.f32 %f3, %f1, %f2; mov.b64 %rd8, {%f3, %f1}; \
         shr.u64 %rd9, %rd8, 3; cvt.u32.u64 %r9, %rd9; st.global.u32 [%rd7], %r9; ret;",
        // Through a select, a copy and a loop that lanes leave one after another.
        "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; and.b32 %r6, %r2, 7; \
         L: add.f32 %f1, %f1, %f2; mul.f32 %f2, %f1, %f1; sub.u32 %r6, %r6, 1; setp.gt.s32 %p1, %r6, 0; @%p1 bra L; \
         setp.lt.f32 %p2, %f1, %f2; selp.f32 %f4, %f1, %f2, %p2; mov.f32 %f5, %f4; st.global.f32 [%rd7], %f5; ret;",
        "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f1, %f2; setp.gt.u32 %p1, %r2, 9; \
         @%p1 add.f32 %f3, %f2, %f2; @%p1 bra L; mul.f32 %f3, %f3, 0f7f800000; L: xor.b32 %f3, %f3, 0; st.global.f32 [%rd7], %f3; ret;",
        // Across a barrier, and in a value that is the same in all lanes.
        "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f1, %f2; bar.sync 0; st.global.f32 [%rd7], %f3; ret;",
        "ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2+12]; add.f32 %f3, %f1, %f2; mov.b32 %r9, %f3; \
         add.u32 %r9, %r9, %r2; st.global.u32 [%rd7], %r9; ret;",
        // What only moves bits keeps a payload.
        "ld.global.f32 %f1, [%rd5]; mov.f32 %f3, %f1; setp.lt.u32 %p1, %r2, 20; selp.f32 %f3, %f3, %f1, %p1; st.global.f32 [%rd7], %f3; ret;",
    ];
    for body in bodies {
        let buffers = [odd_floats(), odd_floats().into_iter().rev().collect(), vec![0; 256]];
        let case = Case { buffers, ..case(body) };
        case.agree().unwrap();
    }
}

#[test]
fn accesses_that_are_checked_together_fault_like_single_ones() {
    // Each buffer has 256 words; 128 threads.
    let bodies = [
        // Several behind one register; the last goes over the end in some lanes, in all, or by its alignment.
        "ld.global.u32 %r6, [%rd5]; ld.global.u32 %r7, [%rd5+256]; add.u32 %r6, %r6, %r7; st.global.u32 [%rd7], %r6; ret;",
        "st.global.u32 [%rd7], %r5; ld.global.u32 %r6, [%rd5]; ld.global.u32 %r7, [%rd5+768]; st.global.u32 [%rd7+4], %r7; ret;",
        "st.global.u32 [%rd7], %r5; ld.global.u32 %r7, [%rd5+-4]; st.global.u32 [%rd7+4], %r7; ret;",
        "st.global.u32 [%rd7], %r5; ld.global.u32 %r7, [%rd5+2]; st.global.u32 [%rd7+4], %r7; ret;",
        "st.global.u32 [%rd3], %r5; ld.global.v2.u32 {%r6, %r7}, [%rd1+4]; st.global.u32 [%rd3+4], %r7; ret;",
        // The same in shared memory.
        "mov.u64 %rd8, shared; add.u64 %rd8, %rd8, %rd4; st.shared.u32 [%rd8], %r5; st.shared.u32 [%rd8+512], %r2; \
         ld.shared.u32 %r6, [%rd8+3840]; st.global.u32 [%rd7], %r6; ret;",
        "st.shared.u32 [shared+8], %r5; ld.shared.u32 %r6, [shared+8]; st.global.u32 [%rd7], %r6; ret;",
        "mul.lo.u32 %r6, %r2, %r2; and.b32 %r6, %r6, 4092; cvt.u64.u32 %rd8, %r6; mov.u64 %rd9, shared; add.u64 %rd8, %rd8, %rd9; \
         ld.shared.u32 %r6, [%rd8]; ld.shared.u32 %r7, [%rd8+4]; add.u32 %r6, %r6, %r7; st.global.u32 [%rd7], %r6; ret;",
        // Lanes that are off reach beyond the end, or before the beginning; nothing happens there.
        "setp.ge.u32 %p1, %r5, %r1; @%p1 bra X; ld.global.u32 %r6, [%rd5+624]; st.global.u32 [%rd7+624], %r6; X: ret;",
        "setp.lt.u32 %p1, %r5, 7; @%p1 bra X; ld.global.u32 %r6, [%rd5+-28]; st.global.u32 [%rd7+-28], %r6; X: ret;",
        "setp.ge.u32 %p1, %r5, %r1; @!%p1 ld.global.u32 %r6, [%rd5+624]; @!%p1 st.global.u32 [%rd7+624], %r6; ret;",
        // From behind, and two at a time.
        "setp.ge.u32 %p1, %r5, 60; @%p1 bra X; mul.wide.u32 %rd8, %r5, -8; add.u64 %rd8, %rd1, %rd8; \
         ld.global.v2.u32 {%r6, %r7}, [%rd1+8]; add.u64 %rd9, %rd7, 0; st.global.u32 [%rd9], %r7; X: ret;",
        "setp.ge.u32 %p1, %r2, 60; @%p1 bra X; sub.u32 %r6, 0, %r2; mul.wide.s32 %rd8, %r6, 8; add.u64 %rd8, %rd1, %rd8; \
         ld.global.v2.u32 {%r6, %r7}, [%rd8+472]; st.global.v2.u32 [%rd8+472], {%r7, %r6}; X: ret;",
        // All lanes at one address: the last that runs stays.
        "st.global.u32 [%rd3], %r5; ret;",
        "setp.eq.u32 %p1, %r3, 1; @%p1 bra X; setp.gt.u32 %p1, %r5, 21; @%p1 bra X; st.global.u32 [%rd3], %r5; \
         ld.global.u32 %r6, [%rd1+4]; st.global.u32 [%rd3+8], %r6; st.global.u32 [%rd3+12], 17; X: ret;",
        // Bytes, halves, pairs and quads.
        "cvt.u64.u32 %rd8, %r5; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; ld.global.s8 %r6, [%rd9]; \
         ld.global.u8 %r7, [%rd9+1]; add.u32 %r6, %r6, %r7; st.global.u8 [%rd10], %r6; ret;",
        "mul.wide.u32 %rd8, %r5, 8; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; ld.global.f64 %fd1, [%rd9]; \
         add.f64 %fd1, %fd1, %fd1; st.global.f64 [%rd10], %fd1; ret;",
        "setp.ge.u32 %p1, %r5, 64; @%p1 bra X; mul.wide.u32 %rd8, %r5, 16; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; \
         ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd9]; st.global.v4.u32 [%rd10], {%r9, %r7, %r8, %r6}; X: ret;",
        // Through a loop, with an address that moves, until it is over the end.
        "mov.u32 %r6, 0; mov.u32 %r7, 0; L: ld.global.u32 %r8, [%rd5]; add.u32 %r7, %r7, %r8; add.u64 %rd5, %rd5, 128; \
         add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 4; @%p1 bra L; st.global.u32 [%rd7], %r7; ret;",
        "mov.u32 %r6, 0; mov.u32 %r7, 0; L: ld.global.u32 %r8, [%rd5]; st.global.u32 [%rd7], %r8; add.u64 %rd5, %rd5, 128; \
         add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 9; @%p1 bra L; ret;",
        // A thread number that wraps around before it is widened.
        "add.u32 %r6, %r2, -5; setp.lt.u32 %p1, %r2, 5; @%p1 bra X; mul.wide.u32 %rd8, %r6, 4; add.u64 %rd8, %rd1, %rd8; \
         ld.global.u32 %r7, [%rd8]; st.global.u32 [%rd7], %r7; X: ret;",
        "add.u32 %r6, %r2, -5; mul.wide.u32 %rd8, %r6, 4; add.u64 %rd8, %rd1, %rd8; ld.global.u32 %r7, [%rd8]; st.global.u32 [%rd7], %r7; ret;",
        // Read and written behind one address: in one buffer after another, and where nothing may be written.
        "mov.u32 %r6, 0; L: ld.global.u32 %r8, [%rd5]; add.u32 %r8, %r8, %r6; st.global.u32 [%rd5+4], %r8; mov.u64 %rd8, %rd5; mov.u64 %rd5, %rd6; \
         mov.u64 %rd6, %rd7; mov.u64 %rd7, %rd8; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 7; @%p1 bra L; ret;",
        "cvta.const.u64 %rd8, table; ld.u32 %r6, [%rd8+4]; st.global.u32 [%rd7], %r6; st.u32 [%rd8], %r6; ret;",
        // What is loaded is the next address.
        "ld.global.u32 %r6, [%rd5]; and.b32 %r6, %r6, 255; mul.wide.u32 %rd8, %r6, 4; add.u64 %rd8, %rd2, %rd8; ld.global.u32 %r7, [%rd8]; \
         ld.const.u32 %r8, [table+8]; add.u32 %r7, %r7, %r8; st.global.u32 [%rd7], %r7; ret;",
        "ld.global.u32 %r6, [%rd5]; and.b32 %r6, %r6, 511; mul.wide.u32 %rd8, %r6, 4; add.u64 %rd8, %rd2, %rd8; ld.global.u32 %r7, [%rd8]; \
         st.global.u32 [%rd7], %r7; ret;",
    ];
    let mut faults = 0;
    for body in bodies {
        for block in [[64, 1, 1], [16, 4, 1], [8, 8, 1], [20, 3, 1]] {
            let body = body.replace(" %r2, %r2;", " %r2, %r5;");
            let case = Case { block, ..case(&body) };
            faults += usize::from(case.agree().is_err());
        }
    }
    assert!(faults > 15, "{faults} launches came to the faults that they are to come to");
}

#[test]
fn lanes_that_lie_close_together_touch_only_what_is_theirs() {
    let bodies = [
        // Every second word, to the last of the buffer, and beyond.
        "mul.wide.u32 %rd8, %r5, 8; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; ld.global.u32 %r6, [%rd9]; \
         ld.global.u32 %r7, [%rd9+4]; sub.u32 %r6, %r6, %r7; st.global.u32 [%rd10+4], %r6; ret;",
        "mul.wide.u32 %rd8, %r5, 8; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; ld.global.u32 %r6, [%rd9+8]; \
         st.global.u32 [%rd10], %r6; ret;",
        "mul.wide.u32 %rd8, %r5, 8; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; ld.global.u32 %r6, [%rd9]; \
         st.global.u32 [%rd10+-4], %r6; ret;",
        // Partners of a sorting network, in shared memory; in lanes of a predicate, of a branch, and in all.
        "mov.u64 %rd9, shared; mul.wide.u32 %rd8, %r2, 4; add.u64 %rd10, %rd9, %rd8; st.shared.u32 [%rd10], %r5; bar.sync 0; \
         xor.b32 %r6, %r2, 5; mul.wide.u32 %rd8, %r6, 4; add.u64 %rd11, %rd9, %rd8; ld.shared.u32 %r7, [%rd11]; \
         setp.gt.u32 %p1, %r6, %r2; bar.sync 0; @%p1 st.shared.u32 [%rd11], %r1; bar.sync 0; \
         ld.shared.u32 %r8, [%rd10]; add.u32 %r8, %r8, %r7; st.global.u32 [%rd7], %r8; ret;",
        "mov.u64 %rd9, shared; mul.wide.u32 %rd8, %r2, 4; add.u64 %rd10, %rd9, %rd8; st.shared.u32 [%rd10], %r5; bar.sync 0; \
         xor.b32 %r6, %r2, 6; mul.wide.u32 %rd8, %r6, 4; add.u64 %rd11, %rd9, %rd8; setp.le.u32 %p1, %r6, %r2; @%p1 bra Y; \
         ld.shared.u32 %r7, [%rd10]; ld.shared.u32 %r8, [%rd11]; st.shared.u32 [%rd10], %r8; st.shared.u32 [%rd11], %r7; \
         Y: bar.sync 0; ld.shared.u32 %r8, [%rd10]; st.global.u32 [%rd7], %r8; ret;",
        "mov.u64 %rd9, shared; shl.b32 %r6, %r2, 1; and.b32 %r7, %r2, 3; sub.u32 %r6, %r6, %r7; mul.wide.u32 %rd8, %r6, 4; \
         add.u64 %rd10, %rd9, %rd8; st.shared.u32 [%rd10], %r5; st.shared.u32 [%rd10+16], %r2; bar.sync 0; \
         mul.wide.u32 %rd8, %r2, 4; add.u64 %rd10, %rd9, %rd8; ld.shared.u32 %r7, [%rd10]; st.global.u32 [%rd7], %r7; ret;",
        // Beyond what there is of shared memory, in lanes that run or not.
        "mov.u64 %rd9, shared; xor.b32 %r6, %r2, 3; mul.wide.u32 %rd8, %r6, 4; add.u64 %rd10, %rd9, %rd8; \
         setp.gt.u32 %p1, %r2, %r1; @%p1 bra X; st.shared.u32 [%rd10+3840], %r5; X: ret;",
        "mov.u64 %rd9, shared; xor.b32 %r6, %r2, 3; mul.wide.u32 %rd8, %r6, 4; add.u64 %rd10, %rd9, %rd8; \
         setp.gt.u32 %p1, %r6, 14; @%p1 bra X; st.shared.u32 [%rd10+4032], %r5; ld.shared.u32 %r7, [%rd10+4032]; \
         st.global.u32 [%rd7], %r7; X: ret;",
        // Backwards; a byte of three; halves, doubles and pairs with gaps; all lanes of four at one place.
        "xor.b32 %r6, %r5, 31; mul.wide.u32 %rd8, %r6, 4; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; \
         ld.global.u32 %r7, [%rd9]; add.u32 %r7, %r7, %r2; st.global.u32 [%rd10], %r7; ret;",
        "mul.wide.u32 %rd8, %r5, 3; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; ld.global.s8 %r6, [%rd9+1]; \
         ld.global.u8 %r7, [%rd9+2]; add.u32 %r6, %r6, %r7; st.global.u8 [%rd10+1], %r6; ret;",
        "mul.wide.u32 %rd8, %r5, 6; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; ld.global.u16 %h1, [%rd9+4]; \
         setp.lt.u32 %p1, %r1, %r5; @%p1 bra X; st.global.u16 [%rd10+2], %h1; X: ret;",
        "setp.ge.u32 %p1, %r5, 61; @%p1 bra X; mul.wide.u32 %rd8, %r5, 16; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; \
         ld.global.f64 %fd1, [%rd9+8]; add.f64 %fd1, %fd1, %fd1; st.global.f64 [%rd10], %fd1; X: ret;",
        "mul.wide.u32 %rd8, %r2, 16; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; \
         ld.global.v2.u32 {%r6, %r7}, [%rd9+8]; st.global.v2.u32 [%rd10], {%r7, %r6}; ret;",
        "shr.u32 %r6, %r5, 2; mul.wide.u32 %rd8, %r6, 8; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; \
         ld.global.u32 %r7, [%rd9+4]; st.global.u32 [%rd7], %r7; bar.sync 0; st.global.u32 [%rd10], %r5; ret;",
    ];
    let mut faults = 0;
    for body in bodies {
        for block in [[64, 1, 1], [16, 4, 1], [20, 3, 1]] {
            // Threads that share `%tid.x` exchange the same cells without a barrier: warps must run in order.
            let team = (block[1] > 1).then_some(1);
            let case = Case { block, team, ..case(body) };
            faults += usize::from(case.agree().is_err());
        }
    }
    assert!(faults > 2, "{faults} launches came to the faults that they are to come to");
}

/// Where the lanes of the atomic tests point: code that makes `%rd8` of the base `%rd9`; and which take part.
const PLACES: [&str; 5] = [
    "mov.u64 %rd8, %rd9;",
    "mul.wide.u32 %rd10, %r2, 8; add.u64 %rd8, %rd9, %rd10;",
    "mul.lo.u32 %r20, %r2, 5; and.b32 %r20, %r20, 7; mul.wide.u32 %rd10, %r20, 8; add.u64 %rd8, %rd9, %rd10;",
    // One address that only shows when it runs.
    "and.b32 %r20, %r30, 0; mul.wide.u32 %rd10, %r20, 8; add.u64 %rd8, %rd9, %rd10; add.u64 %rd8, %rd8, 16;",
    "and.b32 %r20, %r30, 56; cvt.u64.u32 %rd10, %r20; add.u64 %rd8, %rd9, %rd10;",
];
const LANES: [(&str, &str); 4] = [
    ("", ""),
    ("", "@%p7 "),
    ("setp.gt.u32 %p8, %r2, 18; @%p8 bra X; ", ""),
    ("setp.eq.u32 %p8, %r30, 3; @%p8 bra X; ", "@!%p7 "),
];

#[test]
fn atomic_operations_leave_the_same_memory_and_give_the_same_old_values() {
    let forms = [
        "add.u32",
        "add.s32",
        "min.u32",
        "max.u32",
        "min.s32",
        "max.s32",
        "and.b32",
        "or.b32",
        "xor.b32",
        "exch.b32",
        "inc.u32",
        "dec.u32",
        "cas.b32",
        "add.f32",
        "add.u64",
        "min.u64",
        "max.s64",
        "and.b64",
        "or.b64",
        "xor.b64",
        "exch.b64",
        "cas.b64",
        "add.f64",
        "add.noftz.f16x2",
    ];
    for (number, form) in forms.into_iter().enumerate() {
        let wide = form.ends_with("64");
        let (value, old, store) =
            if wide { ("%rd12", "%rd14", "st.global.u64") } else { ("%r31", "%r33", "st.global.u32") };
        let third = match form.starts_with("cas") {
            true if wide => ", %rd13",
            true => ", %r32",
            false => "",
        };
        let mut body = String::new();
        // Values with NaN, subnormals and small numbers among them; compared with themselves now and then.
        let start = "ld.global.u32 %r30, [%rd5]; ld.global.u32 %r31, [%rd6]; and.b32 %r32, %r31, 3; cvt.u64.u32 %rd12, %r31; \
                     cvt.u64.u32 %rd13, %r32; shl.b64 %rd15, %rd12, 32; or.b64 %rd12, %rd12, %rd15; and.b32 %r21, %r30, 1; \
                     setp.eq.u32 %p7, %r21, 1; mul.wide.u32 %rd16, %r5, 8; add.u64 %rd16, %rd3, %rd16; mov.u64 %rd14, 5; mov.u32 %r33, 5;";
        for space in ["global", "shared"] {
            // Each form in half of the places of each memory, each place with every operation.
            let odd = usize::from(space == "shared");
            for (at, place) in PLACES.iter().enumerate().filter(|(at, _)| (at + number) % 2 == odd) {
                let (lanes, guard) = LANES[(at + form.len()) % 4];
                let base = if space == "global" {
                    "add.u64 %rd9, %rd2, 256;".to_owned()
                } else {
                    "mov.u64 %rd9, shared; mul.wide.u32 %rd17, %r2, 8; add.u64 %rd18, %rd9, %rd17; \
                     st.shared.u32 [%rd18], %r31; st.shared.u32 [%rd18+4], %r30; bar.sync 0;"
                        .to_owned()
                };
                let orders: &[&str] = if matches!(form, "add.u32" | "cas.b64") {
                    &[".relaxed.gpu", ".acq_rel.gpu", ""]
                } else {
                    &[""]
                };
                for ordered in orders {
                    let red = !form.starts_with("exch") && !form.starts_with("cas");
                    let atom = format!("{guard}atom{ordered}.{space}.{form} {old}, [%rd8], {value}{third};");
                    let red = match (red, *ordered) {
                        (true, "" | ".relaxed.gpu") => {
                            format!("{guard}red{ordered}.{space}.{form} [%rd8+8], {value};")
                        }
                        _ => String::new(),
                    };
                    let mut small = odd_floats();
                    small.iter_mut().step_by(5).for_each(|value| *value %= 4);
                    // A coarse warp executes the first of two updates for all lanes; one alone is in order.
                    let ways = [(Some(1), red.as_str(), "bar.warp.sync -1;"), (None, "", "bar.sync 0;")];
                    for (team, red, end) in ways {
                        body.clear();
                        body.push_str(&format!(
                        "{start} {base} {lanes}{place} {atom} {red} {store} [%rd16], {old}; X: {end} \
                         mov.u64 %rd9, shared; mul.wide.u32 %rd17, %r2, 8; add.u64 %rd18, %rd9, %rd17; ld.shared.u64 %rd19, [%rd18]; \
                         ld.global.u64 %rd20, [%rd16]; mad.lo.u64 %rd20, %rd19, 3, %rd20; st.global.u64 [%rd16], %rd20; ret;"
                    ));
                        let buffers =
                            [(0..256).map(|i: u32| i * 11 % 64).collect(), small.clone(), vec![0; 256]];
                        let case = Case { buffers, grid: 1, team, ..case(&body) };
                        case.agree().unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn atomic_operations_fault_where_they_are_not_allowed() {
    let bodies = [
        "red.global.add.u32 [%rd5+768], 1; ret;",
        "mul.wide.u32 %rd8, %r2, 100; add.u64 %rd8, %rd1, %rd8; red.global.add.u32 [%rd8], 1; ret;",
        "atom.global.add.u32 %r6, [%rd5+2], 1; ret;",
        "mov.u64 %rd8, shared; red.shared.add.u64 [%rd8+4096], 1; ret;",
        "mov.u64 %rd8, table; cvta.const.u64 %rd8, %rd8; red.add.u32 [%rd8], 1; ret;",
        "ld.global.u32 %r6, [%rd5]; cvt.u64.u32 %rd8, %r6; atom.shared.exch.b32 %r7, [%rd8], 1; ret;",
    ];
    for body in bodies {
        assert!(case(body).agree().is_err(), "{body}");
    }
}

#[test]
fn loads_and_stores_that_are_ordered_are_the_same() {
    let body = "ld.volatile.global.u32 %r6, [%rd5]; ld.relaxed.gpu.global.u32 %r7, [%rd6]; ld.acquire.sys.global.u32 %r8, [%rd1+8]; \
                add.u32 %r6, %r6, %r7; membar.gl; fence.acq_rel.gpu; fence.sc.cta; st.release.gpu.global.u32 [%rd7], %r6; \
                st.volatile.global.u32 [%rd3], %r8; add.u64 %rd8, %rd7, 512; st.relaxed.cta.global.u32 [%rd8], %r8; ret;";
    case(body).agree().unwrap();
}

#[test]
fn addresses_that_are_computed_in_each_lane_reach_what_they_mean() {
    // A number from memory in `%r6`; the address of an element in `%rd8`, in many ways.
    let ways = [
        "mul.wide.u32 %rd8, %r6, 4; add.u64 %rd8, %rd2, %rd8;",
        "mul.wide.s32 %rd8, %r6, 4; add.u64 %rd8, %rd8, %rd2;",
        "mad.wide.u32 %rd8, %r6, 4, %rd2;",
        "cvt.u64.u32 %rd8, %r6; shl.b64 %rd8, %rd8, 2; add.s64 %rd8, %rd2, %rd8;",
        "cvt.s64.s32 %rd8, %r6; mul.lo.s64 %rd8, %rd8, 4; add.s64 %rd8, %rd8, %rd2; add.s64 %rd8, %rd8, 8; sub.s64 %rd8, %rd8, 8;",
        "cvt.s64.s32 %rd8, %r6; shl.b64 %rd8, %rd8, 3; add.s64 %rd8, %rd2, %rd8;",
        "cvt.u64.u32 %rd8, %r6; mul.lo.s64 %rd8, %rd8, 12; add.s64 %rd8, %rd2, %rd8;",
        "mul.wide.u32 %rd8, %r6, 16; add.u64 %rd8, %rd2, %rd8; mov.b64 %rd9, %rd8; mov.b64 %rd8, %rd9;",
        "ld.global.u8 %rd8, [%rd5]; shl.b64 %rd8, %rd8, 2; add.s64 %rd8, %rd2, %rd8;",
        "ld.global.s16 %rd8, [%rd5]; and.b64 %rd8, %rd8, 63; shl.b64 %rd8, %rd8, 2; add.s64 %rd8, %rd2, %rd8;",
        "mul.wide.u32 %rd8, %r6, -4; add.u64 %rd8, %rd2, %rd8;",
        "mul.wide.s32 %rd8, %r6, -4; sub.u64 %rd8, %rd2, %rd8;",
    ];
    let uses = [
        "ld.global.u32 %r7, [%rd8]; st.global.u32 [%rd7], %r7; ret;",
        "setp.gt.u32 %p1, %r2, 37; @%p1 bra X; ld.global.u32 %r7, [%rd8+4]; st.global.u32 [%rd7], %r7; X: ret;",
        "@!%p2 ld.global.u8 %r7, [%rd8]; @!%p2 ld.global.s16 %r8, [%rd8+2]; add.u32 %r7, %r7, %r8; st.global.u32 [%rd7], %r7; ret;",
        "ld.global.v2.u32 {%r7, %r8}, [%rd8]; sub.u32 %r7, %r7, %r8; st.global.u32 [%rd7], %r7; ret;",
        "st.global.u32 [%rd8], %r5; ret;",
        "sub.u64 %rd8, %rd8, %rd2; mov.u64 %rd9, shared; add.u64 %rd8, %rd8, %rd9; st.shared.u32 [%rd8], %r5; bar.warp.sync -1; \
         ld.shared.u32 %r7, [%rd8]; st.global.u32 [%rd7], %r7; ret;",
        "cvta.global.u64 %rd8, %rd8; ld.u32 %r7, [%rd8]; st.global.u32 [%rd7], %r7; ret;",
    ];
    // Small numbers, also such that lead astray here and there, or are negative.
    let numbers: [fn(u32) -> u32; 4] = [
        |i| i * 7 % 64,
        |i| (i * 7 % 64) & !1,
        |i| if i == 77 { 4000 } else { i % 50 },
        |i| if i == 90 { -3i32 as u32 } else { i % 9 },
    ];
    let (mut well, mut faults) = (0, 0);
    for (at, way) in ways.iter().enumerate() {
        for (number, then) in uses.iter().enumerate() {
            let f = numbers[(at + number) % numbers.len()];
            let body = format!(
                "ld.global.u32 %r6, [%rd5]; setp.gt.u32 %p2, %r6, 40; mov.u32 %r7, 1; mov.u32 %r8, 2; {way} {then}"
            );
            let filled = (0..256).map(f).collect();
            let buffers =
                [filled, (0..256).map(|i: u32| i.wrapping_mul(0x0101_0307)).collect(), vec![0; 256]];
            match (Case { buffers, ..case(&body) }).agree() {
                Ok(_) => well += 1,
                Err(_) => faults += 1,
            }
        }
    }
    assert!(well > 40 && faults > 8, "{well} went well, {faults} did not");
}

#[test]
fn bytes_and_halves_that_lie_apart_are_gathered() {
    let bodies = [
        "ld.global.u8 %r6, [%rd5]; ld.global.s8 %r7, [%rd5+3]; add.u32 %r6, %r6, %r7; st.global.u32 [%rd7], %r6; ret;",
        "ld.global.u16 %r6, [%rd5+2]; ld.global.s16 %r7, [%rd5]; add.u32 %r6, %r6, %r7; st.global.u32 [%rd7], %r6; ret;",
        "setp.gt.u32 %p1, %r2, 40; @%p1 bra X; ld.global.u8 %r6, [%rd5+1]; st.global.u32 [%rd7], %r6; st.global.u8 [%rd7+1], %r5; X: ret;",
        "ld.global.u8 %r6, [%rd5+512]; ld.global.u8 %r7, [%rd5+515]; st.global.u8 [%rd7+2], %r7; ret;",
        "shl.b64 %rd8, %rd4, 1; add.u64 %rd8, %rd1, %rd8; setp.gt.u32 %p1, %r5, 100; @%p1 bra X; ld.global.u32 %r6, [%rd8]; \
         ld.global.u32 %r7, [%rd8+4]; sub.u32 %r6, %r6, %r7; st.global.u32 [%rd7], %r6; X: ret;",
        "sub.u32 %r6, 127, %r5; mul.wide.u32 %rd8, %r6, 4; add.u64 %rd8, %rd1, %rd8; ld.global.u32 %r7, [%rd8]; st.global.u32 [%rd7], %r7; ret;",
    ];
    for body in bodies {
        for block in [[64, 1, 1], [16, 4, 1], [8, 8, 1]] {
            (Case { block, ..case(body) }).agree().ok();
        }
    }
}

#[test]
fn shuffles_take_from_lanes_that_are_computed() {
    let modes = ["up", "down", "bfly", "idx"];
    for mode in modes {
        let body = format!(
            "ld.global.u32 %r6, [%rd5]; ld.global.u32 %r7, [%rd6]; shfl.sync.{mode}.b32 %r8|%p1, %r6, %r7, 6175, -1; \
             selp.u32 %r9, %r8, 7, %p1; and.b32 %r10, %r2, 3; shfl.sync.{mode}.b32 %r11, %r9, %r10, 31, -1; \
             setp.gt.u32 %p2, %r2, 50; @%p2 bra X; and.b32 %r12, %r7, 15; activemask.b32 %r14; shfl.sync.{mode}.b32 %r13, %r11, %r12, 31, %r14; \
             add.u32 %r11, %r11, %r13; X: st.global.u32 [%rd7], %r11; ret;"
        );
        case(&body).agree().unwrap();
    }
}

#[test]
fn matches_find_the_same_lanes() {
    for ty in ["b32", "b64"] {
        let (value, more) = if ty == "b32" { ("%r6", "%r16") } else { ("%rd8", "%rd9") };
        let body = format!(
            "ld.global.u32 %r6, [%rd5]; and.b32 %r16, %r6, 5; mov.b64 %rd8, {{%r6, %r16}}; cvt.u64.u32 %rd9, %r16; \
             match.any.sync.{ty} %r7, {value}, -1; match.any.sync.{ty} %r8, {more}, -1; match.all.sync.{ty} %r9|%p1, {more}, -1; \
             match.any.sync.{ty} %r17, 9, -1; match.all.sync.{ty} %r18|%p2, 9, -1; xor.b32 %r7, %r7, %r8; add.u32 %r9, %r9, %r17; \
             selp.u32 %r10, 77, %r9, %p1; selp.u32 %r18, 5, %r18, %p2; mad.lo.u32 %r7, %r10, 3, %r7; add.u32 %r7, %r7, %r18; \
             setp.lt.u32 %p3, %r16, 4; @%p3 bra X; activemask.b32 %r14; match.any.sync.{ty} %r11, {more}, %r14; \
             match.all.sync.{ty} %r12|%p4, {more}, %r14; selp.u32 %r12, 1, %r12, %p4; mad.lo.u32 %r7, %r11, %r12, %r7; \
             X: st.global.u32 [%rd7], %r7; ret;"
        );
        for block in [[64, 1, 1], [50, 1, 1]] {
            let buffers = [(0..256).map(|i: u32| i * i % 23).collect(), vec![0; 256], vec![0; 256]];
            (Case { block, buffers, ..case(&body) }).agree().unwrap();
        }
    }
}

#[test]
fn bytes_are_gathered_from_anywhere_and_from_local_memory() {
    let bodies = [
        "and.b32 %r6, %r6, 1023; cvt.u64.u32 %rd8, %r6; add.u64 %rd8, %rd2, %rd8; ld.global.u8 %r7, [%rd8]; st.global.u32 [%rd7], %r7; ret;",
        "and.b32 %r6, %r6, 1022; cvt.u64.u32 %rd8, %r6; add.u64 %rd8, %rd2, %rd8; ld.global.s16 %r7, [%rd8]; st.global.u32 [%rd7], %r7; ret;",
        "and.b32 %r6, %r6, 1023; cvt.u64.u32 %rd8, %r6; add.u64 %rd8, %rd2, %rd8; setp.gt.u32 %p1, %r6, 600; mov.u32 %r7, 9; \
         @!%p1 ld.global.s8 %r7, [%rd8]; st.global.u32 [%rd7], %r7; ret;",
        "and.b32 %r6, %r6, 127; mul.wide.u32 %rd8, %r6, 7; add.u64 %rd8, %rd2, %rd8; ld.global.u8 %r7, [%rd8+1]; st.global.u32 [%rd7], %r7; ret;",
        "mul.wide.u32 %rd8, %r5, 3; add.u64 %rd8, %rd2, %rd8; ld.global.u8 %r7, [%rd8]; ld.global.u8 %r8, [%rd8+2]; sub.u32 %r7, %r7, %r8; \
         st.global.u32 [%rd7], %r7; ret;",
        "mul.wide.s32 %rd8, %r6, 3; add.u64 %rd8, %rd2, %rd8; ld.global.u8 %r7, [%rd8]; st.global.u32 [%rd7], %r7; ret;",
        ".local .align 8 .b8 own[64]; st.local.u32 [own+8], %r6; st.local.u8 [own+13], %r5; ld.local.u16 %r7, [own+12]; ld.local.u8 %r8, [own+9]; \
         ld.local.s16 %r9, [own+10]; add.u32 %r7, %r7, %r8; and.b32 %r10, %r6, 7; cvt.u64.u32 %rd8, %r10; mov.u64 %rd9, own; add.u64 %rd8, %rd8, %rd9; \
         st.local.u8 [%rd8+8], %r7; ld.local.s8 %r11, [%rd8+9]; ld.local.u64 %rd10, [own+8]; cvt.u32.u64 %r12, %rd10; add.u32 %r9, %r9, %r11; \
         xor.b32 %r9, %r9, %r12; st.global.u32 [%rd7], %r9; ret;",
    ];
    for body in bodies {
        let body = format!("ld.global.u32 %r6, [%rd5]; {body}");
        (Case {
            buffers: [
                (0..256).map(|i: u32| i.wrapping_mul(0x0123_4567)).collect(),
                odd_floats(),
                vec![0; 256],
            ],
            ..case(&body)
        })
        .agree()
        .ok();
    }
}

#[test]
fn what_is_written_by_rows_and_read_by_columns_is_transposed() {
    // The element of thread (x, y) in `%r8`, its number by columns in `%r9`, its right neighbour's in `%r11`.
    let head = "mov.u32 %r6, %tid.y; mad.lo.u32 %r7, %r6, %r4, %r2; mul.wide.u32 %rd8, %r7, 4; add.u64 %rd9, %rd1, %rd8; \
                add.u64 %rd10, %rd3, %rd8; ld.global.u32 %r8, [%rd9]; mov.u64 %rd12, shared; add.u64 %rd13, %rd12, %rd8;";
    let ways = [
        (
            "st.shared.u32 [%rd11], %r8; bar.sync 0; ld.shared.u32 %r10, [%rd13]; st.global.u32 [%rd10], %r10; ret;",
            None,
        ),
        (
            "st.shared.u32 [%rd13], %r8; bar.sync 0; ld.shared.u32 %r10, [%rd11]; st.global.u32 [%rd10], %r10; ret;",
            None,
        ),
        (
            "st.shared.u32 [%rd11], %r8; bar.sync 0; add.u32 %r11, %r2, 1; rem.u32 %r11, %r11, %r4; mad.lo.u32 %r11, %r11, PITCH, %r6; \
             mul.wide.u32 %rd14, %r11, 4; add.u64 %rd14, %rd12, %rd14; ld.shared.u32 %r10, [%rd14]; ld.shared.u32 %r12, [%rd11]; \
             sub.u32 %r10, %r10, %r12; st.global.u32 [%rd10], %r10; ret;",
            Some([19, 24, 31]),
        ),
    ];
    let blocks =
        [[32, 8, 1], [16, 16, 1], [32, 4, 1], [32, 2, 1], [8, 8, 1], [16, 2, 1], [32, 3, 1], [8, 32, 1]];
    for block in blocks {
        for (way, pitches) in ways {
            for pitch in pitches.unwrap_or([block[1]; 3]).into_iter().filter(|pitch| *pitch >= block[1]) {
                for team in [None, Some(1), Some(2), Some(8)] {
                    let body = format!(
                        "{head} mad.lo.u32 %r9, %r2, PITCH, %r6; mul.wide.u32 %rd11, %r9, 4; add.u64 %rd11, %rd12, %rd11; {way}"
                    );
                    let body = body.replace("PITCH", &pitch.to_string());
                    let threads = block.iter().product::<u32>() as usize;
                    let done = (Case { block, grid: 1, team, ..case(&body) }).agree().unwrap();
                    if pitches.is_none() {
                        // Each element is there once.
                        let mut found = done[2][..threads].to_vec();
                        let mut all = done[0][..threads].to_vec();
                        found.sort_unstable();
                        all.sort_unstable();
                        assert_eq!(found, all);
                    }
                }
            }
        }
    }
    // Several lanes of a warp write to one place: the last one's stays.
    let body = format!(
        "{head} add.u32 %r9, %r2, %r6; mul.wide.u32 %rd11, %r9, 128; add.u64 %rd11, %rd12, %rd11; st.shared.u32 [%rd11], %r8; \
         bar.sync 0; ld.shared.u32 %r10, [%rd11]; st.global.u32 [%rd10], %r10; ret;"
    );
    (Case { block: [16, 2, 1], grid: 1, ..case(&body) }).agree().unwrap();
}

#[test]
fn records_of_each_lane_are_read_and_written_as_if_word_by_word() {
    // Each thread's record of `size` words in `a` and `c`: the words read and written, and code between.
    let start = |size: u32| {
        format!(
            "mul.lo.u32 %r6, %r5, {size}; mul.wide.u32 %rd8, %r6, 4; add.u64 %rd9, %rd1, %rd8; add.u64 %rd10, %rd3, %rd8; \
             mov.u64 %rd11, shared; mul.wide.u32 %rd12, %r2, 20; add.u64 %rd11, %rd11, %rd12;"
        )
    };
    let load = |at: u32| format!("ld.global.u32 %r{}, [%rd9+{}];", 10 + at % 20, 4 * at);
    let store = |at: u32| format!("st.global.u32 [%rd10+{}], %r{};", 4 * at, 10 + at % 20);
    let copy = |words: &[u32]| -> String {
        words.iter().map(|at| load(*at)).chain(words.iter().rev().map(|at| store(*at))).collect()
    };
    let mut bodies = Vec::new();
    for (size, words) in [
        (8, (0..8).collect::<Vec<u32>>()),
        (16, (0..16).collect()),
        (6, vec![5, 4, 3, 2, 1, 0]),
        (7, vec![0, 2, 3, 5, 6]),
        (9, vec![8, 1, 0, 7, 3, 2]),
        (21, (0..20).collect()),
        (24, vec![16, 17, 18, 19]),
    ] {
        bodies.push(format!("{} {} ret;", start(size), copy(&words)));
        // Some lanes only.
        bodies.push(format!(
            "{} and.b32 %r7, %r2, 3; setp.eq.u32 %p1, %r7, 1; @%p1 bra X; {} X: ret;",
            start(size),
            copy(&words)
        ));
    }
    // Records that overlap: of what several lanes write, the last stays; and a word that is written twice.
    bodies.push(format!(
        "{} {} {} {} ret;",
        start(5),
        load(0),
        load(9),
        (0..10).map(|at| format!("st.global.u32 [%rd10+{}], %r10;", 4 * at)).collect::<String>()
    ));
    bodies.push(format!("{} {} {} add.u32 %r12, %r10, 1; st.global.u32 [%rd10], %r10; st.global.u32 [%rd10+4], %r11; st.global.u32 [%rd10], %r12; ret;", start(8), load(0), load(1)));
    // Between loads, a store to the record by another and by the same register; between stores, a load.
    bodies.push(format!(
        "{} {} add.u32 %r12, %r10, 7; st.global.u32 [%rd9+4], %r12; {} st.global.u32 [%rd10], %r11; ret;",
        start(8),
        load(0),
        load(1)
    ));
    bodies.push(format!(
        "{} {} add.u64 %rd13, %rd9, 0; st.global.u32 [%rd13+4], %r5; {} {} {} ret;",
        start(8),
        load(0),
        load(1),
        store(0),
        store(1)
    ));
    bodies.push(format!("{} {} {} st.global.u32 [%rd10], %r10; ld.global.u32 %r12, [%rd10]; add.u32 %r12, %r12, 3; st.global.u32 [%rd10+4], %r12; ret;", start(8), load(0), load(1)));
    bodies.push(format!(
        "{} {} atom.global.add.u32 %r12, [%rd9+4], 5; {} {} {} ret;",
        start(8),
        load(0),
        load(1),
        store(0),
        store(1)
    ));
    // Words of 64 bits, words of both sizes, numbers that are extended, and shared memory across a barrier.
    bodies.push(format!("{} ld.global.u64 %rd14, [%rd9]; ld.global.u64 %rd15, [%rd9+8]; ld.global.u32 %r10, [%rd9+16]; ld.global.u32 %r11, [%rd9+20]; \
                         st.global.u64 [%rd10+8], %rd14; st.global.u64 [%rd10], %rd15; st.global.u32 [%rd10+20], %r10; st.global.u32 [%rd10+16], %r11; ret;", start(8)));
    bodies.push(format!("{} ld.global.s32 %rd14, [%rd9]; ld.global.u32 %rd15, [%rd9+4]; add.u64 %rd14, %rd14, %rd15; st.global.u64 [%rd10], %rd14; ret;", start(10)));
    bodies.push(format!("{} {} {} st.shared.u32 [%rd11], %r10; st.shared.u32 [%rd11+4], %r11; st.shared.u32 [%rd11+8], %r5; st.shared.u32 [%rd11+12], %r2; bar.sync 0; \
                         ld.shared.u32 %r12, [%rd11+12]; ld.shared.u32 %r13, [%rd11+8]; ld.shared.u32 %r14, [%rd11+4]; ld.shared.u32 %r15, [%rd11]; \
                         st.global.u32 [%rd10], %r12; st.global.u32 [%rd10+4], %r13; st.global.u32 [%rd10+8], %r14; st.global.u32 [%rd10+12], %r15; ret;", start(8), load(0), load(1)));
    for body in &bodies {
        let buffer = |seed: u32| -> Vec<u32> {
            (0..3100).map(|i: u32| (i ^ seed).wrapping_mul(0x9e37_79b9)).collect()
        };
        // Where records overlap, one warp comes after the other.
        let teams: &[Option<u32>] = if body.starts_with(&start(5)) { &[Some(1)] } else { &[None, Some(2)] };
        for team in teams.iter().copied() {
            let case = Case { buffers: [buffer(1), vec![0], buffer(3)], team, ..case(body) };
            case.agree().unwrap();
        }
        // The last records are not there.
        let case = Case {
            buffers: [buffer(1)[..600].to_vec(), vec![0], buffer(3)[..600].to_vec()],
            grid: 1,
            ..case(body)
        };
        let _same_everywhere = case.agree();
    }
}

#[test]
fn rows_that_overlap_are_read_as_if_one_by_one() {
    let load = |reg: u32, at: i32| format!("ld.global.u32 %r{reg}, [%rd5+{at}];");
    let sum = |regs: std::ops::Range<u32>| -> String {
        regs.map(|reg| format!("mad.lo.u32 %r9, %r9, 5, %r{reg};")).collect()
    };
    let start = "mov.u32 %r9, 1; add.u64 %rd5, %rd5, 400;";
    let all = |offsets: &[i32]| -> String { (10..).zip(offsets).map(|(reg, at)| load(reg, *at)).collect() };
    let mut bodies = Vec::new();
    for offsets in [
        vec![0, 4],
        vec![-4, 0, 4],
        vec![8, 4, 0, -4, -8],
        vec![-64, 0, 64],
        vec![0, 60, 64, 68, 132],
        vec![-400, -396, 4, 4, 8, 200],
    ] {
        let end = 10 + offsets.len() as u32;
        bodies.push(format!("{start} {} {} st.global.u32 [%rd7], %r9; ret;", all(&offsets), sum(10..end)));
        // In lanes that run alone, and in a loop.
        bodies.push(format!("{start} and.b32 %r7, %r2, 5; setp.eq.u32 %p1, %r7, 4; @%p1 bra X; {} {} st.global.u32 [%rd7], %r9; X: ret;", all(&offsets), sum(10..end)));
        bodies.push(format!("{start} mov.u32 %r7, 0; L: {} {} add.u64 %rd5, %rd5, 4; add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 5; @%p1 bra L; \
                             st.global.u32 [%rd7], %r9; ret;", all(&offsets), sum(10..end)));
    }
    // Stores in between, to the same rows; numbers that are extended; shared memory.
    bodies.push(format!(
        "{start} {} add.u32 %r20, %r10, 3; st.global.u32 [%rd5], %r20; {} {} st.global.u32 [%rd7], %r9; ret;",
        load(10, 0),
        load(11, 0),
        sum(10..12)
    ));
    bodies.push(format!("{start} ld.global.s32 %rd10, [%rd5]; ld.global.u32 %rd11, [%rd5+4]; ld.global.s32 %rd12, [%rd5+8]; add.u64 %rd10, %rd10, %rd11; \
                         xor.b64 %rd10, %rd10, %rd12; shr.u64 %rd10, %rd10, 7; cvt.u32.u64 %r9, %rd10; st.global.u32 [%rd7], %r9; ret;"));
    bodies.push(format!("{start} {} mov.u64 %rd11, shared; mul.wide.u32 %rd12, %r2, 4; add.u64 %rd11, %rd11, %rd12; st.shared.u32 [%rd11], %r10; bar.sync 0; \
                         ld.shared.u32 %r11, [%rd11]; ld.shared.u32 %r12, [%rd11+4]; ld.shared.u32 %r13, [%rd11+8]; {} st.global.u32 [%rd7], %r9; ret;", load(10, 0), sum(10..14)));
    for body in &bodies {
        let buffer = |seed: u32, words: u32| -> Vec<u32> {
            (0..words).map(|i| (i ^ seed).wrapping_mul(0x9e37_79b9)).collect()
        };
        // Of a block of two dimensions, too; racing warps one after another.
        for (block, team) in [([64, 1, 1], None), ([32, 2, 1], Some(2)), ([64, 1, 1], Some(1))] {
            if team != Some(1) && body.contains("st.global.u32 [%rd5]") {
                continue;
            }
            let case = Case { buffers: [buffer(1, 400), vec![0], buffer(3, 400)], block, team, ..case(body) };
            case.agree().unwrap();
        }
        // The last elements are not there.
        let case = Case { buffers: [buffer(1, 140), vec![0], buffer(3, 400)], grid: 1, ..case(body) };
        let _same_everywhere = case.agree();
    }
}

#[test]
fn values_come_through_barriers_changed_or_not() {
    // `%r6` counts iterations, `%r7` to `%r12` live across them, `%p9` varies, `%rd13`: its shared word.
    let head = "ld.global.u32 %r7, [%rd5]; ld.global.u32 %r8, [%rd6]; mov.u32 %r9, %r2; mov.u32 %r10, %r7; mov.u32 %r11, %r1; mov.u32 %r12, 5; \
                mov.u32 %r6, 0; and.b32 %r13, %r7, 4; setp.ne.u32 %p9, %r13, 0; mov.u64 %rd12, shared; mul.wide.u32 %rd13, %r2, 4; \
                add.u64 %rd13, %rd12, %rd13;";
    let loops = [
        // Two that change places.
        "L: mov.u32 %r13, %r7; mov.u32 %r7, %r8; mov.u32 %r8, %r13; bar.sync 0; add.u32 %r7, %r7, %r12;",
        // One that is set back to what it was.
        "L: mov.u32 %r13, %r7; add.u32 %r7, %r7, %r9; st.shared.u32 [%rd13], %r7; bar.sync 0; ld.shared.u32 %r14, [%rd13]; add.u32 %r8, %r8, %r14; \
         and.b32 %r15, %r6, 1; setp.eq.u32 %p1, %r15, 0; @%p1 mov.u32 %r7, %r10; bar.sync 0;",
        // Unchanged at one barrier, changed before the other.
        "L: bar.sync 0; mad.lo.u32 %r7, %r7, 3, %r9; add.u32 %r11, %r11, 7; bar.sync 0; mov.u32 %r10, %r7;",
        // A loop between barriers.
        "L: mov.u32 %r13, 0; M: add.u32 %r7, %r7, %r8; add.u32 %r13, %r13, 1; setp.lt.u32 %p1, %r13, 3; @%p1 bra M; bar.sync 0; xor.b32 %r8, %r8, %r7;",
        // Lanes apart.
        "L: @%p9 bra X; add.u32 %r7, %r7, %r12; bra Y; X: mov.u32 %r8, %r10; Y: bar.sync 0; @%p9 add.u32 %r10, %r10, 1;",
        // Another loop goes on with what the first has left.
        "L: add.u32 %r7, %r7, %r6; bar.sync 0; setp.lt.u32 %p1, %r6, 2; add.u32 %r12, %r12, 2; @%p1 bra N; \
         mov.u32 %r13, %r8; mov.u32 %r8, %r9; bar.sync 0; mov.u32 %r9, %r13; N:",
        // Some leave.
        "L: add.u32 %r8, %r8, %r7; setp.eq.u32 %p1, %r6, 2; and.pred %p1, %p1, %p9; @%p1 bra E; bar.sync 0; add.u32 %r9, %r9, 3;",
        // What is the same for all, or counts lanes.
        "L: add.u32 %r11, %r11, %r12; mad.lo.u32 %r9, %r6, 4, %r2; bar.sync 0; add.u32 %r9, %r9, %r11; setp.gt.u32 %p1, %r11, 120; @%p1 mov.u32 %r12, 1;",
        // A place that is taken while a copy of what was there lives on.
        "mov.u32 %r13, %r7; L: mov.u32 %r14, %r13; mov.u32 %r13, %r8; bar.sync 0; add.u32 %r8, %r8, %r14; mov.u32 %r13, %r14; bar.sync 0; \
         add.u32 %r7, %r7, %r13; not.b32 %r13, %r13;",
    ];
    for body in loops {
        for block in [[64, 1, 1], [96, 1, 1], [40, 1, 1], [32, 8, 1]] {
            for team in [None, Some(1), Some(2), Some(4)] {
                let body = format!(
                    "{head} {body} add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 5; @%p2 bra L; \
                     E: mad.lo.u32 %r7, %r7, 31, %r8; mad.lo.u32 %r7, %r7, 31, %r9; mad.lo.u32 %r7, %r7, 31, %r10; mad.lo.u32 %r7, %r7, 31, %r11; \
                     mad.lo.u32 %r7, %r7, 31, %r12; st.global.u32 [%rd7], %r7; ret;"
                );
                (Case { block, team, grid: 1, ..case(&body) }).agree().unwrap();
            }
        }
    }
}

#[test]
fn words_are_shifted_out_of_two() {
    // Words in `%r6` and `%r7`, and as 64-bit values in `%rd8` and `%rd9`; small and large numbers in `%r8`.
    let head = "ld.global.u32 %r6, [%rd5]; ld.global.u32 %r7, [%rd6]; cvt.u64.u32 %rd8, %r6; ld.global.b32 %rd9, [%rd6]; ld.global.u32 %r8, [%rd7];";
    let pairs = [
        "shl.b64 %rd10, %rd9, 32; or.b64 %rd10, %rd10, %rd8;",
        "shl.b64 %rd10, %rd9, 32; or.b64 %rd10, %rd8, %rd10; or.b64 %rd10, %rd10, %rd9;",
        "mov.b64 %rd10, {%r6, %r7};",
        "shl.b64 %rd10, %rd8, 32;",
        "mov.b64 %rd10, {%r7, %r6}; shl.b64 %rd10, %rd10, 32; or.b64 %rd10, %rd10, %rd8;",
        "cvt.u64.u32 %rd10, %r7;",
        "ld.global.s32 %rd10, [%rd6]; shl.b64 %rd10, %rd10, 32; cvt.s64.s32 %rd11, %r6; or.b64 %rd10, %rd10, %rd11;",
    ];
    let shifts = [
        "shr.u64 %rd11, %rd10, %r8;",
        "and.b32 %r9, %r8, 31; shr.u64 %rd11, %rd10, %r9;",
        "and.b32 %r9, %r8, 24; cvt.u64.u32 %rd12, %r9; cvt.u32.u64 %r9, %rd12; shr.b64 %rd11, %rd10, %r9;",
        "and.b32 %r9, %r8, 63; shr.u64 %rd11, %rd10, %r9;",
        "shr.u64 %rd11, %rd10, %r1;",
        "shr.u64 %rd11, %rd10, 8;",
        "shr.u64 %rd11, %rd10, 31;",
        "shr.u64 %rd11, %rd10, 32;",
        "shr.u64 %rd11, %rd10, 70;",
        "shr.s64 %rd11, %rd10, 12;",
        "and.b32 %r9, %r2, 31; shl.b32 %r9, %r9, 1; shr.u64 %rd11, %rd10, %r9;",
        "setp.gt.u32 %p1, %r8, 20; mov.b64 %rd11, %rd8; @%p1 shr.u64 %rd11, %rd10, 9;",
    ];
    let ends = [
        "cvt.u32.u64 %r10, %rd11; st.global.u32 [%rd7], %r10; ret;",
        "cvt.s32.u64 %r10, %rd11; cvt.u32.u64 %r11, %rd10; shr.u64 %rd11, %rd11, 32; cvt.u32.u64 %r12, %rd11; xor.b32 %r10, %r10, %r11; \
         sub.u32 %r10, %r10, %r12; st.global.u32 [%rd7], %r10; ret;",
        "setp.gt.u32 %p2, %r2, 20; @%p2 bra X; cvt.u32.u64 %r10, %rd11; st.global.u32 [%rd7], %r10; X: ret;",
    ];
    for pair in pairs {
        for shift in shifts {
            for end in ends {
                let body = format!("{head} {pair} {shift} {end}");
                let mut case = case(&body);
                case.buffers[2] =
                    (0..256).map(|i: u32| if i.is_multiple_of(17) { u32::MAX - i } else { i % 75 }).collect();
                case.n = 13;
                case.agree().unwrap();
            }
        }
    }
}
