//! What class each value of a plan has ([`Class`]).
//!
//! Invariants: classes hold in every lane, running or not, for the value as native code computes it. Sums of patterns are exact modulo
//! the width of the value; where a value is widened, the planner names the place, and a guard there makes it exact.

use super::bounds::{Bound, bounds};
use super::pattern::{ALIGNED, Class, LIMIT, Pattern, none};
use super::same::{Other, is_same, turned};
use super::{Kind, Machine, Name, OpKind, Plan, Shape, Why};
use crate::tuning::SEGMENT_MIN_LANES;
use ptx::ir::{Addr, Base, Dst, Function, Inst, Reg, RegClass, Src};
use ptx::isa::{Half, Op, Space, Sreg, Ty};
use std::collections::HashMap;

struct Classifier<'a, M: Machine> {
    function: &'a Function,
    machine: &'a M,
    shape: Shape,
    chunk: usize,
    lanes: usize,
    classes: Vec<Class>,
    /// Trailing bits that are zero in a uniform value; of other values it says nothing.
    aligns: Vec<u8>,
    /// Between which numbers values lie.
    bounds: Vec<Option<Bound>>,
    /// Values that a register may have where the plan is entered at the block.
    resumed: HashMap<(u32, Reg), Vec<Option<Name>>>,
}

/// Finds the class of every value.
pub(super) fn classify(plan: &mut Plan, function: &Function, shape: Shape, machine: &impl Machine) {
    let chunk = shape.chunk as usize;
    let mut all = Classifier {
        function,
        machine,
        shape,
        chunk,
        lanes: shape.lanes() as usize,
        classes: vec![Class::Bottom; plan.kinds.len()],
        aligns: vec![ALIGNED; plan.kinds.len()],
        bounds: bounds(plan, function, shape.ntid, &|_| None),
        resumed: resumed(plan, function),
    };
    for zero in plan.zeros.iter().filter(|zero| !plan.unset.contains(zero)) {
        all.classes[zero.0 as usize] = Class::Uniform(Some(0));
    }
    all.settle(plan);
    // Values that depend on nothing but each other, in code that is not reached: no class was ever known, and other sources vary.
    let mut unknown = false;
    for (name, class) in all.classes.iter_mut().enumerate() {
        if *class == Class::Bottom && !plan.unset.contains(&Name(name as u32)) {
            (*class, unknown) = (Class::Varying, true);
        }
    }
    if unknown {
        all.settle(plan);
    }
    plan.classes = all.classes;
}

/// Which values of each register the stops that lead to a block leave. `None`: one that the plan does not know.
fn resumed(plan: &Plan, function: &Function) -> HashMap<(u32, Reg), Vec<Option<Name>>> {
    let mut resumed: HashMap<(u32, Reg), Vec<Option<Name>>> = HashMap::new();
    for node in &plan.nodes {
        let super::Term::Exit(exit) = &node.term else { continue };
        let (blocks, written) = match exit.why {
            Why::Yield { block } => (vec![block], Vec::new()),
            Why::Terminator { block } => {
                let term = &function.blocks[block as usize].term;
                let mut written = Vec::new();
                term.for_each_def(&mut |reg| written.push(reg));
                (term.successors().iter().map(|b| b.0).collect(), written)
            }
            Why::Finished | Why::Before(_) | Why::Declined => continue,
        };
        for block in blocks {
            for (reg, name) in &exit.regs {
                if !written.contains(reg) {
                    resumed.entry((block, *reg)).or_default().push(Some(*name));
                }
            }
            for reg in &written {
                resumed.entry((block, *reg)).or_default().push(None);
            }
        }
    }
    resumed
}

impl<M: Machine> Classifier<'_, M> {
    /// Until no class changes.
    fn settle(&mut self, plan: &Plan) {
        loop {
            let mut changed = false;
            for node in &plan.nodes {
                for phi in &node.phis {
                    let mut class = self.classes[phi.def.0 as usize].clone();
                    let mut align = ALIGNED;
                    for from in &phi.from {
                        class = class.join(&self.classes[from.0 as usize], self.chunk);
                        align = align.min(self.align(*from));
                    }
                    changed |= self.set(phi.def, class);
                    changed |= self.set_align(phi.def, align);
                }
                for op in &node.ops {
                    changed |= self.op(op, node.block, plan);
                }
            }
            if !changed {
                break;
            }
        }
    }

    fn set(&mut self, name: Name, class: Class) -> bool {
        let old = &mut self.classes[name.0 as usize];
        let new = old.join(&class, self.chunk);
        let changed = *old != new;
        *old = new;
        changed
    }

    fn class(&self, name: Name) -> &Class {
        &self.classes[name.0 as usize]
    }

    /// Trailing zeros of a uniform value.
    fn align(&self, name: Name) -> u8 {
        match self.class(name) {
            Class::Uniform(Some(value)) => (value.trailing_zeros() as u8).min(ALIGNED),
            Class::Bottom | Class::Uniform(None) | Class::Pattern(_) | Class::Varying => {
                self.aligns[name.0 as usize]
            }
        }
    }

    fn set_align(&mut self, name: Name, align: u8) -> bool {
        let old = &mut self.aligns[name.0 as usize];
        let changed = align < *old;
        *old = align.min(*old);
        changed
    }

    fn op(&mut self, op: &super::Op, block: u32, plan: &Plan) -> bool {
        let align = self.align_of(op, plan);
        let mut changed = false;
        for def in &op.defs {
            changed |= self.set_align(*def, align);
        }
        self.class_of(op, block, plan) || changed
    }

    /// Trailing zeros of the operation's results, where these are uniform.
    fn align_of(&self, op: &super::Op, plan: &Plan) -> u8 {
        match &op.kind {
            OpKind::Inst(site) if op.defs.len() == 1 => {
                let Some(inst) = site.inst(self.function) else { return 0 };
                let sources = self.sources(inst, op);
                if sources.contains(&Class::Bottom) {
                    return ALIGNED;
                }
                let affine = self.affine(inst, op, &self.raised(inst, op, sources));
                affine.map_or(0, |pattern| if pattern.by_chunk { 0 } else { pattern.align })
            }
            OpKind::Restore(resume, reg) => {
                let kept = &plan.resumes[*resume as usize].kept;
                kept.iter().find(|(have, _)| have == reg).map_or(0, |(_, name)| self.align(*name))
            }
            _ => 0,
        }
    }

    /// The classes of sources, uniform ones with what is known of their trailing zeros.
    fn raised(&self, inst: &Inst, op: &super::Op, mut sources: Vec<Class>) -> Vec<Class> {
        let mut names = op.uses[1..].iter();
        for (src, class) in inst.srcs.iter().zip(&mut sources) {
            let mut count = 0;
            src.for_each_reg(&mut |_| count += 1);
            let name = (0..count).filter_map(|_| names.next()).last();
            if let (Src::Reg(_), Some(name), Class::Uniform(None)) = (src, name, &*class) {
                let align = self.align(*name);
                *class = Class::Pattern(Box::new(Pattern {
                    by_chunk: false,
                    align,
                    lanes: none(self.lanes),
                    rows: Box::default(),
                }));
            }
        }
        sources
    }

    fn class_of(&mut self, op: &super::Op, block: u32, plan: &Plan) -> bool {
        match &op.kind {
            OpKind::Inst(site) => {
                let Some(inst) = site.inst(self.function) else { return false };
                let classes = self.inst(inst, op, plan);
                let mut changed = false;
                for (def, class) in op.defs.iter().zip(classes) {
                    let mask = plan.kinds[def.0 as usize] == Kind::Mask;
                    let class = if mask { Class::Uniform(None) } else { class };
                    changed |= self.set(*def, class);
                }
                changed
            }
            OpKind::SelectMask if plan.kinds[op.defs[0].0 as usize] == Kind::Mask => {
                self.set(op.defs[0], Class::Uniform(None))
            }
            OpKind::SelectMask => {
                let bottom = op.uses[1..].iter().any(|u| *self.class(*u) == Class::Bottom);
                self.set(op.defs[0], if bottom { Class::Bottom } else { Class::Varying })
            }
            OpKind::SelectPred { .. } => {
                let (p, a, b) = (self.class(op.uses[0]), self.class(op.uses[1]), self.class(op.uses[2]));
                let class = match p {
                    Class::Bottom => Class::Bottom,
                    Class::Uniform(_) => a.join(b, self.chunk),
                    Class::Pattern(_) | Class::Varying => Class::Varying,
                };
                self.set(op.defs[0], class)
            }
            OpKind::Load(reg) => {
                // The node that loads belongs to the block that is entered.
                let mut class = Class::Bottom;
                match self.resumed.get(&(block, *reg)) {
                    None => class = Class::Varying,
                    Some(all) => {
                        for value in all {
                            let next = match value {
                                Some(name) => self.class(*name).clone(),
                                None => Class::Varying,
                            };
                            // A constant is not checked at entry.
                            let next = match next {
                                Class::Uniform(_) => Class::Uniform(None),
                                other => other,
                            };
                            class = class.join(&next, self.chunk);
                        }
                    }
                }
                self.set(op.defs[0], class)
            }
            OpKind::Restore(resume, reg) => {
                let kept = &plan.resumes[*resume as usize].kept;
                let class = match kept.iter().find(|(have, _)| have == reg) {
                    Some((_, name)) => self.class(*name).clone(),
                    None => Class::Varying,
                };
                self.set(op.defs[0], class)
            }
            OpKind::Mask(_)
            | OpKind::EntryMask
            | OpKind::EntryLive
            | OpKind::EntryCarry
            | OpKind::EntryTurns
            | OpKind::Count(_)
            | OpKind::Truths { .. }
            | OpKind::And
            | OpKind::AndNot
            | OpKind::Or
            | OpKind::Add(_)
            | OpKind::AddLanes(_)
            | OpKind::AddWarps(_) => self.set(op.defs[0], Class::Uniform(None)),
            OpKind::Guard(..) | OpKind::Ahead(_) | OpKind::Spare(..) => false,
        }
    }

    /// The class of each source, in the order of the instruction's.
    fn sources(&self, inst: &Inst, op: &super::Op) -> Vec<Class> {
        let mut next = op.uses[1..].iter();
        let mut take = || next.next().map_or(Class::Varying, |name| self.class(*name).clone());
        let one = |src: &Src, take: &mut dyn FnMut() -> Class| match src {
            Src::Absent => Class::Uniform(None),
            Src::Reg(_) => take(),
            Src::Not(_) => match take() {
                Class::Uniform(_) => Class::Uniform(None),
                other => other,
            },
            Src::Imm(bits) => Class::Uniform(Some(*bits)),
            Src::Sreg(sreg, axis) => self.sreg(*sreg, *axis),
            Src::Addr(Addr { base: Base::Reg(_), offset, .. }) => match take() {
                Class::Uniform(_) => Class::Uniform(None),
                Class::Pattern(p) => {
                    let align =
                        if *offset == 0 { p.align } else { p.align.min(offset.trailing_zeros() as u8) };
                    Pattern { align, ..(*p).clone() }.class()
                }
                other => other,
            },
            Src::Addr(Addr { index: Some(_), .. }) => match take() {
                Class::Uniform(_) => Class::Uniform(None),
                Class::Bottom => Class::Bottom,
                Class::Pattern(_) | Class::Varying => Class::Varying,
            },
            Src::Addr(_) => Class::Uniform(None),
            Src::Video(video) => match &video.value {
                Src::Reg(_) => match take() {
                    Class::Pattern(p) if !p.same_in_chunk(self.chunk) => Class::Varying,
                    other => other,
                },
                _ => Class::Uniform(None),
            },
        };
        inst.srcs.iter().map(|src| one(src, &mut take)).collect()
    }

    fn sreg(&self, sreg: Sreg, axis: u8) -> Class {
        let [nx, ny, nz] = self.shape.ntid;
        let lanes =
            |f: &dyn Fn(u32) -> u32| -> Box<[i32]> { (0..self.lanes as u32).map(|l| f(l) as i32).collect() };
        match sreg {
            Sreg::Ntid => Class::Uniform(self.shape.ntid.get(usize::from(axis)).map(|n| u64::from(*n))),
            Sreg::Ctaid
            | Sreg::Nctaid
            | Sreg::Nwarpid
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
            | Sreg::ReservedSmemOffset1
            | Sreg::Pm(_)
            | Sreg::Pm64(_) => Class::Uniform(None),
            Sreg::Laneid => {
                Pattern { by_chunk: false, align: ALIGNED, lanes: lanes(&|l| l % 32), rows: Box::default() }
                    .class()
            }
            Sreg::Warpid => {
                Pattern { by_chunk: false, align: 0, lanes: lanes(&|l| l / 32), rows: Box::default() }.class()
            }
            Sreg::Tid if axis > 2 => Class::Uniform(Some(0)),
            Sreg::Tid => {
                // The number of a lane in each dimension, if it is the same sum in every warp (or in every chunk).
                let threads = nx * ny * nz;
                let tid = |t: u32| [t % nx, t / nx % ny, t / nx / ny][usize::from(axis)] as i32;
                for (by_chunk, step) in [(false, self.lanes), (true, self.chunk)] {
                    let relative = |start: u32| -> Vec<i32> {
                        (0..step as u32).map(|l| tid(start + l) - tid(start)).collect()
                    };
                    let first = relative(0);
                    let starts: Vec<u32> = (0..threads.next_multiple_of(32)).step_by(step).collect();
                    if starts.iter().all(|s| relative(*s) == first) {
                        let align = starts.iter().map(|s| tid(*s).trailing_zeros().min(ALIGNED.into()) as u8);
                        let zero = |s: &u32| tid(*s) == 0;
                        let align = starts
                            .iter()
                            .zip(align)
                            .filter(|(s, _)| !zero(s))
                            .map(|(_, a)| a)
                            .min()
                            .unwrap_or(ALIGNED);
                        let lanes = (0..self.lanes).map(|l| first[l % step]).collect();
                        return Pattern { by_chunk, align, lanes, rows: Box::default() }.class();
                    }
                }
                Class::Varying
            }
            Sreg::LanemaskEq
            | Sreg::LanemaskLe
            | Sreg::LanemaskLt
            | Sreg::LanemaskGe
            | Sreg::LanemaskGt
            | Sreg::Clock
            | Sreg::ClockHi
            | Sreg::Clock64
            | Sreg::Globaltimer
            | Sreg::GlobaltimerLo
            | Sreg::GlobaltimerHi => Class::Varying,
        }
    }

    fn inst(&self, inst: &Inst, op: &super::Op, plan: &Plan) -> Vec<Class> {
        let sources = self.sources(inst, op);
        let count = op.defs.len();
        if sources.contains(&Class::Bottom) {
            return vec![Class::Bottom; count];
        }
        let (reads_carry, _) = self.machine.carry(inst);
        let uniform = sources.iter().all(Class::is_uniform) && !reads_carry;
        if matches!(inst.op, Op::Ld | Op::LdNc | Op::Ldu) {
            let local = match inst.srcs.first() {
                Some(Src::Addr(Addr { base: Base::Frame, .. })) => true,
                _ => inst.mods.space() == Space::Local,
            };
            return vec![if uniform && !local { Class::Uniform(None) } else { Class::Varying }; count];
        }
        if matches!(inst.op, Op::VoteSync | Op::Activemask) {
            let word = |def: &Name| plan.kinds[def.0 as usize] != Kind::Reg(RegClass::Pred);
            let each = match self.shape.team {
                1 => Class::Uniform(None),
                _ if op.defs.iter().all(word) => self.by_chunk(),
                _ => Class::Varying,
            };
            return vec![each; count];
        }
        // Each lane has local memory of its own.
        let own = matches!(inst.op, Op::Cvta | Op::CvtaTo) && inst.mods.space() == Space::Local;
        if !self.machine.is_pure(inst) || reads_carry || own {
            return vec![Class::Varying; count];
        }
        if uniform {
            let value = match (inst.op, sources.first()) {
                (Op::Mov, Some(Class::Uniform(value))) => *value,
                _ => None,
            };
            return vec![Class::Uniform(value); count];
        }
        if self.compares_same(inst, op, &sources) {
            return vec![Class::Uniform(None); count];
        }
        if count == 1
            && let Some(pattern) = self.affine(inst, op, &self.raised(inst, op, sources.clone()))
            && let class = pattern.class()
            && class != Class::Varying
            && let Kind::Reg(RegClass::R32 | RegClass::R64 | RegClass::R16) =
                plan.kinds[op.defs[0].0 as usize]
        {
            return vec![class];
        }
        let same = |class: &Class| match class {
            Class::Uniform(_) => true,
            Class::Pattern(pattern) => pattern.same_in_chunk(self.chunk),
            Class::Bottom | Class::Varying => false,
        };
        let words = op.defs.iter().all(|d| plan.kinds[d.0 as usize] != Kind::Reg(RegClass::Pred));
        let plain = inst.dsts.iter().all(|d| matches!(d, Dst::Reg(_) | Dst::Sink));
        if sources.iter().all(same) && words && plain {
            return vec![self.by_chunk(); count];
        }
        vec![Class::Varying; count]
    }

    /// Whether all lanes find the same when they compare.
    fn compares_same(&self, inst: &Inst, op: &super::Op, sources: &[Class]) -> bool {
        let (Op::Setp, Some(cmp), [a, b]) = (inst.op, inst.mods.cmp(), sources) else { return false };
        if !is_int(inst.mods.ty()) {
            return false;
        }
        let decides = |name: &Name| self.bounds[name.0 as usize].is_some_and(|bound| bound.low == bound.high);
        if let [def] = op.defs.as_slice()
            && decides(def)
        {
            return true;
        }
        let other = |class: &Class, name: Option<&Name>| match class {
            Class::Uniform(Some(k)) => Some(Other::Number(*k)),
            Class::Uniform(None) => Some(Other::Multiple(name.map_or(0, |name| self.align(*name)))),
            Class::Bottom | Class::Pattern(_) | Class::Varying => None,
        };
        let registers = |at: usize| matches!(inst.srcs.get(at), Some(Src::Reg(_)));
        let name = |at: usize| op.uses.get(1 + at).filter(|_| registers(0) && registers(1));
        match (a, b) {
            (Class::Pattern(pattern), b) => other(b, name(1)).is_some_and(|b| is_same(cmp, pattern, b)),
            (a, Class::Pattern(pattern)) => {
                other(a, name(0)).is_some_and(|a| is_same(turned(cmp), pattern, a))
            }
            _ => false,
        }
    }

    /// A value for each chunk.
    fn by_chunk(&self) -> Class {
        let lanes = none(self.lanes);
        Class::Pattern(Box::new(Pattern { by_chunk: true, align: 0, lanes, rows: Box::default() }))
    }

    /// The pattern that the instruction makes of patterns; `None`: none.
    fn affine(&self, inst: &Inst, op: &super::Op, sources: &[Class]) -> Option<Pattern> {
        let Some(bits) = narrow(inst) else { return self.affine_of_words(inst, op, sources) };
        // Narrower values wrap around within a warp, which no pattern says. So none may.
        let fits =
            |name: &Name| self.bounds[name.0 as usize].is_some_and(|bound| bound.high < 1 << (bits - 1));
        let strides = |class: &Class| matches!(class, Class::Pattern(pattern) if !pattern.rows.is_empty());
        let operands = op.uses[1..].iter().take(2).all(fits);
        let result = widens(inst).is_some() || op.defs.iter().all(fits);
        if bits < 16 || !operands || !result || sources.iter().any(strides) {
            return None;
        }
        self.affine_of_words(inst, op, sources).filter(|pattern| pattern.rows.is_empty())
    }

    /// The same for words, and for less where no lane wraps around.
    fn affine_of_words(&self, inst: &Inst, op: &super::Op, sources: &[Class]) -> Option<Pattern> {
        match inst.op {
            Op::Mov if sources.len() == 1 => sources[0].pattern(self.lanes),
            Op::Cvta | Op::CvtaTo => match inst.mods.space() {
                Space::Global | Space::Const => sources[0].pattern(self.lanes),
                Space::Shared | Space::Param => Some(Pattern { align: 0, ..sources[0].pattern(self.lanes)? }),
                _ => None,
            },
            Op::Add if is_int(inst.mods.ty()) && !inst.mods.has(ptx::isa::Word::Sat) => {
                self.sum(&sources[0].pattern(self.lanes)?, &sources[1].pattern(self.lanes)?, 1)
            }
            Op::Sub if is_int(inst.mods.ty()) && !inst.mods.has(ptx::isa::Word::Sat) => {
                self.sum(&sources[0].pattern(self.lanes)?, &sources[1].pattern(self.lanes)?, -1)
            }
            Op::Mul if is_int(inst.mods.ty()) && matches!(inst.mods.half(), Some(Half::Lo | Half::Wide)) => {
                self.product(&sources[0], &sources[1], inst.mods.ty(), inst.mods.half() == Some(Half::Wide))
            }
            Op::Mad
                if is_int(inst.mods.ty())
                    && matches!(inst.mods.half(), Some(Half::Lo | Half::Wide))
                    && !inst.mods.has(ptx::isa::Word::Sat) =>
            {
                let wide = inst.mods.half() == Some(Half::Wide);
                let product = self.product(&sources[0], &sources[1], inst.mods.ty(), wide)?;
                self.sum(&product, &sources[2].pattern(self.lanes)?, 1)
            }
            Op::Shl => {
                let Class::Uniform(Some(k)) = sources[1] else { return None };
                if k > 20 {
                    return None;
                }
                let p = sources[0].pattern(self.lanes)?;
                p.map((p.align + k as u8).min(ALIGNED), |lane| lane << k)
            }
            Op::Shr => {
                let Class::Uniform(Some(k)) = sources[1] else { return None };
                let p = sources[0].pattern(self.lanes)?;
                if k >= u64::from(inst.mods.ty().bits()) || !p.disjoint() {
                    return None;
                }
                let k = k.min(40) as u8;
                p.map(p.align.saturating_sub(k), |lane| if k > p.align { 0 } else { lane >> k })
            }
            Op::And => {
                let (p, mask) = with_constant(sources, self.lanes)?;
                if !p.disjoint() {
                    return None;
                }
                let above = p.align >= ALIGNED || mask >> p.align == 0;
                p.map(if above { ALIGNED } else { p.align }, |lane| lane & mask as i64)
            }
            Op::Or | Op::Xor if self.is_disjoint(inst, op) => {
                self.sum(&sources[0].pattern(self.lanes)?, &sources[1].pattern(self.lanes)?, 1)
            }
            Op::Or => {
                let (p, bits) = with_constant(sources, self.lanes)?;
                let fits = p.disjoint()
                    && (p.align >= 32 || bits < 1 << p.align)
                    && p.lanes.iter().all(|lane| *lane as u64 & bits == 0);
                if !fits {
                    return None;
                }
                p.map(p.align.min(bits.trailing_zeros().min(63) as u8), |lane| lane)
            }
            Op::Xor => {
                let (p, bits) = with_constant(sources, self.lanes)?;
                if !p.disjoint() {
                    return None;
                }
                // The first lane takes the bits along that no lane has in common with it.
                let low = (bits & ((1u64 << p.align.min(30)) - 1)) as i64;
                p.map(p.align.min(bits.trailing_zeros().min(63) as u8), |lane| (lane ^ low) - low)
            }
            Op::Cvt => {
                let (d, a) = (inst.mods.dtype(), inst.mods.atype());
                if !is_int(d) || !is_int(a) || inst.mods.has(ptx::isa::Word::Sat) {
                    return None;
                }
                sources[0].pattern(self.lanes)
            }
            _ => None,
        }
    }

    /// Whether two sources have no bits in common, so that one laid over the other is their sum.
    fn is_disjoint(&self, inst: &Inst, op: &super::Op) -> bool {
        let ([Src::Reg(_), Src::Reg(_)], [_, a, b]) = (&*inst.srcs, &*op.uses) else { return false };
        let [a, b] = [a, b].map(|name| self.bounds[name.0 as usize]);
        a.zip(b).is_some_and(|(a, b)| a.is_disjoint(b))
    }

    fn sum(&self, a: &Pattern, b: &Pattern, sign: i32) -> Option<Pattern> {
        let strides = usize::from(!a.rows.is_empty()) + usize::from(!b.rows.is_empty());
        let (a, b) = if a.by_chunk == b.by_chunk && strides < 2 {
            (a.clone(), b.clone())
        } else {
            (a.by_chunks(self.chunk)?, b.by_chunks(self.chunk)?)
        };
        let lanes: Box<[i32]> = a.lanes.iter().zip(&b.lanes).map(|(a, b)| a + sign * b).collect();
        let near = lanes.iter().all(|lane| i64::from(*lane).abs() < LIMIT);
        let rows = if a.rows.is_empty() { &b.rows } else { &a.rows };
        near.then(|| Pattern { by_chunk: a.by_chunk, align: a.align.min(b.align), lanes, rows: rows.clone() })
    }

    fn product(&self, a: &Class, b: &Class, ty: Ty, wide: bool) -> Option<Pattern> {
        let by = |p: Pattern, k: u64| {
            let shift = 64 - ty.bits();
            let k = ((k << shift) as i64) >> shift;
            // What is negative as a signed number is far away as a wide one.
            if k.abs() >= LIMIT || wide && k < 0 && !ty.is_signed() {
                return None;
            }
            let align = if k == 0 { ALIGNED } else { (p.align + k.trailing_zeros() as u8).min(ALIGNED) };
            p.map(align, |lane| lane.saturating_mul(k))
        };
        match (a, b) {
            (Class::Uniform(Some(k)), other) | (other, Class::Uniform(Some(k))) => {
                by(other.pattern(self.lanes)?, *k)
            }
            _ => {
                let (a, b) = (a.pattern(self.lanes)?, b.pattern(self.lanes)?);
                let same = a.same_in_chunk(self.chunk) && b.same_in_chunk(self.chunk);
                let one = [&a, &b].iter().all(|p| !p.by_chunk && p.is_plain());
                let align = (a.align + b.align).min(ALIGNED);
                // A number of rows and the bytes of a row, say.
                let row = |rows: &Pattern, stride: &Pattern| {
                    let plain =
                        !stride.by_chunk && stride.is_plain() && !rows.by_chunk && rows.rows.is_empty();
                    let rows = rows.lanes.clone();
                    plain.then(|| Pattern { by_chunk: false, align, lanes: none(self.lanes), rows })
                };
                let rows = || row(&a, &b).or_else(|| row(&b, &a)).filter(|found| !found.rows.is_empty());
                if !one
                    && (self.shape.team > 1 || !same)
                    && let Some(found) = rows()
                    && (same || found.run(self.chunk) >= SEGMENT_MIN_LANES)
                {
                    return Some(found);
                }
                let align = if one { align } else { 0 };
                same.then_some(Pattern {
                    by_chunk: !one,
                    align,
                    lanes: none(self.lanes),
                    rows: Box::default(),
                })
            }
        }
    }
}

fn is_int(ty: Ty) -> bool {
    use Ty::{B8, B16, B32, B64, S8, S16, S32, S64, U8, U16, U32, U64};
    [B8, B16, B32, B64, S8, S16, S32, S64, U8, U16, U32, U64].contains(&ty)
}

/// How many bits an instruction on integers reads of each source or makes, if these are less than a word.
fn narrow(inst: &Inst) -> Option<u32> {
    let bits = match inst.op {
        Op::Mov | Op::Add | Op::Sub | Op::Mul | Op::Mad | Op::Shl | Op::Shr | Op::And | Op::Or | Op::Xor => {
            inst.mods.ty().bits()
        }
        Op::Cvt => inst.mods.dtype().bits().min(inst.mods.atype().bits()),
        _ => 32,
    };
    (bits < 32).then_some(bits)
}

/// A pattern and the constant beside it.
fn with_constant(sources: &[Class], lanes: usize) -> Option<(Pattern, u64)> {
    match (sources.first()?, sources.get(1)?) {
        (a, Class::Uniform(Some(k))) | (Class::Uniform(Some(k)), a) => Some((a.pattern(lanes)?, *k)),
        _ => None,
    }
}

/// The type that an instruction widens its first two sources from, if it does; and to how many bits.
pub fn widens(inst: &Inst) -> Option<(Ty, u32)> {
    match inst.op {
        Op::Mul | Op::Mad if inst.mods.half() == Some(Half::Wide) => {
            Some((inst.mods.ty(), 2 * inst.mods.ty().bits()))
        }
        Op::Cvt => {
            let (d, a) = (inst.mods.dtype(), inst.mods.atype());
            (is_int(d) && is_int(a) && d.bits() > a.bits()).then_some((a, d.bits()))
        }
        _ => None,
    }
}
