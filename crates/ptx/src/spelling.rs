//! Suggestions for misspelled words.
//!
//! Invariant: a suggestion is one of the candidates that the caller passes. The time per word is bounded:
//! words longer than 64 bytes are never compared.

/// The longest compared word, in bytes.
const LONGEST: usize = 64;
/// The most suggested candidates.
const MOST: usize = 3;

/// The candidates with the smallest edit distance to `word`, at most three, sorted; none if the distance is
/// too large for a typing error. A candidate that differs only in case is the nearest.
pub(crate) fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Vec<&'c str> {
    let limit = (1 + word.len() / 4).min(3);
    if word.len() > LONGEST {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = candidates
        .filter(|c| c.len() <= LONGEST && c.len().abs_diff(word.len()) <= limit)
        .map(|c| (if c.eq_ignore_ascii_case(word) { 0 } else { distance(word.as_bytes(), c.as_bytes()) }, c))
        // A candidate that keeps no byte of the word is a different word.
        .filter(|(d, c)| *d <= limit && *d < word.len().max(c.len()))
        .collect();
    near.sort_unstable();
    near.dedup();
    let least = near.first().map_or(0, |(d, _)| *d);
    near.into_iter().take_while(|(d, _)| *d == least).take(MOST).map(|(_, c)| c).collect()
}

/// The first of [`nearest`], with a stricter limit: a third of the word.
pub(crate) fn closest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let limit = (word.len() / 3).clamp(1, 3);
    if word.len() > LONGEST {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates.filter(|c| c.len() <= LONGEST && c.len().abs_diff(word.len()) <= limit) {
        let distance = distance(word.as_bytes(), candidate.as_bytes());
        if distance <= limit && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// A question with the names: `` did you mean `a` or `b`? ``
pub(crate) fn question<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(|n| format!("`{n}`")).collect();
    format!("did you mean {}?", names.join(" or "))
}

/// Edit distance: insertions, deletions, replacements, and swaps of neighbours count 1 each.
fn distance(a: &[u8], b: &[u8]) -> usize {
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

    #[test]
    fn suggestions_are_near() {
        assert_eq!(closest("%r1o", ["%r10", "%f1"].into_iter()), Some("%r10"));
        assert_eq!(closest("smeme", ["smem", "x"].into_iter()), Some("smem"));
        assert_eq!(closest("abc", ["xyz"].into_iter()), None);
        assert_eq!(nearest("gobal", ["local", "global", "shared"].into_iter()), ["global"]);
        assert_eq!(nearest("GLOBAL", ["local", "global"].into_iter()), ["global"]);
        assert_eq!(nearest("wid", ["hi", "lo", "wide"].into_iter()), ["wide"]);
        assert!(nearest("ab", ["xy"].into_iter()).is_empty());
        assert!(nearest("x", ["y"].into_iter()).is_empty());
    }

    #[test]
    fn distances_count_each_edit_once() {
        for (a, b, expected) in [("", "", 0), ("abc", "acb", 1), ("kitten", "sitting", 3), ("", "ab", 2)] {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
        }
    }
}
