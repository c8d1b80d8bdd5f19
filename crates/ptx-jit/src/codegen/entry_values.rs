//! The values that a function begins with: what it loads from its frame, and its stack memory.
//!
//! Invariant: they are emitted in the first blocks of the function, which dominate all others.

use super::cta_loop::Shared;
use super::mask::Mask;
use super::ordering::Interval;
use super::scalar_threads::Thread;
use super::{Codegen, Repr};
use crate::frame::Frame;
use crate::llvm::Value;
use crate::wir::Kind;
use std::cell::OnceCell;
use std::mem::offset_of;

/// The values that a function begins with.
pub(super) struct EntryValues {
    /// The frame of the call.
    pub(super) frame: Value,
    /// The register arrays of the frame, by class.
    pub(super) regs: [Value; 4],
    /// The lanes that this call owns: those of a warp, also within a CTA.
    pub(super) own: Value,
    /// The same lanes, once they have been read as a mask.
    pub(super) own_mask: OnceCell<Mask>,
    /// Lanes that are live at the entry.
    pub(super) live: Value,
    /// Of scalar code: the thread that executes.
    pub(super) thread: Option<Thread>,
    /// The values of code that executes CTAs.
    pub(super) shared_cta: Option<Shared>,
    /// The address of the parameters.
    pub(super) params: Value,
    /// Address and size of the CTA's shared memory.
    pub(super) shared: [Value; 2],
    /// The distance from memory to its shadow, if the code checks whether loaded bytes are defined.
    pub(super) shadow: Value,
    /// The current interval, if the code compares accesses with stamps.
    pub(super) interval: Option<Interval>,
    /// Stack memory for values that go through memory.
    pub(super) scratch: Option<Value>,
    /// Stack memory that inactive lanes may access.
    pub(super) spare: Value,
}

impl EntryValues {
    /// Before the function begins: with a zero of 64 bits for what is not loaded yet.
    pub(super) fn new(frame: Value, zero: Value) -> Self {
        Self {
            frame,
            regs: [frame; 4],
            own: zero,
            own_mask: OnceCell::new(),
            live: zero,
            thread: None,
            shared_cta: None,
            params: zero,
            shared: [zero; 2],
            shadow: zero,
            interval: None,
            scratch: None,
            spare: frame,
        }
    }
}

impl Codegen<'_> {
    /// A field of the frame.
    pub(super) fn field(&self, offset: usize) -> Value {
        self.b.offset(self.entry.frame, offset as u64)
    }

    pub(super) fn load32(&self, offset: usize) -> Value {
        self.b.load(self.int(32), self.field(offset), 4)
    }

    pub(super) fn load64(&self, offset: usize) -> Value {
        self.b.load(self.int(64), self.field(offset), 8)
    }

    pub(super) fn store_field(&self, offset: usize, value: Value) {
        let bytes = value.ty().element_bits() / 8;
        self.b.store(value, self.field(offset), bytes);
    }

    pub(super) fn start(&mut self) {
        let load = |emit: &Self, offset| emit.b.load(emit.b.ptr(), emit.field(offset), 8);
        self.entry.regs = [
            load(self, offset_of!(Frame, pred)),
            load(self, offset_of!(Frame, r16)),
            load(self, offset_of!(Frame, r32)),
            load(self, offset_of!(Frame, r64)),
        ];
        self.entry.params = self.load64(offset_of!(Frame, params));
        self.entry.shared =
            [self.load64(offset_of!(Frame, shared)), self.load64(offset_of!(Frame, shared) + 8)];
        if self.job.defined {
            self.entry.shadow = self.load64(offset_of!(Frame, shadow));
        }
        let zeros = self.job.func.zeros.clone();
        for zero in zeros {
            let rep = match self.kind(zero) {
                Kind::Mask => Repr::Mask(self.no_lane()),
                kind @ (Kind::Reg(_) | Kind::Count) => Repr::Scalar(self.b.zero(self.scalar_type(kind))),
            };
            self.values.define(zero, rep);
        }
        // Stack memory for values that go through memory; the block that allocates it must dominate all uses.
        self.b.position_at_end(self.passes.chunk_loops.rooms);
        let place = self.b.alloca(self.b.vec(self.int(64), 5 * self.lanes), 64);
        self.entry.scratch = Some(place);
        // As many words as the longest vector of an access has.
        const SPARE_WORDS: u32 = 32;
        self.entry.spare = self.b.alloca(self.b.vec(self.int(64), SPARE_WORDS), 64);
        self.b.position_at_end(self.flow.head);
    }
}
