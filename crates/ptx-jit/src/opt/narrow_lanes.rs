//! Narrow lanes: integers of at most 8 or 16 bits are computed in vectors whose lanes have so many bits.
//!
//! PTX computes bytes in registers of 16 or 32 bits. A vector register holds four times as many lanes of 8
//! bits as of 32, so sums, extremes and comparisons of pixels take a fraction of the instructions. Ranges of
//! values ([`analysis::range`](crate::analysis::range)) show which results have so few bits.
//!
//! An operation is narrow if its result depends on so many low bits of its sources only. Additions and
//! products do always; for minima, comparisons and right shifts, the ranges of the sources must show it.
//! Where narrow values meet others, lanes are truncated or extended, so a group of operations that are joined
//! by their values is narrow as a whole or not at all: if it saves more than these conversions cost.
//!
//! Invariant: a narrow value is the low bits of the value in the register, and all bits above are zero.
//! Operations in chunk loops and warp strips, whose vectors hold the lanes of a chunk only, are not narrow.

use crate::analysis::expr::{Arith, Expr, Operand, is_int, operands};
use crate::analysis::range::{self, Bound};
use crate::tuning::{NARROW_LANES_CONVERT_COST, NARROW_LANES_MIN_GAIN};
use crate::wir::lane_width::LaneWidth;
use crate::wir::slot_memory::SlotMemory;
use crate::wir::{Block, BlockId, Func, Kind, LaunchShape, Op, OpKind, Shape, Term, Value};
use ptx::ir::{Function, Inst, RegClass};
use ptx::isa::{Op as O, Ty};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// What defines a value: an operation of a block, or a phi.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Op(BlockId, usize),
    Phi(BlockId, usize),
}

/// Sets [`Func::lane_widths`].
pub(crate) fn decide(func: &mut Func, function: &Function, launch: LaunchShape) {
    if launch.is_scalar() {
        return;
    }
    let ranges = range::bounds(func, function, launch.ntid, &|_| None);
    let mut search = Search { func, function, ranges, found: BTreeMap::new() };
    search.find();
    func.lane_widths = search.chosen();
}

struct Search<'a> {
    func: &'a Func,
    function: &'a Function,
    ranges: Vec<Option<Bound>>,
    /// The results that may be narrow, with the operations that define them.
    found: BTreeMap<Value, (Place, LaneWidth)>,
}

/// The fewest bits of lanes that hold a number; `None`: more than narrow lanes have.
fn width_of(bound: Bound) -> Option<LaneWidth> {
    [LaneWidth::B8, LaneWidth::B16].into_iter().find(|width| bound.high <= width.greatest())
}

impl Search<'_> {
    /// Finds the operations whose results may be narrow, sources first.
    fn find(&mut self) {
        for id in self.func.reverse_postorder() {
            let block = &self.func.blocks[id.0 as usize];
            for (at, phi) in block.phis.iter().enumerate() {
                let in_slot = |slots: &Rc<SlotMemory>| slots.offset_of(phi.def).is_some();
                let width = self.merged_width(phi.def, &phi.from);
                if let Some(width) = width.filter(|_| !self.func.slot_memory.as_ref().is_some_and(in_slot)) {
                    self.found.insert(phi.def, (Place::Phi(id, at), width));
                }
            }
            for (at, op) in block.ops.iter().enumerate() {
                let [def] = op.defs.as_slice() else { continue };
                if is_apart(block, at) || self.func.shapes[def.0 as usize] != Shape::Varying {
                    continue;
                }
                let width = match op.kind {
                    OpKind::Inst(site) => {
                        let inst = site.inst(self.function).filter(|inst| inst.guard.is_none());
                        inst.and_then(|inst| self.inst_width(inst, op, *def))
                    }
                    OpKind::SelectMask | OpKind::SelectPred { .. } => self.merged_width(*def, &op.uses[1..]),
                    _ => None,
                };
                if let Some(width) = width {
                    self.found.insert(*def, (Place::Op(id, at), width));
                }
            }
        }
    }

    /// The width of the lanes that one of these values may have, whichever it is.
    fn merged_width(&self, def: Value, from: &[Value]) -> Option<LaneWidth> {
        if self.func.shapes[def.0 as usize] != Shape::Varying {
            return None;
        }
        let widths = || from.iter().filter_map(|name| self.found.get(name)).map(|(_, width)| *width);
        match self.func.kinds[def.0 as usize] {
            Kind::Reg(RegClass::R16 | RegClass::R32) => {
                let width = width_of(self.ranges[def.0 as usize]?)?;
                Some(widths().fold(width, LaneWidth::max))
            }
            Kind::Reg(RegClass::Pred) => widths().next().map(|_| LaneWidth::B1),
            Kind::Reg(RegClass::R64) | Kind::Mask | Kind::Count => None,
        }
    }

    /// The width of the lanes that an operation may be computed in.
    fn inst_width(&self, inst: &Inst, op: &Op, def: Value) -> Option<LaneWidth> {
        let kind = self.func.kinds[def.0 as usize];
        if !matches!(kind, Kind::Reg(RegClass::Pred | RegClass::R16 | RegClass::R32)) {
            return None;
        }
        if matches!(inst.op, O::Ld | O::LdNc) {
            let plan = op.access.as_ref()?;
            let plain = plan.access.count == 1 && kind != Kind::Reg(RegClass::Pred);
            return width_of(self.ranges[def.0 as usize]?).filter(|_| plain);
        }
        let expr = Expr::of(inst)?;
        let sources = operands(inst, op);
        if expr.ty == Ty::Pred {
            let logic = matches!(expr.arith, Arith::And | Arith::Or | Arith::Xor);
            let narrow = sources.iter().any(|source| self.is_narrow(*source));
            return (logic && narrow).then_some(LaneWidth::B1);
        }
        if !is_int(expr.ty) {
            return None;
        }
        // Only the bits of the result are lost that are zero.
        let of_result = match expr.arith {
            Arith::Compare(_) => LaneWidth::B8,
            _ => width_of(self.ranges[def.0 as usize]?)?,
        };
        let least = match expr.arith {
            // Vectors have no products and shifts of bytes.
            Arith::Mul { .. } | Arith::Mad { .. } | Arith::Shl | Arith::Shr => of_result.max(LaneWidth::B16),
            _ => of_result,
        };
        let mut width = least;
        for (at, source) in sources.iter().enumerate() {
            // The shift amount and the predicate of a selection have a width of their own.
            let is_other = match expr.arith {
                Arith::Shl | Arith::Shr => at == 1,
                Arith::Select => at == 2,
                _ => false,
            };
            if !is_other {
                width = width.max(self.source_width(expr, *source)?);
            }
        }
        let amount = match expr.arith {
            Arith::Shl | Arith::Shr => Some(sources.get(1)?.constant(self.func)?),
            _ => None,
        };
        amount.is_none_or(|amount| amount < u64::from(width.bits())).then_some(width)
    }

    /// The width of the lanes that a source needs; `None`: it cannot be read in narrow lanes.
    fn source_width(&self, expr: Expr, source: Operand<'_>) -> Option<LaneWidth> {
        // Whether the low bits of the result depend on the low bits of the sources only.
        let modulo = match expr.arith {
            Arith::Copy
            | Arith::Convert(_)
            | Arith::Add
            | Arith::Sub
            | Arith::Neg
            | Arith::Mul { .. }
            | Arith::Mad { .. }
            | Arith::Shl
            | Arith::And
            | Arith::Or
            | Arith::Xor
            | Arith::Select => true,
            Arith::Shr | Arith::Min | Arith::Max | Arith::Compare(_) => false,
            Arith::Div | Arith::Rem | Arith::ToGeneric(_) | Arith::FromGeneric(_) => return None,
        };
        let fits =
            |bound: Bound| width_of(bound).filter(|_| bound.is_plain(expr.ty.is_signed(), expr.ty.bits()));
        match source {
            Operand::Value(value) => {
                if let Some((_, width)) = self.found.get(&value) {
                    let plain = modulo || self.ranges[value.0 as usize].and_then(fits).is_some();
                    return plain.then_some(*width);
                }
                let width = self.ranges[value.0 as usize].and_then(fits);
                width.or(modulo.then_some(LaneWidth::B8))
            }
            Operand::Imm(number) if modulo => {
                let bound = Bound { low: number, high: number, zeros: 0 };
                Some(width_of(bound).unwrap_or(LaneWidth::B8))
            }
            Operand::Imm(number) => fits(Bound { low: number, high: number, zeros: 0 }),
            Operand::Absent => Some(LaneWidth::B8),
            Operand::Not(_)
            | Operand::Sreg(..)
            | Operand::Based(..)
            | Operand::Symbol(_)
            | Operand::Indexed(_)
            | Operand::Video(_) => None,
        }
    }

    fn is_narrow(&self, source: Operand<'_>) -> bool {
        matches!(source, Operand::Value(value) | Operand::Not(value) if self.found.contains_key(&value))
    }

    /// The operations that are computed in narrow lanes: those of each group that saves enough.
    fn chosen(&self) -> HashMap<Value, LaneWidth> {
        let mut groups = Groups::default();
        for def in self.found.keys() {
            for name in self.joined(*def) {
                groups.join(*def, name);
            }
        }
        let mut gains: HashMap<Value, i64> = HashMap::new();
        for (def, (_, width)) in &self.found {
            *gains.entry(groups.of(*def)).or_default() += self.saved(*def, *width);
        }
        for (def, cost) in self.conversions() {
            *gains.entry(groups.of(def)).or_default() -= cost;
        }
        let pays = |def: &Value| gains[&groups.of(*def)] >= NARROW_LANES_MIN_GAIN;
        self.found.iter().filter(|(def, _)| pays(def)).map(|(def, (_, width))| (*def, *width)).collect()
    }

    /// The narrow values that the operation of a narrow value reads in narrow lanes.
    fn joined(&self, def: Value) -> impl Iterator<Item = Value> + '_ {
        self.narrow_sources(self.found[&def].0).iter().copied().filter(|name| self.found.contains_key(name))
    }

    /// The values that are read in the lanes of the result.
    fn narrow_sources(&self, place: Place) -> &[Value] {
        match place {
            Place::Phi(id, at) => &self.func.blocks[id.0 as usize].phis[at].from,
            Place::Op(id, at) => {
                let op = &self.func.blocks[id.0 as usize].ops[at];
                if op.access.is_some() { &[] } else { &op.uses[1..] }
            }
        }
    }

    /// What the operation of a narrow value saves, in bytes of each lane.
    fn saved(&self, def: Value, width: LaneWidth) -> i64 {
        let wide = match self.func.kinds[def.0 as usize] {
            Kind::Reg(RegClass::R16) => 2,
            _ => 4,
        };
        let Place::Op(id, at) = self.found[&def].0 else { return 0 };
        let expr = match self.func.blocks[id.0 as usize].ops[at].kind {
            OpKind::Inst(site) => site.inst(self.function).and_then(Expr::of),
            _ => None,
        };
        match (expr.map(|expr| expr.arith), width) {
            // Neither is an instruction. Logic of predicates is that of masks either way.
            (Some(Arith::Copy | Arith::Convert(_)), _) | (_, LaneWidth::B1) => 0,
            (_, LaneWidth::B8) => wide - 1,
            (_, LaneWidth::B16) => wide - 2,
        }
    }

    /// What it costs to extend narrow values for their other readers, to truncate other values for narrow
    /// operations, and to extend bytes to 16 bits: the value whose group needs it, and bytes of each lane.
    fn conversions(&self) -> Vec<(Value, i64)> {
        let mut all = Conversions { search: self, costs: Vec::new(), seen: HashSet::new() };
        for block in &self.func.blocks {
            for phi in &block.phis {
                match self.found.contains_key(&phi.def) {
                    true => phi.from.iter().for_each(|name| all.read_narrow(phi.def, *name)),
                    false => phi.from.iter().for_each(|name| all.extended(*name)),
                }
            }
            for op in &block.ops {
                let own = op.defs.first().filter(|def| op.access.is_none() && self.found.contains_key(def));
                match own {
                    Some(def) => op.uses[1..].iter().for_each(|name| all.read_narrow(*def, *name)),
                    None => all.read(op),
                }
            }
            // Side exits are hardly ever taken.
            if let Term::Exit(exit) = &block.term
                && exit.resume.is_some()
            {
                exit.regs.iter().for_each(|(_, name)| all.extended(*name));
            }
        }
        all.costs
    }
}

/// The conversions between lanes of different widths, each counted once for all its readers.
struct Conversions<'a> {
    search: &'a Search<'a>,
    costs: Vec<(Value, i64)>,
    /// The values that are converted, with the width; `None`: that of their registers.
    seen: HashSet<(Value, Option<LaneWidth>)>,
}

impl Conversions<'_> {
    /// A value is read in the width of its register.
    fn extended(&mut self, name: Value) {
        let Some((_, width)) = self.search.found.get(&name) else { return };
        let is_pred = self.search.func.kinds[name.0 as usize] == Kind::Reg(RegClass::Pred);
        if *width != LaneWidth::B1 && !is_pred && self.seen.insert((name, None)) {
            self.costs.push((name, NARROW_LANES_CONVERT_COST));
        }
    }

    /// The operation of a narrow value reads a value.
    fn read_narrow(&mut self, def: Value, name: Value) {
        let (_, width) = self.search.found[&def];
        let is_vector = match self.search.func.shapes[name.0 as usize] {
            Shape::Varying | Shape::Affine(_) => true,
            Shape::Bottom | Shape::Uniform(_) => false,
        };
        let is_number = |name: Value| {
            matches!(self.search.func.kinds[name.0 as usize], Kind::Reg(RegClass::R16 | RegClass::R32))
        };
        let cost = match self.search.found.get(&name) {
            Some((_, own)) if *own != width && width != LaneWidth::B1 && is_number(name) => 1,
            None if is_vector && is_number(name) => NARROW_LANES_CONVERT_COST,
            Some(_) | None => return,
        };
        if self.seen.insert((name, Some(width))) {
            self.costs.push((def, cost));
        }
    }

    /// An operation reads its values in the width of their registers, except that a store of as few bits as
    /// the lanes have saves the conversion that it makes otherwise.
    fn read(&mut self, op: &Op) {
        let inst = match op.kind {
            OpKind::Inst(site) => site.inst(self.search.function),
            // The mask of a predicate is made of either, and side exits are hardly ever taken.
            OpKind::Truths { .. } | OpKind::Guard(..) | OpKind::Ahead(_) | OpKind::Spare(..) => return,
            _ => None,
        };
        let stored = match (&op.access, inst.map(|inst| inst.op)) {
            (Some(plan), Some(O::St)) => plan.access.bits,
            _ => 0,
        };
        for name in &op.uses {
            match self.search.found.get(name) {
                Some((_, width)) if width.bits() == stored => {
                    self.costs.push((*name, -NARROW_LANES_CONVERT_COST));
                }
                Some((_, width)) if stored != 0 && width.bits() >= stored => {}
                Some(_) => self.extended(*name),
                None => {}
            }
        }
    }
}

/// Whether an operation is executed for one chunk or one warp after another.
fn is_apart(block: &Block, at: usize) -> bool {
    let in_loop = block
        .sections
        .iter()
        .any(|section| section.is_chunk_loop() && (section.start..section.end).contains(&at));
    in_loop || block.strips.as_ref().is_some_and(|strips| strips.is_open_at(at))
}

/// Values that are joined, by union and find.
#[derive(Default)]
struct Groups {
    above: HashMap<Value, Value>,
}

impl Groups {
    fn of(&self, mut name: Value) -> Value {
        while let Some(above) = self.above.get(&name) {
            name = *above;
        }
        name
    }

    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.of(a), self.of(b));
        if a != b {
            self.above.insert(a.max(b), a.min(b));
        }
    }
}
