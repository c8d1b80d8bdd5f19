//! Names: what a name stands for, and where it can be seen. PTX ISA §4.4, §5.4.6.
//!
//! Invariant: a name has one meaning per scope; inner scopes hide outer ones. A parameterised name (`%r<100>`) is kept as
//! prefix and count, and its members come into being when they are used, so that memory follows the text and not its
//! numbers.

use super::module::{FuncId, LabelId, LocalId, ProtoId, RegisterId, VarId};
use crate::Span;
use crate::isa::Ty;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// What a name stands for.
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
    /// Declared, but with an error that has been reported.
    Broken,
}

impl Entity {
    /// What to call it in a message.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Entity::Register(_) | Entity::ModuleRegister(_) => "a register",
            Entity::Local(_) | Entity::Var(_) | Entity::ModuleLocal(_) => "a variable",
            Entity::Func(_) => "a function",
            Entity::Label(_) => "a label",
            Entity::Prototype(_) => "a call prototype",
            Entity::CallTargets(_) => "a list of call targets",
            Entity::BranchTargets(_) => "a list of branch targets",
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
    /// Where it is declared.
    pub(super) span: Span,
}

/// What looking up a name gives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// Declared, at that place.
    Entity(Entity, Span),
    /// The member of a family of the scope with that depth, not used so far.
    Member(Family, usize),
}

#[derive(Debug, Default)]
struct Level<'a> {
    names: HashMap<Cow<'a, str>, (Entity, Span)>,
    families: HashMap<&'a str, Family>,
    /// Prefixes of families whose declaration has an error.
    broken: HashSet<&'a str>,
    /// Prefixes of declared names that end in digits, with the least number and its place.
    numbered: HashMap<&'a str, (u64, Span)>,
    /// For suggestions, in the order of declaration.
    order: Vec<&'a str>,
}

/// A stack of scopes.
#[derive(Debug)]
pub(super) struct Scopes<'a> {
    levels: Vec<Level<'a>>,
}

impl<'a> Scopes<'a> {
    /// The module's scope alone.
    pub(super) fn new() -> Self {
        Self { levels: vec![Level::default()] }
    }

    /// Opens an inner scope.
    pub(super) fn open(&mut self) {
        self.levels.push(Level::default());
    }

    /// Closes the innermost scope.
    pub(super) fn close(&mut self) {
        self.levels.pop();
    }

    /// How many scopes are open.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Declares a name in the innermost scope.
    ///
    /// # Errors
    /// The place of the earlier declaration in the same scope.
    pub(super) fn declare(&mut self, name: &'a str, entity: Entity, span: Span) -> Result<(), Span> {
        let depth = self.levels.len() - 1;
        if let Some(earlier) = self.levels[depth].declared(name) {
            return Err(earlier);
        }
        let level = &mut self.levels[depth];
        level.names.insert(Cow::Borrowed(name), (entity, span));
        level.order.push(name);
        for (prefix, number) in numbered_prefixes(name) {
            let least = level.numbered.entry(prefix).or_insert((number, span));
            if number < least.0 {
                *least = (number, span);
            }
        }
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
        if let Some((_, span)) = level.numbered.get(prefix).filter(|(least, _)| *least < family.count) {
            return Err(*span);
        }
        level.families.insert(prefix, family);
        Ok(())
    }

    /// Puts a used member of a family beside it, in the scope of that depth.
    pub(super) fn add_member(&mut self, name: &'a str, register: RegisterId, depth: usize, span: Span) {
        if let Some(level) = self.levels.get_mut(depth) {
            level.names.insert(Cow::Borrowed(name), (Entity::Register(register), span));
        }
    }

    /// Declares a name that is not spelled out in the text: a member of a family of variables.
    ///
    /// # Errors
    /// The place of the earlier declaration in the same scope.
    pub(super) fn declare_owned(&mut self, name: String, entity: Entity, span: Span) -> Result<(), Span> {
        let depth = self.levels.len() - 1;
        if let Some(earlier) = self.levels[depth].declared(&name) {
            return Err(earlier);
        }
        self.levels[depth].names.insert(Cow::Owned(name), (entity, span));
        Ok(())
    }

    /// Notes that a family of that prefix is declared, but with an error: uses of its members say nothing more.
    pub(super) fn break_family(&mut self, prefix: &'a str) {
        let depth = self.levels.len() - 1;
        self.levels[depth].broken.insert(prefix);
    }

    /// What a name stands for here.
    pub(super) fn find(&self, name: &str) -> Option<Found> {
        for (depth, level) in self.levels.iter().enumerate().rev() {
            if let Some((entity, span)) = level.names.get(name) {
                return Some(Found::Entity(*entity, *span));
            }
            if let Some(family) = level.member(name) {
                return Some(Found::Member(family, depth));
            }
            if !level.broken.is_empty()
                && numbered_prefixes(name).any(|(prefix, _)| level.broken.contains(prefix))
            {
                return Some(Found::Entity(Entity::Broken, Span::default()));
            }
        }
        None
    }

    /// The family whose prefix a name has, though not its number: `%r9` where there is `%r<4>`.
    pub(super) fn family_of<'n>(&self, name: &'n str) -> Option<(&'n str, Family)> {
        numbered_prefixes(name).find_map(|(prefix, _)| {
            let family = self.levels.iter().rev().find_map(|level| level.families.get(prefix))?;
            Some((prefix, *family))
        })
    }

    /// The declaration of a name at module scope.
    pub(super) fn find_global(&self, name: &str) -> Option<(Entity, Span)> {
        self.levels.first().and_then(|level| level.names.get(name)).copied()
    }

    /// Names in sight, innermost first, at most `limit`.
    pub(super) fn visible(&self, limit: usize) -> impl Iterator<Item = &'a str> + '_ {
        self.levels.iter().rev().flat_map(|level| level.order.iter().copied()).take(limit)
    }
}

impl<'a> Level<'a> {
    fn declared(&self, name: &str) -> Option<Span> {
        self.names.get(name).map(|(_, span)| *span).or_else(|| self.member(name).map(|family| family.span))
    }

    fn member(&self, name: &str) -> Option<Family> {
        if self.families.is_empty() {
            return None;
        }
        numbered_prefixes(name)
            .find_map(|(prefix, number)| self.families.get(prefix).filter(|f| number < f.count).copied())
    }
}

/// The ways to read a name as a prefix and a decimal number without leading zeros.
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

/// The candidate that a misspelled word most probably means.
pub(super) fn closest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let limit = (word.len() / 3).clamp(1, 3);
    if word.len() > 64 {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates.filter(|c| c.len() <= 64 && c.len().abs_diff(word.len()) <= limit) {
        let distance = edit_distance(word.as_bytes(), candidate.as_bytes());
        if distance <= limit && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that make one word of the other.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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

    #[test]
    fn suggestions_are_near() {
        assert_eq!(closest("%r1o", ["%r10", "%f1"].into_iter()), Some("%r10"));
        assert_eq!(closest("smeme", ["smem", "x"].into_iter()), Some("smem"));
        assert_eq!(closest("abc", ["xyz"].into_iter()), None);
    }
}
