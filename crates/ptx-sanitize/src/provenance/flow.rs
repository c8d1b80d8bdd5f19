//! Provenance of registers by data flow, before a kernel runs: the basis on which native code checks the
//! accesses of a kernel for memcheck.
//!
//! For each register that memcheck tracks, and each place of the kernel, the object that its value is based
//! on, by the same rules as at run time. Only kernels of which this is known for every address run in native
//! code; the others need the interpreter ([`Flow::of`] says why).
//!
//! A parameter of 64 bits is taken for an address if an access uses it as one, and for a number otherwise.
//! Whether the parameters of a launch agree is for [`Flow::fits`] to say.
//!
//! Invariant: where a register has an object here, it has that object at run time, or none is known there.

use super::tracked;
use super::{Rule, rule};
use ptx::check::module::VarId;
use ptx::ir::{Addr, Base, Dst, Function, Inst, Program, Reg, RegClass, Src, Terminator};
use ptx::isa::{Class, Op, Space};
use ptx_exec::watch::{AccessObjects, InstObjects, KernelFacts, Object};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the value of a register is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// No address.
    Plain,
    /// Addresses, but not the address of one object.
    Mixed,
    /// The origin with that number.
    Of(u32),
    /// It differs between the paths that lead here.
    Varies,
}

impl Known {
    fn join(self, other: Self) -> Self {
        if self == other { self } else { Known::Varies }
    }
}

/// What makes an address that has an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The address of a variable of the program.
    Variable(VarId),
    /// The address of a local variable or of a parameter: index of [`Function::objects`].
    Local(u32),
    /// The value of the parameter of 64 bits at this offset.
    Parameter(u64),
}

/// Provenance in a kernel.
#[derive(Debug)]
pub(super) struct Flow {
    /// The tracked registers, in order.
    registers: Vec<Reg>,
    /// By block, what the tracked registers are based on at its start.
    entries: Vec<Vec<Known>>,
    pub(super) origins: Vec<Origin>,
    /// Offsets of parameters of 64 bits that are taken for numbers.
    numbers: BTreeSet<u64>,
    /// Whether an access of shared memory may have an address without an object.
    has_free_shared: bool,
    objects: Arc<AccessObjects>,
}

/// A number of an allocation that no launch has: the interpreter executes the access.
const NO_ALLOCATION: u32 = u32::MAX;

impl Flow {
    /// Provenance in a kernel.
    ///
    /// # Errors
    /// Why it is not known for every access.
    pub(super) fn of(kernel: &KernelFacts<'_>) -> Result<Self, String> {
        let Some(function) = kernel.program.functions.get(kernel.kernel.0 as usize) else {
            return Err("memcheck does not know the kernel".to_owned());
        };
        if function.blocks.iter().any(|block| matches!(block.term, Terminator::Call(_))) {
            return Err("memcheck follows addresses through its calls".to_owned());
        }
        let registers: Vec<Reg> = tracked::tracked_registers(function).into_iter().collect();
        // Which parameters are addresses is not known before. The first analysis takes all that it can for
        // addresses, and tells which of them accesses use.
        let guess = Analysis::new(kernel, function, &registers, None).run();
        let used = guess.addresses_of_accesses();
        let analysis = Analysis::new(kernel, function, &registers, Some(&used)).run();
        analysis.finish()
    }

    /// The objects of the accesses.
    pub(super) fn objects(&self) -> &Arc<AccessObjects> {
        &self.objects
    }

    /// The tracked registers with what they are based on before an instruction.
    pub(super) fn before(
        &self,
        function: &Function,
        block: u32,
        index: u32,
    ) -> impl Iterator<Item = (Reg, Known)> {
        let mut state = self.entries.get(block as usize).cloned().unwrap_or_default();
        let mut origins = self.origins.clone();
        let addresses: BTreeSet<u64> = origins.iter().filter_map(parameter).collect();
        if let Some(block) = function.blocks.get(block as usize) {
            let mut step = Step {
                registers: &self.registers,
                origins: &mut origins,
                addresses: Some(&addresses),
                numbers: &mut BTreeSet::new(),
                objects: &function.objects,
            };
            for inst in block.insts.iter().take(index as usize) {
                step.execute(&mut state, inst);
            }
        }
        self.registers.iter().copied().zip(state)
    }

    /// Whether the parameters of a launch are what they were taken for. `is_address`: whether a value lies in
    /// an allocation. `has_gaps`: whether bytes of shared memory belong to no variable.
    pub(super) fn fits(&self, params: &[u8], is_address: impl Fn(u64) -> bool, has_gaps: bool) -> bool {
        let number = |offset: &u64| !is_address(value_at(params, *offset));
        self.numbers.iter().all(number) && !(has_gaps && self.has_free_shared)
    }
}

/// The parameter of 64 bits at an offset.
pub(super) fn value_at(params: &[u8], offset: u64) -> u64 {
    let at = usize::try_from(offset).unwrap_or(usize::MAX);
    let bytes = params.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn parameter(origin: &Origin) -> Option<u64> {
    match origin {
        Origin::Parameter(offset) => Some(*offset),
        Origin::Variable(_) | Origin::Local(_) => None,
    }
}

/// The data-flow analysis of a kernel.
struct Analysis<'a> {
    program: &'a Program,
    variables: &'a [u64],
    function: &'a Function,
    registers: &'a [Reg],
    origins: Vec<Origin>,
    /// The parameters that are addresses, by offset; `None`: all that are used as such.
    addresses: Option<&'a BTreeSet<u64>>,
    numbers: BTreeSet<u64>,
    entries: Vec<Vec<Known>>,
}

impl<'a> Analysis<'a> {
    fn new(
        kernel: &KernelFacts<'a>,
        function: &'a Function,
        registers: &'a [Reg],
        addresses: Option<&'a BTreeSet<u64>>,
    ) -> Self {
        Self {
            program: kernel.program,
            variables: kernel.variables,
            function,
            registers,
            origins: Vec::new(),
            addresses,
            numbers: BTreeSet::new(),
            entries: vec![Vec::new(); function.blocks.len()],
        }
    }

    fn step(&mut self) -> Step<'_> {
        Step {
            registers: self.registers,
            origins: &mut self.origins,
            addresses: self.addresses,
            numbers: &mut self.numbers,
            objects: &self.function.objects,
        }
    }

    /// Finds the state at the start of each block. At the start of the kernel no register is an address.
    fn run(mut self) -> Self {
        let function = self.function;
        if self.entries.is_empty() {
            return self;
        }
        self.entries[0] = vec![Known::Plain; self.registers.len()];
        let mut work = BTreeSet::from([0]);
        while let Some(at) = work.pop_first() {
            let mut state = self.entries[at].clone();
            let block = &function.blocks[at];
            let mut step = self.step();
            for inst in block.insts.iter().chain(block.term.inst()) {
                step.execute(&mut state, inst);
            }
            for next in block.term.successors() {
                let next = next.0 as usize;
                let entry = &mut self.entries[next];
                let joined: Vec<Known> = match entry.len() == state.len() {
                    true => entry.iter().zip(&state).map(|(old, new)| old.join(*new)).collect(),
                    false => state.clone(),
                };
                if *entry != joined {
                    *entry = joined;
                    work.insert(next);
                }
            }
        }
        self
    }

    /// Calls `f` with each instruction that is reached, its place, and what its sources are based on.
    fn each(&mut self, mut f: impl FnMut(&mut Step<'_>, &[Known], &Inst, (usize, usize))) {
        let function = self.function;
        for (at, block) in function.blocks.iter().enumerate() {
            let mut state = self.entries[at].clone();
            if state.len() != self.registers.len() {
                continue;
            }
            for (index, inst) in block.insts.iter().chain(block.term.inst()).enumerate() {
                let mut step = self.step();
                f(&mut step, &state, inst, (at, index));
                step.execute(&mut state, inst);
            }
        }
    }

    /// The parameters that addresses of accesses are based on.
    fn addresses_of_accesses(mut self) -> BTreeSet<u64> {
        let mut used = BTreeSet::new();
        self.each(|step, state, inst, _| {
            for operand in operands(inst) {
                if let Known::Of(origin) = step.source(state, inst, &inst.srcs[operand]) {
                    used.extend(parameter(&step.origins[origin as usize]));
                }
            }
        });
        used
    }

    fn finish(mut self) -> Result<Flow, String> {
        let (program, variables, function) = (self.program, self.variables, self.function);
        let line = |inst: &Inst| program.source.line(inst.span);
        let blocks = function.blocks.iter();
        let mut found: Vec<Vec<InstObjects>> =
            blocks.map(|block| vec![InstObjects::default(); block.insts.len() + 1]).collect();
        let (mut why, mut has_free_shared) = (None, false);
        self.each(|step, state, inst, (at, index)| {
            if let Some(value) = stored(inst)
                && matches!(step.source(state, inst, value), Known::Of(_) | Known::Varies)
            {
                why.get_or_insert_with(|| {
                    format!("memcheck follows the address stored in line {}", line(inst))
                });
            }
            let mut objects = Vec::new();
            for operand in operands(inst) {
                let src = &inst.srcs[operand];
                let object = match step.source(state, inst, src) {
                    Known::Plain | Known::Mixed => {
                        has_free_shared |= matches!(inst.mods.space(), Space::Shared | Space::Generic);
                        None
                    }
                    Known::Varies => {
                        why.get_or_insert_with(|| {
                            format!("memcheck follows the address in line {}, which varies", line(inst))
                        });
                        None
                    }
                    Known::Of(origin) => match step.origins[origin as usize] {
                        Origin::Local(local)
                            if function.objects[local as usize].base == Base::KernelParam =>
                        {
                            let object = &function.objects[local as usize];
                            if !reads_within(inst, src, (object.offset, object.bytes)) {
                                why.get_or_insert_with(|| {
                                    format!("memcheck checks the access to `{}`", object.name)
                                });
                            }
                            None
                        }
                        Origin::Local(local) => {
                            let object = &function.objects[local as usize];
                            Some(Object::Local { start: object.offset, bytes: object.bytes })
                        }
                        Origin::Variable(id) => Some(variable(program, variables, id, origin)),
                        Origin::Parameter(_) => Some(Object::Allocation(origin)),
                    },
                };
                objects.push(object);
            }
            found[at][index] = match objects[..] {
                [shared, global] => InstObjects::Copy { shared, global },
                [object, ..] => InstObjects::One(object),
                [] => InstObjects::default(),
            };
        });
        if let Some(why) = why {
            return Err(why);
        }
        let allocations = self.origins.len() as u32;
        Ok(Flow {
            registers: self.registers.to_vec(),
            entries: self.entries,
            origins: self.origins,
            numbers: self.numbers,
            has_free_shared,
            objects: Arc::new(AccessObjects { blocks: found, allocations }),
        })
    }
}

/// The object of a variable's address.
fn variable(program: &Program, variables: &[u64], VarId(id): VarId, origin: u32) -> Object {
    let start = variables.get(id as usize).copied();
    match (program.variables.get(id as usize), start) {
        (Some(variable), Some(start)) if variable.space == Space::Shared => {
            Object::Shared { start, bytes: (variable.bytes > 0).then_some(variable.bytes) }
        }
        (Some(_), Some(_)) => Object::Allocation(origin),
        _ => Object::Allocation(NO_ALLOCATION),
    }
}

/// Whether an instruction reads a parameter at a constant address, and all of it lies in the parameter.
fn reads_within(inst: &Inst, src: &Src, (start, bytes): (u64, u64)) -> bool {
    let Src::Addr(Addr { base: Base::KernelParam, index: None, offset }) = src else { return false };
    let size = u64::from(inst.mods.ty().bits() / 8) * u64::from(inst.mods.vec());
    let past = u64::try_from(*offset).ok().and_then(|offset| offset.checked_sub(start));
    inst.op == Op::Ld && past.is_some_and(|past| past.saturating_add(size) <= bytes)
}

/// The sources that are addresses of memory that the instruction accesses.
fn operands(inst: &Inst) -> impl Iterator<Item = usize> {
    let by_register = matches!(
        inst.op,
        Op::Ld
            | Op::LdNc
            | Op::Ldu
            | Op::St
            | Op::Atom
            | Op::Red
            | Op::CpAsync
            | Op::Ldmatrix
            | Op::Stmatrix
            | Op::WmmaLoad
            | Op::WmmaStore
    );
    let count = if inst.op == Op::CpAsync { 2 } else { 1 };
    let names = inst.row.row().class != Class::Lane && inst.mods.space() != Space::Tex;
    let is_address = move |src: &Src| match src {
        Src::Addr(_) => names,
        Src::Reg(_) => by_register,
        Src::Absent | Src::Imm(_) | Src::Sreg(..) | Src::Not(_) | Src::Video(_) => false,
    };
    inst.srcs.iter().take(count).enumerate().filter(move |(_, src)| is_address(src)).map(|(at, _)| at)
}

/// The register that an instruction stores as a whole: a later load has its provenance.
fn stored(inst: &Inst) -> Option<&Src> {
    match &inst.srcs[..] {
        [_, value @ Src::Reg(reg)] if inst.op == Op::St => {
            matches!(reg.class, RegClass::R32 | RegClass::R64).then_some(value)
        }
        _ => None,
    }
}

/// The execution of instructions on what registers are based on.
struct Step<'a> {
    registers: &'a [Reg],
    origins: &'a mut Vec<Origin>,
    addresses: Option<&'a BTreeSet<u64>>,
    numbers: &'a mut BTreeSet<u64>,
    objects: &'a [ptx::ir::Object],
}

impl Step<'_> {
    fn origin(&mut self, origin: Origin) -> Known {
        let number = self.origins.iter().position(|known| *known == origin).unwrap_or_else(|| {
            self.origins.push(origin);
            self.origins.len() - 1
        });
        Known::Of(number as u32)
    }

    fn named(&mut self, state: &[Known], inst: &Inst, addr: &Addr) -> Known {
        match addr.base {
            Base::Var(id) => self.origin(Origin::Variable(id)),
            Base::Frame | Base::KernelParam | Base::Absolute => {
                let object = inst.object.filter(|object| {
                    self.objects.get(*object as usize).is_some_and(|object| object.base == addr.base)
                });
                match object {
                    Some(object) => self.origin(Origin::Local(object)),
                    None if addr.base == Base::Absolute => Known::Plain,
                    None => Known::Mixed,
                }
            }
            Base::Reg(reg) => self.value(state, reg),
            Base::Func(_) => Known::Mixed,
        }
    }

    /// Registers that are not tracked are never part of an address.
    fn value(&self, state: &[Known], reg: Reg) -> Known {
        self.registers.binary_search(&reg).map_or(Known::Plain, |at| state[at])
    }

    fn source(&mut self, state: &[Known], inst: &Inst, src: &Src) -> Known {
        match src {
            Src::Reg(reg) | Src::Not(reg) => self.value(state, *reg),
            Src::Addr(addr) => self.named(state, inst, addr),
            Src::Absent | Src::Imm(_) | Src::Sreg(..) => Known::Plain,
            Src::Video(video) => self.source(state, inst, &video.value),
        }
    }

    fn execute(&mut self, state: &mut [Known], inst: &Inst) {
        if inst.op == Op::St || inst.dsts.is_empty() {
            return;
        }
        let first = match inst.op {
            Op::Ld | Op::LdNc | Op::Ldu => self.loaded(inst),
            _ => self.computed(state, inst),
        };
        let results: Vec<(Reg, Known)> = (inst.dsts.iter().enumerate())
            .filter_map(|(at, dst)| {
                let reg = dst.reg()?;
                let known = match inst.srcs.get(at) {
                    Some(src) if inst.op == Op::MovVec => self.source(state, inst, src),
                    _ if at == 0 && !matches!(dst, Dst::Video { .. }) => first,
                    _ if matches!(first, Known::Plain | Known::Varies) => first,
                    _ => Known::Mixed,
                };
                Some((reg, known))
            })
            .collect();
        for (reg, known) in results {
            if let Ok(at) = self.registers.binary_search(&reg) {
                // Lanes whose guard is false keep the old value.
                state[at] = if inst.guard.is_some() { state[at].join(known) } else { known };
            }
        }
    }

    /// What a loaded value is based on. No address is stored, so only parameters are addresses.
    fn loaded(&mut self, inst: &Inst) -> Known {
        let [Dst::Reg(reg)] = inst.dsts[..] else { return Known::Plain };
        let wide = reg.class == RegClass::R64 && inst.mods.ty().bits() == 64;
        let is_tracked = self.registers.binary_search(&reg).is_ok();
        if inst.mods.space() != Space::Param || !wide || !is_tracked {
            return Known::Plain;
        }
        match inst.srcs.first() {
            Some(Src::Addr(Addr { base: Base::KernelParam, index: None, offset })) => {
                let Ok(offset) = u64::try_from(*offset) else { return Known::Varies };
                if self.addresses.is_none_or(|addresses| addresses.contains(&offset)) {
                    return self.origin(Origin::Parameter(offset));
                }
                self.numbers.insert(offset);
                Known::Plain
            }
            _ => Known::Varies,
        }
    }

    fn computed(&mut self, state: &[Known], inst: &Inst) -> Known {
        let known: Vec<Known> = inst.srcs.iter().map(|src| self.source(state, inst, src)).collect();
        let varies = known.contains(&Known::Varies);
        let of_number = || {
            let numbers = |known: &Known| match known {
                Known::Of(origin) => parameter(&self.origins[*origin as usize]).is_some(),
                Known::Plain => true,
                Known::Mixed | Known::Varies => false,
            };
            self.addresses.is_none() && known.iter().all(numbers)
        };
        match rule(inst, |at| known.get(at).is_none_or(|known| *known == Known::Plain)) {
            Rule::Plain => Known::Plain,
            Rule::Source(at) => known.get(at).copied().unwrap_or(Known::Plain),
            Rule::Select(a, b) if known[a] == known[b] => known[a],
            Rule::Select(..) => Known::Varies,
            Rule::Mixed if varies => Known::Varies,
            // Where it is not known which parameters are addresses, those of a product are taken for numbers.
            Rule::Mixed if of_number() => Known::Plain,
            Rule::Mixed => Known::Mixed,
        }
    }
}
