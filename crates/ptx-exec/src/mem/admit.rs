//! Accesses of watched warps: observers are notified before an access, and can exclude lanes from it. They
//! are not notified where a check replaces the event (`watch/access_checks.rs`).
//!
//! Invariant: an excluded lane accesses no memory; the other lanes pass all checks afterwards.

use super::view::View;
use super::{Addresses, Cell};
use crate::lanes::{Bits, Lane, LaneMask, lanes_of};
use crate::watch::{Access, AccessKind, Bounds, Refused, WarpFacts};
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
        if self.resolve(space, addrs, mask, bytes, write).is_ok() {
            if self
                .site()
                .is_some_and(|site| lies_in(site.bounds(space), &site.warp, (space, addrs), mask, bytes))
            {
                return mask;
            }
        } else {
            for lane in lanes_of(mask) {
                if let Err(kind) = self.locate(space, lane, addrs.at(lane), bytes, write) {
                    refused.push(Refused { lane, kind });
                }
            }
        }
        let Some(site) = self.site() else { return mask };
        if let Some(replaced) = &site.replaced {
            site.tell_some(replaced.observer(), |observer, site| observer.resumes(site, mask));
        }
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

/// Whether so many bytes at the address of each lane of `mask` lie in bounds.
#[inline]
fn lies_in(
    bounds: Bounds,
    warp: &WarpFacts,
    (space, addresses): (Space, Addresses<'_>),
    mask: LaneMask,
    bytes: u64,
) -> bool {
    let (start, size, stride) = match bounds {
        Bounds::Anywhere => return true,
        Bounds::Unknown => return false,
        Bounds::Within { start, bytes, stride } => (start, bytes, stride),
    };
    let Some(limit) = size.checked_sub(bytes) else { return false };
    // The distance from the start of the bounds to the address of lane L is `address + first + apart * L`.
    let (origin, next) = (warp.generic(space, 0, 0), warp.generic(space, 1, 0));
    let first = origin.wrapping_sub(start);
    let apart = next.wrapping_sub(origin).wrapping_sub(stride);
    match addresses {
        Addresses::Same(address) if apart == 0 => return address.wrapping_add(first) <= limit,
        Addresses::Lanes(lanes, offset) if apart == 0 => {
            let first = first.wrapping_add(offset);
            // Distances within the limit have a clear highest bit, and so has what is left to the limit.
            let any = lanes.0.iter().fold(0, |any, address| {
                let distance = address.wrapping_add(first);
                any | distance | limit.wrapping_sub(distance)
            });
            if any >> 63 == 0 {
                return true;
            }
        }
        Addresses::Same(_) | Addresses::Lanes(..) => {}
    }
    lanes_of(mask).all(|lane| {
        let distance = addresses.at(lane).wrapping_add(first).wrapping_add(apart.wrapping_mul(lane as u64));
        distance <= limit
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::LANES;

    const SHARED: (u64, u64) = (0x10_0000, 0x400);
    const LOCAL: (u64, u64) = (0x20_0000, 0x100);
    const GLOBAL: (u64, u64) = (0x30_0000, 24);

    fn warp() -> WarpFacts {
        WarpFacts {
            slot: 0,
            cta_slot: 0,
            cta: 0,
            ctaid: [0; 3],
            warp: 0,
            lanes: LaneMask::MAX,
            tid: [Lane([0; LANES]); 3],
            shared: SHARED,
            local: LOCAL,
            params: (0, 0),
        }
    }

    fn passes(bounds: Bounds, space: Space, addresses: Addresses<'_>, mask: LaneMask) -> bool {
        lies_in(bounds, &warp(), (space, addresses), mask, 4)
    }

    const IN_SHARED: Bounds = Bounds::Within { start: SHARED.0 + 16, bytes: 8, stride: 0 };
    const IN_LOCAL: Bounds = Bounds::Within { start: LOCAL.0 + 8, bytes: 12, stride: LOCAL.1 };
    const IN_GLOBAL: Bounds = Bounds::Within { start: GLOBAL.0, bytes: GLOBAL.1, stride: 0 };

    /// The first generic address in bounds in a lane, and one behind the last.
    fn range(bounds: Bounds, lane: u64) -> (u64, u64) {
        let Bounds::Within { start, bytes, stride } = bounds else { unreachable!("all are bounds") };
        (start + lane * stride, start + lane * stride + bytes)
    }

    #[test]
    fn four_bytes_pass_where_all_of_them_lie_in_bounds() {
        let all = [(IN_SHARED, Space::Shared), (IN_LOCAL, Space::Local), (IN_GLOBAL, Space::Global)];
        let mut passed = 0;
        for (bounds, own) in all {
            for (space, lane) in [(own, 0), (own, 5), (own, 31), (Space::Generic, 0), (Space::Generic, 5)] {
                let origin = |lane: usize| warp().generic(space, lane, 0);
                let (start, end) = range(bounds, lane as u64);
                for address in (start - 9..start + 9).chain(end - 9..end + 9) {
                    // The other lanes access the first bytes in bounds.
                    let first = |other: usize| range(bounds, other as u64).0.wrapping_sub(origin(other));
                    let mut lanes = Lane(std::array::from_fn(first));
                    lanes.0[lane] = address.wrapping_sub(origin(lane));
                    let inside = address >= start && address + 4 <= end;
                    let at = |mask| passes(bounds, space, Addresses::Lanes(&lanes, 0), mask);
                    assert_eq!(at(LaneMask::MAX), inside, "{bounds:?} {space:?} {lane} {address:#x}");
                    assert_eq!(at(1 << lane), inside, "{bounds:?} {space:?} {lane} {address:#x}");
                    assert!(at(!(1 << lane)), "{bounds:?} {space:?} {lane} {address:#x}");
                    let before = Lane(lanes.0.map(|address| address.wrapping_sub(40)));
                    let moved = Addresses::Lanes(&before, 40);
                    assert_eq!(passes(bounds, space, moved, LaneMask::MAX), inside);
                    passed += u32::from(inside);
                }
            }
        }
        assert!(passed > 100);
    }

    #[test]
    fn one_address_of_all_lanes_is_an_offset_in_local_memory() {
        let local = IN_LOCAL;
        let at = |address| passes(local, Space::Local, Addresses::Same(address), LaneMask::MAX);
        assert!(at(8) && at(16) && !at(7) && !at(17) && !at(0u64.wrapping_sub(8)));
        // As a generic address it lies in one lane's memory.
        let inside = Addresses::Same(LOCAL.0 + 3 * LOCAL.1 + 8);
        assert!(passes(local, Space::Generic, inside, 1 << 3));
        assert!(!passes(local, Space::Generic, inside, LaneMask::MAX));
    }

    #[test]
    fn any_address_passes_without_bounds_and_none_where_an_observer_decides() {
        let at = |bounds| passes(bounds, Space::Global, Addresses::Same(12345), LaneMask::MAX);
        assert!(at(Bounds::Anywhere) && !at(Bounds::Unknown));
        // The object is smaller than the access.
        let small = Bounds::Within { start: SHARED.0, bytes: 2, stride: 0 };
        assert!(!passes(small, Space::Shared, Addresses::Same(0), LaneMask::MAX));
    }
}
