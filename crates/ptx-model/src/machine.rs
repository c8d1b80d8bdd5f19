//! A sequentially consistent machine that executes litmus tests one instruction at a time.
//! [`crate::liveness`] searches its interleavings for threads that never end.
//!
//! Invariant: a state is a value; equal states have equal futures. Asynchronous copies complete at once, and
//! fences have no effect.

use crate::Error;
use crate::barrier::mask_of;
use crate::event::Barrier;
use crate::memory::{Memory, address_of, location_at};
use crate::test::{Address, AtomOp, BarrierKind, Instruction, Op, Operand, Reduction, Reg, Test, Type};
use crate::value::{alu, atom, compare, extend, mask};

/// Most combinations of unpredictable results in one step.
const MOST_RESULTS: u64 = 4_096;

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
    /// Arrivals without waiting.
    arrived: Vec<(Barrier, usize)>,
    /// The barriers that have completed a phase.
    completed: Vec<Barrier>,
}

/// Results of barrier reductions that are unpredictable: thread, register, and the greatest result.
type Open = Vec<(usize, Reg, u64)>;

/// A barrier that a waiting thread is at.
struct Wait {
    barrier: Barrier,
    count: Option<u64>,
    reduction: Option<Reduction>,
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

    /// The states that the next instruction of a thread can lead to: one, or one for each combination of
    /// unpredictable results of barrier reductions, or none if the thread has ended or waits.
    ///
    /// # Errors
    /// An access that no location holds, a mask without the thread, or too many combinations.
    pub(crate) fn step(&self, state: &State, thread: usize) -> Result<Vec<State>, Error> {
        if self.has_ended(state, thread) || state.threads[thread].waits {
            return Ok(Vec::new());
        }
        let mut next = state.clone();
        let instruction = &self.test.threads[thread].code[state.threads[thread].at];
        let mut open = Open::new();
        self.execute(&mut next, thread, instruction, &mut open)?;
        let mut all = vec![next];
        for (thread, Reg(reg), most) in open {
            if all.len() as u64 * (most + 1) > MOST_RESULTS {
                let what = format!("barrier reductions can have more than {MOST_RESULTS} results");
                return Err(Error::limit(instruction.line, what));
            }
            let each = |state: &State| {
                let with = |result| {
                    let mut state = state.clone();
                    state.threads[thread].registers[reg] = result;
                    state
                };
                (0..=most).map(with).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(each).collect();
        }
        Ok(all)
    }

    fn execute(
        &self,
        state: &mut State,
        thread: usize,
        instruction: &Instruction,
        open: &mut Open,
    ) -> Result<(), Error> {
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
            Op::Barrier { kind: BarrierKind::Arrive, instance, id, .. } => {
                let barrier = Barrier::Cta {
                    cta: self.test.cta_of(thread),
                    instance: *instance,
                    id: value(state, *id),
                };
                match state.arrived.iter_mut().find(|(of, _)| *of == barrier) {
                    Some((_, arrived)) => *arrived += 1,
                    None => state.arrived.push((barrier, 1)),
                }
                state.arrived.sort_unstable();
                self.release_barriers(state, open);
            }
            Op::Barrier { kind: BarrierKind::Sync, .. } | Op::WarpSync { .. } => {
                if let Op::WarpSync { mask } = &instruction.op {
                    mask_of(self.test, thread, value(state, *mask)).map_err(|why| {
                        Error::at(instruction.line, format!("`{}`: {why}", instruction.text))
                    })?;
                }
                state.threads[thread].at = at;
                state.threads[thread].waits = true;
                self.release_barriers(state, open);
            }
            Op::Fence { .. } | Op::ProxyFence(_) | Op::CommitGroup | Op::WaitGroup(_) => {}
        }
        // Without the values that nothing reads any more, more states are equal.
        if self.has_ended(state, thread) {
            state.threads[thread].registers.fill(0);
            self.release_barriers(state, open);
        }
        Ok(())
    }

    /// What a waiting thread waits at.
    fn wait_of(&self, state: &State, thread: usize) -> Option<Wait> {
        let own = &state.threads[thread];
        if !own.waits {
            return None;
        }
        let instruction = self.test.threads[thread].code.get(own.at)?;
        let value = |operand: Operand| match operand {
            Operand::Const(value) => value,
            Operand::Reg(reg) => own.registers[reg.0],
            Operand::Address(location) => address_of(location),
        };
        match &instruction.op {
            Op::Barrier { instance, id, count, reduction, .. } => Some(Wait {
                barrier: Barrier::Cta { cta: self.test.cta_of(thread), instance: *instance, id: value(*id) },
                count: count.map(value),
                reduction: *reduction,
            }),
            Op::WarpSync { mask } => Some(Wait {
                barrier: Barrier::Warp {
                    warp: self.test.warp_of(thread),
                    mask: mask_of(self.test, thread, value(*mask)).ok()?,
                },
                count: None,
                reduction: None,
            }),
            _ => None,
        }
    }

    /// Lets the threads go on whose barriers are complete.
    fn release_barriers(&self, state: &mut State, open: &mut Open) {
        loop {
            let waits = (0..state.threads.len()).filter_map(|t| self.wait_of(state, t).map(|wait| (t, wait)));
            let waits: Vec<(usize, Wait)> = waits.collect();
            let mut released = false;
            for (_, wait) in &waits {
                let at_it = || waits.iter().filter(|(_, other)| other.barrier == wait.barrier);
                let arrived = self.arrived(state, wait.barrier);
                if self.is_complete(state, wait, at_it().count() + arrived) {
                    let members: Vec<&(usize, Wait)> = at_it().collect();
                    self.complete(state, &members, arrived, open);
                    released = true;
                } else if self.passes_late(state, wait, arrived) {
                    // Reductions have no result without a phase, so they wait for ever.
                    for (thread, _) in at_it().filter(|(_, other)| other.reduction.is_none()) {
                        state.threads[*thread].waits = false;
                        state.threads[*thread].at += 1;
                        released = true;
                    }
                    if released {
                        state.arrived.retain(|(of, _)| *of != wait.barrier);
                    }
                }
                if released {
                    break;
                }
            }
            if !released {
                return;
            }
        }
    }

    fn arrived(&self, state: &State, barrier: Barrier) -> usize {
        state.arrived.iter().find(|(of, _)| *of == barrier).map_or(0, |(_, arrived)| *arrived)
    }

    /// Whether a phase is complete at which so many threads are.
    fn is_complete(&self, state: &State, wait: &Wait, there: usize) -> bool {
        match (wait.barrier, wait.count) {
            (Barrier::Warp { warp, mask }, _) => self.test.named_by(warp, mask).all(|thread| {
                self.has_ended(state, thread)
                    || self.wait_of(state, thread).is_some_and(|other| other.barrier == wait.barrier)
            }),
            (Barrier::Cta { .. }, Some(count)) => there as u64 >= count,
            (Barrier::Cta { .. }, None) => there >= self.expected(state, wait.barrier),
        }
    }

    /// Whether a counted use is beyond the last phase that can be complete: it passes, as it does for a
    /// clause.
    fn passes_late(&self, state: &State, wait: &Wait, arrived: usize) -> bool {
        let most = (self.expected(state, wait.barrier) + arrived) as u64;
        wait.count.is_some_and(|count| most < count) && state.completed.contains(&wait.barrier)
    }

    /// Lets the threads of a phase go on, with the results of their reductions.
    fn complete(&self, state: &mut State, members: &[&(usize, Wait)], arrived: usize, open: &mut Open) {
        let Some((_, first)) = members.first() else { return };
        let op = first.reduction.map(|reduction| reduction.op);
        let mixed = arrived > 0 || members.iter().any(|(_, wait)| wait.reduction.map(|r| r.op) != op);
        let holds = |(thread, wait): &&&(usize, Wait)| {
            wait.reduction.is_some_and(|Reduction { predicate: (operand, wanted), .. }| {
                let value = match operand {
                    Operand::Const(value) => value,
                    Operand::Reg(reg) => state.threads[*thread].registers[reg.0],
                    Operand::Address(location) => address_of(location),
                };
                (value != 0) == wanted
            })
        };
        let holding = members.iter().filter(holds).count() as u64;
        let threads = (members.len() + arrived) as u64;
        for (thread, wait) in members {
            if let Some(reduction) = wait.reduction {
                if mixed {
                    open.push((*thread, reduction.dst, reduction.op.most(threads)));
                }
                state.threads[*thread].registers[reduction.dst.0] = reduction.op.result(holding, threads);
            }
            state.threads[*thread].waits = false;
            state.threads[*thread].at += 1;
        }
        state.arrived.retain(|(of, _)| *of != first.barrier);
        if !state.completed.contains(&first.barrier) {
            state.completed.push(first.barrier);
            state.completed.sort_unstable();
        }
    }

    /// How many threads a barrier without a count waits for: those of the CTA that name it and have not
    /// ended.
    fn expected(&self, state: &State, barrier: Barrier) -> usize {
        let Barrier::Cta { cta, instance, id } = barrier else { return 0 };
        let names = |thread: &usize| {
            self.test.threads[*thread].code.iter().any(|instruction| match &instruction.op {
                Op::Barrier { instance: of, id: number, .. } => {
                    *of == instance && !matches!(number, Operand::Const(other) if *other != id)
                }
                _ => false,
            })
        };
        let inside = |thread: &usize| self.test.cta_of(*thread) == cta && !self.has_ended(state, *thread);
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
                Op::Store { .. }
                | Op::Atom { .. }
                | Op::Copy { .. }
                | Op::Barrier { .. }
                | Op::WarpSync { .. }
                | Op::Exit => return None,
                Op::Fence { .. }
                | Op::ProxyFence(_)
                | Op::CommitGroup
                | Op::WaitGroup(_)
                | Op::Alu { .. }
                | Op::Mov { .. }
                | Op::Select { .. }
                | Op::Branch { .. } => {
                    self.execute(&mut state, thread, instruction, &mut Open::new()).ok()?;
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
