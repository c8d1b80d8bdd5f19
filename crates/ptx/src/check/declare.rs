//! Declarations of variables: the allowed places, sizes and attributes. PTX ISA §5.1, §5.4.
//!
//! Invariant: every name of a declaration is declared; if the declaration has an error, as
//! [`Entity::Broken`]. A variable that is laid out once has an entry in the module, in any scope.

use super::checker::Checker;
use super::constexpr;
use super::init;
use super::module::{FuncId, Linkage, LocalId, LocalRole, LocalVar, Register, RegisterId, VarId, Variable};
use super::scope::{Entity, Family};
use super::shape::{LARGEST_VARIABLE, Shape, Unsized, describe};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Space, Ty, TyKind, Version};
use crate::syntax::tree::{self, Declarator, Specifiers};

/// The place of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Outside all functions.
    Module,
    /// In the body of that function.
    Body(FuncId),
    /// In the parameter list of a kernel.
    KernelParameter,
    /// In the parameter list of a device function or prototype.
    FunctionParameter,
}

/// An earlier declaration of the same external variable.
#[derive(Clone, Copy, Debug)]
enum Twin {
    /// There is none.
    None,
    /// There is one, and it is kept.
    Keep,
    /// There is one, which this declaration replaces.
    Replace(VarId),
}

/// The local memory of a thread (CUDA C Programming Guide, compute capabilities).
const LARGEST_LOCAL: u64 = 512 * 1024;
/// The shared memory of the largest CTA of any target (227 KB), rounded up.
const LARGEST_SHARED: u64 = 256 * 1024;
/// Size of a constant bank. PTX ISA §5.1.3.
const CONST_BANK: u64 = 64 * 1024;
/// The most textures that can be bound at once. PTX ISA §5.1.8, §5.3.
const MOST_TEXTURES: u32 = 128;
/// The most members of a parameterised name outside `.reg`; chosen, so that a short text cannot use much
/// memory.
const MOST_MEMBERS: u64 = 1 << 16;
/// The most names from parameterised names in a module, without registers; chosen for the same reason.
pub(super) const MOST_EXPANDED: u64 = 1 << 22;
/// The most members of a parameterised register name. Chosen: far beyond the output of compilers.
const MOST_REGISTERS: u64 = 1 << 32;

impl<'a> Checker<'a> {
    /// A declaration at module scope.
    pub(super) fn module_variable(&mut self, variable: &tree::Variable) {
        let specifiers = &variable.specifiers;
        match specifiers.space.value {
            Space::Global | Space::Const | Space::Shared | Space::Tex => {
                self.static_variable(variable, Place::Module)
            }
            Space::Reg | Space::Local => self.module_scoped(variable),
            Space::Param | Space::Sreg | Space::Generic => {
                self.wrong_space(
                    specifiers,
                    "at module scope",
                    "only `.global`, `.const` and `.shared` variables can be declared here",
                );
                self.declare_broken(variable);
            }
        }
    }

    /// Declares all names of a declaration as broken.
    pub(super) fn declare_broken(&mut self, variable: &tree::Variable) {
        for declarator in &variable.names {
            let name = declarator.name.text(self.text);
            // A second error about the same name would add no information.
            let _ = self.scopes.declare(name, Entity::Broken, declarator.name.span);
        }
    }

    fn wrong_space(&mut self, specifiers: &Specifiers, place: &str, label: &str) {
        let space = specifiers.space.value.name();
        self.report.push(
            Diagnostic::new(
                Code::BadDeclaration,
                specifiers.space.span,
                format!("a `.{space}` variable cannot be declared {place}"),
            )
            .with_label(label)
            .with_section("5.1"),
        );
    }

    /// `.reg` and `.local` at module scope: legal without an ABI, before PTX 3.0. PTX ISA §5.1.1, §5.1.5.
    fn module_scoped(&mut self, variable: &tree::Variable) {
        let specifiers = &variable.specifiers;
        let space = specifiers.space.value;
        if self.at_least(Version::new(3, 0)) {
            self.wrong_space(specifiers, "at module scope from PTX 3.0 on", "declare it inside a function");
            self.declare_broken(variable);
            return;
        }
        self.linkage(specifiers, Place::Module);
        self.attributes(specifiers);
        for declarator in &variable.names {
            let shape = self.shape(specifiers, declarator, Place::Module, Unsized::No);
            self.no_initializer(space, declarator);
            let count = self.member_count(declarator, space);
            let fits =
                |shape: &Shape| space == Space::Reg || self.fits_thread(space, shape, declarator.name.span);
            let shape = shape.filter(fits);
            let (Some(shape), Some(members)) = (shape, self.member_names(declarator, count)) else {
                self.declare_one(declarator, Entity::Broken);
                continue;
            };
            for (name, entity_name) in members {
                let entity = if space == Space::Reg {
                    Entity::ModuleRegister(new_register(&mut self.registers, &name, &shape).0)
                } else {
                    let role = LocalRole::Shared(self.locals.len() as u32);
                    Entity::ModuleLocal(new_local(&mut self.locals, &name, &shape, Space::Local, role).0)
                };
                match entity_name {
                    None => self.declare_one(declarator, entity),
                    Some(text) => self.declare_member(declarator, text, entity),
                }
            }
        }
    }

    /// A variable that is laid out once: of module scope, or moved there from a body.
    pub(super) fn static_variable(&mut self, variable: &tree::Variable, place: Place) {
        let specifiers = &variable.specifiers;
        let space = specifiers.space.value;
        if space == Space::Tex {
            self.tex_directive(specifiers, place);
        }
        let linkage = self.linkage(specifiers, place);
        let bank = self.bank(specifiers);
        let managed = self.attributes(specifiers);
        for declarator in &variable.names {
            let unsized_ = match (linkage, &declarator.initializer) {
                (_, Some(_)) => Unsized::ByInitializer,
                (Linkage::Extern, None) => Unsized::Yes,
                (Linkage::Internal | Linkage::Visible | Linkage::Weak | Linkage::Common, None) => Unsized::No,
            };
            let Some(mut shape) = self.shape(specifiers, declarator, place, unsized_) else {
                self.declare_one(declarator, Entity::Broken);
                continue;
            };
            if space == Space::Tex {
                shape = Shape { ty: Ty::Texref, bytes: 8, align: 8, ..shape };
            }
            let count = self.member_count(declarator, space);
            let initial = match &declarator.initializer {
                None => init::Initial::default(),
                Some(initializer) => {
                    if !self.may_initialize(space, linkage, &shape, declarator, initializer.span()) {
                        self.declare_one(declarator, Entity::Broken);
                        continue;
                    }
                    let Some(initial) = init::evaluate(self, &mut shape, initializer) else {
                        self.declare_one(declarator, Entity::Broken);
                        continue;
                    };
                    initial
                }
            };
            if bank > 0 && (linkage != Linkage::Extern || shape.bytes > 0) {
                self.report.push(
                    Diagnostic::new(
                        Code::NotPortable,
                        declarator.name.span,
                        "ptxas keeps constant banks 1 to 10 for external arrays without a size",
                    )
                    .with_section("5.1.3.1"),
                );
            }
            if !self.within_limits(space, bank, &shape, declarator.name.span) {
                self.declare_one(declarator, Entity::Broken);
                continue;
            }
            let Some(members) = self.member_names(declarator, count) else {
                self.declare_one(declarator, Entity::Broken);
                continue;
            };
            for (name, member) in members {
                let twin =
                    if member.is_none() { self.twin(declarator, space, linkage, &shape) } else { Twin::None };
                let id = match twin {
                    Twin::Keep => continue,
                    Twin::Replace(id) => id,
                    Twin::None => {
                        let id = VarId(self.variables.len() as u32);
                        match member {
                            None => self.declare_one(declarator, Entity::Var(id)),
                            Some(text) => self.declare_member(declarator, text, Entity::Var(id)),
                        }
                        id
                    }
                };
                let variable = Variable {
                    name,
                    linkage,
                    space,
                    bank,
                    ty: shape.ty,
                    vector: shape.vector,
                    dims: shape.dims.clone(),
                    bytes: shape.bytes,
                    align: shape.align,
                    init: initial.init.clone(),
                    fields: initial.fields.clone(),
                    managed,
                    owner: match place {
                        Place::Body(function) => Some(function),
                        Place::Module | Place::KernelParameter | Place::FunctionParameter => None,
                    },
                    span: declarator.name.span,
                };
                match self.variables.get_mut(id.0 as usize) {
                    Some(place) => *place = variable,
                    None => self.variables.push(variable),
                }
            }
        }
    }

    /// An external variable may be declared before its definition, and repeatedly: all declarations are one
    /// variable.
    fn twin(&mut self, declarator: &Declarator, space: Space, linkage: Linkage, shape: &Shape) -> Twin {
        let name = declarator.name.text(self.text);
        let Some((Entity::Var(id), earlier)) = self.scopes.find_global(name) else { return Twin::None };
        if self.scopes.depth() > 1 {
            return Twin::None;
        }
        let Some(first) = self.variables.get_mut(id.0 as usize) else { return Twin::None };
        if first.linkage != Linkage::Extern && linkage != Linkage::Extern {
            return Twin::None;
        }
        let same_size = first.bytes == shape.bytes || first.bytes == 0 || shape.bytes == 0;
        if first.space != space || first.ty != shape.ty || first.vector != shape.vector || !same_size {
            self.report.push(
                Diagnostic::new(
                    Code::DefinitionMismatch,
                    declarator.name.span,
                    format!("`{name}` differs from its earlier declaration"),
                )
                .with_label(describe(space, shape))
                .with_related(earlier, "the earlier declaration")
                .with_section("11.6.1"),
            );
            return Twin::Keep;
        }
        if linkage == Linkage::Extern { Twin::Keep } else { Twin::Replace(id) }
    }

    fn tex_directive(&mut self, specifiers: &Specifiers, place: Place) {
        if place != Place::Module {
            self.wrong_space(specifiers, "in a function", "`.tex` variables are declared at module scope");
        }
        self.texture_ids = self.texture_ids.saturating_add(1);
        if self.texture_ids == MOST_TEXTURES + 1 {
            self.report.push(
                Diagnostic::new(
                    Code::TooLarge,
                    specifiers.space.span,
                    "there are more textures than can be bound",
                )
                .with_label(format!("{MOST_TEXTURES} declarations stand before this one"))
                .with_section("5.1.8"),
            );
        }
        if let Some(ty) = specifiers.ty
            && !matches!(ty.value, Ty::U32 | Ty::U64)
        {
            self.report.push(
                Diagnostic::new(
                    Code::BadDeclaration,
                    ty.span,
                    format!("a `.tex` variable cannot be of type `.{}`", ty.value.name()),
                )
                .with_help("`.u32` or `.u64`")
                .with_section("5.1.8"),
            );
        }
        self.report.push(
            Diagnostic::new(Code::Deprecated, specifiers.space.span, "`.tex` variables are deprecated")
                .with_help("`.global .texref`")
                .with_section("5.1.8"),
        );
    }

    /// The linkage of a variable; reports mistakes.
    pub(super) fn linkage(&mut self, specifiers: &Specifiers, place: Place) -> Linkage {
        let Some(linkage) = specifiers.linkage else { return Linkage::Internal };
        let space = specifiers.space.value;
        let shared_by_modules = matches!(space, Space::Global | Space::Const | Space::Shared | Space::Tex);
        let in_body = matches!(place, Place::Body(_));
        let extern_shared = linkage.value == tree::Linkage::Extern && space == Space::Shared;
        if !shared_by_modules || (in_body && !extern_shared) {
            let what = if in_body { "of a function".to_owned() } else { format!("in `.{}`", space.name()) };
            self.report.push(
                Diagnostic::new(
                    Code::BadDeclaration,
                    linkage.span,
                    format!("a variable {what} cannot be `.{}`", linkage.value.name()),
                )
                .with_section("11.6"),
            );
            return Linkage::Internal;
        }
        match linkage.value {
            tree::Linkage::Extern => Linkage::Extern,
            tree::Linkage::Visible => Linkage::Visible,
            tree::Linkage::Weak => {
                self.needs(linkage.span, "`.weak`", Version::new(3, 1), 10, "11.6.3");
                Linkage::Weak
            }
            tree::Linkage::Common => {
                self.needs(linkage.span, "`.common`", Version::new(5, 0), 20, "11.6.4");
                let opaque = specifiers.ty.is_some_and(|ty| ty.value.kind() == TyKind::Opaque);
                if space != Space::Global || opaque {
                    self.report.push(
                        Diagnostic::new(
                            Code::BadDeclaration,
                            linkage.span,
                            "`.common` is for `.global` variables that are not opaque",
                        )
                        .with_section("11.6.4"),
                    );
                }
                Linkage::Common
            }
        }
    }

    /// The bank of `.const[bank]`. PTX ISA §5.1.3.1.
    fn bank(&mut self, specifiers: &Specifiers) -> u8 {
        let Some(bank) = &specifiers.bank else { return 0 };
        let value = constexpr::integer(bank, "the bank", self.text, &mut self.report);
        let number = value.and_then(|v| v.wide());
        let Some(number) = number else { return 0 };
        if !(0..=10).contains(&number) {
            self.report.push(
                Diagnostic::new(
                    Code::BadDeclaration,
                    bank.span,
                    format!("there is no constant bank {number}"),
                )
                .with_help("banks are 0 to 10")
                .with_section("5.1.3.1"),
            );
            return 0;
        }
        if self.at_least(Version::new(2, 2)) {
            self.report.push(
                Diagnostic::new(Code::Deprecated, bank.span, "constant banks are deprecated from PTX 2.2 on")
                    .with_section("5.1.3.1"),
            );
        }
        number as u8
    }

    /// Whether the variable is `.attribute(.managed)`; reports mistakes in the attributes. PTX ISA §5.4.8.
    fn attributes(&mut self, specifiers: &Specifiers) -> bool {
        let mut managed = false;
        for attribute in &specifiers.attributes {
            match attribute.word.text(self.text) {
                "managed" => {
                    managed = true;
                    let span = attribute.word.span;
                    self.needs(span, "`.managed`", Version::new(4, 0), 30, "5.4.8");
                    if specifiers.space.value != Space::Global {
                        self.report.push(
                            Diagnostic::new(
                                Code::BadDeclaration,
                                span,
                                format!(
                                    "a `.{}` variable cannot be `.managed`",
                                    specifiers.space.value.name()
                                ),
                            )
                            .with_label("only `.global` variables can")
                            .with_section("5.4.8"),
                        );
                    }
                }
                "unified" => {
                    self.needs(attribute.word.span, "`.unified`", Version::new(8, 0), 90, "5.4.8");
                }
                other => self.report.push(
                    Diagnostic::new(
                        Code::BadDeclaration,
                        attribute.word.span,
                        format!("there is no attribute `.{other}`"),
                    )
                    .with_help("`.managed`")
                    .with_section("5.4.8"),
                ),
            }
        }
        managed
    }

    /// Reports that a variable cannot have an initialiser.
    pub(super) fn no_initializer(&mut self, space: Space, declarator: &Declarator) {
        if let Some(initializer) = &declarator.initializer {
            self.report.push(
                Diagnostic::new(
                    Code::BadInitializer,
                    initializer.span(),
                    format!("a `.{}` variable cannot have an initialiser", space.name()),
                )
                .with_label("only `.const` and `.global` variables can")
                .with_section("5.4.4"),
            );
        }
    }

    fn may_initialize(
        &mut self,
        space: Space,
        linkage: Linkage,
        shape: &Shape,
        declarator: &Declarator,
        span: Span,
    ) -> bool {
        if !matches!(space, Space::Global | Space::Const) {
            self.no_initializer(space, declarator);
            return false;
        }
        let error = if linkage == Linkage::Extern {
            "an `.extern` variable cannot have an initialiser"
        } else if matches!(shape.ty, Ty::F16 | Ty::F16x2) {
            "variables of type `.f16` and `.f16x2` cannot have an initialiser"
        } else if declarator.count.is_some() {
            "a parameterised name cannot have an initialiser"
        } else {
            return true;
        };
        self.report.push(Diagnostic::new(Code::BadInitializer, span, error).with_section("5.4.4"));
        false
    }

    fn within_limits(&mut self, space: Space, bank: u8, shape: &Shape, span: Span) -> bool {
        let (limit, of) = match space {
            Space::Const => (CONST_BANK, "the constant bank"),
            Space::Shared => (LARGEST_SHARED, "shared memory"),
            Space::Global | Space::Tex => (LARGEST_VARIABLE, "global memory"),
            Space::Local | Space::Param => (LARGEST_LOCAL, "the memory of a thread"),
            Space::Generic | Space::Reg | Space::Sreg => return true,
        };
        let before = match (space, self.const_bytes.get_mut(usize::from(bank))) {
            (Space::Const, Some(total)) => {
                let before = total.next_multiple_of(u64::from(shape.align.max(1)));
                *total = before.saturating_add(shape.bytes);
                before
            }
            _ => 0,
        };
        if before.saturating_add(shape.bytes) <= limit {
            return true;
        }
        self.report.push(
            Diagnostic::new(
                Code::TooLarge,
                span,
                format!("{} bytes do not fit in the rest of {of}", shape.bytes),
            )
            .with_label(format!("{of} holds {limit} bytes"))
            .with_section("5.1"),
        );
        false
    }

    /// Checks that a `.local` or `.param` variable fits in its space.
    pub(super) fn fits_thread(&mut self, space: Space, shape: &Shape, span: Span) -> bool {
        self.within_limits(space, 0, shape, span)
    }

    /// The `N` of `name<N>`.
    fn member_count(&mut self, declarator: &Declarator, space: Space) -> Option<u64> {
        let expr = declarator.count.as_ref()?;
        let value = constexpr::integer(expr, "the number of names", self.text, &mut self.report)?;
        constexpr::literal_for_ptxas(expr, &mut self.report);
        let most = if space == Space::Reg { MOST_REGISTERS } else { MOST_MEMBERS };
        let count = value.wide().and_then(|v| u64::try_from(v).ok()).filter(|n| (1..=most).contains(n));
        if count.is_none() {
            self.report.push(
                Diagnostic::new(Code::BadDeclaration, expr.span, format!("cannot declare {value} names"))
                    .with_label(format!("1 to {most}"))
                    .with_section("5.4.6"),
            );
        }
        count
    }

    /// The names of a declarator, with the text of members; `None` if the count is wrong.
    fn member_names(
        &mut self,
        declarator: &Declarator,
        count: Option<u64>,
    ) -> Option<Vec<(String, Option<String>)>> {
        let name = declarator.name.text(self.text);
        if declarator.count.is_none() {
            return Some(vec![(name.to_owned(), None)]);
        }
        let count = count.filter(|n| *n <= MOST_MEMBERS)?;
        self.expanded = self.expanded.saturating_add(count);
        if self.expanded > MOST_EXPANDED {
            self.too_many_names(declarator.span);
            return None;
        }
        Some((0..count).map(|i| (format!("{name}{i}"), Some(format!("{name}{i}")))).collect())
    }

    /// Reports that the module has too many names from `name<N>`.
    pub(super) fn too_many_names(&mut self, span: Span) {
        let message = format!("the parameterised names of a module stand for at most {MOST_EXPANDED} names");
        self.report.push(Diagnostic::new(Code::TooLarge, span, message).with_section("5.4.6"));
    }

    fn declare_one(&mut self, declarator: &Declarator, entity: Entity) {
        self.declare(declarator.name, entity);
    }

    fn declare_member(&mut self, declarator: &Declarator, text: String, entity: Entity) {
        if let Err(earlier) = self.scopes.declare_owned(text.clone(), entity, declarator.name.span) {
            self.redeclared(declarator.name.span, &text, earlier);
        }
    }

    /// Declares the registers of a `.reg` in a body; `new` makes one.
    pub(super) fn registers(
        &mut self,
        variable: &tree::Variable,
        mut new: impl FnMut(&str, &Shape) -> RegisterId,
    ) {
        let specifiers = &variable.specifiers;
        self.linkage(specifiers, Place::Module);
        self.attributes(specifiers);
        for declarator in &variable.names {
            let shape = self.shape(specifiers, declarator, Place::Module, Unsized::No);
            self.no_initializer(Space::Reg, declarator);
            let count = self.member_count(declarator, Space::Reg);
            let name = declarator.name.text(self.text);
            match (shape, &declarator.count, count) {
                (Some(shape), None, _) => {
                    let id = new(name, &shape);
                    self.declare_one(declarator, Entity::Register(id));
                }
                (Some(shape), Some(_), Some(count)) => {
                    let family =
                        Family { ty: shape.ty, vector: shape.vector, count, span: declarator.name.span };
                    if let Err(earlier) = self.scopes.declare_family(name, family) {
                        self.redeclared(declarator.name.span, name, earlier);
                    }
                }
                (None, _, _) | (Some(_), Some(_), None) => self.broken_names(declarator),
            }
        }
    }

    /// Declares a name, or all names of a family, as broken.
    fn broken_names(&mut self, declarator: &Declarator) {
        let name = declarator.name.text(self.text);
        if declarator.count.is_some() {
            self.scopes.break_family(name);
        }
        // A second error about the same name would add no information.
        let _ = self.scopes.declare(name, Entity::Broken, declarator.name.span);
    }

    /// Declares the `.local` or `.param` variables of a body; `new` makes one.
    pub(super) fn locals(
        &mut self,
        variable: &tree::Variable,
        function: FuncId,
        mut new: impl FnMut(&str, &Shape) -> LocalId,
    ) {
        let specifiers = &variable.specifiers;
        let space = specifiers.space.value;
        let place = Place::Body(function);
        self.linkage(specifiers, place);
        self.attributes(specifiers);
        for declarator in &variable.names {
            let shape = self.shape(specifiers, declarator, place, Unsized::No);
            self.no_initializer(space, declarator);
            let count = self.member_count(declarator, space);
            let shape = shape.filter(|shape| self.fits_thread(space, shape, declarator.name.span));
            let (Some(shape), Some(members)) = (shape, self.member_names(declarator, count)) else {
                self.broken_names(declarator);
                continue;
            };
            for (name, member) in members {
                let entity = Entity::Local(new(&name, &shape));
                match member {
                    None => self.declare_one(declarator, entity),
                    Some(text) => self.declare_member(declarator, text, entity),
                }
            }
        }
    }
}

/// Adds a register.
pub(super) fn new_register(registers: &mut Vec<Register>, name: &str, shape: &Shape) -> RegisterId {
    let id = RegisterId(registers.len() as u32);
    registers.push(Register { name: name.to_owned(), ty: shape.ty, vector: shape.vector });
    id
}

/// Adds a `.local` or `.param` variable.
pub(super) fn new_local(
    locals: &mut Vec<LocalVar>,
    name: &str,
    shape: &Shape,
    space: Space,
    role: LocalRole,
) -> LocalId {
    let id = LocalId(locals.len() as u32);
    locals.push(LocalVar {
        name: name.to_owned(),
        space,
        role,
        ty: shape.ty,
        bytes: shape.bytes,
        align: shape.align,
        dims: shape.dims.clone(),
        vector: shape.vector,
    });
    id
}
