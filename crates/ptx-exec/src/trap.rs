//! Traps: the running program is at fault.
//!
//! A step reports a [`Fault`] (what happened, in which lane, at which address); the interpreter adds where it happened and
//! makes a [`Trap`] of it. A trap stops the launch; the first one wins.

/// What went wrong in a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An access outside every allocation that this space may reach.
    IllegalAddress,
    /// An address that is not a multiple of the access size. PTX ISA §6.4.1 leaves it undefined; we trap.
    Misaligned,
    /// A store to read-only memory (`.const`, kernel parameters).
    ReadOnly,
    /// `trap`
    Trap,
    /// `__assertfail`: the message, complete.
    Assert(String),
    /// An indirect call of something that is not a function, or not one that the call may reach.
    BadCall,
    /// `brx.idx` past the end of its list.
    BadBranchIndex,
    /// A barrier number or thread count that the manual does not allow, or barrier forms that do not mix.
    BadBarrier(String),
    /// A warp-synchronous instruction executed by a lane that its member mask does not name.
    BadMemberMask,
    /// An `.aligned` instruction of the warp that not all its lanes execute alike (`wmma`, `mma`).
    BadAligned(String),
    /// Local memory of a thread is used up (deep recursion).
    StackOverflow,
    /// Nothing that waits can ever go on; says who waits where.
    Deadlock(String),
    /// `--max-steps` was reached.
    StepLimit,
    /// `--timeout` was reached.
    TimeLimit,
    /// The host stopped the launch.
    Cancelled,
    /// A texture, sampler or surface that is not bound, or not of the kind that the instruction needs; says which.
    BadTexture(String),
    /// A `.trap` surface access out of bounds; says where.
    SurfaceBounds(String),
    /// The instruction cannot do what was asked of it (a format string that is not readable, ...).
    Unsupported(String),
}

impl FaultKind {
    /// Whether the program made it, at whatever speed it runs; not a limit of the launch.
    pub(crate) fn is_of_program(&self) -> bool {
        !matches!(self, FaultKind::StepLimit | FaultKind::TimeLimit | FaultKind::Cancelled)
    }

    /// A stable word for tools: `illegal_address`, `misaligned`, `deadlock`, ...
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

/// A fault as a step sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// The first lane that it happened to.
    pub lane: u8,
    /// The access, for memory faults.
    pub access: Option<FaultAccess>,
}

/// The access behind a memory fault.
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
    /// A fault that is not about an access.
    pub fn new(kind: FaultKind, lane: usize) -> Box<Self> {
        Box::new(Self { kind, lane: lane as u8, access: None })
    }
}

/// A trap with its full context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// What happened.
    pub kind: FaultKind,
    /// The access, for memory faults.
    pub access: Option<FaultAccess>,
    /// The kernel that was launched.
    pub kernel: String,
    /// The function that was running (the kernel, or what it called).
    pub function: String,
    /// Name of the PTX source.
    pub file: String,
    /// Line in the PTX text, from 1; 0 where no instruction is to blame.
    pub line: u32,
    /// The instruction as written.
    pub instruction: String,
    /// `.loc` in force: source file and line.
    pub source: Option<(String, u32)>,
    /// `%ctaid`
    pub ctaid: [u32; 3],
    /// `%tid` of the first lane that it happened to.
    pub tid: [u32; 3],
    /// Warp in the CTA and lane in the warp.
    pub warp: u32,
    /// Lane in the warp.
    pub lane: u8,
    /// Prose about the nearest allocation, for memory faults: which, its range, how far away.
    pub nearest: Option<String>,
    /// Registers that the instruction reads, each with its value in the lane at fault, as hexadecimal bits.
    pub registers: Vec<(String, String)>,
    /// The line of the instruction in the PTX text and its neighbours, each with its number.
    pub ptx: Vec<(u32, String)>,
    /// Where the lanes of the CTA are, where a limit or the host stopped the launch.
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
            FaultKind::BadCall => "indirect call of something that is no function it may reach".to_owned(),
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
