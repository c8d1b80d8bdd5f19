//! Sets of small integers, one bit each.
//!
//! Invariant: bits at and above the length are zero, so equality of sets is equality of words.

/// A set of integers below a fixed length.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    /// The empty set of integers below `len`.
    pub fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)] }
    }

    /// Whether `i` is in the set; an `i` beyond the length is not.
    pub fn contains(&self, i: usize) -> bool {
        self.words.get(i / 64).is_some_and(|w| w >> (i % 64) & 1 == 1)
    }

    /// Adds `i`. Returns whether it was absent.
    ///
    /// # Panics
    /// If `i` is far beyond the length.
    pub fn insert(&mut self, i: usize) -> bool {
        let new = !self.contains(i);
        self.words[i / 64] |= 1 << (i % 64);
        new
    }

    /// Removes `i`.
    ///
    /// # Panics
    /// If `i` is far beyond the length.
    pub fn remove(&mut self, i: usize) {
        self.words[i / 64] &= !(1 << (i % 64));
    }

    /// Adds all of `other`. Returns whether the set changed.
    pub fn union(&mut self, other: &BitSet) -> bool {
        let mut changed = false;
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            changed |= *b & !*a != 0;
            *a |= *b;
        }
        changed
    }

    /// Removes all elements that are not in `other`.
    pub fn intersect(&mut self, other: &BitSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    /// Adds all elements of `other` that are not in `except`. Returns whether the set changed.
    pub fn union_except(&mut self, other: &BitSet, except: &BitSet) -> bool {
        let mut changed = false;
        for ((a, b), c) in self.words.iter_mut().zip(&other.words).zip(&except.words) {
            let add = *b & !*c;
            changed |= add & !*a != 0;
            *a |= add;
        }
        changed
    }

    /// Whether the sets have an element in common.
    pub fn meets(&self, other: &BitSet) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// The elements, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                (rest != 0).then(|| {
                    rest &= rest - 1;
                    i * 64 + bit
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::BitSet;

    #[test]
    fn set_operations() {
        let mut a = BitSet::new(130);
        assert!(a.insert(0) && a.insert(64) && a.insert(129) && !a.insert(64));
        assert_eq!(a.iter().collect::<Vec<_>>(), [0, 64, 129]);
        let mut b = BitSet::new(130);
        b.insert(64);
        assert!(a.meets(&b) && !b.union_except(&a, &a));
        assert!(b.union_except(&a, &BitSet::new(130)) && a == b && !b.union(&a));
        b.remove(64);
        assert_eq!(b.count(), 2);
        assert!(!b.contains(64) && !b.contains(100_000));
    }
}
