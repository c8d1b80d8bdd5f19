//! The modifiers of an instruction.
//!
//! Invariant: behaves like a list. Up to [`FEW`] words need no allocation, because instructions are numerous
//! and most have few modifiers.

use super::Word;
use crate::Span;

/// The number of words that are stored in place.
const FEW: usize = 4;

/// Words in the order of the text.
#[derive(Clone)]
pub struct Words(Held);

#[derive(Clone)]
enum Held {
    Few(u8, [Word; FEW]),
    Many(Vec<Word>),
}

impl Words {
    /// No words.
    pub const fn new() -> Self {
        Self(Held::Few(0, [Word { span: Span::new(0, 0) }; FEW]))
    }

    /// Adds a word at the end.
    pub fn push(&mut self, word: Word) {
        match &mut self.0 {
            Held::Few(len, words) => match words.get_mut(usize::from(*len)) {
                Some(place) => {
                    *place = word;
                    *len += 1;
                }
                None => {
                    let mut all = words.to_vec();
                    all.push(word);
                    self.0 = Held::Many(all);
                }
            },
            Held::Many(words) => words.push(word),
        }
    }
}

impl Default for Words {
    fn default() -> Self {
        Self::new()
    }
}

impl std::ops::Deref for Words {
    type Target = [Word];

    fn deref(&self) -> &[Word] {
        match &self.0 {
            Held::Few(len, words) => &words[..usize::from(*len)],
            Held::Many(words) => words,
        }
    }
}

impl<'a> IntoIterator for &'a Words {
    type Item = &'a Word;
    type IntoIter = std::slice::Iter<'a, Word>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_in_order_beyond_what_is_held_in_place() {
        let mut words = Words::new();
        for count in 0..2 * FEW as u32 {
            let starts: Vec<u32> = words.iter().map(|word| word.span.start).collect();
            assert_eq!(starts, (0..count).collect::<Vec<u32>>());
            words.push(Word { span: Span::new(count, count + 1) });
        }
    }
}
