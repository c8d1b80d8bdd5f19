//! Parameters of functions, kernels and prototypes. PTX ISA §5.1.6, §7.1, §11.2.
//!
//! Invariant: a [`Param`] has a state space and a type that are allowed for parameters, and only the last one
//! can be unsized.

use super::checker::Checker;
use super::declare::Place;
use super::module::{FunctionKind, Param, Signature};
use super::shape::{Shape, Unsized, describe};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Space, Ty, Version};
use crate::syntax::tree::{self, Parameter};
use std::collections::HashMap;

/// Whether parameter names must be distinct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// In functions.
    Required,
    /// In prototypes.
    Ignored,
}

impl<'a> Checker<'a> {
    /// Return parameters; a kernel has none.
    pub(super) fn returns(&mut self, function: &tree::Function, kind: FunctionKind) -> Option<Vec<Param>> {
        if let (FunctionKind::Entry, Some(first)) = (kind, function.returns.first()) {
            self.report.push(
                Diagnostic::new(Code::BadDeclaration, first.span, "a kernel returns nothing")
                    .with_section("11.2.1"),
            );
            return None;
        }
        self.returned(&function.returns)
    }

    /// Return parameters of a function or prototype.
    pub(super) fn returned(&mut self, returns: &[Parameter]) -> Option<Vec<Param>> {
        if let (Some(second), true) = (returns.get(1), self.has_stack()) {
            self.report.push(
                Diagnostic::new(Code::BadDeclaration, second.span, "a function returns at most one value")
                    .with_label("from PTX 2.0 and sm_20 on")
                    .with_help("a `.param` byte array holds several")
                    .with_section("7.1.1"),
            );
            return None;
        }
        if let Some(dimension) =
            returns.iter().find_map(|r| r.declarator.dimensions.first().filter(|d| d.size.is_none()))
        {
            self.report.push(
                Diagnostic::new(Code::BadArray, dimension.span, "a return parameter needs a size")
                    .with_help("only the last input parameter can have none")
                    .with_section("11.2.2"),
            );
            return None;
        }
        self.params(returns, FunctionKind::Func, Names::Required)
    }

    /// Parameters of a function, kernel or prototype; `None` after an error.
    pub(super) fn params(
        &mut self,
        parameters: &[Parameter],
        kind: FunctionKind,
        names: Names,
    ) -> Option<Vec<Param>> {
        let errors = self.report.errors();
        let mut params = Vec::with_capacity(parameters.len());
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for (index, parameter) in parameters.iter().enumerate() {
            let last = index + 1 == parameters.len();
            if let Some(param) = self.param(parameter, kind, last) {
                params.push(param);
            }
            let name = parameter.declarator.name;
            let text = name.text(self.text);
            if text == "_" {
                continue;
            }
            if names == Names::Required
                && let Some(earlier) = seen.insert(text, name.span)
            {
                self.redeclared(name.span, text, earlier);
            }
        }
        (self.report.errors() == errors).then_some(params)
    }

    fn param(&mut self, parameter: &Parameter, kind: FunctionKind, last: bool) -> Option<Param> {
        let specifiers = &parameter.specifiers;
        let declarator = &parameter.declarator;
        let space = specifiers.space.value;
        let place = match kind {
            FunctionKind::Entry => Place::KernelParameter,
            FunctionKind::Func => Place::FunctionParameter,
        };
        let fits = match kind {
            FunctionKind::Entry => space == Space::Param,
            FunctionKind::Func => matches!(space, Space::Reg | Space::Param),
        };
        if !fits {
            let help = if kind == FunctionKind::Entry { "`.param`" } else { "`.param` or `.reg`" };
            self.report.push(
                Diagnostic::new(
                    Code::BadDeclaration,
                    specifiers.space.span,
                    format!("a parameter cannot be in `.{}`", space.name()),
                )
                .with_help(help)
                .with_section("11.2"),
            );
            return None;
        }
        if let Some(count) = &declarator.count {
            self.report.push(
                Diagnostic::new(Code::BadDeclaration, count.span, "a parameter has one name")
                    .with_section("11.2"),
            );
            return None;
        }
        self.no_initializer(space, declarator);
        let unsized_ = declarator.dimensions.first().is_some_and(|d| d.size.is_none());
        let may = if unsized_ && self.unsized_parameter(parameter, kind, last) {
            Unsized::Yes
        } else {
            Unsized::No
        };
        if unsized_ && may == Unsized::No {
            return None;
        }
        let shape = self.shape(specifiers, declarator, place, may)?;
        let ptr = self.pointee(specifiers);
        if kind == FunctionKind::Func {
            self.function_param(parameter, &shape)?;
        } else if shape.vector > 1 {
            self.report.push(
                Diagnostic::new(
                    Code::NotPortable,
                    declarator.span,
                    "a vector as parameter of a kernel is legal, but ptxas refuses it",
                )
                .with_section("5.1.6"),
            );
        }
        if space == Space::Param && !self.fits_thread(space, &shape, declarator.name.span) {
            return None;
        }
        Some(Param {
            name: declarator.name.text(self.text).to_owned(),
            space,
            ty: shape.ty,
            vector: shape.vector,
            dims: shape.dims,
            bytes: shape.bytes,
            align: shape.align,
            ptr,
            storage: None,
            span: parameter.span,
        })
    }

    /// Additional checks for parameters of device functions. `None` after an error.
    fn function_param(&mut self, parameter: &Parameter, shape: &Shape) -> Option<()> {
        let specifiers = &parameter.specifiers;
        let span = specifiers.ty.map_or(parameter.span, |ty| ty.span);
        if specifiers.space.value == Space::Param {
            let ok = self.needs(
                specifiers.space.span,
                "a `.param` parameter of a device function",
                Version::new(2, 0),
                20,
                "5.1.6.4",
            );
            if let (true, Some(align)) = (shape.align > 16, &specifiers.align) {
                self.report.push(
                    Diagnostic::new(
                        Code::BadAlignment,
                        align.span,
                        format!("a parameter cannot be aligned to {} bytes", shape.align),
                    )
                    .with_help("1, 2, 4, 8 or 16")
                    .with_section("7.1"),
                );
                return None;
            }
            return ok.then_some(());
        }
        if self.has_stack() && shape.ty.bits() * u32::from(shape.vector) < 32 {
            self.report.push(
                Diagnostic::new(
                    Code::BadDeclaration,
                    span,
                    format!("a `.reg` parameter has at least 32 bits, not `.{}`", shape.ty.name()),
                )
                .with_help("a wider register, or `.param`")
                .with_section("7.1"),
            );
            return None;
        }
        Some(())
    }

    fn unsized_parameter(&mut self, parameter: &Parameter, kind: FunctionKind, last: bool) -> bool {
        let span = parameter.declarator.span;
        let one_dimension = parameter.declarator.dimensions.len() == 1;
        let bytes = parameter.specifiers.ty.is_some_and(|ty| ty.value == Ty::B8);
        let in_param = parameter.specifiers.space.value == Space::Param;
        if kind == FunctionKind::Func && last && !bytes && in_param && one_dimension {
            self.report.push(
                Diagnostic::new(
                    Code::UnsizedParameter,
                    span,
                    "a parameter without a size has elements of type `.b8`",
                )
                .with_label("taken as bytes with the alignment of the type")
                .with_help("`.param .align N .b8 name[]`")
                .with_section("11.2.2"),
            );
        } else if kind == FunctionKind::Entry || !last || !bytes || !in_param || !one_dimension {
            self.report.push(
                Diagnostic::new(
                    Code::BadArray,
                    span,
                    "only the last parameter of a device function can have no size",
                )
                .with_help("`.param .align N .b8 name[]`")
                .with_section("11.2.2"),
            );
            return false;
        }
        self.needs(span, "an unsized parameter", Version::new(6, 0), 30, "11.2.2")
    }
}

/// The difference between two signatures; `None` if they agree.
pub(super) fn difference(a: &Signature, b: &Signature) -> Option<String> {
    let lists = [("return parameter", &a.returns, &b.returns), ("parameter", &a.params, &b.params)];
    for (what, left, right) in lists {
        if left.len() != right.len() {
            return Some(format!("{} {what}s, and {} {what}s", left.len(), right.len()));
        }
        for (index, (x, y)) in left.iter().zip(right).enumerate() {
            let same = x.space == y.space && x.ty == y.ty && x.vector == y.vector && x.dims == y.dims;
            let aligned = x.dims.is_empty() || x.align == y.align;
            if !same || !aligned {
                let number = index + 1;
                return Some(format!("{what} {number} is `{}`, and `{}`", param_text(x), param_text(y)));
            }
        }
    }
    (a.noreturn != b.noreturn).then(|| "one is `.noreturn`, and the other is not".to_owned())
}

/// `.param .align 8 .b8[16]`, for messages.
pub(super) fn param_text(param: &Param) -> String {
    let shape = Shape {
        ty: param.ty,
        vector: param.vector,
        dims: param.dims.clone(),
        bytes: param.bytes,
        align: param.align,
    };
    let text = describe(param.space, &shape);
    if param.dims.is_empty() { text } else { text.replacen(' ', &format!(" .align {} ", param.align), 1) }
}
