//! Accesses of shared memory and of parameters at constant addresses: whether they lie within the kernel's
//! own variables, or its parameters, so that they need no check.
//!
//! Invariant: only addresses that are constant in every lane, active or not, and that the code of a strategy
//! uses as they are.

use super::plan::Planner;
use crate::analysis::address::AddressFacts;
use crate::analysis::constant::Constants;
use crate::effects;
use crate::wir::access::{Access, Form};
use crate::wir::{Kind, Op, Shape, Site, Value};
use ptx::check::module::Variable;
use ptx::ir::{Addr, Base, Inst, RegClass, Src};
use ptx::isa::{Space, TyKind};
use ptx_exec::watch::Object;
use std::ops::Range;

/// What is known of addresses: the spaces they were made in, and constants.
pub(crate) type Known<'a> = (&'a AddressFacts, &'a Constants);

impl<'p> Planner<'p> {
    /// Whether an access is at constant addresses within the kernel's own variables or its parameters in
    /// every lane, and aligned. `form`: of its addresses.
    pub(crate) fn is_inside(
        self,
        (site, inst, op): (Site, &Inst, &Op),
        access: Access,
        form: &Form,
        known: Known<'_>,
    ) -> bool {
        let bytes = access.bytes();
        let own = self.own(site, access.space);
        let reach = (0, i64::from(bytes));
        let at = |address: u64| is_in(&own, address, reach, bytes);
        match inst.srcs.first() {
            Some(Src::Addr(Addr { base: Base::Reg(_), index: None, offset })) => {
                self.is_value_inside((op.uses[1], *offset), &own, form, reach, bytes, known)
            }
            Some(Src::Reg(_)) => self.is_value_inside((op.uses[1], 0), &own, form, reach, bytes, known),
            Some(Src::Addr(Addr { base: Base::Absolute, index: None, offset })) => at(*offset as u64),
            Some(Src::Addr(Addr { base: Base::Var(var), index: None, offset })) => {
                let variable = self.program.variables.get(var.0 as usize);
                let own = variable.is_some_and(|v| v.space == Space::Shared && v.ty.kind() != TyKind::Opaque);
                access.space == Space::Shared
                    && own
                    && at(self.layout.variable(*var).wrapping_add(*offset as u64))
            }
            _ => false,
        }
    }

    /// The same for the bytes from the first to behind the last, relative to a register and an offset.
    pub(crate) fn is_value_inside(
        self,
        (address, offset): (Value, i64),
        own: &Range<i64>,
        form: &Form,
        reach: (i64, i64),
        align: u32,
        known: Known<'_>,
    ) -> bool {
        // The bases of symbolic strides and of scaled indices are not constant.
        let plain = matches!(form, Form::Same | Form::Affine(_) | Form::Each)
            && !matches!(&self.func.shapes[address.0 as usize], Shape::Affine(p) if !p.rows.is_empty())
            && known.0.provenance(address).is_none();
        let narrow = self.func.kinds[address.0 as usize] == Kind::Reg(RegClass::R32);
        let moved = |lane: u64| match narrow {
            true => u64::from((lane as u32).wrapping_add(offset as u32)),
            false => lane.wrapping_add(offset as u64),
        };
        let Some(mut lanes) = known.1.lanes(address).filter(|_| plain) else { return false };
        lanes.all(|lane| is_in(own, moved(lane), reach, align))
    }

    /// The addresses in a state space that an access may have without a check: in shared memory those of the
    /// kernel's own variables, or of the object that the access must stay in; in parameter space those of the
    /// kernel's parameters; in other spaces none.
    pub(crate) fn own(self, site: Site, space: Space) -> Range<i64> {
        let end = match space {
            Space::Shared => i64::from(self.layout.shared_bytes),
            Space::Param => i64::from(self.function.param_bytes),
            _ => return 0..0,
        };
        match self.object(site, space) {
            None => 0..end,
            Some(Object::Shared { start, bytes }) => {
                let start = start as i64;
                start..bytes.map_or(end, |bytes| end.min(start.saturating_add(bytes as i64)))
            }
            Some(Object::Local { .. } | Object::Allocation(_)) => 0..0,
        }
    }

    /// Whether an access names a place in a variable of global or constant memory, and is aligned.
    pub(crate) fn is_in_variable(self, inst: &Inst, access: Access) -> bool {
        matches!(access.space, Space::Global | Space::Const)
            && effects::is_in_variable(self.variables(), inst, access.space, access.bytes())
    }

    /// Whether an instruction loads a parameter of the kernel, or elements of a constant variable, at a place
    /// that is known to be there.
    pub(crate) fn reads_constant(self, inst: &Inst) -> bool {
        effects::reads_constant(self.variables(), inst)
    }

    fn variables(self) -> &'p [Variable] {
        effects::unchecked_variables(self.program, self.objects.is_some())
    }

    /// The object that an access in a state space must stay in.
    pub(crate) fn object(self, site: Site, space: Space) -> Option<Object> {
        self.objects?.of(site.block, site.index, space)
    }
}

/// Whether bytes relative to an address are within a range of addresses. The address itself may be before
/// it: a negative number.
fn is_in(own: &Range<i64>, address: u64, (lo, hi): (i64, i64), align: u32) -> bool {
    let at = address as i64;
    at % i64::from(align) == 0 && at.saturating_add(lo) >= own.start && at.saturating_add(hi) <= own.end
}
