//! Facts of small programs, worked out by hand.

use ptx::analysis::cfg;
use ptx::analysis::def_use::{DefUse, Place};
use ptx::analysis::liveness::Liveness;
use ptx::analysis::uniformity::{Assumptions, Lanes, Uniformity};
use ptx::check::{CheckOptions, check};
use ptx::ir::{Function, Reg, RegClass, lower};

fn kernel(body: &str) -> Function {
    let text = format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n\
         .entry kernel(.param .u64 out, .param .u32 n)\n{{\n.reg .pred p, q;\n\
         .reg .b32 tid, i, j, k, n1, v, w;\n.reg .b64 a;\n{body}\n}}\n"
    );
    let checked = check("facts", &text, &CheckOptions::default());
    let module = checked.module.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics));
    lower(module).functions.remove(0)
}

fn reg(function: &Function, name: &str) -> Reg {
    for class in [RegClass::Pred, RegClass::R16, RegClass::R32, RegClass::R64] {
        if let Some(index) = function.reg_names[class as usize].iter().position(|n| n == name) {
            return Reg { class, index: index as u32 };
        }
    }
    panic!("no register `{name}`")
}

/// A loop that lanes leave at different turns, with a counter that is the same in all lanes still in it.
const LOOP: &str = "
    ld.param.u64 a, [out];
    ld.param.u32 n1, [n];
    mov.u32 tid, %tid.x;
    mov.u32 i, %ctaid.x;
    mad.lo.s32 j, tid, 12, i;
    shl.b32 j, j, 1;
    mov.u32 k, 0;
    mov.u32 v, 0;
LOOP:
    add.u32 k, k, 1;
    add.u32 v, v, 3;
    setp.lt.u32 q, k, n1;
    @q add.u32 w, k, n1;
    setp.lt.u32 p, k, tid;
    @p bra LOOP;
    st.global.u32 [a], v;
";

#[test]
fn uniform_affine_and_varying_values() {
    let function = kernel(LOOP);
    let facts = Uniformity::new(&function, Assumptions { ntid: Some([64, 2, 1]) });
    let of = |name| facts.of(reg(&function, name));
    assert_eq!(of("a"), Lanes::Uniform, "a parameter");
    assert_eq!(of("n1"), Lanes::Uniform, "a parameter");
    assert_eq!(of("i"), Lanes::Uniform, "%ctaid");
    assert_eq!(of("tid"), Lanes::Affine { stride: 1 }, "rows of 64 threads");
    assert_eq!(of("j"), Lanes::Varying, "has two definitions of different strides: 12 and 24");
    assert_eq!(of("k"), Lanes::Uniform, "lanes in the loop are at the same turn");
    assert_eq!(of("q"), Lanes::Uniform);
    assert_eq!(of("w"), Lanes::Uniform, "under a uniform guard");
    assert_eq!(of("v"), Lanes::Varying, "read behind the loop, by lanes of all turns");
    assert_eq!(of("p"), Lanes::Varying);
    // bb0: before, bb1: the loop, bb2: behind it.
    assert_eq!([0, 1, 2].map(|b| facts.diverges(b)), [false, true, false]);
    assert_eq!(
        [0, 1, 2].map(|b| facts.is_partial(b)),
        [false, true, false],
        "all lanes come out of the loop"
    );
}

#[test]
fn the_shape_of_the_cta_decides_about_tid() {
    let function = kernel(
        "mov.u32 tid, %tid.x; mov.u32 i, %tid.y; mov.u32 j, %tid.z; add.u32 v, tid, i; add.u32 w, v, j;\nsub.u32 k, i, tid; st.global.u32 [0], w;",
    );
    let facts = |ntid| {
        let facts = Uniformity::new(&function, Assumptions { ntid });
        ["tid", "i", "j", "k"].map(|name| facts.of(reg(&function, name)))
    };
    let affine = |stride| Lanes::Affine { stride };
    assert_eq!(facts(None), [Lanes::Varying; 4]);
    assert_eq!(facts(Some([256, 1, 1])), [affine(1), Lanes::Uniform, Lanes::Uniform, affine(-1)]);
    assert_eq!(facts(Some([32, 8, 2])), [affine(1), Lanes::Uniform, Lanes::Uniform, affine(-1)]);
    assert_eq!(facts(Some([17, 1, 1])), [affine(1), Lanes::Uniform, Lanes::Uniform, affine(-1)], "one row");
    // Two rows of 16 in a warp; 16 x 16 threads are a whole number of warps.
    assert_eq!(facts(Some([16, 16, 4])), [Lanes::Varying, Lanes::Varying, Lanes::Uniform, Lanes::Varying]);
    assert_eq!(facts(Some([5, 5, 5])), [Lanes::Varying; 4]);
}

#[test]
fn liveness_and_uses_of_a_loop() {
    let function = kernel(LOOP);
    let graph = cfg::graph(&function);
    let live = Liveness::new(&function, &graph);
    let names = |set: &ptx::analysis::bits::BitSet| {
        let name = |n| {
            let reg: Reg = live.registers.reg(n);
            function.reg_names[reg.class as usize][reg.index as usize].clone()
        };
        set.iter().map(name).collect::<Vec<String>>().join(" ")
    };
    assert_eq!(names(&live.live_in[0]), "");
    assert_eq!(names(&live.live_in[1]), "tid k n1 v a");
    assert_eq!(names(&live.live_out[1]), "tid k n1 v a");
    assert_eq!(names(&live.live_in[2]), "v a");
    assert_eq!(names(&live.before(&function, 1, 3)), "q tid k n1 v a", "before the guarded addition");
    assert_eq!(names(&live.before(&function, 1, 5)), "p tid k n1 v a", "before the branch");
    let facts = DefUse::new(&function);
    let k = reg(&function, "k");
    assert_eq!(facts.defs_of(k), [Place { block: 0, inst: 6 }, Place { block: 1, inst: 0 }]);
    assert_eq!(facts.uses_of(k), [0, 2, 3, 4].map(|inst| Place { block: 1, inst }));
    let p = reg(&function, "p");
    assert_eq!(facts.uses_of(p), [Place { block: 1, inst: 5 }], "the terminator");
}
