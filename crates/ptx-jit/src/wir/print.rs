//! The text form of WIR. [`parse`](super::parse) reads it back.
//!
//! # Shape
//! ```text
//! start b2
//! entry 0 b0 [r32.1=v4]
//! resume 0 ptx 1 barrier 0 b5 [r32.1=v9]
//! zero v1:r32(= 0)
//! b0 ptx 0 full from b3 b4:
//!   v2:r32(uniform) = phi v1 v7
//!   v3:mask(uniform) = mask 0xffffffff
//!   v4:r32(affine align 5 lanes [0+1x32]) = inst 0.0 v3        ; line 7: mov.u32
//!   inst 0.1 v3 v5 v4                                          ; line 8: st.global.u32
//!   if pred v6 then b1 else b2
//! ```
//! An instruction is named by its PTX block and its index there; the comment is for people. Its first operand
//! is the mask of its lanes. The comment of an access ends with its plan and its prefetches, once these are
//! decided, and the comment of a block's check names the checked range. A block lists its groups of accesses
//! after its operations, and then the block that issues the prefetches which it defers. The constants of the
//! lanes of an affine value are printed as runs: first constant, step, and count.
//!
//! Invariant: the text contains all parts of a function that passes read. Parts that follow from the rest are
//! left out: [`Func::needed`], and kinds of values that nothing defines. Printing, parsing and printing gives
//! the same text.

use super::decision::Decision;
use super::{
    Block, BlockId, Chain, Cond, Exit, ExitReason, Func, GuardKind, Kind, Op, OpKind, Pending, Shape, Site,
    Term, Value,
};
use ptx::ir::{Function, Program, Reg, RegClass};
use std::fmt::{self, Write};

/// The text of a function. With the PTX function that it was built of, each instruction has a comment.
pub fn print(func: &Func, ptx: Option<(&Program, &Function)>) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = Printer { func, ptx, out: &mut text }.func();
    text
}

struct Printer<'a> {
    func: &'a Func,
    ptx: Option<(&'a Program, &'a Function)>,
    out: &'a mut String,
}

impl Printer<'_> {
    fn func(&mut self) -> fmt::Result {
        let func = self.func;
        writeln!(self.out, "start b{}", func.start.0)?;
        for entry in &func.entries {
            write!(self.out, "entry {} b{}", entry.block, entry.node.0)?;
            self.regs(&entry.relies)?;
            writeln!(self.out)?;
        }
        for (at, resume) in func.resumes.iter().enumerate() {
            write!(self.out, "resume {at} ptx {}", resume.block)?;
            match resume.id {
                Some(id) => write!(self.out, " barrier {id}")?,
                None => write!(self.out, " loop")?,
            }
            let counted = if resume.counted { " counted" } else { "" };
            write!(self.out, "{counted} b{}", resume.node.0)?;
            self.regs(&resume.kept)?;
            writeln!(self.out)?;
        }
        let slots = func.slot_memory.as_deref().filter(|_| self.ptx.is_some());
        slots.iter().flat_map(|slots| slots.head()).try_for_each(|line| writeln!(self.out, "{line}"))?;
        for zero in &func.zeros {
            let word = if func.undef.contains(zero) { "undef" } else { "zero" };
            write!(self.out, "{word} ")?;
            self.def(*zero)?;
            writeln!(self.out)?;
        }
        (0..).zip(&func.blocks).try_for_each(|(at, block)| self.block(at, block))
    }

    fn block(&mut self, at: u32, block: &Block) -> fmt::Result {
        let lanes = if block.full { "full" } else { "masked" };
        write!(self.out, "b{at} ptx {} {lanes}", block.block)?;
        for (at, pred) in block.preds.iter().enumerate() {
            write!(self.out, "{} b{}", if at == 0 { " from" } else { "" }, pred.0)?;
        }
        writeln!(self.out, ":")?;
        for phi in &block.phis {
            write!(self.out, "  ")?;
            self.def(phi.def)?;
            write!(self.out, " = phi")?;
            self.values(&phi.from)?;
            self.lane_width(phi.def)?;
            writeln!(self.out)?;
        }
        block.ops.iter().try_for_each(|op| self.op(block, op))?;
        block.groups.iter().try_for_each(|group| writeln!(self.out, "  {}", group.text(block)))?;
        if let Some(deferral) = block.deferral {
            writeln!(self.out, "  {deferral}")?;
        }
        if self.ptx.is_some() {
            let mut lines = block.sections.iter().filter_map(|section| section.text(block));
            lines.try_for_each(|line| writeln!(self.out, "  {line}"))?;
            let strips = block.strips.iter().flat_map(|strips| strips.lines(block));
            strips.into_iter().try_for_each(|line| writeln!(self.out, "  {line}"))?;
            if let Some(test) = &block.endpoint_test {
                writeln!(self.out, "  {}", test.text(block))?;
            }
            block.sunk.iter().try_for_each(|sunk| writeln!(self.out, "  {}", sunk.text()))?;
            if let Some(issue) = block.issue {
                writeln!(self.out, "  {}", issue.text(block))?;
            }
        }
        if let (Some(Decision::Applied(versions)), Some(_)) = (&block.leading, self.ptx) {
            let mut lines = versions.lines(block).into_iter();
            lines.try_for_each(|line| writeln!(self.out, "  {line}"))?;
        }
        if let (Some(Decision::Applied(version)), Some(_)) = (&block.unmasked, self.ptx) {
            writeln!(self.out, "  {}", version.text(block))?;
        }
        if let (Some(slots), Some(_)) = (&self.func.slot_memory, self.ptx) {
            let mut lines = slots.lines(self.func, BlockId(at), block).into_iter();
            lines.try_for_each(|line| writeln!(self.out, "  {line}"))?;
        }
        write!(self.out, "  ")?;
        self.term(&block.term)?;
        writeln!(self.out)
    }

    fn op(&mut self, block: &Block, op: &Op) -> fmt::Result {
        write!(self.out, "  ")?;
        for def in &op.defs {
            self.def(*def)?;
            write!(self.out, " ")?;
        }
        if !op.defs.is_empty() {
            write!(self.out, "= ")?;
        }
        let not = |negated: bool| if negated { "-not" } else { "" };
        match &op.kind {
            OpKind::Inst(site) => write!(self.out, "inst {}", At(*site))?,
            OpKind::Chain(_) => write!(self.out, "chain")?,
            OpKind::SelectMask => write!(self.out, "select-mask")?,
            OpKind::SelectPred { negated } => write!(self.out, "select-pred{}", not(*negated))?,
            OpKind::Load(reg) => write!(self.out, "load {reg}")?,
            OpKind::Reload(reg) => write!(self.out, "reload {reg}")?,
            OpKind::Spill(reg) => write!(self.out, "spill {reg}")?,
            OpKind::Restore(resume, reg) => write!(self.out, "restore {resume} {reg}")?,
            OpKind::Reduced(resume, reg) => write!(self.out, "reduced {resume} {reg}")?,
            OpKind::Mask(bits) => write!(self.out, "mask {bits:#x}")?,
            OpKind::EntryMask => write!(self.out, "entry-mask")?,
            OpKind::EntryLive => write!(self.out, "entry-live")?,
            OpKind::EntryCarry => write!(self.out, "entry-carry")?,
            OpKind::EntryTurns => write!(self.out, "entry-fuel")?,
            OpKind::Count(number) => write!(self.out, "count {number}")?,
            OpKind::Truths { negated } => write!(self.out, "truths{}", not(*negated))?,
            OpKind::InRange { first, count } => write!(self.out, "in-range {first} {count}")?,
            OpKind::Picks { site, second } => {
                write!(self.out, "picks-{} {}", if *second { "second" } else { "first" }, At(*site))?;
            }
            OpKind::SameQuotient(site) => write!(self.out, "same-quotient {}", At(*site))?,
            OpKind::Rebase => write!(self.out, "rebase")?,
            OpKind::And => write!(self.out, "and")?,
            OpKind::AndNot => write!(self.out, "and-not")?,
            OpKind::Or => write!(self.out, "or")?,
            OpKind::Add(number) => write!(self.out, "add {number}")?,
            OpKind::AddLanes(number) => write!(self.out, "add-lanes {number}")?,
            OpKind::AddWarps(number) => write!(self.out, "add-warps {number}")?,
            OpKind::Guard(site, GuardKind::Exact, _) => write!(self.out, "wrap-guard {}", At(*site))?,
            OpKind::Guard(site, GuardKind::SameInAll, _) => write!(self.out, "same-guard {}", At(*site))?,
            OpKind::Guard(site, GuardKind::ExactInActive, _) => {
                write!(self.out, "wrap-guard-active {}", At(*site))?;
            }
            OpKind::Ahead(_) => write!(self.out, "block-check")?,
            OpKind::Spare(site, _) => write!(self.out, "access-exit {}", At(*site))?,
        }
        self.values(&op.uses)?;
        match &op.kind {
            OpKind::Guard(_, _, exit) | OpKind::Ahead(exit) | OpKind::Spare(_, exit) => {
                write!(self.out, " ")?;
                self.exit(exit)?;
                if let (OpKind::Ahead(_), Some(checks)) = (&op.kind, &block.checks) {
                    let text = checks.text(block);
                    write!(self.out, "{}{text}", if text.is_empty() { "" } else { " ; " })?;
                }
            }
            OpKind::Chain(chain) => self.chain(chain)?,
            OpKind::Inst(site) => {
                self.comment(*site)?;
                if let (Some(plan), Some(_)) = (&op.access, self.ptx) {
                    write!(self.out, " as {plan}")?;
                }
                if let (Some(prefetches), Some(_)) = (&op.prefetch, self.ptx) {
                    write!(self.out, "{prefetches}")?;
                }
            }
            _ => {}
        }
        op.defs.iter().try_for_each(|def| self.lane_width(*def))?;
        writeln!(self.out)
    }

    /// The width of the lanes that a value is computed in, if these are narrow.
    fn lane_width(&mut self, value: Value) -> fmt::Result {
        match (self.func.lane_widths.get(&value), self.ptx) {
            (Some(width), Some(_)) => write!(self.out, " ; in lanes of {width}"),
            _ => Ok(()),
        }
    }

    /// The instructions of a chain, their results, and the lines that they stand in.
    fn chain(&mut self, chain: &Chain) -> fmt::Result {
        for op in &chain.ops {
            let (OpKind::Inst(site), [def]) = (&op.kind, op.defs.as_slice()) else { continue };
            write!(self.out, " [")?;
            self.def(*def)?;
            write!(self.out, " = {}", At(*site))?;
            self.values(op.uses.get(1..).unwrap_or_default())?;
            write!(self.out, "]")?;
        }
        for (word, values) in [("tested", &chain.tested), ("any-nan", &chain.any_nan)] {
            if !values.is_empty() {
                write!(self.out, " {word}")?;
                self.values(values)?;
            }
        }
        let Some((program, function)) = self.ptx else { return Ok(()) };
        let insts = chain.ops.iter().flat_map(Op::insts).filter_map(|(site, _)| site.inst(function));
        for (at, inst) in insts.enumerate() {
            let comma = if at == 0 { " ; line" } else { "," };
            write!(self.out, "{comma} {}: {}", program.source.line(inst.span), inst.row.form().mnemonic)?;
        }
        Ok(())
    }

    fn term(&mut self, term: &Term) -> fmt::Result {
        match term {
            Term::Goto(to) => write!(self.out, "goto b{}", to.0),
            Term::If { cond, then, els, likely } => {
                match cond {
                    Cond::Pred { value, negated: false } => write!(self.out, "if pred v{}", value.0)?,
                    Cond::Pred { value, negated: true } => write!(self.out, "if not-pred v{}", value.0)?,
                    Cond::Empty(mask) => write!(self.out, "if empty v{}", mask.0)?,
                    Cond::Equal(a, b) => write!(self.out, "if equal v{} v{}", a.0, b.0)?,
                    Cond::Full(mask) => write!(self.out, "if full v{}", mask.0)?,
                    Cond::Negative(count) => write!(self.out, "if negative v{}", count.0)?,
                    Cond::Together { site, members, mask, live } => {
                        write!(self.out, "if together {}", At(*site))?;
                        write!(self.out, " mask v{} live v{}", mask.0, live.0)?;
                        if let Some(members) = members {
                            write!(self.out, " members v{}", members.0)?;
                        }
                    }
                }
                write!(self.out, " then b{} else b{}", then.0, els.0)?;
                self.out.write_str(match likely {
                    None => "",
                    Some(true) => " likely",
                    Some(false) => " unlikely",
                })
            }
            Term::Switch { value, targets, beyond } => {
                write!(self.out, "switch v{} [", value.0)?;
                for (at, to) in targets.iter().enumerate() {
                    write!(self.out, "{}b{}", if at == 0 { "" } else { " " }, to.0)?;
                }
                write!(self.out, "] else b{}", beyond.0)
            }
            Term::Exit(exit) => {
                write!(self.out, "exit ")?;
                self.exit(exit)
            }
        }
    }

    fn exit(&mut self, exit: &Exit) -> fmt::Result {
        match exit.why {
            ExitReason::Finished => write!(self.out, "finished")?,
            ExitReason::Yield { block } => write!(self.out, "yield {block}")?,
            ExitReason::Terminator { block } => write!(self.out, "terminator {block}")?,
            ExitReason::Before(site) => write!(self.out, "before {}", At(site))?,
            ExitReason::Declined => write!(self.out, "declined")?,
        }
        write!(self.out, " mask v{} live v{}", exit.mask.0, exit.live.0)?;
        if let Some(carry) = exit.carry {
            write!(self.out, " carry v{}", carry.0)?;
        }
        let Exit { full_steps, masked_steps, lane_steps, turns, .. } = exit;
        write!(self.out, " steps v{} v{} v{}", full_steps.0, masked_steps.0, lane_steps.0)?;
        write!(self.out, " fuel v{}", turns.0)?;
        if let Some(resume) = exit.resume {
            write!(self.out, " resume {resume}")?;
        }
        self.regs(&exit.regs)?;
        for Pending { block, mask, regs } in &exit.parked {
            write!(self.out, " pending {block} v{}", mask.0)?;
            self.regs(regs)?;
        }
        Ok(())
    }

    fn regs(&mut self, regs: &[(Reg, Value)]) -> fmt::Result {
        write!(self.out, " [")?;
        for (at, (reg, value)) in regs.iter().enumerate() {
            write!(self.out, "{}{reg}=v{}", if at == 0 { "" } else { " " }, value.0)?;
        }
        write!(self.out, "]")
    }

    fn values(&mut self, values: &[Value]) -> fmt::Result {
        values.iter().try_for_each(|value| write!(self.out, " v{}", value.0))
    }

    /// A value where it is defined: with its kind and its shape.
    fn def(&mut self, value: Value) -> fmt::Result {
        let kind = match self.func.kinds[value.0 as usize] {
            Kind::Reg(RegClass::Pred) => "pred",
            Kind::Reg(RegClass::R16) => "r16",
            Kind::Reg(RegClass::R32) => "r32",
            Kind::Reg(RegClass::R64) => "r64",
            Kind::Mask => "mask",
            Kind::Count => "count",
        };
        write!(self.out, "v{}:{kind}", value.0)?;
        match self.func.shapes.get(value.0 as usize) {
            None => Ok(()),
            Some(shape) => write!(self.out, "({})", ShapeText(shape)),
        }
    }

    fn comment(&mut self, site: Site) -> fmt::Result {
        let Some((program, function)) = self.ptx else { return Ok(()) };
        let Some(inst) = site.inst(function) else { return Ok(()) };
        let line = program.source.line(inst.span);
        write!(self.out, " ; line {line}: {}", inst.row.form().mnemonic)?;
        inst.mods.given().iter().try_for_each(|(_, word)| write!(self.out, ".{}", word.text()))
    }
}

/// A site as `BLOCK.INDEX`.
struct At(Site);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.block, self.0.index)
    }
}

/// A shape without the parentheses.
pub(crate) struct ShapeText<'a>(pub(crate) &'a Shape);

impl fmt::Display for ShapeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Shape::Bottom => write!(f, "bottom"),
            Shape::Uniform(None) => write!(f, "uniform"),
            Shape::Uniform(Some(bits)) => write!(f, "= {bits:#x}"),
            Shape::Varying => write!(f, "varying"),
            Shape::Affine(affine) => {
                write!(f, "affine")?;
                if affine.by_chunk {
                    write!(f, " by-chunk")?;
                }
                write!(f, " align {} lanes ", affine.align)?;
                runs(&affine.lanes, f)?;
                if !affine.rows.is_empty() {
                    write!(f, " rows ")?;
                    runs(&affine.rows, f)?;
                }
                Ok(())
            }
        }
    }
}

/// Numbers as runs with one step each: `[0+4x32]` is 0, 4, 8, ... 124.
fn runs(numbers: &[i32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "[")?;
    let mut rest = numbers;
    while let [first, ..] = rest {
        let step = rest.get(1).map_or(0, |next| i64::from(*next) - i64::from(*first));
        let follows = |pair: &&[i32]| i64::from(pair[1]) - i64::from(pair[0]) == step;
        let count = 1 + rest.windows(2).take_while(follows).count();
        let space = if rest.len() == numbers.len() { "" } else { " " };
        write!(f, "{space}{first}{step:+}x{count}")?;
        rest = &rest[count..];
    }
    write!(f, "]")
}
