//! The 32 lanes of a warp: lane masks, and arrays with one element per lane.
//!
//! Invariant: bit *i* of a mask and element *i* of an array belong to lane *i* of the warp.

/// Lanes in a warp (`WARP_SZ`).
pub const LANES: usize = 32;

/// A set of lanes, bit *i* for lane *i*.
pub type LaneMask = u32;

/// All lanes.
pub const FULL: LaneMask = u32::MAX;

/// One value for each lane.
///
/// # Shape
/// 32 elements of one width, aligned for vector loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Lane<T>(pub [T; LANES]);

impl<T: Copy> Lane<T> {
    /// The same value in every lane.
    pub fn splat(value: T) -> Self {
        Self([value; LANES])
    }
}

/// An unsigned integer that [`Lane::blend`] can select by bits.
pub trait Bits: Copy {
    /// `a` if `first`, else `b`.
    fn choose(first: bool, a: Self, b: Self) -> Self;
}

macro_rules! bits {
    ($($ty:ty)+) => {$(
        impl Bits for $ty {
            #[inline(always)]
            fn choose(first: bool, a: Self, b: Self) -> Self {
                let ones = <$ty>::from(first).wrapping_neg();
                a & ones | b & !ones
            }
        }
    )+};
}
bits! { u8 u16 u32 u64 }

impl<T: Bits> Lane<T> {
    /// Takes `new` in the lanes of `mask` and keeps the others.
    #[inline(always)]
    pub fn blend(&mut self, mask: LaneMask, new: &Self) {
        if mask == FULL {
            *self = *new;
        } else {
            // Selected by bits: both values are read in every lane, so the loop vectorises.
            for lane in 0..LANES {
                self.0[lane] = T::choose(mask & (1 << lane) != 0, new.0[lane], self.0[lane]);
            }
        }
    }
}

impl<T: Copy + Default> Default for Lane<T> {
    fn default() -> Self {
        Self::splat(T::default())
    }
}

/// The lanes of a mask, lowest first.
pub fn lanes_of(mask: LaneMask) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros() as usize;
        (rest != 0).then(|| {
            rest &= rest - 1;
            lane
        })
    })
}

/// The registers of one activation of one function, by width class.
#[derive(Clone, Debug, Default)]
pub struct Registers {
    /// Predicates: one mask each.
    pub pred: Vec<LaneMask>,
    /// 16-bit registers (8-bit ones too).
    pub r16: Vec<Lane<u16>>,
    /// 32-bit registers.
    pub r32: Vec<Lane<u32>>,
    /// 64-bit registers.
    pub r64: Vec<Lane<u64>>,
}

impl Registers {
    /// Sets the number of registers of each class. If the numbers change, all are zero.
    pub fn provide(&mut self, counts: ptx::ir::RegCounts) {
        let have = [self.pred.len(), self.r16.len(), self.r32.len(), self.r64.len()];
        if have != [counts.pred, counts.r16, counts.r32, counts.r64].map(|count| count as usize) {
            self.reset(counts);
        }
    }

    /// Sets the number of registers of each class, all zero; keeps the allocations.
    pub fn reset(&mut self, counts: ptx::ir::RegCounts) {
        self.pred.clear();
        self.pred.resize(counts.pred as usize, 0);
        self.r16.clear();
        self.r16.resize(counts.r16 as usize, Lane::default());
        self.r32.clear();
        self.r32.resize(counts.r32 as usize, Lane::default());
        self.r64.clear();
        self.r64.resize(counts.r64 as usize, Lane::default());
    }
}
