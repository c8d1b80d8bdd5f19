//! `ptx_run`: a function that runs the first kernel of a PTX text on host memory, the interface of
//! `libgpuocelot.so`.
//!
//! Clients of this interface have no device memory; they pass pointers of the process. The function therefore
//! has a device of its own, on which kernels can access all memory of the process ([`Vm::reach_host`]), and
//! its callers accept that. Devices of the driver API do not allow this, unless `PTXVM_HOST_POINTERS` is set.
//!
//! Invariant: a text is checked and compiled once while it is cached. What it does not do: wild pointers of a
//! kernel are not found, except near null.

use crate::driver::status_of;
use crate::entry::enter;
use crate::ffi::{self, In, Pointer, Text};
use crate::log;
use crate::status::Status;
use crate::tools::{self, Tools};
use ptxvm::{ErrorKind, Kernel, Launch, Options, Report, Vm};
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Most cached texts. With more, the cache is emptied.
const KEPT: usize = 4096;

/// The device, and the kernels of cached texts.
struct Host {
    vm: Vm,
    kernels: Mutex<HashMap<String, Kernel>>,
    tools: Option<Tools>,
}

static HOST: OnceLock<Result<Host, Status>> = OnceLock::new();

/// The device and the sanitizers of it, in the process that made them.
pub(crate) fn watched() -> Option<(&'static Tools, &'static Vm)> {
    let host = HOST.get()?.as_ref().ok().filter(|_| !host_memory::is_forked())?;
    host.tools.as_ref().map(|tools| (tools, &host.vm))
}

impl Host {
    fn get() -> Result<&'static Self, Status> {
        let make = || {
            let mut options = Options::default();
            tools::add_to(&mut options);
            let vm = Vm::with(options).map_err(|error| status_of(&error))?;
            ffi::reach_host(&vm);
            Ok(Host { tools: Tools::of(&vm), vm, kernels: Mutex::default() })
        };
        host_memory::watch();
        if host_memory::is_forked() {
            return Err(Status::NotInitialized);
        }
        HOST.get_or_init(make).as_ref().map_err(|status| *status)
    }

    /// The first kernel of a text.
    fn kernel(&self, text: String) -> Result<Kernel, Status> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = kernels.get(&text) {
            return Ok(kernel.clone());
        }
        let loaded = self.vm.load("<ptx_run>", &text).map_err(|error| {
            log::say(&format!("ptx_run: {error}"));
            status_of(&error)
        })?;
        let name = loaded.kernels().next().map(str::to_owned).ok_or(Status::NotFound)?;
        let kernel = loaded.kernel(&name).map_err(|error| status_of(&error))?;
        if kernels.len() >= KEPT {
            kernels.clear();
        }
        kernels.insert(text, kernel.clone());
        Ok(kernel)
    }
}

/// Runs the first kernel of a PTX text with CTAs of `bx`, `by`, `bz` threads in a grid of `gx`, `gy`, `gz`,
/// and `smem` bytes of dynamic shared memory. `args[i]` is the value of parameter `i` itself: a pointer, or a
/// number in its low bytes. Returns 0, or the driver API's error number; the error is also printed to
/// standard error.
#[unsafe(no_mangle)]
extern "C" fn ptx_run(
    ptx: Text,
    n: c_int,
    args: In<Pointer>,
    bx: c_int,
    by: c_int,
    bz: c_int,
    gx: c_int,
    gy: c_int,
    gz: c_int,
    smem: c_int,
) -> Status {
    enter("ptx_run", move || {
        let host = Host::get()?;
        let kernel = host.kernel(ptx.get()?)?;
        let size = |x: c_int| u32::try_from(x).map_err(|_| Status::InvalidValue);
        let launch = Launch::new([size(gx)?, size(gy)?, size(gz)?], [size(bx)?, size(by)?, size(bz)?]);
        let mut launch = launch.shared(size(smem)?);
        let slots = kernel.params();
        if usize::try_from(n) != Ok(slots.len()) || slots.iter().any(|slot| slot.bytes > 8) {
            let takes = slots.len();
            log::say(&format!(
                "ptx_run: expected {takes} values of at most 8 bytes for `{}`, found {n}",
                kernel.name()
            ));
            return Err(Status::InvalidValue);
        }
        launch.params = vec![0; kernel.param_bytes()];
        for (index, slot) in slots.iter().enumerate() {
            let value = args.at(index)?.address().to_le_bytes();
            launch.params[slot.offset..slot.offset + slot.bytes].copy_from_slice(&value[..slot.bytes]);
        }
        let result = host.vm.launch(&kernel, &launch);
        if let Some(tools) = &host.tools {
            tools.settle(&host.vm);
        }
        result.map(|report| print(&report)).map_err(|error| {
            match error.kind() {
                ErrorKind::Trap(trap, report) => {
                    print(report);
                    log::say(&trap.to_string());
                }
                _ => log::say(&format!("ptx_run: {error}")),
            }
            status_of(&error)
        })
    })
}

/// Prints what the kernel printed.
fn print(report: &Report) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    let _closed = out.write_all(&report.output).and_then(|()| out.flush());
    if report.dropped > 0 {
        log::say(&format!("ptx_run: the kernel printed too much; {} bytes are lost", report.dropped));
    }
}

#[cfg(test)]
mod tests {
    use super::ptx_run;
    use crate::ffi::{In, Pointer, Text};
    use crate::status::Status;

    /// `out[i] = in[i] * scale + offset`, with a value of 4 bytes and one of 2 among the parameters.
    const SCALE: &std::ffi::CStr = c"
.version 7.5
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 out, .param .u64 in, .param .u32 scale, .param .u16 offset)
{
    .reg .b16 %h;
    .reg .b32 %r<9>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [in];
    ld.param.u32 %r1, [scale];
    ld.param.u16 %h, [offset];
    cvt.u32.u16 %r2, %h;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;
    mul.wide.u32 %rd3, %r6, 4;
    add.u64 %rd4, %rd2, %rd3;
    add.u64 %rd5, %rd1, %rd3;
    ld.global.u32 %r7, [%rd4];
    mad.lo.u32 %r7, %r7, %r1, %r2;
    st.global.u32 [%rd5], %r7;
    ret;
}";

    fn run(text: &std::ffi::CStr, args: &[u64], block: i32, grid: i32) -> Status {
        let args: Vec<Pointer> = args.iter().map(|value| Pointer::from_address(*value)).collect();
        let text: Text = Pointer::from_address(text.as_ptr().expose_provenance() as u64).text();
        let list: In<Pointer> = Pointer::from_address(args.as_ptr().expose_provenance() as u64).values();
        ptx_run(text, args.len() as i32, list, block, 1, 1, grid, 1, 1, 0)
    }

    #[test]
    fn kernels_work_on_host_memory() {
        let input: Vec<u32> = (0..16384).collect();
        for size in [64, 512] {
            let mut output = vec![0u32; 16384];
            let at = output.as_mut_ptr().expose_provenance() as u64;
            let from = input.as_ptr().expose_provenance() as u64;
            // Values narrower than 8 bytes have garbage in the other bytes.
            let args = [at, from, 0xdead_0000_0003, 0xbeef_0007];
            assert_eq!(run(SCALE, &args, size, 16384 / size), Status::Success);
            assert!(output.iter().zip(&input).all(|(out, x)| *out == x * 3 + 7));
        }
    }

    #[test]
    fn mistakes_have_the_drivers_numbers() {
        assert_eq!(run(SCALE, &[0, 0, 1, 0], 1, 1), Status::IllegalAddress);
        assert_eq!(run(SCALE, &[0, 0, 1], 1, 1), Status::InvalidValue);
        assert_eq!(run(SCALE, &[0, 0, 1, 0], -1, 1), Status::InvalidValue);
        assert_eq!(run(c"no ptx", &[], 1, 1), Status::InvalidPtx);
        assert_eq!(run(c".version 7.0 .target sm_70 .address_size 64", &[], 1, 1), Status::NotFound);
    }
}
