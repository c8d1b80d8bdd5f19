//! Kernels that load their parameters through registers: at places that are known, at indices that all
//! threads share, at indices of each thread, and through generic addresses.
//!
//! Expected values are read from the parameter's bytes here.
#![cfg(feature = "jit")]

use crate::long_words::Case;

/// The bytes of the second parameter, which begins 8 bytes into the buffer.
fn bytes() -> Vec<u8> {
    (0..64_u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
}

/// The eight bytes at an offset in the parameter.
fn long(offset: usize) -> u64 {
    u64::from_le_bytes(bytes()[offset..offset + 8].try_into().expect("eight bytes"))
}

fn word(offset: usize) -> u64 {
    u64::from(u32::from_le_bytes(bytes()[offset..offset + 4].try_into().expect("four bytes")))
}

/// A kernel whose body puts a result of each thread into `%d9`. `%d1`: the address of the parameter, `%d2`:
/// the same as a generic address, `%r1`: the thread.
fn text(body: &str) -> String {
    format!(
        ".version 7.7\n.target sm_70\n.address_size 64
        .visible .entry k(.param .u64 out, .param .align 8 .b8 p[64]) {{
            .reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<9>; .reg .b64 %d<12>;
            mov.u32 %r1, %tid.x; mov.b64 %d1, p; cvta.param.u64 %d2, %d1; mov.u64 %d9, 0;
            {body}
            ld.param.u64 %d10, [out]; mul.wide.u32 %d11, %r1, 8; add.u64 %d10, %d10, %d11;
            st.global.u64 [%d10], %d9; ret;
        }}"
    )
}

fn case(body: &str) -> Case {
    Case { text: text(body), params: bytes() }
}

fn expect(body: &str, native: bool, expected: impl Fn(u32) -> u64) {
    case(body).expect(native, expected);
}

fn traps(body: &str, expected: &str) {
    case(body).traps(expected);
}

#[test]
fn members() {
    expect("ld.param.u64 %d9, [%d1+16];", true, |_| long(16));
    expect("add.s64 %d3, %d1, 24; ld.param.v2.u64 {%d4, %d5}, [%d3]; xor.b64 %d9, %d4, %d5;", true, |_| {
        long(24) ^ long(32)
    });
    expect("ld.u64 %d9, [%d2+16];", true, |_| long(16));
    expect("ld.param.s8 %h1, [%d1+5]; cvt.s64.s16 %d9, %h1;", true, |_| bytes()[5] as i8 as u64);
    // Only some lanes load.
    let some = "setp.lt.u32 %p1, %r1, 40; @%p1 ld.param.u64 %d9, [%d1+8];";
    expect(some, true, |thread| if thread < 40 { long(8) } else { 0 });
}

#[test]
fn indices_that_all_threads_share() {
    let sum = "mov.u32 %r2, 0;
        L: mul.wide.u32 %d3, %r2, 8; add.s64 %d4, BASE, %d3; ld.PARAM.u64 %d5, [%d4]; add.u64 %d9, %d9, %d5;
        add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 8; @%p1 bra L;";
    let total = (0..8).fold(0_u64, |sum, at| sum.wrapping_add(long(8 * at)));
    expect(&sum.replace("BASE", "%d1").replace("PARAM", "param"), true, |_| total);
    expect(&sum.replace("BASE", "%d2").replace(".PARAM", ""), true, |_| total);
}

#[test]
fn indices_of_each_thread() {
    for (start, ld) in [("%d1", "ld.param"), ("%d2", "ld")] {
        // Repeated rows, scattered bytes, and the elements of the first threads.
        let rows = format!("and.b32 %r2, %r1, 15; mul.wide.u32 %d3, %r2, 4; add.s64 %d4, {start}, %d3;");
        expect(&format!("{rows} {ld}.u32 %r3, [%d4]; cvt.u64.u32 %d9, %r3;"), true, |thread| {
            word(4 * (thread as usize % 16))
        });
        let mixed = format!(
            "mul.lo.u32 %r2, %r1, 37; and.b32 %r2, %r2, 63; cvt.u64.u32 %d3, %r2; add.s64 %d4, {start}, %d3;"
        );
        expect(&format!("{mixed} {ld}.u8 %h1, [%d4]; cvt.u64.u16 %d9, %h1;"), true, |thread| {
            bytes()[thread as usize * 37 % 64].into()
        });
        let first = format!(
            "setp.lt.u32 %p1, %r1, 7; mul.wide.u32 %d3, %r1, 8; add.s64 %d4, {start}, %d3; @!%p1 bra E;
            {ld}.u64 %d9, [%d4+8]; E:"
        );
        expect(&first, true, |thread| if thread < 7 { long(8 * thread as usize + 8) } else { 0 });
        let behind = "mul.wide.u32 %d3, %r1, 8; ";
        traps(
            &format!("{behind} add.s64 %d4, {start}, %d3; {ld}.u64 %d9, [%d4];"),
            "illegal_address [8, 0, 0]",
        );
    }
}

#[test]
fn loads_outside() {
    traps("ld.param.u64 %d9, [%d1+64];", "illegal_address [0, 0, 0]");
    traps("ld.param.u64 %d9, [%d1+4];", "misaligned [0, 0, 0]");
    traps("ld.u64 %d9, [%d2+64];", "illegal_address [0, 0, 0]");
    let odd = "and.b32 %r2, %r1, 1; cvt.u64.u32 %d3, %r2; add.s64 %d4, %d1, %d3; ld.param.u32 %r3, [%d4];";
    traps(odd, "misaligned [1, 0, 0]");
    traps("cvt.u64.u32 %d3, %r1; st.u64 [%d2], %d3;", "read_only [0, 0, 0]");
    traps(
        "mov.u64 %d4, %d1; ld.param.u64 %d5, [%d4]; add.u64 %d4, %d4, 128; ld.param.u64 %d9, [%d4];",
        "illegal_address [0, 0, 0]",
    );
}
