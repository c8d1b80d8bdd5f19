//! Accesses of 128 bits by racing threads: none is torn.
//!
//! Expected values are computed by plain arithmetic on the host.

use ptxvm::{Arg, Engine, Launch, Vm};

const ENGINES: &[Engine] =
    if cfg!(feature = "jit") { &[Engine::Interp, Engine::Jit] } else { &[Engine::Interp] };

/// Each thread adds 1 to the low half and 2^32 + 1 to the high half of one value, by `atom.cas`; between its
/// additions it looks at the value by a strong load, and counts the halves that do not belong together.
const SUM: &str = "
.version 8.4
.target sm_90
.address_size 64
.visible .entry run(.param .u64 value, .param .u64 torn)
{
    .reg .b128 %old, %new, %seen;
    .reg .b64 %at, %bad, %low, %high, %want;
    .reg .b32 %i;
    .reg .pred %p, %q, %r;
    ld.param.u64 %at, [value];
    ld.param.u64 %bad, [torn];
    mov.b32 %i, 0;
AGAIN:
    ld.relaxed.sys.global.b128 %old, [%at];
RETRY:
    mov.b128 {%low, %high}, %old;
    add.u64 %low, %low, 1;
    add.u64 %high, %high, 4294967297;
    mov.b128 %new, {%low, %high};
    atom.acq_rel.gpu.global.cas.b128 %seen, [%at], %old, %new;
    mov.b128 {%low, %high}, %seen;
    mul.lo.u64 %want, %low, 4294967297;
    setp.ne.u64 %p, %want, %high;
    @%p red.global.add.u64 [%bad], 1;
    mov.b128 {%want, _}, %old;
    setp.ne.u64 %q, %want, %low;
    mov.b128 %old, %seen;
    @%q bra RETRY;
    add.u32 %i, %i, 1;
    setp.lt.u32 %r, %i, 4;
    @%r bra AGAIN;
    ret;
}
";

// covers: new.atom.b128 new.ld.b128
#[test]
fn sums_of_128_bits_are_seen_whole() {
    for engine in ENGINES {
        let vm = Vm::new().expect("a machine");
        let module = vm.load("sum", SUM).expect("a module");
        let kernel = module.kernel("run").expect("a kernel");
        let (value, torn) = (vm.zeros::<u64>(2).expect("memory"), vm.zeros::<u64>(1).expect("memory"));
        let launch = Launch::new([8, 1, 1], [64, 1, 1])
            .args(&kernel, &[Arg::buffer(&value), Arg::buffer(&torn)])
            .expect("arguments")
            .threads(2)
            .engine(*engine);
        vm.launch(&kernel, &launch).expect("a launch");
        let count = 8 * 64 * 4;
        assert_eq!(value.read().expect("values"), [count, count * 0x1_0000_0001]);
        assert_eq!(torn.read().expect("a count"), [0]);
    }
}

/// What is stored in one register and read as halves elsewhere, in a function with a register of 128 bits as
/// parameter and result.
const CALL: &str = "
.version 8.3
.target sm_70
.address_size 64
.func (.reg .b128 %r) swap(.reg .b128 %x)
{
    .reg .b64 %a, %b;
    mov.b128 {%a, %b}, %x;
    mov.b128 %r, {%b, %a};
    ret;
}
.visible .entry run(.param .u64 values)
{
    .reg .b128 %q;
    .reg .b64 %at;
    ld.param.u64 %at, [values];
    ld.global.b128 %q, [%at];
    call.uni (%q), swap, (%q);
    st.global.b128 [%at], %q;
    ret;
}
";

#[test]
fn registers_of_128_bits_are_passed_and_returned() {
    for engine in ENGINES {
        let vm = Vm::new().expect("a machine");
        let module = vm.load("call", CALL).expect("a module");
        let kernel = module.kernel("run").expect("a kernel");
        let values = vm.buffer(&[7u64, 9]).expect("memory");
        let launch = Launch::new([1, 1, 1], [1, 1, 1]).engine(*engine);
        let launch = launch.args(&kernel, &[Arg::buffer(&values)]).expect("arguments");
        vm.launch(&kernel, &launch).expect("a launch");
        assert_eq!(values.read().expect("values"), [9, 7]);
    }
}

/// Each thread copies 64 bytes, half by two vectors of 256 bits and half by values of 128 bits, through
/// memory of its CTA as well.
const COPY: &str = "
.version 8.8
.target sm_100
.address_size 64
.shared .align 16 .b8 room[4096];
.visible .entry run(.param .u64 from, .param .u64 to)
{
    .reg .b128 %q, %s;
    .reg .b64 %a, %b, %off, %d<4>;
    .reg .b32 %t, %n, %w<8>, %m;
    ld.param.u64 %a, [from];
    ld.param.u64 %b, [to];
    mov.u32 %t, %tid.x;
    mov.u32 %n, %ctaid.x;
    mov.u32 %m, %ntid.x;
    mad.lo.u32 %n, %n, %m, %t;
    mul.wide.u32 %off, %n, 96;
    add.u64 %a, %a, %off;
    add.u64 %b, %b, %off;
    ld.global.v8.b32 {%w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7}, [%a];
    st.global.v8.b32 [%b], {%w7, %w6, %w5, %w4, %w3, %w2, %w1, %w0};
    ld.global.nc.v4.b64 {%d0, %d1, _, %d3}, [%a+32];
    st.global.v4.b64 [%b+32], {%d3, _, %d1, %d0};
    ld.global.b128 %q, [%a+64];
    shl.b32 %n, %t, 4;
    mov.u32 %m, room;
    add.u32 %m, %m, %n;
    st.shared.b128 [%m], %q;
    bar.sync 0;
    xor.b32 %m, %m, 16;
    ld.shared.b128 %s, [%m];
    st.global.b128 [%b+64], %s;
    st.global.b128 [%b+80], %q;
    ret;
}
";

// covers: new.ld.256 new.st.256 new.ld.b128 new.st.b128
#[test]
fn wide_copies_are_those_of_the_host() {
    let words: Vec<u64> = (0..12 * 256).map(|i| 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(i + 1)).collect();
    let mut want = vec![5u64; words.len()];
    for (at, (from, to)) in words.chunks(12).zip(want.chunks_mut(12)).enumerate() {
        for i in 0..4 {
            to[i] = from[3 - i].rotate_left(32);
        }
        (to[4], to[6], to[7]) = (from[7], from[5], from[4]);
        let other = 12 * (at ^ 1) + 8;
        to[8..10].copy_from_slice(&words[other..other + 2]);
        to[10..12].copy_from_slice(&from[8..10]);
    }
    for engine in ENGINES {
        let vm = Vm::new().expect("a machine");
        let module = vm.load("copy", COPY).expect("a module");
        let kernel = module.kernel("run").expect("a kernel");
        let (from, to) =
            (vm.buffer(&words).expect("memory"), vm.buffer(&vec![5u64; words.len()]).expect("memory"));
        let launch = Launch::new([4, 1, 1], [64, 1, 1]).engine(*engine);
        let launch = launch.args(&kernel, &[Arg::buffer(&from), Arg::buffer(&to)]).expect("arguments");
        vm.launch(&kernel, &launch).expect("a launch");
        assert_eq!(to.read().expect("values"), want, "{engine:?}");
    }
}
