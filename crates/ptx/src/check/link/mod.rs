//! Linking: several modules become one. PTX ISA §11.6.
//!
//! Invariant: in the linked module every external symbol has one entry, which all uses refer to. Symbols
//! without a linking directive stay private to their module. An undefined symbol stays external. Places refer
//! to one [`Source`] with every text as a part, so a diagnostic can show places of two texts.
//!
//! Of several definitions of a name the `.visible` one is used, else the largest `.common` one, else the
//! first `.weak` one. Two `.visible` definitions are an error. Two kernels with one name are an error too,
//! because kernels are launched by name. Only the largest `.common` definition may be initialised (A167). An
//! internal symbol of one module never resolves a `.weak` symbol of another (A166). All declarations must
//! agree in kind, parameters, state space, type and size, except that `.common` declarations may differ in
//! type and size.
//!
//! Choices where the manual is silent: a `.visible` definition overrides `.common` ones, and must not be
//! smaller. The linked module has the newest version and target. If a target is older than `sm_20`, all
//! modules must have the same version and target, because instructions differ in meaning there.

mod merge;
mod symbols;

use super::module::{Module, Source};
use super::{CheckOptions, Checked, check};
use crate::Span;
use crate::diag::{Code, Diagnostic, Severity};
use crate::isa::Space;
use std::sync::Arc;

/// Checks texts, each with a name for diagnostics, and links them.
///
/// Never fails: mistakes are reported as diagnostics.
pub fn link(texts: &[(&str, &str)], options: &CheckOptions) -> Checked {
    if let [(name, text)] = texts {
        return check(name, text, options);
    }
    let checked: Vec<Checked> = texts.iter().map(|(name, text)| check(name, text, options)).collect();
    let sources: Vec<&Source> = checked.iter().map(|c| c.source.as_ref()).collect();
    let Some(source) = Source::join(&sources).map(Arc::new) else {
        let source = Arc::new(Source::new("", ""));
        let diagnostic = Diagnostic::new(Code::TooLarge, Span::default(), "all texts have at most 4 GiB");
        return Checked { module: None, source, diagnostics: vec![diagnostic] };
    };
    let mut diagnostics = Vec::new();
    let mut modules = Vec::new();
    let count = checked.len();
    for (checked, part) in checked.into_iter().zip(&source.parts) {
        diagnostics.extend(checked.diagnostics.into_iter().map(|d| shifted(d, part.start)));
        modules.extend(checked.module.map(|mut module| {
            merge::shift(&mut module, part.start);
            module
        }));
    }
    if modules.len() < count {
        return Checked { module: None, source, diagnostics };
    }
    let mut found = Vec::new();
    headers(&modules, &source, &mut found);
    let resolved = symbols::resolve(&mut modules, &mut found);
    let mut module = None;
    if found.is_empty() {
        module = merge::merge(modules, &resolved, Arc::clone(&source));
    }
    if let Some(linked) = &module {
        banks(linked, &mut found);
    }
    if found.iter().any(|d| d.severity == Severity::Error) {
        module = None;
    }
    diagnostics.append(&mut found);
    Checked { module, source, diagnostics }
}

/// A diagnostic about a text that is moved by `by` bytes.
fn shifted(mut diagnostic: Diagnostic, by: u32) -> Diagnostic {
    diagnostic.span = shift(diagnostic.span, by);
    for label in &mut diagnostic.related {
        label.span = shift(label.span, by);
    }
    diagnostic
}

/// A place in a text that is moved by `by` bytes.
fn shift(span: Span, by: u32) -> Span {
    Span::new(span.start.saturating_add(by), span.end.saturating_add(by))
}

/// Checks that the headers of the modules are compatible.
fn headers(modules: &[Module], source: &Source, found: &mut Vec<Diagnostic>) {
    let start =
        |index: usize| source.parts.get(index).map_or(Span::default(), |p| Span::new(p.start, p.start));
    let Some(first) = modules.first() else { return };
    for (index, module) in modules.iter().enumerate().skip(1) {
        let old = module.target.sm.number < 20 || first.target.sm.number < 20;
        let what = if module.address_size != first.address_size {
            "addresses of different sizes"
        } else if module.target.texmode_independent != first.target.texmode_independent {
            "different texturing modes"
        } else if old && (module.version, module.target.sm) != (first.version, first.target.sm) {
            "different versions or targets, of which one is older than sm_20"
        } else if module.target.map_f64_to_f32 != first.target.map_f64_to_f32 {
            "different readings of `.f64` (`map_f64_to_f32`)"
        } else {
            continue;
        };
        found.push(
            Diagnostic::new(
                Code::ConflictingDirectives,
                start(index),
                format!("modules with {what} cannot be linked"),
            )
            .with_label("this module")
            .with_related(start(0), "and this one")
            .with_section("11.1"),
        );
    }
}

/// Checks the size of each constant bank of the linked module. PTX ISA §5.1.3.
fn banks(module: &Module, found: &mut Vec<Diagnostic>) {
    const BANK: u64 = 64 * 1024;
    let mut totals = [0u64; 11];
    for variable in module.variables.iter().filter(|v| v.space == Space::Const) {
        let Some(total) = totals.get_mut(usize::from(variable.bank)) else { continue };
        let fitted = *total <= BANK;
        *total = total.next_multiple_of(u64::from(variable.align.max(1))).saturating_add(variable.bytes);
        if fitted && *total > BANK {
            let message = format!("the constants of all modules take more than {BANK} bytes");
            found.push(
                Diagnostic::new(Code::TooLarge, variable.span, message)
                    .with_label("this one has no room left")
                    .with_section("5.1.3"),
            );
        }
    }
}
