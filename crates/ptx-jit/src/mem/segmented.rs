//! Segmented accesses: chunks whose lanes are in several rows, in CTAs that are eight threads wide or use
//! tiles of eight columns.
//!
//! Each row is one access of a half or a quarter of a chunk; a gather or scatter would cost an access for
//! each lane.
//!
//! Invariant: where lanes may be inactive, a row has only the elements of its lanes.

use super::Vectors;
use crate::wir::Affine;
use crate::wir::access::{Access, Active};

impl Vectors {
    /// The distance between neighbouring lanes in the rows of a chunk: the bytes of a lane's access, or zero.
    /// `None`: any other distance; or lanes may be inactive and a row access would cover more than the active
    /// lanes' elements.
    pub(crate) fn step_in_rows(
        self,
        access: Access,
        pattern: &Affine,
        c: u32,
        active: Active,
    ) -> Option<u32> {
        let (width, start) = (self.width as usize, (c * self.width) as usize);
        let lanes = &pattern.lanes[start..start + width];
        let has = |step: u32| {
            let next = |pair: &[i32]| pair[1] - pair[0] == step as i32;
            lanes.chunks(pattern.run(width)).all(|lanes| lanes.windows(2).all(next))
        };
        let bytes = access.bytes();
        match access.count {
            1 if has(bytes) => Some(bytes),
            _ if active != Active::All => None,
            _ => [bytes, 0].into_iter().find(|step| has(*step)),
        }
    }
}
