//! Copies of rectangles and boxes, between memory of any kind and arrays.
//!
//! Invariant: both sides are checked completely before the call returns, and no allocation has a size that
//! the caller's numbers decide.

use crate::array::CudaArray;
use crate::copy::move_checked;
use crate::driver::Driver;
use crate::entry::{DefaultStream, entries};
use crate::ffi::{In, Pointer};
use crate::graph::CopyNode;
use crate::handles::Handle;
use crate::memory::Side;
use crate::status::{Answer, Status};
use crate::stream::{When, queue};
use host_memory::Access;
use std::ffi::c_int;
use std::sync::Arc;

/// `CU_MEMORYTYPE_HOST`, `..._DEVICE`, `..._ARRAY`, `..._UNIFIED`
pub(crate) const HOST: c_int = 1;
pub(crate) const DEVICE: c_int = 2;
const ARRAY: c_int = 3;
pub(crate) const UNIFIED: c_int = 4;
/// The granularity of access rights: the smallest page size of the supported hosts.
const PAGE: usize = 4096;

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
pub(crate) struct Copy2d {
    from: Side2d,
    to: Side2d,
    width: usize,
    height: usize,
}

/// One side of `CUDA_MEMCPY3D` and of `CUDA_MEMCPY3D_PEER`, which has a context in place of reserved bytes.
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
pub(crate) struct Copy3d {
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

/// One side of a copy, checked: the locations of its rows.
#[derive(Clone)]
enum Rows {
    /// In memory: all rows, their extent in bytes, and the distances to the next row and the next slice.
    Memory { all: Side, bytes: usize, pitch: usize, slice: usize },
    /// In an array, from an element.
    Array { array: Arc<CudaArray>, at: [usize; 3] },
}

impl Rows {
    /// The rows of a side.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` if the rows are not all in one allocation, in plausible host memory, or in
    /// the array; `CUDA_ERROR_INVALID_HANDLE`.
    fn of(
        driver: &Driver,
        side: &Side3d,
        array: Option<&Arc<CudaArray>>,
        [width, height, depth]: [usize; 3],
    ) -> Result<Self, Status> {
        let wrong = Status::InvalidValue;
        if side.level != 0 {
            return Err(wrong);
        }
        let [x, y, z] = [side.x, side.y, side.z];
        let end = x.checked_add(width).ok_or(wrong)?;
        let (last, deepest) =
            (y.checked_add(height - 1).ok_or(wrong)?, z.checked_add(depth - 1).ok_or(wrong)?);
        if let Some(array) = array {
            let array = Arc::clone(array);
            // If the last row of the last slice is inside, all rows are.
            array.row(deepest, last, x, width)?;
            return Ok(Rows::Array { array, at: [x, y, z] });
        }
        // A pitch of 0 means contiguous rows, and a height of 0 contiguous slices.
        let pitch = if side.pitch == 0 { end } else { side.pitch };
        let lines = if side.height == 0 { last.checked_add(1).ok_or(wrong)? } else { side.height };
        let several = height > 1 || depth > 1;
        if several && pitch < end || depth > 1 && lines <= last {
            return Err(wrong);
        }
        let slice = if depth > 1 { lines.checked_mul(pitch).ok_or(wrong)? } else { 0 };
        // The distance from the start to row `y` of slice `z`.
        let distance = |y: usize, z: usize| {
            let lines = z.checked_mul(lines)?.checked_add(y)?;
            lines.checked_mul(pitch)
        };
        let start = distance(y, z).and_then(|bytes| bytes.checked_add(x)).ok_or(wrong)?;
        let bytes =
            distance(height - 1, depth - 1).and_then(|bytes| bytes.checked_add(width)).ok_or(wrong)?;
        let given = if side.kind == HOST { side.host.address() } else { side.device };
        let address = given.checked_add(start as u64).ok_or(wrong)?;
        let all = match side.kind {
            HOST => Side::host(driver, Pointer::from_address(address), bytes)?,
            DEVICE => Side::device(driver, address, bytes)?,
            UNIFIED => Side::unified(driver, address, bytes)?,
            _ => return Err(wrong),
        };
        Ok(Rows::Memory { all, bytes, pitch: if several { pitch } else { width }, slice })
    }

    /// The same rows, after a check that they can be written.
    fn writable(self, driver: &Driver) -> Result<Self, Status> {
        if let Rows::Memory { all, bytes, .. } = &self {
            all.writable(driver, *bytes)?;
        }
        Ok(self)
    }

    fn is_pageable(&self) -> bool {
        matches!(self, Rows::Memory { all: Side::Host(_), .. })
    }

    /// Whether the rows of each slice are contiguous.
    fn is_dense(&self, width: usize) -> bool {
        matches!(self, Rows::Memory { pitch, .. } if *pitch == width)
    }

    /// Fails if host memory does not permit the access. Memory between the rows is not examined where it may
    /// be whole pages.
    fn check(&self, [width, height, depth]: [usize; 3], access: Access) -> Answer {
        let Rows::Memory { all: all @ Side::Host(_), pitch, slice, .. } = self else { return Ok(()) };
        let is_close = |distance: usize, bytes: usize| distance.saturating_sub(bytes) < PAGE;
        if is_close(*pitch, width) && (depth == 1 || is_close(*slice, pitch * height)) {
            return all.check(access);
        }
        (0..depth).try_for_each(|z| (0..height).try_for_each(|y| self.row(y, z, width)?.check(access)))
    }

    /// Bytes of a row.
    fn row(&self, y: usize, z: usize, bytes: usize) -> Result<Side, Status> {
        match self {
            Rows::Memory { all, pitch, slice, .. } => all.part(z * slice + y * pitch, bytes),
            Rows::Array { array, at: [x, first, plane] } => {
                Ok(Side::Device(array.row(plane + z, first + y, *x, bytes)?))
            }
        }
    }
}

/// A copy whose sides are checked.
#[derive(Clone)]
pub(crate) struct Prepared {
    to: Rows,
    from: Rows,
    extent: [usize; 3],
}

impl Prepared {
    /// Checks both sides. `None` if there is nothing to copy.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` if rows are outside of memory, `CUDA_ERROR_INVALID_HANDLE` for an unknown
    /// array.
    fn of(driver: &Driver, copy: &Copy3d) -> Result<Option<Self>, Status> {
        Self::with(driver, copy, &copy.arrays(driver)?)
    }

    /// Like [`Prepared::of`], with the arrays of both sides.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` if rows are outside of memory.
    pub(crate) fn with(
        driver: &Driver,
        copy: &Copy3d,
        [to, from]: &[Option<Arc<CudaArray>>; 2],
    ) -> Result<Option<Self>, Status> {
        let extent = [copy.width, copy.height, copy.depth];
        if extent.contains(&0) {
            return Ok(None);
        }
        let to = Rows::of(driver, &copy.to, to.as_ref(), extent)?.writable(driver)?;
        let from = Rows::of(driver, &copy.from, from.as_ref(), extent)?;
        Ok(Some(Self { to, from, extent }))
    }

    /// Copies. The number of rows is limited by memory, because the rows of a side do not overlap.
    ///
    /// # Errors
    /// The errors of [`crate::copy::move_bytes`].
    pub(crate) fn run(&self, driver: &Driver) -> Answer {
        self.to.check(self.extent, Access::Write)?;
        self.from.check(self.extent, Access::Read)?;
        let [mut width, mut height, depth] = self.extent;
        if self.to.is_dense(width) && self.from.is_dense(width) {
            (width, height) = (width * height, 1);
        }
        for z in 0..depth {
            for y in 0..height {
                move_checked(driver, self.to.row(y, z, width)?, self.from.row(y, z, width)?, width)?;
            }
        }
        Ok(())
    }
}

impl Copy3d {
    /// A copy of contiguous bytes between addresses of these kinds.
    pub(crate) fn line((to_kind, from_kind): (c_int, c_int), (to, from): (u64, u64), bytes: usize) -> Self {
        let side = |kind: c_int, address: u64| Side3d {
            x: 0,
            y: 0,
            z: 0,
            level: 0,
            kind,
            host: if kind == HOST { Pointer::from_address(address) } else { Pointer::NULL },
            device: if kind == HOST { 0 } else { address },
            array: Handle::NULL,
            context: Handle::NULL,
            pitch: bytes,
            height: 1,
        };
        Self { from: side(from_kind, from), to: side(to_kind, to), width: bytes, height: 1, depth: 1 }
    }

    /// The arrays of both sides.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for an unknown kind of memory, `CUDA_ERROR_INVALID_HANDLE`.
    pub(crate) fn arrays(&self, driver: &Driver) -> Result<[Option<Arc<CudaArray>>; 2], Status> {
        let array = |side: &Side3d| match side.kind {
            HOST | DEVICE | UNIFIED => Ok(None),
            ARRAY => driver.arrays.get(side.array).map(Some),
            _ => Err(Status::InvalidValue),
        };
        Ok([array(&self.to)?, array(&self.from)?])
    }
}

fn copy(given: &Copy3d, (stream, default): (Handle, DefaultStream), when: When) -> Answer {
    let (driver, queue) = queue(stream, default)?;
    let Some(copy) = Prepared::of(driver, given)? else { return Ok(()) };
    if let Some(added) = queue.captured(|| CopyNode::of(driver, *given)) {
        return added;
    }
    // Memory that is not pinned may be reused or read when the call returns.
    let when = if copy.to.is_pageable() || copy.from.is_pageable() { When::Now } else { when };
    queue.perform(when, move || copy.run(driver))
}

/// A rectangle is a box of one slice.
fn copy_flat(flat: In<Copy2d>, stream: (Handle, DefaultStream), when: When) -> Answer {
    let Copy2d { from, to, width, height } = flat.get()?;
    copy(&Copy3d { from: from.in_box(), to: to.in_box(), width, height, depth: 1 }, stream, when)
}

/// Contexts share one address space, so a copy between two contexts is an ordinary copy.
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

    /// Copies a rectangle, with rows of any alignment.
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

    /// Copies a box between contexts, which share one address space.
    fn cuMemcpy3DPeer | cuMemcpy3DPeer_ptds as default (given: In<Copy3d>) {
        copy_peer(given, (Handle::NULL, default), When::Now)
    }

    /// Copies a box between contexts, which share one address space.
    fn cuMemcpy3DPeerAsync | cuMemcpy3DPeerAsync_ptsz as default (given: In<Copy3d>, stream: Handle) {
        copy_peer(given, (stream, default), When::InTurn)
    }
}
