//! A generated program: its lines and its launch.
//!
//! Invariant: the text is complete: a comment at its head describes the launch, so a program in a file can be
//! run again.

use std::fmt::Write;

/// A statement, or several statements that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// The reducer keeps it: declarations, labels, initial values of registers.
    pub(crate) fixed: bool,
}

/// A module with one entry, `main`.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) lines: Vec<Line>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Seed of the contents of memory.
    pub(crate) data: u64,
    /// Bytes of the columns and the rows after them; 0: as many as old programs need.
    pub(crate) bytes: u32,
}

impl Program {
    /// The module, with its launch as a comment.
    pub(crate) fn text(&self) -> String {
        let ([gx, gy, gz], [bx, by, bz], data) = (self.grid, self.block, self.data);
        let mut text = format!("// agree: grid {gx} {gy} {gz} block {bx} {by} {bz} data {data}");
        if self.bytes != 0 {
            let _never = write!(text, " bytes {}", self.bytes);
        }
        text.push('\n');
        for line in &self.lines {
            let _never = writeln!(text, "{}", line.text);
        }
        text
    }

    /// Parses the output of [`Program::text`]; each line is one line of the program.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let head = text.lines().find_map(|line| line.strip_prefix("// agree: "))?;
        let mut numbers = head.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        let mut three = || -> Option<[u32; 3]> {
            let mut next = || u32::try_from(numbers.next()?).ok();
            Some([next()?, next()?, next()?])
        };
        let (grid, block) = (three()?, three()?);
        let data = numbers.next()?;
        let bytes = numbers.next().map_or(Some(0), |bytes| u32::try_from(bytes).ok())?;
        let lines = text.lines().filter(|line| !line.starts_with("// agree: "));
        let lines = lines.map(|line| Line { text: line.to_owned(), fixed: false }).collect();
        Some(Self { lines, grid, block, data, bytes })
    }

    /// Threads of a CTA.
    pub(crate) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// CTAs.
    pub(crate) fn ctas(&self) -> u32 {
        self.grid.iter().product()
    }
}
