//! Launches of small PTX programs: placement of variables, refused launches, and trap reports.

use ptx::check::CheckOptions;
use ptx_exec::launch::{Kernel, LaunchConfig, LaunchError, LoadError, LoadedModule};
use ptx_exec::mem::{Class, Memory};
use ptx_exec::trap::{FaultKind, Trap};
use std::sync::Arc;

const HEADER: &str = ".version 6.4\n.target sm_70\n.address_size 64\n";

fn load(text: &str) -> Result<Arc<LoadedModule>, LoadError> {
    let checked = ptx::check::check("test.ptx", text, &CheckOptions::default());
    let errors: Vec<_> = checked.diagnostics.iter().map(|d| &d.message).collect();
    let program = Arc::new(ptx::ir::lower(checked.module.unwrap_or_else(|| panic!("rejected: {errors:?}"))));
    let memory = Memory::new(program.address_size).expect("an address range");
    LoadedModule::load(&memory, program)
}

/// The only kernel of a text.
fn kernel(body: &str) -> Kernel {
    kernel_of(&format!("{HEADER}{body}"))
}

fn kernel_of(text: &str) -> Kernel {
    let module = load(text).expect("loads");
    let (id, _) = module.kernels().next().expect("a kernel");
    Kernel::bind(&module, id).expect("bound")
}

fn config(block: u32, params: &[u64]) -> LaunchConfig {
    let params = params.iter().flat_map(|p| p.to_le_bytes()).collect();
    LaunchConfig { params, threads: Some(1), ..LaunchConfig::new([1, 1, 1], [block, 1, 1]) }
}

fn array(kernel: &Kernel, words: u64) -> u64 {
    kernel.module().memory().alloc(Class::Global, 4 * words, 4, "buffer #0 (argument 0)").expect("memory")
}

fn words(kernel: &Kernel, address: u64, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; 4 * count];
    kernel.module().memory().read(address, &mut bytes).expect("in bounds");
    bytes.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn trap(kernel: &Kernel, config: &LaunchConfig) -> Trap {
    match kernel.launch(config) {
        Err(LaunchError::Trap(trap, _)) => *trap,
        other => panic!("no trap: {other:?}"),
    }
}

/// Stores `tid` to `out[tid]`.
const STORE_TID: &str = "
.visible .entry store_tid(.param .u64 out) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}";

#[test]
fn a_launch_counts_what_it_did() {
    let kernel = kernel(STORE_TID);
    let out = array(&kernel, 40);
    let report = kernel.launch(&config(40, &[out])).expect("runs");
    assert_eq!(words(&kernel, out, 40), (0..40).collect::<Vec<_>>());
    // Six instructions in each of two warps, of 32 and 8 lanes.
    assert_eq!((report.steps, report.thread_instructions), (12, 240));
    assert_eq!((report.threads, report.output.len()), (1, 0));
}

// covers: mach.resource_limits dir.maxntid
#[test]
fn what_does_not_fit_is_refused_before_anything_runs() {
    let kernel = kernel(&STORE_TID.replace("(.param .u64 out)", "(.param .u64 out) .maxntid 64, 2, 1"));
    let out = array(&kernel, 64);
    let ok = config(1, &[out]);
    let refused = |change: &dyn Fn(&mut LaunchConfig), word: &str| {
        let mut config = ok.clone();
        change(&mut config);
        match kernel.launch(&config) {
            Err(LaunchError::Invalid(why)) => assert!(why.contains(word), "{why}"),
            other => panic!("not refused: {other:?}"),
        }
    };
    refused(&|c| c.grid = [0, 1, 1], "no threads");
    refused(&|c| c.block = [1, 0, 1], "no threads");
    refused(&|c| c.block = [1025, 1, 1], "1024 threads");
    refused(&|c| c.block = [1, 1, 65], "64 in z");
    refused(&|c| c.block = [u32::MAX; 3], "1024 threads");
    refused(&|c| c.grid = [1 << 31, 1, 1], "2147483647");
    refused(&|c| c.grid = [1, 65536, 1], "65535");
    refused(&|c| c.block = [129, 1, 1], "`.maxntid` allows CTAs of 128");
    refused(&|c| c.dynamic_shared = 300_000, "300000 bytes of shared memory");
    refused(&|c| c.params = vec![0; 4], "8 bytes of parameters, but 4");
    assert!(kernel.launch(&ok).is_ok());
    assert_eq!(words(&kernel, out, 2), [0, 0]);
}

#[test]
fn any_number_of_threads_may_be_asked_for() {
    let kernel = kernel(STORE_TID);
    let out = array(&kernel, 32);
    let mut config = config(32, &[out]);
    (config.grid, config.threads) = ([5000, 1, 1], Some(u32::MAX));
    kernel.launch(&config).expect("runs");
    assert_eq!(words(&kernel, out, 32), (0..32).collect::<Vec<_>>());
}

// covers: dir.reqntid
#[test]
fn a_required_cta_shape_is_required() {
    let kernel = kernel(".visible .entry k() .reqntid 4, 2 { ret; }");
    let shape =
        |block| kernel.launch(&LaunchConfig { threads: Some(1), ..LaunchConfig::new([1, 1, 1], block) });
    assert!(shape([4, 2, 1]).is_ok());
    assert!(matches!(shape([8, 1, 1]), Err(LaunchError::Invalid(why)) if why.contains("4x2x1")));
}

#[test]
fn an_illegal_store_is_reported_in_full() {
    let kernel = kernel(STORE_TID);
    let out = array(&kernel, 40);
    let mut config = config(40, &[out + 16]);
    config.grid = [3, 1, 1];
    let trap = trap(&kernel, &config);
    assert_eq!(trap.kind, FaultKind::IllegalAddress);
    assert_eq!(
        (trap.kernel.as_str(), trap.function.as_str(), trap.file.as_str()),
        ("store_tid", "store_tid", "test.ptx")
    );
    assert_eq!((trap.line, trap.instruction.as_str()), (12, "st.global.u32 [%rd3], %r1;"));
    assert_eq!((trap.ctaid, trap.tid, trap.warp, trap.lane), ([0, 0, 0], [36, 0, 0], 1, 4));
    let access = trap.access.expect("an access");
    assert_eq!((access.address, access.bytes, access.write), (out + 160, 4, true));
    let nearest = trap.nearest.expect("prose");
    assert!(nearest.starts_with("buffer #0 (argument 0), 160 bytes"), "{nearest}");
}

// covers: mach.persistence var.init_func var.init_generic var.init_addr
#[test]
fn global_and_constant_variables_are_initialised_and_linked() {
    let kernel = kernel(
        ".visible .func (.param .b32 r) seven() { st.param.b32 [r], 7; ret; }
.global .align 4 .u32 numbers[4] = {10, 20, 30};
.const .align 8 .u64 table[3] = {generic(numbers), numbers+8, seven};
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<5>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    ld.const.u64 %rd2, [table];
    ld.u32 %r1, [%rd2+4];
    ld.const.u64 %rd3, [table+8];
    ld.global.u32 %r2, [%rd3];
    ld.const.u64 %rd4, [table+16];
    {
        .param .b32 p;
        proto: .callprototype (.param .b32 _) _ ();
        call (p), %rd4, (), proto;
        ld.param.b32 %r3, [p];
    }
    st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r3};
    st.global.u32 [numbers+4], 21;
    ret;
}",
    );
    let out = kernel.module().memory().alloc(Class::Global, 16, 16, "out").expect("memory");
    kernel.launch(&config(1, &[out])).expect("runs");
    assert_eq!(words(&kernel, out, 4), [20, 30, 7, 7]);
    // Variables keep the values of the launch before.
    kernel.launch(&config(1, &[out])).expect("runs");
    assert_eq!(words(&kernel, out, 4), [21, 30, 7, 7]);
}

#[test]
fn variables_are_freed_with_their_module() {
    let module = load(&format!("{HEADER}.global .u32 x;\n.visible .entry k() {{ ret; }}")).expect("loads");
    let memory = Arc::clone(module.memory());
    let at = module.variable(ptx::check::module::VarId(0)).expect("placed");
    assert_eq!(memory.allocation_at(at), Some(at..at + 4));
    drop(module);
    assert_eq!(memory.allocation_at(at), None);
}

#[test]
fn an_undefined_external_variable_is_refused_at_load() {
    let error =
        load(&format!("{HEADER}.extern .global .u32 elsewhere;\n.visible .entry k() {{ ret; }}")).err();
    assert_eq!(error, Some(LoadError::Undefined { name: "elsewhere".to_owned(), line: 4 }));
}

#[test]
fn shared_variables_are_laid_out_for_the_kernel_that_uses_them() {
    let kernel = kernel(
        ".shared .align 4 .b8 unused[100000];
.shared .align 1 .b8 odd[3];
.shared .align 8 .u64 even;
.extern .shared .align 4 .b8 dynamic[];
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<5>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, odd;
    mov.u32 %r2, even;
    mov.u32 %r3, dynamic;
    mov.u32 %r4, %dynamic_smem_size;
    st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
    st.shared.u32 [dynamic+8], %r1;
    ret;
}",
    );
    let out = kernel.module().memory().alloc(Class::Global, 16, 16, "out").expect("memory");
    let mut config = config(1, &[out]);
    config.dynamic_shared = 12;
    kernel.launch(&config).expect("runs");
    let [odd, even, dynamic, size] = words(&kernel, out, 4)[..] else { panic!("four words") };
    assert_eq!((odd, even, dynamic, size), (0, 8, 16, 12));
    config.dynamic_shared = 8;
    let trap = trap(&kernel, &config);
    assert_eq!(trap.line, 17);
    assert_eq!(
        trap.nearest.as_deref(),
        Some("dynamic shared variable `dynamic`, 8 bytes at 0x10; the address is 0 bytes past its end")
    );
}

#[test]
fn thirty_two_bit_modules_run() {
    let text = format!("{}{}", HEADER.replace("64\n", "32\n"), STORE_TID)
        .replace(".u64 out", ".u32 out")
        .replace("ld.param.u64 %rd1", "ld.param.u32 %r2")
        .replace(".reg .b32 %r<2>", ".reg .b32 %r<4>")
        .replace("mul.wide.u32 %rd2, %r1, 4", "shl.b32 %r3, %r1, 2")
        .replace("add.s64 %rd3, %rd1, %rd2", "add.u32 %r3, %r2, %r3")
        .replace("[%rd3]", "[%r3]");
    let kernel = kernel_of(&text);
    let out = array(&kernel, 33);
    assert!(out < 1 << 32);
    let mut config = config(33, &[]);
    config.params = (out as u32).to_le_bytes().to_vec();
    kernel.launch(&config).expect("runs");
    assert_eq!(words(&kernel, out, 33), (0..33).collect::<Vec<_>>());
    config.block = [34, 1, 1];
    assert_eq!(trap(&kernel, &config).tid, [33, 0, 0]);
}

#[test]
fn a_module_needs_a_memory_of_its_width() {
    let program = load(&format!("{HEADER}{STORE_TID}")).expect("loads").program().clone();
    let narrow = Memory::new(ptx::check::module::AddressSize::Bits32).expect("an address range");
    assert!(matches!(LoadedModule::load(&narrow, program), Err(LoadError::AddressSize { .. })));
}

#[test]
fn output_is_in_order_of_ctas_whatever_the_schedule() {
    let kernel = kernel(
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[8] = {37, 117, 58, 37, 117, 10, 0, 0};
.visible .entry k() {
    .local .align 8 .b8 args[8];
    .reg .b32 %r<3>;
    .reg .b64 %rd<5>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mov.u64 %rd1, args;
    st.local.v2.u32 [%rd1], {%r1, %r2};
    cvta.local.u64 %rd2, %rd1;
    mov.u64 %rd3, text;
    cvta.global.u64 %rd4, %rd3;
    {
        .param .b64 f;
        .param .b64 a;
        .param .b32 r;
        st.param.b64 [f], %rd4;
        st.param.b64 [a], %rd2;
        call (r), vprintf, (f, a);
    }
    ret;
}",
    );
    for (threads, seed) in [(1, 0), (4, 0), (1, 5), (3, 9)] {
        let mut config = config(3, &[]);
        (config.grid, config.threads, config.seed) = ([20, 1, 1], Some(threads), seed);
        let report = kernel.launch(&config).expect("runs");
        let expected: String = (0..20).flat_map(|c| (0..3).map(move |t| format!("{c}:{t}\n"))).collect();
        assert_eq!(String::from_utf8(report.output).expect("text"), expected);
    }
}

// covers: abi.recursion dir.func.recursion
#[test]
fn recursion_uses_a_stack_and_overflows_it() {
    let kernel = kernel(
        ".func (.param .b32 r) sum(.param .b32 n) {
    .local .align 4 .b8 keep[16];
    .reg .b32 %r<4>;
    .reg .pred %p;
    ld.param.b32 %r1, [n];
    st.param.b32 [r], 0;
    setp.eq.u32 %p, %r1, 0;
    @%p ret;
    st.local.u32 [keep+12], %r1;
    sub.u32 %r2, %r1, 1;
    {
        .param .b32 q;
        .param .b32 s;
        st.param.b32 [q], %r2;
        call (s), sum, (q);
        ld.param.b32 %r3, [s];
    }
    ld.local.u32 %r2, [keep+12];
    add.u32 %r3, %r3, %r2;
    st.param.b32 [r], %r3;
    ret;
}
.visible .entry k(.param .u64 out, .param .u64 depth) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [depth];
    mov.u32 %r2, %tid.x;
    add.u32 %r1, %r1, %r2;
    {
        .param .b32 a;
        .param .b32 b;
        st.param.b32 [a], %r1;
        call (b), sum, (a);
        ld.param.b32 %r3, [b];
    }
    mad.wide.u32 %rd2, %r2, 4, %rd1;
    st.global.u32 [%rd2], %r3;
    ret;
}",
    );
    let out = array(&kernel, 64);
    kernel.launch(&config(64, &[out, 100])).expect("runs");
    let expected: Vec<u32> = (100..164).map(|n| n * (n + 1) / 2).collect();
    assert_eq!(words(&kernel, out, 64), expected);
    let trap = trap(&kernel, &config(1, &[out, 1_000_000]));
    assert_eq!((trap.kind, trap.function.as_str()), (FaultKind::StackOverflow, "sum"));
}

#[test]
fn limits_stop_a_launch_that_would_not_end() {
    let kernel = kernel(".visible .entry k() { again: bra again; }");
    let mut config = config(32, &[]);
    config.max_steps = Some(5000);
    let trap = trap(&kernel, &config);
    assert_eq!((trap.kind, trap.line), (FaultKind::StepLimit, 4));
    config.max_steps = None;
    config.timeout = Some(std::time::Duration::ZERO);
    assert_eq!(self::trap(&kernel, &config).kind, FaultKind::TimeLimit);
}
