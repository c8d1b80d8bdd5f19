//! The registers that an instruction reads and writes, and the successors of a terminator.
//!
//! Invariant: every part that reads or writes a register is listed here, so liveness, renumbering and
//! verification agree. A [`Terminator::Branch`] reads only its condition: a guarded instruction in it is
//! executed by the block that it guards. A [`Terminator::Call`] reads and writes by its [`ArgPlace`]s; its
//! instruction has no operands.

use super::{Addr, ArgPlace, Base, Block, BlockId, Call, Callee, Dst, Inst, Reg, Src, Terminator};

impl Src {
    /// Calls `f` with each register that is read.
    pub fn for_each_reg(&self, f: &mut impl FnMut(Reg)) {
        match self {
            Src::Reg(reg) | Src::Not(reg) | Src::Addr(Addr { base: Base::Reg(reg), .. }) => f(*reg),
            Src::Addr(Addr { index, .. }) => index.iter().copied().for_each(f),
            Src::Video(video) => video.value.for_each_reg(f),
            Src::Absent | Src::Imm(_) | Src::Sreg(..) => {}
        }
    }

    fn for_each_reg_mut(&mut self, f: &mut impl FnMut(&mut Reg)) {
        match self {
            Src::Reg(reg) | Src::Not(reg) | Src::Addr(Addr { base: Base::Reg(reg), .. }) => f(reg),
            Src::Addr(Addr { index, .. }) => index.iter_mut().for_each(f),
            Src::Video(video) => video.value.for_each_reg_mut(f),
            Src::Absent | Src::Imm(_) | Src::Sreg(..) => {}
        }
    }
}

impl Dst {
    /// The register that is written.
    pub fn reg(&self) -> Option<Reg> {
        match self {
            Dst::Reg(reg) | Dst::Video { reg, .. } => Some(*reg),
            Dst::Sink => None,
        }
    }
}

impl Inst {
    /// Calls `f` with each register that is read, including the guard; a register that is read twice is
    /// passed twice.
    pub fn for_each_use(&self, f: &mut impl FnMut(Reg)) {
        if let Some(guard) = self.guard {
            f(guard.pred);
        }
        self.srcs.iter().for_each(|src| src.for_each_reg(f));
    }

    /// Calls `f` with each register that is written, unconditionally or under the guard.
    pub fn for_each_def(&self, f: &mut impl FnMut(Reg)) {
        self.dsts.iter().filter_map(Dst::reg).for_each(f);
    }

    fn for_each_reg_mut(&mut self, f: &mut impl FnMut(&mut Reg)) {
        if let Some(guard) = &mut self.guard {
            f(&mut guard.pred);
        }
        for dst in &mut self.dsts {
            match dst {
                Dst::Reg(reg) | Dst::Video { reg, .. } => f(reg),
                Dst::Sink => {}
            }
        }
        self.srcs.iter_mut().for_each(|src| src.for_each_reg_mut(f));
    }
}

impl Call {
    fn for_each_reg_mut(&mut self, f: &mut impl FnMut(&mut Reg)) {
        if let Callee::Indirect { address, .. } = &mut self.callee {
            f(address);
        }
        for place in self.args.iter_mut().chain(&mut self.rets) {
            if let ArgPlace::Reg(reg) = place {
                f(reg);
            }
        }
    }
}

impl Terminator {
    /// The successor blocks in the function, in a fixed order; duplicates are kept.
    pub fn successors(&self) -> Vec<BlockId> {
        match self {
            Terminator::Goto(to, _) => vec![*to],
            Terminator::Branch { then, els, .. } => vec![*then, *els],
            Terminator::Switch { targets, .. } => targets.clone(),
            Terminator::Call(call) => vec![call.next],
            Terminator::WarpSync { next, .. } | Terminator::Barrier { next, .. } => vec![*next],
            Terminator::Ret(_) | Terminator::Exit(_) => Vec::new(),
        }
    }

    /// Calls `f` with each successor, to renumber it.
    pub fn for_each_successor_mut(&mut self, f: &mut impl FnMut(&mut BlockId)) {
        match self {
            Terminator::Goto(to, _) => f(to),
            Terminator::Branch { then, els, .. } => {
                f(then);
                f(els);
            }
            Terminator::Switch { targets, .. } => targets.iter_mut().for_each(f),
            Terminator::Call(call) => f(&mut call.next),
            Terminator::WarpSync { next, .. } | Terminator::Barrier { next, .. } => f(next),
            Terminator::Ret(_) | Terminator::Exit(_) => {}
        }
    }

    /// The PTX instruction of the terminator; `None` for falling through and falling off the end.
    pub fn inst(&self) -> Option<&Inst> {
        match self {
            Terminator::Goto(_, inst) | Terminator::Ret(inst) => inst.as_ref(),
            Terminator::Branch { inst, .. }
            | Terminator::Switch { inst, .. }
            | Terminator::WarpSync { inst, .. }
            | Terminator::Barrier { inst, .. }
            | Terminator::Exit(inst) => Some(inst),
            Terminator::Call(call) => Some(&call.inst),
        }
    }

    /// As [`Terminator::inst`], to change it.
    pub fn inst_mut(&mut self) -> Option<&mut Inst> {
        match self {
            Terminator::Goto(_, inst) | Terminator::Ret(inst) => inst.as_mut(),
            Terminator::Branch { inst, .. }
            | Terminator::Switch { inst, .. }
            | Terminator::WarpSync { inst, .. }
            | Terminator::Barrier { inst, .. }
            | Terminator::Exit(inst) => Some(inst),
            Terminator::Call(call) => Some(&mut call.inst),
        }
    }

    /// Calls `f` with each register that is read.
    pub fn for_each_use(&self, f: &mut impl FnMut(Reg)) {
        match self {
            Terminator::Branch { cond, .. } => f(cond.pred),
            Terminator::Call(call) => {
                if let Callee::Indirect { address, .. } = &call.callee {
                    f(*address);
                }
                for place in &call.args {
                    if let ArgPlace::Reg(reg) = place {
                        f(*reg);
                    }
                }
            }
            Terminator::Switch { inst, .. }
            | Terminator::WarpSync { inst, .. }
            | Terminator::Barrier { inst, .. } => inst.for_each_use(f),
            Terminator::Goto(..) | Terminator::Ret(_) | Terminator::Exit(_) => {}
        }
    }

    /// Calls `f` with each register that is written.
    pub fn for_each_def(&self, f: &mut impl FnMut(Reg)) {
        match self {
            Terminator::Call(call) => {
                for place in &call.rets {
                    if let ArgPlace::Reg(reg) = place {
                        f(*reg);
                    }
                }
            }
            Terminator::WarpSync { inst, .. } | Terminator::Barrier { inst, .. } => inst.for_each_def(f),
            Terminator::Goto(..)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Ret(_)
            | Terminator::Exit(_) => {}
        }
    }

    fn for_each_reg_mut(&mut self, f: &mut impl FnMut(&mut Reg)) {
        match self {
            Terminator::Goto(_, inst) | Terminator::Ret(inst) => {
                if let Some(inst) = inst {
                    inst.for_each_reg_mut(f);
                }
            }
            Terminator::Branch { cond, inst, .. } => {
                f(&mut cond.pred);
                inst.for_each_reg_mut(f);
            }
            Terminator::Switch { inst, .. }
            | Terminator::WarpSync { inst, .. }
            | Terminator::Barrier { inst, .. }
            | Terminator::Exit(inst) => inst.for_each_reg_mut(f),
            Terminator::Call(call) => {
                call.for_each_reg_mut(f);
                call.inst.for_each_reg_mut(f);
            }
        }
    }
}

impl Block {
    /// Calls `f` with every mention of a register, to renumber it.
    pub fn for_each_reg_mut(&mut self, f: &mut impl FnMut(&mut Reg)) {
        self.insts.iter_mut().for_each(|inst| inst.for_each_reg_mut(f));
        self.term.for_each_reg_mut(f);
    }
}
