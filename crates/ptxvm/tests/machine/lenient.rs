//! Programs that the manual forbids and ptxas accepts, executed by both engines: expected results are
//! computed here from the meaning of each form.

use ptxvm::{Arg, CheckOptions, Code, Engine, Launch, Severity, Vm};

const HEADER: &str = ".version 6.4\n.target sm_70\n.address_size 64\n";

/// The functions and the body of a kernel `k(in, out)`: `%in` holds `in[tid]`, `%out` is stored to
/// `out[tid]`.
fn text(functions: &str, body: &str) -> String {
    format!(
        "{HEADER}{functions}\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .u32 %in, %out, %t; .reg .u64 %a, %b, %o;\n\
         ld.param.u64 %a, [in];\nld.param.u64 %b, [out];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %o, %t, 4;\n\
         add.u64 %a, %a, %o;\nadd.u64 %b, %b, %o;\nld.global.u32 %in, [%a];\n{body}\nst.global.u32 [%b], %out;\nret;\n}}\n"
    )
}

/// Runs it in both engines; the warning must come, and `strict` must refuse it.
fn expect(code: Code, functions: &str, body: &str, meaning: impl Fn(u32) -> u32) {
    let text = text(functions, body);
    let vm = Vm::new().expect("a device");
    let module = vm.load("k.ptx", &text).unwrap_or_else(|error| panic!("{error:?}"));
    let codes: Vec<Code> = module.warnings().iter().map(|d| d.code).collect();
    assert!(codes.contains(&code), "{body}: {codes:?}");
    let strict = vm.load_with("k.ptx", &text, &CheckOptions { strict: true, ..CheckOptions::default() });
    let error = strict.expect_err("strict refuses it");
    let ptxvm::ErrorKind::Rejected(rejection) = error.kind() else { panic!("{error:?}") };
    assert!(rejection.iter().any(|d| d.code == code && d.severity == Severity::Error), "{error:?}");
    let kernel = module.kernel("k").expect("it has one");
    let values: Vec<u32> = (0..64u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
    let expected: Vec<u32> = values.iter().map(|v| meaning(*v)).collect();
    let engines: &[Engine] =
        if cfg!(feature = "jit") { &[Engine::Interp, Engine::Jit] } else { &[Engine::Interp] };
    for engine in engines {
        let (from, to) = (vm.buffer(&values).expect("memory"), vm.zeros::<u32>(64).expect("memory"));
        let launch = Launch::new([1; 3], [64, 1, 1]).engine(*engine);
        let launch = launch.args(&kernel, &[Arg::buffer(&from), Arg::buffer(&to)]).expect("they fit");
        vm.launch(&kernel, &launch).unwrap_or_else(|error| panic!("{body}: {error:?}"));
        assert_eq!(to.read().expect("memory"), expected, "{body} in {engine:?}");
    }
}

#[test]
fn a_call_with_results_needs_no_arguments() {
    let one = ".func (.reg .u32 r) seven()\n{\nmov.u32 r, 7;\nret;\n}";
    expect(Code::MissingArguments, one, "call (%out), seven;\nadd.u32 %out, %out, %in;", |v| {
        v.wrapping_add(7)
    });
    let by_param = ".func (.param .b32 r) eight()\n{\nst.param.b32 [r], 8;\nret;\n}";
    let body =
        "{\n.param .b32 got;\ncall.uni (got), eight;\nld.param.b32 %out, [got];\n}\nadd.u32 %out, %out, %in;";
    expect(Code::MissingArguments, by_param, body, |v| v.wrapping_add(8));
    let body = "{\n.reg .u64 %f;\nmov.u64 %f, seven;\ntable: .callprototype (.reg .u32 _) _ ();\ncall (%out), %f, table;\n}";
    expect(Code::MissingArguments, one, body, |_| 7);
}

#[test]
fn names_of_instructions_and_special_registers_are_names() {
    let body = ".reg .u64 min;\n.reg .u32 add, %laneid, max<3>;\ncvt.u64.u32 min, %in;\nadd.u64 min, min, 5;\ncvt.u32.u64 add, min;\n\
                mov.u32 %laneid, 100;\nmov.u32 max1, add;\nadd.u32 %out, max1, %laneid;";
    expect(Code::NonStandard, "", body, |v| v.wrapping_add(105));
    let ret = ".func (.param .align 4 .b8 ret[16]) make(.param .b32 sub)\n{\n.reg .b32 mul;\nld.param.b32 mul, [sub];\n\
               st.param.b32 [ret+8], mul;\nret;\n}";
    let body = "{\n.param .b32 x;\n.param .align 4 .b8 y[16];\nst.param.b32 [x], %in;\ncall.uni (y), make, (x);\nld.param.b32 %out, [y+8];\n}";
    expect(Code::NonStandard, ret, body, |v| v);
    expect(Code::NonStandard, "", "bra exit;\nexit: mov.u32 %out, %in;", |v| v);
}

#[test]
fn the_predicate_of_selp_may_be_negated() {
    let body = ".reg .pred p;\nsetp.lt.u32 p, %in, 0x80000000;\nselp.u32 %out, 1, %in, !p;";
    expect(Code::NegatedSelector, "", body, |v| if v < 0x8000_0000 { v } else { 1 });
    let body = ".reg .pred p;\n.reg .f32 f;\nsetp.lt.u32 p, %in, 0x80000000;\nselp.f32 f, 1.0, 2.0, !p;\nmov.b32 %out, f;";
    expect(Code::NegatedSelector, "", body, |v| (if v < 0x8000_0000 { 2f32 } else { 1f32 }).to_bits());
}

#[test]
fn a_loc_needs_no_file() {
    expect(Code::MissingFile, "", ".loc 3 10 1\nmov.u32 %out, %in;", |v| v);
}

#[test]
fn the_last_parameter_has_no_size() {
    let sum = ".func (.reg .u32 r) second(.param .b32 n, .param .b32 x[])\n{\n.reg .u64 p;\nmov.u64 p, x;\nld.param.u32 r, [x+4];\nret;\n}";
    let body = "{\n.param .b32 n;\n.param .b32 x[4];\nst.param.b32 [n], 4;\nst.param.b32 [x], 1;\nst.param.b32 [x+4], %in;\n\
                call (%out), second, (n, x);\n}";
    expect(Code::UnsizedParameter, sum, body, |v| v);
}

#[test]
fn a_register_plus_a_constant_is_an_operand() {
    expect(Code::RegisterSum, "", "mov.u32 %out, %in + 3;", |v| v.wrapping_add(3));
    expect(Code::RegisterSum, "", "mul.lo.u32 %out, %in, %in + 1;", |v| v.wrapping_mul(v.wrapping_add(1)));
    expect(Code::RegisterSum, "", "sub.u32 %out, %in + -2, %in + 4;", |_| 0u32.wrapping_sub(6));
    // The register that is written is also the one that is read.
    expect(Code::RegisterSum, "", "mov.u32 %out, 1;\nadd.u32 %out, %out + 5, %in;", |v| v.wrapping_add(6));
    let guarded = ".reg .pred p;\nsetp.gt.u32 p, %in, 1000;\nmov.u32 %out, 0;\n@p mov.u32 %out, %in + 1;";
    expect(Code::RegisterSum, "", guarded, |v| if v > 1000 { v.wrapping_add(1) } else { 0 });
    let stored = ".reg .u64 t;\n.local .align 8 .b8 x[8];\ncvt.u64.u32 t, %in;\nst.local.u64 [x], t + 1;\nld.local.u64 t, [x];\n\
                  shr.u64 t, t, 1;\ncvt.u32.u64 %out, t;";
    expect(Code::RegisterSum, "", stored, |v| ((u64::from(v) + 1) >> 1) as u32);
    let half = ".reg .u16 h, g;\ncvt.u16.u32 h, %in;\nadd.u16 g, h + 65535, 0;\ncvt.u32.u16 %out, g;";
    expect(Code::RegisterSum, "", half, |v| u32::from((v as u16).wrapping_sub(1)));
    let passed = ".func (.reg .u32 r) id(.reg .u32 x)\n{\nmov.u32 r, x;\nret;\n}";
    expect(Code::RegisterSum, passed, "call (%out), id, (%in + 9);", |v| v.wrapping_add(9));
}

#[test]
fn a_barrier_for_no_threads_is_for_the_cta() {
    // Each lane reads what the last warp stored.
    let exchange = |barrier: &str| {
        format!(
            ".shared .align 4 .b8 s[256];\n.reg .u32 w, x;\n.reg .pred p, q;\nmov.u32 w, s;\nshl.b32 x, %t, 2;\n\
             add.u32 x, w, x;\nst.shared.u32 [x], %in;\nsetp.gt.u32 p, %t, 31;\n{barrier}\nxor.b32 %t, %t, 32;\n\
             shl.b32 x, %t, 2;\nadd.u32 x, w, x;\nld.shared.u32 %out, [x];"
        )
    };
    // The inputs are odd multiples of the lanes' numbers, so a lane's number is a product with the inverse.
    let other = |v: u32| {
        let lane = v.wrapping_mul(0x9E37_79B9u32.wrapping_pow(u32::MAX / 2));
        (lane ^ 32).wrapping_mul(0x9E37_79B9)
    };
    for barrier in ["bar.sync 0, 0;", "barrier.sync.aligned 3, 0;", "bar.red.or.pred q, 2, 0, p;"] {
        expect(Code::NonStandard, "", &exchange(barrier), other);
    }
    let counted = "bar.red.popc.u32 %out, 0, 0, p;";
    let body = format!(".reg .pred p;\nsetp.gt.u32 p, %t, 15;\n{counted}");
    expect(Code::NonStandard, "", &body, |_| 48);
}

#[test]
fn elements_beyond_a_pair_are_zero() {
    let vector = ".reg .v2 .u32 v;\nmov.u32 v.x, %in;\nmov.u32 v.y, 7;\n";
    expect(Code::NonStandard, "", &format!("{vector}mov.u32 %out, v.z;"), |_| 0);
    expect(Code::NonStandard, "", &format!("{vector}sub.u32 %out, v.w, v.x;"), |v| 0u32.wrapping_sub(v));
    expect(Code::NonStandard, "", &format!("{vector}add.u32 %out, v.b + 5, %in;"), |v| v.wrapping_add(5));
    let wide = ".reg .v2 .f64 d;\n.reg .u64 q;\nmov.f64 d.x, 1.0;\nmov.f64 d.y, 1.0;\nadd.f64 d.x, d.x, d.z;\n\
                mov.b64 q, d.x;\nshr.u64 q, q, 32;\ncvt.u32.u64 %out, q;";
    expect(Code::NonStandard, "", wide, |_| (1f64.to_bits() >> 32) as u32);
    let narrow = ".reg .v2 .b8 c;\n.reg .u16 h;\n.shared .b8 s[4];\nst.shared.b8 [s], c.a;\nld.shared.u8 h, [s];\n\
                  cvt.u32.u16 %out, h;\nadd.u32 %out, %out, %in;";
    expect(Code::NonStandard, "", narrow, |v| v);
    let passed = ".func (.reg .u32 r) id(.reg .u32 x)\n{\nmov.u32 r, x;\nret;\n}";
    expect(Code::NonStandard, passed, &format!("{vector}call (%out), id, (v.z);"), |_| 0);
}

#[test]
fn directives_without_effect_are_taken() {
    expect(Code::NonStandard, "", ".target sm_70\nmov.u32 %out, %in;\n.target sm_70", |v| v);
    expect(
        Code::NonStandard,
        ".global .u32 ;\n.visible .shared .align 8 .b64 ;",
        "mov.u32 %out, %in;",
        |v| v,
    );
    let lists =
        "list: .branchtargets here, missing;\n.branchtargets here, missing;\nhere: mov.u32 %out, %in;";
    expect(Code::NonStandard, "", lists, |v| v);
    expect(Code::NonStandard, "", "fence.acquire.gpu;\nmov.u32 %out, %in;", |v| v);
}

#[test]
fn the_newest_of_two_architectures_is_the_target() {
    for names in ["sm_70, sm_60", "sm_60, sm_70", "sm_70, sm_70"] {
        let text = format!(
            ".version 6.4\n.target {names}\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
             .reg .u64 %a;\n.reg .b32 %m;\nld.param.u64 %a, [out];\nmatch.any.sync.b32 %m, 5, -1;\n\
             st.global.b32 [%a], %m;\nret;\n}}\n"
        );
        let vm = Vm::new().expect("a device");
        let module = vm.load("k.ptx", &text).unwrap_or_else(|error| panic!("{error:?}"));
        assert!(module.warnings().iter().any(|d| d.code == Code::NonStandard), "{names}");
        let kernel = module.kernel("k").expect("it has one");
        let to = vm.zeros::<u32>(1).expect("memory");
        let launch = Launch::new([1; 3], [32, 1, 1]).args(&kernel, &[Arg::buffer(&to)]).expect("they fit");
        vm.launch(&kernel, &launch).unwrap_or_else(|error| panic!("{names}: {error:?}"));
        assert_eq!(to.read().expect("memory"), [u32::MAX], "{names}");
        let strict = CheckOptions { strict: true, ..CheckOptions::default() };
        assert!(vm.load_with("k.ptx", &text, &strict).is_err(), "{names}");
    }
}

#[test]
fn what_else_is_taken() {
    // 0xE8 is the majority of three; 0x1E8 is cut to it.
    let majority = "lop3.b32 %out, %in, 0xFF00FF00, 0x0F0F0F0F, 0x1E8;";
    expect(Code::ImmediateTruncated, "", majority, |v| {
        let (b, c) = (0xFF00_FF00, 0x0F0F_0F0F);
        (v & b) | (v & c) | (b & c)
    });
    expect(Code::ImmediateTruncated, "", "lop3.b32 %out, %in, 0, 0, -1;", |_| u32::MAX);
    expect(Code::NonStandard, "", ".reg .align 8 .u32 zz;\nmov.u32 zz, %in;\nmov.u32 %out, zz;", |v| v);
    expect(Code::NonStandard, "", "\\ mov.u32 %out, %in;", |v| v);
    let shift = "vshr.u32.u32.u32.clamp.sat %out, %in, 4;";
    expect(Code::NonStandard, "", shift, |v| v >> 4);
    // 1.0 < 2.0 in the low halves; the high halves are not looked at.
    let pairs = ".reg .pred p;\n.reg .b32 a, b;\nmov.b32 a, 0x40003C00;\nmov.b32 b, 0x3C004000;\nsetp.lt.f16x2 p, a, b;\nselp.u32 %out, 1, 0, p;";
    expect(Code::NonStandard, "", pairs, |_| 1);
    // A 16-bit register as an address in shared memory, and the address of a variable there in 16 bits.
    let narrow = ".shared .align 4 .b8 s[256];\n.reg .u16 h;\n.reg .u32 w;\nmov.u16 h, s;\ncvt.u32.u16 w, h;\nshl.b32 %t, %t, 2;\nadd.u32 w, w, %t;\n\
                  st.shared.u32 [w], %in;\ncvt.u16.u32 h, w;\nld.shared.u32 %out, [h];";
    expect(Code::NonStandard, "", narrow, |v| v);
}
