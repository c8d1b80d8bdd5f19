//! A tool's data about each register of each activation of each resident warp.
//!
//! Invariant: when an activation begins, its registers have the tool's initial data, even if an earlier
//! activation had the same number.

use ptx::ir::{Function, Program, Reg, RegClass, RegCounts};
use ptx_exec::watch::{CtaFacts, Site};
use std::sync::Arc;

/// Values of a tool for the registers of one activation, by class.
#[derive(Clone, Debug)]
pub(crate) struct Frame<T> {
    classes: [Vec<T>; 4],
}

impl<T> Default for Frame<T> {
    fn default() -> Self {
        Self { classes: Default::default() }
    }
}

impl<T: Clone> Frame<T> {
    fn new(counts: RegCounts, fresh: &T) -> Self {
        let RegCounts { pred, r16, r32, r64 } = counts;
        Self { classes: [pred, r16, r32, r64].map(|count| vec![fresh.clone(); count as usize]) }
    }

    /// Calls `f` with each register and its value.
    pub(crate) fn for_each(&mut self, mut f: impl FnMut(Reg, &mut T)) {
        let classes = [RegClass::Pred, RegClass::R16, RegClass::R32, RegClass::R64];
        for class in classes {
            for (index, value) in self.classes[class as usize].iter_mut().enumerate() {
                f(Reg { class, index: index as u32 }, value);
            }
        }
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
pub(crate) struct Frames<T> {
    fresh: T,
    warps: Vec<Vec<Option<Frame<T>>>>,
    /// Changes the fresh registers of a function to what they begin with.
    begin: fn(&Function, &mut Frame<T>),
    /// By function of this program, registers of a new activation.
    program: Option<Arc<Program>>,
    templates: Vec<Option<Frame<T>>>,
}

impl<T> std::fmt::Debug for Frames<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames").field("warps", &self.warps.len()).finish_non_exhaustive()
    }
}

impl<T: Clone> Frames<T> {
    /// Registers begin with that value.
    pub(crate) fn new(fresh: T) -> Self {
        Self::beginning(fresh, |_, _| {})
    }

    /// The same, changed by a function.
    pub(crate) fn beginning(fresh: T, begin: fn(&Function, &mut Frame<T>)) -> Self {
        Self { fresh, warps: Vec::new(), begin, program: None, templates: Vec::new() }
    }

    /// Registers of a new activation of a function.
    fn template(&mut self, program: &Arc<Program>, function: u32) -> Frame<T> {
        let Some(text) = program.functions.get(function as usize) else {
            return Frame::new(RegCounts::default(), &self.fresh);
        };
        if self.program.as_ref().is_none_or(|known| !Arc::ptr_eq(known, program)) {
            self.program = Some(Arc::clone(program));
            self.templates = vec![None; program.functions.len()];
        }
        let Self { fresh, begin, templates, .. } = self;
        let template = templates[function as usize].get_or_insert_with(|| {
            let mut frame = Frame::new(text.regs, fresh);
            begin(text, &mut frame);
            frame
        });
        template.clone()
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
        let (slot, act) = (site.warp.slot as usize, act as usize);
        let there = self.warps.get(slot).and_then(|acts| acts.get(act)).is_some_and(Option::is_some);
        let made = if there { None } else { Some(self.template(&site.launch.program, function)) };
        if !there {
            let _room = self.slot(site, act as u32);
        }
        self.warps[slot][act].get_or_insert_with(|| made.unwrap_or_default())
    }

    /// Registers of the activation that the site's lanes are in.
    pub(crate) fn at(&mut self, site: &Site) -> &mut Frame<T> {
        self.of(site, site.act, site.place.function)
    }
}
