//! Generates the bytes of object files from modules, for one [`Target`].
//!
//! Code generation and [placing](super::code) are two steps with an object file between them, so that a cache
//! can store the file.

use crate::target::{Optimisation, Target};
use crate::tuning::UNOPTIMISED_MIN_INSTRUCTIONS;
use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use llvm_sys::LLVMDiagnosticSeverity;
use llvm_sys::prelude::LLVMDiagnosticInfoRef;
use llvm_sys::target_machine::{
    LLVMCodeGenFileType, LLVMCodeGenOptLevel, LLVMCodeModel, LLVMRelocMode, LLVMTargetMachineRef,
};

use super::api::{Error, call, load, take_message};
use super::exit::{self, Working};
use super::module::{Module, c_name};

/// A code generator; threads may share it.
#[derive(Clone)]
pub struct Session(Arc<Shared>);

struct Shared {
    target: Target,
    triple: CString,
    layout: CString,
    /// LLVM code generators that no thread is using.
    machines: Mutex<Vec<(Effort, Machine)>>,
}

/// An object file.
pub(crate) struct Object {
    pub(crate) bytes: Vec<u8>,
    /// The sum of the large stack frames of its functions, in bytes; 0 if every thread has enough stack for
    /// it.
    pub(crate) stack: u32,
    /// The number of LLVM instructions that [`Effort::Least`] compiled; 0 if it is [`Effort::Usual`]'s.
    pub(crate) unoptimised: u32,
}

/// How much effort LLVM spends on good code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// LLVM's level 1.
    Usual,
    /// Level 0, whose passes take time proportional to the size of a function. Those of level 1 take minutes
    /// for functions of several hundred thousand instructions.
    Least,
}

struct Machine(LLVMTargetMachineRef);

// SAFETY: a code generator may be used by any thread, one at a time: it is taken out of the list while used.
unsafe impl Send for Machine {}
impl Drop for Machine {
    fn drop(&mut self) {
        call!(LLVMDisposeTargetMachine(self.0));
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("target", &self.0.target).finish_non_exhaustive()
    }
}

impl Session {
    /// A session that generates code for that processor, which may differ from this machine's; the first
    /// session loads LLVM.
    ///
    /// # Errors
    /// There is no LLVM 22, or it has no code generator for this machine's architecture.
    pub fn new(target: Target) -> Result<Session, Error> {
        let _working = Working::begin()?;
        load()?;
        exit::precede_destructors();
        let triple = take_c_message(call!(LLVMGetDefaultTargetTriple()));
        let machine = Machine::new(target, &triple, Effort::Usual)?;
        let data = call!(LLVMCreateTargetDataLayout(machine.0));
        let layout = take_c_message(call!(LLVMCopyStringRepOfTargetData(data)));
        call!(LLVMDisposeTargetData(data));

        let machines = Mutex::new(vec![(Effort::Usual, machine)]);
        Ok(Session(Arc::new(Shared { target, triple, layout, machines })))
    }

    /// The processor that it generates code for.
    pub fn target(&self) -> Target {
        self.0.target
    }

    /// An empty module for this session.
    pub(crate) fn module(&self, name: &str) -> Module {
        Module::new(name, &self.0.triple, &self.0.layout, self.0.target)
    }

    /// Compiles a module to the bytes of an object file, as the target says, or else without optimisation if
    /// it is large.
    ///
    /// # Errors
    /// The code generator reported an error.
    pub(crate) fn object(&self, module: &Module) -> Result<Object, Error> {
        let object = self.object_by(module, self.effort_for(module))?;
        // What was asked for is final.
        let unoptimised = if self.target().optimisation().is_some() { 0 } else { object.unoptimised };
        Ok(Object { unoptimised, ..object })
    }

    /// The effort for code that a launch may wait for.
    fn effort_for(&self, module: &Module) -> Effort {
        match self.target().optimisation() {
            Some(Optimisation::None) => Effort::Least,
            Some(Optimisation::Less) => Effort::Usual,
            None if module.instructions(UNOPTIMISED_MIN_INSTRUCTIONS) < UNOPTIMISED_MIN_INSTRUCTIONS => {
                Effort::Usual
            }
            None => Effort::Least,
        }
    }

    /// Compiles a module to the bytes of an object file, with that effort.
    ///
    /// # Errors
    /// The code generator reported an error.
    pub(crate) fn object_by(&self, module: &Module, effort: Effort) -> Result<Object, Error> {
        let (bytes, stack) = self.generate(module, LLVMCodeGenFileType::LLVMObjectFile, effort)?;
        let unoptimised = match effort {
            Effort::Usual => 0,
            Effort::Least => u32::try_from(module.instructions(usize::MAX)).unwrap_or(u32::MAX),
        };
        Ok(Object { bytes, stack, unoptimised })
    }

    /// Compiles a module to assembly text.
    ///
    /// # Errors
    /// The code generator reported an error.
    pub(crate) fn emit_asm(&self, module: &Module) -> Result<String, Error> {
        let (text, _) =
            self.generate(module, LLVMCodeGenFileType::LLVMAssemblyFile, self.effort_for(module))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn machines(&self) -> MutexGuard<'_, Vec<(Effort, Machine)>> {
        self.0.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An LLVM code generator that no other thread uses.
    fn machine(&self, effort: Effort) -> Result<Machine, Error> {
        let mut free = self.machines();
        match free.iter().position(|(of, _)| *of == effort) {
            Some(at) => Ok(free.swap_remove(at).1),
            None => Machine::new(self.0.target, &self.0.triple, effort),
        }
    }

    /// The bytes that LLVM wrote, and the stack that its functions need beyond the usual.
    fn generate(
        &self,
        module: &Module,
        kind: LLVMCodeGenFileType,
        effort: Effort,
    ) -> Result<(Vec<u8>, u32), Error> {
        let _working = Working::begin()?;
        // LLVM crashes on invalid IR, at once or later. The check takes half a percent of the time of code
        // generation.
        module.verify().map_err(|e| Error::new(format!("ptxvm bug: {e}")))?;
        let machine = self.machine(effort)?;
        let (mut message, mut buffer) = (ptr::null_mut(), ptr::null_mut());
        let mut said = Said::default();
        let place: *mut Said = &mut said;
        call!(LLVMContextSetDiagnosticHandler(module.context, Some(hear), place.cast()));
        let failed = call!(LLVMTargetMachineEmitToMemoryBuffer(
            machine.0,
            module.raw,
            kind,
            &mut message,
            &mut buffer
        )) != 0;
        call!(LLVMContextSetDiagnosticHandler(module.context, None, ptr::null_mut()));
        self.machines().push((effort, machine));
        if failed {
            return Err(Error::new(take_message(message)));
        }
        let start: *const u8 = call!(LLVMGetBufferStart(buffer)).cast();
        let len = call!(LLVMGetBufferSize(buffer));
        // SAFETY: the buffer holds `len` bytes from `start` and lives until it is disposed, below.
        let bytes = unsafe { std::slice::from_raw_parts(start, len) }.to_vec();
        call!(LLVMDisposeMemoryBuffer(buffer));
        match said.error {
            Some(text) => Err(Error::new(text)),
            None => Ok((bytes, said.stack)),
        }
    }
}

/// Diagnostics that LLVM reports during code generation.
#[derive(Default)]
struct Said {
    /// The sum of the large stack frames, in bytes.
    stack: u32,
    error: Option<String>,
}

extern "C" fn hear(info: LLVMDiagnosticInfoRef, said: *mut c_void) {
    let text = take_message(call!(LLVMGetDiagInfoDescription(info)));
    let severity = call!(LLVMGetDiagInfoSeverity(info));
    // SAFETY: `Session::generate` set this function together with a place that is there until it takes both
    // away, and that nothing else uses.
    let said = unsafe { &mut *said.cast::<Said>() };
    match severity {
        LLVMDiagnosticSeverity::LLVMDSError => drop(said.error.get_or_insert(text)),
        _ => said.stack = said.stack.saturating_add(frame_bytes(&text)),
    }
}

/// The size of a stack frame in a diagnostic of LLVM about a large one: `stack frame size (N) exceeds limit
/// (M) in function 'F'`, with or without a source location before it (`<unknown>:0:0: `). 0 for any other
/// text.
fn frame_bytes(text: &str) -> u32 {
    let number = text.split_once("stack frame size (").and_then(|(_, rest)| rest.split_once(')'));
    number.map_or(0, |(number, _)| number.parse().unwrap_or(u32::MAX))
}

impl Machine {
    fn new(processor: Target, triple: &CStr, effort: Effort) -> Result<Machine, Error> {
        let (mut target, mut message) = (ptr::null_mut(), ptr::null_mut());
        if call!(LLVMGetTargetFromTriple(triple.as_ptr(), &mut target, &mut message)) != 0 {
            return Err(Error::new(take_message(message)));
        }
        let (name, features) = names(processor);
        let options = call!(LLVMCreateTargetMachineOptions());
        call!(LLVMTargetMachineOptionsSetCPU(options, name.as_ptr()));
        call!(LLVMTargetMachineOptionsSetFeatures(options, features.as_ptr()));
        let level = match effort {
            Effort::Usual => LLVMCodeGenOptLevel::LLVMCodeGenLevelLess,
            Effort::Least => LLVMCodeGenOptLevel::LLVMCodeGenLevelNone,
        };
        call!(LLVMTargetMachineOptionsSetCodeGenOptLevel(options, level));
        call!(LLVMTargetMachineOptionsSetRelocMode(options, LLVMRelocMode::LLVMRelocPIC));
        call!(LLVMTargetMachineOptionsSetCodeModel(options, LLVMCodeModel::LLVMCodeModelSmall));
        let machine = call!(LLVMCreateTargetMachineWithOptions(target, triple.as_ptr(), options));
        call!(LLVMDisposeTargetMachineOptions(options));
        if machine.is_null() {
            return Err(Error::new(format!("LLVM makes no code for {}", triple.to_string_lossy())));
        }
        Ok(Machine(machine))
    }
}

/// LLVM's name of a processor, and the features beyond those of the name.
fn names(target: Target) -> (CString, CString) {
    match target.llvm_names() {
        Some((name, features)) => (c_name(name), c_name(&features)),
        None => {
            let name = take_c_message(call!(LLVMGetHostCPUName()));
            let features = take_c_message(call!(LLVMGetHostCPUFeatures()));
            (name, features)
        }
    }
}

fn take_c_message(message: *mut std::ffi::c_char) -> CString {
    c_name(&take_message(message))
}

#[cfg(test)]
mod tests {
    use super::frame_bytes;

    #[test]
    fn large_frames_are_heard_with_a_place_and_without() {
        let text = "stack frame size (3144952) exceeds limit (131072) in function 'kernel'";
        assert_eq!(frame_bytes(text), 3_144_952);
        assert_eq!(frame_bytes(&format!("<unknown>:0:0: {text}")), 3_144_952);
        assert_eq!(frame_bytes(&text.replace("3144952", "99999999999")), u32::MAX);
        assert_eq!(frame_bytes("<unknown>:0:0: FastISel missed terminator (in function: kernel)"), 0);
    }
}
