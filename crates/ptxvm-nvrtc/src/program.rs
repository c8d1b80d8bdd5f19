//! Programs and the results of their compilation.
//!
//! Invariant: a handle is a number that was never used before. Texts whose pointers were returned to C live
//! until their program is destroyed.

use crate::ffi::Callback;
use crate::options::{Architecture, Options};
use crate::status::{Answer, Status};
use crate::{clang, log, settings, theirs};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The input of a compilation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) text: Vec<u8>,
    /// The name of its file in messages.
    pub(crate) name: Vec<u8>,
    /// Names and texts.
    pub(crate) headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) expressions: Vec<String>,
}

/// The result of a compilation.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) status: Status,
    pub(crate) log: String,
    pub(crate) ptx: String,
    /// The symbol of each expression.
    pub(crate) lowered: Vec<Option<String>>,
}

impl Compiled {
    /// A failed compilation with only a message.
    pub(crate) fn failed(status: Status, mut log: String) -> Self {
        if !log.is_empty() && !log.ends_with('\n') {
            log.push('\n');
        }
        Self { status, log, ptx: String::new(), lowered: Vec::new() }
    }
}

/// One program.
#[derive(Default)]
pub(crate) struct Program {
    source: Source,
    pub(crate) callback: Option<Callback>,
    result: Option<Compiled>,
    /// Whether the last compilation was for a device (`sm_XX`).
    is_real: bool,
    /// Mangled names whose pointers C holds.
    given: HashMap<String, CString>,
}

impl Program {
    /// A program that was not compiled yet.
    pub(crate) fn new(source: Source) -> Self {
        Self { source, ..Self::default() }
    }

    /// Compiles it.
    pub(crate) fn compile(&mut self, given: &[Vec<u8>]) -> Answer {
        let options = Options::read(given, Architecture::default_of(settings::version()));
        let compiled = match options {
            Err(wrong) => {
                log::rejected(&format!("nvrtcCompileProgram: {wrong}"));
                Compiled::failed(Status::INVALID_OPTION, format!("nvrtc: error: {wrong}"))
            }
            Ok(options) => {
                self.is_real = options.architecture.is_real;
                if let Some(library) = theirs::wanted() {
                    theirs::compile(library, &self.source, given, options.architecture)
                } else if let Some(clang) = clang::compiler() {
                    clang::compile(clang, &self.source, &options, self.callback)
                } else if let Some(library) = theirs::installed() {
                    theirs::compile(library, &self.source, given, options.architecture)
                } else {
                    Compiled::failed(Status::BUILTIN_OPERATION_FAILURE, clang::missing())
                }
            }
        };
        let status = compiled.status;
        self.result = Some(compiled);
        if status == Status::SUCCESS { Ok(()) } else { Err(status) }
    }

    /// The log of the last compilation; empty before the first.
    pub(crate) fn log(&self) -> &str {
        self.result.as_ref().map_or("", |result| result.log.as_str())
    }

    fn compiled(&self) -> Answer<&Compiled> {
        self.result.as_ref().filter(|result| result.status == Status::SUCCESS).ok_or(Status::INVALID_PROGRAM)
    }

    /// The PTX.
    pub(crate) fn ptx(&self) -> Answer<&str> {
        Ok(&self.compiled()?.ptx)
    }

    /// The PTX in the place of machine code, if the program was compiled for a device. Our driver accepts PTX
    /// there.
    pub(crate) fn machine_code(&self) -> Answer<Option<&str>> {
        let ptx = self.ptx()?;
        Ok(self.is_real.then_some(ptx))
    }

    /// Adds a name expression.
    pub(crate) fn add(&mut self, expression: String) -> Answer {
        if self.result.is_some() {
            return Err(Status::NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
        }
        if !self.source.expressions.contains(&expression) {
            self.source.expressions.push(expression);
        }
        Ok(())
    }

    /// The mangled name of an expression. It lives as long as the program.
    pub(crate) fn lowered(&mut self, expression: &str) -> Answer<&CString> {
        if self.result.is_none() {
            return Err(Status::NO_LOWERED_NAMES_BEFORE_COMPILATION);
        }
        let index = self.source.expressions.iter().position(|known| known == expression);
        let index = index.ok_or(Status::NAME_EXPRESSION_NOT_VALID)?;
        let name = self.compiled()?.lowered.get(index).cloned().flatten();
        let name = name.and_then(|name| CString::new(name).ok()).ok_or(Status::NAME_EXPRESSION_NOT_VALID)?;
        Ok(self.given.entry(expression.to_owned()).or_insert(name))
    }
}

/// A program's handle in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct Handle(usize);

impl Handle {
    /// The handle of no program.
    pub(crate) const NULL: Self = Self(0);
}

type Programs = HashMap<Handle, Arc<Mutex<Program>>>;

fn programs() -> MutexGuard<'static, Programs> {
    static PROGRAMS: OnceLock<Mutex<Programs>> = OnceLock::new();
    PROGRAMS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a program.
pub(crate) fn insert(program: Program) -> Handle {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    // Callers would take small numbers for statuses.
    let handle = Handle(0x7e57_0000_0000 + 16 * NEXT.fetch_add(1, Ordering::Relaxed));
    programs().insert(handle, Arc::new(Mutex::new(program)));
    handle
}

/// Runs a function on a program.
pub(crate) fn on<T>(handle: Handle, body: impl FnOnce(&mut Program) -> Answer<T>) -> Answer<T> {
    let program = programs().get(&handle).cloned().ok_or(Status::INVALID_PROGRAM)?;
    let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
    body(&mut program)
}

/// Destroys a program.
pub(crate) fn remove(handle: Handle) -> Answer {
    programs().remove(&handle).map(|_| ()).ok_or(Status::INVALID_PROGRAM)
}
