//! Scalar video instructions except `vmad`: `vadd`, `vsub`, `vabsdiff`, `vmin`, `vmax`, `vshl`, `vshr`,
//! `vset` (PTX ISA 6.4 §9.7.15).
//!
//! Stages: extract and extend the operands, one exact operation, clamp (`.sat`), then a second operation with
//! c or a merge into c.
//!
//! **Invariant:** the result of the operation is exact until the low 32 bits are written.

use super::{VideoSel, compare, range};
use crate::Cmp;

/// The operation of a scalar video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoScalarOp {
    /// `vadd`: a + b.
    Add,
    /// `vsub`: a - b.
    Sub,
    /// `vabsdiff`: |a - b|.
    Absdiff,
    /// `vmin`: the smaller by value.
    Min,
    /// `vmax`: the greater by value.
    Max,
    /// `vshl`: a shifted left by b.
    Shl,
    /// `vshr`: a shifted right by b.
    Shr,
    /// `vset`: 1 if the relation holds, else 0.
    Set,
}

/// The second operation of a scalar video instruction (`.secop`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoSecop {
    /// `.add`
    Add,
    /// `.min`
    Min,
    /// `.max`
    Max,
}

/// The treatment of large shift counts by `vshl` and `vshr` (`.mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VideoShift {
    /// `.clamp`: a count greater than 32 counts as 32.
    #[default]
    Clamp,
    /// `.wrap`: the count modulo 32.
    Wrap,
}

/// A scalar video instruction with all its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VideoScalar {
    /// The operation.
    pub op: VideoScalarOp,
    /// Whether dtype is `.s32`: it sets the range of `.sat` and the sign of c. `vset` has no dtype; it is
    /// unsigned.
    pub dtype_signed: bool,
    /// Whether atype is `.s32`.
    pub atype_signed: bool,
    /// Whether btype is `.s32`; `vshl` and `vshr` always take b as unsigned.
    pub btype_signed: bool,
    /// `.sat`; `vset` has none, and ignores it.
    pub sat: bool,
    /// The part of a.
    pub asel: VideoSel,
    /// The part of b.
    pub bsel: VideoSel,
    /// The part of c that the result is merged into; `Word` for none.
    pub dsel: VideoSel,
    /// The second operation, if any. The syntax allows either it or a `dsel`; with both, this one counts.
    pub secop: Option<VideoSecop>,
    /// The shift mode of `vshl` and `vshr`; ignored by the others.
    pub mode: VideoShift,
    /// The relation of `vset`; ignored by the others.
    pub cmp: Cmp,
}

impl VideoScalar {
    /// The operation on whole unsigned words, without modifiers; shifts clamp, `vset` tests for equality.
    #[must_use]
    pub const fn new(op: VideoScalarOp) -> Self {
        Self {
            op,
            dtype_signed: false,
            atype_signed: false,
            btype_signed: false,
            sat: false,
            asel: VideoSel::Word,
            bsel: VideoSel::Word,
            dsel: VideoSel::Word,
            secop: None,
            mode: VideoShift::Clamp,
            cmp: Cmp::Eq,
        }
    }
}

/// The result of a scalar video instruction other than `vmad`. Only forms with a second operation or a merge
/// use `c`.
///
/// Choices where the manual is ambiguous:
/// - The intermediate result stays exact through clamp and second operation, although the return type in the
///   pseudocode is narrower than its argument: `vsub.u32.u32.u32.min` of 0 and 1 with c = 5 compares -1, not
///   2^32-1, with 5; `vshl` of 4 by 32 saturates. c is extended by dtype.
/// - The clamp precedes the second operation, whose result is not clamped again. With a merge the clamp is to
///   the range of the byte or half that is written.
/// - Second operation and merge exclude each other. The pseudocode, read literally, would let the merge
///   overwrite the second operation.
/// - In shifts b is unsigned, also as a selected byte, and a count of 32 is legal in `.clamp`. The fill
///   follows the sign of a's type.
///
/// # Source
/// PTX ISA §9.7.15, §9.7.15.1, §9.7.15.2, §9.7.15.4.
#[must_use]
pub fn video_scalar(cfg: &VideoScalar, a: u32, b: u32, c: u32) -> u32 {
    let exact = primary(cfg, a, b);
    let (low, width) = cfg.dsel.place();
    let dtype_signed = cfg.dtype_signed && cfg.op != VideoScalarOp::Set;
    let result = if cfg.sat && cfg.op != VideoScalarOp::Set {
        let (least, greatest) = range(width, dtype_signed);
        exact.clamp(least.into(), greatest.into())
    } else {
        exact
    };
    let c_value = i128::from(VideoSel::Word.extract(c, dtype_signed));
    match cfg.secop {
        Some(VideoSecop::Add) => (result as u32).wrapping_add(c),
        Some(VideoSecop::Min) => result.min(c_value) as u32,
        Some(VideoSecop::Max) => result.max(c_value) as u32,
        None => {
            let place = (u32::MAX >> (32 - width)) << low;
            ((result as u32) << low & place) | (c & !place)
        }
    }
}

/// The exact result of the first operation. A left shift of 33 bits by 32 needs 65 bits.
#[inline]
fn primary(cfg: &VideoScalar, a: u32, b: u32) -> i128 {
    let ta = cfg.asel.extract(a, cfg.atype_signed);
    let tb = cfg.bsel.extract(b, cfg.btype_signed);
    match cfg.op {
        VideoScalarOp::Add => (ta + tb).into(),
        VideoScalarOp::Sub => (ta - tb).into(),
        VideoScalarOp::Absdiff => (ta - tb).abs().into(),
        VideoScalarOp::Min => ta.min(tb).into(),
        VideoScalarOp::Max => ta.max(tb).into(),
        VideoScalarOp::Shl => i128::from(ta) << shift_count(cfg, b),
        VideoScalarOp::Shr => i128::from(ta) >> shift_count(cfg, b),
        VideoScalarOp::Set => compare(cfg.cmp, ta, tb).into(),
    }
}

/// The shift count, 0 to 32.
#[inline]
fn shift_count(cfg: &VideoScalar, b: u32) -> i64 {
    let tb = cfg.bsel.extract(b, false);
    match cfg.mode {
        VideoShift::Clamp => tb.min(32),
        VideoShift::Wrap => tb & 0x1f,
    }
}
