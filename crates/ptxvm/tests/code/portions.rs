//! CTAs that native code runs in one call: each must behave as if it had been started alone.
//!
//! Expected values are computed here from thread and CTA numbers. One OS thread runs all CTAs, so that
//! batches are as large as possible.
#![cfg(feature = "jit")]

use ptxvm::{Arg, Cpu, Engine, ErrorKind, Launch, Options, Vm};

/// Threads of a CTA count on in `%g` over the grid, x fastest; `%t` is the number in the CTA, `%k` the CTA's,
/// `%at` the address of the word.
const START: &str = "
    .reg .pred %p<9>; .reg .b32 %r<30>, %t, %n, %g, %k, %x, %y, %z; .reg .b64 %rd<20>, %out, %at;
    mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z;
    mov.u32 %r1, %nctaid.y; mad.lo.u32 %k, %z, %r1, %y; mov.u32 %r1, %nctaid.x; mad.lo.u32 %k, %k, %r1, %x;
    mad.lo.u32 %g, %k, %n, %t; ld.param.u64 %out, [out]; mul.wide.u32 %rd1, %g, 4; add.u64 %at, %out, %rd1;
";

/// Words of all threads, or the trap, of a grid of 5 x 3 x 4 CTAs.
fn run(body: &str, block: u32, cpu: Cpu, team: Option<u32>) -> Option<(Vec<u32>, Option<String>)> {
    let text = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
         .shared .align 4 .b32 tile[1024];\n{START}{body}}}\n"
    );
    let vm = Vm::with(Options { cpu: Some(cpu), team, ..Options::default() }).expect("a device");
    let kernel = vm.load("portions.ptx", &text).and_then(|module| module.kernel("k")).expect("a kernel");
    let words = vm.zeros::<u32>((60 * block) as usize).expect("memory");
    let launch = Launch::new([5, 3, 4], [block, 1, 1]).threads(1).engine(Engine::Jit);
    let launch = launch.args(&kernel, &[Arg::buffer(&words)]).expect("one argument");
    let trap = match vm.launch(&kernel, &launch) {
        Ok(_) => None,
        Err(error) => match error.kind() {
            ErrorKind::Trap(trap, _) => Some(format!("{} {:?}", trap.kind.word(), trap.ctaid)),
            // A level that this machine lacks.
            ErrorKind::Machine(_) | ErrorKind::Caller(_) if cpu != Cpu::Baseline => return None,
            _ => panic!("{error}"),
        },
    };
    Some((words.read().expect("words"), trap))
}

/// Runs it on every level, in warps and in coarse warps.
fn everywhere(body: &str, block: u32, check: impl Fn(&[u32], Option<&str>)) {
    for cpu in [Cpu::Baseline, Cpu::Avx2, Cpu::Avx512] {
        for team in [None, Some(1), Some(2), Some(4)] {
            if let Some((words, trap)) = run(body, block, cpu, team) {
                check(&words, trap.as_deref());
            }
        }
    }
}

/// Runs it for several sizes; `expect`: what thread `t` of CTA `k` stores.
fn check(body: &str, expect: impl Fn(u32, u32, u32) -> u32) {
    for block in [32, 70, 128, 256] {
        everywhere(body, block, |words, trap| {
            assert_eq!(trap, None, "block {block}: {body}");
            for (g, word) in (0..).zip(words) {
                let (t, k) = (g % block, g / block);
                assert_eq!(*word, expect(t, k, block), "thread {t} of {block}, CTA {k}: {body}");
            }
        });
    }
}

#[test]
fn each_has_its_own_number() {
    let body = "shl.b32 %r2, %z, 8; add.u32 %r2, %r2, %y; shl.b32 %r2, %r2, 8; add.u32 %r2, %r2, %x; \
                st.global.u32 [%at], %r2; ret;";
    check(body, |_, k, _| ((k / 15) << 16) | ((k / 5 % 3) << 8) | (k % 5));
}

#[test]
fn shared_memory_is_zero_where_each_begins() {
    // What the one before left would be seen, in the thread's own word and behind a barrier in another one's.
    let body = "mov.u32 %r2, tile; shl.b32 %r3, %t, 2; add.u32 %r3, %r2, %r3; ld.shared.u32 %r4, [%r3]; \
                ld.shared.u32 %r5, [tile+4092]; add.u32 %r4, %r4, %r5; add.u32 %r6, %g, 1; st.shared.u32 [%r3], %r6; bar.sync 0; \
                xor.b32 %r7, %t, 1; shl.b32 %r7, %r7, 2; add.u32 %r7, %r2, %r7; ld.shared.u32 %r8, [%r7]; bar.sync 0; \
                st.shared.u32 [tile+4092], %r6; mad.lo.u32 %r8, %r4, 1000000, %r8; st.global.u32 [%at], %r8; ret;";
    check(body, |t, k, block| k * block + (t ^ 1) + 1);
}

#[test]
fn loops_end_turns_anywhere() {
    // More iterations than one call may execute, in the middle of a CTA and at its end.
    let body = "mov.u32 %r2, 0; mov.u32 %r3, 0; L: mad.lo.u32 %r2, %r2, 3, %g; add.u32 %r3, %r3, 1; \
                setp.lt.u32 %p1, %r3, 5000; @%p1 bra L; bar.sync 0; st.global.u32 [%at], %r2; ret;";
    // Each iteration multiplies by 3 and adds the thread's number, so the result is a multiple of the number.
    let multiple = (0..5000).fold(0u32, |sum, _| sum.wrapping_mul(3).wrapping_add(1));
    check(body, |t, k, block| multiple.wrapping_mul(k * block + t));
}

#[test]
fn lanes_that_exit_early_are_there_again_in_the_next() {
    let body = "and.b32 %r2, %x, 1; setp.eq.u32 %p1, %r2, 0; setp.lt.and.u32 %p2, %t, 20, %p1; @%p2 ret; \
                setp.gt.and.u32 %p3, %t, 63, %p1; @%p3 ret; bar.sync 0; add.u32 %r3, %g, 7; st.global.u32 [%at], %r3; ret;";
    check(body, |t, k, block| if k % 5 % 2 == 0 && !(20..64).contains(&t) { 0 } else { k * block + t + 7 });
}

#[test]
fn a_trap_names_the_cta_and_those_before_it_are_done() {
    // 52 = 2 + 5 * (1 + 3 * 3).
    let body = "st.global.u32 [%at], %k; bar.sync 0; setp.eq.u32 %p1, %k, 52; @!%p1 ret; \
                mov.u64 %rd2, 16; st.global.u32 [%rd2], %t; ret;";
    everywhere(body, 64, |words, trap| {
        let trap = trap.expect("a trap");
        assert!(trap.ends_with("[2, 1, 3]"), "{trap}");
        for (g, word) in (0..53 * 64).zip(words) {
            assert_eq!(*word, g / 64, "thread {g}");
        }
        assert!(words[53 * 64..].iter().all(|word| *word == 0), "nothing follows");
    });
}
