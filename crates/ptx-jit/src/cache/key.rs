//! A cache key: a hash of everything that the code of a kernel depends on.
//!
//! Invariant: kernels, shapes or targets that result in different code have different keys. The hash is
//! cryptographic, so no two texts with one key can be found.

use crate::coarsen::Teams;
use crate::engine::Part;
use crate::llvm::library;
use crate::target::Target;
use ptx_exec::launch::Kernel;
use ptx_exec::watch::NativeNeeds;
use sha2::{Digest, Sha256};
use std::fmt;

/// A hash of the part of ptxvm that generates code; see the build script.
const BUILD: &str = env!("PTXVM_BUILD_HASH");

/// The key that code is stored under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(pub(crate) [u8; 32]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Key {
    /// The key of a part of a kernel's code, for one CTA shape on one processor.
    pub(crate) fn new(kernel: &Kernel, ntid: [u32; 3], target: Target, teams: Teams, code: Part) -> Key {
        let program = kernel.module().program();
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(BUILD.as_bytes());
        part(library().as_bytes());
        part(target.to_string().as_bytes());
        // The text determines the program; the starts of its parts tell how it was linked.
        part(program.source.text.as_bytes());
        for start in program.source.parts.iter().map(|part| part.start) {
            part(&start.to_le_bytes());
        }
        // A target other than that of the text may have been selected.
        part(&u32::from(program.target.sm.number).to_le_bytes());
        part(&kernel.id().0.to_le_bytes());
        for n in ntid {
            part(&n.to_le_bytes());
        }
        match kernel.native_needs() {
            NativeNeeds::Nothing => part(b"unwatched"),
            NativeNeeds::Checks(checks) => part(format!("{checks:?}").as_bytes()),
            NativeNeeds::Events(_) => part(b"interpreted"),
        }
        let teams: u32 = match teams {
            Teams::Auto => 0,
            Teams::Never | Teams::Threads => 1,
            Teams::Of(size) => size.saturating_add(2),
        };
        part(&teams.to_le_bytes());
        // The rest numbers its cached bounds after those of the first part.
        let (of, windows): (&[u8], u32) = match code {
            Part::All => (b"all", 0),
            Part::First => (b"first", 0),
            Part::Rest { windows } => (b"rest", windows),
            Part::Scalar { windows } => (b"scalar", windows),
        };
        part(of);
        part(&windows.to_le_bytes());
        Key(hash.finalize().into())
    }

    /// The key of the time that was lost on compiling the code with this key ([`super::unfinished`]), or on
    /// compiling it once more, with optimisation.
    pub(super) fn of_lost_time(self, again: bool) -> Key {
        let prefix: &[u8] = if again { b"lost time again" } else { b"lost time" };
        let mut hash = Sha256::new_with_prefix(prefix);
        hash.update(self.0);
        Key(hash.finalize().into())
    }
}
