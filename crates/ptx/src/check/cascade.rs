//! Removes diagnostics that are likely consequences of other mistakes: a name whose declaration has a syntax
//! error, a label after a brace that closes too early, an instruction of which half is missing.
//!
//! The checker suppresses many consequences itself ([`Entity::Broken`](super::scope::Entity::Broken)). This
//! pass handles those that are visible only when all mistakes are known, or from places in the text instead
//! of the tree. It runs only if there are errors, in time linear in the text.
//!
//! Invariant: the cause of a removed diagnostic is kept, so a text with errors keeps at least one. Warnings
//! are kept.

use crate::Span;
use crate::diag::{Code, Diagnostic, Severity};
use crate::syntax::lexer;
use crate::syntax::token::{Token, TokenKind};
use std::collections::{HashMap, HashSet};

/// The diagnostics without consequences of others; both lists are in the order of the text.
pub(super) fn without_consequences(text: &str, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let errors = found.iter().filter(|d| d.severity == Severity::Error).count();
    if errors < 2 {
        return found;
    }
    let statements = Statements::of(text);
    let left = within_statements(&statements, found);
    let broken = Broken::of(&statements, &left);
    let cut = left.iter().any(|d| is_structural(d, text));
    let swallowed = left.iter().any(|d| d.code == Code::UnterminatedComment);
    let misspelt = |d: &Diagnostic| {
        d.code == Code::UnknownDirective
            && crate::spelling::closest(d.span.text(text), [".target"].into_iter()).is_some()
    };
    let target = left.iter().any(misspelt);
    #[allow(clippy::wildcard_enum_match_arm, reason = "codes that are not listed are never consequences")]
    let follows = |d: &Diagnostic| match d.code {
        Code::MissingTarget => target,
        Code::Undeclared | Code::UndeclaredFunction => broken.explains(d.span, &statements),
        Code::UndefinedLabel => {
            swallowed || broken.used.contains(d.span.text(text)) || (cut && statements.defines_later(d.span))
        }
        _ => false,
    };
    left.into_iter().filter(|d| d.severity == Severity::Warning || !follows(d)).collect()
}

/// The tokens of a text, and the places of constructs.
struct Statements<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// The first token of each statement, ascending.
    starts: Vec<usize>,
    /// The starts of functions and kernels, ascending.
    functions: Vec<u32>,
    /// The definitions of each label, ascending.
    labels: HashMap<&'a str, Vec<u32>>,
}

impl<'a> Statements<'a> {
    fn of(text: &'a str) -> Self {
        let tokens = lexer::lex_seen(text).tokens;
        let mut starts = vec![0];
        for at in 1..tokens.len() {
            let ended = matches!(
                tokens[at - 1].kind,
                TokenKind::Semicolon | TokenKind::LBrace | TokenKind::RBrace | TokenKind::UnterminatedStr
            );
            if ended || begins_by_its_line(&tokens, at, text) {
                starts.push(at);
            }
        }
        let begins = |token: &&Token| matches!(token.span.text(text), ".entry" | ".func");
        let functions = tokens.iter().filter(begins).map(|token| token.span.start).collect();
        let mut labels: HashMap<&str, Vec<u32>> = HashMap::new();
        for pair in tokens.windows(2) {
            if (pair[0].kind, pair[1].kind) == (TokenKind::Ident, TokenKind::Colon) {
                labels.entry(pair[0].span.text(text)).or_default().push(pair[0].span.start);
            }
        }
        Self { text, tokens, starts, functions, labels }
    }

    /// The number of the statement that contains a place.
    fn number(&self, at: u32) -> usize {
        let token = self.tokens.partition_point(|token| token.span.start <= at).saturating_sub(1);
        self.starts.partition_point(|start| *start <= token).saturating_sub(1)
    }

    fn tokens_of(&self, number: usize) -> &[Token] {
        let end = self.starts.get(number + 1).copied().unwrap_or(self.tokens.len());
        self.tokens.get(self.starts[number]..end).unwrap_or(&[])
    }

    fn names(&self, number: usize) -> impl Iterator<Item = &'a str> + '_ {
        let names = self.tokens_of(number).iter().filter(|token| token.kind == TokenKind::Ident);
        names.map(|token| token.span.text(self.text))
    }

    fn word(&self, token: &Token) -> &'a str {
        token.span.text(self.text)
    }

    /// The number of the function that contains or precedes a place.
    fn function(&self, at: u32) -> usize {
        self.functions.partition_point(|start| *start <= at)
    }

    /// Whether the label named at `name` is defined after that place and before the next function.
    fn defines_later(&self, name: Span) -> bool {
        let places = self.labels.get(name.text(self.text)).map_or(&[][..], Vec::as_slice);
        let next = places.get(places.partition_point(|place| *place <= name.start));
        next.is_some_and(|next| self.function(*next) == self.function(name.start))
    }
}

/// Whether a token begins a statement although the previous one has not ended: an instruction, a guard or a
/// directive at the start of a line. Parameters can be on separate lines.
fn begins_by_its_line(tokens: &[Token], at: usize, text: &str) -> bool {
    let token = &tokens[at];
    if !token.first_on_line {
        return false;
    }
    let instruction = || tokens.get(at + 1).is_some_and(|next| next.kind == TokenKind::DotWord);
    token.kind == TokenKind::At
        || (token.kind == TokenKind::Ident && instruction())
        || (token.kind == TokenKind::DotWord && !matches!(token.span.text(text), ".param" | ".reg"))
}

/// Keeps one syntax error per statement.
fn within_statements(statements: &Statements<'_>, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let place = |d: &Diagnostic| statements.number(d.span.start);
    let errors = || found.iter().filter(|d| d.severity == Severity::Error);
    let unread: HashSet<usize> = errors().filter(|d| d.code.number() < 100).map(place).collect();
    let unknown: HashSet<usize> =
        errors().filter(|d| d.code == Code::UnknownInstruction).map(place).collect();
    let lexical: HashSet<u32> = errors().filter(|d| is_lexical(d.code)).map(|d| d.span.start).collect();
    // `@ bra L;`: the instruction is parsed as the guard.
    let guard = |d: &Diagnostic| {
        d.code == Code::Undeclared && !crate::isa::rows_of(d.span.text(statements.text)).is_empty()
    };
    let guards: HashSet<usize> = errors().filter(|d| guard(d)).map(place).collect();
    #[allow(clippy::wildcard_enum_match_arm, reason = "codes that are not listed are never consequences")]
    let follows = |d: &Diagnostic| match d.code {
        Code::UnexpectedToken | Code::MissingSemicolon => {
            unknown.contains(&place(d)) || lexical.contains(&d.span.start)
        }
        Code::NoSuchForm | Code::WrongOperandCount | Code::WrongOperandKind | Code::BadInitializer => {
            unread.contains(&place(d)) && !unknown.contains(&place(d))
        }
        Code::UnknownInstruction => guards.contains(&place(d)),
        _ => false,
    };
    let stays: Vec<bool> = found.iter().map(|d| d.severity == Severity::Warning || !follows(d)).collect();
    found.into_iter().zip(stays).filter(|(_, stays)| *stays).map(|(d, _)| d).collect()
}

fn is_lexical(code: Code) -> bool {
    matches!(
        code,
        Code::UnexpectedCharacter | Code::UnterminatedComment | Code::UnterminatedString | Code::BadNumber
    )
}

/// Whether the diagnostic shows that blocks begin or end at wrong places.
fn is_structural(d: &Diagnostic, text: &str) -> bool {
    // A statement or a brace outside of functions.
    let stray = || d.section == Some("4.3") && !d.span.text(text).starts_with(['.', ',', ';', ')']);
    matches!(d.code, Code::UnbalancedBrace | Code::UnterminatedComment | Code::UnterminatedString)
        || (d.code == Code::UnexpectedToken && stray())
}

/// Erroneous statements that may have been declarations.
struct Broken<'a> {
    /// Their names without trailing digits, each with the start of the first such statement.
    stems: HashMap<&'a str, u32>,
    /// Names in any statement with an unknown instruction or a syntax error.
    used: HashSet<&'a str>,
    /// By function, the start of such declarations without a name.
    nameless: HashMap<usize, u32>,
}

impl<'a> Broken<'a> {
    fn of(statements: &Statements<'a>, found: &[Diagnostic]) -> Self {
        let mut broken = Self { stems: HashMap::new(), used: HashSet::new(), nameless: HashMap::new() };
        let mut seen = HashSet::new();
        for d in found.iter().filter(|d| d.severity == Severity::Error) {
            let unread =
                matches!(d.code, Code::UnexpectedToken | Code::MissingSemicolon | Code::UnknownInstruction);
            if !unread && !matches!(d.code, Code::BadDeclaration | Code::UnknownDirective) {
                continue;
            }
            let number = statements.number(d.span.start);
            let Some(first) = statements.tokens_of(number).first().filter(|_| seen.insert((number, unread)))
            else {
                continue;
            };
            if unread {
                broken.used.extend(statements.names(number));
            }
            let declares = (first.kind == TokenKind::DotWord && statements.word(first) != ".alias")
                || crate::spelling::closest(
                    statements.word(first),
                    ["reg", "shared", "local", "param", "const"].into_iter(),
                )
                .is_some();
            if !declares {
                continue;
            }
            let mut names = statements.names(number).peekable();
            if names.peek().is_none() {
                broken.nameless.entry(statements.function(first.span.start)).or_insert(first.span.start);
            }
            names.for_each(|name| {
                broken.stems.entry(stem(name)).or_insert(first.span.start);
            });
        }
        broken
    }

    /// Whether the undeclared name at that place may have been declared in one of them.
    fn explains(&self, name: Span, statements: &Statements<'_>) -> bool {
        let named = self.stems.get(stem(name.text(statements.text)));
        let nameless = self.nameless.get(&statements.function(name.start));
        [named, nameless].into_iter().flatten().any(|from| *from < name.start)
    }
}

/// A name without trailing digits: the common part of the members of `%r<8>`.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}
