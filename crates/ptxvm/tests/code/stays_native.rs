//! Kernels whose threads take different ways, and that are executed in native code as a whole: the same bytes
//! and the same counts of instructions as in the interpreter, which executes none of them.
#![cfg(feature = "jit")]

use crate::levels;

use ptxvm::{Arg, Engine, ErrorKind, Launch, Options, Report, Target, Vm};

/// A kernel `k(.u64 a, .u64 b, .u32 n)`: what stands before its body, and its body behind the registers.
struct Case<'a> {
    body: &'a str,
    block: [u32; 3],
    n: u32,
    team: Option<u32>,
}

/// The bytes of the second buffer, and the counts of instructions of warps and of threads.
type Done = (Vec<u64>, [u64; 2]);

impl Case<'_> {
    fn text(&self) -> String {
        format!(
            ".version 7.0\n.target sm_80\n.address_size 64\n\
             .visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)\n{{\n\
             .reg .pred %p<10>; .reg .b32 %r<40>; .reg .b64 %rd<40>;\n\
             .shared .align 16 .b8 shared[4096];\n\
             ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n];\n\
             mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r3, %r4, %r2;\n\
             mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ntid.y; mul.lo.u32 %r7, %r7, %r4; mad.lo.u32 %r8, %r6, %r7, %r5;\n\
             mul.wide.u32 %rd4, %r8, 4; add.u64 %rd5, %rd1, %rd4; mul.wide.u32 %rd6, %r8, 8; add.u64 %rd7, %rd2, %rd6;\n\
             mov.u64 %rd8, 0;\n{}\n}}\n",
            self.body
        )
    }

    fn run(&self, engine: Engine, target: Option<Target>) -> Result<(Done, Report), String> {
        let vm = Vm::with(Options { target, team: self.team, cache: levels::cache(), ..Options::default() })
            .expect("this is given");
        let module = vm.load("ways.ptx", &self.text()).unwrap_or_else(|error| panic!("{error}"));
        let kernel = module.kernel("k").expect("the kernel");
        let count = 3 * self.block.iter().product::<u32>();
        let data: Vec<u32> = (0..count).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        let a = vm.buffer(&data).expect("memory");
        let b = vm.zeros::<u64>(count as usize).expect("memory");
        let args = [Arg::buffer(&a), Arg::buffer(&b), Arg::from(self.n)];
        let launch = Launch::new([3, 1, 1], self.block).threads(1).engine(engine);
        let launch = launch.args(&kernel, &args).expect("arguments that fit");
        match vm.launch(&kernel, &launch) {
            Ok(report) => {
                let counts = [report.warp_instructions, report.thread_instructions];
                Ok(((b.read().expect("the results"), counts), report))
            }
            Err(error) => match error.kind() {
                ErrorKind::Trap(trap, _) => {
                    Err(format!("{} line {} at {:?}", trap.kind.word(), trap.line, trap.tid))
                }
                _ => panic!("{error}"),
            },
        }
    }

    /// Runs it everywhere. `native`: whether native code executes all of it.
    fn agree(&self, native: bool) {
        let expected = self.run(Engine::Interp, None);
        let expected = expected.map(|(done, _)| done);
        for target in levels::of(&format!("{}{:?}{:?}", self.text(), self.block, self.team)) {
            let found = self.run(Engine::Jit, Some(target));
            let what = format!("{target} {:?} {:?}\n{}", self.block, self.team, self.text());
            if let Ok((_, report)) = &found
                && native
            {
                assert_eq!(report.ran.native_instructions, report.warp_instructions, "{what}");
            }
            assert_eq!(found.map(|(done, _)| done), expected, "{what}");
        }
    }
}

const SHAPES: [[u32; 3]; 4] = [[64, 1, 1], [16, 8, 1], [50, 1, 1], [32, 1, 1]];

fn everywhere(body: &str, n: u32, native: bool) {
    for block in SHAPES {
        for team in [Some(1), None] {
            Case { body, block, n, team }.agree(native);
        }
    }
}

/// A branch by an index in `%r10`: each arm changes `%r9` in its own way.
const ARMS: &str = "T: .branchtargets L0, L1, L2, L1, L3;\n\
     brx.idx %r10, T;\n\
     L0: add.u32 %r9, %r9, 100; bra J;\n\
     L1: mul.lo.u32 %r9, %r9, 3; bra J;\n\
     L2: xor.b32 %r9, %r9, 0x55;\n\
     L3: add.u32 %r9, %r9, 7;\n\
     J:\n";

#[test]
fn lanes_take_different_arms_of_an_indirect_branch() {
    let store = "cvt.u64.u32 %rd8, %r9; st.global.u64 [%rd7], %rd8; ret;";
    // The index by the lane, from memory, the same in all lanes, and under a condition.
    let by_lane = format!("mov.u32 %r9, %r8; rem.u32 %r10, %r5, 5; {ARMS} {store}");
    let loaded = format!("ld.global.u32 %r9, [%rd5]; rem.u32 %r10, %r9, 5; {ARMS} {store}");
    let same = format!("mov.u32 %r9, %r8; rem.u32 %r10, %r6, 5; {ARMS} {store}");
    let masked = format!(
        "mov.u32 %r9, %r8; rem.u32 %r10, %r5, 5; setp.lt.u32 %p1, %r2, %r1; @%p1 bra J; {ARMS} {store}"
    );
    for body in [by_lane, loaded, same, masked] {
        everywhere(&body, 9, true);
    }
}

#[test]
fn lanes_go_back_by_an_indirect_branch() {
    // An interpreter of a small program for each thread: the index of the next arm is computed in the last
    // one.
    let body = "mov.u32 %r9, %r8; rem.u32 %r10, %r5, 3; mov.u32 %r11, 0;\n\
         T: .branchtargets L0, L1, L2, OUT;\n\
         L0: add.u32 %r9, %r9, 5; and.b32 %r10, %r9, 3; bra STEP;\n\
         L1: mul.lo.u32 %r9, %r9, 5; and.b32 %r10, %r9, 1; bra STEP;\n\
         L2: xor.b32 %r9, %r9, %r11; mov.u32 %r10, 1;\n\
         STEP: add.u32 %r11, %r11, 1; setp.gt.u32 %p1, %r11, %r1; selp.u32 %r10, 3, %r10, %p1;\n\
         brx.idx %r10, T;\n\
         OUT: cvt.u64.u32 %rd8, %r9; st.global.u64 [%rd7], %rd8; ret;";
    everywhere(body, 20, true);
}

#[test]
fn an_index_beyond_the_list_is_a_trap_in_its_lane() {
    let body = format!(
        "mov.u32 %r9, %r8; rem.u32 %r10, %r5, 5; setp.eq.u32 %p1, %r5, 29; selp.u32 %r10, 5, %r10, %p1; {ARMS} ret;"
    );
    everywhere(&body, 0, false);
}

#[test]
fn warps_wait_at_a_barrier_where_some_of_their_threads_have_returned() {
    let exchange = "mov.u32 %r20, shared; mad.lo.u32 %r21, %r5, 4, %r20; st.shared.u32 [%r21], %r8;\n\
         bar.sync 0; ld.shared.u32 %r22, [shared]; add.u32 %r9, %r22, %r8;\n";
    let store = "cvt.u64.u32 %rd8, %r9; st.global.u64 [%rd7], %rd8; ret;";
    // Threads return before the barrier, one by one between barriers of a loop, and by two ways.
    let before = format!("setp.ge.u32 %p1, %r5, %r1; @%p1 bra END; {exchange} {store} END: ret;");
    let in_loop = format!(
        "mov.u32 %r11, 0; mov.u32 %r9, 0;\n\
         L: setp.lt.u32 %p1, %r5, %r11; @%p1 bra END; add.u32 %r9, %r9, %r11; bar.sync 0;\n\
         add.u32 %r11, %r11, 1; setp.lt.u32 %p2, %r11, %r1; @%p2 bra L;\n {store} END: ret;"
    );
    let two_ways = format!(
        "setp.ge.u32 %p1, %r5, %r1; @%p1 bra END; and.b32 %r10, %r5, 7; setp.eq.u32 %p2, %r10, 3; @%p2 bra OUT;\n\
         {exchange} {store} END: ret; OUT: exit;"
    );
    for body in [before, in_loop, two_ways] {
        everywhere(&body, 20, true);
    }
}
