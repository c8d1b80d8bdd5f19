//! Handles: numbers that C holds, and their objects.
//!
//! Invariant: a handle's number is never used twice, so a destroyed handle stays invalid. No handle is
//! dereferenced.

use crate::status::Status;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A handle of C: `CUcontext`, `CUmodule`, `CUfunction`, `CUstream`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct Handle(pub(crate) usize);

impl Handle {
    /// The null handle.
    pub(crate) const NULL: Self = Self(0);

    /// Whether it is null.
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// The next handle. All kinds share one counter, so a handle of one kind is never one of another. It starts
/// above small numbers with a meaning (the default streams are 1 and 2) and below every mapped page.
static NEXT: AtomicU64 = AtomicU64::new(0x1000);

/// A table of objects by their handles.
pub(crate) struct Handles<T> {
    by_handle: RwLock<HashMap<Handle, Arc<T>>>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self { by_handle: RwLock::default() }
    }
}

impl<T> Handles<T> {
    /// Creates an object that knows its own handle.
    pub(crate) fn insert_with(&self, make: impl FnOnce(Handle) -> T) -> (Handle, Arc<T>) {
        // Multiples of 16, because some programs treat them as aligned pointers.
        let handle = Handle(NEXT.fetch_add(16, Ordering::Relaxed) as usize);
        let thing = Arc::new(make(handle));
        let mut table = self.by_handle.write().unwrap_or_else(PoisonError::into_inner);
        table.insert(handle, Arc::clone(&thing));
        (handle, thing)
    }

    /// Gives an object a handle.
    pub(crate) fn insert(&self, thing: T) -> Handle {
        self.insert_with(|_| thing).0
    }

    /// The object of a handle.
    pub(crate) fn find(&self, handle: Handle) -> Option<Arc<T>> {
        self.by_handle.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    /// The object of a handle.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_HANDLE`.
    pub(crate) fn get(&self, handle: Handle) -> Result<Arc<T>, Status> {
        self.find(handle).ok_or(Status::InvalidHandle)
    }

    /// Removes a handle.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_HANDLE`.
    pub(crate) fn remove(&self, handle: Handle) -> Result<Arc<T>, Status> {
        let mut table = self.by_handle.write().unwrap_or_else(PoisonError::into_inner);
        table.remove(&handle).ok_or(Status::InvalidHandle)
    }

    /// All objects with their handles, in the order of their creation.
    pub(crate) fn entries(&self) -> Vec<(Handle, Arc<T>)> {
        let table = self.by_handle.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = table.iter().map(|(handle, thing)| (*handle, Arc::clone(thing))).collect();
        all.sort_unstable_by_key(|(handle, _)| *handle);
        all
    }

    /// All objects, in the order of their creation.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.entries().into_iter().map(|(_, thing)| thing).collect()
    }

    /// The first object for which `is_it` holds, with its handle.
    pub(crate) fn find_by(&self, is_it: impl Fn(&T) -> bool) -> Option<(Handle, Arc<T>)> {
        let table = self.by_handle.read().unwrap_or_else(PoisonError::into_inner);
        let found = table.iter().filter(|(_, thing)| is_it(thing)).min_by_key(|(handle, _)| **handle);
        found.map(|(handle, thing)| (*handle, Arc::clone(thing)))
    }

    /// Removes the objects for which `gone` holds.
    pub(crate) fn remove_if(&self, gone: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut table = self.by_handle.write().unwrap_or_else(PoisonError::into_inner);
        let mut handles: Vec<Handle> =
            table.iter().filter(|(_, t)| gone(t)).map(|(handle, _)| *handle).collect();
        handles.sort_unstable();
        handles.iter().filter_map(|handle| table.remove(handle)).collect()
    }
}
