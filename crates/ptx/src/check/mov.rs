//! Operands of `mov` and `cvta`: values, special registers, addresses of variables and functions, vectors to
//! pack. PTX ISA §9.7.8.2, §9.7.8.3, §9.7.8.13.
//!
//! Invariant: an address is taken only of entities that have one in the module's version (return parameters
//! from PTX 6.0 on, kernels from 3.1 on, variables for call arguments never).

use super::body::BodyChecker;
use super::inst::{Site, Written, WrittenKind};
use super::module::{AddressBase, FunctionKind, LocalRole, Operand};
use super::scope::Entity;
use super::types::{Width, accepts};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Dir, OperandForm, Slot, Space, Ty, TyKind, Version};
use crate::syntax::tree::Reference;

impl BodyChecker<'_, '_> {
    /// The source of `mov`. PTX ISA §9.7.8.2.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    pub(super) fn mov_source(&mut self, site: &Site<'_>, written: &Written<'_>) -> Option<Operand> {
        let ty = site.found.mods.ty_in(Slot::Type)?;
        match &written.kind {
            WrittenKind::Name(reference) => {
                if let Some(sreg) = self.special(reference) {
                    return self.special_register(reference, sreg, ty, Width::Equal);
                }
                match self.resolve(reference.name)? {
                    Entity::Var(_) | Entity::Local(_) | Entity::Func(_) => {
                        let base = self.addressable(reference)?;
                        self.address_value(ty, base, 0, written.span)
                    }
                    Entity::Label(_) => {
                        self.checker.report.push(
                            Diagnostic::new(
                                Code::RemovedFeature,
                                written.span,
                                "the address of a label cannot be taken",
                            )
                            .with_help("`brx.idx` with a `.branchtargets` list")
                            .with_section("9.7.8.2"),
                        );
                        None
                    }
                    Entity::Register(_)
                    | Entity::ModuleRegister(_)
                    | Entity::ModuleLocal(_)
                    | Entity::Prototype(_)
                    | Entity::CallTargets(_)
                    | Entity::BranchTargets(_)
                    | Entity::UnusableTargets(_)
                    | Entity::Broken => self.register_operand(reference, ty, Width::Equal, Dir::In),
                }
            }
            WrittenKind::Sum(sum) if sum.generic.is_none() && sum.mask.is_none() => {
                match self.resolve(sum.name.name)? {
                    Entity::Var(_) | Entity::Local(_) | Entity::Func(_) => {
                        let base = self.addressable(&sum.name)?;
                        self.address_value(ty, base, sum.addend, written.span)
                    }
                    Entity::Register(_) => self.source(written, ty, Width::Equal),
                    _ => self.wrong_kind(
                        written.span,
                        "`mov` reads a value, or the address of a variable plus a constant",
                    ),
                }
            }
            WrittenKind::Sum(_) => {
                self.wrong_kind(written.span, "`generic()` and masks are for initialisers")
            }
            WrittenKind::Indexed(array, index) => {
                let (base, index, offset) = self.indexed(array, index)?;
                match index {
                    Some(_) => self.wrong_kind(written.span, "the index must be a constant here"),
                    None => self.address_value(ty, base, offset, written.span),
                }
            }
            WrittenKind::Const(_)
            | WrittenKind::Sink
            | WrittenKind::Not(_)
            | WrittenKind::Minus(_)
            | WrittenKind::Vector(_)
            | WrittenKind::Address(_)
            | WrittenKind::Brackets(_)
            | WrittenKind::Pair(..)
            | WrittenKind::List(_) => self.source(written, ty, Width::Equal),
        }
    }

    /// The variable or function whose address `mov` takes; reports if it has none.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    fn addressable(&mut self, reference: &Reference) -> Option<AddressBase> {
        let text = self.checker.text;
        let (name, span) = (reference.name.text(text), reference.span);
        if let Some(suffix) = reference.suffix {
            self.wrong_kind(suffix.span, "an address has no elements");
            return None;
        }
        match self.resolve(reference.name)? {
            Entity::Var(id) => {
                let variable = &self.checker.variables[id.0 as usize];
                if variable.ty.kind() == TyKind::Opaque {
                    self.checker.needs(
                        span,
                        "a pointer to an opaque variable",
                        Version::new(3, 1),
                        20,
                        "5.3",
                    );
                }
                Some(AddressBase::Var(id))
            }
            Entity::Local(id) => {
                let role = self.local(id).role;
                match role {
                    LocalRole::CallParam => {
                        self.checker.report.push(
                            Diagnostic::new(
                                Code::BadAddress,
                                span,
                                format!("`{name}` is a `.param` variable of this body, which has no address"),
                            )
                            .with_help("`st.param` and `ld.param` access it by name")
                            .with_section("5.1.6.4"),
                        );
                        return None;
                    }
                    LocalRole::Return(_) => {
                        let what = "the address of a return parameter";
                        if !self.checker.needs(span, what, Version::new(6, 0), 10, "5.1.6.4") {
                            return None;
                        }
                    }
                    LocalRole::Local
                    | LocalRole::Shared(_)
                    | LocalRole::KernelParam(_)
                    | LocalRole::Input(_) => {}
                }
                Some(AddressBase::Local(id))
            }
            Entity::Func(id) => {
                let function = &self.checker.functions[id.0 as usize];
                let ok = match function.kind {
                    FunctionKind::Func => self.checker.needs(
                        span,
                        "the address of a function",
                        Version::new(2, 1),
                        20,
                        "9.7.8.2",
                    ),
                    FunctionKind::Entry => {
                        self.checker.needs(span, "the address of a kernel", Version::new(3, 1), 35, "9.7.8.2")
                    }
                };
                ok.then_some(AddressBase::Func(id))
            }
            _ => None,
        }
    }

    /// An address in a register of that type.
    fn address_value(&mut self, ty: Ty, base: AddressBase, offset: i64, span: Span) -> Option<Operand> {
        let wanted = self.checker.header.address_size().bytes() * 8;
        let fits = match ty.kind() {
            TyKind::Bits | TyKind::Unsigned | TyKind::Signed => matches!(ty.bits(), 32 | 64),
            TyKind::Float | TyKind::Pred | TyKind::Opaque => false,
        };
        let cut =
            !fits && ty.bits() == 16 && matches!(ty.kind(), TyKind::Bits | TyKind::Unsigned | TyKind::Signed);
        if cut && self.opaque_type(base).is_none() {
            self.checker.report.push(
                Diagnostic::new(Code::NonStandard, span, "an address does not fit 16 bits")
                    .with_label(format!("cut to `.{}`", ty.name()))
                    .with_help(format!("`mov.u{wanted}`"))
                    .with_section("9.7.8.2"),
            );
        } else if !fits {
            self.checker.report.push(
                Diagnostic::new(
                    Code::WrongOperandType,
                    span,
                    format!("an address does not fit a register of type `.{}`", ty.name()),
                )
                .with_help(format!("`mov.u{wanted}`"))
                .with_section("9.7.8.2"),
            );
            return None;
        }
        if let Some(opaque) = self.opaque_type(base).filter(|_| offset != 0 || ty.bits() != 64) {
            let name = opaque.name();
            let (code, message) = if offset == 0 {
                let message =
                    format!("a pointer to a `.{name}` has 64 bits, and `.{}` {}", ty.name(), ty.bits());
                (Code::WrongOperandType, message)
            } else {
                (Code::WrongOperandKind, format!("nothing can be added to a pointer to a `.{name}`"))
            };
            self.checker.report.push(
                Diagnostic::new(code, span, message).with_help("`mov.u64 r, name;`").with_section("5.3"),
            );
            return None;
        }
        let windowed = match base {
            AddressBase::Var(id) => {
                matches!(self.checker.variables[id.0 as usize].space, Space::Shared | Space::Const)
            }
            AddressBase::Local(_) => true,
            AddressBase::Func(_) | AddressBase::Absolute | AddressBase::Register(_) => false,
        };
        if !cut && ty.bits() < wanted && !windowed && !self.checker.header.address_size_is_open() {
            self.checker.report.push(
                Diagnostic::new(
                    Code::Suspicious,
                    span,
                    format!("the address has {wanted} bits, and is cut to {}", ty.bits()),
                )
                .with_help(format!("`mov.u{wanted}`"))
                .with_section("9.7.8.2"),
            );
        }
        Some(Operand::SymbolAddress(base, offset))
    }

    /// The type of an opaque variable.
    fn opaque_type(&self, base: AddressBase) -> Option<Ty> {
        let ty = match base {
            AddressBase::Var(id) => self.checker.variables[id.0 as usize].ty,
            AddressBase::Local(id) => self.local(id).ty,
            AddressBase::Register(_) | AddressBase::Func(_) | AddressBase::Absolute => return None,
        };
        (ty.kind() == TyKind::Opaque).then_some(ty)
    }

    /// The source of `cvta`: a register, or a variable of its state space.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    pub(super) fn cvta_source(&mut self, site: &Site<'_>, written: &Written<'_>) -> Option<Operand> {
        let ty = site.found.mods.ty_in(Slot::Type)?;
        let space = site.found.mods.space();
        let (reference, offset) = match &written.kind {
            WrittenKind::Name(reference) => (*reference, 0),
            WrittenKind::Sum(sum) => (&sum.name, sum.addend),
            _ => return self.source(written, ty, Width::Equal),
        };
        let (base, found) = match self.resolve(reference.name)? {
            Entity::Var(id) => (AddressBase::Var(id), self.checker.variables[id.0 as usize].space),
            Entity::Local(id) => {
                let local = self.local(id);
                // A parameter whose address is taken lies in the stack frame.
                let space = match local.role {
                    LocalRole::Local | LocalRole::Shared(_) | LocalRole::Input(_) | LocalRole::Return(_) => {
                        Space::Local
                    }
                    LocalRole::KernelParam(_) | LocalRole::CallParam => Space::Param,
                };
                (AddressBase::Local(id), space)
            }
            Entity::Register(_) => return self.source(written, ty, Width::Equal),
            other => {
                let message = format!(
                    "`{}` is {}; `cvta` takes an address",
                    reference.span.text(self.checker.text),
                    other.noun()
                );
                return self.wrong_kind(written.span, &message);
            }
        };
        if found != space {
            let name = reference.name.text(self.checker.text);
            self.checker.report.push(
                Diagnostic::new(
                    Code::WrongStateSpace,
                    written.span,
                    format!("`{name}` is in `.{}`, not in `.{}`", found.name(), space.name()),
                )
                .with_section("9.7.8.13"),
            );
            return None;
        }
        Some(Operand::SymbolAddress(base, offset))
    }

    /// The vector of a packing or unpacking `mov`. PTX ISA §9.7.8.3.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    pub(super) fn elements(
        &mut self,
        site: &Site<'_>,
        form: &OperandForm,
        written: &Written<'_>,
    ) -> Option<Operand> {
        let ty = site.found.mods.ty_in(Slot::Type)?;
        let list = match &written.kind {
            WrittenKind::Vector(list) => list,
            WrittenKind::Name(reference) => return self.packed_register(ty, reference),
            _ => return self.wrong_kind(written.span, "expected a vector"),
        };
        let part = self.part(ty, list.len(), written.span)?;
        let mut elements = Vec::with_capacity(list.len());
        for element in list {
            elements.push(match form.dir {
                Dir::Out => self.destination(element, part, Width::Equal),
                Dir::In => self.source(element, part, Width::Equal),
            });
        }
        elements.into_iter().collect::<Option<Vec<_>>>().map(Operand::Vector)
    }

    /// A vector register as the vector of a packing or unpacking `mov`.
    fn packed_register(&mut self, ty: Ty, reference: &Reference) -> Option<Operand> {
        let Entity::Register(id) = self.resolve(reference.name)? else {
            return self.wrong_kind(reference.span, "expected a vector register");
        };
        let register = self.register(id);
        let (have, lanes) = (register.ty, register.vector);
        let part = self.part(ty, usize::from(lanes), reference.span)?;
        if !accepts(part, have, Width::Equal) {
            self.wrong_type(reference.span, part, have);
            return None;
        }
        Some(Operand::Vector((0..lanes).map(|lane| Operand::Element(id, lane)).collect()))
    }

    /// The type of each of `count` parts of `ty`.
    fn part(&mut self, ty: Ty, count: usize, span: Span) -> Option<Ty> {
        match (ty.bits().checked_div(count as u32), count) {
            (Some(8), 2 | 4) => Some(Ty::B8),
            (Some(16), 2 | 4) => Some(Ty::B16),
            (Some(32), 2) => Some(Ty::B32),
            (Some(64), 2) => Some(Ty::B64),
            _ => {
                self.checker.report.push(
                    Diagnostic::new(
                        Code::BadVector,
                        span,
                        format!("`.{}` does not consist of {count} parts", ty.name()),
                    )
                    .with_help(if ty == Ty::B128 {
                        "2 parts of 64 bits"
                    } else {
                        "2 or 4 parts of 8, 16 or 32 bits"
                    })
                    .with_section("9.7.8.3"),
                );
                None
            }
        }
    }
}
