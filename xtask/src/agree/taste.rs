//! The kinds of programs, and the shapes of their CTAs and grids, most of them odd.
//!
//! Invariant: a grid has at most [`THREADS`] threads.

use super::random::Random;
use super::run::THREADS;

/// The main content of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taste {
    Any,
    /// Statements that coarse warps can execute: no atomics, no local memory, no calls; many barriers.
    Coarse,
    /// Groups of a warp that wait for each other, and calls.
    Apart,
    /// Statements of threads alone, in CTAs of several rows: neighbouring CTAs can execute as one.
    Rows,
    /// The same, of threads that are points of a picture ([`super::pictures`]).
    Picture,
}

impl Taste {
    /// Whether all statements are such that coarse warps can execute them.
    pub(super) fn is_coarse(self) -> bool {
        self == Taste::Coarse || self.is_alone()
    }

    /// Whether no thread depends on another, nor on its warp.
    pub(super) fn is_alone(self) -> bool {
        matches!(self, Taste::Rows | Taste::Picture)
    }
}

/// Shapes of CTAs, most of them odd.
const BLOCKS: &[[u32; 3]] = &[
    [1, 1, 1],
    [7, 1, 1],
    [31, 1, 1],
    [32, 1, 1],
    [32, 1, 1],
    [33, 1, 1],
    [64, 1, 1],
    [100, 1, 1],
    [5, 9, 1],
    [3, 5, 7],
    [2, 2, 40],
    [33, 3, 1],
    [16, 3, 2],
];
/// Shapes of several full warps.
const WHOLE: &[[u32; 3]] = &[
    [64, 1, 1],
    [96, 1, 1],
    [128, 1, 1],
    [256, 1, 1],
    [8, 8, 1],
    [16, 16, 1],
    [32, 4, 1],
    [32, 8, 1],
    [8, 4, 2],
    [4, 8, 4],
    [64, 2, 1],
    [16, 2, 4],
];
/// Shapes of full warps and several rows.
const BOXES: &[[u32; 3]] = &[
    [8, 8, 1],
    [8, 4, 1],
    [16, 2, 1],
    [16, 16, 1],
    [16, 6, 1],
    [32, 2, 1],
    [32, 3, 2],
    [64, 2, 1],
    [8, 4, 2],
    [4, 16, 1],
    [24, 4, 1],
    [16, 2, 4],
];
const GRIDS: &[[u32; 3]] = &[
    [1, 1, 1],
    [1, 1, 1],
    [2, 1, 1],
    [3, 1, 1],
    [5, 1, 1],
    [8, 1, 1],
    [2, 2, 1],
    [1, 2, 2],
    [3, 2, 2],
    [1, 1, 4],
    [2, 3, 1],
    // Small enough that native code runs several CTAs in one call.
    [16, 1, 1],
    [12, 3, 1],
    [4, 2, 4],
    [3, 7, 3],
];
/// Grids in which several CTAs are neighbours in x.
const WIDE_GRIDS: &[[u32; 3]] =
    &[[4, 1, 1], [5, 1, 1], [8, 1, 1], [6, 3, 1], [9, 2, 1], [4, 2, 3], [7, 1, 2], [16, 1, 1], [12, 2, 1]];
/// Grids whose rows are several groups of CTAs that execute as one.
const LONG_GRIDS: &[[u32; 3]] = &[
    [16, 1, 1],
    [18, 1, 1],
    [20, 1, 1],
    [12, 3, 1],
    [9, 2, 1],
    [24, 2, 1],
    [33, 1, 1],
    [40, 1, 1],
    [16, 4, 1],
];
/// Shapes of full warps and several rows for them.
const SMALL_BOXES: &[[u32; 3]] = &[
    [8, 8, 1],
    [8, 4, 1],
    [16, 2, 1],
    [32, 2, 1],
    [64, 2, 1],
    [4, 16, 1],
    [24, 4, 1],
    [16, 4, 1],
    [32, 4, 1],
];

/// The grid and the CTAs of a program. Every shape of CTAs has a grid that is small enough.
pub(super) fn shapes(random: &mut Random, taste: Taste) -> ([u32; 3], [u32; 3]) {
    let whole = taste == Taste::Coarse || random.chance(30);
    let block = random.pick(match (taste, whole) {
        (Taste::Rows, _) => BOXES,
        (Taste::Picture, _) => SMALL_BOXES,
        (_, true) => WHOLE,
        (_, false) => BLOCKS,
    });
    let grid = loop {
        let grid = random.pick(match taste {
            Taste::Rows => WIDE_GRIDS,
            Taste::Picture => LONG_GRIDS,
            Taste::Any | Taste::Coarse | Taste::Apart => GRIDS,
        });
        if grid.iter().product::<u32>() * block.iter().product::<u32>() <= THREADS {
            break grid;
        }
    };
    (grid, block)
}
