//! Registers in the representation that native code uses, such as one word for a value that is the same in
//! all lanes.
//!
//! The frame and native code exchange registers through a transfer buffer of cache lines (`room`). Tables
//! that are compiled with the code say where each register is, and in which representation.
//!
//! Invariants: expanding a register writes the lanes of the mask and no other lane. A register is converted
//! to a representation only if the lanes of the mask have that form; otherwise the conversion is refused.

use crate::lanes::{LANES, Lane, LaneMask, Registers, lanes_of};
use ptx::ir::{Reg, RegClass};
use std::sync::Arc;

/// A cache line of bytes with the alignment of vectors, as little-endian words.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Line(pub [u64; 8]);

impl Line {
    /// Size of a line in bytes.
    pub const BYTES: usize = size_of::<Self>();
}

/// A register in the transfer buffer or in a save area.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SavedReg {
    /// The register.
    pub reg: Reg,
    /// Its offset in bytes; a multiple of the size of one lane.
    pub offset: u32,
    /// Its representation.
    pub held: Held,
}

/// The representation of a register's lanes. A lane of a predicate takes a word.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Held {
    /// Not stored: all lanes have this value.
    Constant(u64),
    /// Uniform: one word for all lanes.
    Same,
    /// Affine: a word for each group of lanes, plus a constant per lane.
    Pattern {
        /// Lanes that share a word.
        each: u32,
        /// The constant of each lane, for all lanes of a warp or coarse warp.
        lanes: Arc<[i32]>,
    },
    /// Two words, base and stride: each lane is the base, plus a constant, plus a multiple of the stride.
    Rows {
        /// The constant of each lane.
        lanes: Arc<[i32]>,
        /// The multiple of the stride of each lane.
        rows: Arc<[i32]>,
    },
    /// A predicate as lane masks: a word for each warp.
    Mask,
    /// Varying: one word per lane, in lane order.
    Each,
}

/// A register that native code expects in the transfer buffer when it is entered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryReg {
    /// The register, its place and its representation.
    pub kept: SavedReg,
    /// How many low bits are zero in every word of the representation.
    pub align: u8,
}

/// The registers that native code expects at one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EntryState {
    /// The block at whose start native code can be entered.
    pub block: u32,
    /// Registers in another representation than the register file's; all others are in the register file.
    pub taken: Vec<EntryReg>,
}

/// The registers in the transfer buffer at one exit; all others are in the register file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExitState {
    /// Registers of the running lanes.
    pub running: Vec<SavedReg>,
    /// Diverged lanes with their registers.
    pub pending: Vec<PendingLanes>,
}

/// Diverged lanes that resume at one block; the mask may be empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PendingLanes {
    /// The block at which they resume.
    pub block: u32,
    /// Offset of their mask in the transfer buffer.
    pub offset: u32,
    /// Their registers.
    pub kept: Vec<SavedReg>,
}

/// Bytes of one lane of a register in the transfer buffer.
pub fn bytes_of(class: RegClass) -> u32 {
    match class {
        RegClass::Pred | RegClass::R32 => 4,
        RegClass::R16 => 2,
        RegClass::R64 => 8,
    }
}

/// A mask of all bits of one lane.
fn ones(class: RegClass) -> u64 {
    u64::MAX >> (64 - 8 * bytes_of(class))
}

/// The word at a byte offset; zero outside of the buffer.
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

/// The lane mask of one warp of a coarse warp, whose masks begin at a byte offset, a word for each 32 lanes.
/// `places`: as in [`SavedReg::expand_of`].
pub(crate) fn mask_of(room: &[Line], offset: usize, places: &[usize; LANES]) -> LaneMask {
    let lane = |place: usize| word(room, offset + place / LANES * 4, u32::MAX.into()) >> (place % LANES) & 1;
    places.iter().enumerate().fold(0, |mask, (at, place)| mask | (lane(*place) as u32) << at)
}

impl SavedReg {
    /// Copies the register from the transfer buffer to the register file, in the lanes of `mask`.
    pub(crate) fn expand(&self, room: &[Line], regs: &mut Registers, mask: LaneMask) {
        self.expand_of(room, &std::array::from_fn(|lane| lane), regs, mask);
    }

    /// As [`SavedReg::expand`], for one warp of a coarse warp. `places`: the lane of the coarse warp that
    /// each lane is.
    pub(crate) fn expand_of(
        &self,
        room: &[Line],
        places: &[usize; LANES],
        regs: &mut Registers,
        mask: LaneMask,
    ) {
        let (index, class) = (self.reg.index as usize, self.reg.class);
        let (bytes, ones) = (bytes_of(class) as usize, ones(class));
        let at = |index: usize| word(room, self.offset as usize + index * bytes, ones);
        let adds = |of: &[i32], place: usize| i64::from(of.get(place).copied().unwrap_or(0)) as u64;
        let values: [u64; LANES] = match &self.held {
            Held::Constant(value) => [*value; LANES],
            Held::Same => [at(0); LANES],
            Held::Pattern { each, lanes } => {
                places.map(|place| at(place / *each as usize).wrapping_add(adds(lanes, place)))
            }
            Held::Rows { lanes, rows } => {
                let (base, stride) = (at(0), at(1));
                places.map(|place| {
                    base.wrapping_add(adds(lanes, place)).wrapping_add(stride.wrapping_mul(adds(rows, place)))
                })
            }
            Held::Mask => places.map(|place| at(place / LANES) >> (place % LANES) & 1),
            Held::Each => places.map(at),
        };
        // A register that the function does not have is ignored: the table then belongs to another kernel.
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

impl EntryReg {
    /// Converts the register of the lanes of `mask` to its representation in the transfer buffer. Returns
    /// whether the lanes have that form; the check is skipped if this is `known`.
    fn take(&self, regs: &Registers, mask: LaneMask, known: bool, room: &mut [Line]) -> bool {
        let SavedReg { reg, offset, held } = &self.kept;
        let (index, bytes, ones) = (reg.index as usize, bytes_of(reg.class) as usize, ones(reg.class));
        let lane = |lane: usize| match reg.class {
            RegClass::Pred => regs.pred.get(index).map_or(0, |reg| u64::from(reg >> lane & 1)),
            RegClass::R16 => regs.r16.get(index).map_or(0, |reg| u64::from(reg.0[lane])),
            RegClass::R32 => regs.r32.get(index).map_or(0, |reg| u64::from(reg.0[lane])),
            RegClass::R64 => regs.r64.get(index).map_or(0, |reg| reg.0[lane]),
        };
        // Stores the base of a group of lanes, and checks that each lane is the base plus its constant.
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
                // The stride, from the first running lane and the running lane whose multiple is closest to
                // it but different.
                let first = mask.trailing_zeros() as usize % LANES;
                let far = |l: usize| i64::from(rows[l]) - i64::from(rows[first]);
                let more = |l: usize| plain(l).wrapping_sub(plain(first)) & ones;
                let other = lanes_of(mask).filter(|l| far(*l) != 0).min_by_key(|l| far(*l).unsigned_abs());
                let stride = other.map_or(0, |other| {
                    let unused = ones.leading_zeros();
                    ((more(other) << unused) as i64 >> unused).wrapping_div(far(other)) as u64
                });
                // The product can wrap around and then gives a wrong stride, so this is checked even if the
                // form is known.
                let fits = lanes_of(mask).all(|l| more(l) == stride.wrapping_mul(far(l) as u64) & ones);
                one(0, mask, &|l| number(lanes, l).wrapping_add(stride.wrapping_mul(number(rows, l))));
                set_word(room, *offset as usize + bytes, ones, stride);
                fits
            }
            // Native code expects none of these at an entry.
            Held::Constant(_) | Held::Mask | Held::Each => false,
        }
    }
}

impl EntryState {
    /// Fills the transfer buffer for an entry. Returns whether native code can be entered with these
    /// registers; the check is skipped if this is `known`.
    pub fn take(&self, regs: &Registers, mask: LaneMask, known: bool, room: &mut [Line]) -> bool {
        self.taken.iter().all(|taken| taken.take(regs, mask, known, room))
    }
}

impl ExitState {
    /// Completes the register file at an exit, and lists the diverged lanes: block and mask.
    pub fn leave(&self, room: &[Line], regs: &mut Registers, mask: LaneMask, parted: &mut Vec<[u32; 2]>) {
        self.running.iter().for_each(|kept| kept.expand(room, regs, mask));
        for pending in &self.pending {
            let lanes = word(room, pending.offset as usize, u32::MAX.into()) as u32;
            if lanes != 0 {
                parted.push([pending.block, lanes]);
                pending.kept.iter().for_each(|kept| kept.expand(room, regs, lanes));
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

    fn taken(class: RegClass, held: Held, align: u8) -> EntryReg {
        EntryReg { kept: SavedReg { reg: Reg { class, index: 0 }, offset: 8, held }, align }
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
        let kept = |held| SavedReg { reg: Reg { class: RegClass::R32, index: 0 }, offset: 8, held };
        let room = [Line([0, 100 | 1000 << 32, 7, 0, 0, 0, 0, 0])];
        let second = |held| {
            let mut regs = registers(|_| 1);
            kept(held).expand_of(&room, &std::array::from_fn(|lane| 32 + lane), &mut regs, 2);
            regs.r32[0].0[..3].to_vec()
        };
        let lanes: Arc<[i32]> = (0..64).collect();
        let rows = (0..64).map(|lane| lane / 16).collect();
        assert_eq!(second(Held::Pattern { each: 32, lanes: lanes.clone() }), [1, 1033, 1]);
        assert_eq!(second(Held::Pattern { each: 64, lanes: lanes.clone() }), [1, 133, 1]);
        assert_eq!(second(Held::Rows { lanes, rows }), [1, 100 + 33 + 2 * 1000, 1]);
        assert_eq!(second(Held::Mask), [1, (1000 >> 1) & 1, 1]);
    }

    /// The warp has every second lane of a coarse warp of 64.
    #[test]
    fn lanes_of_a_warp_need_not_be_next_to_each_other() {
        let places = std::array::from_fn(|lane| 2 * lane);
        let room = [Line([0, 0x1_0003 | 0xffff_0004 << 32, 7, 0, 0, 0, 0, 0])];
        let kept = |held| SavedReg { reg: Reg { class: RegClass::R32, index: 0 }, offset: 8, held };
        let every_second = |held| {
            let mut regs = registers(|_| 1);
            kept(held).expand_of(&room, &places, &mut regs, 0x8001_0003);
            [0, 1, 2, 16, 31].map(|lane| regs.r32[0].0[lane])
        };
        let lanes: Arc<[i32]> = (0..64).collect();
        let sums = [0x1_0003, 0x1_0005, 1, 0xffff_0024, 0xffff_0042];
        assert_eq!(every_second(Held::Pattern { each: 32, lanes }), sums);
        assert_eq!(every_second(Held::Mask), [1, 0, 1, 0, 1]);
        // Of the even bits, 0, 16, 34 and 48 to 62 are set.
        assert_eq!(mask_of(&room, 8, &places), 0xff02_0101);
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
        // Strides of every second row that are odd or that differ from the others do not fit.
        let every = || (0..LANES).map(|lane| lane as i32 / 8 * 2).collect();
        let rows = Held::Rows { lanes: Arc::new([0; LANES]), rows: every() };
        for (row, fits) in [([0, 6, 12, 18], true), ([0, 5, 10, 15], false), ([0, 6, 12, 20], false)] {
            let regs = registers(|lane| row[lane / 8]);
            for known in [false, true] {
                let fit = taken(RegClass::R32, rows.clone(), 0).take(&regs, FULL, known, &mut room);
                assert_eq!(fit, fits, "{row:?}");
            }
        }
        // Rows that count down from the most negative multiple, and a doubled stride that wraps around.
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
        let kept = |held, offset| SavedReg { reg: Reg { class: RegClass::R32, index: 0 }, offset, held };
        let left = ExitState {
            running: vec![kept(Held::Constant(5), 0)],
            pending: vec![
                PendingLanes { block: 3, offset: 0, kept: vec![kept(Held::Same, 4)] },
                PendingLanes { block: 4, offset: 8, kept: vec![kept(Held::Same, 12)] },
            ],
        };
        let room = [Line([0xf0 | 77 << 32, 99 << 32, 0, 0, 0, 0, 0, 0])];
        let (mut regs, mut parted) = (registers(|_| 1), Vec::new());
        left.leave(&room, &mut regs, 0x0f, &mut parted);
        assert_eq!(parted, [[3, 0xf0]]);
        assert_eq!(regs.r32[0].0[..9], [5, 5, 5, 5, 77, 77, 77, 77, 1]);
    }
}
