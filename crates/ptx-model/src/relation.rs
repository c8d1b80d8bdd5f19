//! Binary relations over the events of one execution, as a matrix of bits.
//!
//! Invariant: both sides of a relation are events `0..len`, and `len` is at most [`MOST_EVENTS`]. Relations
//! are independent of the meaning of events.

/// Most events of one execution: a row of a relation is one machine word of this many bits.
pub const MOST_EVENTS: usize = 128;

/// A binary relation over the events of one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    rows: Vec<u128>,
}

impl Relation {
    /// The empty relation over so many events.
    pub fn new(len: usize) -> Self {
        debug_assert!(len <= MOST_EVENTS, "the enumerator bounds the events");
        Self { rows: vec![0; len] }
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no pair is related.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| *row == 0)
    }

    /// Whether `a` is related to `b`.
    pub fn has(&self, a: usize, b: usize) -> bool {
        self.rows[a] >> b & 1 != 0
    }

    /// Relates `a` to `b`.
    pub fn set(&mut self, a: usize, b: usize) {
        self.rows[a] |= 1 << b;
    }

    /// The events that `a` is related to, as bits.
    pub fn row(&self, a: usize) -> u128 {
        self.rows[a]
    }

    /// Relates `a` to all events of `set` as well.
    pub fn add_row(&mut self, a: usize, set: u128) {
        self.rows[a] |= set;
    }

    /// Keeps of the pairs of `a` those whose second event is in `set`.
    pub fn mask_row(&mut self, a: usize, set: u128) {
        self.rows[a] &= set;
    }

    /// Adds the pairs of another relation.
    pub fn union(&mut self, other: &Self) {
        for (row, more) in self.rows.iter_mut().zip(&other.rows) {
            *row |= more;
        }
    }

    /// The pairs `(a, c)` with `(a, b)` here and `(b, c)` in `other`.
    pub fn then(&self, other: &Self) -> Self {
        let starts = other.starts();
        let reach = |row: u128| bits(row & starts).fold(0, |all, b| all | other.rows[b]);
        Self { rows: self.rows.iter().map(|row| reach(*row)).collect() }
    }

    /// The same with every event related to itself as well.
    pub fn or_same(&self) -> Self {
        Self { rows: self.rows.iter().enumerate().map(|(a, row)| row | 1 << a).collect() }
    }

    /// Makes the relation transitive.
    pub fn close(&mut self) {
        for middle in 0..self.rows.len() {
            let beyond = self.rows[middle];
            if beyond == 0 {
                continue;
            }
            for row in &mut self.rows {
                if *row >> middle & 1 != 0 {
                    *row |= beyond;
                }
            }
        }
    }

    /// Whether some event is related to itself.
    pub fn has_same(&self) -> bool {
        self.rows.iter().enumerate().any(|(a, row)| row >> a & 1 != 0)
    }

    /// The events that are related to some event, as bits.
    fn starts(&self) -> u128 {
        self.rows.iter().enumerate().fold(0, |all, (a, row)| all | u128::from(*row != 0) << a)
    }

    /// Whether following the pairs leads from some event back to it.
    pub fn is_cyclic(&self) -> bool {
        // Events from which no pair leads to another that is left are on no cycle.
        let mut left = self.starts();
        loop {
            let ends = bits(left).filter(|a| self.rows[*a] & left == 0).fold(0, |all, a| all | 1 << a);
            if ends == 0 {
                return left != 0;
            }
            left &= !ends;
        }
    }

    /// All related pairs, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.rows.iter().enumerate().flat_map(|(a, row)| bits(*row).map(move |b| (a, b)))
    }
}

/// The numbers of the bits that are set, lowest first.
pub(crate) fn bits(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(len: usize, pairs: &[(usize, usize)]) -> Relation {
        let mut relation = Relation::new(len);
        for (a, b) in pairs {
            relation.set(*a, *b);
        }
        relation
    }

    #[test]
    fn closure_composition_and_cycles() {
        let chain = of(4, &[(0, 1), (1, 2), (2, 3)]);
        assert!(!chain.is_cyclic());
        let mut closed = chain.clone();
        closed.close();
        assert_eq!(closed, of(4, &[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]));
        assert_eq!(chain.then(&chain), of(4, &[(0, 2), (1, 3)]));
        let mut ring = chain;
        ring.set(3, 0);
        assert!(ring.is_cyclic() && !ring.has_same());
        assert_eq!(bits(0b1010_0001).collect::<Vec<_>>(), [0, 5, 7]);
        assert!(of(128, &[(127, 126), (126, 127)]).is_cyclic());
    }
}
