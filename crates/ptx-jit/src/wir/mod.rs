//! WIR, the warp IR: a function as native code executes it, before any native code exists.
//!
//! A function is a graph of blocks in static single assignment form. It executes one warp: all lanes of the
//! active group move along one edge together. Lanes that diverge at a branch are **pending** at the block
//! they go to, as a mask, until that block is the lowest with lanes (the interpreter's convergence policy,
//! decided statically where it can be). Each PTX block may have two copies: a **full** one, in which all
//! lanes are active and none is pending, and a **masked** one.
//!
//! A register that active lanes may write while others are pending is **captured** when those become pending,
//! and blended back when they continue. So nothing else needs a mask: an ordinary instruction computes in all
//! lanes, and the results of inactive lanes are never observed.
//!
//! Where a function stops, it says which value each live register has, so that the warp frame is complete and
//! the interpreter can continue.
//!
//! [`mod@print`] and [`parse`] are the text form, [`verify`] checks the rules. [`uses`], [`dom`], the loops
//! of PTX blocks and the slots of barriers are here, once for all passes.
//!
//! What it does not do: no LLVM, no instruction selection, no addresses.

pub(crate) mod access;
mod access_text;
mod cfg;
pub(crate) mod checks;
pub(crate) mod decision;
pub mod dom;
pub(crate) mod endpoint_test;
pub(crate) mod group;
pub(crate) mod lane_width;
pub mod lattice;
pub(crate) mod leading_lanes;
pub(crate) mod loops;
pub mod parse;
pub(crate) mod prefetch;
pub mod print;
pub(crate) mod saved_form;
pub(crate) mod section;
pub(crate) mod slot_memory;
mod slots;
pub(crate) mod sunk_mask;
#[cfg(test)]
mod tests;
pub mod uses;
pub mod verify;
pub(crate) mod version;
pub(crate) mod warp_strips;

pub use lattice::{Affine, Shape};

use ptx::ir::{Function, Inst, Reg, RegClass, Src, Terminator};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

/// Index of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// An SSA value: assigned once, in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A register's value in all lanes.
    Reg(RegClass),
    /// A set of lanes, the same for all of them: one bit for each lane.
    Mask,
    /// A 64-bit number, uniform.
    Count,
}

/// One operation of a block.
#[derive(Clone, Debug)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// The values it reads, in the order that the kind says.
    pub uses: Vec<Value>,
    /// The values it defines.
    pub defs: Vec<Value>,
    /// How it accesses memory, if it does and [`mem`](crate::mem) has planned it.
    pub(crate) access: Option<Rc<access::Plan>>,
    /// What is prefetched beside it, once that has been decided.
    pub(crate) prefetch: Option<Rc<prefetch::Decisions>>,
}

/// What an operation does.
#[derive(Clone, Debug)]
pub enum OpKind {
    /// The instruction, guard aside. Uses: the mask of the lanes that execute it, the registers of its
    /// sources in their order, the carry mask if it reads that, and both counts of executed instructions
    /// (with all lanes, and masked) if it reads a clock. Defs: the registers of its destinations in their
    /// order, and the carry mask if it writes that.
    Inst(Site),
    /// Double precision arithmetic whose NaNs are looked for once, behind all of it. Uses: the mask of the
    /// lanes that execute it, and the registers that its instructions read from outside, each once. Defs:
    /// those of its results that are read outside.
    Chain(Box<Chain>),
    /// The first value in lanes of the mask, the second in the others. Uses: mask, first, second.
    SelectMask,
    /// The first value in lanes where the predicate (negated if so) is true, the second in the others. Uses:
    /// predicate, first, second.
    SelectPred {
        /// `@!p`
        negated: bool,
    },
    /// Loads the register from the warp frame.
    Load(Reg),
    /// Loads the spilled register (`build::spill`) from the warp frame, in all lanes.
    Reload(Reg),
    /// Stores the spilled register to the warp frame, in the lanes of the mask. Uses: mask, value.
    Spill(Reg),
    /// Loads the register from the barrier slot where the warp saved it: an index of [`Func::resumes`], and
    /// the register.
    Restore(u32, Reg),
    /// The result of the barrier behind which the warp resumes: an index of [`Func::resumes`], and the
    /// register that the barrier writes.
    Reduced(u32, Reg),
    /// A constant mask.
    Mask(u32),
    /// The mask of the lanes that the caller runs.
    EntryMask,
    /// The lanes of the warp that have not exited, as the caller says.
    EntryLive,
    /// The carry flags in the warp's state.
    EntryCarry,
    /// The fuel of the call: how many iterations of loops it may execute.
    EntryTurns,
    /// A constant number.
    Count(u64),
    /// The mask of lanes where the predicate (negated if so) is true; bits of inactive lanes are arbitrary.
    /// Uses: predicate.
    Truths {
        /// `@!p`
        negated: bool,
    },
    /// The mask of lanes whose 32-bit number is one of `count` numbers from `first` on; bits of inactive
    /// lanes are arbitrary. Uses: the register.
    InRange {
        /// The first of the numbers.
        first: u32,
        /// How many there are.
        count: u32,
    },
    /// Whether the minimum, maximum or absolute value at the site is one of its operands in every lane, as
    /// the first and the last lane show: a uniform predicate, which may be false although each lane's is. At
    /// a comparison: whether it is true in every lane, so that a selection picks its first operand, or false
    /// in every lane. Uses: those of the instruction.
    Picks {
        /// The instruction, of 32 bits. That operand is affine ([`Affine::span`]), the other uniform; one of
        /// those that are compared is affine, the other uniform.
        site: Site,
        /// Whether the operand is the second, or the comparison false.
        second: bool,
    },
    /// Whether the quotient of the division, or of the remainder, at the site is the same in every lane, as
    /// the first and the last lane show, and the instruction's result in the first lane. If they do not show
    /// that, the predicate is false and the result is any. Uses: those of the instruction, of 32 bits, whose
    /// dividend is affine ([`Affine::span`]) and whose divisor is uniform. Defs: a uniform predicate, the
    /// result of the first lane.
    SameQuotient(Site),
    /// The first value, moved by the same number in each lane so that the second is its first lane. Uses: a
    /// 32-bit register of affine shape ([`Affine::span`]), a uniform one.
    Rebase,
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
    /// Side exit unless that holds of the instruction at the site. Uses: the sources of the instruction, and
    /// those of the exit.
    Guard(Site, GuardKind, Box<Exit>),
    /// First in its block: side exit before the block if a coalesced bounds check fails. Uses: those of the
    /// exit.
    Ahead(Box<Exit>),
    /// Before an access: the side exit to take if the access fails a check. In a coarse warp, and where the
    /// instruction needs it ([`Effects::exits_before`]). Uses: those of the exit.
    Spare(Site, Box<Exit>),
}

/// What a guard ensures of the instruction behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// A conversion of an affine value is exact in every lane.
    Exact,
    /// It is exact in those of the exit's mask. The result is affine through the first of these lanes; in
    /// other lanes it may be another number than the converted one.
    ExactInActive,
    /// A comparison of an affine and a uniform value has the same result in all lanes.
    SameInAll,
}

/// Instructions of which each gives a NaN in a lane where an operand is one (`opt::float_chains`). So a NaN
/// of any of them is also in the results that lead to no other result of the chain.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The instructions ([`OpKind::Inst`]) in their order, under the mask of the chain.
    pub ops: Vec<Op>,
    /// Results that show whether a NaN is among those whose bits are read.
    pub tested: Vec<Value>,
    /// Results that are read as numbers only, so that a NaN may have any bits.
    pub any_nan: Vec<Value>,
}

/// An instruction of the PTX function: a block and an index in it. The terminator has the index behind the
/// last instruction.
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

/// A uniform condition.
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
    /// These lanes, out of the live ones, can execute a warp-synchronous instruction at once: all of them
    /// name exactly themselves as members, apart from lanes that have exited.
    Together {
        /// The instruction.
        site: Site,
        /// The register of the member mask, if it is one.
        members: Option<Value>,
        /// The lanes that execute it.
        mask: Value,
        /// Live lanes.
        live: Value,
    },
}

/// The terminator of a block.
#[derive(Clone, Debug)]
pub enum Term {
    /// Continues there.
    Goto(BlockId),
    /// A conditional branch.
    If {
        /// The condition.
        cond: Cond,
        /// The target where the condition holds.
        then: BlockId,
        /// The target where it does not.
        els: BlockId,
        /// Whether the condition nearly always holds, or nearly never does.
        likely: Option<bool>,
    },
    /// `brx.idx` with a uniform index. One whose lanes may differ becomes masks ([`OpKind::InRange`]).
    Switch {
        /// The index.
        value: Value,
        /// Targets by index.
        targets: Vec<BlockId>,
        /// The target of an index beyond the list.
        beyond: BlockId,
    },
    /// Stops.
    Exit(Box<Exit>),
}

/// Why a function stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitReason {
    /// No lane is left to execute.
    Finished,
    /// Before the block: the fuel is used up.
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
    /// Before the block that it was to start at; it has had no effect.
    Declined,
}

/// The state where a function stops.
#[derive(Clone, Debug)]
pub struct Exit {
    /// The reason.
    pub why: ExitReason,
    /// The active lanes.
    pub mask: Value,
    /// The lanes of the warp that have not exited.
    pub live: Value,
    /// The carry flags, if the function uses them.
    pub carry: Option<Value>,
    /// Live registers of the active lanes.
    pub regs: Vec<(Reg, Value)>,
    /// Lanes that are pending at other blocks.
    pub parked: Vec<Pending>,
    /// How many instructions were executed with all lanes.
    pub full_steps: Value,
    /// How many instructions were executed under a mask.
    pub masked_steps: Value,
    /// The same, counted once for each lane.
    pub lane_steps: Value,
    /// The fuel that is left.
    pub turns: Value,
    /// Where the warp continues when the whole CTA has arrived, as an index of [`Func::resumes`], if that is
    /// all it waits for.
    pub resume: Option<u32>,
}

/// Lanes that are pending at a block: they execute later.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The block where they continue.
    pub block: u32,
    /// The lanes; may be none.
    pub mask: Value,
    /// Their live registers.
    pub regs: Vec<(Reg, Value)>,
}

impl Term {
    /// The successors; one that is a target twice is returned twice.
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Term::Goto(to) => vec![*to],
            Term::If { then, els, .. } => vec![*then, *els],
            Term::Switch { targets, beyond, .. } => targets.iter().copied().chain([*beyond]).collect(),
            Term::Exit(_) => Vec::new(),
        }
    }

    /// Calls `f` for each block that may follow, which it may replace.
    pub(crate) fn for_each_target_mut(&mut self, f: &mut impl FnMut(&mut BlockId)) {
        match self {
            Term::Goto(to) => f(to),
            Term::If { then, els, .. } => [then, els].into_iter().for_each(f),
            Term::Switch { targets, beyond, .. } => targets.iter_mut().chain([beyond]).for_each(f),
            Term::Exit(_) => {}
        }
    }
}

/// A phi: a value that depends on the predecessor that the block was entered from.
#[derive(Clone, Debug)]
pub struct Phi {
    /// The value.
    pub def: Value,
    /// The operands, one for each predecessor.
    pub from: Vec<Value>,
}

/// A basic block: straight-line operations and a terminator.
#[derive(Clone, Debug)]
pub struct Block {
    /// The PTX block that this is a copy of.
    pub block: u32,
    /// Whether all lanes are active and none is pending.
    pub full: bool,
    /// The predecessors; one with two edges to the block stands twice.
    pub preds: Vec<BlockId>,
    /// The phis.
    pub phis: Vec<Phi>,
    /// The operations in order.
    pub ops: Vec<Op>,
    /// The terminator.
    pub term: Term,
    /// Its bounds checks, if it has any and [`opt::checks`](crate::opt::checks) has found them.
    pub(crate) checks: Option<Rc<checks::BlockChecks>>,
    /// Accesses that are emitted together, once [`mem::group`](crate::mem::group) has found them.
    pub(crate) groups: Vec<Rc<group::Group>>,
    /// Where the prefetches are issued that it defers, if it defers any and
    /// [`opt::prefetch`](crate::opt::prefetch) has decided that.
    pub(crate) deferral: Option<prefetch::Deferral>,
    /// The versions of it for its leading lanes, if [`opt::version_prefix`](crate::opt::version_prefix) has
    /// considered any.
    pub(crate) leading: Option<decision::Decision<version::LeadingVersions>>,
    /// The version of it in which all lanes are active, if
    /// [`opt::version_unmasked`](crate::opt::version_unmasked) has considered one.
    pub(crate) unmasked: Option<decision::Decision<version::Unmasked>>,
    /// Its straight-line sections that chunk loops were considered for, and other long ones, once
    /// [`opt::chunk_loops`](crate::opt::chunk_loops) has found them.
    pub(crate) sections: Vec<section::Section>,
    /// How it issues the prefetches that are deferred to it, if any are and that has been decided.
    pub(crate) issue: Option<prefetch::Issue>,
    /// The masks that it sinks into other blocks, once [`opt::sink_masks`](crate::opt::sink_masks) has found
    /// them.
    pub(crate) sunk: Vec<Rc<sunk_mask::SunkMask>>,
    /// The endpoint test that it ends with, if [`opt::endpoint_tests`](crate::opt::endpoint_tests) has found
    /// one.
    pub(crate) endpoint_test: Option<Rc<endpoint_test::EndpointTest>>,
    /// What warp strips do with it, if a coarse warp is the whole CTA and
    /// [`opt::warp_strips`](crate::opt::warp_strips) has decided that.
    pub(crate) strips: Option<warp_strips::Strips>,
}

impl Block {
    /// A block without predecessors and phis, of which no pass has decided anything.
    pub(crate) fn new(block: u32, full: bool, ops: Vec<Op>, term: Term) -> Self {
        Self {
            block,
            full,
            preds: Vec::new(),
            phis: Vec::new(),
            ops,
            term,
            checks: None,
            groups: Vec::new(),
            deferral: None,
            leading: None,
            unmasked: None,
            sections: Vec::new(),
            issue: None,
            sunk: Vec::new(),
            endpoint_test: None,
            strips: None,
        }
    }

    /// The operation with this index in comments of the text form: its first instruction, as `1.4` for the
    /// fifth of PTX block 1, or the index if it has none.
    pub(crate) fn place(&self, at: usize) -> String {
        match self.ops.get(at).and_then(|op| op.insts().next()) {
            Some((site, _)) => format!("{}.{}", site.block, site.index),
            None => format!("op {at}"),
        }
    }
}

/// A place where the function can be entered.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The PTX block to execute.
    pub block: u32,
    /// The block that loads the registers.
    pub node: BlockId,
    /// Registers with the values they are loaded to: the frame must conform to the shapes of these, unless
    /// the function itself stored it.
    pub relies: Vec<(Reg, Value)>,
}

/// A barrier at which a whole warp waits for the whole CTA, and where the warp continues. Each copy of the
/// block has one of its own, so that values that live across the barrier keep the shapes they have there.
/// Also where a coarse warp stops between two iterations of a loop.
#[derive(Clone, Debug)]
pub struct Resume {
    /// The block that ends with the barrier, or the header of the loop.
    pub block: u32,
    /// The number of the barrier; `None` for a loop.
    pub id: Option<u32>,
    /// Whether the instruction returns the number of threads of the CTA: then no warp may have exited.
    pub counted: bool,
    /// The block that restores the registers.
    pub node: BlockId,
    /// The registers that live across the barrier, with their values at the stop.
    pub kept: Vec<(Reg, Value)>,
}

/// A function in SSA form, as native code will execute it.
#[derive(Clone, Debug)]
pub struct Func {
    /// The blocks.
    pub blocks: Vec<Block>,
    /// The kind of each value.
    pub kinds: Vec<Kind>,
    /// The shape of each value: how it depends on the lane.
    pub shapes: Vec<Shape>,
    /// Entries, by ascending block.
    pub entries: Vec<Entry>,
    /// Where a warp without a frame starts.
    pub start: BlockId,
    /// Where warps continue behind barriers of the CTA.
    pub resumes: Vec<Resume>,
    /// Values that are zero.
    pub zeros: Vec<Value>,
    /// Those of the zeros that are undefined values: their bits are never observed, so they may have any
    /// shape.
    pub undef: Vec<Value>,
    /// For each value, whether anything reads it.
    pub needed: Vec<bool>,
    /// Where registers are saved at barriers, once [`opt::barrier_slots`](crate::opt::barrier_slots) has
    /// assigned that.
    pub(crate) slot_memory: Option<Rc<slot_memory::SlotMemory>>,
    /// The values that are computed in lanes narrower than their registers, once
    /// [`opt::narrow_lanes`](crate::opt::narrow_lanes) has decided that.
    pub(crate) lane_widths: HashMap<Value, lane_width::LaneWidth>,
}

impl Func {
    /// Whether it has spilled registers.
    pub(crate) fn has_spills(&self) -> bool {
        let is_reload = |op: &Op| matches!(op.kind, OpKind::Reload(_));
        self.blocks.iter().any(|block| block.ops.iter().any(is_reload))
    }

    /// The results of the instructions that have a guard of that kind.
    pub(crate) fn guarded(&self, kind: GuardKind) -> HashSet<Value> {
        let mut found = HashSet::new();
        for block in &self.blocks {
            for guard in &block.ops {
                let OpKind::Guard(site, have, _) = guard.kind else { continue };
                if have != kind {
                    continue;
                }
                let is_it = |op: &&Op| matches!(op.kind, OpKind::Inst(at) if at == site);
                found.extend(block.ops.iter().filter(is_it).flat_map(|op| &op.defs));
            }
        }
        found
    }

    /// The instructions, those of copies included.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = Site> + '_ {
        let sites = self.blocks.iter().flat_map(|block| &block.ops).flat_map(Op::insts);
        sites.map(|(site, _)| site)
    }
}

impl Op {
    /// The instructions that it executes, each as an operation: those of a chain, or itself if it is one.
    pub(crate) fn insts(&self) -> impl Iterator<Item = (Site, &Op)> {
        let ops = match &self.kind {
            OpKind::Chain(chain) => chain.ops.as_slice(),
            _ => std::slice::from_ref(self),
        };
        ops.iter().filter_map(|op| match op.kind {
            OpKind::Inst(site) => Some((site, op)),
            _ => None,
        })
    }

    /// What was decided about the prefetches beside it.
    pub(crate) fn prefetches(&self) -> prefetch::Decisions {
        self.prefetch.as_deref().copied().unwrap_or_default()
    }
}

/// The launch that a function is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Threads of a CTA in each dimension.
    pub ntid: [u32; 3],
    /// Lanes of a chunk: 4, 8 or 16; 1 in scalar code, which executes one thread at a time.
    pub chunk: u32,
    /// Warps that execute as one coarse warp. If there are several, [`LaunchShape::threads`] is a multiple of
    /// their lanes.
    pub team: u32,
    /// CTAs that execute as one, which are neighbours in x. Only coarse warps execute several, and all of
    /// them have the same `%ctaid` in the same lanes.
    pub ctas: u32,
    /// Whether coarse warps of one CTA leave where they are not inside of a picture, as those of several do.
    pub rows: bool,
}

impl LaunchShape {
    /// Whether a coarse warp has a part of a row of threads, and leaves where its lanes are not all inside of
    /// a picture.
    pub fn leaves_at_edges(&self) -> bool {
        self.ctas > 1 || self.rows
    }

    /// Lanes that execute as one.
    pub fn lanes(&self) -> u32 {
        if self.is_scalar() { 1 } else { 32 * self.team }
    }

    /// Whether each thread executes alone, from its start to its end.
    pub fn is_scalar(&self) -> bool {
        self.chunk == 1
    }

    /// Whether the code begins with warps at their start only, and not in the middle with a warp's frame.
    pub fn only_starts(&self) -> bool {
        self.team > 1 || self.is_scalar()
    }

    /// Threads of a CTA, or of the CTAs that execute as one.
    pub fn threads(&self) -> u32 {
        self.ntid.iter().product::<u32>() * self.ctas
    }

    /// `%tid` of a thread. Threads of CTAs that execute as one are numbered as if each row in x were followed
    /// by the same row of the next CTA. The indices of lanes behind the last thread continue to grow in z.
    pub fn tid(&self, thread: u32) -> [u32; 3] {
        let [nx, ny, _] = self.ntid;
        let row = thread / (nx * self.ctas);
        [thread % nx, row % ny, row / ny]
    }

    /// Which of the CTAs that execute as one a thread belongs to.
    pub fn cta_of(&self, thread: u32) -> u32 {
        thread / self.ntid[0] % self.ctas
    }

    /// What a function of the thread is in lanes of each coarse warp, if it is the same in all.
    pub fn same_in_all<T: PartialEq>(&self, lanes: Range<u32>, of: impl Fn(u32) -> T) -> Option<Vec<T>> {
        let from = |start: u32| lanes.clone().map(|lane| of(start + lane)).collect::<Vec<T>>();
        let first = from(0);
        let all = self.threads().next_multiple_of(32);
        (0..all).step_by(self.lanes() as usize).all(|start| from(start) == first).then_some(first)
    }

    /// Whether one coarse warp is the whole CTA.
    pub fn is_alone(&self) -> bool {
        self.team > 1 && self.threads() == self.lanes()
    }

    /// Whether every warp of a CTA starts with 32 lanes.
    pub fn whole_warps(&self) -> bool {
        self.threads().is_multiple_of(self.lanes())
    }
}

/// Properties of single PTX instructions that building and analysis depend on.
pub trait Effects {
    /// Whether a warp-synchronous terminator has native code.
    fn does_sync(&self, inst: &Inst) -> bool;
    /// Whether only whole warps may execute barriers and warp-synchronous terminators: elsewhere native code
    /// stops before them.
    fn syncs_whole_warps_only(&self) -> bool;
    /// Whether the number of barriers that a CTA has passed must be counted, for observers.
    fn counts_intervals(&self) -> bool;
    /// Whether the instruction has a side exit before it also in code of a single warp.
    fn exits_before(&self, inst: &Inst) -> bool;
    /// Whether a warp-synchronous terminator needs all 32 lanes: a matrix instruction. Native code executes
    /// it in the full copy of its block only.
    fn is_of_whole_warp(&self, inst: &Inst) -> bool;
    /// Whether the instruction's result depends on nothing but its operands, lane by lane.
    fn is_pure(&self, inst: &Inst) -> bool;
    /// What executing the instruction costs a warp, in instructions that only compute.
    fn work(&self, inst: &Inst) -> u64;
    /// Whether the instruction reads and writes the carry flags.
    fn carry(&self, inst: &Inst) -> (bool, bool);
    /// Whether the instruction reads a clock, which shows how much the warp has executed.
    fn reads_clock(&self, inst: &Inst) -> bool;
    /// Whether the instruction loads bytes that nothing writes while a kernel runs, at a place that is known
    /// to be there.
    fn reads_constant(&self, inst: &Inst) -> bool;
    /// Whether the instruction reads or writes memory at addresses that are checked.
    fn accesses(&self, inst: &Inst) -> bool;
    /// Whether a loop around the instruction may wait for other threads.
    fn watches(&self, inst: &Inst) -> bool;
}

/// The predicate that a barrier reduces, and whether it is negated.
pub(crate) fn reduced(term: &Terminator) -> Option<(Reg, bool)> {
    let Terminator::Barrier { inst, .. } = term else { return None };
    match inst.srcs.get(2) {
        Some(Src::Reg(reg)) => Some((*reg, false)),
        Some(Src::Not(reg)) => Some((*reg, true)),
        _ => None,
    }
}

/// Whether native code always stops at a terminator of this kind, or else executes it.
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
