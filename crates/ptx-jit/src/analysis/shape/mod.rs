//! Shape inference: finds the [`Shape`] of each value of a function.
//!
//! Invariants: a shape holds in every lane, active or not, for the value as native code computes it. Sums of
//! affine values are exact modulo the width of the value. Where an affine value is widened, the function has
//! a guard that exits unless no lane wraps around. A comparison is uniform where a guard exits unless all
//! lanes have the same result.

use super::range::Bound;
mod chunk_predicates;
pub(crate) mod compare;
mod equal_lanes;

use super::expr::{Arith, Expr, Operand, operands};
use crate::tuning::SEGMENT_MIN_LANES;
use crate::wir::lattice::{ALIGNED, Affine, LIMIT, Shape, none};
use crate::wir::{Effects, ExitReason, Func, GuardKind, Kind, LaunchShape, OpKind, Value};
use compare::{Other, is_same, turned};
use equal_lanes::{EqualLanes, Shuffles};
use ptx::ir::{Addr, Base, Dst, Function, Inst, Reg, RegClass, Src};
use ptx::isa::{Op, Space, Sreg};
use std::collections::{HashMap, HashSet};

struct Classifier<'a, M: Effects> {
    function: &'a Function,
    machine: &'a M,
    shape: LaunchShape,
    chunk: usize,
    lanes: usize,
    shapes: Vec<Shape>,
    /// Trailing zero bits of uniform values; no meaning for other values.
    aligns: Vec<u8>,
    /// Lanes with equal values, besides those that the shape implies.
    equal: Vec<EqualLanes>,
    shuffles: Shuffles,
    /// Which values are predicates that are the same in all lanes of each chunk.
    per_chunk: Vec<bool>,
    /// The range of each value.
    bounds: Vec<Option<Bound>>,
    /// Results of conversions that have a guard for active lanes.
    in_active: HashSet<Value>,
    /// Results of comparisons that have a guard.
    same: HashSet<Value>,
    /// The values that a register may have when the function is entered at a block.
    resumed: HashMap<(u32, Reg), Vec<Option<Value>>>,
}

/// Trailing zeros that are known at most of the scalar of a conversion that is exact in active lanes.
const KNOWN_BITS_OF_CONVERTED: u8 = 31;

/// Infers the shape of every value. `bounds`: the range of each.
pub(crate) fn classify(
    func: &mut Func,
    function: &Function,
    shape: LaunchShape,
    machine: &impl Effects,
    bounds: Vec<Option<Bound>>,
) {
    let chunk = shape.chunk as usize;
    let shuffles = if shape.team == 1 { Shuffles::of(func, function) } else { Shuffles::default() };
    let equal = if shuffles.is_empty() { EqualLanes::NONE } else { EqualLanes::ALL };
    let mut all = Classifier {
        function,
        machine,
        shape,
        chunk,
        lanes: shape.lanes() as usize,
        shapes: vec![Shape::Bottom; func.kinds.len()],
        aligns: vec![ALIGNED; func.kinds.len()],
        equal: vec![equal; func.kinds.len()],
        shuffles,
        per_chunk: chunk_predicates::all(func),
        bounds,
        in_active: func.guarded(GuardKind::ExactInActive),
        same: func.guarded(GuardKind::SameInAll),
        resumed: resumed(func, function),
    };
    for zero in func.zeros.iter().filter(|zero| !func.undef.contains(zero)) {
        all.shapes[zero.0 as usize] = Shape::Uniform(Some(0));
    }
    all.settle(func);
    // Unreachable code may contain values that depend only on each other, which never get a shape; then the
    // other sources count as varying.
    let mut unknown = false;
    for (name, class) in all.shapes.iter_mut().enumerate() {
        if *class == Shape::Bottom && !func.undef.contains(&Value(name as u32)) {
            (*class, unknown) = (if all.lanes == 1 { Shape::Uniform(None) } else { Shape::Varying }, true);
        }
    }
    if unknown {
        all.settle(func);
    }
    func.shapes = all.shapes;
}

/// The values that each register may have after an exit that stops before a block. `None`: an unknown value.
fn resumed(func: &Func, function: &Function) -> HashMap<(u32, Reg), Vec<Option<Value>>> {
    let mut resumed: HashMap<(u32, Reg), Vec<Option<Value>>> = HashMap::new();
    for node in &func.blocks {
        let crate::wir::Term::Exit(exit) = &node.term else { continue };
        let (blocks, written) = match exit.why {
            ExitReason::Yield { block } => (vec![block], Vec::new()),
            ExitReason::Terminator { block } => {
                let term = &function.blocks[block as usize].term;
                let mut written = Vec::new();
                term.for_each_def(&mut |reg| written.push(reg));
                (term.successors().iter().map(|b| b.0).collect(), written)
            }
            ExitReason::Finished | ExitReason::Before(_) | ExitReason::Declined => continue,
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

impl<M: Effects> Classifier<'_, M> {
    /// Iterates until no shape changes.
    fn settle(&mut self, func: &Func) {
        loop {
            let mut changed = false;
            for node in &func.blocks {
                for phi in &node.phis {
                    let mut class = self.shapes[phi.def.0 as usize].clone();
                    let (mut align, mut equal) = (ALIGNED, EqualLanes::ALL);
                    for from in &phi.from {
                        class = class.join(&self.shapes[from.0 as usize], self.chunk);
                        align = align.min(self.align(*from));
                        if !self.shuffles.is_empty() {
                            equal = equal.and(self.equal(*from));
                        }
                    }
                    changed |= self.set_equal(phi.def, equal);
                    changed |= self.set(phi.def, class);
                    changed |= self.note_phi(phi.def, &phi.from);
                    changed |= self.set_align(phi.def, align);
                }
                for op in &node.ops {
                    changed |= self.op(op, node.block, func);
                }
            }
            if !changed {
                break;
            }
        }
    }

    fn set(&mut self, name: Value, class: Shape) -> bool {
        let old = &mut self.shapes[name.0 as usize];
        let new = match old.join(&class, self.chunk) {
            // The only lane has the same value as itself.
            Shape::Affine(_) | Shape::Varying if self.lanes == 1 => Shape::Uniform(None),
            new => new,
        };
        let changed = *old != new;
        *old = new;
        changed
    }

    fn class(&self, name: Value) -> &Shape {
        &self.shapes[name.0 as usize]
    }

    /// Trailing zeros of a uniform value.
    fn align(&self, name: Value) -> u8 {
        match self.class(name) {
            Shape::Uniform(Some(value)) => (value.trailing_zeros() as u8).min(ALIGNED),
            Shape::Bottom | Shape::Uniform(None) | Shape::Affine(_) | Shape::Varying => {
                self.aligns[name.0 as usize]
            }
        }
    }

    fn set_align(&mut self, name: Value, align: u8) -> bool {
        let old = &mut self.aligns[name.0 as usize];
        let changed = align < *old;
        *old = align.min(*old);
        changed
    }

    /// Lanes that have equal values.
    fn equal(&self, name: Value) -> EqualLanes {
        self.equal[name.0 as usize].or(EqualLanes::of_shape(self.class(name)))
    }

    fn set_equal(&mut self, name: Value, equal: EqualLanes) -> bool {
        let old = &mut self.equal[name.0 as usize];
        let new = old.and(equal);
        let changed = *old != new;
        *old = new;
        changed
    }

    /// Lanes that have equal values of the operation's results.
    fn equal_of(&self, op: &crate::wir::Op, func: &Func) -> Vec<EqualLanes> {
        let each = |equal: EqualLanes| vec![equal; op.defs.len()];
        let of_all =
            |names: &[Value]| names.iter().fold(EqualLanes::ALL, |equal, name| equal.and(self.equal(*name)));
        match &op.kind {
            OpKind::Inst(site) => {
                let Some(inst) = site.inst(self.function) else { return each(EqualLanes::NONE) };
                if inst.op == Op::ShflSync {
                    return self.shuffles.results(op, |name| self.equal(name));
                }
                if !self.machine.is_pure(inst) || op.defs.len() != 1 || is_of_own_memory(inst) {
                    return each(EqualLanes::NONE);
                }
                let sources = operands(inst, op).into_iter().map(|operand| match operand {
                    Operand::Value(name)
                    | Operand::Not(name)
                    | Operand::Based(name, _)
                    | Operand::Indexed(name)
                    | Operand::Video(Some(name)) => self.equal(name),
                    Operand::Sreg(sreg, axis) => EqualLanes::of_shape(&self.sreg(sreg, axis)),
                    Operand::Absent | Operand::Imm(_) | Operand::Symbol(_) | Operand::Video(None) => {
                        EqualLanes::ALL
                    }
                });
                let equal = sources.fold(EqualLanes::ALL, EqualLanes::and);
                each(equal.or(self.shuffles.combined(inst, op)))
            }
            OpKind::SelectPred { .. } => each(of_all(&op.uses)),
            OpKind::Restore(resume, reg) => {
                each(func.kept(*resume, *reg).map_or(EqualLanes::NONE, |name| self.equal(name)))
            }
            _ => each(EqualLanes::NONE),
        }
    }

    fn op(&mut self, op: &crate::wir::Op, block: u32, func: &Func) -> bool {
        let align = self.align_of(op, func);
        let mut changed = false;
        if !self.shuffles.is_empty() {
            for (def, equal) in op.defs.iter().zip(self.equal_of(op, func)) {
                changed |= self.set_equal(*def, equal);
            }
        }
        for def in &op.defs {
            changed |= self.set_align(*def, align);
        }
        changed |= self.note_predicates(op);
        self.class_of(op, block, func) || changed
    }

    /// Trailing zeros of the operation's results, where these are uniform.
    fn align_of(&self, op: &crate::wir::Op, func: &Func) -> u8 {
        match &op.kind {
            OpKind::Inst(site) if op.defs.len() == 1 => {
                let Some(inst) = site.inst(self.function) else { return 0 };
                let sources = self.sources(inst, op);
                if sources.contains(&Shape::Bottom) {
                    return ALIGNED;
                }
                let affine = self.affine(inst, op, &self.raised(inst, op, sources));
                affine.map_or(0, |pattern| if pattern.by_chunk { 0 } else { pattern.align })
            }
            OpKind::Restore(resume, reg) => func.kept(*resume, *reg).map_or(0, |name| self.align(name)),
            _ => 0,
        }
    }

    /// The shapes of the sources, with the known trailing zeros of uniform ones.
    fn raised(&self, inst: &Inst, op: &crate::wir::Op, mut sources: Vec<Shape>) -> Vec<Shape> {
        for (operand, class) in operands(inst, op).into_iter().zip(&mut sources) {
            if let (Operand::Value(name), Shape::Uniform(None)) = (operand, &*class) {
                let align = self.align(name);
                *class = Shape::Affine(Box::new(Affine {
                    by_chunk: false,
                    align,
                    lanes: none(self.lanes),
                    rows: Box::default(),
                }));
            }
        }
        sources
    }

    fn class_of(&mut self, op: &crate::wir::Op, block: u32, func: &Func) -> bool {
        match &op.kind {
            OpKind::Inst(site) => {
                let Some(inst) = site.inst(self.function) else { return false };
                let classes = self.inst(inst, op, func);
                let mut changed = false;
                for (def, class) in op.defs.iter().zip(classes) {
                    let mask = func.kinds[def.0 as usize] == Kind::Mask;
                    let same = self.equal[def.0 as usize] == EqualLanes::ALL || self.same.contains(def);
                    let equal = class == Shape::Varying && same;
                    let class = if mask || equal { Shape::Uniform(None) } else { class };
                    changed |= self.set(*def, class);
                }
                changed
            }
            OpKind::Chain(_) => {
                let set = |changed, def: &Value| self.set(*def, Shape::Varying) | changed;
                op.defs.iter().fold(false, set)
            }
            OpKind::SelectMask if func.kinds[op.defs[0].0 as usize] == Kind::Mask => {
                self.set(op.defs[0], Shape::Uniform(None))
            }
            OpKind::SelectMask => {
                let bottom = op.uses[1..].iter().any(|u| *self.class(*u) == Shape::Bottom);
                self.set(op.defs[0], if bottom { Shape::Bottom } else { Shape::Varying })
            }
            OpKind::SelectPred { .. } => {
                let (p, a, b) = (self.class(op.uses[0]), self.class(op.uses[1]), self.class(op.uses[2]));
                let class = match p {
                    Shape::Bottom => Shape::Bottom,
                    Shape::Uniform(_) => a.join(b, self.chunk),
                    Shape::Affine(_) | Shape::Varying => Shape::Varying,
                };
                self.set(op.defs[0], class)
            }
            OpKind::Load(reg) => {
                // A block that loads registers belongs to the PTX block that is entered.
                let mut class = Shape::Bottom;
                match self.resumed.get(&(block, *reg)) {
                    None => class = Shape::Varying,
                    Some(all) => {
                        for value in all {
                            let next = match value {
                                Some(name) => self.class(*name).clone(),
                                None => Shape::Varying,
                            };
                            // The entry does not test constants, so a constant may not be assumed.
                            let next = match next {
                                Shape::Uniform(_) => Shape::Uniform(None),
                                other => other,
                            };
                            class = class.join(&next, self.chunk);
                        }
                    }
                }
                self.set(op.defs[0], class)
            }
            OpKind::SameQuotient(_) => {
                let [holds, first] = [0, 1].map(|def| self.set(op.defs[def], Shape::Uniform(None)));
                holds || first
            }
            OpKind::Rebase => {
                let class = match self.class(op.uses[0]) {
                    Shape::Affine(affine) => Affine { align: 0, ..(**affine).clone() }.class(),
                    other => other.clone(),
                };
                self.set(op.defs[0], class)
            }
            OpKind::Reload(_) => self.set(op.defs[0], Shape::Varying),
            OpKind::Restore(resume, reg) => {
                let class = func.kept(*resume, *reg).map_or(Shape::Varying, |name| self.class(name).clone());
                self.set(op.defs[0], class)
            }
            OpKind::Reduced(..)
            | OpKind::Mask(_)
            | OpKind::EntryMask
            | OpKind::EntryLive
            | OpKind::EntryCarry
            | OpKind::EntryTurns
            | OpKind::Count(_)
            | OpKind::Truths { .. }
            | OpKind::InRange { .. }
            | OpKind::Picks { .. }
            | OpKind::And
            | OpKind::AndNot
            | OpKind::Or
            | OpKind::Add(_)
            | OpKind::AddLanes(_)
            | OpKind::AddWarps(_) => self.set(op.defs[0], Shape::Uniform(None)),
            OpKind::Guard(..) | OpKind::Ahead(_) | OpKind::Spare(..) | OpKind::Spill(_) => false,
        }
    }

    /// The shape of each source, in the order of the instruction's.
    fn sources(&self, inst: &Inst, op: &crate::wir::Op) -> Vec<Shape> {
        let one = |operand| match operand {
            Operand::Value(name) => self.class(name).clone(),
            Operand::Not(name) => match self.class(name) {
                Shape::Uniform(_) => Shape::Uniform(None),
                other => other.clone(),
            },
            Operand::Imm(bits) => Shape::Uniform(Some(bits)),
            Operand::Sreg(sreg, axis) => self.sreg(sreg, axis),
            Operand::Based(name, offset) => match self.class(name) {
                Shape::Uniform(_) => Shape::Uniform(None),
                Shape::Affine(p) => {
                    let align =
                        if offset == 0 { p.align } else { p.align.min(offset.trailing_zeros() as u8) };
                    Affine { align, ..(**p).clone() }.class()
                }
                other => other.clone(),
            },
            Operand::Indexed(name) => match self.class(name) {
                Shape::Uniform(_) => Shape::Uniform(None),
                Shape::Bottom => Shape::Bottom,
                Shape::Affine(_) | Shape::Varying => Shape::Varying,
            },
            Operand::Video(Some(name)) => match self.class(name) {
                Shape::Affine(p) if !p.same_in_chunk(self.chunk) => Shape::Varying,
                other => other.clone(),
            },
            Operand::Absent | Operand::Symbol(_) | Operand::Video(None) => Shape::Uniform(None),
        };
        operands(inst, op).into_iter().map(one).collect()
    }

    fn sreg(&self, sreg: Sreg, axis: u8) -> Shape {
        let lanes =
            |f: &dyn Fn(u32) -> u32| -> Box<[i32]> { (0..self.lanes as u32).map(|l| f(l) as i32).collect() };
        match sreg {
            Sreg::Ntid => Shape::Uniform(self.shape.ntid.get(usize::from(axis)).map(|n| u64::from(*n))),
            Sreg::Ctaid if axis == 0 && self.shape.ctas > 1 => {
                match self.by_thread(|thread| self.shape.cta_of(thread)) {
                    // The first of the CTAs may have any number.
                    Shape::Affine(pattern) => Affine { align: 0, ..*pattern }.class(),
                    shape => shape,
                }
            }
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
            | Sreg::Pm64(_) => Shape::Uniform(None),
            Sreg::Laneid | Sreg::Warpid if self.shape.is_scalar() => Shape::Uniform(None),
            Sreg::Laneid => {
                Affine { by_chunk: false, align: ALIGNED, lanes: lanes(&|l| l % 32), rows: Box::default() }
                    .class()
            }
            Sreg::Warpid => {
                Affine { by_chunk: false, align: 0, lanes: lanes(&|l| l / 32), rows: Box::default() }.class()
            }
            Sreg::Tid if axis > 2 => Shape::Uniform(Some(0)),
            Sreg::Tid => self.by_thread(|thread| self.shape.tid(thread)[usize::from(axis)]),
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
            | Sreg::GlobaltimerHi => Shape::Varying,
        }
    }

    /// A number of each thread: affine, if it is the same sum in every warp (or in every chunk).
    fn by_thread(&self, of: impl Fn(u32) -> u32) -> Shape {
        let of = |thread: u32| of(thread) as i32;
        for (by_chunk, step) in [(false, self.lanes), (true, self.chunk)] {
            let relative =
                |start: u32| -> Vec<i32> { (0..step as u32).map(|l| of(start + l) - of(start)).collect() };
            let first = relative(0);
            let starts: Vec<u32> = (0..self.shape.threads().next_multiple_of(32)).step_by(step).collect();
            if starts.iter().all(|s| relative(*s) == first) {
                let firsts = starts.iter().map(|s| of(*s)).filter(|first| *first != 0);
                let zeros = firsts.map(|first| first.trailing_zeros().min(ALIGNED.into()) as u8);
                let align = zeros.min().unwrap_or(ALIGNED);
                let lanes = (0..self.lanes).map(|l| first[l % step]).collect();
                return Affine { by_chunk, align, lanes, rows: Box::default() }.class();
            }
        }
        Shape::Varying
    }

    fn inst(&self, inst: &Inst, op: &crate::wir::Op, func: &Func) -> Vec<Shape> {
        let sources = self.sources(inst, op);
        let count = op.defs.len();
        if sources.contains(&Shape::Bottom) {
            return vec![Shape::Bottom; count];
        }
        let (reads_carry, _) = self.machine.carry(inst);
        let uniform = sources.iter().all(Shape::is_uniform) && !reads_carry;
        if matches!(inst.op, Op::Ld | Op::LdNc | Op::Ldu) {
            let local = match inst.srcs.first() {
                Some(Src::Addr(Addr { base: Base::Frame, .. })) => true,
                _ => inst.mods.space() == Space::Local,
            };
            return vec![if uniform && !local { Shape::Uniform(None) } else { Shape::Varying }; count];
        }
        if matches!(inst.op, Op::VoteSync | Op::Activemask) {
            let word = |def: &Value| func.kinds[def.0 as usize] != Kind::Reg(RegClass::Pred);
            let each = match self.shape.team {
                1 => Shape::Uniform(None),
                _ if op.defs.iter().all(word) => self.by_chunk(),
                _ => Shape::Varying,
            };
            return vec![each; count];
        }
        if inst.op == Op::BarRed {
            return vec![Shape::Uniform(None); count];
        }
        if !self.machine.is_pure(inst) || reads_carry || is_of_own_memory(inst) {
            return vec![Shape::Varying; count];
        }
        if uniform {
            let value = match (inst.op, sources.first()) {
                (Op::Mov, Some(Shape::Uniform(value))) => *value,
                _ => None,
            };
            return vec![Shape::Uniform(value); count];
        }
        if let Some(outcome) = self.decided(inst, op) {
            return vec![Shape::Uniform(Some(outcome)); count];
        }
        if self.compares_same(inst, &op.uses, &sources) {
            return vec![Shape::Uniform(None); count];
        }
        if count == 1
            && let Some(pattern) = self.affine(inst, op, &self.raised(inst, op, sources.clone()))
            && let class = pattern.class()
            && class != Shape::Varying
            && let Kind::Reg(RegClass::R32 | RegClass::R64 | RegClass::R16) =
                func.kinds[op.defs[0].0 as usize]
        {
            return vec![class];
        }
        let words = op.defs.iter().all(|d| func.kinds[d.0 as usize] != Kind::Reg(RegClass::Pred));
        let plain = inst.dsts.iter().all(|d| matches!(d, Dst::Reg(_) | Dst::Sink));
        if self.reads_same_in_chunk(inst, op) && words && plain {
            return vec![self.by_chunk(); count];
        }
        vec![Shape::Varying; count]
    }

    /// The outcome of a comparison that the ranges of its sources decide. Lanes that are not active may have
    /// numbers beyond a range, so no lane shows the outcome.
    fn decided(&self, inst: &Inst, op: &crate::wir::Op) -> Option<u64> {
        let (Some(Expr { arith: Arith::Compare(_), .. }), [def]) = (Expr::of(inst), op.defs.as_slice())
        else {
            return None;
        };
        self.bounds[def.0 as usize].filter(|bound| bound.low == bound.high).map(|bound| bound.low)
    }

    /// Whether a comparison has the same outcome in all lanes.
    fn compares_same(&self, inst: &Inst, uses: &[Value], sources: &[Shape]) -> bool {
        let (Some(Expr { arith: Arith::Compare(cmp), .. }), [a, b]) = (Expr::of(inst), sources) else {
            return false;
        };
        let other = |class: &Shape, name: Option<&Value>| match class {
            Shape::Uniform(Some(k)) => Some(Other::Number(*k)),
            Shape::Uniform(None) => Some(Other::Multiple(name.map_or(0, |name| self.align(*name)))),
            Shape::Bottom | Shape::Affine(_) | Shape::Varying => None,
        };
        let registers = |at: usize| matches!(inst.srcs.get(at), Some(Src::Reg(_)));
        let name = |at: usize| uses.get(1 + at).filter(|_| registers(0) && registers(1));
        match (a, b) {
            (Shape::Affine(pattern), b) => other(b, name(1)).is_some_and(|b| is_same(cmp, pattern, b)),
            (a, Shape::Affine(pattern)) => {
                other(a, name(0)).is_some_and(|a| is_same(turned(cmp), pattern, a))
            }
            _ => false,
        }
    }

    /// The shape of a value with a scalar for each chunk.
    fn by_chunk(&self) -> Shape {
        let lanes = none(self.lanes);
        Shape::Affine(Box::new(Affine { by_chunk: true, align: 0, lanes, rows: Box::default() }))
    }

    /// The affine shape of an instruction's result on affine operands; `None`: the result is not affine.
    fn affine(&self, inst: &Inst, op: &crate::wir::Op, sources: &[Shape]) -> Option<Affine> {
        let expr = Expr::of(inst)?;
        let bits = expr.ty.bits().min(expr.result_bits());
        if bits >= 32 {
            let found = self.affine_of_words(expr, inst, op, sources)?;
            if !op.defs.iter().any(|def| self.in_active.contains(def)) {
                return Some(found);
            }
            // The guard compares the first and the last active lane, which are the ends of an even row only.
            // The scalar is that of an even row through the first active lane: its low bits are those of the
            // source, its other bits are any.
            let is_even = |shape: &Shape| match shape {
                Shape::Affine(pattern) => pattern.slope(self.shape.threads()).is_some(),
                Shape::Bottom | Shape::Uniform(_) | Shape::Varying => true,
            };
            let found = Affine { align: found.align.min(KNOWN_BITS_OF_CONVERTED), ..found };
            let even = sources.iter().all(is_even) && is_even(&found.clone().class());
            return even.then_some(found);
        }
        // An affine shape cannot express that a value narrower than 32 bits wraps around within a warp, so no
        // lane may wrap around.
        let fits =
            |name: &Value| self.bounds[name.0 as usize].is_some_and(|bound| bound.high < 1 << (bits - 1));
        let strides = |class: &Shape| matches!(class, Shape::Affine(pattern) if !pattern.rows.is_empty());
        let operands = op.uses[1..].iter().take(2).all(fits);
        let result = expr.widens().is_some() || op.defs.iter().all(fits);
        if bits < 16 || !operands || !result || sources.iter().any(strides) {
            return None;
        }
        self.affine_of_words(expr, inst, op, sources).filter(|pattern| pattern.rows.is_empty())
    }

    /// The affine shape for 32-bit values, and for narrower ones if no lane wraps around.
    fn affine_of_words(
        &self,
        expr: Expr,
        inst: &Inst,
        op: &crate::wir::Op,
        sources: &[Shape],
    ) -> Option<Affine> {
        match expr.arith {
            Arith::Copy | Arith::Convert(_) => sources[0].pattern(self.lanes),
            Arith::ToGeneric(space) | Arith::FromGeneric(space) => match space {
                Space::Global | Space::Const => sources[0].pattern(self.lanes),
                Space::Shared | Space::Param => Some(Affine { align: 0, ..sources[0].pattern(self.lanes)? }),
                _ => None,
            },
            Arith::Add => self.sum(&sources[0].pattern(self.lanes)?, &sources[1].pattern(self.lanes)?, 1),
            Arith::Sub => self.sum(&sources[0].pattern(self.lanes)?, &sources[1].pattern(self.lanes)?, -1),
            Arith::Neg => {
                let p = sources[0].pattern(self.lanes)?;
                if p.rows.is_empty() { p.map(p.align, |lane| -lane) } else { None }
            }
            Arith::Mul { .. } => self.product(&sources[0], &sources[1], expr),
            Arith::Mad { .. } => {
                let product = self.product(&sources[0], &sources[1], expr)?;
                self.sum(&product, &sources[2].pattern(self.lanes)?, 1)
            }
            Arith::Shl => {
                let Shape::Uniform(Some(k)) = sources[1] else { return None };
                if k > 20 {
                    return None;
                }
                let p = sources[0].pattern(self.lanes)?;
                p.map((p.align + k as u8).min(ALIGNED), |lane| lane << k)
            }
            Arith::Shr => {
                let Shape::Uniform(Some(k)) = sources[1] else { return None };
                let p = sources[0].pattern(self.lanes)?;
                if k >= u64::from(expr.ty.bits()) || !p.disjoint() {
                    return None;
                }
                let k = k.min(40) as u8;
                p.map(p.align.saturating_sub(k), |lane| if k > p.align { 0 } else { lane >> k })
            }
            Arith::And => {
                let (p, mask) = with_constant(sources, self.lanes)?;
                if !p.disjoint() {
                    return None;
                }
                let above = p.align >= ALIGNED || mask >> p.align == 0;
                p.map(if above { ALIGNED } else { p.align }, |lane| lane & mask as i64)
            }
            Arith::Or | Arith::Xor if self.is_disjoint(inst, op) => {
                self.sum(&sources[0].pattern(self.lanes)?, &sources[1].pattern(self.lanes)?, 1)
            }
            Arith::Or => {
                let (p, bits) = with_constant(sources, self.lanes)?;
                let fits = p.disjoint()
                    && (p.align >= 32 || bits < 1 << p.align)
                    && p.lanes.iter().all(|lane| *lane as u64 & bits == 0);
                if !fits {
                    return None;
                }
                p.map(p.align.min(bits.trailing_zeros().min(63) as u8), |lane| lane)
            }
            Arith::Xor => {
                let (p, bits) = with_constant(sources, self.lanes)?;
                if !p.disjoint() {
                    return None;
                }
                // The scalar keeps the bits that no lane's constant overlaps.
                let low = (bits & ((1u64 << p.align.min(30)) - 1)) as i64;
                p.map(p.align.min(bits.trailing_zeros().min(63) as u8), |lane| (lane ^ low) - low)
            }
            Arith::Min | Arith::Max | Arith::Div | Arith::Rem | Arith::Select | Arith::Compare(_) => None,
        }
    }

    /// Whether two sources have no one bits in common, so that `or` is their sum.
    fn is_disjoint(&self, inst: &Inst, op: &crate::wir::Op) -> bool {
        let ([Src::Reg(_), Src::Reg(_)], [_, a, b]) = (&*inst.srcs, &*op.uses) else { return false };
        let [a, b] = [a, b].map(|name| self.bounds[name.0 as usize]);
        a.zip(b).is_some_and(|(a, b)| a.is_disjoint(b))
    }

    fn sum(&self, a: &Affine, b: &Affine, sign: i32) -> Option<Affine> {
        let strides = usize::from(!a.rows.is_empty()) + usize::from(!b.rows.is_empty());
        let (a, b) = if a.by_chunk == b.by_chunk && strides < 2 {
            (a.clone(), b.clone())
        } else {
            (a.by_chunks(self.chunk)?, b.by_chunks(self.chunk)?)
        };
        let lanes: Box<[i32]> = a.lanes.iter().zip(&b.lanes).map(|(a, b)| a + sign * b).collect();
        let near = lanes.iter().all(|lane| i64::from(*lane).abs() < LIMIT);
        let rows = if a.rows.is_empty() { &b.rows } else { &a.rows };
        near.then(|| Affine { by_chunk: a.by_chunk, align: a.align.min(b.align), lanes, rows: rows.clone() })
    }

    fn product(&self, a: &Shape, b: &Shape, expr: Expr) -> Option<Affine> {
        let by = |p: Affine, k: u64| {
            let k = expr.number(k);
            // A negative constant is a large number when it is widened as unsigned.
            let far = expr.widens().is_some() && !expr.ty.is_signed() && k >> (expr.ty.bits() - 1) != 0;
            if k.unsigned_abs() >= LIMIT as u64 || far {
                return None;
            }
            let align = if k == 0 { ALIGNED } else { (p.align + k.trailing_zeros() as u8).min(ALIGNED) };
            p.map(align, |lane| lane.saturating_mul(k))
        };
        match (a, b) {
            (Shape::Uniform(Some(k)), other) | (other, Shape::Uniform(Some(k))) => {
                by(other.pattern(self.lanes)?, *k)
            }
            _ => {
                let (a, b) = (a.pattern(self.lanes)?, b.pattern(self.lanes)?);
                let same = a.same_in_chunk(self.chunk) && b.same_in_chunk(self.chunk);
                let one = [&a, &b].iter().all(|p| !p.by_chunk && p.is_plain());
                let align = (a.align + b.align).min(ALIGNED);
                // For example, a number of rows times the bytes of a row.
                let row = |rows: &Affine, stride: &Affine| {
                    let plain =
                        !stride.by_chunk && stride.is_plain() && !rows.by_chunk && rows.rows.is_empty();
                    let rows = rows.lanes.clone();
                    plain.then(|| Affine { by_chunk: false, align, lanes: none(self.lanes), rows })
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
                same.then_some(Affine {
                    by_chunk: !one,
                    align,
                    lanes: none(self.lanes),
                    rows: Box::default(),
                })
            }
        }
    }
}

/// Whether an instruction converts an address of local memory, which is separate for each lane.
fn is_of_own_memory(inst: &Inst) -> bool {
    matches!(inst.op, Op::Cvta | Op::CvtaTo) && inst.mods.space() == Space::Local
}

/// An affine operand and the constant beside it.
fn with_constant(sources: &[Shape], lanes: usize) -> Option<(Affine, u64)> {
    match (sources.first()?, sources.get(1)?) {
        (a, Shape::Uniform(Some(k))) | (Shape::Uniform(Some(k)), a) => Some((a.pattern(lanes)?, *k)),
        _ => None,
    }
}
