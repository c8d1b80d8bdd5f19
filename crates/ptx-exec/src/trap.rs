//! Traps: the running program is at fault.
//!
//! A step reports a [`Fault`]: the kind, the lane and the address. The interpreter adds the place and makes a
//! [`Trap`]. A trap stops the launch. If several warps trap, the first in their order is reported.

/// The kind of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An access outside of every allocation that its state space may access.
    IllegalAddress,
    /// An address that is not a multiple of the access size. PTX ISA §6.4.1 leaves the result undefined;
    /// ptxvm traps.
    Misaligned,
    /// A store to read-only memory (`.const`, kernel parameters).
    ReadOnly,
    /// `trap`
    Trap,
    /// `__assertfail`, with its whole message.
    Assert(String),
    /// An indirect call of an address that is no function, or of a function that is not in the call's target
    /// list.
    BadCall,
    /// `brx.idx` with an index beyond its list.
    BadBranchIndex,
    /// An invalid barrier number or thread count, or incompatible forms at one barrier.
    BadBarrier(String),
    /// A warp-synchronous instruction executed by a lane that its member mask does not name.
    BadMemberMask,
    /// An `.aligned` instruction of the warp (`wmma`, `mma`) that not all lanes execute alike.
    BadAligned(String),
    /// The local memory of a thread is used up, usually by deep recursion.
    StackOverflow,
    /// All waiting warps wait for each other; says which warp waits where.
    Deadlock(String),
    /// The limit of `--max-steps` was reached.
    StepLimit,
    /// The limit of `--timeout` was reached.
    TimeLimit,
    /// The host stopped the launch.
    Cancelled,
    /// A texture, sampler or surface that is not bound or is of the wrong kind; says which.
    BadTexture(String),
    /// A `.trap` surface access out of bounds; says where.
    SurfaceBounds(String),
    /// A request that the instruction does not support, such as an unreadable format string.
    Unsupported(String),
}

impl FaultKind {
    /// Whether the program caused it, independent of speed: not a limit of the launch.
    pub(crate) fn is_of_program(&self) -> bool {
        !matches!(self, FaultKind::StepLimit | FaultKind::TimeLimit | FaultKind::Cancelled)
    }

    /// A stable identifier for tools: `illegal_address`, `misaligned`, `deadlock`, ...
    pub fn word(&self) -> &'static str {
        match self {
            FaultKind::IllegalAddress => "illegal_address",
            FaultKind::Misaligned => "misaligned",
            FaultKind::ReadOnly => "read_only",
            FaultKind::Trap => "trap",
            FaultKind::Assert(_) => "assert",
            FaultKind::BadCall => "bad_call",
            FaultKind::BadBranchIndex => "bad_branch_index",
            FaultKind::BadBarrier(_) => "bad_barrier",
            FaultKind::BadMemberMask => "bad_member_mask",
            FaultKind::BadAligned(_) => "bad_aligned",
            FaultKind::StackOverflow => "stack_overflow",
            FaultKind::Deadlock(_) => "deadlock",
            FaultKind::StepLimit => "step_limit",
            FaultKind::TimeLimit => "time_limit",
            FaultKind::Cancelled => "cancelled",
            FaultKind::BadTexture(_) => "bad_texture",
            FaultKind::SurfaceBounds(_) => "surface_bounds",
            FaultKind::Unsupported(_) => "unsupported",
        }
    }
}

/// A fault as a step reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// The first faulting lane.
    pub lane: u8,
    /// The access, for memory faults.
    pub access: Option<FaultAccess>,
}

/// The access that faulted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultAccess {
    /// Address in the instruction's space.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u32,
    /// State space of the instruction.
    pub space: ptx::isa::Space,
    /// Whether it writes.
    pub write: bool,
}

impl Fault {
    /// A fault without a memory access.
    pub fn new(kind: FaultKind, lane: usize) -> Box<Self> {
        Box::new(Self { kind, lane: lane as u8, access: None })
    }
}

/// A trap with its full context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The access, for memory faults.
    pub access: Option<FaultAccess>,
    /// The kernel that was launched.
    pub kernel: String,
    /// The function that contains the instruction: the kernel, or a function that it called.
    pub function: String,
    /// Name of the PTX source.
    pub file: String,
    /// Line in the PTX text, from 1; 0 if the trap belongs to no instruction.
    pub line: u32,
    /// The instruction's text.
    pub instruction: String,
    /// The `.loc` in force: source file and line.
    pub source: Option<(String, u32)>,
    /// `%ctaid`
    pub ctaid: [u32; 3],
    /// `%tid` of the first faulting lane.
    pub tid: [u32; 3],
    /// Warp in the CTA.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u8,
    /// For memory faults, a description of the nearest allocation: name, range and distance.
    pub nearest: Option<String>,
    /// Registers that the instruction reads, with their values in the faulting lane, in hexadecimal.
    pub registers: Vec<(String, String)>,
    /// The line of the instruction in the PTX text and its neighbours, with line numbers.
    pub ptx: Vec<(u32, String)>,
    /// Positions of the lanes of the CTA, if a limit or the host stopped the launch.
    pub lanes: Option<String>,
}

impl std::fmt::Display for Trap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match &self.kind {
            FaultKind::IllegalAddress => "illegal address".to_owned(),
            FaultKind::Misaligned => "misaligned address".to_owned(),
            FaultKind::ReadOnly => "write to read-only memory".to_owned(),
            FaultKind::Trap => "`trap` was executed".to_owned(),
            FaultKind::Assert(message) => message.clone(),
            FaultKind::BadCall => "indirect call of an address that is not a callable function".to_owned(),
            FaultKind::BadBranchIndex => "`brx.idx` past the end of its target list".to_owned(),
            FaultKind::BadBarrier(why) => format!("barrier misused: {why}"),
            FaultKind::BadMemberMask => "a lane outside its own member mask".to_owned(),
            FaultKind::BadAligned(why) => format!("aligned instruction misused: {why}"),
            FaultKind::StackOverflow => "stack overflow: local memory is used up".to_owned(),
            FaultKind::Deadlock(who) => format!("deadlock: {who}"),
            FaultKind::StepLimit => "step limit reached".to_owned(),
            FaultKind::TimeLimit => "time limit reached".to_owned(),
            FaultKind::Cancelled => "the launch was cancelled".to_owned(),
            FaultKind::BadTexture(why) => why.clone(),
            FaultKind::SurfaceBounds(why) => format!("surface access out of bounds: {why}"),
            FaultKind::Unsupported(why) => why.clone(),
        };
        writeln!(f, "trap: {what}")?;
        writeln!(f, "  kernel:      {}", self.kernel)?;
        if self.function != self.kernel {
            writeln!(f, "  function:    {}", self.function)?;
        }
        if self.line != 0 {
            writeln!(f, "  at:          {}:{}", self.file, self.line)?;
            writeln!(f, "  instruction: {}", self.instruction)?;
        }
        if let Some((file, line)) = &self.source {
            writeln!(f, "  source:      {file}:{line}")?;
        }
        let [cx, cy, cz] = self.ctaid;
        let [tx, ty, tz] = self.tid;
        writeln!(f, "  cta:         ({cx},{cy},{cz})")?;
        writeln!(f, "  thread:      ({tx},{ty},{tz}), warp {}, lane {}", self.warp, self.lane)?;
        if let Some(access) = &self.access {
            let verb = if access.write { "write" } else { "read" };
            writeln!(
                f,
                "  address:     {:#x} ({} of {} bytes, .{})",
                access.address,
                verb,
                access.bytes,
                access.space.name()
            )?;
        }
        if let Some(nearest) = &self.nearest {
            writeln!(f, "  nearest:     {nearest}")?;
        }
        if !self.registers.is_empty() {
            let registers: Vec<String> =
                self.registers.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            writeln!(f, "  registers:   {}", registers.join(", "))?;
        }
        if let Some(lanes) = &self.lanes {
            writeln!(f, "  lanes:       {lanes}")?;
        }
        for (number, text) in &self.ptx {
            let mark = if *number == self.line { '>' } else { ' ' };
            writeln!(f, "  {mark} {number:>5} | {text}")?;
        }
        Ok(())
    }
}
