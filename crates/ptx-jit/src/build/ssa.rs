//! SSA construction: renames variables to values, each assigned once, with phis at control-flow joins.
//!
//! Invariant: afterwards each definition dominates its uses. Copies are selects of one value, which
//! [`phi_elim`](crate::opt::phi_elim) removes. A variable that is read where nothing was written is a zero
//! ([`Func::zeros`](crate::wir::Func::zeros)). Where no lane can be pending, the mask of pending lanes is a
//! zero too, and the registers saved for them are undefined ([`Func::undef`](crate::wir::Func::undef)).
//! Otherwise the variables of each reconvergence point would need phis in every loop around it.

use super::cfg::Graph;
use crate::wir::{BlockId, Func, Kind, OpKind, Phi, Value};
use ptx::analysis::bits::BitSet;
use std::collections::HashMap;

struct Renamer<'a> {
    func: &'a mut Func,
    /// For each variable, the block whose pending lanes it belongs to.
    waits: &'a [Option<u32>],
    /// For each block, where lanes may be pending when it starts.
    may: &'a [BitSet],
    kinds: Vec<Kind>,
    /// For each block, the variables that it assigns, in order.
    assigned: Vec<Vec<Value>>,
    /// For each block, the last value of each variable that it assigns.
    last: Vec<HashMap<Value, Value>>,
    /// For each block, the value of variables at its start.
    start: Vec<HashMap<Value, Value>>,
    queue: Vec<(BlockId, Value, Value)>,
    zeros: HashMap<Kind, Value>,
    undef: HashMap<Kind, Value>,
}

/// The function of a graph over variables, in SSA form.
pub(crate) fn rename(graph: Graph) -> Func {
    let Graph { mut func, waits, may } = graph;
    let count = func.blocks.len();
    let mut renamer = Renamer {
        func: &mut func,
        waits: &waits,
        may: &may,
        kinds: Vec::new(),
        assigned: vec![Vec::new(); count],
        last: vec![HashMap::new(); count],
        start: vec![HashMap::new(); count],
        queue: Vec::new(),
        zeros: HashMap::new(),
        undef: HashMap::new(),
    };
    renamer.define();
    renamer.uses();
    renamer.fill();
    let Renamer { kinds, zeros, undef, .. } = renamer;
    let sorted = |names: HashMap<Kind, Value>| {
        let mut names: Vec<Value> = names.into_values().collect();
        names.sort_unstable();
        names
    };
    func.kinds = kinds;
    func.undef = sorted(undef);
    func.zeros = sorted(zeros);
    func.zeros.extend(&func.undef);
    func.record_slots();
    func
}

impl Renamer<'_> {
    fn value(&mut self, kind: Kind) -> Value {
        self.kinds.push(kind);
        Value(self.kinds.len() as u32 - 1)
    }

    /// The zero of a kind, or the undefined value of a kind.
    fn constant(&mut self, kind: Kind, set: bool) -> Value {
        let all = if set { &self.zeros } else { &self.undef };
        if let Some(name) = all.get(&kind) {
            return *name;
        }
        let name = self.value(kind);
        let all = if set { &mut self.zeros } else { &mut self.undef };
        all.insert(kind, name);
        name
    }

    /// The value of a variable of pending lanes at the start of a block where there can be none.
    fn meaningless(&mut self, node: usize, variable: Value) -> Option<Value> {
        let block = self.waits.get(variable.0 as usize).copied().flatten()?;
        if self.may[node].contains(block as usize) {
            return None;
        }
        let kind = self.func.kinds[variable.0 as usize];
        Some(self.constant(kind, kind == Kind::Mask))
    }

    /// Gives every assignment a value of its own; uses keep the variables until [`Renamer::uses`].
    fn define(&mut self) {
        for node in 0..self.func.blocks.len() {
            let mut ops = std::mem::take(&mut self.func.blocks[node].ops);
            for op in &mut ops {
                for def in &mut op.defs {
                    let variable = *def;
                    let value = match op.kind {
                        OpKind::Mask(0) => self.constant(Kind::Mask, true),
                        _ => self.value(self.func.kinds[variable.0 as usize]),
                    };
                    self.last[node].insert(variable, value);
                    self.assigned[node].push(variable);
                    *def = value;
                }
            }
            self.func.blocks[node].ops = ops;
        }
    }

    fn uses(&mut self) {
        for node in 0..self.func.blocks.len() {
            let mut here: HashMap<Value, Value> = HashMap::new();
            let mut ops = std::mem::take(&mut self.func.blocks[node].ops);
            let variables = std::mem::take(&mut self.assigned[node]);
            let mut at = 0;
            for op in &mut ops {
                op.for_each_use_mut(&mut |name| *name = self.read(node, &here, *name));
                for def in &op.defs {
                    here.insert(variables[at], *def);
                    at += 1;
                }
            }
            ops.retain(|op| !matches!(op.kind, OpKind::Mask(0)));
            self.func.blocks[node].ops = ops;
            let mut term = self.func.blocks[node].term.clone();
            term.for_each_use_mut(&mut |name| *name = self.read(node, &here, *name));
            self.func.blocks[node].term = term;
        }
    }

    fn read(&mut self, node: usize, here: &HashMap<Value, Value>, variable: Value) -> Value {
        match here.get(&variable) {
            Some(value) => *value,
            None => self.at_start(node, variable),
        }
    }

    fn at_end(&mut self, node: usize, variable: Value) -> Value {
        match self.last[node].get(&variable) {
            Some(value) => *value,
            None => self.at_start(node, variable),
        }
    }

    fn at_start(&mut self, node: usize, variable: Value) -> Value {
        let mut chain = Vec::new();
        let mut at = node;
        let value = loop {
            if let Some(value) = self.start[at].get(&variable) {
                break *value;
            }
            chain.push(at);
            if let Some(value) = self.meaningless(at, variable) {
                break value;
            }
            match self.func.blocks[at].preds.as_slice() {
                [] => {
                    let kind = self.func.kinds[variable.0 as usize];
                    break self.constant(kind, true);
                }
                [one] => {
                    at = one.0 as usize;
                    if let Some(value) = self.last[at].get(&variable) {
                        break *value;
                    }
                }
                _ => {
                    let value = self.value(self.func.kinds[variable.0 as usize]);
                    self.queue.push((BlockId(at as u32), variable, value));
                    break value;
                }
            }
        };
        for node in chain {
            self.start[node].insert(variable, value);
        }
        value
    }

    fn fill(&mut self) {
        while let Some((node, variable, def)) = self.queue.pop() {
            let preds = self.func.blocks[node.0 as usize].preds.clone();
            let from = preds.iter().map(|p| self.at_end(p.0 as usize, variable)).collect();
            self.func.blocks[node.0 as usize].phis.push(Phi { def, from });
        }
    }
}
