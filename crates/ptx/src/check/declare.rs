//! Declarations of variables: what may be declared where, and how large it is. PTX ISA §5.1, §5.4.
//!
//! Invariant: a [`Shape`] has a size below the limit of its space, an alignment that is a power of two, and dimensions
//! over zero (save an unsized first one). A name whose declaration has an error is declared as [`Entity::Broken`].

use super::checker::Checker;
use super::constexpr;
use super::init;
use super::module::{FuncId, Linkage, LocalId, RegisterId, VarId, Variable};
use super::scope::{Entity, Family};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Space, Ty, TyKind, Version};
use crate::syntax::tree::{self, Declarator, Expr, Specifiers};

/// Type, size and alignment of something declared.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    /// Element type.
    pub(super) ty: Ty,
    /// 1, 2 or 4.
    pub(super) vector: u8,
    /// Array dimensions; an unsized first one is 0.
    pub(super) dims: Vec<u64>,
    /// Size in bytes; 0 while the first dimension is not known.
    pub(super) bytes: u64,
    /// Alignment in bytes.
    pub(super) align: u32,
}

/// A `.reg` or `.local` variable of module scope, which each body that names it takes in. PTX ISA §5.1.1, §5.1.5.
#[derive(Clone, Debug)]
pub(super) struct ModuleScoped {
    /// Name.
    pub(super) name: String,
    /// Type and size.
    pub(super) shape: Shape,
}

/// Where a declaration stands.
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

/// Whether `name[]` may stand here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsized {
    /// It may not.
    No,
    /// It may, and stays unsized.
    Yes,
    /// It may; the initialiser gives the size.
    ByInitializer,
}

/// An earlier declaration of the same external variable.
#[derive(Clone, Copy, Debug)]
enum Twin {
    /// There is none.
    None,
    /// The earlier one stays.
    Keep,
    /// This one takes its place.
    Replace(VarId),
}

/// The largest variable that can be declared: chosen; far beyond what a GPU has.
const LARGEST_VARIABLE: u64 = 1 << 40;
/// The local memory of a thread (CUDA C Programming Guide, compute capabilities).
const LARGEST_LOCAL: u64 = 512 * 1024;
/// The shared memory of the largest CTA of any target (227 KB), rounded up.
const LARGEST_SHARED: u64 = 256 * 1024;
/// Size of a constant bank. PTX ISA §5.1.3.
const CONST_BANK: u64 = 64 * 1024;
/// How many textures can be bound at once. PTX ISA §5.1.8, §5.3.
const MOST_TEXTURES: u32 = 128;
/// The most members of a parameterised name outside `.reg`; chosen, so that a short text cannot ask for much memory.
const MOST_MEMBERS: u64 = 1 << 16;
/// The most members of a parameterised register name: chosen; far beyond what any compiler emits.
const MOST_REGISTERS: u64 = 1 << 32;

impl<'a> Checker<'a> {
    /// A declaration at module scope.
    pub(super) fn module_variable(&mut self, variable: &'a tree::Variable) {
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
    pub(super) fn declare_broken(&mut self, variable: &'a tree::Variable) {
        for declarator in &variable.names {
            let name = declarator.name.text(self.text);
            // A second error about the same name would say nothing new.
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

    /// `.reg` and `.local` at module scope: legal without an ABI, before PTX 3.0.
    fn module_scoped(&mut self, variable: &'a tree::Variable) {
        let specifiers = &variable.specifiers;
        let space = specifiers.space.value;
        if self.at_least(Version::new(3, 0)) {
            self.wrong_space(specifiers, "at module scope from PTX 3.0 on", "declare it inside a function");
            self.declare_broken(variable);
            return;
        }
        self.linkage(specifiers, Place::Module);
        for declarator in &variable.names {
            let shape = self.shape(specifiers, declarator, Place::Module, Unsized::No);
            self.no_initializer(space, declarator);
            let count = self.member_count(declarator, space);
            let (Some(shape), Some(members)) = (shape, self.member_names(declarator, count)) else {
                self.declare_one(declarator, Entity::Broken);
                continue;
            };
            for (name, entity_name) in members {
                let index = self.module_scope.len() as u32;
                self.module_scope.push(ModuleScoped { name, shape: shape.clone() });
                let register = space == Space::Reg;
                let entity =
                    if register { Entity::ModuleRegister(index) } else { Entity::ModuleLocal(index) };
                match entity_name {
                    None => self.declare_one(declarator, entity),
                    Some(text) => self.declare_member(declarator, text, entity),
                }
            }
        }
    }

    /// A variable that is laid out once: of module scope, or hoisted from a body.
    pub(super) fn static_variable(&mut self, variable: &'a tree::Variable, place: Place) {
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

    /// An external variable may be declared before its definition, or again: both are one variable.
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

    /// The linkage of a variable, and what is wrong with it.
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

    /// Whether `.attribute(.managed)` is given, and what is wrong with the attributes. PTX ISA §5.4.8.
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
                    self.needs(attribute.word.span, "`.unified`", Version::new(9, 0), 90, "5.4.8");
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

    /// Says that a variable cannot have an initialiser.
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
                format!("{} bytes are more than {of} has left", shape.bytes),
            )
            .with_label(format!("{of} holds {limit} bytes"))
            .with_section("5.1"),
        );
        false
    }

    /// Checks that a `.local` or `.param` variable fits.
    pub(super) fn fits_thread(&mut self, space: Space, shape: &Shape, span: Span) -> bool {
        self.within_limits(space, 0, shape, span)
    }

    /// Type, size and alignment of a declared name; `None` after an error.
    pub(super) fn shape(
        &mut self,
        specifiers: &Specifiers,
        declarator: &Declarator,
        place: Place,
        unsized_: Unsized,
    ) -> Option<Shape> {
        let ty = specifiers.ty?;
        let space = specifiers.space.value;
        let errors = self.report.errors();
        self.type_in_space(ty.value, ty.span, space, place);
        let vector = self.vector_of(specifiers, ty.value);
        let align = self.align_of(specifiers, space);
        let dims = self.dimensions(declarator, space, unsized_)?;
        self.ptr_attribute(specifiers, place);
        if self.report.errors() > errors {
            return None;
        }
        let element = u64::from(ty.value.bytes().max(1)) * u64::from(vector);
        let count = dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        let bytes = count.and_then(|n| n.checked_mul(element)).filter(|n| *n <= LARGEST_VARIABLE);
        let Some(bytes) = bytes else {
            self.report.push(
                Diagnostic::new(Code::TooLarge, declarator.span, "this array is larger than any memory")
                    .with_section("5.4.3"),
            );
            return None;
        };
        let natural = u32::try_from(element).unwrap_or(16);
        Some(Shape { ty: ty.value, vector, dims, bytes, align: align.unwrap_or(1).max(natural) })
    }

    fn type_in_space(&mut self, ty: Ty, span: Span, space: Space, place: Place) {
        let name = ty.name();
        let error = match ty.kind() {
            TyKind::Pred if space != Space::Reg => {
                Some("predicates can only be declared in `.reg`".to_owned())
            }
            TyKind::Opaque if space == Space::Global && place == Place::Module => None,
            TyKind::Opaque if space == Space::Param && place == Place::KernelParameter => None,
            TyKind::Opaque => Some(format!(
                "`.{name}` variables can only be declared in `.global` at module scope, or as parameters of a kernel"
            )),
            TyKind::Bits | TyKind::Unsigned | TyKind::Signed | TyKind::Float | TyKind::Pred => {
                (!is_fundamental(ty)).then(|| format!("variables cannot be of type `.{name}`"))
            }
        };
        if let Some(error) = error {
            let section = if ty.kind() == TyKind::Opaque { "5.3" } else { "5.2.1" };
            self.report.push(Diagnostic::new(Code::BadDeclaration, span, error).with_section(section));
            return;
        }
        if ty.kind() == TyKind::Opaque {
            self.needs(span, &format!("`.{name}`"), Version::new(1, 5), 10, "5.3");
        } else if ty == Ty::F16x2 {
            self.needs(span, "`.f16x2`", Version::new(4, 2), 10, "5.2.1");
        } else if ty == Ty::B128 {
            self.needs(span, "`.b128`", Version::new(8, 3), 70, "5.2.1");
        }
    }

    fn vector_of(&mut self, specifiers: &Specifiers, ty: Ty) -> u8 {
        let Some(vector) = specifiers.vector else { return 1 };
        let bits = ty.bits() * u32::from(vector.value);
        let error = if !matches!(vector.value, 2 | 4) {
            format!("vectors have 2 or 4 elements, not {}", vector.value)
        } else if matches!(ty.kind(), TyKind::Pred | TyKind::Opaque) {
            format!("there are no vectors of `.{}`", ty.name())
        } else if bits > 128 {
            format!("`.v{} .{}` has {bits} bits; a vector has at most 128", vector.value, ty.name())
        } else {
            return vector.value;
        };
        self.report.push(Diagnostic::new(Code::BadDeclaration, vector.span, error).with_section("5.4.2"));
        1
    }

    fn align_of(&mut self, specifiers: &Specifiers, space: Space) -> Option<u32> {
        let expr = specifiers.align.as_ref()?;
        if space == Space::Reg {
            self.report.push(
                Diagnostic::new(
                    Code::BadAlignment,
                    expr.span,
                    "a register has no address, so it cannot be aligned",
                )
                .with_section("5.4.5"),
            );
            return None;
        }
        if specifiers.ty.is_some_and(|ty| ty.span.start < expr.span.start) {
            self.report.push(
                Diagnostic::new(
                    Code::NotPortable,
                    expr.span,
                    "`.align` behind the type is legal, but ptxas refuses it",
                )
                .with_help("`.align` before the type")
                .with_section("5.4.5"),
            );
        }
        self.alignment(expr)
    }

    /// A byte count that is a power of two.
    pub(super) fn alignment(&mut self, expr: &Expr) -> Option<u32> {
        let value = constexpr::integer(expr, "an alignment", self.text, &mut self.report)?;
        constexpr::literal_for_ptxas(expr, &mut self.report);
        let align = value.wide().and_then(|v| u32::try_from(v).ok()).filter(|v| v.is_power_of_two());
        if align.is_none() {
            self.report.push(
                Diagnostic::new(
                    Code::BadAlignment,
                    expr.span,
                    format!("an alignment must be a power of two, not {value}"),
                )
                .with_section("5.4.5"),
            );
        }
        align
    }

    fn dimensions(&mut self, declarator: &Declarator, space: Space, unsized_: Unsized) -> Option<Vec<u64>> {
        let mut dims = Vec::with_capacity(declarator.dimensions.len());
        if let (Some(count), Some(first)) = (&declarator.count, declarator.dimensions.first()) {
            self.report.push(
                Diagnostic::new(Code::BadArray, first.span, "a parameterised name cannot be an array")
                    .with_related(count.span, "the parameter")
                    .with_section("5.4.6"),
            );
            return None;
        }
        if let (Space::Reg, Some(first)) = (space, declarator.dimensions.first()) {
            self.report.push(
                Diagnostic::new(Code::BadArray, first.span, "registers cannot be arrays")
                    .with_help("`name<N>` declares N registers")
                    .with_section("5.4.3"),
            );
            return None;
        }
        for (index, dimension) in declarator.dimensions.iter().enumerate() {
            let Some(size) = &dimension.size else {
                let error = if index > 0 {
                    "only the first dimension may be left out"
                } else if unsized_ == Unsized::No {
                    "an array without a size needs an initialiser or `.extern`"
                } else {
                    dims.push(0);
                    continue;
                };
                self.report
                    .push(Diagnostic::new(Code::BadArray, dimension.span, error).with_section("5.4.3"));
                return None;
            };
            let value = constexpr::integer(size, "a dimension", self.text, &mut self.report)?;
            let Some(n) = value.wide().and_then(|v| u64::try_from(v).ok()).filter(|n| *n > 0) else {
                self.report.push(
                    Diagnostic::new(
                        Code::BadArray,
                        size.span,
                        format!("a dimension must be positive, not {value}"),
                    )
                    .with_section("5.4.3"),
                );
                return None;
            };
            constexpr::literal_for_ptxas(size, &mut self.report);
            dims.push(n);
        }
        Some(dims)
    }

    fn ptr_attribute(&mut self, specifiers: &Specifiers, place: Place) {
        let Some(ptr) = &specifiers.ptr else { return };
        self.needs(ptr.span, "`.ptr`", Version::new(2, 2), 10, "5.1.6.3");
        if place != Place::KernelParameter {
            self.report.push(
                Diagnostic::new(Code::BadDeclaration, ptr.span, "`.ptr` is for parameters of kernels")
                    .with_section("5.1.6.3"),
            );
        } else if let Some(ty) = specifiers.ty
            && !matches!(ty.value, Ty::U32 | Ty::U64 | Ty::S32 | Ty::S64 | Ty::B32 | Ty::B64)
        {
            self.report.push(
                Diagnostic::new(
                    Code::BadDeclaration,
                    ptr.span,
                    format!("a parameter of type `.{}` is no pointer", ty.value.name()),
                )
                .with_help("`.ptr` needs `.u32` or `.u64`")
                .with_section("5.1.6.3"),
            );
        }
        if let Some(space) = ptr.space
            && !matches!(space.value, Space::Const | Space::Global | Space::Local | Space::Shared)
        {
            self.report.push(
                Diagnostic::new(
                    Code::BadDeclaration,
                    space.span,
                    format!("`.ptr` cannot point to `.{}`", space.value.name()),
                )
                .with_section("5.1.6.3"),
            );
        }
    }

    /// The pointee of a parameter with `.ptr`.
    pub(super) fn pointee(&mut self, specifiers: &Specifiers) -> Option<(Space, u32)> {
        let ptr = specifiers.ptr.as_ref()?;
        let align = match &ptr.align {
            None => Some(4),
            Some(expr) => self.alignment(expr),
        };
        Some((ptr.space.map_or(Space::Generic, |s| s.value), align.unwrap_or(4)))
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

    /// The names that a declarator declares, with the text of members; `None` where the count is broken.
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
        Some((0..count).map(|i| (format!("{name}{i}"), Some(format!("{name}{i}")))).collect())
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
        variable: &'a tree::Variable,
        mut new: impl FnMut(&str, &Shape) -> RegisterId,
    ) {
        let specifiers = &variable.specifiers;
        self.linkage(specifiers, Place::Module);
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
        // A second error about the same name would say nothing new.
        let _ = self.scopes.declare(name, Entity::Broken, declarator.name.span);
    }

    /// Declares the `.local` or `.param` variables of a body; `new` makes one.
    pub(super) fn locals(
        &mut self,
        variable: &'a tree::Variable,
        function: FuncId,
        mut new: impl FnMut(&str, &Shape) -> LocalId,
    ) {
        let specifiers = &variable.specifiers;
        let space = specifiers.space.value;
        let place = Place::Body(function);
        self.linkage(specifiers, place);
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

/// Types that variables can have. PTX ISA §5.2.1 (and `.b128` of PTX 8.3).
fn is_fundamental(ty: Ty) -> bool {
    match ty {
        Ty::B8
        | Ty::B16
        | Ty::B32
        | Ty::B64
        | Ty::B128
        | Ty::U8
        | Ty::U16
        | Ty::U32
        | Ty::U64
        | Ty::S8
        | Ty::S16
        | Ty::S32
        | Ty::S64
        | Ty::F16
        | Ty::F16x2
        | Ty::F32
        | Ty::F64
        | Ty::Pred => true,
        Ty::B1
        | Ty::U4
        | Ty::S4
        | Ty::Bf16
        | Ty::Bf16x2
        | Ty::Tf32
        | Ty::E4m3
        | Ty::E5m2
        | Ty::E4m3x2
        | Ty::E5m2x2
        | Ty::U16x2
        | Ty::S16x2
        | Ty::F32x2
        | Ty::Texref
        | Ty::Samplerref
        | Ty::Surfref => false,
    }
}

/// `.global .v2 .u32 [3][4]`, for messages.
pub(super) fn describe(space: Space, shape: &Shape) -> String {
    let vector = if shape.vector > 1 { format!(".v{} ", shape.vector) } else { String::new() };
    let dims: String =
        shape.dims.iter().map(|d| if *d == 0 { "[]".to_owned() } else { format!("[{d}]") }).collect();
    format!(".{} {vector}.{}{dims}", space.name(), shape.ty.name())
}
