//! Postponed reductions: they are appended to the reduction buffer
//! ([`reduction_buffer`](crate::reduction_buffer) says when that is legal), and the host performs them.
//!
//! Invariant: where such a reduction begins, the buffer has room for one of each lane.

use super::load_store::Addresses;
use super::{Codegen, Repr};
use crate::frame::Frame;
use crate::llvm::{IntPred, Likely, Value};
use crate::reduction_buffer::{KIND_SHIFT, Kind};
use std::mem::offset_of;

/// Bytes of an entry: the address with the number of the kind, and the operand, eight bytes each.
const ENTRY_BYTES: u32 = 16;

impl Codegen<'_> {
    /// The end of the buffer, where the next entry is stored.
    fn end_of_buffer(&self) -> Value {
        let buffer = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, buffer)), 8);
        let held = self.load32(offset_of!(Frame, held));
        let bytes = self.b.mul(self.b.zext(held, self.int(64)), self.c64(ENTRY_BYTES.into()));
        self.b.gep(buffer, bytes)
    }

    /// Counts new entries.
    fn hold(&self, more: Value) {
        let held = self.load32(offset_of!(Frame, held));
        self.store_field(offset_of!(Frame, held), self.b.add(held, more));
    }

    fn store_entry(&self, kind: Kind, end: Value, place: Value, operand: Value) {
        let long = self.int(64);
        let operand = if operand.ty() == long { operand } else { self.b.zext(operand, long) };
        let tagged = self.b.or(place, self.c64(tag(kind)));
        self.b.store(tagged, end, 8);
        self.b.store(operand, self.b.offset(end, 8), 8);
    }

    /// Appends a reduction to the buffer.
    pub(super) fn postpone(&mut self, kind: Kind, place: Value, operand: Value) {
        self.out.postpones = true;
        self.store_entry(kind, self.end_of_buffer(), place, operand);
        self.hold(self.c32(1));
    }

    /// Appends a reduction to the buffer if a condition holds.
    pub(super) fn postpone_if(&mut self, condition: Value, kind: Kind, place: Value, operand: Value) {
        self.out.postpones = true;
        // The next entry replaces one that does not count.
        self.store_entry(kind, self.end_of_buffer(), place, operand);
        self.hold(self.b.zext(condition, self.int(32)));
    }

    /// Appends a reduction of each lane to the buffer, if all are active.
    pub(super) fn postpone_all(&mut self, kind: Kind, places: &Addresses, operand: &Repr) {
        self.out.postpones = true;
        let long = self.b.vec(self.int(64), self.width);
        let end = self.end_of_buffer();
        let places = match places {
            Addresses::Same(place) => vec![self.b.splat(*place, self.width); self.chunks() as usize],
            Addresses::Affine(..) | Addresses::Rows(..) | Addresses::ScaledIndex(_) | Addresses::Each(_) => {
                self.each(places)
            }
        };
        for (c, place) in (0..).zip(places) {
            let operand = match operand {
                Repr::Scalar(value) => self.b.splat(*value, self.width),
                Repr::Bases(chunks) | Repr::Chunks(chunks) => chunks[c as usize],
                Repr::Mask(_) | Repr::Number(_) | Repr::Narrow(_) | Repr::Kept(_) => {
                    unreachable!("ptxvm bug: an operand that was not read")
                }
            };
            let operand = if operand.ty() == long { operand } else { self.b.zext(operand, long) };
            let tagged = self.b.or(place, self.b.const_splat(long, tag(kind)));
            let entries = self.interleave(&[tagged, operand]);
            let offset = u64::from(c * self.width * ENTRY_BYTES);
            self.b.store(entries, self.b.offset(end, offset), 8);
        }
        self.hold(self.c32(self.lanes));
    }

    /// Lets the host perform the reductions if the buffer has no room for one more of each lane.
    pub(super) fn perform_if_full(&mut self) {
        let held = self.load32(offset_of!(Frame, held));
        let is_full = self.b.icmp(IntPred::Ugt, held, self.load32(offset_of!(Frame, full)));
        let (perform, done) =
            (self.b.append_block(self.function, "full"), self.b.append_block(self.function, "postponed"));
        self.b.cond_br(is_full, perform, done, Likely::No);
        self.b.position_at_end(perform);
        let user = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, user)), 8);
        self.b.call_host(self.b.fn_type(None, &[self.b.ptr()]), "perform", &[user]);
        self.b.br(done);
        self.b.position_at_end(done);
    }
}

/// The bits of an address that stand for a kind.
fn tag(kind: Kind) -> u64 {
    u64::from(kind.code()) << KIND_SHIFT
}
