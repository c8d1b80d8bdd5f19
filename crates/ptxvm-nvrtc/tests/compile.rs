//! Programs that clang compiles and the driver runs. Without clang each test prints that and passes.
#![cfg(target_os = "linux")]

mod support;

use support::{Module, Program, has_clang};

/// Compiles a program for a device and loads the result.
fn loaded(program: &Program) -> Module {
    Module::load(&program.bytes("nvrtcGetCUBINSize", "nvrtcGetCUBIN").expect("there is code"))
}

#[test]
fn a_kernel_is_compiled_and_runs() {
    if !has_clang() {
        return;
    }
    let program = Program::new(
        r#"
extern "C" __global__ void sums(int *data) {
  __shared__ int parts[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  parts[threadIdx.x] = data[i];
  __syncthreads();
  int sum = __shfl_xor_sync(0xffffffffu, parts[63 - threadIdx.x], 1);
  uint2 pair = make_uint2(__popc(i), __ballot_sync(~0u, i & 1));
  data[i] = sum + pair.x + (pair.y == 0xaaaaaaaau) + atomicAdd(&data[64], 1) * 0;
}
"#,
    )
    .compiled(&["--gpu-architecture=sm_80"]);
    assert_eq!(program.log(), "");
    let values: Vec<i32> = (0..65).collect();
    let results = loaded(&program).run("sums", 64, &values);
    for i in 0..64i32 {
        assert_eq!(results[i as usize], (63 - (i ^ 1)) + i.count_ones() as i32 + 1, "thread {i}");
    }
    assert_eq!(results[64], 128);
}

#[test]
fn an_old_compiler_is_rejected_with_the_oldest_supported_version() {
    if !has_clang() {
        return;
    }
    let program = Program::new("__global__ void k() {}");
    assert_eq!(program.compile(&["-U__clang_major__", "-D__clang_major__=18"]), 6);
    assert!(program.log().contains("ptxvm's NVRTC needs clang 19 or later"), "{}", program.log());
}

#[test]
fn names_of_templates_and_variables_are_found() {
    if !has_clang() {
        return;
    }
    let program = Program::new(
        "namespace n { template <class T, int N> __global__ void k(T *x) { *x += N; } __constant__ float c[4]; __device__ int v = 3; }
static __global__ void hidden(int *x) { *x = n::v; }",
    );
    let names = ["n::k<int, 5>", "&n::k<double, 2>", "&n::c", "&n::v", "hidden"];
    for name in names {
        program.add(name);
    }
    let program = program.compiled(&["-arch=sm_75"]);
    let [of_int, of_double, array, variable, hidden] =
        names.map(|name| program.lowered(name).expect("a name"));
    assert_eq!(of_int, "_ZN1n1kIiLi5EEEvPT_");
    assert_eq!(of_double, "_ZN1n1kIdLi2EEEvPT_");
    assert_eq!((array.as_str(), variable.as_str()), ("_ZN1n1cE", "_ZN1n1vE"));
    let ptx = program.ptx().expect("PTX");
    assert!(!ptx.contains("__ptxvm_name"), "{ptx}");
    let module = loaded(&program);
    assert_eq!(module.run(&of_int, 1, &[10i32]), [15]);
    assert_eq!(module.run(&of_double, 1, &[0.5f64]), [2.5]);
    assert_eq!(module.run(&hidden, 1, &[0i32]), [3]);
    assert_eq!(program.lowered("n::k<float, 1>"), Err(10));
}

/// A header written like CUDA's header for halves. From version 12.3 on such a header has no bodies for
/// run-time compilers, unless it is asked for them.
#[test]
fn headers_of_halves_bring_the_bodies_of_their_functions() {
    if !has_clang() {
        return;
    }
    let header = "struct number { float x; __device__ operator float() const; };
#if defined(__FORCE_INCLUDE_CUDA_FP16_HPP_FROM_FP16_H__) && defined(__FORCE_INCLUDE_CUDA_BF16_HPP_FROM_BF16_H__)
__device__ __forceinline__ number::operator float() const { return x; }
#endif
";
    let text = "#include \"number.h\"
extern \"C\" __global__ void twice(float *x) { number n{*x}; *x = 2 * float(n); }";
    let program = Program::with(text, "halves.cu", &[("number.h", header)]).compiled(&["-arch=sm_80"]);
    assert_eq!(loaded(&program).run("twice", 1, &[1.5f32]), [3.0]);
}

#[test]
fn mistakes_are_in_the_log_under_the_names_that_the_caller_gave() {
    if !has_clang() {
        return;
    }
    let headers = [("part/values.h", "#pragma once\nint value = wrong;\n")];
    let program =
        Program::with("#include \"part/values.h\"\n__global__ void k() { x; }\n", "my \"own\".cu", &headers);
    assert_eq!(program.compile(&[]), 6);
    let log = program.log();
    assert!(log.contains("part/values.h:2:13: error: use of undeclared identifier 'wrong'"), "{log}");
    assert!(log.contains("my \"own\".cu:2:23: error: use of undeclared identifier 'x'"), "{log}");
    assert!(!log.contains("/ptxvm-nvrtc-"), "{log}");
    let program = Program::new("__global__ void k() {}");
    program.add("missing<int>");
    assert_eq!(program.compile(&[]), 6);
    assert!(program.log().contains("name expression:1:"), "{}", program.log());
}

#[test]
fn headers_are_found_by_their_names() {
    if !has_clang() {
        return;
    }
    let headers = [
        ("a.h", "#include <sub/b.h>\n#include \"../up.h\"\n#define A (B + UP)\n"),
        ("sub/b.h", "#include \"c.h\"\n#define B C\n"),
        ("sub/c.h", "#define C 40\n"),
        ("../up.h", "#define UP 2\n"),
    ];
    let text =
        "#include \"a.h\"\n#include <stdint.h>\nextern \"C\" __global__ void k(int32_t *x) { *x = A; }";
    let program = Program::with(text, "k.cu", &headers).compiled(&["-arch=sm_80"]);
    assert_eq!(loaded(&program).run("k", 1, &[0i32]), [42]);
}

#[test]
fn options_reach_the_compiler() {
    if !has_clang() {
        return;
    }
    let text = "
extern \"C\" __global__ void k(float *x) {
#ifdef GONE
#error GONE
#endif
  int value = helper(NUMBER);
  x[0] = x[0] / x[1] + x[2] * value;
  x[1] = sqrtf(x[1]) + sinf(x[2]);
}
";
    let text = format!("int helper(int x) {{ return x; }}\n{text}");
    let exact = Program::new(&text).compiled(&[
        "--gpu-architecture=compute_80",
        "-DNUMBER=7",
        "-D",
        "GONE",
        "--undefine-macro=GONE",
        "--device-as-default-execution-space",
        "--fmad=false",
        "-std=c++14",
    ]);
    let exact = exact.ptx().expect("PTX");
    assert!(
        exact.contains("div.rn.f32") && exact.contains("sqrt.rn.f32") && !exact.contains("sin.approx"),
        "{exact}"
    );
    assert!(!exact.contains("fma.rn.f32"), "{exact}");
    let fast = Program::new(&text).compiled(&[
        "-arch=sm_90",
        "-DNUMBER=7",
        "-use_fast_math",
        "-default-device",
        "-lineinfo",
    ]);
    let fast = fast.ptx().expect("PTX");
    assert!(!fast.contains("ptxvm-nvrtc-"), "it depends on the name of a folder: {fast}");
    assert!(fast.contains("div.approx.ftz.f32") && fast.contains("sqrt.approx.ftz.f32"), "{fast}");
    assert!(
        fast.contains("sin.approx.ftz.f32") && fast.contains(".target sm_90") && fast.contains(".loc"),
        "{fast}"
    );
    let plain = Program::new(&text);
    assert_eq!(plain.compile(&["-DNUMBER=7"]), 6);
    assert!(plain.log().contains("call to __host__ function from __global__ function"), "{}", plain.log());
}

#[test]
fn what_programs_find_without_including_it_is_there() {
    if !has_clang() {
        return;
    }
    let text = include_str!("builtins.cu");
    for architecture in ["sm_52", "sm_60", "sm_75", "sm_80", "sm_90", "sm_120"] {
        for standard in ["c++11", "c++14", "c++17", "c++20"] {
            let options = [format!("-arch={architecture}"), format!("-std={standard}")];
            let program = Program::new(text);
            let status = program.compile(&[options[0].as_str(), options[1].as_str()]);
            // Clang 19 has no architecture beyond sm_90a.
            if architecture == "sm_120" && program.log().contains("unsupported CUDA gpu architecture") {
                println!("skipped: this clang does not know {architecture}");
                continue;
            }
            assert_eq!((status, program.log().as_str()), (support::SUCCESS, ""), "{options:?}");
            if standard == "c++17" {
                let results = loaded(&program).run("all", 32, &[0u32; 64]);
                assert_eq!(&results[..32], &[0; 32], "{options:?}: the first test that failed, by thread");
            }
        }
    }
}

/// Headers of CUDA ask for the compiler, and leave out the host's headers for NVRTC only.
#[test]
fn headers_find_the_compiler_of_programs_at_run_time() {
    if !has_clang() {
        return;
    }
    let header = "
#if !defined(__CUDACC_RTC__) || defined(__clang__) || defined(__GNUC__) || CUDART_VERSION != 12090
#include <host_only.h>
#endif
NV_IF_TARGET(NV_IS_DEVICE, __device__ int here = sizeof(std::initializer_list<int>);)
";
    let target = "#define NV_IS_DEVICE 1\n#define NV_IF_TARGET(condition, ...) __VA_ARGS__\n";
    let headers = [("asks.h", header), ("nv/target", target)];
    let text = "#include <asks.h>
struct Moved { int x; Moved(Moved &&) = default; __device__ Moved(int x) : x(x) {} };
extern \"C\" __global__ void k(int *x) { Moved a(*x); Moved b(std::move(a)); *x = b.x + here; }";
    let program = Program::with(text, "k.cu", &headers).compiled(&["-arch=sm_80"]);
    assert_eq!(program.log(), "");
    assert_eq!(loaded(&program).run("k", 1, &[5i32]), [21]);
}

#[test]
fn functions_that_are_missing_are_refused_by_name() {
    if !has_clang() {
        return;
    }
    let program = Program::new("extern \"C\" __global__ void k(double *x) { *x = j0(*x); }");
    assert_eq!(program.compile(&[]), 6);
    assert!(program.log().contains("Bessel functions are not implemented"), "{}", program.log());
}

#[test]
fn code_for_debugging_and_parts_of_programs_run() {
    if !has_clang() {
        return;
    }
    for options in [
        &["-arch=sm_80", "-G"][..],
        &["-arch=sm_80", "-rdc=true"],
        &["-arch=sm_80", "--dopt=on", "-lineinfo"],
    ] {
        let program = Program::new("__device__ int twice(int x) { return 2 * x; }\nextern \"C\" __global__ void k(int *x) { *x = twice(*x); }").compiled(options);
        assert_eq!(loaded(&program).run("k", 1, &[21i32]), [42], "{options:?}");
    }
}
