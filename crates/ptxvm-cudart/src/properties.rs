//! `cudaDeviceProp`: the properties of a device, in the layouts of CUDA 11, 12 and 13.
//!
//! Programs for CUDA 12 call `cudaGetDeviceProperties_v2`, those for CUDA 11 and 13
//! `cudaGetDeviceProperties`.
//!
//! Invariant: every number is an attribute of the device from the driver. An attribute that the driver does
//! not know is 0.

use crate::driver::{Driver, driver};
use crate::entry::runtime;
use crate::error::{Status, of_driver};
use crate::ffi::Out;
use crate::version::known;
use Field::{Bytes, Int, Name, Size, TotalMemory, Uuid};
use std::ffi::c_int;

/// One field of the structure, in its order.
#[derive(Clone, Copy)]
enum Field {
    /// 256 bytes.
    Name,
    /// 16 bytes.
    Uuid,
    /// A `size_t`.
    TotalMemory,
    /// An `int`, from an attribute.
    Int(c_int),
    /// A `size_t`, from an attribute.
    Size(c_int),
    /// Zero bytes, aligned to 4.
    Bytes(usize),
}

/// The number of fields that CUDA 11 has: up to `reservedSharedMemPerBlock`.
const FIELDS_11: usize = 104;

/// The structure of CUDA 12, which begins with that of CUDA 11.
#[rustfmt::skip]
const CUDA_12: &[Field] = &[
    Name,
    Uuid,
    Bytes(8),
    Bytes(4),
    TotalMemory,
    Size(8), // sharedMemPerBlock
    Int(12), // regsPerBlock
    Int(10), // warpSize
    Size(11), // memPitch
    Int(1), // maxThreadsPerBlock
    Int(2), // maxThreadsDim[0]
    Int(3), // maxThreadsDim[1]
    Int(4), // maxThreadsDim[2]
    Int(5), // maxGridSize[0]
    Int(6), // maxGridSize[1]
    Int(7), // maxGridSize[2]
    Int(13), // clockRate
    Size(9), // totalConstMem
    Int(75), // major
    Int(76), // minor
    Size(14), // textureAlignment
    Size(51), // texturePitchAlignment
    Int(15), // deviceOverlap
    Int(16), // multiProcessorCount
    Int(17), // kernelExecTimeoutEnabled
    Int(18), // integrated
    Int(19), // canMapHostMemory
    Int(20), // computeMode
    Int(21), // maxTexture1D
    Int(77), // maxTexture1DMipmap
    Int(69), // maxTexture1DLinear
    Int(22), // maxTexture2D[0]
    Int(23), // maxTexture2D[1]
    Int(73), // maxTexture2DMipmap[0]
    Int(74), // maxTexture2DMipmap[1]
    Int(70), // maxTexture2DLinear[0]
    Int(71), // maxTexture2DLinear[1]
    Int(72), // maxTexture2DLinear[2]
    Int(45), // maxTexture2DGather[0]
    Int(46), // maxTexture2DGather[1]
    Int(24), // maxTexture3D[0]
    Int(25), // maxTexture3D[1]
    Int(26), // maxTexture3D[2]
    Int(47), // maxTexture3DAlt[0]
    Int(48), // maxTexture3DAlt[1]
    Int(49), // maxTexture3DAlt[2]
    Int(52), // maxTextureCubemap
    Int(42), // maxTexture1DLayered[0]
    Int(43), // maxTexture1DLayered[1]
    Int(27), // maxTexture2DLayered[0]
    Int(28), // maxTexture2DLayered[1]
    Int(29), // maxTexture2DLayered[2]
    Int(53), // maxTextureCubemapLayered[0]
    Int(54), // maxTextureCubemapLayered[1]
    Int(55), // maxSurface1D
    Int(56), // maxSurface2D[0]
    Int(57), // maxSurface2D[1]
    Int(58), // maxSurface3D[0]
    Int(59), // maxSurface3D[1]
    Int(60), // maxSurface3D[2]
    Int(61), // maxSurface1DLayered[0]
    Int(62), // maxSurface1DLayered[1]
    Int(63), // maxSurface2DLayered[0]
    Int(64), // maxSurface2DLayered[1]
    Int(65), // maxSurface2DLayered[2]
    Int(66), // maxSurfaceCubemap
    Int(67), // maxSurfaceCubemapLayered[0]
    Int(68), // maxSurfaceCubemapLayered[1]
    Size(30), // surfaceAlignment
    Int(31), // concurrentKernels
    Int(32), // ECCEnabled
    Int(33), // pciBusID
    Int(34), // pciDeviceID
    Int(50), // pciDomainID
    Int(35), // tccDriver
    Int(40), // asyncEngineCount
    Int(41), // unifiedAddressing
    Int(36), // memoryClockRate
    Int(37), // memoryBusWidth
    Int(38), // l2CacheSize
    Int(108), // persistingL2CacheMaxSize
    Int(39), // maxThreadsPerMultiProcessor
    Int(78), // streamPrioritiesSupported
    Int(79), // globalL1CacheSupported
    Int(80), // localL1CacheSupported
    Size(81), // sharedMemPerMultiprocessor
    Int(82), // regsPerMultiprocessor
    Int(83), // managedMemory
    Int(84), // isMultiGpuBoard
    Int(85), // multiGpuBoardGroupID
    Int(86), // hostNativeAtomicSupported
    Int(87), // singleToDoublePrecisionPerfRatio
    Int(88), // pageableMemoryAccess
    Int(89), // concurrentManagedAccess
    Int(90), // computePreemptionSupported
    Int(91), // canUseHostPointerForRegisteredMem
    Int(95), // cooperativeLaunch
    Int(96), // cooperativeMultiDeviceLaunch
    Size(97), // sharedMemPerBlockOptin
    Int(100), // pageableMemoryAccessUsesHostPageTables
    Int(101), // directManagedMemAccessFromHost
    Int(106), // maxBlocksPerMultiProcessor
    Int(109), // accessPolicyMaxWindowSize
    Size(111), // reservedSharedMemPerBlock
    Int(99), // hostRegisterSupported
    Int(112), // sparseCudaArraySupported
    Int(113), // hostRegisterReadOnlySupported
    Int(114), // timelineSemaphoreInteropSupported
    Int(115), // memoryPoolsSupported
    Int(116), // gpuDirectRDMASupported
    Int(117), // gpuDirectRDMAFlushWritesOptions
    Int(118), // gpuDirectRDMAWritesOrdering
    Int(119), // memoryPoolSupportedHandleTypes
    Int(121), // deferredMappingCudaArraySupported
    Int(125), // ipcEventSupported
    Int(120), // clusterLaunch
    Int(129), // unifiedFunctionPointers
    Bytes(252),
];

/// The structure of CUDA 13.
#[rustfmt::skip]
const CUDA_13: &[Field] = &[
    Name,
    Uuid,
    Bytes(8),
    Bytes(4),
    TotalMemory,
    Size(8), // sharedMemPerBlock
    Int(12), // regsPerBlock
    Int(10), // warpSize
    Size(11), // memPitch
    Int(1), // maxThreadsPerBlock
    Int(2), // maxThreadsDim[0]
    Int(3), // maxThreadsDim[1]
    Int(4), // maxThreadsDim[2]
    Int(5), // maxGridSize[0]
    Int(6), // maxGridSize[1]
    Int(7), // maxGridSize[2]
    Size(9), // totalConstMem
    Int(75), // major
    Int(76), // minor
    Size(14), // textureAlignment
    Size(51), // texturePitchAlignment
    Int(16), // multiProcessorCount
    Int(18), // integrated
    Int(19), // canMapHostMemory
    Int(21), // maxTexture1D
    Int(77), // maxTexture1DMipmap
    Int(22), // maxTexture2D[0]
    Int(23), // maxTexture2D[1]
    Int(73), // maxTexture2DMipmap[0]
    Int(74), // maxTexture2DMipmap[1]
    Int(70), // maxTexture2DLinear[0]
    Int(71), // maxTexture2DLinear[1]
    Int(72), // maxTexture2DLinear[2]
    Int(45), // maxTexture2DGather[0]
    Int(46), // maxTexture2DGather[1]
    Int(24), // maxTexture3D[0]
    Int(25), // maxTexture3D[1]
    Int(26), // maxTexture3D[2]
    Int(47), // maxTexture3DAlt[0]
    Int(48), // maxTexture3DAlt[1]
    Int(49), // maxTexture3DAlt[2]
    Int(52), // maxTextureCubemap
    Int(42), // maxTexture1DLayered[0]
    Int(43), // maxTexture1DLayered[1]
    Int(27), // maxTexture2DLayered[0]
    Int(28), // maxTexture2DLayered[1]
    Int(29), // maxTexture2DLayered[2]
    Int(53), // maxTextureCubemapLayered[0]
    Int(54), // maxTextureCubemapLayered[1]
    Int(55), // maxSurface1D
    Int(56), // maxSurface2D[0]
    Int(57), // maxSurface2D[1]
    Int(58), // maxSurface3D[0]
    Int(59), // maxSurface3D[1]
    Int(60), // maxSurface3D[2]
    Int(61), // maxSurface1DLayered[0]
    Int(62), // maxSurface1DLayered[1]
    Int(63), // maxSurface2DLayered[0]
    Int(64), // maxSurface2DLayered[1]
    Int(65), // maxSurface2DLayered[2]
    Int(66), // maxSurfaceCubemap
    Int(67), // maxSurfaceCubemapLayered[0]
    Int(68), // maxSurfaceCubemapLayered[1]
    Size(30), // surfaceAlignment
    Int(31), // concurrentKernels
    Int(32), // ECCEnabled
    Int(33), // pciBusID
    Int(34), // pciDeviceID
    Int(50), // pciDomainID
    Int(35), // tccDriver
    Int(40), // asyncEngineCount
    Int(41), // unifiedAddressing
    Int(37), // memoryBusWidth
    Int(38), // l2CacheSize
    Int(108), // persistingL2CacheMaxSize
    Int(39), // maxThreadsPerMultiProcessor
    Int(78), // streamPrioritiesSupported
    Int(79), // globalL1CacheSupported
    Int(80), // localL1CacheSupported
    Size(81), // sharedMemPerMultiprocessor
    Int(82), // regsPerMultiprocessor
    Int(83), // managedMemory
    Int(84), // isMultiGpuBoard
    Int(85), // multiGpuBoardGroupID
    Int(86), // hostNativeAtomicSupported
    Int(88), // pageableMemoryAccess
    Int(89), // concurrentManagedAccess
    Int(90), // computePreemptionSupported
    Int(91), // canUseHostPointerForRegisteredMem
    Int(95), // cooperativeLaunch
    Size(97), // sharedMemPerBlockOptin
    Int(100), // pageableMemoryAccessUsesHostPageTables
    Int(101), // directManagedMemAccessFromHost
    Int(106), // maxBlocksPerMultiProcessor
    Int(109), // accessPolicyMaxWindowSize
    Size(111), // reservedSharedMemPerBlock
    Int(99), // hostRegisterSupported
    Int(112), // sparseCudaArraySupported
    Int(113), // hostRegisterReadOnlySupported
    Int(114), // timelineSemaphoreInteropSupported
    Int(115), // memoryPoolsSupported
    Int(116), // gpuDirectRDMASupported
    Int(117), // gpuDirectRDMAFlushWritesOptions
    Int(118), // gpuDirectRDMAWritesOrdering
    Int(119), // memoryPoolSupportedHandleTypes
    Int(121), // deferredMappingCudaArraySupported
    Int(125), // ipcEventSupported
    Int(120), // clusterLaunch
    Int(129), // unifiedFunctionPointers
    Int(130), // deviceNumaConfig
    Int(131), // deviceNumaId
    Int(133), // mpsEnabled
    Int(134), // hostNumaId
    Int(139), // gpuPciDeviceID
    Int(140), // gpuPciSubsystemID
    Int(143), // hostNumaMultinodeIpcSupported
    Bytes(224),
];

/// The structure as bytes.
fn fill(driver: &Driver, device: c_int, fields: &[Field]) -> Result<Vec<u8>, Status> {
    let mut bytes = Vec::with_capacity(1100);
    let attribute = |number: c_int| {
        let mut value = 0;
        let known = (driver.cuDeviceGetAttribute)(&mut value, number, device) == 0;
        if known { value } else { 0 }
    };
    for field in fields {
        match *field {
            Name => {
                let mut name = [0; 256];
                of_driver((driver.cuDeviceGetName)(name.as_mut_ptr(), 256, device))?;
                bytes.extend(name.map(|letter| letter as u8));
            }
            Uuid => {
                let mut uuid = [0; 16];
                of_driver((driver.cuDeviceGetUuid_v2)(uuid.as_mut_ptr(), device))?;
                bytes.extend(uuid);
            }
            TotalMemory => {
                let mut total = 0;
                of_driver((driver.cuDeviceTotalMem_v2)(&mut total, device))?;
                push_size(&mut bytes, total as u64);
            }
            Int(number) => bytes.extend(attribute(number).to_ne_bytes()),
            Size(number) => push_size(&mut bytes, attribute(number) as u32 as u64),
            Bytes(count) => bytes.resize(bytes.len() + count, 0),
        }
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    Ok(bytes)
}

fn push_size(bytes: &mut Vec<u8>, value: u64) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes.extend(value.to_ne_bytes());
}

runtime! {
    /// The properties of a device, for CUDA 11 and 13. The library of CUDA 12 has it for older programs.
    fn cudaGetDeviceProperties(properties: Out<u8>, device: c_int) {
        let driver = driver()?;
        crate::device::check(driver, device)?;
        let fields = if let Some(11 | 12) = known() { &CUDA_12[..FIELDS_11] } else { CUDA_13 };
        properties.set_all(&fill(driver, device, fields)?)
    }

    /// The properties of a device, for CUDA 12.
    fn cudaGetDeviceProperties_v2(properties: Out<u8>, device: c_int) {
        let driver = driver()?;
        crate::device::check(driver, device)?;
        properties.set_all(&fill(driver, device, CUDA_12)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the structure in C.
    fn bytes(fields: &[Field]) -> usize {
        let end = fields.iter().fold(0usize, |at, field| match field {
            Name => at + 256,
            Uuid => at + 16,
            TotalMemory | Size(_) => at.next_multiple_of(8) + 8,
            Int(_) => at + 4,
            Bytes(count) => at + count,
        });
        end.next_multiple_of(8)
    }

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!((bytes(CUDA_12), bytes(CUDA_13)), (1032, 1008));
        assert_eq!(bytes(&CUDA_12[..FIELDS_11]), 728);
        assert!(matches!(CUDA_12[FIELDS_11 - 1], Size(111)));
    }
}
