//! A module under construction, and the handles of its parts.
//!
//! Invariant: a module has an LLVM context of its own, so it shares no state with other modules.

use crate::target::Target;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_uint};

use llvm_sys::analysis::LLVMVerifierFailureAction;
use llvm_sys::prelude::{LLVMBasicBlockRef, LLVMContextRef, LLVMModuleRef, LLVMTypeRef, LLVMValueRef};
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMLinkage, LLVMOpcode, LLVMTypeKind};

use super::api::{call, take_message};
use super::exit::Working;

/// A value: a constant, a parameter or the result of an instruction.
///
/// Invariant: outside of `llvm`, nothing of it can be read but its type, and two values cannot be compared. A
/// decision about code follows from WIR and from what code generation has recorded of its values, by numbers
/// of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value(pub(super) LLVMValueRef);

/// A type. Two types of one module are equal exactly if their handles are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Type(pub(super) LLVMTypeRef);

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block(pub(super) LLVMBasicBlockRef);

/// A function with its type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    pub(super) value: LLVMValueRef,
    pub(super) ty: LLVMTypeRef,
}

/// How a function treats subnormal numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flush {
    /// As any other numbers.
    Never,
    /// As zeros: MXCSR flushes them while the function runs, and constants are folded accordingly.
    Always,
}

impl Type {
    fn kind(self) -> LLVMTypeKind {
        call!(LLVMGetTypeKind(self.0))
    }

    /// The number of elements of a vector; 1 for other types.
    pub(crate) fn lanes(self) -> u32 {
        if self.is_vector() { call!(LLVMGetVectorSize(self.0)) } else { 1 }
    }

    /// Whether it is a vector.
    pub(crate) fn is_vector(self) -> bool {
        self.kind() == LLVMTypeKind::LLVMVectorTypeKind
    }

    /// The element type of a vector; other types are returned unchanged.
    pub(crate) fn element(self) -> Type {
        if self.is_vector() { Type(call!(LLVMGetElementType(self.0))) } else { self }
    }

    /// The width of an integer or floating-point type, or of one element of a vector.
    ///
    /// # Panics
    /// For pointers and other types without a width of their own, which is a bug of the caller.
    pub(crate) fn element_bits(self) -> u32 {
        let element = self.element();
        match element.kind() {
            LLVMTypeKind::LLVMIntegerTypeKind => call!(LLVMGetIntTypeWidth(element.0)),
            LLVMTypeKind::LLVMHalfTypeKind => 16,
            LLVMTypeKind::LLVMFloatTypeKind => 32,
            LLVMTypeKind::LLVMDoubleTypeKind => 64,
            kind => panic!("ptxvm bug: a type without a width ({})", kind as u32),
        }
    }

    /// Whether its elements are integers.
    pub(crate) fn is_int(self) -> bool {
        self.element().kind() == LLVMTypeKind::LLVMIntegerTypeKind
    }

    /// Whether its elements are half, single or double precision numbers.
    pub(crate) fn is_float(self) -> bool {
        matches!(
            self.element().kind(),
            LLVMTypeKind::LLVMHalfTypeKind
                | LLVMTypeKind::LLVMFloatTypeKind
                | LLVMTypeKind::LLVMDoubleTypeKind
        )
    }
}

impl Value {
    /// Its type.
    pub(crate) fn ty(self) -> Type {
        Type(call!(LLVMTypeOf(self.0)))
    }

    /// Whether both are one value.
    pub(super) fn is(self, other: Value) -> bool {
        self.0 == other.0
    }

    /// Its type as text, for messages about internal bugs.
    pub(super) fn describe(self) -> String {
        take_message(call!(LLVMPrintTypeToString(self.ty().0)))
    }

    /// Whether it is a constant.
    pub(super) fn is_constant(self) -> bool {
        call!(LLVMIsConstant(self.0)) != 0
    }

    /// The number, if the value is a constant integer of at most 64 bits.
    pub(super) fn number(self) -> Option<u64> {
        let plain = !self.ty().is_vector() && self.ty().is_int() && self.ty().element_bits() <= 64;
        let number = plain && !call!(LLVMIsAConstantInt(self.0)).is_null();
        number.then(|| call!(LLVMConstIntGetZExtValue(self.0)))
    }

    /// Whether it is the constant zero.
    pub(super) fn is_zero(self) -> bool {
        call!(LLVMIsNull(self.0)) != 0
    }
}

/// LLVM reports stack frames that are larger than this, in bytes. Chosen: every thread has that much stack.
pub(super) const FRAME_BYTES: u32 = 128 << 10;

/// A module with an LLVM context of its own, made for one machine by
/// [`Session::module`](super::Session::module).
pub(crate) struct Module {
    pub(super) raw: LLVMModuleRef,
    pub(super) context: LLVMContextRef,
    target: Target,
    /// Host functions and data that its functions refer to.
    pub(super) externals: RefCell<HashMap<String, Value>>,
    /// Dropped after the module. `None` if the process is ending; then code generation is abandoned soon.
    _working: Option<Working>,
}

impl Drop for Module {
    fn drop(&mut self) {
        call!(LLVMDisposeModule(self.raw));
        call!(LLVMContextDispose(self.context));
    }
}

impl Module {
    /// An empty module for that target.
    pub(super) fn new(name: &str, triple: &CString, layout: &CString, target: Target) -> Module {
        let working = Working::begin();
        let context = call!(LLVMContextCreate());
        let name = c_name(name);
        let raw = call!(LLVMModuleCreateWithNameInContext(name.as_ptr(), context));
        call!(LLVMSetTarget(raw, triple.as_ptr()));
        call!(LLVMSetDataLayout(raw, layout.as_ptr()));
        Module { raw, context, target, externals: RefCell::default(), _working: working.ok() }
    }

    /// The processor that code is generated for.
    pub(crate) fn target(&self) -> Target {
        self.target
    }

    /// A new external function without blocks: aligned to 64 bytes, `nounwind`, with the processor's full
    /// vector width.
    pub(crate) fn function(&self, name: &str, ty: Type, flush: Flush) -> Function {
        let name = c_name(name);
        let value = call!(LLVMAddFunction(self.raw, name.as_ptr(), ty.0));
        call!(LLVMSetAlignment(value, 64));
        let nounwind = call!(LLVMGetEnumAttributeKindForName(c"nounwind".as_ptr(), 8));
        let nounwind = call!(LLVMCreateEnumAttribute(self.context, nounwind, 0));
        call!(LLVMAddAttributeAtIndex(value, LLVMAttributeFunctionIndex, nounwind));
        let bits = self.target.level().vector_bits().to_string();
        self.attribute(value, "prefer-vector-width", &bits);
        self.attribute(value, "min-legal-vector-width", &bits);
        self.attribute(value, "warn-stack-size", &FRAME_BYTES.to_string());
        if flush == Flush::Always {
            self.attribute(value, "denormal-fp-math", "preserve-sign,preserve-sign");
        }
        Function { value, ty: ty.0 }
    }

    /// A function that only this module calls, as [`Module::function`] makes it, and whether it is new and
    /// has no blocks yet.
    pub(crate) fn internal_function(&self, name: &str, ty: Type, flush: Flush) -> (Function, bool) {
        let text = c_name(name);
        let known = call!(LLVMGetNamedFunction(self.raw, text.as_ptr()));
        if !known.is_null() {
            return (Function { value: known, ty: ty.0 }, false);
        }
        let function = self.function(name, ty, flush);
        call!(LLVMSetLinkage(function.value, LLVMLinkage::LLVMInternalLinkage));
        (function, true)
    }

    /// A function of the host, called through a pointer next to the code, since it may be at any distance.
    pub(super) fn external_function(&self, name: &str, ty: Type) -> Value {
        let name = c_name(name);
        let value = call!(LLVMAddFunction(self.raw, name.as_ptr(), ty.0));
        for kind in ["nonlazybind", "nounwind"] {
            let number = call!(LLVMGetEnumAttributeKindForName(kind.as_ptr().cast(), kind.len()));
            let attribute = call!(LLVMCreateEnumAttribute(self.context, number, 0));
            call!(LLVMAddAttributeAtIndex(value, LLVMAttributeFunctionIndex, attribute));
        }
        Value(value)
    }

    fn attribute(&self, function: LLVMValueRef, key: &str, text: &str) {
        let attribute = call!(LLVMCreateStringAttribute(
            self.context,
            key.as_ptr().cast(),
            length(key),
            text.as_ptr().cast(),
            length(text)
        ));
        call!(LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute));
    }

    /// Checks the rules of LLVM IR.
    ///
    /// # Errors
    /// A rule is broken; the text says which one and where.
    pub(crate) fn verify(&self) -> Result<(), String> {
        let mut message = std::ptr::null_mut();
        let action = LLVMVerifierFailureAction::LLVMReturnStatusAction;
        let broken = call!(LLVMVerifyModule(self.raw, action, &mut message));
        let text = take_message(message);
        if broken == 0 { Ok(()) } else { Err(text) }
    }

    /// The number of instructions of the largest function, without those that offset an address, which
    /// accesses include; counting stops at `most`.
    pub(super) fn instructions(&self, most: usize) -> usize {
        let mut largest = 0;
        let mut function = call!(LLVMGetFirstFunction(self.raw));
        while !function.is_null() {
            let mut count = 0;
            let mut block = call!(LLVMGetFirstBasicBlock(function));
            while !block.is_null() && count < most {
                let mut inst = call!(LLVMGetFirstInstruction(block));
                while !inst.is_null() {
                    let offsets = call!(LLVMGetInstructionOpcode(inst)) == LLVMOpcode::LLVMGetElementPtr;
                    count += usize::from(!offsets);
                    inst = call!(LLVMGetNextInstruction(inst));
                }
                block = call!(LLVMGetNextBasicBlock(block));
            }
            largest = largest.max(count);
            function = call!(LLVMGetNextFunction(function));
        }
        largest
    }

    /// The module as text.
    pub(crate) fn emit_ir(&self) -> String {
        take_message(call!(LLVMPrintModuleToString(self.raw)))
    }
}

/// A name as a C string. Names are our own and contain no zero byte.
pub(super) fn c_name(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

/// A length in LLVM's type.
pub(super) fn length(text: &str) -> c_uint {
    c_uint::try_from(text.len()).unwrap_or(c_uint::MAX)
}
