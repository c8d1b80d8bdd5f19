//! §9.7.7 and §9.7.8.6: bitwise operations, shifts, `prmt` against the manual's tables and formulas, bit by
//! bit.

use crate::values::edges;
use ptx_sem::*;

#[test]
fn bitwise() {
    let list = edges(64);
    for &a in &list {
        assert_eq!(
            (not_b16(a as u16), not_b32(a as u32), not_b64(a)),
            (a as u16 ^ 0xffff, a as u32 ^ u32::MAX, a ^ u64::MAX)
        );
        assert_eq!(cnot_b16(a as u16), if a as u16 == 0 { 1 } else { 0 });
        assert_eq!(cnot_b32(a as u32), if a as u32 == 0 { 1 } else { 0 });
        assert_eq!(cnot_b64(a), if a == 0 { 1 } else { 0 });
        for &b in &list {
            let each = |f: fn(bool, bool) -> bool| {
                (0..64).filter(|i| f(a >> i & 1 == 1, b >> i & 1 == 1)).map(|i| 1u64 << i).sum::<u64>()
            };
            let (and, or, xor) = (each(|x, y| x && y), each(|x, y| x || y), each(|x, y| x != y));
            assert_eq!((and_b64(a, b), or_b64(a, b), xor_b64(a, b)), (and, or, xor));
            let (a32, b32) = (a as u32, b as u32);
            assert_eq!(
                (and_b32(a32, b32), or_b32(a32, b32), xor_b32(a32, b32)),
                (and as u32, or as u32, xor as u32)
            );
            let (a16, b16) = (a as u16, b as u16);
            assert_eq!(
                (and_b16(a16, b16), or_b16(a16, b16), xor_b16(a16, b16)),
                (and as u16, or as u16, xor as u16)
            );
        }
    }
    for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(
            (and_pred(a, b), or_pred(a, b), xor_pred(a, b), not_pred(a)),
            (a && b, a || b, a != b, !a)
        );
    }
}

#[test]
fn lop3_looks_up_every_bit() {
    let words = [0, u32::MAX, 0xf0f0_f0f0, 0xcccc_cccc, 0xaaaa_aaaa, 0x1234_5678, 0x9abc_def0];
    for lut in 0..=255u8 {
        for a in words {
            for b in words {
                for c in words {
                    let bits = (0..32).map(|i| {
                        let row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
                        u32::from(lut >> row & 1) << i
                    });
                    assert_eq!(lop3_b32(a, b, c, lut), bits.sum::<u32>());
                }
            }
        }
    }
    // The functions in the manual's text, with the table of the last one corrected.
    let (a, b, c) = (0x0f1e_2d3c, 0x1357_9bdf, 0x89ab_cdef);
    assert_eq!(lop3_b32(a, b, c, 0x80), a & b & c);
    assert_eq!(lop3_b32(a, b, c, 0xfe), a | b | c);
    assert_eq!(lop3_b32(a, b, c, 0x40), a & b & !c);
    assert_eq!(lop3_b32(a, b, c, 0x1a), (a & b | c) ^ a);
}

#[test]
fn funnel_shifts() {
    let (a, b) = (0x89ab_cdef_u32, 0x0123_4567_u32);
    for c in (0..70).chain([0x8000_0000, u32::MAX, 96, 128]) {
        // Multiplication and division of {b, a} by powers of two.
        let pair = u128::from(b) * (1 << 32) + u128::from(a);
        let left = |n: u32| ((pair * (1u128 << n)) / (1 << 32) % (1 << 32)) as u32;
        let right = |n: u32| (pair / (1u128 << n) % (1 << 32)) as u32;
        let clamped = if c > 32 { 32 } else { c };
        assert_eq!((shf_l_clamp_b32(a, b, c), shf_r_clamp_b32(a, b, c)), (left(clamped), right(clamped)));
        assert_eq!((shf_l_wrap_b32(a, b, c), shf_r_wrap_b32(a, b, c)), (left(c % 32), right(c % 32)));
    }
    assert_eq!((shf_l_clamp_b32(a, b, 32), shf_l_clamp_b32(a, b, 0)), (a, b));
    assert_eq!((shf_r_clamp_b32(a, b, 32), shf_r_clamp_b32(a, b, 0)), (b, a));
}

#[test]
fn shifts_clamp_their_count() {
    for x in edges(64) {
        for n in (0..70).chain([255, 256, 0x8000_0000, u32::MAX]) {
            let count = n.min(64);
            let power = 1i128 << count;
            let (wide, half, word) = (i128::from(x), i128::from(x as u16), i128::from(x as u32));
            assert_eq!(shl_b16(x as u16, n), if n < 16 { (half * power) as u16 } else { 0 });
            assert_eq!(shl_b32(x as u32, n), if n < 32 { (word * power) as u32 } else { 0 });
            assert_eq!(shl_b64(x, n), if n < 64 { (wide * power) as u64 } else { 0 });
            assert_eq!(
                (shr_u16(x as u16, n), shr_b16(x as u16, n)),
                ((half / power) as u16, (half / power) as u16)
            );
            assert_eq!(
                (shr_u32(x as u32, n), shr_b32(x as u32, n)),
                ((word / power) as u32, (word / power) as u32)
            );
            assert_eq!((shr_u64(x, n), shr_b64(x, n)), ((wide / power) as u64, (wide / power) as u64));
            assert_eq!(shr_s16(x as i16, n), i128::from(x as i16).div_euclid(power) as i16);
            assert_eq!(shr_s32(x as i32, n), i128::from(x as i32).div_euclid(power) as i32);
            assert_eq!(shr_s64(x as i64, n), i128::from(x as i64).div_euclid(power) as i64);
        }
    }
}

/// The word of these numbered bytes of {b, a}, the highest first.
fn bytes(a: u32, b: u32, numbers: [usize; 4]) -> u32 {
    let all = [a.to_le_bytes(), b.to_le_bytes()].concat();
    u32::from_be_bytes(numbers.map(|i| all[i]))
}

#[test]
fn prmt_modes_follow_the_table() {
    let (a, b) = (0x8372_6150, 0xc7b6_a594);
    type Mode = fn(u32, u32, u32) -> u32;
    // The table of §9.7.8.6: sources of d.b3, d.b2, d.b1, d.b0 for c = 0, 1, 2, 3.
    let table: [(Mode, [[usize; 4]; 4]); 6] = [
        (prmt_f4e_b32, [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]]),
        (prmt_b4e_b32, [[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]]),
        (prmt_rc8_b32, [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]]),
        (prmt_ecl_b32, [[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3, 3, 3, 3]]),
        (prmt_ecr_b32, [[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]]),
        (prmt_rc16_b32, [[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]]),
    ];
    for (mode, rows) in table {
        for (c, row) in (0..).zip(rows) {
            assert_eq!(mode(a, b, c), bytes(a, b, row));
            assert_eq!(mode(a, b, c | 0xffff_fffc), bytes(a, b, row));
        }
    }
}

#[test]
fn prmt_selects_and_replicates_signs() {
    let (a, b) = (0x0372_e150_u32, 0xc736_a594_u32);
    let all = [a.to_le_bytes(), b.to_le_bytes()].concat();
    for c in 0..=0xffff_u32 {
        let byte = |i: u32| {
            let select = (c >> (4 * i) & 15) as usize;
            let byte = all[select % 8];
            if select < 8 {
                byte
            } else if byte < 128 {
                0
            } else {
                255
            }
        };
        let expected = u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)]);
        assert_eq!(prmt_b32(a, b, c), expected);
        assert_eq!(prmt_b32(a, b, c | 0x5a5a_0000), expected);
    }
    assert_eq!(prmt_b32(a, b, 0x7654), b);
}
