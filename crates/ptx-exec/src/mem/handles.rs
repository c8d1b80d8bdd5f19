//! Objects that guests name by 64-bit handles, such as textures.
//!
//! Invariant: a handle names at most one object. Memory stores the objects without knowing their type;
//! [`crate::texture`] defines them.

use super::View;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// An object of any type.
type Object = Arc<dyn Any + Send + Sync>;

/// The objects of a memory, by handle.
#[derive(Default)]
pub(crate) struct Handles {
    table: RwLock<BTreeMap<u64, Object>>,
    /// Counter of changes: a [`View`] discards its look-up when this changes.
    changes: AtomicU64,
}

impl Handles {
    /// Sets the object of a handle; `None` removes it.
    pub(crate) fn put(&self, handle: u64, object: Option<Object>) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let old = match object {
            Some(object) => table.insert(handle, object),
            None => table.remove(&handle),
        };
        self.changes.fetch_add(1, Ordering::Release);
        drop(table);
        // Dropped outside of the lock, because the last owner of an object may free memory.
        drop(old);
    }

    /// The object of a handle, if it has this type.
    pub(crate) fn find<T: Any + Send + Sync>(&self, handle: u64) -> Option<Arc<T>> {
        self.get(handle)?.downcast().ok()
    }

    fn get(&self, handle: u64) -> Option<Object> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }
}

/// The handle that a warp used last.
#[derive(Default)]
pub(super) struct Recent {
    handle: u64,
    changes: u64,
    object: Option<Object>,
}

impl View {
    /// The object of a handle, if it has this type.
    pub(crate) fn object<T: Any + Send + Sync>(&mut self, handle: u64) -> Option<Arc<T>> {
        let handles = self.memory.handles();
        let changes = handles.changes.load(Ordering::Acquire);
        if self.handle.object.is_none() || self.handle.handle != handle || self.handle.changes != changes {
            self.handle = Recent { handle, changes, object: handles.get(handle) };
        }
        self.handle.object.clone()?.downcast().ok()
    }

    /// Forgets the handle that was used last, and with it the object.
    pub(crate) fn forget_object(&mut self) {
        self.handle = Recent::default();
    }
}
