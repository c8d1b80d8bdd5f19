//! Recursion without a stack: before PTX 2.0, and on targets before `sm_20`. PTX ISA §7.1.1, §11.2.2.
//!
//! Invariant: the time is linear in the number of functions and calls, and the algorithm does not recurse.

use super::module::FuncId;
use super::report::Report;
use crate::Span;
use crate::diag::{Code, Diagnostic};

/// A direct call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallEdge {
    /// The caller.
    pub(super) caller: FuncId,
    /// The callee.
    pub(super) callee: FuncId,
    /// The call's opcode.
    pub(super) span: Span,
}

/// Reports each cycle of calls, at its first call in the text.
pub(super) fn report(functions: usize, edges: &[CallEdge], report: &mut Report) {
    let forward = lists(functions, edges.iter().map(|e| (e.caller, e.callee)));
    let backward = lists(functions, edges.iter().map(|e| (e.callee, e.caller)));
    let component = components(&forward, &backward);
    let of = |id: FuncId| component.get(id.0 as usize).copied();
    let mut seen = vec![false; functions];
    for edge in edges {
        let Some(cycle) = of(edge.caller).filter(|c| of(edge.callee) == Some(*c)) else { continue };
        if !std::mem::replace(&mut seen[cycle], true) {
            report.push(
                Diagnostic::new(
                    Code::BadCallTarget,
                    edge.span,
                    "this call is recursive, and there is no stack",
                )
                .with_help(
                    "recursion needs PTX 2.0, sm_20, and no registers or `.local` variables of module scope",
                )
                .with_section("7.1.1"),
            );
        }
    }
}

fn lists(functions: usize, edges: impl Iterator<Item = (FuncId, FuncId)>) -> Vec<Vec<usize>> {
    let mut lists = vec![Vec::new(); functions];
    for (from, to) in edges {
        if let Some(list) = lists.get_mut(from.0 as usize) {
            list.push(to.0 as usize);
        }
    }
    lists
}

/// The strongly connected component of each function: a depth-first walk gives an order of completion; walks
/// against the calls, in reverse order, give the components.
fn components(forward: &[Vec<usize>], backward: &[Vec<usize>]) -> Vec<usize> {
    let count = forward.len();
    let mut finished = Vec::with_capacity(count);
    let mut visited = vec![false; count];
    for start in 0..count {
        if std::mem::replace(&mut visited[start], true) {
            continue;
        }
        let mut stack = vec![(start, 0)];
        while let Some((node, next)) = stack.pop() {
            let Some(target) = forward[node].get(next).copied() else {
                finished.push(node);
                continue;
            };
            stack.push((node, next + 1));
            if target < count && !std::mem::replace(&mut visited[target], true) {
                stack.push((target, 0));
            }
        }
    }
    let mut component = vec![usize::MAX; count];
    for root in finished.into_iter().rev() {
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            if component[node] == usize::MAX {
                component[node] = root;
                stack.extend(backward[node].iter().copied().filter(|n| *n < count));
            }
        }
    }
    component
}
