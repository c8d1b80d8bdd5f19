//! Definitions and uses of registers.
//!
//! Invariant: registers of all classes have one numbering ([`Registers`]), so that a bit set can hold any of
//! them.

use crate::ir::{Function, Inst, Reg, RegClass, RegCounts};

/// Numbers for the registers of all classes, in the order predicates, 16, 32, 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    counts: RegCounts,
}

impl Registers {
    /// The registers of a function.
    pub fn new(function: &Function) -> Self {
        Self { counts: function.regs }
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.start(RegClass::R64) + self.counts.r64 as usize
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    fn start(self, class: RegClass) -> usize {
        let c = self.counts;
        let before = match class {
            RegClass::Pred => [0, 0, 0],
            RegClass::R16 => [c.pred, 0, 0],
            RegClass::R32 => [c.pred, c.r16, 0],
            RegClass::R64 => [c.pred, c.r16, c.r32],
        };
        before.iter().map(|n| *n as usize).sum()
    }

    /// The number of a register.
    pub fn number(self, reg: Reg) -> usize {
        self.start(reg.class) + reg.index as usize
    }

    /// The register of a number below [`Registers::len`].
    pub fn reg(self, number: usize) -> Reg {
        let classes = [RegClass::R64, RegClass::R32, RegClass::R16, RegClass::Pred];
        let class = classes.into_iter().find(|c| number >= self.start(*c)).unwrap_or(RegClass::Pred);
        Reg { class, index: (number - self.start(class)) as u32 }
    }
}

/// A place in a function: a block, and an instruction in it; the terminator is at `insts.len()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The block.
    pub block: usize,
    /// The instruction.
    pub inst: usize,
}

/// Definitions and uses of every register.
#[derive(Clone, Debug)]
pub struct DefUse {
    /// The numbers of the registers.
    pub registers: Registers,
    /// By register number: its definitions, in program order, without parameters.
    pub defs: Vec<Vec<Place>>,
    /// By register number: its uses, in program order; one place per mention.
    pub uses: Vec<Vec<Place>>,
}

impl DefUse {
    /// Lists definitions and uses.
    pub fn new(function: &Function) -> Self {
        let registers = Registers::new(function);
        let mut facts = Self {
            registers,
            defs: vec![Vec::new(); registers.len()],
            uses: vec![Vec::new(); registers.len()],
        };
        for (block, content) in function.blocks.iter().enumerate() {
            for (inst, content) in content.insts.iter().enumerate() {
                facts.inst(Place { block, inst }, content);
            }
            let place = Place { block, inst: content.insts.len() };
            content.term.for_each_use(&mut |reg| facts.uses[registers.number(reg)].push(place));
            content.term.for_each_def(&mut |reg| facts.defs[registers.number(reg)].push(place));
        }
        facts
    }

    fn inst(&mut self, place: Place, inst: &Inst) {
        let registers = self.registers;
        inst.for_each_use(&mut |reg| self.uses[registers.number(reg)].push(place));
        inst.for_each_def(&mut |reg| self.defs[registers.number(reg)].push(place));
    }

    /// The definitions of a register.
    pub fn defs_of(&self, reg: Reg) -> &[Place] {
        &self.defs[self.registers.number(reg)]
    }

    /// The uses of a register.
    pub fn uses_of(&self, reg: Reg) -> &[Place] {
        &self.uses[self.registers.number(reg)]
    }
}
