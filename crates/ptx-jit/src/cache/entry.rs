//! What a compilation makes, as values and as bytes.
//!
//! Invariant: nothing in it depends on where things are in a process, so that it is valid in each on the same machine. Bytes are
//! decoded without trust: they give the same value, or none.

use ptx::ir::{Reg, RegClass};
use ptx_exec::lanes::LANES;
use ptx_exec::native::{Behind, CtaCode, Held, Kept};
use std::collections::BTreeMap;

/// A kernel's code for a shape of CTA, without a place in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// The object file.
    pub(crate) object: Vec<u8>,
    /// Names in it that are the host's: functions it calls, variables and functions of the program.
    pub(crate) externals: Vec<String>,
    /// Blocks at which it can be entered.
    pub(crate) entries: Vec<u32>,
    /// Windows that it needs.
    pub(crate) windows: u32,
    /// Instructions without native code, by name, and how often they stand in it.
    pub(crate) fallbacks: BTreeMap<String, u32>,
    /// How a CTA is handed over.
    pub(crate) cta: CtaCode,
}

impl Made {
    /// What it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let names = self.externals.iter().chain(self.fallbacks.keys()).map(|name| name.len() + 32);
        self.object.len() + 4 * self.entries.len() + names.sum::<usize>() + size_of::<Made>()
    }

    /// As bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Writer(Vec::with_capacity(self.object.len() + 1024));
        let Made { object, externals, entries, windows, fallbacks, cta } = self;
        to.bytes(object);
        to.count(externals.len());
        externals.iter().for_each(|name| to.bytes(name.as_bytes()));
        to.count(entries.len());
        entries.iter().for_each(|entry| to.number(*entry));
        to.number(*windows);
        to.count(fallbacks.len());
        for (name, count) in fallbacks {
            to.bytes(name.as_bytes());
            to.number(*count);
        }
        to.number(cta.bytes);
        to.count(cta.barriers.len());
        cta.barriers.iter().for_each(|behind| to.behind(behind));
        to.0
    }

    /// From what [`Made::encode`] gave; `None` if it is something else.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Made> {
        let mut from = Reader(bytes);
        let made = Made {
            object: from.bytes()?.to_vec(),
            externals: from.list(Reader::text)?,
            entries: from.list(Reader::number)?,
            windows: from.number()?,
            fallbacks: from.list(|from| Some((from.text()?, from.number()?)))?.into_iter().collect(),
            cta: CtaCode { bytes: from.number()?, barriers: from.list(Reader::behind)? },
        };
        from.0.is_empty().then_some(made)
    }
}

/// Classes of registers by their number.
const CLASSES: [RegClass; 4] = [RegClass::Pred, RegClass::R16, RegClass::R32, RegClass::R64];

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    /// Objects are far below 4 GiB; a longer one would not decode.
    fn count(&mut self, count: usize) {
        self.number(u32::try_from(count).unwrap_or(u32::MAX));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend(bytes);
    }

    fn behind(&mut self, behind: &Behind) {
        self.number(behind.block);
        self.number(behind.id);
        self.count(behind.kept.len());
        for Kept { reg, offset, held } in &behind.kept {
            let class = CLASSES.iter().position(|class| *class == reg.class).unwrap_or(CLASSES.len());
            [class as u32, reg.index, *offset].into_iter().for_each(|number| self.number(number));
            match held {
                Held::Constant(value) => {
                    [0, *value as u32, (value >> 32) as u32]
                        .into_iter()
                        .for_each(|number| self.number(number));
                }
                Held::Same => self.number(1),
                Held::Mask => self.number(2),
                Held::Each => self.number(3),
                Held::Pattern { each, lanes } => {
                    self.number(4);
                    self.number(*each);
                    lanes.iter().for_each(|lane| self.number(*lane as u32));
                }
            }
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn behind(&mut self) -> Option<Behind> {
        Some(Behind { block: self.number()?, id: self.number()?, kept: self.list(Reader::kept)? })
    }

    fn kept(&mut self) -> Option<Kept> {
        let class = *CLASSES.get(self.number()? as usize)?;
        let (index, offset) = (self.number()?, self.number()?);
        let held = match self.number()? {
            0 => Held::Constant(u64::from(self.number()?) | u64::from(self.number()?) << 32),
            1 => Held::Same,
            2 => Held::Mask,
            3 => Held::Each,
            4 => {
                let each = self.number().filter(|each| [4, 8, 16, 32].contains(each))?;
                let mut lanes = Box::new([0; LANES]);
                for lane in lanes.iter_mut() {
                    *lane = self.number()? as i32;
                }
                Held::Pattern { each, lanes }
            }
            _ => return None,
        };
        Some(Kept { reg: Reg { class, index }, offset, held })
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        (0..count).map(|_| one(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Made {
        Made {
            object: (0..=255).collect(),
            externals: vec!["step".to_owned(), "v7".to_owned()],
            entries: vec![0, 3, 9],
            windows: 5,
            fallbacks: BTreeMap::from([("wmma.mma".to_owned(), 2), ("é".to_owned(), 1)]),
            cta: CtaCode {
                bytes: 128,
                barriers: vec![Behind {
                    block: 4,
                    id: 15,
                    kept: [
                        Held::Constant(u64::MAX - 1),
                        Held::Same,
                        Held::Mask,
                        Held::Each,
                        Held::Pattern { each: 16, lanes: Box::new([-3; LANES]) },
                    ]
                    .into_iter()
                    .zip(CLASSES.into_iter().chain([RegClass::R32]))
                    .map(|(held, class)| Kept { reg: Reg { class, index: 7 }, offset: 64, held })
                    .collect(),
                }],
            },
        }
    }

    #[test]
    fn bytes_give_the_same_value() {
        assert_eq!(Made::decode(&sample().encode()), Some(sample()));
        assert_eq!(Made::decode(&Made::default().encode()), Some(Made::default()));
    }

    #[test]
    fn other_bytes_give_none() {
        let bytes = sample().encode();
        for len in 0..bytes.len() {
            assert_eq!(Made::decode(&bytes[..len]), None, "cut to {len} bytes");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(Made::decode(&longer), None);
        // Lengths beyond the end, wherever they stand, and no memory taken for them.
        for at in 0..bytes.len() - 3 {
            let mut wrong = bytes.clone();
            wrong[at..at + 4].fill(0xff);
            if wrong == bytes {
                continue;
            }
            assert_ne!(Made::decode(&wrong), Some(sample()), "at {at}");
        }
    }
}
