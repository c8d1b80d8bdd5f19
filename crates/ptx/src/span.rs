//! Places in a source text.
//!
//! Invariant: a [`Span`] is a half-open byte range of the text that it was made from, `start <= end <= len`.
//! Lines and columns are derived on demand and count from 1; a column counts Unicode scalar values.

/// A half-open byte range of one source text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The text of this span, or `""` where the span is not of this text.
    pub fn text(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A line and column of a source text, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line {
    /// Line, from 1.
    pub line: u32,
    /// Column in Unicode scalar values, from 1.
    pub column: u32,
}

/// Where the lines of one source text start.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Indexes the line starts of `source`. Lines end with `\n`.
    pub fn new(source: &str) -> Self {
        let ends = source.match_indices('\n').map(|(i, _)| i as u32 + 1);
        let mut starts = Vec::with_capacity(source.len() / 32 + 1);
        starts.push(0);
        starts.extend(ends);
        starts.shrink_to_fit();
        Self { starts }
    }

    /// The line and column of byte `offset` of `source`, the text that this index was made from.
    pub fn locate(&self, source: &str, offset: u32) -> Line {
        let row = self.starts.partition_point(|s| *s <= offset).saturating_sub(1);
        let start = self.starts[row] as usize;
        let end = (offset as usize).min(source.len()).max(start);
        let column = source.get(start..end).map_or(1, |s| s.chars().count() + 1);
        Line { line: row as u32 + 1, column: column as u32 }
    }

    /// The number (from 1) of the line that holds byte `offset`.
    pub fn line(&self, offset: u32) -> u32 {
        self.starts.partition_point(|s| *s <= offset) as u32
    }
}
