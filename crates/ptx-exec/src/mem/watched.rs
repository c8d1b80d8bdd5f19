//! What observers see of the host's side of memory, and freed memory that is kept for them.
//!
//! Invariant: freed memory in quarantine is not accessible, as other freed memory; it is only not handed out again.

use super::{Access, Allocation, Memory, MemoryError, Tables};
use crate::watch::{Allocated, HostAccess, HostAccessKind, HostMistake, Watch};
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

    /// Whether only kernels and this process's calls write at an address: not memory that host, other processes, or other addresses share.
    pub fn is_exclusive(&self, address: u64) -> bool {
        let regions = &self.store.regions;
        [&regions.heap, &regions.shared, &regions.local, &regions.constant, &regions.params]
            .iter()
            .any(|region| region.contains(&address))
    }

    /// Copies bytes of the device to the device, both sides checked as by [`Memory::read`] and [`Memory::write`]. They may overlap. Observers
    /// are told of a copy: nothing leaves for the host.
    ///
    /// # Errors
    /// As [`Memory::read`] and [`Memory::write`].
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), MemoryError> {
        /// Bytes that are copied at once.
        const PART: u64 = 256 << 10;
        self.inside(from, bytes, Access::Read)?;
        self.inside(to, bytes, Access::ReadWrite)?;
        let mut part = vec![0; bytes.min(PART) as usize];
        let backwards = to > from && to - from < bytes;
        let parts = bytes.div_ceil(PART);
        for number in 0..parts {
            let at = PART * if backwards { parts - 1 - number } else { number };
            let part = &mut part[..(bytes - at).min(PART) as usize];
            self.get(from + at, part);
            self.put(to + at, part.len() as u64, |at, out: &mut [u8; 8]| {
                let rest = &part[at as usize..];
                let n = rest.len().min(8);
                out[..n].copy_from_slice(&rest[..n]);
            });
        }
        self.host_accesses(from, bytes, HostAccessKind::Copy { to });
        Ok(())
    }

    /// Tells observers that the host has written bytes, or is about to, by other ways than [`Memory::write`].
    pub fn tell_written(&self, address: u64, bytes: u64) {
        self.host_accesses(address, bytes, HostAccessKind::Write);
    }

    /// Tells observers that the host misuses memory.
    pub fn tell_mistake(&self, mistake: &HostMistake<'_>) {
        if let Some(watch) = self.watched() {
            watch.mistake(mistake);
        }
    }

    /// Tells observers that an allocation is shared with others from now on, who write without anything being reported.
    pub(super) fn tell_shared(&self, address: u64, bytes: u64) {
        let name = self.name_at(address);
        let name = name.as_deref().unwrap_or("memory that processes share");
        self.tell_allocated(&Allocated { address, bytes, class: super::Class::Global, name, common: true });
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
        let written = if let HostAccessKind::Copy { to } = kind { to } else { address };
        let exclusive = self.is_exclusive(written);
        let access = HostAccess { address, bytes, kind, name: name.as_deref(), exclusive };
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
