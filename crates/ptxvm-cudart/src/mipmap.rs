//! Mipmapped arrays.
//!
//! Invariant: handles are the driver's. The array of a level is valid as long as the mipmapped array.

use crate::array::Channels;
use crate::device::context;
use crate::entry::runtime;
use crate::error::of_driver;
use crate::ffi::{Handle, In};
use crate::memory::Extent;
use crate::structures::Description;
use std::ffi::c_uint;

runtime! {
    /// Allocates a mipmapped array.
    fn cudaMallocMipmappedArray(
        mipmap: Handle, channels: In<Channels>, extent: Extent, levels: c_uint, flags: c_uint,
    ) {
        let driver = context()?;
        let description = Description::of(channels.get()?, extent, flags)?;
        of_driver((driver.cuMipmappedArrayCreate)(mipmap, &description, levels))
    }

    /// The array of a level.
    fn cudaGetMipmappedArrayLevel(array: Handle, mipmap: Handle, level: c_uint) => cuMipmappedArrayGetLevel;

    /// Frees a mipmapped array.
    fn cudaFreeMipmappedArray(mipmap: Handle) {
        let driver = context()?;
        if mipmap.is_null() { Ok(()) } else { of_driver((driver.cuMipmappedArrayDestroy)(mipmap)) }
    }
}
