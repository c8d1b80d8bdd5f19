//! Which values and branches are the same in all lanes of a warp, and which values are affine in the lane.
//!
//! Invariant: the facts hold wherever a group of lanes executes together under the policy of rule 1 of [`crate::ir`] (the
//! lowest pending block runs first, and lanes that wait at it join):
//! * a register that is [`Lanes::Uniform`] and live holds one value in the lanes of the group;
//! * one that is [`Lanes::Affine`] holds `base + stride * lane` modulo its width, the base common to the group;
//! * a branch that does not [diverge](Uniformity::diverges) sends the whole group to one block.
//!
//! A machine that sets lanes aside (a yield inside a loop) and lets them join others at a later turn must not use the facts for that
//! activation from then on, since its groups mix turns of loops.
//!
//! # Method
//! One fact for each register, the join over all its definitions; iterated together with the divergence of branches. Where lanes
//! that took different ways from a divergent branch meet, every register that some of these ways define and that is live there
//! varies. Four kinds of meeting:
//! 1. blocks that two of the ways reach apart, found by sending a label from each successor forward until all lanes
//!    are in one place;
//! 2. the header of a loop, reached from both sides by back edges;
//! 3. inside a loop, where some lanes can go round while others wait further down: they meet with the lanes of later turns;
//! 4. behind a loop that lanes leave at different turns.
//!
//! # Sources
//! Kernel parameters, `.const` memory and immediates are uniform; `%laneid` is affine; `%tid` is what the CTA's shape makes of
//! it. A weak load of `.global` or `.shared` memory from a uniform address is uniform: lanes could only see different values
//! in a data race, of which the manual does not say what a weak load returns (§8.7). What a call returns varies, and so does what
//! `.local` memory holds.
//!
//! What it does not do: affine 32-bit values are not followed through widening (`cvt.u64.u32`, `mul.wide`), which needs ranges;
//! uniformity is not followed through memory; parameters of device functions vary.

use super::bits::BitSet;
use super::cfg::{self, Loops};
use super::def_use::{DefUse, Registers};
use super::dominators::PostDominators;
use super::liveness::Liveness;
use crate::check::module::FunctionKind;
use crate::ir::graph::{Graph, NONE};
use crate::ir::{Base, Function, Inst, ParamPlace, Reg, RegClass, Src, Terminator};
use crate::isa::{Half, Op, Sem, Slot, Space, Sreg, Ty, Word};

/// How a value varies over the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// The same in all lanes.
    Uniform,
    /// `base + stride * lane`, modulo the width; the stride is not 0.
    Affine {
        /// Difference from lane to lane.
        stride: i64,
    },
    /// Nothing is known.
    Varying,
}

impl Lanes {
    /// What holds of both.
    fn join(self, other: Lanes) -> Lanes {
        if self == other { self } else { Lanes::Varying }
    }

    fn affine(stride: i64) -> Lanes {
        if stride == 0 { Lanes::Uniform } else { Lanes::Affine { stride } }
    }

    /// The difference from lane to lane, where there is one.
    pub fn stride(self) -> Option<i64> {
        match self {
            Lanes::Uniform => Some(0),
            Lanes::Affine { stride } => Some(stride),
            Lanes::Varying => None,
        }
    }
}

/// What is known before the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Assumptions {
    /// The CTA's shape.
    pub ntid: Option<[u32; 3]>,
}

impl Assumptions {
    /// A component of `%tid`: warps are 32 consecutive threads, x fastest. PTX ISA §10.1.
    fn tid(self, component: u8) -> Lanes {
        let Some([x, y, z]) = self.ntid else { return Lanes::Varying };
        let rows_of_warps = x % 32 == 0;
        let one_row = y <= 1 && z <= 1;
        match component {
            0 if rows_of_warps || one_row => Lanes::affine(1),
            1 | 2 if rows_of_warps || one_row => Lanes::Uniform,
            0 if x <= 1 => Lanes::Uniform,
            1 if y <= 1 => Lanes::Uniform,
            2 if z <= 1 || (u64::from(x) * u64::from(y)) % 32 == 0 => Lanes::Uniform,
            3 => Lanes::Uniform,
            _ => Lanes::Varying,
        }
    }

    fn sreg(self, sreg: Sreg, component: u8) -> Lanes {
        match sreg {
            Sreg::Tid => self.tid(component),
            Sreg::Laneid => Lanes::affine(1),
            Sreg::LanemaskEq
            | Sreg::LanemaskLe
            | Sreg::LanemaskLt
            | Sreg::LanemaskGe
            | Sreg::LanemaskGt
            | Sreg::Clock
            | Sreg::ClockHi
            | Sreg::Clock64
            | Sreg::Pm(_)
            | Sreg::Pm64(_)
            | Sreg::Globaltimer
            | Sreg::GlobaltimerLo
            | Sreg::GlobaltimerHi => Lanes::Varying,
            Sreg::Ntid
            | Sreg::Warpid
            | Sreg::Nwarpid
            | Sreg::Ctaid
            | Sreg::Nctaid
            | Sreg::Smid
            | Sreg::Nsmid
            | Sreg::Gridid
            | Sreg::Envreg(_)
            | Sreg::TotalSmemSize
            | Sreg::DynamicSmemSize
            | Sreg::ReservedSmemOffsetBegin
            | Sreg::ReservedSmemOffsetEnd
            | Sreg::ReservedSmemOffsetCap
            | Sreg::ReservedSmemOffset0
            | Sreg::ReservedSmemOffset1 => Lanes::Uniform,
        }
    }
}

/// The facts of one function.
#[derive(Clone, Debug)]
pub struct Uniformity {
    registers: Registers,
    /// By register number; `None` where no definition is reached by the analysis.
    values: Vec<Option<Lanes>>,
    /// Blocks whose branch diverges.
    divergent: BitSet,
    /// Blocks that part of a group may execute.
    partial: BitSet,
}

impl Uniformity {
    /// Analyses a function.
    pub fn new(function: &Function, assumptions: Assumptions) -> Self {
        let graph = cfg::graph(function);
        let def_use = DefUse::new(function);
        let facts = Facts {
            function,
            assumptions,
            loops: Loops::new(&graph),
            post: PostDominators::new(&graph),
            live: Liveness::new(function, &graph),
            def_use,
            graph,
        };
        facts.solve()
    }

    /// How a register's value varies.
    pub fn of(&self, reg: Reg) -> Lanes {
        // A register that nothing live defines is never read.
        self.values[self.registers.number(reg)].unwrap_or(Lanes::Uniform)
    }

    /// Whether the lanes of a group may leave the block to different successors.
    pub fn diverges(&self, block: usize) -> bool {
        self.divergent.contains(block)
    }

    /// Whether a block may be executed by part of the lanes that executed the entry together and have not exited.
    pub fn is_partial(&self, block: usize) -> bool {
        self.partial.contains(block)
    }
}

struct Facts<'a> {
    function: &'a Function,
    assumptions: Assumptions,
    graph: Graph,
    loops: Loops,
    post: PostDominators,
    live: Liveness,
    def_use: DefUse,
}

/// Where lanes that a divergent branch has parted meet again.
#[derive(Default)]
struct Meetings {
    /// Blocks that are reached apart.
    region: BitSet,
    /// Blocks where different ways meet: registers defined in the region vary.
    joins: Vec<usize>,
    /// Loop and block: lanes of different turns of the loop meet there.
    turns: Vec<(usize, usize)>,
}

impl Facts<'_> {
    fn solve(&self) -> Uniformity {
        let registers = self.def_use.registers;
        let blocks = self.function.blocks.len();
        let mut facts = Uniformity {
            registers,
            values: vec![None; registers.len()],
            divergent: BitSet::new(blocks),
            partial: BitSet::new(blocks),
        };
        // What may be read before it is written has its initial value, the same in all lanes.
        for number in self.live.live_in.first().into_iter().flat_map(BitSet::iter) {
            facts.values[number] = Some(Lanes::Uniform);
        }
        let initial = if self.function.kind == FunctionKind::Entry { Lanes::Uniform } else { Lanes::Varying };
        for slot in &self.function.params {
            if let ParamPlace::Reg(reg) = slot.place {
                facts.values[registers.number(reg)] = Some(initial);
            }
        }
        // Shapes only ever go up (none, then one of uniform and affine, then varying), so this ends.
        let mut changed = true;
        while changed {
            changed = false;
            for block in 0..blocks {
                changed |= self.block(block, &mut facts);
                if self.branch_diverges(block, &facts) && facts.divergent.insert(block) {
                    changed = true;
                    self.diverge(block, &mut facts);
                }
            }
        }
        facts
    }

    fn block(&self, block: usize, facts: &mut Uniformity) -> bool {
        let content = &self.function.blocks[block];
        let mut changed = false;
        for inst in &content.insts {
            changed |= self.inst(inst, facts);
        }
        match &content.term {
            Terminator::WarpSync { inst, .. } | Terminator::Barrier { inst, .. } => {
                self.inst(inst, facts) || changed
            }
            Terminator::Call(_) => {
                content.term.for_each_def(&mut |reg| changed |= raise(facts, reg, Lanes::Varying));
                changed
            }
            Terminator::Goto(..)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Ret(_)
            | Terminator::Exit(_) => changed,
        }
    }

    fn inst(&self, inst: &Inst, facts: &mut Uniformity) -> bool {
        let mut lanes = self.result(inst, facts);
        if let Some(guard) = inst.guard
            && value(facts, guard.pred) != Some(Lanes::Uniform)
        {
            // Lanes where the guard is false keep the old value.
            lanes = value(facts, guard.pred).map(|_| Lanes::Varying);
        }
        let Some(lanes) = lanes else { return false };
        let mut changed = false;
        inst.for_each_def(&mut |reg| changed |= raise(facts, reg, lanes));
        changed
    }

    /// How the results vary; `None` while a source is not known yet.
    fn result(&self, inst: &Inst, facts: &Uniformity) -> Option<Lanes> {
        let mut srcs = Vec::with_capacity(inst.srcs.len());
        for src in &inst.srcs {
            srcs.push(self.src(src, facts)?);
        }
        let uniform = srcs.iter().all(|s| *s == Lanes::Uniform);
        Some(match kind(inst) {
            Kind::Pure if uniform => Lanes::Uniform,
            Kind::Pure => affine(inst, &srcs).unwrap_or(Lanes::Varying),
            Kind::UniformOfUniform if uniform => Lanes::Uniform,
            Kind::Uniform => Lanes::Uniform,
            Kind::UniformOfUniform | Kind::Varying => Lanes::Varying,
        })
    }

    fn src(&self, src: &Src, facts: &Uniformity) -> Option<Lanes> {
        match src {
            Src::Absent | Src::Imm(_) => Some(Lanes::Uniform),
            Src::Reg(reg) | Src::Not(reg) => value(facts, *reg),
            Src::Sreg(sreg, component) => Some(self.assumptions.sreg(*sreg, *component)),
            Src::Addr(addr) => match addr.base {
                Base::Reg(reg) => value(facts, reg),
                // The rest is the same in every lane, so the sum varies as the index does.
                Base::Absolute | Base::Var(_) | Base::Frame | Base::KernelParam | Base::Func(_) => {
                    addr.index.map_or(Some(Lanes::Uniform), |index| value(facts, index))
                }
            },
            Src::Video(video) => self.src(&video.value, facts),
        }
    }

    fn branch_diverges(&self, block: usize, facts: &Uniformity) -> bool {
        let varies = |lanes: Option<Lanes>| lanes.is_some_and(|lanes| lanes != Lanes::Uniform);
        match &self.function.blocks[block].term {
            Terminator::Branch { cond, then, els, .. } => then != els && varies(value(facts, cond.pred)),
            Terminator::Switch { targets, inst } => {
                targets.iter().any(|to| Some(to) != targets.first())
                    && inst.srcs.first().is_some_and(|src| varies(self.src(src, facts)))
            }
            Terminator::Goto(..)
            | Terminator::Call(_)
            | Terminator::WarpSync { .. }
            | Terminator::Barrier { .. }
            | Terminator::Ret(_)
            | Terminator::Exit(_) => false,
        }
    }

    /// What the divergence of a branch does to registers.
    fn diverge(&self, branch: usize, facts: &mut Uniformity) {
        let meetings = self.meetings(branch);
        facts.partial.union(&meetings.region);
        for &join in &meetings.joins {
            self.vary(join, facts, |block| meetings.region.contains(block));
        }
        for &(loop_, at) in &meetings.turns {
            let range = self.loops.loops[loop_];
            self.vary(at, facts, |block| range.contains(block));
        }
    }

    /// Registers that are live at the start of `at` and defined in some of these blocks vary.
    fn vary(&self, at: usize, facts: &mut Uniformity, defined_in: impl Fn(usize) -> bool) {
        for number in self.live.live_in[at].iter() {
            if self.def_use.defs[number].iter().any(|place| defined_in(place.block)) {
                facts.values[number] = Some(Lanes::Varying);
            }
        }
    }

    fn meetings(&self, branch: usize) -> Meetings {
        let n = self.graph.len();
        let mut walk = Walk {
            facts: self,
            around: std::iter::successors(self.loops.innermost[branch], |l| self.loops.loops[*l].outer)
                .collect(),
            label: vec![NONE; n],
            left: Vec::new(),
            farthest: branch,
            found: Meetings { region: BitSet::new(n), ..Meetings::default() },
        };
        let stop = self.post.immediate(branch);
        for &to in self.graph.succs(branch) {
            walk.send(branch, to, to);
        }
        let mut open = walk.around.clone().into_iter().peekable();
        for block in branch + 1..=n {
            while let Some(l) = open.next_if(|l| self.loops.loops[*l].last < block) {
                walk.close_loop(l);
            }
            if block == n || walk.label[block] == NONE || walk.all_here(block, stop) {
                continue;
            }
            walk.found.region.insert(block);
            if let Some(l) = self.loops.around(block).position(|l| l.irreducible && l.header > branch) {
                walk.mix_loop(block, l);
            }
            for &to in self.graph.succs(block) {
                walk.send(block, to, walk.label[block]);
            }
        }
        walk.found
    }
}

/// Labels on their way from the successors of a divergent branch.
struct Walk<'a> {
    facts: &'a Facts<'a>,
    /// The loops around the branch, innermost first.
    around: Vec<usize>,
    /// By block: the successor (or loop exit, or meeting) by which lanes come; [`NONE`] where none do.
    label: Vec<usize>,
    /// Loops around the branch that lanes left by an edge.
    left: Vec<usize>,
    /// The last block that lanes come to.
    farthest: usize,
    found: Meetings,
}

impl Walk<'_> {
    fn send(&mut self, from: usize, to: usize, label: usize) {
        let loops = &self.facts.loops.loops;
        let left = self.around.iter().filter(|&&l| loops[l].contains(from) && !loops[l].contains(to));
        self.left.extend(left);
        self.farthest = self.farthest.max(to);
        if self.label[to] == NONE {
            self.label[to] = label;
        } else if self.label[to] != label {
            self.label[to] = to;
            self.found.joins.push(to);
        }
    }

    /// Whether no lanes are elsewhere when this block runs: none wait further down, and none go round a loop, save to come
    /// here as well (`stop` is the branch's post-dominator).
    fn all_here(&self, block: usize, stop: Option<usize>) -> bool {
        let loops = &self.facts.loops.loops;
        let round = || self.around.iter().any(|&l| self.label[loops[l].header] != NONE);
        self.farthest <= block && (Some(block) == stop || !round())
    }

    /// Behind the last block of a loop around the branch: do some lanes go round while others wait, or have left?
    fn close_loop(&mut self, l: usize) {
        let range = self.facts.loops.loops[l];
        if self.label[range.header] == NONE {
            return;
        }
        let reached: Vec<usize> =
            (range.header..=range.last).filter(|&block| self.label[block] != NONE).collect();
        let apart = reached.iter().any(|&block| self.label[block] != self.label[reached[0]]);
        if apart || range.irreducible {
            let all = if range.irreducible { (range.header..=range.last).collect() } else { reached };
            self.found.turns.extend(all.into_iter().map(|block| (l, block)));
        }
        for block in range.header..=range.last {
            self.found.region.insert(block);
        }
        if self.left.contains(&l) {
            self.leave(l);
        }
    }

    /// Lanes leave the loop at different turns: each exit is a way of its own.
    fn leave(&mut self, l: usize) {
        let range = self.facts.loops.loops[l];
        for from in range.header..=range.last {
            for &to in self.facts.graph.succs(from).iter().filter(|&&to| !range.contains(to)) {
                self.found.turns.push((l, to));
                self.send(from, to, to);
                self.label[to] = to;
            }
        }
    }

    /// Lanes come to an irreducible loop behind the branch: by different entries they are at different turns.
    fn mix_loop(&mut self, block: usize, nth: usize) {
        let loops = &self.facts.loops;
        let first = loops.innermost[block];
        let Some(l) = std::iter::successors(first, |l| loops.loops[*l].outer).nth(nth) else { return };
        let range = loops.loops[l];
        self.found.turns.extend((range.header..=range.last).map(|block| (l, block)));
        self.leave(l);
    }
}

/// How an instruction's results follow from its sources.
enum Kind {
    /// A function of the sources alone.
    Pure,
    /// Uniform where the sources are, otherwise varying.
    UniformOfUniform,
    /// The same for the lanes that execute together.
    Uniform,
    /// Anything.
    Varying,
}

#[rustfmt::skip]
fn kind(inst: &Inst) -> Kind {
    let full_mask = || matches!(inst.srcs.last(), Some(Src::Imm(mask)) if *mask as u32 == u32::MAX);
    match inst.op {
        Op::Add | Op::Sub | Op::Mul | Op::Mad | Op::Mul24 | Op::Mad24 | Op::Sad | Op::Div | Op::Rem | Op::Abs
        | Op::Neg | Op::Min | Op::Max | Op::Popc | Op::Clz | Op::Bfind | Op::Fns | Op::Brev | Op::Bfe | Op::Bfi
        | Op::Szext | Op::Bmsk | Op::Dp4a | Op::Dp2a | Op::AddCc | Op::SubCc | Op::MadCc | Op::Testp | Op::Copysign
        | Op::Fma | Op::Rcp | Op::Sqrt | Op::Rsqrt | Op::Sin | Op::Cos | Op::Lg2 | Op::Ex2 | Op::Tanh | Op::Set
        | Op::Setp | Op::Selp | Op::Slct | Op::And | Op::Or | Op::Xor | Op::Not | Op::Cnot | Op::Lop3 | Op::Shf
        | Op::Shl | Op::Shr | Op::Mov | Op::MovPack | Op::MovUnpack | Op::MovVec | Op::Prmt | Op::Isspacep | Op::Cvt
        | Op::CvtPack | Op::Createpolicy | Op::MbarrierPendingCount | Op::Vadd | Op::Vsub | Op::Vabsdiff | Op::Vmin | Op::Vmax | Op::Vshl | Op::Vshr | Op::Vmad
        | Op::Vset | Op::Vadd2 | Op::Vsub2 | Op::Vavrg2 | Op::Vabsdiff2 | Op::Vmin2 | Op::Vmax2 | Op::Vset2
        | Op::Vadd4 | Op::Vsub4 | Op::Vavrg4 | Op::Vabsdiff4 | Op::Vmin4 | Op::Vmax4 | Op::Vset4 => Kind::Pure,
        // The generic address of a local variable may differ from lane to lane.
        Op::Cvta | Op::CvtaTo if inst.mods.space() == Space::Local => Kind::Varying,
        Op::Cvta | Op::CvtaTo => Kind::Pure,
        Op::Ld => match (inst.mods.space(), inst.mods.sem()) {
            (Space::Param | Space::Const, _) => Kind::UniformOfUniform,
            (Space::Global | Space::Shared, Sem::Weak) => Kind::UniformOfUniform,
            _ => Kind::Varying,
        },
        Op::LdNc | Op::Ldu | Op::Tex | Op::Tld4 | Op::Txq | Op::Suq | Op::Istypep => Kind::UniformOfUniform,
        Op::Vote | Op::Activemask | Op::BarRed => Kind::Uniform,
        Op::VoteSync | Op::MatchAll | Op::ReduxSync if full_mask() => Kind::Uniform,
        Op::VoteSync | Op::MatchAll | Op::ReduxSync | Op::MatchAny | Op::ElectSync | Op::Shfl | Op::ShflSync
        // They read the carry flag, which is not followed.
        | Op::Addc | Op::Subc | Op::Madc
        | Op::Atom | Op::MbarrierArrive | Op::MbarrierArriveDrop | Op::MbarrierTestWait | Op::Suld | Op::WmmaLoad | Op::WmmaMma | Op::Mma | Op::Ldmatrix | Op::Movmatrix => Kind::Varying,
        // Without results.
        Op::St | Op::Prefetch | Op::Prefetchu | Op::CpAsync | Op::CpAsyncCommitGroup | Op::CpAsyncWaitGroup
        | Op::CpAsyncWaitAll | Op::Sust | Op::Sured | Op::Bra | Op::BrxIdx | Op::Call | Op::CallIndirect | Op::Ret
        | Op::Exit | Op::BarSync | Op::BarArrive | Op::BarWarpSync | Op::Membar | Op::Fence | Op::Red
        | Op::WmmaStore | Op::Stmatrix | Op::Applypriority | Op::Discard | Op::Griddepcontrol | Op::MbarrierInit | Op::MbarrierInval
        | Op::CpAsyncMbarrierArrive | Op::Brkpt | Op::Nanosleep | Op::Pmevent | Op::Trap => Kind::Varying,
    }
}

/// The result of an integer instruction on affine sources, where it is affine.
fn affine(inst: &Inst, srcs: &[Lanes]) -> Option<Lanes> {
    let stride = |i: usize| srcs.get(i).copied().and_then(Lanes::stride);
    let imm = |i: usize| match inst.srcs.get(i) {
        Some(Src::Imm(bits)) => Some(*bits as i64),
        _ => None,
    };
    let product = || match (imm(0), imm(1)) {
        (Some(a), _) => Some(a.wrapping_mul(stride(1)?)),
        (_, Some(b)) => Some(b.wrapping_mul(stride(0)?)),
        (None, None) => None,
    };
    let mods = &inst.mods;
    let ty = mods.ty_in(Slot::Type);
    let integer = ty.is_some_and(Ty::is_integer);
    let (result, ty) = match inst.op {
        Op::Mov => (stride(0)?, ty?),
        Op::Add if integer => (stride(0)?.wrapping_add(stride(1)?), ty?),
        Op::Sub if integer => (stride(0)?.wrapping_sub(stride(1)?), ty?),
        Op::Mul if integer && mods.half() == Some(Half::Lo) && !mods.has(Word::Sat) => (product()?, ty?),
        Op::Mad if integer && mods.half() == Some(Half::Lo) && !mods.has(Word::Sat) => {
            (product()?.wrapping_add(stride(2)?), ty?)
        }
        Op::Shl => {
            let (bits, amount) = (ty?.bits(), imm(1)? as u64);
            (if amount < u64::from(bits) { stride(0)? << amount } else { 0 }, ty?)
        }
        Op::Neg if integer => (stride(0)?.wrapping_neg(), ty?),
        Op::Not => (stride(0)?.wrapping_neg(), ty?),
        Op::Cvta | Op::CvtaTo => (stride(0)?, ty?),
        Op::Cvt => {
            let (d, a) = (mods.ty_in(Slot::Dtype)?, mods.ty_in(Slot::Atype)?);
            let cuts = d.is_integer() && a.is_integer() && d.bits() <= a.bits() && !mods.has(Word::Sat);
            (if cuts { stride(0)? } else { return None }, d)
        }
        _ => return None,
    };
    // Only whole registers: a narrower result is extended, which is not affine.
    let width = inst.dsts.first()?.reg().map(|reg| RegClass::bits(reg.class))?;
    if inst.dsts.len() != 1 || ty.bits() != width || mods.has(Word::Sat) {
        return None;
    }
    let unused = 64 - ty.bits();
    Some(Lanes::affine(result << unused >> unused))
}

fn value(facts: &Uniformity, reg: Reg) -> Option<Lanes> {
    facts.values[facts.registers.number(reg)]
}

/// Joins a definition into a register's fact; whether that changed it.
fn raise(facts: &mut Uniformity, reg: Reg, lanes: Lanes) -> bool {
    let value = &mut facts.values[facts.registers.number(reg)];
    let new = value.map_or(lanes, |old| old.join(lanes));
    let changed = *value != Some(new);
    *value = Some(new);
    changed
}

#[cfg(test)]
mod tests;
