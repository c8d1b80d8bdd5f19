//! Masked accesses, on processors with instructions for them and without.
//!
//! On a processor without such instructions LLVM would branch around each lane. Here inactive lanes access a
//! dummy location on the stack instead, so that no branch is needed: this compiles faster, and is faster
//! unless nearly all lanes are inactive.
//!
//! Without AVX-512, a masked store of consecutive elements is slow (on a Zen 3, 13 cycles), or there is none.
//! In shared and local memory a load, a blend and a store replace it: only one OS thread accesses a window at
//! a time, and the window has margins on both sides that are longer than a vector.
//!
//! Invariant: inactive lanes access no memory but the dummy location, which nothing reads, and in shared and
//! local memory the bytes beside an active lane, which keep their values.

use super::Codegen;
use crate::llvm::Value;
use crate::target::Level;
use crate::tuning::MASKED_LANE_OPS;
use ptx::isa::Space;

impl Codegen<'_> {
    /// Whether the processor has masked loads and stores of consecutive elements of that many bits.
    fn masks_rows(&self, bits: u32) -> bool {
        match self.env.target.level() {
            Level::Avx512 => true,
            Level::Avx2 => bits >= 32,
            Level::Baseline => false,
        }
    }

    /// Whether elements beside an active lane may be loaded, and stored as they are.
    fn has_margins(&self, space: Space) -> bool {
        matches!(space, Space::Shared | Space::Local) && self.env.target.level() != Level::Avx512
    }

    /// The pointer if a lane is active, and else one to a dummy location.
    fn if_any(&self, pointer: Value, mask: Value) -> Value {
        self.b.select(self.any(mask), pointer, self.entry.spare)
    }

    /// Whether the processor has gathers and scatters of elements of that many bits.
    fn masks_places(&self, bits: u32) -> bool {
        self.env.target.level() == Level::Avx512 && bits >= 32
    }

    /// Loads the elements whose bit in `mask` is one; the others are those of `other`.
    pub(super) fn masked_load(
        &self,
        space: Space,
        pointer: Value,
        align: u32,
        mask: Value,
        other: Value,
    ) -> Value {
        if self.masks_rows(other.ty().element_bits()) {
            return self.b.masked_load(pointer, align, mask, other);
        }
        if self.has_margins(space) {
            let loaded = self.b.load(other.ty(), self.if_any(pointer, mask), align);
            return self.b.select(mask, loaded, other);
        }
        self.masked_gather(self.row_of(other, pointer), align, Some(mask), other)
    }

    /// Stores the elements whose bit in `mask` is one.
    pub(super) fn masked_store(&self, space: Space, value: Value, pointer: Value, align: u32, mask: Value) {
        if self.has_margins(space) {
            let pointer = self.if_any(pointer, mask);
            let old = self.b.load(value.ty(), pointer, align);
            return self.b.store(self.b.select(mask, value, old), pointer, align);
        }
        if self.masks_rows(value.ty().element_bits()) {
            return self.b.masked_store(value, pointer, align, mask);
        }
        self.masked_scatter(value, self.row_of(value, pointer), align, Some(mask));
    }

    /// Loads each element whose bit in `mask` is one (`None`: all) from its own pointer; the others are those
    /// of `other`.
    pub(super) fn masked_gather(
        &self,
        pointers: Value,
        align: u32,
        mask: Option<Value>,
        other: Value,
    ) -> Value {
        let all = self.b.ones(self.b.like(other.ty(), self.int(1)));
        if self.masks_places(other.ty().element_bits()) {
            return self.b.gather(pointers, align, mask.unwrap_or(all), other);
        }
        self.position
            .scalarized_cost
            .set(self.position.scalarized_cost.get() + MASKED_LANE_OPS * all.ty().lanes());
        let Some(mask) = mask else { return self.b.gather(pointers, align, all, other) };
        let pointers = self.or_spare(pointers, mask);
        let loaded = self.b.gather(pointers, align, all, other);
        self.b.select(mask, loaded, other)
    }

    /// Stores each element whose bit in `mask` is one (`None`: all) to its own pointer, in the order of the
    /// elements.
    pub(super) fn masked_scatter(&self, value: Value, pointers: Value, align: u32, mask: Option<Value>) {
        let all = self.b.ones(self.b.like(value.ty(), self.int(1)));
        if self.masks_places(value.ty().element_bits()) {
            return self.b.scatter(value, pointers, align, mask.unwrap_or(all));
        }
        self.position
            .scalarized_cost
            .set(self.position.scalarized_cost.get() + MASKED_LANE_OPS * all.ty().lanes());
        let pointers = mask.map_or(pointers, |mask| self.or_spare(pointers, mask));
        self.b.scatter(value, pointers, align, all);
    }

    /// Pointers to consecutive elements with the types of `like`.
    fn row_of(&self, like: Value, pointer: Value) -> Value {
        let element = like.ty().element_bits() / 8;
        let offsets: Vec<u64> = (0..like.ty().lanes()).map(|at| u64::from(at * element)).collect();
        self.b.gep(pointer, self.b.const_ints(self.int(32), &offsets))
    }

    /// The pointers of active lanes; for inactive lanes, a pointer to the dummy location.
    pub(super) fn or_spare(&self, pointers: Value, mask: Value) -> Value {
        let spare = self.b.splat(self.entry.spare, mask.ty().lanes());
        self.b.select(mask, pointers, spare)
    }
}
