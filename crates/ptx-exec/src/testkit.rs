//! Bound code made by hand, for tests of the machine without a front end.
//!
//! Invariant: spans of block `n` and of its steps point at line `n + 1` of [`SOURCE`], so reports can be
//! checked.

use crate::bound::{
    Barrier, BarrierKind, Block, Call, Code, Exec, Function, Step, Stepped, SyncIn, SyncOut, Term, Value32,
    WarpSync,
};
use crate::lanes::{LANES, Lane, LaneMask, Registers, lanes_of};
use crate::mem::{Class, LocalLayout, Memory};
use crate::native::Native;
use crate::sched::{GridRun, Outcome, run_grid};
use crate::warp::GridShape;
use ptx::Span;
use ptx::check::module::{AddressSize, FuncId, FunctionKind, Source};
use ptx::ir::{ArgPlace, BlockId, Callee, Dst, Guard, ParamPlace, ParamSlot, Reg, RegClass, RegCounts};
use ptx::isa::{Sem, Space};
use std::sync::Arc;

/// Sixteen lines, `line 1` to `line 16`, each of eight bytes with its end.
const SOURCE: &str = "line 01\nline 02\nline 03\nline 04\nline 05\nline 06\nline 07\nline 08\n\
                      line 09\nline 10\nline 11\nline 12\nline 13\nline 14\nline 15\nline 16\n";

pub(crate) fn step(run: impl Fn(&mut Exec<'_>) -> Stepped + Send + Sync + 'static) -> Step {
    Step { guard: None, run: Box::new(run), span: Span::default(), loc: None }
}

pub(crate) fn guarded(guard: Guard, mut step: Step) -> Step {
    step.guard = Some(guard);
    step
}

/// `r32[dst] = f(exec, lane)` in the active lanes.
pub(crate) fn set(dst: usize, f: impl Fn(&Exec<'_>, usize) -> u32 + Send + Sync + 'static) -> Step {
    step(move |exec| {
        for lane in lanes_of(exec.mask) {
            exec.regs.r32[dst].0[lane] = f(exec, lane);
        }
        Ok(())
    })
}

/// `pred[dst] = f(exec, lane)` in the active lanes.
pub(crate) fn setp(dst: usize, f: impl Fn(&Exec<'_>, usize) -> bool + Send + Sync + 'static) -> Step {
    step(move |exec| {
        for lane in lanes_of(exec.mask) {
            let bit = 1 << lane;
            exec.regs.pred[dst] =
                if f(exec, lane) { exec.regs.pred[dst] | bit } else { exec.regs.pred[dst] & !bit };
        }
        Ok(())
    })
}

pub(crate) fn r(exec: &Exec<'_>, reg: usize, lane: usize) -> u32 {
    exec.regs.r32[reg].0[lane]
}

pub(crate) fn tid(exec: &Exec<'_>, lane: usize) -> u32 {
    let [nx, ny, _] = exec.warp.grid.ntid;
    let [x, y, z] = exec.warp.tid_of(lane);
    x + nx * (y + ny * z)
}

/// Number of the thread in a one-dimensional grid.
pub(crate) fn gtid(exec: &Exec<'_>, lane: usize) -> u32 {
    exec.warp.ctaid[0] * exec.warp.grid.threads() + tid(exec, lane)
}

/// `st`: `[base + 4 * index(lane)] = r32[src]`.
pub(crate) fn store(
    space: Space,
    sem: Sem,
    base: u64,
    src: usize,
    index: impl Fn(&Exec<'_>, usize) -> u32 + Send + Sync + 'static,
) -> Step {
    step(move |exec| {
        let addrs = Lane(std::array::from_fn(|lane| base + 4 * u64::from(index(exec, lane))));
        exec.mem.store(space, &addrs, exec.mask, sem, &exec.regs.r32[src])
    })
}

/// `ld`: `r32[dst] = [base + 4 * index(lane)]`.
pub(crate) fn load(
    space: Space,
    sem: Sem,
    base: u64,
    dst: usize,
    index: impl Fn(&Exec<'_>, usize) -> u32 + Send + Sync + 'static,
) -> Step {
    step(move |exec| {
        let addrs = Lane(std::array::from_fn(|lane| base + 4 * u64::from(index(exec, lane))));
        exec.mem.load(space, &addrs, exec.mask, sem, &mut exec.regs.r32[dst])
    })
}

/// `atom`: `r32[dst] = [base + 4 * index(lane)]`, replaced by `f(r32[src] of the lane, old)`.
pub(crate) fn atom(
    space: Space,
    base: u64,
    dst: usize,
    src: usize,
    f: impl Fn(u32, u32) -> Option<u32> + Send + Sync + 'static,
) -> Step {
    step(move |exec| {
        let addrs = Lane::splat(base);
        let operand = exec.regs.r32[src];
        let old =
            exec.mem.atomic(space, &addrs, exec.mask, Sem::AcqRel, |lane, old| f(operand.0[lane], old))?;
        exec.regs.r32[dst].blend(exec.mask, &old);
        Ok(())
    })
}

pub(crate) fn yes(pred: u32) -> Guard {
    Guard { pred: Reg { class: RegClass::Pred, index: pred }, negated: false }
}

pub(crate) fn no(pred: u32) -> Guard {
    Guard { negated: true, ..yes(pred) }
}

pub(crate) fn r32(index: u32) -> Reg {
    Reg { class: RegClass::R32, index }
}

pub(crate) fn r64(index: u32) -> Reg {
    Reg { class: RegClass::R64, index }
}

pub(crate) fn goto(to: u32) -> Term {
    Term::Goto(BlockId(to))
}

pub(crate) fn branch(cond: Guard, then: u32, els: u32) -> Term {
    Term::Branch { cond, then: BlockId(then), els: BlockId(els) }
}

/// An `.aligned` barrier without a thread count.
pub(crate) fn bar_sync(id: u32, next: u32) -> Term {
    barrier(BarrierKind::Sync, true, Value32::Imm(id), None, next)
}

pub(crate) fn barrier(kind: BarrierKind, aligned: bool, id: Value32, count: Option<u32>, next: u32) -> Term {
    Term::Barrier(Box::new(Barrier {
        kind,
        aligned,
        id,
        count: count.map(Value32::Imm),
        pred: None,
        dst: Dst::Sink,
        next: BlockId(next),
    }))
}

pub(crate) fn bar_red(
    kind: BarrierKind,
    id: u32,
    count: Option<u32>,
    pred: Guard,
    dst: Reg,
    next: u32,
) -> Term {
    Term::Barrier(Box::new(Barrier {
        kind,
        aligned: true,
        id: Value32::Imm(id),
        count: count.map(Value32::Imm),
        pred: Some(pred),
        dst: Dst::Reg(dst),
        next: BlockId(next),
    }))
}

/// A warp-synchronous sum: each member gets the sum of all members' `r32[src]` in `r32[dst]`.
pub(crate) fn sum_sync(members: Value32, src: usize, dst: usize, next: u32) -> Term {
    Term::WarpSync(Box::new(WarpSync {
        key: "sum.sync".to_owned(),
        members,
        read: Box::new(move |regs: &Registers| SyncIn {
            a: Lane(regs.r32[src].0.map(u64::from)),
            ..SyncIn::default()
        }),
        combine: Box::new(|mask: LaneMask, input: &SyncIn| SyncOut {
            d: Lane::splat(lanes_of(mask).map(|lane| input.a.0[lane]).sum()),
            p: 0,
        }),
        write: Box::new(move |regs: &mut Registers, mask, out: &SyncOut| {
            regs.r32[dst].blend(mask, &Lane(out.d.0.map(|v| v as u32)));
        }),
        next: BlockId(next),
    }))
}

/// A call with one 32-bit register argument and one result.
pub(crate) fn call(func: u32, arg: Reg, ret: Reg, next: u32) -> Term {
    Term::Call(Box::new(Call {
        callee: Callee::Direct(FuncId(func)),
        builtin: None,
        args: vec![ArgPlace::Reg(arg)],
        rets: vec![ArgPlace::Reg(ret)],
        next: BlockId(next),
    }))
}

pub(crate) fn block(steps: Vec<Step>, term: Term) -> Block {
    Block { steps, term, span: Span::default(), loc: None }
}

/// A kernel with 16 registers of each class.
pub(crate) fn function(name: &str, mut blocks: Vec<Block>) -> Function {
    for (index, block) in blocks.iter_mut().enumerate() {
        let start = 8 * (index as u32).min(15);
        block.span = Span::new(start, start + 7);
        for step in &mut block.steps {
            step.span = block.span;
        }
    }
    Function {
        name: name.to_owned(),
        kind: FunctionKind::Func,
        blocks,
        regs: RegCounts { pred: 16, r16: 16, r32: 16, r64: 16 },
        params: Vec::new(),
        returns: Vec::new(),
        frame_bytes: 0,
        frame_align: 1,
    }
}

/// A function that takes `r32[0]` and returns `r32[1]`.
pub(crate) fn device(name: &str, blocks: Vec<Block>) -> Function {
    let slot = |index| ParamSlot { place: ParamPlace::Reg(r32(index)), bytes: 4, align: 4 };
    Function { params: vec![slot(0)], returns: vec![slot(1)], ..function(name, blocks) }
}

pub(crate) fn code(functions: Vec<Function>) -> Arc<Code> {
    Arc::new(Code { functions: functions.into_iter().map(Some).collect(), shared_bytes: 0 })
}

/// A machine for tests.
pub(crate) struct Machine {
    pub(crate) memory: Arc<Memory>,
    source: Arc<Source>,
    pub(crate) threads: u32,
    pub(crate) seed: u64,
    pub(crate) shared: u64,
    pub(crate) stack: u64,
    pub(crate) local_layout: LocalLayout,
    pub(crate) max_steps: Option<u64>,
    pub(crate) params: (u64, u64),
    /// Native code of the kernel, if there is any.
    pub(crate) native: Option<Arc<dyn Native>>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self {
            memory: Memory::new(AddressSize::Bits64).expect("an address range"),
            source: Arc::new(Source::new("test.ptx", SOURCE)),
            threads: 1,
            seed: 0,
            shared: 0,
            stack: 0,
            local_layout: LocalLayout::ByWord,
            // More than any test needs; a machine that hangs fails the test.
            max_steps: Some(200_000_000),
            params: (0, 0),
            native: None,
        }
    }

    /// A zeroed global array of `words` words.
    pub(crate) fn array(&self, words: u32) -> u64 {
        self.memory.alloc(Class::Global, 4 * u64::from(words), 4, "buffer `out`").expect("memory")
    }

    pub(crate) fn read(&self, address: u64, words: u32) -> Vec<u32> {
        let mut bytes = vec![0; 4 * words as usize];
        self.memory.read(address, &mut bytes).expect("in bounds");
        bytes.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    pub(crate) fn run(&self, code: &Arc<Code>, grid: u32, block: u32) -> Outcome {
        self.run_shape(code, [grid, 1, 1], [block, 1, 1], None)
    }

    pub(crate) fn run_shape(
        &self,
        code: &Arc<Code>,
        grid: [u32; 3],
        block: [u32; 3],
        cancel: Option<&Arc<std::sync::atomic::AtomicBool>>,
    ) -> Outcome {
        run_grid(GridRun {
            watch: None,
            replaced: None,
            interests: Arc::new([]),
            allocations: Vec::new(),
            exit: None,
            stamps: None,
            code: Arc::clone(code),
            source: Arc::clone(&self.source),
            address_size: AddressSize::Bits64,
            functions: 0x1000,
            native: self.native.clone(),
            supply: None,
            memory: Arc::clone(&self.memory),
            shape: Arc::new(GridShape {
                ntid: block,
                nctaid: grid,
                gridid: 1,
                began: 0,
                nsmid: self.threads,
                dynamic_shared: 0,
                total_shared: 0,
                envreg: [0; 32],
            }),
            kernel: 0,
            shared_bytes: self.shared,
            params: self.params,
            stack_bytes: self.stack,
            local_layout: self.local_layout,
            threads: self.threads,
            seed: self.seed,
            max_steps: self.max_steps,
            deadline: None,
            cancel: cancel.map(Arc::clone),
            trace: None,
            progress: None,
            output_limit: 1 << 20,
            cta_cache: Arc::default(),
        })
    }

    /// Runs a launch; a trap fails the test.
    pub(crate) fn finish(&self, code: &Arc<Code>, grid: u32, block: u32) -> Outcome {
        let outcome = self.run(code, grid, block);
        assert!(outcome.error.is_none());
        if let Some(trap) = &outcome.trap {
            let (threads, seed) = (self.threads, self.seed);
            panic!("trap {:?} (threads {threads}, seed {seed})", trap.stopped.fault.kind);
        }
        outcome
    }
}

/// The number of lanes, as a word.
pub(crate) const WARP: u32 = LANES as u32;
