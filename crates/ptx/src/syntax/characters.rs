//! Descriptions of characters that PTX does not use, for messages. PTX ISA §4.1.
//!
//! Invariant: a description is visible: blanks, control and format characters are given by number and name.

/// Characters that look like a blank, a quotation mark or another character of PTX, or that are invisible:
/// name, and the PTX character to use instead.
const LOOKALIKES: &[(char, &str, &str)] = &[
    ('\u{a0}', "no-break space", "a blank"),
    ('\u{ad}', "soft hyphen", "nothing"),
    ('\u{1680}', "ogham space mark", "a blank"),
    ('\u{2000}', "en quad", "a blank"),
    ('\u{2001}', "em quad", "a blank"),
    ('\u{2002}', "en space", "a blank"),
    ('\u{2003}', "em space", "a blank"),
    ('\u{2004}', "three-per-em space", "a blank"),
    ('\u{2005}', "four-per-em space", "a blank"),
    ('\u{2006}', "six-per-em space", "a blank"),
    ('\u{2007}', "figure space", "a blank"),
    ('\u{2008}', "punctuation space", "a blank"),
    ('\u{2009}', "thin space", "a blank"),
    ('\u{200a}', "hair space", "a blank"),
    ('\u{200b}', "zero width space", "nothing"),
    ('\u{200c}', "zero width non-joiner", "nothing"),
    ('\u{200d}', "zero width joiner", "nothing"),
    ('\u{200e}', "left-to-right mark", "nothing"),
    ('\u{200f}', "right-to-left mark", "nothing"),
    ('\u{2010}', "hyphen", "`-`"),
    ('\u{2011}', "non-breaking hyphen", "`-`"),
    ('\u{2012}', "figure dash", "`-`"),
    ('\u{2013}', "en dash", "`-`"),
    ('\u{2014}', "em dash", "`-`"),
    ('\u{2018}', "left single quotation mark", "`'`"),
    ('\u{2019}', "right single quotation mark", "`'`"),
    ('\u{201c}', "left double quotation mark", "`\"`"),
    ('\u{201d}', "right double quotation mark", "`\"`"),
    ('\u{2028}', "line separator", "a line end"),
    ('\u{2029}', "paragraph separator", "a line end"),
    ('\u{202f}', "narrow no-break space", "a blank"),
    ('\u{205f}', "medium mathematical space", "a blank"),
    ('\u{2060}', "word joiner", "nothing"),
    ('\u{2212}', "minus sign", "`-`"),
    ('\u{3000}', "ideographic space", "a blank"),
    ('\u{feff}', "byte order mark", "nothing"),
    ('\u{ff0c}', "fullwidth comma", "`,`"),
    ('\u{ff1b}', "fullwidth semicolon", "`;`"),
    ('\u{fffd}', "replacement character: the file is not UTF-8 here", "ASCII"),
];

fn lookalike(c: char) -> Option<&'static (char, &'static str, &'static str)> {
    LOOKALIKES.iter().find(|(other, _, _)| *other == c)
}

/// Describes a run of characters that PTX does not use: the first by its number, and by its name if it has
/// one here.
pub(super) fn shown(text: &str) -> String {
    let Some(first) = text.chars().next().filter(|_| !text.is_ascii()) else {
        return format!("`{}`", text.escape_default());
    };
    // If the run begins with an invisible character, only that one is described.
    let number = format!("U+{:04X}", u32::from(first));
    match lookalike(first) {
        Some((_, name, _)) => format!("{number} ({name}), which is not ASCII"),
        None if first.is_alphanumeric() => format!("`{text}` ({number}), which is not ASCII"),
        None => format!("`{}` ({number}), which is not ASCII", text.escape_debug()),
    }
}

/// The PTX character to use instead of the first character.
pub(super) fn instead(text: &str) -> Option<&'static str> {
    text.chars().next().and_then(lookalike).map(|(_, _, ascii)| *ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_named() {
        assert_eq!(shown("\u{a0}"), "U+00A0 (no-break space), which is not ASCII");
        assert_eq!(shown("\u{200b}x"), "U+200B (zero width space), which is not ASCII");
        assert_eq!(shown("é"), "`é` (U+00E9), which is not ASCII");
        assert_eq!(shown("\u{7}"), "`\\u{7}`");
        // The language tag character: invisible, and without a name here.
        assert_eq!(shown("\u{e0001}"), "`\\u{e0001}` (U+E0001), which is not ASCII");
        assert_eq!(instead("\u{a0}"), Some("a blank"));
        assert_eq!(instead("é"), None);
    }

    #[test]
    fn the_list_is_sorted() {
        assert!(LOOKALIKES.is_sorted_by_key(|(c, _, _)| *c));
    }
}
