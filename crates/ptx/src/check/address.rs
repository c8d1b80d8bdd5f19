//! Addresses: `[base+offset]` and `a[index]`, and the state space of an access. PTX ISA §6.4.1, §5.1.
//!
//! Invariant: the base of a checked address lies in the state space of the access. A generic access that
//! names a variable has the variable's own space, as in ptxas. Offsets are 32 bits, sign-extended.

use super::body::BodyChecker;
use super::constexpr;
use super::inst::{Site, Written, WrittenKind};
use super::meant::Wanted;
use super::module::{Address, AddressBase, AddressSize, LocalId, LocalRole, Operand, RegisterId, VarId};
use super::scope::Entity;
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::form::SpaceOf;
use crate::isa::{Op, OperandForm, Space, Ty, TyKind};
use crate::syntax::tree::{self, Name, Reference};

impl BodyChecker<'_, '_> {
    /// An address in brackets.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    pub(super) fn address(
        &mut self,
        site: &Site<'_>,
        _form: &OperandForm,
        space: SpaceOf,
        written: &Written<'_>,
    ) -> Option<Operand> {
        let space = match space {
            SpaceOf::Is(space) => space,
            SpaceOf::Mods => site.found.mods.space(),
        };
        let (base, index, offset, name) = match &written.kind {
            WrittenKind::Address(address) => {
                self.unified(site, address);
                let (base, offset, name) = self.sum(address)?;
                (base, None, offset, name)
            }
            WrittenKind::Indexed(array, index) => {
                let (base, index, offset) = self.indexed(array, index)?;
                (base, index, offset, array.span)
            }
            _ => {
                self.wrong_kind(written.span, "expected an address in brackets");
                return None;
            }
        };
        match base {
            AddressBase::Absolute => self.absolute(space, offset, written.span)?,
            AddressBase::Register(_) => {}
            AddressBase::Var(id) => self.variable_space(site, id, space, name)?,
            AddressBase::Local(id) => self.local_space(site, id, space, name)?,
            AddressBase::Func(_) => {
                self.wrong_kind(name, "a function cannot be loaded from or stored to");
                return None;
            }
        }
        Some(Operand::Address(Address { base, index, offset }))
    }

    /// `.unified` after an address: a hint of `ld`.
    fn unified(&mut self, site: &Site<'_>, address: &tree::Address) {
        let Some(span) = address.unified else { return };
        let op = site.found.row.row().op;
        if !matches!(op, Op::Ld | Op::LdNc) {
            let message = format!("`{}` does not take `.unified`", op.name());
            let error = Diagnostic::new(Code::BadModifierUse, span, message).with_section("9.7.9.8");
            self.checker.report.push(error);
        }
    }

    /// Base and offset of the expression in brackets, and the place of the base.
    fn sum(&mut self, address: &tree::Address) -> Option<(AddressBase, i64, Span)> {
        let text = self.checker.text;
        let offset = match &address.offset {
            None => Some(0),
            Some(expr) => {
                let value = match constexpr::evaluate(expr, text, &mut self.checker.report)? {
                    constexpr::Value::Const(value) => value,
                    constexpr::Value::Symbol(symbol) => {
                        let name = symbol.name.span.text(text);
                        let message = format!(
                            "`{name}` is not a constant, and only constants can be added to an address"
                        );
                        self.bad_address(symbol.name.span, &message, "`add.u64` first");
                        return None;
                    }
                };
                let value = constexpr::as_integer(value, expr, "an offset", &mut self.checker.report);
                value.and_then(|value| {
                    let wide = value.wide()?;
                    let (least, most) = match address.base {
                        Some(_) => (i128::from(i32::MIN), i128::from(u32::MAX)),
                        // An absolute address is unsigned (A38, §6.4.1).
                        None => (0, i128::from(u32::MAX)),
                    };
                    if !(least..=most).contains(&wide) {
                        let what = if address.base.is_some() { "an offset" } else { "an address" };
                        self.checker.report.push(
                            Diagnostic::new(
                                Code::ImmediateOutOfRange,
                                expr.span,
                                format!("{what} has 32 bits, and {value} does not fit"),
                            )
                            .with_section("6.4.1"),
                        );
                        return None;
                    }
                    let bits = u32::try_from(wide & 0xFFFF_FFFF).ok()?;
                    Some(if address.base.is_some() { i64::from(bits.cast_signed()) } else { i64::from(bits) })
                })
            }
        };
        let Some(base) = &address.base else {
            return Some((AddressBase::Absolute, offset?, address.span));
        };
        if let Some(expr) = &address.offset {
            self.minus_sign(base, expr.span);
        }
        let found = self.base(base)?;
        Some((found, offset?, base.span))
    }

    /// `[r-4]` is legal, but ptxas reads only `[r+-4]`.
    fn minus_sign(&mut self, base: &Reference, offset: Span) {
        let text = self.checker.text;
        let between = Span::new(base.span.end, offset.start).text(text);
        if !between.contains('+') && offset.text(text).starts_with('-') || between.contains('-') {
            self.checker.report.push(
                Diagnostic::new(
                    Code::NotPortable,
                    base.span.to(offset),
                    "subtracting an offset is legal, but ptxas refuses it",
                )
                .with_help("`[base+-offset]`")
                .with_section("6.4.1"),
            );
        }
    }

    /// The base to which an offset is added.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    fn base(&mut self, reference: &Reference) -> Option<AddressBase> {
        let text = self.checker.text;
        let name = reference.span.text(text);
        if self.special(reference).is_some() {
            let message = format!("`{name}` is a special register, which only `mov` and `cvt` read");
            self.checker
                .report
                .push(Diagnostic::new(Code::BadRegisterUse, reference.span, message).with_section("5.1.2"));
            return None;
        }
        match self.resolve_as(reference.name, Wanted::Address)? {
            Entity::Register(id) => {
                if self.element(id, reference)?.is_some() {
                    self.bad_address(
                        reference.span,
                        &format!(
                            "`{name}` is an element of a vector; an address needs a register of its own"
                        ),
                        "`mov` it first",
                    );
                    return None;
                }
                let register = self.register(id);
                let (ty, vector) = (register.ty, register.vector);
                let integer = matches!(ty.kind(), TyKind::Bits | TyKind::Unsigned | TyKind::Signed);
                if vector > 1 {
                    let message =
                        format!("`{name}` is a vector of {vector} elements, which cannot hold an address");
                    self.checker.report.push(
                        Diagnostic::new(Code::BadVector, reference.span, message).with_section("6.4.1"),
                    );
                    return None;
                }
                if integer && ty.bits() == 16 {
                    return self.narrow_address(id, reference.span).map(AddressBase::Register);
                }
                if !integer || !matches!(ty.bits(), 32 | 64) {
                    let wanted = match self.checker.header.address_size() {
                        AddressSize::Bits32 => Ty::U32,
                        AddressSize::Bits64 => Ty::U64,
                    };
                    self.checker.report.push(
                        Diagnostic::new(
                            Code::WrongOperandType,
                            reference.span,
                            format!("`{name}` has type `.{}`, which cannot hold an address", ty.name()),
                        )
                        .with_help(format!("a `.{}` register", wanted.name()))
                        .with_section("6.4.1"),
                    );
                    return None;
                }
                Some(AddressBase::Register(id))
            }
            Entity::Var(id) => Some(AddressBase::Var(id)),
            Entity::Local(id) => Some(AddressBase::Local(id)),
            Entity::Func(id) => Some(AddressBase::Func(id)),
            other => {
                let message = format!("`{name}` is {}, which has no address", other.noun());
                self.bad_address(reference.span, &message, "a register or a variable");
                None
            }
        }
    }

    fn bad_address(&mut self, span: Span, message: &str, help: &str) {
        self.checker
            .report
            .push(Diagnostic::new(Code::BadAddress, span, message).with_help(help).with_section("6.4.1"));
    }

    /// `a[4]`: the element with that number; `a[r]`, `a[r+4]`: the byte at that offset (A32).
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    pub(super) fn indexed(
        &mut self,
        array: &Name,
        index: &tree::Address,
    ) -> Option<(AddressBase, Option<RegisterId>, i64)> {
        let text = self.checker.text;
        let name = array.text(text);
        let entity = self.resolve(*array)?;
        let (base, element) = match entity {
            Entity::Var(id) => {
                let variable = &self.checker.variables[id.0 as usize];
                (AddressBase::Var(id), i64::from(variable.ty.bytes()) * i64::from(variable.vector))
            }
            Entity::Local(id) => {
                let local = self.local(id);
                (AddressBase::Local(id), i64::from(local.ty.bytes()) * i64::from(local.vector))
            }
            other => {
                self.bad_address(
                    array.span,
                    &format!("`{name}` is {}, and only variables have elements", other.noun()),
                    "`[register]`",
                );
                return None;
            }
        };
        if let Some(reference) = &index.base {
            let (found, offset, span) = self.sum(index)?;
            let AddressBase::Register(register) = found else {
                let place = reference.span.text(text);
                self.bad_address(
                    span,
                    &format!("`{place}` is not a register"),
                    "`array[4]` or `array[register]`",
                );
                return None;
            };
            // The register counts bytes, the constant beside it elements, as devices do.
            let bytes = self.element_bytes(Some(offset), element, span, &offset)?;
            return Some((base, Some(register), bytes));
        }
        let offset = index.offset.as_ref()?;
        let value = constexpr::integer(offset, "an index", text, &mut self.checker.report)?;
        let number = value.wide().and_then(|v| i64::try_from(v).ok());
        let bytes = self.element_bytes(number, element, offset.span, &value)?;
        Some((base, None, bytes))
    }

    /// The bytes of a number of elements; `shown` is the number as a diagnostic gives it.
    fn element_bytes(
        &mut self,
        number: Option<i64>,
        element: i64,
        span: Span,
        shown: &dyn std::fmt::Display,
    ) -> Option<i64> {
        let bytes = number.and_then(|v| v.checked_mul(element)).filter(|b| i32::try_from(*b).is_ok());
        if bytes.is_none() {
            self.checker.report.push(
                Diagnostic::new(
                    Code::ImmediateOutOfRange,
                    span,
                    format!("the index {shown} is out of range"),
                )
                .with_section("6.4.2"),
            );
        }
        bytes
    }

    /// `[16]`
    fn absolute(&mut self, space: Space, offset: i64, span: Span) -> Option<()> {
        if space != Space::Local {
            self.checker.report.push(
                Diagnostic::new(
                    Code::NotPortable,
                    span,
                    format!("the address {offset:#x} is legal, but ptxas refuses it outside `.local`"),
                )
                .with_section("6.4.1"),
            );
        }
        Some(())
    }

    /// Checks whether an access of that space may name a variable.
    fn variable_space(&mut self, site: &Site<'_>, id: VarId, space: Space, span: Span) -> Option<()> {
        let variable = &self.checker.variables[id.0 as usize];
        let (have, ty) = (variable.space, variable.ty);
        let name = span.text(self.checker.text);
        if ty.kind() == TyKind::Opaque {
            self.checker.report.push(
                Diagnostic::new(
                    Code::WrongOperandKind,
                    span,
                    format!("`{name}` is a `.{}`, which has no contents in memory", ty.name()),
                )
                .with_help("texture and surface instructions access it")
                .with_section("5.3"),
            );
            return None;
        }
        let bank = variable.bank;
        if have == Space::Const && space == Space::Const && bank != site.found.mods.const_bank() {
            let message =
                format!("`{name}` is in constant bank {bank}, not in bank {}", site.found.mods.const_bank());
            self.checker.report.push(
                Diagnostic::new(Code::WrongStateSpace, span, message)
                    .with_help(format!("`.const[{bank}]`"))
                    .with_section("5.1.3.1"),
            );
            return None;
        }
        if have == space {
            return Some(());
        }
        self.atomic_space(site, have, span)?;
        if space == Space::Generic && matches!(have, Space::Global | Space::Shared) {
            self.checker.report.push(
                Diagnostic::new(
                    Code::NonStandard,
                    span,
                    format!("`{name}` is in `.{}`, and its name is not a generic address", have.name()),
                )
                .with_label(format!("read as an access to `.{}`", have.name()))
                .with_help(format!("`.{}`, or `cvta.{0}` and a register", have.name()))
                .with_section("6.4.1.1"),
            );
            return Some(());
        }
        self.wrong_space(span, have, space)
    }

    /// §9.7.12.4: atomic operations are defined for `.global` and `.shared`, also through generic addresses.
    fn atomic_space(&mut self, site: &Site<'_>, have: Space, span: Span) -> Option<()> {
        let atomic = matches!(site.found.row.row().op, Op::Atom | Op::Red);
        if !atomic || matches!(have, Space::Global | Space::Shared) {
            return Some(());
        }
        let name = span.text(self.checker.text);
        let message = format!("`{name}` is in `.{}`, which has no atomic operations", have.name());
        self.checker.report.push(
            Diagnostic::new(Code::WrongStateSpace, span, message)
                .with_help("a variable in `.global` or `.shared`")
                .with_section(site.found.row.row().section),
        );
        None
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "all other spaces have names")]
    fn wrong_space(&mut self, span: Span, have: Space, space: Space) -> Option<()> {
        let name = span.text(self.checker.text);
        self.checker.report.push(
            Diagnostic::new(
                Code::WrongStateSpace,
                span,
                match space {
                    Space::Generic => {
                        format!("`{name}` is in `.{}`, and its name is not a generic address", have.name())
                    }
                    _ => format!(
                        "`{name}` is in `.{}`, but the instruction accesses `.{}`",
                        have.name(),
                        space.name()
                    ),
                },
            )
            .with_help(format!("`.{}`", have.name()))
            .with_section("6.4.1"),
        );
        None
    }

    /// Checks whether an access may name a `.local` or `.param` variable. PTX ISA §5.1.6.
    fn local_space(&mut self, site: &Site<'_>, id: LocalId, space: Space, span: Span) -> Option<()> {
        let local = self.local(id);
        let (role, have, ty) = (local.role, local.space, local.ty);
        let name = span.text(self.checker.text);
        if ty.kind() == TyKind::Opaque {
            self.checker.report.push(
                Diagnostic::new(
                    Code::WrongOperandKind,
                    span,
                    format!("`{name}` is a `.{}` parameter, which cannot be loaded", ty.name()),
                )
                .with_help("texture and surface instructions access it")
                .with_section("11.2.1"),
            );
            return None;
        }
        if have != space {
            self.atomic_space(site, have, span)?;
            let named_by_generic = space == Space::Generic && have == Space::Local;
            if !named_by_generic {
                return self.wrong_space(span, have, space);
            }
            self.checker.report.push(
                Diagnostic::new(
                    Code::NonStandard,
                    span,
                    format!("`{name}` is in `.local`, and its name is not a generic address"),
                )
                .with_label("read as an access to `.local`")
                .with_section("6.4.1.1"),
            );
            return Some(());
        }
        let op = site.found.row.row().op;
        let stores = op == Op::St;
        let error = match role {
            LocalRole::KernelParam(_) if stores => Some("is a parameter of the kernel, which is read-only"),
            LocalRole::Input(_) if stores => Some("is an input parameter, which is read-only"),
            LocalRole::Return(_) if !stores => Some("is a return parameter, which cannot be read"),
            LocalRole::CallParam if site.guarded => {
                self.checker.report.push(
                    Diagnostic::new(
                        Code::BadCallSequence,
                        site.opcode,
                        "an access to the parameters of a call cannot be guarded",
                    )
                    .with_related(span, "a `.param` variable of this body")
                    .with_section("7.1"),
                );
                return None;
            }
            LocalRole::KernelParam(_)
            | LocalRole::Input(_)
            | LocalRole::Return(_)
            | LocalRole::CallParam
            | LocalRole::Local
            | LocalRole::Shared(_) => None,
        };
        if let Some(error) = error {
            self.checker.report.push(
                Diagnostic::new(Code::BadRegisterUse, span, format!("`{name}` {error}"))
                    .with_section("5.1.6"),
            );
            return None;
        }
        Some(())
    }
}
