//! Entry points by name and version: `cuGetProcAddress`.
//!
//! Invariant: an address is given only for a function that is exported.

mod names;
#[cfg(test)]
mod tests;

use crate::entry::{DefaultStream, Entry, entries};
use crate::ffi::{Out, Pointer, Text};
use crate::log;
use crate::status::{Answer, Status};
use names::{NAMES, Name};
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::OnceLock;

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`
const PER_THREAD: u64 = 2;

/// All entry points, file by file.
pub(crate) const TABLES: &[&[Entry]] = &[
    ENTRIES,
    crate::init::ENTRIES,
    crate::context::ENTRIES,
    crate::module::ENTRIES,
    crate::link::ENTRIES,
    crate::function::ENTRIES,
    crate::occupancy::ENTRIES,
    crate::launch::ENTRIES,
    crate::memory::ENTRIES,
    crate::pool::ENTRIES,
    crate::pool_ipc::ENTRIES,
    crate::mapped::ENTRIES,
    crate::ipc::ENTRIES,
    crate::copy::ENTRIES,
    crate::copy_batch::ENTRIES,
    crate::copy_box::ENTRIES,
    crate::array::ENTRIES,
    crate::texture::ENTRIES,
    crate::texref::ENTRIES,
    crate::stream::ENTRIES,
    crate::stream_attributes::ENTRIES,
    crate::stream_values::ENTRIES,
    crate::event::ENTRIES,
    crate::capture::ENTRIES,
    crate::user_object::ENTRIES,
    crate::first_forms::ENTRIES,
    crate::refused::ENTRIES,
    crate::graph::TABLES[0],
    crate::graph::TABLES[1],
    crate::graph::TABLES[2],
    crate::graph::TABLES[3],
    crate::graph::TABLES[4],
    crate::graph::TABLES[5],
    crate::graph::TABLES[6],
    crate::graph::TABLES[7],
];

/// The entry point with exactly this name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    static BY_NAME: OnceLock<HashMap<&'static str, &'static Entry>> = OnceLock::new();
    let all = || TABLES.iter().flat_map(|table| table.iter()).map(|entry| (entry.name, entry)).collect();
    BY_NAME.get_or_init(all).get(name).copied()
}

/// The result of a search for a name.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    /// The form of the function for the version.
    Entry(&'static Entry),
    /// The function exists, but only in later versions.
    Later,
    /// The name is unknown.
    Unknown,
}

/// The latest form of a function that is no later than `version` (12090 is 12.9). `per_thread` selects the
/// variant for the thread's default stream, if there is one.
pub(crate) fn find_version(name: &str, version: u32, per_thread: bool) -> Found {
    let of_name = |form: &&Name| form.name == name;
    let latest = |per_thread: bool| {
        NAMES.iter().filter(of_name).rfind(|form| form.since <= version && form.per_thread == per_thread)
    };
    match latest(per_thread).or_else(|| latest(false)) {
        Some(form) => find(form.symbol).map_or(Found::Unknown, Found::Entry),
        None if NAMES.iter().any(|form| form.name == name) => Found::Later,
        None => Found::Unknown,
    }
}

fn address(name: Text, out: Out<Pointer>, version: c_int, flags: u64, status: Out<c_int>) -> Answer {
    // This works before `cuInit`, because programs look up `cuInit` too.
    let name = name.get()?;
    out.check()?;
    let version = u32::try_from(version).map_err(|_| Status::InvalidValue)?;
    if flags > PER_THREAD {
        return Err(Status::InvalidValue);
    }
    // `CU_GET_PROC_ADDRESS_SUCCESS`, `..._SYMBOL_NOT_FOUND`, `..._VERSION_NOT_SUFFICIENT`
    let (found, why) = match find_version(&name, version, flags == PER_THREAD) {
        Found::Entry(entry) => (Some(entry), 0),
        Found::Unknown => (None, 1),
        Found::Later => (None, 2),
    };
    status.set_optional(why)?;
    match found {
        Some(entry) => out.set(Pointer::from_address((entry.address)() as u64)),
        None => {
            log::refused(&format!("the looked-up function `{name}` of CUDA {version}"));
            out.set(Pointer::NULL)?;
            // The driver reports it once: as its result, or in the status that the caller gave room for.
            if status.is_null() { Err(Status::NotFound) } else { Ok(()) }
        }
    }
}

/// The flags with those of a program that was compiled for the default stream of the thread.
fn flags_of(flags: u64, default: DefaultStream) -> u64 {
    match default {
        DefaultStream::PerThread if flags == 0 => PER_THREAD,
        DefaultStream::Legacy | DefaultStream::PerThread => flags,
    }
}

entries! { ENTRIES;
    /// The address of an entry point.
    fn cuGetProcAddress | cuGetProcAddress_ptsz as default (name: Text, out: Out<Pointer>, version: c_int, flags: u64) {
        address(name, out, version, flags_of(flags, default), Out::NULL)
    }

    /// The address of an entry point, or the reason why there is none.
    fn cuGetProcAddress_v2 | cuGetProcAddress_v2_ptsz as default (
        name: Text, out: Out<Pointer>, version: c_int, flags: u64, status: Out<c_int>,
    ) {
        address(name, out, version, flags_of(flags, default), status)
    }
}
