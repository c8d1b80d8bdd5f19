//! The names in operands: registers, variables, functions and prototypes, at any place of an operand.
//!
//! Invariant: a traversal visits every such name in an operand once, in the order of the text. Labels and
//! lists of targets belong to one body and are not visited.

use super::module::{AddressBase, FuncId, LocalId, Operand, ProtoId, RegisterId, VarId};

/// A register, or an entity of the module, that an operand names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    Register(RegisterId),
    Var(VarId),
    Func(FuncId),
}

/// A mutable name in an operand, for renumbering.
#[derive(Debug)]
pub(super) enum NameMut<'o> {
    Register(&'o mut RegisterId),
    Local(&'o mut LocalId),
    Var(&'o mut VarId),
    Func(&'o mut FuncId),
    Prototype(&'o mut ProtoId),
}

impl Operand {
    /// Visits every register, variable of the module, and function in the operand.
    pub(super) fn for_each_name(&self, see: &mut impl FnMut(Name)) {
        match self {
            Operand::Register(id) | Operand::Element(id, _) | Operand::Not(id) => see(Name::Register(*id)),
            Operand::Function(id) => see(Name::Func(*id)),
            Operand::Vector(list) | Operand::AddressList(list) | Operand::Args(list) => {
                for operand in list {
                    operand.for_each_name(see);
                }
            }
            Operand::Pair(d, p) => {
                d.for_each_name(see);
                p.for_each_name(see);
            }
            Operand::Address(address) => {
                in_base(address.base).into_iter().chain(address.index.map(Name::Register)).for_each(see);
            }
            Operand::SymbolAddress(base, _) | Operand::Opaque(base) => {
                in_base(*base).into_iter().for_each(see)
            }
            Operand::Video { value, .. } => value.for_each_name(see),
            Operand::Absent
            | Operand::Sink
            | Operand::Sreg(..)
            | Operand::Imm(_)
            | Operand::Label(_)
            | Operand::BranchTargets(_)
            | Operand::CallTargets(_)
            | Operand::Prototype(_)
            | Operand::ParamVar(_) => {}
        }
    }

    /// Visits every name in the operand, for renumbering.
    pub(super) fn for_each_name_mut(&mut self, see: &mut impl FnMut(NameMut<'_>)) {
        match self {
            Operand::Register(id) | Operand::Element(id, _) | Operand::Not(id) => see(NameMut::Register(id)),
            Operand::ParamVar(id) => see(NameMut::Local(id)),
            Operand::Function(id) => see(NameMut::Func(id)),
            Operand::Prototype(id) => see(NameMut::Prototype(id)),
            Operand::Vector(list) | Operand::AddressList(list) | Operand::Args(list) => {
                for operand in list {
                    operand.for_each_name_mut(see);
                }
            }
            Operand::Pair(d, p) => {
                d.for_each_name_mut(see);
                p.for_each_name_mut(see);
            }
            Operand::Address(address) => {
                let index = address.index.as_mut().map(NameMut::Register);
                in_base_mut(&mut address.base).into_iter().chain(index).for_each(see);
            }
            Operand::SymbolAddress(base, _) | Operand::Opaque(base) => {
                in_base_mut(base).into_iter().for_each(see);
            }
            Operand::Video { value, .. } => value.for_each_name_mut(see),
            Operand::Absent
            | Operand::Sink
            | Operand::Sreg(..)
            | Operand::Imm(_)
            | Operand::Label(_)
            | Operand::BranchTargets(_)
            | Operand::CallTargets(_) => {}
        }
    }
}

fn in_base(base: AddressBase) -> Option<Name> {
    match base {
        AddressBase::Register(id) => Some(Name::Register(id)),
        AddressBase::Var(id) => Some(Name::Var(id)),
        AddressBase::Func(id) => Some(Name::Func(id)),
        AddressBase::Absolute | AddressBase::Local(_) => None,
    }
}

fn in_base_mut(base: &mut AddressBase) -> Option<NameMut<'_>> {
    match base {
        AddressBase::Register(id) => Some(NameMut::Register(id)),
        AddressBase::Local(id) => Some(NameMut::Local(id)),
        AddressBase::Var(id) => Some(NameMut::Var(id)),
        AddressBase::Func(id) => Some(NameMut::Func(id)),
        AddressBase::Absolute => None,
    }
}
