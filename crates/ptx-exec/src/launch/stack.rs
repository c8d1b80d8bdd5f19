//! The local memory that a thread needs for the frames of a kernel and of the functions that it calls.
//!
//! Invariant: if the call graph bounds the nesting of calls, the frames of the deepest path fit. With
//! recursion or indirect calls a thread gets a fixed amount, and traps if it needs more.

use crate::bound::{Code, Term};
use crate::frame::DEPTH_LIMIT;
use ptx::check::module::FuncId;
use ptx::ir::Callee;

/// Local memory of a thread in bytes if calls can nest without bound. Chosen: 64 times CUDA's default.
const STACK_BYTES: u64 = 64 << 10;

/// Local memory of a thread in bytes: that of the deepest call path, or a fixed amount if calls can nest
/// without bound.
pub(super) fn stack_bytes(code: &Code, kernel: FuncId) -> u64 {
    let mut state = vec![None; code.functions.len()];
    let align = code.functions.iter().flatten().map(|f| u64::from(f.frame_align)).max().unwrap_or(1).max(16);
    let own = code
        .functions
        .get(kernel.0 as usize)
        .and_then(Option::as_ref)
        .map_or(0, |f| u64::from(f.frame_bytes));
    let bytes = deepest(code, kernel.0, 0, &mut state).unwrap_or(STACK_BYTES + own).next_multiple_of(align);
    // Local memories of lanes at distances of a large power of two would compete for one cache set.
    if bytes >= 2048 { bytes + align.max(64) } else { bytes }
}

/// The stack that a function and its callees need; `None` if calls can nest without bound.
fn deepest(code: &Code, function: u32, depth: u32, state: &mut Vec<Option<Option<u64>>>) -> Option<u64> {
    if depth > DEPTH_LIMIT {
        return None;
    }
    let Some(body) = code.functions.get(function as usize).and_then(Option::as_ref) else { return Some(0) };
    if let Some(known) = state[function as usize] {
        return known;
    }
    // A second visit before the result is known means recursion.
    state[function as usize] = Some(None);
    let mut below = 0;
    for block in &body.blocks {
        if let Term::Call(call) = &block.term
            && call.builtin.is_none()
        {
            let Callee::Direct(callee) = &call.callee else { return None };
            let align =
                code.functions.get(callee.0 as usize).and_then(Option::as_ref).map_or(1, |f| f.frame_align);
            below = below.max(deepest(code, callee.0, depth + 1, state)? + u64::from(align.max(1)) - 1);
        }
    }
    let all = Some(u64::from(body.frame_bytes) + below);
    state[function as usize] = Some(all);
    all
}
