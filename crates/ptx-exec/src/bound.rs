//! Bound code: a function of the `Program` made ready to execute.
//!
//! Invariant: block and register numbers are those of `ptx::ir`; a step reads and writes only through
//! [`Exec`]. Bound code is immutable and shared by all threads of a launch. It is specific to one kernel,
//! because it contains offsets of `.shared` variables, and to one memory, because it contains addresses of
//! `.global` and `.const` variables.
//!
//! It contains no positions of lanes and no scheduling state; the warp frame and the scheduler have those.

pub use crate::barrier::BarrierKind;
use crate::lanes::{Lane, LaneMask, Registers};
use crate::mem::View;
use crate::trap::Fault;
use crate::warp::WarpState;
use ptx::check::module::FunctionKind;
use ptx::ir::{BlockId, Dst, Guard, Reg};

/// The state that a step may access.
pub struct Exec<'m> {
    /// Lanes that execute this instruction, after its guard.
    pub mask: LaneMask,
    /// Lanes that are at this instruction, before its guard. `activemask` returns `mask`.
    pub group: LaneMask,
    /// Registers of the running activation.
    pub regs: &'m mut Registers,
    /// State of the warp that outlives an activation: thread ids, carry flags, identity of warp and CTA,
    /// clock.
    pub warp: &'m mut WarpState,
    /// Guest memory as this warp sees it.
    pub mem: &'m mut View,
    /// Offset of the running activation's frame in each lane's local memory.
    pub frame: u32,
}

/// The result of a step. The fault is boxed to keep the result small, because it is returned for every
/// instruction.
pub type Stepped = Result<(), Box<Fault>>;

/// One bound instruction.
pub type StepFn = Box<dyn Fn(&mut Exec<'_>) -> Stepped + Send + Sync>;

/// A step with its guard and its place.
pub struct Step {
    /// Guard, applied by the interpreter.
    pub guard: Option<Guard>,
    /// The instruction's function.
    pub run: StepFn,
    /// The instruction's place in the text.
    pub span: ptx::Span,
    /// `.loc` in force.
    pub loc: Option<ptx::check::module::Loc>,
}

/// All code that one kernel can reach.
pub struct Code {
    /// By `FuncId` of the program; `None` for functions without a body and functions that the kernel cannot
    /// reach.
    pub functions: Vec<Option<Function>>,
    /// Bytes of static shared memory; dynamic shared memory starts here, rounded up to 16.
    pub shared_bytes: u32,
}

/// A bound function.
pub struct Function {
    /// Name.
    pub name: String,
    /// Kernel or device function: kernels are launched, never called.
    pub kind: FunctionKind,
    /// Blocks by [`BlockId`].
    pub blocks: Vec<Block>,
    /// Registers per class.
    pub regs: ptx::ir::RegCounts,
    /// Inputs of a device function: the places of its arguments.
    pub params: Vec<ptx::ir::ParamSlot>,
    /// Returns of a device function: the places of its results.
    pub returns: Vec<ptx::ir::ParamSlot>,
    /// Bytes of local memory per lane and activation.
    pub frame_bytes: u32,
    /// Alignment of the frame.
    pub frame_align: u32,
}

/// A bound block.
pub struct Block {
    /// Straight-line steps.
    pub steps: Vec<Step>,
    /// How it ends.
    pub term: Term,
    /// Place of the terminator's instruction, if an instruction made it.
    pub span: ptx::Span,
    /// `.loc` at the terminator.
    pub loc: Option<ptx::check::module::Loc>,
}

impl Block {
    /// What executes the instruction at `index` for lanes that have all arrived. Behind the last step this is
    /// the terminator, if it is a matrix instruction.
    pub(crate) fn run(&self, index: usize) -> Option<&StepFn> {
        match (self.steps.get(index), &self.term) {
            (Some(step), _) => Some(&step.run),
            (None, Term::Aligned { run, .. }) if index == self.steps.len() => Some(run),
            (None, _) => None,
        }
    }
}

/// How a block ends.
pub enum Term {
    /// Continue at this block.
    Goto(BlockId),
    /// Conditional branch.
    Branch {
        /// Condition.
        cond: Guard,
        /// The target where the condition is true.
        then: BlockId,
        /// The target where it is false.
        els: BlockId,
    },
    /// `brx.idx`
    Switch {
        /// The index of each lane.
        index: Value32,
        /// Targets.
        targets: Vec<BlockId>,
    },
    /// `call`
    Call(Box<Call>),
    /// A warp-synchronous instruction that combines values of lanes.
    WarpSync(Box<WarpSync>),
    /// A warp-synchronous `.aligned` instruction (`wmma`, `mma`). Executes when all lanes of the warp that
    /// have not exited are here.
    Aligned {
        /// The instruction's function; its mask is those lanes.
        run: StepFn,
        /// The next block.
        next: BlockId,
    },
    /// `bar`, `barrier`
    Barrier(Box<Barrier>),
    /// `ret`
    Ret,
    /// `exit`
    Exit,
}

/// A 32-bit operand outside a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value32 {
    /// A register.
    Reg(Reg),
    /// The same value in every lane.
    Imm(u32),
}

impl Value32 {
    /// Its value in every lane.
    pub fn read(self, regs: &Registers) -> Lane<u32> {
        match self {
            Value32::Reg(reg) => regs.r32[reg.index as usize],
            Value32::Imm(value) => Lane::splat(value),
        }
    }
}

/// A bound call. Argument and result places are as in the IR.
pub struct Call {
    /// The called function.
    pub callee: ptx::ir::Callee,
    /// The machine function, if the callee is one.
    pub builtin: Option<ptx::ir::Builtin>,
    /// Arguments.
    pub args: Vec<ptx::ir::ArgPlace>,
    /// Results.
    pub rets: Vec<ptx::ir::ArgPlace>,
    /// The next block.
    pub next: BlockId,
}

/// Inputs of a warp-synchronous instruction, by lane.
#[derive(Clone, Default)]
pub struct SyncIn {
    /// First source, zero-extended (a predicate as 0 or 1).
    pub a: Lane<u64>,
    /// Second source.
    pub b: Lane<u32>,
    /// Third source.
    pub c: Lane<u32>,
}

/// Results of a warp-synchronous instruction, by lane.
#[derive(Clone, Default)]
pub struct SyncOut {
    /// First destination.
    pub d: Lane<u64>,
    /// Predicate destination.
    pub p: LaneMask,
}

/// Computes the results of the lanes that take part.
pub type CombineFn = Box<dyn Fn(LaneMask, &SyncIn) -> SyncOut + Send + Sync>;

/// Writes results into registers.
pub type SyncWriteFn = Box<dyn Fn(&mut Registers, LaneMask, &SyncOut) + Send + Sync>;

/// A warp-synchronous instruction. A lane waits until every lane of its member mask that has not exited waits
/// at an instruction with the same `key` and the same member mask. It need not be the same instruction (PTX
/// ISA §9.7.8.5). Then the result is computed for all these lanes at once.
pub struct WarpSync {
    /// Mnemonic and modifiers. Only instructions with equal keys synchronize.
    pub key: String,
    /// Member mask, by lane.
    pub members: Value32,
    /// Reads the sources of a group. Returns all lanes; lanes outside of the group have no meaning.
    pub read: Box<dyn Fn(&Registers) -> SyncIn + Send + Sync>,
    /// Computes the result from the participating lanes and their inputs. Lanes outside of the mask are
    /// ignored.
    pub combine: CombineFn,
    /// Writes the result in the lanes of the mask.
    pub write: SyncWriteFn,
    /// The next block.
    pub next: BlockId,
}

/// `bar` or `barrier`. PTX ISA §9.7.12.1.
pub struct Barrier {
    /// Form.
    pub kind: BarrierKind,
    /// `.aligned` (all of `bar`).
    pub aligned: bool,
    /// Barrier number.
    pub id: Value32,
    /// Number of threads; `None`: all threads of the CTA.
    pub count: Option<Value32>,
    /// Predicate of the reductions: register, and whether negated.
    pub pred: Option<Guard>,
    /// Destination of the reductions.
    pub dst: Dst,
    /// The next block.
    pub next: BlockId,
}
