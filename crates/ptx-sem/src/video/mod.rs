//! The video instructions (PTX ISA 6.4 §9.7.14 to §9.7.16; §9.7.18 of the current manual).
//!
//! [`scalar`] has the eight scalar instructions with a common form, [`vmad`] the ninth, [`simd`] the fourteen
//! on halves and bytes. An instruction with its modifiers is a plain configuration value, so one function per
//! family handles every combination. The frequent combinations have functions of their own, which tests
//! compare with the general one.
//!
//! **Invariant:** intermediate results are exact integers, because the manual's pseudocode does not narrow
//! them; only the last step keeps 32 bits. If the manual contradicts itself, the function that decides
//! documents the choice and the reason.

mod scalar;
mod simd;
mod vmad;

pub use scalar::*;
pub use simd::*;
pub use vmad::*;

/// The part of a register that a selector of a scalar video instruction names (`.asel`, `.bsel`, `.dsel`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VideoSel {
    /// All 32 bits: no selector.
    #[default]
    Word,
    /// `.b0`: bits 7..0.
    B0,
    /// `.b1`: bits 15..8.
    B1,
    /// `.b2`: bits 23..16.
    B2,
    /// `.b3`: bits 31..24.
    B3,
    /// `.h0`: bits 15..0.
    H0,
    /// `.h1`: bits 31..16.
    H1,
}

impl VideoSel {
    /// The lowest bit and the width of the part.
    #[inline]
    fn place(self) -> (u32, u32) {
        match self {
            VideoSel::Word => (0, 32),
            VideoSel::B0 => (0, 8),
            VideoSel::B1 => (8, 8),
            VideoSel::B2 => (16, 8),
            VideoSel::B3 => (24, 8),
            VideoSel::H0 => (0, 16),
            VideoSel::H1 => (16, 16),
        }
    }

    /// The part of `a`, sign- or zero-extended.
    #[inline]
    fn extract(self, a: u32, signed: bool) -> i64 {
        let (low, width) = self.place();
        extend(a >> low, width, signed)
    }
}

/// The low `width` bits (8, 16 or 32) of `a`, sign- or zero-extended.
#[inline]
fn extend(a: u32, width: u32, signed: bool) -> i64 {
    let up = 32 - width;
    if signed { i64::from((a << up).cast_signed() >> up) } else { i64::from(a << up >> up) }
}

/// The least and greatest value of a type of `width` bits (8, 16 or 32).
#[inline]
fn range(width: u32, signed: bool) -> (i64, i64) {
    if signed { (-1 << (width - 1), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) }
}

/// The six relations of `vset`, on exact values: operands of mixed signedness compare by value.
#[inline]
fn compare(cmp: crate::Cmp, a: i64, b: i64) -> bool {
    crate::cmp_s64(cmp, a, b)
}
