//! Performs the reductions that the [reduction buffer](crate::reduction_buffer) holds.
//!
//! Invariant: afterwards the frame's buffer is empty, and after [`settle`] they have been performed.

use crate::frame::Frame;
use crate::reduction_buffer::{KIND_SHIFT, Kind, Number};
use ptx::isa::AtomOp;
use ptx_exec::mem::{self, announce, perform_or_leave};
use ptx_sem as sem;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Performs and removes all entries of a frame's buffer.
pub(super) fn settle(frame: &mut Frame) {
    let (held, behind) = (std::mem::take(&mut frame.held), std::mem::take(&mut frame.left_behind));
    if held == 0 && behind == 0 {
        return;
    }
    let entries = match held {
        0 => &[],
        // SAFETY: native code has filled that many entries of the buffer, which lives as long as the call
        // whose frame this is; only this OS thread refers to it.
        _ => unsafe { std::slice::from_raw_parts(frame.buffer, held as usize) },
    };
    if frame.full == 0 && behind == 0 {
        // Performed at once, without waiting for other threads.
        announce();
        perform(entries, false);
    } else {
        mem::perform(entries, perform);
    }
}

/// Performs the entries of a frame's buffer, which is `room`, or leaves them to another thread until
/// [`settle`], and gives the frame a buffer that is empty.
pub(super) fn settle_or_leave(frame: &mut Frame, room: &mut Vec<[u64; 2]>) {
    if frame.full == 0 {
        return settle(frame);
    }
    perform_or_leave(room, std::mem::take(&mut frame.held) as usize, perform);
    (frame.buffer, frame.left_behind) = (room.as_mut_ptr(), 1);
}

/// Performs reductions in their order. `plain`: by loads and stores, because no other thread updates memory.
fn perform(entries: &[[u64; 2]], plain: bool) {
    let code = |entry: &[u64; 2]| entry[0] >> KIND_SHIFT;
    for run in entries.chunk_by(|a, b| code(a) == code(b)) {
        let kind = Kind::of_code(code(&run[0]) as u8).expect("ptxvm bug: an entry of no kind");
        match kind.number {
            Number::U32 => by_op(kind.op, |op| words(run, plain, |old, b| sem::atom_u32(op, old, b, 0))),
            Number::S32 => by_op(kind.op, |op| {
                words(run, plain, |old, b| sem::atom_s32(op, old as i32, b as i32, 0) as u32);
            }),
            Number::F32 => words(run, plain, |old, b| sum(f32::from_bits(old), f32::from_bits(b)).to_bits()),
            Number::U64 => by_op(kind.op, |op| longs(run, plain, |old, b| sem::atom_u64(op, old, b, 0))),
            Number::S64 => by_op(kind.op, |op| {
                longs(run, plain, |old, b| sem::atom_s64(op, old as i64, b as i64, 0) as u64);
            }),
            Number::F64 => longs(run, plain, |old, b| {
                sem::atom_add_f64(f64::from_bits(old), f64::from_bits(b)).to_bits()
            }),
        }
    }
}

/// The sum of `atom.add.f32`, by the processor alone where nothing is flushed and nothing is a NaN.
#[inline(always)]
fn sum(old: f32, b: f32) -> f32 {
    let sum = old + b;
    let normal = old.is_normal() && b.is_normal() && sum.is_normal();
    if normal { sum } else { sem::atom_add_ftz_f32(old, b) }
}

/// Calls a function with the operation as a constant, so that it has a loop for each.
#[inline(always)]
fn by_op(op: AtomOp, f: impl Fn(sem::AtomOp)) {
    match op {
        AtomOp::Add => f(sem::AtomOp::Add),
        AtomOp::And => f(sem::AtomOp::And),
        AtomOp::Or => f(sem::AtomOp::Or),
        AtomOp::Xor => f(sem::AtomOp::Xor),
        AtomOp::Min => f(sem::AtomOp::Min),
        AtomOp::Max => f(sem::AtomOp::Max),
        AtomOp::Inc => f(sem::AtomOp::Inc),
        AtomOp::Dec => f(sem::AtomOp::Dec),
        AtomOp::Exch | AtomOp::Cas => unreachable!("ptxvm bug: an operation that is never postponed"),
    }
}

macro_rules! performs {
    ($name:ident, $atomic:ident, $word:ident) => {
        /// Replaces the word at the address of each entry by a function of it and the entry's operand.
        #[inline(always)]
        fn $name(entries: &[[u64; 2]], plain: bool, new: impl Fn($word, $word) -> $word) {
            let order = Ordering::Relaxed;
            for [address, operand] in entries {
                let address = address & (1 << KIND_SHIFT) - 1;
                // SAFETY: native code enters an address only after the comparison with the cached bounds of
                // an allocation, which lives as long as the launch, for an aligned access of this width.
                // Concurrent accesses of guest memory are atomic operations, or are data races of the PTX
                // program.
                let place = unsafe { $atomic::from_ptr(address as *mut $word) };
                let operand = *operand as $word;
                if plain {
                    place.store(new(place.load(order), operand), order);
                } else {
                    place.update(order, order, |old| new(old, operand));
                }
            }
        }
    };
}

performs!(words, AtomicU32, u32);
performs!(longs, AtomicU64, u64);
