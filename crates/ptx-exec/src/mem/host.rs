//! Host memory that guests may access: ranges that the host lends, or all of it.
//!
//! Without a call of [`Memory::adopt`] or [`Memory::reach_host`], no guest access leaves the range of the
//! device. The addresses are the host's own.
//!
//! If all of it is accessible, the system tells which memory is mapped and which can be written
//! ([`Mappings`]), when a launch reaches it for the first time; other accesses are traps. Where the system
//! does not tell, all addresses count as memory.
//!
//! Invariant: lent memory never overlaps the device's range. That a range which the host has lent is mapped,
//! and that the host changes no mapping during a launch, are promises that cannot be checked: if one is
//! broken, a guest access can end the process, as a wild pointer does in any program.

use super::{Allocation, Class, Extent, Memory, MemoryError, Rights};
use host_memory::{Mapping, Mappings, Refused};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

/// The first page is excluded, so that null pointers stay illegal addresses.
const HOST_START: u64 = 0x1_0000;
/// The end of user addresses on the supported hosts.
const HOST_END: u64 = 1 << 47;

impl Memory {
    /// The addresses of the device.
    pub fn range(&self) -> Range<u64> {
        self.store.regions.functions.start..self.store.regions.mapped.end
    }

    /// Lends `bytes` bytes of host memory to guests as `.global` memory, at the host's addresses; `name` is
    /// for reports.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] if the range is outside of user addresses, or overlaps memory of the
    /// device or lent memory.
    ///
    /// # Safety
    /// The bytes must stay readable and writable until [`Memory::disown`] has returned and all launches of
    /// that time have ended. Meanwhile the host must hold no reference to them that conflicts with guest
    /// accesses.
    pub unsafe fn adopt(&self, start: u64, bytes: u64, name: &str) -> Result<(), MemoryError> {
        let wrong = |nearest: String| MemoryError::OutOfBounds { address: start, bytes, nearest };
        let end = start.checked_add(bytes).filter(|end| start >= HOST_START && bytes > 0 && *end <= HOST_END);
        let Some(end) = end else { return Err(wrong("no memory of the host".to_owned())) };
        let own = self.range();
        if start < own.end && own.start < end {
            return Err(wrong("memory of the device".to_owned()));
        }
        let mut tables = self.tables();
        if let Some((other, a)) = tables.live.range(..end).next_back()
            && other + a.bytes > start
        {
            return Err(wrong(format!("{} is lent already", a.name)));
        }
        let (class, rights, device) = (Class::Global, Rights::All, self.device);
        tables.live.insert(start, Allocation { bytes, class, rights, device, name: name.into() });
        Ok(())
    }

    /// Ends the loan of [`Memory::adopt`].
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] if no lent range begins there.
    pub fn disown(&self, start: u64) -> Result<(), MemoryError> {
        let not = MemoryError::NotAllocated { address: start };
        if self.range().contains(&start) {
            return Err(not);
        }
        self.tables().live.remove(&start).ok_or(not)?;
        self.store.frees.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Lets guests access all memory of the process at the host's addresses, from now on. Null pointers stay
    /// illegal.
    ///
    /// # Safety
    /// Outside of the device's range, the accesses of later launches must not conflict with references of the
    /// host, and the host must neither unmap nor protect memory that a running launch accesses.
    pub unsafe fn reach_host(&self) {
        self.store.host.store(true, Ordering::Release);
    }

    /// Whether memory of the host is lent by [`Memory::adopt`].
    pub fn has_lent(&self) -> bool {
        let own = self.range();
        let tables = self.tables();
        let lowest = tables.live.first_key_value().is_some_and(|(start, _)| *start < own.start);
        lowest || tables.live.last_key_value().is_some_and(|(start, _)| *start >= own.end)
    }

    /// Whether [`Memory::reach_host`] was called.
    pub fn reaches_host(&self) -> bool {
        self.store.host.load(Ordering::Acquire)
    }

    /// The part of the host's addresses around an address, if guests may access all memory there.
    pub(super) fn host_extent(&self, address: u64) -> Option<Extent> {
        if !self.reaches_host() {
            return None;
        }
        let own = self.range();
        let part = if address < own.start { HOST_START..own.start } else { own.end..HOST_END };
        let (start, bytes) = (part.start, part.end - part.start);
        let extent = Extent { start, bytes, class: Class::Global, writable: true };
        part.contains(&address).then_some(extent)
    }

    /// The memory around an address within a part of the host's addresses; `None` if it cannot be read.
    pub(super) fn mapped_part(&self, part: Extent, address: u64) -> Option<Extent> {
        match self.mappings().at(address as usize) {
            Ok(found) => found.map(|Mapping { range, writable }| {
                let start = part.start.max(range.start as u64);
                let end = (part.start + part.bytes).min(range.end as u64);
                Extent { start, bytes: end - start, writable, ..part }
            }),
            Err(Refused) => Some(part),
        }
    }

    /// A description of an address of the host for reports.
    pub(super) fn nearest_of_host(&self, part: Extent, address: u64) -> String {
        let Some(Extent { start, bytes, writable, .. }) = self.mapped_part(part, address) else {
            return "memory of the host, where nothing is mapped that can be read".to_owned();
        };
        let what = if writable { "memory of the host" } else { "memory of the host that can only be read" };
        format!("{what}, {bytes} bytes at {start:#x}; the address is {} bytes into it", address - start)
    }

    /// Discards look-ups of host memory, whose mappings may have changed since the last launch.
    pub(super) fn forget_host(&self) {
        if self.reaches_host() {
            self.mappings().forget();
            self.store.frees.fetch_add(1, Ordering::Release);
        }
    }

    fn mappings(&self) -> MutexGuard<'_, Mappings> {
        // A poisoned lock is harmless: at worst a look-up is missing.
        self.store.mappings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
