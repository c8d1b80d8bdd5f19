//! The remarks about the strategy of an access.

use crate::wir::access::{Access, Atomic, Chunk, Form, Plan, Strategy};
use std::borrow::Cow;

/// A remark: whether an access is cheaper than one for each lane, and how it is done.
pub(crate) type Remark = (bool, Cow<'static, str>);

impl Plan {
    /// The remarks about a load or a store, in the order of chunks. `uniform`: one scalar is loaded for all
    /// lanes; `full`: the block is a full copy.
    pub(crate) fn remarks(&self, uniform: bool, full: bool) -> Vec<Remark> {
        let Plan { access: Access { write, .. }, form, strategy, .. } = self;
        match (strategy, form) {
            (Strategy::Scalar(_), _) => {
                let how = match (write, uniform) {
                    (true, _) => "one scalar store of the last lane's value",
                    (false, true) => "one scalar load",
                    (false, false) => "one scalar load, broadcast",
                };
                vec![(true, how.into())]
            }
            (Strategy::SpanTest { permuted: false, .. }, _) => {
                let how =
                    "vector loads where a test at run time finds the indices consecutive, else a gather";
                vec![(true, how.into())]
            }
            (Strategy::SpanTest { permuted: true, .. }, _) => {
                let how = "vector loads where a test at run time finds that a vector has all elements, else \
                           a gather";
                vec![(true, how.into())]
            }
            (Strategy::LocalWords, Form::EachLocal) => {
                let how = if *write { "a scatter" } else { "a gather" };
                vec![(false, format!("{how}: each lane has an offset of its own in local memory").into())]
            }
            (Strategy::LocalWords, _) => {
                let how = if *write { "vector stores" } else { "vector loads" };
                vec![(true, format!("{how}: words of local memory at one offset").into())]
            }
            (Strategy::Atomic(how), _) => vec![match how {
                Atomic::Combined => (true, "one atomic operation with the sum of all lanes".into()),
                Atomic::SameAddressTest => (true, SAME_ADDRESS.into()),
                Atomic::InRegister => (true, "one load and one store for the operations of all lanes".into()),
                Atomic::EachLane => (false, "an atomic operation for each lane".into()),
            }],
            (Strategy::PerLane(_), _) => {
                let how = if *write { "a scatter" } else { "a gather" };
                vec![(false, format!("{how}: each lane has an address of its own").into())]
            }
            (Strategy::Chunks { tiles, chunks }, _) => {
                // A store has one remark for each tile, a load one for each chunk.
                let tiles = if *write { tiles.len() } else { 0 };
                let tiles = std::iter::repeat_n((true, TRANSPOSED.into()), tiles);
                tiles.chain(chunks.iter().filter_map(|chunk| self.remark_of(chunk, full))).collect()
            }
        }
    }

    fn remark_of(&self, chunk: &Chunk, full: bool) -> Option<Remark> {
        let write = self.access.write;
        let one = |load: &'static str, store: &'static str| if write { store } else { load };
        let by_mask =
            |how: &'static str| if full { how.into() } else { format!("{how}, under a mask").into() };
        Some(match chunk {
            Chunk::Off => return None,
            Chunk::Transposed if write => return None,
            Chunk::Transposed => (true, TRANSPOSED.into()),
            Chunk::Broadcast => (true, "one scalar load for a chunk, broadcast".into()),
            Chunk::FewLanes(_) => (true, "scalar stores of the few lanes of a constant mask".into()),
            Chunk::Vector => {
                (true, by_mask(one("one vector load for a chunk", "one vector store for a chunk")))
            }
            Chunk::WordParts => (true, "a vector of words that have the elements, shifted".into()),
            Chunk::Covered(_) => {
                let load = "vectors that cover a chunk's elements, permuted";
                (true, by_mask(one(load, "permuted, vectors that cover a chunk's elements")))
            }
            Chunk::Segments(_) => {
                (true, one("a load for each row of a chunk", "a store for each row of a chunk").into())
            }
            Chunk::PerLane(_) => {
                let how = one("a gather", "a scatter");
                let why = match self.form {
                    Form::Rows(_) => "lanes of a row are not consecutive, or may be inactive",
                    _ => "lanes are at constant distances that no vectors cover",
                };
                (false, format!("{how}: {why}").into())
            }
        })
    }
}

const TRANSPOSED: &str = "rows of several chunks, transposed in registers";

const SAME_ADDRESS: &str =
    "one atomic operation where a test at run time finds one address, else one for each lane";
