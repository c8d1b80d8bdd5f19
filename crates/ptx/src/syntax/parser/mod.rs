//! Tokens to tree.
//!
//! Invariants: parsing always ends, because every loop consumes a token or stops. Recursion is bounded by
//! [`MAX_NESTING`](super::MAX_NESTING). One mistake gives one diagnostic: a function that reports a mistake
//! returns [`Reported`], and the function that handles it skips to the next place where a construct can
//! begin. Lexical mistakes are reported by the lexer only.
//!
//! One file per part of the language: [`module`] (module scope), [`debug`] (`.file`, `.loc`, `.section`),
//! [`declaration`], [`function`], [`body`] (statements and instructions), [`operand`], [`expression`].

mod body;
mod debug;
mod declaration;
mod expression;
mod function;
mod module;
mod operand;

pub(crate) use body::Piece;

use super::lexer::Lexed;
use super::token::{Token, TokenKind as K};
use super::tree::{Name, Operand, Spanned, Str, Word};
use super::{MAX_DIAGNOSTICS, MAX_NESTING, number};
use crate::Span;
use crate::diag::{Code, Diagnostic};

/// A mistake was reported; the caller recovers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported;

/// The result of a parsing function.
type Parse<T> = Result<T, Reported>;

/// The cursor over the tokens, and the parser's state.
pub(crate) struct Parser<'s> {
    source: &'s str,
    /// The tokens of the grammar.
    tokens: &'s [Token],
    /// As [`Lexed::marks`]; used only by [`labels_ahead`](Self::labels_ahead).
    marks: &'s [u32],
    at: usize,
    /// Diagnostics that are not taken yet.
    diagnostics: Vec<Diagnostic>,
    /// The number of diagnostics so far.
    reported: usize,
    /// Memory of dropped operands, for the next instruction.
    operands: Vec<Operand>,
    /// Depth of blocks or of initialiser lists.
    depth: usize,
    /// Operators in the current expression.
    operators: usize,
    /// Whether section names are values here.
    in_section: bool,
    /// The `{` of the current body and of its open blocks.
    open: Vec<Span>,
    /// Whether blocks end without `}`, because a directive of module scope occurred.
    unwinding: bool,
    /// Whether the next part is the body of the last function.
    body_follows: bool,
    /// The last function's body.
    last_body: Option<Span>,
    /// Whether an unexpected token was reported in the current statement, signature or directive. Further
    /// unexpected tokens are likely consequences.
    unexpected_reported: bool,
    /// Whether the text ends too early for a reason that was reported.
    cut_short: bool,
}

impl<'s> Parser<'s> {
    /// Starts with the tokens of the grammar.
    pub(crate) fn new(source: &'s str, lexed: &'s Lexed) -> Self {
        Self {
            source,
            tokens: &lexed.tokens,
            marks: &lexed.marks,
            at: 0,
            diagnostics: Vec::new(),
            reported: 0,
            operands: Vec::new(),
            depth: 0,
            operators: 0,
            in_section: false,
            open: Vec::new(),
            unwinding: false,
            body_follows: false,
            last_body: None,
            unexpected_reported: false,
            cut_short: lexed.cut_short,
        }
    }

    /// Whether there are diagnostics since the last [`take_diagnostics`](Self::take_diagnostics).
    pub(crate) fn has_diagnostics(&self) -> bool {
        !self.diagnostics.is_empty()
    }

    /// The diagnostics since the last call.
    pub(crate) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.diagnostics)
    }

    // Looking.

    fn kind(&self) -> Option<K> {
        self.kind_ahead(0)
    }

    fn kind_ahead(&self, ahead: usize) -> Option<K> {
        self.tokens.get(self.at + ahead).map(|t| t.kind)
    }

    fn is(&self, kind: K) -> bool {
        self.kind() == Some(kind)
    }

    fn is_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// The place of the current token; at the end of the text, the empty place after the last token.
    pub(crate) fn span(&self) -> Span {
        self.tokens.get(self.at).map_or_else(|| self.behind(), |t| t.span)
    }

    /// The empty place directly after the last consumed token.
    fn behind(&self) -> Span {
        let end = self.previous().end;
        Span::new(end, end)
    }

    /// The place of the last consumed token.
    pub(crate) fn previous(&self) -> Span {
        let last = self.at.min(self.tokens.len()).checked_sub(1);
        last.map_or(Span::default(), |i| self.tokens[i].span)
    }

    fn text(&self) -> &'s str {
        self.text_ahead(0)
    }

    fn text_ahead(&self, ahead: usize) -> &'s str {
        self.tokens.get(self.at + ahead).map_or("", |t| t.span.text(self.source))
    }

    /// The current word without its dot; empty if there is none.
    fn word(&self) -> &'s str {
        self.word_ahead(0)
    }

    fn word_ahead(&self, ahead: usize) -> &'s str {
        if self.kind_ahead(ahead) == Some(K::DotWord) { &self.text_ahead(ahead)[1..] } else { "" }
    }

    fn first_on_line(&self) -> bool {
        self.tokens.get(self.at).is_some_and(|t| t.first_on_line)
    }

    /// Whether the current token is adjacent to the previous one.
    fn touches(&self) -> bool {
        !self.is_end() && self.at > 0 && self.span().start == self.previous().end
    }

    // Consuming.

    fn bump(&mut self) -> Span {
        let span = self.span();
        if !self.is_end() {
            self.at += 1;
        }
        span
    }

    fn eat(&mut self, kind: K) -> Option<Span> {
        self.is(kind).then(|| self.bump())
    }

    fn eat_word(&mut self) -> Option<Word> {
        self.eat(K::DotWord).map(|span| Word { span })
    }

    fn expect(&mut self, kind: K, what: &str) -> Parse<Span> {
        match self.eat(kind) {
            Some(span) => Ok(span),
            None => Err(self.expected(what)),
        }
    }

    fn name(&mut self, what: &str) -> Parse<Name> {
        self.expect(K::Ident, what).map(|span| Name { span })
    }

    fn string(&mut self) -> Parse<Str> {
        match self.eat(K::UnterminatedStr) {
            Some(span) => Ok(Str { span }),
            None if self.is(K::Str) => Ok(Str { span: self.bump() }),
            None => Err(self.expected_on_line("a string")),
        }
    }

    /// A plain integer, for directives that take no expression.
    fn integer(&mut self, what: &str) -> Parse<Spanned<u64>> {
        if !self.kind().is_some_and(K::is_number) {
            return Err(self.expected_on_line(what));
        }
        let text = self.text();
        let span = self.bump();
        match number::decode(text) {
            Ok(number::Number::Integer { value, .. }) => Ok(Spanned { value, span }),
            Ok(number::Number::Double(_) | number::Number::Single(_)) => {
                let message = format!("expected {what}, found the floating-point number `{text}`");
                Err(self.report(Diagnostic::new(Code::UnexpectedToken, span, message)))
            }
            Err(error) => Err(self.bad_number(span, error)),
        }
    }

    /// The semicolon of a statement. A missing semicolon is reported, and the statement is kept.
    fn semicolon(&mut self) -> Parse<()> {
        if self.eat(K::Semicolon).is_some() {
            if self.unexpected_reported && !self.statement_can_follow() {
                self.skip_statement();
            }
            return Ok(());
        }
        if self.unterminated_string_before() {
            return Ok(());
        }
        if self.starts_statement() {
            self.missing_semicolon();
            return Ok(());
        }
        Err(self.expected("`;`"))
    }

    /// Whether the string just consumed swallowed the rest of its line.
    fn unterminated_string_before(&self) -> bool {
        self.at > 0 && self.tokens[self.at - 1].kind == K::UnterminatedStr
    }

    fn missing_semicolon(&mut self) {
        let diagnostic =
            Diagnostic::new(Code::MissingSemicolon, self.behind(), "missing `;` after this statement")
                .with_label("`;` expected here")
                .with_section("4.3");
        if !self.is_muffled() {
            self.report(diagnostic);
        }
    }

    // Reporting.

    fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        self.reported += 1;
        if self.reported <= MAX_DIAGNOSTICS {
            self.diagnostics.push(super::shortened(diagnostic));
        }
        Reported
    }

    /// Whether the mistake at the current token has a cause that was already reported: by the parser in this
    /// statement, or by the lexer (adjacent unknown characters, or an unterminated comment).
    fn is_muffled(&self) -> bool {
        let beside = &self.tokens[self.at.saturating_sub(1)..self.tokens.len().min(self.at + 1)];
        self.unexpected_reported
            || beside.iter().any(|t| t.after_unknown)
            || (self.is_end() && self.cut_short)
    }

    /// Reports that `what` is expected here, unless the lexer has reported a mistake here.
    fn expected(&mut self, what: &str) -> Reported {
        let message = format!("expected {what}, found {}", self.found());
        self.unexpected(Diagnostic::new(Code::UnexpectedToken, self.span(), message))
    }

    /// As [`expected`](Self::expected), for a token that must be on the same line as the previous one.
    fn expected_on_line(&mut self, what: &str) -> Reported {
        if !self.first_on_line() {
            return self.expected(what);
        }
        let message = format!("expected {what}, found the end of the line");
        self.unexpected(Diagnostic::new(Code::UnexpectedToken, self.behind(), message))
    }

    /// Reports an unexpected token, once per statement.
    fn unexpected(&mut self, diagnostic: Diagnostic) -> Reported {
        if !self.is_muffled() {
            self.unexpected_reported = true;
            self.report(diagnostic);
        }
        Reported
    }

    /// The current token in words.
    fn found(&self) -> String {
        const SHOWN: usize = 40;
        if self.is_end() {
            return "the end of the text".into();
        }
        let text = self.text();
        let noun = match self.kind() {
            Some(K::Str | K::UnterminatedStr) => "the string ",
            Some(kind) if kind.is_number() => "the number ",
            _ => "",
        };
        match text.char_indices().nth(SHOWN) {
            Some((cut, _)) => format!("{noun}`{}…`", &text[..cut]),
            None => format!("{noun}`{text}`"),
        }
    }

    fn bad_number(&mut self, span: Span, error: number::NumberError) -> Reported {
        let text = span.text(self.source);
        let mut diagnostic = Diagnostic::new(Code::BadNumber, span, format!("malformed number `{text}`"))
            .with_label(error.to_string())
            .with_section("4.6");
        if error == number::NumberError::FloatSuffix {
            diagnostic = diagnostic.with_help("leave the suffix out: the instruction says the size");
        }
        self.report(diagnostic)
    }

    // Recovering.

    /// Whether a new statement begins here, so that the previous one has ended: at the end of the block or
    /// text, or at the start of a line that looks like a statement.
    fn starts_statement(&self) -> bool {
        match self.kind() {
            None => true,
            Some(K::RBrace) => self.ends_block(),
            Some(K::At) => self.first_on_line(),
            Some(K::LBrace) => {
                let next = self.tokens.get(self.at + 1);
                let block = next.is_none_or(|t| t.first_on_line || t.kind == K::DotWord);
                self.first_on_line() && block
            }
            Some(K::DotWord) => self.first_on_line() && is_directive(self.word()),
            Some(K::Ident) if self.first_on_line() => {
                let label = self.kind_ahead(1) == Some(K::Colon);
                // `bra` and its label can be on two lines, so a name alone must be a known instruction.
                let opcode = match self.kind_ahead(1) {
                    Some(K::DotWord | K::Ident) => !self.text().starts_with('%'),
                    Some(K::Semicolon) => !crate::isa::rows_of(self.text()).is_empty(),
                    _ => false,
                };
                label || opcode
            }
            _ => false,
        }
    }

    /// Whether the `}` in the middle of a statement likely ends the block, because only more `}` follow on
    /// its line.
    fn ends_block(&self) -> bool {
        self.tokens.get(self.at + 1).is_none_or(|next| next.first_on_line || next.kind == K::RBrace)
    }

    /// Whether the `;` before the current token can end a statement, instead of being a stray token in its
    /// middle.
    fn statement_can_follow(&self) -> bool {
        let starts = match self.kind() {
            Some(K::Ident) => !self.text().starts_with('%'),
            Some(K::DotWord) => is_directive(self.word()),
            kind => matches!(kind, None | Some(K::At | K::LBrace | K::RBrace)),
        };
        starts || self.first_on_line()
    }

    /// Skips to after the next `;` that ends a statement, to a `}`, or to a line that begins a statement.
    fn skip_statement(&mut self) {
        let mut open = 0usize;
        while !self.is_end() {
            match self.kind() {
                Some(K::Semicolon) => {
                    self.bump();
                    if self.statement_can_follow() {
                        return;
                    }
                    continue;
                }
                _ if open == 0 && self.starts_statement() => return,
                Some(K::LBrace) => open += 1,
                Some(K::RBrace) => open = open.saturating_sub(1),
                Some(K::Ident | K::At | K::DotWord) if self.starts_statement() => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips to a `,` or `close` of the current list, or to a token that ends every list.
    fn skip_in_list(&mut self, close: K) {
        let mut open = 0usize;
        while let Some(kind) = self.kind() {
            match kind {
                K::Semicolon => return,
                K::LBrace if close == K::RParen || (open == 0 && self.starts_statement()) => return,
                _ if open == 0 && (kind == close || kind == K::Comma) => return,
                K::LBrace | K::LBracket | K::LParen => open += 1,
                K::RBrace | K::RBracket | K::RParen if open == 0 => return,
                K::RBrace | K::RBracket | K::RParen => open -= 1,
                _ if self.starts_statement() => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips to the next line.
    fn skip_line(&mut self) {
        while !self.is_end() && !self.first_on_line() {
            self.bump();
        }
    }

    /// Enters a nested construct, or reports that the nesting is too deep.
    fn enter(&mut self, what: &str) -> Parse<()> {
        if self.depth >= MAX_NESTING {
            let message = format!("{what} nested more than {MAX_NESTING} deep");
            return Err(self.report(Diagnostic::new(Code::TooLarge, self.span(), message)));
        }
        self.depth += 1;
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }
}

/// Whether `.word` begins a directive, at module scope or in a body.
fn is_directive(word: &str) -> bool {
    is_module_directive(word)
        || declaration::space_named(word).is_some()
        || matches!(
            word,
            "loc" | "loc_intermediate" | "pragma" | "callprototype" | "calltargets" | "branchtargets"
        )
}

/// Whether `.word` begins an item of module scope only.
fn is_module_directive(word: &str) -> bool {
    declaration::linkage_named(word).is_some()
        || matches!(
            word,
            "version" | "target" | "address_size" | "entry" | "func" | "alias" | "file" | "section"
        )
}
