//! Modules that are linked run as one.

use ptxvm::{Arg, ErrorKind, Launch, Vm};

const MAIN: &str = "
.version 6.4
.target sm_70
.address_size 64
.extern .global .u32 step;
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
    add.u32 %r1, %r1, %r3;
    st.global.u32 [%a], %r1;
    ret;
}";

const LIBRARY: &str = "
.version 6.4
.target sm_60
.address_size 64
.visible .global .u32 step = 5;
.visible .func (.param .b32 r) offset() { st.param.b32 [r], 100; ret; }
.visible .func (.param .b32 r) twice(.param .b32 x)
{
    .reg .b32 %r;
    ld.param.b32 %r, [x];
    add.u32 %r, %r, %r;
    st.param.b32 [r], %r;
    ret;
}";

#[test]
fn functions_and_variables_of_another_module() {
    for texts in [[("main", MAIN), ("library", LIBRARY)], [("library", LIBRARY), ("main", MAIN)]] {
        let vm = Vm::new().expect("a device");
        let kernel = vm.link(&texts).and_then(|module| module.kernel("go")).expect("they fit together");
        let data = vm.buffer(&[21u32]).expect("a buffer");
        let launch = Launch::new([1, 1, 1], [1, 1, 1]).args(&kernel, &[Arg::buffer(&data)]).expect("it fits");
        vm.launch(&kernel, &launch).expect("no trap");
        // Twice 21, the visible offset before the weak one, and the step.
        assert_eq!(data.read().expect("the buffer"), [42 + 100 + 5]);
    }
}

#[test]
fn without_the_other_module_it_is_refused() {
    let vm = Vm::new().expect("a device");
    let error = vm.link(&[("main", MAIN)]).and_then(|module| module.kernel("go")).expect_err("refused");
    assert!(matches!(error.kind(), ErrorKind::Rejected(_)), "{error}");
    let twice = vm.link(&[("a", LIBRARY), ("b", LIBRARY)]).expect_err("everything is there twice");
    assert!(matches!(twice.kind(), ErrorKind::Rejected(found) if found.len() == 3), "{twice}");
}
