//! `check`, `format`, `explain` and `isa`, which need no device.
//!
//! Invariant: they return the output of the commands of the same names as values.

use crate::device::options;
use crate::errors::{diagnostics, raise, usage};
use ptxvm::{Code, ErrorKind, Rejection, Source};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

/// Checks texts, each with its name; several are linked. Gives every diagnostic, with its fields.
#[pyfunction]
pub(crate) fn check<'py>(
    py: Python<'py>,
    texts: Vec<(String, String)>,
    gpu_name: Option<&str>,
    strict: bool,
) -> PyResult<Bound<'py, PyList>> {
    let options = options(py, gpu_name, strict)?;
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let checked = py.detach(|| match texts.as_slice() {
        [(name, text)] => ptxvm::check(name, text, &options),
        texts => ptxvm::link(texts, &options),
    });
    diagnostics(py, &checked.diagnostics, Some(&checked.source))
}

/// The text in canonical layout.
#[pyfunction]
pub(crate) fn format(py: Python<'_>, name: &str, text: &str) -> PyResult<String> {
    py.detach(|| ptxvm::format(text)).map_err(|found| {
        let source = Arc::new(Source::new(name, text));
        let error = ErrorKind::Rejected(Rejection { diagnostics: found, source: Arc::clone(&source) }).into();
        raise(py, error, Some(&source))
    })
}

/// The page of a code.
#[pyfunction]
pub(crate) fn explain(py: Python<'_>, name: &str) -> PyResult<String> {
    let digits = name.strip_prefix(['P', 'p']).unwrap_or(name);
    let number: Option<u16> = digits.parse().ok();
    let code = Code::ALL.iter().find(|code| Some(code.number()) == number);
    match code {
        Some(code) => Ok(format!("# {}: {}\n\n{}", code.name(), code.title(), code.page())),
        None => Err(usage(py, format!("there is no code `{name}`; `ptxvm.codes()` lists them"))),
    }
}

/// Every code with its title.
#[pyfunction]
pub(crate) fn codes() -> Vec<(String, String)> {
    Code::ALL.iter().map(|code| (code.name().to_string(), code.title().to_string())).collect()
}

/// The forms of a mnemonic, or of all.
#[pyfunction]
pub(crate) fn isa<'py>(py: Python<'py>, name: Option<&str>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for form in py.detach(|| ptxvm::isa(name)) {
        let fields = PyDict::new(py);
        fields.set_item("mnemonic", form.mnemonic)?;
        fields.set_item("syntax", form.syntax)?;
        fields.set_item("sets", form.sets)?;
        fields.set_item("ptx", form.ptx)?;
        fields.set_item("target", form.target)?;
        fields.set_item("section", form.section)?;
        fields.set_item("brief", form.brief)?;
        fields.set_item("exactness", form.exactness)?;
        fields.set_item("interpreted", form.interpreted.word())?;
        fields.set_item("native", form.native.word())?;
        list.append(fields)?;
    }
    Ok(list)
}
