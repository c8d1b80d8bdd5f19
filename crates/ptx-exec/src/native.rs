//! Native code beside the interpreter: what it is given, and how it says where it stopped.
//!
//! Native code runs one warp in one activation, from the start of a block until it must stop. It keeps the interpreter's
//! convergence policy, and leaves the warp frame complete: live registers in their places, lanes that have parted as groups. What it
//! cannot do it leaves to the interpreter, at a place where that can go on.
//!
//! Invariant: native code reaches guest memory only where a [`View`] says that the warp may ([`View::reach`], [`Reach`]), and executes
//! what it has no code for by the interpreter's own steps ([`NativeCall::step`]).

use crate::bound::{Code, Exec};
use crate::lanes::{LaneMask, Registers};
use crate::mem::View;
use crate::trap::Fault;
use crate::warp::WarpState;

/// Native code of one function.
pub trait Native: Send + Sync {
    /// The function, as `FuncId` of the program.
    fn function(&self) -> u32;
    /// Whether it can be entered at the start of that block.
    fn enters(&self, block: u32) -> bool;
    /// The most instructions of a warp that one call can execute with as many turns of loops.
    fn most_steps(&self, turns: i64) -> u64;
    /// Whether a loop with that header only waits for others.
    fn waits(&self, header: u32) -> bool;
    /// Runs a warp.
    fn run(&self, call: &mut NativeCall<'_>) -> NativeStop;
}

/// A warp, handed to native code.
pub struct NativeCall<'a> {
    /// Bound code, for what has no native code.
    pub code: &'a Code,
    /// The function that runs.
    pub function: u32,
    /// The block to begin with.
    pub block: u32,
    /// Registers of the activation.
    pub regs: &'a mut Registers,
    /// State of the warp.
    pub warp: &'a mut WarpState,
    /// Guest memory.
    pub mem: &'a mut View,
    /// Offset of the activation's frame in each lane's local memory.
    pub frame: u32,
    /// The running lanes; when it stops, those that run then.
    pub mask: LaneMask,
    /// Whether native code itself left the frame as it is.
    pub trusted: bool,
    /// How many turns of loops may be taken.
    pub turns: i64,
    /// What is known of guest memory. When it stops, the first `parked` entries of [`Reached::parked`] are lanes that have parted: the
    /// block where they go on, and which.
    pub reached: &'a mut Reached,
    /// See [`NativeCall::reached`].
    pub parked: usize,
    /// Instructions that the warp executed.
    pub steps: u64,
    /// The same, counted for each lane.
    pub lane_steps: u64,
    /// Instructions executed by [`NativeCall::step`].
    pub fallbacks: u64,
    /// What a step was at fault with.
    pub fault: Option<Box<Fault>>,
}

impl NativeCall<'_> {
    /// Executes one instruction as the interpreter does, in the lanes of `mask`; its registers are in the frame. Whether it went well; if
    /// not, [`NativeCall::fault`] has the fault.
    pub fn step(&mut self, block: u32, index: u32, mask: LaneMask) -> bool {
        let function = self.code.functions.get(self.function as usize).and_then(Option::as_ref);
        let step = function.and_then(|f| f.blocks.get(block as usize)?.steps.get(index as usize));
        let Some(step) = step else { return false };
        self.fallbacks += 1;
        let mut exec =
            Exec { mask, group: mask, regs: self.regs, warp: self.warp, mem: self.mem, frame: self.frame };
        match (step.run)(&mut exec) {
            Ok(()) => true,
            Err(fault) => {
                self.fault = Some(fault);
                false
            }
        }
    }
}

/// Why native code stopped.
#[derive(Debug)]
pub enum NativeStop {
    /// All lanes that ran have exited.
    Finished,
    /// Before that block: it has taken its turns.
    Yield {
        /// The block.
        block: u32,
    },
    /// Before the terminator of that block.
    Terminator {
        /// The block.
        block: u32,
    },
    /// Before an instruction of that block.
    Before {
        /// The block.
        block: u32,
        /// The instruction.
        index: u32,
    },
    /// Before the block that it was to begin with: nothing has happened.
    Declined,
    /// A lane is at fault at that instruction.
    Fault {
        /// The block.
        block: u32,
        /// The instruction.
        index: u32,
    },
}

/// Windows of a warp, as addresses of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Shared memory of the CTA: address and bytes.
    pub shared: (u64, u64),
    /// Parameters: address and bytes.
    pub params: (u64, u64),
    /// Local memory: address of lane 0's, distance from lane to lane, and bytes in use of each lane's.
    pub local: (u64, u64, u64),
}

/// What native code found out about guest memory, kept by an OS thread from warp to warp.
#[derive(Debug, Default)]
pub struct Reached {
    /// [`Memory::frees`](crate::mem::Memory::frees) when it did.
    pub frees: u64,
    /// By site: the first address, and how many addresses an access may begin at.
    pub windows: Vec<[u64; 2]>,
    /// Room for lanes that part.
    pub parked: Vec<[u32; 2]>,
}

/// A range that a warp may reach: its first address, and its bytes.
pub type Reach = (u64, u64);
