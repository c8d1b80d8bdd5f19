//! `wmma` of the types after PTX 6.4: `.bf16`, `.tf32`, `.f64`, and bits that are set in both; in every
//! shape, layout and space.
//!
//! Each element lies in memory as its type has it; the fragments between are the machine's own.

use super::image::{Machine, Random, any, machines};
use ptxvm::{Arg, Launch};

/// Bytes between matrices.
const APART: usize = 8192;

/// A product of small integers.
struct Case {
    shape: [usize; 3],
    /// Type of A and B, and of C and D.
    types: [&'static str; 2],
    /// Whether A, B, C and D lie by rows.
    by_rows: [bool; 4],
    space: &'static str,
}

fn bytes(ty: &str) -> usize {
    match ty {
        "bf16" => 2,
        "f64" => 8,
        _ => 4,
    }
}

fn encode(ty: &str, x: i64) -> Vec<u8> {
    match ty {
        "bf16" => ((x as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec(),
        "f64" => (x as f64).to_le_bytes().to_vec(),
        _ => (x as f32).to_le_bytes().to_vec(),
    }
}

fn registers(ty: &str, elements: usize) -> usize {
    elements * bytes(ty) / if ty == "f64" { 256 } else { 128 }
}

impl Case {
    fn text(&self) -> String {
        let [m, n, k] = self.shape;
        let [multiplicand, sum] = self.types;
        let layout = |i: usize| if self.by_rows[i] { "row" } else { "col" };
        let list = |letter: char, ty: &str, elements: usize| {
            let all: Vec<String> = (0..registers(ty, elements)).map(|i| format!("%{letter}{i}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let (a, b) = (list('a', multiplicand, m * k), list('b', multiplicand, k * n));
        let (c, d) = (list('c', sum, m * n), list('d', sum, m * n));
        let class = if sum == "f64" { ".f64" } else { ".b32" };
        let sums = if sum == "f64" { ".f64" } else { ".f32" };
        let shape = format!("m{m}n{n}k{k}");
        let space = self.space;
        // Rows of 40 elements: a multiple of what alignment asks for.
        format!(
            ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry run(.param .u64 image) {{\n\
             .reg .b64 %p; .reg {class} %a<8>, %b<8>; .reg {sums} %c<8>, %d<8>;\n\
             ld.param.u64 %p, [image];\n\
             wmma.load.a.sync.aligned.{}.{shape}{space}.{multiplicand} {a}, [%p], 40;\n\
             wmma.load.b.sync.aligned.{}.{shape}{space}.{multiplicand} {b}, [%p+{APART}], 40;\n\
             wmma.load.c.sync.aligned.{}.{shape}{space}.{sum} {c}, [%p+{}], 40;\n\
             wmma.mma.sync.aligned.{}.{}.{shape}.{sum}.{multiplicand}.{multiplicand}.{sum} {d}, {a}, {b}, {c};\n\
             wmma.store.d.sync.aligned.{}.{shape}{space}.{sum} [%p+{}], {d}, 40;\nret;\n}}\n",
            layout(0),
            layout(1),
            layout(2),
            2 * APART,
            layout(0),
            layout(1),
            layout(3),
            3 * APART
        )
    }

    fn run(&self, vm: &Machine, random: &mut Random) {
        let [m, n, k] = self.shape;
        let kinds = [self.types[0], self.types[0], self.types[1], self.types[1]];
        let dims = [(m, k), (k, n), (m, n), (m, n)];
        let mut values: Vec<Vec<Vec<i64>>> = dims
            .iter()
            .map(|(rows, columns)| {
                (0..*rows).map(|_| (0..*columns).map(|_| random.range(-9, 9)).collect()).collect()
            })
            .collect();
        let mut image: Vec<u8> = (0..4 * APART).map(|i| (i * 37 % 251) as u8).collect();
        let put = |image: &mut Vec<u8>, which: usize, matrix: &[Vec<i64>]| {
            for (row, line) in matrix.iter().enumerate() {
                for (column, x) in line.iter().enumerate() {
                    let (line, at) = if self.by_rows[which] { (row, column) } else { (column, row) };
                    let start = which * APART + (line * 40 + at) * bytes(kinds[which]);
                    image[start..start + bytes(kinds[which])].copy_from_slice(&encode(kinds[which], *x));
                }
            }
        };
        for (which, matrix) in values.iter().enumerate().take(3) {
            put(&mut image, which, matrix);
        }
        let text = self.text();
        let module = vm.load("wider.ptx", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let kernel = module.kernel("run").expect("the kernel");
        let buffer = vm.buffer(&image).expect("a buffer");
        let launch = Launch::new([1; 3], [32, 1, 1])
            .threads(1)
            .engine(vm.engine)
            .args(&kernel, &[Arg::buffer(&buffer)]);
        vm.launch(&kernel, &launch.expect("arguments")).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for i in 0..m {
            for j in 0..n {
                let dot: i64 = (0..k).map(|x| values[0][i][x] * values[1][x][j]).sum();
                values[3][i][j] = values[2][i][j] + dot;
            }
        }
        put(&mut image, 3, &values[3]);
        let found = buffer.read().expect("the image");
        assert!(found == image, "{:?} {:?} {:?}\n{text}", self.shape, self.types, self.by_rows);
    }
}

// covers: new.wmma.bf16 new.wmma.tf32 new.wmma.f64
#[test]
fn wider_types_in_every_shape_layout_and_space() {
    let machines = machines();
    let mut random = Random::new(64);
    let shapes: [(&[[usize; 3]], [&'static str; 2]); 3] = [
        (&[[16, 16, 16], [8, 32, 16], [32, 8, 16]], ["bf16", "f32"]),
        (&[[16, 16, 8]], ["tf32", "f32"]),
        (&[[8, 8, 4]], ["f64", "f64"]),
    ];
    for (shapes, types) in shapes {
        for shape in shapes {
            for layouts in 0..16 {
                let by_rows = std::array::from_fn(|i| layouts >> i & 1 == 0);
                for space in ["", ".global"] {
                    Case { shape: *shape, types, by_rows, space }
                        .run(any(&machines, &mut random), &mut random);
                }
            }
        }
    }
}

// covers: new.wmma.b1.and
#[test]
fn bits_that_are_set_in_both_are_counted() {
    let machines = machines();
    let mut random = Random::new(65);
    let text = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry run(.param .u64 image) {\n\
        .reg .b64 %p; .reg .b32 %a, %b, %c0, %c1, %d0, %d1; .shared .align 32 .b8 tile[128];\n\
        ld.param.u64 %p, [image];\n\
        wmma.load.a.sync.aligned.row.m8n8k128.global.b1 {%a}, [%p];\n\
        wmma.load.b.sync.aligned.col.m8n8k128.global.b1 {%b}, [%p+128];\n\
        wmma.load.c.sync.aligned.row.m8n8k128.global.s32 {%c0, %c1}, [%p+256];\n\
        wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%d0, %d1}, {%a}, {%b}, {%c0, %c1};\n\
        wmma.store.d.sync.aligned.row.m8n8k128.global.s32 [%p+512], {%d0, %d1};\nret;\n}\n";
    let words: Vec<u32> = (0..128).map(|_| random.range(0, i64::from(u32::MAX)) as u32).collect();
    let mut image = words.clone();
    image.resize(192, 0);
    for vm in &machines {
        let module = vm.load("bits.ptx", text).unwrap_or_else(|e| panic!("{e}"));
        let kernel = module.kernel("run").expect("the kernel");
        let buffer = vm.buffer(&image).expect("a buffer");
        let launch = Launch::new([1; 3], [32, 1, 1])
            .engine(vm.engine)
            .args(&kernel, &[Arg::buffer(&buffer)])
            .expect("arguments");
        vm.launch(&kernel, &launch).unwrap_or_else(|e| panic!("{e}"));
        let found = buffer.read().expect("the image");
        for i in 0..8 {
            for j in 0..8 {
                let both: u32 = (0..4).map(|w| (words[4 * i + w] & words[32 + 4 * j + w]).count_ones()).sum();
                assert_eq!(found[128 + 8 * i + j], words[64 + 8 * i + j].wrapping_add(both), "{i} {j}");
            }
        }
    }
}
