//! LLVM's C functions, looked up in its shared library when they are first needed.
//!
//! The signatures are repeated here, and the compiler compares each with `llvm-sys`: a wrong one does not
//! compile. Invariant: the library stays loaded until the process ends.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;
use llvm_sys::analysis::LLVMVerifierFailureAction;
use llvm_sys::error::LLVMErrorRef;
use llvm_sys::orc2::lljit::{LLVMOrcLLJITBuilderRef, LLVMOrcLLJITRef};
use llvm_sys::orc2::{
    LLVMOrcCJITDylibSearchOrder, LLVMOrcCLookupSet, LLVMOrcCSymbolMapPairs,
    LLVMOrcExecutionSessionLookupHandleResultFunction, LLVMOrcExecutionSessionRef, LLVMOrcJITDylibRef,
    LLVMOrcLookupKind, LLVMOrcMaterializationUnitRef, LLVMOrcSymbolStringPoolEntryRef,
};
use llvm_sys::prelude::{
    LLVMAttributeRef, LLVMBasicBlockRef, LLVMBool, LLVMBuilderRef, LLVMContextRef, LLVMDiagnosticInfoRef,
    LLVMMemoryBufferRef, LLVMMetadataRef, LLVMModuleRef, LLVMTypeRef, LLVMUseRef, LLVMValueRef,
};
use llvm_sys::target::LLVMTargetDataRef;
use llvm_sys::target_machine::{
    LLVMCodeGenFileType, LLVMCodeGenOptLevel, LLVMCodeModel, LLVMRelocMode, LLVMTargetMachineOptionsRef,
    LLVMTargetMachineRef, LLVMTargetRef,
};
use llvm_sys::{
    LLVMAtomicOrdering, LLVMAtomicRMWBinOp, LLVMAttributeIndex, LLVMDiagnosticHandler,
    LLVMDiagnosticSeverity, LLVMInlineAsmDialect, LLVMIntPredicate, LLVMLinkage, LLVMOpcode,
    LLVMRealPredicate, LLVMTypeKind,
};

/// Why there is no compiled code: no usable LLVM, or LLVM reported an error.
#[derive(Clone, Debug)]
pub struct Error(String);

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

type Name = *const c_char;

/// The address of a function of the library; `name` ends with a zero. It is not generic in the type of the
/// function: code for each of the 150 types would take seconds to compile.
fn address(library: &Library, name: &str) -> Result<*const c_void, Error> {
    // SAFETY: any address is a valid value of this type.
    let found = unsafe { library.get::<*const c_void>(name.as_bytes()) };
    let missing = || Error::new(format!("LLVM has no function {}", name.trim_end_matches('\0')));
    found.ok().map(|symbol| *symbol).filter(|address| !address.is_null()).ok_or_else(missing)
}

macro_rules! api {
    ($($($module:ident)::+ => $name:ident($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// The functions, by their C names.
        #[allow(non_snake_case, reason = "the names are LLVM's")]
        pub(super) struct Api { $(pub(super) $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)* }

        impl Api {
            fn find(library: &Library) -> Result<Api, Error> {
                Ok(Api {
                    $($name: {
                        let found = address(library, concat!(stringify!($name), "\0"))?;
                        // SAFETY: the signature is compared with that of `llvm-sys` for the same LLVM
                        // version, below; the version of the library is checked before any other function of
                        // it is called.
                        unsafe {
                            std::mem::transmute::<*const c_void, unsafe extern "C" fn($($arg),*) $(-> $ret)?>(found)
                        }
                    },)*
                })
            }
        }

        $(const _: unsafe extern "C" fn($($arg),*) $(-> $ret)? = llvm_sys::$($module)::+::$name;)*
    };
}

api! {
    core => LLVMGetVersion(*mut c_uint, *mut c_uint, *mut c_uint);
    core => LLVMDisposeMessage(*mut c_char);
    core => LLVMContextCreate() -> LLVMContextRef;
    core => LLVMContextDispose(LLVMContextRef);
    core => LLVMModuleCreateWithNameInContext(Name, LLVMContextRef) -> LLVMModuleRef;
    core => LLVMDisposeModule(LLVMModuleRef);
    core => LLVMSetTarget(LLVMModuleRef, Name);
    core => LLVMSetDataLayout(LLVMModuleRef, Name);
    core => LLVMPrintModuleToString(LLVMModuleRef) -> *mut c_char;
    core => LLVMAddFunction(LLVMModuleRef, Name, LLVMTypeRef) -> LLVMValueRef;
    core => LLVMGetNamedFunction(LLVMModuleRef, Name) -> LLVMValueRef;
    core => LLVMSetLinkage(LLVMValueRef, LLVMLinkage);
    core => LLVMAddGlobal(LLVMModuleRef, LLVMTypeRef, Name) -> LLVMValueRef;
    core => LLVMGetParam(LLVMValueRef, c_uint) -> LLVMValueRef;
    core => LLVMSetAlignment(LLVMValueRef, c_uint);
    core => LLVMCreateStringAttribute(LLVMContextRef, Name, c_uint, Name, c_uint) -> LLVMAttributeRef;
    core => LLVMCreateEnumAttribute(LLVMContextRef, c_uint, u64) -> LLVMAttributeRef;
    core => LLVMGetEnumAttributeKindForName(Name, usize) -> c_uint;
    core => LLVMAddAttributeAtIndex(LLVMValueRef, LLVMAttributeIndex, LLVMAttributeRef);
    core => LLVMAddCallSiteAttribute(LLVMValueRef, LLVMAttributeIndex, LLVMAttributeRef);
    core => LLVMPrintTypeToString(LLVMTypeRef) -> *mut c_char;
    core => LLVMIntTypeInContext(LLVMContextRef, c_uint) -> LLVMTypeRef;
    core => LLVMHalfTypeInContext(LLVMContextRef) -> LLVMTypeRef;
    core => LLVMFloatTypeInContext(LLVMContextRef) -> LLVMTypeRef;
    core => LLVMDoubleTypeInContext(LLVMContextRef) -> LLVMTypeRef;
    core => LLVMVoidTypeInContext(LLVMContextRef) -> LLVMTypeRef;
    core => LLVMPointerTypeInContext(LLVMContextRef, c_uint) -> LLVMTypeRef;
    core => LLVMVectorType(LLVMTypeRef, c_uint) -> LLVMTypeRef;
    core => LLVMFunctionType(LLVMTypeRef, *mut LLVMTypeRef, c_uint, LLVMBool) -> LLVMTypeRef;
    core => LLVMTypeOf(LLVMValueRef) -> LLVMTypeRef;
    core => LLVMGetTypeKind(LLVMTypeRef) -> LLVMTypeKind;
    core => LLVMGetIntTypeWidth(LLVMTypeRef) -> c_uint;
    core => LLVMGetVectorSize(LLVMTypeRef) -> c_uint;
    core => LLVMGetElementType(LLVMTypeRef) -> LLVMTypeRef;
    core => LLVMConstInt(LLVMTypeRef, c_ulonglong, LLVMBool) -> LLVMValueRef;
    core => LLVMConstIntOfArbitraryPrecision(LLVMTypeRef, c_uint, *const u64) -> LLVMValueRef;
    core => LLVMConstIntGetZExtValue(LLVMValueRef) -> c_ulonglong;
    core => LLVMIsAConstantInt(LLVMValueRef) -> LLVMValueRef;
    core => LLVMIsAInstruction(LLVMValueRef) -> LLVMValueRef;
    core => LLVMGetInstructionOpcode(LLVMValueRef) -> LLVMOpcode;
    core => LLVMGetICmpPredicate(LLVMValueRef) -> LLVMIntPredicate;
    core => LLVMGetFCmpPredicate(LLVMValueRef) -> LLVMRealPredicate;
    core => LLVMGetOperand(LLVMValueRef, c_uint) -> LLVMValueRef;
    core => LLVMGetNumMaskElements(LLVMValueRef) -> c_uint;
    core => LLVMGetMaskValue(LLVMValueRef, c_uint) -> c_int;
    core => LLVMGetFirstUse(LLVMValueRef) -> LLVMUseRef;
    core => LLVMGetNextUse(LLVMUseRef) -> LLVMUseRef;
    core => LLVMSetOperand(LLVMValueRef, c_uint, LLVMValueRef);
    core => LLVMReplaceAllUsesWith(LLVMValueRef, LLVMValueRef);
    core => LLVMGetNextInstruction(LLVMValueRef) -> LLVMValueRef;
    core => LLVMGetAggregateElement(LLVMValueRef, c_uint) -> LLVMValueRef;
    core => LLVMConstVector(*mut LLVMValueRef, c_uint) -> LLVMValueRef;
    core => LLVMConstNull(LLVMTypeRef) -> LLVMValueRef;
    core => LLVMGetPoison(LLVMTypeRef) -> LLVMValueRef;
    core => LLVMIsConstant(LLVMValueRef) -> LLVMBool;
    core => LLVMIsNull(LLVMValueRef) -> LLVMBool;
    core => LLVMCreateBuilderInContext(LLVMContextRef) -> LLVMBuilderRef;
    core => LLVMDisposeBuilder(LLVMBuilderRef);
    core => LLVMPositionBuilderAtEnd(LLVMBuilderRef, LLVMBasicBlockRef);
    core => LLVMPositionBuilderBefore(LLVMBuilderRef, LLVMValueRef);
    core => LLVMDeleteBasicBlock(LLVMBasicBlockRef);
    core => LLVMInstructionEraseFromParent(LLVMValueRef);
    core => LLVMGetInsertBlock(LLVMBuilderRef) -> LLVMBasicBlockRef;
    core => LLVMGetBasicBlockParent(LLVMBasicBlockRef) -> LLVMValueRef;
    core => LLVMGetBasicBlockTerminator(LLVMBasicBlockRef) -> LLVMValueRef;
    core => LLVMAppendBasicBlockInContext(LLVMContextRef, LLVMValueRef, Name) -> LLVMBasicBlockRef;
    core => LLVMBuildBinOp(LLVMBuilderRef, LLVMOpcode, LLVMValueRef, LLVMValueRef, Name) -> LLVMValueRef;
    core => LLVMBuildFNeg(LLVMBuilderRef, LLVMValueRef, Name) -> LLVMValueRef;
    core => LLVMBuildICmp(LLVMBuilderRef, LLVMIntPredicate, LLVMValueRef, LLVMValueRef, Name) -> LLVMValueRef;
    core => LLVMBuildFCmp(LLVMBuilderRef, LLVMRealPredicate, LLVMValueRef, LLVMValueRef, Name) -> LLVMValueRef;
    core => LLVMBuildSelect(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, LLVMValueRef, Name) -> LLVMValueRef;
    core => LLVMBuildCast(LLVMBuilderRef, LLVMOpcode, LLVMValueRef, LLVMTypeRef, Name) -> LLVMValueRef;
    core => LLVMBuildFreeze(LLVMBuilderRef, LLVMValueRef, Name) -> LLVMValueRef;
    core => LLVMBuildExtractElement(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, Name) -> LLVMValueRef;
    core => LLVMBuildInsertElement(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, LLVMValueRef, Name) -> LLVMValueRef;
    core => LLVMBuildShuffleVector(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, LLVMValueRef, Name) -> LLVMValueRef;
    core => LLVMBuildExtractValue(LLVMBuilderRef, LLVMValueRef, c_uint, Name) -> LLVMValueRef;
    core => LLVMBuildAlloca(LLVMBuilderRef, LLVMTypeRef, Name) -> LLVMValueRef;
    core => LLVMBuildLoad2(LLVMBuilderRef, LLVMTypeRef, LLVMValueRef, Name) -> LLVMValueRef;
    core => LLVMBuildStore(LLVMBuilderRef, LLVMValueRef, LLVMValueRef) -> LLVMValueRef;
    core => LLVMSetVolatile(LLVMValueRef, LLVMBool);
    core => LLVMSetOrdering(LLVMValueRef, LLVMAtomicOrdering);
    core => LLVMBuildFence(LLVMBuilderRef, LLVMAtomicOrdering, LLVMBool, Name) -> LLVMValueRef;
    core => LLVMBuildAtomicRMW(
        LLVMBuilderRef, LLVMAtomicRMWBinOp, LLVMValueRef, LLVMValueRef, LLVMAtomicOrdering, LLVMBool
    ) -> LLVMValueRef;
    core => LLVMBuildAtomicCmpXchg(
        LLVMBuilderRef, LLVMValueRef, LLVMValueRef, LLVMValueRef, LLVMAtomicOrdering, LLVMAtomicOrdering, LLVMBool
    ) -> LLVMValueRef;
    core => LLVMBuildGEP2(LLVMBuilderRef, LLVMTypeRef, LLVMValueRef, *mut LLVMValueRef, c_uint, Name) -> LLVMValueRef;
    core => LLVMLookupIntrinsicID(Name, usize) -> c_uint;
    core => LLVMGetIntrinsicDeclaration(LLVMModuleRef, c_uint, *mut LLVMTypeRef, usize) -> LLVMValueRef;
    core => LLVMIntrinsicGetType(LLVMContextRef, c_uint, *mut LLVMTypeRef, usize) -> LLVMTypeRef;
    core => LLVMBuildCall2(LLVMBuilderRef, LLVMTypeRef, LLVMValueRef, *mut LLVMValueRef, c_uint, Name) -> LLVMValueRef;
    core => LLVMGetInlineAsm(
        LLVMTypeRef, Name, usize, Name, usize, LLVMBool, LLVMBool, LLVMInlineAsmDialect, LLVMBool
    ) -> LLVMValueRef;
    core => LLVMBuildBr(LLVMBuilderRef, LLVMBasicBlockRef) -> LLVMValueRef;
    core => LLVMBuildCondBr(LLVMBuilderRef, LLVMValueRef, LLVMBasicBlockRef, LLVMBasicBlockRef) -> LLVMValueRef;
    core => LLVMBuildSwitch(LLVMBuilderRef, LLVMValueRef, LLVMBasicBlockRef, c_uint) -> LLVMValueRef;
    core => LLVMAddCase(LLVMValueRef, LLVMValueRef, LLVMBasicBlockRef);
    core => LLVMBuildPhi(LLVMBuilderRef, LLVMTypeRef, Name) -> LLVMValueRef;
    core => LLVMAddIncoming(LLVMValueRef, *mut LLVMValueRef, *mut LLVMBasicBlockRef, c_uint);
    core => LLVMBuildRet(LLVMBuilderRef, LLVMValueRef) -> LLVMValueRef;
    core => LLVMBuildRetVoid(LLVMBuilderRef) -> LLVMValueRef;
    core => LLVMBuildUnreachable(LLVMBuilderRef) -> LLVMValueRef;
    core => LLVMGetMDKindIDInContext(LLVMContextRef, Name, c_uint) -> c_uint;
    core => LLVMMDStringInContext2(LLVMContextRef, Name, usize) -> LLVMMetadataRef;
    core => LLVMMDNodeInContext2(LLVMContextRef, *mut LLVMMetadataRef, usize) -> LLVMMetadataRef;
    core => LLVMValueAsMetadata(LLVMValueRef) -> LLVMMetadataRef;
    core => LLVMMetadataAsValue(LLVMContextRef, LLVMMetadataRef) -> LLVMValueRef;
    core => LLVMSetMetadata(LLVMValueRef, c_uint, LLVMValueRef);
    core => LLVMCreateMemoryBufferWithMemoryRangeCopy(Name, usize, Name) -> LLVMMemoryBufferRef;
    core => LLVMGetBufferStart(LLVMMemoryBufferRef) -> Name;
    core => LLVMGetBufferSize(LLVMMemoryBufferRef) -> usize;
    core => LLVMDisposeMemoryBuffer(LLVMMemoryBufferRef);
    core => LLVMContextSetDiagnosticHandler(LLVMContextRef, LLVMDiagnosticHandler, *mut c_void);
    core => LLVMGetDiagInfoDescription(LLVMDiagnosticInfoRef) -> *mut c_char;
    core => LLVMGetDiagInfoSeverity(LLVMDiagnosticInfoRef) -> LLVMDiagnosticSeverity;
    core => LLVMGetFirstFunction(LLVMModuleRef) -> LLVMValueRef;
    core => LLVMGetNextFunction(LLVMValueRef) -> LLVMValueRef;
    core => LLVMGetFirstBasicBlock(LLVMValueRef) -> LLVMBasicBlockRef;
    core => LLVMGetNextBasicBlock(LLVMBasicBlockRef) -> LLVMBasicBlockRef;
    core => LLVMGetFirstInstruction(LLVMBasicBlockRef) -> LLVMValueRef;
    analysis => LLVMVerifyModule(LLVMModuleRef, LLVMVerifierFailureAction, *mut *mut c_char) -> LLVMBool;
    error => LLVMGetErrorMessage(LLVMErrorRef) -> *mut c_char;
    error => LLVMDisposeErrorMessage(*mut c_char);
    target => LLVMCopyStringRepOfTargetData(LLVMTargetDataRef) -> *mut c_char;
    target => LLVMDisposeTargetData(LLVMTargetDataRef);
    target_machine => LLVMGetDefaultTargetTriple() -> *mut c_char;
    target_machine => LLVMGetHostCPUName() -> *mut c_char;
    target_machine => LLVMGetHostCPUFeatures() -> *mut c_char;
    target_machine => LLVMGetTargetFromTriple(Name, *mut LLVMTargetRef, *mut *mut c_char) -> LLVMBool;
    target_machine => LLVMCreateTargetMachineOptions() -> LLVMTargetMachineOptionsRef;
    target_machine => LLVMDisposeTargetMachineOptions(LLVMTargetMachineOptionsRef);
    target_machine => LLVMTargetMachineOptionsSetCPU(LLVMTargetMachineOptionsRef, Name);
    target_machine => LLVMTargetMachineOptionsSetFeatures(LLVMTargetMachineOptionsRef, Name);
    target_machine => LLVMTargetMachineOptionsSetCodeGenOptLevel(LLVMTargetMachineOptionsRef, LLVMCodeGenOptLevel);
    target_machine => LLVMTargetMachineOptionsSetRelocMode(LLVMTargetMachineOptionsRef, LLVMRelocMode);
    target_machine => LLVMTargetMachineOptionsSetCodeModel(LLVMTargetMachineOptionsRef, LLVMCodeModel);
    target_machine => LLVMCreateTargetMachineWithOptions(LLVMTargetRef, Name, LLVMTargetMachineOptionsRef) -> LLVMTargetMachineRef;
    target_machine => LLVMDisposeTargetMachine(LLVMTargetMachineRef);
    target_machine => LLVMCreateTargetDataLayout(LLVMTargetMachineRef) -> LLVMTargetDataRef;
    target_machine => LLVMTargetMachineEmitToMemoryBuffer(
        LLVMTargetMachineRef, LLVMModuleRef, LLVMCodeGenFileType, *mut *mut c_char, *mut LLVMMemoryBufferRef
    ) -> LLVMBool;
    orc2::lljit => LLVMOrcCreateLLJIT(*mut LLVMOrcLLJITRef, LLVMOrcLLJITBuilderRef) -> LLVMErrorRef;
    orc2::lljit => LLVMOrcLLJITGetExecutionSession(LLVMOrcLLJITRef) -> LLVMOrcExecutionSessionRef;
    orc2::lljit => LLVMOrcLLJITMangleAndIntern(LLVMOrcLLJITRef, Name) -> LLVMOrcSymbolStringPoolEntryRef;
    orc2::lljit => LLVMOrcLLJITAddObjectFile(LLVMOrcLLJITRef, LLVMOrcJITDylibRef, LLVMMemoryBufferRef) -> LLVMErrorRef;
    orc2 => LLVMOrcExecutionSessionCreateBareJITDylib(LLVMOrcExecutionSessionRef, Name) -> LLVMOrcJITDylibRef;
    orc2 => LLVMOrcJITDylibClear(LLVMOrcJITDylibRef) -> LLVMErrorRef;
    orc2 => LLVMOrcJITDylibDefine(LLVMOrcJITDylibRef, LLVMOrcMaterializationUnitRef) -> LLVMErrorRef;
    orc2 => LLVMOrcAbsoluteSymbols(LLVMOrcCSymbolMapPairs, usize) -> LLVMOrcMaterializationUnitRef;
    orc2 => LLVMOrcExecutionSessionLookup(
        LLVMOrcExecutionSessionRef, LLVMOrcLookupKind, LLVMOrcCJITDylibSearchOrder, usize, LLVMOrcCLookupSet, usize,
        LLVMOrcExecutionSessionLookupHandleResultFunction, *mut c_void
    );
}

/// The functions that register LLVM's target for the architecture that this program runs on.
#[cfg(target_arch = "x86_64")]
const INITIALISE: [&str; 5] = [
    "LLVMInitializeX86TargetInfo",
    "LLVMInitializeX86Target",
    "LLVMInitializeX86TargetMC",
    "LLVMInitializeX86AsmPrinter",
    // Needed for prefetches, which are inline assembly.
    "LLVMInitializeX86AsmParser",
];
#[cfg(target_arch = "aarch64")]
const INITIALISE: [&str; 4] = [
    "LLVMInitializeAArch64TargetInfo",
    "LLVMInitializeAArch64Target",
    "LLVMInitializeAArch64TargetMC",
    "LLVMInitializeAArch64AsmPrinter",
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const INITIALISE: [&str; 0] = [];

static API: OnceLock<Result<Api, Error>> = OnceLock::new();

/// The functions of LLVM, loaded on the first call.
///
/// # Errors
/// No library was found, it is not LLVM 22, or it lacks a function or the target of this machine.
pub(super) fn load() -> Result<&'static Api, Error> {
    API.get_or_init(|| {
        let library = open()?;
        let api = Api::find(&library)?;
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: the function writes to three live integers; its signature is the same in every LLVM that
        // has it.
        unsafe { (api.LLVMGetVersion)(&mut major, &mut minor, &mut patch) };
        if major != 22 {
            return Err(Error::new(format!(
                "LLVM 22 is needed, the library found is {major}.{minor}.{patch}"
            )));
        }
        for name in INITIALISE {
            // SAFETY: in every LLVM these functions have no parameters and no result.
            let function = unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) };
            let function = function.map_err(|_| {
                Error::new(format!("this LLVM has no code generator for this machine ({name})"))
            })?;
            // SAFETY: as above; `OnceLock` allows one thread at a time.
            unsafe { function() };
        }
        // LLVM is never unloaded: compiled code and its tables outlive this function.
        std::mem::forget(library);
        Ok(api)
    })
    .as_ref()
    .map_err(Clone::clone)
}

/// The LLVM library of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Major, minor and patch number.
    pub version: (u32, u32, u32),
    /// The file that it was loaded from, if the system tells.
    pub library: String,
}

/// The LLVM library that this process uses; loads it.
///
/// # Errors
/// As compiling would report: there is no library, or it is not the right one.
pub fn about() -> Result<About, Error> {
    let api = load()?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the function writes to three integers that live until the call ends.
    unsafe { (api.LLVMGetVersion)(&mut major, &mut minor, &mut patch) };
    let place = places()?.into_iter().next().map_or_else(String::new, |place| place.display().to_string());
    Ok(About { version: (major, minor, patch), library: loaded_file().unwrap_or(place) })
}

/// The file of the loaded library, from the process's memory map.
fn loaded_file() -> Option<String> {
    let address = address_in_library()?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let inside = (number(start)?..number(end)?).contains(&address);
        inside.then(|| rest.find('/').map(|at| rest[at..].to_owned()))?
    })
}

/// An address in LLVM's code, if it is loaded.
pub(super) fn address_in_library() -> Option<usize> {
    let api = API.get()?.as_ref().ok()?;
    Some(api.LLVMGetVersion as *const () as usize)
}

/// The functions of LLVM, for code that holds an object that LLVM created.
pub(super) fn api() -> &'static Api {
    load().expect("LLVM is loaded before anything is made with it")
}

/// The file name of the library in packages.
const FILE: &str = "libLLVM.so.22.1";

/// The paths at which the library is looked for: `PTXVM_LLVM`; or else next to this program or library, where
/// the build found it, and on the system's search path.
fn places() -> Result<Vec<PathBuf>, Error> {
    if let Some(chosen) = std::env::var_os("PTXVM_LLVM") {
        let chosen = PathBuf::from(chosen);
        let places = [chosen.clone(), chosen.join(FILE), chosen.join("lib").join(FILE)];
        let place = places.into_iter().find(|place| place.is_file());
        let none = || Error::new(format!("PTXVM_LLVM is {}, where no LLVM 22 is", chosen.display()));
        return Ok(vec![place.ok_or_else(none)?]);
    }
    let mut places = super::beside::places(FILE);
    places.push(PathBuf::from(env!("PTXVM_LLVM_DEFAULT")));
    places.push(PathBuf::from(FILE));
    places.push(Path::new("/usr/lib/llvm-22/lib").join(FILE));
    places.push(Path::new("/usr/lib64/llvm22/lib64").join(FILE));
    places.retain(|place| place.as_os_str() == FILE || place.is_file());
    Ok(places)
}

/// The library that will be loaded, as far as this can be found without loading it: its path, size and time.
pub(crate) fn library() -> &'static str {
    static LIBRARY: OnceLock<String> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let Some(place) = places().ok().and_then(|places| places.into_iter().next()) else {
            return "none".to_owned();
        };
        let file = std::fs::metadata(&place).ok();
        let time = file.as_ref().and_then(|file| file.modified().ok());
        format!("{} {:?} {time:?}", place.display(), file.map(|file| file.len()))
    })
}

/// Opens the library.
fn open() -> Result<Library, Error> {
    let mut tried = Vec::new();
    for place in places()? {
        match open_at(&place) {
            Ok(library) => return Ok(library),
            Err(e) => tried.push(format!("{}: {e}", place.display())),
        }
    }
    Err(Error::new(format!(
        "no LLVM 22 library was found (set PTXVM_LLVM to one, or to a prefix that holds one); {}",
        tried.join("; ")
    )))
}

#[cfg(unix)]
fn open_at(place: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::unix;
    // SAFETY: the constructors of LLVM's library only fill its own tables. Its symbols stay local to it.
    let library = unsafe { unix::Library::open(Some(place), unix::RTLD_LAZY | unix::RTLD_LOCAL) };
    library.map(Into::into)
}

#[cfg(not(unix))]
fn open_at(place: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: the constructors of LLVM's library only fill its own tables.
    unsafe { Library::new(place) }
}

/// Calls a function of LLVM. The arguments are handles of one live module or session, in LLVM's types.
macro_rules! call {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        let function = $crate::llvm::api::api().$name;
        // SAFETY: the signature is LLVM's; handles come from live modules and sessions only (the invariant of
        // this layer), and pointers are to memory that lives during the call.
        unsafe { function($($arg),*) }
    }};
}
pub(super) use call;

/// Copies a message of LLVM and frees the original.
pub(super) fn take_message(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: LLVM's messages are C strings that live until they are disposed.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    call!(LLVMDisposeMessage(message));
    text
}

/// Converts an error of LLVM.
pub(super) fn check(error: LLVMErrorRef) -> Result<(), Error> {
    if error.is_null() {
        return Ok(());
    }
    let message = call!(LLVMGetErrorMessage(error));
    // SAFETY: a C string that lives until it is disposed.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    call!(LLVMDisposeErrorMessage(message));
    Err(Error(text))
}

/// A truth value in LLVM's type.
pub(super) fn llvm_bool(value: bool) -> c_int {
    c_int::from(value)
}
