//! Kernels that call device functions: the functions are inlined, and give the same results and traps as
//! calls.
//!
//! Expected values are computed here by the same functions in Rust. With a sanitizer functions stay calls, so
//! that run is the reference for everything else.

use ptxvm::{Arg, Engine, ErrorKind, Launch, Options, Tool, Trap, Vm};

const THREADS: u32 = 64;

/// Functions that return in divergent code, have memory of their own, call others, and read what they did not
/// write.
const TEXT: &str = r"
.version 6.4
.target sm_70
.address_size 64
.func (.param .b32 y) collatz(.param .b32 x)
{
    .reg .b32 %r<4>; .reg .pred %p, %q;
    ld.param.b32 %r1, [x];
    mov.u32 %r2, 0;
LOOP:
    setp.le.u32 %p, %r1, 1;
    @%p bra DONE;
    add.u32 %r2, %r2, 1;
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %q, %r3, 0;
    @%q shr.u32 %r1, %r1, 1;
    @!%q mad.lo.u32 %r1, %r1, 3, 1;
    setp.gt.u32 %p, %r2, 20;
    st.param.b32 [y], 99;
    @%p ret;
    bra LOOP;
DONE:
    st.param.b32 [y], %r2;
    ret;
}
.func (.param .align 4 .b8 y[12]) rotated(.param .align 4 .b8 x[12], .reg .u32 by)
{
    .local .align 4 .b8 own[24];
    .reg .b32 %r<6>; .reg .b64 %d<3>;
    ld.param.b32 %r1, [x]; ld.param.b32 %r2, [x+4]; ld.param.b32 %r3, [x+8];
    st.local.b32 [own], %r1; st.local.b32 [own+4], %r2; st.local.b32 [own+8], %r3;
    st.local.b32 [own+12], %r1; st.local.b32 [own+16], %r2; st.local.b32 [own+20], %r3;
    rem.u32 %r4, by, 3;
    mov.u64 %d1, own; mul.wide.u32 %d2, %r4, 4; add.u64 %d1, %d1, %d2;
    ld.local.b32 %r1, [%d1]; ld.local.b32 %r2, [%d1+4]; ld.local.b32 %r3, [%d1+8];
    st.param.b32 [y], %r1; st.param.b32 [y+4], %r2; st.param.b32 [y+8], %r3;
    ret;
}
.func (.reg .u32 sum) both(.reg .u32 x, .reg .u32 few)
{
    .reg .b32 %r<6>; .reg .pred %p;
    setp.ne.u32 %p, few, 0;
    { .param .b32 a; .param .b32 c;
      st.param.b32 [a], x; call (c), collatz, (a); ld.param.b32 %r1, [c]; }
    { .param .align 4 .b8 v[12]; .param .align 4 .b8 w[12];
      st.param.b32 [v], %r1; st.param.b32 [v+4], 7; st.param.b32 [v+8], x;
      call (w), rotated, (v, x); ld.param.b32 %r2, [w]; ld.param.b32 %r3, [w+8]; }
    mad.lo.u32 sum, %r2, 1000, %r3;
    @%p add.u32 sum, sum, 1000000;
    ret;
}
.func (.reg .u32 y) unwritten(.reg .u32 x)
{
    .reg .b32 %r; .reg .pred %p, %q;
    setp.eq.u32 %p, x, 5;
    @%p mov.u32 %r, 41;
    @%p setp.eq.u32 %q, x, 5;
    selp.u32 y, 1, 0, %q;
    add.u32 y, y, %r;
    ret;
}
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<9>; .reg .b64 %d<4>; .reg .pred %p, %q;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p, %r1, 10; selp.u32 %r8, 1, 0, %p;
    mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0;
LOOP:
    add.u32 %r5, %r1, %r3;
    and.b32 %r6, %r5, 1; setp.eq.u32 %q, %r6, 0;
    @%q bra SKIP;
    call (%r6), both, (%r5, %r8);
    add.u32 %r2, %r2, %r6;
SKIP:
    call (%r6), unwritten, (%r3);
    add.u32 %r4, %r4, %r6;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %q, %r3, 9;
    @%q bra LOOP;
    ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 8; add.u64 %d1, %d1, %d2;
    st.global.v2.u32 [%d1], {%r2, %r4};
    ret;
}
";

fn collatz(mut x: u32) -> u32 {
    let mut steps = 0;
    while x > 1 {
        steps += 1;
        x = if x.is_multiple_of(2) { x / 2 } else { 3 * x + 1 };
        if steps > 20 {
            return 99;
        }
    }
    steps
}

fn expected(thread: u32) -> [u32; 2] {
    let mut sum = 0u32;
    for turn in 0..9 {
        let x = thread + turn;
        if !x.is_multiple_of(2) {
            let mut values = [collatz(x), 7, x];
            values.rotate_left(x as usize % 3);
            sum += values[0] * 1000 + values[2] + if thread < 10 { 1_000_000 } else { 0 };
        }
    }
    // Only the call with 5 writes what it reads.
    [sum, 42]
}

fn vms() -> impl Iterator<Item = (Vm, Engine)> {
    let sanitized = [(Options::tools(Tool::ALL), Engine::Interp)];
    let plain = [Engine::Interp, Engine::Jit].map(|engine| (Options::default(), engine));
    let plain = plain.into_iter().filter(|(_, engine)| cfg!(feature = "jit") || *engine == Engine::Interp);
    sanitized.into_iter().chain(plain).map(|(options, engine)| (Vm::with(options).expect("a device"), engine))
}

#[test]
fn inlined_functions_give_the_results_of_calls() {
    for (vm, engine) in vms() {
        let module = vm.load("inlined.ptx", TEXT).unwrap_or_else(|error| panic!("{error}"));
        let kernel = module.kernel("k").expect("the kernel");
        let out = vm.zeros::<u32>(2 * THREADS as usize).expect("memory");
        let launch = Launch::new([1, 1, 1], [THREADS, 1, 1]).engine(engine);
        let launch = launch.args(&kernel, &[Arg::buffer(&out)]).expect("arguments that fit");
        let stats = vm.launch(&kernel, &launch).unwrap_or_else(|error| panic!("{engine:?}: {error}"));
        let found = out.read().expect("the results");
        for thread in 0..THREADS {
            let at = 2 * thread as usize;
            assert_eq!(found[at..at + 2], expected(thread), "{engine:?}, thread {thread}");
        }
        if engine == Engine::Jit {
            // Calls would leave nearly all instructions to the interpreter.
            assert!(stats.ran.native_instructions * 10 > stats.warp_instructions * 9, "{stats:?}");
        }
    }
}

/// A kernel whose function traps, with registers of the same names in both.
const TRAPS: &str = ".version 6.4\n.target sm_70\n.address_size 64
.func store(.reg .u64 at)
{
    .reg .b32 %r<3>; .reg .b64 %d<3>;
    mov.u32 %r1, 0x77; mov.u64 %d1, at;
    st.global.u32 [%d1], %r1;
    ret;
}
.visible .entry k()
{
    .reg .b32 %r<3>; .reg .b64 %d<3>;
    mov.u32 %r1, 0x11; mov.u64 %d1, 0x10000;
    mov.u32 %r2, %tid.x; setp.ne.u32 %p, %r2, 3;
    @%p bra END;
    call store, (%d1);
END:
    ret;
}";

#[test]
fn a_trap_names_the_function_and_its_registers() {
    let text = TRAPS.replace("setp.ne", ".reg .pred %p; setp.ne");
    let trap = |(vm, engine): (Vm, Engine)| -> Box<Trap> {
        let module = vm.load("trap.ptx", &text).unwrap_or_else(|error| panic!("{error}"));
        let kernel = module.kernel("k").expect("the kernel");
        let launch =
            Launch::new([1, 1, 1], [32, 1, 1]).engine(engine).args(&kernel, &[]).expect("no arguments");
        match vm.launch(&kernel, &launch).map_err(ptxvm::Error::into_kind) {
            Err(ErrorKind::Trap(trap, _)) => trap,
            other => panic!("{engine:?}: {other:?}"),
        }
    };
    for (vm, engine) in vms().skip(1) {
        let trap = trap((vm, engine));
        assert_eq!((trap.function.as_str(), trap.kernel.as_str(), trap.line), ("store", "k", 8), "{trap}");
        assert_eq!(trap.tid, [3, 0, 0]);
        let [(d1, at), (r1, value)] = &trap.registers[..] else { panic!("{trap}") };
        assert_eq!((d1.as_str(), at.as_str()), ("%d1", "0x0000000000010000"));
        assert_eq!((r1.as_str(), value.as_str()), ("%r1", "0x00000077"));
    }
}
