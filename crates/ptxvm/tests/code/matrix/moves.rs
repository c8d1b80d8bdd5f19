//! `ldmatrix`, `stmatrix`, `movmatrix` and `cp.async`: words and halves, moved here by the manual's rules.

use super::fragments::{names, run};
use super::image::{Random, machines};

/// The halves of a matrix of eight rows.
type Halves = [[u16; 8]; 8];

/// The row of shared memory that a lane writes and gives the address of.
const PLACE: &str = ".shared .align 16 .b8 tile[512];
.shared .align 16 .b8 other[512];
.reg .b32 %at, %dest, %x<4>;
.reg .b64 %generic;
mul.lo.u32 %at, %lane, 5;
and.b32 %at, %at, 31;
shl.b32 %at, %at, 4;
mov.u32 %dest, other;
add.u32 %dest, %dest, %at;
mov.u32 %x0, tile;
add.u32 %at, %at, %x0;
";

fn rows(words: &[u32], matrix: usize) -> Halves {
    std::array::from_fn(|row| {
        let words = &words[(matrix * 8 + row) * 4..][..4];
        std::array::from_fn(|at| (words[at / 2] >> (16 * (at % 2))) as u16)
    })
}

fn transposed(halves: &Halves) -> Halves {
    std::array::from_fn(|row| std::array::from_fn(|at| halves[at][row]))
}

/// The register of a lane: two halves of a row.
fn held(halves: &Halves, lane: usize) -> u32 {
    let [low, high] = [0, 1].map(|at| u32::from(halves[lane / 4][lane % 4 * 2 + at]));
    low | high << 16
}

// covers: new.ldmatrix
#[test]
fn rows_become_registers_and_rows_again() {
    let mut random = Random::new(9);
    for vm in machines() {
        for count in [1, 2, 4] {
            for (trans, back) in [("", ""), (".trans", ""), ("", ".trans"), (".trans", ".trans")] {
                for generic in [false, true] {
                    let words: Vec<u32> = (0..128).map(|_| random.next() as u32).collect();
                    let (space, at) = if generic { ("", "%generic") } else { (".shared", "%at") };
                    let body = format!(
                        "{PLACE}st.shared.v4.b32 [%at], {{%i0, %i1, %i2, %i3}};
mov.b32 %x0, 0;
st.shared.v4.b32 [%dest], {{%x0, %x0, %x0, %x0}};
bar.sync 0;
cvt.u64.u32 %generic, %at;
cvta.shared.u64 %generic, %generic;
ldmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 {}, [{at}];
stmatrix.sync.aligned.m8n8.x{count}{back}.shared.b16 [%dest], {};
bar.sync 0;
ld.shared.v4.b32 {}, [%dest];
",
                        names('o', 0, count),
                        names('o', 0, count),
                        names('o', 4, 4),
                    );
                    let body: String =
                        (count..4).map(|at| format!("mov.b32 %o{at}, 0;\n")).collect::<String>() + &body;
                    let found = run(&vm, ".version 7.8\n.target sm_90", &body, &words, 4, 8);
                    for (lane, found) in found.iter().enumerate() {
                        let mut expected = vec![0; 8];
                        for matrix in 0..count {
                            let loaded = rows(&words, matrix);
                            let loaded = if trans.is_empty() { loaded } else { transposed(&loaded) };
                            expected[matrix] = held(&loaded, lane);
                            if lane / 8 == matrix {
                                let stored = if back.is_empty() { loaded } else { transposed(&loaded) };
                                let row = stored[lane % 8];
                                for at in 0..4 {
                                    expected[4 + at] =
                                        u32::from(row[2 * at]) | u32::from(row[2 * at + 1]) << 16;
                                }
                            }
                        }
                        assert_eq!(
                            *found, expected,
                            "lane {lane}, x{count}{trans}{back}, generic: {generic}, {:?}",
                            vm.engine
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_register_is_transposed() {
    let mut random = Random::new(10);
    for vm in machines() {
        let words: Vec<u32> = (0..32).map(|_| random.next() as u32).collect();
        let body = "movmatrix.sync.aligned.m8n8.trans.b16 %o0, %i0;\n";
        let found = run(&vm, ".version 7.8\n.target sm_75", body, &words, 1, 1);
        let matrix = transposed(&rows(&words, 0));
        let expected: Vec<Vec<u32>> = (0..32).map(|lane| vec![held(&matrix, lane)]).collect();
        assert_eq!(found, expected, "{:?}", vm.engine);
    }
}

/// Bytes that are not copied become zero: those behind the size of the source, or all of them.
#[test]
fn copies_bring_whole_and_partial_words() {
    let mut random = Random::new(11);
    for vm in machines() {
        for size in [4_u32, 8, 16] {
            for source in ["", ", 4", ", %size", ", %full", ", %ignored"] {
                for guard in ["", "@%even "] {
                    let words: Vec<u32> = (0..128).map(|_| random.next() as u32).collect();
                    let body = format!(
                        "{PLACE}.reg .b32 %size, %full; .reg .pred %even, %ignored;
and.b32 %x0, %lane, 1;
setp.eq.u32 %even, %x0, 0;
setp.gt.u32 %ignored, %lane, 27;
rem.u32 %size, %lane, {};
mov.u32 %full, {size};
mov.b32 %x0, 77;
st.shared.v4.b32 [%at], {{%x0, %x0, %x0, %x0}};
{guard}cp.async.ca.shared.global [%at], [%from], {size}{source};
cp.async.commit_group;
cp.async.wait_group 0;
ld.shared.v4.b32 {}, [%at];
",
                        size + 1,
                        names('o', 0, 4),
                    );
                    let found = run(&vm, ".version 8.3\n.target sm_80", &body, &words, 4, 4);
                    for (lane, found) in found.iter().enumerate() {
                        let copied = match source {
                            ", 4" => 4,
                            ", %size" => lane as u32 % (size + 1),
                            ", %ignored" if lane > 27 => 0,
                            _ => size,
                        };
                        let mut bytes = [77_u32; 4].map(u32::to_le_bytes).concat();
                        if guard.is_empty() || lane % 2 == 0 {
                            let from: Vec<u8> = words[4 * lane..4 * lane + 4]
                                .iter()
                                .flat_map(|word| word.to_le_bytes())
                                .collect();
                            for at in 0..size as usize {
                                bytes[at] = if at < copied as usize { from[at] } else { 0 };
                            }
                        }
                        let found: Vec<u8> = found.iter().flat_map(|word| word.to_le_bytes()).collect();
                        assert_eq!(found, bytes, "lane {lane}, {size}{source}, {guard}, {:?}", vm.engine);
                    }
                }
            }
        }
    }
}
