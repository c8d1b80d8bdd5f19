//! What CUDA refuses at a launch: shapes and sizes beyond the limits of the device.
//!
//! Invariant: nothing is allocated by the shape of a CTA before it is checked here.

use super::{Kernel, LaunchConfig, LaunchError};
use crate::frame::register_bytes;
use crate::lanes::LANES;
use crate::sched::RESIDENT_BYTES;

/// Shared memory of a CTA, static and dynamic: the maximum of current GPUs (sm_90).
const SHARED_LIMIT: u64 = 227 << 10;
/// Threads of a CTA: CUDA's limit since sm_20.
const CTA_THREADS: u64 = 1024;

impl Kernel {
    /// Refuses what CUDA refuses at launch. PTX ISA §10.2, §10.7, §11.4.
    ///
    /// # Errors
    /// [`LaunchError::Invalid`], as launching would.
    pub fn check(&self, config: &LaunchConfig) -> Result<(), LaunchError> {
        let function = self.function();
        let invalid = |why: String| Err(LaunchError::Invalid(why));
        if config.grid.contains(&0) {
            return invalid(no_threads(config.grid, config.block));
        }
        self.check_block(config.block)?;
        if config.grid[0] > i32::MAX as u32 || config.grid[1] > 65535 || config.grid[2] > 65535 {
            return invalid(format!(
                "a grid of {} is over the limit of 2147483647x65535x65535",
                extents(config.grid)
            ));
        }
        let bytes = self.shared_bytes(config) - u64::from(self.reserved);
        if bytes > SHARED_LIMIT {
            return invalid(format!("{bytes} bytes of shared memory are over the limit of {SHARED_LIMIT}"));
        }
        if config.params.len() as u64 != u64::from(function.param_bytes) {
            let (wants, has) = (function.param_bytes, config.params.len());
            return invalid(format!(
                "`{}` has {wants} bytes of parameters, but {has} were given",
                function.name
            ));
        }
        Ok(())
    }

    /// Refuses CTA shapes that no launch of the kernel can have. Nothing may be allocated by the shape before
    /// this check.
    ///
    /// # Errors
    /// [`LaunchError::Invalid`], as launching would.
    pub fn check_block(&self, block: [u32; 3]) -> Result<(), LaunchError> {
        let function = self.function();
        let invalid = |why: String| Err(LaunchError::Invalid(why));
        let threads = volume(block);
        if threads == 0 {
            return invalid(no_threads([1; 3], block));
        }
        // The limits are those of the device, because the target is a minimum and not the device that runs
        // the kernel.
        if threads > CTA_THREADS || block[2] > 64 {
            let extents = extents(block);
            return invalid(format!(
                "a CTA of {extents} is over the limit of {CTA_THREADS} threads, 64 in z"
            ));
        }
        if let Some(required) = function.performance.reqntid
            && required != block
        {
            return invalid(format!(
                "`.reqntid` requires CTAs of {}, found {}",
                extents(required),
                extents(block)
            ));
        }
        if let Some(max) = function.performance.maxntid {
            let most = volume(max);
            if threads > most {
                return invalid(format!("`.maxntid` allows CTAs of {most} threads, found {threads}"));
            }
        }
        let registers = register_bytes(function.regs).saturating_mul(threads.div_ceil(LANES as u64));
        if registers > RESIDENT_BYTES {
            return invalid(format!(
                "the registers of a CTA need {registers} bytes, over the limit of {RESIDENT_BYTES}"
            ));
        }
        Ok(())
    }
}

/// The extents of a grid or a CTA, as text.
fn extents([x, y, z]: [u32; 3]) -> String {
    format!("{x}x{y}x{z}")
}

fn no_threads(grid: [u32; 3], block: [u32; 3]) -> String {
    format!("no threads: a grid of {}, CTAs of {}", extents(grid), extents(block))
}

/// The number of elements of a box.
fn volume(dims: [u32; 3]) -> u64 {
    dims.iter().fold(1, |product: u64, n| product.saturating_mul(u64::from(*n)))
}
