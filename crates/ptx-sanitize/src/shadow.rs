//! The undefined bits of guest memory, by generic address.
//!
//! They are in the machine's shadow memory, which native code reads and writes too. Where the system has no
//! room for that, they are in pages of this module's own: one byte for each byte of undefined memory that was
//! touched since, and ranges of whole pages that are undefined.
//!
//! Invariant: memory is defined unless it was marked as undefined.

use ptx_exec::shadow::ShadowMemory;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Hashes page numbers: they are spread by a multiplication (Fibonacci hashing).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// Undefined bits of memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    /// The machine's shadow memory. Then the pages and ranges below are empty: memory without a shadow there
    /// is defined.
    machine: Option<Arc<ShadowMemory>>,
    /// By number: for each byte, its undefined bits.
    pages: HashMap<u64, Box<[u8; PAGE as usize]>, BuildHasherDefault<PageHasher>>,
    /// Start and end of ranges of whole pages that are undefined where they are not in `pages`; never
    /// adjacent.
    undefined: BTreeMap<u64, u64>,
}

impl Shadow {
    /// Uses the machine's shadow memory from now on.
    pub(crate) fn share(&mut self, machine: &Arc<ShadowMemory>) {
        self.machine = Some(Arc::clone(machine));
    }

    /// Whether the machine marks windows that begin as undefined.
    pub(crate) fn is_shared(&self) -> bool {
        self.machine.is_some()
    }

    /// Whether a page that is not in `pages` is undefined.
    fn default_of(&self, page: u64) -> bool {
        self.undefined.range(..=page * PAGE).next_back().is_some_and(|(_, end)| *end > page * PAGE)
    }

    fn page(&mut self, page: u64) -> &mut [u8; PAGE as usize] {
        let fill = if self.pages.contains_key(&page) || !self.default_of(page) { 0 } else { 0xff };
        self.pages.entry(page).or_insert_with(|| Box::new([fill; PAGE as usize]))
    }

    /// Whether there is anything undefined at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.machine.is_none() && self.pages.is_empty() && self.undefined.is_empty()
    }

    /// Looks up bits at addresses near each other.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader { shadow: self, page: u64::MAX, bits: None, fill: 0 }
    }

    /// As [`Shadow::define`], of a range within few pages.
    pub(crate) fn define_few(&mut self, range: Range<u64>) {
        if let Some(machine) = &self.machine {
            return machine.mark(range, false);
        }
        let mut at = range.start;
        while at < range.end {
            let page = at / PAGE;
            let end = range.end.min((page + 1) * PAGE);
            let (from, to) = ((at % PAGE) as usize, (at % PAGE + (end - at)) as usize);
            if let Some(bits) = self.pages.get_mut(&page) {
                bits[from..to].fill(0);
            } else if self.default_of(page) {
                self.page(page)[from..to].fill(0);
            }
            at = end;
        }
    }

    /// The undefined bits of up to eight bytes, the first in the low byte.
    pub(crate) fn bits(&self, address: u64, bytes: u32) -> u64 {
        if let Some(machine) = &self.machine {
            return machine.bits(address, bytes);
        }
        let (page, at) = (address / PAGE, (address % PAGE) as usize);
        if at + bytes as usize <= PAGE as usize {
            return match self.pages.get(&page) {
                Some(page) => {
                    let mut word = [0; 8];
                    word[..bytes as usize].copy_from_slice(&page[at..at + bytes as usize]);
                    u64::from_le_bytes(word)
                }
                None if self.undefined.is_empty() || !self.default_of(page) => 0,
                None => width(8 * bytes),
            };
        }
        let byte = |i: u32| self.bits(address.wrapping_add(u64::from(i)), 1) << (8 * i);
        (0..bytes).fold(0, |bits, i| bits | byte(i))
    }

    /// Sets the undefined bits of up to eight bytes.
    pub(crate) fn set(&mut self, address: u64, bytes: u32, bits: u64) {
        if let Some(machine) = &self.machine {
            return machine.set(address, bytes, bits);
        }
        let (page, at) = (address / PAGE, (address % PAGE) as usize);
        if at + bytes as usize > PAGE as usize {
            for i in 0..bytes {
                self.set(address.wrapping_add(u64::from(i)), 1, bits >> (8 * i) & 0xff);
            }
            return;
        }
        if bits == 0 && !self.pages.contains_key(&page) && !self.default_of(page) {
            return;
        }
        let word = bits.to_le_bytes();
        self.page(page)[at..at + bytes as usize].copy_from_slice(&word[..bytes as usize]);
    }

    /// Memory is undefined from now on.
    pub(crate) fn undefine(&mut self, range: Range<u64>) {
        if let Some(machine) = &self.machine {
            return machine.mark(range, true);
        }
        let whole = self.edges(range, 0xff);
        if whole.is_empty() {
            return;
        }
        self.forget(&whole);
        let (mut start, mut end) = (whole.start, whole.end);
        let near: Vec<(u64, u64)> = self
            .undefined
            .range(..=end)
            .rev()
            .take_while(|(_, e)| **e >= start)
            .map(|(s, e)| (*s, *e))
            .collect();
        for (from, to) in near {
            self.undefined.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.undefined.insert(start, end);
    }

    /// Memory is defined from now on.
    pub(crate) fn define(&mut self, range: Range<u64>) {
        if let Some(machine) = &self.machine {
            return machine.mark(range, false);
        }
        if self.is_empty() {
            return;
        }
        let whole = self.edges(range, 0);
        if whole.is_empty() {
            return;
        }
        self.forget(&whole);
        let over: Vec<(u64, u64)> = self
            .undefined
            .range(..whole.end)
            .rev()
            .take_while(|(_, e)| **e > whole.start)
            .map(|(s, e)| (*s, *e))
            .collect();
        for (from, to) in over {
            self.undefined.remove(&from);
            if from < whole.start {
                self.undefined.insert(from, whole.start);
            }
            if to > whole.end {
                self.undefined.insert(whole.end, to);
            }
        }
    }

    /// Writes what lies in pages at the ends of a range that it does not fill, and returns the rest: whole
    /// pages.
    fn edges(&mut self, range: Range<u64>, bits: u8) -> Range<u64> {
        let (start, end) = (range.start.next_multiple_of(PAGE), range.end / PAGE * PAGE);
        let mut part = |from: u64, to: u64| {
            if from >= to
                || bits == 0 && !self.pages.contains_key(&(from / PAGE)) && !self.default_of(from / PAGE)
            {
                return;
            }
            let (at, length) = ((from % PAGE) as usize, (to - from) as usize);
            self.page(from / PAGE)[at..at + length].fill(bits);
        };
        if start > end {
            part(range.start, range.end);
            return 0..0;
        }
        part(range.start, start.min(range.end));
        part(end.max(range.start), range.end);
        start..end
    }

    fn forget(&mut self, whole: &Range<u64>) {
        let pages = whole.start / PAGE..whole.end / PAGE;
        if pages.end - pages.start > self.pages.len() as u64 {
            self.pages.retain(|page, _| !pages.contains(page));
        } else {
            for page in pages {
                self.pages.remove(&page);
            }
        }
    }

    /// Copies what is known of bytes to other bytes.
    pub(crate) fn copy(&mut self, from: u64, to: u64, bytes: u64) {
        if let Some(machine) = &self.machine {
            return machine.copy(from, to, bytes);
        }
        if self.is_empty() {
            return;
        }
        // What is undefined of the source is looked up before the destination changes: they may overlap.
        let mut parts: Vec<(u64, Part)> = Vec::new();
        let mut at = 0;
        while at < bytes {
            let page = (from + at) / PAGE;
            let length = (bytes - at).min(PAGE - (from + at) % PAGE);
            let start = ((from + at) % PAGE) as usize;
            match self.pages.get(&page) {
                Some(page) => {
                    parts.push((at, Part::Bits(page[start..start + length as usize].into())));
                }
                None if self.default_of(page) => match parts.last_mut() {
                    Some((first, Part::Whole(whole))) if *first + *whole == at => *whole += length,
                    _ => parts.push((at, Part::Whole(length))),
                },
                None => {}
            }
            at += length;
        }
        self.define(to..to.saturating_add(bytes));
        for (at, part) in parts {
            match part {
                Part::Whole(length) => self.undefine(to + at..to + at + length),
                Part::Bits(bits) => {
                    for (at, bits) in (to + at..).step_by(8).zip(bits.chunks(8)) {
                        let mut word = [0; 8];
                        word[..bits.len()].copy_from_slice(bits);
                        self.set(at, bits.len() as u32, u64::from_le_bytes(word));
                    }
                }
            }
        }
    }

    /// Runs of bytes with undefined bits, at most so many.
    pub(crate) fn runs(&self, range: Range<u64>, most: usize) -> Vec<Range<u64>> {
        if let Some(machine) = &self.machine {
            return machine.runs(range, most);
        }
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut at = range.start;
        while at < range.end && runs.len() <= most {
            let page = at / PAGE;
            let end = ((page + 1) * PAGE).min(range.end);
            match self.pages.get(&page) {
                Some(bits) => {
                    for address in at..end {
                        if bits[(address % PAGE) as usize] != 0 {
                            join(&mut runs, address..address + 1);
                        }
                    }
                }
                None if self.default_of(page) => join(&mut runs, at..end),
                None => {}
            }
            at = end;
        }
        runs.truncate(most);
        runs
    }
}

/// Looks up bits, and remembers the page that it was at last.
pub(crate) struct Reader<'a> {
    shadow: &'a Shadow,
    page: u64,
    bits: Option<&'a [u8; PAGE as usize]>,
    /// All bits of the page where it has no list.
    fill: u64,
}

impl Reader<'_> {
    /// Whether a range lies in a page, is short, and is defined.
    pub(crate) fn is_defined(&mut self, start: u64, end: u64) -> bool {
        const SHORT: u64 = 1024;
        let page = start / PAGE;
        if end <= start || end - start > SHORT || (end - 1) / PAGE != page {
            return false;
        }
        if let Some(machine) = &self.shadow.machine {
            return machine.runs(start..end, 1).is_empty();
        }
        self.go_to(page);
        let at = (start % PAGE) as usize;
        match self.bits {
            Some(bits) => bits[at..at + (end - start) as usize].iter().fold(0, |any, byte| any | byte) == 0,
            None => self.fill == 0,
        }
    }

    #[inline]
    fn go_to(&mut self, page: u64) {
        if page != self.page {
            self.page = page;
            self.bits = self.shadow.pages.get(&page).map(|bits| &**bits);
            self.fill = if self.bits.is_none() && self.shadow.default_of(page) { u64::MAX } else { 0 };
        }
    }

    /// As [`Shadow::bits`].
    #[inline]
    pub(crate) fn bits(&mut self, address: u64, bytes: u32) -> u64 {
        if let Some(machine) = &self.shadow.machine {
            return machine.bits(address, bytes);
        }
        let (page, at) = (address / PAGE, (address % PAGE) as usize);
        if at + bytes as usize > PAGE as usize {
            return self.shadow.bits(address, bytes);
        }
        self.go_to(page);
        match self.bits {
            Some(bits) => {
                let mut word = [0; 8];
                word[..bytes as usize].copy_from_slice(&bits[at..at + bytes as usize]);
                u64::from_le_bytes(word)
            }
            None => self.fill & width(8 * bytes),
        }
    }
}

/// What is undefined of a part of a copy.
enum Part {
    /// So many bytes as a whole.
    Whole(u64),
    /// By byte, these bits.
    Bits(Box<[u8]>),
}

fn join(runs: &mut Vec<Range<u64>>, run: Range<u64>) {
    match runs.last_mut() {
        Some(last) if last.end == run.start => last.end = run.end,
        _ => runs.push(run),
    }
}

/// So many low bits.
pub(crate) fn width(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_bytes() {
        let mut shadow = Shadow::default();
        let base = 0x7000_0000_0100;
        shadow.undefine(base..base + 10 * PAGE);
        assert_eq!(shadow.bits(base - 1, 2), 0xff00);
        assert_eq!(shadow.bits(base + 10 * PAGE - 1, 2), 0xff);
        assert_eq!(shadow.bits(base + 5 * PAGE, 8), u64::MAX);
        shadow.set(base + 5 * PAGE, 4, 0x0000_00f0);
        assert_eq!(shadow.bits(base + 5 * PAGE, 8), 0xffff_ffff_0000_00f0);
        shadow.define(base + 4..base + 9 * PAGE);
        assert_eq!(shadow.bits(base, 8), 0xffff_ffff);
        assert_eq!(shadow.bits(base + 5 * PAGE, 8), 0);
        assert_eq!(
            shadow.runs(base - PAGE..base + 20 * PAGE, 9),
            [base..base + 4, base + 9 * PAGE..base + 10 * PAGE]
        );
        shadow.copy(base + 2, base + PAGE, 4);
        assert_eq!(shadow.bits(base + PAGE, 4), 0xffff);
        shadow.define(0..u64::MAX - PAGE);
        assert!(shadow.runs(base..base + 20 * PAGE, 9).is_empty());
    }
}
