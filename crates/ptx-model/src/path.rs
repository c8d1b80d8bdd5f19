//! The paths through a thread: all outcomes of its branches, with loops up to a bound.
//!
//! A path is straight-line code: events whose values are expressions over the results of its reads, and the
//! conditions under which the thread takes the path. Where only final states are asked for, iterations that
//! read and leave nothing behind are left out. Invariant: a path has at most [`MOST_EVENTS`] events,
//! and a thread at most [`MOST_PATHS`] paths. The results of reads are not determined here.

use crate::Error;
use crate::barrier::mask_of;
use crate::event::{Access, Barrier, BarrierUse, Element, Event, Kind};
use crate::memory::{Memory, address_of, location_at};
use crate::relation::MOST_EVENTS;
use crate::rules::{Rule, Rules};
use crate::test::{
    Address, AluOp, AtomOp, BarrierKind, Comparison, Instruction, Op, Operand, Proxy, Reg, Scope, Sem, Test,
    Type,
};
use crate::value::Expr;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Most paths of a thread. Chosen: two branches in a loop of eight iterations.
const MOST_PATHS: usize = 65_536;
/// Most instructions of a path. Chosen: far above what fits in a litmus test.
const MOST_STEPS: usize = 4_096;
/// Most nodes of one expression: a loop may double it in each iteration.
const MOST_NODES: usize = 2_000;

/// A condition of a path: the expression is not 0, or it is.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) expr: Rc<Expr>,
    pub(crate) holds: bool,
}

/// A way through a thread.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) events: Vec<Event>,
    pub(crate) conditions: Vec<Condition>,
    /// Final values of the registers.
    pub(crate) registers: Vec<Rc<Expr>>,
    /// A path that does not end: it repeats a loop forever.
    pub(crate) spin: Option<Spin>,
}

/// The last iteration of a loop that a path repeats forever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin {
    /// The first instruction of the loop.
    pub(crate) head: usize,
    /// The first event of the iteration; the others follow to the end of the path.
    pub(crate) first: usize,
}

/// The paths of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    pub(crate) paths: Vec<Path>,
    /// Whether some were left out, as a loop went on beyond the bound.
    pub(crate) bounded: bool,
}

/// The state of a walk through the code.
#[derive(Clone)]
struct Walk {
    at: usize,
    steps: usize,
    registers: Vec<Rc<Expr>>,
    events: Vec<Event>,
    conditions: Vec<Condition>,
    /// The reads that determine whether the following code is executed.
    control: u128,
    /// How often each instruction has jumped backwards.
    jumps: Vec<u32>,
    /// How many events there were when the walk came last to each instruction.
    seen: Vec<Option<usize>>,
    /// What the walk was when it came last to each target of a backward jump.
    heads: BTreeMap<usize, Rc<Head>>,
    /// Copies that are in no group yet, and the groups.
    open: Vec<usize>,
    groups: Vec<Vec<usize>>,
}

/// A walk that begins an iteration of a loop.
struct Head {
    registers: Vec<Rc<Expr>>,
    open: Vec<usize>,
    groups: Vec<Vec<usize>>,
}

/// Walks through a thread.
pub(crate) struct Walker<'a> {
    pub(crate) test: &'a Test,
    pub(crate) memory: &'a Memory,
    pub(crate) rules: Rules,
    pub(crate) thread: usize,
    /// How often a branch may go backwards.
    pub(crate) bound: u32,
    /// Whether paths that go round a loop for ever are wanted too.
    pub(crate) spins: bool,
    /// For each instruction: which registers matter from there on. If it is given, walks are left out that
    /// are no better than those without their last iteration; see [`Self::repeats`].
    pub(crate) read_later: Option<Vec<Vec<bool>>>,
}

/// What an access does besides its bytes.
#[derive(Clone, Copy)]
struct Order {
    strong: Option<Scope>,
    acquire: bool,
    release: bool,
}

impl Walker<'_> {
    /// All paths of the thread.
    ///
    /// # Errors
    /// An access outside of its location or misaligned, or too many paths, events or steps.
    pub(crate) fn paths(&self) -> Result<Paths, Error> {
        let thread = &self.test.threads[self.thread];
        let registers = thread.init.iter().map(|init| constant(*init)).collect();
        let start = Walk {
            at: 0,
            steps: 0,
            registers,
            events: Vec::new(),
            conditions: Vec::new(),
            control: 0,
            jumps: vec![0; thread.code.len()],
            seen: vec![None; thread.code.len()],
            heads: BTreeMap::new(),
            open: Vec::new(),
            groups: Vec::new(),
        };
        let mut is_head = vec![false; thread.code.len()];
        for (from, instruction) in thread.code.iter().enumerate() {
            if let Op::Branch { target, .. } = &instruction.op
                && *target <= from
            {
                is_head[*target] = self.read_later.is_some();
            }
        }
        let mut found = Paths::default();
        let mut walks = vec![start];
        while let Some(mut walk) = walks.pop() {
            let Some(instruction) = thread.code.get(walk.at) else {
                found.paths.push(Path {
                    events: walk.events,
                    conditions: walk.conditions,
                    registers: walk.registers,
                    spin: None,
                });
                if found.paths.len() > MOST_PATHS {
                    return Err(self.limit(thread.code.last(), "has more than 65536 paths"));
                }
                continue;
            };
            walk.seen[walk.at] = Some(walk.events.len());
            if is_head[walk.at] {
                let (registers, open, groups) =
                    (walk.registers.clone(), walk.open.clone(), walk.groups.clone());
                walk.heads.insert(walk.at, Rc::new(Head { registers, open, groups }));
            }
            walk.steps += 1;
            if walk.steps > MOST_STEPS {
                return Err(self.limit(Some(instruction), "executes more than 4096 instructions on one path"));
            }
            if let Some((reg, holds)) = instruction.guard {
                let condition = walk.registers[reg.0].clone();
                let mut skipping = walk.clone();
                skipping.at += 1;
                if skipping.assume(condition.clone(), !holds) {
                    walks.push(skipping);
                }
                if !walk.assume(condition, holds) {
                    continue;
                }
            }
            self.step(instruction, walk, &mut walks, &mut found)?;
        }
        // The walk that was pushed last came first.
        found.paths.reverse();
        Ok(found)
    }

    fn limit(&self, at: Option<&Instruction>, what: &str) -> Error {
        let number = self.test.threads[self.thread].number;
        Error::limit(at.map_or(0, |i| i.line), format!("thread P{number} {what}"))
    }

    /// Executes an instruction; the walks that go on.
    fn step(
        &self,
        instruction: &Instruction,
        mut walk: Walk,
        walks: &mut Vec<Walk>,
        found: &mut Paths,
    ) -> Result<(), Error> {
        let at = walk.at;
        walk.at += 1;
        match &instruction.op {
            Op::Load { sem, ty, proxy, dst, address } => {
                for (mut walk, place) in self.places(instruction, walk, address, *ty, dst.len())? {
                    let ty = place.ty;
                    for (index, dst) in dst.iter().enumerate() {
                        let value = self.read(&mut walk, at, &place, index, *proxy, self.order(*sem));
                        walk.registers[dst.0] = Rc::new(Expr::Extend(ty, value));
                    }
                    self.go_on(instruction, walk, walks)?;
                }
                return Ok(());
            }
            Op::Store { sem, ty, proxy, src, address } => {
                for (mut walk, place) in self.places(instruction, walk, address, *ty, src.len())? {
                    for (index, src) in src.iter().enumerate() {
                        let value = walk.value(*src);
                        self.write(&mut walk, at, &place, index, *proxy, self.order(*sem), &value);
                    }
                    self.go_on(instruction, walk, walks)?;
                }
                return Ok(());
            }
            Op::Atom { sem, ty, proxy, op, dst, address, args } => {
                for (walk, place) in self.places(instruction, walk, address, *ty, 1)? {
                    let order = self.order(*sem);
                    for walk in self.atom(walk, at, &place, *proxy, order, *op, *dst, args) {
                        self.go_on(instruction, walk, walks)?;
                    }
                }
                return Ok(());
            }
            Op::Copy { to, from, bytes } => self.copy(instruction, &mut walk, at, to, from, *bytes)?,
            Op::CommitGroup => {
                let group = std::mem::take(&mut walk.open);
                walk.groups.push(group);
            }
            Op::WaitGroup(keep) => {
                let now = walk.events.len();
                let done = match keep {
                    None => {
                        let mut done = std::mem::take(&mut walk.open);
                        done.extend(walk.groups.drain(..).flatten());
                        done
                    }
                    Some(keep) => {
                        let keep = usize::try_from(*keep).unwrap_or(usize::MAX);
                        let end = walk.groups.len().saturating_sub(keep);
                        walk.groups.drain(..end).flatten().collect()
                    }
                };
                for event in done {
                    walk.events[event].done_at = Some(now);
                }
            }
            Op::Fence { sc, scope } => {
                let mut event = walk.event(self.thread, at, Kind::Fence);
                event.strong = Some(*scope);
                event.sc = *sc;
                walk.events.push(event);
            }
            Op::ProxyFence(fence) => {
                let event = walk.event(self.thread, at, Kind::ProxyFence(*fence));
                walk.events.push(event);
            }
            Op::Barrier { kind, instance, id, count, reduction } => {
                let mut each = vec![(walk, None)];
                if let Some(count) = count {
                    each = each
                        .into_iter()
                        .flat_map(|(walk, _)| {
                            let most = self.test.threads.len() as u64 + 1;
                            walk.fork_over(*count, 0..=most).map(|(walk, n)| (walk, Some(n)))
                        })
                        .collect();
                }
                for (walk, count) in each {
                    for (mut walk, id) in walk.fork_over(*id, 0..=15) {
                        let mut event = walk.event(self.thread, at, Kind::Barrier(*kind));
                        let cta = self.test.cta_of(self.thread);
                        let barrier = Barrier::Cta { cta, instance: *instance, id };
                        let reduction = reduction.map(|reduction| {
                            let (predicate, holds) = reduction.predicate;
                            let comparison = if holds { Comparison::Ne } else { Comparison::Eq };
                            let op = AluOp::Compare(comparison);
                            let zero = Rc::new(Expr::Const(0));
                            let predicate = fold(Expr::Alu(op, Type::WORD, walk.value(predicate), zero));
                            event.depends |= predicate.reads();
                            walk.registers[reduction.dst.0] = Rc::new(Expr::Read(walk.events.len()));
                            (reduction.op, predicate)
                        });
                        event.barrier = Some(BarrierUse { barrier, count, reduction });
                        walk.events.push(event);
                        self.go_on(instruction, walk, walks)?;
                    }
                }
                return Ok(());
            }
            Op::WarpSync { mask } => {
                let fault =
                    |why: String| Error::at(instruction.line, format!("`{}`: {why}", instruction.text));
                let Some(mask) = walk.value(*mask).constant() else {
                    return Err(fault("a mask must not depend on what is read".to_owned()));
                };
                let mask = mask_of(self.test, self.thread, mask).map_err(fault)?;
                let mut event = walk.event(self.thread, at, Kind::Barrier(BarrierKind::Sync));
                let barrier = Barrier::Warp { warp: self.test.warp_of(self.thread), mask };
                event.barrier = Some(BarrierUse { barrier, count: None, reduction: None });
                walk.events.push(event);
            }
            Op::Alu { op, ty, dst, a, b } => {
                let (a, b) = (walk.value(*a), walk.value(*b));
                walk.registers[dst.0] = fold(Expr::Alu(*op, *ty, a, b));
            }
            Op::Mov { dst, src } => walk.registers[dst.0] = walk.value(*src),
            Op::Select { dst, a, b, p } => {
                let p = walk.registers[p.0].clone();
                walk.registers[dst.0] = fold(Expr::Select(p, walk.value(*a), walk.value(*b)));
            }
            Op::Branch { when, target } => {
                let mut taken = walk.clone();
                if let Some((comparison, a, b)) = when {
                    let (a, b) = (walk.value(*a), walk.value(*b));
                    let condition = fold(Expr::Alu(AluOp::Compare(*comparison), Type::WORD, a, b));
                    if walk.assume(condition.clone(), false) {
                        self.go_on(instruction, walk, walks)?;
                    }
                    if !taken.assume(condition, true) {
                        return Ok(());
                    }
                }
                taken.at = *target;
                if *target <= at {
                    if let Some(spin) = taken.spin(*target).filter(|_| self.spins) {
                        found.paths.push(Path {
                            events: taken.events.clone(),
                            conditions: taken.conditions.clone(),
                            registers: taken.registers.clone(),
                            spin: Some(spin),
                        });
                    }
                    if self.repeats(&taken, *target) {
                        return Ok(());
                    }
                    taken.jumps[at] += 1;
                    if taken.jumps[at] > self.bound {
                        found.bounded = true;
                        return Ok(());
                    }
                }
                return self.go_on(instruction, taken, walks);
            }
            Op::Exit => walk.at = usize::MAX,
        }
        self.go_on(instruction, walk, walks)
    }

    /// Whether the last iteration of a loop, which ends here, has no effect: it has only reads and fences,
    /// and leaves every register that matters as it was. Each execution that goes on from here is allowed
    /// without this iteration as well, and has the same final state: reads and fences only add to what the
    /// axioms forbid, if all accesses to a location have one size. So another walk stands for this one.
    fn repeats(&self, walk: &Walk, head: usize) -> bool {
        let (Some(read_later), Some(before)) = (&self.read_later, walk.heads.get(&head)) else {
            return false;
        };
        let same = |(now, before): (&Rc<Expr>, &Rc<Expr>)| Rc::ptr_eq(now, before) || now == before;
        let registers = walk.registers.iter().zip(&before.registers).map(same);
        walk.spin(head).is_some()
            && registers.zip(&read_later[head]).all(|(same, matters)| same || !matters)
            && (&walk.open, &walk.groups) == (&before.open, &before.groups)
    }

    fn go_on(&self, instruction: &Instruction, walk: Walk, walks: &mut Vec<Walk>) -> Result<(), Error> {
        if walk.events.len() > MOST_EVENTS {
            return Err(self.limit(Some(instruction), "has more than 128 events on one path"));
        }
        if walk.registers.iter().any(|value| value.nodes(MOST_NODES) > MOST_NODES) {
            return Err(self.limit(Some(instruction), "computes a value of more than 2000 operations"));
        }
        if walks.len() > MOST_PATHS {
            return Err(self.limit(Some(instruction), "has more than 65536 paths"));
        }
        walks.push(walk);
        Ok(())
    }

    fn order(&self, sem: Sem) -> Order {
        let of = |strong, acquire, release| Order { strong, acquire, release };
        match sem {
            Sem::Weak => of(None, false, false),
            Sem::Relaxed(scope) => of(Some(scope), false, false),
            Sem::Acquire(scope) => of(Some(scope), true, false),
            Sem::Release(scope) => of(Some(scope), false, true),
            Sem::AcqRel(scope) => of(Some(scope), true, true),
            Sem::Volatile | Sem::Unqualified(_) if !self.rules.has(Rule::OperationTypes) => {
                of(None, false, false)
            }
            Sem::Volatile => of(Some(Scope::Sys), false, false),
            Sem::Unqualified(scope) => of(Some(scope), false, false),
        }
    }

    /// Where an access can go: one walk for each location that a register may point to.
    fn places(
        &self,
        instruction: &Instruction,
        walk: Walk,
        address: &Address,
        ty: Option<Type>,
        elements: usize,
    ) -> Result<Vec<(Walk, Place)>, Error> {
        let base = walk.value(address.base);
        let fault = |why: String| Error::at(instruction.line, format!("`{}`: {why}", instruction.text));
        let place = |at: u64, depends: u128| {
            let (location, offset) = location_at(self.test, at)
                .ok_or_else(|| fault("the address is in no location".to_owned()))?;
            let of = &self.test.locations[location];
            // Without a type, the access is to one element.
            let ty = ty.unwrap_or(Type { size: of.element, ..Type::WORD });
            let whole = ty.size.saturating_mul(elements as u32);
            if offset + whole > of.bytes() {
                let (size, name) = (of.bytes(), &of.name);
                return Err(fault(format!(
                    "{whole} bytes at `{name}+{offset}` are outside of `{name}`, which has {size}"
                )));
            }
            if offset % whole.next_power_of_two() != 0 {
                return Err(fault(format!("{whole} bytes at `{}+{offset}` are misaligned", of.name)));
            }
            let physical = self.test.physical(location);
            let block = self.memory.block(physical, self.test.threads[self.thread].placement);
            Ok(Place { location, block, offset, ty, elements, depends })
        };
        #[allow(clippy::cast_sign_loss, reason = "addresses wrap")]
        let offset = address.offset as u64;
        if let Some(base) = base.constant() {
            return Ok(vec![(walk, place(base.wrapping_add(offset), 0)?)]);
        }
        let mut all = Vec::new();
        for (location, of) in self.test.locations.iter().enumerate() {
            for element in 0..of.elements {
                let at = address_of(location) + u64::from(element * of.element);
                let base_is = at.wrapping_sub(offset);
                let condition = Rc::new(Expr::Alu(
                    AluOp::Compare(Comparison::Eq),
                    Type::WORD,
                    base.clone(),
                    Rc::new(Expr::Const(base_is)),
                ));
                let mut walk = walk.clone();
                if walk.require(condition, true)
                    && let Ok(place) = place(at, base.reads())
                {
                    all.push((walk, place));
                }
            }
        }
        Ok(all)
    }

    /// The access of one element.
    fn access(&self, place: &Place, index: usize, part: u32, proxy: Proxy) -> Access {
        let size = if place.ty.packed { 2 } else { place.ty.size };
        let of = &self.test.locations[place.location];
        let element = match (place.ty.packed, place.elements) {
            (true, _) => Element::Packed,
            (false, 1) => Element::Whole,
            (false, _) => Element::Vector,
        };
        Access {
            block: place.block,
            offset: place.offset + index as u32 * place.ty.size + part * size,
            size,
            whole: (place.offset, place.ty.size * place.elements as u32),
            view: of.view,
            proxy,
            space: self.test.locations[self.test.physical(place.location)].space,
            element,
        }
    }

    /// A read of an element; its value.
    fn read(
        &self,
        walk: &mut Walk,
        at: usize,
        place: &Place,
        index: usize,
        proxy: Proxy,
        order: Order,
    ) -> Rc<Expr> {
        let mut value: Option<Rc<Expr>> = None;
        for part in 0..place.ty.parts() {
            let mut event = walk.event(self.thread, at, Kind::Read);
            event.strong = order.strong;
            event.acquire = order.acquire;
            event.access = Some(self.access(place, index, part, proxy));
            event.depends |= place.depends;
            let read = Rc::new(Expr::Read(walk.events.len()));
            walk.events.push(event);
            value = Some(match value {
                None => read,
                Some(low) => joined(low, read),
            });
        }
        value.unwrap_or_else(|| Rc::new(Expr::Const(0)))
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of an access")]
    fn write(
        &self,
        walk: &mut Walk,
        at: usize,
        place: &Place,
        index: usize,
        proxy: Proxy,
        order: Order,
        value: &Rc<Expr>,
    ) {
        for part in 0..place.ty.parts() {
            let mut event = walk.event(self.thread, at, Kind::Write);
            event.strong = order.strong;
            event.release = order.release;
            event.access = Some(self.access(place, index, part, proxy));
            let value = if part == 0 { value.clone() } else { upper(value) };
            event.depends |= place.depends | value.reads();
            event.value = Some(value);
            walk.events.push(event);
        }
    }

    /// An atomic operation: one walk, or two for a compare-and-swap that succeeds or fails.
    #[allow(clippy::too_many_arguments, reason = "the parts of an atomic operation")]
    fn atom(
        &self,
        mut walk: Walk,
        at: usize,
        place: &Place,
        proxy: Proxy,
        order: Order,
        op: AtomOp,
        dst: Option<Reg>,
        args: &[Operand],
    ) -> Vec<Walk> {
        let args: Vec<Rc<Expr>> = args.iter().map(|arg| walk.value(*arg)).collect();
        let unsigned = Type { signed: false, ..place.ty };
        let mut old_value: Option<Rc<Expr>> = None;
        let mut failed = None;
        for part in 0..place.ty.parts() {
            let mut event = walk.event(self.thread, at, Kind::Read);
            event.strong = order.strong;
            event.acquire = order.acquire;
            event.atomic = true;
            event.reduction = dst.is_none();
            event.access = Some(self.access(place, 0, part, proxy));
            event.depends |= place.depends;
            let read = walk.events.len();
            walk.events.push(event.clone());
            let old = Rc::new(Expr::Read(read));
            old_value = Some(match old_value {
                None => old.clone(),
                Some(low) => joined(low, old.clone()),
            });
            if op == AtomOp::Cas {
                let same = Expr::Alu(AluOp::Compare(Comparison::Eq), unsigned, old.clone(), args[0].clone());
                let same = Rc::new(same);
                let mut other = walk.clone();
                if other.require(same.clone(), false) {
                    failed = Some(other);
                }
                if !walk.require(same, true) {
                    break;
                }
            }
            let args: Vec<Rc<Expr>> =
                args.iter().map(|arg| if part == 0 { arg.clone() } else { upper(arg) }).collect();
            let value = match op {
                // It succeeds on this path.
                AtomOp::Cas => args[1].clone(),
                AtomOp::Alu(_) | AtomOp::Exch | AtomOp::Inc | AtomOp::Dec | AtomOp::AddHalf => {
                    Rc::new(Expr::Atom(op, place.ty, old, args))
                }
            };
            let mut write = walk.event(self.thread, at, Kind::Write);
            write.strong = order.strong;
            write.release = order.release;
            write.atomic = true;
            write.access = event.access;
            write.depends |= place.depends | value.reads() | if op == AtomOp::Cas { 1 << read } else { 0 };
            write.value = Some(value);
            write.other_half = Some(read);
            walk.events[read].other_half = Some(walk.events.len());
            walk.events.push(write);
        }
        let value = Rc::new(Expr::Extend(place.ty, old_value.unwrap_or_else(|| Rc::new(Expr::Const(0)))));
        let mut walks: Vec<Walk> = failed.into_iter().collect();
        walks.push(walk);
        if let Some(dst) = dst {
            for walk in &mut walks {
                walk.registers[dst.0] = value.clone();
            }
        }
        walks
    }

    /// `cp.async`: weak accesses in elements of at most 8 bytes, ordered by nothing before a wait.
    fn copy(
        &self,
        instruction: &Instruction,
        walk: &mut Walk,
        at: usize,
        to: &Address,
        from: &Address,
        bytes: u32,
    ) -> Result<(), Error> {
        let ty = Type { size: bytes.min(8), signed: false, packed: false };
        let elements = bytes.div_ceil(8) as usize;
        let weak = self.order(Sem::Weak);
        let place = |walk: &Walk, address: &Address| {
            let found = self.places(instruction, walk.clone(), address, Some(ty), elements)?;
            match <[(Walk, Place); 1]>::try_from(found) {
                Ok([(_, place)]) => Ok(place),
                Err(_) => Err(Error::at(
                    instruction.line,
                    format!("`{}`: the address of a copy must be a constant", instruction.text),
                )),
            }
        };
        let (to, from) = (place(walk, to)?, place(walk, from)?);
        let first = walk.events.len();
        for index in 0..elements {
            let value = self.read(walk, at, &from, index, Proxy::Generic, weak);
            self.write(walk, at, &to, index, Proxy::Generic, weak, &value);
        }
        for event in first..walk.events.len() {
            // Until a wait orders them.
            walk.events[event].done_at = Some(usize::MAX);
            walk.open.push(event);
        }
        Ok(())
    }
}

/// The target of an access.
struct Place {
    location: usize,
    block: usize,
    offset: u32,
    ty: Type,
    elements: usize,
    /// The reads that decide the address.
    depends: u128,
}

impl Type {
    /// Into how many events an element is split.
    fn parts(self) -> u32 {
        if self.packed { 2 } else { 1 }
    }
}

impl Walk {
    fn event(&self, thread: usize, instruction: usize, kind: Kind) -> Event {
        Event {
            thread,
            instruction,
            kind,
            strong: None,
            acquire: false,
            release: false,
            sc: false,
            access: None,
            value: None,
            other_half: None,
            atomic: false,
            reduction: false,
            depends: self.control,
            done_at: None,
            barrier: None,
        }
    }

    /// The iteration of a loop that ends here, if it only reads.
    fn spin(&self, head: usize) -> Option<Spin> {
        let first = self.seen.get(head).copied().flatten()?;
        let reads = |event: &Event| matches!(event.kind, Kind::Read | Kind::Fence | Kind::ProxyFence(_));
        self.events[first..].iter().all(reads).then_some(Spin { head, first })
    }

    fn value(&self, operand: Operand) -> Rc<Expr> {
        match operand {
            Operand::Reg(reg) => self.registers[reg.0].clone(),
            Operand::Const(_) | Operand::Address(_) => constant(operand),
        }
    }

    /// Restricts the path to the case that the expression is not 0 (`holds`), or is 0; the following events
    /// depend on it. Returns whether the case is possible.
    fn assume(&mut self, expr: Rc<Expr>, holds: bool) -> bool {
        self.control |= expr.reads();
        self.require(expr, holds)
    }

    /// The same without control dependency.
    fn require(&mut self, expr: Rc<Expr>, holds: bool) -> bool {
        if let Some(value) = expr.constant() {
            return (value != 0) == holds;
        }
        if let Some(known) = self.conditions.iter().find(|known| known.expr == expr) {
            return known.holds == holds;
        }
        self.conditions.push(Condition { expr, holds });
        true
    }

    /// One walk for each value of the range that the operand may have.
    fn fork_over(
        self,
        operand: Operand,
        range: std::ops::RangeInclusive<u64>,
    ) -> impl Iterator<Item = (Self, u64)> {
        let value = self.value(operand);
        let known = value.constant();
        let values: Vec<u64> = match known {
            Some(value) => vec![value],
            None => range.collect(),
        };
        values.into_iter().filter_map(move |one| {
            let mut walk = self.clone();
            let same = Expr::Alu(
                AluOp::Compare(Comparison::Eq),
                Type::WORD,
                value.clone(),
                Rc::new(Expr::Const(one)),
            );
            walk.assume(Rc::new(same), true).then_some((walk, one))
        })
    }
}

fn constant(operand: Operand) -> Rc<Expr> {
    Rc::new(Expr::Const(match operand {
        Operand::Const(value) => value,
        Operand::Address(location) => address_of(location),
        Operand::Reg(_) => 0,
    }))
}

fn fold(expr: Expr) -> Rc<Expr> {
    Rc::new(expr.constant().map_or(expr, Expr::Const))
}

/// The upper element of a packed value.
fn upper(value: &Rc<Expr>) -> Rc<Expr> {
    let unsigned = Type { size: 4, signed: false, packed: false };
    fold(Expr::Alu(AluOp::Shr, unsigned, value.clone(), Rc::new(Expr::Const(16))))
}

/// A packed value of its elements.
fn joined(low: Rc<Expr>, high: Rc<Expr>) -> Rc<Expr> {
    let unsigned = Type { size: 4, signed: false, packed: false };
    let high = Rc::new(Expr::Alu(AluOp::Shl, unsigned, high, Rc::new(Expr::Const(16))));
    Rc::new(Expr::Alu(AluOp::Or, unsigned, low, high))
}
