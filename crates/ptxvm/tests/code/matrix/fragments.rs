//! `mma` and `ldmatrix`: fragments filled and read by hand, as the manuals' tables have them.

use super::image::{Machine, Random, half, machines};
use ptxvm::{Arg, Launch};

/// Lanes of the first matrix, in the order of the tables below; those of matrix q are 4q more.
const LANES: [usize; 8] = [0, 1, 2, 3, 16, 17, 18, 19];

/// PTX ISA §9.7.13.5: the elements (row and column) that these lanes hold, in their order in the registers.
const A_ROW: [&str; 8] = [
    "00 01 02 03",
    "10 11 12 13",
    "20 21 22 23",
    "30 31 32 33", //
    "40 41 42 43",
    "50 51 52 53",
    "60 61 62 63",
    "70 71 72 73",
];
const A_COL: [&str; 8] = [
    "00 10 20 30",
    "01 11 21 31",
    "02 12 22 32",
    "03 13 23 33", //
    "40 50 60 70",
    "41 51 61 71",
    "42 52 62 72",
    "43 53 63 73",
];
const B_ROW: [&str; 8] = [
    "00 01 02 03",
    "10 11 12 13",
    "20 21 22 23",
    "30 31 32 33", //
    "04 05 06 07",
    "14 15 16 17",
    "24 25 26 27",
    "34 35 36 37",
];
const B_COL: [&str; 8] = [
    "00 10 20 30",
    "01 11 21 31",
    "02 12 22 32",
    "03 13 23 33", //
    "04 14 24 34",
    "05 15 25 35",
    "06 16 26 36",
    "07 17 27 37",
];
const C_F16: [&str; 8] = [
    "00 01 02 03 04 05 06 07",
    "10 11 12 13 14 15 16 17", //
    "20 21 22 23 24 25 26 27",
    "30 31 32 33 34 35 36 37", //
    "40 41 42 43 44 45 46 47",
    "50 51 52 53 54 55 56 57", //
    "60 61 62 63 64 65 66 67",
    "70 71 72 73 74 75 76 77",
];
const C_F32: [&str; 8] = [
    "00 01 20 21 04 05 24 25",
    "10 11 30 31 14 15 34 35", //
    "02 03 22 23 06 07 26 27",
    "12 13 32 33 16 17 36 37", //
    "40 41 60 61 44 45 64 65",
    "50 51 70 71 54 55 74 75", //
    "42 43 62 63 46 47 66 67",
    "52 53 72 73 56 57 76 77",
];

/// The elements of a line of a table.
fn elements(line: &str) -> Vec<(usize, usize)> {
    let digit = |byte: u8| usize::from(byte - b'0');
    line.split(' ').map(|e| (digit(e.as_bytes()[0]), digit(e.as_bytes()[1]))).collect()
}

/// The words of a lane's registers.
fn pack(values: &[i64], f16: bool) -> Vec<u32> {
    if f16 {
        let pair = |pair: &[i64]| u32::from(half(pair[0])) | u32::from(half(pair[1])) << 16;
        values.chunks(2).map(pair).collect()
    } else {
        values.iter().map(|x| (*x as f32).to_bits()).collect()
    }
}

fn braces(prefix: char, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("%{prefix}{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// Runs `body` in one warp. Each lane has `ins` words from its own place in `words` in `%i0`, ... and leaves
/// `outs` words of `%o0`, ...; they are returned lane by lane. `%lane` is the lane.
pub(super) fn run(
    vm: &Machine,
    head: &str,
    body: &str,
    words: &[u32],
    ins: usize,
    outs: usize,
) -> Vec<Vec<u32>> {
    use std::fmt::Write as _;
    let mut ptx =
        format!("{head}\n.address_size 64\n.visible .entry run(.param .u64 words, .param .u64 result)\n{{\n");
    ptx += ".reg .b64 %from, %to, %bytes;\n.reg .b32 %lane;\n";
    let _infallible = writeln!(ptx, ".reg .b32 %i<{}>, %o<{}>;", ins.max(1), outs);
    ptx += "ld.param.u64 %from, [words];\nld.param.u64 %to, [result];\nmov.u32 %lane, %tid.x;\n";
    let _infallible =
        writeln!(ptx, "mul.wide.u32 %bytes, %lane, {};\nadd.u64 %from, %from, %bytes;", ins * 4);
    let _infallible = writeln!(ptx, "mul.wide.u32 %bytes, %lane, {};\nadd.u64 %to, %to, %bytes;", outs * 4);
    for i in 0..ins {
        let _infallible = writeln!(ptx, "ld.global.b32 %i{i}, [%from+{}];", i * 4);
    }
    ptx += body;
    for i in 0..outs {
        let _infallible = writeln!(ptx, "st.global.b32 [%to+{}], %o{i};", i * 4);
    }
    ptx += "ret;\n}\n";
    let module = vm.load("mma.ptx", &ptx).unwrap_or_else(|e| panic!("{e}\n{ptx}"));
    let kernel = module.kernel("run").expect("the kernel");
    let from = vm.buffer(words).expect("a buffer");
    let to = vm.zeros::<u32>(32 * outs).expect("a buffer");
    let launch = Launch::new([1, 1, 1], [32, 1, 1]).threads(1).engine(vm.engine);
    let launch = launch.args(&kernel, &[Arg::buffer(&from), Arg::buffer(&to)]).expect("arguments");
    vm.launch(&kernel, &launch).unwrap_or_else(|e| panic!("{e}\n{ptx}"));
    to.read().expect("results").chunks(outs).map(<[u32]>::to_vec).collect()
}

pub(super) fn names(prefix: char, from: usize, count: usize) -> String {
    let names: Vec<String> = (from..from + count).map(|i| format!("%{prefix}{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

// covers: mma.m8n8k4 mma.m8n8k4.frag_a mma.m8n8k4.frag_b mma.m8n8k4.frag_c16 mma.m8n8k4.frag_c32
#[test]
fn mma_m8n8k4_has_the_fragments_of_the_manual() {
    let machines = machines();
    let mut random = Random::new(7);
    let tables = [
        ("row", A_ROW, "row", B_ROW),
        ("row", A_ROW, "col", B_COL),
        ("col", A_COL, "row", B_ROW),
        ("col", A_COL, "col", B_COL),
    ];
    for (alayout, a_table, blayout, b_table) in tables {
        for (dtype, ctype) in [("f16", "f16"), ("f32", "f16"), ("f32", "f32")] {
            let mut table = |rows: usize, columns: usize, bound: i64| -> Vec<Vec<Vec<i64>>> {
                let mut line = || (0..columns).map(|_| random.range(-bound, bound)).collect();
                (0..4).map(|_| (0..rows).map(|_| line()).collect()).collect()
            };
            // |sum| <= 4 * 400 + 400 < 2048: exact in halves.
            let (a, b, c) = (table(8, 4, 20), table(4, 8, 20), table(8, 8, 400));
            let accumulator = |ty| if ty == "f16" { C_F16 } else { C_F32 };
            let (mut lanes, mut expected) = (vec![Vec::new(); 32], vec![Vec::new(); 32]);
            for q in 0..4 {
                let of = |matrix: &[Vec<Vec<i64>>], line: &str| -> Vec<i64> {
                    elements(line).into_iter().map(|(i, j)| matrix[q][i][j]).collect()
                };
                let d: Vec<Vec<i64>> = (0..8)
                    .map(|i| {
                        (0..8)
                            .map(|j| c[q][i][j] + (0..4).map(|k| a[q][i][k] * b[q][k][j]).sum::<i64>())
                            .collect()
                    })
                    .collect();
                for (index, lane) in LANES.into_iter().enumerate() {
                    let words = &mut lanes[lane + 4 * q];
                    words.extend(pack(&of(&a, a_table[index]), true));
                    words.extend(pack(&of(&b, b_table[index]), true));
                    words.extend(pack(&of(&c, accumulator(ctype)[index]), ctype == "f16"));
                    let results = elements(accumulator(dtype)[index]).into_iter().map(|(i, j)| d[i][j]);
                    expected[lane + 4 * q] = pack(&results.collect::<Vec<i64>>(), dtype == "f16");
                }
            }
            let registers = |ty| if ty == "f16" { 4 } else { 8 };
            let (ins, outs) = (4 + registers(ctype), registers(dtype));
            let body = format!(
                "mma.sync.aligned.m8n8k4.{alayout}.{blayout}.{dtype}.f16.f16.{ctype} {}, {}, {}, {};\n",
                braces('o', outs),
                names('i', 0, 2),
                names('i', 2, 2),
                names('i', 4, registers(ctype))
            );
            for vm in &machines {
                let have = run(vm, ".version 6.4\n.target sm_70", &body, &lanes.concat(), ins, outs);
                assert_eq!(have, expected, "{alayout} {blayout} {dtype} {ctype}, {:?}", vm.engine);
            }
        }
    }
}

/// The way in which compilers feed `mma` with 16 rows: `ldmatrix` takes A by rows, and B by rows transposed;
/// lane l then has rows l / 4 and l / 4 + 8 of D, columns 2 * (l mod 4) and the next.
// covers: new.mma.f16 new.ldmatrix
#[test]
fn ldmatrix_feeds_mma_with_16_rows() {
    let machines = machines();
    let mut random = Random::new(8);
    for (k, head) in [(8, ".version 6.5\n.target sm_75"), (16, ".version 7.0\n.target sm_80")] {
        for (dtype, ctype) in [("f16", "f16"), ("f32", "f32")] {
            let mut table = |rows: usize, columns: usize| -> Vec<Vec<i64>> {
                (0..rows).map(|_| (0..columns).map(|_| random.range(-9, 9)).collect()).collect()
            };
            let (a, b, c) = (table(16, k), table(k, 8), table(16, 8));
            // Each lane brings half a row of A (16 bytes), and one row of B if there are as many.
            let half_rows =
                |matrix: &[Vec<i64>], row: usize, column: usize| pack(&matrix[row][column..column + 8], true);
            let registers = if ctype == "f16" { 2 } else { 4 };
            let mut words = Vec::new();
            let mut expected = Vec::new();
            for lane in 0..32 {
                // Lanes 0-7, 8-15, 16-23, 24-31: rows 0-7 and 8-15 of A's columns 0-7, then of 8-15.
                let column = if k == 16 { lane / 16 * 8 } else { 0 };
                words.extend(half_rows(&a, lane % 16, column));
                words.extend(half_rows(&b, lane % k, 0));
                let own = |i: usize, j: usize| (lane / 4 + 8 * i, lane % 4 * 2 + j);
                let places = [own(0, 0), own(0, 1), own(1, 0), own(1, 1)];
                words.extend(pack(&places.map(|(i, j)| c[i][j]), ctype == "f16"));
                let d = places.map(|(i, j)| c[i][j] + (0..k).map(|x| a[i][x] * b[x][j]).sum::<i64>());
                expected.push(pack(&d, dtype == "f16"));
            }
            let (a_count, b_count) = if k == 16 { ("x4", "x2") } else { ("x2", "x1") };
            let (a_regs, b_regs) = if k == 16 { (4, 2) } else { (2, 1) };
            let body = format!(
                ".shared .align 16 .b8 tile[1024];
.reg .b32 %at, %a<4>, %b<2>;
mov.u32 %at, tile;
mad.lo.u32 %at, %lane, 16, %at;
st.shared.v4.b32 [%at], {{%i0, %i1, %i2, %i3}};
st.shared.v4.b32 [%at+512], {{%i4, %i5, %i6, %i7}};
bar.sync 0;
ldmatrix.sync.aligned.m8n8.{a_count}.shared.b16 {}, [%at];
ldmatrix.sync.aligned.m8n8.{b_count}.trans.shared.b16 {}, [%at+512];
mma.sync.aligned.m16n8k{k}.row.col.{dtype}.f16.f16.{ctype} {}, {}, {}, {};
",
                names('a', 0, a_regs),
                names('b', 0, b_regs),
                names('o', 0, registers),
                names('a', 0, a_regs),
                names('b', 0, b_regs),
                names('i', 8, registers)
            );
            for vm in &machines {
                let have = run(vm, head, &body, &words, 8 + registers, registers);
                assert_eq!(have, expected, "k {k}, {dtype} {ctype}, {:?}", vm.engine);
            }
        }
    }
}
