//! The statuses of the interface.

use std::ffi::CStr;

/// `nvrtcResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Status(pub(crate) i32);

/// The result of an exported function's body.
pub(crate) type Answer<T = ()> = Result<T, Status>;

macro_rules! statuses {
    ($($name:ident = $number:literal $text:literal)*) => {
        impl Status {
            $(pub(crate) const $name: Self = Self($number);)*

            /// The name in NVIDIA's manual.
            pub(crate) fn name(self) -> &'static CStr {
                match self {
                    $(Self::$name => $text,)*
                    _ => c"NVRTC_ERROR unknown",
                }
            }
        }
    };
}

statuses! {
    SUCCESS = 0 c"NVRTC_SUCCESS"
    OUT_OF_MEMORY = 1 c"NVRTC_ERROR_OUT_OF_MEMORY"
    PROGRAM_CREATION_FAILURE = 2 c"NVRTC_ERROR_PROGRAM_CREATION_FAILURE"
    INVALID_INPUT = 3 c"NVRTC_ERROR_INVALID_INPUT"
    INVALID_PROGRAM = 4 c"NVRTC_ERROR_INVALID_PROGRAM"
    INVALID_OPTION = 5 c"NVRTC_ERROR_INVALID_OPTION"
    COMPILATION = 6 c"NVRTC_ERROR_COMPILATION"
    BUILTIN_OPERATION_FAILURE = 7 c"NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"
    NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8 c"NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION"
    NO_LOWERED_NAMES_BEFORE_COMPILATION = 9 c"NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"
    NAME_EXPRESSION_NOT_VALID = 10 c"NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID"
    INTERNAL_ERROR = 11 c"NVRTC_ERROR_INTERNAL_ERROR"
    TIME_FILE_WRITE_FAILED = 12 c"NVRTC_ERROR_TIME_FILE_WRITE_FAILED"
    NO_PCH_CREATE_ATTEMPTED = 13 c"NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED"
    PCH_CREATE_HEAP_EXHAUSTED = 14 c"NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED"
    PCH_CREATE = 15 c"NVRTC_ERROR_PCH_CREATE"
    CANCELLED = 16 c"NVRTC_ERROR_CANCELLED"
    TIME_TRACE_FILE_WRITE_FAILED = 17 c"NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED"
    BUSY = 18 c"NVRTC_ERROR_BUSY"
}
