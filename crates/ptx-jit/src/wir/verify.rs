//! The rules of WIR, checked.
//!
//! Every pass may rely on these rules and must keep them. They are checked after each pass of a build with
//! debug assertions, and for every text that is read.
//!
//! * Targets, roots and resume points exist, roots have no predecessors, and predecessors are those that the
//!   terminators say.
//! * Every operand has the kind that its operation wants; an instruction exists, and reads and writes what
//!   the PTX instruction does.
//! * In SSA form, a value is defined once, and its definition is on every path to each use. A zero is defined
//!   everywhere.
//! * Members of a group are loads, or stores, of the block relative to the group's register, and belong to no
//!   other group.
//! * Versions for all lanes and for leading lanes are those of masked blocks, a mask is sunk into a block
//!   with one predecessor, and a warp strip continues in a successor.
//! * Prefetches are deferred to the block behind the barrier that their block ends at.
//! * If there are shapes, there is one for each value; constants of lanes are small, and masks and counts are
//!   uniform.
//!
//! Invariant: checking never panics, whatever the function holds. A function without violations is safe for
//! every pass.

use super::decision::Decision;
use super::dom::Dominators;
use super::lattice::LIMIT;
use super::prefetch::Deferral;
use super::sunk_mask::SunkMask;
use super::uses::{Def, DefUse};
use super::{
    Block, BlockId, Chain, Cond, Effects, Exit, ExitReason, Func, GuardKind, Kind, Op, OpKind, Shape, Site,
    Term, Value,
};
use ptx::ir::{Addr, Base, Function, Inst, Reg, RegClass, Src};
use ptx::isa::{Op as O, Ty};
use std::collections::HashSet;
use std::fmt;

/// A broken rule, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The block, if it is one of a block.
    pub block: Option<BlockId>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            Some(block) => write!(f, "b{}: {}", block.0, self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// What names stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Variables, which are assigned any number of times: before SSA construction.
    Variables,
    /// Values, which are defined once.
    Ssa,
}

/// The rules that a function breaks; at most one for each operation. `function`: what its sites name.
pub fn verify(func: &Func, function: &Function, effects: &impl Effects, form: Form) -> Vec<Violation> {
    let mut verifier = Verifier { func, function, effects, found: Vec::new(), block: None };
    verifier.graph();
    if !verifier.found.is_empty() {
        // Everything else follows edges.
        return verifier.found;
    }
    for (id, block) in (0..).map(BlockId).zip(&func.blocks) {
        verifier.block = Some(id);
        verifier.kinds(block);
    }
    verifier.block = None;
    verifier.lists();
    verifier.shapes();
    if verifier.found.is_empty() && form == Form::Ssa {
        verifier.ssa();
    }
    verifier.found
}

struct Verifier<'a, E> {
    func: &'a Func,
    function: &'a Function,
    effects: &'a E,
    found: Vec<Violation>,
    block: Option<BlockId>,
}

/// `Err`: a rule is broken.
type Checked = Result<(), String>;

impl<E: Effects> Verifier<'_, E> {
    fn note(&mut self, checked: Checked) {
        if let Err(message) = checked {
            self.found.push(Violation { block: self.block, message });
        }
    }

    /// Targets, predecessors and roots.
    fn graph(&mut self) {
        let func = self.func;
        let count = func.blocks.len();
        let exists = |block: BlockId| match (block.0 as usize) < count {
            true => Ok(()),
            false => Err(format!("there is no b{}", block.0)),
        };
        let mut preds: Vec<Vec<BlockId>> = vec![Vec::new(); count];
        for (id, block) in (0..).map(BlockId).zip(&func.blocks) {
            self.block = Some(id);
            for to in block.term.successors() {
                match preds.get_mut(to.0 as usize) {
                    Some(preds) => preds.push(id),
                    None => self.note(exists(to)),
                }
            }
        }
        for (at, (block, preds)) in func.blocks.iter().zip(&preds).enumerate() {
            self.block = Some(BlockId(at as u32));
            if block.preds != *preds {
                self.note(Err("the predecessors are not those that branch here".to_owned()));
            }
            if block.block as usize >= self.function.blocks.len() {
                self.note(Err(format!("there is no PTX block {}", block.block)));
            }
        }
        self.block = None;
        for root in func.roots() {
            self.note(exists(root));
            if preds.get(root.0 as usize).is_some_and(|preds| !preds.is_empty()) {
                self.note(Err(format!("b{} is entered from outside and from other blocks", root.0)));
            }
        }
    }

    fn kind(&self, value: Value) -> Result<Kind, String> {
        let kind = self.func.kinds.get(value.0 as usize).copied();
        kind.ok_or_else(|| format!("v{} has no kind", value.0))
    }

    fn is(&self, value: Value, kind: Kind) -> Checked {
        let found = self.kind(value)?;
        if found == kind { Ok(()) } else { Err(format!("v{} is {found:?}, not {kind:?}", value.0)) }
    }

    fn all(&self, values: &[Value], kinds: &[Kind]) -> Checked {
        if values.len() != kinds.len() {
            return Err(format!("{} values, not {}", values.len(), kinds.len()));
        }
        values.iter().zip(kinds).try_for_each(|(value, kind)| self.is(*value, *kind))
    }

    fn regs(&self, regs: &[(Reg, Value)]) -> Checked {
        regs.iter().try_for_each(|(reg, value)| self.is(*value, Kind::Reg(reg.class)))
    }

    fn ptx_block(&self, block: u32) -> Checked {
        let exists = (block as usize) < self.function.blocks.len();
        if exists { Ok(()) } else { Err(format!("there is no PTX block {block}")) }
    }

    fn inst(&self, site: Site) -> Result<&Inst, String> {
        let index_fits = |block: &ptx::ir::Block| site.index as usize <= block.insts.len();
        let fits = self.function.blocks.get(site.block as usize).is_some_and(index_fits);
        let inst = site.inst(self.function).filter(|_| fits);
        inst.ok_or_else(|| format!("there is no instruction {}.{}", site.block, site.index))
    }

    /// Operands of all phis, operations and the terminator of a block.
    fn kinds(&mut self, block: &Block) {
        for phi in &block.phis {
            let kind = self.kind(phi.def);
            let checked = kind.and_then(|kind| {
                if phi.from.len() != block.preds.len() {
                    return Err(format!("the phi v{} has not an operand for each predecessor", phi.def.0));
                }
                phi.from.iter().try_for_each(|from| self.is(*from, kind))
            });
            self.note(checked);
        }
        for op in &block.ops {
            let checked = self.op(op).map_err(|message| format!("{}: {message}", name(op)));
            self.note(checked);
        }
        let checked = self.term(&block.term);
        self.note(checked);
        let checked = self.groups(block);
        self.note(checked);
        if let Some(Deferral { to, lines }) = block.deferral
            && (lines == 0 || block.behind_barrier(self.func) != Some(to))
        {
            self.note(Err(format!("no prefetches can be deferred to b{}", to.0)));
        }
        let version = |mask: Value| match block.full {
            true => Err("a full block has versions for other lanes".to_owned()),
            false => self.is(mask, Kind::Mask),
        };
        let mut decisions = Vec::new();
        if let Some(Decision::Applied(all)) = &block.unmasked {
            decisions.push(version(all.mask));
        }
        if let Some(Decision::Applied(leading)) = &block.leading {
            decisions.push(version(leading.mask));
        }
        let sunk = |sunk: &SunkMask| match self.func.blocks.get(sunk.into.0 as usize) {
            Some(into) if into.preds.len() == 1 => self.is(sunk.mask, Kind::Mask),
            _ => Err(format!("v{} is sunk into b{}, which has other predecessors", sunk.mask.0, sunk.into.0)),
        };
        decisions.extend(block.sunk.iter().map(|mask| sunk(mask)));
        if let Some(to) = block.strips.as_ref().and_then(|strips| strips.continues)
            && !block.term.successors().contains(&to)
        {
            decisions.push(Err(format!("a warp strip continues in b{}, which is no successor", to.0)));
        }
        decisions.into_iter().for_each(|checked| self.note(checked));
    }

    /// Members of groups are accesses relative to the group's register, each of one group.
    fn groups(&self, block: &Block) -> Checked {
        let mut seen = HashSet::new();
        for group in &block.groups {
            if group.members.len() < 2 {
                return Err("a group of fewer than two accesses".to_owned());
            }
            for member in &group.members {
                let op = block.ops.get(member.at).ok_or("a group of an operation that does not exist")?;
                let OpKind::Inst(site) = op.kind else { return Err("a group of no access".to_owned()) };
                let inst = site.inst(self.function).ok_or("a group of an instruction that does not exist")?;
                let moves = match group.access.write {
                    true => inst.op == O::St,
                    false => matches!(inst.op, O::Ld | O::LdNc | O::Ldu),
                };
                let offset = match inst.srcs.first() {
                    Some(Src::Addr(Addr { base: Base::Reg(_), index: None, offset })) => Some(*offset),
                    _ => None,
                };
                if !moves || offset != Some(member.offset) || op.uses.get(1) != Some(&group.base) {
                    return Err(format!("{} is not the access that its group has", name(op)));
                }
                if !seen.insert(member.at) {
                    return Err(format!("{} belongs to two groups", name(op)));
                }
            }
        }
        Ok(())
    }

    fn op(&self, op: &Op) -> Checked {
        const PRED: Kind = Kind::Reg(RegClass::Pred);
        use Kind::{Count, Mask};
        let defined =
            || op.defs.first().map_or_else(|| Err("it defines nothing".to_owned()), |def| self.kind(*def));
        let (uses, defs): (Vec<Kind>, Vec<Kind>) = match &op.kind {
            OpKind::Inst(site) => return self.instruction(*site, op),
            OpKind::Chain(chain) => return self.chain(chain, op),
            OpKind::SelectMask => (vec![Mask, defined()?, defined()?], vec![defined()?]),
            OpKind::SelectPred { .. } => (vec![PRED, defined()?, defined()?], vec![defined()?]),
            OpKind::Load(reg) | OpKind::Reload(reg) => (vec![], vec![Kind::Reg(reg.class)]),
            OpKind::Spill(reg) => (vec![Mask, Kind::Reg(reg.class)], vec![]),
            OpKind::Restore(resume, reg) | OpKind::Reduced(resume, reg) => {
                if *resume as usize >= self.func.resumes.len() {
                    return Err(format!("there is no resume point {resume}"));
                }
                (vec![], vec![Kind::Reg(reg.class)])
            }
            OpKind::Mask(_) | OpKind::EntryMask | OpKind::EntryLive | OpKind::EntryCarry => {
                (vec![], vec![Mask])
            }
            OpKind::EntryTurns | OpKind::Count(_) => (vec![], vec![Count]),
            OpKind::Truths { .. } => (vec![PRED], vec![Mask]),
            OpKind::InRange { .. } => (vec![Kind::Reg(RegClass::R32)], vec![Mask]),
            OpKind::Picks { site, .. } | OpKind::SameQuotient(site) => {
                let inst = self.inst(*site)?;
                let picks = matches!(op.kind, OpKind::Picks { .. });
                let fits = match (inst.op, inst.srcs.len()) {
                    (O::Min | O::Max | O::Setp, 2) | (O::Abs, 1) => picks,
                    (O::Div | O::Rem, 2) => !picks,
                    _ => false,
                };
                if !fits || !matches!(inst.mods.ty(), Ty::S32 | Ty::U32) {
                    return Err("a test of another instruction".to_owned());
                }
                let mut uses = vec![Mask];
                inst.srcs.iter().for_each(|src| src.for_each_reg(&mut |reg| uses.push(Kind::Reg(reg.class))));
                (uses, if picks { vec![PRED] } else { vec![PRED, Kind::Reg(RegClass::R32)] })
            }
            OpKind::Rebase => (vec![Kind::Reg(RegClass::R32); 2], vec![Kind::Reg(RegClass::R32)]),
            OpKind::And | OpKind::AndNot | OpKind::Or => (vec![Mask, Mask], vec![Mask]),
            OpKind::Add(_) => (vec![Count], vec![Count]),
            OpKind::AddLanes(_) | OpKind::AddWarps(_) => (vec![Count, Mask], vec![Count]),
            OpKind::Guard(site, _, exit) => {
                let mut regs = Vec::new();
                let inst = self.inst(*site)?;
                inst.srcs.iter().for_each(|src| src.for_each_reg(&mut |reg| regs.push(Kind::Reg(reg.class))));
                self.exit(exit)?;
                (regs, vec![])
            }
            OpKind::Ahead(exit) => {
                self.exit(exit)?;
                (vec![], vec![])
            }
            OpKind::Spare(site, exit) => {
                self.inst(*site)?;
                self.exit(exit)?;
                (vec![], vec![])
            }
        };
        self.all(&op.uses, &uses)?;
        self.all(&op.defs, &defs)
    }

    /// An instruction reads the mask of its lanes, its registers, the carry flags and the counts of a clock.
    fn instruction(&self, site: Site, op: &Op) -> Checked {
        let inst = self.inst(site)?;
        let mut uses = vec![Kind::Mask];
        inst.srcs.iter().for_each(|src| src.for_each_reg(&mut |reg| uses.push(Kind::Reg(reg.class))));
        let (reads, writes) = self.effects.carry(inst);
        if reads {
            uses.push(Kind::Mask);
        }
        if self.effects.reads_clock(inst) {
            uses.extend([Kind::Count; 2]);
        }
        let mut defs = Vec::new();
        inst.for_each_def(&mut |reg| defs.push(Kind::Reg(reg.class)));
        if writes {
            defs.push(Kind::Mask);
        }
        self.all(&op.uses, &uses)?;
        self.all(&op.defs, &defs)
    }

    /// A chain reads what its instructions read from outside and define not before, and defines results of
    /// theirs. Each result that is read outside has its own bits or may be any NaN.
    fn chain(&self, chain: &Chain, op: &Op) -> Checked {
        let [mask, ..] = op.uses[..] else { return Err("a chain without a mask".to_owned()) };
        let (mut uses, mut made) = (vec![mask], Vec::new());
        for inner in &chain.ops {
            let (OpKind::Inst(site), [def]) = (&inner.kind, inner.defs.as_slice()) else {
                return Err("a chain of an operation that is not one result's".to_owned());
            };
            self.instruction(*site, inner)?;
            if inner.uses[0] != mask || !self.effects.is_pure(self.inst(*site)?) {
                return Err("a chain of an instruction under another mask, or with an effect".to_owned());
            }
            for value in &inner.uses {
                if !made.contains(value) && !uses.contains(value) {
                    uses.push(*value);
                }
            }
            made.push(*def);
        }
        let made = |values: &[Value]| values.iter().all(|value| made.contains(value));
        if uses != op.uses || !made(&op.defs) || !made(&chain.tested) {
            return Err("a chain whose operands or results are not its instructions'".to_owned());
        }
        if !chain.any_nan.iter().chain(&chain.tested).all(|value| op.defs.contains(value)) {
            return Err("a chain that tests a value which nothing reads outside".to_owned());
        }
        Ok(())
    }

    fn term(&self, term: &Term) -> Checked {
        let pred = Kind::Reg(RegClass::Pred);
        match term {
            Term::Goto(_) => Ok(()),
            Term::If { cond, .. } => match cond {
                Cond::Pred { value, .. } => self.is(*value, pred),
                Cond::Empty(mask) | Cond::Full(mask) => self.is(*mask, Kind::Mask),
                Cond::Negative(count) => self.is(*count, Kind::Count),
                Cond::Equal(a, b) => self.all(&[*a, *b], &[Kind::Mask; 2]),
                Cond::Together { site, members, mask, live } => {
                    self.inst(*site)?;
                    members.map_or(Ok(()), |members| self.is(members, Kind::Reg(RegClass::R32)))?;
                    self.all(&[*mask, *live], &[Kind::Mask; 2])
                }
            },
            Term::Switch { value, .. } => self.is(*value, Kind::Reg(RegClass::R32)),
            Term::Exit(exit) => self.exit(exit),
        }
    }

    fn exit(&self, exit: &Exit) -> Checked {
        match exit.why {
            ExitReason::Finished | ExitReason::Declined => {}
            ExitReason::Yield { block } | ExitReason::Terminator { block } => self.ptx_block(block)?,
            ExitReason::Before(Site { block, index }) => {
                self.ptx_block(block)?;
                let insts = self.function.blocks.get(block as usize).map_or(0, |block| block.insts.len());
                if index as usize > insts {
                    return Err(format!("there is no instruction {block}.{index}"));
                }
            }
        }
        if exit.resume.is_some_and(|resume| resume as usize >= self.func.resumes.len()) {
            return Err("an exit to a resume point that does not exist".to_owned());
        }
        self.all(&[exit.mask, exit.live], &[Kind::Mask; 2])?;
        exit.carry.map_or(Ok(()), |carry| self.is(carry, Kind::Mask))?;
        let counts = [exit.full_steps, exit.masked_steps, exit.lane_steps, exit.turns];
        self.all(&counts, &[Kind::Count; 4])?;
        self.regs(&exit.regs)?;
        exit.parked.iter().try_for_each(|pending| {
            self.ptx_block(pending.block)?;
            self.is(pending.mask, Kind::Mask)?;
            self.regs(&pending.regs)
        })
    }

    /// Entries, resume points and zeros.
    fn lists(&mut self) {
        let func = self.func;
        for entry in &func.entries {
            self.note(self.ptx_block(entry.block).and_then(|()| self.regs(&entry.relies)));
        }
        for resume in &func.resumes {
            self.note(self.ptx_block(resume.block).and_then(|()| self.regs(&resume.kept)));
            let mut regs: Vec<Reg> = resume.kept.iter().map(|(reg, _)| *reg).collect();
            regs.sort_unstable();
            if regs.windows(2).any(|pair| pair[0] == pair[1]) {
                self.note(Err("a register has two slots at one resume point".to_owned()));
            }
        }
        for zero in func.zeros.iter().chain(&func.undef) {
            self.note(self.kind(*zero).map(drop));
        }
        if let Some(value) = func.undef.iter().find(|value| !func.zeros.contains(value)) {
            self.note(Err(format!("v{} is undefined, but not a zero", value.0)));
        }
    }

    fn shapes(&mut self) {
        let func = self.func;
        if func.shapes.is_empty() {
            return;
        }
        if func.shapes.len() != func.kinds.len() {
            return self.note(Err("not every value has a shape".to_owned()));
        }
        let mut lanes = None;
        for (at, (shape, kind)) in func.shapes.iter().zip(&func.kinds).enumerate() {
            let Shape::Affine(affine) = shape else { continue };
            let small = |lane: &i32| i64::from(*lane).abs() < LIMIT;
            let rows = affine.rows.is_empty() || affine.rows.len() == affine.lanes.len();
            let many = *lanes.get_or_insert(affine.lanes.len());
            let word = matches!(kind, Kind::Reg(RegClass::R16 | RegClass::R32 | RegClass::R64));
            let whole = affine.lanes.len() == many && many % 32 == 0 && rows;
            if !word || !whole || affine.align > 63 || !affine.lanes.iter().all(small) {
                self.note(Err(format!("the shape of v{at} is none of its kind, or of too few lanes")));
            }
        }
    }

    /// Every value is defined once, on every path to its uses.
    fn ssa(&mut self) {
        let func = self.func;
        let mut count = vec![0_u32; func.kinds.len()];
        for block in &func.blocks {
            block.phis.iter().for_each(|phi| count[phi.def.0 as usize] += 1);
            block.ops.iter().flat_map(|op| &op.defs).for_each(|def| count[def.0 as usize] += 1);
        }
        func.zeros.iter().for_each(|zero| count[zero.0 as usize] += 1);
        if let Some(value) = count.iter().position(|count| *count > 1) {
            return self.note(Err(format!("v{value} is defined twice")));
        }
        let (defs, dom) = (DefUse::new(func), Dominators::new(func));
        let mut zero = vec![false; func.kinds.len()];
        func.zeros.iter().for_each(|value| zero[value.0 as usize] = true);
        // `at`: the index of the operation that reads; behind the last for the terminator.
        let reaches = |value: Value, block: BlockId, at: usize| match defs.def(value) {
            _ if zero[value.0 as usize] || !dom.is_reached(block) => true,
            Some(Def::Phi(from, _)) => dom.dominates(from, block),
            Some(Def::Op(from, index)) if from == block => index < at,
            Some(Def::Op(from, _)) => dom.dominates(from, block),
            None => false,
        };
        let mut wrong = Vec::new();
        for (id, block) in (0..).map(BlockId).zip(&func.blocks) {
            let mut check = |value: Value, block: BlockId, at: usize| {
                if !reaches(value, block, at) {
                    wrong.push((id, value));
                }
            };
            for phi in &block.phis {
                phi.from.iter().zip(&block.preds).for_each(|(from, pred)| check(*from, *pred, usize::MAX));
            }
            for (at, op) in block.ops.iter().enumerate() {
                op.for_each_use(&mut |value| check(value, id, at));
            }
            block.term.for_each_use(&mut |value| check(value, id, usize::MAX));
        }
        for (block, value) in wrong {
            self.block = Some(block);
            self.note(Err(format!("v{} is read where it may not be defined", value.0)));
        }
    }
}

/// What an operation is called in the text form.
fn name(op: &Op) -> &'static str {
    match op.kind {
        OpKind::Inst(_) => "inst",
        OpKind::Chain(_) => "chain",
        OpKind::SelectMask => "select-mask",
        OpKind::SelectPred { .. } => "select-pred",
        OpKind::Load(_) => "load",
        OpKind::Reload(_) => "reload",
        OpKind::Spill(_) => "spill",
        OpKind::Restore(..) => "restore",
        OpKind::Reduced(..) => "reduced",
        OpKind::Mask(_) => "mask",
        OpKind::EntryMask => "entry-mask",
        OpKind::EntryLive => "entry-live",
        OpKind::EntryCarry => "entry-carry",
        OpKind::EntryTurns => "entry-fuel",
        OpKind::Count(_) => "count",
        OpKind::Truths { .. } => "truths",
        OpKind::InRange { .. } => "in-range",
        OpKind::Picks { second: false, .. } => "picks-first",
        OpKind::Picks { second: true, .. } => "picks-second",
        OpKind::SameQuotient(_) => "same-quotient",
        OpKind::Rebase => "rebase",
        OpKind::And => "and",
        OpKind::AndNot => "and-not",
        OpKind::Or => "or",
        OpKind::Add(_) => "add",
        OpKind::AddLanes(_) => "add-lanes",
        OpKind::AddWarps(_) => "add-warps",
        OpKind::Guard(_, GuardKind::Exact, _) => "wrap-guard",
        OpKind::Guard(_, GuardKind::ExactInActive, _) => "wrap-guard-active",
        OpKind::Guard(_, GuardKind::SameInAll, _) => "same-guard",
        OpKind::Ahead(_) => "block-check",
        OpKind::Spare(..) => "access-exit",
    }
}
