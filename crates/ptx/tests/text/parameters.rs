//! Loads of kernel parameters through registers: which of them name the parameters afterwards.

use ptx::check::{CheckOptions, check};
use ptx::ir::verify::verify;
use ptx::ir::{Addr, Base, Inst, Src, lower};
use ptx::isa::{Op, Space};
use ptx::parameters::name_parameters;

/// The sources of the loads of a kernel with a parameter of 24 bytes, which begins at 8: offsets in the
/// parameter buffer, or `None` for a load through a register.
fn loads(body: &str) -> Vec<Option<i64>> {
    let text = format!(
        ".version 7.7\n.target sm_70\n.address_size 64
        .visible .entry k(.param .u64 a, .param .align 8 .b8 p[24]) {{
            .reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<9>; .reg .b64 %d<9>;
            {body}
            ret;
        }}"
    );
    let checked = check("parameters.ptx", &text, &CheckOptions::default());
    let mut program = lower(checked.module.unwrap_or_else(|| panic!("{:?}", checked.diagnostics)));
    name_parameters(&mut program);
    let violations = verify(&program);
    assert!(violations.is_empty(), "{violations:?}");
    let source = |inst: &Inst| match inst.srcs.first() {
        Some(Src::Addr(Addr { base: Base::KernelParam, index: None, offset })) => {
            assert_eq!(inst.mods.space(), Space::Param);
            Some(*offset)
        }
        _ => None,
    };
    let insts = program.functions.iter().flat_map(|f| &f.blocks).flat_map(|block| &block.insts);
    insts.filter(|inst| inst.op == Op::Ld).map(source).collect()
}

#[test]
fn members_of_structures() {
    assert_eq!(
        loads("mov.b64 %d1, p; ld.param.u32 %r1, [%d1]; ld.param.u32 %r2, [%d1+20];"),
        [Some(8), Some(28)]
    );
    assert_eq!(loads("mov.b64 %d1, p; mov.u64 %d2, %d1; ld.param.v2.f32 {%r1, %r2}, [%d2+8];"), [Some(16)]);
    assert_eq!(loads("mov.b64 %d1, p+4; add.s64 %d2, %d1, 12; ld.param.u16 %h1, [%d2+-2];"), [Some(22)]);
    assert_eq!(loads("mov.b64 %d1, p; add.u64 %d2, 16, %d1; ld.param.u64 %d3, [%d2];"), [Some(24)]);
    // From one parameter into another, as the address says.
    assert_eq!(loads("mov.b64 %d1, p; ld.param.u64 %d2, [%d1+-8];"), [Some(0)]);
}

#[test]
fn generic_addresses() {
    let made = "mov.b64 %d1, p; cvta.param.u64 %d2, %d1;";
    assert_eq!(loads(&format!("{made} ld.u32 %r1, [%d2+4];")), [Some(12)]);
    assert_eq!(loads(&format!("{made} add.s64 %d3, %d2, 8; ld.f64 %d4, [%d3];")), [Some(16)]);
    // Each kind of address in the other space is another place, or none.
    assert_eq!(loads(&format!("{made} ld.param.u32 %r1, [%d2];")), [None]);
    assert_eq!(loads("mov.b64 %d1, p; ld.u32 %r1, [%d1];"), [None]);
    assert_eq!(loads(&format!("{made} cvta.param.u64 %d3, %d2; ld.u32 %r1, [%d3];")), [None]);
    // Loads of other spaces, and loads with an order.
    assert_eq!(loads(&format!("{made} ld.global.u32 %r1, [%d2];")), [None]);
    assert_eq!(loads(&format!("{made} ld.relaxed.gpu.u32 %r1, [%d2];")), [None]);
    assert_eq!(loads(&format!("{made} ld.volatile.u32 %r1, [%d2];")), [None]);
}

/// A load beyond the buffer, or one that is not aligned, traps as it did.
#[test]
fn loads_that_trap() {
    for offset in [24, 22, 23, -12, i64::from(i32::MAX)] {
        assert_eq!(loads(&format!("mov.b64 %d1, p; ld.param.u32 %r1, [%d1+{offset}];")), [None], "{offset}");
    }
    assert_eq!(loads("mov.b64 %d1, p; ld.param.v4.u32 {%r1, %r2, %r3, %r4}, [%d1+16];"), [None]);
    assert_eq!(loads("mov.b64 %d1, p; ld.param.v4.u32 {%r1, %r2, %r3, %r4}, [%d1+8];"), [Some(16)]);
    assert_eq!(loads("mov.b64 %d1, p; ld.param.v2.u64 {%d2, %d3}, [%d1];"), [None]);
}

/// An address that depends on the way to the load, or is not known.
#[test]
fn addresses_that_vary() {
    let load = "ld.param.u32 %r1, [%d1];";
    // Written twice, under a guard, by the instruction itself, or by a load.
    assert_eq!(loads(&format!("mov.b64 %d1, p; {load} mov.b64 %d1, p+4;")), [None]);
    assert_eq!(loads(&format!("setp.eq.u32 %p1, %r2, 0; @%p1 mov.b64 %d1, p; {load}")), [None]);
    assert_eq!(loads("mov.b64 %d1, p; ld.param.u64 %d1, [%d1];"), [None]);
    assert_eq!(loads(&format!("ld.param.u64 %d1, [a]; {load}")), [Some(0), None]);
    // Written behind the load, in a loop, and on one of two ways.
    assert_eq!(loads(&format!("L: {load} mov.b64 %d1, p; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;")), [None]);
    let one_way = format!("setp.eq.u32 %p1, %r2, 0; @%p1 bra L; mov.b64 %d1, p; L: {load}");
    assert_eq!(loads(&one_way), [None]);
    let before = format!("mov.b64 %d1, p; setp.eq.u32 %p1, %r2, 0; @%p1 bra L; mov.u32 %r2, 1; L: {load}");
    assert_eq!(loads(&before), [Some(8)]);
    // An index that is no constant.
    assert_eq!(loads("mov.b64 %d2, p; add.s64 %d1, %d2, %d3; ld.param.u32 %r1, [%d1];"), [None]);
    // A guarded load of a known place is one.
    let guarded = format!("mov.b64 %d1, p; setp.eq.u32 %p1, %r2, 0; @%p1 {load}");
    assert_eq!(loads(&guarded), [Some(8)]);
}
