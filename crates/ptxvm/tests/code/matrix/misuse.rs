//! Matrix instructions without a defined result trap, and the trap gives the reason.

use super::image::{Machine, machines};
use ptxvm::{Arg, Launch, Trap};

/// Runs a body on a CTA of so many threads, with every engine. `%p` is the address of 4096 zero bytes,
/// `%lane` the thread's number.
fn run(threads: u32, body: &str) -> Result<(), Box<Trap>> {
    let mut outcomes = machines().into_iter().map(|machine| run_with(&machine, threads, body));
    let first = outcomes.next().expect("the interpreter");
    for outcome in outcomes {
        // Buffers lie elsewhere in each machine.
        let place = |outcome: &Result<(), Box<Trap>>| {
            outcome.as_ref().map_err(|trap| (trap.kind.word(), trap.line, trap.ctaid, trap.tid)).copied()
        };
        assert_eq!(place(&outcome), place(&first), "{body}");
    }
    first
}

fn run_with(vm: &Machine, threads: u32, body: &str) -> Result<(), Box<Trap>> {
    let text = format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry run(.param .u64 image)\n{{\n\
         .reg .b64 %p, %q;\n.reg .b32 %r<8>, %f<8>, %lane, %s;\n.reg .pred %low;\n\
         ld.param.u64 %p, [image];\nmov.u32 %lane, %tid.x;\nsetp.lt.u32 %low, %lane, 16;\n{body}\nret;\n}}\n"
    );
    let module = vm.load("misuse.ptx", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let kernel = module.kernel("run").expect("the kernel");
    let buffer = vm.zeros::<u64>(512).expect("a buffer");
    let launch = Launch::new([1, 1, 1], [threads, 1, 1])
        .threads(1)
        .engine(vm.engine)
        .args(&kernel, &[Arg::buffer(&buffer)]);
    match vm.launch(&kernel, &launch.expect("arguments")) {
        Ok(_) => Ok(()),
        Err(error) => Err(Box::new(error.trap().unwrap_or_else(|| panic!("{error}\n{text}")).clone())),
    }
}

const LOAD: &str =
    "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}";
const STORE: &str = "wmma.store.d.sync.aligned.row.m16n16k16.global.f32";
const FRAGMENT: &str = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}";

fn assert_trap(result: Result<(), Box<Trap>>, word: &str, says: &str) {
    let trap = result.expect_err("a trap");
    assert_eq!(trap.kind.word(), word, "{trap}");
    assert!(trap.to_string().contains(says), "{trap}");
}

#[test]
fn a_whole_warp_runs_it_even_after_it_parted() {
    assert_eq!(run(64, &format!("{LOAD}, [%p];")), Ok(()));
    assert_eq!(run(32, &format!("@%low bra JOIN;\nadd.u32 %s, %lane, 1;\nJOIN:\n{LOAD}, [%p];")), Ok(()));
}

#[test]
fn a_warp_that_is_not_whole_traps() {
    let lanes = "lanes 0xffff0000 have exited or do not exist";
    assert_trap(run(16, &format!("{LOAD}, [%p];")), "bad_aligned", lanes);
    assert_trap(run(48, &format!("{LOAD}, [%p];")), "bad_aligned", lanes);
    assert_trap(run(32, &format!("@!%low exit;\n{LOAD}, [%p];")), "bad_aligned", lanes);
    assert_trap(run(32, &format!("@%low {LOAD}, [%p];")), "bad_aligned", lanes);
    let store = format!("@!%low exit;\n{STORE} [%p], {FRAGMENT};");
    assert_trap(run(32, &store), "bad_aligned", lanes);
    let mma = "@!%low exit;\nmma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2, %r3}, {%r4, %r5, %r6, %r7};";
    assert_trap(run(32, mma), "bad_aligned", lanes);
}

#[test]
fn lanes_that_disagree_trap() {
    let address = format!("mul.wide.u32 %q, %lane, 32;\nadd.u64 %q, %q, %p;\n{LOAD}, [%q];");
    assert_trap(run(32, &address), "bad_aligned", "lanes 0 and 1 give different addresses");
    let stride = format!("selp.u32 %s, 16, 32, %low;\n{LOAD}, [%p], %s;");
    assert_trap(run(32, &stride), "bad_aligned", "lanes 0 and 16 give different strides");
}

#[test]
fn different_instructions_are_a_deadlock() {
    let body = format!("@%low bra LOW;\n{LOAD}, [%p];\nbra END;\nLOW:\n{LOAD}, [%p+32];\nEND:");
    assert_trap(run(32, &body), "deadlock", "for all lanes of the warp");
}

/// §9.7.13.4: the base is aligned to the size of the fragment, here 32 bytes; the stride is a multiple of 16
/// bytes, which is all that CUDA asks for.
#[test]
fn unaligned_matrices_trap() {
    assert_trap(run(32, &format!("{LOAD}, [%p+16];")), "misaligned", "read of 32 bytes");
    assert_trap(run(32, &format!("{LOAD}, [%p], 20;")), "misaligned", "read of 32 bytes");
    assert_eq!(run(32, &format!("{LOAD}, [%p], 24;")), Ok(()));
    assert_eq!(run(32, &format!("{STORE} [%p], {FRAGMENT}, 20;")), Ok(()));
    assert_eq!(run(32, &format!("{LOAD}, [%p+32], 48;")), Ok(()));
    assert_trap(run(32, &format!("{STORE} [%p+8], {FRAGMENT};")), "misaligned", "write of 32 bytes");
    assert_trap(run(32, &format!("{STORE} [%p], {FRAGMENT}, 18;")), "misaligned", "write of 32 bytes");
    let nibbles = "wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r0}";
    assert_trap(run(32, &format!("{nibbles}, [%p+2];")), "misaligned", "read of 4 bytes");
    assert_trap(run(32, &format!("{nibbles}, [%p], 36;")), "misaligned", "read of 4 bytes");
    assert_eq!(run(32, &format!("{nibbles}, [%p+4], 40;")), Ok(()));
}

#[test]
fn matrices_beyond_memory_trap_and_change_nothing() {
    assert_trap(run(32, &format!("{LOAD}, [%p+4096];")), "illegal_address", "");
    assert_trap(run(32, &format!("{STORE} [%p+3104], {FRAGMENT};")), "illegal_address", "");
    assert_eq!(run(32, &format!("{STORE} [%p+3072], {FRAGMENT};")), Ok(()));
}

/// A row of a matrix is read, written and copied where memory has all of it, and by no other lane.
#[test]
fn rows_beyond_memory_trap() {
    let row = |step: u32, first: u32| {
        format!("mul.wide.u32 %q, %lane, {step};\nadd.u64 %q, %q, %p;\nadd.u64 %q, %q, {first};\n")
    };
    let shared = ".shared .align 16 .b8 tile[512];\n";
    let place = |step: u32| format!("{shared}mov.u32 %s, tile;\nmad.lo.u32 %r0, %lane, {step}, %s;\n");
    let tile = |count: &str, list: &str, step| {
        format!("{}ldmatrix.sync.aligned.m8n8.{count}.shared.b16 {{{list}}}, [%r0];", place(step))
    };
    assert_eq!(run(32, &tile("x4", "%r1, %r2, %r3, %r4", 16)), Ok(()));
    assert_trap(run(32, &tile("x4", "%r1, %r2, %r3, %r4", 32)), "illegal_address", "");
    assert_trap(run(32, &tile("x4", "%r1, %r2, %r3, %r4", 8)), "misaligned", "");
    // Lanes from 8 up give addresses that are not used.
    assert_eq!(run(32, &tile("x1", "%r1", 64)), Ok(()));
    assert_trap(run(32, &tile("x1", "%r1", 80)), "illegal_address", "");
    let copy = |size: u32, more: &str, first: u32| {
        format!("{}{}cp.async.ca.shared.global [%r0], [%q], {size}{more};", place(size), row(size, first))
    };
    for size in [4, 8, 16] {
        assert_eq!(run(32, &copy(size, "", 0)), Ok(()));
        assert_eq!(run(32, &copy(size, "", 4096 - 32 * size)), Ok(()));
        assert_trap(run(32, &copy(size, "", 4096 - 31 * size)), "illegal_address", "");
        assert_trap(run(32, &copy(size, "", 2)), "misaligned", "");
    }
}
