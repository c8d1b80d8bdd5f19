//! SSA construction: renames variables to values, each assigned once, with phis at control-flow joins.
//!
//! Invariant: afterwards each definition dominates its uses. Copies, selects between equal values and dead
//! code are gone, across paths as well ([`phi_elim`](crate::opt::phi_elim), [`gvn`](crate::opt::gvn)). A
//! variable that is read where nothing was written is a zero ([`Func::zeros`](crate::wir::Func::zeros)). So
//! is the mask of pending lanes where there can be none, and registers saved for them are undefined
//! ([`Func::undef`](crate::wir::Func::undef)): otherwise the variables of each reconvergence point would need
//! phis in every loop around it.

use super::cfg::Graph;
use crate::opt::{gvn, phi_elim};
use crate::wir::uses::{Def, DefUse};
use crate::wir::{BlockId, Effects, Func, Kind, Op, OpKind, Phi, Term, Value};
use ptx::analysis::bits::BitSet;
use ptx::ir::Function;
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

pub(crate) fn rename(graph: Graph, function: &Function, machine: &impl Effects) -> Func {
    let Graph { mut func, waits, may } = graph;
    let count = func.nodes.len();
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
    phi_elim::simplify(&mut func);
    if gvn::unite(&mut func, function, machine) {
        phi_elim::simplify(&mut func);
    }
    sweep(&mut func, function, machine);
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
        for node in 0..self.func.nodes.len() {
            let mut ops = std::mem::take(&mut self.func.nodes[node].ops);
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
            self.func.nodes[node].ops = ops;
        }
    }

    fn uses(&mut self) {
        for node in 0..self.func.nodes.len() {
            let mut here: HashMap<Value, Value> = HashMap::new();
            let mut ops = std::mem::take(&mut self.func.nodes[node].ops);
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
            self.func.nodes[node].ops = ops;
            let mut term = self.func.nodes[node].term.clone();
            term.for_each_use_mut(&mut |name| *name = self.read(node, &here, *name));
            self.func.nodes[node].term = term;
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
            match self.func.nodes[at].preds.as_slice() {
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
            let preds = self.func.nodes[node.0 as usize].preds.clone();
            let from = preds.iter().map(|p| self.at_end(p.0 as usize, variable)).collect();
            self.func.nodes[node.0 as usize].phis.push(Phi { def, from });
        }
    }
}

/// Dead code elimination.
fn sweep(func: &mut Func, function: &Function, machine: &impl Effects) {
    let definitions = DefUse::new(func);
    let needed_itself = |op: &Op| match &op.kind {
        OpKind::Inst(site) => !site.inst(function).is_some_and(|inst| machine.is_pure(inst)),
        OpKind::Guard(..) | OpKind::Ahead(_) | OpKind::Spare(..) => true,
        _ => false,
    };
    let mut needed = vec![false; func.kinds.len()];
    let mut work: Vec<Value> = Vec::new();
    for node in &func.nodes {
        for op in node.ops.iter().filter(|op| needed_itself(op)) {
            op.for_each_use(&mut |name| work.push(name));
        }
        node.term.for_each_use(&mut |name| work.push(name));
    }
    while let Some(name) = work.pop() {
        if std::mem::replace(&mut needed[name.0 as usize], true) {
            continue;
        }
        match definitions.def(name) {
            Some(Def::Phi(n, i)) => work.extend(&func.nodes[n.0 as usize].phis[i].from),
            Some(Def::Op(n, i)) => func.nodes[n.0 as usize].ops[i].for_each_use(&mut |name| work.push(name)),
            None => {}
        }
    }
    for node in &mut func.nodes {
        node.phis.retain(|phi| needed[phi.def.0 as usize]);
        node.ops.retain(|op| needed_itself(op) || op.defs.iter().any(|d| needed[d.0 as usize]));
    }
    func.needed = needed;
    keep(func);
    for entry in &mut func.entries {
        let node = &func.nodes[entry.node.0 as usize];
        let load = |op: &Op| match op.kind {
            OpKind::Load(reg) => Some((reg, op.defs[0])),
            _ => None,
        };
        entry.relies = node.ops.iter().filter_map(load).collect();
    }
}

/// Records for each barrier what its stop saves.
fn keep(func: &mut Func) {
    for node in &func.nodes {
        if let Term::Exit(exit) = &node.term
            && let Some(resume) = exit.resume
        {
            let resume = &mut func.resumes[resume as usize];
            resume.kept.retain_mut(|(reg, name)| {
                let found = exit.regs.iter().find(|(have, _)| have == reg);
                found.is_some_and(|(_, value)| {
                    *name = *value;
                    true
                })
            });
        }
    }
}
