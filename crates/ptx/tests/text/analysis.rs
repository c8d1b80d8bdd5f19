//! Liveness of a small program, derived by hand.

use ptx::analysis::cfg;
use ptx::analysis::liveness::Liveness;
use ptx::check::{CheckOptions, check};
use ptx::ir::{Function, Reg, lower};

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

/// A loop that lanes leave in different iterations, with a counter that is the same in all lanes still in it.
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
fn liveness_of_a_loop() {
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
}
