//! Converts errors of the virtual machine to the exceptions of `ptxvm.errors`.
//!
//! Invariant: each kind of error has one class, and its fields are plain values of Python.

use ptxvm::{Diagnostic, Error, ErrorKind, Report, Severity, Source, Trap};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The exception for an error. `source` renders the diagnostics of a module that was rejected.
pub(crate) fn raise(py: Python<'_>, error: Error, source: Option<&Source>) -> PyErr {
    match made(py, error, source) {
        Ok(exception) => PyErr::from_value(exception),
        // A class could not be imported, or memory ran out.
        Err(other) => other,
    }
}

fn made<'py>(py: Python<'py>, error: Error, source: Option<&Source>) -> PyResult<Bound<'py, PyAny>> {
    let classes = py.import("ptxvm.errors")?;
    match error.into_kind() {
        ErrorKind::Rejected(rejection) => {
            let list = diagnostics(py, &rejection.diagnostics, Some(source.unwrap_or(&rejection.source)))?;
            classes.getattr("RejectedError")?.call1((list,))
        }
        ErrorKind::Trap(trap, report) => {
            let fields = trap_fields(py, &trap)?;
            classes.getattr("TrapError")?.call1((trap.to_string(), fields, report_fields(py, &report)?))
        }
        ErrorKind::Caller(message) => classes.getattr("UsageError")?.call1((message,)),
        ErrorKind::Machine(message) => classes.getattr("MachineError")?.call1((message,)),
    }
}

/// An error of the caller.
pub(crate) fn usage(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, Error::caller(message), None)
}

/// Diagnostics as dictionaries with the fields of `ptxvm.Diagnostic`.
pub(crate) fn diagnostics<'py>(
    py: Python<'py>,
    found: &[Diagnostic],
    source: Option<&Source>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for diagnostic in found {
        let fields = PyDict::new(py);
        fields.set_item("code", diagnostic.code.name())?;
        fields.set_item("title", diagnostic.code.title())?;
        fields.set_item("severity", severity(diagnostic.severity))?;
        fields.set_item("message", &diagnostic.message)?;
        fields.set_item("label", &diagnostic.label)?;
        fields.set_item("help", diagnostic.help.as_deref())?;
        fields.set_item("section", diagnostic.section)?;
        let (rendered, json) = match source {
            Some(source) => {
                (ptxvm::render(diagnostic, source, false), Some(ptxvm::render_json(diagnostic, source)))
            }
            None => (diagnostic.message.clone(), None),
        };
        fields.set_item("rendered", rendered)?;
        fields.set_item("json", json)?;
        list.append(fields)?;
    }
    Ok(list)
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn trap_fields<'py>(py: Python<'py>, trap: &Trap) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("kind", trap.kind.word())?;
    fields.set_item("kernel", &trap.kernel)?;
    fields.set_item("function", &trap.function)?;
    fields.set_item("file", &trap.file)?;
    fields.set_item("line", Some(trap.line).filter(|line| *line != 0))?;
    fields.set_item("instruction", &trap.instruction)?;
    fields.set_item("source", trap.source.clone())?;
    fields.set_item("cta", tuple(trap.ctaid))?;
    fields.set_item("thread", tuple(trap.tid))?;
    fields.set_item("warp", trap.warp)?;
    fields.set_item("lane", trap.lane)?;
    let access = trap.access.as_ref();
    fields.set_item("address", access.map(|access| access.address))?;
    fields.set_item("bytes", access.map(|access| access.bytes))?;
    fields.set_item("space", access.map(|access| access.space.name()))?;
    fields.set_item("write", access.map(|access| access.write))?;
    fields.set_item("nearest", trap.nearest.as_deref())?;
    Ok(fields)
}

/// What a launch did, as a dictionary with the fields of `ptxvm.Report`.
pub(crate) fn report_fields<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("output", String::from_utf8_lossy(&report.output))?;
    fields.set_item("dropped", report.dropped)?;
    fields.set_item("ctas", report.ctas)?;
    fields.set_item("elapsed", report.elapsed.as_secs_f64())?;
    fields.set_item("threads", report.threads)?;
    fields.set_item("warp_instructions", report.warp_instructions)?;
    fields.set_item("thread_instructions", report.thread_instructions)?;
    fields.set_item("events", report.events.to_vec())?;
    let ran = &report.ran;
    fields.set_item("native", ran.native)?;
    fields.set_item("code_source", ran.source.map(|source| format!("{source:?}").to_lowercase()))?;
    fields.set_item("compile_time", ran.compiled.as_secs_f64())?;
    fields.set_item("why_not_native", ran.why_not.as_deref())?;
    fields.set_item("native_instructions", ran.native_instructions)?;
    fields.set_item("fallback_instructions", ran.fallback_instructions)?;
    fields.set_item("fallbacks", ran.fallbacks.clone())?;
    let exits = ran.side_exits.iter().map(|exits| (exits.to_string(), exits.count));
    fields.set_item("side_exits", exits.collect::<Vec<_>>())?;
    Ok(fields)
}

fn tuple([x, y, z]: [u32; 3]) -> (u32, u32, u32) {
    (x, y, z)
}
