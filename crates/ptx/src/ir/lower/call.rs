//! Calls: the callee, and the places of arguments and results.
//!
//! Invariant: a call has one [`ArgPlace`] for each slot of the parameters and returns of the callee or
//! prototype, in order. PTX ISA §7.1, §9.7.11.5.

use super::Target;
use super::operand::Lowering;
use crate::check::module::{self, Body, FuncId, Loc, LocalId, Operand, Param, Signature};
use crate::ir::{ArgPlace, BlockId, Call, Callee, Inst, RegClass};
use crate::isa::Space;
use crate::isa::form::Kind;

impl Lowering<'_> {
    /// A `call` that continues at `next`.
    pub(super) fn call(&self, body: &Body, inst: &module::Inst, loc: Option<Loc>, next: BlockId) -> Call {
        let mut args: &[Operand] = &[];
        let mut rets: &[Operand] = &[];
        let mut direct = None;
        let mut address = None;
        let mut prototype = None;
        let mut allowed = None;
        for (form, operand) in inst.row.form().operands.iter().zip(&inst.operands) {
            match (form.kind, operand) {
                (Kind::Args, Operand::Args(list)) => args = list,
                (Kind::Rets, Operand::Args(list)) => rets = list,
                (_, Operand::Function(func)) => direct = Some(self.context.aliases.resolve(*func)),
                (_, Operand::Register(register)) => address = Some(self.layout.register(*register, 0)),
                (_, Operand::Element(register, element)) => {
                    address = Some(self.layout.register(*register, *element));
                }
                (_, Operand::Prototype(id)) => prototype = Some(Target::Prototype(*id)),
                (_, Operand::CallTargets(list)) => allowed = body.call_targets.get(*list as usize),
                _ => {}
            }
        }
        let target = direct
            .map(Target::Function)
            .or(prototype)
            .or_else(|| allowed.and_then(|list| list.first()).map(|first| Target::Function(*first)));
        let signature = target.and_then(|target| self.context.signature(target));
        let none = Signature::default();
        let signature = signature.unwrap_or(&none);
        let callee = match (direct, address) {
            (Some(func), _) => Callee::Direct(func),
            (None, address) => Callee::Indirect {
                address: address.unwrap_or_else(|| self.layout.register(module::RegisterId(0), 0)),
                allowed: allowed.map(|list| list.iter().map(|f| self.context.aliases.resolve(*f)).collect()),
            },
        };
        let (mut args, mut rets) =
            (self.places(&signature.params, args), self.places(&signature.returns, rets));
        // A machine function has no access to registers of module scope.
        let defined = |func: FuncId| {
            self.context.module.functions.get(func.0 as usize).is_some_and(|f| f.body.is_some())
        };
        if direct.is_none_or(defined) {
            let shared = || self.layout.shared.iter().flatten().map(|reg| ArgPlace::Reg(*reg));
            args.extend(shared());
            rets.extend(shared());
        }
        Call {
            callee,
            args,
            rets,
            next,
            inst: Inst {
                op: inst.row.row().op,
                row: inst.row,
                mods: inst.mods,
                guard: None,
                dsts: Vec::new(),
                srcs: Vec::new(),
                span: inst.span,
                loc,
                object: None,
            },
        }
    }

    /// The places of all arguments or results, by the slots of the formals.
    fn places(&self, formals: &[Param], actuals: &[Operand]) -> Vec<ArgPlace> {
        let mut places = Vec::new();
        for (i, formal) in formals.iter().enumerate() {
            let slots = slots(formal);
            let start = places.len();
            self.place(actuals.get(i).unwrap_or(&Operand::Absent), slots, formal, &mut places);
            places.resize(start + slots, ArgPlace::None);
        }
        places
    }

    fn place(&self, actual: &Operand, slots: usize, formal: &Param, places: &mut Vec<ArgPlace>) {
        match actual {
            Operand::ParamVar(local) if slots > 1 => self.split(*local, slots, formal, places),
            Operand::ParamVar(local) => places.push(self.layout.argument(*local)),
            Operand::Register(register) => {
                places.extend(self.layout.registers(*register).iter().map(|reg| ArgPlace::Reg(*reg)));
            }
            Operand::Element(register, element) => {
                places.push(ArgPlace::Reg(self.layout.register(*register, *element)));
            }
            Operand::Imm(bits) => places.push(ArgPlace::Imm(*bits)),
            Operand::Vector(elements) => elements.iter().for_each(|e| self.place(e, 1, formal, places)),
            Operand::Absent
            | Operand::Sink
            | Operand::Not(_)
            | Operand::Sreg(..)
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
            | Operand::Video { .. } => places.push(ArgPlace::None),
        }
    }

    /// A `.param` vector for a formal that is a register vector: one place per element.
    fn split(&self, local: LocalId, slots: usize, formal: &Param, places: &mut Vec<ArgPlace>) {
        let size = formal.ty.bytes();
        for i in 0..slots as u32 {
            places.push(match self.layout.argument(local) {
                ArgPlace::Frame { offset, .. } => {
                    ArgPlace::Frame { offset: offset.saturating_add(i.saturating_mul(size)), bytes: size }
                }
                ArgPlace::KernelParam { offset, .. } => ArgPlace::KernelParam {
                    offset: offset.saturating_add(i.saturating_mul(size)),
                    bytes: size,
                },
                other @ (ArgPlace::Reg(_) | ArgPlace::Imm(_) | ArgPlace::None) => other,
            });
        }
    }
}

/// The slots of a formal parameter: one per element of a register vector, otherwise one.
fn slots(formal: &Param) -> usize {
    if formal.space == Space::Reg { usize::from(formal.vector.max(1)) * RegClass::of(formal.ty).1 } else { 1 }
}
