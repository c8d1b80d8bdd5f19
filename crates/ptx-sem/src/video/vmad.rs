//! `vmad`: multiply-accumulate of bytes, halves and words with negation, "plus one" and scaling (PTX ISA 6.4
//! §9.7.15.3).
//!
//! **Invariant:** product and sum are exact in 128 bits; only the low 32 bits of the scaled, clamped value
//! are written.

use super::VideoSel;

/// The right shift at the end of `vmad` (`.scale`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VmadScale {
    /// No scaling.
    #[default]
    None,
    /// `.shr7`
    Shr7,
    /// `.shr15`
    Shr15,
}

/// A `vmad` with all its modifiers. Its dtype has no effect: the clamp uses the sign of the final result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vmad {
    /// Whether atype is `.s32`.
    pub atype_signed: bool,
    /// Whether btype is `.s32`.
    pub btype_signed: bool,
    /// `.sat`.
    pub sat: bool,
    /// The part of a.
    pub asel: VideoSel,
    /// The part of b.
    pub bsel: VideoSel,
    /// Whether a has a minus.
    pub negate_a: bool,
    /// Whether b has a minus; two minuses cancel.
    pub negate_b: bool,
    /// Whether c has a minus; the syntax allows it only if the product is not negated.
    pub negate_c: bool,
    /// `.po`: plus one; the syntax allows no minus with it.
    pub po: bool,
    /// `.shr7` or `.shr15`.
    pub scale: VmadScale,
}

/// `vmad`: the low 32 bits of (a * b + c) >> scale, clamped under `.sat`.
///
/// The product is negated if exactly one of a and b has a minus. The final result is signed if atype or btype
/// is, or if the product or c is negated. c is then sign-extended, otherwise zero-extended. Choices where the
/// manual is ambiguous:
/// - dtype is ignored: the pseudocode does not use it, and the clamp uses the type of the final result.
/// - `(u32 * u32) - u32`: the pseudocode complements c in 32 bits and sign-extends it, although the table
///   calls c unsigned. For c of 2^31 and more the result is therefore off by a multiple of 2^32, which is
///   visible only with `.sat` or scaling.
/// - Without scaling all 128 bits are clamped, not the low 64: -(2^32-1)^2 clamps to -2^31.
/// - With scaling the 64 bits kept are signed if the final result is, as the text says.
///
/// # Source
/// PTX ISA §9.7.15.3, with the pseudocode of §9.7.18.1.3 in the current manual (that of 6.4 lacks a line).
#[must_use]
pub fn vmad(cfg: &Vmad, a: u32, b: u32, c: u32) -> u32 {
    let ta = i128::from(cfg.asel.extract(a, cfg.atype_signed));
    let tb = i128::from(cfg.bsel.extract(b, cfg.btype_signed));
    let negate_product = cfg.negate_a != cfg.negate_b;
    let signed = cfg.atype_signed || cfg.btype_signed || negate_product || cfg.negate_c;
    // Exactly one of the three is applied, in this order. Complement plus one is the negation.
    let (product, c, lsb) = if cfg.po {
        (ta * tb, c, 1)
    } else if negate_product {
        (!(ta * tb), c, 1)
    } else if cfg.negate_c {
        (ta * tb, !c, 1)
    } else {
        (ta * tb, c, 0)
    };
    let sum = product + i128::from(VideoSel::Word.extract(c, signed)) + lsb;
    let scaled = match cfg.scale {
        VmadScale::None => sum,
        VmadScale::Shr7 => sum >> 7,
        VmadScale::Shr15 => sum >> 15,
    };
    let result = match (cfg.sat, signed) {
        (false, _) => scaled,
        (true, true) => scaled.clamp(i32::MIN.into(), i32::MAX.into()),
        (true, false) => scaled.clamp(0, u32::MAX.into()),
    };
    result as u32
}
