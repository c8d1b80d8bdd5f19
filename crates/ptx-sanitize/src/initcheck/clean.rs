//! Static analysis of a function: registers that are defined at every read. initcheck tracks only the other
//! registers.
//!
//! A register is clean if every path writes it before it is read (by liveness), and every instruction that
//! writes it gives defined bits whenever its sources and its guard are clean: arithmetic, exchanges between
//! lanes, loads of kernel parameters. Results of other loads, atomic operations, matrix instructions and
//! calls are not clean. In most kernels, addresses, loop counters and loop conditions are clean.
//!
//! Invariant: a clean register never holds an undefined bit where an instruction reads it.

use crate::registers::Frame;
use ptx::analysis::cfg;
use ptx::analysis::liveness::Liveness;
use ptx::check::module::FunctionKind;
use ptx::ir::{Addr, ArgPlace, Base, Function, Inst, ParamPlace, Reg, Src, Terminator};
use ptx::isa::{Class, Op, Space};
use ptx_exec::watch::Interest;
use std::collections::BTreeSet;

/// Registers that are not clean.
pub(super) struct Dirty(BTreeSet<Reg>);

impl Dirty {
    /// Those of a function.
    pub(super) fn of(function: &Function) -> Self {
        let live = Liveness::new(function, &cfg::graph(function));
        let mut dirty: BTreeSet<Reg> = live
            .live_in
            .first()
            .map_or_else(BTreeSet::new, |set| set.iter().map(|number| live.registers.reg(number)).collect());
        if function.kind != FunctionKind::Entry {
            // Parameters and results of a function: no instruction reads the latter.
            let places = function.params.iter().chain(&function.returns).map(|slot| &slot.place);
            dirty.extend(places.filter_map(|place| match place {
                ParamPlace::Reg(reg) => Some(*reg),
                ParamPlace::Frame(_) | ParamPlace::Kernel(_) => None,
            }));
        }
        for block in &function.blocks {
            if let Terminator::Call(call) = &block.term {
                dirty.extend(call.rets.iter().filter_map(|place| match place {
                    ArgPlace::Reg(reg) => Some(*reg),
                    ArgPlace::Frame { .. }
                    | ArgPlace::KernelParam { .. }
                    | ArgPlace::Imm(_)
                    | ArgPlace::None => None,
                }));
            }
        }
        let mut dirty = Self(dirty);
        while dirty.grow(function) {}
        dirty
    }

    /// Adds what instructions write from dirty sources. Whether something was new.
    fn grow(&mut self, function: &Function) -> bool {
        let before = self.0.len();
        let insts = || function.blocks.iter().flat_map(|block| block.insts.iter().chain(block.term.inst()));
        let carry = insts().any(|inst| carries(inst.op).1 && self.reads(inst));
        for inst in insts() {
            if self.reads(inst) || carry && carries(inst.op).0 || !gives_defined(inst) {
                inst.for_each_def(&mut |reg| _ = self.0.insert(reg));
            }
        }
        self.0.len() > before
    }

    fn reads(&self, inst: &Inst) -> bool {
        let mut any = false;
        inst.for_each_use(&mut |reg| any |= self.0.contains(&reg));
        any
    }

    fn writes(&self, inst: &Inst) -> bool {
        let mut any = false;
        inst.for_each_def(&mut |reg| any |= self.0.contains(&reg));
        any
    }

    /// Which events the tool wants of a function's instructions.
    pub(super) fn interests(&self, function: &Function) -> Vec<Vec<Interest>> {
        let interest =
            |wanted: bool, op: Op| Interest { before: wanted, after: wanted && is_settled_later(op) };
        let mut all = Interest::of_function(function, |inst| {
            interest(self.reads(inst) || self.writes(inst) || inst.op == Op::CpAsync, inst.op)
        });
        // The condition of a branch and the operands of a call are no sources of the instruction.
        for (block, interests) in function.blocks.iter().zip(&mut all) {
            let mut wanted = false;
            block.term.for_each_use(&mut |reg| wanted |= self.0.contains(&reg));
            block.term.for_each_def(&mut |reg| wanted |= self.0.contains(&reg));
            if let (true, Some(inst), Some(last)) = (wanted, block.term.inst(), interests.last_mut()) {
                *last = interest(true, inst.op);
            }
        }
        all
    }

    /// Marks all other registers of an activation.
    pub(super) fn clear<T: Clone>(&self, frame: &mut Frame<T>, clean: impl Fn(&mut T)) {
        frame.for_each(|reg, value| {
            if !self.0.contains(&reg) {
                clean(value);
            }
        });
    }
}

/// Whether it reads and whether it writes the carry flag.
fn carries(op: Op) -> (bool, bool) {
    let reads = matches!(op, Op::Addc | Op::Subc | Op::Madc);
    (reads, reads || matches!(op, Op::AddCc | Op::SubCc | Op::MadCc))
}

/// Whether results are defined where the sources are.
fn gives_defined(inst: &Inst) -> bool {
    let matrix = matches!(
        inst.op,
        Op::WmmaLoad | Op::WmmaStore | Op::WmmaMma | Op::Mma | Op::Ldmatrix | Op::Stmatrix | Op::Movmatrix
    );
    let parameter = matches!(inst.op, Op::Ld)
        && inst.mods.space() == Space::Param
        && matches!(inst.srcs.first(), Some(Src::Addr(Addr { base: Base::KernelParam, .. })));
    parameter || !matrix && matches!(inst.row.row().class, Class::Lane | Class::Warp)
}

/// Whether what an instruction gives its destinations is known only when it has been executed.
fn is_settled_later(op: Op) -> bool {
    matches!(
        op,
        Op::Ld
            | Op::LdNc
            | Op::Ldu
            | Op::Atom
            | Op::ShflSync
            | Op::VoteSync
            | Op::MatchAny
            | Op::MatchAll
            | Op::ReduxSync
            | Op::Shfl
            | Op::Vote
            | Op::BarWarpSync
            | Op::ElectSync
            | Op::WmmaLoad
            | Op::WmmaStore
            | Op::WmmaMma
            | Op::Mma
            | Op::Ldmatrix
            | Op::Stmatrix
            | Op::Movmatrix
    )
}
