//! Instructions from values to values: integers, floating point, comparisons, conversions.

use llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMRealPredicate};

use super::api::call;
use super::builder::{Builder, NAMELESS};
use super::module::{Type, Value};

/// How integers are compared.
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

/// How floating-point numbers are compared; the unordered ones (`U..`) are also true if one is NaN.
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
    /// Neither is NaN.
    Ord,
    /// One is NaN.
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
    /// Product, its low half.
    mul => LLVMMul;
    /// Bitwise and.
    and => LLVMAnd;
    /// Bitwise or.
    or => LLVMOr;
    /// Bitwise exclusive or.
    xor => LLVMXor;
    /// Shift left; **undefined from the width on**.
    shl => LLVMShl;
    /// Shift right, unsigned; **undefined from the width on**.
    lshr => LLVMLShr;
    /// Shift right, signed; **undefined from the width on**.
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
    /// Floating point as signed integer towards zero; **undefined out of range and for NaN**.
    fptosi => LLVMFPToSI;
    /// Floating point as unsigned integer towards zero; **undefined out of range and for NaN**.
    fptoui => LLVMFPToUI;
}

impl Builder<'_> {
    fn binary(&self, opcode: LLVMOpcode, a: Value, b: Value) -> Value {
        debug_assert_eq!(a.ty(), b.ty(), "an operation on two types: {}, {}", a.describe(), b.describe());
        Value(call!(LLVMBuildBinOp(self.raw, opcode, a.0, b.0, NAMELESS)))
    }

    fn convert(&self, opcode: LLVMOpcode, value: Value, to: Type) -> Value {
        if value.ty() == to {
            return value;
        }
        Value(call!(LLVMBuildCast(self.raw, opcode, value.0, to.0, NAMELESS)))
    }

    /// The sign flipped, also of NaN.
    pub(crate) fn fneg(&self, value: Value) -> Value {
        Value(call!(LLVMBuildFNeg(self.raw, value.0, NAMELESS)))
    }

    /// All bits flipped.
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

    /// `yes` where the condition is one, else `no`. A scalar condition may choose between vectors.
    pub(crate) fn select(&self, condition: Value, yes: Value, no: Value) -> Value {
        debug_assert_eq!(yes.ty(), no.ty(), "a choice of two types: {}, {}", yes.describe(), no.describe());
        Value(call!(LLVMBuildSelect(self.raw, condition.0, yes.0, no.0, NAMELESS)))
    }

    /// A number that is not poison.
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
