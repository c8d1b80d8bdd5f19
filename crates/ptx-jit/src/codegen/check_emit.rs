//! Code of a bounds check: the comparison of an access's addresses with the cached bounds of its site.
//!
//! Invariant: the comparison holds only if every byte of every running lane is in bounds. It is one of
//! unsigned 64-bit numbers, so an address cannot wrap around into an allocation. It does not decide which
//! checks are made (`check_coalesce`, `check_elim`).

use super::Codegen;
use super::check_coalesce::Misaligned;
use super::load_store::Addresses;
use super::mask::Mask;
use crate::llvm::{IntPred, Likely, Value};
use crate::wir::Affine;
use crate::wir::checks::Reach;
use ptx::isa::Space;

impl Codegen<'_> {
    /// The number of the cached bounds of a site, for accesses that span so many bytes.
    pub(super) fn window(&mut self, reach: Reach, span: u32) -> u32 {
        let count = self.job.windows + self.passes.cached_bounds.len() as u32;
        let number = *self
            .passes
            .cached_bounds
            .entry((reach.site, span, reach.write, reach.postponed))
            .or_insert(count);
        self.out.windows = self.job.windows + self.passes.cached_bounds.len() as u32;
        number
    }

    /// The number of bytes from the first address that the cached bounds are adjusted for: the whole span if
    /// one comparison checks it; one byte if the two ends are compared separately.
    pub(super) fn window_span(&self, reach: Reach, addresses: &Addresses, whole: bool) -> u32 {
        let own = (reach.hi - reach.lo) as u32;
        match addresses {
            Addresses::Affine(_, pattern)
                if self.vectors().is_regular(reach.space, reach.align, pattern, whole) =>
            {
                if !whole {
                    return 1;
                }
                let lanes = &pattern.lanes;
                let (low, high) =
                    (lanes.iter().min().copied().unwrap_or(0), lanes.iter().max().copied().unwrap_or(0));
                (high - low) as u32 + own
            }
            Addresses::Rows(_, pattern)
                if self.vectors().is_regular(reach.space, reach.align, pattern, whole) =>
            {
                let lanes = &pattern.lanes;
                let (low, high) =
                    (lanes.iter().min().copied().unwrap_or(0), lanes.iter().max().copied().unwrap_or(0));
                (high - low) as u32 + own
            }
            Addresses::Rows(..)
            | Addresses::Same(_)
            | Addresses::Affine(..)
            | Addresses::ScaledIndex(_)
            | Addresses::Each(_) => own,
        }
    }

    /// The condition that all bytes accessed by the lanes of the mask are in bounds and aligned.
    pub(super) fn fits(
        &mut self,
        reach: Reach,
        addresses: &Addresses,
        mask: Mask,
        whole: bool,
    ) -> Option<Value> {
        let (inside, odd) = self.is_inside_and_odd(reach, addresses, mask, whole)?;
        Some(self.both(Some(inside), self.is_even(odd)))
    }

    /// As [`Codegen::fits`], without the alignment: that is a separate number, zero if all addresses are
    /// aligned; `None` if alignment is known or part of the first result.
    pub(super) fn is_inside_and_odd(
        &mut self,
        reach: Reach,
        addresses: &Addresses,
        mask: Mask,
        whole: bool,
    ) -> Option<(Value, Option<Misaligned>)> {
        if let Some(fits) = self.first_fit(reach, addresses) {
            return Some((fits, None));
        }
        let regular =
            |pattern: &Affine| whole && self.vectors().is_together(reach.space, reach.align, pattern);
        if let Addresses::Rows(rows, pattern) = addresses
            && !regular(pattern)
        {
            let unrolled = self.unrolled(rows.scalars, pattern);
            return self.is_inside_and_odd(reach, &unrolled, mask, whole);
        }
        // The unmasked version uses the cached bounds of the masked version, which renews them.
        let apart = whole && self.is_unmasked();
        let span = self.window_span(reach, addresses, whole && !apart);
        let (bias, limit) = self.bounds(reach, span)?;
        let align = u64::from(reach.align);
        let odd = |emit: &Self, address: Value| emit.misaligned(address, align);
        let inside = |emit: &Self, address: Value, more: i64| {
            let first = emit.b.add(address, emit.c64(more as u64));
            let from = emit.b.add(first, bias);
            emit.b.icmp(IntPred::Ult, from, limit)
        };
        match addresses {
            Addresses::Same(address) => {
                let mut fits = inside(self, *address, reach.lo);
                let may_be_local = reach.space == Space::Generic && self.is_one_word(reach.align);
                if let Some(thread) = self.entry.thread.filter(|_| may_be_local) {
                    let first = self.b.add(*address, self.c64(reach.lo as u64));
                    fits = self.b.or(fits, thread.has_local(self, first, span));
                }
                Some((fits, odd(self, *address)))
            }
            Addresses::Rows(rows, pattern) => {
                let near = self.is_near(*rows);
                let (low, high) = self.row_ends(rows.scalars, pattern);
                let (low, high) = (inside(self, low, reach.lo), inside(self, high, reach.lo));
                let fits = self.both(Some(self.b.and(low, high)), near);
                Some((fits, odd(self, self.b.or(rows.scalars[0], rows.scalars[1]))))
            }
            Addresses::Affine(bases, pattern)
                if self.vectors().is_regular(reach.space, reach.align, pattern, whole) =>
            {
                let (mut all, mut any) = (None, None);
                for (c, base) in bases.iter().enumerate() {
                    let fits = if apart {
                        let (low, high) = (pattern.lanes.iter().min()?, pattern.lanes.iter().max()?);
                        let low = inside(self, *base, i64::from(*low) + reach.lo);
                        let high = inside(self, *base, i64::from(*high) + reach.hi - 1);
                        self.b.and(low, high)
                    } else if whole {
                        let low = pattern.lanes.iter().min().copied().unwrap_or(0);
                        inside(self, *base, i64::from(low) + reach.lo)
                    } else {
                        let step = self.vectors().step_of(pattern)?;
                        let (lanes, low, high) =
                            self.running(self.word(mask), pattern.by_chunk.then_some(c as u32));
                        let (low, high) = if step < 0 { (high, low) } else { (low, high) };
                        let at = |emit: &Self, lane: Value| {
                            let lane = emit.b.zext(lane, emit.int(64));
                            let more = emit.b.mul(lane, emit.c64(step as u64));
                            emit.b.add(*base, more)
                        };
                        let (low, high) = (at(self, low), at(self, high));
                        let (low, high) = (inside(self, low, reach.lo), inside(self, high, reach.hi - 1));
                        let fits = self.b.and(low, high);
                        let none = self.b.icmp(IntPred::Eq, lanes, self.b.zero(lanes.ty()));
                        self.b.or(fits, none)
                    };
                    all = Some(self.both(all, Some(fits)));
                    any = self.either(any, odd(self, *base));
                }
                Some((all?, any))
            }
            Addresses::ScaledIndex(spread) if spread.scale.is_multiple_of(align) => {
                Some((self.scaled_index_fits(reach, spread, (bias, limit), (!whole).then_some(mask)), None))
            }
            // Usually the addresses of all lanes are in bounds, active or not.
            Addresses::Affine(bases, pattern)
                if self.vectors().is_together(reach.space, reach.align, pattern) =>
            {
                let (low, high) = (pattern.lanes.iter().min()?, pattern.lanes.iter().max()?);
                let mut all = None;
                for base in bases {
                    let low = inside(self, *base, i64::from(*low) + reach.lo);
                    let high = inside(self, *base, i64::from(*high) + reach.lo);
                    let fits = self.both(Some(self.b.and(low, high)), self.is_even(odd(self, *base)));
                    all = Some(self.both(all, Some(fits)));
                }
                let here = self.b.current_block();
                let each = self.b.append_block(self.function, "each");
                let known = self.b.append_block(self.function, "known");
                self.b.cond_br(all?, known, each, Likely::Yes);
                self.b.position_at_end(each);
                let chunks = self.each(addresses);
                let fits = self.each_fits(reach, &chunks, (bias, limit), Some(mask))?;
                let there = self.b.current_block();
                self.b.br(known);
                self.b.position_at_end(known);
                let phi = self.b.phi(self.int(1));
                self.b.add_incoming(phi, self.b.const_int(self.int(1), 1), here);
                self.b.add_incoming(phi, fits, there);
                Some((phi, None))
            }
            Addresses::Affine(..) | Addresses::ScaledIndex(_) | Addresses::Each(_) => {
                let chunks = self.each(addresses);
                let fits = self.each_fits(reach, &chunks, (bias, limit), (!whole).then_some(mask))?;
                Some((fits, None))
            }
        }
    }

    /// The condition that the access of each lane of the mask begins at one of `limit` addresses, of which
    /// `bias` maps the first to zero.
    fn each_fits(
        &self,
        reach: Reach,
        addresses: &[Value],
        (bias, limit): (Value, Value),
        mask: Option<Mask>,
    ) -> Option<Value> {
        let align = u64::from(reach.align);
        let splat = |value| self.b.splat(value, self.width);
        let mut bad = None;
        for (c, chunk) in addresses.iter().copied().enumerate() {
            let first =
                if reach.lo == 0 { chunk } else { self.b.add(chunk, splat(self.c64(reach.lo as u64))) };
            let whole_window = matches!(reach.space, Space::Shared | Space::Local | Space::Param)
                && self.planner().object(reach.site, reach.space).is_none();
            let from = if whole_window { first } else { self.b.add(first, splat(bias)) };
            let mut wrong = self.b.icmp(IntPred::Uge, from, splat(limit));
            if align > 1 {
                let odd = self.b.and(chunk, splat(self.c64(align - 1)));
                let odd = self.b.icmp(IntPred::Ne, odd, splat(self.c64(0)));
                wrong = self.b.or(wrong, odd);
            }
            if let Some(mask) = mask {
                let lanes = self.mask_chunk(mask, c as u32);
                wrong = self.b.and(wrong, lanes);
            }
            bad = Some(match bad {
                None => wrong,
                Some(others) => self.b.or(others, wrong),
            });
        }
        let bad = self.any(bad?);
        Some(self.b.not(bad))
    }
}
