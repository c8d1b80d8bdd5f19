//! Accesses that name variables of the module: at places in a variable, which need no check, at its end, and
//! behind it.
//!
//! Expected values are the initial values of the text.
#![cfg(feature = "jit")]

use crate::long_words::{BEFORE, Case, THREADS};

/// A kernel whose body puts a result of each thread into `%d9`. `%r1`: the thread.
fn text(body: &str) -> String {
    format!(
        ".version 7.7\n.target sm_70\n.address_size 64
        .const .align 4 .b32 words[6] = {{10, 11, 12, 13, 14, 15}};
        .const .align 16 .b32 vectors[8] = {{20, 21, 22, 23, 24, 25, 26, 27}};
        .const .align 2 .b16 halves[3] = {{30, 31, 32}};
        .global .align 8 .b64 longs[2] = {{40, 41}};
        .visible .entry k(.param .u64 out, .param .u32 n) {{
            .reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<12>; .reg .b64 %d<12>;
            mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; ld.param.u64 %d1, [out]; mov.u64 %d9, 0;
            {body}
            mul.wide.u32 %d11, %r1, 8; add.u64 %d10, %d1, %d11; st.global.u64 [%d10], %d9; ret;
        }}"
    )
}

fn case(body: &str) -> Case {
    Case { text: text(body), params: THREADS.to_le_bytes().to_vec() }
}

fn expect(body: &str, expected: impl Fn(u32) -> u64) {
    case(body).expect(true, expected);
}

fn traps(body: &str, expected: &str) {
    case(body).traps(expected);
}

#[test]
fn places_in_a_variable() {
    expect("ld.const.u32 %r3, [words+20]; cvt.u64.u32 %d9, %r3;", |_| 15);
    expect("ld.const.v4.u32 {%r3, %r4, %r5, %r6}, [vectors+16]; cvt.u64.u32 %d9, %r5;", |_| 26);
    expect("ld.const.u16 %h1, [halves+4]; cvt.u64.u16 %d9, %h1;", |_| 32);
    expect("ld.global.u64 %d9, [longs+8]; add.u64 %d9, %d9, 1;", |_| 42);
    expect("setp.lt.u32 %p1, %r1, 9; @%p1 ld.const.u32 %r3, [words]; @%p1 cvt.u64.u32 %d9, %r3;", |thread| {
        if thread < 9 { 10 } else { 0 }
    });
    // What is written is read again.
    expect("mov.u64 %d3, 77; st.global.u64 [longs], %d3; ld.global.u64 %d9, [longs];", |_| 77);
}

/// An index that wraps around at a limit, with an offset in constant memory: a version of the block loads the
/// offset before its test.
#[test]
fn offsets_of_indices() {
    let body =
        "mul.wide.u32 %d2, %r1, 8; add.u64 %d3, %d1, %d2; cvt.u64.u32 %d4, %r1; st.global.u64 [%d3], %d4;
        bar.sync 0;
        ld.const.u32 %r3, [words+8]; ld.const.u32 %r4, [vectors+4];
        add.u32 %r5, %r1, %r3; rem.s32 %r6, %r5, %r2; mul.wide.s32 %d5, %r6, 8; add.s64 %d6, %d1, %d5;
        ld.global.u64 %d9, [%d6]; cvt.u64.u32 %d7, %r4; mad.lo.u64 %d9, %d9, 100, %d7;
        bar.sync 0;";
    expect(body, |thread| u64::from((thread + 12) % THREADS) * 100 + 21);
}

/// A load without a register for each element is the interpreter's, also if an address depends on it.
#[test]
fn elements_without_a_register() {
    let body = "ld.const.v2.u32 {_, %r3}, [vectors+8];
        add.u32 %r4, %r1, %r3; rem.s32 %r5, %r4, %r2; mul.wide.s32 %d2, %r5, 8; add.s64 %d3, %d1, %d2;
        ld.global.u64 %d9, [%d3]; cvt.u64.u32 %d4, %r3; add.u64 %d9, %d9, %d4; bar.sync 0;";
    case(body).expect(false, |_| BEFORE + 23);
}

/// A place behind a variable is in another one, or in none.
#[test]
fn places_behind_a_variable() {
    traps("ld.const.u32 %r3, [words+65536];", "illegal_address [0, 0, 0]");
    traps("ld.const.u32 %r3, [words+-65536];", "illegal_address [0, 0, 0]");
    traps("ld.const.u32 %r3, [words+2];", "misaligned [0, 0, 0]");
    traps("ld.global.u64 %d9, [longs+4];", "misaligned [0, 0, 0]");
    traps("st.global.u64 [longs+65536], %d9;", "illegal_address [0, 0, 0]");
}
