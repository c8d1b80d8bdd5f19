//! memcheck: accesses out of bounds, invalid frees, and leaks.
//!
//! **Bounds.** The machine itself checks every access against the exact bounds of allocations (buffers,
//! `.global` and `.const` variables, blocks of the device heap) and of windows (a CTA's shared memory, a
//! thread's local memory, a kernel's parameters). An access out of bounds is reported, the lane is skipped,
//! and the launch continues. Within a window, **provenance** (`provenance.rs`) distinguishes the variables:
//! if the address of a lane was computed from the address of one variable, the accessed bytes must lie in
//! that variable.
//!
//! **Why no false alarms.** Only operations that compute an address from one address and a value that is not
//! an address keep its provenance. All other results of computations with addresses (differences, products),
//! and addresses that are computed from them, have none. An access without provenance is reported only if it
//! touches bytes that belong to no variable.
//!
//! **What can be missed.** A wrong address inside the variable that it was derived from; an access to a
//! neighbouring variable through an address of unknown provenance (loaded from memory that was not stored as
//! a whole register, exchanged between lanes, selected among several variables per lane); memory that was
//! freed so long ago that it has left the quarantine and was allocated again.
//!
//! Invariant: a lane whose access is reported does not execute it.

use crate::provenance::{Object, Provenance, Where};
use crate::{Described, Finding, Kind, Recorder};
use ptx::ir::{Function, Inst};
use ptx::isa::Space;
use ptx_exec::lanes::{LaneMask, Registers};
use ptx_exec::mem::{Class, Reach};
use ptx_exec::trap::FaultKind;
use ptx_exec::watch::{
    Access, AccessChecks, AccessKind, Allocated, ArgumentMove, CtaFacts, HostMistake, Interest, KernelFacts,
    LaunchFacts, NativeChecks, Observer, Refused, Site,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tool.
pub(crate) struct Memcheck {
    recorder: Recorder,
    provenance: Provenance,
    /// By first address.
    live: BTreeMap<u64, Block>,
    freed: BTreeMap<u64, Block>,
}

/// Memory that is or was allocated.
#[derive(Clone, Debug)]
struct Block {
    bytes: u64,
    class: Class,
    name: String,
    /// Where a kernel allocated it: a finding that says so.
    made: Option<Finding>,
    /// Where it was freed.
    gone: Option<String>,
}

impl Memcheck {
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self { recorder, provenance: Provenance::default(), live: BTreeMap::new(), freed: BTreeMap::new() }
    }

    /// The freed block that an address lies in.
    fn freed_at(&self, address: u64) -> Option<(u64, &Block)> {
        let (start, block) = self.freed.range(..=address).next_back()?;
        (address - start < block.bytes).then_some((*start, block))
    }

    /// Reports lanes whose access the machine refuses.
    fn refused(&self, site: &Site, access: &Access<'_>) -> LaneMask {
        let mut lanes = 0;
        let mut groups: Vec<(Kind, String, Finding)> = Vec::new();
        for Refused { lane, kind } in access.refused {
            lanes |= 1 << lane;
            let (kind, message, note) = self.explain(site, access, *lane, kind);
            match groups.iter_mut().find(|(same, said, _)| (*same, said) == (kind, &message)) {
                Some((_, _, finding)) => finding.count += 1,
                None => {
                    let address = access.addresses.0[*lane];
                    let bytes = u64::from(access.bytes);
                    let finding = Finding::at(kind, site, *lane, message.clone())
                        .access(access.space, address, bytes)
                        .note("nearest", note);
                    groups.push((kind, message, finding));
                }
            }
        }
        for (_, _, finding) in groups {
            self.recorder.record(finding);
        }
        lanes
    }

    fn explain(
        &self,
        site: &Site,
        access: &Access<'_>,
        lane: usize,
        why: &FaultKind,
    ) -> (Kind, String, String) {
        let what = what(access);
        let (address, generic) = (access.addresses.0[lane], access.generic.0[lane]);
        let global = matches!(access.space, Space::Global | Space::Generic | Space::Const | Space::Tex);
        if *why == FaultKind::Misaligned {
            let message = format!("{what} at an address that is not a multiple of {}", access.bytes);
            return (Kind::Misaligned, message, self.near(site, access.space, lane, address));
        }
        if let Some((start, block)) = self.freed_at(generic).filter(|_| global) {
            let gone = block.gone.as_deref().unwrap_or("freed by the host");
            let note = format!(
                "{}, {} bytes at {start:#x}, {gone}; the address is {} bytes into it",
                block.name,
                block.bytes,
                generic - start
            );
            return (Kind::UseAfterFree, format!("{what} in memory that was freed"), note);
        }
        let near = self.near(site, access.space, lane, address);
        if *why == FaultKind::ReadOnly {
            return (Kind::OutOfBounds, format!("{what} in memory that can only be read"), near);
        }
        (Kind::OutOfBounds, format!("{what} out of bounds"), near)
    }

    /// What lies next to an address, in prose.
    fn near(&self, site: &Site, space: Space, lane: usize, address: u64) -> String {
        match self.provenance.nearest(site, space, lane, address) {
            Some(prose) => prose,
            None => site.launch.memory.nearest(address),
        }
    }

    /// Reports lanes whose bytes do not lie in the object that their address was computed from.
    fn outside(&mut self, site: &Site, inst: &Inst, access: &Access<'_>, asked: LaneMask) -> LaneMask {
        let found = self.provenance.outside(site, inst, access, asked);
        let mut lanes = 0;
        let mut first: Option<(usize, Object, u64)> = None;
        for Where { lane, object, past } in &found {
            lanes |= 1 << lane;
            first.get_or_insert((*lane, object.clone(), *past));
        }
        let Some((lane, object, offset)) = first else { return 0 };
        let what = what(access);
        let place = object.place(offset, u64::from(access.bytes));
        let message = format!("{what} outside {}", object.name);
        let mut finding = Finding::at(Kind::OutOfBounds, site, lane, message)
            .access(access.space, access.addresses.0[lane], u64::from(access.bytes))
            .note("object", format!("{}, {} bytes; the address is {place}", object.name, object.bytes))
            .times(found.len() as u64);
        if let Some(other) = self.provenance.neighbour(site, access, lane, &object) {
            finding = finding.note("inside", other);
        }
        self.recorder.record(finding);
        lanes
    }

    /// Reports what kernels allocated and have not freed.
    fn leaks(&mut self) {
        for block in self.live.values_mut().filter(|block| block.class == Class::Malloc) {
            if let Some(finding) = block.made.take() {
                self.recorder.record(finding);
            }
        }
    }
}

/// The allocation that an address lies in: its start, its bytes, its name.
fn block_at(live: &BTreeMap<u64, Block>, address: u64) -> Option<(u64, u64, &str)> {
    let (start, block) = live.range(..=address).next_back()?;
    let inside = address - start < block.bytes && block.class != Class::Param;
    inside.then_some((*start, block.bytes, block.name.as_str()))
}

/// An access in words.
fn what(access: &Access<'_>) -> String {
    let verb = match access.kind {
        AccessKind::Load => "read",
        AccessKind::Store => "write",
        AccessKind::Atomic => "atomic operation",
    };
    format!("{verb} of {} bytes", access.bytes)
}

impl Observer for Memcheck {
    fn launch_begins(&mut self, launch: &Arc<LaunchFacts>) {
        self.provenance.launch_begins(launch);
    }

    fn cta_begins(&mut self, _launch: &Arc<LaunchFacts>, cta: &CtaFacts) {
        self.provenance.cta_begins(cta);
    }

    fn interests(&self, function: &Function) -> Vec<Vec<Interest>> {
        crate::provenance::interests(function)
    }

    fn native_checks(&mut self, kernel: &KernelFacts<'_>) -> Result<NativeChecks, String> {
        let objects = (*self.provenance.objects(kernel)?).clone();
        Ok(NativeChecks { objects, ..NativeChecks::default() })
    }

    fn allocations(&mut self, launch: &LaunchFacts) -> Option<Vec<Option<Reach>>> {
        self.provenance.allocations(launch, |address| block_at(&self.live, address))
    }

    fn access_checks(&mut self, launch: &Arc<LaunchFacts>) -> Option<AccessChecks> {
        self.provenance.access_checks(launch, |address| block_at(&self.live, address))
    }

    fn resumes(&mut self, site: &Site, lanes: LaneMask) {
        self.provenance.resumes(site, lanes, |address| block_at(&self.live, address));
    }

    fn stepped(&mut self, site: &Site, lanes: LaneMask, regs: &Registers) {
        self.provenance.stepped(site, lanes, regs, |address| block_at(&self.live, address));
    }

    fn access(&mut self, site: &Site, access: &Access<'_>) -> LaneMask {
        let refused = if access.refused.is_empty() { 0 } else { self.refused(site, access) };
        let asked = access.lanes & !refused;
        let Some(inst) = site.inst().filter(|_| asked != 0) else { return refused };
        let outside = self.outside(site, inst, access, asked);
        let left = asked & !outside;
        if left != 0 {
            self.provenance.accesses(site, inst, access, left);
        }
        refused | outside
    }

    fn surface_outside(&mut self, site: &Site, lane: usize, why: &str) -> bool {
        let message = "surface access out of bounds".to_owned();
        let mut finding = Finding::at(Kind::OutOfBounds, site, lane, message).note("coordinates", why);
        finding.space = Some(Space::Tex.name());
        self.recorder.record(finding);
        true
    }

    fn enters(&mut self, site: &Site, act: u32, function: u32, _lanes: LaneMask, fresh: bool) {
        if fresh {
            self.provenance.renew(site, act, function);
        }
    }

    fn moves(&mut self, site: &Site, lanes: LaneMask, moved: &ArgumentMove) {
        self.provenance.moves(site, lanes, moved);
    }

    fn malloc(&mut self, site: &Site, lane: usize, bytes: u64, address: u64) {
        if let Some(block) = self.live.get_mut(&address) {
            let Described { line, .. } = Described::of(&site.launch, site.place);
            let place = line.map_or_else(String::new, |line| format!(" by `malloc` in line {line}"));
            block.name = format!("{bytes} bytes allocated{place}");
            let message = format!("{bytes} bytes of the device heap are never freed");
            let mut finding = Finding::at(Kind::Leak, site, lane, message);
            finding.address = Some(address);
            finding.bytes = Some(bytes);
            block.made = Some(finding);
        }
    }

    fn free(&mut self, site: &Site, lane: usize, address: u64) -> bool {
        if address == 0 {
            return false;
        }
        match self.live.get_mut(&address) {
            Some(block) if block.class == Class::Malloc => {
                let Described { line, .. } = Described::of(&site.launch, site.place);
                block.gone = Some(format!("freed in line {}", line.unwrap_or(0)));
                return false;
            }
            Some(_) | None => {}
        }
        let (kind, message) = match self.freed.get(&address) {
            Some(block) if block.class == Class::Malloc => {
                let gone = block.gone.as_deref().unwrap_or("freed by the host");
                (Kind::DoubleFree, format!("`free` of memory that was {gone} before"))
            }
            Some(_) | None => (Kind::InvalidFree, "`free` of what `malloc` did not return".to_owned()),
        };
        let mut finding = Finding::at(kind, site, lane, message)
            .note("nearest", self.near(site, Space::Generic, lane, address));
        (finding.space, finding.address) = (Some(Space::Generic.name()), Some(address));
        self.recorder.record(finding);
        true
    }

    fn allocated(&mut self, what: &Allocated<'_>) {
        let Allocated { address, bytes, class, name, common: _ } = *what;
        // What was freed there is forgotten.
        let end = address.saturating_add(bytes);
        let over: Vec<u64> = self
            .freed
            .range(..end)
            .rev()
            .take_while(|(s, b)| *s + b.bytes > address)
            .map(|(s, _)| *s)
            .collect();
        for start in over {
            self.freed.remove(&start);
        }
        let block = Block { bytes, class, name: name.to_owned(), made: None, gone: None };
        self.live.insert(address, block);
    }

    fn freed(&mut self, address: u64, _bytes: u64) {
        if let Some(block) = self.live.remove(&address).filter(|block| block.class != Class::Param) {
            self.freed.insert(address, block);
        }
    }

    fn ends(&mut self) {
        self.leaks();
    }

    fn host_mistake(&mut self, mistake: &HostMistake<'_>) {
        let (kind, message, address, bytes, nearest) = match *mistake {
            HostMistake::Free { call, address, again, nearest } => match self.freed.get(&address) {
                _ if again => (
                    Kind::DoubleFree,
                    format!("`{call}` of memory that was freed before"),
                    address,
                    None,
                    nearest,
                ),
                Some(block) => {
                    let message = format!("`{call}` of {} that was freed before", block.name);
                    (Kind::DoubleFree, message, address, Some(block.bytes), nearest)
                }
                None => {
                    let inside = self.live.range(..=address).next_back();
                    let inside = inside.filter(|(start, block)| address - **start < block.bytes);
                    let what = match inside {
                        Some((start, block)) if *start < address => {
                            format!("an address {} bytes into {}", address - start, block.name)
                        }
                        Some((_, block)) => format!("{}, which it did not allocate", block.name),
                        None => "what no call has allocated".to_owned(),
                    };
                    (Kind::InvalidFree, format!("`{call}` of {what}"), address, None, nearest)
                }
            },
            HostMistake::Access { call, address, bytes, nearest } => match self.freed_at(address) {
                Some((_, block)) => {
                    let message = format!("`{call}` of {bytes} bytes in {} that was freed", block.name);
                    (Kind::UseAfterFree, message, address, Some(bytes), nearest)
                }
                None => {
                    let message = format!("`{call}` of {bytes} bytes that are not all in one allocation");
                    (Kind::OutOfBounds, message, address, Some(bytes), nearest)
                }
            },
            HostMistake::Leak { what, address, bytes } => {
                (Kind::Leak, format!("{bytes} bytes of {what} are never freed"), address, Some(bytes), "")
            }
        };
        let mut finding = Finding::new(kind, message);
        (finding.space, finding.bytes) = (Some(Space::Global.name()), bytes);
        finding.address = (address != 0).then_some(address);
        if !nearest.is_empty() {
            finding = finding.note("nearest", nearest);
        }
        self.recorder.record(finding);
    }
}
