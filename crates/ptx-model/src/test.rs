//! A litmus test as data: memory, threads, and a clause about final states.
//!
//! Invariant: indices are in range ([`crate::parse()`] guarantees it): locations in `Test::locations`,
//! registers in `Thread::registers`, targets of branches in `Thread::code` or directly after it.

/// The set of threads that a strong operation reaches (section 8.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The threads of the same CTA.
    Cta,
    /// The threads on the same device.
    Gpu,
    /// All threads, the host's too.
    Sys,
}

impl Scope {
    /// As PTX spells it, without the dot.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cta => "cta",
            Self::Gpu => "gpu",
            Self::Sys => "sys",
        }
    }
}

/// How an access reaches memory (PTX ISA 7.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Proxy {
    /// `ld`, `st`, `atom`, `red`.
    Generic,
    /// Loads of constant memory.
    Constant,
    /// Texture loads.
    Texture,
    /// Surface accesses.
    Surface,
}

impl Proxy {
    /// As `fence.proxy` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Constant => "constant",
            Self::Texture => "texture",
            Self::Surface => "surface",
        }
    }
}

/// Where a location lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// One for all threads.
    Global,
    /// One for each CTA.
    Shared,
}

/// Where a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// On a device.
    Device {
        /// The CTA, numbered within its device.
        cta: u32,
        /// The device.
        gpu: u32,
    },
    /// On the host: reached by `.sys` alone.
    Host,
}

impl Placement {
    /// Whether an operation here with this scope reaches a thread there.
    pub fn reaches(self, scope: Scope, other: Self) -> bool {
        match (self, other) {
            _ if scope == Scope::Sys => true,
            (Self::Device { cta, gpu }, Self::Device { cta: other_cta, gpu: other_gpu }) => {
                gpu == other_gpu && (scope == Scope::Gpu || cta == other_cta)
            }
            (Self::Host, Self::Host) => true,
            (Self::Device { .. }, Self::Host) | (Self::Host, Self::Device { .. }) => false,
        }
    }

    /// Whether two threads are in one CTA.
    pub fn same_cta(self, other: Self) -> bool {
        self.reaches(Scope::Cta, other)
    }
}

/// A register of a thread: an index into [`Thread::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub usize);

/// A scalar type of an access, or of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Bytes: 1, 2, 4 or 8.
    pub size: u32,
    /// Whether loads extend the sign, and whether order and shifts to the right are signed.
    pub signed: bool,
    /// `.f16x2`: two elements of 2 bytes; `size` is 4.
    pub packed: bool,
}

impl Type {
    /// 64 bits, signed: the default type of registers.
    pub const WORD: Self = Self { size: 8, signed: true, packed: false };
}

/// A location of memory, or another name of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Its name.
    pub name: String,
    /// Where it lies.
    pub space: Space,
    /// The size of one element in bytes.
    pub element: u32,
    /// How many elements.
    pub elements: u32,
    /// Whether its declaration gave a type.
    pub typed: bool,
    /// The first value of each element, from the first; `None` where it is unknown.
    pub init: Vec<Option<Operand>>,
    /// The location that this is another name of.
    pub alias: Option<usize>,
    /// The generic virtual address: this location, or the one that a texture, surface or constant name
    /// denotes.
    pub view: usize,
}

impl Location {
    /// Its size in bytes.
    pub fn bytes(&self) -> u32 {
        self.element.saturating_mul(self.elements)
    }
}

/// A value that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A constant.
    Const(u64),
    /// A register.
    Reg(Reg),
    /// The address of a location.
    Address(usize),
}

/// The address of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The base: a location, or a register that holds an address.
    pub base: Operand,
    /// Bytes behind it.
    pub offset: i64,
}

/// The qualifiers `.sem` and `.scope` of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sem {
    /// `.weak`, or nothing on a load or store.
    Weak,
    /// `.relaxed`.
    Relaxed(Scope),
    /// `.acquire`.
    Acquire(Scope),
    /// `.release`.
    Release(Scope),
    /// `.acq_rel`.
    AcqRel(Scope),
    /// `.volatile`: as `.relaxed.sys`.
    Volatile,
    /// `atom` or `red` without `.sem`: as `.relaxed`.
    Unqualified(Scope),
}

/// Arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AluOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a / b, 0 where b is 0 is all ones, as the machine has it
    Div,
    /// a modulo b
    Rem,
    /// a and b
    And,
    /// a or b
    Or,
    /// a exclusive-or b
    Xor,
    /// a shifted left
    Shl,
    /// a shifted right
    Shr,
    /// the lesser
    Min,
    /// the greater
    Max,
    /// 1 where the comparison holds, else 0
    Compare(Comparison),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// equal
    Eq,
    /// not equal
    Ne,
    /// less
    Lt,
    /// less or equal
    Le,
    /// greater
    Gt,
    /// greater or equal
    Ge,
}

/// What an atomic operation makes of the old value and its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomOp {
    /// Arithmetic of both.
    Alu(AluOp),
    /// The operand.
    Exch,
    /// The second operand if the old value is the first, else no write.
    Cas,
    /// 0 if the old value is at least the operand, else one more.
    Inc,
    /// The operand if the old value is 0 or above the operand, else one less.
    Dec,
    /// Addition of halves, for each of the elements.
    AddHalf,
}

/// How a barrier combines the predicates of the threads of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// How many hold.
    Popc,
    /// 1 if all hold, else 0.
    And,
    /// 1 if any holds, else 0.
    Or,
}

impl ReduceOp {
    /// As PTX spells it, without the dot.
    pub fn name(self) -> &'static str {
        match self {
            Self::Popc => "popc",
            Self::And => "and",
            Self::Or => "or",
        }
    }

    /// The result where `holding` of so many threads' predicates hold.
    pub fn result(self, holding: u64, threads: u64) -> u64 {
        match self {
            Self::Popc => holding,
            Self::And => u64::from(holding == threads),
            Self::Or => u64::from(holding > 0),
        }
    }

    /// The greatest result of a phase of so many threads.
    pub fn most(self, threads: u64) -> u64 {
        match self {
            Self::Popc => threads,
            Self::And | Self::Or => 1,
        }
    }
}

/// The reduction of a `bar.red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reduction {
    /// How predicates are combined.
    pub op: ReduceOp,
    /// Receives the result.
    pub dst: Reg,
    /// The thread's predicate holds if this is not 0 (`true`), or if it is (`false`: `!p`).
    pub predicate: (Operand, bool),
}

/// What a barrier instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierKind {
    /// Arrives and waits: `.sync`, `.red`.
    Sync,
    /// Arrives.
    Arrive,
}

/// A proxy fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyFence {
    /// Between the generic proxy and another.
    Proxy(Proxy),
    /// Between virtual addresses of one location.
    Alias,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields have the manual's names of qualifiers and operands")]
pub enum Op {
    /// `ld`, `tld`, `suld`, `cold`: as many registers as the vector has elements.
    Load { sem: Sem, ty: Option<Type>, proxy: Proxy, dst: Vec<Reg>, address: Address },
    /// `st`, `sust`.
    Store { sem: Sem, ty: Option<Type>, proxy: Proxy, src: Vec<Operand>, address: Address },
    /// `atom`; `red` where there is no destination.
    Atom {
        sem: Sem,
        ty: Option<Type>,
        proxy: Proxy,
        op: AtomOp,
        dst: Option<Reg>,
        address: Address,
        args: Vec<Operand>,
    },
    /// `cp.async`: a weak load and a weak store of so many bytes, ordered only by a wait.
    Copy { to: Address, from: Address, bytes: u32 },
    /// `cp.async.commit_group`.
    CommitGroup,
    /// `cp.async.wait_group N`; `wait_all` where there is no number.
    WaitGroup(Option<u64>),
    /// `fence`, `membar`.
    Fence { sc: bool, scope: Scope },
    /// `fence.proxy`.
    ProxyFence(ProxyFence),
    /// `bar`, `barrier`; an instance tells barriers with the same number apart. `.red` waits (`Sync`).
    Barrier {
        kind: BarrierKind,
        instance: u64,
        id: Operand,
        count: Option<Operand>,
        reduction: Option<Reduction>,
    },
    /// `bar.warp.sync`: the low 32 bits of the mask name lanes.
    WarpSync { mask: Operand },
    /// Arithmetic.
    Alu { op: AluOp, ty: Type, dst: Reg, a: Operand, b: Operand },
    /// `mov`, `cvt`, `cvta`.
    Mov { dst: Reg, src: Operand },
    /// `selp`.
    Select { dst: Reg, a: Operand, b: Operand, p: Reg },
    /// A jump, if the comparison holds.
    Branch { when: Option<(Comparison, Operand, Operand)>, target: usize },
    /// `exit`, `ret`.
    Exit,
}

/// An instruction in its place.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// What it does.
    pub op: Op,
    /// `@p`, `@!p`: executed if the register is not 0 (`true`), or if it is.
    pub guard: Option<(Reg, bool)>,
    /// Its text.
    pub text: String,
    /// Line in the file, from 1.
    pub line: u32,
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its number: the 1 of `P1`.
    pub number: u32,
    /// Where it runs.
    pub placement: Placement,
    /// Its warp, numbered within its CTA, and its lane. A thread without them is lane 0 of a warp of its own.
    pub lane: Option<(u32, u32)>,
    /// The names of its registers.
    pub registers: Vec<String>,
    /// The first values of its registers: a constant or an address.
    pub init: Vec<Operand>,
    /// Its instructions.
    pub code: Vec<Instruction>,
}

/// A value in a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A constant.
    Const(u64),
    /// A register of a thread, by index.
    Reg(usize, Reg),
    /// The final value of an element of a location.
    Memory(usize, u32),
    /// The address of a location.
    Address(usize),
}

/// A condition on an execution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Clause {
    /// Always.
    True,
    /// A comparison of values of the final state.
    Compare(Comparison, Term, Term),
    /// `sc(P0:1, P1:0)`: the relation holds between two instructions, each a thread's index and the place in
    /// its code.
    Related(Link, (usize, usize), (usize, usize)),
    /// Not.
    Not(Box<Self>),
    /// All of them.
    And(Vec<Self>),
    /// One of them at least.
    Or(Vec<Self>),
}

/// A relation that clauses name and pictures show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Link {
    /// Reads-from.
    Rf,
    /// Coherence order.
    Co,
    /// From-reads: read to later write.
    Fr,
    /// Fence-SC order.
    Sc,
    /// Synchronizes-with.
    Sw,
    /// Causality order.
    Cause,
}

impl Link {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Rf, Self::Co, Self::Fr, Self::Sc, Self::Sw, Self::Cause];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rf => "rf",
            Self::Co => "co",
            Self::Fr => "fr",
            Self::Sc => "sc",
            Self::Sw => "sw",
            Self::Cause => "cause",
        }
    }
}

/// How the clause is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Some allowed execution satisfies it.
    Exists,
    /// No allowed execution does.
    NotExists,
    /// Every allowed execution does.
    Forall,
}

/// A litmus test.
#[derive(Clone, Debug)]
pub struct Test {
    /// The name in its header.
    pub name: String,
    /// Memory.
    pub locations: Vec<Location>,
    /// The threads.
    pub threads: Vec<Thread>,
    /// Executions that do not satisfy this do not count.
    pub filter: Clause,
    /// How the clause is meant.
    pub quantifier: Quantifier,
    /// The condition.
    pub clause: Clause,
}

impl Test {
    /// The first thread of the CTA of a thread.
    pub fn cta_of(&self, thread: usize) -> usize {
        let own = self.threads[thread].placement;
        self.threads.iter().position(|other| other.placement.same_cta(own)).unwrap_or(thread)
    }

    /// The first thread of the warp of a thread.
    pub fn warp_of(&self, thread: usize) -> usize {
        let of = |thread: &Thread| (thread.placement, thread.lane.map(|(warp, _)| warp));
        match of(&self.threads[thread]) {
            (_, None) => thread,
            own => self.threads.iter().position(|other| of(other) == own).unwrap_or(thread),
        }
    }

    /// The lane of a thread in its warp.
    pub fn lane_of(&self, thread: usize) -> u32 {
        self.threads[thread].lane.map_or(0, |(_, lane)| lane)
    }

    /// The threads of the warp of `warp`, its first thread, that a mask names. Lanes that the test does not
    /// list do not exist.
    pub fn named_by(&self, warp: usize, mask: u32) -> impl Iterator<Item = usize> + '_ {
        (0..self.threads.len())
            .filter(move |thread| self.warp_of(*thread) == warp && mask >> self.lane_of(*thread) & 1 != 0)
    }

    /// The location that holds the bytes of a name.
    pub fn physical(&self, mut location: usize) -> usize {
        // The parser refuses aliases in a circle.
        while let Some(other) = self.locations[location].alias {
            location = other;
        }
        location
    }
}

impl Clause {
    /// Every term of it.
    pub fn terms(&self, each: &mut impl FnMut(&Term)) {
        match self {
            Self::True | Self::Related(..) => {}
            Self::Compare(_, a, b) => {
                each(a);
                each(b);
            }
            Self::Not(inner) => inner.terms(each),
            Self::And(all) | Self::Or(all) => all.iter().for_each(|one| one.terms(each)),
        }
    }

    /// Whether it asks for a relation.
    pub fn has_relations(&self) -> bool {
        match self {
            Self::True | Self::Compare(..) => false,
            Self::Related(..) => true,
            Self::Not(inner) => inner.has_relations(),
            Self::And(all) | Self::Or(all) => all.iter().any(Self::has_relations),
        }
    }
}
