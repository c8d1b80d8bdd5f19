//! Registers and local variables of module scope (PTX before 3.0): each thread has one copy, which kernels
//! and functions share. Expected values are sums that each thread accumulates in a loop of its own length.

use ptxvm::{Arg, Engine, Launch, Vm};

const TEXT: &str = "
.version 2.3
.target sm_20
.address_size 64
.reg .u32 count, unused<4>;
.reg .u64 total;
.reg .pred odd;
.reg .v2 .u32 pair;
.local .u8 before;
.local .align 8 .u32 slot[4];

// Names what it changes, and has a frame of its own.
.func step (.reg .u32 by)
{
    .local .u32 own[2];
    .reg .u64 w;
    .reg .u32 x;
    add.u32 count, count, by;
    cvt.u64.u32 w, count;
    add.u64 total, total, w;
    and.b32 x, count, 1;
    setp.eq.u32 odd, x, 1;
    mov.u32 pair.y, pair.x;
    mov.u32 pair.x, count;
    st.local.u32 [own], 77;
    st.local.u32 [own+4], 78;
    st.local.u32 [slot+8], count;
    ret;
}

// Names nothing itself.
.func outer ()
{
    call step, (1);
    ret;
}

.entry run (.param .u64 out, .param .u32 indirect)
{
    .local .u64 own;
    .reg .u64 o, a, f;
    .reg .u32 n, i, x, y;
    .reg .pred p, q;
proto: .callprototype _ (.reg .u32 _);
    mov.u64 f, step;
    mov.u32 n, %tid.x;
    mov.u32 i, 0;
    mov.u32 count, 0;
    mov.u64 total, 0;
    setp.ne.u32 odd, i, 0;
    st.local.u64 [own], 0x123456789;
    st.local.u8 [before], 5;
    st.local.u32 [slot+8], i;
    st.local.u32 [slot+12], n;
    mov.u32 pair.x, 0;
    mov.u32 pair.y, 0;
    ld.param.u32 x, [indirect];
    setp.ne.u32 q, x, 0;
loop:
    setp.ge.u32 p, i, n;
    @p bra done;
    @q call f, (1), proto;
    @!q call outer;
    add.u32 i, i, 1;
    bra loop;
done:
    ld.param.u64 o, [out];
    mul.wide.u32 a, n, 64;
    add.u64 o, o, a;
    st.global.u32 [o], count;
    st.global.u64 [o+8], total;
    selp.u32 x, 1, 0, odd;
    st.global.u32 [o+16], x;
    mov.u64 a, slot;
    ld.local.u32 x, [a+8];
    st.global.u32 [o+20], x;
    ld.local.u32 x, [slot+12];
    st.global.u32 [o+24], x;
    ld.local.u8 x, [before];
    st.global.u32 [o+28], x;
    ld.local.u64 a, [own];
    st.global.u64 [o+32], a;
    st.global.u32 [o+40], pair.y;
    cvta.local.u64 a, slot;
    ld.u32 x, [a+8];
    st.global.u32 [o+44], x;
    ret;
}
";

// covers: space.reg_module_scope
#[test]
fn functions_and_kernels_share_what_is_of_module_scope() {
    const THREADS: u32 = 70;
    let vm = Vm::new().expect("a device");
    let kernel = vm.load("shared", TEXT).and_then(|module| module.kernel("run")).expect("it loads");
    for (engine, indirect) in [Engine::Interp, Engine::Jit].into_iter().flat_map(|e| [(e, 0u32), (e, 1)]) {
        let out = vm.zeros::<u64>(THREADS as usize * 8).expect("memory");
        let args = [Arg::buffer(&out), Arg::from(indirect)];
        let launch =
            Launch::new([1, 1, 1], [THREADS, 1, 1]).engine(engine).args(&kernel, &args).expect("it fits");
        vm.launch(&kernel, &launch).expect("it runs");
        for (n, found) in out.read().expect("the results").chunks(8).enumerate() {
            let n = n as u64;
            let (total, before) = (n * (n + 1) / 2, n.saturating_sub(1));
            let wanted =
                [n, total, (n % 2) | (n << 32), n | (5 << 32), 0x1_2345_6789, before | (n << 32), 0, 0];
            assert_eq!(found, wanted, "thread {n}, {engine:?}, indirect {indirect}");
        }
    }
}
