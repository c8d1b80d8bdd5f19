//! Host memory that guests may access: ranges that the host lends, or all of it.
//!
//! Without a call of [`Memory::adopt`] or [`Memory::reach_host`], no guest access leaves the range of the
//! device. The addresses are the host's own.
//!
//! Invariant: lent memory never overlaps the device's range. The promise of the host that lent memory is
//! mapped cannot be checked: if it is broken, a guest access can end the process, as a wild pointer does in
//! any program.

use super::{Allocation, Class, Extent, Memory, MemoryError, Rights};
use std::ops::Range;
use std::sync::atomic::Ordering;

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
    /// Outside of the device's range, all later launches must access only mapped memory, and must not
    /// conflict with references of the host. These accesses are not checked.
    pub unsafe fn reach_host(&self) {
        self.store.host.store(true, Ordering::Release);
    }

    /// Whether [`Memory::reach_host`] was called.
    pub fn reaches_host(&self) -> bool {
        self.store.host.load(Ordering::Acquire)
    }

    /// The part of host memory around an address, if guests may access all of it.
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
