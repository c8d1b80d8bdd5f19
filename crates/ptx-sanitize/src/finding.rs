//! Findings: the mistakes that tools report.
//!
//! Invariant: a finding names the instruction that is at fault by its line in the PTX text, if there is one.

use ptx::check::module::Loc;
use ptx_exec::watch::{LaunchFacts, Place, Site};

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tool {
    /// Wrong addresses, and memory that is used after it was freed, freed wrongly, or never.
    Memcheck,
    /// Accesses of which at least one writes, and which nothing orders.
    Racecheck,
    /// Values that were never written and that matter.
    Initcheck,
    /// Barriers and warp-synchronous instructions that are used wrongly.
    Synccheck,
}

impl Tool {
    /// All tools.
    pub const ALL: [Tool; 4] = [Tool::Memcheck, Tool::Racecheck, Tool::Initcheck, Tool::Synccheck];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Memcheck => "memcheck",
            Tool::Racecheck => "racecheck",
            Tool::Initcheck => "initcheck",
            Tool::Synccheck => "synccheck",
        }
    }

    /// The tools of a list such as `memcheck,initcheck`, or `all`.
    ///
    /// # Errors
    /// Says which word is no tool.
    pub fn parse_list(text: &str) -> Result<Vec<Tool>, String> {
        let mut tools = Vec::new();
        for word in text.split(',').map(str::trim) {
            if word == "all" {
                tools.extend(Tool::ALL);
                continue;
            }
            let known = Tool::ALL.into_iter().find(|tool| tool.name() == word);
            tools.push(known.ok_or_else(|| {
                format!("`{word}` is no tool: memcheck, racecheck, initcheck, synccheck, or all")
            })?);
        }
        tools.sort();
        tools.dedup();
        Ok(tools)
    }
}

/// What is wrong. Each kind belongs to one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// memcheck: bytes that are not all inside the object.
    OutOfBounds,
    /// memcheck: an address that is not a multiple of the access size.
    Misaligned,
    /// memcheck: memory that was freed before.
    UseAfterFree,
    /// memcheck: freed a second time.
    DoubleFree,
    /// memcheck: freed, but never allocated there.
    InvalidFree,
    /// memcheck: allocated and never freed.
    Leak,
    /// racecheck.
    Race,
    /// initcheck.
    UninitializedRead,
    /// synccheck: a barrier that not all threads reach together.
    DivergentBarrier,
    /// synccheck: counts or kinds that do not fit together at one barrier.
    BarrierCount,
    /// synccheck: threads exited that a barrier waits for.
    BarrierExited,
    /// synccheck: a member mask without the lane, or with lanes that never come.
    MemberMask,
    /// synccheck: a value that comes from a lane that does not take part.
    InactiveSource,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 13] = [
        Kind::OutOfBounds,
        Kind::Misaligned,
        Kind::UseAfterFree,
        Kind::DoubleFree,
        Kind::InvalidFree,
        Kind::Leak,
        Kind::Race,
        Kind::UninitializedRead,
        Kind::DivergentBarrier,
        Kind::BarrierCount,
        Kind::BarrierExited,
        Kind::MemberMask,
        Kind::InactiveSource,
    ];

    /// Its word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::OutOfBounds => "out-of-bounds",
            Kind::Misaligned => "misaligned",
            Kind::UseAfterFree => "use-after-free",
            Kind::DoubleFree => "double-free",
            Kind::InvalidFree => "invalid-free",
            Kind::Leak => "leak",
            Kind::Race => "race",
            Kind::UninitializedRead => "uninitialized-read",
            Kind::DivergentBarrier => "divergent-barrier",
            Kind::BarrierCount => "barrier-count",
            Kind::BarrierExited => "barrier-exited",
            Kind::MemberMask => "member-mask",
            Kind::InactiveSource => "inactive-source",
        }
    }

    /// The tool that finds it.
    pub fn tool(self) -> Tool {
        match self {
            Kind::OutOfBounds
            | Kind::Misaligned
            | Kind::UseAfterFree
            | Kind::DoubleFree
            | Kind::InvalidFree
            | Kind::Leak => Tool::Memcheck,
            Kind::Race => Tool::Racecheck,
            Kind::UninitializedRead => Tool::Initcheck,
            Kind::DivergentBarrier
            | Kind::BarrierCount
            | Kind::BarrierExited
            | Kind::MemberMask
            | Kind::InactiveSource => Tool::Synccheck,
        }
    }
}

/// One mistake, and how often it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub kind: Kind,
    /// The kernel that was launched; empty where no launch is at fault.
    pub kernel: String,
    /// The function that was running.
    pub function: String,
    /// Name of the PTX source.
    pub file: String,
    /// Line in the PTX text, from 1; `None` where no instruction is at fault.
    pub line: Option<u32>,
    /// The instruction as written.
    pub instruction: String,
    /// `.loc` in force: source file and line.
    pub source: Option<(String, u32)>,
    /// `%ctaid` of the first thread that it happened to, in the order of CTAs.
    pub cta: [u32; 3],
    /// Its `%tid`.
    pub thread: [u32; 3],
    /// State space of the access.
    pub space: Option<&'static str>,
    /// Its address in that space.
    pub address: Option<u64>,
    /// Its bytes.
    pub bytes: Option<u64>,
    /// How often it happened, counted for each thread.
    pub count: u64,
    /// One sentence, in lower case.
    pub message: String,
    /// More lines for people, each with a label, such as `("nearest", "buffer `a`, ...")`.
    pub notes: Vec<(&'static str, String)>,
    /// The second access of a race.
    pub other: Option<OtherAccess>,
    /// `write-write` or `read-write`, for races.
    pub hazard: Option<&'static str>,
    /// What would order the accesses, for races.
    pub missing: Option<&'static str>,
    /// The seed of the schedule that showed it.
    pub seed: u64,
    /// `%gridid` of the launch; 0 without one.
    pub(crate) launch: u64,
}

/// The second access of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherAccess {
    /// Line in the PTX text.
    pub line: Option<u32>,
    /// The instruction as written.
    pub instruction: String,
    /// `.loc` in force: source file and line.
    pub source: Option<(String, u32)>,
    /// `%ctaid` of the thread.
    pub cta: [u32; 3],
    /// `%tid` of the thread.
    pub thread: [u32; 3],
    /// What it did, such as `weak write of 4 bytes`.
    pub access: String,
}

impl Finding {
    /// A finding without an instruction.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            kernel: String::new(),
            function: String::new(),
            file: String::new(),
            line: None,
            instruction: String::new(),
            source: None,
            cta: [0; 3],
            thread: [0; 3],
            space: None,
            address: None,
            bytes: None,
            count: 1,
            message: message.into(),
            notes: Vec::new(),
            other: None,
            hazard: None,
            missing: None,
            seed: 0,
            launch: 0,
        }
    }

    /// A finding of a lane, at the instruction where its warp is.
    pub fn at(kind: Kind, site: &Site, lane: usize, message: impl Into<String>) -> Self {
        let place = Described::of(&site.launch, site.place);
        Self {
            kernel: site.launch.kernel_name().to_owned(),
            function: place.function,
            file: place.file,
            line: place.line,
            instruction: place.instruction,
            source: place.source,
            cta: site.warp.ctaid,
            thread: site.warp.tid_of(lane),
            seed: site.launch.seed,
            launch: site.launch.shape.gridid,
            ..Self::new(kind, message)
        }
    }

    /// With the access that it is about.
    pub fn access(mut self, space: ptx::isa::Space, address: u64, bytes: u64) -> Self {
        (self.space, self.address, self.bytes) = (Some(space.name()), Some(address), Some(bytes));
        self
    }

    /// With a line for people.
    pub fn note(mut self, label: &'static str, text: impl Into<String>) -> Self {
        self.notes.push((label, text.into()));
        self
    }

    /// With the number of threads that it happened to at once.
    pub fn times(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// The tool that found it.
    pub fn tool(&self) -> Tool {
        self.kind.tool()
    }
}

/// The parts that equal findings share: kind, kernel, file, line, the line of the second access; without a
/// line, the message.
pub(crate) type Key = (Kind, String, String, Option<u32>, Option<u32>, Option<String>);

impl Finding {
    /// Whether what would order the accesses of this race would also order those of the other one, and not
    /// the other way round.
    pub(crate) fn needs_more_than(&self, other: &Self) -> bool {
        self.missing == Some("barrier") && other.missing == Some("syncwarp")
    }

    /// Whether it happened in an earlier CTA of the same launch.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        let order = |[x, y, z]: [u32; 3]| [z, y, x];
        self.launch == other.launch && order(self.cta) < order(other.cta)
    }

    /// Findings with equal keys are one.
    pub(crate) fn key(&self) -> Key {
        let other = self.other.as_ref().and_then(|other| other.line);
        let message = self.line.is_none().then(|| self.message.clone());
        (self.kind, self.kernel.clone(), self.file.clone(), self.line, other, message)
    }
}

/// An instruction in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The function that it stands in.
    pub function: String,
    /// Name of the PTX source.
    pub file: String,
    /// Line in the PTX text.
    pub line: Option<u32>,
    /// The instruction as written.
    pub instruction: String,
    /// `.loc` in force.
    pub source: Option<(String, u32)>,
}

impl Described {
    /// The instruction at a place of a launch's program.
    pub fn of(launch: &LaunchFacts, place: Place) -> Self {
        let program = &launch.program;
        let Some(function) = program.functions.get(place.function as usize) else { return Self::default() };
        let mut described = Self { function: function.name.clone(), ..Self::default() };
        let block = function.blocks.get(place.block as usize);
        let inst = block.and_then(|b| b.insts.get(place.index as usize).or_else(|| b.term.inst()));
        // What falls off the function's end has no instruction; the function's name is the place then.
        let span = inst.map_or(function.span, |inst| inst.span);
        described.file = program.source.name_of(span).to_owned();
        described.line = Some(program.source.line(span));
        described.instruction = span.text(&program.source.text).to_owned();
        described.source = inst.and_then(|inst| inst.loc).and_then(|Loc { file, line, column: _ }| {
            let (_, name) = program.files.iter().find(|(index, _)| *index == file)?;
            Some((name.clone(), line))
        });
        described
    }
}
