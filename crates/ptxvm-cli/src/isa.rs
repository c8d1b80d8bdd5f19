//! `ptxvm isa`: the instruction table, and which rows are checked, interpreted and compiled natively.
//!
//! Invariant: support is measured by the library, not claimed here.

use crate::options::{Format, IsaOptions};
use crate::{Exit, UsageError};
use serde_json::json;

/// Prints the table, or one mnemonic's rows.
pub(crate) fn isa(options: &IsaOptions) -> Result<Exit, UsageError> {
    let forms: Vec<ptxvm::Form> = ptxvm::isa(options.name.as_deref());
    let later = ptxvm::isa_later(options.name.as_deref());
    if let Some(name) = options.name.as_deref().filter(|_| forms.is_empty() && later.is_empty()) {
        return Err(format!("`{name}` is not an instruction that ptxvm knows").into());
    }
    match options.format {
        Format::Human => {
            let text = human(&forms, options.name.is_some()) + &not_implemented(&later);
            crate::print_out(&text)?;
        }
        Format::Json => {
            let objects: Vec<_> = forms.iter().map(object).chain(later.iter().map(later_object)).collect();
            crate::print_out(&format!("{}\n", serde_json::Value::from(objects)))?;
        }
    }
    Ok(Exit::Done)
}

fn object(form: &ptxvm::Form) -> serde_json::Value {
    json!({
        "mnemonic": form.mnemonic,
        "form": form.syntax,
        "types": form.sets,
        "since": form.since,
        "ptx": form.ptx,
        "target": form.target,
        "section": form.section,
        "brief": form.brief,
        "exactness": form.exactness,
        "checked": form.checked,
        "interpreted": form.interpreted.word(),
        "native": form.native.word(),
        "ids": form.ids,
    })
}

/// A form that is not implemented, with the same fields as far as they are known.
fn later_object(form: &ptxvm::LaterForm) -> serde_json::Value {
    json!({
        "mnemonic": form.mnemonic,
        "form": form.syntax,
        "types": [],
        "since": format!("{} {}", form.ptx, form.target),
        "ptx": form.ptx,
        "target": form.target,
        "section": null,
        "brief": form.brief,
        "exactness": null,
        "checked": false,
        "interpreted": "missing",
        "native": "missing",
        "ids": [],
    })
}

/// Forms of later manuals, which are refused by name.
fn not_implemented(forms: &[ptxvm::LaterForm]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for form in forms {
        let (ptx, target) = (&form.ptx, &form.target);
        let _infallible =
            writeln!(text, "{:<72} PTX {ptx:<4} {target:<7} not implemented: {}", form.syntax, form.brief);
    }
    text
}

fn human(forms: &[ptxvm::Form], full: bool) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for form in forms {
        let (ptx, target) = (&form.ptx, &form.target);
        let engines = format!(
            "checked {}, interpreted {}, native {}",
            yes(form.checked),
            form.interpreted.word(),
            form.native.word()
        );
        let _infallible = writeln!(text, "{:<72} PTX {ptx:<4} {target:<7} {engines}", form.syntax);
        if full {
            for set in &form.sets {
                let _infallible = writeln!(text, "    {set}");
            }
            let _infallible =
                writeln!(text, "    {} (PTX ISA §{}; {})\n", form.brief, form.section, form.exactness);
        }
    }
    text
}

fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}
