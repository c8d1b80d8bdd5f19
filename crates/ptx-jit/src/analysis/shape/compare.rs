//! Comparisons of varying values whose outcome is uniform.
//!
//! The threads of a warp start at a multiple of 32, so `tid < 64` holds for all of its lanes or for none.
//! Ranges decide other comparisons ([`range::decided`](crate::analysis::range::decided)).
//!
//! Invariant: an outcome is called uniform only where it is the same in every lane, active or not. The values
//! of the first lane then give the outcome.

use crate::wir::lattice::Affine;
use ptx::isa::Cmp;

/// The other side of a comparison with an affine value.
pub(crate) enum Other {
    /// A constant.
    Number(u64),
    /// A uniform number with at least so many trailing zero bits.
    Multiple(u8),
}

/// Whether all lanes get the same outcome when an affine value, the first operand, is compared with another
/// value.
pub(crate) fn is_same(cmp: Cmp, pattern: &Affine, other: Other) -> bool {
    let (Some(least), Some(most)) = (pattern.lanes.iter().min(), pattern.lanes.iter().max()) else {
        return false;
    };
    let below = |align: u8| i64::from(*most) < 1 << align.min(30);
    if pattern.by_chunk || !pattern.rows.is_empty() || *least < 0 || !below(pattern.align) {
        return false;
    }
    // The values of all lanes lie between two neighbouring multiples of this.
    let unit = 1 << pattern.align.min(30);
    match (cmp, other) {
        (Cmp::Lt | Cmp::Lo | Cmp::Ge | Cmp::Hs, Other::Multiple(align)) => below(align),
        (Cmp::Lt | Cmp::Lo | Cmp::Ge | Cmp::Hs, Other::Number(k)) => parts_none(k % unit, *most),
        (Cmp::Le | Cmp::Ls | Cmp::Gt | Cmp::Hi, Other::Number(k)) => {
            parts_none(k.wrapping_add(1) % unit, *most)
        }
        _ => false,
    }
}

/// Whether all lanes are on one side of a limit that is `rest` above a multiple of the alignment; `most` is
/// the greatest constant of a lane.
fn parts_none(rest: u64, most: i32) -> bool {
    rest == 0 || rest > i64::from(most) as u64
}

/// The comparison with its operands exchanged.
pub(crate) fn turned(cmp: Cmp) -> Cmp {
    match cmp {
        Cmp::Lt => Cmp::Gt,
        Cmp::Gt => Cmp::Lt,
        Cmp::Le => Cmp::Ge,
        Cmp::Ge => Cmp::Le,
        Cmp::Lo => Cmp::Hi,
        Cmp::Hi => Cmp::Lo,
        Cmp::Ls => Cmp::Hs,
        Cmp::Hs => Cmp::Ls,
        other => other,
    }
}
