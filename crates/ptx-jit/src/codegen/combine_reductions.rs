//! Reduction combining: adds reductions of global memory to a small table first
//! ([`reduction_buffer`](crate::reduction_buffer) says when that is legal).
//!
//! Invariant: an entry holds an address and the operand to add there; an entry with address zero is empty.
//! Code that replaces an entry first performs the reduction that it held.

use super::Codegen;
use crate::frame::Frame;
use crate::llvm::{IntPred, Likely, Value};
use crate::reduction_buffer::{ENTRIES, Kind};
use crate::wir::access::Access;
use ptx::ir::Inst;
use ptx::isa::Space;
use std::mem::offset_of;

/// The table of the reduction buffer.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// The first entry.
    at: Value,
    kind: Kind,
}

impl Codegen<'_> {
    /// The kind of reduction that an atomic operation is combined as, if its old value is not read and it can
    /// be combined.
    pub(super) fn combined_reductions(&self, inst: &Inst, access: Access, wanted: bool) -> Option<Kind> {
        let kind = Kind::of_inst(inst)?;
        (self.facts.reductions == Some(kind) && access.space == Space::Global && !wanted).then_some(kind)
    }

    /// The condition that there is a table and that it still has credit, and the table. Charges the credit
    /// for the updates of all lanes.
    pub(super) fn table(&mut self, kind: Kind) -> (Value, Table) {
        self.out.postpones = true;
        let at = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, table)), 8);
        let credit = self.load64(offset_of!(Frame, credit));
        let some = self.b.icmp(IntPred::Ne, at, self.b.zero(self.b.ptr()));
        let worth = self.b.icmp(IntPred::Sge, credit, self.c64(0));
        // A quarter of the lanes may replace an entry before the credit falls.
        let more = self.b.add(credit, self.c64(u64::from(self.lanes) / 4));
        let more = self.b.select(worth, more, credit);
        self.store_field(offset_of!(Frame, credit), more);
        (self.b.and(some, worth), Table { at, kind })
    }

    /// Adds an operand to the entry of an address. `idle`: the identity of the operation. `combined`: emits
    /// the combination of two operands; `carry_out`: emits the reduction itself.
    pub(super) fn combine_reduction(
        &mut self,
        table: Table,
        place: Value,
        sum: Value,
        idle: u64,
        carry_out: impl FnOnce(&mut Self, Value, Value),
        combined: impl FnOnce(&Self, Value, Value) -> Value,
    ) {
        let (ty, long) = (sum.ty(), self.int(64));
        let bytes = ty.element_bits() / 8;
        let number = self.b.lshr(place, self.c64(bytes.trailing_zeros().into()));
        let number = self.b.and(number, self.c64(u64::from(ENTRIES) - 1));
        let entry = self.b.gep(table.at, self.b.shl(number, self.c64(4)));
        let held = self.b.offset(entry, 8);
        let block = |emit: &Self, name: &str| emit.b.append_block(emit.function, name);
        let (other, taken, free, kept) =
            (block(self, "other"), block(self, "taken"), block(self, "free"), block(self, "kept"));
        let tag = self.b.load(long, entry, 8);
        let same = self.b.icmp(IntPred::Eq, tag, place);
        self.b.cond_br(same, kept, other, Likely::Yes);
        self.b.position_at_end(other);
        let none = self.b.icmp(IntPred::Eq, tag, self.c64(0));
        self.b.cond_br(none, free, taken, Likely::Unknown);
        self.b.position_at_end(taken);
        let old = self.b.load(ty, held, bytes);
        let to = self.b.int_to_ptr(tag);
        carry_out(self, to, old);
        let credit = self.load64(offset_of!(Frame, credit));
        self.store_field(offset_of!(Frame, credit), self.b.sub(credit, self.c64(1)));
        self.b.br(free);
        self.b.position_at_end(free);
        self.b.store(place, entry, 8);
        self.b.store(self.b.const_int(ty, idle), held, bytes);
        self.store_field(offset_of!(Frame, held), self.c32(table.kind.0));
        self.b.br(kept);
        self.b.position_at_end(kept);
        let old = self.b.load(ty, held, bytes);
        let new = combined(self, old, sum);
        self.b.store(new, held, bytes);
    }
}
