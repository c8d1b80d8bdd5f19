//! Covering loads: several loads whose lanes access nearby elements are taken from one set of vectors.
//!
//! Fields of structures, columns of a tile of which each thread has several, and pixels of several words are
//! accessed this way. Each load alone needs every vector that its lanes' elements are in, and most of those
//! start within a cache line. The vectors of all the loads are loaded once, and permutations take each load's
//! elements from them: for vectors of four words, eight permutations instead of sixteen loads and twelve
//! permutations.
//!
//! Invariant: the members of a group need no more vectors together than one load may need.

use crate::mem::Vectors;
use crate::target::Level;
use crate::tuning::COVERING_LOAD_MAX_VECTORS;
use crate::wir::Affine;
use crate::wir::access::Access;
use crate::wir::group::Member;

impl Vectors {
    /// Whether the lanes of every chunk are close to each other, but neither at one address nor consecutive.
    pub(super) fn lies_near(self, pattern: &Affine, access: Access) -> bool {
        let near = |c: u32| {
            let lanes = self.relative(pattern, c);
            let same = lanes.iter().all(|lane| *lane == 0);
            !same && self.elements(&lanes, access).is_some()
        };
        self.level == Level::Avx512
            && access.bits == 32
            && !access.write
            && pattern.rows.is_empty()
            && (0..self.chunks()).all(near)
    }

    /// For each lane, how many elements it is after the lowest lane.
    pub(crate) fn elements(self, lanes: &[i32], access: Access) -> Option<Vec<u32>> {
        let (low, bytes) = (*lanes.iter().min()?, access.bytes());
        let element = |lane: &i32| {
            let far = u32::try_from(lane.checked_sub(low)?).ok()?;
            (far.is_multiple_of(bytes) && far / bytes < COVERING_LOAD_MAX_VECTORS * self.width)
                .then_some(far / bytes)
        };
        lanes.iter().map(element).collect()
    }

    /// Groups of a family: loads whose elements need no more vectors together than those of one load may
    /// need. A group has at least two loads.
    pub(super) fn covering_of<'m>(
        self,
        members: &'m [Member],
        pattern: &Affine,
        access: Access,
    ) -> Vec<&'m [Member]> {
        let spans =
            (0..self.chunks()).map(|c| self.elements(&self.relative(pattern, c), access)?.into_iter().max());
        let Some(span) = spans.collect::<Option<Vec<u32>>>().and_then(|spans| spans.into_iter().max()) else {
            return Vec::new();
        };
        let bytes = i64::from(access.bytes());
        // Elements that are further away would need permutations of vectors that contain none of them.
        let left = i64::from(self.width - 1 - span % self.width) * bytes;
        let mut groups = Vec::new();
        let mut rest = members;
        while let Some(first) = rest.first() {
            let fits = |member: &&Member| {
                let far = member.offset - first.offset;
                far <= left && far % bytes == 0
            };
            let (near, others) = rest.split_at(rest.iter().take_while(fits).count());
            if near.len() > 1 {
                groups.push(near);
            }
            rest = others;
        }
        groups
    }
}
