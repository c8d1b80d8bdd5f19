//! What an execution of a function costs a warp or a coarse warp, as far as WIR shows it.
//!
//! Where no barrier is, a coarse warp that is the whole CTA saves what each of its warps would do again: the
//! change from warp to warp, bounds checks, addresses, branches, and all other scalars. Its vectors are
//! computed warp by warp, so it needs no more registers. The estimate counts instructions on the path that
//! most warps take.
//!
//! Invariant: an estimate changes nothing. It reads the function and the plans of its accesses, and no code.

use crate::analysis::branches::Branches;
use crate::analysis::loop_kind::{LoopKind, loop_kinds};
use crate::tuning::{
    COARSE_WARP_CHECK_COST, COARSE_WARP_MAX_PATH_INSTRUCTIONS, COARSE_WARP_MIN_GAIN, COARSE_WARP_TURN_COST,
};
use crate::wir::access::{Chunk, Plan, Strategy};
use crate::wir::lane_width::LaneWidth;
use crate::wir::{Block, BlockId, Cond, Func, LaunchShape, Op, OpKind, Shape, Term, Value};
use ptx::ir::Function;
use ptx::isa::Space;
use std::collections::{HashMap, HashSet};

/// An estimate of one execution of a function, on the path that most warps take.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// Instructions that a coarse warp would execute once for all of its warps.
    once: u64,
    /// Instructions for chunks of lanes.
    chunks: u64,
}

impl Estimate {
    fn total(self) -> u64 {
        self.once + self.chunks
    }

    fn plus(self, other: Self) -> Self {
        Self { once: self.once + other.once, chunks: self.chunks + other.chunks }
    }
}

/// Whether a kernel without barriers may gain if its CTAs are coarse warps. `func`: the WIR of a single warp,
/// with the plans of its accesses.
///
/// # Errors
/// The reason why single warps are expected to be as fast.
pub(super) fn may_pay(func: &Func, function: &Function, shape: LaunchShape) -> Result<(), &'static str> {
    let warps = u64::from(shape.threads() / 32);
    let path = Path::of(func, function, Follow::WHOLE_CTA)?;
    let all = path.estimate(shape);
    let saved = all.once - all.once / warps;
    match saved * COARSE_WARP_MIN_GAIN >= all.total() {
        true => Ok(()),
        false => Err("a warp has much work for each scalar"),
    }
}

/// Whether the code of a coarse warp, in a kernel without barriers, costs less than that of its warps one
/// after another. The functions have the plans of their accesses.
pub(super) fn pays(
    (single, alone): (&Func, LaunchShape),
    (coarse, together): (&Func, LaunchShape),
    function: &Function,
) -> bool {
    let path = |func| Path::of(func, function, Follow::WHOLE_CTA);
    let (Ok(single), Ok(coarse)) = (path(single), path(coarse)) else {
        return false;
    };
    // A branch that every warp takes as a whole, but not all warps alike, costs a coarse warp both sides.
    let agrees =
        coarse.branches.iter().all(|(block, ordered)| *ordered || single.branches.contains_key(block));
    let separate = single.estimate(alone).total() * u64::from(together.team);
    agrees
        && coarse.is_declined_early()
        && separate - separate / COARSE_WARP_MIN_GAIN >= coarse.estimate(together).total()
}

/// Which paths have an estimate.
#[derive(Clone, Copy)]
struct Follow {
    /// The most instructions on it.
    instructions: usize,
    /// Whether data of lanes may decide a branch, of which both sides are executed then.
    data: bool,
}

impl Follow {
    /// For coarse warps that are whole CTAs, which decline CTAs whose data differs.
    const WHOLE_CTA: Self = Self { instructions: COARSE_WARP_MAX_PATH_INSTRUCTIONS, data: false };

    /// For coarse warps of several CTAs, with at most so many instructions.
    fn rows(instructions: usize) -> Self {
        Self { instructions, data: true }
    }
}

/// The blocks that most warps execute.
struct Path<'a> {
    func: &'a Func,
    follow: Follow,
    divergent: Branches<'a>,
    /// In the order in which they were found.
    blocks: Vec<BlockId>,
    /// The PTX blocks that end with a divergent branch. Whether the branch compares the order of numbers, as
    /// a test for the end of an array does.
    branches: HashMap<u32, bool>,
}

impl<'a> Path<'a> {
    /// # Errors
    /// The reason why coarse warps do not pay on any such path.
    fn of(func: &'a Func, function: &'a Function, follow: Follow) -> Result<Self, &'static str> {
        let divergent = Branches::new(func, function);
        let mut path = Self { func, follow, divergent, blocks: Vec::new(), branches: HashMap::new() };
        let (mut seen, mut left) = (HashSet::from([func.start]), vec![func.start]);
        // Instructions of narrow lanes take a part of the code of others.
        let mut quarters = 0;
        while let Some(id) = left.pop() {
            path.blocks.push(id);
            let ops = func.blocks[id.0 as usize].ops.iter().flat_map(Op::insts);
            quarters += ops.map(|(_, op)| quarters_of(func, op) as usize).sum::<usize>();
            if quarters > 4 * follow.instructions {
                return Err("a warp has much work for each scalar");
            }
            for to in path.successors(id)? {
                if seen.insert(to) {
                    left.push(to);
                }
            }
        }
        Ok(path)
    }

    /// The blocks that most warps go to from a block.
    fn successors(&mut self, id: BlockId) -> Result<Vec<BlockId>, &'static str> {
        let block = &self.func.blocks[id.0 as usize];
        let lower = Branches::divergent(block);
        Ok(match (&block.term, lower) {
            (Term::If { then, els, .. }, Some(lower)) => {
                match self.divergent.compared(lower) {
                    Ok(compared) => _ = self.branches.insert(block.block, compared.ordered),
                    Err(_) if self.follow.data => {}
                    Err(why) => return Err(why),
                }
                // All lanes go one way, or all go the other.
                match &self.func.blocks[els.0 as usize].term {
                    Term::If { cond: Cond::Empty(_), then: none, .. } => vec![*then, *none],
                    _ => vec![*then, *els],
                }
            }
            (Term::If { cond: Cond::Full(_) | Cond::Together { .. }, then, .. }, _) => vec![*then],
            (Term::If { cond: Cond::Negative(_), els, .. }, _) => vec![*els],
            (Term::If { then, likely: Some(true), .. }, _) => vec![*then],
            (Term::If { els, likely: Some(false), .. }, _) => vec![*els],
            (term, _) => term.successors(),
        })
    }

    /// Whether the path has no check and no divergent branch behind an effect.
    fn is_declined_early(&self) -> bool {
        let block = |id: BlockId| &self.func.blocks[id.0 as usize];
        let accesses = |id: BlockId| block(id).ops.iter().any(|op| op.access.is_some());
        let divides = |id: BlockId| matches!(block(id).term, Term::If { cond: Cond::Equal(..), .. });
        let writes = |id: &&BlockId| {
            block(**id).ops.iter().any(|op| op.access.as_ref().is_some_and(|plan| plan.access.write))
        };
        self.blocks.iter().filter(writes).all(|id| {
            let mut left = block(*id).term.successors();
            let mut seen = HashSet::new();
            while let Some(to) = left.pop() {
                if !seen.insert(to) {
                    continue;
                }
                if accesses(to) || divides(to) {
                    return false;
                }
                left.extend(block(to).term.successors());
            }
            !divides(*id)
        })
    }

    fn estimate(&self, shape: LaunchShape) -> Estimate {
        let before = Estimate { once: COARSE_WARP_TURN_COST, chunks: 0 };
        let blocks = self.blocks.iter().map(|id| block(self.func, &self.func.blocks[id.0 as usize], shape));
        blocks.fold(before, Estimate::plus)
    }
}

/// An estimate of one execution of the path that most warps take. `most`: the most instructions on it.
///
/// # Errors
/// The reason why coarse warps do not pay on any such path.
pub(super) fn path(
    (func, shape): (&Func, LaunchShape),
    function: &Function,
    most: usize,
) -> Result<u64, &'static str> {
    Ok(Path::of(func, function, Follow::rows(most))?.estimate(shape).total())
}

/// An estimate of one execution of all blocks in loops for all lanes, each counted once.
pub(super) fn loops(func: &Func, function: &Function, shape: LaunchShape) -> u64 {
    let kinds = loop_kinds(function);
    let inside = |block: &&Block| block.full && kinds[block.block as usize] != LoopKind::Nothing;
    func.blocks.iter().filter(inside).map(|one| block(func, one, shape).total()).sum()
}

/// An estimate of one execution of a block.
fn block(func: &Func, block: &Block, shape: LaunchShape) -> Estimate {
    let count = shape.lanes() / shape.chunk;
    let ops = block.ops.iter().map(|one| op(func, one, shape.chunk, count));
    ops.fold(Estimate { once: 1, chunks: 0 }, Estimate::plus)
}

/// `count`: how many chunks of `width` lanes there are.
fn op(func: &Func, op: &Op, width: u32, count: u32) -> Estimate {
    let (width, count) = (u64::from(width), u64::from(count));
    let shape = |value: Value| &func.shapes[value.0 as usize];
    let none = Estimate { once: 0, chunks: 0 };
    match (&op.kind, &op.access) {
        (OpKind::Inst(_), Some(plan)) => Estimate {
            once: if plan.access.space == Space::Shared { 0 } else { COARSE_WARP_CHECK_COST },
            chunks: access(plan, width, count),
        },
        (OpKind::Inst(_), None) => {
            let mut of = none;
            for def in &op.defs {
                match shape(*def) {
                    Shape::Uniform(Some(_)) => {}
                    Shape::Uniform(None) | Shape::Bottom => of.once += 1,
                    Shape::Affine(pattern) => of.once += u64::from(pattern.scalars(count as u32)),
                    Shape::Varying => of.chunks += (count * quarters_of(func, op)).div_ceil(4),
                }
            }
            of
        }
        (OpKind::Chain(chain), _) => Estimate { once: 0, chunks: chain.ops.len() as u64 * count },
        (OpKind::SelectMask | OpKind::SelectPred { .. }, _) => {
            let varies = op.defs.iter().any(|def| shape(*def) == &Shape::Varying);
            if varies { Estimate { once: 0, chunks: count } } else { Estimate { once: 1, chunks: 0 } }
        }
        // Counters become constants, and masks are read by branches that scalars decide.
        _ => none,
    }
}

/// The part of a vector of words that the result of an operation takes, in quarters.
fn quarters_of(func: &Func, op: &Op) -> u64 {
    match op.defs.first().and_then(|def| func.lane_widths.get(def)) {
        Some(LaneWidth::B1 | LaneWidth::B8) => 1,
        Some(LaneWidth::B16) => 2,
        None => 4,
    }
}

/// Instructions of an access, without its bounds check.
fn access(plan: &Plan, width: u64, count: u64) -> u64 {
    let elements = u64::from(plan.access.count);
    let each = width + width / 2;
    match &plan.strategy {
        Strategy::Scalar(_) => 1,
        Strategy::Chunks { tiles, chunks } => {
            let tiles: u64 = tiles.iter().map(|tile| 4 * tile.chunks.len() as u64).sum();
            let one = |chunk: &Chunk| match chunk {
                Chunk::Off | Chunk::Transposed => 0,
                Chunk::Broadcast | Chunk::Vector => elements,
                Chunk::FewLanes(lanes) => lanes.len() as u64,
                Chunk::WordParts => 2,
                Chunk::Covered(cluster) => 2 * cluster.vectors.len() as u64,
                Chunk::Segments(_) => width / 4,
                Chunk::PerLane(_) => each,
            };
            tiles + chunks.iter().map(one).sum::<u64>()
        }
        Strategy::PerLane(_) => each * count,
        Strategy::SpanTest { .. } => 6 * count,
        Strategy::LocalWords => elements * count,
        Strategy::Atomic(_) => each * count,
    }
}
