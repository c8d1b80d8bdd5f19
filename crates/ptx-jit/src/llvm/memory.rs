//! Loads, stores, atomics and addresses. Every access states its alignment; no access states anything about
//! aliasing.

use llvm_sys::{LLVMAtomicOrdering, LLVMAtomicRMWBinOp, LLVMInlineAsmDialect};

use super::api::{call, llvm_bool};
use super::builder::{Builder, NAMELESS};
use super::module::{Type, Value};

/// The memory order of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ordering {
    /// A data race is defined, without any order.
    Unordered,
    /// One order for each location.
    Monotonic,
    /// Later accesses are not reordered before it.
    Acquire,
    /// Earlier accesses are not reordered after it.
    Release,
    /// Acquire and release.
    AcquireRelease,
    /// One total order.
    SequentiallyConsistent,
}

/// The operation of an atomic update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AtomicOp {
    /// Exchange.
    Xchg,
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Maximum, signed.
    Max,
    /// Minimum, signed.
    Min,
    /// Maximum, unsigned.
    Umax,
    /// Minimum, unsigned.
    Umin,
}

impl Ordering {
    fn raw(self) -> LLVMAtomicOrdering {
        match self {
            Ordering::Unordered => LLVMAtomicOrdering::LLVMAtomicOrderingUnordered,
            Ordering::Monotonic => LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
            Ordering::Acquire => LLVMAtomicOrdering::LLVMAtomicOrderingAcquire,
            Ordering::Release => LLVMAtomicOrdering::LLVMAtomicOrderingRelease,
            Ordering::AcquireRelease => LLVMAtomicOrdering::LLVMAtomicOrderingAcquireRelease,
            Ordering::SequentiallyConsistent => LLVMAtomicOrdering::LLVMAtomicOrderingSequentiallyConsistent,
        }
    }
}

impl AtomicOp {
    fn raw(self) -> LLVMAtomicRMWBinOp {
        match self {
            AtomicOp::Xchg => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpXchg,
            AtomicOp::Add => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAdd,
            AtomicOp::Sub => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpSub,
            AtomicOp::And => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAnd,
            AtomicOp::Or => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpOr,
            AtomicOp::Xor => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpXor,
            AtomicOp::Max => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpMax,
            AtomicOp::Min => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpMin,
            AtomicOp::Umax => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUMax,
            AtomicOp::Umin => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUMin,
        }
    }
}

impl Builder<'_> {
    /// Memory on the stack; it is allocated once if the instruction is in the entry block.
    pub(crate) fn alloca(&self, ty: Type, align: u32) -> Value {
        let place = call!(LLVMBuildAlloca(self.raw, ty.0, NAMELESS));
        call!(LLVMSetAlignment(place, align));
        Value(place)
    }

    /// Loads a value.
    pub(crate) fn load(&self, ty: Type, pointer: Value, align: u32) -> Value {
        let load = call!(LLVMBuildLoad2(self.raw, ty.0, pointer.0, NAMELESS));
        call!(LLVMSetAlignment(load, align));
        Value(load)
    }

    /// Stores a value.
    pub(crate) fn store(&self, value: Value, pointer: Value, align: u32) {
        let store = call!(LLVMBuildStore(self.raw, value.0, pointer.0));
        call!(LLVMSetAlignment(store, align));
    }

    /// Loads a value that another thread may write at the same time; never merged, split or removed.
    pub(crate) fn load_volatile(&self, ty: Type, pointer: Value, align: u32) -> Value {
        let load = self.load(ty, pointer, align);
        call!(LLVMSetVolatile(load.0, llvm_bool(true)));
        load
    }

    /// Stores a value that another thread may read at the same time; never merged, split or removed.
    pub(crate) fn store_volatile(&self, value: Value, pointer: Value, align: u32) {
        let store = call!(LLVMBuildStore(self.raw, value.0, pointer.0));
        call!(LLVMSetAlignment(store, align));
        call!(LLVMSetVolatile(store, llvm_bool(true)));
    }

    /// Loads a scalar atomically; the alignment must be its size.
    pub(crate) fn load_atomic(&self, ty: Type, pointer: Value, align: u32, ordering: Ordering) -> Value {
        let load = self.load(ty, pointer, align);
        call!(LLVMSetOrdering(load.0, ordering.raw()));
        load
    }

    /// Stores a scalar atomically; the alignment must be its size.
    pub(crate) fn store_atomic(&self, value: Value, pointer: Value, align: u32, ordering: Ordering) {
        let store = call!(LLVMBuildStore(self.raw, value.0, pointer.0));
        call!(LLVMSetAlignment(store, align));
        call!(LLVMSetOrdering(store, ordering.raw()));
    }

    /// A fence between earlier and later accesses.
    /// Keeps LLVM from moving loads and stores over this place. There is no instruction for it.
    pub(crate) fn scheduling_barrier(&self) {
        call!(LLVMBuildFence(self.raw, Ordering::AcquireRelease.raw(), llvm_bool(true), NAMELESS));
    }

    pub(crate) fn fence(&self, ordering: Ordering) {
        call!(LLVMBuildFence(self.raw, ordering.raw(), 0, NAMELESS));
    }

    /// Updates memory atomically. Returns the old value.
    pub(crate) fn atomicrmw(&self, op: AtomicOp, pointer: Value, value: Value, ordering: Ordering) -> Value {
        Value(call!(LLVMBuildAtomicRMW(self.raw, op.raw(), pointer.0, value.0, ordering.raw(), 0)))
    }

    /// Stores `new` if the memory holds `expected`. Returns the old value, and whether it was stored (one
    /// bit).
    pub(crate) fn cmpxchg(
        &self,
        pointer: Value,
        expected: Value,
        new: Value,
        ordering: Ordering,
    ) -> (Value, Value) {
        let failure = match ordering {
            Ordering::Unordered | Ordering::Monotonic | Ordering::Release => Ordering::Monotonic,
            Ordering::Acquire | Ordering::AcquireRelease => Ordering::Acquire,
            Ordering::SequentiallyConsistent => Ordering::SequentiallyConsistent,
        };
        let pair = call!(LLVMBuildAtomicCmpXchg(
            self.raw,
            pointer.0,
            expected.0,
            new.0,
            ordering.raw(),
            failure.raw(),
            0
        ));
        let old = Value(call!(LLVMBuildExtractValue(self.raw, pair, 0, NAMELESS)));
        let stored = Value(call!(LLVMBuildExtractValue(self.raw, pair, 1, NAMELESS)));
        (old, stored)
    }

    /// Member `index` of a structure, such as some intrinsics return.
    pub(crate) fn member(&self, structure: Value, index: u32) -> Value {
        Value(call!(LLVMBuildExtractValue(self.raw, structure.0, index, NAMELESS)))
    }

    /// Prefetches the line of an address into a cache (3: the first level) next to the computation of a
    /// vector, and returns that vector. LLVM sees no memory access, so the prefetch blocks no reordering; it
    /// stays between the computation of the vector and the uses of the result.
    ///
    /// Only if [`Builder::ASKS_BESIDE`] is true.
    pub(crate) fn ask_beside(&self, vector: Value, address: Value, cache: u32) -> Value {
        let text = match cache {
            3 => c"prefetcht0 ($1)",
            2 => c"prefetcht1 ($1)",
            1 => c"prefetcht2 ($1)",
            _ => c"prefetchnta ($1)",
        };
        // The result is the vector, in the same register.
        let places = c"=v,r,0";
        let ty = self.fn_type(Some(vector.ty()), &[address.ty(), vector.ty()]);
        let (no, dialect) = (llvm_bool(false), LLVMInlineAsmDialect::LLVMInlineAsmDialectATT);
        let [text_len, places_len] = [text, places].map(|text| text.to_bytes().len());
        let asm = call!(LLVMGetInlineAsm(
            ty.0,
            text.as_ptr(),
            text_len,
            places.as_ptr(),
            places_len,
            no,
            no,
            dialect,
            no
        ));
        self.call(ty, Value(asm), &[address, vector])
    }

    /// Whether [`Builder::ask_beside`] is available.
    pub(crate) const ASKS_BESIDE: bool = cfg!(target_arch = "x86_64");

    /// A pointer, or a vector of pointers, plus a number of bytes: `i32` (signed) or `i64`.
    pub(crate) fn gep(&self, pointer: Value, offset: Value) -> Value {
        let mut offset = offset.0;
        Value(call!(LLVMBuildGEP2(self.raw, self.int(8).0, pointer.0, &mut offset, 1, NAMELESS)))
    }

    /// Pointers plus a signed number of elements of a type.
    pub(crate) fn gep_of(&self, element: Type, pointer: Value, index: Value) -> Value {
        let mut index = index.0;
        Value(call!(LLVMBuildGEP2(self.raw, element.0, pointer.0, &mut index, 1, NAMELESS)))
    }

    /// A pointer plus a constant number of bytes.
    pub(crate) fn offset(&self, pointer: Value, bytes: u64) -> Value {
        if bytes == 0 {
            return pointer;
        }
        let offset = self.const_int(self.int(64), bytes);
        self.gep(pointer, offset)
    }

    /// Loads the elements whose bit in `mask` is one; the others are those of `other`, and their memory is
    /// not accessed.
    pub(crate) fn masked_load(&self, pointer: Value, align: u32, mask: Value, other: Value) -> Value {
        let types = [other.ty(), self.ptr()];
        let load = self.intrinsic("llvm.masked.load", &types, &[pointer, mask, other]);
        self.align_argument(load, 1, align);
        load
    }

    /// Stores the elements whose bit in `mask` is one.
    pub(crate) fn masked_store(&self, value: Value, pointer: Value, align: u32, mask: Value) {
        let types = [value.ty(), self.ptr()];
        let store = self.intrinsic("llvm.masked.store", &types, &[value, pointer, mask]);
        self.align_argument(store, 2, align);
    }

    /// Loads each element whose bit in `mask` is one from its own pointer; the others are those of `other`.
    pub(crate) fn gather(&self, pointers: Value, align: u32, mask: Value, other: Value) -> Value {
        let types = [other.ty(), pointers.ty()];
        let gather = self.intrinsic("llvm.masked.gather", &types, &[pointers, mask, other]);
        self.align_argument(gather, 1, align);
        gather
    }

    /// Stores each element whose bit in `mask` is one to its own pointer, in the order of the elements.
    pub(crate) fn scatter(&self, value: Value, pointers: Value, align: u32, mask: Value) {
        let types = [value.ty(), pointers.ty()];
        let scatter = self.intrinsic("llvm.masked.scatter", &types, &[value, pointers, mask]);
        self.align_argument(scatter, 2, align);
    }

    /// Sets the alignment of argument `index` (from 1) of a call.
    fn align_argument(&self, call: Value, index: u32, align: u32) {
        let kind = call!(LLVMGetEnumAttributeKindForName(c"align".as_ptr(), 5));
        let attribute = call!(LLVMCreateEnumAttribute(self.module.context, kind, u64::from(align)));
        call!(LLVMAddCallSiteAttribute(call.0, index, attribute));
    }
}
