//! The builder: types, constants, and elements of vectors. Operations are in
//! [`arithmetic`](super::arithmetic), memory accesses in [`memory`](super::memory), branches in
//! [`control`](super::control).

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_char, c_uint};

use llvm_sys::prelude::{LLVMBuilderRef, LLVMTypeRef, LLVMValueRef};

use super::api::call;
use super::module::{Function, Module, Type, Value, c_name, length};

/// The empty name that results have.
pub(super) const NAMELESS: *const c_char = c"".as_ptr();

/// Appends instructions to blocks of one module. Each method is named like the instruction it makes.
pub(crate) struct Builder<'m> {
    pub(super) module: &'m Module,
    pub(super) raw: LLVMBuilderRef,
    pub(super) profile_kind: c_uint,
    intrinsics: RefCell<HashMap<Overload, Function>>,
    /// Dot products; the first operand of each is the sum that it adds to.
    pub(super) dots: RefCell<Vec<Value>>,
}

/// An intrinsic's number and the types it is overloaded on.
type Overload = (c_uint, Vec<Type>);

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        call!(LLVMDisposeBuilder(self.raw));
    }
}

impl<'m> Builder<'m> {
    /// A builder without a position.
    pub(crate) fn new(module: &'m Module) -> Builder<'m> {
        let raw = call!(LLVMCreateBuilderInContext(module.context));
        let profile_kind = call!(LLVMGetMDKindIDInContext(module.context, c"prof".as_ptr(), 4));
        Builder { module, raw, profile_kind, intrinsics: RefCell::default(), dots: RefCell::default() }
    }

    /// The module it builds in.
    pub(crate) fn module(&self) -> &'m Module {
        self.module
    }

    /// The integer type of that many bits.
    pub(crate) fn int(&self, bits: u32) -> Type {
        Type(call!(LLVMIntTypeInContext(self.module.context, bits)))
    }

    /// Half precision.
    pub(crate) fn f16(&self) -> Type {
        Type(call!(LLVMHalfTypeInContext(self.module.context)))
    }

    /// Single precision.
    pub(crate) fn f32(&self) -> Type {
        Type(call!(LLVMFloatTypeInContext(self.module.context)))
    }

    /// Double precision.
    pub(crate) fn f64(&self) -> Type {
        Type(call!(LLVMDoubleTypeInContext(self.module.context)))
    }

    /// A pointer into the process.
    pub(crate) fn ptr(&self) -> Type {
        Type(call!(LLVMPointerTypeInContext(self.module.context, 0)))
    }

    /// A vector of `lanes` elements, or the element type itself if `lanes` is 1.
    pub(crate) fn vec(&self, element: Type, lanes: u32) -> Type {
        if lanes == 1 { element } else { Type(call!(LLVMVectorType(element.0, lanes))) }
    }

    /// The type with as many elements as `shape`, each an `element`.
    pub(crate) fn like(&self, shape: Type, element: Type) -> Type {
        self.vec(element, shape.lanes())
    }

    /// A function's type; `None` returns nothing.
    pub(crate) fn fn_type(&self, result: Option<Type>, params: &[Type]) -> Type {
        let result = match result {
            Some(ty) => ty.0,
            None => call!(LLVMVoidTypeInContext(self.module.context)),
        };
        let mut params: Vec<LLVMTypeRef> = params.iter().map(|ty| ty.0).collect();
        Type(call!(LLVMFunctionType(result, params.as_mut_ptr(), count(params.len()), 0)))
    }

    /// The type of a value.
    pub(crate) fn type_of(&self, value: Value) -> Type {
        value.ty()
    }

    /// An integer constant (its low bits), in every element of a vector type.
    pub(crate) fn const_int(&self, ty: Type, bits: u64) -> Value {
        let element = ty.element();
        debug_assert!(element.is_int(), "an integer constant of a type that is none");
        let width = element.element_bits();
        let bits = if width >= 64 { bits } else { bits & ((1 << width) - 1) };
        let scalar = Value(call!(LLVMConstInt(element.0, bits, 0)));
        if !ty.is_vector() {
            return scalar;
        }
        self.const_vec(&vec![scalar; ty.lanes() as usize])
    }

    /// A constant given as bits, in every element of an integer or floating-point type.
    pub(crate) fn const_splat(&self, ty: Type, bits: u64) -> Value {
        if ty.is_int() {
            return self.const_int(ty, bits);
        }
        let integer = self.const_int(self.like(ty, self.int(ty.element_bits())), bits);
        self.bitcast(integer, ty)
    }

    /// A single precision constant.
    pub(crate) fn const_f32(&self, value: f32) -> Value {
        self.const_splat(self.f32(), u64::from(value.to_bits()))
    }

    /// A double precision constant.
    pub(crate) fn const_f64(&self, value: f64) -> Value {
        self.const_splat(self.f64(), value.to_bits())
    }

    /// A vector of constants.
    pub(crate) fn const_vec(&self, elements: &[Value]) -> Value {
        debug_assert!(elements.iter().all(|e| e.is_constant()), "a constant vector of values that are none");
        let mut elements: Vec<LLVMValueRef> = elements.iter().map(|e| e.0).collect();
        Value(call!(LLVMConstVector(elements.as_mut_ptr(), count(elements.len()))))
    }

    /// A vector of integer constants.
    pub(crate) fn const_ints(&self, element: Type, values: &[u64]) -> Value {
        let elements: Vec<Value> = values.iter().map(|bits| self.const_int(element, *bits)).collect();
        self.const_vec(&elements)
    }

    /// An integer constant of any width, given as words from the lowest.
    pub(crate) fn const_words(&self, ty: Type, words: &[u64]) -> Value {
        debug_assert!(ty.is_int() && !ty.is_vector(), "words of what is no integer");
        Value(call!(LLVMConstIntOfArbitraryPrecision(ty.0, count(words.len()), words.as_ptr())))
    }

    /// All bits zero.
    pub(crate) fn zero(&self, ty: Type) -> Value {
        Value(call!(LLVMConstNull(ty.0)))
    }

    /// All bits one, of an integer type.
    pub(crate) fn ones(&self, ty: Type) -> Value {
        if ty.is_int() && !ty.is_vector() && ty.element_bits() > 64 {
            return Value(call!(LLVMConstInt(ty.0, u64::MAX, 1)));
        }
        self.const_int(ty, u64::MAX)
    }

    /// Element `index` of a vector.
    pub(crate) fn extract(&self, vector: Value, index: u32) -> Value {
        let index = self.const_int(self.int(32), u64::from(index));
        self.extract_at(vector, index)
    }

    /// The element that `index` names; it must be within the vector in every execution. The value itself if
    /// it is a scalar, which stands for a vector of one element.
    pub(crate) fn extract_at(&self, vector: Value, index: Value) -> Value {
        if vector.ty().lanes() == 1 {
            return vector;
        }
        Value(call!(LLVMBuildExtractElement(self.raw, vector.0, index.0, NAMELESS)))
    }

    /// `vector` with `element` at `index`.
    pub(crate) fn insert(&self, vector: Value, element: Value, index: u32) -> Value {
        let index = self.const_int(self.int(32), u64::from(index));
        Value(call!(LLVMBuildInsertElement(self.raw, vector.0, element.0, index.0, NAMELESS)))
    }

    /// Elements of `a` followed by `b`, chosen by constant indices; a negative index chooses poison.
    pub(crate) fn shuffle(&self, a: Value, b: Value, indices: &[i32]) -> Value {
        debug_assert_eq!(a.ty(), b.ty(), "a shuffle of two types");
        let int = self.int(32);
        let element = |index: &i32| match u64::try_from(*index) {
            Ok(index) => self.const_int(int, index),
            Err(_) => Value(call!(LLVMGetPoison(int.0))),
        };
        let elements: Vec<Value> = indices.iter().map(element).collect();
        let mask = self.const_vec(&elements);
        Value(call!(LLVMBuildShuffleVector(self.raw, a.0, b.0, mask.0, NAMELESS)))
    }

    /// Elements of one vector, chosen by constant indices.
    pub(crate) fn permute(&self, vector: Value, indices: &[i32]) -> Value {
        self.shuffle(vector, vector, indices)
    }

    /// A vector of `lanes` elements that are all the scalar; the scalar itself if `lanes` is 1.
    pub(crate) fn splat(&self, scalar: Value, lanes: u32) -> Value {
        if lanes == 1 {
            return scalar;
        }
        let ty = self.vec(scalar.ty(), lanes);
        if scalar.is_constant() {
            return self.const_vec(&vec![scalar; lanes as usize]);
        }
        let poison = Value(call!(LLVMGetPoison(ty.0)));
        let first = self.insert(poison, scalar, 0);
        self.shuffle(first, poison, &vec![0; lanes as usize])
    }

    /// The elements of one vector followed by those of another.
    pub(crate) fn concat(&self, a: Value, b: Value) -> Value {
        let lanes = a.ty().lanes() as i32;
        self.shuffle(a, b, &(0..2 * lanes).collect::<Vec<_>>())
    }

    /// Elements `from .. from + lanes` of a vector.
    pub(crate) fn slice(&self, vector: Value, from: u32, lanes: u32) -> Value {
        if lanes == 1 {
            return self.extract(vector, from);
        }
        self.permute(vector, &(from as i32..(from + lanes) as i32).collect::<Vec<_>>())
    }

    /// Parameter `index` of a function.
    pub(crate) fn param(&self, function: Function, index: u32) -> Value {
        Value(call!(LLVMGetParam(function.value, index)))
    }

    /// Calls an intrinsic by its name without types (`llvm.ctpop`), overloaded on `types`.
    ///
    /// # Panics
    /// LLVM has no intrinsic of that name, a bug of the caller.
    pub(crate) fn intrinsic(&self, name: &str, types: &[Type], args: &[Value]) -> Value {
        let id = call!(LLVMLookupIntrinsicID(name.as_ptr().cast(), length(name) as usize));
        assert!(id != 0, "ptxvm bug: LLVM has no intrinsic {name}");
        let key = (id, types.to_vec());
        let known = self.intrinsics.borrow().get(&key).copied();
        let function = known.unwrap_or_else(|| {
            let mut raw: Vec<LLVMTypeRef> = types.iter().map(|ty| ty.0).collect();
            let value = call!(LLVMGetIntrinsicDeclaration(self.module.raw, id, raw.as_mut_ptr(), raw.len()));
            let ty = call!(LLVMIntrinsicGetType(self.module.context, id, raw.as_mut_ptr(), raw.len()));
            let function = Function { value, ty };
            self.intrinsics.borrow_mut().insert(key, function);
            function
        });
        self.call(Type(function.ty), Value(function.value), args)
    }

    /// Calls `callee` (a function or a pointer) as a function of that type.
    pub(crate) fn call(&self, fn_type: Type, callee: Value, args: &[Value]) -> Value {
        let mut args: Vec<LLVMValueRef> = args.iter().map(|arg| arg.0).collect();
        Value(call!(LLVMBuildCall2(
            self.raw,
            fn_type.0,
            callee.0,
            args.as_mut_ptr(),
            count(args.len()),
            NAMELESS
        )))
    }

    /// Calls the host's function of that name. Its address is resolved when the code is placed.
    pub(crate) fn call_host(&self, fn_type: Type, name: &str, args: &[Value]) -> Value {
        let known = self.module.externals.borrow().get(name).copied();
        let function = known.unwrap_or_else(|| {
            let function = self.module.external_function(name, fn_type);
            self.module.externals.borrow_mut().insert(name.to_owned(), function);
            function
        });
        self.call(fn_type, function, args)
    }

    /// The address that this symbol is resolved to when the code is placed, as a 64-bit integer. Code that
    /// uses it does not depend on addresses in this process.
    pub(crate) fn address(&self, name: &str) -> Value {
        let known = self.module.externals.borrow().get(name).copied();
        let place = known.unwrap_or_else(|| {
            let name_in_c = c_name(name);
            let place = Value(call!(LLVMAddGlobal(self.module.raw, self.int(8).0, name_in_c.as_ptr())));
            self.module.externals.borrow_mut().insert(name.to_owned(), place);
            place
        });
        self.ptr_to_int(place)
    }

    /// The symbols of the host that the module's code refers to, sorted.
    pub(crate) fn externals(&self) -> Vec<String> {
        let externals = self.module.externals.borrow();
        let mut names: Vec<String> = externals.keys().cloned().collect();
        names.sort();
        names
    }

    /// Calls a function of the module.
    pub(crate) fn call_function(&self, function: Function, args: &[Value]) -> Value {
        self.call(Type(function.ty), Value(function.value), args)
    }
}

/// A count in LLVM's type.
pub(super) fn count(len: usize) -> c_uint {
    c_uint::try_from(len).unwrap_or(c_uint::MAX)
}
