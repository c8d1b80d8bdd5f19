//! Names: their meaning and visibility. PTX ISA §4.4, §5.4.6.
//!
//! Invariant: a name has one meaning per scope; inner scopes hide outer ones. A parameterised name
//! (`%r<100>`) is kept as prefix and count, and its members are created on first use, so that memory depends
//! on the text and not on its numbers.
//!
//! All scopes share one table from a name to its innermost meaning, with a chain of the hidden meanings.
//! Closing a scope leaves its meanings in the table; their serial number shows that they are dead, and the
//! next declaration of the name replaces them. So a look-up takes one step at any nesting, and opening and
//! closing a scope costs nothing.

use super::module::{FuncId, LabelId, LocalId, ProtoId, RegisterId, VarId};
use crate::Span;
use crate::isa::Ty;
use foldhash::fast::RandomState;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entity {
    /// A register of the body.
    Register(RegisterId),
    /// A `.local` or `.param` variable of the body.
    Local(LocalId),
    /// A variable that is laid out once.
    Var(VarId),
    /// A register of module scope (PTX before 3.0), by index.
    ModuleRegister(u32),
    /// A `.local` variable of module scope (PTX before 3.0), by index.
    ModuleLocal(u32),
    /// A function or kernel.
    Func(FuncId),
    /// A label.
    Label(LabelId),
    /// The label of a `.callprototype`.
    Prototype(ProtoId),
    /// The label of a `.calltargets`.
    CallTargets(u32),
    /// The label of a `.branchtargets`.
    BranchTargets(u32),
    /// The label of a `.branchtargets` with labels that do not exist, by index of those.
    UnusableTargets(u32),
    /// Declared with an error that was reported.
    Broken,
}

impl Entity {
    /// The noun for messages.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Entity::Register(_) | Entity::ModuleRegister(_) => "a register",
            Entity::Local(_) | Entity::Var(_) | Entity::ModuleLocal(_) => "a variable",
            Entity::Func(_) => "a function",
            Entity::Label(_) => "a label",
            Entity::Prototype(_) => "a call prototype",
            Entity::CallTargets(_) => "a list of call targets",
            Entity::BranchTargets(_) | Entity::UnusableTargets(_) => "a list of branch targets",
            Entity::Broken => "something",
        }
    }
}

/// Members of a parameterised register name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    /// Type of each.
    pub(super) ty: Ty,
    /// Elements of each.
    pub(super) vector: u8,
    /// How many.
    pub(super) count: u64,
    /// The place of the declaration.
    pub(super) span: Span,
}

/// The result of a look-up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// Declared, at that place.
    Entity(Entity, Span),
    /// A member, not used so far, of a family in the scope of that depth.
    Member(Family, usize),
}

/// A meaning of a name.
#[derive(Clone, Copy, Debug)]
struct Meaning {
    entity: Entity,
    span: Span,
    /// Its scope: the number of enclosing scopes, and its serial number.
    depth: u32,
    serial: u32,
    /// The meaning that it hides: index in [`Scopes::hidden`].
    hides: Option<u32>,
}

#[derive(Debug, Default)]
struct Level<'a> {
    /// Its serial number.
    serial: u32,
    families: HashMap<&'a str, Family, RandomState>,
    /// Prefixes of families whose declaration has an error.
    broken: HashSet<&'a str, RandomState>,
    /// Prefixes of declared names that end in digits, with the smallest number and its place.
    numbered: HashMap<&'a str, (u64, Span), RandomState>,
    /// The number of elements of `order` that are in `numbered`.
    counted: usize,
    /// Declared names in their order.
    order: Vec<(&'a str, Span)>,
}

/// A stack of scopes.
#[derive(Debug)]
pub(super) struct Scopes<'a> {
    /// The innermost meaning of each name.
    names: HashMap<Cow<'a, str>, Meaning, RandomState>,
    /// Hidden meanings.
    hidden: Vec<Meaning>,
    levels: Vec<Level<'a>>,
    /// The number of scopes opened so far.
    opened: u32,
}

impl<'a> Scopes<'a> {
    /// Starts with the module's scope.
    pub(super) fn new() -> Self {
        Self { names: HashMap::default(), hidden: Vec::new(), levels: vec![Level::default()], opened: 1 }
    }

    /// Opens an inner scope.
    pub(super) fn open(&mut self) {
        self.levels.push(Level { serial: self.opened, ..Level::default() });
        self.opened += 1;
    }

    /// Closes the innermost scope.
    pub(super) fn close(&mut self) {
        self.levels.pop();
    }

    /// How many scopes are open.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    fn innermost(&self, name: &str) -> Option<Meaning> {
        self.names.get(name).and_then(|meaning| living(&self.levels, &self.hidden, *meaning))
    }

    /// The meaning of a name in exactly the scope of that depth.
    fn meaning_at(&self, name: &str, depth: usize) -> Option<Meaning> {
        let mut meaning = self.innermost(name)?;
        while meaning.depth as usize > depth {
            let outer = *self.hidden.get(meaning.hides? as usize)?;
            meaning = living(&self.levels, &self.hidden, outer)?;
        }
        (meaning.depth as usize == depth).then_some(meaning)
    }

    /// Sets the meaning of a name in the scope of that depth. No inner scope may have the name.
    fn mean(&mut self, name: Cow<'a, str>, entity: Entity, span: Span, depth: usize) {
        let Some(serial) = self.levels.get(depth).map(|level| level.serial) else { return };
        let mut new = Meaning { entity, span, depth: depth as u32, serial, hides: None };
        match self.names.get_mut(&*name) {
            Some(place) => {
                if let Some(hidden) = living(&self.levels, &self.hidden, *place) {
                    self.hidden.push(hidden);
                    new.hides = Some(self.hidden.len() as u32 - 1);
                }
                *place = new;
            }
            None => {
                self.names.insert(name, new);
            }
        }
    }

    /// The place of the declaration of a name in the innermost scope.
    fn declared(&self, name: &str) -> Option<Span> {
        let depth = self.levels.len() - 1;
        let meaning = self.meaning_at(name, depth).map(|meaning| meaning.span);
        meaning.or_else(|| self.levels[depth].member(name).map(|family| family.span))
    }

    /// Declares a name in the innermost scope.
    ///
    /// # Errors
    /// The place of the earlier declaration in the same scope.
    pub(super) fn declare(&mut self, name: &'a str, entity: Entity, span: Span) -> Result<(), Span> {
        if let Some(earlier) = self.declared(name) {
            return Err(earlier);
        }
        let depth = self.levels.len() - 1;
        self.levels[depth].order.push((name, span));
        self.mean(Cow::Borrowed(name), entity, span, depth);
        Ok(())
    }

    /// Declares `prefix<count>` in the innermost scope.
    ///
    /// # Errors
    /// The place of an earlier declaration of one of the names in the same scope.
    pub(super) fn declare_family(&mut self, prefix: &'a str, family: Family) -> Result<(), Span> {
        let depth = self.levels.len() - 1;
        let level = &mut self.levels[depth];
        if let Some(earlier) = level.families.get(prefix) {
            return Err(earlier.span);
        }
        level.count();
        if let Some((_, span)) = level.numbered.get(prefix).filter(|(least, _)| *least < family.count) {
            return Err(*span);
        }
        level.families.insert(prefix, family);
        Ok(())
    }

    /// Declares a used member of a family, in the scope of that depth.
    pub(super) fn add_member(&mut self, name: &'a str, register: RegisterId, depth: usize, span: Span) {
        self.mean(Cow::Borrowed(name), Entity::Register(register), span, depth);
    }

    /// Declares a name that does not occur in the text: a member of a family of variables.
    ///
    /// # Errors
    /// The place of the earlier declaration in the same scope.
    pub(super) fn declare_owned(&mut self, name: String, entity: Entity, span: Span) -> Result<(), Span> {
        if let Some(earlier) = self.declared(&name) {
            return Err(earlier);
        }
        self.mean(Cow::Owned(name), entity, span, self.levels.len() - 1);
        Ok(())
    }

    /// Records that a name is declared both as a label and otherwise, so that its uses are not reported.
    pub(super) fn break_label(&mut self, name: &str) {
        if let Some(meaning) = self.names.get_mut(name).filter(|m| matches!(m.entity, Entity::Label(_))) {
            meaning.entity = Entity::Broken;
        }
    }

    /// Records that a family with that prefix has an erroneous declaration, so that uses of its members are
    /// not reported.
    pub(super) fn break_family(&mut self, prefix: &'a str) {
        let depth = self.levels.len() - 1;
        self.levels[depth].broken.insert(prefix);
    }

    /// The meaning of a name in the current scope.
    pub(super) fn find(&self, name: &str) -> Option<Found> {
        let meaning = self.innermost(name);
        let inner = meaning.map_or(0, |meaning| meaning.depth as usize + 1);
        for (depth, level) in self.levels.iter().enumerate().skip(inner).rev() {
            if let Some(family) = level.member(name) {
                return Some(Found::Member(family, depth));
            }
            if level.breaks(name) {
                return Some(Found::Entity(Entity::Broken, Span::default()));
            }
        }
        meaning.map(|meaning| Found::Entity(meaning.entity, meaning.span))
    }

    /// The family whose prefix a name has without having its number: `%r9` for `%r<4>`.
    pub(super) fn family_of<'n>(&self, name: &'n str) -> Option<(&'n str, Family)> {
        numbered_prefixes(name).find_map(|(prefix, _)| {
            let family = self.levels.iter().rev().find_map(|level| level.families.get(prefix))?;
            Some((prefix, *family))
        })
    }

    /// The family of that prefix.
    pub(super) fn family(&self, prefix: &str) -> Option<Family> {
        self.levels.iter().rev().find_map(|level| level.families.get(prefix)).copied()
    }

    /// Visible families with their prefixes, innermost first and sorted, at most `limit` per scope.
    pub(super) fn families(&self, limit: usize) -> impl Iterator<Item = (&'a str, Family)> + '_ {
        self.levels.iter().rev().flat_map(move |level| {
            let few = level.families.len() <= limit;
            let all = level.families.iter().filter(move |_| few);
            let mut sorted: Vec<_> = all.map(|(prefix, family)| (*prefix, *family)).collect();
            sorted.sort_unstable_by_key(|(prefix, _)| *prefix);
            sorted
        })
    }

    /// The declaration of a name at module scope.
    pub(super) fn find_global(&self, name: &str) -> Option<(Entity, Span)> {
        self.meaning_at(name, 0).map(|meaning| (meaning.entity, meaning.span))
    }

    /// Visible names, innermost first, at most `limit`.
    pub(super) fn visible(&self, limit: usize) -> impl Iterator<Item = &'a str> + '_ {
        self.levels.iter().rev().flat_map(|level| level.order.iter().map(|(name, _)| *name)).take(limit)
    }
}

/// The innermost live meaning, beginning with this one.
fn living(levels: &[Level<'_>], hidden: &[Meaning], mut meaning: Meaning) -> Option<Meaning> {
    loop {
        if levels.get(meaning.depth as usize).is_some_and(|level| level.serial == meaning.serial) {
            return Some(meaning);
        }
        meaning = *hidden.get(meaning.hides? as usize)?;
    }
}

impl<'a> Level<'a> {
    fn member(&self, name: &str) -> Option<Family> {
        if self.families.is_empty() {
            return None;
        }
        numbered_prefixes(name)
            .find_map(|(prefix, number)| self.families.get(prefix).filter(|f| number < f.count).copied())
    }

    /// Whether the name is a member of a family whose declaration has an error.
    fn breaks(&self, name: &str) -> bool {
        !self.broken.is_empty() && numbered_prefixes(name).any(|(prefix, _)| self.broken.contains(prefix))
    }

    /// Updates `numbered`, which only declarations of families need.
    fn count(&mut self) {
        for (name, span) in self.order.iter().skip(self.counted) {
            for (prefix, number) in numbered_prefixes(name) {
                let least = self.numbered.entry(prefix).or_insert((number, *span));
                if number < least.0 {
                    *least = (number, *span);
                }
            }
        }
        self.counted = self.order.len();
    }
}

/// The splits of a name into a prefix and a decimal number without leading zeros.
fn numbered_prefixes(name: &str) -> impl Iterator<Item = (&str, u64)> {
    let digits = name.bytes().rev().take(19).take_while(u8::is_ascii_digit).count();
    (1..=digits).filter_map(move |n| {
        let (prefix, number) = name.split_at(name.len() - n);
        if prefix.is_empty() || (n > 1 && number.starts_with('0')) {
            return None;
        }
        number.parse().ok().map(|value| (prefix, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(count: u64) -> Family {
        Family { ty: Ty::B32, vector: 1, count, span: Span::new(0, 1) }
    }

    #[test]
    fn members_of_a_family_are_found_within_the_count() {
        let mut scopes = Scopes::new();
        scopes.declare_family("%r", family(10)).unwrap();
        assert!(matches!(scopes.find("%r9"), Some(Found::Member(_, 0))));
        assert!(scopes.find("%r10").is_none());
        assert!(scopes.find("%r09").is_none());
        assert!(scopes.find("%r").is_none());
    }

    #[test]
    fn a_prefix_may_end_in_digits() {
        let mut scopes = Scopes::new();
        scopes.declare_family("x1", family(3)).unwrap();
        assert!(matches!(scopes.find("x12"), Some(Found::Member(_, 0))));
        assert!(scopes.find("x13").is_none());
    }

    #[test]
    fn a_family_and_a_name_collide_in_both_orders() {
        let (mut a, mut b) = (Scopes::new(), Scopes::new());
        a.declare_family("r", family(4)).unwrap();
        assert!(a.declare("r3", Entity::Broken, Span::new(5, 6)).is_err());
        assert!(a.declare("r4", Entity::Broken, Span::new(5, 6)).is_ok());
        b.declare("r3", Entity::Broken, Span::new(5, 6)).unwrap();
        assert_eq!(b.declare_family("r", family(4)), Err(Span::new(5, 6)));
        assert_eq!(b.declare_family("r", family(3)), Ok(()));
    }

    #[test]
    fn inner_scopes_hide_outer_ones() {
        let mut scopes = Scopes::new();
        scopes.declare("x", Entity::Var(VarId(1)), Span::new(0, 1)).unwrap();
        scopes.open();
        scopes.declare("x", Entity::Local(LocalId(2)), Span::new(2, 3)).unwrap();
        assert!(matches!(scopes.find("x"), Some(Found::Entity(Entity::Local(_), _))));
        scopes.close();
        assert!(matches!(scopes.find("x"), Some(Found::Entity(Entity::Var(_), _))));
    }
}
