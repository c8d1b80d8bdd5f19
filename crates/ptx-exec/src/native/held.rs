//! Registers in the shape that native code has them in: one word for what is the same in all lanes.
//!
//! Native code hands registers over in such a shape, in a **room** of lines, and takes them so; tables that come with it say what lies
//! where.
//!
//! Invariants: what is expanded are the lanes that native code had, and no other lane changes; what is taken is what the lanes of the mask
//! hold, or it is refused.

use crate::lanes::{LANES, Lane, LaneMask, Registers, lanes_of};
use ptx::ir::{Reg, RegClass};
use std::sync::Arc;

/// Bytes that keep the alignment of vectors, as little-endian words.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Line(pub [u64; 8]);

impl Line {
    /// Of its bytes.
    pub const BYTES: usize = size_of::<Self>();
}

/// A register in a room.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kept {
    /// Which.
    pub reg: Reg,
    /// Where, in bytes; a multiple of what one lane takes.
    pub offset: u32,
    /// As what.
    pub held: Held,
}

/// How a register's lanes are kept. A predicate's lane takes a word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Held {
    /// Not at all: this, in all lanes.
    Constant(u64),
    /// One value for all lanes.
    Same,
    /// A value for every so many lanes, and what each lane adds to it.
    Pattern {
        /// Lanes that share a value.
        each: u32,
        /// What a lane adds, of a warp or of a team.
        lanes: Arc<[i32]>,
    },
    /// Two values, the second of which a lane adds several times; and what it adds besides.
    Rows {
        /// What a lane adds, of a team.
        lanes: Arc<[i32]>,
        /// How often it adds the second value.
        rows: Arc<[i32]>,
    },
    /// A mask: a word for each warp.
    Mask,
    /// All lanes, one after another.
    Each,
}

/// A register that native code takes where it is entered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Taken {
    /// Which, where and how.
    pub kept: Kept,
    /// Trailing bits that are zero in every word of a pattern.
    pub align: u8,
}

/// Where native code can be entered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entering {
    /// At the start of this block.
    pub block: u32,
    /// What it takes in another shape than the frame's; the rest it finds there.
    pub taken: Vec<Taken>,
}

/// What native code leaves in the room where it stops; what is not here stands in the frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Leaving {
    /// Of the lanes that run.
    pub running: Vec<Kept>,
    /// Of those that have parted.
    pub parked: Vec<Parked>,
}

/// Lanes that have parted; perhaps none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parked {
    /// Where they go on.
    pub block: u32,
    /// Where the room says which.
    pub offset: u32,
    /// Their registers.
    pub kept: Vec<Kept>,
}

/// Bytes of a register's lane in a room.
pub fn bytes_of(class: RegClass) -> u32 {
    match class {
        RegClass::Pred | RegClass::R32 => 4,
        RegClass::R16 => 2,
        RegClass::R64 => 8,
    }
}

/// All bits of a lane in a room.
fn ones(class: RegClass) -> u64 {
    u64::MAX >> (64 - 8 * bytes_of(class))
}

/// The word of so many bytes; zero beyond the room.
fn word(room: &[Line], offset: usize, ones: u64) -> u64 {
    let word =
        room.get(offset / Line::BYTES).map_or(0, |line| u64::from_le(line.0[offset % Line::BYTES / 8]));
    word >> (offset % 8 * 8) & ones
}

fn set_word(room: &mut [Line], offset: usize, ones: u64, value: u64) {
    let Some(line) = room.get_mut(offset / Line::BYTES) else { return };
    let (word, shift) = (&mut line.0[offset % Line::BYTES / 8], offset % 8 * 8);
    *word = (u64::from_le(*word) & !(ones << shift) | (value & ones) << shift).to_le();
}

/// A mask in the room.
pub(crate) fn mask_at(room: &[Line], offset: usize) -> LaneMask {
    word(room, offset, u32::MAX.into()) as u32
}

impl Kept {
    /// Writes the register's lanes in the mask, from the room.
    pub(crate) fn expand(&self, room: &[Line], regs: &mut Registers, mask: LaneMask) {
        self.expand_of(room, 0, regs, mask);
    }

    /// The same of a warp of a team, by its number in the team.
    pub(crate) fn expand_of(&self, room: &[Line], warp: usize, regs: &mut Registers, mask: LaneMask) {
        let (index, class) = (self.reg.index as usize, self.reg.class);
        let (bytes, ones) = (bytes_of(class) as usize, ones(class));
        let at = |index: usize| word(room, self.offset as usize + index * bytes, ones);
        let first = warp * LANES;
        let adds = |of: &[i32], lane: usize| i64::from(of.get(first + lane).copied().unwrap_or(0)) as u64;
        let values: [u64; LANES] = match &self.held {
            Held::Constant(value) => [*value; LANES],
            Held::Same => [at(0); LANES],
            Held::Pattern { each, lanes } => {
                let word = |lane: usize| at((first + lane) / *each as usize);
                std::array::from_fn(|lane| word(lane).wrapping_add(adds(lanes, lane)))
            }
            Held::Rows { lanes, rows } => {
                let (base, stride) = (at(0), at(1));
                std::array::from_fn(|lane| {
                    base.wrapping_add(adds(lanes, lane)).wrapping_add(stride.wrapping_mul(adds(rows, lane)))
                })
            }
            Held::Mask => {
                let word = at(warp);
                std::array::from_fn(|lane| word >> lane & 1)
            }
            Held::Each => std::array::from_fn(|lane| at(first + lane)),
        };
        // What does not fit is not of this kernel.
        match class {
            RegClass::Pred => {
                let new = values
                    .iter()
                    .enumerate()
                    .fold(0, |all, (lane, value)| all | ((*value as u32) & 1) << lane);
                regs.pred.get_mut(index).into_iter().for_each(|reg| *reg = *reg & !mask | new & mask);
            }
            RegClass::R16 => {
                let new = Lane(values.map(|value| value as u16));
                regs.r16.get_mut(index).into_iter().for_each(|reg| reg.blend(mask, &new));
            }
            RegClass::R32 => {
                let new = Lane(values.map(|value| value as u32));
                regs.r32.get_mut(index).into_iter().for_each(|reg| reg.blend(mask, &new));
            }
            RegClass::R64 => {
                let new = Lane(values);
                regs.r64.get_mut(index).into_iter().for_each(|reg| reg.blend(mask, &new));
            }
        }
    }
}

impl Taken {
    /// Puts the register into the room as its lanes in the mask hold it. Whether they hold it so; not asked where that is `known`.
    fn take(&self, regs: &Registers, mask: LaneMask, known: bool, room: &mut [Line]) -> bool {
        let Kept { reg, offset, held } = &self.kept;
        let (index, bytes, ones) = (reg.index as usize, bytes_of(reg.class) as usize, ones(reg.class));
        let lane = |lane: usize| match reg.class {
            RegClass::Pred => regs.pred.get(index).map_or(0, |reg| u64::from(reg >> lane & 1)),
            RegClass::R16 => regs.r16.get(index).map_or(0, |reg| u64::from(reg.0[lane])),
            RegClass::R32 => regs.r32.get(index).map_or(0, |reg| u64::from(reg.0[lane])),
            RegClass::R64 => regs.r64.get(index).map_or(0, |reg| reg.0[lane]),
        };
        // The word for those lanes, each of which adds something.
        let mut one = |at: usize, mask: LaneMask, adds: &dyn Fn(usize) -> u64| {
            let base = match mask {
                0 => 0,
                _ => {
                    let first = mask.trailing_zeros() as usize;
                    lane(first).wrapping_sub(adds(first)) & ones
                }
            };
            set_word(room, *offset as usize + at * bytes, ones, base);
            let low = !(u64::MAX << self.align.min(63));
            known || base & low == 0 && lanes_of(mask).all(|l| lane(l) == base.wrapping_add(adds(l)) & ones)
        };
        match held {
            Held::Same => one(0, mask, &|_| 0),
            Held::Pattern { each, lanes } => {
                let adds = |lane: usize| i64::from(lanes[lane]) as u64;
                let part = (u32::MAX >> (LANES as u32 - each), *each as usize);
                (0..LANES / part.1).all(|at| one(at, mask & part.0 << (at * part.1), &adds))
            }
            Held::Rows { lanes, rows } => {
                let number = |of: &[i32], l: usize| i64::from(of[l]) as u64;
                let plain = |l: usize| lane(l).wrapping_sub(number(lanes, l));
                // Of lanes in two rows as near each other as any to the first that runs, the stride; of lanes in one, none is wanted.
                let first = mask.trailing_zeros() as usize % LANES;
                let far = |l: usize| i64::from(rows[l]) - i64::from(rows[first]);
                let more = |l: usize| plain(l).wrapping_sub(plain(first)) & ones;
                let other = lanes_of(mask).filter(|l| far(*l) != 0).min_by_key(|l| far(*l).unsigned_abs());
                let stride = other.map_or(0, |other| {
                    let unused = ones.leading_zeros();
                    ((more(other) << unused) as i64 >> unused).wrapping_div(far(other)) as u64
                });
                // A multiple of the stride that wraps around does not say what it is: asked even where all is known to be of rows.
                let fits = lanes_of(mask).all(|l| more(l) == stride.wrapping_mul(far(l) as u64) & ones);
                one(0, mask, &|l| number(lanes, l).wrapping_add(stride.wrapping_mul(number(rows, l))));
                set_word(room, *offset as usize + bytes, ones, stride);
                fits
            }
            // These are never taken so.
            Held::Constant(_) | Held::Mask | Held::Each => false,
        }
    }
}

impl Entering {
    /// Puts what native code takes into the room. Whether it can be entered with these registers; that is not asked where it is `known`.
    pub fn take(&self, regs: &Registers, mask: LaneMask, known: bool, room: &mut [Line]) -> bool {
        self.taken.iter().all(|taken| taken.take(regs, mask, known, room))
    }
}

impl Leaving {
    /// Completes the registers, and says where lanes have parted: block and lanes.
    pub fn leave(&self, room: &[Line], regs: &mut Registers, mask: LaneMask, parted: &mut Vec<[u32; 2]>) {
        self.running.iter().for_each(|kept| kept.expand(room, regs, mask));
        for parked in &self.parked {
            let lanes = word(room, parked.offset as usize, u32::MAX.into()) as u32;
            if lanes != 0 {
                parted.push([parked.block, lanes]);
                parked.kept.iter().for_each(|kept| kept.expand(room, regs, lanes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::FULL;

    fn registers(value: impl Fn(usize) -> u64) -> Registers {
        let mut regs = Registers::default();
        regs.reset(ptx::ir::RegCounts { pred: 1, r16: 1, r32: 1, r64: 1 });
        let values: [u64; LANES] = std::array::from_fn(value);
        regs.pred[0] = (0..LANES).fold(0, |all, lane| all | ((values[lane] & 1) as u32) << lane);
        regs.r16[0] = Lane(values.map(|value| value as u16));
        regs.r32[0] = Lane(values.map(|value| value as u32));
        regs.r64[0] = Lane(values);
        regs
    }

    fn taken(class: RegClass, held: Held, align: u8) -> Taken {
        Taken { kept: Kept { reg: Reg { class, index: 0 }, offset: 8, held }, align }
    }

    #[test]
    fn what_is_taken_comes_back() {
        let steps = Held::Pattern { each: 32, lanes: (0..LANES).map(|lane| 3 * lane as i32).collect() };
        let parts = Held::Pattern { each: 8, lanes: (0..LANES).map(|lane| -(lane as i32 % 8)).collect() };
        let minus = |lane: usize| (512 * (lane as u64 / 8)).wrapping_sub(1 + lane as u64 % 8);
        let columns = (0..LANES).map(|lane| lane as i32 % 8).collect();
        let rows = Held::Rows { lanes: columns, rows: (0..LANES).map(|lane| lane as i32 / 8).collect() };
        let cases: [(Held, &dyn Fn(usize) -> u64); 4] = [
            (rows, &|lane| (1001 + lane as u64 % 8).wrapping_sub(77 * (lane as u64 / 8))),
            (Held::Same, &|_| 0x8765_4321_8765_4321),
            (steps, &|lane| 1001 + 3 * lane as u64),
            (parts, &minus),
        ];
        for (held, value) in cases {
            for class in [RegClass::R16, RegClass::R32, RegClass::R64] {
                for mask in [FULL, 1, 0x8000_0000, 0x00ff_0f02] {
                    let (regs, mut room) = (registers(value), [Line([u64::MAX; 8]); 2]);
                    let one = taken(class, held.clone(), 0);
                    assert!(one.take(&regs, mask, false, &mut room), "{held:?}, {class:?}, {mask:x}");
                    let mut back = registers(|lane| 7 + lane as u64);
                    let other = back.clone();
                    one.kept.expand(&room, &mut back, mask);
                    for lane in 0..LANES {
                        let from = if mask >> lane & 1 == 1 { &regs } else { &other };
                        let same = match class {
                            RegClass::R16 => back.r16[0].0[lane] == from.r16[0].0[lane],
                            RegClass::R32 => back.r32[0].0[lane] == from.r32[0].0[lane],
                            RegClass::R64 => back.r64[0].0[lane] == from.r64[0].0[lane],
                            RegClass::Pred => false,
                        };
                        assert!(same, "{held:?}, {class:?}, {mask:x}, lane {lane}");
                    }
                }
            }
        }
    }

    #[test]
    fn each_warp_of_a_team_has_its_own_lanes() {
        let kept = |held| Kept { reg: Reg { class: RegClass::R32, index: 0 }, offset: 8, held };
        let room = [Line([0, 100 | 1000 << 32, 7, 0, 0, 0, 0, 0])];
        let second = |held| {
            let mut regs = registers(|_| 1);
            kept(held).expand_of(&room, 1, &mut regs, 2);
            regs.r32[0].0[..3].to_vec()
        };
        let lanes: Arc<[i32]> = (0..64).collect();
        let rows = (0..64).map(|lane| lane / 16).collect();
        assert_eq!(second(Held::Pattern { each: 32, lanes: lanes.clone() }), [1, 1033, 1]);
        assert_eq!(second(Held::Pattern { each: 64, lanes: lanes.clone() }), [1, 133, 1]);
        assert_eq!(second(Held::Rows { lanes, rows }), [1, 100 + 33 + 2 * 1000, 1]);
        assert_eq!(second(Held::Mask), [1, (1000 >> 1) & 1, 1]);
    }

    #[test]
    fn what_lanes_do_not_hold_is_refused() {
        let mut room = [Line::default(); 2];
        let regs = registers(|lane| if lane == 9 { 6 } else { 4 });
        for class in [RegClass::R16, RegClass::R32, RegClass::R64] {
            let one = taken(class, Held::Same, 0);
            assert!(!one.take(&regs, FULL, false, &mut room));
            assert!(one.take(&regs, FULL, true, &mut room), "not asked");
            assert!(one.take(&regs, !(1 << 9), false, &mut room));
            let all = Held::Pattern { each: 16, lanes: Arc::new([0; LANES]) };
            assert!(taken(class, all.clone(), 2).take(&regs, 0xffff_0000, false, &mut room));
            assert!(!taken(class, all, 3).take(&regs, 0xffff_0000, false, &mut room), "4 has two zeros");
        }
        // Of every second row, and neither of an odd number of bytes apart nor as far as the others.
        let every = || (0..LANES).map(|lane| lane as i32 / 8 * 2).collect();
        let rows = Held::Rows { lanes: Arc::new([0; LANES]), rows: every() };
        for (row, fits) in [([0, 6, 12, 18], true), ([0, 5, 10, 15], false), ([0, 6, 12, 20], false)] {
            let regs = registers(|lane| row[lane / 8]);
            for known in [false, true] {
                let fit = taken(RegClass::R32, rows.clone(), 0).take(&regs, FULL, known, &mut room);
                assert_eq!(fit, fits, "{row:?}");
            }
        }
        // Rows that count down by the least number, and twice a stride that wraps around.
        let down = |times: [i32; 4]| Held::Rows {
            lanes: Arc::new([0; LANES]),
            rows: (0..LANES).map(|lane| times[lane / 8]).collect(),
        };
        for (times, stride, fits) in [([0, -1, -2, -3], 1 << 63, true), ([0, 2, 3, 4], 3 << 61, false)] {
            let regs = registers(|lane| (times[lane / 8] as u64).wrapping_mul(stride));
            assert_eq!(
                taken(RegClass::R64, down(times), 0).take(&regs, FULL, true, &mut room),
                fits,
                "{times:?}"
            );
        }
        let regs = registers(|lane| u64::from(lane != 9));
        assert!(!taken(RegClass::Pred, Held::Same, 0).take(&regs, FULL, false, &mut room));
        assert!(taken(RegClass::Pred, Held::Same, 0).take(&regs, !(1 << 9), false, &mut room));
    }

    #[test]
    fn parted_lanes_come_with_their_registers() {
        let kept = |held, offset| Kept { reg: Reg { class: RegClass::R32, index: 0 }, offset, held };
        let left = Leaving {
            running: vec![kept(Held::Constant(5), 0)],
            parked: vec![
                Parked { block: 3, offset: 0, kept: vec![kept(Held::Same, 4)] },
                Parked { block: 4, offset: 8, kept: vec![kept(Held::Same, 12)] },
            ],
        };
        let room = [Line([0xf0 | 77 << 32, 99 << 32, 0, 0, 0, 0, 0, 0])];
        let (mut regs, mut parted) = (registers(|_| 1), Vec::new());
        left.leave(&room, &mut regs, 0x0f, &mut parted);
        assert_eq!(parted, [[3, 0xf0]]);
        assert_eq!(regs.r32[0].0[..9], [5, 5, 5, 5, 77, 77, 77, 77, 1]);
    }
}
