//! The results of functions of the driver API: `CUresult`.
//!
//! Invariant: numbers and names are those of the public header; the descriptions are ptxvm's.

macro_rules! statuses {
    ($($variant:ident = $number:literal, $name:literal, $text:literal;)*) => {
        /// `CUresult`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub(crate) enum Status {
            $(#[doc = $text] $variant = $number,)*
        }

        impl Status {
            /// All statuses, in the order of their numbers.
            const ALL: &[Status] = &[$(Status::$variant),*];

            /// The name in the public header, for C.
            pub(crate) fn name(self) -> &'static std::ffi::CStr {
                match self {
                    $(Status::$variant => $name,)*
                }
            }

            /// The description, for C.
            pub(crate) fn text(self) -> &'static std::ffi::CStr {
                const fn c(text: &str) -> &std::ffi::CStr {
                    match std::ffi::CStr::from_bytes_with_nul(text.as_bytes()) {
                        Ok(text) => text,
                        Err(_) => c"",
                    }
                }
                match self {
                    $(Status::$variant => const { c(concat!($text, "\0")) },)*
                }
            }
        }
    };
}

statuses! {
    Success = 0, c"CUDA_SUCCESS", "no error";
    InvalidValue = 1, c"CUDA_ERROR_INVALID_VALUE", "invalid value or pointer";
    OutOfMemory = 2, c"CUDA_ERROR_OUT_OF_MEMORY", "out of memory";
    NotInitialized = 3, c"CUDA_ERROR_NOT_INITIALIZED", "cuInit was not called";
    Deinitialized = 4, c"CUDA_ERROR_DEINITIALIZED", "the driver is shutting down";
    ProfilerDisabled = 5, c"CUDA_ERROR_PROFILER_DISABLED", "the profiler is disabled";
    ProfilerNotInitialized = 6, c"CUDA_ERROR_PROFILER_NOT_INITIALIZED", "the profiler is not initialized";
    ProfilerAlreadyStarted = 7, c"CUDA_ERROR_PROFILER_ALREADY_STARTED", "the profiler runs already";
    ProfilerAlreadyStopped = 8, c"CUDA_ERROR_PROFILER_ALREADY_STOPPED", "the profiler is stopped already";
    StubLibrary = 34, c"CUDA_ERROR_STUB_LIBRARY", "the library is a stub";
    CallRequiresNewerDriver = 36, c"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "the call needs a newer driver";
    DeviceUnavailable = 46, c"CUDA_ERROR_DEVICE_UNAVAILABLE", "the device is not available";
    MulticastResourceFull = 47, c"CUDA_ERROR_MULTICAST_RESOURCE_FULL", "no more multicast resources";
    NoDevice = 100, c"CUDA_ERROR_NO_DEVICE", "no device";
    InvalidDevice = 101, c"CUDA_ERROR_INVALID_DEVICE", "unknown device";
    DeviceNotLicensed = 102, c"CUDA_ERROR_DEVICE_NOT_LICENSED", "the device is not licensed";
    InvalidImage = 200, c"CUDA_ERROR_INVALID_IMAGE", "the image is not a module";
    InvalidContext = 201, c"CUDA_ERROR_INVALID_CONTEXT", "no current context, or an invalid one";
    ContextAlreadyCurrent = 202, c"CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "the context is current already";
    MapFailed = 205, c"CUDA_ERROR_MAP_FAILED", "mapping failed";
    UnmapFailed = 206, c"CUDA_ERROR_UNMAP_FAILED", "unmapping failed";
    ArrayIsMapped = 207, c"CUDA_ERROR_ARRAY_IS_MAPPED", "the array is mapped";
    AlreadyMapped = 208, c"CUDA_ERROR_ALREADY_MAPPED", "the resource is mapped already";
    NoBinaryForGpu = 209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", "the image has no code for this device";
    AlreadyAcquired = 210, c"CUDA_ERROR_ALREADY_ACQUIRED", "the resource is acquired already";
    NotMapped = 211, c"CUDA_ERROR_NOT_MAPPED", "the resource is not mapped";
    NotMappedAsArray = 212, c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "the resource is not mapped as an array";
    NotMappedAsPointer = 213, c"CUDA_ERROR_NOT_MAPPED_AS_POINTER", "the resource is not mapped as a pointer";
    EccUncorrectable = 214, c"CUDA_ERROR_ECC_UNCORRECTABLE", "an uncorrectable memory error";
    UnsupportedLimit = 215, c"CUDA_ERROR_UNSUPPORTED_LIMIT", "the device does not have this limit";
    ContextAlreadyInUse = 216, c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "the context is used by another thread";
    PeerAccessUnsupported = 217, c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported";
    InvalidPtx = 218, c"CUDA_ERROR_INVALID_PTX", "the PTX text was rejected";
    InvalidGraphicsContext = 219, c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "the graphics context is not valid";
    NvlinkUncorrectable = 220, c"CUDA_ERROR_NVLINK_UNCORRECTABLE", "an uncorrectable NVLink error";
    JitCompilerNotFound = 221, c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "the PTX compiler was not found";
    UnsupportedPtxVersion = 222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX version is not supported";
    JitCompilationDisabled = 223, c"CUDA_ERROR_JIT_COMPILATION_DISABLED", "compiling PTX is disabled";
    UnsupportedExecAffinity = 224, c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "the device does not have this execution affinity";
    UnsupportedDevsideSync = 225, c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", "synchronisation on the device is not supported";
    Contained = 226, c"CUDA_ERROR_CONTAINED", "a contained error of the device";
    InsufficientLoaderVersion = 227, c"CUDA_ERROR_INSUFFICIENT_LOADER_VERSION", "the loader is too old";
    InvalidSource = 300, c"CUDA_ERROR_INVALID_SOURCE", "the source is not valid";
    FileNotFound = 301, c"CUDA_ERROR_FILE_NOT_FOUND", "the file was not found";
    SharedObjectSymbolNotFound = 302, c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "a symbol of a shared object was not found";
    SharedObjectInitFailed = 303, c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "a shared object failed to start";
    OperatingSystem = 304, c"CUDA_ERROR_OPERATING_SYSTEM", "the operating system failed";
    InvalidHandle = 400, c"CUDA_ERROR_INVALID_HANDLE", "invalid handle";
    IllegalState = 401, c"CUDA_ERROR_ILLEGAL_STATE", "the resource is in the wrong state";
    LossyQuery = 402, c"CUDA_ERROR_LOSSY_QUERY", "the answer would lose information";
    NotFound = 500, c"CUDA_ERROR_NOT_FOUND", "the name was not found";
    NotReady = 600, c"CUDA_ERROR_NOT_READY", "not finished yet";
    IllegalAddress = 700, c"CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel accessed an illegal address";
    LaunchOutOfResources = 701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "the launch needs more than the device has";
    LaunchTimeout = 702, c"CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel exceeded the time limit";
    LaunchIncompatibleTexturing = 703, c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "incompatible texturing modes";
    PeerAccessAlreadyEnabled = 704, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is enabled already";
    PeerAccessNotEnabled = 705, c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access is not enabled";
    PrimaryContextActive = 708, c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "the primary context is active";
    ContextIsDestroyed = 709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context was destroyed";
    Assert = 710, c"CUDA_ERROR_ASSERT", "an assertion failed in a kernel";
    TooManyPeers = 711, c"CUDA_ERROR_TOO_MANY_PEERS", "too many peers";
    HostMemoryAlreadyRegistered = 712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "the host memory is registered already";
    HostMemoryNotRegistered = 713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the host memory is not registered";
    HardwareStackError = 714, c"CUDA_ERROR_HARDWARE_STACK_ERROR", "a stack overflowed in a kernel";
    IllegalInstruction = 715, c"CUDA_ERROR_ILLEGAL_INSTRUCTION", "a kernel executed an illegal instruction";
    MisalignedAddress = 716, c"CUDA_ERROR_MISALIGNED_ADDRESS", "a kernel accessed a misaligned address";
    InvalidAddressSpace = 717, c"CUDA_ERROR_INVALID_ADDRESS_SPACE", "a kernel accessed an address of the wrong state space";
    InvalidPc = 718, c"CUDA_ERROR_INVALID_PC", "a kernel jumped to an address without code";
    LaunchFailed = 719, c"CUDA_ERROR_LAUNCH_FAILED", "a kernel failed";
    CooperativeLaunchTooLarge = 720, c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "the cooperative launch is too large to be resident";
    TensorMemoryLeak = 721, c"CUDA_ERROR_TENSOR_MEMORY_LEAK", "a kernel left tensor memory allocated";
    NotPermitted = 800, c"CUDA_ERROR_NOT_PERMITTED", "not permitted";
    NotSupported = 801, c"CUDA_ERROR_NOT_SUPPORTED", "not supported";
    SystemNotReady = 802, c"CUDA_ERROR_SYSTEM_NOT_READY", "the system is not ready";
    SystemDriverMismatch = 803, c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "incompatible driver versions";
    CompatNotSupportedOnDevice = 804, c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "the device does not support compatibility mode";
    MpsConnectionFailed = 805, c"CUDA_ERROR_MPS_CONNECTION_FAILED", "no connection to MPS";
    MpsRpcFailure = 806, c"CUDA_ERROR_MPS_RPC_FAILURE", "a remote call of MPS failed";
    MpsServerNotReady = 807, c"CUDA_ERROR_MPS_SERVER_NOT_READY", "the MPS server is not ready";
    MpsMaxClientsReached = 808, c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "MPS has too many clients";
    MpsMaxConnectionsReached = 809, c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "MPS has too many connections";
    MpsClientTerminated = 810, c"CUDA_ERROR_MPS_CLIENT_TERMINATED", "the MPS client was terminated";
    CdpNotSupported = 811, c"CUDA_ERROR_CDP_NOT_SUPPORTED", "kernels that launch kernels are not supported";
    CdpVersionMismatch = 812, c"CUDA_ERROR_CDP_VERSION_MISMATCH", "incompatible versions of kernel launches";
    StreamCaptureUnsupported = 900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not allowed while a stream is captured";
    StreamCaptureInvalidated = 901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture is invalid";
    StreamCaptureMerge = 902, c"CUDA_ERROR_STREAM_CAPTURE_MERGE", "two captures would merge";
    StreamCaptureUnmatched = 903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture did not begin in this stream";
    StreamCaptureUnjoined = 904, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "a fork of the capture was not joined";
    StreamCaptureIsolation = 905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "a dependency crosses the capture";
    StreamCaptureImplicit = 906, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "an implicit dependency on the legacy stream";
    CapturedEvent = 907, c"CUDA_ERROR_CAPTURED_EVENT", "the event was recorded in a capture";
    StreamCaptureWrongThread = 908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "the capture belongs to another thread";
    Timeout = 909, c"CUDA_ERROR_TIMEOUT", "waited too long";
    GraphExecUpdateFailure = 910, c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph cannot be updated";
    ExternalDevice = 911, c"CUDA_ERROR_EXTERNAL_DEVICE", "an external device failed";
    InvalidClusterSize = 912, c"CUDA_ERROR_INVALID_CLUSTER_SIZE", "unsupported cluster size";
    FunctionNotLoaded = 913, c"CUDA_ERROR_FUNCTION_NOT_LOADED", "the function is not loaded";
    InvalidResourceType = 914, c"CUDA_ERROR_INVALID_RESOURCE_TYPE", "wrong resource type";
    InvalidResourceConfiguration = 915, c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "wrong resource configuration";
    KeyRotation = 916, c"CUDA_ERROR_KEY_ROTATION", "a key was rotated";
    StreamDetached = 917, c"CUDA_ERROR_STREAM_DETACHED", "the stream is detached";
    GraphRecaptureFailure = 918, c"CUDA_ERROR_GRAPH_RECAPTURE_FAILURE", "the graph cannot be captured again";
    FabricNotReady = 919, c"CUDA_ERROR_FABRIC_NOT_READY", "the fabric is not ready";
    Unknown = 999, c"CUDA_ERROR_UNKNOWN", "unknown error";
}

impl Status {
    /// The status with a number, which C may have invented.
    pub(crate) fn from_number(number: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| *status as i32 == number)
    }
}

/// The result of an entry point's body.
pub(crate) type Answer = Result<(), Status>;
