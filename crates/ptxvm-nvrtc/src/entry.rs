//! The functions that C calls.
//!
//! Invariant: each catches panics, checks its pointers, and answers with a status.

use crate::ffi::{Callback, CallbackFunction, In, Out, Text, text};
use crate::options::{ARCHITECTURES, OLD_ARCHITECTURES};
use crate::program::{self, Handle, Program, Source};
use crate::status::{Answer, Status};
use crate::{log, settings};
use std::ffi::{c_char, c_int, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Most headers or options of a call. Chosen: more than programs have.
const LIST_MAX: c_int = 1 << 16;
/// The size that NVRTC reports for its heap for precompiled headers. Nothing is kept in it here.
const HEAP: usize = 256 << 20;

/// Runs the body of a function.
fn enter(name: &str, body: impl FnOnce() -> Answer) -> Status {
    let status = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::SUCCESS,
        Ok(Err(status)) => status,
        Err(_) => {
            log::say(&format!(
                "ptxvm bug: `{name}` panicked; please report it with the program and this text"
            ));
            Status::INTERNAL_ERROR
        }
    };
    log::call(name, status);
    status
}

/// Defines exported functions that return a status.
macro_rules! functions {
    ($($(#[doc = $doc:literal])+ fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[doc = $doc])+
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $ty),*) -> Status {
            enter(stringify!($name), move || $body)
        }
    )*};
}

/// Writes the number of bytes that [`give`] writes; 0 for no text.
fn size(text: Option<&str>, place: Out<usize>) -> Answer {
    place.set(text.map_or(0, |text| text.len() + 1))
}

/// Writes a text and its final zero to memory that the caller made large enough.
fn give(text: &str, place: Out<u8>) -> Answer {
    place.set_all(&[text.as_bytes(), b"\0"].concat())
}

/// The architectures that the library lists, which depend on the version that it reports.
fn architectures() -> Vec<c_int> {
    let old = if settings::version().0 >= 13 { &[] } else { OLD_ARCHITECTURES };
    [old, ARCHITECTURES].concat()
}

/// The texts of a list.
fn texts(count: c_int, list: In<Text>) -> Answer<Vec<Vec<u8>>> {
    if !(0..=LIST_MAX).contains(&count) {
        return Err(Status::INVALID_INPUT);
    }
    list.all(count as usize)?.into_iter().map(Text::get).collect()
}

/// A text that must be UTF-8.
fn characters(text: Text) -> Answer<String> {
    String::from_utf8(text.get()?).map_err(|_| Status::INVALID_INPUT)
}

/// The name of a status.
#[unsafe(no_mangle)]
extern "C" fn nvrtcGetErrorString(status: Status) -> *const c_char {
    text(status.name())
}

functions! {
    /// The version.
    fn nvrtcVersion(major: Out<c_int>, minor: Out<c_int>) {
        let version = settings::version();
        major.set(version.0)?;
        minor.set(version.1)
    }

    /// How many architectures there are.
    fn nvrtcGetNumSupportedArchs(count: Out<c_int>) {
        count.set(architectures().len() as c_int)
    }

    /// The architectures.
    fn nvrtcGetSupportedArchs(list: Out<c_int>) {
        list.set_all(&architectures())
    }

    /// Makes a program of its text, its headers and their names.
    fn nvrtcCreateProgram(
        program: Out<Handle>, source: Text, name: Text, count: c_int, headers: In<Text>, names: In<Text>,
    ) {
        let name = if name.is_null() { Vec::new() } else { name.get()? };
        let name = if name.is_empty() { b"default_program".to_vec() } else { name };
        let headers = texts(count, names)?.into_iter().zip(texts(count, headers)?).collect();
        let source = Source { text: source.get()?, name, headers, expressions: Vec::new() };
        let handle = program::insert(Program::new(source));
        program.set(handle).inspect_err(|_| {
            let _was_inserted = program::remove(handle);
        })
    }

    /// Ends a program, and clears the handle.
    fn nvrtcDestroyProgram(program: Out<Handle>) {
        program::remove(program.get()?)?;
        program.set(Handle::NULL)
    }

    /// Compiles a program.
    fn nvrtcCompileProgram(program: Handle, count: c_int, options: In<Text>) {
        program::on(program, |program| program.compile(&texts(count, options)?))
    }

    /// The size of the PTX in bytes.
    fn nvrtcGetPTXSize(program: Handle, bytes: Out<usize>) {
        program::on(program, |program| size(Some(program.ptx()?), bytes))
    }

    /// The PTX.
    fn nvrtcGetPTX(program: Handle, place: Out<u8>) {
        program::on(program, |program| give(program.ptx()?, place))
    }

    /// The size in bytes of the result for a device, which is PTX too; 0 if the program was compiled for a
    /// virtual architecture.
    fn nvrtcGetCUBINSize(program: Handle, bytes: Out<usize>) {
        program::on(program, |program| size(program.machine_code()?, bytes))
    }

    /// The result for a device, which is PTX too.
    fn nvrtcGetCUBIN(program: Handle, place: Out<u8>) {
        program::on(program, |program| give(program.machine_code()?.ok_or(Status::INVALID_PROGRAM)?, place))
    }

    /// The size of the representation for link-time optimisation, which this library does not make.
    fn nvrtcGetLTOIRSize(program: Handle, bytes: Out<usize>) {
        program::on(program, |program| program.ptx().and_then(|_| bytes.set(0)))
    }

    /// The representation for link-time optimisation, which this library does not make.
    fn nvrtcGetLTOIR(program: Handle, _place: Out<u8>) {
        program::on(program, |_| Err(Status::INVALID_PROGRAM))
    }

    /// The same as `nvrtcGetLTOIRSize`, under its earlier name.
    fn nvrtcGetNVVMSize(program: Handle, bytes: Out<usize>) {
        program::on(program, |program| program.ptx().and_then(|_| bytes.set(0)))
    }

    /// The same as `nvrtcGetLTOIR`, under its earlier name.
    fn nvrtcGetNVVM(program: Handle, _place: Out<u8>) {
        program::on(program, |_| Err(Status::INVALID_PROGRAM))
    }

    /// The size of the representation for OptiX, which this library does not make.
    fn nvrtcGetOptiXIRSize(program: Handle, bytes: Out<usize>) {
        program::on(program, |program| program.ptx().and_then(|_| bytes.set(0)))
    }

    /// The representation for OptiX, which this library does not make.
    fn nvrtcGetOptiXIR(program: Handle, _place: Out<u8>) {
        program::on(program, |_| Err(Status::INVALID_PROGRAM))
    }

    /// The size of the representation of tiles, which this library does not make.
    fn nvrtcGetTileIRSize(program: Handle, bytes: Out<usize>) {
        program::on(program, |program| program.ptx().and_then(|_| bytes.set(0)))
    }

    /// The representation of tiles, which this library does not make.
    fn nvrtcGetTileIR(program: Handle, _place: Out<u8>) {
        program::on(program, |_| Err(Status::INVALID_PROGRAM))
    }

    /// The size of the compiler's messages in bytes.
    fn nvrtcGetProgramLogSize(program: Handle, bytes: Out<usize>) {
        program::on(program, |program| size(Some(program.log()), bytes))
    }

    /// The compiler's messages.
    fn nvrtcGetProgramLog(program: Handle, place: Out<u8>) {
        program::on(program, |program| give(program.log(), place))
    }

    /// Names a kernel or variable whose mangled name is wanted.
    fn nvrtcAddNameExpression(program: Handle, expression: Text) {
        program::on(program, |program| program.add(characters(expression)?))
    }

    /// The mangled name of a name expression.
    fn nvrtcGetLoweredName(program: Handle, expression: Text, name: Out<*const c_char>) {
        program::on(program, |program| name.set(text(program.lowered(&characters(expression)?)?)))
    }

    /// Sets a function that is called during a compilation to ask whether to stop.
    fn nvrtcSetFlowCallback(program: Handle, function: CallbackFunction, payload: usize) {
        program::on(program, |program| {
            program.callback = Callback::new(function, payload);
            Ok(())
        })
    }

    /// The size of the heap for precompiled headers.
    fn nvrtcGetPCHHeapSize(bytes: Out<usize>) {
        bytes.set(HEAP)
    }

    /// Accepts a size for that heap, which is not used.
    fn nvrtcSetPCHHeapSize(_bytes: usize) {
        Ok(())
    }

    /// Reports whether headers were precompiled. They never are, which only costs time.
    fn nvrtcGetPCHCreateStatus(program: Handle) {
        program::on(program, |_| Err(Status::NO_PCH_CREATE_ATTEMPTED))
    }

    /// The size that the heap would need: zero.
    fn nvrtcGetPCHHeapSizeRequired(program: Handle, bytes: Out<usize>) {
        program::on(program, |_| bytes.set(0))
    }

    /// The headers that the library carries: none.
    fn nvrtcGetBundledHeadersInfo(info: Out<BundledHeaders>, message: Out<*const c_char>) {
        let _is_optional = message.set(std::ptr::null());
        let version = settings::version();
        info.set(BundledHeaders { version: [version.0, version.1], ..BundledHeaders::default() })
    }

    /// Writes the headers that the library carries. There are none.
    fn nvrtcInstallBundledHeaders(_path: Text, _flags: c_uint, message: Out<*const c_char>) {
        log::rejected("nvrtcInstallBundledHeaders is not supported: there are no headers to install");
        let _is_optional = message.set(text(c"there are no headers to install"));
        Err(Status::BUILTIN_OPERATION_FAILURE)
    }

    /// Removes installed headers. There are none.
    fn nvrtcRemoveBundledHeaders(_path: Text, message: Out<*const c_char>) {
        let _is_optional = message.set(text(c"there are no headers to remove"));
        Err(Status::BUILTIN_OPERATION_FAILURE)
    }
}

/// `nvrtcBundledHeadersInfo`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct BundledHeaders {
    available: c_int,
    compressed: usize,
    uncompressed: usize,
    version: [c_int; 2],
    files: c_uint,
}
