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
    let mut rest = entries;
    while let Some([address, _]) = rest.first() {
        let code = (address >> KIND_SHIFT) as u8;
        let kind = Kind::of_code(code).expect("ptxvm bug: an entry of no kind");
        let run = Run { entries: rest, code, plain };
        let done = match kind.number {
            Number::U32 => by_op(kind.op, |op| words(run, |old, b| sem::atom_u32(op, old, b, 0))),
            Number::S32 => {
                by_op(kind.op, |op| words(run, |old, b| sem::atom_s32(op, old as i32, b as i32, 0) as u32))
            }
            Number::F32 => words(run, |old, b| sum(f32::from_bits(old), f32::from_bits(b)).to_bits()),
            Number::U64 => by_op(kind.op, |op| longs(run, |old, b| sem::atom_u64(op, old, b, 0))),
            Number::S64 => {
                by_op(kind.op, |op| longs(run, |old, b| sem::atom_s64(op, old as i64, b as i64, 0) as u64))
            }
            Number::F64 => {
                longs(run, |old, b| sem::atom_add_f64(f64::from_bits(old), f64::from_bits(b)).to_bits())
            }
        };
        rest = &rest[done..];
    }
}

/// Entries of which the first ones are of one kind.
#[derive(Clone, Copy)]
struct Run<'a> {
    entries: &'a [[u64; 2]],
    /// The number of the kind.
    code: u8,
    /// Whether no other thread updates memory.
    plain: bool,
}

/// The sum of `atom.add.f32`, by the processor alone where the result is no NaN, no infinity and at least
/// 2^-100. Then it makes no difference whether subnormal operands are flushed: beside a number of that size,
/// they are less than half of its last place.
#[inline(always)]
fn sum(old: f32, b: f32) -> f32 {
    const LEAST: u32 = (127 - 100) << 23;
    const INFINITY: u32 = f32::INFINITY.to_bits();
    let sum = old + b;
    let is_usual = (sum.to_bits() & i32::MAX as u32).wrapping_sub(LEAST) < INFINITY - LEAST;
    if is_usual { sum } else { sem::atom_add_ftz_f32(old, b) }
}

/// Calls a function with the operation as a constant, so that it has a loop for each.
#[inline(always)]
fn by_op(op: AtomOp, f: impl Fn(sem::AtomOp) -> usize) -> usize {
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
        /// Replaces the word at the address of each entry of the first kind by a function of it and the
        /// entry's operand. Returns how many entries these are.
        #[inline(always)]
        fn $name(run: Run<'_>, new: impl Fn($word, $word) -> $word) -> usize {
            let Run { entries, code, plain } = run;
            let order = Ordering::Relaxed;
            let place = |address: u64| {
                let address = address & (1 << KIND_SHIFT) - 1;
                // SAFETY: native code enters an address only after the comparison with the cached bounds of
                // an allocation, which lives as long as the launch, for an aligned access of this width.
                // Concurrent accesses of guest memory are atomic operations, or are data races of the PTX
                // program.
                unsafe { $atomic::from_ptr(address as *mut $word) }
            };
            let of_kind = entries.iter().take_while(|[address, _]| address >> KIND_SHIFT == u64::from(code));
            let one = |[address, operand]: &[u64; 2]| (place(*address), *operand as $word);
            if plain {
                of_kind.map(one).fold(0, |done, (place, operand)| {
                    place.store(new(place.load(order), operand), order);
                    done + 1
                })
            } else {
                of_kind.map(one).fold(0, |done, (place, operand)| {
                    place.update(order, order, |old| new(old, operand));
                    done + 1
                })
            }
        }
    };
}

performs!(words, AtomicU32, u32);
performs!(longs, AtomicU64, u64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits near every limit: zeros, subnormal numbers, the least normal ones, 2^-100, infinity, NaNs.
    fn edges() -> Vec<u32> {
        let near = |bits: u32| (-3..=3).map(move |step| bits.wrapping_add_signed(step));
        let numbers =
            [0, 0x0040_0000, 0x0080_0000, 0x0d80_0000, 0x0e00_0000, 0x3f80_0000, 0x7f00_0000, 0x7f80_0000];
        numbers.into_iter().flat_map(near).flat_map(|bits| [bits, bits ^ 1 << 31]).collect()
    }

    #[test]
    fn sums_are_those_of_the_meaning() {
        let mut random = 1_u32;
        let mut next = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            random ^ random >> 15
        };
        let pairs = edges().into_iter().flat_map(|a| edges().into_iter().map(move |b| (a, b)));
        // The second is often nearly the first with the other sign.
        let others = (0..100_000).map(|_| {
            let (a, b) = (next(), next());
            (a, if b & 1 == 0 { b } else { a ^ 1 << 31 ^ (b >> 20) })
        });
        for (a, b) in pairs.chain(others) {
            let [x, y] = [a, b].map(f32::from_bits);
            let (own, meant) = (sum(x, y).to_bits(), sem::atom_add_ftz_f32(x, y).to_bits());
            assert_eq!(own, meant, "{a:#x} + {b:#x}: {own:#x}, not {meant:#x}");
        }
    }

    #[test]
    fn runs_of_several_kinds_are_performed_in_their_order() {
        for plain in [true, false] {
            let (mut words, mut longs) = ([10_u32, 20], [1_u64 << 40, 2.5_f64.to_bits()]);
            let entry = |place: *mut u8, op: AtomOp, number: Number, operand: u64| {
                let code = u64::from(Kind { op, number }.code());
                [place.expose_provenance() as u64 | code << KIND_SHIFT, operand]
            };
            let [a, b] = [0, 1].map(|at| (&raw mut words[at]).cast());
            let [c, d] = [0, 1].map(|at| (&raw mut longs[at]).cast());
            let entries = [
                entry(a, AtomOp::Add, Number::U32, 5),
                entry(a, AtomOp::Add, Number::U32, 7),
                entry(a, AtomOp::Max, Number::S32, u64::from(-1_i32 as u32)),
                entry(b, AtomOp::Max, Number::S32, 40),
                entry(a, AtomOp::Add, Number::U32, 1),
                entry(d, AtomOp::Add, Number::F64, 0.25_f64.to_bits()),
                entry(c, AtomOp::Min, Number::U64, 3),
                entry(c, AtomOp::Inc, Number::U64, 9),
            ];
            let inc = sem::atom_u64(sem::AtomOp::Inc, 3, 9, 0);
            perform(&entries, plain);
            assert_eq!((words, longs), ([23, 40], [inc, 2.75_f64.to_bits()]));
        }
    }
}
