//! Bounds-check elimination where code is generated: accesses that need no check, and additions that cannot
//! wrap around.
//!
//! Invariant: ranges are used only in code that is entered without a warp frame, so that no value comes from
//! elsewhere.

use super::Codegen;
use crate::analysis::range::Bound;
use crate::opt::checks::elim;
use crate::wir;
use crate::wir::access::{Access, Form};
use crate::wir::{Op, Site};
use ptx::ir::{Addr, Base, Inst, Src};

impl Codegen<'_> {
    /// Whether an access lies within the kernel's own shared memory, its parameters or a variable of the
    /// module in every lane, and is aligned.
    pub(super) fn is_within(&self, (site, inst, op): (Site, &Inst, &Op), access: Access) -> bool {
        let own = self.planner().own(site, access.space);
        elim::is_within(self.job.func, &self.facts.analyses, &own, (inst, op), access)
            || self.planner().is_in_variable(inst, access)
    }

    /// Whether an access that is emitted is at constant addresses within the kernel's own variables.
    pub(super) fn is_inside(&self, site: Site, op: &Op) -> bool {
        self.plan_of(site, op).is_some_and(|plan| plan.inside)
    }

    /// The same for an access without a plan.
    pub(super) fn is_inside_without_plan(
        &self,
        (site, inst, op): (Site, &Inst, &Op),
        access: Access,
    ) -> bool {
        let form = match inst.srcs.first() {
            Some(Src::Addr(Addr { base: Base::Reg(_), .. }) | Src::Reg(_)) => {
                self.form_of(op.uses[1], access).map(|(_, form)| form)
            }
            _ => Some(Form::Same),
        };
        let known = (&self.facts.analyses.addresses, &self.facts.analyses.constants);
        form.is_some_and(|form| self.planner().is_inside((site, inst, op), access, &form, known))
    }

    /// Whether no lane of an affine 32-bit value wraps around where the value is widened, signed or unsigned.
    pub(super) fn is_small(&self, name: wir::Value) -> bool {
        // The lanes of an affine value are less than 2^24 apart.
        let small = |bound: &Bound| bound.high < (1 << 31) - (1 << 24);
        self.pattern(name).is_some_and(|pattern| pattern.rows.is_empty())
            && self.facts.analyses.bounds[name.0 as usize].as_ref().is_some_and(small)
    }
}
