//! Accesses of 128 bits that are not torn, and vector stores that omit elements.
//!
//! Invariant: accesses of 128 bits that are not weak, and atomic operations of 128 bits, exclude each other
//! at one address: they hold a lock of the memory, chosen by the address. Accesses of other sizes do not take
//! the lock, because strong operations of different sizes are not morally strong (PTX ISA 8.6). Memory that a
//! CTA owns needs no lock, because its warps run on one thread.

use super::access::{after, before};
use super::admit::{Asked, all};
use super::local::Spot;
use super::{Addresses, Cell, Place, View, announce};
use crate::lanes::{Lane, LaneMask};
use crate::trap::Fault;
use crate::watch::AccessKind;
use ptx::isa::{Sem, Space};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, PoisonError};

/// Bytes of an access.
const BYTES: u64 = 16;

/// The locks of a memory. Their number is arbitrary.
#[derive(Default)]
pub(super) struct Locks([Mutex<()>; 32]);

impl Locks {
    /// Runs `f` with the lock of this place held.
    fn with<R>(&self, place: Place<u64>, f: impl FnOnce() -> R) -> R {
        let lock = &self.0[(place.number() / BYTES) as usize % self.0.len()];
        let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
        f()
    }
}

/// The result of an access.
struct Done {
    old: [Lane<u64>; 2],
    changed: bool,
    private: bool,
}

impl View {
    /// `ld.b128` that is not weak: the two halves of each lane's value.
    ///
    /// # Errors
    /// As [`View::load`].
    pub fn load_b128<'a>(
        &mut self,
        space: Space,
        addrs: impl Into<Addresses<'a>>,
        mask: LaneMask,
        sem: Sem,
    ) -> Result<[Lane<u64>; 2], Box<Fault>> {
        let done = self.whole(space, addrs.into(), mask, (sem, AccessKind::Load), |_, _| None)?;
        self.note(true, false);
        Ok(done.old)
    }

    /// `st.b128` that is not weak.
    ///
    /// # Errors
    /// As [`View::store`].
    pub fn store_b128<'a>(
        &mut self,
        space: Space,
        addrs: impl Into<Addresses<'a>>,
        mask: LaneMask,
        sem: Sem,
        values: [&Lane<u64>; 2],
    ) -> Result<(), Box<Fault>> {
        let new = |lane: usize, _| Some([values[0].0[lane], values[1].0[lane]]);
        let done = self.whole(space, addrs.into(), mask, (sem, AccessKind::Store), new)?;
        self.note(false, !done.private);
        Ok(())
    }

    /// `atom.b128`: as [`View::atomic`], for two words.
    ///
    /// # Errors
    /// As [`View::store`].
    pub fn atomic_b128<'a>(
        &mut self,
        space: Space,
        addrs: impl Into<Addresses<'a>>,
        mask: LaneMask,
        sem: Sem,
        f: impl Fn(usize, [u64; 2]) -> Option<[u64; 2]>,
    ) -> Result<[Lane<u64>; 2], Box<Fault>> {
        let done = self.whole(space, addrs.into(), mask, (sem, AccessKind::Atomic), f)?;
        self.note(!done.private, done.changed && !done.private);
        Ok(done.old)
    }

    fn whole(
        &mut self,
        space: Space,
        addrs: Addresses<'_>,
        mask: LaneMask,
        (sem, kind): (Sem, AccessKind),
        f: impl Fn(usize, [u64; 2]) -> Option<[u64; 2]>,
    ) -> Result<Done, Box<Fault>> {
        let mut done = Done { old: [Lane::splat(0), Lane::splat(0)], changed: false, private: true };
        let mask = self.admit(mask, || Asked {
            kind,
            space,
            addrs,
            sem,
            element: BYTES,
            elements: 1,
            chosen: all(1),
        });
        if mask == 0 {
            return Ok(done);
        }
        let write = kind != AccessKind::Load;
        let memory = std::sync::Arc::clone(self.memory());
        let target = self.resolve(space, addrs, mask, BYTES, write)?;
        done.private = target.private;
        if write {
            if sem != Sem::Weak && !target.own {
                announce();
            }
            before(sem);
        }
        target.pairs(|lane, [low, high]| {
            let mut act = || {
                let old = [low.load(), high.load()];
                done.old[0].0[lane] = old[0];
                done.old[1].0[lane] = old[1];
                if let Some(new) = f(lane, old) {
                    low.store(new[0]);
                    high.store(new[1]);
                    done.changed |= new != old;
                }
            };
            match low {
                Spot::Whole(low) if !target.own => memory.store.locks.with(low, act),
                Spot::Whole(_) | Spot::Halves(_) => act(),
            }
        });
        after(sem);
        if write && sem == Sem::Sc {
            fence(Ordering::SeqCst);
        }
        Ok(done)
    }

    /// `st.vN` of the given elements; the address must be a multiple of the size of the whole vector.
    ///
    /// # Errors
    /// As [`View::store`].
    pub fn store_chosen<'a, T: Cell, const N: usize>(
        &mut self,
        space: Space,
        addrs: impl Into<Addresses<'a>>,
        mask: LaneMask,
        sem: Sem,
        values: [Option<&Lane<T>>; N],
    ) -> Result<(), Box<Fault>> {
        let addrs = addrs.into();
        let chosen = (0..N.min(8)).filter(|k| values[*k].is_some()).fold(0, |chosen, k| chosen | 1 << k);
        let kind = AccessKind::Store;
        let mask =
            self.admit(mask, || Asked { kind, space, addrs, sem, element: T::BYTES, elements: N, chosen });
        if mask == 0 {
            return Ok(());
        }
        let target = self.resolve(space, addrs, mask, N as u64 * T::BYTES, true)?;
        if sem != Sem::Weak && !target.own {
            announce();
        }
        before(sem);
        for (k, values) in values.into_iter().enumerate() {
            if let Some(values) = values {
                target.each(k as u64 * T::BYTES, |lane, place| place.store(values.0[lane]));
            }
        }
        if sem == Sem::Sc {
            fence(Ordering::SeqCst);
        }
        let private = target.private;
        self.note(false, !private);
        Ok(())
    }
}
