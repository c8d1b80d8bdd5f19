//! Branch folding: a branch whose condition is constant becomes a jump, and blocks that no path reaches any
//! more are removed.
//!
//! The lanes that a condition on `%tid` or `%laneid` selects are often constant: with blocks of 16 x 16, the
//! mask of `%tid.x == 15` is, in each warp, and in a coarse warp that is the whole CTA so is that of every
//! comparison of thread indices with constants. The branch behind it has three targets: one for all lanes,
//! one for none, and one where the lanes diverge. Only one of them can be reached.
//!
//! Invariant: the values that are left are those of before, on every path that is left. Resume points and
//! blocks are numbered anew, in their old order.

use crate::analysis::constant::Constants;
use crate::wir::{Block, BlockId, Func, OpKind, Term};
use ptx::ir::Function;

/// Folds branches; returns whether there was any to fold. Phis may have one operand afterwards.
pub(crate) fn fold(func: &mut Func, function: &Function, constants: &Constants) -> bool {
    let mut cut = Vec::new();
    for (id, block) in (0..).map(BlockId).zip(&mut func.blocks) {
        let Term::If { cond, then, els, .. } = &block.term else { continue };
        if then == els {
            continue;
        }
        let Some(holds) = constants.condition(function, block.full, cond) else { continue };
        let (to, dead) = if holds { (*then, *els) } else { (*els, *then) };
        block.term = Term::Goto(to);
        cut.push((id, dead));
    }
    for (from, to) in &cut {
        let block = &mut func.blocks[to.0 as usize];
        if let Some(at) = block.pred_index(*from) {
            remove_pred(block, at);
        }
    }
    if !cut.is_empty() {
        remove_unreached(func);
    }
    !cut.is_empty()
}

/// Removes a predecessor with its operands.
fn remove_pred(block: &mut Block, at: usize) {
    block.preds.remove(at);
    block.phis.iter_mut().for_each(|phi| _ = phi.from.remove(at));
}

/// Removes blocks that no path reaches. A path leads from a stop to the block behind it.
fn remove_unreached(func: &mut Func) {
    let mut reached = vec![false; func.blocks.len()];
    let mut resumed = vec![false; func.resumes.len()];
    let mut work: Vec<BlockId> = func.entries.iter().map(|entry| entry.node).chain([func.start]).collect();
    while let Some(id) = work.pop() {
        if std::mem::replace(&mut reached[id.0 as usize], true) {
            continue;
        }
        let term = &func.blocks[id.0 as usize].term;
        work.extend(term.successors());
        if let Term::Exit(exit) = term
            && let Some(resume) = exit.resume
        {
            resumed[resume as usize] = true;
            work.push(func.resumes[resume as usize].node);
        }
    }
    let blocks = numbers(&reached);
    let resumes = numbers(&resumed);
    let at = |id: &mut BlockId| id.0 = blocks[id.0 as usize];
    let mut keep = reached.iter();
    func.blocks.retain(|_| keep.next() == Some(&true));
    for block in &mut func.blocks {
        for way in (0..block.preds.len()).rev() {
            if !reached[block.preds[way].0 as usize] {
                remove_pred(block, way);
            }
        }
        block.preds.iter_mut().for_each(at);
        for op in &mut block.ops {
            if let OpKind::Restore(resume, _) | OpKind::Reduced(resume, _) = &mut op.kind {
                *resume = resumes[*resume as usize];
            }
        }
        match &mut block.term {
            Term::Goto(to) => at(to),
            Term::If { then, els, .. } => [then, els].into_iter().for_each(at),
            Term::Switch { targets, beyond, .. } => targets.iter_mut().chain([beyond]).for_each(at),
            Term::Exit(exit) => {
                exit.resume.iter_mut().for_each(|resume| *resume = resumes[*resume as usize]);
            }
        }
    }
    let mut keep = resumed.iter();
    func.resumes.retain(|_| keep.next() == Some(&true));
    func.resumes.iter_mut().for_each(|resume| at(&mut resume.node));
    func.entries.iter_mut().for_each(|entry| at(&mut entry.node));
    at(&mut func.start);
}

/// The new number of each element that is kept. Others get a number that means nothing.
fn numbers(kept: &[bool]) -> Vec<u32> {
    let count = |next: &mut u32, kept: &bool| {
        let number = *next;
        *next += u32::from(*kept);
        Some(number)
    };
    kept.iter().scan(0, count).collect()
}
