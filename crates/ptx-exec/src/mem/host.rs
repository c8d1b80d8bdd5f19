//! Memory of the host that guests may access: ranges that the host lends, or all of it.
//!
//! Nothing here happens by itself: without a call of [`Memory::adopt`] or [`Memory::reach_host`], no guest access leaves the range
//! of the device. The addresses are the host's own.
//!
//! Invariant: the device's range is never part of what is lent. What it does not do: it cannot check the host's promise that the
//! memory is there; a guest that is let into memory that is not ends the process, as a wild pointer does in any program.

use super::{Allocation, Class, Extent, Memory, MemoryError, Rights};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The first page is nobody's: null pointers stay illegal addresses.
const HOST_START: u64 = 0x1_0000;
/// The end of the addresses that programs have on the hosts that we know.
const HOST_END: u64 = 1 << 47;

impl Memory {
    /// The addresses of the device.
    pub fn range(&self) -> Range<u64> {
        self.store.regions.functions.start..self.store.regions.mapped.end
    }

    /// Lends `bytes` bytes of the host's memory to guests as `.global` memory, under the host's addresses; `name` stands in reports.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] where the bytes are not the host's, or some of them are lent already.
    ///
    /// # Safety
    /// The bytes stay readable and writable until [`Memory::disown`] has returned and launches that ran then have ended; meanwhile the
    /// host makes no reference to them that an access of a guest would contradict.
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

    /// Takes back what [`Memory::adopt`] lent.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`] where nothing that was lent begins.
    pub fn disown(&self, start: u64) -> Result<(), MemoryError> {
        let not = MemoryError::NotAllocated { address: start };
        if self.range().contains(&start) {
            return Err(not);
        }
        self.tables().live.remove(&start).ok_or(not)?;
        self.store.frees.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Lets guests access all memory of the process under the host's addresses, from now on. Null pointers remain illegal.
    ///
    /// # Safety
    /// Launches from now on access, outside the device's range, only memory that is mapped, and not in a way that contradicts references of the
    /// host. Nothing checks this any more.
    pub unsafe fn reach_host(&self) {
        self.store.host.store(true, Ordering::Release);
    }

    /// Whether [`Memory::reach_host`] was called.
    pub fn reaches_host(&self) -> bool {
        self.store.host.load(Ordering::Acquire)
    }

    /// The part of the host's memory that holds an address, where guests may reach all of it.
    pub(super) fn host_extent(&self, address: u64) -> Option<Extent> {
        if !self.store.host.load(Ordering::Acquire) {
            return None;
        }
        let own = self.range();
        let part = if address < own.start { HOST_START..own.start } else { own.end..HOST_END };
        let (start, bytes) = (part.start, part.end - part.start);
        let extent = Extent { start, bytes, class: Class::Global, writable: true };
        part.contains(&address).then_some(extent)
    }
}
