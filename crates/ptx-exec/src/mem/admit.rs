//! Accesses of watched warps: observers are notified before an access, and can exclude lanes from it.
//!
//! Invariant: an excluded lane accesses no memory; the other lanes pass all checks afterwards.

use super::view::View;
use super::{Addresses, Cell};
use crate::lanes::{Bits, Lane, LaneMask, lanes_of};
use crate::watch::{Access, AccessKind, Refused};
use ptx::isa::{Sem, Space};

/// An access before its bounds checks.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) kind: AccessKind,
    pub(super) space: Space,
    pub(super) addrs: Addresses<'a>,
    pub(super) sem: Sem,
    /// Bytes of an element.
    pub(super) element: u64,
    pub(super) elements: usize,
    /// The accessed elements of a lane, as bits.
    pub(super) chosen: u8,
}

impl View {
    /// The lanes of `mask` that take part: all that no observer excludes.
    #[inline(always)]
    pub(super) fn admit<'a>(&mut self, mask: LaneMask, asked: impl FnOnce() -> Asked<'a>) -> LaneMask {
        if !self.is_watched() || mask == 0 { mask } else { self.ask(mask, asked()) }
    }

    /// As [`View::admit`], for a load: excluded lanes get zeros.
    #[inline(always)]
    pub(super) fn admit_load<T: Cell + Bits, const N: usize>(
        &mut self,
        mask: LaneMask,
        (space, addrs, sem): (Space, Addresses<'_>, Sem),
        out: [&mut Lane<T>; N],
    ) -> LaneMask {
        if !self.is_watched() {
            return mask;
        }
        let asked = Asked {
            kind: AccessKind::Load,
            space,
            addrs,
            sem,
            element: T::BYTES,
            elements: N,
            chosen: all(N),
        };
        let admitted = self.admit(mask, || asked);
        if admitted != mask {
            for out in out {
                out.blend(mask & !admitted, &Lane::splat(T::default()));
            }
        }
        admitted
    }

    /// Asks observers whether a lane whose coordinates lie outside a surface is to be left out. Else it is a
    /// trap.
    pub(crate) fn leaves_out(&mut self, lane: usize, why: &str) -> bool {
        let Some(site) = self.site() else { return false };
        let site = &*site;
        site.watch.any(|observer| observer.surface_outside(site, lane, why))
    }

    #[cold]
    #[inline(never)]
    fn ask(&mut self, mask: LaneMask, asked: Asked<'_>) -> LaneMask {
        let Asked { kind, space, addrs, sem, element, elements, chosen } = asked;
        let bytes = element * elements as u64;
        let write = kind != AccessKind::Load;
        let mut refused = Vec::new();
        if self.resolve(space, addrs, mask, bytes, write).is_err() {
            for lane in lanes_of(mask) {
                if let Err(kind) = self.locate(space, lane, addrs.at(lane), bytes, write) {
                    refused.push(Refused { lane, kind });
                }
            }
        }
        let Some(site) = self.site() else { return mask };
        let (given, moved);
        let addresses = match addrs {
            Addresses::Lanes(lanes, 0) => lanes,
            Addresses::Lanes(..) | Addresses::Same(_) => {
                given = addrs.all();
                &given
            }
        };
        let generic = match site.warp.generics(space, addresses) {
            None => addresses,
            Some(lanes) => {
                moved = lanes;
                &moved
            }
        };
        let access = Access {
            kind,
            space,
            lanes: mask,
            addresses,
            generic,
            bytes: bytes as u32,
            element: element as u32,
            chosen,
            same: matches!(addrs, Addresses::Same(_)) && space != Space::Local,
            sem,
            refused: &refused,
        };
        mask & !site.watch.lanes(|observer| observer.access(site, &access))
    }
}

/// The bits of all elements.
pub(super) fn all(elements: usize) -> u8 {
    u8::MAX >> (8 - elements.clamp(1, 8))
}
