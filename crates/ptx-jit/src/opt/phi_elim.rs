//! Phi elimination: removes phis and selects whose operands are one value and themselves, or each other.
//!
//! If full and masked copies of a loop pass control to each other, the loop has two headers, and every
//! register gets a phi at both, each with the other as an operand, even if the loop does not write the
//! register. So cycles of phis are examined as a whole: if one value enters a cycle from outside, every
//! member is that value (Braun et al., "Simple and Efficient Construction of Static Single Assignment Form",
//! section 3.2).
//!
//! Invariant: the replacement of a value dominates it, since it reaches it on every path.

use crate::tuning::{PHI_CYCLE_MAX_DEPTH, PHI_ELIM_MAX_ROUNDS};
use crate::wir::{Func, OpKind, Value};

/// The operands of phis and selects, and the replacement of each value.
struct Choices {
    /// For each value, the operands if it is a phi or select; otherwise empty.
    from: Vec<Vec<Value>>,
    /// For each value, its replacement; the value itself if it has none.
    stands: Vec<Value>,
    /// For each value, the set that it is in; sets are numbered in the order of their creation.
    set: Vec<u32>,
    sets: u32,
    /// For each value, its index and low link in the search for strongly connected components; 0 if not
    /// visited.
    seen: Vec<u32>,
    reaches: Vec<u32>,
    clock: u32,
}

/// Replaces phis and selects of equal values with the value.
pub(crate) fn simplify(func: &mut Func) {
    let count = func.kinds.len();
    let mut from = vec![Vec::new(); count];
    let mut all = Vec::new();
    for node in &func.blocks {
        for phi in &node.phis {
            from[phi.def.0 as usize].clone_from(&phi.from);
            all.push(phi.def);
        }
        for op in &node.ops {
            if let OpKind::SelectMask | OpKind::SelectPred { .. } = op.kind {
                from[op.defs[0].0 as usize] = op.uses[1..].to_vec();
                all.push(op.defs[0]);
            }
        }
    }
    let mut choices = Choices {
        from,
        stands: (0..count as u32).map(Value).collect(),
        set: vec![0; count],
        sets: 0,
        seen: vec![0; count],
        reaches: vec![0; count],
        clock: 0,
    };
    for _ in 0..PHI_ELIM_MAX_ROUNDS {
        if !choices.replace(&all, 0) {
            break;
        }
        all.retain(|name| choices.find(*name) == *name);
    }
    let replaced = |choices: &mut Choices, name: Value| choices.find(name) != name;
    for node in &mut func.blocks {
        node.phis.retain(|phi| !replaced(&mut choices, phi.def));
        node.ops.retain(|op| match op.kind {
            OpKind::SelectMask | OpKind::SelectPred { .. } => !replaced(&mut choices, op.defs[0]),
            _ => true,
        });
        for phi in &mut node.phis {
            phi.from.iter_mut().for_each(|name| *name = choices.find(*name));
        }
        for op in &mut node.ops {
            op.for_each_use_mut(&mut |name| *name = choices.find(*name));
        }
        node.term.for_each_use_mut(&mut |name| *name = choices.find(*name));
    }
    func.record_slots();
}

impl Choices {
    fn find(&mut self, name: Value) -> Value {
        let mut at = name;
        while self.stands[at.0 as usize] != at {
            let next = self.stands[at.0 as usize];
            self.stands[at.0 as usize] = self.stands[next.0 as usize];
            at = next;
        }
        at
    }

    /// Examines the cycles within a set of values; returns whether any value was replaced.
    fn replace(&mut self, names: &[Value], depth: u32) -> bool {
        let mut changed = false;
        for circle in self.circles(names) {
            self.sets += 1;
            let set = self.sets;
            circle.iter().for_each(|name| self.set[name.0 as usize] = set);
            let mut outer: Option<Value> = None;
            let mut several = false;
            let mut inner = Vec::new();
            for name in &circle {
                let mut within = true;
                for at in 0..self.from[name.0 as usize].len() {
                    let from = self.from[name.0 as usize][at];
                    let from = self.find(from);
                    if self.set[from.0 as usize] == set {
                        continue;
                    }
                    within = false;
                    several |= outer.is_some_and(|one| one != from);
                    outer = Some(from);
                }
                if within {
                    inner.push(*name);
                }
            }
            match outer {
                Some(one) if !several => {
                    circle.iter().for_each(|name| self.stands[name.0 as usize] = one);
                    changed = true;
                }
                Some(_) if !inner.is_empty() && depth < PHI_CYCLE_MAX_DEPTH => {
                    changed |= self.replace(&inner, depth + 1)
                }
                _ => {}
            }
        }
        changed
    }

    /// The strongly connected components of a set of values, operands before their users.
    fn circles(&mut self, names: &[Value]) -> Vec<Vec<Value>> {
        self.sets += 1;
        let among = self.sets;
        for name in names {
            self.set[name.0 as usize] = among;
            self.seen[name.0 as usize] = 0;
        }
        let mut found = Vec::new();
        let mut open = Vec::new();
        for first in names {
            if self.seen[first.0 as usize] != 0 {
                continue;
            }
            self.see(*first, &mut open);
            let mut path = vec![(*first, 0)];
            while let Some((name, at)) = path.last_mut() {
                let name = *name;
                if let Some(next) = self.from[name.0 as usize].get(*at).copied() {
                    *at += 1;
                    let next = self.find(next);
                    let to = next.0 as usize;
                    if self.set[to] != among {
                        continue;
                    }
                    if self.seen[to] == 0 {
                        self.see(next, &mut open);
                        path.push((next, 0));
                    } else {
                        self.reaches[name.0 as usize] = self.reaches[name.0 as usize].min(self.seen[to]);
                    }
                    continue;
                }
                path.pop();
                if let Some((before, _)) = path.last() {
                    let before = before.0 as usize;
                    self.reaches[before] = self.reaches[before].min(self.reaches[name.0 as usize]);
                }
                if self.reaches[name.0 as usize] == self.seen[name.0 as usize] {
                    let mut circle = Vec::new();
                    while let Some(member) = open.pop() {
                        // The value leaves the set, so that no other cycle includes it.
                        self.set[member.0 as usize] = 0;
                        circle.push(member);
                        if member == name {
                            break;
                        }
                    }
                    found.push(circle);
                }
            }
        }
        found
    }

    fn see(&mut self, name: Value, open: &mut Vec<Value>) {
        self.clock += 1;
        self.seen[name.0 as usize] = self.clock;
        self.reaches[name.0 as usize] = self.clock;
        open.push(name);
    }
}
