//! Containment of kernels: accesses outside of the kernel's memory, in each state space, of each width and in
//! each form for which native code has checks, end in a trap. Canaries around the memory and in host memory
//! must be unchanged. See SECURITY.md.
//!
//! Both engines report the same trap: kind, line, thread and address.

use ptxvm::{Arg, Buffer, Cpu, Engine, ErrorKind, Kernel, Launch, Options, Vm};

/// Bytes of the memory that a kernel may use: 16 for each of 32 lanes.
const BYTES: u64 = 512;
/// What all memory around is filled with, in the device and in the host.
const CANARY: u64 = 0x5ca1_ab1e_0ddb_a115;

/// Where the memory lies that accesses aim at, and the space of the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// A buffer of the host.
    Buffer,
    /// A variable of that space.
    Shared,
    Local,
    Const,
}

/// How the addresses of a warp's lanes depend on the lane: native code compares each with bounds in its own
/// way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// All the same.
    Same,
    /// A constant distance apart.
    Row,
    /// A distance apart that is a parameter.
    Stride,
    /// Read from a table.
    Each,
}

/// Instructions, with `SPACE` and `[a]` for where they access.
const LOADS: &[&str] = &[
    "ld.SPACE.u8 %r10, [a];",
    "ld.SPACE.u16 %r10, [a];",
    "ld.SPACE.u32 %r10, [a];",
    "ld.SPACE.u64 %rd10, [a];",
    "ld.SPACE.v2.u32 {%r10, %r11}, [a];",
    "ld.SPACE.v4.u32 {%r10, %r11, %r12, %r13}, [a];",
    "ld.SPACE.v2.u64 {%rd10, %rd11}, [a];",
];
const STORES: &[&str] = &[
    "st.SPACE.u8 [a], %r1;",
    "st.SPACE.u16 [a], %r1;",
    "st.SPACE.u32 [a], %r1;",
    "st.SPACE.u64 [a], %rd1;",
    "st.SPACE.v2.u32 [a], {%r1, %r1};",
    "st.SPACE.v4.u32 [a], {%r1, %r1, %r1, %r1};",
    "st.SPACE.v2.u64 [a], {%rd1, %rd1};",
];
const ATOMICS: &[&str] = &[
    "atom.SPACE.add.u32 %r10, [a], %r1;",
    "atom.SPACE.cas.b64 %rd10, [a], %rd1, %rd1;",
    "red.SPACE.add.u32 [a], %r1;",
    "red.SPACE.max.u64 [a], %rd1;",
];

fn instructions(space: &str, home: Home) -> Vec<String> {
    let atomics = if home == Home::Local { &[] } else { ATOMICS };
    let stores = if space == "const" { [&[][..], &[]] } else { [STORES, atomics] };
    [LOADS, stores[0], stores[1]].concat().iter().map(|text| text.replace("SPACE.", &dot(space))).collect()
}

/// The space's part of an instruction: generic accesses name none.
fn dot(space: &str) -> String {
    if space == "generic" { String::new() } else { format!("{space}.") }
}

/// A kernel that executes the instruction of the number `op` with addresses of that shape from `at` on: an
/// address in a buffer, or an offset in a variable.
fn text(space: &str, home: Home, shape: Shape) -> String {
    let name = |home| match home {
        Home::Buffer => "",
        Home::Shared => "shared",
        Home::Local => "local",
        Home::Const => "const",
    };
    let variable = match (home, space) {
        (Home::Buffer, _) => String::new(),
        (_, "generic") => {
            format!("mov.u64 %rd4, own; cvta.{}.u64 %rd4, %rd4; add.u64 %rd2, %rd2, %rd4;", name(home))
        }
        _ => "mov.u64 %rd4, own; add.u64 %rd2, %rd2, %rd4;".to_owned(),
    };
    let lanes = match shape {
        Shape::Same => "",
        Shape::Row => "mul.wide.u32 %rd5, %r1, 16; add.u64 %rd2, %rd2, %rd5;",
        Shape::Stride => "mul.wide.u32 %rd5, %r1, %r2; add.u64 %rd2, %rd2, %rd5;",
        Shape::Each => {
            "mul.wide.u32 %rd5, %r1, 8; add.u64 %rd5, %rd3, %rd5; ld.global.u64 %rd5, [%rd5]; add.u64 %rd2, %rd2, %rd5;"
        }
    };
    let declared = |kind: &str| format!(".{kind} .align 16 .b8 own[{BYTES}];\n");
    let (global, inner) = match home {
        Home::Buffer => (String::new(), String::new()),
        Home::Const => (declared("const"), String::new()),
        Home::Shared | Home::Local => (String::new(), declared(name(home))),
    };
    let mut body = String::new();
    for (op, instruction) in instructions(space, home).iter().enumerate() {
        let instruction = instruction.replace("[a]", "[%rd2]");
        body += &format!(
            "setp.ne.u32 %p1, %r3, {op}; @%p1 bra after{op};\n{instruction}\nbra done;\nafter{op}:\n"
        );
    }
    format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n{global}\
         .visible .entry k(.param .u64 at, .param .u64 table, .param .u64 out, .param .u32 stride, .param .u32 op)\n{{\n\
         {inner}.reg .pred %p<2>; .reg .b32 %r<16>; .reg .b64 %rd<16>;\n\
         ld.param.u64 %rd2, [at]; ld.param.u64 %rd3, [table]; ld.param.u32 %r2, [stride]; ld.param.u32 %r3, [op];\n\
         mov.u32 %r1, %tid.x; cvt.u64.u32 %rd1, %r1;\n{variable}\n{lanes}\n{body}done:\n\
         add.u32 %r10, %r10, %r11; add.u32 %r10, %r10, %r12; add.u32 %r10, %r10, %r13; cvt.u64.u32 %rd12, %r10;\n\
         add.u64 %rd10, %rd10, %rd11; add.u64 %rd10, %rd10, %rd12;\n\
         ld.param.u64 %rd6, [out]; mul.wide.u32 %rd7, %r1, 8; add.u64 %rd6, %rd6, %rd7; st.global.u64 [%rd6], %rd10;\n\
         ret;\n}}\n"
    )
}

/// The device, with canaries on both sides of the memory that kernels may use.
struct Lab {
    vm: Vm,
    before: Buffer<u64>,
    target: Buffer<u64>,
    after: Buffer<u64>,
    table: Buffer<u64>,
    out: Buffer<u64>,
    /// The host's own.
    host: Vec<u64>,
}

impl Lab {
    fn new(cpu: Option<Cpu>) -> Option<Self> {
        let vm = Vm::with(Options { cpu, ..Options::default() }).ok()?;
        let words = BYTES as usize / 8;
        let canaries = || vm.buffer(&vec![CANARY; words]).expect("memory");
        let (before, target, after) = (canaries(), canaries(), canaries());
        let table = vm.zeros(32).expect("memory");
        let out = vm.zeros(32).expect("memory");
        // Large enough to be a mapping of its own.
        let host = vec![CANARY; 1 << 20];
        Some(Self { vm, before, target, after, table, out, host })
    }

    /// Addresses that no kernel was given, as distances from memory that begins there.
    fn outside(&self, start: u64) -> Vec<u64> {
        let mut all: Vec<u64> =
            vec![BYTES, BYTES + 16, BYTES + 4096, 0_u64.wrapping_sub(16), 0_u64.wrapping_sub(256)];
        // What would be inside if bits were lost.
        all.extend([31, 32, 33, 40, 47, 48, 63].map(|bit| 1 << bit));
        let host = self.host.as_ptr().addr() as u64;
        let stack = (&raw const all).addr() as u64;
        let code = Lab::outside as *const () as usize as u64;
        let mut absolute = vec![
            0,
            16,
            u64::MAX - 15,
            host & !15,
            (host & !15) + 16,
            (host & !15) + (4 << 20),
            stack & !15,
            code & !15,
        ];
        // Throughout the device's range, and around it.
        let device = self.target.address();
        absolute.extend((1..=72).map(|n| device.wrapping_sub(n << 29) & !15));
        absolute.extend((1..=72).map(|n| device.wrapping_add(n << 30) & !15));
        all.extend(absolute.into_iter().map(|address| address.wrapping_sub(start)));
        // Offsets in a variable begin at zero.
        all.retain(|far| *far >= BYTES);
        all
    }

    fn launch(&self, kernel: &Kernel, engine: Engine, (at, op): (u64, usize)) -> Result<(), String> {
        let args = [
            Arg::from(at),
            Arg::buffer(&self.table),
            Arg::buffer(&self.out),
            Arg::from(16u32),
            Arg::from(op as u32),
        ];
        let launch = Launch::new([1, 1, 1], [32, 1, 1]).threads(1).engine(engine);
        trapped(&self.vm, kernel, &launch.args(kernel, &args).expect("arguments that fit"))
    }

    /// Whether everything around is as it was, and the memory itself too.
    fn check(&self, what: &str) {
        let words = vec![CANARY; BYTES as usize / 8];
        for (name, buffer) in [("before", &self.before), ("target", &self.target), ("after", &self.after)] {
            assert_eq!(buffer.read().expect("memory"), words, "{name}: {what}");
        }
    }

    fn check_host(&self) {
        assert!(self.host.iter().all(|word| *word == CANARY), "memory of the host");
    }
}

/// Launches; the error is what the trap says.
fn trapped(vm: &Vm, kernel: &Kernel, launch: &Launch) -> Result<(), String> {
    let Err(error) = vm.launch(kernel, launch) else { return Ok(()) };
    let ErrorKind::Trap(trap, _) = error.kind() else { panic!("{error}") };
    let access = trap.access.as_ref().map(|a| (a.address, a.bytes, a.space.name(), a.write));
    Err(format!("{} line {} thread {:?} {access:?}", trap.kind.word(), trap.line, trap.tid))
}

/// The engines: the interpreter first.
fn engines() -> &'static [Engine] {
    if cfg!(feature = "jit") { &[Engine::Interp, Engine::Jit] } else { &[Engine::Interp] }
}

/// Every access outside in every form, for one home.
fn attack(lab: &Lab, space: &str, home: Home, shapes: &[Shape]) {
    for shape in shapes {
        let text = text(space, home, *shape);
        let module = lab.vm.load("attack.ptx", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let kernel = module.kernel("k").expect("the kernel");
        let start = if home == Home::Buffer { lab.target.address() } else { 0 };
        // Windows lie elsewhere in each launch, and so do generic addresses in them.
        let moves = space == "generic" && matches!(home, Home::Shared | Home::Local);
        let inside: Vec<u64> = (0..32).map(|lane| lane * 16).collect();
        for (op, instruction) in instructions(space, home).iter().enumerate() {
            let writes_constant = home == Home::Const && op >= LOADS.len();
            lab.table.write(&inside).expect("memory");
            for engine in engines() {
                let what = format!("{instruction} {home:?} {shape:?} {engine:?}");
                let ended = lab.launch(&kernel, *engine, (start, op));
                assert_eq!(ended.is_err(), writes_constant, "{what}: inside: {ended:?}");
            }
            lab.target.write(&vec![CANARY; BYTES as usize / 8]).expect("memory");
            for (number, far) in lab.outside(start).into_iter().enumerate() {
                // All lanes together, or one of them; of rows that stand at the end, the last lane alone.
                let at = match shape {
                    Shape::Same => start.wrapping_add(far),
                    Shape::Row | Shape::Stride if far == BYTES => start + 16,
                    Shape::Row | Shape::Stride => start.wrapping_add(far),
                    Shape::Each => {
                        let mut table = inside.clone();
                        table[number * 7 % 32] = far;
                        lab.table.write(&table).expect("memory");
                        start
                    }
                };
                let mut expected = None;
                for engine in engines() {
                    let what =
                        format!("{instruction} {home:?} {shape:?} {engine:?}, {far:#x} behind the start");
                    let Err(mut trap) = lab.launch(&kernel, *engine, (at, op)) else {
                        panic!("{what}: no trap");
                    };
                    if moves {
                        trap.truncate(trap.find(" Some").unwrap_or(trap.len()));
                    }
                    assert_eq!(expected.get_or_insert(trap.clone()), &trap, "{what}: the engines differ");
                    lab.check(&what);
                }
            }
        }
    }
    lab.check_host();
}

const SHAPES: &[Shape] = &[Shape::Same, Shape::Row, Shape::Stride, Shape::Each];

/// On this machine's processor, and on any.
fn labs() -> impl Iterator<Item = (Lab, &'static [Shape])> {
    let baseline: &[Shape] = &[Shape::Row, Shape::Each];
    [(None, SHAPES), (Some(Cpu::Baseline), baseline)]
        .into_iter()
        .filter_map(|(cpu, shapes)| Some((Lab::new(cpu)?, shapes)))
}

#[test]
fn global_memory() {
    for (lab, shapes) in labs() {
        attack(&lab, "global", Home::Buffer, shapes);
    }
}

#[test]
fn generic_addresses_of_global_memory() {
    for (lab, shapes) in labs() {
        attack(&lab, "generic", Home::Buffer, shapes);
    }
}

#[test]
fn shared_memory() {
    for (lab, shapes) in labs() {
        attack(&lab, "shared", Home::Shared, shapes);
    }
}

#[test]
fn generic_addresses_of_shared_memory() {
    for (lab, shapes) in labs() {
        attack(&lab, "generic", Home::Shared, shapes);
    }
}

#[test]
fn local_memory() {
    for (lab, shapes) in labs() {
        attack(&lab, "local", Home::Local, shapes);
    }
}

#[test]
fn generic_addresses_of_local_memory() {
    for (lab, shapes) in labs() {
        attack(&lab, "generic", Home::Local, shapes);
    }
}

#[test]
fn constant_memory() {
    for (lab, shapes) in labs() {
        attack(&lab, "const", Home::Const, shapes);
        attack(&lab, "generic", Home::Const, shapes);
    }
}

/// Freed memory is inaccessible, although its addresses stay mapped.
#[test]
fn freed_memory() {
    let lab = Lab::new(None).expect("a device");
    let module = lab.vm.load("freed.ptx", &text("global", Home::Buffer, Shape::Row)).expect("a module");
    let kernel = module.kernel("k").expect("the kernel");
    for engine in engines() {
        let freed = lab.vm.buffer(&[CANARY; 64]).expect("memory");
        let at = freed.address();
        assert_eq!(lab.launch(&kernel, *engine, (at, 0)), Ok(()));
        drop(freed);
        for op in 0..instructions("global", Home::Buffer).len() {
            assert!(lab.launch(&kernel, *engine, (at, op)).is_err(), "{engine:?} {op}");
        }
    }
    lab.check("freed");
}

/// Loops whose addresses advance until they are out of bounds: native code checks many iterations and many
/// warps at once, delays additions, and prefetches. `STEP` is what an iteration does with `%rd2`, the address
/// of the thread in iteration `%r5`.
const LOOPS: &[&str] = &[
    "ld.global.u32 %r10, [%rd2]; add.u32 %r11, %r11, %r10;",
    "st.global.u32 [%rd2], %r1;",
    "ld.global.u32 %r10, [%rd2]; add.u32 %r10, %r10, 1; st.global.u32 [%rd2], %r10;",
    "red.global.add.u32 [%rd2], 1;",
    "atom.global.add.u32 %r10, [%rd2], 1; add.u32 %r11, %r11, %r10;",
    "bar.sync 0; st.global.u32 [%rd2], %r5; bar.sync 0;",
    "ld.global.u32 %r10, [%rd2]; st.shared.u32 [%rd9], %r10; bar.sync 0; ld.shared.u32 %r10, [%rd9]; add.u32 %r11, %r11, %r10;",
    "and.b32 %r12, %r5, 3; setp.ne.u32 %p2, %r12, 3; @%p2 st.global.u32 [%rd2], %r5;",
    "setp.lt.u32 %p2, %r1, 20; @%p2 ld.global.u32 %r10, [%rd2]; add.u32 %r11, %r11, %r10;",
];

fn loop_text(step: &str) -> String {
    format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 at, .param .u64 stride, .param .u32 turns, .param .u64 out)\n{{\n\
         .shared .align 4 .b8 tile[4096];\n\
         .reg .pred %p<3>; .reg .b32 %r<16>; .reg .b64 %rd<16>;\n\
         ld.param.u64 %rd2, [at]; ld.param.u64 %rd3, [stride]; ld.param.u32 %r4, [turns]; ld.param.u64 %rd8, [out];\n\
         mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd2, %rd2, %rd4;\n\
         mov.u64 %rd9, tile; add.u64 %rd9, %rd9, %rd4;\n\
         again:\n{step}\n\
         add.u64 %rd2, %rd2, %rd3; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r4; @%p1 bra again;\n\
         and.b32 %r1, %r1, 31; mul.wide.u32 %rd4, %r1, 8; add.u64 %rd8, %rd8, %rd4; st.global.u32 [%rd8], %r11;\n\
         ret;\n}}\n"
    )
}

#[test]
fn loops_that_leave_the_memory() {
    for (lab, _) in labs() {
        for step in LOOPS {
            let module = lab.vm.load("loop.ptx", &loop_text(step)).unwrap_or_else(|error| panic!("{error}"));
            let kernel = module.kernel("k").expect("the kernel");
            for block in [1u32, 32, 64, 128] {
                // Up and down, in steps of a row, of the block, of a multiple of it, and in steps that wrap
                // around.
                for stride in [u64::from(block) * 4, 64, 4, 4096, 1 << 40, 64_u64.wrapping_neg(), 1 << 63] {
                    let start = lab.target.address() + if stride >> 62 == 3 { BYTES - 512 } else { 0 };
                    let mut expected = None;
                    for engine in engines() {
                        lab.target.write(&[CANARY; BYTES as usize / 8]).expect("memory");
                        let args = [
                            Arg::from(start),
                            Arg::from(stride),
                            Arg::from(10_000u32),
                            Arg::buffer(&lab.out),
                        ];
                        let launch = Launch::new([1, 1, 1], [block, 1, 1]).threads(1).engine(*engine);
                        let launch = launch.args(&kernel, &args).expect("arguments that fit");
                        let ended = trapped(&lab.vm, &kernel, &launch);
                        let what =
                            format!("{step} {block} threads, steps of {stride:#x}, {engine:?}: {ended:?}");
                        // Some conditions skip the iterations in which a step wraps around.
                        assert!(ended.is_err() || stride == 1 << 63, "{what}");
                        assert_eq!(expected.get_or_insert(ended.clone()), &ended, "{what}");
                        lab.target.write(&[CANARY; BYTES as usize / 8]).expect("memory");
                        lab.check(&what);
                    }
                }
            }
        }
        lab.check_host();
    }
}

/// Numbers that are no addresses of memory, but of functions, blocks, barriers, strings and what `malloc`
/// gave.
const OTHERS: &str = r#".version 7.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 list);
.extern .func (.param .b64 r) malloc(.param .b64 bytes);
.extern .func free(.param .b64 p);
.global .align 8 .u64 result;
.func (.param .u32 r) f(.param .u32 x) { .reg .b32 %r; ld.param.u32 %r, [x]; st.param.u32 [r], %r; ret; }
.visible .entry call_to(.param .u64 x)
{
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    mov.u64 %rd2, f;
    add.u64 %rd1, %rd1, %rd2;
    { .param .u32 a; .param .u32 r; st.param.u32 [a], %r1;
      proto: .callprototype (.param .u32 _) _ (.param .u32 _);
      call (r), %rd1, (a), proto; ld.param.u32 %r2, [r]; }
    st.global.u32 [result], %r2;
    ret;
}
.visible .entry branch_to(.param .u64 x)
{
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    cvt.u32.u64 %r1, %rd1;
    targets: .branchtargets one, two;
    brx.idx %r1, targets;
one: st.global.u32 [result], 1; ret;
two: st.global.u32 [result], 2; ret;
}
.visible .entry barrier_at(.param .u64 x)
{
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    cvt.u32.u64 %r1, %rd1;
    bar.sync %r1;
    ret;
}
.visible .entry barrier_of(.param .u64 x)
{
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    cvt.u32.u64 %r1, %rd1;
    bar.sync 1, %r1;
    ret;
}
.visible .entry print(.param .u64 x)
{
    .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    { .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %rd1; st.param.b64 [b], %rd1;
      call (r), vprintf, (a, b); }
    ret;
}
.visible .entry give_back(.param .u64 x)
{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    { .param .b64 a; st.param.b64 [a], %rd1; call free, (a); }
    ret;
}
.visible .entry ask_for(.param .u64 x)
{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [x];
    { .param .b64 a; .param .b64 r; st.param.b64 [a], %rd1; call (r), malloc, (a); ld.param.b64 %rd2, [r]; }
    st.global.u64 [result], %rd2;
    ret;
}
"#;

#[test]
fn functions_blocks_barriers_strings_and_the_heap() {
    let lab = Lab::new(None).expect("a device");
    let module = lab.vm.load("others.ptx", OTHERS).unwrap_or_else(|error| panic!("{error}"));
    let host = lab.host.as_ptr().addr() as u64;
    let code = trapped as *const () as usize as u64;
    let device = lab.target.address();
    let cases: &[(&str, &[u64], &str)] = &[
        ("call_to", &[1, 16, 1 << 20, 1 << 32, host, code, u64::MAX], "bad_call"),
        ("branch_to", &[2, 3, 1 << 31, 0xffff_ffff], "bad_branch_index"),
        ("barrier_at", &[16, 17, 255, 1 << 31, 0xffff_ffff], "bad_barrier"),
        ("barrier_of", &[1, 31, 33, 0xffff_ffff], "bad_barrier"),
        ("print", &[0, 8, host, code, u64::MAX, device + BYTES], "illegal_address"),
        ("give_back", &[1, host, code, device, device + 8, u64::MAX], "illegal_address"),
    ];
    for (name, values, kind) in cases {
        let kernel = module.kernel(name).expect("the kernel");
        for value in *values {
            let mut expected = None;
            for engine in engines() {
                let launch = Launch::new([1, 1, 1], [32, 1, 1]).threads(1).engine(*engine);
                let launch = launch.args(&kernel, &[Arg::from(*value)]).expect("arguments that fit");
                let ended = trapped(&lab.vm, &kernel, &launch);
                let what = format!("{name} {value:#x} {engine:?}: {ended:?}");
                assert!(ended.as_ref().is_err_and(|trap| trap.starts_with(kind)), "{what}");
                assert_eq!(expected.get_or_insert(ended.clone()), &ended, "{what}: the engines differ");
            }
        }
    }
    let kernel = module.kernel("ask_for").expect("the kernel");
    for bytes in [1 << 31, 1 << 40, 1 << 63, u64::MAX - 255, u64::MAX] {
        for engine in engines() {
            let launch = Launch::new([1, 1, 1], [1, 1, 1]).threads(1).engine(*engine);
            let launch = launch.args(&kernel, &[Arg::from(bytes)]).expect("arguments that fit");
            assert_eq!(trapped(&lab.vm, &kernel, &launch), Ok(()));
            let mut result = [1; 8];
            lab.vm.read(module.global("result").expect("the variable").0, &mut result).expect("its bytes");
            assert_eq!(result, [0; 8], "malloc of {bytes:#x} finds no room");
        }
    }
    lab.check("others");
    lab.check_host();
}
