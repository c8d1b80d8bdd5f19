//! A sequentially consistent machine that executes litmus tests one instruction at a time.
//! [`crate::liveness`] searches its interleavings for threads that never end.
//!
//! Invariant: a state is a value; equal states have equal futures. Asynchronous copies complete at once, and
//! fences have no effect.

use crate::Error;
use crate::memory::{Memory, address_of, location_at};
use crate::test::{Address, AtomOp, BarrierKind, Instruction, Op, Operand, Reg, Test, Type};
use crate::value::{alu, atom, compare, extend, mask};

/// A thread between two instructions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadState {
    /// The next instruction; behind the code if it has ended.
    pub(crate) at: usize,
    registers: Vec<u64>,
    /// Whether it has arrived at the barrier that is its next instruction.
    pub(crate) waits: bool,
}

/// A state of all threads and of memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct State {
    pub(crate) threads: Vec<ThreadState>,
    memory: Vec<Vec<u8>>,
    /// Arrivals without waiting: CTA (by its first thread), instance, number.
    arrived: Vec<((usize, u64, u64), usize)>,
    /// The barriers that have completed a phase.
    completed: Vec<(usize, u64, u64)>,
}

/// The machine.
pub(crate) struct Machine<'t> {
    pub(crate) test: &'t Test,
    pub(crate) memory: &'t Memory,
}

/// The results of the reads of a thread in one more iteration of a loop: value and size.
pub(crate) type Reads<'r> = dyn FnMut() -> Option<(u64, u32)> + 'r;

impl Machine<'_> {
    pub(crate) fn start(&self) -> State {
        let value = |init: &Operand| match init {
            Operand::Const(value) => *value,
            Operand::Address(location) => address_of(*location),
            Operand::Reg(_) => 0,
        };
        let thread = |thread: &crate::test::Thread| ThreadState {
            at: 0,
            registers: thread.init.iter().map(value).collect(),
            waits: false,
        };
        State {
            threads: self.test.threads.iter().map(thread).collect(),
            memory: self.memory.blocks.iter().map(|block| block.init.clone()).collect(),
            arrived: Vec::new(),
            completed: Vec::new(),
        }
    }

    pub(crate) fn has_ended(&self, state: &State, thread: usize) -> bool {
        state.threads[thread].at >= self.test.threads[thread].code.len()
    }

    /// The state after the next instruction of a thread; `None` if it has ended or waits.
    ///
    /// # Errors
    /// An access that no location holds.
    pub(crate) fn step(&self, state: &State, thread: usize) -> Result<Option<State>, Error> {
        if self.has_ended(state, thread) || state.threads[thread].waits {
            return Ok(None);
        }
        let mut next = state.clone();
        let instruction = &self.test.threads[thread].code[state.threads[thread].at];
        self.execute(&mut next, thread, instruction)?;
        Ok(Some(next))
    }

    fn execute(&self, state: &mut State, thread: usize, instruction: &Instruction) -> Result<(), Error> {
        let at = state.threads[thread].at;
        state.threads[thread].at += 1;
        if let Some((reg, holds)) = instruction.guard
            && (state.threads[thread].registers[reg.0] != 0) != holds
        {
            return Ok(());
        }
        let value = |state: &State, operand: Operand| match operand {
            Operand::Const(value) => value,
            Operand::Reg(reg) => state.threads[thread].registers[reg.0],
            Operand::Address(location) => address_of(location),
        };
        match &instruction.op {
            Op::Load { ty, dst, address, .. } => {
                for (index, dst) in dst.iter().enumerate() {
                    let (block, offset, ty) = self.place(state, thread, instruction, address, *ty, index)?;
                    let bytes = load(&state.memory[block], offset, ty.size);
                    state.threads[thread].registers[dst.0] = extend(ty, bytes);
                }
            }
            Op::Store { ty, src, address, .. } => {
                for (index, src) in src.iter().enumerate() {
                    let (block, offset, ty) = self.place(state, thread, instruction, address, *ty, index)?;
                    let bytes = value(state, *src);
                    store(&mut state.memory[block], offset, ty.size, bytes);
                }
            }
            Op::Atom { ty, op, dst, address, args, .. } => {
                let (block, offset, ty) = self.place(state, thread, instruction, address, *ty, 0)?;
                let old = load(&state.memory[block], offset, ty.size);
                let mut values = [0; 2];
                for (value_of, arg) in values.iter_mut().zip(args) {
                    *value_of = value(state, *arg);
                }
                let new = if *op == AtomOp::AddHalf && ty.packed {
                    let upper = atom(*op, ty, old >> 16, values.map(|v| v >> 16));
                    atom(*op, ty, old, values) & 0xffff | upper << 16
                } else {
                    atom(*op, ty, old, values)
                };
                store(&mut state.memory[block], offset, ty.size, new);
                if let Some(dst) = dst {
                    state.threads[thread].registers[dst.0] = extend(ty, old);
                }
            }
            Op::Copy { to, from, bytes } => {
                let ty = Type { size: 1, signed: false, packed: false };
                for index in 0..*bytes as usize {
                    let (block, offset, _) = self.place(state, thread, instruction, from, Some(ty), index)?;
                    let byte = load(&state.memory[block], offset, 1);
                    let (block, offset, _) = self.place(state, thread, instruction, to, Some(ty), index)?;
                    store(&mut state.memory[block], offset, 1, byte);
                }
            }
            Op::Alu { op, ty, dst, a, b } => {
                let (a, b) = (value(state, *a), value(state, *b));
                state.threads[thread].registers[dst.0] = alu(*op, *ty, a, b);
            }
            Op::Mov { dst, src } => state.threads[thread].registers[dst.0] = value(state, *src),
            Op::Select { dst, a, b, p } => {
                let chosen = if state.threads[thread].registers[p.0] != 0 { *a } else { *b };
                state.threads[thread].registers[dst.0] = value(state, chosen);
            }
            Op::Branch { when, target } => {
                let taken = when.is_none_or(|(comparison, a, b)| {
                    compare(comparison, Type::WORD, value(state, a), value(state, b))
                });
                if taken {
                    state.threads[thread].at = *target;
                }
            }
            Op::Exit => state.threads[thread].at = self.test.threads[thread].code.len(),
            Op::Barrier { kind, instance, id, .. } => {
                let id = value(state, *id);
                self.arrive(state, thread, at, *kind, (*instance, id));
            }
            Op::Fence { .. } | Op::ProxyFence(_) | Op::CommitGroup | Op::WaitGroup(_) => {}
        }
        // Without the values that nothing reads any more, more states are equal.
        if self.has_ended(state, thread) {
            state.threads[thread].registers.fill(0);
            self.release_barriers(state);
        }
        Ok(())
    }

    /// The CTA of a thread, by its first thread.
    fn cta(&self, thread: usize) -> usize {
        let own = self.test.threads[thread].placement;
        self.test.threads.iter().position(|other| other.placement.same_cta(own)).unwrap_or(thread)
    }

    fn arrive(&self, state: &mut State, thread: usize, at: usize, kind: BarrierKind, barrier: (u64, u64)) {
        let key = (self.cta(thread), barrier.0, barrier.1);
        match kind {
            BarrierKind::Arrive => {
                match state.arrived.iter_mut().find(|(of, _)| *of == key) {
                    Some((_, arrived)) => *arrived += 1,
                    None => state.arrived.push((key, 1)),
                }
                state.arrived.sort_unstable();
            }
            BarrierKind::Sync => {
                state.threads[thread].at = at;
                state.threads[thread].waits = true;
            }
        }
        self.release_barriers(state);
    }

    /// The barrier that a waiting thread is at, and its count.
    fn barrier_of(&self, state: &State, thread: usize) -> Option<((usize, u64, u64), Option<u64>)> {
        let own = &state.threads[thread];
        let instruction = self.test.threads[thread].code.get(own.at)?;
        let Op::Barrier { instance, id, count, .. } = &instruction.op else { return None };
        let value = |operand: Operand| match operand {
            Operand::Const(value) => value,
            Operand::Reg(reg) => own.registers[reg.0],
            Operand::Address(location) => address_of(location),
        };
        Some(((self.cta(thread), *instance, value(*id)), count.map(value)))
    }

    /// Lets the threads go on whose barriers are complete.
    fn release_barriers(&self, state: &mut State) {
        loop {
            let waiting = (0..state.threads.len()).filter(|t| state.threads[*t].waits);
            let complete = waiting.filter_map(|t| self.barrier_of(state, t)).find(|(key, count)| {
                let here = self.members(state, *key);
                let arrived = state.arrived.iter().find(|(of, _)| of == key).map_or(0, |(_, n)| *n);
                let expected = self.expected(state, *key);
                match count {
                    // Uses beyond the last phase that can be complete pass, as they do for a clause.
                    Some(count) => {
                        let count = usize::try_from(*count).unwrap_or(usize::MAX);
                        here.len() + arrived >= count
                            || (state.completed.contains(key) && expected + arrived < count)
                    }
                    None => here.len() + arrived >= expected,
                }
            });
            let Some((key, _)) = complete else { return };
            for thread in self.members(state, key) {
                state.threads[thread].waits = false;
                state.threads[thread].at += 1;
            }
            state.arrived.retain(|(of, _)| *of != key);
            if !state.completed.contains(&key) {
                state.completed.push(key);
                state.completed.sort_unstable();
            }
        }
    }

    fn members(&self, state: &State, key: (usize, u64, u64)) -> Vec<usize> {
        (0..state.threads.len())
            .filter(|t| state.threads[*t].waits && self.barrier_of(state, *t).is_some_and(|(k, _)| k == key))
            .collect()
    }

    /// How many threads a barrier without a count waits for: those of the CTA that name it and have not
    /// ended.
    fn expected(&self, state: &State, key: (usize, u64, u64)) -> usize {
        let names = |thread: &usize| {
            self.test.threads[*thread].code.iter().any(|instruction| match &instruction.op {
                Op::Barrier { instance, id, .. } => {
                    *instance == key.1 && !matches!(id, Operand::Const(other) if *other != key.2)
                }
                _ => false,
            })
        };
        let inside = |thread: &usize| self.cta(*thread) == key.0 && !self.has_ended(state, *thread);
        (0..state.threads.len()).filter(inside).filter(names).count()
    }

    fn place(
        &self,
        state: &State,
        thread: usize,
        instruction: &Instruction,
        address: &Address,
        ty: Option<Type>,
        index: usize,
    ) -> Result<(usize, u32, Type), Error> {
        let base = match address.base {
            Operand::Const(value) => value,
            Operand::Reg(Reg(reg)) => state.threads[thread].registers[reg],
            Operand::Address(location) => address_of(location),
        };
        let at = base.wrapping_add(address.offset.cast_unsigned());
        let found = location_at(self.test, at).and_then(|(location, offset)| {
            let of = &self.test.locations[location];
            let ty = ty.unwrap_or(Type { size: of.element, ..Type::WORD });
            let offset = offset + index as u32 * ty.size;
            (offset + ty.size <= of.bytes()).then_some((location, offset, ty))
        });
        let Some((location, offset, ty)) = found else {
            let what = format!("`{}`: the address is in no location", instruction.text);
            return Err(Error::at(instruction.line, what));
        };
        let physical = self.test.physical(location);
        Ok((self.memory.block(physical, self.test.threads[thread].placement), offset, ty))
    }

    /// Executes a thread from an instruction until it comes to that one again, with reads that return these
    /// values and no access to memory. Its registers then; `None` if it ends, writes, or needs other reads.
    pub(crate) fn one_turn(
        &self,
        thread: usize,
        head: usize,
        registers: &[u64],
        reads: &mut Reads<'_>,
    ) -> Option<Vec<u64>> {
        let mut state = self.start();
        state.threads[thread] = ThreadState { at: head, registers: registers.to_vec(), waits: false };
        for _ in 0..4_096 {
            let instruction = self.test.threads[thread].code.get(state.threads[thread].at)?;
            let skipped = instruction
                .guard
                .is_some_and(|(reg, holds)| (state.threads[thread].registers[reg.0] != 0) != holds);
            match &instruction.op {
                _ if skipped => state.threads[thread].at += 1,
                Op::Load { dst, ty, .. } => {
                    for dst in dst {
                        state.threads[thread].registers[dst.0] = returned(*ty, reads()?);
                    }
                    state.threads[thread].at += 1;
                }
                Op::Atom { op: AtomOp::Cas, dst, ty, .. } => {
                    // One that failed: it has only read.
                    let value = returned(*ty, reads()?);
                    if let Some(dst) = dst {
                        state.threads[thread].registers[dst.0] = value;
                    }
                    state.threads[thread].at += 1;
                }
                Op::Store { .. } | Op::Atom { .. } | Op::Copy { .. } | Op::Barrier { .. } | Op::Exit => {
                    return None;
                }
                Op::Fence { .. }
                | Op::ProxyFence(_)
                | Op::CommitGroup
                | Op::WaitGroup(_)
                | Op::Alu { .. }
                | Op::Mov { .. }
                | Op::Select { .. }
                | Op::Branch { .. } => {
                    self.execute(&mut state, thread, instruction).ok()?;
                    if state.threads[thread].at == head {
                        return Some(state.threads[thread].registers.clone());
                    }
                }
            }
        }
        None
    }
}

/// The value of a register that a load sets.
fn returned(ty: Option<Type>, (value, size): (u64, u32)) -> u64 {
    extend(Type { size, signed: ty.is_none_or(|ty| ty.signed), packed: false }, value)
}

fn load(bytes: &[u8], offset: u32, size: u32) -> u64 {
    let range = offset as usize..(offset + size) as usize;
    bytes[range].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn store(bytes: &mut [u8], offset: u32, size: u32, value: u64) {
    let value = value & mask(size);
    let range = offset as usize..(offset + size) as usize;
    bytes[range].copy_from_slice(&value.to_le_bytes()[..size as usize]);
}
