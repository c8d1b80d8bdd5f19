//! Values that are the same whenever the code runs: thread numbers, and what is made of these alone.
//!
//! LLVM folds what is computed of constants where it stands. But it does not see that what a warp keeps at a barrier is such a value, nor
//! that a loop leaves it as it is, nor that a number of lanes which has no other bits is nothing but its lanes. So masks that depend on the
//! lane's place alone stay constant wherever they are used, and accesses under them need neither tests nor gathers.
//!
//! Invariant: what is taken for a value is that value on every way and in every lane.

use super::{Emit, Rep};
use crate::llvm::Value;
use crate::plan::{Class, Kind, Name, OpKind, Plan};

/// By name: where it comes from, unchanged, on every way: through phis, and across barriers. What comes from several comes from itself.
pub(super) fn roots(plan: &Plan) -> Vec<Name> {
    let mut roots: Vec<Option<Name>> = vec![None; plan.kinds.len()];
    let mut copies: Vec<(Name, &[Name])> = Vec::new();
    let mut restored: Vec<(Name, Name)> = Vec::new();
    for zero in &plan.zeros {
        roots[zero.0 as usize] = Some(*zero);
    }
    for node in &plan.nodes {
        copies.extend(node.phis.iter().map(|phi| (phi.def, phi.from.as_slice())));
        for op in &node.ops {
            match &op.kind {
                OpKind::Restore(resume, reg) => {
                    let kept = &plan.resumes[*resume as usize].kept;
                    match kept.iter().find(|(have, _)| have == reg) {
                        Some((_, name)) => restored.push((op.defs[0], *name)),
                        None => roots[op.defs[0].0 as usize] = Some(op.defs[0]),
                    }
                }
                _ => op.defs.iter().for_each(|def| roots[def.0 as usize] = Some(*def)),
            }
        }
    }
    copies.extend(restored.iter().map(|(def, from)| (*def, std::slice::from_ref(from))));
    // What was once found to come from elsewhere comes from itself, so this ends.
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (def, from) in &copies {
            let old = roots[def.0 as usize];
            if old == Some(*def) {
                continue;
            }
            let mut all = from.iter().filter_map(|name| roots[name.0 as usize]);
            let Some(first) = all.next() else { continue };
            let same = old.is_none_or(|old| old == first) && all.all(|other| other == first);
            let new = if same { first } else { *def };
            changed |= old != Some(new);
            roots[def.0 as usize] = Some(new);
        }
    }
    (0..).zip(roots).map(|(at, root)| root.unwrap_or(Name(at))).collect()
}

impl Emit<'_> {
    /// The value of a phi, or of what is restored, if it is that of a constant which is known by now.
    pub(super) fn settled(&mut self, name: Name) -> Option<Rep> {
        let root = self.roots[name.0 as usize];
        let constant = |rep: &Rep| match rep {
            Rep::Scalar(value) => value.is_constant(),
            Rep::Bases(values) | Rep::Chunks(values) => values.iter().all(|value| value.is_constant()),
            Rep::Kept(_) => false,
        };
        if let Some(own) = self.determined(name) {
            return Some(own);
        }
        if root == name || !self.reps[root.0 as usize].as_ref().is_some_and(constant) {
            return None;
        }
        Some(self.coerce(root, name)).filter(constant)
    }

    /// A value of which the plan says all: lanes with no other bits, or with no more room between bounds than they take.
    pub(super) fn determined(&self, name: Name) -> Option<Rep> {
        // In a turn for one chunk, bases are that chunk's.
        if !matches!(self.kind(name), Kind::Reg(_)) || self.lanes != self.job.shape.lanes() {
            return None;
        }
        let ty = self.scalar_type(self.kind(name));
        let number = |value: u64| -> Value { self.b.const_int(ty, value) };
        let bound = self.bounds[name.0 as usize];
        match self.class(name) {
            Class::Bottom | Class::Varying => None,
            Class::Uniform(Some(value)) => Some(Rep::Scalar(number(*value))),
            Class::Uniform(None) => {
                let bound = bound.filter(|bound| bound.low == bound.high)?;
                Some(Rep::Scalar(number(bound.low)))
            }
            Class::Pattern(pattern) if !pattern.rows.is_empty() => None,
            Class::Pattern(pattern) => {
                let scalars = pattern.scalars(self.chunks()) as usize;
                if u32::from(pattern.align) >= ty.element_bits() {
                    return Some(Rep::Bases(vec![number(0); scalars]));
                }
                let (low, high) = (pattern.lanes.iter().min()?, pattern.lanes.iter().max()?);
                let bound = bound.filter(|_| !pattern.by_chunk)?;
                // The lanes are less than half of all numbers apart, so the lowest of them is the least number.
                let span = (i64::from(*high) - i64::from(*low)) as u64;
                let fills = ty.element_bits() >= 32 && bound.high - bound.low == span;
                fills.then(|| {
                    Rep::Bases(vec![number(bound.low.wrapping_sub(i64::from(*low) as u64)); scalars])
                })
            }
        }
    }
}
