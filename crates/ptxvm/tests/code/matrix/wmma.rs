//! `wmma.load`, `wmma.mma` and `wmma.store` in every shape, layout and type.

use super::image::{Machine, Place, Random, any, half, machines, of_half};
use ptxvm::{Arg, Launch};
use std::fmt::Write as _;

/// Where a kernel finds and leaves the matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    Global,
    Shared,
    /// Generic addresses of global memory.
    GenericGlobal,
    /// Generic addresses of shared memory.
    GenericShared,
}

const EVERYWHERE: [Where; 4] = [Where::Global, Where::Shared, Where::GenericGlobal, Where::GenericShared];

/// One product.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// M, N, K.
    shape: (usize, usize, usize),
    /// Types of D, of A and B, and of C.
    types: (&'static str, &'static str, &'static str),
    /// Whether A, B, C and D lie by rows.
    by_rows: [bool; 4],
    satfinite: bool,
    place: Where,
    /// Strides are given, and greater than they need be.
    strides: bool,
}

fn bits(ty: &str) -> usize {
    match ty {
        "b1" => 1,
        other => other[1..].parse().expect("a type with its width"),
    }
}

fn name(by_rows: bool) -> &'static str {
    if by_rows { "row" } else { "col" }
}

fn list(prefix: char, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|i| format!("%{prefix}{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

impl Case {
    fn dims(&self) -> [(usize, usize); 4] {
        let (m, n, k) = self.shape;
        [(m, k), (k, n), (m, n), (m, n)]
    }

    fn tys(&self) -> [&'static str; 4] {
        [self.types.1, self.types.1, self.types.2, self.types.0]
    }

    /// Registers of the fragments, as §9.7.13.3 lists them.
    fn registers(&self) -> [usize; 4] {
        let multiplicand = |elements: usize, ty| match ty {
            "f16" => 8,
            _ => elements * bits(ty) / 1024,
        };
        let accumulator = |ty| match (self.shape.2, ty) {
            (16, "f16") => 4,
            (16, _) => 8,
            _ => 2,
        };
        let [a, b, ..] = self.dims();
        let [ta, tb, tc, td] = self.tys();
        [multiplicand(a.0 * a.1, ta), multiplicand(b.0 * b.1, tb), accumulator(tc), accumulator(td)]
    }

    /// The four matrices, one after another.
    fn places(&self) -> [Place; 4] {
        let mut offset = 64;
        std::array::from_fn(|i| {
            let ((rows, columns), width) = (self.dims()[i], bits(self.tys()[i]));
            let least = if self.by_rows[i] { columns } else { rows };
            // Rows need not start at multiples of the fragment, only of 16 bytes (or of a smaller fragment).
            let unit = (self.registers()[i] * 32).min(128) / width;
            let gap = if self.strides { 3 * unit } else { 0 };
            let base = least.next_multiple_of(if self.strides { unit } else { 1 });
            let place = Place { offset, by_rows: self.by_rows[i], stride: base + gap, bits: width };
            offset = (offset + place.bytes(rows, columns)).next_multiple_of(32) + 32;
            place
        })
    }

    fn kernel(&self, bytes: usize) -> String {
        let (m, n, k) = self.shape;
        let shape = format!("m{m}n{n}k{k}");
        let [ta, tb, tc, td] = self.tys();
        let registers = self.registers();
        let mut ptx = String::from(".version 6.4\n.target sm_75\n.address_size 64\n");
        ptx += ".visible .entry run(.param .u64 image)\n{\n";
        let mut line = |text: String| {
            let _infallible = writeln!(ptx, "\t{text}");
        };
        line(format!(".shared .align 64 .b8 tile[{bytes}];"));
        line(".reg .b64 %base, %from, %here, %step;".into());
        line(".reg .b32 %i, %lane, %word, %to, %s0, %s1, %s2, %s3;".into());
        line(".reg .pred %more;".into());
        for (prefix, count) in ['a', 'b', 'c', 'd'].into_iter().zip(registers) {
            line(format!(".reg .b32 %{prefix}<{count}>;"));
        }
        line("ld.param.u64 %from, [image];".into());
        line("mov.u32 %lane, %tid.x;".into());
        let shared = matches!(self.place, Where::Shared | Where::GenericShared);
        let copy = |label: &str, load: &str, store: &str| {
            format!(
                "mov.u32 %i, %lane;\n{label}:\n\tmul.wide.u32 %step, %i, 4;\n\tadd.u64 %here, %from, %step;\n\t\
                 mov.u32 %to, tile;\n\tmad.lo.u32 %to, %i, 4, %to;\n\t{load}\n\t{store}\n\tadd.u32 %i, %i, 32;\n\t\
                 setp.lt.u32 %more, %i, {};\n\t@%more bra {label};\n\tbar.sync 0;",
                bytes / 4
            )
        };
        if shared {
            line(copy("IN", "ld.global.b32 %word, [%here];", "st.shared.b32 [%to], %word;"));
        }
        match self.place {
            Where::Global => line("mov.u64 %base, %from;".into()),
            Where::Shared => line("mov.u64 %base, tile;".into()),
            Where::GenericGlobal => line("cvta.global.u64 %base, %from;".into()),
            Where::GenericShared => {
                line("mov.u64 %base, tile;".into());
                line("cvta.shared.u64 %base, %base;".into());
            }
        }
        let space = match self.place {
            Where::Global => ".global",
            Where::Shared => ".shared",
            Where::GenericGlobal | Where::GenericShared => "",
        };
        let places = self.places();
        let stride = |i: usize| if self.strides { format!(", %s{i}") } else { String::new() };
        for (i, place) in places.iter().enumerate() {
            line(format!("mov.u32 %s{i}, {};", place.stride));
        }
        for (i, (prefix, ty)) in [('a', ta), ('b', tb), ('c', tc)].into_iter().enumerate() {
            // The order of layout and shape is free.
            let words = match i {
                0 => format!("{}.{shape}", name(self.by_rows[i])),
                _ => format!("{shape}.{}", name(self.by_rows[i])),
            };
            let r = list(prefix, registers[i]);
            let at = places[i].offset;
            line(format!(
                "wmma.load.{prefix}.sync.aligned.{words}{space}.{ty} {r}, [%base+{at}]{};",
                stride(i)
            ));
        }
        let types = match ta {
            "f16" => format!("{td}.{tc}"),
            _ => format!("{td}.{ta}.{tb}.{tc}"),
        };
        let operation = if ta == "b1" { "mma.xor.popc" } else { "mma" };
        let (alayout, blayout) = (name(self.by_rows[0]), name(self.by_rows[1]));
        let satfinite = if self.satfinite { ".satfinite" } else { "" };
        let [a, b, c, d] = [('a', 0), ('b', 1), ('c', 2), ('d', 3)].map(|(p, i)| list(p, registers[i]));
        line(format!(
            "wmma.{operation}.sync.aligned.{alayout}.{blayout}.{shape}.{types}{satfinite} {d}, {a}, {b}, {c};"
        ));
        let (layout, at) = (name(self.by_rows[3]), places[3].offset);
        line(format!(
            "wmma.store.d.sync.aligned.{layout}.{shape}{space}.{td} [%base+{at}], {d}{};",
            stride(3)
        ));
        if shared {
            line("bar.sync 0;".into());
            line(copy("OUT", "ld.shared.b32 %word, [%to];", "st.global.b32 [%here], %word;"));
        }
        line("ret;".into());
        ptx + "}\n"
    }

    /// Runs it on elements `a[i][k]`, `b[k][j]`, `c[i][j]` (bits), and compares all memory with D's elements
    /// `d(i, j)`.
    fn run(&self, vm: &Machine, values: &Values, d: impl Fn(usize, usize) -> u64) {
        let (image, places) = self.execute(vm, values);
        let mut expected = image.0;
        let (m, n, _) = self.shape;
        for i in 0..m {
            for j in 0..n {
                places[3].put(&mut expected, i, j, d(i, j));
            }
        }
        for at in (0..expected.len()).step_by(2) {
            let (have, want) = (&image.1[at..at + 2], &expected[at..at + 2]);
            assert_eq!(have, want, "byte {at} of the image in {self:?}, {places:?}");
        }
    }

    /// The image before and after.
    fn execute(&self, vm: &Machine, values: &Values) -> ((Vec<u8>, Vec<u8>), [Place; 4]) {
        let places = self.places();
        let [.., (rows, columns)] = self.dims();
        let bytes = (places[3].offset + places[3].bytes(rows, columns) + 32).next_multiple_of(128);
        // What no matrix owns must stay as it is.
        let mut image: Vec<u8> = (0..bytes).map(|i| (i * 37 % 251) as u8).collect();
        for (i, matrix) in [&values.a, &values.b, &values.c].into_iter().enumerate() {
            for (row, line) in matrix.iter().enumerate() {
                for (column, value) in line.iter().enumerate() {
                    places[i].put(&mut image, row, column, *value);
                }
            }
        }
        let text = self.kernel(bytes);
        let module = vm.load("wmma.ptx", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let kernel = module.kernel("run").expect("the kernel");
        let buffer = vm.buffer(&image).expect("a buffer");
        let launch = Launch::new([1, 1, 1], [32, 1, 1])
            .threads(1)
            .engine(vm.engine)
            .args(&kernel, &[Arg::buffer(&buffer)]);
        vm.launch(&kernel, &launch.expect("arguments")).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let after = buffer.read().expect("the image");
        ((image, after), places)
    }
}

type Bits = Vec<Vec<u64>>;

/// The elements of A, B and C.
struct Values {
    a: Bits,
    b: Bits,
    c: Bits,
}

fn table(rows: usize, columns: usize, mut value: impl FnMut() -> i64) -> Vec<Vec<i64>> {
    (0..rows).map(|_| (0..columns).map(|_| value()).collect()).collect()
}

fn bits_of(values: &[Vec<i64>], encode: impl Fn(i64) -> u64) -> Bits {
    values.iter().map(|line| line.iter().map(|x| encode(*x)).collect()).collect()
}

/// An integer in a type.
fn encode(ty: &str, x: i64) -> u64 {
    match ty {
        "f16" => half(x).into(),
        "f32" => (x as f32).to_bits().into(),
        _ => x as u64,
    }
}

const SHAPES: [(usize, usize, usize); 3] = [(16, 16, 16), (8, 32, 16), (32, 8, 16)];

/// All layouts of A and B, each with layouts of C and D.
fn layouts() -> impl Iterator<Item = [bool; 4]> {
    (0..8).map(|i| [i & 1 == 0, i & 2 == 0, (i & 4 == 0) ^ (i & 1 == 0), i & 4 == 0])
}

/// Where a case has its matrices, and whether with strides.
fn anywhere(random: &mut Random) -> (Where, bool) {
    (EVERYWHERE[random.range(0, 3) as usize], random.range(0, 1) == 0)
}

fn dot(a: &[Vec<i64>], b: &[Vec<i64>], i: usize, j: usize) -> i64 {
    a[i].iter().zip(b).map(|(x, line)| x * line[j]).sum()
}

// covers: wmma.load.f16ab wmma.load.c.fp wmma.store.fp wmma.mma.fp wmma.shape wmma.types wmma.storage
#[test]
fn halves_in_every_shape_layout_and_type() {
    let machines = machines();
    let mut random = Random::new(1);
    for shape in SHAPES {
        for by_rows in layouts() {
            for (dtype, ctype) in [("f16", "f16"), ("f16", "f32"), ("f32", "f16"), ("f32", "f32")] {
                for satfinite in [false, true] {
                    let types = (dtype, "f16", ctype);
                    let (place, strides) = anywhere(&mut random);
                    let case = Case { shape, types, by_rows, satfinite, place, strides };
                    let (m, n, k) = shape;
                    // |sum| <= 16 * 81 + 700 < 2048: exact in halves.
                    let a = table(m, k, || random.range(-9, 9));
                    let b = table(k, n, || random.range(-9, 9));
                    let c = table(m, n, || random.range(-700, 700));
                    let values = Values {
                        a: bits_of(&a, |x| encode("f16", x)),
                        b: bits_of(&b, |x| encode("f16", x)),
                        c: bits_of(&c, |x| encode(ctype, x)),
                    };
                    case.run(any(&machines, &mut random), &values, |i, j| {
                        encode(dtype, c[i][j] + dot(&a, &b, i, j))
                    });
                }
            }
        }
    }
}

// covers: wmma.load.int8 wmma.load.c.s32 wmma.store.s32 wmma.mma.int8
#[test]
fn bytes_in_every_shape_layout_and_type() {
    let machines = machines();
    let mut random = Random::new(2);
    for shape in SHAPES {
        for by_rows in layouts() {
            for (ty, low, high) in [("s8", -128, 127), ("u8", 0, 255)] {
                for satfinite in [false, true] {
                    let vm = any(&machines, &mut random);
                    integers(vm, &mut random, shape, by_rows, (ty, low, high), satfinite);
                }
            }
        }
    }
}

// covers: wmma.load.sub4 wmma.mma.sub4
#[test]
fn nibbles_in_every_layout_and_type() {
    let machines = machines();
    let mut random = Random::new(3);
    for count in 0..64 {
        let (ty, low, high) = if count & 1 == 0 { ("s4", -8, 7) } else { ("u4", 0, 15) };
        let by_rows = [true, false, count & 4 == 0, count & 8 == 0];
        let vm = any(&machines, &mut random);
        integers(vm, &mut random, (8, 8, 32), by_rows, (ty, low, high), count & 2 == 0);
    }
}

/// A product of integers, with C near the ends of its range in places.
fn integers(
    vm: &Machine,
    random: &mut Random,
    shape: (usize, usize, usize),
    by_rows: [bool; 4],
    (ty, low, high): (&'static str, i64, i64),
    satfinite: bool,
) {
    let types = ("s32", ty, "s32");
    let (place, strides) = anywhere(random);
    let case = Case { shape, types, by_rows, satfinite, place, strides };
    let (m, n, k) = shape;
    let a = table(m, k, || random.range(low, high));
    let b = table(k, n, || random.range(low, high));
    let c = table(m, n, || match random.range(0, 3) {
        0 => i64::from(i32::MAX) - random.range(0, 9),
        1 => i64::from(i32::MIN) + random.range(0, 9),
        _ => random.range(i32::MIN.into(), i32::MAX.into()),
    });
    let plain = |values: &[Vec<i64>]| bits_of(values, |x| encode(ty, x));
    let values = Values { a: plain(&a), b: plain(&b), c: bits_of(&c, |x| encode("s32", x)) };
    case.run(vm, &values, |i, j| {
        let sum = c[i][j] + dot(&a, &b, i, j);
        let kept = if satfinite { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
        u64::from(kept as u32)
    });
}

// covers: wmma.load.b1 wmma.mma.b1
#[test]
fn bits_differ_in_every_layout() {
    let machines = machines();
    let mut random = Random::new(4);
    for count in 0..32 {
        let by_rows = [true, false, count & 1 == 0, count & 2 == 0];
        let (place, strides) = anywhere(&mut random);
        let types = ("s32", "b1", "s32");
        let case = Case { shape: (8, 8, 128), types, by_rows, satfinite: false, place, strides };
        let a = table(8, 128, || random.range(0, 1));
        let b = table(128, 8, || random.range(0, 1));
        let c = table(8, 8, || random.range(i32::MAX as i64 - 100, i32::MAX.into()));
        let same = |values: &[Vec<i64>]| bits_of(values, |x| x as u64);
        let values = Values { a: same(&a), b: same(&b), c: same(&c) };
        case.run(any(&machines, &mut random), &values, |i, j| {
            let differ = (0..128).filter(|&k| a[i][k] != b[k][j]).count() as i64;
            u64::from((c[i][j] + differ) as u32)
        });
    }
}

// covers: wmma.mma.fp.satfinite
#[test]
fn satfinite_bounds_floats() {
    let machines = machines();
    let (one, inf, minus_inf) = (0x3c00, 0x7c00, 0xfc00);
    // Row 0 of A times any column of ones is +inf, row 1 -inf, row 2 NaN, row 3 16 * 30000 (beyond .f16), the
    // others 16.
    let row = |i: usize| match i {
        0 => [inf; 16],
        1 => [minus_inf; 16],
        2 => std::array::from_fn(|k| if k % 2 == 0 { inf } else { minus_inf }),
        3 => [u64::from(half(30000)); 16],
        _ => [one; 16],
    };
    for (dtype, satfinite) in [("f16", true), ("f16", false), ("f32", true), ("f32", false)] {
        let by_rows = [true; 4];
        let types = (dtype, "f16", "f32");
        let case =
            Case { shape: (16, 16, 16), types, by_rows, satfinite, place: Where::Global, strides: false };
        let values = Values {
            a: (0..16).map(|i| row(i).to_vec()).collect(),
            b: vec![vec![one; 16]; 16],
            c: vec![vec![0; 16]; 16],
        };
        for vm in &machines {
            case.run(vm, &values, |i, _| match (dtype, satfinite, i) {
                ("f16", true, 0 | 3) => 0x7bff,
                ("f16", true, 1) => 0xfbff,
                ("f16", false, 0 | 3) => inf,
                ("f16", false, 1) => minus_inf,
                ("f16", false, 2) => 0x7fff,
                ("f16", _, 4..) => half(16).into(),
                ("f32", true, 0) => f32::MAX.to_bits().into(),
                ("f32", true, 1) => f32::MIN.to_bits().into(),
                ("f32", false, 0) => f32::INFINITY.to_bits().into(),
                ("f32", false, 1) => f32::NEG_INFINITY.to_bits().into(),
                ("f32", false, 2) => 0x7fff_ffff,
                ("f32", _, 3) => 480_000_f32.to_bits().into(),
                ("f32", _, 4..) => 16_f32.to_bits().into(),
                _ => 0,
            });
        }
    }
}

/// Any halves: the manual bounds nothing but the precision of the steps. With single precision the sum of 17
/// terms is off by at most 17 roundings of 2^-24 of the sum of their magnitudes (half precision: 2^-11);
/// products of halves are exact in single.
#[test]
fn sums_of_any_halves_are_as_precise_as_promised() {
    let machines = machines();
    let mut random = Random::new(5);
    for (dtype, ctype, unit) in [("f32", "f32", 2f64.powi(-24)), ("f16", "f16", 2f64.powi(-11))] {
        let by_rows = [true, false, true, true];
        let types = (dtype, "f16", ctype);
        let case = Case {
            shape: (16, 16, 16),
            types,
            by_rows,
            satfinite: false,
            place: Where::Global,
            strides: false,
        };
        // Magnitudes from 2^-5 to 2^5, so that no sum is infinite.
        let mut number = || u64::from((random.next() as u16 & 0x83ff) | (random.range(10, 19) as u16) << 10);
        let mut bits = || (0..16).map(|_| (0..16).map(|_| number()).collect()).collect::<Bits>();
        let (a, b, c16) = (bits(), bits(), bits());
        let value = |bits: u64| of_half(bits as u16);
        let c = match ctype {
            "f16" => c16.clone(),
            _ => {
                c16.iter().map(|l| l.iter().map(|x| (value(*x) as f32).to_bits().into()).collect()).collect()
            }
        };
        let values = Values { a: a.clone(), b: b.clone(), c };
        for vm in &machines {
            let (image, places) = case.execute(vm, &values);
            for i in 0..16 {
                for j in 0..16 {
                    let terms: Vec<f64> =
                        (0..16).map(|k| value(a[i][k]) * value(b[k][j])).chain([value(c16[i][j])]).collect();
                    let (sum, size) = (terms.iter().sum::<f64>(), terms.iter().map(|t| t.abs()).sum::<f64>());
                    let at = places[3].offset + (i * 16 + j) * places[3].bits / 8;
                    let have = match dtype {
                        "f16" => of_half(u16::from_le_bytes([image.1[at], image.1[at + 1]])),
                        _ => f32::from_le_bytes(image.1[at..at + 4].try_into().expect("four bytes")).into(),
                    };
                    assert!(
                        (have - sum).abs() <= 17.0 * unit * size,
                        "{dtype} ({i}, {j}): {have}, not {sum}"
                    );
                }
            }
        }
    }
}

/// What a program may do with fragments: the same to every register. A is doubled, D goes in again as C.
// covers: wmma.fragment
#[test]
fn fragments_can_be_scaled_and_reused() {
    let machines = machines();
    let text = ".version 6.4
.target sm_72
.address_size 64
.global .align 64 .b8 done[1024];
.visible .entry run(.param .u64 image)
{
    .reg .b64 %p;
    .reg .b32 %a<2>, %b<2>, %d<8>, %i;
    .reg .pred %more;
    ld.param.u64 %p, [image];
    wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%a0, %a1}, [%p];
    wmma.load.b.sync.aligned.row.m16n16k16.global.s8 {%b0, %b1}, [%p+256];
    mov.u32 %d0, 1; mov.u32 %d1, 1; mov.u32 %d2, 1; mov.u32 %d3, 1;
    mov.u32 %d4, 1; mov.u32 %d5, 1; mov.u32 %d6, 1; mov.u32 %d7, 1;
    shl.b32 %a0, %a0, 1;
    shl.b32 %a1, %a1, 1;
    mov.u32 %i, 0;
AGAIN:
    wmma.mma.sync.aligned.row.row.m16n16k16.s32.s8.s8.s32
        {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, {%a0, %a1}, {%b0, %b1}, {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7};
    add.u32 %i, %i, 1;
    setp.lt.u32 %more, %i, 3;
    @%more bra AGAIN;
    wmma.store.d.sync.aligned.col.m16n16k16.s32 [done], {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7};
    wmma.load.c.sync.aligned.col.m16n16k16.s32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, [done], 16;
    wmma.store.d.sync.aligned.row.m16n16k16.global.s32 [%p+512], {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7};
    ret;
}
";
    let mut random = Random::new(6);
    let (a, b) = (table(16, 16, || random.range(0, 7)), table(16, 16, || random.range(-9, 9)));
    let mut image: Vec<u8> = a.iter().chain(&b).flatten().map(|x| *x as u8).collect();
    image.resize(512 + 1024, 0);
    for vm in &machines {
        let buffer = vm.buffer(&image).expect("a buffer");
        let module = vm.load("scale.ptx", text).unwrap_or_else(|e| panic!("{e}"));
        let kernel = module.kernel("run").expect("the kernel");
        // Two warps do the same.
        let launch = Launch::new([1, 1, 1], [64, 1, 1])
            .threads(1)
            .engine(vm.engine)
            .args(&kernel, &[Arg::buffer(&buffer)]);
        vm.launch(&kernel, &launch.expect("arguments")).unwrap_or_else(|e| panic!("{e}"));
        let after = buffer.read().expect("the image");
        for i in 0..16 {
            for j in 0..16 {
                let at = 512 + (i * 16 + j) * 4;
                let have = i32::from_le_bytes(after[at..at + 4].try_into().expect("four bytes"));
                assert_eq!(i64::from(have), 1 + 3 * 2 * dot(&a, &b, i, j), "({i}, {j})");
            }
        }
    }
}
