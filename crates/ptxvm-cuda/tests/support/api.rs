//! Calls of the library like those of C programs.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::ffi::CString;

/// Kernels of the tests.
pub(crate) const KERNELS: &str = "
.version 6.4
.target sm_70
.address_size 64

.visible .global .align 4 .u32 counter = 7;
.global .texref image;

.visible .entry nothing() { ret; }

// data[i] = data[i] * 2
.visible .entry double_all(.param .u64 data)
{
    .reg .b32 %r<5>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mad.lo.u32 %r1, %r3, %r4, %r1;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    add.s32 %r2, %r2, %r2;
    st.global.u32 [%rd3], %r2;
    ret;
}

// *out = a + b, of different sizes
.visible .entry mixed(.param .u8 a, .param .u64 out, .param .u16 b)
{
    .reg .b16 %h<3>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    ld.param.u8 %h1, [a];
    ld.param.u64 %rd1, [out];
    ld.param.u16 %h2, [b];
    cvt.u32.u16 %r1, %h1;
    cvt.u32.u16 %r2, %h2;
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry count(.param .u64 at)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [at];
    atom.global.add.u32 %r1, [%rd1], 1;
    ret;
}

// waits until *flag is not 0
.visible .entry wait(.param .u64 flag)
{
    .reg .pred %p;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [flag];
again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p, %r1, 0;
    @%p bra again;
    ret;
}

.visible .entry stops() { trap; }

.visible .entry misaligned(.param .u64 data)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [data];
    ld.global.u32 %r1, [%rd1+1];
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry shared(.param .u64 out)
{
    .shared .align 4 .b8 own[1024];
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %dynamic_smem_size;
    st.global.u32 [%rd1], %r1;
    st.shared.u32 [own], %r1;
    ret;
}

// out[x] = texel x of a texture object
.visible .entry sample(.param .u64 texture, .param .u64 out)
{
    .reg .b32 %r<6>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [texture];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2}];
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd3, %r4, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.f32 [%rd4], %f1;
    ret;
}
";

/// The initialized library, as a function from names to addresses.
#[derive(Clone, Copy)]
pub(crate) struct Api(fn(&str) -> usize);

/// Arguments of a C function.
pub(crate) trait Arguments {
    /// Calls the function with a name.
    fn call(self, api: Api, name: &str) -> i32;
}

macro_rules! arguments {
    ($($value:ident: $ty:ident),*) => {
        impl<$($ty),*> Arguments for ($($ty,)*) {
            fn call(self, api: Api, name: &str) -> i32 {
                let ($($value,)*) = self;
                let function = std::ptr::with_exposed_provenance::<()>((api.0)(name));
                // SAFETY: the tests pass each function the documented arguments, or arguments that it must
                // reject.
                let function = unsafe {
                    std::mem::transmute::<*const (), extern "C" fn($($ty),*) -> i32>(function)
                };
                function($($value),*)
            }
        }
    };
}
arguments!();
arguments!(a: A);
arguments!(a: A, b: B);
arguments!(a: A, b: B, c: C);
arguments!(a: A, b: B, c: C, d: D);
arguments!(a: A, b: B, c: C, d: D, e: E);
arguments!(a: A, b: B, c: C, d: D, e: E, f: F);
arguments!(a: A, b: B, c: C, d: D, e: E, f: F, g: G);
arguments!(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H);
arguments!(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I, j: J);
arguments!(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H, i: I, j: J, k: K);

/// The type of `cuLaunchKernel`'s parameters.
pub(crate) type Params = *const *const u64;

impl Api {
    /// The library whose functions have the addresses that `find` returns, after `cuInit`.
    pub(crate) fn at(find: fn(&str) -> usize) -> Self {
        let api = Self(find);
        api.ok("cuInit", (0u32,));
        api
    }

    /// Calls a function and returns its status.
    pub(crate) fn call(self, name: &str, arguments: impl Arguments) -> i32 {
        arguments.call(self, name)
    }

    /// Calls a function that takes up to eleven words and returns its status.
    pub(crate) fn call_words(self, name: &str, words: &[usize]) -> i32 {
        let word = |index: usize| words.get(index).copied().unwrap_or(0);
        let arguments = (
            word(0),
            word(1),
            word(2),
            word(3),
            word(4),
            word(5),
            word(6),
            word(7),
            word(8),
            word(9),
            word(10),
        );
        self.call(name, arguments)
    }

    /// Calls a function that must succeed.
    #[track_caller]
    pub(crate) fn ok(self, name: &str, arguments: impl Arguments) {
        assert_eq!(self.call(name, arguments), 0, "{name}");
    }

    /// Calls a function that must succeed and writes a value.
    #[track_caller]
    pub(crate) fn make<T: Default, A: Arguments>(self, name: &str, arguments: impl FnOnce(*mut T) -> A) -> T {
        let mut value = T::default();
        self.ok(name, arguments(&raw mut value));
        value
    }

    /// Loads [`KERNELS`].
    #[track_caller]
    pub(crate) fn module(self) -> usize {
        let text = CString::new(KERNELS).expect("no zero in it");
        self.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()))
    }

    /// A kernel of a module.
    #[track_caller]
    pub(crate) fn function(self, module: usize, name: &str) -> usize {
        let name = CString::new(name).expect("no zero in it");
        self.make("cuModuleGetFunction", |out: *mut usize| (out, module, name.as_ptr()))
    }

    /// Allocates device memory.
    #[track_caller]
    pub(crate) fn alloc(self, bytes: usize) -> u64 {
        self.make("cuMemAlloc_v2", |out: *mut u64| (out, bytes))
    }

    /// Runs a kernel of one parameter.
    pub(crate) fn launch(self, function: usize, (grid, block): (u32, u32), stream: usize, param: u64) -> i32 {
        let params = [&raw const param];
        let params: Params = params.as_ptr();
        self.call(
            "cuLaunchKernel",
            (function, grid, 1u32, 1u32, block, 1u32, 1u32, 0u32, stream, params, 0usize),
        )
    }

    /// Numbers in device memory.
    #[track_caller]
    pub(crate) fn read(self, address: u64, count: usize) -> Vec<u32> {
        let mut host = vec![0u32; count];
        self.ok("cuMemcpyDtoH_v2", (host.as_mut_ptr(), address, 4 * count));
        host
    }
}
