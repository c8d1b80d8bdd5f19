//! Loads, stores, moves, address conversions and atomic operations.

use super::{kernel, run, words};

/// The buffer `out` with bytes 0x80 + i, so that sign extension is visible.
fn pattern() -> Vec<u8> {
    (0..256u32).map(|i| (0x80 + i) as u8).collect()
}

#[test]
fn loads_extend_into_wider_registers_as_their_type_says() {
    // §9.4.1: the register is wider than the type; .u and .b are zero-extended, .s sign-extended.
    for (load, expected) in [
        ("ld.global.u8", 0x81u64),
        ("ld.global.b8", 0x81),
        ("ld.global.s8", 0xffff_ffff_ffff_ff81),
        ("ld.global.u16", 0x8281),
        ("ld.global.s16", 0xffff_ffff_ffff_8281),
        ("ld.global.b32", 0x8483_8281),
        ("ld.global.s32", 0xffff_ffff_8483_8281),
        ("ld.global.u64", 0x8887_8685_8483_8281),
    ] {
        let mut buffer = vec![0];
        buffer.extend(0x81..=0x88u8);
        let buffer: Vec<u8> = [buffer[1..].to_vec(), vec![0; 8]].concat();
        let body = format!("{load} %d1, [%d0];\nst.global.u64 [%d0+8], %d1;");
        let found = run(&kernel("", &body), &buffer);
        assert_eq!(found[8..], expected.to_le_bytes(), "{load}");
    }
    // Into 32- and 16-bit registers.
    let body = "ld.global.s8 %r1, [%d0];\nst.global.u32 [%d0+4], %r1;\nld.global.s8 %h1, [%d0];\nst.global.u16 [%d0+8], %h1;";
    let found = run(&kernel("", body), &[0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(found[4..10], [0x90, 0xff, 0xff, 0xff, 0x90, 0xff]);
}

#[test]
fn stores_write_the_low_bits() {
    let body = "mov.u64 %d1, 0x1122334455667788;\nst.global.u8 [%d0], %d1;\nst.global.u16 [%d0+2], %d1;\nst.global.u32 [%d0+4], %d1;";
    assert_eq!(run(&kernel("", body), &[0; 8]), [0x88, 0, 0x88, 0x77, 0x88, 0x77, 0x66, 0x55]);
}

#[test]
fn vectors_are_one_access_of_all_elements() {
    let body = "ld.global.v4.u8 {%h1, %h2, %h3, %h4}, [%d0];\nst.global.v2.u16 [%d0+4], {%h4, %h1};\n\
                ld.global.v2.s16 {%r1, _}, [%d0];\nst.global.u32 [%d0+8], %r1;\n\
                ld.global.v2.u64 {%d1, %d2}, [%d0+16];\nst.global.v2.b64 [%d0+32], {%d2, %d1};\n\
                ld.global.v4.f32 {%r1, %r2, %r3, %r4}, [%d0+16];\nst.global.v4.b32 [%d0+48], {%r4, %r3, %r2, %r1};";
    let start = pattern()[..64].to_vec();
    let found = run(&kernel("", body), &start);
    assert_eq!(found[4..8], [0x83, 0, 0x80, 0]);
    assert_eq!(found[8..12], [0x80, 0x81, 0xff, 0xff]);
    assert_eq!(found[32..40], start[24..32]);
    assert_eq!(found[40..48], start[16..24]);
    assert_eq!(found[48..52], start[28..32]);
    assert_eq!(found[60..64], start[16..20]);
}

#[test]
fn packing_puts_the_first_element_lowest() {
    let body = "mov.u32 %r1, 0x11223344;\nmov.u32 %r2, 0x55667788;\nmov.b64 %d1, {%r1, %r2};\nst.global.u64 [%d0], %d1;\n\
                mov.b64 {%r3, %r4}, %d1;\nst.global.u32 [%d0+8], %r4;\nmov.b32 {%h1, %h2}, %r1;\nst.global.u16 [%d0+12], %h2;\n\
                mov.b64 %d2, {%h1, %h2, %h2, %h1};\nst.global.u64 [%d0+16], %d2;\nmov.b64 {%h3, _, %h4, %h5}, %d1;\n\
                st.global.u16 [%d0+24], %h4;";
    let found = run(&kernel("", body), &[0; 32]);
    assert_eq!(found[..8], 0x5566_7788_1122_3344u64.to_le_bytes());
    assert_eq!(found[8..12], 0x5566_7788u32.to_le_bytes());
    assert_eq!(found[12..14], 0x1122u16.to_le_bytes());
    assert_eq!(found[16..24], 0x3344_1122_1122_3344u64.to_le_bytes());
    assert_eq!(found[24..26], 0x7788u16.to_le_bytes());
}

#[test]
fn every_space_is_reached_by_its_own_and_by_a_generic_address() {
    let declarations = ".const .u32 c = 7;\n.global .u32 g = 9;\n.shared .u32 s;";
    let body = ".local .u32 l;\nst.shared.u32 [s], 11;\nst.local.u32 [l], %r0;\n\
        ld.const.u32 %r1, [c];\nmov.u64 %d2, c;\ncvta.const.u64 %d3, %d2;\nld.u32 %r2, [%d3];\nadd.u32 %r1, %r1, %r2;\n\
        ld.global.u32 %r2, [g];\nadd.u32 %r1, %r1, %r2;\n\
        mov.u64 %d2, s;\ncvta.shared.u64 %d4, %d2;\nld.u32 %r2, [%d4];\nadd.u32 %r1, %r1, %r2;\n\
        mov.u64 %d2, l;\ncvta.local.u64 %d5, %d2;\nld.u32 %r2, [%d5];\nadd.u32 %r1, %r1, %r2;\n\
        cvta.to.shared.u64 %d6, %d4;\nld.shared.u32 %r2, [%d6];\nadd.u32 %r1, %r1, %r2;\n\
        cvta.to.local.u64 %d6, %d5;\nld.local.u32 %r2, [%d6];\nadd.u32 %r1, %r1, %r2;\n\
        isspacep.shared %p1, %d4;\n@%p1 add.u32 %r1, %r1, 1000;\nisspacep.shared %p1, %d5;\n@%p1 add.u32 %r1, %r1, 5000;\n\
        isspacep.local %p1, %d5;\n@%p1 add.u32 %r1, %r1, 1000;\nisspacep.global %p1, %d0;\n@%p1 add.u32 %r1, %r1, 1000;\n\
        isspacep.const %p1, %d3;\n@%p1 add.u32 %r1, %r1, 1000;\nst.global.u32 [%d1], %r1;";
    let found = words(declarations, body);
    let expected: Vec<u32> = (0..32).map(|tid| 7 + 7 + 9 + 11 + 11 + 2 * tid + 4000).collect();
    assert_eq!(found, expected);
}

#[test]
fn offsets_and_32_bit_addresses_wrap_in_the_register_s_width() {
    let body = "mov.u64 %d2, s;\nmov.u32 %r1, 8;\nst.shared.u32 [%r1+-4], %r0;\nmov.u32 %r2, 0xfffffffc;\nld.shared.u32 %r3, [%r2+8];\n\
                st.global.u32 [%d1], %r3;";
    assert_eq!(words(".shared .align 8 .b8 s[16];", body), [31; 32]);
}

#[test]
fn atomic_operations_give_the_old_value_in_the_order_of_lanes() {
    // Each lane adds its number + 1 to one word; lane i gets the sum of the lanes before it.
    let body = "add.u32 %r1, %r0, 1;\natom.shared.add.u32 %r2, [s], %r1;\nst.global.u32 [%d1], %r2;";
    let before: Vec<u32> = (0..32).map(|i| (1..=i).sum()).collect();
    let init = "\nst.shared.u32 [s], 0;\nbar.sync 0;\n";
    assert_eq!(words(".shared .align 8 .b8 s[8];", &format!("{init}{body}")), before);
}

/// Applies an operation to a word at `[%d0 + 128]` in global memory by thread 5 only; returns the old and the
/// new value.
fn one_atom(op: &str, bits: u32, start: u64, operands: &[u64]) -> (u64, u64) {
    let class = match bits {
        16 => "%h",
        32 => "%r",
        _ => "%d",
    };
    let mut body = "setp.ne.u32 %p1, %r0, 5;\n@%p1 exit;\n".to_owned();
    let mut list = String::new();
    for (i, operand) in operands.iter().enumerate() {
        body += &format!("mov.b{bits} {class}{}, {operand:#x};\n", 10 + i);
        list += &format!(", {class}{}", 10 + i);
    }
    body += &format!("atom.global.{op} {class}9, [%d0+128]{list};\nst.global.b{bits} [%d0+136], {class}9;");
    let mut buffer = vec![0; 144];
    buffer[128..136].copy_from_slice(&start.to_le_bytes());
    let found = run(&kernel("", &body), &buffer);
    let at = |from: usize| {
        let word = u64::from_le_bytes(found[from..from + 8].try_into().expect("eight bytes"));
        word & (u64::MAX >> (64 - bits))
    };
    (at(136), at(128))
}

#[test]
fn every_atomic_operation_of_every_type() {
    let f32 = |value: f32| u64::from(value.to_bits());
    let minus = |value: i64| value as u64;
    let cases: &[(&str, u32, u64, &[u64], u64)] = &[
        ("and.b32", 32, 0xff00_ff00, &[0x0ff0_0ff0], 0x0f00_0f00),
        ("or.b32", 32, 0xff00_0000, &[0xff], 0xff00_00ff),
        ("xor.b64", 64, u64::MAX, &[0xff], !0xff),
        ("and.b64", 64, u64::MAX, &[0xff00], 0xff00),
        ("or.b64", 64, 1 << 63, &[1], 1 << 63 | 1),
        ("exch.b32", 32, 1, &[2], 2),
        ("exch.b64", 64, 1, &[2], 2),
        ("cas.b32", 32, 5, &[5, 9], 9),
        ("cas.b32", 32, 5, &[6, 9], 5),
        ("cas.b64", 64, 5, &[5, 1 << 40], 1 << 40),
        ("relaxed.gpu.cas.b16", 16, 5, &[5, 0x8000], 0x8000),
        ("add.u32", 32, 0xffff_ffff, &[2], 1),
        ("add.s32", 32, 7, &[0xffff_fffe], 5),
        ("add.u64", 64, u64::MAX, &[2], 1),
        ("inc.u32", 32, 3, &[4], 4),
        ("inc.u32", 32, 4, &[4], 0),
        ("dec.u32", 32, 0, &[4], 4),
        ("dec.u32", 32, 5, &[4], 4),
        ("dec.u32", 32, 3, &[4], 2),
        ("min.s32", 32, 3, &[0xffff_ffff], 0xffff_ffff),
        ("min.u32", 32, 3, &[0xffff_ffff], 3),
        ("max.s32", 32, 3, &[0xffff_ffff], 3),
        ("max.u32", 32, 3, &[0xffff_ffff], 0xffff_ffff),
        ("min.s64", 64, 3, &[minus(-1)], minus(-1)),
        ("min.u64", 64, 3, &[minus(-1)], 3),
        ("max.s64", 64, 3, &[minus(-1)], 3),
        ("max.u64", 64, 3, &[minus(-1)], minus(-1)),
        ("add.f32", 32, f32(1.5), &[f32(2.25)], f32(3.75)),
        // Subnormals are flushed in global memory (A100).
        ("add.f32", 32, 1, &[1], 0),
        ("add.f64", 64, 1.5f64.to_bits(), &[2.25f64.to_bits()], 3.75f64.to_bits()),
        ("add.noftz.f16", 16, 0x3c00, &[0x4000], 0x4200),
        ("add.noftz.f16x2", 32, 0x3c00_4000, &[0x4000_3c00], 0x4200_4200),
        ("acq_rel.sys.add.u32", 32, 1, &[2], 3),
    ];
    for (op, bits, start, operands, expected) in cases {
        let (old, new) = one_atom(op, *bits, *start, operands);
        assert_eq!((old, new), (*start, *expected), "atom.global.{op} {start:#x} {operands:x?}");
    }
}

#[test]
fn shared_memory_keeps_subnormals_in_float_addition() {
    let body = "st.shared.u32 [s], 1;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 exit;\nmov.u64 %d2, s;\ncvta.shared.u64 %d3, %d2;\n\
                atom.shared.add.f32 %r1, [s], 0f00000001;\natom.add.f32 %r1, [%d3], 0f00000001;\nred.shared.add.f32 [s], 0f00000001;\n\
                ld.shared.u32 %r2, [s];\nst.global.u32 [%d1], %r2;";
    assert_eq!(words(".shared .u32 s;", body)[0], 4);
}
