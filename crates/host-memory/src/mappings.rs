//! The mappings of the process: which memory can be read, and which can be written.
//!
//! The system is asked about one address where it can answer that (Linux 6.11 and later), which takes less
//! than a microsecond. Elsewhere its list of all mappings is read, which takes 0.1 milliseconds or more, so
//! [`Mappings::forget`] then keeps the memory that could be written: most memory never loses this right.
//!
//! Invariant: nothing is accessed. What a [`Mappings`] knows was true when it asked. It refuses no memory
//! that could be accessed at the last [`Mappings::forget`].

use crate::system::List;
use crate::{Refused, could_be};
use std::collections::BTreeMap;
use std::ops::Range;

/// The most neighbouring mappings that are joined in each direction.
const JOINED: usize = 64;

/// Memory that can be read: one or more mappings without a gap between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<usize>,
    /// Whether all of it can be written, or none of it.
    pub writable: bool,
}

/// What is known of the mappings of the process.
#[derive(Debug, Default)]
pub struct Mappings {
    /// By first address.
    known: BTreeMap<usize, Mapping>,
    list: Option<List>,
    /// Whether the system does not answer for single addresses.
    reads_list: bool,
}

impl Mappings {
    /// Forgets mappings, because the process may have changed them. Before Linux 6.11 memory that could be
    /// written stays known.
    pub fn forget(&mut self) {
        if self.reads_list {
            self.known.retain(|_, mapping| mapping.writable);
        } else {
            self.known.clear();
        }
    }

    /// The memory around an address; `None` if it cannot be read.
    ///
    /// # Errors
    /// [`Refused`] if the system does not tell.
    pub fn at(&mut self, address: usize) -> Result<Option<Mapping>, Refused> {
        if !could_be(address, 1) {
            return Ok(None);
        }
        if let Some(known) = self.known(address) {
            return Ok(Some(known));
        }
        match self.ask(address) {
            Ok(found) => Ok(found.map(|found| self.learn(found))),
            Err(Refused) => {
                let list = std::fs::read_to_string("/proc/self/maps").map_err(|_| Refused)?;
                self.reads_list = true;
                self.known.clear();
                for mapping in all(&list) {
                    self.learn(mapping);
                }
                Ok(self.known(address))
            }
        }
    }

    /// The memory around an address, by questions about single addresses.
    fn ask(&mut self, address: usize) -> Result<Option<Mapping>, Refused> {
        let list = match self.list.take().filter(List::is_own) {
            Some(list) => list,
            None => List::open()?,
        };
        let list = self.list.insert(list);
        Ok(list.mapping_at(address)?.map(|found| joined(found, |address| list.mapping_at(address))))
    }

    fn known(&self, address: usize) -> Option<Mapping> {
        let (_, mapping) = self.known.range(..=address).next_back()?;
        mapping.range.contains(&address).then(|| mapping.clone())
    }

    fn learn(&mut self, mapping: Mapping) -> Mapping {
        self.known.insert(mapping.range.start, mapping.clone());
        mapping
    }
}

/// A mapping with its neighbours that have the same rights.
fn joined(mut of: Mapping, mut at: impl FnMut(usize) -> Result<Option<Mapping>, Refused>) -> Mapping {
    let mut beside = |address: usize, writable: bool| match at(address) {
        Ok(Some(next)) if next.writable == writable => Some(next),
        _ => None,
    };
    for _ in 0..JOINED {
        let Some(next) = beside(of.range.end, of.writable) else { break };
        of.range.end = next.range.end.max(of.range.end);
    }
    for _ in 0..JOINED {
        let Some(next) = of.range.start.checked_sub(1).and_then(|last| beside(last, of.writable)) else {
            break;
        };
        of.range.start = next.range.start.min(of.range.start);
    }
    of
}

/// The readable mappings of a list in the format of `/proc/self/maps`. Neighbours with the same rights are
/// joined.
pub(crate) fn all(list: &str) -> Vec<Mapping> {
    let mut all: Vec<Mapping> = Vec::new();
    for (range, rights) in lines(list).filter(|(_, rights)| rights.contains('r')) {
        let writable = rights.contains('w');
        match all.last_mut() {
            Some(last) if last.range.end == range.start && last.writable == writable => {
                last.range.end = range.end;
            }
            _ => all.push(Mapping { range, writable }),
        }
    }
    all
}

/// The lines of `/proc/self/maps`: addresses, and rights as letters.
fn lines(list: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    list.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (addresses, rights) = (words.next()?, words.next()?);
        let (start, end) = addresses.split_once('-')?;
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        Some((number(start)?..number(end)?, rights))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "1000-2000 rw-p 0 0\n2000-3000 rw-p 0 0\n3000-4000 r--p 0 0\n4000-5000 ---p 0 0\n\
                        5000-6000 -w-p 0 0\n6000-7000 rw-p 0 0\n";

    fn mapping(range: Range<usize>, writable: bool) -> Mapping {
        Mapping { range, writable }
    }

    #[test]
    fn neighbours_with_the_same_rights_are_one() {
        let expected =
            [mapping(0x1000..0x3000, true), mapping(0x3000..0x4000, false), mapping(0x6000..0x7000, true)];
        assert_eq!(all(LIST), expected);
        let single: Vec<_> = lines(LIST)
            .filter(|(_, rights)| rights.contains('r'))
            .map(|(range, rights)| mapping(range, rights.contains('w')))
            .collect();
        let at = |address| Ok(single.iter().find(|one| one.range.contains(&address)).cloned());
        for one in &single {
            let whole = expected.iter().find(|whole| whole.range.contains(&one.range.start));
            assert_eq!(Some(&joined(one.clone(), at)), whole);
        }
    }

    #[test]
    fn memory_of_the_process_is_found() {
        static CONSTANT: [u64; 2] = [1, 2];
        let value = Box::new([1u64; 10]);
        let place = |of: *const u64| of.expose_provenance();
        let mut mappings = Mappings::default();
        for _ in 0..2 {
            let found = mappings.at(place(value.as_ptr()));
            if cfg!(not(target_os = "linux")) {
                assert_eq!(found, Err(Refused));
                return;
            }
            let found = found.expect("Linux tells").expect("a box is mapped");
            assert!(found.writable && found.range.contains(&(place(value.as_ptr()) + 79)));
            let found = mappings.at(place(CONSTANT.as_ptr())).expect("Linux tells");
            assert!(found.is_some_and(|found| !found.writable));
            for nothing in [0usize, 8, 0x5_0000, 1 << 60] {
                assert_eq!(mappings.at(nothing), Ok(None), "{nothing:#x}");
            }
            mappings.forget();
        }
    }

    /// Both ways to ask have the same answer.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_list_agrees_with_the_answer_for_an_address() {
        let value = Box::new([1u64; 10]);
        static CONSTANT: [u64; 2] = [1, 2];
        let list = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
        for address in [value.as_ptr(), CONSTANT.as_ptr()].map(|at| at.expose_provenance()) {
            // Other threads of the tests map memory beside it.
            let whole = all(&list).into_iter().find(|one| one.range.contains(&address)).expect("mapped");
            match List::open().expect("Linux has it").mapping_at(address) {
                Ok(Some(one)) => assert_eq!(one.writable, whole.writable),
                Ok(None) => panic!("{address:#x} is mapped"),
                // Before Linux 6.11.
                Err(Refused) => {}
            }
        }
    }
}
