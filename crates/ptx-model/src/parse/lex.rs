//! Tokens of a litmus test after its header.

use crate::Error;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'t> {
    /// A name; a leading `%` is not part of it.
    Word(&'t str),
    Number(u64),
    Mark(&'static str),
    End,
}

/// A token and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind<'t>,
    pub(super) line: u32,
    pub(super) column: u32,
    /// Where it begins and ends in the text.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether a `%` stood before the name.
    pub(super) percent: bool,
}

/// Marks, longer ones before their beginnings.
const MARKS: &[&str] = &[
    "/\\", "\\/", "&&", "||", "==", "!=", "<=", ">=", "->", "::", "{", "}", "[", "]", "(", ")", ";", ",",
    ":", "|", "@", "=", "<", ">", "+", "-", "*", "~", "!", "&", ".", "?",
];

/// The place of a byte of a text: line and column, from 1.
pub(super) fn place(text: &str, at: usize) -> (u32, u32) {
    let before = &text[..at];
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().unwrap_or(before).chars().count() as u32 + 1;
    (line, column)
}

/// The length of a comment at the beginning of a text, if there is one: `//`, `#` to the end of the line,
/// `(* *)`.
pub(super) fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") || text.starts_with('#') {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    let inner = text.strip_prefix("(*")?;
    Some(inner.find("*)").map_or(text.len(), |end| end + 4))
}

/// The tokens of a text from a place on; the last is [`Kind::End`].
///
/// # Errors
/// A character or number that is none.
pub(super) fn tokens(text: &str, from: usize) -> Result<Vec<Token<'_>>, Error> {
    let mut tokens = Vec::new();
    let (mut line, mut column) = place(text, from);
    let mut at = from;
    while at < text.len() {
        let rest = &text[at..];
        let length = comment(rest).or_else(|| {
            let c = rest.chars().next()?;
            c.is_whitespace().then_some(c.len_utf8())
        });
        if let Some(length) = length {
            for c in rest[..length].chars() {
                (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
            }
            at += length;
            continue;
        }
        let (kind, length, percent) = token(rest).map_err(|why| Error::text(line, column, why))?;
        tokens.push(Token { kind, line, column, start: at, end: at + length, percent });
        column += rest[..length].chars().count() as u32;
        at += length;
    }
    tokens.push(Token { kind: Kind::End, line, column, start: at, end: at, percent: false });
    Ok(tokens)
}

fn token(rest: &str) -> Result<(Kind<'_>, usize, bool), String> {
    let inner = rest.strip_prefix('%').unwrap_or(rest);
    let percent = inner.len() != rest.len();
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let end = inner.find(|c| !part(c)).unwrap_or(inner.len());
    let word = &inner[..end];
    let length = end + usize::from(percent);
    if word.starts_with(|c: char| c.is_ascii_digit()) && !percent {
        let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
        let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        return match number {
            Ok(number) => Ok((Kind::Number(number), length, false)),
            Err(_) => Err(format!("`{word}` is no number of at most 64 bits")),
        };
    }
    if !word.is_empty() {
        return Ok((Kind::Word(word), length, percent));
    }
    match MARKS.iter().find(|mark| rest.starts_with(**mark)) {
        Some(mark) => Ok((Kind::Mark(mark), mark.len(), false)),
        None => {
            let c = rest.chars().next().unwrap_or(' ');
            Err(format!("`{}` has no meaning here", c.escape_default()))
        }
    }
}
