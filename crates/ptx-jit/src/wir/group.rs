//! Groups of accesses as data of the IR: accesses of one block that are close together, and become a few wide
//! accesses.
//!
//! The pass in [`mem::group`](crate::mem::group) finds them. Code generation emits a group where its first
//! load or its last store stands, and decides nothing.
//!
//! # Shape
//! One line behind the operations of a block for each group: its kind, the access of a lane, the register
//! that the addresses are relative to, and the members by ascending address, each with its offset.
//! ```text
//! group interleaved ld.global.s32 v9 [0.4+0 0.5+4]
//! ```
//!
//! Invariant: a member is a load or a store of the block, relative to the group's register, and belongs to
//! one group only. Nothing here depends on a value of LLVM.

use super::access::Access;
use super::{Block, OpKind, Value};
use ptx::isa::Space;

/// Accesses that are emitted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) kind: GroupKind,
    /// The register that the addresses are relative to.
    pub(crate) base: Value,
    /// The access that the group makes for a lane: of one member, or of all of them in a gather.
    pub(crate) access: Access,
    /// In ascending order of their addresses.
    pub(crate) members: Vec<Member>,
}

/// A member of a group: the index of the access in the block, and the offset of its element from the
/// register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) at: usize,
    pub(crate) offset: i64,
}

/// How the members of a group share memory accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// An interleaved group: a lane's consecutive elements, a power of two of them, are one access.
    Interleaved,
    /// A window: loads of overlapping contiguous vectors are taken from the vectors that cover all of them.
    Window,
    /// A window whose vectors are loaded one by one, because shuffles are as scarce as loads.
    SeparateWindow,
    /// Loads whose lanes access nearby elements share the vectors that cover these.
    Covering,
    /// Loads of consecutive words at addresses of each lane's own: one gather takes all words of a lane.
    Gather,
}

impl GroupKind {
    pub(crate) const ALL: [GroupKind; 5] = [
        GroupKind::Interleaved,
        GroupKind::Window,
        GroupKind::SeparateWindow,
        GroupKind::Covering,
        GroupKind::Gather,
    ];

    /// The word for it in the text form.
    pub(crate) fn name(self) -> &'static str {
        match self {
            GroupKind::Interleaved => "interleaved",
            GroupKind::Window => "window",
            GroupKind::SeparateWindow => "separate-window",
            GroupKind::Covering => "covering",
            GroupKind::Gather => "gather",
        }
    }

    /// Whether the members' accesses are emitted as a group.
    pub(crate) fn is_joined(self) -> bool {
        self != GroupKind::SeparateWindow
    }
}

impl Group {
    /// The line of the text form.
    pub(crate) fn text(&self, block: &Block) -> String {
        let Group { kind, base, access, members } = self;
        let member = |Member { at, offset }: &Member| match block.ops.get(*at).map(|op| &op.kind) {
            Some(OpKind::Inst(site)) => format!("{}.{}{offset:+}", site.block, site.index),
            _ => format!("op{at}{offset:+}"),
        };
        let members = members.iter().map(member).collect::<Vec<_>>().join(" ");
        let how = if access.write { "st" } else { "ld" };
        let sign = if access.signed { 's' } else { 'u' };
        let (space, bits) = (access.space.name(), access.bits);
        format!("group {} {how}.{space}.{sign}{bits} v{} [{members}]", kind.name(), base.0)
    }

    /// The access that a word such as `ld.global.s32` names.
    pub(crate) fn access(word: &str) -> Option<Access> {
        let mut parts = word.split('.');
        let write = match parts.next()? {
            "ld" => false,
            "st" => true,
            _ => return None,
        };
        let name = parts.next()?;
        let spaces = [Space::Generic, Space::Global, Space::Shared];
        let space = spaces.into_iter().find(|space| space.name() == name)?;
        let (signed, bits) = match parts.next()? {
            ty if ty.starts_with('s') => (true, &ty[1..]),
            ty if ty.starts_with('u') => (false, &ty[1..]),
            _ => return None,
        };
        let bits = [8, 16, 32, 64].into_iter().find(|number| *bits == number.to_string())?;
        parts.next().is_none().then_some(Access { space, bits, count: 1, signed, write, postponed: false })
    }
}
