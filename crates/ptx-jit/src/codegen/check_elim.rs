//! Bounds-check elimination: accesses of shared memory that cannot be out of bounds, and additions that
//! cannot wrap around.
//!
//! Where the range of an address lies within the kernel's own variables, the access has neither a check nor a
//! side exit.
//!
//! Invariant: ranges are used only in code that is entered without a warp frame, so that no value comes from
//! elsewhere.

use super::Codegen;
use super::load_store::{Access, Addresses, Reach};
use crate::analysis::range::{Bound, bounds};
use crate::llvm::Value;
use crate::wir;
use crate::wir::{Kind, Op};
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Space, TyKind};

impl Codegen<'_> {
    /// Finds the ranges of all values, if the function is not entered with a warp frame.
    pub(super) fn find_bounds(&mut self) {
        if !self.job.func.entries.is_empty() {
            self.bounds = vec![None; self.job.func.kinds.len()];
            return;
        }
        let (program, layout) = (self.job.program, self.job.layout);
        let shared = |var: u32| {
            let variable = program.variables.get(var as usize)?;
            let start = layout.variables.get(var as usize)?;
            (variable.space == Space::Shared && variable.ty.kind() != TyKind::Opaque).then_some(*start)
        };
        self.bounds = bounds(self.job.func, self.job.function, self.job.shape.ntid, &shared);
    }

    /// Whether a shared-memory access lies within the kernel's own variables in every lane, and is aligned.
    pub(super) fn is_within(&self, inst: &Inst, op: &Op, access: Access) -> bool {
        let (name, offset) = match inst.srcs.first() {
            Some(Src::Addr(Addr { base: Base::Reg(_), index: None, offset })) => (op.uses.get(1), *offset),
            Some(Src::Reg(_)) => (op.uses.get(1), 0),
            _ => return false,
        };
        let bound = name.and_then(|name| self.bounds[name.0 as usize].map(|bound| (*name, bound)));
        let Some((name, bound)) = bound else { return false };
        let bytes = access.bytes();
        let end = i128::from(bound.high) + i128::from(offset) + i128::from(bytes);
        access.space == Space::Shared
            && self.kind(name) == Kind::Reg(RegClass::R64)
            && !self.origins.contains_key(&name)
            && bytes.is_power_of_two()
            && 1 << bound.zeros.min(30) >= bytes
            && offset % i64::from(bytes) == 0
            && i128::from(bound.low) + i128::from(offset) >= 0
            && end <= i128::from(self.job.layout.shared_bytes)
    }

    /// Whether constant addresses lie within the kernel's own variables, and are aligned.
    pub(super) fn is_inside(&self, reach: Reach, addresses: &Addresses) -> bool {
        let end = i64::from(self.job.layout.shared_bytes);
        let fits = |at: i64| {
            let first = at.saturating_add(reach.lo);
            at % i64::from(reach.align) == 0 && first >= 0 && at.saturating_add(reach.hi) <= end
        };
        let inside = |base: &Value, lanes: &[i32]| {
            let Some(base) = base.number().and_then(|base| i64::try_from(base).ok()) else { return false };
            lanes.iter().all(|lane| fits(base.saturating_add(i64::from(*lane))))
        };
        let each = |chunk: &Value| {
            let Some(lanes) = chunk.numbers() else { return false };
            lanes.iter().all(|at| i64::try_from(*at).is_ok_and(fits))
        };
        reach.space == Space::Shared
            && match addresses {
                Addresses::Same(base) => inside(base, &[0]),
                Addresses::Affine(bases, pattern) => bases.iter().all(|base| inside(base, &pattern.lanes)),
                Addresses::Each(chunks) => chunks.iter().all(each),
                Addresses::Rows(..) | Addresses::ScaledIndex(_) => false,
            }
    }

    /// Whether a value is below 256 in every lane.
    pub(super) fn is_byte(&self, name: wir::Value) -> bool {
        self.bounds[name.0 as usize].is_some_and(|bound| bound.high < 256)
    }

    /// Whether no lane of an affine 32-bit value wraps around where the value is widened, signed or unsigned.
    pub(super) fn is_small(&self, name: wir::Value) -> bool {
        // The lanes of an affine value are less than 2^24 apart.
        let small = |bound: &Bound| bound.high < (1 << 31) - (1 << 24);
        self.pattern(name).is_some_and(|pattern| pattern.rows.is_empty())
            && self.bounds[name.0 as usize].as_ref().is_some_and(small)
    }
}
