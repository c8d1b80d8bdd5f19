//! Selects between values, with workarounds for two bugs of LLVM 22's code generator.
//!
//! Random programs found both bugs, and each has a file in `tests/agree`:
//! * A select between masks by a constant becomes a shuffle. A shuffle that leaves the lower half of a mask
//!   becomes a move of that half, which the register allocator takes for a copy of the whole mask
//!   (`halves_of_masks`).
//! * A selection by bits, `a & c | b & !c`, in which some lanes keep `a` or `b`, becomes one ternary
//!   operation under a mask, with its operands in another order than its truth table assumes
//!   (`bits_of_two_where_one_stays`). An operand that may become part of one is put behind a fence: the fence
//!   is no machine instruction, and LLVM combines nothing across it.
//!
//! Invariant: a fence returns its operand unchanged.

use crate::target::Level;
use llvm_sys::LLVMOpcode;

use super::api::call;
use super::builder::{Builder, NAMELESS};
use super::module::Value;

/// How many operands deep the value that lanes keep is looked for. Chosen: a bit field of a value is made by
/// a shift, a mask and a change of width.
const DEPTH: u32 = 3;

impl Builder<'_> {
    /// `yes` if the condition is one, else `no`. A scalar condition may select between vectors.
    pub(crate) fn select(&self, condition: Value, yes: Value, no: Value) -> Value {
        debug_assert_eq!(yes.ty(), no.ty(), "a choice of two types: {}, {}", yes.describe(), no.describe());
        if condition.is_constant() && condition.ty() == yes.ty() && yes.ty().is_vector() {
            return self.or(self.and(condition, yes), self.and(self.not(condition), no));
        }
        let fenced = |value: Value, other: Value| {
            let may = condition.ty().is_vector() && self.module.target().level() == Level::Avx512;
            if may && value.may_choose_bits(other) { self.opaque(value) } else { value }
        };
        let (yes, no) = (fenced(yes, no), fenced(no, yes));
        Value(call!(LLVMBuildSelect(self.raw, condition.0, yes.0, no.0, NAMELESS)))
    }

    /// The vector behind a fence that the code generator does not look through, if its elements have 32 or 64
    /// bits; any other value unchanged.
    pub(crate) fn opaque(&self, value: Value) -> Value {
        let ty = value.ty();
        let number = match (ty.is_vector() && (ty.is_int() || ty.is_float())).then(|| ty.element_bits()) {
            Some(32) => self.like(ty, self.f32()),
            Some(64) => self.like(ty, self.f64()),
            _ => return value,
        };
        let fenced = self.intrinsic("llvm.arithmetic.fence", &[number], &[self.bitcast(value, number)]);
        self.bitcast(fenced, ty)
    }
}

impl Value {
    /// The operand of a bitcast that keeps the number of elements; any other value unchanged.
    fn bare(self) -> Value {
        self.viewed().map_or(self, Value::bare)
    }

    /// Whether the value may become a selection by bits in which some lanes keep `other`.
    fn may_choose_bits(self, other: Value) -> bool {
        let value = self.bare();
        let joins =
            matches!(value.opcode(), Some(LLVMOpcode::LLVMOr | LLVMOpcode::LLVMXor | LLVMOpcode::LLVMAdd));
        let field = |part: Value| {
            let (part, other) = (part.bare(), other.bare());
            part.is_masked() || !part.is(other) && part.is_bits_of(other, DEPTH)
        };
        joins && [0, 1].into_iter().any(|number| field(value.operand(number)))
    }

    /// Whether the value is a bitwise and with a constant.
    fn is_masked(self) -> bool {
        self.opcode() == Some(LLVMOpcode::LLVMAnd)
            && [0, 1].into_iter().any(|n| self.operand(n).is_constant())
    }

    /// Whether the value is `other`, or some of its bits.
    fn is_bits_of(self, other: Value, depth: u32) -> bool {
        use LLVMOpcode::{
            LLVMAnd, LLVMBitCast, LLVMLShr, LLVMOr, LLVMSExt, LLVMShl, LLVMTrunc, LLVMXor, LLVMZExt,
        };
        let operands = match self.opcode() {
            _ if self.is(other) => return true,
            _ if depth == 0 => return false,
            Some(LLVMAnd | LLVMOr | LLVMXor | LLVMShl | LLVMLShr) => 2,
            Some(LLVMTrunc | LLVMZExt | LLVMSExt | LLVMBitCast) => 1,
            _ => return false,
        };
        (0..operands).any(|number| self.operand(number).is_bits_of(other, depth - 1))
    }
}
