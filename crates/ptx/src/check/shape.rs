//! Shapes of declared things: type, vector, dimensions, size and alignment. PTX ISA §5.2, §5.4.2, §5.4.3,
//! §5.4.5.
//!
//! Invariant: a [`Shape`] has a size below the limit of its space, an alignment that is a power of two, and
//! dimensions above zero (except an unsized first one).

use super::checker::Checker;
use super::constexpr;
use super::declare::Place;
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Gate, Sm, Space, Ty, TyKind, Version};
use crate::syntax::tree::{Declarator, Expr, Specifiers};

/// Type, size and alignment of a declared entity.
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

/// Whether `name[]` is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsized {
    /// Not allowed.
    No,
    /// Allowed, and stays unsized.
    Yes,
    /// Allowed with an initialiser, which gives the size.
    ByInitializer,
}

/// The size limit of variables. Chosen: far beyond a GPU's memory.
pub(super) const LARGEST_VARIABLE: u64 = 1 << 40;

impl Checker<'_> {
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
        if self.report.errors() > errors {
            return None;
        }
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
        } else if ty == Ty::F64 {
            self.double(span);
        } else if ty == Ty::B128 {
            self.needs(span, "`.b128`", Version::new(8, 3), 70, "5.2.1");
        }
    }

    /// Checks that the target has `.f64`, or maps it to `.f32`; instructions are checked separately. PTX ISA
    /// §11.1.2.
    fn double(&mut self, span: Span) {
        let gate = Gate { sm: Some(Sm::new(13)), or_map_f64: true, ..Gate::OPEN };
        if self.unmet(|level| gate.unmet(level)).is_some() {
            let text = "this target has no `.f64`, so nothing can be done with it";
            self.report.push(
                Diagnostic::new(Code::NonStandard, span, text)
                    .with_help("sm_13 or newer, or the target `map_f64_to_f32`")
                    .with_section("11.1.2"),
            );
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
                    Code::NonStandard,
                    expr.span,
                    "a register has no address, so it cannot be aligned",
                )
                .with_label("without effect")
                .with_section("5.4.5"),
            );
            // An invalid alignment is reported here too.
            let _without_effect = self.alignment(expr);
            return None;
        }
        if specifiers.ty.is_some_and(|ty| ty.span.start < expr.span.start) {
            self.report.push(
                Diagnostic::new(
                    Code::NotPortable,
                    expr.span,
                    "`.align` after the type is legal, but ptxas refuses it",
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
                    format!("an alignment must be a power of two up to 2^31, not {value}"),
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
            && !is_pointer(ty.value)
        {
            self.report.push(
                Diagnostic::new(
                    Code::NonStandard,
                    ptr.span,
                    format!("a parameter of type `.{}` is not a pointer", ty.value.name()),
                )
                .with_label("without effect")
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
        let ptr = specifiers.ptr.as_ref().filter(|_| specifiers.ty.is_none_or(|ty| is_pointer(ty.value)))?;
        let align = match &ptr.align {
            None => Some(4),
            Some(expr) => self.alignment(expr),
        };
        Some((ptr.space.map_or(Space::Generic, |s| s.value), align.unwrap_or(4)))
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
        | Ty::U2
        | Ty::S2
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

/// Whether a parameter of that type can hold a pointer.
fn is_pointer(ty: Ty) -> bool {
    matches!(ty, Ty::U32 | Ty::U64 | Ty::S32 | Ty::S64 | Ty::B32 | Ty::B64)
}
