//! Instructions constructed from a row of the table, to test whether the row is bound.
//!
//! Invariant: the instruction is equal to what `ir::lower` makes of a text with every optional operand, and
//! with registers wherever the row allows them.

use super::{Binding, Missing, barrier, matrix, warp};
use crate::layout::Layout;
use ptx::Span;
use ptx::check::module::{AddressSize, Source, Target};
use ptx::ir::{Addr, Base, BlockId, Dst, Inst, Program, Reg, RegClass, Src, VideoSrc};
use ptx::isa::form::{TypeOf, Value};
use ptx::isa::{Dir, Form, Kind, Mods, Op, OperandForm, RowId, Selector, Sm, Ty, Version};
use std::sync::Arc;

/// A program without functions, for isolated instructions.
pub(super) fn empty_program() -> Program {
    Program {
        source: Arc::new(Source::new("", "")),
        version: Version::new(6, 4),
        target: Target {
            sm: Sm::from_name("sm_70").expect("the table knows sm_70"),
            texmode_independent: false,
            map_f64_to_f32: false,
            debug: false,
        },
        address_size: AddressSize::Bits64,
        files: Vec::new(),
        variables: Vec::new(),
        functions: Vec::new(),
    }
}

/// Whether an instruction of the row with these modifiers is bound.
pub(super) fn is_bound(row: RowId, mods: &Mods) -> bool {
    let Ok(inst) = instruction(row, mods) else { return false };
    let (program, layout) = (empty_program(), Layout::default());
    let binding = Binding { program: &program, layout: &layout, kernel: None };
    let next = BlockId(0);
    match shape(inst.op) {
        Shape::Flow => true,
        Shape::WarpSync => binding.understood(&inst, |o| warp::sync(o, next)).is_ok(),
        Shape::Matrix => binding.understood(&inst, matrix::matrix).is_ok(),
        Shape::Barrier => binding.understood(&inst, |o| barrier::barrier(o, next)).is_ok(),
        Shape::Step => binding.run(&inst, 0).is_ok(),
    }
}

/// The place of an instruction in bound code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A step of a block.
    Step,
    /// The end of a block that consists of control flow only.
    Flow,
    /// A warp-synchronous terminator.
    WarpSync,
    /// A matrix instruction: a terminator for all lanes of the warp.
    Matrix,
    /// A barrier.
    Barrier,
}

/// The place of instructions with this operation.
pub(super) fn shape(op: Op) -> Shape {
    if matches!(op, Op::Bra | Op::BrxIdx | Op::Call | Op::CallIndirect | Op::Ret | Op::Exit) {
        Shape::Flow
    } else if matches!(op, Op::ShflSync | Op::VoteSync | Op::MatchAny | Op::MatchAll | Op::BarWarpSync)
        || matches!(op, Op::ReduxSync | Op::ElectSync)
    {
        Shape::WarpSync
    } else if matches!(op, Op::BarSync | Op::BarArrive | Op::BarRed) {
        Shape::Barrier
    } else if matrix::is_matrix(op) {
        Shape::Matrix
    } else {
        Shape::Step
    }
}

/// An instruction of the row; registers are numbered from 0 in each class, destinations first.
pub(super) fn instruction(row: RowId, mods: &Mods) -> Result<Inst, Missing> {
    let form = row.form();
    let mut inst = Inst {
        op: form.row.op,
        row,
        mods: *mods,
        guard: None,
        dsts: Vec::new(),
        srcs: Vec::new(),
        span: Span::default(),
        loc: None,
        object: None,
    };
    if shape(form.row.op) == Shape::Flow {
        return Ok(inst);
    }
    let mut registers = Registers::default();
    for operand in form.operands.iter().filter(|o| o.dir == Dir::Out) {
        registers.destination(form, operand, mods, &mut inst.dsts)?;
    }
    for operand in form.operands.iter().filter(|o| o.dir == Dir::In) {
        registers.source(form, operand, mods, &mut inst.srcs)?;
    }
    Ok(inst)
}

/// The next free register of each class.
#[derive(Default)]
struct Registers {
    next: [u32; 4],
}

impl Registers {
    fn take(&mut self, class: RegClass) -> Reg {
        let next = &mut self.next[class as usize];
        *next += 1;
        Reg { class, index: *next - 1 }
    }

    fn destination(
        &mut self,
        form: &Form,
        operand: &OperandForm,
        mods: &Mods,
        dsts: &mut Vec<Dst>,
    ) -> Result<(), Missing> {
        for class in classes(form, operand, mods)? {
            let reg = self.take(class);
            let packed = matches!(operand.selector, Some((Selector::Mask2 | Selector::Mask4, _)));
            dsts.push(match operand.selector {
                Some(_) => Dst::Video { reg, bytes: if packed { 0b1111 } else { 0b0010 } },
                None => Dst::Reg(reg),
            });
        }
        if let Some((second, _)) = &operand.second {
            self.destination(form, second, mods, dsts)?;
        }
        Ok(())
    }

    fn source(
        &mut self,
        form: &Form,
        operand: &OperandForm,
        mods: &Mods,
        srcs: &mut Vec<Src>,
    ) -> Result<(), Missing> {
        if let Kind::Imm { min, .. } = operand.kind {
            srcs.push(Src::Imm(min as u64));
            return Ok(());
        }
        if operand.kind == Kind::Bracket {
            for member in &operand.members {
                self.source(form, member, mods, srcs)?;
            }
            return Ok(());
        }
        if let Kind::Address(_) = operand.kind {
            srcs.push(Src::Addr(Addr { base: Base::Reg(self.take(RegClass::R64)), index: None, offset: 0 }));
            return Ok(());
        }
        for class in classes(form, operand, mods)? {
            let value = Src::Reg(self.take(class));
            let elements = match operand.selector {
                Some((Selector::Sub, _)) => vec![1],
                Some((Selector::Sel2, _)) => vec![0, 1],
                Some((Selector::Sel4, _)) => vec![0, 1, 2, 3],
                Some((Selector::Mask2 | Selector::Mask4, _)) | None => Vec::new(),
            };
            let bytes = !matches!(operand.selector, Some((Selector::Sel2, _)));
            let video = operand.selector.is_some() || operand.may_minus;
            srcs.push(match video {
                true => Src::Video(Box::new(VideoSrc { value, negated: false, elements, bytes })),
                false => value,
            });
        }
        Ok(())
    }
}

/// The register classes of an operand.
fn classes(form: &Form, operand: &OperandForm, mods: &Mods) -> Result<Vec<RegClass>, Missing> {
    match operand.kind {
        Kind::Elems => {
            let whole = form.operands.iter().find_map(|o| o.ty(mods)).or(mods.ty_in(ptx::isa::Slot::Type));
            let half = whole.map_or(0, |ty| ty.bits() / 2);
            Ok(vec![class(half)?; 2])
        }
        Kind::Variable => Ok(vec![RegClass::R64]),
        Kind::Value(Value { ty: TypeOf::Pointer, .. }) => Ok(vec![RegClass::R64]),
        Kind::Value(_) | Kind::MovSource | Kind::Fragment(_) => {
            let ty = operand.ty(mods).ok_or(Missing)?;
            if ty == Ty::B128 {
                return Ok(vec![RegClass::R64; 2 * usize::from(operand.lanes(mods))]);
            }
            let class = if ty == Ty::Pred { RegClass::Pred } else { class(ty.bits())? };
            Ok(vec![class; usize::from(operand.lanes(mods))])
        }
        Kind::Opaque(_) => Ok(vec![RegClass::R64]),
        Kind::Coords => {
            let geom = mods.geom().ok_or(Missing)?;
            Ok(vec![RegClass::R32; usize::from(ptx::isa::form::coords(geom, Ty::U32).used)])
        }
        Kind::Offset | Kind::Grad | Kind::LevelOfDetail => {
            Ok(vec![RegClass::R32; usize::from(operand.lanes(mods))])
        }
        Kind::Imm { .. }
        | Kind::Address(_)
        | Kind::Label
        | Kind::TargetList
        | Kind::Func
        | Kind::FuncPtr
        | Kind::CallTargets
        | Kind::Args
        | Kind::Rets
        | Kind::Bracket => Err(Missing),
    }
}

fn class(bits: u32) -> Result<RegClass, Missing> {
    match bits {
        8 | 16 => Ok(RegClass::R16),
        32 => Ok(RegClass::R32),
        64 => Ok(RegClass::R64),
        _ => Err(Missing),
    }
}
