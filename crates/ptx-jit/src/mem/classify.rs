//! Classifies accesses: what an access is, and how the addresses of its lanes are related.
//!
//! Invariant: the form of an address follows from the shape of its register and from the facts of
//! [`address`](crate::analysis::address) about it. An access without a class has no native code.

use crate::analysis::address::{AddressFacts, Provenance};
use crate::wir::access::{Access, Form};
use crate::wir::{Affine, Func, Kind, Op, Shape, Value};
use ptx::check::module::AddressSize;
use ptx::ir::{Addr, Base, Inst, Program, RegClass, Src};
use ptx::isa::{Sem, Space, Ty, TyKind};
use ptx_exec::mem::LocalLayout;

/// What accesses are classified by.
#[derive(Clone, Copy)]
pub(crate) struct Classes<'a> {
    pub(crate) func: &'a Func,
    pub(crate) program: &'a Program,
    pub(crate) addresses: &'a AddressFacts,
    /// Lanes of a chunk.
    pub(crate) width: u32,
}

impl Classes<'_> {
    /// The access and the form of its addresses, in its state space. `full`: in a full copy of its block.
    pub(crate) fn classify(self, inst: &Inst, op: &Op, write: bool, full: bool) -> Option<(Access, Form)> {
        let access = access_of(self.program, inst, write)?;
        if self.program.address_size != AddressSize::Bits64 {
            return None;
        }
        match inst.srcs.first()? {
            Src::Addr(Addr { base: Base::Reg(_), index: None, .. }) | Src::Reg(_) => {
                self.form(*op.uses.get(1)?, access, full)
            }
            Src::Addr(Addr { index: None, .. }) => Some((access, Form::Same)),
            _ => None,
        }
    }

    /// An access relative to a register, with the space that the address is known to be of, and the form of
    /// its addresses.
    pub(crate) fn form(self, address: Value, mut access: Access, full: bool) -> Option<(Access, Form)> {
        let Kind::Reg(class @ (RegClass::R64 | RegClass::R32)) = self.func.kinds[address.0 as usize] else {
            return None;
        };
        // A 32-bit address that is not uniform could wrap around.
        let narrow = class == RegClass::R32;
        let provenance = self.addresses.provenance(address).filter(|_| access.space == Space::Generic);
        match provenance {
            Some(Provenance::Local(..)) => {
                access.space = Space::Local;
                return Some((access, Form::Same));
            }
            Some(Provenance::Window(space)) => access.space = space,
            None => {}
        }
        let form = match &self.func.shapes[address.0 as usize] {
            Shape::Uniform(_) | Shape::Bottom => Form::Same,
            Shape::Affine(pattern) if !narrow && !pattern.rows.is_empty() => match full {
                true => Form::Rows((**pattern).clone()),
                false => self.by_chunk(pattern),
            },
            Shape::Affine(pattern) if !narrow => Form::Affine((**pattern).clone()),
            Shape::Varying if !narrow => match self.addresses.scaled(address) {
                Some(form) => Form::ScaledIndex(form.scale),
                None => Form::Each,
            },
            Shape::Affine(_) | Shape::Varying => Form::Each,
        };
        Some((access, form))
    }

    /// The form of the host addresses of an access whose addresses in its state space have this form.
    /// `local`: how local memory lies in memory.
    pub(crate) fn placed(self, space: Space, form: Form, local: LocalLayout) -> Form {
        match (space, form) {
            (Space::Local, Form::Same) if local == LocalLayout::ByWord => Form::Local,
            (Space::Local, _) if local == LocalLayout::ByWord => Form::EachLocal,
            // Scalar code knows its lane, and so the address.
            (Space::Local, Form::Same) if self.width == 1 => Form::Same,
            // Each lane has its own local memory, a constant distance after the previous lane's.
            (Space::Local, Form::Same) => Form::ScaledIndex(1),
            (Space::Local, _) => Form::Each,
            (_, Form::Rows(pattern)) => self.by_chunk(&pattern),
            (_, form) => form,
        }
    }

    /// With a base for each chunk, unless a chunk contains several rows.
    fn by_chunk(self, pattern: &Affine) -> Form {
        match pattern.splits(self.width as usize) {
            true => Form::Rows(pattern.clone()),
            false => pattern.by_chunks(self.width as usize).map_or(Form::Each, Form::Affine),
        }
    }
}

/// The access that an instruction makes, if native code can make it in its memory order.
pub(crate) fn ordered_access(program: &Program, inst: &Inst, write: bool) -> Option<Access> {
    match (inst.mods.sem(), write) {
        (Sem::Weak | Sem::Volatile | Sem::Relaxed, _) | (Sem::Acquire, false) | (Sem::Release, true) => {}
        (Sem::Acquire | Sem::Release | Sem::AcqRel | Sem::Sc, _) => return None,
    }
    access_of(program, inst, write)
}

/// The access that an instruction makes, of any memory order.
pub(crate) fn access_of(program: &Program, inst: &Inst, write: bool) -> Option<Access> {
    let ty = inst.mods.ty();
    // A weak 128-bit access is two 64-bit words; with any other order it must be single-copy atomic.
    let (bits, count) = match ty {
        Ty::B128 if inst.mods.sem() == Sem::Weak => (64, 2),
        _ => (ty.bits(), u32::from(inst.mods.vec())),
    };
    if ty.kind() == TyKind::Opaque || !(8..=64).contains(&bits) {
        return None;
    }
    let said = inst.mods.space();
    let space = match inst.srcs.first()? {
        Src::Addr(Addr { base: Base::Frame, .. }) => Space::Local,
        Src::Addr(Addr { base: Base::KernelParam, .. }) => Space::Param,
        Src::Addr(Addr { base: Base::Var(var), .. }) if said == Space::Generic => {
            program.variables.get(var.0 as usize)?.space
        }
        _ => said,
    };
    Some(Access { space, bits, count, signed: ty.is_signed(), write, postponed: false })
}
