//! Chunk loops: executes a long section of straight-line code chunk by chunk, where all chunks together
//! exceed the registers.
//!
//! Usually an instruction is emitted for all chunks before the next instruction, so that the chunks'
//! dependence chains execute in parallel. Where one chunk alone has enough parallelism, and the live values
//! of all chunks do not fit into the registers, that order costs spills and gains nothing. So a section that
//! computes in each lane alone, or loads what was checked before, is executed as a loop over chunks. Kernels
//! in which each thread computes several elements of a matrix are the usual case.
//!
//! Code generation holds some 64-bit values in another form beside their vectors ([`second_forms`]). They are
//! not read in a chunk loop, which would need the vectors.
//!
//! Operations on vectors that are the same for each chunk are hoisted out of the loop (loop-invariant code
//! motion): the elements of a row that all rows of threads read, for example.
//!
//! Invariants: values that are uniform across chunks are computed before the loop, in program order. Nothing
//! in the section has an effect, so the order of chunks does not matter.
//!
//! Not handled: masked copies, and versions of blocks.

mod second_forms;

use crate::analysis::Analyses;
use crate::effects;
use crate::isel::{self, Env};
use crate::llvm::Flush;
use crate::mem::classify::ordered_access;
use crate::mem::plan::Planner;
use crate::opt::checks::elim::is_within;
use crate::target::Level;
use crate::tuning::{
    CHUNK_LOOP_MAX_OPS, CHUNK_LOOP_MIN_OPS, CHUNK_LOOP_MIN_OPS_PER_SPILL, CHUNK_LOOP_MIN_PARALLEL_OPS,
    DEFERRED_PREFETCH_MIN_OPS,
};
use crate::wir::access::{Access, Chunk, Strategy};
use crate::wir::checks::BlockChecks;
use crate::wir::group::{Group, GroupKind};
use crate::wir::section::{Section, SectionForm};
use crate::wir::{Affine, Block, Effects, Kind, Op, OpKind, Shape, Site, Value};
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Op as O, Sem, Space, Ty};
use second_forms::SecondForms;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// What sections are found by.
pub(crate) struct Sections<'a, E> {
    planner: Planner<'a>,
    analyses: &'a Analyses,
    effects: &'a E,
    /// For instructions with native code, whether it reads the carry flag.
    lowered: HashMap<Site, Option<bool>>,
    forms: SecondForms,
}

/// The role of an operation in a section.
enum Role {
    /// The operation is executed before the block's checks, or needs no code.
    Done,
    /// It is executed before the loop.
    Shared,
    /// Each chunk executes it.
    Own,
    /// The operation ends the section.
    Other,
}

/// A block, with what other passes have found of it.
struct Place<'b> {
    block: &'b Block,
    checks: &'b BlockChecks,
    /// For each access of a group that is emitted as one, all accesses of the group.
    groups: HashMap<usize, &'b Group>,
}

impl Place<'_> {
    /// Whether an operation is executed before the block's checks, or belongs to a group.
    fn is_done(&self, at: usize) -> bool {
        self.checks.is_done(at) || self.groups.contains_key(&at)
    }

    /// Whether a group has this access, and one for which the condition holds.
    fn with(&self, at: usize, is: impl Fn(usize) -> bool) -> bool {
        self.groups.get(&at).is_some_and(|group| group.members.iter().any(|member| is(member.at)))
    }
}

impl<'a, E: Effects> Sections<'a, E> {
    pub(crate) fn new(planner: Planner<'a>, analyses: &'a Analyses, effects: &'a E) -> Self {
        let (lowered, forms) = (HashMap::new(), SecondForms::default());
        Self { planner, analyses, effects, lowered, forms }
    }

    /// The sections of every block.
    pub(crate) fn blocks(mut self) -> Vec<Vec<Section>> {
        let func = self.planner.func;
        let mut all = vec![Vec::new(); func.blocks.len()];
        for id in func.reverse_postorder() {
            all[id.0 as usize] = self.block(&func.blocks[id.0 as usize]);
        }
        all
    }

    fn chunks(&self) -> u32 {
        self.planner.launch.lanes() / self.planner.launch.chunk
    }

    fn shape(&self, name: Value) -> &'a Shape {
        &self.planner.func.shapes[name.0 as usize]
    }

    fn kind(&self, name: Value) -> Kind {
        self.planner.func.kinds[name.0 as usize]
    }

    /// The sections of a block, in order: those that a chunk loop was considered for, and other long ones.
    fn block(&mut self, block: &Block) -> Vec<Section> {
        let none = BlockChecks::default();
        let checks = block.checks.as_deref().unwrap_or(&none);
        let joined = |group: &&Rc<Group>| group.kind.is_joined() && group.kind != GroupKind::Gather;
        let members = |group: &'_ Rc<Group>| group.members.iter().map(|member| member.at).collect::<Vec<_>>();
        let groups = block.groups.iter().filter(joined);
        let groups = groups.flat_map(|group| members(group).into_iter().map(move |at| (at, &**group)));
        let place = Place { block, checks, groups: groups.collect() };
        let early = (0..block.ops.len()).filter(|at| checks.is_early(*at));
        early.for_each(|at| self.note(&block.ops[at]));
        let mut sections = Vec::new();
        let mut seen = 0;
        for at in 0..block.ops.len() {
            if at >= seen && block.ops[at].insts().next().is_some() {
                let section = self.section(&place, at);
                seen = section.end.max(at + 1);
                if section.form != SectionForm::Short || section.end - at >= DEFERRED_PREFETCH_MIN_OPS {
                    sections.push(section);
                }
            }
            let apart = sections.last().is_some_and(|last| last.is_chunk_loop() && at < last.end);
            if !apart && !checks.is_early(at) {
                self.note(&block.ops[at]);
            }
        }
        sections
    }

    /// Notes that an operation is emitted for all chunks.
    fn note(&mut self, op: &Op) {
        self.forms.note(self.planner, self.analyses, op);
    }

    /// The section that starts at an operation.
    fn section(&mut self, place: &Place<'_>, start: usize) -> Section {
        let ops = &place.block.ops;
        let mut section = Section {
            start,
            end: start,
            shared: Vec::new(),
            same: Vec::new(),
            own: Vec::new(),
            ins: Vec::new(),
            outs: Vec::new(),
            count: 0,
            form: SectionForm::Short,
            ordered: None,
        };
        let long = ops[start..].iter().flat_map(Op::single_ops).nth(CHUNK_LOOP_MIN_OPS - 1).is_some();
        if !place.block.full || self.chunks() < 2 || !long {
            section.end = ops.len();
            return section;
        }
        let mut defs = HashSet::new();
        while section.end < ops.len() && section.own.len() < CHUNK_LOOP_MAX_OPS {
            match self.role(place, (start, section.end), &defs) {
                Role::Done => {}
                Role::Shared => section.shared.push(section.end),
                Role::Own => {
                    section.own.push(section.end);
                    defs.extend(ops[section.end].defs.iter().copied());
                }
                Role::Other => break,
            }
            section.end += 1;
        }
        // A group must not be divided.
        let beyond = |end: usize, at: usize| place.with(at, |other| other >= end);
        while let Some(first) = section.own.iter().copied().find(|at| beyond(section.end, *at)) {
            section.end = first;
            section.own.retain(|at| *at < first);
            section.shared.retain(|at| *at < first);
        }
        while section.end > start && matches!(ops[section.end - 1].kind, OpKind::Spare(..)) {
            section.end -= 1;
        }
        self.choose(place.block, &mut section);
        if section.is_chunk_loop() {
            self.hoist(place, &mut section);
        }
        section
    }

    /// Takes the operations out of a chunk loop that do the same for each chunk.
    fn hoist(&self, place: &Place<'_>, section: &mut Section) {
        let ops = &place.block.ops;
        let mut same: Vec<usize> = Vec::new();
        let mut defs: HashSet<Value> = HashSet::new();
        for at in &section.own {
            let op = &ops[*at];
            if op.uses[1..].iter().all(|name| defs.contains(name) || self.is_same(*name)) {
                same.push(*at);
                defs.extend(op.defs.iter().copied());
            }
        }
        // A group must not be divided, and the rest reads what its operations define.
        let divided = |same: &[usize]| {
            same.iter().position(|at| place.with(*at, |other| same.binary_search(&other).is_err()))
        };
        while let Some(first) = divided(&same) {
            same.truncate(first);
        }
        // A hoisted value goes through memory: a load that is one vector costs less where it is, unless a
        // hoisted operation reads it, or another load of its group.
        let computes = |at: &&usize| !is_one_vector(place, **at);
        let read: HashSet<Value> =
            same.iter().filter(computes).flat_map(|at| ops[*at].uses.iter().copied()).collect();
        let is_read = |at: usize| ops[at].defs.iter().any(|def| read.contains(def));
        same.retain(|at| computes(&at) || is_read(*at) || place.with(*at, is_read));
        section.own.retain(|at| same.binary_search(at).is_err());
        section.same = same;
        (section.ins, section.outs) = self.ends(place.block, section);
    }

    /// Whether each chunk of a value is the same.
    fn is_same(&self, name: Value) -> bool {
        let width = self.planner.launch.chunk as usize;
        match self.shape(name) {
            Shape::Bottom | Shape::Uniform(_) => true,
            Shape::Affine(pattern) => {
                let (first, rest) = pattern.lanes.split_at(width.min(pattern.lanes.len()));
                !pattern.by_chunk && pattern.rows.is_empty() && rest.chunks(width).all(|chunk| chunk == first)
            }
            Shape::Varying => false,
        }
    }

    fn role(&mut self, place: &Place<'_>, (from, at): (usize, usize), defs: &HashSet<Value>) -> Role {
        let op = &place.block.ops[at];
        if place.with(at, |other| other < from) {
            return Role::Other;
        }
        if !place.groups.contains_key(&at) && place.is_done(at) {
            return Role::Done;
        }
        let late = op.uses.iter().any(|name| defs.contains(name));
        match &op.kind {
            OpKind::Inst(site) => {
                let Some(inst) = site.inst(self.planner.function) else { return Role::Other };
                let loads = matches!(inst.op, O::Ld | O::LdNc | O::Ldu) && inst.mods.sem() == Sem::Weak;
                let fits = place.checks.fits(at)
                    || loads
                        && self.access(inst).is_some_and(|access| self.is_within((*site, inst, op), access));
                let lowered = self.lowering(*site, inst).is_some_and(|reads_carry| !reads_carry);
                // A load that fails a check for observers leaves native code, which no single chunk can.
                if inst.guard.is_some() || op.defs.is_empty() || loads && self.effects.exits_before(inst) {
                    return Role::Other;
                }
                let plain = effects::is_pure(inst) && lowered;
                if op.defs.iter().all(|def| !self.is_vector(*def) && self.kind(*def) != Kind::Mask) {
                    let constant = self.planner.reads_constant(inst);
                    let known = if loads { fits || constant } else { plain };
                    return if known && !late { Role::Shared } else { Role::Other };
                }
                let vectors = op.defs.iter().all(|def| self.is_vector(*def));
                let own =
                    if loads { fits && self.is_own_load(inst, op) } else { plain && self.is_own(inst, op) };
                if vectors && own && self.is_everywhere(op) { Role::Own } else { Role::Other }
            }
            OpKind::Chain(_) => {
                let alike = op.uses[1..].iter().all(|name| self.is_alike(*name));
                if alike && self.is_everywhere(op) { Role::Own } else { Role::Other }
            }
            OpKind::SelectPred { .. } if self.is_vector(op.defs[0]) => {
                let word = self.kind(op.defs[0]) != Kind::Reg(RegClass::R64);
                if word && op.uses.iter().all(|name| self.is_alike(*name)) { Role::Own } else { Role::Other }
            }
            // The side exit of the next access, which needs none if it belongs to the section.
            OpKind::Ahead(_) | OpKind::Spare(..) => Role::Done,
            OpKind::Count(_) | OpKind::Add(_) | OpKind::Restore(..) if !late => Role::Shared,
            _ => Role::Other,
        }
    }

    fn access(&self, inst: &Inst) -> Option<Access> {
        ordered_access(self.planner.program, inst, false)
    }

    fn is_within(&self, (site, inst, op): (Site, &Inst, &Op), access: Access) -> bool {
        let own = self.planner.own(site, access.space);
        is_within(self.planner.func, self.analyses, &own, (inst, op), access)
    }

    /// Whether the native code of an instruction reads the carry flag; `None`: it has none.
    fn lowering(&mut self, site: Site, inst: &Inst) -> Option<bool> {
        let Planner { target, program, .. } = self.planner;
        let env = Env { target, flush: Flush::Never, sm: u32::from(program.target.sm.number) };
        let known = self.lowered.entry(site);
        *known.or_insert_with(|| isel::choose(inst, &env).map(|lowering| lowering.reads_carry))
    }

    fn is_vector(&self, name: Value) -> bool {
        *self.shape(name) == Shape::Varying && matches!(self.kind(name), Kind::Reg(_))
    }

    /// Whether it is known that all lanes execute an operation of a full copy.
    fn is_everywhere(&self, op: &Op) -> bool {
        let all = u64::MAX >> (64 - self.planner.launch.chunk);
        (0..self.chunks()).all(|c| self.analyses.constants.bits(op.uses[0], c) == Some(all))
    }

    /// Whether the chunks of a value differ by a scalar at most, or are vectors in memory or in registers.
    fn is_alike(&self, name: Value) -> bool {
        let register = matches!(self.kind(name), Kind::Reg(_));
        register
            && match self.shape(name) {
                Shape::Bottom | Shape::Uniform(_) => true,
                Shape::Affine(pattern) => {
                    let first = self.relative(pattern, 0);
                    !pattern.splits(self.planner.launch.chunk as usize)
                        && (1..self.chunks()).all(|c| self.relative(pattern, c) == first)
                }
                Shape::Varying => !self.forms.has(name),
            }
    }

    fn relative(&self, pattern: &Affine, chunk: u32) -> Vec<i32> {
        self.planner.vectors().relative(pattern, chunk)
    }

    /// Whether an instruction without side effects can be emitted for one chunk.
    fn is_own(&self, inst: &Inst, op: &Op) -> bool {
        let plain = |src: &Src| matches!(src, Src::Reg(_) | Src::Not(_) | Src::Imm(_) | Src::Absent);
        // Other passes know more of a 64-bit integer than its value.
        let wide = op.defs.iter().any(|def| self.kind(*def) == Kind::Reg(RegClass::R64));
        let whole = match inst.op {
            O::Cvt | O::Shl | O::Shr | O::Or => true,
            O::Add | O::Sub | O::Mul | O::Mad => inst.mods.ty() != Ty::F64,
            _ => false,
        };
        let other = matches!(inst.op, O::Cvta | O::CvtaTo | O::MovPack);
        !(other || wide && whole)
            && inst.srcs.iter().all(plain)
            && op.uses[1..].iter().all(|name| self.is_alike(*name))
    }

    /// Whether a load that has been checked can be emitted for one chunk.
    fn is_own_load(&self, inst: &Inst, op: &Op) -> bool {
        let near = self
            .access(inst)
            .is_some_and(|access| access.space == Space::Shared && op.defs.len() == access.count as usize);
        let address =
            matches!(inst.srcs.first(), Some(Src::Addr(Addr { base: Base::Reg(_), index: None, .. })));
        let [_, name] = op.uses.as_slice() else { return false };
        let narrow = self.kind(*name) != Kind::Reg(RegClass::R64);
        near && address && !narrow && *self.shape(*name) != Shape::Varying && self.is_alike(*name)
    }

    /// Chooses a chunk loop if it saves spills, and passes few values through memory.
    fn choose(&self, block: &Block, section: &mut Section) {
        let ops: Vec<&Op> = section.own.iter().flat_map(|at| block.ops[*at].single_ops()).collect();
        section.count = ops.len();
        if ops.len() < CHUNK_LOOP_MIN_OPS {
            return;
        }
        (section.ins, section.outs) = self.ends(block, section);
        let vectors = section.ins.iter().filter(|name| self.is_vector(**name)).count();
        let through = vectors + section.outs.len();
        let size = |name: Value| match self.kind(name) {
            _ if !self.is_vector(name) => 0,
            Kind::Reg(RegClass::R64) => 2,
            _ => 1,
        };
        let level = self.planner.target.level();
        section.form = if through * CHUNK_LOOP_MIN_OPS_PER_SPILL > ops.len() {
            SectionForm::ThroughMemory(through)
        } else if gains(&ops, &section.outs, size, self.chunks(), level) {
            SectionForm::ChunkLoop
        } else {
            SectionForm::InRegisters
        };
    }

    /// The values that the section reads from outside, and those that it defines for readers outside.
    fn ends(&self, block: &Block, section: &Section) -> (Vec<Value>, Vec<Value>) {
        let mut own: HashMap<Value, u32> = HashMap::new();
        // The side exits of accesses that have been checked are never taken.
        for op in &block.ops[section.start..section.end] {
            if let OpKind::Spare(..) = op.kind {
                op.for_each_use(&mut |name| *own.entry(name).or_insert(0) += 1);
            }
        }
        let (mut defs, mut ins) = (Vec::new(), Vec::new());
        let mut made = HashSet::new();
        for at in section.same.iter().chain(&section.own) {
            let op = &block.ops[*at];
            for name in &op.uses {
                *own.entry(*name).or_insert(0) += 1;
                if !made.contains(name) {
                    ins.push(*name);
                    made.insert(*name);
                }
            }
            defs.extend(op.defs.iter().copied());
            made.extend(op.defs.iter().copied());
        }
        defs.retain(|def| self.analyses.def_use.reads(*def) > own.get(def).copied().unwrap_or(0));
        (ins, defs)
    }
}

/// Whether an operation is a load of one vector for a chunk, which is not shuffled.
fn is_one_vector(place: &Place<'_>, at: usize) -> bool {
    let grouped = place.groups.get(&at).is_some_and(|group| group.kind == GroupKind::Interleaved);
    let plan = place.block.ops[at].access.as_deref();
    !grouped
        && plan.is_some_and(|plan| match &plan.strategy {
            Strategy::Chunks { chunks, .. } => chunks
                .iter()
                .all(|chunk| matches!(chunk, Chunk::Vector | Chunk::Broadcast | Chunk::Covered(_))),
            Strategy::Scalar(_) => true,
            Strategy::PerLane(_) | Strategy::SpanTest { .. } | Strategy::LocalWords | Strategy::Atomic(_) => {
                false
            }
        })
}

/// Whether a section gains by a chunk loop: more values are live than there are registers, and one chunk
/// alone has enough parallelism. `size`: the registers that a value takes for one chunk.
pub(crate) fn gains(
    ops: &[&Op],
    outs: &[Value],
    size: impl Fn(Value) -> isize,
    chunks: u32,
    level: Level,
) -> bool {
    if ops.len() < CHUNK_LOOP_MIN_OPS {
        return false;
    }
    // The live range of each vector, and the length of the dependence chain that leads to it.
    let mut spans: BTreeMap<Value, [usize; 2]> = BTreeMap::new();
    let mut depths: HashMap<Value, usize> = HashMap::new();
    for (at, op) in ops.iter().enumerate() {
        let mut depth = 0;
        for name in op.uses.iter().filter(|name| size(**name) > 0) {
            spans.entry(*name).or_insert([0, at])[1] = at;
            depth = depth.max(depths.get(name).copied().unwrap_or(0));
        }
        for def in &op.defs {
            spans.insert(*def, [at, at]);
            depths.insert(*def, depth + 1);
        }
    }
    for out in outs {
        spans.entry(*out).or_insert([0, 0])[1] = ops.len();
    }
    let mut change = vec![0; ops.len() + 2];
    for (name, [start, end]) in &spans {
        change[*start] += size(*name);
        change[*end + 1] -= size(*name);
    }
    let mut alive = 0;
    let most = change.iter().map(|by| {
        alive += by;
        alive
    });
    let most = most.max().unwrap_or(0) * chunks as isize;
    let depth = depths.values().copied().max().unwrap_or(1);
    most > level.vector_registers() as isize && ops.len() / depth >= CHUNK_LOOP_MIN_PARALLEL_OPS
}
