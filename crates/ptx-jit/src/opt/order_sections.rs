//! Instruction scheduling for register pressure: the order of the operations in an iteration of a chunk loop.
//!
//! A kernel that computes a tile of a matrix in each thread updates all its sums for one step of the inner
//! product, then for the next. Where the sums of one chunk alone exceed the registers, each update loads and
//! stores a sum. The same operations in the order in which results need them (a depth-first walk of the
//! dependences, from one result after another) update one sum to its end: the factors are loaded, and a sum
//! is stored once.
//!
//! Both orders are compared by the vectors that they move between registers and memory, if the register
//! allocator gives up the value whose next use is farthest (Belady's algorithm).
//!
//! Invariants: an operation comes behind the operations that define its operands, and loads keep their order.
//! Nothing in a section has an effect, so that each such order gives the same results.
//!
//! Not handled: sections that are emitted for all chunks at once.

use crate::effects;
use crate::target::Level;
use crate::tuning::{ORDER_SPARE_REGISTERS, ORDER_STORE_COST};
use crate::wir::section::Section;
use crate::wir::{Block, Func, Kind, Op, OpKind, Shape, Value};
use ptx::ir::{Function, RegClass};
use std::collections::HashMap;

/// Orders the operations of chunk loops, where that moves fewer vectors.
pub(crate) fn order(func: &mut Func, function: &Function, level: Level) {
    for at in 0..func.blocks.len() {
        let mut sections = std::mem::take(&mut func.blocks[at].sections);
        for section in sections.iter_mut().filter(|section| section.is_chunk_loop()) {
            let list = List { func, block: &func.blocks[at], level };
            let order = list.by_results(section, function);
            let (now, then) = (list.moves(&section.own, section), list.moves(&order, section));
            if then < now {
                (section.own, section.ordered) = (order, Some([now, then]));
            }
        }
        func.blocks[at].sections = sections;
    }
}

/// The operations of a block, as a scheduler sees them.
struct List<'a> {
    func: &'a Func,
    block: &'a Block,
    level: Level,
}

/// A vector of the iteration, where there are fewer registers than vectors.
#[derive(Clone, Copy, Default)]
struct Vector {
    in_register: bool,
    in_memory: bool,
}

impl List<'_> {
    /// The registers that a value takes for one chunk. Scalars are not counted: they have registers of their
    /// own, or are broadcast from memory.
    fn size(&self, name: Value) -> usize {
        let at = name.0 as usize;
        match (&self.func.shapes[at], self.func.kinds[at]) {
            (Shape::Varying, Kind::Reg(RegClass::R64)) => 2,
            (Shape::Varying, Kind::Reg(_)) => 1,
            _ => 0,
        }
    }

    /// The operations of a section in the order in which its results need them.
    fn by_results(&self, section: &Section, function: &Function) -> Vec<usize> {
        let ops = &self.block.ops;
        let definitions: HashMap<Value, usize> =
            section.own.iter().flat_map(|at| ops[*at].defs.iter().map(move |def| (*def, *at))).collect();
        let is_load = |op: &Op| match op.kind {
            OpKind::Inst(site) => site.inst(function).is_some_and(|inst| !effects::is_pure(inst)),
            _ => false,
        };
        let mut order = Vec::with_capacity(section.own.len());
        let mut done = vec![false; section.end];
        // Loads come first, with what they need: some are emitted together with the first of their group.
        let (loads, others): (Vec<usize>, Vec<usize>) =
            section.own.iter().partition(|at| is_load(&ops[**at]));
        let results = others.iter().filter(|at| ops[**at].defs.iter().any(|def| section.outs.contains(def)));
        let rest = others.iter();
        for root in loads.iter().chain(results).chain(rest) {
            let mut path = vec![(*root, 0)];
            while let Some((at, operand)) = path.pop() {
                if done[at] {
                    continue;
                }
                let below = ops[at].uses[operand..].iter().position(|name| {
                    definitions.get(name).is_some_and(|definition| !done[*definition] && *definition != at)
                });
                match below {
                    Some(further) => {
                        let operand = operand + further;
                        path.push((at, operand + 1));
                        path.push((definitions[&ops[at].uses[operand]], 0));
                    }
                    None => {
                        done[at] = true;
                        order.push(at);
                    }
                }
            }
        }
        order
    }

    /// The vectors that one iteration moves between registers and memory: those that it reads from outside,
    /// those that do not fit into the registers, and its results. A store counts as several loads.
    fn moves(&self, order: &[usize], section: &Section) -> usize {
        let ops = &self.block.ops;
        let mut uses: HashMap<Value, Vec<usize>> = HashMap::new();
        for (time, at) in order.iter().enumerate() {
            let names = ops[*at].uses.iter().filter(|name| self.size(**name) > 0);
            names.for_each(|name| uses.entry(*name).or_default().push(time));
        }
        section.outs.iter().for_each(|name| uses.entry(*name).or_default().push(order.len()));
        uses.values_mut().for_each(|times| times.reverse());
        let registers = (self.level.vector_registers() as usize).saturating_sub(ORDER_SPARE_REGISTERS);
        let mut file = File { registers, ..File::default() };
        for (time, at) in order.iter().enumerate() {
            let op = &ops[*at];
            for name in op.uses.iter().filter(|name| self.size(**name) > 0) {
                file.load(*name, self.size(*name), &uses);
            }
            for name in &op.uses {
                if let Some(times) = uses.get_mut(name) {
                    while times.last().is_some_and(|next| *next <= time) {
                        times.pop();
                    }
                }
            }
            file.forget(&uses);
            for def in op.defs.iter().filter(|def| self.size(**def) > 0) {
                file.define(*def, self.size(*def), &uses);
            }
        }
        let stored = section.outs.iter().filter(|name| !file.vectors.get(name).is_some_and(|v| v.in_memory));
        file.moved + stored.map(|name| self.size(*name) * ORDER_STORE_COST).sum::<usize>()
    }
}

/// A register file that is simulated.
#[derive(Default)]
struct File {
    registers: usize,
    /// The registers in use, and the values in them with their sizes.
    used: usize,
    inside: Vec<(Value, usize)>,
    vectors: HashMap<Value, Vector>,
    /// What has been moved so far.
    moved: usize,
}

impl File {
    /// Makes room for a value.
    fn make_room(&mut self, size: usize, uses: &HashMap<Value, Vec<usize>>) {
        let next =
            |name: Value| uses.get(&name).and_then(|times| times.last().copied()).unwrap_or(usize::MAX);
        while self.used + size > self.registers && !self.inside.is_empty() {
            let farthest = (0..self.inside.len()).max_by_key(|i| next(self.inside[*i].0)).unwrap_or(0);
            let (name, its) = self.inside.swap_remove(farthest);
            self.used -= its;
            let vector = self.vectors.entry(name).or_default();
            if !vector.in_memory && next(name) != usize::MAX {
                self.moved += its * ORDER_STORE_COST;
                vector.in_memory = true;
            }
            vector.in_register = false;
        }
    }

    /// Loads a value that an operation reads, unless it is in a register.
    fn load(&mut self, name: Value, size: usize, uses: &HashMap<Value, Vec<usize>>) {
        // What no operation has defined comes from outside, through memory.
        let vector = *self.vectors.entry(name).or_insert(Vector { in_register: false, in_memory: true });
        if !vector.in_register {
            self.moved += size;
            self.enter(name, size, uses);
        }
    }

    /// Notes a value that an operation defines.
    fn define(&mut self, name: Value, size: usize, uses: &HashMap<Value, Vec<usize>>) {
        self.vectors.insert(name, Vector::default());
        self.enter(name, size, uses);
    }

    fn enter(&mut self, name: Value, size: usize, uses: &HashMap<Value, Vec<usize>>) {
        self.make_room(size, uses);
        self.inside.push((name, size));
        self.used += size;
        self.vectors.entry(name).or_default().in_register = true;
    }

    /// Frees the registers of values that no later operation reads.
    fn forget(&mut self, uses: &HashMap<Value, Vec<usize>>) {
        let is_live = |name: &Value| uses.get(name).is_some_and(|times| !times.is_empty());
        let (vectors, used) = (&mut self.vectors, &mut self.used);
        self.inside.retain(|(name, size)| {
            let keep = is_live(name);
            if !keep {
                *used -= size;
                vectors.entry(*name).or_default().in_register = false;
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(list: &[(u32, &[usize])]) -> HashMap<Value, Vec<usize>> {
        list.iter().map(|(name, times)| (Value(*name), times.iter().rev().copied().collect())).collect()
    }

    #[test]
    fn the_value_that_is_read_last_leaves_the_registers() {
        let uses = uses(&[(0, &[9]), (1, &[5]), (2, &[7])]);
        let mut file = File { registers: 2, ..File::default() };
        file.load(Value(0), 1, &uses);
        file.load(Value(1), 1, &uses);
        assert_eq!(file.moved, 2);
        file.define(Value(2), 1, &uses);
        // It came from memory, so it is not stored.
        assert_eq!((file.moved, file.vectors[&Value(0)].in_register), (2, false));
        // This one is stored, and nothing reads the new value.
        file.define(Value(3), 1, &uses);
        assert_eq!((file.moved, file.vectors[&Value(2)].in_register), (2 + ORDER_STORE_COST, false));
        file.load(Value(1), 1, &uses);
        file.load(Value(2), 1, &uses);
        assert_eq!((file.moved, file.vectors[&Value(3)].in_register), (3 + ORDER_STORE_COST, false));
    }
}
