//! Attributes of streams. They are stored, but none has an effect.
//!
//! Invariant: an attribute that a program set is what it reads back. L2 has no persisting lines, so windows
//! for them are not supported.

use crate::entry::entries;
use crate::ffi::{In, Out};
use crate::handles::Handle;
use crate::log;
use crate::status::{Answer, Status};
use crate::stream::queue;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `CUstreamAttrValue` as words.
type Value = [u64; 8];

/// The `CU_LAUNCH_ATTRIBUTE_*` of streams.
const WINDOW: c_int = 1;
const WAITING: c_int = 3;
const PRIORITY: c_int = 8;
const DOMAINS: c_int = 9;
const DOMAIN: c_int = 10;
/// `CU_SYNC_POLICY_AUTO`, and the last policy.
const AUTO: u64 = 1;
const POLICIES: u64 = 4;

/// The attributes that a program set.
#[derive(Default)]
pub(crate) struct Attributes(Mutex<BTreeMap<c_int, Value>>);

impl Attributes {
    fn table(&self) -> MutexGuard<'_, BTreeMap<c_int, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, attribute: c_int, priority: c_int) -> Result<Value, Status> {
        let first = |word: u64| [word, 0, 0, 0, 0, 0, 0, 0];
        let unset = match attribute {
            WINDOW | DOMAIN => first(0),
            WAITING => first(AUTO),
            PRIORITY => first(u64::from(priority as u32)),
            // The default memory domains: 0, and 1 for remote ones.
            DOMAINS => first(1 << 8),
            _ => return Err(Status::InvalidValue),
        };
        Ok(self.table().get(&attribute).copied().unwrap_or(unset))
    }

    fn set(&self, attribute: c_int, value: Value) -> Answer {
        match attribute {
            // The second word is the size of the window.
            WINDOW if value[1] != 0 => {
                log::refused("a persisting window of L2 in cuStreamSetAttribute");
                return Err(Status::NotSupported);
            }
            WAITING if !(AUTO..=POLICIES).contains(&(value[0] & u64::from(u32::MAX))) => {
                return Err(Status::InvalidValue);
            }
            WINDOW | WAITING | PRIORITY | DOMAINS | DOMAIN => {}
            _ => return Err(Status::InvalidValue),
        }
        self.table().insert(attribute, value);
        Ok(())
    }
}

entries! { ENTRIES;
    /// An attribute of a stream.
    fn cuStreamGetAttribute | cuStreamGetAttribute_ptsz as default (stream: Handle, attribute: c_int, value: Out<Value>) {
        let (_, queue) = queue(stream, default)?;
        value.check()?;
        value.set(queue.attributes().get(attribute, queue.priority())?)
    }

    /// Sets an attribute of a stream.
    fn cuStreamSetAttribute | cuStreamSetAttribute_ptsz as default (stream: Handle, attribute: c_int, value: In<Value>) {
        queue(stream, default)?.1.attributes().set(attribute, value.get()?)
    }

    /// Copies the attributes of a stream to another.
    fn cuStreamCopyAttributes | cuStreamCopyAttributes_ptsz as default (to: Handle, from: Handle) {
        let (to, from) = (queue(to, default)?.1, queue(from, default)?.1);
        let all = from.attributes().table().clone();
        to.attributes().table().extend(all);
        Ok(())
    }
}
