//! Accesses to memory as data of the IR: the kind of an access, the relation of its lanes' addresses, the
//! lanes that make it, and the strategy by which code for it is generated.
//!
//! The passes in [`mem`](crate::mem) fill them in. Code generation maps a strategy to LLVM IR and decides
//! nothing about it.
//!
//! Invariant: nothing here depends on a value of LLVM.

use super::lattice::Affine;
use ptx::isa::Space;

/// A load, a store or an atomic operation, without its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) space: Space,
    /// Bits of an element.
    pub(crate) bits: u32,
    /// Elements of a lane.
    pub(crate) count: u32,
    /// Whether elements are sign-extended.
    pub(crate) signed: bool,
    pub(crate) write: bool,
    /// Whether it is a reduction that the [reduction buffer](crate::reduction_buffer) holds back.
    pub(crate) postponed: bool,
}

impl Access {
    /// Bytes of a lane.
    pub(crate) fn bytes(self) -> u32 {
        self.bits / 8 * self.count
    }
}

/// How the addresses of an access's lanes are related.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// One address for all lanes.
    Same,
    /// One base, or one for each chunk, plus a constant for each lane.
    Affine(Affine),
    /// A base and a symbolic stride, plus a constant for each lane.
    Rows(Affine),
    /// A scalar plus 32-bit indices of the lanes, times this scale.
    ScaledIndex(u64),
    /// Each lane has an address of its own.
    Each,
    /// One offset in the local memory of each lane, where the words of all lanes at an offset are neighbours.
    Local,
    /// An offset of its own for each lane in its local memory, with the same layout.
    EachLocal,
}

/// The lanes of a chunk that make an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Active {
    /// All of them.
    All,
    /// None of them.
    None,
    /// Some, but not all: those whose bit is one.
    Known(u64),
    /// Those of a mask that is computed when the code executes.
    Computed,
}

impl Active {
    /// The lanes of a chunk of a constant mask.
    pub(crate) fn of_bits(bits: u64, width: u32) -> Self {
        match bits {
            0 => Active::None,
            _ if bits == u64::MAX >> (64 - width) => Active::All,
            _ => Active::Known(bits),
        }
    }

    /// The bits of the active lanes, if they are known.
    pub(crate) fn bits(self, width: u32) -> Option<u64> {
        match self {
            Active::All => Some(u64::MAX >> (64 - width)),
            Active::None => Some(0),
            Active::Known(bits) => Some(bits),
            Active::Computed => None,
        }
    }
}

/// The lanes that make an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActiveLanes {
    /// Whether the block is a full copy and all lanes make the access.
    pub(crate) whole: bool,
    /// By chunk.
    pub(crate) chunks: Vec<Active>,
}

impl ActiveLanes {
    /// The last lane that makes the access, if it is known and there is one.
    pub(crate) fn last(&self, width: u32) -> Option<u32> {
        let mut last = None;
        for (at, chunk) in (0..).zip(&self.chunks) {
            let bits = chunk.bits(width)?;
            if bits != 0 {
                last = Some(at * width + bits.ilog2());
            }
        }
        last
    }
}

/// An access with all that code generation needs to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) access: Access,
    /// The form of the addresses in the access's state space.
    pub(crate) guest: Form,
    /// The form of the addresses in the memory of the process.
    pub(crate) form: Form,
    pub(crate) active: ActiveLanes,
    pub(crate) strategy: Strategy,
    /// Whether it is at constant addresses within the kernel's own shared memory or its parameters, so that
    /// it needs no check.
    pub(crate) inside: bool,
    /// For each chunk, the places of the lanes' elements in a warp strip, if a strip can hold them in
    /// registers; empty for a chunk without active lanes.
    pub(crate) strip: Option<Vec<Vec<StripPlace>>>,
}

impl Plan {
    /// The same access at one offset in local memory.
    pub(crate) fn in_local(&self) -> Plan {
        Plan {
            access: Access { space: Space::Local, ..self.access },
            guest: Form::Same,
            form: Form::Local,
            active: self.active.clone(),
            strategy: Strategy::LocalWords,
            inside: false,
            strip: None,
        }
    }
}

/// The place of a lane's element in a warp strip: the row, and the index in the row. `None`: the lane
/// accesses nothing.
pub(crate) type StripPlace = Option<(i64, u32)>;

/// How the elements of an access move between memory and registers.
#[derive(Clone, Debug)]
pub(crate) enum Strategy {
    /// One scalar load whose value all lanes get, or one scalar store of the value of the last active lane:
    /// its number, where it is known.
    Scalar(Option<u32>),
    /// Each chunk on its own, and tiles of several chunks.
    Chunks {
        /// The tiles, which have the chunks that are [`Chunk::Transposed`].
        tiles: Vec<Tile>,
        /// By chunk.
        chunks: Vec<Chunk>,
    },
    /// Each lane on its own, by chunk.
    PerLane(Vec<PerLane>),
    /// One vector load for each chunk where a test at run time finds that a vector has the elements of all
    /// active lanes, and otherwise each lane on its own.
    SpanTest {
        /// How lanes are accessed on their own, by chunk.
        apart: Vec<PerLane>,
        /// Whether lanes take their elements by a permutation; otherwise the elements must be consecutive.
        permuted: bool,
    },
    /// Words of local memory: a vector for each chunk, or a gather.
    LocalWords,
    /// An atomic operation.
    Atomic(Atomic),
}

/// How an atomic operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomic {
    /// One operation with the combined operands of all lanes.
    Combined,
    /// One operation with the combined operands where a test at run time finds that all lanes have one
    /// address, and otherwise one for each lane.
    SameAddressTest,
    /// One for each lane, in a register: all lanes have one address, in memory of their own CTA, which is
    /// loaded and stored once.
    InRegister,
    /// One for each lane.
    EachLane,
}

/// How the elements of one chunk move.
#[derive(Clone, Debug)]
pub(crate) enum Chunk {
    /// No lane is active.
    Off,
    /// The chunk belongs to a tile.
    Transposed,
    /// One scalar load whose value all lanes get.
    Broadcast,
    /// A scalar store for each of these lanes.
    FewLanes(Vec<u32>),
    /// One vector of consecutive elements.
    Vector,
    /// A vector of words that have the elements.
    WordParts,
    /// Vectors that cover the elements, permuted.
    Covered(Cluster),
    /// A part of a vector for each row, whose lanes are so many bytes apart: the bytes of an access, or zero.
    Segments(u32),
    /// Each lane on its own.
    PerLane(PerLane),
}

/// How lanes access memory where each has an address of its own.
#[derive(Clone, Debug)]
pub(crate) enum PerLane {
    /// A gather of the words that have the elements.
    WordParts,
    /// A vector of elements for each lane.
    Wide,
    /// These lanes one by one.
    FewLanes(Vec<u32>),
    /// A gather or scatter of the active lanes.
    Masked,
}

/// The vectors that cover the elements of a chunk's lanes.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// The lowest element, in bytes from the first lane's.
    pub(crate) low: i64,
    pub(crate) vectors: Vec<Cover>,
}

/// One vector of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Cover {
    /// Its first element, counted from the lowest.
    pub(crate) start: u32,
    /// For each element, the lane that it belongs to, if a lane takes it from this vector.
    pub(crate) owners: Vec<Option<u32>>,
    /// For each lane, its element, if the lane takes it from this vector.
    pub(crate) taken: Vec<Option<u32>>,
}

impl Cover {
    /// Whether the last element of the vector belongs to a lane.
    pub(crate) fn is_wide(&self) -> bool {
        self.owners.last().is_some_and(Option::is_some)
    }
}

/// A tile: chunks of which each accesses the elements that follow those of the previous chunk, lane by lane.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) chunks: Vec<u32>,
    /// For each lane of a chunk, the start of its row, in bytes from the base.
    pub(crate) rows: Vec<i32>,
}
