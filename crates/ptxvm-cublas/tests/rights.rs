//! Operands in memory that may not be written, or not be accessed at all: mapped memory with fewer rights
//! (`cuMemSetAccess`), and host memory that kernels can access (`PTXVM_HOST_POINTERS`). A call that would
//! access it fails, and nothing is written.

mod support;

use std::ffi::{c_int, c_void};
use std::process::Command;
use support::{Device, EXECUTION_FAILED, Handle, SUCCESS, raw};

const PAGE: usize = 4096;
/// Bytes of a mapping of the device.
const SIZE: usize = 2 << 20;
/// `CU_MEM_ACCESS_FLAGS_PROT_...`, which are also `PROT_...` of the host.
const NONE: i32 = 0;
const READ: i32 = 1;
const WRITE: i32 = 3;
/// What the child process does.
const CHILD: &str = "PTXVM_TEST_HOST_OPERANDS";

// SAFETY: the declarations have the signatures that POSIX gives these functions of the C library.
unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        rights: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn mprotect(at: *mut c_void, bytes: usize, rights: c_int) -> c_int;
}

/// Device memory whose rights can be set. It holds zeros.
fn mapped() -> usize {
    let pinned = [1i32, 0, 1, 0, 0, 0, 0, 0];
    let (mut at, mut memory) = (0usize, 0usize);
    assert_eq!(call!("cuMemCreate", &mut memory, SIZE, &pinned, 0usize), SUCCESS);
    assert_eq!(call!("cuMemAddressReserve", &mut at, SIZE, 0usize, 0usize, 0usize), SUCCESS);
    assert_eq!(call!("cuMemMap", at, SIZE, 0usize, memory, 0usize), SUCCESS);
    at
}

/// Sets the rights of device 0.
fn set_access(at: usize, rights: i32) {
    assert_eq!(call!("cuMemSetAccess", at, SIZE, &[1i32, 0, rights], 1usize), SUCCESS);
}

/// Words of private host memory that are zero.
fn host() -> usize {
    // SAFETY: a new mapping replaces none.
    // Flags of Linux: private and anonymous.
    unsafe { mmap(std::ptr::null_mut(), PAGE, WRITE, 0x22, -1, 0) }.expose_provenance()
}

/// Sets the rights of host memory.
fn protect(at: usize, rights: i32) {
    // SAFETY: the page is the test's own.
    assert_eq!(unsafe { mprotect(std::ptr::with_exposed_provenance_mut(at), PAGE, rights) }, 0);
}

/// Calls with the address `given` for one operand: `check` gets the name, whether the operand is written, and
/// the status.
fn calls(given: usize, mut check: impl FnMut(&str, bool, i32)) {
    let handle = Handle::new();
    let (h, one, zero) = (handle.0, 1f32, 0i32);
    let s = (&raw const one).expose_provenance();
    // Zeros, so that given memory stays zero where it is written.
    let memory = Device::new(&[0f32; 1024]);
    let d = memory.at;
    let g = given;
    let table: &[(&str, &[usize], bool)] = &[
        ("cublasSaxpy_v2", &[h, 4, s, g, 1, d, 1], false),
        ("cublasSaxpy_v2", &[h, 4, s, d, 1, g, 1], true),
        ("cublasScopy_v2", &[h, 4, g, 1, d, 1], false),
        ("cublasScopy_v2", &[h, 4, d, 1, g, 1], true),
        ("cublasSswap_v2", &[h, 4, g, 1, d, 1], true),
        ("cublasSswap_v2", &[h, 4, d, 1, g, 1], true),
        ("cublasSscal_v2", &[h, 4, s, g, 1], true),
        ("cublasSrot_v2", &[h, 4, d, 1, g, 1, s, s], true),
        ("cublasSgemv_v2", &[h, 0, 4, 4, s, g, 4, d, 1, s, d, 1], false),
        ("cublasSgemv_v2", &[h, 0, 4, 4, s, d, 4, g, 1, s, d, 1], false),
        ("cublasSgemv_v2", &[h, 0, 4, 4, s, d, 4, d, 1, s, g, 1], true),
        ("cublasStrmv_v2", &[h, 0, 0, 1, 4, g, 4, d, 1], false),
        ("cublasStrmv_v2", &[h, 0, 0, 1, 4, d, 4, g, 1], true),
        ("cublasStbsv_v2", &[h, 0, 0, 1, 4, 1, g, 2, d, 1], false),
        ("cublasStpsv_v2", &[h, 0, 0, 1, 4, d, g, 1], true),
        ("cublasSger_v2", &[h, 4, 4, s, g, 1, d, 1, d, 4], false),
        ("cublasSger_v2", &[h, 4, 4, s, d, 1, d, 1, g, 4], true),
        ("cublasSspr_v2", &[h, 0, 4, s, d, 1, g], true),
        ("cublasSgemm_v2", &[h, 0, 0, 4, 4, 4, s, g, 4, d, 4, s, d, 4], false),
        ("cublasSgemm_v2", &[h, 0, 0, 4, 4, 4, s, d, 4, g, 4, s, d, 4], false),
        ("cublasSgemm_v2", &[h, 0, 0, 4, 4, 4, s, d, 4, d, 4, s, g, 4], true),
        ("cublasSsymm_v2", &[h, 0, 0, 4, 4, s, g, 4, d, 4, s, d, 4], false),
        ("cublasSsyrk_v2", &[h, 0, 0, 4, 4, s, d, 4, s, g, 4], true),
        ("cublasStrmm_v2", &[h, 0, 0, 0, 1, 4, 4, s, d, 4, g, 4, d, 4], false),
        ("cublasStrmm_v2", &[h, 0, 0, 0, 1, 4, 4, s, d, 4, d, 4, g, 4], true),
        ("cublasStrsm_v2", &[h, 0, 0, 0, 1, 4, 4, s, g, 4, d, 4], false),
        ("cublasStrsm_v2", &[h, 0, 0, 0, 1, 4, 4, s, d, 4, g, 4], true),
        ("cublasSgeam", &[h, 0, 0, 4, 4, s, d, 4, s, g, 4, d, 4], false),
        ("cublasSgeam", &[h, 0, 0, 4, 4, s, d, 4, s, d, 4, g, 4], true),
        ("cublasSdgmm", &[h, 0, 4, 4, d, 4, g, 1, d, 4], false),
        ("cublasStrttp", &[h, 0, 4, g, 4, d], false),
        ("cublasStrttp", &[h, 0, 4, d, 4, g], true),
        ("cublasStpttr", &[h, 0, 4, g, d, 4], false),
        ("cublasStpttr", &[h, 0, 4, d, g, 4], true),
        ("cublasSetVector", &[4, 4, (&raw const zero).expose_provenance(), 1, g, 1], true),
        ("cublasSetVector", &[4, 4, g, 1, d, 1], false),
        ("cublasGetVector", &[4, 4, g, 1, d, 1], false),
        ("cublasGetVector", &[4, 4, d, 1, g, 1], true),
    ];
    for (name, arguments, writes) in table {
        check(name, *writes, raw(name, arguments));
    }
    handle.device_mode(true);
    check("cublasSdot_v2", true, raw("cublasSdot_v2", &[h, 4, d, 1, d, 1, g]));
    check("cublasSscal_v2", false, raw("cublasSscal_v2", &[h, 4, g, d, 1]));
}

/// Each call fails if it accesses memory as these rights do not allow.
fn check(given: usize, rights: i32) {
    calls(given, |name, writes, code| {
        let permitted = rights == WRITE || rights == READ && !writes;
        let expected = if permitted { SUCCESS } else { EXECUTION_FAILED };
        assert_eq!(code, expected, "{name}, rights {rights}, writes: {writes}");
    });
}

#[test]
fn mapped_memory_keeps_its_rights() {
    let handle = Handle::new();
    let at = mapped();
    for rights in [NONE, READ, WRITE, READ] {
        set_access(at, rights);
        check(at, rights);
    }
    assert_eq!(call!("cuMemUnmap", at, SIZE), SUCCESS);
    check(at, NONE);
    drop(handle);
}

#[test]
fn registered_memory_that_lost_its_rights_is_an_error() {
    let handle = Handle::new();
    let at = host();
    assert_eq!(call!("cuMemHostRegister_v2", at, PAGE, 0usize), SUCCESS);
    for rights in [WRITE, READ, NONE] {
        protect(at, rights);
        check(at, rights);
    }
    drop(handle);
}

#[test]
fn host_memory_keeps_its_rights() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let at = host();
    for rights in [WRITE, READ, NONE] {
        protect(at, rights);
        check(at, rights);
    }
}

#[test]
fn host_memory_that_kernels_can_access_keeps_its_rights() {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program);
    child.args(["--exact", "host_memory_keeps_its_rights", "--nocapture"]);
    let output = child.env(CHILD, "1").env("PTXVM_HOST_POINTERS", "1").output().expect("it starts");
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}
