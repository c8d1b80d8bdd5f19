//! The object from which each address was computed.
//!
//! For each lane, a register that contains an address has the object that the address was computed from.
//! These propagate the object: moves, conversions between spaces and widths, additions of values that are not
//! addresses, masks that align, selections, calls, and memory if a register is stored and loaded as a whole.
//! All other results of computations with addresses are *mixed*: they are not an address of one object, and
//! an address that is computed from them has no object either. So differences of addresses, which compilers
//! create when they reduce induction variables, never lead to a wrong object.
//!
//! Registers that hold no address, and those that no address is computed from, are not tracked
//! (`tracked.rs`).
//!
//! Invariant: a lane has an object only if its address is the object's address plus an offset.

mod flow;
mod tracked;

use crate::registers::{Frame, Frames};
use flow::{Flow, Known, Origin};
use ptx::check::module::FuncId;
use ptx::ir::{Addr, Base, Dst, Inst, Program, Reg, RegClass, Src};
use ptx::isa::{Op, Slot, Space};
use ptx_exec::lanes::{Lane, LaneMask, Registers, lanes_of};
use ptx_exec::mem::Reach;
use ptx_exec::watch::{
    Access, AccessChecks, AccessKind, AccessObjects, ArgumentMove, CtaFacts, KernelFacts, LaunchFacts,
    MovePlace, Site,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
pub(crate) use tracked::interests;

/// What the value in a register is based on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tag {
    /// Number of an object; [`NONE`] for a value that is no address, [`MIXED`] for a value that is computed
    /// from addresses in other ways.
    object: u32,
    /// In these lanes. In the others nothing is known, as for [`MIXED`].
    lanes: LaneMask,
}

const NONE: u32 = 0;
const MIXED: u32 = 1;
const FIRST: u32 = 2;

const UNKNOWN: Tag = Tag { object: MIXED, lanes: LaneMask::MAX };
const PLAIN: Tag = Tag { object: NONE, lanes: LaneMask::MAX };

/// A variable, a parameter, or an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// The space that `start` is an address of: `Shared`, `Local`, `Param`, or `Global` for all that has real
    /// addresses.
    pub(crate) space: Space,
    /// First address in that space.
    pub(crate) start: u64,
    /// Its size.
    pub(crate) bytes: u64,
    /// In prose, such as "shared variable `s`".
    pub(crate) name: String,
}

impl Object {
    /// Lanes whose bytes may not all be in it: the rest is.
    fn misses(&self, site: &Site, access: &Access<'_>, lanes: LaneMask) -> LaneMask {
        let Some(limit) = self.bytes.checked_sub(u64::from(access.bytes)) else { return lanes };
        let origin = |lane: usize| match self.space {
            Space::Shared => site.warp.shared.0,
            Space::Local => site.warp.local.0 + lane as u64 * site.warp.local.1,
            Space::Param => site.warp.params.0,
            _ => 0,
        };
        let (first, stride) = (origin(0), origin(1).wrapping_sub(origin(0)));
        let start = first.wrapping_add(self.start);
        if stride == 0 {
            // Offsets within the limit have a clear highest bit, and so has what is left to the limit.
            let past = |address: &u64| {
                let offset = address.wrapping_sub(start);
                offset | limit.wrapping_sub(offset)
            };
            let any = access.generic.0.iter().fold(0, |any, address| any | past(address));
            if any >> 63 == 0 {
                return 0;
            }
        }
        let mut outside = 0;
        for (lane, address) in access.generic.0.iter().enumerate() {
            let offset = address.wrapping_sub(start).wrapping_sub(stride.wrapping_mul(lane as u64));
            outside |= LaneMask::from(offset > limit) << lane;
        }
        outside & lanes
    }

    /// Where an address is, that lies so far from the object's start (which wraps around before it).
    pub(crate) fn place(&self, offset: u64, bytes: u64) -> String {
        if (offset as i64) < 0 {
            format!("{} bytes before it", offset.wrapping_neg())
        } else if offset >= self.bytes {
            format!("{} bytes past its end", offset - self.bytes)
        } else {
            format!("{offset} bytes into it, and the last of {bytes} bytes lies behind it")
        }
    }
}

/// A lane whose bytes are not all in its object.
pub(crate) struct Where {
    pub(crate) lane: usize,
    pub(crate) object: Object,
    /// From the object's start to the address.
    pub(crate) past: u64,
}

/// What is known of a kernel before it runs, or why it is not known.
type Analysed = Result<Arc<Flow>, String>;

/// Provenance of all registers, and of addresses that lie in memory.
#[derive(Debug)]
pub(crate) struct Provenance {
    frames: Frames<Tag>,
    objects: Vec<Object>,
    known: BTreeMap<(u8, u64, u64), u32>,
    /// By generic address: the value that was stored there, its object, and how many bytes it has.
    stored: HashMap<u64, (u64, u32, u32)>,
    /// Lanes and bytes of the running instruction's access.
    accessed: Option<(LaneMask, u32, AccessKind)>,
    /// Its generic addresses, where they matter.
    at: Lane<u64>,
    shared: Arc<[(u64, u64, String)]>,
    /// Whether there are bytes between those variables that belong to none.
    has_gaps: bool,
    /// Whether the running instruction stores an address.
    stores: bool,
    /// Where dynamic shared memory starts, and the end of shared memory.
    dynamic: (u64, u64),
    /// What is known of kernels before they run, or why it is not known.
    flows: Vec<(Weak<Program>, u32, Analysed)>,
}

impl Default for Provenance {
    fn default() -> Self {
        Self {
            frames: Frames::new(PLAIN),
            objects: Vec::new(),
            known: BTreeMap::new(),
            stored: HashMap::new(),
            accessed: None,
            at: Lane::splat(0),
            shared: Arc::new([]),
            has_gaps: false,
            stores: false,
            dynamic: (0, 0),
            flows: Vec::new(),
        }
    }
}

impl Provenance {
    pub(crate) fn launch_begins(&mut self, launch: &LaunchFacts) {
        self.objects.clear();
        self.known.clear();
        self.stored.clear();
        let dynamic = u64::from(launch.shape.dynamic_shared);
        self.dynamic = (launch.shared_bytes - dynamic, launch.shared_bytes);
        self.shared = launch.shared.iter().map(|v| (v.start, v.bytes, v.name.clone())).collect();
        let mut end = self.shared.first().map_or(0, |(start, ..)| *start);
        self.has_gaps = false;
        for (start, bytes, _) in &*self.shared {
            self.has_gaps |= *start > end;
            end = end.max(start + bytes);
        }
        self.has_gaps |= end < self.dynamic.0;
        self.accessed = None;
    }

    pub(crate) fn cta_begins(&mut self, cta: &CtaFacts) {
        self.frames.begin(cta);
    }

    pub(crate) fn renew(&mut self, site: &Site, act: u32, function: u32) {
        self.frames.renew(site, act, function);
    }

    fn intern(&mut self, space: Space, (start, bytes): (u64, u64), name: impl FnOnce() -> String) -> u32 {
        let number = match space {
            Space::Shared => 0,
            Space::Local => 1,
            Space::Param => 2,
            _ => 3,
        };
        let objects = &mut self.objects;
        *self.known.entry((number, start, bytes)).or_insert_with(|| {
            objects.push(Object { space, start, bytes, name: name() });
            FIRST + objects.len() as u32 - 1
        })
    }

    fn object(&self, number: u32) -> Option<&Object> {
        self.objects.get(number.checked_sub(FIRST)? as usize)
    }

    /// The object that an address operand names.
    fn named(&mut self, site: &Site, inst: &Inst, addr: &Addr) -> Tag {
        match addr.base {
            Base::Var(var) => self.variable(site, var.0),
            Base::Frame | Base::KernelParam | Base::Absolute => {
                let objects = site.function().map_or(&[][..], |function| &function.objects);
                match inst.object {
                    Some(object) if objects.get(object as usize).is_some_and(|o| o.base == addr.base) => {
                        self.local(site, object)
                    }
                    _ if addr.base == Base::Absolute => PLAIN,
                    _ => UNKNOWN,
                }
            }
            Base::Reg(reg) => self.frames.at(site).get(reg).copied().unwrap_or(UNKNOWN),
            Base::Func(_) => UNKNOWN,
        }
    }

    /// A variable of the program.
    fn variable(&mut self, site: &Site, id: u32) -> Tag {
        let Some(variable) = site.launch.program.variables.get(id as usize) else { return UNKNOWN };
        let start = site.launch.variables.get(id as usize).copied().unwrap_or(0);
        let (space, kind) = match variable.space {
            Space::Shared => (Space::Shared, "shared"),
            Space::Const => (Space::Global, "constant"),
            _ => (Space::Global, "global"),
        };
        let bytes = match (variable.space, variable.bytes) {
            (Space::Shared, 0) => self.dynamic.1.saturating_sub(start),
            (_, bytes) => bytes,
        };
        let name = || format!("{kind} variable `{}`", variable.name);
        Tag { object: self.intern(space, (start, bytes), name), lanes: LaneMask::MAX }
    }

    /// A local variable or a parameter: index of the function's objects.
    fn local(&mut self, site: &Site, object: u32) -> Tag {
        let Some(object) = site.function().and_then(|function| function.objects.get(object as usize)) else {
            return UNKNOWN;
        };
        let (space, start) = match object.base {
            Base::KernelParam => (Space::Param, object.offset),
            Base::Frame => (Space::Local, site.frame + object.offset),
            Base::Absolute | Base::Reg(_) | Base::Var(_) | Base::Func(_) => (Space::Local, object.offset),
        };
        let kind = if object.param { "parameter" } else { "local variable" };
        let name = || format!("{kind} `{}`", object.name);
        Tag { object: self.intern(space, (start, object.bytes), name), lanes: LaneMask::MAX }
    }

    fn source(&mut self, site: &Site, inst: &Inst, src: &Src) -> Tag {
        match src {
            Src::Reg(reg) | Src::Not(reg) => self.frames.at(site).get(*reg).copied().unwrap_or(UNKNOWN),
            Src::Addr(addr) => self.named(site, inst, addr),
            Src::Absent | Src::Imm(_) | Src::Sreg(..) => PLAIN,
            Src::Video(video) => self.source(site, inst, &video.value),
        }
    }

    /// The objects of the accesses of a kernel, as far as they are known before it runs.
    ///
    /// # Errors
    /// Why the kernel must run in the interpreter.
    pub(crate) fn objects(&mut self, kernel: &KernelFacts<'_>) -> Result<Arc<AccessObjects>, String> {
        self.analysed(kernel).map(|flow| Arc::clone(flow.objects()))
    }

    /// Provenance in a kernel, which is computed once.
    fn analysed(&mut self, kernel: &KernelFacts<'_>) -> Analysed {
        if let Some(known) = self.known_flow(kernel.program, kernel.kernel) {
            return known.clone();
        }
        let flow = Flow::of(kernel).map(Arc::new);
        self.flows.retain(|(program, ..)| program.strong_count() > 0);
        self.flows.push((Arc::downgrade(kernel.program), kernel.kernel.0, flow.clone()));
        flow
    }

    fn known_flow(&self, program: &Arc<Program>, kernel: FuncId) -> Option<&Analysed> {
        let mut flows = self.flows.iter();
        let its = flows.find(|(known, number, _)| {
            *number == kernel.0 && std::ptr::eq(known.as_ptr(), Arc::as_ptr(program))
        });
        its.map(|(_, _, flow)| flow)
    }

    fn flow(&self, launch: &LaunchFacts) -> Option<Arc<Flow>> {
        self.known_flow(&launch.program, launch.kernel)?.as_ref().ok().map(Arc::clone)
    }

    /// The checks of accesses that replace events of a launch, if provenance is known before it. `block`: the
    /// allocation that an address lies in.
    pub(crate) fn access_checks<'a>(
        &mut self,
        launch: &LaunchFacts,
        block: impl Fn(u64) -> Option<(u64, u64, &'a str)>,
    ) -> Option<AccessChecks> {
        let LaunchFacts { program, kernel, variables, .. } = launch;
        let flow = self.analysed(&KernelFacts { program, kernel: *kernel, variables }).ok()?;
        let allocations = self.allocations(launch, block)?;
        Some(AccessChecks { objects: Arc::clone(flow.objects()), allocations })
    }

    /// The allocations that [`Provenance::objects`] has numbered; `None`: the launch must run in the
    /// interpreter. `block`: the allocation that an address lies in.
    pub(crate) fn allocations<'a>(
        &self,
        launch: &LaunchFacts,
        block: impl Fn(u64) -> Option<(u64, u64, &'a str)>,
    ) -> Option<Vec<Option<Reach>>> {
        let flow = self.flow(launch)?;
        if !flow.fits(&launch.params, |value| block(value).is_some(), self.has_gaps) {
            return None;
        }
        let range = |origin: &Origin| match *origin {
            Origin::Variable(id) => {
                let start = launch.variables.get(id.0 as usize).copied()?;
                Some((start, launch.program.variables.get(id.0 as usize)?.bytes))
            }
            Origin::Parameter(offset) => {
                block(flow::value_at(&launch.params, offset)).map(|(start, bytes, _)| (start, bytes))
            }
            Origin::Local(_) => None,
        };
        let ranges: Vec<_> = flow.origins.iter().map(range).collect();
        // An address of no allocation has no object, and may be one of shared memory.
        let unknown = |(origin, range): (&Origin, &Option<Reach>)| {
            matches!(origin, Origin::Parameter(_)) && range.is_none()
        };
        let any_unknown = flow.origins.iter().zip(&ranges).any(unknown);
        (!(self.has_gaps && any_unknown)).then_some(ranges)
    }

    /// Events of these lanes were not told: what their registers are based on follows from the place.
    /// `block`: as above.
    pub(crate) fn resumes<'a>(
        &mut self,
        site: &Site,
        lanes: LaneMask,
        block: impl Fn(u64) -> Option<(u64, u64, &'a str)>,
    ) {
        (self.accessed, self.stores) = (None, false);
        let (Some(flow), Some(function)) = (self.flow(&site.launch), site.function()) else { return };
        let params = &site.launch.params;
        let known: Vec<(Reg, Known)> = flow.before(function, site.place.block, site.place.index).collect();
        for (reg, known) in known {
            let tag = match known {
                Known::Plain => PLAIN,
                Known::Mixed | Known::Varies => UNKNOWN,
                Known::Of(origin) => match flow.origins[origin as usize] {
                    Origin::Variable(id) => self.variable(site, id.0),
                    Origin::Local(object) => self.local(site, object),
                    Origin::Parameter(offset) => match block(flow::value_at(params, offset)) {
                        Some((start, bytes, name)) => {
                            let object = self.intern(Space::Global, (start, bytes), || name.to_owned());
                            Tag { object, lanes: LaneMask::MAX }
                        }
                        None => PLAIN,
                    },
                },
            };
            set(self.frames.at(site), reg, lanes, !site.live, tag);
        }
    }

    /// The lanes whose bytes do not all lie in the object that their address was computed from, or, without
    /// one, in any variable.
    pub(crate) fn outside(
        &mut self,
        site: &Site,
        inst: &Inst,
        access: &Access<'_>,
        asked: LaneMask,
    ) -> Vec<Where> {
        // Arguments and results that a call moves are the machine's own accesses.
        // The operand of a texture instruction names the texture, not an address.
        if matches!(inst.op, Op::Call | Op::CallIndirect | Op::Ret) || access.space == Space::Tex {
            return Vec::new();
        }
        let operand = if inst.op == Op::CpAsync && access.space == Space::Global { 1 } else { 0 };
        let Some(src) = inst.srcs.get(operand) else { return Vec::new() };
        let tag = self.source(site, inst, src);
        let bytes = u64::from(access.bytes);
        let mut found = Vec::new();
        let mut rest = asked;
        if let Some(object) = self.object(tag.object) {
            rest = asked & !tag.lanes;
            let outside = object.misses(site, access, asked & tag.lanes);
            for lane in lanes_of(outside) {
                let Some(address) = in_space(site, lane, object.space, access.generic.0[lane]) else {
                    continue;
                };
                let past = address.wrapping_sub(object.start);
                if past > object.bytes || object.bytes - past < bytes {
                    found.push(Where { lane, object: object.clone(), past });
                }
            }
        }
        // Other spaces than shared memory have no bytes between variables that an access gets this far with.
        if rest == 0 || !self.has_gaps || !matches!(access.space, Space::Shared | Space::Generic) {
            return found;
        }
        for lane in lanes_of(rest) {
            if let Some(address) = in_space(site, lane, Space::Shared, access.generic.0[lane])
                && let Some(hit) = self.between_variables(address, bytes)
            {
                found.push(Where { lane, past: address.wrapping_sub(hit.start), object: hit });
            }
        }
        found
    }

    /// The variable before bytes of shared memory of which some belong to no variable.
    fn between_variables(&self, address: u64, bytes: u64) -> Option<Object> {
        let (mut at, end) = (address, address + bytes);
        if self.shared.first().is_none_or(|(start, _, _)| address < *start) {
            return None;
        }
        while at < end {
            if at >= self.dynamic.0 {
                return None;
            }
            match self.shared.iter().find(|(start, bytes, _)| at.wrapping_sub(*start) < *bytes) {
                Some((start, bytes, _)) => at = start + bytes,
                None => {
                    let before = self.shared.iter().rfind(|(start, _, _)| *start <= at);
                    let (start, bytes, name) = before.or(self.shared.first())?;
                    let name = format!("shared variable `{name}`");
                    return Some(Object { space: Space::Shared, start: *start, bytes: *bytes, name });
                }
            }
        }
        None
    }

    /// The variable that bytes outside an object lie in, in prose.
    pub(crate) fn neighbour(
        &self,
        site: &Site,
        access: &Access<'_>,
        lane: usize,
        object: &Object,
    ) -> Option<String> {
        let address = in_space(site, lane, object.space, access.generic.0[lane])?;
        let holds = |start: u64, bytes: u64| address.wrapping_sub(start) < bytes;
        match object.space {
            Space::Shared => {
                let found = self.shared.iter().find(|(start, bytes, _)| holds(*start, *bytes));
                found.map(|(_, _, name)| format!("shared variable `{name}`"))
            }
            Space::Local | Space::Param => {
                let base = if object.space == Space::Local { Base::Frame } else { Base::KernelParam };
                let frame = if object.space == Space::Local { site.frame } else { 0 };
                let objects = &site.function()?.objects;
                let found = objects.iter().find(|o| o.base == base && holds(frame + o.offset, o.bytes))?;
                Some(format!("`{}`", found.name))
            }
            _ => site.launch.memory.name_at(access.generic.0[lane]).map(|name| name.to_string()),
        }
    }

    /// The shared variable next to an address, in prose.
    pub(crate) fn nearest(&self, site: &Site, space: Space, lane: usize, address: u64) -> Option<String> {
        let generic = site.warp.generic(space, lane, address);
        match space {
            Space::Shared => {}
            Space::Local => {
                return Some(format!("local memory of the thread; the address is {address:#x} in it"));
            }
            Space::Param => {
                let bytes = site.warp.params.1;
                return Some(format!(
                    "parameters of the kernel, {bytes} bytes; the address is {address:#x} in them"
                ));
            }
            _ => return None,
        }
        let offset = in_space(site, lane, Space::Shared, generic).unwrap_or(address);
        let (start, bytes, name) = self.shared.iter().rfind(|(start, _, _)| *start <= offset)?;
        let object =
            Object { space, start: *start, bytes: *bytes, name: format!("shared variable `{name}`") };
        let place = object.place(offset - start, 1);
        Some(format!("{}, {bytes} bytes at {start:#x}; the address is {place}", object.name))
    }

    /// An access of the running instruction is made by these lanes.
    pub(crate) fn accesses(&mut self, site: &Site, inst: &Inst, access: &Access<'_>, lanes: LaneMask) {
        let loads = access.kind == AccessKind::Load && matches!(inst.op, Op::Ld | Op::LdNc | Op::Ldu);
        let stores = inst.op == Op::St && inst.srcs.len() == 2 && matches!(access.bytes, 4 | 8);
        if loads {
            self.accessed = Some((lanes, access.bytes, access.kind));
            if !self.stored.is_empty() {
                self.at = *access.generic;
            }
        } else if stores && let [_, value @ Src::Reg(_)] = &inst.srcs[..] {
            // What is overwritten is forgotten by its value: a load compares.
            let tag = self.source(site, inst, value);
            self.stores = tag.object >= FIRST;
            if self.stores {
                self.accessed = Some((lanes, access.bytes, access.kind));
                self.at = *access.generic;
                // Values are filled in when the store has taken place.
                for lane in lanes_of(lanes & tag.lanes) {
                    self.stored.insert(access.generic.0[lane], (PENDING, tag.object, access.bytes));
                }
            }
        }
    }

    /// An instruction has been executed: what its results are based on. `block`: the allocation that an
    /// address lies in.
    pub(crate) fn stepped<'a>(
        &mut self,
        site: &Site,
        lanes: LaneMask,
        regs: &Registers,
        block: impl Fn(u64) -> Option<(u64, u64, &'a str)>,
    ) {
        let Some(inst) = site.inst() else { return };
        let accessed = self.accessed.take();
        if inst.op == Op::St {
            if let (true, Some((stored, bytes, AccessKind::Store))) = (self.stores, accessed) {
                self.fill_in(inst, regs, stored, bytes);
            }
            return;
        }
        if inst.dsts.is_empty() || accessed.is_none() && self.is_plain(site, inst, lanes) {
            return;
        }
        let tag = match inst.op {
            Op::Ld | Op::LdNc | Op::Ldu => self.loaded(inst, lanes, regs, accessed, block),
            _ => self.computed(site, inst, lanes, regs),
        };
        let moves_elements = matches!(inst.op, Op::MovVec);
        for (i, dst) in inst.dsts.iter().enumerate() {
            let Some(reg) = dst.reg() else { continue };
            let tag = match inst.srcs.get(i) {
                Some(src) if moves_elements => self.source(site, inst, src),
                _ if i == 0 && !matches!(dst, Dst::Video { .. }) => tag,
                _ if tag.object == NONE => PLAIN,
                _ => UNKNOWN,
            };
            set(self.frames.at(site), reg, lanes, !site.live, tag);
        }
    }

    /// Whether no source of an instruction is an address; then its results are none, which is noted.
    fn is_plain(&mut self, site: &Site, inst: &Inst, lanes: LaneMask) -> bool {
        let frame = self.frames.at(site);
        let plain = inst.srcs.iter().all(|src| match src {
            Src::Reg(reg) | Src::Not(reg) => {
                frame.get(*reg).is_some_and(|tag| tag.object == NONE && lanes & !tag.lanes == 0)
            }
            Src::Absent | Src::Imm(_) | Src::Sreg(..) => true,
            Src::Addr(_) | Src::Video(_) => false,
        });
        if plain {
            for reg in inst.dsts.iter().filter_map(Dst::reg) {
                set(frame, reg, lanes, !site.live, PLAIN);
            }
        }
        plain
    }

    fn fill_in(&mut self, inst: &Inst, regs: &Registers, lanes: LaneMask, bytes: u32) {
        let Some(Src::Reg(reg)) = inst.srcs.get(1) else { return };
        for lane in lanes_of(lanes) {
            if let Some((value, _, same)) = self.stored.get_mut(&self.at.0[lane])
                && *same == bytes
                && *value == PENDING
            {
                *value = value_of(regs, *reg, lane);
            }
        }
    }

    /// What a loaded value is based on: the object of the address that was stored there, or the allocation
    /// that a parameter points into.
    fn loaded<'a>(
        &mut self,
        inst: &Inst,
        lanes: LaneMask,
        regs: &Registers,
        accessed: Option<(LaneMask, u32, AccessKind)>,
        block: impl Fn(u64) -> Option<(u64, u64, &'a str)>,
    ) -> Tag {
        let Some((made, bytes, AccessKind::Load)) = accessed else { return PLAIN };
        let [Dst::Reg(reg)] = inst.dsts[..] else { return PLAIN };
        let first = lanes.trailing_zeros() as usize % 32;
        if inst.mods.space() == Space::Param && reg.class == RegClass::R64 && bytes == 8 {
            let value = value_of(regs, reg, first);
            let uniform = lanes_of(lanes).all(|lane| value_of(regs, reg, lane) == value);
            if let (true, Some((start, bytes, name))) = (uniform, block(value)) {
                let object = self.intern(Space::Global, (start, bytes), || name.to_owned());
                return Tag { object, lanes: LaneMask::MAX };
            }
        }
        if self.stored.is_empty() {
            return PLAIN;
        }
        let mut tag: Option<Tag> = None;
        for lane in lanes_of(made) {
            let Some((value, object, same)) = self.stored.get(&self.at.0[lane]).copied() else { continue };
            if same != bytes || value != value_of(regs, reg, lane) {
                continue;
            }
            match &mut tag {
                None => tag = Some(Tag { object, lanes: 1 << lane }),
                Some(tag) if tag.object == object => tag.lanes |= 1 << lane,
                Some(_) => return UNKNOWN,
            }
        }
        tag.unwrap_or(PLAIN)
    }

    /// What a computed value is based on.
    fn computed(&mut self, site: &Site, inst: &Inst, lanes: LaneMask, regs: &Registers) -> Tag {
        let mut tags = [PLAIN; 4];
        for (tag, src) in tags.iter_mut().zip(&inst.srcs) {
            *tag = self.source(site, inst, src);
        }
        match rule(inst, |at| tags.get(at).is_none_or(|tag| tag.object == NONE && lanes & !tag.lanes == 0)) {
            Rule::Plain => PLAIN,
            Rule::Mixed => UNKNOWN,
            Rule::Source(at) => tags[at],
            Rule::Select(a, b) => {
                let (a, b) = (tags[a], tags[b]);
                let Some(Src::Reg(p)) = inst.srcs.get(2) else { return UNKNOWN };
                let truths = regs.pred.get(p.index as usize).copied().unwrap_or(0);
                if lanes & !truths == 0 {
                    a
                } else if lanes & truths == 0 {
                    b
                } else if a.object == b.object {
                    Tag { object: a.object, lanes: a.lanes & b.lanes }
                } else {
                    UNKNOWN
                }
            }
        }
    }

    /// An argument or a result moves.
    pub(crate) fn moves(&mut self, site: &Site, lanes: LaneMask, moved: &ArgumentMove) {
        let generic = |offset: u64, lane: usize| site.warp.generic(Space::Local, lane, offset);
        match (moved.from, moved.to) {
            (MovePlace::Reg { act, reg }, MovePlace::Reg { act: to, reg: target }) => {
                let tag = self.frames.of(site, act, site.place.function).get(reg).copied().unwrap_or(UNKNOWN);
                set_in(&mut self.frames, site, to, target, lanes, tag);
            }
            (MovePlace::Local(from), MovePlace::Local(to)) if !self.stored.is_empty() => {
                for at in (0..moved.bytes).step_by(4) {
                    for lane in lanes_of(lanes) {
                        match self.stored.get(&generic(from + at, lane)).copied() {
                            Some(kept) => _ = self.stored.insert(generic(to + at, lane), kept),
                            None => _ = self.stored.remove(&generic(to + at, lane)),
                        }
                    }
                }
            }
            (_, MovePlace::Reg { act, reg }) => set_in(&mut self.frames, site, act, reg, lanes, UNKNOWN),
            (_, MovePlace::Local(_) | MovePlace::Param(_) | MovePlace::Immediate) => {}
        }
    }
}

/// Stands for a value that is about to be stored. No address of an object is so high.
const PENDING: u64 = u64::MAX;

/// Lanes that are written get the new tag; `dead`: lanes that do not exist any more count as written.
fn set(frame: &mut Frame<Tag>, reg: Reg, lanes: LaneMask, dead: LaneMask, tag: Tag) {
    let Some(old) = frame.get_mut(reg) else { return };
    let lanes = lanes | dead;
    let new = Tag { object: tag.object, lanes: (tag.lanes | dead) & lanes };
    if old.object == new.object && new.object != MIXED {
        old.lanes = old.lanes & !lanes | new.lanes;
    } else if new.object == MIXED {
        old.lanes &= !lanes;
        if old.lanes == 0 {
            *old = UNKNOWN;
        }
    } else if old.object == MIXED || old.lanes & !lanes == 0 || new.object >= FIRST {
        *old = new;
    } else {
        old.lanes &= !lanes;
    }
}

fn set_in(frames: &mut Frames<Tag>, site: &Site, act: u32, reg: Reg, lanes: LaneMask, tag: Tag) {
    // The frame is there: a callee's was made when it was entered.
    set(frames.of(site, act, site.place.function), reg, lanes, !site.live, tag);
}

/// Whether a conversion is one between integers.
fn integers(inst: &Inst) -> bool {
    let float = |slot| inst.mods.ty_in(slot).is_some_and(|ty| ty.is_float());
    ![Slot::Type, Slot::Dtype, Slot::Atype, Slot::Stype].into_iter().any(float)
}

/// What a computed value is based on.
enum Rule {
    /// No address.
    Plain,
    /// Addresses, but not the address of one object.
    Mixed,
    /// What that source is based on.
    Source(usize),
    /// What one of two sources is based on; a predicate selects it.
    Select(usize, usize),
}

/// What a computed value is based on, by whether each source is no address. Sources behind the fourth count
/// as no address.
fn rule(inst: &Inst, is_plain: impl Fn(usize) -> bool) -> Rule {
    let count = inst.srcs.len().min(4);
    let all_plain = (0..count).all(&is_plain);
    let narrow = |reg: Reg| !matches!(reg.class, RegClass::R32 | RegClass::R64);
    if all_plain || inst.dsts.iter().filter_map(Dst::reg).any(narrow) {
        return if all_plain { Rule::Plain } else { Rule::Mixed };
    }
    let sum = |a: usize, b: usize| match (is_plain(a), is_plain(b)) {
        (true, true) => Rule::Plain,
        (true, false) => Rule::Source(b),
        (false, true) => Rule::Source(a),
        (false, false) => Rule::Mixed,
    };
    match inst.op {
        Op::Mov | Op::Cvta | Op::CvtaTo if count > 0 => Rule::Source(0),
        Op::Cvt if count > 0 && integers(inst) => Rule::Source(0),
        Op::Add | Op::Or | Op::Xor if count > 1 => sum(0, 1),
        Op::Sub if count > 1 && is_plain(1) => Rule::Source(0),
        Op::And if count > 1 && is_plain(1) && aligns(&inst.srcs[1]) => Rule::Source(0),
        Op::And if count > 1 && is_plain(0) && aligns(&inst.srcs[0]) => Rule::Source(1),
        // What is left of an address below a mask is an offset.
        Op::And if count > 1 && is_plain(1) && matches!(inst.srcs[1], Src::Imm(_)) => Rule::Plain,
        Op::Mad | Op::Mad24 if count > 2 && is_plain(0) && is_plain(1) => Rule::Source(2),
        Op::Selp if count > 1 => Rule::Select(0, 1),
        // The result of a comparison or a conversion of an address decides, it does not point.
        Op::Set | Op::Setp | Op::Isspacep => Rule::Plain,
        _ => Rule::Mixed,
    }
}

/// Whether a mask clears low bits alone.
fn aligns(src: &Src) -> bool {
    match src {
        Src::Imm(bits) => {
            let low = bits.trailing_zeros();
            low <= 12 && (bits >> low).trailing_ones() + low >= 32
        }
        _ => false,
    }
}

fn value_of(regs: &Registers, reg: Reg, lane: usize) -> u64 {
    let index = reg.index as usize;
    match reg.class {
        RegClass::R32 => regs.r32.get(index).map_or(0, |r| u64::from(r.0[lane])),
        RegClass::R64 => regs.r64.get(index).map_or(0, |r| r.0[lane]),
        RegClass::R16 => regs.r16.get(index).map_or(0, |r| u64::from(r.0[lane])),
        RegClass::Pred => 0,
    }
}

/// A generic address as an address of a space, if it lies there.
fn in_space(site: &Site, lane: usize, space: Space, generic: u64) -> Option<u64> {
    let warp = &site.warp;
    let (start, bytes) = match space {
        Space::Shared => warp.shared,
        Space::Local => (warp.local.0 + lane as u64 * warp.local.1, warp.local.1),
        Space::Param => warp.params,
        _ => {
            let space = site.launch.memory.space_of(generic);
            return matches!(space, Space::Global | Space::Const).then_some(generic);
        }
    };
    let offset = generic.wrapping_sub(start);
    (offset < bytes).then_some(offset)
}
