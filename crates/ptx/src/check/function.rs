//! Functions and kernels: signatures, directives, prototypes and their definitions, aliases. PTX ISA §7.1,
//! §11.2, §11.4.
//!
//! Invariant: a name has one [`Function`] for all its declarations, and these agree.

use super::body::BodyChecker;
use super::checker::Checker;
use super::constexpr;
use super::module::{
    Body, FuncId, Function, FunctionKind, Linkage, LocalId, LocalRole, LocalVar, Param, Performance,
    Register, RegisterId, Signature, Storage,
};
use super::parameter::{Names, difference};
use super::scope::Entity;
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Space, TyKind, Version};
use crate::syntax::Parser;
use crate::syntax::tree::{self, Expr, FunctionDirectiveKind, Parameter};

/// Whether a declaration has a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    Declared,
    Defined,
}

/// The directives between signature and body.
#[derive(Default)]
struct Directives {
    performance: Performance,
    noreturn: bool,
}

/// The cluster directives of a kernel.
#[derive(Default)]
struct Clusters {
    extent: Option<Span>,
    rank: Option<Span>,
    blocks: Option<Span>,
}

impl<'a> Checker<'a> {
    /// A function or kernel. Its body, if it has one, comes next.
    pub(super) fn function(&mut self, function: &tree::Function, parser: &mut Parser<'_>) {
        let stands = if parser.body_follows() { Stands::Defined } else { Stands::Declared };
        let kind = match function.kind.value {
            tree::FunctionKind::Entry => FunctionKind::Entry,
            tree::FunctionKind::Func => FunctionKind::Func,
        };
        let linkage = self.function_linkage(function, stands);
        for attribute in &function.attributes {
            let word = attribute.word;
            if word.text(self.text) == "unified" {
                self.needs(word.span, "`.unified`", Version::new(9, 0), 90, "5.4.8");
            } else {
                let text = format!("a function has no attribute `.{}`", word.text(self.text));
                self.report
                    .push(Diagnostic::new(Code::BadDeclaration, word.span, text).with_section("5.4.8"));
            }
        }
        let directives = self.directives(function, kind);
        let returns = self.returns(function, kind);
        let params = self.params(&function.parameters, kind, Names::Required);
        let signature = match (returns, params) {
            (Some(returns), Some(params)) => {
                Some(Signature { returns, params, noreturn: directives.noreturn })
            }
            (None, _) | (_, None) => None,
        };
        if let (FunctionKind::Entry, Some(first)) = (kind, function.parameters.first())
            && self.header.level().is_some_and(|level| level.ptx < Version::new(1, 4))
        {
            let text = "before PTX 1.4 the parameters of a kernel are declared in its body";
            self.report.push(Diagnostic::new(Code::NonStandard, first.span, text).with_section("11.2.1"));
        }
        if let (FunctionKind::Entry, Some(signature)) = (kind, &signature) {
            self.parameter_space(function, signature);
        }
        let Some(name) = function.name else { return };
        let id = self.function_id(function, stands, kind, linkage, signature.as_ref());
        if stands == Stands::Declared && kind == FunctionKind::Entry && linkage != Linkage::Extern {
            self.report.push(
                Diagnostic::new(
                    Code::NotPortable,
                    name.span,
                    "a kernel without a body is legal, but ptxas refuses it",
                )
                .with_section("11.2.1"),
            );
        }
        if stands == Stands::Declared {
            if let Some(entry) = id.and_then(|id| self.functions.get_mut(id.0 as usize))
                && entry.body.is_none()
            {
                entry.performance = directives.performance;
            }
            return;
        }
        let Some(id) = id else {
            // The body is still checked, under an id that nothing refers to.
            let id = FuncId(self.functions.len() as u32);
            self.functions.push(self.placeholder(function, kind));
            self.body(id, kind, function, parser, signature.unwrap_or_default());
            return;
        };
        let signature = signature.unwrap_or_default();
        let (signature, checked) = self.body(id, kind, function, parser, signature);
        if let Some(entry) = self.functions.get_mut(id.0 as usize) {
            entry.signature = signature;
            entry.performance = directives.performance;
            entry.body = Some(checked);
        }
    }

    fn placeholder(&self, function: &tree::Function, kind: FunctionKind) -> Function {
        Function {
            name: String::new(),
            kind,
            linkage: Linkage::Internal,
            signature: Signature::default(),
            performance: Performance::default(),
            body: None,
            alias_of: None,
            span: function.name.map_or(function.span, |name| name.span),
        }
    }

    fn function_linkage(&mut self, function: &tree::Function, stands: Stands) -> Linkage {
        let Some(linkage) = function.linkage else { return Linkage::Internal };
        match linkage.value {
            tree::Linkage::Extern if stands == Stands::Defined => {
                self.report.push(
                    Diagnostic::new(
                        Code::BadDeclaration,
                        linkage.span,
                        "an `.extern` function is defined elsewhere, and cannot have a body",
                    )
                    .with_section("11.6.1"),
                );
                Linkage::Extern
            }
            tree::Linkage::Extern => Linkage::Extern,
            tree::Linkage::Visible => Linkage::Visible,
            tree::Linkage::Weak => {
                self.needs(linkage.span, "`.weak`", Version::new(3, 1), 10, "11.6.3");
                Linkage::Weak
            }
            tree::Linkage::Common => {
                self.report.push(
                    Diagnostic::new(Code::BadDeclaration, linkage.span, "a function cannot be `.common`")
                        .with_label("only `.global` variables can")
                        .with_section("11.6.4"),
                );
                Linkage::Internal
            }
        }
    }

    /// Finds or creates the entry of a function; `None` if its name cannot be declared.
    fn function_id(
        &mut self,
        function: &tree::Function,
        stands: Stands,
        kind: FunctionKind,
        linkage: Linkage,
        signature: Option<&Signature>,
    ) -> Option<FuncId> {
        let name = function.name?;
        let text = name.text(self.text);
        match self.scopes.find_global(text) {
            Some((Entity::Func(id), _)) => {
                self.again(id, function, stands, kind, linkage, signature);
                let defined = self.functions[id.0 as usize].body.is_some();
                // A second body is checked but not kept.
                (!defined || stands == Stands::Declared).then_some(id)
            }
            Some(_) | None => {
                self.name_of_function(text, name.span);
                let id = FuncId(self.functions.len() as u32);
                let entity = if signature.is_some() { Entity::Func(id) } else { Entity::Broken };
                self.declare(name, entity);
                self.functions.push(Function {
                    name: text.to_owned(),
                    linkage,
                    signature: signature.cloned().unwrap_or_default(),
                    ..self.placeholder(function, kind)
                });
                Some(id)
            }
        }
    }

    fn name_of_function(&mut self, name: &str, span: Span) {
        let error = match name {
            "%alloca" => "`%alloca` is described by the manual, but not supported by any version",
            "%va_start" | "%va_arg" | "%va_arg64" | "%va_end" => {
                "variadic functions of old drafts were never implemented"
            }
            _ => return,
        };
        self.report.push(
            Diagnostic::new(Code::RemovedFeature, span, error)
                .with_help("a `.local` array, or an unsized last parameter `.param .align 4 .b8 name[]`")
                .with_section("7.2"),
        );
    }

    /// Another declaration of a known function.
    fn again(
        &mut self,
        id: FuncId,
        function: &tree::Function,
        stands: Stands,
        kind: FunctionKind,
        linkage: Linkage,
        signature: Option<&Signature>,
    ) {
        let Some(name) = function.name else { return };
        let text = name.text(self.text);
        let entry = &self.functions[id.0 as usize];
        let (earlier, defined, was) = (entry.span, entry.body.is_some(), entry.linkage);
        if entry.kind != kind {
            self.mismatch(name.span, text, "a kernel and a device function", earlier);
            return;
        }
        if defined && stands == Stands::Defined {
            self.report.push(
                Diagnostic::new(Code::Redeclared, name.span, format!("`{text}` is defined twice"))
                    .with_related(earlier, "first defined here")
                    .with_section("7.1"),
            );
            return;
        }
        if let Some(signature) = signature
            && let Some(difference) = difference(&entry.signature, signature)
        {
            self.mismatch(name.span, text, &difference, earlier);
            return;
        }
        if defined || (was == Linkage::Extern && stands == Stands::Defined) {
            let what = if defined {
                "a declaration after the definition"
            } else {
                "a definition of an `.extern` function"
            };
            self.report.push(
                Diagnostic::new(
                    Code::NotPortable,
                    name.span,
                    format!("{what} is legal, but ptxas refuses it"),
                )
                .with_related(earlier, "the earlier one")
                .with_section("7.1"),
            );
        }
        let entry = &mut self.functions[id.0 as usize];
        if stands == Stands::Defined {
            entry.span = name.span;
            if linkage != Linkage::Internal || was == Linkage::Extern {
                entry.linkage = linkage;
            }
        }
    }

    fn mismatch(&mut self, span: Span, name: &str, difference: &str, earlier: Span) {
        self.report.push(
            Diagnostic::new(
                Code::DefinitionMismatch,
                span,
                format!("`{name}` differs from its earlier declaration: {difference}"),
            )
            .with_related(earlier, "the earlier declaration")
            .with_section("7.1"),
        );
    }

    fn directives(&mut self, function: &tree::Function, kind: FunctionKind) -> Directives {
        let mut directives = Directives::default();
        let mut seen = Vec::new();
        let mut minimum: Option<Span> = None;
        let mut maxntid: Option<Span> = None;
        let mut reqntid: Option<Span> = None;
        let mut clusters = Clusters::default();
        for directive in &function.directives {
            let span = directive.span;
            let word = self.first_word(span);
            if kind == FunctionKind::Func && for_kernels(&directive.kind) {
                self.report.push(
                    Diagnostic::new(
                        Code::BadDeclaration,
                        span,
                        format!("`{word}` is for kernels, not for device functions"),
                    )
                    .with_section("11.4"),
                );
                continue;
            }
            self.directive_once(&mut seen, directive);
            let performance = &mut directives.performance;
            match &directive.kind {
                FunctionDirectiveKind::MaxNReg(n) => {
                    self.needs(span, word, Version::new(1, 3), 10, "11.4.1");
                    performance.maxnreg = self.count(n);
                }
                FunctionDirectiveKind::MaxNTid(list) => {
                    self.needs(span, word, Version::new(1, 3), 10, "11.4.2");
                    maxntid = Some(span);
                    performance.maxntid = self.extents(list, span);
                }
                FunctionDirectiveKind::ReqNTid(list) => {
                    self.needs(span, word, Version::new(2, 1), 10, "11.4.3");
                    reqntid = Some(span);
                    performance.reqntid = self.extents(list, span);
                }
                FunctionDirectiveKind::MinNCtaPerSm(n) => {
                    self.needs(span, word, Version::new(2, 0), 10, "11.4.4");
                    minimum = Some(span);
                    performance.minnctapersm = self.count(n);
                }
                FunctionDirectiveKind::MaxNCtaPerSm(n) => {
                    self.needs(span, word, Version::new(1, 3), 10, "11.4.5");
                    self.count(n);
                    let code =
                        if self.at_least(Version::new(2, 1)) { Code::NotPortable } else { Code::Deprecated };
                    self.report.push(
                        Diagnostic::new(code, span, "`.maxnctapersm` is deprecated")
                            .with_help("`.minnctapersm`")
                            .with_section("11.4.5"),
                    );
                }
                FunctionDirectiveKind::NoReturn => {
                    self.needs(span, word, Version::new(6, 4), 30, "11.4.6");
                    directives.noreturn = true;
                    self.noreturn(function, kind, span);
                }
                FunctionDirectiveKind::Pragma(strings) => self.pragma(strings),
                FunctionDirectiveKind::ReqNCtaPerCluster(list) => {
                    clusters.extent = Some(span);
                    self.needs(span, word, Version::new(7, 8), 90, "11.4");
                    self.extents(list, span);
                }
                FunctionDirectiveKind::ExplicitCluster => {
                    self.needs(span, word, Version::new(7, 8), 90, "11.4");
                }
                FunctionDirectiveKind::MaxClusterRank(n) => {
                    clusters.rank = Some(span);
                    self.needs(span, word, Version::new(7, 8), 90, "11.4");
                    self.count(n);
                }
                FunctionDirectiveKind::BlocksAreClusters => {
                    clusters.blocks = Some(span);
                    self.needs(span, word, Version::new(9, 0), 90, "11.4");
                }
                FunctionDirectiveKind::Language => {
                    // ptxas accepts it from 9.2 on.
                    self.needs(span, word, Version::new(9, 2), 10, "11.4");
                }
                FunctionDirectiveKind::MinPerCtaMemory(n) => {
                    self.count(n);
                    if self.needs(span, word, Version::new(9, 4), 80, "11.4") {
                        self.report.push(
                            Diagnostic::new(
                                Code::NotImplemented,
                                span,
                                format!("ptxvm does not implement `{word}`"),
                            )
                            .with_label("PTX 9.4 introduced it, for sm_80"),
                        );
                    }
                }
                FunctionDirectiveKind::AbiPreserve(n) | FunctionDirectiveKind::AbiPreserveControl(n) => {
                    self.needs(span, word, Version::new(9, 0), 80, "11.4");
                    self.count(n);
                }
            }
        }
        if let (Some(a), Some(b)) = (maxntid, reqntid) {
            self.exclude(a, b, "`.maxntid` and `.reqntid` exclude each other", "11.4.3");
        }
        self.clusters(&clusters, reqntid);
        if let (Some(span), None, None) = (minimum, maxntid, reqntid) {
            self.report.push(
                Diagnostic::new(
                    Code::Suspicious,
                    span,
                    "`.minnctapersm` has no effect without `.maxntid` or `.reqntid`",
                )
                .with_section("11.4.4"),
            );
        }
        directives
    }

    /// Checks the combination of cluster directives.
    fn clusters(&mut self, clusters: &Clusters, reqntid: Option<Span>) {
        if let (Some(a), Some(b)) = (clusters.rank, clusters.extent) {
            self.exclude(a, b, "`.maxclusterrank` and `.reqnctapercluster` exclude each other", "11.4");
        }
        if let Some(span) = clusters.blocks
            && (reqntid.is_none() || clusters.extent.is_none())
        {
            let error = "`.blocksareclusters` needs `.reqntid` and `.reqnctapercluster`";
            self.report.push(Diagnostic::new(Code::ConflictingDirectives, span, error).with_section("11.4"));
        }
    }

    /// Reports two directives that exclude each other, at the later one.
    fn exclude(&mut self, a: Span, b: Span, what: &str, section: &'static str) {
        let (first, second) = if a.start < b.start { (a, b) } else { (b, a) };
        self.report.push(
            Diagnostic::new(Code::ConflictingDirectives, second, what)
                .with_related(first, "the other one")
                .with_section(section),
        );
    }

    /// Reports a directive that occurs twice; a `.pragma` may.
    fn directive_once(
        &mut self,
        seen: &mut Vec<(std::mem::Discriminant<FunctionDirectiveKind>, Span)>,
        directive: &tree::FunctionDirective,
    ) {
        if matches!(directive.kind, FunctionDirectiveKind::Pragma(_)) {
            return;
        }
        let kind = std::mem::discriminant(&directive.kind);
        match seen.iter().find(|(earlier, _)| *earlier == kind) {
            None => seen.push((kind, directive.span)),
            Some((_, earlier)) => {
                let message = format!("`{}` occurs twice", self.first_word(directive.span));
                self.report.push(
                    Diagnostic::new(Code::ConflictingDirectives, directive.span, message)
                        .with_related(*earlier, "the first")
                        .with_section("11.4"),
                );
            }
        }
    }

    fn noreturn(&mut self, function: &tree::Function, kind: FunctionKind, span: Span) {
        let error = match (kind, function.returns.first()) {
            (FunctionKind::Entry, _) => "a kernel cannot be `.noreturn`",
            (FunctionKind::Func, Some(_)) => "a function with a return parameter cannot be `.noreturn`",
            (FunctionKind::Func, None) => return,
        };
        self.report.push(Diagnostic::new(Code::ConflictingDirectives, span, error).with_section("11.4.6"));
    }

    /// The text of a span before its first white space or comma.
    pub(super) fn first_word(&self, span: Span) -> &'a str {
        span.text(self.text).split([' ', '\t', '\n', '\r', ',']).next().unwrap_or("")
    }

    /// A positive number.
    fn count(&mut self, expr: &Expr) -> Option<u32> {
        let value = constexpr::integer(expr, "this", self.text, &mut self.report)?;
        let number = value.wide().and_then(|v| u32::try_from(v).ok()).filter(|n| *n > 0);
        if number.is_none() {
            self.report.push(
                Diagnostic::new(
                    Code::ImmediateOutOfRange,
                    expr.span,
                    format!("expected a number from 1 to {}, found {value}", u32::MAX),
                )
                .with_section("11.4"),
            );
        }
        number
    }

    /// One to three positive numbers; omitted ones are 1.
    fn extents(&mut self, list: &[Expr], span: Span) -> Option<[u32; 3]> {
        if list.is_empty() || list.len() > 3 {
            self.report.push(
                Diagnostic::new(
                    Code::BadDeclaration,
                    span,
                    format!("expected one to three numbers, found {}", list.len()),
                )
                .with_section("11.4"),
            );
            return None;
        }
        let mut extents = [1; 3];
        for (extent, expr) in extents.iter_mut().zip(list) {
            *extent = self.count(expr)?;
        }
        Some(extents)
    }

    /// Checks the size of a kernel's parameters. PTX ISA §11.2.1.
    fn parameter_space(&mut self, function: &tree::Function, signature: &Signature) {
        let level = self.header.level();
        let limit = match level {
            Some(level) if level.ptx < Version::new(1, 5) => 256,
            Some(level) if level.ptx >= Version::new(8, 1) && level.sm.number >= 70 => 32764,
            Some(_) => 4352,
            None => return,
        };
        let mut total: u64 = 0;
        for (param, parameter) in signature.params.iter().zip(&function.parameters) {
            if param.ty.kind() == TyKind::Opaque {
                continue;
            }
            total = total.next_multiple_of(u64::from(param.align.max(1))).saturating_add(param.bytes);
            if total > limit {
                self.report.push(
                    Diagnostic::new(
                        Code::TooLarge,
                        parameter.span,
                        format!("the parameters take {total} bytes, more than {limit}"),
                    )
                    .with_section("11.2.1"),
                );
                return;
            }
        }
    }

    /// Parses and checks a body; returns the signature with the places of its parameters.
    fn body(
        &mut self,
        id: FuncId,
        kind: FunctionKind,
        function: &tree::Function,
        parser: &mut Parser<'_>,
        mut signature: Signature,
    ) -> (Signature, Body) {
        self.scopes.open();
        self.undeclared.clear();
        let mut body = Body::default();
        let returns = signature.returns.iter_mut().zip(&function.returns).enumerate();
        for (index, (param, parameter)) in returns {
            self.formal(&mut body, param, parameter, LocalRole::Return(index as u32));
        }
        let parameters = signature.params.iter_mut().zip(&function.parameters).enumerate();
        for (index, (param, parameter)) in parameters {
            let role = match kind {
                FunctionKind::Entry => LocalRole::KernelParam(index as u32),
                FunctionKind::Func => LocalRole::Input(index as u32),
            };
            self.formal(&mut body, param, parameter, role);
        }
        // After an error in the signature, its names are still declared, so that their uses are not reported.
        if signature.params.len() != function.parameters.len()
            || signature.returns.len() != function.returns.len()
        {
            for parameter in function.returns.iter().chain(&function.parameters) {
                let name = parameter.declarator.name;
                let _ = self.scopes.declare(name.text(self.text), Entity::Broken, name.span);
            }
        }
        let (signature, body) = BodyChecker::new(self, id, kind, body, signature).check(parser);
        self.scopes.close();
        self.undeclared.clear();
        (signature, body)
    }

    fn formal(&mut self, body: &mut Body, param: &mut Param, parameter: &Parameter, role: LocalRole) {
        let name = parameter.declarator.name;
        let (storage, entity) = if param.space == Space::Reg {
            let id = RegisterId(body.registers.len() as u32);
            body.registers.push(Register { name: param.name.clone(), ty: param.ty, vector: param.vector });
            (Storage::Register(id), Entity::Register(id))
        } else {
            let id = LocalId(body.locals.len() as u32);
            body.locals.push(LocalVar {
                name: param.name.clone(),
                space: Space::Param,
                role,
                ty: param.ty,
                bytes: param.bytes,
                align: param.align,
                dims: param.dims.clone(),
                vector: param.vector,
            });
            (Storage::Local(id), Entity::Local(id))
        };
        param.storage = Some(storage);
        if name.text(self.text) != "_" {
            self.reserved(name);
            // Duplicate names were reported with the signature.
            let _ = self.scopes.declare(name.text(self.text), entity, name.span);
        }
    }

    /// `.alias name, target;`. PTX ISA §11.2.3.
    pub(super) fn alias(&mut self, alias: &tree::Alias) {
        self.needs(alias.span, "`.alias`", Version::new(6, 3), 30, "11.2.3");
        let (Some(name), Some(target)) = (self.alias_part(alias.name), self.alias_part(alias.target)) else {
            return;
        };
        let (a, b) = (&self.functions[name.0 as usize], &self.functions[target.0 as usize]);
        let names = (alias.name.text(self.text), alias.target.text(self.text));
        let error = if a.kind == FunctionKind::Entry {
            (alias.name.span, format!("`{}` is a kernel, and an alias stands for a device function", names.0))
        } else if b.kind == FunctionKind::Entry {
            (alias.target.span, format!("`{}` is a kernel, which has no aliases", names.1))
        } else if a.body.is_some() {
            (alias.name.span, format!("`{}` has a body, so it cannot be an alias", names.0))
        } else if a.alias_of.is_some() {
            (alias.name.span, format!("`{}` is an alias already", names.0))
        } else if b.body.is_none() {
            (alias.target.span, format!("`{}` is not defined in this module", names.1))
        } else if b.linkage == Linkage::Weak {
            (alias.target.span, format!("`{}` is `.weak`, so it has no aliases", names.1))
        } else if let Some(difference) = difference(&b.signature, &a.signature) {
            (
                alias.name.span,
                format!("`{}` and `{}` have different prototypes: {difference}", names.0, names.1),
            )
        } else {
            self.functions[name.0 as usize].alias_of = Some(target);
            return;
        };
        self.report.push(Diagnostic::new(Code::BadDeclaration, error.0, error.1).with_section("11.2.3"));
    }

    fn alias_part(&mut self, name: tree::Name) -> Option<FuncId> {
        match self.scopes.find_global(name.text(self.text)) {
            Some((Entity::Func(id), _)) => Some(id),
            Some((Entity::Broken, _)) => None,
            Some((entity, _)) => {
                let text = format!("`{}` is {}, not a function", name.text(self.text), entity.noun());
                self.report
                    .push(Diagnostic::new(Code::BadDeclaration, name.span, text).with_section("11.2.3"));
                None
            }
            None => {
                self.undeclared_function(name);
                None
            }
        }
    }
}

/// Whether a directive is allowed for kernels only. PTX ISA §11.4.
fn for_kernels(kind: &FunctionDirectiveKind) -> bool {
    match kind {
        FunctionDirectiveKind::MaxNReg(_)
        | FunctionDirectiveKind::MaxNTid(_)
        | FunctionDirectiveKind::ReqNTid(_)
        | FunctionDirectiveKind::MinNCtaPerSm(_)
        | FunctionDirectiveKind::MaxNCtaPerSm(_)
        | FunctionDirectiveKind::ReqNCtaPerCluster(_)
        | FunctionDirectiveKind::ExplicitCluster
        | FunctionDirectiveKind::MaxClusterRank(_)
        | FunctionDirectiveKind::BlocksAreClusters
        | FunctionDirectiveKind::MinPerCtaMemory(_) => true,
        FunctionDirectiveKind::NoReturn
        | FunctionDirectiveKind::Pragma(_)
        | FunctionDirectiveKind::AbiPreserve(_)
        | FunctionDirectiveKind::AbiPreserveControl(_)
        | FunctionDirectiveKind::Language => false,
    }
}
