//! Selects the strategy of each access.
//!
//! A strategy is the cheapest that its lanes' addresses and masks allow: one scalar access, one vector, a few
//! vectors that are permuted, rows that are transposed, parts of vectors, or an access for each lane.
//!
//! Invariant: by every strategy, only elements of active lanes are accessed, or elements between those, in
//! memory that has been checked. Of several lanes that store to one element, the last one's value stays.

use super::Vectors;
use super::transposed::is_consecutive;
use crate::target::Level;
use crate::tuning::SCALAR_ACCESS_MAX_LANES;
use crate::wir::access::{Access, Active, ActiveLanes, Chunk, Form, PerLane, Strategy};
use ptx::isa::Space;

impl Vectors {
    /// The strategy of a load or a store.
    pub(crate) fn select(self, access: Access, form: &Form, active: &ActiveLanes) -> Strategy {
        match (form, access.write) {
            (Form::Same, false) => Strategy::Scalar(None),
            (Form::Same, true) if active.whole => Strategy::Scalar(Some(self.lanes - 1)),
            (Form::Same, true) => Strategy::Scalar(active.last(self.width)),
            (Form::Affine(pattern), write) => {
                let tiles = self.tiles(pattern, access, active.whole);
                let chunk = |c: u32| {
                    let lanes = self.relative(pattern, c);
                    match active.chunks[c as usize] {
                        _ if tiles.iter().any(|tile| tile.chunks.contains(&c)) => Chunk::Transposed,
                        Active::None => Chunk::Off,
                        own if write => self.store_chunk(access, &lanes, own),
                        own => self.load_chunk(access, &lanes, own),
                    }
                };
                let chunks = (0..self.chunks()).map(chunk).collect();
                Strategy::Chunks { tiles, chunks }
            }
            (Form::Rows(pattern), write) => {
                let chunk = |c: u32| {
                    let own = active.chunks[c as usize];
                    match self.step_in_rows(access, pattern, c, own) {
                        _ if own == Active::None => Chunk::Off,
                        Some(step) if !write || step == access.bytes() => Chunk::Segments(step),
                        _ => Chunk::PerLane(self.per_lane(access, own)),
                    }
                };
                Strategy::Chunks { tiles: Vec::new(), chunks: (0..self.chunks()).map(chunk).collect() }
            }
            (Form::Local | Form::EachLocal, _) => Strategy::LocalWords,
            (Form::ScaledIndex(_) | Form::Each, write) => {
                let narrow = !write && access.bits * access.count < 32 && self.level == Level::Avx512;
                let chunk = |own: &Active| match narrow {
                    true => PerLane::WordParts,
                    false => self.per_lane(access, *own),
                };
                let chunks = active.chunks.iter().map(chunk).collect();
                // Elements are read from the first active lane's to the last one's, so these must be known.
                let known = active.chunks.iter().all(|own| own.bits(self.width).is_some());
                let permuted = known && self.permutes(access);
                let tested = match form {
                    Form::ScaledIndex(scale) => *scale == u64::from(access.bytes()),
                    // In memory these are 32-bit offsets from the start of shared memory.
                    Form::Each => self.permutes(access) && access.space == Space::Shared,
                    Form::Same | Form::Affine(_) | Form::Rows(_) | Form::Local | Form::EachLocal => false,
                };
                match tested && !write {
                    true => Strategy::SpanTest { apart: chunks, permuted },
                    false => Strategy::PerLane(chunks),
                }
            }
        }
    }

    fn load_chunk(self, access: Access, lanes: &[i32], active: Active) -> Chunk {
        if lanes.iter().all(|lane| *lane == 0) {
            return Chunk::Broadcast;
        }
        if is_consecutive(lanes, access) {
            return Chunk::Vector;
        }
        let word_apart = lanes.iter().enumerate().all(|(at, lane)| *lane == at as i32 * 4);
        if access.count == 1 && access.bits < 32 && word_apart {
            return Chunk::WordParts;
        }
        match self.cluster(lanes, access, active == Active::All) {
            Some(cluster) => Chunk::Covered(cluster),
            None => Chunk::PerLane(self.per_lane(access, active)),
        }
    }

    fn store_chunk(self, access: Access, lanes: &[i32], active: Active) -> Chunk {
        if let Some(bits) = active.bits(self.width) {
            if lanes.iter().all(|lane| *lane == lanes[0]) {
                return Chunk::FewLanes(vec![bits.ilog2()]);
            }
            if let Some(few) = self.few(active) {
                return Chunk::FewLanes(few);
            }
        }
        if is_consecutive(lanes, access) {
            return Chunk::Vector;
        }
        match self.cluster(lanes, access, active == Active::All).filter(|_| access.count == 1) {
            Some(cluster) => Chunk::Covered(cluster),
            None => Chunk::PerLane(self.per_lane(access, active)),
        }
    }

    /// Whether each lane can take any element of a chunk's vector, and vectors are loaded under a mask.
    fn permutes(self, access: Access) -> bool {
        let whole = self.width == self.level.lanes();
        access.count == 1
            && whole
            && match self.level {
                Level::Avx512 => true,
                Level::Avx2 => access.bits == 32,
                Level::Baseline => false,
            }
    }

    /// How the lanes of a chunk access memory one by one.
    pub(crate) fn per_lane(self, access: Access, active: Active) -> PerLane {
        match (access.count, self.few(active)) {
            (2.., _) if !access.write => PerLane::Wide,
            (_, Some(few)) => PerLane::FewLanes(few),
            (1, None) => PerLane::Masked,
            (_, None) => PerLane::Wide,
        }
    }

    /// The active lanes of a chunk, if they are known and few.
    fn few(self, active: Active) -> Option<Vec<u32>> {
        let on = active.bits(self.width)?;
        (on.count_ones() <= SCALAR_ACCESS_MAX_LANES)
            .then(|| (0..self.width).filter(|lane| on >> lane & 1 != 0).collect())
    }
}
