//! Programs, and what was made of them.
//!
//! Invariant: a handle is a number that was never given before; texts that C holds pointers to stay until their program is destroyed.

use crate::ffi::Callback;
use crate::options::{Architecture, Options};
use crate::status::{Answer, Status};
use crate::{clang, log, settings, theirs};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What a program is compiled from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) text: Vec<u8>,
    /// The name of its file in messages.
    pub(crate) name: Vec<u8>,
    /// Names and texts.
    pub(crate) headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) expressions: Vec<String>,
}

/// What a compiler made of it.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) status: Status,
    pub(crate) log: String,
    pub(crate) ptx: String,
    /// The symbol of each expression.
    pub(crate) lowered: Vec<Option<String>>,
}

impl Compiled {
    /// Nothing but a message, which is a line.
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
    /// Of the last compilation.
    is_real: bool,
    /// Mangled names that C holds pointers to.
    given: HashMap<String, CString>,
}

impl Program {
    /// One that was not compiled yet.
    pub(crate) fn new(source: Source) -> Self {
        Self { source, ..Self::default() }
    }

    /// Compiles it.
    pub(crate) fn compile(&mut self, given: &[Vec<u8>]) -> Answer {
        let options = Options::read(given, Architecture::default_of(settings::version()));
        let compiled = match options {
            Err(wrong) => {
                log::refused(&format!("nvrtcCompileProgram: {wrong}"));
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

    /// What the compiler said, if it was called.
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

    /// What stands for machine code, if the program was compiled for a device: PTX, which our driver takes.
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

    /// The mangled name of an expression, which stays as long as the program.
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

/// What C knows a program by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct Handle(usize);

impl Handle {
    /// What a handle is when there is no program.
    pub(crate) const NULL: Self = Self(0);
}

type Programs = HashMap<Handle, Arc<Mutex<Program>>>;

fn programs() -> MutexGuard<'static, Programs> {
    static PROGRAMS: OnceLock<Mutex<Programs>> = OnceLock::new();
    PROGRAMS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a program.
pub(crate) fn insert(program: Program) -> Handle {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    // Not small numbers, which callers take for statuses.
    let handle = Handle(0x7e57_0000_0000 + 16 * NEXT.fetch_add(1, Ordering::Relaxed));
    programs().insert(handle, Arc::new(Mutex::new(program)));
    handle
}

/// Runs something on a program.
pub(crate) fn on<T>(handle: Handle, body: impl FnOnce(&mut Program) -> Answer<T>) -> Answer<T> {
    let program = programs().get(&handle).cloned().ok_or(Status::INVALID_PROGRAM)?;
    let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
    body(&mut program)
}

/// Forgets a program.
pub(crate) fn remove(handle: Handle) -> Answer {
    programs().remove(&handle).map(|_| ()).ok_or(Status::INVALID_PROGRAM)
}
