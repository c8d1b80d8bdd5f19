//! The canonical layout of a text, as printed by `ptxvm fmt`.
//!
//! Invariants: only white space changes. Tokens and comments stay in order, except that blanks at the end of
//! a line comment are removed; so the tree stays the same except for its places. Formatting is idempotent and
//! takes linear time. A text with syntax errors is not changed.
//!
//! The layout is that of compilers: one statement per line, a tab for each enclosing block, labels in column
//! 0, a tab before operands, each parameter of a kernel or function on its own line, long lists broken after
//! a comma. At most one blank line is kept. A comment stays on its own line, or after the token that it
//! follows.
//!
//! Line starts come from the tree (`layout`), the space between two tokens of a line from the tokens
//! (`spacing`). PTX ISA §4.1 to §4.3.

mod layout;
mod spacing;
#[cfg(test)]
mod tests;

use super::token::{Token, TokenKind};
use super::{Parsed, parse};
use crate::diag::Diagnostic;
use layout::{Before, Blank, Line, Mark};

/// Longer lines are broken after a comma. Chosen arbitrarily.
const WIDTH: usize = 100;
/// Blanks from one tab stop to the next.
const TAB: usize = 8;

/// Formats the text.
///
/// # Errors
/// The syntax errors, if there are any.
pub fn format(source: &str) -> Result<String, Vec<Diagnostic>> {
    if let Some(foreign) = super::foreign::recognise(source) {
        return Err(vec![foreign]);
    }
    let Parsed { tree, diagnostics } = parse(source);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let marks = layout::marks(&tree);
    let mut writer = Writer::new(source, &tree.tokens);
    let mut marks = marks.into_iter().peekable();
    let mut gap = 0;
    for (index, token) in tree.tokens.iter().enumerate() {
        if token.kind.is_trivia() {
            continue;
        }
        let mark = marks.next_if(|mark: &Mark| mark.offset == token.span.start).map(|mark| mark.before);
        writer.gap(&tree.tokens[gap..index], mark.and_then(Before::line), false);
        writer.next_mark = marks.peek().map_or(u32::MAX, |mark| mark.offset);
        writer.token(index, mark);
        gap = index + 1;
    }
    writer.gap(&tree.tokens[gap..], None, true);
    Ok(writer.finish())
}

/// The output, and the state for the next token.
struct Writer<'s> {
    source: &'s str,
    tokens: &'s [Token],
    out: String,
    /// Column of the next character; 0 at the start of a line.
    column: usize,
    /// The line on which the current statement began.
    line: Line,
    /// The last token that is no trivia.
    previous: Option<Token>,
    /// How many `?` of this statement have no `:` yet.
    ternaries: usize,
    /// The trivia between the last token and the next.
    state: Gap,
    /// The start of the next mark.
    next_mark: u32,
}

/// The trivia since the last token that is none.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    /// Line ends of the source since the last token or comment.
    newlines: usize,
    /// The last comment extends to the end of its line.
    ends_line: bool,
    /// There was a comment.
    comment: bool,
    /// The current output line contains only comments.
    comments_only: bool,
    /// Since the opening brace or parenthesis there was at most a comment on its line.
    opened: bool,
}

impl<'s> Writer<'s> {
    fn new(source: &'s str, tokens: &'s [Token]) -> Self {
        Self {
            source,
            tokens,
            out: String::with_capacity(source.len() + source.len() / 16 + 1),
            column: 0,
            line: Line::TOP,
            previous: None,
            ternaries: 0,
            state: Gap { opened: true, ..Gap::default() },
            next_mark: u32::MAX,
        }
    }

    /// Writes the comments between two tokens. `next` is the line that begins with the second token, if any;
    /// `end`: at the end of the text.
    fn gap(&mut self, trivia: &[Token], next: Option<Line>, end: bool) {
        for token in trivia {
            let text = token.span.text(self.source);
            match token.kind {
                TokenKind::Whitespace => self.state.newlines += text.matches('\n').count(),
                TokenKind::HashLine => self.comment(text.trim_end(), next, end, true),
                TokenKind::LineComment => self.comment(text.trim_end(), next, end, false),
                // Other trivia are white space; an unterminated comment is a syntax error.
                _ => self.comment(text, next, end, false),
            }
            if matches!(token.kind, TokenKind::HashLine | TokenKind::LineComment) {
                self.state.ends_line = true;
            }
        }
    }

    /// Writes a comment, or a preprocessor line (`whole_line`).
    fn comment(&mut self, text: &str, next: Option<Line>, end: bool, whole_line: bool) {
        let own_line = self.state.newlines > 0 || self.state.ends_line || whole_line;
        if own_line || self.out.is_empty() {
            let between = end || next.is_some();
            let keeps_blank = end || next.is_some_and(|line| line.blank != Blank::Never);
            self.new_line(keeps_blank);
            let tabs = if between { self.line.inside } else { self.line.column + 1 };
            self.indent(if whole_line { 0 } else { tabs });
            self.state.opened = false;
            self.state.comments_only = true;
        } else {
            self.push(" ");
        }
        self.push(text);
        self.state = Gap { newlines: 0, ends_line: false, comment: true, ..self.state };
    }

    /// Writes the space before a token, and the token.
    fn token(&mut self, index: usize, mark: Option<Before>) {
        let token = self.tokens[index];
        let state = self.state;
        let touches = self.previous.is_some_and(|p| p.span.end == token.span.start);
        match mark {
            Some(Before::Line(line)) => {
                if state.comments_only && state.newlines == 0 && !state.ends_line {
                    self.push(" ");
                } else {
                    self.new_line(line.blank == Blank::Always);
                    self.indent(line.column);
                }
                self.line = line;
                self.ternaries = 0;
            }
            _ if state.ends_line || (state.comment && state.newlines > 0) => self.continue_line(),
            _ if state.comment => self.push(if spacing::closes(token) { "" } else { " " }),
            Some(Before::Space) => self.push(" "),
            Some(Before::Tab) => self.push(" \t"),
            Some(Before::Nothing) => {}
            None => self.space(index, touches),
        }
        match token.kind {
            TokenKind::Question => self.ternaries += 1,
            TokenKind::Colon => self.ternaries = self.ternaries.saturating_sub(1),
            _ => {}
        }
        let text = token.span.text(self.source);
        self.push(if token.kind == TokenKind::DwarfLine { text.trim_end() } else { text });
        self.previous = Some(token);
        let opened = matches!(mark, Some(Before::Line(line)) if line.opens);
        self.state = Gap { opened, ends_line: token.kind == TokenKind::DwarfLine, ..Gap::default() };
    }

    /// Writes the space between two tokens of a statement: nothing, a blank, or a line break if the line
    /// would be too long.
    fn space(&mut self, index: usize, touches: bool) {
        let token = self.tokens[index];
        let Some(previous) = self.previous else { return };
        if !spacing::blank(self.source, previous, token, touches, self.ternaries > 0) {
            return;
        }
        if previous.kind == TokenKind::Comma && self.column + 1 + self.item_width(index) > WIDTH {
            self.continue_line();
        } else {
            self.push(" ");
        }
    }

    /// The width of the list item that begins here, up to its comma, a comment or the end of the statement;
    /// at most the width of a line.
    fn item_width(&self, index: usize) -> usize {
        let mut width = 0;
        for token in &self.tokens[index..] {
            let comment = token.kind.is_trivia() && token.kind != TokenKind::Whitespace;
            if comment || token.span.start >= self.next_mark {
                break;
            }
            let text = token.span.text(self.source);
            width += match token.kind {
                TokenKind::Whitespace => 0,
                _ => text.len(),
            };
            if width > WIDTH || matches!(token.kind, TokenKind::Comma | TokenKind::Semicolon) {
                break;
            }
        }
        width
    }

    /// Continues the statement on a new line.
    fn continue_line(&mut self) {
        self.end_line();
        self.indent(self.line.column + 1);
    }

    /// Ends the current line, and keeps a blank line of the source where one is allowed.
    fn new_line(&mut self, keeps_blank: bool) {
        self.end_line();
        if keeps_blank && self.state.newlines > 1 && !self.state.opened {
            self.out.push('\n');
        }
    }

    fn end_line(&mut self) {
        if self.column > 0 {
            self.out.push('\n');
            self.column = 0;
        }
    }

    fn indent(&mut self, tabs: usize) {
        self.out.extend(std::iter::repeat_n('\t', tabs));
        self.column = tabs * TAB;
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        let last = match text.rfind('\n') {
            Some(end) => {
                self.column = 0;
                &text[end + 1..]
            }
            None => text,
        };
        for c in last.chars() {
            self.column = if c == '\t' { (self.column / TAB + 1) * TAB } else { self.column + 1 };
        }
        // A comment can end with an empty line; the writer is then not at the start of a line.
        self.column = self.column.max(1);
    }

    fn finish(mut self) -> String {
        self.end_line();
        self.out
    }
}
