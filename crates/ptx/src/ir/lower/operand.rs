//! Operands: from the text to destinations and sources in the row's order.
//!
//! Invariant: the number of [`Dst`]s and [`Src`]s follows from the row, the modifiers and the presence of
//! optional operands:
//! * a value of 128 bits is two registers, the low half first, and so are its `Dst`s and `Src`s;
//! * a destination is one `Dst` per element, and one more for the second half of a pair, `Sink` if it is
//!   omitted;
//! * a source is one `Src` per element; one `Absent` if it is omitted, for any length;
//! * the coordinates and offsets of a texture or surface access are as many as its geometry uses, without
//!   padding;
//! * an operand of a video instruction that may have a selector or a minus sign is a [`Src::Video`]
//!   (destination: [`Dst::Video`]) with the selector's default decoded (V22): the elements of `a` are 0..,
//!   those of `b` follow.

use super::Context;
use super::layout::Layout;
use crate::check::module::{self, AddressBase, FunctionKind, Guard as TextGuard, Loc, Operand};
use crate::ir::{Addr, Base, Dst, Guard, Inst, RegClass, Src, VideoSrc};
use crate::isa::form::{self, Dir, Kind, Need, OperandForm, Selector, SpaceOf};
use crate::isa::{Mods, Op, Slot, Space, Ty, Version, Word};

/// Lowers the instructions of one body.
pub(super) struct Lowering<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) kind: FunctionKind,
    pub(super) layout: &'a Layout,
}

/// Sources so far; the state space of the variable in an address, and its number if it belongs to the body.
#[derive(Default)]
struct Sources {
    srcs: Vec<Src>,
    named_space: Option<Space>,
    object: Option<u32>,
}

impl Lowering<'_> {
    /// The guard of an instruction.
    pub(super) fn guard(&self, guard: TextGuard) -> Guard {
        Guard { pred: self.layout.register(guard.register, 0), negated: guard.negated }
    }

    /// The instruction without its guard.
    pub(super) fn inst(&self, inst: &module::Inst, loc: Option<Loc>) -> Inst {
        let form = inst.row.form();
        let mut dsts = Vec::new();
        let mut sources = Sources::default();
        for (i, operand_form) in form.operands.iter().enumerate() {
            let operand = inst.operands.get(i).unwrap_or(&Operand::Absent);
            match operand_form.dir {
                Dir::Out => self.destination(operand_form, &inst.mods, operand, &mut dsts),
                Dir::In => self.source(operand_form, &inst.mods, operand, &mut sources),
            }
        }
        let mods = self.mods(inst, &form.operands, &sources);
        Inst {
            op: form.row.op,
            row: inst.row,
            mods,
            guard: None,
            dsts,
            object: sources.object,
            srcs: sources.srcs,
            span: inst.span,
            loc,
        }
    }

    /// The modifiers, with those that the target and the operands imply.
    fn mods(&self, inst: &module::Inst, operands: &[OperandForm], sources: &Sources) -> Mods {
        let mut mods = inst.mods;
        let addressed =
            operands.iter().any(|o| matches!(o.kind, Kind::Address(SpaceOf::Mods) | Kind::Variable));
        if addressed {
            let space = match (mods.space(), sources.named_space) {
                (Space::Generic, Some(named)) => Some(named),
                (Space::Param, Some(Space::Local)) => Some(Space::Local),
                (Space::Param, None) if self.kind == FunctionKind::Func => Some(Space::Local),
                _ => None,
            };
            if let Some(word) = space.and_then(space_word) {
                mods = mods.with(Slot::Ss, word);
            }
        }
        let sm_1x = self.context.module.target.sm.number < 20;
        let op = inst.row.row().op;
        if op == Op::Mad && mods.ty_in(Slot::Type) == Some(Ty::F32) && mods.rnd().is_none() && !sm_1x {
            mods = mods.with(Slot::Rnd, Word::Rn);
        }
        if sm_1x && flushes(inst, self.context.module.version) {
            mods = mods.with(Slot::Flag, Word::Ftz);
        }
        mods
    }

    fn destination(&self, form: &OperandForm, mods: &Mods, operand: &Operand, dsts: &mut Vec<Dst>) {
        let (first, second) = if let Operand::Pair(first, second) = operand {
            (&**first, &**second)
        } else {
            (operand, &Operand::Absent)
        };
        self.written(form, mods, first, dsts);
        if let Some((second_form, _)) = &form.second {
            self.written(second_form, mods, second, dsts);
        }
    }

    fn written(&self, form: &OperandForm, mods: &Mods, operand: &Operand, dsts: &mut Vec<Dst>) {
        match operand {
            Operand::Register(register) => {
                let regs = self.layout.registers(*register).iter();
                match default_mask(form.selector) {
                    Some(bytes) => dsts.extend(regs.map(|reg| Dst::Video { reg: *reg, bytes })),
                    None => dsts.extend(regs.map(|reg| Dst::Reg(*reg))),
                }
            }
            Operand::Element(register, element) => {
                dsts.push(Dst::Reg(self.layout.register(*register, *element)));
            }
            Operand::Vector(elements) => elements.iter().for_each(|e| self.written(form, mods, e, dsts)),
            Operand::Video { value, selector, .. } => {
                let start = dsts.len();
                self.written(form, mods, value, dsts);
                if !selector.is_empty() {
                    for dst in &mut dsts[start..] {
                        if let Some(reg) = dst.reg() {
                            *dst = Dst::Video { reg, bytes: byte_mask(selector) };
                        }
                    }
                }
            }
            Operand::Absent
            | Operand::Sink
            | Operand::Not(_)
            | Operand::Sreg(..)
            | Operand::Imm(_)
            | Operand::Pair(..)
            | Operand::Address(_)
            | Operand::SymbolAddress(..)
            | Operand::Opaque(_)
            | Operand::AddressList(_)
            | Operand::Label(_)
            | Operand::BranchTargets(_)
            | Operand::Function(_)
            | Operand::CallTargets(_)
            | Operand::Prototype(_)
            | Operand::Args(_)
            | Operand::ParamVar(_) => {
                let registers = form.ty(mods).map_or(1, |ty| RegClass::of(ty).1);
                dsts.extend(std::iter::repeat_n(Dst::Sink, registers));
            }
        }
    }

    fn source(&self, form: &OperandForm, mods: &Mods, operand: &Operand, sources: &mut Sources) {
        match form.kind {
            Kind::Bracket => self.bracket(form, mods, operand, sources),
            Kind::Coords => {
                let start = sources.srcs.len();
                self.read(form, operand, sources);
                let used = mods.geom().map(|geom| form::coords(geom, Ty::U32).used);
                truncate(&mut sources.srcs, start, used);
            }
            Kind::Offset | Kind::Grad => {
                let start = sources.srcs.len();
                self.read(form, operand, sources);
                let used = mods.geom().map(form::companion_lanes);
                truncate(&mut sources.srcs, start, used);
            }
            // In the terminator.
            Kind::Label
            | Kind::TargetList
            | Kind::Func
            | Kind::FuncPtr
            | Kind::CallTargets
            | Kind::Args
            | Kind::Rets => {}
            Kind::Value(_)
            | Kind::Imm { .. }
            | Kind::Address(_)
            | Kind::Opaque(_)
            | Kind::LevelOfDetail
            | Kind::Fragment(_)
            | Kind::Elems
            | Kind::MovSource
            | Kind::Variable => self.read(form, operand, sources),
        }
    }

    /// `[a, b, c]`: omitted members are the optional ones, first to last.
    fn bracket(&self, form: &OperandForm, mods: &Mods, operand: &Operand, sources: &mut Sources) {
        let given = if let Operand::AddressList(list) = operand {
            list.as_slice()
        } else {
            std::slice::from_ref(operand)
        };
        let mut missing = form.members.len().saturating_sub(given.len());
        let mut given = given.iter();
        for member in &form.members {
            if member.optional && missing > 0 {
                missing -= 1;
                sources.srcs.push(Src::Absent);
            } else {
                self.source(member, mods, given.next().unwrap_or(&Operand::Absent), sources);
            }
        }
    }

    fn read(&self, form: &OperandForm, operand: &Operand, sources: &mut Sources) {
        if (form.selector.is_some() || form.may_minus) && !matches!(operand, Operand::Absent) {
            sources.srcs.push(self.video(form, operand));
            return;
        }
        match operand {
            Operand::Absent | Operand::Sink => sources.srcs.push(Src::Absent),
            Operand::Vector(elements) => elements.iter().for_each(|e| self.read(form, e, sources)),
            Operand::Register(register) => {
                sources.srcs.extend(self.layout.registers(*register).iter().map(|reg| Src::Reg(*reg)));
            }
            Operand::Address(address) => self.address(address.base, address.index, address.offset, sources),
            Operand::SymbolAddress(base, offset) => self.address(*base, None, *offset, sources),
            Operand::Opaque(AddressBase::Register(register)) => {
                sources.srcs.push(Src::Reg(self.layout.register(*register, 0)));
            }
            Operand::Opaque(base) => self.address(*base, None, 0, sources),
            Operand::Element(..)
            | Operand::Not(_)
            | Operand::Sreg(..)
            | Operand::Imm(_)
            | Operand::Video { .. }
            | Operand::Pair(..)
            | Operand::AddressList(_)
            | Operand::Label(_)
            | Operand::BranchTargets(_)
            | Operand::Function(_)
            | Operand::CallTargets(_)
            | Operand::Prototype(_)
            | Operand::Args(_) => sources.srcs.push(self.scalar(operand)),
            Operand::ParamVar(local) => {
                sources.object.get_or_insert(local.0);
                sources.srcs.push(self.scalar(operand));
            }
        }
    }

    /// One value that is not an address.
    fn scalar(&self, operand: &Operand) -> Src {
        match operand {
            Operand::Register(register) => Src::Reg(self.layout.register(*register, 0)),
            Operand::Element(register, element) => Src::Reg(self.layout.register(*register, *element)),
            Operand::Not(register) => Src::Not(self.layout.register(*register, 0)),
            Operand::Sreg(sreg, component) => Src::Sreg(*sreg, *component),
            Operand::Imm(bits) => Src::Imm(*bits),
            Operand::Video { value, .. } => self.scalar(value),
            Operand::Function(func) => {
                let base = Base::Func(self.context.aliases.resolve(*func));
                Src::Addr(Addr { base, index: None, offset: 0 })
            }
            Operand::ParamVar(local) => {
                let (base, offset, _) = self.layout.local(*local);
                Src::Addr(Addr { base, index: None, offset })
            }
            Operand::Absent
            | Operand::Sink
            | Operand::Vector(_)
            | Operand::Pair(..)
            | Operand::Address(_)
            | Operand::SymbolAddress(..)
            | Operand::Opaque(_)
            | Operand::AddressList(_)
            | Operand::Label(_)
            | Operand::BranchTargets(_)
            | Operand::CallTargets(_)
            | Operand::Prototype(_)
            | Operand::Args(_) => Src::Absent,
        }
    }

    fn address(
        &self,
        base: AddressBase,
        index: Option<module::RegisterId>,
        offset: i64,
        sources: &mut Sources,
    ) {
        let index = index.map(|register| self.layout.register(register, 0));
        let base = match base {
            AddressBase::Absolute => Base::Absolute,
            AddressBase::Register(register) => Base::Reg(self.layout.register(register, 0)),
            AddressBase::Var(var) => {
                let variable = self.context.module.variables.get(var.0 as usize);
                sources.named_space = variable.map(|v| v.space);
                Base::Var(var)
            }
            AddressBase::Func(func) => Base::Func(self.context.aliases.resolve(func)),
            AddressBase::Local(local) => {
                let (base, start, space) = self.layout.local(local);
                sources.named_space = Some(space);
                sources.object.get_or_insert(local.0);
                let offset = offset.saturating_add(start);
                sources.srcs.push(Src::Addr(Addr { base, index, offset }));
                return;
            }
        };
        sources.srcs.push(Src::Addr(Addr { base, index, offset }));
    }

    fn video(&self, form: &OperandForm, operand: &Operand) -> Src {
        let (negated, selector) = if let Operand::Video { negated, selector, .. } = operand {
            (*negated, selector.as_str())
        } else {
            (false, "")
        };
        let digits = selector.as_bytes().get(1..).unwrap_or(&[]);
        let mut elements: Vec<u8> = digits.iter().rev().map(|d| d.saturating_sub(b'0')).collect();
        let mut bytes = selector.starts_with('b');
        if elements.is_empty() {
            let second = form.name == "b";
            (elements, bytes) = match (form.selector.map(|(selector, _)| selector), second) {
                (Some(Selector::Sel2 | Selector::Mask2), false) => (vec![0, 1], false),
                (Some(Selector::Sel2 | Selector::Mask2), true) => (vec![2, 3], false),
                (Some(Selector::Sel4 | Selector::Mask4), false) => (vec![0, 1, 2, 3], true),
                (Some(Selector::Sel4 | Selector::Mask4), true) => (vec![4, 5, 6, 7], true),
                (Some(Selector::Sub) | None, _) => (Vec::new(), false),
            };
        }
        Src::Video(Box::new(VideoSrc { value: self.scalar(operand), negated, elements, bytes }))
    }
}

/// Keeps at most `used` of the sources from `start`.
fn truncate(srcs: &mut Vec<Src>, start: usize, used: Option<u8>) {
    if let Some(used) = used {
        srcs.truncate(start + usize::from(used));
    }
}

/// The default byte mask of a destination: all bytes, for the packed forms (V24).
fn default_mask(selector: Option<(Selector, Need)>) -> Option<u8> {
    match selector {
        Some((Selector::Mask2 | Selector::Mask4, _)) => Some(0b1111),
        Some((Selector::Sub | Selector::Sel2 | Selector::Sel4, _)) | None => None,
    }
}

/// The bytes of a word in a selector or mask: `b2` is `0b0100`, `h1` is `0b1100`.
fn byte_mask(selector: &str) -> u8 {
    let (kind, digits) = selector.split_at_checked(1).unwrap_or(("", ""));
    let bits = digits.bytes().map(|d| match (kind, d.saturating_sub(b'0')) {
        ("b", d @ 0..=3) => 1 << d,
        ("h", d @ 0..=1) => 0b11 << (2 * d),
        _ => 0,
    });
    bits.fold(0, |mask, bits: u8| mask | bits)
}

/// The modifier that names a state space of memory.
fn space_word(space: Space) -> Option<Word> {
    match space {
        Space::Const => Some(Word::Const),
        Space::Global => Some(Word::Global),
        Space::Local => Some(Word::Local),
        Space::Param => Some(Word::Param),
        Space::Shared => Some(Word::Shared),
        Space::Generic | Space::Reg | Space::Sreg | Space::Tex => None,
    }
}

/// Whether an instruction implicitly flushes single-precision subnormals on `sm_1x`. PTX ISA §9.7.3; for
/// conversions before PTX 1.5, the note in §9.7.8.14.
fn flushes(inst: &module::Inst, version: Version) -> bool {
    let mods = &inst.mods;
    if mods.has(Word::Ftz) {
        return false;
    }
    let op = inst.row.row().op;
    let by_type = matches!(
        op,
        Op::Add | Op::Sub | Op::Mul | Op::Mad | Op::Fma | Op::Div | Op::Abs | Op::Neg | Op::Min | Op::Max
    ) || matches!(op, Op::Rcp | Op::Sqrt | Op::Rsqrt | Op::Sin | Op::Cos | Op::Lg2 | Op::Ex2);
    if by_type {
        mods.ty_in(Slot::Type) == Some(Ty::F32)
    } else if matches!(op, Op::Set | Op::Setp) {
        mods.atype() == Ty::F32
    } else if op == Op::Slct {
        // The type of operand c, which is a literal in the row.
        mods.ty_in(Slot::Type) == Some(Ty::F32)
    } else if op == Op::Cvt {
        let (d, a) = (mods.dtype(), mods.atype());
        let old = version <= Version::new(1, 4);
        let half_or_single = |ty| matches!(ty, Ty::F16 | Ty::F32);
        (d == Ty::F32 || a == Ty::F32) && (!old || (half_or_single(d) && half_or_single(a)))
    } else {
        false
    }
}
