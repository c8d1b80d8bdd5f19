//! Bounds-check elimination where code is generated: constant addresses within the kernel's own shared memory,
//! and additions that cannot wrap around.
//!
//! Invariant: ranges are used only in code that is entered without a warp frame, so that no value comes from
//! elsewhere.

use super::Codegen;
use super::load_store::Addresses;
use crate::analysis::range::Bound;
use crate::llvm::Value;
use crate::opt::checks::elim;
use crate::wir;
use crate::wir::Op;
use crate::wir::access::Access;
use crate::wir::checks::Reach;
use ptx::ir::Inst;
use ptx::isa::Space;

impl Codegen<'_> {
    /// Whether a shared-memory access lies within the kernel's own variables in every lane, and is aligned.
    pub(super) fn is_within(&self, inst: &Inst, op: &Op, access: Access) -> bool {
        let shared = self.job.layout.shared_bytes;
        elim::is_within(self.job.func, &self.analyses, shared, (inst, op), access)
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

    /// Whether no lane of an affine 32-bit value wraps around where the value is widened, signed or unsigned.
    pub(super) fn is_small(&self, name: wir::Value) -> bool {
        // The lanes of an affine value are less than 2^24 apart.
        let small = |bound: &Bound| bound.high < (1 << 31) - (1 << 24);
        self.pattern(name).is_some_and(|pattern| pattern.rows.is_empty())
            && self.analyses.bounds[name.0 as usize].as_ref().is_some_and(small)
    }
}
