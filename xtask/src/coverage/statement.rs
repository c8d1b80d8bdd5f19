//! Splits PTX text into statements, as far as test coverage needs it, and matches them with patterns.
//!
//! Not the parser on purpose: it also reads forms of vectors, and lines of malformed modules.

/// An instruction of a text: `@%p add.s32 %d, %a, %b`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statement<'a> {
    /// The first word after labels and guard: `add.s32`.
    pub(super) opcode: &'a str,
    /// From the opcode to the end.
    pub(super) whole: &'a str,
}

/// The statements of a line of a module.
pub(super) fn statements(line: &str) -> impl Iterator<Item = Statement<'_>> {
    let code = line.split("//").next().unwrap_or_default();
    code.split(';').filter_map(|part| {
        let mut rest = part.trim();
        while let Some(after) = before_opcode(rest) {
            rest = after;
        }
        let opcode = rest.split_whitespace().next()?;
        Some(Statement { opcode, whole: rest })
    })
}

/// The text after a label, a guard or a brace at the beginning.
fn before_opcode(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix(['{', '}']) {
        return Some(rest.trim_start());
    }
    let end = text.find(char::is_whitespace)?;
    let (word, rest) = text.split_at(end);
    (word.starts_with('@') || word.ends_with(':')).then_some(rest.trim_start())
}

/// The alternatives of a pattern: `add.(u16|u32)` is `add.u16` and `add.u32`. `*` is any text, `\(` a
/// parenthesis.
///
/// # Errors
/// Unbalanced parentheses.
pub(super) fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let escaped = |at: &usize| pattern[..*at].ends_with('\\');
    let open = pattern.match_indices('(').map(|(at, _)| at).find(|at| !escaped(at));
    let Some(open) = open else { return Ok(vec![pattern.replace("\\(", "(")]) };
    let close =
        pattern[open..].find(')').ok_or_else(|| format!("`{pattern}`: parentheses do not match"))? + open;
    let rest = expand(&pattern[close + 1..])?;
    let before = pattern[..open].replace("\\(", "(");
    let one = |word: &str| rest.iter().map(|rest| format!("{before}{word}{rest}")).collect::<Vec<_>>();
    Ok(pattern[open + 1..close].split('|').flat_map(one).collect())
}

/// Whether the whole text matches.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opcodes(line: &str) -> Vec<&str> {
        statements(line).map(|s| s.opcode).collect()
    }

    #[test]
    fn opcodes_follow_labels_guards_and_braces() {
        assert_eq!(opcodes("  L: @!%p add.s32 %d, %a, %b; // sub.s32"), ["add.s32"]);
        assert_eq!(opcodes("{ .reg .b32 %r; mov.u32 %r, 1; }"), [".reg", "mov.u32"]);
        assert_eq!(opcodes("// nothing"), [""; 0]);
    }

    #[test]
    fn alternatives_are_expanded() {
        let all = expand("a(b|)c(d|e)").expect("they match");
        assert_eq!(all, ["abcd", "abce", "acd", "ace"]);
        assert_eq!(expand("a\\(b) (c|d)").expect("they match"), ["a(b) c", "a(b) d"]);
        assert!(expand("a(b").is_err());
    }

    #[test]
    fn stars_are_any_text() {
        assert!(matches("add.*", "add.s32"));
        assert!(matches("ld*.u32 *, [%in+*]", "ld.global.u32 %a, [%in+8]"));
        assert!(!matches("add", "add.s32"));
        assert!(!matches("add.*.s32", "add.s32"));
        assert!(matches("*", ""));
    }
}
