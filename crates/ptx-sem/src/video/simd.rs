//! SIMD video instructions: `vadd2`, `vsub2`, `vavrg2`, `vabsdiff2`, `vmin2`, `vmax2`, `vset2` on two halves,
//! and the same with 4 on four bytes (PTX ISA 6.4 §9.7.16).
//!
//! **Invariant:** a lane result is exact until it is truncated to its lane, or added to c.

use super::{compare, extend, range};
use crate::Cmp;

/// The operation of a SIMD video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoSimdOp {
    /// `vadd2`, `vadd4`: a + b.
    Add,
    /// `vsub2`, `vsub4`: a - b.
    Sub,
    /// `vavrg2`, `vavrg4`: the mean, with one half rounded away from zero.
    Avrg,
    /// `vabsdiff2`, `vabsdiff4`: |a - b|.
    Absdiff,
    /// `vmin2`, `vmin4`: the smaller by value.
    Min,
    /// `vmax2`, `vmax4`: the greater by value.
    Max,
    /// `vset2`, `vset4`: 1 if the relation holds, else 0.
    Set,
}

/// The number of lanes of a SIMD video instruction, the digit in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoLanes {
    /// Two halves.
    Two,
    /// Four bytes.
    Four,
}

impl VideoLanes {
    /// The number of lanes.
    #[inline]
    fn count(self) -> u32 {
        match self {
            VideoLanes::Two => 2,
            VideoLanes::Four => 4,
        }
    }
}

/// A SIMD video instruction with all its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VideoSimd {
    /// The operation.
    pub op: VideoSimdOp,
    /// Two halves or four bytes.
    pub lanes: VideoLanes,
    /// Whether dtype is `.s32`: the range of `.sat`. `vset2` and `vset4` have no dtype.
    pub dtype_signed: bool,
    /// Whether atype is `.s32`: it extends the elements selected by `asel`, from either register.
    pub atype_signed: bool,
    /// Whether btype is `.s32`: it extends the elements selected by `bsel`, from either register.
    pub btype_signed: bool,
    /// `.sat`. The syntax allows it only without `.add`, and not for `vset2` and `vset4`, whose 0 or 1 is in
    /// every range.
    pub sat: bool,
    /// `.add`: the masked lanes are added to c, instead of being merged into it.
    pub add: bool,
    /// The lanes that are written or summed: bit i is lane i. `.h10` is 0b11, `.b3210` is 0b1111.
    pub mask: u8,
    /// The element that each lane takes as its first operand, lane 0 first (the **last** digit of `.asel`).
    /// Numbers from 0 are elements of a, followed by those of b.
    pub asel: [u8; 4],
    /// The element that each lane takes as its second operand, like `asel`.
    pub bsel: [u8; 4],
    /// The relation of `vset2` and `vset4`; ignored by the others.
    pub cmp: Cmp,
}

impl VideoSimd {
    /// The operation on unsigned lanes with all defaults: all lanes, the first operands from a (`.h10`,
    /// `.b3210`), the second from b (`.h32`, `.b7654`); `vset` tests for equality.
    #[must_use]
    pub const fn new(op: VideoSimdOp, lanes: VideoLanes) -> Self {
        let (mask, bsel) = match lanes {
            VideoLanes::Two => (0b11, [2, 3, 2, 3]),
            VideoLanes::Four => (0b1111, [4, 5, 6, 7]),
        };
        Self {
            op,
            lanes,
            dtype_signed: false,
            atype_signed: false,
            btype_signed: false,
            sat: false,
            add: false,
            mask,
            asel: [0, 1, 2, 3],
            bsel,
            cmp: Cmp::Eq,
        }
    }
}

/// The result of a SIMD video instruction.
///
/// Choices where the manual is ambiguous:
/// - With `.add` the exact lane results are added, as in the pseudocode, and not truncated to the lane first.
///   `vabsdiff4.s32.s32.s32.add` therefore adds differences up to 255, and dtype has no effect.
/// - A merge puts each result, truncated, into its lane, and takes the other lanes from **c** (the text of
///   `vset2` and `vset4` says b; their pseudocode and all other instructions use c). The pseudocode omits the
///   shift to the lane.
/// - The mean rounds one half away from zero: (s + 1) >> 1 for a sum s of 0 or more, s >> 1 for a negative s.
///
/// Elements are numbered modulo twice the number of lanes, and mask bits above the lanes are ignored.
///
/// # Source
/// PTX ISA §9.7.16.
#[must_use]
pub fn video_simd(cfg: &VideoSimd, a: u32, b: u32, c: u32) -> u32 {
    let count = cfg.lanes.count();
    let width = 32 / count;
    let ones = u32::MAX >> (32 - width);
    let element = |select: u8, signed: bool| {
        let index = u32::from(select) & (2 * count - 1);
        let register = if index < count { a } else { b };
        extend(register >> (width * (index & (count - 1))), width, signed)
    };
    let mut d = c;
    for (lane, (&asel, &bsel)) in (0..count).zip(cfg.asel.iter().zip(&cfg.bsel)) {
        if cfg.mask >> lane & 1 == 0 {
            continue;
        }
        let exact = primary(cfg, element(asel, cfg.atype_signed), element(bsel, cfg.btype_signed));
        let result = if cfg.sat {
            let (least, greatest) = range(width, cfg.dtype_signed);
            exact.clamp(least, greatest)
        } else {
            exact
        } as u32;
        let place = ones << (width * lane);
        d = if cfg.add { d.wrapping_add(result) } else { (result << (width * lane) & place) | (d & !place) };
    }
    d
}

/// The exact result of one lane.
#[inline]
fn primary(cfg: &VideoSimd, va: i64, vb: i64) -> i64 {
    match cfg.op {
        VideoSimdOp::Add => va + vb,
        VideoSimdOp::Sub => va - vb,
        VideoSimdOp::Avrg => (va + vb + i64::from(va + vb >= 0)) >> 1,
        VideoSimdOp::Absdiff => (va - vb).abs(),
        VideoSimdOp::Min => va.min(vb),
        VideoSimdOp::Max => va.max(vb),
        VideoSimdOp::Set => compare(cfg.cmp, va, vb).into(),
    }
}

/// Applies a function to each pair of bytes of a and b.
#[inline]
fn by_bytes(a: u32, b: u32, f: impl Fn(u8, u8) -> u8) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    u32::from_le_bytes([f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])])
}

/// Applies a function to each pair of halves of a and b.
#[inline]
fn by_halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// c plus the four bytes of a.
#[inline]
fn sum_bytes(a: u32, c: u32) -> u32 {
    a.to_le_bytes().iter().fold(c, |d, &byte| d.wrapping_add(byte.into()))
}

/// c plus the two halves of a.
#[inline]
fn sum_halves(a: u32, c: u32) -> u32 {
    c.wrapping_add(a & 0xffff).wrapping_add(a >> 16)
}

macro_rules! lanewise {
    ($($name:ident $lanes:ident $f:expr, $doc:literal;)+) => {$(
        #[doc = $doc]
        ///
        /// All three types are equal and all lanes are written, so c is not used. The result equals
        /// [`video_simd`] with that configuration.
        ///
        /// # Source
        /// PTX ISA §9.7.16.1, §9.7.16.3.
        #[inline]
        #[must_use]
        pub fn $name(a: u32, b: u32) -> u32 {
            $lanes(a, b, $f)
        }
    )+};
}
lanewise! {
    vadd4_u32 by_bytes u8::wrapping_add, "`vadd4.u32.u32.u32`: the sums of the bytes, modulo 2^8 (also `.s32`).";
    vsub4_u32 by_bytes u8::wrapping_sub, "`vsub4.u32.u32.u32`: the differences of the bytes, modulo 2^8 (also `.s32`).";
    vadd4_sat_u32 by_bytes u8::saturating_add, "`vadd4.u32.u32.u32.sat`: the sums of the bytes, at most 255.";
    vsub4_sat_u32 by_bytes u8::saturating_sub, "`vsub4.u32.u32.u32.sat`: the differences of the bytes, at least 0.";
    vadd4_sat_s32 by_bytes |a, b| a.cast_signed().saturating_add(b.cast_signed()).cast_unsigned(),
        "`vadd4.s32.s32.s32.sat`: the sums of the signed bytes, clamped to -128..127.";
    vsub4_sat_s32 by_bytes |a, b| a.cast_signed().saturating_sub(b.cast_signed()).cast_unsigned(),
        "`vsub4.s32.s32.s32.sat`: the differences of the signed bytes, clamped to -128..127.";
    vavrg4_u32 by_bytes |a, b| ((u16::from(a) + u16::from(b) + 1) >> 1) as u8,
        "`vavrg4.u32.u32.u32`: the means of the bytes, halves rounded up.";
    vabsdiff4_u32 by_bytes u8::abs_diff, "`vabsdiff4.u32.u32.u32`: the absolute differences of the bytes.";
    vabsdiff4_s32 by_bytes |a, b| a.cast_signed().abs_diff(b.cast_signed()),
        "`vabsdiff4.s32.s32.s32`: the absolute differences of the signed bytes, modulo 2^8.";
    vmin4_u32 by_bytes u8::min, "`vmin4.u32.u32.u32`: the smaller bytes.";
    vmax4_u32 by_bytes u8::max, "`vmax4.u32.u32.u32`: the greater bytes.";
    vmin4_s32 by_bytes |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned(),
        "`vmin4.s32.s32.s32`: the smaller signed bytes.";
    vmax4_s32 by_bytes |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned(),
        "`vmax4.s32.s32.s32`: the greater signed bytes.";
    vadd2_u32 by_halves u16::wrapping_add, "`vadd2.u32.u32.u32`: the sums of the halves, modulo 2^16 (also `.s32`).";
    vsub2_u32 by_halves u16::wrapping_sub, "`vsub2.u32.u32.u32`: the differences of the halves, modulo 2^16 (also `.s32`).";
    vadd2_sat_u32 by_halves u16::saturating_add, "`vadd2.u32.u32.u32.sat`: the sums of the halves, at most 65535.";
    vsub2_sat_u32 by_halves u16::saturating_sub, "`vsub2.u32.u32.u32.sat`: the differences of the halves, at least 0.";
    vadd2_sat_s32 by_halves |a, b| a.cast_signed().saturating_add(b.cast_signed()).cast_unsigned(),
        "`vadd2.s32.s32.s32.sat`: the sums of the signed halves, clamped to -32768..32767.";
    vsub2_sat_s32 by_halves |a, b| a.cast_signed().saturating_sub(b.cast_signed()).cast_unsigned(),
        "`vsub2.s32.s32.s32.sat`: the differences of the signed halves, clamped to -32768..32767.";
    vavrg2_u32 by_halves |a, b| ((u32::from(a) + u32::from(b) + 1) >> 1) as u16,
        "`vavrg2.u32.u32.u32`: the means of the halves, halves rounded up.";
    vabsdiff2_u32 by_halves u16::abs_diff, "`vabsdiff2.u32.u32.u32`: the absolute differences of the halves.";
    vabsdiff2_s32 by_halves |a, b| a.cast_signed().abs_diff(b.cast_signed()),
        "`vabsdiff2.s32.s32.s32`: the absolute differences of the signed halves, modulo 2^16.";
    vmin2_u32 by_halves u16::min, "`vmin2.u32.u32.u32`: the smaller halves.";
    vmax2_u32 by_halves u16::max, "`vmax2.u32.u32.u32`: the greater halves.";
    vmin2_s32 by_halves |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned(),
        "`vmin2.s32.s32.s32`: the smaller signed halves.";
    vmax2_s32 by_halves |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned(),
        "`vmax2.s32.s32.s32`: the greater signed halves.";
}

/// `vabsdiff4.u32.u32.u32.add`: c plus the absolute differences of the four bytes, modulo 2^32.
///
/// # Source
/// PTX ISA §9.7.16.3.
#[inline]
#[must_use]
pub fn vabsdiff4_add_u32(a: u32, b: u32, c: u32) -> u32 {
    sum_bytes(vabsdiff4_u32(a, b), c)
}

/// `vabsdiff4.s32.s32.s32.add`: c plus the absolute differences (0 to 255) of the four signed bytes, modulo
/// 2^32.
///
/// # Source
/// PTX ISA §9.7.16.3.
#[inline]
#[must_use]
pub fn vabsdiff4_add_s32(a: u32, b: u32, c: u32) -> u32 {
    sum_bytes(vabsdiff4_s32(a, b), c)
}

/// `vabsdiff2.u32.u32.u32.add`: c plus the absolute differences of the two halves, modulo 2^32.
///
/// # Source
/// PTX ISA §9.7.16.1.
#[inline]
#[must_use]
pub fn vabsdiff2_add_u32(a: u32, b: u32, c: u32) -> u32 {
    sum_halves(vabsdiff2_u32(a, b), c)
}

/// `vabsdiff2.s32.s32.s32.add`: c plus the absolute differences (0 to 65535) of the two signed halves, modulo
/// 2^32.
///
/// # Source
/// PTX ISA §9.7.16.1.
#[inline]
#[must_use]
pub fn vabsdiff2_add_s32(a: u32, b: u32, c: u32) -> u32 {
    sum_halves(vabsdiff2_s32(a, b), c)
}
