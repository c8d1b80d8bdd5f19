//! What observers see of the host's side of memory, and freed memory that is kept for them.
//!
//! Invariant: freed memory in quarantine is not accessible, as other freed memory; it is only not handed out again.

use super::{Access, Allocation, Memory, MemoryError, Tables};
use crate::watch::{Allocated, HostAccess, HostAccessKind, Watch};
use std::sync::Arc;

impl Memory {
    /// Attaches observers, for good: every launch that begins later is watched. False where some are attached already.
    pub fn watch(&self, watch: &Arc<Watch>) -> bool {
        self.store.watch.set(Arc::clone(watch)).is_ok()
    }

    /// The observers that are attached.
    pub fn watched(&self) -> Option<&Arc<Watch>> {
        self.store.watch.get()
    }

    /// Tells observers that the host copies device memory to device memory: they carry over what they know of it. The copy itself is a
    /// [`Memory::read_quietly`] and a [`Memory::write`] before this.
    pub fn tell_copied(&self, from: u64, to: u64, bytes: u64) {
        self.host_accesses(from, bytes, HostAccessKind::Copy { to });
    }

    /// As [`Memory::read`], of what does not leave for the host.
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn read_quietly(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        self.inside(address, to.len() as u64, Access::Read)?;
        self.get(address, to);
        Ok(())
    }

    /// Tells observers of an allocation.
    pub(super) fn tell_allocated(&self, what: &Allocated<'_>) {
        if let Some(watch) = self.watched() {
            watch.each(|observer| observer.allocated(what));
        }
    }

    /// Tells observers that memory was freed.
    pub(super) fn tell_freed(&self, address: u64, bytes: u64) {
        if let Some(watch) = self.watched() {
            watch.each(|observer| observer.freed(address, bytes));
        }
    }

    /// Tells observers that the host accesses memory.
    #[inline]
    pub(super) fn host_accesses(&self, address: u64, bytes: u64, kind: HostAccessKind) {
        let Some(watch) = self.watched().filter(|_| bytes > 0) else { return };
        let name = if kind == HostAccessKind::Write { None } else { self.name_at(address) };
        let access = HostAccess { address, bytes, kind, name: name.as_deref() };
        watch.each(|observer| observer.host(&access));
    }
}

impl Tables {
    /// Keeps freed memory from being allocated again, until more than `limit` bytes are kept.
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

    /// Lets all freed memory be allocated again.
    pub(super) fn end_quarantine(&mut self) {
        while !self.quarantine.0.is_empty() {
            self.end_oldest();
        }
    }
}
