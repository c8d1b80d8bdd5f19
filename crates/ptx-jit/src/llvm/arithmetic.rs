//! Instructions that compute values from values: integers, floating point, comparisons, conversions.

use llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMRealPredicate};

use super::api::call;
use super::builder::{Builder, NAMELESS};
use super::module::{Type, Value};

/// The relation of an integer comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IntPred {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less, unsigned.
    Ult,
    /// Less or equal, unsigned.
    Ule,
    /// Greater, unsigned.
    Ugt,
    /// Greater or equal, unsigned.
    Uge,
    /// Less, signed.
    Slt,
    /// Less or equal, signed.
    Sle,
    /// Greater, signed.
    Sgt,
    /// Greater or equal, signed.
    Sge,
}

/// The relation of a floating-point comparison; the unordered ones (`U..`) are also true if an operand is
/// NaN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FloatPred {
    /// Ordered and equal.
    Oeq,
    /// Ordered and not equal.
    One,
    /// Ordered and less.
    Olt,
    /// Ordered and less or equal.
    Ole,
    /// Ordered and greater.
    Ogt,
    /// Ordered and greater or equal.
    Oge,
    /// No operand is NaN.
    Ord,
    /// An operand is NaN.
    Uno,
    /// Unordered or equal.
    Ueq,
    /// Unordered or not equal.
    Une,
    /// Unordered or less.
    Ult,
    /// Unordered or less or equal.
    Ule,
    /// Unordered or greater.
    Ugt,
    /// Unordered or greater or equal.
    Uge,
}

impl IntPred {
    fn raw(self) -> LLVMIntPredicate {
        match self {
            IntPred::Eq => LLVMIntPredicate::LLVMIntEQ,
            IntPred::Ne => LLVMIntPredicate::LLVMIntNE,
            IntPred::Ult => LLVMIntPredicate::LLVMIntULT,
            IntPred::Ule => LLVMIntPredicate::LLVMIntULE,
            IntPred::Ugt => LLVMIntPredicate::LLVMIntUGT,
            IntPred::Uge => LLVMIntPredicate::LLVMIntUGE,
            IntPred::Slt => LLVMIntPredicate::LLVMIntSLT,
            IntPred::Sle => LLVMIntPredicate::LLVMIntSLE,
            IntPred::Sgt => LLVMIntPredicate::LLVMIntSGT,
            IntPred::Sge => LLVMIntPredicate::LLVMIntSGE,
        }
    }
}

impl FloatPred {
    fn raw(self) -> LLVMRealPredicate {
        match self {
            FloatPred::Oeq => LLVMRealPredicate::LLVMRealOEQ,
            FloatPred::One => LLVMRealPredicate::LLVMRealONE,
            FloatPred::Olt => LLVMRealPredicate::LLVMRealOLT,
            FloatPred::Ole => LLVMRealPredicate::LLVMRealOLE,
            FloatPred::Ogt => LLVMRealPredicate::LLVMRealOGT,
            FloatPred::Oge => LLVMRealPredicate::LLVMRealOGE,
            FloatPred::Ord => LLVMRealPredicate::LLVMRealORD,
            FloatPred::Uno => LLVMRealPredicate::LLVMRealUNO,
            FloatPred::Ueq => LLVMRealPredicate::LLVMRealUEQ,
            FloatPred::Une => LLVMRealPredicate::LLVMRealUNE,
            FloatPred::Ult => LLVMRealPredicate::LLVMRealULT,
            FloatPred::Ule => LLVMRealPredicate::LLVMRealULE,
            FloatPred::Ugt => LLVMRealPredicate::LLVMRealUGT,
            FloatPred::Uge => LLVMRealPredicate::LLVMRealUGE,
        }
    }
}

/// The bitwise operation by which two vectors of bits were combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bitwise {
    /// Bits that are one in both.
    And,
    /// Bits that are one in either.
    Or,
    /// Bits that are one in exactly one.
    Xor,
}

impl Value {
    /// The opcode, if the value is an instruction.
    pub(super) fn opcode(self) -> Option<LLVMOpcode> {
        let is = !call!(LLVMIsAInstruction(self.0)).is_null();
        is.then(|| call!(LLVMGetInstructionOpcode(self.0)))
    }

    pub(super) fn operand(self, number: u32) -> Value {
        Value(call!(LLVMGetOperand(self.0, number)))
    }

    /// The operation and the operands, if the value is a bitwise operation.
    fn joined(self) -> Option<(Bitwise, Value, Value)> {
        let how = match self.opcode()? {
            LLVMOpcode::LLVMAnd => Bitwise::And,
            LLVMOpcode::LLVMOr => Bitwise::Or,
            LLVMOpcode::LLVMXor => Bitwise::Xor,
            _ => return None,
        };
        Some((how, self.operand(0), self.operand(1)))
    }

    /// The operand of a bitcast that keeps the number of elements, if the value is one.
    pub(super) fn viewed(self) -> Option<Value> {
        let LLVMOpcode::LLVMBitCast = self.opcode()? else { return None };
        let of = self.operand(0);
        (of.ty().lanes() == self.ty().lanes()).then_some(of)
    }
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $opcode:ident;)*) => {
        impl Builder<'_> {
            $($(#[$doc])*
            pub(crate) fn $name(&self, a: Value, b: Value) -> Value {
                self.binary(LLVMOpcode::$opcode, a, b)
            })*
        }
    };
}

binary! {
    /// Sum, wrapping.
    add => LLVMAdd;
    /// Difference, wrapping.
    sub => LLVMSub;
    /// The low half of the product, wrapping.
    mul => LLVMMul;
    /// Shift left; **undefined if the amount is at least the width**.
    shl => LLVMShl;
    /// Unsigned shift right; **undefined if the amount is at least the width**.
    lshr => LLVMLShr;
    /// Signed shift right; **undefined if the amount is at least the width**.
    ashr => LLVMAShr;
    /// Quotient, unsigned; **undefined for a zero divisor**.
    udiv => LLVMUDiv;
    /// Remainder, unsigned; **undefined for a zero divisor**.
    urem => LLVMURem;
    /// Quotient, signed; **undefined for a zero divisor, and for the least number by -1**.
    sdiv => LLVMSDiv;
    /// Remainder, signed; **undefined for a zero divisor, and for the least number by -1**.
    srem => LLVMSRem;
    /// Sum, rounded to nearest even.
    fadd => LLVMFAdd;
    /// Difference, rounded to nearest even.
    fsub => LLVMFSub;
    /// Product, rounded to nearest even.
    fmul => LLVMFMul;
    /// Quotient, rounded to nearest even.
    fdiv => LLVMFDiv;
}

macro_rules! convert {
    ($($(#[$doc:meta])* $name:ident => $opcode:ident;)*) => {
        impl Builder<'_> {
            $($(#[$doc])*
            pub(crate) fn $name(&self, value: Value, to: Type) -> Value {
                self.convert(LLVMOpcode::$opcode, value, to)
            })*
        }
    };
}

convert! {
    /// A wider integer, unsigned.
    zext => LLVMZExt;
    /// A wider integer, signed.
    sext => LLVMSExt;
    /// The low bits of an integer.
    trunc => LLVMTrunc;
    /// The same bits as another type.
    bitcast => LLVMBitCast;
    /// A wider floating-point number.
    fpext => LLVMFPExt;
    /// A narrower floating-point number, rounded to nearest even.
    fptrunc => LLVMFPTrunc;
    /// A signed integer as floating point, rounded to nearest even.
    sitofp => LLVMSIToFP;
    /// An unsigned integer as floating point, rounded to nearest even.
    uitofp => LLVMUIToFP;
    /// Floating point to signed integer, truncating; **undefined out of range and for NaN**.
    fptosi => LLVMFPToSI;
    /// Floating point to unsigned integer, truncating; **undefined out of range and for NaN**.
    fptoui => LLVMFPToUI;
}

impl Builder<'_> {
    /// Bits that are one in both.
    pub(crate) fn and(&self, a: Value, b: Value) -> Value {
        self.bitwise(Bitwise::And, a, b)
    }

    /// Bits that are one in either.
    pub(crate) fn or(&self, a: Value, b: Value) -> Value {
        self.bitwise(Bitwise::Or, a, b)
    }

    /// Bits that are one in exactly one.
    pub(crate) fn xor(&self, a: Value, b: Value) -> Value {
        self.bitwise(Bitwise::Xor, a, b)
    }

    /// Combines two values bit by bit. Successive operations of a vector of bits with constants are folded
    /// into one.
    fn bitwise(&self, how: Bitwise, a: Value, b: Value) -> Value {
        let opcode = match how {
            Bitwise::And => LLVMOpcode::LLVMAnd,
            Bitwise::Or => LLVMOpcode::LLVMOr,
            Bitwise::Xor => LLVMOpcode::LLVMXor,
        };
        let (a, b) = if a.is_constant() { (b, a) } else { (a, b) };
        if a.is_constant() || !b.is_constant() || a.ty().element_bits() != 1 || !a.ty().is_vector() {
            return self.binary(opcode, a, b);
        }
        let (none, all) = (b.is_zero(), b.is(self.ones(b.ty())));
        match how {
            Bitwise::Or | Bitwise::Xor if none => return a,
            Bitwise::And if all => return a,
            Bitwise::And if none => return b,
            Bitwise::Or if all => return b,
            _ => {}
        }
        match a.joined() {
            Some((before, inner, constant)) if before == how && constant.is_constant() => {
                let constant = self.binary(opcode, constant, b);
                self.bitwise(how, inner, constant)
            }
            _ => self.binary(opcode, a, b),
        }
    }

    fn binary(&self, opcode: LLVMOpcode, a: Value, b: Value) -> Value {
        debug_assert_eq!(a.ty(), b.ty(), "an operation on two types: {}, {}", a.describe(), b.describe());
        use LLVMOpcode::{LLVMAdd, LLVMLShr, LLVMMul, LLVMShl, LLVMSub};
        // An operation that changes nothing would cost compile time later.
        match opcode {
            LLVMAdd | LLVMSub | LLVMShl | LLVMLShr if b.number() == Some(0) => a,
            LLVMMul if b.number() == Some(1) => a,
            _ => Value(call!(LLVMBuildBinOp(self.raw, opcode, a.0, b.0, NAMELESS))),
        }
    }

    fn convert(&self, opcode: LLVMOpcode, value: Value, to: Type) -> Value {
        if value.ty() == to {
            return value;
        }
        if let (LLVMOpcode::LLVMBitCast, Some(LLVMOpcode::LLVMBitCast)) = (opcode, value.opcode()) {
            return self.convert(opcode, value.operand(0), to);
        }
        Value(call!(LLVMBuildCast(self.raw, opcode, value.0, to.0, NAMELESS)))
    }

    /// The value with its sign flipped, also of NaN.
    pub(crate) fn fneg(&self, value: Value) -> Value {
        Value(call!(LLVMBuildFNeg(self.raw, value.0, NAMELESS)))
    }

    /// The value with all bits flipped.
    pub(crate) fn not(&self, value: Value) -> Value {
        let ones = self.ones(value.ty());
        self.xor(value, ones)
    }

    /// Zero minus the value.
    pub(crate) fn neg(&self, value: Value) -> Value {
        let zero = self.zero(value.ty());
        self.sub(zero, value)
    }

    /// Compares integers: one bit per element.
    pub(crate) fn icmp(&self, pred: IntPred, a: Value, b: Value) -> Value {
        debug_assert_eq!(a.ty(), b.ty(), "a comparison of two types: {}, {}", a.describe(), b.describe());
        Value(call!(LLVMBuildICmp(self.raw, pred.raw(), a.0, b.0, NAMELESS)))
    }

    /// Compares floating-point numbers: one bit per element.
    pub(crate) fn fcmp(&self, pred: FloatPred, a: Value, b: Value) -> Value {
        debug_assert_eq!(a.ty(), b.ty(), "a comparison of two types: {}, {}", a.describe(), b.describe());
        Value(call!(LLVMBuildFCmp(self.raw, pred.raw(), a.0, b.0, NAMELESS)))
    }

    /// The value; an arbitrary number if it was poison.
    pub(crate) fn freeze(&self, value: Value) -> Value {
        Value(call!(LLVMBuildFreeze(self.raw, value.0, NAMELESS)))
    }

    /// A pointer from an address.
    pub(crate) fn int_to_ptr(&self, address: Value) -> Value {
        let ty = self.like(address.ty(), self.ptr());
        self.convert(LLVMOpcode::LLVMIntToPtr, address, ty)
    }

    /// The address in a pointer.
    pub(crate) fn ptr_to_int(&self, pointer: Value) -> Value {
        let ty = self.like(pointer.ty(), self.int(64));
        self.convert(LLVMOpcode::LLVMPtrToInt, pointer, ty)
    }
}
