//! Copies of rectangles and boxes, between memory of any kind and arrays.
//!
//! Invariant: every row of both sides is checked before the call returns.

use crate::copy::move_bytes;
use crate::driver::Driver;
use crate::entry::{DefaultStream, entries};
use crate::ffi::{In, Pointer};
use crate::handles::Handle;
use crate::memory::Side;
use crate::status::{Answer, Status};
use crate::stream::{When, queue};
use std::ffi::c_int;

/// One side of `CUDA_MEMCPY2D`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Side2d {
    x: usize,
    y: usize,
    kind: c_int,
    host: Pointer,
    device: u64,
    array: Handle,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`
#[derive(Clone, Copy)]
#[repr(C)]
struct Copy2d {
    from: Side2d,
    to: Side2d,
    width: usize,
    height: usize,
}

/// One side of `CUDA_MEMCPY3D` and of `CUDA_MEMCPY3D_PEER`, which has a context where the other has nothing.
#[derive(Clone, Copy)]
#[repr(C)]
struct Side3d {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: c_int,
    host: Pointer,
    device: u64,
    array: Handle,
    context: Handle,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`
#[derive(Clone, Copy)]
#[repr(C)]
struct Copy3d {
    from: Side3d,
    to: Side3d,
    width: usize,
    height: usize,
    depth: usize,
}

impl Side2d {
    fn in_box(self) -> Side3d {
        let Side2d { x, y, kind, host, device, array, pitch } = self;
        Side3d { x, y, z: 0, level: 0, kind, host, device, array, context: Handle::NULL, pitch, height: 0 }
    }
}

/// The rows of one side: where each of them is.
fn rows(
    driver: &Driver,
    side: &Side3d,
    (width, height, depth): (usize, usize, usize),
) -> Result<Vec<Side>, Status> {
    let wrong = Status::InvalidValue;
    let array = if side.kind == 3 { Some(driver.arrays.get(side.array)?) } else { None };
    if side.level != 0 {
        return Err(wrong);
    }
    let end = side.x.checked_add(width).ok_or(wrong)?;
    // A pitch of 0 means rows without gaps, and a height of 0 slices without gaps.
    let pitch = if side.pitch == 0 { end } else { side.pitch };
    let slice = if side.height == 0 { side.y.checked_add(height).ok_or(wrong)? } else { side.height };
    let several = height > 1 || depth > 1;
    if array.is_none() && several && pitch < end || depth > 1 && array.is_none() && slice < side.y + height {
        return Err(wrong);
    }
    let mut list = Vec::with_capacity(height * depth);
    for z in 0..depth {
        for y in 0..height {
            let (y, z) = (side.y + y, side.z + z);
            if let Some(array) = &array {
                list.push(Side::Device(array.row(z, y, side.x, width)?));
                continue;
            }
            let line = z.checked_mul(slice).and_then(|lines| lines.checked_add(y)).ok_or(wrong)?;
            let offset = line.checked_mul(pitch).and_then(|bytes| bytes.checked_add(side.x)).ok_or(wrong)?;
            list.push(match side.kind {
                1 => Side::host(driver, side.host.offset(offset), width)?,
                2 => Side::device(driver, side.device.wrapping_add(offset as u64), width)?,
                4 => Side::unified(driver, side.device.wrapping_add(offset as u64), width)?,
                _ => return Err(wrong),
            });
        }
    }
    Ok(list)
}

fn copy(copy: &Copy3d, (stream, default): (Handle, DefaultStream), when: When) -> Answer {
    let (driver, queue) = queue(stream, default)?;
    let extent = (copy.width, copy.height, copy.depth);
    if copy.width == 0 || copy.height == 0 || copy.depth == 0 {
        return Ok(());
    }
    let (to, from) = (rows(driver, &copy.to, extent)?, rows(driver, &copy.from, extent)?);
    // Memory that is not pinned may be reused, or read, when the call returns.
    let pageable = |rows: &[Side]| matches!(rows.first(), Some(Side::Host(_)));
    let when = if pageable(&to) || pageable(&from) { When::Now } else { when };
    let width = copy.width;
    queue.perform(when, move || {
        for (to, from) in to.iter().zip(&from) {
            move_bytes(driver, *to, *from, width)?;
        }
        Ok(())
    })
}

fn copy_flat(flat: In<Copy2d>, stream: (Handle, DefaultStream), when: When) -> Answer {
    let Copy2d { from, to, width, height } = flat.get()?;
    copy(&Copy3d { from: from.in_box(), to: to.in_box(), width, height, depth: 1 }, stream, when)
}

/// Contexts share one memory, so a copy between two is a copy.
fn copy_peer(given: In<Copy3d>, stream: (Handle, DefaultStream), when: When) -> Answer {
    let given = given.get()?;
    crate::context::named_or_current(given.from.context)?;
    crate::context::named_or_current(given.to.context)?;
    copy(&given, stream, when)
}

entries! { ENTRIES;
    /// Copies a rectangle.
    fn cuMemcpy2D_v2 | cuMemcpy2D_v2_ptds as default (given: In<Copy2d>) {
        copy_flat(given, (Handle::NULL, default), When::Now)
    }

    /// Copies a rectangle, rows at any address.
    fn cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned_v2_ptds as default (given: In<Copy2d>) {
        copy_flat(given, (Handle::NULL, default), When::Now)
    }

    /// Copies a rectangle.
    fn cuMemcpy2DAsync_v2 | cuMemcpy2DAsync_v2_ptsz as default (given: In<Copy2d>, stream: Handle) {
        copy_flat(given, (stream, default), When::InTurn)
    }

    /// Copies a box.
    fn cuMemcpy3D_v2 | cuMemcpy3D_v2_ptds as default (given: In<Copy3d>) {
        copy(&given.get()?, (Handle::NULL, default), When::Now)
    }

    /// Copies a box.
    fn cuMemcpy3DAsync_v2 | cuMemcpy3DAsync_v2_ptsz as default (given: In<Copy3d>, stream: Handle) {
        copy(&given.get()?, (stream, default), When::InTurn)
    }

    /// Copies a box between contexts, which share one memory.
    fn cuMemcpy3DPeer | cuMemcpy3DPeer_ptds as default (given: In<Copy3d>) {
        copy_peer(given, (Handle::NULL, default), When::Now)
    }

    /// Copies a box between contexts, which share one memory.
    fn cuMemcpy3DPeerAsync | cuMemcpy3DPeerAsync_ptsz as default (given: In<Copy3d>, stream: Handle) {
        copy_peer(given, (stream, default), When::InTurn)
    }
}
