//! Handles: numbers that C holds, and what they name.
//!
//! Invariant: a handle is never given twice, so a destroyed one names nothing for ever; no handle is followed as a pointer.

use crate::status::Status;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A handle of C: `CUcontext`, `CUmodule`, `CUfunction`, `CUstream`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct Handle(pub(crate) usize);

impl Handle {
    /// No handle.
    pub(crate) const NULL: Self = Self(0);

    /// Whether it is null.
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// The next handle. All kinds share one count, so that a handle of one kind names nothing of another. It begins where no small
/// number with a meaning (the default streams are 1 and 2) and no mapped page is.
static NEXT: AtomicU64 = AtomicU64::new(0x1000);

/// Things that C knows by handles.
pub(crate) struct Handles<T> {
    by_handle: RwLock<HashMap<Handle, Arc<T>>>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self { by_handle: RwLock::default() }
    }
}

impl<T> Handles<T> {
    /// Gives a handle to what `make` makes of it.
    pub(crate) fn insert_with(&self, make: impl FnOnce(Handle) -> T) -> (Handle, Arc<T>) {
        // 16 apart: they look like pointers to programs that align them.
        let handle = Handle(NEXT.fetch_add(16, Ordering::Relaxed) as usize);
        let thing = Arc::new(make(handle));
        let mut table = self.by_handle.write().unwrap_or_else(PoisonError::into_inner);
        table.insert(handle, Arc::clone(&thing));
        (handle, thing)
    }

    /// Gives it a handle.
    pub(crate) fn insert(&self, thing: T) -> Handle {
        self.insert_with(|_| thing).0
    }

    /// What a handle names.
    pub(crate) fn find(&self, handle: Handle) -> Option<Arc<T>> {
        self.by_handle.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    /// What a handle names.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_HANDLE`.
    pub(crate) fn get(&self, handle: Handle) -> Result<Arc<T>, Status> {
        self.find(handle).ok_or(Status::InvalidHandle)
    }

    /// Forgets a handle.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_HANDLE`.
    pub(crate) fn remove(&self, handle: Handle) -> Result<Arc<T>, Status> {
        let mut table = self.by_handle.write().unwrap_or_else(PoisonError::into_inner);
        table.remove(&handle).ok_or(Status::InvalidHandle)
    }

    /// All of them, in the order in which they were made.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let table = self.by_handle.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = table.iter().collect();
        all.sort_unstable_by_key(|(handle, _)| **handle);
        all.into_iter().map(|(_, thing)| Arc::clone(thing)).collect()
    }

    /// The first that `is_it` says, with its handle.
    pub(crate) fn find_by(&self, is_it: impl Fn(&T) -> bool) -> Option<(Handle, Arc<T>)> {
        let table = self.by_handle.read().unwrap_or_else(PoisonError::into_inner);
        let found = table.iter().filter(|(_, thing)| is_it(thing)).min_by_key(|(handle, _)| **handle);
        found.map(|(handle, thing)| (*handle, Arc::clone(thing)))
    }

    /// Forgets those that `gone` says.
    pub(crate) fn remove_if(&self, gone: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut table = self.by_handle.write().unwrap_or_else(PoisonError::into_inner);
        let mut handles: Vec<Handle> =
            table.iter().filter(|(_, t)| gone(t)).map(|(handle, _)| *handle).collect();
        handles.sort_unstable();
        handles.iter().filter_map(|handle| table.remove(handle)).collect()
    }
}
