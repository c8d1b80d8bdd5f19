//! Host accesses as reported to observers, and the quarantine of freed memory.
//!
//! Invariant: freed memory in quarantine is inaccessible, like all freed memory; it is only not reused.

use super::{Access, Allocation, Memory, MemoryError, Tables};
use crate::shadow::ShadowMemory;
use crate::stamps::Stamps;
use crate::watch::{Allocated, HostAccess, HostAccessKind, HostMistake, MemoryMap, Watch};
use ptx::isa::Space;
use std::ops::Range;
use std::sync::Arc;

impl Memory {
    /// Attaches observers permanently: every later launch is watched. False if observers are already
    /// attached.
    pub fn watch(&self, watch: &Arc<Watch>) -> bool {
        let first = self.store.watch.set(Arc::clone(watch)).is_ok();
        if first
            && watch.wants_shadow()
            && let Some(shadow) = ShadowMemory::reserve(self.range())
        {
            let shadow = Arc::new(shadow);
            watch.each(|observer| observer.shadowed(&shadow));
            let _first = self.store.shadow.set(shadow);
        }
        if first
            && watch.wants_stamps()
            && let Some(stamps) = Stamps::reserve(self.range())
        {
            let stamps = Arc::new(stamps);
            watch.each(|observer| observer.stamped(&stamps));
            let _first = self.store.stamps.set(stamps);
        }
        first
    }

    /// The shadow memory of the observers, if they want one and the system has room for it.
    pub fn shadow(&self) -> Option<&Arc<ShadowMemory>> {
        self.store.shadow.get()
    }

    /// The stamps of the observers, if they want them and the system has room for them.
    pub fn stamps(&self) -> Option<&Arc<Stamps>> {
        self.store.stamps.get()
    }

    /// The stamps, while a launch with stamps runs.
    pub(crate) fn active_stamps(&self) -> Option<&Stamps> {
        self.stamps().map(|stamps| &**stamps).filter(|stamps| stamps.is_active())
    }

    /// Restores bytes of global memory, without a report: an aborted execution has no effect.
    pub(crate) fn restore(&self, kept: Vec<(u64, Vec<u8>)>) {
        for (address, bytes) in kept {
            // The allocation may have been freed meanwhile.
            if self.inside(address, bytes.len() as u64, Access::Read).is_ok() {
                self.put(address, &bytes);
            }
        }
    }

    /// The attached observers.
    pub fn watched(&self) -> Option<&Arc<Watch>> {
        self.store.watch.get()
    }

    /// Whether only kernels and calls of this process write at an address: it is not shared with the host,
    /// other processes, or other addresses.
    pub fn is_exclusive(&self, address: u64) -> bool {
        let regions = &self.store.regions;
        [&regions.heap, &regions.shared, &regions.local, &regions.constant, &regions.params]
            .iter()
            .any(|region| region.contains(&address))
    }

    /// Copies bytes from device memory to device memory. The two ranges may overlap. Observers are told of a
    /// copy, not of a read by the host.
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
            self.put(to + at, part);
        }
        self.host_accesses(from, bytes, HostAccessKind::Copy { to });
        Ok(())
    }

    /// Reports that the host writes bytes by other means than [`Memory::write`], such as by their host
    /// address.
    pub fn tell_written(&self, address: u64, bytes: u64) {
        self.host_accesses(address, bytes, HostAccessKind::Write);
    }

    /// Reports a mistake of the host to observers.
    pub fn tell_mistake(&self, mistake: &HostMistake<'_>) {
        if let Some(watch) = self.watched() {
            watch.mistake(mistake);
        }
    }

    /// Reports that an allocation is shared from now on with others, whose writes are not reported.
    pub(super) fn tell_shared(&self, address: u64, bytes: u64) {
        let name = self.name_at(address);
        let name = name.as_deref().unwrap_or("memory that processes share");
        self.tell_allocated(&Allocated { address, bytes, class: super::Class::Global, name, common: true });
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
        let written = if let HostAccessKind::Copy { to } = kind { to } else { address };
        let exclusive = self.is_exclusive(written);
        let access = HostAccess { address, bytes, kind, name: name.as_deref(), exclusive };
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

    fn is_exclusive(&self, address: u64) -> bool {
        self.is_exclusive(address)
    }

    fn contents(&self, range: Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        match self.inside(range.start, range.end - range.start, Access::Read) {
            Ok(()) => self.get(range.start, &mut bytes),
            Err(_) => bytes.clear(),
        }
        bytes
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
