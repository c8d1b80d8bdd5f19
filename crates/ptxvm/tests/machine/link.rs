//! Linked modules run as one.

use ptxvm::{Arg, ErrorKind, Launch, Vm};

const MAIN: &str = "
.version 6.4
.target sm_70
.address_size 64
.extern .global .u32 step;
.extern .global .u32 steps[];
.extern .func (.param .b32 r) twice(.param .b32 x);
.weak .func (.param .b32 r) offset() { st.param.b32 [r], 1000; ret; }
.visible .entry go(.param .u64 data)
{
    .reg .b32 %r<4>;
    .reg .b64 %a;
    .param .b32 x;
    .param .b32 r;
    .param .b32 o;
    ld.param.u64 %a, [data];
    ld.global.u32 %r0, [%a];
    st.param.b32 [x], %r0;
    call (r), twice, (x);
    ld.param.b32 %r1, [r];
    call (o), offset, ();
    ld.param.b32 %r2, [o];
    ld.global.u32 %r3, [step];
    add.u32 %r1, %r1, %r2;
    ld.global.u32 %r2, [steps+4];
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r1, %r3;
    st.global.u32 [%a], %r1;
    ret;
}";

const LIBRARY: &str = "
.version 6.4
.target sm_60
.address_size 64
.visible .global .u32 step = 5;
.visible .global .u32 steps[3] = {10000, 20000, 40000};
.visible .func (.param .b32 r) offset() { st.param.b32 [r], 100; ret; }
.visible .func (.param .b32 r) twice(.param .b32 x)
{
    .reg .b32 %r;
    ld.param.b32 %r, [x];
    add.u32 %r, %r, %r;
    st.param.b32 [r], %r;
    ret;
}";

// covers: dir.extern dir.visible dir.weak var.extern_unsized abi.func_decl
#[test]
fn functions_and_variables_of_another_module() {
    for texts in [[("main", MAIN), ("library", LIBRARY)], [("library", LIBRARY), ("main", MAIN)]] {
        let vm = Vm::new().expect("a device");
        let kernel = vm.link(&texts).and_then(|module| module.kernel("go")).expect("they fit together");
        let data = vm.buffer(&[21u32]).expect("a buffer");
        let launch = Launch::new([1, 1, 1], [1, 1, 1]).args(&kernel, &[Arg::buffer(&data)]).expect("it fits");
        vm.launch(&kernel, &launch).expect("no trap");
        // Twice 21, the visible offset before the weak one, the step, and the second of the steps.
        assert_eq!(data.read().expect("the buffer"), [42 + 100 + 5 + 20_000]);
    }
}

/// A kernel that leaves the address and two elements of `area`.
fn reader(version: &str, area: &str) -> String {
    format!(
        ".version {version}
.target sm_70
.address_size 64
{area}
.visible .entry read(.param .u64 .ptr.global.align 8 data)
{{
    .reg .b64 %a, %p;
    .reg .b32 %r0, %r1;
    ld.param.u64 %a, [data];
    mov.u64 %p, area;
    ld.global.u32 %r0, [%p];
    ld.global.u32 %r1, [%p+4];
    st.global.u64 [%a], %p;
    st.global.v2.u32 [%a+8], {{%r0, %r1}};
    ret;
}}"
    )
}

fn read(texts: &[(&str, &str)]) -> Vec<u64> {
    let vm = Vm::new().expect("a device");
    let kernel = vm.link(texts).and_then(|module| module.kernel("read")).expect("they fit together");
    let data = vm.zeros::<u64>(2).expect("a buffer");
    let launch = Launch::new([1, 1, 1], [1, 1, 1]).args(&kernel, &[Arg::buffer(&data)]).expect("it fits");
    vm.launch(&kernel, &launch).expect("no trap");
    data.read().expect("the buffer")
}

// covers: dir.common space.param_ptr
#[test]
fn of_common_variables_the_largest_remains() {
    let small = reader("6.4", ".common .global .u32 area[2];");
    let large = ".version 6.4\n.target sm_70\n.address_size 64\n.common .global .u32 area[3] = {7, 8, 9};";
    for texts in
        [[("small", small.as_str()), ("large", large)], [("large", large), ("small", small.as_str())]]
    {
        assert_eq!(read(&texts)[1], 7 | 8 << 32);
    }
    // Alone it is zero.
    assert_eq!(read(&[("small", &small)])[1], 0);
}

#[test]
fn without_the_other_module_it_is_refused() {
    let vm = Vm::new().expect("a device");
    let error = vm.link(&[("main", MAIN)]).and_then(|module| module.kernel("go")).expect_err("refused");
    assert!(matches!(error.kind(), ErrorKind::Rejected(_)), "{error}");
    let twice = vm.link(&[("a", LIBRARY), ("b", LIBRARY)]).expect_err("everything is there twice");
    assert!(matches!(twice.kind(), ErrorKind::Rejected(found) if found.len() == 4), "{twice}");
}
