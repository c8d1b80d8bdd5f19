//! A numbering of the registers of all classes, so that a bit set can hold any of them.

use crate::ir::{Function, Reg, RegClass, RegCounts};

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
