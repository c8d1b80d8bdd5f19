//! Performs the reductions that the [reduction buffer](crate::reduction_buffer) holds.
//!
//! Invariant: afterwards every entry of the frame's table is empty, if the frame has one.

use crate::frame::Frame;
use crate::reduction_buffer::{ENTRIES, Kind};
use ptx::isa::AtomOp;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Performs and removes all entries of a frame's table.
pub(super) fn settle(frame: &mut Frame) {
    let kind = Kind(std::mem::take(&mut frame.held));
    let Some(parts) = kind.parts().filter(|_| !frame.table.is_null()) else { return };
    // SAFETY: the table has this many entries and lives as long as the call whose frame this is; only this OS
    // thread refers to it.
    let table = unsafe { std::slice::from_raw_parts_mut(frame.table, ENTRIES as usize) };
    for [address, sum] in table.iter_mut().filter(|[address, _]| *address != 0) {
        // SAFETY: native code enters an address only after the comparison with the cached bounds of an
        // allocation, which lives as long as the launch, for an aligned access of this width. Concurrent
        // accesses of guest memory are atomic operations, or are data races of the PTX program.
        unsafe { carry_out(parts, *address as usize, *sum) };
        (*address, *sum) = (0, 0);
    }
}

/// # Safety
/// The address is that of an aligned, live integer of that width.
unsafe fn carry_out((op, signed, wide): (AtomOp, bool, bool), address: usize, sum: u64) {
    let order = Ordering::Relaxed;
    macro_rules! update {
        ($unsigned:ident, $word:ident, $signed:ident, $number:ident) => {{
            // SAFETY: as the caller says.
            let place = unsafe { $unsigned::from_ptr(address as *mut $word) };
            // SAFETY: as above.
            let number = unsafe { $signed::from_ptr(address as *mut $number) };
            match (op, signed) {
                (AtomOp::Add, _) => drop(place.fetch_add(sum as $word, order)),
                (AtomOp::And, _) => drop(place.fetch_and(sum as $word, order)),
                (AtomOp::Or, _) => drop(place.fetch_or(sum as $word, order)),
                (AtomOp::Min, false) => drop(place.fetch_min(sum as $word, order)),
                (AtomOp::Max, false) => drop(place.fetch_max(sum as $word, order)),
                (AtomOp::Min, true) => drop(number.fetch_min(sum as $number, order)),
                (AtomOp::Max, true) => drop(number.fetch_max(sum as $number, order)),
                (AtomOp::Xor | AtomOp::Exch | AtomOp::Cas | AtomOp::Inc | AtomOp::Dec, _) => {
                    unreachable!("ptxvm bug: an operation that is never kept back")
                }
            }
        }};
    }
    if wide {
        update!(AtomicU64, u64, AtomicI64, i64);
    } else {
        update!(AtomicU32, u32, AtomicI32, i32);
    }
}
