//! The canonical layout of a text, as `ptxvm fmt` prints it.
//!
//! Invariants: only white space changes. Tokens and comments stay, in their order (a comment that ends its line loses the
//! blanks at its end); so the tree stays the same but for its places. Formatting what has been formatted changes nothing. The
//! work is linear in the text. A text that the parser refuses is not touched.
//!
//! The layout is that of compilers: one statement on a line, a tab for each block around it, labels in column 0, operands
//! behind a tab, parameters of kernels and functions each on its line, long lists broken after a comma. Of blank lines one is
//! kept. A comment stays on its own line, or behind what it stands behind.
//!
//! Where lines begin is a matter of the tree (`layout`), what stands between two tokens of a line one of the tokens
//! (`spacing`). PTX ISA §4.1 to §4.3.

mod layout;
mod spacing;
#[cfg(test)]
mod tests;

use super::token::{Token, TokenKind};
use super::{Parsed, parse};
use crate::diag::Diagnostic;
use layout::{Before, Blank, Line, Mark};

/// Lines are broken where they would be longer, if there is a comma to break at. Chosen; nothing depends on it.
const WIDTH: usize = 100;
/// Blanks from one tab stop to the next.
const TAB: usize = 8;

/// The text in canonical layout.
///
/// # Errors
/// What the parser found, where it refuses the text.
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

/// What has been written, and what has to be known of it.
struct Writer<'s> {
    source: &'s str,
    tokens: &'s [Token],
    out: String,
    /// Column of the next character; 0 at the start of a line.
    column: usize,
    /// The line that the statement at hand began on.
    line: Line,
    /// The last token that is no trivia.
    previous: Option<Token>,
    /// Whether a `?` of this statement waits for its `:`.
    ternaries: usize,
    /// What stands between the last token and the next.
    state: Gap,
    /// Where the next mark stands.
    next_mark: u32,
}

/// What has been met since the last token that is no trivia.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    /// Line ends of the source since the last token or comment.
    newlines: usize,
    /// The last comment takes the rest of its line.
    ends_line: bool,
    /// A comment has been met.
    comment: bool,
    /// The line that is being written holds nothing but comments.
    comments_only: bool,
    /// Nothing stands between here and an opening brace or parenthesis but a comment on its line.
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

    /// Writes the comments between two tokens. `next` is the line that the second begins, if it does; `end` is the end of the
    /// text.
    fn gap(&mut self, trivia: &[Token], next: Option<Line>, end: bool) {
        for token in trivia {
            let text = token.span.text(self.source);
            match token.kind {
                TokenKind::Whitespace => self.state.newlines += text.matches('\n').count(),
                TokenKind::HashLine => self.comment(text.trim_end(), next, end, true),
                TokenKind::LineComment => self.comment(text.trim_end(), next, end, false),
                // All others that are trivia; an unterminated one has been refused.
                _ => self.comment(text, next, end, false),
            }
            if matches!(token.kind, TokenKind::HashLine | TokenKind::LineComment) {
                self.state.ends_line = true;
            }
        }
    }

    /// Writes a comment, or a line for the preprocessor (`whole_line`).
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

    /// Writes what stands between the last token and this one, and this one.
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

    /// What stands between two tokens of a statement: nothing, a blank, or the end of a line that would be too long.
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

    /// How wide the item of a list that begins here is, to its comma, a comment or the end of the statement; cut at the width
    /// of a line.
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

    /// Ends the line that is being written, and keeps a blank line of the source where one may stand.
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
        // A comment may end with an empty line; the line is not at its start all the same.
        self.column = self.column.max(1);
    }

    fn finish(mut self) -> String {
        self.end_line();
        self.out
    }
}
