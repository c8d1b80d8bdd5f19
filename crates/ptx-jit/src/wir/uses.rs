//! Definitions and uses: where each value is defined, how often it is read, and in which blocks.
//!
//! Invariant: every place that reads a value is listed by [`Op::for_each_use`], [`Term::for_each_use`] and
//! the operands of phis, so the verifier, dead code elimination and code generation agree about it. A phi
//! reads an operand at the end of the predecessor that the operand comes from. Values that a barrier keeps
//! ([`Resume::kept`](super::Resume::kept)) are read too, although no operation names them.

use super::{Block, BlockId, Exit, Func, Op, OpKind, Term, Value};

/// Where a value is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Def {
    /// By the phi of that index.
    Phi(BlockId, usize),
    /// By the operation of that index.
    Op(BlockId, usize),
}

impl Def {
    /// The block that defines it.
    pub fn block(self) -> BlockId {
        match self {
            Def::Phi(block, _) | Def::Op(block, _) => block,
        }
    }
}

/// The definition of each value, and how often it is read.
#[derive(Clone, Debug)]
pub struct DefUse {
    defs: Vec<Option<Def>>,
    reads: Vec<u32>,
}

impl DefUse {
    /// Lists the definitions and counts the uses of a function.
    pub fn new(func: &Func) -> Self {
        let count = func.kinds.len();
        let mut all = Self { defs: vec![None; count], reads: vec![0; count] };
        for (id, block) in (0..).map(BlockId).zip(&func.blocks) {
            for (at, phi) in block.phis.iter().enumerate() {
                all.defs[phi.def.0 as usize] = Some(Def::Phi(id, at));
                phi.from.iter().for_each(|value| all.reads[value.0 as usize] += 1);
            }
            for (at, op) in block.ops.iter().enumerate() {
                op.defs.iter().for_each(|def| all.defs[def.0 as usize] = Some(Def::Op(id, at)));
                op.for_each_use(&mut |value| all.reads[value.0 as usize] += 1);
            }
            block.term.for_each_use(&mut |value| all.reads[value.0 as usize] += 1);
        }
        for (_, value) in func.resumes.iter().flat_map(|resume| &resume.kept) {
            all.reads[value.0 as usize] += 1;
        }
        all
    }

    /// Where a value is defined; `None` for a zero ([`Func::zeros`]) and for a value that nothing defines any
    /// more.
    pub fn def(&self, value: Value) -> Option<Def> {
        self.defs[value.0 as usize]
    }

    /// The operation that defines a value, if it is one: its block and its index there.
    pub fn op(&self, value: Value) -> Option<(BlockId, usize)> {
        match self.def(value)? {
            Def::Op(block, at) => Some((block, at)),
            Def::Phi(..) => None,
        }
    }

    /// The same, with the operation itself.
    pub fn op_of<'f>(&self, func: &'f Func, value: Value) -> Option<&'f Op> {
        self.op(value).map(|(block, at)| &func.blocks[block.0 as usize].ops[at])
    }

    /// How often a value is read.
    pub fn reads(&self, value: Value) -> u32 {
        self.reads[value.0 as usize]
    }
}

/// For each value, the blocks that read it.
#[derive(Clone, Debug, Default)]
pub struct Readers {
    blocks: Vec<Vec<BlockId>>,
}

impl Readers {
    /// Lists the readers of each value of a function.
    pub fn new(func: &Func) -> Self {
        let mut blocks: Vec<Vec<BlockId>> = vec![Vec::new(); func.kinds.len()];
        let mut read = |value: Value, block: BlockId| blocks[value.0 as usize].push(block);
        for (id, block) in (0..).map(BlockId).zip(&func.blocks) {
            for phi in &block.phis {
                phi.from.iter().zip(&block.preds).for_each(|(value, from)| read(*value, *from));
            }
            block.ops.iter().for_each(|op| op.for_each_use(&mut |value| read(value, id)));
            block.term.for_each_use(&mut |value| read(value, id));
        }
        for all in &mut blocks {
            all.sort_unstable();
            all.dedup();
        }
        Self { blocks }
    }

    /// The blocks that read a value, ascending; none if the readers were not listed.
    pub fn of(&self, value: Value) -> &[BlockId] {
        self.blocks.get(value.0 as usize).map_or(&[], Vec::as_slice)
    }
}

impl Exit {
    /// Calls `f` with each value that is read.
    pub fn for_each_use(&self, f: &mut impl FnMut(Value)) {
        f(self.mask);
        f(self.live);
        self.carry.iter().copied().for_each(&mut *f);
        self.regs.iter().for_each(|(_, value)| f(*value));
        for pending in &self.parked {
            f(pending.mask);
            pending.regs.iter().for_each(|(_, value)| f(*value));
        }
        [self.full_steps, self.masked_steps, self.lane_steps, self.turns].into_iter().for_each(f);
    }

    /// Calls `f` with each value that is read, to replace it.
    pub fn for_each_use_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        f(&mut self.mask);
        f(&mut self.live);
        self.carry.iter_mut().for_each(&mut *f);
        self.regs.iter_mut().for_each(|(_, value)| f(value));
        for pending in &mut self.parked {
            f(&mut pending.mask);
            pending.regs.iter_mut().for_each(|(_, value)| f(value));
        }
        f(&mut self.full_steps);
        f(&mut self.masked_steps);
        f(&mut self.lane_steps);
        f(&mut self.turns);
    }
}

impl Term {
    /// Calls `f` with each value that is read.
    pub fn for_each_use(&self, f: &mut impl FnMut(Value)) {
        use super::Cond;
        match self {
            Term::Goto(_) => {}
            Term::If { cond, .. } => match cond {
                Cond::Pred { value, .. } => f(*value),
                Cond::Empty(a) | Cond::Full(a) | Cond::Negative(a) => f(*a),
                Cond::Equal(a, b) => [*a, *b].into_iter().for_each(f),
                Cond::Together { members, mask, live, site: _ } => {
                    members.iter().copied().chain([*mask, *live]).for_each(f);
                }
            },
            Term::Switch { value, .. } => f(*value),
            Term::Exit(exit) => exit.for_each_use(f),
        }
    }

    /// Calls `f` with each value that is read, to replace it.
    pub fn for_each_use_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        use super::Cond;
        match self {
            Term::Goto(_) => {}
            Term::If { cond, .. } => match cond {
                Cond::Pred { value, .. } => f(value),
                Cond::Empty(a) | Cond::Full(a) | Cond::Negative(a) => f(a),
                Cond::Equal(a, b) => [a, b].into_iter().for_each(f),
                Cond::Together { members, mask, live, site: _ } => {
                    members.iter_mut().for_each(&mut *f);
                    f(mask);
                    f(live);
                }
            },
            Term::Switch { value, .. } => f(value),
            Term::Exit(exit) => exit.for_each_use_mut(f),
        }
    }

    /// Whether the terminator reads a value.
    pub fn reads(&self, value: Value) -> bool {
        let mut found = false;
        self.for_each_use(&mut |other| found |= other == value);
        found
    }
}

impl Op {
    /// Calls `f` with each value that is read.
    pub fn for_each_use(&self, f: &mut impl FnMut(Value)) {
        self.uses.iter().copied().for_each(&mut *f);
        if let OpKind::Guard(_, _, exit) | OpKind::Ahead(exit) | OpKind::Spare(_, exit) = &self.kind {
            exit.for_each_use(f);
        }
    }

    /// Calls `f` with each value that is read, to replace it.
    pub fn for_each_use_mut(&mut self, f: &mut impl FnMut(&mut Value)) {
        self.uses.iter_mut().for_each(&mut *f);
        if let OpKind::Chain(chain) = &mut self.kind {
            chain.ops.iter_mut().flat_map(|op| &mut op.uses).for_each(&mut *f);
        }
        if let OpKind::Guard(_, _, exit) | OpKind::Ahead(exit) | OpKind::Spare(_, exit) = &mut self.kind {
            exit.for_each_use_mut(f);
        }
    }

    /// Whether the operation reads a value.
    pub fn reads(&self, value: Value) -> bool {
        let mut found = false;
        self.for_each_use(&mut |other| found |= other == value);
        found
    }
}

impl Block {
    /// The index of the operation of this block that defines a value.
    pub fn op_of(&self, value: Value) -> Option<usize> {
        self.ops.iter().position(|op| op.defs.contains(&value))
    }

    /// The index of a predecessor, which is that of its operand in each phi; the first if it has two edges to
    /// the block.
    pub fn pred_index(&self, from: BlockId) -> Option<usize> {
        self.preds.iter().position(|pred| *pred == from)
    }

    /// Whether a phi of this block takes a value from a predecessor.
    pub fn takes_from(&self, from: BlockId, value: Value) -> bool {
        let operands = |phi: &super::Phi| {
            phi.from.iter().zip(&self.preds).any(|(operand, pred)| *pred == from && *operand == value)
        };
        self.phis.iter().any(operands)
    }
}
