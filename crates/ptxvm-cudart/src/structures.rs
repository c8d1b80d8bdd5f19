//! The driver's structures.
//!
//! Invariant: their layout is that of the public header of the driver API.

use crate::ffi::{Dim3, Handle};
use std::ffi::{c_int, c_uint};

/// `CUDA_ARRAY3D_DESCRIPTOR`
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Description {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    pub(crate) format: c_uint,
    pub(crate) channels: c_uint,
    pub(crate) flags: c_uint,
}

/// `CUDA_MEMCPY2D`
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Copy2D {
    pub(crate) from: Side2D,
    pub(crate) to: Side2D,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// One side of [`Copy2D`].
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Side2D {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) kind: c_uint,
    pub(crate) host: usize,
    pub(crate) device: usize,
    pub(crate) array: usize,
    pub(crate) pitch: usize,
}

/// `CUDA_MEMCPY3D`
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Copy3D {
    pub(crate) from: Side3D,
    pub(crate) to: Side3D,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

impl Copy3D {
    /// The structure as words.
    pub(crate) fn to_words(self) -> [u64; 25] {
        let side = |side: Side3D| {
            let Side3D { x, y, z, lod, kind, host, device, array, reserved, pitch, height } = side;
            [x, y, z, lod, kind as usize, host, device, array, reserved, pitch, height]
        };
        let [from, to] = [side(self.from), side(self.to)];
        let all = from.into_iter().chain(to).chain([self.width, self.height, self.depth]);
        let mut words = [0; 25];
        words.iter_mut().zip(all).for_each(|(word, value)| *word = value as u64);
        words
    }

    /// The structure of words; `None` if there are too few.
    pub(crate) fn of_words(words: &[u64]) -> Option<Self> {
        let side = |words: &[u64]| -> Option<Side3D> {
            let &[x, y, z, lod, kind, host, device, array, reserved, pitch, height] = words else {
                return None;
            };
            let [x, y, z, lod] = [x, y, z, lod].map(|word| word as usize);
            let [host, device, array, reserved] = [host, device, array, reserved].map(|word| word as usize);
            let (kind, pitch, height) = (kind as c_uint, pitch as usize, height as usize);
            Some(Side3D { x, y, z, lod, kind, host, device, array, reserved, pitch, height })
        };
        let &[width, height, depth] = words.get(22..25)? else { return None };
        let [width, height, depth] = [width, height, depth].map(|word| word as usize);
        Some(Self { from: side(words.get(..11)?)?, to: side(words.get(11..22)?)?, width, height, depth })
    }
}

/// One side of [`Copy3D`].
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Side3D {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
    pub(crate) lod: usize,
    pub(crate) kind: c_uint,
    pub(crate) host: usize,
    pub(crate) device: usize,
    pub(crate) array: usize,
    pub(crate) reserved: usize,
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}

/// `CUDA_RESOURCE_DESC`
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Resource {
    pub(crate) kind: c_uint,
    pub(crate) padding: c_uint,
    /// The union as words: addresses and numbers.
    pub(crate) fields: [u64; 16],
    pub(crate) flags: c_uint,
}

/// `CUDA_TEXTURE_DESC`
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Sampling {
    pub(crate) address: [c_uint; 3],
    pub(crate) filter: c_uint,
    pub(crate) flags: c_uint,
    pub(crate) anisotropy: c_uint,
    pub(crate) mipmap_filter: c_uint,
    pub(crate) mipmap: [f32; 3],
    pub(crate) border: [f32; 4],
    pub(crate) reserved: [c_int; 12],
}

/// `CUDA_ARRAY_DESCRIPTOR`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Rows {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) format: c_uint,
    pub(crate) channels: c_uint,
}

/// `CUlaunchConfig`. Attributes have the same numbers and contents as those of the runtime.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct DriverConfig {
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) shared: c_uint,
    pub(crate) stream: Handle,
    pub(crate) attributes: usize,
    pub(crate) count: c_uint,
}

/// `cudaKernelNodeParams`, and the driver's first form of it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Kernel {
    pub(crate) function: Handle,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) shared: c_uint,
    pub(crate) params: Handle,
    pub(crate) extra: Handle,
}

impl Kernel {
    /// Room for parameters.
    pub(crate) const NONE: Self = Self {
        function: Handle(0),
        grid: Dim3 { x: 0, y: 0, z: 0 },
        block: Dim3 { x: 0, y: 0, z: 0 },
        shared: 0,
        params: Handle(0),
        extra: Handle(0),
    };
}

/// `cudaIpcMemHandle_t`, `cudaIpcEventHandle_t`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Name([u8; 64]);
