//! Splits a text into tokens.
//!
//! Invariants: tokens are contiguous and not empty, and concatenated they give the text. The work is linear
//! in the length of the text. Each mistake gives one diagnostic and a token that contains it. PTX ISA §4.1,
//! §4.2, §4.4, §4.6.
//!
//! Choices where the manual is silent:
//! - `.5` is a number and `.2d` a word: after a dot, digits, possibly with an exponent, are a number, unless
//!   the dot directly follows a word.
//! - A `%` directly after an operand is an operator, elsewhere it begins an identifier: after a number and
//!   `WARP_SZ` always, after `)` if a digit follows.
//! - A backslash in a string escapes a following quote.
//! - Preprocessor lines are trivia. Definitions and conditions were executed before (in `preprocess`), line
//!   markers (`# 12 "x"`, `#line`, `#file`, `#pragma`, `#ident`) are skipped, and others are ignored with a
//!   warning.

use super::token::{Token, TokenKind};
use crate::Span;
use crate::diag::{Code, Diagnostic};

/// The tokens of a text, and its lexical mistakes.
#[derive(Clone, Debug, Default)]
pub struct Lexed {
    /// Every byte of the text, in order.
    pub tokens: Vec<Token>,
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether an unterminated comment swallowed the rest of the text.
    pub(crate) cut_short: bool,
    /// The number of tokens up to the last `.version`, `.target` or `.address_size`.
    pub(crate) header_end: usize,
    /// The indices of tokens that are braces, colons, `.entry` or `.func`, with which the parser skips
    /// bodies.
    pub(crate) marks: Vec<u32>,
}

/// Splits `source` into tokens. A text of 4 GiB or more becomes one token and one diagnostic.
pub fn lex(source: &str) -> Lexed {
    // Compilers write a token for every two or three bytes.
    let capacity = source.len() / 3;
    cut(source, capacity, |_| true)
}

/// As [`lex`], but only with the tokens of the grammar: no trivia, and no characters that PTX does not use.
pub(crate) fn lex_seen(source: &str) -> Lexed {
    let capacity = source.len() / 4;
    let mut lexed = cut(source, capacity, is_seen);
    lexed.tokens.shrink_to_fit();
    lexed
}

/// Whether the token belongs to the grammar.
pub(super) fn is_seen(kind: TokenKind) -> bool {
    !kind.is_trivia() && kind != TokenKind::Unknown
}

fn cut(source: &str, capacity: usize, keep: impl Fn(TokenKind) -> bool) -> Lexed {
    if u32::try_from(source.len()).is_err() {
        let span = Span::new(0, u32::MAX);
        let token = Token { kind: TokenKind::Unknown, first_on_line: true, after_unknown: false, span };
        return Lexed {
            tokens: vec![token],
            diagnostics: vec![Diagnostic::new(
                Code::TooLarge,
                Span::new(0, 0),
                format!("the text has {} bytes, and at most {} can be read", source.len(), u32::MAX),
            )],
            cut_short: true,
            ..Lexed::default()
        };
    }
    let mut lexer = Lexer {
        source,
        bytes: source.as_bytes(),
        at: 0,
        line_start: true,
        first_on_line: true,
        after_unknown: false,
        before: (TokenKind::Whitespace, Span::default()),
        // Drivers pass texts with a NUL at the end, which counts as a blank.
        content_end: source.trim_end_matches('\0').len(),
        lexed: Lexed { tokens: Vec::with_capacity(capacity), ..Lexed::default() },
    };
    lexer.run(keep);
    lexer.lexed
}

struct Lexer<'s> {
    source: &'s str,
    bytes: &'s [u8],
    at: usize,
    /// Whether only blanks precede `at` on its line.
    line_start: bool,
    /// Whether no token of the grammar precedes on the current line.
    first_on_line: bool,
    /// Whether characters that PTX does not use follow the last token of the grammar.
    after_unknown: bool,
    /// Kind and place of the last token that is neither blank nor comment; initially
    /// [`TokenKind::Whitespace`].
    before: (TokenKind, Span),
    content_end: usize,
    lexed: Lexed,
}

/// `is_blank`, in [`CLASS`].
const BLANK: u8 = 1;
/// `is_follow`, in [`CLASS`].
const FOLLOW: u8 = 2;
/// A byte that is always a token of its own, in [`CLASS`].
const ALONE: u8 = 4;

/// The class of each byte.
static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C) {
            class[byte] |= BLANK;
        }
        if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') {
            class[byte] |= FOLLOW;
        }
        if alone(b).is_some() {
            class[byte] |= ALONE;
        }
        byte += 1;
    }
    class
};

/// The kind of a byte that is always a token of its own.
const fn alone(byte: u8) -> Option<TokenKind> {
    use TokenKind as K;
    Some(match byte {
        b'{' => K::LBrace,
        b'}' => K::RBrace,
        b'[' => K::LBracket,
        b']' => K::RBracket,
        b'(' => K::LParen,
        b')' => K::RParen,
        b',' => K::Comma,
        b';' => K::Semicolon,
        b':' => K::Colon,
        b'?' => K::Question,
        b'~' => K::Tilde,
        b'+' => K::Plus,
        b'-' => K::Minus,
        b'*' => K::Star,
        b'^' => K::Xor,
        _ => return None,
    })
}

fn is_blank(b: u8) -> bool {
    CLASS[b as usize] & BLANK != 0
}

fn is_follow(b: u8) -> bool {
    CLASS[b as usize] & FOLLOW != 0
}

impl<'s> Lexer<'s> {
    fn run(&mut self, keep: impl Fn(TokenKind) -> bool) {
        while let Some(&byte) = self.bytes.get(self.at) {
            let start = self.at;
            let (first_on_line, after_unknown) = (self.first_on_line, self.after_unknown);
            let kind = self.next_kind(byte);
            debug_assert!(self.at > start, "a token is never empty");
            let token = Token { kind, first_on_line, after_unknown, span: self.span_from(start) };
            if keep(kind) {
                let mark = match kind {
                    TokenKind::DotWord => self.header_or_function(start),
                    kind => matches!(kind, TokenKind::LBrace | TokenKind::RBrace | TokenKind::Colon),
                };
                if mark {
                    self.lexed.marks.push(self.lexed.tokens.len() as u32);
                }
                self.lexed.tokens.push(token);
            }
            match kind {
                // The caller has recorded the line ends in these blanks.
                TokenKind::Whitespace
                | TokenKind::BlockComment
                | TokenKind::LineComment
                | TokenKind::UnterminatedComment
                | TokenKind::HashLine => {}
                TokenKind::Unknown => {
                    self.line_start = false;
                    self.after_unknown = true;
                    self.before = (kind, token.span);
                }
                _ => {
                    self.line_start = false;
                    self.first_on_line = false;
                    self.after_unknown = false;
                    self.before = (kind, token.span);
                }
            }
        }
    }

    /// Records a word that begins a directive of the header. Returns whether the word begins a function.
    fn header_or_function(&mut self, start: usize) -> bool {
        match self.at - start {
            5 | 6 => matches!(&self.bytes[start..self.at], b".entry" | b".func"),
            7 | 8 | 13 => {
                if matches!(&self.bytes[start..self.at], b".version" | b".target" | b".address_size") {
                    self.lexed.header_end = self.lexed.tokens.len() + 1;
                }
                false
            }
            _ => false,
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        super::keep(&mut self.lexed.diagnostics, diagnostic);
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(start as u32, self.at as u32)
    }

    #[inline]
    fn skip_while(&mut self, accept: impl Fn(u8) -> bool) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|b| !accept(*b)).unwrap_or(rest.len());
    }

    fn skip_line(&mut self) {
        self.skip_while(|b| b != b'\n');
    }

    /// Consumes a token that begins with `byte`, and returns its kind.
    #[inline]
    fn next_kind(&mut self, byte: u8) -> TokenKind {
        let class = CLASS[byte as usize];
        if class & BLANK != 0 {
            return self.whitespace();
        }
        if class & ALONE != 0
            && let Some(kind) = alone(byte)
        {
            return self.punctuation(kind, 1);
        }
        match byte {
            0 if self.at >= self.content_end => self.whitespace(),
            0xEF if self.at == 0 && self.source.starts_with('\u{FEFF}') => {
                self.at += '\u{FEFF}'.len_utf8();
                TokenKind::Whitespace
            }
            b'/' if self.peek(1) == b'/' => {
                self.skip_line();
                TokenKind::LineComment
            }
            b'/' if self.peek(1) == b'*' => self.block_comment(),
            b'#' if self.line_start => self.hash_line(),
            b'"' => self.string(),
            b'0'..=b'9' => self.number(),
            b'.' if self.number_after_dot() => self.number(),
            b'.' if is_follow(self.peek(1)) => self.dot_word(),
            b'a'..=b'z' | b'A'..=b'Z' => self.ident(),
            b'%' if self.percent_is_operator() => self.punctuation(TokenKind::Percent, 1),
            b'_' | b'$' | b'%' if is_follow(self.peek(1)) => self.ident(),
            b'_' => self.punctuation(TokenKind::Sink, 1),
            b'@' if self.bytes[self.at..].starts_with(b"@@") => self.dwarf_line(),
            _ => match self.operator() {
                Some((kind, length)) => self.punctuation(kind, length),
                None => self.unknown(),
            },
        }
    }

    fn punctuation(&mut self, kind: TokenKind, length: usize) -> TokenKind {
        self.at += length;
        kind
    }

    /// An operator of one or two characters, unless another token begins here.
    fn operator(&self) -> Option<(TokenKind, usize)> {
        use TokenKind as K;
        let kind = match (self.bytes[self.at], self.peek(1)) {
            (b'&', b'&') => return Some((K::AndAnd, 2)),
            (b'|', b'|') => return Some((K::OrOr, 2)),
            (b'<', b'<') => return Some((K::Shl, 2)),
            (b'>', b'>') => return Some((K::Shr, 2)),
            (b'<', b'=') => return Some((K::Le, 2)),
            (b'>', b'=') => return Some((K::Ge, 2)),
            (b'=', b'=') => return Some((K::EqEq, 2)),
            (b'!', b'=') => return Some((K::Ne, 2)),
            (b'@', _) => K::At,
            (b'!', _) => K::Bang,
            (b'/', _) => K::Slash,
            (b'%', _) => K::Percent,
            (b'&', _) => K::And,
            (b'|', _) => K::Or,
            (b'<', _) => K::Lt,
            (b'>', _) => K::Gt,
            (b'=', _) => K::Eq,
            _ => return None,
        };
        Some((kind, 1))
    }

    fn whitespace(&mut self) -> TokenKind {
        let mut new_line = false;
        while let Some(&byte) = self.bytes.get(self.at)
            && (is_blank(byte) || (byte == 0 && self.at >= self.content_end))
        {
            new_line |= byte == b'\n';
            self.at += 1;
        }
        self.line_start |= new_line;
        self.first_on_line |= new_line;
        TokenKind::Whitespace
    }

    fn block_comment(&mut self) -> TokenKind {
        let start = self.at;
        let body = &self.source[start + 2..];
        match body.find("*/") {
            Some(length) => {
                self.at = start + 2 + length + 2;
                let new_line = body[..length].contains('\n');
                self.line_start |= new_line;
                self.first_on_line |= new_line;
                TokenKind::BlockComment
            }
            None => {
                self.at = self.bytes.len();
                self.lexed.cut_short = true;
                let opening = Span::new(start as u32, start as u32 + 2);
                self.report(
                    Diagnostic::new(Code::UnterminatedComment, opening, "this comment has no end")
                        .with_label("opened here")
                        .with_help("end it with `*/`; block comments do not nest")
                        .with_section("4.2"),
                );
                TokenKind::UnterminatedComment
            }
        }
    }

    fn hash_line(&mut self) -> TokenKind {
        let start = self.at;
        self.skip_line();
        // A backslash at the end of a preprocessor line continues it on the next line.
        while self.at < self.bytes.len() && self.source[start..self.at].trim_end_matches('\r').ends_with('\\')
        {
            self.at += 1;
            self.skip_line();
        }
        let span = Span::new(start as u32, (start + self.source[start..self.at].trim_end().len()) as u32);
        let rest = span.text(self.source)[1..].trim_start();
        let word = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
        match word {
            "line" | "file" | "pragma" | "ident" => {}
            _ if word.bytes().all(|b| b.is_ascii_digit()) => {}
            // The preprocessor has executed these if the text is to be checked.
            "include" | "define" | "undef" | "if" | "ifdef" | "ifndef" | "else" | "elif" | "endif"
            | "error" => {}
            _ => self.report(
                Diagnostic::new(
                    Code::Suspicious,
                    span,
                    format!("the line `#{word}` is ignored: there is no such directive"),
                )
                .with_section("4.1"),
            ),
        }
        TokenKind::HashLine
    }

    /// `@@DWARF`, or `@@dwarf` as in the manual's heading, extends to the end of its line.
    fn dwarf_line(&mut self) -> TokenKind {
        let start = self.at;
        self.at += 2;
        self.skip_while(is_follow);
        let keyword = self.span_from(start);
        if keyword.text(self.source).eq_ignore_ascii_case("@@dwarf") {
            self.skip_line();
            return TokenKind::DwarfLine;
        }
        self.at = start + 1;
        TokenKind::At
    }

    fn string(&mut self) -> TokenKind {
        let start = self.at;
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.bytes[self.at] {
                b'"' => {
                    self.at += 1;
                    return TokenKind::Str;
                }
                b'\n' => break,
                b'\\' if matches!(self.peek(1), b'"' | b'\\') => self.at += 2,
                _ => self.at += 1,
            }
        }
        let span = self.span_from(start);
        self.report(
            Diagnostic::new(Code::UnterminatedString, span, "this string has no end on its line")
                .with_help("end it with `\"`")
                .with_section("4.2"),
        );
        TokenKind::UnterminatedStr
    }

    fn ident(&mut self) -> TokenKind {
        self.at += 1;
        self.skip_while(is_follow);
        TokenKind::Ident
    }

    /// A dot and a word. The word can continue with `::`, as in `.shared::cta`, and then with a ratio, as in
    /// `.sp::2:4`.
    fn dot_word(&mut self) -> TokenKind {
        self.at += 1;
        self.skip_while(is_follow);
        while self.peek(0) == b':' && self.peek(1) == b':' && is_follow(self.peek(2)) {
            self.at += 2;
            let start = self.at;
            self.skip_while(is_follow);
            let number = self.bytes[start..self.at].iter().all(u8::is_ascii_digit);
            if number && self.peek(0) == b':' && self.peek(1).is_ascii_digit() {
                self.at += 1;
                self.skip_while(|b| b.is_ascii_digit());
            }
        }
        TokenKind::DotWord
    }

    /// Whether the dot begins a number, as in `.5` and `.5e3`, and not a word, as in `.1d` or the `.16` of
    /// `x.16`.
    fn number_after_dot(&self) -> bool {
        if !self.peek(1).is_ascii_digit() {
            return false;
        }
        let rest = &self.bytes[self.at + 1..];
        let (before, place) = self.before;
        let touches_word =
            place.end as usize == self.at && matches!(before, TokenKind::Ident | TokenKind::DotWord);
        let run = rest.iter().take_while(|b| is_follow(**b)).count();
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        !touches_word && digits > 0 && (digits == run || self.exponent_length(self.at + 1 + digits).is_some())
    }

    /// The length of `e5`, `E+05` and the like at `at`.
    fn exponent_length(&self, at: usize) -> Option<usize> {
        let rest = self.bytes.get(at..)?;
        if !matches!(rest.first(), Some(b'e' | b'E')) {
            return None;
        }
        let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
        let digits = rest[1 + sign..].iter().take_while(|b| b.is_ascii_digit()).count();
        (digits > 0).then_some(1 + sign + digits)
    }

    /// A number with all adjacent word characters; the parser decodes it and reports mistakes.
    fn number(&mut self) -> TokenKind {
        let prefix = [self.peek(0), self.peek(1).to_ascii_lowercase()];
        let kind = match &prefix {
            b"0x" | b"0b" => TokenKind::Integer,
            b"0f" => TokenKind::SingleBits,
            b"0d" => TokenKind::DoubleBits,
            _ => self.decimal(),
        };
        self.skip_while(is_follow);
        kind
    }

    /// Digits, a point that begins no word, and an exponent.
    fn decimal(&mut self) -> TokenKind {
        let mut kind = TokenKind::Integer;
        self.skip_while(|b| b.is_ascii_digit());
        let word_follows = is_follow(self.peek(1)) && !self.peek(1).is_ascii_digit();
        if self.peek(0) == b'.' && (!word_follows || self.exponent_length(self.at + 1).is_some()) {
            kind = TokenKind::Decimal;
            self.at += 1;
            self.skip_while(|b| b.is_ascii_digit());
        }
        if let Some(length) = self.exponent_length(self.at) {
            kind = TokenKind::Decimal;
            self.at += length;
        }
        kind
    }

    fn percent_is_operator(&self) -> bool {
        let (before, place) = self.before;
        match before {
            TokenKind::RParen => self.peek(1).is_ascii_digit(),
            TokenKind::Ident => place.end - place.start == 7 && place.text(self.source) == "WARP_SZ",
            kind => kind.is_number(),
        }
    }

    /// A run of characters that PTX does not use, as one token.
    fn unknown(&mut self) -> TokenKind {
        let start = self.at;
        if self.bytes[start] == b'\'' {
            // A character constant of C is one mistake.
            let text = self.source[start + 1..].chars();
            let inner: usize =
                text.take(3).take_while(|c| !matches!(c, '\'' | '\n')).map(char::len_utf8).sum();
            if self.peek(1 + inner) == b'\'' {
                self.at += 1 + inner;
            }
        }
        loop {
            let length = self.source[self.at..].chars().next().map_or(1, char::len_utf8);
            self.at += length;
            let Some(&next) = self.bytes.get(self.at) else { break };
            if next.is_ascii() {
                break;
            }
        }
        let span = self.span_from(start);
        let text = span.text(self.source);
        if text == "\\" {
            // ptxas treats it as a blank.
            self.report(
                Diagnostic::new(Code::NonStandard, span, "a `\\` that does not continue a line")
                    .with_label("without effect")
                    .with_section("4.1"),
            );
            return TokenKind::Whitespace;
        }
        let shown = super::characters::shown(text);
        let mut diagnostic = Diagnostic::new(
            Code::UnexpectedCharacter,
            span,
            format!("PTX does not use the character {shown}"),
        )
        .with_section("4.1");
        if let Some(ascii) = super::characters::instead(text) {
            diagnostic = diagnostic.with_help(format!("use {ascii} instead"));
        }
        if text == "." {
            diagnostic.message = "a `.` without a word after it".into();
        } else if text == "#" {
            diagnostic = diagnostic
                .with_help("a preprocessor line begins with `#` as the first character of its line");
        }
        self.report(diagnostic);
        TokenKind::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TokenKind as K;

    /// The tokens other than blanks, as kind and text.
    fn tokens(source: &str) -> Vec<(TokenKind, &str)> {
        let lexed = lex(source);
        assert_eq!(lexed.diagnostics, [], "in {source}");
        let seen = lexed.tokens.into_iter().filter(|t| t.kind != K::Whitespace);
        seen.map(|t| (t.kind, t.span.text(source))).collect()
    }

    #[test]
    fn a_dot_begins_a_number_or_a_word() {
        assert_eq!(tokens(".5 .5e3 5. 5.e1"), [".5", ".5e3", "5.", "5.e1"].map(|t| (K::Decimal, t)));
        assert_eq!(tokens(".1d .2dms .b8x4 .5x"), [".1d", ".2dms", ".b8x4", ".5x"].map(|t| (K::DotWord, t)));
        assert_eq!(tokens("a.16"), [(K::Ident, "a"), (K::DotWord, ".16")]);
        assert_eq!(tokens("8.b8"), [(K::Integer, "8"), (K::DotWord, ".b8")]);
        assert_eq!(tokens(".sp::2:4.x4"), [(K::DotWord, ".sp::2:4"), (K::DotWord, ".x4")]);
        assert_eq!(tokens(".a::b.c"), [(K::DotWord, ".a::b"), (K::DotWord, ".c")]);
        assert_eq!(tokens(".version 6.4"), [(K::DotWord, ".version"), (K::Decimal, "6.4")]);
    }

    #[test]
    fn identifiers_follow_the_manual() {
        let names = ["a", "a_$9", "_a", "$L__BB0_1", "%r1", "%1", "__", "$0"];
        assert_eq!(tokens(&names.join(" ")), names.map(|t| (K::Ident, t)));
        assert_eq!(tokens("_ a%b"), [(K::Sink, "_"), (K::Ident, "a"), (K::Ident, "%b")]);
        assert_eq!(tokens("5%3"), [(K::Integer, "5"), (K::Percent, "%"), (K::Integer, "3")]);
        assert_eq!(tokens(")%f"), [(K::RParen, ")"), (K::Ident, "%f")]);
    }

    #[test]
    fn comments_strings_and_lines_hide_what_is_in_them() {
        assert_eq!(tokens("/* // \" */a"), [(K::BlockComment, "/* // \" */"), (K::Ident, "a")]);
        assert_eq!(tokens("// /* \"\na"), [(K::LineComment, "// /* \""), (K::Ident, "a")]);
        assert_eq!(tokens(r#""a // \" /*"a"#), [(K::Str, r#""a // \" /*""#), (K::Ident, "a")]);
        assert_eq!(tokens("# 1 \"x\ny"), [(K::HashLine, "# 1 \"x"), (K::Ident, "y")]);
        assert_eq!(
            tokens("@@DWARF .x \"\n@p"),
            [(K::DwarfLine, "@@DWARF .x \""), (K::At, "@"), (K::Ident, "p")]
        );
    }
}
