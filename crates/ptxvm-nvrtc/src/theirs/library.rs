//! NVIDIA's library, opened at run time. All `unsafe` for calling it is here.
//!
//! Invariant: texts passed to the library live as long as the call; buffers have the size that the library
//! states.

use crate::status::Status;
use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;

/// The library's `nvrtcProgram`.
type Raw = usize;
type List = *const *const c_char;
type Size = unsafe extern "C" fn(Raw, *mut usize) -> Status;
type Give = unsafe extern "C" fn(Raw, *mut c_char) -> Status;

/// The functions that this crate calls.
pub(super) struct Library {
    create: unsafe extern "C" fn(*mut Raw, *const c_char, *const c_char, c_int, List, List) -> Status,
    destroy: unsafe extern "C" fn(*mut Raw) -> Status,
    compile: unsafe extern "C" fn(Raw, c_int, List) -> Status,
    add: unsafe extern "C" fn(Raw, *const c_char) -> Status,
    lowered: unsafe extern "C" fn(Raw, *const c_char, *mut *const c_char) -> Status,
    ptx_size: Size,
    ptx: Give,
    log_size: Size,
    log: Give,
    _open: Handle,
}

/// A symbol by which this library recognizes itself under any file name.
#[unsafe(no_mangle)]
extern "C" fn ptxvm_nvrtc_is_ours() {}

impl Library {
    /// Opens the library.
    ///
    /// # Errors
    /// The loader's message, or the name of a missing function.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        // SAFETY: the user named this library; its constructors are trusted.
        let open = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let open = open.map_err(|error| error.to_string())?;
        macro_rules! function {
            ($name:literal as $ty:ty) => {{
                // SAFETY: the type is that of the function in NVIDIA's public header.
                let symbol = unsafe { open.get::<$ty>($name) };
                *symbol.map_err(|error| error.to_string())?
            }};
        }
        // SAFETY: the type is that of our function.
        if unsafe { open.get::<extern "C" fn()>("ptxvm_nvrtc_is_ours") }.is_ok() {
            return Err("this is ptxvm's own library; expected NVIDIA's".to_owned());
        }
        Ok(Self {
            create: function!("nvrtcCreateProgram" as unsafe extern "C" fn(_, _, _, _, _, _) -> _),
            destroy: function!("nvrtcDestroyProgram" as unsafe extern "C" fn(_) -> _),
            compile: function!("nvrtcCompileProgram" as unsafe extern "C" fn(_, _, _) -> _),
            add: function!("nvrtcAddNameExpression" as unsafe extern "C" fn(_, _) -> _),
            lowered: function!("nvrtcGetLoweredName" as unsafe extern "C" fn(_, _, _) -> _),
            ptx_size: function!("nvrtcGetPTXSize" as Size),
            ptx: function!("nvrtcGetPTX" as Give),
            log_size: function!("nvrtcGetProgramLogSize" as Size),
            log: function!("nvrtcGetProgramLog" as Give),
            _open: open,
        })
    }

    /// Creates a program. The texts of both lists are null-terminated, and the lists have equal lengths.
    pub(super) fn create(
        &self,
        text: &CStr,
        name: &CStr,
        headers: &Texts,
        names: &Texts,
    ) -> Result<Program<'_>, Status> {
        let mut raw = 0;
        let count = headers.len().min(names.len()) as c_int;
        // SAFETY: the texts live as long as the call, and the count is the length of each list.
        let status = unsafe {
            (self.create)(&raw mut raw, text.as_ptr(), name.as_ptr(), count, headers.list(), names.list())
        };
        ok(status)?;
        Ok(Program { library: self, raw })
    }
}

/// A program of NVIDIA's library.
pub(super) struct Program<'a> {
    library: &'a Library,
    raw: Raw,
}

impl Program<'_> {
    /// Adds a name expression.
    pub(super) fn add(&self, expression: &CStr) -> Result<(), Status> {
        // SAFETY: the program was created and not destroyed, and the text is null-terminated.
        ok(unsafe { (self.library.add)(self.raw, expression.as_ptr()) })
    }

    /// Compiles the program.
    pub(super) fn compile(&self, options: &Texts) -> Status {
        // SAFETY: the program was created and not destroyed, and the count is the length of the list.
        unsafe { (self.library.compile)(self.raw, options.len() as c_int, options.list()) }
    }

    /// The mangled name of an expression.
    pub(super) fn lowered(&self, expression: &CStr) -> Option<String> {
        let mut name = std::ptr::null();
        // SAFETY: the program was created and not destroyed, the text is null-terminated, and `name` receives
        // a pointer.
        let status = unsafe { (self.library.lowered)(self.raw, expression.as_ptr(), &raw mut name) };
        if status != Status::SUCCESS || name.is_null() {
            return None;
        }
        // SAFETY: the library returned a text that lives as long as the program.
        Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    /// The PTX.
    pub(super) fn ptx(&self) -> Result<String, Status> {
        self.text(self.library.ptx_size, self.library.ptx)
    }

    /// The messages.
    pub(super) fn log(&self) -> Result<String, Status> {
        self.text(self.library.log_size, self.library.log)
    }

    fn text(&self, size: Size, give: Give) -> Result<String, Status> {
        let mut bytes = 0;
        // SAFETY: the program was created and not destroyed, and `bytes` receives a number.
        ok(unsafe { size(self.raw, &raw mut bytes) })?;
        let mut text = vec![0u8; bytes];
        // SAFETY: the buffer has as many bytes as the library said that it writes.
        ok(unsafe { give(self.raw, text.as_mut_ptr().cast()) })?;
        while text.last() == Some(&0) {
            text.pop();
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the program was created, and is not used after this call.
        let _cannot_help = unsafe { (self.library.destroy)(&raw mut self.raw) };
    }
}

/// Null-terminated texts and a list of pointers to them.
pub(super) struct Texts {
    texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Texts {
    /// Copies texts that contain no zeros.
    pub(super) fn new<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Result<Self, Status> {
        let texts: Result<Vec<_>, _> = texts.map(CString::new).collect();
        let texts = texts.map_err(|_| Status::INVALID_INPUT)?;
        let pointers = texts.iter().map(|text| text.as_ptr()).collect();
        Ok(Self { texts, pointers })
    }

    /// The texts.
    pub(super) fn texts(&self) -> &[CString] {
        &self.texts
    }

    fn len(&self) -> usize {
        self.pointers.len()
    }

    fn list(&self) -> List {
        self.pointers.as_ptr()
    }
}

fn ok(status: Status) -> Result<(), Status> {
    if status == Status::SUCCESS { Ok(()) } else { Err(status) }
}
