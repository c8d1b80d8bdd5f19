//! Suggestions for undeclared names. PTX ISA §5.4.
//!
//! Invariant: a suggestion is a name that is allowed at that place: a label for a branch, a predicate for a
//! guard, a register of a suitable type for an operand. The time per module is bounded by the number of
//! suggestions and of compared names.

use super::checker::Checker;
use super::module::{Register, RegisterId};
use super::scope::{Entity, Family, Found};
use super::types::{Width, accepts};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Ty, TyKind};
use crate::spelling;
use crate::syntax::tree::Name;

/// The number of names that a suggestion is chosen from, and the number of suggestions per module. The limits
/// keep the time linear for modules full of mistakes.
const SUGGESTION_NAMES: usize = 4096;
const SUGGESTIONS: u32 = 64;

/// The kinds of names that are allowed at a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// A register, variable or function.
    Value,
    /// A register of a suitable type.
    Register(Ty, Width),
    /// A variable, or a register that can hold an address.
    Address,
    /// A label.
    Label,
    /// A function.
    Function,
}

impl Wanted {
    /// Whether a register of that type is allowed.
    fn takes_register(self, have: Ty) -> bool {
        match self {
            Wanted::Value => true,
            Wanted::Register(ty, width) => accepts(ty, have, width),
            Wanted::Address => matches!(have.bits(), 32 | 64) && have.kind() != TyKind::Float,
            Wanted::Label | Wanted::Function => false,
        }
    }

    /// Whether the declared entity is allowed; `registers` are those of the body.
    fn takes(self, entity: Entity, registers: &[Register]) -> bool {
        let ty = |id: RegisterId| registers.get(id.0 as usize).map(|register| register.ty);
        match entity {
            Entity::Register(id) => ty(id).is_some_and(|ty| self.takes_register(ty)),
            Entity::Local(_) | Entity::Var(_) | Entity::ModuleLocal(_) => {
                matches!(self, Wanted::Value | Wanted::Address)
            }
            Entity::ModuleRegister(_) => !matches!(self, Wanted::Label | Wanted::Function),
            Entity::Func(_) => matches!(self, Wanted::Value | Wanted::Function),
            Entity::Label(_) => matches!(self, Wanted::Label),
            Entity::Prototype(_)
            | Entity::CallTargets(_)
            | Entity::BranchTargets(_)
            | Entity::UnusableTargets(_)
            | Entity::Broken => false,
        }
    }
}

impl<'a> Checker<'a> {
    /// Reports an undeclared name, once per function.
    pub(super) fn undeclared(&mut self, name: Name, wanted: Wanted, registers: &[Register]) {
        let text = name.text(self.text);
        if let Some(since) = crate::isa::sreg::later(text) {
            if !self.gate(&since, name.span, &format!("`{text}`"), "10") {
                return;
            }
            let mut diagnostic = Diagnostic::new(
                Code::NotImplemented,
                name.span,
                format!("ptxvm does not implement `{text}`"),
            );
            if let Some(version) = since.ptx {
                diagnostic =
                    diagnostic.with_label(crate::isa::later::introduced(version, since.sm.into_iter()));
            }
            self.report.push(diagnostic);
            return;
        }
        if crate::isa::Sreg::from_name(text).is_some() {
            let message = format!("`{text}` is a special register, which only `mov` and `cvt` read");
            self.report.push(Diagnostic::new(Code::BadRegisterUse, name.span, message).with_section("5.1.2"));
            return;
        }
        self.missing(Code::Undeclared, name.span, text, "is not declared", "5.4", wanted, registers);
    }

    /// Reports an undeclared function, once per function.
    pub(super) fn undeclared_function(&mut self, name: Name) {
        self.missing(
            Code::UndeclaredFunction,
            name.span,
            name.text(self.text),
            "is not declared before it is used",
            "7.1",
            Wanted::Function,
            &[],
        );
    }

    /// Reports an undefined label, once per function.
    pub(super) fn undefined_label(&mut self, text: &str, span: Span) {
        let says = "is not a label in scope";
        self.missing(Code::UndefinedLabel, span, text, says, "4.3", Wanted::Label, &[]);
    }

    /// Whether the limit allows another suggestion.
    pub(super) fn may_suggest(&mut self) -> bool {
        self.suggestions = self.suggestions.saturating_add(1);
        self.suggestions <= SUGGESTIONS
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one diagnostic")]
    fn missing(
        &mut self,
        code: Code,
        span: Span,
        name: &str,
        says: &str,
        section: &'static str,
        wanted: Wanted,
        registers: &[Register],
    ) {
        if !self.undeclared.insert(name.to_owned()) {
            return;
        }
        let mut diagnostic = Diagnostic::new(code, span, format!("`{name}` {says}")).with_section(section);
        let family = self.scopes.family_of(name).or_else(|| self.scopes.family(name).map(|f| (name, f)));
        if let Some((prefix, family)) = family.filter(|(_, f)| f.count > 0 && wanted.takes_register(f.ty)) {
            let (count, last) = (family.count, family.count - 1);
            diagnostic = diagnostic
                .with_help(format!("`{prefix}<{count}>` declares `{prefix}0` to `{prefix}{last}`"))
                .with_related(family.span, "declared here");
        } else if self.may_suggest()
            && let Some(near) = self.meant(name, wanted, registers)
        {
            diagnostic = diagnostic.with_help(format!("did you mean `{near}`?"));
        }
        self.report.push(diagnostic);
    }

    /// Of the names that are allowed there, the nearest to `name`.
    fn meant(&self, name: &str, wanted: Wanted, registers: &[Register]) -> Option<String> {
        let fits = |name: &&str| match self.scopes.find(name) {
            Some(Found::Entity(entity, _)) => wanted.takes(entity, registers),
            Some(Found::Member(family, _)) => wanted.takes_register(family.ty),
            None => false,
        };
        if let Some(near) = spelling::closest(name, self.scopes.visible(SUGGESTION_NAMES).filter(fits)) {
            return Some(near.to_owned());
        }
        // A member of a family: the prefix is misspelled, and the family has the number.
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (prefix, number) = name.split_at(name.len() - digits);
        let index: u64 = number.parse().ok()?;
        let has = |family: &Family| index < family.count && wanted.takes_register(family.ty);
        let families = self.scopes.families(SUGGESTION_NAMES).filter(|(_, family)| has(family));
        let near = spelling::closest(prefix, families.map(|(prefix, _)| prefix))?;
        Some(format!("{near}{index}"))
    }
}
