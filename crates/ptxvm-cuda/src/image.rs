//! What a program hands over as a module: PTX text.
//!
//! Invariant: an image that holds no PTX is refused with the reason.

use crate::ffi::Pointer;
use crate::status::Status;

/// The PTX texts of an image, each with a name.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE` for a null pointer, `CUDA_ERROR_NO_BINARY_FOR_GPU` for machine code.
pub(crate) fn texts(image: Pointer) -> Result<Vec<(String, String)>, Status> {
    if image.is_null() {
        return Err(Status::InvalidValue);
    }
    Ok(vec![("<module>".to_owned(), image.text().get()?)])
}
