//! Bounds checks as data of the IR: which accesses of a block are checked before the block has any effect,
//! and by which comparisons.
//!
//! The pass in [`opt::checks`](crate::opt::checks) fills them in, at the block's
//! [`OpKind::Ahead`](super::OpKind::Ahead). Code generation emits one comparison for each group.
//!
//! Invariant: nothing here depends on a value of LLVM.

use super::access::Form;
use super::{Block, OpKind, Site, Value};
use ptx::isa::Space;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// What the addresses of a group are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// A register.
    Value(Value),
    /// The variable of the program with that number.
    Variable(u32),
    /// The frame of the function's activation.
    Frame,
}

/// The bytes that one comparison with the cached bounds of a site covers, relative to the addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) site: Site,
    pub(crate) space: Space,
    pub(crate) write: bool,
    /// Whether it is for postponed reductions, which have cached bounds of their own.
    pub(crate) postponed: bool,
    /// The first byte, relative to the address.
    pub(crate) lo: i64,
    /// The end of the last byte, relative to the address.
    pub(crate) hi: i64,
    /// The required alignment of the address.
    pub(crate) align: u32,
}

/// Accesses relative to one anchor, which are checked together.
#[derive(Clone, Debug)]
pub(crate) struct CheckGroup {
    pub(crate) anchor: Anchor,
    /// How the anchor's addresses are related, in the access's state space.
    pub(crate) form: Form,
    pub(crate) reach: Reach,
    /// Whether all of it is at constant addresses within the kernel's own shared memory or its parameters, so
    /// that it needs no check.
    pub(crate) inside: bool,
    /// Whether it is checked for many iterations of the predicated loop at once.
    pub(crate) predicated: bool,
    /// The accesses, by their index in the block. The first one names the anchor.
    pub(crate) members: Vec<usize>,
}

/// The most iterations without a check, and the most bytes of a step. Their products do not overflow.
pub(crate) const FAR: u64 = 1 << 31;

/// A loop in whose header accesses are checked for many iterations at once.
#[derive(Clone, Debug)]
pub(crate) struct PredicatedLoop {
    /// The fuel at the start of the header.
    pub(crate) left: Value,
    /// For each predecessor of the header, whether the edge only ends an iteration of the loop.
    pub(crate) again: Vec<bool>,
    /// The least fuel that an iteration uses.
    pub(crate) price: u64,
    /// The steps of addresses.
    pub(crate) steps: BTreeMap<Value, Step>,
}

/// The constant that each iteration adds to an address.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) by: i64,
    pub(crate) widened: Vec<Widened>,
}

/// A uniform 32-bit number that must not wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widened {
    pub(crate) name: Value,
    pub(crate) by: i64,
    pub(crate) signed: bool,
}

/// Whether the checks of a block are made for many iterations of a loop at once.
#[derive(Clone, Debug, Default)]
pub(crate) enum Predication {
    /// The block is no header of a loop whose iterations are counted.
    #[default]
    None,
    /// It is, but too few of its addresses step by a constant.
    TooFewSteps,
    /// For the groups that are predicated.
    Loop(Rc<PredicatedLoop>),
}

/// Where an access is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Nowhere: it is always within the kernel's own shared memory or its parameters. `early`: its address is
    /// known where the block begins.
    Within {
        /// Whether the address is known where the block begins.
        early: bool,
    },
    /// Where the block begins, in the group of that number.
    Grouped(usize),
    /// At the access.
    AtAccess(Why),
}

/// Why an access is not checked where its block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its address is not known there.
    Unknown,
    /// It has no native code.
    NoNativeCode,
    /// Its address has an index register.
    Indexed,
    /// Its address has 32 bits and an offset, and may wrap around.
    Narrow,
    /// Its offset is far from the register, or not a multiple of the access.
    Far,
    /// Its lanes are at distances that one comparison does not cover.
    Uneven,
    /// Its lanes may access several allocations.
    Each,
    /// It loads one value from addresses that may differ.
    OneValue,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Unknown => "its address is not known where the block begins",
            Why::NoNativeCode => "a form of access that has no native code",
            Why::Indexed => "an address with an index register",
            Why::Narrow => "a 32-bit address with an offset may wrap around",
            Why::Far => "the offset is far, or not a multiple of the access",
            Why::Uneven => "lanes are not evenly spaced, or not aligned",
            Why::Each => "each lane has an address of its own",
            Why::OneValue => "a uniform value from addresses that are not",
        })
    }
}

/// A guard that is tested where its block begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EarlyGuard {
    /// Its index in the block.
    pub(crate) at: usize,
    pub(crate) tested: Tested,
}

/// What is tested of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tested {
    /// Whether its value is exact where it is widened, and its sum with any number from the first, which is
    /// at most zero, to the second, which is at least zero.
    Between(i32, i32),
    /// Nothing: another guard is tested for this value, too.
    Elsewhere,
}

/// The checks of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockChecks {
    /// The index of the operation at which they are made. The operations before it are executed before.
    pub(crate) at: usize,
    /// The operations behind it that are executed before the checks, in program order.
    pub(crate) hoisted: Vec<usize>,
    pub(crate) groups: Vec<CheckGroup>,
    /// The guards of conversions that are tested together with the checks, in program order.
    pub(crate) guards: Vec<EarlyGuard>,
    /// The addresses of accesses that are a constant number of bytes from that of an earlier one where the
    /// guards hold.
    pub(crate) distances: BTreeMap<Value, (Value, i64)>,
    /// Where each access that all active lanes make is checked, by index, in program order.
    pub(crate) accesses: Vec<(usize, Check)>,
    /// Whether groups are checked for many iterations of a loop at once.
    pub(crate) predication: Predication,
}

impl BlockChecks {
    /// Whether an access needs no check of its own, and its address is known where the block begins.
    pub(crate) fn fits(&self, at: usize) -> bool {
        let found = self.accesses.binary_search_by_key(&at, |(access, _)| *access);
        found.is_ok_and(|place| {
            matches!(self.accesses[place].1, Check::Grouped(_) | Check::Within { early: true })
        })
    }

    /// Whether an operation is executed before the checks.
    pub(crate) fn is_early(&self, at: usize) -> bool {
        at < self.at || self.hoisted.binary_search(&at).is_ok()
    }

    /// Whether an operation is executed before the checks, or as a part of them.
    pub(crate) fn is_done(&self, at: usize) -> bool {
        self.is_early(at) || self.guards.binary_search_by_key(&at, |guard| guard.at).is_ok()
    }

    /// What the checks are, as a comment behind the operation at which they are made.
    pub(crate) fn text(&self, block: &Block) -> String {
        let site = |at: usize| match block.ops[at].kind {
            OpKind::Inst(site) | OpKind::Guard(site, ..) => format!("{}.{}", site.block, site.index),
            _ => format!("op {at}"),
        };
        let sites = |list: &[usize]| list.iter().map(|at| site(*at)).collect::<Vec<_>>().join(" ");
        let mut parts = Vec::new();
        if !self.hoisted.is_empty() {
            parts.push(format!("after {}", sites(&self.hoisted)));
        }
        for CheckGroup { anchor, form, reach, inside, predicated, members } in &self.groups {
            let step = match (&self.predication, anchor) {
                (Predication::Loop(header), Anchor::Value(name)) if *predicated => header.steps.get(name),
                _ => None,
            };
            let step = step.map_or_else(String::new, |step| format!("for iterations of {:+} ", step.by));
            let anchor = match anchor {
                Anchor::Value(value) => format!("v{}", value.0),
                Anchor::Variable(number) => format!("variable {number}"),
                Anchor::Frame => "frame".to_owned(),
            };
            let how = match (reach.postponed, reach.write) {
                (true, _) => "reduce",
                (false, true) => "write",
                (false, false) => "read",
            };
            let Reach { lo, hi, align, .. } = reach;
            let inside = if *inside { "inside " } else { "" };
            parts.push(format!(
                "{step}{inside}{how} {form} {anchor} {lo} to {hi} align {align} of {}",
                sites(members)
            ));
        }
        if !self.guards.is_empty() {
            let text = |guard: &EarlyGuard| match guard.tested {
                Tested::Between(0, 0) => site(guard.at),
                Tested::Between(low, high) => format!("{} from {low} to {high}", site(guard.at)),
                Tested::Elsewhere => format!("({})", site(guard.at)),
            };
            parts.push(format!("wraps {}", self.guards.iter().map(text).collect::<Vec<_>>().join(" ")));
        }
        let within = |early: bool| {
            let wanted = Check::Within { early };
            self.accesses.iter().filter(move |(_, check)| *check == wanted).map(|(at, _)| *at)
        };
        let free: Vec<usize> = within(true).chain(within(false)).collect();
        if !free.is_empty() {
            parts.push(format!("none of {}", sites(&free)));
        }
        parts.join(", ")
    }
}
