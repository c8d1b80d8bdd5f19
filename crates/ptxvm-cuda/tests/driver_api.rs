//! The library as C programs see it: opened by name, called through function pointers.

mod support;

use support::{Api, DOUBLE};

#[test]
fn a_kernel_runs() {
    let api = Api::open();
    unsafe {
        let mut context = 0usize;
        assert_eq!(
            (api.get::<extern "C" fn(*mut usize, u32, i32) -> i32>("cuCtxCreate_v2"))(&mut context, 0, 0),
            0
        );
        let mut module = 0usize;
        let text = std::ffi::CString::new(DOUBLE).unwrap();
        let load = api.get::<extern "C" fn(*mut usize, *const i8) -> i32>("cuModuleLoadData");
        assert_eq!(load(&mut module, text.as_ptr().cast()), 0);
        let mut function = 0usize;
        let get = api.get::<extern "C" fn(*mut usize, usize, *const i8) -> i32>("cuModuleGetFunction");
        assert_eq!(get(&mut function, module, c"double_all".as_ptr().cast()), 0);
        assert_eq!(get(&mut function, module, c"none".as_ptr().cast()), 500);
        let mut data = 0u64;
        assert_eq!((api.get::<extern "C" fn(*mut u64, usize) -> i32>("cuMemAlloc_v2"))(&mut data, 16), 0);
        let mut host = [1u32, 2, 3, 4];
        assert_eq!(
            (api.get::<extern "C" fn(u64, *const u32, usize) -> i32>("cuMemcpyHtoD_v2"))(
                data,
                host.as_ptr(),
                16
            ),
            0
        );
        let launch = api.get::<extern "C" fn(
            usize,
            u32,
            u32,
            u32,
            u32,
            u32,
            u32,
            u32,
            usize,
            *const *const u64,
            usize,
        ) -> i32>("cuLaunchKernel");
        let params = [&raw const data];
        assert_eq!(launch(function, 1, 1, 1, 4, 1, 1, 0, 0, params.as_ptr(), 0), 0);
        assert_eq!(
            (api.get::<extern "C" fn(*mut u32, u64, usize) -> i32>("cuMemcpyDtoH_v2"))(
                host.as_mut_ptr(),
                data,
                16
            ),
            0
        );
        assert_eq!(host, [2, 4, 6, 8]);
    }
}
