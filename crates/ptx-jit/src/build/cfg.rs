//! Builds the control flow of WIR: full and masked copies of blocks, over variables that are assigned many
//! times.
//!
//! Invariant: every edge between masked copies goes through [`Builder::edge`], which lets pending lanes of
//! lower blocks execute first.

mod barrier;
mod if_convert;
mod spilled;
mod switch;

use super::entries::entries;
use super::fuel::fuel;
use super::pending::Parking;
use super::region::{self, Region};
use crate::analysis::divergence::Facts;
use crate::wir::loops::loops;
use crate::wir::{
    Block, BlockId, Cond, Effects, Entry, Exit, ExitReason, Func, Kind, LaunchShape, Op, OpKind, Pending,
    Resume, Site, Term, Value,
};
use ptx::analysis::bits::BitSet;
use ptx::analysis::cfg;
use ptx::analysis::liveness::Liveness;
use ptx::check::module::FunctionKind;
use ptx::ir::{Function, Guard, Inst, Reg, RegClass, Src, Terminator};
use std::collections::{BTreeSet, HashMap};

/// Which copies of PTX blocks a function has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copies {
    /// A full copy where all lanes may be active, and a masked one where lanes may be missing.
    FullAndMasked,
    /// A masked copy of each block. For large functions: code for all lanes would be faster, but the time to
    /// compile it is more than it saves.
    Masked,
}

/// Variables other than registers; their numbers follow those of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Var {
    Carry,
    Mask,
    Live,
    FullSteps,
    MaskedSteps,
    LaneSteps,
    Turns,
}

const VARS: u32 = 7;

struct Builder<'a, M: Effects> {
    function: &'a Function,
    machine: &'a M,
    facts: &'a Facts,
    live: Liveness,
    parking: Parking,
    /// Whether the function uses the carry flags.
    carries: bool,
    /// For each block, the fuel of the back edge to it.
    price: Vec<i64>,
    blocks: Vec<Block>,
    kinds: Vec<Kind>,
    bodies: HashMap<(u32, bool), BlockId>,
    work: Vec<(u32, bool, BlockId)>,
    captured: HashMap<(u32, u32), Value>,
    /// Copies of registers for pending lanes: the variable of the register, and the block where the lanes
    /// are pending.
    caps: Vec<(Value, u32)>,
    entries: BTreeSet<u32>,
    /// Blocks where an iteration of a loop begins.
    headers: BTreeSet<u32>,
    resumes: Vec<Resume>,
    shape: LaunchShape,
    copies: Copies,
    /// The number of operations so far.
    ops: usize,
    /// The most operations.
    max_ops: usize,
    /// The numbers of the spilled registers.
    spilled: BitSet,
    /// For each block, where lanes may be pending when it starts.
    may: Vec<BitSet>,
    /// For each PTX block, the region that its branch is if-converted with.
    regions: HashMap<u32, Region>,
}

/// A function over variables, and where variables of pending lanes have a meaning.
pub(crate) struct Graph {
    /// The function.
    pub(crate) func: Func,
    /// For each variable, the block whose pending lanes it belongs to. It has a meaning only where lanes may
    /// be pending there.
    pub(crate) waits: Vec<Option<u32>>,
    /// For each block, where lanes may be pending when it starts.
    pub(crate) may: Vec<BitSet>,
}

/// How a function is built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'a> {
    /// The copies of its blocks.
    pub(crate) copies: Copies,
    /// The registers that are in the warp frame; only single warps have any.
    pub(crate) spilled: &'a BTreeSet<Reg>,
    /// The most operations, with one for each register that a side exit saves.
    pub(crate) max_ops: usize,
    /// Whether small divergent regions execute under masks; only full copies have such regions.
    pub(crate) if_convert: bool,
}

/// `None` if the function would be too large.
pub(crate) fn build(
    function: &Function,
    shape: LaunchShape,
    machine: &impl Effects,
    facts: &Facts,
    plan: Plan<'_>,
) -> Option<Graph> {
    let Plan { copies, if_convert, max_ops, .. } = plan;
    // The analysis of pending lanes takes time quadratic in the number of blocks, which must stay a small
    // part of the whole.
    if function.blocks.len() > crate::tuning::MAX_BLOCKS / 4 {
        return None;
    }
    let graph = cfg::graph(function);
    let live = Liveness::new(function, &graph);
    let only_starts = shape.only_starts();
    let headers: BTreeSet<u32> = loops(function).into_iter().map(|all| all.header as u32).collect();
    let entries = entries(function, &live, &headers, machine);
    // Blocks that are entered with no pending lanes but fewer active lanes than all: lanes may be missing
    // there.
    let mut starts: Vec<u32> = entries.iter().copied().collect();
    if only_starts {
        // There is no frame to be entered with.
        let barriers = function.blocks.iter().filter_map(|block| match &block.term {
            Terminator::Barrier { next, .. } => Some(next.0),
            _ => None,
        });
        starts = barriers.collect();
        // A full copy is entered where a warp starts.
        if copies == Copies::Masked {
            starts.push(0);
        }
    }
    let mut parking = Parking::new(function, facts, &live, &starts);
    let registers = live.registers;
    let mut spilled = BitSet::new(registers.len());
    for reg in plan.spilled {
        spilled.insert(registers.number(*reg));
        // In the frame, each lane has the register of its own.
        parking.captured.iter_mut().for_each(|captured| captured.remove(registers.number(*reg)));
    }
    let mut kinds: Vec<Kind> = (0..registers.len()).map(|n| Kind::Reg(registers.reg(n).class)).collect();
    kinds.extend([Kind::Mask, Kind::Mask, Kind::Mask, Kind::Count, Kind::Count, Kind::Count, Kind::Count]);
    kinds.extend(function.blocks.iter().map(|_| Kind::Mask));
    let carries = |inst: &Inst| {
        let (reads, writes) = machine.carry(inst);
        reads || writes
    };
    let carries = function.blocks.iter().any(|b| b.insts.iter().any(carries));
    let mut builder = Builder {
        function,
        machine,
        facts,
        price: fuel(function, machine),
        live,
        parking,
        carries,
        blocks: Vec::new(),
        kinds,
        bodies: HashMap::new(),
        work: Vec::new(),
        captured: HashMap::new(),
        caps: Vec::new(),
        entries: entries.clone(),
        headers,
        resumes: Vec::new(),
        shape,
        copies,
        ops: 0,
        max_ops,
        spilled,
        may: Vec::new(),
        regions: HashMap::new(),
    };
    if if_convert && copies == Copies::FullAndMasked {
        builder.find_regions();
    }
    let mut found = Vec::new();
    for &block in entries.iter().filter(|_| !only_starts) {
        found.push(builder.entry(block));
        builder.drain();
    }
    let start = builder.start();
    if builder.is_full() {
        return None;
    }
    builder.insert_spills();
    let mut waits = vec![None; builder.kinds.len()];
    for block in 0..function.blocks.len() as u32 {
        waits[builder.parked(block).0 as usize] = Some(block);
    }
    for (name, block) in builder.caps {
        waits[name.0 as usize] = Some(block);
    }
    let mut func = Func {
        blocks: builder.blocks,
        kinds: builder.kinds,
        shapes: Vec::new(),
        entries: found,
        start,
        resumes: builder.resumes,
        zeros: Vec::new(),
        undef: Vec::new(),
        needed: Vec::new(),
        slot_memory: None,
        lane_widths: HashMap::new(),
    };
    func.link();
    Some(Graph { func, waits, may: builder.may })
}

impl<M: Effects> Builder<'_, M> {
    fn reg(&self, reg: Reg) -> Value {
        Value(self.live.registers.number(reg) as u32)
    }

    fn var(&self, var: Var) -> Value {
        Value(self.live.registers.len() as u32 + var as u32)
    }

    fn parked(&self, block: u32) -> Value {
        Value(self.live.registers.len() as u32 + VARS + block)
    }

    fn temp(&mut self, kind: Kind) -> Value {
        self.kinds.push(kind);
        Value(self.kinds.len() as u32 - 1)
    }

    /// The variable that holds a register for lanes that are pending at a block.
    fn cap(&mut self, block: u32, register: u32) -> Value {
        if let Some(name) = self.captured.get(&(block, register)) {
            return *name;
        }
        let kind = self.kinds[register as usize];
        let name = self.temp(kind);
        self.captured.insert((block, register), name);
        self.caps.push((name, block));
        name
    }

    /// `may`: where lanes may be pending when the block starts.
    fn node(&mut self, block: u32, full: bool, may: BitSet) -> BlockId {
        self.blocks.push(Block::new(block, full, Vec::new(), Term::Goto(BlockId(0))));
        self.may.push(may);
        BlockId(self.blocks.len() as u32 - 1)
    }

    /// The empty set of blocks.
    fn no_blocks(&self) -> BitSet {
        BitSet::new(self.function.blocks.len())
    }

    fn op(&mut self, node: BlockId, kind: OpKind, uses: &[Value], defs: &[Value]) {
        self.ops += 1;
        self.blocks[node.0 as usize].ops.push(Op {
            kind,
            uses: uses.to_vec(),
            defs: defs.to_vec(),
            access: None,
            prefetch: None,
        });
    }

    /// A copy is a select of the same value, which renaming removes.
    fn copy(&mut self, node: BlockId, to: Value, from: Value) {
        let mask = self.var(Var::Mask);
        self.op(node, OpKind::SelectMask, &[mask, from, from], &[to]);
    }

    fn end(&mut self, node: BlockId, term: Term) {
        self.blocks[node.0 as usize].term = term;
    }

    /// The block that begins a copy of a PTX block: the full copy, if that is wanted and the function has
    /// full copies.
    fn body(&mut self, block: u32, full: bool) -> BlockId {
        let full = full && self.copies == Copies::FullAndMasked;
        if let Some(node) = self.bodies.get(&(block, full)) {
            return *node;
        }
        let may = if full { self.no_blocks() } else { self.may(block) };
        let node = self.node(block, full, may);
        self.bodies.insert((block, full), node);
        self.work.push((block, full, node));
        node
    }

    fn drain(&mut self) {
        while !self.is_full()
            && let Some((block, full, node)) = self.work.pop()
        {
            self.block(block, full, node);
        }
    }

    /// Whether the function is too large.
    fn is_full(&self) -> bool {
        self.blocks.len() > crate::tuning::MAX_BLOCKS || self.ops > self.max_ops
    }

    fn entry(&mut self, block: u32) -> Entry {
        let shape = self.shape;
        let node = self.node(block, true, self.no_blocks());
        let live = self.not_spilled(&self.live.live_in[block as usize]);
        let mut relies = Vec::new();
        for number in live {
            let reg = self.live.registers.reg(number);
            if block == 0 && self.function.kind == FunctionKind::Entry && !self.headers.contains(&0) {
                // Read before it is written: any value is correct, and the interpreter has zero.
                continue;
            }
            let name = Value(number as u32);
            self.op(node, OpKind::Load(reg), &[], &[name]);
            relies.push((reg, name));
        }
        self.counters(node);
        let mask = self.var(Var::Mask);
        // Lanes can be missing where a warp starts with fewer, or where they diverge.
        let masked = if shape.whole_warps() && (block == 0 || !self.parts()) {
            let none = BitSet::new(self.live.registers.len());
            self.exit_node(block, true, ExitReason::Declined, &none, &self.no_blocks())
        } else {
            self.body(block, false)
        };
        if shape.threads() >= 32 {
            let full = self.body(block, true);
            self.if_full(node, mask, full, masked);
        } else {
            self.end(node, Term::Goto(masked));
        }
        Entry { block, node, relies }
    }

    /// Sets the variables other than registers from the state of the warp.
    fn counters(&mut self, node: BlockId) {
        for (var, kind) in [
            (Var::Mask, OpKind::EntryMask),
            (Var::Live, OpKind::EntryLive),
            (Var::FullSteps, OpKind::Count(0)),
            (Var::MaskedSteps, OpKind::Count(0)),
            (Var::LaneSteps, OpKind::Count(0)),
            (Var::Turns, OpKind::EntryTurns),
        ] {
            let name = self.var(var);
            self.op(node, kind, &[], &[name]);
        }
        if self.carries {
            let name = self.var(Var::Carry);
            self.op(node, OpKind::EntryCarry, &[], &[name]);
        }
    }

    /// Where a warp without a frame starts: its registers are zero.
    fn start(&mut self) -> BlockId {
        if self.spilled.count() > 0 {
            let none = BitSet::new(self.live.registers.len());
            return self.exit_node(0, true, ExitReason::Declined, &none, &self.no_blocks());
        }
        let node = self.node(0, true, self.no_blocks());
        self.counters(node);
        self.choose(node, 0);
        self.drain();
        node
    }

    /// From a block in which all live lanes of the warp are active to the full or the masked copy of the
    /// next.
    fn choose(&mut self, node: BlockId, block: u32) {
        if self.shape.threads() < self.shape.lanes() {
            let masked = self.body(block, false);
            self.end(node, Term::Goto(masked));
        } else if self.shape.whole_warps() && (block == 0 || !self.parts()) {
            // No lane can be missing.
            let full = self.body(block, true);
            self.end(node, Term::Goto(full));
        } else {
            let (full, masked) = (self.body(block, true), self.body(block, false));
            self.if_full(node, self.var(Var::Mask), full, masked);
        }
    }

    /// Ends a block by the choice between the copies of a PTX block, which may be the same.
    fn if_full(&mut self, node: BlockId, mask: Value, full: BlockId, masked: BlockId) {
        let term = match full == masked {
            true => Term::Goto(full),
            false => Term::If { cond: Cond::Full(mask), then: full, els: masked, likely: Some(true) },
        };
        self.end(node, term);
    }

    fn find_regions(&mut self) {
        for (block, divergent) in (0..).zip(&self.facts.divergent) {
            if let Some(region) =
                divergent.then(|| region::find(self.function, block, self.machine)).flatten()
            {
                self.regions.insert(block, region);
            }
        }
    }

    /// Whether lanes may stay diverged.
    fn parts(&self) -> bool {
        (0..)
            .zip(&self.facts.divergent)
            .any(|(block, divergent)| *divergent && !self.regions.contains_key(&block))
    }

    /// Where lanes may be pending while that masked copy executes.
    fn may(&self, block: u32) -> BitSet {
        self.parking.may[block as usize].clone().unwrap_or_else(|| BitSet::new(self.function.blocks.len()))
    }

    fn exit(&mut self, why: ExitReason, live: &BitSet, parked: &BitSet) -> Exit {
        let groups = self.groups(parked);
        self.exit_of(why, live, &groups)
    }

    /// The lanes that may be pending at those blocks.
    fn groups(&mut self, parked: &BitSet) -> Vec<Pending> {
        let mut groups = Vec::new();
        for p in parked.iter() {
            let mut regs = Vec::new();
            for n in self.not_spilled(&self.live.live_in[p]) {
                let captured = self.parking.captured[p].contains(n);
                let name = if captured { self.cap(p as u32, n as u32) } else { Value(n as u32) };
                regs.push((self.live.registers.reg(n), name));
            }
            groups.push(Pending { block: p as u32, mask: self.parked(p as u32), regs });
        }
        groups
    }

    fn exit_of(&mut self, why: ExitReason, live: &BitSet, parked: &[Pending]) -> Exit {
        let registers = self.live.registers;
        let live = self.not_spilled(live).into_iter();
        let regs: Vec<_> = live.map(|n| (registers.reg(n), Value(n as u32))).collect();
        self.ops += regs.len() + parked.iter().map(|group| group.regs.len()).sum::<usize>();
        Exit {
            why,
            mask: self.var(Var::Mask),
            live: self.var(Var::Live),
            carry: self.carries.then(|| self.var(Var::Carry)),
            regs,
            parked: parked.to_vec(),
            full_steps: self.var(Var::FullSteps),
            masked_steps: self.var(Var::MaskedSteps),
            lane_steps: self.var(Var::LaneSteps),
            turns: self.var(Var::Turns),
            resume: None,
        }
    }

    fn exit_node(
        &mut self,
        block: u32,
        full: bool,
        why: ExitReason,
        live: &BitSet,
        parked: &BitSet,
    ) -> BlockId {
        let node = self.node(block, full, parked.clone());
        let exit = self.exit(why, live, parked);
        self.end(node, Term::Exit(Box::new(exit)));
        node
    }

    /// Emits the content of a copy of a block.
    fn block(&mut self, block: u32, full: bool, node: BlockId) {
        let function = self.function;
        let content = &function.blocks[block as usize];
        let may = if full { self.no_blocks() } else { self.may(block) };
        let mask = self.var(Var::Mask);
        if full {
            self.op(node, OpKind::Mask(u32::MAX), &[], &[mask]);
        }
        let parked = self.groups(&may);
        self.content(node, block, full, &parked, None);
        // The interpreter executes what observers may report.
        let leaves = !full && self.machine.syncs_whole_warps_only();
        let stops = crate::wir::stops(&content.term)
            || leaves && matches!(content.term, Terminator::WarpSync { .. })
            || matches!(&content.term, Terminator::WarpSync { inst, .. }
                if !(self.machine.does_sync(inst) || full && self.machine.is_of_whole_warp(inst)));
        if stops {
            let live = self.live.before(function, block as usize, content.insts.len());
            let returning = if full || leaves { Vec::new() } else { self.returning(block, &may) };
            if !returning.is_empty() {
                let exit = self.exit(ExitReason::Terminator { block }, &live, &may);
                let all_here = self.retire(node, block, &returning, exit, &may);
                return self.arrive(all_here, (block, full), &live, &self.no_blocks());
            }
            if leaves {
                let exit = self.exit(ExitReason::Terminator { block }, &live, &may);
                return self.end(node, Term::Exit(Box::new(exit)));
            }
            return self.arrive(node, (block, full), &live, &may);
        }
        match &content.term {
            Terminator::Goto(to, _) => {
                let to = self.edge(block, full, to.0, &may);
                self.end(node, Term::Goto(to));
            }
            Terminator::Branch { cond, then, els, .. } if then == els => {
                let _ = cond;
                let to = self.edge(block, full, then.0, &may);
                self.end(node, Term::Goto(to));
            }
            Terminator::Branch { cond, then, els, .. } => {
                let value = self.reg(cond.pred);
                if self.facts.divergent[block as usize] {
                    self.divergent(node, block, full, *cond, (then.0, els.0), &may);
                    return;
                }
                let then = self.edge(block, full, then.0, &may);
                let els = self.edge(block, full, els.0, &may);
                let cond = Cond::Pred { value, negated: cond.negated };
                self.end(node, Term::If { cond, then, els, likely: None });
            }
            Terminator::Switch { targets, inst } => {
                let mut value = None;
                inst.srcs.iter().for_each(|src| src.for_each_reg(&mut |reg| value = Some(reg)));
                if let Some(index) = value.filter(|_| self.facts.divergent[block as usize]) {
                    return self.divergent_switch(node, (block, full), index, targets, &may);
                }
                let live = self.live.before(function, block as usize, content.insts.len());
                let mut seen: HashMap<u32, BlockId> = HashMap::new();
                let mut ends = Vec::new();
                for to in targets {
                    let target = match seen.get(&to.0) {
                        Some(node) => *node,
                        None => self.edge(block, full, to.0, &may),
                    };
                    seen.insert(to.0, target);
                    ends.push(target);
                }
                // Nothing is counted for it: the interpreter executes the terminator again.
                let beyond = self.exit_node(block, full, ExitReason::Terminator { block }, &live, &may);
                match value {
                    Some(reg) if !ends.is_empty() => {
                        let value = self.reg(reg);
                        self.end(node, Term::Switch { value, targets: ends, beyond });
                    }
                    _ => self.end(node, Term::Goto(beyond)),
                }
            }
            Terminator::WarpSync { inst, next } if self.machine.is_of_whole_warp(inst) => {
                let site = Site { block, index: content.insts.len() as u32 };
                if self.machine.exits_before(inst) {
                    let live = self.live.before(function, block as usize, content.insts.len());
                    let exit = self.exit_of(ExitReason::Terminator { block }, &live, &parked);
                    self.op(node, OpKind::Spare(site, Box::new(exit)), &[], &[]);
                }
                self.inst(node, site, inst, None, mask);
                let to = self.edge(block, full, next.0, &may);
                self.end(node, Term::Goto(to));
            }
            Terminator::WarpSync { inst, next } => {
                let live = self.live.before(function, block as usize, content.insts.len());
                let beyond = self.exit_node(block, full, ExitReason::Terminator { block }, &live, &may);
                let done = self.node(block, full, may.clone());
                let site = Site { block, index: content.insts.len() as u32 };
                self.inst(done, site, inst, None, mask);
                let to = self.edge(block, full, next.0, &may);
                self.end(done, Term::Goto(to));
                let members = members(inst).map(|reg| self.reg(reg));
                let cond = Cond::Together { site, members, mask, live: self.var(Var::Live) };
                self.end(node, Term::If { cond, then: done, els: beyond, likely: Some(true) });
            }
            Terminator::Ret(_) | Terminator::Exit(_) => {
                let live = self.var(Var::Live);
                self.op(node, OpKind::AndNot, &[live, mask], &[live]);
                self.leave(node, block, &may);
            }
            Terminator::Call(_) | Terminator::Barrier { .. } => {}
        }
    }

    /// No active lane is left: the lanes that are pending at the lowest block continue.
    fn leave(&mut self, node: BlockId, block: u32, may: &BitSet) {
        let mut from = node;
        let mut all: Vec<usize> = may.iter().collect();
        all.sort_unstable();
        let mask = self.var(Var::Mask);
        let mut rest = may.clone();
        for p in all {
            let resume = self.node(block, false, rest.clone());
            self.resume(resume, p as u32);
            rest.remove(p);
            let next = self.node(block, false, rest.clone());
            let cond = Cond::Empty(self.parked(p as u32));
            self.end(from, Term::If { cond, then: next, els: resume, likely: None });
            from = next;
        }
        let none = BitSet::new(self.live.registers.len());
        self.op(from, OpKind::Mask(0), &[], &[mask]);
        let exit = self.exit(ExitReason::Finished, &none, &self.no_blocks());
        self.end(from, Term::Exit(Box::new(exit)));
    }

    /// An instruction without its control flow.
    fn inst(&mut self, node: BlockId, site: Site, inst: &Inst, guard: Option<Guard>, mask: Value) {
        let mut uses = vec![mask];
        if let Some(guard) = guard
            && !self.machine.is_pure(inst)
        {
            let truths = self.temp(Kind::Mask);
            let pred = self.reg(guard.pred);
            self.op(node, OpKind::Truths { negated: guard.negated }, &[pred], &[truths]);
            let both = self.temp(Kind::Mask);
            self.op(node, OpKind::And, &[mask, truths], &[both]);
            uses[0] = both;
        }
        inst.srcs.iter().for_each(|src| src.for_each_reg(&mut |reg| uses.push(self.reg(reg))));
        let (reads, writes) = self.machine.carry(inst);
        let carry = self.var(Var::Carry);
        if reads {
            uses.push(carry);
        }
        if self.machine.reads_clock(inst) {
            uses.extend([self.var(Var::FullSteps), self.var(Var::MaskedSteps)]);
        }
        let mut places = Vec::new();
        inst.for_each_def(&mut |reg| places.push(self.reg(reg)));
        if writes {
            places.push(carry);
        }
        let Some(guard) = guard else {
            if writes {
                // Inactive lanes keep their flag.
                let new = self.temp(Kind::Mask);
                let mut defs = places.clone();
                *defs.last_mut().expect("the carry is the last") = new;
                self.op(node, OpKind::Inst(site), &uses, &defs);
                self.op(node, OpKind::SelectMask, &[mask, new, carry], &[carry]);
            } else {
                self.op(node, OpKind::Inst(site), &uses, &places);
            }
            return;
        };
        let defs: Vec<Value> = places.iter().map(|p| self.temp(self.kinds[p.0 as usize])).collect();
        self.op(node, OpKind::Inst(site), &uses, &defs);
        let pred = self.reg(guard.pred);
        // The instruction may overwrite its own guard.
        let mut kept = pred;
        if places.contains(&pred) && places.len() > 1 {
            kept = self.temp(Kind::Reg(RegClass::Pred));
            self.copy(node, kept, pred);
        }
        for (place, def) in places.iter().zip(&defs) {
            if *place == carry && writes {
                let (truths, lanes) = (self.temp(Kind::Mask), self.temp(Kind::Mask));
                self.op(node, OpKind::Truths { negated: guard.negated }, &[kept], &[truths]);
                self.op(node, OpKind::And, &[mask, truths], &[lanes]);
                self.op(node, OpKind::SelectMask, &[lanes, *def, carry], &[carry]);
            } else {
                let kind = OpKind::SelectPred { negated: guard.negated };
                self.op(node, kind, &[kept, *def, *place], &[*place]);
            }
        }
    }

    /// Makes lanes pending at a block; `merge`: others may be pending there already.
    fn park(&mut self, node: BlockId, block: u32, lanes: Value, merge: bool) {
        for n in self.parking.captured[block as usize].clone().iter() {
            let (cap, reg) = (self.cap(block, n as u32), Value(n as u32));
            if merge {
                self.op(node, OpKind::SelectMask, &[lanes, reg, cap], &[cap]);
            } else {
                self.copy(node, cap, reg);
            }
        }
        let parked = self.parked(block);
        if merge {
            self.op(node, OpKind::Or, &[parked, lanes], &[parked]);
        } else {
            self.copy(node, parked, lanes);
        }
    }

    /// The lanes that are pending at a block become the active ones, and continue there.
    fn resume(&mut self, node: BlockId, block: u32) {
        self.take_up(node, block);
        let to = self.body(block, false);
        self.end(node, Term::Goto(to));
    }

    /// The lanes that are pending at a block become the active ones.
    fn take_up(&mut self, node: BlockId, block: u32) {
        for n in self.parking.captured[block as usize].clone().iter() {
            let cap = self.cap(block, n as u32);
            self.copy(node, Value(n as u32), cap);
        }
        let (mask, parked) = (self.var(Var::Mask), self.parked(block));
        self.copy(node, mask, parked);
        self.op(node, OpKind::Mask(0), &[], &[parked]);
    }

    /// An edge from one block to another, while lanes may be pending at some of `may`.
    fn edge(&mut self, from: u32, full: bool, to: u32, may: &BitSet) -> BlockId {
        if to <= from {
            return self.turn(from, full, to, may);
        }
        if full {
            return self.body(to, true);
        }
        let mask = self.var(Var::Mask);
        let mut lower: Vec<usize> = may.iter().filter(|p| *p < to as usize).collect();
        lower.sort_unstable();
        let merge = may.contains(to as usize);
        if lower.is_empty() && !merge {
            return self.body(to, false);
        }
        let mut rest = may.clone();
        let first = self.node(from, false, rest.clone());
        let mut at = first;
        for p in lower {
            let resume = self.node(from, false, rest.clone());
            self.park(resume, to, mask, merge);
            self.resume(resume, p as u32);
            rest.remove(p);
            let next = self.node(from, false, rest.clone());
            let cond = Cond::Empty(self.parked(p as u32));
            self.end(at, Term::If { cond, then: next, els: resume, likely: None });
            at = next;
        }
        if !merge {
            let to = self.body(to, false);
            self.end(at, Term::Goto(to));
            return first;
        }
        let parked = self.parked(to);
        for n in self.parking.captured[to as usize].clone().iter() {
            let (cap, reg) = (self.cap(to, n as u32), Value(n as u32));
            self.op(at, OpKind::SelectMask, &[parked, cap, reg], &[reg]);
        }
        self.op(at, OpKind::Or, &[mask, parked], &[mask]);
        self.op(at, OpKind::Mask(0), &[], &[parked]);
        let (all, some) = (self.body(to, true), self.body(to, false));
        let term = match all == some {
            true => Term::Goto(some),
            false => Term::If { cond: Cond::Full(mask), then: all, els: some, likely: None },
        };
        self.end(at, term);
        first
    }

    /// A back edge: the loop begins its next iteration.
    fn turn(&mut self, from: u32, full: bool, to: u32, may: &BitSet) -> BlockId {
        let node = self.node(from, full, may.clone());
        let turns = self.var(Var::Turns);
        self.op(node, OpKind::Add(-self.price[to as usize]), &[turns], &[turns]);
        debug_assert!(self.entries.contains(&to));
        let live = self.live.live_in[to as usize].clone();
        let stop = self.exit_node(from, full, ExitReason::Yield { block: to }, &live, may);
        let on = self.body(to, full);
        if full && self.shape.team > 1 {
            let (index, node, kept) = self.restored((from, true), None, to);
            self.end(node, Term::Goto(on));
            self.resumes.push(Resume { block: to, id: None, counted: false, node, kept });
            if let Term::Exit(exit) = &mut self.blocks[stop.0 as usize].term {
                exit.resume = Some(index);
            }
        }
        self.end(node, Term::If { cond: Cond::Negative(turns), then: stop, els: on, likely: Some(false) });
        node
    }
}

/// The register of the member mask of a warp-synchronous instruction: the last source of all of them.
pub(crate) fn members(inst: &Inst) -> Option<Reg> {
    match inst.srcs.last() {
        Some(Src::Reg(reg)) => Some(*reg),
        _ => None,
    }
}
