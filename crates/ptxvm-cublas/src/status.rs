//! The results of functions: `cublasStatus_t`.
//!
//! Invariant: numbers and names are those of the public header.

use std::ffi::CStr;

/// `cublasStatus_t`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Status(pub(crate) i32);

/// Success, or why not.
pub(crate) type Answer<T = ()> = Result<T, Status>;

macro_rules! statuses {
    ($($name:ident = $value:literal, $symbol:literal, $text:literal;)*) => {
        impl Status {
            $(
                #[allow(dead_code, reason = "the header has it, and nothing here answers it")]
                #[doc = concat!("`CUBLAS_STATUS_", stringify!($name), "`")]
                pub(crate) const $name: Self = Self($value);
            )*
            const ALL: &[(Self, &CStr, &CStr)] = &[$((Self($value), $symbol, $text),)*];
        }
    };
}

statuses! {
    SUCCESS = 0, c"CUBLAS_STATUS_SUCCESS", c"success";
    NOT_INITIALIZED = 1, c"CUBLAS_STATUS_NOT_INITIALIZED", c"unknown handle, or no CUDA driver";
    ALLOC_FAILED = 3, c"CUBLAS_STATUS_ALLOC_FAILED", c"no memory";
    INVALID_VALUE = 7, c"CUBLAS_STATUS_INVALID_VALUE", c"an argument is wrong";
    ARCH_MISMATCH = 8, c"CUBLAS_STATUS_ARCH_MISMATCH", c"the device lacks a required feature";
    MAPPING_ERROR = 11, c"CUBLAS_STATUS_MAPPING_ERROR", c"memory cannot be reached";
    EXECUTION_FAILED = 13, c"CUBLAS_STATUS_EXECUTION_FAILED", c"the computation failed on the device";
    INTERNAL_ERROR = 14, c"CUBLAS_STATUS_INTERNAL_ERROR", c"an internal error of the library";
    NOT_SUPPORTED = 15, c"CUBLAS_STATUS_NOT_SUPPORTED", c"this is not supported";
    LICENSE_ERROR = 16, c"CUBLAS_STATUS_LICENSE_ERROR", c"a license is missing";
}

impl Status {
    /// Its name in C.
    pub(crate) fn name(self) -> &'static CStr {
        let found = Self::ALL.iter().find(|(status, ..)| *status == self);
        found.map_or(c"unknown cublasStatus_t", |(_, name, _)| name)
    }

    /// A description.
    pub(crate) fn text(self) -> &'static CStr {
        let found = Self::ALL.iter().find(|(status, ..)| *status == self);
        found.map_or(c"unknown status of cuBLAS", |(.., text)| text)
    }

    /// Fails with this status unless `holds`.
    pub(crate) fn unless(self, holds: bool) -> Answer {
        if holds { Ok(()) } else { Err(self) }
    }
}

/// Fails with `CUBLAS_STATUS_INVALID_VALUE` unless `holds`.
pub(crate) fn valid(holds: bool) -> Answer {
    Status::INVALID_VALUE.unless(holds)
}

/// A buffer of `count` values.
///
/// # Errors
/// `CUBLAS_STATUS_ALLOC_FAILED`.
pub(crate) fn buffer<T: Clone>(value: T, count: usize) -> Answer<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| Status::ALLOC_FAILED)?;
    values.resize(count, value);
    Ok(values)
}
