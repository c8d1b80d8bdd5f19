//! Entry points by name.

mod names;
#[cfg(test)]
mod tests;

use crate::entry::Entry;
use names::{NAMES, Name};

/// All entry points, file by file.
pub(crate) const TABLES: &[&[Entry]] = &[
    crate::init::ENTRIES,
    crate::context::ENTRIES,
    crate::module::ENTRIES,
    crate::memory::ENTRIES,
    crate::launch::ENTRIES,
    crate::refused::ENTRIES,
];

/// The entry point of exactly that name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    TABLES.iter().flat_map(|table| table.iter()).find(|entry| entry.name == name)
}

/// What is known of a name.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    /// The form of it for that version.
    Entry(&'static Entry),
    /// There is a function of that name, but not yet in that version.
    Later,
    /// There is none of that name.
    Unknown,
}

/// The latest form of a function that is no later than `version` (12090 is 12.9); the form for the default stream of the thread where it is
/// asked for and exists.
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
