//! Entry points by name.

use crate::entry::Entry;

/// All entry points, file by file.
pub(crate) const TABLES: &[&[Entry]] = &[
    crate::init::ENTRIES,
    crate::context::ENTRIES,
    crate::module::ENTRIES,
    crate::memory::ENTRIES,
    crate::launch::ENTRIES,
];

/// The entry point of exactly that name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    TABLES.iter().flat_map(|table| table.iter()).find(|entry| entry.name == name)
}
