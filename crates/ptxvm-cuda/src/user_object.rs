//! User objects: objects of the program that graphs keep alive.
//!
//! A program creates one with a destructor function, and gives graphs references to it. The function is
//! called when the last reference is released.
//!
//! Invariant: the function is called once, and only after the last launch that needs the object. What it does
//! not do: the function runs on the thread that releases the last reference, whichever that is.

use crate::driver::driver;
use crate::entry::entries;
use crate::ffi::{HostFunction, Out, Pointer};
use crate::handles::Handle;
use crate::status::{Answer, Status};
use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::sync::{Mutex, PoisonError};

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, the only flag.
const NO_DESTRUCTOR_SYNC: c_uint = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`
const MOVE: c_uint = 1;

/// `CUuserObject`
pub(crate) struct UserObject {
    references: Mutex<u64>,
    end: HostFunction,
    data: Pointer,
}

/// References that a graph or an executable graph holds. They are released with it.
#[derive(Default)]
pub(crate) struct Held(Mutex<BTreeMap<Handle, u64>>);

impl Held {
    /// A copy that holds the same references once more.
    ///
    /// # Errors
    /// The errors of a driver that was never started.
    pub(crate) fn again(&self) -> Result<Self, Status> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (handle, count) in &held {
            retain(*handle, *count)?;
        }
        Ok(Self(Mutex::new(held)))
    }

    fn add(&self, handle: Handle, count: c_uint) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.entry(handle).or_default();
        *held = held.saturating_add(count.into());
    }

    fn take(&self, handle: Handle, count: c_uint) -> Answer {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = held.get_mut(&handle).ok_or(Status::InvalidValue)?;
        *found = found.checked_sub(count.into()).ok_or(Status::InvalidValue)?;
        if *found == 0 {
            held.remove(&handle);
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let held = std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
        for (handle, count) in held {
            let _given_up_by_the_program = release(handle, count);
        }
    }
}

fn retain(object: Handle, count: u64) -> Answer {
    let object = driver()?.user_objects.get(object).map_err(|_| Status::InvalidValue)?;
    if count == 0 {
        return Err(Status::InvalidValue);
    }
    let mut references = object.references.lock().unwrap_or_else(PoisonError::into_inner);
    *references = references.checked_add(count).ok_or(Status::InvalidValue)?;
    Ok(())
}

fn release(handle: Handle, count: u64) -> Answer {
    let driver = driver()?;
    let object = driver.user_objects.get(handle).map_err(|_| Status::InvalidValue)?;
    let left = {
        let mut references = object.references.lock().unwrap_or_else(PoisonError::into_inner);
        *references = match references.checked_sub(count) {
            Some(left) if count > 0 => left,
            _ => return Err(Status::InvalidValue),
        };
        *references
    };
    if left == 0 && driver.user_objects.remove(handle).is_ok() {
        object.end.call(object.data);
    }
    Ok(())
}

entries! { ENTRIES;
    /// Creates an object that graphs can keep alive.
    fn cuUserObjectCreate(object: Out<Handle>, data: Pointer, end: HostFunction, references: c_uint, flags: c_uint) {
        let driver = driver()?;
        object.check()?;
        end.check()?;
        if flags != NO_DESTRUCTOR_SYNC || references == 0 {
            return Err(Status::InvalidValue);
        }
        object.set(driver.user_objects.insert(UserObject { references: Mutex::new(references.into()), end, data }))
    }

    /// Adds references to a user object.
    fn cuUserObjectRetain(object: Handle, count: c_uint) {
        retain(object, count.into())
    }

    /// Releases references to a user object. The last release calls its function.
    fn cuUserObjectRelease(object: Handle, count: c_uint) {
        release(object, count.into())
    }

    /// Adds references from a graph to a user object: new ones, or the caller's own.
    fn cuGraphRetainUserObject(graph: Handle, object: Handle, count: c_uint, flags: c_uint) {
        let driver = driver()?;
        let graph = driver.graphs.get(graph).map_err(|_| Status::InvalidValue)?;
        if flags & !MOVE != 0 || count == 0 {
            return Err(Status::InvalidValue);
        }
        let known = driver.user_objects.get(object).map_err(|_| Status::InvalidValue)?;
        // The caller cannot give references that it does not have.
        if *known.references.lock().unwrap_or_else(PoisonError::into_inner) < u64::from(count) && flags & MOVE != 0 {
            return Err(Status::InvalidValue);
        }
        if flags & MOVE == 0 {
            retain(object, count.into())?;
        }
        graph.held.add(object, count);
        Ok(())
    }

    /// Removes references from a graph to a user object.
    fn cuGraphReleaseUserObject(graph: Handle, object: Handle, count: c_uint) {
        let graph = driver()?.graphs.get(graph).map_err(|_| Status::InvalidValue)?;
        graph.held.take(object, count)?;
        release(object, count.into())
    }
}
