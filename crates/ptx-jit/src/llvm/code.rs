//! Code in memory: placed by [`place`](super::place) if that supports all that the object contains, else by
//! ORC.
//!
//! Invariant: code stays in memory as long as its [`Code`] exists. ORC is started when the first object needs
//! it, and stays until the process ends.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::ptr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use llvm_sys::error::LLVMErrorRef;
use llvm_sys::orc2::lljit::LLVMOrcLLJITRef;
use llvm_sys::orc2::{
    LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags,
    LLVMOrcCJITDylibSearchOrderElement, LLVMOrcCLookupSetElement, LLVMOrcCSymbolMapPair,
    LLVMOrcCSymbolMapPairs, LLVMOrcJITDylibLookupFlags, LLVMOrcJITDylibRef, LLVMOrcLookupKind,
    LLVMOrcSymbolLookupFlags,
};

use super::api::{Error, call, check, load};
use super::module::c_name;
use super::place::{self, Placed};

/// Code in memory, which is freed when this is dropped.
pub(crate) struct Code(Home);

enum Home {
    Own(Placed),
    Orc {
        /// Only `drop` takes it.
        dylib: Option<Dylib>,
    },
}

// SAFETY: only `drop` changes it; ORC does its own locking.
unsafe impl Sync for Code {}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").finish_non_exhaustive()
    }
}

/// Addresses of host functions and data, by their symbol names.
pub(crate) type Symbols<'a> = &'a [(String, usize)];

impl Code {
    /// Places the code of an object file that this crate generated. The bytes are trusted: bytes from outside
    /// must be checked before.
    ///
    /// # Errors
    /// They are not an object file of this machine, or the object refers to an unknown symbol.
    pub(crate) fn place(object: &[u8], symbols: Symbols<'_>) -> Result<Code, Error> {
        let library = LIBRARY.iter().map(|(name, address)| (*name, address()));
        let resolve = |name: &str| {
            let own = symbols.iter().find(|(have, _)| have == name).map(|(_, address)| *address);
            own.or_else(|| {
                library.clone().find(|(have, _)| have.to_bytes() == name.as_bytes()).map(|(_, a)| a)
            })
        };
        match place::place(object, &resolve) {
            Ok(placed) => Ok(Code(Home::Own(placed))),
            Err(refused) if refused.is_the_systems() => Err(Error::new(refused.0)),
            Err(place::Refused(_)) => Code::orc(object, symbols),
        }
    }

    /// As [`Code::place`], by ORC: any object.
    pub(super) fn orc(object: &[u8], symbols: Symbols<'_>) -> Result<Code, Error> {
        let orc = Orc::get()?;
        let dylib = orc.dylib(symbols)?;
        let buffer = call!(LLVMCreateMemoryBufferWithMemoryRangeCopy(
            object.as_ptr().cast(),
            object.len(),
            c"code".as_ptr()
        ));
        let raw = dylib.0;
        let code = Code(Home::Orc { dylib: Some(dylib) });
        check(call!(LLVMOrcLLJITAddObjectFile(orc.jit, raw, buffer)))?;
        Ok(code)
    }

    /// The address of a function; valid until the code is dropped.
    ///
    /// # Errors
    /// There is no function of that name, or the object can't be placed.
    pub(crate) fn lookup(&self, name: &str) -> Result<usize, Error> {
        match &self.0 {
            Home::Own(placed) => {
                placed.lookup(name).ok_or_else(|| Error::new(format!("the code has no function `{name}`")))
            }
            Home::Orc { dylib: Some(dylib) } => Orc::get()?.lookup(dylib, name),
            Home::Orc { dylib: None } => Err(Error::new("no code")),
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        if let Home::Orc { dylib } = &mut self.0
            && let (Some(dylib), Ok(orc)) = (dylib.take(), Orc::get())
            && check(call!(LLVMOrcJITDylibClear(dylib.0))).is_ok()
        {
            // If clearing fails, the name space is not used again.
            orc.dylibs.lock().unwrap_or_else(PoisonError::into_inner).free.push(dylib);
        }
    }
}

/// LLVM's ORC, which places any object.
struct Orc {
    jit: LLVMOrcLLJITRef,
    dylibs: Mutex<Dylibs>,
}

/// Name spaces for objects: each object has its own, so that names of two objects do not conflict.
#[derive(Default)]
struct Dylibs {
    made: usize,
    free: Vec<Dylib>,
}

struct Dylib(LLVMOrcJITDylibRef);

// SAFETY: ORC's sessions and name spaces do their own locking, and contain no thread-local state.
unsafe impl Send for Dylib {}
// SAFETY: `jit` does its own locking (see `Dylib`); the other fields are `Send`.
unsafe impl Send for Orc {}
// SAFETY: as above; every field that changes is behind a `Mutex`.
unsafe impl Sync for Orc {}

impl Orc {
    /// The ORC of this process; the first call starts it.
    fn get() -> Result<&'static Orc, Error> {
        static ORC: OnceLock<Result<Orc, Error>> = OnceLock::new();
        let start = || {
            load()?;
            let mut jit = ptr::null_mut();
            check(call!(LLVMOrcCreateLLJIT(&mut jit, ptr::null_mut())))?;
            Ok(Orc { jit, dylibs: Mutex::default() })
        };
        ORC.get_or_init(start).as_ref().map_err(Clone::clone)
    }

    /// A name space that contains only these symbols and the C functions that code generators call on their
    /// own.
    fn dylib(&self, symbols: Symbols<'_>) -> Result<Dylib, Error> {
        let mut dylibs = self.dylibs.lock().unwrap_or_else(PoisonError::into_inner);
        let dylib = dylibs.free.pop().unwrap_or_else(|| {
            dylibs.made += 1;
            let name = c_name(&format!("code{}", dylibs.made));
            let session = call!(LLVMOrcLLJITGetExecutionSession(self.jit));
            Dylib(call!(LLVMOrcExecutionSessionCreateBareJITDylib(session, name.as_ptr())))
        });
        drop(dylibs);
        let pair = |name: &CStr, address: usize| LLVMOrcCSymbolMapPair {
            Name: call!(LLVMOrcLLJITMangleAndIntern(self.jit, name.as_ptr())),
            Sym: LLVMJITEvaluatedSymbol {
                Address: address as u64,
                Flags: LLVMJITSymbolFlags {
                    GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8,
                    TargetFlags: 0,
                },
            },
        };
        let library = LIBRARY.iter().map(|(name, address)| pair(name, address()));
        let own = symbols.iter().map(|(name, address)| pair(&c_name(name), *address));
        let mut all: Vec<LLVMOrcCSymbolMapPair> = library.chain(own).collect();
        let unit = call!(LLVMOrcAbsoluteSymbols(all.as_mut_ptr(), all.len()));
        check(call!(LLVMOrcJITDylibDefine(dylib.0, unit)))?;
        Ok(dylib)
    }

    fn lookup(&self, dylib: &Dylib, name: &str) -> Result<usize, Error> {
        let name = c_name(name);
        let mut order = LLVMOrcCJITDylibSearchOrderElement {
            JD: dylib.0,
            JDLookupFlags: LLVMOrcJITDylibLookupFlags::LLVMOrcJITDylibLookupFlagsMatchExportedSymbolsOnly,
        };
        let mut symbol = LLVMOrcCLookupSetElement {
            Name: call!(LLVMOrcLLJITMangleAndIntern(self.jit, name.as_ptr())),
            LookupFlags: LLVMOrcSymbolLookupFlags::LLVMOrcSymbolLookupFlagsRequiredSymbol,
        };
        let (sender, receiver) = channel::<Answer>();
        let context: *mut c_void = Box::into_raw(Box::new(sender)).cast();
        let session = call!(LLVMOrcLLJITGetExecutionSession(self.jit));
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
        // The thread that places the code answers, also if placing fails.
        receiver.recv().map_err(|_| Error::new("LLVM gave no answer"))?
    }
}

type Answer = Result<usize, Error>;

/// Passes the answer of a lookup to the thread that waits for it.
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
    // The other thread waits until this message arrives.
    let _ = sender.send(found);
}

type Find = fn() -> usize;

/// C functions that LLVM may call for an instruction on its own, and how each address is found.
const LIBRARY: [(&CStr, Find); 3] = [
    (c"memcpy", || memcpy as *const () as usize),
    (c"memmove", || memmove as *const () as usize),
    (c"memset", || memset as *const () as usize),
];

// SAFETY: these are the C library's, with the signatures of the C standard; only their addresses are taken.
unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void;
    fn memset(to: *mut c_void, byte: i32, len: usize) -> *mut c_void;
}
