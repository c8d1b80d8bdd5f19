//! Operands of textures, surfaces and matrices: opaque variables, coordinates and their companions,
//! fragments. PTX ISA §5.3, §9.7.9, §9.7.10, §9.7.13.3.
//!
//! Invariant: a checked coordinate vector has the elements that its geometry requires, optionally followed by
//! padding.

use super::body::BodyChecker;
use super::inst::{Site, Written, WrittenKind};
use super::module::{AddressBase, Operand};
use super::scope::Entity;
use super::types::{Width, accepts};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::form::{self, Fragment};
use crate::isa::{Dir, Geom, Op, OperandForm, Slot, Ty, Version};
use crate::syntax::tree::Reference;

impl BodyChecker<'_, '_> {
    /// `[a, b, c]`, or `[a]` of an opaque variable.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    pub(super) fn bracket(
        &mut self,
        site: &Site<'_>,
        form: &OperandForm,
        written: &Written<'_>,
    ) -> Option<Operand> {
        let given: Vec<Written<'_>> = match &written.kind {
            WrittenKind::Brackets(list) => list.clone(),
            WrittenKind::Address(address) => match (&address.base, &address.offset) {
                (Some(base), None) => vec![Written { span: base.span, kind: WrittenKind::Name(base) }],
                (_, _) => {
                    return self.wrong_kind(written.span, "a texture, sampler or surface has no offset");
                }
            },
            _ => return self.wrong_kind(written.span, "brackets must stand here"),
        };
        let mut missing = form.members.len().saturating_sub(given.len());
        let mut given = given.iter();
        let mut operands = Vec::with_capacity(form.members.len());
        for member in &form.members {
            if member.optional && missing > 0 {
                missing -= 1;
                continue;
            }
            let Some(next) = given.next() else { break };
            operands.push(self.single(site, member, next));
        }
        operands.into_iter().collect::<Option<Vec<_>>>().map(Operand::AddressList)
    }

    /// A texture, sampler or surface. PTX ISA §5.3.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    pub(super) fn opaque(&mut self, site: &Site<'_>, ty: Ty, written: &Written<'_>) -> Option<Operand> {
        let WrittenKind::Name(reference) = &written.kind else {
            let message = format!("expected a `.{}` variable", ty.name());
            return self.wrong_kind(written.span, &message);
        };
        // §9.7.9.5: in unified mode a texture has the properties of its sampler.
        let unified = !self.checker.header.texmode_independent();
        let sampled = unified && ty == Ty::Samplerref && site.found.row.row().op == Op::Txq;
        let fits = |have: Ty| have == ty || sampled && have == Ty::Texref;
        let text = self.checker.text;
        let name = reference.name.text(text);
        let have = match self.resolve(reference.name)? {
            Entity::Var(id) => {
                let variable = &self.checker.variables[id.0 as usize];
                if fits(variable.ty) {
                    return self.opaque_use(variable.ty, AddressBase::Var(id), written.span);
                }
                variable.ty
            }
            Entity::Local(id) => {
                let local = self.local(id);
                if fits(local.ty) {
                    return self.opaque_use(local.ty, AddressBase::Local(id), written.span);
                }
                local.ty
            }
            Entity::Register(_) => return self.opaque_pointer(reference, ty),
            other => {
                let message = format!("`{name}` is {}; expected a `.{}` variable", other.noun(), ty.name());
                return self.wrong_kind(written.span, &message);
            }
        };
        self.wrong_type(written.span, ty, have);
        None
    }

    /// Counts the textures and samplers of a body: 128 textures and, in independent mode, 16 samplers can be
    /// bound at once (A175).
    fn opaque_use(&mut self, ty: Ty, base: AddressBase, span: Span) -> Option<Operand> {
        let most = if ty == Ty::Samplerref { 16 } else { 128 };
        if !self.opaque.contains(&(ty, base)) {
            let count = self.opaque.iter().filter(|(t, _)| *t == ty).count();
            if count <= most {
                self.opaque.push((ty, base));
            }
            if count == most {
                let message = format!("a kernel can use {most} variables of type `.{}`", ty.name());
                self.checker.report.push(
                    Diagnostic::new(Code::TooLarge, span, message).with_label("one more").with_section("5.3"),
                );
                return None;
            }
        }
        Some(Operand::Opaque(base))
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    fn opaque_pointer(&mut self, reference: &Reference, ty: Ty) -> Option<Operand> {
        let what = "access through a pointer to an opaque variable";
        if !self.checker.needs(reference.span, what, Version::new(3, 1), 20, "5.3") {
            return None;
        }
        match self.register_operand(reference, Ty::U64, Width::Equal, Dir::In)? {
            Operand::Register(id) => Some(Operand::Opaque(AddressBase::Register(id))),
            _ => {
                let message =
                    format!("expected a `.{}` variable, or a register that points to one", ty.name());
                self.wrong_kind(reference.span, &message)
            }
        }
    }

    /// Texture or surface coordinates. PTX ISA §9.7.9.3, §9.7.10.1.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    pub(super) fn coordinates(&mut self, site: &Site<'_>, written: &Written<'_>) -> Option<Operand> {
        let mods = &site.found.mods;
        let geom = mods.geom()?;
        let surface = matches!(site.found.row.row().op, Op::Suld | Op::Sust | Op::Sured);
        let ctype = if surface { Ty::S32 } else { mods.ty_in(Slot::Ctype).unwrap_or(Ty::S32) };
        let shape = form::coords(geom, ctype);
        let list = match &written.kind {
            WrittenKind::Vector(list) => list,
            WrittenKind::Name(reference) => return self.coordinate_register(reference, shape, geom),
            _ => return self.source(written, ctype, Width::Equal),
        };
        if !shape.accepts(u8::try_from(list.len()).unwrap_or(u8::MAX)) {
            let message = format!(
                "`.{}` takes {} coordinates, not {}",
                geom.word().text(),
                shape.prescribed,
                list.len()
            );
            self.checker
                .report
                .push(Diagnostic::new(Code::BadVector, written.span, message).with_section("9.7.9.3"));
            return None;
        }
        if list.len() == 3 {
            self.checker.report.push(
                Diagnostic::new(
                    Code::NotPortable,
                    written.span,
                    "three coordinates are legal, but ptxas expects four, the last one unused",
                )
                .with_section("9.7.9.3"),
            );
        }
        let mut elements = Vec::with_capacity(list.len());
        for (index, element) in list.iter().enumerate() {
            if index >= usize::from(shape.used) {
                // Padding: any register.
                elements.push(self.padding(element, ctype));
                continue;
            }
            // An array index or sample number is 32 untyped bits; the vector is `.b32`.
            elements.push(self.source(element, shape.types[index], Width::Equal));
        }
        let mut elements = elements.into_iter().collect::<Option<Vec<_>>>()?;
        if elements.len() == 1 { elements.pop() } else { Some(Operand::Vector(elements)) }
    }

    fn padding(&mut self, element: &Written<'_>, ctype: Ty) -> Option<Operand> {
        if matches!(element.kind, WrittenKind::Sink) {
            return Some(Operand::Sink);
        }
        let bits = if ctype.bits() == 32 { Ty::B32 } else { Ty::B64 };
        self.source(element, bits, Width::Equal)
    }

    fn coordinate_register(
        &mut self,
        reference: &Reference,
        shape: form::CoordShape,
        geom: Geom,
    ) -> Option<Operand> {
        if let Entity::Register(id) = self.resolve(reference.name)? {
            let register = self.register(id);
            let (ty, vector) = (register.ty, register.vector);
            if reference.suffix.is_none() && vector > 1 && shape.accepts(vector) {
                // Mixed vectors (an index and coordinates) are untyped.
                let wanted = if shape.types[0] == shape.types[1] { shape.types[0] } else { Ty::B32 };
                if accepts(wanted, ty, Width::Equal) || accepts(shape.types[1], ty, Width::Equal) {
                    return Some(Operand::Register(id));
                }
                self.wrong_type(reference.span, wanted, ty);
                return None;
            }
            if shape.used > 1 {
                let message = format!("`.{}` takes {} coordinates", geom.word().text(), shape.prescribed);
                self.checker
                    .report
                    .push(Diagnostic::new(Code::BadVector, reference.span, message).with_section("9.7.9.3"));
                return None;
            }
        }
        self.register_operand(reference, shape.types[0], Width::Equal, Dir::In)
    }

    /// Offsets and gradients of a texture access.
    pub(super) fn companion(
        &mut self,
        site: &Site<'_>,
        form: &OperandForm,
        written: &Written<'_>,
    ) -> Option<Operand> {
        let geom = site.found.mods.geom()?;
        let ty = form.ty(&site.found.mods)?;
        let lanes = form::companion_lanes(geom);
        if lanes > 1 {
            return self.vector(Dir::In, ty, Width::Equal, lanes, written);
        }
        self.source(written, ty, Width::Equal)
    }

    /// The registers of a matrix fragment. PTX ISA §9.7.13.3.
    pub(super) fn fragment(
        &mut self,
        site: &Site<'_>,
        form: &OperandForm,
        matrix: char,
        written: &Written<'_>,
    ) -> Option<Operand> {
        let Fragment { registers: count, ty: wanted } = form::fragment(matrix, &site.found.mods)?;
        if count == 1 && !matches!(written.kind, WrittenKind::Vector(_)) {
            return match form.dir {
                Dir::Out => self.destination(written, wanted, Width::Equal),
                Dir::In => self.source(written, wanted, Width::Equal),
            };
        }
        self.vector(form.dir, wanted, Width::Equal, count, written)
    }
}
