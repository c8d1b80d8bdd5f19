//! The kinds of allocations of guest memory.
//!
//! Invariant: the kind of an allocation never changes.

/// The kind of an allocation, which determines the accesses that it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `.global` and generic accesses, reading and writing.
    Global,
    /// `.const` and generic accesses, reading.
    Const,
    /// From the guest's `malloc`: as `Global`, and the guest may free it.
    Malloc,
    /// A parameter buffer: `.param` accesses of its launch.
    Param,
    /// Texels and opaque variables: accessed by texture and surface instructions only.
    Texture,
}
