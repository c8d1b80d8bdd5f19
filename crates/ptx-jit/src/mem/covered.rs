//! Permuted accesses: lanes at constant distances that are close together, such as fields of structures,
//! every second element, partners in a sorting network.
//!
//! A few vectors cover all elements, and a constant permutation moves each lane's element to the lane.
//! Gathers and scatters, which cost an access for each lane, remain for elements that are further apart.
//!
//! Invariant: vectors never extend beyond the first and the last element of the lanes.

use super::Vectors;
use crate::target::Level;
use crate::tuning::{
    PERMUTED_ACCESS_MAX_VECTORS, PERMUTED_ACCESS_MAX_VECTORS_512, PERMUTED_LOAD_MAX_VECTORS_256,
};
use crate::wir::access::{Access, Cluster, Cover};

impl Vectors {
    /// The vectors that cover the elements of a chunk's lanes, at these distances from the first lane.
    /// `None`: too many vectors are needed, or two lanes share an element where that is not allowed. `whole`:
    /// all lanes are active.
    pub(crate) fn cluster(self, lanes: &[i32], access: Access, whole: bool) -> Option<Cluster> {
        let most = match self.level {
            Level::Avx512 => PERMUTED_ACCESS_MAX_VECTORS_512,
            // Run-time masks are cheap only where the processor has mask registers.
            Level::Avx2 | Level::Baseline if !whole => return None,
            Level::Avx2 if !access.write => PERMUTED_LOAD_MAX_VECTORS_256,
            Level::Avx2 | Level::Baseline => PERMUTED_ACCESS_MAX_VECTORS,
        };
        let bytes = (access.bits / 8) as i32;
        let low = *lanes.iter().min()?;
        let mut elements = Vec::new();
        for lane in lanes {
            let distance = lane.checked_sub(low)?;
            if distance % bytes != 0 || distance / bytes >= (most * self.width) as i32 {
                return None;
            }
            elements.push((distance / bytes) as u32);
        }
        let unique = elements.iter().enumerate().all(|(at, element)| !elements[..at].contains(element));
        if !unique && (access.write || !whole) {
            return None;
        }
        let (width, span) = (self.width, elements.iter().max()? + 1);
        // The last vector ends with the last element.
        let count = span.div_ceil(width);
        let vectors = (0..count).map(|at| {
            let start = (at * width).min(span.saturating_sub(width));
            let mut cover =
                Cover { start, owners: vec![None; width as usize], taken: vec![None; width as usize] };
            for (lane, element) in elements.iter().enumerate().filter(|(_, e)| **e / width == at) {
                cover.owners[(element - start) as usize] = Some(lane as u32);
                cover.taken[lane] = Some(element - start);
            }
            cover
        });
        Some(Cluster { low: i64::from(low), vectors: vectors.collect() })
    }
}
