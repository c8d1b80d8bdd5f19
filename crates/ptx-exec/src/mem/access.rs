//! Loads, stores and atomic operations of a warp.
//!
//! Lanes act in ascending order: if several store to one address, the value of the highest lane remains.
//! Orderings become fences of the host around relaxed accesses, at least as strong as requested. Atomic
//! operations on memory that a CTA owns (shared, local) are plain loads and stores, because all warps of a
//! CTA run on one thread.
//!
//! Invariant: every method checks all lanes of its mask before it accesses memory for any of them.

use super::admit::{Asked, all};
use super::view::{Refusal, refuse};
use super::{Addresses, Cell, Class, View, announce};
use crate::lanes::{LANES, Lane, LaneMask, lanes_of};
use crate::trap::{Fault, FaultKind};
use crate::watch::AccessKind;
use ptx::isa::{Sem, Space};
use std::sync::atomic::{Ordering, fence};

/// The longest string that the machine reads, in bytes: formats of `vprintf`, messages of `__assertfail`.
const STRING_LIMIT: u64 = 1 << 20;

pub(super) fn before(sem: Sem) {
    match sem {
        Sem::Weak | Sem::Volatile | Sem::Relaxed | Sem::Acquire => {}
        Sem::Release | Sem::AcqRel => fence(Ordering::Release),
        Sem::Sc => fence(Ordering::SeqCst),
    }
}

pub(super) fn after(sem: Sem) {
    match sem {
        Sem::Weak | Sem::Volatile | Sem::Relaxed | Sem::Release => {}
        Sem::Acquire | Sem::AcqRel => fence(Ordering::Acquire),
        Sem::Sc => fence(Ordering::SeqCst),
    }
}

impl View {
    /// `ld`: one value for each lane of `mask`; other lanes of `out` do not change.
    ///
    /// # Errors
    /// The fault of the lowest faulting lane: out of bounds or misaligned.
    #[inline]
    pub fn load<'a, T: Cell>(
        &mut self,
        space: Space,
        addrs: impl Into<Addresses<'a>>,
        mask: LaneMask,
        sem: Sem,
        out: &mut Lane<T>,
    ) -> Result<(), Box<Fault>> {
        self.load_vector(space, addrs, mask, sem, [out])
    }

    /// `ld.vN`: N values for each lane; the address must be a multiple of their total size.
    ///
    /// # Errors
    /// As [`View::load`].
    #[inline]
    pub fn load_vector<'a, T: Cell, const N: usize>(
        &mut self,
        space: Space,
        addrs: impl Into<Addresses<'a>>,
        mask: LaneMask,
        sem: Sem,
        mut out: [&mut Lane<T>; N],
    ) -> Result<(), Box<Fault>> {
        let addrs = addrs.into();
        let mask = self.admit_load(mask, (space, addrs, sem), out.each_mut().map(|out| &mut **out));
        if mask == 0 {
            return Ok(());
        }
        let target = self.resolve(space, addrs, mask, N as u64 * T::BYTES, false)?;
        for (k, out) in out.into_iter().enumerate() {
            let element = k as u64 * T::BYTES;
            if let Some(place) = target.same::<T>(element) {
                out.blend(mask, &Lane::splat(place.load()));
            } else if N == 1
                && let Some(word) = target.words()
            {
                let per = 8 / T::BYTES as usize;
                for at in 0..LANES / per {
                    let bits = u64::from_le(word(at).load());
                    for k in 0..per {
                        out.0[at * per + k] = T::narrow(bits >> ((8 * T::BYTES as usize * k) % 64));
                    }
                }
            } else {
                target.each(element, |lane, place| out.0[lane] = place.load());
            }
        }
        self.note(sem != Sem::Weak, false);
        after(sem);
        Ok(())
    }

    /// `ld` of the same address in all lanes of `mask` (in `.local`, the same offset in each lane's memory).
    ///
    /// # Errors
    /// As [`View::load`].
    #[inline]
    pub fn load_at<T: Cell>(
        &mut self,
        space: Space,
        address: u64,
        mask: LaneMask,
        sem: Sem,
        out: &mut Lane<T>,
    ) -> Result<(), Box<Fault>> {
        self.load(space, Addresses::Same(address), mask, sem, out)
    }

    /// `st`: one value for each lane of `mask`.
    ///
    /// # Errors
    /// As [`View::load`]; also for read-only memory.
    #[inline]
    pub fn store<'a, T: Cell>(
        &mut self,
        space: Space,
        addrs: impl Into<Addresses<'a>>,
        mask: LaneMask,
        sem: Sem,
        values: &Lane<T>,
    ) -> Result<(), Box<Fault>> {
        self.store_vector(space, addrs, mask, sem, [values])
    }

    /// `st.vN`: N values for each lane; the address must be a multiple of their total size.
    ///
    /// # Errors
    /// As [`View::store`].
    #[inline]
    pub fn store_vector<'a, T: Cell, const N: usize>(
        &mut self,
        space: Space,
        addrs: impl Into<Addresses<'a>>,
        mask: LaneMask,
        sem: Sem,
        values: [&Lane<T>; N],
    ) -> Result<(), Box<Fault>> {
        let addrs = addrs.into();
        let kind = AccessKind::Store;
        let mask = self.admit(mask, || Asked {
            kind,
            space,
            addrs,
            sem,
            element: T::BYTES,
            elements: N,
            chosen: all(N),
        });
        if mask == 0 {
            return Ok(());
        }
        let target = self.resolve(space, addrs, mask, N as u64 * T::BYTES, true)?;
        if sem != Sem::Weak && !target.own {
            announce();
        }
        before(sem);
        for (k, values) in values.into_iter().enumerate() {
            let element = k as u64 * T::BYTES;
            if N == 1
                && let Some(word) = target.words()
            {
                let per = 8 / T::BYTES as usize;
                for at in 0..LANES / per {
                    let all = (0..per).fold(0, |bits, k| {
                        bits | values.0[at * per + k].widen() << ((8 * T::BYTES as usize * k) % 64)
                    });
                    word(at).store(u64::to_le(all));
                }
            } else {
                target.each(element, |lane, place| place.store(values.0[lane]));
            }
        }
        if sem == Sem::Sc {
            fence(Ordering::SeqCst);
        }
        let private = target.private;
        self.note(false, !private);
        Ok(())
    }

    /// `st` to the same address in all lanes of `mask` (in `.local`, the same offset in each lane's memory).
    ///
    /// # Errors
    /// As [`View::store`].
    #[inline]
    pub fn store_at<T: Cell>(
        &mut self,
        space: Space,
        address: u64,
        mask: LaneMask,
        sem: Sem,
        values: &Lane<T>,
    ) -> Result<(), Box<Fault>> {
        self.store(space, Addresses::Same(address), mask, sem, values)
    }

    /// `atom`, `red`: one lane after another replaces the value of its cell by `f(lane, old)`, atomically.
    /// `None` leaves the cell unchanged (a failed `cas`). `f` may be called more than once for a lane.
    /// Returns the old values.
    ///
    /// # Errors
    /// As [`View::store`].
    #[inline]
    pub fn atomic<'a, T: Cell>(
        &mut self,
        space: Space,
        addrs: impl Into<Addresses<'a>>,
        mask: LaneMask,
        sem: Sem,
        f: impl Fn(usize, T) -> Option<T>,
    ) -> Result<Lane<T>, Box<Fault>> {
        let mut out = Lane::splat(T::default());
        let addrs = addrs.into();
        let (kind, element) = (AccessKind::Atomic, T::BYTES);
        let mask =
            self.admit(mask, || Asked { kind, space, addrs, sem, element, elements: 1, chosen: all(1) });
        if mask == 0 {
            return Ok(out);
        }
        let target = self.resolve(space, addrs, mask, T::BYTES, true)?;
        let mut changed = false;
        if !target.own {
            announce();
        }
        before(sem);
        if target.own {
            target.each(0, |lane, place| {
                let old = place.load();
                out.0[lane] = old;
                if let Some(new) = f(lane, old) {
                    place.store(new);
                    changed |= new != old;
                }
            });
        } else if let Some(place) = target.same::<T>(0) {
            // All lanes have the same address: the operations of the warp, in lane order, become one update.
            let (first, _) = place.update(|first| {
                let all = lanes_of(mask).fold((first, false), |(value, wrote), lane| match f(lane, value) {
                    Some(new) => (new, true),
                    None => (value, wrote),
                });
                all.1.then_some(all.0)
            });
            lanes_of(mask).fold(first, |value, lane| {
                out.0[lane] = value;
                let new = f(lane, value).unwrap_or(value);
                changed |= new != value;
                new
            });
        } else {
            target.each(0, |lane, place| {
                let (old, new) = place.update(|old| f(lane, old));
                out.0[lane] = old;
                changed |= new.is_some_and(|new| new != old);
            });
        }
        after(sem);
        let private = target.private;
        self.note(!private, changed && !private);
        Ok(out)
    }

    /// `fence`, `membar`: orders the accesses of this warp before and after it, at least as strongly as
    /// requested.
    pub fn fence(&mut self, sem: Sem) {
        match sem {
            Sem::Sc => fence(Ordering::SeqCst),
            Sem::Weak | Sem::Volatile | Sem::Relaxed | Sem::Acquire | Sem::Release | Sem::AcqRel => {
                fence(Ordering::AcqRel);
            }
        }
    }

    /// Reads bytes as one lane.
    ///
    /// # Errors
    /// As [`View::load`].
    pub fn read_bytes(
        &mut self,
        space: Space,
        lane: usize,
        address: u64,
        bytes: u64,
    ) -> Result<Vec<u8>, Box<Fault>> {
        (0..bytes).map(|i| self.read_byte(space, lane, address.wrapping_add(i))).collect()
    }

    /// Reads bytes up to a zero, as one lane.
    ///
    /// # Errors
    /// As [`View::load`]; also if there is no zero within a megabyte.
    pub fn read_c_string(&mut self, space: Space, lane: usize, address: u64) -> Result<Vec<u8>, Box<Fault>> {
        let mut text = Vec::new();
        for i in 0..STRING_LIMIT {
            match self.read_byte(space, lane, address.wrapping_add(i))? {
                0 => return Ok(text),
                byte => text.push(byte),
            }
        }
        Err(Fault::new(FaultKind::Unsupported("a string of more than a megabyte".to_owned()), lane))
    }

    /// Reads one value as one lane.
    ///
    /// # Errors
    /// As [`View::load`].
    #[inline]
    pub fn load_one<T: Cell>(&mut self, space: Space, lane: usize, address: u64) -> Result<T, Box<Fault>> {
        if self.admit_one::<T>(AccessKind::Load, space, lane, address) == 0 {
            return Ok(T::default());
        }
        match self.locate(space, lane, address, T::BYTES, false) {
            Ok(located) => Ok(self.spot::<T>(located).load()),
            Err(kind) => Err(refuse(Refusal::new(kind, lane, address), space, T::BYTES, false)),
        }
    }

    /// Writes one value as one lane.
    ///
    /// # Errors
    /// As [`View::store`].
    #[inline]
    pub fn store_one<T: Cell>(
        &mut self,
        space: Space,
        lane: usize,
        address: u64,
        value: T,
    ) -> Result<(), Box<Fault>> {
        if self.admit_one::<T>(AccessKind::Store, space, lane, address) == 0 {
            return Ok(());
        }
        match self.locate(space, lane, address, T::BYTES, true) {
            Ok(located) => self.spot(located).store(value),
            Err(kind) => return Err(refuse(Refusal::new(kind, lane, address), space, T::BYTES, true)),
        }
        self.note(false, true);
        Ok(())
    }

    #[inline(always)]
    fn admit_one<T: Cell>(&mut self, kind: AccessKind, space: Space, lane: usize, address: u64) -> LaneMask {
        let (addrs, sem, element) = (Addresses::Same(address), Sem::Weak, T::BYTES);
        self.admit(1 << lane, || Asked { kind, space, addrs, sem, element, elements: 1, chosen: all(1) })
    }

    fn read_byte(&mut self, space: Space, lane: usize, address: u64) -> Result<u8, Box<Fault>> {
        let mut out = Lane::splat(0);
        self.load_at::<u8>(space, address, 1 << lane, Sem::Weak, &mut out)?;
        Ok(out.0[lane])
    }

    /// Copies bytes from a state space to each lane's own local memory, for arguments and results of calls.
    pub(crate) fn copy_to_local(
        &mut self,
        mask: LaneMask,
        (space, from): (Space, u64),
        to: u64,
        bytes: u64,
    ) -> Result<(), Box<Fault>> {
        let wide = if (from | to).is_multiple_of(8) { bytes / 8 * 8 } else { 0 };
        for at in (0..wide).step_by(8) {
            let mut value = Lane::<u64>::splat(0);
            self.load_at(space, from + at, mask, Sem::Weak, &mut value)?;
            self.store_at(Space::Local, to + at, mask, Sem::Weak, &value)?;
        }
        for at in wide..bytes {
            let mut value = Lane::<u8>::splat(0);
            self.load_at(space, from + at, mask, Sem::Weak, &mut value)?;
            self.store_at(Space::Local, to + at, mask, Sem::Weak, &value)?;
        }
        Ok(())
    }

    /// `malloc` of one lane; 0 if there is no memory.
    pub fn malloc(&mut self, bytes: u64) -> u64 {
        self.note(false, true);
        self.memory().alloc(Class::Malloc, bytes, 16, "memory from the kernel's `malloc`").unwrap_or(0)
    }

    /// `free` of one lane; a null pointer is allowed.
    ///
    /// # Errors
    /// A fault if the address is not that of a live `malloc` allocation.
    pub fn free(&mut self, lane: usize, address: u64) -> Result<(), Box<Fault>> {
        self.note(false, true);
        let freed = address == 0 || self.memory().free_if(address, |class| class == Class::Malloc).is_ok();
        let refusal = Refusal::new(FaultKind::IllegalAddress, lane, address);
        if freed { Ok(()) } else { Err(refuse(refusal, Space::Generic, 0, true)) }
    }
}
