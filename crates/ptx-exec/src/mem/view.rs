//! Guest memory as one warp sees it: the accessible addresses, and their memory.
//!
//! A `.shared` address is an offset in the CTA's window, a `.local` address an offset in the lane's local
//! memory, a `.param` address an offset in the launch's parameter buffer. `.global`, `.const` and generic
//! addresses are real addresses. A generic address can reach the warp's own windows and all allocations;
//! another CTA's window and another lane's local memory are out of bounds.
//!
//! Invariant: all lanes of an access are checked before any of them accesses memory, so a faulting
//! instruction has no effect.

use super::handles::Recent;
use super::local::{LOCAL_ROW, Local, LocalLayout, Spot};
use super::target::{Addresses, Bounds, Cells, Shape, Target, is_in_either, shape};
use super::{Cell, Class, Extent, Memory, Window};
use crate::lanes::{LANES, Lane, LaneMask, lanes_of};
use crate::trap::{Fault, FaultAccess, FaultKind};
use crate::watch::Site;
use ptx::isa::Space;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The accesses of a warp since the last query. The scheduler uses this to distinguish loops that poll memory
/// from loops that compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// It polled: it executed a load that is not weak, or an atomic operation.
    pub watched: bool,
    /// It changed memory that other threads can read.
    pub changed: bool,
}

/// Capacity of the first list of cached look-ups.
const RECENT: usize = 4;
/// Capacity of the second list of cached look-ups.
const KNOWN: usize = 1024;

const NOWHERE: Extent = Extent { start: 0, bytes: 0, class: Class::Global, writable: false };

/// A range of addresses.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    start: u64,
    bytes: u64,
}

/// Memory windows of a warp, as host addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Shared memory of the CTA: address and bytes.
    pub shared: (u64, u64),
    /// Parameters: address and bytes.
    pub params: (u64, u64),
    /// Local memory: address of the window, distance between the generic addresses of lanes, and bytes in use
    /// per lane.
    pub local: (u64, u64, u64),
}

/// A range that a warp may access: first address and size in bytes.
pub type Reach = (u64, u64);

/// Guest memory as one warp sees it.
pub struct View {
    pub(super) memory: Arc<Memory>,
    shared: Range,
    params: Range,
    local: Local,
    recent: [Extent; RECENT],
    oldest: usize,
    known: Vec<Extent>,
    frees: u64,
    activity: Activity,
    pub(super) handle: Recent,
    /// The position of the warp, if it is watched.
    site: Option<Box<Site>>,
    /// Whether observers want to see its accesses.
    asked: bool,
}

/// Where an access of a lane is.
#[derive(Clone, Copy)]
pub(super) struct Located {
    /// The address in the process of its first byte.
    pub(super) at: u64,
    /// Whether only this CTA can access it.
    pub(super) own: bool,
    /// Whether it is in local memory.
    pub(super) local: bool,
}

/// A refused access of a lane.
pub(super) struct Refusal {
    pub(super) kind: FaultKind,
    pub(super) lane: usize,
    pub(super) address: u64,
}

impl View {
    /// A view without windows: it can access allocations only.
    pub fn new(memory: &Arc<Memory>) -> Self {
        Self {
            memory: Arc::clone(memory),
            shared: Range::default(),
            params: Range::default(),
            local: Local::default(),
            recent: [NOWHERE; RECENT],
            oldest: 0,
            known: Vec::new(),
            frees: 0,
            activity: Activity::default(),
            handle: Recent::default(),
            site: None,
            asked: false,
        }
    }

    /// The memory of this view.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Starts watching the warp; `None`: stops.
    pub(crate) fn set_site(&mut self, site: Option<Box<Site>>) {
        self.asked = site.as_ref().is_some_and(|site| site.watch.sees_accesses());
        self.site = site;
    }

    /// The position of the warp, if it is watched.
    #[inline(always)]
    pub(crate) fn site(&mut self) -> Option<&mut Site> {
        self.site.as_deref_mut()
    }

    /// Whether observers want to see its accesses.
    #[inline(always)]
    pub(super) fn is_watched(&self) -> bool {
        self.asked
    }

    pub(crate) fn set_shared(&mut self, start: u64, bytes: u64) {
        self.shared = Range { start, bytes };
    }

    pub(crate) fn set_params(&mut self, start: u64, bytes: u64) {
        self.params = Range { start, bytes };
    }

    pub(crate) fn set_local(&mut self, start: u64, stride: u64, layout: LocalLayout) {
        self.local = Local { start, stride, top: 0, layout };
    }

    /// Makes the first bytes of each lane's local memory new. `window`: that of the local memory.
    pub(crate) fn clear_local(&self, window: &mut Window, bytes: u64) {
        self.local.clear(window, bytes);
    }

    /// Sets the bytes in use of each lane's local memory.
    pub(crate) fn set_local_top(&mut self, top: u64) {
        debug_assert!(top <= self.local.stride);
        self.local.top = top;
    }

    /// Returns the activity since the last call, and resets it.
    #[inline(always)]
    pub(crate) fn take_activity(&mut self) -> Activity {
        std::mem::take(&mut self.activity)
    }

    pub(super) fn note(&mut self, watched: bool, changed: bool) {
        self.activity.watched |= watched;
        self.activity.changed |= changed;
    }

    /// `isspacep`: lanes of `mask` whose generic address is in the region of the state space. Addresses
    /// outside of all regions are global.
    pub fn isspacep<'a>(&self, space: Space, addrs: impl Into<Addresses<'a>>, mask: LaneMask) -> LaneMask {
        let addrs = addrs.into();
        lanes_of(mask)
            .filter(|lane| self.memory.space_of(addrs.at(*lane)) == space)
            .fold(0, |m, lane| m | 1 << lane)
    }

    /// `cvta`: generic addresses of addresses in a state space.
    pub fn cvta(&self, space: Space, addrs: &Lane<u64>) -> Lane<u64> {
        Lane(std::array::from_fn(|lane| addrs.0[lane].wrapping_add(self.origin(space, lane))))
    }

    /// `cvta.to`: addresses in a state space of generic addresses. For an address outside of the region the
    /// manual leaves the result undefined, and an access through it is refused.
    pub fn cvta_to(&self, space: Space, addrs: &Lane<u64>) -> Lane<u64> {
        Lane(std::array::from_fn(|lane| addrs.0[lane].wrapping_sub(self.origin(space, lane))))
    }

    /// The generic address of address 0 of a state space, for one lane.
    pub fn origin(&self, space: Space, lane: usize) -> u64 {
        match space {
            Space::Shared => self.shared.start,
            Space::Local => self.local.origin(lane),
            Space::Param => self.params.start,
            Space::Generic | Space::Global | Space::Const | Space::Reg | Space::Sreg | Space::Tex => 0,
        }
    }

    /// The windows of the warp.
    pub fn windows(&self) -> Windows {
        let Local { start, stride, top, .. } = self.local;
        Windows {
            shared: (self.shared.start, self.shared.bytes),
            params: (self.params.start, self.params.bytes),
            local: (start, stride, top),
        }
    }

    /// The allocation that contains a global, constant or generic address, if an instruction of that state
    /// space may access all of it. Valid while [`Memory::frees`] does not change.
    pub fn reach(&mut self, space: Space, address: u64, write: bool) -> Option<Reach> {
        let extent = self.extent(address)?;
        permits(space, &extent, write).then_some((extent.start, extent.bytes))
    }

    /// The addresses that can alias a reach: the reach itself, or all mapped pages, because pages can be
    /// mapped twice.
    pub fn aliases(&self, reach: Reach) -> Reach {
        let mapped = &self.memory.store.regions.mapped;
        if mapped.contains(&reach.0) { (mapped.start, mapped.end - mapped.start) } else { reach }
    }

    /// A description of an address for reports: its nearest allocation, or the bounds of its window.
    pub fn nearest(&self, space: Space, lane: usize, address: u64) -> String {
        let window = |what: &str, bytes: u64| match address.checked_sub(bytes) {
            Some(past) => format!("{what}, {bytes} bytes; the address is {past} bytes past its end"),
            None => format!("{what}, {bytes} bytes; the address is {address} bytes into it"),
        };
        let space = match space {
            Space::Generic => self.memory.space_of(address),
            other => {
                return match other {
                    Space::Shared => window("shared memory of the CTA", self.shared.bytes),
                    Space::Local => window("local memory of the thread", self.local.top),
                    Space::Param => window("parameters of the kernel", self.params.bytes),
                    _ => self.memory.nearest(address),
                };
            }
        };
        let offset = address.wrapping_sub(self.origin(space, lane));
        match space {
            Space::Shared if offset < 1 << 31 => self.nearest(space, lane, offset),
            Space::Local if offset < self.local.stride => self.nearest(space, lane, offset),
            Space::Param if offset < 1 << 31 => self.nearest(space, lane, offset),
            Space::Shared => "shared memory of another CTA".to_owned(),
            Space::Local => "local memory of another thread".to_owned(),
            _ => self.memory.nearest(address),
        }
    }

    /// Checks an access of `bytes` bytes (a power of two, and the alignment) in each lane of `mask`, which is
    /// not empty.
    #[inline]
    pub(super) fn resolve<'a>(
        &mut self,
        space: Space,
        addrs: Addresses<'a>,
        mask: LaneMask,
        bytes: u64,
        write: bool,
    ) -> Result<Target<'a>, Box<Fault>> {
        let (lanes, offset) = match addrs {
            Addresses::Lanes(lanes, offset) => (lanes, offset),
            Addresses::Same(address) => return self.resolve_same(space, address, mask, bytes, write),
        };
        let first = addrs.at(mask.trailing_zeros() as usize % LANES);
        let target = |cells, own| Target { cells, mask, bytes, own, private: space == Space::Local };
        // The range that all lanes are likely to be in: its first address in the state space, its size, and
        // the offset to real addresses.
        let (start, length, delta, own) = match space {
            Space::Shared => (0, self.shared.bytes, self.shared.start, true),
            Space::Param if !write => (0, self.params.bytes, self.params.start, true),
            Space::Generic if self.in_shared(first) => (self.shared.start, self.shared.bytes, 0, true),
            Space::Local => (0, self.local.top, 0, true),
            Space::Global | Space::Const | Space::Generic | Space::Tex => match self.extent(first) {
                Some(e) if permits(space, &e, write) => (e.start, e.bytes, 0, false),
                _ => (0, 0, 0, false),
            },
            Space::Param | Space::Reg | Space::Sreg => (0, 0, 0, false),
        };
        // A range that does not start at a multiple of the access size (host memory, 32 bytes) is checked
        // lane by lane.
        if length >= bytes && start.is_multiple_of(bytes) {
            let local = space == Space::Local;
            let base = first.wrapping_add(delta);
            let cells = match shape(lanes, mask, offset, Bounds { start, limit: length - bytes, bytes }) {
                Shape::Bad => None,
                _ if local => Some(Cells::Local(self.local, lanes, offset)),
                Shape::Run => Some(Cells::Run(base)),
                Shape::Same => Some(Cells::Same(base)),
                Shape::Scattered => Some(Cells::Shifted(lanes, delta.wrapping_add(offset))),
            };
            if let Some(cells) = cells {
                return Ok(target(cells, own));
            }
        }
        if length > 0 && !own && self.are_in_two(space, (lanes, offset), mask, bytes, write) {
            return Ok(target(Cells::Shifted(lanes, offset), false));
        }
        if space == Space::Generic && self.all_in_own_local(addrs, mask, bytes) {
            let cells = Cells::OwnLocal(self.local, lanes, offset);
            return Ok(Target { private: true, ..target(cells, true) });
        }
        match self.resolve_each(space, addrs, mask, bytes, write) {
            Ok((cells, own)) => Ok(target(cells, own)),
            Err(r) => Err(refuse(r, space, bytes, write)),
        }
    }

    /// Whether the lanes access two allocations, as they do behind a pointer that was chosen between two.
    /// The addresses are those of `lanes`, plus an offset.
    fn are_in_two(
        &mut self,
        space: Space,
        (lanes, offset): (&Lane<u64>, u64),
        mask: LaneMask,
        bytes: u64,
        write: bool,
    ) -> bool {
        let mut bounds = |lane: usize| {
            let extent = self.extent(lanes.0[lane].wrapping_add(offset))?;
            let fits = permits(space, &extent, write) && extent.bytes >= bytes;
            (fits && extent.start.is_multiple_of(bytes)).then(|| Bounds {
                start: extent.start,
                limit: extent.bytes - bytes,
                bytes,
            })
        };
        let Some(first) = lanes_of(mask).next().and_then(&mut bounds) else { return false };
        let is_other =
            |lane: &usize| lanes.0[*lane].wrapping_add(offset).wrapping_sub(first.start) > first.limit;
        let Some(second) = lanes_of(mask).find(is_other).and_then(&mut bounds) else { return false };
        is_in_either(lanes, mask, offset, [first, second])
    }

    /// As [`View::resolve`], for one address.
    #[inline]
    fn resolve_same<'a>(
        &mut self,
        space: Space,
        address: u64,
        mask: LaneMask,
        bytes: u64,
        write: bool,
    ) -> Result<Target<'a>, Box<Fault>> {
        let lane = mask.trailing_zeros() as usize % LANES;
        let local = space == Space::Local
            || space == Space::Generic && self.memory.store.regions.local.contains(&address);
        if local && space == Space::Generic {
            // In local memory only a single lane can have a generic address of its own.
            return match self.resolve_each(space, Addresses::Same(address), mask, bytes, write) {
                Ok((cells, own)) => Ok(Target { cells, mask, bytes, own, private: true }),
                Err(r) => Err(refuse(r, space, bytes, write)),
            };
        }
        match self.locate(space, lane, address, bytes, write) {
            Ok(Located { own, .. }) if local => {
                Ok(Target { cells: Cells::SameLocal(self.local, address), mask, bytes, own, private: true })
            }
            Ok(Located { at, own, .. }) => {
                Ok(Target { cells: Cells::Same(at), mask, bytes, own, private: false })
            }
            Err(kind) => Err(refuse(Refusal { kind, lane, address }, space, bytes, write)),
        }
    }

    /// Whether each lane's generic access lies in its own local memory, and is aligned.
    fn all_in_own_local(&self, addrs: Addresses<'_>, mask: LaneMask, bytes: u64) -> bool {
        let Some(limit) = self.local.top.checked_sub(bytes) else { return false };
        lanes_of(mask).all(|lane| {
            let address = addrs.at(lane);
            address.is_multiple_of(bytes) && self.local.offset(lane, address) <= limit
        })
    }

    /// As [`View::resolve`], lane by lane.
    #[cold]
    #[inline(never)]
    fn resolve_each(
        &mut self,
        space: Space,
        addrs: Addresses<'_>,
        mask: LaneMask,
        bytes: u64,
        write: bool,
    ) -> Result<(Cells<'static>, bool), Refusal> {
        let mut list = Box::new(Lane::splat(0));
        let (mut all_own, mut locals) = (true, 0);
        // The allocations that were found last. Most such accesses are to two of them.
        let mut found = [NOWHERE; 2];
        for lane in lanes_of(mask) {
            let address = addrs.at(lane);
            let fits = |e: &Extent| bytes <= e.bytes && address.wrapping_sub(e.start) <= e.bytes - bytes;
            if address.is_multiple_of(bytes) && found.iter().any(fits) {
                list.0[lane] = address;
                continue;
            }
            let Located { at, own, local } = self
                .locate(space, lane, address, bytes, write)
                .map_err(|kind| Refusal { kind, lane, address })?;
            list.0[lane] = at;
            locals |= LaneMask::from(local) << lane;
            all_own &= own;
            if !own {
                found = [self.extent(address).unwrap_or(NOWHERE), found[0]];
            }
        }
        Ok((Cells::Each(list, self.local, locals), all_own))
    }

    /// Where one lane's access is.
    pub(super) fn locate(
        &mut self,
        space: Space,
        lane: usize,
        address: u64,
        bytes: u64,
        write: bool,
    ) -> Result<Located, FaultKind> {
        if !address.is_multiple_of(bytes) {
            return Err(FaultKind::Misaligned);
        }
        let inside = |start: u64, length: u64, origin: u64| {
            let offset = address.wrapping_sub(start);
            let fits = length >= bytes && offset <= length - bytes;
            let at = || Located { at: origin + offset, own: true, local: false };
            if fits { Ok(at()) } else { Err(FaultKind::IllegalAddress) }
        };
        let in_local = |origin: u64| {
            let found = inside(origin, self.local.top, 0)?;
            Ok(Located { at: self.local.place(lane, found.at), local: true, ..found })
        };
        match space {
            Space::Shared => inside(0, self.shared.bytes, self.shared.start),
            Space::Local => in_local(0),
            Space::Param if write => Err(FaultKind::ReadOnly),
            Space::Param => inside(0, self.params.bytes, self.params.start),
            Space::Generic if self.memory.store.regions.shared.contains(&address) => {
                inside(self.shared.start, self.shared.bytes, self.shared.start)
            }
            Space::Generic if self.memory.store.regions.local.contains(&address) => {
                in_local(self.origin(Space::Local, lane))
            }
            Space::Generic if self.memory.store.regions.params.contains(&address) => {
                let found = inside(self.params.start, self.params.bytes, self.params.start);
                if write && found.is_ok() { Err(FaultKind::ReadOnly) } else { found }
            }
            Space::Generic | Space::Global | Space::Const | Space::Tex => match self.extent(address) {
                Some(e) if bytes > e.bytes || address - e.start > e.bytes - bytes => {
                    Err(FaultKind::IllegalAddress)
                }
                Some(e) if permits(space, &e, write) => Ok(Located { at: address, own: false, local: false }),
                Some(e) if write && permits(space, &e, false) => Err(FaultKind::ReadOnly),
                _ => Err(FaultKind::IllegalAddress),
            },
            Space::Reg | Space::Sreg => Err(FaultKind::IllegalAddress),
        }
    }

    /// The cell of an access of one element.
    pub(super) fn spot<T: Cell>(&self, Located { at, local, .. }: Located) -> Spot<T> {
        match local && self.local.has_halves::<T>() {
            true => Spot::Halves([at, at + LOCAL_ROW].map(|word| self.memory.checked_place(word))),
            false => Spot::Whole(self.memory.checked_place(at)),
        }
    }

    #[inline(always)]
    fn in_shared(&self, address: u64) -> bool {
        address.wrapping_sub(self.shared.start) < self.shared.bytes
    }

    /// The allocation that contains an address.
    #[inline]
    fn extent(&mut self, address: u64) -> Option<Extent> {
        let frees = self.memory.store.frees.load(Ordering::Acquire);
        if frees != self.frees {
            self.frees = frees;
            self.recent = [NOWHERE; RECENT];
            self.known.clear();
        }
        let holds = |e: &Extent| address.wrapping_sub(e.start) < e.bytes;
        match self.recent.iter().find(|e| holds(e)) {
            Some(found) => Some(*found),
            None => self.extent_slow(address),
        }
    }

    #[cold]
    #[inline(never)]
    fn extent_slow(&mut self, address: u64) -> Option<Extent> {
        let place = self.known.partition_point(|e| e.start <= address);
        let known = place.checked_sub(1).map(|i| self.known[i]).filter(|e| address - e.start < e.bytes);
        let found = match known {
            Some(e) => e,
            None => {
                let e = self.memory.find(address)?;
                if self.known.len() < KNOWN {
                    self.known.insert(place, e);
                }
                e
            }
        };
        self.recent[self.oldest] = found;
        self.oldest = (self.oldest + 1) % RECENT;
        Some(found)
    }
}

/// Whether an instruction of that state space may access that allocation.
fn permits(space: Space, extent: &Extent, write: bool) -> bool {
    if write && !extent.writable {
        return false;
    }
    match (space, extent.class) {
        (Space::Global | Space::Generic, Class::Global | Class::Malloc) => true,
        (Space::Const | Space::Generic, Class::Const) => !write,
        // Images have their own memory, or memory that the host provided.
        (Space::Tex, Class::Texture | Class::Global | Class::Malloc) => true,
        _ => false,
    }
}

#[cold]
pub(super) fn refuse(refusal: Refusal, space: Space, bytes: u64, write: bool) -> Box<Fault> {
    let access = FaultAccess { address: refusal.address, bytes: bytes as u32, space, write };
    Box::new(Fault { kind: refusal.kind, lane: refusal.lane as u8, access: Some(access) })
}

impl Refusal {
    pub(super) fn new(kind: FaultKind, lane: usize, address: u64) -> Self {
        Self { kind, lane, address }
    }
}
