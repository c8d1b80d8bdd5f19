//! Where the elements of an access are in a warp strip, which holds rows of shared memory in registers.
//!
//! Invariant: a row lies within the kernel's own variables. No two active lanes of a store share an element.

use super::Vectors;
use crate::tuning::WARP_STRIP_MAX_ROWS;
use crate::wir::access::{Active, StripPlace};
use std::ops::Range;

impl Vectors {
    /// The row and index of each lane's element in a chunk; `None`: rows cannot be used. `lanes`: the address
    /// of each lane. `shared`: the bytes of the kernel's own variables. `own`: those that the access may
    /// have.
    pub(crate) fn places_in_rows(
        self,
        lanes: &[i64],
        active: Active,
        write: bool,
        shared: u32,
        own: &Range<i64>,
    ) -> Option<Vec<StripPlace>> {
        let (width, bytes) = (i64::from(self.width), 4);
        let bits = active.bits(self.width);
        let runs = |lane: usize| bits.is_none_or(|bits| bits >> lane & 1 != 0);
        let place = |at: &i64| {
            let element = at.div_euclid(bytes);
            // An unaligned address is in no row.
            let row = if at % bytes == 0 { element.div_euclid(width) } else { -1 };
            (row, element.rem_euclid(width) as u32)
        };
        let last = i64::from(shared) / (width * bytes);
        let mut rows: Vec<i64> = Vec::new();
        let mut seen = Vec::new();
        for (_, at) in lanes.iter().enumerate().filter(|(lane, _)| runs(*lane)) {
            let (row, element) = place(at);
            let inside = own.start <= *at && at + bytes <= own.end;
            if !inside || !(0..last).contains(&row) || write && seen.contains(&(row, element)) {
                return None;
            }
            seen.push((row, element));
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        if rows.len() > WARP_STRIP_MAX_ROWS {
            return None;
        }
        // If the elements of inactive lanes are in the same rows, they are included, so that the permutation
        // has a regular pattern.
        let mut places = Vec::new();
        for (lane, at) in lanes.iter().enumerate() {
            let own = place(at);
            let also = rows.contains(&own.0) && !(write && seen.contains(&own));
            if !runs(lane) && also {
                seen.push(own);
            }
            places.push((runs(lane) || also).then_some(own));
        }
        Some(places)
    }
}
