//! Values that depend only on which thread of its CTA a lane is: thread indices, constants, addresses of
//! shared variables, and values computed from these alone.
//!
//! If one coarse warp is the whole CTA, such a value is a constant of the code: masks need no test, and
//! addresses no gather.
//!
//! Invariant: the value is the same in every CTA and in every iteration. A value that changes in a loop does
//! not belong to the set.

use crate::effects;
use crate::wir::{Func, Op, OpKind, Value};
use ptx::ir::{Base, Function, Src};
use ptx::isa::Sreg;

/// For each value, whether it depends only on which thread of its CTA the lane is.
pub(crate) fn constants(func: &Func, function: &Function) -> Vec<bool> {
    let mut constant = vec![true; func.kinds.len()];
    let own = |src: &Src| match src {
        Src::Absent | Src::Imm(_) | Src::Reg(_) | Src::Not(_) => true,
        Src::Sreg(sreg, _) => matches!(sreg, Sreg::Tid | Sreg::Ntid | Sreg::Laneid),
        Src::Addr(addr) => matches!(addr.base, Base::Var(_)),
        Src::Video(_) => false,
    };
    loop {
        let mut changed = false;
        let mut vary = |constant: &mut Vec<bool>, name: Value| {
            changed |= std::mem::replace(&mut constant[name.0 as usize], false);
        };
        for node in &func.blocks {
            for phi in &node.phis {
                if !phi.from.iter().all(|name| constant[name.0 as usize])
                    || phi.from.len() > 1 && func.entries.is_empty()
                {
                    vary(&mut constant, phi.def);
                }
            }
            for op in &node.ops {
                let from = |op: &Op| op.uses.iter().all(|name| constant[name.0 as usize]);
                let known = match &op.kind {
                    OpKind::Inst(site) => site.inst(function).is_some_and(|inst| {
                        effects::is_pure(inst)
                            && inst.srcs.iter().all(own)
                            && op.uses[1..].iter().all(|name| constant[name.0 as usize])
                    }),
                    // Its instructions are pure.
                    OpKind::Chain(_) => op.uses[1..].iter().all(|name| constant[name.0 as usize]),
                    OpKind::Restore(resume, reg) => {
                        func.kept(*resume, *reg).is_some_and(|name| constant[name.0 as usize])
                    }
                    OpKind::Reload(_) => false,
                    // A register as native code or the interpreter left it.
                    OpKind::Load(_) | OpKind::Mask(_) | OpKind::EntryMask | OpKind::EntryLive => true,
                    OpKind::EntryCarry | OpKind::EntryTurns | OpKind::Count(_) | OpKind::Reduced(..) => false,
                    OpKind::Add(_) | OpKind::AddLanes(_) | OpKind::AddWarps(_) => false,
                    OpKind::SelectMask
                    | OpKind::SelectPred { .. }
                    | OpKind::Truths { .. }
                    | OpKind::InRange { .. }
                    | OpKind::Picks { .. }
                    | OpKind::SameQuotient(_)
                    | OpKind::Rebase
                    | OpKind::And
                    | OpKind::AndNot
                    | OpKind::Or => from(op),
                    OpKind::Guard(..) | OpKind::Ahead(_) | OpKind::Spare(..) | OpKind::Spill(_) => continue,
                };
                if !known {
                    op.defs.iter().for_each(|def| vary(&mut constant, *def));
                }
            }
        }
        if !changed {
            return constant;
        }
    }
}
