//! Lane arithmetic of `shfl` and `shfl.sync` (PTX ISA 6.4 §9.7.8.4, §9.7.8.5).
//!
//! **Invariant:** the resulting lane is always in 0..=31. The machine handles inactive lanes and their
//! values.

/// The mode of `shfl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShflMode {
    /// `.up`: from the lane b below.
    Up,
    /// `.down`: from the lane b above.
    Down,
    /// `.bfly`: from the lane whose number differs in the bits of b.
    Bfly,
    /// `.idx`: from lane b of the segment.
    Idx,
}

/// The lane that `lane` reads in a `shfl`, and whether it is in range (the predicate p). Out of range the
/// result is `lane` itself.
///
/// Bits 4..0 of b are the distance or the index. c packs the bound in bits 4..0 and the segment mask in bits
/// 12..8. Lanes that agree in the bits of the mask form a segment. The bound is a lower one in `.up`, an
/// upper one in the other modes. Only bits 4..0 of `lane` count.
///
/// # Source
/// PTX ISA §9.7.8.5. Lane numbers are compared as signed integers, because five unsigned bits would wrap
/// around below lane 0 in `.up`.
#[inline]
#[must_use]
pub fn shfl_source(mode: ShflMode, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let lane = lane & 31;
    let bval = b & 31;
    let segmask = (c >> 8) & 31;
    let min_lane = lane & segmask;
    let max_lane = min_lane | (c & 31 & !segmask);
    let (source, valid) = match mode {
        ShflMode::Up => (lane.wrapping_sub(bval), lane >= bval + max_lane),
        ShflMode::Down => (lane + bval, lane + bval <= max_lane),
        ShflMode::Bfly => (lane ^ bval, lane ^ bval <= max_lane),
        ShflMode::Idx => {
            let source = min_lane | (bval & !segmask);
            (source, source <= max_lane)
        }
    };
    (if valid { source } else { lane }, valid)
}
