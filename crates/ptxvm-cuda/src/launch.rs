//! Launches, and what traps are called.

use crate::context::current;
use crate::driver::status_of;
use crate::entry::entries;
use crate::ffi::{In, Pointer};
use crate::handles::Handle;
use crate::log;
use crate::status::Status;
use ptxvm::{ErrorKind, FaultKind, Launch, Trap};
use std::ffi::c_uint;

/// What this API calls a trap.
pub(crate) fn status_of_trap(trap: &Trap) -> Status {
    match &trap.kind {
        FaultKind::IllegalAddress | FaultKind::ReadOnly => Status::IllegalAddress,
        FaultKind::Misaligned => Status::MisalignedAddress,
        FaultKind::Assert(_) => Status::Assert,
        FaultKind::BadCall | FaultKind::BadBranchIndex => Status::InvalidPc,
        FaultKind::StackOverflow => Status::HardwareStackError,
        FaultKind::BadBarrier(_) | FaultKind::BadMemberMask | FaultKind::BadAligned(_) => {
            Status::IllegalInstruction
        }
        FaultKind::Deadlock(_) | FaultKind::StepLimit | FaultKind::TimeLimit => Status::LaunchTimeout,
        FaultKind::Trap
        | FaultKind::BadTexture(_)
        | FaultKind::SurfaceBounds(_)
        | FaultKind::Unsupported(_) => Status::LaunchFailed,
    }
}

entries! { ENTRIES;
    /// Runs a kernel.
    fn cuLaunchKernel | cuLaunchKernel_ptsz as _default (
        function: Handle,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint,
        _stream: Handle,
        params: In<Pointer>,
        _extra: In<Pointer>,
    ) {
        let (driver, context) = current()?;
        let function = driver.functions.get(function)?;
        let mut launch = Launch::new([grid_x, grid_y, grid_z], [block_x, block_y, block_z]).shared(shared);
        launch.params = vec![0; function.kernel.param_bytes()];
        for (index, slot) in function.kernel.params().iter().enumerate() {
            let bytes = params.at(index)?.values::<u8>().all(slot.bytes)?;
            launch.params[slot.offset..slot.offset + slot.bytes].copy_from_slice(&bytes);
        }
        driver.vm.launch(&function.kernel, &launch).map(|_| ()).map_err(|error| {
            let status = status_of(&error);
            if let ErrorKind::Trap(trap, _) = error.kind() {
                log::say(&trap.to_string());
                context.strike(status);
            }
            status
        })
    }
}
