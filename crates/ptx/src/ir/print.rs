//! The text form of a program, for tests and for people.
//!
//! Invariant: the text depends only on the program, in the order of its numbers. It cannot be parsed.
//!
//! # Shape
//! ```text
//! .entry count: params 4, frame 0, 1 p, 2 r32
//!   in 0: param+0, 4 bytes
//! bb0:
//!   r32.1 = ld.param.u32 [param]
//!   p.0, _ = setp.ge.u32 r32.0, r32.1
//!   r32.0 = add.u32 r32.0, 1 @!p.0
//!   branch p.0 bb2 else bb1 ; bra
//! ```
//! Implicit modifiers follow in braces: `add.f32{.rn}`. Destinations precede `=`, `_` is a sink.

use super::{
    Addr, ArgPlace, Base, Block, Callee, Dst, Function, Guard, Inst, ParamPlace, ParamSlot, Program, Reg,
    RegClass, Src, Terminator,
};
use crate::check::module::FunctionKind;
use crate::isa::{Slot, Sreg, Word};
use std::fmt::{Display, Formatter, Result};

impl Display for Reg {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let class = match self.class {
            RegClass::Pred => "p",
            RegClass::R16 => "r16",
            RegClass::R32 => "r32",
            RegClass::R64 => "r64",
        };
        write!(f, "{class}.{}", self.index)
    }
}

impl Display for Guard {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}{}", if self.negated { "!" } else { "" }, self.pred)
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (i, function) in self.functions.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            Printer { program: self, function }.function(f)?;
        }
        Ok(())
    }
}

/// Prints one function; names of variables and functions come from the program.
struct Printer<'a> {
    program: &'a Program,
    function: &'a Function,
}

impl Printer<'_> {
    fn function(&self, f: &mut Formatter<'_>) -> Result {
        let function = self.function;
        let kind = match function.kind {
            FunctionKind::Entry => ".entry",
            FunctionKind::Func => ".func",
        };
        write!(
            f,
            "{kind} {}: params {}, frame {}",
            function.name, function.param_bytes, function.frame_bytes
        )?;
        let regs = function.regs;
        for (class, count) in [("p", regs.pred), ("r16", regs.r16), ("r32", regs.r32), ("r64", regs.r64)] {
            if count > 0 {
                write!(f, ", {count} {class}")?;
            }
        }
        writeln!(f)?;
        for (name, slots) in [("in", &function.params), ("out", &function.returns)] {
            for (i, slot) in slots.iter().enumerate() {
                self.slot(f, name, i, slot)?;
            }
        }
        match (&function.builtin, function.blocks.is_empty()) {
            (Some(builtin), _) => writeln!(f, "  builtin {builtin:?}")?,
            (None, true) => writeln!(f, "  no body")?,
            (None, false) => {}
        }
        for (i, block) in function.blocks.iter().enumerate() {
            match &block.label {
                Some(label) => writeln!(f, "bb{i}: {label}")?,
                None => writeln!(f, "bb{i}:")?,
            }
            self.block(f, block)?;
        }
        Ok(())
    }

    fn slot(&self, f: &mut Formatter<'_>, name: &str, i: usize, slot: &ParamSlot) -> Result {
        match slot.place {
            ParamPlace::Reg(reg) => writeln!(f, "  {name} {i}: {reg}"),
            ParamPlace::Frame(offset) => writeln!(f, "  {name} {i}: frame+{offset}, {} bytes", slot.bytes),
            ParamPlace::Kernel(offset) => writeln!(f, "  {name} {i}: param+{offset}, {} bytes", slot.bytes),
        }
    }

    fn block(&self, f: &mut Formatter<'_>, block: &Block) -> Result {
        for inst in &block.insts {
            write!(f, "  ")?;
            self.inst(f, inst)?;
            match inst.guard {
                Some(guard) => writeln!(f, " @{guard}")?,
                None => writeln!(f)?,
            }
        }
        write!(f, "  ")?;
        self.terminator(f, &block.term)?;
        writeln!(f)
    }

    fn inst(&self, f: &mut Formatter<'_>, inst: &Inst) -> Result {
        for (i, dst) in inst.dsts.iter().enumerate() {
            write!(f, "{}", if i == 0 { "" } else { ", " })?;
            match dst {
                Dst::Reg(reg) => write!(f, "{reg}")?,
                Dst::Video { reg, bytes } => write!(f, "{reg}/{bytes:04b}")?,
                Dst::Sink => write!(f, "_")?,
            }
        }
        if !inst.dsts.is_empty() {
            write!(f, " = ")?;
        }
        write!(f, "{}", Mnemonic(inst))?;
        for (i, src) in inst.srcs.iter().enumerate() {
            write!(f, "{}", if i == 0 { " " } else { ", " })?;
            self.src(f, src)?;
        }
        Ok(())
    }

    fn src(&self, f: &mut Formatter<'_>, src: &Src) -> Result {
        match src {
            Src::Absent => write!(f, "-"),
            Src::Reg(reg) => write!(f, "{reg}"),
            Src::Not(reg) => write!(f, "!{reg}"),
            Src::Imm(bits) if *bits < 10 => write!(f, "{bits}"),
            Src::Imm(bits) => write!(f, "{bits:#x}"),
            Src::Sreg(Sreg::Pm64(n), _) => write!(f, "%pm{n}_64"),
            Src::Sreg(sreg @ (Sreg::Pm(n) | Sreg::Envreg(n)), _) => write!(f, "{}{n}", sreg.facts().name),
            Src::Sreg(sreg, component) => {
                let facts = sreg.facts();
                let component = ["x", "y", "z", "w"][usize::from(*component % 4)];
                write!(f, "{}", facts.name)?;
                if facts.vector { write!(f, ".{component}") } else { Ok(()) }
            }
            Src::Addr(addr) => self.addr(f, *addr),
            Src::Video(video) => {
                write!(f, "{}", if video.negated { "-" } else { "" })?;
                self.src(f, &video.value)?;
                if !video.elements.is_empty() {
                    write!(f, "/{}", if video.bytes { "b" } else { "h" })?;
                    video.elements.iter().rev().try_for_each(|e| write!(f, "{e}"))?;
                }
                Ok(())
            }
        }
    }

    fn addr(&self, f: &mut Formatter<'_>, addr: Addr) -> Result {
        let functions = &self.program.functions;
        match addr.base {
            Base::Absolute => return write!(f, "[{}]", addr.offset),
            Base::Reg(reg) => write!(f, "[{reg}")?,
            Base::Var(var) => {
                let variable = self.program.variables.get(var.0 as usize);
                write!(f, "[{}", variable.map_or("?", |v| v.name.as_str()))?;
            }
            Base::Frame => write!(f, "[frame")?,
            Base::KernelParam => write!(f, "[param")?,
            Base::Func(func) => {
                write!(f, "[{}", functions.get(func.0 as usize).map_or("?", |f| f.name.as_str()))?;
            }
        }
        if let Some(index) = addr.index {
            write!(f, "+{index}")?;
        }
        if addr.offset == 0 { write!(f, "]") } else { write!(f, "{:+}]", addr.offset) }
    }

    fn terminator(&self, f: &mut Formatter<'_>, term: &Terminator) -> Result {
        match term {
            Terminator::Goto(to, None) => write!(f, "goto bb{}", to.0),
            Terminator::Goto(to, Some(inst)) => write!(f, "{} bb{}", Mnemonic(inst), to.0),
            Terminator::Branch { cond, then, els, inst } => {
                write!(f, "branch {cond} bb{} else bb{} ; {}", then.0, els.0, Mnemonic(inst))
            }
            Terminator::Switch { targets, inst } => {
                self.inst(f, inst)?;
                targets.iter().try_for_each(|to| write!(f, " bb{}", to.0))
            }
            Terminator::Call(call) => {
                self.places(f, &call.rets)?;
                write!(f, " = call ")?;
                match &call.callee {
                    Callee::Direct(func) => {
                        let callee = self.program.functions.get(func.0 as usize);
                        write!(f, "{} ", callee.map_or("?", |f| f.name.as_str()))?;
                    }
                    Callee::Indirect { address, allowed: None } => write!(f, "*{address} ")?,
                    Callee::Indirect { address, allowed: Some(allowed) } => {
                        write!(f, "*{address} of")?;
                        for func in allowed {
                            let callee = self.program.functions.get(func.0 as usize);
                            write!(f, " {}", callee.map_or("?", |f| f.name.as_str()))?;
                        }
                        write!(f, " ")?;
                    }
                }
                self.places(f, &call.args)?;
                write!(f, " then bb{}", call.next.0)
            }
            Terminator::WarpSync { inst, next } | Terminator::Barrier { inst, next } => {
                self.inst(f, inst)?;
                write!(f, " then bb{}", next.0)
            }
            Terminator::Ret(None) => write!(f, "end"),
            Terminator::Ret(Some(inst)) | Terminator::Exit(inst) => write!(f, "{}", Mnemonic(inst)),
        }
    }

    fn places(&self, f: &mut Formatter<'_>, places: &[ArgPlace]) -> Result {
        write!(f, "(")?;
        for (i, place) in places.iter().enumerate() {
            write!(f, "{}", if i == 0 { "" } else { ", " })?;
            match place {
                ArgPlace::Frame { offset, bytes } => write!(f, "frame+{offset}:{bytes}")?,
                ArgPlace::KernelParam { offset, bytes } => write!(f, "param+{offset}:{bytes}")?,
                ArgPlace::Reg(reg) => write!(f, "{reg}")?,
                ArgPlace::Imm(bits) => write!(f, "{bits:#x}")?,
                ArgPlace::None => write!(f, "_")?,
            }
        }
        write!(f, ")")
    }
}

/// The mnemonic with the modifiers as written, then the implicit ones in braces.
struct Mnemonic<'a>(&'a Inst);

impl Display for Mnemonic<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Mnemonic(inst) = self;
        write!(f, "{}", inst.row.form().mnemonic)?;
        let (given, all) = (inst.mods.given(), inst.mods.all());
        let word = |f: &mut Formatter<'_>, (_, word): &(Slot, Word)| write!(f, ".{}", word.text());
        given.iter().try_for_each(|item| word(f, item))?;
        match all.get(given.len()..) {
            Some([_, ..]) => {
                write!(f, "{{")?;
                all[given.len()..].iter().try_for_each(|item| word(f, item))?;
                write!(f, "}}")
            }
            Some([]) | None => Ok(()),
        }
    }
}
