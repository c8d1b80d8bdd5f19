//! Opens the library as programs do and calls its functions by name, with C's types. The driver runs the
//! compiled code.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

pub(crate) const SUCCESS: c_int = 0;

/// The path of a library that cargo built.
pub(crate) fn library_path(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("a test lies in a folder");
    let places = [deps.join(name), deps.join("..").join(name)];
    places.into_iter().find(|path| path.exists()).expect("cargo built the library")
}

fn open(name: &str) -> libloading::Library {
    // SAFETY: a library of this workspace.
    unsafe { libloading::Library::new(library_path(name)) }.expect("it can be opened")
}

pub(crate) fn nvrtc() -> &'static libloading::Library {
    static LIBRARY: OnceLock<libloading::Library> = OnceLock::new();
    LIBRARY.get_or_init(|| open("libptxvm_nvrtc.so"))
}

pub(crate) fn driver() -> &'static libloading::Library {
    static LIBRARY: OnceLock<libloading::Library> = OnceLock::new();
    LIBRARY.get_or_init(|| open("libptxvm_cuda.so"))
}

/// Calls a function by its name. All its parameters are numbers or pointers.
macro_rules! call {
    ($library:ident $name:expr $(, $argument:expr)*) => {{
        type Function = unsafe extern "C" fn($($crate::support::call!(@ $argument)),*) -> std::ffi::c_int;
        // SAFETY: the function has this type if every argument is as wide as a register, as in C's calling
        // convention.
        let function = unsafe { $crate::support::$library().get::<Function>($name) }.expect("it is exported");
        // SAFETY: each argument has the meaning that the function's header states.
        unsafe { function($($crate::support::Argument::raw($argument)),*) }
    }};
    (@ $argument:expr) => { usize };
}
pub(crate) use call;

/// A type that can be an argument.
pub(crate) trait Argument {
    fn raw(self) -> usize;
}

impl Argument for usize {
    fn raw(self) -> usize {
        self
    }
}

impl Argument for i32 {
    fn raw(self) -> usize {
        self as usize
    }
}

impl<T> Argument for &mut T {
    fn raw(self) -> usize {
        std::ptr::from_mut(self).expose_provenance()
    }
}

impl Argument for &CStr {
    fn raw(self) -> usize {
        self.as_ptr().expose_provenance()
    }
}

impl Argument for &[*const c_char] {
    fn raw(self) -> usize {
        self.as_ptr().expose_provenance()
    }
}

/// Null-terminated texts and pointers to them.
pub(crate) struct Texts(Vec<CString>, pub(crate) Vec<*const c_char>);

impl Texts {
    pub(crate) fn new(texts: &[&str]) -> Self {
        let texts: Vec<_> = texts.iter().map(|text| CString::new(*text).expect("no zero")).collect();
        let pointers = texts.iter().map(|text| text.as_ptr()).collect();
        Self(texts, pointers)
    }
}

/// A program, destroyed with its value.
pub(crate) struct Program(pub(crate) usize);

impl Program {
    pub(crate) fn new(text: &str) -> Self {
        Self::with(text, "kernel.cu", &[])
    }

    /// A program with headers, given as names and texts.
    pub(crate) fn with(text: &str, name: &str, headers: &[(&str, &str)]) -> Self {
        let (text, name) = (CString::new(text).expect("no zero"), CString::new(name).expect("no zero"));
        let names = Texts::new(&headers.iter().map(|header| header.0).collect::<Vec<_>>());
        let texts = Texts::new(&headers.iter().map(|header| header.1).collect::<Vec<_>>());
        let mut program = 0usize;
        let count = headers.len();
        let status = call!(nvrtc "nvrtcCreateProgram", &mut program, text.as_c_str(), name.as_c_str(), count, &texts.1[..], &names.1[..]);
        assert_eq!(status, SUCCESS);
        Self(program)
    }

    pub(crate) fn add(&self, expression: &str) {
        let expression = CString::new(expression).expect("no zero");
        assert_eq!(call!(nvrtc "nvrtcAddNameExpression", self.0, expression.as_c_str()), SUCCESS);
    }

    pub(crate) fn compile(&self, options: &[&str]) -> c_int {
        let options = Texts::new(options);
        call!(nvrtc "nvrtcCompileProgram", self.0, options.1.len(), &options.1[..])
    }

    /// Compiles the program, which must succeed.
    pub(crate) fn compiled(self, options: &[&str]) -> Self {
        let status = self.compile(options);
        assert_eq!(status, SUCCESS, "{}", self.log());
        self
    }

    pub(crate) fn lowered(&self, expression: &str) -> Result<String, c_int> {
        let expression = CString::new(expression).expect("no zero");
        let mut name: *const c_char = std::ptr::null();
        match call!(nvrtc "nvrtcGetLoweredName", self.0, expression.as_c_str(), &mut name) {
            // SAFETY: the function returned a null-terminated text.
            SUCCESS => Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()),
            status => Err(status),
        }
    }

    /// The bytes that a pair of functions for size and content returns, with the final zero.
    pub(crate) fn bytes(&self, size: &str, get: &str) -> Result<Vec<u8>, c_int> {
        let mut bytes = 0usize;
        match call!(nvrtc size, self.0, &mut bytes) {
            SUCCESS => {}
            status => return Err(status),
        }
        let mut text = vec![0xaau8; bytes + 1];
        match call!(nvrtc get, self.0, &mut text[0]) {
            SUCCESS => {}
            status => return Err(status),
        }
        assert_eq!(text.pop(), Some(0xaa), "nothing is written beyond the size");
        Ok(text)
    }

    fn text(&self, size: &str, get: &str) -> Result<String, c_int> {
        let mut bytes = self.bytes(size, get)?;
        assert_eq!(bytes.pop(), Some(0));
        Ok(String::from_utf8(bytes).expect("UTF-8"))
    }

    pub(crate) fn ptx(&self) -> Result<String, c_int> {
        self.text("nvrtcGetPTXSize", "nvrtcGetPTX")
    }

    pub(crate) fn log(&self) -> String {
        self.text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog").expect("there is a log")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        assert_eq!(call!(nvrtc "nvrtcDestroyProgram", &mut self.0), SUCCESS);
        assert_eq!(self.0, 0);
    }
}

/// Whether there is a clang; prints that the test is skipped if there is none.
pub(crate) fn has_clang() -> bool {
    let names = (19..=30).rev().map(|version| format!("clang-{version}")).chain(["clang".to_owned()]);
    let named = std::env::var("PTXVM_CLANG").into_iter();
    let found = named.chain(names).any(|name| Command::new(name).arg("--version").output().is_ok());
    if !found {
        println!("skipped: there is no clang");
    }
    found
}

/// Runs a test again in a process of its own with these variables. Returns whether this is that process.
pub(crate) fn is_alone_with(test: &str, variables: &[(&str, &str)]) -> bool {
    const MARK: &str = "PTXVM_NVRTC_TEST";
    if std::env::var(MARK).is_ok_and(|mark| mark == test) {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().expect("a test has a path"));
    command.args([test, "--exact", "--nocapture"]).env(MARK, test);
    for name in ["PTXVM_CLANG", "PTXVM_NVRTC", "CUDA_PATH", "CUDA_HOME"] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().expect("it starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// A loaded module and its device memory.
pub(crate) struct Module(usize);

impl Module {
    /// Loads a compiled program with the driver.
    pub(crate) fn load(image: &[u8]) -> Self {
        static CONTEXT: OnceLock<usize> = OnceLock::new();
        let context = *CONTEXT.get_or_init(|| {
            let mut context = 0usize;
            assert_eq!(call!(driver "cuInit", 0usize), SUCCESS);
            assert_eq!(call!(driver "cuDevicePrimaryCtxRetain", &mut context, 0usize), SUCCESS);
            context
        });
        assert_eq!(call!(driver "cuCtxSetCurrent", context), SUCCESS);
        let mut module = 0usize;
        let at = image.as_ptr().expose_provenance();
        assert_eq!(call!(driver "cuModuleLoadData", &mut module, at), SUCCESS);
        Self(module)
    }

    /// Runs a kernel of one CTA on values in device memory, and returns the values afterwards.
    pub(crate) fn run<T: Copy>(&self, name: &str, threads: usize, values: &[T]) -> Vec<T> {
        let name = CString::new(name).expect("no zero");
        let (mut function, mut memory) = (0usize, 0usize);
        assert_eq!(call!(driver "cuModuleGetFunction", &mut function, self.0, name.as_c_str()), SUCCESS);
        let bytes = size_of_val(values);
        assert_eq!(call!(driver "cuMemAlloc_v2", &mut memory, bytes), SUCCESS);
        assert_eq!(
            call!(driver "cuMemcpyHtoD_v2", memory, values.as_ptr().expose_provenance(), bytes),
            SUCCESS
        );
        let mut list: [*mut c_void; 1] = [(&raw mut memory).cast()];
        let status = call!(driver "cuLaunchKernel", function, 1usize, 1usize, 1usize, threads, 1usize, 1usize, 0usize, 0usize, &mut list[0], 0usize);
        assert_eq!(status, SUCCESS);
        let mut results = values.to_vec();
        assert_eq!(call!(driver "cuMemcpyDtoH_v2", &mut results[0], memory, bytes), SUCCESS);
        assert_eq!(call!(driver "cuMemFree_v2", memory), SUCCESS);
        results
    }
}
