//! Errors of the runtime: their numbers (mostly the driver's), their names, and the last error of each
//! thread.
//!
//! Invariant: numbers and names are those of the public headers of CUDA 12.9 and 13. The descriptions are
//! derived from the names.

use crate::entry::runtime;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

/// `cudaError_t`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Status(pub(crate) c_int);

/// The result of an exported function's body.
pub(crate) type Answer = Result<(), Status>;

impl Status {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const INITIALIZATION_ERROR: Self = Self(3);
    pub(crate) const INVALID_CONFIGURATION: Self = Self(9);
    pub(crate) const INVALID_SYMBOL: Self = Self(13);
    pub(crate) const INVALID_TEXTURE: Self = Self(18);
    pub(crate) const INVALID_MEMCPY_DIRECTION: Self = Self(21);
    pub(crate) const INSUFFICIENT_DRIVER: Self = Self(35);
    pub(crate) const MISSING_CONFIGURATION: Self = Self(52);
    pub(crate) const INVALID_SURFACE: Self = Self(37);
    pub(crate) const INVALID_DEVICE_FUNCTION: Self = Self(98);
    pub(crate) const INVALID_DEVICE: Self = Self(101);
    pub(crate) const INVALID_RESOURCE_HANDLE: Self = Self(400);
    pub(crate) const NOT_FOUND: Self = Self(500);
    pub(crate) const NOT_READY: Self = Self(600);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);
    pub(crate) const UNKNOWN: Self = Self(999);
}

/// Converts a status of the driver, whose numbers are the same.
pub(crate) fn of_driver(status: c_int) -> Answer {
    if status == 0 { Ok(()) } else { Err(Status(status)) }
}

thread_local! {
    static LAST: Cell<Status> = const { Cell::new(Status::SUCCESS) };
}

/// Stores a failure as the thread's last error. `cudaErrorNotReady` is not a failure.
pub(crate) fn remember(status: Status) {
    if status != Status::NOT_READY {
        LAST.set(status);
    }
}

impl Status {
    /// Whether a trap of a kernel can cause this error: the errors after which, by CUDA's documentation, the
    /// process cannot continue.
    pub(crate) fn is_of_trap(self) -> bool {
        matches!(self.0, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721 | 911 | 999)
    }
}

/// Clears the thread's last error if it came from a trap, whose context was destroyed.
pub(crate) fn forget_trap() {
    if LAST.get().is_of_trap() {
        LAST.set(Status::SUCCESS);
    }
}

/// The error that a trap left in the current context, and whether a call has returned it.
pub(crate) fn left_by_trap() -> Option<(Status, bool)> {
    let mut told = 0;
    let status = (crate::driver::driver().ok()?.ptxvmStruck)(&mut told);
    (status != 0).then_some((Status(status), told != 0))
}

/// Returns the thread's last error and clears it, unless the current context still has this error from a
/// trap.
#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> Status {
    let last = LAST.get();
    let stays = last.is_of_trap() && left_by_trap().is_some_and(|(status, _)| status == last);
    if !stays {
        LAST.set(Status::SUCCESS);
    }
    last
}

/// The last error of the thread.
#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> Status {
    LAST.get()
}

/// The name of an error.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(error: Status) -> *const c_char {
    find(error).map_or(c"unrecognized error code".as_ptr(), |(name, _)| name.as_ptr())
}

/// The description of an error.
#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(error: Status) -> *const c_char {
    find(error).map_or(c"unrecognized error code".as_ptr(), |(_, text)| text.as_ptr())
}

/// The name and description of an error.
fn find(error: Status) -> Option<(&'static CStr, &'static CStr)> {
    static TEXTS: OnceLock<Vec<CString>> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| NAMES.iter().map(|(_, name)| describe(name)).collect());
    let index = NAMES.binary_search_by_key(&error.0, |(number, _)| *number).ok()?;
    Some((NAMES[index].1, texts[index].as_c_str()))
}

/// The words of a name: `cudaErrorInvalidValue` is "invalid value".
fn describe(name: &CStr) -> CString {
    let name = name.to_str().unwrap_or_default();
    let Some(words) = name.strip_prefix("cudaError") else { return c"no error".to_owned() };
    let mut text = String::new();
    let letters: Vec<char> = words.chars().collect();
    for (index, letter) in letters.iter().enumerate() {
        let next_is_small = letters.get(index + 1).is_some_and(|next| next.is_lowercase());
        let after_small = index > 0 && letters[index - 1].is_lowercase();
        if index > 0 && letter.is_uppercase() && (after_small || next_is_small) {
            text.push(' ');
        }
        // Abbreviations keep their capitals.
        let abbreviation =
            letter.is_uppercase() && !next_is_small && (!after_small || index + 1 < letters.len());
        if abbreviation { text.push(*letter) } else { text.extend(letter.to_lowercase()) }
    }
    CString::new(text).unwrap_or_default()
}

/// Every error, by number.
#[rustfmt::skip]
const NAMES: &[(c_int, &CStr)] = &[
    (0, c"cudaSuccess"),
    (1, c"cudaErrorInvalidValue"),
    (2, c"cudaErrorMemoryAllocation"),
    (3, c"cudaErrorInitializationError"),
    (4, c"cudaErrorCudartUnloading"),
    (5, c"cudaErrorProfilerDisabled"),
    (6, c"cudaErrorProfilerNotInitialized"),
    (7, c"cudaErrorProfilerAlreadyStarted"),
    (8, c"cudaErrorProfilerAlreadyStopped"),
    (9, c"cudaErrorInvalidConfiguration"),
    (10, c"cudaErrorVersionTranslation"),
    (12, c"cudaErrorInvalidPitchValue"),
    (13, c"cudaErrorInvalidSymbol"),
    (16, c"cudaErrorInvalidHostPointer"),
    (17, c"cudaErrorInvalidDevicePointer"),
    (18, c"cudaErrorInvalidTexture"),
    (19, c"cudaErrorInvalidTextureBinding"),
    (20, c"cudaErrorInvalidChannelDescriptor"),
    (21, c"cudaErrorInvalidMemcpyDirection"),
    (22, c"cudaErrorAddressOfConstant"),
    (23, c"cudaErrorTextureFetchFailed"),
    (24, c"cudaErrorTextureNotBound"),
    (25, c"cudaErrorSynchronizationError"),
    (26, c"cudaErrorInvalidFilterSetting"),
    (27, c"cudaErrorInvalidNormSetting"),
    (28, c"cudaErrorMixedDeviceExecution"),
    (31, c"cudaErrorNotYetImplemented"),
    (32, c"cudaErrorMemoryValueTooLarge"),
    (34, c"cudaErrorStubLibrary"),
    (35, c"cudaErrorInsufficientDriver"),
    (36, c"cudaErrorCallRequiresNewerDriver"),
    (37, c"cudaErrorInvalidSurface"),
    (43, c"cudaErrorDuplicateVariableName"),
    (44, c"cudaErrorDuplicateTextureName"),
    (45, c"cudaErrorDuplicateSurfaceName"),
    (46, c"cudaErrorDevicesUnavailable"),
    (49, c"cudaErrorIncompatibleDriverContext"),
    (52, c"cudaErrorMissingConfiguration"),
    (53, c"cudaErrorPriorLaunchFailure"),
    (65, c"cudaErrorLaunchMaxDepthExceeded"),
    (66, c"cudaErrorLaunchFileScopedTex"),
    (67, c"cudaErrorLaunchFileScopedSurf"),
    (68, c"cudaErrorSyncDepthExceeded"),
    (69, c"cudaErrorLaunchPendingCountExceeded"),
    (98, c"cudaErrorInvalidDeviceFunction"),
    (100, c"cudaErrorNoDevice"),
    (101, c"cudaErrorInvalidDevice"),
    (102, c"cudaErrorDeviceNotLicensed"),
    (103, c"cudaErrorSoftwareValidityNotEstablished"),
    (127, c"cudaErrorStartupFailure"),
    (200, c"cudaErrorInvalidKernelImage"),
    (201, c"cudaErrorDeviceUninitialized"),
    (205, c"cudaErrorMapBufferObjectFailed"),
    (206, c"cudaErrorUnmapBufferObjectFailed"),
    (207, c"cudaErrorArrayIsMapped"),
    (208, c"cudaErrorAlreadyMapped"),
    (209, c"cudaErrorNoKernelImageForDevice"),
    (210, c"cudaErrorAlreadyAcquired"),
    (211, c"cudaErrorNotMapped"),
    (212, c"cudaErrorNotMappedAsArray"),
    (213, c"cudaErrorNotMappedAsPointer"),
    (214, c"cudaErrorECCUncorrectable"),
    (215, c"cudaErrorUnsupportedLimit"),
    (216, c"cudaErrorDeviceAlreadyInUse"),
    (217, c"cudaErrorPeerAccessUnsupported"),
    (218, c"cudaErrorInvalidPtx"),
    (219, c"cudaErrorInvalidGraphicsContext"),
    (220, c"cudaErrorNvlinkUncorrectable"),
    (221, c"cudaErrorJitCompilerNotFound"),
    (222, c"cudaErrorUnsupportedPtxVersion"),
    (223, c"cudaErrorJitCompilationDisabled"),
    (224, c"cudaErrorUnsupportedExecAffinity"),
    (225, c"cudaErrorUnsupportedDevSideSync"),
    (226, c"cudaErrorContained"),
    (227, c"cudaErrorInsufficientLoaderVersion"),
    (300, c"cudaErrorInvalidSource"),
    (301, c"cudaErrorFileNotFound"),
    (302, c"cudaErrorSharedObjectSymbolNotFound"),
    (303, c"cudaErrorSharedObjectInitFailed"),
    (304, c"cudaErrorOperatingSystem"),
    (400, c"cudaErrorInvalidResourceHandle"),
    (401, c"cudaErrorIllegalState"),
    (402, c"cudaErrorLossyQuery"),
    (500, c"cudaErrorSymbolNotFound"),
    (600, c"cudaErrorNotReady"),
    (700, c"cudaErrorIllegalAddress"),
    (701, c"cudaErrorLaunchOutOfResources"),
    (702, c"cudaErrorLaunchTimeout"),
    (703, c"cudaErrorLaunchIncompatibleTexturing"),
    (704, c"cudaErrorPeerAccessAlreadyEnabled"),
    (705, c"cudaErrorPeerAccessNotEnabled"),
    (708, c"cudaErrorSetOnActiveProcess"),
    (709, c"cudaErrorContextIsDestroyed"),
    (710, c"cudaErrorAssert"),
    (711, c"cudaErrorTooManyPeers"),
    (712, c"cudaErrorHostMemoryAlreadyRegistered"),
    (713, c"cudaErrorHostMemoryNotRegistered"),
    (714, c"cudaErrorHardwareStackError"),
    (715, c"cudaErrorIllegalInstruction"),
    (716, c"cudaErrorMisalignedAddress"),
    (717, c"cudaErrorInvalidAddressSpace"),
    (718, c"cudaErrorInvalidPc"),
    (719, c"cudaErrorLaunchFailure"),
    (720, c"cudaErrorCooperativeLaunchTooLarge"),
    (721, c"cudaErrorTensorMemoryLeak"),
    (800, c"cudaErrorNotPermitted"),
    (801, c"cudaErrorNotSupported"),
    (802, c"cudaErrorSystemNotReady"),
    (803, c"cudaErrorSystemDriverMismatch"),
    (804, c"cudaErrorCompatNotSupportedOnDevice"),
    (805, c"cudaErrorMpsConnectionFailed"),
    (806, c"cudaErrorMpsRpcFailure"),
    (807, c"cudaErrorMpsServerNotReady"),
    (808, c"cudaErrorMpsMaxClientsReached"),
    (809, c"cudaErrorMpsMaxConnectionsReached"),
    (810, c"cudaErrorMpsClientTerminated"),
    (811, c"cudaErrorCdpNotSupported"),
    (812, c"cudaErrorCdpVersionMismatch"),
    (900, c"cudaErrorStreamCaptureUnsupported"),
    (901, c"cudaErrorStreamCaptureInvalidated"),
    (902, c"cudaErrorStreamCaptureMerge"),
    (903, c"cudaErrorStreamCaptureUnmatched"),
    (904, c"cudaErrorStreamCaptureUnjoined"),
    (905, c"cudaErrorStreamCaptureIsolation"),
    (906, c"cudaErrorStreamCaptureImplicit"),
    (907, c"cudaErrorCapturedEvent"),
    (908, c"cudaErrorStreamCaptureWrongThread"),
    (909, c"cudaErrorTimeout"),
    (910, c"cudaErrorGraphExecUpdateFailure"),
    (911, c"cudaErrorExternalDevice"),
    (912, c"cudaErrorInvalidClusterSize"),
    (913, c"cudaErrorFunctionNotLoaded"),
    (914, c"cudaErrorInvalidResourceType"),
    (915, c"cudaErrorInvalidResourceConfiguration"),
    (917, c"cudaErrorStreamDetached"),
    (918, c"cudaErrorGraphRecaptureFailure"),
    (919, c"cudaErrorFabricNotReady"),
    (999, c"cudaErrorUnknown"),
    (10000, c"cudaErrorApiFailureBase"),
];

runtime! {
    /// A table of undocumented functions. There are none.
    fn cudaGetExportTable(table: crate::ffi::Out<usize>, _id: usize) {
        table.set_optional(0)?;
        Err(Status::NOT_FOUND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(error: c_int) -> (String, String) {
        let (name, text) = find(Status(error)).expect("an error");
        (name.to_string_lossy().into_owned(), text.to_string_lossy().into_owned())
    }

    #[test]
    fn errors_have_names_and_words() {
        assert!(NAMES.is_sorted_by_key(|(number, _)| *number));
        assert_eq!(text(0), ("cudaSuccess".to_owned(), "no error".to_owned()));
        assert_eq!(text(1), ("cudaErrorInvalidValue".to_owned(), "invalid value".to_owned()));
        assert_eq!(text(209).1, "no kernel image for device");
        assert_eq!(text(700).1, "illegal address");
        assert_eq!(find(Status(12345)), None);
    }

    #[test]
    fn the_last_error_is_given_once() {
        remember(Status::INVALID_VALUE);
        remember(Status::NOT_READY);
        assert_eq!(cudaPeekAtLastError(), Status::INVALID_VALUE);
        assert_eq!(cudaGetLastError(), Status::INVALID_VALUE);
        assert_eq!(cudaGetLastError(), Status::SUCCESS);
    }
}
