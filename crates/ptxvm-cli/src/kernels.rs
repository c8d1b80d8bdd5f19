//! `ptxvm run --list`: the kernels of a module, with their parameters and resources.
//!
//! Invariant: nothing is launched.

use crate::UsageError;
use crate::options::Format;
use ptxvm::{Kernel, Module};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Prints the list.
pub(crate) fn list(module: &Module, format: Format) -> Result<(), UsageError> {
    let kernels = module.kernels().map(|name| module.kernel(name)).collect::<Result<Vec<_>, _>>()?;
    match format {
        Format::Human => crate::print_out(&kernels.iter().map(human).collect::<String>()),
        Format::Json => {
            let all: Vec<Value> = kernels.iter().map(object).collect();
            crate::print_out(&format!("{}\n", Value::from(all)))
        }
    }
}

fn human(kernel: &Kernel) -> String {
    let params = kernel.params().iter().map(|param| match param.scalar_type() {
        Some(ty) => format!(".{ty} {}", param.name),
        None => format!(".b8 {}[{}]", param.name, param.bytes),
    });
    let mut text = format!("{}({})", kernel.name(), params.collect::<Vec<_>>().join(", "));
    let needs = kernel.resources();
    if let Some([x, y, z]) = needs.required_block {
        let _infallible = write!(text, ", CTAs of {x}x{y}x{z}");
    } else if let Some(threads) = needs.max_threads {
        let _infallible = write!(text, ", CTAs of at most {threads} threads");
    }
    if needs.shared > 0 {
        let _infallible = write!(text, ", {} bytes of shared memory", needs.shared);
    }
    text.push('\n');
    if let Some(plain) = ptxvm::demangle(kernel.name()) {
        let _infallible = writeln!(text, "    {plain}");
    }
    text
}

fn object(kernel: &Kernel) -> Value {
    let needs = kernel.resources();
    let param = |param: &ptxvm::ParamLayout| json!({ "name": param.name, "type": param.scalar_type(), "offset": param.offset, "bytes": param.bytes });
    json!({
        "kernel": kernel.name(),
        "demangled": ptxvm::demangle(kernel.name()),
        "params": kernel.params().iter().map(param).collect::<Vec<_>>(),
        "shared": needs.shared,
        "local": needs.local,
        "registers": needs.registers,
        "max_threads": needs.max_threads,
        "required_block": needs.required_block,
    })
}
