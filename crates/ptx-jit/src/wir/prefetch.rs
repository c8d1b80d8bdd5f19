//! Prefetches as data of the IR: what is prefetched beside an access, and into which cache.
//!
//! The pass in [`opt::prefetch`](crate::opt::prefetch) fills them in. Code generation maps them to LLVM IR
//! and decides nothing about them.
//!
//! Invariant: a prefetch changes nothing but time. Its distance is a constant times facts of the launch that
//! can be read anywhere in the function, so no value of the function is computed for it.

use super::decision::Decision;
use super::{Block, BlockId, Func, Term};
use std::fmt;

/// A fact of the launch that can be read anywhere in the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fact {
    /// A kernel parameter.
    Param {
        /// Its offset in the parameter space.
        offset: u32,
        /// Its width in bits.
        bits: u32,
    },
    /// `%nctaid` on that axis.
    Ctas(u8),
}

/// A constant times up to two facts of the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) times: i64,
    pub(crate) facts: [Option<Fact>; 2],
}

impl Product {
    pub(crate) const ZERO: Product = Product::of(0);

    pub(crate) const fn of(times: i64) -> Self {
        Self { times, facts: [None; 2] }
    }

    pub(crate) const fn fact(fact: Fact) -> Self {
        Self { times: 1, facts: [Some(fact), None] }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.times == 0
    }

    /// Whether the product is the same in every launch.
    pub(crate) fn is_constant(self) -> bool {
        self.facts == [None; 2]
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        match (self.is_zero(), other.is_zero()) {
            (_, true) => Some(self),
            (true, false) => Some(other),
            (false, false) if self.facts == other.facts => match self.times.checked_add(other.times)? {
                0 => Some(Self::ZERO),
                times => Some(Self { times, ..self }),
            },
            (false, false) => None,
        }
    }

    pub(crate) fn minus(self, other: Self) -> Option<Self> {
        self.plus(Self { times: other.times.checked_neg()?, ..other })
    }

    pub(crate) fn by(self, other: Self) -> Option<Self> {
        let times = self.times.checked_mul(other.times)?;
        if times == 0 {
            return Some(Self::ZERO);
        }
        let mut all = self.facts.into_iter().chain(other.facts).flatten();
        let mut facts = [all.next(), all.next()];
        facts.sort_unstable_by_key(|fact| (fact.is_none(), *fact));
        all.next().is_none().then_some(Self { times, facts })
    }
}

/// A cache that lines are prefetched into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// The first level.
    First,
    /// The first level alone: the data are read once.
    FirstAlone,
    /// The second level.
    Second,
}

/// What a prefetch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// The same access of a later CTA.
    Cta {
        /// By how much the address grows with `%ctaid.x`, which is not zero.
        right: Product,
        /// By how much it grows with `%ctaid.y`, if that is known and not zero.
        below: Option<Product>,
        /// How many CTAs ahead that CTA is.
        ctas: u32,
    },
    /// The same access in the next iteration of a loop around a barrier. Code under masks does not issue it.
    Iteration {
        /// By how much the address grows.
        step: Product,
        /// The cache that a block behind the barrier prefetches it into, if it is deferred ([`Deferral`]).
        behind: Cache,
    },
}

/// The prefetch of one line beside an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefetch {
    pub(crate) ahead: Ahead,
    /// The number of bytes from the address of the access to the start of its line, if the register that the
    /// address is relative to is the start of one.
    pub(crate) more: i64,
    pub(crate) cache: Cache,
}

/// The prefetches beside a load in a loop whose step from one iteration to the next is known only at launch.
/// All lanes load consecutive elements. Code under masks does not issue it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GridStride {
    /// The bytes that the threads of this CTA load, which those of the next CTA follow.
    pub(crate) part: u32,
    /// The cache for the elements of the next CTA.
    pub(crate) cache: Cache,
    /// What is prefetched of a later iteration of this CTA.
    pub(crate) later: Option<Later>,
}

/// The same access in a later iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Later {
    /// By how much the address grows from one iteration to the next.
    pub(crate) step: Product,
    /// How many iterations ahead that iteration is.
    pub(crate) iterations: u32,
    pub(crate) cache: Cache,
}

/// What was decided about the prefetches beside an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decisions {
    /// The line that the next CTA accesses, or the next iteration of a loop around a barrier.
    pub(crate) next: Option<Decision<Prefetch>>,
    /// The elements that a loop of the grid's stride loads.
    pub(crate) grid_stride: Option<Decision<GridStride>>,
}

/// Where the lines are prefetched that a block defers: its lines of the next iteration, behind the barrier
/// that it ends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deferral {
    /// The block that issues the prefetches.
    pub(crate) to: BlockId,
    /// How many lines are deferred at most, for each cache. The others are prefetched beside their loads.
    pub(crate) lines: u32,
}

/// How a block issues the prefetches that are deferred to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Issue {
    /// A few in each iteration of its first chunk loop.
    InIterations,
    /// One by one, between operations from the one with this index on.
    Between {
        /// The index.
        start: usize,
        /// The number of vectors that these operations compute.
        vectors: u32,
    },
    /// All before the operation with this index.
    AtOnce(usize),
    /// All at the end of the block.
    AtEnd,
}

impl Issue {
    /// The line of the text form, which is a comment.
    pub(crate) fn text(self, block: &Block) -> String {
        let how = match self {
            Issue::InIterations => "in the iterations of the chunk loop".to_owned(),
            Issue::Between { start, vectors } => {
                format!("between {vectors} vectors from {} on", block.place(start))
            }
            Issue::AtOnce(at) => format!("before {}", block.place(at)),
            Issue::AtEnd => "at the end".to_owned(),
        };
        format!("; issues deferred prefetches {how}")
    }
}

impl Block {
    /// The block behind the barrier that this block ends at, once registers are restored.
    pub(crate) fn behind_barrier(&self, func: &Func) -> Option<BlockId> {
        let Term::Exit(exit) = &self.term else { return None };
        let resume = func.resumes.get(exit.resume? as usize).filter(|resume| resume.id.is_some())?;
        Some(match func.blocks.get(resume.node.0 as usize)?.term {
            Term::Goto(next) => next,
            Term::If { .. } | Term::Switch { .. } | Term::Exit(_) => resume.node,
        })
    }
}

impl fmt::Display for Deferral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "defer-prefetches b{} lines {}", self.to.0, self.lines)
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fact::Param { offset, bits } => write!(f, "param{bits}[{offset}]"),
            Fact::Ctas(axis) => write!(f, "%nctaid.{}", ["x", "y", "z"][usize::from(*axis)]),
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.times)?;
        self.facts.iter().flatten().try_for_each(|fact| write!(f, "*{fact}"))
    }
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cache::First => "first",
            Cache::FirstAlone => "first alone",
            Cache::Second => "second",
        })
    }
}

impl fmt::Display for Prefetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Prefetch { ahead, more, cache } = self;
        match ahead {
            Ahead::Cta { right, below, ctas } => {
                write!(f, "prefetch CTA {ctas:+} by {right}")?;
                if let Some(below) = below {
                    write!(f, ", row by {below}")?;
                }
                write!(f, " {more:+} into {cache}")
            }
            Ahead::Iteration { step, behind } => {
                write!(f, "prefetch iteration +1 by {step} {more:+} into {cache}, or behind into {behind}")
            }
        }
    }
}

impl fmt::Display for GridStride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GridStride { part, cache, later } = self;
        write!(f, "prefetch grid stride CTA +1 by {part} into {cache}")?;
        match later {
            Some(Later { step, iterations, cache }) => {
                write!(f, ", iteration {iterations:+} by {step} into {cache}")
            }
            None => Ok(()),
        }
    }
}

/// The prefetches that were decided, each behind a comma.
impl fmt::Display for Decisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Decision::Applied(prefetch)) = &self.next {
            write!(f, ", {prefetch}")?;
        }
        if let Some(Decision::Applied(prefetch)) = &self.grid_stride {
            write!(f, ", {prefetch}")?;
        }
        Ok(())
    }
}
