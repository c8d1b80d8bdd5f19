//! Branches and calls: targets, arguments and results. PTX ISA §7.1, §9.7.11.
//!
//! Invariant: a checked call has as many arguments and results as its callee's signature (an unsized last
//! parameter may be omitted). Each has the type and size of its parameter, and is a register, a `.param`
//! variable or a constant.

use super::body::BodyChecker;
use super::immediate;
use super::inst::{Written, WrittenKind};
use super::meant::Wanted;
use super::module::{
    FuncId, FunctionKind, LocalRole, Operand, Param, ProtoId, Reloc, Signature, Symbol, VarId,
};
use super::parameter::{difference, param_text};
use super::scope::{Entity, Found};
use super::types::{Width, accepts};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Dir, OperandForm, Space, Ty, TyKind};
use crate::syntax::tree::Reference;

/// The signature that a call must match.
#[derive(Clone, Copy, Debug)]
pub(super) enum Callee {
    /// That of a function; for a list of targets the first, because all have the same signature.
    Function(FuncId),
    /// A prototype.
    Prototype(ProtoId),
}

impl BodyChecker<'_, '_> {
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    fn name_of<'t>(&mut self, written: &Written<'t>, what: &str) -> Option<&'t Reference> {
        match &written.kind {
            WrittenKind::Name(reference) if reference.suffix.is_none() => Some(reference),
            _ => {
                self.wrong_kind(written.span, what);
                None
            }
        }
    }

    /// The target of `bra`.
    pub(super) fn branch_label(&mut self, written: &Written<'_>) -> Option<Operand> {
        let reference = self.name_of(written, "expected a label")?;
        let text = self.checker.text;
        let name = reference.name.text(text);
        let span = reference.span;
        let (noun, help) = match self.checker.scopes.find(name) {
            None => {
                self.checker.undefined_label(name, span);
                return None;
            }
            Some(Found::Entity(Entity::Label(id), _)) => return Some(Operand::Label(id)),
            Some(Found::Entity(Entity::Broken, _)) => return None,
            Some(Found::Entity(entity @ Entity::Register(_), _)) => {
                (entity.noun(), "indirect branches were removed; `brx.idx` branches through a list")
            }
            Some(Found::Member(..)) => {
                ("a register", "indirect branches were removed; `brx.idx` branches through a list")
            }
            Some(Found::Entity(entity @ (Entity::BranchTargets(_) | Entity::UnusableTargets(_)), _)) => {
                (entity.noun(), "`brx.idx` branches through a list")
            }
            Some(Found::Entity(entity @ Entity::Func(_), _)) => (entity.noun(), "`call`"),
            Some(Found::Entity(entity, _)) => (entity.noun(), "a label of this function"),
        };
        self.checker.report.push(
            Diagnostic::new(Code::WrongOperandKind, span, format!("`{name}` is {noun}, not a label"))
                .with_help(help)
                .with_section("9.7.11.3"),
        );
        None
    }

    /// The list of `brx.idx`.
    pub(super) fn target_list(&mut self, written: &Written<'_>) -> Option<Operand> {
        let reference = self.name_of(written, "expected the label of a `.branchtargets`")?;
        let name = reference.name.text(self.checker.text);
        let message = match self.checker.scopes.find(name) {
            Some(Found::Entity(Entity::BranchTargets(index), _)) => {
                return Some(Operand::BranchTargets(index));
            }
            Some(Found::Entity(Entity::UnusableTargets(index), _)) => {
                self.require_labels(index);
                return None;
            }
            Some(Found::Entity(Entity::Broken, _)) => return None,
            Some(Found::Entity(entity, _)) => {
                format!("`{name}` is {}, not a list of branch targets", entity.noun())
            }
            Some(Found::Member(..)) => format!("`{name}` is a register, not a list of branch targets"),
            None => format!("there is no `.branchtargets` list `{name}` before this"),
        };
        self.checker.report.push(
            Diagnostic::new(Code::BadBranchTargets, reference.span, message)
                .with_help(format!("`{name}: .branchtargets L1, L2;` before the `brx.idx`"))
                .with_section("9.7.11.4"),
        );
        None
    }

    /// The function of a direct call.
    pub(super) fn callee(&mut self, written: &Written<'_>) -> Option<Operand> {
        let reference = self.name_of(written, "expected the name of a function")?;
        let text = self.checker.text;
        let name = reference.name.text(text);
        let span = reference.span;
        let (noun, help) = match self.checker.scopes.find(name) {
            None => {
                if name == "%alloca" || name.starts_with("%va_") {
                    self.checker.report.push(
                        Diagnostic::new(
                            Code::RemovedFeature,
                            span,
                            format!("`{name}` is not supported by any version"),
                        )
                        .with_section("7.2"),
                    );
                    return None;
                }
                self.checker.undeclared_function(reference.name);
                return None;
            }
            Some(Found::Entity(Entity::Broken, _)) => return None,
            Some(Found::Entity(Entity::Func(id), _)) => {
                if self.checker.functions[id.0 as usize].kind == FunctionKind::Func {
                    return Some(Operand::Function(id));
                }
                ("a kernel", "kernels are launched, not called")
            }
            Some(Found::Entity(entity @ Entity::Register(_), _)) => {
                (entity.noun(), "an indirect call also names a prototype: `call (r), fp, (a), proto;`")
            }
            Some(Found::Member(..)) => {
                ("a register", "an indirect call also names a prototype: `call (r), fp, (a), proto;`")
            }
            Some(Found::Entity(entity, _)) => (entity.noun(), "a `.func`"),
        };
        self.checker.report.push(
            Diagnostic::new(Code::BadCallTarget, span, format!("`{name}` is {noun}, which cannot be called"))
                .with_help(help)
                .with_section("9.7.11.5"),
        );
        None
    }

    /// The register of an indirect call.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    pub(super) fn function_pointer(&mut self, written: &Written<'_>) -> Option<Operand> {
        let what = "expected a register with the address of a function";
        let WrittenKind::Name(reference) = &written.kind else { return self.wrong_kind(written.span, what) };
        let text = self.checker.text;
        let name = reference.span.text(text);
        match self.resolve(reference.name)? {
            Entity::Register(id) => {
                let element = self.element(id, reference)?;
                let register = self.register(id);
                let (ty, vector) = (register.ty, register.vector);
                let integer = matches!(ty.kind(), TyKind::Bits | TyKind::Unsigned | TyKind::Signed);
                let scalar = vector == 1 || element.is_some();
                if !integer || !matches!(ty.bits(), 32 | 64) || !scalar {
                    self.checker.report.push(
                        Diagnostic::new(
                            Code::WrongOperandType,
                            reference.span,
                            format!(
                                "`{name}` has type `.{}`, which cannot hold the address of a function",
                                ty.name()
                            ),
                        )
                        .with_section("9.7.11.5"),
                    );
                    return None;
                }
                Some(element.map_or(Operand::Register(id), |element| Operand::Element(id, element)))
            }
            // `call (r), f, (a), proto;` with the name of a function: a direct call in the form of an
            // indirect one.
            Entity::Func(id) if self.checker.functions[id.0 as usize].kind == FunctionKind::Func => {
                Some(Operand::Function(id))
            }
            other => {
                let message = format!("`{name}` is {}; {what}", other.noun());
                self.checker.report.push(
                    Diagnostic::new(Code::BadCallTarget, reference.span, message).with_section("9.7.11.5"),
                );
                None
            }
        }
    }

    /// The last operand of an indirect call: targets or prototype.
    pub(super) fn call_target_list(&mut self, written: &Written<'_>) -> Option<Operand> {
        let what = "expected a `.calltargets` list, a `.callprototype`, or an array of functions";
        let reference = self.name_of(written, what)?;
        let text = self.checker.text;
        let name = reference.name.text(text);
        match self.checker.scopes.find(name) {
            Some(Found::Entity(Entity::CallTargets(index), _)) => Some(Operand::CallTargets(index)),
            Some(Found::Entity(Entity::Prototype(id), _)) => Some(Operand::Prototype(id)),
            Some(Found::Entity(Entity::Var(id), _)) => self.table(id, reference.span),
            Some(Found::Entity(Entity::Broken, _)) => None,
            Some(Found::Entity(entity, _)) => {
                let message = format!("`{name}` is {}; {what}", entity.noun());
                self.wrong_kind(reference.span, &message)
            }
            Some(Found::Member(..)) => {
                let message = format!("`{name}` is a register; {what}");
                self.wrong_kind(reference.span, &message)
            }
            None => {
                self.checker.undeclared(reference.name, Wanted::Value, &self.body.registers);
                None
            }
        }
    }

    /// A global array of functions as a list of targets.
    fn table(&mut self, id: VarId, span: Span) -> Option<Operand> {
        if let Some(index) = self.tables.get(&id) {
            return Some(Operand::CallTargets(*index));
        }
        let variable = &self.checker.variables[id.0 as usize];
        let relocs: &[Reloc] = variable.init.as_ref().map_or(&[], |init| &init.relocs);
        let functions: Option<Vec<FuncId>> = relocs
            .iter()
            .map(|reloc| match reloc.symbol {
                Symbol::Func(id) => Some(id),
                Symbol::Var(_) => None,
            })
            .collect();
        let list = functions.filter(|list| !list.is_empty());
        let Some(list) = list else {
            let message = format!("`{}` is not an array of functions", variable.name);
            return self.wrong_kind(span, &message);
        };
        let all = &self.checker.functions;
        let first = &all[list[0].0 as usize].signature;
        if let Some(text) = list.iter().find_map(|f| difference(first, &all[f.0 as usize].signature)) {
            let message =
                format!("the functions of `{}` differ: {text}", self.checker.variables[id.0 as usize].name);
            self.checker
                .report
                .push(Diagnostic::new(Code::SignatureMismatch, span, message).with_section("9.7.11.5"));
            return None;
        }
        let index = self.body.call_targets.len() as u32;
        self.body.call_targets.push(list);
        self.tables.insert(id, index);
        Some(Operand::CallTargets(index))
    }

    /// Arguments or results, checked by themselves; [`Self::call_signature`] compares them with the callee.
    pub(super) fn call_operands(&mut self, form: &OperandForm, written: &Written<'_>) -> Option<Operand> {
        let WrittenKind::List(list) = &written.kind else {
            return self.wrong_kind(written.span, "expected a list in parentheses");
        };
        let operands: Vec<Option<Operand>> = list.iter().map(|w| self.actual(form.dir, w)).collect();
        operands.into_iter().collect::<Option<Vec<_>>>().map(Operand::Args)
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    fn actual(&mut self, dir: Dir, written: &Written<'_>) -> Option<Operand> {
        match &written.kind {
            WrittenKind::Name(reference) => {
                if self.special(reference).is_some() {
                    let name = reference.span.text(self.checker.text);
                    let message = format!("`{name}` is a special register, which only `mov` and `cvt` read");
                    self.checker.report.push(
                        Diagnostic::new(Code::BadRegisterUse, reference.span, message).with_section("5.1.2"),
                    );
                    return None;
                }
                match self.resolve(reference.name)? {
                    Entity::Register(id) => {
                        if dir == Dir::In
                            && let Some(beyond) = self.element_beyond(id, reference)
                        {
                            return Some(beyond);
                        }
                        let element = self.element(id, reference)?;
                        Some(element.map_or(Operand::Register(id), |element| Operand::Element(id, element)))
                    }
                    Entity::Local(id) if self.local(id).space == Space::Param => Some(Operand::ParamVar(id)),
                    Entity::Local(_) | Entity::Var(_) => self
                        .wrong_kind(written.span, "expected a register, a `.param` variable or a constant"),
                    other => {
                        let message = format!(
                            "this is {}; expected a register, a `.param` variable or a constant",
                            other.noun()
                        );
                        self.wrong_kind(written.span, &message)
                    }
                }
            }
            // Its bits depend on the parameter; `call_signature` sets them.
            WrittenKind::Const(_) if dir == Dir::In => Some(Operand::Imm(0)),
            WrittenKind::Sink if dir == Dir::Out => Some(Operand::Sink),
            WrittenKind::Vector(list) => {
                let elements: Vec<Option<Operand>> = list.iter().map(|w| self.actual(dir, w)).collect();
                elements.into_iter().collect::<Option<Vec<_>>>().map(Operand::Vector)
            }
            WrittenKind::Sum(sum) if dir == Dir::In && sum.generic.is_none() && sum.mask.is_none() => {
                match self.resolve(sum.name.name)? {
                    Entity::Register(id) => {
                        let element = self.element(id, &sum.name)?;
                        let register = element.map_or(Operand::Register(id), |e| Operand::Element(id, e));
                        self.register_sum(register, sum.addend, written.span)
                    }
                    _ => self
                        .wrong_kind(written.span, "expected a register, a `.param` variable or a constant"),
                }
            }
            WrittenKind::Sink
            | WrittenKind::Const(_)
            | WrittenKind::Not(_)
            | WrittenKind::Minus(_)
            | WrittenKind::Sum(_)
            | WrittenKind::Address(_)
            | WrittenKind::Brackets(_)
            | WrittenKind::Indexed(..)
            | WrittenKind::Pair(..)
            | WrittenKind::List(_) => {
                self.wrong_kind(written.span, "expected a register, a `.param` variable or a constant")
            }
        }
    }

    /// The signature that a checked call must match.
    #[allow(clippy::wildcard_enum_match_arm, reason = "no other operand determines the signature")]
    pub(super) fn callee_of(&self, operands: &[Operand]) -> Option<Callee> {
        let mut found = None;
        for operand in operands {
            match operand {
                Operand::Function(id) => return Some(Callee::Function(*id)),
                Operand::Prototype(id) => found = Some(Callee::Prototype(*id)),
                Operand::CallTargets(index) => {
                    let first = self.body.call_targets[*index as usize].first()?;
                    found = Some(Callee::Function(*first));
                }
                _ => {}
            }
        }
        found
    }

    /// Moves a signature out, to compare a call with it; [`Self::put_back`] must follow.
    pub(super) fn take(&mut self, callee: Callee) -> (Signature, Option<Span>) {
        match callee {
            Callee::Function(id) => {
                let function = &mut self.checker.functions[id.0 as usize];
                (std::mem::take(&mut function.signature), Some(function.span))
            }
            Callee::Prototype(id) => (std::mem::take(&mut self.checker.prototypes[id.0 as usize]), None),
        }
    }

    /// Puts a signature back.
    pub(super) fn put_back(&mut self, callee: Callee, signature: Signature) {
        match callee {
            Callee::Function(id) => self.checker.functions[id.0 as usize].signature = signature,
            Callee::Prototype(id) => self.checker.prototypes[id.0 as usize] = signature,
        }
    }

    /// Reports a wrong number of arguments or results. An unsized last parameter may be omitted.
    pub(super) fn counts(
        &mut self,
        signature: &Signature,
        arguments: usize,
        results: usize,
        span: Span,
        callee: Option<Span>,
    ) -> bool {
        let optional_last = signature.params.last().is_some_and(|p| p.dims.first() == Some(&0));
        let wanted = signature.params.len();
        let fit = arguments == wanted || (optional_last && arguments + 1 == wanted);
        let mut parts = Vec::new();
        if !fit {
            parts.push(counted(arguments, wanted, "argument"));
        }
        if results != signature.returns.len() {
            parts.push(counted(results, signature.returns.len(), "result"));
        }
        if parts.is_empty() {
            return true;
        }
        let mut diagnostic =
            Diagnostic::new(Code::SignatureMismatch, span, parts.join(", and ")).with_section("9.7.11.5");
        if let Some(callee) = callee {
            diagnostic = diagnostic.with_related(callee, "the function");
        }
        self.checker.report.push(diagnostic);
        false
    }

    /// Compares arguments or results with parameters, and sets the bits of constants. The counts must match.
    pub(super) fn fit(
        &mut self,
        dir: Dir,
        params: &[Param],
        actuals: &mut [Operand],
        written: &[Written<'_>],
        callee: Option<Span>,
    ) -> bool {
        let what = if dir == Dir::In { "argument" } else { "result" };
        let mut ok = true;
        for ((param, actual), written) in params.iter().zip(actuals).zip(written) {
            if let Err(have) = self.fit_one(param, actual, written) {
                ok = false;
                let Some(have) = have else { continue };
                let mut diagnostic = Diagnostic::new(
                    Code::SignatureMismatch,
                    written.span,
                    format!("this {what} is {have}, but the function has `{}`", param_text(param)),
                )
                .with_section("7.1");
                if callee.is_some() {
                    diagnostic = diagnostic.with_related(param.span, "the parameter");
                }
                self.checker.report.push(diagnostic);
            }
        }
        ok
    }

    /// Whether an argument matches a parameter. The error describes the argument; it is empty after a
    /// diagnostic.
    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    fn fit_one(
        &mut self,
        param: &Param,
        actual: &mut Operand,
        written: &Written<'_>,
    ) -> Result<(), Option<String>> {
        match actual {
            Operand::Imm(bits) => {
                let WrittenKind::Const(value) = &written.kind else { return Ok(()) };
                if !param.dims.is_empty() || param.vector > 1 {
                    return Err(Some("a constant".to_owned()));
                }
                *bits = immediate::convert(self.checker, param.ty, *value, written.span).ok_or(None)?;
                Ok(())
            }
            Operand::Register(id) => {
                let register = self.register(*id);
                let same = param.dims.is_empty()
                    && register.vector == param.vector
                    && accepts_argument(param, register.ty);
                if same {
                    return Ok(());
                }
                let vector =
                    if register.vector > 1 { format!(".v{} ", register.vector) } else { String::new() };
                Err(Some(format!("a `{vector}.{}` register", register.ty.name())))
            }
            Operand::Element(id, _) => {
                let register = self.register(*id);
                if param.dims.is_empty() && param.vector == 1 && accepts_argument(param, register.ty) {
                    return Ok(());
                }
                Err(Some(format!("a `.{}` register", register.ty.name())))
            }
            Operand::Vector(list) => {
                let types: Vec<Option<Ty>> = list.iter().map(|o| self.scalar_type(o)).collect();
                let fit = types.iter().all(|ty| ty.is_none_or(|ty| accepts_argument(param, ty)));
                let constants = list.iter().any(|o| matches!(o, Operand::Imm(_)));
                if fit && !constants && param.dims.is_empty() && usize::from(param.vector) == list.len() {
                    return Ok(());
                }
                Err(Some(format!("a vector of {} elements", list.len())))
            }
            Operand::ParamVar(id) => {
                let local = self.local(*id);
                let unsized_ = param.dims.first() == Some(&0);
                let size = local.bytes == param.bytes || unsized_;
                let kind = if param.dims.is_empty() && local.dims.is_empty() {
                    local.vector == param.vector && accepts(param.ty, local.ty, Width::Equal)
                } else {
                    // Arrays are bytes: only sizes and alignments matter.
                    size && local.align >= param.align
                };
                let role = matches!(
                    local.role,
                    LocalRole::CallParam
                        | LocalRole::Input(_)
                        | LocalRole::KernelParam(_)
                        | LocalRole::Return(_)
                );
                if size && kind && role {
                    return Ok(());
                }
                let dims: String = local.dims.iter().map(|d| format!("[{d}]")).collect();
                Err(Some(format!("`.param .align {} .{}{dims}`", local.align, local.ty.name())))
            }
            Operand::Sink => Ok(()),
            _ => Err(None),
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "kinds that are not listed are refused")]
    fn scalar_type(&self, operand: &Operand) -> Option<Ty> {
        match operand {
            Operand::Register(id) | Operand::Element(id, _) => Some(self.register(*id).ty),
            _ => None,
        }
    }
}

/// `expected 2 arguments, found 1`
fn counted(have: usize, wanted: usize, what: &str) -> String {
    let plural = if wanted == 1 { "" } else { "s" };
    format!("expected {wanted} {what}{plural}, found {have}")
}

/// Whether a register of that type can be passed for a parameter: the sizes are equal and the types are
/// compatible.
fn accepts_argument(param: &Param, ty: Ty) -> bool {
    accepts(param.ty, ty, Width::Equal) || accepts(ty, param.ty, Width::Equal)
}
