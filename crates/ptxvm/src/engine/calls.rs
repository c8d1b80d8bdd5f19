//! The device functions that a kernel may call, for reports.

use ptx::ir::{Callee, Terminator};
use ptx_exec::launch::Kernel;

/// The names of the device functions with a body that a kernel may call, directly or through others, in the
/// order of their first calls. A call by address without a list of its targets counts as none.
pub(super) fn called_by(kernel: &Kernel) -> Vec<String> {
    let functions = &kernel.module().program().functions;
    let mut found = vec![kernel.id()];
    let mut next = 0;
    while let Some(id) = found.get(next) {
        next += 1;
        let Some(function) = functions.get(id.0 as usize) else { continue };
        for block in &function.blocks {
            let Terminator::Call(call) = &block.term else { continue };
            let callees = match &call.callee {
                Callee::Direct(id) => std::slice::from_ref(id),
                Callee::Indirect { allowed, .. } => allowed.as_deref().unwrap_or_default(),
            };
            for id in callees {
                let has_body = functions.get(id.0 as usize).is_some_and(|callee| !callee.blocks.is_empty());
                if has_body && !found.contains(id) {
                    found.push(*id);
                }
            }
        }
    }
    found[1..].iter().map(|id| functions[id.0 as usize].name.clone()).collect()
}
