//! The memory of a test: blocks of bytes, and the numbers that stand for addresses.
//!
//! A location of the space `.shared` has a block for each CTA of the test. An address is the number of a
//! location times [`STRIDE`], so that every name of a location has an address of its own.

use crate::test::{Address, Op, Operand, Placement, Space, Test, Type};

/// The distance of addresses of locations; a location is no longer than this.
pub(crate) const STRIDE: u64 = 0x1_0000;

/// Memory that nothing else overlaps.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) location: usize,
    /// The CTA of a shared block.
    pub(crate) cta: Option<Placement>,
    /// The first values of its bytes.
    pub(crate) init: Vec<u8>,
}

/// All blocks of a test.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) blocks: Vec<Block>,
}

impl Memory {
    /// The memory of a test in which the unknown first values are these, in order.
    pub(crate) fn new(test: &Test, unknown: &[u64]) -> Self {
        let mut blocks: Vec<Block> = Vec::new();
        let mut unknown = unknown.iter();
        for (index, location) in test.locations.iter().enumerate() {
            if location.alias.is_some() {
                continue;
            }
            let mut init = Vec::new();
            for element in 0..location.elements as usize {
                let value = match location.init.get(element).copied().unwrap_or(Some(Operand::Const(0))) {
                    Some(Operand::Const(value)) => value,
                    Some(Operand::Address(of)) => address_of(of),
                    Some(Operand::Reg(_)) => 0,
                    None => unknown.next().copied().unwrap_or(0),
                };
                init.extend_from_slice(&value.to_le_bytes()[..location.element.min(8) as usize]);
            }
            let mut add = |cta| blocks.push(Block { location: index, cta, init: init.clone() });
            match location.space {
                Space::Global => add(None),
                Space::Shared => {
                    let mut seen: Vec<Placement> = Vec::new();
                    for thread in &test.threads {
                        if !seen.iter().any(|other| other.same_cta(thread.placement)) {
                            seen.push(thread.placement);
                            add(Some(thread.placement));
                        }
                    }
                }
            }
        }
        Self { blocks }
    }

    /// The block that a thread there accesses by a location, which is no alias.
    pub(crate) fn block(&self, location: usize, placement: Placement) -> usize {
        let is =
            |block: &Block| block.location == location && block.cta.is_none_or(|cta| cta.same_cta(placement));
        // Every location has a block for each CTA, or one for all.
        self.blocks.iter().position(is).unwrap_or(0)
    }
}

/// Whether all accesses of a test to one location have one size, so that no access can overlap a part of
/// another.
pub(crate) fn has_one_size(test: &Test) -> bool {
    let mut sizes: Vec<Option<u32>> = vec![None; test.locations.len()];
    let mut fits = |ty: Option<Type>, elements: usize, address: &Address| {
        if elements != 1 || ty.is_some_and(|ty| ty.packed) {
            return false;
        }
        let only = match address.base {
            Operand::Address(location) => Some(test.physical(location)),
            Operand::Const(_) | Operand::Reg(_) => None,
        };
        sizes.iter_mut().enumerate().all(|(location, known)| {
            let size = ty.map_or(test.locations[location].element, |ty| ty.size);
            only.is_some_and(|only| only != location) || *known.get_or_insert(size) == size
        })
    };
    test.threads.iter().flat_map(|thread| &thread.code).all(|instruction| match &instruction.op {
        Op::Load { ty, dst, address, .. } => fits(*ty, dst.len(), address),
        Op::Store { ty, src, address, .. } => fits(*ty, src.len(), address),
        Op::Atom { ty, address, .. } => fits(*ty, 1, address),
        Op::Copy { .. } => false,
        Op::CommitGroup
        | Op::WaitGroup(_)
        | Op::Fence { .. }
        | Op::ProxyFence(_)
        | Op::Barrier { .. }
        | Op::WarpSync { .. }
        | Op::Alu { .. }
        | Op::Mov { .. }
        | Op::Select { .. }
        | Op::Branch { .. }
        | Op::Exit => true,
    })
}

/// How many first values of a test are unknown.
pub(crate) fn unknown_values(test: &Test) -> usize {
    let own = test.locations.iter().filter(|location| location.alias.is_none());
    own.flat_map(|location| &location.init).filter(|value| value.is_none()).count()
}

/// The address of a location.
pub(crate) fn address_of(location: usize) -> u64 {
    (location as u64 + 1) * STRIDE
}

/// The location and the offset in it that an address means.
pub(crate) fn location_at(test: &Test, address: u64) -> Option<(usize, u32)> {
    let location = usize::try_from((address / STRIDE).checked_sub(1)?).ok()?;
    let offset = u32::try_from(address % STRIDE).ok()?;
    (offset < test.locations.get(location)?.bytes()).then_some((location, offset))
}
