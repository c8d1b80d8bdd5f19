//! Chains of double precision arithmetic, whose NaNs are looked for once, behind all of it.
//!
//! The bits of a NaN that PTX defines are those of the first operand that is one, which costs many
//! instructions, so native code computes them only if there is a NaN. A test behind each instruction costs
//! more than the arithmetic. But each instruction here gives a NaN in a lane where an operand is one. So a
//! NaN of any of them is also in the results at the ends of the chain, and only these are tested, and only if
//! the bits of a result are read: a comparison and a conversion to another type read a NaN of any bits alike.
//! If a test finds one, the chain is computed again, exactly ([`codegen`](crate::codegen)).
//!
//! A chain is made of instructions of one block under one mask. It stands where the first other operation
//! reads one of its results, or at the end of the block.
//!
//! Invariants: an instruction of a chain depends on nothing but its operands, lane by lane, so that it can
//! be executed later in its block. The operands that a chain reads from outside stay in registers up to its
//! test, so their number is limited.
//!
//! What it does not do: it leaves results that are the same in all lanes, or differ by a constant, and
//! instructions of single precision, whose NaNs are all alike (`codegen::nan_canonical`).

use crate::isel::{self, Env};
use crate::tuning::{FLOAT_CHAIN_MAX_INPUTS, FLOAT_CHAIN_MAX_OPS};
use crate::wir::uses::DefUse;
use crate::wir::{Chain, Func, Kind, Op, OpKind, Shape, Value};
use ptx::ir::{Function, Inst, RegClass, Src};
use std::collections::{HashMap, HashSet};
use std::mem::take;

/// Makes the chains of a function whose values have shapes.
pub(crate) fn form(func: &mut Func, function: &Function, env: &Env) {
    let mut rules = Rules { function, env, known: HashMap::new() };
    let members: usize = func.instructions().filter(|site| rules.of(site).is_some_and(|r| r.follows)).count();
    if members == 0 {
        return;
    }
    let reads = Reads::of(func, &mut rules);
    for block in &mut func.blocks {
        let mut open = Open::default();
        let mut ops = Vec::with_capacity(block.ops.len());
        for op in take(&mut block.ops) {
            let rule = match op.kind {
                OpKind::Inst(site) => rules.of(&site),
                _ => None,
            };
            match rule {
                Some(rule) if rule.follows && op.defs.iter().all(|def| is_varying(&func.shapes, *def)) => {
                    if !open.takes(&op, &func.shapes) {
                        take(&mut open).close(&reads, &mut ops);
                    }
                    open.add(op, rule.rare, &func.shapes, ops.len());
                }
                _ => {
                    if open.is_read_by(&op) {
                        take(&mut open).close(&reads, &mut ops);
                    }
                    ops.push(op);
                }
            }
        }
        open.close(&reads, &mut ops);
        block.ops = ops;
    }
}

fn is_varying(shapes: &[Shape], value: Value) -> bool {
    shapes[value.0 as usize] == Shape::Varying
}

/// What an instruction does with NaNs of double precision.
#[derive(Clone, Copy)]
struct Rule {
    /// Whether it can be part of a chain.
    follows: bool,
    /// Whether most of the cost of its result is for the bits of NaNs.
    rare: bool,
    /// Sources of which a NaN may have any bits.
    numbers: u32,
}

/// The rules of the instructions of a function.
struct Rules<'a> {
    function: &'a Function,
    env: &'a Env,
    known: HashMap<crate::wir::Site, Option<Rule>>,
}

impl Rules<'_> {
    /// The rule of an instruction that has native code.
    fn of(&mut self, site: &crate::wir::Site) -> Option<Rule> {
        if let Some(rule) = self.known.get(site) {
            return *rule;
        }
        let rule = site.inst(self.function).and_then(|inst| self.rule(inst));
        self.known.insert(*site, rule);
        rule
    }

    fn rule(&self, inst: &Inst) -> Option<Rule> {
        let wide = |src: &Src| matches!(src, Src::Reg(reg) if reg.class == RegClass::R64);
        if !inst.srcs.iter().any(wide) {
            return None;
        }
        let lowering = isel::choose(inst, self.env)?;
        let plain = inst.srcs.iter().all(|src| matches!(src, Src::Reg(_) | Src::Imm(_)));
        let follows = lowering.nan_follows && inst.guard.is_none() && plain && inst.dsts.len() == 1;
        Some(Rule { follows, rare: lowering.rare_nan, numbers: lowering.double_srcs })
    }
}

/// How often values are read.
struct Reads {
    all: DefUse,
    /// Of these, how often by instructions for which a NaN may have any bits.
    numbers: Vec<u32>,
}

impl Reads {
    fn of(func: &Func, rules: &mut Rules<'_>) -> Self {
        let mut numbers = vec![0; func.kinds.len()];
        for op in func.blocks.iter().flat_map(|block| &block.ops) {
            let OpKind::Inst(site) = op.kind else { continue };
            let Some(rule) = rules.of(&site).filter(|rule| rule.numbers != 0) else { continue };
            let Some(inst) = site.inst(rules.function) else { continue };
            let mut uses = op.uses.iter().skip(1);
            for (at, src) in inst.srcs.iter().enumerate() {
                let mut count = 0;
                src.for_each_reg(&mut |_| count += 1);
                for name in uses.by_ref().take(count) {
                    let wide = func.kinds[name.0 as usize] == Kind::Reg(RegClass::R64);
                    if wide && at < 32 && rule.numbers >> at & 1 != 0 {
                        numbers[name.0 as usize] += 1;
                    }
                }
            }
        }
        Self { all: DefUse::new(func), numbers }
    }
}

/// A chain that is being made.
#[derive(Default)]
struct Open {
    ops: Vec<Op>,
    /// Whether most of the cost of a result is for the bits of NaNs.
    rare: bool,
    /// The results.
    made: HashSet<Value>,
    /// The vectors that it reads from outside.
    inputs: HashSet<Value>,
    /// Where its first operation would stand by itself.
    at: usize,
}

impl Open {
    /// Whether an instruction can follow.
    fn takes(&self, op: &Op, shapes: &[Shape]) -> bool {
        let Some(first) = self.ops.first() else { return true };
        let new: HashSet<Value> = self.new_inputs(op, shapes).collect();
        first.uses[0] == op.uses[0]
            && self.ops.len() < FLOAT_CHAIN_MAX_OPS
            && (new.is_empty() || self.inputs.len() + new.len() <= FLOAT_CHAIN_MAX_INPUTS)
    }

    fn new_inputs<'o>(&'o self, op: &'o Op, shapes: &'o [Shape]) -> impl Iterator<Item = Value> + 'o {
        let new = |value: &Value| !self.made.contains(value) && !self.inputs.contains(value);
        op.uses[1..].iter().copied().filter(new).filter(|value| is_varying(shapes, *value))
    }

    fn add(&mut self, op: Op, rare: bool, shapes: &[Shape], at: usize) {
        if self.ops.is_empty() {
            self.at = at;
        }
        let new: Vec<Value> = self.new_inputs(&op, shapes).collect();
        self.inputs.extend(new);
        self.made.extend(&op.defs);
        self.rare |= rare;
        self.ops.push(op);
    }

    fn is_read_by(&self, op: &Op) -> bool {
        let mut found = false;
        if !self.ops.is_empty() {
            op.for_each_use(&mut |value| found |= self.made.contains(&value));
        }
        found
    }

    /// Puts the chain behind the operations of its block, or its instruction where it was if it is no chain.
    fn close(self, reads: &Reads, ops: &mut Vec<Op>) {
        let Some(first) = self.ops.first() else { return };
        let mut inside: HashMap<Value, u32> = HashMap::new();
        self.ops.iter().flat_map(|op| &op.uses).for_each(|value| *inside.entry(*value).or_insert(0) += 1);
        let mut chain = Chain { ops: Vec::new(), tested: Vec::new(), any_nan: Vec::new() };
        let (mut uses, mut defs) = (vec![first.uses[0]], Vec::new());
        // Results whose bits are read, and those that lead to others of these.
        let (mut exact, mut leads): (HashSet<Value>, HashSet<Value>) = Default::default();
        for op in &self.ops {
            for value in &op.uses {
                if !self.made.contains(value) && !uses.contains(value) {
                    uses.push(*value);
                }
            }
            for def in &op.defs {
                let inner = inside.get(def).copied().unwrap_or(0);
                if reads.all.reads(*def) == inner {
                    continue;
                }
                defs.push(*def);
                if reads.all.reads(*def) == inner + reads.numbers[def.0 as usize] {
                    chain.any_nan.push(*def);
                } else {
                    exact.insert(*def);
                }
            }
        }
        for op in self.ops.iter().rev() {
            let to = op.defs.iter().any(|def| exact.contains(def) || leads.contains(def));
            leads.extend(op.uses[1..].iter().filter(|_| to));
        }
        let ends = |value: &&Value| exact.contains(*value) && !leads.contains(*value);
        chain.tested.extend(defs.iter().filter(ends));
        if self.ops.len() == 1 && !chain.tested.is_empty() || !self.rare {
            // Instructions that are cheaper each by itself.
            let at = self.at;
            ops.splice(at..at, self.ops);
            return;
        }
        chain.ops = self.ops;
        ops.push(Op { kind: OpKind::Chain(Box::new(chain)), uses, defs, access: None, prefetch: None });
    }
}
