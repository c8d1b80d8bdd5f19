//! Constant propagation: values that are the same whenever the code executes, such as thread indices and what
//! is computed from them alone.
//!
//! LLVM folds constant expressions in place. It does not see that a value a warp saves at a barrier is
//! constant, that a loop does not change it, or that a number of lanes without other bits equals its mask.
//! With these known, masks that depend on the lane index alone stay constant wherever they are used, and
//! accesses under them need neither tests nor gathers.
//!
//! Invariant: the constant is the value on every path and in every lane.

use super::{Codegen, Repr};
use crate::llvm::Value;
use crate::wir;
use crate::wir::{Func, Kind, OpKind, Shape};

/// For each value, the value that it is an unchanged copy of on every path, through phis and across barriers.
/// A value that comes from several others is its own root.
pub(super) fn roots(func: &Func) -> Vec<wir::Value> {
    let mut roots: Vec<Option<wir::Value>> = vec![None; func.kinds.len()];
    let mut copies: Vec<(wir::Value, &[wir::Value])> = Vec::new();
    let mut restored: Vec<(wir::Value, wir::Value)> = Vec::new();
    for zero in &func.zeros {
        roots[zero.0 as usize] = Some(*zero);
    }
    for node in &func.blocks {
        copies.extend(node.phis.iter().map(|phi| (phi.def, phi.from.as_slice())));
        for op in &node.ops {
            match &op.kind {
                OpKind::Restore(resume, reg) => match func.kept(*resume, *reg) {
                    Some(name) => restored.push((op.defs[0], name)),
                    None => roots[op.defs[0].0 as usize] = Some(op.defs[0]),
                },
                _ => op.defs.iter().for_each(|def| roots[def.0 as usize] = Some(*def)),
            }
        }
    }
    copies.extend(restored.iter().map(|(def, from)| (*def, std::slice::from_ref(from))));
    // A value that was found to be its own root stays so; therefore the iteration ends.
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
    (0..).zip(roots).map(|(at, root)| root.unwrap_or(wir::Value(at))).collect()
}

impl Codegen<'_> {
    /// The constant that a phi or a restored register has, if its root is a constant that is known already.
    pub(super) fn settled(&mut self, name: wir::Value) -> Option<Repr> {
        let root = self.copies[name.0 as usize];
        let constant = |rep: &Repr| match rep {
            Repr::Scalar(value) => value.is_constant(),
            Repr::Bases(values) | Repr::Chunks(values) => values.iter().all(|value| value.is_constant()),
            Repr::Kept(_) => false,
        };
        if let Some(own) = self.determined(name) {
            return Some(own);
        }
        if root == name || !self.reps[root.0 as usize].as_ref().is_some_and(constant) {
            return None;
        }
        Some(self.coerce(root, name)).filter(constant)
    }

    /// A value that the WIR determines: its mask has no other lanes, or its range leaves no other value.
    pub(super) fn determined(&self, name: wir::Value) -> Option<Repr> {
        // Within a chunk loop the bases are those of the current chunk.
        if !matches!(self.kind(name), Kind::Reg(_)) || self.lanes != self.job.shape.lanes() {
            return None;
        }
        let ty = self.scalar_type(self.kind(name));
        let number = |value: u64| -> Value { self.b.const_int(ty, value) };
        let bound = self.bounds[name.0 as usize];
        match self.shape(name) {
            Shape::Bottom | Shape::Varying => None,
            Shape::Uniform(Some(value)) => Some(Repr::Scalar(number(*value))),
            Shape::Uniform(None) => {
                let bound = bound.filter(|bound| bound.low == bound.high)?;
                Some(Repr::Scalar(number(bound.low)))
            }
            Shape::Affine(pattern) if !pattern.rows.is_empty() => None,
            Shape::Affine(pattern) => {
                let scalars = pattern.scalars(self.chunks()) as usize;
                if u32::from(pattern.align) >= ty.element_bits() {
                    return Some(Repr::Bases(vec![number(0); scalars]));
                }
                let (low, high) = (pattern.lanes.iter().min()?, pattern.lanes.iter().max()?);
                let bound = bound.filter(|_| !pattern.by_chunk)?;
                // The lanes span less than half of all numbers, so the lowest lane has the least number.
                let span = (i64::from(*high) - i64::from(*low)) as u64;
                let fills = ty.element_bits() >= 32 && bound.high - bound.low == span;
                fills.then(|| {
                    Repr::Bases(vec![number(bound.low.wrapping_sub(i64::from(*low) as u64)); scalars])
                })
            }
        }
    }
}
