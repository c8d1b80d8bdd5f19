//! A function as native code will execute it, before any native code exists.
//!
//! A **plan** is a graph of nodes in static single assignment form. It executes one warp: all lanes of the running group move along one
//! edge together, and lanes that part at a divergent branch are **parked** at the block they are to go to, as a mask, until that
//! block is the lowest with lanes (the interpreter's convergence policy, decided statically where it can be). Each block may have two
//! copies: a **full** one, in which all 32 lanes run and nobody is parked, and a **masked** one.
//!
//! A register that others may write while lanes are parked is **captured** when they park, and blended back when they go on; so
//! nothing else needs a mask: ordinary instructions compute in all lanes, and what inactive lanes compute is never seen.
//!
//! Where a plan stops, it says where each live register is, so that the warp frame is complete and anyone can go on from there.
//!
//! What it does not do: no LLVM, no instruction selection, no addresses.

#[cfg(test)]
mod tests;

pub use crate::analysis::shape::lattice::{Affine, Shape};

use ptx::ir::{Function, Inst, Reg, RegClass, Terminator};

/// Index of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// A value: assigned once, in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A register's value in all lanes.
    Reg(RegClass),
    /// A set of lanes, the same for all of them: a 32-bit word.
    Mask,
    /// A 64-bit number, the same for all lanes.
    Count,
}

/// One operation of a node.
#[derive(Clone, Debug)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// What it reads, in the order that the kind says.
    pub uses: Vec<Value>,
    /// What it writes.
    pub defs: Vec<Value>,
}

/// What an operation does.
#[derive(Clone, Debug)]
pub enum OpKind {
    /// The instruction, guard aside. Uses: the lanes that execute it, the registers of its sources in their order, the carry mask
    /// if it reads that, and both counts of instructions executed, with all lanes and masked, if it reads a clock. Defs: the registers of its destinations in their order, and the carry mask if it writes that.
    Inst(Site),
    /// Lanes of the mask from the first, the others from the second. Uses: mask, first, second.
    SelectMask,
    /// Lanes where the predicate (negated if so) is true from the first. Uses: predicate, first, second.
    SelectPred {
        /// `@!p`
        negated: bool,
    },
    /// The register, from the warp frame.
    Load(Reg),
    /// The register, from what the warp kept when it reached a barrier of the CTA: of [`Func::resumes`], and which register.
    Restore(u32, Reg),
    /// A constant mask.
    Mask(u32),
    /// The lanes that the caller runs.
    EntryMask,
    /// The lanes of the warp that have not exited, as the caller says.
    EntryLive,
    /// The carry flags in the warp's state.
    EntryCarry,
    /// How many turns of loops may be taken.
    EntryTurns,
    /// A constant number.
    Count(u64),
    /// Lanes where the predicate (negated if so) is true; lanes that don't run are anything. Uses: predicate.
    Truths {
        /// `@!p`
        negated: bool,
    },
    /// Uses: two masks.
    And,
    /// Lanes of the first that are not in the second.
    AndNot,
    /// Uses: two masks.
    Or,
    /// Adds the constant to the number.
    Add(i64),
    /// Adds the constant for each lane of a mask. Uses: number, mask.
    AddLanes(u64),
    /// Adds the constant for each warp that has lanes in a mask. Uses: number, mask.
    AddWarps(u64),
    /// Leaves unless the conversion of an affine value at the site is exact in every lane. Uses: those of the exit.
    Guard(Site, Box<Exit>),
    /// Stands first in its node: leaves before the block if what can be foreseen of its accesses does not fit. Uses: those of the exit.
    Ahead(Box<Exit>),
    /// In a team, before an access: how to leave where it does not fit its bounds. Uses: those of the exit.
    Spare(Site, Box<Exit>),
}

/// An instruction of the function: a block, and the instruction in it; the terminator's stands behind the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// The block.
    pub block: u32,
    /// The instruction.
    pub index: u32,
}

impl Site {
    /// The instruction.
    pub fn inst(self, function: &Function) -> Option<&Inst> {
        let block = function.blocks.get(self.block as usize)?;
        match block.insts.get(self.index as usize) {
            Some(inst) => Some(inst),
            None => block.term.inst(),
        }
    }
}

/// A condition that is the same for all lanes.
#[derive(Clone, Copy, Debug)]
pub enum Cond {
    /// A uniform predicate.
    Pred {
        /// The predicate.
        value: Value,
        /// Whether it is negated.
        negated: bool,
    },
    /// The mask is empty.
    Empty(Value),
    /// The masks are equal.
    Equal(Value, Value),
    /// The mask has all 32 lanes.
    Full(Value),
    /// The number is negative.
    Negative(Value),
    /// A warp-synchronous instruction in these lanes, out of the live ones, can be done at once: the lanes all name themselves as
    /// members, and no other that lives.
    Together {
        /// Where.
        site: Site,
        /// The register of the member mask, if it is one.
        members: Option<Value>,
        /// Lanes.
        mask: Value,
        /// Live lanes.
        live: Value,
    },
}

/// How a node ends.
#[derive(Clone, Debug)]
pub enum Term {
    /// Goes on there.
    Goto(BlockId),
    /// Two ways.
    If {
        /// Condition.
        cond: Cond,
        /// Where it holds.
        then: BlockId,
        /// Where it does not.
        els: BlockId,
        /// Whether it will nearly always hold, or nearly never.
        likely: Option<bool>,
    },
    /// `brx.idx` with an index that is the same for all lanes.
    Switch {
        /// The index.
        value: Value,
        /// Targets by index.
        targets: Vec<BlockId>,
        /// Where the index is beyond them.
        beyond: BlockId,
    },
    /// Stops.
    Exit(Box<Exit>),
}

/// ExitReason a plan stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitReason {
    /// No lane is left.
    Finished,
    /// Before the block; it has taken its turns.
    Yield {
        /// The block.
        block: u32,
    },
    /// Before the terminator of the block.
    Terminator {
        /// The block.
        block: u32,
    },
    /// Before the instruction.
    Before(Site),
    /// Before the block that it was to start at: nothing has happened.
    Declined,
}

/// The state where a plan stops.
#[derive(Clone, Debug)]
pub struct Exit {
    /// ExitReason.
    pub why: ExitReason,
    /// The running lanes.
    pub mask: Value,
    /// The lanes of the warp that have not exited.
    pub live: Value,
    /// The carry flags, if the function uses them.
    pub carry: Option<Value>,
    /// Live registers of the running lanes.
    pub regs: Vec<(Reg, Value)>,
    /// Pending lanes.
    pub parked: Vec<Pending>,
    /// Instructions executed with all lanes.
    pub full_steps: Value,
    /// Instructions executed masked.
    pub masked_steps: Value,
    /// The same, counted for each lane.
    pub lane_steps: Value,
    /// Turns of loops that are left.
    pub turns: Value,
    /// Where the warp goes on once the whole CTA is there, as an index of [`Func::resumes`], if that is all that it waits for.
    pub resume: Option<u32>,
}

/// Pending lanes.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Where they go on.
    pub block: u32,
    /// Which; perhaps none.
    pub mask: Value,
    /// Their live registers.
    pub regs: Vec<(Reg, Value)>,
}

impl Exit {
    /// Calls `f` with each value that is read.
    pub fn for_each_use(&mut self, f: &mut impl FnMut(&mut Value)) {
        f(&mut self.mask);
        f(&mut self.live);
        self.carry.iter_mut().for_each(&mut *f);
        self.regs.iter_mut().for_each(|(_, name)| f(name));
        for parked in &mut self.parked {
            f(&mut parked.mask);
            parked.regs.iter_mut().for_each(|(_, name)| f(name));
        }
        f(&mut self.full_steps);
        f(&mut self.masked_steps);
        f(&mut self.lane_steps);
        f(&mut self.turns);
    }
}

impl Term {
    /// Calls `f` with each value that is read.
    pub fn for_each_use(&mut self, f: &mut impl FnMut(&mut Value)) {
        match self {
            Term::Goto(_) => {}
            Term::If { cond, .. } => match cond {
                Cond::Pred { value, .. } => f(value),
                Cond::Empty(a) | Cond::Full(a) | Cond::Negative(a) => f(a),
                Cond::Equal(a, b) => {
                    f(a);
                    f(b);
                }
                Cond::Together { members, mask, live, site: _ } => {
                    members.iter_mut().for_each(&mut *f);
                    f(mask);
                    f(live);
                }
            },
            Term::Switch { value, .. } => f(value),
            Term::Exit(exit) => exit.for_each_use(f),
        }
    }

    /// Where it goes on; a node that stands twice comes twice.
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Term::Goto(to) => vec![*to],
            Term::If { then, els, .. } => vec![*then, *els],
            Term::Switch { targets, beyond, .. } => targets.iter().copied().chain([*beyond]).collect(),
            Term::Exit(_) => Vec::new(),
        }
    }
}

impl Op {
    /// Calls `f` with each value that is read.
    pub fn for_each_use(&mut self, f: &mut impl FnMut(&mut Value)) {
        self.uses.iter_mut().for_each(&mut *f);
        if let OpKind::Guard(_, exit) | OpKind::Ahead(exit) | OpKind::Spare(_, exit) = &mut self.kind {
            exit.for_each_use(f);
        }
    }
}

/// A value that depends on where the node was entered from.
#[derive(Clone, Debug)]
pub struct Phi {
    /// The value.
    pub def: Value,
    /// By predecessor.
    pub from: Vec<Value>,
}

/// A straight piece of a plan.
#[derive(Clone, Debug)]
pub struct Block {
    /// Block that it belongs to.
    pub block: u32,
    /// Whether all lanes run and nobody is parked.
    pub full: bool,
    /// Predecessors; one that comes in twice stands twice.
    pub preds: Vec<BlockId>,
    /// Values that depend on the predecessor.
    pub phis: Vec<Phi>,
    /// Operations in order.
    pub ops: Vec<Op>,
    /// How it ends.
    pub term: Term,
}

/// Where a plan can be entered.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The block that is to be run.
    pub block: u32,
    /// The node that loads the registers.
    pub node: BlockId,
    /// What must hold of the frame, unless the plan itself left it so: the class that is relied on.
    pub relies: Vec<(Reg, Value)>,
}

/// A barrier at which a whole warp waits for the whole CTA, and how it goes on. Each copy of its block has one of its own, so that what
/// lives across keeps the class that it has there. Also where a team stops between two turns of a loop.
#[derive(Clone, Debug)]
pub struct Resume {
    /// The block that ends with the barrier; the loop's header.
    pub block: u32,
    /// Number of the barrier; `None`: a loop.
    pub id: Option<u32>,
    /// Whether the instruction gives the CTA's number of threads: then no warp may have exited.
    pub counted: bool,
    /// The node that restores the registers.
    pub node: BlockId,
    /// What lives across, as the stop at the barrier has it.
    pub kept: Vec<(Reg, Value)>,
}

/// A function as native code will execute it.
#[derive(Clone, Debug)]
pub struct Func {
    /// Nodes.
    pub nodes: Vec<Block>,
    /// What each value is.
    pub kinds: Vec<Kind>,
    /// What is known of each value.
    pub shapes: Vec<Shape>,
    /// Entries, by ascending block.
    pub entries: Vec<Entry>,
    /// Where a warp begins that has no frame yet.
    pub start: BlockId,
    /// Where warps go on behind barriers of the CTA.
    pub resumes: Vec<Resume>,
    /// Values that are zero.
    pub zeros: Vec<Value>,
    /// Those of them that stand for values which nobody sees, so that they may be of any class.
    pub undef: Vec<Value>,
    /// By name: whether anything reads it.
    pub needed: Vec<bool>,
}

/// What the plan is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Threads of a CTA in each dimension.
    pub ntid: [u32; 3],
    /// Lanes of a chunk: 4, 8 or 16.
    pub chunk: u32,
    /// Warps that run as one. If there are several, the threads of a CTA are a multiple of their lanes.
    pub team: u32,
}

impl LaunchShape {
    /// Lanes that run as one.
    pub fn lanes(&self) -> u32 {
        32 * self.team
    }

    /// Threads of a CTA.
    pub fn threads(&self) -> u32 {
        self.ntid.iter().product()
    }

    /// Whether one team is the whole CTA.
    pub fn is_alone(&self) -> bool {
        self.team > 1 && self.threads() == self.lanes()
    }

    /// Whether every warp of a CTA starts with 32 lanes.
    pub fn whole_warps(&self) -> bool {
        self.threads().is_multiple_of(self.lanes())
    }
}

/// What one instruction is to the planner.
pub trait Effects {
    /// Whether a warp-synchronous terminator has native code.
    fn does_sync(&self, inst: &Inst) -> bool;
    /// Whether the instruction's result depends on nothing but its operands, lane by lane.
    fn is_pure(&self, inst: &Inst) -> bool;
    /// What executing the instruction costs a warp, in instructions that only compute.
    fn work(&self, inst: &Inst) -> u64;
    /// Whether the instruction reads and writes the carry flags.
    fn carry(&self, inst: &Inst) -> (bool, bool);
    /// Whether the instruction reads a clock, which shows how much the warp has executed.
    fn reads_clock(&self, inst: &Inst) -> bool;
    /// Whether the instruction reads or writes memory at addresses that are checked.
    fn accesses(&self, inst: &Inst) -> bool;
    /// Whether a loop around the instruction may wait for others.
    fn watches(&self, inst: &Inst) -> bool;
}

/// Whether a terminator is one that the plan carries out or one at which it stops.
pub(crate) fn stops(term: &Terminator) -> bool {
    match term {
        Terminator::Call(_) | Terminator::Barrier { .. } => true,
        Terminator::WarpSync { .. }
        | Terminator::Goto(..)
        | Terminator::Branch { .. }
        | Terminator::Switch { .. }
        | Terminator::Ret(_)
        | Terminator::Exit(_) => false,
    }
}
