//! Checks that a [`Program`] keeps the rules of [`super`].
//!
//! Invariant: a program from [`lower`](super::lower()) has no violation; tests verify the program after every
//! pass. The verifier uses only the program and shares no code with lowering. It finds loops by definition,
//! so it is slow on large functions.
//!
//! It checks no types, except that each register's class can hold its operand.

use super::flow::{Flow, flow};
use super::graph::Graph;
use super::{
    Addr, ArgPlace, Base, BlockId, Call, Callee, Dst, Function, Guard, Inst, ParamPlace, Program, Reg,
    RegClass, Src, Terminator,
};
use crate::check::module::FunctionKind;
use crate::isa::form::{self, Dir, Kind, OperandForm, Value};
use crate::isa::{Mods, Op, Space, Ty};

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the function.
    pub function: String,
    /// The block, if the rule is about one.
    pub block: Option<BlockId>,
    /// The violated rule of [`super`], 1 to 5; 0 for sizes and places.
    pub rule: u8,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.function)?;
        if let Some(block) = self.block {
            write!(f, " bb{}", block.0)?;
        }
        write!(f, ": rule {}: {}", self.rule, self.what)
    }
}

/// All violations of a program.
pub fn verify(program: &Program) -> Vec<Violation> {
    let mut violations = Vec::new();
    for function in &program.functions {
        let mut check = Check { program, function, block: None, violations: &mut violations };
        check.places();
        if function.blocks.is_empty() {
            continue;
        }
        if check.targets() {
            check.order();
        }
        check.registers();
        for (i, block) in function.blocks.iter().enumerate() {
            check.block = Some(BlockId(i as u32));
            for inst in &block.insts {
                check.straight(inst);
            }
            check.terminator(&block.term);
        }
    }
    violations
}

struct Check<'a> {
    program: &'a Program,
    function: &'a Function,
    block: Option<BlockId>,
    violations: &'a mut Vec<Violation>,
}

impl Check<'_> {
    fn require(&mut self, holds: bool, rule: u8, what: impl FnOnce() -> String) {
        if !holds {
            let function = self.function.name.clone();
            self.violations.push(Violation { function, block: self.block, rule, what: what() });
        }
    }

    /// Slots lie in their buffers, aligned, without overlap.
    fn places(&mut self) {
        let function = self.function;
        let mut taken: Vec<(bool, u32, u32)> = Vec::new();
        for slot in function.params.iter().chain(&function.returns) {
            let (kernel, offset, size) = match slot.place {
                ParamPlace::Reg(_) => continue,
                ParamPlace::Kernel(offset) => (true, offset, function.param_bytes),
                ParamPlace::Frame(offset) => (false, offset, function.frame_bytes),
            };
            let entry = function.kind == FunctionKind::Entry;
            self.require(kernel == entry, 0, || "a parameter lies in the wrong buffer".into());
            let end = offset.saturating_add(slot.bytes);
            self.require(end <= size, 0, || format!("a parameter at {offset} ends at {end} of {size}"));
            let align = slot.align.max(1);
            self.require(offset % align == 0, 0, || {
                format!("a parameter at {offset} is not aligned to {align}")
            });
            let overlaps = taken.iter().any(|(k, start, to)| *k == kernel && offset < *to && *start < end);
            self.require(!overlaps, 0, || format!("the parameter at {offset} overlaps another"));
            taken.push((kernel, offset, end));
        }
        let align = function.frame_align;
        self.require(align.is_power_of_two(), 0, || format!("the frame is aligned to {align}"));
    }

    /// Every successor exists.
    fn targets(&mut self) -> bool {
        let n = self.function.blocks.len();
        let before = self.violations.len();
        for (i, block) in self.function.blocks.iter().enumerate() {
            self.block = Some(BlockId(i as u32));
            for to in block.term.successors() {
                self.require((to.0 as usize) < n, 1, || format!("goes to bb{}, which does not exist", to.0));
            }
        }
        self.block = None;
        self.violations.len() == before
    }

    /// Rule 1: the order of blocks.
    fn order(&mut self) {
        let blocks = &self.function.blocks;
        let mut edges = Vec::new();
        for (from, block) in blocks.iter().enumerate() {
            edges.extend(block.term.successors().iter().map(|to| (from, to.0 as usize)));
        }
        let graph = Graph::new(blocks.len(), &edges);
        let all = vec![true; graph.len()];
        let reached = reach(&all, 0, |v| graph.succs(v));
        for v in (0..graph.len()).filter(|&v| !reached[v]) {
            self.require(false, 1, || format!("bb{v} is unreachable"));
        }
        // The loop of `h` in this order: the blocks from `h` on that `h` reaches and that reach `h` through
        // such blocks.
        for h in 0..graph.len() {
            let latches: Vec<usize> = graph.preds(h).iter().copied().filter(|&from| from >= h).collect();
            if latches.is_empty() {
                continue;
            }
            let from_h: Vec<bool> = (0..graph.len()).map(|v| v >= h).collect();
            let down = reach(&from_h, h, |v| graph.succs(v));
            let up = reach(&from_h, h, |v| graph.preds(v));
            for latch in latches {
                self.require(down[latch], 1, || {
                    format!("bb{latch} goes back to bb{h}, which is not the header of a loop around it")
                });
            }
            let members: Vec<usize> = (h..graph.len()).filter(|&v| down[v] && up[v]).collect();
            let last = members.last().copied().unwrap_or(h);
            self.require(last + 1 - h == members.len(), 1, || format!("the loop of bb{h} is not contiguous"));
        }
    }

    /// Rule 4: registers are in range, without gaps, and named.
    fn registers(&mut self) {
        let function = self.function;
        let regs = function.regs;
        let counts = [regs.pred, regs.r16, regs.r32, regs.r64];
        let mut used: [Vec<bool>; 4] = counts.map(|n| vec![false; n as usize]);
        let mut outside = Vec::new();
        let mut see = |reg: Reg| match used[reg.class as usize].get_mut(reg.index as usize) {
            Some(used) => *used = true,
            None => outside.push(reg),
        };
        for slot in function.params.iter().chain(&function.returns) {
            if let ParamPlace::Reg(reg) = slot.place {
                see(reg);
            }
        }
        for block in &function.blocks {
            let branch = match &block.term {
                Terminator::Branch { inst, .. } => Some(inst),
                Terminator::Goto(..)
                | Terminator::Switch { .. }
                | Terminator::Call(_)
                | Terminator::WarpSync { .. }
                | Terminator::Barrier { .. }
                | Terminator::Ret(_)
                | Terminator::Exit(_) => None,
            };
            for inst in block.insts.iter().chain(branch) {
                inst.for_each_use(&mut see);
                inst.for_each_def(&mut see);
            }
            block.term.for_each_use(&mut see);
            block.term.for_each_def(&mut see);
        }
        for reg in outside {
            self.require(false, 4, || format!("{reg} is not below the count of its class"));
        }
        for (class, used) in used.iter().enumerate() {
            for (index, _) in used.iter().enumerate().filter(|(_, used)| !**used) {
                self.require(false, 4, || format!("register {index} of class {class} is never mentioned"));
            }
            let names = function.reg_names[class].len();
            self.require(names == used.len(), 4, || format!("{names} names for {} registers", used.len()));
        }
    }

    fn straight(&mut self, inst: &Inst) {
        let flow = flow(inst.op);
        self.require(flow == Flow::Straight, 2, || format!("`{}` stands inside a block", inst.op.name()));
        if let Some(guard) = inst.guard {
            self.guard(guard);
        }
        self.inst(inst);
    }

    fn guard(&mut self, guard: Guard) {
        self.require(guard.pred.class == RegClass::Pred, 2, || format!("{} is a guard", guard.pred));
    }

    fn terminator(&mut self, term: &Terminator) {
        let inst = term.inst();
        if let Some(inst) = inst {
            self.require(inst.guard.is_none(), 2, || {
                format!("`{}` of a terminator has a guard", inst.op.name())
            });
        }
        let found = inst.map_or(Flow::Straight, |inst| flow(inst.op));
        let fits = match term {
            Terminator::Goto(..) => inst.is_none() || found == Flow::Bra,
            Terminator::Branch { .. } => found != Flow::Straight,
            Terminator::Switch { .. } => found == Flow::Switch,
            Terminator::Call(_) => found == Flow::Call,
            Terminator::WarpSync { .. } => found == Flow::WarpSync,
            Terminator::Barrier { .. } => found == Flow::Barrier,
            Terminator::Ret(_) => inst.is_none() || found == Flow::Ret,
            Terminator::Exit(_) => found == Flow::Exit,
        };
        self.require(fits, 2, || format!("the terminator is no `{}`", inst.map_or("", |i| i.op.name())));
        match term {
            Terminator::Branch { cond, then, inst, .. } => {
                self.guard(*cond);
                if flow(inst.op) != Flow::Bra {
                    let block = self.function.blocks.get(then.0 as usize);
                    let alone = block.is_some_and(|b| {
                        b.insts.is_empty()
                            && b.term.inst().is_some_and(|i| i.op == inst.op && i.span == inst.span)
                    });
                    self.require(alone, 2, || {
                        format!("bb{} is not the guarded `{}` alone", then.0, inst.op.name())
                    });
                }
            }
            Terminator::Switch { inst, .. }
            | Terminator::WarpSync { inst, .. }
            | Terminator::Barrier { inst, .. }
            | Terminator::Exit(inst) => self.inst(inst),
            Terminator::Call(call) => self.call(call),
            Terminator::Goto(..) | Terminator::Ret(_) => {}
        }
    }

    fn call(&mut self, call: &Call) {
        self.require(call.inst.dsts.is_empty() && call.inst.srcs.is_empty(), 5, || {
            "a call has operands".into()
        });
        if let Callee::Direct(func) = call.callee {
            let Some(callee) = self.program.functions.get(func.0 as usize) else {
                self.require(false, 2, || format!("function {} does not exist", func.0));
                return;
            };
            for (places, slots) in [(&call.args, &callee.params), (&call.rets, &callee.returns)] {
                let (n, m) = (places.len(), slots.len());
                self.require(n == m, 5, || format!("{n} places for {m} parameters of `{}`", callee.name));
            }
        }
        for place in call.args.iter().chain(&call.rets) {
            if let ArgPlace::Frame { offset, bytes } = place {
                let size = self.function.frame_bytes;
                let end = offset.saturating_add(*bytes);
                self.require(end <= size, 0, || {
                    format!("an argument ends at {end} of {size} bytes of the frame")
                });
            }
        }
    }

    /// Rules 3 and 5: modifiers complete, operands as the row says.
    fn inst(&mut self, inst: &Inst) {
        let form = inst.row.form();
        let name = inst.op.name();
        self.require(form.row.op == inst.op, 5, || format!("the row of `{name}` is another's"));
        for set in form.sets.iter().filter(|set| set.default.is_some()) {
            let given = inst.mods.all().iter().any(|(slot, word)| *slot == set.slot && set.holds(*word));
            self.require(given, 3, || format!("`{name}` lacks its default `.{}`", set.name));
        }
        let space = inst.mods.space();
        for src in &inst.srcs {
            let Src::Addr(Addr { base, .. }) = src else { continue };
            let accesses = form.operands.iter().any(|o| matches!(o.kind, Kind::Address(_) | Kind::Variable));
            let fits = match base {
                Base::Frame => space == Space::Local,
                Base::KernelParam => space == Space::Param,
                Base::Var(_) => space != Space::Generic,
                Base::Absolute | Base::Reg(_) | Base::Func(_) => true,
            };
            self.require(fits || !accesses, 3, || {
                format!("`{name}` has space `{}` for {base:?}", space.name())
            });
        }
        self.operands(inst, &form.operands);
    }

    /// The operands in order, each with the number of elements of its form.
    fn operands(&mut self, inst: &Inst, operands: &[OperandForm]) {
        let mut rest = Rest { dsts: &inst.dsts, srcs: &inst.srcs };
        for operand in operands {
            self.operand(inst, operand, &mut rest);
        }
        let (dsts, srcs) = (rest.dsts.len(), rest.srcs.len());
        self.require(dsts == 0 && srcs == 0, 5, || {
            format!("`{}` has {dsts} destinations and {srcs} sources too many", inst.op.name())
        });
    }

    fn operand(&mut self, inst: &Inst, operand: &OperandForm, rest: &mut Rest<'_>) {
        for member in &operand.members {
            self.operand(inst, member, rest);
        }
        let name = inst.op.name();
        let ty = operand.ty(&inst.mods);
        let count = elements(operand, &inst.mods);
        if operand.dir == Dir::Out {
            for _ in 0..count.unwrap_or(rest.dsts.len()) {
                let Some(dst) = rest.dst() else {
                    self.require(false, 5, || format!("`{name}` lacks a destination"));
                    return;
                };
                self.class(inst, operand, ty, dst.reg());
            }
            if let Some((second, _)) = &operand.second {
                match rest.dst() {
                    Some(dst) => self.class(inst, second, second.ty(&inst.mods), dst.reg()),
                    None => self.require(false, 5, || format!("`{name}` lacks the second of a pair")),
                }
            }
            return;
        }
        for _ in 0..count.unwrap_or(rest.srcs.len()) {
            match rest.src() {
                None => self.require(false, 5, || format!("`{name}` lacks source `{}`", operand.name)),
                // An omitted element of a vector store.
                Some(Src::Absent) if inst.op == Op::St && operand.lanes(&inst.mods) > 2 => {}
                Some(Src::Absent) => {
                    let optional = operand.optional;
                    self.require(optional, 5, || format!("source `{}` of `{name}` is absent", operand.name));
                    return;
                }
                Some(Src::Reg(reg) | Src::Not(reg)) => self.class(inst, operand, ty, Some(*reg)),
                Some(Src::Imm(_) | Src::Sreg(..) | Src::Addr(_) | Src::Video(_)) => {}
            }
        }
    }

    /// The register's class holds the operand's type.
    fn class(&mut self, inst: &Inst, operand: &OperandForm, ty: Option<Ty>, reg: Option<Reg>) {
        let (Some(ty), Some(reg)) = (ty, reg) else { return };
        let wider = match operand.kind {
            Kind::Value(Value { wider, .. }) => wider,
            _ => false,
        };
        let class = RegClass::of(ty).0;
        let fits = reg.class == class || (wider && reg.class > class && class != RegClass::Pred);
        // The checker validates `mov` between the name of an opaque variable, or another width, and a
        // register.
        let free = matches!(operand.kind, Kind::MovSource | Kind::Opaque(_) | Kind::Variable);
        self.require(fits || free, 4, || {
            format!("{reg} is operand `{}` of `{}`, which is `.{}`", operand.name, inst.op.name(), ty.name())
        });
    }
}

/// The nodes that a walk over `next` reaches from `start` within the `allowed` nodes.
fn reach<'g>(allowed: &[bool], start: usize, next: impl Fn(usize) -> &'g [usize]) -> Vec<bool> {
    let mut seen = vec![false; allowed.len()];
    let mut work = vec![start];
    while let Some(v) = work.pop() {
        if allowed[v] && !std::mem::replace(&mut seen[v], true) {
            work.extend(next(v));
        }
    }
    seen
}

/// Operands that are not matched with the form's operands yet.
struct Rest<'a> {
    dsts: &'a [Dst],
    srcs: &'a [Src],
}

impl<'a> Rest<'a> {
    fn dst(&mut self) -> Option<&'a Dst> {
        let (first, rest) = self.dsts.split_first()?;
        self.dsts = rest;
        Some(first)
    }

    fn src(&mut self) -> Option<&'a Src> {
        let (first, rest) = self.srcs.split_first()?;
        self.srcs = rest;
        Some(first)
    }
}

/// The number of elements of an operand that is present; `None`: all that are there.
fn elements(operand: &OperandForm, mods: &Mods) -> Option<usize> {
    match operand.kind {
        Kind::Value(_) => {
            let parts = RegClass::of(operand.ty(mods).unwrap_or(Ty::B32)).1;
            Some(usize::from(operand.lanes(mods)) * parts)
        }
        Kind::Coords => mods.geom().map(|geom| usize::from(form::coords(geom, Ty::U32).used)),
        Kind::Offset | Kind::Grad => mods.geom().map(|geom| usize::from(form::companion_lanes(geom))),
        Kind::Fragment(matrix) => form::fragment(matrix, mods).map(|f| usize::from(f.registers)),
        Kind::Imm { .. } | Kind::Address(_) | Kind::Variable | Kind::Opaque(_) | Kind::LevelOfDetail => {
            Some(1)
        }
        Kind::MovSource => Some(RegClass::of(operand.ty(mods).unwrap_or(Ty::B32)).1),
        Kind::Elems => None,
        // In the terminator.
        Kind::Label
        | Kind::TargetList
        | Kind::Func
        | Kind::FuncPtr
        | Kind::CallTargets
        | Kind::Args
        | Kind::Rets => Some(0),
        // Its members are counted instead.
        Kind::Bracket => Some(0),
    }
}
