//! Addresses that the host reserves, and pages that it maps there.
//!
//! A device may access reserved addresses only after pages are mapped there and the device is granted rights.
//! Consecutive mapped ranges with the same rights are one allocation for guests.
//!
//! Invariants: a mapping lies in reserved addresses and overlaps no other mapping. Unmapped addresses are
//! backed by private memory, so an access that was checked before the unmapping is safe, and affects nothing.

use super::arena::PAGE;
use super::heap::Heap;
use super::rights::{Masks, Rights};
use super::{Access, Allocation, Class, DeviceId, Memory, MemoryError, Pages, Tables};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Reserved addresses and mappings.
pub(super) struct Reservations {
    free: Heap,
    /// Reserved ranges: size in bytes, by first address.
    reserved: BTreeMap<u64, u64>,
    mappings: BTreeMap<u64, Mapping>,
}

/// Pages mapped at an address.
struct Mapping {
    bytes: u64,
    pages: Arc<Pages>,
    rights: Masks,
    /// The part that guests may access.
    visible: Range<u64>,
    name: Arc<str>,
}

impl Reservations {
    pub(super) fn new(region: Range<u64>) -> Self {
        Self { free: Heap::without_gaps(region), reserved: BTreeMap::new(), mappings: BTreeMap::new() }
    }

    /// Whether all these addresses are reserved.
    fn is_reserved(&self, mut part: Range<u64>) -> bool {
        while part.start < part.end {
            match self.reserved.range(..=part.start).next_back() {
                Some((start, bytes)) if part.start - start < *bytes => part.start = start + bytes,
                _ => return false,
            }
        }
        true
    }

    /// The first addresses of the mappings that form exactly this range; `None` if none do.
    fn exactly(&self, range: Range<u64>) -> Option<Vec<u64>> {
        let mut at = range.start;
        let mut found = Vec::new();
        while at < range.end {
            found.push(at);
            at += self.mappings.get(&at)?.bytes;
        }
        (at == range.end && !found.is_empty()).then_some(found)
    }

    /// The mapping that contains an address.
    fn at(&self, address: u64) -> Option<(u64, &Mapping)> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address - start < mapping.bytes).then_some((*start, mapping))
    }

    /// Whether any part of a range is mapped.
    fn is_mapped(&self, range: Range<u64>) -> bool {
        self.mappings.range(..range.end).next_back().is_some_and(|(at, m)| at + m.bytes > range.start)
    }
}

impl Tables {
    /// A description of a reserved address that no device may access, for reports.
    pub(super) fn mapped_at(&self, address: u64) -> Option<String> {
        if self.at(address).is_some() {
            return None;
        }
        if let Some((start, m)) = self.mapped.at(address) {
            let (name, bytes, into) = (&m.name, m.bytes, address - start);
            return Some(format!(
                "{name}, {bytes} bytes mapped at {start:#x}, where no device may access it; the address is {into} bytes into it"
            ));
        }
        let reserved = self.mapped.is_reserved(address..address.checked_add(1)?);
        reserved.then(|| "the address is reserved, and nothing is mapped there".to_owned())
    }

    /// Updates the allocations of the mapped region.
    fn show(&mut self, region: &Range<u64>) {
        let old: Vec<u64> = self.live.range(region.clone()).map(|(at, _)| *at).collect();
        for at in old {
            self.live.remove(&at);
        }
        let mut last: Option<(u64, Allocation)> = None;
        for mapping in self.mapped.mappings.values() {
            let (rights, visible) = (Rights::Mapped(mapping.rights), &mapping.visible);
            if rights.of_any() == Access::None {
                continue;
            }
            match &mut last {
                Some((start, before))
                    if *start + before.bytes == visible.start
                        && before.rights == rights
                        && before.name == mapping.name =>
                {
                    before.bytes = visible.end - *start;
                }
                _ => {
                    let (bytes, name) = (visible.end - visible.start, Arc::clone(&mapping.name));
                    let device = mapping.pages.device();
                    let next = Allocation { bytes, class: Class::Global, rights, device, name };
                    if let Some((start, whole)) = last.replace((visible.start, next)) {
                        self.live.insert(start, whole);
                    }
                }
            }
        }
        self.live.extend(last);
    }
}

/// The range of an address and a size, if they are whole pages.
fn whole(address: u64, bytes: u64) -> Result<Range<u64>, MemoryError> {
    let aligned = address.is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE) && bytes > 0;
    let end = address.checked_add(bytes).filter(|_| aligned);
    let why = "an address and a size that are not whole pages";
    end.map(|end| address..end).ok_or(MemoryError::Mapping { address, bytes, why })
}

impl Memory {
    /// Reserves addresses, at `wanted` if they are free there.
    ///
    /// # Errors
    /// [`MemoryError::Mapping`] if the size is not whole pages; [`MemoryError::OutOfMemory`] if no addresses
    /// are left.
    pub fn reserve(&self, bytes: u64, align: u64, wanted: u64) -> Result<u64, MemoryError> {
        whole(0, bytes)?;
        let full = MemoryError::OutOfMemory { bytes };
        let align = align.max(PAGE).checked_next_power_of_two().ok_or_else(|| full.clone())?;
        let mapped = &mut self.tables().mapped;
        let there = wanted.is_multiple_of(align).then(|| mapped.free.take_at(wanted, bytes)).flatten();
        let start = there.or_else(|| mapped.free.take(bytes, align)).ok_or(full)?;
        mapped.reserved.insert(start, bytes);
        Ok(start)
    }

    /// Frees reserved addresses.
    ///
    /// # Errors
    /// [`MemoryError::Mapping`] if no range of that size was reserved there, or a part of it is mapped.
    pub fn unreserve(&self, start: u64, bytes: u64) -> Result<(), MemoryError> {
        let wrong = |why| MemoryError::Mapping { address: start, bytes, why };
        let mapped = &mut self.tables().mapped;
        if mapped.reserved.get(&start) != Some(&bytes) {
            return Err(wrong("no such range was reserved"));
        }
        if mapped.is_mapped(start..start + bytes) {
            return Err(wrong("something is mapped there"));
        }
        mapped.reserved.remove(&start);
        mapped.free.give(start, bytes);
        Ok(())
    }

    /// Maps `bytes` bytes of pages, from `offset` on, at reserved addresses. No device may access them yet.
    /// The `visible` part is the part that devices can be granted; `name` is for reports.
    ///
    /// # Errors
    /// [`MemoryError::Mapping`] if the addresses are not reserved or already mapped, or there are not that
    /// many pages; [`MemoryError::Share`].
    pub fn map(
        &self,
        (at, bytes): (u64, u64),
        (pages, offset): (&Arc<Pages>, u64),
        visible: Range<u64>,
        name: &str,
    ) -> Result<(), MemoryError> {
        let wrong = |why| MemoryError::Mapping { address: at, bytes, why };
        let range = whole(at, bytes)?;
        if !offset.is_multiple_of(PAGE) || offset > pages.bytes() || bytes > pages.bytes() - offset {
            return Err(wrong("more than the pages that there are"));
        }
        if visible.is_empty() || visible.end > bytes {
            return Err(wrong("no part of the pages"));
        }
        let mut tables = self.tables();
        if !tables.mapped.is_reserved(range.clone()) {
            return Err(wrong("not all of it was reserved"));
        }
        if tables.mapped.is_mapped(range.clone()) {
            return Err(wrong("something is mapped there"));
        }
        if !self.store.arena.share(range.start, range.end, pages.file(), offset) {
            return Err(MemoryError::Share);
        }
        let visible = at + visible.start..at + visible.end;
        let (pages, rights, name) = (Arc::clone(pages), Masks::default(), name.into());
        tables.mapped.mappings.insert(at, Mapping { bytes, pages, rights, visible, name });
        Ok(())
    }

    /// Unmaps a range that consists of whole mappings.
    ///
    /// # Errors
    /// [`MemoryError::Mapping`]; [`MemoryError::Share`] if the system refuses, and then the pages stay
    /// mapped.
    pub fn unmap(&self, at: u64, bytes: u64) -> Result<(), MemoryError> {
        let range = whole(at, bytes)?;
        let mut tables = self.tables();
        let why = "not the range of one or more mappings";
        let gone = tables.mapped.exactly(range).ok_or(MemoryError::Mapping { address: at, bytes, why })?;
        let mut all = Ok(());
        for start in gone {
            let Some(bytes) = tables.mapped.mappings.get(&start).map(|mapping| mapping.bytes) else {
                continue;
            };
            if !self.store.arena.unshare(start, start + bytes) {
                all = Err(MemoryError::Share);
                break;
            }
            tables.mapped.mappings.remove(&start);
        }
        tables.show(&self.store.regions.mapped);
        self.store.frees.fetch_add(1, Ordering::Release);
        all
    }

    /// Sets the rights of a device for a range that consists of whole mappings.
    ///
    /// # Errors
    /// [`MemoryError::Mapping`].
    pub fn set_access(
        &self,
        at: u64,
        bytes: u64,
        device: DeviceId,
        access: Access,
    ) -> Result<(), MemoryError> {
        let range = whole(at, bytes)?;
        let mut tables = self.tables();
        let why = "not the range of one or more mappings";
        let wrong = MemoryError::Mapping { address: at, bytes, why };
        for start in tables.mapped.exactly(range).ok_or(wrong)? {
            if let Some(mapping) = tables.mapped.mappings.get_mut(&start) {
                mapping.rights = mapping.rights.with(device, access);
            }
        }
        tables.show(&self.store.regions.mapped);
        self.store.frees.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// The rights of a device for the pages mapped at an address; `None` if none are mapped.
    pub fn access_at(&self, address: u64, device: DeviceId) -> Option<Access> {
        self.tables().mapped.at(address).map(|(_, mapping)| mapping.rights.of(device))
    }

    /// Atomically replaces the 64-bit number at an address of mapped pages by `f` of it, regardless of the
    /// rights of devices, and returns the old number. `f` may be called more than once. For communication
    /// between processes.
    ///
    /// # Errors
    /// [`MemoryError::Mapping`] if no pages are mapped there, or the address is not a multiple of 8.
    pub fn update(&self, address: u64, f: impl Fn(u64) -> u64) -> Result<u64, MemoryError> {
        let why = "no word of mapped pages";
        let wrong = MemoryError::Mapping { address, bytes: 8, why };
        // Mappings begin and end at multiples of 8, so a word lies in one mapping.
        if !address.is_multiple_of(8) || self.tables().mapped.at(address).is_none() {
            return Err(wrong);
        }
        let (old, _) = self.checked_place::<u64>(address).update(|old| Some(f(old)));
        Ok(old)
    }

    /// The pages mapped at an address, and the addresses of the mapping.
    pub fn pages_at(&self, address: u64) -> Option<(Range<u64>, Arc<Pages>)> {
        let tables = self.tables();
        let (start, mapping) = tables.mapped.at(address)?;
        Some((start..start + mapping.bytes, Arc::clone(&mapping.pages)))
    }

    /// The reserved range that contains an address.
    pub fn reservation_at(&self, address: u64) -> Option<Range<u64>> {
        let tables = self.tables();
        let (start, bytes) = tables.mapped.reserved.range(..=address).next_back()?;
        (address - start < *bytes).then_some(*start..start + bytes)
    }
}
