//! Typed values at addresses that the caller of a C interface passes: checked as far as the system can tell,
//! then copied.
//!
//! Invariant: an address that is null, misaligned, no address of a program, or not mapped is rejected and not
//! accessed. An address is trusted if the system refuses to check it, or if it lies in variables of calling
//! functions.

use crate::{
    Access, PAGE, Refused, could_be, is_in_callers, is_mapped, overwrite, read, read_raw, system, write,
    write_raw,
};
use std::collections::TryReserveError;

/// Values of up to this many bytes are stored by this process after an [`overwrite`] test, which is cheaper
/// than a copy by the system.
const SMALL: usize = 256;

/// Writes values one after another. Returns false if memory for them is missing.
///
/// # Safety
/// The memory at `place`, if it is mapped, belongs to the caller of the interface, which asked for these
/// values there.
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
            // The values overwritten here are written below.
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
    // SAFETY: the place is not null, aligned, mapped, and the caller's, as this function's caller promises.
    // `copy` allows the ranges to overlap, in case the promise is wrong.
    unsafe { std::ptr::copy(values.as_ptr(), place, values.len()) };
    true
}

/// Whether [`put`] could write a value now. The memory keeps its contents, so that a caller that fails before
/// it writes leaves no trace.
///
/// # Safety
/// As [`put`]; nothing else writes there during the call.
pub unsafe fn could_put<T: Copy>(place: *mut T) -> bool {
    let (address, bytes) = (place.expose_provenance(), size_of::<T>());
    if bytes == 0 {
        return true;
    }
    if !place.is_aligned() || !could_be(address, bytes) {
        return false;
    }
    if is_in_callers(address, bytes) {
        return true;
    }
    // The system has one answer for memory that is not writable and for a question that it does not know.
    if let Ok(permitted) = system::permits(address / PAGE * PAGE, address % PAGE + bytes, Access::Write) {
        return permitted;
    }
    let mut kept = vec![0u8; bytes];
    let copied = read(address, &mut kept).and_then(|count| Ok((count, write(address, &kept[..count])?)));
    copied.is_ok_and(|(read, written)| read == bytes && written == bytes) || copied.is_err()
}

/// The value at an address, if memory is mapped there.
///
/// # Safety
/// The memory at `place`, if it is mapped, holds a value of the type.
pub unsafe fn get<T: Copy>(place: *const T) -> Option<T> {
    let (address, bytes) = (place.expose_provenance(), size_of::<T>());
    if !place.is_aligned() || !could_be(address, bytes) {
        return None;
    }
    if !is_in_callers(address, bytes) && !is_mapped(address, bytes) {
        return None;
    }
    // SAFETY: the place is not null, aligned, mapped, and of the type, as this function's caller promises.
    Some(unsafe { place.read() })
}

/// A copy of `count` values, if memory for all of them is mapped. Unless they lie in variables of calling
/// functions, the system copies them, because a wrong count may reach over pages that are mapped but not
/// readable.
///
/// # Errors
/// The copy does not fit into memory.
///
/// # Safety
/// The memory at `place`, if it is mapped, holds values of the type.
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
        // SAFETY: `values` has room for `count` values.
        unsafe { read_raw(address, values.as_mut_ptr().cast(), bytes) }
    };
    match copied {
        Ok(copied) if copied == bytes => {}
        Ok(_) => return Ok(None),
        Err(Refused) => {
            // SAFETY: `values` has room for `count` values, and the memory at `place` is mapped and aligned.
            // `copy` allows the ranges to overlap, in case the count is wrong.
            unsafe { std::ptr::copy(place, values.as_mut_ptr(), count) };
        }
    }
    // SAFETY: `count` values were written, and they are values of the type, as this function's caller
    // promises.
    unsafe { values.set_len(count) };
    Ok(Some(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(place: *mut u64, values: &[u64]) -> bool {
        // SAFETY: the addresses in the tests are the tests' own memory, or not mapped.
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

    fn could_write<T: Copy>(place: *mut T) -> bool {
        // SAFETY: as above; each place is used by one thread.
        unsafe { could_put(place) }
    }

    #[test]
    fn the_check_before_writing_changes_nothing() {
        static CONSTANT: [u64; 2] = [1, 2];
        let mut there = Box::new([7u64; 2000]);
        let place = there.as_mut_ptr();
        assert!(could_write(place) && could_write(place.cast::<[u64; 2000]>()));
        assert_eq!(*there, [7; 2000]);
        assert!(!could_write((&raw const CONSTANT).cast_mut()) && !could_write(place.wrapping_byte_add(1)));
        for nothing in [0usize, 8, 0x5_0000, 1 << 60] {
            assert!(!could_write::<u64>(std::ptr::with_exposed_provenance_mut(nothing)));
        }
        let mut variable = 5u64;
        assert!(could_write(&raw mut variable) && variable == 5);
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
