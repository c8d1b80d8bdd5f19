//! A preprocessor for texts that contain `#define`, `#undef`, `#if`, `#ifdef`, `#ifndef`, `#elif`, `#else`,
//! `#endif`. PTX ISA §4.1; A11 of the project's readings.
//!
//! Invariants: a text without such lines is not changed. The result has the same line numbers as the text:
//! excluded lines are empty, and preprocessor lines stay (as trivia). The work of macros is counted even if
//! it has no result, and is bounded in proportion to the text ([`WORK`], [`WORK_FOR_BYTE`]). Processing of a
//! text that exceeds the bound stops there.
//!
//! `#include`, `#error`, and `#` and `##` in macros are refused. The lexer handles line markers and unknown
//! preprocessor lines.

mod condition;

use super::lexer::lex;
use super::token::{Token, TokenKind};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

/// The deepest nesting of macro replacements.
const MAX_DEPTH: usize = 64;
/// The work that macros may cause. A unit is an added byte, or a token of a macro that is examined or copied.
/// Chosen: some tenths of a second for the shortest text, some seconds for one of ten megabytes.
const WORK: usize = 4 << 20;
/// Additional work per byte of the text.
const WORK_FOR_BYTE: usize = 8;

/// A preprocessed text, and the mistakes in its preprocessor lines.
pub(crate) struct Preprocessed<'s> {
    /// The text.
    pub(crate) text: Cow<'s, str>,
    /// Their places are in that text.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Macros exceeded a limit. The rest of the text is not preprocessed, so its mistakes have no meaning.
    pub(crate) unfinished: bool,
    /// The first executed line.
    pub(crate) first: Option<Span>,
}

/// Preprocesses a text.
pub(crate) fn preprocess(source: &str) -> Preprocessed<'_> {
    if u32::try_from(source.len()).is_err() || !has_directives(source) {
        return Preprocessed {
            text: Cow::Borrowed(source),
            diagnostics: Vec::new(),
            unfinished: false,
            first: None,
        };
    }
    let mut preprocessor = Preprocessor {
        source,
        out: String::with_capacity(source.len()),
        macros: HashMap::new(),
        conditions: Vec::new(),
        diagnostics: Vec::new(),
        work: 0,
        most: WORK.saturating_add(source.len().saturating_mul(WORK_FOR_BYTE)),
        unfinished: false,
        depth: 0,
        closings: None,
        first: None,
    };
    preprocessor.run(&lex(source).tokens);
    let Preprocessor { out, diagnostics, unfinished, first, .. } = preprocessor;
    Preprocessed { text: Cow::Owned(out), diagnostics, unfinished, first }
}

/// The word of a preprocessor line that is executed here, and the text after it.
fn directive(line: &str) -> Option<(&str, &str)> {
    let blanks = [' ', '\t'];
    let rest = line.trim_start_matches(blanks).strip_prefix('#')?.trim_start_matches(blanks);
    let length = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (word, rest) = rest.split_at(length);
    let known = matches!(
        word,
        "define" | "undef" | "if" | "ifdef" | "ifndef" | "elif" | "else" | "endif" | "include" | "error"
    );
    known.then_some((word, rest))
}

/// Whether a line might be executed here. A line in a comment can look like one, and then has no effect.
fn has_directives(source: &str) -> bool {
    let mut rest = source;
    while let Some(at) = rest.find('#') {
        if directive(&rest[at..]).is_some() {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

/// A macro.
struct Macro {
    /// Parameter names with their numbers; `None` for a macro without parameters.
    parameters: Option<HashMap<String, usize>>,
    /// Its replacement, without comments.
    body: Vec<Piece>,
}

/// A token of a macro or an argument.
#[derive(Clone)]
struct Piece {
    kind: TokenKind,
    text: Rc<str>,
    /// Whether white space precedes it.
    blank: bool,
    /// The name of a macro in the replacement of that macro: it is not replaced again.
    inert: bool,
}

impl Piece {
    fn new(kind: TokenKind, text: &str, blank: bool) -> Self {
        Self { kind, text: text.into(), blank, inert: false }
    }
}

/// An open `#if`.
struct Condition {
    /// Its place in the result.
    span: Span,
    /// An enclosing condition excludes it.
    outside: bool,
    /// The current branch is included.
    active: bool,
    /// A branch was included.
    taken: bool,
    /// `#else` has occurred.
    last: bool,
}

struct Preprocessor<'s> {
    source: &'s str,
    out: String,
    macros: HashMap<String, Rc<Macro>>,
    conditions: Vec<Condition>,
    diagnostics: Vec<Diagnostic>,
    /// The work of macros so far, and its limit.
    work: usize,
    most: usize,
    /// A limit was exceeded and reported.
    unfinished: bool,
    /// Nesting depth of the current replacement.
    depth: usize,
    /// The `)` of each `(`, as token numbers; computed on first use.
    closings: Option<HashMap<usize, usize>>,
    /// The first line that was executed.
    first: Option<Span>,
}

impl Preprocessor<'_> {
    fn run(&mut self, tokens: &[Token]) {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if self.unfinished {
                self.out.push_str(&self.source[token.span.start as usize..]);
                return;
            }
            let text = token.span.text(self.source);
            at += 1;
            if token.kind == TokenKind::HashLine {
                let start = self.out.len();
                self.out.push_str(text);
                let span = Span::new(start as u32, (start + text.trim_end().len()) as u32);
                if let Some((word, rest)) = directive(text) {
                    self.line(word, &rest.replace("\\\r\n", " ").replace("\\\n", " "), span);
                }
            } else if !self.active() {
                self.out.extend(text.chars().filter(|c| matches!(c, '\n')));
            } else if token.kind == TokenKind::Ident && self.macros.contains_key(text) {
                let (start, next) = (self.out.len(), at);
                at = self.call(tokens, at, text);
                if self.unfinished {
                    self.out.truncate(start);
                    self.out.push_str(text);
                    at = next;
                }
            } else {
                self.out.push_str(text);
            }
        }
        for condition in std::mem::take(&mut self.conditions) {
            self.refuse(condition.span, "a condition without `#endif`", "end it with `#endif`");
        }
    }

    fn active(&self) -> bool {
        self.conditions.last().is_none_or(|condition| condition.active)
    }

    fn refuse(&mut self, span: Span, message: &str, help: &str) {
        let mut diagnostic = Diagnostic::new(Code::BadPreprocessorLine, span, message).with_section("4.1");
        if !help.is_empty() {
            diagnostic = diagnostic.with_help(help);
        }
        super::keep(&mut self.diagnostics, diagnostic);
    }

    /// Executes a line.
    fn line(&mut self, word: &str, rest: &str, span: Span) {
        self.first.get_or_insert(span);
        match word {
            "if" | "ifdef" | "ifndef" => {
                let outside = !self.active();
                let active = !outside && self.holds(word, rest, span);
                self.conditions.push(Condition { span, outside, active, taken: active, last: false });
            }
            "elif" => self.else_if(rest, span),
            "else" => match self.conditions.last_mut() {
                Some(condition) if !condition.last => {
                    condition.last = true;
                    condition.active = !condition.outside && !condition.taken;
                }
                Some(_) => self.refuse(span, "`#else` after the `#else` of this condition", ""),
                None => self.refuse(span, "`#else` without its `#if`", ""),
            },
            "endif" => {
                if self.conditions.pop().is_none() {
                    self.refuse(span, "`#endif` without its `#if`", "");
                }
            }
            _ if !self.active() => {}
            "define" => self.define(rest, span),
            "undef" => match pieces(rest).as_slice() {
                [name] if is_name(name) => {
                    self.macros.remove(&*name.text);
                }
                _ => self.refuse(span, "`#undef` needs one name", "`#undef NAME`"),
            },
            "error" => {
                let message = format!("`#error`: {}", rest.trim());
                self.refuse(span, &message, "");
            }
            _ => self.refuse(
                span,
                &format!("`#{word}` is not supported: no other file is read"),
                "run `cpp -P` over the text first",
            ),
        }
    }

    fn else_if(&mut self, rest: &str, span: Span) {
        let Some(condition) = self.conditions.last() else {
            self.refuse(span, "`#elif` without its `#if`", "");
            return;
        };
        if condition.last {
            self.refuse(span, "`#elif` after the `#else` of this condition", "");
            return;
        }
        // Conditions after an included branch are not evaluated.
        let active = !condition.outside && !condition.taken && self.holds("if", rest, span);
        if let Some(condition) = self.conditions.last_mut() {
            condition.active = active;
            condition.taken |= active;
        }
    }

    /// Whether a condition is true. An invalid condition is false.
    fn holds(&mut self, word: &str, rest: &str, span: Span) -> bool {
        let written = pieces(rest);
        if word != "if" {
            return match written.as_slice() {
                [name] if is_name(name) => self.macros.contains_key(&*name.text) == (word == "ifdef"),
                _ => {
                    self.refuse(span, &format!("`#{word}` needs one name"), "");
                    false
                }
            };
        }
        let asked = self.defined(written);
        let mut expanded = Vec::new();
        self.expand(&asked, &mut Vec::new(), &mut expanded, span);
        if self.unfinished {
            return false;
        }
        match condition::evaluate(expanded.iter().map(|piece| (piece.kind, &*piece.text))) {
            Some(value) => value != 0,
            None => {
                let help = "integers, `defined NAME`, parentheses and the operators of C";
                self.refuse(span, "this condition cannot be evaluated", help);
                false
            }
        }
    }

    /// Replaces `defined NAME` and `defined(NAME)` by 1 or 0.
    fn defined(&self, written: Vec<Piece>) -> Vec<Piece> {
        let mut result = Vec::with_capacity(written.len());
        let mut at = 0;
        while let Some(piece) = written.get(at) {
            let name = match written.get(at + 1..) {
                Some([name, ..]) if &*piece.text == "defined" && is_name(name) => Some((name, 2)),
                Some([open, name, close, ..])
                    if &*piece.text == "defined"
                        && open.kind == TokenKind::LParen
                        && close.kind == TokenKind::RParen =>
                {
                    Some((name, 4))
                }
                _ => None,
            };
            match name {
                Some((name, length)) => {
                    let value = u8::from(self.macros.contains_key(&*name.text));
                    result.push(Piece::new(TokenKind::Integer, &value.to_string(), true));
                    at += length;
                }
                None => {
                    result.push(piece.clone());
                    at += 1;
                }
            }
        }
        result
    }

    fn define(&mut self, rest: &str, span: Span) {
        let help = "`#define NAME text` or `#define NAME(a, b) text`";
        let written = pieces(rest);
        let Some((name, body)) = written.split_first().filter(|(name, _)| is_name(name)) else {
            self.refuse(span, "`#define` needs a name", help);
            return;
        };
        // A parenthesis adjacent to the name begins parameters; after a blank it begins the replacement.
        let touches = rest.trim_start()[name.text.len()..].starts_with('(');
        let (parameters, body) = if touches {
            let Some(close) = body.iter().position(|piece| piece.kind == TokenKind::RParen) else {
                self.refuse(span, "the parameters of this macro have no `)`", help);
                return;
            };
            let Some(names) = parameter_names(&body[1..close]) else {
                self.refuse(
                    span,
                    "the parameters of a macro are different names with commas between them",
                    help,
                );
                return;
            };
            (Some(names), &body[close + 1..])
        } else {
            (None, body)
        };
        if body.iter().any(|piece| piece.text.starts_with('#')) {
            self.refuse(span, "`#` and `##` in macros are not supported", "run `cpp -P` over the text first");
            return;
        }
        let replaced = Macro { parameters, body: body.to_vec() };
        self.macros.insert(name.text.to_string(), Rc::new(replaced));
    }

    /// Replaces a name in the text; `at` is the token after it. Returns the token at which processing
    /// continues.
    fn call(&mut self, tokens: &[Token], at: usize, name: &str) -> usize {
        let mut written = vec![Piece::new(TokenKind::Ident, name, false)];
        let mut end = at;
        let mut newlines = 0;
        if self.macros.get(name).is_some_and(|m| m.parameters.is_some()) {
            let Some(close) = self.closing(tokens, at) else {
                self.out.push_str(name);
                return at;
            };
            let mut blank = false;
            for token in &tokens[at..=close] {
                let text = token.span.text(self.source);
                newlines += text.matches('\n').count();
                if token.kind.is_trivia() {
                    blank = true;
                } else {
                    written.push(Piece::new(token.kind, text, blank));
                    blank = false;
                }
            }
            end = close + 1;
        }
        let start = u32::try_from(self.out.len()).unwrap_or(u32::MAX);
        let span = Span::new(start, start.saturating_add(name.len() as u32));
        let mut result = Vec::new();
        self.expand(&written, &mut Vec::new(), &mut result, span);
        for (index, piece) in result.iter().enumerate() {
            if index > 0 && piece.blank {
                self.out.push(' ');
            }
            self.out.push_str(&piece.text);
        }
        self.out.extend(std::iter::repeat_n('\n', newlines));
        end
    }

    /// The `)` of arguments that begin at `at`, if only blanks and comments precede them.
    fn closing(&mut self, tokens: &[Token], at: usize) -> Option<usize> {
        let open = at + tokens[at..].iter().position(|token| !token.kind.is_trivia())?;
        let closings = self.closings.get_or_insert_with(|| closings(tokens.iter().map(|token| token.kind)));
        closings.get(&open).copied()
    }

    /// Replaces the names in `written`, and the names in their replacements, except names in `busy`, whose
    /// replacement is in progress.
    fn expand(&mut self, written: &[Piece], busy: &mut Vec<Rc<str>>, result: &mut Vec<Piece>, span: Span) {
        if self.depth >= MAX_DEPTH {
            self.stop(span, format!("macros nested more than {MAX_DEPTH} deep"));
            return;
        }
        self.depth += 1;
        let mut ends: Option<HashMap<usize, usize>> = None;
        let mut at = 0;
        while let Some(piece) = written.get(at)
            && self.spend(1, span)
        {
            at += 1;
            let inert = piece.inert || busy.contains(&piece.text);
            let known = piece.kind == TokenKind::Ident && !inert;
            let Some(known) = self.macros.get(&*piece.text).filter(|_| known).cloned() else {
                self.spend(piece.text.len() + 1, span);
                result.push(Piece { inert, ..piece.clone() });
                continue;
            };
            if !self.spend(known.body.len(), span) {
                break;
            }
            let mut body = known.body.clone();
            if let Some(parameters) = &known.parameters {
                let whole = if ends.is_none() { written.len() } else { 0 };
                let ends = ends.get_or_insert_with(|| closings(written.iter().map(|piece| piece.kind)));
                let Some(close) = ends.get(&at).copied().filter(|end| self.spend(whole + end - at, span))
                else {
                    result.push(piece.clone());
                    continue;
                };
                let arguments = arguments(&written[at + 1..close]);
                self.compare(&piece.text, parameters.len(), &arguments, span);
                at = close + 1;
                body = self.substitute(body, parameters, &arguments, busy, span);
            }
            if let Some(first) = body.first_mut() {
                first.blank = piece.blank;
            }
            busy.push(piece.text.clone());
            self.expand(&body, busy, result, span);
            busy.pop();
        }
        self.depth -= 1;
    }

    /// Refuses a call whose number of arguments differs from the number of parameters.
    fn compare(&mut self, name: &str, wanted: usize, arguments: &[Vec<Piece>], span: Span) {
        let none = wanted == 0 && arguments.iter().all(Vec::is_empty);
        let have = arguments.len();
        if have != wanted && !none {
            self.refuse(span, &format!("the macro `{name}` has {wanted} parameters, not {have}"), "");
        }
    }

    /// Adds work. Returns whether the limit is not exceeded.
    fn spend(&mut self, work: usize, span: Span) -> bool {
        self.work = self.work.saturating_add(work);
        if self.work > self.most {
            self.stop(span, format!("macros that take more than {} steps to replace", self.most));
        }
        !self.unfinished
    }

    /// Stops because of a limit.
    fn stop(&mut self, span: Span, message: String) {
        if !std::mem::replace(&mut self.unfinished, true) {
            let help = "a step is a token that is examined or copied, or a byte of output; `cpp -P` has no such limits";
            let diagnostic = Diagnostic::new(Code::MacroLimit, span, message).with_help(help);
            self.diagnostics.push(diagnostic.with_section("4.1"));
        }
    }

    /// The replacement of a macro with its expanded arguments in place of the parameters.
    fn substitute(
        &mut self,
        body: Vec<Piece>,
        parameters: &HashMap<String, usize>,
        arguments: &[Vec<Piece>],
        busy: &mut Vec<Rc<str>>,
        span: Span,
    ) -> Vec<Piece> {
        let mut expanded: Vec<Vec<Piece>> = Vec::new();
        for argument in arguments {
            let mut pieces = Vec::new();
            self.expand(argument, busy, &mut pieces, span);
            expanded.push(pieces);
        }
        let mut result = Vec::with_capacity(body.len());
        for piece in body {
            let parameter = parameters.get(&*piece.text).copied();
            let Some(index) = parameter.filter(|_| piece.kind == TokenKind::Ident) else {
                result.push(piece);
                continue;
            };
            let argument = expanded.get(index).map_or(&[][..], Vec::as_slice);
            if !self.spend(argument.len(), span) {
                break;
            }
            let start = result.len();
            result.extend_from_slice(argument);
            if let Some(first) = result.get_mut(start) {
                first.blank = piece.blank;
            }
        }
        result
    }
}

/// The `)` of each `(`. Arguments cannot contain preprocessor lines.
fn closings(tokens: impl Iterator<Item = TokenKind>) -> HashMap<usize, usize> {
    let mut open = Vec::new();
    let mut closings = HashMap::new();
    for (index, kind) in tokens.enumerate() {
        match kind {
            TokenKind::LParen => open.push(index),
            TokenKind::RParen => {
                if let Some(start) = open.pop() {
                    closings.insert(start, index);
                }
            }
            TokenKind::HashLine => open.clear(),
            _ => {}
        }
    }
    closings
}

/// The tokens of a line, without comments and blanks.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut blank = false;
    for token in lex(text).tokens {
        // A `#` after the word of a preprocessor line does not begin another one.
        if token.kind.is_trivia() && token.kind != TokenKind::HashLine {
            blank = true;
        } else {
            pieces.push(Piece::new(token.kind, token.span.text(text), blank));
            blank = false;
        }
    }
    pieces
}

/// Whether it is an identifier of C.
fn is_name(piece: &Piece) -> bool {
    let first = piece.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    piece.kind == TokenKind::Ident && first && !piece.text.contains('$')
}

/// The names between the parentheses of a macro; `None` if one occurs twice.
fn parameter_names(written: &[Piece]) -> Option<HashMap<String, usize>> {
    let mut names = HashMap::new();
    if written.is_empty() {
        return Some(names);
    }
    for (number, part) in written.split(|piece| piece.kind == TokenKind::Comma).enumerate() {
        match part {
            [name] if is_name(name) && names.insert(name.text.to_string(), number).is_none() => {}
            _ => return None,
        }
    }
    Some(names)
}

/// The arguments between the parentheses after a macro's name; an empty list of tokens for an empty argument.
fn arguments(written: &[Piece]) -> Vec<Vec<Piece>> {
    let mut arguments = Vec::new();
    let mut argument = Vec::new();
    let mut open = 0usize;
    for piece in written {
        match piece.kind {
            TokenKind::LParen => open += 1,
            TokenKind::RParen => open = open.saturating_sub(1),
            TokenKind::Comma if open == 0 => {
                arguments.push(std::mem::take(&mut argument));
                continue;
            }
            _ => {}
        }
        argument.push(piece.clone());
    }
    arguments.push(argument);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> String {
        let result = preprocess(source);
        assert_eq!(result.diagnostics, [], "{source}");
        result.text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("|")
    }

    fn refused(source: &str) -> Vec<String> {
        preprocess(source).diagnostics.into_iter().map(|d| d.message).collect()
    }

    #[test]
    fn a_text_without_such_lines_is_the_same_text() {
        for source in ["", "# 1 \"x\"\nret;", "#pragma x\n#unknown\n/* a */"] {
            assert!(matches!(preprocess(source).text, Cow::Borrowed(_)), "{source}");
        }
        assert_eq!(text("/*\n#define A 1\n*/ A"), "/*|*/ A");
    }

    #[test]
    fn names_are_replaced() {
        assert_eq!(text("#define A (8*12) // twelve\nbar.sync 1, A;"), "bar.sync 1, (8*12);");
        assert_eq!(text("#define A B\n#define B 3\nA B %A .A A1"), "3 3 %A .A A1");
        assert_eq!(text("#define A A + 1\nA"), "A + 1");
        assert_eq!(text("#define A A + 1\n#define F(x) x\nF(A)"), "A + 1");
        assert_eq!(text("#define A 1\n#undef A\nA \"A\" /* A */"), "A \"A\" /* A */");
        assert_eq!(preprocess("#define A x, \\\n y\nA").text, "#define A x, \\\n y\nx, y");
    }

    #[test]
    fn macros_take_arguments() {
        assert_eq!(text("#define F(x, y) x+y\nF(1, (2, 3)) F G"), "1+(2, 3) F G");
        assert_eq!(text("#define F(x) [x]\n#define G 7\nF(F(G))"), "[[7]]");
        assert_eq!(text("#define F() 4\nF() F ( )"), "4 4");
        assert_eq!(text("#define F(x) mov.u32 %r1, x;\nF(1\n) z"), "mov.u32 %r1, 1;| z");
    }

    #[test]
    fn conditions_choose() {
        assert_eq!(text("#if 1\na\n#else\nb\n#endif\nc"), "a||c");
        assert_eq!(text("#ifdef A\na\n#elif 2 > 1 && !defined(A)\nb\n#else\nc\n#endif"), "|b|");
        assert_eq!(text("#define A 4\n#if A / 2 == 2 ? 1 : 0\na\n#endif\n#ifndef A\nb\n#endif"), "a|");
        assert_eq!(text("#if 0\n#if 1\na\n#else\nb\n#endif\n#define A 1\n#endif\nA"), "||A");
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        assert_eq!(refused("#if 1"), ["a condition without `#endif`"]);
        assert_eq!(refused("#endif"), ["`#endif` without its `#if`"]);
        assert_eq!(refused("#else"), ["`#else` without its `#if`"]);
        assert_eq!(refused("#if 1/0\n#endif"), ["this condition cannot be evaluated"]);
        assert_eq!(refused("#include <x>"), ["`#include` is not supported: no other file is read"]);
        assert_eq!(refused("#define 1\n#define F(\n#define F(1) x").len(), 3);
        assert_eq!(refused("#define C(a, b) a##b"), ["`#` and `##` in macros are not supported"]);
        assert_eq!(refused("#define F(x) x\nF(1, 2)"), ["the macro `F` has 1 parameters, not 2"]);
    }

    #[test]
    fn a_short_text_cannot_grow_without_bounds() {
        let mut source = String::from("#define A0 x x x x x x x x\n");
        for i in 1..40 {
            source += &format!("#define A{i} A{0} A{0} A{0} A{0} A{0} A{0} A{0} A{0}\n", i - 1);
        }
        source += "A39";
        let result = preprocess(&source);
        assert_eq!(result.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::MacroLimit]);
        assert!(result.unfinished && result.text.ends_with("\nA39"), "the rest stands as it was");
    }

    /// The first produces nothing, so a limit of bytes does not bound it; the others copy their arguments
    /// repeatedly.
    #[test]
    fn macros_that_come_to_nothing_cost_something_too() {
        let mut doubling = String::from("#define A0\n");
        for i in 1..60 {
            doubling += &format!("#define A{i} A{0} A{0}\n", i - 1);
        }
        let nested = |n| format!("#define F(x) x\n{}1{}", "F(".repeat(n), ")".repeat(n));
        let all: Vec<String> = (0..40).map(|i| format!("A{i}()")).collect();
        let each: String = all.iter().map(|name| format!("#define {name} {}\n", all.concat())).collect();
        for source in [doubling + "A59", nested(20_000), nested(200_000), each + "A0()"] {
            let result = preprocess(&source);
            assert_eq!(result.diagnostics.len(), 1);
            assert_eq!(result.diagnostics[0].code, Code::MacroLimit, "{}", result.diagnostics[0].message);
        }
        let source = format!("#define F(x) x\n#if {}1{}\na\n#endif", "F(".repeat(70), ")".repeat(70));
        let condition = preprocess(&source);
        assert_eq!(condition.diagnostics.len(), 1);
        assert_eq!(condition.diagnostics[0].message, "macros nested more than 64 deep");
    }

    #[test]
    fn a_long_text_may_use_macros_in_proportion() {
        let source = "#define N 32\n".to_owned() + &"N,".repeat(WORK / 2);
        assert_eq!(preprocess(&source).diagnostics, []);
    }

    /// Each of these takes hours if work is repeated for each part.
    #[test]
    fn long_lines_take_linear_time() {
        let many = |what: &str| what.repeat(1 << 16);
        let refused = [
            format!("#define F(x) x\n#if {}\n#endif", many("F( ")),
            format!("#define F(x) x\n#if {}\n#endif", many("F(1) F( ")),
            format!("#if {}1{}\n#endif", many("("), many(")")),
            format!("#if {}1\n#endif", many("- ")),
            format!("#if {}1\n#endif", many("1 ? 1 : ")),
            many("#if 1\n"),
            many("#endif\n"),
        ];
        for source in refused {
            assert!(!preprocess(&source).diagnostics.is_empty(), "{}", &source[..40]);
        }
        let names: Vec<String> = (0..1 << 15).map(|i| format!("a{i}")).collect();
        let source = format!("#define F({}) {}\nF({})", names.join(","), names.join(" "), names.join(","));
        assert_eq!(preprocess(&source).diagnostics, []);
        let nested = many("#if 1\n") + &many("#endif\n");
        assert_eq!(preprocess(&nested).diagnostics, []);
        let sum = format!("#if {}1\n#endif", many("1 + "));
        assert_eq!(preprocess(&sum).diagnostics, []);
    }
}
