//! Conditional constant propagation: the values of lanes that are the same whenever the code executes, such
//! as thread indices in a coarse warp that is the whole CTA, and values computed from them.
//!
//! Blocks are visited once in the order of code generation. A branch whose condition is constant has one live
//! edge, and a block without a live edge is not reached. Instructions on constants are
//! executed by the interpreter's own step, so the bits are those of the PTX semantics.
//!
//! Invariants: a constant is the value on every path, in every lane of its chunk, active or not. A chunk is
//! constant as a whole or not at all.
//!
//! Not handled: values that only a second visit of a loop would prove to be constant.

use super::expr::{Arith, Expr, Operand, operands};
use super::range::Bound;
use crate::effects;
use crate::wir::{
    BlockId, Cond, Func, GuardKind, Kind, LaunchShape, Op, OpKind, Phi, Shape, Site, Term, Value,
};
use ptx::check::module::{AddressSize, VarId};
use ptx::ir::{Base, Dst, Function, Inst, Program, Reg, RegClass, RegCounts, Src};
use ptx::isa::{Space, Sreg, TyKind};
use ptx_exec::bind::lone_step;
use ptx_exec::bound::Exec;
use ptx_exec::lanes::{FULL, LANES, Registers};
use ptx_exec::layout::Layout;
use ptx_exec::mem::{Memory, View};
use ptx_exec::warp::{GridShape, WarpState};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// The lanes of each chunk, as far as they are known. A mask or a predicate has zeros and ones.
type Chunks = Vec<Option<Rc<[u64]>>>;

/// What the constants of a function are computed from.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) func: &'a Func,
    pub(crate) function: &'a Function,
    pub(crate) program: &'a Program,
    pub(crate) layout: &'a Layout,
    pub(crate) launch: LaunchShape,
    /// The range of each value.
    pub(crate) bounds: &'a [Option<Bound>],
}

/// The constants of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constants {
    /// By value; empty: nothing is known.
    known: Vec<Chunks>,
    /// Whether each block has a live edge, or is entered from outside.
    reached: Vec<bool>,
    /// For each value, the value that it is an unchanged copy of.
    roots: Vec<Value>,
    /// Results of conversions that are exact in active lanes only: other lanes have other numbers.
    in_active: Rc<HashSet<Value>>,
}

impl Constants {
    /// Finds the constants of a function.
    pub(crate) fn find(facts: Facts<'_>) -> Self {
        let func = facts.func;
        let entries = func.entries.iter().map(|entry| entry.node);
        let resumes = func.resumes.iter().map(|resume| resume.node);
        let mut starts: HashSet<BlockId> = entries.chain(resumes).chain([func.start]).collect();
        loop {
            let (own, late) = Self::from_starts(facts, &starts);
            if late.is_empty() {
                return own;
            }
            starts.extend(late);
        }
    }

    /// Finds the constants of a function that begins in these blocks. Returns also the blocks that have a
    /// live edge from a block behind them only: they were taken for not reached when they were visited, and
    /// what was found behind them is wrong.
    fn from_starts(facts: Facts<'_>, starts: &HashSet<BlockId>) -> (Self, Vec<BlockId>) {
        let Facts { func, .. } = facts;
        let mut own = Constants {
            known: vec![Vec::new(); func.kinds.len()],
            reached: vec![false; func.blocks.len()],
            roots: roots(func),
            in_active: Rc::new(func.guarded(GuardKind::ExactInActive)),
        };
        let live = vec![Vec::new(); func.blocks.len()];
        let visited = vec![false; func.blocks.len()];
        let in_active = own.in_active.clone();
        let mut search = Search { facts, stepper: None, live, visited, in_active };
        starts.iter().for_each(|id| own.reached[id.0 as usize] = true);
        for zero in &func.zeros {
            own.known[zero.0 as usize] = search.uniform(0);
        }
        let mut skipped = Vec::new();
        for id in func.reverse_postorder() {
            match own.reached[id.0 as usize] {
                true => search.block(&mut own, id),
                false => skipped.push(id),
            }
            search.visited[id.0 as usize] = true;
        }
        skipped.retain(|id| own.reached[id.0 as usize]);
        (own, skipped)
    }

    /// What is known in a version of a block in which masks have other lanes: for each mask and chunk, the
    /// bits, if they are known. `read` gets the constants of the version.
    pub(crate) fn in_version<R>(
        &mut self,
        facts: Facts<'_>,
        id: BlockId,
        masks: &[(Value, Vec<Option<u64>>)],
        read: impl FnOnce(&Constants) -> R,
    ) -> R {
        let block = &facts.func.blocks[id.0 as usize];
        let width = facts.launch.chunk;
        let changed = masks.iter().map(|(mask, _)| *mask);
        let changed = changed.chain(block.ops.iter().flat_map(|op| op.defs.iter().copied()));
        let before: Vec<(Value, Chunks)> =
            changed.map(|name| (name, self.known[name.0 as usize].clone())).collect();
        for (mask, chunks) in masks {
            let lanes = |bits: u64| (0..width).map(|lane| bits >> lane & 1).collect::<Vec<u64>>().into();
            self.known[mask.0 as usize] = chunks.iter().map(|bits| bits.map(lanes)).collect();
        }
        let (live, visited) = (Vec::new(), Vec::new());
        let in_active = self.in_active.clone();
        let mut search = Search { facts, stepper: None, live, visited, in_active };
        for op in &block.ops {
            // A mask that the block computes has the lanes of the version already.
            if !op.defs.iter().any(|def| masks.iter().any(|(mask, _)| mask == def)) {
                search.op(self, op);
            }
        }
        let result = read(self);
        // A value that is listed twice gets back what it was first.
        for (name, known) in before.into_iter().rev() {
            self.known[name.0 as usize] = known;
        }
        result
    }

    /// For each value, the value that it is an unchanged copy of.
    pub(crate) fn roots(&self) -> &[Value] {
        &self.roots
    }

    /// The lanes of a chunk of a value, if they are known.
    pub(crate) fn chunk(&self, value: Value, chunk: u32) -> Option<&[u64]> {
        self.known[value.0 as usize].get(chunk as usize)?.as_deref()
    }

    /// The bits of a chunk of a mask or a predicate, if they are known.
    pub(crate) fn bits(&self, mask: Value, chunk: u32) -> Option<u64> {
        let lanes = self.chunk(mask, chunk)?;
        Some(lanes.iter().rev().fold(0, |bits, lane| bits << 1 | lane & 1))
    }

    /// The value of the condition at the end of a block, if it is constant. `full`: the block is a full copy.
    pub(crate) fn condition(&self, function: &Function, full: bool, cond: &Cond) -> Option<bool> {
        match cond {
            Cond::Pred { value, negated } => Some((self.lanes(*value)?.next()? != 0) != *negated),
            Cond::Empty(mask) if self.chunks_of(*mask).any(|chunk| chunk.contains(&1)) => Some(false),
            Cond::Empty(mask) => self.is_known(*mask).then_some(true),
            Cond::Full(mask) if self.chunks_of(*mask).any(|chunk| chunk.contains(&0)) => Some(false),
            Cond::Full(mask) => self.is_known(*mask).then_some(true),
            Cond::Equal(a, b) if self.differ(*a, *b) => Some(false),
            Cond::Equal(a, b) => (self.is_known(*a) && self.is_known(*b)).then_some(true),
            Cond::Together { site, members, mask, live } => {
                let imm = match site.inst(function)?.srcs.last() {
                    Some(Src::Imm(bits)) => Some(*bits),
                    _ => None,
                };
                let members = match members {
                    Some(name) => self.lanes(*name)?.collect(),
                    None => vec![imm?; self.lanes(*mask)?.count()],
                };
                // In a full copy, the active lanes are all that are live.
                let live = if full { mask } else { live };
                let (mask, live) = (self.lanes(*mask)?.collect::<Vec<_>>(), self.lanes(*live)?);
                let live: Vec<u64> = live.collect();
                Some(are_together(&members, &mask, &live))
            }
            Cond::Negative(_) => None,
        }
    }

    /// The chunks of a value that are known.
    fn chunks_of(&self, value: Value) -> impl Iterator<Item = &[u64]> {
        self.known[value.0 as usize].iter().flatten().map(|chunk| &**chunk)
    }

    /// Whether a chunk of two values is known to differ.
    fn differ(&self, a: Value, b: Value) -> bool {
        let pairs = self.known[a.0 as usize].iter().zip(&self.known[b.0 as usize]);
        pairs.into_iter().any(|(a, b)| a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| a != b))
    }

    /// Whether all lanes of a value are known.
    pub(crate) fn is_known(&self, value: Value) -> bool {
        let chunks = &self.known[value.0 as usize];
        !chunks.is_empty() && chunks.iter().all(Option::is_some)
    }

    /// All lanes of a value, if they are known.
    pub(crate) fn lanes(&self, value: Value) -> Option<impl Iterator<Item = u64>> {
        self.is_known(value)
            .then(|| self.known[value.0 as usize].iter().flatten().flat_map(|c| c.iter().copied()))
    }
}

/// The state of the analysis.
struct Search<'a> {
    facts: Facts<'a>,
    /// Executes instructions.
    stepper: Option<Box<Stepper>>,
    /// For each block, the predecessors with a live edge so far.
    live: Vec<Vec<BlockId>>,
    /// The blocks that have been visited, or were found not to be reached.
    visited: Vec<bool>,
    /// As in [`Constants`].
    in_active: Rc<HashSet<Value>>,
}

impl Search<'_> {
    fn chunks(&self) -> usize {
        (self.facts.launch.lanes() / self.facts.launch.chunk) as usize
    }

    /// The same number in all lanes.
    fn uniform(&self, value: u64) -> Chunks {
        let chunk: Rc<[u64]> = vec![value; self.facts.launch.chunk as usize].into();
        vec![Some(chunk); self.chunks()]
    }

    /// A number for each lane.
    fn by_lane(&self, lane: impl Fn(u32) -> u64) -> Chunks {
        let width = self.facts.launch.chunk;
        (0..self.chunks() as u32)
            .map(|c| Some((c * width..(c + 1) * width).map(&lane).collect::<Vec<u64>>().into()))
            .collect()
    }

    fn block(&mut self, own: &mut Constants, id: BlockId) {
        let func = self.facts.func;
        let block = &func.blocks[id.0 as usize];
        for phi in &block.phis {
            let known = self.determined(phi.def).or_else(|| self.copied(own, phi.def));
            let known = known.or_else(|| self.incoming(own, id, phi)).unwrap_or_default();
            own.known[phi.def.0 as usize] = self.without_absent(phi.def, known);
        }
        for op in &block.ops {
            self.op(own, op);
        }
        self.edges(own, id, &block.term);
    }

    /// The value of a phi that all live edges agree on.
    fn incoming(&self, own: &Constants, id: BlockId, phi: &Phi) -> Option<Chunks> {
        let block = &self.facts.func.blocks[id.0 as usize];
        // A predecessor that is visited later may have a live edge too.
        let visited = block.preds.iter().all(|pred| self.visited[pred.0 as usize]) && !self.is_entered(id);
        let live = &self.live[id.0 as usize];
        if !visited || live.is_empty() {
            return None;
        }
        let ways = block.preds.iter().zip(&phi.from).filter(|(pred, _)| live.contains(pred));
        let mut known = ways.map(|(_, from)| own.is_known(*from).then(|| &own.known[from.0 as usize]));
        let first = known.next()??;
        known.all(|other| other == Some(first)).then(|| first.clone())
    }

    fn is_entered(&self, id: BlockId) -> bool {
        let func = self.facts.func;
        func.start == id
            || func.entries.iter().any(|entry| entry.node == id)
            || func.resumes.iter().any(|resume| resume.node == id)
    }

    /// The live edges behind a block.
    fn edges(&mut self, own: &mut Constants, id: BlockId, term: &Term) {
        let Facts { func, function, .. } = self.facts;
        let full = func.blocks[id.0 as usize].full;
        let to = match term {
            Term::If { cond, then, els, .. } => match own.condition(function, full, cond) {
                Some(true) => vec![*then],
                Some(false) => vec![*els],
                None => vec![*then, *els],
            },
            other => other.successors(),
        };
        for to in to {
            own.reached[to.0 as usize] = true;
            self.live[to.0 as usize].push(id);
        }
    }

    fn op(&mut self, own: &mut Constants, op: &Op) {
        let [def, ..] = op.defs.as_slice() else { return };
        let one = match &op.kind {
            OpKind::Inst(site) => return self.inst(own, *site, op),
            OpKind::Mask(0) => Some(self.uniform(0)),
            OpKind::Mask(_) => Some(self.uniform(1)),
            OpKind::Truths { negated } => {
                let flip = u64::from(*negated);
                Some(map(&own.known[op.uses[0].0 as usize], |lane| lane ^ flip))
            }
            OpKind::InRange { first, count } => {
                let inside = |lane: u64| u64::from((lane as u32).wrapping_sub(*first) < *count);
                Some(map(&own.known[op.uses[0].0 as usize], inside))
            }
            OpKind::And => Some(self.masks(own, op, |a, b| a & b, 0)),
            OpKind::AndNot => Some(self.masks(own, op, |a, b| a & (b ^ 1), 2)),
            OpKind::Or => Some(self.masks(own, op, |a, b| a | b, 1)),
            OpKind::SelectMask => Some(self.select(own, [op.uses[0], op.uses[1], op.uses[2]], 0)),
            OpKind::SelectPred { negated } => {
                Some(self.select(own, [op.uses[0], op.uses[1], op.uses[2]], u64::from(*negated)))
            }
            OpKind::Restore(..) => self.determined(*def).or_else(|| self.copied(own, *def)),
            OpKind::Load(_)
            | OpKind::Reload(_)
            | OpKind::Spill(_)
            | OpKind::Reduced(..)
            | OpKind::EntryMask
            | OpKind::EntryLive
            | OpKind::EntryCarry
            | OpKind::EntryTurns
            | OpKind::Count(_)
            | OpKind::Picks { .. }
            | OpKind::SameQuotient(_)
            | OpKind::Rebase
            | OpKind::Add(_)
            | OpKind::AddLanes(_)
            | OpKind::AddWarps(_)
            | OpKind::Chain(_)
            | OpKind::Guard(..)
            | OpKind::Ahead(_)
            | OpKind::Spare(..) => None,
        };
        own.known[def.0 as usize] = self.without_absent(*def, one.unwrap_or_default());
    }

    /// What is known of a value, with chunks of a mask that have no threads: those of a CTA of less than a
    /// warp.
    fn without_absent(&self, name: Value, mut known: Chunks) -> Chunks {
        let launch = self.facts.launch;
        if self.facts.func.kinds[name.0 as usize] == Kind::Mask && launch.threads() < launch.lanes() {
            known.resize(self.chunks(), None);
            let none: Rc<[u64]> = vec![0; launch.chunk as usize].into();
            let present = launch.threads().div_ceil(launch.chunk) as usize;
            known[present..].iter_mut().for_each(|chunk| *chunk = Some(none.clone()));
        }
        known
    }

    /// A function of two masks. `absorbs`: how a chunk of one mask alone determines the result: if it is zero
    /// (0), if it is all ones (1), or if the first is zero or the second all ones (2).
    fn masks(&self, own: &Constants, op: &Op, of: impl Fn(u64, u64) -> u64, absorbs: u32) -> Chunks {
        let [a, b] = [op.uses[0], op.uses[1]].map(|name| &own.known[name.0 as usize]);
        let width = self.facts.launch.chunk as usize;
        let chunk = |c: usize| {
            let [a, b] = [a, b].map(|chunks| chunks.get(c).and_then(Option::as_deref));
            let is = |chunk: Option<&[u64]>, lane: u64| {
                chunk.is_some_and(|lanes| lanes.iter().all(|l| *l == lane))
            };
            let constant = |lane: u64| Some(vec![lane; width].into());
            match (absorbs, a, b) {
                (_, Some(a), Some(b)) => {
                    Some(a.iter().zip(b).map(|(a, b)| of(*a, *b)).collect::<Vec<_>>().into())
                }
                (0, a, b) if is(a, 0) || is(b, 0) => constant(0),
                (1, a, b) if is(a, 1) || is(b, 1) => constant(1),
                (2, a, b) if is(a, 0) || is(b, 1) => constant(0),
                _ => None,
            }
        };
        (0..self.chunks()).map(chunk).collect()
    }

    /// The second value where the first is true, or false if `flip` is one, and the third elsewhere.
    fn select(&self, own: &Constants, [mask, a, b]: [Value; 3], flip: u64) -> Chunks {
        let chunk = |c: u32| -> Option<Rc<[u64]>> {
            let mask = own.chunk(mask, c)?;
            let [a, b] = [a, b].map(|name| own.known[name.0 as usize].get(c as usize).cloned().flatten());
            if mask.iter().all(|lane| lane ^ flip != 0) {
                return a;
            }
            if mask.iter().all(|lane| lane ^ flip == 0) {
                return b;
            }
            let (a, b) = (a?, b?);
            let lanes = mask.iter().zip(a.iter().zip(b.iter()));
            let pick = |(mask, (a, b)): (&u64, (&u64, &u64))| if mask ^ flip != 0 { *a } else { *b };
            Some(lanes.map(pick).collect::<Vec<_>>().into())
        };
        (0..self.chunks() as u32).map(chunk).collect()
    }

    fn inst(&mut self, own: &mut Constants, site: Site, op: &Op) {
        let Some(inst) = site.inst(self.facts.function) else { return };
        let exact = !op.defs.iter().any(|def| self.in_active.contains(def));
        let results = if exact { self.results(own, inst, op) } else { None }.unwrap_or_default();
        let mut results = results.into_iter();
        for def in &op.defs {
            let known = self.determined(*def).or(results.next()).unwrap_or_default();
            own.known[def.0 as usize] = known;
        }
    }

    /// The results of an instruction.
    fn results(&mut self, own: &Constants, inst: &Inst, op: &Op) -> Option<Vec<Chunks>> {
        let plain = inst.guard.is_none()
            && effects::is_pure(inst)
            && inst.dsts.iter().all(|dst| matches!(dst, Dst::Reg(_) | Dst::Sink))
            && inst.dsts.iter().filter(|dst| matches!(dst, Dst::Reg(_))).count() == op.defs.len()
            && op.defs.iter().all(|def| matches!(self.facts.func.kinds[def.0 as usize], Kind::Reg(_)));
        if !plain {
            return None;
        }
        match inst.srcs.as_slice() {
            [Src::Sreg(sreg, axis)] if inst.op == ptx::isa::Op::Mov => {
                return Some(vec![self.sreg(*sreg, usize::from(*axis))?]);
            }
            [Src::Addr(addr)] if inst.op == ptx::isa::Op::Mov && addr.index.is_none() => {
                return Some(vec![self.uniform(self.symbol(addr.base, addr.offset, inst)?)]);
            }
            _ => {}
        }
        if matches!(inst.op, ptx::isa::Op::Cvta | ptx::isa::Op::CvtaTo) {
            let same = matches!(inst.mods.space(), Space::Global | Space::Const);
            let [_, from] = op.uses.as_slice() else { return None };
            return (same && own.is_known(*from)).then(|| vec![own.known[from.0 as usize].clone()]);
        }
        // The windows of shared, local and parameter memory lie elsewhere in each process.
        if inst.op == ptx::isa::Op::Isspacep {
            return None;
        }
        if !inst.srcs.iter().all(|src| matches!(src, Src::Absent | Src::Imm(_) | Src::Reg(_) | Src::Not(_))) {
            return None;
        }
        // The sources of the chunks in which all are known.
        let uses = &op.uses[1..];
        let whole: Vec<u32> = (0..self.chunks() as u32)
            .filter(|c| uses.iter().all(|name| own.chunk(*name, *c).is_some()))
            .collect();
        let absorbed = self.absorbed(own, inst, op);
        if whole.is_empty() {
            return absorbed.map(|chunks| vec![chunks]);
        }
        let gather = |name: &Value| -> Vec<u64> {
            whole.iter().flat_map(|c| own.chunk(*name, *c).unwrap_or_default().iter().copied()).collect()
        };
        let sources: Vec<Vec<u64>> = uses.iter().map(gather).collect();
        let width = self.facts.launch.chunk as usize;
        if self.stepper.is_none() {
            self.stepper = Stepper::new().map(Box::new);
        }
        let results = self.stepper.as_mut()?.execute(inst, &sources, whole.len() * width)?;
        let all = self.chunks();
        let spread = |lanes: Vec<u64>| {
            let mut chunks: Chunks = vec![None; all];
            for (c, lanes) in whole.iter().zip(lanes.chunks(width)) {
                chunks[*c as usize] = Some(lanes.into());
            }
            chunks
        };
        let mut results: Vec<Chunks> = results.into_iter().map(spread).collect();
        if let (Some(absorbed), [result]) = (absorbed, results.as_mut_slice()) {
            for (result, absorbed) in result.iter_mut().zip(absorbed) {
                *result = result.take().or(absorbed);
            }
        }
        Some(results)
    }

    /// The chunks of a conjunction or a disjunction that one of its sources determines alone.
    fn absorbed(&self, own: &Constants, inst: &Inst, op: &Op) -> Option<Chunks> {
        let [def] = op.defs.as_slice() else { return None };
        let ones = width_mask(self.facts.func.kinds[def.0 as usize]);
        let result = match Expr::of(inst)?.arith {
            Arith::And => 0,
            Arith::Or => ones,
            _ => return None,
        };
        let sources = operands(inst, op);
        let absorbs = |source: &Operand<'_>, c: u32| {
            let (name, flip) = match source {
                Operand::Value(name) => (*name, 0),
                Operand::Not(name) => (*name, ones),
                _ => return false,
            };
            own.chunk(name, c).is_some_and(|lanes| lanes.iter().all(|lane| lane ^ flip == result))
        };
        let width = self.facts.launch.chunk as usize;
        let chunk =
            |c: u32| sources.iter().any(|source| absorbs(source, c)).then(|| vec![result; width].into());
        Some((0..self.chunks() as u32).map(chunk).collect())
    }

    /// A special register that is the same in every CTA and coarse warp.
    fn sreg(&self, sreg: Sreg, axis: usize) -> Option<Chunks> {
        Some(match sreg {
            Sreg::Tid if axis < 3 => self.tid(axis),
            Sreg::Tid | Sreg::Ntid | Sreg::Ctaid | Sreg::Nctaid if axis > 2 => self.uniform(0),
            Sreg::Ntid => self.uniform(self.facts.launch.ntid[axis].into()),
            _ if self.facts.launch.is_scalar() => return None,
            _ => {
                sreg.of_lane(0)?;
                self.by_lane(|lane| sreg.of_lane(lane).unwrap_or_default().into())
            }
        })
    }

    /// Thread indices, in the chunks where they are the same in each warp or coarse warp.
    fn tid(&self, axis: usize) -> Chunks {
        let launch = self.facts.launch;
        let of = |c: u32| -> Option<Rc<[u64]>> {
            let lanes = c * launch.chunk..(c + 1) * launch.chunk;
            Some(launch.same_in_all(lanes, |thread| u64::from(launch.tid(thread)[axis]))?.into())
        };
        (0..self.chunks() as u32).map(of).collect()
    }

    /// The address of a symbol that is an offset in a window.
    fn symbol(&self, base: Base, offset: i64, inst: &Inst) -> Option<u64> {
        let address = match base {
            Base::Absolute | Base::KernelParam => offset as u64,
            Base::Var(VarId(id)) => {
                let variable = self.facts.program.variables.get(id as usize)?;
                let placed = matches!(variable.space, Space::Global | Space::Const | Space::Tex)
                    || variable.ty.kind() == TyKind::Opaque;
                let address = self.facts.layout.variable(VarId(id)).wrapping_add(offset as u64);
                (!placed).then_some(address)?
            }
            Base::Reg(_) | Base::Func(_) | Base::Frame => return None,
        };
        let class = inst.dsts.first().and_then(Dst::reg).map_or(RegClass::R64, |reg| reg.class);
        Some(address & width_mask(Kind::Reg(class)))
    }

    /// The constant that a value is a copy of.
    fn copied(&self, own: &Constants, name: Value) -> Option<Chunks> {
        let root = own.roots[name.0 as usize];
        (root != name && own.is_known(root)).then(|| own.known[root.0 as usize].clone())
    }

    /// The value that the shape or the range leaves no other value than.
    fn determined(&self, name: Value) -> Option<Chunks> {
        if self.in_active.contains(&name) {
            return None;
        }
        let Kind::Reg(class) = self.facts.func.kinds[name.0 as usize] else { return None };
        let bits = bits_of(class);
        let bound = self.facts.bounds[name.0 as usize];
        match &self.facts.func.shapes[name.0 as usize] {
            Shape::Bottom | Shape::Varying => None,
            Shape::Uniform(Some(value)) => Some(self.uniform(*value)),
            Shape::Uniform(None) => {
                bound.filter(|bound| bound.low == bound.high).map(|bound| self.uniform(bound.low))
            }
            Shape::Affine(pattern) if !pattern.rows.is_empty() => None,
            Shape::Affine(pattern) => {
                let lanes = |base: u64| {
                    let lane = |lane: u32| {
                        base.wrapping_add(i64::from(pattern.lanes[lane as usize]) as u64)
                            & width_mask(Kind::Reg(class))
                    };
                    self.by_lane(lane)
                };
                if u32::from(pattern.align) >= bits {
                    return Some(lanes(0));
                }
                let (low, high) = (pattern.lanes.iter().min()?, pattern.lanes.iter().max()?);
                let bound = bound.filter(|_| !pattern.by_chunk)?;
                // The lanes span less than half of all numbers, so the lowest lane has the least number.
                let span = (i64::from(*high) - i64::from(*low)) as u64;
                (bits >= 32 && bound.high - bound.low == span)
                    .then(|| lanes(bound.low.wrapping_sub(i64::from(*low) as u64)))
            }
        }
    }
}

/// For each value, the value that it is an unchanged copy of on every path, through phis and across barriers.
/// A value that comes from several others is its own root.
pub(crate) fn roots(func: &Func) -> Vec<Value> {
    let mut roots: Vec<Option<Value>> = vec![None; func.kinds.len()];
    let mut copies: Vec<(Value, &[Value])> = Vec::new();
    let mut restored: Vec<(Value, Value)> = Vec::new();
    for zero in &func.zeros {
        roots[zero.0 as usize] = Some(*zero);
    }
    for node in &func.blocks {
        copies.extend(node.phis.iter().map(|phi| (phi.def, phi.from.as_slice())));
        for op in &node.ops {
            match &op.kind {
                OpKind::Restore(resume, reg) => match func.kept(*resume, *reg) {
                    Some(name) => restored.push((op.defs[0], name)),
                    None => roots[op.defs[0].0 as usize] = Some(op.defs[0]),
                },
                _ => op.defs.iter().for_each(|def| roots[def.0 as usize] = Some(*def)),
            }
        }
    }
    copies.extend(restored.iter().map(|(def, from)| (*def, std::slice::from_ref(from))));
    // A value that was found to be its own root stays so; therefore the iteration ends.
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (def, from) in &copies {
            let old = roots[def.0 as usize];
            if old == Some(*def) {
                continue;
            }
            let mut all = from.iter().filter_map(|name| roots[name.0 as usize]);
            let Some(first) = all.next() else { continue };
            let same = old.is_none_or(|old| old == first) && all.all(|other| other == first);
            let new = if same { first } else { *def };
            changed |= old != Some(new);
            roots[def.0 as usize] = Some(new);
        }
    }
    (0..).zip(roots).map(|(at, root)| root.unwrap_or(Value(at))).collect()
}

/// Whether the active lanes of each warp name exactly themselves as members, apart from lanes that have
/// exited.
fn are_together(members: &[u64], mask: &[u64], live: &[u64]) -> bool {
    (0..mask.len()).all(|lane| {
        let warp = lane / LANES * LANES..(lane / LANES * LANES + LANES).min(mask.len());
        let named = |other: usize| members[lane] >> (other % LANES) & 1 & live[other];
        mask[lane] == 0
            || members[lane] >> (lane % LANES) & 1 != 0
                && warp.into_iter().all(|other| named(other) == mask[other])
    })
}

/// A function of each known lane.
fn map(chunks: &Chunks, of: impl Fn(u64) -> u64) -> Chunks {
    chunks
        .iter()
        .map(|chunk| chunk.as_ref().map(|lanes| lanes.iter().map(|lane| of(*lane)).collect()))
        .collect()
}

fn bits_of(class: RegClass) -> u32 {
    match class {
        RegClass::Pred => 1,
        RegClass::R16 => 16,
        RegClass::R32 => 32,
        RegClass::R64 => 64,
    }
}

fn width_mask(kind: Kind) -> u64 {
    match kind {
        Kind::Reg(class) => u64::MAX >> (64 - bits_of(class)),
        Kind::Mask => 1,
        Kind::Count => u64::MAX,
    }
}

/// Executes single instructions by the interpreter's step.
struct Stepper {
    regs: Registers,
    warp: WarpState,
    view: View,
}

impl Stepper {
    fn new() -> Option<Self> {
        let grid = GridShape {
            ntid: [LANES as u32, 1, 1],
            nctaid: [1, 1, 1],
            gridid: 1,
            began: 0,
            nsmid: 1,
            dynamic_shared: 0,
            total_shared: 0,
            envreg: [0; 32],
        };
        let memory = Memory::new(AddressSize::Bits64).ok()?;
        let warp = WarpState::new(Arc::new(grid), [0; 3], 0);
        Some(Stepper { regs: Registers::default(), warp, view: View::new(&memory) })
    }

    /// The results of an instruction in so many lanes, given the lanes of its registers in their order.
    /// `None` if it cannot be executed alone.
    fn execute(&mut self, inst: &Inst, sources: &[Vec<u64>], lanes: usize) -> Option<Vec<Vec<u64>>> {
        // Registers of its own: each source and destination has another.
        let mut own = inst.clone();
        let mut counts = [0u32; 4];
        let mut next = |reg: &mut Reg| {
            let count = &mut counts[reg.class as usize];
            reg.index = *count as _;
            *count += 1;
            *reg
        };
        let mut read = Vec::new();
        for src in &mut own.srcs {
            if let Src::Reg(reg) | Src::Not(reg) = src {
                read.push(next(reg));
            }
        }
        let mut written = Vec::new();
        for dst in &mut own.dsts {
            match dst {
                Dst::Reg(reg) => written.push(next(reg)),
                Dst::Sink => {}
                Dst::Video { .. } => return None,
            }
        }
        if read.len() != sources.len() {
            return None;
        }
        let step = lone_step(&own)?;
        let [pred, r16, r32, r64] = [RegClass::Pred, RegClass::R16, RegClass::R32, RegClass::R64]
            .map(|class| counts[class as usize] as _);
        self.regs.reset(RegCounts { pred, r16, r32, r64 });
        let mut results = vec![Vec::with_capacity(lanes); written.len()];
        for from in (0..lanes).step_by(LANES) {
            let part = from..(from + LANES).min(lanes);
            for (reg, lanes) in read.iter().zip(sources) {
                lanes[part.clone()].iter().enumerate().for_each(|(lane, value)| self.set(*reg, lane, *value));
            }
            let mut exec = Exec {
                mask: FULL,
                group: FULL,
                regs: &mut self.regs,
                warp: &mut self.warp,
                mem: &mut self.view,
                frame: 0,
            };
            step(&mut exec).ok()?;
            for (reg, lanes) in written.iter().zip(&mut results) {
                lanes.extend((0..part.len()).map(|lane| self.get(*reg, lane)));
            }
        }
        Some(results)
    }

    fn get(&self, reg: Reg, lane: usize) -> u64 {
        let index = reg.index as usize;
        match reg.class {
            RegClass::Pred => u64::from(self.regs.pred[index] >> lane & 1),
            RegClass::R16 => self.regs.r16[index].0[lane].into(),
            RegClass::R32 => self.regs.r32[index].0[lane].into(),
            RegClass::R64 => self.regs.r64[index].0[lane],
        }
    }

    fn set(&mut self, reg: Reg, lane: usize, value: u64) {
        let index = reg.index as usize;
        match reg.class {
            RegClass::Pred => {
                let mask = &mut self.regs.pred[index];
                *mask = *mask & !(1 << lane) | (value as u32 & 1) << lane;
            }
            RegClass::R16 => self.regs.r16[index].0[lane] = value as u16,
            RegClass::R32 => self.regs.r32[index].0[lane] = value as u32,
            RegClass::R64 => self.regs.r64[index].0[lane] = value,
        }
    }
}
