//! A tool's data about each register of each activation of each resident warp.
//!
//! Invariant: when an activation begins, its registers have the tool's initial data, even if an earlier
//! activation had the same number.

use ptx::ir::{Reg, RegCounts};
use ptx_exec::watch::{CtaFacts, Site};

/// Values of a tool for the registers of one activation, by class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame<T> {
    classes: [Vec<T>; 4],
}

impl<T: Clone> Frame<T> {
    fn new(counts: RegCounts, fresh: &T) -> Self {
        let RegCounts { pred, r16, r32, r64 } = counts;
        Self { classes: [pred, r16, r32, r64].map(|count| vec![fresh.clone(); count as usize]) }
    }

    /// The value of a register.
    pub(crate) fn get(&self, reg: Reg) -> Option<&T> {
        self.classes[reg.class as usize].get(reg.index as usize)
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, reg: Reg) -> Option<&mut T> {
        self.classes[reg.class as usize].get_mut(reg.index as usize)
    }
}

/// Those of all activations.
#[derive(Debug)]
pub(crate) struct Frames<T> {
    fresh: T,
    warps: Vec<Vec<Option<Frame<T>>>>,
}

impl<T: Clone> Frames<T> {
    /// Registers begin with that value.
    pub(crate) fn new(fresh: T) -> Self {
        Self { fresh, warps: Vec::new() }
    }

    /// A CTA begins: its warps have no activations yet.
    pub(crate) fn begin(&mut self, cta: &CtaFacts) {
        for slot in &cta.warps {
            let slot = *slot as usize;
            if self.warps.len() <= slot {
                self.warps.resize_with(slot + 1, Vec::new);
            }
            self.warps[slot].clear();
        }
    }

    /// Registers of an activation are new; it runs that function.
    pub(crate) fn renew(&mut self, site: &Site, act: u32, function: u32) {
        if let Some(frame) = self.slot(site, act) {
            *frame = None;
        }
        let _made = self.of(site, act, function);
    }

    fn slot(&mut self, site: &Site, act: u32) -> Option<&mut Option<Frame<T>>> {
        let (slot, act) = (site.warp.slot as usize, act as usize);
        if self.warps.len() <= slot {
            self.warps.resize_with(slot + 1, Vec::new);
        }
        let acts = &mut self.warps[slot];
        if acts.len() <= act {
            acts.resize_with(act + 1, || None);
        }
        acts.get_mut(act)
    }

    /// Registers of an activation of the site's warp, which runs that function.
    pub(crate) fn of(&mut self, site: &Site, act: u32, function: u32) -> &mut Frame<T> {
        let fresh = self.fresh.clone();
        let counts =
            site.launch.program.functions.get(function as usize).map_or_else(Default::default, |f| f.regs);
        let (slot, act) = (site.warp.slot as usize, act as usize);
        let _there = self.slot(site, act as u32);
        self.warps[slot][act].get_or_insert_with(|| Frame::new(counts, &fresh))
    }

    /// Registers of the activation that the site's lanes are in.
    pub(crate) fn at(&mut self, site: &Site) -> &mut Frame<T> {
        self.of(site, site.act, site.place.function)
    }
}
