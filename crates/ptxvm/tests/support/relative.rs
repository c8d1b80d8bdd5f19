//! Findings as text that two devices have in common.

use ptxvm::Finding;

/// Findings as text, with addresses relative to their page: if several devices exist at the same time, the
/// system chooses the page where the memory of one begins. Distances from address zero depend on it, too.
pub(crate) fn relative(list: &[Finding]) -> String {
    let text = ptxvm::findings_text(list);
    let mut parts = text.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |all, part| {
        let end = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        let (digits, rest) = part.split_at(end);
        all + "0x" + &digits[digits.len().saturating_sub(3)..] + rest
    });
    let is_far = |word: &str| word.len() > 10 && word.bytes().all(|byte| byte.is_ascii_digit());
    text.split(' ').map(|word| if is_far(word) { "many" } else { word }).collect::<Vec<_>>().join(" ")
}
