//! Inlining: the blocks of device functions replace direct calls in kernels.
//!
//! A call costs the interpreter an activation, and native code has no calls: it leaves for the interpreter.
//! After inlining both engines execute the same blocks, so positions, traps and counts agree.
//!
//! Each function that is inlined into a kernel gets a range of the kernel's registers and a region of its
//! frame, which all its copies share: a lane is in at most one copy, since functions that can reach
//! themselves stay calls. Arguments and results are copied by instructions with the place of the `call`. A
//! register that the function may read before it writes it is set to zero on entry, as it is in a new
//! activation.
//!
//! Invariant: the program keeps the rules of [`super`]. A kernel grows by at most four times the
//! instructions of all functions that it reaches, and 2,000 (`GROWTH`, `FREE`).
//!
//! What stays a call: indirect calls, functions without a body, functions that can reach themselves, calls
//! whose arguments have no simple copy, and everything in device functions themselves. What changes: an
//! access beyond a `.local` variable of the kernel may reach the region of a function, where it left the
//! frame before. So callers that look for such errors do not inline.

use super::graph::Graph;
use super::order::block_order;
use super::{
    Addr, ArgPlace, Base, Block, BlockId, Call, Callee, Dst, Function, Inst, ParamPlace, ParamSlot, Program,
    Reg, RegClass, RegCounts, Src, Terminator,
};
use crate::check::module::{FuncId, FunctionKind};
use crate::check::{CheckOptions, check};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// How many times the instructions of the functions that a kernel reaches it may grow by. Chosen.
const GROWTH: usize = 4;
/// Instructions that a kernel may grow by in any case. Chosen: small functions are always inlined.
const FREE: usize = 2000;
/// Most bytes of the frame of a kernel with its inlined functions.
const MOST_FRAME: u32 = 64 << 10;
/// Most instructions that copy one argument or result.
const MOST_COPIES: u32 = 64;

/// A function whose blocks are in a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// The function.
    pub function: FuncId,
    /// The kernel's register for each of its registers, by class and index; `None` for one that is not used.
    pub registers: [Vec<Option<u32>>; 4],
}

/// Inlines direct calls in all kernels.
pub fn inline(program: &mut Program) {
    let reaches = Reach::new(program);
    let counts: Vec<RegCounts> = program.functions.iter().map(|function| function.regs).collect();
    for index in 0..program.functions.len() {
        let id = FuncId(index as u32);
        let function = &program.functions[index];
        if function.kind != FunctionKind::Entry || !function.blocks.iter().any(|b| is_direct(&b.term)) {
            continue;
        }
        let mut kernel = Kernel::new(program, &reaches, id);
        kernel.run();
        let Kernel { made, .. } = kernel;
        if let Some(made) = made {
            let function = &mut program.functions[index];
            made.replace(function, &counts);
        }
    }
}

fn is_direct(term: &Terminator) -> bool {
    matches!(term, Terminator::Call(call) if matches!(call.callee, Callee::Direct(_)))
}

/// The functions that each function calls, directly or through others; indirect calls reach any function.
struct Reach(Vec<BTreeSet<u32>>);

impl Reach {
    fn new(program: &Program) -> Self {
        let count = program.functions.len() as u32;
        let callees = |function: &Function| {
            let mut found = BTreeSet::new();
            for block in &function.blocks {
                let Terminator::Call(call) = &block.term else { continue };
                match &call.callee {
                    Callee::Direct(func) => found.extend([func.0]),
                    Callee::Indirect { allowed: Some(list), .. } => found.extend(list.iter().map(|f| f.0)),
                    Callee::Indirect { allowed: None, .. } => found.extend(0..count),
                }
            }
            found
        };
        let direct: Vec<BTreeSet<u32>> = program.functions.iter().map(callees).collect();
        let all = |start: usize| {
            let mut reached = BTreeSet::new();
            let mut waiting: Vec<u32> = direct[start].iter().copied().collect();
            while let Some(next) = waiting.pop() {
                if reached.insert(next)
                    && let Some(more) = direct.get(next as usize)
                {
                    waiting.extend(more);
                }
            }
            reached
        };
        Self((0..direct.len()).map(all).collect())
    }

    fn is_recursive(&self, func: FuncId) -> bool {
        self.0.get(func.0 as usize).is_none_or(|reached| reached.contains(&func.0))
    }
}

/// The instructions of a function, with those in terminators.
fn size(function: &Function) -> usize {
    function.blocks.iter().map(|block| block.insts.len() + 1).sum()
}

/// A kernel while functions are inlined into it.
struct Kernel<'p> {
    program: &'p Program,
    reaches: &'p Reach,
    id: FuncId,
    /// The instructions that it may still grow by.
    left: usize,
    made: Option<Made>,
}

/// The new parts of a kernel.
struct Made {
    blocks: Vec<Block>,
    regs: RegCounts,
    reg_names: [Vec<String>; 4],
    frame_bytes: u32,
    frame_align: u32,
    objects: Vec<super::Object>,
    /// Registers for copies through memory.
    scratch: Scratch,
    /// The functions, with the first of their registers, the offset of their regions and the first of their
    /// objects.
    inlined: BTreeMap<u32, (RegCounts, u32, u32)>,
}

impl Made {
    /// Puts the parts into the kernel, with its blocks in the order of rule 1 and its registers dense.
    /// `counts` has the registers of each function of the program.
    fn replace(self, function: &mut Function, counts: &[RegCounts]) {
        let edges: Vec<(usize, usize)> = (self.blocks.iter().enumerate())
            .flat_map(|(from, block)| {
                block.term.successors().into_iter().map(move |to| (from, to.0 as usize))
            })
            .collect();
        let order = block_order(&Graph::new(self.blocks.len(), &edges));
        let mut number = vec![BlockId(0); self.blocks.len()];
        for (new, old) in order.iter().enumerate() {
            number[*old] = BlockId(new as u32);
        }
        let mut blocks: Vec<Option<Block>> = self.blocks.into_iter().map(Some).collect();
        function.blocks = (order.iter())
            .filter_map(|old| {
                let mut block = blocks[*old].take()?;
                block.term.for_each_successor_mut(&mut |to| *to = number[to.0 as usize]);
                Some(block)
            })
            .collect();
        let mut number = [self.regs.pred, self.regs.r16, self.regs.r32, self.regs.r64]
            .map(|count| vec![None; count as usize]);
        for block in &mut function.blocks {
            block.for_each_reg_mut(&mut |reg| number[reg.class as usize][reg.index as usize] = Some(0));
        }
        let counted = number.each_mut().map(|class| {
            let mut next = 0;
            for new in class.iter_mut().flatten() {
                *new = next;
                next += 1;
            }
            next
        });
        for block in &mut function.blocks {
            block.for_each_reg_mut(&mut |reg| {
                reg.index = number[reg.class as usize][reg.index as usize].unwrap_or(reg.index);
            });
        }
        let [pred, r16, r32, r64] = counted;
        function.regs = RegCounts { pred, r16, r32, r64 };
        for ((names, old), number) in function.reg_names.iter_mut().zip(self.reg_names).zip(&number) {
            *names = old.into_iter().zip(number).filter_map(|(name, new)| new.map(|_| name)).collect();
        }
        let registers = |id: u32, first: RegCounts| {
            let count = counts.get(id as usize).copied().unwrap_or_default();
            let of = |class: usize, first: u32, count: u32| {
                number[class].iter().copied().skip(first as usize).take(count as usize).collect()
            };
            [
                of(0, first.pred, count.pred),
                of(1, first.r16, count.r16),
                of(2, first.r32, count.r32),
                of(3, first.r64, count.r64),
            ]
        };
        function.inlined = (self.inlined.iter())
            .map(|(id, (first, ..))| Inlined { function: FuncId(*id), registers: registers(*id, *first) })
            .collect();
        function.frame_bytes = self.frame_bytes;
        function.frame_align = self.frame_align;
        function.objects = self.objects;
    }
}

/// One register of each class but predicates.
struct Scratch([Reg; 3]);

impl Scratch {
    fn after(regs: RegCounts) -> Self {
        let classes = [(RegClass::R16, regs.r16), (RegClass::R32, regs.r32), (RegClass::R64, regs.r64)];
        Self(classes.map(|(class, index)| Reg { class, index }))
    }

    /// The register for so many bytes.
    fn of(&self, bytes: u32) -> Reg {
        match bytes {
            8.. => self.0[2],
            4..8 => self.0[1],
            0..4 => self.0[0],
        }
    }
}

/// Instructions that copy, made from a text, without places and operands of their own.
fn templates() -> &'static Templates {
    // A `LazyLock` would refer to the checker, so that every test program of this crate would contain it.
    static TEMPLATES: OnceLock<Templates> = OnceLock::new();
    TEMPLATES.get_or_init(Templates::new)
}

/// The text of the instructions in [`Templates`].
const TEMPLATE_TEXT: &str = ".version 6.4
.target sm_70
.address_size 64
.visible .entry copies(.param .b64 given)
{
.reg .pred %p<2>; .reg .b16 %h<2>; .reg .b32 %r<2>; .reg .b64 %d<2>;
.local .align 8 .b8 own[8];
mov.pred %p0, %p1; mov.b16 %h0, %h1; mov.b32 %r0, %r1; mov.b64 %d0, %d1; setp.ne.u32 %p0, 0, 0;
ld.local.b8 %h0, [own]; ld.local.b16 %h0, [own]; ld.local.b32 %r0, [own]; ld.local.b64 %d0, [own];
ld.param.b8 %h0, [given]; ld.param.b16 %h0, [given]; ld.param.b32 %r0, [given]; ld.param.b64 %d0, [given];
st.local.b8 [own], %h0; st.local.b16 [own], %h0; st.local.b32 [own], %r0; st.local.b64 [own], %d0;
ret;
}";

struct Templates(Vec<Inst>);

/// The places of the instructions in the text.
const CLEAR: usize = 4;
const LOADS: usize = 5;
const PARAMS: usize = 9;
const STORES: usize = 13;

impl Templates {
    fn new() -> Self {
        let module = check("copies.ptx", TEMPLATE_TEXT, &CheckOptions::default()).module;
        let functions = module.map(|module| super::lower(module).functions).unwrap_or_default();
        Self(functions.into_iter().flat_map(|f| f.blocks).flat_map(|block| block.insts).collect())
    }

    fn inst(&self, index: usize, call: &Inst) -> Inst {
        Inst { span: call.span, loc: call.loc, object: None, ..self.0[index].clone() }
    }

    /// `mov` into a register; a predicate can only be set to a register, or cleared.
    fn set(&self, into: Reg, from: Src, call: &Inst) -> Inst {
        if into.class == RegClass::Pred && !matches!(from, Src::Reg(_)) {
            return Inst { dsts: vec![Dst::Reg(into)], ..self.inst(CLEAR, call) };
        }
        Inst { dsts: vec![Dst::Reg(into)], srcs: vec![from], ..self.inst(into.class as usize, call) }
    }

    /// A load from the frame or the kernel's parameters, at a distance from the place.
    fn load(&self, from: ArgPlace, distance: u32, bytes: u32, into: Reg, call: &Inst) -> Option<Inst> {
        let (first, base, offset) = match from {
            ArgPlace::Frame { offset, .. } => (LOADS, Base::Frame, offset),
            ArgPlace::KernelParam { offset, .. } => (PARAMS, Base::KernelParam, offset),
            ArgPlace::Reg(_) | ArgPlace::Imm(_) | ArgPlace::None => return None,
        };
        let mut inst = self.inst(first + width(bytes)?, call);
        let address = Addr { base, index: None, offset: i64::from(offset) + i64::from(distance) };
        inst.dsts = vec![Dst::Reg(into)];
        *inst.srcs.iter_mut().find(|src| matches!(src, Src::Addr(_)))? = Src::Addr(address);
        Some(inst)
    }

    /// A store into the frame.
    fn store(&self, bytes: u32, at: u32, value: Src, call: &Inst) -> Option<Inst> {
        let mut inst = self.inst(STORES + width(bytes)?, call);
        let address = Addr { base: Base::Frame, index: None, offset: i64::from(at) };
        for src in &mut inst.srcs {
            match src {
                Src::Addr(_) => *src = Src::Addr(address),
                Src::Reg(_) => *src = value.clone(),
                Src::Absent | Src::Not(_) | Src::Imm(_) | Src::Sreg(..) | Src::Video(_) => {}
            }
        }
        Some(inst)
    }
}

/// The place of a width among the templates of a kind.
fn width(bytes: u32) -> Option<usize> {
    [1, 2, 4, 8].iter().position(|width| *width == bytes)
}

impl<'p> Kernel<'p> {
    fn new(program: &'p Program, reaches: &'p Reach, id: FuncId) -> Self {
        let reached = reaches.0[id.0 as usize].iter().filter_map(|f| program.functions.get(*f as usize));
        let all = size(&program.functions[id.0 as usize]) + reached.map(size).sum::<usize>();
        Self { program, reaches, id, left: FREE + GROWTH * all, made: None }
    }

    fn run(&mut self) {
        let function = &self.program.functions[self.id.0 as usize];
        let mut made = Made {
            blocks: function.blocks.iter().map(copy).collect(),
            regs: function.regs,
            reg_names: function.reg_names.clone(),
            frame_bytes: function.frame_bytes,
            frame_align: function.frame_align,
            objects: function.objects.clone(),
            scratch: Scratch::after(function.regs),
            inlined: BTreeMap::new(),
        };
        made.regs = RegCounts {
            pred: made.regs.pred,
            r16: made.regs.r16 + 1,
            r32: made.regs.r32 + 1,
            r64: made.regs.r64 + 1,
        };
        for names in made.reg_names.iter_mut().skip(1) {
            names.push(String::new());
        }
        let mut at = 0;
        let mut changed = false;
        // Blocks of inlined functions are appended, so calls in them are visited as well.
        while at < made.blocks.len() {
            changed |= self.inline_at(&mut made, at);
            at += 1;
        }
        self.made = changed.then_some(made);
    }

    /// Replaces the call at the end of a block, if it can be.
    fn inline_at(&mut self, made: &mut Made, at: usize) -> bool {
        let Terminator::Call(call) = &made.blocks[at].term else { return false };
        let Callee::Direct(func) = call.callee else { return false };
        let Some(function) = self.program.functions.get(func.0 as usize) else { return false };
        let fits = function.kind != FunctionKind::Entry
            && !function.blocks.is_empty()
            && !self.reaches.is_recursive(func)
            && function.params.len() == call.args.len()
            && function.returns.len() >= call.rets.len();
        if !fits {
            return false;
        }
        let call = call.clone();
        let Some((first, region, objects)) = made.place(func, function) else { return false };
        let (Some(arguments), Some(results)) = (
            arguments(&call, function, (first, region), &made.scratch),
            results(&call, function, (first, region), &made.scratch),
        ) else {
            return false;
        };
        let zeros = cleared(function, first, &call.inst);
        let returns = function.blocks.iter().filter(|block| matches!(block.term, Terminator::Ret(_))).count();
        let grows = size(function) + arguments.len() + zeros.len() + returns * results.len();
        let Some(left) = self.left.checked_sub(grows) else { return false };
        self.left = left;
        let entry = made.blocks.len() as u32;
        let block = &mut made.blocks[at];
        block.insts.extend(zeros);
        block.insts.extend(arguments);
        block.term = Terminator::Goto(BlockId(entry), None);
        for block in &function.blocks {
            let mut block = copy(block);
            block.for_each_reg_mut(&mut |reg| *reg = moved(*reg, first));
            for inst in block.insts.iter_mut().chain(block.term.inst_mut()) {
                for src in &mut inst.srcs {
                    move_frame(src, region);
                }
                inst.object = inst.object.map(|object| object + objects);
            }
            match &mut block.term {
                Terminator::Ret(_) => {
                    block.insts.extend(results.iter().cloned());
                    block.term = Terminator::Goto(call.next, None);
                }
                Terminator::Call(nested) => {
                    for place in nested.args.iter_mut().chain(&mut nested.rets) {
                        if let ArgPlace::Frame { offset, .. } = place {
                            *offset += region;
                        }
                    }
                    nested.next.0 += entry;
                }
                other => other.for_each_successor_mut(&mut |to| to.0 += entry),
            }
            made.blocks.push(block);
        }
        true
    }
}

impl Made {
    /// The first registers, the region of the frame and the first object of a function in this kernel.
    fn place(&mut self, id: FuncId, function: &Function) -> Option<(RegCounts, u32, u32)> {
        if let Some(placed) = self.inlined.get(&id.0) {
            return Some(*placed);
        }
        let region = self.frame_bytes.checked_next_multiple_of(function.frame_align.max(1))?;
        let end = region.checked_add(function.frame_bytes).filter(|end| *end <= MOST_FRAME)?;
        let first = self.regs;
        let objects = self.objects.len() as u32;
        self.frame_bytes = end;
        self.frame_align = self.frame_align.max(function.frame_align);
        self.regs.pred += function.regs.pred;
        self.regs.r16 += function.regs.r16;
        self.regs.r32 += function.regs.r32;
        self.regs.r64 += function.regs.r64;
        for (names, more) in self.reg_names.iter_mut().zip(&function.reg_names) {
            names.extend(more.iter().cloned());
        }
        for object in &function.objects {
            let mut object = object.clone();
            if object.base == Base::Frame {
                object.offset += u64::from(region);
            }
            self.objects.push(object);
        }
        self.inlined.insert(id.0, (first, region, objects));
        Some((first, region, objects))
    }
}

fn copy(block: &Block) -> Block {
    Block { label: block.label.clone(), insts: block.insts.clone(), term: block.term.clone() }
}

/// A register of an inlined function among the kernel's.
fn moved(reg: Reg, first: RegCounts) -> Reg {
    let first = match reg.class {
        RegClass::Pred => first.pred,
        RegClass::R16 => first.r16,
        RegClass::R32 => first.r32,
        RegClass::R64 => first.r64,
    };
    Reg { class: reg.class, index: reg.index + first }
}

fn move_frame(src: &mut Src, region: u32) {
    match src {
        Src::Addr(addr) if addr.base == Base::Frame => addr.offset += i64::from(region),
        Src::Video(video) => move_frame(&mut video.value, region),
        Src::Addr(_) | Src::Absent | Src::Reg(_) | Src::Not(_) | Src::Imm(_) | Src::Sreg(..) => {}
    }
}

/// The registers that a function may read before it writes them, other than its parameters, set to zero.
fn cleared(function: &Function, first: RegCounts, call: &Inst) -> Vec<Inst> {
    let given: BTreeSet<Reg> = (function.params.iter())
        .filter_map(|slot| match slot.place {
            ParamPlace::Reg(reg) => Some(reg),
            ParamPlace::Frame(_) | ParamPlace::Kernel(_) => None,
        })
        .collect();
    let live = live_in(function);
    live.difference(&given).map(|reg| templates().set(moved(*reg, first), Src::Imm(0), call)).collect()
}

/// The registers that are live at the start of a function.
fn live_in(function: &Function) -> BTreeSet<Reg> {
    let mut results = BTreeSet::new();
    for slot in &function.returns {
        if let ParamPlace::Reg(reg) = slot.place {
            results.insert(reg);
        }
    }
    let mut starts: Vec<BTreeSet<Reg>> = vec![BTreeSet::new(); function.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (index, block) in function.blocks.iter().enumerate().rev() {
            let mut live: BTreeSet<Reg> = match &block.term {
                Terminator::Ret(_) => results.clone(),
                term => {
                    let after = term.successors().into_iter().filter_map(|to| starts.get(to.0 as usize));
                    after.flatten().copied().collect()
                }
            };
            block.term.for_each_def(&mut |reg| {
                live.remove(&reg);
            });
            block.term.for_each_use(&mut |reg| {
                live.insert(reg);
            });
            for inst in block.insts.iter().rev() {
                if inst.guard.is_none() {
                    inst.for_each_def(&mut |reg| {
                        live.remove(&reg);
                    });
                }
                inst.for_each_use(&mut |reg| {
                    live.insert(reg);
                });
            }
            changed |= starts[index].len() != live.len();
            starts[index] = live;
        }
    }
    starts.into_iter().next().unwrap_or_default()
}

/// The instructions that copy the arguments of a call, or `None` if one has no simple copy.
fn arguments(
    call: &Call,
    function: &Function,
    (first, region): (RegCounts, u32),
    scratch: &Scratch,
) -> Option<Vec<Inst>> {
    let mut insts = Vec::new();
    for (arg, slot) in call.args.iter().zip(&function.params) {
        transfer(&mut insts, *arg, inner(*slot, first, region)?, (&call.inst, scratch))?;
    }
    Some(insts)
}

/// The instructions that copy the results, as [`arguments`].
fn results(
    call: &Call,
    function: &Function,
    (first, region): (RegCounts, u32),
    scratch: &Scratch,
) -> Option<Vec<Inst>> {
    let mut insts = Vec::new();
    for (ret, slot) in call.rets.iter().zip(&function.returns) {
        let slot = inner(*slot, first, region)?;
        let to = match *ret {
            ArgPlace::None => continue,
            ArgPlace::Reg(reg) => ParamSlot { place: ParamPlace::Reg(reg), ..slot },
            ArgPlace::Frame { offset, bytes } => {
                ParamSlot { place: ParamPlace::Frame(offset), bytes: bytes.min(slot.bytes), align: 1 }
            }
            ArgPlace::KernelParam { .. } | ArgPlace::Imm(_) => return None,
        };
        let from = match slot.place {
            ParamPlace::Reg(reg) => ArgPlace::Reg(reg),
            ParamPlace::Frame(offset) => ArgPlace::Frame { offset, bytes: slot.bytes },
            ParamPlace::Kernel(_) => return None,
        };
        transfer(&mut insts, from, to, (&call.inst, scratch))?;
    }
    Some(insts)
}

/// A slot of an inlined function as a place in the kernel.
fn inner(slot: ParamSlot, first: RegCounts, region: u32) -> Option<ParamSlot> {
    let place = match slot.place {
        ParamPlace::Reg(reg) => ParamPlace::Reg(moved(reg, first)),
        ParamPlace::Frame(offset) => ParamPlace::Frame(offset.checked_add(region)?),
        ParamPlace::Kernel(_) => return None,
    };
    Some(ParamSlot { place, ..slot })
}

fn class_bytes(class: RegClass) -> u32 {
    match class {
        RegClass::Pred | RegClass::R16 => 2,
        RegClass::R32 => 4,
        RegClass::R64 => 8,
    }
}

/// Copies one argument or result. The result is `None` if there is no simple copy.
fn transfer(
    insts: &mut Vec<Inst>,
    from: ArgPlace,
    to: ParamSlot,
    (call, scratch): (&Inst, &Scratch),
) -> Option<()> {
    match (from, to.place) {
        (ArgPlace::None, _) => {}
        (ArgPlace::Reg(reg), ParamPlace::Reg(into)) if reg.class == into.class => {
            insts.push(templates().set(into, Src::Reg(reg), call));
        }
        (ArgPlace::Imm(bits), ParamPlace::Reg(into)) => {
            insts.push(templates().set(into, Src::Imm(bits), call))
        }
        (ArgPlace::Reg(reg), ParamPlace::Frame(at))
            if reg.class != RegClass::Pred && to.bytes <= class_bytes(reg.class) =>
        {
            insts.push(templates().store(to.bytes, at, Src::Reg(reg), call)?);
        }
        (ArgPlace::Imm(bits), ParamPlace::Frame(at)) => {
            insts.push(templates().store(to.bytes, at, Src::Imm(bits), call)?);
        }
        (ArgPlace::Frame { bytes, .. } | ArgPlace::KernelParam { bytes, .. }, ParamPlace::Reg(into))
            if into.class != RegClass::Pred && bytes == class_bytes(into.class) && bytes == to.bytes =>
        {
            insts.push(templates().load(from, 0, bytes, into, call)?);
        }
        (
            ArgPlace::Frame { offset, bytes } | ArgPlace::KernelParam { offset, bytes },
            ParamPlace::Frame(at),
        ) => {
            let bytes = bytes.min(to.bytes);
            let mut done = 0;
            let before = insts.len();
            while done < bytes {
                let left = bytes - done;
                let fits = |part: &u32| {
                    *part <= left
                        && (offset + done).is_multiple_of(*part)
                        && (at + done).is_multiple_of(*part)
                };
                let part = [8, 4, 2, 1].into_iter().find(fits)?;
                let register = scratch.of(part);
                insts.push(templates().load(from, done, part, register, call)?);
                insts.push(templates().store(part, at + done, Src::Reg(register), call)?);
                done += part;
            }
            if insts.len() - before > MOST_COPIES as usize {
                return None;
            }
        }
        _ => return None,
    }
    Some(())
}
