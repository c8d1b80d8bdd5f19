//! racecheck compared with the exhaustive checker: on each litmus test without loops, the detector finds a
//! race in some interleaving if and only if the model has one in some execution.
//!
//! The threads of a test are interleaved at random, one instruction at a time, on one memory, as the machine
//! does, and each interleaving is reported to a new detector, with the warps and lanes that the test names.
//! [`STUCK`] lists the tests where the results must differ.

use super::detect::Detector;
use super::facts::{At, Where};
use super::order::{Kind, Op};
use ptx_model::test::{
    Address, AluOp, AtomOp, BarrierKind, Comparison, Location, Op as Code, Operand, Placement, Proxy,
    Reduction, Reg, Scope, Sem, Space, Test, Thread, Type,
};
use std::collections::HashMap;

/// Interleavings of each test.
const RUNS: u64 = 300;

/// Random tests.
const RANDOM: u64 = 600;
/// From the shared memory of a CTA to that of the next.
const APART: u64 = 0x10_0000;

/// Tests whose races no interleaving shows: their threads wait at barriers that nothing completes, which the
/// model does not.
const STUCK: &[&str] = &["SB-bar-other-number"];

/// What a test asks for that is not modelled here.
fn is_modelled(test: &Test) -> bool {
    let simple = |thread: &Thread| {
        matches!(thread.placement, Placement::Device { gpu: 0, .. })
            && thread.code.iter().enumerate().all(|(at, instruction)| match &instruction.op {
                Code::Load { proxy, .. } | Code::Store { proxy, .. } | Code::Atom { proxy, .. } => {
                    *proxy == Proxy::Generic
                }
                Code::ProxyFence(_) | Code::Copy { .. } | Code::CommitGroup | Code::WaitGroup(_) => false,
                Code::Branch { target, .. } => *target > at,
                Code::Barrier { .. } | Code::WarpSync { .. } => true,
                Code::Fence { .. }
                | Code::Alu { .. }
                | Code::Mov { .. }
                | Code::Select { .. }
                | Code::Exit => true,
            })
    };
    test.threads.iter().all(simple) && test.locations.iter().all(|location| location.alias.is_none())
}

/// A test that is being run.
struct Run<'a> {
    test: &'a Test,
    detector: Detector,
    sites: HashMap<Op, u32>,
    memory: HashMap<u64, u8>,
    registers: Vec<Vec<u64>>,
    next: Vec<usize>,
    waits: Vec<Option<Wait>>,
    /// By CTA and number: threads that have arrived.
    arrived: HashMap<(u32, u32), Vec<Arrival>>,
    bases: Vec<u64>,
    /// Gives the results that are unpredictable.
    seed: u64,
}

/// What a thread waits at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Cta { cta: u32, id: u32, count: Option<u32> },
    Warp { mask: u32 },
}

/// A thread that has arrived, and its predicate if it reduces.
type Arrival = (usize, Option<Predicate>);

/// A thread's part of a reduction, and whether its predicate holds.
#[derive(Clone, Copy)]
struct Predicate {
    reduction: Reduction,
    holds: bool,
}

fn cta_of(thread: &Thread) -> u32 {
    match thread.placement {
        Placement::Device { cta, .. } => cta,
        Placement::Host => 0,
    }
}

impl<'a> Run<'a> {
    fn new(test: &'a Test, seed: u64) -> Self {
        let ctas = test.threads.iter().map(cta_of).max().unwrap_or(0) + 1;
        let mut detector = Detector::new(ctas.into());
        for cta in 0..ctas {
            let existing = |(first, _): (usize, &Thread)| {
                let own = (0..test.threads.len()).filter(|thread| test.warp_of(*thread) == first);
                own.fold(0, |mask, thread| mask | 1 << test.lane_of(thread))
            };
            let warps: Vec<u32> = warps_of(test, cta).map(existing).collect();
            detector.cta_begins(cta, cta.into(), &warps, (0, 0));
        }
        let bases: Vec<u64> = (0..test.locations.len() as u64).map(|at| 0x1000 + at * 0x100).collect();
        let mut run = Self {
            test,
            detector,
            sites: HashMap::new(),
            memory: HashMap::new(),
            registers: Vec::new(),
            next: vec![0; test.threads.len()],
            waits: vec![None; test.threads.len()],
            arrived: HashMap::new(),
            bases,
            seed,
        };
        for (at, location) in test.locations.iter().enumerate() {
            for (element, value) in location.init.iter().enumerate() {
                let value = value.map_or(0, |value| run.value(&[], value));
                let address = run.bases[at] + element as u64 * u64::from(location.element);
                // Shared memory is another one for each CTA.
                let copies = if location.space == Space::Shared { ctas.into() } else { 1 };
                for copy in 0..copies {
                    run.write(address + copy * APART, location.element, value);
                }
            }
        }
        run.registers = test
            .threads
            .iter()
            .map(|thread| thread.init.iter().map(|value| run.value(&[], *value)).collect())
            .collect();
        run
    }

    fn value(&self, registers: &[u64], operand: Operand) -> u64 {
        match operand {
            Operand::Const(value) => value,
            Operand::Reg(Reg(at)) => registers.get(at).copied().unwrap_or(0),
            Operand::Address(location) => self.bases[location],
        }
    }

    fn read(&self, address: u64, bytes: u32) -> u64 {
        (0..u64::from(bytes)).fold(0, |value, at| {
            value | u64::from(self.memory.get(&(address + at)).copied().unwrap_or(0)) << (8 * at)
        })
    }

    fn write(&mut self, address: u64, bytes: u32, value: u64) {
        for at in 0..u64::from(bytes) {
            self.memory.insert(address + at, (value >> (8 * at)) as u8);
        }
    }

    /// Threads that can execute an instruction.
    fn ready(&self) -> Vec<usize> {
        let can = |at: &usize| self.waits[*at].is_none() && !self.has_ended(*at);
        (0..self.test.threads.len()).filter(can).collect()
    }

    fn has_ended(&self, thread: usize) -> bool {
        self.waits[thread].is_none() && self.next[thread] >= self.test.threads[thread].code.len()
    }

    /// Where a thread is, which has not ended before the instruction that it executes.
    fn at(&self, thread: usize) -> At {
        let (test, warp) = (self.test, self.test.warp_of(thread));
        let live = test.named_by(warp, u32::MAX).filter(|other| *other == thread || !self.has_ended(*other));
        let slot = cta_of(&test.threads[thread]);
        let number = warps_of(test, slot).position(|(first, _)| first == warp).expect("a warp of the CTA");
        At { slot, warp: number as u8, live: live.fold(0, |mask, other| mask | 1 << test.lane_of(other)) }
    }

    fn lane(&self, thread: usize) -> u32 {
        1 << self.test.lane_of(thread)
    }

    fn access(&mut self, thread: usize, kind: Kind, sem: Sem, ty: Type, address: u64, elements: usize) {
        let (strong, scope) = match sem {
            Sem::Weak => (false, Scope::Cta),
            Sem::Relaxed(scope) | Sem::Acquire(scope) | Sem::Release(scope) | Sem::AcqRel(scope) => {
                (true, scope)
            }
            Sem::Unqualified(scope) => (true, scope),
            Sem::Volatile => (true, Scope::Sys),
        };
        let op = Op {
            kind,
            strong,
            wide: scope != Scope::Cta,
            acquire: kind != Kind::Store && matches!(sem, Sem::Acquire(_) | Sem::AcqRel(_)),
            release: kind != Kind::Load && matches!(sem, Sem::Release(_) | Sem::AcqRel(_)),
            bytes: ty.size as u8,
            copy: false,
            collective: false,
            packed: ty.packed,
        };
        let detector = &mut self.detector;
        let site = *self.sites.entry(op).or_insert_with(|| detector.site(op));
        let place = Where {
            lanes: self.lane(thread),
            addresses: &[address; 32],
            chosen: (1 << elements.max(1)) as u8 - 1,
            agree: true,
        };
        let at = self.at(thread);
        self.detector.access(at, site, &place);
    }

    /// Executes the next instruction of a thread.
    fn step(&mut self, thread: usize) {
        let test = self.test;
        let instruction = &test.threads[thread].code[self.next[thread]];
        self.next[thread] += 1;
        let registers = self.registers[thread].clone();
        if let Some((Reg(guard), wanted)) = instruction.guard
            && (registers[guard] != 0) != wanted
        {
            return;
        }
        match &instruction.op {
            Code::Load { sem, ty, dst, address, .. } => {
                let ty = self.ty(*ty, address, &registers);
                let from = self.address(thread, address, &registers);
                self.access(thread, Kind::Load, *sem, ty, from, dst.len());
                for (element, Reg(dst)) in dst.iter().enumerate() {
                    let value = self.read(from + element as u64 * u64::from(ty.size), ty.size);
                    self.registers[thread][*dst] = extended(value, ty);
                }
            }
            Code::Store { sem, ty, src, address, .. } => {
                let ty = self.ty(*ty, address, &registers);
                let to = self.address(thread, address, &registers);
                self.access(thread, Kind::Store, *sem, ty, to, src.len());
                for (element, src) in src.iter().enumerate() {
                    let value = self.value(&registers, *src);
                    self.write(to + element as u64 * u64::from(ty.size), ty.size, value);
                }
            }
            Code::Atom { sem, ty, op, dst, address, args, .. } => {
                let ty = self.ty(*ty, address, &registers);
                let at = self.address(thread, address, &registers);
                let old = extended(self.read(at, ty.size), ty);
                let arg = |i: usize| args.get(i).map_or(0, |arg| self.value(&registers, *arg));
                let cut = |value: u64| if ty.size == 8 { value } else { value & ((1 << (8 * ty.size)) - 1) };
                let new = match op {
                    AtomOp::Alu(op) => Some(alu(*op, ty, old, arg(0))),
                    AtomOp::Exch => Some(arg(0)),
                    AtomOp::Cas => (cut(old) == cut(arg(0))).then(|| arg(1)),
                    AtomOp::Inc => Some(if cut(old) >= cut(arg(0)) { 0 } else { old + 1 }),
                    AtomOp::Dec => Some(if old == 0 || cut(old) > cut(arg(0)) { arg(0) } else { old - 1 }),
                    AtomOp::AddHalf => Some(old),
                };
                let kind = if new.is_some() { Kind::Rmw } else { Kind::Load };
                self.access(thread, kind, *sem, ty, at, 1);
                if let Some(new) = new {
                    self.write(at, ty.size, new);
                }
                if let Some(Reg(dst)) = dst {
                    self.registers[thread][*dst] = old;
                }
            }
            Code::Fence { sc, scope } => {
                let (at, lane) = (self.at(thread), self.lane(thread));
                self.detector.fence(at, lane, *sc, *scope != Scope::Cta);
            }
            Code::Barrier { kind, id, count, reduction, .. } => {
                let id = self.value(&registers, *id) as u32;
                let count = count.map(|count| self.value(&registers, count) as u32);
                let predicate = reduction.map(|reduction| {
                    let (operand, wanted) = reduction.predicate;
                    Predicate { reduction, holds: (self.value(&registers, operand) != 0) == wanted }
                });
                self.arrive(thread, *kind, id, count, predicate);
            }
            Code::WarpSync { mask } => {
                let mask = self.value(&registers, *mask) as u32;
                self.waits[thread] = Some(Wait::Warp { mask });
            }
            Code::Alu { op, ty, dst, a, b } => {
                let value = alu(*op, *ty, self.value(&registers, *a), self.value(&registers, *b));
                self.registers[thread][dst.0] = value;
            }
            Code::Mov { dst, src } => self.registers[thread][dst.0] = self.value(&registers, *src),
            Code::Select { dst, a, b, p } => {
                let chosen = if registers[p.0] != 0 { *a } else { *b };
                self.registers[thread][dst.0] = self.value(&registers, chosen);
            }
            Code::Branch { when, target } => {
                let taken = when.is_none_or(|(comparison, a, b)| {
                    compare(comparison, Type::WORD, self.value(&registers, a), self.value(&registers, b))
                });
                if taken {
                    self.next[thread] = *target;
                }
            }
            Code::Exit => self.next[thread] = test.threads[thread].code.len(),
            Code::ProxyFence(_) | Code::Copy { .. } | Code::CommitGroup | Code::WaitGroup(_) => {}
        }
        self.complete();
    }

    /// Where a thread finds an address.
    fn address(&self, thread: usize, address: &Address, registers: &[u64]) -> u64 {
        let at = self.value(registers, address.base).wrapping_add_signed(address.offset);
        let shared = self.location(at).space == Space::Shared;
        at + if shared { u64::from(cta_of(&self.test.threads[thread])) * APART } else { 0 }
    }

    fn location(&self, address: u64) -> &Location {
        &self.test.locations[self.bases.iter().rposition(|base| *base <= address).unwrap_or(0)]
    }

    fn ty(&self, ty: Option<Type>, address: &Address, registers: &[u64]) -> Type {
        ty.unwrap_or_else(|| {
            let at = self.value(registers, address.base).wrapping_add_signed(address.offset);
            Type { size: self.location(at).element, signed: true, packed: false }
        })
    }

    fn arrive(
        &mut self,
        thread: usize,
        kind: BarrierKind,
        id: u32,
        count: Option<u32>,
        predicate: Option<Predicate>,
    ) {
        let cta = cta_of(&self.test.threads[thread]);
        let waits = kind == BarrierKind::Sync;
        let (at, lane) = (self.at(thread), self.lane(thread));
        self.detector.barrier_arrives(at, id, lane, if waits { lane } else { 0 });
        self.arrived.entry((cta, id)).or_default().push((thread, predicate));
        if waits {
            self.waits[thread] = Some(Wait::Cta { cta, id, count });
        }
        self.counts(cta, id, count);
    }

    /// Lets a counted barrier complete. Counts are of threads, in litmus tests of one a warp.
    fn counts(&mut self, cta: u32, id: u32, count: Option<u32>) {
        let there = self.arrived[&(cta, id)].len() as u32;
        if count.is_some_and(|count| there >= count || there * 32 >= count && count >= 32) {
            self.release(cta, id);
        }
    }

    /// Lets barriers of whole CTAs and of warps complete, until none can.
    fn complete(&mut self) {
        let threads = self.test.threads.len();
        while (0..threads).any(|thread| self.completes(thread)) {}
    }

    /// Lets the barrier complete that a thread waits at, if it can.
    fn completes(&mut self, thread: usize) -> bool {
        let test = self.test;
        match self.waits[thread] {
            Some(Wait::Cta { cta, id, count: None }) => {
                let waits = |at: usize| self.is_at(at, cta, id);
                let done = |at: usize| cta_of(&test.threads[at]) != cta || waits(at) || self.has_ended(at);
                let complete = (0..test.threads.len()).all(done);
                if complete {
                    self.release(cta, id);
                }
                complete
            }
            Some(wait @ Wait::Warp { mask }) => {
                let named: Vec<usize> = test.named_by(test.warp_of(thread), mask).collect();
                let complete = named.iter().all(|at| self.waits[*at] == Some(wait) || self.has_ended(*at));
                if complete {
                    let here = named.iter().filter(|at| self.waits[**at].is_some());
                    let here: Vec<usize> = here.copied().collect();
                    let lanes = here.iter().fold(0, |mask, at| mask | self.lane(*at));
                    let at = self.at(thread);
                    self.detector.warp_syncs(at, lanes);
                    here.iter().for_each(|at| self.waits[*at] = None);
                }
                complete
            }
            Some(Wait::Cta { count: Some(_), .. }) | None => false,
        }
    }

    fn is_at(&self, thread: usize, cta: u32, id: u32) -> bool {
        matches!(self.waits[thread], Some(Wait::Cta { cta: c, id: i, .. }) if (c, i) == (cta, id))
    }

    fn release(&mut self, cta: u32, id: u32) {
        let threads = self.arrived.remove(&(cta, id)).unwrap_or_default();
        let Some((first, _)) = threads.first() else { return };
        let at = self.at(*first);
        self.detector.barrier_completes(at, id);
        let op = |predicate: &Option<Predicate>| predicate.map(|p| p.reduction.op);
        let mixed = threads.iter().any(|(_, predicate)| op(predicate) != op(&threads[0].1));
        let holding = threads.iter().filter(|(_, predicate)| predicate.is_some_and(|p| p.holds)).count();
        let number = threads.len() as u64;
        for (thread, predicate) in &threads {
            if self.is_at(*thread, cta, id) {
                let (at, lane) = (self.at(*thread), self.lane(*thread));
                self.waits[*thread] = None;
                self.detector.barrier_releases(at, id, lane);
            }
            if let Some(Predicate { reduction, .. }) = predicate {
                self.seed = next(self.seed);
                self.registers[*thread][reduction.dst.0] = if mixed {
                    (self.seed >> 33) % (reduction.op.most(number) + 1)
                } else {
                    reduction.op.result(holding as u64, number)
                };
            }
        }
    }
}

/// The warps of a CTA, by their first threads.
fn warps_of(test: &Test, cta: u32) -> impl Iterator<Item = (usize, &Thread)> {
    let first = move |(at, thread): &(usize, &Thread)| cta_of(thread) == cta && test.warp_of(*at) == *at;
    test.threads.iter().enumerate().filter(first)
}

/// The next of a sequence of numbers.
fn next(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

fn extended(value: u64, ty: Type) -> u64 {
    let shift = 64 - 8 * ty.size;
    if ty.signed { (((value << shift) as i64) >> shift) as u64 } else { value }
}

fn compare(comparison: Comparison, ty: Type, a: u64, b: u64) -> bool {
    let order = if ty.signed { (a as i64).cmp(&(b as i64)) } else { a.cmp(&b) };
    match comparison {
        Comparison::Eq => order.is_eq(),
        Comparison::Ne => order.is_ne(),
        Comparison::Lt => order.is_lt(),
        Comparison::Le => order.is_le(),
        Comparison::Gt => order.is_gt(),
        Comparison::Ge => order.is_ge(),
    }
}

fn alu(op: AluOp, ty: Type, a: u64, b: u64) -> u64 {
    match op {
        AluOp::Add => a.wrapping_add(b),
        AluOp::Sub => a.wrapping_sub(b),
        AluOp::Mul => a.wrapping_mul(b),
        AluOp::Div => a.checked_div(b).unwrap_or(u64::MAX),
        AluOp::Rem => a.checked_rem(b).unwrap_or(a),
        AluOp::And => a & b,
        AluOp::Or => a | b,
        AluOp::Xor => a ^ b,
        AluOp::Shl => a.checked_shl(b as u32).unwrap_or(0),
        AluOp::Shr => a.checked_shr(b as u32).unwrap_or(0),
        AluOp::Min => {
            if compare(Comparison::Lt, ty, a, b) {
                a
            } else {
                b
            }
        }
        AluOp::Max => {
            if compare(Comparison::Lt, ty, a, b) {
                b
            } else {
                a
            }
        }
        AluOp::Compare(comparison) => u64::from(compare(comparison, ty, a, b)),
    }
}

/// Whether some interleaving has a race.
fn races(test: &Test) -> bool {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..RUNS).any(|_| {
        let mut run = Run::new(test, state);
        loop {
            let ready = run.ready();
            if ready.is_empty() {
                break;
            }
            state = next(state);
            run.step(ready[(state >> 33) as usize % ready.len()]);
        }
        !run.detector.races().is_empty()
    })
}

#[test]
fn litmus_tests_race_where_the_model_has_a_race() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/litmus");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the tests are there")
        .map(|e| e.expect("an entry").path())
        .collect();
    paths.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "litmus")) {
        let text = std::fs::read_to_string(path).expect("a readable file");
        let test = ptx_model::parse(&text).expect("a litmus test");
        if !is_modelled(&test) || STUCK.contains(&test.name.as_str()) {
            continue;
        }
        let Ok(expected) = ptx_model::races(&test, &ptx_model::Options::default()) else { continue };
        count += 1;
        let found = races(&test);
        if found == expected.is_empty() {
            let what: Vec<String> = expected.iter().map(|race| race.describe(&test)).collect();
            wrong.push(format!("{}: found {found}, the model has {what:?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 100, "only {count} tests");
}

/// A choice of a sequence that a seed fixes.
struct Choices(u64);

impl Choices {
    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        self.0 = next(self.0);
        list[(self.0 >> 33) as usize % list.len()]
    }
}

/// A random test: two or three threads in one or two CTAs, each with up to four instructions on two
/// locations.
fn random_test(seed: u64) -> String {
    let mut choices = Choices(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let threads = if choices.of(&["2", "3"]) == "2" { 2 } else { 3 };
    let places: Vec<&str> = (0..threads).map(|_| choices.of(&["@cta 0,gpu 0", "@cta 1,gpu 0"])).collect();
    let mut text = format!("PTX random-{seed}\n{{ x=0; y=0; }}\n");
    let head: Vec<String> = places.iter().enumerate().map(|(at, place)| format!("P{at}{place}")).collect();
    text += &format!("{} ;\n", head.join(" | "));
    for row in 0..4 {
        let cells: Vec<String> = (0..threads)
            .map(|_| {
                let (place, scope) = (choices.of(&["x", "y"]), choices.of(&["cta", "gpu", "sys"]));
                match choices.of(&["ld", "st", "weak", "atom", "fence", "bar", "none"]) {
                    "ld" => format!("ld.{}.{scope} r{row}, {place}", choices.of(&["relaxed", "acquire"])),
                    "st" => {
                        format!("st.{}.{scope} {place}, {}", choices.of(&["relaxed", "release"]), row + 1)
                    }
                    "weak" if choices.of(&["ld", "st"]) == "ld" => format!("ld.weak r{row}, {place}"),
                    "weak" => format!("st.weak {place}, {}", row + 1),
                    "atom" => {
                        let sem = choices.of(&["relaxed", "acquire", "release", "acq_rel"]);
                        format!("atom.{sem}.{scope}.add r{row}, {place}, 1")
                    }
                    "fence" => format!("fence.{}.{scope}", choices.of(&["sc", "acq_rel"])),
                    _ => String::new(),
                }
            })
            .collect();
        text += &format!("{} ;\n", cells.join(" | "));
    }
    text + "exists (x=0)\n"
}

#[test]
fn random_tests_race_where_the_model_has_a_race() {
    let (mut with, mut without, mut wrong) = (0, 0, Vec::new());
    for seed in 0..RANDOM {
        let text = random_test(seed);
        let test = ptx_model::parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        let expected = ptx_model::races(&test, &ptx_model::Options::default()).expect("a small test");
        if expected.is_empty() {
            without += 1
        } else {
            with += 1
        }
        if races(&test) == expected.is_empty() {
            let what: Vec<String> = expected.iter().map(|race| race.describe(&test)).collect();
            wrong.push(format!("{text}the model has {what:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {RANDOM}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(with > 50 && without > 50, "{with} with a race and {without} without");
}
