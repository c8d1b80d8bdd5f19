//! From variables to values: every name is assigned once, phis where paths meet.
//!
//! Invariant: afterwards a value's definition dominates its uses; copies and selects between equal values are gone, also where they are made
//! anew on several ways, and so is what nothing needs. A variable that is read where nothing was written is a zero ([`Plan::zeros`](super::Plan::zeros)); so is the mask of
//! parked lanes where none may be, and what was captured for them is anything ([`Plan::unset`](super::Plan::unset)). Without that, each
//! place where lanes meet would send its variables through every loop around it.

use super::build::Graph;
use super::{Kind, Machine, Name, NodeId, Op, OpKind, Phi, Plan, Term, choices, twins};
use ptx::analysis::bits::BitSet;
use ptx::ir::Function;
use std::collections::HashMap;

struct Renamer<'a> {
    plan: &'a mut Plan,
    /// By variable: the block whose parked lanes it is about.
    waits: &'a [Option<u32>],
    /// By node: where lanes may be parked when it begins.
    may: &'a [BitSet],
    kinds: Vec<Kind>,
    /// By node: the variables that are assigned, in order.
    assigned: Vec<Vec<Name>>,
    /// By node: variable to its last value in it.
    last: Vec<HashMap<Name, Name>>,
    /// By node: variable to its value at the start.
    start: Vec<HashMap<Name, Name>>,
    queue: Vec<(NodeId, Name, Name)>,
    zeros: HashMap<Kind, Name>,
    unset: HashMap<Kind, Name>,
}

pub(super) fn rename(graph: Graph, function: &Function, machine: &impl Machine) -> Plan {
    let Graph { mut plan, waits, may } = graph;
    let count = plan.nodes.len();
    let mut renamer = Renamer {
        plan: &mut plan,
        waits: &waits,
        may: &may,
        kinds: Vec::new(),
        assigned: vec![Vec::new(); count],
        last: vec![HashMap::new(); count],
        start: vec![HashMap::new(); count],
        queue: Vec::new(),
        zeros: HashMap::new(),
        unset: HashMap::new(),
    };
    renamer.define();
    renamer.uses();
    renamer.fill();
    let Renamer { kinds, zeros, unset, .. } = renamer;
    let sorted = |names: HashMap<Kind, Name>| {
        let mut names: Vec<Name> = names.into_values().collect();
        names.sort_unstable();
        names
    };
    plan.kinds = kinds;
    plan.unset = sorted(unset);
    plan.zeros = sorted(zeros);
    plan.zeros.extend(&plan.unset);
    choices::simplify(&mut plan);
    if twins::unite(&mut plan, function, machine) {
        choices::simplify(&mut plan);
    }
    sweep(&mut plan, function, machine);
    plan
}

impl Renamer<'_> {
    fn value(&mut self, kind: Kind) -> Name {
        self.kinds.push(kind);
        Name(self.kinds.len() as u32 - 1)
    }

    /// The zero of a kind, or what stands for any value of it.
    fn constant(&mut self, kind: Kind, set: bool) -> Name {
        let all = if set { &self.zeros } else { &self.unset };
        if let Some(name) = all.get(&kind) {
            return *name;
        }
        let name = self.value(kind);
        let all = if set { &mut self.zeros } else { &mut self.unset };
        all.insert(kind, name);
        name
    }

    /// What a variable is where a node begins, if it is about lanes that cannot be parked there.
    fn meaningless(&mut self, node: usize, variable: Name) -> Option<Name> {
        let block = self.waits.get(variable.0 as usize).copied().flatten()?;
        if self.may[node].contains(block as usize) {
            return None;
        }
        let kind = self.plan.kinds[variable.0 as usize];
        Some(self.constant(kind, kind == Kind::Mask))
    }

    /// Gives every assignment a name of its own; uses keep the variables' names until [`Renamer::uses`].
    fn define(&mut self) {
        for node in 0..self.plan.nodes.len() {
            let mut ops = std::mem::take(&mut self.plan.nodes[node].ops);
            for op in &mut ops {
                for def in &mut op.defs {
                    let variable = *def;
                    let value = match op.kind {
                        OpKind::Mask(0) => self.constant(Kind::Mask, true),
                        _ => self.value(self.plan.kinds[variable.0 as usize]),
                    };
                    self.last[node].insert(variable, value);
                    self.assigned[node].push(variable);
                    *def = value;
                }
            }
            self.plan.nodes[node].ops = ops;
        }
    }

    fn uses(&mut self) {
        for node in 0..self.plan.nodes.len() {
            let mut here: HashMap<Name, Name> = HashMap::new();
            let mut ops = std::mem::take(&mut self.plan.nodes[node].ops);
            let variables = std::mem::take(&mut self.assigned[node]);
            let mut at = 0;
            for op in &mut ops {
                op.for_each_use(&mut |name| *name = self.read(node, &here, *name));
                for def in &op.defs {
                    here.insert(variables[at], *def);
                    at += 1;
                }
            }
            ops.retain(|op| !matches!(op.kind, OpKind::Mask(0)));
            self.plan.nodes[node].ops = ops;
            let mut term = self.plan.nodes[node].term.clone();
            term.for_each_use(&mut |name| *name = self.read(node, &here, *name));
            self.plan.nodes[node].term = term;
        }
    }

    fn read(&mut self, node: usize, here: &HashMap<Name, Name>, variable: Name) -> Name {
        match here.get(&variable) {
            Some(value) => *value,
            None => self.at_start(node, variable),
        }
    }

    fn at_end(&mut self, node: usize, variable: Name) -> Name {
        match self.last[node].get(&variable) {
            Some(value) => *value,
            None => self.at_start(node, variable),
        }
    }

    fn at_start(&mut self, node: usize, variable: Name) -> Name {
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
            match self.plan.nodes[at].preds.as_slice() {
                [] => {
                    let kind = self.plan.kinds[variable.0 as usize];
                    break self.constant(kind, true);
                }
                [one] => {
                    at = one.0 as usize;
                    if let Some(value) = self.last[at].get(&variable) {
                        break *value;
                    }
                }
                _ => {
                    let value = self.value(self.plan.kinds[variable.0 as usize]);
                    self.queue.push((NodeId(at as u32), variable, value));
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
            let preds = self.plan.nodes[node.0 as usize].preds.clone();
            let from = preds.iter().map(|p| self.at_end(p.0 as usize, variable)).collect();
            self.plan.nodes[node.0 as usize].phis.push(Phi { def, from });
        }
    }
}

/// Removes what nothing needs.
fn sweep(plan: &mut Plan, function: &Function, machine: &impl Machine) {
    #[derive(Clone, Copy)]
    enum Def {
        Op(usize, usize),
        Phi(usize, usize),
    }
    let mut def: Vec<Option<Def>> = vec![None; plan.kinds.len()];
    for (n, node) in plan.nodes.iter().enumerate() {
        for (i, phi) in node.phis.iter().enumerate() {
            def[phi.def.0 as usize] = Some(Def::Phi(n, i));
        }
        for (i, op) in node.ops.iter().enumerate() {
            for d in &op.defs {
                def[d.0 as usize] = Some(Def::Op(n, i));
            }
        }
    }
    let needed_itself = |op: &Op| match &op.kind {
        OpKind::Inst(site) => !site.inst(function).is_some_and(|inst| machine.is_pure(inst)),
        OpKind::Guard(..) | OpKind::Ahead(_) | OpKind::Spare(..) => true,
        _ => false,
    };
    let mut needed = vec![false; plan.kinds.len()];
    let mut work: Vec<Name> = Vec::new();
    for node in &mut plan.nodes {
        for op in &mut node.ops {
            if needed_itself(op) {
                op.for_each_use(&mut |name| work.push(*name));
            }
        }
        node.term.for_each_use(&mut |name| work.push(*name));
    }
    while let Some(name) = work.pop() {
        if std::mem::replace(&mut needed[name.0 as usize], true) {
            continue;
        }
        match def[name.0 as usize] {
            Some(Def::Phi(n, i)) => work.extend(&plan.nodes[n].phis[i].from),
            Some(Def::Op(n, i)) => plan.nodes[n].ops[i].for_each_use(&mut |name| work.push(*name)),
            None => {}
        }
    }
    for node in &mut plan.nodes {
        node.phis.retain(|phi| needed[phi.def.0 as usize]);
        node.ops.retain(|op| needed_itself(op) || op.defs.iter().any(|d| needed[d.0 as usize]));
    }
    plan.needed = needed;
    keep(plan);
    for entry in &mut plan.entries {
        let node = &plan.nodes[entry.node.0 as usize];
        let load = |op: &Op| match op.kind {
            OpKind::Load(reg) => Some((reg, op.defs[0])),
            _ => None,
        };
        entry.relies = node.ops.iter().filter_map(load).collect();
    }
}

/// Says of each barrier what its stop keeps.
fn keep(plan: &mut Plan) {
    for node in &plan.nodes {
        if let Term::Exit(exit) = &node.term
            && let Some(resume) = exit.resume
        {
            let resume = &mut plan.resumes[resume as usize];
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
