//! From modules to running code: a code generator for this machine, and ORC to place its objects in memory.
//!
//! Code generation and placing are two steps with an object file's bytes between them, so that a cache can hold those bytes.

use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::ptr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use llvm_sys::error::LLVMErrorRef;
use llvm_sys::orc2::lljit::LLVMOrcLLJITRef;
use llvm_sys::orc2::{
    LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags,
    LLVMOrcCJITDylibSearchOrderElement, LLVMOrcCLookupSetElement, LLVMOrcCSymbolMapPair,
    LLVMOrcCSymbolMapPairs, LLVMOrcJITDylibLookupFlags, LLVMOrcJITDylibRef, LLVMOrcLookupKind,
    LLVMOrcSymbolLookupFlags,
};
use llvm_sys::target_machine::{
    LLVMCodeGenFileType, LLVMCodeGenOptLevel, LLVMCodeModel, LLVMRelocMode, LLVMTargetMachineRef,
};

use super::Cpu;
use super::api::{Error, call, check, load, take_message};
use super::cpu::Extensions;
use super::module::{Module, c_name};

/// A code generator and the place where code lives; may be shared between threads.
#[derive(Clone)]
pub struct Session(Arc<Shared>);

struct Shared {
    cpu: Cpu,
    triple: CString,
    layout: CString,
    jit: LLVMOrcLLJITRef,
    /// Code generators that no thread is using.
    machines: Mutex<Vec<Machine>>,
    dylibs: Mutex<Dylibs>,
}

/// Name spaces for objects: each object gets its own, so that names of two objects never meet.
#[derive(Default)]
struct Dylibs {
    made: usize,
    free: Vec<Dylib>,
}

struct Dylib(LLVMOrcJITDylibRef);
struct Machine(LLVMTargetMachineRef);

// SAFETY: ORC's sessions and name spaces lock for themselves; nothing of a thread is kept in them.
unsafe impl Send for Dylib {}
// SAFETY: a code generator may be used by any thread, one at a time: it is taken out of the list while used.
unsafe impl Send for Machine {}
// SAFETY: `jit` locks for itself (see `Dylib`); all else is `Send`.
unsafe impl Send for Shared {}
// SAFETY: as above; all that changes is behind a `Mutex`.
unsafe impl Sync for Shared {}

impl Drop for Machine {
    fn drop(&mut self) {
        call!(LLVMDisposeTargetMachine(self.0));
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // All code is gone: each piece of it holds the session. An error here could only be reported, not mended.
        let _ = check(call!(LLVMOrcDisposeLLJIT(self.jit)));
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("cpu", &self.0.cpu).finish_non_exhaustive()
    }
}

impl Session {
    /// A session that makes code of that level; loads LLVM if this is the first.
    ///
    /// # Errors
    /// There is no LLVM 22, it has no code generator for this machine, or this machine lacks the level.
    pub fn new(cpu: Cpu) -> Result<Session, Error> {
        load()?;
        if !cpu.is_available() {
            return Err(Error::new(format!("this machine has no {} instructions", cpu.name())));
        }
        let triple = take_c_message(call!(LLVMGetDefaultTargetTriple()));
        let machine = Machine::new(cpu, &triple)?;
        let data = call!(LLVMCreateTargetDataLayout(machine.0));
        let layout = take_c_message(call!(LLVMCopyStringRepOfTargetData(data)));
        call!(LLVMDisposeTargetData(data));

        // The builder takes a code generator of its own; it is never used, as only objects are added.
        let unused = Machine::new(cpu, &triple)?;
        let builder = call!(LLVMOrcCreateLLJITBuilder());
        let target = call!(LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(unused.0));
        std::mem::forget(unused);
        call!(LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(builder, target));
        let mut jit = ptr::null_mut();
        check(call!(LLVMOrcCreateLLJIT(&mut jit, builder)))?;
        Ok(Session(Arc::new(Shared {
            cpu,
            triple,
            layout,
            jit,
            machines: Mutex::new(vec![machine]),
            dylibs: Mutex::default(),
        })))
    }

    /// The level its code uses.
    pub fn cpu(&self) -> Cpu {
        self.0.cpu
    }

    /// Extensions that its code may use.
    pub(crate) fn extensions(&self) -> Extensions {
        Extensions::of(self.0.cpu)
    }

    /// An empty module for this session.
    pub(crate) fn module(&self, name: &str) -> Module {
        Module::new(name, &self.0.triple, &self.0.layout, self.0.cpu)
    }

    /// Compiles a module to the bytes of an object file.
    ///
    /// # Errors
    /// The code generator refused.
    pub(crate) fn object(&self, module: &Module) -> Result<Vec<u8>, Error> {
        self.generate(module, LLVMCodeGenFileType::LLVMObjectFile)
    }

    /// Compiles a module to assembly text.
    ///
    /// # Errors
    /// The code generator refused.
    pub(crate) fn emit_asm(&self, module: &Module) -> Result<String, Error> {
        let text = self.generate(module, LLVMCodeGenFileType::LLVMAssemblyFile)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Compiles a module and places its code.
    ///
    /// # Errors
    /// As [`Session::object`] and [`Session::add_object`].
    pub(crate) fn add(&self, module: &Module) -> Result<Code, Error> {
        self.add_object(&self.object(module)?)
    }

    /// Places the code of an object file that this crate made. The bytes are trusted: check those that come from outside.
    ///
    /// # Errors
    /// They are no object file of this machine.
    pub(crate) fn add_object(&self, object: &[u8]) -> Result<Code, Error> {
        let dylib = self.dylib()?;
        let buffer = call!(LLVMCreateMemoryBufferWithMemoryRangeCopy(
            object.as_ptr().cast(),
            object.len(),
            c"code".as_ptr()
        ));
        let raw = dylib.0;
        let code = Code { session: self.clone(), dylib: Some(dylib) };
        check(call!(LLVMOrcLLJITAddObjectFile(self.0.jit, raw, buffer)))?;
        Ok(code)
    }

    fn generate(&self, module: &Module, kind: LLVMCodeGenFileType) -> Result<Vec<u8>, Error> {
        if cfg!(debug_assertions) {
            module.verify().map_err(|e| Error::new(format!("ptxvm bug: {e}")))?;
        }
        let free = self.0.machines.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let machine = match free {
            Some(machine) => machine,
            None => Machine::new(self.0.cpu, &self.0.triple)?,
        };
        let (mut message, mut buffer) = (ptr::null_mut(), ptr::null_mut());
        let failed = call!(LLVMTargetMachineEmitToMemoryBuffer(
            machine.0,
            module.raw,
            kind,
            &mut message,
            &mut buffer
        )) != 0;
        self.0.machines.lock().unwrap_or_else(PoisonError::into_inner).push(machine);
        if failed {
            return Err(Error::new(take_message(message)));
        }
        let start: *const u8 = call!(LLVMGetBufferStart(buffer)).cast();
        let len = call!(LLVMGetBufferSize(buffer));
        // SAFETY: the buffer holds `len` bytes from `start` and lives until it is disposed, below.
        let bytes = unsafe { std::slice::from_raw_parts(start, len) }.to_vec();
        call!(LLVMDisposeMemoryBuffer(buffer));
        Ok(bytes)
    }

    /// A name space with nothing in it but the functions of C that code generators call on their own.
    fn dylib(&self) -> Result<Dylib, Error> {
        let mut dylibs = self.0.dylibs.lock().unwrap_or_else(PoisonError::into_inner);
        let dylib = dylibs.free.pop().unwrap_or_else(|| {
            dylibs.made += 1;
            let name = c_name(&format!("code{}", dylibs.made));
            let session = call!(LLVMOrcLLJITGetExecutionSession(self.0.jit));
            Dylib(call!(LLVMOrcExecutionSessionCreateBareJITDylib(session, name.as_ptr())))
        });
        drop(dylibs);
        let mut symbols: Vec<LLVMOrcCSymbolMapPair> = LIBRARY
            .iter()
            .map(|(name, address)| LLVMOrcCSymbolMapPair {
                Name: call!(LLVMOrcLLJITMangleAndIntern(self.0.jit, name.as_ptr())),
                Sym: LLVMJITEvaluatedSymbol {
                    Address: address() as u64,
                    Flags: LLVMJITSymbolFlags {
                        GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8,
                        TargetFlags: 0,
                    },
                },
            })
            .collect();
        let unit = call!(LLVMOrcAbsoluteSymbols(symbols.as_mut_ptr(), symbols.len()));
        check(call!(LLVMOrcJITDylibDefine(dylib.0, unit)))?;
        Ok(dylib)
    }
}

type Find = fn() -> usize;

/// Functions of C that LLVM may call for an instruction without our asking: how to find each.
const LIBRARY: [(&CStr, Find); 3] = [
    (c"memcpy", || memcpy as *const () as usize),
    (c"memmove", || memmove as *const () as usize),
    (c"memset", || memset as *const () as usize),
];

unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void;
    fn memset(to: *mut c_void, byte: i32, len: usize) -> *mut c_void;
}

impl Machine {
    fn new(cpu: Cpu, triple: &CStr) -> Result<Machine, Error> {
        let (mut target, mut message) = (ptr::null_mut(), ptr::null_mut());
        if call!(LLVMGetTargetFromTriple(triple.as_ptr(), &mut target, &mut message)) != 0 {
            return Err(Error::new(take_message(message)));
        }
        let (name, features) = names(cpu);
        let options = call!(LLVMCreateTargetMachineOptions());
        call!(LLVMTargetMachineOptionsSetCPU(options, name.as_ptr()));
        call!(LLVMTargetMachineOptionsSetFeatures(options, features.as_ptr()));
        let level = LLVMCodeGenOptLevel::LLVMCodeGenLevelLess;
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

/// LLVM's name of a processor of that level, and features beyond it.
fn names(cpu: Cpu) -> (CString, CString) {
    let host = || {
        let name = take_c_message(call!(LLVMGetHostCPUName()));
        let features = take_c_message(call!(LLVMGetHostCPUFeatures()));
        (name, features)
    };
    match cpu {
        Cpu::Avx512 => host(),
        Cpu::Avx2 => (c"x86-64-v3".to_owned(), CString::default()),
        Cpu::Baseline if cfg!(target_arch = "x86_64") => (c"x86-64".to_owned(), CString::default()),
        Cpu::Baseline => host(),
    }
}

fn take_c_message(message: *mut std::ffi::c_char) -> CString {
    c_name(&take_message(message))
}

/// Code in memory, which goes when this is dropped.
pub struct Code {
    session: Session,
    /// Taken out only by `drop`.
    dylib: Option<Dylib>,
}

// SAFETY: nothing in it changes but in `drop`; ORC locks for itself.
unsafe impl Sync for Code {}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").finish_non_exhaustive()
    }
}

impl Code {
    /// The address of a function; valid until the code is dropped.
    ///
    /// # Errors
    /// There is none of that name, or the object can't be placed.
    pub(crate) fn lookup(&self, name: &str) -> Result<usize, Error> {
        let Some(dylib) = &self.dylib else { return Err(Error::new("no code")) };
        let jit = self.session.0.jit;
        let name = c_name(name);
        let mut order = LLVMOrcCJITDylibSearchOrderElement {
            JD: dylib.0,
            JDLookupFlags: LLVMOrcJITDylibLookupFlags::LLVMOrcJITDylibLookupFlagsMatchExportedSymbolsOnly,
        };
        let mut symbol = LLVMOrcCLookupSetElement {
            Name: call!(LLVMOrcLLJITMangleAndIntern(jit, name.as_ptr())),
            LookupFlags: LLVMOrcSymbolLookupFlags::LLVMOrcSymbolLookupFlagsRequiredSymbol,
        };
        let (sender, receiver) = channel::<Answer>();
        let context: *mut c_void = Box::into_raw(Box::new(sender)).cast();
        let session = call!(LLVMOrcLLJITGetExecutionSession(jit));
        call!(LLVMOrcExecutionSessionLookup(
            session,
            LLVMOrcLookupKind::LLVMOrcLookupKindStatic,
            &mut order,
            1,
            &mut symbol,
            1,
            answer,
            context
        ));
        // Whichever thread places the code answers, also if it fails.
        receiver.recv().map_err(|_| Error::new("LLVM gave no answer"))?
    }
}

type Answer = Result<usize, Error>;

/// Passes the answer of a lookup on to who waits for it.
extern "C" fn answer(error: LLVMErrorRef, result: LLVMOrcCSymbolMapPairs, len: usize, context: *mut c_void) {
    // SAFETY: `context` is the box that `lookup` made for this one call.
    let sender = unsafe { Box::from_raw(context.cast::<Sender<Answer>>()) };
    let found = check(error).and_then(|()| {
        if len == 0 || result.is_null() {
            return Err(Error::new("LLVM gave no symbol"));
        }
        // SAFETY: on success LLVM passes `len` pairs, which live during this call.
        let pair = unsafe { &*result };
        Ok(pair.Sym.Address as usize)
    });
    // Who waits does so until this comes.
    let _ = sender.send(found);
}

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(dylib) = self.dylib.take() {
            // Nothing can be done about an error; the name space is then not used again.
            if check(call!(LLVMOrcJITDylibClear(dylib.0))).is_ok() {
                self.session.0.dylibs.lock().unwrap_or_else(PoisonError::into_inner).free.push(dylib);
            }
        }
    }
}
