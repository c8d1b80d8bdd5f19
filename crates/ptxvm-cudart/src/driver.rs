//! The driver API, opened at run time.
//!
//! Invariant: the library stays open as long as the process lives. Pointers are passed to the driver unread;
//! the driver checks them.

use crate::error::Status;
use crate::ffi::Handle;
use crate::structures::{Copy2D, Copy3D, Description, DriverConfig, Kernel, Name, Resource, Rows, Sampling};
use std::ffi::{c_char, c_int, c_uint};
use std::sync::OnceLock;

macro_rules! driver {
    ($($name:ident($($ty:ty),*);)*) => {
        /// The functions of the driver that the runtime calls.
        pub(crate) struct Driver {
            $(pub(crate) $name: extern "C" fn($($ty),*) -> c_int,)*
            _library: libloading::Library,
        }

        impl Driver {
            fn open() -> Option<Self> {
                // SAFETY: the driver's constructors may run at any time.
                let open = |name: &str| unsafe { libloading::Library::new(name) }.ok();
                let library = open("libcuda.so.1").or_else(|| open("libptxvm_cuda.so"))?;
                $(
                    // SAFETY: the symbol is a function with these parameters, as the public header of the
                    // driver API declares it.
                    let $name = *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }.ok()?;
                )*
                Some(Self { $($name,)* _library: library })
            }
        }
    };
}

/// A pointer that the driver writes through.
type Place = *mut usize;

driver! {
    cuInit(c_uint);
    cuDriverGetVersion(*mut c_int);
    cuDeviceGet(*mut c_int, c_int);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGetName(*mut c_char, c_int, c_int);
    cuDeviceGetAttribute(*mut c_int, c_int, c_int);
    cuDeviceGetUuid_v2(*mut u8, c_int);
    cuDeviceTotalMem_v2(Place, c_int);
    cuDeviceGetPCIBusId(Handle, c_int, c_int);
    cuDeviceGetByPCIBusId(Handle, Handle);
    cuDeviceCanAccessPeer(Handle, c_int, c_int);
    cuDeviceGetDefaultMemPool(Handle, c_int);
    cuDeviceGetMemPool(Handle, c_int);
    cuDeviceSetMemPool(c_int, Handle);
    cuDevicePrimaryCtxRetain(Place, c_int);
    cuDevicePrimaryCtxReset_v2(c_int);
    cuDeviceGetP2PAttribute(Handle, c_int, c_int, c_int);
    cuDeviceGetTexture1DLinearMaxWidth(Handle, c_int, c_uint, c_int);
    cuCtxGetDevice(*mut c_int);
    cuCtxEnablePeerAccess(Handle, c_uint);
    cuCtxDisablePeerAccess(Handle);
    cuStreamGetDevice(Handle, Handle);
    cuStreamGetAttribute(Handle, c_int, Handle);
    cuStreamSetAttribute(Handle, c_int, Handle);
    cuStreamCopyAttributes(Handle, Handle);
    cuIpcGetMemHandle(Handle, Handle);
    cuIpcOpenMemHandle_v2(Handle, Name, c_uint);
    cuIpcCloseMemHandle(Handle);
    cuIpcGetEventHandle(Handle, Handle);
    cuIpcOpenEventHandle(Handle, Name);
    cuCtxGetCurrent(Place);
    cuCtxSetCurrent(Handle);
    cuCtxSynchronize();
    cuCtxGetLimit(Handle, c_int);
    cuCtxSetLimit(c_int, usize);
    cuCtxGetCacheConfig(Handle);
    cuCtxSetCacheConfig(c_int);
    cuCtxGetStreamPriorityRange(Handle, Handle);
    cuModuleLoadData(Place, Handle);
    cuModuleGetFunction(Place, Handle, *const c_char);
    cuModuleGetGlobal_v2(Place, Place, Handle, *const c_char);
    cuLibraryLoadData(Handle, Handle, Handle, Handle, c_uint, Handle, Handle, c_uint);
    cuLibraryLoadFromFile(Handle, Handle, Handle, Handle, c_uint, Handle, Handle, c_uint);
    cuLibraryUnload(Handle);
    cuLibraryGetKernel(Handle, Handle, Handle);
    cuLibraryGetKernelCount(Handle, Handle);
    cuLibraryEnumerateKernels(Handle, c_uint, Handle);
    cuLibraryGetGlobal(Handle, Handle, Handle, Handle);
    cuLibraryGetManaged(Handle, Handle, Handle, Handle);
    cuLibraryGetUnifiedFunction(Handle, Handle, Handle);
    cuFuncGetParamInfo(Handle, usize, Handle, Handle);
    cuFuncGetParamCount(Handle, Handle);
    cuFuncGetAttribute(*mut c_int, c_int, Handle);
    cuFuncSetAttribute(Handle, c_int, c_int);
    cuFuncSetCacheConfig(Handle, c_int);
    cuLaunchKernel(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, Handle, Handle);
    cuLaunchKernelEx(*const DriverConfig, Handle, Handle, Handle);
    cuOccupancyMaxActiveClusters(Handle, Handle, *const DriverConfig);
    cuOccupancyMaxPotentialClusterSize(Handle, Handle, *const DriverConfig);
    cuLaunchHostFunc_v2(Handle, Handle, Handle, c_uint);
    cuMemRangeGetAttribute(Handle, usize, c_int, Handle, usize);
    cuMemRangeGetAttributes(Handle, Handle, Handle, usize, Handle, usize);
    cuLaunchCooperativeKernel(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, Handle);
    cuLaunchHostFunc(Handle, Handle, Handle);
    cuMemAlloc_v2(Handle, usize);
    cuMemAllocPitch_v2(Handle, Handle, usize, usize, c_uint);
    cuMemFree_v2(Handle);
    cuMemAllocManaged(Handle, usize, c_uint);
    cuMemHostAlloc(Handle, usize, c_uint);
    cuMemFreeHost(Handle);
    cuMemHostRegister_v2(Handle, usize, c_uint);
    cuMemHostUnregister(Handle);
    cuMemHostGetDevicePointer_v2(Handle, Handle, c_uint);
    cuMemHostGetFlags(Handle, Handle);
    cuMemGetInfo_v2(Handle, Handle);
    cuMemAllocAsync(Handle, usize, Handle);
    cuMemFreeAsync(Handle, Handle);
    cuMemAllocFromPoolAsync(Handle, usize, Handle, Handle);
    cuMemPoolGetAttribute(Handle, c_int, Handle);
    cuMemPoolSetAttribute(Handle, c_int, Handle);
    cuMemPoolTrimTo(Handle, usize);
    cuMemPoolCreate(Handle, Handle);
    cuMemPoolExportToShareableHandle(Handle, Handle, c_int, u64);
    cuMemPoolImportFromShareableHandle(Handle, Handle, c_int, u64);
    cuMemPoolExportPointer(Handle, Handle);
    cuMemPoolImportPointer(Handle, Handle, Handle);
    cuMemPoolDestroy(Handle);
    cuMemPoolSetAccess(Handle, Handle, usize);
    cuMemPoolGetAccess(Handle, Handle, Handle);
    cuMemGetDefaultMemPool(Handle, Handle, c_int);
    cuMemGetMemPool(Handle, Handle, c_int);
    cuPointerGetAttribute(Handle, c_int, Handle);
    cuMemcpy(Handle, Handle, usize);
    cuMemcpyAsync(Handle, Handle, usize, Handle);
    cuMemcpyHtoD_v2(Handle, Handle, usize);
    cuMemcpyDtoH_v2(Handle, Handle, usize);
    cuMemcpyDtoD_v2(Handle, Handle, usize);
    cuMemcpyHtoDAsync_v2(Handle, Handle, usize, Handle);
    cuMemcpyDtoHAsync_v2(Handle, Handle, usize, Handle);
    cuMemcpyDtoDAsync_v2(Handle, Handle, usize, Handle);
    cuMemcpy2DUnaligned_v2(*const Copy2D);
    cuMemcpy2DAsync_v2(*const Copy2D, Handle);
    cuMemcpy3D_v2(*const Copy3D);
    cuMemcpy3DAsync_v2(*const Copy3D, Handle);
    cuMemsetD8_v2(Handle, u8, usize);
    cuMemsetD8Async(Handle, u8, usize, Handle);
    cuMemsetD2D8_v2(Handle, usize, u8, usize, usize);
    cuMemsetD2D8Async(Handle, usize, u8, usize, usize, Handle);
    cuArray3DCreate_v2(Handle, *const Description);
    cuArray3DGetDescriptor_v2(*mut Description, Handle);
    cuArrayDestroy(Handle);
    cuMipmappedArrayCreate(Handle, *const Description, c_uint);
    cuMipmappedArrayGetLevel(Handle, Handle, c_uint);
    cuMipmappedArrayDestroy(Handle);
    cuTexObjectCreate(Handle, *const Resource, *const Sampling, Handle);
    cuTexObjectDestroy(u64);
    cuTexObjectGetResourceDesc(*mut Resource, u64);
    cuTexObjectGetTextureDesc(*mut Sampling, u64);
    cuTexObjectGetResourceViewDesc(Handle, u64);
    cuSurfObjectGetResourceDesc(*mut Resource, u64);
    cuModuleGetTexRef(Place, Handle, *const c_char);
    cuModuleGetSurfRef(Place, Handle, *const c_char);
    cuTexRefSetFormat(Handle, c_int, c_int);
    cuTexRefSetAddressMode(Handle, c_int, c_int);
    cuTexRefSetFilterMode(Handle, c_int);
    cuTexRefSetMipmapFilterMode(Handle, c_int);
    cuTexRefSetMipmapLevelBias(Handle, f32);
    cuTexRefSetMipmapLevelClamp(Handle, f32, f32);
    cuTexRefSetMaxAnisotropy(Handle, c_uint);
    cuTexRefSetFlags(Handle, c_uint);
    cuTexRefSetAddress_v2(Place, Handle, Handle, usize);
    cuTexRefSetAddress2D_v3(Handle, *const Rows, Handle, usize);
    cuTexRefSetArray(Handle, Handle, c_uint);
    cuTexRefSetMipmappedArray(Handle, Handle, c_uint);
    cuTexRefGetAddress_v2(Place, Handle);
    cuTexRefGetArray(Place, Handle);
    cuTexRefGetMipmappedArray(Place, Handle);
    cuSurfRefSetArray(Handle, Handle, c_uint);
    cuSurfObjectCreate(Handle, *const Resource);
    cuSurfObjectDestroy(u64);
    cuStreamCreate(Handle, c_uint);
    cuStreamCreateWithPriority(Handle, c_uint, c_int);
    cuStreamDestroy_v2(Handle);
    cuStreamSynchronize(Handle);
    cuStreamQuery(Handle);
    cuStreamWaitEvent(Handle, Handle, c_uint);
    cuStreamAddCallback(Handle, Handle, Handle, c_uint);
    cuStreamGetPriority(Handle, Handle);
    cuStreamGetFlags(Handle, Handle);
    cuStreamGetId(Handle, Handle);
    cuStreamIsCapturing(Handle, Handle);
    cuGraphCreate(Handle, c_uint);
    cuGraphDestroy(Handle);
    cuGraphDestroyNode(Handle);
    cuGraphClone(Handle, Handle);
    cuGraphNodeFindInClone(Handle, Handle, Handle);
    cuGraphNodeGetType(Handle, Handle);
    cuGraphGetNodes(Handle, Handle, Handle);
    cuGraphGetRootNodes(Handle, Handle, Handle);
    cuGraphAddEmptyNode(Handle, Handle, Handle, usize);
    cuGraphAddChildGraphNode(Handle, Handle, Handle, usize, Handle);
    cuGraphChildGraphNodeGetGraph(Handle, Handle);
    cuGraphExecChildGraphNodeSetParams(Handle, Handle, Handle);
    cuGraphAddEventRecordNode(Handle, Handle, Handle, usize, Handle);
    cuGraphEventRecordNodeGetEvent(Handle, Handle);
    cuGraphEventRecordNodeSetEvent(Handle, Handle);
    cuGraphExecEventRecordNodeSetEvent(Handle, Handle, Handle);
    cuGraphAddEventWaitNode(Handle, Handle, Handle, usize, Handle);
    cuGraphEventWaitNodeGetEvent(Handle, Handle);
    cuGraphEventWaitNodeSetEvent(Handle, Handle);
    cuGraphExecEventWaitNodeSetEvent(Handle, Handle, Handle);
    cuGraphAddHostNode(Handle, Handle, Handle, usize, Handle);
    cuGraphHostNodeGetParams(Handle, Handle);
    cuGraphHostNodeSetParams(Handle, Handle);
    cuGraphExecHostNodeSetParams(Handle, Handle, Handle);
    cuGraphMemsetNodeGetParams(Handle, Handle);
    cuGraphMemsetNodeSetParams(Handle, Handle);
    cuGraphAddMemAllocNode(Handle, Handle, Handle, usize, Handle);
    cuGraphMemAllocNodeGetParams(Handle, Handle);
    cuGraphAddMemFreeNode(Handle, Handle, Handle, usize, Handle);
    cuGraphMemFreeNodeGetParams(Handle, Handle);
    cuGraphNodeSetEnabled(Handle, Handle, c_uint);
    cuGraphNodeGetEnabled(Handle, Handle, Handle);
    cuGraphInstantiateWithFlags(Handle, Handle, u64);
    cuGraphExecDestroy(Handle);
    cuGraphExecGetFlags(Handle, Handle);
    cuGraphExecUpdate(Handle, Handle, Handle, Handle);
    cuGraphExecUpdate_v2(Handle, Handle, Handle);
    cuGraphDebugDotPrint(Handle, Handle, c_uint);
    cuGraphKernelNodeCopyAttributes(Handle, Handle);
    cuGraphKernelNodeGetAttribute(Handle, c_int, Handle);
    cuGraphKernelNodeSetAttribute(Handle, c_int, Handle);
    cuDeviceGetGraphMemAttribute(c_int, c_int, Handle);
    cuDeviceSetGraphMemAttribute(c_int, c_int, Handle);
    cuDeviceGraphMemTrim(c_int);
    cuUserObjectCreate(Handle, Handle, Handle, c_uint, c_uint);
    cuUserObjectRetain(Handle, c_uint);
    cuUserObjectRelease(Handle, c_uint);
    cuGraphRetainUserObject(Handle, Handle, c_uint, c_uint);
    cuGraphReleaseUserObject(Handle, Handle, c_uint);
    cuThreadExchangeStreamCaptureMode(Handle);
    cuGraphGetEdges_v2(Handle, Handle, Handle, Handle, Handle);
    cuGraphNodeGetDependencies_v2(Handle, Handle, Handle, Handle);
    cuGraphNodeGetDependentNodes_v2(Handle, Handle, Handle, Handle);
    cuGraphAddDependencies_v2(Handle, Handle, Handle, Handle, usize);
    cuGraphRemoveDependencies_v2(Handle, Handle, Handle, Handle, usize);
    cuStreamBeginCapture_v2(Handle, c_int);
    cuStreamBeginCaptureToGraph(Handle, Handle, Handle, Handle, usize, c_int);
    cuStreamEndCapture(Handle, Handle);
    cuStreamGetCaptureInfo_v2(Handle, Handle, Handle, Handle, Handle, Handle);
    cuStreamGetCaptureInfo_v3(Handle, Handle, Handle, Handle, Handle, Handle, Handle);
    cuStreamUpdateCaptureDependencies_v2(Handle, Handle, Handle, usize, c_uint);
    cuGraphLaunch(Handle, Handle);
    cuGraphUpload(Handle, Handle);
    cuGraphGetEdges(Handle, Handle, Handle, Handle);
    cuGraphNodeGetDependencies(Handle, Handle, Handle);
    cuGraphNodeGetDependentNodes(Handle, Handle, Handle);
    cuGraphAddDependencies(Handle, Handle, Handle, usize);
    cuGraphRemoveDependencies(Handle, Handle, Handle, usize);
    cuStreamGetCaptureInfo(Handle, Handle, Handle);
    cuStreamUpdateCaptureDependencies(Handle, Handle, usize, c_uint);
    cuGraphInstantiateWithParams(Handle, Handle, Handle);
    cuGraphInstantiateWithParams_ptsz(Handle, Handle, Handle);
    cuGraphConditionalHandleCreate(Handle, Handle, Handle, c_uint, c_uint);
    cuGraphAddMemsetNode(Handle, Handle, Handle, usize, Handle, Handle);
    cuGraphExecMemsetNodeSetParams(Handle, Handle, Handle, Handle);
    cuGraphAddKernelNode(Handle, Handle, Handle, usize, *const Kernel);
    cuGraphKernelNodeGetParams(Handle, *mut Kernel);
    cuGraphKernelNodeSetParams(Handle, *const Kernel);
    cuGraphExecKernelNodeSetParams(Handle, Handle, *const Kernel);
    cuGraphAddMemcpyNode(Handle, Handle, Handle, usize, *const Copy3D, Handle);
    cuGraphAddNode_v2(Handle, Handle, Handle, Handle, usize, *mut [u64; 32]);
    cuGraphNodeGetParams(Handle, *mut [u64; 32]);
    cuGraphNodeSetParams(Handle, *mut [u64; 32]);
    cuGraphExecNodeSetParams(Handle, Handle, *mut [u64; 32]);
    cuGraphGetId(Handle, Handle);
    cuGraphExecGetId(Handle, Handle);
    cuGraphNodeGetContainingGraph(Handle, Handle);
    cuGraphNodeGetLocalId(Handle, Handle);
    cuGraphNodeGetToolsId(Handle, Handle);
    cuGraphMemcpyNodeGetParams(Handle, *mut Copy3D);
    cuGraphMemcpyNodeSetParams(Handle, *const Copy3D);
    cuGraphExecMemcpyNodeSetParams(Handle, Handle, *const Copy3D, Handle);
    cuMemcpyBatchAsync(Handle, Handle, Handle, usize, Handle, Handle, usize, Handle, Handle);
    cuMemcpyBatchAsync_v2(Handle, Handle, Handle, usize, Handle, Handle, usize, Handle);
    cuMemcpyWithAttributesAsync(Handle, Handle, usize, Handle, Handle);
    cuMemPrefetchBatchAsync(Handle, Handle, usize, Handle, Handle, usize, u64, Handle);
    cuMemDiscardBatchAsync(Handle, Handle, usize, u64, Handle);
    cuMemDiscardAndPrefetchBatchAsync(Handle, Handle, usize, Handle, Handle, usize, u64, Handle);
    cuMemcpyHtoA_v2(Handle, usize, Handle, usize);
    cuMemcpyHtoAAsync_v2(Handle, usize, Handle, usize, Handle);
    cuMemcpyAtoH_v2(Handle, Handle, usize, usize);
    cuMemcpyAtoHAsync_v2(Handle, Handle, usize, usize, Handle);
    cuMemcpyAtoA_v2(Handle, usize, Handle, usize, usize);
    cuCtxResetPersistingL2Cache();
    cuEventCreate(Handle, c_uint);
    cuEventRecord(Handle, Handle);
    cuEventQuery(Handle);
    cuEventSynchronize(Handle);
    cuEventElapsedTime(Handle, Handle, Handle);
    cuEventDestroy_v2(Handle);
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(Handle, Handle, c_int, usize, c_uint);
    ptxvmStruck(*mut c_int);
    cuProfilerStart();
    cuProfilerStop();
    cuGetProcAddress_v2(*const c_char, Handle, c_int, u64, Handle);
}

/// The initialized driver. A forked child has none, because the driver's threads and locks are not usable in
/// it.
pub(crate) fn driver() -> Result<&'static Driver, Status> {
    static DRIVER: OnceLock<Result<Driver, Status>> = OnceLock::new();
    host_memory::watch();
    if host_memory::is_forked() {
        return Err(Status::INITIALIZATION_ERROR);
    }
    let open = || {
        let driver = Driver::open().ok_or(Status::INSUFFICIENT_DRIVER)?;
        crate::error::of_driver((driver.cuInit)(0))?;
        Ok(driver)
    };
    DRIVER.get_or_init(open).as_ref().map_err(|status| *status)
}
