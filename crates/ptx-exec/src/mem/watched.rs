//! Host accesses as reported to observers, and the quarantine of freed memory.
//!
//! Invariant: freed memory in quarantine is inaccessible, like all freed memory; it is only not reused.

use super::{Access, Allocation, Memory, MemoryError, Tables};
use crate::watch::{Allocated, HostAccess, HostAccessKind, MemoryMap, Watch};
use ptx::isa::Space;
use std::ops::Range;
use std::sync::Arc;

impl Memory {
    /// Attaches observers permanently: every later launch is watched. False if observers are already
    /// attached.
    pub fn watch(&self, watch: &Arc<Watch>) -> bool {
        self.store.watch.set(Arc::clone(watch)).is_ok()
    }

    /// The attached observers.
    pub fn watched(&self) -> Option<&Arc<Watch>> {
        self.store.watch.get()
    }

    /// Reports a copy from device memory to device memory, so that observers transfer their state for it. The
    /// caller copies with [`Memory::read_quietly`] and [`Memory::write`] before this call.
    pub fn tell_copied(&self, from: u64, to: u64, bytes: u64) {
        self.host_accesses(from, bytes, HostAccessKind::Copy { to });
    }

    /// Reports a write by the host that observers do not see, because it used the host address of the bytes.
    ///
    /// # Errors
    /// Where the bytes do not lie in one allocation.
    pub fn tell_written(&self, address: u64, bytes: u64) -> Result<(), MemoryError> {
        self.inside(address, bytes, Access::ReadWrite)?;
        self.host_accesses(address, bytes, HostAccessKind::Write);
        Ok(())
    }

    /// As [`Memory::read`], but not reported as a read by the host.
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn read_quietly(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        self.inside(address, to.len() as u64, Access::Read)?;
        self.get(address, to);
        Ok(())
    }

    /// Reports an allocation to observers.
    pub(super) fn tell_allocated(&self, what: &Allocated<'_>) {
        if let Some(watch) = self.watched() {
            watch.each(|observer| observer.allocated(what));
        }
    }

    /// Reports freed memory to observers.
    pub(super) fn tell_freed(&self, address: u64, bytes: u64) {
        if let Some(watch) = self.watched() {
            watch.each(|observer| observer.freed(address, bytes));
        }
    }

    /// Reports a host access to observers.
    #[inline]
    pub(super) fn host_accesses(&self, address: u64, bytes: u64, kind: HostAccessKind) {
        let Some(watch) = self.watched().filter(|_| bytes > 0) else { return };
        let name = if kind == HostAccessKind::Write { None } else { self.name_at(address) };
        let access = HostAccess { address, bytes, kind, name: name.as_deref() };
        watch.each(|observer| observer.host(&access));
    }
}

impl MemoryMap for Memory {
    fn nearest(&self, address: u64) -> String {
        self.nearest(address)
    }

    fn name_at(&self, address: u64) -> Option<Arc<str>> {
        self.name_at(address)
    }

    fn allocation_at(&self, address: u64) -> Option<Range<u64>> {
        self.allocation_at(address)
    }

    fn space_of(&self, address: u64) -> Space {
        self.space_of(address)
    }
}

impl Tables {
    /// Puts freed memory into quarantine; the oldest memory beyond `limit` bytes leaves it.
    pub(super) fn set_aside(&mut self, address: u64, gone: &Allocation, limit: u64) {
        self.quarantine.0.push_back((address, gone.clone()));
        self.quarantine.1 += gone.bytes;
        while self.quarantine.1 > limit {
            self.end_oldest();
        }
    }

    fn end_oldest(&mut self) {
        let Some((address, gone)) = self.quarantine.0.pop_front() else { return };
        self.quarantine.1 -= gone.bytes;
        self.heap_of(gone.class, gone.rights).give(address, gone.bytes);
    }

    /// Ends the quarantine of all freed memory.
    pub(super) fn end_quarantine(&mut self) {
        while !self.quarantine.0.is_empty() {
            self.end_oldest();
        }
    }
}
