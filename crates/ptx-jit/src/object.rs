//! The result of a compilation, as values and as bytes.
//!
//! Invariant: the result contains no addresses of a process, so it is valid in every process on the same
//! machine. Bytes are decoded without trust: they result in the same value, or in an error.

use crate::codegen::state_map::StateMap;
use ptx::ir::{Reg, RegClass};
use ptx_exec::native::{
    CoarseCode, CtaCode, EntryReg, EntryState, ExitCause, ExitPlace, ExitPoint, ExitState, Held,
    PendingLanes, SavedReg, SideExit, SuspendPoint,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The code of a kernel for one CTA shape, not placed in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Made {
    /// The object file.
    pub(crate) object: Vec<u8>,
    /// Bytes of the large stack frames of its functions; 0 if every thread has enough stack for it.
    pub(crate) stack: u32,
    /// Symbols that it refers to: functions of the host that it calls, and variables and functions of the
    /// program.
    pub(crate) externals: Vec<String>,
    /// The number of cached bounds that it needs.
    pub(crate) windows: u32,
    /// Instructions without native code, by name, with their number.
    pub(crate) fallbacks: BTreeMap<String, u32>,
    /// How a CTA is passed to the code of single warps.
    pub(crate) cta: CtaCode,
    /// How registers are passed.
    pub(crate) handed: StateMap,
    /// The side exits of single warps, by their numbers.
    pub(crate) exits: Vec<ExitPoint>,
    /// How a CTA is passed to the code of coarse warps, if there is any; otherwise it has no warps.
    pub(crate) team: CoarseCode,
    /// Whether it postpones reductions in the reduction buffer.
    pub(crate) postpones: bool,
    /// Whether it updates global memory itself, by atomic operations or ordered stores.
    pub(crate) updates: bool,
    /// Whether it is scalar code, which executes one thread at a time.
    pub(crate) scalar: bool,
    /// Whether code of single warps was left out, which a compilation of its own makes.
    pub(crate) partial: bool,
    /// Whether it checks the objects of accesses, for watched launches.
    pub(crate) is_checked: bool,
    /// The number of LLVM instructions, if LLVM compiled them without optimisation; otherwise 0.
    pub(crate) unoptimised: u32,
}

impl Made {
    /// The approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        let names = self.externals.iter().chain(self.fallbacks.keys()).map(|name| name.len() + 32);
        let left = |left: &ExitState| {
            let parked = left.pending.iter().map(|parked| parked.kept.len() + 1);
            left.running.len() + parked.sum::<usize>() + 1
        };
        let taken = self.handed.entries.iter().map(|entry| entry.taken.len() + 1).sum::<usize>();
        let handed = taken + self.handed.exits.iter().map(left).sum::<usize>();
        let sites = self.exits.iter().chain(self.team.leaves.iter().map(|leave| &leave.point));
        let points = sites.map(|point| size_of::<ExitPoint>() + size_of_val(&*point.sites)).sum::<usize>();
        self.object.len() + points + names.sum::<usize>() + handed * size_of::<EntryReg>() + size_of::<Made>()
    }

    /// Encodes the value as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let bytes = Vec::with_capacity(self.object.len() + 1024);
        let mut to = Writer { bytes, patterns: HashMap::new() };
        let Made { object, stack, externals, windows, fallbacks, cta, handed, exits, team, .. } = self;
        let Made { postpones, updates, scalar, partial, is_checked, unoptimised, .. } = self;
        to.bytes(object);
        to.number(*stack);
        to.count(externals.len());
        externals.iter().for_each(|name| to.bytes(name.as_bytes()));
        to.number(*windows);
        to.count(fallbacks.len());
        for (name, count) in fallbacks {
            to.bytes(name.as_bytes());
            to.number(*count);
        }
        to.cta(cta);
        to.number(handed.lines);
        to.count(handed.entries.len());
        handed.entries.iter().for_each(|entry| to.entering(entry));
        to.count(handed.exits.len());
        handed.exits.iter().for_each(|left| to.leaving(left));
        to.count(exits.len());
        exits.iter().for_each(|point| to.point(point));
        to.number(team.warps);
        to.number(team.ctas);
        team.least_row.iter().for_each(|row| to.number(*row));
        team.edges_alone.iter().for_each(|edge| to.number(u32::from(*edge)));
        to.cta(&team.cta);
        to.count(team.leaves.len());
        team.leaves.iter().for_each(|leave| to.leave(leave));
        to.number(u32::from(*postpones));
        to.number(u32::from(*updates));
        to.number(u32::from(*scalar));
        to.number(u32::from(*partial));
        to.number(u32::from(*is_checked));
        to.number(*unoptimised);
        to.bytes
    }

    /// Decodes the bytes of [`Made::encode`]; `None` for any other bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Made> {
        let mut from = Reader { rest: bytes, patterns: Vec::new() };
        let made = Made {
            object: from.bytes()?.to_vec(),
            stack: from.number()?,
            externals: from.list(Reader::text)?,
            windows: from.number()?,
            fallbacks: from.list(|from| Some((from.text()?, from.number()?)))?.into_iter().collect(),
            cta: from.cta()?,
            handed: StateMap {
                lines: from.number()?,
                entries: from.list(Reader::entering)?,
                exits: from.list(Reader::leaving)?,
            },
            exits: from.list(Reader::point)?,
            team: CoarseCode {
                warps: from.number()?,
                ctas: from.number()?,
                least_row: [from.number()?, from.number()?],
                edges_alone: [from.flag()?, from.flag()?],
                cta: from.cta()?,
                leaves: from.list(Reader::leave)?,
            },
            postpones: from.flag()?,
            updates: from.flag()?,
            scalar: from.flag()?,
            partial: from.flag()?,
            is_checked: from.flag()?,
            unoptimised: from.number()?,
        };
        from.rest.is_empty().then_some(made)
    }
}

/// Register classes by their number.
const CLASSES: [RegClass; 4] = [RegClass::Pred, RegClass::R16, RegClass::R32, RegClass::R64];

/// The constants of the lanes of an affine value.
type Lanes = Arc<[i32]>;

struct Writer {
    bytes: Vec<u8>,
    /// The lane constants that are written already, with their numbers: many registers share them.
    patterns: HashMap<Lanes, u32>,
}

impl Writer {
    fn number(&mut self, number: u32) {
        self.bytes.extend(number.to_le_bytes());
    }

    /// Objects are far below 4 GiB; a longer one would not decode.
    fn count(&mut self, count: usize) {
        self.number(u32::try_from(count).unwrap_or(u32::MAX));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.bytes.extend(bytes);
    }

    fn cta(&mut self, cta: &CtaCode) {
        self.number(cta.bytes);
        self.count(cta.barriers.len());
        cta.barriers.iter().for_each(|behind| self.behind(behind));
    }

    fn point(&mut self, point: &ExitPoint) {
        let (kind, block, index) = match point.place {
            ExitPlace::Yield { block } => (0, block, 0),
            ExitPlace::Terminator { block } => (1, block, 0),
            ExitPlace::Before { block, index } => (2, block, index),
        };
        let numbers = [kind, block, index, point.cause as u32];
        numbers.into_iter().for_each(|number| self.number(number));
        self.count(point.sites.len());
        point.sites.iter().flatten().for_each(|number| self.number(*number));
    }

    fn leave(&mut self, leave: &SideExit) {
        self.point(&leave.point);
        self.leaving(&leave.left);
    }

    fn behind(&mut self, behind: &SuspendPoint) {
        self.number(behind.block);
        self.number(behind.id.unwrap_or(u32::MAX));
        self.all_kept(&behind.kept);
    }

    fn entering(&mut self, entry: &EntryState) {
        self.number(entry.block);
        self.count(entry.taken.len());
        for EntryReg { kept, align } in &entry.taken {
            self.number(u32::from(*align));
            self.kept(kept);
        }
    }

    fn leaving(&mut self, left: &ExitState) {
        self.all_kept(&left.running);
        self.count(left.pending.len());
        for PendingLanes { block, offset, kept } in &left.pending {
            self.number(*block);
            self.number(*offset);
            self.all_kept(kept);
        }
    }

    fn all_kept(&mut self, all: &[SavedReg]) {
        self.count(all.len());
        all.iter().for_each(|kept| self.kept(kept));
    }

    fn kept(&mut self, kept: &SavedReg) {
        let SavedReg { reg, offset, held } = kept;
        let class = CLASSES.iter().position(|class| *class == reg.class).unwrap_or(CLASSES.len());
        [class as u32, reg.index, *offset].into_iter().for_each(|number| self.number(number));
        match held {
            Held::Constant(value) => {
                [0, *value as u32, (value >> 32) as u32].into_iter().for_each(|number| self.number(number));
            }
            Held::Same => self.number(1),
            Held::Mask => self.number(2),
            Held::Each => self.number(3),
            Held::Pattern { each, lanes } => {
                self.number(4);
                self.number(*each);
                self.lanes(lanes);
            }
            Held::Rows { lanes, rows } => {
                self.number(5);
                self.lanes(lanes);
                self.lanes(rows);
            }
        }
    }

    /// Writes the number of lane constants, followed by the constants if they are new.
    fn lanes(&mut self, lanes: &Lanes) {
        let next = self.patterns.len() as u32;
        let number = *self.patterns.entry(lanes.clone()).or_insert(next);
        self.number(number);
        if number == next {
            self.count(lanes.len());
            lanes.iter().for_each(|lane| self.number(*lane as u32));
        }
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    /// The lane constants read so far.
    patterns: Vec<Lanes>,
}

impl<'a> Reader<'a> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn behind(&mut self) -> Option<SuspendPoint> {
        let block = self.number()?;
        let id = Some(self.number()?).filter(|id| *id != u32::MAX);
        Some(SuspendPoint { block, id, kept: self.list(Reader::kept)? })
    }

    fn cta(&mut self) -> Option<CtaCode> {
        Some(CtaCode { bytes: self.number()?, barriers: self.list(Reader::behind)? })
    }

    fn point(&mut self) -> Option<ExitPoint> {
        let (kind, block, index) = (self.number()?, self.number()?, self.number()?);
        let place = match (kind, index) {
            (0, 0) => ExitPlace::Yield { block },
            (1, 0) => ExitPlace::Terminator { block },
            (2, index) => ExitPlace::Before { block, index },
            _ => return None,
        };
        let cause = *ExitCause::ALL.get(self.number()? as usize)?;
        let sites = self.list(|from| Some([from.number()?, from.number()?]))?;
        Some(ExitPoint { place, cause, sites })
    }

    fn leave(&mut self) -> Option<SideExit> {
        Some(SideExit { point: self.point()?, left: self.leaving()? })
    }

    fn kept(&mut self) -> Option<SavedReg> {
        let class = *CLASSES.get(self.number()? as usize)?;
        let (index, offset) = (self.number()?, self.number()?);
        let held = match self.number()? {
            0 => Held::Constant(u64::from(self.number()?) | u64::from(self.number()?) << 32),
            1 => Held::Same,
            2 => Held::Mask,
            3 => Held::Each,
            4 => {
                // The number of lanes of a chunk, of a warp or of a coarse warp.
                let each = self
                    .number()
                    .filter(|each| [4, 8, 16].contains(each) || *each > 0 && each.is_multiple_of(32))?;
                Held::Pattern { each, lanes: self.lanes()? }
            }
            5 => Held::Rows { lanes: self.lanes()?, rows: self.lanes()? },
            _ => return None,
        };
        Some(SavedReg { reg: Reg { class, index }, offset, held })
    }

    fn lanes(&mut self) -> Option<Lanes> {
        let number = self.number()? as usize;
        if number == self.patterns.len() {
            let lanes: Vec<i32> = self.list(|from| Some(from.number()? as i32))?;
            self.patterns.push(lanes.into());
        }
        self.patterns.get(number).cloned()
    }

    fn entering(&mut self) -> Option<EntryState> {
        let taken = |from: &mut Self| {
            let align = u8::try_from(from.number()?).ok().filter(|align| *align < 64)?;
            Some(EntryReg { kept: from.kept()?, align })
        };
        Some(EntryState { block: self.number()?, taken: self.list(taken)? })
    }

    fn leaving(&mut self) -> Option<ExitState> {
        let parked = |from: &mut Self| {
            Some(PendingLanes {
                block: from.number()?,
                offset: from.number()?,
                kept: from.list(Reader::kept)?,
            })
        };
        Some(ExitState { running: self.list(Reader::kept)?, pending: self.list(parked)? })
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        (0..count).map(|_| one(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(held: Held) -> SavedReg {
        SavedReg { reg: Reg { class: RegClass::R64, index: 1 }, offset: 128, held }
    }

    fn pattern(adds: i32) -> Held {
        Held::Pattern { each: 16, lanes: Arc::new([adds; 32]) }
    }

    fn sample() -> Made {
        Made {
            object: (0..=255).collect(),
            stack: 1 << 20,
            externals: vec!["step".to_owned(), "v7".to_owned()],
            windows: 5,
            fallbacks: BTreeMap::from([("wmma.mma".to_owned(), 2), ("é".to_owned(), 1)]),
            cta: CtaCode {
                bytes: 128,
                barriers: vec![SuspendPoint {
                    block: 4,
                    id: Some(15),
                    kept: [Held::Constant(u64::MAX - 1), Held::Same, Held::Mask, Held::Each, pattern(-3)]
                        .into_iter()
                        .zip(CLASSES.into_iter().chain([RegClass::R32]))
                        .map(|(held, class)| SavedReg { reg: Reg { class, index: 7 }, offset: 64, held })
                        .collect(),
                }],
            },
            handed: StateMap {
                lines: 3,
                entries: vec![
                    EntryState {
                        block: 3,
                        taken: vec![
                            EntryReg { kept: kept(Held::Same), align: 0 },
                            EntryReg { kept: kept(pattern(2)), align: 5 },
                        ],
                    },
                    EntryState { block: 9, taken: Vec::new() },
                ],
                exits: vec![
                    ExitState::default(),
                    ExitState {
                        running: vec![kept(pattern(-3)), kept(Held::Each)],
                        pending: vec![PendingLanes { block: 5, offset: 12, kept: vec![kept(pattern(2))] }],
                    },
                ],
            },
            exits: ExitCause::ALL
                .map(|cause| ExitPoint {
                    place: ExitPlace::Terminator { block: 6 },
                    cause,
                    sites: vec![[6, u32::MAX]],
                })
                .to_vec(),
            team: CoarseCode {
                warps: 4,
                ctas: 2,
                least_row: [4, 8],
                edges_alone: [true, false],
                cta: CtaCode {
                    bytes: 64,
                    barriers: vec![SuspendPoint { block: 2, id: None, kept: Vec::new() }],
                },
                leaves: vec![SideExit {
                    point: ExitPoint {
                        place: ExitPlace::Before { block: 3, index: 1 },
                        cause: ExitCause::Bounds,
                        sites: vec![[3, 2], [3, 4]],
                    },
                    left: ExitState {
                        running: vec![kept(Held::Rows { lanes: Arc::new([5; 64]), rows: Arc::new([1; 64]) })],
                        pending: Vec::new(),
                    },
                }],
            },
            postpones: true,
            updates: false,
            is_checked: true,
            unoptimised: 60_000,
            scalar: true,
            partial: true,
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
        // Lengths beyond the end at every position; no memory is allocated for them.
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
