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

    /// The text of this span; `""` if the span lies outside of `source`.
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

/// The line starts of a source text, and the counts from which columns are computed.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
    /// The number of scalar values that begin before each multiple of [`STRIDE`]; empty if all are one byte
    /// long.
    counts: Vec<u32>,
}

/// Bytes between two counts. It bounds the cost of a column for lines of any length.
const STRIDE: usize = 1024;

impl LineIndex {
    /// Indexes the line starts of `source`. Lines end with `\n`.
    pub fn new(source: &str) -> Self {
        let mut starts = Vec::with_capacity(source.len() / 32 + 1);
        starts.push(0);
        starts.extend(source.match_indices('\n').map(|(i, _)| i as u32 + 1));
        starts.shrink_to_fit();
        let mut counts = Vec::new();
        if !source.is_ascii() {
            let mut count = 0;
            for stride in source.as_bytes().chunks(STRIDE) {
                counts.push(count);
                count += beginnings(stride);
            }
            counts.push(count);
        }
        Self { starts, counts }
    }

    /// The line and column of byte `offset` of `source`, the text from which this index was made.
    pub fn locate(&self, source: &str, offset: u32) -> Line {
        let row = self.starts.partition_point(|s| *s <= offset).saturating_sub(1);
        let start = self.starts[row] as usize;
        let end = (offset as usize).min(source.len()).max(start);
        let column = self.before(source, end) - self.before(source, start) + 1;
        Line { line: row as u32 + 1, column }
    }

    /// The bytes of the line that contains byte `offset`, without its line end.
    pub fn bytes(&self, source: &str, offset: u32) -> std::ops::Range<usize> {
        let row = self.starts.partition_point(|s| *s <= offset);
        let start = self.starts[row.saturating_sub(1)] as usize;
        let end = self.starts.get(row).map_or(source.len(), |next| *next as usize - 1);
        start..end.max(start)
    }

    /// The number of scalar values that begin before byte `offset`.
    fn before(&self, source: &str, offset: usize) -> u32 {
        match self.counts.get(offset / STRIDE) {
            None => offset as u32,
            Some(count) => {
                let rest = source.as_bytes().get(offset / STRIDE * STRIDE..offset);
                count + rest.map_or(0, beginnings)
            }
        }
    }

    /// The number, from 1, of the line that contains byte `offset`.
    pub fn line(&self, offset: u32) -> u32 {
        self.starts.partition_point(|s| *s <= offset) as u32
    }
}

/// The number of scalar values that begin in these bytes.
fn beginnings(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|b| !matches!(b, 0x80..=0xBF)).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The column by its definition.
    fn column(source: &str, offset: usize) -> u32 {
        let start = source[..offset].rfind('\n').map_or(0, |i| i + 1);
        source[start..offset].chars().count() as u32 + 1
    }

    #[test]
    fn columns_count_scalar_values_in_lines_of_any_length() {
        let long = "aé漢🙂".repeat(1000);
        for source in ["", "abc\n\nx", "é\nab漢c", &long, &format!("{long}\n{long}x"), &"x".repeat(5000)] {
            let index = LineIndex::new(source);
            for (offset, _) in source.char_indices().chain([(source.len(), ' ')]) {
                let place = index.locate(source, offset as u32);
                assert_eq!(place.column, column(source, offset), "{offset}");
                assert_eq!(place.line as usize, source[..offset].matches('\n').count() + 1, "{offset}");
            }
        }
    }
}
