//! Values of a type at places that the caller of a C interface names: looked at as far as the system tells, then copied.
//!
//! Invariant: a place that is null, misaligned or no address of a program, or where memory is missing, is refused and not accessed. Where the
//! system does not let a process look, and of variables of functions that are running, the caller's promise counts.

use crate::{Refused, could_be, is_in_callers, is_mapped, overwrite, read_raw, write_raw};
use std::collections::TryReserveError;

/// Values of up to so many bytes are written by this process after the system has tried the place, which is cheaper than a copy by the system.
const SMALL: usize = 256;

/// Writes values one after another; whether there is room for them.
///
/// # Safety
/// What memory there is at the place belongs to the caller of the interface, which asked for so many values there.
pub unsafe fn put<T: Copy>(place: *mut T, values: &[T]) -> bool {
    let (address, bytes) = (place.expose_provenance(), size_of_val(values));
    if bytes == 0 {
        return true;
    }
    if !place.is_aligned() || !could_be(address, bytes) {
        return false;
    }
    if !is_in_callers(address, bytes) {
        let small = bytes <= SMALL && size_of::<T>().is_multiple_of(4) && align_of::<T>() >= 4;
        let written = if small {
            // What is overwritten is written below.
            overwrite(address, bytes).map(|there| if there { bytes } else { 0 })
        } else {
            // SAFETY: the values are borrowed for the call.
            unsafe { write_raw(address, values.as_ptr().cast(), bytes) }
        };
        match written {
            Ok(count) if count == bytes && small => {}
            Ok(count) => return count == bytes,
            Err(Refused) => {}
        }
    }
    // SAFETY: not null, aligned, there, and the caller's, as this function's caller promises. The two may overlap where it promised too much.
    unsafe { std::ptr::copy(values.as_ptr(), place, values.len()) };
    true
}

/// The value at a place, if memory is there.
///
/// # Safety
/// What memory there is at the place holds a value of the type.
pub unsafe fn get<T: Copy>(place: *const T) -> Option<T> {
    let (address, bytes) = (place.expose_provenance(), size_of::<T>());
    if !place.is_aligned() || !could_be(address, bytes) {
        return None;
    }
    if !is_in_callers(address, bytes) && !is_mapped(address, bytes) {
        return None;
    }
    // SAFETY: not null, aligned, there, and of the type, as this function's caller promises.
    Some(unsafe { place.read() })
}

/// A copy of `count` values at a place, if memory for so many is there. The system copies what does not lie in variables of functions that are
/// running, as a count that is wrong may reach over pages that are mapped but closed.
///
/// # Errors
/// There is not memory enough for the copy.
///
/// # Safety
/// What memory there is at the place holds values of the type.
pub unsafe fn get_all<T: Copy>(place: *const T, count: usize) -> Result<Option<Vec<T>>, TryReserveError> {
    let mut values = Vec::new();
    if count == 0 {
        return Ok(Some(values));
    }
    let address = place.expose_provenance();
    let Some(bytes) = count.checked_mul(size_of::<T>()) else { return Ok(None) };
    if !place.is_aligned() || !could_be(address, bytes) {
        return Ok(None);
    }
    let in_callers = is_in_callers(address, bytes);
    if !in_callers && !is_mapped(address, bytes) {
        return Ok(None);
    }
    values.try_reserve_exact(count)?;
    let copied = if in_callers {
        Err(Refused)
    } else {
        // SAFETY: there is room for so many.
        unsafe { read_raw(address, values.as_mut_ptr().cast(), bytes) }
    };
    match copied {
        Ok(copied) if copied == bytes => {}
        Ok(_) => return Ok(None),
        Err(Refused) => {
            // SAFETY: there is room for so many; the memory is there and aligned. The two may overlap where the count is wrong.
            unsafe { std::ptr::copy(place, values.as_mut_ptr(), count) };
        }
    }
    // SAFETY: so many were written, which are values of the type, as this function's caller promises.
    unsafe { values.set_len(count) };
    Ok(Some(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(place: *mut u64, values: &[u64]) -> bool {
        // SAFETY: the places of the tests are theirs, or no memory.
        unsafe { put(place, values) }
    }

    fn reads(place: *const u64) -> Option<u64> {
        // SAFETY: as above.
        unsafe { get(place) }
    }

    fn lists(place: *const u64, count: usize) -> Result<Option<Vec<u64>>, TryReserveError> {
        // SAFETY: as above.
        unsafe { get_all(place, count) }
    }

    #[test]
    fn values_are_copied_where_memory_is() {
        let mut there = Box::new([1u64; 1000]);
        let place = there.as_mut_ptr();
        assert!(writes(place, &[2, 3]) && writes(place.wrapping_add(10), &[4; 500]));
        assert_eq!((reads(place), reads(place.wrapping_add(509))), (Some(2), Some(4)));
        assert_eq!(reads(place.wrapping_add(510)), Some(1));
        assert_eq!(lists(place.wrapping_add(1), 2), Ok(Some(vec![3, 1])));
    }

    #[test]
    fn places_without_memory_are_refused() {
        let mut there = Box::new([1u64; 1000]);
        let place = there.as_mut_ptr();
        assert_eq!((lists(place, 1 << 40), lists(place, usize::MAX)), (Ok(None), Ok(None)));
        assert_eq!(lists(std::ptr::null(), 0), Ok(Some(Vec::new())));
        let odd = place.wrapping_byte_add(1);
        for nothing in
            [0usize, 8, 0x5_0000, 1 << 60].map(std::ptr::with_exposed_provenance_mut).into_iter().chain([odd])
        {
            assert!(!writes(nothing, &[1]) && !writes(nothing, &[1; 100]) && writes(nothing, &[]));
            assert!(reads(nothing).is_none() && lists(nothing, 1) == Ok(None));
        }
    }
}
