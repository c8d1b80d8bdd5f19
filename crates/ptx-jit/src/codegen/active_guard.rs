//! Conversions of affine values in masked blocks whose inactive lanes would wrap around
//! ([`GuardKind::ExactInActive`]).
//!
//! Where lanes are active because `x` is in a range, the other lanes often have a negative `x`, and a
//! compiler widens `x` as an unsigned number. So the conversion is affine through the first active lane: it
//! is executed on that lane's operands, and what the result's lanes add to the base is subtracted. The guard
//! compares the last active lane only.
//!
//! Invariant: the guard and the conversion use the same lanes, those of the guard's exit.

use super::Codegen;
use crate::analysis::expr::{Expr, operands};
use crate::isel::Operand;
use crate::llvm::{Type, Value};
use crate::wir::{self, GuardKind, Op, OpKind, Site};
use ptx::ir::Inst;

impl Codegen<'_> {
    /// The first and the last active lane of a conversion that is guarded for active lanes in the current
    /// block; `None`: it is not, or its result is not affine.
    pub(super) fn active_ends(&mut self, site: Site) -> Option<[Value; 2]> {
        let node = &self.job.func.blocks[self.position.node?.0 as usize];
        let mask = node.ops.iter().find_map(|op| match &op.kind {
            OpKind::Guard(at, GuardKind::ExactInActive, exit) if *at == site => Some(exit.mask),
            _ => None,
        })?;
        let is_it = |op: &&Op| matches!(op.kind, OpKind::Inst(at) if at == site);
        let op = node.ops.iter().find(is_it)?;
        op.uses[1..].iter().chain(&op.defs).try_for_each(|name| self.slope(*name).map(drop))?;
        let mask = self.scalar(mask);
        let (_, first, last) = self.running(mask, None);
        Some([first, last])
    }

    /// By how much a value grows from lane to lane, if it is a constant.
    fn slope(&self, name: wir::Value) -> Option<i64> {
        match self.pattern(name) {
            Some(pattern) => pattern.slope(self.job.shape.threads()).map(i64::from),
            None => self.shape(name).is_uniform().then_some(0),
        }
    }

    /// What a lane adds to the base of a value, as a number of that type.
    fn lane_offset(&self, name: wir::Value, lane: Value, ty: Type) -> Option<Value> {
        let slope = self.slope(name).filter(|slope| *slope != 0)?;
        let lane = if ty.element_bits() > 32 { self.b.zext(lane, ty) } else { lane };
        Some(self.b.mul(lane, self.b.const_int(ty, slope as u64)))
    }

    /// The operands of a conversion in a lane, from those of the first lane.
    pub(super) fn in_lane(&self, inst: &Inst, op: &Op, from: &mut [Operand], lane: Value) {
        for (operand, source) in from.iter_mut().zip(operands(inst, op)) {
            if let (Operand::Value(value, _), Some(name)) = (operand, source.value())
                && let Some(offset) = self.lane_offset(name, lane, value.ty())
            {
                *value = self.b.add(*value, offset);
            }
        }
    }

    /// The base of a value, from its number in a lane.
    pub(super) fn base_of_lane(&self, name: wir::Value, number: Value, lane: Value) -> Value {
        match self.lane_offset(name, lane, number.ty()) {
            Some(offset) => self.b.sub(number, offset),
            None => number,
        }
    }

    /// The condition that an affine source of the conversion wraps around between the first and the last
    /// active lane.
    pub(super) fn wraps_in_active(
        &mut self,
        site: Site,
        uses: &[wir::Value],
        ends: [Value; 2],
    ) -> Option<Value> {
        let (ty, _) = Expr::of(site.inst(self.job.function)?)?.widens()?;
        let mut wraps: Option<Value> = None;
        for name in uses.iter().take(2) {
            let Some(slope) = self.slope(*name).filter(|slope| *slope != 0 && !self.is_small(*name)) else {
                continue;
            };
            let base = self.base(*name, 0)?;
            let first = match self.lane_offset(*name, ends[0], base.ty()) {
                Some(offset) => self.b.add(base, offset),
                None => base,
            };
            let lanes = self.b.sub(ends[1], ends[0]);
            let more = self.b.mul(lanes, self.c32(slope.unsigned_abs() as u32));
            let wrap = self.overflows(first, more, ty.is_signed(), slope > 0);
            wraps = Some(wraps.map_or(wrap, |others| self.b.or(others, wrap)));
        }
        wraps
    }
}
